//! Buying: a soul's text, and the execution of a service. Both go through the gate.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use common::auth::Scope;
use common::catalog::input::FieldError;
use common::gate::{self, Call, parse_body};
use common::http::{ApiError, MarketError, headers, private_json, read_body};
use common::ledger::earning::{self, Licence};
use common::marketplace::{Market, offer, respond, schema, soul};
use common::money::Usdc;
use common::tools::soul::{EXECUTION, PURCHASE};
use http::{HeaderMap, StatusCode};

/// `POST /v1/soul/{slug}/purchase`: the soul's text. A free one is handed over at once, and so is a version to whoever
/// proves to have bought it.
pub async fn purchase(State(market): State<Arc<Market>>, path: Path<String>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let answer = async {
        let resource = market.app.resource_url(&parts);
        let body = read_body(body, gate::MAX_BODY_BYTES).await?;
        let offer = offer::text(&market, &path, &parts.headers).await?;
        if let Some(answer) = had(&market, &offer, &parts.headers).await? {
            return Ok(answer);
        }
        let call =
            Call { tool: &PURCHASE, listing: Some(&offer.listing), resource: &resource, headers: &parts.headers, body };
        market.gate.call(call).await
    };
    respond(answer.await)
}

/// The text, where nothing is to be paid for it.
async fn had(market: &Market, offer: &offer::TextOffer, headers: &HeaderMap) -> Result<Option<Response>, ApiError> {
    let (soul, text) = (&offer.soul, &offer.text);
    let now = market.app.clock.now().to_string();
    let (price, purchased_at) = if offer.price == Usdc::ZERO {
        (Usdc::ZERO, now)
    } else {
        // Only who proves to be the buyer: a public address proves nothing (contract §19).
        if headers.get("x-agent-proof").is_none() && headers::bearer(headers)?.is_none() {
            return Ok(None);
        }
        // A proof is used up by being looked at, and the gate would not take it again: it is only looked at here where
        // there is something to find.
        let Some(named) = common::marketplace::party::named(market, headers).await? else { return Ok(None) };
        let key = earning::licence_key(soul.slug.as_str(), named, text.version);
        let licence: Option<Licence> = market.app.db.get_latest(&market.app.db.tables.ledger, key).await?;
        let Some(licence) = licence else { return Ok(None) };
        market.app.caller(headers, Scope::Read).await?;
        (offer.price, licence.bought_at.to_string())
    };
    let soul_md = soul::load_text(&*market.app.blobs, &text.hash).await?;
    let body = offer::handed_over(soul, text, &soul_md, price, &purchased_at);
    Ok(Some(private_json(StatusCode::OK, &body)))
}

/// `POST /v1/soul/{slug}/services/{service}/execute`.
pub async fn execute(
    State(market): State<Arc<Market>>,
    Path((slug, service)): Path<(String, String)>,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    let answer = async {
        let resource = market.app.resource_url(&parts);
        let body = read_body(body, gate::MAX_BODY_BYTES).await?;
        let execution = offer::execution(&market, &slug, &service, &parts.headers).await?;
        let members = parse_body(&parts.headers, &body)?;
        let input = members.get("input").ok_or_else(|| wrong("input", "is required"))?;
        if !input.is_object() {
            return Err(wrong("input", "must be an object"));
        }
        schema::fits(input).map_err(|errors| MarketError::InvalidInput(schema::under("input", errors)))?;
        if let Some(asked) = &execution.terms.input_schema {
            schema::validate(asked, input)
                .map_err(|errors| MarketError::InvalidInput(schema::under("input", errors)))?;
        }
        let call = Call {
            tool: &EXECUTION,
            listing: Some(&execution.listing),
            resource: &resource,
            headers: &parts.headers,
            body,
        };
        market.gate.call(call).await
    };
    respond(answer.await)
}

fn wrong(path: &str, message: &str) -> ApiError {
    MarketError::InvalidInput(vec![FieldError::new(path, message)]).into()
}
