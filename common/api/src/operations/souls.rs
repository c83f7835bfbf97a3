//! The marketplace, for everybody except sellers.

use base::input::{Field, Kind};
use market::{listing, search};

use super::shape::{Member, Named, Shape, has, may};
use super::shared::OK;
use super::{Answer, Auth, Body, FLAG, IDEMPOTENCY_KEY, Link, Operation, files, schemas};

/// Body of `POST /v1/soul/jobs/{id}/rate`.
pub static RATING: &[Field] = &[
    Field::required("rating", Kind::Integer { min: 1, max: 5 }, "How good it was, 1 to 5"),
    Field::optional("review", Kind::Text { min: 0, max: 1000, format: None }, "Why"),
];

const CATEGORIES: &[&str] = &["research", "build", "voice", "sms", "email", "judgment", "creative", "data", "custom"];
const CATEGORY: Shape = Shape::Choice(CATEGORIES);
const EXECUTOR: Shape = Shape::Choice(&["model", "worker", "program"]);
const STATUS: Shape = Shape::Choice(&["active", "suspended"]);
const SCHEMA: Shape = Shape::OrNull(&Shape::Map(&Shape::Any));
pub const JOB_STATUS: &[&str] = &["pending", "processing", "completed", "failed"];
const BUSY: &[(u16, &str)] = &[(503, "provider_unavailable")];

static IN_LIST: &[Member] =
    &[has("total_jobs", Shape::Integer), has("avg_rating", Shape::Number), has("rating_count", Shape::Integer)];

/// A soul in a list.
pub static SOUL: Named = Named {
    name: "SoulSummary",
    about: "",
    shape: Shape::Object(&[
        has("id", Shape::Uuid),
        has("name", Shape::Text),
        has("slug", Shape::Text),
        has("bio", Shape::OrNull(&Shape::Text)),
        has("ens_name", Shape::OrNull(&Shape::Text)),
        has("stats", Shape::Object(IN_LIST)),
    ]),
};

static PAGE: &[Member] =
    &[has("limit", Shape::Integer), has("offset", Shape::Integer), has("next_cursor", Shape::OrNull(&Shape::Text))];
static LIST: &[Member] = &[has("souls", Shape::List(&Shape::Ref(&SOUL))), has("pagination", Shape::Object(PAGE))];

static FOUND_STATS: &[Member] = &[
    has("total_jobs", Shape::Integer),
    has("avg_rating", Shape::Number),
    has("rating_count", Shape::Integer),
    has("distinct_buyers", Shape::Integer)
        .about("Buyers with at least one successful purchase, without the soul's own wallets"),
    has("backing", Shape::Integer).about("The weight of its buyers, by the fees they paid: see /v1/soul/ranking"),
    has("weighted_votes", Shape::Number).about("Its ratings, each weighted by the fee of its job"),
    has("weighted_stars", Shape::Number),
];
static FOUND: &[Member] = &[
    has("id", Shape::Uuid),
    has("name", Shape::Text),
    has("slug", Shape::Text),
    has("ens_name", Shape::OrNull(&Shape::Text)),
    has("stats", Shape::Object(FOUND_STATS)),
    has("tier", Shape::Text),
    has("quality", Shape::Number),
    has("why", Shape::Text),
];

static TESTS: &[Member] = &[has("passed", Shape::Integer), has("total", Shape::Integer), has("at", Shape::Time)];

/// A service as buyers see it.
pub static OFFER: &[Member] = &[
    has("id", Shape::Uuid),
    has("name", Shape::Text),
    has("slug", Shape::Text),
    has("price_usd", Shape::Number),
    has("description", Shape::OrNull(&Shape::Text)),
    has("input_schema", SCHEMA),
    has("output_schema", SCHEMA),
    has("total_executions", Shape::Integer),
    has("category", CATEGORY),
    has("version", Shape::Integer),
    has("sandbox", Shape::Bool),
    has("executor", EXECUTOR),
    has("deadline_seconds", Shape::Integer),
    has("kept_if_failed_up_to", Shape::Number)
        .about("The most that is kept of the price if the work fails: what it used up for paid tools and the model. The rest is credited"),
    has("tests", Shape::OrNull(&Shape::Object(TESTS))).about("Results of its test cases, for this version of the service"),
];

