//! What an account does at the network, once: the record of each paid action.
//!
//! ```text
//!            ┌────────────── certainly not sent ───────────────┐
//!            ▼                                                 │
//!         queued ──► sending ──► sent                          │
//!            │          │  └───► failed (refused for good)     │
//!            │          └──────► ambiguous ──► sent            │
//!            └──► failed              │  └──────────────────────┘
//!                                     ├──► failed (the operator says that it was not sent)
//!                                     └──► ended (after 24 h)
//! ```
//!
//! `sending` is written before the provider is asked. A run that finds it knows that an earlier one died in between: the action is
//! `ambiguous` from then on. What is ambiguous is looked for and never sent again, unless the provider can say that it has not
//! been done. After 24 hours it ends, charged, as `ambiguous`: it may well have been sent. The operator may look at the network and
//! say what became of it, also after its end ([`crate::settle`]).
//!
//! | item (table messages) | key |
//! |---|---|
//! | an action | `NETACTION#<request>` / `ACTION` |
//! | that an account has it, until it is over | `NETACTIONS#<account>` / `<time>#<request>` |
//! | whose a sent message is | `NETSENT#<account>` / `<provider's id>` |
//! | that its fate was unknown once | `NETAMBIGUOUS#<0..3>` / `<time>#<request>` |

use std::collections::HashSet;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use ledger::returned::Paid;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, due};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::account::{Account, Allowed, Tier};
use crate::limits::{self, Limit};

/// How long an action may be ambiguous.
pub const AMBIGUOUS_FOR: Duration = Duration::from_secs(24 * 3600);
/// An action that could not be sent for so long fails.
pub const TRIED_FOR: Duration = Duration::from_secs(12 * 3600);
/// How long an action is kept after it was bought.
pub const KEPT: Duration = Duration::from_secs(90 * 24 * 3600);
/// Most open actions of an account that are looked at: more than its limits allow in two days.
const MOST_OPEN: usize = 1_000;
/// Partitions of the list of actions whose fate was unknown.
const SHARDS: u8 = 4;
/// Most of a partition that are read at once.
const MOST_UNKNOWN: usize = 2_500;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Reply,
    Message,
    ProfileView,
    React,
    Invite,
    WithdrawInvite,
}

impl Kind {
    /// As the 202 says it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Reply => "reply",
            Kind::Message => "message",
            Kind::ProfileView => "profile_view",
            Kind::React => "react",
            Kind::Invite => "invite",
            Kind::WithdrawInvite => "withdraw_invite",
        }
    }

    /// What the owner has to allow.
    pub fn needs(self) -> Allowed {
        match self {
            Kind::Reply | Kind::Message => Allowed::Reply,
            Kind::ProfileView => Allowed::ViewProfile,
            Kind::React => Allowed::React,
            Kind::Invite | Kind::WithdrawInvite => Allowed::Invite,
        }
    }

    pub fn limit(self) -> Option<Limit> {
        match self {
            Kind::Reply | Kind::Message => Some(Limit::Messages),
            Kind::ProfileView => Some(Limit::ProfileViews),
            Kind::React => Some(Limit::Reactions),
            Kind::Invite => Some(Limit::Invites),
            Kind::WithdrawInvite => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Queued,
    Sending,
    Ambiguous,
    Sent,
    Failed,
    Ended,
}

/// What happens to an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The provider is about to be asked.
    Begun,
    /// It has done it, as it answers or as it was found there.
    Done,
    /// It is certain that it has not done it, and it may be asked again.
    NotDone,
    /// It will not be done: refused for good, or not allowed any more.
    Refused,
    /// It may have been done.
    Unknown,
    /// Its fate was looked for long enough.
    GivenUp,
    /// The operator says that it was not done.
    Disproved,
}

impl State {
    /// The state after an event; `None`: the event does not belong here.
    pub fn after(self, event: Event) -> Option<State> {
        match (self, event) {
            (State::Queued, Event::Begun) => Some(State::Sending),
            (State::Queued | State::Sending, Event::Refused) => Some(State::Failed),
            (State::Sending | State::Ambiguous, Event::Done) => Some(State::Sent),
            (State::Sending | State::Ambiguous, Event::NotDone) => Some(State::Queued),
            (State::Sending, Event::Unknown) => Some(State::Ambiguous),
            (State::Ambiguous, Event::GivenUp) => Some(State::Ended),
            (State::Ambiguous, Event::Disproved) => Some(State::Failed),
            _ => None,
        }
    }

