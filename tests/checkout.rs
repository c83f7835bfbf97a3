//! Checkout sessions of agent platforms over real HTTP: from creation to order on both path families, every documented
//! error, idempotency keys, ACP's own schemas and examples, and malformed bodies.

use std::time::Duration;

use base::clock::Clock;
use base::digest;
use base::money::Usdc;
use http::StatusCode;
use ledger::account;
use local::{Options, Stack};
use serde_json::{Value, json};

use crate::souls_market::Shop;
use crate::support::payer::{header, v2};
use crate::support::platform::{TOKEN, asked, at, paid_with, payment, published, schema, validate};
use crate::support::receiver::Receiver;
use crate::support::{Client, Payer, Platform, eventually, run, stack, stack_with};

const CREDITS: &str = "agora-credits";

/// A service for half a dollar, done by a seller's worker.
async fn service(stack: &Stack) -> String {
    let slug = format!("shop-{}", &evm::hex0x(&digest::random::<4>())[2..]);
    Shop::open(stack, &slug).await;
    format!("agora-soul-{slug}-summary")
}

#[test]
fn a_checkout_buys_a_service_and_shows_its_progress() {
    run(async {
        let stack = stack().await;
        let (platform, payer) = (Platform::acp(&stack), Payer::new(&stack).await);
        let item = service(&stack).await;
        let session = platform.open(&item, json!({"text": "some words"})).await;
        assert_eq!((&session["status"], &session["currency"]), (&json!("ready_for_payment"), &json!("usd")));
        let total = session["totals"].as_array().unwrap().iter().find(|total| total["type"] == "total").unwrap();
        assert_eq!(total["amount"], 50);
        assert_eq!(session["metadata"]["total_usdc"], "0.500000");
        assert_eq!(session["metadata"]["status"], "open");
        assert_eq!(session["metadata"]["line_items"][0]["unit_price_usdc"], "0.500000");

        let answer = platform.complete(&session, &payment(&session, &payer)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        platform.check("CheckoutSessionWithOrder", &answer);
        let done = answer.json();
        assert_eq!((&done["status"], &done["metadata"]["status"]), (&json!("completed"), &json!("completed")));
        assert_eq!(done["order"]["checkout_session_id"], session["id"]);
        assert_eq!(payer.balance(&stack).await, 500_000);

        // The job belongs to the payer, and the platform may read it with its own token.
        let request_id = done["metadata"]["request_id"].as_str().unwrap();
        let path = done["order"]["permalink_url"].as_str().unwrap().strip_prefix(&stack.base_url).unwrap().to_owned();
        assert_eq!(path, format!("/v1/requests/{request_id}"));
        let bearer = format!("Bearer {TOKEN}");
        let job = platform.send().get(&path, &[("authorization", &bearer)]).await;
        assert_eq!((job.status, &job.json()["tool"]), (200, &json!("soul")), "{}", job.text);
        assert_eq!(payer.get(&path).await.status, 200);
        // The platform cannot read other jobs.
        let other = payer.buy("/v1/credits/top-up", &json!({"amount": "0.10"})).await.json();
        let other = format!("/v1/requests/{}", other["data"]["request_id"].as_str().unwrap());
        assert_eq!(platform.send().get(&other, &[("authorization", &bearer)]).await.status, 404);

        // A completed session stays completed and cannot be paid again.
        let again = platform.complete(&session, &payment(&session, &payer)).await;
        assert_eq!((again.status, &again.json()["code"]), (400, &json!("invalid_state")), "{}", again.text);
        validate("Error", &again.json());
        let cancel = platform.post(&at(&session, "/cancel"), &json!({})).await;
        assert_eq!((cancel.status, cancel.header("allow")), (405, Some("POST")));
        validate("Error", &cancel.json());
        assert_eq!(platform.read(&session).await["status"], "completed");
    });
}

#[test]
fn checkout_sells_credits_and_texts_for_credits() {
    run(async {
        let stack = stack().await;
        let (platform, payer) = (Platform::acp(&stack), Payer::with(&stack, 5_000_000).await);
        // ACP 2026-01-30 expresses a quantity by repeating the item.
        let body = json!({
            "line_items": [{"id": CREDITS}, {"id": CREDITS}, {"id": CREDITS}], "currency": "usd", "capabilities": {},
        });
        let session = platform.post("", &body).await.json();
        assert_eq!(session["line_items"][0]["quantity"], 3);
        assert_eq!(
            session["capabilities"]["payment"]["handlers"].as_array().unwrap().len(),
            1,
            "no credits for credits"
        );
        let done = platform.complete(&session, &payment(&session, &payer)).await;
        platform.check("CheckoutSessionWithOrder", &done);
        assert_eq!((done.status, &done.json()["order"]["status"]), (200, &json!("delivered")), "{}", done.text);
        let credits = || async { account::load(&stack.app.db, payer.agent()).await.unwrap().credits };
        assert_eq!(credits().await, Usdc::from_micro(3_000_000));

        let slug = service(&stack).await.replace("agora-soul-", "").replace("-summary", "");
        let session = platform.open(&format!("agora-text-{slug}"), json!({})).await;
        let token = payer.token(&stack).await.replace("Bearer ", "");
        let done = platform.complete(&session, &paid_with("credits", &token)).await;
        platform.check("CheckoutSessionWithOrder", &done);
        assert_eq!(done.json()["status"], "completed", "{}", done.text);
        assert_eq!(credits().await, Usdc::from_micro(1_000_000));
        // A second one cannot be paid and is refused with a reason. Nothing is charged.
        let session = platform.open(&format!("agora-text-{slug}"), json!({})).await;
        let declined = platform.complete(&session, &paid_with("credits", &token)).await;
        platform.check("CheckoutSession", &declined);
        assert_eq!(declined.json()["status"], "ready_for_payment", "{}", declined.text);
        assert_eq!(declined.json()["messages"][0]["code"], "payment_declined");
        assert_eq!(credits().await, Usdc::from_micro(1_000_000));
        // Credits cannot be paid with credits.
        let session = platform.open(CREDITS, json!({})).await;
        let declined = platform.complete(&session, &paid_with("credits", &token)).await;
        assert_eq!(declined.json()["status"], "ready_for_payment", "{}", declined.text);
        assert_eq!(credits().await, Usdc::from_micro(1_000_000));
    });
}

#[test]
fn a_session_stays_payable_after_a_declined_payment() {
    run(async {
        let stack = stack().await;
        let (poor, rich) = (Payer::with(&stack, 0).await, Payer::with(&stack, 2_000_000).await);
        for platform in [Platform::acp(&stack), Platform::simple(&stack)] {
            let session = platform.open(CREDITS, json!({})).await;
            let answer = platform.complete(&session, &payment(&session, &poor)).await;
            if answer.status == 402 {
                assert_eq!(answer.error(), (402, "payment_failed".to_owned()));
            } else {
                assert_eq!(answer.status, 200, "{}", answer.text);
                platform.check("CheckoutSession", &answer);
                assert_eq!(answer.json()["messages"][0]["code"], "payment_declined", "{}", answer.text);
            }
            assert_eq!(platform.read(&session).await["status"], "ready_for_payment");
            // Signed for too little, signed for another session's amount, and no payment at all.
            let accepts = asked(&session);
            let less = header(&v2(&rich.authorize(999_999), &accepts));
            let declined = platform.complete(&session, &paid_with("x402", &less)).await;
            assert!(matches!(declined.status, 200 | 402), "{}", declined.text);
            for garbage in ["garbage!", "e30=", "\u{e9}", "agent_00", "Bearer x"] {
                let answer = platform.complete(&session, &paid_with("x402", garbage)).await;
                assert!(matches!(answer.status, 400 | 402), "{garbage}: {} {}", answer.status, answer.text);
            }
            let answer = platform.complete(&session, &paid_with("x402", &rich.nothing())).await;
            assert_eq!(answer.status, 400, "{}", answer.text);
            let good = platform.complete(&session, &payment(&session, &rich)).await;
            assert_eq!((good.status, &good.json()["status"]), (200, &json!("completed")), "{}", good.text);
        }
        assert_eq!(rich.balance(&stack).await, 0, "two sessions of a dollar");
    });
}

#[test]
fn both_older_request_forms_work_on_both_path_families() {
    run(async {
        let stack = stack().await;
        let item = service(&stack).await;
        let payer = Payer::with(&stack, 5_000_000).await;
        for platform in [Platform::acp(&stack), Platform::simple(&stack)] {
            let forms = [
                json!({"line_items": [{"item": {"id": item, "metadata": {"text": "words"}}}],
                       "buyer": {"email": "a@example.com", "name": "A"}, "idempotency_key": "in the body"}),
                json!({"line_items": [{"product_id": item, "quantity": 1, "unit_price_usdc": "0.01"}],
                       "buyer": {"agent_id": "x", "email": "a@example.com", "wallet": "0x1"},
                       "metadata": {"input": {"text": "words"}, "trip": 7}}),
            ];
            for form in forms {
                let made = platform.post("", &form).await;
                assert_eq!(made.status, 201, "{}", made.text);
                platform.check("CheckoutSession", &made);
                let session = made.json();
                assert_eq!(session["status"], "ready_for_payment", "{}", made.text);
                let token = header(&v2(&payer.authorize(500_000), &asked(&session)));
                let done = platform.complete(&session, &json!({"payment_token": token})).await;
                assert_eq!((done.status, &done.json()["status"]), (200, &json!("completed")), "{}", done.text);
                assert!(done.json()["order"]["id"].is_string());
            }
        }
        let session = Platform::simple(&stack).open(&item, json!({"text": "words"})).await;
        let members: Vec<&str> = session.as_object().unwrap().keys().map(String::as_str).collect();
        for member in [
            "id",
            "status",
            "acp_status",
            "line_items",
            "total_usdc",
            "buyer",
            "fulfillment",
            "payment_handlers",
            "created_at",
            "expires_at",
        ] {
            assert!(members.contains(&member), "{member} in {members:?}");
        }
        assert_eq!((&session["acp_status"], &session["total_usdc"]), (&json!("open"), &json!("0.500000")));
        let line = &session["line_items"][0];
        assert_eq!((&line["item"]["id"], &line["product_id"]), (&json!(item), &json!(item)));
        assert_eq!((&line["quantity"], &line["unit_price_usdc"]), (&json!(1), &json!("0.500000")));
    });
}

#[test]
fn sessions_with_invalid_items_or_input_are_not_payable() {
    run(async {
        let stack = stack().await;
        let platform = Platform::acp(&stack);
        let item = service(&stack).await;
        let messages = |session: &Value| -> Vec<(String, String)> {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let all = session["messages"].as_array().unwrap().iter();
            all.map(|message| (text(&message["code"]), text(&message["param"]))).collect()
        };
        for (item, input, code, param) in [
            (item.as_str(), json!({}), "missing", "$.metadata.input.text"),
            (&item, json!({"text": 7}), "invalid", "$.metadata.input.text"),
            (&item, json!({"text": "x".repeat(101)}), "invalid", "$.metadata.input.text"),
            ("item_123", json!({}), "not_found", "$.line_items[0]"),
            ("agora-soul-nobody-nothing", json!({}), "not_found", "$.line_items[0]"),
            ("agora-vin-decode", json!({"vin": "1HGCM82633A004352"}), "not_found", "$.line_items[0]"),
        ] {
            let session = platform.open(item, input).await;
            assert_eq!(session["status"], "not_ready_for_payment", "{session}");
            let said = messages(&session);
            assert!(said.iter().any(|(said, at)| said == code && at.starts_with(param)), "{code} {param} in {said:?}");
            assert_eq!(session["capabilities"]["payment"]["handlers"][0]["config"]["accepts"], json!([]));
            let payer = Payer::with(&stack, 0).await;
            let token = header(&v2(&payer.authorize(1), &json!({})));
            let paid = platform.complete(&session, &paid_with("x402", &token)).await;
            assert_eq!((paid.status, &paid.json()["code"]), (400, &json!("invalid_state")), "{}", paid.text);
        }
        // An update makes the session payable. The price is ours, whatever the request says.
        let session = platform.open("item_123", json!({})).await;
        let update = json!({"line_items": [{"id": item, "unit_amount": 1, "metadata": {"text": "some words"}}]});
        let answer = platform.post(&at(&session, ""), &update).await;
        platform.check("CheckoutSession", &answer);
        let updated = answer.json();
        assert_eq!((answer.status, &updated["status"]), (200, &json!("ready_for_payment")), "{}", answer.text);
        assert_eq!(messages(&updated), [("price_change".to_owned(), "$.line_items[0].unit_amount".to_owned())]);
        assert_eq!(asked(&updated)["amount"], "500000");
        let chosen = |option: &str| json!({"selected_fulfillment_options": [{"type": "digital", "option_id": option, "item_ids": [item]}]});
        assert_eq!(platform.post(&at(&session, ""), &chosen("digital")).await.status, 200);
        let wrong = platform.post(&at(&session, ""), &chosen("express")).await;
        assert_eq!(wrong.json()["param"], "$.selected_fulfillment_options[0].option_id", "{}", wrong.text);
        // A payment signed for the old version buys nothing, because the amount differs.
        let platform_total = asked(&updated)["amount"].as_str().unwrap().to_owned();
        let two = json!({"line_items": [{"id": CREDITS}, {"id": CREDITS}]});
        let changed = platform.post(&at(&session, ""), &two).await.json();
        assert_ne!(asked(&changed)["amount"], platform_total);
        let rich = Payer::with(&stack, 5_000_000).await;
        let stale = platform.complete(&session, &payment(&updated, &rich)).await;
        assert_eq!(stale.json()["status"], "ready_for_payment", "{}", stale.text);
        assert_eq!(rich.balance(&stack).await, 5_000_000);
        // A session can be cancelled only once.
        let canceled =
            platform.post(&at(&session, "/cancel"), &json!({"intent_trace": {"reason_code": "other"}})).await;
        platform.check("CheckoutSession", &canceled);
        assert_eq!((canceled.status, &canceled.json()["status"]), (200, &json!("canceled")), "{}", canceled.text);
        let paid = platform.complete(&session, &payment(&changed, &rich)).await;
        assert_eq!((paid.status, &paid.json()["code"]), (400, &json!("invalid_state")));
        let again = platform.post(&at(&session, "/cancel"), &json!({})).await;
        assert_eq!((again.status, &again.json()["type"]), (405, &json!("invalid_request")));
        assert_eq!(platform.post(&at(&session, ""), &chosen("digital")).await.status, 400);
        assert_eq!(rich.balance(&stack).await, 5_000_000);
    });
}

#[test]
fn sessions_expire_after_thirty_minutes() {
    run(async {
        for (code, platform) in [("code", Platform::acp as fn(&Stack) -> Platform), ("error", Platform::simple)] {
            let clock = Clock::pinned(Clock::system().now());
            let stack = stack_with(|options| Options { clock: clock.clone(), ..options }).await;
            let (platform, payer) = (platform(&stack), Payer::with(&stack, 5_000_000).await);
            let session = platform.open(CREDITS, json!({})).await;
            let in_time = platform.open(CREDITS, json!({})).await;
            clock.advance(Duration::from_secs(30 * 60 - 1));
            let done = platform.complete(&in_time, &payment(&in_time, &payer)).await;
            assert_eq!(done.json()["status"], "completed", "{}", done.text);
            clock.advance(Duration::from_secs(1));
            let late = platform.complete(&session, &payment(&session, &payer)).await;
            assert_eq!((late.status, &late.json()[code]), (400, &json!("session_expired")), "{}", late.text);
            let read = platform.read(&session).await;
            assert!(read["status"] == "expired" || read["acp_status"] == "failed", "{read}");
            assert_eq!(read["messages"][0]["code"], "expired");
            let cancel = platform.post(&at(&session, "/cancel"), &json!({})).await;
            assert!(matches!(cancel.status, 400 | 405), "{}", cancel.text);
            assert_eq!(platform.post(&at(&session, ""), &json!({"line_items": [{"id": CREDITS}]})).await.status, 400);
            assert_eq!(platform.read(&in_time).await["status"], "completed", "what was paid in time stays so");
            assert_eq!(payer.balance(&stack).await, 4_000_000);
        }
    });
}

#[test]
fn an_idempotency_key_identifies_one_request() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|options| Options { clock: clock.clone(), ..options }).await;
        let (platform, payer) = (Platform::acp(&stack), Payer::with(&stack, 5_000_000).await);
        let body = json!({"line_items": [{"id": CREDITS, "unit_amount": 100}], "currency": "usd", "capabilities": {}});
        let first = platform.named("one", "", &body).await;
        assert_eq!((first.status, first.header("idempotency-key")), (201, Some("one")));
        assert_eq!(first.header("idempotent-replayed"), None);
        // Equal JSON: other order of members, and 100.0 for 100.
        let same =
            json!({"capabilities": {}, "currency": "usd", "line_items": [{"unit_amount": 100.0, "id": CREDITS}]});
        let again = platform.named("one", "", &same).await;
        assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")));
        assert_eq!(again.text, first.text);
        let other = platform
            .named("one", "", &json!({"line_items": [{"id": CREDITS}], "currency": "usd", "capabilities": {}}))
            .await;
        assert_eq!((other.status, &other.json()["code"]), (422, &json!("idempotency_conflict")));
        assert_eq!(other.json()["type"], "request_not_idempotent");
        validate("Error", &other.json());
        // A refusal is stored as well. An idempotency key belongs to its path.
        let bad = json!({"line_items": []});
        let refused = platform.named("two", "", &bad).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        assert_eq!(platform.named("two", "", &bad).await.header("idempotent-replayed"), Some("true"));
        let session = first.json();
        let pay = payment(&session, &payer);
        let done = platform.named("one", &at(&session, "/complete"), &pay).await;
        assert_eq!((done.status, &done.json()["status"]), (200, &json!("completed")), "{}", done.text);
        let again = platform.named("one", &at(&session, "/complete"), &pay).await;
        assert_eq!((again.status, &again.text, again.header("idempotent-replayed")), (200, &done.text, Some("true")));
        let other = platform.named("one", &at(&session, "/complete"), &payment(&session, &payer)).await;
        assert_eq!(other.status, 422);
        // The same payment with another idempotency key is the same payment.
        let again = platform.named("three", &at(&session, "/complete"), &pay).await;
        assert_eq!((again.status, &again.json()["order"]["id"]), (200, &done.json()["order"]["id"]), "{}", again.text);
        clock.advance(Duration::from_secs(24 * 3600));
        assert_eq!(platform.named("one", &at(&session, "/complete"), &pay).await.text, done.text);
        assert_eq!(payer.balance(&stack).await, 4_000_000);
    });
}

