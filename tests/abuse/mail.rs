//! Mail that agents send.

use std::sync::OnceLock;

use futures_util::future::join_all;
use local::{Options, Stack};
use platform::store::{Key, Write};
use serde_json::{Value, json};
use tools_email::domain;
use tools_email::recipient::{self, Recipient, State};
use tools_email::suppression::{self, Why};

use crate::email::identities::{self, WEEK, age, prove};
use crate::email::providers::{Ses, event, publish};
use crate::email::{Agent, DOMAINS, FIRST_DAY, SEND, boxes, mail_to, office, one_day, reached, warm_up, with};
use crate::support::crashes::{Death, Dying, Survived, die_at_steps};
use crate::support::run;
use crate::support::zone::Zone;

fn full() -> (u16, String) {
    (400, "no_sending_domain".to_owned())
}

/// Addresses outside.
fn outside(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("jane{number}@example.com")).collect()
}

fn permanent(to: &str) -> Value {
    json!({"bounceType": "Permanent", "bouncedRecipients": [{"emailAddress": to, "status": "5.1.1"}]})
}

/// How many mails of all agents are counted today.
async fn counted_outside(stack: &Stack) -> u64 {
    let (db, day) = (&stack.app.db, stack.app.clock.now().to_string());
    let key = Key::new("MAILSOUT#ALL", &day[..10]);
    let row: Option<Value> = db.get_latest(&db.tables.messages, key).await.expect("a database");
    row.map_or(0, |row| row["used"].as_u64().expect("a number"))
}

/// Deletes the row of what became of an agent's mails, or of all.
async fn lift(stack: &Stack, partition: String) {
    let write = Write::delete(&stack.app.db.tables.messages, Key::new(partition, "MAILRATE"));
    stack.app.db.write(write).await.expect("a database");
}

/// The limit of the first day binds an address that the agent names, and a domain of its own. Two sends race for the last place.
#[test]
fn the_days_limit_binds_named_addresses_and_own_domains() {
    run(async {
        one_day().await;
        let (ses, zone) = (Ses::start().await, Zone::new().start().await);
        let stack = identities::office(&ses, &zone).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let named = |to: Vec<String>, from: &str| with(mail_to(to), json!({"from_address": from}));
        let shop = "shop@agents.test";
        assert_eq!(ada.ask_proven(&named(boxes(&bob, FIRST_DAY + 1), shop)).await.error(), full());
        assert_eq!(reached(&ada.mail(&named(boxes(&bob, FIRST_DAY - 1), shop)).await), FIRST_DAY - 1);
        let last = named(boxes(&bob, 1), &ada.address);
        let quotes = [ada.ask_proven(&last).await.json(), ada.ask_proven(&last).await.json()];
        let (sender, mail) = (&ada, &last);
        let sends = quotes.iter().map(|quote| async move { sender.ended(sender.send(quote, mail).await).await });
        let mut statuses: Vec<Value> = join_all(sends).await.iter().map(|job| job["status"].clone()).collect();
        statuses.sort_by_key(Value::to_string);
        assert_eq!(statuses, ["completed", "failed"]);
        assert_eq!(bob.mails().await.len(), FIRST_DAY);
        assert_eq!(ada.ask_proven(&last).await.error(), full());

        prove(&stack, &zone, &ada, "firm.test").await;
        assert_eq!(ada.ask_proven(&named(outside(FIRST_DAY + 1), "ada@firm.test")).await.error(), full());
        assert_eq!(ses.asked().len(), 0);
    });
}

/// The sixth mail of a sender does not go out after five of twenty have bounced: not from its own name, not with a quote from
/// before. The operator can lift the stop.
#[test]
fn who_bounces_too_often_is_stopped_and_told() {
    run(async {
        one_day().await;
        let ses = Ses::start().await;
        let stack = ses.office().await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        warm_up(&stack, ada.payer.agent()).await;
        let more = with(mail_to("john@example.com"), json!({"from_address": ada.address}));
        let before = ada.ask_proven(&more).await.json();
        assert_eq!(reached(&ada.mail(&mail_to(outside(FIRST_DAY))).await), FIRST_DAY);
        let sent = ses.asked();
        for (number, asked) in sent.iter().take(5).enumerate() {
            assert_eq!(ada.ask(&more).await.status, 200, "{number} have bounced");
            publish(&stack, &number.to_string(), event("Bounce", asked, permanent(asked.to()))).await;
        }

        let refused = ada.ask_proven(&more).await;
        assert_eq!(refused.error(), (403, "sending_stopped".to_owned()));
        let message = refused.json()["message"].as_str().expect("a message").to_owned();
        assert!(message.contains("of 20 mails") && message.contains("postmaster@agents.test"), "{message}");
        let job = ada.ended(ada.send(&before, &more).await).await;
        assert_eq!((&job["status"], &job["error_reason"]), (&json!("failed"), &json!("sending_stopped")), "{job}");
        assert_eq!(job["credited_usdc"], "0.005000");
        assert_eq!(ses.asked().len(), FIRST_DAY, "nothing more went out");
        assert_eq!(reached(&ada.mail(&mail_to(bob.address.as_str())).await), 1, "mail inside goes on");
        assert_eq!(bob.ask(&mail_to("john@example.com")).await.status, 200, "others go on");

        let notes = ada.payer.get("/v1/tools/notifications").await.json();
        let told = notes["notifications"].as_array().expect("a list").iter();
        assert_eq!(told.filter(|note| note["type"] == "email_stopped").count(), 1, "{notes}");
        let listed = ada.payer.get(DOMAINS).await.json()["domains"][0].clone();
        assert_eq!((&listed["provisioning_status"], &listed["reason"]), (&json!("blocked"), &json!("sending_stopped")));

        lift(&stack, format!("AGENT#{}", ada.payer.agent())).await;
        assert_eq!(reached(&ada.mail(&more).await), 1);
    });
}

