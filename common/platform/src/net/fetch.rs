//! One guarded request: follows redirects itself, checks every hop, and limits time and memory.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderName,
    HeaderValue, InvalidHeaderValue, LOCATION, RETRY_AFTER, USER_AGENT,
};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use tokio_rustls::rustls::RootCertStore;
use url::{Position, Url};

use super::body::{BodyReader, ReceivedBody};
use super::connect::{Connector, Names, Transport};
use super::guard::{UrlRefused, check_parsed, check_url};
use super::manners::Manners;
use super::policy::FetchPolicy;

/// The `Accept` header: text formats preferred, everything else accepted.
const ACCEPTED: &str = "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,*/*;q=0.5";

/// Longest wait for the body of the response to a POST, once its head has arrived.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// Maximum number of header fields in a response; sites with many cookies send dozens.
const MAX_HEADER_FIELDS: usize = 256;

/// Fetches untrusted URLs. See the [module](super) for the rules it keeps.
///
/// It holds only configuration and the sites' robots.txt rules, so it can be shared. Make one at start-up.
pub struct Fetcher {
    policy: FetchPolicy,
    pub(super) user_agent: HeaderValue,
    pub(super) connector: Connector,
    pub(super) manners: Manners,
}

/// A final response, whatever its status.
#[derive(Clone, Debug)]
pub struct Page {
    /// The URL after the last redirect.
    pub final_url: Url,
    pub status: u16,
    /// The `Content-Type` header as sent.
    pub content_type: Option<String>,
    /// The `X-Robots-Tag` headers as sent, one per line.
    pub robots: Option<String>,
    /// The `Cache-Control` headers as sent, one per line.
    pub cache_control: Option<String>,
    /// The body, decompressed, in the page's own character set.
    pub body: Vec<u8>,
    /// The body was cut at a cap or ended early.
    pub truncated: bool,
    /// Number of redirects that were followed.
    pub redirects: usize,
}

/// The response to a POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    pub status: u16,
    /// The `Retry-After` header as sent.
    pub retry_after: Option<String>,
    /// The first bytes of the body; empty if it came compressed.
    pub answer: Vec<u8>,
}

/// Why there is no page. The text is for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// DNS, connection or TLS failed, or there was no complete response in time.
    NotReachable(String),
    /// The guard refused the URL, an address behind it, or a redirect's target.
    NotAllowed(UrlRefused),
    /// robots.txt forbids this page, or demands a longer pause. The text says which.
    Forbidden(String),
    TooManyRedirects,
    /// The body is a decompression bomb.
    DecompressionLimit,
    /// The policy does not accept this content type.
    UnsupportedContent(String),
    /// The response is not valid HTTP.
    Protocol(&'static str),
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReachable(detail) => write!(f, "the page cannot be reached: {detail}"),
            Self::NotAllowed(reason) => write!(f, "the page may not be fetched: its URL {reason}"),
            Self::Forbidden(how) => f.write_str(how),
            Self::TooManyRedirects => f.write_str("the page redirects too many times"),
            Self::DecompressionLimit => f.write_str("the page decompresses to far more data than it sends"),
            Self::UnsupportedContent(kind) => write!(f, "content of type {kind} cannot be read"),
            Self::Protocol(detail) => write!(f, "the server's response is not usable: {detail}"),
        }
    }
}

impl std::error::Error for FetchError {}

type Sender = http1::SendRequest<Full<Bytes>>;
type Connection = http1::Connection<TokioIo<Box<dyn Transport>>, Full<Bytes>>;

/// The response to one hop.
enum Hop {
    MovedTo(String),
    Arrived(Arrived),
}

/// A response that is not a redirect.
struct Arrived {
    status: StatusCode,
    content_type: Option<String>,
    robots: Option<String>,
    cache_control: Option<String>,
    body: ReceivedBody,
}

impl Fetcher {
    /// A client with this `User-Agent`, which should name a contact. It trusts Mozilla's root certificates, compiled in.
    pub fn new(policy: FetchPolicy, user_agent: &str) -> Result<Self, InvalidHeaderValue> {
        let roots = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        Self::build(policy, user_agent, Names::System, roots)
    }

    pub(super) fn build(
        policy: FetchPolicy,
        user_agent: &str,
        names: Names,
        roots: RootCertStore,
    ) -> Result<Self, InvalidHeaderValue> {
        let manners = Manners::of(user_agent);
        let user_agent = HeaderValue::from_str(user_agent)?;
        Ok(Self { policy, user_agent, connector: Connector::new(names, roots), manners })
    }

    /// The policy of this client, for checks before a price is quoted.
    pub fn policy(&self) -> &FetchPolicy {
        &self.policy
    }

    /// The product token of its `User-Agent`, in lower case, as robots.txt names it.
    pub fn product(&self) -> &str {
        self.manners.product()
    }

