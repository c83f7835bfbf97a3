//! A goal and its tasks, as they are stored.
//!
//! | item (table jobs) | key |
//! |---|---|
//! | what the goal is, with its plan | `GOAL#<goal>` / `GOAL` |
//! | a task | `GOAL#<goal>` / `TASK#<number>` |
//! | (table agents) an owner's goals by time | `AGENT#<id>` / `GOAL#<created>#<goal>` |
//!
//! Whether the goal may spend is in its purse only ([`ledger::purse`]).

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId, TokenId};
use base::money::Usdc;
use evm::Address;
use goalplan::{Kind, Plan};
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tools::buying::Owner;

use crate::compute::{KEPT, LONGEST_LIFE};
use crate::quote::{Locked, cut};

/// Most tasks of a goal, with the questions that its approvals add. They are stored in one transaction.
pub const MAX_TASKS: usize = 90;

/// Longest part of an input that the question whether to buy it shows, in bytes.
const MAX_SHOWN: usize = 2_000;

/// What an owner wants, and the plan for it. Written once when the goal begins, and once when it ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Goal {
    /// The request id of its job.
    pub goal: RequestId,
    pub agent: AgentId,
    pub wallet: Address,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    pub objective: String,
    /// JSON
    pub params: String,
    /// JSON of a [`Plan`].
    pub plan: String,
    pub approvals: Approvals,
    pub locked: Locked,
    pub deadline: Timestamp,
    pub created: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// Unix seconds after which the row may be deleted.
    pub expires: i64,
}

/// Calls that wait for the owner's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approvals {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spend_over: Option<Usdc>,
    #[serde(default)]
    pub tools: Vec<String>,
}

impl Approvals {
    /// Reads the member of a body.
    pub fn read(input: &Map<String, Value>) -> Approvals {
        let Some(given) = input.get("approvals") else { return Approvals::default() };
        let tools = given["tools"].as_array().map_or(&[][..], Vec::as_slice);
        Approvals {
            spend_over: given["spend_over_usdc"].as_str().and_then(|text| Usdc::parse(text).ok()),
            tools: tools.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    /// Whether a call of the tool at this price waits.
    pub fn hold(&self, tool: &str, price: Usdc) -> bool {
        self.spend_over.is_some_and(|over| price > over) || self.tools.iter().any(|held| held == tool)
    }
}

impl Goal {
    pub fn owner(&self) -> Owner {
        Owner { agent: self.agent, wallet: self.wallet, token: self.token }
    }

    pub fn plan(&self) -> Result<Plan, StoreError> {
        serde_json::from_str(&self.plan).map_err(StoreError::new)
    }

    pub fn params(&self) -> Map<String, Value> {
        serde_json::from_str(&self.params).unwrap_or_default()
    }

    /// The writes that begin it, with its tasks. Refused if it has begun.
    pub fn begin(&self, db: &Db, plan: &Plan, now: Timestamp) -> Result<Vec<Write>, StoreError> {
        let mut writes = vec![Write::put(&db.tables.jobs, key(self.goal), self)?.only_if_new()];
        for (number, task) in (0..).zip(&plan.tasks) {
            let task = Task::of_plan(number, task, now, self.expires);
            writes.push(Write::put(&db.tables.jobs, task_key(self.goal, number), &task)?.only_if_new());
        }
        Ok(writes)
    }

    /// The write that notes its end.
    pub fn end(&self, db: &Db, now: Timestamp) -> Result<Write, StoreError> {
        Write::update(&db.tables.jobs, key(self.goal), "SET #ended = :now")
            .only_if("attribute_exists(#pk)")
            .bind("now", now)
    }
}

/// The write that puts a goal into its owner's list.
pub fn list(db: &Db, agent: AgentId, goal: RequestId, created: Timestamp) -> Result<Write, StoreError> {
    let sort = format!("GOAL#{:013}#{goal}", created.millis());
    Write::put(&db.tables.agents, Key::new(format!("AGENT#{agent}"), sort), &Listed { goal, expires: expires(created) })
}

/// How long the rows of a goal stay after it began.
pub fn expires(created: Timestamp) -> i64 {
    created.plus(LONGEST_LIFE).plus(KEPT).secs()
}

#[derive(Serialize, Deserialize)]
struct Listed {
    goal: RequestId,
    expires: i64,
}

fn partition(goal: RequestId) -> String {
    format!("GOAL#{goal}")
}

fn key(goal: RequestId) -> Key {
    Key::new(partition(goal), "GOAL")
}

fn task_key(goal: RequestId, number: u32) -> Key {
    Key::new(partition(goal), format!("TASK#{number:04}"))
}

/// The goal, by a consistent read; `None` before its first run.
pub async fn load(db: &Db, goal: RequestId) -> Result<Option<Goal>, StoreError> {
    db.get_latest(&db.tables.jobs, key(goal)).await
}

/// Its tasks in their order, by a consistent read.
pub async fn tasks(db: &Db, goal: RequestId) -> Result<Vec<Task>, StoreError> {
    db.query(Query::prefixed(&db.tables.jobs, &partition(goal), "TASK#", 2 * MAX_TASKS)?.latest()).await
}

/// An owner's goals, newest first, at most `limit`.
pub async fn of_owner(db: &Db, agent: AgentId, limit: usize) -> Result<Vec<RequestId>, StoreError> {
    let query = Query::prefixed(&db.tables.agents, &format!("AGENT#{agent}"), "GOAL#", limit)?.newest_first();
    let listed: Vec<Listed> = db.query(query).await?;
    Ok(listed.into_iter().map(|listed| listed.goal).collect())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Waits for earlier tasks, or for its next attempt.
    Pending,
    /// Waits for a person: its owner, or who approves the owner's calls.
    Waiting,
    /// Its call is bought and goes on.
    Running,
    Completed,
    Failed,
}

impl TaskState {
    pub const fn as_str(self) -> &'static str {
        match self {
            TaskState::Pending => "pending",
            TaskState::Waiting => "waiting",
            TaskState::Running => "running",
            TaskState::Completed => "completed",
            TaskState::Failed => "failed",
        }
    }
}

/// What a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// A call of a tool.
    Call,
    /// A value that the objective lacks.
    Question,
    /// Whether a call of this number may be bought.
    Approval { of: u32 },
}

