//! Notifications and webhook events for ended jobs. They are made from the stream, so that no call waits for them.
//!
//! A change may be delivered more than once, always with the same images. Ids follow from the job and the time of its end,
//! so a repeat raises nothing twice.

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use catalog::CATALOG;
use ledger::notifications::{self, Notification, NotificationKind};
use ledger::webhooks::{Event, EventKind};
use platform::store::{Db, StoreError, Write};
use serde_json::{Value, json};
use tools::spec::Answer;

/// The tools whose end has a kind of its own: texts and calls.
const SMS: &str = "sms";
const VOICE: &str = "voice";
/// The job of a call that a number answered. Its runner tells the owner of the call, and of nothing else.
const VOICE_INBOUND: &str = "voice_inbound";

/// The notification writes for one change of a job; none unless the job ended.
pub fn of_change(db: &Db, old: &Value, new: &Value, now: Timestamp) -> Result<Vec<Write>, StoreError> {
    let Some(ended) = Ended::read(old, new) else { return Ok(Vec::new()) };
    let cause = ended.request_id.to_string();
    let notes = ended.notes().into_iter();
    notes.map(|note| notifications::raise_for(db, ended.agent, note, &cause, ended.at, now)).collect()
}

/// The webhook events for the same change.
pub fn events(old: &Value, new: &Value) -> Vec<Event> {
    Ended::read(old, new).map(|ended| ended.events()).unwrap_or_default()
}

/// A job whose work ended with this change.
struct Ended<'a> {
    agent: AgentId,
    request_id: RequestId,
    receipt_id: &'a str,
    tool: &'a str,
    completed: bool,
    error: Option<(&'a str, &'a str)>,
    credited: Option<Usdc>,
    /// What failed work had used up, or completed work used. It is not paid back.
    kept: Option<Usdc>,
    at: Timestamp,
}

impl Ended<'_> {
    fn read<'a>(old: &Value, new: &'a Value) -> Option<Ended<'a>> {
        let text = |name: &str| new[name]["S"].as_str();
        let number = |name: &str| new[name]["N"].as_str()?.parse::<i64>().ok();
        if !text("pk")?.starts_with("JOB#") || old["outcome"]["S"].is_string() {
            return None;
        }
        // A goal's owner is told of the goal.
        if !new["charge"]["M"]["purse"].is_null() {
            return None;
        }
        let tool = text("tool").filter(|tool| *tool != VOICE_INBOUND)?;
        let amount = |name: &str| number(name).and_then(|micro| u64::try_from(micro).ok()).map(Usdc::from_micro);
        let error = &new["error"]["M"];
        Some(Ended {
            agent: text("agent")?.parse().ok()?,
            request_id: text("request_id")?.parse().ok()?,
            receipt_id: text("receipt_id")?,
            tool,
            completed: text("outcome")? == "completed",
            error: error["code"]["S"].as_str().zip(error["message"]["S"].as_str()),
            // Zero if everything was used up: then there is no credit to report.
            credited: amount("credited").filter(|credited| *credited > Usdc::ZERO),
            kept: amount("kept"),
            at: Timestamp::from_millis(number("updated")?),
        })
    }

    /// The caller of a direct tool already has its answer, so only a refund is reported.
    fn notes(&self) -> Vec<Notification> {
        let mut notes = Vec::new();
        if self.is_queued() {
            notes.push(self.end());
        }
        notes.extend(self.credited.map(|amount| self.credit(amount)));
        notes
    }

    fn is_queued(&self) -> bool {
        CATALOG.find(self.tool).is_none_or(|tool| tool.answer == Answer::Queued)
    }

    /// Webhook events for the same cases, with the ids a program needs to read more.
    fn events(&self) -> Vec<Event> {
        let cause = self.request_id.to_string();
        let event = |kind, data| Event::new(self.agent, kind, &cause, self.at, data);
        let about = json!({"request_id": self.request_id, "tool": self.tool, "receipt_id": self.receipt_id});
        let mut events = Vec::new();
        if self.is_queued() {
            let mut data = about.clone();
            data["status"] = json!(if self.completed { "completed" } else { "failed" });
            data["status_url"] = json!(format!("/v1/requests/{}", self.request_id));
            if let (false, Some((code, message))) = (self.completed, self.error) {
                data["error"] = json!({"code": code, "message": message});
            }
            let kind = if self.completed { EventKind::RequestCompleted } else { EventKind::RequestFailed };
            events.push(event(kind, data));
        }
        if let Some(amount) = self.credited {
            let mut data = about;
            data["amount_usdc"] = json!(amount.to_string());
            data["kept_usdc"] = json!(self.kept.unwrap_or_default().to_string());
            events.push(event(EventKind::CreditIssued, data));
        }
        events
    }

    fn end(&self) -> Notification {
        let mut payload = json!({"request_id": self.request_id, "tool": self.tool, "receipt_id": self.receipt_id});
        if self.completed {
            return Notification {
                kind: match self.tool {
                    SMS => NotificationKind::SmsCompleted,
                    VOICE => NotificationKind::VoiceCompleted,
                    _ => NotificationKind::JobCompleted,
                },
                title: format!("{} is done", self.tool),
                body: Some(format!("Read the result at /v1/requests/{}.", self.request_id)),
                payload: Some(payload),
            };
        }
        let (code, message) = self.error.unwrap_or(("internal_error", "the job failed"));
        payload["error_code"] = json!(code);
        Notification {
            kind: NotificationKind::JobFailed,
            title: format!("{} failed", self.tool),
            body: Some(message.to_owned()),
            payload: Some(payload),
        }
    }

    fn credit(&self, amount: Usdc) -> Notification {
        Notification {
            kind: NotificationKind::CreditIssued,
            title: format!("{amount} USDC paid back as credits"),
            body: Some(match self.kept {
                Some(kept) if self.completed => {
                    format!("{} cost {kept} USDC. The rest of its price was added to your credits.", self.tool)
                }
                None => format!("{} failed. Its price was added to your credits.", self.tool),
                Some(kept) => format!(
                    "{} failed. Its price was added to your credits, minus {kept} USDC that it had used up for paid tools and \
                     the model.",
                    self.tool
                ),
            }),
            payload: Some(json!({
                "amount_usdc": amount.to_string(),
                "kept_usdc": self.kept.unwrap_or_default().to_string(),
                "request_id": self.request_id,
                "tool": self.tool,
                "receipt_id": self.receipt_id,
            })),
        }
    }
}
