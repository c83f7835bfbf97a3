//! Whose turn it is in the workers: sources of one buyer that stall, payments and other buyers' jobs behind them, and
//! messages for jobs that only wait.

use std::sync::Arc;
use std::time::Duration;

use base::ids::RequestId;
use futures_util::future::join_all;
use gate::jobs::job::{Lane, MAX_ATTEMPTS, Outcome, Settlement};
use gate::jobs::slots::OF_BUYER;
use gate::jobs::sweep;
use local::queue::LocalQueue;
use local::{Options, Stack};
use platform::store::queue::Message;
use serde_json::json;
use tools::spec::ToolSpec;
use tools::{Output, Runner, Running, Source, Task, Toolbox};
use tools_web::web_read;

use crate::souls_turns::{Waiting, down, ended, job};
use crate::support::payer::{bare, header};
use crate::support::{Payer, READ_PATH, books, eventually, run, stack_with};

/// The catalog's web read, with time for the whole journey.
static PATIENT: ToolSpec = ToolSpec { deadline: Duration::from_secs(600), ..web_read::SPEC };
static STALLING: Waiting = Waiting::new();
static READS: [&Runner; 1] = [&Runner { spec: &PATIENT, run: read }];

/// A read that stalls at one path and fails there in the end.
fn read(_: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        if task.input["url"].as_str().is_some_and(|url| url.ends_with("/stalls")) {
            STALLING.wait().await;
            return Err(down());
        }
        Ok(Output::new(json!({"read": true}), Source::embedded("test")))
    })
}

async fn order(stack: &Stack, payer: &Payer, header: (&str, &str), page: &str) -> RequestId {
    let body = json!({"url": format!("{}/{page}", stack.site_url)});
    let answer = payer.client.post(READ_PATH, &[header], &body).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    answer.json()["request_id"].as_str().unwrap().parse().unwrap()
}

/// More stalling reads than there are workers. Each is paid back, so they cost their buyer nothing.
#[test]
fn stalling_reads_of_one_buyer_hold_up_no_other_job_and_no_payment() {
    run(async {
        let stack = stack_with(|options| {
            let options = options.with("OVERLAP_BELOW_USDC", "0.01");
            Options { runners: Some(&READS), ..options }
        })
        .await;
        let hostile = Payer::new(&stack).await;
        hostile.has_settled(&stack, stack.config.payments.overlap_exposure.micro()).await;
        const CALLS: usize = 24;
        hostile.give_credits(&stack, 2_000 * CALLS as u64).await;
        let token = hostile.token(&stack).await;
        let calls = (0..CALLS).map(|_| order(&stack, &hostile, ("authorization", &token), "stalls"));
        let mut waiting = join_all(calls).await;
        STALLING.reach(OF_BUYER.into()).await;

        // Its own payment is settled, although its work may start before that and finds no place.
        let payment = header(&bare(&hostile.authorize(2_000)));
        let paid = order(&stack, &hostile, ("x-payment", &payment), "stalls").await;
        let put_down = eventually("the paid job to be put down", || async {
            Some(job(&stack, paid).await).filter(|job| job.put_down > 0)
        })
        .await;
        assert!(put_down.overlap && put_down.outcome.is_none());
        assert_eq!(put_down.settlement, Settlement::Settled);
        waiting.push(paid);

        let honest = Payer::new(&stack).await;
        let payment = header(&bare(&honest.authorize(2_000)));
        let done = ended(&stack, order(&stack, &honest, ("x-payment", &payment), "plain").await).await;
        assert_eq!(done.outcome, Some(Outcome::Completed), "{done:?}");
        assert_eq!(STALLING.most(), usize::from(OF_BUYER), "of one buyer, so many at once");
        assert_eq!(STALLING.now(), usize::from(OF_BUYER), "while the others still stall");

        // However often they find no place, it is no attempt.
        eventually("a job to find no place many times", || async {
            stack.queue.push(Message::Job { request_id: paid, trace: None }.to_json());
            (job(&stack, paid).await.put_down > MAX_ATTEMPTS + 1).then_some(())
        })
        .await;
        STALLING.let_go();
        for id in &waiting {
            stack.queue.push(Message::Job { request_id: *id, trace: None }.to_json());
        }
        for id in &waiting {
            let error = eventually("a job to have its turn", || async {
                let job = job(&stack, *id).await;
                if job.outcome.is_none() {
                    stack.queue.push(Message::Job { request_id: *id, trace: None }.to_json());
                }
                job.error
            })
            .await;
            assert_eq!(error.reason.as_deref(), Some("source_unavailable"), "{error:?}");
        }
        let credits = books::audit(&stack.app.db, hostile.agent()).await.credits.micro();
        assert_eq!(credits, 2_000 * waiting.len() as u64, "all was paid back");
    });
}

static QUEUED: Waiting = Waiting::new();
static QUEUED_READS: [&Runner; 1] = [&Runner { spec: &PATIENT, run: wait }];

fn wait(_: Arc<Toolbox>, _: Task) -> Running {
    Box::pin(async {
        QUEUED.wait().await;
        Err(down())
    })
}

#[test]
fn a_job_that_only_waits_in_a_backlog_gets_no_second_message() {
    run(async {
        let stack = stack_with(|options| Options {
            runners: Some(&QUEUED_READS),
            background: local::stack::Background::Worker,
            ..options
        })
        .await;
        let payer = Payer::with(&stack, 0).await;
        payer.give_credits(&stack, 100_000).await;
        let token = payer.token(&stack).await;
        let calls = (0..=OF_BUYER).map(|_| order(&stack, &payer, ("authorization", &token), "stalls"));
        let ids = join_all(calls).await;
        QUEUED.reach(OF_BUYER.into()).await;
        eventually("a job to be put down", || async {
            let jobs = join_all(ids.iter().map(|id| job(&stack, *id))).await;
            // Its next try is four seconds away.
            jobs.iter().any(|job| job.put_down == 2 && job.queued_at.is_some()).then_some(())
        })
        .await;

        // Nobody works on this queue. All jobs are due: one only waits, the others were taken up.
        let queue = LocalQueue::default();
        let now = stack.app.clock.now().plus(Duration::from_secs(300));
        let sent = async |minutes: u64| {
            let now = now.plus(Duration::from_secs(60 * minutes));
            sweep::sweep(&stack.app.db, Lane::Tools, &queue, now).await.expect("a sweep").sent
        };
        queue.push("something waits".to_owned());
        assert_eq!(sent(0).await, u32::from(OF_BUYER), "the jobs that were taken up have no message");
        for minute in 2..5 {
            assert_eq!(sent(minute).await, 0, "now each has one");
        }
        assert_eq!(sent(20).await, u32::from(OF_BUYER) + 1, "it counts as lost in the end");
        let empty = LocalQueue::default();
        let later = now.plus(Duration::from_secs(60 * 22));
        let swept = sweep::sweep(&stack.app.db, Lane::Tools, &empty, later).await.expect("a sweep");
        assert_eq!(swept.sent, u32::from(OF_BUYER) + 1, "without a backlog, nothing is waited for");
        QUEUED.let_go();
    });
}
