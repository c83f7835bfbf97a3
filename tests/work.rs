//! The work itself: it runs once even if delivered twice, is given up when it hangs or panics, and is paid back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::money::Usdc;
use local::stack::Background;
use local::{Options, Stack};
use platform::store::queue::Message;
use serde_json::{Value, json};
use tools::spec::ToolSpec;
use tools::{Output, Runner, Running, Source, Task, Toolbox};
use tools_web::web_read;

use crate::support::payer::{bare, header};
use crate::support::proxy::{Life, Proxy};
use crate::support::{Payer, READ_PATH, books, eventually, run, stack, stack_with};

static RUNS: AtomicUsize = AtomicUsize::new(0);

fn count(_: Arc<Toolbox>, _: Task) -> Running {
    Box::pin(async {
        RUNS.fetch_add(1, Ordering::SeqCst);
        // Long enough for every copy to arrive during the work.
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok(Output::new(json!({"counted": true}), Source::embedded("test")))
    })
}

static COUNTING: [&Runner; 1] = [&Runner { spec: &web_read::SPEC, run: count }];

static PANICKING: [&Runner; 1] =
    [&Runner { spec: &web_read::SPEC, run: |_, _| Box::pin(async { panic!("a bug in a tool") }) }];

/// The catalog's web read, with a short deadline.
static HASTY: ToolSpec = ToolSpec { deadline: Duration::from_millis(200), ..web_read::SPEC };
static HANGING: [&Runner; 1] = [&Runner { spec: &HASTY, run: |_, _| Box::pin(std::future::pending()) }];

async fn stack_of(runners: &'static [&'static Runner]) -> Stack {
    stack_with(|options| Options { runners: Some(runners), ..options }).await
}

#[test]
fn copies_of_a_payment_or_message_run_the_tool_once() {
    run(async {
        let stack = stack_of(&COUNTING).await;
        let payer = Payer::new(&stack).await;
        let payment = header(&bare(&payer.authorize(2_000)));
        let body = json!({"url": "http://example.com/"});
        let calls: Vec<_> = (0..10)
            .map(|_| {
                let (payer, payment, body) = (payer.clone(), payment.clone(), body.clone());
                tokio::spawn(async move { payer.client.post(READ_PATH, &[("x-payment", &payment)], &body).await })
            })
            .collect();
        let mut ids = Vec::new();
        for call in calls {
            let answer = call.await.unwrap();
            assert_eq!(answer.status, 202, "{}", answer.text);
            ids.push(answer.json()["request_id"].as_str().unwrap().to_owned());
        }
        ids.dedup();
        assert_eq!(ids.len(), 1);
        for _ in 0..10 {
            stack.queue.push(Message::Job { request_id: ids[0].parse().unwrap(), trace: None }.to_json());
        }
        assert_eq!(payer.finished(&ids[0]).await["result"], json!({"counted": true}));
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert_eq!(RUNS.load(Ordering::SeqCst), 1);
        assert_eq!(payer.balance(&stack).await, 998_000);
    });
}

#[test]
fn a_tool_that_panics_or_hangs_fails_only_its_own_job_and_is_paid_back() {
    run(async {
        let cases: [(&'static [&'static Runner], &str); 2] =
            [(&PANICKING, "internal_error"), (&HANGING, "provider_unavailable")];
        for (runners, code) in cases {
            let stack = stack_of(runners).await;
            let payer = Payer::new(&stack).await;
            let accepted = payer.buy(READ_PATH, &json!({"url": "http://example.com/"})).await.json();
            let job = payer.finished(accepted["request_id"].as_str().unwrap()).await;
            assert_eq!((&job["status"], &job["error_code"]), (&json!("failed"), &json!(code)), "{job}");
            assert_eq!(job["credited_usdc"], "0.002000");
            assert_eq!(payer.client.get("/health", &[]).await.status, 200);
        }
    });
}

