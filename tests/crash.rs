//! The process crashes at every step of a call: before a request reaches database or chain, or after. After a restart
//! the call completes or is paid back, once, and the same payment gets its answer.

use std::sync::atomic::{AtomicUsize, Ordering};

use base::digest::sha256;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use evm::authorization::Authorization;
use gate::jobs::{Job, Outcome, Settlement};
use ledger::earning;
use ledger::fee::Split;
use ledger::receipt::{self, ExecutionStatus, Receipt, ReceiptStatus};
use ledger::token_spend;
use local::stack::Background;
use local::{Options, Stack};
use market::{counting, service, soul};
use platform::auth::token::TokenCaps;
use platform::config::FeeShare;
use platform::store::BoxFuture;
use serde_json::{Value, json};
use tools::{Output, Runner, Source};
use tools_lookups::vehicle_identification;

use crate::support::payer::{bare, header};
use crate::support::programs::{DONE_IF_ANSWERED, caller};
use crate::support::proxy::{Life, Proxy};
use crate::support::{Client, Payer, READ_PATH, VIN, VIN_PATH, books, chain, eventually, run, stack_with};

/// Upper bound of the requests of a call.
const MOST_STEPS: i64 = 60;

struct Call {
    path: String,
    body: Value,
    price: u64,
    /// The selling soul, if any. Its blobs are per process, so the second process gets a copy.
    soul: Option<&'static str>,
    blobs: Vec<(String, Vec<u8>)>,
    /// The paid tool that its work may use, if any.
    tool: Option<PaidTool>,
}

/// A tool that counts its runs, and its price.
#[derive(Clone, Copy)]
struct PaidTool {
    runs: &'static AtomicUsize,
    price: u64,
    budget: u64,
}

impl Call {
    fn of_tool(path: &str, body: Value, price: u64) -> Call {
        Call { path: path.to_owned(), body, price, soul: None, blobs: Vec::new(), tool: None }
    }
}

/// Prepares a call on a stack.
type Setup = for<'a> fn(&'a Stack) -> BoxFuture<'a, Call>;

#[test]
fn a_direct_call_survives_a_crash_at_every_step() {
    run(die_at_every_step(vin_number, |options| options));
}

#[test]
fn a_queued_call_survives_a_crash_at_every_step() {
    let call: Setup = |stack| {
        let body = json!({"url": format!("{}/plain", stack.site_url)});
        Box::pin(async { Call::of_tool(READ_PATH, body, 2_000) })
    };
    run(die_at_every_step(call, |options| options));
}

#[test]
fn failed_work_is_paid_back_after_any_crash() {
    let call: Setup = |_| {
        let body = json!({"url": "http://no-such-host.invalid/"});
        Box::pin(async { Call::of_tool(READ_PATH, body, 2_000) })
    };
    run(die_at_every_step(call, |options| options));
}

#[test]
fn work_before_settlement_survives_a_crash_at_every_step() {
    run(die_at_every_step(vin_number, |options| options.with("OVERLAP_BELOW_USDC", "0.01")));
}

fn vin_number(_: &Stack) -> BoxFuture<'_, Call> {
    Box::pin(async { Call::of_tool(VIN_PATH, json!({"vin": VIN}), 5_000) })
}

#[test]
fn buying_a_souls_text_survives_any_crash() {
    run(die_at_every_step(text_of_a_soul, |options| options));
}

#[test]
fn a_souls_work_completes_or_is_paid_back_after_any_crash() {
    run(die_at_every_step(|stack| Box::pin(program_of_a_soul(stack, ECHO)), |options| options));
    run(die_at_every_step(|stack| Box::pin(program_of_a_soul(stack, TRAP)), |options| options));
}

static TOOL_RUNS: AtomicUsize = AtomicUsize::new(0);

