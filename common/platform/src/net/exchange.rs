//! One request and its response, as a browser needs them: any method, and redirects returned instead of followed.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::{Body, Bytes};
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use tokio::time::timeout;
use url::{Position, Url};

use super::body::BodyReader;
use super::fetch::{FetchError, Fetcher, http_error, no_answer, text_of, while_driving};
use super::guard::{UrlRefused, check_parsed};

/// Most bytes of a response's body, decompressed: a download of 20 MB and a little more, so that a larger one is
/// noticed.
const MAX_BODY: usize = 20 * 1024 * 1024 + 1;

/// Longest URL, in bytes: logins at other sites pass long ones on.
const MAX_URL: usize = 16 * 1024;

/// Headers that concern one connection, or that the client sets itself.
const OWN: [HeaderName; 10] =
    [ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, USER_AGENT];

/// A response, whatever its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchanged {
    pub status: u16,
    /// In the order of the response, names in lower case. Without those that concern the connection or the compression.
    pub headers: Vec<(String, String)>,
    /// Decompressed.
    pub body: Vec<u8>,
    /// The body was cut at a cap or ended early.
    pub truncated: bool,
}

impl Exchanged {
    /// The first header of this name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Fetcher {
    /// Sends one request for somebody who acts on a site: the checks of [`Fetcher::get`], but any method, headers and
    /// body, any content type, a URL of up to 16 KiB, no robots.txt, and redirects are returned. The client names
    /// itself. Headers that are not valid or that concern the connection are left out.
    ///
    /// # Errors
    /// As [`Fetcher::get`].
    pub async fn exchange(
        &self,
        method: &str,
        url: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Result<Exchanged, FetchError> {
        self.exchange_within(self.policy().deadline, method, url, headers, body).await
    }

    /// Like [`Fetcher::exchange`], with a deadline of its own.
    ///
    /// # Errors
    /// As [`Fetcher::get`].
    pub async fn exchange_within(
        &self,
        deadline: Duration,
        method: &str,
        url: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Result<Exchanged, FetchError> {
        if url.len() > MAX_URL {
            return Err(FetchError::NotAllowed(UrlRefused::TooLong));
        }
        let url = Url::parse(url).map_err(|_| FetchError::NotAllowed(UrlRefused::Malformed))?;
        check_parsed(&url, self.policy()).map_err(FetchError::NotAllowed)?;
        let mut request = Request::builder()
            .method(method)
            .uri(&url[Position::BeforePath..Position::AfterQuery])
            .body(Full::<Bytes>::from(body))
            .map_err(|_| FetchError::NotAllowed(UrlRefused::Malformed))?;
        let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]);
        let all = request.headers_mut();
        for (name, value) in headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_bytes(value.as_bytes()))
                && !OWN.contains(&name)
            {
                all.append(name, value);
            }
        }
        all.insert(HOST, host.map_err(|_| FetchError::NotAllowed(UrlRefused::Malformed))?);
        all.insert(USER_AGENT, self.user_agent.clone());
        all.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate"));
        all.insert(CONNECTION, HeaderValue::from_static("close"));
        let mut policy = self.policy().clone();
        (policy.max_raw_bytes, policy.max_decoded_bytes) = (MAX_BODY, MAX_BODY);
        let exchange = async {
            let transport = self.connector.open(&url, &policy).await?;
            let (mut sender, connection) = self.handshake(transport).await?;
            while_driving(connection, async {
                let response = sender.send_request(request).await.map_err(http_error)?;
                let (head, mut incoming) = response.into_parts();
                let encoding = text_of(&head.headers, CONTENT_ENCODING).unwrap_or_default();
                let encoding = if incoming.is_end_stream() { String::new() } else { encoding };
                let mut reader = BodyReader::new(&encoding, &policy)?;
                while let Some(frame) = incoming.frame().await {
                    let frame = frame.map_err(|_| FetchError::Protocol("its body ends early"))?;
                    if let Some(piece) = frame.data_ref()
                        && !reader.push(piece)?
                    {
                        break;
                    }
                }
                let body = reader.finish()?;
                let is_kept = |name: &HeaderName| !OWN.contains(name) && *name != CONTENT_ENCODING;
                let headers = head.headers.iter().filter(|(name, _)| is_kept(name));
                let headers = headers
                    .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
                Ok(Exchanged {
                    status: head.status.as_u16(),
                    headers: headers.collect(),
                    body: body.bytes,
                    truncated: body.truncated,
                })
            })
            .await
        };
        timeout(deadline, exchange).await.unwrap_or_else(|_| Err(no_answer()))
    }
}
