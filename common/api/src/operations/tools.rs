//! Everything that is sold: one operation for each path in the catalog.

use std::collections::HashMap;
use std::sync::LazyLock;

use ::catalog::CATALOG;
use base::input::{Field, Kind};
use ledger::payments::wire;
use platform::http::headers::{MAX_APPROVAL_BYTES, MAX_COST_BYTES, MAX_QUOTE_BYTES};
use tools::spec::{self, Catalog, MARKET, TOP_UP, ToolSpec};
use tools_sms::buy;

use super::shape::{Member, Named, Shape, has, may};
use super::shared::{IGNORED, OK, SETTLEMENT, UNSETTLED};
use super::{Answer, Auth, Body, IDEMPOTENCY_KEY, Link, Operation, sms};

pub const APPROVAL_ID: Field = Field::optional(
    "X-Approval-Id",
    Kind::Text { min: 0, max: MAX_APPROVAL_BYTES, format: Some(&super::shared::ASCII) },
    "The approval that releases a held call",
);

/// Headers of a paid call. Payments in other dialects are accepted too (README); these are the ones to send.
static HEADERS: &[Field] = &[
    IDEMPOTENCY_KEY,
    Field::optional(
        "PAYMENT-SIGNATURE",
        Kind::Text { min: 1, max: wire::MAX_HEADER_BYTES, format: Some(&super::shared::VISIBLE) },
        "x402 v2: the signed payment, base64 of JSON. x402 clients send it after a 402",
    ),
    Field::optional(
        "X-Quote-ID",
        Kind::Text { min: 0, max: MAX_QUOTE_BYTES, format: Some(&super::shared::ASCII) },
        "The quote that this payment is for. x402 v2 payments contain it already",
    ),
    Field::optional(
        "X-Max-Cost-USDC",
        Kind::Text { min: 1, max: MAX_COST_BYTES, format: Some(&super::schemas::DECIMAL) },
        "The most this call may cost you. A call that costs more is refused before any payment. Raise it for expensive calls",
    ),
    Field::optional(
        "X-Dry-Run",
        super::FLAG,
        "`true`: a dry run. It says what the call would cost and whether it would be refused; nothing is charged or written",
    ),
    APPROVAL_ID,
];

/// Refusals of a paid call, besides those that follow from who may call.
const PAID: [(u16, &str); 19] = [
    (400, "invalid_quote"),
    (400, "quote_mismatch"),
    (400, "exceeds_caller_budget"),
    (402, "payment_required"),
    (402, "payment_verification_failed"),
    (402, "insufficient_credits"),
    (403, "action_denied_by_policy"),
    (403, "approval_required"),
    (403, "approval_invalid"),
    (403, "budget_exceeded"),
    (403, "frozen_by_owner"),
    (409, "payment_already_used"),
    (410, "result_expired"),
    (409, "request_in_progress"),
    (409, "too_many_pending_approvals"),
    (422, "idempotency_key_reused"),
    (500, "payment_processing_error"),
    (503, "service_paused"),
    (503, "provider_unavailable"),
];
/// The refusals of the operator's own services.
static OF_OWN: LazyLock<Vec<(u16, &'static str)>> =
    LazyLock::new(|| PAID.into_iter().chain([(400, "invalid_input")]).collect());
/// Refusals only for what souls sell.
const SOLD_BY_SOULS: [(u16, &str); 5] = [
    (400, "invalid_input"),
    (400, "not_for_sale"),
    (404, "not_found"),
    (404, "soul_not_found"),
    (404, "service_not_found"),
];

/// The refusals of everything that is sold, by the tool's name.
static REFUSALS: LazyLock<HashMap<&'static str, Vec<(u16, &'static str)>>> = LazyLock::new(|| {
    let sold = CATALOG.iter().chain(MARKET).chain([&TOP_UP]);
    sold.map(|tool| (tool.name, refusals(tool))).collect()
});

fn refusals(tool: &ToolSpec) -> Vec<(u16, &'static str)> {
    let mut all = PAID.to_vec();
    if MARKET.iter().any(|sold| sold.name == tool.name) {
        all.extend(SOLD_BY_SOULS);
    }
    if !tool.judged.is_empty() {
        all.push((400, "content_blocked"));
    }
    if tool.quote_path.is_some() {
        all.push((400, "quote_id_required"));
    }
    all.extend(tool.refusals);
    all
}

static SERVICE: &[Member] = &[has("name", Shape::Text), has("seller", Shape::Text), has("price", Shape::Usdc)];

