//! The process dies while a text goes to many recipients, or the owner freezes it. Each phone has the text once or not at
//! all, the number is bought once, and what is charged is what was accepted.

use std::time::Duration;

use base::digest;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use futures_util::future::join_all;
use ledger::account;
use local::Options;
use local::stack::Background;
use messages::ids::message_uuid;
use messages::recipient::{self, Recipient, State};
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::{Reporter, Task, Toolbox};
use tools_sms::number::Number;
use tools_sms::phone::{self, EMBEDDED, Registered};
use tools_sms::{inbox, send};

use super::{Agent, EACH, FEE, FUNDS, SEND, text_to};
use crate::support::proxy::{Life, Proxy};
use crate::support::{Answer, books, chain, eventually, run, stack, stack_with};

/// Texts handed over at the same time.
const AT_ONCE: usize = 4;

/// Every request of a send to three, by one of the two kinds of death.
#[test]
fn a_text_to_three_survives_a_crash_at_every_step() {
    run(die_at_steps(3, 2));
}

/// Steps all over a send to a hundred.
#[test]
fn a_text_to_a_hundred_survives_a_crash_anywhere() {
    run(die_at_steps(100, 211));
}

async fn die_at_steps(recipients: usize, stride: usize) {
    for last_one_arrives in [false, true] {
        // The two kinds of death meet different requests if not every request is tried.
        let first = if last_one_arrives { 1 + stride / 2 } else { 1 };
        let mut died = 0;
        for step in (first..).step_by(stride) {
            assert!(step < 100 + 40 * recipients, "a send that never ends");
            if !die_at(i64::try_from(step).unwrap(), last_one_arrives, recipients).await {
                break;
            }
            died += 1;
        }
        assert!(died > 5, "a send has more steps than this");
    }
}

/// Waits until the process is dead or has nothing left to do.
async fn quiet(life: &Life, proxies: [&Proxy; 2]) {
    loop {
        let pause = Duration::from_millis(if life.is_over() { 50 } else { 400 });
        tokio::time::sleep(pause).await;
        let idle = proxies.iter().filter(|proxy| proxy.take_seen().is_empty()).count() == proxies.len();
        if life.is_over() || idle {
            return;
        }
    }
}

/// Agents without wallets, and their numbers.
async fn phones(toolbox: &Toolbox, count: usize) -> Vec<(AgentId, Number)> {
    let deadline = Instant::now() + Duration::from_secs(20);
    join_all((0..count).map(|_| async move {
        let agent = AgentId::from_bytes(digest::random());
        let registered = phone::register(toolbox, agent, RequestId::random(), deadline).await;
        let Ok(Registered::New(phone)) = registered else { panic!("a number: {registered:?}") };
        (agent, phone.number)
    }))
    .await
}

