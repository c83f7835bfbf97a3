//! Reading sellers' request bodies. Every wrong member is reported.

use base::input::{self, FieldError};
use base::money::Usdc;
use base::untrusted_text::{HIDES, hides_something};
use evm::Address;
use platform::net::{FetchPolicy, check_url};
use serde_json::{Map, Value};
use tools::safety::names::likeness;
use url::Url;

use super::soul::{RESERVED, Slug};
use schema::under;

const MIN_TEXT_BYTES: usize = 10;
/// Largest soul.md: 50 KB.
pub const MAX_TEXT_BYTES: usize = 50 * 1024;
const MAX_URL_CHARS: usize = 2048;
/// Lowest price of a soul's text that is not free: below it the platform's fee rounds to nothing.
pub const LEAST_FOR_TEXT: Usdc = Usdc::from_micro(10_000);
/// Highest price of a soul's text.
pub const MOST_FOR_TEXT: Usdc = Usdc::from_micro(10_000_000_000);

/// Errors of one member: paths below it, or the member itself (an empty path).
pub type Wrong = Vec<FieldError>;

pub fn wrong<T>(message: impl Into<String>) -> Result<T, Wrong> {
    Err(vec![FieldError::new("", message)])
}

/// Reads the members of one object and collects the errors.
pub struct Reader<'a> {
    body: &'a Map<String, Value>,
    pub errors: Vec<FieldError>,
}

