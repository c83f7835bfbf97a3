//! Checkout for agent platforms: the ACP paths, the simpler ones, and the documents about both.

use base::input::{self, Field, Kind};
use market::checkout::request::{BODY, BUYER, DETAILS, NAME, OLDER_BUYER, PAYMENT};
use market::checkout::view::DIGITAL;
use market::checkout::{CURRENCY, VERSION};
use serde_json::{Value, json};

use super::meta::{KNOWN, TAGGED};
use super::shape::{Member, Named, Shape, has, may};
use super::{Answer, Auth, Body, Content, IDEMPOTENCY_KEY, Link, Operation, shared};

const API_VERSION: Field =
    Field::required("API-Version", Kind::Choice(&[VERSION]), "The version of ACP of this request");
const REQUEST_ID: Field = Field::optional(
    "Request-Id",
    Kind::Text { min: 0, max: 255, format: Some(&shared::ASCII) },
    "Your own id of this request; the answer repeats it",
);
const NAMED: Field = Field { required: true, ..IDEMPOTENCY_KEY };
const READS: &[Field] = &[API_VERSION, REQUEST_ID];
const CHANGES: &[Field] = &[API_VERSION, IDEMPOTENCY_KEY, REQUEST_ID];
/// On ACP's paths, creating and paying require an idempotency key.
const NAMED_CHANGES: &[Field] = &[API_VERSION, NAMED, REQUEST_ID];

const READ_HEADERS: &[(&str, bool, &str)] = &[("Request-Id", false, "As it was sent")];
const CHANGE_HEADERS: &[(&str, bool, &str)] = &[
    ("Request-Id", false, "As it was sent"),
    ("Idempotency-Key", false, "As it was sent"),
    ("Idempotent-Replayed", false, "`true`: this is a replay of the first answer to this key"),
];

const CENTS: Shape = Shape::Integer;

/// ACP's flat error: the form of every refusal under `/acp/`.
pub static ACP_ERROR: Named = Named {
    name: "AcpError",
    about: "Every refusal on ACP's paths. `code` is for programs and `message` for people.",
    shape: Shape::Object(&[
        has(
            "type",
            Shape::Choice(&["invalid_request", "request_not_idempotent", "processing_error", "service_unavailable"]),
        ),
        has("code", Shape::Text),
        has("message", Shape::Text),
        may("param", Shape::Text).about("RFC 9535 path of the error in the request"),
    ]),
};

static TOTAL: &[Member] = &[
    has("type", Shape::Choice(&["items_base_amount", "subtotal", "fulfillment", "tax", "total"])),
    has("display_text", Shape::Text),
    has("amount", CENTS).about("Cents"),
];
const TOTALS: Shape = Shape::List(&Shape::Object(TOTAL));

static LINE: &[Member] = &[
    has("id", Shape::Text),
    has("item", Shape::Object(&[has("id", Shape::Text)])),
    has("quantity", Shape::Integer),
    has("product_id", Shape::Text),
    has("totals", TOTALS),
    has("availability_status", Shape::Choice(&["in_stock", "out_of_stock"])),
    may("name", Shape::Text),
    may("unit_amount", CENTS).about("Cents"),
    may("max_quantity_per_order", Shape::Integer),
    may("marketplace_seller_details", Shape::Object(&[has("name", Shape::Text)])),
];

static OPTION: &[Member] = &[
    has("type", Shape::Choice(&[DIGITAL])),
    has("id", Shape::Choice(&[DIGITAL])),
    has("title", Shape::Text),
    has("totals", TOTALS),
];

static SELECTED: &[Member] = &[
    has("type", Shape::Choice(&[DIGITAL])),
    has("option_id", Shape::Choice(&[DIGITAL])),
    has("item_ids", Shape::List(&Shape::Text)),
];

