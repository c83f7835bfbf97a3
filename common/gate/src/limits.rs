//! Rate limits, and the switch that stops all paid calls.
//!
//! | class | requests | counted per |
//! |---|---|---|
//! | `paid`, `expensive` | paid calls with a proven payer | agent |
//! | `quote` | prices, dry runs and refused payments of proven callers; questions to the moderation server | agent; without a proof the source address |
//! | `begin` | questions for prices that begin something at a provider | agent; without a proof the source address |
//! | `search` | searches of the marketplace | source address |
//! | `read`, `write` | free routes of an agent or a seller, by method | agent, or soul; writes of tokens separately |
//! | `stop` | writes that stop spending: freezes, caps, revoked tokens, cancelled approvals; a wallet's lists of tokens and freezes | agent; tokens separately |
//! | `open` | routes without identity that write, or where secrets can be guessed | source address |
//! | `register` | registrations of souls with a valid body | source address |
//! | `publish` | new texts and programs, which are stored for long; posts of the local network | soul; agent |
//! | `checkout` | requests about checkout sessions | agent platform |
//! | `public` | large public answers, in KiB ([`weigh`], [`weigh_message`]) | source address; over MCP the wallet of a token |
//! | `export` | audits, exports and long lists, in KiB | agent, or soul |
//! | `result` | large results that are read again and lists of files, in KiB ([`take_result`]) | job and reader ([`Reader`]) |
//! | `stored` | large inputs of paid calls and uploads, in KiB | agent |
//! | `address` | first mail addresses of wallets without money, which are kept for good | source address |
//! | `files` | files that are handed out by link, in KiB ([`crate::links`]) | agent that owns them |
//! | `recording` | openings of links to recordings; questions to a call's provider where its recording is | source address; call, and agent that owns it |
//! | `chain` | chain requests without a purchase ([`may_ask_chain`]) | source address; wallets that have paid separately |
//! | `connect` | new WebSockets | source address |
//! | `connects` | new WebSockets of agents without money ([`Account::is_proven`](ledger::account::Account::is_proven)) | all of them together |
//!
//! An agent is a wallet. Its access tokens count against the wallet's own limits, so minting more tokens gains nothing.
//! Writes of tokens have a separate limit, one for all tokens of an agent: a stolen token must not stop its owner from
//! revoking it. For the same reason, requests that stop spending have a limit of their own. It includes the wallet's lists
//! of tokens and freezes, because tokens share the wallet's `read` limit.
//!
//! A request is counted after its caller is proven, so that nobody can use up another caller's limit, and before any work.
//! Anonymous requests (prices, small public pages) are not counted: they write nothing, and API Gateway throttles them.
//! Traffic and chain requests are counted, because they cost far more than the write that counts them.
//! docs/ABUSE.md has the costs.
//!
//! Windows are fixed and aligned to the clock, one item each. A conditional `ADD` is exact under any concurrency and costs
//! one write unit. A refused request changes nothing, except that its proof is used up. Fixed windows allow up to two
//! windows' worth of requests around a boundary.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base::clock::{Lately, Timestamp};
use base::ids::{AgentId, RequestId};
use http::{HeaderMap, Method};
use platform::auth::{Caller, Scope};
pub use platform::http::limit::{Owned, Taken};
use platform::http::{ApiError, limit, log};
use platform::store::db::parse;
use platform::store::{Key, StoreError, Write, WriteError};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::Deserialize;
use serde_json::json;
use tools::files::Reader;
use uuid::Uuid;

use crate::app::App;
use crate::jobs::Job;
use crate::jobs::job::Place;

