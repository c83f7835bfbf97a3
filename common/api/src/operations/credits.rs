//! Buying credits by card. Buying them with USDC is a paid call: see `tools`.

use tools::top_up;

use super::shape::{Shape, has};
use super::shared::OK;
use super::{Answer, Auth, Body, IDEMPOTENCY_KEY, Operation};

pub static OPERATIONS: &[Operation] = &[
    Operation::post("/v1/credits/checkout", "openCheckout", "Opens a page where a person buys credits by card")
        .about("Nothing is credited until the card processor confirms the payment.")
        .auth(Auth::Agent)
        .headers(&[IDEMPOTENCY_KEY])
        .body(Body::Fields(top_up::AMOUNT))
        .answers(&[Answer::ok(
            "The page",
            Shape::Object(&[OK, has("data", Shape::Object(&[has("session_id", Shape::Text), has("url", Shape::Uri)]))]),
        )])
        .refuses(super::account::NAMED)
        .beyond_schema("the amount has to be in whole cents, from 0.01 to 1000"),
    Operation::post(
        "/v1/credits/webhook",
        "cardWebhook",
        "For the card processor: reports payments, refunds and disputes",
    )
    .about(
        "The body is the processor's event, signed in `Stripe-Signature`. Each session is credited once. Refunds and \
             disputes are taken back once, however often and in whatever order they are reported.",
    )
    .body(Body::Bytes { content_type: "application/json", about: "The processor's event, unchanged" })
    .answers(&[Answer::ok("Received", Shape::Object(&[has("received", Shape::Is(true))]))])
    .refuses(&[
        (400, "invalid_request"),
        (401, "unauthorized"),
        (429, "rate_limit_exceeded"),
        (503, "provider_unavailable"),
    ]),
];
