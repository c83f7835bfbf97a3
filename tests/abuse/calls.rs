//! Texts, calls and research that somebody buys so that they fail: what they use up is charged or bounded, and what they do not use
//! is there for others.

use axum::http::StatusCode;
use axum::response::IntoResponse;
use base::clock::{Clock, Timestamp};
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use ledger::account;
use local::Stack;
use messages::ids::message_uuid;
use messages::recipient::{self, Recipient, State};
use platform::store::{Db, Key, StoreError, Write};
use serde_json::{Value, json};
use tools::{Output, Reporter, Task, ToolError, Toolbox};
use tools_sms::number::Number;
use tools_sms::opt_out::{self, Why};
use tools_sms::velocity::{self, MAX_TO_BLOCK, MAX_TO_BLOCK_OF_AGENT, MAX_TO_BLOCK_OF_STRANGERS};
use tools_sms::{phone, send};
use tools_voice::outside::MAX_NEW_TARGETS_A_DAY;
use tools_voice::{failures, outbound};
use tools_web::research::subject::MAX_UNREAD_A_DAY;

use crate::email::one_day;
use crate::research::{self, PATH, Port, bought};
use crate::sms::{self, Twilio, phone_outside, text_to};
use crate::support::crashes::{Death, Dying, die_at_steps};
use crate::support::{Payer, eventually, run, stack_with};
use crate::voice::providers::{
    CALL, LINES, Placing, Vapi, assistant, buy, call_to, line_of, looked_at, newest, outside,
};
use crate::voice::{Agent, MINUTE, settings};

/// A counter of today; 0 if it is not there.
async fn counter(db: &Db, partition: String, member: &str) -> u64 {
    let day = Clock::system().now().secs().div_euclid(24 * 3600).to_string();
    let row: Option<Value> = db.get_latest(&db.tables.messages, Key::new(partition, day)).await.expect("a database");
    row.map_or(0, |row| row[member].as_u64().unwrap_or_default())
}

/// The segments of today: of an agent, of all.
async fn segments(db: &Db, agent: AgentId) -> (u64, u64) {
    let of_agent = counter(db, format!("SMSDAY#{agent}"), "used").await;
    (of_agent, counter(db, "SMSDAY#ALL".to_owned(), "used").await)
}

fn phone_number(last: u32) -> Number {
    Number::parse(&phone_outside(last)).expect("a number")
}

/// The job of a text of one segment to numbers outside.
fn task(toolbox: &Toolbox, agent: AgentId, to: &[Number]) -> Task {
    let locked = json!({"segments": 1, "source": phone::source(&toolbox.config), "each": sms::EACH, "fee": 0});
    Task {
        tool: &send::SPEC,
        input: text_to(json!(to), "Hello").as_object().expect("an input").clone(),
        locked: locked.as_object().expect("members").clone(),
        price: Usdc::from_micro(sms::EACH * to.len() as u64),
        request_id: RequestId::random(),
        receipt_id: None,
        agent,
        wallet_signed: true,
        token: None,
        funds: None,
        is_over: false,
        deadline: toolbox.clock.now().plus(send::SPEC.deadline),
        reporter: Reporter::default(),
    }
}

async fn worked(stack: &Stack, task: &Task) -> Result<Output, ToolError> {
    (send::RUNNER.run)(stack.worker.toolbox.clone(), task.clone()).await
}

#[test]
fn recipients_that_said_stop_take_no_segments() {
    run(async {
        one_day().await;
        let twilio = Twilio::start().await;
        let stack = stack_with(|options| twilio.options(options).with("SMS_DAILY_SEGMENTS", "1")).await;
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let (ada, of_ada) = sms::Agent::with_number(&stack).await;
        let to: Vec<Number> = (4..7).map(phone_number).collect();
        for to in &to[..2] {
            opt_out::set(db, &of_ada, to, true, Why::Stop, now).await.expect("a database");
        }
        // One segment is left in the day, and one of three recipients takes it.
        let task = task(&stack.worker.toolbox, ada.payer.agent(), &to);
        let output = worked(&stack, &task).await.expect("there is room for it");
        let states: Vec<&Value> = (0..3).map(|index| &output.result["details"][index]["status"]).collect();
        assert_eq!(states, ["opted_out", "opted_out", "failed"], "{output:?}");
        assert_eq!((segments(db, ada.payer.agent()).await, twilio.count()), ((1, 1), 1));
    });
}

