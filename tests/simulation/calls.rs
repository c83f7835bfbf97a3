//! Calls between agents: dialled by a caller that takes part in turns of text, or bought, so that the tool speaks. Callers hang
//! up or fall silent, and the credits of whoever is called run out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use gate::jobs::input::StoredInput;
use gate::jobs::job::{Job, Outcome, Place, Settlement};
use gate::jobs::store;
use ledger::webhooks::delivery;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools_sms::phone::{self, EMBEDDED, FEE, Registered};
use tools_voice::call::{Ended, State};
use tools_voice::calls::{self, Call, MAX_PAGE};
use tools_voice::{inbound, outbound, settings};

use super::acts::{self, Agent};
use super::asked;
use super::world::{Answer, Node, World};
use crate::support::books;

/// The operator's price of a minute: what agents have pays for some.
pub const PRICES: &str = r#"{"voice": "0.002"}"#;
const MINUTE: Usdc = Usdc::from_micro(2_000);
const EXCHANGE: &str = "/v1/tools/voice/exchange";
/// The longest call that a number takes, in minutes.
const LONGEST: u64 = 5;
/// More events than an agent gets in an episode.
const MANY: usize = 1_000;
/// What callers say: a question, a wish to be passed on, and the end.
const LINES: [&str; 4] =
    ["How much does a loaf of rye cost?", "What does rye cost?", "I want to talk to a person.", "Bye!"];

/// Gives numbers that answer to every other agent. The others get one with a text or a call that they buy.
pub async fn open(world: &World, agents: &[Arc<Agent>]) {
    world.fate.set(false);
    let node = &world.nodes[0];
    for agent in agents.iter().step_by(2) {
        let deadline = Instant::now() + Duration::from_secs(20);
        let registered = phone::register(&node.gate.engine.toolbox, agent.id, RequestId::random(), deadline).await;
        let Ok(Registered::New(phone)) = registered else { panic!("a number: {registered:?}") };
        world.numbers.learn(agent.id, phone.number);
        let answer = configure(world, agent, node).await;
        assert!(answer.as_ref().is_some_and(|answer| answer.status == 200), "{answer:?}");
    }
    world.fate.set(true);
}

/// Whether an agent has the calls of its number reported: from its first settings on, or never.
fn has_webhook(agent: AgentId) -> bool {
    agent.bytes()[0].is_multiple_of(2)
}

/// Puts settings for the agent's number, if it has one.
pub async fn configure(world: &World, agent: &Agent, node: &Node) -> Option<Answer> {
    let dice = &world.fate.dice;
    let own = phone::of_agent(&world.db, agent.id, EMBEDDED).await.ok()??;
    world.numbers.learn(agent.id, own.number);
    let mut body = json!({
        "prompt": "You answer for a bakery. A loaf of rye costs 4 dollars.",
        "max_minutes": 1 + dice.roll(LONGEST),
        "enabled": dice.percent(95),
        "webhook_url": has_webhook(agent.id).then_some("https://example.com/calls"),
    });
    // Open for a minute that no episode reaches.
    let closed = json!({"timezone": "UTC", "windows": [{"days": ["mon"], "start": "00:00", "end": "00:01"}]});
    if let Some(to) = world.numbers.other(dice, agent.id).filter(|_| dice.percent(40)) {
        body["transfer_number"] = json!(to);
        body["allowed_tools"] = json!(["end_call", "transfer_call"]);
        if dice.percent(30) {
            body["business_hours"] = closed;
            body["after_hours"] = json!("transfer");
        }
    } else if dice.percent(20) {
        body["business_hours"] = closed;
        body["after_hours"] = json!(dice.pick(&["decline", "take_message"]));
    }
    let path = format!("/v1/tools/voice/numbers/{}/inbound", own.id);
    Some(world.send(node, "PUT", &path, &[agent.proof(world)], &body.to_string()).await)
}

/// Dials a number: once or twice at once, perhaps with an idempotency key that is reused.
pub async fn dial(world: &World, agent: &Agent, node: &Node) {
    let dice = &world.fate.dice;
    let Some(to) = world.numbers.other(dice, agent.id) else { return };
    let name = dice.percent(30).then(|| format!("dial-{}", dice.roll(4)));
    let headers = || {
        let named = name.clone().map(|name| ("idempotency-key", name));
        [agent.proof(world)].into_iter().chain(named).collect::<Vec<_>>()
    };
    let body = json!({"to": to}).to_string();
    let (first, second) = (headers(), headers());
    let mut answers = Vec::new();
    if dice.percent(20) {
        let other = dice.pick(&world.nodes).unwrap();
        let first = world.send(node, "POST", EXCHANGE, &first, &body);
        let (first, second) = tokio::join!(first, world.send(other, "POST", EXCHANGE, &second, &body));
        answers.extend([first, second]);
    } else {
        answers.push(world.send(node, "POST", EXCHANGE, &first, &body).await);
    }
    for answer in answers {
        world.fate.figures.count(&format!("answer {}", answer.status));
        let is_known = answer.status != 404 || answer.body["error"] == "number_not_in_service";
        assert!(is_known && answer.status < 600, "{answer:?}");
        note(agent, &answer);
    }
}

