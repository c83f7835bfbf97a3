//! A day of everything, and every place that shows what it cost: they use one definition each of charged, kept, spent and counted
//! (`ledger::cost`), and so they agree.

use serde_json::{Value, json};

use crate::mcp_calls::call;
use crate::souls_market::text;
use crate::support::payer::{bare, header};
use crate::support::programs::FAILS_AND_TELLS;
use crate::support::receiver::Receiver;
use crate::support::{Payer, READ_PATH, VIN, VIN_PATH, eventually, run};
use crate::{cards, souls_costs, webhooks};

const BUDGETS: &str = "/v1/agents/me/budgets";
const NUMBERS: &str = "/v1/tools/voice/numbers";
const EXCHANGE: &str = "/v1/tools/voice/exchange";
const CALL: &str = "/v1/tools/voice/call";
const MINUTE: i64 = 350_000;
const FEE: i64 = 5_000_000;
/// Of the vehicle lookup.
const LOOKUP: i64 = 5_000;
/// The budget of a day.
const DAILY: i64 = 100_000_000;

/// An amount in micro-USDC; zero for null and for an absent one.
fn micro(amount: &Value) -> i64 {
    let Some(text) = amount.as_str() else { return 0 };
    let (dollars, rest) = text.split_once('.').unwrap_or_else(|| panic!("no amount: {text}"));
    assert_eq!(rest.len(), 6, "{text}");
    format!("{dollars}{rest}").parse().unwrap_or_else(|_| panic!("no amount: {text}"))
}

fn sum<'a>(rows: impl IntoIterator<Item = &'a Value>, member: &str) -> i64 {
    rows.into_iter().map(|row| micro(&row[member])).sum()
}

fn list(answer: &Value, member: &str) -> Vec<Value> {
    answer[member].as_array().unwrap_or_else(|| panic!("no {member}: {answer}")).clone()
}

/// What a receipt adds to the spending, from what the audit says of it.
fn spent_of(row: &Value) -> i64 {
    match (row["subcategory"].as_str(), row["status"].as_str(), row["execution_status"].as_str()) {
        (Some("credits_top_up"), _, _) => 0,
        (_, Some("settled"), Some("pending")) => micro(&row["amount_usdc"]),
        (_, Some("settled"), Some("failed")) => micro(&row["kept_usdc"]),
        (_, Some("settled"), Some("completed")) if row["kept_usdc"].is_null() => micro(&row["amount_usdc"]),
        (_, Some("settled"), Some("completed")) => micro(&row["kept_usdc"]),
        other => panic!("{other:?}: {row}"),
    }
}

/// A number of an agent, which answers: its id and the number itself.
async fn number(payer: &Payer) -> (String, String) {
    let bought = payer.change("POST", NUMBERS, &json!({})).await;
    assert_eq!(bought.status, 201, "{}", bought.text);
    let data = bought.json()["data"].clone();
    assert_eq!(micro(&data["charged"]), FEE);
    let id = data["id"].as_str().expect("an id").to_owned();
    let settings = json!({"prompt": "You answer for a bakery. Bread costs 4 dollars.", "max_minutes": 3});
    let put = payer.change("PUT", &format!("{NUMBERS}/{id}/inbound"), &settings).await;
    assert_eq!(put.status, 200, "{}", put.text);
    (id, data["phone_number"].as_str().expect("a number").to_owned())
}

