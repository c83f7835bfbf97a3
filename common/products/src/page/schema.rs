//! Products from items of schema.org's vocabulary.

use std::cell::Cell;

use url::Url;

use super::items::{Items, MAX_VALUES, Syntax, Value};
use super::offers::{Offer, best, offers, price_of};
use crate::fields::{
    MAX_DESCRIPTION_CHARS, MAX_ID_CHARS, MAX_TITLE_CHARS, MAX_WORD_CHARS, address, count, gtin, in_stock,
    paid_and_listed, plain, rating, some_line,
};
use crate::{MAX_VARIANTS, Product, Variant};

/// Types of things for sale.
const PRODUCTS: [&str; 11] = [
    "product",
    "productgroup",
    "productmodel",
    "individualproduct",
    "someproducts",
    "dietarysupplement",
    "vehicle",
    "car",
    "motorcycle",
    "busorcoach",
    "motorizedbicycle",
];
/// Types of things that are for sale if they have an offer.
const OFFERED: [&str; 12] = [
    "book",
    "audiobook",
    "movie",
    "musicalbum",
    "musicrecording",
    "videogame",
    "softwareapplication",
    "mobileapplication",
    "webapplication",
    "course",
    "drug",
    "creativework",
];
pub(super) const OFFERS: [&str; 3] = ["offers", "offerdetails", "offer"];
pub(super) const GTINS: [&str; 8] = ["gtin", "gtin13", "gtin14", "gtin12", "gtin8", "isbn", "ean", "upc"];
/// Properties that hold other products than the one of the page.
const OTHERS: [&str; 7] = [
    "isrelatedto",
    "issimilarto",
    "isaccessoryorsparepartfor",
    "isconsumablefor",
    "related_products",
    "itemlistelement",
    "item",
];

/// A product and where it was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) product: Product,
    pub(super) syntax: Syntax,
    /// The page gives an address for it, rather than being its address.
    pub(super) has_url: bool,
    /// It is in a list or beside another product.
    pub(super) is_aside: bool,
}

/// What is the same for all products of a page.
pub(super) struct Context<'a> {
    pub(super) items: &'a Items,
    pub(super) url: &'a Url,
    pub(super) currency: Option<&'a str>,
    /// See [`super::offers::by_product`].
    pub(super) by_product: Vec<(usize, usize)>,
    /// How many offers and variants are still read. Items may be shared, so there may be more than the page has items.
    pub(super) left: Cell<usize>,
}

/// Most offers and variants read of a page.
pub(super) const MAX_READ: usize = 4_000;

impl Context<'_> {
    /// Takes one of [`Self::left`], if there is one.
    pub(super) fn spend(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }
}

/// All products, in the order of the page; variants only within their group.
pub(super) fn products(context: &Context, most: usize) -> Vec<Found> {
    let items = context.items;
    let groups = Groups::of(items);
    let is_wanted = |item: usize| {
        let has_offer = || {
            let is_offered = context.by_product.binary_search_by_key(&item, |(product, _)| *product).is_ok();
            is_offered || items.values(item, &OFFERS).next().is_some()
        };
        let is_product = items.is(item, &PRODUCTS) || items.is(item, &OFFERED) && has_offer();
        let is_offer =
            items.is(item, &["offer", "demand"]) && items.get(item).is_some_and(|item| item.held_by.is_none());
        (is_product || is_offer) && !groups.hides(item)
    };
    let wanted = items.iter().map(|(number, _)| number).filter(|number| is_wanted(*number));
    wanted.take(most).filter_map(|number| found(context, number, groups.variants(number))).collect()
}

/// The variants of product groups.
struct Groups {
    /// Group and variant, by group.
    pairs: Vec<(usize, usize)>,
    /// Groups that are only named by their variants.
    named: Vec<usize>,
    /// Sorted.
    variants: Vec<usize>,
}

