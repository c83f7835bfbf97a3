//! The job: one paid piece of work, from its claim to its end. Has the record, its states, and the rule for the next step.
//! Pure: no database here.
//!
//! Two things move independently: the work (an [`Outcome`], absent until it ends) and the money (a [`Settlement`]).
//!
//! ```text
//! work   (none) ──────────────► completed | failed
//! money  claimed ─► submitted ─► settled | refused
//!           │           └─► claimed (the transaction can no longer land)
//!           ├─► void (given up before anything was broadcast)
//!           └─◄ settled (a chain reorganisation took the transaction back)
//! ```

use std::str::FromStr;

use base::clock::Timestamp;
use base::ids::{AgentId, ReceiptId, RequestId};
use base::money::Usdc;
pub use base::tool_result::Progress;
use base::tool_result::{ErrorCode, Mode, ToolError};
use evm::Address;
use evm::authorization::Authorization;
use ledger::charge::{Charge, Purchase};
use ledger::cost::Cost;
use ledger::earning::Sold;
use ledger::freeze::SERVICE_PAYEE;
use ledger::payments::reason::Reason;
use ledger::payments::settle::Intent;
use ledger::receipt::{ExecutionStatus, ReceiptStatus};
use platform::store::Key;
use serde::{Deserialize, Serialize};
use tools::files;
pub use tools::spec::Lane;
use tools::spec::{TOP_UP, ToolSpec};
use uuid::Uuid;

use super::input::StoredInput;
use crate::work::Usage;

/// Duration of a lease. A worker that has not renewed it by then counts as crashed.
pub const LEASE: std::time::Duration = std::time::Duration::from_secs(40);
/// Most attempts at settlement. The work gets as many again.
pub const MAX_ATTEMPTS: u32 = 5;
pub use tools::spec::RETENTION;
/// Number of partitions of the index of open jobs.
pub const OPEN_SHARDS: u8 = 8;

/// The state of the money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// Not settled yet; nothing was broadcast.
    Claimed,
    /// An intent is stored, so a transaction may be on its way.
    Submitted,
    /// The money arrived.
    Settled,
    /// The money will not arrive.
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

/// The `status` that polling reports.
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

/// The next step of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Put the payment on chain.
    Settle,
    /// Find out whether a payment that may be on chain has landed.
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
    /// The owner's wallet, for work that buys for it ([`tools::spec::ToolSpec::buys`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wallet: Option<Address>,
    /// The validated input, or where it is stored.
    pub input: StoredInput,
    /// JSON of what an asked quote fixed for the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked: Option<String>,
    /// micro-USDC
    pub price: Usdc,
    pub receipt_id: ReceiptId,
    /// The signed payment; absent if credits pay for everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payment: Option<Authorization>,
    pub charge: Charge,
    /// The checkout session that ordered the job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered: Option<Ordered>,
    /// The soul's listing that was sold; absent for our own tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sold: Option<Sold>,
    /// Partition of the index of a seller's jobs (see [`sold_by`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sold_by: Option<String>,
    /// The seller's own worker has the work until then, so none of our processes works on it. For one of our own tools: it
    /// waits for an external event until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_until: Option<Timestamp>,
    /// One of our own tools has more to do, and is run again after a pause.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
    /// How often an outside event has woken it while it waited ([`platform::store::jobs::wake`]).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub woken: u32,
    /// The seller's worker claimed the work and counts as alive until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_until: Option<Timestamp>,
    /// The last progress report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// 1 to 5, once the buyer rated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rating: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
    /// The buyer was proven when it rated. An unproven rating does not count.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rating_proven: bool,
    pub settlement: Settlement,
    /// The work need not wait for settlement (see `ledger::payments::policy`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overlap: bool,
    /// The payer has settled little so far: this job, once completed and settled, adds to its record (see
    /// `ledger::payments::policy`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub vouches: bool,
    /// It was settled once, and a chain reorganisation took the payment back (see [`super::finality`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reorganized: bool,
    /// The transaction that may be on chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Intent>,
    /// The transaction that moved the money, or that is expected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<String>,
    /// Why the money will not arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The result, or where it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<StoredResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
    /// Credited back after a failure, in micro-USDC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credited: Option<Usdc>,
    /// What the completed work used of the price, in micro-USDC, if its tool reported that. The rest is credited when the
    /// job ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charged: Option<Usdc>,
    /// What completed work spent on other calls, in micro-USDC. Known only while the job ends; then its receipt has it.
    #[serde(skip)]
    pub passed_on: Option<Usdc>,
    /// The part of the price that was kept after a failure, in micro-USDC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Usdc>,
    /// Usage of paid tools and the model, over all attempts. Recorded before it is used.
    #[serde(default, skip_serializing_if = "Usage::is_none")]
    pub used: Usage,
    /// Number of times the job was leased. Also the fencing token: a process with an older number can no longer write.
    pub attempt: u32,
    /// The attempt in which the money arrived. Attempts at the work are counted from here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub settled_in: u32,
    /// Number of times no slot was free. These do not count as attempts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub put_down: u32,
    /// When a message was sent for it, if nobody has taken it up since. The message may wait in a backlog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_at: Option<Timestamp>,
    /// Somebody has subscribed to it, so its changes are pushed (see [`crate::push`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watched: bool,
    /// The end of the lease. No other process leases the job before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Timestamp>,
    /// Random id of the process that leased it last. Distinguishes our own write, repeated by the SDK after a lost answer,
    /// from another process's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// Shard of the index of open jobs; absent once neither work nor money is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<String>,
    /// When the sweeper looks at the open job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
    /// Unix seconds after which the row may be deleted.
    pub expires: i64,
}

