//! Budgets and freezes: caps hold for any number of concurrent calls.

use base::clock::{Clock, Timestamp};
use futures_util::future::join_all;
use gate::stats;
use platform::mail;
use serde_json::{Value, json};
use std::time::Duration;

use crate::support::payer::{bare, header};
use crate::support::relay::relay;
use crate::support::{Answer, Payer, READ_PATH, VIN, VIN_PATH, books, eventually, run, stack, stack_with};

const BUDGETS: &str = "/v1/agents/me/budgets";
const FREEZES: &str = "/v1/agents/me/freezes";

fn vin() -> Value {
    json!({"vin": VIN})
}

async fn pay(payer: &Payer) -> Answer {
    let payment = header(&bare(&payer.authorize(5_000)));
    payer.client.post(VIN_PATH, &[("x-payment", &payment)], &vin()).await
}

#[test]
fn a_cap_for_fifty_lets_fifty_of_two_hundred_through() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 1_000_000).await;
        assert_eq!(
            payer.change("PUT", BUDGETS, &json!({"daily": 0.5, "pause_at": 0.5, "alert_at": 0.4})).await.status,
            200
        );
        let token = payer.token(&stack).await;
        let calls = (0..200).map(|_| payer.clone().call(VIN_PATH, vec![("authorization", token.clone())], vin()));
        let answers = join_all(calls).await;
        let done = answers.iter().filter(|answer| answer.status == 200).count();
        crate::support::print_caps("budget", done, answers.len());
        assert_eq!(done, 50);
        let refused = answers.iter().find(|answer| answer.status != 200).unwrap();
        assert_eq!(refused.error(), (403, "budget_exceeded".to_owned()));
        let budget = refused.json()["budget"].clone();
        assert_eq!((&budget["reason"], &budget["cap"]), (&json!("daily"), &json!("0.250000")), "{budget}");
        for member in ["spent", "in_flight", "charge", "resets_at"] {
            assert!(budget[member].is_string(), "{member}: {budget}");
        }
        let shown = payer.get(BUDGETS).await.json()["data"].clone();
        assert_eq!((&shown["spent_today_usdc"], &shown["remaining_usdc"]), (&json!("0.250000"), &json!("0.000000")));
        assert_eq!((&shown["daily_usdc"], &shown["pct_used"]), (&json!(0.5), &json!(50.0)));
        books::audit(&stack.app.db, payer.agent()).await;
        // One warning only, although every call after the fortieth is above the warning level.
        let notes = payer.get("/v1/tools/notifications").await.json();
        let warnings =
            notes["notifications"].as_array().unwrap().iter().filter(|note| note["type"] == "budget_warning");
        assert_eq!(warnings.count(), 1, "{notes}");
    });
}

#[test]
fn budgets_stop_signed_payments_before_settlement() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        // A new wallet's first request sets its budget.
        let set = payer.change("PUT", BUDGETS, &json!({"daily": 0.012, "per_transaction": 1})).await;
        assert_eq!(set.status, 200, "{}", set.text);
        let statuses = join_all((0..10).map(|_| pay(&payer))).await;
        assert_eq!(statuses.iter().filter(|answer| answer.status == 200).count(), 2, "two fit under the cap");
        assert!(statuses.iter().all(|answer| answer.status == 200 || answer.error().1 == "budget_exceeded"));
        assert_eq!(payer.balance(&stack).await, 990_000, "what was refused was not settled");
        assert_eq!(payer.change("PUT", BUDGETS, &json!({"daily": null, "per_transaction": "0.004"})).await.status, 200);
        let refused = pay(&payer).await;
        // No day resets this cap, and only the charge counts against it, whatever was spent before.
        let told = json!({
            "reason": "per_transaction", "cap": "0.004000", "spent": "0.000000", "in_flight": "0.000000", "charge": "0.005000",
        });
        assert_eq!(refused.json()["budget"], told);
        // A quote for a proven caller reports the budget before anything is signed.
        let quoted = payer.client.post(VIN_PATH, &[("x-agent-proof", &payer.proof("write"))], &vin()).await;
        assert_eq!(quoted.error(), (403, "budget_exceeded".to_owned()));
        assert_eq!(payer.change("PUT", BUDGETS, &json!({"per_transaction": null})).await.status, 200);
        assert_eq!(pay(&payer).await.status, 200);
        let shown = payer.get(BUDGETS).await.json()["data"].clone();
        assert_eq!((&shown["daily_usdc"], &shown["spent_today_usdc"]), (&Value::Null, &json!("0.015000")));
    });
}