#[test]
fn segments_of_texts_that_a_freeze_stopped_come_back_once() {
    run(async {
        one_day().await;
        let stack = Twilio::start().await.stack().await;
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let (ada, of_ada) = sms::Agent::with_number(&stack).await;
        let agent = ada.payer.agent();
        let to: Vec<Number> = (4..7).map(phone_number).collect();
        let task = task(&stack.worker.toolbox, agent, &to);
        assert_eq!(velocity::reserve(db, task.request_id, agent, 3, 10_000, now).await.expect("a database"), None);
        // An earlier run has handed over the first.
        let id = message_uuid(now, &[b"sms", b"sent", task.request_id.bytes()]);
        let rows = (0..).zip(&to).map(|(index, to)| Recipient {
            request_id: task.request_id,
            index,
            agent,
            sender: of_ada.as_str().to_owned(),
            to: to.clone(),
            state: State::Pending,
            message_id: format!("{id}.{index}"),
            provider_message_id: None,
            run: None,
            reason: None,
            opens: 0,
            clicks: 0,
            changed: now,
            expires: i64::MAX,
        });
        let rows: Vec<Recipient<Number>> = rows.collect();
        recipient::create_all(db, rows.clone()).await.expect("rows");
        assert!(recipient::begin(db, &rows[0], now).await.expect("a database"));
        recipient::ended(db, &rows[0], State::Accepted, Some("SM1"), None, now).await.expect("a database");
        let frozen = account::change_rules(db, agent, |account| account.frozen.agent = true);
        frozen.await.expect("a freeze");
        assert_eq!(segments(db, agent).await, (3, 3));
        // The message of the queue comes twice, and once more after a process that died before the job had ended.
        let (one, other) = tokio::join!(worked(&stack, &task), worked(&stack, &task));
        for output in [one, other, worked(&stack, &task).await] {
            let output = output.expect("a text was accepted");
            // Whoever finds reports missing runs again.
            assert!(output.waits.is_some() || output.result["sent"] == 1, "{output:?}");
        }
        let task = Task { is_over: true, ..task };
        assert_eq!(worked(&stack, &task).await.expect("an end").result["sent"], 1);
        assert_eq!(segments(db, agent).await, (1, 1));
    });
}

/// A process dies between two requests of four jobs, and the jobs run again.
#[test]
fn segments_survive_a_crash_while_they_are_counted_and_given_back() {
    run(die_at_steps(1, 2, die_at));
}

async fn die_at(death: Death) -> bool {
    one_day().await;
    let dying = Dying::start(death, |options| options).await;
    let (agent, jobs) = (AgentId::from_bytes([7; 16]), [(); 4].map(|()| RequestId::random()));
    let (db, now) = (dying.stack.app.db.clone(), dying.stack.app.clock.now());
    let (stack, _, died) = dying.die_in(sent(&db, agent, &jobs, now)).await;
    sent(&stack.app.db, agent, &jobs, now).await.expect("a database");
    assert_eq!(segments(&stack.app.db, agent).await, (12, 12), "{death:?}");
    stack.kill().await;
    died
}

/// Each job counts ten segments and has used three.
async fn sent(db: &Db, agent: AgentId, jobs: &[RequestId], now: Timestamp) -> Result<(), StoreError> {
    for job in jobs {
        assert_eq!(velocity::reserve(db, *job, agent, 10, 10_000, now).await?, None);
        velocity::give_back(db, *job, agent, 3).await?;
    }
    Ok(())
}

/// Whoever earns from texts to a block of numbers sends many there. So does whoever wants that nobody else can.
#[test]
fn an_agent_gets_a_share_of_a_block_and_the_last_texts_are_for_agents_with_money() {
    run(async {
        one_day().await;
        let stack = crate::support::stack().await;
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let mut last = 1_000;
        let mut take = async |agent: AgentId, is_proven: bool| {
            last += 1;
            let to = Number::parse(&format!("+1415234{last}")).expect("a number");
            velocity::take(db, agent, is_proven, &to, now).await.expect("a database").is_none()
        };
        let agent = |byte: u8| AgentId::from_bytes([byte; 16]);
        let mut sent = [0; 4];
        for (byte, sent) in (0..).zip(&mut sent) {
            while take(agent(byte), false).await {
                *sent += 1;
            }
        }
        // A stranger each.
        let most = MAX_TO_BLOCK_OF_AGENT;
        assert_eq!(sent, [most, most, MAX_TO_BLOCK_OF_STRANGERS - 2 * most, 0]);
        assert!(take(agent(9), true).await, "there is room for an agent with money behind it");
        const { assert!(MAX_TO_BLOCK > MAX_TO_BLOCK_OF_STRANGERS + MAX_TO_BLOCK_OF_AGENT, "and for another one") };
    });
}

