//! Takes a text that arrived, from a provider or from another agent of this deployment, into the inbox of the number's owner.
//!
//! An agent takes [`MAX_IN_A_DAY`] texts a day. STOP and START apply even if its inbox is full. A text is stored once, however
//! often it arrives.
//!
//! A STOP, START or HELP of an agent is answered by a text into that agent's own inbox, once a day for each word and number.
//! Such an answer is not received here, so nothing ever answers it. A word from the phone network is answered by the provider,
//! which must be left to do so (docs/SMS.md).

use base::clock::Timestamp;
use base::ids::AgentId;
use base::untrusted_text::visible;
use messages::ids::message_uuid;
use platform::store::{Db, StoreError, daily};
use tools::Toolbox;

use crate::inbox::{self, KEPT, MAX_BODY, Text, short_hash};
use crate::keywords::{self, Keyword};
use crate::number::Number;
use crate::opt_out::{self, Why};
use crate::segments::prepared;
use crate::velocity::MAX_IN_A_DAY;
use crate::{notices, phone};

/// A text as it arrived.
pub struct Incoming<'a> {
    /// A number, a short code or a name; untrusted.
    pub from: &'a str,
    pub to: &'a Number,
    /// Untrusted.
    pub body: &'a str,
    pub num_media: u32,
    /// When it arrived first: the same each time.
    pub at: Timestamp,
    /// What makes it unique: the same text arriving again has the same.
    pub event_id: &'a str,
    /// The agent of this deployment that sent it.
    pub local_sender: Option<AgentId>,
}

/// What became of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is in the inbox, now or already before.
    Stored,
    /// Nobody here has the number.
    UnknownNumber,
    /// The agent has received [`MAX_IN_A_DAY`] texts today.
    Full,
}

/// Stores a text for the owner of the number, applies STOP and START, and tells the agent.
///
/// # Errors
/// If the database fails; the text must then be delivered again.
pub async fn receive(toolbox: &Toolbox, incoming: &Incoming<'_>) -> Result<Taken, StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let Some(owner) = phone::owner_of(db, incoming.to).await? else { return Ok(Taken::UnknownNumber) };
    if !phone::reached(db, incoming.to, &owner, now).await? {
        return Ok(Taken::UnknownNumber);
    }
    let (agent, from) = (owner.agent, inbox::sender(incoming.from));
    let keyword = keywords::of(incoming.body);
    // Before the inbox's limit: a STOP holds, whatever else the agent receives.
    if let (Some(word), Ok(recipient)) = (keyword, Number::parse(&from)) {
        let out = match word {
            Keyword::Stop => Some(true),
            Keyword::Start => Some(false),
            Keyword::Help => None,
        };
        if let Some(out) = out {
            opt_out::set(db, incoming.to, &recipient, out, Why::Stop, incoming.at).await?;
        }
    }
    let to = incoming.to.as_str().as_bytes();
    let id = message_uuid(incoming.at, &[b"sms", agent.bytes(), incoming.event_id.as_bytes(), to]);
    let text = match inbox::text(db, agent, id).await? {
        // A text that arrives again was counted the first time.
        Some(known) => known,
        None => {
            if !daily::take(db, format!("SMS#in:{agent}"), MAX_IN_A_DAY, now).await? {
                return Ok(Taken::Full);
            }
            let last_out = inbox::last_out(db, agent, incoming.to, &from, now).await?;
            let answered = match last_out {
                Some(sent) => inbox::sent(db, agent, sent).await?,
                None => None,
            };
            let text = Text {
                id,
                agent,
                thread_id: inbox::thread_of(agent, incoming.to, &from),
                from: from.clone(),
                to: incoming.to.clone(),
                body: prepared(&visible(incoming.body)).chars().take(MAX_BODY).collect(),
                received_at: incoming.at,
                num_media: incoming.num_media,
                related_outbound_id: last_out,
                related_request_id: answered.map(|sent| sent.request_id),
                automatic: false,
                keyword: keyword.map(|word| name(word).to_owned()),
                expires: incoming.at.plus(KEPT).secs(),
            };
            inbox::put_text(db, &text).await?;
            text
        }
    };
    // For a repeated text too: the process may have died after it stored the text.
    notices::tell_received(db, &text, now).await?;
    if let (Some(word), Some(sender)) = (keyword, incoming.local_sender) {
        let words = answer(word, &toolbox.config.service_name, incoming.to);
        put_answer(db, incoming, &from, sender, word, words, now).await?;
    }
    Ok(Taken::Stored)
}

/// Puts the service's answer to a word into the inbox of the agent that sent it.
async fn put_answer(
    db: &Db,
    incoming: &Incoming<'_>,
    from: &str,
    sender: AgentId,
    word: Keyword,
    body: String,
    now: Timestamp,
) -> Result<(), StoreError> {
    let Ok(own) = Number::parse(from) else { return Ok(()) };
    let other = incoming.to.as_str();
    let id = message_uuid(incoming.at, &[b"sms", b"answer", sender.bytes(), incoming.event_id.as_bytes()]);
    if inbox::text(db, sender, id).await?.is_none() {
        let pair = short_hash(&[from.as_bytes(), other.as_bytes(), name(word).as_bytes()]);
        if !daily::take(db, format!("SMS#auto:{pair}"), 1, now).await? {
            return Ok(());
        }
    }
    let answer = Text {
        id,
        agent: sender,
        thread_id: inbox::thread_of(sender, &own, other),
        from: other.to_owned(),
        to: own,
        body,
        received_at: incoming.at,
        num_media: 0,
        related_outbound_id: None,
        related_request_id: None,
        automatic: true,
        keyword: None,
        expires: incoming.at.plus(KEPT).secs(),
    };
    inbox::put_text(db, &answer).await?;
    notices::tell_received(db, &answer, now).await
}

fn name(word: Keyword) -> &'static str {
    match word {
        Keyword::Stop => "stop",
        Keyword::Start => "start",
        Keyword::Help => "help",
    }
}

/// What the service answers to a word that was sent to `own`: one segment.
pub(crate) fn answer(word: Keyword, service: &str, own: &Number) -> String {
    let own = own.as_str();
    match word {
        Keyword::Stop => format!("{service}: you get no more texts from {own}. Reply START to get them again."),
        Keyword::Start => format!("{service}: you get texts from {own} again. Reply STOP to end them."),
        Keyword::Help => format!("{service}: texts from {own} are sent by a software agent. Reply STOP to end them."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::{self, Encoding};

    #[test]
    fn an_answer_is_one_segment_and_no_word() {
        // The longest name that a service may have.
        let (service, own) = ("A".repeat(40), Number::parse("+4915112345678").unwrap());
        for word in [Keyword::Stop, Keyword::Start, Keyword::Help] {
            let text = answer(word, &service, &own);
            let segments = segments::of(&segments::prepared(&text));
            assert_eq!((segments.encoding, segments.count), (Encoding::Gsm7, 1), "{text}");
            assert!(segments.units <= 150, "{text}");
            assert_eq!(keywords::of(&text), None);
        }
    }
}