static MESSAGE: Named = Named {
    name: "CheckoutMessage",
    about: "A message for the buyer. Messages of type error prevent payment. A message of type info can name a member of the \
            input that nothing reads.",
    shape: Shape::Object(&[
        has("type", Shape::Choice(&["error", "warning", "info"])),
        has("content_type", Shape::Choice(&["plain"])),
        has("content", Shape::Text),
        may("code", Shape::Text),
        may("param", Shape::Text).about("RFC 9535 path into the session"),
        may("severity", Shape::Choice(&["high"])),
    ]),
};
const MESSAGES: Shape = Shape::List(&Shape::Ref(&MESSAGE));

static EXTRA: &[Member] = &[has("name", Shape::Text), has("version", Shape::Text), has("quoteId", Shape::Text)];
static ACCEPTS: &[Member] = &[
    has("scheme", Shape::Choice(&["exact"])),
    has("network", Shape::Text).about("CAIP-2"),
    has("amount", Shape::Text).about("micro-USDC"),
    has("asset", Shape::Address),
    has("payTo", Shape::Address),
    has("maxTimeoutSeconds", Shape::Integer),
    has("extra", Shape::Object(EXTRA)).about("`quoteId` binds the payment to this session"),
];
static RESOURCE: &[Member] = &[has("url", Shape::Uri), has("description", Shape::Text), has("mimeType", Shape::Text)];
static X402: &[Member] = &[
    has("x402Version", Shape::Integer),
    has("resource", Shape::Object(RESOURCE)),
    has("accepts", Shape::List(&Shape::Object(ACCEPTS))).about("What to sign; empty while there is nothing to pay"),
];
static CREDITS: &[Member] =
    &[has("currency", Shape::Text), has("token_prefixes", Shape::List(&Shape::Text)), has("top_up_url", Shape::Uri)];
static HANDLER: &[Member] = &[
    has("id", Shape::Choice(&["x402", "credits"])),
    has("name", Shape::Text),
    has("version", Shape::Text),
    has("spec", Shape::Uri),
    has("requires_delegate_payment", Shape::Is(false)),
    has("requires_pci_compliance", Shape::Is(false)),
    has("psp", Shape::Text),
    has("config_schema", Shape::Uri),
    has("instrument_schemas", Shape::List(&Shape::Uri)),
    has("config", Shape::Either(&[Shape::Object(X402), Shape::Object(CREDITS)])),
];
static SIMPLE_HANDLER: &[Member] = &[has("type", Shape::Text), has("provider", Shape::Text)];

static ORDER: &[Member] = &[
    has("id", Shape::Text),
    has("checkout_session_id", Shape::Uuid),
    has("permalink_url", Shape::Uri),
    has("status", Shape::Choice(&["processing", "confirmed", "delivered"])),
];
static BOUGHT: &[Member] = &[has("request_id", Shape::Uuid).about("Polled at GET /v1/requests/{id}")];

static CAPABILITIES: &[Member] = &[
    has("payment", Shape::Object(&[has("handlers", Shape::List(&Shape::Object(HANDLER)))])),
    has(
        "interventions",
        Shape::Object(&[
            has("supported", Shape::List(&Shape::Text)),
            has("required", Shape::List(&Shape::Text)),
            has("enforcement", Shape::Choice(&["optional"])),
        ]),
    ),
];

const OPEN_OR_OVER: Shape = Shape::Choice(&["open", "pending", "completed", "cancelled", "failed"]);

