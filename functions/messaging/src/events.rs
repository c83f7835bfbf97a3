//! What AWS tells about messages that were sent, and which ones came in, posted by SNS.

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
use platform::store::{BoxFuture, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::Toolbox;

use crate::Messaging;

/// SNS allows 256 KB for a message. The post has it as a JSON string, in which it is longer.
const MAX_EVENT_BYTES: usize = 1024 * 1024;
/// SNS waits 15 s for an answer.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long an event is remembered: longer than SNS repeats it, and than a repetition is accepted.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);

/// An event that was applied: `EVENT#<endpoint>#<message id>` / `SEEN`. A topic may be connected to both endpoints, and each
/// then gets the same message.
#[derive(Serialize, Deserialize)]
struct Seen {
    at: Timestamp,
    /// Unix seconds.
    expires: i64,
}

fn key(endpoint: &str, id: &str) -> Key {
    Key::new(format!("EVENT#{endpoint}#{id}"), "SEEN")
}

/// Where SNS posts events.
struct Endpoint {
    /// In the keys of the events that it has applied.
    name: &'static str,
    /// Applies one event: the JSON of a message of SNS, which names it.
    apply: for<'a> fn(&'a Toolbox, &'a Value, &'a Message) -> BoxFuture<'a, Result<(), StoreError>>,
}

const MAILS: Endpoint = Endpoint { name: "sns", apply: apply_ses };
const TEXTS: Endpoint = Endpoint { name: "sns-sms", apply: apply_sms };

/// `POST /v1/providers/ses`: events of mails.
pub async fn ses(State(state): State<Messaging>, body: Body) -> Response {
    posted(&state, body, &state.app().config.email.topics, &MAILS).await
}

/// `POST /v1/providers/sms`: events of texts, and texts that came in.
pub async fn sms(State(state): State<Messaging>, body: Body) -> Response {
    posted(&state, body, &state.app().config.sms.topics, &TEXTS).await
}

fn apply_ses<'a>(
    toolbox: &'a Toolbox,
    event: &'a Value,
    message: &'a Message,
) -> BoxFuture<'a, Result<(), StoreError>> {
    Box::pin(tools_email::events::apply_ses(toolbox, event, &message.id))
}

fn apply_sms<'a>(
    toolbox: &'a Toolbox,
    event: &'a Value,
    message: &'a Message,
) -> BoxFuture<'a, Result<(), StoreError>> {
    Box::pin(tools_sms::events::apply_aws(toolbox, event, &message.id, message.at))
}

/// A post of SNS from one of these topics: each event is applied, and then remembered. If it comes again in between, it is
/// applied twice, which does no harm.
async fn posted(state: &Messaging, body: Body, topics: &[String], endpoint: &Endpoint) -> Response {
    let answer = async {
        let body = read_body(body, MAX_EVENT_BYTES).await?;
        let (app, toolbox) = (state.app(), state.toolbox());
        let now = app.clock.now();
        let message = Message::read(&body, topics, now).map_err(refused)?;
        let certificate = state.certificate(&message).await?;
        if !message.is_signed_by(&certificate) {
            return Err(refused(SnsError::Forged));
        }
        match message.kind {
            Kind::Notification => apply_once(state, &message, endpoint, now).await?,
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

async fn apply_once(state: &Messaging, message: &Message, endpoint: &Endpoint, now: Timestamp) -> Result<(), ApiError> {
    let db = &state.app().db;
    let key = || key(endpoint.name, &message.id);
    if db.get::<Seen>(&db.tables.messages, key()).await?.is_some() {
        return Ok(());
    }
    // Services also send a plain text when a topic is connected.
    if let Ok(event) = serde_json::from_str::<Value>(&message.text) {
        (endpoint.apply)(state.toolbox(), &event, message).await?;
    }
    let seen = Seen { at: now, expires: now.plus(REMEMBERED).secs() };
    db.write(Write::put(&db.tables.messages, key(), &seen)?).await.map_err(StoreError::from)?;
    Ok(())
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
