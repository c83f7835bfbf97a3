//! An order of a good, from the claim of its purchase until its money is the seller's or the buyer's again.
//!
//! | item (table jobs) | key |
//! |---|---|
//! | an order | `SALE#<request>` / `SALE` |
//! | an order in its seller's list | `SALES#<seller>` / `<placed>_<request>` |
//! | when time does something to an order | `SALEDUE#<0..3>` / `<due>#<request>` |
//!
//! ```text
//! held ──► placed ──► shipped ──► delivered ──► settled    the seller has earned
//!   │         └──────────┴────────────┴───────► cancelled  everything is paid back
//!   └──► dropped                                           the purchase failed: nothing is charged
//! ```
//!
//! `held`: the stock was taken in the transaction that claims the purchase. Every move is refused if the order has moved meanwhile. So it
//! is settled or cancelled, once.

use std::collections::BTreeMap;
use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use ledger::returned::Paid;
use platform::store::db::Query;
use platform::store::{self, Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::good::Seller;
use crate::order::Cost;

/// Partitions of the due list.
pub const SHARDS: u8 = 4;
/// How long an order can be read: all its times together are 92 days at most.
const KEPT: Duration = Duration::from_secs(400 * 24 * 3600);
const DAY: u64 = 24 * 3600;
/// A held order is looked at then: its job may have ended before its first run.
pub const HELD: Duration = Duration::from_secs(15 * 60);
/// Days beyond its handling time after which an order that was not sent is cancelled.
const GRACE_DAYS: u64 = 2;
/// Days after which an order that was sent counts as delivered.
const TRANSIT_DAYS: u64 = 14;
/// A new order is looked at then: how it was paid is kept before its job goes.
pub const FIRST_LOOK: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The stock is taken, and the purchase goes on.
    Held,
    /// The purchase failed, and the stock is back.
    Dropped,
    Placed,
    Shipped,
    Delivered,
    /// The seller has earned.
    Settled,
    /// Everything was paid back.
    Cancelled,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            State::Held => "held",
            State::Dropped => "dropped",
            State::Placed => "placed",
            State::Shipped => "shipped",
            State::Delivered => "delivered",
            State::Settled => "settled",
            State::Cancelled => "cancelled",
        }
    }

    /// Whether its seller has something to do with it.
    pub fn is_open(self) -> bool {
        matches!(self, State::Placed | State::Shipped | State::Delivered)
    }
}

/// What happens to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The purchase is charged.
    Place,
    /// The purchase failed.
    Drop,
    Ship,
    Deliver,
    Cancel,
    /// The time of its state is over.
    Due,
}

/// What follows from a move, in its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    /// The stock comes back.
    Restock,
    /// The stock and the buyer's money come back.
    Undo,
    /// The buyer's money comes back. What was sent is not in the stock.
    PayBack,
    Earn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is so already.
    Stay,
    To(State, Effect),
}

/// The order cannot do this in its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotNow;

/// Decides what becomes of an order.
///
/// # Errors
/// If it cannot be in this state.
pub fn next(state: State, event: Event) -> Result<Next, NotNow> {
    let to = |state, effect| Ok(Next::To(state, effect));
    match (state, event) {
        (State::Held, Event::Place) => to(State::Placed, Effect::Nothing),
        (State::Held, Event::Drop) => to(State::Dropped, Effect::Restock),
        (State::Placed, Event::Ship) => to(State::Shipped, Effect::Nothing),
        (State::Placed, Event::Cancel | Event::Due) => to(State::Cancelled, Effect::Undo),
        (State::Shipped, Event::Deliver | Event::Due) => to(State::Delivered, Effect::Nothing),
        (State::Shipped | State::Delivered, Event::Cancel) => to(State::Cancelled, Effect::PayBack),
        (State::Delivered, Event::Due) => to(State::Settled, Effect::Earn),
        (State::Dropped, Event::Drop)
        | (State::Placed, Event::Place)
        | (State::Shipped | State::Delivered | State::Settled, Event::Ship)
        | (State::Delivered | State::Settled, Event::Deliver)
        | (State::Cancelled, Event::Cancel)
        | (State::Held | State::Dropped | State::Settled | State::Cancelled, Event::Due) => Ok(Next::Stay),
        (State::Held, Event::Ship | Event::Deliver | Event::Cancel)
        | (State::Dropped, Event::Place | Event::Ship | Event::Deliver | Event::Cancel)
        | (State::Placed, Event::Drop | Event::Deliver)
        | (State::Shipped | State::Delivered, Event::Place | Event::Drop)
        | (State::Settled, Event::Place | Event::Drop | Event::Cancel)
        | (State::Cancelled, Event::Place | Event::Drop | Event::Ship | Event::Deliver) => Err(NotNow),
    }
}