impl Groups {
    fn of(items: &Items) -> Self {
        let mut pairs = Vec::new();
        let mut named = Vec::new();
        for (number, item) in items.iter() {
            pairs.extend(items.held(number, &["hasvariant"]).map(|variant| (number, variant)));
            for group in items.held(number, &["isvariantof"]) {
                match items.get(group).is_some_and(|group| group.held_by.as_deref() == Some("isvariantof"))
                    && item.id.is_empty()
                {
                    true => named.push(group),
                    false => pairs.push((group, number)),
                }
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        pairs.retain(|(group, variant)| group != variant && items.is(*group, &PRODUCTS));
        let mut variants: Vec<usize> = pairs.iter().map(|(_, variant)| *variant).collect();
        variants.sort_unstable();
        named.sort_unstable();
        Self { pairs, named, variants }
    }

    fn variants(&self, group: usize) -> impl Iterator<Item = usize> {
        let from = self.pairs.partition_point(|(other, _)| *other < group);
        self.pairs[from..].iter().take_while(move |(other, _)| *other == group).map(|(_, variant)| *variant)
    }

    fn hides(&self, item: usize) -> bool {
        let is_variant = self.variants.binary_search(&item).is_ok();
        let is_group = self.variants(item).next().is_some();
        (is_variant || self.named.binary_search(&item).is_ok()) && !is_group
    }
}

fn found(context: &Context, item: usize, variants: impl Iterator<Item = usize>) -> Option<Found> {
    let items = context.items;
    let mut product = one(context, item);
    for variant in product.variants.iter_mut().filter(|variant| variant.title.is_empty()) {
        variant.title.clone_from(&product.title);
    }
    let variants = variants.take(MAX_VARIANTS).take_while(|_| context.spend());
    let variants: Vec<Product> = variants.map(|variant| one(context, variant)).collect();
    if let Some((price, in_stock)) = best(variants.iter().map(|one| (one.price.as_ref(), one.in_stock))) {
        product.variants = variants.iter().map(|variant| as_variant(variant, &product)).collect();
        product.list_price = variants.iter().find(|one| one.price == price).and_then(|one| one.list_price.clone());
        product.price = price;
        product.in_stock = in_stock;
    }
    for variant in variants {
        fill(&mut product, variant);
    }
    let is_nameless = product.title.is_empty();
    let is_unpriced = product.price.is_none();
    if is_nameless && (is_unpriced || items.is(item, &["offer"])) || is_unpriced && items.is(item, &OFFERED) {
        return None;
    }
    let held_by = items.get(item)?.held_by.as_deref();
    let is_aside = held_by.is_some_and(|name| OTHERS.contains(&name));
    let has_url = !product.url.is_empty();
    Some(Found { product, syntax: items.get(item)?.syntax, has_url, is_aside })
}

/// Takes from a variant what the product does not say itself.
fn fill(product: &mut Product, variant: Product) {
    let missing = |known: &Option<String>, other: Option<String>| known.clone().or(other);
    product.image_url = missing(&product.image_url, variant.image_url);
    product.description = missing(&product.description, variant.description);
    product.vendor = missing(&product.vendor, variant.vendor);
    product.category = missing(&product.category, variant.category);
    if product.title.is_empty() {
        product.title = variant.title;
    }
}

fn as_variant(variant: &Product, group: &Product) -> Variant {
    let title = if variant.title.is_empty() { &group.title } else { &variant.title };
    Variant {
        id: variant.id.clone(),
        title: title.clone(),
        price: variant.price.clone(),
        in_stock: variant.in_stock,
        url: Some(variant.url.clone()).filter(|url| !url.is_empty()),
    }
}

/// One product without the variants of its group. Its address is empty if it has none of its own.
fn one(context: &Context, item: usize) -> Product {
    let items = context.items;
    let offers = all_offers(context, item);
    let words = |names: &[&str], most| items.text(item, names).and_then(|text| some_line(text, most));
    let web = |text: &str| address(text, Some(context.url));
    let number = |names: &[&str]| words(names, MAX_ID_CHARS).map(|id| id.trim_start_matches("sku:").to_owned());
    let gtin = items.values(item, &GTINS).take(MAX_VALUES).find_map(|value| gtin(items.text_of(value)?));
    let alone = if let [offer] = &offers[..] { Some(offer) } else { None };
    let id = number(&["sku", "productid", "productgroupid"])
        .or_else(|| alone.map(|offer| offer.id.clone()).filter(|id| !id.is_empty()))
        .or_else(|| gtin.clone())
        .or_else(|| number(&["mpn", "identifier", "model"]));
    let seller = || offers.iter().find_map(|offer| offer.seller.clone());
    let vendor = words(&["brand", "manufacturer"], MAX_WORD_CHARS).or_else(seller);
    let (price, stock) = best(offers.iter().map(|offer| (offer.price.as_ref(), offer.in_stock))).unwrap_or_default();
    let listed = offers.iter().find(|offer| offer.price == price).and_then(|offer| offer.list_price.clone());
    let (price, list_price) = paid_and_listed(price, listed);
    let own_url = items.text(item, &["url"]).and_then(web);
    let category = words(&["category"], MAX_WORD_CHARS).filter(|text| !text.contains("://"));
    Product {
        id: id.unwrap_or_default(),
        url: own_url.or_else(|| alone.and_then(|offer| offer.url.clone())).unwrap_or_default(),
        title: items.text(item, &["name", "title"]).and_then(|text| plain(text, MAX_TITLE_CHARS)).unwrap_or_default(),
        price,
        list_price,
        image_url: image(context, item),
        vendor,
        rating: rating_of(items, item),
        review_count: reviews(items, item),
        in_stock: stock.or_else(|| items.text(item, &["availability"]).and_then(in_stock)),
        description: items.text(item, &["description"]).and_then(|text| plain(text, MAX_DESCRIPTION_CHARS)),
        gtin,
        category,
        group: items
            .held(item, &["isvariantof"])
            .find_map(|group| items.text(group, &["productgroupid"]).and_then(|text| some_line(text, MAX_ID_CHARS))),
        variants: variants_of(&offers),
    }
}

/// The offers of a product. A product that has none may say its price itself.
fn all_offers(context: &Context, item: usize) -> Vec<Offer> {
    let mut found = offers(context, item);
    if found.is_empty() && !context.items.is(item, &["productgroup"]) {
        let (price, list_price) = price_of(context, item, None);
        if price.is_some() {
            found.push(Offer { price, list_price, ..Offer::default() });
        }
    }
    found
}

/// Offers that differ in more than the price are variants.
fn variants_of(offers: &[Offer]) -> Vec<Variant> {
    if offers.len() < 2 {
        return Vec::new();
    }
    let names = offers.iter().filter(|offer| !offer.id.is_empty() || !offer.title.is_empty() || offer.url.is_some());
    let as_variant = |offer: &Offer| Variant {
        id: offer.id.clone(),
        title: Some(&offer.title)
            .filter(|title| !title.is_empty())
            .or(offer.seller.as_ref())
            .cloned()
            .unwrap_or_default(),
        price: offer.price.clone(),
        in_stock: offer.in_stock,
        url: offer.url.clone(),
    };
    names.take(MAX_VARIANTS).map(as_variant).collect()
}

fn image(context: &Context, item: usize) -> Option<String> {
    let items = context.items;
    let names = ["image", "photo", "thumbnailurl"];
    items.values(item, &names).take(MAX_VALUES).find_map(|value| {
        let held = match value {
            Value::Item(image) => items.text(*image, &["contenturl", "url", "thumbnailurl"]),
            _ => None,
        };
        held.or_else(|| items.text_of(value)).and_then(|text| address(text, Some(context.url)))
    })
}

fn rating_of(items: &Items, item: usize) -> Option<f64> {
    items.held(item, &["aggregaterating", "review-aggregate", "review"]).take(4).find_map(|held| {
        let value = items.text(held, &["ratingvalue", "rating"])?;
        rating(value, items.text(held, &["bestrating", "best"]))
    })
}

fn reviews(items: &Items, item: usize) -> Option<u64> {
    let names = ["reviewcount", "ratingcount", "count", "votes"];
    items
        .held(item, &["aggregaterating", "review-aggregate", "review"])
        .take(4)
        .find_map(|held| count(items.text(held, &names)?))
}
