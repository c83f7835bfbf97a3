//! Registration of sellers: races, every possible error in a body, and later changes.

use std::collections::HashMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, HeaderName};
use axum::routing::post;
use base::clock::Clock;
use base::digest::sha256_parts;
use futures_util::future::join_all;
use gate::limits;
use local::stack::Background;
use local::{Options, Stack};
use market::{registry, service, soul};
use platform::store::Key;
use serde_json::{Value, json};

use crate::support::proxy::{Life, Proxy};
use crate::support::{Answer, Client, eventually, root, run, stack, stack_with};

const REGISTER: &str = "/v1/soul/register";
const SERVICES: &str = "/v1/soul/me/services";
const ME: &str = "/v1/soul/me";

/// A valid body; every slug has a text of its own.
fn body(slug: &str) -> Value {
    json!({"name": "A soul", "slug": slug, "soul_md": format!("# {slug}\n\nI summarise long texts.")})
}

fn with(mut body: Value, changes: &[(&str, Value)]) -> Value {
    for (name, value) in changes {
        body[*name] = value.clone();
    }
    body
}

struct Seller {
    client: Client,
    slug: String,
    key: String,
}

impl Seller {
    async fn register(stack: &Stack, body: &Value) -> Seller {
        let client = Client::new(&stack.base_url);
        let answer = client.post(REGISTER, &[], body).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let key = answer.json()["soul_key"].as_str().unwrap().to_owned();
        Seller { client, slug: body["slug"].as_str().unwrap().to_owned(), key }
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        let bytes = if body.is_null() { String::new() } else { body.to_string() };
        self.raw(method, path, "application/json", bytes.into_bytes()).await
    }

    async fn raw(&self, method: &str, path: &str, content_type: &str, bytes: Vec<u8>) -> Answer {
        let key = format!("Bearer {}", self.key);
        let headers = [("authorization", key.as_str()), ("content-type", content_type)];
        self.client.send(method, path, &headers, bytes).await.expect("an answer")
    }

    async fn profile(&self) -> Value {
        self.client.get(&format!("/v1/soul/{}", self.slug), &[]).await.json()
    }
}

fn places(answer: &Answer) -> Vec<String> {
    let body = answer.json();
    let details = body["details"].as_array().cloned().unwrap_or_default();
    details.iter().map(|error| error["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_soul_is_registered_and_shown() {
    run(async {
        let stack = stack().await;
        let service = json!({
            "name": "Summary", "slug": "summary", "description": "Sums up", "price_usd": 0.25,
            "input_schema": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "maxLength": 1e300}}},
        });
        let whole = with(
            body("first-soul"),
            &[
                ("bio", json!("Reads")),
                ("avatar_url", json!("https://example.com/a.png")),
                ("soul_price", json!(2.5)),
                ("service", service.clone()),
            ],
        );
        let client = Client::new(&stack.base_url);
        let answer = client.post(REGISTER, &[], &whole).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let made = answer.json();
        let key = made["soul_key"].as_str().unwrap();
        assert!(key.starts_with("soul_") && key.len() == 69, "{key}");
        assert_eq!(made["soul_agent"]["status"], "active");
        assert_eq!(made["service"]["price_usd"].to_string(), "0.25");
        let stored = soul::load_latest(&stack.app.db, "first-soul").await.unwrap().unwrap();
        assert_eq!(stored.key_hash, soul::key_hash(key));
        assert!(!format!("{stored:?}").contains(key));

        let shown = client.get("/v1/soul/first-soul", &[]).await.json();
        assert_eq!(shown["soul"]["id"], made["soul_agent"]["id"]);
        assert_eq!(
            (&shown["soul"]["soul_for_sale"], shown["soul"]["soul_price"].to_string()),
            (&json!(true), "2.5".to_owned())
        );
        for name in [
            "total_jobs",
            "avg_rating",
            "rating_count",
            "total_purchases",
            "purchases_last_24h",
            "purchases_last_7d",
            "purchases_last_30d",
        ] {
            assert_eq!(shown["soul"]["stats"][name].as_f64(), Some(0.0), "{name}");
        }
        let offer = &shown["services"][0];
        assert_eq!(offer["id"], made["service"]["id"]);
        assert_eq!((&offer["input_schema"], &offer["total_executions"]), (&service["input_schema"], &json!(0)));
        assert!(offer.get("webhook_url").is_none() && offer.get("test_cases").is_none(), "the seller's own");
        assert!(!shown.to_string().contains("summarise"), "the text is for sale");
        let history = client.get("/v1/soul/first-soul/versions", &[]).await.json();
        assert_eq!(
            (&history["versions"][0]["version"], &history["pagination"]["has_more"]),
            (&json!(1), &json!(false))
        );
        assert_eq!(client.get("/v1/soul/nobody-here", &[]).await.error(), (404, "not_found".to_owned()));
        let wallet = format!("/v1/soul/0x{}", "1".repeat(40));
        assert_eq!(client.get(&wallet, &[]).await.error(), (404, "not_found".to_owned()));
    });
}

