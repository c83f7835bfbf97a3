//! The marketplace, for sellers.

use base::input::{Field, Kind, Range};
use gate::work::MAX_RESULT_BYTES;
use market::{sold, statement, statistics};
use tools::files;

use super::shape::{Member, Named, Shape, has, may};
use super::shared::OK;
use super::souls::{self, FULL, HISTORY, JOB, JOB_STATUS, OFFER, SOUL_JOB, VERSIONS};
use super::{Answer, Auth, Body, Content, IDEMPOTENCY_KEY, Link, Operation, schemas};

/// Body of `POST /v1/soul/me/jobs/{id}/progress`.
pub static PROGRESS: &[Field] = &[
    Field::optional("message", Kind::Text { min: 0, max: 1000, format: None }, "Progress, in words"),
    Field::optional(
        "percent",
        Kind::Number(Range { above: None, min: Some(0.0), max: Some(100.0) }),
        "Progress in percent, 0 to 100",
    ),
];

/// Body of `POST /v1/soul/me/jobs/{id}/files`.
pub static FILE: &[Field] = &[
    Field::required("path", Kind::Text { min: 1, max: 255, format: None }, "The file's path among the job's files"),
    Field::required("size", Kind::Integer { min: 1, max: files::MAX_FILE_BYTES as i64 }, "In bytes"),
    Field::required("content_type", Kind::Text { min: 3, max: 127, format: None }, "Such as application/pdf"),
];

/// Body of `POST /v1/soul/me/jobs/{id}/complete`.
pub static RESULT: &[Field] = &[Field::required(
    "result",
    Kind::Text { min: 0, max: MAX_RESULT_BYTES, format: None },
    "The result; JSON if the service has an output_schema",
)];

/// Body of `POST /v1/soul/me/jobs/{id}/fail`.
pub static REASON: &[Field] =
    &[Field::required("reason", Kind::Text { min: 1, max: 1000, format: None }, "Why; the buyer reads it")];

const JOB_REFUSALS: &[(u16, &str)] = &[(404, "not_found"), (409, "already_claimed"), (409, "invalid_state")];
const FILE_REFUSALS: &[(u16, &str)] = &[
    (400, "invalid_request"),
    (404, "not_found"),
    (409, "already_claimed"),
    (409, "invalid_state"),
    (409, "request_in_progress"),
];
const ROOM: &str = "A job's files may have 100 MiB in total for each USDC of its price, at least 2 MiB and at most 1 GiB. Files that \
     were replaced count too; with them the limit is three times as high.";

static OF_SELLER: &[Member] = &[
    has("payout_address", Shape::OrNull(&Shape::Address)),
    has("payout_address_verified", Shape::Bool),
    has("created_at", Shape::Time),
    has("updated_at", Shape::Time),
];

/// A soul as its seller sees it.
pub static OWN_SOUL: Named = Named {
    name: "OwnSoul",
    about: "A suspended soul still shows its price, but is not for sale.",
    shape: Shape::Extended(souls::SHOWN, OF_SELLER),
};

static OF_SERVICE: &[Member] = &[
    has("service", Shape::Text).about("Its slug"),
    has("completed_jobs", Shape::Integer),
    has("failed_jobs", Shape::Integer),
    has("revenue", Shape::Usdc),
];
static FIGURES: &[Member] = &[
    has("completed_jobs", Shape::Integer),
    has("failed_jobs", Shape::Integer),
    has("purchases", Shape::Integer).about("Of the text"),
    has("failed_purchases", Shape::Integer),
    has("revenue", Shape::Usdc).about("What you earned, of jobs and of the text, when the sales ended"),
    has("purchase_revenue", Shape::Usdc).about("The part of it that is of the text"),
    has("services", Shape::List(&Shape::Object(OF_SERVICE))),
];
static OF_DAY: &[Member] = &[has("date", Shape::Text).about("UTC, such as 2026-11-21")];
static STATISTICS: &[Member] = &[
    OK,
    has("days", Shape::Integer),
    has("from", Shape::Text),
    has("to", Shape::Text),
    has("currency", Shape::Choice(&["USDC"])),
    has("daily", Shape::List(&Shape::Extended(FIGURES, OF_DAY))).about("Oldest first; days without sales are left out"),
    has("totals", Shape::Object(FIGURES)),
];

