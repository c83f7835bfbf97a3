//! Notifies the approver: a mail with the link.
//!
//! The mail contains none of the agent's own text. That is on the page behind the link. Only a seller's slugs are told, and a
//! token's name, if it is no more than a name.

use base::clock::Timestamp;
use ledger::account;
use platform::config::Config;
use platform::mail::{Letter, MailError, Mailer, PATIENCE};
use platform::store::{Db, StoreError};

use super::approval::{Approval, Asker, Source};
use super::store::{self, LinkToken};

/// The `notify_error` if no mail can be sent here.
const NOT_CONFIGURED: &str = "provider_not_configured";

/// Longest name of an access token in a mail, in characters.
const MAX_NAME: usize = 40;

/// Notifies approvers.
#[derive(Clone)]
pub struct Notices {
    mailer: Mailer,
    /// Origin of the links. Never taken from a request's host, which the agent could choose.
    base_url: Option<String>,
}

impl Notices {
    /// Mails are sent if `SMTP_URL` and `PUBLIC_BASE_URL` are set.
    pub fn new(config: &Config) -> Result<Notices, StoreError> {
        Ok(Notices { mailer: Mailer::new(config)?, base_url: config.base_url.clone() })
    }

    /// Development only: if no relay is configured, mails become files in this folder.
    #[cfg(feature = "local-outbox")]
    pub fn or_folder(mut self, folder: std::path::PathBuf) -> Notices {
        self.mailer = self.mailer.or_folder(folder);
        self
    }

    pub fn mailer(&self) -> &Mailer {
        &self.mailer
    }

    /// Notifies the approver of a new approval and stores the result. The held call waits for this. It never fails: without
    /// a notification the approval expires, which counts as denied.
    pub async fn send(&self, db: &Db, approval: &mut Approval, token: &LinkToken, now: Timestamp) {
        let sent = tokio::time::timeout(PATIENCE, self.deliver(db, approval, token, now)).await;
        let error = match sent.unwrap_or(Err(Failure::Mail(MailError::Silent))) {
            Ok(()) => None,
            Err(Failure::NoApprover) => Some("no_approver"),
            Err(Failure::Mail(MailError::NotConfigured)) => Some(NOT_CONFIGURED),
            Err(Failure::Mail(MailError::TooMany)) => Some("too_many_notices"),
            Err(Failure::Mail(error)) => {
                platform::http::log::failure("a mail to an approver could not be sent", &error);
                Some("delivery_failed")
            }
        };
        approval.notified = error.is_none();
        approval.notify_error = error.map(str::to_owned);
        if let Err(error) = store::note_notice(db, approval).await {
            platform::http::log::failure("could not record whether an approver was notified", &error);
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
        let account = account::load(db, approval.agent_id).await;
        let account = account.map_err(|error| Failure::Mail(MailError::NotNow(error.to_string())))?;
        let proven = account.is_proven().then_some(approval.agent_id);
        let letter = Letter { proven, ..self.letter(approval, to, &link) };
        self.mailer.send(db, &letter, now).await.map_err(Failure::Mail)
    }

    fn letter(&self, approval: &Approval, to: &str, link: &str) -> Letter {
        let service = self.mailer.service_name();
        let (subject, what) = match approval.source {
            // Our own words: the tool's title and name or a seller's slugs, and the price.
            Source::Policy => (
                format!("Your decision is needed: {}", approval.action_summary),
                format!("needs your decision. It wants to make this call: {}.", approval.action_summary),
            ),
            Source::Api => (
                "Your decision is needed".to_owned(),
                "needs your decision on something that it wants to do.".to_owned(),
            ),
        };
        let text = format!(
            "An agent on {service} {what}\n\n{who}Answer until: {until}\n\n\
             Read what it is about, and approve or deny it:\n\n{link}\n\n\
             The link is for one decision. If you do nothing, the answer is no.\n\
             Do not pass the link on: whoever has it decides. If you know of no such agent, ignore this mail.\n\n\
             Approval: {id}\n",
            who = who(approval),
            until = approval.told(approval.expires_at),
            id = approval.approval_id,
        );
        let id = approval.approval_id.to_string();
        Letter { to: to.to_owned(), subject, id, text, proven: None }
    }
}

/// The lines that say who asks.
fn who(approval: &Approval) -> String {
    let Some(asker) = &approval.asked_by else { return format!("Agent: {}\n", approval.agent_id) };
    let token = token_in_mail(asker).map(|token| format!("Access token: {token}\n"));
    format!("Wallet: {}\n{}", asker.wallet, token.unwrap_or_default())
}

/// The access token as a mail tells it: its name, or its id if the name could be more than a name. Whoever has the wallet
/// chose the name and may choose the mail's receiver too, so a name could be a message to a stranger.
fn token_in_mail(asker: &Asker) -> Option<String> {
    let id = asker.token_id?;
    let is_name = |name: &&String| {
        let fits = |letter: u8| letter.is_ascii_alphanumeric() || b" -_".contains(&letter);
        (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(fits)
    };
    Some(asker.token_name.as_ref().filter(is_name).cloned().unwrap_or_else(|| id.to_string()))
}

enum Failure {
    NoApprover,
    Mail(MailError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_tells_only_a_name_that_is_no_message() {
        let id = base::ids::TokenId::made_at(Timestamp::from_secs(1_795_000_000));
        let told = |name: Option<&str>| {
            let (wallet, token_name) = (evm::Address::ZERO, name.map(str::to_owned));
            token_in_mail(&Asker { wallet, token_id: Some(id), token_name })
        };
        assert_eq!(told(Some("laptop 2_b-c")).as_deref(), Some("laptop 2_b-c"));
        let long = "x".repeat(MAX_NAME + 1);
        for other in
            [None, Some(""), Some("pay at evil.example"), Some("a\r\nBcc: b"), Some("évil"), Some(long.as_str())]
        {
            assert_eq!(told(other), Some(id.to_string()), "{other:?}");
        }
        assert_eq!(token_in_mail(&Asker { wallet: evm::Address::ZERO, token_id: None, token_name: None }), None);
    }
}
