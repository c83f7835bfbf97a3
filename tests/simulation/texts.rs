//! Texts between agents, sent by the tool as it is: a send buys a number if its agent has none. Each text has words of its
//! own, so an inbox shows which send it is from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::digest;
use base::ids::{AgentId, RequestId};
use gate::jobs::input::StoredInput;
use gate::jobs::job::{Job, Outcome, Settlement};
use gate::jobs::store;
use messages::recipient::{self, Recipient};
use serde_json::{Value, json};
use tokio::time::Instant;
use tools_sms::number::Number;
use tools_sms::phone::{self, EMBEDDED, FEE, Registered};
use tools_sms::quote::EACH;
use tools_sms::{inbox, send};

use super::acts::Agent;
use super::asked;
use super::dice::Dice;
use super::world::World;
use crate::support::books;

/// The most recipients of a text.
const MOST: u64 = 3;
/// Characters of one segment.
const SEGMENT: usize = 160;
/// Agents that only receive texts. They take no calls.
const RECEIVERS: usize = 2;
/// More texts than an inbox gets in an episode.
const MANY: usize = 200;

/// The numbers that agents know of, each with its agent.
#[derive(Default)]
pub struct Numbers(Mutex<Vec<(AgentId, Number)>>);

impl Numbers {
    pub fn learn(&self, agent: AgentId, number: Number) {
        let mut known = self.0.lock().unwrap();
        if !known.iter().any(|(_, other)| *other == number) {
            known.push((agent, number));
        }
    }

    /// One of them that is not this agent's, mostly of an agent that may take calls.
    pub fn other(&self, dice: &Dice, agent: AgentId) -> Option<Number> {
        let known = self.0.lock().unwrap();
        let first = if dice.percent(90) { RECEIVERS } else { 0 };
        let others: Vec<&Number> =
            known.iter().skip(first).filter(|(owner, _)| *owner != agent).map(|(_, number)| number).collect();
        dice.pick(&others).copied().cloned()
    }

    /// The input of a send to some of them: one or two segments that no other send has.
    pub fn text(&self, dice: &Dice) -> Value {
        let known = self.0.lock().unwrap();
        let to: BTreeSet<&Number> =
            (0..1 + dice.roll(MOST)).filter_map(|_| dice.pick(&known)).map(|(_, number)| number).collect();
        let mut message = format!("Text {}", dice.roll(u64::MAX));
        if dice.percent(40) {
            message.push_str(&" and so on".repeat(SEGMENT / 10));
        }
        json!({"to_number": to, "message": message})
    }

    fn agents(&self) -> BTreeSet<AgentId> {
        self.0.lock().unwrap().iter().map(|(agent, _)| *agent).collect()
    }
}

/// Gives numbers to agents that only receive.
pub async fn open(world: &World) {
    let toolbox = &world.nodes[0].gate.engine.toolbox;
    for _ in 0..RECEIVERS {
        let agent = AgentId::from_bytes(digest::random());
        let deadline = Instant::now() + Duration::from_secs(20);
        let registered = phone::register(toolbox, agent, RequestId::random(), deadline).await;
        let Ok(Registered::New(phone)) = registered else { panic!("a number: {registered:?}") };
        world.numbers.learn(agent, phone.number);
    }
}

/// What has become of all texts, in recipients, and the numbers that agents have bought.
#[derive(Default)]
pub struct Sent {
    accepted: u64,
    others: u64,
    numbers: u64,
}

/// Checks at a quiet moment that no agent has two numbers, that each accepted text is once in the inbox of its recipient, that
/// nothing else is in any inbox, and that a job that has ended charges what was accepted and the number that it bought.
pub async fn check(world: &World, agents: &[Arc<Agent>]) -> Sent {
    let mut sent = Sent::default();
    let mut arrived = arrived(world, agents).await;
    for agent in agents {
        for receipt in books::receipts(&world.db, agent.id).await {
            if receipt.subcategory != send::SPEC.name {
                continue;
            }
            let job = store::load_latest(&world.db, receipt.job_id).await.unwrap().expect("a receipt has its job");
            // Otherwise the purchase was void and was made again, as the same job.
            if job.receipt_id == receipt.receipt_id {
                check_job(world, &job, &mut arrived, &mut sent).await;
            }
        }
    }
    assert!(arrived.is_empty(), "texts that nobody has sent: {arrived:?}");
    sent
}

