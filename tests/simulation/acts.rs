//! The acts of agents, owners, strangers and the service's own machinery. One act is one step of a run.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::ids::AgentId;
use base::money::Usdc;
use evm::authorization::Authorization;
use evm::signature::PrivateKey;
use evm::word_from_u64;
use ring::hmac;
use serde_json::{Map, Value, json};
use tools::spec::TOP_UP;
use tools_sms::phone::{self, EMBEDDED};
use tools_sms::send as sms;

use super::asked::{self, Given};
use super::world::{Answer, Node, WEBHOOK_SECRET, World};
use super::{calls, goals, sellers};
use crate::support::payer::{bare, header};
use crate::support::{Payer, READ_PATH, VIN, VIN_PATH};

/// An agent, with everything it remembers.
pub struct Agent {
    pub payer: Payer,
    pub id: AgentId,
    pub notes: Mutex<Notes>,
}

#[derive(Default)]
pub struct Notes {
    quotes: Vec<Quoted>,
    pub shown: Vec<Shown>,
    tokens: Vec<Token>,
    /// Daily caps requested since the last check; `None` removes the cap.
    pub daily_tried: Vec<Option<u64>>,
    /// Ids of the calls that it dialled.
    pub calls: Vec<String>,
    /// Ids of the goals that it knows to have bought.
    pub goals: Vec<String>,
    sessions: u64,
    names: u64,
}

#[derive(Clone)]
struct Quoted {
    path: &'static str,
    body: Value,
    quote_id: String,
    /// micro-USDC to sign for
    amount: u64,
}

/// A payment that was sent to the service, or may be.
#[derive(Clone, Debug)]
pub struct Shown {
    pub path: &'static str,
    pub body: Value,
    pub quote_id: Option<String>,
    /// The idempotency key of its call.
    pub name: Option<String>,
    pub authorization: Authorization,
    /// Somebody else broadcast it.
    pub by_stranger: bool,
}

#[derive(Clone)]
struct Token {
    id: String,
    bearer: String,
    /// The owner got the answer that it is revoked.
    revoked: bool,
}

/// The acts with their weights.
const ACTS: &[(Act, u64)] = &[
    (Act::Quote, 10),
    (Act::PayQuoted, 12),
    (Act::PayPrice, 13),
    (Act::PayTwice, 3),
    (Act::PayNamed, 4),
    (Act::Ask, 6),
    (Act::Take, 4),
    (Act::PayAsked, 9),
    (Act::Text, 9),
    (Act::Answering, 2),
    (Act::Dial, 8),
    (Act::Say, 7),
    (Act::HangUp, 3),
    (Act::BuyCall, 2),
    (Act::Goal, 5),
    (Act::CancelGoal, 1),
    (Act::AnswerGoal, 4),
    (Act::Spend, 10),
    (Act::SpendNamed, 3),
    (Act::Again, 7),
    (Act::TopUp, 3),
    (Act::Card, 3),
    (Act::Payout, 4),
    (Act::Mint, 2),
    (Act::Revoke, 1),
    (Act::Budget, 4),
    (Act::Freeze, 1),
    (Act::Lift, 4),
    (Act::Deliver, 50),
    (Act::Sweep, 4),
    (Act::Stranger, 2),
    (Act::Cancel, 1),
    (Act::Fund, 4),
    (Act::Drain, 1),
    (Act::Forget, 1),
    (Act::Time, 4),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Asks for a price, with a proof.
    Quote,
    /// Pays a quote: signed, from its hold, or both.
    PayQuoted,
    /// Signs for the price without a quote.
    PayPrice,
    /// Sends the same payment in two concurrent requests.
    PayTwice,
    /// Sends a signed payment with an idempotency key that is reused.
    PayNamed,
    /// Asks for the quote of an asked price, as the agent, in its name, or as nobody.
    Ask,
    /// Names such a quote in an unpaid call. The 402 may hold credits for it; [`Act::PayQuoted`] pays that.
    Take,
    /// Pays such a quote (see [`pay_asked`]).
    PayAsked,
    /// Texts other agents (see [`text`]).
    Text,
    /// Puts how its number answers calls.
    Answering,
    /// Calls another agent, to talk itself.
    Dial,
    Say,
    HangUp,
    /// Buys a call to other agents.
    BuyCall,
    /// Buys a goal.
    Goal,
    CancelGoal,
    /// Answers what a goal asks its owner.
    AnswerGoal,
    /// A call with an access token.
    Spend,
    SpendNamed,
    /// Sends an earlier payment again, perhaps for something else.
    Again,
    TopUp,
    /// The card processor reports a paid session, perhaps again.
    Card,
    /// A seller's earnings are counted and mature, and it asks for a payout, or its last one ends.
    Payout,
    Mint,
    Revoke,
    Budget,
    Freeze,
    Lift,
    /// The queue delivers a message to a worker.
    Deliver,
    Sweep,
    /// A stranger broadcasts an authorization.
    Stranger,
    /// A payer cancels an authorization.
    Cancel,
    Fund,
    Drain,
    /// A node forgets a waiting transaction.
    Forget,
    /// All clocks jump, as if the processes had been suspended.
    Time,
}

