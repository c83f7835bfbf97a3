//! The card processor: opens a payment page, and reports payments and reversals in signed webhooks. Speaks the protocol of
//! Stripe Checkout (form-encoded `POST /v1/checkout/sessions`; `Stripe-Signature: t=…,v1=…`, HMAC-SHA256 over `t.body`).

use base::clock::Timestamp;
use base::ids::AgentId;
use base::money::Usdc;
use platform::config::{CardConfig, Config, Redacted};
use platform::net::PlainHttp;
use platform::providers::signature;
use platform::store::StoreError;
use ring::hmac;
use serde_json::Value;

use crate::card::{CardEvent, TakenBack};

/// micro-USDC in a cent. A card pays in US dollars, and one credit is one dollar.
const MICRO_PER_CENT: u64 = 10_000;

/// The configured processor.
pub struct Cards {
    http: PlainHttp,
    url: String,
    key: Redacted,
    webhook: hmac::Key,
    return_url: String,
}

/// A payment page.
pub struct Session {
    pub id: String,
    pub url: String,
}

/// An event and the processor's id of its payment (the session's id if there is no payment id).
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    pub payment: String,
    pub event: CardEvent,
}

impl Cards {
    /// The processor, if one is configured.
    pub fn configured(config: &Config, http: &PlainHttp) -> Option<Cards> {
        let CardConfig { url, key, webhook_secret } = config.cards.clone()?;
        Some(Cards {
            http: http.clone(),
            url,
            key,
            webhook: hmac::Key::new(hmac::HMAC_SHA256, webhook_secret.expose().as_bytes()),
            return_url: config.base_url.clone().unwrap_or_else(|| "https://example.com".to_owned()),
        })
    }

    /// Opens a payment page on which an agent's credits can be bought.
    pub async fn open_session(&self, agent: AgentId, amount: Usdc) -> Result<Session, StoreError> {
        let cents = (amount.micro() / MICRO_PER_CENT).to_string();
        let agent = agent.to_string();
        let form: [(&str, &str); 9] = [
            ("mode", "payment"),
            ("client_reference_id", &agent),
            ("metadata[agent_id]", &agent),
            ("line_items[0][quantity]", "1"),
            ("line_items[0][price_data][currency]", "usd"),
            ("line_items[0][price_data][unit_amount]", &cents),
            ("line_items[0][price_data][product_data][name]", "Credits"),
            ("success_url", &self.return_url),
            ("cancel_url", &self.return_url),
        ];
        let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = http::Request::post(format!("{}/v1/checkout/sessions", self.url))
            .header("authorization", format!("Bearer {}", self.key.expose()))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form.into_bytes())
            .map_err(StoreError::new)?;
        let answer = self.http.send(request).await.map_err(StoreError::new)?;
        let body: Value = serde_json::from_slice(&answer.body).map_err(StoreError::new)?;
        match (answer.status, body["id"].as_str(), body["url"].as_str()) {
            (200, Some(id), Some(url)) => Ok(Session { id: id.to_owned(), url: url.to_owned() }),
            (status, ..) => Err(StoreError::new(format_args!(
                "the card processor answered {status}: {}",
                body["error"]["message"].as_str().unwrap_or_default()
            ))),
        }
    }

    /// Whether the processor signed this webhook body recently.
    pub fn is_signed(&self, header: &str, body: &[u8], now: Timestamp) -> bool {
        signature::is_signed(&self.webhook, header, body, now)
    }

    /// The payment event in a webhook body; `None` if it is about something else.
    pub fn told(body: &[u8]) -> Option<Told> {
        let event: Value = serde_json::from_slice(body).ok()?;
        let object = &event["data"]["object"];
        let at = event["created"].as_i64().unwrap_or_default();
        let kind = event["type"].as_str()?;
        let payment = id_of(&object["payment_intent"]);
        let status = object["status"].as_str().unwrap_or_default();
        let taken_back = |counts, is_dispute, rank| {
            // A dispute in another currency counts for the whole payment.
            let amount = micro(&object["amount"], &object["currency"]).unwrap_or(Usdc::from_micro(u64::MAX));
            let part = TakenBack { amount, is_dispute, counts, at, rank };
            Some(CardEvent::TakenBack { id: id_of(&object["id"])?, part })
        };
        let event = match kind {
            "checkout.session.completed" | "checkout.session.async_payment_succeeded" => {
                if object["payment_status"] != "paid" {
                    return None;
                }
                let (session, agent) = (id_of(&object["id"])?, object["client_reference_id"].as_str()?.parse().ok()?);
                let amount = micro(&object["amount_total"], &object["currency"])?;
                let payment = payment.unwrap_or_else(|| session.clone());
                return Some(Told { payment, event: CardEvent::Paid { session, agent, amount } });
            }
            "charge.refunded" => {
                CardEvent::Refunded { amount: micro(&object["amount_refunded"], &object["currency"])?, at }
            }
            "refund.created" | "refund.updated" | "refund.failed" | "charge.refund.updated" => match status {
                "failed" | "canceled" => taken_back(false, false, 2)?,
                "succeeded" => taken_back(true, false, 1)?,
                _ => taken_back(true, false, 0)?,
            },
            // While the bank only inquires, and after the dispute is won, the money is ours.
            "charge.dispute.created" => taken_back(is_lost_by(status), true, 0)?,
            "charge.dispute.updated" => taken_back(is_lost_by(status), true, 1)?,
            "charge.dispute.funds_withdrawn" => taken_back(true, true, 2)?,
            "charge.dispute.closed" => taken_back(is_lost_by(status), true, 3)?,
            "charge.dispute.funds_reinstated" => taken_back(false, true, 4)?,
            _ => return None,
        };
        Some(Told { payment: payment?, event })
    }
}

