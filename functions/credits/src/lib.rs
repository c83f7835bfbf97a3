//! Buying credits: with USDC from the wallet, or by card through a processor.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::post;
use base::input;
use base::money::Usdc;
use gate::idempotency::{self, Request as Named};
use gate::limits::{self, Class, Subject};
use gate::{Call, Gate};
use http::{HeaderMap, StatusCode};
use ledger::card;
use ledger::cards::Cards;
use platform::auth::Scope;
use platform::http::log;
use platform::http::{ApiError, headers, private_json, read_body};
use serde_json::json;
use tools::spec::TOP_UP;
use tools::{Runner, top_up};

/// Tools that this function runs itself.
pub const RUNNERS: &[&Runner] = &[&top_up::RUNNER];

const MAX_BODY_BYTES: usize = 64 * 1024;

#[derive(Clone)]
struct CreditsState {
    gate: Arc<Gate>,
    cards: Option<Arc<Cards>>,
}

/// `cards` is the card processor, if one is configured.
pub fn router(gate: Arc<Gate>, cards: Option<Cards>) -> Router {
    let mut router = Router::new();
    for path in TOP_UP.paths {
        router = router.route(path, post(top_up));
    }
    let router = router.route("/v1/credits/checkout", post(checkout)).route("/v1/credits/webhook", post(webhook));
    api::routes::finish(router.with_state(CreditsState { gate, cards: cards.map(Arc::new) }))
}

/// `POST /v1/credits/top-up`: sold by the gate like a tool. Access tokens are refused: they have no wallet to pay from.
async fn top_up(State(state): State<CreditsState>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let gate = &state.gate;
    let resource = gate.app.resource_url(&parts);
    let answer = async {
        if headers::bearer(&parts.headers)?.is_some() {
            gate.app.caller(&parts.headers, Scope::Read).await?;
            return Err(ApiError::ClosedToTokens);
        }
        let body = read_body(body, gate::MAX_BODY_BYTES).await?;
        gate.call(Call { tool: TOP_UP, listing: None, resource: &resource, headers: &parts.headers, body }).await
    };
    gate::respond(answer.await)
}

/// `POST /v1/credits/checkout`: opens the card processor's page, where a person pays. Nothing is credited until the
/// processor confirms the payment.
async fn checkout(State(state): State<CreditsState>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = gate::parse_body(&headers, &read_body(body, MAX_BODY_BYTES).await?)?;
        let input = input::validate_all(top_up::AMOUNT, &[], &body).map_err(ApiError::InvalidRequest)?;
        let amount = top_up::amount(&input);
        let caller = state.gate.app.caller(&headers, Scope::Write).await?;
        let cards = state.cards.as_ref().ok_or_else(no_cards)?;
        if !amount.micro().is_multiple_of(10_000) {
            return Err(ApiError::field("amount", "must be in whole cents, because it is paid by card"));
        }
        let open = async {
            // A wallet costs nothing, and the processor limits how many pages are opened here.
            limits::take(&state.gate.app, Subject::source(), Class::Open).await?;
            let session = cards.open_session(caller.agent, amount).await.map_err(ApiError::Unavailable)?;
            let data = json!({"session_id": session.id, "url": session.url});
            Ok((StatusCode::OK, json!({"success": true, "data": data})))
        };
        let route = "POST /v1/credits/checkout";
        let request = Named { caller: &caller, headers: &headers, route, body: &body, secret: None };
        idempotency::once(&state.gate.app, request, open).await
    };
    gate::respond(answer.await)
}

fn no_cards() -> ApiError {
    ApiError::NotConfigured { what: "card processor".to_owned() }
}

/// `POST /v1/credits/webhook`: the processor reports a payment, a refund or a dispute. Each is booked once.
async fn webhook(State(state): State<CreditsState>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = read_body(body, MAX_BODY_BYTES).await?;
        let cards = state.cards.as_ref().ok_or_else(no_cards)?;
        let app = &state.gate.app;
        limits::take(app, Subject::source(), Class::Open).await?;
        let now = app.clock.now();
        let signature = headers::text(&headers, "stripe-signature")?.unwrap_or_default();
        if !cards.is_signed(signature, &body, now) {
            return Err(ApiError::Unauthorized);
        }
        let received = || private_json(StatusCode::OK, &json!({"received": true}));
        let Some(told) = Cards::told(&body) else { return Ok(received()) };
        let booked = card::note(&app.db, &told.payment, &told.event, now).await?;
        if booked.is_unknown {
            // Kept until the event of its session arrives.
            log::event("card_payment_unknown", json!({"payment": told.payment}));
        }
        if booked.taken > Usdc::ZERO || booked.returned > Usdc::ZERO {
            let (taken, returned) = (booked.taken.to_string(), booked.returned.to_string());
            let owed = booked.owed.to_string();
            let fields =
                json!({"payment": told.payment, "taken_usdc": taken, "returned_usdc": returned, "owed_usdc": owed});
            log::event("card_payment_taken_back", fields);
            log::metric(
                &app.config.metric_namespace,
                "CardPaymentsTakenBack",
                "Count",
                u64::from(booked.taken > Usdc::ZERO),
            );
        }
        Ok(received())
    };
    gate::respond(answer.await)
}
