//! The service's own status, prices and keys, and the documents by which agents find it.

use base::input::{Field, Kind};

use super::shape::{Member, Named, Shape, has, may};
use super::{Answer, Content, Operation};
use crate::discovery::families;
use crate::discovery::search::{LARGEST_PAGE, MAX_CATEGORY, MAX_CURSOR, MAX_QUERY, UNAVAILABLE};

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
    has("discover", Shape::Text),
    has("for_agents", Shape::Text),
    has("skill", Shape::Text),
    has("pricing", Shape::Text),
    has("status", Shape::Text),
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

static FOUND: &[Member] = &[
    has("name", Shape::Text),
    has("title", Shape::Text),
    has("summary", Shape::Text),
    has("category", Shape::Text),
    has("family", Shape::Choice(&families::NAMES)).about("The group of tools it belongs to"),
    has("method", Shape::Choice(&["POST"])),
    has("path", Shape::Text).about("The path to post to; replace `{names}` by the seller's and the service's slugs"),
    has("paths", Shape::List(&Shape::Text)).about("All its paths, including older names"),
    has("price_usdc", Shape::Usdc).about("The price; the lowest one where the seller or the input decides"),
    has("pricing", Shape::Choice(&["fixed", "input", "quote", "seller"])),
    has("answer", Shape::Choice(&["direct", "queued"])),
    has("mcp_name", Shape::Text).about("Its name as a tool of POST /mcp"),
    has("input_schema", Shape::Map(&Shape::Any)),
    has("output_schema", Shape::Map(&Shape::Any)),
    has("needs", Shape::List(&Shape::Text)).about(
        "The tool needs any one of these, and not every deployment has one. Without it, calls are answered 503 instead of a price",
    ),
    may("lacks", Shape::Text).about("What is missing in this deployment: the tool is not available"),
    has("example", Shape::Map(&Shape::Any)),
];

static MISSING: &[Member] = &[
    has("name", Shape::Text),
    has("title", Shape::Text),
    has("lacks", Shape::Text).about("What this deployment does not have"),
];

static NEAR: &[Member] =
    &[has("name", Shape::Text), has("mcp_name", Shape::Text), has("title", Shape::Text), has("summary", Shape::Text)];

/// A page of what is sold.
static TOOLS: Named = Named {
    name: "Tools",
    about: "A page of tools; best matches first if `query` is given.",
    shape: Shape::Object(&[
        has("tools", Shape::List(&Shape::Object(FOUND))),
        may("unavailable", Shape::List(&Shape::Object(MISSING)))
            .about("What matches `query` at least as well as the first tool, but is not available in this deployment"),
        may("nothing_fits", Shape::Is(true)).about("No available tool does what `query` asks, and `tools` is empty"),
        may("near", Shape::List(&Shape::Object(NEAR))).about("If nothing fits, the tools that share most with `query`"),
        may("nextCursor", Shape::Text),
    ]),
};

static RESOURCE: &[Member] =
    &[has("url", Shape::Uri), has("method", Shape::Choice(&["POST"])), has("description", Shape::Text)];
static RESOURCES: &[Member] = &[
    has("x402Version", Shape::Integer),
    has("kind", Shape::Choice(&["resource-server"])),
    has("name", Shape::Text),
    has("resources", Shape::List(&Shape::Object(RESOURCE))),
    has("updated", Shape::Time),
];

const HEALTH: Shape = Shape::Choice(&["healthy", "degraded"]);
static DEPENDENCY: &[Member] = &[
    has("status", HEALTH),
    has("ms", Shape::Integer).about("How long the check took"),
    may("message", Shape::Text).about("What is wrong"),
    may("chain_id", Shape::Integer),
    may("block", Shape::Integer),
    may("waiting", Shape::Integer).about("Messages waiting in the queue"),
    may("last_at", Shape::Time),
    may("sent_again", Shape::Integer),
    may("oldest_open_secs", Shape::Integer),
];
static STATUS: Named = Named {
    name: "Status",
    about: "The state of everything this service depends on, at most a few seconds old.",
    shape: Shape::Object(&[
        has("status", HEALTH),
        has("observed_at", Shape::Time),
        has("dependencies", Shape::Map(&Shape::Object(DEPENDENCY))),
    ]),
};

const BUSY: &[(u16, &str)] = &[(503, "provider_unavailable")];
pub const TAGGED: &[(&str, bool, &str)] = &[("ETag", true, "Send it back as If-None-Match")];
pub const KNOWN: Answer = Answer::other(304, "Not modified", &[]).headers(TAGGED);
const MARKDOWN: &[&str] = &["text/markdown"];

const fn kept(about: &'static str, shape: Shape) -> Answer {
    Answer::ok(about, shape).headers(TAGGED)
}