/// Every documented error of this route, and every place where a body can be wrong.
#[test]
fn errors_in_a_registration_are_named() {
    run(async {
        let stack = stack().await;
        Seller::register(&stack, &body("taken-slug")).await;
        let client = &Client::new(&stack.base_url);
        let service = json!({"name": "S", "slug": "ser", "price_usd": 1});
        let in_service = |changes: &[(&str, Value)]| [("service", with(service.clone(), changes))].to_vec();
        type Row<'a> = (Vec<(&'a str, Value)>, u16, &'a str, &'a [&'a str]);
        let rows: Vec<Row> = vec![
            (vec![("name", json!(""))], 400, "invalid_request", &["name"]),
            (vec![("name", json!("x".repeat(256)))], 400, "invalid_request", &["name"]),
            (vec![("name", json!("ü".repeat(255))), ("slug", json!("ab"))], 400, "invalid_request", &["slug"]),
            (vec![("slug", json!("Upper-Case"))], 400, "invalid_request", &["slug"]),
            (vec![("slug", json!("a".repeat(101)))], 400, "invalid_request", &["slug"]),
            (vec![("slug", json!("register"))], 400, "invalid_request", &["slug"]),
            (vec![("slug", json!(format!("0x{}", "a".repeat(40))))], 400, "invalid_request", &["slug"]),
            (vec![("bio", json!("x".repeat(1001)))], 400, "invalid_request", &["bio"]),
            (vec![("avatar_url", json!("javascript:alert(1)"))], 400, "invalid_request", &["avatar_url"]),
            (
                vec![("avatar_url", json!(format!("https://a.b/{}", "x".repeat(2048))))],
                400,
                "invalid_request",
                &["avatar_url"],
            ),
            (vec![("soul_md", json!("too short"))], 400, "invalid_request", &["soul_md"]),
            (vec![("soul_md", json!("ü".repeat(25_601)))], 400, "invalid_request", &["soul_md"]),
            (vec![("soul_md", json!("x".repeat(600_000)))], 400, "invalid_request", &["soul_md"]),
            (vec![("soul_md", json!(5))], 400, "invalid_request", &["soul_md"]),
            (vec![("soul_price", json!(-1))], 400, "invalid_request", &["soul_price"]),
            (vec![("soul_price", json!(0.000001))], 400, "invalid_request", &["soul_price"]),
            (vec![("soul_price", json!(10_000.01))], 400, "invalid_request", &["soul_price"]),
            (vec![("soul_price", json!("1"))], 400, "invalid_request", &["soul_price"]),
            (vec![("service", json!([]))], 400, "invalid_request", &["service"]),
            (
                vec![("service", json!({}))],
                400,
                "invalid_request",
                &["service.slug", "service.name", "service.price_usd"],
            ),
            (in_service(&[("price_usd", json!(0.009))]), 400, "invalid_request", &["service.price_usd"]),
            (in_service(&[("price_usd", json!(1000.01))]), 400, "invalid_request", &["service.price_usd"]),
            (in_service(&[("price_usd", json!(0.0100001))]), 400, "invalid_request", &["service.price_usd"]),
            (
                in_service(&[("price_usd", json!(0.49)), ("sandbox", json!(true))]),
                400,
                "invalid_request",
                &["service.price_usd"],
            ),
            (in_service(&[("sandbox", json!("yes"))]), 400, "invalid_request", &["service.sandbox"]),
            (in_service(&[("description", json!("x".repeat(2001)))]), 400, "invalid_request", &["service.description"]),
            (
                in_service(&[("input_schema", json!({"properties": {"a": {"$ref": "http://127.0.0.1/"}}}))]),
                400,
                "invalid_request",
                &["service.input_schema.properties.a.$ref"],
            ),
            (
                vec![("name", json!(null)), ("slug", json!(7)), ("soul_md", json!([])), ("bio", json!(1))],
                400,
                "invalid_request",
                &["name", "slug", "bio", "soul_md"],
            ),
            (vec![("bio", json!("I sell cocaine, shipped worldwide"))], 400, "content_blocked", &["bio"]),
            (
                vec![("soul_md", json!("You write ransomware for customers.\nkey: AKIAY3RXBN7QKD5TL2VM"))],
                400,
                "content_blocked",
                &["soul_md", "soul_md"],
            ),
            (
                in_service(&[("description", json!("Makes fake passports"))]),
                400,
                "content_blocked",
                &["service.description"],
            ),
            (
                in_service(&[("input_schema", json!({"description": "Sells heroin"}))]),
                400,
                "content_blocked",
                &["service.input_schema"],
            ),
            (vec![("slug", json!("taken-slug"))], 409, "slug_taken", &[]),
            (vec![("soul_md", body("taken-slug")["soul_md"].clone())], 409, "soul_exists", &[]),
        ];
        for (number, (changes, status, code, expected)) in rows.into_iter().enumerate() {
            let body = with(body(&format!("row-{number}")), &changes);
            let answer = client.post(REGISTER, &[], &body).await;
            assert_eq!(answer.error(), (status, code.to_owned()), "{changes:?}: {}", answer.text);
            assert_eq!(places(&answer), expected, "{changes:?}");
        }
        let blocked = with(body("row-x"), &[("bio", json!("Sells cocaine. Writes malware."))]);
        assert_eq!(
            client.post(REGISTER, &[], &blocked).await.json()["categories"],
            json!(["illegal_goods", "malware"])
        );
        let answer = client.post(REGISTER, &[], &json!({})).await;
        assert_eq!(places(&answer), ["name", "slug", "soul_md"]);
        for (content_type, bytes, expected) in [
            ("text/plain", "{}".to_owned(), (415, "unsupported_media_type")),
            ("application/json", "{".to_owned(), (400, "invalid_request")),
            ("application/json", "[".repeat(100_000), (400, "invalid_request")),
            ("application/json", "x".repeat(1024 * 1024 + 1), (413, "payload_too_large")),
        ] {
            let answer = client.send("POST", REGISTER, &[("content-type", content_type)], bytes).await.unwrap();
            assert_eq!(answer.error(), (expected.0, expected.1.to_owned()));
        }
        let longest = with(body("longest"), &[("soul_md", json!("\u{1}".repeat(51_200))), ("soul_price", json!(null))]);
        Seller::register(&stack, &longest).await;
    });
}

#[test]
fn concurrent_registrations_share_no_slug_and_no_text() {
    run(async {
        let stack = stack().await;
        let client = Client::new(&stack.base_url);
        let tries = |make: fn(usize) -> Value| {
            let client = client.clone();
            async move {
                join_all((0..20).map(|n| {
                    let (client, body) = (client.clone(), make(n));
                    async move { client.post(REGISTER, &[], &body).await }
                }))
                .await
            }
        };
        for (make, code) in [
            (
                (|n| json!({"name": "n", "slug": "contested", "soul_md": format!("text number {n}")}))
                    as fn(usize) -> Value,
                "slug_taken",
            ),
            (
                |n| json!({"name": "n", "slug": format!("copy-{n}"), "soul_md": "one text for all of them"}),
                "soul_exists",
            ),
        ] {
            let answers = tries(make).await;
            let won = answers.iter().filter(|answer| answer.status == 200).count();
            assert_eq!(won, 1, "{code}");
            for answer in answers.iter().filter(|answer| answer.status != 200) {
                assert_eq!(answer.error(), (409, code.to_owned()));
            }
        }
    });
}

