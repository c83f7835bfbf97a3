//! Jobs that no call buys: work that begins elsewhere (a phone rings), paid from its agent's credits.
//!
//! They are claimed without a gate: whoever begins one has no quote and no request, only the writes of one transaction.
//! From then on the engine, the sweeper and the receipt treat them as any job that waits for an outside event.

use base::ids::ReceiptId;
use ledger::charge::Charge;
use ledger::day;
use ledger::receipt::{self, ExecutionStatus, Judged, Receipt, ReceiptStatus};
use platform::store::{Db, StoreError, Write};
use serde_json::Value;
use tools::NewJob;

use super::input::StoredInput;
use super::job::{self, Job, Settlement};
use super::store;
use crate::work::Usage;

/// The writes that begin the job: account, entry, job, receipt, day. Without a price there is neither entry nor day. They belong
/// into one transaction with the record of what began it; it is refused by the account if the rules changed or the credits do not
/// suffice, by the job if it began before, and by the day if a cap of the budget has no room.
pub fn begin(db: &Db, new: &NewJob) -> Result<Vec<Write>, StoreError> {
    let job = new_job(new);
    let mut writes = job.charge.take(db, job.purchase(), None, new.rules, new.now)?;
    writes.push(store::create(db, &job)?);
    writes.push(receipt::create(db, &new_receipt(new, &job))?);
    writes.extend(job.charge.count(db, job.purchase(), new.budget.as_ref(), None, new.now)?);
    Ok(writes)
}

fn new_job(new: &NewJob) -> Job {
    let (request_id, now) = (new.request_id, new.now);
    Job {
        request_id,
        tool: new.tool.name.to_owned(),
        agent: new.agent,
        input: StoredInput::Inline(Value::Object(new.input.clone()).to_string()),
        locked: None,
        price: new.price,
        receipt_id: ReceiptId::of(request_id, now),
        payment: None,
        charge: Charge {
            credits: new.price,
            card: new.card.min(new.price),
            counted: new.price,
            day: day::name(now),
            token: None,
            for_life: false,
        },
        ordered: None,
        sold: None,
        sold_by: None,
        handed_until: Some(new.until),
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
        open: Some(job::open_shard(request_id, new.tool.lane)),
        due: Some(new.look),
        expires: now.plus(new.tool.retention).secs(),
    }
}

fn new_receipt(new: &NewJob, job: &Job) -> Receipt {
    Receipt {
        receipt_id: job.receipt_id.clone(),
        agent_id: job.agent,
        job_id: job.request_id,
        category: new.tool.category.to_owned(),
        subcategory: new.tool.name.to_owned(),
        amount: job.price,
        credits: job.price,
        token_id: None,
        provider_cost: None,
        kept: None,
        service_fee: None,
        judged: Judged { rules: new.rules, ..Judged::default() },
        quote: None,
        status: ReceiptStatus::Settled,
        execution_status: ExecutionStatus::Pending,
        settlement_tx: None,
        goal_id: None,
        metadata: None,
        created_at: new.now,
        settled_at: Some(new.now),
        revision: 1,
        seal: None,
    }
}
