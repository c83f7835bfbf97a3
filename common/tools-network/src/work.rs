//! One paid action, from its claim to its end ([`crate::action`] has its states).

use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use base::money::Usdc;
use platform::http::log;
use platform::store::{Db, Key, StoreError, Write, WriteError, db, jobs};
use serde::Deserialize;
use serde_json::{Value, json};
use tools::run::{self, Stop};
use tools::{Output, Running, Source, Task, Toolbox};
use uuid::Uuid;

use crate::account::{self, Account, Status};
use crate::action::{self, AMBIGUOUS_FOR, Action, Event, Ids, Kind, State, TRIED_FOR};
use crate::claiming::id;
use crate::inbox::{self, By};
use crate::invitations::{self, Invitation};
use crate::limits;
use crate::providers::{self, Act, Fate, Found, Heard, Provider, failed};

/// Pause before the provider is asked again that certainly did nothing.
const NOT_NOW: Duration = Duration::from_secs(30);
/// Moves of one run. There are fewer in any that ends.
const MOST_MOVES: usize = 8;

/// The runner of every action.
pub fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let worked = run::within_limit(work(toolbox.clone(), task)).await;
        worked.unwrap_or_else(|(pause, cause)| {
            log::failure("an action at the network could not go on", &cause);
            Ok(Output::again(pause, toolbox.clock.now().plus(TRIED_FOR), source(&toolbox)))
        })
    })
}

fn source(toolbox: &Toolbox) -> Source {
    providers::of(toolbox).map_or(Source::embedded("network"), |provider| provider.source())
}

/// How far a move came.
enum Moved {
    To(Box<Action>),
    /// This run ends here.
    Wait(Box<Output>),
}

impl Moved {
    fn to(action: Action) -> Moved {
        Moved::To(Box::new(action))
    }
}

async fn work(toolbox: Arc<Toolbox>, task: Task) -> Result<Output, Stop> {
    let Some(mut action) = action::load(&toolbox.db, task.request_id).await? else {
        // The call's money arrived before its claim, and there was no place for it then.
        return Err(failed("account_send_limit", "there was no place for it when it was paid").into());
    };
    let work = Work { toolbox: &toolbox, task: &task };
    for _ in 0..MOST_MOVES {
        let moved = match action.state {
            State::Queued => work.queued(&action).await?,
            State::Sending => work.interrupted(&action).await?,
            State::Ambiguous => work.ambiguous(&action).await?,
            State::Sent | State::Failed | State::Ended => return work.end(&action).await,
        };
        match moved {
            Moved::To(next) => action = *next,
            Moved::Wait(output) => return Ok(*output),
        }
    }
    Ok(work.again(run::STORE_PAUSE))
}

struct Work<'a> {
    toolbox: &'a Toolbox,
    task: &'a Task,
}

