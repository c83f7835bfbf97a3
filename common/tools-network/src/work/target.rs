//! What an action is about at the provider, and when it may be sent.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::RequestId;
use platform::http::log;
use platform::store::{Key, Write, jobs};
use serde::{Deserialize, Serialize};
use tools::run::Stop;
use uuid::Uuid;

use super::{Moved, Work};
use crate::account::Account;
use crate::action::{self, Action, Kind, State};
use crate::claiming::id;
use crate::inbox;
use crate::invitations::{self, Invitation};
use crate::providers::{self, Act, Found, Provider};

/// The next free turns of an account.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Turns {
    next: Timestamp,
    /// Of actions with longer pauses.
    slow: Timestamp,
    /// Counts the writes.
    revision: u32,
    expires: i64,
}

impl Turns {
    /// The next turn, and the turns after it. `pause` passes between any two actions, `own_pause` between two of this kind.
    fn take(&self, now: Timestamp, pause: Duration, own_pause: Duration) -> (Timestamp, Turns) {
        let free = now.max(self.next);
        let is_slow = own_pause > pause;
        let turn = if is_slow { free.max(self.slow) } else { free };
        let next = Turns {
            // Others may go on before a slow action whose turn is far away.
            next: if turn > free { self.next } else { turn.plus(pause) },
            slow: if is_slow { turn.plus(own_pause) } else { self.slow },
            revision: self.revision + 1,
            expires: turn.plus(own_pause).secs() + 24 * 3600,
        };
        (turn, next)
    }
}

/// The pause, or up to half as much again: the network takes even intervals for a machine's.
fn spread(pause: Duration, request: RequestId) -> Duration {
    let part = u32::from(request.bytes()[15]);
    pause + pause * part / 512
}

