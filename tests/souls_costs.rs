//! The cost of tools and models in sold work, and who pays it if the work fails: tools by price, models by tokens,
//! within the amount quoted to the buyer, over all attempts together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use base::clock::Clock;
use base::ids::RequestId;
use gate::insights::verify::{self, Keys};
use gate::jobs::{job, store};
use local::{Options, Stack};
use market::counting;
use platform::store::Write;
use platform::store::queue::Message;
use serde_json::{Value, json};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox, Unavailable};
use tools_lookups::vehicle_identification;

use crate::models::{Server, chat};
use crate::souls_market::{Shop, buy, read, text};
use crate::support::payer::{bare, header, v1, v2};
use crate::support::programs::{DONE_IF_ANSWERED, FAILS_AND_TELLS, caller};
use crate::support::{Answer, Client, Payer, VIN, books, eventually, run, stack, stack_with};

/// The program's request to the tool.
fn request() -> String {
    json!({"tool": "vin_decode", "arguments": {"vin": VIN}}).to_string()
}

/// A service for 0.50 whose program may call the vehicle lookup (0.005) within this budget.
pub async fn shop(stack: &Stack, slug: &str, budget: f64, start: &str) -> Shop {
    let service = json!({"executor": "program", "sandbox": true, "tools": ["vin_decode"], "tool_budget_usd": budget});
    let shop = Shop::with(stack, slug, service).await;
    let put = shop.raw("PUT", "/services/summary/program", "application/wasm", caller(&request(), start)).await;
    assert_eq!(put.status, 200, "{}", put.text);
    shop
}

async fn ended(payer: &Payer, job: &str) -> Value {
    eventually("the job to end", || async {
        let job = read(payer, job).await.json()["job"].clone();
        (job["status"] == "completed" || job["status"] == "failed").then_some(job)
    })
    .await
}

/// A failed job keeps what it spent on paid tools, as the buyer was told before. The rest is paid back. Both amounts
/// are shown to everyone involved, and nobody gets the tool's results.
#[test]
fn failed_work_keeps_its_tool_costs_and_reveals_nothing() {
    run(async {
        let stack = stack().await;
        let shop = shop(&stack, "uses-a-tool-and-fails", 0.012, FAILS_AND_TELLS).await;
        let client = Client::new(&stack.base_url);
        let profile = client.get("/v1/soul/uses-a-tool-and-fails", &[]).await.json();
        assert_eq!(profile["services"][0]["kept_if_failed_up_to"], 0.012, "{profile}");
        let payer = Payer::new(&stack).await;
        let unpaid = client.post(&shop.execute_path(), &[], &text("x")).await.json();
        let context = &unpaid["context"];
        let told = json!("0.012000");
        assert_eq!((&context["kept_if_failed_up_to"], &context["pricing"]["kept_if_failed_up_to"]), (&told, &told));
        assert!(unpaid["message"].as_str().unwrap().contains("at most 0.012000"), "{unpaid}");

        let authorization = payer.authorize(500_000);
        let payment = header(&bare(&authorization));
        let bought = client.post(&shop.execute_path(), &[("x-payment", &payment)], &text("x")).await;
        assert_eq!(bought.status, 202, "{}", bought.text);
        let (id, request_id) = (bought.json()["soul_job_id"].clone(), bought.json()["request_id"].clone());
        let (id, request_id) = (id.as_str().unwrap(), request_id.as_str().unwrap());
        let job = ended(&payer, id).await;
        assert_eq!((&job["credited_usdc"], &job["kept_usdc"]), (&json!("0.495000"), &json!("0.005000")), "{job}");
        assert_eq!(job["error"]["reason"], "seller_failed");

        let account = books::audit(&stack.app.db, payer.agent()).await;
        assert_eq!(account.credits.to_string(), "0.495000");
        let polled = payer.finished(request_id).await;
        let both = |shown: &Value| (shown["credited_usdc"].clone(), shown["kept_usdc"].clone());
        let expected = (json!("0.495000"), json!("0.005000"));
        assert_eq!(both(&polled), expected, "{polled}");
        let payments = payer.payment_state(&authorization).await;
        assert_eq!(both(&payments["payments"][0]), expected, "{payments}");
        let receipt = payer.get("/v1/analytics/receipts").await.json()["receipts"][0].clone();
        assert_eq!(both(&receipt), expected, "{receipt}");
        let spent = payer.get("/v1/analytics/spend/breakdown").await.json();
        assert_eq!(spent["total_spent_usdc"], "0.005000", "what was kept was spent: {spent}");
        eventually("the notification", || async {
            let notes = payer.get("/v1/tools/notifications").await.json();
            let credit =
                notes["notifications"].as_array()?.iter().find(|note| note["type"] == "credit_issued")?.clone();
            let amounts = (credit["payload"]["amount_usdc"].clone(), credit["payload"]["kept_usdc"].clone());
            (amounts == expected).then_some(())
        })
        .await;
        // Anyone can verify the kept amount with the published key, and nobody can remove it.
        let jwks = client.get("/.well-known/jwks.json", &[]).await.text;
        let export = payer.get("/v1/audit/export?format=jsonl").await.text;
        let keys = Keys::parse(&jwks).unwrap();
        assert_eq!(verify::export(&export, &keys).map(|verified| verified.signed).ok(), Some(1));
        let without = export.replace("\"kept_usdc\":\"0.005000\"", "\"kept_usdc\":null");
        assert!(without != export && verify::export(&without, &keys).is_err());

        // The seller earned nothing, and neither seller nor buyer can read the tool's results.
        let balance = shop.get("/balance").await.json()["balance"].clone();
        assert_eq!((&balance["pending"], &balance["total_jobs"]), (&json!(0), &json!(0)));
        let wallet = payer.address().to_string();
        let seller_sees = shop.get(&format!("/jobs/{id}?full=true")).await.text;
        let key = format!("Bearer {}", shop.key);
        let files = |headers: Vec<(&'static str, String)>| {
            let (client, path) = (client.clone(), format!("/v1/soul/jobs/{id}/files"));
            async move {
                let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let listed = client.get(&path, &headers).await.json();
                let file = client.get(&format!("{path}/out.txt"), &headers).await;
                assert_eq!((&listed["file_count"], file.status), (&json!(0), 404), "{listed}");
            }
        };
        files(vec![("authorization", key)]).await;
        files(vec![("x-agent-id", wallet)]).await;
        for told in [seller_sees, read(&payer, id).await.text, polled.to_string()] {
            assert!(!told.contains("Accord") && !told.contains("exit code") && !told.contains("1HGCM"), "{told}");
        }
    });
}