static THRIFTY: [&Runner; 1] = [&Runner {
    spec: &web_read::SPEC,
    run: |_, task| {
        // The page's name says how much of the price is used, in micro-USDC.
        let used = task.text("url").rsplit('/').next().and_then(|text| text.parse().ok()).unwrap_or_default();
        Box::pin(async move {
            Ok(Output::new(json!({"read": true}), Source::embedded("test")).charging(Usdc::from_micro(used)))
        })
    },
}];

#[test]
fn what_the_work_did_not_use_is_credited_once() {
    run(async {
        let stack = stack_of(&THRIFTY).await;
        for (used, credited, kept) in [(500, 1_500, Some(500)), (0, 2_000, Some(0)), (2_000, 0, None), (9_999, 0, None)]
        {
            let payer = Payer::new(&stack).await;
            let body = json!({"url": format!("http://example.com/{used}")});
            let id = payer.buy(READ_PATH, &body).await.json()["request_id"].as_str().unwrap().to_owned();
            let job = payer.finished(&id).await;
            let text = |micro: u64| json!(Usdc::from_micro(micro).to_string());
            let expected = kept.map(|kept| (text(credited), text(kept))).unwrap_or_default();
            assert_eq!(job["status"], "completed", "{job}");
            assert_eq!((job["credited_usdc"].clone(), job["kept_usdc"].clone()), expected, "{used}: {job}");
            stack.queue.push(Message::Job { request_id: id.parse().unwrap(), trace: None }.to_json());
            let receipt = payer.get("/v1/analytics/receipts").await.json()["receipts"][0].clone();
            assert_eq!((receipt["credited_usdc"].clone(), receipt["kept_usdc"].clone()), expected, "{receipt}");
            let spent = payer.get("/v1/analytics/spend/breakdown").await.json()["total_spent_usdc"].clone();
            assert_eq!(spent, text(used.min(2_000)));
            let account = books::audit(&stack.app.db, payer.agent()).await;
            assert_eq!(account.credits.micro(), credited);
            if credited > 0 {
                eventually("the notification", || async {
                    let notes = payer.get("/v1/tools/notifications").await.json();
                    let is_credit = |note: &&Value| note["type"] == "credit_issued";
                    let amount =
                        notes["notifications"].as_array()?.iter().find(is_credit)?["payload"]["amount_usdc"].clone();
                    (amount == text(credited)).then_some(())
                })
                .await;
            }
        }
    });
}

static PARTS_DONE: AtomicUsize = AtomicUsize::new(0);

static IN_PARTS: [&Runner; 1] = [&Runner {
    spec: &web_read::SPEC,
    run: |toolbox, _| {
        Box::pin(async move {
            let done = PARTS_DONE.fetch_add(1, Ordering::SeqCst) + 1;
            let until = toolbox.clock.now().plus(Duration::from_secs(60));
            Ok(match done {
                ..8 => Output::again(Duration::from_millis(10), until, Source::embedded("test")),
                _ => Output::new(json!({"parts": done}), Source::embedded("test")),
            })
        })
    },
}];

/// More runs than a failing job gets.
#[test]
fn work_that_asks_for_another_run_gets_it_soon() {
    run(async {
        let stack = stack_of(&IN_PARTS).await;
        let payer = Payer::new(&stack).await;
        let accepted = payer.buy(READ_PATH, &json!({"url": "http://example.com/"})).await.json();
        let job = payer.finished(accepted["request_id"].as_str().unwrap()).await;
        assert_eq!(job["result"], json!({"parts": 8}), "{job}");
        assert_eq!(payer.balance(&stack).await, 998_000);
    });
}

#[test]
fn a_batch_reports_only_the_messages_that_failed() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let accepted = payer.buy(READ_PATH, &json!({"url": format!("{}/plain", stack.site_url)})).await.json();
        let id = accepted["request_id"].as_str().unwrap().to_owned();
        payer.finished(&id).await;
        let good = Message::Job { request_id: id.parse().unwrap(), trace: None }.to_json();
        let event = json!({"Records": [
            {"messageId": "1", "body": good}, {"messageId": "2", "body": "poison"}, {"messageId": "3", "body": good},
        ]});
        let answer = worker::handle(&stack.worker, serde_json::from_value(event).unwrap()).await;
        assert_eq!(serde_json::to_value(answer).unwrap(), json!({"batchItemFailures": [{"itemIdentifier": "2"}]}));
    });
}

