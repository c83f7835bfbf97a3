//! Public views of the marketplace: the list, browsing, search and totals.

use std::sync::Arc;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::get;
use gate::limits::{self, Class, Subject};
use gate::respond;
use market::category::Category;
use market::listing::{self, Cursor, MAX_OFFSET, Page};
use market::search::{self, MAX_QUERY, MAX_RESULTS};
use market::{Market, ranking, totals};
use platform::http::{ApiError, Params, public_json};
use serde_json::{Value, json};

/// Cache lifetimes in seconds: changes are visible to callers that much later.
const LIST_KEPT: u32 = 10;
const STATS_KEPT: u32 = 60;
const RANKING_KEPT: u32 = 3600;

pub fn routes() -> Router<Arc<Market>> {
    Router::new()
        .route("/v1/soul", get(list))
        .route("/v1/soul/", get(list))
        .route("/v1/soul/browse", get(browse))
        .route("/v1/soul/search", get(search))
        .route("/v1/soul/stats", get(stats))
        .route("/v1/soul/ranking", get(ranking))
}

/// `GET /v1/soul`: active souls, by number of completed jobs.
async fn list(State(market): State<Arc<Market>>, RawQuery(query): RawQuery) -> Response {
    let answer = async {
        let (limit, offset, page) = page(&market, Params::of(query.as_deref()), None).await?;
        Ok(public_json(&body(limit, offset, &page), LIST_KEPT))
    };
    respond(answer.await)
}

/// `GET /v1/soul/browse`: the same for one category, with the total number.
async fn browse(State(market): State<Arc<Market>>, RawQuery(query): RawQuery) -> Response {
    let answer = async {
        let mut params = Params::of(query.as_deref());
        let category: Option<Category> = params.parsed("category");
        let (limit, offset, page) = page(&market, params, category).await?;
        let mut body = body(limit, offset, &page);
        body["total"] = json!(totals::load(&market.app.db).await?.souls(category));
        Ok(public_json(&body, LIST_KEPT))
    };
    respond(answer.await)
}

/// `GET /v1/soul/search`
async fn search(State(market): State<Arc<Market>>, RawQuery(query): RawQuery) -> Response {
    let answer = async {
        let mut params = Params::of(query.as_deref());
        let limit = params.integer("limit", 1, MAX_RESULTS).unwrap_or(20);
        let category = params.parsed("category");
        let name = if params.text("q").is_none() && params.text("query").is_some() { "query" } else { "q" };
        let words = params.text(name).map(str::trim).unwrap_or_default().to_owned();
        if !(2..=MAX_QUERY).contains(&words.chars().count()) {
            params.refuse(name, format!("is required, and must have 2 to {MAX_QUERY} characters"));
        }
        params.check()?;
        limits::take(&market.app, Subject::source(), Class::Search).await?;
        let results = search::search(&market.app.db, &words, category, limit).await?;
        Ok(public_json(&results.to_json(&words), LIST_KEPT))
    };
    respond(answer.await)
}

/// `GET /v1/soul/stats`
async fn stats(State(market): State<Arc<Market>>) -> Response {
    let answer = async { Ok(public_json(&totals::load(&market.app.db).await?.to_json(), STATS_KEPT)) };
    respond(answer.await)
}

/// `GET /v1/soul/ranking`: how results are ordered, with the constants.
async fn ranking() -> Response {
    public_json(&ranking::document(), RANKING_KEPT)
}

async fn page(
    market: &Market,
    mut params: Params,
    category: Option<Category>,
) -> Result<(usize, usize, Page), ApiError> {
    let limit = params.integer("limit", 1, 100).unwrap_or(50);
    let offset = params.integer("offset", 0, usize::MAX).unwrap_or(0);
    if offset > MAX_OFFSET {
        let message =
            format!("must be at most {MAX_OFFSET}; to go further, use cursor with a page's pagination.next_cursor");
        params.refuse("offset", message);
    }
    let cursor = params.text("cursor").map(Cursor::parse);
    params.check()?;
    let cursor = match cursor {
        None => Cursor::start(category),
        Some(cursor) => cursor.filter(|cursor| cursor.category == category).ok_or(ApiError::InvalidCursor)?,
    };
    Ok((limit, offset, listing::page(&market.app.db, &cursor, offset, limit).await?))
}

fn body(limit: usize, offset: usize, page: &Page) -> Value {
    json!({
        "souls": page.souls.iter().map(listing::item).collect::<Vec<_>>(),
        "pagination": {
            "limit": limit,
            "offset": offset,
            "next_cursor": page.next.as_ref().map(Cursor::to_text),
        },
    })
}
