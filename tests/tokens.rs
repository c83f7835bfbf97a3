//! Access tokens: how the wallet manages them, and what they must not do.

use std::time::Duration;

use base::clock::{Clock, Timestamp};
use base::digest::sha256;
use base::ids::{ReceiptId, RequestId, random_uuid};
use base::money::Usdc;
use futures_util::future::join_all;
use gate::jobs::job::Lane;
use gate::jobs::sweep;
use ledger::charge::{Charge, Close, Purchase};
use ledger::day::Counted;
use ledger::{day, token_spend};
use platform::auth::token::{self, TokenCaps};
use platform::store::db::Query;
use platform::store::{Key, Write};
use serde_json::{Value, json};
use tools_sms::phone::{self, Registered};

use crate::support::{Answer, Payer, READ_PATH, VIN, VIN_PATH, books, eventually, run, stack, stack_with};

const TOKENS: &str = "/v1/agents/me/access-tokens";
const BUDGETS: &str = "/v1/agents/me/budgets";
const TEXT_PATH: &str = "/v1/tools/sms/send";

/// A lookup, 5,000 micro-USDC, paid by a token.
async fn lookup(payer: &Payer, token: &str) -> Answer {
    payer.client.post(VIN_PATH, &[("authorization", token)], &json!({"vin": VIN})).await
}

/// A cap of this many micro-USDC.
fn micro(micro: u64) -> Option<Usdc> {
    Some(Usdc::from_micro(micro))
}

/// The cap that refused a call: 403, before anything was charged.
#[track_caller]
fn stopped_by(answer: &Answer) -> String {
    assert_eq!(answer.error(), (403, "budget_exceeded".to_owned()));
    answer.json()["budget"]["reason"].as_str().expect("a reason").to_owned()
}

#[test]
fn a_token_is_minted_used_listed_and_revoked() {
    run(async {
        let stack = stack_with(|options| options.with("ACCESS_TOKEN_PREFIXES", "oneshot_,agent_")).await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 20_000).await;
        let minted = payer.change("POST", TOKENS, &json!({"name": "laptop", "expires_in_days": 7})).await;
        assert_eq!(minted.status, 201, "{}", minted.text);
        let minted = minted.json()["data"].clone();
        let secret = minted["token"].as_str().unwrap();
        assert!(secret.starts_with("oneshot_") && secret.len() == "oneshot_".len() + 64);
        assert_eq!(minted["token_prefix"], secret[..16]);
        let bearer = format!("Bearer {secret}");

        let me = payer.client.get("/v1/agents/me", &[("authorization", &bearer)]).await.json();
        assert_eq!(me["data"]["auth_mode"], "access_token");
        assert_eq!(me["data"]["wallet_address"], payer.address().to_string());
        let paid = payer.client.post(VIN_PATH, &[("authorization", &bearer)], &json!({"vin": VIN})).await;
        assert_eq!(paid.status, 200, "{}", paid.text);
        let id = paid.json()["data"]["request_id"].as_str().unwrap().to_owned();
        let polled = payer.client.get(&format!("/v1/requests/{id}"), &[("authorization", &bearer)]).await;
        assert_eq!(polled.json()["status"], "completed");

        let listed = payer.get(TOKENS).await.json();
        let listed = &listed["data"]["tokens"][0];
        assert_eq!((&listed["id"], &listed["spent_today_usdc"]), (&minted["id"], &json!("0.005000")));
        assert!(listed["last_used_at"].is_string(), "{listed}");
        assert!(!listed.to_string().contains(secret), "a secret is shown once");
        let row = format!("{TOKENS}/{}", minted["id"].as_str().unwrap());
        let revoked = payer.change("DELETE", &row, &json!({})).await.json();
        assert_eq!(payer.change("DELETE", &row, &json!({})).await.json(), revoked, "again is the same");
        for path in ["/v1/agents/me", "/v1/tools/balance"] {
            let answer = payer.client.get(path, &[("authorization", &bearer)]).await;
            assert_eq!(answer.error(), (401, "access_token_revoked".to_owned()));
        }
        let refused = payer.client.post(VIN_PATH, &[("authorization", &bearer)], &json!({"vin": VIN})).await;
        assert_eq!(refused.error(), (401, "access_token_revoked".to_owned()));
        let of = |active: bool| format!("{TOKENS}?active={active}");
        assert_eq!(payer.get(&of(true)).await.json()["data"]["tokens"], json!([]));
        assert_eq!(payer.get(&of(false)).await.json()["data"]["tokens"].as_array().unwrap().len(), 1);
        let foreign = Payer::with(&stack, 0).await;
        let answer = foreign.change("DELETE", &row, &json!({})).await;
        assert_eq!(answer.error(), (404, "access_token_not_found".to_owned()));
    });
}

