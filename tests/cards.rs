//! Credits by card, against a contract server of ours that speaks the card processor's documented protocol: Stripe
//! Checkout (docs.stripe.com/api/checkout/sessions/create; docs.stripe.com/webhooks#verify-manually; read 2026-11).

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use common::clock::Clock;
use futures_util::future::join_all;
use ring::hmac;
use serde_json::{Value, json};

use crate::support::{Answer, Payer, books, run, stack_with};

const KEY: &str = "sk_test_a_key";
const SECRET: &str = "whsec_a_secret";

/// What the processor was asked, form decoded.
type Asked = Arc<Mutex<Vec<HashMap<String, String>>>>;

/// Opens a session for whoever has the key; an amount of 13 dollars is declined, as Stripe declines: with a body that
/// says why.
async fn session(State(asked): State<Asked>, headers: HeaderMap, body: String) -> (StatusCode, String) {
    if headers.get("authorization").is_none_or(|value| value != &format!("Bearer {KEY}")) {
        return (StatusCode::UNAUTHORIZED, json!({"error": {"message": "Invalid API Key provided"}}).to_string());
    }
    assert_eq!(headers["content-type"], "application/x-www-form-urlencoded");
    let form: HashMap<String, String> = body
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect();
    let amount = form["line_items[0][price_data][unit_amount]"].clone();
    asked.lock().unwrap().push(form);
    if amount == "1300" {
        let error = json!({"error": {"type": "invalid_request_error", "message": "Amount not allowed"}});
        return (StatusCode::BAD_REQUEST, error.to_string());
    }
    let id = format!("cs_test_{amount}");
    (
        StatusCode::OK,
        json!({"id": id, "object": "checkout.session", "url": format!("https://checkout.test/{id}")}).to_string(),
    )
}

fn decoded(text: &str) -> String {
    text.replace("%5B", "[").replace("%5D", "]").replace("%3A", ":").replace("%2F", "/").replace('+', " ")
}

async fn processor() -> (String, Asked) {
    let asked = Asked::default();
    let router = axum::Router::new().route("/v1/checkout/sessions", post(session)).with_state(asked.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, asked)
}

fn event(session: &str, agent: &str, cents: u64) -> String {
    json!({"id": "evt_1", "type": "checkout.session.completed", "data": {"object": {
        "id": session, "client_reference_id": agent, "amount_total": cents, "currency": "usd", "payment_status": "paid",
    }}})
    .to_string()
}

async fn tell(payer: &Payer, body: &str, secret: &str, at: i64) -> Answer {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), format!("{at}.{body}").as_bytes());
    let signature = format!("t={at},v1={}", &common::evm::hex0x(tag.as_ref())[2..]);
    let headers = [("content-type", "application/json"), ("stripe-signature", signature.as_str())];
    payer.client.send("POST", "/v1/credits/webhook", &headers, body.to_owned()).await.expect("an answer")
}

#[test]
fn a_card_buys_credits_once_and_only_when_the_processor_says_so() {
    run(async {
        let (url, asked) = processor().await;
        let stack = stack_with(|options| {
            options.with("CARD_PROCESSOR_URL", url).with("CARD_PROCESSOR_KEY", KEY).with("CARD_WEBHOOK_SECRET", SECRET)
        })
        .await;
        let payer = Payer::with(&stack, 0).await;
        let opened = payer.change("POST", "/v1/credits/checkout", &json!({"amount": "7.50"})).await;
        assert_eq!(opened.status, 200, "{}", opened.text);
        let data = opened.json()["data"].clone();
        assert_eq!(data, json!({"session_id": "cs_test_750", "url": "https://checkout.test/cs_test_750"}));
        let agent = payer.agent().to_string();
        let form = asked.lock().unwrap()[0].clone();
        assert_eq!((form["mode"].as_str(), form["client_reference_id"].as_str()), ("payment", agent.as_str()));
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 0, "a page is no payment");
        for _ in 0..2 {
            // A name of a request that came to nothing is free again.
            let proof = payer.proof("write");
            let headers = [("x-agent-proof", proof.as_str()), ("idempotency-key", "a-card")];
            let declined = payer.client.post("/v1/credits/checkout", &headers, &json!({"amount": 13})).await;
            assert_eq!(declined.error(), (503, "provider_unavailable".to_owned()));
            assert!(!declined.text.contains(KEY));
        }

        let (body, now) = (event("cs_test_750", &agent, 750), Clock::system().now().secs());
        for (secret, at) in [("whsec_other", now), (SECRET, now - 301), (SECRET, now + 301)] {
            assert_eq!(tell(&payer, &body, secret, at).await.error(), (401, "unauthorized".to_owned()));
        }
        let answers: Vec<Value> =
            join_all((0..10).map(|_| tell(&payer, &body, SECRET, now))).await.iter().map(Answer::json).collect();
        assert!(answers.iter().all(|answer| *answer == json!({"received": true})), "{answers:?}");
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 7_500_000, "credited once");
    });
}