/// The lookup, with its runs counted.
static COUNTED: [&Runner; 1] = [&Runner {
    spec: &vehicle_identification::SPEC,
    run: |_, _| {
        Box::pin(async {
            TOOL_RUNS.fetch_add(1, Ordering::SeqCst);
            Ok(Output::new(json!({"counted": true}), Source::embedded("test")))
        })
    },
}];

/// Work that uses a paid tool and completes if the tool call is allowed. After any crash, all attempts together spend
/// the budget once, and what was spent is kept if the job fails.
#[test]
fn paid_tool_use_stays_within_the_budget_after_any_crash() {
    let call: Setup = |stack| {
        Box::pin(async move {
            let request = json!({"tool": "vin_decode", "arguments": {"vin": VIN}}).to_string();
            let tools = json!({"tools": ["vin_decode"], "tool_budget_usd": 0.005});
            TOOL_RUNS.store(0, Ordering::SeqCst);
            let call = sold_program(stack, caller(&request, DONE_IF_ANSWERED), tools).await;
            Call { tool: Some(PaidTool { runs: &TOOL_RUNS, price: 5_000, budget: 5_000 }), ..call }
        })
    };
    run(die_at_every_step(call, |options| Options { runners: Some(&COUNTED), ..options }));
}

/// A token's cap for life has room for one call. In the end the call was done and is counted, or it was paid back and is
/// not; the repeated call changes nothing.
#[test]
fn a_capped_tokens_call_survives_a_crash_at_every_step() {
    run(async {
        let dead = json!({"url": "http://no-such-host.invalid/"});
        for (path, body, price) in [(VIN_PATH, json!({"vin": VIN}), 5_000), (READ_PATH, dead, 2_000)] {
            for last_one_arrives in [false, true] {
                for step in 1..=MOST_STEPS {
                    if !token_dies_at(step, last_one_arrives, path, &body, price).await {
                        println!("{path} by a token: {step} steps, the last one arriving: {last_one_arrives}");
                        assert!(step > 5, "a call has more steps than this");
                        break;
                    }
                    assert!(step < MOST_STEPS, "a call that never ends");
                }
            }
        }
    });
}

/// Like [`die_at`], for a call that a token pays. Only the database counts steps: such a call needs no chain.
async fn token_dies_at(step: i64, last_one_arrives: bool, path: &str, body: &Value, price: u64) -> bool {
    const CREDITS: u64 = 20_000;
    let database = local::database::start(None).await.expect("a database");
    let life = Life::ending_at(i64::MAX, last_one_arrives);
    let to_database = Proxy::start(&database, life.clone()).await;
    let secret = "a secret that two processes of one deployment share";
    let first = stack_with(|options| {
        let options = options.with("SERVICE_SECRET", secret).with("AWS_ENDPOINT_URL", &to_database.url);
        Options { background: Background::Worker, ..options }
    })
    .await;
    let payer = Payer::with(&first, 0).await;
    payer.give_credits(&first, CREDITS).await;
    let caps = TokenCaps { lifetime: Some(Usdc::from_micro(7_000)), ..TokenCaps::default() };
    let (id, token) = payer.capped_token(&first, caps).await;
    let named = [("authorization", token.as_str()), ("idempotency-key", "once")];
    life.end_after(step);
    let before = payer.client.try_post(path, &named, body).await;
    tokio::time::sleep(std::time::Duration::from_millis(if life.is_over() { 50 } else { 400 })).await;
    let died = life.is_over();
    first.kill().await;

    let second = stack_with(|options| options.with("SERVICE_SECRET", secret).with("AWS_ENDPOINT_URL", &database)).await;
    local::stack::release_leases(&second.app.db, second.app.clock.now()).await.expect("leases");
    let (payer, db) = (payer.at(&second), &second.app.db);
    let label = format!("{path}, step {step}, arrives: {last_one_arrives}, first answer: {before:?}");
    let mut done = 0;
    for repeated in [false, true] {
        if repeated {
            let after = payer.client.post(path, &named, body).await;
            assert!(matches!(after.status, 200 | 202 | 503), "{label}: {} {}", after.status, after.text);
        }
        eventually("the call to come to rest", || async {
            books::receipts(db, payer.agent()).await.iter().all(Receipt::is_terminal).then_some(())
        })
        .await;
        let credits = books::audit(db, payer.agent()).await.credits.micro();
        let receipts = books::receipts(db, payer.agent()).await;
        done = receipts.iter().filter(|one| one.execution_status == ExecutionStatus::Completed).count() as u64;
        let spent = token_spend::load(db, payer.agent(), id).await.expect(&label).spent.micro();
        assert!(receipts.len() <= 1 && spent == done * price, "{label}: {spent} for {receipts:?}");
        assert_eq!(credits, CREDITS - spent, "{label}");
    }
    if done > 0 {
        let more = payer.client.post(path, &[named[0]], body).await;
        assert_eq!(more.json()["budget"]["reason"], "token_lifetime", "{label}: {}", more.text);
    }
    second.kill().await;
    died
}

