//! Two tools with asked prices: for one, callers ask a free route for the quote first; the other gives it in its own 402.
//! Their quoters find another price each time. Each quote that an answer gives is noted, with what may be bought with it.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use api::routes;
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use base::input::{Field, Kind};
use base::money::Usdc;
use gate::jobs::input::StoredInput;
use gate::jobs::job::{Job, Outcome, Settlement};
use gate::jobs::store;
use gate::secrets::ServiceKeys;
use gate::{Call, Gate};
use http::StatusCode;
use ledger::payments::quote::Quote;
use platform::http::{ApiError, private_json, read_body};
use platform::store::{Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tools::lock;
use tools::quoting::{AskedPrice, QuoteRequest, Quoter};
use tools::spec::{Catalog, Claiming, Price, ToolSpec};
use tools::{Output, Running, Task, ToolError, Toolbox, Unavailable};

use super::acts::Agent;
use super::dice::Dice;
use super::world::{Answer, World};
use crate::support::books;

/// The route group of both.
pub const GROUP: &str = "asked";

/// The least and the most that a quoter finds, in micro-USDC.
pub const LEAST: Usdc = Usdc::from_micro(1_000);
const MOST: Usdc = Usdc::from_micro(10_000);

const TEXT: Field = Field::required("text", Kind::Text { min: 1, max: 100, format: None }, "What to do");
const NOTE: Field = Field::optional("note", Kind::Text { min: 1, max: 100, format: None }, "How to do it");

/// Queued. The note may be added after the quote. An agent has one open at a time: the claim takes its lock. What it makes is
/// written by the transaction that ends it.
pub static BY_ROUTE: ToolSpec = ToolSpec {
    name: "asked_by_route",
    title: "Asked by route",
    summary: "Something with a price that is asked for at a free route",
    group: GROUP,
    paths: &["/v1/tools/asked/by-route"],
    price: Price::Asked { usual: LEAST, most: MOST },
    quote_path: Some("/v1/tools/asked/by-route/quote"),
    quote_ttl: Some(Duration::from_secs(300)),
    quoted_fields: &["text"],
    claims: |toolbox, claiming| Box::pin(take_lock(toolbox, claiming)),
    refusals: &[(409, "busy")],
    input: &[TEXT, NOTE],
    example: || json!({"text": "Something"}),
    output: || json!({"type": "object"}),
    ..ToolSpec::QUEUED
};

/// Direct. Its quotes are for the whole body.
pub static BY_CALL: ToolSpec = ToolSpec {
    name: "asked_by_call",
    title: "Asked by call",
    summary: "Something with a price that its own path gives",
    group: GROUP,
    paths: &["/v1/tools/asked/by-call"],
    price: Price::Asked { usual: LEAST, most: MOST },
    input: &[TEXT, NOTE],
    example: || json!({"text": "Something"}),
    output: || json!({"type": "object"}),
    ..ToolSpec::DIRECT
};

pub static TOOLS: [&ToolSpec; 2] = [&BY_ROUTE, &BY_CALL];

/// Places of [`PLACES`].
pub const MAX_PLACES: usize = 25;

/// Queued, at a fixed price. Each claim takes one of a few places, for good.
pub static PLACES: ToolSpec = ToolSpec {
    name: "asked_places",
    title: "Places",
    summary: "Something of which there are few",
    group: GROUP,
    paths: &["/v1/tools/asked/places"],
    price: Price::Fixed(LEAST),
    claims: |toolbox, _| Box::pin(take_place(toolbox)),
    refusals: &[(429, "full")],
    input: &[TEXT],
    example: || json!({"text": "Something"}),
    output: || json!({"type": "object"}),
    ..ToolSpec::QUEUED
};

#[derive(Deserialize)]
struct Places {
    taken: usize,
}

async fn take_place(toolbox: &Toolbox) -> Result<Vec<Write>, ApiError> {
    let (table, key) = (&toolbox.db.tables.jobs, Key::new("ASKED#PLACES", "COUNT"));
    let places: Option<Places> = toolbox.db.get_latest(table, key.clone()).await?;
    if places.is_some_and(|places| places.taken >= MAX_PLACES) {
        let status = StatusCode::TOO_MANY_REQUESTS;
        return Err(ApiError::Tool { status, code: "full", message: "all places are taken".to_owned() });
    }
    let take = Write::update(table, key, "ADD #taken :one")
        .only_if("attribute_not_exists(#taken) OR #taken < :most")
        .bind("one", 1)?
        .bind("most", MAX_PLACES)?;
    Ok(vec![take])
}

static QUOTERS: [Quoter; 2] = [
    Quoter {
        spec: &BY_ROUTE,
        quote: |toolbox, request| Box::pin(quote(toolbox, request)),
        check: |_, _, _, _, _| Box::pin(async { Ok(()) }),
        begins: |_| false,
    },
    Quoter {
        spec: &BY_CALL,
        quote: |toolbox, request| Box::pin(quote(toolbox, request)),
        check: |_, _, _, _, _| Box::pin(async { Ok(()) }),
        begins: |_| false,
    },
];

/// The service's catalog, with these tools and quoters.
pub static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog {
    tools: catalog::CATALOG.iter().chain(&TOOLS).copied().chain([&PLACES]).collect(),
    quoters: catalog::CATALOG.quoters.iter().copied().chain(&QUOTERS).collect(),
    providers: catalog::CATALOG.providers,
    asked: catalog::CATALOG.asked,
    charges: Vec::new,
    has_country: catalog::CATALOG.has_country,
    left_out: Vec::new(),
    market: catalog::CATALOG.market,
    problems: Vec::new(),
});

