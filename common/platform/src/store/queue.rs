//! The job queue. Messages are small and versioned; what they mean is in the job they name.

use std::time::Duration;

use aws_sdk_sqs::error::DisplayErrorContext;
use aws_sdk_sqs::types::QueueAttributeName;
use base::clock::Timestamp;
use base::ids::{AgentId, EndpointId, EventId, RequestId};
use serde::{Deserialize, Serialize};

use super::aws::Aws;
use super::{BoxFuture, StoreError};

/// A message of the job queue. Losing one loses nothing (the sweeper sends it again), and a repeated one changes
/// nothing (a job is leased before it is worked on).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Message {
    /// Bring this job further: settle, work, finish.
    Job {
        request_id: RequestId,
        /// X-Ray trace of the call that asked for it, to follow it through the worker's log.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<String>,
    },
    /// Run the test cases of a soul's service, of a trial that is due then; daily, if nothing was changed.
    Trial {
        soul: String,
        service: String,
        due: Timestamp,
        #[serde(default)]
        daily: bool,
    },
    /// Publish what this deployment cannot do (the queue of our own tools).
    Availability {},
    /// Bring an event further on its way to an endpoint (the queue of deliveries).
    Delivery { agent: AgentId, endpoint: EndpointId, event: EventId },
    /// Index the page that lies in this blob (the queue of the index).
    Page { key: String },
    /// Take a page out of the index, by `search::address::same_page`.
    Unlist { page: String },
    /// Read a page that the operator wants in the index.
    Visit { url: String },
}

impl Message {
    pub fn to_json(&self) -> String {
        // An enum of strings always serialises.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn parse(text: &str) -> Result<Message, StoreError> {
        serde_json::from_str(text).map_err(StoreError::new)
    }
}

/// A queue to send jobs to: SQS when deployed, in process when local.
pub trait Queue: Send + Sync {
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), StoreError>> {
        self.send_after(message, Duration::ZERO)
    }

    /// Sends a message that nobody gets before `delay` is over, of which at most [`MAX_DELAY`] is kept to.
    fn send_after<'a>(&'a self, message: &'a Message, delay: Duration) -> BoxFuture<'a, Result<(), StoreError>>;

    /// About how many messages wait, if the queue can say.
    fn waiting(&self) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        Box::pin(async { Ok(None) })
    }
}

/// The longest a queue holds a message back (SQS).
pub const MAX_DELAY: Duration = Duration::from_secs(900);

/// Asks for a job to be brought further. A message that could not be sent is the sweeper's to send again, so this
/// never fails its caller.
pub async fn send_or_log(queue: &dyn Queue, request_id: RequestId, trace: Option<String>) {
    if let Err(error) = queue.send(&Message::Job { request_id, trace }).await {
        crate::http::log::failure("could not queue a job; the sweeper will", &error);
    }
}

/// No queue at all, and why: in functions that send nothing there.
pub struct NoQueue(pub &'static str);

impl Queue for NoQueue {
    fn send_after<'a>(&'a self, _: &'a Message, _: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async { Err(StoreError::new(self.0)) })
    }
}

/// Amazon SQS.
pub struct SqsQueue {
    aws: Aws,
    url: String,
}

impl SqsQueue {
    pub fn new(aws: &Aws, url: &str) -> SqsQueue {
        SqsQueue { aws: aws.clone(), url: url.to_owned() }
    }
}

impl Queue for SqsQueue {
    fn send_after<'a>(&'a self, message: &'a Message, delay: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let request = self.aws.sqs().send_message().queue_url(&self.url).message_body(message.to_json());
            // Rounded up: a message that comes early finds its delivery not yet due.
            let secs = delay.min(MAX_DELAY).as_millis().div_ceil(1000);
            let secs = i32::try_from(secs).ok().filter(|secs| *secs > 0);
            let request = request.set_delay_seconds(secs);
            request.send().await.map_err(|error| StoreError::new(DisplayErrorContext(&error)))?;
            Ok(())
        })
    }

    fn waiting(&self) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        Box::pin(async move {
            let wanted = QueueAttributeName::ApproximateNumberOfMessages;
            let request = self.aws.sqs().get_queue_attributes().queue_url(&self.url).attribute_names(wanted.clone());
            let answer = request.send().await.map_err(|error| StoreError::new(DisplayErrorContext(&error)))?;
            Ok(answer.attributes().and_then(|attributes| attributes.get(&wanted)?.parse().ok()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_queue() {
        let message = Message::Job { request_id: RequestId::bought_with("quote", &[b"q"]), trace: None };
        assert_eq!(Message::parse(&message.to_json()), Ok(message));
        assert!(Message::parse("{}").is_err());
        assert!(Message::parse(r#"{"kind":"unknown"}"#).is_err());
    }
}
