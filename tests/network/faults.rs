//! The other actions at a Unipile that fails: each is done once, or said to be open, and charged once. What is read survives accounts
//! that vanish and cursors that are forgotten. The limits hold however many calls come at once.

use std::time::Duration;

use base::clock::Clock;
use base::ids::RequestId;
use futures_util::future::join_all;
use local::Stack;
use platform::store::queue;
use serde_json::{Value, json};
use tools_network::action::{self, State};

use super::unipile::{connected, post, spent, still, waits};
use super::{Agent, id_of};
use crate::support::unipile::{Mood, SECRET, Unipile, heard, message};
use crate::support::{eventually, run, stack_with};

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// The state of an action when nothing is under way any more.
async fn settled(stack: &Stack, request: RequestId) -> State {
    eventually("an action at rest", || async {
        let action = action::load(&stack.app.db, request).await.expect("a database")?;
        let is_at_rest = action.state.is_over() || action.state == State::Ambiguous;
        (is_at_rest && stack.queue.is_idle()).then_some(action.state)
    })
    .await
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Reply,
    React,
    Invite,
    Withdraw,
}

/// The path and the body of an action, and what has to be there before; and what was charged for that.
async fn prepared(
    what: What,
    unipile: &Unipile,
    agent: &Agent,
    account: &str,
    upstream: &str,
) -> (&'static str, Value, u64) {
    match what {
        What::Reply => {
            let said = message(upstream, "chat-p-friend-joe", "m-joe", "Are you there?", false, Clock::system().now());
            assert_eq!(post(agent, "webhook/messaging", SECRET, &heard(upstream, &said)).await.status, 200);
            let chats = agent.get(&format!("accounts/{account}/conversations")).await.json();
            let chat = &chats["conversations"][0]["id"];
            ("reply", json!({"account_id": account, "conversation_id": chat, "text": "At ten."}), 0)
        }
        What::React => ("react", json!({"account_id": account, "post_id": "7332", "reaction_type": "love"}), 0),
        What::Invite => ("invite", json!({"account_id": account, "profile": "jane", "note": "Hello"}), 0),
        What::Withdraw => {
            unipile.is(Mood::Good);
            let invited = agent.done("invite", &json!({"account_id": account, "profile": "jane"}), "before").await;
            let id = &invited["result"]["invitation_id"];
            ("invite/withdraw", json!({"account_id": account, "invitation_id": id}), 20_000)
        }
    }
}

#[test]
fn each_action_is_done_once_or_said_to_be_open() {
    run(async {
        let unipile = Unipile::start().await;
        let (stack, clock) = still(&unipile).await;
        let cases = [
            (What::Reply, Mood::ErrorAfter, State::Sent, "sent"),
            (What::Reply, Mood::Hidden, State::Ambiguous, "ambiguous"),
            (What::React, Mood::ErrorAfter, State::Ambiguous, "ambiguous"),
            (What::Invite, Mood::ErrorAfter, State::Sent, "sent"),
            (What::Invite, Mood::Cut, State::Sent, "sent"),
            (What::Invite, Mood::Hidden, State::Ambiguous, "ambiguous"),
            (What::Invite, Mood::ErrorBefore, State::Ambiguous, "ambiguous"),
            (What::Withdraw, Mood::ErrorAfter, State::Sent, "withdrawn"),
            (What::Withdraw, Mood::Cut, State::Sent, "withdrawn"),
        ];
        for (index, (what, mood, state, status)) in cases.into_iter().enumerate() {
            let agent = Agent::new(&stack).await;
            let upstream = format!("acc-{index}");
            let account = connected(&unipile, &agent, &upstream).await;
            let (path, body, before) = prepared(what, &unipile, &agent, &account, &upstream).await;
            // Longer than the pause between two invitations.
            clock.advance(Duration::from_secs(136));
            unipile.is(mood);
            let made = unipile.made().len();
            let id = id_of(&agent.buy(path, &body, "once").await);
            let label = format!("{what:?} in a {mood:?} mood");
            assert_eq!(settled(&stack, id).await, state, "{label}");
            if state == State::Ambiguous {
                let headers = [("authorization", agent.token.as_str())];
                let poll = agent.payer.client.get(&format!("/v1/requests/{id}"), &headers).await.json();
                let message = poll["progress"]["message"].as_str().unwrap_or_default().to_owned();
                assert!(message.starts_with("ambiguous: "), "{label}: {poll}");
                unipile.is(Mood::Good);
                clock.advance(DAY + Duration::from_secs(1));
                queue::send_or_log(&*stack.queue, id, None).await;
            }
            let job = agent.ended(&id.to_string()).await;
            assert_eq!(
                (&job["status"], &job["result"]["status"]),
                (&json!("completed"), &json!(status)),
                "{label}: {job}"
            );
            assert_eq!(unipile.made().len() - made, 1, "{label}");
            let price = if what == What::React { 10_000 } else { 20_000 };
            assert_eq!(spent(&stack, &agent).await, before + price, "{label}");
        }
        assert_eq!(unipile.strange(), Vec::<String>::new());
    });
}