impl Act {
    pub fn draw(world: &World) -> Act {
        let all: u64 = ACTS.iter().map(|(_, weight)| weight).sum();
        let mut roll = world.fate.dice.roll(all);
        for (act, weight) in ACTS {
            if roll < *weight {
                return *act;
            }
            roll -= weight;
        }
        Act::Time
    }
}

impl Agent {
    pub fn new(world: &World) -> Arc<Agent> {
        let key = PrivateKey::from_bytes(&base::digest::random()).expect("a key");
        let payer = Payer::of(key, &world.config, "");
        world.chain.fund(payer.address(), 20_000 + world.fate.dice.roll(60_000));
        Arc::new(Agent { id: payer.agent(), payer, notes: Mutex::default() })
    }

    pub fn proof(&self, world: &World) -> (&'static str, String) {
        ("x-agent-proof", self.payer.proof_at("write", world.clock.now().secs()))
    }

    /// Its name, which proves nothing.
    fn named(&self) -> (&'static str, String) {
        ("x-agent-id", self.payer.address().to_string())
    }

    pub fn authorize(&self, world: &World, micro: u64) -> Authorization {
        let now = world.clock.now().secs().unsigned_abs();
        let lives = *world.fate.dice.pick(&[40, 300, 3_600]).unwrap();
        self.payer.authorize_with(micro, |authorization| {
            authorization.valid_after = word_from_u64(now - 300);
            authorization.valid_before = word_from_u64(now + lives);
        })
    }

    fn remember(&self, shown: Shown) {
        self.notes.lock().unwrap().shown.push(shown);
    }

    /// Keeps the quote of a 402, to pay it later. Returns it.
    fn keep_quote(&self, path: &'static str, body: Value, answer: &Answer) -> Option<Quoted> {
        let amount = answer.body["payment_request"]["amount"].as_str().and_then(|text| Usdc::parse(text).ok())?.micro();
        let quote_id = answer.body["quote_id"].as_str()?.to_owned();
        let quoted = Quoted { path, body, quote_id, amount };
        self.notes.lock().unwrap().quotes.push(quoted.clone());
        Some(quoted)
    }

    /// A payment for the quote of an asked price, as headers: by a token, or signed.
    fn payment_for(&self, world: &World, given: &Given, body: &Value) -> Vec<(&'static str, String)> {
        let quote = ("x-quote-id", given.quote_id.clone());
        if let Some(token) = self.pick(world, |notes| &notes.tokens).filter(|_| world.fate.dice.percent(40)) {
            return vec![quote, ("authorization", format!("Bearer {}", token.bearer))];
        }
        let authorization = self.authorize(world, given.quote.amount.micro());
        let payment = ("x-payment", header(&bare(&authorization)));
        let (path, body, quote_id) = (given.tool.path(), body.clone(), Some(given.quote_id.clone()));
        self.remember(Shown { path, body, quote_id, name: None, authorization, by_stranger: false });
        vec![quote, payment]
    }

