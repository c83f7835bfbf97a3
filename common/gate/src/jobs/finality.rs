//! Checks settled payments again: a chain may replace its latest blocks, and a payment that was counted is then gone.
//!
//! The paid path writes nothing for this. The jobs table's stream delivers settlements in batches, and each batch becomes
//! one row ([`note`]) with a TTL. The scheduler passes over the rows twice, each pass with a mark of how far it has come:
//! after a minute, while a lost payment may still be valid, and after twenty minutes, when its block is final. A payment
//! that is still there needs nothing more. A lost one is sent again:
//!
//! ```text
//! settled ──► its transaction moves the money ──► nothing
//!        └──► it does not ──► claimed again, counted in its payer's exposure ──► settled
//!                                                                           └──► refused: the operator bears the loss
//! ```
//!
//! Credits that were bought with, or credited back for, a payment that never comes become a debt (`ledger::debt`).

use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use base::ids::RequestId;
use futures_util::future::join_all;
use platform::http::log;
use platform::providers::chain::{Chain, NonceUse};
use platform::store::due;
use platform::store::lists::List;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};

use super::job::{self, Job, Settlement};
use super::store;

/// Number of partitions for the rows.
const SHARDS: u8 = 4;
/// Rows read from one shard in one query.
const ROWS: usize = 20;
/// Delay of the first pass. Blocks are rarely replaced after this long, and a payment lost in a replaced one is mostly
/// still valid.
const SOON: Duration = Duration::from_secs(60);
/// Delay of the second pass. The blocks of an L2 are final after about fifteen minutes.
const LATE: Duration = Duration::from_secs(20 * 60);
/// A row is given up after this long if its chain never reports a final block.
const FINAL_AT_LAST: Duration = Duration::from_secs(24 * 3600);
/// Delay before a row is checked again that is not final yet.
const NOT_YET: Duration = Duration::from_secs(5 * 60);
/// How far back the use of a nonce is searched for, in ranges of blocks: more than two days on an L2.
const LOOK_BACK_RANGES: u64 = 20;
const KEEP_SECS: i64 = 3 * 24 * 3600;
/// Bytes of a job's id in a row.
const ID_BYTES: usize = 16;

/// The jobs that were settled in one batch of changes.
#[derive(Serialize, Deserialize)]
struct Row {
    sk: String,
    /// Their ids, concatenated.
    #[serde(with = "serde_bytes")]
    jobs: Vec<u8>,
    /// Unix seconds after which the row may be deleted.
    expires: i64,
}

impl Row {
    fn jobs(&self) -> impl Iterator<Item = RequestId> {
        self.jobs.as_chunks::<ID_BYTES>().0.iter().map(|id| RequestId::from_bytes(*id))
    }

    fn written(&self) -> Timestamp {
        let millis = self.sk.split('#').next().and_then(|millis| millis.parse().ok());
        Timestamp::from_millis(millis.unwrap_or_default())
    }
}

/// How far a shard's rows have been checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    /// The last row that the first pass has checked.
    #[serde(default)]
    soon: Option<String>,
    /// The last row whose payments are all final.
    #[serde(default)]
    late: Option<String>,
    /// No second pass before this time.
    #[serde(default)]
    again: Option<Timestamp>,
}

fn partition(shard: u8) -> String {
    format!("SETTLED#{shard}")
}

fn mark_key(shard: u8) -> Key {
    Key::new(partition(shard), "MARK")
}

/// Stores the jobs that were settled in a batch of changes, to check them later.
pub async fn note(db: &Db, batch: &str, jobs: &[RequestId], now: Timestamp) -> Result<(), StoreError> {
    if jobs.is_empty() {
        return Ok(());
    }
    let shard = digest::sha256(batch.as_bytes())[0] % SHARDS;
    let row = Row {
        sk: due::row(now, batch),
        jobs: jobs.iter().flat_map(|id| *id.bytes()).collect(),
        expires: now.secs() + KEEP_SECS,
    };
    let put = Write::put(&db.tables.ledger, Key::new(partition(shard), &row.sk), &row)?;
    db.write(put.into_list(List::Settled, now)).await?;
    Ok(())
}

