//! Shapes that several groups use, and the refusals that follow from who may call.

use base::input::Format;
use serde_json::{Value, json};

use super::Auth;
use super::shape::{Member, Named, Shape, has, may};

/// Visible ASCII, with spaces only inside: text that a header carries unchanged.
pub static VISIBLE: Format = Format {
    name: None,
    pattern: Some("^[!-~]([ -~]*[!-~])?$"),
    matches: |text| text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && text.trim() == text && !text.is_empty(),
    message: "must be visible ASCII characters",
};

/// ASCII text for a header; empty counts as absent.
pub static ASCII: Format = Format {
    name: None,
    pattern: Some("^[ -~]*$"),
    matches: |text| text.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
    message: "must be visible ASCII characters",
};

/// The one shape of all refusals; some codes add members of their own.
pub static ERROR: Named = Named {
    name: "Error",
    about: "Every refusal. `error` is for programs and `message` for people; some codes add members \
            of their own.",
    shape: Shape::Schema(error),
};

fn error() -> Value {
    json!({
        "type": "object",
        "required": ["error", "message"],
        "additionalProperties": true,
        "properties": {
            "error": {"type": "string", "pattern": "^[a-z0-9_]+$"},
            "message": {"type": "string", "minLength": 1},
            "details": {"description": "What is wrong, by its position in the request: a list of {path, message}"},
            "price_usdc": {"type": "string", "description": "exceeds_caller_budget: the price"},
            "max_cost_usdc": {"type": "string", "description": "exceeds_caller_budget: your cap"},
            "reason": {"type": ["string", "null"]},
            "retry_after": {"type": "integer", "description": "Seconds; rate limits"},
            "categories": {"type": "array", "items": {"type": "string"}, "description": "content_blocked"},
            "blocked_number": {"type": "string", "description": "emergency_number_blocked: the number"},
            "rule": {"type": "string", "description": "action_denied_by_policy"},
            "approval_id": {"type": "string", "description": "approval_required: send it as X-Approval-Id once it is approved"},
            "approval": {"type": "object", "description": "approval_required"},
            "budget": {
                "type": "object",
                "description": "budget_exceeded: the cap, what counts against it, what was to be charged, and when it starts again if it does",
            },
            "quote_id": {"type": ["string", "null"]},
            "payment_attempt_id": {"type": "string", "description": "The nonce of the payment that was refused"},
            "request_id": {"type": "string"},
            "receipt_id": {"type": "string"},
            "credited_usdc": {"type": "string", "description": "The work failed and its price was credited back"},
        },
    })
}

static PAYMENT_REQUEST: &[Member] = &[
    has("chain_id", Shape::Integer),
    has("token_address", Shape::Address),
    has("amount", Shape::Usdc).about("The amount to sign: the price minus what credits pay"),
    has("recipient", Shape::Address),
];

static TOKEN: &[Member] = &[has("name", Shape::Text), has("version", Shape::Text)];

static ACCEPTS: &[Member] = &[
    has("scheme", Shape::Choice(&["exact"])),
    has("network", Shape::Text),
    has("maxAmountRequired", Shape::Text),
    has("resource", Shape::Uri),
    has("description", Shape::Text),
    has("mimeType", Shape::Text),
    has("payTo", Shape::Address),
    has("maxTimeoutSeconds", Shape::Integer),
    has("asset", Shape::Address),
    has("extra", Shape::Object(TOKEN)),
];

static RECEIVED: &[Member] = &[has("amount", Shape::OrNull(&Shape::Usdc))];
static EXPECTED: &[Member] = &[
    has("amount", Shape::Usdc),
    has("asset", Shape::Address),
    has("network", Shape::Text),
    has("pay_to", Shape::Address),
];
static DIAGNOSTICS: &[Member] = &[has("hint", Shape::Text)];