/// Programs of a soul: one that returns its input, and one that crashes.
const ECHO: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 16) "done")
    (func (export "_start")
        (i32.store (i32.const 0) (i32.const 16))
        (i32.store (i32.const 4) (i32.const 4))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;
const TRAP: &str = r#"(module (memory (export "memory") 1) (func (export "_start") unreachable))"#;

const SLUG: &str = "a-soul-that-sells";
const TEXT: &str = "# A soul that sells\n\nIt says what it is told.";

async fn register(stack: &Stack, more: Value) -> String {
    let mut service = json!({"name": "Echo", "slug": "echo", "price_usd": 0.5, "sandbox": true, "executor": "program"});
    for (name, value) in more.as_object().expect("members") {
        service[name] = value.clone();
    }
    let body = json!({"name": "A soul", "slug": SLUG, "soul_md": TEXT, "soul_price": 0.5, "service": service});
    let answer = Client::new(&stack.base_url).post("/v1/soul/register", &[], &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["soul_key"].as_str().expect("a key").to_owned()
}

fn text_of_a_soul(stack: &Stack) -> BoxFuture<'_, Call> {
    Box::pin(async {
        register(stack, json!({})).await;
        let key = soul::text_blob(&const_hex::encode(sha256(TEXT.as_bytes())));
        Call {
            path: format!("/v1/soul/{SLUG}/purchase"),
            body: json!({}),
            price: 500_000,
            soul: Some(SLUG),
            blobs: vec![(key, TEXT.as_bytes().to_vec())],
            tool: None,
        }
    })
}

async fn program_of_a_soul(stack: &Stack, program: &str) -> Call {
    sold_program(stack, wat::parse_str(program).expect("a program"), json!({})).await
}

/// A service done by this program, with these additional members.
async fn sold_program(stack: &Stack, program: Vec<u8>, more: Value) -> Call {
    let key = format!("Bearer {}", register(stack, more).await);
    let headers = [("authorization", key.as_str()), ("content-type", "application/wasm")];
    let path = "/v1/soul/me/services/echo/program";
    let answer = Client::new(&stack.base_url).send("PUT", path, &headers, program.clone()).await.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text);
    let terms = service::load_latest(&stack.app.db, SLUG, "echo").await.expect("the database answers");
    let terms = terms.expect("a service").terms;
    let blob = |key: String, bytes: &[u8]| (key, bytes.to_vec());
    let digest = |bytes: &[u8]| const_hex::encode(sha256(bytes));
    Call {
        path: format!("/v1/soul/{SLUG}/services/echo/execute"),
        body: json!({"input": {}}),
        price: 500_000,
        soul: Some(SLUG),
        blobs: vec![
            blob(soul::text_blob(&digest(TEXT.as_bytes())), TEXT.as_bytes()),
            blob(terms.program_blob().expect("a program"), &program),
        ],
        tool: None,
    }
}

