//! Receipts, spending, the value that purchases brought, and the audit.

use base::input::{Field, Kind, Range};

use super::approvals::APPROVAL;
use super::shape::{Member, Named, Shape, has, may};
use super::shared::OK;
use super::{Answer, Auth, Body, FLAG, Link, Operation, schemas};

const AMOUNT: Kind = Kind::Number(Range { above: Some(0.0), min: None, max: Some(1_000_000.0) });

/// The value of a purchase.
pub const VALUE: [Field; 3] = [
    Field::required("type", Kind::Choice(&["revenue", "lead", "conversion", "savings", "engagement"]), "Kind of value"),
    Field::required("amount", AMOUNT, "Value in USD"),
    Field::optional("label", Kind::Text { min: 0, max: 200, format: None }, "A label"),
];

/// The value of a goal.
pub const OUTCOME: [Field; 4] = {
    let [kind, amount, label] = VALUE;
    [
        Field::required("goal_id", Kind::Text { min: 1, max: 255, format: None }, "The goal the value belongs to"),
        kind,
        amount,
        label,
    ]
};

/// The owner's decision about a reported value.
pub const DECISION: [Field; 2] = [
    Field::optional("status", Kind::Choice(&["confirmed", "rejected"]), "The owner's decision; default confirmed"),
    Field::optional(
        "amount",
        AMOUNT,
        "The amount you decide on. If a different amount has been reported since, the decision is refused",
    ),
];

const WALLET: Auth = Auth::Wallet { token_is_told: "access_tokens_wallet_only" };
const PERIOD: Field =
    Field::optional("period", Kind::Integer { min: 1, max: 365 }, "The last days, this many; default 30");
const TIME: Kind = Kind::Text { min: 0, max: 64, format: Some(&schemas::TIME) };
const STATUS: Shape = Shape::Choice(&["pending", "confirmed", "rejected"]);
const KIND: Shape = Shape::Choice(&["revenue", "lead", "conversion", "savings", "engagement"]);
const EXECUTION: Shape = Shape::Choice(&["pending", "completed", "failed"]);

static TAG: &[Member] = &[
    has("type", KIND),
    has("amount", Shape::OrNull(&Shape::Number)),
    has("label", Shape::OrNull(&Shape::Text)),
    has("status", STATUS),
];

/// A charge.
pub static RECEIPT: Named = Named {
    name: "Receipt",
    about: "A charge. It is signed once its payment and its work are final.",
    shape: Shape::Object(&[
        has("id", Shape::Text),
        has("receipt_id", Shape::Text),
        has("agent_id", Shape::Uuid),
        has("soul_agent_id", Shape::OrNull(&Shape::Text)),
        has("category", Shape::Text),
        has("subcategory", Shape::Text).about("The tool"),
        has("amount_usdc", Shape::Usdc).about("Charged: the price"),
        has("service_fee", Shape::OrNull(&Shape::Usdc)),
        has("provider_cost", Shape::OrNull(&Shape::Usdc)),
        has("status", Shape::Text),
        has("execution_status", EXECUTION),
        has("goal_id", Shape::OrNull(&Shape::Text)),
        has("job_id", Shape::OrNull(&Shape::Uuid)),
        has("settlement_tx", Shape::OrNull(&Shape::Hash)),
        has("metadata", Shape::OrNull(&Shape::Map(&Shape::Any))),
        has("memo", Shape::OrNull(&Shape::Text)),
        has("decisionContext", Shape::OrNull(&Shape::Map(&Shape::Any))),
        has("value_tag", Shape::OrNull(&Shape::Object(TAG))),
        has("revision", Shape::Integer),
        has("digest", Shape::OrNull(&Shape::Text)),
        has("signature", Shape::OrNull(&Shape::Text)),
        has("key_id", Shape::OrNull(&Shape::Text)),
        has("alg", Shape::OrNull(&Shape::Text)),
        has("created_at", Shape::Time),
        has("settled_at", Shape::OrNull(&Shape::Time)),
        has("spent_usdc", Shape::Usdc).about("What it adds to your spending: the price, until it is known what is kept of it; 0 for bought credits and for payments that failed"),
        has("credited_usdc", Shape::OrNull(&Shape::Usdc)).about("Paid back because the work failed, or used less than its quoted price; null otherwise"),
        has("kept_usdc", Shape::OrNull(&Shape::Usdc))
            .about("The part that was not paid back: failed work had used it up for paid tools and the model, or completed work used it. Null if nothing was paid back"),
        has("credits_used_usdc", Shape::Usdc),
        has("access_token_id", Shape::OrNull(&Shape::Uuid)),
    ]),
};

