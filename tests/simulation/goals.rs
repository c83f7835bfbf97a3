//! Goals: bought like any other tool, driven by the worker that the queue wakes, cancelled and answered by their owners.
//! What a goal's calls do is [`super::world`]'s work of tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::ids::RequestId;
use base::money::Usdc;
use gate::jobs::job::{Job, Outcome, Settlement};
use gate::jobs::store;
use ledger::purse::{self, PurseState};
use ledger::receipt::Receipt;
use serde_json::{Value, json};
use tools_compute::compute::SPEC;
use tools_compute::goal::{self, Task, TaskKind, TaskState};
use tools_compute::quote::Locked;
use tools_compute::{next, view};

use super::acts::{self, Agent};
use super::world::{Answer, Node, World};
use crate::support::books;

/// What goals are to reach: one to five calls, one of them for a vehicle that the owner must name.
const OBJECTIVES: [&str; 4] = [
    "Decode the VIN 1HGCM82633A004352.",
    "Decode the VIN 1HGCM82633A004352. Then read http://example.com/.",
    "Decode the VINs 1HGCM82633A004352, 5UXWX7C5XBA123456 and 1M8GDM9AXKP042788. Read http://example.com/ and http://example.org/.",
    "Decode the VIN of my car.",
];
/// No goal of an episode goes on for longer, in seconds.
const LONGEST: u64 = 6_000;

/// Buys a goal. Only half of the agents do, because it takes more money than all else: what comes back pays for many calls.
pub async fn buy(world: &World, agent: &Agent, node: &Node) -> Option<Answer> {
    if !agent.id.bytes()[0].is_multiple_of(2) {
        return None;
    }
    let dice = &world.fate.dice;
    let until = world.clock.now().plus(std::time::Duration::from_secs(60 + dice.roll(LONGEST)));
    let mut body = json!({"objective": dice.pick(&OBJECTIVES), "deadline": until.to_string()});
    if dice.percent(30) {
        body["approvals"] = json!({"tools": ["vin_decode"]});
    }
    if dice.percent(30) {
        body["budget_usdc"] = json!("1.5");
    }
    let answer = acts::buy_asked(world, agent, node, SPEC.path(), body).await;
    if let Some(goal) = answer.body["goal_id"].as_str() {
        agent.notes.lock().unwrap().goals.push(goal.to_owned());
        // Mostly a worker is quick, so that the payment is still valid.
        if let Some(goal) = RequestId::of_goal(goal).filter(|_| dice.percent(70)) {
            let _ = node.gate.engine.run(goal).await;
        }
    }
    Some(answer)
}

fn a_goal(world: &World, agent: &Agent) -> Option<String> {
    world.fate.dice.pick(&agent.notes.lock().unwrap().goals).cloned()
}

pub async fn cancel(world: &World, agent: &Agent, node: &Node) -> Option<Answer> {
    let path = format!("{}/{}/cancel", SPEC.path(), a_goal(world, agent)?);
    known(world.send(node, "POST", &path, &[agent.proof(world)], "{}").await)
}

/// An answer, unless it says that the goal came to nothing, because its payment did.
fn known(answer: Answer) -> Option<Answer> {
    Some(answer).filter(|answer| answer.body["error"] != "goal_not_found")
}

/// Answers a task that waits for the owner, or one that does not: yes or no, with a vehicle or without.
pub async fn answer(world: &World, agent: &Agent, node: &Node) -> Option<Answer> {
    let (dice, goal) = (&world.fate.dice, a_goal(world, agent)?);
    let tasks = goal::tasks(&world.db, RequestId::of_goal(&goal)?).await.ok()?;
    let waiting: Vec<&Task> = tasks.iter().filter(|task| task.state == TaskState::Waiting).collect();
    let asked = dice.pick(&waiting).copied().or_else(|| dice.pick(&tasks).filter(|_| dice.percent(20)))?;
    let mut body = match dice.roll(10) {
        0 => json!({"approved": false}),
        1..4 if asked.kind == TaskKind::Question => json!({"response": "it is blue"}),
        _ if asked.kind == TaskKind::Question => json!({"response": "1HGCM82633A004352"}),
        _ => json!({"approved": true}),
    };
    body["task_id"] = json!(view::task_id(asked.number));
    let (path, headers, body) = (format!("{}/{goal}/respond", SPEC.path()), [agent.proof(world)], body.to_string());
    let send = |node| world.send(node, "POST", &path, &headers, &body);
    if dice.percent(20) {
        let other = dice.pick(&world.nodes).unwrap();
        return known(tokio::join!(send(node), send(other)).0);
    }
    known(send(node).await)
}

/// A goal that was bought, with the jobs of its calls.
struct Bought {
    job: Job,
    calls: Vec<Job>,
    tasks: Vec<Task>,
}

