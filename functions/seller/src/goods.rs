//! Goods that a soul sells, and their orders.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::{get, post};
use base::ids::RequestId;
use base::input;
use gate::limits::{self, Class, Subject};
use gate::{MAX_BODY_BYTES, empty_body, parse_body, respond};
use http::{HeaderMap, StatusCode};
use market::soul::Soul;
use market::{Market, safety, seller};
use platform::http::{ApiError, Params, Segment, private_json, read_body};
use serde_json::{Map, Value, json};
use tools_commerce::goods::form::{self, GOOD};
use tools_commerce::goods::good::{self, Good, Seller};
use tools_commerce::goods::moving::{self, Change, Refused};
use tools_commerce::goods::sale::{self, Sale};
use tools_commerce::goods::{listing, view};

/// How often a change is made anew after a lost race.
const TRIES: u32 = 4;
/// Most goods of a page. A good with all its variants may have 100 KB.
const MOST_LISTED: usize = 25;

pub fn routes() -> Router<Arc<Market>> {
    Router::new()
        .route("/v1/soul/me/goods", get(list).post(create))
        .route("/v1/soul/me/goods/{id}", get(show).patch(change).delete(remove))
        .route("/v1/soul/me/orders", get(orders))
        .route("/v1/soul/me/orders/{id}", get(order))
        .route("/v1/soul/me/orders/{id}/ship", post(ship))
        .route("/v1/soul/me/orders/{id}/delivered", post(delivered))
        .route("/v1/soul/me/orders/{id}/cancel", post(cancel))
}

fn named(soul: &Soul) -> Seller {
    Seller { slug: soul.slug.as_str().to_owned(), id: soul.id().to_string() }
}

/// The seller, if the operator lets it sell goods.
fn allowed(market: &Market, soul: &Soul) -> Result<Seller, ApiError> {
    let seller = named(soul);
    match soul.is_active() && market.app.config.goods_sellers.allow(&seller.slug, &seller.id) {
        true => Ok(seller),
        false => Err(ApiError::Tool {
            status: StatusCode::FORBIDDEN,
            code: "goods_not_allowed",
            message: "this soul may not sell goods here: ask the operator, who names sellers in GOODS_SELLERS"
                .to_owned(),
        }),
    }
}

/// The soul's good.
async fn own(market: &Market, soul: &Soul, id: &str) -> Result<Good, ApiError> {
    let good = good::load(&market.app.db, id).await?;
    good.filter(|good| good.seller.slug == soul.slug.as_str()).ok_or(ApiError::NotFound)
}

async fn shown(market: &Market, status: StatusCode, good: &Good) -> Result<Response, ApiError> {
    let left = good::stock(&market.app.db, good).await?;
    let good = view::own(good, &left, market.app.config.base_url.as_deref());
    Ok(private_json(status, &json!({"success": true, "good": good})))
}

/// `GET /v1/soul/me/goods?limit&cursor`
async fn list(State(market): State<Arc<Market>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let soul = seller::caller(&market.app, &headers).await?;
        let (limit, cursor) = page(query.as_deref(), MOST_LISTED, good::is_id)?;
        let (goods, next) = good::of(&market.app.db, &named(&soul), cursor.as_deref(), limit).await?;
        let left = good::stocks(&market.app.db, &goods).await?;
        let base = market.app.config.base_url.as_deref();
        let shown: Vec<Value> = goods.iter().zip(&left).map(|(good, left)| view::own(good, left, base)).collect();
        let body = json!({"goods": shown, "has_more": next.is_some(), "next_cursor": next});
        limits::take_list(&market.app, Subject::Soul(soul.id()), Class::Export, body.to_string().len()).await?;
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}

/// The limit and the cursor of a page.
fn page(query: Option<&str>, most: usize, is_cursor: fn(&str) -> bool) -> Result<(usize, Option<String>), ApiError> {
    let mut params = Params::of(query);
    let limit = params.integer("limit", 1, most).unwrap_or(20);
    let cursor = params.text("cursor").map(str::to_owned);
    params.check()?;
    match cursor {
        Some(cursor) if !is_cursor(&cursor) => Err(ApiError::InvalidCursor),
        cursor => Ok((limit, cursor)),
    }
}

async fn body_of(headers: &HeaderMap, body: Body) -> Result<Map<String, Value>, ApiError> {
    parse_body(headers, &read_body(body, MAX_BODY_BYTES).await?)
}

/// What strangers will read.
async fn publishable(market: &Market, good: &Good) -> Result<(), ApiError> {
    let most = market.app.config.largest_purchase;
    if good.variants.iter().any(|variant| variant.price > most) {
        let message = format!("must be at most {most}: nothing dearer is bought here");
        return Err(ApiError::field("price", message));
    }
    safety::publishable(market, &[("title", &good.title), ("description", &good.words())]).await
}

/// `POST /v1/soul/me/goods`
async fn create(State(market): State<Arc<Market>>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = body_of(&headers, body).await?;
        let soul = seller::caller(&market.app, &headers).await?;
        let asked = listing::asked(named(&soul), None, &body, market.app.clock.now())?;
        allowed(&market, &soul)?;
        publishable(&market, &asked.good).await?;
        listing::create(&market.app.db, &asked).await?;
        shown(&market, StatusCode::CREATED, &asked.good).await
    };
    respond(answer.await)
}

