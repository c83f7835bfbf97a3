//! Posts deliveries to their receivers: one attempt at a time, with its outcome stored.
//!
//! A receiver that does not answer must not delay the others. Three rules ensure that. An endpoint whose attempt failed
//! slowly rests, and after the rest one trial attempt goes first. A process sends at most two requests to a host at a time.
//! Deliveries that waited for their turn behind a slow failure are postponed. A postponed delivery keeps all its attempts,
//! for a day.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base::clock::{Clock, Timestamp};
use base::ids::{AgentId, EndpointId, EventId};
use base::untrusted_text::visible;
use platform::config::{Config, Platforms};
use platform::http::log;
use platform::net::{FetchError, FetchPolicy, Fetcher, Posted};
use platform::store::queue::{MAX_DELAY, Queue};
use platform::store::{Db, StoreError, Write, WriteError};
use serde_json::json;
use tokio::sync::Semaphore;
use url::Url;

use super::delivery::{self, Attempt, Delivery, DeliveryState, Failure, MAX_TRIES};
use super::endpoint::{self, Endpoint};
use super::secret::{self, Secret, SigningKey};
use super::{EventKind, outbox};
use crate::day;
use crate::notifications::{self, Notification, NotificationKind};

/// Timeout of an attempt.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A failed attempt that took longer than this makes the endpoint rest.
const SLOW: Duration = Duration::from_secs(3);
/// Concurrent requests of one process to one host.
const AT_ONCE_TO_A_HOST: usize = 2;
/// Bytes of an answer that are logged.
const ANSWER_BYTES: usize = 1024;
/// A delivery that is still postponed this long after its round began is given up.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Delivers events.
pub struct Courier {
    pub db: Db,
    pub clock: Clock,
    /// The queue of deliveries.
    pub queue: Arc<dyn Queue>,
    keys: SigningKey,
    service_name: String,
    /// Agents whose webhook secrets are configured instead of derived.
    platforms: Platforms,
    fetcher: Fetcher,
    hosts: Mutex<HashMap<String, Arc<Host>>>,
}

/// This process's use of a host.
struct Host {
    turns: Semaphore,
    /// Time of the last slow failure.
    silent: Mutex<Option<Instant>>,
}

/// The outcome of an attempt.
struct Outcome {
    attempt: Attempt,
    delivered: bool,
    /// The receiver answered 410.
    gone: bool,
    retry_after: Option<Duration>,
    slow: bool,
}

impl Courier {
    /// `policy` allows addresses outside the public internet.
    pub fn new(
        db: Db,
        clock: Clock,
        queue: Arc<dyn Queue>,
        keys: SigningKey,
        config: &Config,
        policy: FetchPolicy,
    ) -> Result<Courier, StoreError> {
        let contact = config.base_url.as_deref().unwrap_or("webhooks for software agents");
        let user_agent = format!("{}-Webhooks/{} (+{contact})", config.service_name, env!("CARGO_PKG_VERSION"));
        let mut policy = policy;
        policy.deadline = TIMEOUT;
        let fetcher = Fetcher::new(policy, &user_agent).map_err(StoreError::new)?;
        let (service_name, platforms) = (config.service_name.clone(), config.platforms.clone());
        Ok(Courier { db, clock, queue, keys, service_name, platforms, fetcher, hosts: Mutex::default() })
    }