#[test]
fn a_token_cannot_change_its_owners_settings() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        let token = payer.token(&stack).await;
        let bearer = [("authorization", token.as_str()), ("content-type", "application/json")];
        for (method, path, status, code) in [
            ("PUT", "/v1/agents/me/budgets", 403, "budgets_read_only_for_access_tokens"),
            ("POST", TOKENS, 403, "access_tokens_wallet_only"),
            ("GET", TOKENS, 403, "access_tokens_wallet_only"),
            ("DELETE", "/v1/agents/me/access-tokens/x", 403, "access_tokens_wallet_only"),
            ("POST", "/v1/agents/me/freezes/lift", 403, "access_tokens_wallet_only"),
            ("POST", "/v1/credits/top-up", 503, "route_unavailable_for_access_tokens"),
        ] {
            let body = if path.contains("freezes") { r#"{"what":"agent"}"# } else { "{}" };
            let answer = payer.client.send(method, path, &bearer, body).await.unwrap();
            assert_eq!(answer.error(), (status, code.to_owned()), "{method} {path}");
        }
        // No wait helps, and the message says so.
        let closed = payer.client.send("POST", "/v1/credits/top-up", &bearer, r#"{"amount": 1}"#).await.unwrap();
        assert!(closed.json()["message"].as_str().unwrap().contains("permanent"), "{}", closed.text);
        assert_eq!(closed.header("retry-after"), None);
        assert_eq!(payer.client.get("/v1/agents/me/budgets", &bearer).await.status, 200);
        let other = Payer::with(&stack, 0).await.address().to_string();
        let answer = payer.client.get("/v1/agents/me", &[bearer[0], ("x-agent-id", &other)]).await;
        assert_eq!(answer.error(), (403, "agent_mismatch".to_owned()));
        for wrong in ["Bearer", "Bearer x", "Bearer agent_00", "Bearer soul_0123"] {
            let answer = payer.client.get("/v1/agents/me", &[("authorization", wrong)]).await;
            assert_eq!(answer.error(), (401, "access_token_invalid".to_owned()), "{wrong}");
        }
    });
}

#[test]
fn tokens_expire_and_are_limited_to_twenty() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let hand = clock.clone();
        let stack = stack_with(|options| local::Options { clock, ..options }).await;
        let payer = Payer::with(&stack, 0).await;
        let mint = || {
            let (payer, proof) = (payer.clone(), payer.proof_at("write", hand.now().secs()));
            payer.call(TOKENS, vec![("x-agent-proof", proof)], json!({"expires_in_days": 1}))
        };
        let answers = join_all((0..40).map(|_| mint())).await;
        assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 20);
        // Each revoked token makes room for one more, also concurrently.
        let ids = answers.iter().filter(|answer| answer.status == 201).take(5);
        let ids: Vec<String> = ids.map(|answer| answer.json()["data"]["id"].as_str().unwrap().to_owned()).collect();
        let revoke = |id: &String| {
            let (payer, path) = (payer.clone(), format!("{TOKENS}/{id}"));
            let proof = payer.proof_at("write", hand.now().secs());
            async move {
                let headers = [("x-agent-proof", proof.as_str()), ("content-type", "application/json")];
                payer.client.send("DELETE", &path, &headers, "{}").await.unwrap().status
            }
        };
        let (revoked, minted) = tokio::join!(join_all(ids.iter().map(revoke)), join_all((0..20).map(|_| mint())));
        assert_eq!(revoked, [200; 5]);
        let early = minted.iter().filter(|answer| answer.status == 201).count();
        let late = join_all((0..10).map(|_| mint())).await.iter().filter(|answer| answer.status == 201).count();
        assert_eq!(early + late, 5);
        let refused = answers.iter().find(|answer| answer.status != 201).unwrap();
        assert_eq!(refused.error(), (409, "too_many_access_tokens".to_owned()));
        let minted = answers.iter().rfind(|answer| answer.status == 201).unwrap().json();
        let bearer = format!("Bearer {}", minted["data"]["token"].as_str().unwrap());
        assert_eq!(payer.client.get("/v1/agents/me", &[("authorization", &bearer)]).await.status, 200);
        hand.advance(Duration::from_secs(24 * 3600));
        let answer = payer.client.get("/v1/agents/me", &[("authorization", &bearer)]).await;
        assert_eq!(answer.error(), (401, "access_token_invalid".to_owned()));
        assert_eq!(mint().await.status, 201, "expired tokens make room");
    });
}

