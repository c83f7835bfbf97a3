//! Unipile as it may be at its worst: a message accepted whose answer is lost, one that its webhook tells of first, an error after
//! it was accepted, posts that come twice. Each action is sent once, or said to be open; and it is charged once.

use std::time::Duration;

use base::clock::Clock;
use local::stack::Background;
use local::{Options, Stack};
use platform::store::queue;
use serde_json::{Value, json};

use super::{Agent, ROOT, id_of};
use crate::support::unipile::{self, Mood, SECRET, Unipile};
use crate::support::{Answer, books, eventually, run, stack_with};

/// A stack whose time stands still until a test moves it.
pub async fn still(unipile: &Unipile) -> (Stack, Clock) {
    let clock = Clock::pinned(Clock::system().now());
    let at = clock.clone();
    let options = |options| Options { clock: at, background: Background::Worker, ..unipile.options(options) };
    (stack_with(options).await, clock)
}

/// Waits until a job's first run has put it down.
pub async fn waits(stack: &Stack, job: base::ids::RequestId) {
    eventually("a queued action", || async {
        let job = gate::jobs::store::load_latest(&stack.app.db, job).await.expect("a database")?;
        job.handed_until.map(drop)
    })
    .await;
}

/// Posts as Unipile does.
pub async fn post(agent: &Agent, path: &str, secret: &str, body: &Value) -> Answer {
    let headers = [("unipile-auth", secret)];
    agent.payer.client.send("POST", &format!("{ROOT}/{path}"), &headers, body.to_string()).await.expect("an answer")
}

/// Connects an account as Unipile does: its id here.
pub async fn connected(unipile: &Unipile, agent: &Agent, upstream: &str) -> String {
    let body = json!({"requested_actions": ["read", "reply", "view_profile", "react", "invite"]});
    let issued = agent.post("connect", &body).await;
    assert_eq!(issued.status, 201, "{}", issued.text);
    let intent = issued.json()["intent_id"].as_str().expect("an id").to_owned();
    let path = unipile.callback(&intent);
    let said = json!({"status": "CREATION_SUCCESS", "account_id": upstream, "name": intent});
    // Another intent's name, and a token that nobody has, are refused.
    let mut wrong = said.clone();
    wrong["name"] = json!("another");
    assert_eq!(agent.payer.client.post(&path, &[], &wrong).await.status, 404);
    let other = format!("{}{}", &path[..path.len() - 1], if path.ends_with('0') { '1' } else { '0' });
    assert_eq!(agent.payer.client.post(&other, &[], &said).await.status, 404);
    for _ in 0..2 {
        let taken = agent.payer.client.post(&path, &[], &said).await;
        assert_eq!((taken.status, taken.json()), (200, json!({"received": true})), "{}", taken.text);
    }
    let shown = agent.get(&format!("connect/{intent}")).await.json();
    assert_eq!(shown["status"], "completed", "{shown}");
    assert!(
        !shown.to_string().contains(upstream) || shown["account"]["member_urn"] == format!("member-{upstream}"),
        "{shown}"
    );
    shown["account"]["id"].as_str().expect("an id").to_owned()
}

pub async fn spent(stack: &Stack, agent: &Agent) -> u64 {
    5_000_000 - books::audit(&stack.app.db, agent.payer.agent()).await.credits.micro()
}

