//! The HTTP surface: every path answers JSON, the route table matches the routers, schemas match validation.

use api::routes;
use base::input;
use catalog::CATALOG;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tools::spec::{Answer, MARKET, TOP_UP};

use crate::support::{Payer, run, stack};

#[test]
fn unknown_routes_and_methods_answer_in_json() {
    run(async {
        let stack = stack().await;
        let client = Payer::with(&stack, 0).await.client;
        for path in [
            "/nothing",
            "/v1",
            "/v1/tools",
            "/v1/requests/",
            "/v1/requests/a/b",
            "//",
            "/v1/%2e%2e/x",
            "/.well-known/nothing",
        ] {
            let answer = client.get(path, &[]).await;
            assert_eq!(answer.error(), (404, "not_found".to_owned()), "{path}");
        }
        for (method, path, allow) in [
            ("GET", "/v1/tools/web-read", "OPTIONS, POST"),
            ("DELETE", "/v1/tools/lookup/vin", "OPTIONS, POST"),
            ("POST", "/health", "GET, HEAD, OPTIONS"),
            ("POST", "/v1/requests", "GET, HEAD, OPTIONS"),
            ("PUT", "/v1/requests/abc", "GET, HEAD, OPTIONS"),
            ("PATCH", "/v1/payments/abc", "GET, HEAD, OPTIONS"),
            ("PATCH", "/v1/agents/me/budgets", "GET, HEAD, OPTIONS, PUT"),
            ("TRACE", "/v1/stats", "GET, HEAD, OPTIONS"),
        ] {
            let answer = client.send(method, path, &[], "").await.unwrap();
            assert_eq!(answer.error(), (405, "method_not_allowed".to_owned()), "{method} {path}");
            assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
        }
    });
}

/// `HEAD` returns what `GET` would, for every group. `OPTIONS` returns the allowed methods. Pages of any origin may use
/// both, except for the pages on which people decide.
#[test]
fn head_matches_get_and_options_serves_cors() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        let client = &payer.client;
        for path in [
            "/health",
            "/openapi.json",
            "/v1/soul",
            "/v1/soul/ranking",
            "/v1/soul/nobody",
            "/.well-known/acp/manifest.json",
        ] {
            let (got, head) = (client.get(path, &[]).await, client.send("HEAD", path, &[], "").await.unwrap());
            let said = |name: &str| (got.header(name).map(str::to_owned), head.header(name).map(str::to_owned));
            assert_eq!((got.status, ""), (head.status, head.text.as_str()), "{path}");
            for name in ["content-type", "cache-control", "etag"] {
                let (got, head) = said(name);
                assert_eq!(got, head, "{name} of {path}");
            }
        }
        let head = client.send("HEAD", "/v1/tools/web-read", &[], "").await.unwrap();
        assert_eq!((head.status, head.header("allow")), (405, Some("OPTIONS, POST")), "where there is no GET");
        let proofs = [payer.proof("read"), payer.proof("read")];
        for (method, proof) in ["GET", "HEAD"].into_iter().zip(&proofs) {
            let answer = client.send(method, "/v1/agents/me", &[("x-agent-proof", proof)], "").await.unwrap();
            assert_eq!((answer.status, answer.text.is_empty()), (200, method == "HEAD"), "{method}");
        }

        let asks = [("origin", "https://a.example"), ("access-control-request-method", "POST")];
        for (path, takes) in [
            ("/v1/tools/web-read", "OPTIONS, POST"),
            ("/v1/agents/me/budgets", "GET, HEAD, OPTIONS, PUT"),
            ("/llms.txt", "GET, HEAD, OPTIONS"),
            ("/acp/checkout_sessions", "OPTIONS, POST"),
            ("/mcp", "OPTIONS, POST"),
        ] {
            let told = client.send("OPTIONS", path, &asks, "").await.unwrap();
            assert_eq!((told.status, told.text.as_str(), told.header("allow")), (204, "", Some(takes)), "{path}");
            let cors =
                ["origin", "methods", "headers"].map(|name| told.header(&format!("access-control-allow-{name}")));
            assert_eq!(cors, [Some("*"), Some(takes), Some("*, authorization")], "{path}");
            assert_eq!(told.header("access-control-allow-credentials"), None);
        }
        let unpaid = client.post("/v1/tools/web-read", &asks[..1], &json!({"url": "https://example.com/"})).await;
        assert_eq!((unpaid.status, unpaid.header("access-control-allow-origin")), (402, Some("*")));
        assert_eq!(unpaid.header("access-control-expose-headers"), Some("*"), "the terms are in a header");
        let nothing = client.send("OPTIONS", "/nothing", &asks, "").await.unwrap();
        assert_eq!(nothing.error(), (404, "not_found".to_owned()));
        for page in ["/approve/x", "/identity/x"] {
            for method in ["GET", "OPTIONS"] {
                let answer = client.send(method, page, &asks[..1], "").await.unwrap();
                assert_eq!(answer.header("access-control-allow-origin"), None, "{method} {page}");
            }
        }
    });
}

