//! Deliveries: takes events off the queue and posts them to the endpoints that agents named. The only function that calls
//! addresses of strangers by itself; it may read and write nothing but the agents table.

use ledger::webhooks::Courier;
use platform::store::StoreError;
use platform::store::queue::Message;
use worker::{SqsAnswer, SqsEvent};

/// Works on a batch. Only the messages that failed are reported: those the database had no answer for. An attempt that
/// failed is none of them; it is in the delivery's log.
pub async fn handle(courier: &Courier, event: SqsEvent) -> SqsAnswer {
    let deliver = |message| async move {
        match message {
            Message::Delivery { agent, endpoint, event } => courier.deliver(agent, endpoint, event).await,
            _ => Err(StoreError::new("jobs and pages have queues of their own")),
        }
    };
    worker::each(event, deliver).await
}
