//! Public totals of the service, added up off the call path.
//!
//! The jobs table's stream delivers changes in batches. Each batch is one transaction: the totals, a mark that the batch
//! was counted, and a mark for every agent seen for the first time. A batch that is delivered again finds its mark and
//! changes nothing, so the totals are exact.

use std::collections::BTreeSet;

use base::clock::Timestamp;
use ledger::payments::policy::HourlyExposure;
use platform::store::db::Key;
use platform::store::{Db, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::jobs::{Outcome, Settlement};

/// How long the mark of a batch is kept. It must be longer than a stream keeps its records.
const REMEMBER_BATCH_SECS: i64 = 3 * 24 * 3600;

/// The totals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Jobs that were completed.
    #[serde(default)]
    pub completed: u64,
    /// Jobs that were paid, failed and were credited back.
    #[serde(default)]
    pub failed: u64,
    /// Payments that arrived, in micro-USDC.
    #[serde(default)]
    pub volume: u64,
    /// Agents with at least one completed job.
    #[serde(default)]
    pub agents: u64,
}

/// The fields of a job that the totals need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobState<'a> {
    pub outcome: Option<Outcome>,
    pub settlement: Settlement,
    /// micro-USDC
    pub price: u64,
    pub agent: &'a str,
    /// The work runs before settlement.
    pub overlap: bool,
    /// It was settled before a chain reorganisation took the payment back.
    pub reorganized: bool,
    pub created: Timestamp,
}

impl JobState<'_> {
    /// The price in micro-USDC if it counts as unsettled exposure, else 0. A job that need not wait for settlement counts
    /// while its payment is open, and for ever if the payment was refused after the work was completed.
    fn unsettled(&self) -> i64 {
        let is_open = matches!(self.settlement, Settlement::Claimed | Settlement::Submitted);
        let is_lost = self.settlement == Settlement::Refused && self.outcome == Some(Outcome::Completed);
        if self.overlap && (is_open || is_lost) { i64::try_from(self.price).unwrap_or(i64::MAX) } else { 0 }
    }
}

/// The changes that a batch makes to the totals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    stats: Stats,
    agents: BTreeSet<String>,
    exposure: HourlyExposure,
}

impl Batch {
    /// Counts one change of a job, from `old` (`None` if it is new) to `new`.
    pub fn count(&mut self, old: Option<JobState<'_>>, new: JobState<'_>) {
        let ended_before = old.is_some_and(|old| old.outcome.is_some());
        let settled_before = old.is_some_and(|old| old.settlement == Settlement::Settled);
        if !ended_before {
            match new.outcome {
                Some(Outcome::Completed) => {
                    self.stats.completed += 1;
                    self.agents.insert(new.agent.to_owned());
                }
                // An unpaid job that fails does not count as our failure.
                Some(Outcome::Failed) if new.settlement == Settlement::Settled => self.stats.failed += 1,
                _ => {}
            }
        }
        if !settled_before && new.settlement == Settlement::Settled && !new.reorganized {
            self.stats.volume += new.price;
        }
        self.exposure.add(new.created, new.unsettled() - old.as_ref().map_or(0, JobState::unsettled));
    }

    fn is_empty(&self) -> bool {
        self.stats == Stats::default() && self.agents.is_empty() && self.exposure.is_empty()
    }
}

impl Stats {
    /// The body of `GET /v1/stats`.
    pub fn to_json(&self) -> Value {
        let ended = self.completed + self.failed;
        json!({
            "actions_executed": self.completed,
            "transaction_volume_cents": self.volume / 10_000,
            "active_agents": self.agents,
            "success_rate_bps": (self.completed * 10_000).checked_div(ended).unwrap_or(10_000),
        })
    }
}

fn totals_key() -> Key {
    Key::new("STATS", "TOTAL")
}

/// The totals so far.
pub async fn load(db: &Db) -> Result<Stats, StoreError> {
    Ok(db.get(&db.tables.ledger, totals_key()).await?.unwrap_or_default())
}

