//! The Lambda Runtime API: hands out events and receives the answers.

use std::collections::VecDeque;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::http::{self, Answer, Request};
use crate::Error;

/// The deadline of an event that the function is told.
const DEADLINE: Duration = Duration::from_secs(30);

pub struct RuntimeApi {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    reports: Receiver<Report>,
}

/// An action of a function.
pub enum Report {
    Answered(Vec<u8>),
    Failed(Vec<u8>),
    /// It asks for an event, and there is none left.
    Idle,
}

struct Shared {
    events: Mutex<Events>,
    /// Notified when there may be an event to hand out.
    bell: Condvar,
    reports: Mutex<Sender<Report>>,
}

#[derive(Default)]
struct Events {
    waiting: VecDeque<String>,
    handed_out: u64,
    /// Incremented for each process. Connections of earlier processes are dropped.
    generation: u64,
}

impl RuntimeApi {
    pub fn start() -> Result<RuntimeApi, Error> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (sender, reports) = mpsc::channel();
        let shared = Arc::new(Shared { events: Mutex::default(), bell: Condvar::new(), reports: Mutex::new(sender) });
        let serving = shared.clone();
        http::serve(listener, move |stream| {
            // A killed function drops its connection, which is not an error.
            let _ = http::answer_all(stream, |request| serving.answer(&request));
        });
        Ok(RuntimeApi { address, shared, reports })
    }

    /// Forgets the previous process. All later reports belong to the next one.
    pub fn begin(&self) {
        let mut state = self.shared.lock();
        state.generation += 1;
        state.waiting.clear();
        drop(state);
        self.shared.bell.notify_all();
        while self.reports.try_recv().is_ok() {}
    }

    /// Queues these events, to be answered one after the other.
    pub fn hand_out(&self, events: impl IntoIterator<Item = Value>) {
        // Built before the lock is taken, because the function may already be asking.
        let events: Vec<String> = events.into_iter().map(|event| event.to_string()).collect();
        self.shared.lock().waiting.extend(events);
        self.shared.bell.notify_all();
    }

    /// The function's next report, if one comes within this time.
    pub fn report(&self, patience: Duration) -> Option<Report> {
        self.reports.recv_timeout(patience).ok()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, report: Report) {
        // After the bench nobody receives reports.
        let _ = self.reports.lock().unwrap_or_else(PoisonError::into_inner).send(report);
    }

    fn answer(&self, request: &Request) -> Option<Answer> {
        if request.path.ends_with("/invocation/next") {
            return self.next();
        }
        let body = request.body.clone();
        self.report(if request.path.ends_with("/response") { Report::Answered(body) } else { Report::Failed(body) });
        Some(Answer { status: 202, headers: Vec::new(), body: Vec::new() })
    }

    /// The next event, as soon as there is one. `None` once another process is served.
    fn next(&self) -> Option<Answer> {
        let mut state = self.lock();
        let generation = state.generation;
        if state.waiting.is_empty() {
            self.report(Report::Idle);
        }
        loop {
            if state.generation != generation {
                return None;
            }
            if let Some(event) = state.waiting.pop_front() {
                state.handed_out += 1;
                let deadline = base::clock::Clock::system().now().plus(DEADLINE).millis();
                let headers = [
                    ("content-type", "application/json".to_owned()),
                    ("lambda-runtime-aws-request-id", format!("8476a536-e9f4-11e8-9739-{:012x}", state.handed_out)),
                    ("lambda-runtime-deadline-ms", deadline.to_string()),
                    (
                        "lambda-runtime-invoked-function-arn",
                        "arn:aws:lambda:us-east-1:123456789012:function:bench".to_owned(),
                    ),
                    (
                        "lambda-runtime-trace-id",
                        "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Parent=9a9197af755a6419;Sampled=0".to_owned(),
                    ),
                ];
                let headers = headers.map(|(name, value)| (name.to_owned(), value));
                return Some(Answer { status: 200, headers: headers.into(), body: event.into_bytes() });
            }
            state = self.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
