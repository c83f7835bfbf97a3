//! The card processor: opens a payment page and says, in signed webhooks, what was paid. Speaks the protocol of Stripe
//! Checkout (form-encoded `POST /v1/checkout/sessions`; `Stripe-Signature: t=…,v1=…`, HMAC-SHA256 over `t.body`).

use ring::hmac;
use serde_json::Value;

use super::signature;
use crate::clock::Timestamp;
use crate::config::{CardConfig, Config, Redacted};
use crate::ids::AgentId;
use crate::money::Usdc;
use crate::net::PlainHttp;
use crate::store::StoreError;

/// micro-USDC in a cent: a card pays US dollars, and a credit is one.
const MICRO_PER_CENT: u64 = 10_000;

/// The configured processor.
pub struct Cards {
    http: PlainHttp,
    url: String,
    key: Redacted,
    webhook: hmac::Key,
    return_url: String,
}

/// A page on which somebody can pay.
pub struct Session {
    pub id: String,
    pub url: String,
}

/// A session that was paid.
#[derive(Debug, PartialEq, Eq)]
pub struct PaidSession {
    pub session: String,
    pub agent: AgentId,
    /// micro-USDC
    pub amount: Usdc,
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

    /// Opens a payment page for an agent's credits.
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

    /// Whether a webhook's body was signed by the processor, just now.
    pub fn is_signed(&self, header: &str, body: &[u8], now: Timestamp) -> bool {
        signature::is_signed(&self.webhook, header, body, now)
    }

    /// The paid session an event tells of; `None` for every other event.
    pub fn paid_session(body: &[u8]) -> Option<PaidSession> {
        let event: Value = serde_json::from_slice(body).ok()?;
        let kinds = ["checkout.session.completed", "checkout.session.async_payment_succeeded"];
        let session = &event["data"]["object"];
        let is_paid = kinds.contains(&event["type"].as_str()?)
            && session["payment_status"] == "paid"
            && session["currency"] == "usd";
        if !is_paid {
            return None;
        }
        let amount = session["amount_total"].as_u64()?.checked_mul(MICRO_PER_CENT)?;
        let agent = session["client_reference_id"].as_str()?.parse().ok()?;
        Some(PaidSession { session: session["id"].as_str()?.to_owned(), agent, amount: Usdc::from_micro(amount) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_paid_session_in_dollars_is_credited() {
        let agent = "540aa72d-1863-849b-8f70-3815c11f323d";
        let event = |kind: &str, status: &str, currency: &str| {
            let object = json!({
                "id": "cs_1", "client_reference_id": agent, "amount_total": 500, "currency": currency,
                "payment_status": status,
            });
            Cards::paid_session(json!({"type": kind, "data": {"object": object}}).to_string().as_bytes())
        };
        let paid = event("checkout.session.completed", "paid", "usd").unwrap();
        assert_eq!((paid.session.as_str(), paid.amount), ("cs_1", Usdc::from_micro(5_000_000)));
        assert_eq!(paid.agent.to_string(), agent);
        assert_eq!(event("checkout.session.completed", "unpaid", "usd"), None);
        assert_eq!(event("checkout.session.completed", "paid", "eur"), None);
        assert_eq!(event("checkout.session.expired", "paid", "usd"), None);
        assert_eq!(Cards::paid_session(b"{"), None);
    }
}
