//! Log lines on standard output: one JSON object a line for CloudWatch, or plain text for local runs.
//!
//! Each request is one line. A failure is logged once, where it is handled. Never log a signature, a token or a body.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use base::clock::Clock;
use serde_json::{Value, json};

/// Longest trace id that is logged.
const MAX_TRACE_BYTES: usize = 256;

static FOR_PEOPLE: AtomicBool = AtomicBool::new(false);
#[cfg(feature = "test-support")]
static SILENT: AtomicBool = AtomicBool::new(false);

/// Switches to plain text, for local runs.
pub fn for_people() {
    FOR_PEOPLE.store(true, Ordering::Relaxed);
}

/// Stops all output. In tests, log lines would hide the names of the tests.
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

/// Prints a line; errors are ignored. A full disk or a closed pipe must not stop the service.
pub fn print(line: std::fmt::Arguments<'_>) {
    #[cfg(feature = "test-support")]
    if SILENT.load(Ordering::Relaxed) {
        return;
    }
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// A field's value for people. A long object is cut, because it hides the lines around it.
fn unquoted(value: &Value) -> String {
    let Value::Object(_) = value else { return value.as_str().map_or_else(|| value.to_string(), str::to_owned) };
    let text = value.to_string();
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Logs an event. For people, changes of the search index are left out: at its first start a local stack reads forty pages,
/// and a line for each would push away what the start has said.
pub fn event(message: &str, fields: Value) {
    if message == "index" && FOR_PEOPLE.load(Ordering::Relaxed) {
        return;
    }
    line("info", message, fields);
}

/// Logs a failure with its cause, for operators.
pub fn failure(message: &str, cause: &dyn std::fmt::Display) {
    line("error", message, json!({"cause": cause.to_string()}));
}

/// A CloudWatch metric in embedded metric format. It has no dimensions: each deployment has its own namespace.
pub fn metric(namespace: &str, name: &str, unit: &str, value: u64) {
    let at = Clock::system().now().millis();
    let definition = json!([{"Namespace": namespace, "Dimensions": [[]], "Metrics": [{"Name": name, "Unit": unit}]}]);
    print(format_args!("{}", json!({"_aws": {"Timestamp": at, "CloudWatchMetrics": definition}, name: value})));
}

/// The pattern of the matched route, as an extension of the response, for routers that do not use axum's path matching.
#[derive(Clone, Copy, Debug)]
pub struct Route(pub &'static str);

/// Logs one line for each request.
pub async fn requests(request: Request, next: impl AsyncFnOnce(Request) -> Response) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    // Log the route's pattern, not the path: ids in paths would make every line unique.
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let trace = request.headers().get("x-amzn-trace-id").and_then(|trace| trace.to_str().ok());
    // The caller can set this header, and log lines are billed by size.
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
