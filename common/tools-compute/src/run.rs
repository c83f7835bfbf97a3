//! One run of a goal's job: looks what has ended, starts what can start, waits a little for what is quick, and hands the job over until
//! something happens. Everything that it has done is in rows, so any other run goes on from there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::RequestId;
use base::money::Usdc;
use goalplan::Plan;
use ledger::account;
use ledger::freeze::SERVICE_PAYEE;
use ledger::purse::{self, Purse, PurseState};
use platform::auth::token;
use platform::http::log;
use platform::store::{StoreError, WriteError};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};
use tools::buying::{Buyer, GoalCall, Refused, Started};
use tools::quoting::AskedPrice;
use tools::run::{Stop, within_limit};
use tools::spec::ToolSpec;
use tools::{Output, Running, Source, Task as Job, Toolbox};

use crate::compute::SPEC;
use crate::goal::{self, Approvals, Failure, Goal, MAX_TASKS, Task, TaskKind, TaskState};
use crate::next::{Next, after_failure, after_refusal, next};
use crate::{close, notices, quote};

/// A run waits so long for calls that are quick: a lookup takes less than a wake-up.
const PATIENCE: Duration = Duration::from_secs(20);
const FIRST_LOOK: Duration = Duration::from_millis(250);
const LONGEST_LOOK: Duration = Duration::from_secs(2);
/// After its deadline, a goal is looked at again in this time while its last calls end.
const LAST_LOOKS: Duration = Duration::from_secs(300);

pub const SOURCE: Source = Source::embedded("goals");

pub fn run(toolbox: Arc<Toolbox>, job: Job) -> Running {
    Box::pin(async move {
        let until = toolbox.clock.now().plus(LAST_LOOKS);
        let run = Run { toolbox, job: Arc::new(job) };
        match within_limit(async move { run.go().await.map_err(Stop::Store) }).await {
            Ok(output) => output,
            Err((pause, cause)) => {
                log::failure("a run of a goal could not end", &cause);
                Ok(Output::again(pause, until, SOURCE))
            }
        }
    })
}

pub(crate) struct Run {
    pub toolbox: Arc<Toolbox>,
    pub job: Arc<Job>,
}

/// A goal as one run sees it.
struct Seen {
    goal: Goal,
    plan: Plan,
    tasks: Vec<Task>,
    usable: Vec<&'static ToolSpec>,
    /// Results of ended calls, by task.
    results: HashMap<u32, Value>,
    /// Calls that the owner's approver was asked about in this run.
    asked: HashSet<u32>,
}

impl Run {
    fn id(&self) -> RequestId {
        self.job.request_id
    }

    fn now(&self) -> Timestamp {
        self.toolbox.clock.now()
    }

    fn buyer(&self) -> Result<&Arc<dyn Buyer>, StoreError> {
        self.toolbox.buyer.as_ref().ok_or_else(|| StoreError::new("no goal is driven here"))
    }

    pub(crate) async fn purse(&self) -> Result<Option<Purse>, StoreError> {
        purse::load(&self.toolbox.db, self.job.agent, self.id()).await
    }

    async fn go(&self) -> Result<Output, StoreError> {
        let found = self.purse().await?;
        let is_first = found.is_none();
        let purse = match found {
            Some(purse) => purse,
            // Nothing was begun, and nothing begins any more.
            None if self.job.is_over => return Ok(close::never_begun(self.id())),
            None => match self.begin().await? {
                Some(purse) => purse,
                None => return Ok(Output::waiting(self.now().plus(LAST_LOOKS), SOURCE)),
            },
        };
        if purse.state == PurseState::Closed {
            return Ok(close::output(self.id(), &purse, None).charging(purse.kept.unwrap_or_default()));
        }
        if self.job.is_over && purse.state == PurseState::Open {
            self.close("given_up").await?;
        }
        let Some(mut seen) = self.see().await? else {
            // Cancelled before its first run.
            return self.finish(None).await;
        };
        if is_first {
            notices::waiting(&self.toolbox.db, &seen.goal, &seen.tasks, self.now()).await;
        }
        self.drive(&mut seen).await
    }