/// A group of requests with one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Paid calls.
    Paid,
    /// Paid calls that keep a provider busy for long: voice calls, research. Not counted under `Paid` too.
    Expensive,
    /// Prices told to a proven caller that buys nothing. Counted apart from `Read`, so that asking for prices does not use
    /// up what the polling of jobs needs.
    Quote,
    /// Questions for prices that begin something at a provider ([`tools::quoting::Quoter::begins`]): it has limits of its own.
    Begin,
    Read,
    Write,
    /// Writes that stop spending, and a proven wallet's lists of tokens and freezes.
    Stop,
    /// Routes without identity that write, or where secrets can be guessed.
    Open,
    /// Searches of the marketplace.
    Search,
    /// Registrations of souls.
    Register,
    /// New texts and programs of a soul, blobs that are stored for long; its new names and bios, whose words stay in the
    /// search index's vocabulary. Posts of a member of the local network.
    Publish,
    /// Checkout sessions of a platform, for all its buyers together.
    Checkout,
    /// Large public answers, in KiB.
    Public,
    /// Audits, exports and long lists of receipts and sold jobs, in KiB.
    Export,
    /// Large results of jobs and lists of their files, in KiB.
    Result,
    /// Large inputs of paid calls, and uploads for them, in KiB: blobs that stay when the call fails and is paid back.
    Stored,
    /// First mail addresses of wallets without money.
    Address,
    /// Files that are handed out by link: attachments of mails, screenshots. In KiB.
    Files,
    /// Openings of links to recordings of calls, and questions to providers where these are.
    Recording,
    /// Chain requests for payments and proofs that turned out invalid.
    Chain,
    /// New WebSockets.
    Connect,
    /// New WebSockets of all callers together.
    ConnectAll,
}

/// A number of requests, or KiB, per window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    pub name: &'static str,
    pub count: u32,
    pub window: Duration,
}

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

impl Class {
    /// The table of limits. `RATE_LIMIT_SCALE` multiplies every one.
    pub const fn limit(self) -> Limit {
        match self {
            Class::Paid => Limit { name: "paid", count: 60, window: MINUTE },
            Class::Expensive => Limit { name: "expensive", count: 10, window: MINUTE },
            Class::Quote => Limit { name: "quote", count: 120, window: MINUTE },
            Class::Begin => Limit { name: "begin", count: 20, window: DAY },
            Class::Read => Limit { name: "read", count: 120, window: MINUTE },
            Class::Write => Limit { name: "write", count: 60, window: MINUTE },
            Class::Stop => Limit { name: "stop", count: 60, window: MINUTE },
            Class::Open => Limit { name: "open", count: 30, window: MINUTE },
            Class::Search => Limit { name: "search", count: 100, window: HOUR },
            Class::Register => Limit { name: "register", count: 5, window: DAY },
            Class::Publish => Limit { name: "publish", count: 50, window: DAY },
            Class::Checkout => Limit { name: "checkout", count: 600, window: MINUTE },
            Class::Public => Limit { name: "public", count: 6 * 1024, window: MINUTE },
            Class::Export => Limit { name: "export", count: 1024 * 1024, window: DAY },
            Class::Result => Limit { name: "result", count: 20 * 1024, window: DAY },
            Class::Stored => Limit { name: "stored", count: 256 * 1024, window: DAY },
            Class::Address => Limit { name: "address", count: 100, window: DAY },
            Class::Files => Limit { name: "files", count: 1024 * 1024, window: DAY },
            Class::Recording => Limit { name: "recording", count: 30, window: MINUTE },
            Class::Chain => Limit { name: "chain", count: 20, window: MINUTE },
            Class::Connect => Limit { name: "connect", count: 10, window: MINUTE },
            // They cost by the minute for up to two hours: at most 72,000 at a time.
            Class::ConnectAll => Limit { name: "connects", count: 600, window: MINUTE },
        }
    }

    /// The class of a free route: by the request's method if it is known, otherwise by the scope that is needed.
    pub fn of_free(needed: Scope) -> Class {
        if limit::reads().unwrap_or(needed == Scope::Read) { Class::Read } else { Class::Write }
    }
}

/// The owner of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Agent(AgentId),
    /// All access tokens of an agent together.
    Tokens(AgentId),
    /// A seller, by its soul's id.
    Soul(Uuid),
    /// An agent platform, by its token's id.
    Platform(Uuid),
    /// The request's source address. Requests without an address share one limit.
    Source(Option<IpAddr>),
    /// All callers together.
    Everybody,
    /// A reader of a job.
    Job(RequestId, Reader),
}

impl Subject {
    /// The subject that a proven caller's requests of this class are counted for.
    pub fn of(caller: &Caller, class: Class) -> Subject {
        match (class, caller.token()) {
            (Class::Write | Class::Stop, Some(_)) => Subject::Tokens(caller.agent),
            _ => Subject::Agent(caller.agent),
        }
    }

