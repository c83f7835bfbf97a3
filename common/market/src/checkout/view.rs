//! The two response shapes of a session: ACP's schema, strictly, and the simple shape of `/v1/checkout_sessions`.

use base::money::Usdc;
use gate::jobs::Job;
use gate::jobs::job::{Outcome, Settlement};
use serde_json::{Map, Value, json};

use super::Checkout;
use super::error::Family;
use super::goods::cents;
use super::handlers;
use super::request::OLDER_BUYER;
use super::session::{Message, Session, State};

/// The only fulfillment option.
pub const DIGITAL: &str = "digital";

/// The data for the response to one request about a session.
pub struct View<'a> {
    pub checkout: &'a Checkout,
    pub session: &'a Session,
    /// The job that was claimed for the session.
    pub job: Option<&'a Job>,
    pub state: State,
    /// `https://host`
    pub origin: &'a str,
}

impl View<'_> {
    pub fn to_json(&self, family: Family) -> Value {
        match family {
            Family::Acp => self.acp(),
            Family::Simple => self.simple(),
        }
    }

    fn unit(&self) -> Usdc {
        self.session.offer.as_ref().map_or(Usdc::ZERO, |offer| offer.unit)
    }

    /// micro-USDC. Whole cents, because the unit price is.
    fn total(&self) -> Usdc {
        Usdc::from_micro(self.unit().micro().saturating_mul(u64::from(self.session.quantity)))
    }

    fn said(&self) -> Map<String, Value> {
        serde_json::from_str(&self.session.said).unwrap_or_default()
    }

    fn url(&self, family: Family) -> String {
        let folder = if family == Family::Acp { "acp" } else { "v1" };
        format!("{}/{folder}/checkout_sessions/{}", self.origin, self.session.id)
    }

    fn handlers(&self, family: Family) -> Vec<Value> {
        handlers::of_session(self.checkout, self.session, self.origin, &format!("{}/complete", self.url(family)))
    }

    fn acp(&self) -> Value {
        let session = self.session;
        let said = self.said();
        let total = cents(self.total()).unwrap_or_default();
        let mut body = json!({
            "id": session.id,
            "protocol": {"version": super::VERSION},
            "status": self.state.acp(),
            "currency": super::CURRENCY,
            "line_items": [self.line()],
            "fulfillment_options": [{
                "type": DIGITAL,
                "id": DIGITAL,
                "title": "Digital delivery: poll for the result",
                "totals": [amount("total", "Delivery", 0)],
            }],
            "selected_fulfillment_options": [{
                "type": DIGITAL, "option_id": DIGITAL, "item_ids": [session.item],
            }],
            "totals": [
                amount("items_base_amount", "Items", total),
                amount("subtotal", "Subtotal", total),
                amount("fulfillment", "Delivery", 0),
                amount("tax", "Tax", 0),
                amount("total", "Total", total),
            ],
            "messages": self.messages(),
            "links": [
                {"type": "support", "title": "What is sold here", "url": format!("{}/.well-known/acp/manifest.json", self.origin)},
            ],
            "capabilities": {
                "payment": {"handlers": self.handlers(Family::Acp)},
                "interventions": {"supported": [], "required": [], "enforcement": "optional"},
            },
            "created_at": session.created.to_string(),
            "updated_at": session.updated.to_string(),
            "expires_at": session.expires_at.to_string(),
        });
        // Written last: a platform's metadata must not override status or price.
        let mut metadata = said.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        metadata.insert("status".to_owned(), json!(self.state.plain()));
        metadata.insert("total_usdc".to_owned(), json!(self.total().to_string()));
        metadata.insert("line_items".to_owned(), json!([self.simple_line()]));
        if let Some(job) = self.bought() {
            metadata.insert("request_id".to_owned(), json!(job.request_id));
        }
        body["metadata"] = Value::Object(metadata);
        if let Some(buyer) = acp_buyer(&said) {
            body["buyer"] = buyer;
        }
        for name in ["fulfillment_details", "locale", "timezone"] {
            if let Some(value) = said.get(name) {
                body[name] = value.clone();
            }
        }
        if let Some(price) = &session.price {
            body["quote_id"] = json!(price.quote);
            body["quote_expires_at"] = json!(session.expires_at.to_string());
        }
        if let Some(job) = self.bought() {
            body["order"] = self.order(job);
        }
        body
    }

    fn line(&self) -> Value {
        let session = self.session;
        let (unit, total) = (cents(self.unit()).unwrap_or_default(), cents(self.total()).unwrap_or_default());
        let mut line = json!({
            "id": "line_1",
            "item": {"id": session.item},
            "quantity": session.quantity,
            "product_id": session.item,
            "totals": [
                amount("items_base_amount", "Base amount", total),
                amount("subtotal", "Subtotal", total),
                amount("tax", "Tax", 0),
                amount("total", "Total", total),
            ],
        });
        match &session.offer {
            Some(offer) => {
                line["name"] = json!(offer.title);
                line["unit_amount"] = json!(unit);
                line["availability_status"] = json!("in_stock");
                line["max_quantity_per_order"] = json!(offer.goods.most());
                if let Some(seller) = &offer.seller {
                    line["marketplace_seller_details"] = json!({"name": seller});
                }
            }
            None => line["availability_status"] = json!("out_of_stock"),
        }
        line
    }

    fn simple_line(&self) -> Value {
        json!({
            "product_id": self.session.item,
            "quantity": self.session.quantity,
            "unit_price_usdc": self.unit().to_string(),
        })
    }

    fn simple(&self) -> Value {
        let session = self.session;
        let mut line = self.simple_line();
        let input: Value = serde_json::from_str(&session.input).unwrap_or_else(|_| json!({}));
        line["id"] = json!("line_1");
        line["item"] = json!({"id": session.item, "metadata": input});
        line["name"] = json!(session.offer.as_ref().map(|offer| &offer.title));
        let handlers = self.handlers(Family::Simple).into_iter().map(|mut handler| {
            handler["type"] = handler["id"].clone();
            handler["provider"] = handler["psp"].clone();
            handler
        });
        let mut body = json!({
            "id": session.id,
            "status": self.state.simple(),
            "acp_status": self.state.plain(),
            "line_items": [line],
            "total_usdc": self.total().to_string(),
            "currency": super::CURRENCY,
            "buyer": self.said().get("buyer"),
            "fulfillment": {"type": DIGITAL},
            "payment_handlers": handlers.collect::<Vec<_>>(),
            "messages": self.messages(),
            "created_at": session.created.to_string(),
            "updated_at": session.updated.to_string(),
            "expires_at": session.expires_at.to_string(),
        });
        if let Some(metadata) = self.said().get("metadata") {
            body["metadata"] = metadata.clone();
        }
        if let Some(job) = self.bought() {
            body["order"] = self.order(job);
            body["order"]["request_id"] = json!(job.request_id);
            body["request_id"] = json!(job.request_id);
        }
        body
    }

    /// The job that was charged, or is being charged.
    fn bought(&self) -> Option<&Job> {
        self.job.filter(|_| matches!(self.state, State::Completed | State::InProgress))
    }

    fn order(&self, job: &Job) -> Value {
        let status = match (job.settlement, job.outcome) {
            (Settlement::Settled, Some(Outcome::Completed)) => "delivered",
            (Settlement::Settled, _) => "confirmed",
            _ => "processing",
        };
        json!({
            "id": order_id(job),
            "checkout_session_id": self.session.id,
            "permalink_url": permalink(self.origin, job),
            "status": status,
        })
    }

    fn messages(&self) -> Vec<Value> {
        let mut messages: Vec<Value> = match self.state {
            State::NotReady | State::Ready => self.session.messages.iter().map(Message::to_json).collect(),
            State::Expired => vec![error("expired", "$", "the session has expired; make a new one")],
            State::InProgress | State::Completed | State::Canceled => Vec::new(),
        };
        let job = self.job.filter(|_| self.session.attempted);
        match job {
            Some(job) if self.state == State::Ready => messages.push(declined(job)),
            Some(job) if job.outcome == Some(Outcome::Failed) && self.state == State::Completed => {
                let why = job.error.as_ref().map_or("the work failed", |error| error.message.as_str());
                let back = job.credited.unwrap_or_default();
                let kept = job.kept.map(|kept| format!(", less {kept} USDC that the work had used up"));
                let kept = kept.unwrap_or_default();
                messages.push(json!({
                    "type": "info", "severity": "high", "content_type": "plain",
                    "content": format!("{why}; {back} USDC were paid back as credits{kept}"),
                }));
            }
            Some(job) if self.state == State::Completed && job.outcome.is_none() => messages.push(json!({
                "type": "info", "content_type": "plain",
                "content": format!("paid; poll GET /v1/requests/{} for the result", job.request_id),
            })),
            _ => {}
        }
        messages
    }
}

