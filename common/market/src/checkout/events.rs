//! Order webhooks to platforms: `order_create` when a session was charged, `order_update` when its work is done or
//! refunded.
//!
//! Events are derived from the DynamoDB stream of jobs. A completion is a change of the job, so each completion causes
//! its event, nothing else causes one, and no call waits for it. The stream delivers a change at least once, always with
//! the same images. Kind and time of an event are computed from those images, so a repeat gives the same event.

use base::clock::Timestamp;
use base::digest::sha256_parts;
use base::ids::{AgentId, EndpointId};
use base::money::Usdc;
use gate::app::App;
use ledger::webhooks::{Endpoint, Event, EventKind, Outgoing, endpoint, outbox};
use platform::store::{Db, StoreError};
use serde_json::{Value, json};
use uuid::Uuid;

use super::goods::whole_cents;

/// One event of an order, in ACP's form.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderEvent {
    pub platform: Uuid,
    /// The endpoint that receives it.
    pub hook: Option<EndpointId>,
    pub kind: EventKind,
    /// The order's id. Id and time together identify the event.
    pub order: String,
    pub happened: Timestamp,
    /// ACP's `data`.
    pub data: Value,
}

/// The webhook endpoint of a platform, if its configuration names one. It is created on first use. A new URL makes a
/// new endpoint.
pub async fn endpoint_of(app: &App, platform: Uuid) -> Result<Option<EndpointId>, StoreError> {
    let Some(platform) = app.config.platforms.by_id(platform) else { return Ok(None) };
    let Some(hook) = &platform.webhook else { return Ok(None) };
    let (db, now) = (&app.db, app.clock.now());
    let digest = sha256_parts(&[b"platform hook", platform.id.as_bytes(), hook.url.as_bytes()]);
    let id = EndpointId::named(&digest);
    if endpoint::load(db, platform.owner(), id).await?.is_none() {
        let events = vec![EventKind::OrderCreate, EventKind::OrderUpdate];
        let made = Endpoint::new(id, platform.owner(), hook.url.clone(), events, now);
        db.write(endpoint::configured(db, &made)?).await?;
    }
    Ok(Some(id))
}

/// The deliveries of the events that have an endpoint.
pub fn outgoing(db: &Db, events: &[OrderEvent], now: Timestamp) -> Result<Outgoing, StoreError> {
    let mut all = Outgoing::default();
    for event in events {
        let owner = AgentId::from_bytes(*event.platform.as_bytes());
        let told = Event::new(owner, event.kind, &event.order, event.happened, event.data.clone());
        all = all.and(outbox::to(db, &told, event.hook.into_iter(), now)?);
    }
    Ok(all)
}

/// The events of one change of a job, from its images in DynamoDB JSON. Most changes cause none.
pub fn of_change(old: &Value, new: &Value) -> Vec<OrderEvent> {
    read(old, new).unwrap_or_default()
}

fn read(old: &Value, new: &Value) -> Option<Vec<OrderEvent>> {
    let text = |image: &Value, name: &str| image[name]["S"].as_str().map(str::to_owned);
    // After a chain reorganisation the same payment settles again. That is not a new order.
    if new["reorganized"]["BOOL"] == true {
        return None;
    }
    let ordered = &new["ordered"]["M"];
    let session = ordered["session"]["S"].as_str()?;
    let hook = ordered["hook"]["S"].as_str().and_then(|hook| hook.parse().ok());
    let platform: Uuid = ordered["platform"]["S"].as_str()?.parse().ok()?;
    let (origin, request) = (ordered["origin"]["S"].as_str()?, text(new, "request_id")?);
    let happened = Timestamp::from_millis(new["updated"]["N"].as_str()?.parse().ok()?);
    // An earlier outcome without settlement belongs to a failed attempt under the same job id.
    let settled = |image: &Value| text(image, "settlement").as_deref() == Some("settled");
    let outcome = text(new, "outcome").filter(|_| text(old, "outcome").is_none() || !settled(old));
    let mut events = Vec::new();
    let mut tell = |kind, status: &str, refunds: Value| {
        let data = json!({
            "type": "order",
            "checkout_session_id": session,
            "permalink_url": format!("{origin}/v1/requests/{request}"),
            "status": status,
            "refunds": refunds,
        });
        events.push(OrderEvent { platform, hook, kind, order: format!("order_{request}"), happened, data });
    };
    if settled(new) && !settled(old) {
        tell(EventKind::OrderCreate, "created", json!([]));
    }
    match outcome.as_deref().filter(|_| settled(new)) {
        Some("completed") => tell(EventKind::OrderUpdate, "fulfilled", json!([])),
        Some(_) => {
            let back = new["credited"]["N"].as_str().and_then(|micro| micro.parse().ok()).map(Usdc::from_micro);
            // A partial refund may have fractions of a cent, which ACP cannot express. The credits keep them.
            let back = back.map(whole_cents).filter(|amount| *amount > 0);
            let back = back.map(|amount| json!([{"type": "store_credit", "amount": amount}]));
            tell(EventKind::OrderUpdate, "canceled", back.unwrap_or_else(|| json!([])));
        }
        None => {}
    }
    Some(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(settlement: &str, outcome: Option<&str>) -> Value {
        let session = Uuid::nil().to_string();
        let mut image = json!({
            "pk": {"S": "JOB#1"}, "request_id": {"S": "r"}, "settlement": {"S": settlement}, "updated": {"N": "5"},
            "ordered": {"M": {
                "session": {"S": session}, "platform": {"S": session}, "origin": {"S": "https://shop.example"},
            }},
        });
        if let Some(outcome) = outcome {
            image["outcome"] = json!({"S": outcome});
        }
        if outcome == Some("failed") {
            image["credited"] = json!({"N": "500000"});
        }
        image
    }

    #[test]
    fn each_change_causes_one_event() {
        let told = |old: &Value, new: &Value| -> Vec<(String, String)> {
            let word = |event: &OrderEvent| event.data["status"].as_str().unwrap_or_default().to_owned();
            of_change(old, new).iter().map(|event| (event.kind.as_str().to_owned(), word(event))).collect()
        };
        let pair = |kind: &str, status: &str| (kind.to_owned(), status.to_owned());
        let (claimed, settled) = (image("claimed", None), image("settled", None));
        assert_eq!(told(&Value::Null, &claimed), []);
        assert_eq!(told(&claimed, &settled), [pair("order_create", "created")]);
        assert_eq!(told(&settled, &settled), []);
        let done = image("settled", Some("completed"));
        assert_eq!(told(&settled, &done), [pair("order_update", "fulfilled")]);
        assert_eq!(told(&done, &done), []);
        // Paid with credits: two changes, or one.
        assert_eq!(told(&Value::Null, &settled), [pair("order_create", "created")]);
        let both = [pair("order_create", "created"), pair("order_update", "fulfilled")];
        assert_eq!(told(&claimed, &done), both);
        // A refused payment is no order. A later payment can still settle.
        let refused = image("refused", Some("failed"));
        assert_eq!(told(&claimed, &refused), []);
        assert_eq!(told(&refused, &settled), [pair("order_create", "created")]);
        let failed = image("settled", Some("failed"));
        assert_eq!(told(&settled, &failed), [pair("order_update", "canceled")]);
        let event = of_change(&settled, &failed).remove(0);
        assert_eq!(event.data["refunds"], json!([{"type": "store_credit", "amount": 50}]));
        let mut other = settled.clone();
        other["ordered"] = Value::Null;
        assert_eq!(told(&claimed, &other), []);
    }
}