/// Finds any price after a read, or none.
async fn quote(toolbox: Arc<Toolbox>, request: QuoteRequest) -> Result<AskedPrice, ApiError> {
    let nothing = Key::new("NOTHING", "NOTHING");
    let _: Option<Map<String, Value>> = toolbox.db.get_latest(&toolbox.db.tables.jobs, nothing).await?;
    let dice = Dice::new(u64::from_be_bytes(base::digest::random()));
    if dice.percent(3) {
        return Err(ApiError::NotConfigured { what: "source of this price".to_owned() });
    }
    let price = LEAST.micro() + dice.roll(MOST.micro() - LEAST.micro() + 1);
    let text = request.input.get("text").cloned().unwrap_or_default();
    let locked = locked(&text, price).as_object().cloned().unwrap_or_default();
    Ok(AskedPrice { price: Usdc::from_micro(price), context: Map::new(), locked })
}

fn lock_key(agent: AgentId) -> Key {
    Key::new(format!("ASKED#{agent}"), "LOCK")
}

fn made_key(job: RequestId) -> Key {
    Key::new(format!("ASKED#{job}"), "MADE")
}

async fn take_lock(toolbox: &Toolbox, claiming: Claiming<'_>) -> Result<Vec<Write>, ApiError> {
    let (db, key) = (&toolbox.db, lock_key(claiming.agent));
    match lock::take(db, &db.tables.jobs, key, claiming.request_id, claiming.now).await? {
        Ok(take) => Ok(vec![take]),
        Err(other) => {
            Err(ApiError::Tool { status: StatusCode::CONFLICT, code: "busy", message: format!("{other} is open") })
        }
    }
}

/// Work that fails unless its job has the lock of its agent, and otherwise makes something when it ends.
pub async fn within_lock(toolbox: &Toolbox, task: &Task, work: Running) -> Result<Output, ToolError> {
    let (db, table, key) = (&toolbox.db, &toolbox.db.tables.jobs, lock_key(task.agent));
    let is_held = lock::is_held(db, table, key.clone(), task.request_id).await;
    let failed = |error: StoreError| ToolError::internal(error.to_string());
    if !is_held.map_err(failed)? {
        return Err(ToolError::unavailable(Unavailable::SourceUnavailable, "another has the lock"));
    }
    let output = work.await?;
    if output.waits.is_some() {
        return Ok(output);
    }
    let held = lock::held(table, key, task.request_id).map_err(failed)?;
    let made = Write::put(table, made_key(task.request_id), &Made { by: task.agent }).map_err(failed)?.only_if_new();
    Ok(output.with(vec![held, made]))
}

/// What a job of [`BY_ROUTE`] made.
#[derive(Serialize, Deserialize)]
struct Made {
    by: AgentId,
}

/// What the work is given: the quoted text and price.
fn locked(text: &Value, price: u64) -> Value {
    json!({"text": text, "price": price})
}

/// Whether a path is one of these tools'.
pub fn serves(path: &str) -> bool {
    path.starts_with("/v1/tools/asked/")
}

pub fn router(gate: Arc<Gate>) -> Router {
    routes::with_middleware(Router::new().fallback(answer).with_state(gate))
}

