//! A purchase in a shop, from the confirmation at the provider to the parcel.
//!
//! | item (table jobs) | key |
//! |---|---|
//! | an order | `ORDER#<request>` / `ORDER` |
//! | the order that may confirm an offer of the provider | `OFFER#<provider>#<id>` / `OFFER` |
//! | when an order is looked at next | `ORDERDUE#<0..3>` / `<due>#<request>` |
//!
//! ```text
//! pending ──► submitting ──► placed ──► (parcels, until they have arrived)
//!    │             ├───────► failed     nothing was bought: everything comes back
//!    └► failed     └───────► unknown    charged; looked up until the provider says what became of it
//! ```
//!
//! An order is written as `submitting` before its offer is confirmed, and an offer is confirmed once. What became of a confirmation that
//! was not answered is looked up. The address is not stored here: the provider has it.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use ledger::returned::Paid;
use platform::store::{self, Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use crate::tracking::Tracking;

/// Partitions of the due list.
pub const SHARDS: u8 = 4;
/// How long an order can be read.
pub const KEPT: Duration = Duration::from_secs(180 * 24 * 3600);
/// An offer is confirmed at most so long after the job began.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(600);
/// An offer that still waits for its confirmation then was never confirmed: the provider lets offers expire after 45 minutes.
const NEVER_CONFIRMED_AFTER: Duration = Duration::from_secs(3600);
/// An order whose fate is not known then ends as `unknown`.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// When a job must end at once: an unanswered confirmation may still arrive within this time.
const IN_FLIGHT: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Not confirmed.
    Pending,
    /// Confirmed, or about to be.
    Submitting,
    Placed,
    Failed,
    Unknown,
}

impl Stage {
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Pending => "pending",
            Stage::Submitting => "submitting",
            Stage::Placed => "placed",
            Stage::Failed => "failed",
            Stage::Unknown => "unknown",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    pub request: RequestId,
    pub agent: AgentId,
    /// The provider's id of the offer.
    pub offer: String,
    pub title: String,
    pub url: String,
    pub quantity: u32,
    /// What the shop takes, in micro-USDC.
    pub total: Usdc,
    /// What the agent paid, in micro-USDC.
    pub price: Usdc,
    pub stage: Stage,
    pub at: Timestamp,
    /// When it was confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted: Option<Timestamp>,
    /// The shop's or the provider's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_id: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Tracking::is_empty")]
    pub tracking: Tracking,
    /// How it was paid, kept longer than its job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid: Option<Paid>,
    /// When it is looked at next; `None`: not any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Each change adds one.
    pub revision: u32,
    /// Unix seconds after which the row may be deleted.
    pub expires: i64,
}

/// An offer of a provider, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// The price is being found out.
    Begun,
    /// It can be confirmed.
    Ready(Cost),
    /// It could be confirmed, but not at a price in dollars.
    Unpriced,
    /// It was confirmed, and the order is on its way.
    Placing,
    Placed {
        order_id: Option<String>,
    },
    Failed {
        code: String,
    },
    /// The provider does not know it.
    Gone,
}

/// What a shop takes, in micro-USDC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    pub subtotal: Usdc,
    pub shipping: Usdc,
    pub tax: Usdc,
    pub total: Usdc,
}

/// What a run does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    Confirm,
    /// Look again after this time.
    Wait(Duration),
    Placed(Option<String>),
    /// Nothing was bought, for this reason: everything comes back.
    Fail(String),
    /// It may have been bought: it is charged, and looked up later.
    Unknown,
}