/// Compares every place that shows what the agent's calls cost, and returns what it spent, in micro-USDC. `paid_in`: the credits
/// that it bought and that were not taken back.
async fn agreed(ada: &Payer, token: &str, paid_in: i64) -> i64 {
    let get = async |path: &str| {
        let answer = ada.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        answer.json()
    };
    let receipts = list(&get("/v1/analytics/receipts?limit=100").await, "receipts");
    let spent = sum(&receipts, "spent_usdc");

    // Each receipt with its request, its explanation, and its signed row.
    let requests = list(&get("/v1/requests?limit=100").await, "requests");
    let audited = list(&get("/v1/audit/receipts").await, "receipts");
    assert_eq!((requests.len(), audited.len()), (receipts.len(), receipts.len()));
    for receipt in &receipts {
        let of = |rows: &[Value]| rows.iter().find(|row| row["receipt_id"] == receipt["receipt_id"]).cloned();
        let row = of(&audited).expect("a row of the audit");
        assert_eq!(micro(&receipt["spent_usdc"]), spent_of(&row), "{receipt} {row}");
        assert_eq!(row["amount_usdc"], receipt["amount_usdc"]);
        let listed = of(&requests).expect("a request");
        let id = listed["request_id"].as_str().expect("an id");
        let polled = get(&format!("/v1/requests/{id}")).await;
        let explained = get(&format!("/v1/receipts/{id}/explain")).await;
        for shown in [&listed, &polled, &explained["receipt"]] {
            for member in ["amount_usdc", "spent_usdc", "credited_usdc", "kept_usdc"] {
                let same = shown.get(member).unwrap_or(&Value::Null) == &receipt[member];
                assert!(same, "{member}: {shown} {receipt}");
            }
        }
        assert_eq!(micro(&explained["refund"]["credits_usdc"]), micro(&receipt["credited_usdc"]), "{explained}");
        if !receipt["credited_usdc"].is_null() {
            assert_eq!(sum([receipt], "credited_usdc") + sum([receipt], "kept_usdc"), micro(&receipt["amount_usdc"]));
            assert_eq!(receipt["kept_usdc"], receipt["spent_usdc"], "what is kept is spent: {receipt}");
        }
    }

    // The sums.
    let spending = get("/v1/analytics/spend/breakdown?period=2&subcategories=true").await;
    let categories = list(&spending, "categories");
    let parts: i64 = categories.iter().map(|category| sum(&list(category, "subcategories"), "total_usdc")).sum();
    let returns = get("/v1/analytics/rocs?period=2").await;
    let budget = get(BUDGETS).await["data"].clone();
    let dry = ada.clone().call(
        VIN_PATH,
        vec![("x-dry-run", "true".to_owned()), ("x-agent-proof", ada.proof("write"))],
        json!({"vin": VIN}),
    );
    let dry = dry.await.json();
    for (place, shown) in [
        ("breakdown", micro(&spending["total_spent_usdc"])),
        ("categories", sum(&categories, "total_usdc")),
        ("subcategories", parts),
        ("returns", micro(&returns["total_spent_usdc"])),
        ("requests", sum(&requests, "spent_usdc")),
        ("budget", micro(&budget["spent_today_usdc"])),
        ("what the budget leaves", DAILY - micro(&budget["remaining_usdc"])),
        ("dry run", micro(&dry["budget"]["spent_today_usdc"])),
    ] {
        assert_eq!(shown, spent, "{place}: {receipts:#?}");
    }

    // The credits are what was paid in, and paid back, less what calls took.
    let balance = get("/v1/tools/balance").await;
    let held = sum([&balance], "credits_balance") + sum([&balance], "credits_reserved");
    let moved = sum(&receipts, "credited_usdc") - sum(&receipts, "credits_used_usdc");
    assert_eq!(held - micro(&balance["credits_owed"]), paid_in + moved, "{balance}");

    // A model reads the same.
    let bearer = [("authorization", token)];
    for (tool, arguments, path) in [
        ("agora_spending", json!({"period": 2}), "/v1/analytics/spend/breakdown?period=2"),
        ("agora_receipts", json!({"limit": 100}), "/v1/analytics/receipts?limit=100"),
        ("agora_requests", json!({"limit": 100}), "/v1/requests?limit=100"),
        ("agora_balance", json!({}), "/v1/tools/balance"),
        ("agora_budgets", json!({}), BUDGETS),
    ] {
        let mut told = call(&ada.client, &bearer, tool, arguments, json!({})).await["structuredContent"].clone();
        // Of budgets, a token is also told its own.
        told.as_object_mut().expect("members").remove("token");
        let shown = get(path).await;
        assert_eq!(&told, shown.get("data").unwrap_or(&shown), "{tool}");
    }
    spent
}

