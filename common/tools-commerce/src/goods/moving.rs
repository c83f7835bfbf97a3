//! Moves an order, with the money and the stock that follow, in one transaction. It is refused if the order has moved meanwhile, and is
//! then decided anew. So an order is paid back or earned, never both, whoever moves it at once.

use base::clock::Timestamp;
use base::ids::RequestId;
use ledger::earning::{self, Earning, SaleEnd, Sold};
use ledger::fee::Split;
use ledger::receipt::{self, Receipt};
use ledger::returned::{self, Paid};
use platform::http::log;
use platform::store::{StoreError, Write, WriteError};
use tools::Toolbox;

use super::good;
use super::sale::{self, Effect, Event, Next, NotNow, Parcel, Sale, State};
use super::view;
use crate::telling::{self, Moved};

/// How often a move is decided anew.
const TRIES: u32 = 8;

/// A move that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Drop {
        reason: String,
    },
    Ship(Parcel),
    Deliver,
    Cancel {
        reason: String,
    },
    /// Time is over, as the chore has seen.
    Due,
}

impl Change {
    fn event(&self) -> Event {
        match self {
            Change::Drop { .. } => Event::Drop,
            Change::Ship(_) => Event::Ship,
            Change::Deliver => Event::Deliver,
            Change::Cancel { .. } => Event::Cancel,
            Change::Due => Event::Due,
        }
    }
}

/// Why an order does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Not in this state.
    In(State),
    Unknown,
}