/// A row of the audit.
pub static AUDIT_ROW: Named = Named {
    name: "AuditRow",
    about: "Everything the receipt's signature covers, and the signature.",
    shape: Shape::Object(&[
        has("receipt_id", Shape::Text),
        has("agent_id", Shape::Uuid),
        has("soul_agent_id", Shape::OrNull(&Shape::Text)),
        has("receipt_revision", Shape::OrNull(&Shape::Integer)),
        has("category", Shape::Text),
        has("subcategory", Shape::Text),
        has("amount_usdc", Shape::Usdc).about("Charged: the price"),
        has("service_fee", Shape::OrNull(&Shape::Usdc)),
        has("status", Shape::Text),
        has("signature", Shape::OrNull(&Shape::Text)).about("The settlement's transaction"),
        has("execution_status", EXECUTION),
        has("goalId", Shape::OrNull(&Shape::Text)),
        has("job_id", Shape::OrNull(&Shape::Uuid)),
        has("metadata", Shape::OrNull(&Shape::Map(&Shape::Any))),
        has("created_at", Shape::Time),
        has("settled_at", Shape::OrNull(&Shape::Time)),
        has("receipt_signature", Shape::OrNull(&Shape::Text)),
        has("receipt_digest", Shape::OrNull(&Shape::Text)),
        has("receipt_key_id", Shape::OrNull(&Shape::Text)),
        has("receipt_alg", Shape::OrNull(&Shape::Text)),
        has("receipt_signed", Shape::Bool),
        has("kept_usdc", Shape::OrNull(&Shape::Usdc))
            .about("The part that was not paid back. If not null, it is the last member of the signed text"),
    ]),
};

pub static REPORTED: Named = Named {
    name: "Outcome",
    about: "",
    shape: Shape::Object(&[
        has("outcome_id", Shape::Text),
        has("goal_id", Shape::OrNull(&Shape::Text)),
        has("type", KIND),
        has("amount", Shape::OrNull(&Shape::Number)),
        has("label", Shape::OrNull(&Shape::Text)),
        has("status", STATUS),
        has("created_at", Shape::Time),
        has("updated_at", Shape::Time),
        has("confirmed_at", Shape::OrNull(&Shape::Time)),
    ]),
};

static TAGGED: &[Member] = &[OK, has("receipt_id", Shape::Text), has("value_tag", Shape::Object(TAG))];
static SAID: &[Member] = &[OK, has("outcome_id", Shape::Text), has("outcome", Shape::Ref(&REPORTED))];

static RETURNS: &[Member] = &[
    has("rocs", Shape::OrNull(&Shape::Number)).about("Value for each dollar spent"),
    has("rocs_percent", Shape::OrNull(&Shape::Number)),
    has("total_value", Shape::Usdc),
    has("total_revenue_usdc", Shape::Usdc),
    has("total_spend", Shape::Usdc).about("The sum of the receipts' spent_usdc"),
    has("total_spent_usdc", Shape::Usdc),
    has("pending_value", Shape::Usdc),
    has("period_days", Shape::Integer),
    has("truncated", Shape::Bool),
];

static GOAL: &[Member] = &[
    has("goal_id", Shape::OrNull(&Shape::Text)),
    has("spend", Shape::Usdc),
    has("value", Shape::Usdc),
    has("pending_value", Shape::Usdc),
    has("rocs", Shape::OrNull(&Shape::Number)),
    has("receipt_count", Shape::Integer),
    has("outcomes", Shape::List(&Shape::Ref(&REPORTED))),
];

static CATEGORY: &[Member] = &[
    has("category", Shape::Text),
    has("total", Shape::Usdc),
    has("total_usdc", Shape::Usdc),
    has("count", Shape::Integer),
    has("call_count", Shape::Integer),
    has("pct", Shape::Number),
    may("subcategories", Shape::List(&Shape::Object(SUBCATEGORY))),
];

static SUBCATEGORY: &[Member] =
    &[has("name", Shape::Text), has("total_usdc", Shape::Usdc), has("call_count", Shape::Integer)];

static ENTRY: &[Member] = &[
    has("kind", Shape::Text),
    has("amount_usdc", Shape::Usdc),
    has("credits_usdc", Shape::Usdc),
    has("reserved_usdc", Shape::Usdc),
    has("owed_usdc", Shape::Usdc),
    has("request_id", Shape::OrNull(&Shape::Uuid)),
    has("at", Shape::Time),
];

static WORK_ERROR: &[Member] =
    &[has("error_code", Shape::Text), has("error_reason", Shape::OrNull(&Shape::Text)), has("message", Shape::Text)];