#[test]
fn every_place_says_the_same_of_a_day_of_everything() {
    run(async {
        let receiver = Receiver::start().await;
        let allowed = receiver.allowed();
        let stack = cards::shop(|options| options.with("LOCAL_FETCH_ALLOW", allowed)).await;
        let (ada, bob) = (Payer::with(&stack, 20_000_000).await, Payer::with(&stack, 0).await);
        bob.give_credits(&stack, 20_000_000).await;
        let token = ada.token(&stack).await;
        let hook = json!({"url": receiver.url, "events": ["credit.issued", "voice.inbound.completed"]});
        webhooks::create(&ada, &hook).await;
        assert_eq!(ada.change("PUT", BUDGETS, &json!({"daily": 100})).await.status, 200);

        // Credits bought with the wallet and by card. The card takes some back, and its bank disputes some.
        assert_eq!(ada.buy("/v1/credits/top-up", &json!({"amount": "8.00"})).await.status, 200);
        cards::heard(&ada, &cards::event("cs_1", &ada.agent().to_string(), 500)).await;
        cards::heard(&ada, &cards::refunded("cs_1", 200, 10)).await;
        cards::heard(&ada, &cards::taken_back("cs_1", "charge.dispute.created", "du_1", 100, "lost", 20)).await;
        let paid_in = 8_000_000 + 5_000_000 - 2_000_000 - 1_000_000;
        assert_eq!(agreed(&ada, &token, paid_in).await, 0, "credits are spent when something is bought with them");

        // A number, from the wallet's credits; a lookup paid by signature, by token, and from credits held for its quote.
        let (id, own) = number(&ada).await;
        let vin = json!({"vin": VIN});
        assert_eq!(ada.buy(VIN_PATH, &vin).await.status, 200);
        assert_eq!(ada.client.post(VIN_PATH, &[("authorization", &token)], &vin).await.status, 200);
        let quoted = ada.client.post(VIN_PATH, &[("x-agent-proof", &ada.proof("write"))], &vin).await.json();
        let (quote, nothing, proof) =
            (quoted["quote_id"].as_str().expect("a quote"), ada.nothing(), ada.proof("write"));
        let headers = [("x-quote-id", quote), ("payment-signature", &nothing), ("x-agent-proof", &proof)];
        assert_eq!(ada.client.post(VIN_PATH, &headers, &vin).await.status, 200);
        let mut spent = FEE + 3 * LOOKUP;

        // A page that cannot be read, and a soul's work that fails after it used a tool.
        let failed = ada.buy(READ_PATH, &json!({"url": "http://no-such-host.invalid/"})).await.json();
        ada.finished(failed["request_id"].as_str().expect("an id")).await;
        let shop = souls_costs::shop(&stack, "fails-on-that-day", 0.012, FAILS_AND_TELLS).await;
        let payment = header(&bare(&ada.authorize(500_000)));
        let failed = ada.client.post(&shop.execute_path(), &[("x-payment", &payment)], &text("x")).await;
        assert_eq!(failed.status, 202, "{}", failed.text);
        ada.finished(failed.json()["request_id"].as_str().expect("an id")).await;
        spent += LOOKUP;

        // A call in: all that it holds is spent, until it has ended.
        let (_, of_bob) = number(&bob).await;
        let rung = bob.change("POST", EXCHANGE, &json!({"to": own})).await.json()["data"]["call"].clone();
        let rung = rung["id"].as_str().unwrap_or_else(|| panic!("no call: {rung}")).to_owned();
        assert_eq!(agreed(&ada, &token, paid_in).await, spent + 3 * MINUTE);
        assert_eq!(bob.change("POST", &format!("{EXCHANGE}/{rung}/hang-up"), &json!({})).await.status, 200);
        ada.finished(&rung).await;
        let shown = ada.get(&format!("/v1/tools/voice/inbound/{rung}")).await.json()["data"].clone();
        assert_eq!((micro(&shown["charge_usdc"]), &shown["phone_number_id"]), (MINUTE, &json!(id)), "{shown}");

        // A call out, of which a minute is used.
        let out = json!({"objective": "Ask what bread costs.", "target_number": of_bob, "max_duration_minutes": 2});
        let accepted = ada.redeem(CALL, &ada.ask(CALL, &out).await, &out).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let called = ada.finished(accepted.json()["request_id"].as_str().expect("an id")).await;
        assert_eq!(micro(&called["result"]["cost"]), micro(&called["spent_usdc"]), "{called}");
        spent += MINUTE + MINUTE;
        assert_eq!(agreed(&ada, &token, paid_in).await, spent);

        // The token counts its own call.
        let own = ada.client.get(BUDGETS, &[("authorization", &token)]).await.json()["data"]["token"].clone();
        assert_eq!(micro(&own["spent_today_usdc"]), LOOKUP, "{own}");

        // Every amount that was paid back is told once, by a notification and by an event.
        let receipts = list(&ada.get("/v1/analytics/receipts?limit=100").await.json(), "receipts");
        let bought = receipts.iter().filter(|receipt| receipt["subcategory"] != "voice_inbound");
        let mut back: Vec<String> = bought
            .filter(|receipt| micro(&receipt["credited_usdc"]) > 0)
            .map(|receipt| json!([receipt["receipt_id"], receipt["credited_usdc"], receipt["kept_usdc"]]).to_string())
            .collect();
        back.sort_unstable();
        assert_eq!(back.len(), 3, "{receipts:#?}");
        let told = |about: &Value| json!([about["receipt_id"], about["amount_usdc"], about["kept_usdc"]]).to_string();
        eventually("the notifications", || async {
            let notes = list(&ada.get("/v1/tools/notifications?limit=100").await.json(), "notifications");
            let notes = notes.iter().filter(|note| note["type"] == "credit_issued");
            let mut notes: Vec<String> = notes.map(|note| told(&note["payload"])).collect();
            notes.sort_unstable();
            (notes == back).then_some(())
        })
        .await;
        let events = eventually("the events", || async {
            let events: Vec<Value> = receiver.received().iter().map(|received| received.json()).collect();
            (events.len() >= 4).then_some(events)
        })
        .await;
        let (credits, calls): (Vec<Value>, Vec<Value>) =
            events.into_iter().partition(|event| event["type"] == "credit.issued");
        let mut posted: Vec<String> = credits.iter().map(|event| told(&event["data"])).collect();
        posted.sort_unstable();
        assert_eq!(posted, back);
        assert_eq!(calls.iter().map(|event| micro(&event["data"]["charge_usdc"])).collect::<Vec<_>>(), [MINUTE]);
    });
}