/// Whether a dispute in this state withholds the money.
fn is_lost_by(status: &str) -> bool {
    status != "won" && !status.starts_with("warning_")
}

/// An id, or the id of the expanded object in its place.
fn id_of(value: &Value) -> Option<String> {
    let id = value.as_str().or_else(|| value["id"].as_str())?;
    // Limited, because it becomes part of a key.
    (id.len() <= 255).then(|| id.to_owned())
}

/// An amount in cents, US dollars only.
fn micro(cents: &Value, currency: &Value) -> Option<Usdc> {
    let cents = cents.as_u64().filter(|_| currency == "usd")?;
    cents.checked_mul(MICRO_PER_CENT).map(Usdc::from_micro)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(kind: &str, object: Value) -> Option<Told> {
        let event = json!({"id": "evt_1", "created": 1_795_000_000, "type": kind, "data": {"object": object}});
        Cards::told(event.to_string().as_bytes())
    }

    #[test]
    fn only_a_paid_session_in_dollars_is_credited() {
        let agent = "540aa72d-1863-849b-8f70-3815c11f323d";
        let session = |kind: &str, status: &str, currency: &str, payment: Value| {
            told(
                kind,
                json!({
                    "id": "cs_1", "client_reference_id": agent, "amount_total": 500, "currency": currency,
                    "payment_status": status, "payment_intent": payment,
                }),
            )
        };
        let completed = "checkout.session.completed";
        let paid = CardEvent::Paid {
            session: "cs_1".to_owned(),
            agent: agent.parse().unwrap(),
            amount: Usdc::from_micro(5_000_000),
        };
        for (payment, id) in [(json!("pi_1"), "pi_1"), (json!({"id": "pi_1"}), "pi_1"), (json!(null), "cs_1")] {
            let told = session(completed, "paid", "usd", payment).unwrap();
            assert_eq!((told.payment.as_str(), told.event), (id, paid.clone()));
        }
        assert_eq!(session(completed, "unpaid", "usd", json!("pi_1")), None);
        assert_eq!(session(completed, "paid", "eur", json!("pi_1")), None);
        assert_eq!(session("checkout.session.expired", "paid", "usd", json!("pi_1")), None);
        assert_eq!(Cards::told(b"{"), None);
    }

    #[test]
    fn refund_and_dispute_events_say_whether_the_money_is_ours() {
        let counts = |kind: &str, status: &str| {
            let object =
                json!({"id": "x_1", "payment_intent": "pi_1", "amount": 200, "currency": "usd", "status": status});
            match told(kind, object).expect(kind).event {
                CardEvent::TakenBack { part, .. } => {
                    assert_eq!(part.amount, Usdc::from_micro(2_000_000));
                    part.counts
                }
                other => panic!("{other:?}"),
            }
        };
        for (kind, status, expected) in [
            ("refund.created", "pending", true),
            ("refund.updated", "succeeded", true),
            ("refund.failed", "failed", false),
            ("charge.refund.updated", "canceled", false),
            ("charge.dispute.created", "needs_response", true),
            ("charge.dispute.created", "warning_needs_response", false),
            ("charge.dispute.updated", "under_review", true),
            ("charge.dispute.funds_withdrawn", "needs_response", true),
            ("charge.dispute.closed", "lost", true),
            ("charge.dispute.closed", "won", false),
            ("charge.dispute.closed", "warning_closed", false),
            ("charge.dispute.funds_reinstated", "lost", false),
        ] {
            assert_eq!(counts(kind, status), expected, "{kind} {status}");
        }
        let charge =
            json!({"id": "ch_1", "payment_intent": "pi_1", "amount": 500, "amount_refunded": 300, "currency": "usd"});
        let refunded = CardEvent::Refunded { amount: Usdc::from_micro(3_000_000), at: 1_795_000_000 };
        assert_eq!(told("charge.refunded", charge).unwrap().event, refunded);
        let dispute =
            json!({"id": "du_1", "payment_intent": "pi_1", "amount": 480, "currency": "eur", "status": "lost"});
        let CardEvent::TakenBack { part, .. } = told("charge.dispute.closed", dispute).unwrap().event else { panic!() };
        assert_eq!(part.amount, Usdc::from_micro(u64::MAX), "the whole, whatever a euro is worth");
        for without in [json!({"id": "re_1", "amount": 1, "currency": "usd"}), json!({})] {
            assert_eq!(told("refund.created", without), None, "about no payment of ours");
        }
    }
}