static WORK: &[Member] = &[
    has("request_id", Shape::Uuid),
    has("tool", Shape::Text),
    has("status", Shape::Text),
    has("input_digest", Shape::Text),
    has("result_digest", Shape::OrNull(&Shape::Text)),
    has("provider", Shape::OrNull(&Shape::Text)),
    has("provider_request_id", Shape::OrNull(&Shape::Text)),
    has("mode", Shape::OrNull(&Shape::Text)),
    has("error", Shape::OrNull(&Shape::Object(WORK_ERROR))),
    has("created_at", Shape::Time),
    has("updated_at", Shape::Time),
];

static PAID: &[Member] = &[
    has("payer", Shape::Address),
    has("amount_usdc", Shape::Usdc),
    has("credits_usdc", Shape::Usdc),
    has("signed_usdc", Shape::OrNull(&Shape::Usdc)),
    has("network", Shape::OrNull(&Shape::Text)),
    has("asset", Shape::OrNull(&Shape::Address)),
    has("pay_to", Shape::OrNull(&Shape::Address)),
    has("nonce", Shape::OrNull(&Shape::Hash)),
    has("transaction", Shape::OrNull(&Shape::Hash)),
    has("settlement_status", Shape::Text),
    has("refusal", Shape::OrNull(&Shape::Text)),
    has("access_token_id", Shape::OrNull(&Shape::Uuid)),
];

static QUOTE: &[Member] = &[has("id", Shape::Text), has("amount_usdc", Shape::Usdc), has("expires_at", Shape::Time)];
static VERDICT: &[Member] = &[
    has("verdict", Shape::Choice(&["none", "allowed", "approved"])),
    has("rules_revision", Shape::Integer),
    has("approval_id", Shape::OrNull(&Shape::Text)),
];

static EXPLAINED: &[Member] = &[
    has("receipt", Shape::Ref(&RECEIPT)),
    has("memo", Shape::OrNull(&Shape::Text)),
    has("decision_context", Shape::OrNull(&Shape::Map(&Shape::Any))),
    has("value_tag", Shape::OrNull(&Shape::Object(TAG))),
    has("quote", Shape::OrNull(&Shape::Object(QUOTE))),
    has("policy", Shape::Object(VERDICT)),
    has("approval", Shape::OrNull(&Shape::Ref(&APPROVAL))),
    has("job", Shape::OrNull(&Shape::Object(WORK))).about("Kept for 30 days"),
    has("payment", Shape::OrNull(&Shape::Object(PAID))),
    has("refund", Shape::OrNull(&Shape::Object(ENTRY))),
    has("entries", Shape::List(&Shape::Object(ENTRY))),
];

static EXPORT_HEADERS: &[(&str, bool, &str)] = &[
    ("X-Has-More", true, "Whether there is another page"),
    ("X-Next-Cursor", false, "Its cursor"),
    ("X-Export-Rows", true, "Rows of this page"),
    ("X-Export-Hash", true, "The last row's running hash"),
];

