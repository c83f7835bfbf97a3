//! A soul's jobs: the list, and what the seller's worker does with them.

use std::sync::Arc;

use api::operations::seller::{FILE, PROGRESS, REASON, RESULT};
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use base::input::{self, Field};
use base::untrusted_text::visible;
use gate::jobs::input::{StoredInput, Unread};
use gate::jobs::job::{Job, Progress};
use gate::limits::{self, Class, Subject};
use gate::parse_body;
use gate::work::{MAX_RESULT_BYTES, check_content_type, check_file_path};
use http::{HeaderMap, StatusCode, header};
use market::jobs::Shown;
use market::party::Party;
use market::sold::{self, Page};
use market::{Market, jobs, respond, seller, worker};
use platform::http::{ApiError, Params, Segment, private_json, read_body};
use platform::store::blob::Access;
use serde_json::{Map, Value, json};
use tools::files::{self, FileRow, Reader};

const MAX_BODY_BYTES: usize = 64 * 1024;
/// The result is a JSON string, in which two bytes of UTF-8 may become six. This also limits its size where it is stored
/// and answered. A higher limit would not help: Lambda's event escapes the body again, and would be too large.
const MAX_COMPLETE_BYTES: usize = 3 * MAX_RESULT_BYTES + 64 * 1024;

/// `GET /v1/soul/me/jobs?limit&offset&status`
pub async fn list(State(market): State<Arc<Market>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let page = page(query.as_deref())?;
        let soul = seller::caller(&market.app, &headers).await?;
        let (app, now) = (&market.app, market.app.clock.now());
        let found = sold::of_soul(&app.db, soul.slug.as_str(), &page, now).await?;
        let mut rows = Vec::new();
        for job in &found.jobs {
            rows.push(jobs::row(&*app.blobs, job, now).await?);
        }
        let pagination = json!({"limit": page.limit, "offset": page.offset, "has_more": found.has_more});
        let body = json!({"jobs": rows, "pagination": pagination});
        limits::take_list(app, Subject::Soul(soul.id()), Class::Export, body.to_string().len()).await?;
        Ok(private_json(StatusCode::OK, &body))
    };
    respond(answer.await)
}

fn page(query: Option<&str>) -> Result<Page, ApiError> {
    let mut params = Params::of(query);
    let limit = params.integer("limit", 1, 100).unwrap_or(20);
    let offset = params.integer("offset", 0, sold::MAX_OFFSET).unwrap_or(0);
    let status = params.parsed("status");
    params.check().map(|()| Page { limit, offset, status })
}

/// `GET /v1/soul/me/jobs/{id}?full`
pub async fn show(
    State(market): State<Arc<Market>>,
    Segment(id): Segment,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let answer = async {
        let full = jobs::asks_for_all(query.as_deref())?;
        let soul = seller::caller(&market.app, &headers).await?;
        let job = worker::job_of(&market, &soul, &id).await?;
        let mut view = jobs::told(&market.app, &job, Party::Seller, Reader::Seller, full).await?;
        if StoredInput::is_large(job.input.bytes()) {
            let reader = Subject::Job(job.request_id, Reader::Seller);
            limits::take_bytes(&market.app, reader, Class::Result, job.input.bytes()).await?;
        }
        view["input"] = match job.input.read(&*market.app.blobs).await {
            Ok(mut input) => input.remove("input").unwrap_or_default(),
            Err(Unread::Lost) => Value::Null,
            Err(Unread::Failed(error)) => return Err(ApiError::Unavailable(error)),
        };
        Ok(private_json(StatusCode::OK, &json!({"job": view})))
    };
    respond(answer.await)
}

/// Whether the body arrived unchanged. API Gateway decodes bodies with a text content type as UTF-8 and replaces invalid
/// bytes.
fn is_whole(headers: &HeaderMap, body: &[u8]) -> bool {
    let sent = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    sent.is_none_or(|sent: usize| sent == body.len())
}

/// The job of a seller's request, and the validated body.
async fn asked(
    market: &Market,
    id: &str,
    headers: &HeaderMap,
    body: Body,
    fields: &[Field],
    limit: usize,
) -> Result<(Job, Map<String, Value>), ApiError> {
    let body = read_body(body, limit).await?;
    if !is_whole(headers, &body) {
        return Err(ApiError::field("", "the body is not UTF-8"));
    }
    let body = parse_body(headers, &body)?;
    let soul = seller::by_key(&market.app, headers).await?;
    let fields = input::validate_all(fields, &[], &body).map_err(ApiError::InvalidRequest)?;
    let job = worker::job_of(market, &soul, id).await?;
    Ok((job, fields))
}

/// `POST /v1/soul/me/jobs/{id}/claim`
pub async fn claim(
    State(market): State<Arc<Market>>,
    Segment(id): Segment,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let answer = async {
        let (job, _) = asked(&market, &id, &headers, body, &[], MAX_BODY_BYTES).await?;
        let job = worker::claim(&market, &job).await?;
        let input = worker::input_of(&market, &job).await?;
        let view = worker::for_worker(&job, input, market.app.clock.now());
        Ok(private_json(StatusCode::OK, &json!({"job": view})))
    };
    respond(answer.await)
}

