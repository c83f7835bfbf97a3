//! Telling the approver: a mail with the link.
//!
//! The mail says nothing in the agent's own words; those are on the page behind the link.

use base::clock::Timestamp;
use platform::config::Config;
use platform::mail::{Letter, MailError, Mailer, PATIENCE};
use platform::store::{Db, StoreError};

use super::approval::Approval;
use super::store::{self, LinkToken};

/// What an agent is told when nobody could be told.
const NOT_CONFIGURED: &str = "provider_not_configured";

/// How approvers are told.
#[derive(Clone)]
pub struct Notices {
    mailer: Mailer,
    /// Origin of the links. Never taken from a request's host: the agent could name its own.
    base_url: Option<String>,
}

impl Notices {
    /// As configured: with `SMTP_URL` and `PUBLIC_BASE_URL`, mails are sent.
    pub fn new(config: &Config) -> Result<Notices, StoreError> {
        Ok(Notices { mailer: Mailer::new(config)?, base_url: config.base_url.clone() })
    }

    /// Development only: if no relay is configured, mails become files of this folder.
    #[cfg(feature = "local-outbox")]
    pub fn or_folder(mut self, folder: std::path::PathBuf) -> Notices {
        self.mailer = self.mailer.or_folder(folder);
        self
    }

    pub fn mailer(&self) -> &Mailer {
        &self.mailer
    }

    /// Tells the approver of a new approval, and writes down whether it worked. It never fails its caller: an approval
    /// nobody was told of runs out, and that is a no. The call that is held waits for it.
    pub async fn send(&self, db: &Db, approval: &mut Approval, token: &LinkToken, now: Timestamp) {
        let sent = tokio::time::timeout(PATIENCE, self.deliver(db, approval, token, now)).await;
        let error = match sent.unwrap_or(Err(Failure::Mail(MailError::Silent))) {
            Ok(()) => None,
            Err(Failure::NoApprover) => Some("no_approver"),
            Err(Failure::Mail(MailError::NotConfigured)) => Some(NOT_CONFIGURED),
            Err(Failure::Mail(MailError::TooMany)) => Some("too_many_notices"),
            Err(Failure::Mail(error)) => {
                platform::http::log::failure("a mail to an approver was not taken", &error);
                Some("delivery_failed")
            }
        };
        approval.notified = error.is_none();
        approval.notify_error = error.map(str::to_owned);
        if let Err(error) = store::note_notice(db, approval).await {
            platform::http::log::failure("could not write down that an approver was told", &error);
        }
    }

    async fn deliver(&self, db: &Db, approval: &Approval, token: &LinkToken, now: Timestamp) -> Result<(), Failure> {
        let approver = &approval.approver;
        let Some(to) = &approver.email else {
            return Err(match approver.phone {
                Some(_) => Failure::Mail(MailError::NotConfigured),
                None => Failure::NoApprover,
            });
        };
        let Some(base_url) = &self.base_url else { return Err(Failure::Mail(MailError::NotConfigured)) };
        let link = format!("{base_url}/approve/{}", token.expose());
        let letter = self.letter(approval, to, &link);
        self.mailer.send(db, &letter, now).await.map_err(Failure::Mail)
    }

    fn letter(&self, approval: &Approval, to: &str, link: &str) -> Letter {
        let service = self.mailer.service_name();
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
        let id = approval.approval_id.to_string();
        Letter { to: to.to_owned(), subject: "Your decision is needed", id, text }
    }
}

enum Failure {
    NoApprover,
    Mail(MailError),
}
