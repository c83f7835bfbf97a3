//! Endpoints that events are posted to, and their delivery logs.

use base::input::{Field, Kind};
use ledger::webhooks::form;

use super::shape::{Member, Named, Shape, has, may};
use super::shared::OK;
use super::{Answer, Auth, Body, IDEMPOTENCY_KEY, Link, Operation, schemas};

static ENDPOINT: &[Member] = &[
    has("id", Shape::Text),
    has("url", Shape::Uri),
    has("events", Shape::List(&Shape::Text)).about("Names of events, or `*` alone"),
    has("description", Shape::OrNull(&Shape::Text)),
    may("phone_number_id", Shape::Uuid)
        .about("The endpoint of this number's calls: it is changed with the number's settings, and not here"),
    has("enabled", Shape::Bool),
    has("disabled_reason", Shape::OrNull(&Shape::Choice(&["by_owner", "gone"])))
        .about("`gone`: the receiver answered 410"),
    has("resting_until", Shape::OrNull(&Shape::Time))
        .about("After an attempt timed out: nothing is sent before this time"),
    has("old_secret_until", Shape::OrNull(&Shape::Time))
        .about("Until this time, secrets from before a rotation sign as well"),
    has("created_at", Shape::Time),
    has("updated_at", Shape::Time),
];

/// An endpoint as its owner sees it.
static WEBHOOK: Named = Named { name: "Webhook", about: "", shape: Shape::Object(ENDPOINT) };

static SECRET: &[Member] =
    &[has("secret", Shape::OrNull(&Shape::Text)).about("`whsec_…`, in this answer only; null in a replay")];

static ATTEMPT: &[Member] = &[
    has("at", Shape::Time),
    has("duration_ms", Shape::Integer),
    has("status", Shape::OrNull(&Shape::Integer)).about("The receiver's status"),
    has("error", Shape::OrNull(&Shape::Choice(FAILURES))).about("Null if the attempt succeeded"),
    has("answer", Shape::OrNull(&Shape::Text)).about("What went wrong, or the beginning of the receiver's answer"),
];

const FAILURES: &[&str] = &["status", "timeout", "unreachable", "not_allowed", "bad_answer", "lost"];

/// An event on its way to an endpoint.
static DELIVERY: Named = Named {
    name: "Delivery",
    about: "An event, and every attempt to post it. A failed attempt is retried after 1, 5, 30, 120 and 600 minutes; \
            then the delivery is `dead`.",
    shape: Shape::Object(&[
        has("event_id", Shape::Text).about("Also the header `webhook-id` of every attempt"),
        has("type", Shape::Text).about("The event's name"),
        has("state", STATE),
        has("created_at", Shape::Time),
        has("queued_at", Shape::Time).about("When this round of attempts began: with the event, or with a replay"),
        has("next_attempt_at", Shape::OrNull(&Shape::Time)),
        has("attempts_made", Shape::Integer).about("In this round"),
        has("attempts", Shape::List(&Shape::Object(ATTEMPT))),
        has("payload", Shape::OrNull(&Shape::Map(&Shape::Any))).about("The body that is posted"),
    ]),
};

const STATE: Shape = Shape::Choice(&["pending", "delivered", "dead", "cancelled"]);

static LISTED: &[Member] = &[has("webhooks", Shape::List(&Shape::Ref(&WEBHOOK))), has("count", Shape::Integer)];

static PAGE: &[Member] = &[
    has("deliveries", Shape::List(&Shape::Ref(&DELIVERY))),
    has("count", Shape::Integer),
    has("has_more", Shape::Bool),
    has("next_cursor", Shape::OrNull(&Shape::Text)),
];

static SENT: &[Member] = &[has("event_id", Shape::Text), has("state", Shape::Choice(&["pending"]))];
static DELETED: &[Member] = &[has("id", Shape::Text), has("deleted", Shape::Is(true))];

const ONE: Shape = Shape::Object(&[OK, has("data", Shape::Ref(&WEBHOOK))]);
const WITH_SECRET: Shape = Shape::Object(&[OK, has("data", Shape::Extended(ENDPOINT, SECRET))]);
const UNDER_WAY: Shape = Shape::Object(&[OK, has("data", Shape::Object(SENT))]);

const WALLET: Auth = Auth::Wallet { token_is_told: "access_tokens_wallet_only" };

/// Operations on a new endpoint.
const OF_NEW: &[Link] =
    &[of_new("get", "getWebhook"), of_new("change", "changeWebhook"), of_new("test", "testWebhook")];
const LOGGED: &[Link] =
    &[Link { name: "log", status: 202, to: "listDeliveries", parameters: &[("id", "$request.path.id")] }];

const fn of_new(name: &'static str, to: &'static str) -> Link {
    Link { name, status: 201, to, parameters: &[("id", "$response.body#/data/id")] }
}