/// Tokens from before the rows by id, more than one answer lists: each can be found, frozen and revoked.
#[test]
fn old_tokens_are_found_by_id_beyond_one_page() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        let (agent, table, now) = (payer.agent(), &stack.app.db.tables.agents, stack.app.clock.now());
        let partition = format!("AGENT#{agent}");
        let old = |number: usize, revoked: bool| {
            let secret = format!("agent_{number:032x}{}", const_hex::encode(agent.bytes()));
            let sk = format!("TOKEN#{}", const_hex::encode(sha256(secret.as_bytes())));
            let mut row = json!({
                "id": random_uuid(), "wallet": payer.address(), "shown": &secret[..16], "created_at": now.millis(),
            });
            if revoked {
                row["revoked_at"] = json!(now.millis());
            }
            (secret, row["id"].clone(), Write::put(table, Key::new(partition.clone(), sk), &row).unwrap())
        };
        let mut rows: Vec<_> = (0..620).map(|number| old(number, number >= 20)).collect();
        let made = Write::put(table, Key::new(partition.clone(), "TOKENS-MADE"), &json!({"made": 620})).unwrap();
        let writes: Vec<Write> = rows.iter().map(|row| row.2.clone()).chain([made]).collect();
        stack.app.db.batch_write(writes).await.unwrap();

        let full = payer.change("POST", TOKENS, &json!({})).await;
        assert_eq!(full.error(), (409, "too_many_access_tokens".to_owned()), "twenty of them are active");
        let mut listed = std::collections::BTreeSet::new();
        let mut path = format!("{TOKENS}?limit=90");
        loop {
            let page = payer.get(&path).await.json()["data"].clone();
            let tokens = page["tokens"].as_array().unwrap();
            assert!(tokens.len() <= 90);
            listed.extend(tokens.iter().map(|token| token["id"].as_str().unwrap().to_owned()));
            let Some(next) = page["next_cursor"].as_str() else { break };
            assert_eq!(page["has_more"], true);
            path = format!("{TOKENS}?limit=90&cursor={next}");
        }
        assert_eq!(listed.len(), 620);
        assert_eq!(
            payer.get(&format!("{TOKENS}?active=true")).await.json()["data"]["tokens"].as_array().unwrap().len(),
            20
        );
        assert_eq!(payer.get(&format!("{TOKENS}?cursor=x")).await.error(), (400, "invalid_cursor".to_owned()));
        rows.truncate(20);
        for (secret, id, _) in &rows {
            let bearer = format!("Bearer {secret}");
            let me = async || payer.client.get("/v1/agents/me", &[("authorization", &bearer)]).await;
            assert_eq!(me().await.status, 200);
            let frozen = payer.change("POST", "/v1/agents/me/freezes", &json!({"what": "token", "id": id})).await;
            assert_eq!(frozen.status, 200, "{}", frozen.text);
            let path = format!("{TOKENS}/{}", id.as_str().unwrap());
            assert_eq!(payer.change("DELETE", &path, &json!({})).await.status, 200);
            assert_eq!(me().await.error(), (401, "access_token_revoked".to_owned()));
        }
        assert_eq!(payer.change("POST", TOKENS, &json!({})).await.status, 201, "what was taken back made room");
    });
}