/// Sends a text with a process that dies at this step, restarts, and checks texts and money. `false` if the send needed fewer
/// steps.
async fn die_at(step: i64, last_one_arrives: bool, recipients: usize) -> bool {
    let label = format!("step {step}, arrives: {last_one_arrives}, to {recipients}");
    let chain = chain().await;
    let database = local::database::start(None).await.expect("a database");
    let life = Life::ending_at(i64::MAX, last_one_arrives);
    let to_database = Proxy::start(&database, life.clone()).await;
    let to_chain = Proxy::start(chain.rpc_url(), life.clone()).await;
    let shared = |options: Options| {
        options.with("SERVICE_SECRET", "a secret that two processes share").with("PAYMENT_HOLD_MS", "300")
    };

    // The first process. Its scheduler and stream are stopped, so that every counted request belongs to the call.
    let first = stack_with(|options| {
        let options = shared(options).with("AWS_ENDPOINT_URL", &to_database.url).with("CHAIN_RPC_URL", &to_chain.url);
        Options { background: Background::Worker, ..options }
    })
    .await;
    let ada = Agent::new(&first).await;
    let phones = phones(&first.worker.toolbox, recipients).await;
    let to: Vec<&Number> = phones.iter().map(|(_, number)| number).collect();
    let body = text_to(json!(to), "Your table is ready.");
    let unpaid = ada.ask(&body).await;
    assert_eq!(unpaid.status, 402, "{}", unpaid.text);
    let (agent, asked) = (ada.payer.address().to_string(), unpaid.json());
    let quote = asked["context"]["quote_id"].as_str().expect("a quote");
    let payment = ada.payer.pay(&unpaid);
    let paid = [("x-agent-id", agent.as_str()), ("x-quote-id", quote), ("payment-signature", payment.as_str())];
    quiet(&life, [&to_database, &to_chain]).await;
    life.end_after(step);
    let before: Option<Answer> = ada.payer.client.try_post(SEND, &paid, &body).await;
    quiet(&life, [&to_database, &to_chain]).await;
    let died = life.is_over();
    let fee_wallet = first.environment["RELAYER_PRIVATE_KEY"].clone();
    first.kill().await;

    // The second process.
    let second = stack_with(|options| {
        shared(options).with("AWS_ENDPOINT_URL", &database).with("RELAYER_PRIVATE_KEY", fee_wallet)
    })
    .await;
    local::stack::release_leases(&second.app.db, second.app.clock.now()).await.expect("leases");
    let ada = ada.payer.at(&second);
    // The same payment gets the answer, whatever the first answer was.
    let after = eventually("the answer", || async {
        let after = ada.client.post(SEND, &paid, &body).await;
        assert!(matches!(after.status, 202 | 409 | 503), "{label}, first {before:?}: {}", after.text);
        (after.status == 202).then_some(after)
    })
    .await;
    let request_id: RequestId = after.json()["request_id"].as_str().expect("an id").parse().expect("an id");
    let job = ada.finished(&request_id.to_string()).await;
    // Nothing is sent after the end.
    tokio::time::sleep(Duration::from_millis(100)).await;

    let db = &second.app.db;
    let own = phone::of_agent(db, ada.agent(), EMBEDDED).await.expect("a database").expect("a number");
    assert_eq!(own.bought_by, request_id, "{label}");
    assert_eq!(phone::list(db, ada.agent()).await.expect("a database").len(), 1, "{label}");
    let rows: Vec<Recipient<Number>> = recipient::all(db, request_id).await.expect("rows");
    assert_eq!(rows.len(), recipients, "{label}");
    let mut accepted = 0;
    for (row, (agent, number)) in rows.iter().zip(&phones) {
        assert_eq!(row.to, *number, "{label}");
        let (texts, _) = inbox::inbox(db, *agent, None, None, None, 10).await.expect("an inbox");
        match row.state {
            State::Delivered => {
                assert_eq!(texts.len(), 1, "{label}: {row:?}");
                accepted += 1;
            }
            // It was being handed over when the process died.
            State::Ambiguous => assert!(texts.len() <= 1, "{label}: twice: {texts:?}"),
            _ => panic!("{label}: {row:?}"),
        }
    }
    assert!(recipients - accepted <= AT_ONCE, "{label}: {job}");
    let (recipients, accepted) = (recipients as u64, accepted as u64);
    assert_eq!((&job["status"], &job["result"]["sent"]), (&json!("completed"), &json!(accepted)), "{label}: {job}");
    let spent = FUNDS - u64::try_from(ada.balance(&second).await).expect("an amount");
    let credited = books::audit(db, ada.agent()).await.credits.micro();
    assert_eq!((spent, credited), (FEE + EACH * recipients, EACH * (recipients - accepted)), "{label}: {job}");
    let again: Value = ada.client.post(SEND, &paid, &body).await.json();
    assert_eq!(again["request_id"], json!(request_id), "{label}");
    second.kill().await;
    died
}

/// A job of an agent to these numbers.
fn task(toolbox: &Toolbox, agent: AgentId, to: &[(AgentId, Number)]) -> Task {
    let to: Vec<&Number> = to.iter().map(|(_, number)| number).collect();
    let locked = json!({"segments": 1, "source": EMBEDDED, "each": EACH, "fee": FEE});
    Task {
        tool: &send::SPEC,
        input: text_to(json!(to), "Hello").as_object().expect("an input").clone(),
        locked: locked.as_object().expect("members").clone(),
        price: Usdc::from_micro(FEE + 2 * EACH),
        request_id: RequestId::random(),
        agent,
        wallet_signed: true,
        token: None,
        is_over: false,
        deadline: toolbox.clock.now().plus(Duration::from_secs(60)),
        reporter: Reporter::default(),
    }
}

