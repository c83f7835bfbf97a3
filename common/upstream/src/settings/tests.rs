use serde_json::json;

use super::*;
use crate::tool::{Body, Constant, Content, QuerySlot, Style, Target};

fn read(tool: Value) -> Result<Tool, Vec<String>> {
    let settings = Settings::read(&json!({"tools": [tool]}), &|name| name == "web_read");
    settings
        .map(|mut settings| settings.tools.remove(0))
        .map_err(|problems| problems.iter().map(|problem| problem.to_string().replace("/tools/0/", "")).collect())
}

/// The smallest entry, with these members.
fn entry(members: Value) -> Value {
    let mut entry = json!({
        "name": "parcel_status", "title": "Parcel status", "summary": "Where a parcel is", "price": "0.01",
        "method": "GET", "address": "https://api.example.com/v2", "path": "/parcels/{id}",
        "input_schema": {"type": "object", "required": ["id"], "properties": {
            "id": {"type": "string"}, "lang": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}},
        }},
    });
    for (name, value) in members.as_object().unwrap() {
        match value.is_null() {
            true => entry.as_object_mut().unwrap().remove(name),
            false => entry.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    entry
}

#[test]
fn the_smallest_entry_has_the_defaults_of_its_method() {
    let tool = read(entry(json!({}))).unwrap();
    let Target::Http(http) = &tool.target else { panic!() };
    let plain = |name: &str| QuerySlot { name: name.into(), member: name.into(), style: Style::Repeated };
    assert_eq!((&http.query, &http.body), (&vec![plain("lang"), plain("tags")], &Body::None));
    assert_eq!(Value::from(tool.example_input().unwrap()), json!({"id": "text"}));
    assert_eq!(tool.input_schema["additionalProperties"], false, "a misspelt member is refused");
    assert_eq!((tool.safe_to_retry, tool.deadline.as_secs(), tool.cache.as_secs()), (true, 20, 0));
    assert_eq!((tool.caller_errors.as_slice(), tool.max_response_bytes), (&[400, 404, 409, 422][..], 1024 * 1024));
    let tool = read(entry(json!({"method": "POST", "output_schema": {"type": "object"}}))).unwrap();
    let Target::Http(http) = &tool.target else { panic!() };
    assert_eq!((http.query.len(), &http.body), (0, &Body::Json(Content::Rest)));
    assert_eq!((tool.safe_to_retry, tool.max_response_bytes), (false, 1024 * 1024));
    let open = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let tool = read(entry(json!({"method": "POST", "path": "/", "input_schema": open}))).unwrap();
    assert!(matches!(&tool.target, Target::Http(http) if http.body == Body::Json(Content::Rest)));
}

#[test]
fn every_problem_is_listed_with_its_place() {
    let problems = read(entry(json!({
        "name": "web_read", "title": "", "summary": "a\u{202e}b", "category": "Big", "price": {"per": "/lang", "rate": 1, "maximum": "5000"},
        "methd": "x", "method": "HEAD", "private": "no", "address": "http://api.example.com", "output_schema": {"$ref": "http://x"},
        "answers": ["text/html"], "caller_errors": [401], "safe_to_retry": 1, "deadline_seconds": 601, "cache_seconds": -1,
        "calls_per_day": 0, "at_once": 1001, "max_response_bytes": 1e9,
        "constants": {"headers": {"Host": "x", "authorization": "Bearer abc", "x-a": {"secret": "Not A Word", "x": 1}}, "queries": {}},
    })))
    .unwrap_err();
    for place in [
        "name is the name",
        "title must have",
        "summary must not contain control",
        "category must be",
        "price/rate must be",
        "price/maximum must be from",
        "methd is not a known",
        "method must be GET",
        "private must be true or",
        "address must begin",
        "output_schema/$ref must refer",
        "answers may only",
        "caller_errors must be",
        "safe_to_retry must",
        "deadline_seconds must",
        "cache_seconds must",
        "calls_per_day must",
        "at_once must",
        "max_response_bytes must",
        "constants/headers/Host belongs",
        "constants/headers/authorization must not be in this file",
        "constants/headers/x-a/secret must be the name",
        "constants/headers/x-a/x is not",
        "constants/queries is not",
    ] {
        assert!(problems.iter().any(|problem| problem.starts_with(place)), "{place}: {problems:#?}");
    }
    assert_eq!(problems.len(), 24, "{problems:#?}");
    let missing = read(json!({})).unwrap_err();
    for member in ["name", "title", "summary", "price", "input_schema", "address", "method", "path"] {
        assert!(missing.iter().any(|problem| problem.starts_with(&format!("{member} is required"))), "{member}");
    }
}

#[test]
fn slots_and_schema_have_to_agree() {
    for (members, place) in [
        (json!({"path": "/parcels/{lang}"}), "path needs lang: name it in required"),
        (json!({"path": "/parcels/{nr}"}), "path names nr, which is not"),
        (json!({"path": "parcels/{id}"}), "path must begin with a slash"),
        (json!({"path": "/a/../{id}"}), "path must not have dot"),
        (json!({"path": "/a//{id}"}), "path must not have empty"),
        (json!({"path": "/a?x={id}"}), "path must not contain"),
        (json!({"path": "/{id"}), "path has a {"),
        (json!({"path": "/x{+id}"}), "path must have {+id} as a whole"),
        (json!({"slots": {"query": ["lang"]}}), "slots must say where tags goes"),
        (json!({"slots": {"query": ["lang", "tag"]}}), "slots/query/tag names tag, which is not"),
        (json!({"slots": {"body": "rest"}}), "slots/body must be left out: a GET"),
        (json!({"method": "POST", "slots": {"query": "rest", "body": "rest"}}), "slots/query cannot be the rest"),
        (json!({"slots": {"headers": {"Transfer-Encoding": "lang"}}}), "slots/headers/Transfer-Encoding is a header"),
        (json!({"slots": {"headers": {"X-Forwarded-For": "lang"}}}), "slots/headers/X-Forwarded-For is a header"),
        (json!({"slots": {"headers": {"x-a:b": "lang"}}}), "slots/headers/x-a:b is not a header's"),
        (json!({"slots": {"path": {"nr": "id"}}}), "slots/path/nr is not in the path"),
        (json!({"constants": {"query": {"lang": "en"}}}), "slots fills lang of the query, which constants"),
        (json!({"constants": {"query": {"api_key": "x1"}}}), "constants/query/api_key must not be in this file"),
        (json!({"constants": {"headers": {"x-a": "a\r\nb"}}}), "constants/headers/x-a must not contain control"),
        (
            json!({"price": {"per": "/lang", "of": "length", "rate": "1", "maximum": "5"}}),
            "price/per lang must be required",
        ),
        (
            json!({"price": {"per": "/id", "rate": "1", "maximum": "5"}}),
            "price/per must lead to a member of type number",
        ),
        (json!({"call_id_header": "authorization"}), "call_id_header must be the name"),
        (
            json!({"call_id_header": "x-a", "constants": {"headers": {"X-A": "1"}}}),
            "call_id_header must not be a header that",
        ),
        (
            json!({"constants": {"headers": {"x-lang": "sk-SK", "x-n": "sk-proj-0123456789"}}}),
            "constants/headers/x-n must not be in",
        ),
        (json!({"example": {"id": 5}}), "example/id value is not of type"),
        (json!({"example": {"id": "a/b"}}), "example/id must not be empty, contain a slash"),
        (json!({"method": "DELETE", "cache_seconds": 5}), "cache_seconds is only for GET"),
        (json!({"output_schema": {}, "max_response_bytes": 2_000_000}), "max_response_bytes may be at most 1048576"),
        (json!({"output_schema": {}, "answers": ["image/png"]}), "answers must be [\"application/json\"]"),
        (json!({"kind": "mcp", "tool": "x"}), "method is not a known member"),
        (
            json!({"path": "/", "input_schema": {"type": "object", "additionalProperties": true}}),
            "slots must send members",
        ),
        (json!({"input_schema": {"type": "array"}}), "input_schema/type must be \"object\""),
    ] {
        let problems = read(entry(members.clone())).unwrap_err();
        assert!(problems.iter().any(|problem| problem.starts_with(place)), "{place}: {problems:?}");
    }
}

#[test]
fn secrets_are_named_and_never_written() {
    let tool = read(entry(json!({"constants": {
        "query": {"key": {"secret": "maps_key"}, "v": "2"},
        "headers": {"Authorization": {"secret": "billing_key", "prefix": "Bearer "}, "x-twin": {"secret": "maps_key"}},
    }})))
    .unwrap();
    assert_eq!(tool.secrets(), ["billing_key", "maps_key"]);
    let Target::Http(http) = &tool.target else { panic!() };
    assert_eq!(http.constant_headers[0].0, "authorization");
    assert!(matches!(&http.constant_headers[0].1, Constant::Secret(secret) if secret.prefix == "Bearer "));
}

#[test]
fn a_file_is_read_as_text_with_unique_names() {
    let reserved: Reserved<'_> = &|_| false;
    let twice = json!({"tools": [entry(json!({})), entry(json!({}))], "tool": 1}).to_string();
    let problems: Vec<String> =
        Settings::parse(&twice, reserved).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(problems, ["/tool is not a known member", "/tools/1/name must differ from that of /tools/0"]);
    for (text, message) in [
        ("{", "the file is not JSON"),
        ("[]", "must be an object"),
        ("{\"tools\": 1}", "/tools must be an array"),
        ("{}", "/tools is required"),
        ("{\"tools\": [], \"tools\": []}", "/tools is said twice"),
    ] {
        let problems = Settings::parse(text, reserved).unwrap_err();
        assert!(problems[0].to_string().starts_with(message), "{text}: {problems:?}");
    }
    assert!(Settings::parse("{\"tools\": []}", reserved).unwrap().tools.is_empty());
}