    /// Opens the purse and stores the goal with its tasks. `None`: there is no plan any more, or another run was faster.
    async fn begin(&self) -> Result<Option<Purse>, StoreError> {
        let (job, now) = (&self.job, self.now());
        let locked = quote::Locked::read(&job.locked).ok_or_else(|| StoreError::new("a goal has no locked budget"))?;
        let funds = job.funds.ok_or_else(|| StoreError::new("a goal has no owner"))?;
        let purse = Purse::new(locked.budget, funds.card);
        let db = &self.toolbox.db;
        let open = purse::open(db, job.agent, self.id(), &purse)?;
        let mut writes = vec![open];
        match quote::plan(&self.toolbox, &job.input).await {
            Ok((plan, _)) if plan.tasks.len() <= MAX_TASKS => {
                let text = |name: &str| job.input.get(name).and_then(Value::as_str).unwrap_or_default();
                let goal = Goal {
                    goal: self.id(),
                    agent: job.agent,
                    wallet: funds.wallet,
                    token: job.token,
                    objective: text("objective").to_owned(),
                    params: job.input.get("params").map_or_else(|| "{}".to_owned(), Value::to_string),
                    plan: serde_json::to_string(&plan).map_err(StoreError::new)?,
                    approvals: Approvals::read(&job.input),
                    locked,
                    deadline: quote::deadline(&job.input, funds.at),
                    created: funds.at,
                    ended: None,
                    expires: goal::expires(funds.at),
                };
                writes.extend(goal.begin(db, &plan, now)?);
            }
            Ok(_) => return self.give_up(&purse, "too_many_tasks").await.map(Some),
            // It could be planned when it was quoted. Its tools may be gone since.
            Err(platform::http::ApiError::Unavailable(error)) => return Err(error),
            Err(_) => return self.give_up(&purse, "needs_planner").await.map(Some),
        }
        match db.transact(&writes).await {
            Ok(()) => Ok(Some(purse)),
            Err(WriteError::Refused(_)) => self.purse().await,
            Err(WriteError::Failed(error)) => Err(error),
        }
    }

    /// A purse that nothing is ever taken from.
    async fn give_up(&self, purse: &Purse, why: &str) -> Result<Purse, StoreError> {
        let closing = Purse { state: PurseState::Closing, why: Some(why.to_owned()), ..purse.clone() };
        let db = &self.toolbox.db;
        db.write_if(purse::open(db, self.job.agent, self.id(), &closing)?).await?;
        Ok(closing)
    }

    async fn see(&self) -> Result<Option<Seen>, StoreError> {
        let db = &self.toolbox.db;
        let Some(goal) = goal::load(db, self.id()).await? else { return Ok(None) };
        let plan = goal.plan()?;
        let (tasks, usable) = tokio::join!(goal::tasks(db, self.id()), self.buyer()?.tools());
        let (results, asked) = (HashMap::new(), HashSet::new());
        Ok(Some(Seen { goal, plan, tasks: tasks?, usable, results, asked }))
    }

