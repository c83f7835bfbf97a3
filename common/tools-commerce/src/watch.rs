//! What becomes of orders after their job: every hour the parcels of those that are due are asked for. An order that the shop cancels is
//! paid back, and so is one of unknown fate that turns out not to have been placed.
//!
//! Each change is one transaction, refused if the order was changed meanwhile. So several runs at once, and one that dies, tell and pay
//! back once.

use std::time::Duration;

use base::clock::Timestamp;
use ledger::returned;
use platform::http::log;
use platform::store::{StoreError, Write, WriteError};
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::Toolbox;
use tools::chore::{self, Chore};

use crate::order::{self, Due, Offer, Order, SHARDS, Stage};
use crate::providers::rye::{self, Shipment};
use crate::telling::{self, Moved};
use crate::tracking::{self, Parcel, Tracking};

/// Orders of a partition that one run looks at.
const AT_ONCE: usize = 10;
/// Pauses between looks: while an order is young, and later.
const YOUNG: Duration = Duration::from_secs(2 * 24 * 3600);
const SOON: Duration = Duration::from_secs(3600);
const LATER: Duration = Duration::from_secs(6 * 3600);
/// After the last parcel has arrived, the shop may still cancel and take back for so long.
const AFTER_LAST: Duration = Duration::from_secs(30 * 24 * 3600);
const RARELY: Duration = Duration::from_secs(24 * 3600);
/// An order is looked at for so long.
const WATCHED: Duration = Duration::from_secs(120 * 24 * 3600);

pub static CHORE: Chore = Chore {
    name: "orders",
    run: |toolbox| {
        Box::pin(async move {
            let (changed, more) = look(toolbox).await?;
            Ok(chore::Done { counts: if changed > 0 { json!({"changed": changed}) } else { Value::Null }, more })
        })
    },
};

/// Looks at the orders that are due. How many moved, and whether there are more.
///
/// # Errors
/// If the list cannot be read. What cannot be done about an order is logged and left to the next run.
pub async fn look(toolbox: &Toolbox) -> Result<(u32, bool), StoreError> {
    let (mut changed, mut more) = (0, false);
    for shard in 0..SHARDS {
        let due = order::due(&toolbox.db, shard, toolbox.clock.now(), AT_ONCE).await?;
        let mut are_all_done = true;
        for place in &due {
            match look_at(toolbox, place).await {
                Ok(has_moved) => changed += u32::from(has_moved),
                Err(error) => {
                    are_all_done = false;
                    log::failure("an order could not be looked at", &error);
                }
            }
        }
        more |= due.len() == AT_ONCE && are_all_done;
    }
    Ok((changed, more))
}

