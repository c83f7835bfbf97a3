//! A mail relay (`SMTP_URL`).
//!
//! For a sender on an operator's domain, the envelope sender names the mail (VERP): bounces then come back to this
//! deployment and are matched to their recipient, whatever the other side writes into them. See [`crate::receive`].

use std::time::Duration;

use base::ids::RequestId;
use lettre::address::Envelope;
use lettre::transport::smtp::response::Response;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use platform::config::Capability;
use platform::http::log;
use platform::providers::{Amount, Charge};
use tokio::time::Instant;
use tools::Toolbox;

use super::{Handed, Outgoing, clean_reason};
use crate::address::Address;
use crate::domain;

pub const NAME: &str = "smtp";
pub const CHARGE: Charge = Charge {
    provider: NAME,
    capability: Capability::Email,
    tools: &["email"],
    amount: Amount::Unknown("your own relay"),
};

/// Timeout for one step of the conversation.
const STEP: Duration = Duration::from_secs(15);
/// Beginning of the local part of envelope senders.
const BOUNCES: &str = "bounces+";

/// Sends one mail.
pub async fn hand_over(toolbox: &Toolbox, mail: Outgoing<'_>, deadline: Instant) -> Handed {
    let not_now = |reason: &str| Handed::NotNow { reason: reason.to_owned() };
    let Some(url) = &toolbox.config.mail.smtp_url else { return not_now("no mail relay is configured here") };
    // The library's error may repeat the URL, which holds a password.
    let Ok(relay) = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.expose()) else {
        return not_now("the mail relay is not configured correctly");
    };
    let relay: AsyncSmtpTransport<Tokio1Executor> = relay.timeout(Some(STEP)).build();
    let sender = if domain::is_operators(&toolbox.config, mail.from.domain()) {
        envelope_sender(mail.request_id, mail.index, mail.from.domain())
    } else {
        mail.from.as_str().to_owned()
    };
    let refused = || Handed::Refused { reason: "not a valid mail address".to_owned() };
    let (sender, to) = (sender.parse::<lettre::Address>(), mail.to.as_str().parse::<lettre::Address>());
    let (Ok(sender), Ok(to)) = (sender, to) else { return refused() };
    let Ok(envelope) = Envelope::new(Some(sender), vec![to]) else { return refused() };
    match tokio::time::timeout_at(deadline, relay.send_raw(&envelope, mail.raw)).await {
        Ok(Ok(response)) => Handed::Accepted { provider: NAME, provider_message_id: Some(queue_id(&response)) },
        Ok(Err(error)) => {
            let status = error.status().map(u16::from);
            let handed = failed(status, &error.to_string(), error.is_client() || error.is_tls());
            if matches!(handed, Handed::NotNow { .. } | Handed::Unknown { .. }) {
                // Without the relay's reply, which may repeat the address.
                let cause = status.map_or_else(|| "no reply".to_owned(), |code| format!("reply {code}"));
                log::failure("the mail relay did not accept a mail", &cause);
            }
            handed
        }
        Err(_) => Handed::Unknown { reason: "the mail relay did not answer in time".to_owned() },
    }
}

/// What the relay says about an accepted mail, usually with its queue id.
fn queue_id(response: &Response) -> String {
    let line = response.message().next().unwrap_or_default();
    let id = clean_reason(line);
    if id.is_empty() { "accepted".to_owned() } else { id }
}

/// The outcome of an error. `status` is the relay's reply code, if it replied; `is_early` says that the error happened
/// before any command that hands over the mail.
///
/// A reply with a code is definite at every step, after DATA too: the relay is not responsible for the mail. If the
/// connection could not be opened, nothing was sent. Any other broken or silent connection may have broken after DATA,
/// because the library does not say where.
fn failed(status: Option<u16>, text: &str, is_early: bool) -> Handed {
    let reason = clean_reason(text);
    match status {
        // The relay refused us, not the mail: authentication and its like (RFC 4954 §6), and closing (421).
        Some(421 | 454 | 530..=535 | 538) => {
            Handed::NotNow { reason: "the mail relay refused this deployment".to_owned() }
        }
        Some(500..=599) => Handed::Refused { reason },
        Some(_) => Handed::NotNow { reason },
        // "Connection error" is how the library begins the text if it could not connect; it has no question for it.
        None if is_early || text.starts_with("Connection error") => {
            Handed::NotNow { reason: "the mail relay could not be reached".to_owned() }
        }
        None => Handed::Unknown { reason: "the connection to the mail relay broke".to_owned() },
    }
}

/// `bounces+<request id in hex>.<index>@<domain>`
pub(crate) fn envelope_sender(request_id: RequestId, index: u32, domain: &str) -> String {
    format!("{BOUNCES}{}.{index}@{domain}", const_hex::encode(request_id.bytes()))
}

/// The mail that an envelope sender made by this module names.
pub(crate) fn of_envelope_sender(address: &Address) -> Option<(RequestId, u32)> {
    let local = address.local().to_ascii_lowercase();
    let (id, index) = local.strip_prefix(BOUNCES)?.split_once('.')?;
    let bytes: [u8; 16] = const_hex::decode(id).ok()?.try_into().ok()?;
    Some((RequestId::from_bytes(bytes), index.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounce_address_names_its_mail() {
        let id = RequestId::bought_with("quote", &[b"q"]);
        let text = envelope_sender(id, 499, "mail.example.com");
        assert!(text.split('@').next().unwrap().len() <= 64, "RFC 5321 §4.5.3.1.1");
        let address = Address::parse(&text).unwrap();
        assert_eq!(of_envelope_sender(&address), Some((id, 499)));
        for other in ["bounces@mail.example.com", "bounces+x.1@mail.example.com", "bounces+00.1@mail.example.com"] {
            assert_eq!(of_envelope_sender(&Address::parse(other).unwrap()), None, "{other}");
        }
    }

    #[test]
    fn only_a_reply_or_a_failed_connection_is_certain() {
        let outcome = |status, text: &str, is_early| match failed(status, text, is_early) {
            Handed::Accepted { .. } => "accepted",
            Handed::Refused { .. } => "refused",
            Handed::Suppressed { .. } => "suppressed",
            Handed::NoSender { .. } => "no sender",
            Handed::NotNow { .. } => "not now",
            Handed::Unknown { .. } => "unknown",
        };
        for (status, text, is_early, expected) in [
            (Some(550), "permanent error (550): no such user", false, "refused"),
            (Some(451), "transient error (451): greylisted", false, "not now"),
            (Some(535), "permanent error (535): bad password", false, "not now"),
            (None, "Connection error: connection refused", false, "not now"),
            (None, "internal client error: no AUTH", true, "not now"),
            (None, "network error: timed out", false, "unknown"),
            (None, "response error: incomplete response", false, "unknown"),
        ] {
            assert_eq!(outcome(status, text, is_early), expected, "{text}");
        }
    }
}
