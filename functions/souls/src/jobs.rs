//! A soul's job, for its buyer and its seller: its state, files and rating.

use std::sync::Arc;

use api::operations::souls::RATING;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::{IntoResponse, Response};
use base::input;
use base::untrusted_text::visible;
use gate::jobs::job::Outcome;
use gate::limits::{self, Class, Reader, Subject};
use gate::parse_body;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use market::files::{self, FileRow, Part};
use market::party::{self, Party};
use market::{Market, jobs, rating, respond};
use platform::auth::Scope;
use platform::http::{ApiError, MarketError, Segment, private_json, read_body};
use platform::store::StoreError;
use platform::store::blob::{Access, attachment};
use serde_json::json;

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
        let listed: Vec<_> = files.iter().map(|file| file.to_json(job.request_id)).collect();
        let body = json!({"job_id": job.request_id.soul_job(), "file_count": listed.len(), "files": listed});
        let (subject, bytes) = (Subject::Job(job.request_id, reader), body.to_string().len());
        limits::take_list(&market.app, subject, Class::Result, bytes).await?;
        Ok(private_json(StatusCode::OK, &body))
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
        let file = files::load(&market.app.db, job.request_id, &path).await?.ok_or(ApiError::NotFound)?;
        // A completed job has all its files: a missing one has been deleted since.
        if job.outcome != Some(Outcome::Completed)
            && files::is_outstanding(&*market.app.blobs, &file, job.request_id).await?
        {
            return Err(ApiError::NotFound);
        }
        let key = file.blob(job.request_id);
        let is_large = file.size > files::MAX_SERVED_BYTES;
        let part = match is_large {
            true => Part::Whole,
            false => files::range(headers.get(header::RANGE).and_then(|range| range.to_str().ok()), file.size as usize),
        };
        let bytes = match part {
            // A redirect's URL fetches the whole file, whichever method asked for it.
            _ if method == Method::HEAD && !is_large => 0,
            Part::Whole => file.size,
            Part::Bytes(first, last) => (last - first + 1) as u64,
            Part::None => 0,
        };
        if !files::count_fetch(&market.app.db, &job, reader, bytes, market.app.clock.now()).await? {
            let why = "the download limit of this job is used up: it depends on the price of the job";
            return Err(MarketError::Forbidden(why).into());
        }
        if is_large {
            let access = Access::Get { content_type: &file.content_type, file_name: file.name() };
            let url = market.app.blobs.url(&key, access, files::FETCH_VALID)?;
            let mut response = private_json(StatusCode::TEMPORARY_REDIRECT, &json!({"download_url": url}));
            let location = HeaderValue::from_str(&url).map_err(StoreError::new)?;
            response.headers_mut().insert(header::LOCATION, location);
            return Ok(response);
        }
        let bytes = market.app.blobs.get(&key).await?.ok_or(ApiError::ResultExpired)?;
        Ok(download(&file, bytes, part))
    };
    respond(answer.await)
}

fn download(file: &FileRow, bytes: Vec<u8>, part: Part) -> Response {
    let size = bytes.len();
    let (status, content_range, body) = match part {
        Part::Whole => (StatusCode::OK, None, bytes),
        Part::Bytes(first, last) => {
            let part = bytes.get(first..=last).unwrap_or_default().to_vec();
            (StatusCode::PARTIAL_CONTENT, Some(format!("bytes {first}-{last}/{size}")), part)
        }
        Part::None => {
            let mut response = MarketError::NoSuchRange.into_response();
            if let Ok(value) = HeaderValue::from_str(&format!("bytes */{size}")) {
                response.headers_mut().insert(header::CONTENT_RANGE, value);
            }
            return response;
        }
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let mut set = |name, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(header::CONTENT_TYPE, &file.content_type);
    set(header::CONTENT_DISPOSITION, &attachment(file.name()));
    // Sellers' content must not run in this service's origin.
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox");
    set(header::CACHE_CONTROL, "no-store");
    set(header::ACCEPT_RANGES, "bytes");
    if let Some(content_range) = content_range {
        set(header::CONTENT_RANGE, &content_range);
    }
    response
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