/// Whether the order has moved.
async fn look_at(toolbox: &Toolbox, place: &Due) -> Result<bool, StoreError> {
    let db = &toolbox.db;
    let order = order::load(db, place.request).await?.filter(|order| order.due == Some(place.due));
    let Some(mut order) = order else {
        // It has another place, or is gone.
        db.write_if(place.delete(db)).await?;
        return Ok(false);
    };
    if order.paid.is_none() {
        // Its job goes before it does.
        order.paid = returned::paid(db, order.request).await?;
    }
    let now = toolbox.clock.now();
    let seen = see(toolbox, &order).await;
    let moved = match seen {
        Ok(seen) => after(&order, seen, now),
        Err(error) => {
            log::failure("a shop's provider could not be asked about an order", &error.detail());
            None
        }
    };
    let Some((next, is_lost)) = moved else {
        let next = Order { due: due_again(&order, now), ..order.clone() };
        if order::change(db, &order, next).await? {
            db.write_if(place.delete(db)).await?;
        }
        return Ok(false);
    };
    let next = Order { due: due_again(&next, now), ..next };
    let (next, returns) = if is_lost { pay_back(toolbox, next, now).await? } else { (next, Vec::new()) };
    let mut writes = order::replace(db, &order, next.clone())?;
    writes.extend(returns);
    writes.extend(told(toolbox, &next, now).await?);
    match db.transact(&writes).await {
        Ok(()) => {
            db.write_if(place.delete(db)).await?;
            Ok(true)
        }
        // Another run was faster, or the receipt was revised: the next run decides anew.
        Err(WriteError::Refused(_)) => Ok(false),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// What the provider says.
struct Seen {
    /// Of an order of unknown fate.
    offer: Option<Offer>,
    shipments: Vec<Shipment>,
    is_cancelled: bool,
}

async fn see(toolbox: &Toolbox, order: &Order) -> Result<Seen, platform::providers::outbound::OutboundError> {
    let until = Instant::now() + rye::ASK;
    let outbound = &toolbox.outbound;
    if order.stage == Stage::Unknown {
        let offer = rye::read(outbound, &order.offer, until).await?;
        return Ok(Seen { offer: Some(offer), shipments: Vec::new(), is_cancelled: false });
    }
    let shipments = rye::shipments(outbound, &order.offer, until).await?;
    let is_cancelled = rye::is_cancelled(outbound, &order.offer, until).await?;
    Ok(Seen { offer: None, shipments, is_cancelled })
}

/// The order after what was seen, and whether its money comes back; `None` if nothing moved.
fn after(order: &Order, seen: Seen, now: Timestamp) -> Option<(Order, bool)> {
    match seen.offer {
        Some(Offer::Placed { order_id }) => {
            let placed = Order { stage: Stage::Placed, order_id, ..order.clone() };
            return Some((placed, false));
        }
        // It was not confirmed when its offer expired, or the shop did not take it.
        Some(Offer::Failed { code }) => {
            return Some((Order { stage: Stage::Failed, reason: Some(code), ..order.clone() }, true));
        }
        Some(_) => return None,
        None => {}
    }
    let behind = seen.shipments.iter().max_by_key(|shipment| shipment.parcel);
    let parcel = match seen.is_cancelled {
        true => Some(Parcel::Canceled),
        false => behind.map(|shipment| shipment.parcel),
    };
    let of = |field: fn(&Shipment) -> &Option<String>| behind.and_then(|shipment| field(shipment).clone());
    let tracking = Tracking {
        parcel,
        carrier: of(|shipment| &shipment.carrier),
        number: of(|shipment| &shipment.number),
        url: of(|shipment| &shipment.url),
        ..order.tracking.clone()
    };
    let is_lost = seen.is_cancelled && order.tracking.returned.is_none();
    // Its parcels may have been cancelled before the order was.
    if tracking == order.tracking && !is_lost {
        return None;
    }
    Some((Order { tracking: Tracking { changed: Some(now), ..tracking }, ..order.clone() }, is_lost))
}

/// When an order is looked at again.
fn due_again(order: &Order, now: Timestamp) -> Option<Timestamp> {
    if order.stage == Stage::Failed || order.tracking.returned.is_some() || now > order.at.plus(WATCHED) {
        return None;
    }
    let has_arrived = order.tracking.parcel.is_some_and(Parcel::is_last);
    let changed = order.tracking.changed.unwrap_or(order.at);
    match (has_arrived, order.stage) {
        (true, _) if now > changed.plus(AFTER_LAST) => None,
        (true, _) => Some(now.plus(RARELY)),
        (false, Stage::Unknown) => Some(now.plus(SOON)),
        (false, _) if now < order.at.plus(YOUNG) => Some(now.plus(SOON)),
        (false, _) => Some(now.plus(LATER)),
    }
}

/// The writes that pay an order back. What cannot be paid back by itself is left to the operator.
async fn pay_back(toolbox: &Toolbox, order: Order, now: Timestamp) -> Result<(Order, Vec<Write>), StoreError> {
    let (Some(signer), Some(paid)) = (&toolbox.signer, &order.paid) else {
        return Err(StoreError::new("the payment of an order that comes back is not known"));
    };
    if paid.charge.purse.is_some() {
        log::failure("an order has to be paid back by hand", &"a goal has bought it");
        return Ok((order, Vec::new()));
    }
    let of = (order.request, paid);
    let Some((amount, writes)) = returned::give_back(&toolbox.db, signer, of, order.price, "order", now).await? else {
        return Ok((order, Vec::new()));
    };
    let tracking = Tracking { returned: Some(amount.to_string()), ..order.tracking };
    Ok((Order { tracking, ..order }, writes))
}

/// The writes that tell the agent.
async fn told(toolbox: &Toolbox, order: &Order, now: Timestamp) -> Result<Vec<Write>, StoreError> {
    let moved = Moved {
        request: order.request,
        agent: order.agent,
        title: &order.title,
        status: tracking::status(order),
        returned: order.tracking.returned.as_deref(),
        tracking: tracking::shown(order),
        revision: order.revision + 1,
    };
    telling::told(&toolbox.db, moved, now).await
}

#[cfg(test)]
mod tests {
    use base::ids::{AgentId, RequestId};
    use base::money::Usdc;
    use evm::Address;

    use super::*;

    fn order(stage: Stage) -> Order {
        Order {
            request: RequestId::random(),
            agent: AgentId::of(Address::ZERO),
            offer: "ci_1".to_owned(),
            title: "A lamp".to_owned(),
            url: "https://shop.example/lamp".to_owned(),
            quantity: 1,
            total: Usdc::from_micro(20_000_000),
            price: Usdc::from_micro(21_000_000),
            stage,
            at: Timestamp::from_secs(0),
            submitted: Some(Timestamp::from_secs(0)),
            order_id: None,
            reason: None,
            tracking: Tracking::default(),
            paid: None,
            due: None,
            revision: 0,
            expires: 0,
        }
    }

    fn shipment(parcel: Parcel) -> Shipment {
        Shipment { parcel, carrier: None, number: Some(format!("{parcel:?}")), url: None }
    }

    fn seen(shipments: Vec<Shipment>, is_cancelled: bool) -> Seen {
        Seen { offer: None, shipments, is_cancelled }
    }

    #[test]
    fn the_parcel_that_is_behind_counts() {
        let now = Timestamp::from_secs(100);
        let two = vec![shipment(Parcel::Delivered), shipment(Parcel::Shipped)];
        let (next, is_lost) = after(&order(Stage::Placed), seen(two, false), now).unwrap();
        assert_eq!((next.tracking.parcel, next.tracking.number.as_deref()), (Some(Parcel::Shipped), Some("Shipped")));
        assert!(!is_lost);
        // The same again is nothing new.
        assert!(after(&next, seen(vec![shipment(Parcel::Shipped)], false), Timestamp::from_secs(200)).is_none());
        assert!(after(&order(Stage::Placed), seen(Vec::new(), false), now).is_none());
    }

    #[test]
    fn a_cancelled_order_comes_back_once() {
        let now = Timestamp::from_secs(100);
        let (next, is_lost) = after(&order(Stage::Placed), seen(vec![shipment(Parcel::Shipped)], true), now).unwrap();
        assert_eq!((next.tracking.parcel, is_lost), (Some(Parcel::Canceled), true));
        let returned = Tracking { returned: Some("21".to_owned()), parcel: None, ..next.tracking.clone() };
        let next = Order { tracking: returned, ..next };
        assert!(!after(&next, seen(Vec::new(), true), now).unwrap().1);
        // The parcels first, then the order.
        let (parcels, is_lost) =
            after(&order(Stage::Placed), seen(vec![shipment(Parcel::Canceled)], false), now).unwrap();
        assert_eq!((parcels.tracking.parcel, is_lost), (Some(Parcel::Canceled), false));
        let (_, is_lost) = after(&parcels, seen(vec![shipment(Parcel::Canceled)], true), now).unwrap();
        assert!(is_lost);
        assert_eq!(due_again(&next, now), None);
    }

    #[test]
    fn an_unknown_fate_becomes_known() {
        let now = Timestamp::from_secs(100);
        let of = |offer| after(&order(Stage::Unknown), Seen { offer: Some(offer), ..seen(Vec::new(), false) }, now);
        let (next, is_lost) = of(Offer::Placed { order_id: Some("o1".to_owned()) }).unwrap();
        assert_eq!((next.stage, is_lost), (Stage::Placed, false));
        let (next, is_lost) = of(Offer::Failed { code: "checkout_intent_expired".to_owned() }).unwrap();
        assert_eq!((next.stage, is_lost), (Stage::Failed, true));
        for offer in [Offer::Placing, Offer::Gone, Offer::Begun] {
            assert!(of(offer.clone()).is_none(), "{offer:?}");
        }
    }

    #[test]
    fn orders_are_looked_at_less_often_as_they_age() {
        let day = 24 * 3600;
        let again = |order: &Order, secs| due_again(order, Timestamp::from_secs(secs)).map(|due| due.secs() - secs);
        let young = order(Stage::Placed);
        assert_eq!(
            (again(&young, day), again(&young, 3 * day), again(&young, 121 * day)),
            (Some(3600), Some(6 * 3600), None)
        );
        let arrived = Tracking {
            parcel: Some(Parcel::Delivered),
            changed: Some(Timestamp::from_secs(5 * day)),
            ..Tracking::default()
        };
        let arrived = Order { tracking: arrived, ..order(Stage::Placed) };
        assert_eq!((again(&arrived, 6 * day), again(&arrived, 36 * day)), (Some(day), None));
    }
}