#[test]
fn every_documented_checkout_error_is_returned() {
    run(async {
        let stack = stack_with(|options| options.with("ACP_BEARER_TOKENS", format!("{TOKEN},another-platform"))).await;
        let client = Client::new(&stack.base_url);
        let platform = Platform::acp(&stack);
        let session = platform.open(CREDITS, json!({})).await;
        let id = session["id"].as_str().unwrap();
        let bearer = format!("Bearer {TOKEN}");
        let good =
            [("authorization", bearer.as_str()), ("api-version", "2026-01-30"), ("content-type", "application/json")];
        let without = |name: &str| good.into_iter().filter(|(header, _)| *header != name).collect::<Vec<_>>();
        let with = |name: &'static str, value: &'static str| {
            let mut headers = without(name);
            headers.push((name, value));
            headers
        };
        let create = r#"{"line_items":[{"id":"agora-credits"}],"currency":"usd","capabilities":{}}"#;
        let good: Vec<(&str, &str)> = good.to_vec();
        let deep = "[".repeat(50_000);
        let huge = format!(r#"{{"line_items":[{{"id":"{}"}}]}}"#, "x".repeat(200_000));
        type Row<'a> = (&'a str, String, Vec<(&'a str, &'a str)>, &'a str, u16, &'a str, &'a str);
        let rows: Vec<Row<'_>> = vec![
            ("POST", String::new(), without("authorization"), create, 401, "unauthorized", "unauthorized"),
            (
                "POST",
                String::new(),
                with("authorization", "Bearer nobody-knows-me"),
                create,
                401,
                "unauthorized",
                "unauthorized",
            ),
            (
                "POST",
                String::new(),
                with("authorization", "Bearer agent_00"),
                create,
                401,
                "unauthorized",
                "unauthorized",
            ),
            (
                "POST",
                String::new(),
                without("api-version"),
                create,
                400,
                "missing_api_version",
                "unsupported_api_version",
            ),
            (
                "POST",
                String::new(),
                with("api-version", "2025-09-29"),
                create,
                400,
                "unsupported_api_version",
                "unsupported_api_version",
            ),
            (
                "GET",
                format!("/{id}"),
                without("api-version"),
                "",
                400,
                "missing_api_version",
                "unsupported_api_version",
            ),
            (
                "POST",
                String::new(),
                with("content-type", "text/plain"),
                create,
                415,
                "unsupported_media_type",
                "unsupported_media_type",
            ),
            ("POST", String::new(), good.clone(), "{", 400, "invalid_request", "invalid_request"),
            ("POST", String::new(), good.clone(), "[]", 400, "invalid_request", "invalid_request"),
            ("POST", String::new(), good.clone(), deep.as_str(), 400, "invalid_request", "invalid_request"),
            ("POST", String::new(), good.clone(), huge.as_str(), 413, "payload_too_large", "payload_too_large"),
            ("GET", "/not-a-session".to_owned(), good.clone(), "", 404, "not_found", "not_found"),
            ("GET", format!("/{}", "x".repeat(4_000)), good.clone(), "", 404, "not_found", "not_found"),
            (
                "GET",
                "/00000000-0000-0000-0000-000000000000".to_owned(),
                good.clone(),
                "",
                404,
                "not_found",
                "not_found",
            ),
            (
                "GET",
                format!("/{id}"),
                with("authorization", "Bearer another-platform"),
                "",
                404,
                "not_found",
                "not_found",
            ),
            ("GET", String::new(), good.clone(), "", 405, "method_not_allowed", "method_not_allowed"),
            ("DELETE", format!("/{id}"), good.clone(), "", 405, "method_not_allowed", "method_not_allowed"),
            ("POST", format!("/{id}/pay"), good.clone(), "{}", 404, "not_found", "not_found"),
        ];
        for (method, path, headers, body, status, acp, simple) in rows {
            for (prefix, code) in [("/acp", acp), ("/v1", simple)] {
                let mut headers = headers.clone();
                headers.push(("request-id", "r-1"));
                let path = format!("{prefix}/checkout_sessions{path}");
                let answer = client.send(method, &path, &headers, body.to_owned()).await.unwrap();
                let label = format!("{method} {} {}", &path[..path.len().min(80)], answer.text);
                assert_eq!(answer.status, status, "{label}");
                let json = answer.json();
                if prefix == "/acp" {
                    assert_eq!(json["code"], code, "{label}");
                    validate("Error", &json);
                } else {
                    assert_eq!(json["error"], code, "{label}");
                }
                assert_eq!(answer.header("request-id"), Some("r-1"), "{label}");
            }
        }
        // Answers that no handler of sessions gives repeat both headers too, within their limits.
        let long = "r".repeat(256);
        for (method, path, more) in [
            ("GET", "/acp/nothing", None),
            ("GET", "/acp/handlers/x402/nothing", None),
            ("PUT", "/acp/checkout_sessions", None),
            ("PUT", "/v1/checkout_sessions", None),
            ("POST", "/acp/checkout_sessions", Some(("x-dry-run", "true"))),
        ] {
            for (id, repeated) in [("r-2", Some("r-2")), (long.as_str(), None)] {
                let mut headers = vec![("request-id", id), ("idempotency-key", "k-2")];
                headers.extend(more);
                let answer = client.send(method, path, &headers, "").await.unwrap();
                assert!(matches!(answer.status, 400 | 404 | 405), "{method} {path}: {}", answer.status);
                let got = (answer.header("request-id"), answer.header("idempotency-key"));
                assert_eq!(got, (repeated, Some("k-2")), "{method} {path}");
            }
        }
        // Idempotency keys are required where something is created or paid, and only on ACP's paths.
        for path in ["".to_owned(), format!("/{id}/complete")] {
            let answer = client.send("POST", &format!("/acp/checkout_sessions{path}"), &good, create).await.unwrap();
            assert_eq!((answer.status, &answer.json()["code"]), (400, &json!("idempotency_key_required")));
        }
        assert_eq!(client.send("POST", "/v1/checkout_sessions", &good, create).await.unwrap().status, 201);
        let update = client.send("POST", &format!("/acp/checkout_sessions/{id}"), &good, "{}").await.unwrap();
        assert_eq!(update.status, 200, "{}", update.text);
        // Another platform's session is not found, for every operation.
        let stranger = platform.with_token("another-platform");
        for (action, body) in [("", json!({})), ("/complete", paid_with("x402", "e30=")), ("/cancel", json!({}))] {
            assert_eq!(stranger.post(&at(&session, action), &body).await.status, 404, "{action}");
        }
        // The first member that a payment lacks is named.
        let unnamed = json!({"instrument": {"type": "x402", "credential": {"type": "x402", "token": "e30="}}});
        for (body, param) in [
            (json!({}), "$.payment_data"),
            (json!({"payment_data": {}}), "$.payment_data.handler_id"),
            (json!({"payment_data": unnamed}), "$.payment_data.handler_id"),
            (json!({"payment_data": {"handler_id": "x402"}}), "$.payment_data.instrument"),
        ] {
            let answer = platform.complete(&session, &body).await;
            platform.check("Error", &answer);
            let said = answer.json();
            assert_eq!((answer.status, &said["code"]), (400, &json!("missing_payment_token")), "{body} {said}");
            assert_eq!(said["param"], param, "{body} {said}");
        }
        let simple = Platform::simple(&stack);
        let answer = simple.complete(&session, &json!({})).await;
        assert_eq!(answer.error(), (400, "missing_payment_token".to_owned()));
        assert_eq!(answer.json()["details"][0]["path"], "payment_token", "{}", answer.text);
    });
}

