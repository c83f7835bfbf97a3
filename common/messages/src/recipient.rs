//! The state of each recipient of a send job: `JOB#<request id>` / `TO#<0000>`.
//!
//! ```text
//!           begin               ended
//! pending ─────────► submitting ─────► accepted ──► delivered ──► bounced ──► complained
//!  │ ▲                   │  │              └────────────────────────▲
//!  │ │ certainly not     │  ├─────► refused, suppressed, bounced (ends)
//!  │ └───────────────────┘  └─────► ambiguous: may be accepted, never sent again
//!  └► refused, suppressed: by us, before anybody was asked to take it
//! ```
//!
//! Only one process begins or refuses a recipient, because both are conditional on `pending`. Events of providers arrive twice, late,
//! out of order, and even before the submission has ended; they only move forward, and a repeat changes nothing. So what is
//! counted after a change is counted once. A bounce report by mail, which anyone can write, ends no submission.

use std::fmt;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId, random_uuid};
use platform::store::db::{self, Query};
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::ids;

/// Most recipients of a job.
pub const MAX_RECIPIENTS: usize = 500;
/// DynamoDB's limit for a transaction.
const MAX_TRANSACTION: usize = 100;
/// Longest reason, in characters.
const MAX_REASON: usize = 500;
/// Recipients that the tracking names.
const MAX_NAMED: usize = 10;

/// The state of a recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Not handed over yet.
    Pending,
    /// Being handed over.
    Submitting,
    /// The provider, or the local mailbox or inbox, has it.
    Accepted,
    Delivered,
    Bounced,
    Complained,
    /// The provider will not send it.
    Refused,
    /// It wants no messages from this sender, or its address has failed.
    Suppressed,
    /// It may have been handed over; never sent again.
    Ambiguous,
}

impl State {
    pub const ALL: [State; 9] = [
        State::Pending,
        State::Submitting,
        State::Accepted,
        State::Delivered,
        State::Bounced,
        State::Complained,
        State::Refused,
        State::Suppressed,
        State::Ambiguous,
    ];

    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Submitting => "submitting",
            State::Accepted => "accepted",
            State::Delivered => "delivered",
            State::Bounced => "bounced",
            State::Complained => "complained",
            State::Refused => "refused",
            State::Suppressed => "suppressed",
            State::Ambiguous => "ambiguous",
        }
    }

    /// Whether it is still to be handed over, or is being handed over.
    pub fn is_open(self) -> bool {
        matches!(self, State::Pending | State::Submitting)
    }

    /// Whether a submission can end so. `Pending`: certainly not handed over, may be tried again.
    fn ends_submission(self) -> bool {
        !matches!(self, State::Submitting | State::Complained)
    }
}

/// An address that messages are sent to: a mail address or a phone number.
pub trait Destination: Clone + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static {}

impl<To: Clone + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static> Destination for To {}

/// One recipient of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recipient<To> {
    pub request_id: RequestId,
    /// Place in the job, from 0.
    pub index: u32,
    pub agent: AgentId,
    /// The sender's domain, or its phone number. Rows of before have it as `domain`.
    #[serde(alias = "domain")]
    pub sender: String,
    pub to: To,
    pub state: State,
    /// Begins with `{id}.{index}`, where the id is a [`ids::message_uuid`]. Of a mail, `@{domain}` follows; without `<>`.
    pub message_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// Names the [`begin`] that moved it to `submitting`, unless it was certainly not handed over then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Uuid>,
    /// Why it was refused, suppressed, bounced, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// 1 if the recipient opened the message. Further opens are not counted: a repeated event must not count.
    #[serde(default)]
    pub opens: u32,
    /// 1 if the recipient clicked on a link, like `opens`.
    #[serde(default)]
    pub clicks: u32,
    /// When the state, `opens` or `clicks` last changed.
    pub changed: Timestamp,
    /// Unix seconds after which the row may be deleted.
    pub expires: i64,
}

impl<To> Recipient<To> {
    /// Whether the recipient is charged: an inbox or a provider has accepted the message.
    pub fn is_charged(&self) -> bool {
        match self.state {
            State::Accepted | State::Delivered | State::Complained => true,
            // A message that bounced at once, in this deployment, was never accepted.
            State::Bounced => self.provider_message_id.is_some(),
            State::Pending | State::Submitting | State::Refused | State::Suppressed | State::Ambiguous => false,
        }
    }

