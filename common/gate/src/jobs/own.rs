//! Jobs that no call buys: work that begins elsewhere (a phone rings), paid from its agent's credits.
//!
//! They are claimed without a gate: whoever begins one has no quote and no request, only the writes of one transaction.
//! From then on the engine, the sweeper and the receipt treat them as any job that waits for an outside event.

use base::money::Usdc;
use ledger::charge::Charge;
use ledger::day;
use ledger::receipt::{self, ExecutionStatus, Judged, Receipt, ReceiptStatus};
use platform::store::{Db, StoreError, Write};
use serde_json::Value;
use tools::NewJob;
use tools::spec::ToolSpec;

use super::input::StoredInput;
use super::job::Job;
use super::store;

/// The writes that begin the job: account, entry, job, receipt, day. Without a price there is neither entry nor day. They belong
/// into one transaction with the record of what began it; it is refused by the account if the rules changed or the credits do not
/// suffice, by the job if it began before, and by the day if a cap of the budget has no room.
pub fn begin(db: &Db, new: &NewJob) -> Result<Vec<Write>, StoreError> {
    let job = new_job(new);
    let judged = Judged { rules: new.rules, ..Judged::default() };
    let mut writes = job.charge.take(db, job.purchase(), None, new.rules, new.now)?;
    writes.push(store::create(db, &job)?);
    writes.push(receipt::create(db, &new_receipt(new.tool, &job, judged))?);
    writes.extend(job.charge.count(db, job.purchase(), new.budget.as_ref(), None, new.now)?);
    Ok(writes)
}

fn new_job(new: &NewJob) -> Job {
    let (request_id, now) = (new.request_id, new.now);
    let charge = Charge {
        credits: new.price,
        card: new.card.min(new.price),
        counted: new.price,
        day: day::name(now),
        ..Charge::default()
    };
    let input = StoredInput::Inline(Value::Object(new.input.clone()).to_string());
    let job = Job::begun(new.tool, new.agent, request_id, input, new.price, charge, now);
    Job { handed_until: Some(new.until), due: Some(new.look), ..job }
}

/// The receipt of a job whose money is here.
pub(crate) fn new_receipt(tool: &ToolSpec, job: &Job, judged: Judged) -> Receipt {
    Receipt {
        receipt_id: job.receipt_id.clone(),
        agent_id: job.agent,
        job_id: job.request_id,
        category: tool.category.to_owned(),
        subcategory: tool.name.to_owned(),
        amount: job.price,
        credits: job.charge.credits,
        token_id: job.charge.token,
        provider_cost: None,
        kept: None,
        passed_on: tool.buys.then_some(Usdc::ZERO),
        service_fee: None,
        judged,
        quote: None,
        status: ReceiptStatus::Settled,
        execution_status: ExecutionStatus::Pending,
        settlement_tx: None,
        goal_id: None,
        metadata: None,
        created_at: job.created,
        settled_at: Some(job.created),
        revision: 1,
        seal: None,
    }
}