static CASE: &[Member] = &[
    has("name", Shape::Text),
    has("input", Shape::Map(&Shape::Any)),
    has("checks", Shape::List(&Shape::Map(&Shape::Any))),
];

static OWN: &[Member] = &[
    has("active", Shape::Bool),
    has("tools", Shape::List(&Shape::Text)),
    has("tool_budget_usd", Shape::Number),
    has("webhook_url", Shape::OrNull(&Shape::Uri)),
    has("program", Shape::OrNull(&Shape::Text)).about("SHA-256 of the program"),
    has("test_cases", Shape::List(&Shape::Object(CASE))),
    has("test_failures", Shape::OrNull(&Shape::List(&Shape::Text))),
    has("created_at", Shape::Time),
    has("updated_at", Shape::Time),
];

/// A service as its seller sees it.
pub static SERVICE: Named = Named { name: "Service", about: "", shape: Shape::Extended(OFFER, OWN) };

static SHOWN: &[Member] = &[
    OK,
    has("service", Shape::Ref(&SERVICE)),
    may("webhook_secret", Shape::Text).about("Of a new webhook_url; shown once"),
];

static LISTED: &[Member] = &[
    has("has_full_result", Shape::Bool),
    has("result_preview", Shape::OrNull(&Shape::Text)),
    has("model_used", Shape::OrNull(&Shape::Text)),
    has("tokens_used", Shape::OrNull(&Shape::Integer)),
];
static PAGE: &[Member] = &[has("limit", Shape::Integer), has("offset", Shape::Integer), has("has_more", Shape::Bool)];

static CLAIMED: &[Member] = &[
    has("id", Shape::Text),
    has("job_id", Shape::Uuid),
    has("status", Shape::Choice(JOB_STATUS)),
    has("input", Shape::Any),
    has("service", Shape::OrNull(&Shape::Text)),
    has("service_version", Shape::OrNull(&Shape::Integer)),
    has("lease_expires_at", Shape::OrNull(&Shape::Time)),
    has("deadline", Shape::OrNull(&Shape::Time)),
];

static UPLOAD: &[Member] = &[has("method", Shape::Choice(&["PUT"])), has("headers", Shape::Map(&Shape::Text))];
static PUT_FILE: &[Member] = &[has("path", Shape::Text), has("size", Shape::Integer), has("content_type", Shape::Text)];

static TOTAL: &[Member] =
    &[has("pending", Shape::Number), has("total_earnings", Shape::Number), has("total_jobs", Shape::Integer)];

/// Money on its way to a seller.
pub static PAYOUT: Named = Named {
    name: "Payout",
    about: "",
    shape: Shape::Object(&[
        has("id", Shape::Text),
        has("amount", Shape::Number),
        has("status", Shape::Choice(&["pending", "processing", "completed", "failed"])),
        has("tx_hash", Shape::OrNull(&Shape::Hash)),
        has("wallet", Shape::Address),
        has("waiting_for", Shape::OrNull(&Shape::Text)),
        has("failure", Shape::OrNull(&Shape::Text)),
        has("created_at", Shape::Time),
        has("processed_at", Shape::OrNull(&Shape::Time)),
    ]),
};

const UNCOUNTED: Member = may("uncounted", Shape::Is(true))
    .about("More sales have ended than one request counts, so the figures are too low. Repeat the request");

static MATURING: &[Member] =
    &[has("job_id", Shape::Uuid), has("amount_usdc", Shape::Number), has("matures_at", Shape::Time)];

