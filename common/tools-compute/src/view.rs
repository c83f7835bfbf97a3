//! Goals and tasks as their owner reads them.

use base::clock::Timestamp;
use base::ids::RequestId;
use base::money::Usdc;
use ledger::purse::{Purse, PurseState};
use serde_json::{Map, Value, json};

use crate::goal::{Goal, Task, TaskKind, TaskState};
use crate::quote::{self, Locked, cut};

/// Longest name of a goal, in bytes.
const MAX_NAME: usize = 80;

/// The id of a task, within its goal.
pub fn task_id(number: u32) -> String {
    format!("task_{number:04}")
}

/// How a goal ended that was closed for this reason.
pub fn status_after(why: &str) -> &'static str {
    match why {
        "completed" => "completed",
        "cancelled" => "cancelled",
        _ => "failed",
    }
}

/// What the views of a goal are made of. The rows are there after its first run.
pub struct Shown<'a> {
    pub id: RequestId,
    pub created: Timestamp,
    /// The input of its job.
    pub input: &'a Map<String, Value>,
    pub locked: Locked,
    pub goal: Option<&'a Goal>,
    pub purse: Option<&'a Purse>,
    pub tasks: &'a [Task],
    pub result: Option<&'a Value>,
}

impl Shown<'_> {
    /// `active`, `completed`, `cancelled` or `failed`.
    pub fn status(&self) -> &'static str {
        match self.purse {
            Some(purse) if purse.state != PurseState::Open => status_after(purse.why.as_deref().unwrap_or_default()),
            _ => "active",
        }
    }

    /// The finer word.
    fn phase_status(&self) -> &'static str {
        let is_waiting = || self.tasks.iter().any(|task| task.state == TaskState::Waiting);
        match self.purse.map(|purse| purse.state) {
            None => "pending",
            Some(PurseState::Open) if is_waiting() => "waiting",
            Some(PurseState::Open) => "executing",
            Some(PurseState::Closing) => "settling",
            Some(PurseState::Closed) => self.status(),
        }
    }

    fn over(&self) -> usize {
        self.tasks.iter().filter(|task| task.is_over()).count()
    }

    pub fn goal(&self) -> Value {
        let text = |name: &str| self.input.get(name).and_then(Value::as_str).unwrap_or_default();
        let objective = self.goal.map_or(text("objective"), |goal| &goal.objective);
        let amounts = Amounts::of(self);
        let deadline = self.goal.map_or_else(|| quote::deadline(self.input, self.created), |goal| goal.deadline);
        let open = self.tasks.iter().filter(|task| !task.is_over()).map(|task| task.phase).min();
        let ended = self.goal.and_then(|goal| goal.ended);
        let why = self.purse.and_then(|purse| purse.why.as_deref());
        json!({
            "id": self.id.goal(),
            "request_id": self.id,
            "status": self.status(),
            "phase_status": self.phase_status(),
            "name": cut(objective, MAX_NAME),
            "objective": objective,
            "current_phase": open,
            "plan": self.tasks.iter().filter(|task| !matches!(task.kind, TaskKind::Approval { .. })).map(|task| json!({
                "task_id": task_id(task.number), "tool": task.tool, "description": task.description, "reason": task.reason,
                "phase": task.phase, "needs": task.needs.iter().map(|need| task_id(*need)).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "budget": {
                "total": amounts.total.to_number(), "spent": amounts.spent.to_number(),
                "reserved": amounts.reserved.to_number(), "remaining": amounts.remaining.to_number(),
            },
            "budget_usdc": amounts.total.to_string(),
            "spent_usdc": amounts.spent.to_string(),
            "progress_percent": if ended.is_some() { 100 } else { self.over() * 100 / self.tasks.len().max(1) },
            "result": self.result,
            "end_reason": why,
            "deadline": deadline.to_string(),
            "created_at": self.created.to_string(),
            "started_at": self.goal.and(self.tasks.iter().map(|task| task.created).min()).map(|at| at.to_string()),
            "completed_at": ended.map(|at| at.to_string()),
        })
    }

    /// For a list: without what its tasks say.
    pub fn brief(&self) -> Value {
        let mut goal = self.goal();
        if let Some(goal) = goal.as_object_mut() {
            for of_tasks in ["phase_status", "plan", "current_phase", "progress_percent", "started_at", "result"] {
                goal.remove(of_tasks);
            }
        }
        goal
    }

    pub fn budget(&self) -> Value {
        let amounts = Amounts::of(self);
        let spent =
            self.tasks.iter().filter_map(|task| Some((task, task.actual.filter(|actual| *actual > Usdc::ZERO)?)));
        let mut entries: Vec<Value> = spent
            .map(|(task, actual)| {
                json!({
                    "category": task.category, "tool": task.tool, "amount_usdc": actual.to_number(), "description": task.description,
                    "created_at": task.completed.or(task.started).unwrap_or(task.created).to_string(),
                })
            })
            .collect();
        let fee = self.locked.with_fee(amounts.spent).checked_sub(amounts.spent).unwrap_or_default();
        if fee > Usdc::ZERO {
            entries.push(json!({
                "category": "platform_fee", "tool": null, "amount_usdc": fee.to_number(),
                "description": format!("{} % of what the calls cost", self.locked.fee), "created_at": self.created.to_string(),
            }));
        }
        json!({
            "budgetId": self.id.goal(), "goalId": self.id.goal(), "goal_id": self.id.goal(),
            "totalBudgetUsdc": amounts.total.to_number(), "total_usdc": amounts.total.to_string(),
            "spentUsdc": amounts.spent.to_number(), "spent_usdc": amounts.spent.to_string(),
            "reservedUsdc": amounts.reserved.to_number(), "reserved_usdc": amounts.reserved.to_string(),
            "remainingUsdc": amounts.remaining.to_number(), "remaining_usdc": amounts.remaining.to_string(),
            "spend_entries": entries,
        })
    }
}

/// The amounts of a purse, or of a budget whose goal has not begun.
struct Amounts {
    total: Usdc,
    spent: Usdc,
    reserved: Usdc,
    remaining: Usdc,
}

impl Amounts {
    fn of(shown: &Shown<'_>) -> Amounts {
        match shown.purse {
            Some(purse) => Amounts {
                total: if purse.budget > Usdc::ZERO { purse.budget } else { shown.locked.budget },
                spent: purse.spent,
                reserved: purse.in_flight,
                remaining: purse.left,
            },
            None => {
                let total = shown.locked.budget;
                Amounts { total, spent: Usdc::ZERO, reserved: Usdc::ZERO, remaining: total }
            }
        }
    }
}

/// A task as its owner reads it. `is_over`: its goal has ended or is ending.
pub fn task(goal: RequestId, task: &Task, is_over: bool) -> Value {
    let kind = match task.kind {
        TaskKind::Call => "tool_call",
        TaskKind::Question | TaskKind::Approval { .. } => "human_approval",
    };
    let never = is_over && matches!(task.state, TaskState::Pending | TaskState::Waiting);
    let message = match (&task.failure, task.state) {
        _ if never => Some("not done: the goal has ended".to_owned()),
        (_, TaskState::Waiting) if task.approval.is_some() => {
            Some("waits for the approver of your action policy".to_owned())
        }
        (_, TaskState::Waiting) => task.asks.clone(),
        (Some(failure), TaskState::Failed) => Some(format!("{}: {}", failure.code, failure.message)),
        (Some(failure), TaskState::Pending) => {
            Some(format!("is tried again after {}: {}", failure.code, failure.message))
        }
        _ => None,
    };
    json!({
        "id": task_id(task.number),
        "goal_id": goal.goal(),
        "task_type": kind,
        "tool": task.tool,
        "description": task.description,
        "reason": task.reason,
        "status": if never { "failed" } else { task.state.as_str() },
        "phase": task.phase,
        "sequence": task.number,
        "progress_pct": if task.is_over() { 100 } else { 0 },
        "progress_message": message,
        "request_id": task.request_id,
        "attempts": task.attempt,
        "question": task.asks,
        "approval_id": task.approval,
        "answer": task.answer.as_deref().and_then(|answer| serde_json::from_str::<Value>(answer).ok()),
        "error": task.failure.as_ref().map(|failure| json!({"code": failure.code, "message": failure.message})),
        "quoted_usdc": task.quoted.map(|amount| amount.to_number()),
        "actual_usdc": task.actual.map(|amount| amount.to_number()),
        "cost_usdc": task.actual.map(|amount| amount.to_string()),
        "created_at": task.created.to_string(),
        "started_at": task.started.map(|at| at.to_string()),
        "completed_at": task.completed.map(|at| at.to_string()),
    })
}
