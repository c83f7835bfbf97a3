//! Blobs: results and files that are too large for an item.

use std::time::Duration;

use base::encoding::percent_encoded;

use super::aws::SignedHttp;
use super::{BoxFuture, StoreError};

/// A blob store: S3 when deployed, a folder in local runs. Keys are ours, never a caller's text.
pub trait Blobs: Send + Sync {
    fn put<'a>(&'a self, key: &'a str, content_type: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), StoreError>>;

    /// `None` if the key does not exist.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>>;

    /// At most `most` bytes, from the byte `from` on; fewer if the blob ends before. `None` if the key does not exist. For
    /// blobs above 8 MiB, which [`Blobs::get`] does not return.
    fn part<'a>(&'a self, key: &'a str, from: u64, most: u64) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>>;

    /// Size in bytes; `None` if the key does not exist.
    fn size<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<u64>, StoreError>>;

    /// Deletes the key, if it exists.
    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// A URL with which anyone can access this one blob for a limited time. Used for files that are too large for a
    /// function's response.
    fn url(&self, key: &str, access: Access<'_>, valid: Duration) -> Result<String, StoreError>;
}

/// The access a blob's URL gives.
#[derive(Clone, Copy, Debug)]
pub enum Access<'a> {
    /// Download with this content type and file name.
    Get { content_type: &'a str, file_name: &'a str },
    /// Upload of exactly `size` bytes of this content type. The signed header `If-None-Match: *` allows it only once.
    Put { content_type: &'a str, size: u64 },
}

/// `Content-Disposition` that makes a browser save a file instead of showing it: a seller's file must not run under our
/// origin.
pub fn attachment(file_name: &str) -> String {
    let name: String = file_name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' })
        .collect();
    // The real name, for clients that support it (RFC 6266).
    format!("attachment; filename=\"{name}\"; filename*=UTF-8''{}", percent_encoded(file_name))
}

/// Amazon S3, by hand-signed requests: its SDK would be the largest part of every binary.
pub struct S3Blobs {
    http: SignedHttp,
    /// URL prefix of the bucket's keys, with a trailing slash.
    base: String,
}

impl S3Blobs {
    pub fn new(http: SignedHttp, bucket: &str) -> S3Blobs {
        let base = match http.endpoint() {
            Some(endpoint) => format!("{endpoint}/{bucket}/"),
            None => format!("https://{bucket}.s3.{}.amazonaws.com/", http.region()),
        };
        S3Blobs { http, base }
    }
}

impl Blobs for S3Blobs {
    fn put<'a>(&'a self, key: &'a str, content_type: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let url = format!("{}{key}", self.base);
            let answer = self.http.send("s3", "PUT", &url, &[("content-type", content_type)], bytes).await?;
            match answer.status {
                200 => Ok(()),
                status => Err(StoreError::new(format_args!("S3 answered {status} to a PUT"))),
            }
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move {
            let url = format!("{}{key}", self.base);
            let answer = self.http.send("s3", "GET", &url, &[], Vec::new()).await?;
            match answer.status {
                200 => Ok(Some(answer.body)),
                // Without permission to list, S3 answers 403 for a missing key.
                403 | 404 => Ok(None),
                status => Err(StoreError::new(format_args!("S3 answered {status} to a GET"))),
            }
        })
    }

    fn part<'a>(&'a self, key: &'a str, from: u64, most: u64) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move {
            let url = format!("{}{key}", self.base);
            let range = format!("bytes={from}-{}", from.saturating_add(most).saturating_sub(1));
            let answer = self.http.send("s3", "GET", &url, &[("range", range.as_str())], Vec::new()).await?;
            match answer.status {
                206 => Ok(Some(answer.body)),
                // The blob ends before.
                416 => Ok(Some(Vec::new())),
                // Without permission to list, S3 answers 403 for a missing key.
                403 | 404 => Ok(None),
                status => Err(StoreError::new(format_args!("S3 answered {status} to a GET of a part"))),
            }
        })
    }

    fn size<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        Box::pin(async move {
            let url = format!("{}{key}", self.base);
            // Reads one byte, because the response names the total size. (The HTTP client drops the length of a HEAD
            // response.)
            let answer = self.http.send("s3", "GET", &url, &[("range", "bytes=0-0")], Vec::new()).await?;
            match answer.status {
                206 => Ok(answer.content_range_total),
                // An empty blob: it has no first byte.
                416 => Ok(Some(0)),
                200 => Ok(Some(answer.body.len() as u64)),
                // Without permission to list, S3 answers 403 for a missing key.
                403 | 404 => Ok(None),
                status => Err(StoreError::new(format_args!("S3 answered {status} to a GET of one byte"))),
            }
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let url = format!("{}{key}", self.base);
            let answer = self.http.send("s3", "DELETE", &url, &[], Vec::new()).await?;
            match answer.status {
                // S3 answers 204 whether the key existed or not.
                200 | 204 | 404 => Ok(()),
                status => Err(StoreError::new(format_args!("S3 answered {status} to a DELETE"))),
            }
        })
    }

    fn url(&self, key: &str, access: Access<'_>, valid: Duration) -> Result<String, StoreError> {
        let url = format!("{}{key}", self.base);
        match access {
            Access::Get { content_type, file_name } => {
                // Spaces as `%20`: not every S3 implementation accepts `+` when it checks a signature.
                let disposition = percent_encoded(&attachment(file_name));
                let content_type = percent_encoded(content_type);
                let query = format!("response-content-disposition={disposition}&response-content-type={content_type}");
                self.http.presigned("GET", &format!("{url}?{query}"), &[], valid)
            }
            Access::Put { content_type, size } => {
                let size = size.to_string();
                let headers =
                    [("content-length", size.as_str()), ("content-type", content_type), ("if-none-match", "*")];
                self.http.presigned("PUT", &url, &headers, valid)
            }
        }
    }
}