/// Moves an order. Asked again, it stays and is returned as it is.
///
/// # Errors
/// If the database fails. The inner error says why it does not move.
pub async fn apply(toolbox: &Toolbox, request: RequestId, change: Change) -> Result<Result<Sale, Refused>, StoreError> {
    for _ in 0..TRIES {
        let Some(mut sale) = sale::load(&toolbox.db, request).await? else { return Ok(Err(Refused::Unknown)) };
        let now = toolbox.clock.now();
        // Of two runs at once, the other may have moved it to a state whose time is not over.
        if change == Change::Due && sale.deadline().is_none_or(|deadline| now < deadline) {
            return Ok(Ok(sale));
        }
        let before = sale.clone();
        let (state, effect) = match sale::next(sale.state, change.event()) {
            Err(NotNow) => return Ok(Err(Refused::In(sale.state))),
            Ok(Next::Stay) => match corrected(&sale, &change) {
                Some(Ok(corrected)) => {
                    sale = corrected;
                    (sale.state, Effect::Nothing)
                }
                Some(Err(refused)) => return Ok(Err(refused)),
                None => return Ok(Ok(sale)),
            },
            Ok(Next::To(state, effect)) => {
                sale = sale.moved(state, now);
                (state, effect)
            }
        };
        if sale.paid.is_none() && state != State::Dropped {
            // Its job goes before it does.
            sale.paid = returned::paid(&toolbox.db, request).await?;
        }
        note(&mut sale, &change);
        let follows = follow(toolbox, &mut sale, effect, now).await?;
        let mut writes = sale::replace(&toolbox.db, &before, &sale)?;
        writes.extend(follows);
        if state != State::Dropped && state != State::Settled {
            writes.extend(told(toolbox, &sale, now).await?);
        }
        match toolbox.db.transact(&writes).await {
            Ok(()) => return Ok(Ok(Sale { revision: before.revision + 1, ..sale })),
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Err(StoreError::new("an order changes faster than it can be moved"))
}

/// A seller may correct how a parcel travels while it does. `None`: nothing changes.
fn corrected(sale: &Sale, change: &Change) -> Option<Result<Sale, Refused>> {
    let Change::Ship(parcel) = change else { return None };
    if sale.parcel.as_ref() == Some(parcel) {
        return None;
    }
    Some(match sale.state {
        State::Shipped => Ok(Sale { parcel: Some(parcel.clone()), ..sale.clone() }),
        other => Err(Refused::In(other)),
    })
}

/// Notes what was said with a move.
fn note(sale: &mut Sale, change: &Change) {
    match change {
        Change::Ship(parcel) => sale.parcel = Some(parcel.clone()),
        Change::Drop { reason } | Change::Cancel { reason } => sale.reason = Some(reason.clone()),
        Change::Due if sale.state == State::Cancelled => sale.reason = Some("not_shipped".to_owned()),
        Change::Deliver | Change::Due => {}
    }
}

/// The writes of money and stock.
async fn follow(toolbox: &Toolbox, sale: &mut Sale, effect: Effect, now: Timestamp) -> Result<Vec<Write>, StoreError> {
    let mut writes = Vec::new();
    if matches!(effect, Effect::Restock | Effect::Undo)
        && good::left(&toolbox.db, &sale.good, sale.variant).await?.is_some()
    {
        writes.push(good::put_back(&toolbox.db, &sale.good, sale.variant, sale.quantity)?);
    }
    if matches!(effect, Effect::Undo | Effect::PayBack) {
        writes.extend(pay_back(toolbox, sale, now).await?);
    }
    if effect == Effect::Earn {
        writes.push(earn(toolbox, sale, now).await?);
    }
    Ok(writes)
}

/// Everything that the buyer paid comes back, with the fee.
async fn pay_back(toolbox: &Toolbox, sale: &mut Sale, now: Timestamp) -> Result<Vec<Write>, StoreError> {
    let (Some(signer), Some(paid)) = (&toolbox.signer, &sale.paid) else {
        return Err(StoreError::new("the payment of an order that comes back is not known"));
    };
    if paid.charge.purse.is_some() {
        log::failure("an order has to be paid back by hand", &"a goal has bought it");
        return Ok(Vec::new());
    }
    let of = (sale.request, paid);
    receipt_at_rest(toolbox, paid).await?;
    let back = returned::give_back(&toolbox.db, signer, of, sale.price(), "order", now).await?;
    let Some((amount, writes)) = back else { return Ok(Vec::new()) };
    sale.returned = Some(amount.to_string());
    Ok(writes)
}

/// A payment that the chain took back is being collected again: the order waits until that has ended.
async fn receipt_at_rest(toolbox: &Toolbox, paid: &Paid) -> Result<Receipt, StoreError> {
    let receipt = receipt::load(&toolbox.db, paid.agent, &paid.receipt_id).await?;
    let receipt = receipt.ok_or_else(|| StoreError::new("the receipt of an order is gone"))?;
    match receipt.is_terminal() {
        true => Ok(receipt),
        false => Err(StoreError::new("the payment of an order is not final")),
    }
}

/// What the seller earns: all but the fee, which the buyer paid on top.
async fn earn(toolbox: &Toolbox, sale: &Sale, now: Timestamp) -> Result<Write, StoreError> {
    let paid = sale.paid.as_ref().ok_or_else(|| StoreError::new("the payment of an order that ends is not known"))?;
    let receipt = receipt_at_rest(toolbox, paid).await?;
    if receipt.kept.unwrap_or(receipt.amount) < sale.price() {
        return Err(StoreError::new("a part of an order's price is not kept any more: look at it by hand"));
    }
    let earning = Earning {
        request_id: sale.request,
        receipt_id: paid.receipt_id.clone(),
        sold: Sold {
            soul: sale.seller.slug.clone(),
            service: Some(sale.good.clone()),
            terms: 1,
            split: Split { fee: sale.fee, revenue: sale.cost.total },
            kept_up_to: Default::default(),
        },
        buyer: sale.agent,
        tools_cost: Default::default(),
        card: paid.charge.card,
        ended: SaleEnd::Completed,
        bought_at: sale.at,
        ended_at: now,
    };
    earning::record(&toolbox.db, &earning)
}

async fn told(toolbox: &Toolbox, sale: &Sale, now: Timestamp) -> Result<Vec<Write>, StoreError> {
    let moved = Moved {
        request: sale.request,
        agent: sale.agent,
        title: &sale.title,
        status: view::status(sale),
        returned: sale.returned.as_deref(),
        tracking: view::tracking(sale),
        revision: sale.revision + 1,
    };
    telling::told(&toolbox.db, moved, now).await
}