async fn die_at_every_step(call: Setup, change: fn(Options) -> Options) {
    for last_one_arrives in [false, true] {
        for step in 1..=MOST_STEPS {
            if !die_at(step, last_one_arrives, call, change).await {
                println!("{step} steps, the last one arriving: {last_one_arrives}");
                assert!(step > 10, "a call has more steps than this");
                break;
            }
            assert!(step < MOST_STEPS, "a call that never ends");
        }
    }
}

/// Runs a call whose process crashes at this step, restarts, and checks everything. `false` if the call needed fewer
/// steps.
async fn die_at(step: i64, last_one_arrives: bool, call: Setup, change: fn(Options) -> Options) -> bool {
    let chain = chain().await;
    let database = local::database::start(None).await.expect("a database");
    let life = Life::ending_at(i64::MAX, last_one_arrives);
    let to_database = Proxy::start(&database, life.clone()).await;
    let to_chain = Proxy::start(chain.rpc_url(), life.clone()).await;
    let secret = "a secret that two processes of one deployment share";
    let with_secret = |options: Options| change(options.with("SERVICE_SECRET", secret).with("PAYMENT_HOLD_MS", "300"));

    // The first process. Its scheduler and stream are stopped, so that every counted request belongs to the call.
    let first = stack_with(|options| {
        let options =
            with_secret(options).with("AWS_ENDPOINT_URL", &to_database.url).with("CHAIN_RPC_URL", &to_chain.url);
        Options { background: Background::Worker, ..options }
    })
    .await;
    let payer = Payer::new(&first).await;
    // So that small calls of this wallet need not wait for settlement.
    payer.has_settled(&first, 50_000).await;
    let call = call(&first).await;
    let authorization = payer.authorize(call.price);
    let payment = header(&bare(&authorization));
    life.end_after(step);
    let before = payer.client.try_post(&call.path, &[("x-payment", &payment)], &call.body).await;
    // A queued call may still be working after its caller has its answer.
    tokio::time::sleep(std::time::Duration::from_millis(if life.is_over() { 50 } else { 400 })).await;
    let died = life.is_over();
    let site_url = first.site_url.clone();
    let fee_wallet = first.environment["RELAYER_PRIVATE_KEY"].clone();
    first.kill().await;

    // The second process.
    let second = stack_with(|options| {
        let (host, port) = site_url.trim_start_matches("http://").split_once(':').expect("a port");
        let options = with_secret(options).with("AWS_ENDPOINT_URL", &database).with("RELAYER_PRIVATE_KEY", fee_wallet);
        options.with("LOCAL_FETCH_ALLOW", format!("{host}:{port}"))
    })
    .await;
    for (key, bytes) in call.blobs.clone() {
        second.app.blobs.put(&key, "application/octet-stream", bytes).await.expect("a blob");
    }
    local::stack::release_leases(&second.app.db, second.app.clock.now()).await.expect("leases");
    let payer = payer.at(&second);
    at_rest(&payer, &authorization).await;
    check_books(&second, &payer, &authorization, call.price).await;

    // The same payment now gets the answer, whatever the first answer was.
    let after = payer.client.post(&call.path, &[("x-payment", &payment)], &call.body).await;
    let label = format!("step {step}, arrives: {last_one_arrives}, first answer: {before:?}");
    assert!(matches!(after.status, 200 | 202 | 503), "{label}: {} {}", after.status, after.text);
    at_rest(&payer, &authorization).await;
    let job = check_books(&second, &payer, &authorization, call.price).await.expect(&label);
    assert_eq!(u64::try_from(payer.balance(&second).await).unwrap(), 1_000_000 - call.price, "{label}: charged once");
    assert!(job.outcome.is_some(), "{label}");
    if let Some(soul) = call.soul {
        check_seller(&second, &job, soul, call.price, &label).await;
    }
    if let Some(tool) = call.tool {
        let ran = tool.runs.load(Ordering::SeqCst) as u64 * tool.price;
        assert!(ran <= job.used.tools.micro() && job.used.tools.micro() <= tool.budget, "{label}: {ran}, {job:?}");
    }
    let again = payer.client.post(&call.path, &[("x-payment", &payment)], &call.body).await;
    assert_eq!(again.base64_header("payment-response")["success"], true, "{label}");
    second.kill().await;
    died
}

