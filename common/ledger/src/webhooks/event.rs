//! Events that receivers are told about.

use base::clock::Timestamp;
use base::ids::{AgentId, EventId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The type of an event. The names are the wire's and are stored; adding one does not change the stored ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EventKind {
    #[serde(rename = "request.completed")]
    RequestCompleted,
    #[serde(rename = "request.failed")]
    RequestFailed,
    #[serde(rename = "credit.issued")]
    CreditIssued,
    #[serde(rename = "budget.warning")]
    BudgetWarning,
    #[serde(rename = "approval.decided")]
    ApprovalDecided,
    #[serde(rename = "payout.completed")]
    PayoutCompleted,
    #[serde(rename = "email.received")]
    EmailReceived,
    #[serde(rename = "email.bounced")]
    EmailBounced,
    #[serde(rename = "sms.received")]
    SmsReceived,
    #[serde(rename = "voice.inbound.completed")]
    VoiceInboundCompleted,
    #[serde(rename = "goal.updated")]
    GoalUpdated,
    #[serde(rename = "order.updated")]
    OrderUpdated,
    /// Events of a checkout, in the format of ACP (Agentic Commerce Protocol).
    #[serde(rename = "order_create")]
    OrderCreate,
    #[serde(rename = "order_update")]
    OrderUpdate,
    /// Sent when the owner asks for it, regardless of the subscription.
    #[serde(rename = "webhook.test")]
    Test,
}

impl EventKind {
    /// The types an endpoint may subscribe to, with their descriptions.
    pub const SUBSCRIBABLE: [(EventKind, &'static str); 14] = [
        (EventKind::RequestCompleted, "A job of yours is done"),
        (EventKind::RequestFailed, "A job of yours failed"),
        (EventKind::CreditIssued, "The price of a call came back as credits"),
        (EventKind::BudgetWarning, "Spending has come to the alert level of your budget, or is far above usual"),
        (EventKind::ApprovalDecided, "An approval you asked for was decided"),
        (EventKind::PayoutCompleted, "Earnings have arrived in your wallet"),
        (EventKind::EmailReceived, "A mail has arrived in your inbox"),
        (EventKind::EmailBounced, "A mail that you sent was accepted and then refused for good"),
        (EventKind::SmsReceived, "A text has arrived at your number"),
        (EventKind::VoiceInboundCompleted, "A call that your number answered has ended"),
        (EventKind::GoalUpdated, "A goal of yours waits for your answer"),
        (EventKind::OrderUpdated, "A purchase of yours moved: sent, delivered, cancelled, paid back"),
        (EventKind::OrderCreate, "A checkout became an order"),
        (EventKind::OrderUpdate, "An order changed"),
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            EventKind::RequestCompleted => "request.completed",
            EventKind::RequestFailed => "request.failed",
            EventKind::CreditIssued => "credit.issued",
            EventKind::BudgetWarning => "budget.warning",
            EventKind::ApprovalDecided => "approval.decided",
            EventKind::PayoutCompleted => "payout.completed",
            EventKind::EmailReceived => "email.received",
            EventKind::EmailBounced => "email.bounced",
            EventKind::SmsReceived => "sms.received",
            EventKind::VoiceInboundCompleted => "voice.inbound.completed",
            EventKind::GoalUpdated => "goal.updated",
            EventKind::OrderUpdated => "order.updated",
            EventKind::OrderCreate => "order_create",
            EventKind::OrderUpdate => "order_update",
            EventKind::Test => "webhook.test",
        }
    }

    /// The subscribable type with this name.
    pub fn subscribable(name: &str) -> Option<EventKind> {
        EventKind::SUBSCRIBABLE.iter().map(|(kind, _)| *kind).find(|kind| kind.as_str() == name)
    }

    /// Whether ACP defines the body, and requires its own signature header.
    pub fn is_order(self) -> bool {
        matches!(self, EventKind::OrderCreate | EventKind::OrderUpdate)
    }
}

/// An event for an agent's receivers.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: EventId,
    pub kind: EventKind,
    /// The agent whose endpoints receive the event.
    pub agent: AgentId,
    pub happened: Timestamp,
    /// A JSON object that says what to read. Never put results or secrets here: the endpoint's operator reads it. The one
    /// exception is `voice.inbound.completed`, whose format has the whole call, with its transcript.
    pub data: Value,
}

impl Event {
    /// `cause` names the subject (a job, a session and its version), `happened` the time. Both must be the same each time
    /// the event is raised.
    pub fn new(agent: AgentId, kind: EventKind, cause: &str, happened: Timestamp, data: Value) -> Event {
        Event { id: EventId::of(agent, kind.as_str(), cause, happened), kind, agent, happened, data }
    }

    /// The body that every attempt sends, byte for byte. It has `created_at` and, for Standard Webhooks, `timestamp`. An
    /// order has only ACP's two members.
    pub fn body(&self) -> String {
        if self.kind.is_order() {
            return json!({"type": self.kind, "data": self.data}).to_string();
        }
        let happened = self.happened.to_string();
        json!({
            "id": self.id,
            "type": self.kind,
            "created_at": happened,
            "timestamp": happened,
            "agent_id": self.agent,
            "data": self.data,
        })
        .to_string()
    }
}

#[cfg(test)]
mod tests {
    use evm::Address;

    use super::*;

    #[test]
    fn the_same_cause_has_the_same_id() {
        let agent = AgentId::of(Address::ZERO);
        let event = |cause: &str, secs| {
            Event::new(agent, EventKind::RequestCompleted, cause, Timestamp::from_secs(secs), json!({}))
        };
        let first = event("a", 10);
        assert_eq!(first.id, event("a", 10).id);
        assert_ne!(first.id, event("b", 10).id);
        assert!(first.id < event("a", 11).id, "ids sort by time");
        assert_eq!(first.id.to_string().parse(), Ok(first.id));
        for wrong in ["", "evt_", "evt_x#y", &first.id.to_string().to_lowercase(), &first.id.to_string()[4..]] {
            assert!(wrong.parse::<EventId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn kinds_serialise_as_their_wire_names() {
        for (kind, _) in EventKind::SUBSCRIBABLE {
            assert_eq!(json!(kind), json!(kind.as_str()));
            assert_eq!(EventKind::subscribable(kind.as_str()), Some(kind));
        }
        assert_eq!(EventKind::subscribable("webhook.test"), None, "it needs no subscription");
        assert_eq!(json!(EventKind::Test), json!("webhook.test"));
    }

    #[test]
    fn an_order_has_the_acp_body_and_other_events_have_both_member_sets() {
        let event = |kind| {
            let event = Event::new(AgentId::of(Address::ZERO), kind, "a", Timestamp::from_secs(1), json!({"x": 1}));
            serde_json::from_str::<Value>(&event.body()).unwrap()
        };
        let order = event(EventKind::OrderCreate);
        assert_eq!(order, json!({"type": "order_create", "data": {"x": 1}}));
        let test = event(EventKind::Test);
        for member in ["id", "type", "created_at", "timestamp", "agent_id", "data"] {
            assert!(test.get(member).is_some(), "{member}");
        }
    }
}
