//! The soul itself, its statistics, its text, its price and its key.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use base::money::Usdc;
use gate::limits::{self, Class, Subject};
use gate::{MAX_BODY_BYTES, empty_body, parse_body, respond};
use http::{HeaderMap, StatusCode};
use market::form::{self, Reader};
use market::soul::Soul;
use market::{Market, history, recent, registry, reputation, seller, statistics, view};
use platform::http::{ApiError, Params, private_json, read_body};
use serde_json::{Value, json};

use crate::services;

const MAX_NOTE_CHARS: usize = 500;
const USUAL_DAYS: usize = 30;

/// `GET /v1/soul/me`: with all services, also disabled ones.
pub async fn show(State(market): State<Arc<Market>>, headers: HeaderMap) -> Response {
    let answer = async {
        let soul = seller::caller(&market.app, &headers).await?;
        let (shown, services) = tokio::try_join!(own(&market, &soul), services::all(&market, &soul))?;
        let body = json!({"success": true, "soul": shown, "services": services});
        let bytes = body.to_string().len();
        limits::take_list(&market.app, Subject::Soul(soul.id()), Class::Export, bytes).await?;
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}

/// `PUT /v1/soul/me`: absent members stay as they are; the slug cannot change.
pub async fn change(State(market): State<Arc<Market>>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = read_body(body, MAX_BODY_BYTES).await?;
        let soul = seller::caller(&market.app, &headers).await?;
        let body = parse_body(&headers, &body)?;
        let soul = registry::change_profile(&market, &soul, &body).await?;
        Ok(private_json(StatusCode::OK, &json!({"success": true, "soul": own(&market, &soul).await?})))
    };
    respond(answer.await)
}

/// The soul as its seller sees it.
async fn own(market: &Market, soul: &Soul) -> Result<Value, ApiError> {
    let (db, slug) = (&market.app.db, soul.slug.as_str());
    let (lately, reputation) =
        tokio::try_join!(recent::purchases(db, slug, market.app.clock.now()), reputation::public(db, slug))?;
    let mut shown = view::own(soul, lately);
    shown["reputation"] = reputation;
    Ok(shown)
}

/// `GET /v1/soul/me/statistics?days`
pub async fn statistics(State(market): State<Arc<Market>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let mut params = Params::of(query.as_deref());
        params.only(&["days"]);
        let days = params.integer("days", 1, statistics::MOST_DAYS).unwrap_or(USUAL_DAYS);
        params.check()?;
        let soul = seller::caller(&market.app, &headers).await?;
        let (app, now) = (&market.app, market.app.clock.now());
        let body = statistics::told(&app.db, soul.slug.as_str(), days, now).await?;
        limits::take_list(app, Subject::Soul(soul.id()), Class::Export, body.to_string().len()).await?;
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}

/// `PUT /v1/soul/me/soul`: a changed text becomes a new version.
pub async fn change_text(State(market): State<Arc<Market>>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = read_body(body, MAX_BODY_BYTES).await?;
        let soul = seller::caller(&market.app, &headers).await?;
        let body = parse_body(&headers, &body)?;
        let mut reader = Reader::new(&body);
        reader.only(&["soul_md", "change_note"], &[]);
        let text = reader.required("soul_md", form::soul_md);
        let note = reader.optional("change_note", form::text(0, MAX_NOTE_CHARS)).filter(|note| !note.is_empty());
        let text = text.filter(|_| reader.errors.is_empty()).ok_or(ApiError::InvalidRequest(reader.errors))?;
        let (version, hash) = registry::change_text(&market, &soul.slug, text, note).await?;
        Ok(private_json(StatusCode::OK, &json!({"success": true, "version": version, "soul_hash": hash})))
    };
    respond(answer.await)
}

/// `GET /v1/soul/me/soul/versions`.
pub async fn versions(State(market): State<Arc<Market>>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    let answer = async {
        let soul = seller::caller(&market.app, &headers).await?;
        Ok(private_json(StatusCode::OK, &history::page(&market.app, &soul, query.as_deref()).await?))
    };
    respond(answer.await)
}

/// `PUT /v1/soul/me/soul-price`: `null` takes the text off the market, 0 gives it away. The member is required.
pub async fn change_price(State(market): State<Arc<Market>>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = read_body(body, MAX_BODY_BYTES).await?;
        let soul = seller::caller(&market.app, &headers).await?;
        let body = parse_body(&headers, &body)?;
        let mut reader = Reader::new(&body);
        reader.only(&["soul_price"], &[]);
        let price = reader.required("soul_price", |value| match value {
            Value::Null => Ok(None),
            value => form::text_price(value).map(Some),
        });
        let price = price.filter(|_| reader.errors.is_empty()).ok_or(ApiError::InvalidRequest(reader.errors))?;
        registry::change_price(&market.app, &soul.slug, price).await?;
        let body = json!({
            "success": true,
            "soul_price": price.map(Usdc::to_number),
            "soul_for_sale": price.is_some() && soul.is_active(),
        });
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}

/// `POST /v1/soul/me/rotate-key`: only this answer contains the new key; the old one stops working. A body has no members.
pub async fn rotate_key(State(market): State<Arc<Market>>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let soul = seller::caller(&market.app, &headers).await?;
        empty_body(&headers, body).await?;
        let key = registry::rotate_key(&market.app, &soul).await?;
        Ok(private_json(StatusCode::OK, &json!({"success": true, "soul_key": key})))
    };
    respond(answer.await)
}
