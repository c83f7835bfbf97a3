//! A purchase of a good: its quote, the writes of its claim, and the run that places the order.
//!
//! The stock is taken in the transaction that claims the purchase, together with the order's row in state `held`. A run places the
//! order in the transaction that charges, or drops it, with the stock, before it fails. A job that dies before its first run
//! leaves a held order, which the chore finds ([`super::watch`]).

use std::collections::BTreeMap;

use base::digest::sha256_parts;
use base::ids::{AgentId, RequestId};
use http::StatusCode;
use platform::http::ApiError;
use platform::store::{Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tools::run::Stop;
use tools::spec::Claiming;
use tools::{Output, Source, Task, ToolError, Toolbox, lock};

use super::good::{self, Good, Seller, Variant};
use super::moving::{self, Change};
use super::price::{self, NoPrice};
use super::sale::{self, Due, FIRST_LOOK, HELD, Sale, State};
use super::view;
use crate::address;
use crate::providers::rye;
use crate::quote::{self, Locked};
use crate::work::failed;

/// What a quote fixes beside the cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picked {
    pub variant: u32,
    pub seller: Seller,
    pub handling_days: u8,
    pub return_days: u8,
    /// What the buyer saw beside the cost: [`seen`].
    #[serde(default)]
    pub seen: String,
}

/// A digest of what a buyer decides by beside the cost: texts, labels, and the seller's promises.
fn seen(good: &Good, variant: &Variant) -> String {
    let labels = variant.labels.iter().flat_map(|(label, value)| [label.as_bytes(), value.as_bytes()]);
    let days = [good.handling_days, good.return_days];
    let texts = [good.title.as_bytes(), good.description.as_bytes(), &days[..]];
    const_hex::encode(&sha256_parts(&texts.into_iter().chain(labels).collect::<Vec<_>>())[..16])
}

/// The id of the good that an input names. Whether the address is one of ours is seen by the quoter.
pub fn id(input: &Map<String, Value>) -> Option<String> {
    good::id_in(input.get("product_url").and_then(Value::as_str)?)
}

/// As much of a soul as a sale needs (`market::soul`).
#[derive(Deserialize)]
struct Soul {
    status: String,
}

/// Whether a seller may sell now.
async fn may_sell(toolbox: &Toolbox, seller: &Seller) -> Result<bool, StoreError> {
    if !toolbox.config.goods_sellers.allow(&seller.slug, &seller.id) {
        return Ok(false);
    }
    let key = Key::new(format!("SOUL#{}", seller.slug), "SOUL");
    let soul: Option<Soul> = toolbox.db.get_latest(&toolbox.db.tables.souls, key).await?;
    Ok(soul.is_some_and(|soul| soul.status == "active"))
}

/// The good, if it is for sale.
pub(super) async fn for_sale(toolbox: &Toolbox, id: &str) -> Result<Option<Good>, StoreError> {
    let Some(good) = good::load(&toolbox.db, id).await?.filter(|good| good.listed) else { return Ok(None) };
    Ok(may_sell(toolbox, &good.seller).await?.then_some(good))
}

fn out_of_stock() -> ApiError {
    quote::refused(StatusCode::CONFLICT, "out_of_stock", "the seller has too few of this product")
}

/// Prices a purchase by the good's own tables.
///
/// # Errors
/// Why it cannot be bought.
pub async fn quote(toolbox: &Toolbox, id: &str, input: &Map<String, Value>) -> Result<Locked, ApiError> {
    let unknown = || ApiError::field("product_url", "is no product that is for sale here");
    let url = input.get("product_url").and_then(Value::as_str).unwrap_or_default();
    if good::id_here(toolbox.config.base_url.as_deref(), url).is_none() {
        return Err(unknown());
    }
    let good = for_sale(toolbox, id).await?.ok_or_else(unknown)?;
    let variant = pick(&good, input)?;
    quote::check_goods(&good.words())?;
    let address = address::read(input.get("shipping_address").unwrap_or(&Value::Null));
    let address = address.map_err(ApiError::InvalidRequest)?;
    let quantity = quote::quantity(input);
    if good::left(&toolbox.db, id, variant.id).await?.unwrap_or_default() < quantity {
        return Err(out_of_stock());
    }
    let most = toolbox.config.largest_purchase;
    let cost = price::cost(&good, variant, quantity, address.state).map_err(|why| match why {
        NoPrice::NotSentThere => {
            ApiError::field("shipping_address.state", format!("the seller sends nothing to {}", address.state))
        }
        NoPrice::TooLarge => quote::above(most, None),
    })?;
    if cost.total > most {
        return Err(quote::above(most, Some(cost.total)));
    }
    let seen = seen(&good, variant);
    let fee = quote::fee(cost.total, toolbox.config.prices.commerce_fee);
    let picked = Picked {
        variant: variant.id,
        seller: good.seller,
        handling_days: good.handling_days,
        return_days: good.return_days,
        seen,
    };
    Ok(Locked { offer: good.id, title: good.title, quantity, cost, fee, good: Some(picked) })
}