#[test]
fn tools_have_caps_of_their_own() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        assert_eq!(payer.change("PUT", BUDGETS, &json!({"tools": {"vin_decode": 0.01}})).await.status, 200);
        let answers = join_all((0..6).map(|_| pay(&payer))).await;
        assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 2);
        let refused = answers.iter().find(|answer| answer.status == 403).unwrap();
        assert_eq!(refused.json()["budget"]["reason"], "tool");
        let page = json!({"url": format!("{}/plain", stack.site_url)});
        let read = payer.buy(READ_PATH, &page).await;
        assert_eq!(read.status, 202, "another tool is another cap: {}", read.text);
    });
}

#[test]
fn daily_caps_reset_at_midnight_utc() {
    run(async {
        let now = Clock::system().now();
        let midnight = Timestamp::from_secs((now.secs() / 86_400 + 1) * 86_400);
        let clock = Clock::pinned(midnight.minus(Duration::from_secs(2)));
        let hand = clock.clone();
        let stack = stack_with(|options| local::Options { clock, ..options }).await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 100_000).await;
        let token = payer.token(&stack).await;
        let proof = payer.proof_at("write", hand.now().secs());
        let headers = [("x-agent-proof", proof.as_str()), ("content-type", "application/json")];
        assert_eq!(payer.client.send("PUT", BUDGETS, &headers, r#"{"daily":0.005}"#).await.unwrap().status, 200);
        let call = || payer.clone().call(VIN_PATH, vec![("authorization", token.clone())], json!({"vin": VIN}));
        assert_eq!(call().await.status, 200);
        let refused = call().await;
        assert_eq!(refused.error(), (403, "budget_exceeded".to_owned()));
        assert_eq!(refused.json()["budget"]["resets_at"], midnight.to_string());
        hand.advance(Duration::from_secs(1));
        assert_eq!(call().await.status, 403);
        // The owner is told of the first stop of a day, at its time.
        let stops = async || {
            let proof = payer.proof_at("read", hand.now().secs());
            let notes = payer.client.get("/v1/tools/notifications", &[("x-agent-proof", &proof)]).await.json();
            let notes = notes["notifications"].as_array().unwrap().clone();
            let stops = notes.iter().filter(|note| note["type"] == "budget_exceeded");
            stops.map(|note| note["created_at"].clone()).collect::<Vec<_>>()
        };
        let first = json!(hand.now().minus(Duration::from_secs(1)).to_string());
        assert_eq!(stops().await, std::slice::from_ref(&first));
        hand.advance(Duration::from_secs(1));
        assert_eq!(call().await.status, 200);
        assert_eq!(call().await.status, 403);
        assert_eq!(stops().await, [json!(hand.now().to_string()), first], "newest first");
        books::audit(&stack.app.db, payer.agent()).await;
    });
}

#[test]
fn frozen_agents_and_tools_buy_nothing() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        payer.give_credits(&stack, 50_000).await;
        let token = payer.token(&stack).await;
        let spend = || payer.clone().call(VIN_PATH, vec![("authorization", token.clone())], json!({"vin": VIN}));
        // A quote holds credits, then the owner freezes the agent.
        let quoted = payer.client.post(VIN_PATH, &[("x-agent-proof", &payer.proof("write"))], &vin()).await;
        assert_eq!(quoted.status, 402);
        let frozen = payer.change("POST", FREEZES, &json!({"what": "agent"})).await.json();
        assert_eq!(frozen["data"]["credits_released"], "0.005000");
        for answer in [spend().await, pay(&payer).await] {
            assert_eq!(answer.error(), (403, "frozen_by_owner".to_owned()));
            assert_eq!(answer.json()["reason"], "agent");
        }
        assert_eq!(payer.change("POST", &format!("{FREEZES}/lift"), &json!({"what": "agent"})).await.status, 200);
        assert_eq!(spend().await.status, 200);
        payer.change("POST", FREEZES, &json!({"what": "tool", "id": "vin_decode"})).await;
        assert_eq!(spend().await.json()["reason"], "tool");
        assert_eq!(payer.balance(&stack).await, 1_000_000);
        // A freeze can name a tool by its path or by its name. A freeze of an unknown name is refused.
        payer.change("POST", &format!("{FREEZES}/lift"), &json!({"what": "tool", "id": "lookup/vin"})).await;
        assert_eq!(spend().await.status, 200);
        for (what, id) in
            [("tool", "VIN_DECODE"), ("payee", "Service"), ("token", "00000000-0000-4000-8000-000000000000")]
        {
            let answer = payer.change("POST", FREEZES, &json!({"what": what, "id": id})).await;
            assert_eq!(answer.json()["details"][0]["path"], "id", "{what} {id}: {}", answer.text);
        }
        let cap = payer.change("PUT", BUDGETS, &json!({"tools": {"vin": 1}})).await;
        assert_eq!(cap.json()["details"][0]["path"], "tools.vin");
        let (proof, huge) = (payer.proof("write"), r#"{"tools": {"vin_decode": 1e400}}"#);
        let huge = payer.client.send("PUT", BUDGETS, &[("x-agent-proof", &proof)], huge).await.unwrap();
        assert_eq!((huge.status, &huge.json()["details"][0]["path"]), (400, &json!("tools.vin_decode")));
        let (proof, twice) = (payer.proof("write"), r#"{"daily": 1, "daily": 5}"#);
        let twice = payer.client.send("PUT", BUDGETS, &[("x-agent-proof", &proof)], twice).await.unwrap();
        let told = json!([{"path": "daily", "message": "is said twice"}]);
        assert_eq!((twice.status, &twice.json()["details"]), (400, &told));
        for wrong in [json!({"what": "tool"}), json!({"what": "agent", "id": "vin_decode"})] {
            let answer = payer.change("POST", FREEZES, &wrong).await;
            assert_eq!(answer.json()["details"][0]["path"], "id", "{wrong}: {}", answer.text);
        }
        books::audit(&stack.app.db, payer.agent()).await;
    });
}

