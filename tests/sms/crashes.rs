//! The process dies while a text goes to many recipients, or the owner freezes it. Each phone has the text once or not at
//! all, the number is bought once, and what is charged is what was accepted.

use std::time::Duration;

use base::digest;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use futures_util::future::join_all;
use ledger::account;
use messages::ids::message_uuid;
use messages::recipient::{self, Recipient, State};
use serde_json::json;
use tokio::time::Instant;
use tools::{Reporter, Task, Toolbox};
use tools_sms::number::Number;
use tools_sms::phone::{self, EMBEDDED, Registered};
use tools_sms::{inbox, send};

use super::{Agent, EACH, FEE, FUNDS, SEND, number_for, text_to};
use crate::support::crashes::{Death, Dying, Survived, die_at_steps};
use crate::support::{books, run, stack};

/// Texts handed over at the same time.
const AT_ONCE: usize = 4;

/// Every request of a send to three, by one of the two kinds of death.
#[test]
fn a_text_to_three_survives_a_crash_at_every_step() {
    run(die_at_steps(3, 2, die_at));
}

/// Steps all over a send to a hundred.
#[test]
fn a_text_to_a_hundred_survives_a_crash_anywhere() {
    run(die_at_steps(100, 211, die_at));
}

/// Agents without wallets, and their numbers.
async fn phones(toolbox: &Toolbox, count: usize) -> Vec<(AgentId, Number)> {
    join_all((0..count).map(|_| async move {
        let agent = AgentId::from_bytes(digest::random());
        (agent, number_for(toolbox, agent).await)
    }))
    .await
}

/// Sends a text with a process that dies, and checks texts and money. `false` if the send needed fewer steps.
async fn die_at(death: Death) -> bool {
    let recipients = death.recipients;
    let dying = Dying::start(death, |options| options).await;
    let ada = Agent::new(&dying.stack).await;
    let phones = phones(&dying.stack.worker.toolbox, recipients).await;
    let to: Vec<&Number> = phones.iter().map(|(_, number)| number).collect();
    let body = text_to(json!(to), "Your table is ready.");
    let unpaid = ada.payer.ask(SEND, &body).await;
    let Survived { stack, payer, request_id, job, died } = dying.pay(&ada.payer, SEND, &unpaid, &body).await;

    let db = &stack.app.db;
    let own = phone::of_agent(db, payer.agent(), EMBEDDED).await.expect("a database").expect("a number");
    assert_eq!(own.bought_by, request_id, "{death:?}");
    assert_eq!(phone::list(db, payer.agent()).await.expect("a database").len(), 1, "{death:?}");
    let rows: Vec<Recipient<Number>> = recipient::all(db, request_id).await.expect("rows");
    assert_eq!(rows.len(), recipients, "{death:?}");
    let mut accepted = 0;
    for (row, (agent, number)) in rows.iter().zip(&phones) {
        assert_eq!(row.to, *number, "{death:?}");
        let (texts, _) = inbox::inbox(db, *agent, None, None, None, 10).await.expect("an inbox");
        match row.state {
            State::Delivered => {
                assert_eq!(texts.len(), 1, "{death:?}: {row:?}");
                accepted += 1;
            }
            // It was being handed over when the process died.
            State::Ambiguous => assert!(texts.len() <= 1, "{death:?}: twice: {texts:?}"),
            _ => panic!("{death:?}: {row:?}"),
        }
    }
    assert!(recipients - accepted <= AT_ONCE, "{death:?}: {job}");
    let (recipients, accepted) = (recipients as u64, accepted as u64);
    assert_eq!((&job["status"], &job["result"]["sent"]), (&json!("completed"), &json!(accepted)), "{death:?}: {job}");
    let spent = FUNDS - u64::try_from(payer.balance(&stack).await).expect("an amount");
    let credited = books::audit(db, payer.agent()).await.credits.micro();
    assert_eq!((spent, credited), (FEE + EACH * recipients, EACH * (recipients - accepted)), "{death:?}: {job}");
    stack.kill().await;
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
        receipt_id: None,
        agent,
        wallet_signed: true,
        token: None,
        funds: None,
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
