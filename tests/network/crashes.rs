//! The process dies at a request of an action. A second one ends it: it is done once, and charged once.

use serde_json::json;

use super::{Agent, friends, id_of};
use crate::support::crashes::{Death, Dying, die_at_steps};
use crate::support::{books, eventually, run};

#[test]
fn a_message_survives_a_crash_at_every_fifth_request() {
    run(die_at_steps(1, 5, die_in_a_message));
}

async fn die_in_a_message(death: Death) -> bool {
    let dying = Dying::start(death, |options| options.with("NETWORK_PROVIDERS", "local")).await;
    let [(ann, of_ann, _), (bob, of_bob, bob_id)] = friends(&dying.stack).await;
    let before = books::audit(&dying.stack.app.db, ann.payer.agent()).await.credits.micro();
    let body = json!({"account_id": of_ann, "profile": bob_id, "text": "Shall we talk on Thursday?"});
    let headers = [("authorization", ann.token.as_str()), ("idempotency-key", "hello")];
    let send = ann.payer.client.try_post("/v1/tools/linkedin/message", &headers, &body);
    let (stack, _, died) = dying.die_in(send).await;

    let (ann, bob): (Agent, Agent) = (ann.at(&stack), bob.at(&stack));
    let accepted = eventually("the answer", || async {
        let after = ann.buy("message", &body, "hello").await;
        (after.status == 202).then_some(after)
    })
    .await;
    let job = ann.ended(&id_of(&accepted).to_string()).await;
    assert_eq!(job["result"]["status"], "sent", "{death:?}: {job}");
    // A sync finds what the first process did not deliver.
    bob.done("sync", &json!({"account_id": of_bob}), "sync").await;
    let inbox = bob.get(&format!("accounts/{of_bob}/messages")).await.json();
    let texts: Vec<_> = inbox["messages"].as_array().expect("a list").iter().map(|one| &one["text"]).collect();
    assert_eq!(texts, [&body["text"]], "{death:?}: {inbox}");
    let account = ann.get(&format!("accounts/{of_ann}")).await.json();
    let messages = &account["limits"]["messages"];
    assert_eq!((&messages["used"], &messages["pending"]), (&json!(1), &json!(0)), "{death:?}: {account}");
    let after = books::audit(&stack.app.db, ann.payer.agent()).await.credits.micro();
    assert_eq!(before - after, 20_000, "{death:?}");
    stack.kill().await;
    died
}