    /// Whether a provider or an inbox was asked to take the message, and may have it or has refused it.
    pub fn was_handed_over(&self) -> bool {
        self.run.is_some()
    }

    /// When the first run of the job made the message: the time in the message id.
    pub fn started(&self) -> Option<Timestamp> {
        let id = self.message_id.split('.').next()?;
        Uuid::try_parse(id).ok().map(ids::time_of)
    }
}

/// What tells who moved a row to `submitting`.
#[derive(Deserialize)]
struct Begun {
    state: State,
    run: Option<Uuid>,
}

impl Begun {
    fn is_by(&self, run: Uuid) -> bool {
        self.state == State::Submitting && self.run == Some(run)
    }
}

/// What a provider, or a mail, reports of a message that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    Delivered,
    Bounced {
        /// False: a temporary failure that the provider stopped retrying, or an automatic answer.
        permanent: bool,
        /// The provider says so. False: a report by mail.
        signed: bool,
        reason: String,
    },
    Complained,
    Opened,
    Clicked,
}

impl Happened {
    /// The states in which it changes something. An event also proves that a message was handed over whose submission has not
    /// ended, or ended without an answer.
    fn changes(&self) -> &'static [State] {
        match self {
            Happened::Delivered | Happened::Bounced { permanent: false, signed: true, .. } => {
                &[State::Submitting, State::Ambiguous, State::Accepted]
            }
            // The receiving host may find out after it took the mail.
            Happened::Bounced { permanent: true, signed: true, .. } => {
                &[State::Submitting, State::Ambiguous, State::Accepted, State::Delivered]
            }
            // The sender may have written it itself: it must not end a submission, or the mail would cost nothing.
            Happened::Bounced { permanent: false, signed: false, .. } => &[State::Ambiguous, State::Accepted],
            Happened::Bounced { permanent: true, signed: false, .. } => {
                &[State::Ambiguous, State::Accepted, State::Delivered]
            }
            Happened::Complained => {
                &[State::Submitting, State::Ambiguous, State::Accepted, State::Delivered, State::Bounced]
            }
            Happened::Opened | Happened::Clicked => &[
                State::Submitting,
                State::Ambiguous,
                State::Accepted,
                State::Delivered,
                State::Bounced,
                State::Complained,
            ],
        }
    }

    /// The update expression, and a further condition. Values: `:to` or `:one`, and `:reason`.
    fn update(&self) -> (&'static str, &'static str) {
        match self {
            Happened::Delivered | Happened::Complained => ("SET #state = :to, #changed = :now REMOVE #reason", ""),
            Happened::Bounced { .. } => ("SET #state = :to, #changed = :now, #reason = :reason", ""),
            Happened::Opened => ("SET #opens = :one, #changed = :now", " AND #opens < :one"),
            Happened::Clicked => ("SET #clicks = :one, #changed = :now", " AND #clicks < :one"),
        }
    }
}

fn partition(request_id: RequestId) -> String {
    format!("JOB#{request_id}")
}

fn key(request_id: RequestId, index: u32) -> Key {
    Key::new(partition(request_id), format!("TO#{index:04}"))
}

fn clipped(reason: &str) -> String {
    reason.chars().take(MAX_REASON).collect()
}

/// Writes the rows of a job. Idempotent: a row that exists stays as it is. 100 rows per transaction.
pub async fn create_all<To: Destination>(db: &Db, rows: Vec<Recipient<To>>) -> Result<(), StoreError> {
    let put = |row: &Recipient<To>| -> Result<Write, StoreError> {
        Ok(Write::put(&db.tables.messages, key(row.request_id, row.index), row)?.only_if_new())
    };
    for rows in rows.chunks(MAX_TRANSACTION) {
        let mut left: Vec<Write> = rows.iter().map(put).collect::<Result<_, _>>()?;
        // A refusal names the rows that exist; the rest is written without them. Each round leaves fewer.
        while !left.is_empty() {
            let refused = match db.apply(left.clone()).await {
                Ok(()) => break,
                Err(WriteError::Refused(refused)) => refused,
                Err(WriteError::Failed(error)) => return Err(error),
            };
            let before = left.len();
            let rest = left.into_iter().zip(refused).filter(|(_, refused)| refused.is_none());
            left = rest.map(|(write, _)| write).collect();
            if left.len() == before {
                return Err(StoreError::new("a transaction was refused without a reason"));
            }
        }
    }
    Ok(())
}