/// Each listed route is handled by a router of its group and by no other group's.
#[test]
fn the_route_table_matches_the_routers() {
    run(async {
        use tower::ServiceExt;
        let stack = stack().await;
        let groups = &stack.groups;
        let mut listed: Vec<&str> = routes::all().map(|route| route.group).collect();
        listed.dedup();
        for group in listed {
            assert!(groups.contains_key(group), "{group}");
        }
        for route in routes::all() {
            let path = route
                .path
                .replace("{id}", "x")
                .replace("{reference}", "x")
                .replace("{token}", "x")
                .replace("{slug}", "x")
                .replace("{service}", "x")
                .replace("{domain}", "x")
                .replace("{emailId}", "x")
                .replace("{page}", "paying.md")
                .replace("{document}", "agora-receipts.json");
            for (group, router) in groups.iter() {
                let request =
                    http::Request::builder().method(route.method).uri(&path).body(axum::body::Body::empty()).unwrap();
                let answer = router.clone().oneshot(request).await.unwrap();
                let taken = answer.extensions().get::<routes::Unrouted>().is_none();
                assert_eq!(
                    taken,
                    *group == route.group,
                    "{} {} by {group}: {}",
                    route.method,
                    route.path,
                    answer.status()
                );
            }
        }
    });
}

/// Every free route that changes something refuses `X-Dry-Run` by the header's name, before any other check.
#[test]
fn a_dry_run_of_a_free_change_is_refused() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        let sold = CATALOG.iter().chain(MARKET).chain([&TOP_UP]);
        let sold: Vec<&str> = sold.flat_map(|tool| tool.paths.iter().copied()).collect();
        let changes = |route: &routes::Route| route.method != "GET" && !sold.contains(&route.path);
        for route in routes::all().filter(changes) {
            for given in ["true", "1", "yes please"] {
                let mut path = route.path.to_owned();
                for name in ["{id}", "{token}", "{slug}", "{service}", "{domain}", "{path+}"] {
                    path = path.replace(name, "xxx");
                }
                let answer = payer.client.send(route.method, &path, &[("x-dry-run", given)], "{}").await.unwrap();
                if path.starts_with("/acp/") {
                    // ACP has its own error format.
                    let body = answer.json();
                    let refused = (answer.status, &body["code"], &body["param"]);
                    assert_eq!(refused, (400, &json!("invalid_request"), &json!("$['X-Dry-Run']")), "{path} {given}");
                    continue;
                }
                let refused = (answer.error(), answer.json()["details"][0]["path"].clone());
                let wanted = ((400, "invalid_request".to_owned()), json!("X-Dry-Run"));
                assert_eq!(refused, wanted, "{} {} {given}", route.method, route.path);
            }
        }
        let budgets = "/v1/agents/me/budgets";
        for (given, daily) in [("true", Value::Null), ("false", json!(5))] {
            let proof = payer.proof("write");
            let headers = [("x-dry-run", given), ("x-agent-proof", &proof)];
            payer.client.send("PUT", budgets, &headers, r#"{"daily": 5}"#).await.unwrap();
            let proof = payer.proof("read");
            let shown = payer.client.get(budgets, &[("x-dry-run", "true"), ("x-agent-proof", &proof)]).await;
            assert_eq!((shown.status, &shown.json()["data"]["daily_usdc"]), (200, &daily));
        }
    });
}