/// A revoked token is reported as revoked for a while, then as invalid. Its rows have an expiry time.
#[test]
fn revoked_and_expired_tokens_are_forgotten() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let hand = clock.clone();
        let stack = stack_with(|options| local::Options { clock, ..options }).await;
        let payer = Payer::with(&stack, 0).await;
        let (db, agent) = (&stack.app.db, payer.agent());
        let mint = async |days: Option<u32>| {
            let expires = days.map(|days| hand.now().plus(Duration::from_secs(24 * 3600) * days));
            token::mint(db, "agent_", payer.address(), None, expires, hand.now()).await.unwrap().unwrap()
        };
        let (brief, lasting, revoked) = (mint(Some(1)).await, mint(None).await, mint(None).await);
        assert!(token::revoke(db, agent, revoked.token.id, hand.now()).await.unwrap().is_some());
        let error = async |minted: &token::Minted| {
            let bearer = format!("Bearer {}", minted.secret);
            let answer = payer.client.get("/v1/agents/me", &[("authorization", &bearer)]).await;
            (answer.status != 200).then(|| answer.error().1)
        };
        hand.advance(Duration::from_secs(24 * 3600));
        assert_eq!(error(&brief).await.as_deref(), Some("access_token_invalid"));
        hand.advance(token::KEPT_DEAD - Duration::from_secs(24 * 3600 + 1));
        assert_eq!(error(&revoked).await.as_deref(), Some("access_token_revoked"));
        hand.advance(Duration::from_secs(1));
        assert_eq!(error(&revoked).await.as_deref(), Some("access_token_invalid"));
        assert_eq!(error(&lasting).await, None);
        hand.advance(Duration::from_secs(24 * 3600));
        // Both rows of a revoked or expired token have an expiry time; those of a valid one have not.
        let query = Query::prefixed(&db.tables.agents, &format!("AGENT#{agent}"), "TOKEN", 100).unwrap();
        let rows: Vec<Value> = db.query(query).await.unwrap();
        let now = hand.now().secs();
        let may_go = rows.iter().filter(|row| row["expires"].as_i64().is_some_and(|expires| expires <= now)).count();
        assert_eq!((rows.len(), may_go), (7, 4), "{rows:?}");
    });
}

/// A free change with an idempotency key is made once. Its answer is stored without the secret. Another body with the
/// same key is refused.
#[test]
fn a_change_with_an_idempotency_key_is_made_once() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        let mint = |name: &'static str| {
            let headers = vec![("x-agent-proof", payer.proof("write")), ("idempotency-key", "mint-1".to_owned())];
            payer.clone().call(TOKENS, headers, json!({"name": name}))
        };
        let answers = join_all((0..10).map(|_| mint("laptop"))).await;
        for answer in &answers {
            assert!(
                answer.status == 201 || answer.error() == (409, "request_in_progress".to_owned()),
                "{}",
                answer.text
            );
        }
        let again = mint("laptop").await;
        assert_eq!(again.status, 201);
        assert!(again.json()["data"]["token"].is_null(), "the secret is shown once");
        assert_eq!(mint("phone").await.error(), (422, "idempotency_key_reused".to_owned()));
        let listed = payer.get(TOKENS).await.json();
        assert_eq!(listed["data"]["tokens"].as_array().unwrap().len(), 1, "made once");
        assert_eq!(listed["data"]["tokens"][0]["id"], again.json()["data"]["id"]);
    });
}

