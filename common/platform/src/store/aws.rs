//! Connections to AWS: SDK clients for DynamoDB and SQS, and signed requests for the services we ask only one or two
//! things of.
//!
//! The SDK is set up by hand instead of through `aws-config`: credentials come from the environment (where Lambda puts
//! them), TLS is rustls over `ring`, the only roots are Amazon's own, and one client asks all services. Measured, that is
//! the difference between 5 and 32 ms of CPU before the first answer.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Region, SharedAsyncSleep, SharedHttpClient};
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SignatureLocation, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector, http_client_fn};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_types::body::SdkBody;

use super::StoreError;
use crate::config::AwsConfig;
use crate::net::{PlainAnswer, PlainError, PlainHttp};

/// The roots AWS endpoints are signed under.
const AMAZON_ROOTS: &[u8] = include_bytes!("../../assets/amazon-roots.pem");

/// What both SDK clients are made of.
#[derive(Clone)]
pub struct Aws {
    region: String,
    endpoint: Option<String>,
    credentials: SharedCredentialsProvider,
    http: SharedHttpClient,
    /// One for all queues, made when something is first sent: most answers send nothing.
    sqs: Arc<OnceLock<aws_sdk_sqs::Client>>,
}

impl Aws {
    pub fn new(config: &AwsConfig) -> Result<Aws, StoreError> {
        Ok(Aws::over(config, http(config)?))
    }

    /// The same over a client for AWS that others use, too (see [`http`]).
    pub fn over(config: &AwsConfig, http: PlainHttp) -> Aws {
        let connector = SharedHttpConnector::new(SdkHttp(http));
        Aws {
            region: config.region.clone(),
            endpoint: config.endpoint.clone(),
            credentials: SharedCredentialsProvider::new(config.credentials.clone()),
            http: http_client_fn(move |_, _| connector.clone()),
            sqs: Arc::default(),
        }
    }

    /// The same sockets under the credentials of another configuration.
    pub fn acting_as(&self, config: &AwsConfig) -> Aws {
        Aws {
            region: config.region.clone(),
            endpoint: config.endpoint.clone(),
            credentials: SharedCredentialsProvider::new(config.credentials.clone()),
            http: self.http.clone(),
            sqs: Arc::default(),
        }
    }

    pub fn dynamodb(&self) -> aws_sdk_dynamodb::Client {
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.region.clone()))
            .credentials_provider(self.credentials.clone())
            .http_client(self.http.clone())
            .sleep_impl(SharedAsyncSleep::new(TokioSleep::new()))
            .retry_config(retries())
            .timeout_config(timeouts());
        aws_sdk_dynamodb::Client::from_conf(match &self.endpoint {
            Some(endpoint) => config.endpoint_url(endpoint).build(),
            None => config.build(),
        })
    }

    pub fn sqs(&self) -> &aws_sdk_sqs::Client {
        self.sqs.get_or_init(|| self.new_sqs())
    }

    fn new_sqs(&self) -> aws_sdk_sqs::Client {
        let config = aws_sdk_sqs::Config::builder()
            .behavior_version(aws_sdk_sqs::config::BehaviorVersion::latest())
            .region(aws_sdk_sqs::config::Region::new(self.region.clone()))
            .credentials_provider(self.credentials.clone())
            .http_client(self.http.clone())
            .sleep_impl(SharedAsyncSleep::new(TokioSleep::new()))
            .retry_config(retries())
            .timeout_config(timeouts());
        aws_sdk_sqs::Client::from_conf(match &self.endpoint {
            Some(endpoint) => config.endpoint_url(endpoint).build(),
            None => config.build(),
        })
    }
}

fn retries() -> RetryConfig {
    RetryConfig::standard().with_max_attempts(3).with_initial_backoff(Duration::from_millis(50))
}

fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(Duration::from_secs(2))
        .operation_attempt_timeout(Duration::from_secs(5))
        .build()
}

/// The client for AWS: trusts Amazon's roots, or those of `AWS_CA_BUNDLE`.
pub fn http(config: &AwsConfig) -> Result<PlainHttp, StoreError> {
    let roots = match &config.ca_bundle {
        Some(path) => {
            std::fs::read(path).map_err(|error| StoreError::new(format_args!("AWS_CA_BUNDLE {path}: {error}")))?
        }
        None => AMAZON_ROOTS.to_vec(),
    };
    Ok(PlainHttp::of_aws(roots))
}