static REPUTATION: &[Member] = &[
    has("distinct_buyers", Shape::Integer),
    has("repeat_rate", Shape::OrNull(&Shape::Number)),
    has("refund_rate", Shape::OrNull(&Shape::Number)),
    has("median_seconds", Shape::OrNull(&Shape::Number)),
    has("p95_seconds", Shape::OrNull(&Shape::Number)),
    has("sample_size", Shape::Integer),
];

static STATS: &[Member] = &[
    has("total_jobs", Shape::Integer),
    has("avg_rating", Shape::Number),
    has("rating_count", Shape::Integer),
    has("total_purchases", Shape::Integer),
    has("purchases_last_24h", Shape::Integer),
    has("purchases_last_7d", Shape::Integer),
    has("purchases_last_30d", Shape::Integer),
];

/// A soul as everybody sees it.
pub static SHOWN: &[Member] = &[
    has("id", Shape::Uuid),
    has("name", Shape::Text),
    has("slug", Shape::Text),
    has("ens_name", Shape::OrNull(&Shape::Text)),
    has("bio", Shape::OrNull(&Shape::Text)),
    has("avatar_url", Shape::OrNull(&Shape::Uri)),
    has("status", STATUS),
    has("soul_for_sale", Shape::Bool),
    has("soul_price", Shape::OrNull(&Shape::Number)),
    has("version", Shape::Integer),
    has("stats", Shape::Object(STATS)),
    has("reputation", Shape::Object(REPUTATION)),
];

/// A soul's public profile.
pub static PROFILE: Named = Named { name: "Soul", about: "", shape: Shape::Object(SHOWN) };

static VERSION: &[Member] = &[
    has("version", Shape::Integer),
    has("soul_hash", Shape::Text),
    has("change_note", Shape::OrNull(&Shape::Text)),
    has("created_at", Shape::Time),
];
static VERSIONS_PAGE: &[Member] =
    &[has("limit", Shape::Integer), has("before", Shape::OrNull(&Shape::Integer)), has("has_more", Shape::Bool)];

/// The history of a soul's text.
pub static VERSIONS: Named = Named {
    name: "SoulVersions",
    about: "When the text changed, and its hashes, without the texts.",
    shape: Shape::Object(&[
        has("slug", Shape::Text),
        has("version", Shape::Integer),
        has("versions", Shape::List(&Shape::Object(VERSION))),
        has("pagination", Shape::Object(VERSIONS_PAGE)),
    ]),
};

/// Query of both routes that show a soul's versions.
pub const HISTORY: &[Field] = &[
    Field::optional("limit", Kind::Integer { min: 1, max: 100 }, "At most this many; default 20"),
    Field::optional("before", Kind::Integer { min: 1, max: u32::MAX as i64 }, "Only versions before this one"),
];

static COUNTED: &[Member] = &[
    has("name", CATEGORY),
    has("service_count", Shape::Integer),
    has("job_count", Shape::Integer),
    has("soul_count", Shape::Integer),
];
static TOTALS: &[Member] = &[
    has("total_souls", Shape::Integer),
    has("active_services", Shape::Integer),
    has("total_jobs", Shape::Integer),
    has("completed_jobs", Shape::Integer),
    has("failed_jobs", Shape::Integer),
    has("total_paid_to_sellers", Shape::Number),
    has("total_purchases", Shape::Integer),
    has("total_purchase_revenue", Shape::Number),
    has("average_rating", Shape::Number),
    has("rating_count", Shape::Integer),
    has("categories", Shape::List(&Shape::Object(COUNTED))),
];

static TIER: &[Member] = &[has("tier", Shape::Text), has("means", Shape::Text)];
static QUALITY: &[Member] = &[
    has("formula", Shape::Text),
    has("rating", Shape::Text),
    has("reputation", Shape::Text),
    has("backing", Shape::Text),
    has("votes", Shape::Text),
    has("constants", Shape::Map(&Shape::Number)),
    has("range", Shape::List(&Shape::Number)),
];
static BOUNDS: &[Member] =
    &[has("items_read_per_search", Shape::Integer), has("quality_levels", Shape::Integer), has("note", Shape::Text)];