/// The owner of the number that a call is passed to can let that fail.
#[test]
fn a_talk_is_charged_when_its_transfer_fails() {
    run(async {
        let vapi = Vapi::start().await;
        let stack = vapi.stack().await;
        let members = json!({"allowed_tools": ["transfer_call"], "transfer_number": "+14155552673"});
        let (bob, of_bob) = Agent::answering(&stack, 10 * MINUTE, members).await;
        let now = stack.app.clock.now();
        vapi.rings("019t", line_of(&of_bob), now);
        assistant(&vapi.posts(&stack, "assistant-request", "019t").await);
        vapi.ends("019t", now, 9 * 60 + 30, "call.in-progress.error-transfer-failed");
        let id = newest(&bob).await;
        vapi.reports(&stack, "019t", &bob, id).await;
        let call = bob.charged(id).await;
        assert_eq!(
            (&call["ended_reason"], &call["charge_usdc"]),
            (&json!("transfer_failed"), &json!("3.500000")),
            "{call}"
        );
    });
}

#[test]
fn a_number_whose_calls_keep_failing_has_no_others_that_day() {
    run(async {
        one_day().await;
        let vapi = Vapi::start().await;
        let stack = vapi.stack().await;
        let now = stack.app.clock.now();
        let (bob, of_bob) = Agent::answering(&stack, 3 * MINUTE, json!({})).await;
        let (ada, _) = Agent::with_number(&stack).await;
        let body = call_to(outside(now));
        for turn in 0..failures::MAX_A_DAY {
            assert_eq!(bob.asks(CALL, &body).await.status, 402, "{turn}");
            let id = format!("019u-{turn}");
            vapi.rings(&id, line_of(&of_bob), now);
            assistant(&vapi.posts(&stack, "assistant-request", &id).await);
            let job = newest(&bob).await;
            vapi.ends(&id, now, 170, "pipeline-error-openai-llm-failed");
            vapi.reports(&stack, &id, &bob, job).await;
            assert_eq!(bob.charged(job).await["charge_usdc"], "0.000000", "it is paid back");
        }
        vapi.rings("019u-last", line_of(&of_bob), now);
        let answer = vapi.posts(&stack, "assistant-request", "019u-last").await;
        assert!(answer["error"].is_string(), "{answer}");
        let call = &bob.calls("").await[0];
        assert_eq!(
            (&call["status"], &call["ended_reason"]),
            (&json!("declined"), &json!("too_many_failures")),
            "{call}"
        );
        assert_eq!(bob.asks(CALL, &body).await.error(), (429, "voice_limit_reached".to_owned()));
        // The others go on.
        assert_eq!(ada.asks(CALL, &body).await.status, 402);
        assert_eq!(bob.credits(&stack).await, 3 * MINUTE);
    });
}

/// The minutes and calls of today: of an agent, of all.
async fn minutes(db: &Db, agent: AgentId) -> [u64; 4] {
    let (own, all) = (format!("VOICEOUT#{agent}"), "VOICEOUT#ALL".to_owned());
    [
        counter(db, own.clone(), "minutes").await,
        counter(db, own, "calls").await,
        counter(db, all.clone(), "minutes").await,
        counter(db, all, "calls").await,
    ]
}

#[test]
fn minutes_that_a_call_did_not_use_come_back_once() {
    run(async {
        one_day().await;
        let vapi = Vapi::start().await;
        let stack = vapi.stack().await;
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let (ada, _) = Agent::with_number(&stack).await;
        let (agent, to) = (ada.payer.agent(), outside(now));
        // Of three minutes, one is talked.
        let talked = buy(&ada, to).await;
        let call = eventually("the call", || async { vapi.ids().first().cloned() }).await;
        assert_eq!(minutes(db, agent).await, [3, 1, 3, 1]);
        vapi.ends(&call, now, 20, "customer-ended-call");
        // The message of the queue comes twice, and once more after a process that died before the job had ended.
        let locked = json!({"minutes": 3, "legs": 1, "source": "vapi", "each": MINUTE, "fee": 0});
        let job = Task {
            tool: &outbound::SPEC,
            input: call_to(to).as_object().expect("an input").clone(),
            locked: locked.as_object().expect("members").clone(),
            request_id: talked,
            ..task(&stack.worker.toolbox, agent, &[])
        };
        let runs = || (outbound::RUNNER.run)(stack.worker.toolbox.clone(), job.clone());
        let (one, other) = tokio::join!(runs(), runs());
        assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
        looked_at(&stack, &ada, talked).await;
        assert_eq!(minutes(db, agent).await, [1, 1, 1, 1]);

        // One that a freeze stops before it is placed uses none.
        vapi.next(&[Placing::Fails(401); 9]);
        let stopped = buy(&ada, to).await;
        eventually("an attempt", || async { (vapi.placed().len() > 1).then_some(()) }).await;
        assert_eq!(minutes(db, agent).await, [4, 2, 4, 2]);
        let frozen = account::change_rules(db, agent, |account| account.frozen.agent = true);
        frozen.await.expect("a freeze");
        looked_at(&stack, &ada, stopped).await;
        assert_eq!(minutes(db, agent).await, [1, 1, 1, 1]);
    });
}

