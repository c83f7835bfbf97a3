use proptest::prelude::*;
use serde_json::json;

use super::*;

fn tool(members: Value) -> Tool {
    let mut entry = json!({
        "name": "t", "title": "T", "summary": "S", "price": "1", "address": "https://api.example.com/v1",
        "constants": {"headers": {"authorization": {"secret": "k", "prefix": "Bearer "}}, "query": {"v": "a b", "key": {"secret": "q"}}},
    });
    for (name, value) in members.as_object().unwrap() {
        entry[name] = value.clone();
    }
    Tool::read(&entry, "", &|_| false).unwrap()
}

/// `id` in the path, `q` in the query, `h` in a header, the rest in the body.
fn four_slots() -> Tool {
    let text = json!({"type": "string"});
    tool(json!({
        "method": "POST", "path": "/items/{id}/x-{part}",
        "slots": {"query": {"q[]": "q"}, "headers": {"x-h": "h"}},
        "input_schema": {"type": "object", "required": ["id", "part"], "properties": {
            "id": text, "part": text, "q": {}, "h": text, "b": text}},
    }))
}

fn built(tool: &Tool, input: &Value) -> Result<Request, Vec<FieldError>> {
    build(tool, input.as_object().unwrap())
}

fn text_of<'r>(request: &'r Request, header: &str) -> Option<&'r str> {
    request.headers.iter().find(|(name, _)| name == header).and_then(|(_, value)| match value {
        Constant::Text(text) => Some(text.as_str()),
        Constant::Secret(_) => None,
    })
}

