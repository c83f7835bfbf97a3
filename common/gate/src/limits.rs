//! How often who may call what, and the switch that stops all paid calls.
//!
//! | class | whose requests | counted by |
//! |---|---|---|
//! | `paid`, `expensive` | paid calls whose payer is proven | agent |
//! | `quote` | prices, dry runs and refusals of payments, for proven callers | agent |
//! | `search` | searches of the marketplace | source address |
//! | `read`, `write` | free routes of an agent or a seller, by method | agent, or soul; writes of tokens apart |
//! | `stop` | writes that stop spending: freezes, caps, revoked tokens, cancelled approvals; a wallet's lists of tokens and freezes | agent; those of tokens apart |
//! | `open` | routes without identity that write or guess | source address |
//! | `register` | registrations of souls whose body is good | source address |
//! | `publish` | new texts and programs, which are kept | soul |
//! | `checkout` | requests about checkout sessions | agent platform |
//! | `public` | large answers that anybody may read, in KiB ([`weigh`]) | source address |
//! | `export` | audits, exports and long lists, in KiB | agent, or soul |
//! | `result` | large results that are read again and lists of files, in KiB ([`take_result`]) | job and reader ([`Reader`]) |
//! | `chain` | questions to the chain that came to nothing ([`may_ask_chain`]) | source address; wallets that have paid apart |
//! | `connect` | new WebSockets | source address |
//!
//! An agent is a wallet, whoever calls for it: its access tokens count against its own limits, so that minting more of
//! them multiplies nothing. Only their writes are a limit of their own, one for all tokens of an agent together: a stolen
//! token must not be able to keep its owner from revoking it. Nor must the owner's other writes: what stops spending has a
//! limit of its own. The lists that show what there is to stop count there too, because tokens share the wallet's `read`.
//!
//! A request is counted once it is proven who makes it, so that nobody can use up another's limit, and before any work.
//! What nobody proves (prices, small public pages) is not counted: it writes nothing, and API Gateway throttles it. Counted is
//! what costs far more than the write: traffic and questions to the chain. docs/ABUSE.md has what each may cost.
//!
//! Windows are fixed, aligned to the clock, and counted in one item each: a conditional `ADD` is exact whatever runs at
//! once, in however many processes, for one write unit. A request over the limit changes nothing (its proof, which
//! showed whose it is, is used up all the same). With fixed windows, two windows' worth may come around a boundary.

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
use http::Method;
use platform::auth::{Caller, Scope};
pub use platform::http::limit::Taken;
use platform::http::{ApiError, limit, log};
use platform::store::db::parse;
use platform::store::{Key, StoreError, Write, WriteError};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::app::App;
use crate::jobs::Job;
use crate::jobs::job::Place;

/// What is limited together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Paid calls.
    Paid,
    /// Paid calls that keep a provider busy for long: voice calls, research. Counted here and not under `Paid`.
    Expensive,
    /// What a proven caller is told of a price without buying. Free reads as well (contract §0), but counted apart: a
    /// paid call and the question before it must not use up what its polling needs.
    Quote,
    Read,
    Write,
    /// Writes that stop spending, a proven wallet's lists of what there is to stop, and nothing else.
    Stop,
    /// Routes without identity that write or guess.
    Open,
    /// Searches of the marketplace.
    Search,
    /// Registrations of souls.
    Register,
    /// New texts and programs of a soul: blobs that are kept for long.
    Publish,
    /// Checkout sessions of a platform, for all its buyers.
    Checkout,
    /// Large answers that anybody may read, in KiB.
    Public,
    /// Audits, exports and long lists of receipts and sold jobs, in KiB.
    Export,
    /// Large results of jobs and lists of their files, in KiB.
    Result,
    /// Questions to the chain for payments and proofs that were no good.
    Chain,
    /// New WebSockets.
    Connect,
}

/// So many requests, or KiB, in a window.
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
    /// The table of limits (contract §0). `RATE_LIMIT_SCALE` multiplies every one.
    pub const fn limit(self) -> Limit {
        match self {
            Class::Paid => Limit { name: "paid", count: 60, window: MINUTE },
            Class::Expensive => Limit { name: "expensive", count: 10, window: MINUTE },
            Class::Quote => Limit { name: "quote", count: 120, window: MINUTE },
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
            Class::Chain => Limit { name: "chain", count: 20, window: MINUTE },
            Class::Connect => Limit { name: "connect", count: 10, window: MINUTE },
        }
    }

    /// The class of a free route: by the request's method, or by what its caller had to prove.
    pub fn of_free(needed: Scope) -> Class {
        if limit::reads().unwrap_or(needed == Scope::Read) { Class::Read } else { Class::Write }
    }
}

