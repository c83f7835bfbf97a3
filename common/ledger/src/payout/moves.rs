//! The moves that begin or end a payout and so change the balance. Each is one transaction.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use base::money::Usdc;
use evm::{Address, Word};
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use super::{Failure, LEAST, Payout, PayoutId, PayoutStatus, key, load};
use crate::account::{minus, plus};
use crate::earning::seller_partition;
use crate::seller::{self, About, Books, EntryKind};

/// How long an idempotency key is valid.
const NAMED_FOR: Duration = Duration::from_secs(2 * 24 * 3600);
/// Attempts when others change the balance at the same time.
const TRIES: usize = 20;

/// The caller's idempotency key (`Idempotency-Key`) with its request.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    pub key: &'a str,
    /// SHA-256 of the canonical body.
    pub body: &'a Word,
}

#[derive(Serialize, Deserialize)]
struct Named {
    payout: PayoutId,
    #[serde(with = "serde_bytes")]
    body: Word,
    /// Unix seconds; after that the key is free.
    expires: i64,
}

fn name_key(soul: &str, name: &str) -> Key {
    let digest = const_hex::encode(digest::sha256(name.as_bytes()));
    Key::new(seller_partition(soul), format!("PAYOUTNAME#{digest}"))
}

/// Why a payout cannot be requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    BelowLeast,
    /// The balance has only this much.
    Short {
        available: Usdc,
        /// This much more has not matured.
        maturing: Usdc,
    },
    /// This payout is still open.
    InFlight(PayoutId),
    /// The idempotency key was used for another request.
    NameReused,
    /// The guard failed: the wallet is no longer the linked one.
    Unlinked,
    /// Too many concurrent changes of the balance.
    Busy,
}

/// The payout requested with this idempotency key, or `NameReused` if the request was another one.
pub async fn named(
    db: &Db,
    soul: &str,
    name: Name<'_>,
    now: Timestamp,
) -> Result<Option<Result<Payout, Refusal>>, StoreError> {
    let named: Option<Named> = db.get_latest(&db.tables.ledger, name_key(soul, name.key)).await?;
    let Some(named) = named.filter(|named| named.expires > now.secs()) else { return Ok(None) };
    if named.body != *name.body {
        return Ok(Some(Err(Refusal::NameReused)));
    }
    Ok(load(db, soul, &named.payout).await?.map(Ok))
}

/// Requests a payout of `amount`, or of all that is available. Balance, payout, entry and idempotency key are written in one
/// transaction, together with the caller's check `guard`.
pub async fn request(
    db: &Db,
    soul: &str,
    wallet: Address,
    amount: Option<Usdc>,
    name: Option<Name<'_>>,
    guard: &Write,
    now: Timestamp,
) -> Result<Result<Payout, Refusal>, StoreError> {
    for _ in 0..TRIES {
        // Read the balance before the key. Both are written together, so a balance changed by our own first request is
        // never seen without its key.
        let balance = seller::load(db, soul).await?;
        if let Some(name) = name
            && let Some(known) = named(db, soul, name, now).await?
        {
            return Ok(known);
        }
        let available = balance.available();
        let short = Refusal::Short { available, maturing: balance.maturing };
        let wants_all = amount.is_none();
        let amount = amount.unwrap_or(available);
        if amount < LEAST {
            let is_waiting = wants_all && balance.maturing > Usdc::ZERO;
            return Ok(Err(if is_waiting { short } else { Refusal::BelowLeast }));
        }
        if let Some(id) = balance.in_flight {
            return Ok(Err(Refusal::InFlight(id)));
        }
        if amount > available {
            return Ok(Err(short));
        }
        let payout = Payout {
            id: PayoutId::new(now),
            soul: soul.to_owned(),
            amount,
            wallet,
            status: PayoutStatus::Pending,
            waiting: None,
            failure: None,
            sending: None,
            tx_hash: None,
            in_doubt: None,
            moves: 0,
            created: now,
            due: now,
            processed: None,
            is_final: false,
        };
        let mut books = Books::open(balance);
        books.balance.in_flight = Some(payout.id.clone());
        books.book(EntryKind::Payout, minus(amount)?, about(&payout), now, now)?;
        let mut writes = vec![guard.clone()];
        writes.extend(books.writes(db, soul)?);
        writes.push(Write::put(&db.tables.ledger, key(soul, &payout.id), &payout)?.only_if_new());
        writes.push(payout.waits(db)?);
        if let Some(name) = name {
            let named = Named { payout: payout.id.clone(), body: *name.body, expires: now.plus(NAMED_FOR).secs() };
            let write = Write::put(&db.tables.ledger, name_key(soul, name.key), &named)?;
            writes.push(write.only_if("attribute_not_exists(#pk) OR #expires <= :now").bind("now", now.secs())?);
        }
        match db.transact(&writes).await {
            Ok(()) => return Ok(Ok(payout)),
            Err(refused @ WriteError::Refused(_)) if refused.refused(0).is_some() => return Ok(Err(Refusal::Unlinked)),
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Ok(Err(Refusal::Busy))
}

fn about(payout: &Payout) -> About {
    About { cause: payout.id.to_string(), ..About::default() }
}

/// How a payout ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Paid { transaction: String },
    Failed(Failure),
}

/// A completed payout is checked again after this time.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Ends a payout, once: the record, the balance, the entry that returns the amount if it failed, and the writes in `with`.
/// A completed payout can only fail. `false` if somebody else moved it.
pub async fn end(db: &Db, payout: &Payout, end: &End, with: &[Write], now: Timestamp) -> Result<bool, StoreError> {
    let was_paid = payout.status == PayoutStatus::Completed;
    let mut next = Payout { processed: Some(now), waiting: None, in_doubt: None, ..payout.clone() };
    match end {
        End::Paid { transaction } => {
            next.status = PayoutStatus::Completed;
            next.tx_hash = Some(transaction.clone());
            next.due = now.plus(LOOK_AGAIN);
        }
        End::Failed(failure) => {
            next.status = PayoutStatus::Failed;
            next.failure = Some(*failure);
        }
    }
    let record = payout.moved(db, next)?;
    for _ in 0..TRIES {
        let mut books = Books::open(seller::load(db, &payout.soul).await?);
        if was_paid {
            // Another payout may be open by now.
            let left = books.balance.paid_out.checked_sub(payout.amount);
            books.balance.paid_out = left.ok_or_else(|| StoreError::new("less was paid out than is taken back"))?;
        } else {
            books.balance.in_flight = None;
        }
        match end {
            End::Paid { .. } => {
                let sum = books.balance.paid_out.checked_add(payout.amount);
                books.balance.paid_out = sum.ok_or_else(|| StoreError::new("more was paid out than can be counted"))?;
            }
            End::Failed(_) => {
                books.book(EntryKind::PayoutReturned, plus(payout.amount)?, about(payout), now, now)?;
            }
        }
        let mut writes = record.clone();
        writes.extend(books.writes(db, &payout.soul)?);
        writes.extend_from_slice(with);
        match db.transact(&writes).await {
            Ok(()) => return Ok(true),
            Err(refused @ WriteError::Refused(_)) if refused.refused(0).is_some() => return Ok(false),
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Err(StoreError::new("too many concurrent changes of the seller's balance"))
}
