//! Answers to paid calls. They depend only on the stored job, so every replay gets the same answer.

use axum::body::{Body, HttpBody};
use axum::response::Response;
use base::encoding::base64_standard;
use base::money::Usdc;
use base::tool_result::ErrorCode;
use http::header::CONTENT_LENGTH;
use http::{HeaderName, HeaderValue, StatusCode};
use ledger::payments::reason::Reason;
use platform::config::ChainConfig;
use platform::http::error::merge;
use platform::http::{private_json, read_body};
use serde_json::{Map, Value, json};
use tools::spec::{Answer, ToolSpec};

use super::order::Listing;
use crate::jobs::{Job, Settlement};

const PAYMENT_RESPONSE: HeaderName = HeaderName::from_static("payment-response");
const X_PAYMENT_RESPONSE: HeaderName = HeaderName::from_static("x-payment-response");
const X_SETTLEMENT_STATUS: HeaderName = HeaderName::from_static("x-settlement-status");

/// Largest answer that ignored members are added to: it is parsed for that.
const MAX_NAMING_BYTES: u64 = 1024 * 1024;

/// 202: accepted, to be polled. Replays differ only in the settlement status.
pub fn accepted(job: &Job) -> Value {
    json!({
        "request_id": job.request_id,
        "tool": job.tool,
        "status": "processing",
        "receipt_id": job.receipt_id,
        "settlement_status": job.settlement_status(),
        "message": format!("accepted; poll GET /v1/requests/{}", job.request_id),
    })
}

/// The answer to a direct call whose work is done.
pub fn completed(job: &Job, result: Value) -> Value {
    let mut data = json!({
        "request_id": job.request_id,
        "receipt_id": job.receipt_id,
        "status": "completed",
        "tool": job.tool,
        "result": result,
    });
    if let Some(stored) = &job.result {
        data["provider"] = json!(stored.provider);
        data["mode"] = json!(stored.mode);
    }
    say_if_settling(&mut data, job);
    json!({"success": true, "data": data})
}

/// The same for tools whose result is itself the body: the job's members are added to the result's.
pub fn completed_bare(job: &Job, mut result: Value) -> Value {
    merge(
        &mut result,
        Value::Object(Map::from_iter([
            ("request_id".to_owned(), json!(job.request_id)),
            ("receipt_id".to_owned(), json!(job.receipt_id)),
            ("cost".to_owned(), json!(job.price.to_string())),
        ])),
    );
    if let Some(stored) = &job.result {
        merge(&mut result, json!({"provider": stored.provider, "mode": stored.mode}));
    }
    say_if_settling(&mut result, job);
    result
}

/// The answer to a purchase of a soul's text: the text, as its seller's terms hand it over.
pub fn handed_over(job: &Job, mut result: Value) -> Value {
    say_if_settling(&mut result, job);
    result
}

/// The answer to a purchase of credits. `again`: an earlier call credited them.
pub fn topped_up(job: &Job, balance: Usdc, again: bool) -> Value {
    let mut data = json!({
        "topped_up": job.price.to_string(),
        "credits_balance": balance.to_string(),
        "transaction_id": job.receipt_id,
        "settlement_tx": job.transaction,
        "already_credited": again,
        "request_id": job.request_id,
        "receipt_id": job.receipt_id,
    });
    say_if_settling(&mut data, job);
    json!({"success": true, "data": data})
}

/// 503: the work failed after settlement, and the price was credited back. 400 if the input was at fault.
pub fn credited_back(job: &Job) -> Response {
    let message = job.error.as_ref().map_or("the work failed", |error| error.message.as_str());
    let body = json!({
        "error": failure(job),
        "message": format!("{message}; the price was credited back"),
        "reason": job.error.as_ref().and_then(|error| error.reason.as_deref()),
        "request_id": job.request_id,
        "receipt_id": job.receipt_id,
        "credited_usdc": job.credited.unwrap_or_default().to_string(),
    });
    failed(job, &body)
}

/// The code of a call that failed while its caller waited.
fn failure(job: &Job) -> &'static str {
    if is_callers_fault(job) { "invalid_input" } else { "provider_unavailable" }
}

fn is_callers_fault(job: &Job) -> bool {
    job.error.as_ref().is_some_and(|error| error.code == ErrorCode::InvalidInput)
}

fn failed(job: &Job, body: &Value) -> Response {
    if is_callers_fault(job) {
        return private_json(StatusCode::BAD_REQUEST, body);
    }
    let mut response = private_json(StatusCode::SERVICE_UNAVAILABLE, body);
    // For a new call. A replay of this one gets the same answer.
    response.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from_static("60"));
    response
}

/// 503: the work failed before its payment was submitted, so nothing was charged. 400 if the input was at fault.
pub fn not_charged(job: &Job) -> Response {
    let message = job.error.as_ref().map_or("the work failed", |error| error.message.as_str());
    let body = json!({
        "error": failure(job),
        "message": format!("{message}; nothing was charged"),
        "reason": job.error.as_ref().and_then(|error| error.reason.as_deref()),
        "request_id": job.request_id,
        "receipt_id": job.receipt_id,
    });
    failed(job, &body)
}

