//! The indexer: brings pages that were read into the index, and once a day has the operator's seeds read. The only function
//! that writes the index.

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

/// What the indexer works with.
pub struct Indexer {
    pub writer: Writer,
    pub toolbox: std::sync::Arc<Toolbox>,
    pub queue: std::sync::Arc<dyn Queue>,
}

impl Indexer {
    /// A batch of the queue, or the daily reminder to look at the seeds.
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

    /// Works on a batch: the pages in it are one change of the index, which is made or not made as a whole.
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
                // What is read comes back as a page.
                Ok(Message::Visit { url }) => visits.push(url),
                Ok(_) | Err(_) => {
                    log::failure("a message is none of the index", &record.message_id);
                    failed.push(record.message_id);
                }
            }
        }
        // Boxed, as reading a page is deep for the compiler.
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

    /// Makes the changes of these messages as one; where that fails, each by itself, so that one that cannot be made does not
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
                log::failure("a page could not be brought into the index", &error);
                failed.push(message);
            }
        }
        failed
    }
}