/// A seller gains nothing by raising the tool budget between price and payment: a payment without a quote uses and
/// keeps the earlier amount for as long as a quote of that time would be valid. A new quote and a lower budget apply at
/// once.
#[test]
fn a_raised_budget_applies_without_a_quote_after_old_quotes_expire() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|options| Options { clock, ..options }).await;
        let twice_and_fails = "(drop (call $call)) (drop (call $call)) (unreachable)";
        let shop = shop(&stack, "raises-its-budget", 0.005, twice_and_fails).await;
        let payer = Payer::with(&stack, 2_000_000).await;
        payer.give_credits(&stack, 5_000_000).await;
        let (client, path) = (&payer.client, shop.execute_path());
        let token = payer.token(&stack).await;
        // The cost of tools and the amount kept, in micro-USDC.
        let amounts = async |bought: Answer| {
            assert_eq!(bought.status, 202, "{}", bought.text);
            let request_id = RequestId::of_soul_job(bought.json()["soul_job_id"].as_str().unwrap()).unwrap();
            let ended = || async {
                let job = store::load_latest(&stack.app.db, request_id).await.unwrap().unwrap();
                job.outcome.map(|_| (job.used.tools.micro(), job.kept.unwrap_or_default().micro()))
            };
            eventually("the job to end", ended).await
        };
        let by_token =
            async |words: &str| amounts(client.post(&path, &[("authorization", &token)], &text(words)).await).await;
        let set_budget = async |budget: f64| {
            let changed = shop.send("PUT", "/services/summary", &json!({"tool_budget_usd": budget})).await;
            assert_eq!(changed.status, 200, "{}", changed.text);
        };
        let unpaid = client.post(&path, &[], &text("one")).await.json();
        assert_eq!(unpaid["context"]["kept_if_failed_up_to"], "0.005000");

        set_budget(0.2).await;
        let signed = header(&v1(&payer.authorize(500_000)));
        let paid = client.post(&path, &[("x-payment", &signed)], &text("one")).await;
        assert_eq!(amounts(paid).await, (5_000, 5_000), "as the price said");
        assert_eq!(by_token("two").await, (5_000, 5_000));
        let quoted = client.post(&path, &[], &text("three")).await;
        assert_eq!(quoted.json()["context"]["kept_if_failed_up_to"], "0.200000");
        let signed = header(&v2(&payer.authorize(500_000), &quoted.base64_header("payment-required")["accepts"][0]));
        let paid = client.post(&path, &[("payment-signature", &signed)], &text("three")).await;
        assert_eq!(amounts(paid).await, (10_000, 10_000), "its quote said so");

        stack.app.clock.advance(stack.config.payments.soul_quote_ttl + Duration::from_secs(1));
        assert_eq!(by_token("four").await, (10_000, 10_000));
        set_budget(0.005).await;
        assert_eq!(by_token("five").await, (5_000, 5_000));
    });
}