/// How an order travels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parcel {
    pub carrier: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sale {
    pub request: RequestId,
    pub agent: AgentId,
    pub seller: Seller,
    pub good: String,
    pub variant: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    pub title: String,
    pub quantity: u32,
    /// What the seller earns.
    pub cost: Cost,
    /// The operator's, in micro-USDC.
    pub fee: Usdc,
    pub handling_days: u8,
    pub return_days: u8,
    pub state: State,
    pub at: Timestamp,
    /// When it came into each state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipped: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Timestamp>,
    /// Where it is sent, as JSON: only while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parcel: Option<Parcel>,
    /// Why it was dropped or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was paid back, in USDC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<String>,
    /// How it was paid, kept longer than its job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid: Option<Paid>,
    /// When time does something to it; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Each change adds one.
    pub revision: u32,
    /// Unix seconds after which the row may be deleted.
    pub expires: i64,
}

impl Sale {
    /// What the buyer paid, in micro-USDC.
    pub fn price(&self) -> Usdc {
        self.cost.total.checked_add(self.fee).unwrap_or(self.cost.total)
    }

    /// When its state ends by itself; `None`: never.
    pub fn deadline(&self) -> Option<Timestamp> {
        let after =
            |at: Option<Timestamp>, days: u64| Some(at.unwrap_or(self.at).plus(Duration::from_secs(days * DAY)));
        match self.state {
            State::Held => Some(self.at.plus(HELD)),
            State::Placed => after(self.placed, u64::from(self.handling_days) + GRACE_DAYS),
            State::Shipped => after(self.shipped, TRANSIT_DAYS),
            State::Delivered => after(self.delivered, u64::from(self.return_days)),
            State::Dropped | State::Settled | State::Cancelled => None,
        }
    }

    /// The order in this state from now on.
    pub fn moved(&self, state: State, now: Timestamp) -> Sale {
        let mut moved = Sale { state, ..self.clone() };
        match state {
            State::Placed => moved.placed = Some(now),
            State::Shipped => moved.shipped = Some(now),
            State::Delivered => moved.delivered = Some(now),
            State::Dropped | State::Settled | State::Cancelled => moved.closed = Some(now),
            State::Held => {}
        }
        if !state.is_open() {
            moved.address = None;
        }
        moved.due = moved.deadline();
        moved
    }

    pub fn expiry(at: Timestamp) -> i64 {
        at.plus(KEPT).secs()
    }
}

pub fn key(request: RequestId) -> Key {
    Key::new(format!("SALE#{request}"), "SALE")
}

fn list_partition(seller: &Seller) -> String {
    format!("SALES#{}", seller.slug)
}

#[derive(Serialize, Deserialize)]
struct Listed {
    request: RequestId,
    placed: Timestamp,
    expires: i64,
}

/// The write that puts a placed order into its seller's list.
///
/// # Errors
/// If the row cannot be written as an item.
pub fn list(db: &Db, sale: &Sale) -> Result<Write, StoreError> {
    let placed = sale.placed.unwrap_or(sale.at);
    let key = Key::new(list_partition(&sale.seller), format!("{:015}_{}", placed.millis().max(0), sale.request));
    Write::put(&db.tables.jobs, key, &Listed { request: sale.request, placed, expires: sale.expires })
}

/// Whether a text has the form of a cursor.
pub fn is_cursor(text: &str) -> bool {
    let Some((placed, request)) = text.split_once('_') else { return false };
    // The prefix of all rows: times of the next 27,000 years.
    let is_time = placed.len() == 15 && placed.starts_with('0') && placed.bytes().all(|byte| byte.is_ascii_digit());
    is_time && request.parse::<RequestId>().is_ok_and(|id| id.to_string() == request)
}

/// A page of a seller's orders, newest first, and the cursor of the next one. `after` is the cursor of a page before.
///
/// # Errors
/// If the database fails.
pub async fn of(
    db: &Db,
    seller: &Seller,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<Sale>, Option<String>), StoreError> {
    let partition = list_partition(seller);
    let start = after.map(|cursor| Key::new(partition.clone(), cursor));
    let query = Query::prefixed(&db.tables.jobs, &partition, "0", limit + 1)?.newest_first().after(start).latest();
    let mut rows: Vec<Listed> = db.query(query).await?;
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let cursor = |row: &Listed| format!("{:015}_{}", row.placed.millis().max(0), row.request);
    let next = rows.last().filter(|_| has_more).map(cursor);
    let keys: Vec<Key> = rows.iter().map(|row| key(row.request)).collect();
    let sales: Vec<Option<Sale>> = db.batch_get(&db.tables.jobs, &keys, true).await?;
    Ok((sales.into_iter().flatten().collect(), next))
}