/// Whether no payment is left to check, now or later.
pub async fn is_over(db: &Db) -> Result<bool, StoreError> {
    for shard in 0..SHARDS {
        let mark: Mark = db.get(&db.tables.ledger, mark_key(shard)).await?.unwrap_or_default();
        let partition = partition(shard);
        let behind = mark.late.map(|sk| Key::new(&partition, &sk));
        let rows = due::rows(&db.tables.ledger, &partition, due::FAR, 1)?.after(behind);
        if !db.query::<Row>(rows).await?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The result of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Looked {
    /// Payments that were checked.
    pub asked: u32,
    /// Payments that are gone from the chain and are sent again.
    pub reopened: u32,
    /// For how many seconds the oldest row that is left has been due.
    pub behind_secs: u64,
    /// Shards whose rows could not all be checked. The log says why.
    pub failed: u32,
}

/// Checks what is due, for at most `limit`. What is left, or fails now, is left for the next look.
pub async fn look(db: &Db, chain: &Chain, now: Timestamp, limit: Duration) -> Looked {
    let begun = Instant::now();
    let (soon_until, late_until) = (begun + limit / 2, begun + limit);
    let (head, last_final) = (OnceCell::new(), OnceCell::new());
    let look = Look { db, chain, now, soon_until, late_until, head, last_final };
    // At once: a shard that fails or has a long backlog does not delay the others.
    let shards = join_all((0..SHARDS).map(|shard| look.shard(shard))).await;
    let looked = shards.into_iter().fold(Looked::default(), |sum, shard| Looked {
        asked: sum.asked + shard.asked,
        reopened: sum.reopened + shard.reopened,
        behind_secs: sum.behind_secs.max(shard.behind_secs),
        failed: sum.failed + shard.failed,
    });
    if looked.reopened > 0 {
        log::event("settlements_reopened", serde_json::json!(looked));
    }
    looked
}

/// The two passes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Soon,
    Late,
}

/// One run. Requests the chain's head and its last final block at most once each, and only if they are needed.
struct Look<'a> {
    db: &'a Db,
    chain: &'a Chain,
    now: Timestamp,
    /// Each pass has half of the time, so that a backlog of the first does not stop the second.
    soon_until: Instant,
    late_until: Instant,
    /// When the latest block was made.
    head: OnceCell<Timestamp>,
    last_final: OnceCell<u64>,
}