/// A call that was accepted; poll it.
pub static ACCEPTED: Named = Named {
    name: "Accepted",
    about: "Paid, and being worked on: poll GET /v1/requests/{request_id}.",
    shape: Shape::Object(&[
        has("request_id", Shape::Uuid),
        has("tool", Shape::Text),
        has("status", Shape::Choice(&["processing", "active"])).about("`active`: a goal, which goes on by itself"),
        has("receipt_id", Shape::Text),
        has("settlement_status", SETTLEMENT),
        has("message", Shape::Text),
        may("idempotency_key", Shape::Text).about("The call's idempotency key, if it has one"),
        may("soul_job_id", Shape::Text).about("For a soul's service: see GET /v1/soul/jobs/{id}"),
        may("service", Shape::Object(SERVICE)),
        may("verification_url", Shape::Text).about("For an identity check: the page for the person to be checked"),
        may("expires_at", Shape::Time).about("For an identity check: when the page expires"),
        may("sms", Shape::Object(TEXTS)).about("For texts"),
        may("call", Shape::Object(CALL)).about("For calls"),
        may("build", Shape::Object(BUILD)).about("For websites"),
        may("linkedin", Shape::Object(NETWORK)).about("For accounts of the professional network"),
        may("goal_id", Shape::Text).about("For goals: read it at /v1/compute/{goal_id}"),
        may("goal", Shape::Object(GOAL)).about("For goals"),
        IGNORED,
    ]),
};

static TEXTS: &[Member] =
    &[has("to_numbers", Shape::List(&Shape::Text)), has("segment_count", Shape::Integer).about("Parts of each text")];

static BUILD: &[Member] =
    &[may("lead_capture_email", Shape::Text).about("Where messages of the site's form go, if you said that")];

static NETWORK: &[Member] = &[
    has("action_request_id", Shape::Uuid),
    has("action", Shape::Text),
    has("account_id", Shape::Uuid),
    may("conversation_id", Shape::Uuid),
    may("invitation_id", Shape::Uuid),
    may("run_id", Shape::Uuid),
    may("headroom", super::network::HEADROOM).about("What is left of the account's limit"),
];

static GOAL: &[Member] =
    &[has("objective", Shape::Text), has("budget_usdc", Shape::OrNull(&Shape::Number)), has("deadline", Shape::Time)];

static CALL: &[Member] = &[
    has("target_numbers", Shape::List(&Shape::Text)),
    has("from_number", Shape::OrNull(&Shape::Text))
        .about("Your number; null if you get it with the call: the result names it"),
    has("conference_mode", Shape::Bool).about("Always false: numbers are called one after another"),
];

static STORED: &[Member] = &[
    has("request_id", Shape::Uuid),
    has("tool", Shape::Text),
    has("status", Shape::Text),
    has("receipt_id", Shape::Text),
    has("settlement_status", SETTLEMENT),
    has("message", Shape::Text),
];

static DAY: &[Member] = &[
    has("counted_usdc", Shape::Usdc),
    has("spent_today_usdc", Shape::Usdc),
    has("in_flight_usdc", Shape::Usdc),
    has("daily_limit_usdc", Shape::OrNull(&Shape::Usdc)),
];

/// The answer to a dry run.
pub static REHEARSAL: Named = Named {
    name: "Rehearsal",
    about: "The answer to `X-Dry-Run: true`: nothing was charged, held or written.",
    shape: Shape::Object(&[
        has("dry_run", Shape::Is(true)),
        has("tool", Shape::Text),
        has("price_usdc", Shape::Usdc),
        has("would_be_accepted", Shape::Bool),
        has("refusal", Shape::OrNull(&Shape::Map(&Shape::Any)))
            .about("The refusal that the call would get, with its `status`"),
        has("stored_answer", Shape::OrNull(&Shape::Object(STORED)))
            .about("The earlier purchase with this idempotency key or payment; the call would get its answer"),
        may("to_sign_usdc", Shape::Usdc),
        may("from_credits_usdc", Shape::Usdc),
        may("credits_balance_usdc", Shape::Usdc),
        may("budget", Shape::Object(DAY)),
        may(
            "policy",
            Shape::Object(&[
                has("verdict", Shape::Choice(&["none", "allow", "require_approval", "deny"])),
                may("rule", Shape::Text),
            ]),
        ),
        IGNORED,
    ]),
};

static COMPLETED: &[Member] = &[
    has("request_id", Shape::Uuid),
    has("receipt_id", Shape::Text),
    has("status", Shape::Choice(&["completed"])),
    has("tool", Shape::Text),
    has("result", Shape::Sold),
    may("provider", Shape::Text),
    may("mode", Shape::Choice(&["embedded", "upstream"])),
    UNSETTLED,
    IGNORED,
];

static TOPPED_UP: &[Member] = &[
    has("topped_up", Shape::Usdc),
    has("credits_balance", Shape::Usdc),
    has("transaction_id", Shape::Text),
    has("settlement_tx", Shape::OrNull(&Shape::Hash)),
    has("already_credited", Shape::Bool),
    has("request_id", Shape::Uuid),
    has("receipt_id", Shape::Text),
    UNSETTLED,
    IGNORED,
];

/// The headers that say what became of the payment.
pub const SETTLED: &[(&str, bool, &str)] = &[
    ("PAYMENT-RESPONSE", false, "x402 v2 settlement, base64 of JSON, once it is known what became of the payment"),
    ("X-Settlement-Status", false, "`pending` until it is known. Do not pay again"),
];
const LATER: Answer = Answer::json(202, "Accepted. Poll for the result", Shape::Ref(&ACCEPTED)).headers(SETTLED);