async fn answer(State(gate): State<Arc<Gate>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let resource = gate.app.resource_url(&parts);
    let path = parts.uri.path();
    let answer = async {
        let body = read_body(body, gate::MAX_BODY_BYTES).await?;
        let tool = [&BY_CALL, &PLACES].into_iter().find(|tool| tool.path() == path).unwrap_or(&BY_ROUTE);
        let call = Call { tool, listing: None, resource: &resource, headers: &parts.headers, body };
        if BY_ROUTE.quote_path != Some(path) {
            return gate.call(call).await;
        }
        let given = gate.quote_only(call).await?;
        Ok(private_json(StatusCode::OK, &json!({"quote_id": given.quote_id, "price": given.price.to_string()})))
    };
    gate::respond(answer.await)
}

/// A quote that an agent was given.
#[derive(Clone)]
pub struct Given {
    pub tool: &'static ToolSpec,
    pub body: Value,
    pub quote_id: String,
    pub quote: Quote,
    pub asker: AgentId,
    /// The agent that alone can redeem it; `None`: any agent.
    only_for: Option<AgentId>,
    /// A payment for it was sent before it expired.
    paid_in_time: bool,
}

impl Given {
    /// The quote in an answer of the free route, or in a 402.
    pub fn of(
        answer: &Answer,
        keys: &ServiceKeys,
        tool: &'static ToolSpec,
        body: &Value,
        asker: AgentId,
        only_for: Option<AgentId>,
    ) -> Option<Given> {
        let price = match answer.status {
            200 => &answer.body["price"],
            402 => &answer.body["context"]["total"],
            _ => return None,
        };
        let (quote_id, quote) = quote_in(answer, keys);
        assert_eq!(amount(price), quote.amount, "the price that the quote is for: {answer:?}");
        assert!((LEAST..=MOST).contains(&quote.amount), "{quote:?}");
        Some(Given { tool, body: body.clone(), quote_id, quote, asker, only_for, paid_in_time: false })
    }

    pub fn is_open_to(&self, agent: AgentId) -> bool {
        self.only_for.is_none_or(|only| only == agent)
    }

    /// Whether this member may differ from the quoted body.
    pub fn leaves_open(&self, member: &str) -> bool {
        let bound = self.tool.quoted_fields;
        !bound.is_empty() && !bound.contains(&member)
    }

    /// Checks the 402 of an unpaid call that named this quote: it is the same quote at the same price.
    pub fn check_offer(&self, answer: &Answer, keys: &ServiceKeys, to: AgentId) {
        assert!(self.is_open_to(to), "shown to a stranger: {answer:?}");
        let (_, quote) = quote_in(answer, keys);
        assert_eq!(
            (quote.uid, quote.amount, quote.expires),
            (self.quote.uid, self.quote.amount, self.quote.expires),
            "{answer:?}"
        );
        assert_eq!(amount(&answer.body["context"]["total"]), quote.amount, "{answer:?}");
        assert_eq!(amount(&answer.body["payment_request"]["amount"]), quote.remaining(), "{answer:?}");
    }

    /// Checks a purchase with this quote: by an agent it was given to, in time, as quoted, at the quoted price.
    fn check_purchase(&self, job: &Job, by_stranger: bool) {
        let (quote, price) = (&self.quote, self.quote.amount);
        assert_eq!((job.request_id, job.tool.as_str()), (quote.request_id(), self.tool.name), "{job:?}");
        assert!(self.is_open_to(job.agent), "bought by another agent: {job:?}");
        // The clocks may jump between the check of a payment and its claim. A transfer that is on chain is honoured later,
        // too.
        let in_time = job.created < quote.expires || self.paid_in_time || by_stranger;
        assert!(in_time, "bought after {}: {job:?}", quote.expires);
        let stored = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let StoredInput::Inline(input) = &job.input else { panic!("a large input: {job:?}") };
        assert_eq!(stored(input)["text"], self.body["text"], "{job:?}");
        let of_quote = job.locked.as_deref().map(stored);
        assert_eq!(of_quote, Some(locked(&self.body["text"], price.micro())), "the work gets its own quote: {job:?}");
        let signed = job.payment.as_ref().map_or(0, |payment| payment.amount().unwrap());
        assert_eq!((job.price, signed + job.charge.credits.micro()), (price, price.micro()), "{job:?}");
        let (None, Settlement::Settled) = (&job.open, job.settlement) else { return };
        let (charged, credited) = charged(job);
        assert_eq!(charged.micro() + credited.micro(), price.micro(), "charged or credited: {job:?}");
        let expected = match job.outcome {
            Some(Outcome::Completed) => job.charged.unwrap_or(price).min(price),
            _ => Usdc::ZERO,
        };
        assert_eq!(charged, expected, "{job:?}");
    }
}

/// What was kept of the price of a job that has ended, and what was credited back.
pub fn charged(job: &Job) -> (Usdc, Usdc) {
    job.credited.map_or((job.price, Usdc::ZERO), |credited| (job.kept.unwrap_or_default(), credited))
}

