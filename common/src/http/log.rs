//! Log lines: one JSON object a line, on standard output, where Lambda and the local runner pick them up.
//!
//! A request is one line. A failure is logged once, where it is handled. Never a signature, a token or a body.

use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::{Value, json};

use crate::clock::Clock;

fn line(level: &str, message: &str, fields: Value) {
    let mut line = json!({"at": Clock::system().now().to_string(), "level": level, "message": message});
    super::error::merge(&mut line, fields);
    println!("{line}");
}

/// Something happened that is worth a line.
pub fn event(message: &str, fields: Value) {
    line("info", message, fields);
}

/// Something failed. The cause is for operators.
pub fn failure(message: &str, cause: &dyn std::fmt::Display) {
    line("error", message, json!({"cause": cause.to_string()}));
}

/// A CloudWatch metric in embedded metric format, with the service's one dimension.
pub fn metric(name: &str, unit: &str, value: u64) {
    let at = Clock::system().now().millis();
    let definition = json!([{"Namespace": "Agora", "Dimensions": [[]], "Metrics": [{"Name": name, "Unit": unit}]}]);
    println!("{}", json!({"_aws": {"Timestamp": at, "CloudWatchMetrics": definition}, name: value}));
}

/// Middleware: one line a request.
pub async fn requests(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    // The route's pattern and not the path: ids in paths would make every line its own kind.
    let route = request.extensions().get::<MatchedPath>().map_or("-".to_owned(), |path| path.as_str().to_owned());
    let trace = request.headers().get("x-amzn-trace-id").and_then(|trace| trace.to_str().ok()).map(str::to_owned);
    let response = next.run(request).await;
    let mut fields = json!({"method": method.as_str(), "route": route, "status": response.status().as_u16(), "ms": started.elapsed().as_millis() as u64});
    if let Some(trace) = trace {
        fields["trace"] = json!(trace);
    }
    event("request", fields);
    response
}
