//! What visitors write in a site's form: a mail in its owner's mailbox. The function that takes it only queues it; the worker,
//! which takes all mail, delivers it.

use base::clock::Timestamp;
use base::untrusted_text::visible;
use platform::http::log;
use platform::store::queue::{Lead, Message, Queue};
use platform::store::{Db, StoreError, daily};
use serde_json::json;
use tools::Toolbox;
use tools_email::address::Address;
use tools_email::compose::{Draft, compose};
use tools_email::mailbox::Verdicts;
use tools_email::receive::{Envelope, receive};
use uuid::Uuid;

use crate::site::{self, Site};

/// Most messages that a site takes in a UTC day.
pub const MAX_A_DAY: u32 = 20;
/// Longest parts of a message, in characters.
const MAX_NAME: usize = 100;
const MAX_EMAIL: usize = 320;
const MAX_MESSAGE: usize = 5_000;

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    Queued,
    /// The site has no form, or is not there.
    NoForm,
    /// A part is missing or too long, or the address is none.
    Unusable,
    /// The site takes no more today.
    Full,
}

/// The fields of the form.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default)]
pub struct Form {
    pub name: String,
    pub email: String,
    pub message: String,
}

/// Takes a message for the site with this slug.
///
/// # Errors
/// If the database or the queue fails; then nothing was taken.
pub async fn take(
    db: &Db,
    queue: &dyn Queue,
    slug: &str,
    form: &Form,
    now: Timestamp,
) -> Result<(Taken, Option<Site>), StoreError> {
    let Some(build) = site::build_of(slug) else { return Ok((Taken::NoForm, None)) };
    let site: Option<Site> = db.get(&db.tables.agents, site::key(build)).await?;
    let Some(site) = site.filter(|site| site.slug == slug && site.is_live() && site.inbox.is_some()) else {
        return Ok((Taken::NoForm, None));
    };
    let Some(lead) = read(form, build, now) else { return Ok((Taken::Unusable, Some(site))) };
    if !daily::take(db, format!("SITE#{build}#LEADS"), MAX_A_DAY, now).await? {
        return Ok((Taken::Full, Some(site)));
    }
    queue.send(&Message::Lead(lead)).await?;
    Ok((Taken::Queued, Some(site)))
}

fn read(form: &Form, build: Uuid, now: Timestamp) -> Option<Lead> {
    let line = |text: &str| visible(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let (name, message) = (line(&form.name), visible(&form.message).trim().to_owned());
    let email = Address::parse(form.email.trim()).ok()?.as_str().to_owned();
    let fits = |text: &str, most: usize| !text.is_empty() && text.chars().count() <= most;
    let all = fits(&name, MAX_NAME) && fits(&email, MAX_EMAIL) && fits(&message, MAX_MESSAGE);
    all.then(|| Lead { id: base::ids::random_uuid(), build, at: now, name, email, message })
}

/// Puts a message into the mailbox. A message that arrives twice is stored once.
///
/// # Errors
/// If the mailbox cannot be written; the message must then be delivered again.
pub async fn deliver(toolbox: &Toolbox, lead: &Lead) -> Result<(), StoreError> {
    let Some(site) = site::load(&toolbox.db, lead.build).await? else { return Ok(()) };
    let Some(inbox) = site.inbox.as_deref().and_then(|inbox| Address::parse(inbox).ok()) else { return Ok(()) };
    let id = lead.id.to_string();
    let body = format!(
        "Somebody wrote in the form of your site {}. Nobody checked the address.\n\nName: {}\nE-mail: {}\n\n{}\n",
        site.name, lead.name, lead.email, lead.message
    );
    let raw = compose(&Draft {
        from: &inbox,
        from_name: Some(&site.name),
        to: &inbox,
        subject: &format!("Message from {}", lead.name),
        body: &body,
        message_id: &format!("lead.{id}@{}", inbox.domain()),
        in_reply_to: None,
        references: &[],
        attachments: &[],
        unsubscribe: None,
        auto_submitted: true,
        agent: None,
        date: lead.at,
    });
    let envelope = Envelope {
        from: Some(inbox.clone()),
        to: std::slice::from_ref(&inbox),
        source: None,
        event_id: &id,
        received_at: lead.at,
        verdicts: Verdicts::default(),
    };
    let delivered = receive(toolbox, &envelope, &raw).await?;
    let outcome = delivered.first().map(|(_, outcome)| format!("{outcome:?}"));
    log::event("a message of a site's form", json!({"build": lead.build, "delivered": outcome}));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_a_name_an_address_and_a_text() {
        let form = |name: &str, email: &str, message: &str| {
            let form = Form { name: name.to_owned(), email: email.to_owned(), message: message.to_owned() };
            read(&form, Uuid::nil(), Timestamp::from_secs(0)).map(|lead| (lead.name, lead.email, lead.message))
        };
        let some =
            |name: &str, email: &str, message: &str| Some((name.to_owned(), email.to_owned(), message.to_owned()));
        assert_eq!(
            form(" Ann\r\nBcc: x ", "ann@example.com", "Hello\nthere"),
            some("Ann Bcc: x", "ann@example.com", "Hello\nthere")
        );
        for (name, email, message) in [
            ("", "ann@example.com", "x"),
            ("Ann", "ann", "x"),
            ("Ann", "ann@example.com\r\nBcc: b@example.com", "x"),
            ("Ann", "ann@example.com", " \n "),
        ] {
            assert_eq!(form(name, email, message), None, "{name} {email}");
        }
        assert_eq!(form("Ann", "ann@example.com", &"x".repeat(5_001)), None);
    }
}
