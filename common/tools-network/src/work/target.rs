//! What an action is about at the provider, and when it may be sent.

use std::time::Duration;

use base::clock::Timestamp;
use platform::http::log;
use platform::store::{Key, Write, WriteError, db, jobs};
use serde::Deserialize;
use tools::run::Stop;
use uuid::Uuid;

use super::Work;
use crate::account::Account;
use crate::action::{self, Action, Kind, State};
use crate::claiming::id;
use crate::providers::{self, Provider};
use crate::{inbox, invitations};

/// What the provider is to be asked about, or how the action ends without it.
pub(super) enum Target {
    Is(String),
    /// Refused for good.
    Refused(&'static str, String),
    /// There is nothing to do: the result's status.
    Nothing(&'static str),
    NotNow,
}

impl Work<'_> {
    /// Takes the account's turn. Otherwise the pause until there is one.
    pub(super) async fn turn(&self, action: &Action, pace: Duration) -> Result<Option<Duration>, Stop> {
        #[derive(Deserialize)]
        struct Turn {
            next: Timestamp,
        }
        if pace.is_zero() {
            return Ok(None);
        }
        let now = self.now();
        let key = Key::new(format!("NETTURN#{}", action.account), "TURN");
        let take = Write::update(&self.db().tables.messages, key, "SET #next = :next, #expires = :expires")
            .only_if("attribute_not_exists(#next) OR #next <= :now")
            .bind("next", now.plus(pace))?
            .bind("expires", now.plus(pace).secs() + 24 * 3600)?
            .bind("now", now)?;
        match self.db().write(take).await {
            Ok(_) => Ok(None),
            Err(refused @ WriteError::Refused(_)) => {
                let old = refused.refused(0).and_then(|refused| refused.old.clone());
                let next = old.and_then(|old| db::parse::<Turn>(old).ok()).map_or(now.plus(pace), |turn| turn.next);
                let left = u64::try_from(next.millis() - now.millis()).unwrap_or_default();
                Ok(Some(Duration::from_millis(left).max(Duration::from_secs(1))))
            }
            Err(WriteError::Failed(error)) => Err(error.into()),
        }
    }

    pub(super) async fn target(
        &self,
        action: &Action,
        account: &Account,
        provider: &dyn Provider,
    ) -> Result<Target, Stop> {
        match action.kind {
            Kind::Reply => {
                let found = inbox::conversation(self.db(), account.id, id(&self.task.input, "conversation_id")).await?;
                Ok(match found {
                    Some(found) => Target::Is(found.provider_chat_id),
                    None => Target::Refused("not_connected", "the conversation is gone".to_owned()),
                })
            }
            Kind::React => Ok(Target::Is(self.task.text("post_id").to_owned())),
            Kind::ProfileView => Ok(Target::Is(self.task.text("identifier").to_owned())),
            Kind::Message | Kind::Invite => self.member(action.kind, account, provider).await,
            Kind::WithdrawInvite => self.invited(action).await,
        }
    }

    /// The member that a message or an invitation is for.
    pub(super) async fn member(&self, kind: Kind, account: &Account, provider: &dyn Provider) -> Result<Target, Stop> {
        let profile = match provider.profile(&account.upstream, self.task.text("profile"), false).await {
            Ok(profile) => profile,
            Err(providers::Trouble::Stored(error)) => return Err(error.into()),
            Err(providers::Trouble::LoggedOut) => {
                self.log_out(account).await?;
                let why = "the account is not logged in at the network".to_owned();
                return Ok(Target::Refused("account_disconnected", why));
            }
            Err(error) => {
                log::failure("a member could not be looked up", &error.detail());
                return Ok(Target::NotNow);
            }
        };
        Ok(match (kind, profile) {
            (_, None) => Target::Refused("not_connected", "the network has no such member".to_owned()),
            (Kind::Message, Some(profile)) if !profile.is_connected() => {
                let why = "the member is not a connection of this account".to_owned();
                Target::Refused("recipient_not_connected", why)
            }
            (Kind::Invite, Some(profile)) if profile.is_connected() => Target::Nothing("already_connected"),
            (_, Some(profile)) => Target::Is(profile.provider_id),
        })
    }

    /// The provider's id of the invitation that is taken back. One that is not sent yet is stopped instead.
    pub(super) async fn invited(&self, action: &Action) -> Result<Target, Stop> {
        let id: Uuid = action.invitation.unwrap_or_default();
        let Some(invitation) = invitations::load(self.db(), action.account, id).await? else {
            return Ok(Target::Nothing("not_pending"));
        };
        match invitation.status {
            invitations::Status::Withdrawn => Ok(Target::Nothing("already_withdrawn")),
            invitations::Status::Accepted | invitations::Status::Failed => Ok(Target::Nothing("not_pending")),
            invitations::Status::Sent | invitations::Status::Pending => {
                Ok(invitation.provider_id.map_or(Target::Nothing("not_pending"), Target::Is))
            }
            invitations::Status::Queued => {
                let Some(invite) = action::load(self.db(), invitation.request).await? else {
                    return Ok(Target::Nothing("not_pending"));
                };
                if invite.state != State::Queued {
                    return Ok(Target::NotNow);
                }
                let why = ("withdrawn", "it was withdrawn before it was sent");
                self.fail_as(&invite, why, invitations::Status::Withdrawn).await?;
                if let Some(queue) = &self.toolbox.job_queue {
                    jobs::wake(self.db(), &**queue, invite.request).await;
                }
                let latest = action::load(self.db(), invite.request).await?;
                let is_stopped = latest.is_some_and(|latest| latest.state == State::Failed);
                Ok(if is_stopped { Target::Nothing("cancelled_before_send") } else { Target::NotNow })
            }
        }
    }
}
