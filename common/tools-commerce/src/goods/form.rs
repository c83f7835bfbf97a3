//! Bodies of sellers' requests.

use std::collections::BTreeMap;

use base::clock::Timestamp;
use base::input::{self, Field, FieldError, Kind};
use base::money::Usdc;
use base::untrusted_text;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Map, Value};
use url::Url;

use super::good::{Good, MOST_VARIANTS, Seller, Shipping, Tax, Variant, new_id};
use super::sale::Parcel;
use crate::address;

/// As the most that any purchase may cost.
const MOST: Usdc = Usdc::from_micro(5_000_000_000);
const AMOUNT: Kind = Kind::Amount { min: Usdc::ZERO, max: MOST };
const STOCK: Kind = Kind::Integer { min: 0, max: 1_000_000 };
const MOST_LABELS: usize = 5;
const MOST_LABEL_CHARS: usize = 50;
/// In parts per million.
const MOST_TAX: u32 = 250_000;

/// An object whose names are the caller's.
const fn table() -> Kind {
    Kind::Object { fields: &[], open: true }
}

const fn text(min: usize, max: usize) -> Kind {
    Kind::Text { min, max, format: None }
}

const VARIANT: &[Field] = &[
    Field::optional("variant_id", text(1, 10), "Of a variant that there is; without it, a new one"),
    Field::optional("labels", table(), "Such as {\"Size\": \"10\"}"),
    Field::required("price", AMOUNT, "In USD, with at most two decimals"),
    Field::optional("stock", STOCK, "How many can be sold from now on. Default: as it is, of a new one 0"),
];

const SHIPPING: &[Field] = &[
    Field::optional("default", AMOUNT, "What an order costs to send; without it, only to the states that are named"),
    Field::optional("states", table(), "Amounts by state, such as {\"AK\": \"14.00\"}"),
    Field::optional("free_from", AMOUNT, "Orders of this subtotal or more are sent for nothing"),
];

const PERCENT: Kind = Kind::Number(input::Range { above: None, min: Some(0.0), max: Some(25.0) });

const TAX: &[Field] = &[
    Field::optional("default", PERCENT, "Per cent, with at most four decimals. Default: 0"),
    Field::optional("states", table(), "Per cent by state, such as {\"CA\": 8.25}"),
    Field::optional("on_shipping", Kind::Bool, "Shipping is taxed, too"),
];

const VARIANT_KIND: Kind = Kind::Object { fields: VARIANT, open: false };
const IMAGE: Kind = text(1, 2048);

/// Body of `POST /v1/soul/me/goods` and of `PATCH /v1/soul/me/goods/{id}`, in which every member may be left out.
pub static GOOD: &[Field] = &[
    Field::optional("title", text(1, 150), "Required for a new good"),
    Field::optional("description", text(0, 5_000), "Plain text"),
    Field::optional("price", AMOUNT, "Of a good without variants: in USD, with at most two decimals"),
    Field::optional("stock", STOCK, "Of a good without variants: how many can be sold from now on"),
    Field::optional("variants", Kind::List { of: &VARIANT_KIND, max: MOST_VARIANTS }, "All of them"),
    Field::optional("images", Kind::List { of: &IMAGE, max: 10 }, "Addresses, https only"),
    Field::optional("shipping", Kind::Object { fields: SHIPPING, open: false }, "Default: free, everywhere in the US"),
    Field::optional("tax", Kind::Object { fields: TAX, open: false }, "Sales tax that is added. Default: none"),
    Field::optional("handling_days", Kind::Integer { min: 1, max: 14 }, "Days until it is sent. Default: 3"),
    Field::optional(
        "return_days",
        Kind::Integer { min: 0, max: 60 },
        "Days after delivery to send it back. Default: 30",
    ),
    Field::optional("status", Kind::Choice(&["listed", "unlisted"]), "Default: listed"),
];

/// Body of `POST /v1/soul/me/orders/{id}/ship`.
pub static SHIP: &[Field] = &[
    Field::required("carrier", text(1, 60), "Such as UPS"),
    Field::optional("tracking_number", text(1, 100), "The carrier's number"),
    Field::optional("tracking_url", text(1, 500), "Where the buyer sees the parcel; https"),
];

/// Body of `POST /v1/soul/me/orders/{id}/cancel`.
pub static CANCEL: &[Field] = &[Field::required("reason", text(1, 300), "Why; the buyer reads it")];

/// What a body asks for: the good, and the stock of variants that it sets.
pub struct Asked {
    pub good: Good,
    pub stock: BTreeMap<u32, u32>,
}