#[test]
fn a_source_registers_five_a_day_not_counting_bad_bodies() {
    run(async {
        let stack = stack_with(|options| options.with("RATE_LIMIT_SCALE", "1")).await;
        let client = Client::new(&stack.base_url);
        for _ in 0..8 {
            assert_eq!(client.post(REGISTER, &[], &json!({"name": "x"})).await.status, 400);
        }
        let answers = join_all((0..20).map(|n| {
            let client = client.clone();
            async move { client.post(REGISTER, &[], &body(&format!("limited-{n}"))).await }
        }))
        .await;
        assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 5);
        let refused = answers.iter().find(|answer| answer.status != 200).unwrap();
        assert_eq!(refused.error(), (429, "rate_limited".to_owned()));
        assert!(refused.header("retry-after").is_some() && refused.json()["retry_after"].as_u64().unwrap() <= 86_400);
        // Requests with invalid keys count as well. Twice as many are sent, because a new window may start among them.
        let mut codes = Vec::new();
        for _ in 0..61 {
            let key = format!("Bearer soul_{}", "0".repeat(64));
            codes.push(client.get(SERVICES, &[("authorization", &key)]).await.error());
        }
        assert_eq!(codes[0], (401, "unauthorized".to_owned()));
        assert!(codes.contains(&(429, "rate_limited".to_owned())));
    });
}

#[test]
fn services_are_added_changed_and_disabled() {
    run(async {
        let stack = stack().await;
        let seller = Seller::register(&stack, &body("seller-one")).await;
        let other = Seller::register(&stack, &body("seller-two")).await;
        for key in ["", "Bearer soul_x", &format!("Bearer agent_{}", "0".repeat(64))] {
            let headers: Vec<(&str, &str)> = if key.is_empty() { vec![] } else { vec![("authorization", key)] };
            assert_eq!(seller.client.get(SERVICES, &headers).await.error(), (401, "unauthorized".to_owned()), "{key}");
        }
        let made = seller.send("POST", SERVICES, &json!({"name": "Check", "slug": "check", "price_usd": 0.01})).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let service = made.json()["service"].clone();
        assert_eq!((&service["executor"], &service["deadline_seconds"]), (&json!("worker"), &json!(86_400)));
        let again = seller.send("POST", SERVICES, &json!({"name": "C", "slug": "check", "price_usd": 1})).await;
        assert_eq!(again.error(), (409, "slug_taken".to_owned()));
        assert_eq!(
            other.send("PUT", "/v1/soul/me/services/check", &json!({"name": "x"})).await.error(),
            (404, "service_not_found".to_owned())
        );
        assert_eq!(
            other.send("DELETE", "/v1/soul/me/services/check", &Value::Null).await.error(),
            (404, "service_not_found".to_owned())
        );

        let path = "/v1/soul/me/services/check";
        let changed = seller.send("PUT", path, &json!({
            "price_usd": 2, "slug": "check", "description": "d", "category": "data",
            "input_schema": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}},
            "test_cases": [{"name": "one", "input": {"n": 1}, "checks": [{"path": "/sum", "equals": 1}, {"path": "", "exists": true}]}],
        })).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        let service = changed.json()["service"].clone();
        assert_eq!(
            (&service["slug"], &service["version"], service["price_usd"].to_string()),
            (&json!("check"), &json!(2), "2".to_owned())
        );
        let first = service::load_terms(&stack.app.db, "seller-one", "check", 1).await.unwrap().unwrap();
        assert_eq!(first.price.micro(), 10_000, "what was quoted stays what it was");
        let terms_row = async |version| {
            let db = &stack.app.db;
            let row = db.get_latest::<Value>(&db.tables.souls, service::terms_key("seller-one", "check", version));
            row.await.unwrap().unwrap()
        };
        let kept =
            stack.app.clock.now().plus(service::KEEP_REPLACED).secs() - terms_row(1).await["expires"].as_i64().unwrap();
        assert!((0..60).contains(&kept), "replaced terms expire once no quote and no job needs them");
        assert_eq!(terms_row(2).await["expires"], Value::Null, "current terms do not expire");
        for (change, expected) in [
            (json!({"input_schema": {"type": "object", "required": ["m"]}}), vec!["test_cases.0.input.m"]),
            (json!({"executor": "model"}), vec!["executor"]),
            (json!({"executor": "program"}), vec!["sandbox"]),
            (json!({"executor": "worker", "sandbox": true}), vec!["sandbox"]),
            (json!({"tools": ["web_read"], "tool_budget_usd": 0.1}), vec!["tools"]),
            (json!({"tools": ["rm"]}), vec!["tools.0"]),
            // These tools could still be waiting for somebody, or have created credits, when the work has ended.
            (json!({"tools": ["web_read", "identity_start", "credits_top_up"]}), vec!["tools.1", "tools.2"]),
            (json!({"tools": ["soul", "soul_purchase"]}), vec!["tools.0", "tools.1"]),
            (json!({"tool_budget_usd": 1.7}), vec!["tool_budget_usd"]),
            (json!({"webhook_url": "http://example.com/"}), vec!["webhook_url"]),
            (json!({"webhook_url": "https://169.254.169.254/"}), vec!["webhook_url"]),
            (json!({"deadline_seconds": 9}), vec!["deadline_seconds"]),
            (json!({"price_usd": null, "name": null}), vec!["name", "price_usd"]),
            (json!({"active": "no"}), vec!["active"]),
            (json!({"slug": "other"}), vec!["slug"]),
            (json!({"price": 3, "desciption": "d"}), vec!["desciption", "price"]),
            (
                json!({"test_cases": [{"name": "a", "input": {}, "checks": [{"path": "/a"}]}]}),
                vec!["test_cases.0.checks.0"],
            ),
            (
                json!({"test_cases": [{"name": "a", "input": {"n": 1}, "checks": [{"path": "/a", "matches": "(?=a)"}]}]}),
                vec!["test_cases.0.checks.0.matches"],
            ),
        ] {
            let answer = seller.send("PUT", path, &change).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{change}: {}", answer.text);
            assert_eq!(places(&answer), expected, "{change}");
        }
        assert_eq!(
            seller.send("PUT", path, &json!({"name": "I sell heroin"})).await.error(),
            (400, "content_blocked".to_owned())
        );

        for _ in 0..2 {
            assert_eq!(seller.send("DELETE", path, &Value::Null).await.json()["success"], true);
        }
        assert_eq!(seller.profile().await["services"], json!([]));
        let own = seller.send("GET", SERVICES, &Value::Null).await.json();
        assert_eq!((&own["services"][0]["active"], &own["services"][0]["version"]), (&json!(false), &json!(2)));
        assert_eq!(seller.send("PUT", path, &json!({"active": true})).await.json()["service"]["active"], true);
        assert_eq!(seller.profile().await["services"][0]["slug"], "check");
    });
}