/// A dry run reports what would happen and changes nothing: no hold, no approval, no charge, no counter.
#[test]
fn a_dry_run_changes_nothing() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 3_000).await;
        let rehearse = |proof: Option<String>, token: Option<String>| {
            let mut headers = vec![("x-dry-run", "true".to_owned())];
            headers.extend(proof.map(|proof| ("x-agent-proof", proof)));
            headers.extend(token.map(|token| ("authorization", token)));
            payer.clone().call(VIN_PATH, headers, vin())
        };
        let stranger = rehearse(None, None).await;
        assert_eq!((stranger.status, &stranger.json()["price_usdc"]), (200, &json!("0.005000")));
        let mine = rehearse(Some(payer.proof("write")), None).await.json();
        assert_eq!((&mine["from_credits_usdc"], &mine["to_sign_usdc"]), (&json!("0.003000"), &json!("0.002000")));
        assert_eq!(mine["would_be_accepted"], true);
        let token = payer.token(&stack).await;
        let short = rehearse(None, Some(token.clone())).await.json();
        assert_eq!(short["refusal"]["error"], "insufficient_credits", "{short}");
        payer.change("PUT", BUDGETS, &json!({"per_transaction": 0.001})).await;
        let over = rehearse(None, Some(token)).await.json();
        assert_eq!((&over["refusal"]["error"], &over["refusal"]["status"]), (&json!("budget_exceeded"), &json!(403)));
        let signed = header(&bare(&payer.authorize(5_000)));
        let signed = payer.clone().call(VIN_PATH, vec![("x-dry-run", "true".to_owned()), ("x-payment", signed)], vin());
        assert_eq!(signed.await.json()["refusal"]["error"], "budget_exceeded", "a signature is an identity");
        let misspelt = payer.clone().call(VIN_PATH, vec![("x-dry-run", "yes please".to_owned())], vin()).await;
        assert_eq!(misspelt.error(), (400, "invalid_request".to_owned()));
        let account = books::audit(&stack.app.db, payer.agent()).await;
        assert_eq!((account.credits.micro(), account.reserved.micro()), (3_000, 0));
    });
}

