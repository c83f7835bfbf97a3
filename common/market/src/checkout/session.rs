//! The stored session and its state.
//!
//! Each change raises the version by one. The transaction that claims the payment also completes the session
//! (`gate::checkout_binding`). The session names the job that its quote buys, and its state is read from that job. So a
//! session is completed if and only if it was charged, whatever process crashes.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::RequestId;
use base::money::Usdc;
use gate::jobs::job::{Job, Ordered, RETENTION, Settlement};
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::goods::Goods;

/// Lifetime of a session, and of its quote.
pub const VALIDITY: Duration = Duration::from_secs(30 * 60);

/// A purchase that an agent platform prepares for a buyer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub id: Uuid,
    /// The only platform that may see it.
    pub platform: Uuid,
    /// Starts at 1 and grows with each change.
    pub version: u32,
    /// The item's id as it was sent.
    pub item: String,
    pub quantity: u32,
    /// The item's input, as JSON.
    pub input: String,
    /// The item, if it is sold here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
    /// The price, if the session has no error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Errors, which block the payment, and what does not.
    pub messages: Vec<Message>,
    /// The body's other members (`buyer`, `metadata`, …) as JSON.
    pub said: String,
    pub canceled: bool,
    /// A payment was claimed. The job shows its outcome.
    pub attempted: bool,
    /// SHA-256 of the idempotency key of that attempt, if it had one: recognises a repeated request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
    pub created: Timestamp,
    pub updated: Timestamp,
    pub expires_at: Timestamp,
    /// DynamoDB TTL, in Unix seconds.
    pub expires: i64,
}

/// The item as it was when the session was last created or changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    pub goods: Goods,
    pub title: String,
    pub summary: String,
    /// The seller's name, if the seller is not the platform itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller: Option<String>,
    /// micro-USDC, whole cents
    pub unit: Usdc,
}

/// The session's price and quote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// micro-USDC, whole cents
    pub amount: Usdc,
    /// The gate's quote. It expires with the session.
    pub quote: String,
    /// The job that the quote buys.
    pub request_id: RequestId,
}

/// A message to the buyer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// One of ACP's codes. A message that only informs has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// JSONPath into the session.
    pub param: String,
    pub content: String,
    /// It does not block the payment: a warning, or without a code an information.
    pub is_warning: bool,
}

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    NotReady,
    Ready,
    /// A payment was claimed and is not settled yet.
    InProgress,
    /// It was charged.
    Completed,
    Canceled,
    Expired,
}

impl State {
    pub const ALL: [State; 6] =
        [State::NotReady, State::Ready, State::InProgress, State::Completed, State::Canceled, State::Expired];

    /// ACP's status.
    pub const fn acp(self) -> &'static str {
        match self {
            State::NotReady => "not_ready_for_payment",
            State::Ready => "ready_for_payment",
            State::InProgress => "complete_in_progress",
            State::Completed => "completed",
            State::Canceled => "canceled",
            State::Expired => "expired",
        }
    }

    /// `status` in the simple shape, which has four values.
    pub const fn simple(self) -> &'static str {
        match self {
            State::NotReady | State::InProgress => "not_ready_for_payment",
            State::Ready => "ready_for_payment",
            State::Completed => "completed",
            State::Canceled | State::Expired => "canceled",
        }
    }

    /// `acp_status` in the simple shape.
    pub const fn plain(self) -> &'static str {
        match self {
            State::NotReady | State::Ready => "open",
            State::InProgress => "pending",
            State::Completed => "completed",
            State::Canceled => "cancelled",
            State::Expired => "failed",
        }
    }

    /// Whether the session can still be changed.
    pub const fn is_open(self) -> bool {
        matches!(self, State::NotReady | State::Ready)
    }
}

impl Session {
    pub fn key(id: Uuid) -> Key {
        Key::new(format!("CHECKOUT#{id}"), "SESSION")
    }

    pub fn ordered(&self, origin: &str, hook: Option<String>) -> Ordered {
        Ordered { session: self.id, platform: self.platform, origin: origin.to_owned(), hook }
    }

    /// The state at `now`. `job` is the job named by the price, if a payment was claimed for it.
    pub fn state(&self, job: Option<&Job>, now: Timestamp) -> State {
        match job.filter(|_| self.attempted).map(|job| job.settlement) {
            Some(Settlement::Settled) => return State::Completed,
            Some(Settlement::Claimed | Settlement::Submitted) => return State::InProgress,
            // The payment failed. Another one may be tried.
            Some(Settlement::Refused | Settlement::Void) | None => {}
        }
        match self.price {
            _ if self.canceled => State::Canceled,
            _ if now >= self.expires_at => State::Expired,
            Some(_) => State::Ready,
            None => State::NotReady,
        }
    }

    /// When the row expires, in Unix seconds: as late as the job that it may have bought.
    pub fn kept_until(expires_at: Timestamp) -> i64 {
        expires_at.plus(RETENTION).secs()
    }

    /// The write that creates the session. Refused if the id exists.
    pub fn create(&self, db: &Db) -> Result<Write, StoreError> {
        Ok(Write::put(&db.tables.agents, Session::key(self.id), self)?.only_if_new())
    }

    /// The write that replaces the previous version.
    pub fn change(&self, db: &Db) -> Result<Write, StoreError> {
        Write::put(&db.tables.agents, Session::key(self.id), self)?
            .only_if("#version = :before")
            .bind("before", self.version.saturating_sub(1))
    }

    /// The write that takes the session for a payment. Refused if the session changed since it was read, by another
    /// payment, an update or a cancellation.
    pub fn take(&self, db: &Db, attempt: Option<&str>, now: Timestamp) -> Result<Write, StoreError> {
        let set = "SET #version = :next, #attempted = :yes, #updated = :now";
        let set =
            if attempt.is_some() { format!("{set}, #attempt = :attempt") } else { format!("{set} REMOVE #attempt") };
        let write = Write::update(&db.tables.agents, Session::key(self.id), &set)
            .only_if("#version = :before AND #canceled = :no")
            .bind("next", self.version + 1)?
            .bind("before", self.version)?
            .bind("yes", true)?
            .bind("no", false)?
            .bind("now", now)?;
        match attempt {
            Some(attempt) => write.bind("attempt", attempt),
            None => Ok(write),
        }
    }
}

/// The session by a consistent read, if it belongs to this platform.
pub async fn load(db: &Db, id: Uuid, platform: Uuid) -> Result<Option<Session>, StoreError> {
    let found: Option<Session> = db.get_latest(&db.tables.agents, Session::key(id)).await?;
    Ok(found.filter(|session| session.platform == platform))
}

/// The job that was claimed for the session.
pub async fn job(db: &Db, session: &Session) -> Result<Option<Job>, StoreError> {
    match session.price.as_ref().filter(|_| session.attempted) {
        Some(price) => gate::jobs::store::load_latest(db, price.request_id).await,
        None => Ok(None),
    }
}
