//! Settled payments, looked at again: a chain may exchange its last blocks, and then a payment that was counted is gone.
//!
//! The paid path writes nothing for this. The jobs table's stream brings settlements in batches, and a batch becomes one row
//! ([`note`]), which is deleted by its age. The scheduler goes along the rows twice, each time with a mark of how far it has
//! come: after a minute, while a payment that is gone may still be valid, and after twenty, when the chain calls its block
//! final. A payment that is there is done with. One that is gone is sent again:
//!
//! ```text
//! settled ──► its transaction moves the money ──► nothing
//!        └──► it does not ──► claimed again, on its payer's exposure ──► settled
//!                                                                   └──► refused: the operator bears it
//! ```
//!
//! What was bought or paid back in credits with a payment that never comes is owed (`ledger::debt`).

use std::sync::OnceLock;
use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use base::ids::RequestId;
use platform::http::log;
use platform::providers::chain::{Chain, NonceUse};
use platform::store::due;
use platform::store::lists::List;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::job::{self, Job, Settlement};
use super::store;

/// Rows are spread over this many partitions.
const SHARDS: u8 = 4;
/// Rows taken from one shard in one look.
const ROWS: usize = 20;
/// Blocks are seldom exchanged after this long; what was sent in one that was is mostly still valid.
const SOON: Duration = Duration::from_secs(60);
/// The blocks of an L2 are final after some fifteen minutes.
const LATE: Duration = Duration::from_secs(20 * 60);
/// A chain that calls nothing final is not waited for any longer.
const FINAL_AT_LAST: Duration = Duration::from_secs(24 * 3600);
/// How long until what is not final yet is asked for again.
const NOT_YET: Duration = Duration::from_secs(5 * 60);
/// How far back the use of a nonce is looked for, in ranges of blocks: more than two days on an L2.
const LOOK_BACK_RANGES: u64 = 20;
const KEEP_SECS: i64 = 3 * 24 * 3600;
/// Bytes of a job's id in a row.
const ID_BYTES: usize = 16;

/// Jobs that were settled in one batch of changes.
#[derive(Serialize, Deserialize)]
struct Row {
    sk: String,
    /// Their ids, one after the other.
    #[serde(with = "serde_bytes")]
    jobs: Vec<u8>,
    /// Unix seconds after which the row may go.
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

/// How far a shard's rows have been looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    /// The last row that was looked at soon.
    #[serde(default)]
    soon: Option<String>,
    /// The last row all of whose payments are final.
    #[serde(default)]
    late: Option<String>,
    /// The next one is not final before then.
    #[serde(default)]
    again: Option<Timestamp>,
}

fn partition(shard: u8) -> String {
    format!("SETTLED#{shard}")
}

fn mark_key(shard: u8) -> Key {
    Key::new(partition(shard), "MARK")
}

/// Notes the jobs that were settled in a batch of changes, for later.
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

/// Whether no payment is left to be looked at, now or later.
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

/// What a look came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Looked {
    /// Payments that were asked for.
    pub asked: u32,
    /// Payments that are gone from the chain, and are sent again.
    pub reopened: u32,
}

/// Looks at what is due. What cannot be looked at now is left for the next time.
pub async fn look(db: &Db, chain: &Chain, now: Timestamp) -> Result<Looked, StoreError> {
    let look = Look { db, chain, now, head: OnceLock::new(), last_final: OnceLock::new() };
    let (mut looked, mut failed) = (Looked::default(), None);
    for shard in 0..SHARDS {
        // A shard that cannot be looked at does not keep the others waiting.
        if let Err(error) = look.shard(shard, &mut looked).await {
            failed = Some(error);
        }
    }
    if looked.reopened > 0 {
        log::event("settlements_reopened", serde_json::json!(looked));
    }
    failed.map_or(Ok(looked), Err)
}

/// When rows are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Soon,
    Late,
}