/// The seller earned its share of completed work once, and nothing for work that was paid back.
async fn check_seller(stack: &Stack, job: &Job, soul: &str, price: u64, label: &str) {
    let db = &stack.app.db;
    let counted = counting::fold(db, soul, counting::ROUNDS, stack.app.clock.now()).await.expect(label);
    let split = Split::of(Usdc::from_micro(price), FeeShare::default());
    let revenue = split.revenue.checked_sub(job.used.tools).expect(label);
    let earned = if job.outcome == Some(Outcome::Completed) { revenue } else { Usdc::ZERO };
    assert_eq!((counted.balance.pending, counted.more), (earned, false), "{label}");
    let licence = earning::licence_key(soul, job.agent, 1);
    let licence: Option<Value> = db.get_latest(&db.tables.ledger, licence).await.expect(label);
    let is_text = job.sold.as_ref().is_some_and(|sold| sold.service.is_none());
    assert_eq!(licence.is_some(), is_text && job.outcome == Some(Outcome::Completed), "{label}");
}

/// Waits until nothing of the payment is open.
async fn at_rest(payer: &Payer, authorization: &Authorization) {
    eventually("the payment to come to rest", || async {
        let state = payer.payment_state(authorization).await;
        let job = &state["payments"][0]["job_status"];
        let word = state["state"].as_str().unwrap_or_default();
        let resting = match word {
            "never_seen" | "refused" | "credited_back" | "released" => true,
            "settled" => job == "completed",
            _ => false,
        };
        resting.then_some(())
    })
    .await;
}

/// Money, job, receipt and credits agree, and the entries add up to the balance.
async fn check_books(
    stack: &Stack,
    payer: &Payer,
    authorization: &Authorization,
    price: u64,
) -> Option<gate::jobs::Job> {
    let db = &stack.app.db;
    let spent = 1_000_000 - u64::try_from(payer.balance(stack).await).unwrap();
    let agent: AgentId = payer.agent();
    let credited = books::audit(db, agent).await.credits.micro();
    let claims = ledger::payments::claim::of_nonce(db, &authorization.nonce).await.unwrap();
    let Some(claim) = claims.first() else {
        assert_eq!((spent, credited), (0, 0), "no claim, no charge");
        return None;
    };
    let request_id: RequestId = claim.request_id;
    let job = gate::jobs::store::load_latest(db, request_id).await.unwrap().expect("a claim has a job");
    assert_eq!(job.open, None, "nothing is left open");
    let receipt = receipt::load(db, agent, &job.receipt_id).await.unwrap().expect("a job has a receipt");
    match (job.settlement, job.outcome) {
        (Settlement::Settled, Some(Outcome::Completed)) => {
            assert_eq!((spent, credited), (price, 0));
            assert_eq!(
                (receipt.status, receipt.execution_status),
                (ReceiptStatus::Settled, ExecutionStatus::Completed)
            );
        }
        (Settlement::Settled, Some(Outcome::Failed)) => {
            let kept = job.kept.unwrap_or_default().micro();
            assert_eq!((spent, credited), (price, price - kept), "paid back, once, less what was used up");
            assert_eq!((receipt.status, receipt.execution_status), (ReceiptStatus::Settled, ExecutionStatus::Failed));
        }
        other => panic!("a claimed payment ended as {other:?}"),
    }
    assert!(receipt.seal.is_some(), "terminal receipts are signed");
    assert_eq!(receipt.settlement_tx, job.transaction);
    Some(job)
}