/// `POST /v1/soul/me/jobs/{id}/progress`: also extends the lease.
pub async fn progress(
    State(market): State<Arc<Market>>,
    Segment(id): Segment,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let answer = async {
        let (job, fields) = asked(&market, &id, &headers, body, PROGRESS, MAX_BODY_BYTES).await?;
        let percent = fields.get("percent").and_then(Value::as_f64);
        let progress = Progress {
            message: fields.get("message").and_then(Value::as_str).map(visible),
            // Whole per cent; the number was checked to be from 0 to 100.
            percent: percent.map(|percent| percent as u8),
        };
        let job = worker::progress(&market, &job, &progress).await?;
        let expires = job.claimed_until.map(|until| until.to_string());
        Ok(private_json(StatusCode::OK, &json!({"success": true, "lease_expires_at": expires})))
    };
    respond(answer.await)
}

/// `PUT /v1/soul/me/jobs/{id}/files/{path}`: the body is the file.
pub async fn put_file(
    State(market): State<Arc<Market>>,
    path: Result<Path<(String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let answer = async {
        let Path((id, path)) = path.map_err(|_| ApiError::NotFound)?;
        let body = read_body(body, files::MAX_BODY_BYTES).await?;
        if !is_whole(&headers, &body) {
            return Err(ApiError::field(
                "Content-Type",
                "is a text type, but the body is not UTF-8: use application/octet-stream",
            ));
        }
        // A `?` in a file name: the part before it would be stored under another name.
        if query.is_some_and(|query| !query.is_empty()) {
            return Err(ApiError::field("path", "must not contain ? or %25"));
        }
        let soul = seller::by_key(&market.app, &headers).await?;
        let job = worker::job_of(&market, &soul, &id).await?;
        let content_type = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
        let content_type = content_type.unwrap_or("application/octet-stream");
        check_file_path(&path).map_err(|wrong| ApiError::field("path", wrong))?;
        check_content_type(content_type).map_err(|wrong| ApiError::field("Content-Type", wrong))?;
        let row = FileRow::of(&path, content_type, body.len() as u64, market.app.clock.now());
        let answer = json!({"path": row.path, "size": row.size, "content_type": row.content_type});
        worker::add_file(&market, &job, row, Some(body.to_vec())).await?;
        Ok(private_json(StatusCode::OK, &answer))
    };
    respond(answer.await)
}

/// `POST /v1/soul/me/jobs/{id}/files`: returns where to upload a file that is too large for a body.
pub async fn announce_file(
    State(market): State<Arc<Market>>,
    Segment(id): Segment,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let answer = async {
        let (job, fields) = asked(&market, &id, &headers, body, FILE, MAX_BODY_BYTES).await?;
        let text = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
        let (path, content_type) = (text("path"), text("content_type"));
        check_file_path(path).map_err(|wrong| ApiError::field("path", wrong))?;
        check_content_type(content_type).map_err(|wrong| ApiError::field("content_type", wrong))?;
        let size = fields.get("size").and_then(Value::as_u64).unwrap_or_default();
        let now = market.app.clock.now();
        let row = FileRow::of(path, content_type, size, now).announced(job.request_id);
        let key = row.blob(job.request_id);
        let url = market.app.blobs.url(&key, Access::Put { content_type, size }, files::SEND_VALID)?;
        worker::add_file(&market, &job, row, None).await?;
        let expires_at = now.plus(files::SEND_VALID).to_string();
        let send = json!({"method": "PUT", "headers": {"content-type": content_type, "content-length": size.to_string(), "if-none-match": "*"}});
        Ok(private_json(StatusCode::OK, &json!({"upload_url": url, "expires_at": expires_at, "upload": send})))
    };
    respond(answer.await)
}

/// `POST /v1/soul/me/jobs/{id}/complete`
pub async fn complete(
    State(market): State<Arc<Market>>,
    Segment(id): Segment,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let answer = async {
        let (job, fields) = asked(&market, &id, &headers, body, RESULT, MAX_COMPLETE_BYTES).await?;
        let result = fields.get("result").and_then(Value::as_str).unwrap_or_default();
        if result.len() > MAX_RESULT_BYTES {
            return Err(ApiError::field("result", format!("may have at most {MAX_RESULT_BYTES} bytes")));
        }
        let job = worker::complete(&market, &job, result).await?;
        ended(&market, &job).await
    };
    respond(answer.await)
}

/// `POST /v1/soul/me/jobs/{id}/fail`
pub async fn fail(State(market): State<Arc<Market>>, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let (job, fields) = asked(&market, &id, &headers, body, REASON, MAX_BODY_BYTES).await?;
        let reason = visible(fields.get("reason").and_then(Value::as_str).unwrap_or_default());
        let job = worker::give_up(&market, &job, &reason).await?;
        ended(&market, &job).await
    };
    respond(answer.await)
}

async fn ended(market: &Market, job: &Job) -> Result<Response, ApiError> {
    let (app, now) = (&market.app, market.app.clock.now());
    let view = jobs::view(&app.db, &*app.blobs, job, Party::Seller, Shown::Beginning, now).await?;
    Ok(private_json(StatusCode::OK, &json!({"success": true, "job": view})))
}