/// On ACP's paths a buyer needs an e-mail address, unless it has an older form. A refused update changes nothing.
#[test]
fn a_refused_update_leaves_the_session_as_it_was() {
    run(async {
        let stack = stack().await;
        let (platform, simple) = (Platform::acp(&stack), Platform::simple(&stack));
        let unreachable = json!({"full_name": "Ada Example"});
        let create = |buyer: &Value| json!({"line_items": [{"id": CREDITS}], "currency": "usd", "capabilities": {}, "buyer": buyer});
        let refused = platform.post("", &create(&unreachable)).await;
        platform.check("Error", &refused);
        let said = refused.json();
        assert_eq!((refused.status, &said["code"]), (400, &json!("missing_required_field")), "{said}");
        assert_eq!(said["param"], "$.buyer.email", "{said}");
        for (platform, buyer) in
            [(&platform, json!({"agent_id": "a-1", "wallet": "0x1"})), (&simple, unreachable.clone())]
        {
            let made = platform.post("", &create(&buyer)).await;
            assert_eq!(made.status, 201, "{}", made.text);
        }

        let made = platform.post("", &create(&json!({"full_name": "Ada Example", "email": "ada@example.com"}))).await;
        let session = made.json();
        let before = platform.read(&session).await;
        assert_eq!(
            (&before["status"], &before["buyer"]["email"]),
            (&json!("ready_for_payment"), &json!("ada@example.com"))
        );
        let two = json!([{"id": CREDITS}, {"id": CREDITS}]);
        let express = json!([{"type": "digital", "option_id": "express", "item_ids": [CREDITS]}]);
        for (update, param) in [
            (json!({"line_items": two, "buyer": unreachable}), "$.buyer.email"),
            (json!({"line_items": two, "buyer": {"email": "ada@"}}), "$.buyer.email"),
            (
                json!({"line_items": two, "selected_fulfillment_options": express}),
                "$.selected_fulfillment_options[0].option_id",
            ),
            (json!({"line_items": [], "buyer": {"email": "eve@example.com"}}), "$.line_items"),
            (json!({"line_items": two, "metadata": {"x": "y".repeat(20_000)}}), "$.metadata"),
        ] {
            let answer = platform.post(&at(&session, ""), &update).await;
            platform.check("Error", &answer);
            assert_eq!((answer.status, &answer.json()["param"]), (400, &json!(param)), "{}", answer.text);
            assert_eq!(platform.read(&session).await, before, "{param}");
        }
        // `param` names one of several, and the message all.
        let both = json!({"line_items": 1, "buyer": {"email": "ada@"}});
        let answer = platform.post(&at(&session, ""), &both).await;
        platform.check("Error", &answer);
        let said = answer.json();
        let message = said["message"].as_str().expect("a message");
        assert!(message.starts_with("2 fields are wrong: "), "{said}");
        assert!(
            message.contains("$.line_items ") && message.contains("$.buyer.email must be an e-mail address"),
            "{said}"
        );
        // The quote is still the first one, and buys.
        let payer = Payer::with(&stack, 2_000_000).await;
        let done = platform.complete(&session, &payment(&before, &payer)).await;
        assert_eq!((done.status, &done.json()["status"]), (200, &json!("completed")), "{}", done.text);
        assert_eq!(payer.balance(&stack).await, 1_000_000);
    });
}

