//! The job: one paid piece of work, from its claim to its end. The record, its states, and the rule that says what has
//! to be done next. Nothing here asks a database.
//!
//! Two things move independently: the *work* (an [`Outcome`], absent until it ends) and the *money* (a [`Settlement`]).
//!
//! ```text
//! work   (none) ──────────────► completed | failed
//! money  claimed ─► submitted ─► settled | refused
//!           │           └─► claimed (the transaction can no longer land)
//!           ├─► void (given up before anything was broadcast)
//!           └─◄ settled (a reorganisation of the chain took the transaction back)
//! ```

use std::str::FromStr;

use base::clock::Timestamp;
use base::ids::{AgentId, ReceiptId, RequestId};
use base::money::Usdc;
pub use base::tool_result::Progress;
use base::tool_result::{ErrorCode, Mode, ToolError};
use evm::authorization::Authorization;
use ledger::charge::{Charge, Purchase};
use ledger::earning::Sold;
use ledger::freeze::SERVICE_PAYEE;
use ledger::payments::reason::Reason;
use ledger::payments::settle::Intent;
use platform::store::Key;
use platform::store::lists::List;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::work::Usage;

/// A worker that has not come back after this long is taken for dead.
pub const LEASE: std::time::Duration = std::time::Duration::from_secs(40);
/// Settling is tried this often before it is given up, and then working is.
pub const MAX_ATTEMPTS: u32 = 5;
pub use tools::spec::RETENTION;
/// Open jobs are spread over this many partitions of their index.
pub const OPEN_SHARDS: u8 = 8;

/// Where the money is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// Ours to settle; nothing was broadcast.
    Claimed,
    /// An intent is written down: a transaction may be on its way.
    Submitted,
    /// The money arrived.
    Settled,
    /// It will not arrive.
    Refused,
    /// Given up before anything was broadcast; the payer may use the authorization again.
    Void,
}

/// How the work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Completed,
    Failed,
}

/// What polling reports (contract §23).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    Processing,
    Completed,
    Failed,
}

impl FromStr for Status {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Status, &'static str> {
        match text {
            "pending" => Ok(Status::Pending),
            "processing" => Ok(Status::Processing),
            "completed" => Ok(Status::Completed),
            "failed" => Ok(Status::Failed),
            _ => Err("must be pending, processing, completed or failed"),
        }
    }
}

/// What has to be done next for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Put the payment on chain.
    Settle,
    /// Find out what became of a payment that may be on chain.
    Reconcile,
    /// Run the tool.
    Work,
    /// Nothing.
    Rest,
}

/// The stored job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub request_id: RequestId,
    pub tool: String,
    pub agent: AgentId,
    /// JSON of the validated input.
    pub input: String,
    /// micro-USDC
    pub price: Usdc,
    pub receipt_id: ReceiptId,
    /// The signed payment; absent if credits pay for everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment: Option<Authorization>,
    pub charge: Charge,
    /// The checkout session that ordered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered: Option<Ordered>,
    /// What is sold for somebody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sold: Option<Sold>,
    /// Partition of the index of what a seller sold (see [`sold_by`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sold_by: Option<String>,
    /// The seller's own worker has the work, until then: no process of ours works on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_until: Option<Timestamp>,
    /// The worker took it up, and is believed to be alive until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_until: Option<Timestamp>,
    /// What the worker said of it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// 1 to 5, once the buyer rated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rating: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
    /// The buyer proved to be the one who rated. A rating without that counts for nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rating_proven: bool,
    pub settlement: Settlement,
    /// The work need not wait for the settlement (see `payments::policy`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overlap: bool,
    /// Its payer has not settled much yet: once it is done and paid, that counts (see `payments::policy`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vouches: bool,
    /// It was settled once, and then the chain forgot its payment (see [`super::finality`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reorganized: bool,
    /// What may be on chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Intent>,
    /// The transaction that moved the money, or the one that is expected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<String>,
    /// Why the money will not arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// JSON of the result, or of where it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<StoredResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// Paid back as credits, in micro-USDC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credited: Option<Usdc>,
    /// Of a price that was paid back in part: what was kept, in micro-USDC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Usdc>,
    /// What the work used, over all attempts. Written before it is used.
    #[serde(default, skip_serializing_if = "Usage::is_none")]
    pub used: Usage,
    /// How often the job was taken up. Also the fencing token: who holds an older number may no longer write.
    pub attempt: u32,
    /// The attempt in which the money arrived: the work is tried from there on.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub settled_in: u32,
    /// How often its work found no place in the executor: attempts that were none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub put_down: u32,
    /// Somebody subscribed to it once: its changes are pushed (see [`crate::push`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watched: bool,
    /// Until then nobody else takes the job up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Timestamp>,
    /// Who took it up last: tells our own write, retried after a lost answer, from another's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// Shard of the index of open jobs; absent once neither work nor money is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// When the sweeper looks at an open job (milliseconds).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Unix seconds after which the row may go.
    pub expires: i64,
}

