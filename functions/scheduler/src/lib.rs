//! The scheduler: once a minute, sends lost messages again, checks settled payments for reorganisations, and completes the
//! marketplace's search index. Now and then it asks the worker for what only the worker can do.
//!
//! The sweeps come first and do not ask the chain, so a node that does not answer cannot stop them.
//!
//! Lists known to be empty are skipped (`store::lists`), so a minute without work costs two requests.

use std::time::Duration;

use base::clock::{Clock, Timestamp};
use gate::jobs::finality::{self, Looked};
use gate::jobs::job::Lane;
use gate::jobs::sweep::{self, Swept};
use ledger::webhooks::outbox;
use market::{index, trials};
use platform::http::log;
use platform::providers::Chain;
use platform::store::lists::{self, Known, List};
use platform::store::queue::Message;
use platform::store::{Db, Queue, StoreError};
use serde::Serialize;

/// Time for checking settled payments again. With the sweeps it has to fit into the function's 55 seconds.
const LOOK: Duration = Duration::from_secs(20);

/// The queue for each lane's jobs.
#[derive(Clone, Copy)]
pub struct Queues<'a> {
    pub tools: &'a dyn Queue,
    pub souls: &'a dyn Queue,
    pub browser: &'a dyn Queue,
    /// The queue of webhook events.
    pub deliveries: &'a dyn Queue,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Ran {
    #[serde(flatten)]
    pub swept: Swept,
    #[serde(flatten)]
    pub looked: Looked,
}

pub async fn run(db: &Db, chain: &Chain, queues: Queues<'_>, clock: &Clock) -> Result<Ran, StoreError> {
    let known = Known::load(db).await.unwrap_or_else(|error| {
        log::failure("the list of empty lists could not be read; all lists are swept", &error);
        Known::default()
    });
    let now = clock.now();
    let asks = Asks { availability: known.is_availability_due(now), chores: known.are_chores_due(now) };
    let lists = Lists { db, known, now };
    // On the heap: unoptimised, the two together overflow the stack of a test.
    let swept = Box::pin(sweep_all(&lists, queues, asks, clock)).await;
    let look = Box::pin(async { Ok(finality::look(db, chain, now, LOOK).await) });
    let looked = lists.sweep(List::Settled, look).await.unwrap_or_else(|error| {
        log::failure("settled payments could not be checked again", &error);
        Looked::default()
    });
    Ok(Ran { swept: swept?, looked })
}

async fn sweep_all(lists: &Lists<'_>, queues: Queues<'_>, asks: Asks, clock: &Clock) -> Result<Swept, StoreError> {
    let (db, now) = (lists.db, lists.now);
    let tools = lists.sweep(List::Tools, sweep::sweep(db, Lane::Tools, queues.tools, now)).await;
    let souls = lists.sweep(List::Souls, sweep::sweep(db, Lane::Souls, queues.souls, now)).await;
    let browser = lists.sweep(List::Browser, sweep::sweep(db, Lane::Browser, queues.browser, now)).await;
    let deliveries = lists.sweep(List::Outbox, outbox::sweep(db, queues.deliveries, now)).await;
    // An incomplete search index must not stop the sweep of jobs.
    if let Err(error) = lists.sweep(List::Index, index::finish(db, now)).await {
        log::failure("the marketplace's search index could not be completed", &error);
    }
    for trial in lists.sweep(List::Trials, trials::due(db, now)).await? {
        let (soul, service) = (trial.soul.to_string(), trial.service.to_string());
        queues.souls.send(&Message::Trial { soul, service, due: trial.due, daily: trial.daily }).await?;
    }
    // An outdated list of unavailable tools must not stop the sweep of jobs.
    if asks.availability
        && let Err(error) = ask_availability(db, queues.tools, now).await
    {
        log::failure("the worker could not be asked for the list of unavailable tools", &error);
    }
    if asks.chores
        && let Err(error) = ask_chores(db, queues.tools, now).await
    {
        log::failure("the worker could not be asked for the hourly chores", &error);
    }
    deliveries?;
    let mut swept = Swept::default();
    for lane in [tools?, souls?, browser?] {
        swept.sent += lane.sent;
        swept.oldest_secs = swept.oldest_secs.max(lane.oldest_secs);
    }
    sweep::note(db, swept, clock.now()).await?;
    Ok(swept)
}

/// Asks the worker to publish which tools are unavailable: it has the providers' keys.
async fn ask_availability(db: &Db, worker: &dyn Queue, now: Timestamp) -> Result<(), StoreError> {
    worker.send(&Message::Availability {}).await?;
    lists::availability_asked(db, now).await
}

/// Asks the worker for its hourly chores.
async fn ask_chores(db: &Db, worker: &dyn Queue, now: Timestamp) -> Result<(), StoreError> {
    worker.send(&Message::Chores {}).await?;
    lists::chores_asked(db, now).await
}

/// What the worker is to be asked for.
#[derive(Clone, Copy)]
struct Asks {
    availability: bool,
    chores: bool,
}

/// The lists, and what is known about them.
struct Lists<'a> {
    db: &'a Db,
    known: Known,
    now: Timestamp,
}

impl Lists<'_> {
    /// Sweeps a list unless it is known to be empty.
    async fn sweep<T: Default>(
        &self,
        list: List,
        sweep: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        if self.known.is_empty(list, self.now) {
            return Ok(T::default());
        }
        if !self.known.is_announced(list, self.now) && self.holds_nothing(list).await? {
            lists::found_empty(self.db, list, self.now).await?;
            return Ok(T::default());
        }
        sweep.await
    }

    /// Whether a list has no entries at all, including those due later.
    async fn holds_nothing(&self, list: List) -> Result<bool, StoreError> {
        match list {
            List::Tools => sweep::is_over(self.db, Lane::Tools).await,
            List::Souls => sweep::is_over(self.db, Lane::Souls).await,
            List::Browser => sweep::is_over(self.db, Lane::Browser).await,
            List::Outbox => outbox::is_empty(self.db).await,
            List::Index => index::is_finished(self.db).await,
            List::Trials => trials::are_none(self.db).await,
            List::Settled => finality::is_over(self.db).await,
        }
    }
}