    fn pick<T: Clone>(&self, world: &World, of: impl Fn(&Notes) -> &Vec<T>) -> Option<T> {
        world.fate.dice.pick(of(&self.notes.lock().unwrap())).cloned()
    }

    fn name(&self, world: &World) -> String {
        let mut notes = self.notes.lock().unwrap();
        // Two out of three times, a key that was used before.
        notes.names += u64::from(notes.names == 0 || world.fate.dice.roll(3) == 0);
        format!("name-{}", notes.names)
    }
}

fn purchase(world: &World, memo: String) -> (&'static str, Value, u64) {
    match world.fate.dice.roll(10) {
        0..4 => (VIN_PATH, json!({"vin": VIN, "memo": memo}), 5_000),
        4..7 => (READ_PATH, json!({"url": "http://example.com/", "memo": memo}), 2_000),
        _ => {
            let sold = world.fate.dice.pick(&sellers::SOLD).unwrap();
            (sold.path, json!({"input": {"text": "something"}, "memo": memo}), sellers::PRICE)
        }
    }
}

fn some(world: &World) -> (&'static str, Value, u64) {
    purchase(world, format!("m{}", world.fate.dice.roll(1_000_000)))
}

/// Mostly the same purchase for the same idempotency key.
fn named(world: &World, name: &str) -> (&'static str, Value, u64) {
    let memo = if world.fate.dice.percent(5) { format!("{name}?") } else { name.to_owned() };
    (VIN_PATH, json!({"vin": VIN, "memo": memo}), 5_000)
}

