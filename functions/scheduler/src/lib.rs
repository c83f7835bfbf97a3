//! The scheduler: once a minute, sends again what was left lying, and makes the receipt key known.

use common::clock::Clock;
use common::jobs::job::Lane;
use common::jobs::sweep::{self, Swept};
use common::ledger::signing::{self, PublicKey};
use common::store::{Db, Queue, StoreError};

/// Where each lane's jobs are sent.
#[derive(Clone, Copy)]
pub struct Queues<'a> {
    pub tools: &'a dyn Queue,
    pub souls: &'a dyn Queue,
}

/// One run.
pub async fn run(db: &Db, queues: Queues<'_>, clock: &Clock, receipt_key: &PublicKey) -> Result<Swept, StoreError> {
    signing::publish(db, receipt_key).await?;
    let tools = sweep::sweep(db, Lane::Tools, queues.tools, clock.now()).await?;
    let souls = sweep::sweep(db, Lane::Souls, queues.souls, clock.now()).await?;
    Ok(Swept { sent: tools.sent + souls.sent, oldest_secs: tools.oldest_secs.max(souls.oldest_secs) })
}
