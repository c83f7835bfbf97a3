//! The process dies at a request of an action. A second one ends it: it is done once, and charged once.

use serde_json::{Value, json};

use super::{Agent, friends, id_of};
use crate::support::crashes::{Death, Dying, die_at_steps};
use crate::support::{books, eventually, run};

#[derive(Clone, Copy, Debug)]
enum What {
    Message,
    Reply,
    React,
    Invite,
    Withdraw,
}

#[test]
fn a_message_survives_a_crash_at_every_fifth_request() {
    run(die_at_steps(1, 5, |death| die_in(What::Message, death)));
}

#[test]
fn a_reply_survives_a_crash() {
    run(die_at_steps(1, 7, |death| die_in(What::Reply, death)));
}

#[test]
fn a_reaction_survives_a_crash() {
    run(die_at_steps(1, 5, |death| die_in(What::React, death)));
}

#[test]
fn an_invitation_survives_a_crash() {
    run(die_at_steps(1, 7, |death| die_in(What::Invite, death)));
}

#[test]
fn a_withdrawal_survives_a_crash() {
    run(die_at_steps(1, 3, |death| die_in(What::Withdraw, death)));
}

/// Who acts, and who is written to.
struct Two {
    ann: Agent,
    of_ann: String,
    bob: Agent,
    of_bob: String,
}

async fn die_in(what: What, death: Death) -> bool {
    let dying = Dying::start(death, |options| options.with("NETWORK_PROVIDERS", "local")).await;
    let [(ann, of_ann, ann_id), (bob, of_bob, bob_id)] = friends(&dying.stack).await;
    let eve = Agent::new(&dying.stack).await;
    let two = Two { ann, of_ann, bob, of_bob };
    let (path, body) = two.prepared(what, [&ann_id, &bob_id], &eve).await;
    let Two { ann, bob, .. } = &two;
    let before = books::audit(&dying.stack.app.db, ann.payer.agent()).await.credits.micro();
    let headers = [("authorization", ann.token.as_str()), ("idempotency-key", "hello")];
    let url = format!("/v1/tools/linkedin/{path}");
    let (stack, _, died) = dying.die_in(ann.payer.client.try_post(&url, &headers, &body)).await;

    let (ann, bob, eve) = (ann.at(&stack), bob.at(&stack), eve.at(&stack));
    let accepted = eventually("the answer", || async {
        let after = ann.buy(path, &body, "hello").await;
        (after.status == 202).then_some(after)
    })
    .await;
    let job = ann.ended(&id_of(&accepted).to_string()).await;
    let label = format!("{what:?}, {death:?}: {job}");
    let ended = if matches!(what, What::Withdraw) { "withdrawn" } else { "sent" };
    assert_eq!(job["result"]["status"], ended, "{label}");
    let after = books::audit(&stack.app.db, ann.payer.agent()).await.credits.micro();
    let price = if matches!(what, What::React) { 10_000 } else { 20_000 };
    assert_eq!(before - after, price, "{label}");

    let two = Two { ann, bob, ..two };
    two.check_done(what, &body, &eve, &label).await;
    stack.kill().await;
    died
}

impl Two {
    /// The path and the body of Ann's action, and what has to be there before.
    async fn prepared(&self, what: What, [ann_id, bob_id]: [&str; 2], eve: &Agent) -> (&'static str, Value) {
        let Two { ann, of_ann, bob, of_bob } = self;
        match what {
            What::Message => {
                ("message", json!({"account_id": of_ann, "profile": bob_id, "text": "Shall we talk on Thursday?"}))
            }
            What::Reply => {
                let hello = json!({"account_id": of_bob, "profile": ann_id, "text": "Are you there?"});
                bob.done("message", &hello, "hello").await;
                let inbox = ann.get(&format!("accounts/{of_ann}/messages")).await.json();
                let chat = &inbox["messages"][0]["conversation_id"];
                ("reply", json!({"account_id": of_ann, "conversation_id": chat, "text": "Thursday at ten suits me."}))
            }
            What::React => {
                let post = bob.post("local/posts", &json!({"text": "The lamp turns."})).await.json();
                let post = &post["post_id"];
                ("react", json!({"account_id": of_ann, "post_id": post, "reaction_type": "insightful"}))
            }
            What::Invite | What::Withdraw => {
                let (_, eve_id) = eve.joins("Eve").await;
                let invite = json!({"account_id": of_ann, "profile": eve_id, "note": "Hello"});
                if matches!(what, What::Invite) {
                    return ("invite", invite);
                }
                let job = ann.done("invite", &invite, "invite-eve").await;
                let invitation = &job["result"]["invitation_id"];
                ("invite/withdraw", json!({"account_id": of_ann, "invitation_id": invitation}))
            }
        }
    }

    /// The network has it once, and it counts once.
    async fn check_done(&self, what: What, body: &Value, eve: &Agent, label: &str) {
        let Two { ann, of_ann, bob, of_bob } = self;
        let limit = match what {
            What::Message | What::Reply => {
                // A sync finds what the first process did not deliver.
                bob.done("sync", &json!({"account_id": of_bob}), "sync").await;
                let inbox = bob.get(&format!("accounts/{of_bob}/messages?direction=inbound")).await.json();
                let texts: Vec<_> =
                    inbox["messages"].as_array().expect("a list").iter().map(|one| &one["text"]).collect();
                assert_eq!(texts, [&body["text"]], "{label}: {inbox}");
                ("messages", 1)
            }
            What::React => {
                let here = bob.get("local").await.json();
                assert_eq!(here["posts"][0]["reactions"], json!({"insightful": 1}), "{label}: {here}");
                ("reactions", 1)
            }
            What::Invite | What::Withdraw => {
                let here = eve.get("local").await.json();
                let invitations = here["invitations"].as_array().expect("a list").len();
                assert_eq!(invitations, usize::from(matches!(what, What::Invite)), "{label}: {here}");
                // Bob's is the first.
                ("invites", 2)
            }
        };
        let account = ann.get(&format!("accounts/{of_ann}")).await.json();
        let counted = &account["limits"][limit.0];
        assert_eq!((&counted["used"], &counted["pending"]), (&json!(limit.1), &json!(0)), "{label}: {account}");
    }
}