/// A session as ACP shapes it.
static SESSION: Named = Named {
    name: "CheckoutSession",
    about: "A purchase by an agent platform. Complete it while it is `ready_for_payment`; `messages` say \
            what prevents payment.",
    shape: Shape::Object(&[
        has("id", Shape::Uuid),
        has("protocol", Shape::Object(&[has("version", Shape::Choice(&[VERSION]))])),
        has(
            "status",
            Shape::Choice(&[
                "not_ready_for_payment",
                "ready_for_payment",
                "complete_in_progress",
                "completed",
                "canceled",
                "expired",
            ]),
        ),
        has("currency", Shape::Choice(&[CURRENCY])),
        has("line_items", Shape::List(&Shape::Object(LINE))),
        has("fulfillment_options", Shape::List(&Shape::Object(OPTION))),
        has("selected_fulfillment_options", Shape::List(&Shape::Object(SELECTED))),
        has("totals", TOTALS),
        has("messages", MESSAGES),
        has(
            "links",
            Shape::List(&Shape::Object(&[has("type", Shape::Text), has("title", Shape::Text), has("url", Shape::Uri)])),
        ),
        has("capabilities", Shape::Object(CAPABILITIES)),
        has("metadata", Shape::Schema(metadata)),
        has("created_at", Shape::Time),
        has("updated_at", Shape::Time),
        has("expires_at", Shape::Time),
        may("buyer", Shape::Schema(acp_buyer)),
        may("fulfillment_details", Shape::Schema(details)),
        may("locale", Shape::Text),
        may("timezone", Shape::Text),
        may("quote_id", Shape::Text),
        may("quote_expires_at", Shape::Time),
        may("order", Shape::Object(ORDER)),
    ]),
};

static SIMPLE_LINE: &[Member] = &[
    has("id", Shape::Text),
    has("product_id", Shape::Text),
    has("quantity", Shape::Integer),
    has("unit_price_usdc", Shape::Usdc),
    has(
        "item",
        Shape::Object(&[
            has("id", Shape::Text),
            has("metadata", Shape::Map(&Shape::Any)).about("The input of the tool"),
        ]),
    ),
    has("name", Shape::OrNull(&Shape::Text)),
];

/// The same session in the simpler form.
static SIMPLE_SESSION: Named = Named {
    name: "SimpleCheckoutSession",
    about: "The same session in a simpler form. Complete it while it is `ready_for_payment`; `messages` say what prevents payment.",
    shape: Shape::Object(&[
        has("id", Shape::Uuid),
        has("status", Shape::Choice(&["not_ready_for_payment", "ready_for_payment", "completed", "canceled"])),
        has("acp_status", OPEN_OR_OVER),
        has("line_items", Shape::List(&Shape::Object(SIMPLE_LINE))),
        has("total_usdc", Shape::Usdc),
        has("currency", Shape::Choice(&[CURRENCY])),
        has("buyer", Shape::OrNull(&Shape::Schema(buyer))),
        has("fulfillment", Shape::Object(&[has("type", Shape::Choice(&[DIGITAL]))])),
        has("payment_handlers", Shape::List(&Shape::Extended(HANDLER, SIMPLE_HANDLER))),
        has("messages", MESSAGES),
        has("created_at", Shape::Time),
        has("updated_at", Shape::Time),
        has("expires_at", Shape::Time),
        may("metadata", Shape::Map(&Shape::Any)),
        may("order", Shape::Extended(ORDER, BOUGHT)),
        may("request_id", Shape::Uuid).about("Polled at GET /v1/requests/{id}"),
    ]),
};

/// The platform's own members, and the service's.
fn metadata() -> Value {
    json!({
        "type": "object",
        "description": "The platform's own members. `status`, `total_usdc`, `line_items` and `request_id` repeat the session's \
                        in a simpler form",
        "required": ["status", "total_usdc", "line_items"],
        "additionalProperties": true,
        "properties": {
            "status": {"enum": ["open", "pending", "completed", "cancelled", "failed"]},
            "total_usdc": {"type": "string", "pattern": r"^[0-9]+\.[0-9]{6}$"},
            "line_items": {"type": "array", "items": {
                "type": "object",
                "required": ["product_id", "quantity", "unit_price_usdc"],
                "properties": {
                    "product_id": {"type": "string"},
                    "quantity": {"type": "integer"},
                    "unit_price_usdc": {"type": "string", "pattern": r"^[0-9]+\.[0-9]{6}$"},
                },
            }},
        },
    })
}

fn buyer() -> Value {
    input::schema(BUYER)
}

