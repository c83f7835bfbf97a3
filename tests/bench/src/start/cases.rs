//! The events for each function: at least one for every deployed function.

use std::collections::BTreeSet;

use base::clock::Clock;
use base::digest::{canonical_json, sha256};
use base::money::Usdc;
use ledger::payments::quote::{Purchase, Quote};
use platform::store::queue::Message;
use serde_json::{Value, json};
use tools::spec::ToolSpec;
use tools_lookups::vehicle_identification;

use super::events;
use super::world::{CONNECTION, World};
use crate::payer::{Terms, payment_header};
use crate::stubs::aws::PLATFORM_TOKEN;

/// One event for one function.
pub struct Case {
    pub function: &'static str,
    pub what: &'static str,
    pub event: fn(&World) -> Value,
    /// Whether this is the answer that was to be measured.
    pub is_good: fn(&Value) -> bool,
    /// The handler under `node/` that does the same work, if any.
    pub node: Option<&'static str>,
}

/// The function that does nothing. It is not deployed.
pub const HELLO: &str = "hello";

/// A priced call without a payment.
pub static UNPAID: Case = Case {
    function: "knowledge",
    what: "402 to an unpaid call",
    event: |_| events::http("POST", VIN_PATH, &[], Some(vin())),
    is_good: |answer| answer["statusCode"] == 402,
    node: Some("knowledge"),
};

/// A public route.
pub static HEALTH: Case = Case {
    function: "meta",
    what: "health",
    event: |_| events::http("GET", "/health", &[], None),
    is_good: |answer| answer["statusCode"] == 200,
    node: None,
};

pub static PAID: Case = Case {
    function: "knowledge",
    what: "paid call, settled",
    event: paid_call,
    is_good: |answer| answer["statusCode"] == 200,
    node: None,
};

/// Registers a soul with a service of its seller's own worker.
pub static REGISTER: Case = Case {
    function: "souls",
    what: "a registration",
    event: |_| {
        let service = json!({
            "name": "Word statistics", "slug": "statistics", "price_usd": 0.5, "executor": "worker",
            "input_schema": {"type": "object", "required": ["text"]},
        });
        let soul = json!({
            "name": "Counter", "slug": "counter", "soul_md": "# Counter\n\nYou count words.", "soul_price": 15,
            "service": service,
        });
        events::http("POST", "/v1/soul/register", &[], Some(soul))
    },
    is_good: |answer| answer["statusCode"] == 200,
    node: None,
};

/// A paid execution of that service, which another function continues.
pub static EXECUTION: Case = Case {
    function: "souls",
    what: "paid execution, queued",
    event: |world| {
        let price = Usdc::from_micro(500_000);
        let payment = payment(world, price, None);
        let body = json!({"input": {"text": "some words"}});
        events::http("POST", EXECUTION_PATH, &[("payment-signature", &payment)], Some(body))
    },
    is_good: |answer| answer["statusCode"] == 202,
    node: None,
};