/// Adds a batch once. `id` must be the same on every delivery.
pub async fn add(db: &Db, id: &str, batch: &Batch, now_secs: i64) -> Result<(), StoreError> {
    if batch.is_empty() {
        return Ok(());
    }
    let mut unseen: Vec<&String> = batch.agents.iter().collect();
    loop {
        let expires = json!({"expires": now_secs + REMEMBER_BATCH_SECS});
        let mark = Write::put(&db.tables.ledger, Key::new(format!("BATCH#{id}"), "BATCH"), &expires)?.only_if_new();
        let expression = "ADD #completed :completed, #failed :failed, #volume :volume, #agents :agents";
        let totals = Write::update(&db.tables.ledger, totals_key(), expression)
            .bind("completed", batch.stats.completed)?
            .bind("failed", batch.stats.failed)?
            .bind("volume", batch.stats.volume)?
            .bind("agents", unseen.len())?;
        let mut writes = vec![mark, totals];
        let exposure = batch.exposure.writes(db)?;
        let before_agents = writes.len() + exposure.len();
        writes.extend(exposure);
        for agent in &unseen {
            let seen = Key::new(format!("AGENT#{agent}"), "SEEN");
            writes.push(Write::put(&db.tables.agents, seen, &json!({"at": now_secs}))?.only_if_new());
        }
        match db.transact(&writes).await {
            Ok(()) => return Ok(()),
            Err(WriteError::Failed(error)) => return Err(error),
            Err(WriteError::Refused(actions)) => {
                if actions.first().is_some_and(Option::is_some) {
                    return Ok(());
                }
                // Agents that were seen before are not counted again.
                let seen_before = |index: usize| actions.get(index + before_agents).is_some_and(Option::is_some);
                let before = unseen.len();
                unseen = unseen
                    .into_iter()
                    .enumerate()
                    .filter(|(index, _)| !seen_before(*index))
                    .map(|(_, agent)| agent)
                    .collect();
                if unseen.len() == before {
                    return Err(StoreError::new("the batch was refused without a cause"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(outcome: Option<Outcome>, settlement: Settlement) -> JobState<'static> {
        let created = Timestamp::from_secs(1_795_000_000);
        JobState { outcome, settlement, price: 5_000, agent: "a", overlap: false, reorganized: false, created }
    }

    #[test]
    fn unsettled_work_is_exposed_until_it_is_paid_or_fails() {
        use Outcome::{Completed, Failed};
        use Settlement::{Claimed, Refused, Settled, Submitted, Void};
        let of = |outcome, settlement| JobState { overlap: true, ..state(outcome, settlement) };
        for (end, left) in [
            (of(Some(Completed), Settled), 0),
            (of(Some(Failed), Void), 0),
            (of(Some(Failed), Refused), 0),
            (of(Some(Completed), Refused), 5_000),
            (of(Some(Completed), Submitted), 5_000),
        ] {
            let mut batch = Batch::default();
            let steps = [of(None, Claimed), of(Some(Completed), Claimed), end];
            batch.count(None, steps[0]);
            batch.count(Some(steps[0]), steps[1]);
            batch.count(Some(steps[1]), steps[2]);
            let mut expected = HourlyExposure::default();
            expected.add(end.created, left);
            assert_eq!(batch.exposure.is_empty(), left == 0, "{end:?}");
            assert_eq!(batch.exposure, expected, "{end:?}");
        }
        let mut batch = Batch::default();
        batch.count(None, state(None, Claimed));
        assert!(batch.is_empty(), "what waits for its money is no risk");
    }

    #[test]
    fn counts_each_change_once() {
        let mut batch = Batch::default();
        let claimed = state(None, Settlement::Claimed);
        let settled = state(None, Settlement::Settled);
        let completed = state(Some(Outcome::Completed), Settlement::Settled);
        batch.count(None, claimed);
        assert!(batch.is_empty());
        batch.count(Some(claimed), settled);
        batch.count(Some(settled), completed);
        batch.count(Some(completed), completed);
        assert_eq!(batch.stats, Stats { completed: 1, failed: 0, volume: 5_000, agents: 0 });
        assert_eq!(batch.agents.len(), 1);
    }

    #[test]
    fn overlapping_work_counts_when_completed_and_its_price_when_settled() {
        let mut batch = Batch::default();
        let worked = state(Some(Outcome::Completed), Settlement::Claimed);
        batch.count(Some(state(None, Settlement::Claimed)), worked);
        assert_eq!((batch.stats.completed, batch.stats.volume), (1, 0));
        batch.count(Some(worked), state(Some(Outcome::Completed), Settlement::Settled));
        assert_eq!((batch.stats.completed, batch.stats.volume), (1, 5_000));
    }

    #[test]
    fn only_paid_failures_are_failures() {
        let mut batch = Batch::default();
        batch.count(Some(state(None, Settlement::Claimed)), state(Some(Outcome::Failed), Settlement::Refused));
        batch.count(Some(state(None, Settlement::Claimed)), state(Some(Outcome::Failed), Settlement::Void));
        assert_eq!(batch.stats.failed, 0);
        batch.count(Some(state(None, Settlement::Settled)), state(Some(Outcome::Failed), Settlement::Settled));
        assert_eq!(batch.stats.failed, 1);
        assert_eq!(batch.stats.to_json()["success_rate_bps"], 0);
        assert_eq!(Stats::default().to_json()["success_rate_bps"], 10_000);
    }
}