    /// Does what can be done, and waits for what is quick.
    async fn drive(&self, seen: &mut Seen) -> Result<Output, StoreError> {
        let (mut since, mut look) = (Instant::now(), FIRST_LOOK);
        loop {
            let ended = self.settle(seen).await?;
            self.report(seen);
            let purse = self.purse().await?.ok_or_else(|| StoreError::new("a goal's purse is gone"))?;
            match purse.state {
                PurseState::Open => {}
                PurseState::Closing if purse.in_flight == Usdc::ZERO => return self.finish(Some(seen)).await,
                PurseState::Closing => {
                    if since.elapsed() > PATIENCE {
                        return Ok(Output::waiting(self.now().plus(LAST_LOOKS), SOURCE));
                    }
                    sleep(look).await;
                    continue;
                }
                PurseState::Closed => {
                    return Ok(close::output(self.id(), &purse, None).charging(purse.kept.unwrap_or_default()));
                }
            }
            if let Some(why) = self.must_close(seen).await? {
                self.close(why).await?;
                continue;
            }
            let (next, moved) = self.step(seen).await?;
            if ended || moved {
                (since, look) = (Instant::now(), FIRST_LOOK);
            }
            let wait_until = match next {
                Next::Over(why) => {
                    self.close(why).await?;
                    continue;
                }
                Next::Start(_) if moved => continue,
                Next::Start(_) => None,
                Next::Wait { .. } if moved => continue,
                Next::Wait { at } => at,
            };
            let is_running = seen.tasks.iter().any(|task| task.state == TaskState::Running);
            if is_running && since.elapsed() < PATIENCE {
                sleep(look).await;
                look = (look * 2).min(LONGEST_LOOK);
                continue;
            }
            let at = wait_until.map_or(seen.goal.deadline, |at| at.min(seen.goal.deadline));
            return Ok(Output::waiting(at.max(self.now()), SOURCE));
        }
    }

    fn report(&self, seen: &Seen) {
        let over = seen.tasks.iter().filter(|task| task.is_over()).count();
        let percent = u8::try_from(over * 100 / seen.tasks.len().max(1)).unwrap_or(100);
        self.job.reporter.say(percent.min(99), format!("{over} of {} tasks have ended", seen.tasks.len()));
    }