/// A member of the input that nothing reads is dropped, and the session names it before anything is paid.
#[test]
fn a_session_names_the_input_that_nothing_reads() {
    run(async {
        // The search is never asked: nothing is bought.
        let urls = json!({"searxng": "http://127.0.0.1:9"}).to_string();
        let stack = stack_with(|options| options.with("SEARCH_PROVIDERS", "searxng").with("PROVIDER_URLS", urls)).await;
        for platform in [Platform::acp(&stack), Platform::simple(&stack)] {
            let told = |session: &Value| -> Vec<Value> {
                let messages = session["messages"].as_array().unwrap().iter();
                messages.map(|message| json!([message["type"], message["param"]])).collect()
            };
            let session =
                platform.open("agora-research", json!({"topic": "tides", "dept": "quick", "memo": "m"})).await;
            assert_eq!(session["status"], "ready_for_payment", "{session}");
            assert_eq!(told(&session), [json!(["info", "$.metadata.input.dept"])]);
            assert_eq!(told(&platform.read(&session).await), told(&session), "the message is stored");
            // It also explains what is missing.
            let session = platform.open("agora-research", json!({"topik": "tides"})).await;
            assert_eq!(
                told(&session),
                [json!(["info", "$.metadata.input.topik"]), json!(["error", "$.metadata.input.topic"])]
            );
            // The amount of credits is the quantity.
            let session = platform.open(CREDITS, json!({"amount": "5.00"})).await;
            assert_eq!(
                (&session["status"], told(&session)),
                (&json!("ready_for_payment"), vec![json!(["info", "$.metadata.input.amount"])])
            );
            let session = platform.open(CREDITS, json!({})).await;
            assert_eq!(told(&session), Vec::<Value>::new());
        }
    });
}

