//! Endpoints and deliveries as their owner reads them.

use base::clock::Timestamp;
use base::ids::{EndpointId, EventId};
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::EventKind;
use super::delivery::{Attempt, Delivery, DeliveryState, Failure};
use super::endpoint::{Disabled, Endpoint};
use super::form::ALL;

/// An endpoint, in answers.
#[derive(Debug, Serialize)]
pub struct EndpointView<'a> {
    pub id: EndpointId,
    pub url: &'a str,
    /// Names of events, or `*` alone.
    pub events: Vec<&'static str>,
    pub description: Option<&'a str>,
    /// The phone number whose calls it is told about. It is changed with the number's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phone_number_id: Option<Uuid>,
    pub enabled: bool,
    /// Why it is disabled.
    pub disabled_reason: Option<Disabled>,
    /// Nothing is sent before this time, because an attempt failed slowly.
    pub resting_until: Option<String>,
    /// Until this time secrets from before a rotation sign as well.
    pub old_secret_until: Option<String>,
    pub created_at: String,
    pub updated_at: String,
    /// Shown only when it is created or rotated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// A delivery with its attempts, in answers.
#[derive(Debug, Serialize)]
pub struct DeliveryView<'a> {
    pub event_id: EventId,
    #[serde(rename = "type")]
    pub kind: EventKind,
    pub state: DeliveryState,
    pub created_at: String,
    /// When this round of attempts began.
    pub queued_at: String,
    pub next_attempt_at: Option<String>,
    /// Attempts in this round.
    pub attempts_made: u32,
    pub attempts: Vec<AttemptView<'a>>,
    /// The body that is posted.
    pub payload: Option<&'a RawValue>,
}

/// One attempt.
#[derive(Debug, Serialize)]
pub struct AttemptView<'a> {
    pub at: String,
    pub duration_ms: u32,
    pub status: Option<u16>,
    pub error: Option<Failure>,
    pub answer: Option<&'a str>,
}

impl Endpoint {
    pub fn view(&self, secret: Option<String>, now: Timestamp) -> EndpointView<'_> {
        let events: Vec<&'static str> = self.events.iter().map(|kind| kind.as_str()).collect();
        let text = |at: Timestamp| at.to_string();
        EndpointView {
            id: self.id,
            url: &self.url,
            events: if events.is_empty() { vec![ALL] } else { events },
            description: self.description.as_deref(),
            phone_number_id: self.number,
            enabled: self.disabled.is_none(),
            disabled_reason: self.disabled,
            resting_until: self.resting.filter(|until| now < *until).map(text),
            old_secret_until: self.older.iter().map(|older| older.until).max().filter(|until| now < *until).map(text),
            created_at: text(self.created),
            updated_at: text(self.updated),
            secret,
        }
    }
}

impl Delivery {
    pub fn view(&self) -> DeliveryView<'_> {
        let is_pending = self.state == DeliveryState::Pending;
        DeliveryView {
            event_id: self.event,
            kind: self.kind,
            state: self.state,
            created_at: self.created.to_string(),
            queued_at: self.queued.to_string(),
            next_attempt_at: is_pending.then(|| self.not_before.to_string()),
            attempts_made: self.tries,
            attempts: self.attempts.iter().map(Attempt::view).collect(),
            payload: serde_json::from_str(&self.body).ok(),
        }
    }
}

impl Attempt {
    fn view(&self) -> AttemptView<'_> {
        AttemptView {
            at: self.at.to_string(),
            duration_ms: self.ms,
            status: self.status,
            error: self.failure,
            answer: self.answer.as_deref(),
        }
    }
}