    pub fn is_over(self) -> bool {
        matches!(self, State::Sent | State::Failed | State::Ended)
    }
}

/// What the provider says that it made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invitation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
}

/// The operator's word about an action whose fate was unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub is_sent: bool,
    pub at: Timestamp,
    /// What was given back with it, in micro-USDC, if its call had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<Usdc>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    pub request: RequestId,
    pub agent: AgentId,
    pub account: Uuid,
    pub kind: Kind,
    /// The grant under which it was bought.
    pub grant_version: u32,
    /// Whose limits its place is in ([`Account::counted`]), and as of when it was taken.
    pub counted: Uuid,
    #[serde(default)]
    pub tier: Tier,
    pub state: State,
    /// When it was bought: its places in the limits are those of this time.
    pub created: Timestamp,
    /// When it came into its state.
    pub since: Timestamp,
    /// The chat, member, post or invitation that the provider was asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Times that it could not be sent, and certainly was not.
    #[serde(default)]
    pub tries: u32,
    /// Its turn: not before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<Timestamp>,
    /// The invitation that it makes or takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invitation: Option<Uuid>,
    #[serde(default)]
    pub ids: Ids,
    /// Why it failed, in the contract's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The withdrawal that stopped an invitation before it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<RequestId>,
    /// The result of an action that ended without being sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// What was paid, once its fate was unknown: its job's row is gone before the action is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid: Option<Paid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Counts the writes.
    pub revision: u32,
    pub expires: i64,
}

#[derive(Serialize, Deserialize)]
struct Pointer {
    request: RequestId,
    expires: i64,
}

impl Action {
    #[must_use]
    pub fn new(request: RequestId, account: &Account, kind: Kind, now: Timestamp) -> Action {
        Action {
            request,
            agent: account.agent,
            account: account.id,
            kind,
            grant_version: account.grant_version,
            counted: account.counted(),
            tier: account.tier,
            state: State::Queued,
            created: now,
            since: now,
            target: None,
            tries: 0,
            turn: None,
            invitation: None,
            ids: Ids::default(),
            reason: None,
            message: None,
            stopped_by: None,
            outcome: None,
            paid: None,
            verdict: None,
            revision: 0,
            expires: now.plus(KEPT).secs(),
        }
    }

    /// The action after an event; `None`: the event does not belong to its state.
    #[must_use]
    pub fn after(&self, event: Event, now: Timestamp) -> Option<Action> {
        let state = self.state.after(event)?;
        let tries = self.tries + u32::from(event == Event::NotDone);
        Some(Action { state, since: now, tries, revision: self.revision + 1, ..self.clone() })
    }

    /// The action after one more try that did not get to sending it.
    #[must_use]
    pub fn tried(&self) -> Action {
        Action { tries: self.tries + 1, revision: self.revision + 1, ..self.clone() }
    }

    /// The action with its turn.
    #[must_use]
    pub fn with_turn(&self, turn: Timestamp) -> Action {
        Action { turn: Some(turn), revision: self.revision + 1, ..self.clone() }
    }

    /// The writes that record it when it is bought: for the first time, or again after a payment that came to nothing.
    pub fn begin(&self, db: &Db) -> Result<Vec<Write>, StoreError> {
        let table = &db.tables.messages;
        let pointer = Pointer { request: self.request, expires: self.expires };
        Ok(vec![
            Write::put(table, key(self.request), self)?
                .only_if("attribute_not_exists(#pk) OR #state = :queued")
                .bind("queued", State::Queued)?,
            Write::put(table, self.pointer(), &pointer)?,
        ])
    }

    fn pointer(&self) -> Key {
        Key::new(pointers(self.account), due::row(self.created, self.request))
    }

    /// The writes that put its next state, on the condition that nobody changed it since it was read; that condition is the first
    /// one's. Who looks for open actions does not come by those that are over.
    pub fn change(&self, db: &Db, next: &Action) -> Result<Vec<Write>, StoreError> {
        let table = &db.tables.messages;
        let put =
            Write::put(table, key(self.request), next)?.only_if("#revision = :before").bind("before", self.revision)?;
        let done = next.state.is_over().then(|| Write::delete(table, self.pointer()));
        Ok(std::iter::once(put).chain(done).collect())
    }

    /// The write by which a message at the provider becomes this action's. Refused if it is another's: two actions may send the same
    /// words to the same chat.
    pub fn own(&self, db: &Db, message: &str) -> Result<Write, StoreError> {
        let key = Key::new(format!("NETSENT#{}", self.account), message);
        let pointer = Pointer { request: self.request, expires: self.expires };
        Write::put(&db.tables.messages, key, &pointer)?
            .only_if("attribute_not_exists(#request) OR #request = :request")
            .bind("request", self.request)
    }

