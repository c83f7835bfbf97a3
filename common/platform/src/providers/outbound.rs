//! The HTTP client for providers that the operator configured: search engines, registries, data vendors.
//!
//! It always keeps these rules:
//!
//! - All calls of this process to one host together stay below the rate of [`Ask::per_second`]. A call that would have to
//!   wait beyond its deadline fails at once. The requests of each [`Lane`] have a rate of their own, and neither delay nor pause
//!   those of another.
//! - A failed request is retried only where that is harmless ([`Ask::repeatable`]): at most three attempts, after the pause
//!   the provider asks for, and never beyond the deadline.
//! - After five failures in a row, a host is not called for half a minute. Then one call tries it.
//! - At most 8 MB of a response are read. Keys appear in no error and no log.
//! - Callers get the provider's name and a short reason ([`OutboundError`]'s text). The cause is only logged.
//!
//! The limits are per process, and there are as many processes as the function's concurrency allows. Only
//! `PROVIDER_CALLS_PER_DAY` holds for all of them together: a provider may charge more than the tool's price.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use base::clock::Clock;
use base::tool_result::{ErrorCode, ToolError, Unavailable};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::config::{ProvidersConfig, Redacted};
use crate::http::log;
use crate::net::{PlainAnswer, PlainError, PlainHttp};
use crate::store::aws::SignedHttp;
use crate::store::{Db, StoreError, daily};

/// Maximum number of attempts for one request.
const ATTEMPTS: u32 = 3;
/// First pause before a retry, doubled each time, if the provider asks for none.
const PAUSE: Duration = Duration::from_millis(250);
/// After this many failures in a row, a host is not called for this long.
const FAILURES: u32 = 5;
const REST: Duration = Duration::from_secs(30);
/// After a pause, the requests of this many seconds may be sent at once.
const BURST_SECS: f64 = 1.0;

/// Sends requests to providers.
pub struct Outbound {
    http: PlainHttp,
    signed: SignedHttp,
    config: ProvidersConfig,
    user_agent: String,
    /// By origin and lane.
    hosts: Mutex<HashMap<(String, Lane), Host>>,
    keys: OnceCell<HashMap<String, Redacted>>,
    /// Counts the calls of a day.
    counters: Option<(Db, Clock)>,
}

/// A request to a provider.
#[derive(Clone, Debug)]
pub struct Ask {
    pub method: http::Method,
    /// Path and query, appended to the provider's origin.
    pub path: String,
    pub headers: Vec<(&'static str, Redacted)>,
    /// Content type and body.
    pub body: Option<(&'static str, Vec<u8>)>,
    /// Whether a second identical request is harmless: false for anything that sends, orders or costs per call.
    pub repeatable: bool,
    /// Maximum number of requests per second to its host.
    pub per_second: f64,
    pub lane: Lane,
}

/// Requests that others must not hold up, or that must not hold up others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    Work,
    /// Somebody on the phone waits for the answer.
    Live,
    /// For free reads. Counted apart in the day: as many as there may be others.
    Reads,
}

impl Ask {
    /// A request that changes nothing.
    pub fn get(path: impl Into<String>) -> Ask {
        let (path, headers) = (path.into(), Vec::new());
        Ask {
            method: http::Method::GET,
            path,
            headers,
            body: None,
            repeatable: true,
            per_second: 5.0,
            lane: Lane::Work,
        }
    }

    /// A POST with a JSON body that changes nothing.
    pub fn post(path: impl Into<String>, body: &Value) -> Ask {
        let body = Some(("application/json", body.to_string().into_bytes()));
        Ask { method: http::Method::POST, body, ..Ask::get(path) }
    }

    /// The same request in this lane.
    pub fn on(self, lane: Lane) -> Ask {
        Ask { lane, ..self }
    }

    /// Adds a header. Its value appears in no error.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Ask {
        self.headers.push((name, Redacted::new(value)));
        self
    }
}