/// Whose limit a request counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Agent(AgentId),
    /// All access tokens of an agent together.
    Tokens(AgentId),
    /// A seller, by its soul's id.
    Soul(Uuid),
    /// An agent platform, by its token's id.
    Platform(Uuid),
    /// Where the request came from; whoever comes from nowhere shares one limit.
    Source(Option<IpAddr>),
    /// A reader of a job.
    Job(RequestId, Reader),
}

/// Who reads a job. Each has a limit of its own: a seller, or a stranger who only names the buyer's address, must not be able
/// to use up what the buyer paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The buyer, proven.
    Buyer,
    /// The seller, proven.
    Seller,
    /// Everybody who names one of them without a proof.
    Named,
}

impl Subject {
    /// Whose limit of this class a proven caller uses.
    pub fn of(caller: &Caller, class: Class) -> Subject {
        match (class, caller.token()) {
            (Class::Write | Class::Stop, Some(_)) => Subject::Tokens(caller.agent),
            _ => Subject::Agent(caller.agent),
        }
    }

    /// The address the request being worked on came from.
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
            Subject::Source(address) => f.write_str(&limit::name_of(*address)),
        }
    }
}

/// Counts a request, or refuses it with [`ApiError::RateLimited`]. The answer gets the headers by itself, if its router
/// was finished by [`api::routes::finish`]; [`Taken::mark`] is for others.
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

/// Counts the bytes of an answer; whoever goes over the limit with it still gets it. A limit that cannot be written lets it
/// pass: these answers need no database, and the gateway's throttle holds.
pub async fn take_bytes(app: &App, subject: Subject, class: Class, bytes: usize) -> Result<(), ApiError> {
    let turn = RateLimitSlot::now(app, subject, class);
    match app.db.write(turn.count_many(app, bytes.div_ceil(1024))?).await {
        Ok(_) => Ok(()),
        Err(WriteError::Refused(_)) => Err(turn.refusal()),
        Err(WriteError::Failed(error)) => {
            log::failure("an answer's bytes could not be counted", &error);
            Ok(())
        }
    }
}

/// Middleware: large answers that anybody may read are counted by their bytes, for the address they go to.
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

/// As [`weigh`], where an answer may have been paid for: that one is given, and what comes after the limit is refused before
/// anything is done for it.
pub async fn weigh_ahead(State(app): State<App>, request: Request, next: Next) -> Response {
    let turn = RateLimitSlot::now(&app, Subject::source(), Class::Public);
    if app.exhausted.is_in(&turn) {
        return turn.refusal().into_response();
    }
    let response = next.run(request).await;
    let bytes = usize::try_from(response.body().size_hint().exact().unwrap_or_default()).unwrap_or(usize::MAX);
    if bytes > SMALL_ANSWER && take_bytes(&app, turn.subject, Class::Public, bytes).await.is_err() {
        app.exhausted.insert(&turn);
    }
    response
}

/// Counts a result that is read for an answer, if it is one that is kept in a blob: a call costs less than traffic without end.
pub async fn take_result(app: &App, job: &Job, reader: Reader, bytes: impl FnOnce() -> usize) -> Result<(), ApiError> {
    let is_large = job.result.as_ref().is_some_and(|stored| matches!(stored.place, Place::Blob(_)));
    if !is_large {
        return Ok(());
    }
    take_bytes(app, Subject::Job(job.request_id, reader), Class::Result, bytes()).await
}

/// Counts the bytes of a list, if it is long. A short one costs less than counting it.
pub async fn take_list(app: &App, subject: Subject, class: Class, bytes: usize) -> Result<(), ApiError> {
    if bytes <= SMALL_ANSWER {
        return Ok(());
    }
    take_bytes(app, subject, class, bytes).await
}

/// Who came to the end of a limit that is counted afterwards, and in which window, as far as this process knows. So it is with
/// questions to the chain, and with the bytes of answers that may have been paid for.
///
/// Whose payment is good is never counted: that would be a write for each paid call. Who asks for nothing is, after the
/// question; and once the limit is used up, each process refuses it without a question. So at most a few more questions are
/// put than the limit has, one for each process.
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

