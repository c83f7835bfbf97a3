//! Accounts of the professional network: a provider bills them by the month, and wallets cost nothing.

use tools_network::connect::STRANGERS_LINKS_A_DAY;

use super::*;
use crate::email::one_day;
use crate::network::unipile::connected;
use crate::network::{Agent, local_stack};
use crate::support::unipile::Unipile;

fn asked() -> Value {
    json!({"requested_actions": ["read"]})
}

/// What a provider bills is bounded for all wallets together, and room that is given up is there for others.
#[test]
fn accounts_at_a_provider_are_bounded_for_all_together() {
    run(async {
        let unipile = Unipile::start().await;
        let stack = stack_with(|options| unipile.options(options).with("NETWORK_ACCOUNTS", "1")).await;
        let (ann, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        let issued = bob.post("connect", &asked()).await.json();
        let account = connected(&unipile, &ann, "acc-ann").await;
        let refused = bob.post("connect", &asked()).await;
        assert_eq!(refused.error(), (409, "too_many_accounts".to_owned()), "{}", refused.text);
        // Neither does a link from before lead to one.
        let intent = issued["intent_id"].as_str().expect("an id");
        let said = json!({"status": "CREATION_SUCCESS", "account_id": "acc-bob", "name": intent});
        let taken = bob.payer.client.post(&unipile.callback(intent), &[], &said).await;
        assert_eq!(taken.status, 200, "{}", taken.text);
        let shown = bob.get(&format!("connect/{intent}")).await.json();
        let is = (&shown["status"], &shown["failure_reason"]);
        assert_eq!(is, (&json!("failed"), &json!("too_many_accounts")), "{shown}");
        // Given up twice is once.
        for _ in 0..2 {
            ann.gives_up(&account).await;
        }
        connected(&unipile, &bob, "acc-bob-2").await;
        let refused = ann.post("connect", &asked()).await;
        assert_eq!(refused.error(), (409, "too_many_accounts".to_owned()), "{}", refused.text);
    });
}

/// Of the day's links, a part is for agents with money behind them.
#[test]
fn strangers_cannot_use_up_the_links_of_a_day() {
    run(async {
        one_day().await;
        let stack = local_stack().await;
        let (db, now) = (&stack.app.db, stack.app.clock.now().secs());
        let key = Key::new("RATE#network", now.div_euclid(86_400).to_string());
        let used = Write::put(&db.tables.agents, key, &json!({"used": STRANGERS_LINKS_A_DAY - 1})).unwrap();
        db.write(used).await.unwrap();
        let payer = Payer::with(&stack, 0).await;
        let token = payer.token(&stack).await;
        let stranger = Agent { payer, token };
        let links = [stranger.post("connect", &asked()).await, stranger.post("connect", &asked()).await];
        assert_eq!(links[0].status, 201, "{}", links[0].text);
        assert_eq!(links[1].error(), (429, "connect_limit_reached".to_owned()), "{}", links[1].text);
        let owner = Agent::new(&stack).await.post("connect", &asked()).await;
        assert_eq!(owner.status, 201, "{}", owner.text);
    });
}