/// An act of an agent or owner, sent to one process.
pub async fn perform(act: Act, world: &World, agent: &Agent, node: usize) {
    let node = &world.nodes[node];
    let answer = match act {
        Act::Quote => {
            let (path, body, _) = some(world);
            let headers = [agent.proof(world)];
            let answer = world.send(node, "POST", path, &headers, &body.to_string()).await;
            agent.keep_quote(path, body, &answer);
            answer
        }
        Act::Ask => {
            let dice = &world.fate.dice;
            let tool = *dice.pick(&asked::TOOLS).unwrap();
            let body = json!({"text": format!("t{}", dice.roll(1_000_000))});
            let who = match dice.roll(4) {
                0 => None,
                1 => Some(agent.named()),
                _ => Some(agent.proof(world)),
            };
            let headers: Vec<_> = who.into_iter().collect();
            let path = tool.quote_path.unwrap_or(tool.path());
            let answer = world.send(node, "POST", path, &headers, &body.to_string()).await;
            let only_for = (!headers.is_empty()).then_some(agent.id);
            if let Some(given) = Given::of(&answer, &world.keys, tool, &body, agent.id, only_for) {
                world.asked.add(given);
                agent.keep_quote(tool.path(), body, &answer);
            }
            answer
        }
        Act::Take => {
            let dice = &world.fate.dice;
            let is_own = dice.percent(80);
            let Some(given) = world.asked.pick(dice, |given| (given.asker == agent.id) == is_own) else { return };
            let who = if dice.percent(75) { agent.proof(world) } else { agent.named() };
            let headers = [("x-quote-id", given.quote_id.clone()), who];
            let answer = world.send(node, "POST", given.tool.path(), &headers, &given.body.to_string()).await;
            if answer.status == 402 {
                given.check_offer(&answer, &world.keys, agent.id);
                agent.keep_quote(given.tool.path(), given.body, &answer);
            }
            answer
        }
        Act::PayAsked => match pay_asked(world, agent, node).await {
            Some(answer) => answer,
            None => return,
        },
        Act::PayQuoted => {
            let Some(quoted) = agent.pick(world, |notes| &notes.quotes) else { return };
            pay_quoted(world, agent, node, &quoted).await
        }
        Act::Text => text(world, agent, node).await,
        Act::Dial => {
            calls::dial(world, agent, node).await;
            return;
        }
        Act::Goal | Act::CancelGoal | Act::AnswerGoal => {
            let answer = match act {
                Act::Goal => goals::buy(world, agent, node).await,
                Act::CancelGoal => goals::cancel(world, agent, node).await,
                _ => goals::answer(world, agent, node).await,
            };
            let Some(answer) = answer else { return };
            answer
        }
        Act::Answering | Act::Say | Act::HangUp | Act::BuyCall => {
            let answer = match act {
                Act::Answering => calls::configure(world, agent, node).await,
                Act::Say => calls::say(world, agent, node).await,
                Act::HangUp => calls::hang_up(world, agent, node).await,
                _ => calls::buy(world, agent, node).await,
            };
            let Some(answer) = answer else { return };
            answer
        }
        Act::PayPrice | Act::PayNamed | Act::PayTwice => {
            let name = (act == Act::PayNamed).then(|| agent.name(world));
            let (path, body, price) = name.as_ref().map_or_else(|| some(world), |name| named(world, name));
            let authorization = agent.authorize(world, price);
            let mut headers = vec![("x-payment", header(&bare(&authorization)))];
            headers.extend(name.clone().map(|name| ("idempotency-key", name)));
            let (quote_id, by_stranger) = (None, false);
            agent.remember(Shown { path, body: body.clone(), quote_id, name, authorization, by_stranger });
            let body = body.to_string();
            let send = |node| world.send(node, "POST", path, &headers, &body);
            if act == Act::PayTwice {
                let other = world.fate.dice.pick(&world.nodes).unwrap();
                tokio::join!(send(node), send(other)).0
            } else {
                send(node).await
            }
        }
        Act::Spend | Act::SpendNamed => {
            let Some(token) = agent.pick(world, |notes| &notes.tokens) else { return };
            let name = (act == Act::SpendNamed).then(|| agent.name(world));
            let (path, body, _) = name.as_ref().map_or_else(|| some(world), |name| named(world, name));
            let mut headers = vec![("authorization", format!("Bearer {}", token.bearer))];
            headers.extend(name.map(|name| ("idempotency-key", name)));
            let answer = world.send(node, "POST", path, &headers, &body.to_string()).await;
            assert!(
                !token.revoked || [401, 500, 503].contains(&answer.status),
                "a revoked token buys nothing: {answer:?}"
            );
            answer
        }
        Act::Again => {
            let Some(shown) = agent.pick(world, |notes| &notes.shown) else { return };
            present(world, node_index(world, node), &shown, world.fate.dice.percent(5)).await
        }
        Act::TopUp => {
            let micro = 10_000 * (1 + world.fate.dice.roll(3));
            let (path, body) = (TOP_UP.paths[0], json!({"amount": Usdc::from_micro(micro).to_string()}));
            let authorization = agent.authorize(world, micro);
            let headers = [("x-payment", header(&bare(&authorization)))];
            agent.remember(Shown {
                path,
                body: body.clone(),
                quote_id: None,
                name: None,
                authorization,
                by_stranger: false,
            });
            world.send(node, "POST", path, &headers, &body.to_string()).await
        }
        Act::Card => {
            let session = {
                let mut notes = agent.notes.lock().unwrap();
                notes.sessions += u64::from(notes.sessions == 0 || world.fate.dice.percent(60));
                notes.sessions
            };
            let (at, cents) = (world.clock.now().secs(), 1 + session % 3);
            let payment = format!("pi_{}_{session}", agent.id);
            // Paid, refunded or disputed, perhaps before the payment was reported.
            let taken_back = |kind: &'static str, id: &str, amount: u64, status: &str| {
                let id = format!("{id}_{session}");
                (
                    kind,
                    json!({"id": id, "payment_intent": payment, "amount": amount, "currency": "usd", "status": status}),
                )
            };
            let (kind, object) = match world.fate.dice.roll(10) {
                0 => taken_back("charge.dispute.created", "du", cents, "needs_response"),
                1 => taken_back("charge.dispute.closed", "du", cents, "won"),
                2 => taken_back("refund.created", "re", 1, "pending"),
                3 => taken_back("refund.failed", "re", 1, "failed"),
                _ => {
                    let object = json!({"id": format!("cs_{}_{session}", agent.id), "client_reference_id": agent.id,
                        "amount_total": cents, "currency": "usd", "payment_status": "paid", "payment_intent": payment});
                    ("checkout.session.completed", object)
                }
            };
            let body = json!({"type": kind, "created": at, "data": {"object": object}}).to_string();
            let key = hmac::Key::new(hmac::HMAC_SHA256, WEBHOOK_SECRET.as_bytes());
            let tag = hmac::sign(&key, format!("{at}.{body}").as_bytes());
            let tag: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            let headers = [("stripe-signature", format!("t={at},v1={tag}"))];
            world.send(node, "POST", "/v1/credits/webhook", &headers, &body).await
        }
        Act::Mint => {
            let (headers, dice) = ([agent.proof(world)], &world.fate.dice);
            let mut caps = Map::new();
            for (name, share, least, more) in
                [("daily", 30, 5_000, 25_000), ("lifetime", 30, 10_000, 50_000), ("per_transaction", 20, 1_000, 10_000)]
            {
                if dice.percent(share) {
                    caps.insert(name.to_owned(), json!(Usdc::from_micro(least + dice.roll(more)).to_string()));
                }
            }
            let caps = Value::Object(caps).to_string();
            let answer = world.send(node, "POST", "/v1/agents/me/access-tokens", &headers, &caps).await;
            let data = &answer.body["data"];
            if let (Some(id), Some(bearer)) = (data["id"].as_str(), data["token"].as_str()) {
                let token = Token { id: id.to_owned(), bearer: bearer.to_owned(), revoked: false };
                agent.notes.lock().unwrap().tokens.push(token);
            }
            answer
        }
        Act::Revoke => {
            let Some(token) = agent.pick(world, |notes| &notes.tokens) else { return };
            let path = format!("/v1/agents/me/access-tokens/{}", token.id);
            let answer = world.send(node, "DELETE", &path, &[agent.proof(world)], "{}").await;
            if answer.status == 200 {
                let mut notes = agent.notes.lock().unwrap();
                notes.tokens.iter_mut().filter(|other| other.id == token.id).for_each(|token| token.revoked = true);
            }
            answer
        }
        Act::Budget => {
            let dice = &world.fate.dice;
            let daily = (!dice.percent(40)).then(|| 10_000 + dice.roll(60_000));
            let per_transaction = dice.percent(20).then(|| 1_000 + dice.roll(5_000));
            let amount = |micro: Option<u64>| micro.map(|micro| Usdc::from_micro(micro).to_string());
            let tools = if dice.percent(20) { json!({"vin_decode": "0.010000"}) } else { Value::Null };
            let body = json!({"daily": amount(daily), "per_transaction": amount(per_transaction), "tools": tools});
            // Even without an answer the request may have taken effect.
            agent.notes.lock().unwrap().daily_tried.push(daily);
            world.send(node, "PUT", "/v1/agents/me/budgets", &[agent.proof(world)], &body.to_string()).await
        }
        Act::Freeze | Act::Lift => {
            let targets = ["agent", "tool", "payee"];
            let what = world.fate.dice.pick(&targets).unwrap();
            let id = match *what {
                "tool" => json!("vin_decode"),
                "payee" => json!("service"),
                _ => Value::Null,
            };
            let lift = if act == Act::Lift { "/lift" } else { "" };
            let mut body = json!({"what": what});
            if !id.is_null() {
                body["id"] = id;
            }
            let path = format!("/v1/agents/me/freezes{lift}");
            world.send(node, "POST", &path, &[agent.proof(world)], &body.to_string()).await
        }
        Act::Payout => {
            // What fails is tried again by the next.
            let _ = sellers::ask(world, node.gate.app.clock.now()).await;
            return;
        }
        Act::Sweep => {
            let _ = world.sweep(node).await;
            return;
        }
        Act::Deliver | Act::Stranger | Act::Cancel | Act::Fund | Act::Drain | Act::Forget | Act::Time => return,
    };
    world.fate.figures.count(&format!("answer {}", answer.status));
    if let Some(cap) = answer.body["budget"]["reason"].as_str() {
        world.fate.figures.count(&format!("stopped by {cap}"));
    }
    assert!(answer.status < 600 && answer.status != 404 && answer.status != 415, "{act:?}: {answer:?}");
}