/// A good that was not changed by anything yet.
fn blank(seller: Seller, now: Timestamp) -> Good {
    Good {
        id: new_id(),
        seller,
        title: String::new(),
        description: String::new(),
        variants: Vec::new(),
        images: Vec::new(),
        shipping: Shipping { default: Some(Usdc::ZERO), ..Shipping::default() },
        tax: Tax::default(),
        handling_days: 3,
        return_days: 30,
        listed: true,
        created: now,
        updated: now,
        revision: 0,
        next_variant: 1,
    }
}

/// Reads a new good.
///
/// # Errors
/// What is wrong, by member.
pub fn create(seller: Seller, body: &Map<String, Value>, now: Timestamp) -> Result<Asked, Vec<FieldError>> {
    read(blank(seller, now), body, now)
}

/// Reads a change of a good. What the body does not name stays.
///
/// # Errors
/// What is wrong, by member.
pub fn change(good: &Good, body: &Map<String, Value>, now: Timestamp) -> Result<Asked, Vec<FieldError>> {
    read(Good { updated: now, revision: good.revision + 1, ..good.clone() }, body, now)
}

fn read(good: Good, body: &Map<String, Value>, now: Timestamp) -> Result<Asked, Vec<FieldError>> {
    let fields = input::validate_all(GOOD, &[], body)?;
    let mut reader = Reader { asked: Asked { good, stock: BTreeMap::new() }, wrong: Vec::new() };
    reader.words(&fields);
    reader.numbers(&fields);
    match (
        fields.get("variants").and_then(Value::as_array),
        fields.contains_key("price") || fields.contains_key("stock"),
    ) {
        (Some(_), true) => reader.refuse("variants", "have prices and stocks of their own: leave out price and stock"),
        (Some(variants), false) => reader.variants(variants),
        (None, _) => reader.only_variant(&fields),
    }
    reader.asked.good.updated = now;
    if reader.wrong.is_empty() { Ok(reader.asked) } else { Err(reader.wrong) }
}

struct Reader {
    asked: Asked,
    wrong: Vec<FieldError>,
}

impl Reader {
    fn refuse(&mut self, path: &str, why: &str) {
        self.wrong.push(FieldError::new(path, why));
    }

