//! The sample events through the Lambda adapter: each function answers each event as `events/expected.json` states.
//! (`make sam` sends the same files to the built functions in containers.)

use std::collections::BTreeSet;
use std::sync::Arc;

use gate::push::{Pusher, Sender};
use indexer::Indexer;
use lambda_http::lambda_runtime::{Context, LambdaEvent};
use local::Stack;
use platform::connections::Connections;
use platform::http::lambda;
use platform::net::{FetchPolicy, PlainHttp};
use serde_json::{Value, json};
use web::search::index::{Limits, Writer};

use crate::support::{root, run, stack};

#[test]
fn every_sample_event_gets_its_expected_answer() {
    run(async {
        let expected: Value = read("expected.json");
        let expected = expected.as_object().unwrap();
        let on_disk: BTreeSet<String> = std::fs::read_dir(root().join("events"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".json") && name != "expected.json")
            .collect();
        assert_eq!(on_disk, expected.keys().cloned().collect(), "events/ and expected.json name different files");
        let stack = stack().await;
        for (name, want) in expected {
            let answer = answer(&stack, want["function"].as_str().unwrap(), read(name)).await;
            compare(name, want, &answer);
        }
    });
}

/// The function's return value to Lambda.
async fn answer(stack: &Stack, function: &str, event: Value) -> Value {
    let app = &stack.app;
    match function {
        "worker" => {
            json!(worker::handle(&stack.worker, serde_json::from_value(event).unwrap()).await)
        }
        "deliveries" => {
            json!(deliveries::handle(&stack.courier, serde_json::from_value(event).unwrap()).await)
        }
        "indexer" => {
            let (db, blobs) = (app.db.clone(), app.blobs.clone());
            let writer = Writer::new(db, blobs, app.clock.clone(), Limits::default());
            let connections = Connections::open(&app.config).unwrap();
            let toolbox = Arc::new(app.toolbox(&connections, FetchPolicy::default()).unwrap());
            Indexer { writer, toolbox, queue: stack.pages.clone() }.handle(event).await.unwrap()
        }
        "scheduler" => {
            json!(
                scheduler::run(
                    &app.db,
                    &app.chain,
                    scheduler::Queues {
                        tools: &*stack.queue,
                        souls: &*stack.souls,
                        browser: &*stack.browser,
                        deliveries: &*stack.deliveries
                    },
                    &app.clock,
                )
                .await
                .unwrap()
            )
        }
        "payouts" => {
            let key = evm::signature::PrivateKey::from_bytes(&[7; 32]).unwrap();
            let treasury = ledger::payments::treasury::Treasury::new(
                app.chain.clone(),
                app.db.clone(),
                key,
                ledger::payments::bid::FeeCap::of(&app.config),
            );
            json!(payouts::run(app, &treasury).await.unwrap())
        }
        "aggregator" => {
            let event = serde_json::from_value(event).unwrap();
            json!(
                aggregator::handle(&app.db, stack.notices.mailer(), &*stack.deliveries, event, app.clock.now())
                    .await
                    .unwrap()
            )
        }
        "socket" => {
            let sender = Sender::new(&app.config, &PlainHttp::new(None)).unwrap();
            let function = socket::Socket { app: app.clone(), sender };
            function.handle(serde_json::from_value(event).unwrap()).await
        }
        "pusher" => {
            let sender = Sender::new(&app.config, &PlainHttp::new(None)).unwrap();
            let pusher = Pusher { db: app.db.clone(), blobs: app.blobs.clone(), sender };
            json!(pusher::handle(&pusher, serde_json::from_value(event).unwrap(), app.clock.now()).await.unwrap())
        }
        "hosting" => {
            let event = serde_json::from_str(&event.to_string()).unwrap();
            let router = hosting::router(hosting::Hosting::new(app.clone(), stack.queue.clone()));
            json!(lambda::answer(router, LambdaEvent::new(event, Context::default())).await)
        }
        http => {
            // Parsed from text, as the runtime does.
            let event = serde_json::from_str(&event.to_string()).unwrap();
            let event = LambdaEvent::new(event, Context::default());
            json!(lambda::answer(stack.groups[http].clone(), event).await)
        }
    }
}

fn compare(name: &str, want: &Value, answer: &Value) {
    if let Some(whole) = want.get("answer") {
        assert_eq!(answer, whole, "{name}");
        return;
    }
    assert_eq!(answer["statusCode"], want["status"], "{name}: {answer}");
    let header = |header: &str| match &answer["headers"][header] {
        Value::Null => answer["multiValueHeaders"][header][0].clone(),
        value => value.clone(),
    };
    // Sites answer to people.
    if want["function"] == "hosting" {
        return assert!(header("content-security-policy").is_string(), "{name}: {answer}");
    }
    assert!(header("content-type").as_str().is_some_and(|value| value.contains("json")), "{name}: {answer}");
    for (wanted, value) in want["headers"].as_object().into_iter().flatten() {
        let found = header(wanted);
        assert!(found.is_string() && (value.is_null() || found == *value), "{name}: {wanted}: {found}");
    }
    let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    for (member, value) in want["body"].as_object().into_iter().flatten() {
        assert_eq!(&body[member], value, "{name}: {body}");
    }
    if let Some(error) = want.get("error") {
        assert_eq!(&body["error"], error, "{name}: {body}");
    }
    for member in want["present"].as_array().into_iter().flatten() {
        assert!(body.get(member.as_str().unwrap()).is_some(), "{name}: no {member} in {body}");
    }
}

fn read(name: &str) -> Value {
    let path = root().join("events").join(name);
    serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"))
}
