//! Processing of payouts. Sellers request them. One function finishes them; it does nothing else, and only it may read
//! the treasury's key. `ledger::payout` documents the states and the crash safety.

use std::time::{Duration, Instant};

use base::clock::Timestamp;
use base::ids::AgentId;
use base::money::Usdc;
use evm::hex0x;
use ledger::notifications::{self, Notification, NotificationKind};
use ledger::payments::treasury::{self, Funds, Obstacle, Seen, Treasury};
use ledger::payout::{self, Due, End, Failure, Name, Payout, PayoutStatus, Refusal, SHARDS, Waiting};
use ledger::webhooks::{Event, EventKind, outbox};
use platform::http::log;
use platform::store::{Db, StoreError, Write, WriteError};
use serde::Serialize;
use serde_json::{Value, json};

use super::soul::{self, Soul};
use super::wallet;

/// Open payouts taken from one shard per run.
const PER_SHARD: usize = 50;
/// A run starts no new payout after this time, so that it ends before the next run.
const RUN_FOR: Duration = Duration::from_secs(40);
/// Pause before checking a transaction that may be on chain.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Pause before checking a paid payout that is not final yet.
const LOOK_WHETHER_FINAL: Duration = Duration::from_secs(10 * 60);
/// After this time a payment counts as final, even if the chain does not report finality.
const FINAL_AT_LAST: Duration = Duration::from_secs(24 * 3600);
/// Pause before retrying a payout that waits for funds or for the chain.
const TRY_AGAIN: Duration = Duration::from_secs(60);
/// Pause before checking a payout that waits for an operator.
const HELD: Duration = Duration::from_secs(120);

/// Requests a payout to the linked wallet; `None` if no wallet is linked.
pub async fn request(
    db: &Db,
    soul: &Soul,
    amount: Option<Usdc>,
    name: Option<Name<'_>>,
    now: Timestamp,
) -> Result<Option<Result<Payout, Refusal>>, StoreError> {
    let Some(wallet) = soul.wallet else { return Ok(None) };
    let slug = soul.slug.as_str();
    let linked = Write::check(&db.tables.souls, soul::key(slug)).only_if("#wallet = :wallet").bind("wallet", wallet)?;
    let asked = payout::request(db, slug, wallet, amount, name, &linked, now).await?;
    if asked.is_ok()
        && let Err(error) = wallet::is_paid_at(db, &soul.slug, wallet, now).await
    {
        log::failure("a payout could not be noted with its wallet's purchases; the next one tries again", &error);
    }
    Ok(Some(asked))
}

/// A payout as its seller sees it.
pub fn to_json(payout: &Payout) -> Value {
    json!({
        "id": payout.id,
        "amount": payout.amount.to_number(),
        "status": payout.status,
        "tx_hash": payout.tx_hash,
        "wallet": payout.wallet.to_string(),
        "waiting_for": payout.waiting,
        "failure": payout.failure,
        "created_at": payout.created.to_string(),
        "processed_at": payout.processed.map(|at| at.to_string()),
    })
}

/// Counts of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PayoutRunReport {
    pub sent: u32,
    /// Sent again with a higher fee.
    pub raised: u32,
    pub completed: u32,
    pub failed: u32,
    /// Paid, then taken back by a reorganisation of the chain, and sent again.
    pub reopened: u32,
    /// Checked and left unchanged.
    pub waiting: u32,
    /// Age of the oldest open payout, in seconds, without those held on purpose.
    pub oldest_secs: u64,
}

/// One run over the due payouts. Payouts that may be on chain come first.
pub async fn run(db: &Db, treasury: &Treasury, now: Timestamp) -> Result<PayoutRunReport, StoreError> {
    treasury::publish(db, treasury.address()).await?;
    let (begun, mut ran, mut open) = (Instant::now(), PayoutRunReport::default(), Vec::new());
    for shard in 0..SHARDS {
        for Due { soul, id } in payout::due(db, shard, now, PER_SHARD).await? {
            match payout::load(db, &soul, &id).await {
                Ok(found) => open.extend(found.filter(Payout::is_watched)),
                // One unreadable payout must not block the others.
                Err(error) => log::failure("a payout could not be read", &format_args!("{id}: {error}")),
            }
        }
    }
    open.sort_by_key(|payout| (payout.status == PayoutStatus::Pending, payout.created));
    // Transfers under way are still part of the treasury's balance.
    let mut on_its_way = Usdc::ZERO;
    for payout in open.iter().take_while(|_| begun.elapsed() < RUN_FOR) {
        let moved = match payout.status {
            PayoutStatus::Pending => Box::pin(begin(db, treasury, payout, on_its_way, now)).await,
            _ => Box::pin(follow(db, treasury, payout, now)).await,
        };
        // A payout that fails stays due, and does not block the others.
        let moved = moved.unwrap_or_else(|error| {
            log::failure("a payout could not be moved", &format_args!("{}: {error}", payout.id));
            Moved::Waits
        });
        match moved {
            Moved::Sent => ran.sent += 1,
            Moved::Raised => ran.raised += 1,
            Moved::Completed => ran.completed += 1,
            Moved::Failed => ran.failed += 1,
            Moved::Reopened => ran.reopened += 1,
            Moved::Waits | Moved::Held => ran.waiting += 1,
            Moved::Confirmed => {}
        }
        let is_under_way = payout.status == PayoutStatus::Processing && matches!(moved, Moved::Waits | Moved::Raised);
        if is_under_way || moved == Moved::Sent {
            on_its_way = on_its_way.checked_add(payout.amount).unwrap_or(on_its_way);
        }
        if payout.is_open() && matches!(moved, Moved::Sent | Moved::Raised | Moved::Waits) {
            let age = now.secs().saturating_sub(payout.created.secs()).unsigned_abs();
            ran.oldest_secs = ran.oldest_secs.max(age);
        }
    }
    if ran != PayoutRunReport::default() {
        log::event("payouts", json!(ran));
    }
    Ok(ran)
}

