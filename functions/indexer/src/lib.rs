//! The indexer adds pages that were read to the search index, and once a day queues the operator's seeds for reading. No
//! other function writes the index.

use futures_util::future::join_all;
use platform::http::log;
use platform::store::queue::Message;
use platform::store::{BoxFuture, Queue, StoreError};
use serde_json::{Value, json};
use tools::Toolbox;
use web::search::index::Writer;
use web::search::index::writer::Change;
use web::search::seeds;
use worker::{BatchItemFailure, SqsAnswer, SqsEvent};

/// The indexer's dependencies.
pub struct Indexer {
    pub writer: Writer,
    pub toolbox: std::sync::Arc<Toolbox>,
    pub queue: std::sync::Arc<dyn Queue>,
}

impl Indexer {
    /// Handles a batch of the queue, or the daily event that queues the seeds.
    pub fn handle(&self, event: Value) -> BoxFuture<'_, Result<Value, StoreError>> {
        Box::pin(self.take(event))
    }

    async fn take(&self, event: Value) -> Result<Value, StoreError> {
        if event.get("Records").is_none() {
            let (toolbox, seeds) = (&self.toolbox, &self.toolbox.config.providers.seeds);
            let look: BoxFuture<'_, _> = Box::pin(seeds::send_all(seeds, &toolbox.fetcher, &*self.queue));
            let pages = look.await?;
            log::event("seeds", json!({"pages": pages}));
            return Ok(json!({"pages": pages}));
        }
        let event = serde_json::from_value(event).map_err(StoreError::new)?;
        serde_json::to_value(self.batch(event).await).map_err(StoreError::new)
    }

    /// Works on a batch. Its pages are one atomic change of the index.
    pub async fn batch(&self, event: SqsEvent) -> SqsAnswer {
        let (mut changes, mut failed, mut visits) = (Vec::new(), Vec::new(), Vec::new());
        for record in event.records {
            match Message::parse(&record.body) {
                Ok(Message::Page { key }) => {
                    changes.push((record.message_id, Change { add: vec![key], ..Change::default() }));
                }
                Ok(Message::Unlist { page }) => {
                    changes.push((record.message_id, Change { remove: vec![page], ..Change::default() }));
                }
                // The page that is read comes back as a message of its own.
                Ok(Message::Visit { url }) => visits.push(url),
                Ok(_) | Err(_) => {
                    log::failure("a message does not belong to the index", &record.message_id);
                    failed.push(record.message_id);
                }
            }
        }
        // Boxed, because the future of reading a page is too deep for the compiler.
        let mut reads: Vec<BoxFuture<'_, ()>> = Vec::new();
        for url in &visits {
            reads.push(Box::pin(self.toolbox.visit(url)));
        }
        join_all(reads).await;
        if !changes.is_empty() {
            failed.extend(self.apply(changes).await);
        }
        let failures = failed.into_iter().map(|item_identifier| BatchItemFailure { item_identifier });
        SqsAnswer { batch_item_failures: failures.collect() }
    }

    /// Applies the changes of these messages as one. If that fails, applies each alone, so that one bad change does not
    /// hold up the others. Returns the messages that failed.
    async fn apply(&self, changes: Vec<(String, Change)>) -> Vec<String> {
        let mut whole = Change::default();
        for (_, change) in &changes {
            whole.add.extend(change.add.iter().cloned());
            whole.remove.extend(change.remove.iter().cloned());
        }
        let Err(error) = self.writer.apply(&whole).await else { return Vec::new() };
        log::failure("the index could not be changed", &error);
        if changes.len() == 1 {
            return changes.into_iter().map(|(message, _)| message).collect();
        }
        let mut failed = Vec::new();
        for (message, change) in changes {
            if let Err(error) = self.writer.apply(&change).await {
                log::failure("a page could not be added to the index", &error);
                failed.push(message);
            }
        }
        failed
    }
}
