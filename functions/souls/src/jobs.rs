//! A soul's job, for its buyer and its seller: its state, files and rating.

use std::sync::Arc;

use api::operations::souls::RATING;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use base::input;
use base::untrusted_text::visible;
use gate::parse_body;
use http::{HeaderMap, Method, StatusCode};
use market::party::{self, Party};
use market::{Market, jobs, rating, respond};
use platform::auth::Scope;
use platform::http::{ApiError, MarketError, Segment, private_json, read_body};
use serde_json::json;
use tools::files::{self, Reader};

const MAX_BODY_BYTES: usize = 64 * 1024;

/// `GET /v1/soul/jobs/{id}?full=true`
pub async fn show(
    State(market): State<Arc<Market>>,
    Segment(id): Segment,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let answer = async {
        let full = jobs::asks_for_all(query.as_deref())?;
        let (job, party, reader) = party::job_for(&market, &headers, &id, Scope::Read).await?;
        let view = jobs::told(&market.app, &job, party, reader, full).await?;
        Ok(private_json(StatusCode::OK, &json!({"job": view})))
    };
    respond(answer.await)
}

/// `GET /v1/soul/jobs/{id}/files`
pub async fn list_files(State(market): State<Arc<Market>>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let (job, party, reader) = party::job_for(&market, &headers, &id, Scope::Read).await?;
        let files = match jobs::may_see_files(&job, party) {
            true => files::of_job(&market.app.db, job.request_id).await?,
            false => Vec::new(),
        };
        let (app, id) = (&market.app, job.request_id.soul_job());
        gate::files::list(app, &job, reader, ("job_id", &id.to_string()), &format!("/v1/soul/jobs/{id}/files"), &files)
            .await
    };
    respond(answer.await)
}

/// `GET /v1/soul/jobs/{id}/files/{path}`: the content, or a redirect to a large file.
pub async fn file(
    State(market): State<Arc<Market>>,
    path: Result<Path<(String, String)>, axum::extract::rejection::PathRejection>,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let answer = async {
        let Path((id, path)) = path.map_err(|_| ApiError::NotFound)?;
        let (job, party, reader) = party::job_for(&market, &headers, &id, Scope::Read).await?;
        if !jobs::may_see_files(&job, party) {
            return Err(ApiError::NotFound);
        }
        gate::files::serve(&market.app, &job, reader, &path, &method, &headers).await
    };
    respond(answer.await)
}

/// `POST /v1/soul/jobs/{id}/rate`: once, by the buyer, for a completed job.
pub async fn rate(State(market): State<Arc<Market>>, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = parse_body(&headers, &read_body(body, MAX_BODY_BYTES).await?)?;
        let fields = input::validate_all(RATING, &[], &body).map_err(ApiError::InvalidRequest)?;
        let (job, party, reader) = party::job_for(&market, &headers, &id, Scope::Write).await?;
        if party != Party::Buyer {
            return Err(MarketError::Forbidden("only the job's buyer may rate it").into());
        }
        let stars = fields.get("rating").and_then(serde_json::Value::as_u64).unwrap_or_default();
        let stars = u8::try_from(stars).unwrap_or_default();
        let review = fields.get("review").and_then(serde_json::Value::as_str).map(visible);
        let review = review.as_deref().filter(|review| !review.is_empty());
        let proven = reader == Reader::Buyer;
        rating::rate(&market.app.db, &job, stars, review, proven, market.app.clock.now()).await?;
        let message = match proven {
            true => "the rating counts",
            false => "the rating is stored; it counts once you send it with a proof or an access token",
        };
        let body = json!({"success": true, "message": message, "rating": stars});
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}