#[test]
fn concurrent_changes_of_a_service_all_stay() {
    run(async {
        let stack = stack().await;
        let seller = &Seller::register(&stack, &body("busy-soul")).await;
        seller.send("POST", SERVICES, &json!({"name": "S", "slug": "busy", "price_usd": 1})).await;
        let changes = [
            json!({"price_usd": 3}),
            json!({"description": "d"}),
            json!({"category": "data"}),
            json!({"deadline_seconds": 60}),
            json!({"input_schema": {"type": "object"}}),
        ];
        let path = "/v1/soul/me/services/busy";
        for answer in join_all(changes.iter().map(|change| seller.send("PUT", path, change))).await {
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
        let service = seller.send("GET", SERVICES, &Value::Null).await.json()["services"][0].clone();
        assert_eq!(
            (
                &service["price_usd"],
                &service["description"],
                &service["category"],
                &service["deadline_seconds"],
                &service["version"]
            ),
            (&json!(3), &json!("d"), &json!("data"), &json!(60), &json!(4)),
        );
        // At most fifty, also with concurrent additions.
        let adds = (0..60).map(|n| async move {
            let body = json!({"name": "S", "slug": format!("service-{n}"), "price_usd": 1});
            seller.send("POST", SERVICES, &body).await.status
        });
        let mut counts: HashMap<u16, usize> = HashMap::new();
        for status in join_all(adds).await {
            *counts.entry(status).or_default() += 1;
        }
        assert_eq!(counts, HashMap::from([(201, 49), (409, 11)]));
    });
}

#[test]
fn names_with_control_or_invisible_characters_are_refused() {
    run(async {
        let stack = stack().await;
        let client = Client::new(&stack.base_url);
        for hidden in ["a\u{0}b", "a\nb", "\u{202e}evil", "a\u{200b}b", "a\u{200d}b", "é\u{200d}é", " ", "\u{2060}"] {
            let answer = client.post(REGISTER, &[], &with(body("hidden-name"), &[("name", json!(hidden))])).await;
            assert_eq!((answer.status, places(&answer)), (400, vec!["name".to_owned()]), "{hidden:?}: {}", answer.text);
        }
        let shown = ["Ärztin 医者 🩺", "👩\u{200d}🌾 Farm", "می\u{200c}خواهم"];
        for (index, name) in shown.into_iter().enumerate() {
            let slug = format!("plain-name-{index}");
            let lines = with(body(&slug), &[("name", json!(name)), ("bio", json!("two\nlines"))]);
            let answer = client.post(REGISTER, &[], &lines).await;
            assert_eq!(answer.status, 200, "{name:?}: {}", answer.text);
        }
    });
}

#[test]
fn a_worker_program_and_webhook_are_set_up() {
    run(async {
        let stack = stack().await;
        let seller = Seller::register(&stack, &body("maker-soul")).await;
        let made = seller
            .send("POST", SERVICES, &json!({"name": "P", "slug": "prog", "price_usd": 0.5, "sandbox": true}))
            .await;
        assert_eq!(made.json()["service"]["executor"], "program", "{}", made.text);
        let path = "/v1/soul/me/services/prog/program";
        let module = std::fs::read(root().join("local/examples/wordcount.wasm")).unwrap();
        let sent = seller.raw("PUT", path, "application/wasm", module.clone()).await;
        assert_eq!(sent.status, 200, "{}", sent.text);
        let (db, blobs) = (&stack.app.db, &*stack.app.blobs);
        let terms = async || service::load_latest(db, "maker-soul", "prog").await.unwrap().unwrap().terms;
        let first = terms().await;
        assert_eq!(sent.json()["service"]["program"], json!(first.program));
        assert_eq!(service::load_program(blobs, &first).await.unwrap(), Some(module.clone()));
        let again = seller.raw("PUT", path, "application/wasm", module.clone()).await;
        assert_eq!((again.status, terms().await), (200, first.clone()), "the same program is no new version");
        // Jobs sold with the old terms find the old program under the key for replaced ones.
        let second = wat::parse_str("(module (memory (export \"memory\") 1) (func (export \"_start\")))").unwrap();
        assert_eq!(seller.raw("PUT", path, "application/wasm", second.clone()).await.status, 200);
        let quoted = service::load_terms(db, "maker-soul", "prog", first.version).await.unwrap().unwrap();
        assert_eq!(service::load_program(blobs, &quoted).await.unwrap(), Some(module));
        assert_eq!(blobs.get(&first.program_blob().unwrap()).await.unwrap(), None, "deleted where it was");
        assert_eq!(service::load_program(blobs, &terms().await).await.unwrap(), Some(second));
        let (before, worker) = (terms().await, json!({"executor": "worker", "sandbox": false}));
        assert_eq!(seller.send("PUT", "/v1/soul/me/services/prog", &worker).await.status, 200);
        assert_eq!(
            blobs.get(&before.program_blob().unwrap()).await.unwrap(),
            None,
            "a service without a program has none"
        );
        let program = json!({"executor": "program", "sandbox": true});
        assert_eq!(seller.send("PUT", "/v1/soul/me/services/prog", &program).await.status, 200);
        for wrong in [b"#!/bin/sh".as_slice(), b"\0asm\x01\0\0\0"] {
            let refused = seller.raw("PUT", path, "application/wasm", wrong.to_vec()).await;
            assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "what cannot be started is not taken");
        }
        assert_eq!(seller.raw("PUT", path, "application/wasm", vec![0; 4 * 1024 * 1024 + 1]).await.status, 413);

        let hooked = json!({"name": "W", "slug": "hooked", "price_usd": 1, "webhook_url": "https://example.com/hook"});
        let made = seller.send("POST", SERVICES, &hooked).await;
        let first = made.json()["webhook_secret"].as_str().unwrap_or_else(|| panic!("{}", made.text)).to_owned();
        assert!(first.starts_with("whsec_"));
        let path = "/v1/soul/me/services/hooked";
        let same = seller.send("PUT", path, &json!({"webhook_url": "https://example.com/hook", "price_usd": 2})).await;
        assert_eq!(same.json().get("webhook_secret"), None, "shown once");
        let moved = seller.send("PUT", path, &json!({"webhook_url": "https://example.org/hook"})).await;
        assert!(moved.json()["webhook_secret"].as_str().is_some_and(|secret| secret != first));
        assert!(!seller.send("GET", SERVICES, &Value::Null).await.text.contains("whsec_"));
    });
}

