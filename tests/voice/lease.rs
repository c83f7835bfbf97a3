//! Numbers that nobody uses are announced, and released two weeks later; a use keeps them. The texts and calls that come in at the
//! moment of a release, and a process that dies in a run.

use std::time::Duration;

use base::clock::Clock;
use base::ids::{AgentId, RequestId, uuid_of};
use futures_util::future::join;
use ledger::notifications;
use ledger::webhooks::endpoint::{self, Disabled};
use local::stack::Background;
use local::{Options, Stack};
use platform::net::FetchPolicy;
use platform::store::{Db, Write};
use serde_json::{Value, json};
use tools::Toolbox;
use tools_sms::lease::{NOTICE, UNUSED};
use tools_sms::number::Number;
use tools_sms::phone::{self, EMBEDDED, Owner, Phone, RESTS};
use tools_sms::receive::{Incoming, Taken, receive};
use tools_voice::config::InboundConfig;
use tools_voice::exchange::{self, Dialled};
use tools_voice::lease::{self, Looked};
use tools_voice::ringing::{self, Rang, Ring};
use tools_voice::{config, plan};

use super::{Agent, NUMBERS, data, inbound_of, phone_for, settings};
use crate::support::crashes::{Death, Dying, die_at_steps};
use crate::support::{eventually, run, stack_with};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Numbers that texts come to while they are released.
const NUMBERS_AT_ONCE: usize = 24;

/// A stack whose time stands still. Only its worker runs: nobody looks at leases but the test.
async fn quiet_from(clock: Clock) -> Stack {
    stack_with(|options| Options { clock, background: Background::Worker, ..options }).await
}

/// An agent with a number, which needs no proof of the present.
async fn agent(toolbox: &Toolbox) -> Phone {
    phone_for(toolbox, AgentId::from_bytes(base::digest::random())).await
}

async fn look(toolbox: &Toolbox) -> (u32, u32) {
    let Looked { announced, released, more } = lease::look(toolbox).await.expect("a database");
    assert!(!more, "more than a run looks at");
    (announced, released)
}

fn answering() -> InboundConfig {
    let members = settings(json!({"webhook_url": "https://example.com/calls"}));
    config::read(members.as_object().expect("settings"), &FetchPolicy::default()).expect("settings")
}

async fn put_settings(toolbox: &Toolbox, phone: &Phone) {
    let saved = tools_voice::settings::save(&toolbox.db, phone, &answering(), None, toolbox.clock.now()).await;
    assert!(saved.expect("a database").is_some(), "no such number");
}

/// A text comes in.
async fn text(toolbox: &Toolbox, to: &Number) -> Taken {
    let at = toolbox.clock.now();
    let event_id = RequestId::random().to_string();
    let from = "+4915112345678";
    let incoming = Incoming { from, to, body: "Hello", num_media: 0, at, event_id: &event_id, local_sender: None };
    receive(toolbox, &incoming).await.expect("a database")
}

/// A call comes in.
async fn ring(toolbox: &Toolbox, to: &Number) -> Rang {
    let id = RequestId::random();
    let ring = Ring { id, to, from: "+4915112345678", caller: None, provider: None, price: plan::EACH, hops: 0 };
    ringing::ring(toolbox, &ring).await.expect("a database")
}

/// What the agent was told of its numbers, oldest first.
async fn told(db: &Db, agent: AgentId) -> Vec<Value> {
    let mut notes = notifications::list(db, agent, false, 100).await.expect("a database");
    notes.retain(|note| note["type"] == "phone_expiring");
    notes.reverse();
    notes.iter().map(|note| note["payload"]["status"].clone()).collect()
}

/// Whether the agent has the number. The rows agree.
async fn is_kept(db: &Db, phone: &Phone) -> bool {
    let own = phone::list(db, phone.agent).await.expect("a database");
    let is_kept = own.iter().any(|own| own.number == phone.number);
    let owner = phone::owner_of(db, &phone.number).await.expect("a database");
    assert_eq!(owner.is_some_and(|owner| owner.agent == phone.agent), is_kept, "half released");
    is_kept
}

