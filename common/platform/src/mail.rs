//! Mails to people, through an SMTP relay (in development: files in a folder).
//!
//! No mail contains an agent's own words, so that nobody can send arbitrary text through this service. There is a daily
//! limit of mails to one address, for all agents together.

use std::fmt;
use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256;
use base::ids::AgentId;
use lettre::address::Envelope;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};

use crate::config::Config;
use crate::http::{limit, log};
use crate::store::{Db, StoreError, daily};

/// A relay must accept a mail within this time.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum number of mails to one address in a UTC day, for all agents together.
pub const MAX_MAILS_A_DAY: u32 = 100;
/// Maximum number of mails in a day caused by requests from one source address, to any recipients. It exists because one
/// agent can have any number of wallets.
pub const MAX_OF_SOURCE_A_DAY: u32 = 500;
/// Maximum number of mails of the whole deployment in a day.
pub const MAX_IN_ALL_A_DAY: u32 = 10_000;
/// The part of these that is kept for agents with money behind them, so that strangers cannot silence everybody's mails.
pub const RESERVED_A_DAY: u32 = 2_000;
/// Maximum number of mails of one agent in a day from the reserved part.
pub const MAX_RESERVED_OF_AGENT_A_DAY: u32 = 20;

/// Sends mails.
#[derive(Clone)]
pub struct Mailer {
    service_name: String,
    from: String,
    way: Way,
}

#[derive(Clone)]
enum Way {
    Nowhere,
    Relay(Box<AsyncSmtpTransport<Tokio1Executor>>),
    #[cfg(feature = "local-outbox")]
    Folder(std::path::PathBuf),
}

/// A mail. Its text is ASCII, either ours or checked before.
#[derive(Clone, Debug)]
pub struct Letter {
    /// Must pass [`base::contact::is_email`].
    pub to: String,
    /// One line of ASCII, ours like the text.
    pub subject: String,
    /// Becomes the `Message-ID`; the same for a repeated mail, so that receivers recognise it.
    pub id: String,
    pub text: String,
    /// The agent that caused it, if there is money behind it.
    pub proven: Option<AgentId>,
}

/// Why a mail was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailError {
    /// No relay is configured.
    NotConfigured,
    /// The address, the source or the deployment has reached its daily limit.
    TooMany,
    /// The relay refused the mail for good.
    Refused(String),
    /// A temporary failure; nothing was sent.
    NotNow(String),
    /// The relay did not answer in time; it may have accepted the mail.
    Silent,
}

impl fmt::Display for MailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MailError::NotConfigured => f.write_str("no mail relay is configured (SMTP_URL)"),
            MailError::TooMany => f.write_str("the daily limit of mails is reached"),
            MailError::Refused(cause) | MailError::NotNow(cause) => f.write_str(cause),
            MailError::Silent => f.write_str("the mail relay did not answer in time"),
        }
    }
}

