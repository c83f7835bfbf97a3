//! Telling the approver: a mail with the link, through an SMTP relay; in development, a file.
//!
//! The mail says nothing in the agent's own words, so that nobody can have this service send texts of their choosing;
//! those are on the page behind the link.

use std::time::Duration;

use lettre::address::Envelope;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};

use super::approval::Approval;
use super::store::{self, LinkToken};
use crate::clock::Timestamp;
use crate::config::Config;
use crate::store::{Db, StoreError};

/// A relay has this long to take a mail; the call that is held waits for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// What an agent is told when nobody could be told.
const NOT_CONFIGURED: &str = "provider_not_configured";

/// How approvers are told.
#[derive(Clone)]
pub struct Notices {
    service_name: String,
    /// Origin of the links. Never taken from a request's host: the agent could name its own.
    base_url: Option<String>,
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

impl Notices {
    /// As configured: with `SMTP_URL` and `PUBLIC_BASE_URL`, mails are sent.
    pub fn new(config: &Config) -> Result<Notices, StoreError> {
        let way = match (&config.mail.smtp_url, &config.mail.from) {
            (Some(url), Some(_)) => {
                // The library's error may repeat the URL, which holds a password.
                let relay = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.expose());
                let relay = relay.map_err(|_| StoreError::new("SMTP_URL is no address of a relay"))?;
                Way::Relay(Box::new(relay.timeout(Some(PATIENCE)).build()))
            }
            _ => Way::Nowhere,
        };
        Ok(Notices {
            service_name: config.service_name.clone(),
            base_url: config.base_url.clone(),
            from: config.mail.from.clone().unwrap_or_default(),
            way,
        })
    }

    /// Development only: if no relay is configured, mails become files of this folder.
    #[cfg(feature = "local-outbox")]
    pub fn or_folder(mut self, folder: std::path::PathBuf) -> Notices {
        if matches!(self.way, Way::Nowhere) {
            self.from = "approvals@localhost.localdomain".to_owned();
            self.way = Way::Folder(folder);
        }
        self
    }

    /// Tells the approver of a new approval, and writes down whether it worked. It never fails its caller: an approval
    /// nobody was told of runs out, and that is a no.
    pub async fn send(&self, db: &Db, approval: &mut Approval, token: &LinkToken, now: Timestamp) {
        let sent = tokio::time::timeout(PATIENCE, self.deliver(db, approval, token, now)).await;
        let error = match sent {
            Ok(Ok(())) => None,
            Ok(Err(Failure::NotConfigured)) => Some(NOT_CONFIGURED),
            Ok(Err(Failure::TooMany)) => Some("too_many_notices"),
            Ok(Err(Failure::NoApprover)) => Some("no_approver"),
            Ok(Err(Failure::Refused(cause))) => {
                crate::http::log::failure("a mail to an approver was not taken", &cause);
                Some("delivery_failed")
            }
            Err(_) => {
                crate::http::log::failure("a mail to an approver was not taken", &"the relay took too long");
                Some("delivery_failed")
            }
        };
        approval.notified = error.is_none();
        approval.notify_error = error.map(str::to_owned);
        if let Err(error) = store::note_notice(db, approval).await {
            crate::http::log::failure("could not write down that an approver was told", &error);
        }
    }

    async fn deliver(&self, db: &Db, approval: &Approval, token: &LinkToken, now: Timestamp) -> Result<(), Failure> {
        let approver = &approval.approver;
        let Some(to) = &approver.email else {
            return Err(if approver.phone.is_some() { Failure::NotConfigured } else { Failure::NoApprover });
        };
        let Some(base_url) = &self.base_url else { return Err(Failure::NotConfigured) };
        let link = format!("{base_url}/approve/{}", token.expose());
        if matches!(self.way, Way::Nowhere) {
            return Err(Failure::NotConfigured);
        }
        if !store::may_mail(db, to, now).await.map_err(|error| Failure::Refused(error.to_string()))? {
            return Err(Failure::TooMany);
        }
        match &self.way {
            Way::Nowhere => Err(Failure::NotConfigured),
            Way::Relay(relay) => {
                let address = |text: &str| text.parse().map_err(|_| Failure::Refused("no address".to_owned()));
                let envelope = Envelope::new(Some(address(&self.from)?), vec![address(to)?]);
                let envelope = envelope.map_err(|error| Failure::Refused(error.to_string()))?;
                let mail = self.mail(approval, to, &link, now);
                let sent = relay.send_raw(&envelope, mail.as_bytes()).await;
                sent.map(drop).map_err(|error| Failure::Refused(error.to_string()))
            }
            #[cfg(feature = "local-outbox")]
            Way::Folder(folder) => {
                let mail = self.mail(approval, to, &link, now);
                let path = folder.join(format!("{}.eml", approval.approval_id));
                let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, mail));
                written.map_err(|error| Failure::Refused(error.to_string()))?;
                // The file and not the link: links are in no log.
                let file = serde_json::json!({"file": path.display().to_string()});
                crate::http::log::event("an approver has mail", file);
                Ok(())
            }
        }
    }

    /// The whole message: ASCII that is ours, or was checked before.
    fn mail(&self, approval: &Approval, to: &str, link: &str, now: Timestamp) -> String {
        debug_assert!(crate::contact::is_email(to));
        let service = &self.service_name;
        let date = chrono::DateTime::from_timestamp_millis(now.millis()).unwrap_or_default().to_rfc2822();
        let what = match (&approval.tool, approval.amount) {
            (Some(tool), Some(amount)) => format!("It wants to call {tool} for {amount} USDC."),
            _ => "It asks for your decision on something it wants to do.".to_owned(),
        };
        let text = format!(
            "An agent on {service} needs your decision.\n\n{what}\n\nRead what it is about, and approve or deny it:\n\n\
             {link}\n\nThe link is good until {until}, for one decision. If you do nothing, the answer is no.\n\
             Do not pass the link on: whoever has it decides. If you know of no such agent, ignore this mail.\n\n\
             Agent: {agent}\nApproval: {id}\n",
            until = approval.expires_at,
            agent = approval.agent_id,
            id = approval.approval_id,
        );
        let domain = self.from.rsplit_once('@').map_or("localhost", |(_, domain)| domain);
        format!(
            "From: {service} <{from}>\r\nTo: <{to}>\r\nSubject: Your decision is needed\r\nDate: {date}\r\n\
             Message-ID: <{id}@{domain}>\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n{text}",
            from = self.from,
            id = approval.approval_id,
            text = text.replace('\n', "\r\n"),
        )
    }
}

enum Failure {
    NotConfigured,
    NoApprover,
    /// The address got its most for this day.
    TooMany,
    Refused(String),
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
            assert!(matches!(Notices::new(&config), Ok(Notices { way: Way::Relay(_), .. })), "{url}");
        }
    }
}
