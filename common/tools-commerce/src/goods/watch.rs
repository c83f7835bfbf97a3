//! What time does to orders, every hour: one that was not sent is cancelled, one that was sent counts as delivered, and one whose
//! return time is over becomes the seller's earning. A held order whose job has ended gives its stock back.

use std::time::Duration;

use platform::http::log;
use platform::store::{StoreError, WriteError};
use serde_json::{Value, json};
use tools::chore::{self, Chore};
use tools::{Toolbox, lock};

use super::moving::{self, Change};
use super::sale::{self, Due, HELD, SHARDS, Sale, State};

/// Orders of a partition that one run looks at.
const AT_ONCE: usize = 25;
/// An order about which nothing can be done now is looked at again then, so that it does not hold up those behind it.
const AGAIN: Duration = Duration::from_secs(6 * 3600);

pub static CHORE: Chore = Chore {
    name: "goods",
    run: |toolbox| {
        Box::pin(async move {
            let (moved, more) = look(toolbox).await?;
            Ok(chore::Done { counts: if moved > 0 { json!({"moved": moved}) } else { Value::Null }, more })
        })
    },
};

/// Looks at the orders that are due. How many moved, and whether there are more.
///
/// # Errors
/// If the list cannot be read. What cannot be done about an order is logged and left to the next run.
pub async fn look(toolbox: &Toolbox) -> Result<(u32, bool), StoreError> {
    let (mut moved, mut more) = (0, false);
    for shard in 0..SHARDS {
        let due = sale::due(&toolbox.db, shard, toolbox.clock.now(), AT_ONCE).await?;
        let mut are_all_done = true;
        for place in &due {
            match look_at(toolbox, place).await {
                Ok(has_moved) => moved += u32::from(has_moved),
                Err(error) => {
                    log::failure(
                        "an order of a good could not be looked at",
                        &format_args!("{}: {error}", place.request),
                    );
                    are_all_done &= set_aside(toolbox, place).await.is_ok();
                }
            }
        }
        more |= due.len() == AT_ONCE && are_all_done;
    }
    Ok((moved, more))
}

/// Moves an order's place back.
async fn set_aside(toolbox: &Toolbox, place: &Due) -> Result<(), StoreError> {
    let db = &toolbox.db;
    let Some(sale) = sale::load(db, place.request).await?.filter(|sale| sale.due == Some(place.due)) else {
        return Ok(());
    };
    let later = Sale { due: Some(toolbox.clock.now().plus(AGAIN)), ..sale.clone() };
    match db.transact(&sale::replace(db, &sale, &later)?).await {
        Ok(()) => db.write_if(place.delete(db)).await.map(drop),
        // It was changed meanwhile.
        Err(WriteError::Refused(_)) => Ok(()),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Whether the order has moved. Its place is deleted when another one stands for it, or it needs none.
async fn look_at(toolbox: &Toolbox, place: &Due) -> Result<bool, StoreError> {
    let db = &toolbox.db;
    let sale = sale::load(db, place.request).await?.filter(|sale| sale.due == Some(place.due));
    let has_moved = match sale {
        Some(sale) => {
            let state = sale.state;
            let Some(after) = time_passes(toolbox, sale).await? else { return Ok(false) };
            after != state
        }
        None => false,
    };
    db.write_if(place.delete(db)).await?;
    Ok(has_moved)
}

/// Moves the order, or its place in the list. Its state then; `None`: it was changed meanwhile.
async fn time_passes(toolbox: &Toolbox, sale: Sale) -> Result<Option<State>, StoreError> {
    let now = toolbox.clock.now();
    if sale.state == State::Held {
        return match lock::is_open(&toolbox.db, sale.request).await? {
            true => put_off(toolbox, &sale, Some(now.plus(HELD))).await,
            false => moved(toolbox, &sale, Change::Drop { reason: "job_ended".to_owned() }).await,
        };
    }
    match sale.deadline() {
        Some(deadline) if now < deadline => put_off(toolbox, &sale, Some(deadline)).await,
        Some(_) => moved(toolbox, &sale, Change::Due).await,
        None => put_off(toolbox, &sale, None).await,
    }
}

async fn moved(toolbox: &Toolbox, sale: &Sale, change: Change) -> Result<Option<State>, StoreError> {
    let moved = moving::apply(toolbox, sale.request, change).await?.ok();
    Ok(moved.filter(|after| after.due != sale.due).map(|after| after.state))
}

/// Looks again later. How the order was paid is noted, because its job goes before it does.
async fn put_off(
    toolbox: &Toolbox,
    sale: &Sale,
    due: Option<base::clock::Timestamp>,
) -> Result<Option<State>, StoreError> {
    let paid = match &sale.paid {
        None if sale.state.is_open() => ledger::returned::paid(&toolbox.db, sale.request).await?,
        known => known.clone(),
    };
    let later = Sale { due, paid, ..sale.clone() };
    match toolbox.db.transact(&sale::replace(&toolbox.db, sale, &later)?).await {
        Ok(()) => Ok(Some(sale.state)),
        Err(WriteError::Refused(_)) => Ok(None),
        Err(WriteError::Failed(error)) => Err(error),
    }
}