/// ACP requires an e-mail address and has none of the older members.
fn acp_buyer() -> Value {
    let mut schema = buyer();
    if let Some(members) = schema["properties"].as_object_mut() {
        members.retain(|name, _| !OLDER_BUYER.contains(&name.as_str()));
    }
    schema["required"] = json!(["email"]);
    schema
}

fn details() -> Value {
    input::schema(DETAILS)
}

/// `checkout::request`, `read`: members of both forms, and for the simpler one the idempotency key.
fn wanted(is_acp: bool) -> Value {
    let mut schema = input::schema(BODY);
    let lines = &mut schema["properties"]["line_items"];
    lines["minItems"] = json!(1);
    lines["items"]["anyOf"] = json!([{"required": ["id"]}, {"required": ["product_id"]}, {"required": ["item"]}]);
    if is_acp {
        // A buyer of the older forms needs no e-mail address.
        let needed = ["email"].iter().chain(OLDER_BUYER).map(|name| json!({"required": [name]}));
        schema["properties"]["buyer"]["anyOf"] = needed.collect();
    } else {
        schema["properties"][NAME] = name();
    }
    schema
}

/// `checkout::request::name_in`
fn name() -> Value {
    json!({
        "type": ["string", "null"], "minLength": 1, "maxLength": 255, "pattern": r"\S",
        "description": "The idempotency key, if the header Idempotency-Key is absent",
    })
}

/// `checkout::request::create`, for ACP.
fn create() -> Value {
    let mut schema = wanted(true);
    schema["required"] = json!(["line_items"]);
    schema["anyOf"] = json!([
        {"required": ["currency", "capabilities"]},
        {
            "description": "The older form: every line has a product_id or an item",
            "properties": {"line_items": {"items": {"anyOf": [{"required": ["product_id"]}, {"required": ["item"]}]}}},
        },
    ]);
    schema["example"] = json!({
        "line_items": [{"id": "agora-credits"}],
        "currency": "usd",
        "capabilities": {"interventions": {"supported": []}},
        "buyer": {"full_name": "Ada Example", "email": "ada@example.com"},
    });
    schema
}

/// `checkout::request::create`
fn simple_create() -> Value {
    let mut schema = wanted(false);
    schema["required"] = json!(["line_items"]);
    schema["example"] = json!({
        "line_items": [{"product_id": "agora-credits", "quantity": 2}],
        "buyer": {"name": "Ada Example", "email": "ada@example.com"},
    });
    schema
}

/// `checkout::request::update`, and the checks of `Checkout::update` on the options.
fn update(is_acp: bool) -> Value {
    let mut schema = wanted(is_acp);
    let option = &mut schema["properties"]["selected_fulfillment_options"]["items"]["properties"]["option_id"];
    *option = json!({"type": "string", "enum": [DIGITAL]});
    schema["example"] = json!({"buyer": {"full_name": "Ada Example", "email": "ada@example.com"}});
    schema
}

fn acp_update() -> Value {
    update(true)
}

fn simple_update() -> Value {
    update(false)
}

/// `checkout::request::credential`
fn complete(is_acp: bool) -> Value {
    let token = |about: &str| json!({"type": ["string", "object", "null"], "pattern": r"\S", "description": about});
    // The token is required in one of these places.
    let there = |path: &[&str]| {
        path.iter().rev().fold(
            json!({"type": ["string", "object"]}),
            |inner, member| json!({"required": [*member], "properties": {*member: inner}}),
        )
    };
    let in_credential = &["payment_data", "instrument", "credential", "token"];
    let mut schema = input::schema(PAYMENT);
    let data = &mut schema["properties"]["payment_data"]["properties"];
    data["instrument"]["properties"]["credential"]["properties"]["token"] = token(
        "x402: base64 of the JSON of a signed PaymentPayload, or the object itself; credits: an access token of the buyer",
    );
    data["token"] = token("The same, in the older form");
    schema["properties"]["payment_token"] = token("The same, in the oldest form");
    if !is_acp {
        schema["properties"][NAME] = name();
    }
    let mut whole = there(in_credential);
    if is_acp {
        whole["properties"]["payment_data"]["required"] = json!(["handler_id", "instrument"]);
    }
    schema["anyOf"] = json!([whole, there(&["payment_data", "token"]), there(&["payment_token"])]);
    let credential = json!({"type": "x402", "token": "eyJ4NDAyVmVyc2lvbiI6Mn0="});
    schema["example"] = if is_acp {
        json!({"payment_data": {"handler_id": "x402", "instrument": {"type": "x402", "credential": credential}}})
    } else {
        json!({"payment_token": "eyJ4NDAyVmVyc2lvbiI6Mn0="})
    };
    schema
}

