//! A soul's text, its price and its key.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use base::money::Usdc;
use gate::{MAX_BODY_BYTES, parse_body, respond};
use http::{HeaderMap, StatusCode};
use market::form::{self, MOST_FOR_TEXT, Reader};
use market::{Market, history, registry, seller};
use platform::http::{ApiError, private_json, read_body};
use serde_json::{Value, json};

const MAX_NOTE_CHARS: usize = 500;

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
            value => form::dollars(Usdc::ZERO, MOST_FOR_TEXT)(value).map(Some),
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

/// `POST /v1/soul/me/rotate-key`: only this answer contains the new key; the old one stops working.
pub async fn rotate_key(State(market): State<Arc<Market>>, headers: HeaderMap) -> Response {
    let answer = async {
        let soul = seller::caller(&market.app, &headers).await?;
        let key = registry::rotate_key(&market.app, &soul).await?;
        Ok(private_json(StatusCode::OK, &json!({"success": true, "soul_key": key})))
    };
    respond(answer.await)
}