    fn words(&mut self, fields: &Map<String, Value>) {
        let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::trim);
        if let Some(title) = text("title") {
            if address::has_hidden(title) || !title.chars().any(char::is_alphanumeric) {
                self.refuse("title", "must have letters, and no invisible ones");
            }
            self.asked.good.title = title.to_owned();
        }
        if self.asked.good.title.is_empty() && self.wrong.is_empty() {
            self.refuse("title", "is required");
        }
        if let Some(description) = text("description") {
            if untrusted_text::hides_something(description, true) {
                self.refuse("description", "must have no invisible letters");
            }
            self.asked.good.description = description.to_owned();
        }
        if let Some(images) = fields.get("images").and_then(Value::as_array) {
            let images: Vec<String> = images.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            for (index, _) in images.iter().enumerate().filter(|(_, image)| !is_https(image)) {
                self.refuse(&format!("images[{index}]"), "must be an https address");
            }
            self.asked.good.images = images;
        }
        if let Some(status) = text("status") {
            self.asked.good.listed = status == "listed";
        }
    }

    fn numbers(&mut self, fields: &Map<String, Value>) {
        let days = |name: &str| fields.get(name).and_then(Value::as_u64).and_then(|days| u8::try_from(days).ok());
        self.asked.good.handling_days = days("handling_days").unwrap_or(self.asked.good.handling_days);
        self.asked.good.return_days = days("return_days").unwrap_or(self.asked.good.return_days);
        if let Some(shipping) = fields.get("shipping") {
            self.asked.good.shipping = Shipping {
                default: self.amount(shipping.get("default"), "shipping.default"),
                states: self.states(&shipping["states"], "shipping.states", Reader::amount),
                free_from: self.amount(shipping.get("free_from"), "shipping.free_from"),
            };
        }
        if let Some(tax) = fields.get("tax") {
            self.asked.good.tax = Tax {
                default: self.rate(tax.get("default"), "tax.default").unwrap_or_default(),
                states: self.states(&tax["states"], "tax.states", Reader::rate),
                on_shipping: tax["on_shipping"].as_bool().unwrap_or_default(),
            };
        }
    }

    /// Whole cents, as text or as a number.
    fn amount(&mut self, value: Option<&Value>, path: &str) -> Option<Usdc> {
        let text = said(value?);
        let amount = Usdc::parse(&text).ok().filter(|amount| amount.micro() % 10_000 == 0 && *amount <= MOST);
        if amount.is_none() {
            self.refuse(path, "must be an amount in USD with at most two decimals");
        }
        amount
    }

    /// Per cent as parts per million.
    fn rate(&mut self, value: Option<&Value>, path: &str) -> Option<u32> {
        let percent = Decimal::from_str_exact(&said(value?)).ok();
        let rate = percent.and_then(|percent| percent.checked_mul(Decimal::from(10_000)));
        let rate = rate.filter(|rate| rate.fract().is_zero()).and_then(|rate| rate.to_u32());
        let rate = rate.filter(|rate| *rate <= MOST_TAX);
        if rate.is_none() {
            self.refuse(path, "must be per cent from 0 to 25, with at most four decimals");
        }
        rate
    }

    fn states<T>(
        &mut self,
        table: &Value,
        path: &str,
        of: fn(&mut Reader, Option<&Value>, &str) -> Option<T>,
    ) -> BTreeMap<String, T> {
        let mut states = BTreeMap::new();
        for (name, value) in table.as_object().into_iter().flatten() {
            let Some(state) = address::state_code(name) else {
                self.refuse(path, "must be named by states of the United States, such as CA");
                break;
            };
            if let Some(value) = of(self, Some(value), &format!("{path}.{state}")) {
                states.insert(state.to_owned(), value);
            }
        }
        states
    }

    /// A good in one form.
    fn only_variant(&mut self, fields: &Map<String, Value>) {
        let price = self.amount(fields.get("price"), "price");
        let stock = fields.get("stock").and_then(Value::as_u64).and_then(|stock| u32::try_from(stock).ok());
        let good = &mut self.asked.good;
        match (&mut good.variants[..], price) {
            ([], None) if self.wrong.is_empty() => self.refuse("price", "is required, or variants"),
            ([], None) => {}
            ([], Some(price)) => {
                good.variants.push(Variant { id: 1, labels: BTreeMap::new(), price });
                good.next_variant = 2;
                self.asked.stock.insert(1, stock.unwrap_or_default());
            }
            ([variant], price) if variant.labels.is_empty() => {
                variant.price = price.unwrap_or(variant.price);
                let id = variant.id;
                self.asked.stock.extend(stock.map(|stock| (id, stock)));
            }
            (_, None) if stock.is_none() => {}
            _ => self.refuse("price", "this good has variants: send variants"),
        }
    }

    fn variants(&mut self, asked: &[Value]) {
        if asked.is_empty() {
            return self.refuse("variants", "must have at least one");
        }
        let known: Vec<u32> = self.asked.good.variants.iter().map(|variant| variant.id).collect();
        let mut variants: Vec<Variant> = Vec::new();
        for (index, value) in asked.iter().enumerate() {
            let path = |member: &str| format!("variants[{index}].{member}");
            let price = self.amount(value.get("price"), &path("price")).unwrap_or_default();
            let labels = self.labels(&value["labels"], &path("labels"));
            let id = match value["variant_id"].as_str() {
                None => self.asked.good.next_variant,
                Some(text) => match text.parse().ok().filter(|id| known.contains(id)) {
                    Some(id) => id,
                    None => return self.refuse(&path("variant_id"), "is no variant of this good"),
                },
            };
            let is_new = !known.contains(&id);
            if is_new {
                self.asked.good.next_variant += 1;
            }
            if variants.iter().any(|other| other.id == id || other.labels == labels) {
                return self.refuse(&format!("variants[{index}]"), "is there twice");
            }
            let stock = value["stock"].as_u64().and_then(|stock| u32::try_from(stock).ok());
            if let Some(stock) = stock.or(is_new.then_some(0)) {
                self.asked.stock.insert(id, stock);
            }
            variants.push(Variant { id, labels, price });
        }
        self.asked.good.variants = variants;
    }

    fn labels(&mut self, table: &Value, path: &str) -> BTreeMap<String, String> {
        let table = table.as_object().cloned().unwrap_or_default();
        let is_label = |text: &str| {
            (1..=MOST_LABEL_CHARS).contains(&text.chars().count())
                && !address::has_hidden(text)
                && !text.contains(['=', ';'])
        };
        let is_right = table.len() <= MOST_LABELS
            && table
                .iter()
                .all(|(name, value)| is_label(name.trim()) && value.as_str().is_some_and(|text| is_label(text.trim())));
        if !is_right {
            self.refuse(path, "must be at most 5 names and texts of 1 to 50 letters, without = and ;");
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
        table.iter().take(MOST_LABELS).map(|(name, value)| (name.trim().to_owned(), text(value))).collect()
    }
}

/// The digits of a number or a text.
fn said(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned())
}

fn is_https(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    is_plain && Url::parse(text).is_ok_and(|url| url.scheme() == "https" && url.has_host() && url.username().is_empty())
}