    /// Makes one attempt at a delivery, if it is due and not leased.
    pub async fn deliver(&self, agent: AgentId, endpoint: EndpointId, event: EventId) -> Result<(), StoreError> {
        let now = self.clock.now();
        let Some(delivery) = delivery::lease(&self.db, (agent, endpoint, event), now).await? else { return Ok(()) };
        let Some(endpoint) = endpoint::load(&self.db, agent, endpoint).await?.filter(|found| found.disabled.is_none())
        else {
            return self.finish(&[delivery.end(&self.db, DeliveryState::Cancelled, None)?]).await;
        };
        if delivery.tries > MAX_TRIES {
            let attempt = Attempt { at: now, ms: 0, status: None, failure: Some(Failure::Lost), answer: None };
            return self.give_up(&delivery, &endpoint, attempt).await;
        }
        if let Some(until) = self.resting(&endpoint, now).await? {
            return self.put_off(&delivery, &endpoint, until).await;
        }
        let host = self.host(&endpoint.url);
        let waiting = Instant::now();
        // The semaphore is never closed.
        let Ok(_turn) = host.turns.acquire().await else { return Ok(()) };
        if host.silent.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| at > waiting) {
            return self.put_off(&delivery, &endpoint, now.plus(endpoint::rest_after(1))).await;
        }
        let outcome = self.attempt(&delivery, &endpoint).await;
        if outcome.slow {
            *host.silent.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
        self.write_down(&delivery, &endpoint, outcome).await
    }

    /// The end of the endpoint's rest, or `None` if it may be sent to. After a rest, only one delivery makes the trial
    /// attempt.
    async fn resting(&self, endpoint: &Endpoint, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let Some(until) = endpoint.resting else { return Ok(None) };
        if now < until {
            return Ok(Some(until));
        }
        let probed = now.plus(delivery::LEASE);
        match self.db.write(endpoint::probe(&self.db, endpoint, probed)?).await {
            Ok(_) => Ok(None),
            Err(WriteError::Refused(_)) => Ok(Some(probed)),
            Err(WriteError::Failed(error)) => Err(error),
        }
    }

    async fn put_off(&self, delivery: &Delivery, endpoint: &Endpoint, until: Timestamp) -> Result<(), StoreError> {
        let now = self.clock.now();
        if now > delivery.queued.plus(PATIENCE) {
            let answer = Some("the receiver did not answer for a day".to_owned());
            let attempt = Attempt { at: now, ms: 0, status: None, failure: Some(Failure::Timeout), answer };
            return self.give_up(delivery, endpoint, attempt).await;
        }
        // Postponed deliveries are spread over four more rests, so that they do not all become due at the end of the same
        // rest.
        let spread = u32::from(delivery.event.ulid().to_bytes()[15]);
        let until = until.plus(endpoint::rest_after(endpoint.strikes) * spread / 64);
        self.finish(&[delivery.put_off(&self.db, until)?]).await?;
        self.remind(delivery, until, now).await;
        Ok(())
    }

    /// Queues the next attempt with a delay. A longer wait than the queue allows is left to the sweeper.
    async fn remind(&self, delivery: &Delivery, next: Timestamp, now: Timestamp) {
        let wait = Duration::from_millis(u64::try_from(next.millis() - now.millis()).unwrap_or_default());
        if wait <= MAX_DELAY {
            let message = outbox::message(delivery.agent, delivery.endpoint, delivery.event);
            outbox::send_or_log(&*self.queue, &message, wait).await;
        }
    }

    fn host(&self, url: &str) -> Arc<Host> {
        let url = Url::parse(url).ok();
        let name = url.map(|url| format!("{:?}:{:?}", url.host_str(), url.port_or_known_default())).unwrap_or_default();
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        // Hosts without a running delivery are dropped, so the map does not grow.
        hosts.retain(|_, host| Arc::strong_count(host) > 1);
        let new = || Arc::new(Host { turns: Semaphore::new(AT_ONCE_TO_A_HOST), silent: Mutex::default() });
        hosts.entry(name).or_insert_with(new).clone()
    }