/// Rows of a send in these states, as an earlier run left them.
async fn left_behind(toolbox: &Toolbox, task: &Task, own: &Number, to: &[(AgentId, Number)], states: [State; 2]) {
    let now = toolbox.clock.now();
    let id = message_uuid(now, &[b"sms", b"sent", task.request_id.bytes()]);
    let rows = (0..).zip(to.iter().zip(states)).map(|(index, ((_, number), state))| Recipient {
        request_id: task.request_id,
        index,
        agent: task.agent,
        sender: own.as_str().to_owned(),
        to: number.clone(),
        state,
        message_id: format!("{id}.{index}"),
        provider_message_id: None,
        run: None,
        reason: None,
        opens: 0,
        clicks: 0,
        changed: now,
        expires: now.plus(inbox::KEPT).secs(),
    });
    recipient::create_all(&toolbox.db, rows.collect()).await.expect("rows");
}

#[test]
fn a_send_that_is_given_up_is_charged_by_its_record() {
    run(async {
        let stack = stack().await;
        let toolbox = stack.worker.toolbox.clone();
        let to = phones(&toolbox, 2).await;
        let agent = Agent::new(&stack).await.payer.agent();
        let over = |task: Task| Task { is_over: true, ..task };

        // Nothing was begun.
        let error = (send::RUNNER.run)(toolbox.clone(), over(task(&toolbox, agent, &to))).await;
        assert!(error.is_err(), "{error:?}");
        // It died when it had the number.
        let bought = task(&toolbox, agent, &to);
        let deadline = Instant::now() + Duration::from_secs(20);
        let registered = phone::register(&toolbox, agent, bought.request_id, deadline).await;
        let Ok(Registered::New(own)) = registered else { panic!("a number: {registered:?}") };
        let output = (send::RUNNER.run)(toolbox.clone(), over(bought)).await.expect("the number is charged");
        assert_eq!((&output.result["status"], output.used), (&json!("failed"), Some(Usdc::from_micro(FEE))));
        // It died when one of two texts was out and one was on its way.
        let sent = task(&toolbox, agent, &to);
        left_behind(&toolbox, &sent, &own.number, &to, [State::Delivered, State::Submitting]).await;
        let output = (send::RUNNER.run)(toolbox.clone(), over(sent)).await.expect("a text is charged");
        assert_eq!((&output.result["status"], output.used), (&json!("partial"), Some(Usdc::from_micro(EACH))));
        assert_eq!(output.result["details"][1]["status"], "ambiguous", "{output:?}");
    });
}

#[test]
fn a_freeze_stops_the_rest_of_a_send() {
    run(async {
        let stack = stack().await;
        let toolbox = stack.worker.toolbox.clone();
        let to = phones(&toolbox, 2).await;
        let (ada, own) = Agent::with_number(&stack).await;
        let frozen = account::change_rules(&stack.app.db, ada.payer.agent(), |account| account.frozen.agent = true);
        frozen.await.expect("a freeze");
        let task = task(&toolbox, ada.payer.agent(), &to);
        left_behind(&toolbox, &task, &own, &to, [State::Delivered, State::Pending]).await;
        let output = (send::RUNNER.run)(toolbox.clone(), task).await.expect("one got it");
        assert_eq!(output.used, Some(Usdc::from_micro(EACH)), "{output:?}");
        let result = &output.result;
        assert_eq!((&result["status"], &result["warning"]), (&json!("partial"), &json!("frozen_by_owner")), "{result}");
        let (texts, _) = inbox::inbox(&toolbox.db, to[1].0, None, None, None, 10).await.expect("an inbox");
        assert!(texts.is_empty(), "{texts:?}");
    });
}