static FAILING: [&Runner; 1] = [&Runner {
    spec: &vehicle_identification::SPEC,
    run: |_, _| Box::pin(async { Err(ToolError::unavailable(Unavailable::SourceUnavailable, "the source is down")) }),
}];

#[test]
fn a_failed_tool_call_costs_nothing() {
    run(async {
        let stack = stack_with(|options| Options { runners: Some(&FAILING), ..options }).await;
        let shop = shop(&stack, "its-tool-fails", 0.005, DONE_IF_ANSWERED).await;
        let payer = Payer::new(&stack).await;
        let job = ended(&payer, &buy(&shop, &payer, "x").await).await;
        assert_eq!((&job["credited_usdc"], &job["kept_usdc"]), (&json!("0.500000"), &json!("0.000000")), "{job}");
        assert!(job["error"]["message"].as_str().unwrap().contains("unreachable"), "nothing to hide: {job}");
        books::audit(&stack.app.db, payer.agent()).await;
    });
}

static SLOW_RUNS: AtomicUsize = AtomicUsize::new(0);
static SLOW_MAY_END: AtomicBool = AtomicBool::new(false);

/// A tool that answers when the test lets it.
fn slow(_: Arc<Toolbox>, _: Task) -> Running {
    Box::pin(async {
        SLOW_RUNS.fetch_add(1, Ordering::SeqCst);
        while !SLOW_MAY_END.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(Output::new(json!({"slow": true}), Source::embedded("test")))
    })
}

static SLOW: [&Runner; 1] = [&Runner { spec: &vehicle_identification::SPEC, run: slow }];

/// An executor hangs in a tool call for longer than its lease, and another takes over its job. The budget belongs to
/// the job, so the tool runs once, and the job ends once.
#[test]
fn two_executors_on_one_job_spend_its_budget_once() {
    run(async {
        let stack = stack_with(|options| Options { runners: Some(&SLOW), ..options }).await;
        let shop = shop(&stack, "worked-on-twice", 0.005, DONE_IF_ANSWERED).await;
        let payer = Payer::new(&stack).await;
        let id = buy(&shop, &payer, "x").await;
        eventually("the tool to run", || async { (SLOW_RUNS.load(Ordering::SeqCst) == 1).then_some(()) }).await;
        let request_id = RequestId::of_soul_job(&id).unwrap();
        let expire = Write::update(&stack.app.db.tables.jobs, job::key(request_id), "REMOVE #lease_until");
        stack.app.db.write(expire).await.unwrap();
        stack.souls.push(Message::Job { request_id, trace: None }.to_json());
        let job = ended(&payer, &id).await;
        assert_eq!((&job["status"], &job["kept_usdc"]), (&json!("failed"), &json!("0.005000")), "{job}");
        SLOW_MAY_END.store(true, Ordering::SeqCst);
        // The first executor returns to a job that it no longer holds.
        let first_ended = || async {
            let job = store::load_latest(&stack.app.db, request_id).await.unwrap().unwrap();
            assert_eq!((job.outcome, job.attempt), (Some(job::Outcome::Failed), 2));
            stack.souls.is_idle().then_some(())
        };
        eventually("the first executor to let go", first_ended).await;
        assert_eq!(SLOW_RUNS.load(Ordering::SeqCst), 1);
        let account = books::audit(&stack.app.db, payer.agent()).await;
        assert_eq!(account.credits.to_string(), "0.495000");
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        counting::fold(db, &shop.slug, counting::ROUNDS, now).await.unwrap();
        assert_eq!(shop.get("/balance").await.json()["balance"]["pending"], 0);
    });
}

/// A stack whose model is this server, at 3 and 15 USD a million tokens.
async fn with_model(server: &Server) -> Stack {
    let url = format!("{}/v1", server.url);
    stack_with(|options| options.with("MODEL_PROVIDER", "openai").with("MODEL_NAME", "a-model").with("MODEL_URL", url))
        .await
}

