//! Offers of a product: what is paid, and whether it can be ordered.

use super::items::{Items, MAX_VALUES, Value};
use super::schema::{Context, GTINS, OFFERS};
use crate::fields::{
    MAX_ID_CHARS, MAX_TITLE_CHARS, MAX_WORD_CHARS, address, gtin, in_stock, paid_and_listed, some_line,
};
use crate::{MAX_VARIANTS, Price, price};

/// Prices crossed out, in `priceType`.
const REGULAR: [&str; 5] = ["listprice", "strikethroughprice", "srp", "msrp", "regularprice"];
/// Deepest nesting of offers.
const MAX_DEPTH: usize = 3;

#[derive(Clone, Debug, Default)]
pub(super) struct Offer {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) price: Option<Price>,
    pub(super) list_price: Option<Price>,
    pub(super) in_stock: Option<bool>,
    pub(super) url: Option<String>,
    pub(super) seller: Option<String>,
}

/// Offers that name what they offer, rather than being named by it: product and offer, sorted.
pub(super) fn by_product(items: &Items) -> Vec<(usize, usize)> {
    let offers = items.iter().map(|(offer, _)| offer);
    let mut pairs: Vec<_> = offers
        .flat_map(|offer| items.held(offer, &["itemoffered"]).map(move |product| (product, offer)))
        .filter(|(product, offer)| !items.held(*product, &OFFERS).any(|known| known == *offer))
        .collect();
    pairs.sort_unstable();
    pairs
}

/// The offers of a product, those within an aggregate one by one.
pub(super) fn offers(context: &Context, item: usize) -> Vec<Offer> {
    let mut found = Vec::new();
    collect(context, item, None, MAX_DEPTH, &mut found);
    let from = context.by_product.partition_point(|(product, _)| *product < item);
    let others = context.by_product[from..].iter().take_while(|(product, _)| *product == item);
    let others = others.take(MAX_VARIANTS).take_while(|_| context.spend());
    found.extend(others.map(|(_, other)| offer(context, *other, None)));
    found
}

fn collect(context: &Context, item: usize, currency: Option<&str>, depth: usize, found: &mut Vec<Offer>) {
    let items = context.items;
    for held in items.held(item, &OFFERS).take(MAX_VARIANTS) {
        if found.len() >= MAX_VARIANTS || held == item || !context.spend() {
            return;
        }
        let own = items.text(held, &["pricecurrency", "currency"]).or(currency);
        let before = found.len();
        if depth > 1 {
            collect(context, held, own, depth - 1, found);
        }
        if found[before..].iter().all(|offer| offer.price.is_none()) {
            found.truncate(before);
            found.push(offer(context, held, own));
        }
    }
}

fn offer(context: &Context, item: usize, currency: Option<&str>) -> Offer {
    let items = context.items;
    let offered = items.held(item, &["itemoffered"]).next();
    let both = [Some(item), offered];
    let words =
        |names: &[&str], most| both.iter().flatten().find_map(|item| some_line(items.text(*item, names)?, most));
    let number = || {
        both.iter()
            .flatten()
            .find_map(|item| items.values(*item, &GTINS).take(MAX_VALUES).find_map(|value| gtin(items.text_of(value)?)))
    };
    let (price, list_price) = price_of(context, item, currency);
    Offer {
        id: words(&["sku"], MAX_ID_CHARS).or_else(number).or_else(|| words(&["mpn"], MAX_ID_CHARS)).unwrap_or_default(),
        title: words(&["name"], MAX_TITLE_CHARS).unwrap_or_default(),
        price,
        list_price,
        in_stock: items.text(item, &["availability"]).and_then(in_stock),
        url: items.text(item, &["url"]).and_then(|text| address(text, Some(context.url))),
        seller: items.text(item, &["seller", "offeredby"]).and_then(|text| some_line(text, MAX_WORD_CHARS)),
    }
}

/// What is paid for an offer, and its regular price.
pub(super) fn price_of(context: &Context, item: usize, currency: Option<&str>) -> (Option<Price>, Option<Price>) {
    let items = context.items;
    let own = items.text(item, &["pricecurrency", "currency"]).or(currency).or(context.currency);
    let amount = |item: usize, names: &[&str], currency: Option<&str>| {
        items.values(item, names).take(MAX_VALUES).find_map(|value| amount(items, value, currency))
    };
    let mut paid = None;
    let mut regular = None;
    for held in items.held(item, &["pricespecification"]).take(MAX_VALUES) {
        let currency = items.text(held, &["pricecurrency", "currency"]).or(own);
        let Some(price) = amount(held, &["price", "minprice"], currency) else { continue };
        let is_regular = items.text(held, &["pricetype"]).is_some_and(is_regular);
        // The price of a litre or of a month's rate is not that of the product.
        let is_other = items.is(held, &["deliverychargespecification", "paymentchargespecification"]);
        let is_unit = items.values(held, &["referencequantity"]).next().is_some();
        match (is_regular, is_other || is_unit) {
            (true, _) => regular = regular.or(Some(price)),
            (false, false) => paid = paid.or(Some(price)),
            (false, true) => {}
        }
    }
    let said = amount(item, &["price", "lowprice"], own);
    paid_and_listed(said.or(paid), regular)
}

fn is_regular(kind: &str) -> bool {
    let kind = kind.rsplit(['/', '#', ':']).next().unwrap_or_default().to_ascii_lowercase();
    REGULAR.contains(&kind.as_str())
}

fn amount(items: &Items, value: &Value, currency: Option<&str>) -> Option<Price> {
    match value {
        Value::Data(text) => price::of_data(text, currency),
        Value::Shown(text) => price::read(text, currency),
        Value::Item(item) => {
            let currency = items.text(*item, &["pricecurrency", "currency"]).or(currency);
            price::of_data(items.text(*item, &["price", "value", "amount"])?, currency)
        }
    }
}

/// The lowest price of those in stock, or of all if none is; and whether any is in stock. `None` without offers.
pub(super) fn best<'a>(
    offers: impl Iterator<Item = (Option<&'a Price>, Option<bool>)>,
) -> Option<(Option<Price>, Option<bool>)> {
    let all: Vec<_> = offers.collect();
    let in_stock = match all.iter().any(|(_, in_stock)| *in_stock == Some(true)) {
        true => Some(true),
        false => all.iter().find_map(|(_, in_stock)| *in_stock),
    };
    let first = all.iter().find_map(|(price, _)| *price);
    let lowest = |of: &dyn Fn(Option<bool>) -> bool| {
        let prices = all.iter().filter(|(_, in_stock)| of(*in_stock)).filter_map(|(price, _)| *price);
        let comparable = prices.filter(|price| first.is_some_and(|first| first.currency == price.currency));
        comparable.min_by_key(|price| price.amount).cloned()
    };
    let price = lowest(&|in_stock| in_stock != Some(false)).or_else(|| lowest(&|_| true));
    (!all.is_empty()).then_some((price, in_stock))
}
