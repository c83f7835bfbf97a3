//! Unipile, API version 1: what is asked. <https://developer.unipile.com/reference>
//!
//! - Each customer has an address of its own, so there is no default: `PROVIDER_URLS={"unipile": "https://api1.unipile.com:13111"}`.
//! - Unipile has no idempotency key. What was sent is looked for among the latest messages and invitations if the answer was lost.
//! - A limit of the network may be answered with 500, and so may a message that was sent: 500 says nothing.
//! - Every path is in this file; what answers mean is in [`read`].

pub mod read;

use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use base::encoding::percent_encoded;
use platform::config::{Capability, Redacted};
use platform::net::PlainAnswer;
use platform::providers::outbound::read_json;
use platform::providers::{Amount, Ask, Charge, Outbound, OutboundError};
use platform::store::BoxFuture;
use ring::hmac;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::Source;

use super::{Act, Answer, Chat, Fate, Found, Login, Member, Page, Profile, Provider, Trouble};
use crate::action::Kind;

pub const NAME: &str = "unipile";
pub const CHARGE: Charge = Charge {
    provider: NAME,
    capability: Capability::Network,
    tools: &["linkedin_message"],
    amount: Amount::Unknown(
        "55 USD a month for ten accounts, and 5.50 for each further one, however often it is asked",
    ),
};
/// The name in `PROVIDER_KEYS` of the secret that Unipile's webhooks carry, and the header that they carry it in.
pub const SECRET: &str = "unipile_webhook";
pub const SECRET_HEADER: &str = "unipile-auth";

/// Nobody has this address: without one of its own, nothing is asked.
const ORIGIN: &str = "https://unipile.invalid";
/// Longest wait for one answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Messages and invitations among which a lost one is looked for.
const LOOKED_AT: usize = 50;
/// Chats of lost messages whose members are looked at.
const CHATS: usize = 5;
/// A message that was sent is this much younger or older than we know, by Unipile's clock.
const AROUND: Duration = Duration::from_secs(300);
/// Statuses whose bodies say why. What the network limits (429) is not asked again at once.
const TOLD: [u16; 6] = [400, 401, 403, 404, 422, 429];

pub struct Unipile<'a> {
    pub outbound: &'a Outbound,
}

/// Whether a header has the secret of our webhooks. Takes the same time for every wrong one.
///
/// # Errors
/// If the secret cannot be read, or there is none.
pub async fn has_sent(outbound: &Outbound, secret: &str) -> Result<bool, OutboundError> {
    let own = outbound.needed_key(SECRET).await?;
    let key = |secret: &str| hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = digest::hmac(&key(secret), NAME.as_bytes());
    Ok(hmac::verify(&key(own.expose()), NAME.as_bytes(), &tag).is_ok())
}