/// Failed work of the model keeps the cost of its tokens: 70 and 30, which are 0.00066 USD.
#[test]
fn failed_work_keeps_its_model_cost() {
    run(async {
        let server = Server::start(|_, _| chat("no JSON at all", &[])).await;
        let stack = with_model(&server).await;
        let service = json!({"output_schema": {"type": "object"}});
        let shop = Shop::with(&stack, "breaks-its-promise", service).await;
        let profile = Client::new(&stack.base_url).get("/v1/soul/breaks-its-promise", &[]).await.json();
        assert_eq!(profile["services"][0]["kept_if_failed_up_to"], 0.1, "the fee pays for the model: {profile}");
        let payer = Payer::new(&stack).await;
        let job = ended(&payer, &buy(&shop, &payer, "x").await).await;
        assert_eq!((&job["credited_usdc"], &job["kept_usdc"]), (&json!("0.499340"), &json!("0.000660")), "{job}");
        books::audit(&stack.app.db, payer.agent()).await;
    });
}

/// The model is paid from the platform fee. A service or an input that the fee cannot pay for is refused.
#[test]
fn services_whose_fee_cannot_pay_the_model_are_refused() {
    run(async {
        let server = Server::start(|_, _| chat("Rivers carry water.", &[])).await;
        let stack = with_model(&server).await;
        let shop = Shop::with(&stack, "too-cheap", json!({})).await;
        let cheap = json!({"name": "Cheap", "slug": "cheap", "price_usd": 0.02});
        let refused = shop.send("POST", "/services", &cheap).await;
        assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{}", refused.text);
        let detail = refused.json()["details"][0].clone();
        assert_eq!(detail["path"], "price_usd", "{detail}");
        let least =
            detail["message"].as_str().unwrap().split_whitespace().nth(4).unwrap().trim_end_matches(':').to_owned();
        let least: f64 = least.parse().unwrap_or_else(|_| panic!("{detail}"));
        let enough = json!({"name": "Cheap", "slug": "cheap", "price_usd": least});
        assert_eq!(shop.send("POST", "/services", &enough).await.status, 201, "the price that is named will do");
        // A longer text would cost more than the fee pays for.
        let longer = json!({"soul_md": format!("# Long\n\n{}", "word ".repeat(2_000))});
        let refused = shop.send("PUT", "/soul", &longer).await;
        assert_eq!(
            (refused.status, &refused.json()["details"][0]["path"]),
            (400, &json!("soul_md")),
            "{}",
            refused.text
        );
        assert_eq!(shop.send("DELETE", "/services/cheap", &json!({})).await.status, 200);
        assert_eq!(shop.send("PUT", "/soul", &longer).await.status, 200, "what is not offered does not matter");

        // An input too long for the fee is refused before a price is given.
        let path = "/v1/soul/too-cheap/services/wide/execute";
        let wide = json!({"name": "Wide", "slug": "wide", "price_usd": 0.5});
        assert_eq!(shop.send("POST", "/services", &wide).await.status, 201);
        let client = Client::new(&stack.base_url);
        let input = |bytes: usize| json!({"input": {"text": "x".repeat(bytes)}});
        let refused = client.post(path, &[], &input(40_000)).await;
        assert_eq!(refused.error(), (400, "invalid_input".to_owned()), "{}", refused.text);
        assert_eq!(refused.json()["details"][0]["path"], "input");
        assert_eq!(client.post(path, &[], &input(1_000)).await.status, 402);
        assert!(server.asked().is_empty());
    });
}

/// A program that calls its tool in a loop ends within its budget. Completed work pays its tools from its seller's
/// share.
#[test]
fn completed_work_pays_its_tools_from_the_sellers_share_within_the_budget() {
    run(async {
        let stack = stack().await;
        let greedy = r#"
            (local $left i32)
            (local.set $left (i32.const 6))
            (loop $again
                (drop (call $call))
                (local.set $left (i32.sub (local.get $left) (i32.const 1)))
                (br_if $again (local.get $left)))
            (call $print (i32.const 1) (i32.const 900) (i32.const 4))"#;
        let shop = shop(&stack, "greedy", 0.012, greedy).await;
        let payer = Payer::new(&stack).await;
        let job = ended(&payer, &buy(&shop, &payer, "x").await).await;
        assert_eq!((&job["status"], &job["result"]), (&json!("completed"), &json!("done")), "{job}");
        let used: f64 = job["tools_used"].as_array().unwrap().iter().map(|used| used["cost"].as_f64().unwrap()).sum();
        assert!((used - 10_000.0).abs() < 0.1, "two of six: {job}");
        assert!(job.get("kept_usdc").is_none() && job.get("credited_usdc").is_none());
        assert_eq!(shop.get("/balance").await.json()["balance"]["pending"], 0.39);
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 0);
    });
}
