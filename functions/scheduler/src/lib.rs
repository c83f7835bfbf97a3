//! The scheduler: once a minute, sends again what was left lying, makes the receipt key known, and finishes what souls are
//! found by.

use common::clock::Clock;
use common::http::log;
use common::jobs::sweep::{self, Swept};
use common::ledger::signing::{self, PublicKey};
use common::marketplace::index;
use common::store::{Db, Queue, StoreError};

/// One run.
pub async fn run(db: &Db, queue: &dyn Queue, clock: &Clock, receipt_key: &PublicKey) -> Result<Swept, StoreError> {
    signing::publish(db, receipt_key).await?;
    let swept = sweep::sweep(db, queue, clock.now()).await;
    // A marketplace that cannot be searched is no reason to leave jobs lying.
    if let Err(error) = index::finish(db, clock.now()).await {
        log::failure("what souls are found by could not be finished", &error);
    }
    swept
}