/// When too many mails of all agents have bounced, only addresses that mails reach get more, whoever writes.
#[test]
fn new_recipients_wait_when_too_many_mails_of_all_come_back() {
    run(async {
        one_day().await;
        let ses = Ses::start().await;
        let stack = ses.office().await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        assert_eq!(reached(&ada.mail(&mail_to(json!(["jane@example.com", "gone@example.com"]))).await), 2);
        let asked = |to: &str| ses.asked().into_iter().find(|asked| asked.to() == to).expect("a mail");
        publish(&stack, "1", event("Delivery", &asked("jane@example.com"), json!({}))).await;
        // Of 501 mails of others, 49 have bounced.
        let set = "ADD #handed :handed, #bounced :bounced";
        let write = Write::update(&stack.app.db.tables.messages, Key::new("MAILRATE#ALL", "MAILRATE"), set);
        let write = write.bind("handed", 499).unwrap().bind("bounced", 49).unwrap();
        stack.app.db.write(write).await.expect("a database");
        let to_both = mail_to(json!(["jane@example.com", "new@example.com"]));
        let before = bob.ask_proven(&to_both).await.json();

        publish(&stack, "2", event("Bounce", &asked("gone@example.com"), permanent("gone@example.com"))).await;
        assert_eq!(bob.ask(&to_both).await.error(), (503, "new_recipients_stopped".to_owned()));
        assert_eq!(reached(&bob.mail(&mail_to("jane@example.com")).await), 1, "mails reach this address");
        let job = bob.ended(bob.send(&before, &to_both).await).await;
        assert_eq!((reached(&job), &job["result"]["failed"][0]["to"]), (1, &json!("new@example.com")), "{job}");
        assert_eq!(ses.count("new@example.com"), 0);

        lift(&stack, "MAILRATE#ALL".to_owned()).await;
        assert_eq!(reached(&bob.mail(&mail_to("new@example.com")).await), 1);
    });
}

/// Three mails a day leave the deployment. Those that are never handed over take no place from others.
#[test]
fn all_agents_share_one_limit_of_the_day() {
    run(async {
        one_day().await;
        let ses = Ses::start().await;
        let stack = ses.office_with(|options| options.with("EMAIL_DAILY_MAILS", "3")).await;
        let (ada, bob, eve) = (Agent::new(&stack).await, Agent::new(&stack).await, Agent::new(&stack).await);
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        for address in ["gone@example.com", "away@example.com"] {
            suppression::suppress(db, address, None, Why::Complained, now).await.expect("a database");
        }
        let to_three = mail_to(json!(["gone@example.com", "away@example.com", "jane@example.com"]));
        assert_eq!(reached(&ada.mail(&to_three).await), 1);
        assert_eq!(ada.mail(&mail_to("gone@example.com")).await["status"], "failed");
        assert_eq!(counted_outside(&stack).await, 1, "one was handed over");
        let listed = ada.payer.get(DOMAINS).await.json()["domains"][0].clone();
        assert_eq!(listed["daily_sent_count"], 1, "{listed}");

        // Two are left, and three want to go.
        let body = mail_to("jane@example.com");
        let quotes = [(&bob, bob.quote(&body).await), (&eve, eve.quote(&body).await), (&ada, ada.quote(&body).await)];
        let mail = &body;
        let sends = quotes.iter().map(|(agent, quote)| async move { agent.ended(agent.send(quote, mail).await).await });
        let done = join_all(sends).await.iter().filter(|job| job["status"] == "completed").count();
        assert_eq!((done, ses.asked().len(), counted_outside(&stack).await), (2, 3, 3));
        let refused = bob.ask(&body).await;
        assert_eq!(refused.error(), (429, "email_limit_reached".to_owned()));
        assert!(refused.json()["retry_after"].as_u64().is_some_and(|secs| secs <= 86_400), "{}", refused.text);
        assert_eq!(bob.ask(&mail_to(outside(4))).await.error(), (400, "invalid_request".to_owned()));
        assert_eq!(reached(&bob.mail(&mail_to(ada.address.as_str())).await), 1, "mail inside goes on");
    });
}