/// One look, which asks the chain for its head and its last final block once, and only if there is something to look at.
struct Look<'a> {
    db: &'a Db,
    chain: &'a Chain,
    now: Timestamp,
    /// When the last block was made.
    head: OnceLock<Timestamp>,
    last_final: OnceLock<u64>,
}

impl Look<'_> {
    async fn shard(&self, shard: u8, looked: &mut Looked) -> Result<(), StoreError> {
        let table = &self.db.tables.ledger;
        let before: Mark = self.db.get(table, mark_key(shard)).await?.unwrap_or_default();
        let mut mark = before.clone();
        let soon = self.along(shard, Pass::Soon, &mut mark.soon, looked).await;
        let mut late = Ok(true);
        if mark.again.is_none_or(|again| again <= self.now) {
            late = self.along(shard, Pass::Late, &mut mark.late, looked).await;
            mark.again = matches!(late, Ok(false)).then(|| self.now.plus(NOT_YET));
        }
        // Kept also if a row failed: what was looked at before it is not asked for again.
        if mark != before {
            self.db.write(Write::put(table, mark_key(shard), &mark)?).await?;
        }
        soon.and(late).map(drop)
    }

    /// Goes along the rows of a shard behind the mark, and moves it. `false` if a row has to be looked at again.
    async fn along(
        &self,
        shard: u8,
        pass: Pass,
        mark: &mut Option<String>,
        looked: &mut Looked,
    ) -> Result<bool, StoreError> {
        let partition = partition(shard);
        let until = self.now.minus(if pass == Pass::Soon { SOON } else { LATE });
        // The mark of somebody whose clock is ahead: DynamoDB takes no start behind the end.
        if mark.as_ref().is_some_and(|mark| *mark > due::row(until, "~")) {
            return Ok(true);
        }
        let behind = mark.as_ref().map(|sk| Key::new(&partition, sk));
        let rows = due::rows(&self.db.tables.ledger, &partition, until, ROWS)?.after(behind);
        for row in self.db.query::<Row>(rows).await? {
            if !self.row(&row, pass, looked).await? {
                return Ok(false);
            }
            *mark = Some(row.sk);
        }
        Ok(true)
    }

    /// Looks at the payments of a row. `false` if that is not the last time in this pass.
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
                        "a settled payment is no longer on chain, and is sent again",
                        &format_args!("job {}, transaction {transaction}", job.request_id),
                    );
                    looked.reopened += u32::from(store::reopen(self.db, job, self.now).await?);
                }
                None => {}
            }
        }
        let is_done = pass == Pass::Soon || all_final || row.written().plus(FINAL_AT_LAST) <= self.now;
        if is_done && pass == Pass::Late && !open.is_empty() {
            // Work that takes longer: a payment is only sent again once nobody holds its job.
            let open: Vec<RequestId> = open.iter().map(|job| job.request_id).collect();
            note(self.db, &format!("{}~", row.sk.rsplit('#').next().unwrap_or_default()), &open, self.now).await?;
        }
        Ok(is_done)
    }

    /// Whether a payment whose transaction does not move it any more has to be sent again.
    async fn is_gone(&self, job: &Job) -> Result<bool, StoreError> {
        let Some(payment) = &job.payment else { return Ok(false) };
        // A node that has not seen the time of the settlement yet is behind, and says nothing of it.
        if self.head().await? < job.updated {
            return Err(StoreError::new("the node is behind the settlements that it is asked for"));
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
        if let Some(head) = self.head.get() {
            return Ok(*head);
        }
        let head = self.chain.head().await.map_err(StoreError::new)?;
        let at = Timestamp::from_secs(i64::try_from(head.at_secs).map_err(StoreError::new)?);
        Ok(*self.head.get_or_init(|| at))
    }

    async fn last_final(&self) -> Result<u64, StoreError> {
        if let Some(block) = self.last_final.get() {
            return Ok(*block);
        }
        let block = self.chain.last_final_block().await.map_err(StoreError::new)?;
        Ok(*self.last_final.get_or_init(|| block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_of_fifty_is_one_unit_to_write() {
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