/// The checkout session that a job completes. A session has one job at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ordered {
    pub session: Uuid,
    /// The agent platform that owns the session.
    pub platform: Uuid,
    /// The origin at which the platform called us, `https://host`. Links in order updates begin with it.
    pub origin: String,
    /// The webhook endpoint for updates of the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
}

/// A result and its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredResult {
    pub place: Place,
    pub provider: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_request_id: Option<String>,
    pub mode: Mode,
}

/// The place of a stored result: small ones in the job's item, large ones in a blob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The JSON itself.
    Inline(String),
    /// Key in the blob store.
    Blob(String),
}

impl Job {
    /// A job whose money is here and whose work has not begun: nobody holds it, and it is due now. It takes its lane from the tool.
    pub fn begun(
        tool: &ToolSpec,
        agent: AgentId,
        request_id: RequestId,
        input: StoredInput,
        price: Usdc,
        charge: Charge,
        now: Timestamp,
    ) -> Job {
        Job {
            request_id,
            tool: tool.name.to_owned(),
            agent,
            wallet: None,
            input,
            locked: None,
            price,
            receipt_id: ReceiptId::of(request_id, now),
            payment: None,
            charge,
            ordered: None,
            sold: None,
            sold_by: None,
            handed_until: None,
            goes_on: false,
            woken: 0,
            claimed_until: None,
            progress: None,
            rating: None,
            review: None,
            rating_proven: false,
            settlement: Settlement::Settled,
            overlap: false,
            vouches: false,
            reorganized: false,
            intent: None,
            transaction: None,
            refusal: None,
            outcome: None,
            result: None,
            error: None,
            credited: None,
            charged: None,
            passed_on: None,
            kept: None,
            used: Usage::NONE,
            attempt: 0,
            settled_in: 0,
            put_down: 0,
            queued_at: None,
            watched: false,
            lease_until: None,
            holder: None,
            created: now,
            updated: now,
            open: Some(open_shard(request_id, tool.lane)),
            due: Some(now),
            expires: now.plus(tool.retention).secs(),
        }
    }

    pub fn status(&self) -> Status {
        match self.outcome {
            Some(Outcome::Completed) => Status::Completed,
            Some(Outcome::Failed) => Status::Failed,
            None if self.attempt == 0 => Status::Pending,
            None => Status::Processing,
        }
    }