/// Reads how a parcel travels.
///
/// # Errors
/// What is wrong, by member.
pub fn parcel(body: &Map<String, Value>) -> Result<Parcel, Vec<FieldError>> {
    let fields = input::validate_all(SHIP, &[], body)?;
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(|text| text.trim().to_owned());
    let parcel = Parcel {
        carrier: text("carrier").unwrap_or_default(),
        number: text("tracking_number"),
        url: text("tracking_url"),
    };
    let hides = |text: &String| text.is_empty() || address::has_hidden(text);
    let mut wrong = Vec::new();
    if hides(&parcel.carrier) {
        wrong.push(FieldError::new("carrier", "must have letters, and no invisible ones"));
    }
    if parcel.number.as_ref().is_some_and(hides) {
        wrong.push(FieldError::new("tracking_number", "must have letters, and no invisible ones"));
    }
    if parcel.url.as_ref().is_some_and(|url| !is_https(url)) {
        wrong.push(FieldError::new("tracking_url", "must be an https address"));
    }
    if wrong.is_empty() { Ok(parcel) } else { Err(wrong) }
}

/// Reads why an order is cancelled.
///
/// # Errors
/// What is wrong, by member.
pub fn reason(body: &Map<String, Value>) -> Result<String, Vec<FieldError>> {
    let fields = input::validate_all(CANCEL, &[], body)?;
    let reason = untrusted_text::visible(fields.get("reason").and_then(Value::as_str).unwrap_or_default());
    match reason.trim() {
        "" => Err(vec![FieldError::new("reason", "must have letters")]),
        reason => Ok(reason.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seller() -> Seller {
        Seller { slug: "lamp-shop".to_owned(), id: "1".to_owned() }
    }

    fn read(body: &Value) -> Result<Asked, Vec<FieldError>> {
        create(seller(), body.as_object().unwrap(), Timestamp::from_secs(1))
    }

    #[test]
    fn a_good_is_created_and_changed_by_member() {
        let asked = read(&json!({"title": "Lamp", "price": "19.90", "stock": 5,
            "shipping": {"default": 4.99, "states": {"alaska": "14"}}, "tax": {"states": {"CA": 8.25}}}));
        let asked = asked.unwrap_or_else(|wrong| panic!("{wrong:?}"));
        assert_eq!((asked.good.variants[0].price.micro(), asked.stock[&1]), (19_900_000, 5));
        assert_eq!((asked.good.shipping.states["AK"].micro(), asked.good.tax.states["CA"]), (14_000_000, 82_500));
        let patch = json!({"price": 20, "status": "unlisted"});
        let next = change(&asked.good, patch.as_object().unwrap(), Timestamp::from_secs(2)).ok().unwrap();
        assert_eq!((next.good.variants[0].price.micro(), next.good.listed, next.good.revision), (20_000_000, false, 1));
        assert!(next.stock.is_empty(), "the stock stays");

        let sizes = json!({"variants": [{"labels": {"Size": "10"}, "price": "5", "stock": 1}, {"labels": {"Size": "11"}, "price": "6"}]});
        let next = change(&next.good, sizes.as_object().unwrap(), Timestamp::from_secs(3)).ok().unwrap();
        let ids: Vec<u32> = next.good.variants.iter().map(|variant| variant.id).collect();
        assert_eq!((ids, next.stock), (vec![2, 3], BTreeMap::from([(2, 1), (3, 0)])), "numbers are not used again");
    }

    #[test]
    fn what_cannot_be_sold_is_refused_by_member() {
        for (body, path) in [
            (json!({"price": "1"}), "title"),
            (json!({"title": "Lamp"}), "price"),
            (json!({"title": "Lamp", "price": "1.999"}), "price"),
            (json!({"title": "Lamp", "price": "5001"}), "price"),
            (json!({"title": "La\u{202e}mp", "price": "1"}), "title"),
            (json!({"title": "Lamp", "price": "1", "prize": 2}), "prize"),
            (json!({"title": "Lamp", "price": "1", "variants": [{"price": "1"}]}), "variants"),
            (json!({"title": "Lamp", "variants": []}), "variants"),
            (json!({"title": "Lamp", "variants": [{"price": "1"}, {"price": "2"}]}), "variants[1]"),
            (json!({"title": "Lamp", "variants": [{"price": "1", "variant_id": "7"}]}), "variants[0].variant_id"),
            (json!({"title": "Lamp", "variants": [{"price": "1", "labels": {"A": 1}}]}), "variants[0].labels"),
            (json!({"title": "Lamp", "price": "1", "images": ["http://a.example/1.png"]}), "images[0]"),
            (json!({"title": "Lamp", "price": "1", "shipping": {"states": {"Ontario": "1"}}}), "shipping.states"),
            (json!({"title": "Lamp", "price": "1", "tax": {"states": {"CA": 26}}}), "tax.states.CA"),
            (json!({"title": "Lamp", "price": "1", "tax": {"states": {"CA": 1.23456}}}), "tax.states.CA"),
            (json!({"title": "Lamp", "price": "1", "handling_days": 15}), "handling_days"),
        ] {
            let wrong = read(&body).err().unwrap_or_else(|| panic!("{body}"));
            assert_eq!(wrong[0].path, path, "{body}: {wrong:?}");
        }
    }
}