/// What the provider is to be asked about, or how the action ends without it.
pub(super) enum Target {
    Is(String),
    /// Refused for good.
    Refused(&'static str, String),
    /// There is nothing to do: the result's status.
    Nothing(&'static str),
    NotNow,
}

/// What is known of the invitation that is taken back.
pub(super) enum Invited {
    /// It was sent, or may have been.
    Is(Box<Invitation>),
    /// There is nothing to do: the result's status.
    Nothing(&'static str),
    NotNow,
}

impl Work<'_> {
    /// Gives the action the next turn of its account: turns are in the order in which they are taken. Invitations have longer pauses
    /// between them, in which other actions go on.
    pub(super) async fn take_turn(&self, action: &Action, provider: &dyn Provider) -> Result<Moved, Stop> {
        let (db, now) = (self.db(), self.now());
        let spread = |pause: Duration| spread(pause, action.request);
        let (pause, own_pause) = (spread(provider.pace(Kind::Message)), spread(provider.pace(action.kind)));
        let key = Key::new(format!("NETTURN#{}", action.account), "TURN");
        let before: Option<Turns> = db.get_latest(&db.tables.messages, key.clone()).await?;
        let turns = before.clone().unwrap_or_default();
        let (turn, next) = turns.take(now, pause, own_pause);
        let put = Write::put(&db.tables.messages, key, &next)?;
        let put = match before {
            None => put.only_if_new(),
            Some(before) => put.only_if("#revision = :before").bind("before", before.revision)?,
        };
        self.put(action, action.with_turn(turn), vec![put]).await
    }

    /// The pause until then.
    pub(super) fn until(&self, then: Timestamp) -> Duration {
        let left = u64::try_from(then.millis() - self.now().millis()).unwrap_or_default();
        Duration::from_millis(left).max(Duration::from_secs(1))
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
            Kind::WithdrawInvite => match self.invited(action).await? {
                Invited::Nothing(status) => Ok(Target::Nothing(status)),
                Invited::NotNow => Ok(Target::NotNow),
                Invited::Is(invitation) => match invitation.provider_id {
                    Some(id) => Ok(Target::Is(id)),
                    None => self.nameless(invitation.request, account, provider).await,
                },
            },
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

    /// The invitation that is taken back. One that is not sent yet is stopped instead.
    pub(super) async fn invited(&self, action: &Action) -> Result<Invited, Stop> {
        let id: Uuid = action.invitation.unwrap_or_default();
        let Some(invitation) = invitations::load(self.db(), action.account, id).await? else {
            return Ok(Invited::Nothing("not_pending"));
        };
        match invitation.status {
            invitations::Status::Withdrawn => self.stopped(action, invitation.request).await,
            invitations::Status::Accepted | invitations::Status::Failed => Ok(Invited::Nothing("not_pending")),
            invitations::Status::Sent | invitations::Status::Pending => Ok(Invited::Is(Box::new(invitation))),
            invitations::Status::Queued => {
                let Some(invite) = action::load(self.db(), invitation.request).await? else {
                    return Ok(Invited::Nothing("not_pending"));
                };
                if invite.state != State::Queued {
                    return Ok(Invited::NotNow);
                }
                self.stop(&invite, action.request).await?;
                if let Some(queue) = &self.toolbox.job_queue {
                    jobs::wake(self.db(), &**queue, invite.request).await;
                }
                self.stopped(action, invite.request).await
            }
        }
    }

    /// The result of withdrawing an invitation that was stopped: only the withdrawal that stopped it may say so.
    async fn stopped(&self, action: &Action, invite: RequestId) -> Result<Invited, Stop> {
        let invite = action::load(self.db(), invite).await?;
        Ok(match invite.map(|invite| (invite.state, invite.stopped_by)) {
            Some((State::Failed, Some(by))) if by == action.request => Invited::Nothing("cancelled_before_send"),
            Some((State::Failed, Some(_))) | Some((State::Sent | State::Ended, _)) | None => {
                Invited::Nothing("already_withdrawn")
            }
            Some((State::Failed, None)) => Invited::Nothing("not_pending"),
            Some((State::Queued | State::Sending | State::Ambiguous, _)) => Invited::NotNow,
        })
    }

    /// An invitation whose id the provider has not told: it is looked for among those that the account has sent.
    async fn nameless(&self, invite: RequestId, account: &Account, provider: &dyn Provider) -> Result<Target, Stop> {
        let Some(invite) = action::load(self.db(), invite).await? else { return Ok(Target::Nothing("not_pending")) };
        let act = Act {
            key: invite.request,
            kind: Kind::Invite,
            upstream: &account.upstream,
            target: invite.target.as_deref().unwrap_or_default(),
            text: "",
            since: invite.created,
        };
        match provider.look(&act).await {
            // Without an id, its member has accepted it.
            Ok(Found::Perhaps(all)) => {
                Ok(all.into_iter().find_map(|ids| ids.invitation).map_or(Target::Nothing("not_pending"), Target::Is))
            }
            Ok(Found::NotDone) => Ok(Target::Nothing("not_pending")),
            Ok(Found::CannotTell) => {
                let why = "the network does not say which invitation it is".to_owned();
                Ok(Target::Refused("provider_unavailable", why))
            }
            Err(providers::Trouble::Stored(error)) => Err(error.into()),
            Err(error) => {
                log::failure("an invitation could not be looked for", &error.detail());
                Ok(Target::NotNow)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_in_order_and_invitations_hold_up_nothing() {
        let (pause, slow) = (Duration::from_secs(12), Duration::from_secs(90));
        let (mut turns, mut at) = (Turns::default(), Vec::new());
        for own in [pause, pause, slow, slow, pause, slow, pause] {
            let (turn, next) = turns.take(Timestamp::from_secs(1_000), pause, own);
            at.push(turn.secs() - 1_000);
            turns = next;
        }
        assert_eq!(at, [0, 12, 24, 114, 36, 204, 48]);
        assert_eq!(turns.take(Timestamp::from_secs(5_000), pause, pause).0.secs(), 5_000);
        let spread = |byte| super::spread(Duration::from_secs(512), RequestId::from_bytes([byte; 16])).as_secs();
        assert_eq!([0, 128, 255].map(spread), [512, 640, 767]);
    }
}