async fn of_agent(world: &World, agent: &Agent) -> Vec<Bought> {
    let receipts = books::receipts(&world.db, agent.id).await;
    let mut found = Vec::new();
    for receipt in receipts.iter().filter(|receipt| receipt.subcategory == SPEC.name) {
        let job = job_of(world, receipt).await;
        if job.receipt_id != receipt.receipt_id {
            // The purchase was void and was made again with the same id.
            continue;
        }
        let (goal, mut calls) = (job.request_id.goal(), Vec::new());
        let is_call = |own: &&Receipt| own.goal_id.as_ref() == Some(&goal) && own.job_id != job.request_id;
        for own in receipts.iter().filter(is_call) {
            calls.push(job_of(world, own).await);
        }
        let tasks = goal::tasks(&world.db, job.request_id).await.unwrap();
        found.push(Bought { job, calls, tasks });
    }
    found
}

async fn job_of(world: &World, receipt: &Receipt) -> Job {
    store::load_latest(&world.db, receipt.job_id).await.unwrap().expect("a receipt has its job")
}

/// Checks every goal at a quiet moment: what it took is within its budget, and each call is of a task of its own.
/// ([`books::audit`] compares purses with jobs.)
pub async fn check(world: &World, agents: &[Arc<Agent>]) {
    for agent in agents {
        for Bought { job, calls, tasks } in of_agent(world, agent).await {
            let locked = locked(&job);
            let taken: u64 = calls
                .iter()
                .map(|call| if call.open.is_some() { call.price } else { call.cost().spent() }.micro())
                .sum();
            assert!(taken <= locked.budget.micro(), "{taken} of {locked:?}: {job:?}");
            let open = calls.iter().filter(|call| call.open.is_some()).count();
            assert!(open <= next::AT_ONCE, "{open} calls at once: {job:?}");
            let attempts = tasks.iter().map(|task| usize::try_from(task.attempt).unwrap()).sum::<usize>();
            assert!(calls.len() <= attempts, "{} calls of {tasks:?}", calls.len());
            assert!(tasks.iter().all(|task| task.attempt <= next::MOST_ATTEMPTS), "{tasks:?}");
            let began = job.settlement == Settlement::Settled;
            assert!(began || calls.is_empty(), "calls before the goal was paid: {job:?}");
        }
    }
}

/// Checks every goal once nothing is open any more: it kept what its calls cost with the fee, and no more.
pub async fn at_rest(world: &World, agents: &[Arc<Agent>]) {
    check(world, agents).await;
    let mut ends: BTreeMap<String, u64> = BTreeMap::new();
    for agent in agents {
        for bought in of_agent(world, agent).await {
            let end = check_end(world, agent, &bought).await;
            *ends.entry(end).or_default() += 1;
            world.fate.figures.add("calls of goals", bought.calls.len() as u64);
        }
    }
    for (end, times) in ends {
        world.fate.figures.add(&format!("goals {end}"), times);
    }
}

/// How a goal ended.
async fn check_end(world: &World, agent: &Agent, bought: &Bought) -> String {
    let Bought { job, calls, tasks } = bought;
    assert!(job.open.is_none() && calls.iter().all(|call| call.open.is_none()), "open: {job:?} {calls:?}");
    let purse = purse::load(&world.db, agent.id, job.request_id).await.unwrap();
    if job.settlement != Settlement::Settled || job.outcome != Some(Outcome::Completed) {
        assert!(calls.is_empty(), "it spent, and was not charged: {job:?}");
        return "not paid".to_owned();
    }
    let purse = purse.expect("a goal that ended has a purse");
    assert_eq!((purse.state, purse.in_flight, purse.left), (PurseState::Closed, Usdc::ZERO, Usdc::ZERO), "{purse:?}");
    let spent: u64 = calls.iter().map(|call| call.cost().spent().micro()).sum();
    let kept = locked(job).with_fee(Usdc::from_micro(spent));
    assert_eq!((purse.spent.micro(), job.cost().spent()), (spent, kept), "{purse:?} {job:?}");
    let Some(why) = purse.why.clone() else {
        assert!(tasks.is_empty(), "it began: {purse:?} {tasks:?}");
        return "not begun".to_owned();
    };
    assert_eq!(purse.kept, Some(kept), "{purse:?}");
    let of_tasks: u64 = tasks.iter().filter_map(|task| task.actual).map(|actual| actual.micro()).sum();
    assert_eq!(of_tasks, spent, "the tasks tell what was spent: {tasks:?} {purse:?}");
    if why == "completed" {
        let is_done = |task: &Task| task.state == TaskState::Completed;
        assert!(tasks.iter().all(is_done), "completed without {tasks:?}");
    }
    why
}

fn locked(job: &Job) -> Locked {
    let locked: Value = serde_json::from_str(job.locked.as_deref().expect("a locked budget")).expect("JSON");
    serde_json::from_value(locked).expect("a locked budget")
}