impl Unipile<'_> {
    async fn send(&self, ask: Ask, key: Redacted) -> Result<PlainAnswer, OutboundError> {
        let ask = ask.header("x-api-key", key.expose());
        self.outbound.send(NAME, ORIGIN, &ask, &TOLD, Instant::now() + PATIENCE).await
    }

    /// The answer's status and body; a body that is not JSON is null.
    async fn ask(&self, ask: Ask) -> Result<(u16, Value), OutboundError> {
        if self.outbound.origin(NAME).is_none() {
            return Err(OutboundError::NotConfigured("PROVIDER_URLS has no unipile".to_owned()));
        }
        let key = self.outbound.needed_key(NAME).await?;
        let answer = self.send(ask, key).await?;
        match read_json(&answer) {
            Ok(body) => Ok((answer.status, body)),
            Err(_) if answer.status / 100 != 2 => Ok((answer.status, Value::Null)),
            Err(error) => Err(error),
        }
    }

    /// A read: its body, or `None` for 404.
    async fn read(&self, path: String) -> Result<Option<Value>, Trouble> {
        let (status, body) = self.ask(Ask::get(path)).await?;
        match status {
            404 => Ok(None),
            401 | 403 if read::is_logged_out(&body) => Err(Trouble::LoggedOut),
            401 | 403 => Err(OutboundError::Unauthorized(status).into()),
            429 => Err(OutboundError::TooMany.into()),
            200..=299 => Ok(Some(body)),
            _ => Err(OutboundError::Refused(status).into()),
        }
    }

    /// Sends something once.
    async fn change(&self, ask: Ask) -> Result<Value, Fate> {
        match self.ask(Ask { repeatable: false, ..ask }).await {
            Ok((200..=299, body)) => Ok(body),
            Ok((status, body)) => Err(read::refusal(status, &body)),
            Err(error) => Err(read::unanswered(&error)),
        }
    }

    async fn messages(&self, upstream: &str, limit: usize, cursor: Option<&str>) -> Result<Page, Trouble> {
        let mut path = format!("/api/v1/messages?account_id={}&limit={limit}", percent_encoded(upstream));
        if let Some(cursor) = cursor {
            path.push_str(&format!("&cursor={}", percent_encoded(cursor)));
        }
        let body = self.read(path).await?.ok_or(Trouble::LoggedOut)?;
        read::page(&body).ok_or_else(|| OutboundError::Unreadable("no list of messages".to_owned()).into())
    }

    /// Messages of this text that the account sent since.
    async fn sent_messages(&self, act: &Act<'_>) -> Result<Found, Trouble> {
        let page = self.messages(act.upstream, LOOKED_AT, None).await?;
        let since = act.since.minus(AROUND);
        let is_it = |message: &super::Heard| {
            let is_there = act.kind == Kind::Message || message.chat == act.target;
            message.is_own && is_there && message.at >= since && message.text.as_deref() == Some(act.text)
        };
        let mut found = Vec::new();
        for message in page.messages.iter().filter(|message| is_it(message)).take(CHATS) {
            // The owner may have sent the same words to somebody else.
            if act.kind == Kind::Reply || self.takes_part(&message.chat, act.target).await? {
                found.push(read::ids_of(message));
            }
        }
        Ok(perhaps(found))
    }

    /// Whether a member takes part in a chat.
    async fn takes_part(&self, chat: &str, member: &str) -> Result<bool, Trouble> {
        let path = format!("/api/v1/chats/{}/attendees", percent_encoded(chat));
        let Some(body) = self.read(path).await? else { return Ok(false) };
        let chat = read::chat(&Value::Null, Some(&body));
        Ok(chat.attendees.iter().any(|attendee| attendee.provider_id.as_deref() == Some(member)))
    }

    /// The latest invitations that an account has sent, and whether these are all.
    async fn sent_invitations(&self, act: &Act<'_>) -> Result<(Vec<Value>, bool), Trouble> {
        let path = format!("/api/v1/users/invite/sent?account_id={}&limit={LOOKED_AT}", percent_encoded(act.upstream));
        let body = self.read(path).await?.ok_or(Trouble::LoggedOut)?;
        let unreadable = || OutboundError::Unreadable("no list of invitations".to_owned());
        let items = body["items"].as_array().cloned().ok_or_else(unreadable)?;
        let is_whole = items.len() < LOOKED_AT && body["cursor"].is_null();
        Ok((items, is_whole))
    }
}

/// What is not found now may be found later.
fn perhaps(found: Vec<crate::action::Ids>) -> Found {
    if found.is_empty() { Found::CannotTell } else { Found::Perhaps(found) }
}