#[test]
fn a_message_is_sent_once_whatever_the_provider_answers() {
    run(async {
        let unipile = Unipile::start().await;
        let stack = stack_with(|options| unipile.options(options)).await;
        unipile.posts_to(&stack.base_url);
        for mood in [Mood::Good, Mood::ErrorAfter, Mood::Silent, Mood::Cut, Mood::ToldFirst] {
            unipile.is(mood);
            let agent = Agent::new(&stack).await;
            let upstream = format!("acc-{mood:?}");
            let account = connected(&unipile, &agent, &upstream).await;
            let text = format!("Hello in a {mood:?} mood");
            let body =
                json!({"account_id": account, "profile": "https://www.linkedin.com/in/friend-jane/", "text": text});
            let job = agent.done("message", &body, "hello").await;
            assert_eq!(job["result"]["status"], "sent", "{mood:?}: {job}");
            let sent: Vec<_> = unipile.made().into_iter().filter(|(_, said)| *said == text).collect();
            assert_eq!(sent, [("chat-p-friend-jane".to_owned(), text.clone())], "{mood:?}");
            // Its webhook tells of it later, twice, and is read once.
            let heard = json!({
                "account_id": upstream, "event": "message_received", "chat_id": "chat-p-friend-jane",
                "message_id": job["result"]["provider_message_id"], "message": text, "is_sender": true,
                "timestamp": Clock::system().now().to_string(), "sender": {"attendee_provider_id": "x"},
            });
            for _ in 0..2 {
                assert_eq!(post(&agent, "webhook/messaging", SECRET, &heard).await.status, 200);
            }
            assert_eq!(
                post(&agent, "webhook/messaging", "wrong", &heard).await.error(),
                (401, "unauthorized".to_owned())
            );
            let inbox = agent.get(&format!("accounts/{account}/messages")).await.json();
            assert_eq!(inbox["messages"].as_array().map(Vec::len), Some(1), "{inbox}");
            assert_eq!(spent(&stack, &agent).await, 20_000, "{mood:?}");
        }
        // A stranger gets none, before anything is sent.
        let agent = Agent::new(&stack).await;
        let account = connected(&unipile, &agent, "acc-last").await;
        // That a message is deleted may be heard before the message. Dates may be any.
        for (id, event, at) in [
            ("odd", "message_deleted", "2026-11-29T10:00:00.000Z"),
            ("odd", "message_received", "2026-11-29T10:00:00.000Z"),
            ("old", "message_received", "1960-01-01T00:00:00.000Z"),
            ("new", "message_received", "+012345-01-01T00:00:00.000Z"),
        ] {
            let mut said = unipile::heard(
                "acc-last",
                &unipile::message("acc-last", "chat-x", id, id, false, Clock::system().now()),
            );
            (said["event"], said["timestamp"]) = (json!(event), json!(at));
            assert_eq!(post(&agent, "webhook/messaging", SECRET, &said).await.status, 200);
        }
        let inbox = agent.get(&format!("accounts/{account}/messages")).await.json();
        let texts: Vec<&Value> = inbox["messages"].as_array().expect("a list").iter().map(|one| &one["text"]).collect();
        assert_eq!(texts, ["new", "old"], "{inbox}");
        let all = agent.get(&format!("accounts/{account}/messages?include_deleted=true")).await.json();
        assert_eq!(all["messages"].as_array().map(Vec::len), Some(3), "{all}");
        let body = json!({"account_id": account, "profile": "stranger", "text": "Hello"});
        let job = agent.done("message", &body, "stranger").await;
        assert_eq!(job["error_reason"], "recipient_not_connected", "{job}");
        assert_eq!(spent(&stack, &agent).await, 0);
        // The account has to be connected again: its owner is told, and nothing is sold until then.
        let status =
            json!({"AccountStatus": {"account_id": "acc-last", "message": "CREDENTIALS", "account_type": "LINKEDIN"}});
        for _ in 0..2 {
            assert_eq!(post(&agent, "webhook/account-status", SECRET, &status).await.status, 200);
        }
        let shown = agent.get(&format!("accounts/{account}")).await.json();
        assert_eq!(
            (&shown["status"], &shown["reconnect_required"]),
            (&json!("reconnect_required"), &json!(true)),
            "{shown}"
        );
        assert_eq!(agent.buy("message", &body, "late").await.error(), (409, "account_not_connected".to_owned()));
        let notes = agent.payer.get("/v1/tools/notifications").await.json();
        let notes = notes["notifications"].as_array().expect("a list").clone();
        let told = notes.iter().filter(|note| note["type"] == "linkedin_reconnect_required").count();
        assert_eq!(told, 1, "{notes:?}");
        assert_eq!(unipile.strange(), Vec::<String>::new());
    });
}

