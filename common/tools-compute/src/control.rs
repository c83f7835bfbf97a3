//! What an owner does with a goal: cancel it, answer its questions.

use base::ids::{AgentId, RequestId};
use base::input::{Field, Kind};
use base::money::Usdc;
use goalplan::Asked;
use http::StatusCode;
use ledger::purse::{self, Purse, PurseState};
use platform::http::ApiError;
use platform::store::{StoreError, WriteError, jobs};
use serde_json::{Map, Value};
use tools::Toolbox;

use crate::compute::MOST;
use crate::goal::{self, Failure, Goal, Task, TaskKind, TaskState};
use crate::quote::Locked;
use crate::view;

/// The body of a cancellation.
pub static REASON: &[Field] =
    &[Field::optional("reason", Kind::Text { min: 0, max: 1000, format: None }, "Why; it is not stored")];

/// The body of a second funding, under either name.
pub static FUNDS: &[Field] = &[
    Field::optional("amount", Kind::Amount { min: Usdc::ZERO, max: MOST }, "Added to the budget"),
    Field::optional("amount_usdc", Kind::Amount { min: Usdc::ZERO, max: MOST }, "The same"),
];

/// The body of an answer.
pub static RESPONSE: &[Field] = &[
    Field::optional(
        "task_id",
        Kind::Text { min: 1, max: 40, format: None },
        "The task that is answered; not needed if one waits",
    ),
    Field::optional("approved", Kind::Bool, "Whether the call may be bought"),
    Field::optional(
        "response",
        Kind::Text { min: 1, max: 10_000, format: None },
        "The value that was asked for, in words",
    ),
    Field::optional("confirm_done", Kind::Bool, "The same as approved"),
];

fn refused(status: StatusCode, code: &'static str, message: impl Into<String>) -> ApiError {
    ApiError::Tool { status, code, message: message.into() }
}

/// No goal of the caller has this id.
pub fn not_found() -> ApiError {
    refused(StatusCode::NOT_FOUND, "goal_not_found", "there is no such goal of yours")
}

fn over() -> ApiError {
    refused(StatusCode::CONFLICT, "invalid_state", "the goal has ended, or is ending")
}

/// Wakes the goal's job.
async fn wake(toolbox: &Toolbox, goal: RequestId) -> Result<(), StoreError> {
    let queue = toolbox.job_queue.as_ref().ok_or_else(|| StoreError::new("no jobs are queued here"))?;
    jobs::wake(&toolbox.db, &**queue, goal).await;
    Ok(())
}

/// Lets the goal buy nothing new. Returns its purse: with something in flight, the goal ends when that has ended.
///
/// # Errors
/// 409 `invalid_state` for a goal that has ended or is ending.
pub async fn cancel(
    toolbox: &Toolbox,
    agent: AgentId,
    goal: RequestId,
    locked: &Map<String, Value>,
) -> Result<Purse, ApiError> {
    let db = &toolbox.db;
    const WHY: &str = "cancelled";
    if purse::load(db, agent, goal).await?.is_none() {
        // Its first run has not come: it finds a purse that gives nothing.
        let budget = Locked::read(locked).map(|locked| locked.budget).unwrap_or_default();
        let purse = Purse { state: PurseState::Closing, why: Some(WHY.to_owned()), ..Purse::new(budget, Usdc::ZERO) };
        if db.write_if(purse::open(db, agent, goal, &purse)?).await? {
            wake(toolbox, goal).await?;
            return Ok(purse);
        }
    }
    if !db.write_if(purse::close(db, agent, goal, WHY)?).await? {
        return Err(over());
    }
    wake(toolbox, goal).await?;
    Ok(purse::load(db, agent, goal).await?.unwrap_or_default())
}

/// An owner's answer to a task that waits for one.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub task_id: Option<String>,
    pub approved: Option<bool>,
    pub response: Option<String>,
    pub confirm_done: Option<bool>,
}

impl Answer {
    /// No, as far as it says.
    fn denies(&self) -> bool {
        self.approved == Some(false) || self.confirm_done == Some(false)
    }
}

