//! The stored session, and what it is by now.
//!
//! A session is changed from one version to the next, and completed in the transaction that claims its payment
//! (`gate::CheckoutBinding`): it names the job that is bought with its quote, and whether it is completed is read off that job.
//! So a session is completed if and only if it was charged, whatever dies in between.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::RequestId;
use base::money::Usdc;
use gate::jobs::job::{Job, Ordered, RETENTION, Settlement};
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::goods::Goods;

/// Sessions that are not completed by then never are (contract §24).
pub const VALIDITY: Duration = Duration::from_secs(30 * 60);

/// What an agent platform is about to buy for somebody.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Session {
    pub id: Uuid,
    /// Who sees it.
    pub platform: Uuid,
    /// Counts changes.
    pub version: u32,
    /// Id of the thing that is asked for, as it was sent.
    pub item: String,
    pub quantity: u32,
    /// JSON of what the thing is to work on.
    pub input: String,
    /// What it is, if it is sold here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
    /// Its price for this session, if there is nothing wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// What stands in the way of paying, and what the buyer should know.
    pub messages: Vec<Message>,
    /// JSON of `buyer`, `fulfillment_details`, `metadata` and `locale`, as they were sent.
    pub said: String,
    pub canceled: bool,
    /// A payment was claimed for it: the job says what became of it.
    pub attempted: bool,
    /// SHA-256 of the name under which that was, if it had one: who repeats the request is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
    pub created: Timestamp,
    pub updated: Timestamp,
    pub expires_at: Timestamp,
    /// Unix seconds after which the row may go.
    pub expires: i64,
}

/// Something that is sold, as it was when the session was made or changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    pub goods: Goods,
    pub title: String,
    pub summary: String,
    /// Who sells it, if it is not the service itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seller: Option<String>,
    /// micro-USDC, whole cents
    pub unit: Usdc,
}

/// What the session costs, and what it is paid with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// micro-USDC, whole cents
    pub amount: Usdc,
    /// The gate's quote, which holds as long as the session.
    pub quote: String,
    /// The job that is bought with it.
    pub request_id: RequestId,
}

/// Something to tell the buyer; `code` is one of ACP's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub code: String,
    /// JSONPath into the session.
    pub param: String,
    pub content: String,
    /// It does not stand in the way.
    pub is_warning: bool,
}

/// What a session is by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    NotReady,
    Ready,
    /// A payment was claimed, and is on its way.
    InProgress,
    /// It was charged.
    Completed,
    Canceled,
    Expired,
}

impl State {
    pub const ALL: [State; 6] =
        [State::NotReady, State::Ready, State::InProgress, State::Completed, State::Canceled, State::Expired];

    /// The word of ACP.
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

    /// The word of the simple shape, where there are four (contract §24, D).
    pub const fn simple(self) -> &'static str {
        match self {
            State::NotReady | State::InProgress => "not_ready_for_payment",
            State::Ready => "ready_for_payment",
            State::Completed => "completed",
            State::Canceled | State::Expired => "canceled",
        }
    }

    /// The word of the other simple shape (contract §24, O).
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

    /// What it is by now; `job` is the one its price names, if a payment was claimed for it.
    pub fn state(&self, job: Option<&Job>, now: Timestamp) -> State {
        match job.filter(|_| self.attempted).map(|job| job.settlement) {
            Some(Settlement::Settled) => return State::Completed,
            Some(Settlement::Claimed | Settlement::Submitted) => return State::InProgress,
            // It came to nothing: another payment may be tried.
            Some(Settlement::Refused | Settlement::Void) | None => {}
        }
        match self.price {
            _ if self.canceled => State::Canceled,
            _ if now >= self.expires_at => State::Expired,
            Some(_) => State::Ready,
            None => State::NotReady,
        }
    }

    /// Until when the row is kept: as long as the job that it may have bought can be read.
    pub fn kept_until(expires_at: Timestamp) -> i64 {
        expires_at.plus(RETENTION).secs()
    }

    /// The write that makes it. Refused if there is one of this id.
    pub fn create(&self, db: &Db) -> Result<Write, StoreError> {
        Ok(Write::put(&db.tables.agents, Session::key(self.id), self)?.only_if_new())
    }

    /// The write that changes it from the version before.
    pub fn change(&self, db: &Db) -> Result<Write, StoreError> {
        Write::put(&db.tables.agents, Session::key(self.id), self)?
            .only_if("#version = :before")
            .bind("before", self.version.saturating_sub(1))
    }

    /// The write that takes it for a payment: only as it was read, so that neither another payment, nor a change, nor a
    /// cancellation comes in between.
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

/// The session as the latest write left it, if it is this platform's.
pub async fn load(db: &Db, id: Uuid, platform: Uuid) -> Result<Option<Session>, StoreError> {
    let found: Option<Session> = db.get_latest(&db.tables.agents, Session::key(id)).await?;
    Ok(found.filter(|session| session.platform == platform))
}

/// The job that was claimed for it.
pub async fn job(db: &Db, session: &Session) -> Result<Option<Job>, StoreError> {
    match session.price.as_ref().filter(|_| session.attempted) {
        Some(price) => gate::jobs::store::load_latest(db, price.request_id).await,
        None => Ok(None),
    }
}
