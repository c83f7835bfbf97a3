//! Figures about a soul's sales besides its ratings: distinct buyers, repeat buyers, refund rate and durations.
//!
//! Sales to a wallet that is or was the soul's own are left out, so that a seller cannot buy itself a reputation.
//! Purchases made before such a wallet was linked are removed when it is linked. After a payout to a wallet, what it buys
//! is left out; what it bought before stays, because a seller may pay out to anybody's address.
//!
//! Every write happens together with the seller's balance, under the balance's revision (`counting`).

use base::clock::Timestamp;
use base::ids::AgentId;
use base::money::Usdc;
use ledger::earning::{Earning, SaleEnd};
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ranking;
use super::soul::partition;

/// Number of recent executions whose durations are kept.
const SAMPLE: usize = 200;

/// The stored figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reputation {
    /// Completed sales, of services and of the text.
    pub completed: u64,
    /// Failed sales, which were refunded.
    pub refunded: u64,
    /// Distinct buyers of completed sales.
    pub buyers: u64,
    /// Buyers of more than one completed sale.
    pub repeat_buyers: u64,
    /// Sum of the buyers' weights ([`ranking::weight_of_buyer`]).
    #[serde(default)]
    pub backing: u64,
    /// Milliseconds from payment to result of the last executions, in counting order.
    pub durations: Vec<u32>,
}

/// One agent's purchases from a soul.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buyer {
    #[serde(default)]
    pub completed: u64,
    #[serde(default)]
    pub refunded: u64,
    /// Platform fees of the completed sales, in micro-USDC.
    #[serde(default)]
    pub fees: Usdc,
    /// The wallet is or was the soul's own (see [`super::wallet`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub linked: bool,
    /// When the first payout to this wallet was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paid_out_at: Option<Timestamp>,
}

impl Reputation {
    /// Counts an ended sale. A sale to the soul's own wallet changes only the buyer's row. One bought after a payout to the
    /// buyer changes nothing, so that [`Reputation::take_out`] removes only what was counted.
    pub fn count(&mut self, earning: &Earning, buyer: &mut Buyer) {
        if buyer.was_paid_before(earning.bought_at) {
            return;
        }
        let before = ranking::weight_of_buyer(buyer.fees);
        match earning.ended {
            SaleEnd::Completed => {
                buyer.completed += 1;
                buyer.fees = buyer.fees.checked_add(earning.sold.split.fee).unwrap_or(buyer.fees);
            }
            SaleEnd::Failed => buyer.refunded += 1,
        }
        if buyer.linked {
            return;
        }
        match earning.ended {
            SaleEnd::Failed => self.refunded += 1,
            SaleEnd::Completed => {
                self.completed += 1;
                self.backing += ranking::weight_of_buyer(buyer.fees) - before;
                self.buyers += u64::from(buyer.completed == 1);
                self.repeat_buyers += u64::from(buyer.completed == 2);
                if earning.sold.service.is_some() {
                    let millis = earning.ended_at.millis().saturating_sub(earning.bought_at.millis()).max(0);
                    self.durations.push(u32::try_from(millis).unwrap_or(u32::MAX));
                    let over = self.durations.len().saturating_sub(SAMPLE);
                    self.durations.drain(..over);
                }
            }
        }
    }

    /// Removes the purchases of a buyer that is the soul's own wallet. Their durations stay.
    pub fn take_out(&mut self, buyer: &mut Buyer) {
        if std::mem::replace(&mut buyer.linked, true) {
            return;
        }
        self.completed = self.completed.saturating_sub(buyer.completed);
        self.refunded = self.refunded.saturating_sub(buyer.refunded);
        self.backing = self.backing.saturating_sub(ranking::weight_of_buyer(buyer.fees));
        self.buyers = self.buyers.saturating_sub(u64::from(buyer.completed > 0));
        self.repeat_buyers = self.repeat_buyers.saturating_sub(u64::from(buyer.completed > 1));
    }