/// An invitation whose id Unipile has not told is found when it is taken back.
#[test]
fn an_invitation_without_an_id_is_taken_back() {
    run(async {
        let unipile = Unipile::start().await;
        let (stack, clock) = still(&unipile).await;
        let agent = Agent::new(&stack).await;
        let account = connected(&unipile, &agent, "acc-nameless").await;
        unipile.is(Mood::Nameless);
        let job = agent.done("invite", &json!({"account_id": account, "profile": "jane"}), "once").await;
        assert_eq!((&job["result"]["status"], &job["result"]["tracked"]), (&json!("sent"), &json!(false)), "{job}");
        unipile.is(Mood::Good);
        clock.advance(Duration::from_secs(136));
        let body = json!({"account_id": account, "invitation_id": job["result"]["invitation_id"]});
        let job = agent.done("invite/withdraw", &body, "back").await;
        assert_eq!(job["result"]["status"], "withdrawn", "{job}");
        assert_eq!(unipile.made().last().map(|(_, text)| text.as_str()), Some("withdrawn"));
    });
}

/// A member is invited once, however its owner writes the member; and of several withdrawals, one stops an invitation and is charged.
#[test]
fn a_member_has_one_invitation_and_that_one_withdrawal() {
    run(async {
        let unipile = Unipile::start().await;
        let (stack, clock) = still(&unipile).await;
        let agent = Agent::new(&stack).await;
        let account = connected(&unipile, &agent, "acc-once").await;
        let invite = |profile: &str| json!({"account_id": account, "profile": profile});
        let first = agent.done("invite", &invite("https://www.linkedin.com/in/ren%C3%A9e"), "first").await;
        assert_eq!(first["result"]["status"], "sent", "{first}");
        assert_eq!(unipile.made(), [("p-renée".to_owned(), String::new())]);
        for same in ["renée", "p-renée", "https://www.linkedin.com/in/Ren%C3%A9e/en"] {
            let refused = agent.buy("invite", &invite(same), "same").await;
            assert_eq!(refused.error(), (409, "duplicate_request".to_owned()), "{same}");
        }

        // This one has to wait for its turn.
        let waiting = id_of(&agent.buy("invite", &invite("joe"), "waiting").await);
        waits(&stack, waiting).await;
        let all = agent.get(&format!("accounts/{account}/invitations?status=queued")).await.json();
        let body = json!({"account_id": account, "invitation_id": all["invitations"][0]["invitation_id"]});
        let jobs = join_all(["one", "two", "three"].map(|key| agent.done("invite/withdraw", &body, key))).await;
        let mut statuses: Vec<&str> = jobs.iter().filter_map(|job| job["result"]["status"].as_str()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, ["already_withdrawn", "already_withdrawn", "cancelled_before_send"], "{jobs:?}");
        assert_eq!(agent.ended(&waiting.to_string()).await["error_reason"], "withdrawn");
        assert_eq!((unipile.made().len(), spent(&stack, &agent).await), (1, 40_000));

        // Who both are is only known when they are sent.
        let both =
            [agent.buy("invite", &invite("ann"), "ann").await, agent.buy("invite", &invite("p-ann"), "p-ann").await];
        let both = both.map(|accepted| id_of(&accepted));
        join_all(both.map(|job| waits(&stack, job))).await;
        clock.advance(Duration::from_secs(3_600));
        for job in both {
            queue::send_or_log(&*stack.queue, job, None).await;
        }
        let jobs = [agent.ended(&both[0].to_string()).await, agent.ended(&both[1].to_string()).await];
        let mut statuses: Vec<&str> = jobs.iter().filter_map(|job| job["result"]["status"].as_str()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, ["pending", "sent"], "{jobs:?}");
        assert_eq!((unipile.made().len(), spent(&stack, &agent).await), (2, 60_000));
    });
}

/// What the network allows no more now, it has not done: that is not tried again at once, and paid back.
#[test]
fn a_limit_of_the_network_costs_nothing() {
    run(async {
        let unipile = Unipile::start().await;
        let stack = stack_with(|options| unipile.options(options)).await;
        let agent = Agent::new(&stack).await;
        let account = connected(&unipile, &agent, "acc-busy").await;
        unipile.is(Mood::TooMany);
        let job = agent.done("invite", &json!({"account_id": account, "profile": "jane"}), "once").await;
        assert_eq!((&job["status"], &job["error_reason"]), (&json!("failed"), &json!("rate_limited")), "{job}");
        assert_eq!((unipile.made().len(), spent(&stack, &agent).await), (1, 0));
        let shown = agent.get(&format!("accounts/{account}")).await.json();
        assert_eq!(shown["limits"]["invites"]["remaining"], 25, "{shown}");
    });
}