/// Its fate is unknown until a webhook tells of it, or until a day has passed. It is not sent again.
#[test]
fn what_nobody_knows_stays_open_for_a_day() {
    run(async {
        let unipile = Unipile::start().await;
        let (stack, clock) = still(&unipile).await;
        for (mood, is_told) in [(Mood::Hidden, true), (Mood::Hidden, false), (Mood::ErrorBefore, false)] {
            unipile.is(mood);
            let agent = Agent::new(&stack).await;
            let upstream = format!("acc-{mood:?}-{is_told}");
            let account = connected(&unipile, &agent, &upstream).await;
            let text = format!("Open in a {mood:?} mood, {is_told}");
            let body = json!({"account_id": account, "profile": "friend-jane", "text": text});
            let before = unipile.made().len();
            let id = id_of(&agent.buy("message", &body, "hello").await);
            eventually("an open action", || async {
                let action = tools_network::action::load(&stack.app.db, id).await.expect("a database")?;
                (action.state == tools_network::action::State::Ambiguous && stack.queue.is_idle()).then_some(())
            })
            .await;
            let expected = if is_told {
                // It shows up, and the webhook says when to look.
                clock.advance(Duration::from_secs(3_600));
                let shown = unipile::message(&upstream, "chat-p-friend-jane", "late", &text, true, clock.now());
                let heard = unipile::heard(&upstream, &shown);
                unipile.show(&upstream, shown);
                assert_eq!(post(&agent, "webhook/messaging", SECRET, &heard).await.status, 200);
                "sent"
            } else {
                clock.advance(Duration::from_secs(24 * 3600 + 1));
                queue::send_or_log(&*stack.queue, id, None).await;
                "ambiguous"
            };
            let job = agent.ended(&id.to_string()).await;
            assert_eq!(
                (&job["status"], &job["result"]["status"]),
                (&json!("completed"), &json!(expected)),
                "{mood:?}: {job}"
            );
            assert_eq!(unipile.made().len() - before, 1, "{mood:?}");
            assert_eq!(spent(&stack, &agent).await, 20_000, "{mood:?}");
        }
    });
}

/// A queued invitation waits for its turn; giving the account up stops it, and it is paid back.
#[test]
fn a_queued_action_fails_when_its_grant_ends() {
    run(async {
        let unipile = Unipile::start().await;
        let stack = stack_with(|options| unipile.options(options)).await;
        let agent = Agent::new(&stack).await;
        let account = connected(&unipile, &agent, "acc-1").await;
        let friend = |text: &str| json!({"account_id": account, "profile": "friend-jane", "text": text});
        let first = agent.done("message", &friend("One"), "one").await;
        assert_eq!(first["result"]["status"], "sent", "{first}");
        // The next one has to wait for twelve seconds.
        let second = id_of(&agent.buy("message", &friend("Two"), "two").await);
        waits(&stack, second).await;
        assert_eq!(agent.gives_up(&account).await["cancelled_sends"], 1);
        let job = agent.ended(&second.to_string()).await;
        assert_eq!((&job["status"], &job["error_reason"]), (&json!("failed"), &json!("grant_revoked")), "{job}");
        assert_eq!(unipile.made().len(), 1);
        assert_eq!(spent(&stack, &agent).await, 20_000);

        // What its owner freezes is not sent when its turn comes.
        let agent = Agent::new(&stack).await;
        let account = connected(&unipile, &agent, "acc-2").await;
        let friend = |text: &str| json!({"account_id": account, "profile": "friend-jane", "text": text});
        assert_eq!(agent.done("message", &friend("Three"), "three").await["result"]["status"], "sent");
        let waiting = id_of(&agent.buy("message", &friend("Four"), "four").await);
        waits(&stack, waiting).await;
        let frozen = agent.payer.change("POST", "/v1/agents/me/freezes", &json!({"what": "agent"})).await;
        assert_eq!(frozen.status, 200, "{}", frozen.text);
        platform::store::jobs::wake(&stack.app.db, &*stack.queue, waiting).await;
        let job = eventually("the job to end", || async {
            let job = agent.payer.get(&format!("/v1/requests/{waiting}")).await.json();
            (job["status"] == "failed").then_some(job)
        })
        .await;
        assert_eq!(job["error_reason"], "frozen_by_owner", "{job}");
        assert_eq!(unipile.made().len(), 2);
        assert_eq!(spent(&stack, &agent).await, 20_000);
    });
}

