//! The service about itself.

use super::shape::{Member, Shape, has};
use super::{Answer, Operation};

static TOOL: &[Member] = &[
    has("tool", Shape::Text),
    has("method", Shape::Choice(&["POST"])),
    has("path", Shape::Text),
    has("price_usdc", Shape::Usdc),
    has("summary", Shape::Text),
];

static INDEX: &[Member] = &[
    has("service", Shape::Text),
    has("version", Shape::Text),
    has("network", Shape::Text),
    has("tools", Shape::List(&Shape::Object(TOOL))),
    has("how_to_pay", Shape::Text),
    has("jobs", Shape::Text),
    has("payments", Shape::Text),
    has("health", Shape::Text),
    has("openapi", Shape::Text),
    has("docs", Shape::Text),
];

static KEY: &[Member] = &[
    has("kty", Shape::Choice(&["OKP"])),
    has("crv", Shape::Choice(&["Ed25519"])),
    has("alg", Shape::Choice(&["EdDSA"])),
    has("use", Shape::Choice(&["sig"])),
    has("kid", Shape::Text),
    has("x", Shape::Text),
];
static KEYS: &[Member] = &[has("keys", Shape::List(&Shape::Object(KEY)))];

static ACP: &[Member] = &[
    has(
        "protocol",
        Shape::Object(&[
            has("name", Shape::Choice(&["acp"])),
            has("version", Shape::Text),
            has("supported_versions", Shape::List(&Shape::Text)),
        ]),
    ),
    has("api_base_url", Shape::Uri),
    has("transports", Shape::List(&Shape::Text)),
    has(
        "capabilities",
        Shape::Object(&[
            has("services", Shape::List(&Shape::Text)),
            has("supported_currencies", Shape::List(&Shape::Text)),
        ]),
    ),
];

const BUSY: &[(u16, &str)] = &[(503, "provider_unavailable")];
const TAGGED: &[(&str, bool, &str)] = &[("ETag", true, "Send it back as If-None-Match")];

pub static OPERATIONS: &[Operation] = &[
    Operation::get("/", "getIndex", "What this is and where to go")
        .answers(&[Answer::ok("The index", Shape::Object(INDEX))]),
    Operation::get("/health", "getHealth", "Whether the service answers").answers(&[Answer::ok(
        "It does",
        Shape::Object(&[
            has("status", Shape::Choice(&["ok"])),
            has("service", Shape::Text),
            has("timestamp", Shape::Time),
        ]),
    )]),
    Operation::get("/v1/stats", "getStats", "What the service has done so far")
        .answers(&[Answer::ok(
            "A few seconds behind",
            Shape::Object(&[
                has("actions_executed", Shape::Integer),
                has("transaction_volume_cents", Shape::Integer),
                has("active_agents", Shape::Integer),
                has("success_rate_bps", Shape::Integer),
            ]),
        )])
        .refuses(BUSY),
    Operation::get("/.well-known/jwks.json", "getKeys", "The keys that receipts are signed with")
        .answers(&[Answer::ok("JSON Web Keys", Shape::Object(KEYS))])
        .refuses(BUSY),
    Operation::get("/.well-known/{document}", "getWellKnown", "The same keys, at the path that SDKs read")
        .answers(&[Answer::ok("JSON Web Keys", Shape::Object(KEYS))])
        .refuses(&[(404, "not_found"), (503, "provider_unavailable")]),
    Operation::get("/.well-known/acp.json", "getAcp", "Where agent platforms open checkout sessions")
        .answers(&[Answer::ok("ACP's discovery document", Shape::Object(ACP))]),
    Operation::get("/openapi.json", "getOpenApi", "This document").answers(&[
        Answer::ok("OpenAPI 3.1", Shape::Map(&Shape::Any)).headers(TAGGED),
        Answer::other(304, "You have it already", &[]),
    ]),
    Operation::get("/docs", "getDocs", "This document, for people").answers(&[Answer::other(
        200,
        "A page",
        &["text/html"],
    )]),
    Operation::get("/docs/{asset}", "getDocsAsset", "A part of that page")
        .answers(&[
            Answer::other(200, "Script or style", &["text/javascript", "text/css"]).headers(TAGGED),
            Answer::other(304, "You have it already", &[]),
        ])
        .refuses(&[(404, "not_found")]),
];
