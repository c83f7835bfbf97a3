//! The process dies while a mail goes to many recipients. After a restart each of them has the mail once or not at all,
//! and what is charged is what was accepted.

use std::collections::BTreeMap;
use std::time::Duration;

use base::ids::RequestId;
use local::Options;
use local::stack::Background;
use serde_json::{Value, json};
use tools_email::recipient::{self, State};
use tools_email::{domain, mailbox};

use super::{Agent, DOMAIN, EACH, FIRST_DAY, QUOTE, SEND, boxes, mail_to, one_day, post_office, reached};
use crate::support::proxy::{Life, Proxy};
use crate::support::{books, chain, eventually, run};

/// Every request of a send to three.
#[test]
fn a_mail_to_three_survives_a_crash_at_every_step() {
    run(die_at_steps(3, 1));
}

/// Steps all over a send to fifty, which its address is allowed because the caller names it.
#[test]
fn a_mail_to_fifty_survives_a_crash_anywhere() {
    run(die_at_steps(50, 23));
}

async fn die_at_steps(recipients: usize, stride: usize) {
    one_day().await;
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
        assert!(died > 10, "a send has more steps than this");
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

/// Sends a mail with a process that dies at this step, restarts, and checks mails and money. `false` if the send needed
/// fewer steps.
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
    let first = post_office(|options| {
        let options = shared(options).with("AWS_ENDPOINT_URL", &to_database.url).with("CHAIN_RPC_URL", &to_chain.url);
        Options { background: Background::Worker, ..options }
    })
    .await;
    let (ada, bob) = (Agent::new(&first).await, Agent::new(&first).await);
    let mut body = mail_to(boxes(&bob, recipients));
    if recipients > FIRST_DAY {
        body["from_address"] = json!(ada.address);
    }
    let agent = ada.payer.address().to_string();
    let quote = ada.payer.client.post(QUOTE, &[("x-agent-id", &agent)], &body).await.json();
    let quote = quote["quote_id"].as_str().expect("a quote").to_owned();
    let headers = [("x-agent-id", agent.as_str()), ("x-quote-id", quote.as_str())];
    let unpaid = ada.payer.client.post(SEND, &headers, &body).await;
    assert_eq!(unpaid.status, 402, "{}", unpaid.text);
    let quote = unpaid.json()["context"]["quote_id"].as_str().map_or(quote, str::to_owned);
    let payment = ada.payer.pay(&unpaid);
    let paid =
        [("x-agent-id", agent.as_str()), ("x-quote-id", quote.as_str()), ("payment-signature", payment.as_str())];
    quiet(&life, [&to_database, &to_chain]).await;
    life.end_after(step);
    let before = ada.payer.client.try_post(SEND, &paid, &body).await;
    quiet(&life, [&to_database, &to_chain]).await;
    let died = life.is_over();
    let fee_wallet = first.environment["RELAYER_PRIVATE_KEY"].clone();
    first.kill().await;

    // The second process.
    let second = post_office(|options| {
        shared(options).with("AWS_ENDPOINT_URL", &database).with("RELAYER_PRIVATE_KEY", fee_wallet)
    })
    .await;
    local::stack::release_leases(&second.app.db, second.app.clock.now()).await.expect("leases");
    let (ada, bob) = (ada.payer.at(&second), bob.payer.at(&second));
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

    let (db, now) = (&second.app.db, second.app.clock.now());
    let (mails, more) = mailbox::inbox(db, bob.agent(), None, None, 200).await.expect("an inbox");
    assert!(!more, "{label}");
    let mut by_address: BTreeMap<String, usize> = BTreeMap::new();
    for mail in &mails {
        assert!(mail.received_at <= now && mail.to.domain() == DOMAIN, "{label}: {mail:?}");
        *by_address.entry(mail.to.folded()).or_default() += 1;
    }
    assert!(by_address.values().all(|count| *count == 1), "{label}: twice: {by_address:?}");
    let rows = recipient::all(db, request_id).await.expect("rows");
    assert_eq!(rows.len(), recipients, "{label}");
    let mut accepted = 0;
    for row in &rows {
        let has_mail = by_address.contains_key(&row.to.folded());
        match row.state {
            State::Accepted | State::Delivered => {
                assert!(has_mail, "{label}: {row:?}");
                accepted += 1;
            }
            // It was being handed over when the process died.
            State::Ambiguous => {}
            _ => panic!("{label}: {row:?}"),
        }
    }
    assert_eq!(job["status"], if accepted > 0 { "completed" } else { "failed" }, "{label}: {job}");
    let counted = domain::load(db, ada.agent(), DOMAIN).await.expect("a row").expect("a domain").sent_count;
    assert_eq!(counted as usize, recipients, "{label}: the day's count");
    let price = EACH * recipients as u64;
    let spent = 1_000_000 - u64::try_from(ada.balance(&second).await).expect("an amount");
    let credited = books::audit(db, ada.agent()).await.credits.micro();
    assert_eq!((spent, credited), (price, price - EACH * accepted), "{label}: {job}");
    assert_eq!(reached(&job) as u64, accepted, "{label}: {job}");
    // At most eight are handed over at the same time.
    assert!(recipients as u64 - accepted <= 8, "{label}: {job}");
    let again: Value = ada.client.post(SEND, &paid, &body).await.json();
    assert_eq!(again["request_id"], json!(request_id), "{label}");
    second.kill().await;
    died
}