#[test]
fn malformed_bodies_are_refused_cleanly() {
    run(async {
        let stack = stack().await;
        for platform in [Platform::acp(&stack), Platform::simple(&stack)] {
            let line = |line: Value| json!({"line_items": [line], "currency": "usd", "capabilities": {}});
            let id = || json!({"id": CREDITS});
            let with = |name: &str, value: Value| {
                let mut body = line(id());
                body[name] = value;
                body
            };
            let strange = [
                line(json!({"id": CREDITS, "quantity": 0})),
                line(json!({"id": CREDITS, "quantity": -3})),
                line(json!({"id": CREDITS, "quantity": 1e300})),
                line(json!({"id": CREDITS, "quantity": "1"})),
                line(json!({"id": ["x"]})),
                line(json!({"id": "x".repeat(10_000)})),
                line(json!({"id": ""})),
                line(json!("x")),
                line(Value::Null),
                with("line_items", json!({"id": CREDITS})),
                with("line_items", json!(vec![id(); 10_000])),
                with("currency", json!(["usd"])),
                with("currency", json!("x".repeat(1_000))),
                with("capabilities", json!("all")),
                with("capabilities", json!({"interventions": {"supported": ["telepathy"]}})),
                with("buyer", json!("me")),
                with("buyer", json!({"email": "me@"})),
                with("fulfillment_details", json!({"address": {"name": "x"}})),
                with("metadata", json!([])),
                with("metadata", json!({"input": {"x": "y".repeat(90_000)}, "more": "z".repeat(20_000)})),
            ];
            for body in strange {
                let answer = platform.post("", &body).await;
                assert!(
                    matches!(answer.status, 400 | 413),
                    "{}: {}",
                    answer.status,
                    &answer.text[..answer.text.len().min(300)]
                );
                platform.check("Error", &answer);
            }
            // Unusual but valid.
            let fine = [
                (line(json!({"id": "agora-\u{202e}\u{0}credits"})), "not_ready_for_payment"),
                (line(json!({"id": "agora-soul-a/b/c"})), "not_ready_for_payment"),
                (line(json!({"id": format!("agora-soul-{}", "a-".repeat(100))})), "not_ready_for_payment"),
                (line(json!({"id": CREDITS, "quantity": 1_000_000})), "not_ready_for_payment"),
                (line(json!({"id": CREDITS, "quantity": 1_000, "unit_amount": 1})), "ready_for_payment"),
                (with("currency", json!("eur")), "not_ready_for_payment"),
                (with("currency", json!("USD")), "ready_for_payment"),
                (with("line_items", json!([id(), {"id": "other"}])), "not_ready_for_payment"),
                (with("line_items", json!(vec![id(); 100])), "ready_for_payment"),
                (
                    with("buyer", json!({"full_name": "Zoë 🦊", "company": {"name": "x"}, "email": "z@example.com"})),
                    "ready_for_payment",
                ),
                (
                    with("metadata", json!({"status": "completed", "total_usdc": "0.00", "deep": {"er": [[[1]]]}})),
                    "ready_for_payment",
                ),
                (with("nobody_knows_me", json!(1)), "ready_for_payment"),
            ];
            for (body, status) in fine {
                let answer = platform.post("", &body).await;
                assert_eq!(answer.status, 201, "{body} {}", answer.text);
                platform.check("CheckoutSession", &answer);
                let session = answer.json();
                assert_eq!(session["status"], status, "{}", answer.text);
                assert_eq!(platform.read(&session).await["id"], session["id"]);
                let metadata = &session["metadata"];
                assert!(metadata.get("status").is_none_or(|status| status == "open" || platform_is_simple(&session)));
            }
            let mut deep = json!(1);
            for _ in 0..100 {
                deep = json!([deep]);
            }
            let answer = platform.post("", &with("metadata", json!({"deep": deep}))).await;
            assert!(matches!(answer.status, 201 | 400), "{}", answer.text);
        }
    });
}