/// How often each text is in each inbox.
async fn arrived(world: &World, agents: &[Arc<Agent>]) -> BTreeMap<(AgentId, String), u32> {
    let (db, mut arrived, mut numbers) = (&world.db, BTreeMap::new(), BTreeSet::new());
    let mut owners = world.numbers.agents();
    owners.extend(agents.iter().map(|agent| agent.id));
    for agent in owners {
        let phones = phone::list(db, agent).await.unwrap();
        assert!(phones.len() <= 1, "an agent has one number of a source: {phones:?}");
        for phone in phones {
            let owner = phone::owner_of(db, &phone.number).await.unwrap().expect("a number has an owner");
            assert_eq!((owner.agent, owner.id), (agent, phone.id), "{phone:?}");
            assert!(numbers.insert(phone.number.clone()), "two agents have this number: {phone:?}");
        }
        let (texts, more) = inbox::inbox(db, agent, None, None, None, MANY).await.unwrap();
        assert!(!more, "a page has all texts of an episode");
        for text in texts {
            assert!(numbers.contains(&text.to), "{text:?}");
            *arrived.entry((agent, text.body)).or_default() += 1;
        }
    }
    arrived
}

/// Checks a send, and takes its texts out of those that arrived.
async fn check_job(world: &World, job: &Job, arrived: &mut BTreeMap<(AgentId, String), u32>, sent: &mut Sent) {
    let db = &world.db;
    let StoredInput::Inline(input) = &job.input else { panic!("a large input: {job:?}") };
    let input: Value = serde_json::from_str(input).expect("JSON");
    let message = input["message"].as_str().expect("a text");
    let segments = if message.len() > SEGMENT { 2 } else { 1 };
    let texts = |recipients: u64| EACH.micro() * segments * recipients;
    let named = input["to_number"].as_array().map_or(0, Vec::len) as u64;
    let price = job.price.micro();
    assert!(price == texts(named) || price == texts(named) + FEE.micro(), "segments and recipients: {job:?}");

    let own = phone::of_agent(db, job.agent, EMBEDDED).await.unwrap();
    let rows: Vec<Recipient<Number>> = recipient::all(db, job.request_id).await.unwrap();
    let mut accepted = 0;
    for row in &rows {
        assert_eq!(Some(row.sender.as_str()), own.as_ref().map(|phone| phone.number.as_str()), "{row:?}");
        let owner = phone::owner_of(db, &row.to).await.unwrap().expect("a number has an owner");
        let times = arrived.remove(&(owner.agent, message.to_owned())).unwrap_or_default();
        let is_accepted = row.is_charged();
        // A text may have arrived although no process lived to note it.
        assert!(times == 1 || times == 0 && !is_accepted, "{times} times in the inbox: {row:?}");
        accepted += u64::from(is_accepted);
    }
    let bought = own.is_some_and(|phone| phone.bought_by == job.request_id);
    sent.accepted += accepted;
    sent.others += rows.len() as u64 - accepted;
    sent.numbers += u64::from(bought);

    let (None, Settlement::Settled) = (&job.open, job.settlement) else { return };
    let (charged, _) = asked::charged(job);
    let expected = match job.outcome {
        Some(Outcome::Completed) => texts(accepted) + if bought { FEE.micro() } else { 0 },
        _ => {
            assert_eq!(accepted, 0, "it failed, and texts were accepted: {job:?} {rows:?}");
            0
        }
    };
    assert_eq!(charged.micro(), expected, "{accepted} of {named} accepted, number bought: {bought}: {job:?}");
}

/// The same once nothing is open any more, with figures.
pub async fn at_rest(world: &World, agents: &[Arc<Agent>]) {
    let Sent { accepted, others, numbers } = check(world, agents).await;
    for (what, times) in [("accepted", accepted), ("not accepted", others)] {
        world.fate.figures.add(&format!("texts {what}"), times);
    }
    world.fate.figures.add("numbers bought with a text", numbers);
}
