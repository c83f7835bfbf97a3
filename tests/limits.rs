//! Rate limits: exact at once and over several processes, by whom, and for how long; and the emergency stop.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use common::auth::token;
use common::clock::{Clock, Timestamp};
use common::http::limit::Peer;
use common::http::routes;
use common::limits::{self, Class, Subject};
use lambda_http::lambda_runtime::{Context, LambdaEvent};
use local::{Options, Stack};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::support::{Answer, Payer, root, run, stack_with};

const ME: &str = "/v1/agents/me";

/// A stack with the published limits and a clock that stands at the beginning of a minute.
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
fn of_200_reads_at_once_over_two_processes_120_get_through() {
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
fn answers_say_what_is_left_in_both_dialects() {
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
fn what_proves_nothing_counts_for_nobody() {
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

#[test]
fn a_token_has_a_limit_of_its_own() {
    run(async {
        let stack = limited().await;
        let payer = Payer::with(&stack, 0).await;
        let app = &stack.app;
        let minted = token::mint(&app.db, "agent_", payer.address(), None, None, app.clock.now()).await.unwrap();
        let bearer = format!("Bearer {}", minted.unwrap().secret);
        let mut statuses = Vec::new();
        for _ in 0..121 {
            statuses.push(payer.client.get(ME, &[("authorization", &bearer)]).await.status);
        }
        assert_eq!(statuses.iter().position(|status| *status == 429), Some(120));
        assert_eq!(left(&ask(&payer, &stack).await), "119", "its wallet's is untouched");
    });
}

#[test]
fn every_class_has_its_number() {
    run(async {
        let stack = limited().await;
        let payer = Payer::with(&stack, 0).await;
        let source = Subject::Source("203.0.113.7".parse().ok());
        for (subject, class, count) in [
            (Subject::Agent(payer.agent()), Class::Paid, 60),
            (Subject::Agent(payer.agent()), Class::Expensive, 10),
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

/// Who holds the connection says where a request came from, and nobody else.
#[test]
fn a_source_is_what_the_gateway_saw() {
    run(async {
        let router = routes::finish(Router::new().route("/v1/agents/me", get(async || Subject::source().to_string())));
        let mut event: Value =
            serde_json::from_slice(&std::fs::read(root().join("events/account.me-no-proof.json")).unwrap()).unwrap();
        event["headers"]["x-forwarded-for"] = json!("198.51.100.1, 203.0.113.7");
        let event = LambdaEvent::new(serde_json::from_value(event).unwrap(), Context::default());
        let answer = lambda_http::Adapter::from(router.clone()).oneshot(event).await.unwrap();
        assert_eq!(json!(answer)["body"], "source:203.0.113.7");

        let request = || http::Request::get(ME).header("x-forwarded-for", "198.51.100.1");
        let mut local = request().body(axum::body::Body::empty()).unwrap();
        local.extensions_mut().insert(Peer("127.0.0.1".parse().unwrap()));
        for (request, source) in
            [(local, "source:127.0.0.1"), (request().body(axum::body::Body::empty()).unwrap(), "source:unknown")]
        {
            let answer = router.clone().oneshot(request).await.unwrap();
            let body = common::http::read_body(answer.into_body(), 1000).await.unwrap();
            assert_eq!(body, source.as_bytes());
        }
    });
}

#[test]
fn the_emergency_stop_takes_hold_within_five_seconds() {
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