/// What the provider is to be asked about, or how the action ends without it.
enum Target {
    Is(String),
    /// Refused for good.
    Refused(&'static str, String),
    /// There is nothing to do: the result's status.
    Nothing(&'static str),
    NotNow,
}

impl Work<'_> {
    fn db(&self) -> &Db {
        &self.toolbox.db
    }

    fn now(&self) -> Timestamp {
        self.toolbox.clock.now()
    }

    fn again(&self, pause: Duration) -> Output {
        Output::again(pause, self.now().plus(TRIED_FOR), source(self.toolbox))
    }

    /// The latest state of an action that another process has changed.
    async fn latest(&self, action: &Action) -> Result<Moved, Stop> {
        let latest = action::load(self.db(), action.request).await?;
        Ok(Moved::to(latest.ok_or_else(|| StoreError::new("an action vanished"))?))
    }

    /// Writes the action's next state, with what belongs to it.
    async fn put(&self, action: &Action, next: Action, more: Vec<Write>) -> Result<Moved, Stop> {
        let mut writes = vec![action.change(self.db(), &next)?];
        writes.extend(more);
        match self.db().apply(writes).await {
            Ok(()) => Ok(Moved::to(next)),
            Err(WriteError::Refused(_)) => self.latest(action).await,
            Err(WriteError::Failed(error)) => Err(error.into()),
        }
    }

    async fn queued(&self, action: &Action) -> Result<Moved, Stop> {
        if self.task.is_over {
            return self.fail(action, "provider_unavailable", "the job was given up before anything was sent").await;
        }
        if self.now() >= action.created.plus(TRIED_FOR) {
            return self.fail(action, "provider_unavailable", "it could not be sent in its time").await;
        }
        let account = account::load(self.db(), action.agent, action.account).await?;
        let account = match account.as_ref().map(|account| (account, why_not(account, action))) {
            Some((account, None)) => account,
            Some((_, Some((reason, why)))) => return self.fail(action, reason, why).await,
            None => return self.fail(action, "grant_revoked", "the account is gone").await,
        };
        let provider = providers::of(self.toolbox).filter(|provider| provider.name() == account.provider);
        let Some(provider) = provider else {
            return self.fail(action, "provider_unavailable", "the network's provider is not in use here now").await;
        };
        if let Some(pause) = self.turn(action, provider.pace(action.kind)).await? {
            return Ok(Moved::Wait(Box::new(self.again(pause))));
        }
        let target = match self.target(action, account, &*provider).await? {
            Target::Is(target) => target,
            Target::Refused(reason, why) => return self.fail(action, reason, &why).await,
            Target::Nothing(status) => return self.nothing(action, status).await,
            Target::NotNow => return Ok(Moved::Wait(Box::new(self.again(NOT_NOW)))),
        };
        let Some(mut sending) = action.after(Event::Begun, self.now()) else { return self.latest(action).await };
        sending.target = Some(target);
        match self.put(action, sending, Vec::new()).await? {
            Moved::To(sending) if sending.state == State::Sending => self.send(&sending, account, &*provider).await,
            other => Ok(other),
        }
    }

    /// Asks the provider, once.
    async fn send(&self, action: &Action, account: &Account, provider: &dyn Provider) -> Result<Moved, Stop> {
        if action.kind == Kind::ProfileView {
            return self.view(action, account, provider).await;
        }
        match provider.act(&self.act(action, &account.upstream)).await {
            Fate::Done(ids) => match self.sent(action, &ids).await? {
                Some(moved) => Ok(moved),
                None => self.latest(action).await,
            },
            Fate::Refused("account_disconnected", why) => {
                self.log_out(account).await?;
                self.refused(action, "account_disconnected", &why).await
            }
            Fate::Refused(reason, why) => self.refused(action, reason, &why).await,
            Fate::NotNow(why) => {
                log::failure("the network's provider did nothing now", &why);
                self.step(action, Event::NotDone).await?;
                Ok(Moved::Wait(Box::new(self.again(NOT_NOW))))
            }
            Fate::Unknown(why) => {
                log::failure("whether the network has an action is not known", &why);
                self.step(action, Event::Unknown).await
            }
        }
    }

    /// A view is a read: it may be repeated, and it has no unknown end.
    async fn view(&self, action: &Action, account: &Account, provider: &dyn Provider) -> Result<Moved, Stop> {
        let notify = self.task.input.get("notify").and_then(Value::as_bool).unwrap_or_default();
        let seen = match provider.profile(&account.upstream, self.task.text("identifier"), notify).await {
            Ok(Some(profile)) => profile,
            Ok(None) => return self.refused(action, "not_connected", "the network has no such member").await,
            Err(error) => {
                let error = error.failure();
                let reason = error.reason.as_deref().unwrap_or("provider_unavailable");
                return self.refused(action, reason, &error.message).await;
            }
        };
        let seen = json!({
            "provider_id": seen.provider_id,
            "public_identifier": seen.public_identifier,
            "name": seen.name,
            "headline": seen.headline,
            "location": seen.location,
            "network_distance": seen.network_distance,
            "is_open_profile": seen.is_open_profile,
        });
        let Some(mut next) = action.after(Event::Done, self.now()) else { return self.latest(action).await };
        next.outcome = Some(seen.to_string());
        self.put(action, next, self.settled(action, true)?).await
    }

    /// The network has logged the account out: its owner has to connect it again.
    async fn log_out(&self, account: &Account) -> Result<(), Stop> {
        if let Some(next) = account.told(account::Word::Credentials, self.now()) {
            self.db().write_if(account.change(self.db(), &next)?).await?;
        }
        Ok(())
    }

    /// An earlier run died while it asked.
    async fn interrupted(&self, action: &Action) -> Result<Moved, Stop> {
        let event = if action.kind == Kind::ProfileView { Event::NotDone } else { Event::Unknown };
        self.step(action, event).await
    }

    async fn step(&self, action: &Action, event: Event) -> Result<Moved, Stop> {
        match action.after(event, self.now()) {
            Some(next) => self.put(action, next, Vec::new()).await,
            None => self.latest(action).await,
        }
    }

    /// Looks for an action whose fate is unknown.
    async fn ambiguous(&self, action: &Action) -> Result<Moved, Stop> {
        let is_late = self.now() >= action.since.plus(AMBIGUOUS_FOR);
        if !self.task.is_over {
            match self.look(action).await {
                Ok(Found::Perhaps(all)) => {
                    for ids in &all {
                        if let Some(moved) = self.sent(action, ids).await? {
                            return Ok(moved);
                        }
                    }
                }
                Ok(Found::NotDone) => return self.step(action, Event::NotDone).await,
                Ok(Found::CannotTell) => {}
                Err(error) => log::failure("an action could not be looked for", &error.detail()),
            }
        }
        if self.task.is_over || is_late {
            let Some(next) = action.after(Event::GivenUp, self.now()) else { return self.latest(action).await };
            let mut more = self.settled(action, true)?;
            more.extend(self.invitation(action, invitations::Status::Pending, None).await?);
            return self.put(action, next, more).await;
        }
        Ok(Moved::Wait(Box::new(Output::waiting(action.since.plus(AMBIGUOUS_FOR), source(self.toolbox)))))
    }

    async fn look(&self, action: &Action) -> Result<Found, providers::Trouble> {
        let account = account::load(self.db(), action.agent, action.account).await?;
        let Some(account) = account else { return Ok(Found::CannotTell) };
        match providers::of(self.toolbox).filter(|provider| provider.name() == account.provider) {
            Some(provider) => provider.look(&self.act(action, &account.upstream)).await,
            None => Ok(Found::CannotTell),
        }
    }

    fn act<'a>(&'a self, action: &'a Action, upstream: &'a str) -> Act<'a> {
        let text = match action.kind {
            Kind::Reply | Kind::Message => self.task.text("text"),
            Kind::React => match self.task.text("reaction_type") {
                "" => "like",
                reaction => reaction,
            },
            Kind::Invite => self.task.text("note"),
            Kind::WithdrawInvite | Kind::ProfileView => "",
        };
        Act {
            key: action.request,
            kind: action.kind,
            upstream,
            target: action.target.as_deref().unwrap_or_default(),
            text,
            since: action.created,
        }
    }

    /// The writes by which the action's place is used, or free again.
    fn settled(&self, action: &Action, is_sent: bool) -> Result<Vec<Write>, StoreError> {
        match action.kind.limit() {
            Some(limit) => limits::settle(self.db(), (action.account, action.tier), limit, action.created, is_sent),
            None => Ok(Vec::new()),
        }
    }

    /// The writes that say what became of the action's invitation.
    async fn invitation(
        &self,
        action: &Action,
        status: invitations::Status,
        provider_id: Option<&str>,
    ) -> Result<Vec<Write>, Stop> {
        let Some(id) = action.invitation else { return Ok(Vec::new()) };
        let found: Option<Invitation> = invitations::load(self.db(), action.account, id).await?;
        let Some(found) = found.filter(|found| found.status.is_open() && found.status != status) else {
            return Ok(Vec::new());
        };
        Ok(found.moved(self.db(), action.account, status, provider_id, self.now())?)
    }

    /// The network has it. `None`: what was found is another action's.
    async fn sent(&self, action: &Action, ids: &Ids) -> Result<Option<Moved>, Stop> {
        let Some(mut next) = action.after(Event::Done, self.now()) else { return self.latest(action).await.map(Some) };
        next.ids = ids.clone();
        let mut writes = vec![action.change(self.db(), &next)?];
        writes.extend(self.settled(action, true)?);
        if let Some(message) = &ids.message {
            writes.push(action.own(self.db(), message)?);
        }
        let invitation = match action.kind {
            Kind::Invite => self.invitation(action, invitations::Status::Sent, ids.invitation.as_deref()).await?,
            Kind::WithdrawInvite => self.invitation(action, invitations::Status::Withdrawn, None).await?,
            _ => Vec::new(),
        };
        writes.extend(invitation);
        match self.db().apply(writes).await {
            Ok(()) => Ok(Some(Moved::to(next))),
            Err(refused @ WriteError::Refused(_)) => match refused.refused(0) {
                Some(_) => self.latest(action).await.map(Some),
                None => Ok(None),
            },
            Err(WriteError::Failed(error)) => Err(error.into()),
        }
    }

    /// The network refuses it for good. An invitation that it does not take back is not pending there.
    async fn refused(&self, action: &Action, reason: &str, why: &str) -> Result<Moved, Stop> {
        match action.kind {
            Kind::WithdrawInvite if reason != "account_disconnected" => self.nothing(action, "not_pending").await,
            _ => self.fail(action, reason, why).await,
        }
    }

    async fn fail(&self, action: &Action, reason: &str, why: &str) -> Result<Moved, Stop> {
        self.fail_as(action, (reason, why), invitations::Status::Failed).await
    }

    async fn fail_as(
        &self,
        action: &Action,
        (reason, why): (&str, &str),
        invitation: invitations::Status,
    ) -> Result<Moved, Stop> {
        let Some(mut next) = action.after(Event::Refused, self.now()) else { return self.latest(action).await };
        (next.reason, next.message) = (Some(reason.to_owned()), Some(why.to_owned()));
        let mut more = self.settled(action, false)?;
        if action.kind == Kind::Invite {
            more.extend(self.invitation(action, invitation, None).await?);
        }
        self.put(action, next, more).await
    }

    /// There was nothing to do, or nothing of it reached the network.
    async fn nothing(&self, action: &Action, status: &str) -> Result<Moved, Stop> {
        let Some(mut next) = action.after(Event::Refused, self.now()) else { return self.latest(action).await };
        next.outcome = Some(status.to_owned());
        let mut more = self.settled(action, false)?;
        if action.kind == Kind::Invite {
            more.extend(self.invitation(action, invitations::Status::Accepted, None).await?);
        }
        self.put(action, next, more).await
    }

    /// Takes the account's turn. Otherwise the pause until there is one.
    async fn turn(&self, action: &Action, pace: Duration) -> Result<Option<Duration>, Stop> {
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

    async fn target(&self, action: &Action, account: &Account, provider: &dyn Provider) -> Result<Target, Stop> {
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
    async fn member(&self, kind: Kind, account: &Account, provider: &dyn Provider) -> Result<Target, Stop> {
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
    async fn invited(&self, action: &Action) -> Result<Target, Stop> {
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

    /// The result. What was sent is kept here too.
    async fn end(&self, action: &Action) -> Result<Output, Stop> {
        let source = source(self.toolbox);
        let mut result = json!({"action_request_id": action.request});
        if let Some(invitation) = action.invitation {
            result["invitation_id"] = json!(invitation);
        }
        match (action.state, &action.outcome) {
            (State::Failed, None) => {
                let reason = action.reason.as_deref().unwrap_or("provider_unavailable");
                Err(failed(reason, action.message.clone().unwrap_or_default()).into())
            }
            // A stopped invitation is what was paid for; for the others nothing was done.
            (State::Failed, Some(status)) => {
                result["status"] = json!(status);
                let output = Output::new(result, source);
                let is_done = status == "cancelled_before_send";
                Ok(if is_done { output } else { output.charging(Usdc::ZERO) })
            }
            (State::Sent, outcome) => {
                result["status"] = json!(if action.kind == Kind::WithdrawInvite { "withdrawn" } else { "sent" });
                if let Some(profile) = outcome {
                    result["profile"] = serde_json::from_str(profile).unwrap_or_default();
                }
                self.describe(action, &mut result).await?;
                Ok(Output::new(result, source))
            }
            _ => {
                result["status"] = json!("ambiguous");
                Ok(Output::new(result, source))
            }
        }
    }

    /// Adds what was sent to a result, and stores a message among those of the account.
    async fn describe(&self, action: &Action, result: &mut Value) -> Result<(), Stop> {
        let ids = &action.ids;
        let at = ids.at.unwrap_or(action.since);
        match action.kind {
            Kind::Reply | Kind::Message => {
                result["sent_at"] = json!(at.to_string());
                let Some(message) = &ids.message else { return Ok(()) };
                result["provider_message_id"] = json!(message);
                let chat = ids.chat.clone().or_else(|| action.target.clone().filter(|_| action.kind == Kind::Reply));
                let Some(chat) = chat else { return Ok(()) };
                let text = Some(self.task.text("text").to_owned()).filter(|text| !text.is_empty());
                let heard =
                    Heard { id: message.clone(), chat, is_own: true, text, at, is_seen: true, ..Heard::default() };
                inbox::take(self.db(), action.account, &heard, By::Send, self.now()).await?;
                result["message_id"] = json!(inbox::message_id(action.account, message));
                result["conversation_id"] = json!(inbox::conversation_id(action.account, &heard.chat));
            }
            Kind::React => result["sent_at"] = json!(at.to_string()),
            Kind::Invite => {
                result["provider_invitation_id"] = json!(ids.invitation);
                result["tracked"] = json!(ids.invitation.is_some());
            }
            Kind::ProfileView | Kind::WithdrawInvite => {}
        }
        Ok(())
    }
}

/// Why an action may not be done with its account any more.
fn why_not(account: &Account, action: &Action) -> Option<(&'static str, &'static str)> {
    match account.status {
        Status::Revoked => Some(("grant_revoked", "the account was given up before it was sent")),
        _ if !account.grant.has(action.kind.needs()) => {
            Some(("grant_revoked", "the account's owner does not allow this any more"))
        }
        Status::Connected => None,
        Status::ReconnectRequired | Status::Error | Status::DeletedUpstream => {
            Some(("account_disconnected", "the account is not connected"))
        }
    }
}

#[cfg(test)]
mod tests {
    use base::ids::RequestId;

    use super::*;
    use crate::account::{Grant, Tier};

    #[test]
    fn the_grant_counts_when_it_is_sent() {
        let account = |status, actions: &[&str]| Account {
            status,
            grant: Grant::of(actions.iter().copied()),
            ..crate::testing::account()
        };
        let owner = (account(Status::Connected, &[]).agent, Uuid::nil());
        let invite =
            Action::new(RequestId::from_bytes([2; 16]), owner, Kind::Invite, (1, Tier::Free), Timestamp::default());
        for (status, actions, reason) in [
            (Status::Connected, &["read", "invite"][..], None),
            (Status::Connected, &["read"], Some("grant_revoked")),
            (Status::Revoked, &["invite"], Some("grant_revoked")),
            (Status::ReconnectRequired, &["invite"], Some("account_disconnected")),
            (Status::Error, &["invite"], Some("account_disconnected")),
            (Status::DeletedUpstream, &["invite"], Some("account_disconnected")),
        ] {
            let why = why_not(&account(status, actions), &invite).map(|(reason, _)| reason);
            assert_eq!(why, reason, "{status:?} {actions:?}");
        }
    }
}