/// The variant that the input names: by its number, or by labels and values.
fn pick<'a>(good: &'a Good, input: &Map<String, Value>) -> Result<&'a Variant, ApiError> {
    let wanted = rye::Variant::read(input).unwrap_or_default();
    let same = |one: &str, other: &str| one.trim().to_lowercase() == other.trim().to_lowercase();
    let found: Vec<&Variant> = match wanted.number {
        Some(number) => good.variants.iter().filter(|variant| variant.id.to_string() == number).collect(),
        None => {
            let has = |variant: &Variant, (label, value): &(String, String)| {
                variant.labels.iter().any(|(name, own)| same(name, label) && same(own, value))
            };
            good.variants.iter().filter(|variant| wanted.selections.iter().all(|one| has(variant, one))).collect()
        }
    };
    match found[..] {
        [variant] => Ok(variant),
        [] => Err(ApiError::field("variant_id", "is not a variant of this product")),
        _ => Err(ApiError::field("variant_id", "is needed: the product has several variants")),
    }
}

/// A new order, which holds its stock.
fn held(request: RequestId, agent: AgentId, locked: &Locked, picked: &Picked, now: base::clock::Timestamp) -> Sale {
    Sale {
        request,
        agent,
        seller: picked.seller.clone(),
        good: locked.offer.clone(),
        variant: picked.variant,
        labels: Default::default(),
        title: locked.title.clone(),
        quantity: locked.quantity,
        cost: locked.cost,
        fee: locked.fee,
        handling_days: picked.handling_days,
        return_days: picked.return_days,
        state: State::Held,
        at: now,
        placed: None,
        shipped: None,
        delivered: None,
        closed: None,
        address: None,
        parcel: None,
        reason: None,
        returned: None,
        paid: None,
        due: Some(now.plus(HELD)),
        revision: 0,
        expires: Sale::expiry(now),
    }
}

/// The writes that take the stock and hold it for an order.
fn hold(toolbox: &Toolbox, sale: &Sale) -> Result<Vec<Write>, StoreError> {
    let db = &toolbox.db;
    let due = Due { request: sale.request, due: sale.due.unwrap_or(sale.at) };
    Ok(vec![
        good::take(db, &sale.good, sale.variant, sale.quantity)?,
        Write::put(&db.tables.jobs, sale::key(sale.request), sale)?.only_if_new(),
        due.put(db)?,
    ])
}

/// What a purchase writes in its claim. Nothing for a product of a shop.
///
/// # Errors
/// 409 `out_of_stock`; 400 `invalid_quote` if the good is not what was quoted any more.
pub async fn claims(toolbox: &Toolbox, claiming: Claiming<'_>) -> Result<Vec<Write>, ApiError> {
    let Some(locked) = Locked::read(claiming.locked) else { return Ok(Vec::new()) };
    let Some(picked) = &locked.good else { return Ok(Vec::new()) };
    // Before money moves: its seller may have changed it since the quote.
    if offered(toolbox, claiming.input, &locked, picked).await?.is_err() {
        return Err(ApiError::InvalidQuote);
    }
    let sale = held(claiming.request_id, claiming.agent, &locked, picked, claiming.now);
    let before = left_behind(toolbox, &sale).await?;
    if let Some(before) = before.as_ref().filter(|before| before.state == State::Held) {
        return Ok(sale::replace(&toolbox.db, before, &sale)?);
    }
    let left = good::left(&toolbox.db, &locked.offer, picked.variant).await?;
    if left.unwrap_or_default() < locked.quantity {
        return Err(out_of_stock());
    }
    match before {
        None => Ok(hold(toolbox, &sale)?),
        Some(before) => {
            let mut writes = sale::replace(&toolbox.db, &before, &sale)?;
            writes.push(good::take(&toolbox.db, &sale.good, sale.variant, sale.quantity)?);
            Ok(writes)
        }
    }
}

/// Gives the stock of a purchase back whose payment came to nothing. What is lost here is found by the chore.
///
/// # Errors
/// If the database fails.
pub async fn release(toolbox: &Toolbox, request: RequestId) -> Result<(), StoreError> {
    if sale::load(&toolbox.db, request).await?.is_some_and(|sale| sale.state == State::Held) {
        let change = Change::Drop { reason: "job_ended".to_owned() };
        moving::apply(toolbox, request, change).await?.ok();
    }
    Ok(())
}

/// The order of an earlier purchase with the same id whose payment came to nothing: dropped, or held with the same goods.
async fn left_behind(toolbox: &Toolbox, sale: &Sale) -> Result<Option<Sale>, StoreError> {
    let db = &toolbox.db;
    let Some(before) = sale::load(db, sale.request).await? else { return Ok(None) };
    // Otherwise the claim is a copy, and is refused for that.
    if !matches!(before.state, State::Held | State::Dropped) || lock::is_open(db, sale.request).await? {
        return Ok(None);
    }
    let same = |of: &Sale| (of.good.clone(), of.variant, of.quantity);
    if before.state == State::Dropped || same(&before) == same(sale) {
        return Ok(Some(before));
    }
    let dropped = moving::apply(toolbox, sale.request, Change::Drop { reason: "job_ended".to_owned() }).await?;
    Ok(dropped.ok())
}