    /// The source address of the current request.
    pub fn source() -> Subject {
        Subject::Source(limit::source())
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Agent(agent) => write!(f, "agent:{agent}"),
            Subject::Tokens(agent) => write!(f, "tokens:{agent}"),
            Subject::Soul(soul) => write!(f, "soul:{soul}"),
            Subject::Platform(platform) => write!(f, "platform:{platform}"),
            Subject::Job(job, Reader::Buyer) => write!(f, "job:{job}"),
            Subject::Job(job, Reader::Seller) => write!(f, "job:{job}:seller"),
            Subject::Job(job, Reader::Named) => write!(f, "job:{job}:named"),
            Subject::Everybody => f.write_str("all"),
            Subject::Source(address) => f.write_str(&limit::name_of(*address)),
        }
    }
}

/// Counts a request, or refuses it with [`ApiError::RateLimited`]. Routers finished by `api::routes::finish` add the rate
/// limit headers to the answer; others call [`Taken::mark`].
pub async fn take(app: &App, subject: Subject, class: Class) -> Result<Taken, ApiError> {
    let turn = RateLimitSlot::now(app, subject, class);
    match app.db.write(turn.count(app)?).await {
        Ok(item) => {
            let Used { used } = parse(item)?;
            let taken = turn.window.taken(used);
            limit::note(taken);
            Ok(taken)
        }
        Err(WriteError::Refused(_)) => Err(turn.refusal()),
        Err(WriteError::Failed(error)) => Err(ApiError::Unavailable(error)),
    }
}

/// Public answers and results up to this size, in bytes, are not counted.
pub const SMALL_ANSWER: usize = 16 * 1024;

/// Counts the bytes of an answer, or of what a request stores. The one that exceeds the limit still passes; the next one is
/// refused. If the database fails, it passes uncounted: an answer needs no database itself, and API Gateway still throttles.
pub async fn take_bytes(app: &App, subject: Subject, class: Class, bytes: usize) -> Result<(), ApiError> {
    let turn = RateLimitSlot::now(app, subject, class);
    match app.db.write(turn.count_many(app, bytes.div_ceil(1024))?).await {
        Ok(_) => Ok(()),
        Err(WriteError::Refused(_)) => Err(turn.refusal()),
        Err(WriteError::Failed(error)) => {
            log::failure("the bytes of a request could not be counted", &error);
            Ok(())
        }
    }
}

/// Middleware: counts the bytes of large public answers for the source address.
pub async fn weigh(State(app): State<App>, request: Request, next: Next) -> Response {
    let has_body = request.method() != Method::HEAD;
    let response = next.run(request).await;
    let bytes = response.body().size_hint().exact().unwrap_or_default();
    match usize::try_from(bytes) {
        Ok(bytes) if has_body && bytes > SMALL_ANSWER => {
            let taken = take_bytes(&app, Subject::source(), Class::Public, bytes).await;
            taken.map_or_else(IntoResponse::into_response, |()| response)
        }
        _ => response,
    }
}

/// Like [`weigh`], for an answer of MCP. One that is owned is always given, because the limits of its owner (`paid`, `read`,
/// `result`, `export`) count it. Any other counts for the wallet of the request's token, or else for the source address.
pub async fn weigh_message(app: &App, headers: &HeaderMap, owned: &Owned, response: Response) -> Response {
    let bytes = usize::try_from(response.body().size_hint().exact().unwrap_or_default()).unwrap_or(usize::MAX);
    if owned.get() || bytes <= SMALL_ANSWER {
        return response;
    }
    let subject = match app.token_holder(headers).await {
        Ok(Some(agent)) => Subject::Agent(agent),
        Ok(None) | Err(_) => Subject::source(),
    };
    let taken = take_bytes(app, subject, Class::Public, bytes).await;
    taken.map_or_else(IntoResponse::into_response, |()| response)
}

/// Counts a result that is read from a blob. Results stored in the job's row are not counted.
pub async fn take_result(app: &App, job: &Job, reader: Reader, bytes: impl FnOnce() -> usize) -> Result<(), ApiError> {
    let is_large = job.result.as_ref().is_some_and(|stored| matches!(stored.place, Place::Blob(_)));
    if !is_large {
        return Ok(());
    }
    take_bytes(app, Subject::Job(job.request_id, reader), Class::Result, bytes()).await
}