fn platform_is_simple(session: &Value) -> bool {
    session.get("acp_status").is_some()
}

/// Each order event is sent once, in ACP's form, signed as ACP requires, with the configured secret.
#[test]
fn a_platform_receives_signed_order_events() {
    run(async {
        let receiver = Receiver::start().await;
        let key = [7; 32];
        let secret = format!("whsec_{}", base::encoding::base64_standard(&key));
        let stack = stack_with(|options| {
            let hooks = format!("{TOKEN} {} {secret}", receiver.url);
            options.with("ACP_WEBHOOKS", hooks).with("LOCAL_FETCH_ALLOW", receiver.allowed())
        })
        .await;
        let (platform, payer) = (Platform::acp(&stack), Payer::with(&stack, 5_000_000).await);
        let session = platform.open(CREDITS, json!({})).await;
        let poor = Payer::with(&stack, 0).await;
        platform.complete(&session, &payment(&session, &poor)).await;
        let done = platform.complete(&session, &payment(&session, &payer)).await.json();
        assert_eq!(done["status"], "completed", "{done}");
        let received = eventually("both events", || async {
            let received = receiver.received();
            (received.len() >= 2).then_some(received)
        })
        .await;
        assert_eq!(received.len(), 2, "{received:?}");
        let mut told: Vec<(String, String)> = Vec::new();
        for event in &received {
            let body = event.json();
            assert_eq!(body["data"]["checkout_session_id"], session["id"]);
            assert_eq!(body["data"]["permalink_url"], done["order"]["permalink_url"]);
            assert_eq!((&body["data"]["type"], &body["data"]["refunds"]), (&json!("order"), &json!([])));
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            told.push((text(&body["type"]), text(&body["data"]["status"])));
            let signature = event.header("merchant-signature");
            let (time, mac) = signature.strip_prefix("t=").and_then(|rest| rest.split_once(",v1=")).expect(signature);
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key);
            let expected = digest::hmac(&key, format!("{time}.{}", event.body).as_bytes());
            assert_eq!(mac, const_hex::encode(expected));
        }
        told.sort();
        let pair = |kind: &str, status: &str| (kind.to_owned(), status.to_owned());
        assert_eq!(told, [pair("order_create", "created"), pair("order_update", "fulfilled")]);
    });
}