    async fn attempt(&self, delivery: &Delivery, endpoint: &Endpoint) -> Outcome {
        let (at, started) = (self.clock.now(), Instant::now());
        let id = delivery.event.to_string();
        let message = secret::Message { id: &id, body: &delivery.body, is_order: delivery.kind.is_order() };
        let configured = self.platforms.key_of(endpoint.agent).map(|key| vec![Secret::of(key)]);
        let secrets = configured.unwrap_or_else(|| endpoint.secrets(&self.keys, at));
        let headers = secret::headers(&message, &secrets, &self.service_name, at);
        let body = delivery.body.clone().into_bytes();
        let answered = self.fetcher.post(&endpoint.url, &headers, body, ANSWER_BYTES).await;
        let took = started.elapsed();
        let outcome = judge(answered, at, took);
        let (status, failure) = (outcome.attempt.status, outcome.attempt.failure);
        log::event(
            "delivery",
            json!({"event": id, "endpoint": endpoint.id, "try": delivery.tries, "status": status, "failure": failure,
                   "ms": outcome.attempt.ms}),
        );
        outcome
    }

    async fn write_down(&self, delivery: &Delivery, endpoint: &Endpoint, outcome: Outcome) -> Result<(), StoreError> {
        let now = self.clock.now();
        let failed = outcome.attempt.failure.is_some();
        if failed && outcome.slow {
            self.finish(&[endpoint::strike(&self.db, endpoint, now)?]).await?;
        } else if endpoint.resting.is_some() {
            self.finish(&[endpoint::recovered(&self.db, endpoint)?]).await?;
        }
        if outcome.delivered {
            return self.finish(&[delivery.end(&self.db, DeliveryState::Delivered, Some(outcome.attempt))?]).await;
        }
        if outcome.gone {
            // Written first and alone: if this worker dies before the next write, the endpoint is already disabled.
            let told = self.note(endpoint, delivery, "the receiver answered 410 and was disabled", now)?;
            self.finish(&[endpoint::disable(&self.db, endpoint)?, told]).await?;
            return self.finish(&[delivery.end(&self.db, DeliveryState::Dead, Some(outcome.attempt))?]).await;
        }
        let Some(next) = delivery.next_after(outcome.retry_after, now) else {
            return self.give_up(delivery, endpoint, outcome.attempt).await;
        };
        self.finish(&[delivery.again(&self.db, next, outcome.attempt)?]).await?;
        self.remind(delivery, next, now).await;
        Ok(())
    }

    /// Ends a failed delivery and notifies its owner, except for a test event, whose outcome the owner looks up.
    async fn give_up(&self, delivery: &Delivery, endpoint: &Endpoint, last: Attempt) -> Result<(), StoreError> {
        let mut writes = vec![delivery.end(&self.db, DeliveryState::Dead, Some(last))?];
        if delivery.kind != EventKind::Test {
            writes.push(self.note(endpoint, delivery, "events could not be delivered", self.clock.now())?);
        }
        self.finish(&writes).await
    }