impl Look<'_> {
    async fn shard(&self, shard: u8) -> Looked {
        let mut looked = Looked::default();
        if let Err(error) = self.passes(shard, &mut looked).await {
            log::failure("settled payments could not be checked again", &error);
            looked.failed = 1;
        }
        looked
    }

    async fn passes(&self, shard: u8, looked: &mut Looked) -> Result<(), StoreError> {
        let table = &self.db.tables.ledger;
        let before: Mark = self.db.get(table, mark_key(shard)).await?.unwrap_or_default();
        let mut mark = before.clone();
        let soon = self.along(shard, Pass::Soon, &mut mark.soon, looked).await;
        let mut late = Ok(true);
        if mark.again.is_none_or(|again| again <= self.now) {
            late = self.along(shard, Pass::Late, &mut mark.late, looked).await;
            mark.again = matches!(late, Ok(false)).then(|| self.now.plus(NOT_YET));
        }
        // Stored even if a row failed, so that the rows before it are not checked again.
        if mark != before {
            self.db.write(Write::put(table, mark_key(shard), &mark)?).await?;
        }
        soon.and(late).map(drop)
    }

    /// Checks the rows of a shard after the mark, and moves the mark, until no due row or no time is left. `false` if it
    /// stopped at a row that has to be checked again.
    async fn along(
        &self,
        shard: u8,
        pass: Pass,
        mark: &mut Option<String>,
        looked: &mut Looked,
    ) -> Result<bool, StoreError> {
        let partition = partition(shard);
        let (delay, deadline) = match pass {
            Pass::Soon => (SOON, self.soon_until),
            Pass::Late => (LATE, self.late_until),
        };
        let until = self.now.minus(delay);
        // A mark written by a process whose clock is ahead: DynamoDB rejects a start key beyond the range.
        while mark.as_ref().is_none_or(|mark| *mark <= due::row(until, "~")) {
            let behind = mark.as_ref().map(|sk| Key::new(&partition, sk));
            let rows = due::rows(&self.db.tables.ledger, &partition, until, ROWS)?.after(behind);
            let rows = self.db.query::<Row>(rows).await?;
            let is_last = rows.len() < ROWS;
            for row in rows {
                let checked = timeout_at(deadline, Box::pin(self.row(&row, pass, looked))).await;
                let is_done = checked.unwrap_or_else(|_| Err(StoreError::new("the time for this look is over")));
                if !matches!(is_done, Ok(true)) {
                    let behind = until.secs().saturating_sub(row.written().secs());
                    looked.behind_secs = looked.behind_secs.max(u64::try_from(behind).unwrap_or_default());
                    return is_done;
                }
                *mark = Some(row.sk);
            }
            if is_last {
                break;
            }
        }
        Ok(true)
    }

    /// Checks the payments of a row. `false` if this pass has to check the row again.
    async fn row(&self, row: &Row, pass: Pass, looked: &mut Looked) -> Result<bool, StoreError> {
        let keys: Vec<Key> = row.jobs().map(job::key).collect();
        let jobs: Vec<Option<Job>> = self.db.batch_get(&self.db.tables.jobs, &keys, false).await?;
        let settled = |job: &Job| job.settlement == Settlement::Settled && job.payment.is_some();
        let (open, ended): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().flatten().filter(settled).partition(|job| job.open.is_some());
        let hashes: Vec<String> = ended.iter().filter_map(|job| job.transaction.clone()).collect();
        let receipts = self.chain.receipts(&hashes).await.map_err(StoreError::new)?;
        let with_hash = ended.iter().filter(|job| job.transaction.is_some());
        let mut all_final = true;
        for (job, receipt) in with_hash.zip(receipts) {
            let Some(payment) = &job.payment else { continue };
            looked.asked += 1;
            match receipt.filter(|receipt| self.chain.carries(receipt, payment)) {
                Some(receipt) => all_final &= pass == Pass::Soon || receipt.block <= self.last_final().await?,
                None if self.is_gone(job).await? => {
                    let transaction = job.transaction.as_deref().unwrap_or_default();
                    log::failure(
                        "a settled payment is no longer on chain and is sent again",
                        &format_args!("job {}, transaction {transaction}", job.request_id),
                    );
                    looked.reopened += u32::from(store::reopen(self.db, job, self.now).await?);
                }
                None => {}
            }
        }
        let is_done = pass == Pass::Soon || all_final || row.written().plus(FINAL_AT_LAST) <= self.now;
        if is_done && pass == Pass::Late && !open.is_empty() {
            // Jobs still being worked on are checked again later: a payment is only reopened when nobody holds its job.
            let open: Vec<RequestId> = open.iter().map(|job| job.request_id).collect();
            note(self.db, &format!("{}~", row.sk.rsplit('#').next().unwrap_or_default()), &open, self.now).await?;
        }
        Ok(is_done)
    }

    /// Whether a payment that its transaction no longer moves has to be sent again.
    async fn is_gone(&self, job: &Job) -> Result<bool, StoreError> {
        let Some(payment) = &job.payment else { return Ok(false) };
        // A node whose head is older than the settlement is behind, and its answer means nothing.
        if self.head().await? < job.updated {
            return Err(StoreError::new("the node is behind the settlements to check"));
        }
        Ok(match self.chain.nonce_use(payment, LOOK_BACK_RANGES).await.map_err(StoreError::new)? {
            NonceUse::ByThisTransfer(transaction) => job.transaction.as_ref() != Some(&transaction),
            NonceUse::Unused | NonceUse::Otherwise => true,
            NonceUse::Untraceable => {
                log::failure("a settled payment cannot be found on chain", &job.request_id);
                false
            }
        })
    }

    async fn head(&self) -> Result<Timestamp, StoreError> {
        let asked = || async {
            let head = self.chain.head().await.map_err(StoreError::new)?;
            Ok(Timestamp::from_secs(i64::try_from(head.at_secs).map_err(StoreError::new)?))
        };
        self.head.get_or_try_init(asked).await.copied()
    }

    async fn last_final(&self) -> Result<u64, StoreError> {
        let asked = || async { self.chain.last_final_block().await.map_err(StoreError::new) };
        self.last_final.get_or_try_init(asked).await.copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_fifty_costs_one_write_unit() {
        let jobs: Vec<RequestId> = (0..50_u8).map(|id| RequestId::from_bytes([id; 16])).collect();
        let at = Timestamp::from_secs(1_795_000_000);
        let row = Row {
            sk: due::row(at, format!("{0}-{0}", "4".repeat(38))),
            jobs: jobs.iter().flat_map(|id| *id.bytes()).collect(),
            expires: 1_795_000_000,
        };
        assert_eq!(row.jobs().collect::<Vec<_>>(), jobs);
        assert_eq!(row.written(), at);
        assert!(row.sk.len() + row.jobs.len() + "pkSETTLED#0skjobsexpires".len() + 8 <= 1024);
    }
}