    /// A percentile of the durations, in seconds with one decimal; `None` without durations.
    fn percentile(&self, per_cent: usize) -> Option<f64> {
        let mut sorted = self.durations.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * per_cent).div_ceil(100).max(1);
        let millis = sorted.get(rank - 1)?;
        Some(f64::from(millis.saturating_add(50) / 100) / 10.0)
    }

    /// The public figures. Rates are from 0 to 1, or `null` without a basis.
    pub fn to_json(&self) -> Value {
        json!({
            "distinct_buyers": self.buyers,
            "repeat_rate": share(self.repeat_buyers, self.buyers),
            "refund_rate": share(self.refunded, self.completed + self.refunded),
            "median_seconds": self.percentile(50),
            "p95_seconds": self.percentile(95),
            "sample_size": self.completed + self.refunded,
        })
    }

    pub fn write(&self, db: &Db, soul: &str) -> Result<Write, StoreError> {
        Write::put(&db.tables.souls, key(soul), self)
    }
}

impl Buyer {
    /// Whether a payout to this wallet had been requested when it bought.
    pub fn was_paid_before(&self, bought: Timestamp) -> bool {
        self.paid_out_at.is_some_and(|paid| paid <= bought)
    }

    pub fn write(&self, db: &Db, soul: &str, agent: AgentId) -> Result<Write, StoreError> {
        Write::put(&db.tables.souls, buyer_key(soul, agent), self)
    }
}

/// With four decimals.
fn share(part: u64, whole: u64) -> Option<f64> {
    let parts = (u128::from(part) * 10_000).checked_div(u128::from(whole))?;
    u32::try_from(parts).ok().map(|parts| f64::from(parts) / 10_000.0)
}

fn key(soul: &str) -> Key {
    Key::new(partition(soul), "REPUTATION")
}

fn buyer_key(soul: &str, agent: AgentId) -> Key {
    Key::new(partition(soul), format!("BUYER#{agent}"))
}

/// The figures by a consistent read.
pub async fn load_latest(db: &Db, soul: &str) -> Result<Reputation, StoreError> {
    Ok(db.get_latest(&db.tables.souls, key(soul)).await?.unwrap_or_default())
}

/// An agent's purchases from a soul, by a consistent read.
pub async fn buyer(db: &Db, soul: &str, agent: AgentId) -> Result<Buyer, StoreError> {
    Ok(db.get_latest(&db.tables.souls, buyer_key(soul, agent)).await?.unwrap_or_default())
}

/// The public figures by an eventually consistent read.
pub async fn public(db: &Db, soul: &str) -> Result<Value, StoreError> {
    let reputation: Option<Reputation> = db.get(&db.tables.souls, key(soul)).await?;
    Ok(reputation.unwrap_or_default().to_json())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sample() {
        let of = |durations: &[u32]| Reputation { durations: durations.to_vec(), ..Reputation::default() };
        assert_eq!(of(&[]).percentile(50), None);
        assert_eq!(of(&[1234]).percentile(50), Some(1.2));
        assert_eq!(of(&[4000, 1000, 3000, 2000]).percentile(50), Some(2.0));
        let many: Vec<u32> = (1..=100).rev().map(|second| second * 1000).collect();
        assert_eq!((of(&many).percentile(50), of(&many).percentile(95)), (Some(50.0), Some(95.0)));
    }

    #[test]
    fn purchases_by_the_souls_own_wallet_are_removed_once() {
        let durations = vec![1];
        let mut reputation =
            Reputation { completed: 5, refunded: 2, buyers: 2, repeat_buyers: 1, backing: 5, durations };
        let fees = Usdc::from_micro(450_000);
        let mut buyer = Buyer { completed: 3, refunded: 1, fees, ..Buyer::default() };
        reputation.take_out(&mut buyer);
        let durations = vec![1];
        let after = Reputation { completed: 2, refunded: 1, buyers: 1, repeat_buyers: 0, backing: 2, durations };
        assert_eq!((&reputation, buyer.linked), (&after, true));
        reputation.take_out(&mut buyer);
        assert_eq!(reputation, after, "once");
    }
}