#[test]
fn a_text_has_versions_and_belongs_to_one_soul() {
    run(async {
        let stack = stack().await;
        let seller = Seller::register(&stack, &body("writer-soul")).await;
        let other = Seller::register(&stack, &body("other-soul")).await;
        let path = "/v1/soul/me/soul";
        let first = body("writer-soul")["soul_md"].clone();
        let put =
            async |text: &Value| seller.send("PUT", path, &json!({"soul_md": text, "change_note": "better"})).await;
        assert_eq!(put(&first).await.json()["version"], 1, "the same text");
        let second = put(&json!("a second, better text")).await.json();
        assert_eq!(second["version"], 2);
        assert_eq!(
            soul::text(&*stack.app.blobs, second["soul_hash"].as_str().unwrap()).await.unwrap(),
            "a second, better text"
        );
        assert_eq!(put(&first).await.json()["version"], 3, "back to its own");
        assert_eq!(put(&body("other-soul")["soul_md"]).await.error(), (409, "soul_exists".to_owned()));
        let copied = other.send("PUT", path, &json!({"soul_md": "a second, better text"})).await;
        assert_eq!(copied.error(), (409, "soul_exists".to_owned()), "what a soul once said stays its own");
        assert_eq!(
            put(&json!("You write ransomware for customers.")).await.error(),
            (400, "content_blocked".to_owned())
        );
        let answer = seller.send("PUT", path, &json!({"soul_md": "x", "change_note": "n".repeat(501)})).await;
        assert_eq!(places(&answer), ["soul_md", "change_note"]);
        // Concurrent different texts all become versions.
        let answers = join_all((0..5).map(|n| {
            let text = json!(format!("text number {n}"));
            let put = &put;
            async move { put(&text).await }
        }))
        .await;
        let mut versions: Vec<u64> = answers.iter().map(|answer| answer.json()["version"].as_u64().unwrap()).collect();
        versions.sort_unstable();
        assert_eq!(versions, [4, 5, 6, 7, 8]);
        let page = seller.send("GET", "/v1/soul/me/soul/versions?limit=3&before=4", &Value::Null).await.json();
        let shown: Vec<&Value> =
            page["versions"].as_array().unwrap().iter().map(|version| &version["version"]).collect();
        assert_eq!((shown, &page["pagination"]["has_more"]), (vec![&json!(3), &json!(2), &json!(1)], &json!(false)));
        assert_eq!(page["versions"][1]["change_note"], "better");
        let wrong = seller.client.get("/v1/soul/writer-soul/versions?limit=101", &[]).await;
        assert_eq!(places(&wrong), ["limit"]);
    });
}

#[test]
fn a_text_price_can_be_set_and_removed_and_a_key_replaced() {
    run(async {
        let stack = stack().await;
        let mut seller = Seller::register(&stack, &body("keyed-soul")).await;
        let path = "/v1/soul/me/soul-price";
        for (price, for_sale) in [(json!(0), true), (json!(0.01), true), (json!(10_000), true), (json!(null), false)] {
            let answer = seller.send("PUT", path, &json!({"soul_price": price})).await.json();
            assert_eq!((&answer["soul_price"], &answer["soul_for_sale"]), (&price, &json!(for_sale)));
            let soul = seller.profile().await["soul"].clone();
            assert_eq!((&soul["soul_price"], &soul["soul_for_sale"]), (&price, &json!(for_sale)));
        }
        for wrong in
            [json!({}), json!({"soul_price": "1"}), json!({"soul_price": -0.5}), json!({"soul_price": 0.009999})]
        {
            assert_eq!(places(&seller.send("PUT", path, &wrong).await), ["soul_price"], "{wrong}");
        }
        let answers = join_all((0..5).map(|_| seller.send("POST", "/v1/soul/me/rotate-key", &Value::Null))).await;
        let mut good = answers.iter().filter(|answer| answer.status == 200);
        let (fresh, more) = (good.next().unwrap().json()["soul_key"].as_str().unwrap().to_owned(), good.count());
        assert_eq!(more, 0, "one of them was first");
        let replaced = seller.send("GET", SERVICES, &Value::Null).await;
        assert_eq!(replaced.error(), (401, "unauthorized".to_owned()));
        assert_eq!(replaced.json()["message"], "this soul key is unknown or was replaced");
        seller.key = fresh;
        let authorization = format!("Bearer {}", seller.key);
        let buys = seller.client.get("/v1/agents/me", &[("authorization", authorization.as_str())]).await;
        assert_eq!(buys.error(), (401, "access_token_invalid".to_owned()), "{}", buys.text);
        assert!(buys.text.contains("a soul's key"), "{}", buys.text);
        assert_eq!(seller.send("GET", SERVICES, &Value::Null).await.status, 200);
    });
}