impl<'a> Reader<'a> {
    pub fn new(body: &'a Map<String, Value>) -> Reader<'a> {
        Reader { body, errors: Vec::new() }
    }

    /// Refuses members that are neither in `known` nor in `also` ([`input::only`]).
    pub fn only(&mut self, known: &[&str], also: &[&str]) {
        self.errors.extend(input::only(known, also, self.body, ""));
    }

    /// An optional member. `null` counts as a value and is usually an error.
    pub fn given<T>(&mut self, name: &str, parse: impl FnOnce(&Value) -> Result<T, Wrong>) -> Option<T> {
        match parse(self.body.get(name)?) {
            Ok(value) => Some(value),
            Err(wrong) => {
                self.errors.extend(under(name, wrong));
                None
            }
        }
    }

    /// An optional member that `null` removes.
    pub fn nullable<T>(&mut self, name: &str, parse: impl FnOnce(&Value) -> Result<T, Wrong>) -> Option<Option<T>> {
        match self.body.get(name)? {
            Value::Null => Some(None),
            _ => self.given(name, parse).map(Some),
        }
    }

    /// An optional member where `null` means absent.
    pub fn optional<T>(&mut self, name: &str, parse: impl FnOnce(&Value) -> Result<T, Wrong>) -> Option<T> {
        self.nullable(name, parse).flatten()
    }

    /// A required member.
    pub fn required<T>(&mut self, name: &str, parse: impl FnOnce(&Value) -> Result<T, Wrong>) -> Option<T> {
        if !self.body.contains_key(name) {
            self.errors.push(FieldError::new(name, "is required"));
        }
        self.given(name, parse)
    }
}

/// Text of `min` to `max` characters.
pub fn text(min: usize, max: usize) -> impl Fn(&Value) -> Result<String, Wrong> {
    move |value| {
        let Some(text) = value.as_str() else { return wrong("must be a string") };
        let length = text.chars().count();
        if (min..=max).contains(&length) {
            Ok(text.to_owned())
        } else {
            wrong(format!("must have {min} to {max} characters, has {length}"))
        }
    }
}

/// A text shown in prices and lists: no invisible or direction-changing characters, and at least one visible character
/// unless `min` is 0. `lines` allows line breaks and tabs.
pub fn shown(min: usize, max: usize, lines: bool) -> impl Fn(&Value) -> Result<String, Wrong> {
    move |value| {
        let text = text(min, max)(value)?;
        if hides_something(&text, lines) {
            return wrong(HIDES);
        }
        if min > 0 && text.trim().is_empty() {
            return wrong("must contain a visible character");
        }
        Ok(text)
    }
}

/// A number of dollars from `min` to `max`.
pub fn dollars(min: Usdc, max: Usdc) -> impl Fn(&Value) -> Result<Usdc, Wrong> {
    move |value| {
        let bounds = || format!("must be a number from {} to {}", min.to_number(), max.to_number());
        let Value::Number(number) = value else { return wrong(bounds()) };
        match Usdc::parse(&number.to_string()) {
            Ok(amount) if (min..=max).contains(&amount) => Ok(amount),
            Err(error @ base::money::AmountError::TooFine) => wrong(error.to_string()),
            _ => wrong(bounds()),
        }
    }
}

/// The price of a soul's text: 0, which is free, or a usual price.
pub fn text_price(value: &Value) -> Result<Usdc, Wrong> {
    match dollars(Usdc::ZERO, MOST_FOR_TEXT)(value)? {
        price if price > Usdc::ZERO && price < LEAST_FOR_TEXT => {
            wrong(format!("must be 0 (free), or at least {}", LEAST_FOR_TEXT.to_number()))
        }
        price => Ok(price),
    }
}

/// A whole number from `min` to `max`.
pub fn whole(min: u32, max: u32) -> impl Fn(&Value) -> Result<u32, Wrong> {
    move |value| {
        // JSON Schema counts 60.0 as an integer.
        let number = value.as_u64().or_else(|| value.as_f64().filter(|number| number.fract() == 0.0).map(|n| n as u64));
        match number.and_then(|number| u32::try_from(number).ok()) {
            Some(number) if (min..=max).contains(&number) => Ok(number),
            _ => wrong(format!("must be a whole number from {min} to {max}")),
        }
    }
}

pub fn boolean(value: &Value) -> Result<bool, Wrong> {
    value.as_bool().map_or_else(|| wrong("must be true or false"), Ok)
}

pub fn slug(value: &Value) -> Result<Slug, Wrong> {
    let Some(text) = value.as_str() else { return wrong("must be a string") };
    text.parse().or_else(wrong)
}

/// Refuses the name of a soul that could be taken for the operator's, whose name is `service`.
fn own_name(name: &str, service: &str) -> Result<(), Wrong> {
    likeness(name, service).map_or(Ok(()), |likeness| wrong(likeness.message()))
}

/// A soul's display name.
fn soul_name(value: &Value, service: &str) -> Result<String, Wrong> {
    let name = shown(1, MAX_NAME_CHARS, false)(value)?;
    own_name(&name, service)?;
    Ok(name)
}

/// A soul's slug: not reserved, not the operator's, and not in the form of a wallet address.
fn soul_slug(value: &Value, service: &str) -> Result<Slug, Wrong> {
    let slug = slug(value)?;
    own_name(slug.as_str(), service)?;
    if RESERVED.contains(&slug.as_str()) {
        return wrong("is reserved; choose another");
    }
    if slug.as_str().parse::<Address>().is_ok() {
        return wrong("must not look like a wallet's address");
    }
    Ok(slug)
}

/// A soul.md. Its length counts in bytes.
pub fn soul_md(value: &Value) -> Result<String, Wrong> {
    let Some(text) = value.as_str() else { return wrong("must be a string") };
    if (MIN_TEXT_BYTES..=MAX_TEXT_BYTES).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        wrong(format!("must have {MIN_TEXT_BYTES} to {MAX_TEXT_BYTES} bytes, has {}", text.len()))
    }
}

/// The URL of a picture. It is never fetched here, but by whoever looks at the soul. So it must be one that this service
/// would fetch, on any port.
fn avatar(value: &Value) -> Result<String, Wrong> {
    let text = text(1, MAX_URL_CHARS)(value)?;
    let Ok(mut url) = Url::parse(&text) else { return wrong("must be an https URL") };
    // `Err` only for a URL without a host, which is refused below.
    let _ = url.set_port(None);
    match check_url(url.as_str(), &FetchPolicy::default()) {
        Ok(url) if url.scheme() == "https" => Ok(text),
        Ok(_) => wrong("must be an https URL"),
        Err(refused) => wrong(refused.to_string()),
    }
}

const MAX_NAME_CHARS: usize = 255;
const MAX_BIO_CHARS: usize = 1000;

/// The soul's own members of a registration.
pub struct SoulForm {
    pub slug: Slug,
    pub name: String,
    pub bio: Option<String>,
    pub avatar_url: Option<String>,
    pub soul_md: String,
    pub price: Option<Usdc>,
}