    /// At most one notification per endpoint, message and day.
    fn note(&self, endpoint: &Endpoint, delivery: &Delivery, what: &str, now: Timestamp) -> Result<Write, StoreError> {
        let host = Url::parse(&endpoint.url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
        let note = Notification {
            kind: NotificationKind::WebhookFailed,
            title: format!("{host}: {what}"),
            body: Some(format!("You can read and replay the attempts at /v1/webhooks/{}/deliveries.", endpoint.id)),
            payload: Some(json!({
                "webhook_id": endpoint.id, "url": endpoint.url, "event_id": delivery.event, "event_type": delivery.kind,
            })),
        };
        let begin = day::resets_at(now).minus(Duration::from_secs(24 * 3600));
        let cause = format!("webhook#{}#{what}", endpoint.id);
        notifications::raise_for(&self.db, endpoint.agent, note, &cause, begin, now)
    }

    /// A refusal means that somebody else took or changed the delivery or the endpoint: nothing is left to do.
    async fn finish(&self, writes: &[Write]) -> Result<(), StoreError> {
        match self.db.apply(writes.to_vec()).await {
            Ok(()) | Err(WriteError::Refused(_)) => Ok(()),
            Err(WriteError::Failed(error)) => Err(error),
        }
    }
}

fn judge(answered: Result<Posted, FetchError>, at: Timestamp, took: Duration) -> Outcome {
    let ms = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
    let mut attempt = Attempt { at, ms, status: None, failure: None, answer: None };
    let (mut delivered, mut gone, mut retry_after) = (false, false, None);
    match answered {
        Ok(posted) => {
            delivered = (200..300).contains(&posted.status);
            gone = posted.status == 410;
            retry_after = posted.retry_after.as_deref().and_then(|text| seconds_of(text, at));
            attempt.status = Some(posted.status);
            attempt.failure = (!delivered).then_some(Failure::Status);
            attempt.answer = Some(clean(&posted.answer)).filter(|answer| !answer.is_empty());
        }
        Err(error) => {
            attempt.failure = Some(match &error {
                FetchError::NotReachable(_) if took >= TIMEOUT => Failure::Timeout,
                FetchError::NotReachable(_) => Failure::Unreachable,
                FetchError::NotAllowed(_) => Failure::NotAllowed,
                _ => Failure::BadAnswer,
            });
            let words = match &error {
                FetchError::NotReachable(detail) => detail.clone(),
                FetchError::NotAllowed(reason) => format!("the URL {reason}"),
                FetchError::Protocol(detail) => format!("the answer is not usable: {detail}"),
                other => other.to_string(),
            };
            attempt.answer = Some(clean(words.as_bytes()));
        }
    }
    let slow = !delivered && took >= SLOW;
    Outcome { attempt, delivered, gone, retry_after, slow }
}

/// `Retry-After` in seconds or as an HTTP date.
fn seconds_of(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(secs) = text.parse::<u64>() {
        return Some(Duration::from_secs(secs));
    }
    let date = chrono::DateTime::parse_from_rfc2822(text).ok()?;
    u64::try_from(date.timestamp().saturating_sub(now.secs())).ok().map(Duration::from_secs)
}

/// The part of an answer that may be shown to the owner: no control characters, nothing that hides or reorders text.
fn clean(bytes: &[u8]) -> String {
    let line = String::from_utf8_lossy(bytes).replace(['\n', '\r', '\t', '\u{2028}', '\u{2029}'], " ");
    let mut text = String::new();
    for letter in visible(&line).chars() {
        if text.len() + letter.len_utf8() > ANSWER_BYTES {
            break;
        }
        text.push(letter);
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_cleaned_and_cut() {
        assert_eq!(clean(b"a\x1b[31mred\x00\r\n\xe2\x80\xaeb\xff "), "a[31mred  b\u{fffd}");
        assert_eq!(clean(&[b'x'; 5000]).len(), ANSWER_BYTES);
        assert!(clean("ü".repeat(1000).as_bytes()).len() <= ANSWER_BYTES);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = Timestamp::from_secs(784_111_777);
        let secs = |text: &str| seconds_of(text, now).map(|wait| wait.as_secs());
        assert_eq!(secs(" 120 "), Some(120));
        assert_eq!(secs("Sun, 06 Nov 1994 08:51:37 GMT"), Some(120));
        assert_eq!(secs("Sun, 06 Nov 1994 08:00:00 GMT"), None, "it is over");
        for wrong in ["", "-1", "soon", "1.5", "99999999999999999999"] {
            assert_eq!(secs(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_2xx_is_delivered() {
        let judged = |status| {
            let posted = Posted { status, retry_after: None, answer: Vec::new() };
            let outcome = judge(Ok(posted), Timestamp::from_secs(0), Duration::from_secs(4));
            (outcome.delivered, outcome.gone, outcome.slow)
        };
        assert_eq!(judged(200), (true, false, false));
        assert_eq!(judged(299), (true, false, false));
        assert_eq!(judged(302), (false, false, true));
        assert_eq!(judged(410), (false, true, true));
        assert_eq!(judged(101), (false, false, true));
    }
}