#[test]
fn the_owner_sees_whether_a_token_was_used() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 5_000).await;
        let used = async || payer.get(TOKENS).await.json()["data"]["tokens"][0]["last_used_at"].clone();
        let pays = payer.token(&stack).await;
        assert_eq!(used().await, json!(null));
        let paid = payer.client.post(VIN_PATH, &[("authorization", &pays)], &json!({"vin": VIN})).await;
        assert_eq!(paid.status, 200, "{}", paid.text);
        assert!(used().await.is_string(), "it paid");
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        let reads = payer.token(&stack).await;
        assert_eq!(used().await, json!(null), "the newest comes first");
        payer.client.get("/v1/agents/me", &[("authorization", &reads)]).await;
        assert!(used().await.is_string(), "it read");
    });
}

/// Two tokens of one wallet at once: each has room for fifty of its two hundred calls.
#[test]
fn a_tokens_caps_hold_for_any_number_of_calls() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 1_000_000).await;
        let minted = async |body: Value| {
            let minted = payer.change("POST", TOKENS, &body).await;
            assert_eq!(minted.status, 201, "{}", minted.text);
            let minted = minted.json()["data"].clone();
            let bearer = format!("Bearer {}", minted["token"].as_str().unwrap());
            (minted, bearer)
        };
        let (daily, of_day) = minted(json!({"daily": 0.25})).await;
        let (lifetime, of_life) = minted(json!({"lifetime_usdc": "0.25", "per_transaction": 1})).await;
        assert_eq!((&daily["daily_usdc"], &daily["lifetime_usdc"]), (&json!("0.250000"), &Value::Null));
        assert_eq!(lifetime["per_transaction_usdc"], "1.000000");
        let calls = |token: &String| {
            let calls = (0..200).map(|_| (payer.clone(), token.clone()));
            join_all(calls.map(|(payer, token)| async move { lookup(&payer, &token).await }))
        };
        let (of_days, of_lives) = tokio::join!(calls(&of_day), calls(&of_life));
        for (answers, reason) in [(of_days, "token_daily"), (of_lives, "token_lifetime")] {
            let (done, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
            assert_eq!((done.len(), refused.len()), (50, 150), "{reason}");
            for refused in refused {
                assert_eq!(stopped_by(&refused), reason);
                let budget = refused.json()["budget"].clone();
                assert_eq!((&budget["cap"], &budget["spent"]), (&json!("0.250000"), &json!("0.250000")), "{budget}");
                assert_eq!(budget["resets_at"].is_string(), reason == "token_daily", "{budget}");
            }
        }
        let account = books::audit(&stack.app.db, payer.agent()).await;
        assert_eq!(account.credits.micro(), 500_000);

        let listed = payer.get(TOKENS).await.json()["data"]["tokens"].clone();
        for (token, in_all) in [(&daily, Value::Null), (&lifetime, json!("0.250000"))] {
            let listed = listed.as_array().unwrap().iter().find(|listed| listed["id"] == token["id"]).unwrap();
            let spent = (&listed["spent_today_usdc"], &listed["spent_usdc"]);
            assert_eq!(spent, (&json!("0.250000"), &in_all), "{listed}");
        }
        for (token, minted) in [(&of_day, &daily), (&of_life, &lifetime)] {
            for path in ["/v1/agents/me", BUDGETS] {
                let own = payer.client.get(path, &[("authorization", token)]).await.json()["data"]["token"].clone();
                assert_eq!((&own["id"], &own["remaining_usdc"]), (&minted["id"], &json!("0.000000")), "{own}");
            }
        }
        assert_eq!(payer.get(BUDGETS).await.json()["data"].get("token"), None, "a wallet has no caps of a token");
    });
}