/// Why a task failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub code: String,
    pub message: String,
}

/// One task. A plan's tasks have the numbers of the plan; approvals follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub number: u32,
    pub kind: TaskKind,
    pub state: TaskState,
    /// Counts the writes of the row: each is made on the condition that nobody else made one.
    pub version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The category of its receipts, once a call was bought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    pub description: String,
    pub reason: String,
    pub phase: u32,
    #[serde(default)]
    pub needs: Vec<u32>,
    /// Attempts so far.
    #[serde(default)]
    pub attempt: u32,
    /// The job of the latest attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    /// micro-USDC
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quoted: Option<Usdc>,
    /// What its attempts cost, in micro-USDC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<Usdc>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The approval that the owner's action policy asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// The owner has approved the call, at most at this price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Usdc>,
    /// The question, and the JSON of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    pub created: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Timestamp>,
    /// Unix seconds.
    pub expires: i64,
}

impl Task {
    fn of_plan(number: u32, planned: &goalplan::Task, now: Timestamp, expires: i64) -> Task {
        let (kind, state) = match planned.kind {
            Kind::ToolCall => (TaskKind::Call, TaskState::Pending),
            Kind::Question => (TaskKind::Question, TaskState::Waiting),
        };
        Task {
            number,
            kind,
            state,
            version: 0,
            tool: planned.tool.clone(),
            category: None,
            description: planned.description.clone(),
            reason: planned.reason.clone(),
            phase: planned.phase,
            needs: planned.needs.iter().filter_map(|need| u32::try_from(*need).ok()).collect(),
            attempt: 0,
            request_id: None,
            quoted: None,
            actual: None,
            failure: None,
            approval: None,
            approved: None,
            asks: planned.asks.as_ref().map(|asked| asked.text.clone()),
            answer: None,
            not_before: None,
            created: now,
            started: (state == TaskState::Waiting).then_some(now),
            completed: None,
            expires,
        }
    }

    /// The question whether this call may be bought at this price.
    /// It shows the input: it may have words of a result.
    pub fn approval(&self, number: u32, price: Usdc, input: &Map<String, Value>, now: Timestamp) -> Task {
        let tool = self.tool.as_deref().unwrap_or_default();
        let whole = Value::Object(input.clone()).to_string();
        let shown = match cut(&whole, MAX_SHOWN) {
            all if all.len() == whole.len() => whole.clone(),
            beginning => format!("{beginning}… ({} bytes in all)", whole.len()),
        };
        Task {
            number,
            kind: TaskKind::Approval { of: self.number },
            state: TaskState::Waiting,
            version: 0,
            description: format!("Approve: {}", self.description),
            reason: format!("{tool} may cost up to {price} USDC"),
            asks: Some(format!("May {tool} be called for up to {price} USDC, with {shown}?")),
            quoted: Some(price),
            needs: Vec::new(),
            attempt: 0,
            request_id: None,
            actual: None,
            failure: None,
            approval: None,
            approved: None,
            answer: None,
            not_before: None,
            created: now,
            started: Some(now),
            completed: None,
            ..self.clone()
        }
    }

    pub fn is_over(&self) -> bool {
        matches!(self.state, TaskState::Completed | TaskState::Failed)
    }

    /// The write that puts it for the first time.
    pub fn put(&self, db: &Db, goal: RequestId) -> Result<Write, StoreError> {
        Ok(Write::put(&db.tables.jobs, task_key(goal, self.number), self)?.only_if_new())
    }

    /// The write that changes it to `next`, whose version becomes the following one. Refused if it has changed since it was read.
    pub fn change(&self, db: &Db, goal: RequestId, next: &mut Task) -> Result<Write, StoreError> {
        next.version = self.version + 1;
        Write::put(&db.tables.jobs, task_key(goal, self.number), next)?
            .only_if("#version = :before")
            .bind("before", self.version)
    }

    /// It has failed for good.
    pub fn failed(&self, failure: Failure, now: Timestamp) -> Task {
        Task { state: TaskState::Failed, failure: Some(failure), completed: Some(now), ..self.clone() }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// A call that waits for nothing.
    pub(crate) fn call(number: u32) -> Task {
        let planned = goalplan::Task {
            kind: Kind::ToolCall,
            tool: Some("web_read".to_owned()),
            description: "Read a page".to_owned(),
            reason: "the objective names it".to_owned(),
            phase: 1,
            needs: Vec::new(),
            input: Default::default(),
            asks: None,
        };
        Task::of_plan(number, &planned, Timestamp::from_secs(1), 2)
    }

    #[test]
    fn approvals_hold_by_tool_and_by_price() {
        let input = json!({"approvals": {"spend_over_usdc": "0.500000", "tools": ["email"]}});
        let approvals = Approvals::read(input.as_object().unwrap());
        let micro = Usdc::from_micro;
        let held =
            [("email", 1), ("sms", 500_000), ("sms", 500_001)].map(|(tool, price)| approvals.hold(tool, micro(price)));
        assert_eq!(held, [true, false, true]);
        assert!(!Approvals::default().hold("email", micro(1_000_000_000)));
    }
}