/// Adds the settlement headers of both x402 versions once it is known what became of the money. They say only success or
/// failure, and a client may pay again after a failure. Until then there is only `X-Settlement-Status: pending`.
pub fn with_settlement(mut response: Response, job: &Job, chain: &ChainConfig) -> Response {
    let Some(payment) = &job.payment else { return response };
    if is_settling(job) {
        response.headers_mut().insert(X_SETTLEMENT_STATUS, HeaderValue::from_static(job.settlement_status()));
        return response;
    }
    for (name, network) in [(PAYMENT_RESPONSE, chain.caip2()), (X_PAYMENT_RESPONSE, chain.v1_name())] {
        let settled = job.settlement == Settlement::Settled;
        let mut settlement = json!({
            "success": settled,
            "transaction": job.transaction.as_deref().unwrap_or_default(),
            "network": network,
            "payer": payment.from.to_string(),
        });
        if !settled {
            let reason = if job.settlement == Settlement::Void { "released" } else { Reason::Reverted.as_str() };
            settlement["errorReason"] = json!(job.refusal.as_deref().unwrap_or(reason));
        }
        if let Ok(value) = HeaderValue::from_str(&base64_standard(settlement.to_string().as_bytes())) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Whether it is not known yet what became of the money.
fn is_settling(job: &Job) -> bool {
    matches!(job.settlement, Settlement::Claimed | Settlement::Submitted)
}

/// Says in an answer that gives a result already that its payment is not settled yet.
fn say_if_settling(answer: &mut Value, job: &Job) {
    if is_settling(job) {
        merge(answer, json!({"settlement_status": job.settlement_status()}));
    }
}

/// Names the members of the body that nothing reads: in `data` where an answer has that envelope, and in a price's message too.
/// An answer of more than 1 MiB is left as it is.
pub async fn naming(answer: Response, ignored: &[String]) -> Response {
    if answer.body().size_hint().exact().is_none_or(|bytes| bytes > MAX_NAMING_BYTES) {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    // The body is in memory, so that reading it does not fail.
    let bytes = read_body(body, usize::MAX).await.unwrap_or_default();
    let Ok(Value::Object(mut answer)) = serde_json::from_slice(&bytes) else {
        return Response::from_parts(parts, Body::from(bytes));
    };
    if parts.status == StatusCode::PAYMENT_REQUIRED
        && let Some(Value::String(message)) = answer.get_mut("message")
    {
        message.push_str(&format!("; not used: {}", ignored.join(", ")));
    }
    let is_enveloped = answer.get("success") == Some(&Value::Bool(true));
    let data = answer.get_mut("data").and_then(Value::as_object_mut).filter(|_| is_enveloped);
    let (name, names) = ("ignored".to_owned(), json!(ignored));
    match data {
        Some(data) => data.insert(name, names),
        None => answer.insert(name, names),
    };
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(Value::Object(answer).to_string()))
}

/// Whether a caller that wants this kind of answer should wait longer.
pub fn is_worth_waiting(job: &Job, answer: Answer) -> bool {
    let decided = job.outcome.is_some() || matches!(job.settlement, Settlement::Refused | Settlement::Void);
    match answer {
        Answer::Direct => !decided,
        Answer::Queued => !decided && job.settlement != Settlement::Settled,
    }
}

/// 202 for a job that goes on after this answer. `input`: the job's, as this call has it too. `name` is the call's
/// idempotency key.
pub fn pending(
    job: &Job,
    tool: &ToolSpec,
    input: &Map<String, Value>,
    listing: Option<&Listing>,
    origin: &str,
    name: Option<&str>,
) -> Response {
    let mut body = accepted(job);
    let locked = job.locked.as_deref().and_then(|locked| serde_json::from_str(locked).ok());
    let locked: Map<String, Value> = locked.unwrap_or_default();
    merge(&mut body, (tool.accepted)(origin, job.request_id, job.created, input, &locked));
    if let Some(name) = name {
        body["idempotency_key"] = json!(name);
    }
    if let Some(listing) = listing {
        body["soul_job_id"] = json!(job.request_id.soul_job());
        merge(&mut body, Value::Object(listing.accepted.clone()));
    }
    private_json(StatusCode::ACCEPTED, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ignored_members_are_named_beside_what_is_answered() {
        let ignored = ["modelyear".to_owned(), "valueTag.ammount".to_owned()];
        let large = json!({"text": "x".repeat(1024 * 1024)});
        for (status, body, named) in [
            (
                StatusCode::OK,
                json!({"success": true, "data": {"a": 1}}),
                json!({"success": true, "data": {"a": 1, "ignored": ignored}}),
            ),
            // The result is the answer, and has a member of this name.
            (StatusCode::OK, json!({"data": {"a": 1}}), json!({"data": {"a": 1}, "ignored": ignored})),
            (StatusCode::ACCEPTED, json!({"request_id": "a"}), json!({"request_id": "a", "ignored": ignored})),
            (
                StatusCode::PAYMENT_REQUIRED,
                json!({"message": "it costs 1 USDC"}),
                json!({"message": "it costs 1 USDC; not used: modelyear, valueTag.ammount", "ignored": ignored}),
            ),
            (StatusCode::OK, json!([1]), json!([1])),
            (StatusCode::OK, large.clone(), large),
        ] {
            let answer = naming(private_json(status, &body), &ignored).await;
            assert_eq!(
                (answer.status(), answer.headers()["cache-control"].as_bytes()),
                (status, b"no-store".as_slice())
            );
            let bytes = read_body(answer.into_body(), usize::MAX).await.unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), named);
        }
    }
}