fn quote_in(answer: &Answer, keys: &ServiceKeys) -> (String, Quote) {
    let id = answer.body["quote_id"].as_str().unwrap_or_else(|| panic!("no quote: {answer:?}"));
    (id.to_owned(), Quote::authentic(id, &keys.quotes).expect("a quote of ours"))
}

fn amount(value: &Value) -> Usdc {
    value.as_str().and_then(|text| Usdc::parse(text).ok()).unwrap_or_else(|| panic!("no amount: {value}"))
}

/// Every quote that was given, oldest first.
#[derive(Default)]
pub struct Book(Mutex<Vec<Given>>);

impl Book {
    pub fn add(&self, given: Given) {
        self.0.lock().unwrap().push(given);
    }

    /// One of these quotes, mostly a recent one: most others have expired or were bought.
    pub fn pick(&self, dice: &Dice, fits: impl Fn(&Given) -> bool) -> Option<Given> {
        let book = self.0.lock().unwrap();
        let all: Vec<&Given> = book.iter().filter(|given| fits(given)).collect();
        let count = if dice.percent(75) { 3 } else { all.len() };
        dice.pick(&all[all.len().saturating_sub(count)..]).copied().cloned()
    }

    /// Notes a request that pays for a quote, at the time of the process that it is sent to.
    pub fn note_payment(&self, headers: &[(&str, String)], now: Timestamp, keys: &ServiceKeys) {
        let value = |wanted: &str| headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_str());
        let pays = ["x-payment", "payment-signature", "authorization"].into_iter().any(|name| value(name).is_some());
        let Some(quote) = value("x-quote-id").filter(|_| pays).and_then(|id| Quote::authentic(id, &keys.quotes)) else {
            return;
        };
        let mut book = self.0.lock().unwrap();
        if let Some(given) = book.iter_mut().find(|given| given.quote.uid == quote.uid) {
            given.paid_in_time |= now < quote.expires;
        }
    }

    fn find(&self, uid: &str) -> Option<Given> {
        let book = self.0.lock().unwrap();
        book.iter().find(|given| const_hex::encode(given.quote.uid) == uid).cloned()
    }
}

/// Checks every purchase with a quote, at a quiet moment: a quote buys once, and as it was given. Returns the jobs.
pub async fn check(world: &World, agents: &[Arc<Agent>]) -> Vec<Job> {
    let mut bought = BTreeSet::new();
    let mut jobs = Vec::new();
    for agent in agents {
        for receipt in books::receipts(&world.db, agent.id).await {
            if TOOLS.iter().all(|tool| tool.name != receipt.subcategory) {
                continue;
            }
            let job = store::load_latest(&world.db, receipt.job_id).await.unwrap().expect("a receipt has its job");
            if job.receipt_id != receipt.receipt_id {
                continue;
            }
            let uid = receipt.quote.as_ref().map(|quoted| quoted.id.clone()).expect("bought with a quote");
            let given = world.asked.find(&uid).unwrap_or_else(|| panic!("nobody was given this quote: {job:?}"));
            assert!(bought.insert(uid), "a quote buys once: {job:?}");
            let nonce = job.payment.as_ref().map(|payment| payment.nonce);
            {
                let notes = agent.notes.lock().unwrap();
                let mut broadcast = notes.shown.iter().filter(|shown| shown.by_stranger);
                let by_stranger = broadcast.any(|shown| Some(shown.authorization.nonce) == nonce);
                given.check_purchase(&job, by_stranger);
            }
            let made: Option<Made> =
                world.db.get_latest(&world.db.tables.jobs, made_key(job.request_id)).await.unwrap();
            let makes = job.tool == BY_ROUTE.name && job.outcome == Some(Outcome::Completed);
            assert_eq!(made.map(|made| made.by), makes.then_some(job.agent), "made exactly if it completed: {job:?}");
            jobs.push(job);
        }
    }
    jobs
}

/// The same once nothing is open any more, with figures.
pub async fn at_rest(world: &World, agents: &[Arc<Agent>]) {
    for job in check(world, agents).await {
        let (charged, credited) = charged(&job);
        let what = match (job.settlement, charged, credited) {
            (Settlement::Settled, _, Usdc::ZERO) => "charged",
            (Settlement::Settled, Usdc::ZERO, _) => "paid back",
            (Settlement::Settled, ..) => "charged in part",
            _ => "not paid",
        };
        world.fate.figures.count(&format!("asked quotes, {what}"));
    }
}