/// Remembers the calls of an answer.
fn note(agent: &Agent, answer: &Answer) {
    let data = &answer.body["data"];
    for call in [&data["call"], &data["passed_on"]["call"]] {
        if let Some(id) = call["id"].as_str().filter(|_| call["status"] != "declined") {
            agent.notes.lock().unwrap().calls.push(id.to_owned());
        }
    }
}

/// A call of the agent, mostly its latest.
fn a_call(world: &World, agent: &Agent) -> Option<String> {
    let dice = &world.fate.dice;
    let notes = agent.notes.lock().unwrap();
    let latest = notes.calls.last().filter(|_| dice.percent(80));
    latest.or_else(|| dice.pick(&notes.calls)).cloned()
}

/// Says something in a call, which may be over.
pub async fn say(world: &World, agent: &Agent, node: &Node) -> Option<Answer> {
    let path = format!("{EXCHANGE}/{}/turns", a_call(world, agent)?);
    let body = json!({"text": world.fate.dice.pick(&LINES)}).to_string();
    let answer = world.send(node, "POST", &path, &[agent.proof(world)], &body).await;
    note(agent, &answer);
    Some(answer)
}

pub async fn hang_up(world: &World, agent: &Agent, node: &Node) -> Option<Answer> {
    let path = format!("{EXCHANGE}/{}/hang-up", a_call(world, agent)?);
    Some(world.send(node, "POST", &path, &[agent.proof(world)], "{}").await)
}

/// Buys a call to one or two numbers, and perhaps a number for it.
pub async fn buy(world: &World, agent: &Agent, node: &Node) -> Option<Answer> {
    let dice = &world.fate.dice;
    let to: BTreeSet<_> = (0..1 + dice.roll(2)).filter_map(|_| world.numbers.other(dice, agent.id)).collect();
    if to.is_empty() {
        return None;
    }
    let minutes = 1 + dice.roll(3);
    let body = json!({"target_number": to, "objective": "Ask how much a loaf of rye costs.",
        "max_duration_minutes": minutes});
    Some(acts::buy_asked(world, agent, node, outbound::SPEC.path(), body).await)
}

/// How many calls there were of each kind.
type Counts = BTreeMap<String, u64>;

/// Checks at a quiet moment that each answered call has one job, which holds the price of its longest length, and each declined
/// one none; that a call that is over is charged the minutes that it began; and that a bought call is charged what its result
/// says. Returns the answered calls, too.
async fn check_all(world: &World, agents: &[Arc<Agent>]) -> (Counts, Vec<Call>) {
    let (db, mut counts, mut answered) = (&world.db, Counts::new(), Vec::new());
    let mut count = |what: &str| *counts.entry(what.to_owned()).or_default() += 1;
    for agent in agents {
        let mut with_job = BTreeSet::new();
        for receipt in books::receipts(db, agent.id).await {
            let (is_inbound, is_bought) =
                (receipt.subcategory == inbound::SPEC.name, receipt.subcategory == outbound::SPEC.name);
            if !is_inbound && !is_bought {
                continue;
            }
            let job = store::load_latest(db, receipt.job_id).await.unwrap().expect("a receipt has its job");
            if is_bought {
                // Otherwise the purchase was void and was made again, as the same job.
                if job.receipt_id == receipt.receipt_id && job.settlement == Settlement::Settled && job.open.is_none() {
                    count(check_bought(world, &job).await);
                }
                continue;
            }
            assert_eq!(job.receipt_id, receipt.receipt_id, "a call is answered once: {job:?}");
            let call = calls::load(db, job.request_id).await.unwrap().expect("an inbound job has its call");
            check_call(&call, &job);
            with_job.insert(call.id.to_string());
            count(word(&call));
            answered.push(call);
        }
        let listed = calls::list(db, agent.id, None, None, MAX_PAGE).await.unwrap();
        assert!(listed.len() < MAX_PAGE, "a page has all calls of an episode");
        let (rung, declined): (Vec<Call>, Vec<Call>) = listed.into_iter().partition(|call| call.state.is_some());
        let rung: BTreeSet<String> = rung.iter().map(|call| call.id.to_string()).collect();
        assert_eq!(rung, with_job, "each answered call has a job, and each job a call");
        for call in declined {
            let job = store::load_latest(db, call.id).await.unwrap();
            assert!(call.declined.is_some() && job.is_none(), "declined, and charged: {call:?} {job:?}");
            count("declined");
        }
    }
    (counts, answered)
}

