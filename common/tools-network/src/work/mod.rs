//! One paid action, from its claim to its end ([`crate::action`] has its states).

mod ending;
mod target;

use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use ledger::freeze::SERVICE_PAYEE;
use ledger::returned;
use platform::http::log;
use platform::store::{Db, StoreError, Write, WriteError};
use serde_json::{Value, json};
use tools::run::{self, Stop};
use tools::{Output, Running, Source, Task, Toolbox};

use crate::account::{self, Account, Status};
use crate::action::{self, AMBIGUOUS_FOR, Action, Event, Kind, State, TRIED_FOR};
use crate::providers::{self, Act, Fate, Found, Provider, failed};
use crate::{invitations, notices};
use target::{Invited, Target};

/// Pauses before the provider is asked again that certainly did nothing: the first one, and the longest.
const NOT_NOW: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(3600);
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

impl Work<'_> {
    pub(super) fn db(&self) -> &Db {
        &self.toolbox.db
    }

    pub(super) fn now(&self) -> Timestamp {
        self.toolbox.clock.now()
    }

    pub(super) fn again(&self, pause: Duration) -> Output {
        Output::again(pause, self.now().plus(TRIED_FOR), source(self.toolbox))
    }

    /// The latest state of an action that another process has changed.
    pub(super) async fn latest(&self, action: &Action) -> Result<Moved, Stop> {
        let latest = action::load(self.db(), action.request).await?;
        Ok(Moved::to(latest.ok_or_else(|| StoreError::new("an action vanished"))?))
    }

    /// Writes the action's next state, with what belongs to it.
    pub(super) async fn put(&self, action: &Action, next: Action, more: Vec<Write>) -> Result<Moved, Stop> {
        let mut writes = action.change(self.db(), &next)?;
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
        let frozen = ledger::account::glance(self.db(), action.agent).await?.frozen;
        if let Some(what) = frozen.stops(self.task.token, self.task.tool.name, SERVICE_PAYEE) {
            let why = format!("the owner froze this {what} before it was sent");
            return self.fail(action, "frozen_by_owner", &why).await;
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
        // An invitation that is still queued is stopped at once.
        if action.kind == Kind::WithdrawInvite
            && let Invited::Nothing(status) = self.invited(action).await?
        {
            return self.nothing(action, status).await;
        }
        match action.turn {
            None if provider.pace(action.kind).is_zero() => {}
            None => return self.take_turn(action, &*provider).await,
            Some(turn) if turn > self.now() => {
                self.task.reporter.say(10, format!("waits for its turn at {turn}"));
                return Ok(Moved::Wait(Box::new(self.again(self.until(turn)))));
            }
            Some(_) => {}
        }
        let target = match self.target(action, account, &*provider).await? {
            Target::Is(target) => target,
            Target::Refused(reason, why) => return self.fail(action, reason, &why).await,
            Target::Nothing(status) => return self.nothing(action, status).await,
            Target::NotNow => {
                self.put(action, action.tried(), Vec::new()).await?;
                return Ok(Moved::Wait(Box::new(self.again(pause(action.tries)))));
            }
        };
        let Some(mut sending) = action.after(Event::Begun, self.now()) else { return self.latest(action).await };
        let mut more = Vec::new();
        if action.kind == Kind::Invite {
            // However its owner writes it, a member gets one invitation.
            let id = action.invitation.unwrap_or_default();
            match invitations::meets(self.db(), action.account, id, &target).await? {
                Some(writes) => more = writes,
                None => return self.nothing(action, "pending").await,
            }
        }
        sending.target = Some(target);
        match self.put(action, sending, more).await? {
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
                Ok(Moved::Wait(Box::new(self.again(pause(action.tries)))))
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
                if matches!(error, providers::Trouble::LoggedOut) {
                    self.log_out(account).await?;
                }
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
    pub(super) async fn log_out(&self, account: &Account) -> Result<(), Stop> {
        Ok(notices::logged_out(self.db(), account, self.now()).await?)
    }

    /// An earlier run died while it asked.
    async fn interrupted(&self, action: &Action) -> Result<Moved, Stop> {
        let event = if action.kind == Kind::ProfileView { Event::NotDone } else { Event::Unknown };
        self.step(action, event).await
    }

    async fn step(&self, action: &Action, event: Event) -> Result<Moved, Stop> {
        let Some(mut next) = action.after(event, self.now()) else { return self.latest(action).await };
        let mut more = Vec::new();
        if next.state == State::Ambiguous {
            // For the operator: what to look for, and what to give back.
            next.paid = returned::paid(self.db(), action.request).await?;
            more.push(next.doubt(self.db())?);
        }
        self.put(action, next, more).await
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
                Ok(Found::NotDone) if action.tries == 0 => return self.step(action, Event::NotDone).await,
                Ok(Found::NotDone) => {
                    self.step(action, Event::NotDone).await?;
                    return Ok(Moved::Wait(Box::new(self.again(pause(action.tries)))));
                }
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
        let until = action.since.plus(AMBIGUOUS_FOR);
        self.task.reporter.say(50, format!("ambiguous: the network may have it; it is looked for until {until}"));
        Ok(Moved::Wait(Box::new(Output::waiting(until, source(self.toolbox)))))
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
}

/// The pause after a number of tries: each is four times as long as the one before.
fn pause(tries: u32) -> Duration {
    NOT_NOW.saturating_mul(4_u32.saturating_pow(tries)).min(LONGEST)
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
    use crate::account::Grant;

    #[test]
    fn pauses_grow_up_to_an_hour() {
        assert_eq!([0, 1, 2, 3, 4, 99].map(|tries| pause(tries).as_secs()), [30, 120, 480, 1_920, 3_600, 3_600]);
    }

    #[test]
    fn the_grant_counts_when_it_is_sent() {
        let account = |status, actions: &[&str]| Account {
            status,
            grant: Grant::of(actions.iter().copied()),
            ..crate::testing::account()
        };
        let connected = account(Status::Connected, &[]);
        let invite = Action::new(RequestId::from_bytes([2; 16]), &connected, Kind::Invite, Timestamp::default());
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