static BALANCE: &[Member] = &[
    has("balance", Shape::Object(TOTAL)),
    has("recent_payouts", Shape::List(&Shape::Ref(&PAYOUT))),
    has("available_usdc", Shape::Number),
    has("maturing_usdc", Shape::Number),
    has("maturing", Shape::List(&Shape::Object(MATURING))),
    has("pending_usdc", Shape::Number),
    has("total_earned_usdc", Shape::Number),
    has("total_paid_out_usdc", Shape::Number),
    has("payout_address", Shape::OrNull(&Shape::Address)),
    has("payout_address_verified", Shape::Bool),
    UNCOUNTED,
];

static ASKED: &[Member] =
    &[has("id", Shape::Text), has("amount", Shape::Number), has("status", Shape::Choice(&["pending"]))];

static ENTRY: &[Member] = &[
    has("number", Shape::Integer),
    has("booked_at", Shape::Time),
    has("kind", Shape::Choice(&["sale", "purchase", "card_reversal", "failed", "payout", "payout_returned"])),
    has("amount", Shape::Number),
    has("balance", Shape::Number),
    has("happened_at", Shape::Time),
    has("job_id", Shape::OrNull(&Shape::Uuid)),
    has("payout_id", Shape::OrNull(&Shape::Text)),
    has("receipt_id", Shape::OrNull(&Shape::Text)),
    has("service", Shape::OrNull(&Shape::Text)),
    has("price", Shape::OrNull(&Shape::Number)),
    has("platform_fee", Shape::OrNull(&Shape::Number)),
    has("maturing", Shape::OrNull(&Shape::Number)),
    has("matures_at", Shape::OrNull(&Shape::Time)),
];

static STATEMENT: &[Member] = &[
    has("soul", Shape::Text),
    has("currency", Shape::Choice(&["USDC"])),
    has("entries", Shape::List(&Shape::Object(ENTRY))),
    has("count", Shape::Integer),
    has("has_more", Shape::Bool),
    has("next_cursor", Shape::OrNull(&Shape::Text)),
    UNCOUNTED,
];

const BLOCKED: &[(u16, &str)] =
    &[(400, "content_blocked"), (404, "service_not_found"), (409, "slug_taken"), (409, "too_many_services")];
const JUDGED: &str = "prices have at most six decimals; schemas, names and texts are checked; see docs/MARKETPLACE.md";
const TIME: Kind = Kind::Text { min: 0, max: 64, format: Some(&schemas::TIME) };
const JOB_LINK: &[(&str, &str)] = &[("id", "$response.body#/job/id")];
const SERVICE_LINK: &[(&str, &str)] = &[("service", "$response.body#/service/slug")];