    /// The write that puts it on the list of actions whose fate was unknown. Again is once.
    pub fn doubt(&self, db: &Db) -> Result<Write, StoreError> {
        let key = Key::new(doubts(self.request.bytes()[15] % SHARDS), due::row(self.created, self.request));
        Write::put(&db.tables.messages, key, &Pointer { request: self.request, expires: self.expires })
    }

    /// The writes by which its place in the limits is used, or free again.
    pub fn settle_place(&self, db: &Db, is_sent: bool) -> Result<Vec<Write>, StoreError> {
        match self.kind.limit() {
            Some(limit) => limits::settle(db, (self.counted, self.tier), limit, self.created, is_sent),
            None => Ok(Vec::new()),
        }
    }
}

fn key(request: RequestId) -> Key {
    Key::new(format!("NETACTION#{request}"), "ACTION")
}

fn pointers(account: Uuid) -> String {
    format!("NETACTIONS#{account}")
}

fn doubts(shard: u8) -> String {
    format!("NETAMBIGUOUS#{shard}")
}

pub async fn load(db: &Db, request: RequestId) -> Result<Option<Action>, StoreError> {
    db.get_latest(&db.tables.messages, key(request)).await
}

/// The actions of an account that are not over, the newest first.
pub async fn open(db: &Db, account: Uuid, now: Timestamp) -> Result<Vec<Action>, StoreError> {
    // None is open for longer.
    let from = now.minus(AMBIGUOUS_FOR + TRIED_FOR + Duration::from_secs(3600));
    let (from, to) = (due::row(from, ""), due::row(now.plus(Duration::from_secs(60)), "~"));
    let query = Query::between(&db.tables.messages, &pointers(account), &from, &to, MOST_OPEN)?;
    let pointers: Vec<Pointer> = db.query(query.newest_first().latest()).await?;
    let found = all(db, &pointers).await?;
    Ok(found.into_iter().filter(|action| !action.state.is_over()).collect())
}

/// The actions bought since then whose fate is unknown, or was until the operator settled it, the newest first. At most 10,000.
pub async fn doubtful(db: &Db, since: Timestamp, now: Timestamp) -> Result<Vec<Action>, StoreError> {
    let (from, to) = (due::row(since, ""), due::row(now.plus(Duration::from_secs(60)), "~"));
    let mut pointers: Vec<Pointer> = Vec::new();
    for shard in 0..SHARDS {
        let query = Query::between(&db.tables.messages, &doubts(shard), &from, &to, MOST_UNKNOWN)?;
        let found: Vec<Pointer> = db.query(query.newest_first().latest()).await?;
        pointers.extend(found);
    }
    let mut found = all(db, &pointers).await?;
    found.retain(|action| matches!(action.state, State::Ambiguous | State::Ended) || action.verdict.is_some());
    found.sort_by_key(|action| (std::cmp::Reverse(action.created), action.request));
    Ok(found)
}

async fn all(db: &Db, pointers: &[Pointer]) -> Result<Vec<Action>, StoreError> {
    // One that was bought again has two pointers.
    let mut seen = HashSet::new();
    let requests = pointers.iter().map(|pointer| pointer.request).filter(|request| seen.insert(*request));
    let keys: Vec<Key> = requests.map(key).collect();
    let found: Vec<Option<Action>> = db.batch_get(&db.tables.messages, &keys, true).await?;
    Ok(found.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_sent_again_only_if_it_certainly_was_not() {
        use Event::{Begun, Disproved, Done, GivenUp, NotDone, Refused, Unknown};
        use State::{Ambiguous, Ended, Failed, Queued, Sending, Sent};
        let events = [Begun, Done, NotDone, Refused, Unknown, GivenUp, Disproved];
        for (from, to) in [
            (Queued, [Some(Sending), None, None, Some(Failed), None, None, None]),
            (Sending, [None, Some(Sent), Some(Queued), Some(Failed), Some(Ambiguous), None, None]),
            (Ambiguous, [None, Some(Sent), Some(Queued), None, None, Some(Ended), Some(Failed)]),
            (Sent, [None; 7]),
            (Failed, [None; 7]),
            (Ended, [None; 7]),
        ] {
            assert_eq!(events.map(|event| from.after(event)), to, "{from:?}");
            assert_eq!(from.is_over(), to == [None; 7], "{from:?}");
        }
    }
}