/// A call that was bought before would get its stored answer. The dry run reports that, and no second charge.
#[test]
fn a_dry_run_of_an_earlier_purchase_reports_a_replay() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        payer.give_credits(&stack, 5_000).await;
        let token = payer.token(&stack).await;
        let rehearse = |mut headers: Vec<(&'static str, String)>, body: Value| {
            headers.push(("x-dry-run", "true".to_owned()));
            payer.clone().call(VIN_PATH, headers, body)
        };
        let named = || vec![("authorization", token.clone()), ("idempotency-key", "invoice-7".to_owned())];
        assert_eq!(rehearse(named(), vin()).await.json()["stored_answer"], Value::Null);
        let bought = payer.clone().call(VIN_PATH, named(), vin()).await.json();
        // No credits are left, and none are needed.
        let told = rehearse(named(), vin()).await.json();
        assert_eq!(
            (&told["would_be_accepted"], &told["from_credits_usdc"]),
            (&json!(true), &json!("0.000000")),
            "{told}"
        );
        assert_eq!(told["stored_answer"]["request_id"], bought["data"]["request_id"], "{told}");
        assert_eq!(told["stored_answer"]["status"], "completed");
        let other = rehearse(named(), json!({"vin": VIN, "model_year": 2003})).await.json();
        let refusal = (&other["refusal"]["error"], &other["refusal"]["status"]);
        assert_eq!(refusal, (&json!("idempotency_key_reused"), &json!(422)), "{other}");

        let signed = vec![("x-payment", header(&bare(&payer.authorize(5_000))))];
        let bought = payer.clone().call(VIN_PATH, signed.clone(), vin()).await.json();
        let told = rehearse(signed.clone(), vin()).await.json();
        assert_eq!(told["stored_answer"]["request_id"], bought["data"]["request_id"], "{told}");
        assert_eq!(told["to_sign_usdc"], "0.000000");
        let other = rehearse(signed, json!({"vin": VIN, "model_year": 2003})).await.json();
        assert_eq!(other["refusal"]["error"], "payment_already_used", "{other}");
    });
}