/// Notes the answer. Returns the task as it is now.
///
/// # Errors
/// 404 `task_not_found`; 400 `invalid_state` if the task waits for no answer; 403 `approval_required` if the owner's policy holds it: then
/// only its approver decides; 400 `invalid_request` for an answer that is not what was asked for.
pub async fn respond(toolbox: &Toolbox, goal: &Goal, answer: &Answer) -> Result<Task, ApiError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let purse = purse::load(db, goal.agent, goal.goal).await?.unwrap_or_default();
    if purse.state != PurseState::Open {
        return Err(over());
    }
    let tasks = goal::tasks(db, goal.goal).await?;
    let asked = asked_task(&tasks, answer)?;
    let mut writes = Vec::new();
    let mut answered = match asked.kind {
        TaskKind::Question => {
            if answer.denies() {
                let failure = Failure { code: "not_answered".to_owned(), message: "you declined to answer".to_owned() };
                asked.failed(failure, now)
            } else {
                let value = value_of(goal, asked, answer)?;
                let (state, completed) = (TaskState::Completed, Some(now));
                Task { state, completed, answer: Some(value.to_string()), ..asked.clone() }
            }
        }
        TaskKind::Approval { of } => {
            let call = tasks.iter().find(|task| task.number == of && task.state == TaskState::Waiting);
            let call = call.ok_or_else(|| ApiError::from(StoreError::new("an approval has no call that waits")))?;
            let mut after = if answer.denies() {
                call.failed(Failure { code: "denied".to_owned(), message: "you did not approve it".to_owned() }, now)
            } else {
                Task { state: TaskState::Pending, approved: asked.quoted, ..call.clone() }
            };
            writes.push(call.change(db, goal.goal, &mut after)?);
            let said = serde_json::Value::Bool(!answer.denies()).to_string();
            Task { state: TaskState::Completed, completed: Some(now), answer: Some(said), ..asked.clone() }
        }
        TaskKind::Call => {
            return Err(refused(
                StatusCode::FORBIDDEN,
                "approval_required",
                "your action policy holds this call: only its approver decides, by the link that was sent",
            ));
        }
    };
    writes.push(asked.change(db, goal.goal, &mut answered)?);
    match db.transact(&writes).await {
        Ok(()) => {}
        Err(WriteError::Refused(_)) => {
            return Err(refused(StatusCode::BAD_REQUEST, "invalid_state", "the task was answered in the meantime"));
        }
        Err(WriteError::Failed(error)) => return Err(error.into()),
    }
    wake(toolbox, goal.goal).await?;
    Ok(answered)
}

/// The task that is answered: the one that is named, or the only one that waits.
fn asked_task<'a>(tasks: &'a [Task], answer: &Answer) -> Result<&'a Task, ApiError> {
    let invalid = |message: &str| refused(StatusCode::BAD_REQUEST, "invalid_state", message);
    let waits = |task: &&Task| task.state == TaskState::Waiting && task.kind != TaskKind::Call;
    let Some(id) = &answer.task_id else {
        let mut waiting = tasks.iter().filter(waits);
        return match (waiting.next(), waiting.next()) {
            (Some(task), None) => Ok(task),
            (None, _) => Err(invalid("no task of the goal waits for an answer")),
            (Some(_), Some(_)) => Err(invalid("several tasks wait for an answer: name one in task_id")),
        };
    };
    let task = tasks.iter().find(|task| view::task_id(task.number) == *id);
    let task = task.ok_or_else(|| refused(StatusCode::NOT_FOUND, "task_not_found", "the goal has no such task"))?;
    let is_held = task.kind == TaskKind::Call && task.approval.is_some();
    if task.state != TaskState::Waiting || (task.kind == TaskKind::Call && !is_held) {
        return Err(invalid("the task does not wait for an answer"));
    }
    Ok(task)
}

/// The value that a question gets.
fn value_of(goal: &Goal, task: &Task, answer: &Answer) -> Result<Value, ApiError> {
    let plan = goal.plan()?;
    let planned = usize::try_from(task.number).ok().and_then(|number| plan.tasks.get(number));
    let asked: Option<&Asked> = planned.and_then(|planned| planned.asks.as_ref());
    let asked = asked.ok_or_else(|| ApiError::from(StoreError::new("a question is not in its plan")))?;
    let text = answer.response.as_deref().unwrap_or_default();
    if text.is_empty() {
        return Err(ApiError::field("response", format!("is needed: {}", asked.text)));
    }
    goalplan::answer(asked, text).map_err(|wrong| ApiError::field("response", wrong))
}
