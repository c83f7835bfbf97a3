//! A process dies while a paid call hands something over to many, or while something else goes on, and another process goes on.
//! A tool's journey says what is paid for, and checks what has become of it.

use base::ids::RequestId;
use ledger::receipt::Receipt;
use local::stack::Background;
use local::{Options, Stack};
use serde_json::{Value, json};

use super::http::borrowed;
use super::proxy::{Life, Proxy};
use super::{Answer, Payer, books, chain, eventually, stack_with};

/// The death of a process, at a request of a call.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    /// From 1.
    pub step: usize,
    /// Whether that request still arrives, and only its answer is lost.
    pub last_one_arrives: bool,
    /// To how many the call hands something over.
    pub recipients: usize,
}

/// Lets processes die at each `stride`-th request of a call, in both ways, until it needs fewer requests: `die_at` says whether
/// the process died.
pub async fn die_at_steps<F: Future<Output = bool>>(recipients: usize, stride: usize, die_at: impl Fn(Death) -> F) {
    for last_one_arrives in [false, true] {
        // The two kinds of death meet different requests if not every request is tried.
        let first = if last_one_arrives { 1 + stride / 2 } else { 1 };
        let mut died = 0;
        for step in (first..).step_by(stride) {
            assert!(step < 100 + 40 * recipients, "a call that never ends");
            if !die_at(Death { step, last_one_arrives, recipients }).await {
                break;
            }
            died += 1;
        }
        assert!(died > 5, "a call has more steps than this");
    }
}

/// Lets processes die at each second request of a purchase, whose last one arrives or does not by turns, until it needs fewer
/// requests; there have to be more than `least`. `die_at` says whether the process died.
pub async fn at_every_second_request(least: i64, die_at: impl AsyncFn(i64, bool) -> bool) {
    let (mut step, mut arrives) = (1, false);
    while die_at(step, arrives).await {
        assert!(step < 100, "a purchase that never ends");
        (step, arrives) = (step + 2, !arrives);
    }
    assert!(step > least, "a purchase has more steps than {step}");
}

/// The process that dies.
pub struct Dying {
    pub stack: Stack,
    death: Death,
    prepare: fn(Options) -> Options,
    database: String,
    life: Life,
    proxies: [Proxy; 2],
}

/// What came after, when the job has ended.
pub struct Survived {
    /// The second process.
    pub stack: Stack,
    /// The payer, talking to it.
    pub payer: Payer,
    pub request_id: RequestId,
    pub job: Value,
    /// False: the call needed fewer requests.
    pub died: bool,
}

/// What both processes have.
fn shared(options: Options) -> Options {
    options.with("SERVICE_SECRET", "a secret that two processes share").with("PAYMENT_HOLD_MS", "300")
}

impl Dying {
    /// Starts it. Its scheduler and stream are stopped, so that every counted request belongs to the call.
    pub async fn start(death: Death, prepare: fn(Options) -> Options) -> Dying {
        let chain = chain().await;
        let database = local::database::start(None).await.expect("a database");
        let life = Life::ending_at(i64::MAX, death.last_one_arrives);
        let to_database = Proxy::start(&database, life.clone()).await;
        let to_chain = Proxy::start(chain.rpc_url(), life.clone()).await;
        let stack = stack_with(|options| {
            let options = shared(prepare(options));
            let options = options.with("AWS_ENDPOINT_URL", &to_database.url).with("CHAIN_RPC_URL", &to_chain.url);
            Options { background: Background::Worker, ..options }
        })
        .await;
        Dying { stack, death, prepare, database, life, proxies: [to_database, to_chain] }
    }

    /// Waits until the process is dead, or has no job left and asks nothing more; what it has asked is answered.
    async fn quiet(&self) {
        eventually("a quiet process", || async {
            // Of all proxies, so that each forgets what it has seen until now.
            let asked: usize = self.proxies.iter().map(|proxy| proxy.take_seen().len()).sum();
            let is_done = asked == 0 && self.stack.queue.is_idle();
            let is_answered = self.proxies.iter().all(Proxy::is_idle);
            (is_answered && (is_done || self.life.is_over())).then_some(())
        })
        .await;
    }

    /// Lets the process die while this goes on, and starts another one. Returns that one, and whether the first one died: if not,
    /// the work needed fewer requests.
    pub async fn die_in<T>(self, work: impl Future<Output = T>) -> (Stack, T, bool) {
        self.quiet().await;
        self.life.end_after(i64::try_from(self.death.step).expect("a number"));
        let done = work.await;
        self.quiet().await;
        let died = self.life.is_over();
        let fee_wallet = self.stack.environment["RELAYER_PRIVATE_KEY"].clone();
        self.stack.kill().await;

        let stack = stack_with(|options| {
            let options = shared((self.prepare)(options));
            options.with("AWS_ENDPOINT_URL", &self.database).with("RELAYER_PRIVATE_KEY", fee_wallet)
        })
        .await;
        local::stack::release_leases(&stack.app.db, stack.app.clock.now()).await.expect("leases");
        (stack, done, died)
    }