/// A daily cap starts again at midnight, a cap for life does not. Failed work gives its room back, once.
#[test]
fn a_cap_for_life_survives_midnight_and_refunds_give_room() {
    run(async {
        let now = Clock::system().now();
        let midnight = Timestamp::from_secs((now.secs() / 86_400 + 1) * 86_400);
        let clock = Clock::pinned(midnight.minus(Duration::from_secs(2)));
        let hand = clock.clone();
        let stack = stack_with(|options| local::Options { clock, ..options }).await;
        let (db, payer) = (&stack.app.db, Payer::with(&stack, 0).await);
        payer.give_credits(&stack, 100_000).await;
        let caps = TokenCaps { daily: micro(5_000), lifetime: micro(12_000), per_transaction: None };
        let (id, token) = payer.capped_token(&stack, caps).await;
        let spent = async || token_spend::load(db, payer.agent(), id).await.unwrap().spent.micro();
        assert_eq!(lookup(&payer, &token).await.status, 200);
        assert_eq!(stopped_by(&lookup(&payer, &token).await), "token_daily");
        hand.advance(Duration::from_secs(2));
        assert_eq!(lookup(&payer, &token).await.status, 200, "a new day");
        hand.advance(Duration::from_secs(24 * 3600));
        let refused = lookup(&payer, &token).await;
        assert_eq!((stopped_by(&refused).as_str(), spent().await), ("token_lifetime", 10_000));
        assert_eq!(refused.json()["budget"]["spent"], "0.010000");

        // The price fits exactly. The work fails, so that there is room for another.
        let bearer = [("authorization", token.as_str())];
        for _ in 0..2 {
            let dead = json!({"url": "http://no-such-host.invalid/"});
            let accepted = payer.client.post(READ_PATH, &bearer, &dead).await;
            assert_eq!(accepted.status, 202, "{}", accepted.text);
            let path = format!("/v1/requests/{}", accepted.json()["request_id"].as_str().unwrap());
            eventually("the failure", || async {
                let job = payer.client.get(&path, &bearer).await.json();
                (job["status"] == "failed").then_some(())
            })
            .await;
            hand.advance(Duration::from_secs(600));
            sweep::sweep(db, Lane::Tools, &*stack.queue, hand.now()).await.expect("a sweep");
            assert_eq!(payer.client.get(&path, &bearer).await.json()["status"], "failed");
            assert_eq!(spent().await, 10_000, "given back once");
        }
        let account = books::audit(db, payer.agent()).await;
        assert_eq!(account.credits.micro(), 90_000);
    });
}

/// Copies of one call that arrive at once: the fastest takes the last room, and the others get its answer. Nobody was
/// stopped, so the owner is told of nothing.
#[test]
fn copies_of_a_call_are_not_stopped_by_the_room_that_it_took() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 5_000).await;
        for caps in [
            TokenCaps { lifetime: micro(5_000), ..TokenCaps::default() },
            TokenCaps { daily: micro(5_000), ..TokenCaps::default() },
            // The credits themselves are the last room.
            TokenCaps::default(),
        ] {
            let (_, token) = payer.capped_token(&stack, caps).await;
            let headers = [("authorization", token.as_str()), ("idempotency-key", token.as_str())];
            let body = json!({"vin": VIN});
            let copies = join_all((0..8).map(|_| payer.client.post(VIN_PATH, &headers, &body))).await;
            for copy in &copies {
                assert_eq!((copy.status, &copy.text), (200, &copies[0].text), "{caps:?}");
            }
            payer.give_credits(&stack, 5_000).await;
        }
        let told = payer.get("/v1/tools/notifications").await.json();
        let told: Vec<&Value> = told["notifications"].as_array().expect("a list").iter().collect();
        assert!(!told.iter().any(|note| note["type"] == "budget_exceeded"), "{told:?}");
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 5_000);
    });
}