fn acp_complete() -> Value {
    complete(true)
}

fn simple_complete() -> Value {
    complete(false)
}

/// The body is not read.
fn cancel() -> Value {
    json!({"type": "object", "example": {}})
}

fn simple_cancel() -> Value {
    json!({"type": "object", "properties": {NAME: name()}, "example": {}})
}

const fn body(schema: fn() -> Value, required: bool) -> Body {
    Body::Json { schema, required }
}

const VERSIONS: [(u16, &str); 2] = [(400, "missing_api_version"), (400, "unsupported_api_version")];
const OTHER_VERSION: (u16, &str) = (400, "unsupported_api_version");
const CONFLICT: (u16, &str) = (422, "idempotency_conflict");
const IN_FLIGHT: (u16, &str) = (409, "idempotency_in_flight");
const REUSED: (u16, &str) = (422, "idempotency_key_reused");
const IN_PROGRESS: (u16, &str) = (409, "request_in_progress");
const TOO_MANY_HELD: (u16, &str) = (409, "too_many_pending_approvals");
const STATE: (u16, &str) = (400, "invalid_state");
const EXPIRED: (u16, &str) = (400, "session_expired");
/// Errors of the gate itself, for any caller.
const FAILED: (u16, &str) = (500, "payment_processing_error");
const PAUSED: (u16, &str) = (503, "service_paused");

const fn session_link(name: &'static str, status: u16, to: &'static str) -> Link {
    Link { name, status, to, parameters: &[("id", "$response.body#/id")] }
}

static LINKS: &[Link] = &[
    session_link("get", 201, "getCheckoutSession"),
    session_link("update", 201, "updateCheckoutSession"),
    session_link("complete", 201, "completeCheckoutSession"),
    session_link("cancel", 201, "cancelCheckoutSession"),
];
static SIMPLE_LINKS: &[Link] = &[
    session_link("get", 201, "getSimpleCheckoutSession"),
    session_link("update", 201, "updateSimpleCheckoutSession"),
    session_link("complete", 201, "completeSimpleCheckoutSession"),
    session_link("cancel", 201, "cancelSimpleCheckoutSession"),
];
static POLL: &[Link] = &[Link {
    name: "poll",
    status: 200,
    to: "getRequest",
    parameters: &[("id", "$response.body#/metadata/request_id")],
}];
static SIMPLE_POLL: &[Link] =
    &[Link { name: "poll", status: 200, to: "getRequest", parameters: &[("id", "$response.body#/request_id")] }];

const fn session(about: &'static str) -> Answer {
    Answer::ok(about, Shape::Ref(&SESSION)).headers(CHANGE_HEADERS)
}

const fn simple(about: &'static str) -> Answer {
    Answer::ok(about, Shape::Ref(&SIMPLE_SESSION)).headers(CHANGE_HEADERS)
}

const UPDATED: &str = "Members that are sent replace the old ones. Totals and messages are computed again. A refused update \
                       changes nothing.";
const CREATED: &str = "The session. Its `messages` say what prevents payment";
const BEYOND: &str = "the e-mail address has to be valid, and metadata may have at most 16 KiB";
const BEYOND_UPDATE: &str =
    "the e-mail address has to be valid, metadata may have at most 16 KiB, and the session has to be open";
