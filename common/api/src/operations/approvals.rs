//! The action policy, approvals, and the page on which a human decides.

use base::input::{Field, Kind};

use super::shape::{Member, Named, Shape, has, may};
use super::shared::OK;
use super::{Answer, Auth, Body, IDEMPOTENCY_KEY, Link, Operation, schemas};

const WALLET: Auth = Auth::Wallet { token_is_told: "access_tokens_wallet_only" };
const STATUS: &[&str] = &["pending", "approved", "denied", "expired", "cancelled", "consumed"];

static HOURS: &[Member] = &[
    has("timezone", Shape::Text),
    has("start", Shape::Text),
    has("end", Shape::Text),
    may("days", Shape::List(&Shape::Integer)),
];

static WHEN: &[Member] = &[
    may("always", Shape::Is(true)),
    may("amount_over_usdc", Shape::Usdc),
    may("recipients_over", Shape::Integer),
    may("recipient_domain_not_in", Shape::List(&Shape::Text)),
    may("outside_hours", Shape::Object(HOURS)),
];

static RULE: &[Member] = &[
    has("id", Shape::Text),
    has("tool", Shape::Text),
    has("action", Shape::Choice(&["require_approval", "deny"])),
    has("when", Shape::Object(WHEN)),
];

static CONTACT: &[Member] = &[has("email", Shape::OrNull(&Shape::Text)), has("phone", Shape::OrNull(&Shape::Text))];

/// An agent's policy.
pub static POLICY: Named = Named {
    name: "ActionPolicy",
    about: "Which calls are denied, and which wait for a human's approval. A denial wins over a wait.",
    shape: Shape::Object(&[
        has("enabled", Shape::Bool),
        has("rules", Shape::List(&Shape::Object(RULE))),
        has("approver", Shape::Object(CONTACT)),
        has("timezone", Shape::OrNull(&Shape::Text)).about("IANA name: in which the approver is told times"),
        has("timeout_seconds", Shape::Integer),
        has("updated_at", Shape::Time),
    ]),
};

static ASKER: &[Member] = &[
    has("wallet", Shape::Address),
    has("token_id", Shape::OrNull(&Shape::Uuid)),
    has("token_name", Shape::OrNull(&Shape::Text)),
];

static MASKED: &[Member] = &[has("channel", Shape::OrNull(&Shape::Text)), has("address", Shape::OrNull(&Shape::Text))];

/// The signed record of a decision.
pub static DECISION: Named = Named {
    name: "DecisionReceipt",
    about: "Who decided what, when and how; signed like a receipt.",
    shape: Shape::Object(&[
        has("decision_receipt_id", Shape::Text),
        has("approval_id", Shape::Text),
        has("agent_id", Shape::Uuid),
        has("source", SOURCE),
        has("decision", Shape::Choice(&["approved", "denied"])),
        has("decided_by", Shape::OrNull(&Shape::Text)),
        has("decided_via", Shape::Text),
        has("decided_at", Shape::Time),
        has("tool", Shape::OrNull(&Shape::Text)),
        has("body_digest", Shape::OrNull(&Shape::Text)),
        has("amount_usdc", Shape::OrNull(&Shape::Usdc)),
        has("policy_rule", Shape::OrNull(&Shape::Text)),
        has("shown_digest", Shape::OrNull(&Shape::Text)),
        has("note_digest", Shape::OrNull(&Shape::Text)),
        has("created_at", Shape::Time),
        has("payload", Shape::Text).about("Exactly what was signed"),
        has("digest", Shape::Text),
        has("signature", Shape::Text),
        has("key_id", Shape::Text),
        has("alg", Shape::Text),
    ]),
};

const SOURCE: Shape = Shape::Choice(&["api", "policy"]);

