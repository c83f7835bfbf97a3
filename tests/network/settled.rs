//! The operator says what became of actions whose fate is unknown. A word counts once, and nothing is sent again.

use std::time::Duration;

use base::ids::RequestId;
use base::money::Usdc;
use futures_util::future::join_all;
use local::Stack;
use platform::store::{Key, Write, queue};
use serde_json::{Value, json};
use tools::spec::Claiming;
use tools_network::action::{self, Action, Event, Kind, State, Verdict};
use tools_network::invitations::{self, Status};
use tools_network::settle::{self, Desk, Settled};
use tools_network::{claiming, limits};

use super::unipile::{connected, spent, still};
use super::{Agent, id_of, local_stack};
use crate::support::unipile::{Mood, Unipile};
use crate::support::{eventually, run};

const PRICE: u64 = 20_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A message that Unipile has taken and shows to nobody.
struct Lost {
    agent: Agent,
    account: String,
    upstream: String,
    request: RequestId,
}

impl Lost {
    async fn new(unipile: &Unipile, stack: &Stack, name: &str) -> Lost {
        let agent = Agent::new(stack).await;
        let upstream = format!("acc-{name}");
        let account = connected(unipile, &agent, &upstream).await;
        let body = json!({"account_id": account, "profile": "friend-jane", "text": format!("This is {name}")});
        let request = id_of(&agent.buy("message", &body, "hello").await);
        eventually("an ambiguous action", || async {
            let action = action::load(&stack.app.db, request).await.expect("a database")?;
            (action.state == State::Ambiguous && stack.queue.is_idle()).then_some(())
        })
        .await;
        Lost { agent, account, upstream, request }
    }

    async fn job(&self) -> Value {
        self.agent.ended(&self.request.to_string()).await
    }

    /// What is left of its account's messages of the day.
    async fn places(&self) -> [Option<u64>; 2] {
        let account = self.agent.get(&format!("accounts/{}", self.account)).await.json();
        ["used", "pending"].map(|name| account["limits"]["messages"][name].as_u64())
    }
}

/// The verdicts of the list, by request.
async fn listed(stack: &Stack) -> Vec<(RequestId, State, Option<Verdict>)> {
    let now = stack.app.clock.now();
    let all = settle::list(&stack.app.db, now.minus(DAY * 7), now).await.expect("a list");
    all.into_iter().map(|listed| (listed.action.request, listed.action.state, listed.action.verdict)).collect()
}

#[test]
fn the_operator_settles_what_nobody_knows() {
    run(async {
        let unipile = Unipile::start().await;
        let (stack, clock) = still(&unipile).await;
        unipile.is(Mood::Hidden);
        let db = &stack.app.db;
        let desk = Desk { signer: Some(&stack.keys.receipts), queue: Some(&*stack.queue) };
        let say = |lost: &Lost, is_sent: bool| settle::settle(db, desk, lost.request, is_sent, clock.now());
        let wrong = Lost::new(&unipile, &stack, "wrong").await;
        let right = Lost::new(&unipile, &stack, "right").await;
        let late = Lost::new(&unipile, &stack, "late").await;
        let old = Lost::new(&unipile, &stack, "old").await;
        let all = settle::list(db, clock.now().minus(DAY), clock.now()).await.expect("a list");
        let mut upstreams: Vec<_> = all.iter().map(|one| one.account.clone().expect("an account").upstream).collect();
        upstreams.sort();
        let mut expected = [&wrong, &right, &late, &old].map(|lost| lost.upstream.clone());
        expected.sort();
        assert_eq!(upstreams, expected);

        // It was not sent: the job pays back.
        assert!(matches!(say(&wrong, false).await.expect("a word"), Settled::Done(_)));
        let job = wrong.job().await;
        assert_eq!((&job["status"], &job["error_reason"]), (&json!("failed"), &json!("not_sent")), "{job}");
        assert_eq!((spent(&stack, &wrong.agent).await, wrong.places().await), (0, [Some(0), Some(0)]));
        // It was sent.
        assert!(matches!(say(&right, true).await.expect("a word"), Settled::Done(_)));
        let job = right.job().await;
        assert_eq!((&job["status"], &job["result"]["status"]), (&json!("completed"), &json!("sent")), "{job}");
        assert_eq!((spent(&stack, &right.agent).await, right.places().await), (PRICE, [Some(1), Some(0)]));
        for (lost, said) in [(&wrong, false), (&right, true)] {
            assert!(matches!(say(lost, said).await.expect("a word"), Settled::Before(_)));
            assert!(matches!(say(lost, !said).await.expect("a word"), Settled::Otherwise(_)));
        }

        // Of those that have ended, the price comes back once.
        clock.advance(DAY + Duration::from_secs(1));
        for lost in [&late, &old] {
            queue::send_or_log(&*stack.queue, lost.request, None).await;
            let job = lost.job().await;
            assert_eq!(job["result"]["status"], "ambiguous", "{job}");
            assert_eq!(spent(&stack, &lost.agent).await, PRICE);
        }
        let unsigned = Desk::default();
        assert!(settle::settle(db, unsigned, late.request, false, clock.now()).await.is_err());
        let words = join_all([say(&late, false), say(&late, false), say(&late, false)]).await;
        let done = words.iter().filter(|word| matches!(word, Ok(Settled::Done(_)))).count();
        let before = words.iter().filter(|word| matches!(word, Ok(Settled::Before(_)))).count();
        assert_eq!((done, before), (1, 2), "{words:?}");
        assert!(matches!(say(&late, false).await.expect("a word"), Settled::Before(_)));
        assert_eq!(spent(&stack, &late.agent).await, 0);
        // Also once the row of its job is gone.
        db.write(Write::delete(&db.tables.jobs, Key::of_job(old.request))).await.expect("a database");
        for _ in 0..2 {
            say(&old, false).await.expect("a word");
        }
        let credits = ledger::account::load(db, old.agent.payer.agent()).await.expect("a database").credits;
        assert_eq!(credits, Usdc::from_micro(5_000_000));

        let all = listed(&stack).await;
        for (lost, state, is_sent, returned) in [
            (&wrong, State::Failed, false, None),
            (&right, State::Sent, true, None),
            (&late, State::Ended, false, Some(Usdc::from_micro(PRICE))),
            (&old, State::Ended, false, Some(Usdc::from_micro(PRICE))),
        ] {
            let found = all.iter().find(|(request, ..)| *request == lost.request).expect("a listed action");
            let verdict = found.2.expect("a verdict");
            assert_eq!((found.1, verdict.is_sent, verdict.returned), (state, is_sent, returned), "{}", lost.upstream);
        }
        assert_eq!((all.len(), unipile.made().len()), (4, 4), "nothing is sent again");
        let nobody = settle::settle(db, desk, RequestId::random(), true, clock.now()).await;
        assert_eq!(nobody, Ok(Settled::NoAction));
    });
}