pub static OPERATIONS: &[Operation] = &[
    Operation::get("/", "getIndex", "An overview, with links to everything else; a page by `Accept`").answers(&[
        Answer {
            status: 200,
            about: "The index",
            content: Content::JsonOr(Shape::Object(INDEX), &["text/html"]),
            headers: TAGGED,
        },
        KNOWN,
    ]),
    Operation::get("/health", "getHealth", "Whether the service answers").answers(&[Answer::ok(
        "The service answers",
        Shape::Object(&[
            has("status", Shape::Choice(&["ok"])),
            has("service", Shape::Text),
            has("timestamp", Shape::Time),
        ]),
    )]),
    Operation::get("/v1/status", "getStatus", "The state of everything the service depends on").answers(&[
        Answer::ok("Everything is healthy", Shape::Ref(&STATUS)),
        Answer::json(503, "Something is degraded", Shape::Ref(&STATUS)).headers(&[("Retry-After", true, "Seconds")]),
    ]),
    Operation::get("/v1/tools/discover", "discoverTools", "Finds tools by words, with prices and schemas")
        .query(&[
            Field::optional(
                "query",
                Kind::Text { min: 0, max: MAX_QUERY, format: None },
                "Words to search for, such as `send an email`; without them, everything is listed",
            ),
            Field::optional(
                "category",
                Kind::Text { min: 0, max: MAX_CATEGORY, format: None },
                "Only in this category",
            ),
            Field::optional("family", Kind::Choice(&families::NAMES), "Only tools of this family"),
            Field::optional(
                "limit",
                Kind::Integer { min: 1, max: LARGEST_PAGE as i64 },
                "At most this many; default 20",
            ),
            Field::optional(
                "cursor",
                Kind::Text { min: 0, max: MAX_CURSOR, format: None },
                "A page's nextCursor, with the same query, category, family and include",
            ),
            Field::optional(
                "include",
                Kind::Choice(&[UNAVAILABLE]),
                "Also lists tools that are not available here, with what is missing",
            ),
        ])
        .answers(&[kept("A page of tools", Shape::Ref(&TOOLS)), KNOWN])
        .refuses(&[(400, "invalid_cursor")])
        .beyond_schema("a cursor has to come from a page of the same search"),
    Operation::get("/llms.txt", "getLlms", "An index of the service, for models")
        .answers(&[Answer::other(200, "The index", MARKDOWN).headers(TAGGED), KNOWN]),
    Operation::get("/llms-full.txt", "getLlmsFull", "The same with every tool and the guides, in one file")
        .answers(&[Answer::other(200, "The full text", MARKDOWN).headers(TAGGED), KNOWN]),
    Operation::get("/skill.md", "getSkill", "How to use the service, as an agent's skill")
        .answers(&[Answer::other(200, "The skill", MARKDOWN).headers(TAGGED), KNOWN]),
    Operation::get("/guides/{page}", "getGuide", "A guide, as Markdown")
        .answers(&[Answer::other(200, "The guide", MARKDOWN).headers(TAGGED), KNOWN]),
    Operation::get("/pricing", "getPricing", "The price list: a page, or Markdown or JSON by `Accept`").answers(&[
        Answer {
            status: 200,
            about: "The prices",
            content: Content::JsonOr(Shape::Ref(&TOOLS), &["text/html", "text/markdown"]),
            headers: TAGGED,
        },
        KNOWN,
    ]),
    Operation::get("/pricing.md", "getPricingMarkdown", "The price list, as Markdown")
        .answers(&[Answer::other(200, "The prices", MARKDOWN).headers(TAGGED), KNOWN]),
    Operation::get("/.well-known/x402", "getX402", "The paid resources, for directories")
        .about("Only their paths. The 402 of a call states its price.")
        .answers(&[kept("The resources", Shape::Object(RESOURCES)), KNOWN]),
    Operation::get("/v1/stats", "getStats", "Totals of the service")
        .answers(&[Answer::ok(
            "The totals, a few seconds old",
            Shape::Object(&[
                has("actions_executed", Shape::Integer),
                has("transaction_volume_cents", Shape::Integer),
                has("active_agents", Shape::Integer),
                has("success_rate_bps", Shape::Integer),
            ]),
        )])
        .refuses(BUSY),
    Operation::get("/.well-known/jwks.json", "getKeys", "The keys that receipts are signed with")
        .answers(&[kept("JSON Web Keys", Shape::Object(KEYS)), KNOWN])
        .refuses(BUSY),
    Operation::get("/.well-known/{document}", "getWellKnown", "The same keys, at the path that SDKs use")
        .answers(&[kept("JSON Web Keys", Shape::Object(KEYS)), KNOWN])
        .refuses(&[(404, "not_found"), (503, "provider_unavailable")]),
    Operation::get("/.well-known/acp.json", "getAcp", "Where agent platforms open checkout sessions")
        .answers(&[Answer::ok("ACP's discovery document", Shape::Object(ACP))]),
    Operation::get("/.well-known/ucp-agent.json", "getUcpAgent", "What catalogs of products read about this service")
        .answers(&[Answer::ok("A profile of the Universal Commerce Protocol", Shape::Map(&Shape::Any))]),
    Operation::get("/openapi.json", "getOpenApi", "This document")
        .answers(&[kept("OpenAPI 3.1", Shape::Map(&Shape::Any)), KNOWN]),
    Operation::get("/docs", "getDocs", "This document as a page for people").answers(&[Answer::other(
        200,
        "A page",
        &["text/html"],
    )]),
    Operation::get("/docs/{asset}", "getDocsAsset", "A script or style of that page")
        .answers(&[
            Answer::other(200, "Script or style", &["text/javascript", "text/css"]).headers(&[(
                "ETag",
                false,
                "On large files: send it back as If-None-Match",
            )]),
            KNOWN,
        ])
        .refuses(&[(404, "not_found")]),
];