pub static OPERATIONS: &[Operation] = &[
    Operation::get("/v1/analytics/receipts", "listReceipts", "Your receipts, newest first")
        .auth(Auth::Agent)
        .query(&[
            Field::optional("since", TIME, "Not before this time"),
            Field::optional("until", TIME, "Not after it"),
            Field::optional("period", Kind::Integer { min: 1, max: 365 }, "The last days, this many"),
            Field::optional("category", Kind::Choice(&gate::insights::list::CATEGORIES), "Only of this category"),
            Field::optional("limit", Kind::Integer { min: 1, max: 100 }, "At most this many; default 50"),
            Field::optional(
                "offset",
                Kind::Integer { min: 0, max: (gate::insights::MAX_RECEIPTS - 100) as i64 },
                "Skips this many",
            ),
        ])
        .answers(&[Answer::ok(
            "Receipts",
            Shape::Object(&[
                has("receipts", Shape::List(&Shape::Ref(&RECEIPT))),
                has("count", Shape::Integer),
                has("has_more", Shape::Bool),
                has("truncated", Shape::Bool).about("There are more receipts than one request reads"),
            ]),
        )])
        .beyond_schema("until must not be before since, and both have to be valid times"),
    Operation::patch("/v1/analytics/receipts/{id}/value", "tagReceipt", "Reports the value of a purchase")
        .about("Pending until the owner confirms it.")
        .auth(Auth::Agent)
        .body(Body::Fields(&VALUE))
        .answers(&[Answer::ok("The tag", Shape::Object(TAGGED))])
        .refuses(&[(404, "receipt_not_found")])
        .beyond_schema("an amount has at most six decimals")
        .links(&[Link {
            name: "confirm",
            status: 200,
            to: "confirmReceiptValue",
            parameters: &[("id", "$response.body#/receipt_id")],
        }]),
    Operation::post(
        "/v1/analytics/receipts/{id}/value/confirm",
        "confirmReceiptValue",
        "Confirms or rejects a value tag",
    )
    .auth(WALLET)
    .body(Body::Fields(&DECISION))
    .answers(&[Answer::ok("The tag as decided", Shape::Object(TAGGED))])
    .refuses(&[(404, "receipt_not_found"), (404, "not_found")])
    .beyond_schema("an amount has to be the one reported last"),
    Operation::post("/v1/analytics/outcomes", "reportOutcome", "Reports the value of a goal")
        .about("One outcome for each goal and type; the latest counts.")
        .auth(Auth::Agent)
        .body(Body::Fields(&OUTCOME))
        .answers(&[Answer::ok("The outcome", Shape::Object(SAID))])
        .beyond_schema("an amount has at most six decimals")
        .links(&[Link {
            name: "confirm",
            status: 200,
            to: "confirmOutcome",
            parameters: &[("id", "$response.body#/outcome_id")],
        }]),
    Operation::post("/v1/analytics/outcomes/{id}/confirm", "confirmOutcome", "Confirms or rejects an outcome")
        .auth(WALLET)
        .body(Body::Fields(&DECISION))
        .answers(&[Answer::ok("The outcome as decided", Shape::Object(SAID))])
        .refuses(&[(404, "not_found")])
        .beyond_schema("an amount has to be the one reported last"),
    Operation::get("/v1/analytics/rocs", "getReturns", "The return on spending in a period")
        .auth(Auth::Agent)
        .query(&[PERIOD])
        .answers(&[Answer::ok("The return on spending", Shape::Object(RETURNS))]),
    Operation::get("/v1/analytics/rocs/by-goal", "getReturnsByGoal", "The return on spending, by goal")
        .auth(Auth::Agent)
        .query(&[PERIOD, Field::optional("goal_id", Kind::Text { min: 0, max: 255, format: None }, "Only this goal")])
        .answers(&[Answer::ok(
            "Goals",
            Shape::Object(&[
                has("goals", Shape::List(&Shape::Object(GOAL))),
                has("period_days", Shape::Integer),
                has("truncated", Shape::Bool),
            ]),
        )]),
    Operation::get("/v1/analytics/spend/breakdown", "getSpending", "Spending by category")
        .auth(Auth::Agent)
        .query(&[PERIOD, Field::optional("subcategories", FLAG, "Also by tool")])
        .answers(&[Answer::ok(
            "Spending by category",
            Shape::Object(&[
                has("categories", Shape::List(&Shape::Object(CATEGORY))),
                has("total", Shape::Usdc),
                has("total_spent_usdc", Shape::Usdc),
                has("period_days", Shape::Integer),
                has("truncated", Shape::Bool),
            ]),
        )]),
    Operation::get("/v1/audit/receipts", "auditReceipts", "Every receipt, oldest first, by cursor")
        .auth(WALLET)
        .query(&[
            Field::optional("limit", Kind::Integer { min: 1, max: 500 }, "At most this many; default 100"),
            Field::optional("cursor", Kind::Text { min: 0, max: 1000, format: None }, "A page's next_cursor"),
        ])
        .answers(&[Answer::ok(
            "A page",
            Shape::Object(&[
                has("receipts", Shape::List(&Shape::Ref(&AUDIT_ROW))),
                has("count", Shape::Integer),
                has("has_more", Shape::Bool),
                has("next_cursor", Shape::OrNull(&Shape::Text)),
            ]),
        )])
        .refuses(&[(400, "invalid_cursor")])
        .beyond_schema("a cursor has to come from a page of yours"),
    Operation::get("/v1/audit/export", "exportReceipts", "The same rows as a file, each with a running hash")
        .auth(WALLET)
        .query(&[
            Field::optional("format", Kind::Choice(&["csv", "jsonl"]), "jsonl"),
            Field::optional("limit", Kind::Integer { min: 1, max: 500 }, "At most this many; default 500"),
            Field::optional("cursor", Kind::Text { min: 0, max: 1000, format: None }, "A page's X-Next-Cursor"),
        ])
        .answers(&[Answer::other(
            200,
            "One page of rows. Concatenated pages are one file",
            &["application/x-ndjson", "text/csv"],
        )
        .headers(EXPORT_HEADERS)])
        .refuses(&[(400, "invalid_cursor")])
        .beyond_schema("a cursor has to come from a page of yours"),
    Operation::get("/v1/receipts/{id}/explain", "explainReceipt", "Everything about one charge")
        .about("By the receipt's id or the request's.")
        .auth(Auth::Agent)
        .answers(&[Answer::ok("The charge", Shape::Object(EXPLAINED))])
        .refuses(&[(404, "receipt_not_found")]),
];