#[test]
fn published_examples_are_accepted() {
    run(async {
        let Some(folder) = published() else { return };
        let stack = stack().await;
        let (platform, payer) = (Platform::acp(&stack), Payer::with(&stack, 20_000_000).await);
        let text = std::fs::read(folder.join("examples/examples.agentic_checkout.json")).unwrap();
        let examples: Value = serde_json::from_slice(&text).unwrap();
        let mut tried = 0;
        for (name, example) in examples.as_object().unwrap().iter().filter(|(name, _)| name.contains("request")) {
            let session = platform.open(CREDITS, json!({})).await;
            let answer = if name.starts_with("create") {
                // The item of the original example is not ours. With one of ours it can be paid.
                let unknown = platform.post("", example).await;
                assert_eq!(
                    (unknown.status, &unknown.json()["status"]),
                    (201, &json!("not_ready_for_payment")),
                    "{name}"
                );
                platform.check("CheckoutSession", &unknown);
                let mut example = example.clone();
                example["line_items"][0]["id"] = json!(CREDITS);
                let made = platform.post("", &example).await;
                assert_eq!(made.json()["status"], "ready_for_payment", "{name}: {}", made.text);
                made
            } else if name.starts_with("update") {
                let mut example = example.clone();
                example["selected_fulfillment_options"][0]["option_id"] = json!("digital");
                platform.post(&at(&session, ""), &example).await
            } else if name.starts_with("cancel") {
                platform.post(&at(&session, "/cancel"), example).await
            } else {
                // A card's token is declined, ours is accepted.
                let declined = platform.complete(&session, example).await;
                assert!(matches!(declined.status, 200 | 400), "{name}: {}", declined.text);
                assert_eq!(platform.read(&session).await["status"], "ready_for_payment");
                let mut example = example.clone();
                let ours = payment(&session, &payer)["payment_data"].clone();
                example["payment_data"]["handler_id"] = ours["handler_id"].clone();
                example["payment_data"]["instrument"] = ours["instrument"].clone();
                platform.complete(&session, &example).await
            };
            assert!(StatusCode::from_u16(answer.status).unwrap().is_success(), "{name}: {}", answer.text);
            let schema = if name.starts_with("complete") { "CheckoutSessionWithOrder" } else { "CheckoutSession" };
            platform.check(schema, &answer);
            tried += 1;
        }
        assert!(tried >= 9, "{tried} examples");
    });
}