#[test]
fn members_go_into_their_slots() {
    let request =
        built(&four_slots(), &json!({"id": "ä b", "part": 7, "q": ["x&y", 2, true, null], "h": "a b", "b": "c"}))
            .unwrap();
    assert_eq!(
        request.url,
        "https://api.example.com/v1/items/%C3%A4%20b/x-7?v=a%20b&q%5B%5D=x%26y&q%5B%5D=2&q%5B%5D=true"
    );
    assert_eq!(request.body, br#"{"b":"c"}"#);
    assert_eq!(text_of(&request, "x-h"), Some("a b"));
    assert_eq!(text_of(&request, "content-type"), Some("application/json"));
    assert_eq!(text_of(&request, "accept"), Some("application/json"));
    let bare = built(&four_slots(), &json!({"id": "1", "part": "2", "q": null, "h": null})).unwrap();
    assert_eq!((bare.url.as_str(), &bare.body[..]), ("https://api.example.com/v1/items/1/x-2?v=a%20b", &b"{}"[..]));
    assert_eq!(text_of(&bare, "x-h"), None);
}

#[test]
fn bodies_have_their_form() {
    let any = json!({"type": "object", "properties": {"a": {}, "b": {}}});
    for (slots, input, body) in [
        (json!({"body": "input"}), json!({"a": 1, "b": null}), r#"{"a":1,"b":null}"#),
        (json!({"body": {"member": "a"}, "query": ["b"]}), json!({"a": null, "b": null}), "null"),
        (json!({"body_format": "form"}), json!({"a": 1, "b": null}), "a=1"),
        (json!({"body": {"member": "a"}, "query": ["b"]}), json!({"a": [1, null]}), "[1,null]"),
        (json!({"body": {"member": "a"}, "query": ["b"]}), json!({}), ""),
        (json!({"body_format": "form"}), json!({"a": ["x y", 2], "b": "&="}), "a=x%20y&a=2&b=%26%3D"),
        (
            json!({"body_format": "form_with_brackets"}),
            json!({"a": {"b": [1, {"c": true}]}}),
            "a%5Bb%5D%5B0%5D=1&a%5Bb%5D%5B1%5D%5Bc%5D=true",
        ),
        (json!({"query": {"a": {"member": "a", "style": ","}, "b": "b"}}), json!({"a": [1, 2]}), ""),
    ] {
        let tool = tool(json!({"method": "POST", "path": "/", "slots": slots, "input_schema": any}));
        let request = built(&tool, &input).unwrap();
        assert_eq!(String::from_utf8(request.body).unwrap(), body, "{slots}");
    }
    let form = tool(json!({"method": "POST", "path": "/", "slots": {"body_format": "form"}, "input_schema": any}));
    assert_eq!(built(&form, &json!({"a": {"b": 1}})).unwrap_err()[0].path, "a");
    let joined = tool(json!({"method": "GET", "path": "/", "input_schema": any,
        "slots": {"query": {"a": {"member": "a", "style": ","}, "b": {"member": "b", "style": "brackets"}}}}));
    assert_eq!(built(&joined, &json!({"a": ["1,2"]})).unwrap_err()[0].path, "a.0");
    let request = built(&joined, &json!({"a": ["1", 2], "b": {"c": [3]}})).unwrap();
    assert_eq!(request.url, "https://api.example.com/v1/?v=a%20b&a=1%2C2&b%5Bc%5D%5B0%5D=3");
    let mut deep = json!(1);
    for _ in 0..20 {
        deep = json!({"a": deep});
    }
    assert!(built(&joined, &json!({"b": deep})).is_err());
    assert!(built(&joined, &json!({"b": vec![1; 2_000]})).is_err());
    assert!(built(&joined, &json!({"b": {"x".repeat(600): [1, 2, 3]}})).is_err());
}

#[test]
fn a_path_member_stays_one_segment() {
    for text in [
        "",
        ".",
        "..",
        "a/b",
        "../admin",
        "a\\b",
        "%2e%2e",
        "%252e%252E",
        "%2f",
        "a%00b",
        "a\nb",
        "..;x",
        ";",
        " ",
        ". ",
        "\u{0}",
        "%25252525252e",
    ] {
        let errors = built(&four_slots(), &json!({"id": text, "part": "x"})).unwrap_err();
        assert_eq!(errors[0].path, "id", "{text:?}");
    }
    for text in ["...", "a.b", "100%", "a?b#c", "über", "a;b", "http:"] {
        assert!(built(&four_slots(), &json!({"id": text, "part": "x"})).is_ok(), "{text:?}");
    }
    let two = tool(json!({"method": "GET", "path": "/{a}{b}", "input_schema": {
        "type": "object", "required": ["a", "b"], "properties": {"a": {}, "b": {}}}}));
    assert!(built(&two, &json!({"a": "%2", "b": "e"})).is_err(), "together a dot segment");
    let deep = tool(json!({"method": "GET", "path": "/files/{+path}", "input_schema": {
        "type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}}}));
    let url = built(&deep, &json!({"path": "a b/c"})).unwrap().url;
    assert!(url.starts_with("https://api.example.com/v1/files/a%20b/c?"), "{url}");
    for path in ["a/../b", "/a", "a//b", "a/", "a/%2e%2e/b", "a\\b"] {
        assert!(built(&deep, &json!({"path": path})).is_err(), "{path}");
    }
}

#[test]
fn a_repeated_call_has_the_same_id() {
    let tool = tool(
        json!({"method": "POST", "path": "/", "input_schema": {"type": "object"}, "call_id_header": "Idempotency-Key"}),
    );
    assert!(tool.safe_to_retry);
    let request = || built(&tool, &json!({})).unwrap();
    assert_eq!(text_of(&request(), "idempotency-key"), None);
    assert_eq!(text_of(&request().for_call("req_1"), "idempotency-key"), Some("req_1"));
    assert_eq!(text_of(&request().for_call("a\r\nb"), "idempotency-key"), None);
    assert_eq!(request().digest(), request().digest());
    assert_ne!(request().digest(), built(&four_slots(), &json!({"id": "1", "part": "2"})).unwrap().digest());
}

#[test]
fn secrets_are_filled_in_by_the_caller() {
    let request = built(&four_slots(), &json!({"id": "1", "part": "2"})).unwrap();
    assert!(!format!("{request:?}").contains("s3cret"));
    let filled = request.filled(|name| Some(if name == "k" { "s3cret" } else { "a&b" })).unwrap();
    assert_eq!(filled.url, "https://api.example.com/v1/items/1/x-2?v=a%20b&key=a%26b");
    assert!(filled.headers.contains(&("authorization".to_owned(), "Bearer s3cret".to_owned())));
    assert!(!format!("{filled:?}").contains("s3cret"));
    assert_eq!(request.filled(|_| None), Err(SecretProblem::Missing("q".to_owned())));
    for value in ["", "a\nb", "a\r", "ä", " a"] {
        assert_eq!(request.filled(|_| Some(value)), Err(SecretProblem::Unfit("q".to_owned())), "{value:?}");
    }
    let basic =
        tool(json!({"method": "GET", "path": "/", "input_schema": {"type": "object"}, "constants": {"headers": {
        "authorization": {"secret": "login", "prefix": "Basic ", "encoding": "base64"}}}}));
    let filled = built(&basic, &json!({})).unwrap().filled(|_| Some("user:word")).unwrap();
    assert!(filled.headers.contains(&("authorization".to_owned(), "Basic dXNlcjp3b3Jk".to_owned())));
}

proptest! {
    #[test]
    fn a_hostile_text_never_leaves_its_slot(
        id in any::<String>(), q in any::<String>(), h in any::<String>(), b in any::<String>(),
    ) {
        let input = json!({"id": id, "part": "p", "q": [q], "h": h, "b": b});
        let Ok(request) = built(&four_slots(), &input) else { return Ok(()) };
        let url = url::Url::parse(&request.url).unwrap();
        prop_assert_eq!(url.as_str(), &request.url, "no parser reads another address");
        prop_assert_eq!(url.host_str(), Some("api.example.com"));
        let segments: Vec<&str> = url.path_segments().unwrap().collect();
        prop_assert_eq!(segments.len(), 4);
        prop_assert_eq!(base::encoding::percent_decoded(segments[2]), id);
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        prop_assert_eq!(pairs, vec![("v".to_owned(), "a b".to_owned()), ("q[]".to_owned(), q)]);
        prop_assert_eq!(serde_json::from_slice::<Value>(&request.body).unwrap(), json!({"b": b}));
        for (_, value) in &request.headers {
            if let Constant::Text(text) = value {
                prop_assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            }
        }
        prop_assert_eq!(text_of(&request, "x-h"), Some(h.as_str()));
    }

    #[test]
    fn a_path_of_encoded_pieces_has_no_dot_segment(
        pieces in proptest::collection::vec(prop_oneof!["%2e", ".", "%2f", "/", "%5c", "%25", "2e", ";", "a", "%00"], 0..6),
    ) {
        let id = pieces.concat();
        if let Ok(request) = built(&four_slots(), &json!({"id": id, "part": "p"})) {
            let mut path = request.url.split('?').next().unwrap().to_owned();
            for _ in 0..4 {
                let inner = path.strip_prefix("https://api.example.com/v1/items/").unwrap().strip_suffix("/x-p").unwrap().to_owned();
                prop_assert!(!inner.contains(['/', '\\', '\0']) && !matches!(inner.as_str(), "" | "." | ".."), "{id}");
                path = base::encoding::percent_decoded(&path);
            }
        }
    }
}