/// The claim of an invitation whose job nobody runs, brought to where its fate is unknown.
async fn doubtful(stack: &Stack, agent: &Agent, account: &str, profile: &str) -> Action {
    let (toolbox, db, now) = (&stack.toolboxes["worker"], &stack.app.db, stack.app.clock.now());
    let body = json!({"account_id": account, "profile": profile});
    let (input, locked) = (body.as_object().expect("an object"), serde_json::Map::new());
    let request_id = RequestId::random();
    let price = Usdc::from_micro(PRICE);
    let claiming = Claiming { agent: agent.payer.agent(), request_id, input, locked: &locked, price, now };
    let writes = claiming::claim(toolbox, claiming, Kind::Invite).await.expect("the claim's writes");
    db.transact(&writes).await.expect("a claim");
    let queued = action::load(db, request_id).await.expect("a database").expect("an action");
    let sending = queued.after(Event::Begun, now).expect("a state");
    let unknown = sending.after(Event::Unknown, now).expect("a state");
    let mut writes = queued.change(db, &unknown).expect("writes");
    writes.push(unknown.doubt(db).expect("a write"));
    db.transact(&writes).await.expect("a change");
    unknown
}

/// A member whose invitation was not sent may be invited again, and its place is free.
#[test]
fn an_invitation_is_settled_with_its_action() {
    run(async {
        let stack = local_stack().await;
        let ann = Agent::new(&stack).await;
        let (of_ann, _) = ann.joins("Ann").await;
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        let open = async |profile: &str| doubtful(&stack, &ann, &of_ann, profile).await;
        let (not_sent, sent, ended) = (open("jane").await, open("joan").await, open("june").await);
        let over = ended.after(Event::GivenUp, now).expect("a state");
        let mut writes = ended.change(db, &over).expect("writes");
        writes.extend(ended.settle_place(db, true).expect("writes"));
        let invitation = (ended.account, invitations::id_of(ended.request));
        writes.extend(invitations::becomes(db, invitation, Status::Pending, None, now).await.expect("writes"));
        db.transact(&writes).await.expect("a change");
        for (action, profile, is_sent, status, is_open) in [
            (&not_sent, "jane", false, Status::Failed, false),
            (&sent, "joan", true, Status::Sent, true),
            (&ended, "june", true, Status::Sent, true),
        ] {
            let settled = settle::settle(db, Desk::default(), action.request, is_sent, now).await.expect("a word");
            assert!(matches!(settled, Settled::Done(_)), "{profile}: {settled:?}");
            let id = invitations::id_of(action.request);
            let found = invitations::load(db, action.account, id).await.expect("a database").expect("an invitation");
            assert_eq!(found.status, status, "{profile}");
            let open = invitations::open_of(db, action.account, profile).await.expect("a database");
            assert_eq!(open.is_some(), is_open, "{profile}");
        }
        let account = ann.get(&format!("accounts/{of_ann}")).await.json();
        let counted = &account["limits"]["invites"];
        assert_eq!((&counted["used"], &counted["pending"]), (&json!(2), &json!(0)), "{account}");

        // A place that counted as used is free again, as long as its time goes on.
        for (at, count) in [(now, 2), (now.minus(DAY * 30), 0)] {
            let place = (sent.counted, sent.tier);
            let free = limits::free(db, place, limits::Limit::Invites, at, now).expect("writes");
            assert_eq!(free.len(), count);
        }
    });
}