/// Content type and body of a form with these fields.
fn form(fields: &[(&str, &str)]) -> (&'static str, Vec<u8>) {
    // Fixed, so that the type can be static; its odds of standing in a text are those of a guessed secret.
    const BOUNDARY: &str = "----agora-9f2c6a1be47d4e0f8f3b5c7a1d2e4f60";
    let mut body = String::new();
    for (name, value) in fields {
        let value = value.replace(BOUNDARY, "");
        body.push_str(&format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"));
    }
    body.push_str(&format!("--{BOUNDARY}--\r\n"));
    ("multipart/form-data; boundary=----agora-9f2c6a1be47d4e0f8f3b5c7a1d2e4f60", body.into_bytes())
}

fn post_form(path: impl Into<String>, fields: &[(&str, &str)]) -> Ask {
    Ask { method: http::Method::POST, body: Some(form(fields)), ..Ask::get(path) }
}

fn post_json(path: impl Into<String>, body: &Value) -> Ask {
    Ask::post(path, body)
}

/// The request that does it.
fn asked(act: &Act<'_>) -> Ask {
    let account = percent_encoded(act.upstream);
    match act.kind {
        Kind::Reply => {
            let chat = percent_encoded(act.target);
            post_form(format!("/api/v1/chats/{chat}/messages"), &[("text", act.text), ("account_id", act.upstream)])
        }
        Kind::Message => post_form(
            "/api/v1/chats",
            &[("account_id", act.upstream), ("attendees_ids", act.target), ("text", act.text)],
        ),
        Kind::React => post_json(
            "/api/v1/posts/reaction",
            &json!({"account_id": act.upstream, "post_id": act.target, "reaction_type": act.text}),
        ),
        Kind::Invite => {
            let mut body = json!({"account_id": act.upstream, "provider_id": act.target});
            if !act.text.is_empty() {
                body["message"] = json!(act.text);
            }
            post_json("/api/v1/users/invite", &body)
        }
        Kind::WithdrawInvite => {
            let path = format!("/api/v1/users/invite/sent/{}?account_id={account}", percent_encoded(act.target));
            Ask { method: http::Method::DELETE, ..Ask::get(path) }
        }
        // A view is a read.
        Kind::ProfileView => Ask::get(format!("/api/v1/users/{}?account_id={account}", percent_encoded(act.target))),
    }
}

impl Provider for Unipile<'_> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn source(&self) -> Source {
        Source::upstream(NAME, None)
    }

    fn is_billed(&self) -> bool {
        true
    }

    fn pace(&self, kind: Kind) -> Duration {
        match kind {
            Kind::Reply | Kind::Message | Kind::React | Kind::ProfileView => Duration::from_secs(12),
            Kind::Invite | Kind::WithdrawInvite => Duration::from_secs(90),
        }
    }

    fn link<'a>(&'a self, login: &'a Login<'a>) -> Answer<'a, String> {
        Box::pin(async move {
            let mut body = json!({
                "type": if login.again.is_some() { "reconnect" } else { "create" },
                "api_url": self.outbound.origin(NAME).unwrap_or(ORIGIN),
                "expiresOn": login.expires_at.to_string(),
                "name": login.intent.to_string(),
                "notify_url": login.callback,
            });
            if login.again.is_none() {
                body["providers"] = json!(["LINKEDIN"]);
            }
            for (name, value) in [
                ("reconnect_account", login.again),
                ("success_redirect_url", login.success_url),
                ("failure_redirect_url", login.failure_url),
            ] {
                if let Some(value) = value {
                    body[name] = json!(value);
                }
            }
            // A second link does no harm: both lead to the same intent.
            let (status, answer) = self.ask(post_json("/api/v1/hosted/accounts/link", &body)).await?;
            let url = answer["url"].as_str().filter(|url| url.starts_with("https://") || url.starts_with("http://"));
            match url {
                Some(url) if status / 100 == 2 => Ok(url.to_owned()),
                _ if status == 404 => Err(Trouble::LoggedOut),
                _ if status / 100 != 2 => Err(OutboundError::Refused(status).into()),
                _ => Err(OutboundError::Unreadable("no link".to_owned()).into()),
            }
        })
    }

    fn member<'a>(&'a self, upstream: &'a str) -> Answer<'a, Option<Member>> {
        Box::pin(async move {
            let body = self.read(format!("/api/v1/accounts/{}", percent_encoded(upstream))).await?;
            Ok(body.as_ref().and_then(read::member))
        })
    }

    fn forget<'a>(&'a self, upstream: &'a str) -> Answer<'a, bool> {
        Box::pin(async move {
            let path = format!("/api/v1/accounts/{}", percent_encoded(upstream));
            // To delete twice does no harm.
            let (status, _) = self.ask(Ask { method: http::Method::DELETE, ..Ask::get(path) }).await?;
            Ok(status / 100 == 2 || status == 404)
        })
    }

    fn profile<'a>(&'a self, upstream: &'a str, identifier: &'a str, notify: bool) -> Answer<'a, Option<Profile>> {
        Box::pin(async move {
            let name = super::member_name(identifier);
            // These are steps of a path, and nobody's names.
            if ["", ".", ".."].contains(&name.as_str()) {
                return Ok(None);
            }
            let (account, identifier) = (percent_encoded(upstream), percent_encoded(&name));
            let body = self.read(format!("/api/v1/users/{identifier}?account_id={account}&notify={notify}")).await;
            match body {
                Ok(body) => Ok(body.as_ref().and_then(read::profile)),
                // An identifier that the network does not accept is nobody's.
                Err(Trouble::Asked(OutboundError::Refused(400 | 422))) => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    fn act<'a>(&'a self, act: &'a Act<'a>) -> BoxFuture<'a, Fate> {
        Box::pin(async move {
            match self.change(asked(act)).await {
                Ok(body) if body.is_object() => Fate::Done(read::done(&body)),
                Ok(_) => Fate::Unknown("the network's provider sent an unreadable answer".to_owned()),
                Err(fate) => fate,
            }
        })
    }

    fn look<'a>(&'a self, act: &'a Act<'a>) -> Answer<'a, Found> {
        Box::pin(async move {
            match act.kind {
                Kind::Reply | Kind::Message => self.sent_messages(act).await,
                Kind::Invite => {
                    let (all, _) = self.sent_invitations(act).await?;
                    let of = |item: &&Value| read::invited(item).any(|member| member == act.target);
                    let found: Vec<_> = all.iter().filter(of).map(read::invitation).collect();
                    // The list leaves accepted invitations out. Its member was no connection when it was sent, and is one now.
                    let is_accepted = found.is_empty()
                        && self
                            .profile(act.upstream, act.target, false)
                            .await?
                            .is_some_and(|member| member.is_connected());
                    Ok(perhaps(if is_accepted { vec![Default::default()] } else { found }))
                }
                Kind::WithdrawInvite => {
                    let (all, is_whole) = self.sent_invitations(act).await?;
                    let is_there = all.iter().any(|item| item["id"].as_str() == Some(act.target));
                    Ok(match is_there {
                        // To take back twice does no harm.
                        true => Found::NotDone,
                        false if is_whole => Found::Perhaps(vec![Default::default()]),
                        false => Found::CannotTell,
                    })
                }
                Kind::React | Kind::ProfileView => Ok(Found::CannotTell),
            }
        })
    }

    fn page<'a>(&'a self, upstream: &'a str, cursor: Option<&'a str>, limit: usize) -> Answer<'a, Page> {
        Box::pin(async move { self.messages(upstream, limit, cursor).await })
    }

    fn chat<'a>(&'a self, _upstream: &'a str, chat: &'a str) -> Answer<'a, Option<Chat>> {
        Box::pin(async move {
            let path = format!("/api/v1/chats/{}", percent_encoded(chat));
            let Some(body) = self.read(path.clone()).await? else { return Ok(None) };
            let attendees = self.read(format!("{path}/attendees")).await?;
            Ok(Some(read::chat(&body, attendees.as_ref())))
        })
    }

    fn request_history<'a>(&'a self, upstream: &'a str) -> Answer<'a, String> {
        Box::pin(async move {
            let path = format!("/api/v1/accounts/{}/sync", percent_encoded(upstream));
            let body = self.read(path).await?.ok_or(Trouble::LoggedOut)?;
            Ok(body["status"].as_str().unwrap_or("SYNC_STARTED").chars().take(64).collect())
        })
    }
}