    /// Fetches `url`, which is checked even if the caller has checked it. Dropping the future closes the connection. Does
    /// not ask robots.txt.
    pub async fn get(&self, url: &str) -> Result<Page, FetchError> {
        self.fetch(url, None).await
    }

    /// Like [`Fetcher::get`], but obeys robots.txt: for pages that are read on somebody's behalf. See `manners`.
    pub async fn read(&self, url: &str) -> Result<Page, FetchError> {
        self.fetch(url, Some(Instant::now() + self.policy.deadline)).await
    }

    /// Like [`Fetcher::get`] for a part of a page that a browser shows (a script, an image): any content type is accepted.
    pub async fn part(&self, url: &str) -> Result<Page, FetchError> {
        let url = check_url(url, &self.policy).map_err(FetchError::NotAllowed)?;
        let policy = self.policy.clone().accepting(|_| true);
        match timeout(self.policy.deadline, self.follow(url, &policy, None)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(FetchError::NotReachable("no complete answer in time".to_owned())),
        }
    }

    async fn fetch(&self, url: &str, leave_until: Option<Instant>) -> Result<Page, FetchError> {
        let url = check_url(url, &self.policy).map_err(FetchError::NotAllowed)?;
        match timeout(self.policy.deadline, self.follow(url, &self.policy, leave_until)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(FetchError::NotReachable("no complete answer in time".to_owned())),
        }
    }

    /// Posts to an untrusted URL and follows no redirects. At most `keep` bytes of the response's body are read, and only
    /// until the deadline; a response whose body does not end still counts.
    pub async fn post(
        &self,
        url: &str,
        headers: &[(impl AsRef<str>, String)],
        body: Vec<u8>,
        keep: usize,
    ) -> Result<Posted, FetchError> {
        let started = Instant::now();
        let url = check_url(url, &self.policy).map_err(FetchError::NotAllowed)?;
        let invalid = |_| FetchError::NotAllowed(UrlRefused::Malformed);
        let mut request = Request::post(&url[Position::BeforePath..Position::AfterQuery])
            .header(HOST, &url[Position::BeforeHost..Position::AfterPort])
            .header(USER_AGENT, &self.user_agent)
            .header(CONNECTION, "close");
        for (name, value) in headers {
            request = request.header(name.as_ref(), value);
        }
        let request = request.body(Full::from(body)).map_err(invalid)?;
        let exchange = async {
            let transport = self.connector.open(&url, &self.policy).await?;
            let (mut sender, connection) = self.handshake(transport).await?;
            while_driving(connection, async {
                let answer = sender.send_request(request);
                let left = || self.policy.deadline.saturating_sub(started.elapsed());
                let answer = timeout(left(), answer).await.map_err(|_| no_answer())?.map_err(http_error)?;
                let (head, body) = answer.into_parts();
                let keep = if head.headers.contains_key(CONTENT_ENCODING) { 0 } else { keep };
                let answer = start_of(body, keep, left().min(ANSWER_TIME)).await;
                Ok(Posted { status: head.status.as_u16(), retry_after: text_of(&head.headers, RETRY_AFTER), answer })
            })
            .await
        };
        // Opening the connection has no timeout of its own; the rest ends a little before this one.
        match timeout(self.policy.deadline + ANSWER_TIME, exchange).await {
            Ok(outcome) => outcome,
            Err(_) => Err(no_answer()),
        }
    }

    pub(super) async fn handshake(&self, transport: Box<dyn Transport>) -> Result<(Sender, Connection), FetchError> {
        http1::Builder::new()
            .max_headers(MAX_HEADER_FIELDS)
            .max_header_size(self.policy.max_header_bytes)
            .handshake(TokioIo::new(transport))
            .await
            .map_err(http_error)
    }

    /// Follows redirects to a page. With `leave_until`, robots.txt is obeyed at every hop, and pauses last at most until
    /// then.
    pub(super) async fn follow(
        &self,
        mut url: Url,
        policy: &FetchPolicy,
        leave_until: Option<Instant>,
    ) -> Result<Page, FetchError> {
        for redirects in 0..=policy.max_redirects {
            if let Some(until) = leave_until {
                self.leave(&url, until).await?;
            }
            match self.hop(&url, policy).await? {
                Hop::MovedTo(location) => url = self.next_url(&url, &location)?,
                Hop::Arrived(Arrived { status, content_type, robots, cache_control, body }) => {
                    return Ok(Page {
                        final_url: url,
                        status: status.as_u16(),
                        content_type,
                        robots,
                        cache_control,
                        body: body.bytes,
                        truncated: body.truncated,
                        redirects,
                    });
                }
            }
        }
        Err(FetchError::TooManyRedirects)
    }

    fn next_url(&self, current: &Url, location: &str) -> Result<Url, FetchError> {
        let refused = FetchError::NotAllowed;
        let next = current.join(location).map_err(|_| refused(UrlRefused::Malformed))?;
        check_parsed(&next, &self.policy).map_err(refused)?;
        Ok(next)
    }