pub static OPERATIONS: &[Operation] = &[
    Operation::get("/v1/soul/me", "getOwnSoul", "Your soul, with all its services").auth(Auth::SoulKey).answers(&[
        Answer::ok(
            "The soul",
            Shape::Object(&[
                OK,
                has("soul", Shape::Ref(&OWN_SOUL)),
                has("services", Shape::List(&Shape::Ref(&SERVICE))),
            ]),
        ),
    ]),
    Operation::put("/v1/soul/me", "changeOwnSoul", "Changes your soul's profile. Absent members stay as they are")
        .about("`null` removes the bio or the picture. Search finds the soul by its new words at once.")
        .auth(Auth::SoulKey)
        .body(Body::Json { schema: schemas::profile, required: false })
        .answers(&[Answer::ok("The soul", Shape::Object(&[OK, has("soul", Shape::Ref(&OWN_SOUL))]))])
        .refuses(&[(400, "content_blocked")])
        .beyond_schema("names and texts are checked, and members that cannot be set here have to be as they are shown"),
    Operation::get("/v1/soul/me/statistics", "getOwnStatistics", "Your sales by day and service")
        .about("By the day (UTC) on which a sale ended. A sale is counted some seconds after its end.")
        .auth(Auth::SoulKey)
        .query(&[Field::optional(
            "days",
            Kind::Integer { min: 1, max: statistics::MOST_DAYS as i64 },
            "The last days, today included; default 30",
        )])
        .answers(&[Answer::ok("The statistics", Shape::Object(STATISTICS))]),
    Operation::get("/v1/soul/me/services", "listServices", "Your services, including disabled ones")
        .auth(Auth::SoulKey)
        .answers(&[Answer::ok("Services", Shape::Object(&[has("services", Shape::List(&Shape::Ref(&SERVICE)))]))]),
    Operation::post("/v1/soul/me/services", "createService", "Offers a service")
        .auth(Auth::SoulKey)
        .body(Body::Json { schema: schemas::new_service, required: true })
        .answers(&[Answer::json(201, "The service", Shape::Object(SHOWN))])
        .refuses(BLOCKED)
        .beyond_schema(JUDGED)
        .links(&[
            Link { name: "change", status: 201, to: "changeService", parameters: SERVICE_LINK },
            Link { name: "disable", status: 201, to: "disableService", parameters: SERVICE_LINK },
        ]),
    Operation::put(
        "/v1/soul/me/services/{service}",
        "changeService",
        "Changes a service. Absent members stay as they are",
    )
    .about("`null` sets the default. Lists and schemas are replaced as a whole.")
    .auth(Auth::SoulKey)
    .body(Body::Json { schema: schemas::service, required: false })
    .answers(&[Answer::ok("The service", Shape::Object(SHOWN))])
    .refuses(BLOCKED)
    .beyond_schema("the slug is the path's; prices have at most six decimals; schemas, names and texts are checked; see docs/MARKETPLACE.md"),
    Operation::delete("/v1/soul/me/services/{service}", "disableService", "Disables a service")
        .auth(Auth::SoulKey)
        .answers(&[Answer::ok("Disabled", Shape::Object(&[OK, has("message", Shape::Text)]))])
        .refuses(&[(404, "service_not_found")]),
    Operation::put("/v1/soul/me/services/{service}/program", "setProgram", "Sets the program that does the work")
        .about("WebAssembly, as docs/PROGRAMS.md describes it.")
        .auth(Auth::SoulKey)
        .body(Body::Bytes {
            content_type: "application/octet-stream",
            about: "The program, at most 4 MiB; of any content type",
        })
        .answers(&[Answer::ok("The service", Shape::Object(SHOWN))])
        .refuses(&[(400, "invalid_request"), (404, "service_not_found")])
        .beyond_schema("the program has to be valid, and the service has to run programs"),
    Operation::put("/v1/soul/me/soul", "setSoulText", "Sets the soul's text")
        .about("A changed text becomes a new version. The same text keeps its version.")
        .auth(Auth::SoulKey)
        .body(Body::Json { schema: schemas::soul_text, required: true })
        .answers(&[Answer::ok(
            "The version",
            Shape::Object(&[OK, has("version", Shape::Integer), has("soul_hash", Shape::Text)]),
        )])
        .refuses(&[(400, "content_blocked"), (409, "soul_exists")])
        .beyond_schema("the text's length counts in bytes, and its content is checked"),
    Operation::get("/v1/soul/me/soul/versions", "listOwnVersions", "When your text changed")
        .auth(Auth::SoulKey)
        .query(HISTORY)
        .answers(&[Answer::ok("A page of the history", Shape::Ref(&VERSIONS))]),
    Operation::put("/v1/soul/me/soul-price", "setSoulPrice", "Sets the price of the soul's text")
        .about("`null` takes it off the market, 0 gives it away.")
        .auth(Auth::SoulKey)
        .body(Body::Json { schema: schemas::soul_price, required: true })
        .answers(&[Answer::ok(
            "The price",
            Shape::Object(&[OK, has("soul_price", Shape::OrNull(&Shape::Number)), has("soul_for_sale", Shape::Bool)]),
        )])
        .beyond_schema("a price has at most six decimals"),
    Operation::post("/v1/soul/me/rotate-key", "rotateSoulKey", "Replaces the soul key. The old key stops working")
        .auth(Auth::SoulKey)
        .body(Body::Fields(&[]))
        .answers(&[Answer::ok("The key, shown once", Shape::Object(&[OK, has("soul_key", Shape::Text)]))]),
    Operation::get("/v1/soul/me/jobs", "listJobs", "Your jobs, newest first")
        .auth(Auth::SoulKey)
        .query(&[
            Field::optional("limit", Kind::Integer { min: 1, max: 100 }, "At most this many; default 20"),
            Field::optional("offset", Kind::Integer { min: 0, max: sold::MAX_OFFSET as i64 }, "Skips this many"),
            Field::optional("status", Kind::Choice(JOB_STATUS), "Only those in this state"),
        ])
        .answers(&[Answer::ok(
            "Jobs",
            Shape::Object(&[
                has("jobs", Shape::List(&Shape::Extended(JOB, LISTED))),
                has("pagination", Shape::Object(PAGE)),
            ]),
        )]),
    Operation::get("/v1/soul/me/jobs/{id}", "getJob", "One of your jobs, with its input")
        .auth(Auth::SoulKey)
        .query(FULL)
        .answers(&[Answer::ok("The job", Shape::Object(&[has("job", Shape::Ref(&SOUL_JOB))]))])
        .refuses(&[(404, "not_found")]),
    Operation::post("/v1/soul/me/jobs/{id}/claim", "claimJob", "Claims a job, until its lease expires")
        .auth(Auth::SoulKey)
        .body(Body::Fields(&[]))
        .answers(&[Answer::ok("The job", Shape::Object(&[has("job", Shape::Object(CLAIMED))]))])
        .refuses(JOB_REFUSALS)
        .links(&[
            Link { name: "progress", status: 200, to: "reportProgress", parameters: JOB_LINK },
            Link { name: "complete", status: 200, to: "completeJob", parameters: JOB_LINK },
        ]),
    Operation::post("/v1/soul/me/jobs/{id}/progress", "reportProgress", "Reports progress, and extends the lease")
        .auth(Auth::SoulKey)
        .body(Body::Fields(PROGRESS))
        .answers(&[Answer::ok(
            "When the lease expires",
            Shape::Object(&[OK, has("lease_expires_at", Shape::OrNull(&Shape::Time))]),
        )])
        .refuses(JOB_REFUSALS),
    Operation::post(
        "/v1/soul/me/jobs/{id}/files",
        "announceFile",
        "Announces a large file, and returns where to upload it",
    )
    .about(ROOM)
    .auth(Auth::SoulKey)
    .body(Body::Fields(FILE))
    .answers(&[Answer::ok(
        "The upload URL, method and headers",
        Shape::Object(&[
            has("upload_url", Shape::Uri),
            has("expires_at", Shape::Time),
            has("upload", Shape::Object(UPLOAD)),
        ]),
    )])
    .refuses(FILE_REFUSALS)
    .beyond_schema("the path and the content type have to be valid, and the job's files may not exceed the limit"),
    Operation::put("/v1/soul/me/jobs/{id}/files/{path+}", "putFile", "Adds a file of at most 1 MiB to a job")
        .about(ROOM)
        .auth(Auth::SoulKey)
        .body(Body::Bytes { content_type: "application/octet-stream", about: "The file, with its own Content-Type" })
        .answers(&[Answer::ok("The file", Shape::Object(PUT_FILE))])
        .refuses(FILE_REFUSALS)
        .beyond_schema("the path and the content type have to be valid, and the job's files may not exceed the limit"),
    Operation::post("/v1/soul/me/jobs/{id}/complete", "completeJob", "Delivers the result")
        .auth(Auth::SoulKey)
        .body(Body::Fields(RESULT))
        .answers(&[Answer::ok("The job", Shape::Object(&[OK, has("job", Shape::Ref(&SOUL_JOB))]))])
        .refuses(&[(400, "invalid_output"), (404, "not_found"), (409, "already_claimed"), (409, "invalid_state")]),
    Operation::post("/v1/soul/me/jobs/{id}/fail", "failJob", "Gives up a job. Its buyer is paid back")
        .auth(Auth::SoulKey)
        .body(Body::Fields(REASON))
        .answers(&[Answer::ok("The job", Shape::Object(&[OK, has("job", Shape::Ref(&SOUL_JOB))]))])
        .refuses(JOB_REFUSALS),
    Operation::get("/v1/soul/me/balance", "getEarnings", "Your balance and payouts")
        .auth(Auth::SoulKey)
        .answers(&[Answer::ok("The balance", Shape::Object(BALANCE))]),
    Operation::put("/v1/soul/me/link-wallet", "linkWallet", "Sets the wallet that payouts go to")
        .about("With a proof of the wallet (`x-agent-proof`, or `proof` in the body) no other soul can link it.")
        .auth(Auth::SoulKey)
        .body(Body::Json { schema: schemas::wallet, required: true })
        .answers(&[Answer::ok(
            "Linked",
            Shape::Object(&[
                OK,
                has("message", Shape::Text),
                has("wallet", Shape::Address),
                has("verified", Shape::Bool),
            ]),
        )])
        .refuses(&[(401, "invalid_proof"), (409, "wallet_already_linked")])
        .beyond_schema("the wallet has to be one that can receive payouts"),
    Operation::post("/v1/soul/me/payout", "askPayout", "Requests a payout")
        .auth(Auth::SoulKey)
        .headers(&[IDEMPOTENCY_KEY])
        .body(Body::Json { schema: schemas::payout, required: false })
        .answers(&[Answer::ok(
            "Requested",
            Shape::Object(&[
                OK,
                has("payout", Shape::Object(ASKED)),
                has("message", Shape::Text),
                has("payout_id", Shape::Text),
                has("amount_usdc", Shape::Number),
                has("status", Shape::Choice(&["pending"])),
            ]),
        )])
        .refuses(&[
            (400, "payout_failed"),
            (400, "wallet_not_linked"),
            (409, "request_in_progress"),
            (422, "idempotency_key_reused"),
        ])
        .beyond_schema("a payout needs a linked wallet, an amount of at least 10 USDC, and a balance that covers it"),
    Operation::get("/v1/soul/me/payouts", "listPayouts", "Payouts, newest first")
        .auth(Auth::SoulKey)
        .query(&[
            Field::optional("limit", Kind::Integer { min: 1, max: 100 }, "At most this many; default 20"),
            Field::optional(
                "before",
                Kind::Text { min: 0, max: 100, format: None },
                "Only payouts older than this one",
            ),
        ])
        .answers(&[Answer::ok(
            "Payouts",
            Shape::Object(&[has("payouts", Shape::List(&Shape::Ref(&PAYOUT))), has("has_more", Shape::Bool)]),
        )])
        .refuses(&[(400, "invalid_cursor")])
        .beyond_schema("before has to be a payout's id"),
    Operation::get("/v1/soul/me/statement", "getStatement", "Your entries, oldest first, as JSON or CSV")
        .auth(Auth::SoulKey)
        .query(&[
            Field::optional("from", TIME, "Entries booked from this time on"),
            Field::optional("to", TIME, "Entries booked up to this time"),
            Field::optional("format", Kind::Choice(&["json", "csv"]), "json, unless Accept asks for text/csv"),
            Field::optional(
                "limit",
                Kind::Integer { min: 1, max: statement::MOST as i64 },
                "At most this many; default 100",
            ),
            Field::optional("cursor", Kind::Text { min: 0, max: 1000, format: None }, "A page's next_cursor"),
        ])
        .answers(&[Answer {
            status: 200,
            about: "The entries",
            content: Content::JsonOr(Shape::Object(STATEMENT), &["text/csv"]),
            headers: &[("X-Next-Cursor", false, "For CSV: the next page's cursor")],
        }])
        .refuses(&[(400, "invalid_cursor")])
        .beyond_schema("to must not be before from, times have to be valid, and a cursor has to come from a page"),
];
