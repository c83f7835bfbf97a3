//! The queues. Messages are small and versioned; they name a job or another entity, which has the data.

use std::time::Duration;

use aws_sdk_sqs::error::DisplayErrorContext;
use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use base::clock::Timestamp;
use base::ids::{AgentId, EndpointId, EventId, RequestId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::aws::Aws;
use super::{BoxFuture, StoreError};

/// A queue message. A lost message is harmless, because the sweeper sends it again; only a received mail then stays in the
/// bucket, unseen. So is a duplicate, because a job is
/// leased before any work on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Message {
    /// Take this job's next steps: settle, work, finish.
    Job {
        request_id: RequestId,
        /// X-Ray trace of the original call, to find its lines in the worker's log.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<String>,
    },
    /// Run the test cases of a soul's service, for the trial due at `due`. `daily`: the regular daily trial, not one caused
    /// by a change.
    Trial {
        soul: String,
        service: String,
        due: Timestamp,
        #[serde(default)]
        daily: bool,
    },
    /// Publish which tools are unavailable (on the queue of built-in tools).
    Availability {},
    /// Begin the hourly chores (on the queue of built-in tools).
    #[serde(alias = "phones")]
    Chores {},
    /// Do one of them.
    Chore { name: String },
    /// Take the next steps of a webhook delivery (on the delivery queue).
    Delivery { agent: AgentId, endpoint: EndpointId, event: EventId },
    /// Take a mail that SES stored into the mailboxes (on the queue of received mail). `mail`: what SES said of it.
    Mail { event: String, mail: Value },
    /// Take what a visitor wrote in a site's form into the mailbox of its owner (on the queue of built-in tools).
    Lead(Lead),
    /// Index the page in this blob (on the index queue).
    Page { key: String },
    /// Remove a page from the index, by its address in the form of `search::address::same_page`.
    Unlist { page: String },
    /// Read a page that the operator wants in the index.
    Visit { url: String },
}

/// What a visitor of a site wrote. It was checked when it was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lead {
    pub id: Uuid,
    /// The site.
    pub build: Uuid,
    pub at: Timestamp,
    pub name: String,
    pub email: String,
    pub message: String,
}

impl Message {
    pub fn to_json(&self) -> String {
        // An enum of plain fields always serialises.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn parse(text: &str) -> Result<Message, StoreError> {
        serde_json::from_str(text).map_err(StoreError::new)
    }
}

/// A queue: SQS when deployed, in process in local runs.
pub trait Queue: Send + Sync {
    fn send<'a>(&'a self, message: &'a Message) -> BoxFuture<'a, Result<(), StoreError>> {
        self.send_after(message, Duration::ZERO)
    }

    /// Sends a message that is delivered after `delay`, capped at [`MAX_DELAY`].
    fn send_after<'a>(&'a self, message: &'a Message, delay: Duration) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Sends all of them, or as many as it can: a failure does not stop the rest.
    fn send_all<'a>(&'a self, messages: &'a [Message]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut sent = Ok(());
            for message in messages {
                sent = self.send(message).await.and(sent);
            }
            sent
        })
    }

    /// The approximate number of waiting messages, if the queue knows it.
    fn waiting(&self) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        Box::pin(async { Ok(None) })
    }
}

/// SQS's longest delay.
pub const MAX_DELAY: Duration = Duration::from_secs(900);
/// Most messages in one request to SQS.
const MAX_BATCH: usize = 10;

/// Queues a job. A failure is only logged: the sweeper will queue the job again.
pub async fn send_or_log(queue: &dyn Queue, request_id: RequestId, trace: Option<String>) {
    if let Err(error) = queue.send(&Message::Job { request_id, trace }).await {
        crate::http::log::failure("could not queue a job; the sweeper will", &error);
    }
}

/// No queue; the text says why. For functions that never send to it.
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

    /// Sends at most [`MAX_BATCH`] messages in one request. SQS may refuse some of them and take the others.
    async fn send_batch(&self, messages: &[Message]) -> Result<(), StoreError> {
        let mut request = self.aws.sqs().send_message_batch().queue_url(&self.url);
        for (id, message) in messages.iter().enumerate() {
            let entry = SendMessageBatchRequestEntry::builder().id(id.to_string()).message_body(message.to_json());
            request = request.entries(entry.build().map_err(StoreError::new)?);
        }
        let answer = request.send().await.map_err(|error| StoreError::new(DisplayErrorContext(&error)))?;
        match answer.failed() {
            [] => Ok(()),
            [first, ..] => {
                let (failed, all, code) = (answer.failed().len(), messages.len(), first.code());
                Err(StoreError::new(format_args!("SQS refused {failed} of {all} messages: {code}")))
            }
        }
    }
}

impl Queue for SqsQueue {
    fn send_after<'a>(&'a self, message: &'a Message, delay: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let request = self.aws.sqs().send_message().queue_url(&self.url).message_body(message.to_json());
            // Rounded up: if a message arrived early, its delivery would not be due yet.
            let secs = delay.min(MAX_DELAY).as_millis().div_ceil(1000);
            let secs = i32::try_from(secs).ok().filter(|secs| *secs > 0);
            let request = request.set_delay_seconds(secs);
            request.send().await.map_err(|error| StoreError::new(DisplayErrorContext(&error)))?;
            Ok(())
        })
    }

    fn send_all<'a>(&'a self, messages: &'a [Message]) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut sent = Ok(());
            for batch in messages.chunks(MAX_BATCH) {
                sent = self.send_batch(batch).await.and(sent);
            }
            sent
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
