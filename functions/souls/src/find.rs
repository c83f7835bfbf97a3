//! Looking around: the list, browsing, search, and what the marketplace has done (contract §19). Open to everybody.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use axum::routing::get;
use common::gate::respond;
use common::http::{ApiError, public_json};
use common::limits::{self, Class, Subject};
use common::marketplace::category::Category;
use common::marketplace::listing::{self, Cursor, MAX_OFFSET, Page};
use common::marketplace::search::{self, MAX_QUERY, MAX_RESULTS};
use common::marketplace::{Market, ranking, totals};
use serde_json::{Value, json};

/// For so long anybody may keep an answer, in seconds: what has changed is seen so much later by those who do.
const LIST_KEPT: u32 = 10;
const STATS_KEPT: u32 = 60;
const RANKING_KEPT: u32 = 3600;

type Asked = Result<Query<Vec<(String, String)>>, QueryRejection>;

pub fn routes() -> Router<Arc<Market>> {
    Router::new()
        .route("/v1/soul", get(list))
        .route("/v1/soul/", get(list))
        .route("/v1/soul/browse", get(browse))
        .route("/v1/soul/search", get(search))
        .route("/v1/soul/stats", get(stats))
        .route("/v1/soul/ranking", get(ranking))
}

/// `GET /v1/soul`: active souls by completed jobs.
async fn list(State(market): State<Arc<Market>>, asked: Asked) -> Response {
    let answer = async {
        let (limit, offset, page) = page(&market, &Parameters::read(asked)?, None).await?;
        Ok(public_json(&body(limit, offset, &page), LIST_KEPT))
    };
    respond(answer.await)
}

/// `GET /v1/soul/browse`: the same of one category, with the number of all.
async fn browse(State(market): State<Arc<Market>>, asked: Asked) -> Response {
    let answer = async {
        let asked = Parameters::read(asked)?;
        let category: Option<Category> = asked.get("category")?;
        let (limit, offset, page) = page(&market, &asked, category).await?;
        let mut body = body(limit, offset, &page);
        body["total"] = json!(totals::load(&market.app.db).await?.souls(category));
        Ok(public_json(&body, LIST_KEPT))
    };
    respond(answer.await)
}

/// `GET /v1/soul/search`
async fn search(State(market): State<Arc<Market>>, asked: Asked) -> Response {
    let answer = async {
        let asked = Parameters::read(asked)?;
        let limit = asked.number("limit", 20, 1, MAX_RESULTS)?;
        let category = asked.get("category")?;
        let (name, query) = match asked.text("q") {
            None => ("query", asked.text("query")),
            found => ("q", found),
        };
        let query = query.ok_or_else(|| ApiError::field("q", "is required"))?.trim();
        if !(2..=MAX_QUERY).contains(&query.chars().count()) {
            return Err(ApiError::field(name, format!("must have 2 to {MAX_QUERY} characters")));
        }
        limits::take(&market.app, Subject::source(), Class::Search).await?;
        let results = search::search(&market.app.db, query, category, limit).await?;
        Ok(public_json(&results.to_json(query), LIST_KEPT))
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
    asked: &Parameters,
    category: Option<Category>,
) -> Result<(usize, usize, Page), ApiError> {
    let limit = asked.number("limit", 50, 1, 100)?;
    let offset = asked.number("offset", 0, 0, usize::MAX)?;
    if offset > MAX_OFFSET {
        let message = format!("must be at most {MAX_OFFSET}; go on with cursor, from a page's pagination.next_cursor");
        return Err(ApiError::field("offset", message));
    }
    let cursor = match asked.text("cursor") {
        None => Cursor::start(category),
        Some(text) => {
            let cursor = Cursor::parse(text).filter(|cursor| cursor.category == category);
            cursor.ok_or(ApiError::InvalidCursor)?
        }
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

/// A query string. Of a name given twice the last counts.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn read(asked: Asked) -> Result<Parameters, ApiError> {
        let Query(pairs) = asked.map_err(|_| ApiError::field("", "the query is not readable"))?;
        Ok(Parameters(pairs))
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    fn get<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, ApiError> {
        let value = self.text(name).map(str::parse).transpose();
        value.map_err(|error: T::Err| ApiError::field(name, error.to_string()))
    }

    fn number(&self, name: &str, default: usize, least: usize, most: usize) -> Result<usize, ApiError> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // More digits than a number can hold are a number all the same, and a large one.
        let number = digits.then(|| text.parse().unwrap_or(usize::MAX));
        number.filter(|number| (least..=most).contains(number)).ok_or_else(|| {
            let most = if most == usize::MAX { MAX_OFFSET } else { most };
            ApiError::field(name, format!("must be a whole number from {least} to {most}"))
        })
    }
}
