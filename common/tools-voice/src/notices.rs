//! What an owner is told about a call that its number answered: a notification, and an event with the whole call for the
//! number's webhook and for endpoints that subscribe to it.
//!
//! The event is only written to the outbox: the scheduler's sweep sends it, within a minute.

use base::clock::Timestamp;
use base::ids::EndpointId;
use ledger::notifications::{self, Notification, NotificationKind};
use ledger::webhooks::{Event, EventKind, endpoint, outbox};
use platform::store::{Db, StoreError};
use serde_json::json;

use crate::call::State;
use crate::calls::{self, Call};
use crate::settings;

/// Most bytes of a transcript in an event. The whole one is in the call.
const MAX_TRANSCRIPT_BYTES: usize = 60 * 1024;

/// A call has ended, with its summary. Repeating it changes nothing: ids follow from the call, so each endpoint gets one event,
/// and the agent one notification. A call that is open or was declined raises none.
pub(crate) async fn completed(db: &Db, call: &Call, transcript: &str, now: Timestamp) -> Result<(), StoreError> {
    let Some((ended, _)) = call.state.as_ref().and_then(State::ended) else { return Ok(()) };
    let cause = call.id.to_string();
    let shown = beginning(transcript);
    let mut data = calls::view(call, Some(shown), None);
    if shown.len() < transcript.len() {
        data["transcript_truncated"] = json!(true);
    }
    let event = Event::new(call.agent, EventKind::VoiceInboundCompleted, &cause, ended, data);
    let of_number = webhook(db, call).await?;
    let of_number = outbox::to(db, &event, of_number.into_iter(), now)?;
    of_number.and(outbox::put(db, &event, now).await?).keep(db).await?;
    let note = notifications::raise_for(db, call.agent, note(call), &cause, ended, now)?;
    db.write(note).await?;
    Ok(())
}

/// The number's own endpoint. Without a webhook when it rang, nobody expects the event there.
async fn webhook(db: &Db, call: &Call) -> Result<Option<EndpointId>, StoreError> {
    let has_webhook = call.config.as_ref().is_some_and(|config| config.webhook_url.is_some());
    let Some(phone_id) = call.phone_id.filter(|_| has_webhook) else { return Ok(None) };
    let endpoint = endpoint::load(db, call.agent, settings::endpoint_id(phone_id)).await?;
    Ok(endpoint.filter(|endpoint| endpoint.disabled.is_none()).map(|endpoint| endpoint.id))
}

/// The caller and the summary. They are untrusted, and were cleaned when they were stored.
fn note(call: &Call) -> Notification {
    Notification {
        kind: NotificationKind::VoiceCompleted,
        title: if call.from.is_empty() { "Call answered".to_owned() } else { format!("Call from {}", call.from) },
        body: call.summary.clone(),
        payload: Some(json!({
            "call_id": call.id,
            "phone_number_id": call.phone_id,
            "call_url": format!("/v1/tools/voice/inbound/{}", call.id),
        })),
    }
}

/// As much of a transcript as an event has.
fn beginning(transcript: &str) -> &str {
    if transcript.len() <= MAX_TRANSCRIPT_BYTES {
        return transcript;
    }
    let end = (0..=MAX_TRANSCRIPT_BYTES).rev().find(|end| transcript.is_char_boundary(*end));
    &transcript[..end.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_transcript_is_cut_between_characters() {
        let long = format!("a{}", "ä".repeat(MAX_TRANSCRIPT_BYTES));
        assert_eq!(beginning(&long).len(), MAX_TRANSCRIPT_BYTES - 1);
        let short = "ä".repeat(MAX_TRANSCRIPT_BYTES / 2);
        assert_eq!(beginning(&short), short);
    }
}