#[test]
fn a_number_that_nobody_uses_is_announced_and_released() {
    run(async {
        // It ends in the present, where proofs are valid: they may be some minutes old, but hardly be of the future.
        let present = Clock::system().now().plus(Duration::from_secs(120));
        let clock = Clock::pinned(present.minus(UNUSED).minus(NOTICE));
        let stack = quiet_from(clock.clone()).await;
        let (toolbox, db) = (stack.worker.toolbox.clone(), &stack.app.db);
        let (ada, of_ada) = Agent::with_number(&stack).await;
        let of_bob = agent(&toolbox).await;
        put_settings(&toolbox, &of_ada).await;
        clock.advance(UNUSED.saturating_sub(Duration::from_millis(1)));
        assert_eq!(look(&toolbox).await, (0, 0));
        clock.advance(Duration::from_millis(1));
        assert_eq!((look(&toolbox).await, look(&toolbox).await), ((2, 0), (0, 0)), "once each");
        assert_eq!(told(db, of_ada.agent).await, ["expiring"]);
        assert!(is_kept(db, &of_ada).await);
        clock.advance(NOTICE);
        assert_eq!((look(&toolbox).await, look(&toolbox).await), ((0, 2), (0, 0)), "once each");
        assert_eq!(told(db, of_ada.agent).await, ["expiring", "released"]);

        assert!(!is_kept(db, &of_ada).await);
        let gone = (404, "number_not_found".to_owned());
        assert_eq!(ada.payer.get(&inbound_of(&of_ada)).await.error(), gone);
        assert_eq!(ada.put(&of_ada, &settings(json!({}))).await.error(), gone);
        assert_eq!(data(&ada.payer.get(NUMBERS).await)["numbers"], json!([]));
        let hook = endpoint::load(db, of_ada.agent, tools_voice::settings::endpoint_id(of_ada.id)).await;
        assert_eq!(hook.expect("a database").expect("an endpoint").disabled, Some(Disabled::ByOwner));
        assert_eq!(text(&toolbox, &of_ada.number).await, Taken::UnknownNumber);
        let (carl, _) = Agent::with_number(&stack).await;
        assert_eq!(carl.dial(&of_ada.number).await.error(), (404, "number_not_in_service".to_owned()));

        // An agent's numbers are tried in the same order each time, and the first was free before.
        let next = phone_for(&toolbox, of_ada.agent).await;
        assert_ne!(next.number, of_ada.number, "it rests");
        let listed = data(&ada.payer.get(NUMBERS).await)["numbers"][0].clone();
        let expires_at = clock.now().plus(UNUSED).plus(NOTICE).to_string();
        assert_eq!((&listed["id"], &listed["expires_at"]), (&json!(next.id), &json!(expires_at)));
        clock.advance(RESTS);
        let again = phone_for(&toolbox, of_bob.agent).await;
        assert_eq!((&again.number, again.inbound), (&of_bob.number, None), "it is sold again");
        assert_eq!(text(&toolbox, &of_bob.number).await, Taken::Stored);
    });
}

