//! What Amazon SES tells about mails, posted by SNS.

use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use base::clock::Timestamp;
use gate::limits::{self, Class, Subject};
use gate::respond;
use http::StatusCode;
use platform::http::{ApiError, log, private_json, read_body};
use platform::providers::sns::{self, Certificate, Kind, Message, SnsError};
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::Messaging;

/// SNS allows 256 KB for a message. The post has it as a JSON string, in which it is longer.
const MAX_EVENT_BYTES: usize = 1024 * 1024;
/// SNS waits 15 s for an answer.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long an event is remembered: longer than SNS repeats it, and than a repetition is accepted.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);

/// An event that was applied: `EVENT#sns#<message id>` / `SEEN`.
#[derive(Serialize, Deserialize)]
struct Seen {
    at: Timestamp,
    /// Unix seconds.
    expires: i64,
}

fn key(id: &str) -> Key {
    Key::new(format!("EVENT#sns#{id}"), "SEEN")
}

/// `POST /v1/providers/ses`: each event is applied, and then remembered. If it comes again in between, it is applied
/// twice, which does no harm.
pub async fn ses(State(state): State<Messaging>, body: Body) -> Response {
    let answer = async {
        let body = read_body(body, MAX_EVENT_BYTES).await?;
        let (app, toolbox) = (state.app(), state.toolbox());
        let now = app.clock.now();
        let message = Message::read(&body, &app.config.email.topics, now).map_err(refused)?;
        let certificate = state.certificate(&message).await?;
        if !message.is_signed_by(&certificate) {
            return Err(refused(SnsError::Forged));
        }
        match message.kind {
            Kind::Notification => apply(&state, &message, now).await?,
            Kind::SubscriptionConfirmation => {
                let confirmed = sns::confirm(&toolbox.outbound, &message, Instant::now() + DEADLINE).await;
                confirmed.map_err(StoreError::new)?;
                log::event("sns_subscription_confirmed", json!({"message_id": message.id}));
            }
            Kind::UnsubscribeConfirmation => {
                log::event("sns_subscription_ended", json!({"message_id": message.id}));
            }
        }
        Ok(private_json(StatusCode::OK, &json!({"received": true})))
    };
    respond(answer.await)
}

async fn apply(state: &Messaging, message: &Message, now: Timestamp) -> Result<(), ApiError> {
    let db = &state.app().db;
    if is_known(db, &message.id).await? {
        return Ok(());
    }
    // SES also sends a plain text when a topic is connected.
    if let Ok(event) = serde_json::from_str::<Value>(&message.text) {
        tools_email::events::apply_ses(state.toolbox(), &event, &message.id).await?;
    }
    let seen = Seen { at: now, expires: now.plus(REMEMBERED).secs() };
    db.write(Write::put(&db.tables.messages, key(&message.id), &seen)?).await.map_err(StoreError::from)?;
    Ok(())
}

async fn is_known(db: &Db, id: &str) -> Result<bool, StoreError> {
    Ok(db.get::<Seen>(&db.tables.messages, key(id)).await?.is_some())
}

impl Messaging {
    /// The certificate that a message names. The post may be a stranger's, so fetching one is counted.
    async fn certificate(&self, message: &Message) -> Result<Certificate, ApiError> {
        if let Some(certificate) = self.certificates.known(message) {
            return Ok(certificate);
        }
        limits::take(self.app(), Subject::source(), Class::Open).await?;
        let deadline = Instant::now() + DEADLINE;
        self.certificates.fetch(&self.toolbox().outbound, message, deadline).await.map_err(refused)
    }
}

/// SNS repeats a post after 429 and 5xx, and gives up after any other 4xx.
fn refused(error: SnsError) -> ApiError {
    let status = match &error {
        SnsError::Unavailable(cause) => return ApiError::Unavailable(StoreError::new(cause.detail())),
        SnsError::OtherTopic => StatusCode::FORBIDDEN,
        SnsError::Unreadable(_) | SnsError::Stale | SnsError::Forged => StatusCode::UNAUTHORIZED,
    };
    ApiError::Tool { status, code: "invalid_signature", message: error.to_string() }
}