static RANKING: &[Member] = &[
    has("order", Shape::Text),
    has("tiers", Shape::List(&Shape::Object(TIER))),
    has("quality", Shape::Object(QUALITY)),
    has("typos", Shape::Text),
    has("what_does_not_count", Shape::Text),
    has("list", Shape::Text),
    has("bounds", Shape::Object(BOUNDS)),
];

static REGISTERED: &[Member] =
    &[has("id", Shape::Uuid), has("name", Shape::Text), has("slug", Shape::Text), has("status", STATUS)];
static FIRST: &[Member] =
    &[has("id", Shape::Uuid), has("name", Shape::Text), has("slug", Shape::Text), has("price_usd", Shape::Number)];

static TYPE: &[Member] = &[
    has("slug", Shape::Text),
    has("name", Shape::Text),
    has("description", Shape::Text),
    has("category", CATEGORY),
    has("default_price", Shape::Number),
    has("suggested_price", Shape::Number),
    has("requires_sandbox", Shape::Bool),
    has("input_schema", Shape::Map(&Shape::Any)),
];
static SUGGESTED: &[Member] = &[has("name", Shape::Text), has("slug", Shape::Text), has("price_usd", Shape::Number)];
static TEMPLATE: &[Member] = &[
    has("key", Shape::Text),
    has("name", Shape::Text),
    has("description", Shape::Text),
    has("category", CATEGORY),
    has("example_soul_md", Shape::Text),
    has("suggested_services", Shape::List(&Shape::Object(SUGGESTED))),
];

static PRICING: &[Member] =
    &[has("service_price", Shape::Number), has("platform_fee", Shape::Number), has("seller_revenue", Shape::Number)];
static PROGRESS: &[Member] =
    &[has("message", Shape::OrNull(&Shape::Text)), has("percent", Shape::OrNull(&Shape::Integer))];
static JOB_ERROR: &[Member] =
    &[has("code", Shape::Text), has("reason", Shape::OrNull(&Shape::Text)), has("message", Shape::Text)];
static FILES: &[Member] = &[has("count", Shape::Integer), has("url", Shape::Text)];

/// Members of every view of a job.
pub static JOB: &[Member] = &[
    has("id", Shape::Text),
    has("job_id", Shape::Uuid),
    has("status", Shape::Choice(JOB_STATUS)),
    has("pricing", Shape::Object(PRICING)),
    has("service", Shape::OrNull(&Shape::Text)),
    has("seller", Shape::OrNull(&Shape::Text)),
    has("created_at", Shape::Time),
    has("updated_at", Shape::Time),
    may("rating", Shape::Integer),
    may("rating_proven", Shape::Bool)
        .about("Whether the rating came with proof that the caller is the buyer. Only then it counts"),
    may("review", Shape::Text),
    may("progress", Shape::Object(PROGRESS)),
    may("deadline", Shape::Time),
    may("error", Shape::Object(JOB_ERROR)),
    may("credited_usdc", Shape::Usdc).about("Paid back as credits, because the work failed"),
    may("kept_usdc", Shape::Usdc).about("Not paid back: what the work had used up for paid tools and the model"),
];

static RESULT: &[Member] = &[
    may("result", Shape::Text),
    may("result_truncated", Shape::Bool),
    may("has_full_result", Shape::Bool),
    may("model_used", Shape::OrNull(&Shape::Text)),
    may("tokens_used", Shape::OrNull(&Shape::Integer)),
    may("tools_used", Shape::Any),
    may("result_expired", Shape::Is(true)).about("The result was delivered and has been deleted since"),
    may("output", Shape::Object(&[has("files", Shape::Object(FILES))])),
    may("input", Shape::Any).about("For the seller: the buyer's input"),
];

/// A job of a soul.
pub static SOUL_JOB: Named = Named {
    name: "SoulJob",
    about: "An execution of a service. The result is text; a long one is cut unless `full=true`.",
    shape: Shape::Extended(JOB, RESULT),
};