/// Decides what a run does. `offer`: `None` if the provider did not answer. `total`: what was quoted. `is_over`: the job must end now.
pub fn next(order: &Order, offer: Option<&Offer>, now: Timestamp, is_over: bool) -> Next {
    let fail = |why: &str| Next::Fail(why.to_owned());
    match (order.stage, order.submitted) {
        (Stage::Placed, _) => Next::Placed(order.order_id.clone()),
        (Stage::Failed, _) => Next::Fail(order.reason.clone().unwrap_or_else(|| "failed".to_owned())),
        (Stage::Unknown, _) => Next::Unknown,
        (Stage::Pending, _) | (Stage::Submitting, None) => match offer {
            _ if is_over => fail("given_up"),
            Some(Offer::Ready(cost)) if cost.total != order.total => fail("price_changed"),
            _ if now > order.at.plus(CONFIRMED_WITHIN) => fail("quote_expired"),
            Some(Offer::Ready(_)) => Next::Confirm,
            Some(Offer::Failed { code }) => Next::Fail(code.clone()),
            Some(Offer::Unpriced) => fail("unsupported_currency"),
            Some(Offer::Begun | Offer::Gone) => fail("quote_expired"),
            // Not by this order.
            Some(Offer::Placing | Offer::Placed { .. }) => fail("already_confirmed"),
            None => Next::Wait(pause(Duration::ZERO)),
        },
        (Stage::Submitting, Some(submitted)) => {
            let since = now.millis().saturating_sub(submitted.millis());
            let since = Duration::from_millis(u64::try_from(since).unwrap_or_default());
            match offer {
                Some(Offer::Placed { order_id }) => Next::Placed(order_id.clone()),
                Some(Offer::Failed { code }) => Next::Fail(code.clone()),
                Some(Offer::Begun | Offer::Ready(_) | Offer::Unpriced) if since > NEVER_CONFIRMED_AFTER => {
                    fail("not_confirmed")
                }
                Some(Offer::Begun | Offer::Ready(_) | Offer::Unpriced) if is_over && since > IN_FLIGHT => {
                    fail("not_confirmed")
                }
                _ if is_over || since > PATIENCE => Next::Unknown,
                _ => Next::Wait(pause(since)),
            }
        }
    }
}

/// The pause before the next look, so long after the confirmation.
fn pause(since: Duration) -> Duration {
    let secs = match since.as_secs() {
        0..15 => 1,
        15..180 => 5,
        180..1800 => 60,
        _ => 600,
    };
    Duration::from_secs(secs)
}

pub fn key(request: RequestId) -> Key {
    Key::new(format!("ORDER#{request}"), "ORDER")
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
        Key::new(due_partition(shard), store::due::row(self.due, self.request))
    }

    pub fn delete(&self, db: &Db) -> Write {
        Write::delete(&db.tables.jobs, self.key())
    }
}

fn due_partition(shard: u8) -> String {
    format!("ORDERDUE#{shard}")
}

/// The places of a partition that are due, the longest due first.
///
/// # Errors
/// If the database fails.
pub async fn due(db: &Db, shard: u8, now: Timestamp, limit: usize) -> Result<Vec<Due>, StoreError> {
    db.query(store::due::rows(&db.tables.jobs, &due_partition(shard), now, limit)?.latest()).await
}

/// The order of a job.
///
/// # Errors
/// If the database fails.
pub async fn load(db: &Db, request: RequestId) -> Result<Option<Order>, StoreError> {
    db.get_latest(&db.tables.jobs, key(request)).await
}

#[derive(Serialize)]
struct Holder {
    request: RequestId,
    expires: i64,
}