/// A time of Unipile's. Rows are sorted by it, so one before 1970 or after 9999 is cut to that.
pub(crate) fn time(text: &Value) -> Option<Timestamp> {
    const LAST: i64 = 253_402_300_799_999;
    let time = chrono::DateTime::parse_from_rfc3339(text.as_str()?).ok()?;
    Some(Timestamp::from_millis(time.timestamp_millis().clamp(0, LAST)))
}

#[cfg(test)]
mod tests {
    use base::ids::RequestId;

    use super::*;

    #[test]
    fn requests_are_as_the_api_wants_them() {
        let act = |kind, target, text| Act {
            key: RequestId::from_bytes([1; 16]),
            kind,
            upstream: "acc/1",
            target,
            text,
            since: Timestamp::default(),
        };
        for (kind, method, path, has) in [
            (Kind::Reply, "POST", "/api/v1/chats/a%2Fb/messages", "name=\"text\"\r\n\r\nHello"),
            (Kind::Message, "POST", "/api/v1/chats", "name=\"attendees_ids\"\r\n\r\na/b"),
            (Kind::React, "POST", "/api/v1/posts/reaction", "\"post_id\":\"a/b\""),
            (Kind::Invite, "POST", "/api/v1/users/invite", "\"provider_id\":\"a/b\""),
            (Kind::WithdrawInvite, "DELETE", "/api/v1/users/invite/sent/a%2Fb?account_id=acc%2F1", ""),
        ] {
            let ask = asked(&act(kind, "a/b", "Hello"));
            let body = ask.body.map(|(_, body)| String::from_utf8(body).unwrap()).unwrap_or_default();
            assert_eq!((ask.method.as_str(), ask.path.as_str()), (method, path));
            assert!(body.contains(has), "{kind:?}: {body}");
        }
        let (content_type, body) = form(&[("a", "1\r\n----agora-9f2c6a1be47d4e0f8f3b5c7a1d2e4f60--")]);
        let boundary = content_type.split_once("boundary=").unwrap().1;
        assert_eq!(String::from_utf8(body).unwrap().matches(boundary).count(), 2);
    }
}
