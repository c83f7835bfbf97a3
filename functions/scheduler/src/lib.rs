//! The scheduler: once a minute, sends again what was left lying, and makes the receipt key known.

use common::clock::Clock;
use common::jobs::sweep::{self, Swept};
use common::ledger::signing::{self, PublicKey};
use common::store::{Db, Queue, StoreError};

/// One run.
pub async fn run(db: &Db, queue: &dyn Queue, clock: &Clock, receipt_key: &PublicKey) -> Result<Swept, StoreError> {
    signing::publish(db, receipt_key).await?;
    sweep::sweep(db, queue, clock.now()).await
}
