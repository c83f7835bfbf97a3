use super::*;
use crate::outcome::judge;

fn tool(members: Value) -> Tool {
    let mut entry = json!({
        "kind": "mcp", "name": "t", "title": "T", "summary": "S", "price": "1", "address": "http://localhost:1/mcp", "private": true,
        "tool": "get-weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
        "constants": {"headers": {"authorization": {"secret": "k"}}},
    });
    for (name, value) in members.as_object().unwrap() {
        entry[name] = value.clone();
    }
    Tool::read(&entry, "", &|_| false).unwrap()
}

fn answered(tool: &Tool, result: Value) -> Outcome {
    let body = json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string();
    judge(
        tool,
        &Response {
            status: 200,
            content_type: Some("application/json"),
            length: None,
            rpc_id: None,
            body: body.as_bytes(),
        },
    )
}

fn reason(outcome: Outcome) -> Reason {
    match outcome {
        Outcome::Failed(failure) => failure.reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_has_its_messages() {
    let tool = tool(json!({}));
    let crate::Target::Mcp(target) = &tool.target else { panic!() };
    let call = crate::build(&tool, json!({"city": "Ulm"}).as_object().unwrap()).unwrap();
    let body: Value = serde_json::from_slice(&call.body).unwrap();
    assert_eq!(
        body,
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get-weather", "arguments": {"city": "Ulm"}}})
    );
    let ready = call.in_session(Some("s1"), "2025-06-18").filled(|_| Some("v")).unwrap();
    for header in [("authorization", "v"), ("mcp-session-id", "s1"), ("mcp-protocol-version", "2025-06-18")] {
        assert!(ready.headers.contains(&(header.0.to_owned(), header.1.to_owned())), "{header:?}");
    }
    let hostile = initialize(target).in_session(Some("a\r\nx: y"), PROTOCOL);
    assert!(hostile.headers.iter().all(|(name, _)| name != "mcp-session-id"));
    assert!(!String::from_utf8(initialized(target).body).unwrap().contains("\"id\""));
    assert!(String::from_utf8(list(target, Some("c")).body).unwrap().contains("\"cursor\":\"c\""));
    let said = |status, body: &str| {
        wants_session(&Response { status, content_type: None, length: None, rpc_id: None, body: body.as_bytes() })
    };
    assert!(said(404, "") && said(400, r#"{"error":{"code":-32000,"message":"Server not initialized"}}"#));
    assert!(!said(400, r#"{"error":{"code":-32602}}"#) && !said(500, ""));
}

#[test]
fn results_become_answers() {
    let plain = tool(json!({}));
    let typed =
        tool(json!({"output_schema": {"type": "object", "required": ["t"], "properties": {"t": {"type": "number"}}}}));
    let text = |text: &str| json!({"type": "text", "text": text});
    let png = "iVBORw0KGgo=";
    for (tool, result, answer) in [
        (&plain, json!({"content": [text("a"), text("b")]}), json!({"text": "a\nb"})),
        (&plain, json!({"content": []}), json!({"text": ""})),
        (&plain, json!({"content": [text("x")], "structuredContent": {"t": 1}}), json!({"t": 1})),
        (&typed, json!({"content": [], "structuredContent": {"t": 1}, "resultType": "complete"}), json!({"t": 1})),
        (&typed, json!({"content": [text("{\"t\": 2}")]}), json!({"t": 2})),
        (
            &plain,
            json!({"content": [{"type": "image", "mimeType": "image/png", "data": png, "_meta": 1}]}),
            json!({"text": "", "content": [{"type": "image", "content_type": "image/png", "data": png}]}),
        ),
        (
            &plain,
            json!({"content": [{"type": "resource", "resource": {"uri": "u:1", "text": "x", "mimeType": "text/html"}}]}),
            json!({"text": "", "content": [{"type": "resource", "uri": "u:1", "text": "x"}]}),
        ),
    ] {
        assert_eq!(answered(tool, result.clone()), Outcome::Answer(Content::Json(answer)), "{result}");
    }
    for (result, wanted) in [
        (json!({"content": [], "structuredContent": {"t": "1"}}), Reason::Mismatch),
        (json!({"content": [text("no json")]}), Reason::Mismatch),
        (json!({"resultType": "input_required"}), Reason::Protocol),
    ] {
        assert_eq!(reason(answered(&typed, result)), wanted);
    }
    for block in [
        json!({"type": "image", "mimeType": "image/png", "data": "PGh0bWw+"}),
        json!({"type": "image", "mimeType": "image/svg+xml", "data": "PGh0bWw+"}),
        json!({"type": "video"}),
        json!(1),
    ] {
        assert_eq!(reason(answered(&plain, json!({"content": [block]}))), Reason::ContentType);
    }
    let fault = answered(&plain, json!({"isError": true, "content": [text("no such\u{202e} city")]}));
    assert_eq!(fault, Outcome::CallersFault { status: 0, json: json!({"message": "no such city"}) });
}

#[test]
fn streams_and_errors_of_the_protocol_are_read() {
    let plain = tool(json!({}));
    let of = |content_type: &str, status: u16, body: &str| {
        judge(
            &plain,
            &Response { status, content_type: Some(content_type), length: None, rpc_id: None, body: body.as_bytes() },
        )
    };
    let sse = "text/event-stream; charset=utf-8";
    let done = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\"}]}}";
    let answer = Outcome::Answer(Content::Json(json!({"text": "a"})));
    for body in [
        format!("event: message\nid: x\ndata: {done}\n\n"),
        format!("data: {done}"),
        format!(
            ": ping\r\n\r\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}}\r\n\r\ndata:{done}\r\n\r\n"
        ),
        format!("data: {}\ndata: {}\n\n", &done[..16], &done[16..]),
    ] {
        assert_eq!(of(sse, 200, &body), answer, "{body}");
    }
    let error = |code: i64| json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}}).to_string();
    assert_eq!(
        of("application/json", 200, &error(-32602)),
        Outcome::CallersFault { status: 0, json: json!({"message": "no"}) }
    );
    for (content_type, status, body, wanted) in [
        ("application/json", 200, error(-32603), Reason::Protocol),
        ("application/json", 200, "{}".to_owned(), Reason::Protocol),
        ("application/json", 200, done.replace("\"id\":1", "\"id\":2"), Reason::Protocol),
        ("application/json", 200, "<html>".to_owned(), Reason::NotJson),
        ("text/html", 200, done.to_owned(), Reason::Protocol),
        (sse, 200, "data: {}\n\n".repeat(5_000), Reason::Protocol),
        (sse, 200, String::new(), Reason::Protocol),
        ("application/json", 401, String::new(), Reason::KeyRefused),
        ("application/json", 503, String::new(), Reason::Unavailable),
    ] {
        assert_eq!(reason(of(content_type, status, &body)), wanted, "{body:.60}");
    }
}