/// Checks an answered call and its job.
fn check_call(call: &Call, job: &Job) {
    let state = call.state.as_ref().expect("an answered call");
    assert_eq!((call.agent, call.receipt_id.as_ref()), (job.agent, Some(&job.receipt_id)), "{call:?}");
    assert_eq!(call.price, MINUTE, "{call:?}");
    assert!((1..=LONGEST).contains(&u64::from(state.minutes)), "{call:?}");
    assert_eq!(job.price.micro(), MINUTE.micro() * u64::from(state.minutes), "what is held: {call:?} {job:?}");
    if job.open.is_some() {
        return;
    }
    assert_eq!(job.outcome, Some(Outcome::Completed), "a call that took place is not free: {call:?} {job:?}");
    let (ended, why) = state.ended().expect("the end of a call is on record before its job ends");
    let millis = u64::try_from(ended.millis() - state.answered.millis()).expect("it ended after it began");
    // A call that was to be passed on, and could not be, is free.
    let minutes = if why == Ended::TransferFailed { 0 } else { millis.div_ceil(60_000).max(1) };
    assert!(minutes <= u64::from(state.minutes), "longer than what is held covers: {call:?}");
    let (charged, credited) = asked::charged(job);
    assert_eq!(charged.micro(), MINUTE.micro() * minutes, "the minutes that it began: {call:?} {job:?}");
    assert_eq!(charged.micro() + credited.micro(), job.price.micro(), "the rest comes back: {job:?}");
}

/// How a call ended.
fn word(call: &Call) -> &'static str {
    match call.state.as_ref().and_then(State::ended) {
        None => "not ended on record",
        Some((_, Ended::CallerHungUp)) => "ended by the caller",
        Some((_, Ended::AssistantHungUp)) => "ended by the assistant",
        Some((_, Ended::Transferred)) => "passed on",
        Some((_, Ended::TransferFailed)) => "not passed on",
        Some((_, Ended::Silence)) => "ended in silence",
        Some((_, Ended::TimeLimit)) => "ended by their length",
        Some((_, Ended::CreditLimit)) => "cut by credits",
        Some((_, Ended::Frozen)) => "ended by a freeze",
        Some((_, Ended::Failed)) => panic!("no call of the exchange fails: {call:?}"),
    }
}

/// Checks the job of a bought call that has ended: it charges the minutes in which somebody talked, and the number that it
/// bought.
async fn check_bought(world: &World, job: &Job) -> &'static str {
    let (charged, _) = asked::charged(job);
    if job.outcome != Some(Outcome::Completed) {
        assert_eq!(charged, Usdc::ZERO, "it failed: {job:?}");
        return "bought, failed";
    }
    let Some(Place::Inline(result)) = job.result.as_ref().map(|result| &result.place) else {
        return "bought, with a long result";
    };
    let result: Value = serde_json::from_str(result).expect("JSON");
    let StoredInput::Inline(input) = &job.input else { panic!("a large input: {job:?}") };
    let input: Value = serde_json::from_str(input).expect("JSON");
    let longest = input["max_duration_minutes"].as_u64().expect("minutes");
    let own = phone::of_agent(&world.db, job.agent, EMBEDDED).await.unwrap().expect("who called has a number");
    let fee = if own.bought_by == job.request_id { FEE } else { Usdc::ZERO };
    let minutes: u64 = result["legs"]
        .as_array()
        .expect("legs")
        .iter()
        .filter(|leg| leg["outcome"] == "reached_person" || leg["outcome"] == "voicemail_left")
        .map(|leg| leg["duration_seconds"].as_u64().expect("seconds").div_ceil(60).clamp(1, longest))
        .sum();
    assert_eq!(charged.micro(), MINUTE.micro() * minutes + fee.micro(), "{result}: {job:?}");
    if minutes > 0 { "bought, somebody talked" } else { "bought, nobody talked" }
}

/// Checks every call at a quiet moment: jobs may be open.
pub async fn check(world: &World, agents: &[Arc<Agent>]) {
    check_all(world, agents).await;
}

/// The same once nothing is open any more, with figures. Each call that was answered has been reported once to its number's
/// webhook, with its charge; nothing else has.
pub async fn at_rest(world: &World, agents: &[Arc<Agent>]) {
    let (counts, answered) = check_all(world, agents).await;
    for (what, times) in counts {
        world.fate.figures.add(&format!("calls {what}"), times);
    }
    world.fate.figures.add("answered calls", answered.len() as u64);
    for agent in agents {
        let mut reported = Vec::new();
        for phone in phone::list(&world.db, agent.id).await.unwrap() {
            let endpoint = settings::endpoint_id(phone.id);
            let sent = delivery::list(&world.db, agent.id, endpoint, None, MANY).await.unwrap();
            for delivery in sent {
                let body: Value = serde_json::from_str(&delivery.body).expect("JSON");
                assert_eq!(body["type"], "voice.inbound.completed", "{body}");
                let member = |name: &str| body["data"][name].as_str().map(str::to_owned);
                reported.push((member("id"), member("charge_usdc")));
            }
        }
        let of_agent = answered.iter().filter(|call| call.agent == agent.id && has_webhook(agent.id));
        let mut expected: Vec<_> = of_agent
            .map(|call| (Some(call.id.to_string()), call.charged().map(|charged| charged.to_string())))
            .collect();
        reported.sort();
        expected.sort();
        assert_eq!(reported, expected, "one event for each completed call: {}", agent.id);
    }
}
