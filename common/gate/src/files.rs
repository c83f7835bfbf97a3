//! The files of a job as answers: their list, and their contents, counted for the reader ([`tools::files`]).

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use platform::http::{ApiError, MarketError, private_json};
use platform::store::StoreError;
use platform::store::blob::{Access, attachment};
use serde_json::{Value, json};
use tools::files::{self, FETCH_VALID, FileRow, MAX_SERVED_BYTES, Part, Reader};

use crate::app::App;
use crate::jobs::job::{Job, Outcome};
use crate::limits::{self, Class, Subject};

/// The list of a job's files, counted. `name` and `id`: the member that names the job; `folder`: the path of its files.
///
/// # Errors
/// 429 if the reader has read too much of the job.
pub async fn list(
    app: &App,
    job: &Job,
    reader: Reader,
    (name, id): (&str, &str),
    folder: &str,
    files: &[FileRow],
) -> Result<Response, ApiError> {
    let listed: Vec<Value> = files.iter().map(|file| file.to_json(folder)).collect();
    let body = json!({name: id, "file_count": listed.len(), "files": listed});
    limits::take_list(app, Subject::Job(job.request_id, reader), Class::Result, body.to_string().len()).await?;
    Ok(private_json(StatusCode::OK, &body))
}

/// The content of a job's file, or a redirect to a large one. Its bytes are counted.
///
/// # Errors
/// 404 `not_found`; 403 if the reader's downloads of this job are used up; 410 `result_expired`.
pub async fn serve(
    app: &App,
    job: &Job,
    reader: Reader,
    path: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let file = files::load(&app.db, job.request_id, path).await?.ok_or(ApiError::NotFound)?;
    // A completed job has all its files: a missing one has been deleted since.
    if job.outcome != Some(Outcome::Completed) && files::is_outstanding(&*app.blobs, &file, job.request_id).await? {
        return Err(ApiError::NotFound);
    }
    let key = file.blob(job.request_id);
    let is_large = file.size > MAX_SERVED_BYTES;
    let part = match is_large {
        true => Part::Whole,
        false => files::range(headers.get(header::RANGE).and_then(|range| range.to_str().ok()), file.size as usize),
    };
    let bytes = match part {
        // A redirect's URL fetches the whole file, whichever method asked for it.
        _ if *method == Method::HEAD && !is_large => 0,
        Part::Whole => file.size,
        Part::Bytes(first, last) => (last - first + 1) as u64,
        Part::None => 0,
    };
    if !files::count_fetch(&app.db, job.files(), reader, bytes, app.clock.now()).await? {
        let why = "the download limit of this job is used up: it depends on the price of the job";
        return Err(MarketError::Forbidden(why).into());
    }
    if is_large {
        let access = Access::Get { content_type: &file.content_type, file_name: file.name() };
        let url = app.blobs.url(&key, access, FETCH_VALID)?;
        let mut response = private_json(StatusCode::TEMPORARY_REDIRECT, &json!({"download_url": url}));
        let location = HeaderValue::from_str(&url).map_err(StoreError::new)?;
        response.headers_mut().insert(header::LOCATION, location);
        return Ok(response);
    }
    let bytes = app.blobs.get(&key).await?.ok_or(ApiError::ResultExpired)?;
    Ok(download(&file, bytes, part))
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
    // Others' content must not run in this service's origin.
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox");
    set(header::CACHE_CONTROL, "no-store");
    set(header::ACCEPT_RANGES, "bytes");
    if let Some(content_range) = content_range {
        set(header::CONTENT_RANGE, &content_range);
    }
    response
}