/// Query of both routes that show a job.
pub const FULL: &[Field] = &[Field::optional("full", FLAG, "Returns the whole result, however long")];

const LISTED: &[Field] = &[LIMIT, OFFSET, CURSOR];
const LIMIT: Field = Field::optional("limit", Kind::Integer { min: 1, max: 100 }, "At most this many; default 50");
const OFFSET: Field = Field::optional(
    "offset",
    Kind::Integer { min: 0, max: listing::MAX_OFFSET as i64 },
    "Skips this many. To go further, use cursor",
);
const CURSOR: Field =
    Field::optional("cursor", Kind::Text { min: 0, max: 1000, format: None }, "A page's pagination.next_cursor");
const IN_CATEGORY: Field = Field::optional("category", Kind::Choice(CATEGORIES), "Only in this category");
const QUERY: Kind = Kind::Text { min: 2, max: search::MAX_QUERY, format: None };

const LIST_REFUSALS: &[(u16, &str)] =
    &[(400, "invalid_request"), (400, "invalid_cursor"), (503, "provider_unavailable")];
const GIVEN_CURSOR: &str = "a cursor has to come from a page of this route";
const SERVICES: Shape = Shape::List(&Shape::Object(OFFER));

pub static OPERATIONS: &[Operation] = &[
    Operation::get("/v1/soul", "listSouls", "Souls, by number of completed jobs")
        .query(LISTED)
        .answers(&[Answer::ok("A page", Shape::Object(LIST))])
        .refuses(LIST_REFUSALS)
        .beyond_schema(GIVEN_CURSOR),
    Operation::get("/v1/soul/", "listSoulsToo", "The same as /v1/soul, for clients that append a slash")
        .query(LISTED)
        .answers(&[Answer::ok("A page", Shape::Object(LIST))])
        .refuses(LIST_REFUSALS)
        .beyond_schema(GIVEN_CURSOR),
    Operation::get("/v1/soul/browse", "browseSouls", "Souls of one category, with their total number")
        .query(&[LIMIT, OFFSET, CURSOR, IN_CATEGORY])
        .answers(&[Answer::ok("A page", Shape::Extended(LIST, &[has("total", Shape::Integer)]))])
        .refuses(LIST_REFUSALS)
        .beyond_schema(GIVEN_CURSOR),
    Operation::get("/v1/soul/search", "searchSouls", "Finds souls by words")
        .query(&[
            Field::required("q", QUERY, "Words of the name or the bio"),
            Field::optional("limit", Kind::Integer { min: 1, max: search::MAX_RESULTS as i64 }, "At most this many; default 20"),
            IN_CATEGORY,
        ])
        .answers(&[Answer::ok(
            "What was found, best first",
            Shape::Object(&[
                has("query", Shape::Text),
                has("results", Shape::List(&Shape::Object(FOUND))),
                has("total", Shape::Integer),
                has("total_relation", Shape::Choice(&["exact", "at_least"])),
                has("ranking", Shape::Text),
            ]),
        )])
        .refuses(&[(400, "invalid_request"), (429, "rate_limited"), (503, "provider_unavailable")])
        .beyond_schema("spaces around the words are removed before their length is checked"),
    Operation::get("/v1/soul/stats", "getMarketStats", "Totals of the marketplace")
        .answers(&[Answer::ok("Totals", Shape::Object(TOTALS))])
        .refuses(BUSY),
    Operation::get("/v1/soul/ranking", "getRanking", "How results are ordered, with the constants of the formula")
        .answers(&[Answer::ok("The order", Shape::Object(RANKING))]),
    Operation::post("/v1/soul/register", "registerSoul", "Registers a seller")
        .about(
            "The soul key is in this answer. With an Idempotency-Key, repeating the registration from the same IP address returns it \
             again, until the soul key is replaced. Without one, a lost soul key cannot be recovered.",
        )
        .headers(&[IDEMPOTENCY_KEY])
        .body(Body::Json { schema: schemas::registration, required: true })
        .answers(&[Answer::ok(
            "Registered",
            Shape::Object(&[
                OK,
                has("soul_key", Shape::OrNull(&Shape::Text))
                    .about("Send it as Authorization: Bearer. Null in a replay after the key was replaced"),
                has("soul_agent", Shape::Object(REGISTERED)),
                may("service", Shape::Object(FIRST)),
                may("webhook_secret", Shape::OrNull(&Shape::Text)).about("Null in a replay, like the soul key"),
            ]),
        )])
        .refuses(&[
            (400, "content_blocked"),
            (403, "registration_closed"),
            (409, "request_in_progress"),
            (422, "idempotency_key_reused"),
            (409, "slug_taken"),
            (409, "soul_exists"),
            (429, "rate_limited"),
            (503, "provider_unavailable"),
        ])
        .beyond_schema("prices have at most six decimals; schemas, names and texts are checked; see docs/MARKETPLACE.md")
        .links(&[
            Link {
                name: "profile",
                status: 200,
                to: "getSoul",
                parameters: &[("slug", "$response.body#/soul_agent/slug")],
            },
            Link {
                name: "versions",
                status: 200,
                to: "listSoulVersions",
                parameters: &[("slug", "$response.body#/soul_agent/slug")],
            },
            Link {
                name: "buy",
                status: 200,
                to: "purchase",
                parameters: &[("slug", "$response.body#/soul_agent/slug")],
            },
        ]),
    Operation::get("/v1/soul/service-types", "listServiceTypes", "Common types of services, as a starting point").answers(&[
        Answer::ok(
            "Types",
            Shape::Object(&[
                has("types", Shape::List(&Shape::Object(TYPE))),
                has("categories", Shape::List(&CATEGORY)),
            ]),
        ),
    ]),
    Operation::get("/v1/soul/templates", "listTemplates", "Example souls to adapt")
        .answers(&[Answer::ok("Templates", Shape::Object(&[has("templates", Shape::List(&Shape::Object(TEMPLATE)))]))]),
    Operation::get("/v1/soul/{slug}", "getSoul", "A soul's profile, and what it offers")
        .about("By its slug, or by the wallet it is paid at.")
        .answers(&[Answer::ok(
            "The profile",
            Shape::Object(&[has("soul", Shape::Ref(&PROFILE)), has("services", SERVICES)]),
        )])
        .refuses(&[(404, "not_found"), (503, "provider_unavailable")]),
    Operation::get("/v1/soul/{slug}/versions", "listSoulVersions", "The versions of a soul's text")
        .query(HISTORY)
        .answers(&[Answer::ok("A page of the history", Shape::Ref(&VERSIONS))])
        .refuses(&[(400, "invalid_request"), (404, "not_found"), (503, "provider_unavailable")]),
    Operation::get("/v1/soul/jobs/{id}", "getSoulJob", "A job, for its buyer and its seller")
        .auth(Auth::Party)
        .query(FULL)
        .answers(&[Answer::ok("The job", Shape::Object(&[has("job", Shape::Ref(&SOUL_JOB))]))]),
    Operation::get("/v1/soul/jobs/{id}/files", "listSoulJobFiles", "The files of a job").auth(Auth::Party).answers(&[
        Answer::ok(
            "The files",
            Shape::Object(&[
                has("job_id", Shape::Text),
                has("file_count", Shape::Integer),
                has("files", Shape::List(&Shape::Object(files::FILE))),
            ]),
        ),
    ]),
    Operation::get("/v1/soul/jobs/{id}/files/{path+}", "getSoulJobFile", "One file of a job")
        .auth(Auth::Party)
        .headers(files::RANGE)
        .answers(files::CONTENT)
        .refuses(files::REFUSALS),
    Operation::post("/v1/soul/jobs/{id}/rate", "rateSoulJob", "Rates a completed job, once. Without a proof or an access token of its buyer, the rating is stored but does not count")
        .auth(Auth::Party)
        .body(Body::Fields(RATING))
        .answers(&[Answer::ok(
            "The rating is stored; the message says whether it counts",
            Shape::Object(&[OK, has("message", Shape::Text), has("rating", Shape::Integer)]),
        )])
        .refuses(&[(400, "job_not_completed"), (400, "already_rated")]),
];