    /// The state of the money as polling reports it, independent of the work.
    pub fn settlement_status(&self) -> &'static str {
        match self.settlement {
            Settlement::Claimed | Settlement::Submitted => "pending",
            // Credits were here already.
            Settlement::Settled if self.payment.is_none() => "not_required",
            Settlement::Settled => "settled",
            Settlement::Refused | Settlement::Void => "failed",
        }
    }

    /// The work ran before settlement and failed, so nothing was charged. The payment itself was not at fault.
    pub fn failed_unpaid(&self) -> bool {
        let by_work = self.error.as_ref().is_some_and(|error| error.code != ErrorCode::PaymentFailed);
        self.settlement == Settlement::Void && by_work
    }

    /// The purchase that its charge is for.
    pub fn purchase(&self) -> Purchase<'_> {
        Purchase {
            agent: self.agent,
            tool: &self.tool,
            payee: self.payee(),
            request_id: self.request_id,
            receipt_id: &self.receipt_id,
        }
    }

    /// The payee as the owner's rules name it: a soul's slug, or `SERVICE_PAYEE` for this service.
    pub fn payee(&self) -> &str {
        self.sold.as_ref().map_or(SERVICE_PAYEE, |sold| &sold.soul)
    }

    /// Whether a seller's worker has it now.
    pub fn is_claimed(&self, now: Timestamp) -> bool {
        self.claimed_until.is_some_and(|until| now < until)
    }

    pub fn next_step(&self) -> Step {
        next_step(self.outcome, self.settlement, self.overlap)
    }

    /// Whether the attempts at the next step are used up.
    pub fn is_worn_out(&self) -> bool {
        let tried = match self.settlement {
            Settlement::Settled => self.attempt.saturating_sub(self.settled_in).saturating_sub(self.put_down),
            _ => self.attempt,
        };
        self.outcome.is_none() && tried > MAX_ATTEMPTS
    }

    /// How much of the price is kept if the work fails now, in micro-USDC: what it used of paid tools and the model, at
    /// most what the buyer was told before paying.
    pub fn kept_if_failed(&self) -> Usdc {
        let agreed = self.sold.as_ref().map(|sold| sold.kept_up_to).unwrap_or_default();
        self.used.total().min(agreed)
    }

    /// How much of the price is kept for completed work, in micro-USDC.
    pub fn kept_if_completed(&self) -> Usdc {
        self.charged.unwrap_or(self.price).min(self.price)
    }

    /// State of its money, as the receipt has it.
    pub fn money(&self) -> ReceiptStatus {
        match self.settlement {
            Settlement::Claimed | Settlement::Submitted => ReceiptStatus::Pending,
            Settlement::Settled => ReceiptStatus::Settled,
            Settlement::Refused | Settlement::Void => ReceiptStatus::Failed,
        }
    }

    /// State of its work, as the receipt has it.
    pub fn work(&self) -> ExecutionStatus {
        match self.outcome {
            None => ExecutionStatus::Pending,
            Some(Outcome::Completed) => ExecutionStatus::Completed,
            Some(Outcome::Failed) => ExecutionStatus::Failed,
        }
    }

    /// What it costs.
    pub fn cost(&self) -> Cost {
        Cost {
            charged: self.price,
            credits: self.charge.credits,
            kept: self.kept,
            money: self.money(),
            work: self.work(),
            buys_credits: self.tool == TOP_UP.name,
        }
    }

    /// Whether the row has expired. DynamoDB deletes it some time later.
    pub fn is_forgotten(&self, now: Timestamp) -> bool {
        now.secs() >= self.expires
    }

    pub fn refusal(&self) -> Option<Reason> {
        self.refusal.as_deref().and_then(Reason::parse)
    }

    pub fn key(&self) -> Key {
        key(self.request_id)
    }

    /// The owner of its files.
    pub fn files(&self) -> files::Owner {
        files::Owner { request_id: self.request_id, price: self.price }
    }

    /// Which queue the job belongs to while it is open.
    pub fn lane(&self) -> Lane {
        self.open.as_deref().map_or(Lane::Tools, lane_of)
    }
}