/// The result of one payout in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moved {
    Sent,
    Raised,
    Completed,
    Failed,
    /// Was paid, then lost in a reorganisation, and sent again.
    Reopened,
    Waits,
    /// Held on purpose: the seller is suspended.
    Held,
    /// Paid, and still on chain.
    Confirmed,
}

/// Sends a pending payout, or records why it has to wait.
async fn begin(
    db: &Db,
    treasury: &Treasury,
    payout: &Payout,
    on_its_way: Usdc,
    now: Timestamp,
) -> Result<Moved, StoreError> {
    let seller = soul::load_latest(db, &payout.soul).await?;
    if seller.is_some_and(|seller| !seller.is_active()) {
        wait(db, payout, Waiting::SellerSuspended, HELD, now).await?;
        return Ok(Moved::Held);
    }
    let prepared = match treasury.funds().await {
        Ok(funds) => {
            let usdc = funds.usdc.checked_sub(on_its_way).unwrap_or_default();
            treasury.prepare(payout, Funds { usdc, ..funds }).await?
        }
        Err(error) => Err(Obstacle::Wait(Waiting::ChainUnavailable, error.to_string())),
    };
    let (sending, nonce) = match prepared {
        Ok(prepared) => prepared,
        Err(Obstacle::Wait(waiting, cause)) => {
            log::failure("a payout has to wait", &format_args!("{} ({waiting:?}): {cause}", payout.id));
            wait(db, payout, waiting, TRY_AGAIN, now).await?;
            return Ok(Moved::Waits);
        }
        Err(Obstacle::Refused) => return fail(db, payout, Failure::TransferRefused, now).await,
    };
    let next = Payout {
        status: PayoutStatus::Processing,
        waiting: None,
        tx_hash: Some(hex0x(&sending.hash)),
        sending: Some(sending.clone()),
        due: now.plus(LOOK_AGAIN),
        ..payout.clone()
    };
    let mut writes = payout.moved(db, next)?;
    writes.push(nonce);
    match db.transact(&writes).await {
        Ok(()) => {}
        // Another process moved it or took the nonce. The next run sees the result.
        Err(WriteError::Refused(_)) => return Ok(Moved::Waits),
        Err(WriteError::Failed(error)) => return Err(error),
    }
    send(treasury, payout, &sending).await;
    Ok(Moved::Sent)
}

/// Errors are only logged: the next check reads the chain.
async fn send(treasury: &Treasury, payout: &Payout, sending: &payout::Sending) {
    if let Err(error) = treasury.broadcast(payout, sending).await {
        log::failure("a payout could not be broadcast", &format_args!("{}: {error}", payout.id));
    }
}

/// Checks a completed payout again until its block is final.
async fn confirm(
    db: &Db,
    treasury: &Treasury,
    payout: &Payout,
    transaction: String,
    now: Timestamp,
) -> Result<Moved, StoreError> {
    let paid_at = payout.processed.unwrap_or(payout.created);
    let is_final = treasury.is_final(&transaction).await.map_err(StoreError::new)?;
    let is_final = is_final || paid_at.plus(FINAL_AT_LAST) <= now;
    let due = now.plus(LOOK_WHETHER_FINAL);
    let next = Payout { is_final, due, tx_hash: Some(transaction), in_doubt: None, waiting: None, ..payout.clone() };
    move_to(db, payout, next).await?;
    Ok(Moved::Confirmed)
}