/// Every case that is run, hello-world first.
pub static ALL: &[&Case] = &[
    &Case {
        function: HELLO,
        what: "nothing",
        event: |_| events::http("GET", "/", &[], None),
        is_good: |answer| answer["statusCode"] == 200,
        node: None,
    },
    &UNPAID,
    &PAID,
    &Case {
        function: "requests",
        what: "payment status",
        event: |world| events::http("GET", &format!("/v1/payments/{}", world.job.nonce), &[], None),
        is_good: |answer| answer["statusCode"] == 200 && has(answer, "\"state\":\"claimed\""),
        node: Some("requests"),
    },
    &Case {
        function: "requests",
        what: "poll with proof",
        event: |world| proven(world, &format!("/v1/requests/{}", world.job.request_id)),
        is_good: |answer| answer["statusCode"] == 200 && has(answer, "\"status\":\"processing\""),
        node: None,
    },
    &Case {
        function: "account",
        what: "balance with proof",
        event: |world| proven(world, "/v1/tools/balance"),
        is_good: |answer| answer["statusCode"] == 200 && has(answer, "\"on_chain_balance\":\"5.000000\""),
        node: Some("account"),
    },
    &Case {
        function: "messaging",
        what: "inbox with proof",
        event: |world| proven(world, "/v1/tools/inbox"),
        is_good: |answer| answer["statusCode"] == 200 && has(answer, "\"emails\":[]"),
        node: None,
    },
    &Case {
        function: "voice",
        what: "calls with proof",
        event: |world| proven(world, "/v1/tools/voice/inbound"),
        is_good: |answer| answer["statusCode"] == 200 && has(answer, "\"calls\":[]"),
        node: None,
    },
    &Case {
        function: "builds",
        what: "a refused brief",
        event: |_| events::http("POST", "/v1/tools/build", &[], Some(json!({"type": "saas"}))),
        is_good: |answer| answer["statusCode"] == 400,
        node: None,
    },
    &Case {
        function: "browser",
        what: "a refused task",
        event: |_| events::http("POST", "/v1/tools/browser", &[], Some(json!({"task": "short"}))),
        is_good: |answer| answer["statusCode"] == 400,
        node: None,
    },
    &Case {
        function: "network",
        what: "network accounts with proof",
        event: |world| proven(world, "/v1/tools/linkedin/accounts"),
        is_good: |answer| answer["statusCode"] == 200 && has(answer, "\"accounts\":[]"),
        node: None,
    },
    &Case {
        function: "commerce",
        what: "a refused purchase",
        event: |_| events::http("POST", "/v1/tools/commerce/buy", &[], Some(json!({"product_url": "x"}))),
        is_good: |answer| answer["statusCode"] == 400,
        node: None,
    },
    &Case {
        function: "compute",
        what: "goals with proof",
        event: |world| proven(world, "/v1/compute"),
        is_good: |answer| answer["statusCode"] == 200 && has(answer, "\"goals\":[]"),
        node: None,
    },
    &Case {
        function: "hosting",
        what: "a site that is not there",
        event: |_| events::http("GET", "/a-00000000000000000000000000000000/", &[], None),
        is_good: |answer| answer["statusCode"] == 404,
        node: None,
    },
    &Case {
        function: "credits",
        what: "402 to an unpaid top-up",
        event: |_| events::http("POST", "/v1/credits/top-up", &[], Some(json!({"amount": "5.00"}))),
        is_good: |answer| answer["statusCode"] == 402,
        node: None,
    },
    &Case {
        function: "checkout",
        what: "a session is opened",
        event: |_| {
            let body = json!({
                "line_items": [{"id": "agora-credits"}], "currency": "usd",
                "capabilities": {"interventions": {"supported": []}},
            });
            let token = format!("Bearer {PLATFORM_TOKEN}");
            let headers =
                [("authorization", token.as_str()), ("api-version", "2026-01-30"), ("idempotency-key", "one")];
            events::http("POST", "/acp/checkout_sessions", &headers, Some(body))
        },
        is_good: |answer| answer["statusCode"] == 201,
        node: None,
    },
    &Case {
        function: "souls",
        what: "402 to an unpaid execution",
        event: |_| events::http("POST", EXECUTION_PATH, &[], Some(json!({"input": {"text": "some words"}}))),
        is_good: |answer| answer["statusCode"] == 402,
        node: None,
    },
    &Case {
        function: "souls",
        what: "first page of the list",
        event: |_| events::http("GET", "/v1/soul", &[], None),
        is_good: |answer| answer["statusCode"] == 200,
        node: None,
    },
    &EXECUTION,
    &Case {
        function: "seller",
        what: "jobs to be done",
        event: |world| {
            let key = format!("Bearer {}", world.soul_key);
            events::http("GET", "/v1/soul/me/jobs", &[("authorization", &key)], None)
        },
        is_good: |answer| answer["statusCode"] == 200,
        node: None,
    },
    &Case {
        function: "executor",
        what: "settle, hand over",
        event: |world| job_message(&world.sold.request_id),
        is_good: |answer| answer["batchItemFailures"] == json!([]),
        node: None,
    },
    &Case {
        function: "browser-worker",
        what: "a chore of another version",
        event: |_| events::message(Some(&Message::Chore { name: "none".to_owned() })),
        is_good: |answer| answer["batchItemFailures"] == json!([]),
        node: None,
    },
    &Case {
        function: "mcp",
        what: "an unpaid tool call",
        event: |_| {
            let headers = [
                ("accept", "application/json, text/event-stream"),
                ("mcp-protocol-version", MCP_VERSION),
                ("mcp-method", "tools/call"),
                ("mcp-name", "agora_vin_decode"),
            ];
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": MCP_VERSION, "io.modelcontextprotocol/clientCapabilities": {},
            });
            let params = json!({"name": "agora_vin_decode", "arguments": vin(), "_meta": meta});
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            events::http("POST", "/mcp", &headers, Some(body))
        },
        is_good: |answer| answer["statusCode"] == 200 && has(answer, "quoteId"),
        node: None,
    },
    &Case {
        function: "approvals",
        what: "policy with proof",
        event: |world| proven(world, "/v1/agents/me/action-policy"),
        is_good: |answer| answer["statusCode"] == 200,
        node: None,
    },
    &Case {
        function: "insights",
        what: "receipts with proof",
        event: |world| proven(world, "/v1/analytics/receipts"),
        is_good: |answer| answer["statusCode"] == 200,
        node: None,
    },
    &Case {
        function: "webhooks",
        what: "endpoints with proof",
        event: |world| proven(world, "/v1/webhooks"),
        is_good: |answer| answer["statusCode"] == 200 && has(answer, "https://127.0.0.1/hook"),
        node: None,
    },
    &Case {
        function: "meta",
        what: "statistics",
        event: |_| events::http("GET", "/v1/stats", &[], None),
        is_good: |answer| answer["statusCode"] == 200,
        node: Some("meta"),
    },
    &Case {
        function: "worker",
        what: "settle, work, finish",
        event: |world| job_message(&world.job.request_id),
        is_good: |answer| answer["batchItemFailures"] == json!([]),
        node: Some("worker"),
    },
    &Case {
        function: "deliveries",
        what: "an address that is refused",
        event: |world| events::message(world.delivery.as_ref()),
        is_good: |answer| answer["batchItemFailures"] == json!([]),
        node: None,
    },
    &Case {
        function: "indexer",
        what: "a page",
        event: |world| events::message(world.page.as_ref()),
        is_good: |answer| answer["batchItemFailures"] == json!([]),
        node: None,
    },
    &Case {
        function: "scheduler",
        what: "a minute without work",
        event: |_| events::minute(),
        is_good: |answer| answer["sent"] == 0,
        node: Some("scheduler"),
    },
    &Case {
        function: "payouts",
        what: "a minute without work",
        event: |_| events::minute(),
        is_good: |answer| answer["failed"] == 0,
        node: None,
    },
    &Case {
        function: "aggregator",
        what: "a finished job",
        event: |world| finished(world, |_| {}),
        is_good: |answer| !has(answer, "error"),
        node: Some("aggregator"),
    },
    &Case {
        function: "socket",
        what: "an upgrade with proof",
        event: |world| {
            events::connect(&[("x-agent-proof", &world.payer.proof(&world.config.service_name))], CONNECTION)
        },
        is_good: |answer| answer["statusCode"] == 200,
        node: None,
    },
    &Case {
        function: "pusher",
        what: "a finished job that is followed",
        event: |world| finished(world, |job| job["watched"] = json!({"BOOL": true})),
        is_good: |answer| !has(answer, "error"),
        node: None,
    },
];