/// Writes a new order. False: another order may confirm its offer.
///
/// # Errors
/// If the database fails.
pub async fn begin(db: &Db, order: &Order) -> Result<bool, StoreError> {
    let jobs = &db.tables.jobs;
    let offer = Key::new(format!("OFFER#{}", order.offer), "OFFER");
    let holder = Holder { request: order.request, expires: order.expires };
    let writes = [
        Write::put(jobs, key(order.request), order)?.only_if_new(),
        Write::put(jobs, offer, &holder)?
            .only_if("attribute_not_exists(#request) OR #request = :mine")
            .bind("mine", order.request)?,
    ];
    match db.transact(&writes).await {
        Ok(()) => Ok(true),
        Err(WriteError::Refused(_)) => Ok(load(db, order.request).await?.is_some()),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// The writes that replace an order as read, with its new place in the due list. Refused if it was changed meanwhile. Its old place is
/// deleted by whoever finds it left behind: a role that may change orders may delete none.
///
/// # Errors
/// If a row cannot be written as an item.
pub fn replace(db: &Db, before: &Order, after: Order) -> Result<Vec<Write>, StoreError> {
    let after = Order { revision: before.revision + 1, ..after };
    let jobs = &db.tables.jobs;
    let mut writes = vec![
        Write::put(jobs, key(before.request), &after)?
            .only_if("#revision = :before")
            .bind("before", before.revision)?,
    ];
    if let Some(due) = after.due.filter(|_| before.due != after.due) {
        let place = Due { request: before.request, due };
        writes.push(Write::put(jobs, place.key(), &place)?);
    }
    Ok(writes)
}

/// Replaces an order. False: it was changed meanwhile.
///
/// # Errors
/// If the database fails.
pub async fn change(db: &Db, before: &Order, after: Order) -> Result<bool, StoreError> {
    match db.transact(&replace(db, before, after)?).await {
        Ok(()) => Ok(true),
        Err(WriteError::Refused(_)) => Ok(false),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use evm::Address;

    use super::*;

    fn order(stage: Stage, submitted: Option<i64>) -> Order {
        Order {
            request: RequestId::random(),
            agent: AgentId::of(Address::ZERO),
            offer: "ci_1".to_owned(),
            title: "A lamp".to_owned(),
            url: "https://shop.example/lamp".to_owned(),
            quantity: 1,
            total: Usdc::from_micro(20_000_000),
            price: Usdc::from_micro(21_000_000),
            stage,
            at: Timestamp::from_secs(1_000),
            submitted: submitted.map(Timestamp::from_secs),
            order_id: None,
            reason: None,
            tracking: Tracking::default(),
            paid: None,
            due: None,
            revision: 0,
            expires: 0,
        }
    }

    fn cost(total: u64) -> Offer {
        Offer::Ready(Cost { total: Usdc::from_micro(total), ..Cost::default() })
    }

    /// Each offer, for an order that was not confirmed.
    #[test]
    fn only_an_offer_at_the_quoted_price_is_confirmed() {
        let order = order(Stage::Pending, None);
        let at = |secs: i64| Timestamp::from_secs(1_000 + secs);
        let fail = |why: &str| Next::Fail(why.to_owned());
        for (offer, secs, is_over, wanted) in [
            (Some(cost(20_000_000)), 5, false, Next::Confirm),
            (Some(cost(20_000_000)), 601, false, fail("quote_expired")),
            (Some(cost(20_000_000)), 5, true, fail("given_up")),
            (Some(cost(20_000_001)), 5, false, fail("price_changed")),
            (Some(cost(19_000_000)), 5, false, fail("price_changed")),
            (Some(Offer::Begun), 5, false, fail("quote_expired")),
            (Some(Offer::Unpriced), 5, false, fail("unsupported_currency")),
            (Some(Offer::Gone), 5, false, fail("quote_expired")),
            (Some(Offer::Placing), 5, false, fail("already_confirmed")),
            (Some(Offer::Placed { order_id: None }), 5, false, fail("already_confirmed")),
            (Some(Offer::Failed { code: "out_of_stock".to_owned() }), 5, false, fail("out_of_stock")),
            (None, 5, false, Next::Wait(Duration::from_secs(1))),
            (None, 601, false, fail("quote_expired")),
        ] {
            assert_eq!(next(&order, offer.as_ref(), at(secs), is_over), wanted, "{offer:?} {secs} {is_over}");
        }
    }

    /// Each offer, at different times after a confirmation: it is never confirmed again.
    #[test]
    fn a_confirmed_offer_is_only_looked_up() {
        let order = order(Stage::Submitting, Some(1_000));
        let placed = || Next::Placed(Some("o1".to_owned()));
        let wait = |secs| Next::Wait(Duration::from_secs(secs));
        let fail = |why: &str| Next::Fail(why.to_owned());
        let bought = Offer::Placed { order_id: Some("o1".to_owned()) };
        for (offer, secs, is_over, wanted) in [
            (Some(bought.clone()), 5, false, placed()),
            (Some(bought.clone()), 90_000, true, placed()),
            (Some(Offer::Failed { code: "payment_failed".to_owned() }), 5, true, fail("payment_failed")),
            (Some(Offer::Placing), 5, false, wait(1)),
            (Some(Offer::Placing), 20, false, wait(5)),
            (Some(Offer::Placing), 600, false, wait(60)),
            (Some(Offer::Placing), 600, true, Next::Unknown),
            (Some(Offer::Placing), 90_000, false, Next::Unknown),
            // The confirmation may still arrive.
            (Some(cost(20_000_000)), 5, false, wait(1)),
            (Some(cost(20_000_000)), 200, true, Next::Unknown),
            (Some(cost(20_000_000)), 301, true, fail("not_confirmed")),
            (Some(cost(20_000_000)), 3_601, false, fail("not_confirmed")),
            (Some(Offer::Unpriced), 5, false, wait(1)),
            (Some(Offer::Gone), 3_601, false, wait(600)),
            (Some(Offer::Gone), 90_000, false, Next::Unknown),
            (None, 5, false, wait(1)),
            (None, 5, true, Next::Unknown),
            (None, 90_000, false, Next::Unknown),
        ] {
            let now = Timestamp::from_secs(1_000 + secs);
            assert_eq!(next(&order, offer.as_ref(), now, is_over), wanted, "{offer:?} {secs} {is_over}");
        }
    }
}
