//! The process dies while a mail goes to many recipients, or the owner freezes it. Each recipient has the mail once or not
//! at all, and what is charged is what was accepted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use gate::jobs::job::{self, MAX_ATTEMPTS};
use gate::jobs::store;
use ledger::account;
use local::Options;
use platform::store::Write;
use platform::store::queue::Message;
use serde_json::json;
use tools::{Reporter, Runner, Running, Task, ToolError, Toolbox};
use tools_email::address::Address;
use tools_email::recipient::{self, Recipient, State};
use tools_email::{domain, mailbox, send};

use super::{Agent, DOMAIN, EACH, FIRST_DAY, SEND, boxes, mail_to, office, one_day, post_office, reached, warm_up};
use crate::support::crashes::{Death, Dying, Survived, die_at_steps};
use crate::support::{books, eventually, run};

/// Every request of a send to three.
#[test]
fn a_mail_to_three_survives_a_crash_at_every_step() {
    run(async {
        one_day().await;
        die_at_steps(3, 1, die_at).await;
    });
}

/// Steps all over a send to fifty, from an address that may send 500 a day.
#[test]
fn a_mail_to_fifty_survives_a_crash_anywhere() {
    run(async {
        one_day().await;
        die_at_steps(50, 23, die_at).await;
    });
}

/// Sends a mail with a process that dies, and checks mails and money. `false` if the send needed fewer steps.
async fn die_at(death: Death) -> bool {
    let recipients = death.recipients;
    let dying = Dying::start(death, office).await;
    let (ada, bob) = (Agent::new(&dying.stack).await, Agent::new(&dying.stack).await);
    let body = mail_to(boxes(&bob, recipients));
    if recipients > FIRST_DAY {
        warm_up(&dying.stack, ada.payer.agent()).await;
    }
    let unpaid = ada.unpaid(&ada.quote(&body).await, &body).await;
    let Survived { stack, payer, request_id, job, died } = dying.pay(&ada.payer, SEND, &unpaid, &body).await;

    let (db, now) = (&stack.app.db, stack.app.clock.now());
    let (mails, more) = mailbox::inbox(db, bob.payer.agent(), None, None, 200).await.expect("an inbox");
    assert!(!more, "{death:?}");
    let mut by_address: BTreeMap<String, usize> = BTreeMap::new();
    for mail in &mails {
        assert!(mail.received_at <= now && mail.to.domain() == DOMAIN, "{death:?}: {mail:?}");
        *by_address.entry(mail.to.folded()).or_default() += 1;
    }
    assert!(by_address.values().all(|count| *count == 1), "{death:?}: twice: {by_address:?}");
    let rows: Vec<Recipient> = recipient::all(db, request_id).await.expect("rows");
    assert_eq!(rows.len(), recipients, "{death:?}");
    let mut accepted = 0;
    for row in &rows {
        let has_mail = by_address.contains_key(&row.to.folded());
        match row.state {
            State::Accepted | State::Delivered => {
                assert!(has_mail, "{death:?}: {row:?}");
                accepted += 1;
            }
            // It was being handed over when the process died.
            State::Ambiguous => {}
            _ => panic!("{death:?}: {row:?}"),
        }
    }
    assert_eq!(job["status"], if accepted > 0 { "completed" } else { "failed" }, "{death:?}: {job}");
    let counted = domain::load(db, payer.agent(), DOMAIN).await.expect("a row").expect("a domain").sent_count;
    assert_eq!(counted as usize, recipients, "{death:?}: the day's count");
    let price = EACH * recipients as u64;
    let spent = 1_000_000 - u64::try_from(payer.balance(&stack).await).expect("an amount");
    let credited = books::audit(db, payer.agent()).await.credits.micro();
    assert_eq!((spent, credited), (price, price - EACH * accepted), "{death:?}: {job}");
    assert_eq!(reached(&job) as u64, accepted, "{death:?}: {job}");
    // At most eight are handed over at the same time.
    assert!(recipients as u64 - accepted <= 8, "{death:?}: {job}");
    stack.kill().await;
    died
}