/// A checkout session that was completed with a job (see `checkout`): there is one job for a session at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    pub session: Uuid,
    /// The agent platform whose session it is.
    pub platform: Uuid,
    /// Where the platform reached us, `https://host`: what it is told of the order begins with it.
    pub origin: String,
    /// The webhook endpoint that is told of the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
}

/// A result and where it came from (providers.md §1.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResult {
    pub place: Place,
    pub provider: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_request_id: Option<String>,
    pub mode: Mode,
}

/// Small results lie in the job's own item; large ones beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The JSON itself.
    Inline(String),
    /// Key in the blob store.
    Blob(String),
}

impl Job {
    pub fn status(&self) -> Status {
        match self.outcome {
            Some(Outcome::Completed) => Status::Completed,
            Some(Outcome::Failed) => Status::Failed,
            None if self.attempt == 0 => Status::Pending,
            None => Status::Processing,
        }
    }

    /// Where the money is (contract §23), independent of how the work went.
    pub fn settlement_status(&self) -> &'static str {
        match self.settlement {
            Settlement::Claimed | Settlement::Submitted => "pending",
            // Credits were here already.
            Settlement::Settled if self.payment.is_none() => "not_required",
            Settlement::Settled => "settled",
            Settlement::Refused | Settlement::Void => "failed",
        }
    }

    /// The work came before its payment and failed: nothing was charged, and nothing was wrong with the payment.
    pub fn failed_unpaid(&self) -> bool {
        let by_work = self.error.as_ref().is_some_and(|error| error.code != ErrorCode::PaymentFailed);
        self.settlement == Settlement::Void && by_work
    }

    /// What its charge is for.
    pub fn purchase(&self) -> Purchase<'_> {
        Purchase {
            agent: self.agent,
            tool: &self.tool,
            payee: self.payee(),
            request_id: self.request_id,
            receipt_id: &self.receipt_id,
        }
    }

    /// Who is paid, as the owner's rules name it: a soul's slug, or ourselves.
    pub fn payee(&self) -> &str {
        self.sold.as_ref().map_or(SERVICE_PAYEE, |sold| &sold.soul)
    }

    /// Whether a seller's worker has it at the moment.
    pub fn is_claimed(&self, now: Timestamp) -> bool {
        self.claimed_until.is_some_and(|until| now < until)
    }

    pub fn next_step(&self) -> Step {
        next_step(self.outcome, self.settlement, self.overlap)
    }

    /// Whether the next step was tried too often.
    pub fn is_worn_out(&self) -> bool {
        let tried = match self.settlement {
            Settlement::Settled => self.attempt.saturating_sub(self.settled_in).saturating_sub(self.put_down),
            _ => self.attempt,
        };
        self.outcome.is_none() && tried > MAX_ATTEMPTS
    }

    /// What of its price is kept if its work fails now: what was used of paid tools and of the model, as far as its buyer was
    /// told so before paying.
    pub fn kept_if_failed(&self) -> Usdc {
        let agreed = self.sold.as_ref().map(|sold| sold.kept_up_to).unwrap_or_default();
        self.used.total().min(agreed)
    }

    /// Whether it is to be forgotten: the row's own deletion comes whenever the database finds the time.
    pub fn is_forgotten(&self, now: Timestamp) -> bool {
        now.secs() >= self.expires
    }

    pub fn refusal(&self) -> Option<Reason> {
        self.refusal.as_deref().and_then(Reason::parse)
    }

    pub fn key(&self) -> Key {
        key(self.request_id)
    }

    /// Who brings it further, while it is open.
    pub fn lane(&self) -> Lane {
        self.open.as_deref().map_or(Lane::Tools, Lane::of_shard)
    }
}

