//! The scheduler: once a minute, sends again what was left lying, looks at settled payments again, makes the receipt key known,
//! and finishes what souls are found by.

use common::clock::Clock;
use common::http::log;
use common::jobs::finality::{self, Looked};
use common::jobs::job::Lane;
use common::jobs::sweep::{self, Swept};
use common::ledger::signing::{self, PublicKey};
use common::marketplace::{index, trials};
use common::providers::Chain;
use common::store::queue::Message;
use common::store::{Db, Queue, StoreError};
use common::webhooks::outbox;
use serde::Serialize;

/// Where each lane's jobs are sent.
#[derive(Clone, Copy)]
pub struct Queues<'a> {
    pub tools: &'a dyn Queue,
    pub souls: &'a dyn Queue,
    /// Where events go on their way to webhooks.
    pub deliveries: &'a dyn Queue,
}

/// What a run did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Ran {
    #[serde(flatten)]
    pub swept: Swept,
    #[serde(flatten)]
    pub looked: Looked,
}

/// One run.
pub async fn run(
    db: &Db,
    chain: &Chain,
    queues: Queues<'_>,
    clock: &Clock,
    receipt_key: &PublicKey,
) -> Result<Ran, StoreError> {
    signing::publish(db, receipt_key).await?;
    // A chain that cannot be asked is no reason to leave jobs lying.
    let looked = finality::look(db, chain, clock.now()).await.unwrap_or_else(|error| {
        log::failure("settled payments could not be looked at again", &error);
        Looked::default()
    });
    let tools = sweep::sweep(db, Lane::Tools, queues.tools, clock.now()).await;
    let souls = sweep::sweep(db, Lane::Souls, queues.souls, clock.now()).await;
    let deliveries = outbox::sweep(db, queues.deliveries, clock.now()).await;
    // A marketplace that cannot be searched is no reason to leave jobs lying.
    if let Err(error) = index::finish(db, clock.now()).await {
        log::failure("what souls are found by could not be finished", &error);
    }
    for trial in trials::due(db, clock.now()).await? {
        let (soul, service) = (trial.soul.to_string(), trial.service.to_string());
        queues.souls.send(&Message::Trial { soul, service, due: trial.due, daily: trial.daily }).await?;
    }
    let (tools, souls) = (tools?, souls?);
    deliveries?;
    let swept = Swept { sent: tools.sent + souls.sent, oldest_secs: tools.oldest_secs.max(souls.oldest_secs) };
    sweep::note(db, swept, clock.now()).await?;
    Ok(Ran { swept, looked })
}
