//! Jobs that no call buys: begun in one transaction with what caused them, and paid from their agent's credits.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{ReceiptId, RequestId};
use base::money::Usdc;
use gate::jobs::{Outcome, own, store};
use ledger::{account, receipt};
use local::Options;
use platform::store::jobs;
use platform::store::queue::NoQueue;
use serde_json::{Map, json};
use tools::spec::{Price, RETENTION, ToolSpec};
use tools::{NewJob, Output, Runner, Source};

use crate::support::{Payer, books, eventually, run, stack_with};

/// micro-USDC
const PRICE: u64 = 3_000;
const USED: u64 = 1_000;
const LASTS: Duration = Duration::from_secs(600);

/// What the job waits for has happened.
static IS_OVER: AtomicBool = AtomicBool::new(false);

static SPEC: ToolSpec = ToolSpec {
    name: "a_wait",
    title: "A wait",
    summary: "Waits for an event of the test, and uses a third of its price",
    group: "knowledge",
    paths: &["/v1/a-wait"],
    price: Price::Fixed(Usdc::from_micro(PRICE)),
    deadline: Duration::from_secs(20),
    example: || json!({}),
    output: || json!({"type": "object"}),
    ..ToolSpec::QUEUED
};

static WAITING: [&Runner; 1] = [&Runner {
    spec: &SPEC,
    run: |toolbox, _| {
        Box::pin(async move {
            let source = Source::embedded("test");
            if !IS_OVER.load(Ordering::SeqCst) {
                return Ok(Output::waiting(toolbox.clock.now().plus(LASTS), source));
            }
            Ok(Output::new(json!({"waited": true}), source).charging(Usdc::from_micro(USED)))
        })
    },
}];

#[test]
fn a_job_that_nobody_buys_begins_once_and_is_charged_by_its_use() {
    run(async {
        let stack = stack_with(|options| Options { runners: Some(&WAITING), ..options }).await;
        let ada = Payer::with(&stack, 0).await;
        ada.give_credits(&stack, 10_000).await;
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let account = account::load(db, ada.agent()).await.unwrap();
        let id = RequestId::random();
        let new = |request_id| NewJob {
            request_id,
            tool: &SPEC,
            agent: ada.agent(),
            input: Map::new(),
            price: Usdc::from_micro(PRICE),
            rules: account.rules,
            budget: account.budget.clone(),
            card: account.card,
            until: now.plus(LASTS),
            look: now.plus(Duration::from_secs(60)),
            now,
        };
        db.transact(&own::begin(db, &new(id)).unwrap()).await.unwrap();

        let again = db.transact(&own::begin(db, &new(id)).unwrap()).await.unwrap_err();
        assert!(again.refused(0).is_none() && again.refused(2).is_some(), "the job exists: {again:?}");
        let too_dear = NewJob { price: Usdc::from_micro(8_000), ..new(RequestId::random()) };
        let changed = NewJob { rules: account.rules + 1, ..new(RequestId::random()) };
        for refused in [too_dear, changed] {
            let refused = db.transact(&own::begin(db, &refused).unwrap()).await.unwrap_err();
            assert!(refused.refused(0).is_some(), "the account's condition: {refused:?}");
        }
        assert_eq!(books::audit(db, ada.agent()).await.credits.micro(), 10_000 - PRICE, "all of it is held");

        stack.worker.run(id).await.unwrap();
        let job = store::load_latest(db, id).await.unwrap().unwrap();
        assert!(job.outcome.is_none() && job.handed_until.is_some() && job.lease_until.is_none(), "it waits: {job:?}");

        IS_OVER.store(true, Ordering::SeqCst);
        stack.worker.run(id).await.unwrap();
        let job = store::load_latest(db, id).await.unwrap().unwrap();
        assert_eq!((job.outcome, job.charged), (Some(Outcome::Completed), Some(Usdc::from_micro(USED))));
        assert_eq!(books::audit(db, ada.agent()).await.credits.micro(), 10_000 - USED, "the rest came back");
        let receipt = receipt::load(db, ada.agent(), &job.receipt_id).await.unwrap().unwrap();
        assert_eq!((receipt.subcategory.as_str(), receipt.amount.micro()), ("a_wait", PRICE));
    });
}

const SIXTY_DAYS: Duration = Duration::from_secs(60 * 24 * 3600);

static IS_WOKEN: AtomicBool = AtomicBool::new(false);
static RUNS: AtomicUsize = AtomicUsize::new(0);