/// The rule behind [`Job::next_step`], over nothing but the states.
pub fn next_step(outcome: Option<Outcome>, settlement: Settlement, overlap: bool) -> Step {
    match (outcome, settlement) {
        (_, Settlement::Submitted) => Step::Reconcile,
        (None, Settlement::Claimed) if overlap => Step::Work,
        (None, Settlement::Claimed) => Step::Settle,
        (None, Settlement::Settled) => Step::Work,
        // Done with the work, and only then with the money; or the chain forgot the money, and it is sent again.
        (Some(_), Settlement::Claimed) => Step::Settle,
        (Some(_), Settlement::Settled) | (_, Settlement::Refused | Settlement::Void) => Step::Rest,
    }
}

/// Moves the money may make. Everything else is a bug, and a test walks the whole table.
pub fn may_move(from: Settlement, to: Settlement) -> bool {
    use Settlement::{Claimed, Refused, Settled, Submitted, Void};
    matches!(
        (from, to),
        (Claimed, Submitted | Settled | Refused | Void)
            | (Submitted, Settled | Refused | Claimed | Submitted)
            // The chain forgot it.
            | (Settled, Claimed)
    )
}

/// Where a seller's jobs of one kind are listed: `<slug>#open`, `#completed` or `#failed`.
pub fn sold_by(soul: &str, outcome: Option<Outcome>) -> String {
    let word = match outcome {
        None => "open",
        Some(Outcome::Completed) => "completed",
        Some(Outcome::Failed) => "failed",
    };
    format!("{soul}#{word}")
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

pub fn key(request_id: RequestId) -> Key {
    Key::new(format!("JOB#{request_id}"), "JOB")
}

/// The job named by a key, as the index of open jobs gives it.
pub fn request_id_of(pk: &str) -> Option<RequestId> {
    pk.strip_prefix("JOB#")?.parse().ok()
}

/// Who brings an open job further: each kind has a queue, and shards of the index of open jobs, of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// The worker: our own tools, and what of souls is only settled and handed over.
    Tools,
    /// The executor, which has models and sellers' programs work for minutes.
    Souls,
}

const SOULS_SHARDS: &str = "OPEN#SOULS#";

/// The shard of the open index a job is found in.
pub fn open_shard(request_id: RequestId, lane: Lane) -> String {
    shard_name(request_id.bytes()[0] % OPEN_SHARDS, lane)
}

impl Lane {
    /// Whose shard of the open index this is.
    pub fn of_shard(shard: &str) -> Lane {
        if shard.starts_with(SOULS_SHARDS) { Lane::Souls } else { Lane::Tools }
    }

    /// The list of its open jobs.
    pub const fn list(self) -> List {
        match self {
            Lane::Tools => List::Tools,
            Lane::Souls => List::Souls,
        }
    }
}