/// A withdrawal that the network did not do is tried again: twice does no harm.
#[test]
fn a_withdrawal_that_was_not_done_is_tried_again() {
    run(async {
        let unipile = Unipile::start().await;
        let (stack, clock) = still(&unipile).await;
        let agent = Agent::new(&stack).await;
        let account = connected(&unipile, &agent, "acc-again").await;
        let (path, body, before) = prepared(What::Withdraw, &unipile, &agent, &account, "acc-again").await;
        clock.advance(Duration::from_secs(136));
        unipile.is(Mood::ErrorBefore);
        let made = unipile.made().len();
        let id = id_of(&agent.buy(path, &body, "once").await);
        eventually("two tries", || async { (unipile.made().len() - made >= 2).then_some(()) }).await;
        eventually("a pause", || async {
            let action = action::load(&stack.app.db, id).await.expect("a database")?;
            (action.tries == 2 && action.state == State::Queued).then_some(())
        })
        .await;
        assert_eq!(unipile.made().len() - made, 2, "it is not asked without a pause");
        unipile.is(Mood::Good);
        clock.advance(Duration::from_secs(3_600));
        queue::send_or_log(&*stack.queue, id, None).await;
        let job = agent.ended(&id.to_string()).await;
        assert_eq!(job["result"]["status"], "withdrawn", "{job}");
        assert_eq!(spent(&stack, &agent).await, before + 20_000);
    });
}

/// A member who becomes a connection has accepted the invitation, also one whose fate was unknown.
#[test]
fn an_accepted_invitation_is_known() {
    run(async {
        let unipile = Unipile::start().await;
        let (stack, _) = still(&unipile).await;
        for (mood, state) in [(Mood::Good, State::Sent), (Mood::Hidden, State::Ambiguous)] {
            unipile.is(mood);
            let agent = Agent::new(&stack).await;
            let upstream = format!("acc-{mood:?}");
            let account = connected(&unipile, &agent, &upstream).await;
            let profile = format!("jane-{mood:?}");
            let body = json!({"account_id": account, "profile": format!("https://www.linkedin.com/in/{profile}/")});
            let id = id_of(&agent.buy("invite", &body, "once").await);
            assert_eq!(settled(&stack, id).await, state);
            let relation = |account: &str| {
                json!({
                    "event": "new_relation", "account_id": account, "account_type": "LINKEDIN", "webhook_name": "",
                    "user_full_name": "Jane Doe", "user_provider_id": format!("p-{profile}"), "user_public_identifier": profile,
                    "user_profile_url": format!("https://www.linkedin.com/in/{profile}/"),
                })
            };
            unipile.befriend(&format!("p-{profile}"));
            for account in [&upstream, "nobody", &upstream] {
                assert_eq!(post(&agent, "webhook/relations", SECRET, &relation(account)).await.status, 200);
            }
            let refused = post(&agent, "webhook/relations", "wrong", &relation(&upstream)).await;
            assert_eq!(refused.error(), (401, "unauthorized".to_owned()));
            let job = agent.ended(&id.to_string()).await;
            assert_eq!(job["result"]["status"], "sent", "{mood:?}: {job}");
            let told = json!({"event": "new_relation", "account_id": upstream, "user_provider_id": format!("p-{profile}"),
                "user_public_identifier": profile});
            assert_eq!(post(&agent, "webhook/relations", SECRET, &told).await.status, 200);
            let seen = agent.get(&format!("accounts/{account}/invitations")).await.json();
            let seen = &seen["invitations"][0];
            assert!(seen["status"] == "accepted" && seen["accepted_at"].is_string(), "{mood:?}: {seen}");
        }
    });
}

/// An account that is deleted while it is read: what was read stays, and nothing is sold any more.
#[test]
fn an_account_that_vanishes_is_read_up_to_there() {
    run(async {
        let unipile = Unipile::start().await;
        let stack = stack_with(|options| unipile.options(options)).await;
        let agent = Agent::new(&stack).await;
        let account = connected(&unipile, &agent, "acc-gone").await;
        unipile.history("acc-gone", 10, 2);
        unipile.forget_after("acc-gone", 2);
        let body = json!({"account_id": account});
        let job = agent.done("sync", &body, "one").await;
        let result = &job["result"];
        assert_eq!((&result["outcome"], &result["messages_inserted"]), (&json!("partial"), &json!(4)), "{job}");
        assert_eq!((&result["needs_continuation"], &result["pages"]), (&json!(true), &json!(2)), "{job}");
        let sync = agent.get(&format!("accounts/{account}/sync")).await.json();
        let is = (&sync["sync_state"], &sync["coverage"]["complete"], &sync["coverage"]["message_count"]);
        assert_eq!(is, (&json!("reconnect_required"), &json!(false), &json!(4)), "{sync}");
        assert_eq!(agent.buy("sync", &body, "two").await.error(), (409, "account_not_connected".to_owned()));
        let gone =
            json!({"AccountStatus": {"account_id": "acc-gone", "message": "DELETED", "account_type": "LINKEDIN"}});
        assert_eq!(post(&agent, "webhook/account-status", SECRET, &gone).await.status, 200);
        let shown = agent.get(&format!("accounts/{account}")).await.json();
        let is = (&shown["status"], &shown["reconnect_required"]);
        assert_eq!(is, (&json!("deleted_upstream"), &json!(false)), "{shown}");
        let again = agent.post(&format!("accounts/{account}/reconnect"), &json!({})).await;
        assert_eq!(again.error(), (409, "connect_required".to_owned()), "{}", again.text);
        assert_eq!(spent(&stack, &agent).await, 20_000);
    });
}