static WOKEN: [&Runner; 1] = [&Runner {
    spec: &SPEC,
    run: |toolbox, task| {
        Box::pin(async move {
            RUNS.fetch_add(1, Ordering::SeqCst);
            if IS_WOKEN.swap(false, Ordering::SeqCst) {
                // The event comes while the run looks; whoever takes its message now finds the job at work.
                jobs::wake(&toolbox.db, &NoQueue("taken and dropped"), task.request_id).await;
            }
            Ok(Output::waiting(toolbox.clock.now().plus(SIXTY_DAYS), Source::embedded("test")))
        })
    },
}];

#[test]
fn a_wake_up_during_a_run_is_not_lost_and_an_open_job_does_not_expire() {
    run(async {
        let stack = stack_with(|options| Options { runners: Some(&WOKEN), ..options }).await;
        let ada = Payer::with(&stack, 0).await;
        ada.give_credits(&stack, 10_000).await;
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let account = account::load(db, ada.agent()).await.unwrap();
        let request_id = RequestId::random();
        let new = NewJob {
            request_id,
            tool: &SPEC,
            agent: ada.agent(),
            input: Map::new(),
            price: Usdc::from_micro(PRICE),
            rules: account.rules,
            budget: account.budget.clone(),
            card: account.card,
            until: now.plus(LASTS),
            look: now.plus(Duration::from_secs(60)),
            now,
        };
        db.transact(&own::begin(db, &new).unwrap()).await.unwrap();
        stack.worker.run(request_id).await.unwrap();
        assert_eq!(RUNS.load(Ordering::SeqCst), 1, "nothing woke it");
        let job = store::load_latest(db, request_id).await.unwrap().unwrap();
        assert!(job.expires >= now.plus(SIXTY_DAYS + RETENTION).secs(), "its row stays while it is open: {job:?}");
        IS_WOKEN.store(true, Ordering::SeqCst);
        stack.worker.run(request_id).await.unwrap();
        eventually("it runs again at once", || async { (RUNS.load(Ordering::SeqCst) == 3).then_some(()) }).await;
        let job = store::load_latest(db, request_id).await.unwrap().unwrap();
        assert!(job.woken == 1 && job.outcome.is_none(), "{job:?}");
    });
}

/// Jobs that began in the same millisecond are listed once each. One that is no longer kept is not listed.
#[test]
fn pages_of_requests_have_every_job_once() {
    run(async {
        let stack = stack_with(|options| Options { runners: Some(&WAITING), ..options }).await;
        let ada = Payer::with(&stack, 0).await;
        ada.give_credits(&stack, 100_000).await;
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let account = account::load(db, ada.agent()).await.unwrap();
        let begin = async |request_id: RequestId, at: Timestamp| {
            let new = NewJob {
                request_id,
                tool: &SPEC,
                agent: ada.agent(),
                input: Map::new(),
                price: Usdc::from_micro(PRICE),
                rules: account.rules,
                budget: account.budget.clone(),
                card: account.card,
                until: now.plus(LASTS),
                look: now.plus(LASTS),
                now: at,
            };
            db.transact(&own::begin(db, &new).unwrap()).await.unwrap();
        };
        let mut expected = BTreeSet::new();
        for _ in 0..7 {
            let id = RequestId::random();
            begin(id, now).await;
            expected.insert(id.to_string());
        }
        let forgotten = now.minus(RETENTION + Duration::from_secs(1));
        begin(RequestId::random(), forgotten).await;

        for query in ["limit=2", "limit=3&status=pending", "limit=7"] {
            let (mut seen, mut before, mut pages) = (Vec::new(), String::new(), 0);
            loop {
                let page = ada.get(&format!("/v1/requests?{query}{before}")).await.json();
                let rows = page["requests"].as_array().unwrap();
                seen.extend(rows.iter().map(|row| row["request_id"].as_str().unwrap().to_owned()));
                let Some(next) = page["next_before"].as_str() else { break };
                before = format!("&before={next}");
                pages += 1;
                assert!(pages < 9, "{query} does not end");
            }
            assert_eq!(seen.len(), expected.len(), "{query}");
            assert_eq!(seen.into_iter().collect::<BTreeSet<String>>(), expected, "{query}");
        }
        let late = format!("/v1/requests?before={}", ReceiptId::of(RequestId::random(), forgotten));
        assert_eq!(ada.get(&late).await.json()["requests"], json!([]), "a page that begins behind all that is kept");
    });
}