    /// Pays the 402 of an asked price, during which the process dies. A second process ends the job; the same payment gets the
    /// same answer there.
    pub async fn pay(self, payer: &Payer, path: &str, unpaid: &Answer, body: &Value) -> Survived {
        let label = self.death;
        let paid = payer.paying(unpaid);
        let paid = borrowed(&paid);
        let (stack, before, died) = self.die_in(payer.client.try_post(path, &paid, body)).await;
        let payer = payer.at(&stack);
        // Whatever the first answer was.
        let after = eventually("the answer", || async {
            let after = payer.client.post(path, &paid, body).await;
            assert!(matches!(after.status, 202 | 409 | 503), "{label:?}, first {before:?}: {}", after.text);
            (after.status == 202).then_some(after)
        })
        .await;
        let request_id: RequestId = after.json()["request_id"].as_str().expect("an id").parse().expect("an id");
        let job = payer.finished(&request_id.to_string()).await;
        let again = payer.client.post(path, &paid, body).await.json();
        assert_eq!(again["request_id"], json!(request_id), "{label:?}");
        // Nothing is handed over after the end: no message is left that could do it.
        eventually("an empty queue", || async { stack.queue.is_idle().then_some(()) }).await;
        Survived { stack, payer, request_id, job, died }
    }
}

/// A call that a token pays for while its process, the worker with it, dies; and a process that goes on.
pub struct Resumed {
    /// The second process.
    pub stack: Stack,
    pub payer: Payer,
    /// The job, at rest.
    pub job: Value,
    /// False: the call needed fewer requests.
    pub died: bool,
}

/// Buys with a token and the credits `micro`, lets the process die at request `step` of it, and waits for the end in another process.
/// `prepare` is done for both.
pub async fn resume(
    step: i64,
    last_one_arrives: bool,
    prepare: impl Fn(Options) -> Options,
    bought: (u64, &str, &Value),
) -> Resumed {
    resume_after(step, last_one_arrives, prepare, async |_: &Stack| {}, bought).await
}

/// The same for a fixed price, which a token pays without a quote.
pub async fn resume_at_fixed_price(
    step: i64,
    last_one_arrives: bool,
    prepare: impl Fn(Options) -> Options,
    bought: (u64, &str, &Value),
) -> Resumed {
    let death = Death { step: usize::try_from(step).expect("a number"), last_one_arrives, recipients: 1 };
    resumed(death, prepare, async |_: &Stack| {}, false, bought).await
}

/// The same. `set_up` is done in the first process, before the call.
pub async fn resume_after(
    step: i64,
    last_one_arrives: bool,
    prepare: impl Fn(Options) -> Options,
    set_up: impl AsyncFn(&Stack),
    bought: (u64, &str, &Value),
) -> Resumed {
    let death = Death { step: usize::try_from(step).expect("a number"), last_one_arrives, recipients: 1 };
    resumed(death, prepare, set_up, true, bought).await
}

async fn resumed(
    Death { step, last_one_arrives, .. }: Death,
    prepare: impl Fn(Options) -> Options,
    set_up: impl AsyncFn(&Stack),
    asks_price: bool,
    (micro, path, body): (u64, &str, &Value),
) -> Resumed {
    let database = local::database::start(None).await.expect("a database");
    let life = Life::ending_at(i64::MAX, last_one_arrives);
    let to_database = Proxy::start(&database, life.clone()).await;
    let first = stack_with(|options| {
        let options = shared(prepare(options)).with("AWS_ENDPOINT_URL", &to_database.url);
        Options { background: Background::Worker, ..options }
    })
    .await;
    set_up(&first).await;
    let payer = Payer::with(&first, 0).await;
    payer.give_credits(&first, micro).await;
    let token = payer.token(&first).await;
    let mut named = vec![("authorization", token.clone()), ("idempotency-key", "once".to_owned())];
    if asks_price {
        let unpaid = payer.client.post(path, &[("authorization", &token)], body).await.json();
        let quote = unpaid["context"]["quote_id"].as_str().unwrap_or_else(|| panic!("{unpaid}"));
        named.push(("x-quote-id", quote.to_owned()));
    }
    let named = borrowed(&named);
    life.end_after(i64::try_from(step).expect("a number"));
    let before = payer.client.try_post(path, &named, body).await;
    // Nothing is asked meanwhile: that would count as a step.
    for _ in 0..120 {
        if life.is_over() || before.as_ref().is_none_or(|answer| answer.status != 202) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let died = life.is_over();
    first.kill().await;

    let stack = stack_with(|options| shared(prepare(options)).with("AWS_ENDPOINT_URL", &database)).await;
    local::stack::release_leases(&stack.app.db, stack.app.clock.now()).await.expect("leases");
    let payer = payer.at(&stack);
    let label = format!("step {step}, arrives: {last_one_arrives}");
    let after = eventually("an answer", || async {
        let after = payer.client.post(path, &named, body).await;
        // The other process may be at work on it.
        (after.status != 409).then_some(after)
    })
    .await;
    // 503: a call that answers at once has failed, and was paid back.
    assert!(matches!(after.status, 200 | 202 | 503), "{label}: {} {}", after.status, after.text);
    let job = payer
        .finished(
            after.json().pointer("/data/request_id").unwrap_or(&after.json()["request_id"]).as_str().expect("an id"),
        )
        .await;
    let receipts = eventually("the receipt to come to rest", || async {
        let receipts = books::receipts(&stack.app.db, payer.agent()).await;
        (!receipts.is_empty() && receipts.iter().all(Receipt::is_terminal)).then_some(receipts)
    })
    .await;
    assert_eq!(receipts.len(), 1, "{label}: {receipts:?}");
    Resumed { stack, payer, job, died }
}
