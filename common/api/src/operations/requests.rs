//! The state of paid calls, payments and submissions.

use base::input::{Field, Kind};
use gate::jobs::list::MAX_LIMIT;
use platform::http::headers::MAX_KEY_BYTES;

use super::messaging::PROVISIONING;
use super::shape::{Member, Named, Shape, has, may};
use super::shared::SETTLEMENT;
use super::tools::SETTLED;
use super::{Answer, Auth, Link, Operation, files};

/// Endpoints that accept durable submissions, as clients name them: the path after `/v1/tools/`.
pub static DURABLE: &[&str] = &[
    "enrich/profile",
    "enrich/email",
    "verify/email",
    "lookup/person-profile",
    "lookup/person-email",
    "lookup/person-email-status",
    "identity/start",
];

/// The states of a request, as its list is asked for one.
const STATES: &[&str] = &["pending", "processing", "completed", "failed"];
const STATUS: Shape = Shape::Choice(STATES);

/// The query of a recovery.
pub static RECOVER: [Field; 2] = [
    Field::required("endpoint", Kind::Choice(DURABLE), "The endpoint it was submitted to"),
    Field::required(
        "key",
        Kind::Text { min: 1, max: MAX_KEY_BYTES, format: Some(&super::shared::VISIBLE) },
        "The `Idempotency-Key` it was submitted with",
    ),
];

/// A job as its owner polls it.
pub static REQUEST: Named = Named {
    name: "Request",
    about: "A paid call. Poll while `status` is `pending` or `processing`; a `result` is there once it is `completed`.",
    shape: Shape::Object(&[
        has("request_id", Shape::Uuid),
        has("tool", Shape::Text),
        has("status", STATUS),
        has("receipt_id", Shape::Text),
        has("settlement_status", SETTLEMENT),
        has("amount_usdc", Shape::Usdc).about("Charged: the price"),
        has("spent_usdc", Shape::Usdc).about(SPENT),
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
        may("credited_usdc", Shape::Usdc).about("Paid back as credits, because the work failed or used less than its quoted price"),
        may("kept_usdc", Shape::Usdc)
            .about("The part that is not paid back: failed work had used it up for paid tools and the model, or completed work used it. With credited_usdc it adds up to the price"),
        may("progress", Shape::Object(PROGRESS)).about("Progress of long work"),
        may("email_tracking", Shape::Object(TRACKING)).about("For sent e-mail: what became of it so far"),
        may("sms_tracking", Shape::Object(super::sms::TRACKING)).about("For sent texts: what became of them so far"),
        may("order_tracking", Shape::Object(ORDER)).about("For purchases: where the order and its parcels are"),
        may("domain_info", Shape::Object(DOMAIN)).about("For sent e-mail: the sender's domain"),
    ]),
};

static ORDER: &[Member] = &[
    has("status", Shape::Text).about(
        "pending, submitting, placed, failed or unknown; then of its parcels: ordered, delayed, shipped, out_for_delivery, delivered, canceled",
    ),
    has("order_id", Shape::OrNull(&Shape::Text)),
    has("carrier", Shape::OrNull(&Shape::Text)),
    has("tracking_number", Shape::OrNull(&Shape::Text)),
    has("tracking_url", Shape::OrNull(&Shape::Text)),
    has("updated_at", Shape::OrNull(&Shape::Time)).about("When the shop last said something new"),
    has("returned_usdc", Shape::OrNull(&Shape::Text)).about("Paid back after the end, in USDC"),
    may("reason", Shape::OrNull(&Shape::Text))
        .about("Of a good of a seller here: why it was cancelled, in the seller's words, or `not_shipped`"),
];

const SPENT: &str = "What it adds to your spending: the price, until it is known what is kept of it; 0 for bought credits and for payments that failed";

/// A row of the list.
static LISTED: &[Member] = &[
    has("request_id", Shape::Uuid),
    has("tool", Shape::Text),
    has("status", STATUS),
    has("receipt_id", Shape::Text),
    has("settlement_status", SETTLEMENT),
    has("amount_usdc", Shape::Usdc).about("Charged: the price"),
    has("spent_usdc", Shape::Usdc).about(SPENT),
    may("credited_usdc", Shape::Usdc).about("Paid back as credits"),
    may("kept_usdc", Shape::Usdc).about("With credited_usdc it adds up to the price"),
    has("created_at", Shape::Time),
    has("updated_at", Shape::Time),
    may("soul_job_id", Shape::Text).about("For a soul's service: see GET /v1/soul/jobs/{id}"),
];

static PROGRESS: &[Member] = &[may("message", Shape::Text), may("percent", Shape::Integer)];

static TRACKING: &[Member] = &[
    has("status", Shape::Text).about("The state of all recipients, or `sending` or `mixed`"),
    has("opens", Shape::Integer),
    has("clicks", Shape::Integer),
    has("to", Shape::Either(&[Shape::Text, Shape::List(&Shape::Text)])),
    has("last_event_at", Shape::OrNull(&Shape::Time)),
    has("recipients", Shape::Map(&Shape::Integer)).about("How many recipients are in each state"),
    may("from", Shape::Text),
    may("subject", Shape::Text),
    may("created_at", Shape::Time),
];

static DOMAIN: &[Member] = &[has("domain", Shape::Text), may("status", Shape::Choice(PROVISIONING))];