/// Counts the bytes of a list that is longer than [`SMALL_ANSWER`]. Counting a short one would cost more than the list.
pub async fn take_list(app: &App, subject: Subject, class: Class, bytes: usize) -> Result<(), ApiError> {
    if bytes <= SMALL_ANSWER {
        return Ok(());
    }
    take_bytes(app, subject, class, bytes).await
}

/// Subjects that used up a limit that is counted afterwards, each with its window, as far as this process knows. Used for
/// questions to the chain.
///
/// A good payment is never counted, because that would be one more write per paid call. A chain request that leads to no
/// purchase is counted afterwards. Once the limit is used up, each process refuses further chain requests. So only about
/// one request per process exceeds the limit.
#[derive(Clone, Debug, Default)]
pub struct Exhausted(Arc<Mutex<HashMap<String, i64>>>);

impl Exhausted {
    fn is_in(&self, turn: &RateLimitSlot) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&turn.name()) == Some(&turn.window.start)
    }

    fn insert(&self, turn: &RateLimitSlot) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, start| *start == turn.window.start);
        known.insert(turn.name(), turn.window.start);
    }
}

/// Refuses a chain request if the subject's limit is known to be used up. Reads nothing.
pub fn may_ask_chain(app: &App, subject: Subject) -> Result<(), ApiError> {
    let turn = RateLimitSlot::now(app, subject, Class::Chain);
    if app.exhausted.is_in(&turn) { Err(turn.refusal()) } else { Ok(()) }
}

/// Counts a chain request that led to no purchase.
pub async fn asked_chain_in_vain(app: &App, subject: Subject) {
    let turn = RateLimitSlot::now(app, subject, Class::Chain);
    let counted = async {
        match app.db.write(turn.count(app)?).await {
            Ok(item) => Ok(turn.is_over(parse::<Used>(item)?.used)),
            Err(WriteError::Refused(_)) => Ok(true),
            Err(WriteError::Failed(error)) => Err(error),
        }
    };
    match counted.await {
        Ok(true) => app.exhausted.insert(&turn),
        Ok(false) => {}
        Err(error) => log::failure("a question to the chain could not be counted", &error),
    }
}

/// A request's slot in its limit. A paid call is counted in the transaction of its claim: exact, without a request of its
/// own, and only purchases are counted.
#[derive(Clone, Copy, Debug)]
pub struct RateLimitSlot {
    subject: Subject,
    window: Window,
}

impl RateLimitSlot {
    pub fn now(app: &App, subject: Subject, class: Class) -> RateLimitSlot {
        RateLimitSlot { subject, window: Window::at(app.clock.now(), class.limit(), app.config.rate_limit_scale) }
    }

    fn name(&self) -> String {
        format!("{}#{}", self.window.name, self.subject)
    }

    /// The write that counts the request. Its condition fails over the limit.
    pub fn count(&self, app: &App) -> Result<Write, StoreError> {
        self.count_many(app, 1)
    }

    fn count_many(&self, app: &App, many: usize) -> Result<Write, StoreError> {
        let key = self.window.key(self.subject);
        Write::update(&app.db.tables.agents, key, "ADD #used :many SET #expires = :expires")
            .only_if("attribute_not_exists(#used) OR #used < :limit")
            .bind("many", many)?
            .bind("limit", self.window.limit)?
            // Twice the window, so that clocks may differ.
            .bind("expires", self.window.start.saturating_add(2 * i64::try_from(self.window.secs).unwrap_or_default()))
    }

    /// The count so far, by an eventually consistent read (half a read unit): it may miss the latest requests, but is never
    /// too high.
    pub async fn used(&self, app: &App) -> Result<u64, StoreError> {
        let found: Option<Used> = app.db.get(&app.db.tables.agents, self.window.key(self.subject)).await?;
        Ok(found.map_or(0, |found| found.used))
    }

    /// Whether nothing is left at this count. A limit that is used up stays so until the window ends.
    pub fn is_over(&self, used: u64) -> bool {
        used >= self.window.limit
    }

    pub fn refusal(&self) -> ApiError {
        ApiError::RateLimited(self.window.taken(self.window.limit))
    }

    /// Sets the values of the rate limit headers: `before`, plus this request. Concurrent requests may leave less than
    /// that.
    pub fn note(&self, before: u64) {
        limit::note(self.window.taken(before.saturating_add(1)));
    }
}

