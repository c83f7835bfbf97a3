//! The indexer: brings pages that were read into the index, and once a day has the operator's seeds read. The only function
//! that writes the index.

use common::http::log;
use common::search::index::Writer;
use common::search::index::writer::Change;
use common::store::queue::Message;
use common::store::{Queue, StoreError};
use common::tools::Toolbox;
use futures_util::future::join_all;
use serde_json::{Value, json};
use worker::{BatchItemFailure, SqsAnswer, SqsEvent};

/// What the indexer works with.
pub struct Indexer {
    pub writer: Writer,
    pub toolbox: std::sync::Arc<Toolbox>,
    pub queue: std::sync::Arc<dyn Queue>,
}

impl Indexer {
    /// A batch of the queue, or the daily reminder to look at the seeds.
    pub async fn handle(&self, event: Value) -> Result<Value, StoreError> {
        if event.get("Records").is_none() {
            let pages = self.toolbox.visit_seeds(&*self.queue).await?;
            log::event("seeds", json!({"pages": pages}));
            return Ok(json!({"pages": pages}));
        }
        let event = serde_json::from_value(event).map_err(StoreError::new)?;
        serde_json::to_value(self.batch(event).await).map_err(StoreError::new)
    }

    /// Works on a batch: the pages in it are one change of the index, which is made or not made as a whole.
    pub async fn batch(&self, event: SqsEvent) -> SqsAnswer {
        let (mut change, mut of_change, mut failed, mut visits) =
            (Change::default(), Vec::new(), Vec::new(), Vec::new());
        for record in event.records {
            match Message::parse(&record.body) {
                Ok(Message::Page { key }) => {
                    change.add.push(key);
                    of_change.push(record.message_id);
                }
                Ok(Message::Unlist { page }) => {
                    change.remove.push(page);
                    of_change.push(record.message_id);
                }
                // What is read comes back as a page.
                Ok(Message::Visit { url }) => visits.push(url),
                Ok(_) | Err(_) => {
                    log::failure("a message is none of the index", &record.message_id);
                    failed.push(record.message_id);
                }
            }
        }
        join_all(visits.iter().map(|url| self.toolbox.visit(url))).await;
        if !of_change.is_empty()
            && let Err(error) = self.writer.apply(&change).await
        {
            log::failure("the index could not be changed", &error);
            failed.extend(of_change);
        }
        let failures = failed.into_iter().map(|item_identifier| BatchItemFailure { item_identifier });
        SqsAnswer { batch_item_failures: failures.collect() }
    }
}