/// The run of a purchase.
///
/// # Errors
/// If it failed, with the stock back; or if the database failed.
pub async fn work(toolbox: &Toolbox, task: &Task, locked: &Locked, picked: &Picked) -> Result<Output, Stop> {
    let sale = match sale::load(&toolbox.db, task.request_id).await? {
        Some(sale) => sale,
        None if task.is_over => return Err(failed("given_up").into()),
        None => take_late(toolbox, task, locked, picked).await?,
    };
    match sale.state {
        State::Held => {}
        State::Dropped => return Err(failed(sale.reason.as_deref().unwrap_or("given_up")).into()),
        _ => return Ok(output(&sale, locked)),
    }
    let offered = if task.is_over { Err("given_up") } else { offered(toolbox, &task.input, locked, picked).await? };
    let labels = match offered {
        Ok(labels) => labels,
        Err(reason) => {
            let change = Change::Drop { reason: reason.to_owned() };
            let dropped = moving::apply(toolbox, sale.request, change).await?;
            return match dropped {
                Ok(sale) => Err(failed(sale.reason.as_deref().unwrap_or(reason)).into()),
                // It was placed meanwhile.
                Err(_) => Err(Stop::Store(StoreError::new("an order moved while it was dropped"))),
            };
        }
    };
    place(toolbox, task, locked, &sale, labels).await
}

/// A call whose money arrived before its claim has no stock yet.
async fn take_late(toolbox: &Toolbox, task: &Task, locked: &Locked, picked: &Picked) -> Result<Sale, Stop> {
    let sale = held(task.request_id, task.agent, locked, picked, toolbox.clock.now());
    match toolbox.db.transact(&hold(toolbox, &sale)?).await {
        Ok(()) => Ok(sale),
        Err(WriteError::Failed(error)) => Err(error.into()),
        // Another run may have taken it.
        Err(WriteError::Refused(_)) => match sale::load(&toolbox.db, task.request_id).await? {
            Some(sale) => Ok(sale),
            None => Err(failed("insufficient_stock").into()),
        },
    }
}

/// Looks whether the good is still what was quoted, at that cost: the variant's labels. The inner error is the reason why not.
async fn offered(
    toolbox: &Toolbox,
    input: &Map<String, Value>,
    locked: &Locked,
    picked: &Picked,
) -> Result<Result<BTreeMap<String, String>, &'static str>, StoreError> {
    let Some(good) = for_sale(toolbox, &locked.offer).await? else { return Ok(Err("not_for_sale")) };
    let address = address::read(input.get("shipping_address").unwrap_or(&Value::Null));
    let variant = good.variants.iter().find(|variant| variant.id == picked.variant);
    let (Ok(address), Some(variant)) = (address, variant) else { return Ok(Err("not_for_sale")) };
    // A quote from before this was fixed has none.
    if !picked.seen.is_empty() && picked.seen != seen(&good, variant) {
        return Ok(Err("not_for_sale"));
    }
    Ok(match price::cost(&good, variant, locked.quantity, address.state) {
        Ok(cost) if cost == locked.cost => Ok(variant.labels.clone()),
        _ => Err("price_changed"),
    })
}

/// Places the order, in the transaction that charges.
async fn place(
    toolbox: &Toolbox,
    task: &Task,
    locked: &Locked,
    sale: &Sale,
    labels: BTreeMap<String, String>,
) -> Result<Output, Stop> {
    let now = toolbox.clock.now();
    let address = address::read(task.input.get("shipping_address").unwrap_or(&Value::Null));
    let address = address.map_err(|_| ToolError::internal("the address of an order cannot be read"))?;
    let placed = Sale {
        address: Some(view::address(&address).to_string()),
        labels,
        due: Some(now.plus(FIRST_LOOK)),
        ..sale.moved(State::Placed, now)
    };
    let mut writes = sale::replace(&toolbox.db, sale, &placed)?;
    writes.push(sale::list(&toolbox.db, &placed)?);
    Ok(output(&placed, locked).with(writes))
}

fn output(sale: &Sale, locked: &Locked) -> Output {
    let result = json!({
        "status": "completed",
        "order_id": sale.request.to_string(),
        "order_status": "placed",
        "tracking_url": sale.parcel.as_ref().and_then(|parcel| parcel.url.clone()),
        "cost": sale.price().to_number(),
        "costs": locked.lines(),
        "product_title": sale.title,
        "quantity": sale.quantity,
        "labels": sale.labels,
    });
    Output::new(result, Source::embedded("goods"))
}