impl Message {
    fn to_json(&self) -> Value {
        let Some(code) = &self.code else {
            return json!({
                "type": "info", "param": self.param, "content_type": "plain", "content": self.content,
            });
        };
        let mut message = error(code, &self.param, &self.content);
        if self.is_warning {
            message["type"] = json!("warning");
        }
        message
    }
}

fn error(code: &str, param: &str, content: &str) -> Value {
    json!({"type": "error", "code": code, "param": param, "content_type": "plain", "content": content})
}

/// Why the last claimed payment failed.
fn declined(job: &Job) -> Value {
    let why = job.error.as_ref().map_or("the payment failed; nothing was charged", |error| error.message.as_str());
    error("payment_declined", "$.payment_data", why)
}

fn amount(kind: &str, text: &str, cents: u64) -> Value {
    json!({"type": kind, "display_text": text, "amount": cents})
}

/// The order's id, derived from the job's.
pub fn order_id(job: &Job) -> String {
    format!("order_{}", job.request_id)
}

/// The order's page, for its buyer and its platform.
pub fn permalink(origin: &str, job: &Job) -> String {
    format!("{origin}/v1/requests/{}", job.request_id)
}

/// The buyer in ACP's form: `email` is required, and members of the older forms are renamed or dropped.
fn acp_buyer(said: &Map<String, Value>) -> Option<Value> {
    let mut buyer = said.get("buyer")?.as_object()?.clone();
    buyer.get("email")?;
    if let Some(name) = buyer.remove("name") {
        buyer.entry("full_name").or_insert(name);
    }
    buyer.retain(|name, _| !OLDER_BUYER.contains(&name.as_str()));
    Some(Value::Object(buyer))
}