/// Pays a quote: signed, from its hold, or both.
async fn pay_quoted(world: &World, agent: &Agent, node: &Node, quoted: &Quoted) -> Answer {
    let mut headers = vec![("x-quote-id", quoted.quote_id.clone())];
    if quoted.amount == 0 {
        headers.extend([("payment-signature", agent.payer.nothing()), agent.proof(world)]);
    } else {
        let authorization = agent.authorize(world, quoted.amount);
        headers.push(("x-payment", header(&bare(&authorization))));
        let (path, body, quote_id) = (quoted.path, quoted.body.clone(), Some(quoted.quote_id.clone()));
        agent.remember(Shown { path, body, quote_id, name: None, authorization, by_stranger: false });
    }
    world.send(node, "POST", quoted.path, &headers, &quoted.body.to_string()).await
}

/// Texts some of the numbers that agents know of.
async fn text(world: &World, agent: &Agent, node: &Node) -> Answer {
    if let Ok(Some(own)) = phone::of_agent(&world.db, agent.id, EMBEDDED).await {
        world.numbers.learn(agent.id, own.number);
    }
    let body = world.numbers.text(&world.fate.dice);
    buy_asked(world, agent, node, sms::SPEC.path(), body).await
}

/// Asks for the price of something, as the agent, in its name, or as nobody, and pays it at once: once or twice at once, or with
/// a token. Mostly the agent has the money, which the price of a number takes.
pub async fn buy_asked(world: &World, agent: &Agent, node: &Node, path: &'static str, body: Value) -> Answer {
    let dice = &world.fate.dice;
    let who = match dice.roll(6) {
        0 => None,
        1 => Some(agent.named()),
        _ => Some(agent.proof(world)),
    };
    let headers: Vec<_> = who.into_iter().collect();
    let asked = world.send(node, "POST", path, &headers, &body.to_string()).await;
    let Some(quoted) = agent.keep_quote(path, body, &asked) else { return asked };
    if let Some(token) = agent.pick(world, |notes| &notes.tokens).filter(|_| dice.percent(30)) {
        let headers = [("x-quote-id", quoted.quote_id), ("authorization", format!("Bearer {}", token.bearer))];
        return world.send(node, "POST", path, &headers, &quoted.body.to_string()).await;
    }
    if dice.percent(80) {
        world.chain.fund(agent.payer.address(), quoted.amount);
    }
    if dice.percent(20) {
        let other = dice.pick(&world.nodes).unwrap();
        let first = pay_quoted(world, agent, node, &quoted);
        return tokio::join!(first, pay_quoted(world, agent, other, &quoted)).0;
    }
    pay_quoted(world, agent, node, &quoted).await
}