#[test]
fn a_number_that_is_used_stays() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let stack = quiet_from(clock.clone()).await;
        let (toolbox, db) = (stack.toolboxes["voice"].clone(), &stack.app.db);
        let worker = stack.worker.toolbox.clone();
        let mut phones = Vec::new();
        for _ in 0..6 {
            phones.push(agent(&worker).await);
        }
        let [texted, called, dials, set, sends, unused] = &phones[..] else { panic!("six numbers") };
        put_settings(&toolbox, called).await;
        clock.advance(UNUSED);
        assert_eq!(look(&worker).await, (6, 0));

        clock.advance(DAY);
        assert_eq!(text(&worker, &texted.number).await, Taken::Stored);
        // Without credits.
        assert!(matches!(ring(&toolbox, &called.number).await, Rang::Declined(..)));
        // Dialling a number that takes no calls is not a use of it.
        let id = RequestId::random();
        let dialled = exchange::dial(&toolbox, dials.agent, dials, &unused.number, id, plan::EACH).await;
        assert!(matches!(dialled, Ok(Dialled::NotInService)), "{dialled:?}");
        put_settings(&toolbox, set).await;
        phone::used(db, sends, clock.now()).await.expect("a number");

        clock.advance(NOTICE);
        assert_eq!(look(&worker).await, (0, 1), "the announcement was dropped");
        for phone in &phones {
            assert_eq!(is_kept(db, phone).await, phone != unused);
        }
        // Their time begins anew with the use.
        clock.advance(UNUSED.saturating_sub(NOTICE).saturating_sub(DAY));
        assert_eq!(look(&worker).await, (0, 0));
        clock.advance(DAY);
        assert_eq!(look(&worker).await, (5, 0));
        assert_eq!(told(db, set.agent).await, ["expiring", "expiring"]);
    });
}

#[test]
fn a_number_of_before_there_were_leases_gets_one_when_it_is_used() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let stack = quiet_from(clock.clone()).await;
        let (toolbox, db) = (stack.worker.toolbox.clone(), &stack.app.db);
        let (number, source, id) = (Number::fictitious(7), EMBEDDED.to_owned(), uuid_of(&[b"old"]));
        let phone = Phone {
            id,
            agent: AgentId::from_bytes([7; 16]),
            number: number.clone(),
            source: source.clone(),
            bought_by: RequestId::random(),
            created: clock.now(),
            last_used_at: Some(clock.now()),
            leased: false,
            lost_at: None,
            inbound: None,
            line: None,
        };
        let owner = Owner { agent: phone.agent, id, source, used_at: None, free_from: None };
        let rows = [
            Write::put(&db.tables.messages, phone::key_of(phone.agent, EMBEDDED), &phone).expect("a row"),
            Write::put(&db.tables.messages, phone::owner_key(&number), &owner).expect("a row"),
        ];
        db.transact(&rows).await.expect("a number");
        assert_eq!(phone.expires_at(), None);
        clock.advance(UNUSED);
        assert_eq!(look(&toolbox).await, (0, 0));
        phone::used(db, &phone, clock.now()).await.expect("a number");
        clock.advance(UNUSED);
        assert_eq!(look(&toolbox).await, (1, 0));
        clock.advance(NOTICE);
        assert_eq!(look(&toolbox).await, (0, 1));
        assert!(!is_kept(db, &phone).await);
    });
}

/// Whichever side writes second is refused: the rows have changed since it read them.
#[test]
fn of_a_release_and_a_use_at_once_one_is_refused() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let stack = quiet_from(clock.clone()).await;
        let (toolbox, db) = (stack.worker.toolbox.clone(), &stack.app.db);
        let (kept, gone) = (agent(&toolbox).await, agent(&toolbox).await);
        let owner =
            async |phone: &Phone| phone::owner_of(db, &phone.number).await.expect("a database").expect("an owner");
        let (of_kept, of_gone) = (owner(&kept).await, owner(&gone).await);
        clock.advance(UNUSED + NOTICE);
        let now = clock.now();

        assert_eq!(text(&toolbox, &kept.number).await, Taken::Stored);
        let released = db.transact(&phone::release(db, &kept, &of_kept, now).expect("writes")).await;
        assert!(released.is_err_and(|error| error.is_refused()) && is_kept(db, &kept).await);

        db.transact(&phone::release(db, &gone, &of_gone, now).expect("writes")).await.expect("a release");
        assert!(!phone::reached(db, &gone.number, &of_gone, now).await.expect("a database"), "a text or a call");
        assert!(phone::used(db, &gone, now).await.is_err(), "a text or a call from it");
        let saved = tools_voice::settings::save(db, &gone, &answering(), None, now).await;
        assert_eq!(saved, Ok(None));
        assert!(!is_kept(db, &gone).await);
    });
}

