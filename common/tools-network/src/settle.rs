//! What the operator says of an action whose fate the network did not tell: it was sent, or it certainly was not.
//!
//! | the action | it was sent | it was not sent |
//! |---|---|---|
//! | is ambiguous | it becomes `sent`, and its job ends with that | it fails, and its job pays back |
//! | has ended | it is marked | it is marked, and what was paid is given back |
//!
//! Nothing is sent again. A word is one transaction with the action's next revision, so it counts once, also if the command runs twice,
//! or twice at once. Only the wake-up of the job comes after it; the command may be repeated for that.

use base::clock::Timestamp;
use base::ids::RequestId;
use base::money::Usdc;
use ledger::receipt::{self, ExecutionStatus, ReceiptStatus};
use ledger::returned::{self, Paid};
use ledger::signing::ReceiptSigner;
use platform::store::{Db, Key, Queue, StoreError, Write, WriteError, jobs};

use crate::account::{self, Account};
use crate::action::{self, Action, Event, Kind, State, Verdict};
use crate::invitations::{self, Status};
use crate::limits;

/// Others may change an action meanwhile, but not for ever.
const TRIES: usize = 10;
/// Names the return of an action's price in the ledger.
const CAUSE: &str = "not_sent";
/// The reason of a job whose action was not sent, as the operator says.
const REASON: &str = "not_sent";
const WHY: &str = "the network did not take it, as the operator found out; it was not sent";

/// What a command works with beside the tables.
#[derive(Clone, Copy, Default)]
pub struct Desk<'a> {
    /// Signs the receipt of what is given back.
    pub signer: Option<&'a ReceiptSigner>,
    /// The queue of jobs. Without it, the job of an open action sees the word when it looks again, within about an hour.
    pub queue: Option<&'a dyn Queue>,
}

/// What a command came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    Done(Box<Action>),
    /// The same was said before.
    Before(Box<Action>),
    /// The other was said before, and that stands.
    Otherwise(Box<Action>),
    /// The action's fate is known, or it is not sent yet.
    Known(State),
    /// Its call or its payment has not come to its end. Later it has.
    NotYet,
    NoAction,
}

/// An action of the list, with its account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub action: Action,
    pub account: Option<Account>,
}

/// The actions bought since then whose fate is unknown, or was until the operator settled it, the newest first.
///
/// # Errors
/// If the database fails.
pub async fn list(db: &Db, since: Timestamp, now: Timestamp) -> Result<Vec<Listed>, StoreError> {
    let actions = action::doubtful(db, since, now).await?;
    let mut keys: Vec<Key> = actions.iter().map(|action| account::key(action.agent, action.account)).collect();
    keys.sort();
    keys.dedup();
    let found: Vec<Option<Account>> = db.batch_get(&db.tables.messages, &keys, false).await?;
    let accounts: Vec<Account> = found.into_iter().flatten().collect();
    let listed = |action: Action| {
        let account = accounts.iter().find(|account| account.id == action.account).cloned();
        Listed { action, account }
    };
    Ok(actions.into_iter().map(listed).collect())
}