/// Pays the quote of an asked price: in time or late, once or twice at once, the agent's own or another's, for what was
/// quoted or for something else.
async fn pay_asked(world: &World, agent: &Agent, node: &Node) -> Option<Answer> {
    let dice = &world.fate.dice;
    let is_own = dice.percent(80);
    let given = world.asked.pick(dice, |given| (given.asker == agent.id) == is_own)?;
    let mut body = given.body.clone();
    let changed = match dice.roll(10) {
        0 => Some("text"),
        1 => Some("note"),
        _ => None,
    };
    if let Some(member) = changed {
        body[member] = json!("something else");
    }
    let payment = agent.payment_for(world, &given, &body);
    let second = match dice.roll(10) {
        0..2 => Some(payment.clone()),
        2..4 => Some(agent.payment_for(world, &given, &body)),
        _ => None,
    };
    let (path, body) = (given.tool.path(), body.to_string());
    let mut answers = Vec::new();
    match &second {
        None => answers.push(world.send(node, "POST", path, &payment, &body).await),
        Some(second) => {
            let other = dice.pick(&world.nodes).unwrap();
            let first = world.send(node, "POST", path, &payment, &body);
            let (first, second) = tokio::join!(first, world.send(other, "POST", path, second, &body));
            world.fate.figures.count("two payments of one asked quote at once");
            answers.extend([first, second]);
        }
    }
    let may_buy = given.is_open_to(agent.id) && changed.is_none_or(|member| given.leaves_open(member));
    for answer in &answers {
        let bought = (200..300).contains(&answer.status);
        assert!(may_buy || !bought, "{} bought by {changed:?}: {:?} {answer:?}", agent.id, given.quote);
    }
    answers.pop()
}

