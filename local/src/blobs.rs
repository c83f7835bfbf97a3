//! A folder as blob store, with signed URLs that read and write blobs directly, like S3's.

use std::io::SeekFrom;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use base::clock::Clock;
use base::digest;
use http::{HeaderValue, StatusCode, header};
use platform::http::{ApiError, Params};
use platform::store::blob::{Access, attachment};
use platform::store::{Blobs, BoxFuture, StoreError};
use ring::hmac;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// Path prefix of the blobs' URLs.
pub const PATH: &str = "/local-blobs/";
/// S3 is not behind API Gateway, so the gateway's limit does not apply.
const MAX_UPLOAD_BYTES: usize = 100 * 1024 * 1024;

pub struct FolderBlobs {
    folder: PathBuf,
    /// The gateway's address.
    base_url: String,
    key: hmac::Key,
    clock: Clock,
}

impl FolderBlobs {
    /// `base_url` is the address at which [`router`] is served.
    pub fn new(folder: PathBuf, base_url: &str, clock: Clock) -> FolderBlobs {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &digest::random::<32>());
        FolderBlobs { folder, base_url: base_url.to_owned(), key, clock }
    }

    fn signature(&self, key: &str, query: &str) -> String {
        const_hex::encode(digest::hmac(&self.key, format!("{key}?{query}").as_bytes()))
    }
}

impl Blobs for FolderBlobs {
    fn put<'a>(
        &'a self,
        key: &'a str,
        _content_type: &'a str,
        bytes: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let path = self.folder.join(key);
            if let Some(folder) = path.parent() {
                tokio::fs::create_dir_all(folder).await.map_err(StoreError::new)?;
            }
            // Written under another name and renamed, so that neither a reader nor a crash sees half a blob. Each writer
            // has a draft of its own.
            let draft = path.with_extension(format!("{:016x}.draft", u64::from_be_bytes(base::digest::random())));
            tokio::fs::write(&draft, bytes).await.map_err(StoreError::new)?;
            tokio::fs::rename(&draft, &path).await.map_err(StoreError::new)
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move {
            match tokio::fs::read(self.folder.join(key)).await {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(StoreError::new(error)),
            }
        })
    }

    fn part<'a>(&'a self, key: &'a str, from: u64, most: u64) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move {
            let mut file = match tokio::fs::File::open(self.folder.join(key)).await {
                Ok(file) => file,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(StoreError::new(error)),
            };
            let mut part = Vec::new();
            file.seek(SeekFrom::Start(from)).await.map_err(StoreError::new)?;
            file.take(most).read_to_end(&mut part).await.map_err(StoreError::new)?;
            Ok(Some(part))
        })
    }

    fn size<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        Box::pin(async move {
            match tokio::fs::metadata(self.folder.join(key)).await {
                Ok(about) => Ok(Some(about.len())),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(StoreError::new(error)),
            }
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            match tokio::fs::remove_file(self.folder.join(key)).await {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StoreError::new(error)),
                _ => Ok(()),
            }
        })
    }

    fn url(&self, key: &str, access: Access<'_>, valid: Duration) -> Result<String, StoreError> {
        let expires = self.clock.now().plus(valid).secs().to_string();
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        match access {
            Access::Get { content_type, file_name } => {
                query.append_pair("method", "GET").append_pair("type", content_type).append_pair("name", file_name)
            }
            Access::Put { content_type, size } => query
                .append_pair("method", "PUT")
                .append_pair("type", content_type)
                .append_pair("size", &size.to_string()),
        };
        let query = query.append_pair("expires", &expires).finish();
        Ok(format!("{}{PATH}{key}?{query}&signature={}", self.base_url, self.signature(key, &query)))
    }
}

/// Serves the signed URLs.
pub fn router(blobs: Arc<FolderBlobs>) -> Router {
    Router::new().route(&format!("{PATH}{{*key}}"), any(serve)).with_state(blobs)
}

async fn serve(State(blobs): State<Arc<FolderBlobs>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let answer = async {
        let key = parts.uri.path().strip_prefix(PATH).ok_or(ApiError::NotFound)?.to_owned();
        let query = parts.uri.query().unwrap_or_default();
        let (signed, signature) = query.rsplit_once("&signature=").ok_or(ApiError::Unauthorized)?;
        let params = Params::of(Some(signed));
        let named = |name: &str| params.text(name).map(str::to_owned);
        let until: i64 = named("expires").and_then(|until| until.parse().ok()).unwrap_or_default();
        let good = signature == blobs.signature(&key, signed) && blobs.clock.now().secs() < until;
        if !good || named("method").as_deref() != Some(parts.method.as_str()) {
            return Err(ApiError::Unauthorized);
        }
        let content_type = named("type").unwrap_or_default();
        let sent = parts.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if parts.method == "PUT" {
            let bytes = axum::body::to_bytes(body, MAX_UPLOAD_BYTES).await;
            let too_large = ApiError::PayloadTooLarge { limit_bytes: MAX_UPLOAD_BYTES };
            let bytes = bytes.map_err(|_| too_large)?.to_vec();
            if sent != content_type || named("size") != Some(bytes.len().to_string()) {
                return Err(ApiError::Unauthorized);
            }
            if parts.headers.get(header::IF_NONE_MATCH).is_none_or(|value| value != "*") {
                return Err(ApiError::Unauthorized);
            }
            // Like S3: an existing blob is not overwritten.
            if blobs.size(&key).await?.is_some() {
                return Ok(StatusCode::PRECONDITION_FAILED.into_response());
            }
            blobs.put(&key, &content_type, bytes).await?;
            return Ok(StatusCode::OK.into_response());
        }
        let bytes = blobs.get(&key).await?.ok_or(ApiError::NotFound)?;
        let mut response = Response::new(Body::from(bytes));
        let disposition = attachment(&named("name").unwrap_or_default());
        for (name, value) in [(header::CONTENT_TYPE, content_type), (header::CONTENT_DISPOSITION, disposition)] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(name, value);
            }
        }
        Ok(response)
    };
    gate::respond(answer.await)
}