#[test]
fn index_health_and_statistics_describe_the_service() {
    run(async {
        let stack = stack().await;
        let client = Payer::with(&stack, 0).await.client;
        let index = client.get("/", &[]).await.json();
        let tools: Vec<&str> =
            index["tools"].as_array().unwrap().iter().filter_map(|tool| tool["tool"].as_str()).collect();
        let sold: Vec<&str> = CATALOG.iter().map(|tool| tool.name).collect();
        assert_eq!(tools, sold);
        let health = client.get("/health", &[]).await.json();
        assert_eq!((&health["status"], &health["service"]), (&json!("ok"), &json!("Agora")));
        let stats = client.get("/v1/stats", &[]).await.json();
        for name in ["actions_executed", "transaction_volume_cents", "active_agents", "success_rate_bps"] {
            assert!(stats[name].is_u64(), "{name}");
        }
    });
}

/// A direct tool runs in the function that sells it. Without a runner there it would be paid and then fail.
#[test]
fn every_direct_tool_has_a_runner_in_its_selling_function() {
    for tool in CATALOG.iter().filter(|tool| tool.answer == Answer::Direct) {
        let runners: &[&tools::Runner] = match tool.group {
            knowledge::GROUP => &knowledge::RUNNERS,
            messaging::GROUP => messaging::RUNNERS,
            other => panic!("{}: say here which runners the function {other} has", tool.name),
        };
        assert!(runners.iter().any(|runner| runner.spec.name == tool.name), "{}", tool.name);
    }
    let queued = CATALOG.iter().filter(|tool| tool.answer == Answer::Queued);
    for tool in queued.chain([&TOP_UP]) {
        assert!(worker::RUNNERS.iter().any(|runner| runner.spec.name == tool.name), "{}", tool.name);
    }
}

/// A tool's schema and its validation accept the same input, according to an independent validator.
#[test]
fn schemas_match_validation() {
    let values = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (1970i64..2110).prop_map(Value::from),
        (1970i64..2110).prop_map(|year| json!(year as f64)),
        any::<f64>().prop_filter("JSON has no infinities", |number| number.is_finite()).prop_map(Value::from),
        "[0-9A-HJ-NPR-Z]{17}".prop_map(Value::from),
        "[ -~]{0,20}".prop_map(Value::from),
        "\\PC{15,19}".prop_map(Value::from),
        "(http|https|ftp|file)://[a-z.]{1,12}/[a-z]{0,5}".prop_map(Value::from),
        prop::collection::vec(any::<u8>().prop_map(Value::from), 0..3).prop_map(Value::from),
    ];
    let bodies = prop::collection::btree_map(prop_oneof!["vin", "model_year", "url", "other"], values, 0..4);
    let mut runner = TestRunner::new(Config { cases: 3_000, failure_persistence: None, ..Config::default() });
    for tool in CATALOG.iter() {
        let validator =
            jsonschema::options().should_validate_formats(true).build(&tool.input_schema()).expect("a schema");
        assert!(validator.is_valid(&tool.example()), "{}", tool.name);
        let checked = runner.run(&bodies, |body| {
            let body = json!(body);
            let ours = input::validate(tool.input, body.as_object().unwrap()).is_ok();
            prop_assert_eq!(ours, validator.is_valid(&body), "{}: {}", tool.name, body);
            Ok(())
        });
        checked.unwrap();
    }
}