#[test]
fn texts_that_come_in_while_numbers_are_released_keep_theirs_or_are_refused() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let stack = quiet_from(clock.clone()).await;
        let (toolbox, db) = (stack.worker.toolbox.clone(), &stack.app.db);
        let mut phones = Vec::new();
        for _ in 0..NUMBERS_AT_ONCE {
            phones.push(agent(&toolbox).await);
        }
        clock.advance(UNUSED);
        lease::look(&toolbox).await.expect("a database");
        clock.advance(NOTICE);
        let texts = async {
            let mut taken = Vec::new();
            for phone in &phones {
                taken.push(text(&toolbox, &phone.number).await);
            }
            taken
        };
        let (looked, taken) = join(lease::look(&toolbox), texts).await;
        looked.expect("a database");
        // Whatever the first run met at the wrong moment.
        look(&toolbox).await;
        for (phone, taken) in phones.iter().zip(taken) {
            let received = told_of_texts(db, phone.agent).await;
            match taken {
                Taken::Stored => assert_eq!((is_kept(db, phone).await, received), (true, 1)),
                Taken::UnknownNumber => assert_eq!((is_kept(db, phone).await, received), (false, 0)),
                Taken::Full => panic!("one text"),
            }
        }
    });
}

/// Texts of which the agent was told.
async fn told_of_texts(db: &Db, agent: AgentId) -> usize {
    let notes = notifications::list(db, agent, false, 100).await.expect("a database");
    notes.iter().filter(|note| note["type"] == "sms_received").count()
}

#[test]
fn the_scheduler_has_the_worker_look_at_numbers() {
    run(async {
        let clock = Clock::pinned(Clock::system().now());
        let of_stack = clock.clone();
        let stack = stack_with(|options| Options { clock: of_stack, ..options }).await;
        let (toolbox, db) = (stack.worker.toolbox.clone(), &stack.app.db);
        let phone = agent(&toolbox).await;
        put_settings(&toolbox, &phone).await;
        for (wait, said) in [(UNUSED, "expiring"), (NOTICE, "released")] {
            clock.advance(wait);
            eventually(said, || async { told(db, phone.agent).await.contains(&json!(said)).then_some(()) }).await;
        }
        assert!(!is_kept(db, &phone).await);
    });
}

#[test]
fn a_run_survives_a_crash_at_every_step() {
    run(die_at_steps(1, 1, die_in_a_run));
}

async fn die_in_a_run(death: Death) -> bool {
    let still = |options: Options| Options {
        clock: Clock::pinned(Clock::system().now()),
        background: Background::Worker,
        ..options
    };
    let dying = Dying::start(death, still).await;
    let (toolbox, clock) = (dying.stack.worker.toolbox.clone(), dying.stack.app.clock.clone());
    let of_ada = agent(&toolbox).await;
    put_settings(&toolbox, &of_ada).await;
    clock.advance(NOTICE);
    let of_bob = agent(&toolbox).await;
    clock.advance(UNUSED.saturating_sub(NOTICE));
    assert_eq!(look(&toolbox).await, (1, 0));
    clock.advance(NOTICE);
    // One is to be released, the other to be announced.
    let (stack, _, died) = dying.die_in(lease::look(&toolbox)).await;

    let db = &stack.app.db;
    stack.app.clock.advance(UNUSED + NOTICE);
    look(&stack.worker.toolbox).await;
    assert_eq!(look(&stack.worker.toolbox).await, (0, 0), "{death:?}");
    assert_eq!(told(db, of_ada.agent).await, ["expiring", "released"], "{death:?}");
    assert_eq!(told(db, of_bob.agent).await, ["expiring"], "{death:?}");
    assert_eq!((is_kept(db, &of_ada).await, is_kept(db, &of_bob).await), (false, true), "{death:?}");
    let left = tools_voice::settings::load(db, of_ada.agent, of_ada.id).await.expect("a database");
    assert_eq!(left, None, "{death:?}");
    stack.kill().await;
    died
}