/// The rows of a job in order of their index, consistent.
pub async fn all<To: Destination>(db: &Db, request_id: RequestId) -> Result<Vec<Recipient<To>>, StoreError> {
    let query = Query::prefixed(&db.tables.messages, &partition(request_id), "TO#", MAX_RECIPIENTS)?;
    db.query(query.latest()).await
}

/// One row, consistent. `None` if there is no such recipient.
pub async fn load<To: Destination>(
    db: &Db,
    request_id: RequestId,
    index: u32,
) -> Result<Option<Recipient<To>>, StoreError> {
    db.get_latest(&db.tables.messages, key(request_id, index)).await
}

/// Pending to Submitting, before the message is handed over. False: another process did, or it has ended.
pub async fn begin<To>(db: &Db, of: &Recipient<To>, now: Timestamp) -> Result<bool, StoreError> {
    let run = random_uuid();
    let set = "SET #state = :submitting, #run = :run, #changed = :now REMOVE #reason";
    let write = Write::update(&db.tables.messages, key(of.request_id, of.index), set)
        .only_if("#state = :pending")
        .bind("submitting", State::Submitting)?
        .bind("pending", State::Pending)?
        .bind("run", run)?
        .bind("now", now)?;
    match db.write(write).await {
        Ok(_) => Ok(true),
        Err(refused @ WriteError::Refused(_)) => {
            // The SDK repeats a write after a lost answer: our own write is then the one in the way.
            let old = refused.refused(0).and_then(|refused| refused.old.clone());
            let begun: Option<Begun> = old.map(db::parse).transpose()?;
            Ok(begun.is_some_and(|begun| begun.is_by(run)))
        }
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Ends a recipient whose message is not handed over, with Refused or Suppressed. False: it is not Pending.
pub async fn refuse<To>(
    db: &Db,
    of: &Recipient<To>,
    state: State,
    reason: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let set = "SET #state = :state, #reason = :reason, #changed = :now";
    let write = Write::update(&db.tables.messages, key(of.request_id, of.index), set)
        .only_if("#state = :pending")
        .bind("state", state)?
        .bind("pending", State::Pending)?
        .bind("reason", clipped(reason))?
        .bind("now", now)?;
    db.write_if(write).await
}

/// Ends a submission. Only from Submitting, and Accepted also from Ambiguous, which is less: false if it has ended, or if
/// an event of the provider was faster (then the row has the event's state). With `Pending`, which is for messages that
/// were certainly not accepted, it may begin again.
pub async fn ended<To>(
    db: &Db,
    of: &Recipient<To>,
    state: State,
    provider_message_id: Option<&str>,
    reason: Option<&str>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    if !state.ends_submission() {
        return Err(StoreError::new(format_args!("a submission cannot end in {}", state.as_str())));
    }
    let mut set = "SET #state = :state, #changed = :now".to_owned();
    if provider_message_id.is_some() {
        set.push_str(", #provider_message_id = :provider");
    }
    if reason.is_some() {
        set.push_str(", #reason = :reason");
    }
    if state == State::Pending {
        set.push_str(" REMOVE #run");
    }
    let is_accepted = state == State::Accepted;
    let condition = if is_accepted { "#state IN (:submitting, :ambiguous)" } else { "#state = :submitting" };
    let mut write = Write::update(&db.tables.messages, key(of.request_id, of.index), &set)
        .only_if(condition)
        .bind("state", state)?
        .bind("submitting", State::Submitting)?
        .bind("now", now)?;
    if is_accepted {
        write = write.bind("ambiguous", State::Ambiguous)?;
    }
    if let Some(id) = provider_message_id {
        write = write.bind("provider", id)?;
    }
    if let Some(reason) = reason {
        write = write.bind("reason", clipped(reason))?;
    }
    db.write_if(write).await
}

/// Stores the provider's id of a message that it has accepted, whatever the state: an event was faster than [`ended`]. An id
/// that is there stays.
pub async fn identify<To>(db: &Db, of: &Recipient<To>, provider_message_id: &str) -> Result<(), StoreError> {
    let set = "SET #provider_message_id = if_not_exists(#provider_message_id, :provider)";
    let write = Write::update(&db.tables.messages, key(of.request_id, of.index), set)
        .only_if("attribute_exists(#pk)")
        .bind("provider", provider_message_id)?;
    db.write_if(write).await.map(drop)
}

/// Applies a provider's event; moves only forward. Returns the row if it changed: count what happened only then. An event of
/// an unknown recipient changes nothing.
pub async fn note<To: Destination>(
    db: &Db,
    request_id: RequestId,
    index: u32,
    event: &Happened,
    now: Timestamp,
) -> Result<Option<Recipient<To>>, StoreError> {
    let (set, further) = event.update();
    let from = event.changes();
    let names: Vec<String> = (0..from.len()).map(|place| format!("from{place}")).collect();
    let condition = format!("#state IN (:{}){further}", names.join(", :"));
    let mut write =
        Write::update(&db.tables.messages, key(request_id, index), set).only_if(&condition).bind("now", now)?;
    for (name, state) in names.iter().zip(from) {
        write = write.bind(name, state)?;
    }
    write = match event {
        Happened::Delivered => write.bind("to", State::Delivered)?,
        Happened::Complained => write.bind("to", State::Complained)?,
        Happened::Bounced { reason, .. } => write.bind("to", State::Bounced)?.bind("reason", clipped(reason))?,
        Happened::Opened | Happened::Clicked => write.bind("one", 1)?,
    };
    match db.write(write).await {
        Ok(item) => db::parse(item).map(Some),
        Err(WriteError::Refused(_)) => Ok(None),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// What the rows of a job say: `{status, opens, clicks, to, last_event_at, recipients}`. `to` is one address, or a list of the
/// first ten; `recipients` counts them by state; `opens` and `clicks` count recipients.
pub fn summary<To: Destination>(rows: &[Recipient<To>]) -> Value {
    let count = |state: State| rows.iter().filter(|row| row.state == state).count();
    let recipients: Map<String, Value> =
        State::ALL.into_iter().map(|state| (state.as_str().to_owned(), json!(count(state)))).collect();
    let to = match rows {
        [only] => json!(only.to),
        rows => json!(rows.iter().take(MAX_NAMED).map(|row| &row.to).collect::<Vec<_>>()),
    };
    json!({
        "status": status(rows),
        "opens": rows.iter().map(|row| u64::from(row.opens)).sum::<u64>(),
        "clicks": rows.iter().map(|row| u64::from(row.clicks)).sum::<u64>(),
        "to": to,
        "last_event_at": rows.iter().map(|row| row.changed).max().map(|at| at.to_string()),
        "recipients": recipients,
    })
}

/// The state that all recipients have; `sending` until each was handed over; otherwise `mixed`.
fn status<To>(rows: &[Recipient<To>]) -> &'static str {
    match rows {
        [first, rest @ ..] if rest.iter().all(|row| row.state == first.state) => first.state.as_str(),
        rows if rows.iter().any(|row| row.state.is_open()) => "sending",
        _ => "mixed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipient(index: u32, state: State) -> Recipient<String> {
        Recipient {
            request_id: RequestId::from_bytes([1; 16]),
            index,
            agent: AgentId::from_bytes([2; 16]),
            sender: "a.example".to_owned(),
            to: format!("to{index}@b.example"),
            state,
            message_id: format!("{}.{index}@a.example", Uuid::nil()),
            provider_message_id: None,
            run: None,
            reason: None,
            opens: u32::from(state == State::Delivered),
            clicks: 0,
            changed: Timestamp::from_secs(i64::from(index)),
            expires: 100,
        }
    }

    #[test]
    fn names_are_the_serialised_ones() {
        for state in State::ALL {
            assert_eq!(json!(state), state.as_str());
        }
        let kept = recipient(7, State::Bounced);
        assert_eq!(serde_json::from_value::<Recipient<String>>(json!(kept)).unwrap(), kept);
        assert_eq!(key(kept.request_id, kept.index).sk, "TO#0007");
    }

    #[test]
    fn the_message_id_has_the_time_of_the_first_run() {
        let at = Timestamp::from_millis(1_795_249_530_250);
        let started = |message_id: String| Recipient { message_id, ..recipient(0, State::Pending) }.started();
        assert_eq!(started(format!("{}.17@a.example", ids::message_uuid(at, &[b"mail"]))), Some(at));
        assert_eq!(started("x.1@a.example".to_owned()), None);
    }

    #[test]
    fn only_accepted_messages_are_charged() {
        let row = |state: State, id: Option<&str>| {
            let provider_message_id = id.map(str::to_owned);
            Recipient { provider_message_id, ..recipient(0, state) }
        };
        for state in State::ALL {
            let expected = matches!(state, State::Accepted | State::Delivered | State::Complained);
            assert_eq!(row(state, None).is_charged(), expected, "{state:?}");
        }
        assert!(row(State::Bounced, Some("id")).is_charged(), "a provider had accepted it");
    }

    /// The state after an event, as the conditional write gives it.
    fn after(state: State, event: &Happened) -> State {
        if !event.changes().contains(&state) {
            return state;
        }
        match event {
            Happened::Delivered => State::Delivered,
            Happened::Bounced { .. } => State::Bounced,
            Happened::Complained => State::Complained,
            Happened::Opened | Happened::Clicked => state,
        }
    }

    #[test]
    fn events_move_forward_whatever_their_order() {
        use State::{Accepted, Ambiguous, Bounced, Complained, Delivered, Pending, Refused, Submitting, Suppressed};
        let said = |permanent, signed| Happened::Bounced { permanent, signed, reason: "5.1.1".to_owned() };
        let bounce = |permanent| said(permanent, true);
        let rows = [
            (Happened::Delivered, [Delivered, Delivered, Delivered, Delivered, Bounced, Complained]),
            (bounce(false), [Bounced, Bounced, Bounced, Delivered, Bounced, Complained]),
            (bounce(true), [Bounced, Bounced, Bounced, Bounced, Bounced, Complained]),
            (said(false, false), [Submitting, Bounced, Bounced, Delivered, Bounced, Complained]),
            (said(true, false), [Submitting, Bounced, Bounced, Bounced, Bounced, Complained]),
            (Happened::Complained, [Complained; 6]),
            (Happened::Opened, [Submitting, Ambiguous, Accepted, Delivered, Bounced, Complained]),
        ];
        let handed_over = [Submitting, Ambiguous, Accepted, Delivered, Bounced, Complained];
        for (event, expected) in &rows {
            for (state, expected) in handed_over.into_iter().zip(*expected) {
                assert_eq!(after(state, event), expected, "{state:?} {event:?}");
                assert_eq!(after(expected, event), expected, "a repeat of {event:?}");
            }
            for state in [Pending, Refused, Suppressed] {
                assert_eq!(after(state, event), state, "never handed over: {event:?}");
            }
        }
        let events = [Happened::Delivered, bounce(true), Happened::Complained];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let end = order.into_iter().fold(Submitting, |state, place| after(state, &events[place]));
            assert_eq!(end, Complained, "{order:?}");
        }
    }

    #[test]
    fn a_repeated_begin_knows_its_own_write() {
        let (own, other) = (random_uuid(), random_uuid());
        assert!(Begun { state: State::Submitting, run: Some(own) }.is_by(own));
        for (state, run) in [
            (State::Submitting, Some(other)),
            (State::Submitting, None),
            (State::Pending, Some(own)),
            (State::Ambiguous, Some(own)),
        ] {
            assert!(!Begun { state, run }.is_by(own), "{state:?} {run:?}");
        }
    }

    #[test]
    fn the_summary_counts_recipients_by_state() {
        use State::{Bounced, Delivered, Pending};
        let rows = [
            (vec![Pending], "pending"),
            (vec![Delivered], "delivered"),
            (vec![Delivered, Delivered], "delivered"),
            (vec![Delivered, Pending], "sending"),
            (vec![Delivered, Bounced], "mixed"),
        ];
        for (states, expected) in rows {
            let recipients: Vec<Recipient<String>> =
                (0..).zip(states).map(|(index, state)| recipient(index, state)).collect();
            assert_eq!(status(&recipients), expected);
        }
        let one = summary(&[recipient(0, Delivered)]);
        assert_eq!((&one["to"], &one["opens"]), (&json!("to0@b.example"), &json!(1)));
        let two = summary(&[recipient(0, Delivered), recipient(1, Bounced)]);
        assert_eq!(two["to"], json!(["to0@b.example", "to1@b.example"]));
        assert_eq!(two["last_event_at"], "1970-01-01T00:00:01.000Z");
        assert_eq!(two["recipients"]["bounced"], 1);
        assert_eq!(two["recipients"]["pending"], 0);
    }
}