static SLOW_RUNS: AtomicUsize = AtomicUsize::new(0);

/// Reports progress, so that its lease is renewed after three seconds.
fn slow(_: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        SLOW_RUNS.fetch_add(1, Ordering::SeqCst);
        task.reporter.say(10, "begun");
        tokio::time::sleep(Duration::from_millis(4_500)).await;
        Ok(Output::new(json!({"slow": true}), Source::embedded("test")))
    })
}

static SLOW: [&Runner; 1] = [&Runner { spec: &web_read::SPEC, run: slow }];

/// The database refuses to renew a lease that has half a minute left. The work continues, and is done once.
#[test]
fn work_continues_after_a_failed_lease_renewal() {
    run(async {
        let database = local::database::start(None).await.expect("a database");
        let proxy = Proxy::start(&database, Life::immortal()).await;
        let stack = stack_with(|options| {
            let options = options.with("AWS_ENDPOINT_URL", &proxy.url);
            Options { runners: Some(&SLOW), background: Background::Worker, ..options }
        })
        .await;
        let payer = Payer::new(&stack).await;
        let accepted = payer.buy(READ_PATH, &json!({"url": "http://example.com/"})).await.json();
        eventually("the work to begin", || async { (SLOW_RUNS.load(Ordering::SeqCst) == 1).then_some(()) }).await;
        proxy.inject(|operation| {
            let broken = json!({"__type": "com.amazon.coral.validate#ValidationException", "message": "broken"});
            (operation == "UpdateItem").then_some((400, broken))
        });
        tokio::time::sleep(Duration::from_millis(3_800)).await;
        proxy.heal();
        let job = payer.finished(accepted["request_id"].as_str().unwrap()).await;
        assert_eq!((&job["status"], SLOW_RUNS.load(Ordering::SeqCst)), (&json!("completed"), 1));
    });
}

static ENDLESS_BEGUN: AtomicUsize = AtomicUsize::new(0);
static ENDLESS_ENDED: AtomicUsize = AtomicUsize::new(0);

/// Counts on drop.
struct Ends;

impl Drop for Ends {
    fn drop(&mut self) {
        ENDLESS_ENDED.fetch_add(1, Ordering::SeqCst);
    }
}

fn endless(_: Arc<Toolbox>, _: Task) -> Running {
    Box::pin(async {
        let _ends = Ends;
        ENDLESS_BEGUN.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    })
}

static ENDLESS: [&Runner; 1] = [&Runner { spec: &web_read::SPEC, run: endless }];

/// A process that gives up a job also stops its work, because another process is about to do it.
#[test]
fn a_tool_stops_when_its_job_is_given_up() {
    run(async {
        let stack = stack_of(&ENDLESS).await;
        let payer = Payer::new(&stack).await;
        payer.buy(READ_PATH, &json!({"url": "http://example.com/"})).await;
        eventually("the work to begin", || async { (ENDLESS_BEGUN.load(Ordering::SeqCst) == 1).then_some(()) }).await;
        stack.kill().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(ENDLESS_ENDED.load(Ordering::SeqCst), 1);
    });
}

/// A message that nobody can read ends on the dead-letter list and blocks nothing.
#[test]
fn poison_messages_end_on_the_dead_letter_list() {
    run(async {
        let stack = stack().await;
        stack.queue.push("poison".to_owned());
        let payer = Payer::new(&stack).await;
        let accepted = payer.buy(READ_PATH, &json!({"url": format!("{}/plain", stack.site_url)})).await.json();
        assert_eq!(payer.finished(accepted["request_id"].as_str().unwrap()).await["status"], "completed");
        let dead =
            eventually("the dead letter", || async { Some(stack.queue.dead()).filter(|dead| !dead.is_empty()) }).await;
        assert_eq!(dead, ["poison"]);
    });
}
