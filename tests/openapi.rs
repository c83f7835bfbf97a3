//! The API description: complete, correct, well served, and good enough to generate a client from.
//!
//! `support::described` checks every answer of the other tests against it.

use std::collections::HashSet;

use api::operations;
use api::routes;
use catalog::CATALOG;
use serde_json::{Map, Value, json};

use crate::support::described::{DESCRIPTION, judge, led};
use crate::support::http::Answer;
use crate::support::{Payer, run, stack};

fn described() -> Vec<&'static Value> {
    let items = DESCRIPTION["paths"].as_object().unwrap().values();
    items.flat_map(|item| item.as_object().unwrap().values()).collect()
}

#[test]
fn the_description_has_every_route_once() {
    let routes: HashSet<(&str, &str)> = routes::all().map(|route| (route.method, route.path)).collect();
    let (mut seen, mut ids) = (HashSet::new(), HashSet::new());
    for operation in operations::all() {
        assert!(seen.insert((operation.method, operation.path)), "twice: {}", operation.id);
        assert!(ids.insert(operation.id), "two operations are called {}", operation.id);
        assert!(!operation.summary.ends_with('.') && !operation.answers.is_empty(), "{}", operation.id);
    }
    let missing: Vec<_> = routes.difference(&seen).collect();
    assert!(missing.is_empty(), "routes without a description: {missing:?}");
    let stale: Vec<_> = seen.difference(&routes).collect();
    assert!(stale.is_empty(), "descriptions without a route: {stale:?}");
}

/// Every reference resolves, every schema is valid, and every example matches its schema.
#[test]
fn references_schemas_and_examples_are_valid() {
    let text = DESCRIPTION.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(DESCRIPTION.pointer(reference).is_some_and(|found| !found.is_null()), "{reference}");
    }
    for (name, schema) in DESCRIPTION["components"]["schemas"].as_object().unwrap() {
        assert!(jsonschema::meta::is_valid(schema), "{name}");
    }
    let mut examples = 0;
    for operation in described() {
        for content in operation["requestBody"]["content"].as_object().into_iter().flat_map(Map::values) {
            assert!(jsonschema::meta::is_valid(&content["schema"]), "{}", operation["operationId"]);
            if let Some(example) = content.get("example") {
                let whole = json!({"allOf": [content["schema"]], "components": DESCRIPTION["components"]});
                assert!(jsonschema::is_valid(&whole, example), "{}", operation["operationId"]);
                examples += 1;
            }
        }
    }
    assert!(examples > 10, "{examples}");
    // Agents pay for reading all of it, so repetition is limited. It was 1.4 MB when every operation repeated everything.
    let each = text.len() / described().len();
    assert!(each < 3_500, "{each} bytes an operation");
}

/// Each link points to an operation that has the linked parameters.
#[test]
fn links_point_to_operations() {
    let mut links = 0;
    for operation in described() {
        for response in operation["responses"].as_object().unwrap().values() {
            for link in led(&DESCRIPTION, response)["links"].as_object().into_iter().flat_map(Map::values) {
                let target = described().into_iter().find(|other| other["operationId"] == link["operationId"]).unwrap();
                for name in link["parameters"].as_object().unwrap().keys() {
                    let takes = target["parameters"].as_array().unwrap().iter().any(|known| known["name"] == **name);
                    assert!(takes, "{name} of {}", target["operationId"]);
                }
                links += 1;
            }
        }
    }
    assert!(links > 20, "{links}");
}

#[test]
fn exactly_the_paid_operations_describe_a_402() {
    for operation in described() {
        let is_paid = operation.get("x-payment-info").is_some();
        // A checkout session answers 402 for a failed payment, but does not quote a price.
        let refused = &led(&DESCRIPTION, &operation["responses"]["402"])["content"]["application/json"]["schema"];
        assert_eq!(is_paid, refused.get("anyOf").is_some(), "{}", operation["operationId"]);
        let price = &operation["x-payment-info"]["price"];
        assert!(!is_paid || price["amount"].is_string() || price["min"].is_string(), "{price}");
        assert!(operation["security"].is_array() && operation["tags"][0].is_string());
    }
}