/// A cursor that the provider has forgotten: the next sync begins anew, and stores nothing twice.
#[test]
fn a_sync_survives_a_forgotten_cursor() {
    run(async {
        let unipile = Unipile::start().await;
        let stack = stack_with(|options| unipile.options(options)).await;
        let agent = Agent::new(&stack).await;
        let account = connected(&unipile, &agent, "acc-lost").await;
        unipile.history("acc-lost", 6, 2);
        let first = agent.done("sync", &json!({"account_id": account, "max_pages": 2}), "one").await;
        assert_eq!(first["result"]["outcome"], "bounded", "{first}");
        unipile.lose_cursors();
        let job = agent.done("sync", &json!({"account_id": account}), "two").await;
        let result = &job["result"];
        let is = ["pages", "cursor_resets", "messages_seen", "messages_inserted"].map(|name| result[name].as_u64());
        assert_eq!((is, &result["outcome"]), ([Some(3), Some(1), Some(6), Some(2)], &json!("exhausted")), "{job}");
        let sync = agent.get(&format!("accounts/{account}/sync")).await.json();
        assert_eq!(
            (&sync["sync_state"], &sync["coverage"]["message_count"]),
            (&json!("complete"), &json!(6)),
            "{sync}"
        );
    });
}

/// A free member's week has 15 invitations, of however many that come at once; and they have pauses between them.
#[test]
fn of_two_hundred_parallel_invitations_a_free_member_sends_fifteen() {
    run(async {
        let unipile = Unipile::start().await;
        let (stack, clock) = still(&unipile).await;
        let agent = Agent::new(&stack).await;
        let account = connected(&unipile, &agent, "free-1").await;
        let answers = join_all((0..200).map(|index| {
            let body = json!({"account_id": account, "profile": format!("jane-{index}"), "note": "Hello"});
            let agent = &agent;
            async move { agent.buy("invite", &body, &format!("invite-{index}")).await }
        }))
        .await;
        let (sold, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 202);
        assert!(refused.iter().all(|answer| answer.error() == (429, "account_send_limit".to_owned())));
        assert_eq!(sold.len(), 15);
        let long = json!({"account_id": account, "profile": "joe", "note": "x".repeat(201)});
        assert_eq!(agent.buy("invite", &long, "long").await.error(), (400, "invalid_request".to_owned()));
        let jobs: Vec<RequestId> = sold.iter().map(id_of).collect();
        // The first is sent at once. Each of the others waits for its turn.
        let mut turns = eventually("all turns", || async {
            let actions = join_all(jobs.iter().map(|job| action::load(&stack.app.db, *job))).await;
            actions.into_iter().map(|action| action.expect("a database")?.turn).collect::<Option<Vec<_>>>()
        })
        .await;
        turns.sort();
        assert!(turns.windows(2).all(|two| two[1] >= two[0].plus(Duration::from_secs(90))), "{turns:?}");
        assert!(unipile.made().len() <= 1, "{:?}", unipile.made());
        clock.advance(Duration::from_secs(3_600));
        for job in &jobs {
            queue::send_or_log(&*stack.queue, *job, None).await;
        }
        for job in &jobs {
            assert_eq!(agent.ended(&job.to_string()).await["result"]["status"], "sent");
        }
        assert_eq!(unipile.made().len(), 15);
        assert_eq!(spent(&stack, &agent).await, 15 * 20_000);
        // The next day has no more, the next week has.
        let body = json!({"account_id": account, "profile": "joe"});
        let mut days = 0;
        while agent.buy("invite", &body, &format!("day-{days}")).await.status == 429 {
            clock.advance(DAY);
            days += 1;
        }
        assert!((1..=7).contains(&days), "{days}");
        assert_eq!(clock.now().secs().div_euclid(24 * 3_600).rem_euclid(7), 4, "a Monday");
    });
}