pub fn shard_name(shard: u8, lane: Lane) -> String {
    match lane {
        Lane::Tools => format!("OPEN#{shard}"),
        Lane::Souls => format!("{SOULS_SHARDS}{shard}"),
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::AttributeValue;
    use evm::Address;
    use platform::store::db::Item;

    use super::*;

    const OUTCOMES: [Option<Outcome>; 3] = [None, Some(Outcome::Completed), Some(Outcome::Failed)];
    const SETTLEMENTS: [Settlement; 5] =
        [Settlement::Claimed, Settlement::Submitted, Settlement::Settled, Settlement::Refused, Settlement::Void];

    #[test]
    fn a_job_rests_exactly_when_neither_work_nor_money_is_open() {
        for outcome in OUTCOMES {
            for settlement in SETTLEMENTS {
                for overlap in [false, true] {
                    let step = next_step(outcome, settlement, overlap);
                    let money_is_open = matches!(settlement, Settlement::Submitted | Settlement::Claimed);
                    let work_is_open = outcome.is_none() && settlement == Settlement::Settled;
                    assert_eq!(
                        step == Step::Rest,
                        !money_is_open && !work_is_open,
                        "{outcome:?} {settlement:?} {overlap}"
                    );
                    if step == Step::Work {
                        assert!(outcome.is_none(), "work runs once");
                        assert!(settlement == Settlement::Settled || overlap, "work waits for the money");
                    }
                    if step == Step::Settle {
                        assert_eq!(settlement, Settlement::Claimed, "nothing is broadcast twice");
                    }
                }
            }
        }
    }

    /// What DynamoDB counts of an attribute's value (its documentation, "Item sizes and formats").
    fn size(value: &AttributeValue) -> usize {
        match value {
            AttributeValue::S(text) => text.len(),
            AttributeValue::N(number) => number.len().div_ceil(2) + 1,
            AttributeValue::B(bytes) => bytes.as_ref().len(),
            AttributeValue::M(map) => 3 + size_of_item(map) + map.len(),
            _ => 1,
        }
    }

    fn size_of_item(item: &Item) -> usize {
        item.iter().map(|(name, value)| name.len() + size(value)).sum()
    }

    /// Every write of an item costs a unit for each kilobyte of it.
    #[test]
    fn a_queued_job_on_its_way_to_the_chain_fits_a_kilobyte() {
        let now = Timestamp::from_secs(1_795_000_000);
        let request_id = RequestId::bought_with("quote", &[b"q"]);
        let hash = [0xff; 32];
        let wallet = Address::from_bytes([0xff; 20]);
        let mut valid_before = [0; 32];
        valid_before[28..].fill(0xff);
        let job = Job {
            request_id,
            tool: "web_read".to_owned(),
            agent: AgentId::of(wallet),
            input: format!(r#"{{"url":"https://example.com/{}"}}"#, "x".repeat(80)),
            price: Usdc::from_micro(2_000),
            receipt_id: ReceiptId::of(request_id, now),
            payment: Some(Authorization {
                from: wallet,
                to: wallet,
                value: valid_before,
                valid_after: valid_before,
                valid_before,
                nonce: hash,
                signature: vec![0xff; 65],
            }),
            charge: Charge { day: "2026-11-21".to_owned(), ..Charge::default() },
            ordered: None,
            sold: None,
            sold_by: None,
            handed_until: None,
            claimed_until: None,
            progress: None,
            rating: None,
            review: None,
            rating_proven: false,
            watched: false,
            settlement: Settlement::Submitted,
            overlap: false,
            vouches: true,
            reorganized: false,
            intent: Some(Intent {
                relayer: wallet,
                account_nonce: 1_000_000,
                gas_limit: 120_000,
                max_fee: 1_000_000_000,
                priority_fee: 1_000_000_000,
                hash,
                replaced: Default::default(),
            }),
            transaction: Some(evm::hex0x(&hash)),
            refusal: None,
            outcome: None,
            result: None,
            error: None,
            credited: None,
            kept: None,
            used: Usage::NONE,
            attempt: 1,
            settled_in: 0,
            put_down: 0,
            lease_until: Some(now),
            holder: Some(evm::hex0x(&[0xff; 8])),
            created: now,
            updated: now,
            open: Some(open_shard(request_id, Lane::Tools)),
            due: Some(now),
            expires: now.secs(),
        };
        let item: Item = serde_dynamo::to_item(&job).unwrap();
        let size = size_of_item(&item) + "pkJOB#".len() + 36 + "skJOB".len();
        assert!(size <= 1024, "{size} bytes: {item:?}");
        assert_eq!(serde_dynamo::from_item::<_, Job>(item).unwrap(), job, "and reads back");
    }

    #[test]
    fn final_settlements_never_move() {
        for from in [Settlement::Settled, Settlement::Refused, Settlement::Void] {
            for to in SETTLEMENTS {
                let is_forgotten = (from, to) == (Settlement::Settled, Settlement::Claimed);
                assert_eq!(may_move(from, to), is_forgotten, "{from:?} -> {to:?}");
            }
        }
        assert!(!may_move(Settlement::Submitted, Settlement::Void), "what may be on chain is not given up");
    }

    #[test]
    fn keys_read_back() {
        let request_id = RequestId::bought_with("quote", &[b"q"]);
        assert_eq!(request_id_of(&key(request_id).pk), Some(request_id));
        assert_eq!(request_id_of("PAYMENT#1"), None);
        for lane in [Lane::Souls, Lane::Tools] {
            assert_eq!(Lane::of_shard(&open_shard(request_id, lane)), lane);
        }
    }
}