/// One mail a day to the budget's alert address, through a relay that speaks SMTP, for any number of calls, concurrent
/// or not. A mail that the relay rejects for now is sent with a later charge. No call waits for a mail.
#[test]
fn the_alert_address_gets_one_budget_mail_a_day() {
    run(async {
        let (url, kept) = relay().await;
        let clock = Clock::pinned(Clock::system().now());
        let hand = clock.clone();
        let stack = stack_with(|options| {
            let options = options.with("SMTP_URL", url).with("MAIL_FROM", "agora@example.org");
            local::Options { clock, ..options }
        });
        let stack = stack.await;
        let owned = async |alert_at: f64, email: &str| {
            let payer = Payer::with(&stack, 0).await;
            payer.give_credits(&stack, 1_000_000).await;
            let budget = json!({"daily": 0.5, "alert_at": alert_at, "alert_email": email});
            assert_eq!(payer.change("PUT", BUDGETS, &budget).await.status, 200);
            let token = payer.token(&stack).await;
            (payer, token)
        };
        let call = async |(payer, token): &(Payer, String)| {
            let called = payer.clone().call(VIN_PATH, vec![("authorization", token.clone())], vin()).await;
            assert_eq!(called.status, 200, "{}", called.text);
        };
        // The stream is read in order: once a call is counted, its warning has been handled.
        let mails_after = async |calls: u64| {
            let counted = || async { (stats::load(&stack.app.db).await.unwrap().completed == calls).then_some(()) };
            eventually("the stream", counted).await;
            kept.lock().unwrap().matches("Subject: A budget has reached its alert level").count()
        };
        let first = owned(0.02, "owner@example.com").await;
        call(&first).await;
        assert_eq!(mails_after(1).await, 0, "below the level");
        join_all((0..10).map(|_| call(&first))).await;
        assert_eq!(mails_after(11).await, 1);
        let mail = kept.lock().unwrap().clone();
        for part in [
            "To: <owner@example.com>",
            "of 0.500000 USDC",
            "USDC of it with the access token",
            "POST /v1/agents/me/freezes",
            &format!("Wallet: {}", first.0.address()),
        ] {
            assert!(mail.contains(part), "{part} in {mail}");
        }

        let second = owned(0.01, "busy@example.com").await;
        for calls in [12, 13] {
            call(&second).await;
            assert_eq!(mails_after(calls).await, 1, "turned away, and not asked again at once");
        }
        hand.advance(Duration::from_secs(601));
        for calls in [14, 15] {
            call(&second).await;
            assert_eq!(mails_after(calls).await, 2);
        }
    });
}

/// Agents choose the address and wallets are free, so an address gets a limited number of mails a day from all wallets
/// together.
#[test]
fn mails_to_one_address_are_limited_per_day() {
    run(async {
        let stack = stack().await;
        for _ in 0..mail::MAX_MAILS_A_DAY {
            assert!(mail::may_mail(&stack.app.db, "full@example.com", stack.app.clock.now()).await.unwrap());
        }
        for (email, mails) in [("full@example.com", 0), ("free@example.com", 1)] {
            let budget = json!({"daily": 0.5, "alert_at": 0.01, "alert_email": email});
            let payer = Payer::with(&stack, 0).await;
            payer.give_credits(&stack, 1_000_000).await;
            assert_eq!(payer.change("PUT", BUDGETS, &budget).await.status, 200);
            let token = payer.token(&stack).await;
            let called = payer.clone().call(VIN_PATH, vec![("authorization", token)], vin()).await;
            assert_eq!(called.status, 200);
            let calls = mails as u64 + 1;
            let counted = || async { (stats::load(&stack.app.db).await.unwrap().completed == calls).then_some(()) };
            eventually("the stream", counted).await;
            let written = std::fs::read_dir(&stack.outbox).map_or(0, |files| files.count());
            assert_eq!(written, mails, "{email}");
        }
    });
}

#[test]
fn unusually_high_spending_is_reported_once() {
    run(async {
        let now = Clock::system().now();
        let clock = Clock::pinned(now);
        let hand = clock.clone();
        let stack = stack_with(|options| local::Options { clock, ..options }).await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 1_000_000_000).await;
        let token = payer.token(&stack).await;
        let call = || payer.clone().call(VIN_PATH, vec![("authorization", token.clone())], vin());
        for _ in 0..3 {
            assert_eq!(call().await.status, 200);
            hand.advance(Duration::from_secs(24 * 3600));
        }
        let calls = join_all((0..202).map(|_| call())).await;
        assert!(calls.iter().all(|answer| answer.status == 200));
        let warnings = crate::support::eventually("a warning", || async {
            let proof = payer.proof_at("read", hand.now().secs());
            let notes = payer.client.get("/v1/tools/notifications", &[("x-agent-proof", &proof)]).await.json();
            let notes = notes["notifications"].as_array()?.clone();
            let of = notes.iter().filter(|note| note["payload"]["reason"] == "above_baseline").count();
            (of > 0).then_some(of)
        });
        assert_eq!(warnings.await, 1);
    });
}