/// A request for a human's decision.
pub static APPROVAL: Named = Named {
    name: "Approval",
    about: "A request for a human's decision, and the decision. Lists leave out `decision_receipt`.",
    shape: Shape::Object(&[
        has("approval_id", Shape::Text),
        has("source", SOURCE),
        has("tool", Shape::OrNull(&Shape::Text)),
        has("status", Shape::Choice(STATUS)),
        has("action_summary", Shape::Text),
        has("preview", Shape::OrNull(&Shape::Map(&Shape::Any))),
        has("amount_usdc", Shape::OrNull(&Shape::Usdc)),
        has("body_digest", Shape::OrNull(&Shape::Text)),
        has("policy_rule", Shape::OrNull(&Shape::Text)),
        has("asked_by", Shape::OrNull(&Shape::Object(ASKER))).about("Who asked; null for approvals of older versions"),
        has("approver", Shape::OrNull(&Shape::Object(MASKED))),
        has("expires_at", Shape::Time),
        has("use_by", Shape::OrNull(&Shape::Time)),
        has("decided_at", Shape::OrNull(&Shape::Time)),
        has("decided_via", Shape::OrNull(&Shape::Text)),
        has("decision_note", Shape::OrNull(&Shape::Text)),
        has("decision_receipt_id", Shape::OrNull(&Shape::Text)),
        has("consumed_at", Shape::OrNull(&Shape::Time)),
        has("notified", Shape::Bool),
        has("notify_error", Shape::OrNull(&Shape::Text)),
        has("created_at", Shape::Time),
        may("decision_receipt", Shape::OrNull(&Shape::Ref(&DECISION))),
    ]),
};

static JUDGED: &[Member] = &[
    has("receipt_id", Shape::Text),
    has("tool", Shape::Text),
    has("amount_usdc", Shape::Usdc),
    has("created_at", Shape::Time),
    has("verdict", Shape::Choice(&["held", "denied"])),
    has("rule", Shape::Text),
];

static BACKTEST: &[Member] = &[
    has("from", Shape::Time),
    has("to", Shape::Time),
    has("receipts", Shape::Integer),
    has("truncated", Shape::Bool),
    has("allowed", Shape::Integer),
    has("held", Shape::Integer),
    has("denied", Shape::Integer),
    has("held_usdc", Shape::Usdc),
    has("denied_usdc", Shape::Usdc),
    has("rules_not_evaluated", Shape::List(&Shape::Text)),
    has("charges", Shape::List(&Shape::Object(JUDGED))),
];

const PAGE: &[&str] = &["text/html"];
const ONE: Shape = Shape::Object(&[OK, has("data", Shape::Ref(&APPROVAL))]);
const STRICT: &str = "unknown members are refused; tools, domains, time zones and addresses have to be valid";
const ASKED: &str = "unknown members are refused; addresses have to be valid; without an action policy that names an approver, `approver` is required";