#[derive(Deserialize)]
struct Used {
    used: u64,
}

/// The window that a moment falls into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    name: &'static str,
    limit: u64,
    /// Unix seconds.
    start: i64,
    secs: u64,
    /// Seconds left of it, at least one.
    left: u64,
}

impl Window {
    fn at(now: Timestamp, limit: Limit, scale: Decimal) -> Window {
        let secs = limit.window.as_secs().max(1);
        let into = now.secs().rem_euclid(i64::try_from(secs).unwrap_or(i64::MAX));
        // At least one, however small the scale.
        let scaled = (Decimal::from(limit.count) * scale).to_u64().unwrap_or(u64::from(limit.count)).max(1);
        let left = secs - into.unsigned_abs();
        Window { name: limit.name, limit: scaled, start: now.secs() - into, secs, left }
    }

    fn key(&self, subject: Subject) -> Key {
        Key::new(format!("RATE#{subject}#{}", self.name), self.start.to_string())
    }

    fn taken(&self, used: u64) -> Taken {
        Taken {
            policy: self.name,
            limit: self.limit,
            window_secs: self.secs,
            remaining: self.limit.saturating_sub(used),
            reset_secs: self.left,
        }
    }
}

/// Cache TTL of the stop switch: reading it for every paid call would cost a read unit each.
pub const STOP_SEEN_FOR: Duration = Duration::from_secs(5);

/// The cached state of the stop switch.
#[derive(Clone, Debug, Default)]
pub struct StopSwitch(Lately<Option<String>>);

/// Set by an operator, by hand (docs/DEPLOY.md).
#[derive(Deserialize)]
struct Stop {
    #[serde(default)]
    reason: String,
}

fn stop_key() -> Key {
    Key::new("SERVICE", "STOP")
}

/// Why paid calls are stopped, if they are. At most five seconds old ([`STOP_SEEN_FOR`]). Checked before any charge; the
/// caller answers with [`ApiError::ServicePaused`].
pub async fn stopped(app: &App) -> Result<Option<String>, StoreError> {
    let now = app.clock.now();
    if let Some(reason) = app.stop.0.get(now, STOP_SEEN_FOR) {
        return Ok(reason);
    }
    let stop: Option<Stop> = app.db.get(&app.db.tables.agents, stop_key()).await?;
    let reason = stop.map(|stop| stop.reason);
    app.stop.0.keep(now, reason.clone());
    Ok(reason)
}

/// Sets the switch, or clears it with `None`, as an operator does by hand.
pub async fn stop(app: &App, reason: Option<&str>) -> Result<(), StoreError> {
    let table = &app.db.tables.agents;
    let write = match reason {
        Some(reason) => Write::put(table, stop_key(), &json!({"reason": reason}))?,
        None => Write::delete(table, stop_key()),
    };
    app.db.write(write).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_aligned_to_the_clock() {
        let at = |secs: i64| Window::at(Timestamp::from_secs(secs), Class::Read.limit(), Decimal::ONE);
        assert_eq!((at(120).start, at(120).left), (120, 60));
        assert_eq!((at(179).start, at(179).left), (120, 1));
        assert_eq!(at(180).start, 180);
        assert_eq!(at(0).taken(121).remaining, 0);
    }

    #[test]
    fn the_scale_multiplies_limits_and_leaves_at_least_one() {
        let limit =
            |scale: &str| Window::at(Timestamp::from_secs(0), Class::Paid.limit(), scale.parse().unwrap()).limit;
        assert_eq!([limit("1"), limit("0.5"), limit("2.5"), limit("0.0001")], [60, 30, 150, 1]);
        assert_eq!(limit("1000000"), 60_000_000);
    }

    #[test]
    fn equivalent_addresses_are_one_source() {
        let name = |address: &str| Subject::Source(Some(address.parse().unwrap())).to_string();
        assert_eq!(name("::ffff:203.0.113.7"), name("203.0.113.7"));
        assert_eq!(name("2001:db8:1:2:3::9"), "source:2001:db8:1:2::/64");
        assert_eq!(name("2001:db8:1:2:ffff::1"), name("2001:db8:1:2::"));
        assert_ne!(name("2001:db8:1:3::"), name("2001:db8:1:2::"));
    }
}