#[test]
fn every_url_of_the_discovery_documents_resolves() {
    run(async {
        let stack = stack().await;
        let item = service(&stack).await;
        let client = Client::new(&stack.base_url);
        let found = client.get("/.well-known/acp.json", &[]).await;
        assert_eq!((found.status, found.header("cache-control")), (200, Some("public, max-age=3600")));
        let found = found.json();
        assert_eq!(found["protocol"]["version"], "2026-01-30");
        assert_eq!(found["api_base_url"], format!("{}/acp", stack.base_url));
        let manifest = client.get("/.well-known/acp/manifest.json", &[]).await.json();
        let products = manifest["products"].as_array().unwrap();
        let ids: Vec<&str> = products.iter().filter_map(|product| product["id"].as_str()).collect();
        assert!(ids.contains(&CREDITS) && ids.contains(&item.as_str()), "{ids:?}");
        for product in products {
            assert!(product["default_price"]["unit_amount"].as_u64().is_some_and(|cents| cents > 0), "{product}");
            assert_eq!(product["default_price"]["currency"], "usd");
        }
        // Every handler has documents of its own, and its configuration and payment data match its schemas.
        let platform = Platform::acp(&stack);
        let session = platform.open(&item, json!({"text": "words"})).await;
        let payer = Payer::new(&stack).await;
        let path = |url: &Value| url.as_str().unwrap().strip_prefix(&stack.base_url).unwrap().to_owned();
        for handler in session["capabilities"]["payment"]["handlers"].as_array().unwrap() {
            let spec = client.get(&path(&handler["spec"]), &[]).await;
            assert_eq!((spec.status, spec.header("content-type")), (200, Some("text/markdown; charset=utf-8")));
            let schema = client.get(&path(&handler["config_schema"]), &[]).await.json();
            let schema = jsonschema::validator_for(&schema).expect("a schema");
            assert!(schema.is_valid(&handler["config"]), "{handler}");
            let instrument = client.get(&path(&handler["instrument_schemas"][0]), &[]).await.json();
            let instrument = jsonschema::validator_for(&instrument).expect("a schema");
            let pays = match handler["id"].as_str() {
                Some("x402") => payment(&session, &payer),
                _ => paid_with("credits", "agent_00"),
            };
            assert!(instrument.is_valid(&pays["payment_data"]["instrument"]), "{pays}");
        }
        assert_eq!(client.get("/acp/handlers/x402/nothing", &[]).await.status, 404);
        if let Some(handlers) = schema("PaymentHandler") {
            assert!(
                session["capabilities"]["payment"]["handlers"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|one| handlers.is_valid(one))
            );
        }
    });
}

/// Sellers write schemas and descriptions, and twenty souls may have fifty of each. The manifest stays within its size
/// limit.
#[test]
fn the_manifest_size_is_bounded() {
    run(async {
        let stack = stack().await;
        let shop = Shop::open(&stack, "long-words").await;
        for number in 0..40 {
            let service = json!({
                "name": format!("Words {number}"), "slug": format!("words-{number}"), "executor": "worker", "price_usd": 0.5,
                "description": "\u{1f600}".repeat(2000),
                "input_schema": {"type": "object", "properties": {"a": {"const": "€".repeat(5000)}}},
            });
            let offered = shop.send("POST", "/services", &service).await;
            assert!(offered.status < 300, "{}", offered.text);
        }
        let manifest = Client::new(&stack.base_url).get("/.well-known/acp/manifest.json", &[]).await;
        assert_eq!(manifest.status, 200, "{}", manifest.text);
        let listed = manifest.text.matches("agora-soul-long-words-").count();
        assert!(listed > 10 && manifest.text.len() < 800 * 1024, "{listed} services, {} bytes", manifest.text.len());
    });
}