/// Whoever is told a price may pay it, as far as anybody knows then. Between price and payment the caps are judged again.
#[test]
fn a_token_cap_is_told_before_a_price() {
    run(async {
        let stack = stack().await;
        let (ada, bob) = (Payer::with(&stack, 0).await, Payer::with(&stack, 0).await);
        ada.give_credits(&stack, 1_000_000).await;
        let number = async |payer: &Payer| {
            let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
            let registered = phone::register(&stack.worker.toolbox, payer.agent(), RequestId::random(), deadline).await;
            let Ok(Registered::New(phone)) = registered else { panic!("a number: {registered:?}") };
            phone.number
        };
        number(&ada).await;
        let text = json!({"to_number": number(&bob).await.as_str(), "message": "Hello"});
        let rehearse = async |token: &str| {
            let headers = [("authorization", token), ("x-dry-run", "true")];
            ada.client.post(VIN_PATH, &headers, &json!({"vin": VIN})).await.json()
        };

        let (_, token) = ada.capped_token(&stack, TokenCaps { lifetime: micro(5_000), ..TokenCaps::default() }).await;
        let bearer = ("authorization", token.as_str());
        assert_eq!(rehearse(&token).await["would_be_accepted"], true);
        let priced = ada.client.post(TEXT_PATH, &[bearer], &text).await;
        assert_eq!(priced.status, 402, "{}", priced.text);
        let quote = priced.json()["context"]["quote_id"].as_str().expect("a quote").to_owned();
        assert_eq!(lookup(&ada, &token).await.status, 200);
        let paid = ada.client.post(TEXT_PATH, &[bearer, ("x-quote-id", &quote)], &text).await;
        assert_eq!(stopped_by(&paid), "token_lifetime");
        assert_eq!(stopped_by(&ada.client.post(TEXT_PATH, &[bearer], &text).await), "token_lifetime");
        let rehearsed = rehearse(&token).await;
        assert_eq!(rehearsed["refusal"]["budget"]["reason"], "token_lifetime", "{rehearsed}");

        for (caps, reason) in [
            (TokenCaps { per_transaction: micro(3_499), ..TokenCaps::default() }, "token_per_transaction"),
            (TokenCaps { daily: micro(3_499), ..TokenCaps::default() }, "token_daily"),
        ] {
            let (_, token) = ada.capped_token(&stack, caps).await;
            let priced = ada.client.post(TEXT_PATH, &[("authorization", &token)], &text).await;
            assert_eq!(stopped_by(&priced), reason, "3,500 are too much");
            assert_eq!(rehearse(&token).await["refusal"]["budget"]["reason"], reason);
            assert_eq!(stopped_by(&lookup(&ada, &token).await), reason);
        }
        assert_eq!(books::audit(&stack.app.db, ada.agent()).await.credits.micro(), 995_000);
    });
}

/// A refusal tells what counts against the token's cap, and not what other calls of the wallet have open.
#[test]
fn a_refusal_counts_only_what_its_cap_counts() {
    run(async {
        let stack = stack().await;
        let (db, payer, now) = (&stack.app.db, Payer::with(&stack, 0).await, stack.app.clock.now());
        payer.give_credits(&stack, 5_000).await;
        let today = day::name(now);
        let open =
            Counted { day: &today, amount: Usdc::from_micro(9_000), tool: "web_read", payee: "service", token: None };
        db.write(day::commit(db, payer.agent(), open, None, None, now).unwrap()).await.unwrap();
        for (caps, reason) in [
            (TokenCaps { daily: micro(4_000), ..TokenCaps::default() }, "token_daily"),
            (TokenCaps { lifetime: micro(4_000), ..TokenCaps::default() }, "token_lifetime"),
            (TokenCaps { per_transaction: micro(4_000), ..TokenCaps::default() }, "token_per_transaction"),
        ] {
            let (_, token) = payer.capped_token(&stack, caps).await;
            let budget = lookup(&payer, &token).await.json()["budget"].clone();
            let told = [&budget["reason"], &budget["spent"], &budget["in_flight"]];
            assert_eq!(told, [reason, "0.000000", "0.000000"], "{budget}");
            assert_eq!(budget["resets_at"].is_string(), reason == "token_daily", "{budget}");
        }
    });
}

#[test]
fn a_misspelt_cap_mints_nothing() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        for (body, path) in [
            (json!({"expire_in_days": 1, "daily": 1}), "expire_in_days"),
            (json!({"dayly": null}), "dayly"),
            (json!({"token": "x"}), "token"),
            (json!({"daily": "1e3"}), "daily"),
            (json!({"daily": 0}), "daily"),
            (json!({"lifetime": -1}), "lifetime"),
            (json!({"per_transaction": true}), "per_transaction"),
            (json!({"lifetime_usdc": "1.0000000"}), "lifetime_usdc"),
            (json!({"daily": 1, "daily_usdc": "2.00"}), "daily_usdc"),
        ] {
            let refused = payer.change("POST", TOKENS, &body).await;
            assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{body}");
            assert_eq!(refused.json()["details"][0]["path"], path, "{body}: {}", refused.text);
        }
        assert_eq!(payer.get(TOKENS).await.json()["data"]["tokens"], json!([]));
        let minted = payer.change("POST", TOKENS, &json!({"daily": 1, "daily_usdc": "1.00", "lifetime": null})).await;
        let minted = minted.json()["data"].clone();
        assert_eq!((&minted["daily_usdc"], &minted["lifetime_usdc"]), (&json!("1.000000"), &Value::Null), "{minted}");
    });
}