/// Checks a payout that may be on chain.
async fn follow(db: &Db, treasury: &Treasury, payout: &Payout, now: Timestamp) -> Result<Moved, StoreError> {
    let Some(sending) = &payout.sending else {
        return Err(StoreError::new("a payout in processing has no transaction"));
    };
    let seen = treasury.look(payout, sending, now).await.map_err(StoreError::new)?;
    let looked = Payout { in_doubt: None, waiting: None, ..payout.clone() };
    match seen {
        Seen::Paid { transaction } if payout.status == PayoutStatus::Completed => {
            confirm(db, treasury, payout, transaction, now).await
        }
        Seen::Paid { transaction } => {
            let told = told(db, payout, &transaction, now).await?;
            let ended = payout::end(db, payout, &End::Paid { transaction }, &told, now).await?;
            Ok(if ended { Moved::Completed } else { Moved::Waits })
        }
        Seen::Doubtful(failure) => {
            let since = payout.in_doubt.filter(|(before, _)| *before == failure).map_or(now, |(_, since)| since);
            if payout.in_doubt.is_some() && treasury::stands(failure, since, now) {
                return fail(db, payout, failure, now).await;
            }
            look_again(db, Payout { in_doubt: Some((failure, since)), ..looked }, payout, now).await
        }
        Seen::Waiting => look_again(db, looked, payout, now).await,
        Seen::Outgrown(raised) => {
            let next = Payout { tx_hash: Some(hex0x(&raised.hash)), sending: Some(raised.clone()), ..looked };
            // Stored before it is sent: either transaction may be mined, so both must be checked later.
            if !move_to(db, payout, Payout { due: now.plus(LOOK_AGAIN), ..next }).await? {
                return Ok(Moved::Waits);
            }
            send(treasury, payout, &raised).await;
            Ok(Moved::Raised)
        }
        // Nodes may have dropped a transaction whose fee is too low.
        Seen::Capped => {
            send(treasury, payout, sending).await;
            look_again(db, Payout { waiting: Some(Waiting::FeesTooHigh), ..looked }, payout, now).await
        }
        Seen::Lost => {
            send(treasury, payout, sending).await;
            let moved = look_again(db, looked, payout, now).await?;
            if payout.status != PayoutStatus::Completed {
                return Ok(moved);
            }
            log::failure("a payout is no longer on chain, and was sent again", &payout.id);
            Ok(Moved::Reopened)
        }
        Seen::Unclear(why) => {
            log::failure("a payout needs an operator", &format_args!("{}: {why}", payout.id));
            look_again(db, looked, payout, now).await
        }
    }
}

async fn fail(db: &Db, payout: &Payout, failure: Failure, now: Timestamp) -> Result<Moved, StoreError> {
    log::failure("a payout failed", &format_args!("{} ({failure:?})", payout.id));
    let ended = payout::end(db, payout, &End::Failed(failure), &[], now).await?;
    Ok(if ended { Moved::Failed } else { Moved::Waits })
}

async fn wait(db: &Db, payout: &Payout, waiting: Waiting, pause: Duration, now: Timestamp) -> Result<(), StoreError> {
    let next = Payout { waiting: Some(waiting), due: now.plus(pause), ..payout.clone() };
    move_to(db, payout, next).await.map(drop)
}

async fn look_again(db: &Db, looked: Payout, payout: &Payout, now: Timestamp) -> Result<Moved, StoreError> {
    move_to(db, payout, Payout { due: now.plus(LOOK_AGAIN), ..looked }).await?;
    Ok(Moved::Waits)
}

/// `false` means that another process moved it. That is harmless.
async fn move_to(db: &Db, payout: &Payout, next: Payout) -> Result<bool, StoreError> {
    match db.transact(&payout.moved(db, next)?).await {
        Ok(()) => Ok(true),
        Err(WriteError::Refused(_)) => Ok(false),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// The writes that notify the wallet's owner and its agent's webhooks.
async fn told(db: &Db, payout: &Payout, transaction: &str, now: Timestamp) -> Result<Vec<Write>, StoreError> {
    let about = json!({
        "payout_id": payout.id, "soul": payout.soul, "amount_usdc": payout.amount.to_string(), "tx_hash": transaction,
    });
    let note = Notification {
        kind: NotificationKind::PayoutCompleted,
        title: format!("{} USDC were paid out", payout.amount),
        body: Some(format!("The earnings of {} are in your wallet.", payout.soul)),
        payload: Some(about.clone()),
    };
    let (agent, cause) = (AgentId::of(payout.wallet), payout.id.to_string());
    let event = Event::new(agent, EventKind::PayoutCompleted, &cause, payout.created, about);
    let outgoing = outbox::put(db, &event, now).await?;
    let told = notifications::raise_for(db, agent, note, &cause, payout.created, now)?;
    Ok(std::iter::once(told).chain(outgoing.writes()).collect())
}
