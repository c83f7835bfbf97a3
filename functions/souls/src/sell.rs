//! Buying: a soul's text, and the execution of a service. Both go through the gate.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use base::input::{self, FieldError};
use base::money::Usdc;
use gate::{Call, parse_body};
use http::{HeaderMap, StatusCode};
use ledger::earning;
use ledger::fee::Split;
use ledger::payments::{claim, wire};
use market::offer::Execution;
use market::{Market, offer, party, respond, soul};
use platform::auth::Scope;
use platform::auth::nonce::Use;
use platform::http::{ApiError, MarketError, headers, private_json, read_body};
use serde_json::{Map, Value};
use tools::soul::{EXECUTION, PURCHASE};
use tools::spec::RECEIPT_FIELDS;

/// `POST /v1/soul/{slug}/purchase`: the soul's text. A free text is returned at once, and so is a version that the caller
/// proves to have bought.
pub async fn purchase(State(market): State<Arc<Market>>, path: Path<String>, request: Request<Body>) -> Response {
    let (parts, body) = request.into_parts();
    let answer = async {
        let resource = market.app.resource_url(&parts);
        let body = read_body(body, gate::MAX_BODY_BYTES).await?;
        let call = Call { tool: &PURCHASE, listing: None, resource: &resource, headers: &parts.headers, body };
        let offer = match offer::text(&market, &path, &parts.headers).await {
            Ok(offer) => offer,
            // A bought text stays readable, whatever is on sale now.
            Err(refused @ ApiError::Market(MarketError::NotForSale | MarketError::Unlisted)) => {
                let answer = owned(&market, &path, None, &call).await?.ok_or(refused)?;
                return check_form(&parts.headers, &call.body).map(|()| answer);
            }
            Err(error) => return Err(error),
        };
        let (soul, text) = (&offer.soul, &offer.text);
        if offer.price == Usdc::ZERO {
            check_form(&parts.headers, &call.body)?;
            let soul_md = soul::load_text(&*market.app.blobs, &text.hash).await?;
            let now = market.app.clock.now().to_string();
            let body = offer::handed_over(soul, text, &soul_md, Split::default(), &now);
            return Ok(private_json(StatusCode::OK, &body));
        }
        if let Some(answer) = owned(&market, &path, Some(text.version), &call).await? {
            return check_form(&parts.headers, &call.body).map(|()| answer);
        }
        market.gate.call(Call { listing: Some(&offer.listing), ..call }).await
    };
    respond(answer.await)
}

/// Checks a request that skips the gate as strictly as the gate would.
fn check_form(sent: &HeaderMap, body: &[u8]) -> Result<(), ApiError> {
    let body = parse_body(sent, body)?;
    for fields in [PURCHASE.input, RECEIPT_FIELDS] {
        input::validate(fields, &body).map_err(ApiError::InvalidRequest)?;
    }
    wire::payment(sent).map_err(|wrong| ApiError::field(wrong.header, wrong.message))?;
    headers::agent_name(sent)?;
    headers::max_cost(sent)?;
    headers::quote_id(sent)?;
    headers::approval_id(sent)?;
    headers::idempotency_key(sent)?;
    headers::is_dry_run(sent).map(drop)
}

/// A text that the caller bought: `version`, or without one the newest, if none is on sale. Requires a proof or an access
/// token, because an address is public. A payment that the gate knows is left to it: it has the stored answer.
async fn owned(
    market: &Market,
    name: &str,
    version: Option<u32>,
    call: &Call<'_>,
) -> Result<Option<Response>, ApiError> {
    let headers = call.headers;
    if headers.get("x-agent-proof").is_none() && headers::bearer(headers)?.is_none() {
        return Ok(None);
    }
    // Checking a proof uses it up, and the gate would then refuse it. So it is checked here only if there is a licence to
    // find.
    let db = &market.app.db;
    let (Some(named), Some(soul)) = (party::named(market, headers).await?, soul::find(db, name).await?) else {
        return Ok(None);
    };
    let Some(licence) = earning::licence(db, soul.slug.as_str(), named, version).await? else { return Ok(None) };
    let Some(text) = soul::load_version(db, soul.slug.as_str(), licence.version).await? else { return Ok(None) };
    let payment = wire::payment(headers).map_err(|wrong| ApiError::field(wrong.header, wrong.message))?;
    if let (Some(payment), Some(_)) = (&payment, version)
        && claim::load(db, &payment.authorization, &market.app.config.chain).await?.is_some()
    {
        return Ok(None);
    }
    // A payment may be sent again with its proof.
    let used_for = match &payment {
        Some(payment) => Use::Pay { call: call.digest(), request: call.paid_digest(payment) },
        None => Use::Once,
    };
    market.app.caller_again(headers, Scope::Read, used_for).await?;
    let soul_md = soul::load_text(&*market.app.blobs, &text.hash).await?;
    let body = offer::handed_over(&soul, &text, &soul_md, licence.split(), &licence.bought_at.to_string());
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
        let mut execution = offer::execution(&market, &slug, &service, &parts.headers).await?;
        if !gate::is_probe(&parts.headers, &body) {
            check_input(&mut execution, &parse_body(&parts.headers, &body)?)?;
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

/// Checks the input of an execution against the service's terms.
fn check_input(execution: &mut Execution, members: &Map<String, Value>) -> Result<(), ApiError> {
    let input = members.get("input").ok_or_else(|| wrong("input", "is required"))?;
    if !input.is_object() {
        return Err(wrong("input", "must be an object"));
    }
    execution.check_input("input", input)
}

fn wrong(path: &str, message: &str) -> ApiError {
    MarketError::InvalidInput(vec![FieldError::new(path, message)]).into()
}