/// Why there is no usable response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboundError {
    /// No key, or an invalid address or header.
    NotConfigured(String),
    /// No request was sent: paused after failures, or no connection.
    NotAsked(String),
    /// The request may have arrived; its effect is not known.
    Unknown(String),
    /// It answered 429, or our own rate limit or daily limit is reached.
    TooMany,
    /// It answered 401 or 403.
    Unauthorized(u16),
    /// It answered with another unexpected status.
    Refused(u16),
    /// Its response cannot be parsed.
    Unreadable(String),
    /// It answered with a success status, but reported a failure.
    Failed(String),
}

/// The text for callers, to follow the provider's name. Hosts, causes and settings are only in [`OutboundError::detail`].
impl fmt::Display for OutboundError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutboundError::NotConfigured(_) => f.write_str("is not configured here"),
            OutboundError::NotAsked(_) => f.write_str("could not be reached"),
            OutboundError::Unknown(_) => f.write_str("did not answer"),
            OutboundError::TooMany => f.write_str("is busy; try again later"),
            OutboundError::Unauthorized(status) => write!(f, "refused this deployment (HTTP {status})"),
            OutboundError::Refused(status) => write!(f, "answered HTTP {status}"),
            OutboundError::Unreadable(_) => f.write_str("sent an unreadable answer"),
            OutboundError::Failed(_) => f.write_str("reported that it failed"),
        }
    }
}

impl std::error::Error for OutboundError {}

impl OutboundError {
    /// The text with its cause, for the log.
    pub fn detail(&self) -> String {
        match self {
            OutboundError::NotConfigured(why)
            | OutboundError::NotAsked(why)
            | OutboundError::Unknown(why)
            | OutboundError::Unreadable(why)
            | OutboundError::Failed(why) => format!("{self}: {why}"),
            _ => self.to_string(),
        }
    }

    /// The job's error. It names the provider but not its answer.
    pub fn of(&self, provider: &str) -> ToolError {
        // The other errors were logged by `Outbound::send`.
        if matches!(self, OutboundError::NotConfigured(_) | OutboundError::Unreadable(_) | OutboundError::Failed(_)) {
            log::failure(&format!("{provider} failed"), &self.detail());
        }
        let message = format!("{provider} {self}");
        match self {
            OutboundError::NotConfigured(_) => ToolError::unavailable(Unavailable::ProviderNotConfigured, message),
            OutboundError::TooMany => {
                let reason = Some(Unavailable::SourceUnavailable.as_str().to_owned());
                ToolError { code: ErrorCode::RateLimited, reason, message }
            }
            OutboundError::Unauthorized(_) => {
                let reason = Some(Unavailable::ProviderNotConfigured.as_str().to_owned());
                ToolError { code: ErrorCode::ProviderAuth, reason, message }
            }
            _ => ToolError::unavailable(Unavailable::SourceUnavailable, message),
        }
    }
}

/// The state of a host, for the requests of one lane.
struct Host {
    /// When the next request would be due at the permitted rate.
    next: Instant,
    failures: u32,
    rests_until: Option<Instant>,
}

impl Outbound {
    pub fn new(http: PlainHttp, signed: SignedHttp, config: &ProvidersConfig, user_agent: &str) -> Outbound {
        Outbound {
            http,
            signed,
            config: config.clone(),
            user_agent: user_agent.to_owned(),
            hosts: Mutex::default(),
            keys: OnceCell::new(),
            counters: None,
        }
    }

    /// Enables the daily limits (`PROVIDER_CALLS_PER_DAY`).
    pub fn counted(self, db: Db, clock: Clock) -> Outbound {
        Outbound { counters: Some((db, clock)), ..self }
    }

