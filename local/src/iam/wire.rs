//! Checks requests between the SDK's client and the network, and in front of the local queues and blobs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use platform::store::blob::Access;
use platform::store::queue::Message;
use platform::store::{Blobs, BoxFuture, Queue, StoreError};
use serde_json::json;

use super::policy::Action;
use super::{Denial, Guard};

/// A DynamoDB client whose requests are checked before they are sent.
pub fn guarded(guard: &Arc<Guard>, client: &aws_sdk_dynamodb::Client) -> aws_sdk_dynamodb::Client {
    let config = client.config().to_builder();
    let Some(inner) = client.config().http_client() else { return client.clone() };
    let http = GuardedClient { inner, guard: guard.clone() };
    aws_sdk_dynamodb::Client::from_conf(config.http_client(SharedHttpClient::new(http)).build())
}

#[derive(Clone)]
struct GuardedClient {
    inner: SharedHttpClient,
    guard: Arc<Guard>,
}

#[derive(Clone)]
struct GuardedConnector {
    inner: SharedHttpConnector,
    guard: Arc<Guard>,
}

impl fmt::Debug for GuardedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GuardedClient")
    }
}

impl fmt::Debug for GuardedConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GuardedConnector")
    }
}

impl HttpClient for GuardedClient {
    fn http_connector(&self, settings: &HttpConnectorSettings, components: &RuntimeComponents) -> SharedHttpConnector {
        let inner = self.inner.http_connector(settings, components);
        SharedHttpConnector::new(GuardedConnector { inner, guard: self.guard.clone() })
    }
}

impl HttpConnector for GuardedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let authorization = request.headers().get("authorization").unwrap_or_default();
        let target = request.headers().get("x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default();
        let body = request.body().bytes().unwrap_or_default();
        match self.guard.check_dynamodb(authorization, operation, body) {
            Ok(()) => self.inner.call(request),
            Err(denial) => HttpConnectorFuture::ready(Ok(refusal(&denial))),
        }
    }
}

/// DynamoDB's answer to a request that is not allowed.
fn refusal(denial: &Denial) -> HttpResponse {
    let kind = "com.amazon.coral.service#AccessDeniedException";
    let body = json!({"__type": kind, "Message": denial.message()}).to_string();
    let status = http::StatusCode::BAD_REQUEST.as_u16().try_into().expect("400 is a status");
    let mut response = HttpResponse::new(status, SdkBody::from(body));
    response.headers_mut().insert("content-type", "application/x-amz-json-1.0");
    response
}

/// A queue with the permissions of one function.
pub struct GuardedQueue {
    pub inner: Arc<dyn Queue>,
    pub guard: Arc<Guard>,
    pub function: &'static str,
    /// The queue's ARN.
    pub arn: String,
}

impl GuardedQueue {
    fn check(&self, action: &str) -> Result<(), StoreError> {
        let action = Action::new(action, self.arn.as_str());
        self.guard.check(self.function, &action).map_err(|denial| StoreError::new(denial.message()))
    }
}

impl Queue for GuardedQueue {
    fn send_after<'a>(&'a self, message: &'a Message, delay: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.check("sqs:SendMessage")?;
            self.inner.send_after(message, delay).await
        })
    }

    fn waiting(&self) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        Box::pin(async move {
            self.check("sqs:GetQueueAttributes")?;
            self.inner.waiting().await
        })
    }
}

/// The blob store with the permissions of one function. No function may list the bucket, so S3 answers 403 for a missing
/// blob as well as for a forbidden one; a function treats both as missing.
pub struct GuardedBlobs {
    pub inner: Arc<dyn Blobs>,
    pub guard: Arc<Guard>,
    pub function: &'static str,
}

impl GuardedBlobs {
    fn may(&self, action: &str, key: &str) -> Result<(), StoreError> {
        let checked = self.guard.check_blob(self.function, action, key);
        checked.map_err(|denial| StoreError::new(format_args!("S3 answered 403: {}", denial.message())))
    }
}

impl Blobs for GuardedBlobs {
    fn put<'a>(&'a self, key: &'a str, content_type: &'a str, bytes: Vec<u8>) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.may("s3:PutObject", key)?;
            self.inner.put(key, content_type, bytes).await
        })
    }

    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move {
            match self.may("s3:GetObject", key) {
                Ok(()) => self.inner.get(key).await,
                Err(_) => Ok(None),
            }
        })
    }

    fn part<'a>(&'a self, key: &'a str, from: u64, most: u64) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move {
            match self.may("s3:GetObject", key) {
                Ok(()) => self.inner.part(key, from, most).await,
                Err(_) => Ok(None),
            }
        })
    }

    fn size<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        Box::pin(async move {
            match self.may("s3:GetObject", key) {
                Ok(()) => self.inner.size(key).await,
                Err(_) => Ok(None),
            }
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.may("s3:DeleteObject", key)?;
            self.inner.delete(key).await
        })
    }

    /// A URL has the rights of the function that signed it. S3 signs any URL and refuses its use.
    fn url(&self, key: &str, access: Access<'_>, valid: Duration) -> Result<String, StoreError> {
        let action = match access {
            Access::Get { .. } => "s3:GetObject",
            Access::Put { .. } => "s3:PutObject",
        };
        let url = self.inner.url(key, access, valid)?;
        Ok(if self.may(action, key).is_ok() { url } else { format!("{url}-not-allowed") })
    }
}
