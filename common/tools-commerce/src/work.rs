//! The purchase: looks at the offer, confirms it once, and waits until the shop has taken the order.

use std::sync::Arc;
use std::time::Duration;

use platform::http::log;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};
use tools::run::{Stop, within_limit};
use tools::{ErrorCode, Output, Running, Source, Task, ToolError, Toolbox};

use crate::goods::buying;
use crate::order::{self, KEPT, Next, Offer, Order, Stage};
use crate::providers::rye::{self, Confirmed};
use crate::quote::Locked;
use crate::tracking::{self, Tracking};

/// A run waits so long for the shop; then others can work.
const LOOKING: Duration = Duration::from_secs(40);
/// The pause after a confirmation that certainly did not arrive.
const NOT_SENT: Duration = Duration::from_secs(20);
/// The job may wait so long. The order decides itself when to give up.
const PATIENCE: Duration = Duration::from_secs(26 * 3600);
/// When a new order is looked at first, for its parcels.
const FIRST_LOOK: Duration = Duration::from_secs(3600);

pub fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let (inner, of) = (toolbox.clone(), task.clone());
        match within_limit(async move { work(&inner, &of).await }).await {
            Ok(ended) => ended,
            Err((pause, cause)) => {
                log::failure("a run of a purchase could not go on", &cause);
                Ok(again(&toolbox, pause))
            }
        }
    })
}

fn again(toolbox: &Toolbox, pause: Duration) -> Output {
    Output::again(pause, toolbox.clock.now().plus(PATIENCE), Source::upstream(rye::NAME, None))
}

async fn work(toolbox: &Toolbox, task: &Task) -> Result<Output, Stop> {
    if let Some((locked, picked)) = Locked::read(&task.locked).and_then(|locked| Some((locked.clone(), locked.good?))) {
        return buying::work(toolbox, task, &locked, &picked).await;
    }
    let until = Instant::now() + LOOKING;
    let mut order = match order::load(&toolbox.db, task.request_id).await? {
        Some(order) => order,
        None => begin(toolbox, task).await?,
    };
    loop {
        let offer = match order.stage {
            Stage::Pending | Stage::Submitting => {
                rye::read(&toolbox.outbound, &order.offer, Instant::now() + rye::ASK).await.ok()
            }
            Stage::Placed | Stage::Failed | Stage::Unknown => None,
        };
        match order::next(&order, offer.as_ref(), toolbox.clock.now(), task.is_over) {
            Next::Confirm => {
                if let Some(pause) = confirm(toolbox, task, &order).await? {
                    return Ok(again(toolbox, pause));
                }
                order = reread(toolbox, &order).await?;
            }
            Next::Wait(pause) if Instant::now() + pause < until => sleep(pause).await,
            Next::Wait(pause) => return Ok(again(toolbox, pause)),
            Next::Placed(order_id) => return ended(toolbox, task, &order, Stage::Placed, order_id),
            Next::Unknown => return ended(toolbox, task, &order, Stage::Unknown, None),
            Next::Fail(reason) => {
                if note_failure(toolbox, &order, &reason).await? {
                    return Err(failed(&reason).into());
                }
                // Another run was faster: it may have confirmed the offer.
                order = reread(toolbox, &order).await?;
            }
        }
    }
}

async fn reread(toolbox: &Toolbox, order: &Order) -> Result<Order, Stop> {
    let order = order::load(&toolbox.db, order.request).await?;
    order.ok_or_else(|| ToolError::internal("the order's row is gone").into())
}

/// Writes the order's row, before anything is done.
async fn begin(toolbox: &Toolbox, task: &Task) -> Result<Order, Stop> {
    let locked = Locked::read(&task.locked).ok_or_else(|| ToolError::internal("the stored quote cannot be read"))?;
    let now = toolbox.clock.now();
    let order = Order {
        request: task.request_id,
        agent: task.agent,
        offer: locked.offer,
        title: locked.title,
        url: task.text("product_url").to_owned(),
        quantity: locked.quantity,
        total: locked.cost.total,
        price: task.price,
        stage: Stage::Pending,
        at: now,
        submitted: None,
        order_id: None,
        reason: None,
        tracking: Tracking::default(),
        paid: None,
        due: None,
        revision: 0,
        expires: now.plus(KEPT).secs(),
    };
    match order::begin(&toolbox.db, &order).await? {
        true => reread(toolbox, &order).await,
        false => Err(failed("already_confirmed").into()),
    }
}