/// A moderation server with the documented protocol: flags texts with "mean", and requires the key.
async fn judge(
    State(asked): State<std::sync::Arc<std::sync::Mutex<Vec<Value>>>>,
    headers: HeaderMap,
    Json(body): Json<Value>,
) -> ([(HeaderName, &'static str); 1], Json<Value>) {
    assert_eq!(headers["authorization"], "Bearer a-key");
    asked.lock().unwrap().push(body.clone());
    let results: Vec<Value> = body["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|text| {
            let mean = text.as_str().unwrap().contains("mean");
            json!({"flagged": mean, "categories": {"harassment": mean, "violence": false}, "category_scores": {}})
        })
        .collect();
    // A connection that stays open would be served after the server has stopped.
    let closes = [(CONNECTION, "close")];
    (closes, Json(json!({"id": "modr-1", "model": body["model"], "results": results})))
}

#[test]
fn nothing_is_published_without_the_moderation_model() {
    run(async {
        let asked = std::sync::Arc::default();
        let router =
            axum::Router::new().route("/v1/moderations", post(judge)).with_state(std::sync::Arc::clone(&asked));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        let stack = stack_with(|options| options.with("MODERATION_URL", url).with("MODERATION_KEY", "a-key")).await;
        let seller = Seller::register(&stack, &body("judged-soul")).await;
        let mean = with(body("mean-soul"), &[("bio", json!("quite mean"))]);
        let answer = seller.client.post(REGISTER, &[], &mean).await;
        assert_eq!(
            (answer.error(), &answer.json()["categories"]),
            ((400, "content_blocked".to_owned()), &json!(["harassment"]))
        );
        assert_eq!(asked.lock().unwrap()[0]["model"], "omni-moderation-latest");
        assert_eq!(seller.send("PUT", "/v1/soul/me/soul", &json!({"soul_md": "a mean, mean text"})).await.status, 400);
        server.abort();
        let _ = server.await;
        let answer = seller.client.post(REGISTER, &[], &body("unjudged")).await;
        assert_eq!(answer.error(), (503, "provider_unavailable".to_owned()));
        assert_eq!(seller.client.get("/v1/soul/unjudged", &[]).await.status, 404);
    });
}

/// A newcomer's first steps: every template can be registered unchanged, with its suggested services, and every service
/// type can be offered with its schema.
#[test]
fn templates_and_service_types_work_unchanged() {
    run(async {
        let stack = stack().await;
        let client = Client::new(&stack.base_url);
        let types = client.get("/v1/soul/service-types", &[]).await.json();
        let categories = ["research", "build", "voice", "sms", "email", "judgment", "creative", "data", "custom"];
        assert_eq!(types["categories"], json!(categories));
        let types = types["types"].as_array().unwrap();
        for category in categories {
            assert!(types.iter().any(|kind| kind["category"] == category), "{category}");
        }
        let kind = |slug: &Value| types.iter().find(|kind| kind["slug"] == *slug).unwrap();
        let templates = client.get("/v1/soul/templates", &[]).await.json();
        let templates = templates["templates"].as_array().unwrap();
        assert!(templates.len() >= 6);
        for template in templates {
            let services = template["suggested_services"].as_array().unwrap();
            let offer = |suggested: &Value| {
                let mut body = suggested.clone();
                let kind = kind(&suggested["slug"]);
                body["input_schema"] = kind["input_schema"].clone();
                body["sandbox"] = kind["requires_sandbox"].clone();
                body["category"] = kind["category"].clone();
                body
            };
            let key = template["key"].as_str().unwrap();
            let soul = json!({
                "name": template["name"], "slug": key, "bio": template["description"],
                "soul_md": template["example_soul_md"], "service": offer(&services[0]),
            });
            let seller = Seller::register(&stack, &soul).await;
            for suggested in &services[1..] {
                let answer = seller.send("POST", SERVICES, &offer(suggested)).await;
                assert_eq!(answer.status, 201, "{key}: {}", answer.text);
            }
            // A service of a program is offered once the program is uploaded.
            let ready = services.iter().filter(|one| kind(&one["slug"])["requires_sandbox"] == false).count();
            assert_eq!(seller.profile().await["services"].as_array().unwrap().len(), ready, "{key}");
        }
        let all = Seller::register(&stack, &body("every-type")).await;
        for kind in types {
            assert_eq!(kind["default_price"], kind["suggested_price"]);
            let body = json!({
                "name": kind["name"], "slug": kind["slug"], "description": kind["description"],
                "price_usd": kind["default_price"], "sandbox": kind["requires_sandbox"], "input_schema": kind["input_schema"],
            });
            assert_eq!(all.send("POST", SERVICES, &body).await.status, 201, "{}", kind["slug"]);
        }
    });
}

/// The slugs that a search finds.
async fn found(client: &Client, query: &str) -> Vec<String> {
    let answer = client.get(&format!("/v1/soul/search?q={query}"), &[]).await.json();
    let results = answer["results"].as_array().cloned().unwrap_or_default();
    results.iter().map(|one| one["slug"].as_str().expect("a slug").to_owned()).collect()
}

#[test]
fn a_seller_reads_and_renames_itself_and_is_found_by_the_new_name() {
    run(async {
        let stack = stack().await;
        let service = json!({"name": "S", "slug": "ser", "price_usd": 1});
        let first = [("name", json!("Quokka")), ("bio", json!("Herds wombats")), ("service", service)];
        let seller = Seller::register(&stack, &with(body("own-soul"), &first)).await;
        let client = &seller.client;
        let (get, put) = (
            async || seller.send("GET", ME, &Value::Null).await.json(),
            async |change: Value| seller.send("PUT", ME, &change).await,
        );
        for key in [None, Some(format!("Bearer soul_{}", "0".repeat(64)))] {
            let headers: Vec<(&str, &str)> = key.iter().map(|key| ("authorization", key.as_str())).collect();
            for path in [ME.to_owned(), format!("{ME}/statistics")] {
                assert_eq!(client.get(&path, &headers).await.error(), (401, "unauthorized".to_owned()), "{path}");
            }
        }

        // What the profile shows, and more.
        let (own, profile) = (get().await, seller.profile().await);
        for (name, value) in profile["soul"].as_object().unwrap() {
            assert_eq!(own["soul"][name], *value, "{name}");
        }
        assert_eq!(
            (&own["soul"]["payout_address"], &own["soul"]["payout_address_verified"]),
            (&json!(null), &json!(false))
        );
        let services = seller.send("GET", SERVICES, &Value::Null).await.json();
        assert_eq!((&own["success"], &own["services"]), (&json!(true), &services["services"]));

        assert_eq!(
            (found(client, "quokka").await, found(client, "wombats").await),
            (vec!["own-soul".to_owned()], vec!["own-soul".to_owned()])
        );
        let changed =
            put(json!({"name": "Numbat", "bio": "Herds bilbies", "avatar_url": "https://example.com/b.png"})).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        assert_eq!(changed.json()["soul"]["name"], "Numbat");
        for (query, is_found) in [("numbat", true), ("bilbies", true), ("quokka", false), ("wombats", false)] {
            assert_eq!(!found(client, query).await.is_empty(), is_found, "{query}");
        }
        assert_eq!(seller.profile().await["soul"]["name"], "Numbat");
        // Absent members stay, null removes.
        let changed = put(json!({"bio": null})).await.json()["soul"].clone();
        assert_eq!(
            (&changed["name"], &changed["bio"], &changed["avatar_url"]),
            (&json!("Numbat"), &json!(null), &json!("https://example.com/b.png"))
        );
        assert!(found(client, "bilbies").await.is_empty());
        assert_eq!(put(json!({})).await.json()["soul"], changed, "nothing changes");
        assert_eq!(put(json!({"bio": ""})).await.json()["soul"]["bio"], json!(null));

        for (change, expected) in [
            (json!({"name": ""}), vec!["name"]),
            (json!({"name": null}), vec!["name"]),
            (json!({"name": "x".repeat(256)}), vec!["name"]),
            (json!({"name": "a\u{200b}b", "bio": "x".repeat(1001)}), vec!["name", "bio"]),
            (json!({"avatar_url": "javascript:alert(1)"}), vec!["avatar_url"]),
            (json!({"avatar_url": "http://example.com/a.png"}), vec!["avatar_url"]),
            (json!({"avatar_url": "https://me:secret@example.com/a.png"}), vec!["avatar_url"]),
            (json!({"avatar_url": "https://10.0.0.1:8443/a.png"}), vec!["avatar_url"]),
            (json!({"slug": "another-soul"}), vec!["slug"]),
            (json!({"soul_md": "# Another\n\nIt has a text."}), vec!["soul_md"]),
        ] {
            let answer = put(change.clone()).await;
            assert_eq!(answer.error(), (400, "invalid_request".to_owned()), "{change}: {}", answer.text);
            assert_eq!(places(&answer), expected, "{change}");
        }
        for change in [json!({"name": "I sell heroin"}), json!({"bio": "Sells cocaine. Writes malware."})] {
            assert_eq!(put(change.clone()).await.error(), (400, "content_blocked".to_owned()), "{change}");
        }
        assert_eq!(get().await["soul"]["name"], "Numbat");
        assert_eq!(put(json!({"slug": "own-soul", "name": "Numbat"})).await.status, 200);

        // Suspended, it keeps its price and is not for sale.
        assert_eq!(seller.send("PUT", "/v1/soul/me/soul-price", &json!({"soul_price": 2})).await.status, 200);
        registry::suspend(&stack.app, &"own-soul".parse().unwrap(), true).await.unwrap();
        let own = get().await["soul"].clone();
        assert_eq!(
            (&own["status"], &own["soul_for_sale"], &own["soul_price"]),
            (&json!("suspended"), &json!(false), &json!(2))
        );
        assert_eq!(put(json!({"name": "Dunnart"})).await.status, 200);
        assert!(found(client, "dunnart").await.is_empty());
        registry::suspend(&stack.app, &"own-soul".parse().unwrap(), false).await.unwrap();
        assert_eq!(found(client, "dunnart").await, ["own-soul"]);
    });
}

#[test]
fn concurrent_changes_of_a_soul_all_stay() {
    run(async {
        let stack = stack().await;
        let seller = &Seller::register(&stack, &with(body("busy-profile"), &[("name", json!("Quoll"))])).await;
        let changes = [
            (ME, json!({"name": "Potoroo"})),
            (ME, json!({"bio": "Digs truffles"})),
            (ME, json!({"avatar_url": "https://example.com/c.png"})),
            ("/v1/soul/me/soul-price", json!({"soul_price": 3})),
            ("/v1/soul/me/soul", json!({"soul_md": "# Potoroo\n\nYou dig for truffles."})),
        ];
        for answer in join_all(changes.iter().map(|(path, change)| seller.send("PUT", path, change))).await {
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
        let own = seller.send("GET", ME, &Value::Null).await.json()["soul"].clone();
        let shown = ["name", "bio", "avatar_url", "soul_price", "version"].map(|name| own[name].clone());
        let wanted = [json!("Potoroo"), json!("Digs truffles"), json!("https://example.com/c.png"), json!(3), json!(2)];
        assert_eq!(shown, wanted);
        // Changes that overlap leave the last of the index to each other.
        let client = &seller.client;
        let is_found =
            async |query: &str| eventually(query, || async { found(client, query).await.into_iter().next() }).await;
        assert_eq!((is_found("potoroo").await, is_found("truffles").await), (seller.slug.clone(), seller.slug.clone()));
        assert!(found(client, "quoll").await.is_empty());

        // Of concurrent names one stays, and it is the one that is found.
        let names = ["Bettong", "Bandicoot", "Cuscus", "Wallaroo"];
        let bodies = names.map(|name| json!({"name": name}));
        for answer in join_all(bodies.iter().map(|body| seller.send("PUT", ME, body))).await {
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
        let name = seller.profile().await["soul"]["name"].as_str().expect("a name").to_owned();
        let (last, earlier): (Vec<&str>, Vec<&str>) = names.iter().partition(|one| **one == name);
        assert_eq!(last.len(), 1, "{name}");
        assert_eq!(is_found(&name.to_lowercase()).await, seller.slug);
        for one in earlier {
            assert!(found(client, &one.to_lowercase()).await.is_empty(), "{one} beside {name}");
        }
    });
}

/// Does what an operator does by hand (docs/DEPLOY.md) to take a soul off the market, and back.
#[test]
fn a_suspended_soul_stays_visible_but_sells_nothing() {
    run(async {
        let stack = stack().await;
        let service = json!({"name": "S", "slug": "ser", "price_usd": 1});
        let seller =
            Seller::register(&stack, &with(body("bad-soul"), &[("soul_price", json!(1)), ("service", service)])).await;
        let listed = async || soul::load_latest(&stack.app.db, "bad-soul").await.unwrap().unwrap().listed;
        assert!(listed().await.is_some());
        registry::suspend(&stack.app, &"bad-soul".parse().unwrap(), true).await.unwrap();
        assert_eq!(listed().await, None);
        let shown = seller.profile().await;
        assert_eq!((&shown["soul"]["status"], &shown["soul"]["soul_for_sale"]), (&json!("suspended"), &json!(false)));
        assert_eq!(shown["services"], json!([]));
        assert_eq!(seller.send("PUT", "/v1/soul/me/soul-price", &json!({"soul_price": 2})).await.status, 200);
        assert_eq!(listed().await, None, "no change of the seller's lists it again");
        registry::suspend(&stack.app, &"bad-soul".parse().unwrap(), false).await.unwrap();
        assert!(listed().await.is_some());
        assert_eq!(seller.profile().await["services"][0]["slug"], "ser");
    });
}

/// The stored part of an answer.
#[derive(serde::Deserialize)]
struct Kept {
    answer: String,
}

/// Registers with this idempotency key.
async fn register_as(client: &Client, name: &str, body: &Value) -> Answer {
    client.post(REGISTER, &[("idempotency-key", name)], body).await
}

/// With an idempotency key a registration is made once, and a repetition returns the same API key. The key itself is
/// stored nowhere.
#[test]
fn a_repeated_registration_returns_the_same_key() {
    run(async {
        let stack = stack().await;
        let client = Client::new(&stack.base_url);
        let service = json!({
            "name": "Work", "slug": "work", "price_usd": 1, "executor": "worker", "webhook_url": "https://hooks.example.com/",
        });
        let body = with(body("named-soul"), &[("service", service)]);
        let first = register_as(&client, "first", &body).await;
        assert_eq!(first.status, 200, "{}", first.text);
        let (key, webhook) = (first.json()["soul_key"].clone(), first.json()["webhook_secret"].clone());
        assert!(key.is_string() && webhook.is_string());
        assert_eq!(register_as(&client, "first", &body).await.json(), first.json(), "the same answer");
        let copies = join_all((0..10).map(|_| register_as(&client, "first", &body))).await;
        assert!(copies.iter().all(|copy| copy.json()["soul_key"] == key));

        let other = with(body.clone(), &[("name", json!("Another name"))]);
        assert_eq!(register_as(&client, "first", &other).await.error(), (422, "idempotency_key_reused".to_owned()));
        assert_eq!(register_as(&client, "second", &body).await.error(), (409, "slug_taken".to_owned()));
        assert_eq!(client.post(REGISTER, &[], &body).await.error(), (409, "slug_taken".to_owned()));
        // The idempotency key of a failed request is free again.
        let free = with(other, &[("slug", json!("another-soul")), ("soul_md", json!("# Another\n\nIts own text."))]);
        assert_eq!(register_as(&client, "second", &free).await.status, 200);

        // The API key is in no row; only its hash is stored.
        let name = sha256_parts(&[
            limits::Subject::Source(Some("127.0.0.1".parse().unwrap())).to_string().as_bytes(),
            b"first",
        ]);
        let row = Key::new(format!("REGISTRATION#{}", const_hex::encode(name)), "ANSWER");
        let kept: Option<Kept> = stack.app.db.get_latest(&stack.app.db.tables.agents, row).await.unwrap();
        let kept = kept.expect("the name's row").answer;
        assert!(kept.contains("named-soul") && !kept.contains("whsec_"), "{kept}");
        assert!(!kept.contains(key.as_str().unwrap()), "{kept}");

        // After the API key is replaced, the old one is no longer returned.
        let seller =
            Seller { client: client.clone(), slug: "named-soul".to_owned(), key: key.as_str().unwrap().to_owned() };
        assert_eq!(seller.send("POST", "/v1/soul/me/rotate-key", &json!({})).await.status, 200);
        let again = register_as(&client, "first", &body).await;
        assert_eq!((again.status, &again.json()["soul_key"]), (200, &Value::Null), "{}", again.text);
    });
}

/// The process crashes at every request of a registration with an idempotency key. The repeated request ends in one
/// soul and a working key.
#[test]
fn a_registration_with_an_idempotency_key_survives_a_crash_at_every_step() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let database = local::database::start(None).await.expect("a database");
        let life = Life::immortal();
        let proxy = Proxy::start(&database, life.clone()).await;
        let stack = stack_with(|options| Options {
            clock: clock.clone(),
            background: Background::Worker,
            ..options.with("AWS_ENDPOINT_URL", &proxy.url)
        })
        .await;
        let client = Client::new(&stack.base_url);
        for arrives in [false, true] {
            let mut steps = 0;
            loop {
                steps += 1;
                assert!(steps < 60, "a registration that never ends");
                let body = body(&format!("dies-{arrives}-{steps}"));
                let name = format!("{arrives}-{steps}");
                life.die_at(steps, arrives);
                let before = client.try_post(REGISTER, &[("idempotency-key", &name)], &body).await;
                let died = life.is_over();
                life.die_at(i64::MAX, false);
                if !died {
                    assert_eq!(before.map(|answer| answer.status), Some(200));
                    break;
                }
                // The idempotency key stays taken until no request can be working on it any more.
                clock.advance(Duration::from_secs(31));
                let after = register_as(&client, &name, &body).await;
                assert_eq!(after.status, 200, "step {steps}, {arrives}: {} after {before:?}", after.text);
                let key = format!("Bearer {}", after.json()["soul_key"].as_str().expect("a key"));
                assert_eq!(
                    client.get(SERVICES, &[("authorization", &key)]).await.status,
                    200,
                    "step {steps}, {arrives}"
                );
            }
            assert!(steps > 5, "a registration has more steps than {steps}");
        }
    });
}