/// Whether the chain may be asked for this subject: not once that came to nothing too often. Reads nothing.
pub fn may_ask_chain(app: &App, subject: Subject) -> Result<(), ApiError> {
    let turn = RateLimitSlot::now(app, subject, Class::Chain);
    if app.exhausted.is_in(&turn) { Err(turn.refusal()) } else { Ok(()) }
}

/// Counts that the chain was asked for nothing.
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

/// A request's place in the limit it counts against. A paid call is counted in the transaction of its claim, which makes
/// that exact for no request of its own; only what is bought is counted.
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

    /// The write that counts it. Refused over the limit.
    pub fn count(&self, app: &App) -> Result<Write, StoreError> {
        self.count_many(app, 1)
    }

    fn count_many(&self, app: &App, many: usize) -> Result<Write, StoreError> {
        let key = self.window.key(self.subject);
        Write::update(&app.db.tables.agents, key, "ADD #used :many SET #expires = :expires")
            .only_if("attribute_not_exists(#used) OR #used < :limit")
            .bind("many", many)?
            .bind("limit", self.window.limit)?
            // A window longer than it lasts, for clocks that differ.
            .bind("expires", self.window.start.saturating_add(2 * i64::try_from(self.window.secs).unwrap_or_default()))
    }

    /// What was counted so far, for half a read unit: perhaps behind the latest requests, never ahead of them.
    pub async fn used(&self, app: &App) -> Result<u64, StoreError> {
        let found: Option<Used> = app.db.get(&app.db.tables.agents, self.window.key(self.subject)).await?;
        Ok(found.map_or(0, |found| found.used))
    }

    /// Whether nothing is left once so many are counted. What is used up stays so until the window ends.
    pub fn is_over(&self, used: u64) -> bool {
        used >= self.window.limit
    }

    pub fn refusal(&self) -> ApiError {
        ApiError::RateLimited(self.window.taken(self.window.limit))
    }

    /// Lets the answer say what is left, this request being counted on top of `before`. With others at once it may be
    /// less than is said.
    pub fn note(&self, before: u64) {
        limit::note(self.window.taken(before.saturating_add(1)));
    }
}

#[derive(Deserialize)]
struct Used {
    used: u64,
}

/// The window a moment falls into.
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
        // Never nothing, however small the scale is.
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

/// For so long a process goes by what it saw of the switch: reading it with each paid call would cost a read unit each.
pub const STOP_SEEN_FOR: Duration = Duration::from_secs(5);

/// What this process saw of the switch.
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

/// Whether paid calls are stopped, and why. At most five seconds behind the switch. Asked before any charge; answered
/// with [`ApiError::ServicePaused`].
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

/// Throws the switch, as an operator does.
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
    fn windows_are_minutes_of_the_clock() {
        let at = |secs: i64| Window::at(Timestamp::from_secs(secs), Class::Read.limit(), Decimal::ONE);
        assert_eq!((at(120).start, at(120).left), (120, 60));
        assert_eq!((at(179).start, at(179).left), (120, 1));
        assert_eq!(at(180).start, 180);
        assert_eq!(at(0).taken(121).remaining, 0);
    }

    #[test]
    fn the_scale_multiplies_and_never_forbids() {
        let limit =
            |scale: &str| Window::at(Timestamp::from_secs(0), Class::Paid.limit(), scale.parse().unwrap()).limit;
        assert_eq!([limit("1"), limit("0.5"), limit("2.5"), limit("0.0001")], [60, 30, 150, 1]);
        assert_eq!(limit("1000000"), 60_000_000);
    }

    #[test]
    fn an_address_is_one_source_however_it_is_written() {
        let name = |address: &str| Subject::Source(Some(address.parse().unwrap())).to_string();
        assert_eq!(name("::ffff:203.0.113.7"), name("203.0.113.7"));
        assert_eq!(name("2001:db8:1:2:3::9"), "source:2001:db8:1:2::/64");
        assert_eq!(name("2001:db8:1:2:ffff::1"), name("2001:db8:1:2::"));
        assert_ne!(name("2001:db8:1:3::"), name("2001:db8:1:2::"));
    }
}