#[test]
fn tokens_of_before_have_no_caps() {
    run(async {
        let stack = stack().await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 5_000).await;
        let secret = format!("agent_{}{}", "0c".repeat(16), const_hex::encode(payer.agent().bytes()));
        let sk = format!("TOKEN#{}", const_hex::encode(sha256(secret.as_bytes())));
        let row = json!({
            "id": random_uuid(), "wallet": payer.address(), "shown": &secret[..16],
            "created_at": stack.app.clock.now().millis(),
        });
        let key = Key::new(format!("AGENT#{}", payer.agent()), sk);
        stack.app.db.write(Write::put(&stack.app.db.tables.agents, key, &row).unwrap()).await.unwrap();
        let token = format!("Bearer {secret}");
        assert_eq!(lookup(&payer, &token).await.status, 200);
        let own = payer.client.get("/v1/agents/me", &[("authorization", &token)]).await.json()["data"]["token"].clone();
        for cap in ["per_transaction_usdc", "daily_usdc", "lifetime_usdc", "spent_usdc", "remaining_usdc"] {
            assert_eq!(own[cap], Value::Null, "{own}");
        }
        assert_eq!(own["spent_today_usdc"], "0.005000");
    });
}

/// Work that used a part of its price was paid for, and then the payment disappeared from the chain for good. What it kept
/// no longer counts either, and nothing is given back twice.
#[test]
fn what_is_never_paid_leaves_the_counters_as_they_were() {
    run(async {
        let stack = stack().await;
        let (db, payer, now) = (&stack.app.db, Payer::with(&stack, 0).await, stack.app.clock.now());
        let (id, _) = payer.capped_token(&stack, TokenCaps::default()).await;
        let (request_id, price) = (RequestId::random(), Usdc::from_micro(5_000));
        let receipt_id = ReceiptId::of(request_id, now);
        let (agent, tool, payee) = (payer.agent(), "voice_call", "service");
        let of = Purchase { agent, tool, payee, request_id, receipt_id: &receipt_id };
        let day = day::name(now);
        let charge = Charge { counted: price, day: day.clone(), token: Some(id), for_life: true, ..Charge::default() };
        let counters = async || {
            let (day, spend) = tokio::join!(day::load(db, agent, &day), token_spend::load(db, agent, id));
            let (day, spend) = (day.unwrap(), spend.unwrap());
            [day.committed, day.in_flight, day.of_token(id), spend.spent].map(Usdc::micro)
        };
        let count = charge.count(db, of, None, None, now).unwrap().expect("a write");
        let for_life = charge.count_for_life(db, of, Some(price)).unwrap().expect("a write");
        db.transact(&[count.clone(), for_life.clone()]).await.unwrap();
        assert_eq!(counters().await, [5_000; 4]);
        let full = db.transact(&[count, for_life]).await.unwrap_err();
        assert!(full.refused(0).is_none() && full.refused(1).is_some(), "only the token's cap refuses: {full:?}");
        let close = Close::keeping(price, Usdc::from_micro(2_000));
        db.transact(&charge.close(db, of, close, now).unwrap()).await.unwrap();
        assert_eq!(counters().await, [2_000, 0, 2_000, 2_000]);
        db.transact(&charge.resume(db, of).unwrap()).await.unwrap();
        assert_eq!(counters().await, [2_000, 5_000, 2_000, 2_000]);
        db.transact(&charge.forfeit(db, of, Some(close.kept)).unwrap()).await.unwrap();
        assert_eq!(counters().await, [0; 4]);
    });
}
