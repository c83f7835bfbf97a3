//! An order of events that random runs rarely produce where it matters: at the very end of an episode.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use ledger::account::Change;
use ledger::receipt::ReceiptStatus;
use serde_json::json;

use super::acts::{self, Agent, Shown};
use super::world::{self, World};
use super::{end, simulated};
use crate::support::{READ_PATH, books};

/// A stranger broadcasts the payment of queued work that runs before settlement, and the work fails. Nothing was sent
/// to the chain, so the purchase is void and the payment can be used again. Sent again while the work was open, it only
/// got "in progress". So an episode must send it once more before it ends.
#[test]
fn a_payment_for_failed_work_is_claimed_before_the_episode_ends() {
    simulated(1, async {
        let world = Arc::new(overlapping().await);
        world.fate.set(false);
        let agent = Agent::new(&world);
        let settled = Change { settled: 10_000, ..Change::default() };
        world.db.write(settled.write(&world.db, agent.id).unwrap()).await.unwrap();
        world.chain.fund(agent.payer.address(), 10_000);
        let authorization = agent.authorize(&world, 2_000);
        let body = json!({"url": "http://example.com/"});
        let shown = Shown { path: READ_PATH, body, quote_id: None, name: None, authorization, by_stranger: true };
        agent.notes.lock().unwrap().shown.push(shown.clone());
        assert_eq!(acts::present(&world, 0, &shown, false).await.status, 202);
        world.chain.broadcast(&shown.authorization, Duration::ZERO);
        // It is mined before the authorization expires, however long that takes in this world.
        assert!(world.chain.used(&shown.authorization).is_some_and(|used| used.moved));
        world::fail_next_work();
        end(&world, slice::from_ref(&agent)).await;
        let mut receipts = books::receipts(&world.db, agent.id).await;
        receipts.sort_by_key(|receipt| receipt.created_at);
        let statuses: Vec<_> = receipts.iter().map(|receipt| receipt.status).collect();
        assert_eq!(statuses, [ReceiptStatus::Failed, ReceiptStatus::Settled], "void, and then bought: {receipts:?}");
    });
}

/// A world in which cheap work need not wait for settlement.
async fn overlapping() -> World {
    for seed in 0.. {
        let world = World::new(seed).await;
        if world.config.payments.overlap_below.micro() > 2_000 {
            return world;
        }
    }
    unreachable!("half of all worlds overlap")
}