/// The rule behind [`Job::next_step`].
pub fn next_step(outcome: Option<Outcome>, settlement: Settlement, overlap: bool) -> Step {
    match (outcome, settlement) {
        (_, Settlement::Submitted) => Step::Reconcile,
        (None, Settlement::Claimed) if overlap => Step::Work,
        (None, Settlement::Claimed) => Step::Settle,
        (None, Settlement::Settled) => Step::Work,
        // The work ran before settlement, or a chain reorganisation took the payment back: settle now.
        (Some(_), Settlement::Claimed) => Step::Settle,
        (Some(_), Settlement::Settled) | (_, Settlement::Refused | Settlement::Void) => Step::Rest,
    }
}

/// Legal transitions of the settlement. A test checks the whole table.
pub fn may_move(from: Settlement, to: Settlement) -> bool {
    use Settlement::{Claimed, Refused, Settled, Submitted, Void};
    matches!(
        (from, to),
        (Claimed, Submitted | Settled | Refused | Void)
            | (Submitted, Settled | Refused | Claimed | Submitted)
            // A chain reorganisation took it back.
            | (Settled, Claimed)
    )
}

/// Index partition of a seller's jobs with this outcome: `<slug>#open`, `#completed` or `#failed`.
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
    Key::of_job(request_id)
}

/// The job id in a key of the index of open jobs.
pub fn request_id_of(pk: &str) -> Option<RequestId> {
    pk.strip_prefix("JOB#")?.parse().ok()
}

const SOULS_SHARDS: &str = "OPEN#SOULS#";
const BROWSER_SHARDS: &str = "OPEN#BROWSER#";

/// The job's shard of the index of open jobs.
pub fn open_shard(request_id: RequestId, lane: Lane) -> String {
    shard_name(request_id.bytes()[0] % OPEN_SHARDS, lane)
}

/// The lane that a shard belongs to.
pub fn lane_of(shard: &str) -> Lane {
    match shard {
        _ if shard.starts_with(SOULS_SHARDS) => Lane::Souls,
        _ if shard.starts_with(BROWSER_SHARDS) => Lane::Browser,
        _ => Lane::Tools,
    }
}

pub fn shard_name(shard: u8, lane: Lane) -> String {
    match lane {
        Lane::Tools => format!("OPEN#{shard}"),
        Lane::Souls => format!("{SOULS_SHARDS}{shard}"),
        Lane::Browser => format!("{BROWSER_SHARDS}{shard}"),
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::AttributeValue;
    use platform::store::db::Item;

    use super::*;

    const OUTCOMES: [Option<Outcome>; 3] = [None, Some(Outcome::Completed), Some(Outcome::Failed)];
    const SETTLEMENTS: [Settlement; 5] =
        [Settlement::Claimed, Settlement::Submitted, Settlement::Settled, Settlement::Refused, Settlement::Void];

    #[test]
    fn a_job_rests_exactly_when_nothing_is_open() {
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

    /// Size of an attribute value as DynamoDB counts it (its documentation, "Item sizes and formats").
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

    /// A write costs one unit per kilobyte of the item.
    #[test]
    fn a_submitted_job_fits_in_one_kilobyte() {
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
            wallet: None,
            input: StoredInput::Inline(format!(r#"{{"url":"https://example.com/{}"}}"#, "x".repeat(80))),
            locked: None,
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
            goes_on: false,
            woken: 0,
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
            charged: None,
            passed_on: None,
            kept: None,
            used: Usage::NONE,
            attempt: 1,
            settled_in: 0,
            put_down: 0,
            queued_at: None,
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
    fn only_a_reorganisation_moves_a_final_settlement() {
        for from in [Settlement::Settled, Settlement::Refused, Settlement::Void] {
            for to in SETTLEMENTS {
                let is_forgotten = (from, to) == (Settlement::Settled, Settlement::Claimed);
                assert_eq!(may_move(from, to), is_forgotten, "{from:?} -> {to:?}");
            }
        }
        assert!(!may_move(Settlement::Submitted, Settlement::Void), "what may be on chain is not given up");
    }

    #[test]
    fn keys_parse_back_to_their_ids() {
        let request_id = RequestId::bought_with("quote", &[b"q"]);
        assert_eq!(request_id_of(&key(request_id).pk), Some(request_id));
        assert_eq!(request_id_of("PAYMENT#1"), None);
        for lane in Lane::ALL {
            assert_eq!(lane_of(&open_shard(request_id, lane)), lane);
        }
    }
}