/// The last of five mails is for an agent with money behind it. The four before cost their sender 0.02 USDC.
#[test]
fn the_last_mails_of_a_day_are_for_agents_with_money() {
    run(async {
        one_day().await;
        let ses = Ses::start().await;
        let stack = ses.office_with(|options| options.with("EMAIL_DAILY_MAILS", "5")).await;
        let ada = Agent::new(&stack).await;
        assert_eq!(reached(&ada.mail(&mail_to(outside(4))).await), 4);
        let last = mail_to("jane@example.com");
        let refused = ada.ask_proven(&last).await;
        assert_eq!(refused.error(), (429, "email_limit_reached".to_owned()));
        assert!(refused.text.contains("top up credits"), "{}", refused.text);
        // A quote that nobody proved does not tell it. The mail is paid back.
        assert_eq!(ada.mail(&last).await["credited_usdc"], "0.005000");
        assert_eq!(counted_outside(&stack).await, 4);
        ada.payer.has_settled(&stack, 50_000).await;
        assert_eq!(reached(&ada.mail(&last).await), 1);
        assert_eq!(counted_outside(&stack).await, 5);
    });
}

static MAIL_HOST: OnceLock<Ses> = OnceLock::new();

fn with_mail_host(options: Options) -> Options {
    MAIL_HOST.get().expect("a mail host").options(office(options))
}

/// Of three recipients, one wants no mail, and one is inside. What counts is what was handed over, once.
#[test]
fn places_come_back_once_if_the_process_dies_at_any_step() {
    run(async {
        one_day().await;
        let ses = Ses::start().await;
        assert!(MAIL_HOST.set(ses).is_ok());
        die_at_steps(3, 3, die_at).await;
    });
}

async fn die_at(death: Death) -> bool {
    let dying = Dying::start(death, with_mail_host).await;
    let (ada, bob) = (Agent::new(&dying.stack).await, Agent::new(&dying.stack).await);
    let (db, now) = (&dying.stack.app.db, dying.stack.app.clock.now());
    suppression::suppress(db, "gone@example.com", None, Why::Complained, now).await.expect("a database");
    let body = mail_to(json!(["gone@example.com", "jane@example.com", bob.address]));
    let unpaid = ada.unpaid(&ada.quote(&body).await, &body).await;
    let Survived { stack, payer, request_id, died, .. } = dying.pay(&ada.payer, SEND, &unpaid, &body).await;
    let rows: Vec<Recipient> = recipient::all(&stack.app.db, request_id).await.expect("rows");
    let states: Vec<State> = rows.iter().map(|row| row.state).collect();
    assert!(matches!(states[..], [State::Suppressed, State::Accepted | State::Ambiguous, _]), "{death:?}: {states:?}");
    assert_eq!(counted_outside(&stack).await, 1, "{death:?}: {states:?}");
    let row = domain::load(&stack.app.db, payer.agent(), "agents.test").await.expect("a database").expect("a domain");
    assert_eq!(row.sent_count, 2, "{death:?}: {states:?}");
    stack.kill().await;
    died
}

/// The agent that had a domain before gets none of its mail, once the record that proved it is gone. The next owner does.
#[test]
fn mail_inside_follows_a_domain_to_its_next_owner() {
    run(async {
        let (ses, zone) = (Ses::start().await, Zone::new().start().await);
        let stack = identities::office(&ses, &zone).await;
        let (ada, bob, eve) = (Agent::new(&stack).await, Agent::new(&stack).await, Agent::new(&stack).await);
        prove(&stack, &zone, &bob, "firm.test").await;
        let body = mail_to("agent@firm.test");
        assert_eq!(reached(&ada.mail(&body).await), 1);
        assert_eq!((bob.mails().await.len(), ses.count("agent@firm.test")), (1, 0), "it stays in the deployment");

        // The record is gone, and is looked up again a week after it was seen.
        zone.change(Zone::new());
        age(&stack, Key::new("MAILDOMAIN#firm.test", "DOMAIN"), "verified_at", WEEK).await;
        assert_eq!(reached(&ada.mail(&body).await), 1);
        assert_eq!(
            (bob.mails().await.len(), ses.count("agent@firm.test")),
            (1, 1),
            "it goes where the domain's mail goes"
        );
        let gone = domain::own_domain(&stack.app.db, "firm.test").await.expect("a database").expect("a domain");
        assert!(gone.gone_since.is_some(), "{gone:?}");

        prove(&stack, &zone, &eve, "firm.test").await;
        assert_eq!(reached(&ada.mail(&body).await), 1);
        assert_eq!((bob.mails().await.len(), eve.mails().await.len()), (1, 1));
    });
}