    /// Why nothing new may be bought.
    async fn must_close(&self, seen: &Seen) -> Result<Option<&'static str>, StoreError> {
        if self.now() >= seen.goal.deadline {
            return Ok(Some("deadline_exceeded"));
        }
        let (db, agent, token) = (&self.toolbox.db, seen.goal.agent, seen.goal.token);
        if let Some(id) = token
            && token::load(db, agent, id).await?.is_some_and(|token| !token.is_active(self.now()))
        {
            return Ok(Some("token_revoked"));
        }
        let frozen = account::glance(db, agent).await?.frozen;
        Ok(frozen.stops(token, SPEC.name, SERVICE_PAYEE).map(|_| "frozen_by_owner"))
    }

    async fn close(&self, why: &str) -> Result<(), StoreError> {
        let db = &self.toolbox.db;
        db.write_if(purse::close(db, self.job.agent, self.id(), why)?).await.map(drop)
    }

    async fn finish(&self, seen: Option<&Seen>) -> Result<Output, StoreError> {
        let locked =
            quote::Locked::read(&self.job.locked).ok_or_else(|| StoreError::new("a goal has no locked budget"))?;
        let tasks = seen.map_or(&[][..], |seen| &seen.tasks);
        close::finish(self, locked, seen.map(|seen| &seen.goal), tasks, seen.map(|seen| &seen.results)).await
    }

    /// Notes calls that have ended. Whether any has.
    async fn settle(&self, seen: &mut Seen) -> Result<bool, StoreError> {
        let mut any = false;
        for at in 0..seen.tasks.len() {
            let task = &seen.tasks[at];
            let Some(request_id) = task.request_id.filter(|_| task.state == TaskState::Running) else { continue };
            let Some(ended) = self.buyer()?.ended(&self.toolbox, request_id).await? else { continue };
            let now = self.now();
            let spent = task.actual.unwrap_or_default().checked_add(ended.kept);
            let after = Task { actual: spent, ..task.clone() };
            let after = match ended.result {
                Ok(result) => {
                    seen.results.insert(task.number, result);
                    Task { state: TaskState::Completed, failure: None, completed: Some(now), ..after }
                }
                Err(error) => after_failure(&after, &error, now),
            };
            self.change(seen, at, after).await?;
            any = true;
        }
        Ok(any)
    }

    /// Writes a task's next state. If somebody else changed it, what they wrote is read instead.
    async fn change(&self, seen: &mut Seen, at: usize, mut after: Task) -> Result<(), StoreError> {
        let db = &self.toolbox.db;
        if db.write_if(seen.tasks[at].change(db, self.id(), &mut after)?).await? {
            seen.tasks[at] = after;
        } else {
            seen.tasks = goal::tasks(db, self.id()).await?;
        }
        Ok(())
    }

    /// Buys what can be bought. What is next, and whether anything has changed.
    async fn step(&self, seen: &mut Seen) -> Result<(Next, bool), StoreError> {
        let now = self.now();
        let next = next(&seen.tasks, now);
        let mut numbers = match &next {
            Next::Start(numbers) => numbers.clone(),
            _ => Vec::new(),
        };
        let held = seen.tasks.iter().filter(|task| task.state == TaskState::Waiting && task.approval.is_some());
        numbers.extend(held.map(|task| task.number).filter(|number| !seen.asked.contains(number)));
        let mut moved = false;
        for number in numbers {
            let Some(at) = seen.tasks.iter().position(|task| task.number == number) else { continue };
            moved |= self.start(seen, at).await?;
        }
        Ok((next, moved))
    }

    /// Buys the call of a task. Whether the task has changed.
    async fn start(&self, seen: &mut Seen, at: usize) -> Result<bool, StoreError> {
        let (before, now) = (seen.tasks[at].clone(), self.now());
        let planned = usize::try_from(before.number).unwrap_or(usize::MAX);
        let name = before.tool.clone().unwrap_or_default();
        let Some(tool) = seen.usable.iter().copied().find(|tool| tool.name == name) else {
            return self.fail(seen, at, "tool_unavailable", format!("this deployment cannot call {name} now")).await;
        };
        self.read_results(seen, &before).await?;
        let input = match input_of(seen, planned, tool) {
            Ok(input) => input,
            Err(missing) => return self.fail(seen, at, "input_missing", missing).await,
        };
        let attempt = if before.state == TaskState::Waiting { before.attempt.max(1) } else { before.attempt + 1 };
        let owner = seen.goal.owner();
        let call = GoalCall { goal: self.id(), owner, tool, input: &input, task: before.number, attempt };
        let price = match self.buyer()?.price(&self.toolbox, &call).await? {
            Ok(price) => price,
            Err(refused) => return self.refused(seen, at, attempt, refused).await,
        };
        let is_approved = before.approved.is_some_and(|approved| price.price <= approved);
        if seen.goal.approvals.hold(&name, price.price) && !is_approved {
            return self.ask_owner(seen, at, price.price, &input).await;
        }
        self.buy(seen, at, call, &price, now).await
    }

    async fn buy(
        &self,
        seen: &mut Seen,
        at: usize,
        call: GoalCall<'_>,
        price: &AskedPrice,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let (before, db) = (seen.tasks[at].clone(), &self.toolbox.db);
        let mut running = Task {
            state: TaskState::Running,
            attempt: call.attempt,
            request_id: Some(call.request_id()),
            category: Some(call.tool.category.to_owned()),
            quoted: Some(price.price),
            not_before: None,
            started: before.started.or(Some(now)),
            ..before.clone()
        };
        let moves = vec![before.change(db, self.id(), &mut running)?];
        let approval = before.approval.as_deref();
        match self.buyer()?.start(&self.toolbox, &call, price, approval, moves).await? {
            // A claim of an earlier run moved the task too.
            Started::Claimed => {
                seen.tasks = goal::tasks(db, self.id()).await?;
                Ok(true)
            }
            Started::Outrun => {
                seen.tasks = goal::tasks(db, self.id()).await?;
                Ok(false)
            }
            Started::Held { approval } => {
                seen.asked.insert(before.number);
                if before.approval.as_ref() == Some(&approval) {
                    return Ok(false);
                }
                let waiting = Task {
                    state: TaskState::Waiting,
                    approval: Some(approval),
                    quoted: Some(price.price),
                    started: before.started.or(Some(now)),
                    ..before
                };
                self.change(seen, at, waiting).await.map(|()| true)
            }
            Started::Closed => Ok(false),
            Started::Poor { left } => {
                let message = format!("{} costs {} USDC, and {left} are left", call.tool.name, price.price);
                self.fail(seen, at, "budget_exhausted", message).await?;
                self.close("budget_exhausted").await.map(|()| true)
            }
            Started::Refused(refused) => self.refused(seen, at, call.attempt, refused).await,
        }
    }

    async fn fail(&self, seen: &mut Seen, at: usize, code: &str, message: String) -> Result<bool, StoreError> {
        let failure = Failure { code: code.to_owned(), message };
        let failed = seen.tasks[at].failed(failure, self.now());
        self.change(seen, at, failed).await.map(|()| true)
    }

    async fn refused(&self, seen: &mut Seen, at: usize, attempt: u32, refused: Refused) -> Result<bool, StoreError> {
        const PASSING: [&str; 3] = ["rate_limited", "quote_pending", "session_busy"];
        let may_pass = PASSING.contains(&refused.code.as_str());
        let failure = Failure { code: refused.code, message: refused.message };
        let tried = Task { attempt, ..seen.tasks[at].clone() };
        let after = after_refusal(&tried, failure, may_pass, self.now());
        self.change(seen, at, after).await.map(|()| true)
    }

    /// Adds the question whether the call may be bought.
    async fn ask_owner(
        &self,
        seen: &mut Seen,
        at: usize,
        price: Usdc,
        input: &Map<String, Value>,
    ) -> Result<bool, StoreError> {
        let (before, now, db) = (seen.tasks[at].clone(), self.now(), &self.toolbox.db);
        let number = seen.tasks.iter().map(|task| task.number + 1).max().unwrap_or_default();
        let question = before.approval(number, price, input, now);
        let mut waiting = Task { state: TaskState::Waiting, quoted: Some(price), ..before.clone() };
        let writes = [question.put(db, self.id())?, before.change(db, self.id(), &mut waiting)?];
        match db.transact(&writes).await {
            Ok(()) | Err(WriteError::Refused(_)) => seen.tasks = goal::tasks(db, self.id()).await?,
            Err(WriteError::Failed(error)) => return Err(error),
        }
        notices::waiting(db, &seen.goal, &seen.tasks, now).await;
        Ok(true)
    }

    /// Reads the results that a task needs.
    async fn read_results(&self, seen: &mut Seen, task: &Task) -> Result<(), StoreError> {
        for need in &task.needs {
            let Some(needed) = seen.tasks.iter().find(|task| task.number == *need) else { continue };
            let Some(request_id) = needed.request_id.filter(|_| !seen.results.contains_key(need)) else { continue };
            if let Some(Ok(result)) = self.buyer()?.ended(&self.toolbox, request_id).await?.map(|ended| ended.result) {
                seen.results.insert(*need, result);
            }
        }
        Ok(())
    }
}

/// The input of a planned task: values of the objective, the params, earlier results and the owner's answers.
fn input_of(seen: &Seen, at: usize, tool: &ToolSpec) -> Result<Map<String, Value>, String> {
    let number = |at: usize| u32::try_from(at).ok();
    let result = |at: usize| seen.results.get(&number(at)?).cloned();
    let answer = |at: usize| {
        let number = number(at)?;
        let task = seen.tasks.iter().find(|task| task.number == number && task.kind == TaskKind::Question)?;
        serde_json::from_str(task.answer.as_deref()?).ok()
    };
    let params = seen.goal.params();
    goalplan::input_of(&seen.plan, at, &params, &tool.input_schema(), &result, &answer)
}

/// What a goal's result says of its tasks.
pub(crate) fn told(task: &Task) -> Value {
    json!({
        "id": crate::view::task_id(task.number),
        "tool": task.tool,
        "description": task.description,
        // What has not ended with its goal was not done.
        "status": if task.is_over() { task.state.as_str() } else { "failed" },
        "request_id": task.request_id,
        "actual_usdc": task.actual.map(|actual| actual.to_string()),
        "error": task.failure.as_ref().map(|failure| json!({"code": failure.code, "message": failure.message})),
    })
}
