//! Many claims at once of the last places of a tool.

use std::sync::Arc;

use futures_util::future::join_all;
use ledger::account::Change;
use serde_json::json;

use super::acts::{self, Agent, Shown};
use super::world::World;
use super::{asked, check, simulated};
use crate::support::books;

/// 200 calls of ten agents on three processes: as many are claimed as there are places, and nobody else is charged.
#[test]
fn no_claim_takes_a_place_that_another_has() {
    simulated(7, async {
        let world = Arc::new(World::new(7).await);
        world.fate.set(false);
        let agents: Vec<Arc<Agent>> = (0..10).map(|_| Agent::new(&world)).collect();
        let mut calls = Vec::new();
        for (index, agent) in agents.iter().cycle().take(200).enumerate() {
            if index < agents.len() {
                let settled = Change { settled: 1_000_000, ..Change::default() };
                world.db.write(settled.write(&world.db, agent.id).unwrap()).await.unwrap();
                world.chain.fund(agent.payer.address(), 1_000_000);
            }
            let (path, body) = (asked::PLACES.path(), json!({"text": format!("t{index}")}));
            let authorization = agent.authorize(&world, asked::LEAST.micro());
            let shown = Shown { path, body, quote_id: None, name: None, authorization, by_stranger: false };
            let world = world.clone();
            calls.push(async move { acts::present(&world, index % world.nodes.len(), &shown, false).await });
        }
        let answers = join_all(calls).await;
        let with = |status| answers.iter().filter(|answer| answer.status == status).count();
        assert_eq!((with(202), with(429)), (asked::MAX_PLACES, 200 - asked::MAX_PLACES));
        assert!(answers.iter().all(|answer| answer.status == 202 || answer.body["error"] == "full"));
        super::close_everything(&world).await;
        let mut bought = 0;
        for agent in &agents {
            bought += books::receipts(&world.db, agent.id).await.len();
        }
        assert_eq!(bought, asked::MAX_PLACES);
        check::money(&world, &agents).await;
    });
}