static DIRECT: &[Answer] = &[
    Answer::ok(
        "The result, or a dry run's answer",
        Shape::Either(&[Shape::Object(&[OK, has("data", Shape::Object(COMPLETED))]), Shape::Ref(&REHEARSAL)]),
    )
    .headers(SETTLED),
    LATER,
];
static CREDITED: &[Answer] = &[
    Answer::ok(
        "Credited, or a dry run's answer",
        Shape::Either(&[Shape::Object(&[OK, has("data", Shape::Object(TOPPED_UP))]), Shape::Ref(&REHEARSAL)]),
    )
    .headers(SETTLED),
    LATER,
];
static HANDED_OVER: &[Answer] = &[
    Answer::ok("The result itself, or a dry run's answer", Shape::Either(&[Shape::Sold, Shape::Ref(&REHEARSAL)]))
        .headers(SETTLED),
    LATER,
];
/// A phone number is answered like a free route: it may be there already.
static NUMBER: &[Answer] = &[
    Answer::ok(
        "The number you have already, or a dry run's answer",
        Shape::Either(&[Shape::Object(&[OK, has("data", Shape::Object(sms::PROVISIONED))]), Shape::Ref(&REHEARSAL)]),
    ),
    Answer::json(201, "Bought", Shape::Object(&[OK, has("data", Shape::Object(sms::PROVISIONED))])).headers(SETTLED),
    LATER,
];
static QUEUED: &[Answer] = &[Answer::ok("A dry run's answer", Shape::Ref(&REHEARSAL)), LATER];

const POLL: Link =
    Link { name: "poll", status: 202, to: "getRequest", parameters: &[("id", "$response.body#/request_id")] };
const EXPLAIN: Link =
    Link { name: "explain", status: 202, to: "explainReceipt", parameters: &[("id", "$response.body#/receipt_id")] };
const SOUL_JOB: Link =
    Link { name: "job", status: 202, to: "getSoulJob", parameters: &[("id", "$response.body#/soul_job_id")] };
const FILES: Link =
    Link { name: "files", status: 202, to: "listSoulJobFiles", parameters: &[("id", "$response.body#/soul_job_id")] };

/// `operationId`: the tool's name. For its other paths, and for what souls sell, the last segment of the path, with the
/// segment before it where that is a verb (`find/business`).
fn id(tool: &ToolSpec, path: &'static str) -> &'static str {
    let is_listed = CATALOG.iter().chain([&TOP_UP]).any(|listed| listed.name == tool.name);
    if (is_listed || tool.own.is_some()) && path == tool.path() {
        return tool.name;
    }
    static DONE: LazyLock<HashMap<&'static str, String>> = LazyLock::new(|| {
        let paths = CATALOG.iter().flat_map(|tool| tool.paths);
        let done = paths.filter_map(|path| {
            let (what, of) = path.strip_prefix("/v1/tools/")?.split_once('/')?;
            matches!(what, "find" | "resolve").then(|| (*path, format!("{what}_{}", of.replace('-', "_"))))
        });
        done.collect()
    });
    DONE.get(path).map_or_else(|| path.rsplit('/').next().unwrap_or(path), String::as_str)
}

/// One operation for each path of everything that is sold.
pub fn operations(catalog: &'static Catalog) -> impl Iterator<Item = Operation> {
    let sold = catalog.iter().chain(catalog.market).copied().chain([TOP_UP]);
    sold.flat_map(|tool| tool.paths.iter().map(move |path| operation(tool, path)))
}

fn operation(tool: &'static ToolSpec, path: &'static str) -> Operation {
    let is_soul = spec::MARKET.iter().any(|sold| sold.name == tool.name);
    let is_number = tool.name == buy::SPEC.name;
    let answers = match (tool.answer, tool.sells_credits, is_soul || tool.bare) {
        _ if is_number => NUMBER,
        (_, true, _) => CREDITED,
        (spec::Answer::Direct, _, true) => HANDED_OVER,
        (spec::Answer::Direct, _, false) => DIRECT,
        (spec::Answer::Queued, ..) => QUEUED,
    };
    let links: &[Link] = match (tool.answer, is_soul) {
        (spec::Answer::Queued, true) => &[POLL, EXPLAIN, SOUL_JOB, FILES],
        _ => &[POLL, EXPLAIN],
    };
    let auth = if tool.sells_credits { Auth::WalletBuyer } else { Auth::Buyer };
    Operation {
        sells: Some(tool),
        beyond_schema: "before a price is quoted: your X-Max-Cost-USDC, and input rules that no schema can express (public hosts, a \
                        seller's own schema, texts that may not be sent, a `goal_id` unlike `goalId`)",
        ..Operation::post(path, id(tool, path), tool.summary)
            .auth(auth)
            .headers(HEADERS)
            .body(Body::Sold)
            .answers(answers)
            .refuses(REFUSALS.get(tool.name).map_or(&OF_OWN[..], Vec::as_slice))
            .links(links)
    }
}
