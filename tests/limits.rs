//! Rate limits: exact under concurrency and across processes, per subject and window; and the emergency stop.

use std::time::Duration;

use api::routes;
use axum::Router;
use axum::routing::get;
use base::clock::{Clock, Timestamp};
use gate::limits::{self, Class, Subject};
use lambda_http::lambda_runtime::{Context, LambdaEvent};
use local::{Options, Stack};
use platform::auth::token;
use platform::http::lambda;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{Answer, Payer, VIN, VIN_PATH, root, run, stack_with};

const ME: &str = "/v1/agents/me";

/// A stack with the published limits, whose clock stands at the beginning of a minute.
async fn limited() -> Stack {
    let now = Clock::system().now().secs();
    let clock = Clock::pinned(Timestamp::from_secs(now - now % 60));
    stack_with(|options| Options { clock, ..options.with("RATE_LIMIT_SCALE", "1") }).await
}

/// Another process of the same deployment.
async fn beside(stack: &Stack) -> Stack {
    let (environment, clock) = (stack.environment.clone(), stack.app.clock.clone());
    stack_with(|options| Options { environment, clock, ..options }).await
}

async fn ask(payer: &Payer, stack: &Stack) -> Answer {
    let proof = payer.proof_at("read", stack.app.clock.now().secs());
    payer.client.get(ME, &[("x-agent-proof", &proof)]).await
}

fn left(answer: &Answer) -> &str {
    answer.header("ratelimit-remaining").expect("a counted answer")
}

#[test]
fn concurrent_reads_over_two_processes_stop_at_120() {
    run(async {
        let (one, payer) = {
            let stack = limited().await;
            let payer = Payer::with(&stack, 0).await;
            (stack, payer)
        };
        let two = beside(&one).await;
        let now = one.app.clock.now().secs();
        let calls: Vec<_> = (0..200)
            .map(|call| {
                let payer = payer.at(if call % 2 == 0 { &one } else { &two });
                tokio::spawn(async move {
                    let proof = payer.proof_at("read", now);
                    payer.client.get(ME, &[("x-agent-proof", &proof)]).await
                })
            })
            .collect();
        let mut through = Vec::new();
        for call in calls {
            let answer = call.await.unwrap();
            if answer.status == 200 {
                through.push(left(&answer).parse::<u64>().unwrap());
                continue;
            }
            assert_eq!(answer.error(), (429, "rate_limit_exceeded".to_owned()), "{}", answer.text);
            assert_eq!(answer.json()["retry_after"], 60);
            assert_eq!((answer.header("retry-after"), left(&answer)), (Some("60"), "0"));
        }
        through.sort_unstable();
        assert_eq!(through, (0..120).collect::<Vec<u64>>(), "each counted once");

        let other = Payer::with(&one, 0).await;
        assert_eq!(left(&ask(&other, &one).await), "119", "another agent's traffic does not count");
        one.app.clock.advance(Duration::from_secs(59));
        let answer = ask(&payer, &one).await;
        assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
        one.app.clock.advance(Duration::from_secs(1));
        assert_eq!(left(&ask(&payer, &one).await), "119", "a new window");
    });
}

