//! What became of things.

use super::shape::{Member, Named, Shape, has, may};
use super::shared::SETTLEMENT;
use super::{Answer, Auth, Operation};

/// A job as its owner polls it.
pub static REQUEST: Named = Named {
    name: "Request",
    about: "A paid call. Poll while `status` is `pending` or `processing`; a `result` is there once it is `completed`.",
    shape: Shape::Object(&[
        has("request_id", Shape::Uuid),
        has("tool", Shape::Text),
        has("status", Shape::Choice(&["pending", "processing", "completed", "failed"])),
        has("receipt_id", Shape::Text),
        has("settlement_status", SETTLEMENT),
        has("created_at", Shape::Time),
        has("updated_at", Shape::Time),
        may("result", Shape::Any).about("What the tool returned; its shape is the tool's"),
        may("provider", Shape::Text),
        may("provider_request_id", Shape::OrNull(&Shape::Text)),
        may("mode", Shape::Choice(&["embedded", "upstream"])),
        may("error", Shape::Text),
        may("error_code", Shape::Text),
        may("error_reason", Shape::OrNull(&Shape::Text)),
        may("error_category", Shape::Text),
        may("error_status", Shape::Integer),
        may("credited_usdc", Shape::Usdc).about("Paid back as credits"),
        may("progress", Shape::Object(PROGRESS)).about("How far long work has come"),
    ]),
};

static PROGRESS: &[Member] = &[may("message", Shape::Text), may("percent", Shape::Integer)];

static PAYMENT: &[Member] = &[
    has("nonce", Shape::Hash),
    has("state", STATE),
    has("payer", Shape::Address),
    has("network", Shape::Text),
    has("claimed_at", Shape::Time),
    has("request_id", Shape::Uuid),
    may("amount_usdc", Shape::Usdc),
    may("transaction", Shape::OrNull(&Shape::Hash)),
    may("job_status", Shape::Choice(&["pending", "processing", "completed", "failed"])),
    may("credited_usdc", Shape::OrNull(&Shape::Usdc)),
    may("reason", Shape::OrNull(&Shape::Text)),
    may("updated_at", Shape::Time),
];

const STATE: Shape = Shape::Text;

pub static OPERATIONS: &[Operation] = &[
    Operation::get("/v1/requests/{id}", "getRequest", "What became of a paid call")
        .auth(Auth::Agent)
        .answers(&[Answer::ok("The request", Shape::Ref(&REQUEST)).headers(&[(
            "PAYMENT-RESPONSE",
            false,
            "x402 v2 settlement, base64 of JSON",
        )])])
        .refuses(&[(404, "not_found")]),
    Operation::get("/v1/payments/{reference}", "getPayment", "What became of a payment")
        .about("By its nonce or by its transaction's hash. Nothing is shown that the chain does not show.")
        .answers(&[Answer::ok(
            "The payments; `never_seen` if there is none",
            Shape::Object(&[
                has("reference", Shape::Hash),
                has("state", STATE).about("never_seen, received, settled, refused, credited_back, …"),
                has("payments", Shape::List(&Shape::Object(PAYMENT))),
            ]),
        )])
        .refuses(&[(400, "invalid_request"), (429, "rate_limit_exceeded"), (503, "provider_unavailable")]),
];