/// Every function that is built, each once.
pub fn functions() -> BTreeSet<&'static str> {
    ALL.iter().map(|case| case.function).collect()
}

const TOOL: &ToolSpec = &vehicle_identification::SPEC;
const VIN_PATH: &str = "/v1/tools/lookup/vehicle-identification";
const EXECUTION_PATH: &str = "/v1/soul/counter/services/statistics/execute";
const MCP_VERSION: &str = "2026-07-28";

fn vin() -> Value {
    TOOL.example()
}

/// A read of the agent's own data, with a proof.
fn proven(world: &World, path: &str) -> Value {
    let proof = world.payer.proof(&world.config.service_name);
    events::http("GET", path, &[("x-agent-proof", &proof)], None)
}

fn job_message(request_id: &str) -> Value {
    let message = request_id.parse().ok().map(|request_id| Message::Job { request_id, trace: None });
    events::message(message.as_ref())
}

/// The end of a job on the stream. `also` changes both images of the record.
fn finished(world: &World, also: fn(&mut Value)) -> Value {
    let mut old = world.job.item.clone();
    also(&mut old);
    let mut new = old.clone();
    new["settlement"] = json!({"S": "settled"});
    new["outcome"] = json!({"S": "completed"});
    new["result"] = json!({"M": {
        "place": {"M": {"inline": {"S": "{}"}}}, "provider": {"S": "embedded"}, "mode": {"S": "embedded"},
    }});
    events::change(&old, &new)
}

/// The call of a stock client after its 402: the quote redeemed, the payment signed.
fn paid_call(world: &World) -> Value {
    let body = vin();
    let purchase = Purchase { tool: TOOL.name, body: &sha256(canonical_json(&body).as_bytes()) };
    let price = TOOL.price.usual();
    let quote = Quote::offer(purchase, None, price, Clock::system().now(), world.config.payments.quote_ttl);
    let payment = payment(world, price, Some(&quote.to_token(&world.keys.quotes)));
    events::http("POST", VIN_PATH, &[("payment-signature", &payment)], Some(body))
}

fn payment(world: &World, amount: Usdc, quote_id: Option<&str>) -> String {
    let terms = Terms {
        token: &world.config.chain.token,
        chain_id: world.config.chain.chain_id,
        pay_to: world.config.payments.pay_to,
        amount,
        quote_id,
    };
    payment_header(&world.payer.authorize(&terms, Clock::system().now()), &terms)
}

/// Whether an answer's body, or the answer itself if it has no body, contains a text.
fn has(answer: &Value, text: &str) -> bool {
    match answer["body"].as_str() {
        Some(body) => body.contains(text),
        None => answer.to_string().contains(text),
    }
}
