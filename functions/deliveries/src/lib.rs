//! Deliveries: takes webhook events from the queue and posts them to agents' endpoints. No other function calls untrusted
//! addresses unasked, so it may read and write only the agents table.

use ledger::webhooks::Courier;
use platform::store::StoreError;
use platform::store::queue::Message;
use worker::{SqsAnswer, SqsEvent};

/// Works on a batch. Reports only the messages that met a database error. A failed attempt is not reported: it is in the
/// delivery's log.
pub async fn handle(courier: &Courier, event: SqsEvent) -> SqsAnswer {
    let deliver = |message| async move {
        match message {
            Message::Delivery { agent, endpoint, event } => courier.deliver(agent, endpoint, event).await,
            _ => Err(StoreError::new("this queue is only for deliveries; jobs and pages have their own queues")),
        }
    };
    worker::each(event, deliver).await
}