/// Rows of a send in these states, as an earlier run left them.
pub async fn left_behind(toolbox: &Toolbox, agent: AgentId, request_id: RequestId, to: &[String], states: [State; 2]) {
    let now = toolbox.clock.now();
    let mail = mailbox::mail_id(now, &[b"sent", request_id.bytes()]);
    let rows = (0..).zip(to.iter().zip(states)).map(|(index, (to, state))| Recipient {
        request_id,
        index,
        agent,
        sender: DOMAIN.to_owned(),
        to: Address::parse(to).expect("an address"),
        state,
        message_id: format!("{mail}.{index}@{DOMAIN}"),
        provider_message_id: None,
        run: None,
        reason: None,
        opens: 0,
        clicks: 0,
        changed: now,
        expires: now.plus(mailbox::KEPT).secs(),
    });
    recipient::create_all(&toolbox.db, rows.collect()).await.expect("rows");
}

/// The recipients that a task names.
fn named(task: &Task) -> Vec<String> {
    let to = task.input["to_address"].as_array().expect("recipients").iter();
    to.map(|to| to.as_str().expect("a text").to_owned()).collect()
}

static DYING: [&Runner; 1] = [&Runner { spec: &send::SPEC, run: die }];

/// The last attempt dies when one of two mails is out and one is on its way. Afterwards the tool works as it is.
fn die(toolbox: Arc<Toolbox>, task: Task) -> Running {
    if task.is_over {
        return (send::RUNNER.run)(toolbox, task);
    }
    Box::pin(async move {
        left_behind(&toolbox, task.agent, task.request_id, &named(&task), [State::Accepted, State::Submitting]).await;
        let set = "SET #attempt = :attempt REMOVE #lease_until";
        let write = Write::update(&toolbox.db.tables.jobs, job::key(task.request_id), set);
        let write = write.bind("attempt", MAX_ATTEMPTS + 1).expect("a number");
        toolbox.db.write(write).await.expect("a database");
        // Its process no longer has the job, so nobody hears this.
        Err(ToolError::internal("it died"))
    })
}

#[test]
fn a_send_that_is_given_up_is_charged_by_its_record() {
    run(async {
        let stack = post_office(|options| Options { runners: Some(&DYING), ..options }).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let body = mail_to(boxes(&bob, 2));
        let accepted = ada.send(&ada.quote(&body).await, &body).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let id: RequestId = accepted.json()["request_id"].as_str().expect("an id").parse().expect("an id");
        eventually("the last attempt", || async {
            let job = store::load_latest(&stack.app.db, id).await.expect("a database")?;
            (job.attempt > MAX_ATTEMPTS).then_some(())
        })
        .await;
        stack.queue.push(Message::Job { request_id: id, trace: None }.to_json());
        let job = ada.payer.finished(&id.to_string()).await;
        assert_eq!((&job["status"], reached(&job)), (&json!("completed"), 1), "{job}");
        assert_eq!(job["result"]["failed"][0]["state"], "ambiguous", "{job}");
        assert_eq!(ada.money(&stack).await, (2 * EACH, EACH));
    });
}

#[test]
fn a_freeze_stops_the_rest_of_a_send() {
    run(async {
        let stack = post_office(|options| options).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let frozen = account::change_rules(&stack.app.db, ada.payer.agent(), |account| account.frozen.agent = true);
        frozen.await.expect("a freeze");
        for first in [State::Delivered, State::Pending] {
            let toolbox = stack.worker.toolbox.clone();
            let input = mail_to(boxes(&bob, 2));
            let task = Task {
                tool: &send::SPEC,
                input: input.as_object().expect("an input").clone(),
                locked: json!({"from_address": ada.address}).as_object().expect("members").clone(),
                price: Usdc::from_micro(2 * EACH),
                request_id: RequestId::random(),
                receipt_id: None,
                agent: ada.payer.agent(),
                wallet_signed: true,
                token: None,
                funds: None,
                is_over: false,
                deadline: toolbox.clock.now().plus(Duration::from_secs(60)),
                reporter: Reporter::default(),
            };
            left_behind(&toolbox, task.agent, task.request_id, &named(&task), [first, State::Pending]).await;
            let ended = (send::RUNNER.run)(toolbox, task).await;
            if first == State::Pending {
                let error = ended.expect_err("nobody got it");
                assert_eq!(error.reason.as_deref(), Some("frozen_by_owner"), "{error:?}");
                continue;
            }
            let output = ended.expect("one got it");
            assert_eq!(output.used, Some(Usdc::from_micro(EACH)), "{output:?}");
            let result = &output.result;
            assert_eq!((&result["status"], &result["warning"]), (&json!("partial"), &json!("frozen_by_owner")));
            assert_eq!(result["failed"][0]["to"], input["to_address"][1], "{result}");
        }
        assert_eq!(bob.mails().await.len(), 0);
    });
}