const ADDRESS: &str = "the URL has to be https, with a public host, on port 80 or 443";
const TAKEN: (u16, &str) = (409, "request_in_progress");
const REUSED: (u16, &str) = (422, "idempotency_key_reused");
const MISSING: (u16, &str) = (404, "webhook_not_found");
const OF_NUMBER: (u16, &str) = (409, "webhook_of_number");

pub static OPERATIONS: &[Operation] = &[
    Operation::get("/v1/webhooks", "listWebhooks", "Your endpoints, oldest first")
        .auth(Auth::Agent)
        .answers(&[Answer::ok("All of them: ten at most, and those of phone numbers", Shape::Object(&[OK, has("data", Shape::Object(LISTED))]))]),
    Operation::post("/v1/webhooks", "createWebhook", "Adds an endpoint that your events are posted to")
        .about(
            "Every post is signed according to Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`). A repeated \
             `webhook-id` means the same event again.",
        )
        .auth(WALLET)
        .headers(&[IDEMPOTENCY_KEY])
        .body(Body::Json { schema: schemas::new_webhook, required: true })
        .answers(&[Answer::json(201, "The endpoint with its secret, shown once", WITH_SECRET)])
        .refuses(&[(409, "too_many_webhooks"), TAKEN, REUSED])
        .links(OF_NEW)
        .beyond_schema(ADDRESS),
    Operation::get("/v1/webhooks/{id}", "getWebhook", "One endpoint")
        .auth(Auth::Agent)
        .answers(&[Answer::ok("The endpoint", ONE)])
        .refuses(&[MISSING]),
    Operation::patch("/v1/webhooks/{id}", "changeWebhook", "Changes or disables an endpoint. Absent members stay as they are")
        .about("`events` replaces the list. Enabling it or changing its URL also ends a pause (`resting_until`).")
        .auth(WALLET)
        .body(Body::Json { schema: schemas::webhook, required: false })
        .answers(&[Answer::ok("The endpoint as it is now", ONE)])
        .refuses(&[MISSING, OF_NUMBER])
        .beyond_schema(ADDRESS),
    Operation::delete("/v1/webhooks/{id}", "deleteWebhook", "Deletes an endpoint")
        .about("Deliveries that are still pending are cancelled.")
        .auth(WALLET)
        .answers(&[Answer::ok("The endpoint is deleted", Shape::Object(&[OK, has("data", Shape::Object(DELETED))]))])
        .refuses(&[MISSING, OF_NUMBER]),
    Operation::post("/v1/webhooks/{id}/rotate-secret", "rotateWebhookSecret", "Gives an endpoint a new secret")
        .about("For a while, posts are signed with both secrets.")
        .auth(WALLET)
        .headers(&[IDEMPOTENCY_KEY])
        .body(Body::Nullable(form::ROTATE))
        .answers(&[Answer::ok("The endpoint with its new secret, shown once", WITH_SECRET)])
        .refuses(&[MISSING, TAKEN, REUSED]),
    Operation::post("/v1/webhooks/{id}/test", "testWebhook", "Posts an event `webhook.test`")
        .auth(Auth::Agent)
        .body(Body::Fields(&[]))
        .answers(&[Answer::json(202, "The delivery is queued", UNDER_WAY)])
        .refuses(&[MISSING, (409, "webhook_disabled")])
        .links(LOGGED),
    Operation::get("/v1/webhooks/{id}/deliveries", "listDeliveries", "Deliveries, newest first, with every attempt")
        .about("Kept for 30 days.")
        .auth(Auth::Agent)
        .query(&[
            Field::optional("limit", Kind::Integer { min: 1, max: form::MOST_DELIVERIES as i64 }, "At most this many; default 20"),
            Field::optional("cursor", Kind::Text { min: 0, max: 100, format: None }, "A page's next_cursor"),
        ])
        .answers(&[Answer::ok("A page", Shape::Object(&[OK, has("data", Shape::Object(PAGE))]))])
        .refuses(&[MISSING, (400, "invalid_cursor")])
        .links(&[Link {
            name: "replay",
            status: 200,
            to: "replayDelivery",
            parameters: &[("id", "$request.path.id"), ("event", "$response.body#/data/deliveries/0/event_id")],
        }])
        .beyond_schema("a cursor has to come from a page"),
    Operation::post("/v1/webhooks/{id}/deliveries/{event}/replay", "replayDelivery", "Posts the same event again")
        .about("With the same `webhook-id`. A delivery that is still pending cannot be replayed.")
        .auth(Auth::Agent)
        .body(Body::Fields(&[]))
        .answers(&[Answer::json(202, "The delivery is queued", UNDER_WAY)])
        .refuses(&[MISSING, (404, "delivery_not_found"), (409, "webhook_disabled"), (409, "delivery_pending")])
        .links(LOGGED),
];