impl Mailer {
    /// Sends mails if `SMTP_URL` and `MAIL_FROM` are set.
    pub fn new(config: &Config) -> Result<Mailer, StoreError> {
        let way = match (&config.mail.smtp_url, &config.mail.from) {
            (Some(url), Some(_)) => {
                // The library's error may repeat the URL, which holds a password.
                let relay = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.expose());
                let relay = relay.map_err(|_| StoreError::new("SMTP_URL is not a valid address of a relay"))?;
                Way::Relay(Box::new(relay.timeout(Some(PATIENCE)).build()))
            }
            _ => Way::Nowhere,
        };
        let (service_name, from) = (config.service_name.clone(), config.mail.from.clone().unwrap_or_default());
        Ok(Mailer { service_name, from, way })
    }

    /// Development only: without a relay, mails become files in this folder.
    #[cfg(feature = "local-outbox")]
    pub fn or_folder(mut self, folder: std::path::PathBuf) -> Mailer {
        if matches!(self.way, Way::Nowhere) {
            self.from = "approvals@localhost.localdomain".to_owned();
            self.way = Way::Folder(folder);
        }
        self
    }

    pub fn is_configured(&self) -> bool {
        !matches!(self.way, Way::Nowhere)
    }

    pub fn service_name(&self) -> &str {
        &self.service_name
    }

    /// Sends a letter, within the daily limits.
    pub async fn send(&self, db: &Db, letter: &Letter, now: Timestamp) -> Result<(), MailError> {
        if !self.is_configured() {
            return Err(MailError::NotConfigured);
        }
        let counted = async {
            Ok::<bool, StoreError>(
                may_ask(db, now).await?
                    && may_mail(db, &letter.to, now).await?
                    && may_send(db, letter.proven, now).await?,
            )
        };
        if !counted.await.map_err(|error| MailError::NotNow(error.to_string()))? {
            return Err(MailError::TooMany);
        }
        let mail = self.written(letter, now);
        match &self.way {
            Way::Nowhere => Err(MailError::NotConfigured),
            Way::Relay(relay) => {
                let address =
                    |text: &str| text.parse().map_err(|_| MailError::Refused("not a valid mail address".to_owned()));
                let envelope = Envelope::new(Some(address(&self.from)?), vec![address(&letter.to)?]);
                let envelope = envelope.map_err(|error| MailError::Refused(error.to_string()))?;
                match tokio::time::timeout(PATIENCE, relay.send_raw(&envelope, mail.as_bytes())).await {
                    Ok(Ok(_)) => Ok(()),
                    Ok(Err(error)) if error.is_permanent() => Err(MailError::Refused(error.to_string())),
                    Ok(Err(error)) if !error.is_timeout() => Err(MailError::NotNow(error.to_string())),
                    Ok(Err(_)) | Err(_) => Err(MailError::Silent),
                }
            }
            #[cfg(feature = "local-outbox")]
            Way::Folder(folder) => {
                let path = folder.join(format!("{}.eml", letter.id));
                let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, mail));
                written.map_err(|error| MailError::NotNow(error.to_string()))?;
                // Log the file's name only: links in mails are secret.
                let file = serde_json::json!({"file": path.display().to_string()});
                log::event("there is mail", file);
                Ok(())
            }
        }
    }

    /// The whole message, headers included.
    fn written(&self, letter: &Letter, now: Timestamp) -> String {
        debug_assert!(base::contact::is_email(&letter.to));
        let date = chrono::DateTime::from_timestamp_millis(now.millis()).unwrap_or_default().to_rfc2822();
        let domain = self.from.rsplit_once('@').map_or("localhost", |(_, domain)| domain);
        format!(
            "From: {service} <{from}>\r\nTo: <{to}>\r\nSubject: {subject}\r\nDate: {date}\r\n\
             Message-ID: <{id}@{domain}>\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n{text}",
            service = self.service_name,
            from = self.from,
            to = letter.to,
            subject = letter.subject,
            id = letter.id,
            text = letter.text.replace('\n', "\r\n"),
        )
    }
}

/// Counts a mail to an address. False if the address has reached its daily limit: agents choose the address, and new
/// wallets are free.
pub async fn may_mail(db: &Db, address: &str, now: Timestamp) -> Result<bool, StoreError> {
    let address = const_hex::encode(sha256(address.to_ascii_lowercase().as_bytes()));
    count(db, &address, MAX_MAILS_A_DAY, now).await
}

/// Counts a mail against the source address of the current request, if there is one.
async fn may_ask(db: &Db, now: Timestamp) -> Result<bool, StoreError> {
    match limit::source() {
        None => Ok(true),
        source => count(db, &limit::name_of(source), MAX_OF_SOURCE_A_DAY, now).await,
    }
}

/// Counts a mail of the deployment: out of the part that is open to all, then out of the reserved one.
async fn may_send(db: &Db, proven: Option<AgentId>, now: Timestamp) -> Result<bool, StoreError> {
    let mut may = count(db, "all", MAX_IN_ALL_A_DAY - RESERVED_A_DAY, now).await?;
    if let (false, Some(agent)) = (may, proven) {
        may = count(db, &format!("agent:{agent}"), MAX_RESERVED_OF_AGENT_A_DAY, now).await?
            && count(db, "reserved", RESERVED_A_DAY, now).await?;
    }
    if !may {
        log::failure(
            "the deployment's daily mail limit is reached",
            &format_args!("{MAX_IN_ALL_A_DAY} a day, {RESERVED_A_DAY} of them only for agents with money"),
        );
    }
    Ok(may)
}

async fn count(db: &Db, of: &str, most: u32, now: Timestamp) -> Result<bool, StoreError> {
    daily::take(db, format!("MAILS#{of}"), most, now).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relay uses the TLS library the binary already has.
    #[test]
    fn relays_with_either_kind_of_tls_are_accepted() {
        for url in ["smtps://user:p%40ss@mail.example.com:465", "smtp://user:pass@mail.example.com:587?tls=required"] {
            let variables = [
                ("PAY_TO", "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"),
                ("SMTP_URL", url),
                ("MAIL_FROM", "agora@example.org"),
            ];
            let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
            let config = Config::read(|name| find(name).map(|(_, value)| (*value).to_owned())).unwrap();
            assert!(matches!(Mailer::new(&config), Ok(Mailer { way: Way::Relay(_), .. })), "{url}");
        }
    }
}