    /// Counts a call of a provider that has a daily limit.
    async fn count(&self, provider: &str, lane: Lane) -> Result<(), OutboundError> {
        let (Some(most), Some((db, clock))) = (self.config.calls_a_day.get(provider), &self.counters) else {
            return Ok(());
        };
        let counter = match lane {
            Lane::Work | Lane::Live => format!("RATE#provider:{provider}#calls"),
            Lane::Reads => format!("RATE#provider:{provider}#reads"),
        };
        match daily::take(db, counter, *most, clock.now()).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                log::failure(
                    &format!("{provider} has reached its daily limit"),
                    &format_args!("{most} calls were made"),
                );
                Err(OutboundError::TooMany)
            }
            Err(error) => {
                log::failure("a provider's calls could not be counted", &error);
                Err(OutboundError::NotAsked("its calls could not be counted".to_owned()))
            }
        }
    }

    /// The address that `PROVIDER_URLS` has for a provider.
    pub fn origin(&self, provider: &str) -> Option<&str> {
        self.config.urls.get(provider).map(String::as_str)
    }

    /// The provider's key: from `PROVIDER_KEYS`, or from the secret `PROVIDER_KEYS_SECRET_ARN`, which is read once.
    pub async fn key(&self, provider: &str) -> Result<Option<Redacted>, StoreError> {
        let keys = self
            .keys
            .get_or_try_init(|| async {
                let Some(arn) = &self.config.keys_secret_arn else { return Ok::<_, StoreError>(HashMap::new()) };
                let text = self.signed.secret(arn).await?;
                let keys: HashMap<String, String> = serde_json::from_str(&text)
                    .map_err(|_| StoreError::new("the secret PROVIDER_KEYS_SECRET_ARN is not an object of strings"))?;
                Ok(keys.into_iter().map(|(name, key)| (name, Redacted::new(key))).collect())
            })
            .await?;
        Ok(self.config.keys.get(provider).or_else(|| keys.get(provider)).cloned())
    }

    /// The provider's key; an error if there is none.
    pub async fn needed_key(&self, provider: &str) -> Result<Redacted, OutboundError> {
        let key = self.key(provider).await.map_err(|error| {
            log::failure("the providers' keys could not be read", &error);
            OutboundError::NotAsked("its key could not be read".to_owned())
        })?;
        key.ok_or_else(|| OutboundError::NotConfigured(format!("PROVIDER_KEYS has no {provider}")))
    }

    /// Sends a request, with retries, until `deadline`. Returns responses with status 200 to 299 or one of `expected`.
    pub async fn send(
        &self,
        provider: &str,
        own_origin: &str,
        ask: &Ask,
        expected: &[u16],
        deadline: Instant,
    ) -> Result<PlainAnswer, OutboundError> {
        let origin = self.config.urls.get(provider).map_or(own_origin, String::as_str);
        let queue = (origin.to_owned(), ask.lane);
        let mut attempt = 1;
        loop {
            self.count(provider, ask.lane).await?;
            self.take_turn(&queue, ask.per_second, deadline).await?;
            let exchange = tokio::time::timeout_at(deadline, self.http.send(self.request(origin, ask)?)).await;
            let (error, named) = match exchange {
                Ok(Ok(answer)) if answer.status / 100 == 2 || expected.contains(&answer.status) => {
                    self.note(&queue, true);
                    return Ok(answer);
                }
                Ok(Ok(answer)) => (refusal(answer.status), answer.retry_after),
                Ok(Err(PlainError::NotSent(why))) => (OutboundError::NotAsked(why), None),
                Ok(Err(PlainError::Lost(why))) => (OutboundError::Unknown(why), None),
                Err(_) => (OutboundError::Unknown("no answer in time".to_owned()), None),
            };
            let theirs = matches!(&error, OutboundError::Refused(400..=499) | OutboundError::Unauthorized(_));
            // A refusal also resets the failure count, because the host answered.
            self.note(&queue, theirs || error == OutboundError::TooMany);
            let again = match &error {
                OutboundError::NotAsked(_) => true,
                // A request refused with 429 was not processed, so a retry is harmless.
                OutboundError::TooMany => true,
                OutboundError::Unknown(_) | OutboundError::Refused(500..) => ask.repeatable,
                _ => false,
            };
            let pause = named.unwrap_or(PAUSE * 2u32.pow(attempt - 1));
            if !again || attempt == ATTEMPTS || Instant::now() + pause >= deadline {
                log::failure(&format!("{provider} failed"), &error.detail());
                return Err(error);
            }
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    /// Like [`Outbound::send`], and parses the response as JSON.
    pub async fn json(
        &self,
        provider: &str,
        own_origin: &str,
        ask: &Ask,
        expected: &[u16],
        deadline: Instant,
    ) -> Result<(u16, Value), OutboundError> {
        let answer = self.send(provider, own_origin, ask, expected, deadline).await?;
        Ok((answer.status, read_json(&answer)?))
    }

    fn request(&self, origin: &str, ask: &Ask) -> Result<http::Request<Vec<u8>>, OutboundError> {
        let mut request = http::Request::builder()
            .method(ask.method.clone())
            .uri(format!("{origin}{}", ask.path))
            .header("user-agent", &self.user_agent)
            .header("accept", "application/json");
        for (name, value) in &ask.headers {
            let not_a_header = |_| OutboundError::NotConfigured(format!("the value of {name} is not a valid header"));
            let mut value = http::HeaderValue::try_from(value.expose()).map_err(not_a_header)?;
            value.set_sensitive(true);
            // Replaces a default header of the same name.
            request.headers_mut().into_iter().for_each(|headers| drop(headers.insert(*name, value.clone())));
        }
        let body = match &ask.body {
            Some((content_type, body)) => {
                request = request.header("content-type", *content_type);
                body.clone()
            }
            None => Vec::new(),
        };
        request.body(body).map_err(|_| OutboundError::NotConfigured("its address is not a valid URL".to_owned()))
    }

    /// Waits until the rate limit permits this request, if that is before the deadline.
    async fn take_turn(&self, queue: &(String, Lane), per_second: f64, deadline: Instant) -> Result<(), OutboundError> {
        let now = Instant::now();
        let turn = {
            let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
            let step = Duration::from_secs_f64(1.0 / per_second.max(0.01));
            // At very low rates, one interval without requests is enough for the next request to be sent at once.
            let quiet = Duration::from_secs_f64(BURST_SECS).max(step);
            let host = hosts.entry(queue.clone()).or_insert_with(|| Host::new(now, quiet));
            if let Some(until) = host.rests_until {
                if now < until {
                    return Err(OutboundError::NotAsked("it failed repeatedly and is paused for a while".to_owned()));
                }
                // This call tests the host. Other calls fail until its outcome is known.
                host.rests_until = Some(now + REST);
            }
            let earliest = now.checked_sub(quiet).unwrap_or(now);
            let next = host.next.max(earliest) + step;
            if next > deadline {
                return Err(OutboundError::TooMany);
            }
            host.next = next;
            next
        };
        tokio::time::sleep_until(turn).await;
        Ok(())
    }

    fn note(&self, queue: &(String, Lane), lives: bool) {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(host) = hosts.get_mut(queue) else { return };
        if lives {
            (host.failures, host.rests_until) = (0, None);
        } else {
            host.failures += 1;
            if host.failures >= FAILURES {
                host.rests_until = Some(Instant::now() + REST);
            }
        }
    }
}

#[cfg(any(test, feature = "test-support"))]
impl Outbound {
    /// A client with these environment variables, for tests of adapters.
    pub fn of(variables: &[(&str, &str)]) -> Outbound {
        let given =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        let pay_to = |name: &str| (name == "PAY_TO").then(|| "0x00000000000000000000000000000000000000ff".to_owned());
        let config = crate::config::Config::read(|name| given(name).or_else(|| pay_to(name))).expect("a configuration");
        let http = PlainHttp::new(None);
        let signed = SignedHttp::new(http.clone(), &config.aws);
        Outbound::new(http, signed, &config.providers, "Agora/1 (+tests)")
    }
}

/// Parses a response as JSON.
pub fn read_json(answer: &PlainAnswer) -> Result<Value, OutboundError> {
    let (status, size) = (answer.status, answer.body.len());
    let unreadable = |_| OutboundError::Unreadable(format!("status {status} with {size} bytes, not JSON"));
    serde_json::from_slice(&answer.body).map_err(unreadable)
}

impl Host {
    fn new(now: Instant, quiet: Duration) -> Host {
        let next = now.checked_sub(quiet).unwrap_or(now);
        Host { next, failures: 0, rests_until: None }
    }
}

fn refusal(status: u16) -> OutboundError {
    match status {
        429 => OutboundError::TooMany,
        401 | 403 => OutboundError::Unauthorized(status),
        status => OutboundError::Refused(status),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;

    use axum::extract::State;
    use axum::http::{HeaderMap, StatusCode};
    use axum::response::{IntoResponse, Response};

    use super::*;

    /// The responses of a server, in order: status, `Retry-After` and delay.
    type Script = Arc<Mutex<(VecDeque<(u16, Option<&'static str>, Duration)>, Vec<HeaderMap>)>>;

    async fn answer(State(script): State<Script>, headers: HeaderMap) -> Response {
        let next = {
            let mut script = script.lock().unwrap();
            script.1.push(headers);
            script.0.pop_front()
        };
        let (status, retry_after, pause) = next.unwrap_or((200, None, Duration::ZERO));
        tokio::time::sleep(pause).await;
        let mut response = (StatusCode::from_u16(status).unwrap(), "{\"ok\":true}").into_response();
        if let Some(seconds) = retry_after {
            response.headers_mut().insert("retry-after", seconds.parse().unwrap());
        }
        response
    }

    async fn peer(answers: &[(u16, Option<&'static str>, u64)]) -> (Outbound, Script) {
        let answers = answers.iter().map(|(status, after, millis)| (*status, *after, Duration::from_millis(*millis)));
        let script: Script = Arc::new(Mutex::new((answers.collect(), Vec::new())));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let urls = format!("{{\"peer\": \"http://{}\"}}", listener.local_addr().unwrap());
        let router = axum::Router::new().fallback(answer).with_state(script.clone());
        tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        let keys = "{\"peer\": \"a-secret-key\"}";
        (Outbound::of(&[("PROVIDER_URLS", &urls), ("PROVIDER_KEYS", keys)]), script)
    }

    fn soon(millis: u64) -> Instant {
        Instant::now() + Duration::from_millis(millis)
    }

    async fn ask(outbound: &Outbound, ask: &Ask, millis: u64) -> Result<(u16, Value), OutboundError> {
        outbound.json("peer", "https://peer.invalid", ask, &[404], soon(millis)).await
    }

    fn heard(script: &Script) -> usize {
        script.lock().unwrap().1.len()
    }

    #[tokio::test]
    async fn only_harmless_requests_are_retried() {
        let get = Ask::get("/a?b=c");
        let order = Ask { repeatable: false, ..Ask::post("/order", &serde_json::json!({"n": 1})) };
        for (answers, ask_for, outcome, times) in [
            (vec![(503, None, 0), (200, None, 0)], &get, Ok(200), 2),
            (vec![(503, None, 0), (200, None, 0)], &order, Err(OutboundError::Refused(503)), 1),
            // 429 means that the request was not processed.
            (vec![(429, None, 0), (200, None, 0)], &order, Ok(200), 2),
            (vec![(429, Some("60"), 0)], &get, Err(OutboundError::TooMany), 1),
            (vec![(500, None, 0); 3], &get, Err(OutboundError::Refused(500)), 3),
            (vec![(400, None, 0)], &get, Err(OutboundError::Refused(400)), 1),
            (vec![(401, None, 0)], &get, Err(OutboundError::Unauthorized(401)), 1),
            (vec![(404, None, 0)], &get, Ok(404), 1),
            (vec![(200, None, 5_000)], &order, Err(OutboundError::Unknown("no answer in time".to_owned())), 1),
        ] {
            let (outbound, script) = peer(&answers).await;
            let answered = ask(&outbound, ask_for, 3_000).await.map(|(status, _)| status);
            assert_eq!((answered, heard(&script)), (outcome, times), "{answers:?}");
        }
    }

    #[tokio::test]
    async fn a_host_that_keeps_failing_is_paused() {
        let (outbound, script) = peer(&[(500, None, 0); 12]).await;
        let once = Ask { repeatable: false, ..Ask::get("/") };
        for _ in 0..FAILURES {
            assert_eq!(ask(&outbound, &once, 3_000).await, Err(OutboundError::Refused(500)));
        }
        assert!(matches!(ask(&outbound, &once, 3_000).await, Err(OutboundError::NotAsked(_))));
        assert_eq!(heard(&script), 5);
    }

    #[tokio::test]
    async fn requests_to_a_host_stay_below_its_rate() {
        let (outbound, script) = peer(&[]).await;
        let slow = Ask { per_second: 2.0, ..Ask::get("/") };
        // Two are sent at once after a second without requests, then one every half second. A call that would wait beyond
        // its deadline fails.
        let begun = Instant::now();
        let asked = futures_util::future::join_all((0..6).map(|_| ask(&outbound, &slow, 1_200))).await;
        let answered = asked.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!((answered, heard(&script)), (4, 4), "{asked:?}");
        assert!(begun.elapsed() >= Duration::from_millis(950));
        assert!(asked.contains(&Err(OutboundError::TooMany)));
    }

    #[tokio::test]
    async fn the_requests_of_a_lane_neither_delay_nor_pause_others() {
        let (outbound, script) = peer(&[(500, None, 0); 5]).await;
        let once = Ask { repeatable: false, ..Ask::get("/") };
        for _ in 0..FAILURES {
            assert_eq!(ask(&outbound, &once, 3_000).await, Err(OutboundError::Refused(500)));
        }
        assert!(matches!(ask(&outbound, &once, 3_000).await, Err(OutboundError::NotAsked(_))), "paused");
        assert!(ask(&outbound, &once.on(Lane::Live), 3_000).await.is_ok());
        assert_eq!(heard(&script), 6);

        let (outbound, _) = peer(&[]).await;
        let slow = Ask { per_second: 0.1, ..Ask::get("/") };
        assert!(ask(&outbound, &slow, 3_000).await.is_ok());
        assert_eq!(ask(&outbound, &slow, 3_000).await, Err(OutboundError::TooMany), "the next is due in ten seconds");
        assert!(ask(&outbound, &slow.on(Lane::Live), 3_000).await.is_ok());
    }

    #[tokio::test]
    async fn keys_are_sent_only_to_their_provider() {
        let (outbound, script) = peer(&[(500, None, 0)]).await;
        let key = outbound.needed_key("peer").await.unwrap();
        let with_key = Ask { repeatable: false, ..Ask::get("/").header("x-api-key", key.expose()) };
        assert!(!format!("{with_key:?}").contains("a-secret-key"));
        let error = ask(&outbound, &with_key, 2_000).await.unwrap_err();
        assert!(!error.of("peer").message.contains("a-secret-key"));
        let sent = script.lock().unwrap().1[0].clone();
        assert_eq!(sent["x-api-key"], "a-secret-key");
        assert!(sent["user-agent"].to_str().unwrap().starts_with("Agora/"));
        let missing = outbound.needed_key("other").await.unwrap_err();
        assert!(missing.detail().ends_with("PROVIDER_KEYS has no other"), "for the log");
        assert_eq!(missing.of("other").reason.as_deref(), Some("provider_not_configured"));
    }

    #[tokio::test]
    async fn callers_get_a_short_reason_and_only_the_log_gets_the_cause() {
        // Nobody listens there; the connector's own error is not for callers.
        let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let outbound = Outbound::of(&[("PROVIDER_URLS", &format!("{{\"peer\": \"http://{gone}\"}}"))]);
        let once = Ask { repeatable: false, ..Ask::get("/") };
        let error = ask(&outbound, &once, 300).await.unwrap_err();
        assert_eq!(error.of("peer").message, "peer could not be reached");
        assert!(error.detail().len() > "could not be reached: ".len(), "{}", error.detail());
        let why = || "client error (Connect): dns error: 10.0.0.7:53".to_owned();
        for (error, told) in [
            (OutboundError::NotConfigured(why()), "peer is not configured here"),
            (OutboundError::NotAsked(why()), "peer could not be reached"),
            (OutboundError::Unknown(why()), "peer did not answer"),
            (OutboundError::TooMany, "peer is busy; try again later"),
            (OutboundError::Unauthorized(403), "peer refused this deployment (HTTP 403)"),
            (OutboundError::Refused(502), "peer answered HTTP 502"),
            (OutboundError::Unreadable(why()), "peer sent an unreadable answer"),
            (OutboundError::Failed(why()), "peer reported that it failed"),
        ] {
            assert_eq!(error.of("peer").message, told);
        }
    }
}