/// A sync is bounded, and the next one goes on where it stopped.
#[test]
fn a_sync_goes_on_where_the_last_one_stopped() {
    run(async {
        let unipile = Unipile::start().await;
        let stack = stack_with(|options| unipile.options(options)).await;
        let agent = Agent::new(&stack).await;
        let account = connected(&unipile, &agent, "acc-history").await;
        unipile.history("acc-history", 10, 2);
        let body = json!({"account_id": account, "max_pages": 3});
        let read = |job: &Value| {
            let result = &job["result"];
            let counts =
                ["pages", "messages_seen", "messages_inserted"].map(|name| result[name].as_u64().expect("a count"));
            (result["kind"].as_str().expect("a kind").to_owned(), result["outcome"].clone(), counts)
        };
        for (key, kind, outcome, counts, state) in [
            ("one", "initial", "bounded", [3, 6, 6], "partial"),
            ("two", "continue", "exhausted", [2, 4, 4], "complete"),
            // All is read: only what is new is looked for, and there is nothing.
            ("three", "incremental", "exhausted", [1, 2, 0], "complete"),
        ] {
            let job = agent.done("sync", &body, key).await;
            assert_eq!(read(&job), (kind.to_owned(), json!(outcome), counts), "{job}");
            let sync = agent.get(&format!("accounts/{account}/sync")).await.json();
            assert_eq!((&sync["sync_state"], &sync["last_run"]["kind"]), (&json!(state), &json!(kind)), "{sync}");
        }
        let sync = agent.get(&format!("accounts/{account}/sync")).await.json();
        let is = ["message_count", "conversation_count"].map(|name| sync["coverage"][name].as_u64());
        assert_eq!((is, sync["runs"].as_array().map(Vec::len)), ([Some(10), Some(3)], Some(3)), "{sync}");
        let chats = agent.get(&format!("accounts/{account}/conversations?limit=2")).await.json();
        assert_eq!(
            (chats["conversations"].as_array().map(Vec::len), &chats["has_more"]),
            (Some(2), &json!(true)),
            "{chats}"
        );
        assert_eq!(spent(&stack, &agent).await, 60_000);
    });
}

/// An account that nobody uses is given up after 30 days, here and at the provider; one that is used stays.
#[test]
fn an_idle_account_is_given_up() {
    run(async {
        let unipile = Unipile::start().await;
        let (stack, clock) = still(&unipile).await;
        let (idle, busy) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let of_idle = connected(&unipile, &idle, "acc-idle").await;
        let of_busy = connected(&unipile, &busy, "acc-busy").await;
        clock.advance(Duration::from_secs(20 * 24 * 3600));
        assert_eq!(busy.get(&format!("accounts/{of_busy}")).await.json()["status"], "connected");
        clock.advance(Duration::from_secs(10 * 24 * 3600 + 1));
        let toolbox = &stack.worker.toolbox;
        unipile.keeps_accounts(true);
        unipile.asked();
        for given_up in [json!({"given_up": 1}), Value::Null] {
            let done = (tools_network::idle::CHORE.run)(toolbox).await.expect("a database");
            assert_eq!(done.counts, given_up);
        }
        let status = async |agent: &Agent| {
            let all = agent.get("accounts?include_revoked=true").await.json();
            all["accounts"][0]["status"].as_str().expect("a status").to_owned()
        };
        assert_eq!((status(&idle).await.as_str(), status(&busy).await.as_str()), ("revoked", "connected"), "{of_idle}");
        // What Unipile did not delete costs money: it is asked again an hour later, until it has deleted it.
        let is_asked = || unipile.asked().iter().any(|asked| asked.method == "DELETE");
        assert!(is_asked());
        unipile.keeps_accounts(false);
        for asked in [true, false] {
            clock.advance(Duration::from_secs(3_601));
            (tools_network::idle::CHORE.run)(toolbox).await.expect("a database");
            assert_eq!(is_asked(), asked);
        }
    });
}