/// A place in the due list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due {
    pub request: RequestId,
    pub due: Timestamp,
}

impl Due {
    fn key(&self) -> Key {
        let shard = sha256(self.request.bytes())[0] % SHARDS;
        Key::new(format!("SALEDUE#{shard}"), store::due::row(self.due, self.request))
    }

    /// The write that puts an order into the list.
    ///
    /// # Errors
    /// If the row cannot be written as an item.
    pub fn put(&self, db: &Db) -> Result<Write, StoreError> {
        Write::put(&db.tables.jobs, self.key(), self)
    }

    pub fn delete(&self, db: &Db) -> Write {
        Write::delete(&db.tables.jobs, self.key())
    }
}

/// The places of a partition that are due, the longest due first.
///
/// # Errors
/// If the database fails.
pub async fn due(db: &Db, shard: u8, now: Timestamp, limit: usize) -> Result<Vec<Due>, StoreError> {
    let partition = format!("SALEDUE#{shard}");
    db.query(store::due::rows(&db.tables.jobs, &partition, now, limit)?.latest()).await
}

/// The order of a purchase.
///
/// # Errors
/// If the database fails.
pub async fn load(db: &Db, request: RequestId) -> Result<Option<Sale>, StoreError> {
    db.get_latest(&db.tables.jobs, key(request)).await
}

/// The writes that replace an order as read, with its new place in the due list. Refused if it has changed meanwhile. Its old place is
/// deleted by the chore that finds it left behind: a role that may change orders may delete none.
///
/// # Errors
/// If a row cannot be written as an item.
pub fn replace(db: &Db, before: &Sale, after: &Sale) -> Result<Vec<Write>, StoreError> {
    let after = Sale { revision: before.revision + 1, ..after.clone() };
    let put = Write::put(&db.tables.jobs, key(before.request), &after)?
        .only_if("#revision = :before")
        .bind("before", before.revision)?;
    let mut writes = vec![put];
    if let Some(due) = after.due.filter(|_| before.due != after.due) {
        writes.push(Due { request: before.request, due }.put(db)?);
    }
    Ok(writes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [State; 7] = [
        State::Held,
        State::Dropped,
        State::Placed,
        State::Shipped,
        State::Delivered,
        State::Settled,
        State::Cancelled,
    ];
    const EVENTS: [Event; 6] = [Event::Place, Event::Drop, Event::Ship, Event::Deliver, Event::Cancel, Event::Due];

    /// Every state and every event. A letter is the state that follows, `.` no move, `-` a refusal.
    #[test]
    fn each_state_and_event_has_one_answer() {
        let wanted = [
            // place drop ship deliver cancel due
            (State::Held, "PD---."),
            (State::Dropped, "-.---."),
            (State::Placed, ".-S-CC"),
            (State::Shipped, "--.VCV"),
            (State::Delivered, "--..CE"),
            (State::Settled, "--..-."),
            (State::Cancelled, "----.."),
        ];
        let letter = |answer| match answer {
            Err(NotNow) => '-',
            Ok(Next::Stay) => '.',
            Ok(Next::To(State::Placed, Effect::Nothing)) => 'P',
            Ok(Next::To(State::Dropped, Effect::Restock)) => 'D',
            Ok(Next::To(State::Shipped, Effect::Nothing)) => 'S',
            Ok(Next::To(State::Delivered, Effect::Nothing)) => 'V',
            Ok(Next::To(State::Cancelled, Effect::Undo | Effect::PayBack)) => 'C',
            Ok(Next::To(State::Settled, Effect::Earn)) => 'E',
            Ok(other) => panic!("{other:?}"),
        };
        for (state, wanted) in wanted {
            let line: String = EVENTS.iter().map(|event| letter(next(state, *event))).collect();
            assert_eq!(line, wanted, "{state:?}");
        }
    }

    /// The stock comes back only if nothing was sent; the seller earns only what nobody was paid back.
    #[test]
    fn money_and_stock_follow_once() {
        for state in STATES {
            for event in EVENTS {
                let Ok(Next::To(after, effect)) = next(state, event) else { continue };
                let is_last = matches!(after, State::Settled | State::Cancelled | State::Dropped);
                assert_eq!(effect != Effect::Nothing, is_last, "{state:?} {event:?}");
                let restocks = matches!(effect, Effect::Restock | Effect::Undo);
                assert_eq!(restocks, matches!(state, State::Held | State::Placed) && is_last, "{state:?} {event:?}");
            }
            let is_last = matches!(state, State::Settled | State::Cancelled | State::Dropped);
            let moves = EVENTS.iter().any(|event| matches!(next(state, *event), Ok(Next::To(..))));
            assert_ne!(is_last, moves, "{state:?}");
        }
    }
}
