//! Pushes the states of jobs over WebSockets: the same as polling, at once.
//!
//! | row | key in the agents table | purpose |
//! |---|---|---|
//! | a connection | `SOCKET#<connection>` / `SOCKET` | its owner and its subscriptions |
//! | a slot | `SOCKETS#<agent>` / `00`..`99` | limits the connections of an agent, under any concurrency |
//! | a subscription | `WATCH#<request id>` / `<connection>` | who is subscribed to a job: one partition per job |
//!
//! A job that ever had a subscriber has the mark `watched`, and the stream's filter passes only changes of marked jobs to
//! the function that pushes. So a job without subscribers costs nothing. A change of a job with subscribers costs one query
//! of the job's own partition, however many other jobs and subscribers there are.
//!
//! No change is missed. The subscription is written first, then the mark, and the state that is sent is the one that the
//! mark's own write returned. Earlier changes are in that state. Later changes have the mark in their old image and are
//! pushed. A change around that moment may be sent twice; `updated_at` tells which message is newer.
//!
//! Pushing only speeds things up: a message may be lost with its connection, and polling is always right.

pub mod message;
pub mod rows;
pub mod sender;
pub mod subscribe;

use std::time::Duration;

use base::clock::Timestamp;
use futures_util::{StreamExt, stream};
use platform::store::{Blobs, Db, StoreError};

use crate::jobs::{Job, view};
pub use sender::{Sender, Sent};

/// Most connections of one agent at a time.
pub const MAX_CONNECTIONS: u8 = 100;
/// Most jobs that one connection is subscribed to at a time, and most ids in one message.
pub const MAX_SUBSCRIPTIONS: usize = 100;
/// API Gateway closes every connection after this long. Its rows count as absent from then on.
pub const LIFETIME: Duration = Duration::from_secs(2 * 3600);
/// API Gateway closes a connection on which nothing was sent for this long.
pub const IDLE: Duration = Duration::from_secs(600);
/// Largest message in either direction, in bytes (API Gateway's limit).
pub const MAX_MESSAGE_BYTES: usize = 128 * 1024;
/// How many connections are sent to concurrently for one job.
const AT_ONCE: usize = 16;

/// Sends push messages.
pub struct Pusher {
    pub db: Db,
    pub blobs: std::sync::Arc<dyn Blobs>,
    pub sender: Sender,
}

impl Pusher {
    /// Sends a job's state to all its subscribers, and removes connections that turn out to be closed.
    ///
    /// # Errors
    /// Only if the subscribers cannot be read. A connection that cannot be reached is not an error.
    pub async fn tell(&self, job: &Job, now: Timestamp) -> Result<(), StoreError> {
        let connections = rows::subscribers(&self.db, job.request_id, now).await?;
        if connections.is_empty() {
            return Ok(());
        }
        let text = text_of(&*self.blobs, job).await?;
        let told: Vec<_> = connections.iter().map(|connection| self.tell_one(job, connection, &text)).collect();
        stream::iter(told).buffer_unordered(AT_ONCE).collect::<()>().await;
        Ok(())
    }

    async fn tell_one(&self, job: &Job, connection: &str, text: &str) {
        if !self.deliver(connection, text).await {
            rows::drop_subscription(&self.db, job.request_id, connection).await;
        } else if job.outcome.is_some() {
            rows::end(&self.db, job.request_id, connection).await;
        }
    }

    /// Sends one message. `false` if the connection is closed; its rows are then removed.
    async fn deliver(&self, connection: &str, text: &str) -> bool {
        match self.sender.send(connection, text).await {
            Sent::Yes => true,
            Sent::Gone => {
                rows::close(&self.db, connection).await;
                false
            }
            Sent::Failed(cause) => {
                platform::http::log::failure("a push did not arrive", &cause);
                true
            }
        }
    }
}

/// The message with a job's state. A result that is too large for a message is left to polling.
pub async fn text_of(blobs: &dyn Blobs, job: &Job) -> Result<String, StoreError> {
    let text = view::push(blobs, job).await?.to_string();
    Ok(if text.len() <= MAX_MESSAGE_BYTES { text } else { message::poll(job.request_id) })
}

/// Whether the change from `old` to `new` is worth a push.
pub fn is_news(old: &Job, new: &Job) -> bool {
    old.status() != new.status() || old.progress != new.progress
}