#[test]
fn answers_show_the_remaining_limit_in_both_header_forms() {
    run(async {
        let stack = limited().await;
        let payer = Payer::with(&stack, 0).await;
        stack.app.clock.advance(Duration::from_millis(17_500));
        let answer = ask(&payer, &stack).await;
        for (name, value) in [
            ("ratelimit-limit", "120"),
            ("ratelimit-remaining", "119"),
            ("ratelimit-reset", "43"),
            ("ratelimit", "\"read\";r=119;t=43"),
            ("ratelimit-policy", "\"read\";q=120;w=60"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{name}");
        }
        let proof = payer.proof_at("write", stack.app.clock.now().secs());
        let path = "/v1/tools/notifications/read-all";
        let answer = payer.client.send("PATCH", path, &[("x-agent-proof", &proof)], "").await.unwrap();
        assert_eq!(answer.header("ratelimit"), Some("\"write\";r=59;t=43"), "by method, in a limit of its own");
        assert_eq!(
            payer.client.get("/health", &[]).await.header("ratelimit"),
            None,
            "what is free to all is not counted"
        );
    });
}

#[test]
fn invalid_proofs_count_against_no_wallet() {
    run(async {
        let stack = limited().await;
        let payer = Payer::with(&stack, 0).await;
        let now = stack.app.clock.now().secs();
        let used = payer.proof_at("read", now);
        assert_eq!(left(&payer.client.get(ME, &[("x-agent-proof", &used)]).await), "119");
        let address = payer.address().to_string();
        for proof in [&used, &payer.proof_at("read", now - 400), "garbage"] {
            let answer = payer.client.get(ME, &[("x-agent-proof", proof), ("x-agent-id", &address)]).await;
            assert_eq!((answer.status, answer.header("ratelimit")), (401, None), "{}", answer.text);
        }
        assert_eq!(payer.client.get(ME, &[("x-agent-id", &address)]).await.status, 401);
        assert_eq!(left(&ask(&payer, &stack).await), "118");
    });
}

/// More tokens do not mean more requests. And no token can use up the writes that the wallet itself needs.
#[test]
fn token_requests_count_against_the_wallet_except_writes() {
    run(async {
        let stack = limited().await;
        let payer = Payer::with(&stack, 0).await;
        let app = &stack.app;
        let mut bearers = Vec::new();
        for _ in 0..2 {
            let minted = token::mint(&app.db, "agent_", payer.address(), None, None, app.clock.now()).await.unwrap();
            bearers.push(format!("Bearer {}", minted.unwrap().secret));
        }
        for call in 0..119 {
            let answer = payer.client.get(ME, &[("authorization", &bearers[call % 2])]).await;
            assert_eq!(left(&answer), (119 - call).to_string());
        }
        assert_eq!(left(&ask(&payer, &stack).await), "0");
        for bearer in &bearers {
            assert_eq!(payer.client.get(ME, &[("authorization", bearer)]).await.status, 429);
        }
        let read_all = "/v1/tools/notifications/read-all";
        for call in 0..61 {
            let headers = [("authorization", bearers[call % 2].as_str())];
            let answer = payer.client.send("PATCH", read_all, &headers, "").await.unwrap();
            assert_eq!(answer.status == 429, call == 60, "{call}: {}", answer.text);
        }
        let proof = payer.proof_at("write", app.clock.now().secs());
        let answer = payer.client.send("PATCH", read_all, &[("x-agent-proof", &proof)], "").await.unwrap();
        assert_eq!((answer.status, left(&answer)), (200, "59"));
    });
}

/// With the wallet's reads and writes used up by others, the owner can still find what spends and stop it. Allowing it
/// to spend again is a write.
#[test]
fn spending_can_be_stopped_after_all_writes_are_used() {
    run(async {
        let stack = limited().await;
        let payer = Payer::with(&stack, 0).await;
        let (app, now) = (&stack.app, stack.app.clock.now().secs());
        let minted =
            token::mint(&app.db, "agent_", payer.address(), None, None, app.clock.now()).await.unwrap().unwrap();
        let token = format!("/v1/agents/me/access-tokens/{}", minted.token.id);
        while limits::take(app, Subject::Agent(payer.agent()), Class::Write).await.is_ok() {}
        let bearer = format!("Bearer {}", minted.secret);
        let freezes = "/v1/agents/me/freezes";
        let by_token = async || payer.client.get(freezes, &[("authorization", &bearer)]).await.status;
        while by_token().await == 200 {}
        assert_eq!(by_token().await, 429);
        let write = async |method: &str, path: &str, body: Value| {
            let proof = payer.proof_at("write", now);
            let headers = [("content-type", "application/json"), ("x-agent-proof", proof.as_str())];
            let answer = payer.client.send(method, path, &headers, body.to_string()).await.unwrap();
            (answer.status, answer.header("ratelimit").unwrap_or_default().to_owned())
        };
        let by_token = payer.client.send("DELETE", &token, &[("authorization", &bearer)], "").await.unwrap();
        assert_eq!(by_token.status, 403, "{}", by_token.text);
        let agent = json!({"what": "agent"});
        let stopped = |left: u32| (200, format!("\"stop\";r={left};t=60"));
        assert_eq!(write("POST", "/v1/agents/me/freezes", agent.clone()).await, stopped(59), "the token's is its own");
        assert_eq!(write("DELETE", &token, json!({})).await, stopped(58));
        assert_eq!(write("PUT", "/v1/agents/me/budgets", json!({"daily": 1})).await, stopped(57));
        for (path, left) in [("/v1/agents/me/access-tokens", 56), (freezes, 55)] {
            let proof = payer.proof_at("read", now);
            let answer = payer.client.get(path, &[("x-agent-proof", &proof)]).await;
            let limit = answer.header("ratelimit").unwrap_or_default().to_owned();
            assert_eq!((answer.status, limit), stopped(left), "{path}");
        }
        assert_eq!(ask(&payer, &stack).await.status, 429, "other reads are used up");
        let refused = (429, "\"write\";r=0;t=60".to_owned());
        assert_eq!(write("PUT", "/v1/agents/me/budgets", json!({"daily": null})).await, refused);
        assert_eq!(write("POST", "/v1/agents/me/freezes/lift", agent).await, refused);
    });
}

/// The routes of a job accept a bare wallet address. Such a request counts against its source address, not the wallet.
#[test]
fn naming_a_wallet_uses_none_of_its_limit() {
    run(async {
        let stack = limited().await;
        let payer = Payer::with(&stack, 0).await;
        let path = format!("/v1/soul/jobs/job_{}", "0".repeat(32));
        let address = payer.address().to_string();
        for left_over in (0..120).rev() {
            let answer = payer.client.get(&path, &[("x-agent-id", &address)]).await;
            assert_eq!((answer.status, left(&answer)), (404, left_over.to_string().as_str()), "{}", answer.text);
        }
        assert_eq!(payer.client.get(&path, &[("x-agent-id", &address)]).await.status, 429);
        let proof = payer.proof_at("read", stack.app.clock.now().secs());
        let proven = payer.client.get(&path, &[("x-agent-proof", &proof)]).await;
        assert_eq!((proven.status, left(&proven)), (404, "119"));
    });
}

/// Answers to paid calls show the remaining limit, and so do quotes for proven callers.
#[test]
fn paid_calls_and_proven_quotes_show_their_limit() {
    run(async {
        let stack = limited().await;
        let payer = Payer::with(&stack, 0).await;
        let app = &stack.app;
        payer.give_credits(&stack, 1_000_000).await;
        let minted = token::mint(&app.db, "agent_", payer.address(), None, None, app.clock.now()).await.unwrap();
        let bearer = format!("Bearer {}", minted.unwrap().secret);
        let vin = json!({"vin": VIN});
        let buy = |headers: Vec<(&'static str, String)>| payer.clone().call(VIN_PATH, headers, vin.clone());
        let named = |name: &str| vec![("authorization", bearer.clone()), ("idempotency-key", name.to_owned())];
        let first = buy(named("first")).await;
        assert_eq!((first.status, first.header("ratelimit")), (200, Some("\"paid\";r=59;t=60")), "{}", first.text);
        for left_over in (0..59).rev() {
            let answer = buy(vec![("authorization", bearer.clone())]).await;
            assert_eq!((answer.status, left(&answer)), (200, left_over.to_string().as_str()), "{}", answer.text);
        }
        let over = buy(vec![("authorization", bearer.clone())]).await;
        assert_eq!(over.error(), (429, "rate_limit_exceeded".to_owned()), "{}", over.text);
        assert_eq!((left(&over), over.header("retry-after")), ("0", Some("60")));
        let again = buy(named("first")).await;
        assert_eq!((again.status, again.text), (200, first.text), "what was bought is still told");

        let now = app.clock.now().secs();
        let price = async || buy(vec![("x-agent-proof", payer.proof_at("write", now))]).await;
        for left_over in (0..120).rev() {
            let answer = price().await;
            let state = format!("\"quote\";r={left_over};t=60");
            assert_eq!((answer.status, answer.header("ratelimit")), (402, Some(state.as_str())), "{}", answer.text);
        }
        assert_eq!(price().await.status, 429);
        assert_eq!(left(&ask(&payer, &stack).await), "119", "polling has a limit of its own");
        let stranger = buy(vec![("x-agent-id", payer.address().to_string())]).await;
        assert_eq!((stranger.status, stranger.header("ratelimit")), (402, None), "what nobody proves is not counted");
    });
}

#[test]
fn every_class_has_its_documented_limit() {
    run(async {
        let stack = limited().await;
        let payer = Payer::with(&stack, 0).await;
        let source = Subject::Source("203.0.113.7".parse().ok());
        for (subject, class, count) in [
            (Subject::Agent(payer.agent()), Class::Paid, 60),
            (Subject::Agent(payer.agent()), Class::Expensive, 10),
            (Subject::Agent(payer.agent()), Class::Quote, 120),
            (source, Class::Open, 30),
        ] {
            for left in (0..count).rev() {
                let taken = limits::take(&stack.app, subject, class).await.unwrap();
                assert_eq!(taken.remaining, left, "{class:?}");
            }
            let refused = limits::take(&stack.app, subject, class).await.unwrap_err();
            assert_eq!(refused.code(), "rate_limit_exceeded", "{class:?}");
        }
    });
}

/// Only the gateway's view of the connection sets the source. Headers of the client do not.
#[test]
fn a_source_is_the_address_the_gateway_saw() {
    run(async {
        let router = routes::finish(Router::new().route("/v1/agents/me", get(async || Subject::source().to_string())));
        let mut event: Value =
            serde_json::from_slice(&std::fs::read(root().join("events/account.me-no-proof.json")).unwrap()).unwrap();
        event["headers"]["x-forwarded-for"] = json!("198.51.100.1, 203.0.113.7");
        let event = LambdaEvent::new(serde_json::from_value(event).unwrap(), Context::default());
        let answer = lambda::answer(router.clone(), event).await;
        assert_eq!(json!(answer)["body"], "source:203.0.113.7");

        let request = http::Request::get(ME).header("x-forwarded-for", "198.51.100.1");
        let answer = router.oneshot(request.body(axum::body::Body::empty()).unwrap()).await.unwrap();
        let body = platform::http::read_body(answer.into_body(), 1000).await.unwrap();
        assert_eq!(body, "source:unknown");
    });
}

#[test]
fn the_emergency_stop_takes_effect_within_five_seconds() {
    run(async {
        let stack = limited().await;
        let app = &stack.app;
        let stopped = async || limits::stopped(app).await.unwrap();
        assert_eq!(stopped().await, None);
        limits::stop(app, Some("testing")).await.unwrap();
        assert_eq!(stopped().await, None, "seen a moment ago");
        app.clock.advance(limits::STOP_SEEN_FOR);
        assert_eq!(stopped().await.as_deref(), Some("testing"));
        limits::stop(app, None).await.unwrap();
        app.clock.advance(limits::STOP_SEEN_FOR);
        assert_eq!(stopped().await, None);
    });
}
