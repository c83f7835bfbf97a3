//! Large texts: results that would make an item heavy.

use super::aws::SignedHttp;
use super::{BoxFuture, StoreError};

/// A place for blobs: S3 when deployed, a folder when local. Keys are ours, never a caller's text.
pub trait Blobs: Send + Sync {
    fn put<'a>(&'a self, key: &'a str, content_type: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), StoreError>>;

    /// `None` if nothing is stored under the key.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>>;
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
                404 => Ok(None),
                status => Err(StoreError::new(format_args!("S3 answered {status} to a GET"))),
            }
        })
    }
}