const BEYOND_COMPLETE: &str =
    "the token has to be a signed payment of the session's quote or an access token, and the session has to be open";
const BEYOND_CANCEL: &str = "the session has to be open";
const ONCE: &str =
    "A payment is charged once, however often it is sent. If an answer is lost, send the same request again.";

static DEFAULT_PRICE: &[Member] = &[has("unit_amount", CENTS).about("Cents"), has("currency", Shape::Text)];
static PRODUCT: &[Member] = &[
    has("id", Shape::Text),
    has("name", Shape::Text),
    has("description", Shape::Text),
    has("default_price", Shape::Object(DEFAULT_PRICE)),
    has("input_schema", Shape::Any).about("JSON Schema of the tool's input"),
];
static MANIFEST: &[Member] = &[
    has("version", Shape::Choice(&[VERSION])),
    has("seller", Shape::Object(&[has("name", Shape::Text), has("description", Shape::Text), has("url", Shape::Uri)])),
    has("products", Shape::List(&Shape::Object(PRODUCT))),
    has(
        "payment_handlers",
        Shape::List(&Shape::Object(&[
            has("id", Shape::Text),
            has("type", Shape::Text),
            has("provider", Shape::Text),
            may("network", Shape::Text).about("CAIP-2"),
        ])),
    ),
    has("supported_capabilities", Shape::List(&Shape::Text)),
    has("supported_versions", Shape::List(&Shape::Text)),
    has("checkout_url", Shape::Uri),
];

