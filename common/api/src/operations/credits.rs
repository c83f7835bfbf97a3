//! Buying credits with a card. With USDC they are bought like a tool: see `tools`.

use tools::top_up;

use super::shape::{Shape, has};
use super::shared::OK;
use super::{Answer, Auth, Body, IDEMPOTENCY_KEY, Operation};

pub static OPERATIONS: &[Operation] = &[
    Operation::post("/v1/credits/checkout", "openCheckout", "Opens a page where a person buys credits by card")
        .about("Nothing is credited until the card processor says that it was paid.")
        .auth(Auth::Agent)
        .headers(&[IDEMPOTENCY_KEY])
        .body(Body::Fields(top_up::AMOUNT))
        .answers(&[Answer::ok(
            "The page",
            Shape::Object(&[OK, has("data", Shape::Object(&[has("session_id", Shape::Text), has("url", Shape::Uri)]))]),
        )])
        .refuses(super::account::NAMED)
        .beyond_schema("the amount is in whole cents, from 0.01 to 1000"),
    Operation::post("/v1/credits/webhook", "cardWebhook", "For the card processor: says what was paid or taken back")
        .about(
            "The body is the processor's event, signed in `Stripe-Signature`. Each session is credited once; what refunds and \
             disputes come to is taken back once, however often and in whichever order they are told.",
        )
        .body(Body::Bytes { content_type: "application/json", about: "The processor's event, as it was signed" })
        .answers(&[Answer::ok("Heard", Shape::Object(&[has("received", Shape::Is(true))]))])
        .refuses(&[
            (400, "invalid_request"),
            (401, "unauthorized"),
            (429, "rate_limit_exceeded"),
            (503, "provider_unavailable"),
        ]),
];