/// Confirms the offer. What became of it is looked up; a pause: it was certainly not sent, and is tried again.
async fn confirm(toolbox: &Toolbox, task: &Task, order: &Order) -> Result<Option<Duration>, Stop> {
    let db = &toolbox.db;
    task.reporter.must_end();
    task.reporter.say(30, "ordering at the shop");
    let now = toolbox.clock.now();
    let submitting = Order { stage: Stage::Submitting, submitted: Some(now), ..order.clone() };
    if !order::change(db, order, submitting.clone()).await? {
        // Another run was faster.
        return Ok(None);
    }
    let submitting = Order { revision: order.revision + 1, ..submitting };
    match rye::confirm(&toolbox.outbound, &order.offer, Instant::now() + rye::ASK).await {
        Confirmed::Taken | Confirmed::Unknown => Ok(None),
        Confirmed::NotSent => {
            let pending = Order { stage: Stage::Pending, submitted: None, ..submitting.clone() };
            order::change(db, &submitting, pending).await?;
            Ok(Some(NOT_SENT))
        }
        // A refusal counts only if the offer still waits for its confirmation.
        Confirmed::Refused if !still_waits(toolbox, order).await => Ok(None),
        Confirmed::Refused => {
            let failed =
                Order { stage: Stage::Failed, reason: Some("provider_refused".to_owned()), ..submitting.clone() };
            order::change(db, &submitting, failed).await?;
            Ok(None)
        }
    }
}

/// Whether the provider says that the offer was not confirmed.
async fn still_waits(toolbox: &Toolbox, order: &Order) -> bool {
    let offer = rye::read(&toolbox.outbound, &order.offer, Instant::now() + rye::ASK).await;
    matches!(offer, Ok(Offer::Begun | Offer::Ready(_) | Offer::Unpriced))
}

/// Notes that nothing was bought. False: the order was changed meanwhile.
async fn note_failure(toolbox: &Toolbox, order: &Order, reason: &str) -> Result<bool, Stop> {
    if order.stage == Stage::Failed {
        return Ok(true);
    }
    let failed = Order { stage: Stage::Failed, reason: Some(reason.to_owned()), ..order.clone() };
    Ok(order::change(&toolbox.db, order, failed).await?)
}

/// The error that pays everything back.
pub(crate) fn failed(reason: &str) -> ToolError {
    let why = match reason {
        "price_changed" => "the shop's price is not the quoted one any more: ask for a new quote",
        "quote_expired" | "checkout_intent_expired" => "the offer has expired: ask for a new quote",
        "already_confirmed" => "this offer was bought already: ask for a new quote",
        "given_up" => "it was stopped before the order was placed",
        "not_for_sale" => "its seller does not sell it any more",
        "insufficient_stock" | "product_out_of_stock" => "the shop has too few of this product",
        "payment_failed" | "provider_refused" => {
            "the shop was not paid by this deployment's account: tell its operator"
        }
        "not_confirmed" => "the order did not arrive at the shop",
        _ => "the shop did not take the order",
    };
    ToolError {
        code: ErrorCode::CheckoutFailed,
        reason: Some(reason.to_owned()),
        message: format!("nothing was bought: {why}"),
    }
}

/// The end: charged, and from then on its parcels are looked at.
fn ended(
    toolbox: &Toolbox,
    task: &Task,
    order: &Order,
    stage: Stage,
    order_id: Option<String>,
) -> Result<Output, Stop> {
    let now = toolbox.clock.now();
    let after = Order { stage, order_id, due: Some(now.plus(FIRST_LOOK)), ..order.clone() };
    let writes = match order.stage == stage {
        true => Vec::new(),
        false => order::replace(&toolbox.db, order, after.clone())?,
    };
    let source = Source::upstream(rye::NAME, Some(order.offer.clone()));
    Ok(Output::new(result(&after, &task.locked), source).with(writes))
}

fn result(order: &Order, locked: &Map<String, Value>) -> Value {
    json!({
        "status": "completed",
        "order_id": order.order_id,
        "order_status": tracking::status(order),
        "tracking_url": order.tracking.url,
        "cost": order.price.to_number(),
        "costs": Locked::read(locked).map(|locked| locked.lines()),
        "product_title": order.title,
        "quantity": order.quantity,
    })
}