impl SoulForm {
    /// `operator`: the service's name.
    pub fn read(body: &Map<String, Value>, operator: &str) -> Result<SoulForm, Vec<FieldError>> {
        let mut reader = Reader::new(body);
        // The first service is read by `service_form`.
        reader.only(&["slug", "name", "bio", "avatar_url", "soul_md", "soul_price", "service"], &[]);
        let name = reader.required("name", |value| soul_name(value, operator));
        let slug = reader.required("slug", |value| soul_slug(value, operator));
        let bio = reader.optional("bio", shown(0, MAX_BIO_CHARS, true));
        let avatar_url = reader.optional("avatar_url", avatar);
        let soul_md = reader.required("soul_md", soul_md);
        let price = reader.optional("soul_price", text_price);
        match (name, slug, soul_md) {
            (Some(name), Some(slug), Some(soul_md)) if reader.errors.is_empty() => {
                Ok(SoulForm { slug, name, bio: bio.filter(|bio| !bio.is_empty()), avatar_url, soul_md, price })
            }
            _ => Err(reader.errors),
        }
    }

    /// The published texts, by member.
    pub fn texts(&self) -> Vec<(&'static str, &str)> {
        let mut texts = vec![("name", self.name.as_str()), ("slug", self.slug.as_str()), ("soul_md", &self.soul_md)];
        texts.extend(self.bio.as_deref().map(|bio| ("bio", bio)));
        texts
    }
}

/// Members of a soul's view that change by themselves or with another route. They are accepted and ignored, so that an
/// answer can be sent back.
pub const OF_ANSWERS: [&str; 5] = ["version", "stats", "reputation", "created_at", "updated_at"];
/// Members of the view that could be meant as a change. They are accepted as they are shown and refused otherwise, so that
/// nobody believes to have set a price here.
pub const AS_SHOWN: [(&str, &str); 8] = [
    ("id", "cannot change"),
    ("slug", "cannot change"),
    ("ens_name", "cannot be set"),
    ("status", "is set by the operator"),
    ("soul_for_sale", "follows from the price: PUT /v1/soul/me/soul-price"),
    ("soul_price", "is set with PUT /v1/soul/me/soul-price"),
    ("payout_address", "is set with PUT /v1/soul/me/link-wallet"),
    ("payout_address_verified", "is set with PUT /v1/soul/me/link-wallet"),
];

/// The members of its profile that a soul changes. `Some(None)` removes a member.
pub struct ProfileChange {
    pub name: Option<String>,
    pub bio: Option<Option<String>>,
    pub avatar_url: Option<Option<String>>,
}

impl ProfileChange {
    /// Reads the body of a change. `shown_now`: the soul as its seller sees it. `operator`: the service's name.
    pub fn read(
        body: &Map<String, Value>,
        shown_now: &Value,
        operator: &str,
    ) -> Result<ProfileChange, Vec<FieldError>> {
        let mut reader = Reader::new(body);
        let also: Vec<&str> = AS_SHOWN.iter().map(|(name, _)| *name).chain(OF_ANSWERS).collect();
        reader.only(&["name", "bio", "avatar_url"], &also);
        for (name, message) in AS_SHOWN {
            if body.get(name).is_some_and(|given| !is_same(given, &shown_now[name])) {
                reader.errors.push(FieldError::new(name, message));
            }
        }
        // What was stored before there was a rule may be sent back.
        let stays = |name: &str| body.get(name).is_some_and(|given| *given == shown_now[name]);
        let name = if stays("name") { None } else { reader.given("name", |value| soul_name(value, operator)) };
        let bio = reader.nullable("bio", shown(0, MAX_BIO_CHARS, true));
        let avatar_url = if stays("avatar_url") { None } else { reader.nullable("avatar_url", avatar) };
        if reader.errors.is_empty() {
            let bio = bio.map(|bio| bio.filter(|bio| !bio.is_empty()));
            Ok(ProfileChange { name, bio, avatar_url })
        } else {
            Err(reader.errors)
        }
    }
}

/// Numbers are compared by value, because clients print 2 as 2.0.
fn is_same(given: &Value, shown: &Value) -> bool {
    given == shown || given.as_f64().is_some_and(|given| shown.as_f64() == Some(given))
}
