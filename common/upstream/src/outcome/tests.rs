use super::*;

fn tool(members: Value) -> Tool {
    let mut entry = json!({
        "name": "t", "title": "T", "summary": "S", "price": "1", "address": "https://api.example.com", "method": "GET",
        "path": "/", "input_schema": {"type": "object"}, "max_response_bytes": 60,
    });
    for (name, value) in members.as_object().unwrap() {
        entry[name] = value.clone();
    }
    Tool::read(&entry, "", &|_| false).unwrap()
}

fn of(status: u16, content_type: &str, body: &[u8]) -> Outcome {
    let content_type = (!content_type.is_empty()).then_some(content_type);
    let schema = json!({"output_schema": {"type": ["object", "null"], "properties": {"n": {"type": "number"}}}});
    judge(&tool(schema), &Response { status, content_type, length: None, rpc_id: None, body })
}

fn reason(outcome: Outcome) -> Reason {
    match outcome {
        Outcome::Failed(failure) => failure.reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn answers_faults_and_failures_are_told_apart() {
    let json = "application/json; charset=utf-8";
    for (content_type, body) in [
        (json, "{\"n\":1}"),
        ("application/vnd.x+json", "\u{feff}{\"n\":1}"),
        ("", "{\"n\":1}"),
        ("text/json", " {\"n\":1}\n"),
    ] {
        assert_eq!(of(200, content_type, body.as_bytes()), Outcome::Answer(Content::Json(json!({"n": 1}))), "{body}");
    }
    assert_eq!(of(204, "", b""), Outcome::Answer(Content::Json(Value::Null)));
    for (status, content_type, body, wanted) in [
        (500, json, "{}", Reason::Unavailable),
        (503, "", "", Reason::Unavailable),
        (408, "", "", Reason::Unavailable),
        (429, json, "{}", Reason::RateLimited),
        (401, json, "{}", Reason::KeyRefused),
        (403, json, "{}", Reason::KeyRefused),
        (301, json, "{}", Reason::Redirect),
        (304, "", "", Reason::Redirect),
        (206, json, "{}", Reason::Status),
        (418, json, "{}", Reason::Status),
        (100, "", "", Reason::Status),
        (0, "", "", Reason::Status),
        (200, "text/html", "<html>", Reason::ContentType),
        (200, "text/plain", "{}", Reason::ContentType),
        (200, json, "<html>", Reason::NotJson),
        (200, json, "{\"n\":", Reason::NotJson),
        (200, json, "{} x", Reason::NotJson),
        (200, json, "{\"n\":\"1\"}", Reason::Mismatch),
        (200, json, "[]", Reason::Mismatch),
        (200, json, "{\"a\":\"0123456789012345678901234567890123456789012345678901234567890\"}", Reason::TooLarge),
    ] {
        assert_eq!(reason(of(status, content_type, body.as_bytes())), wanted, "{status} {body}");
    }
    assert_eq!(reason(of(200, json, b"\"\xff\"")), Reason::NotJson);
    let deep = "[".repeat(100_000);
    let large = tool(json!({"max_response_bytes": 200_000}));
    let response =
        |length| Response { status: 200, content_type: Some(json), length, rpc_id: None, body: deep.as_bytes() };
    assert_eq!(reason(judge(&large, &response(None))), Reason::NotJson);
    assert_eq!(reason(judge(&large, &response(Some(100_001)))), Reason::Truncated);
    assert_eq!(reason(judge(&large, &response(Some(u64::MAX)))), Reason::TooLarge);
}

#[test]
fn a_callers_fault_shows_what_is_safe_to_show() {
    let fault = |content_type: &str, body: &[u8]| match of(422, content_type, body) {
        Outcome::CallersFault { status: 422, json } => json,
        other => panic!("{other:?}"),
    };
    assert_eq!(fault("application/problem+json", br#"{"title":"no"}"#), json!({"title": "no"}));
    assert_eq!(fault("text/plain", "no\u{202e} such\u{0}".as_bytes()), json!({"message": "no such"}));
    assert_eq!(fault("text/html", b"<script>"), Value::Null);
    assert_eq!(fault("application/json", b"<script>"), Value::Null);
    assert_eq!(fault("", b""), Value::Null);
    assert_eq!(fault("application/json", format!("[{}]", " ".repeat(20_000)).as_bytes()), Value::Null);
}

#[test]
fn bytes_are_of_the_type_they_say() {
    let png = b"\x89PNG\r\n\x1a\n....";
    let pictures = tool(json!({"answers": ["image/png", "text/csv"]}));
    let of = |content_type: Option<&str>, body: &[u8]| {
        judge(&pictures, &Response { status: 200, content_type, length: None, rpc_id: None, body })
    };
    assert_eq!(
        of(Some("image/png"), png),
        Outcome::Answer(Content::Bytes { bytes: png.to_vec(), content_type: "image/png" })
    );
    assert!(matches!(of(Some("Text/CSV; charset=utf-8"), "ä,b".as_bytes()), Outcome::Answer(_)));
    for (content_type, body) in [
        (Some("image/png"), &b"<html>"[..]),
        (Some("image/svg+xml"), b"<svg>"),
        (Some("text/csv"), b"\xff"),
        (Some("application/json"), b"{}"),
        (Some("image/png"), b""),
        (None, png),
    ] {
        assert_eq!(reason(of(content_type, body)), Reason::ContentType, "{content_type:?}");
    }
}

#[test]
fn each_failure_has_an_error_of_a_job() {
    let error = |status| match of(status, "", b"") {
        Outcome::Failed(failure) => failure.tool_error(),
        other => panic!("{other:?}"),
    };
    assert_eq!(error(401).code, ErrorCode::ProviderAuth);
    assert_eq!(error(429).code, ErrorCode::RateLimited);
    assert_eq!(error(500).code, ErrorCode::ProviderUnavailable);
}