/// The price of a call, or why its payment was refused and the terms of a new one.
pub static PAYMENT_REQUIRED: Named = Named {
    name: "PaymentRequired",
    about: "What the call costs and how to pay it. The header `PAYMENT-REQUIRED` says the same for x402 v2 clients, `accepts` \
            for x402 v1 clients. After a refused payment `reason` says why; the quote is a new one.",
    shape: Shape::Object(&[
        has("error", Shape::Choice(&["payment_required", "payment_verification_failed"])),
        has("code", Shape::Integer),
        has("message", Shape::Text),
        has("quote_id", Shape::Text).about("Send it as X-Quote-ID with the payment"),
        has("amount_usdc", Shape::Usdc),
        has("pay_to", Shape::Address),
        has("network", Shape::Text).about("CAIP-2"),
        has("expires_at", Shape::Time),
        has("payment_request", Shape::Object(PAYMENT_REQUEST)),
        has("context", Shape::Map(&Shape::Any))
            .about("tool, quote_id, total, expires_at, and what belongs to the tool"),
        has("x402Version", Shape::Integer),
        has("accepts", Shape::List(&Shape::Object(ACCEPTS))),
        may("extensions", Shape::Map(&Shape::Any)),
        may("reason", Shape::Text),
        may("stage", Shape::Text),
        may("diagnostics", Shape::Object(DIAGNOSTICS)),
        may("expected", Shape::Object(EXPECTED)),
        may("received", Shape::Object(RECEIVED)),
        may("payment_attempt_id", Shape::Text),
        IGNORED,
    ]),
};

static TOP_UP: &[Member] = &[has("message", Shape::Text), has("docs_url", Shape::Text)];

/// An access token whose agent has too few credits.
pub static INSUFFICIENT_CREDITS: Named = Named {
    name: "InsufficientCredits",
    about: "An access token pays only from credits, and there are not enough.",
    shape: Shape::Object(&[
        has("error", Shape::Choice(&["insufficient_credits"])),
        has("message", Shape::Text),
        has("required_usdc", Shape::Usdc),
        has("credits_balance", Shape::Usdc),
        has("shortfall_usdc", Shape::Usdc).about("The least amount to top up, including the credits owed"),
        has("credits_owed", Shape::Usdc)
            .about("Credits that were taken back after they were spent. The next top-up pays them first"),
        has("credits_reserved_on_quote", Shape::Usdc),
        has("quote_id", Shape::OrNull(&Shape::Text)),
        has("top_up", Shape::Object(TOP_UP)),
    ]),
};

pub const SETTLEMENT: Shape = Shape::Choice(&["pending", "settled", "failed", "not_required"]);
/// In answers that give a result before its payment is settled.
pub const UNSETTLED: Member =
    may("settlement_status", Shape::Choice(&["pending"])).about("Only until the payment is settled");
/// In every answer to a call of something that is sold.
pub const IGNORED: Member =
    may("ignored", Shape::List(&Shape::Text)).about("Members of the body that nothing reads: perhaps misspelt");
pub const OK: Member = has("success", Shape::Is(true));

/// The schema of an amount of money in a body: a number or its decimal text.
pub fn amount(least: f64, most: f64, about: &str) -> Value {
    json!({
        "description": about,
        "anyOf": [
            {"type": "number", "minimum": least, "maximum": most},
            {"type": "string", "pattern": r"^[0-9]+(\.[0-9]{1,6})?$", "description": "At most six decimals"},
        ],
    })
}

/// The refusals that follow from who may call: statuses and codes.
pub fn refusals_of(auth: Auth, is_marketplace: bool) -> Vec<(u16, &'static str)> {
    let limit = if is_marketplace { "rate_limited" } else { "rate_limit_exceeded" };
    let mut refusals: Vec<(u16, &'static str)> = match auth {
        Auth::Nobody => return Vec::new(),
        Auth::SoulKey | Auth::Platform => vec![(401, "unauthorized")],
        _ => vec![
            (400, "invalid_request"),
            (401, "invalid_proof"),
            (401, "access_token_invalid"),
            (401, "access_token_revoked"),
            (403, "agent_mismatch"),
        ],
    };
    match auth {
        Auth::Agent => refusals.push((401, "proof_required")),
        Auth::Wallet { token_is_told } => refusals.extend([(401, "proof_required"), (403, token_is_told)]),
        Auth::Party => {
            refusals.extend([(401, "proof_required"), (401, "unauthorized"), (403, "forbidden"), (404, "not_found")])
        }
        Auth::WalletBuyer => refusals.push((503, "route_unavailable_for_access_tokens")),
        Auth::Nobody | Auth::Buyer | Auth::SoulKey | Auth::Platform => {}
    }
    refusals.extend([(429, limit), (503, "provider_unavailable")]);
    refusals
}
