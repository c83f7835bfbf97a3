//! The end of a goal: what its charge keeps, and its result.
//!
//! The purse is closed first, so that nothing new is taken. Once nothing is in flight, what is kept follows from the rows alone, and is
//! written to the purse. The transaction that ends the job checks that it keeps exactly that. A goal that failed is a completed job whose
//! result says so: what its calls cost was spent.

use std::collections::HashMap;

use base::ids::RequestId;
use base::money::Usdc;
use ledger::purse::{self, Purse};
use platform::store::StoreError;
use serde_json::{Map, Value, json};
use tools::Output;

use crate::goal::{Goal, Task, TaskState};
use crate::quote::Locked;
use crate::run::{Run, SOURCE, told};
use crate::view;

/// Results above this size together, in bytes, are left to their jobs.
const MOST_RESULTS: usize = 200_000;

/// The output of a goal that ends before it began: nothing is kept.
pub fn never_begun(goal: RequestId) -> Output {
    let purse = Purse { why: Some("not_begun".to_owned()), ..Purse::default() };
    output(goal, &purse, None).charging(Usdc::ZERO)
}

/// Settles a purse that is closing and has nothing in flight, and ends the job.
pub(crate) async fn finish(
    run: &Run,
    locked: Locked,
    goal: Option<&Goal>,
    tasks: &[Task],
    results: Option<&HashMap<u32, Value>>,
) -> Result<Output, StoreError> {
    let (db, agent, id) = (&run.toolbox.db, run.job.agent, run.job.request_id);
    let purse = run.purse().await?.ok_or_else(|| StoreError::new("a goal's purse is gone"))?;
    let kept = locked.with_fee(purse.spent);
    if purse.kept != Some(kept) && !db.write_if(purse::settle(db, agent, id, kept)?).await? {
        return Err(StoreError::new("a goal's purse was not settled: its last call has just been claimed or ended"));
    }
    let mut output = output(id, &purse, Some(tasks));
    output.result["results"] = results_of(run, tasks, results).await?;
    output.result["fee_usdc"] = json!(kept.checked_sub(purse.spent).unwrap_or_default().to_string());
    let note = goal.map(|goal| goal.end(db, run.toolbox.clock.now())).transpose()?;
    Ok(output.charging(kept).passing_on(purse.spent).with(note.into_iter().collect()))
}

/// What the goal's job returns.
pub fn output(goal: RequestId, purse: &Purse, tasks: Option<&[Task]>) -> Output {
    let why = purse.why.as_deref().unwrap_or_default();
    let result = json!({
        "goal_id": goal.goal(),
        "status": view::status_after(why),
        "end_reason": why,
        "spent_usdc": purse.spent.to_string(),
        "tasks": tasks.unwrap_or_default().iter().map(told).collect::<Vec<_>>(),
    });
    Output::new(result, SOURCE)
}

/// The results of completed tasks that no other task needs.
async fn results_of(run: &Run, tasks: &[Task], known: Option<&HashMap<u32, Value>>) -> Result<Value, StoreError> {
    let mut results = Map::new();
    let mut room = MOST_RESULTS;
    let is_last = |task: &&Task| !tasks.iter().any(|other| other.needs.contains(&task.number));
    for task in tasks.iter().filter(|task| task.state == TaskState::Completed).filter(is_last) {
        let Some(request_id) = task.request_id else { continue };
        let result = match known.and_then(|known| known.get(&task.number)) {
            Some(result) => result.clone(),
            None => match &run.toolbox.buyer {
                Some(buyer) => match buyer.ended(&run.toolbox, request_id).await?.map(|ended| ended.result) {
                    Some(Ok(result)) => result,
                    _ => continue,
                },
                None => continue,
            },
        };
        let bytes = result.to_string().len();
        let shown = match room.checked_sub(bytes) {
            Some(rest) => {
                room = rest;
                result
            }
            None => json!({"left_out": format!("it has {bytes} bytes; read it at /v1/requests/{request_id}")}),
        };
        results.insert(view::task_id(task.number), shown);
    }
    Ok(Value::Object(results))
}