static PAYMENT: &[Member] = &[
    has("nonce", Shape::Hash),
    has("state", STATE),
    has("payer", Shape::Address),
    has("network", Shape::Text),
    has("claimed_at", Shape::Time),
    may("request_id", Shape::Uuid).about("Only for its payer, by proof or access token"),
    may("amount_usdc", Shape::Usdc),
    may("transaction", Shape::OrNull(&Shape::Hash)),
    may("job_status", STATUS),
    may("credited_usdc", Shape::OrNull(&Shape::Usdc)),
    may("kept_usdc", Shape::OrNull(&Shape::Usdc)),
    may("reason", Shape::OrNull(&Shape::Text)),
    may("updated_at", Shape::Time),
];

const STATE: Shape = Shape::Text;

pub static OPERATIONS: &[Operation] = &[
    Operation::get("/v1/requests", "listRequests", "Your requests, newest first")
        .about(
            "For an agent that lost a `request_id`: what it bought, and the calls that its numbers answered, as long as they \
             can be read (30 days, some 7). A page that looks for a `status` or a `tool` may have fewer than `limit`, or none, \
             and a `next_before`.",
        )
        .auth(Auth::Agent)
        .query(&[
            Field::optional("limit", Kind::Integer { min: 1, max: MAX_LIMIT as i64 }, "At most this many; default 20"),
            Field::optional(
                "before",
                Kind::Text { min: 0, max: 64, format: None },
                "Only requests made before this time, or a page's `next_before`",
            ),
            Field::optional("status", Kind::Choice(STATES), "Only requests in this state"),
            Field::optional("tool", Kind::Text { min: 0, max: 100, format: None }, "Only of this tool, by its name or path"),
        ])
        .answers(&[Answer::ok(
            "The requests, without input and result",
            Shape::Object(&[
                has("requests", Shape::List(&Shape::Object(LISTED))),
                has("next_before", Shape::OrNull(&Shape::Text)).about("`before` of the next page; null on the last one"),
            ]),
        )])
        .links(&[Link {
            name: "poll",
            status: 200,
            to: "getRequest",
            parameters: &[("id", "$response.body#/requests/0/request_id")],
        }])
        .beyond_schema("`before` has to be a time or a page's `next_before`"),
    Operation::get("/v1/requests/{id}", "getRequest", "The state of a paid call")
        .auth(Auth::Agent)
        .answers(&[Answer::ok("The request", Shape::Ref(&REQUEST)).headers(SETTLED)])
        .refuses(&[(404, "not_found"), (410, "result_expired")]),
    Operation::get("/v1/requests/{id}/files", "listRequestFiles", "The files that a completed call has made")
        .about("A soul's job lists its files at GET /v1/soul/jobs/{id}/files.")
        .auth(Auth::Agent)
        .answers(&[Answer::ok(
            "The files",
            Shape::Object(&[
                has("request_id", Shape::Uuid),
                has("file_count", Shape::Integer),
                has("files", Shape::List(&Shape::Object(files::FILE))),
            ]),
        )])
        .refuses(&[(404, "not_found")]),
    Operation::get("/v1/requests/{id}/files/{path+}", "getRequestFile", "One file of a completed call")
        .auth(Auth::Agent)
        .headers(files::RANGE)
        .answers(files::CONTENT)
        .refuses(files::REFUSALS),
    Operation::get("/v1/payments/{reference}", "getPayment", "The state of a payment")
        .about("By its nonce or its transaction hash. Its payer, with a proof or token, also gets the `request_id`.")
        .answers(&[Answer::ok(
            "The payments; `never_seen` if there is none",
            Shape::Object(&[
                has("reference", Shape::Hash),
                has("state", STATE).about("never_seen, received, settled, refused, credited_back, reversed, …"),
                has("payments", Shape::List(&Shape::Object(PAYMENT))),
            ]),
        )])
        .refuses(&[(400, "invalid_request"), (429, "rate_limit_exceeded"), (503, "provider_unavailable")]),
    Operation::get(
        "/v1/submissions/recover",
        "recoverSubmission",
        "Finds the submission accepted under an idempotency key",
    )
    .about("For clients that lost the answer to a durable submission. After a 404 it may still be accepted later.")
    .auth(Auth::Wallet { token_is_told: "access_tokens_wallet_only" })
    .query(&RECOVER)
    .answers(&[Answer::ok(
        "The accepted job and its receipt",
        Shape::Object(&[
            has("request_id", Shape::Uuid),
            has("receipt_id", Shape::Text),
            has("status", STATUS),
            has("settlement_status", SETTLEMENT),
            has("idempotency_key", Shape::Text),
            has("tool", Shape::Text),
        ]),
    )])
    .refuses(&[(404, "submission_not_found")]),
];

#[cfg(test)]
mod tests {
    use catalog::CATALOG;

    use super::*;

    #[test]
    fn every_path_of_a_durable_tool_can_be_recovered() {
        for tool in CATALOG.iter().filter(|tool| tool.durable) {
            for path in tool.paths {
                let endpoint = path.strip_prefix("/v1/tools/").unwrap();
                assert!(DURABLE.contains(&endpoint), "{endpoint}");
                assert_eq!(CATALOG.name_of(endpoint), Some(tool.name));
            }
        }
    }
}