/// What the SDK sends its requests with: our own client. The SDK's own brings another TLS set-up, HTTP/2 and the system's
/// certificates, and makes all of it anew for each service.
#[derive(Clone, Debug)]
struct SdkHttp(PlainHttp);

impl HttpConnector for SdkHttp {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let http = self.0.clone();
        HttpConnectorFuture::new(async move {
            let request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
            let request = request.map(|body| body.bytes().unwrap_or_default().to_vec());
            let answer = http.exchange(request).await.map_err(|error| match error {
                PlainError::NotSent(_) => ConnectorError::io(error.into()).never_connected(),
                PlainError::Lost(_) => ConnectorError::io(error.into()),
            })?;
            HttpResponse::try_from(answer.map(SdkBody::from)).map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

/// Requests to AWS services signed by hand (Signature Version 4).
#[derive(Clone, Debug)]
pub struct SignedHttp {
    http: PlainHttp,
    region: String,
    endpoint: Option<String>,
    credentials: aws_credential_types::Credentials,
}

impl SignedHttp {
    pub fn new(http: PlainHttp, config: &AwsConfig) -> SignedHttp {
        SignedHttp {
            http,
            region: config.region.clone(),
            endpoint: config.endpoint.clone(),
            credentials: config.credentials.clone(),
        }
    }

    /// The same sockets under the credentials of another configuration.
    pub fn acting_as(&self, config: &AwsConfig) -> SignedHttp {
        SignedHttp::new(self.http.clone(), config)
    }

    pub fn region(&self) -> &str {
        &self.region
    }

    /// The one endpoint that stands in for every service, if there is one.
    pub fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    pub async fn send(
        &self,
        service: &str,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<PlainAnswer, StoreError> {
        let request = self.sign(service, method, url, headers, body)?;
        self.http.send(request).await.map_err(StoreError::new)
    }

    /// The signed request, for who sends it with a client of another kind.
    pub fn sign(
        &self,
        service: &str,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<http::Request<Vec<u8>>, StoreError> {
        let mut settings = SigningSettings::default();
        if service == "s3" {
            settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
            settings.percent_encoding_mode = PercentEncodingMode::Single;
            settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        }
        let identity = self.credentials.clone().into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(service)
            .time(SystemTime::now())
            .settings(settings)
            .build()
            .map_err(StoreError::new)?
            .into();
        let signable = SignableRequest::new(method, url, headers.iter().copied(), SignableBody::Bytes(&body))
            .map_err(StoreError::new)?;
        let (instructions, _) = sign(signable, &parameters).map_err(StoreError::new)?.into_parts();
        let mut request = http::Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(body).map_err(StoreError::new)?;
        instructions.apply_to_request_http1x(&mut request);
        Ok(request)
    }

    /// A URL of S3 that carries its own signature, valid for a while; whoever uses it has to send these headers.
    pub fn presigned(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, &str)],
        valid: Duration,
    ) -> Result<String, StoreError> {
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.signature_location = SignatureLocation::QueryParams;
        settings.expires_in = Some(valid);
        let identity = self.credentials.clone().into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name("s3")
            .time(SystemTime::now())
            .settings(settings)
            .build()
            .map_err(StoreError::new)?
            .into();
        let signable = SignableRequest::new(method, url, headers.iter().copied(), SignableBody::UnsignedPayload)
            .map_err(StoreError::new)?;
        let (instructions, _) = sign(signable, &parameters).map_err(StoreError::new)?.into_parts();
        let mut request = http::Request::builder().method(method).uri(url).body(()).map_err(StoreError::new)?;
        instructions.apply_to_request_http1x(&mut request);
        Ok(request.uri().to_string())
    }

    /// The text of a secret in AWS Secrets Manager.
    pub async fn secret(&self, arn: &str) -> Result<String, StoreError> {
        let url =
            self.endpoint.clone().unwrap_or_else(|| format!("https://secretsmanager.{}.amazonaws.com", self.region));
        let headers =
            [("content-type", "application/x-amz-json-1.1"), ("x-amz-target", "secretsmanager.GetSecretValue")];
        let body = serde_json::json!({"SecretId": arn}).to_string().into_bytes();
        let answer = self.send("secretsmanager", "POST", &format!("{url}/"), &headers, body).await?;
        if answer.status != 200 {
            return Err(StoreError::new(format_args!("Secrets Manager answered {}", answer.status)));
        }
        let answer: serde_json::Value = serde_json::from_slice(&answer.body).map_err(StoreError::new)?;
        answer["SecretString"].as_str().map(str::to_owned).ok_or_else(|| StoreError::new("the secret holds no text"))
    }
}
