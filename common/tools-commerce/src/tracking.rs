//! Where the parcels of an order are, as the shop last said.

use base::clock::Timestamp;
use base::ids::RequestId;
use platform::store::{Db, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::goods::{sale, view};
use crate::order::{self, Order, Stage};

/// The state of one parcel. The last in this order counts for the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parcel {
    Canceled,
    Delivered,
    OutForDelivery,
    Shipped,
    Delayed,
    Ordered,
}

impl Parcel {
    pub fn read(text: &str) -> Option<Parcel> {
        serde_json::from_value(Value::from(text)).ok()
    }

    fn as_str(self) -> &'static str {
        match self {
            Parcel::Canceled => "canceled",
            Parcel::Delivered => "delivered",
            Parcel::OutForDelivery => "out_for_delivery",
            Parcel::Shipped => "shipped",
            Parcel::Delayed => "delayed",
            Parcel::Ordered => "ordered",
        }
    }

    /// Nothing follows.
    pub fn is_last(self) -> bool {
        matches!(self, Parcel::Canceled | Parcel::Delivered)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracking {
    /// Of the parcel that is behind the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parcel: Option<Parcel>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// When the shop last said something new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<Timestamp>,
    /// Paid back after the shop cancelled the order, in USDC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<String>,
}

impl Tracking {
    pub fn is_empty(&self) -> bool {
        *self == Tracking::default()
    }
}

/// The state of an order: of its parcels, or how far the purchase is.
pub fn status(order: &Order) -> &'static str {
    match (order.stage, order.tracking.parcel) {
        (Stage::Placed, Some(parcel)) => parcel.as_str(),
        (stage, _) => stage.as_str(),
    }
}

/// The member `order_tracking` of a polled purchase, in a shop or here; `None` before its work has begun.
///
/// # Errors
/// If the database fails.
pub async fn of(db: &Db, request: RequestId) -> Result<Option<Value>, StoreError> {
    if let Some(order) = order::load(db, request).await? {
        return Ok(Some(shown(&order)));
    }
    Ok(sale::load(db, request).await?.map(|sale| view::tracking(&sale)))
}

/// The same of an order in a shop.
pub fn shown(order: &Order) -> Value {
    let tracking = &order.tracking;
    json!({
        "status": status(order),
        "order_id": order.order_id,
        "carrier": tracking.carrier,
        "tracking_number": tracking.number,
        "tracking_url": tracking.url,
        "updated_at": tracking.changed.or(order.submitted).map(|at| at.to_string()),
        "returned_usdc": tracking.returned,
    })
}
