//! Large texts: results that would make an item heavy.

use std::time::Duration;

use base::encoding::percent_encoded;

use super::aws::SignedHttp;
use super::{BoxFuture, StoreError};

/// A place for blobs: S3 when deployed, a folder when local. Keys are ours, never a caller's text.
pub trait Blobs: Send + Sync {
    fn put<'a>(&'a self, key: &'a str, content_type: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), StoreError>>;

    /// `None` if nothing is stored under the key.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>>;

    /// How many bytes are stored under the key, if anything is.
    fn size<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<u64>, StoreError>>;

    /// Takes away what is stored under the key, if anything is.
    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>>;

    /// A URL with which whoever has it reads or writes this one blob for a while, past us: what is too large for a
    /// function's answer goes this way.
    fn url(&self, key: &str, access: Access<'_>, valid: Duration) -> Result<String, StoreError>;
}

/// What a blob's URL is for.
#[derive(Clone, Copy, Debug)]
pub enum Access<'a> {
    /// Reading, as a download of this content type and under this file name.
    Get { content_type: &'a str, file_name: &'a str },
    /// Writing exactly so many bytes of this content type, once: with `If-None-Match: *`, which is part of what is signed.
    Put { content_type: &'a str, size: u64 },
}

/// How a browser is told to keep a file instead of showing it: what a seller made is never run in our name.
pub fn attachment(file_name: &str) -> String {
    let name: String = file_name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '_' })
        .collect();
    // The name as it is, for those who can read it (RFC 6266).
    format!("attachment; filename=\"{name}\"; filename*=UTF-8''{}", percent_encoded(file_name))
}

/// Amazon S3, by two signed requests: the SDK for it would be the largest part of every binary.
pub struct S3Blobs {
    http: SignedHttp,
    /// Where the bucket's keys begin, with a trailing slash.
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
                // Who may not list is told 403 of what is not there.
                403 | 404 => Ok(None),
                status => Err(StoreError::new(format_args!("S3 answered {status} to a GET"))),
            }
        })
    }

    fn size<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        Box::pin(async move {
            let url = format!("{}{key}", self.base);
            // One byte, whose answer says of how many it is: a HEAD's answer would lose its length on the way here.
            let answer = self.http.send("s3", "GET", &url, &[("range", "bytes=0-0")], Vec::new()).await?;
            match answer.status {
                206 => Ok(answer.content_range_total),
                // An empty blob has no first byte.
                416 => Ok(Some(0)),
                200 => Ok(Some(answer.body.len() as u64)),
                // S3 says 403 for a missing blob to who may not list, as for `get`.
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
                // S3 says 204 whether there was anything or not.
                200 | 204 | 404 => Ok(()),
                status => Err(StoreError::new(format_args!("S3 answered {status} to a DELETE"))),
            }
        })
    }

    fn url(&self, key: &str, access: Access<'_>, valid: Duration) -> Result<String, StoreError> {
        let url = format!("{}{key}", self.base);
        match access {
            Access::Get { content_type, file_name } => {
                // Spaces as `%20`: not everybody who checks a signature takes a `+` for one.
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