    async fn hop(&self, url: &Url, policy: &FetchPolicy) -> Result<Hop, FetchError> {
        let request = self.request(url)?;
        let transport = self.connector.open(url, &self.policy).await?;
        let (mut sender, connection) = self.handshake(transport).await?;
        let exchange = async {
            let response = sender.send_request(request).await.map_err(http_error)?;
            self.receive(response, policy).await
        };
        while_driving(connection, exchange).await
    }

    fn request(&self, url: &Url) -> Result<Request<Full<Bytes>>, FetchError> {
        let invalid = |_| FetchError::NotAllowed(UrlRefused::Malformed);
        let host = &url[Position::BeforeHost..Position::AfterPort];
        let target = &url[Position::BeforePath..Position::AfterQuery];
        Request::get(target)
            .header(HOST, host)
            .header(USER_AGENT, &self.user_agent)
            .header(ACCEPT, ACCEPTED)
            .header(ACCEPT_ENCODING, "gzip, deflate")
            .header(CONNECTION, "close")
            .body(Full::default())
            .map_err(invalid)
    }

    async fn receive(&self, response: Response<Incoming>, policy: &FetchPolicy) -> Result<Hop, FetchError> {
        let (head, mut incoming) = response.into_parts();
        if let Some(location) = redirect_target(head.status, &head.headers) {
            return Ok(Hop::MovedTo(location));
        }
        let content_type = text_of(&head.headers, CONTENT_TYPE);
        check_content_type(content_type.as_deref(), policy)?;
        let robots = lines_of(&head.headers, HeaderName::from_static("x-robots-tag"));
        let cache_control = lines_of(&head.headers, CACHE_CONTROL);

        let encoding = text_of(&head.headers, CONTENT_ENCODING).unwrap_or_default();
        let mut reader = BodyReader::new(&encoding, policy)?;
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(|_| FetchError::Protocol("its body ends early"))?;
            if let Some(piece) = frame.data_ref()
                && !reader.push(piece)?
            {
                break;
            }
        }
        let body = reader.finish()?;
        Ok(Hop::Arrived(Arrived { status: head.status, content_type, robots, cache_control, body }))
    }
}

fn check_content_type(content_type: Option<&str>, policy: &FetchPolicy) -> Result<(), FetchError> {
    let Some(content_type) = content_type else {
        return Ok(());
    };
    let essence = essence(content_type);
    if essence.is_empty() || (policy.accepts)(&essence) {
        return Ok(());
    }
    Err(FetchError::UnsupportedContent(essence))
}

pub(super) fn no_answer() -> FetchError {
    FetchError::NotReachable("no answer in time".to_owned())
}

/// The first bytes of a body, as far as they arrive in time.
async fn start_of(mut body: Incoming, keep: usize, time: Duration) -> Vec<u8> {
    let mut start = Vec::new();
    let read = async {
        while start.len() < keep
            && let Some(Ok(frame)) = body.frame().await
        {
            let piece = frame.data_ref().map_or(&[][..], |data| &data[..]);
            start.extend_from_slice(&piece[..piece.len().min(keep - start.len())]);
        }
    };
    // On a timeout, the bytes read so far are kept.
    let _ = timeout(time, read).await;
    start
}

/// A content type without its parameters, in lower case.
pub fn essence(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// The target of a redirect. A redirect without `Location` is treated as a page.
fn redirect_target(status: StatusCode, headers: &HeaderMap) -> Option<String> {
    match status.as_u16() {
        301 | 302 | 303 | 307 | 308 => text_of(headers, LOCATION),
        _ => None,
    }
}

/// A header field as text. Some servers send UTF-8 where ASCII is required.
pub(super) fn text_of(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// Header fields of one name, one per line, at most ten.
fn lines_of(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let fields = headers.get_all(name).iter().take(10).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let fields: Vec<_> = fields.collect();
    (!fields.is_empty()).then(|| fields.join("\n"))
}

/// Runs `exchange` and drives its connection in the same task, so that dropping the future also drops the connection.
pub(super) async fn while_driving<F: Future>(connection: Connection, exchange: F) -> F::Output {
    let mut connection = pin!(connection);
    let mut exchange = pin!(exchange);
    let mut open = true;
    poll_fn(move |cx| {
        // If the connection fails, the exchange reports it.
        if open && connection.as_mut().poll(cx).is_ready() {
            open = false;
        }
        match exchange.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(output),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

pub(super) fn http_error(error: hyper::Error) -> FetchError {
    if error.is_parse() {
        FetchError::Protocol("its head is not HTTP, or is too large")
    } else if error.is_incomplete_message() || error.is_closed() {
        FetchError::Protocol("it ends early")
    } else {
        FetchError::NotReachable(format!("the connection failed: {error}"))
    }
}