/// Settles an action: it was sent, or it was not.
///
/// # Errors
/// If the database fails, if a return needs a signer and there is none, or if nobody knows any more what was paid.
pub async fn settle(
    db: &Db,
    desk: Desk<'_>,
    request: RequestId,
    is_sent: bool,
    now: Timestamp,
) -> Result<Settled, StoreError> {
    for _ in 0..TRIES {
        let Some(action) = action::load(db, request).await? else { return Ok(Settled::NoAction) };
        if let Some(verdict) = action.verdict {
            // An earlier command may have died before it woke the job.
            wake(db, desk, &action).await;
            let action = Box::new(action);
            let is_same = verdict.is_sent == is_sent;
            return Ok(if is_same { Settled::Before(action) } else { Settled::Otherwise(action) });
        }
        let change = match action.state {
            State::Ambiguous => open(db, &action, is_sent, now).await?,
            State::Ended => ended(db, desk, &action, is_sent, now).await?,
            known => return Ok(Settled::Known(known)),
        };
        let Some((next, more)) = change else { return Ok(Settled::NotYet) };
        let mut writes = action.change(db, &next)?;
        writes.extend(more);
        match db.apply(writes).await {
            Ok(()) => {
                wake(db, desk, &next).await;
                return Ok(Settled::Done(Box::new(next)));
            }
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Err(StoreError::new("an action changes faster than it can be settled"))
}

/// The job of an action that was open ends soon. One that has ended is not woken.
async fn wake(db: &Db, desk: Desk<'_>, action: &Action) {
    if let (Some(queue), false) = (desk.queue, action.state == State::Ended) {
        jobs::wake(db, queue, action.request).await;
    }
}

/// An action's next state, and the writes beside its own. `None`: not yet.
type Change = Option<(Action, Vec<Write>)>;

/// An open action: its job ends as its state says.
async fn open(db: &Db, action: &Action, is_sent: bool, now: Timestamp) -> Result<Change, StoreError> {
    let event = if is_sent { Event::Done } else { Event::Disproved };
    let next = action.after(event, now).ok_or_else(|| StoreError::new("an ambiguous action cannot be settled"))?;
    let mut next = Action { verdict: Some(Verdict { is_sent, at: now, returned: None }), ..next };
    if is_sent {
        // About when it was sent.
        next.ids.at = Some(action.since);
    } else {
        (next.reason, next.message) = (Some(REASON.to_owned()), Some(WHY.to_owned()));
    }
    let mut writes = action.settle_place(db, is_sent)?;
    writes.extend(invitation(db, action, is_sent, now).await?);
    Ok(Some((next, writes)))
}

/// An action that has ended: its job has charged it, and said `ambiguous`.
async fn ended(db: &Db, desk: Desk<'_>, action: &Action, is_sent: bool, now: Timestamp) -> Result<Change, StoreError> {
    let (mut returned, mut writes) = (None, Vec::new());
    if !is_sent {
        match give_back(db, desk, action, now).await? {
            Back::NotYet => return Ok(None),
            Back::Nothing => {}
            Back::Amount(amount, more) => {
                returned = Some(amount);
                writes = more;
            }
        }
        if let Some(limit) = action.kind.limit() {
            writes.extend(limits::free(db, (action.counted, action.tier), limit, action.created, now)?);
        }
    }
    writes.extend(invitation(db, action, is_sent, now).await?);
    let verdict = Some(Verdict { is_sent, at: now, returned });
    Ok(Some((Action { verdict, revision: action.revision + 1, ..action.clone() }, writes)))
}

/// What comes back for an action that has ended.
enum Back {
    NotYet,
    /// Its call has failed and was paid back with that, or a goal has bought it.
    Nothing,
    Amount(Usdc, Vec<Write>),
}

async fn give_back(db: &Db, desk: Desk<'_>, action: &Action, now: Timestamp) -> Result<Back, StoreError> {
    let paid = paid(db, action).await?;
    let found = receipt::load(db, paid.agent, &paid.receipt_id).await?;
    let found = found.ok_or_else(|| StoreError::new("the receipt of the action is gone"))?;
    if !found.is_terminal() {
        return Ok(Back::NotYet);
    }
    let is_charged = found.status == ReceiptStatus::Settled && found.execution_status == ExecutionStatus::Completed;
    if !is_charged || paid.charge.purse.is_some() {
        return Ok(Back::Nothing);
    }
    let signer = desk.signer.ok_or_else(|| StoreError::new("a return needs the key that signs receipts"))?;
    let back = returned::give_back(db, signer, (action.request, &paid), found.amount, CAUSE, now).await?;
    Ok(back.map_or(Back::Nothing, |(amount, writes)| Back::Amount(amount, writes)))
}

/// What was paid: as its job's row says, or the action itself once that row is gone.
async fn paid(db: &Db, action: &Action) -> Result<Paid, StoreError> {
    let found = returned::paid(db, action.request).await?.or_else(|| action.paid.clone());
    found.ok_or_else(|| StoreError::new("what was paid for the action is not known any more"))
}

/// The writes that say what became of the action's invitation. One that was not taken back stays as it is.
async fn invitation(db: &Db, action: &Action, is_sent: bool, now: Timestamp) -> Result<Vec<Write>, StoreError> {
    let status = match (action.kind, is_sent) {
        (Kind::Invite, true) => Status::Sent,
        // The member may be invited again.
        (Kind::Invite, false) => Status::Failed,
        (Kind::WithdrawInvite, true) => Status::Withdrawn,
        _ => return Ok(Vec::new()),
    };
    match action.invitation {
        Some(id) => invitations::becomes(db, (action.account, id), status, None, now).await,
        None => Ok(Vec::new()),
    }
}