#[test]
fn calls_are_not_passed_on_to_numbers_of_the_operator() {
    run(async {
        one_day().await;
        let vapi = Vapi::start().await;
        let stack = vapi.stack().await;
        let (_, of_ada) = Agent::with_number(&stack).await;
        let (bob, of_bob) = Agent::answering(&stack, 2 * MINUTE, json!({})).await;
        let to = |number: &str| settings(json!({"allowed_tools": ["transfer_call"], "transfer_number": number}));
        let taken = [of_ada.number.as_str(), of_bob.number.as_str()];
        let free = LINES.iter().find(|(number, _)| !taken.contains(number)).expect("a number").0;
        let refused = bob.put(&of_bob, &to(free)).await;
        assert_eq!(refused.error(), (400, "invalid_request".to_owned()), "{}", refused.text);
        assert_eq!(refused.json()["details"][0]["path"], "transfer_number", "{}", refused.text);
        // The provider is asked for its numbers, and only so often.
        let (db, day) = (&stack.app.db, stack.app.clock.now().secs().div_euclid(24 * 3600));
        let key = Key::new(format!("RATE#{}#targets", bob.payer.agent()), day.to_string());
        let full = json!({"used": MAX_NEW_TARGETS_A_DAY, "expires": i64::MAX});
        db.write(Write::put(&db.tables.agents, key, &full).expect("a row")).await.expect("a database");
        let refused = bob.put(&of_bob, &to("+14155552674")).await;
        assert_eq!(refused.error(), (429, "voice_limit_reached".to_owned()), "{}", refused.text);
        // Agents here are passed on to each other. Over the operator's line, nobody is.
        assert_eq!(bob.put(&of_bob, &to(of_ada.number.as_str())).await.status, 200);
        vapi.rings("019v", line_of(&of_bob), stack.app.clock.now());
        let answer = vapi.posts(&stack, "assistant-request", "019v").await;
        assert_eq!(assistant(&answer)["model"]["tools"], json!([]), "{answer}");
    });
}

/// Searches and models are paid before a page is found not to answer.
#[test]
fn research_whose_pages_do_not_answer_is_paid_back_only_so_often() {
    run(async {
        one_day().await;
        let closed = Port::start(|_, _| async { StatusCode::INTERNAL_SERVER_ERROR.into_response() }).await;
        let url = format!("{}/page", closed.url);
        let search = Port::searching(move |_| vec![url.clone()]).await;
        let stack = research::stack(Some(&search), &[&closed], |options| options).await;
        let payer = Payer::new(&stack).await;
        let (db, day) = (&stack.app.db, stack.app.clock.now().secs().div_euclid(24 * 3600));
        let key = Key::new(format!("RATE#{}#unread", payer.agent()), day.to_string());
        let before = json!({"used": MAX_UNREAD_A_DAY - 1, "expires": i64::MAX});
        db.write(Write::put(&db.tables.agents, key, &before).expect("a row")).await.expect("a database");
        let body = json!({"topic": "Lighthouses of Norwick", "depth": "quick"});
        let job = bought(&payer, PATH, body.clone()).await;
        assert_eq!((&job["status"], &job["credited_usdc"]), (&json!("failed"), &json!("0.010000")), "{job}");
        let job = bought(&payer, PATH, body).await;
        assert_eq!((&job["status"], &job["result"]["pages_read"]), (&json!("completed"), &json!(0)), "{job}");
        assert_eq!(job["credited_usdc"], Value::Null, "{job}");
    });
}
