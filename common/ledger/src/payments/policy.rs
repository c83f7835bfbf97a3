//! Whether work may start before its payment is settled. Normally the money comes first. Small prices are the exception,
//! because waiting for a block costs more than the risk. Three limits bound the risk:
//!
//! - One payer: its unsettled overlapping calls may not exceed what it has settled before, up to `OVERLAP_EXPOSURE_USDC`. A
//!   new wallet costs nothing, so it must pay first; many wallets together can take no more than they have paid. Both
//!   numbers are in items that the claim reads or writes anyway.
//! - All payers together, per hour: `OVERLAP_TOTAL_USDC`. The jobs table's stream adds up the sum, and each process reads
//!   it every few seconds, so no call writes a shared counter. Until the sum is read, the first limit holds.
//! - One call: `OVERLAP_BELOW_USDC`.

use std::collections::BTreeMap;
use std::time::Duration;

use base::clock::{Lately, Timestamp};
use base::ids::AgentId;
use base::money::Usdc;
use platform::config::PaymentConfig;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use crate::account::{self, Account};

/// Cache TTL of the exposure of all payers.
const SEEN_FOR: Duration = Duration::from_secs(5);
/// Hourly sums are kept this long, for operators.
const KEEP_SECS: i64 = 30 * 24 * 3600;

/// The amount of a payer's work that may be unsettled at once, in micro-USDC.
pub fn room(account: &Account, config: &PaymentConfig) -> Usdc {
    config.overlap_exposure.min(account.settled)
}

/// Whether work at this price may overlap its settlement.
pub fn may_overlap(price: Usdc, room: Usdc, config: &PaymentConfig) -> bool {
    price < config.overlap_below && price <= room
}

/// Whether this payer's settlements are still counted. They matter only until the room reaches its maximum.
pub fn counts(account: &Account, config: &PaymentConfig) -> bool {
    account.settled < config.overlap_exposure
}

/// The unsettled sum of a payer's overlapping calls.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Exposure {
    /// micro-USDC
    pub unsettled: Usdc,
}

fn key(agent: AgentId) -> Key {
    Key::new(format!("AGENT#{agent}"), "EXPOSURE")
}

/// The write that adds a call to its payer's exposure. Refused if there is no room: then the money comes first.
pub fn expose(db: &Db, agent: AgentId, price: Usdc, room: Usdc) -> Result<Write, StoreError> {
    let left = room.checked_sub(price).unwrap_or_default();
    Write::update(&db.tables.ledger, key(agent), "ADD #unsettled :price")
        .only_if("attribute_not_exists(#unsettled) OR #unsettled <= :left")
        .bind("price", price)?
        .bind("left", left)
}

/// The write that adds a call whose settlement disappeared from the chain. It ignores the room.
pub fn expose_anyway(db: &Db, agent: AgentId, price: Usdc) -> Result<Write, StoreError> {
    Write::update(&db.tables.ledger, key(agent), "ADD #unsettled :price").bind("price", price)
}

/// The write that removes a settled (or never started) call. A call whose work was done and never paid is not removed, so
/// its payer must pay first from then on.
pub fn unexpose(db: &Db, agent: AgentId, price: Usdc) -> Result<Write, StoreError> {
    Write::update(&db.tables.ledger, key(agent), "ADD #unsettled :minus").bind("minus", account::minus(price)?)
}

pub async fn exposure(db: &Db, agent: AgentId) -> Result<Exposure, StoreError> {
    Ok(db.get(&db.tables.ledger, key(agent)).await?.unwrap_or_default())
}

/// Changes of the unsettled sum by hour of the call, in micro-USDC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HourlyExposure(BTreeMap<i64, i64>);

fn hour(at: Timestamp) -> i64 {
    at.secs().div_euclid(3600)
}

fn hour_key(hour: i64) -> Key {
    Key::new(format!("EXPOSED#{hour}"), "TOTAL")
}

