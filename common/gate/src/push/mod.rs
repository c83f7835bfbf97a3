//! Pushing the states of jobs over WebSockets (contract §23): what polling tells, told at once.
//!
//! | what | key in the agents table | why it is there |
//! |---|---|---|
//! | a connection | `SOCKET#<connection>` / `SOCKET` | whose it is, what it subscribed to |
//! | a slot | `SOCKETS#<agent>` / `00`..`99` | an agent has so many connections and no more, whatever connects at once |
//! | a subscription | `WATCH#<request id>` / `<connection>` | who is told of a job: a partition for each job |
//!
//! A job that was ever subscribed to carries the mark `watched`, and the filter of the stream lets only changes of marked
//! jobs through to the function that pushes. So a job nobody subscribed to costs nothing at all, and a change of one that
//! somebody did costs one query of its own partition, however many others there are.
//!
//! No change is missed: the subscription is written first, then the mark, and the state that is sent is the one the mark's
//! own write found. What happened before the mark is in that state; what happens after it carries the mark in its old
//! image and is pushed. A change around that moment may be told twice (`updated_at` says which is the newer).
//!
//! Pushing is an accelerator: a message may be lost with its connection, and polling is always right.

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

/// Connections of one agent at a time.
pub const MAX_CONNECTIONS: u8 = 100;
/// Jobs that one connection may be subscribed to at a time, and ids in one message (contract §23).
pub const MAX_SUBSCRIPTIONS: usize = 100;
/// API Gateway ends every connection after this long; nothing of it counts any more afterwards.
pub const LIFETIME: Duration = Duration::from_secs(2 * 3600);
/// A connection on which nothing was said for so long is closed (API Gateway's own limit, contract §23).
pub const IDLE: Duration = Duration::from_secs(600);
/// Largest message either way (API Gateway's own limit).
pub const MAX_MESSAGE_BYTES: usize = 128 * 1024;
/// So many connections are sent to at the same time for one job.
const AT_ONCE: usize = 16;

/// What sends pushes, and what it needs to know.
pub struct Pusher {
    pub db: Db,
    pub blobs: std::sync::Arc<dyn Blobs>,
    pub sender: Sender,
}

impl Pusher {
    /// Tells everybody who subscribed to a job how it is now, and takes connections apart that turn out to be gone.
    ///
    /// # Errors
    /// Only if the database does not say who subscribed; a connection that cannot be reached is its own loss.
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

    /// Sends one message. `false` if the connection is gone, and then so is everything that was kept of it.
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

/// The message that says how a job is. A result that no message can carry is left to polling.
pub async fn text_of(blobs: &dyn Blobs, job: &Job) -> Result<String, StoreError> {
    let text = view::push(blobs, job).await?.to_string();
    Ok(if text.len() <= MAX_MESSAGE_BYTES { text } else { message::poll(job.request_id) })
}

/// Whether somebody who was told of the one needs to be told of the other.
pub fn is_news(old: &Job, new: &Job) -> bool {
    old.status() != new.status() || old.progress != new.progress
}