pub static OPERATIONS: &[Operation] = &[
    Operation::put("/v1/agents/me/action-policy", "setActionPolicy", "Replaces the whole action policy")
        .auth(WALLET)
        .body(Body::Json { schema: schemas::policy, required: true })
        .answers(&[Answer::ok("The policy", Shape::Object(&[OK, has("data", Shape::Ref(&POLICY))]))])
        .beyond_schema(STRICT),
    Operation::get("/v1/agents/me/action-policy", "getActionPolicy", "The action policy").auth(Auth::Agent).answers(&[
        Answer::ok("The policy, or null", Shape::Object(&[OK, has("data", Shape::OrNull(&Shape::Ref(&POLICY)))])),
    ]),
    Operation::delete("/v1/agents/me/action-policy", "deleteActionPolicy", "Deletes the action policy")
        .auth(WALLET)
        .answers(&[Answer::ok("The policy is deleted. Calls are no longer held or denied by it", Shape::Object(&[OK, has("data", Shape::Null)]))]),
    Operation::post(
        "/v1/agents/me/action-policy/backtest",
        "backtestActionPolicy",
        "Applies a draft to the charges of the last 30 days",
    )
    .auth(Auth::Agent)
    .body(Body::Json { schema: schemas::policy, required: true })
    .answers(&[Answer::ok("Its verdicts", Shape::Object(&[OK, has("data", Shape::Object(BACKTEST))]))])
    .beyond_schema(STRICT),
    Operation::post("/v1/approvals", "askApproval", "Asks a human to approve an action")
        .about("An access token may ask only the approver whom its owner's action policy names.")
        .auth(Auth::Agent)
        .headers(&[IDEMPOTENCY_KEY])
        .body(Body::Json { schema: schemas::approval, required: true })
        .answers(&[Answer::json(201, "Asked", ONE)])
        .refuses(&[
            (403, "access_tokens_wallet_only"),
            (409, "too_many_pending_approvals"),
            (409, "request_in_progress"),
            (422, "idempotency_key_reused"),
        ])
        .beyond_schema(ASKED)
        .links(&[
            Link {
                name: "read",
                status: 201,
                to: "getApproval",
                parameters: &[("id", "$response.body#/data/approval_id")],
            },
            Link {
                name: "cancel",
                status: 201,
                to: "cancelApproval",
                parameters: &[("id", "$response.body#/data/approval_id")],
            },
        ]),
    Operation::get("/v1/approvals", "listApprovals", "Approvals, newest first")
        .auth(Auth::Agent)
        .query(&[
            Field::optional("status", Kind::Choice(STATUS), "Only those in this state"),
            Field::optional("limit", Kind::Integer { min: 1, max: 200 }, "At most this many; default 50"),
        ])
        .answers(&[Answer::ok(
            "Approvals",
            Shape::Object(&[OK, has("data", Shape::Object(&[has("approvals", Shape::List(&Shape::Ref(&APPROVAL)))]))]),
        )]),
    Operation::get("/v1/approvals/{id}", "getApproval", "One approval, with the signed record of its decision")
        .auth(Auth::Agent)
        .answers(&[Answer::ok("The approval", ONE)])
        .refuses(&[(404, "not_found")]),
    Operation::post("/v1/approvals/{id}/cancel", "cancelApproval", "Cancels a pending approval")
        .auth(WALLET)
        .body(Body::Fields(&[]))
        .answers(&[Answer::ok("The approval", ONE)])
        .refuses(&[(404, "not_found"), (409, "approval_not_pending")]),
    Operation::get("/approve/{token}", "showDecision", "For people: shows the action to decide on. Changes nothing")
        .answers(&[
            Answer::other(200, "The page", PAGE),
            Answer::other(404, "There is no page at this link", PAGE),
            Answer::other(503, "Temporarily unavailable", PAGE),
        ])
        .refuses(&[(404, "not_found"), (429, "rate_limit_exceeded"), (503, "provider_unavailable")]),
    Operation::post("/approve/{token}", "decide", "For people: approves or denies, once")
        .body(Body::Form(schemas::decision))
        .answers(&[
            Answer::other(200, "What was decided", PAGE),
            Answer::other(400, "The form could not be read", PAGE),
            Answer::other(404, "There is no page at this link", PAGE),
            Answer::other(409, "It has been decided already, or the policy no longer names this approver", PAGE),
            Answer::other(503, "Temporarily unavailable", PAGE),
        ])
        .refuses(&[
            (400, "invalid_request"),
            (404, "not_found"),
            (429, "rate_limit_exceeded"),
            (503, "provider_unavailable"),
        ]),
    Operation::get("/identity/{id}", "showIdentityCheck", "For people: shows who requests the check, and why. Changes nothing")
        .about("With `?done`, where a vendor checks documents: the page that people return to from the vendor.")
        .answers(&[
            Answer::other(200, "The page", PAGE),
            Answer::other(303, "Redirect to the page of the vendor that checks documents", PAGE),
            Answer::other(404, "There is no page at this link", PAGE),
            Answer::other(503, "Temporarily unavailable", PAGE),
        ])
        .refuses(&[(404, "not_found"), (429, "rate_limit_exceeded"), (503, "provider_unavailable")]),
    Operation::post("/identity/{id}", "answerIdentityCheck", "For people: requests a code by mail, or submits it")
        .body(Body::Form(schemas::identity_answer))
        .answers(&[
            Answer::other(200, "Mailed, or confirmed", PAGE),
            Answer::other(303, "Redirect to the page of the vendor that checks documents", PAGE),
            Answer::other(400, "The form could not be read, or the code is wrong", PAGE),
            Answer::other(404, "There is no page at this link", PAGE),
            Answer::other(409, "The check has ended, or no more codes are mailed", PAGE),
            Answer::other(503, "Temporarily unavailable", PAGE),
        ])
        .refuses(&[
            (400, "invalid_request"),
            (404, "not_found"),
            (429, "rate_limit_exceeded"),
            (503, "provider_unavailable"),
        ]),
    Operation::post("/v1/identity/webhook", "identityWebhook", "For the identity vendor: reports an event")
        .about("The body is the vendor's event, signed in `Stripe-Signature`. The state of the check is then read from the vendor.")
        .body(Body::Bytes { content_type: "application/json", about: "The vendor's event, unchanged" })
        .answers(&[Answer::ok("Received", Shape::Object(&[has("received", Shape::Is(true))]))])
        .refuses(&[
            (400, "invalid_request"),
            (401, "unauthorized"),
            (404, "not_found"),
            (429, "rate_limit_exceeded"),
            (503, "provider_unavailable"),
        ]),
];