impl HourlyExposure {
    pub fn is_empty(&self) -> bool {
        self.0.values().all(|change| *change == 0)
    }

    /// Adds `change` micro-USDC (which may be negative) to the hour of the call.
    pub fn add(&mut self, made: Timestamp, change: i64) {
        *self.0.entry(hour(made)).or_default() += change;
    }

    /// The writes that apply the changes. They are not idempotent: put them in the transaction that marks the batch as
    /// done.
    pub fn writes(&self, db: &Db) -> Result<Vec<Write>, StoreError> {
        let changed = self.0.iter().filter(|(_, change)| **change != 0);
        let write = |(hour, change): (&i64, &i64)| {
            Write::update(&db.tables.ledger, hour_key(*hour), "SET #expires = :expires ADD #unsettled :change")
                .bind("expires", hour * 3600 + KEEP_SECS)?
                .bind("change", change)
        };
        changed.map(write).collect()
    }
}

/// The unsettled sum of all payers' overlapping calls of this hour, in micro-USDC.
pub async fn unsettled(db: &Db, now: Timestamp) -> Result<i64, StoreError> {
    let row: Option<serde_json::Value> = db.get(&db.tables.ledger, hour_key(hour(now))).await?;
    Ok(row.and_then(|row| row["unsettled"].as_i64()).unwrap_or_default())
}

/// A process's cached view of the exposure of all payers.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Lately<i64>);

impl Gauge {
    /// Whether there is room for more unsettled work. False if the sum cannot be read.
    pub async fn has_room(&self, db: &Db, config: &PaymentConfig, now: Timestamp) -> bool {
        let known = match self.0.get(now, SEEN_FOR) {
            Some(known) => Ok(known),
            None => unsettled(db, now).await.inspect(|read| self.0.keep(now, *read)),
        };
        match known {
            Ok(unsettled) => account::plus(config.overlap_total).is_ok_and(|most| unsettled < most),
            Err(error) => {
                platform::http::log::failure("the exposure to all payers could not be read", &error);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use evm::Address;

    use super::*;

    #[test]
    fn only_small_prices_of_known_payers_overlap_settlement() {
        let config = PaymentConfig {
            pay_to: Address::ZERO,
            quote_ttl: Duration::ZERO,
            soul_quote_ttl: Duration::ZERO,
            one_quote_ttl: false,
            overlap_below: Usdc::from_micro(2_000),
            overlap_exposure: Usdc::from_micro(50_000),
            overlap_total: Usdc::from_micro(1_000_000),
            hold: Duration::ZERO,
            fee_cap_gwei: 1,
            gas_share_percent: 100,
            ether: Usdc::from_micro(3_000_000_000),
            card_dispute_window: Duration::ZERO,
        };
        let room_of = |settled| room(&Account { settled: Usdc::from_micro(settled), ..Account::default() }, &config);
        let may = |price, settled| may_overlap(Usdc::from_micro(price), room_of(settled), &config);
        assert!(may(1_000, 50_000) && may(1_000, 1_000));
        assert!(!may(1_000, 0), "a new wallet pays first");
        assert!(!may(1_000, 999), "never more unsettled than settled before");
        assert!(!may(2_000, 50_000), "work at or above the price limit waits for its money");
        assert_eq!(room_of(u64::MAX), config.overlap_exposure);
    }

    #[test]
    fn exposure_counts_in_the_hour_of_the_call() {
        let mut total = HourlyExposure::default();
        total.add(Timestamp::from_secs(3_599), 1_000);
        total.add(Timestamp::from_secs(3_600), 2_000);
        total.add(Timestamp::from_secs(7_199), -2_000);
        assert_eq!(total.0, BTreeMap::from([(0, 1_000), (1, 0)]));
        assert!(!total.is_empty());
        total.add(Timestamp::from_secs(0), -1_000);
        assert!(total.is_empty());
    }
}