fn node_index(world: &World, node: &Node) -> usize {
    world.nodes.iter().position(|other| std::ptr::eq(other, node)).unwrap()
}

/// Sends a payment again, unchanged or for something else.
pub async fn present(world: &World, node: usize, shown: &Shown, for_something_else: bool) -> Answer {
    let mut body = shown.body.clone();
    if for_something_else {
        body["memo"] = json!("something else");
    }
    let mut headers = vec![("x-payment", header(&bare(&shown.authorization)))];
    headers.extend(shown.quote_id.clone().map(|quote| ("x-quote-id", quote)));
    headers.extend(shown.name.clone().map(|name| ("idempotency-key", name)));
    world.send(&world.nodes[node], "POST", shown.path, &headers, &body.to_string()).await
}

/// Acts that affect all processes, or happen outside of the service.
pub fn happen(act: Act, world: &World, agent: &Agent) {
    let dice = &world.fate.dice;
    match act {
        Act::Stranger => {
            let mut notes = agent.notes.lock().unwrap();
            let count = notes.shown.len() as u64;
            if count > 0 {
                // Mostly a recent one, because the others have expired.
                let index = usize::try_from(count - 1 - dice.roll(count.min(4))).unwrap();
                let shown = &mut notes.shown[index];
                shown.by_stranger = true;
                world.fate.figures.count("fault broadcast by a stranger");
                world.chain.broadcast(&shown.authorization, dice.millis(2_000));
            }
        }
        Act::Cancel => {
            if let Some(shown) = agent.pick(world, |notes| &notes.shown) {
                world.chain.cancel(&shown.authorization);
            }
        }
        Act::Fund => world.chain.fund(agent.payer.address(), 5_000 + dice.roll(40_000)),
        Act::Drain => world.chain.drain(agent.payer.address()),
        Act::Forget => world.chain.forget_one(),
        Act::Time => {
            let secs = match dice.roll(20) {
                0..8 => dice.roll(10),
                8..14 => 41 + dice.roll(40),
                14..17 => 300,
                17 | 18 => 901,
                _ => 3_600,
            };
            if secs > 40 {
                world.fate.figures.count("fault all processes suspended past their leases");
            }
            world.advance(Duration::from_secs(secs));
        }
        _ => {}
    }
}
