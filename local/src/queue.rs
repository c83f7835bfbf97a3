//! The queues, in this process. Messages become visible, go to a function as the event Lambda would send, come back if they
//! fail, and end on the dead-letter list after too many failures.
//!
//! They are kept only in memory: the sweeper sends lost messages again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use platform::http::log;
use platform::store::queue::{Message, Queue};
use platform::store::{BoxFuture, StoreError};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;
use worker::{SqsAnswer, SqsEvent};

/// How long a failed message stays invisible. Deployed it is minutes; here a developer waits.
const VISIBILITY: Duration = Duration::from_secs(5);
/// A message is dead after this many failures, as in the template.
const MAX_RECEIVES: u32 = 5;
/// Messages in one batch, as in the template for deliveries. Jobs come one by one.
const BATCH: usize = 5;

pub struct LocalQueue {
    state: Mutex<State>,
    arrived: Notify,
    batch: usize,
}

impl Default for LocalQueue {
    fn default() -> LocalQueue {
        LocalQueue { state: Mutex::default(), arrived: Notify::default(), batch: BATCH }
    }
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    dead: Vec<String>,
    next_id: u64,
    /// How many messages are being worked on.
    busy: usize,
}

struct Waiting {
    id: String,
    body: String,
    receives: u32,
    visible_at: Instant,
}

impl LocalQueue {
    /// A queue that delivers messages one by one.
    pub fn of_single_messages() -> LocalQueue {
        LocalQueue { batch: 1, ..LocalQueue::default() }
    }

    /// Adds a message, even an invalid one.
    pub fn push(&self, body: String) {
        self.push_after(body, Duration::ZERO);
    }

    fn push_after(&self, body: String, delay: Duration) {
        let mut state = self.lock();
        state.next_id += 1;
        let id = format!("local-{}", state.next_id);
        state.waiting.push_back(Waiting { id, body, receives: 0, visible_at: Instant::now() + delay });
        drop(state);
        self.arrived.notify_one();
    }

    /// Messages that failed too often.
    pub fn dead(&self) -> Vec<String> {
        self.lock().dead.clone()
    }

    /// How many messages were sent so far.
    pub fn sent(&self) -> u64 {
        self.lock().next_id
    }

    /// Whether no message is waiting or in work.
    pub fn is_idle(&self) -> bool {
        let state = self.lock();
        state.waiting.is_empty() && state.busy == 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers messages to a function until the task is dropped.
    pub async fn work<F: Future<Output = SqsAnswer> + Send>(
        self: Arc<Self>,
        function: impl Fn(SqsEvent) -> F + Send + Sync,
    ) {
        loop {
            let batch = self.receive();
            if batch.is_empty() {
                let _ = tokio::time::timeout(Duration::from_millis(100), self.arrived.notified()).await;
                continue;
            }
            // Wakes another worker, which may find more messages.
            self.arrived.notify_one();
            let failed = hand_over(&function, &batch).await;
            self.give_back(batch, &failed);
        }
    }

    fn receive(&self) -> Vec<Waiting> {
        let mut state = self.lock();
        let now = Instant::now();
        let mut batch = Vec::new();
        let mut index = 0;
        while batch.len() < self.batch && index < state.waiting.len() {
            if state.waiting[index].visible_at <= now {
                batch.extend(state.waiting.remove(index));
            } else {
                index += 1;
            }
        }
        state.busy += batch.len();
        batch
    }

    fn give_back(&self, batch: Vec<Waiting>, failed: &[String]) {
        let mut state = self.lock();
        state.busy -= batch.len();
        for mut message in batch {
            if !failed.contains(&message.id) {
                continue;
            }
            message.receives += 1;
            if message.receives >= MAX_RECEIVES {
                log::failure("a message is dead", &message.body);
                state.dead.push(message.body);
            } else {
                message.visible_at = Instant::now() + VISIBILITY;
                state.waiting.push_back(message);
            }
        }
    }
}

/// Builds the event as Lambda would, and reads the answer as SQS would.
async fn hand_over<F: Future<Output = SqsAnswer>>(function: impl Fn(SqsEvent) -> F, batch: &[Waiting]) -> Vec<String> {
    let records: Vec<Value> = batch
        .iter()
        .map(|message| {
            json!({
                "messageId": message.id,
                "receiptHandle": message.id,
                "body": message.body,
                "attributes": {"ApproximateReceiveCount": (message.receives + 1).to_string()},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:agora-jobs",
                "awsRegion": "us-east-1",
            })
        })
        .collect();
    let all: Vec<String> = batch.iter().map(|message| message.id.clone()).collect();
    let Ok(event) = serde_json::from_value(json!({"Records": records})) else { return all };
    let answer = serde_json::to_value(function(event).await).unwrap_or_default();
    let failures = answer["batchItemFailures"].as_array().cloned().unwrap_or_default();
    failures.iter().filter_map(|failure| failure["itemIdentifier"].as_str().map(str::to_owned)).collect()
}

impl Queue for LocalQueue {
    fn send_after<'a>(&'a self, message: &'a Message, delay: Duration) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.push_after(message.to_json(), delay);
            Ok(())
        })
    }

    fn waiting(&self) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        // Without delayed messages, as SQS counts them.
        Box::pin(async {
            let now = Instant::now();
            Ok(Some(self.lock().waiting.iter().filter(|message| message.visible_at <= now).count() as u64))
        })
    }
}
