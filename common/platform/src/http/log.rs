//! Log lines: one JSON object a line, on standard output, where Lambda picks them up; or, locally, a line for people.
//!
//! A request is one line. A failure is logged once, where it is handled. Never a signature, a token or a body.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use base::clock::Clock;
use serde_json::{Value, json};

/// Longest trace id that a log line repeats.
const MAX_TRACE_BYTES: usize = 256;

static FOR_PEOPLE: AtomicBool = AtomicBool::new(false);
#[cfg(feature = "test-support")]
static SILENT: AtomicBool = AtomicBool::new(false);

/// From now on, lines are for people to read.
pub fn for_people() {
    FOR_PEOPLE.store(true, Ordering::Relaxed);
}

/// From now on, nothing is printed: the journeys' requests would bury the names of the tests.
#[cfg(feature = "test-support")]
pub fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

fn line(level: &str, message: &str, fields: Value) {
    let at = Clock::system().now().to_string();
    if FOR_PEOPLE.load(Ordering::Relaxed) {
        let fields = fields.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        let fields: String = fields.map(|(name, value)| format!("  {name}={}", unquoted(value))).collect();
        print(format_args!("{}  {level:5}  {message}{fields}", at.get(11..23).unwrap_or_default()));
    } else {
        let mut line = json!({"at": at, "level": level, "message": message});
        super::error::merge(&mut line, fields);
        print(format_args!("{line}"));
    }
}

/// Prints a line if that is possible. A disk that is full, or a reader that has gone, must not end the work.
pub fn print(line: std::fmt::Arguments<'_>) {
    #[cfg(feature = "test-support")]
    if SILENT.load(Ordering::Relaxed) {
        return;
    }
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

fn unquoted(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Something happened that is worth a line.
pub fn event(message: &str, fields: Value) {
    line("info", message, fields);
}

/// Something failed. The cause is for operators.
pub fn failure(message: &str, cause: &dyn std::fmt::Display) {
    line("error", message, json!({"cause": cause.to_string()}));
}

/// A CloudWatch metric in embedded metric format. It has no dimensions: each deployment has a namespace of its own.
pub fn metric(namespace: &str, name: &str, unit: &str, value: u64) {
    let at = Clock::system().now().millis();
    let definition = json!([{"Namespace": namespace, "Dimensions": [[]], "Metrics": [{"Name": name, "Unit": unit}]}]);
    print(format_args!("{}", json!({"_aws": {"Timestamp": at, "CloudWatchMetrics": definition}, name: value})));
}

/// The pattern of the route that answered, as an extension of the answer, where a router does not match paths itself.
#[derive(Clone, Copy, Debug)]
pub struct Route(pub &'static str);

/// One line a request.
pub async fn requests(request: Request, next: impl AsyncFnOnce(Request) -> Response) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    // The route's pattern and not the path: ids in paths would make every line its own kind.
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let trace = request.headers().get("x-amzn-trace-id").and_then(|trace| trace.to_str().ok());
    // A caller may have written it, and log lines cost by the byte.
    let trace = trace.filter(|trace| trace.len() <= MAX_TRACE_BYTES).map(str::to_owned);
    let response = next(request).await;
    let answered = response.extensions().get::<Route>().map(|route| route.0);
    let route = answered.or(matched.as_ref().map(MatchedPath::as_str)).unwrap_or("(no route)");
    let ms = started.elapsed().as_millis() as u64;
    event(
        "request",
        json!({"method": method.as_str(), "route": route, "status": response.status().as_u16(), "ms": ms, "trace": trace}),
    );
    response
}
