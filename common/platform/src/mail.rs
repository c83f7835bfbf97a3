//! Mails to people, through an SMTP relay; in development, files.
//!
//! No mail has an agent's own words, so that nobody can have this service send texts of their choosing, and an address
//! gets only so many a day, whoever asks.

use std::fmt;
use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256;
use lettre::address::Envelope;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};

use crate::config::Config;
use crate::http::{limit, log};
use crate::store::{Db, StoreError, daily};

/// A relay has this long to take a mail.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// Most mails to one address a day (UTC), whoever asks.
pub const MAX_MAILS_A_DAY: u32 = 100;
/// Most mails a day that requests from one source address cause, to whomever. Wallets and addresses cost nothing.
pub const MAX_OF_SOURCE_A_DAY: u32 = 500;
/// Most mails of the deployment a day.
pub const MAX_IN_ALL_A_DAY: u32 = 10_000;

/// How mails leave.
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

/// What is sent. All of it is ASCII that is ours, or was checked before.
#[derive(Clone, Debug)]
pub struct Letter {
    /// A [`base::contact::is_email`].
    pub to: String,
    pub subject: &'static str,
    /// The same for what is sent again, so that receivers can tell.
    pub id: String,
    pub text: String,
}

/// Why a mail was not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MailError {
    /// There is no relay.
    NotConfigured,
    /// The address, whoever asks, or the deployment got its most for this day.
    TooMany,
    /// The relay will not take it, also later.
    Refused(String),
    /// Not now: nothing was sent.
    NotNow(String),
    /// The relay fell silent; it may have it.
    Silent,
}

impl fmt::Display for MailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MailError::NotConfigured => f.write_str("there is no mail relay"),
            MailError::TooMany => f.write_str("there were too many mails this day"),
            MailError::Refused(cause) | MailError::NotNow(cause) => f.write_str(cause),
            MailError::Silent => f.write_str("the relay took too long"),
        }
    }
}

impl Mailer {
    /// As configured: with `SMTP_URL` and `MAIL_FROM`, mails are sent.
    pub fn new(config: &Config) -> Result<Mailer, StoreError> {
        let way = match (&config.mail.smtp_url, &config.mail.from) {
            (Some(url), Some(_)) => {
                // The library's error may repeat the URL, which holds a password.
                let relay = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.expose());
                let relay = relay.map_err(|_| StoreError::new("SMTP_URL is no address of a relay"))?;
                Way::Relay(Box::new(relay.timeout(Some(PATIENCE)).build()))
            }
            _ => Way::Nowhere,
        };
        let (service_name, from) = (config.service_name.clone(), config.mail.from.clone().unwrap_or_default());
        Ok(Mailer { service_name, from, way })
    }

    /// Development only: if no relay is configured, mails become files of this folder.
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

    /// Sends a letter, if its address may still get one today.
    pub async fn send(&self, db: &Db, letter: &Letter, now: Timestamp) -> Result<(), MailError> {
        if !self.is_configured() {
            return Err(MailError::NotConfigured);
        }
        let counted = async {
            Ok::<bool, StoreError>(
                may_ask(db, now).await? && may_mail(db, &letter.to, now).await? && may_send(db, now).await?,
            )
        };
        if !counted.await.map_err(|error| MailError::NotNow(error.to_string()))? {
            return Err(MailError::TooMany);
        }
        let mail = self.written(letter, now);
        match &self.way {
            Way::Nowhere => Err(MailError::NotConfigured),
            Way::Relay(relay) => {
                let address = |text: &str| text.parse().map_err(|_| MailError::Refused("no address".to_owned()));
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
                // The file and not what is in it: links are in no log.
                let file = serde_json::json!({"file": path.display().to_string()});
                log::event("there is mail", file);
                Ok(())
            }
        }
    }

    /// The whole message.
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

/// Counts a mail to an address. False if the address got its most for this day: agents choose whom to ask, and wallets
/// are free.
pub async fn may_mail(db: &Db, address: &str, now: Timestamp) -> Result<bool, StoreError> {
    let address = const_hex::encode(sha256(address.to_ascii_lowercase().as_bytes()));
    count(db, &address, MAX_MAILS_A_DAY, now).await
}

/// Counts a mail of the address the request being worked on came from, if one is.
async fn may_ask(db: &Db, now: Timestamp) -> Result<bool, StoreError> {
    match limit::source() {
        None => Ok(true),
        source => count(db, &limit::name_of(source), MAX_OF_SOURCE_A_DAY, now).await,
    }
}

/// Counts a mail of the deployment.
pub async fn may_send(db: &Db, now: Timestamp) -> Result<bool, StoreError> {
    let may = count(db, "all", MAX_IN_ALL_A_DAY, now).await?;
    if !may {
        log::failure("no mail leaves any more today", &format_args!("{MAX_IN_ALL_A_DAY} did"));
    }
    Ok(may)
}

async fn count(db: &Db, of: &str, most: u32, now: Timestamp) -> Result<bool, StoreError> {
    daily::take(db, format!("MAILS#{of}"), most, now).await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The TLS of a relay is the one that is there already.
    #[test]
    fn relays_with_both_kinds_of_tls_are_understood() {
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
