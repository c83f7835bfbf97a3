//! An identity check on a store that fails at each of its requests in turn. Either it refuses the request and its
//! retries and then works again, or it loses the answer and everything after it until the failure is noticed. Whatever
//! failed is tried again, as agents and people do: the check is paid for once, and its result stands and is reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use base::ids::RequestId;
use ledger::receipt::{self, ExecutionStatus, ReceiptStatus};
use local::Options;
use local::stack::{Background, Stack, release_leases};
use platform::store::queue;
use serde_json::{Value, json};
use tools_people::verification::session;

use super::identity::{PATH, input, submit};
use crate::support::payer::{bare, header};
use crate::support::proxy::{Life, Proxy, throttled};
use crate::support::{Answer, Payer, books, run, stack_with};

/// Upper bound of the requests of a check.
const MOST_STEPS: i64 = 150;
/// How often a failed action is repeated.
const TRIES: usize = 400;

/// A request and the client's retries of it.
const ATTEMPTS: i64 = 3;

#[test]
fn a_check_survives_any_refused_store_request() {
    run(fails_at_every_request(false));
}

#[test]
fn a_check_survives_any_lost_store_answer() {
    run(fails_at_every_request(true));
}

/// How the store fails, and after how many requests.
enum Store {
    Refuses(Arc<AtomicI64>),
    LosesAnswers(Life),
}

impl Store {
    fn fail_after(&self, requests: i64) {
        match self {
            Store::Refuses(left) => left.store(requests, Ordering::SeqCst),
            Store::LosesAnswers(life) => life.end_after(requests),
        }
    }

    fn has_failed(&self) -> bool {
        match self {
            Store::Refuses(left) => left.load(Ordering::SeqCst) <= 0,
            Store::LosesAnswers(life) => life.is_over(),
        }
    }

    /// Makes the store work again. The refusing one recovers by itself.
    fn mend(&self) {
        if let Store::LosesAnswers(life) = self {
            life.end_after(i64::MAX);
        }
    }
}

async fn fails_at_every_request(loses_answers: bool) {
    let database = local::database::start(None).await.expect("a database");
    let life = Life::ending_at(i64::MAX, true);
    let proxy = Proxy::start(&database, life.clone()).await;
    let store = match loses_answers {
        true => Store::LosesAnswers(life),
        false => {
            let left = Arc::new(AtomicI64::new(i64::MAX));
            let counted = left.clone();
            proxy.inject(move |_| {
                let left = counted.fetch_sub(1, Ordering::SeqCst);
                (left <= 1 && left > 1 - ATTEMPTS).then(throttled)
            });
            Store::Refuses(left)
        }
    };
    let stack = stack_with(|options| {
        let options = options.with("AWS_ENDPOINT_URL", &proxy.url);
        Options { background: Background::Worker, ..options }
    })
    .await;
    let mut step = 1;
    loop {
        let payer = Payer::new(&stack).await;
        let mut check = Check { stack: &stack, store: &store, payer, request_id: None, has_failed: false };
        store.fail_after(step);
        check.run(step).await;
        if !check.has_failed {
            break;
        }
        assert!(step < MOST_STEPS, "a check that never ends");
        step += 1;
    }
    println!("{step} requests, answers lost: {loses_answers}");
    assert!(step > 25, "a check makes more requests than this: {step}");
}

struct Check<'a> {
    stack: &'a Stack,
    store: &'a Store,
    payer: Payer,
    request_id: Option<RequestId>,
    has_failed: bool,
}