/// `GET /v1/soul/me/goods/{id}`
async fn show(State(market): State<Arc<Market>>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let soul = seller::caller(&market.app, &headers).await?;
        shown(&market, StatusCode::OK, &own(&market, &soul, &id).await?).await
    };
    respond(answer.await)
}

/// `PATCH /v1/soul/me/goods/{id}`: absent members stay as they are.
async fn change(State(market): State<Arc<Market>>, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = body_of(&headers, body).await?;
        let soul = seller::caller(&market.app, &headers).await?;
        input::validate_all(GOOD, &[], &body).map_err(ApiError::InvalidRequest)?;
        let seller = allowed(&market, &soul)?;
        for _ in 0..TRIES {
            let before = own(&market, &soul, &id).await?;
            let asked = listing::asked(seller.clone(), Some(&before), &body, market.app.clock.now())?;
            publishable(&market, &asked.good).await?;
            if listing::change(&market.app.db, &before, &asked).await? {
                return shown(&market, StatusCode::OK, &asked.good).await;
            }
        }
        Err(ApiError::RequestInProgress)
    };
    respond(answer.await)
}

/// `DELETE /v1/soul/me/goods/{id}`: its orders go on.
async fn remove(State(market): State<Arc<Market>>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let soul = seller::caller(&market.app, &headers).await?;
        for _ in 0..TRIES {
            let good = own(&market, &soul, &id).await?;
            if listing::delete(&market.app.db, &good).await? {
                return Ok(private_json(StatusCode::OK, &json!({"success": true, "good_id": id})));
            }
        }
        Err(ApiError::RequestInProgress)
    };
    respond(answer.await)
}

/// `GET /v1/soul/me/orders?limit&cursor`: newest first.
async fn orders(State(market): State<Arc<Market>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let soul = seller::caller(&market.app, &headers).await?;
        let (limit, cursor) = page(query.as_deref(), 100, sale::is_cursor)?;
        let (sales, next) = sale::of(&market.app.db, &named(&soul), cursor.as_deref(), limit).await?;
        let shown: Vec<Value> = sales.iter().map(view::order).collect();
        let body = json!({"orders": shown, "has_more": next.is_some(), "next_cursor": next});
        limits::take_list(&market.app, Subject::Soul(soul.id()), Class::Export, body.to_string().len()).await?;
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}

/// The soul's order, once it was placed.
async fn own_order(market: &Market, soul: &Soul, id: &str) -> Result<Sale, ApiError> {
    let request: RequestId = id.parse().map_err(|_| ApiError::NotFound)?;
    let sale = sale::load(&market.app.db, request).await?;
    let is_own = |sale: &Sale| sale.seller.slug == soul.slug.as_str() && sale.placed.is_some();
    sale.filter(is_own).ok_or(ApiError::NotFound)
}

/// `GET /v1/soul/me/orders/{id}`
async fn order(State(market): State<Arc<Market>>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let soul = seller::caller(&market.app, &headers).await?;
        let sale = own_order(&market, &soul, &id).await?;
        Ok(private_json(StatusCode::OK, &json!({"order": view::order(&sale)})))
    };
    respond(answer.await)
}

/// Moves an order of this soul.
async fn moved(market: &Market, soul: &Soul, id: &str, change: Change) -> Result<Response, ApiError> {
    let sale = own_order(market, soul, id).await?;
    match moving::apply(&market.gate.engine.toolbox, sale.request, change).await? {
        Ok(sale) => Ok(private_json(StatusCode::OK, &json!({"success": true, "order": view::order(&sale)}))),
        Err(Refused::Unknown) => Err(ApiError::NotFound),
        Err(Refused::In(state)) => Err(ApiError::Tool {
            status: StatusCode::CONFLICT,
            code: "invalid_state",
            message: format!("the order is {}: it cannot take this step", state.as_str()),
        }),
    }
}

/// `POST /v1/soul/me/orders/{id}/ship`
async fn ship(State(market): State<Arc<Market>>, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = body_of(&headers, body).await?;
        let soul = seller::caller(&market.app, &headers).await?;
        let parcel = form::parcel(&body).map_err(ApiError::InvalidRequest)?;
        moved(&market, &soul, &id, Change::Ship(parcel)).await
    };
    respond(answer.await)
}

/// `POST /v1/soul/me/orders/{id}/delivered`. A body has no members.
async fn delivered(
    State(market): State<Arc<Market>>,
    Segment(id): Segment,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let answer = async {
        let soul = seller::caller(&market.app, &headers).await?;
        empty_body(&headers, body).await?;
        moved(&market, &soul, &id, Change::Deliver).await
    };
    respond(answer.await)
}

/// `POST /v1/soul/me/orders/{id}/cancel`: the buyer is paid back.
async fn cancel(State(market): State<Arc<Market>>, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = body_of(&headers, body).await?;
        let soul = seller::caller(&market.app, &headers).await?;
        let reason = form::reason(&body).map_err(ApiError::InvalidRequest)?;
        moved(&market, &soul, &id, Change::Cancel { reason }).await
    };
    respond(answer.await)
}