/// A paid call shows its price where pages list it; its other paths are marked and come last.
#[test]
fn prices_are_shown_and_aliases_marked() {
    let mut aliases = 0;
    for tool in CATALOG.iter() {
        for path in tool.paths {
            let described = &DESCRIPTION["paths"][*path]["post"];
            assert!(described["summary"].as_str().unwrap().contains(" USDC"), "{path}");
            let is_alias = *path != tool.path();
            let is_last = described["tags"] == json!(["Aliases"]);
            let marked = json!([described["x-alias-of"], described["deprecated"], is_last]);
            let wanted = if is_alias { json!([tool.path(), true, true]) } else { json!([null, null, false]) };
            assert_eq!(marked, wanted, "{path}");
            aliases += usize::from(is_alias);
        }
    }
    assert!(aliases > 5, "{aliases}");
    assert_eq!(DESCRIPTION["tags"].as_array().unwrap().last().unwrap()["name"], "Aliases");
}

/// The check of all answers does detect errors.
#[test]
fn answers_that_differ_from_the_description_are_detected() {
    let judged = |path: &str, status: u16, content_type: &str, body: Value| {
        let mut headers = http::HeaderMap::new();
        headers.insert("content-type", content_type.parse().unwrap());
        let text = body.to_string();
        judge("GET", path, &Answer { status, headers, bytes: text.clone().into(), text })
    };
    let good = json!({"status": "ok", "service": "Agora", "timestamp": "2026-11-21T08:00:00.000Z"});
    let without = json!({"status": "ok", "service": "Agora"});
    let mut more = good.clone();
    more["more"] = json!(1);
    let mut other = good.clone();
    other["timestamp"] = json!("yesterday");
    let refused = |code: &str| json!({"error": code, "message": "no"});
    assert_eq!(judged("/health", 200, "application/json", good.clone()), Ok(()));
    assert_eq!(judged("/v1/requests/x", 404, "application/json", refused("not_found")), Ok(()));
    for (path, status, content_type, body) in [
        ("/health", 200, "application/json", without),
        ("/health", 200, "application/json", more),
        ("/health", 200, "application/json", other),
        ("/health", 200, "text/plain", good.clone()),
        ("/health", 503, "application/json", good),
        ("/v1/requests/x", 404, "application/json", refused("gone")),
        ("/v1/requests/x", 404, "application/json", json!({"error": "not_found"})),
    ] {
        assert!(judged(path, status, content_type, body).is_err(), "{path} {status} {content_type}");
    }
}

#[test]
fn the_description_is_served_compressed_plain_and_with_304() {
    run(async {
        let stack = stack().await;
        let client = Payer::with(&stack, 0).await.client;
        let plain = client.get("/openapi.json", &[]).await;
        let served = plain.json();
        assert_eq!(served["openapi"], "3.1.0");
        assert_eq!(served["paths"], DESCRIPTION["paths"]);
        let packed = client.get("/openapi.json", &[("accept-encoding", "br, gzip")]).await;
        assert_eq!((packed.status, packed.header("content-encoding")), (200, Some("gzip")));
        let tag = plain.header("etag").unwrap();
        let again = client.get("/openapi.json", &[("if-none-match", tag)]).await;
        assert_eq!((again.status, again.text.as_str()), (304, ""));
    });
}

/// The page loads everything from here, and its content security policy enforces that.
#[test]
fn the_documentation_page_loads_nothing_external() {
    run(async {
        let stack = stack().await;
        let client = Payer::with(&stack, 0).await.client;
        let page = client.get("/docs", &[]).await;
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"), "{policy}");
        assert!(!policy.contains("http") && !page.text.contains("://"), "{}", page.text);
        let named = page.text.split(['"']).filter(|text| text.starts_with("/docs/"));
        let named: Vec<&str> = named.collect();
        assert_eq!(named.len(), 4, "{named:?}");
        for path in named {
            let part = client.get(path, &[]).await;
            assert_eq!((part.status, part.header("x-content-type-options")), (200, Some("nosniff")), "{path}");
            assert!(part.text.len() > 100, "{path}");
        }
        assert_eq!(client.get("/docs/other.js", &[]).await.error(), (404, "not_found".to_owned()));
    });
}