impl Check<'_> {
    /// A whole check from payment to result. Every action is repeated until it succeeds.
    async fn run(&mut self, step: i64) {
        let payer = self.payer.clone();
        let payment = header(&bare(&payer.authorize(500_000)));
        let start = async || {
            let proof = payer.proof("write");
            payer.client.post(PATH, &[("x-payment", &payment), ("x-agent-proof", &proof)], &input()).await
        };
        let accepted = self.insist("the payment", start, |answer| answer.status == 202).await.json();
        let id = accepted["request_id"].as_str().expect("an id").to_owned();
        self.request_id = Some(id.parse().expect("an id"));
        // Gives the worker time to start the check alone, so that its store requests are counted on their own.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let page = async || payer.client.get(&format!("/identity/{id}"), &[]).await;
        self.insist("the page", page, |answer| answer.status == 200).await;
        self.insist("the mail", async || submit(&payer, &id, "").await, |answer| answer.status == 200).await;
        let form = format!("code={}", self.mailed(&id));
        // If an answer was lost, the check is already decided, and the page shows the result.
        let confirmed = |answer: &Answer| matches!(answer.status, 200 | 409) && answer.text.contains("approved");
        self.insist("the code", async || submit(&payer, &id, &form).await, confirmed).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let poll = async || payer.get(&format!("/v1/requests/{id}")).await;
        let is_over = |answer: &Answer| {
            let settled = |body: Value| body["status"] == "completed" && body["settlement_status"] == "settled";
            answer.status == 200 && settled(answer.json())
        };
        let result = self.insist("the result", poll, is_over).await.json()["result"].clone();
        // Requests still in progress may meet the failing store.
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.mend();
        self.store.fail_after(i64::MAX);
        self.check_end(step, &result).await;
    }

    /// Repeats an action until it succeeds.
    async fn insist(&mut self, what: &str, act: impl AsyncFn() -> Answer, is_done: impl Fn(&Answer) -> bool) -> Answer {
        let mut last = None;
        for _ in 0..TRIES {
            let answer = act().await;
            self.mend();
            if is_done(&answer) {
                return answer;
            }
            assert_ne!(answer.status, 402, "{what} is not asked for twice: {}", answer.text);
            last = Some(answer);
            // Does the scheduler's work: restarts the job.
            if self.has_failed {
                // The scheduler may meet the failing store too, and would try again.
                let _ = release_leases(&self.stack.app.db, self.stack.app.clock.now()).await;
                if let Some(id) = self.request_id {
                    queue::send_or_log(&*self.stack.queue, id, None).await;
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{what} is never done: {last:?}");
    }

    /// Notices that the store has failed, and mends it.
    fn mend(&mut self) {
        if self.store.has_failed() {
            self.has_failed = true;
            self.store.mend();
        }
    }

    /// The code of the last mail.
    fn mailed(&self, id: &str) -> String {
        let mails = (1..=session::MAX_CODES).rev();
        let mut mails = mails.filter_map(|number| {
            std::fs::read_to_string(self.stack.outbox.join(format!("identity-{id}-{number}.eml"))).ok()
        });
        let mail = mails.next().expect("a mail");
        let at = mail.find("Your code is ").expect("a code") + "Your code is ".len();
        mail[at..at + 8].to_owned()
    }

    async fn check_end(&self, step: i64, result: &Value) {
        let db = &self.stack.app.db;
        assert_eq!(
            (&result["status"], &result["assurance"]),
            (&json!("approved"), &json!("contact_control")),
            "{step}"
        );
        let session = session::load(db, self.request_id.expect("an id")).await.unwrap().expect("a session");
        assert_eq!(session.decision.expect("a decision").status, "approved", "{step}");
        assert_eq!(self.payer.balance(self.stack).await, 500_000, "step {step}: charged once");
        let receipts = receipt::all(db, self.payer.agent()).await.unwrap();
        let paid = receipts.iter().filter(|receipt| receipt.status == ReceiptStatus::Settled);
        let ends: Vec<ExecutionStatus> = paid.map(|receipt| receipt.execution_status).collect();
        assert_eq!(ends, [ExecutionStatus::Completed], "step {step}: {receipts:?}");
        assert_eq!(books::audit(db, self.payer.agent()).await.credits.micro(), 0, "{step}");
    }
}