pub static OPERATIONS: &[Operation] = &[
    Operation::get("/.well-known/acp/manifest.json", "getAcpManifest", "The products for agent platforms, and how to pay for them")
        .answers(&[Answer::ok("The manifest", Shape::Object(MANIFEST)).headers(TAGGED), KNOWN])
        .refuses(&[(503, "provider_unavailable")]),
    Operation::get("/acp/handlers/{handler}/{document}", "getAcpHandlerDocument", "A document about a payment handler")
        .answers(&[Answer {
            status: 200,
            about: "JSON Schema of its configuration or of its instruments, or its specification in Markdown",
            content: Content::JsonOr(Shape::Map(&Shape::Any), &["text/markdown"]),
            headers: &[],
        }]),
    Operation::post("/acp/checkout_sessions", "createCheckoutSession", "Opens a checkout session")
        .about("Agentic Commerce Protocol, version 2026-01-30. The service sets the prices. A session is valid for 30 minutes.")
        .auth(Auth::Platform)
        .headers(NAMED_CHANGES)
        .body(body(create, true))
        .answers(&[Answer::json(201, CREATED, Shape::Ref(&SESSION)).headers(CHANGE_HEADERS)])
        .refuses(&[
            VERSIONS[0],
            VERSIONS[1],
            (400, "idempotency_key_required"),
            (400, "missing_required_field"),
            CONFLICT,
            IN_FLIGHT,
        ])
        .links(LINKS)
        .beyond_schema(BEYOND),
    Operation::get("/acp/checkout_sessions/{id}", "getCheckoutSession", "A checkout session as it is now")
        .auth(Auth::Platform)
        .headers(READS)
        .answers(&[Answer::ok("The session", Shape::Ref(&SESSION)).headers(READ_HEADERS)])
        .refuses(&VERSIONS),
    Operation::post("/acp/checkout_sessions/{id}", "updateCheckoutSession", "Changes a checkout session")
        .about(UPDATED)
        .auth(Auth::Platform)
        .headers(CHANGES)
        .body(body(acp_update, false))
        .answers(&[session("The session")])
        .refuses(&[VERSIONS[0], VERSIONS[1], (400, "missing_required_field"), STATE, EXPIRED, CONFLICT, IN_FLIGHT])
        .beyond_schema(BEYOND_UPDATE),
    Operation::post("/acp/checkout_sessions/{id}/complete", "completeCheckoutSession", "Pays a checkout session")
        .about(ONCE)
        .auth(Auth::Platform)
        .headers(NAMED_CHANGES)
        .body(body(acp_complete, true))
        .answers(&[session(
            "Paid, or being paid. If the payment was refused, there is a message `payment_declined` and nothing was charged",
        )])
        .refuses(&[
            VERSIONS[0],
            VERSIONS[1],
            (400, "idempotency_key_required"),
            (400, "missing_payment_token"),
            STATE,
            EXPIRED,
            CONFLICT,
            IN_FLIGHT,
            IN_PROGRESS,
            TOO_MANY_HELD,
            FAILED,
            PAUSED,
        ])
        .links(POLL)
        .beyond_schema(BEYOND_COMPLETE),
    Operation::post("/acp/checkout_sessions/{id}/cancel", "cancelCheckoutSession", "Cancels a checkout session that is not paid")
        .auth(Auth::Platform)
        .headers(CHANGES)
        .body(body(cancel, false))
        .answers(&[session("The session, canceled")])
        .refuses(&[VERSIONS[0], VERSIONS[1], (405, "not_cancelable"), CONFLICT, IN_FLIGHT])
        .beyond_schema(BEYOND_CANCEL),
    Operation::post("/v1/checkout_sessions", "createSimpleCheckoutSession", "Opens a checkout session, in the simpler form")
        .about("The service sets the prices. A session is valid for 30 minutes.")
        .auth(Auth::Platform)
        .headers(CHANGES)
        .body(body(simple_create, true))
        .answers(&[Answer::json(201, CREATED, Shape::Ref(&SIMPLE_SESSION)).headers(CHANGE_HEADERS)])
        .refuses(&[OTHER_VERSION, REUSED, IN_PROGRESS])
        .links(SIMPLE_LINKS)
        .beyond_schema(BEYOND),
    Operation::get("/v1/checkout_sessions/{id}", "getSimpleCheckoutSession", "A checkout session as it is now")
        .auth(Auth::Platform)
        .headers(READS)
        .answers(&[Answer::ok("The session", Shape::Ref(&SIMPLE_SESSION)).headers(READ_HEADERS)])
        .refuses(&[OTHER_VERSION]),
    Operation::post("/v1/checkout_sessions/{id}", "updateSimpleCheckoutSession", "Changes a checkout session")
        .about(UPDATED)
        .auth(Auth::Platform)
        .headers(CHANGES)
        .body(body(simple_update, false))
        .answers(&[simple("The session")])
        .refuses(&[OTHER_VERSION, STATE, EXPIRED, REUSED, IN_PROGRESS])
        .beyond_schema(BEYOND_UPDATE),
    Operation::post("/v1/checkout_sessions/{id}/complete", "completeSimpleCheckoutSession", "Pays a checkout session")
        .about(ONCE)
        .auth(Auth::Platform)
        .headers(CHANGES)
        .body(body(simple_complete, true))
        .answers(&[simple("Paid, or being paid")])
        .refuses(&[
            OTHER_VERSION,
            (400, "missing_payment_token"),
            STATE,
            EXPIRED,
            (402, "payment_failed"),
            REUSED,
            IN_PROGRESS,
            TOO_MANY_HELD,
            FAILED,
            PAUSED,
        ])
        .links(SIMPLE_POLL)
        .beyond_schema(BEYOND_COMPLETE),
    Operation::post("/v1/checkout_sessions/{id}/cancel", "cancelSimpleCheckoutSession", "Cancels a checkout session that is not paid")
        .auth(Auth::Platform)
        .headers(CHANGES)
        .body(body(simple_cancel, false))
        .answers(&[simple("The session, canceled")])
        .refuses(&[OTHER_VERSION, STATE, REUSED, IN_PROGRESS])
        .beyond_schema(BEYOND_CANCEL),
];
