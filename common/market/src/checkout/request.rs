//! Platforms' request bodies: ACP's own, and two older forms. Unknown members are dropped. Known members are validated.

use base::input::{self, Field, FieldError, Format, Kind};
use serde_json::{Map, Value, json};

use super::error::CheckoutError;

/// Longer lists are refused before any lookup.
const MOST_LINES: usize = 100;
/// Largest metadata of a platform that is kept.
const MAX_METADATA_BYTES: usize = 16 * 1024;
const EMAIL_OF_BUYER: &str = "buyer.email";
const IN_HANDLER: &str = "payment_data.handler_id";
const IN_CREDENTIAL: &str = "payment_data.instrument.credential.token";
/// The member of a body that holds the idempotency key (older form).
pub const NAME: &str = "idempotency_key";
/// The members that only a buyer of the older forms has.
pub const OLDER_BUYER: &[&str] = &["name", "agent_id", "wallet"];

/// The item to buy and its quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Cart {
    pub item: String,
    pub quantity: u32,
    pub input: Option<Map<String, Value>>,
    /// Index of the first line that asks for a second item.
    pub second: Option<usize>,
    /// The unit price that was sent, in cents. It is only compared.
    pub expected_cents: Option<i64>,
}

/// A parsed body.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub cart: Option<Cart>,
    /// An input outside the lines, as an update may send it.
    pub input: Option<Map<String, Value>>,
    pub said: Map<String, Value>,
    pub currency: Option<String>,
    /// Ids of the fulfillment options that were selected.
    pub option_ids: Vec<String>,
}

const fn text(name: &'static str, max: usize) -> Field {
    Field::optional(name, Kind::Text { min: 0, max, format: None }, "")
}

const fn needed(name: &'static str, max: usize) -> Field {
    Field::required(name, Kind::Text { min: 0, max, format: None }, "")
}

static EMAIL: Format = Format {
    name: Some("email"),
    pattern: None,
    matches: base::contact::is_email,
    message: "must be an e-mail address",
};

const fn email(name: &'static str) -> Field {
    Field::optional(name, Kind::Text { min: 3, max: 254, format: Some(&EMAIL) }, "")
}

static ADDRESS: &[Field] = &[
    needed("name", 256),
    needed("line_one", 256),
    text("line_two", 256),
    needed("city", 128),
    needed("state", 128),
    needed("country", 64),
    needed("postal_code", 32),
];

pub static BUYER: &[Field] = &[
    text("first_name", 128),
    text("last_name", 128),
    text("full_name", 256),
    email("email"),
    text("phone_number", 64),
    text("customer_id", 255),
    Field::optional("account_type", Kind::Choice(&["guest", "registered", "business"]), ""),
    Field::optional("authentication_status", Kind::Choice(&["authenticated", "guest", "requires_signin"]), ""),
    // `OLDER_BUYER`
    text("name", 256),
    text("agent_id", 255),
    text("wallet", 255),
];

pub static DETAILS: &[Field] = &[
    text("name", 256),
    text("phone_number", 64),
    email("email"),
    Field::optional("address", Kind::Object { fields: ADDRESS, open: false }, ""),
];

static LINE: Kind = Kind::Object {
    fields: &[
        Field::optional("id", Kind::Text { min: 1, max: 255, format: None }, ""),
        text("name", 1000),
        Field::optional("unit_amount", Kind::Integer { min: 0, max: 1_000_000_000_000 }, ""),
        Field::optional("quantity", Kind::Integer { min: 1, max: 1_000_000 }, ""),
        Field::optional("product_id", Kind::Text { min: 1, max: 255, format: None }, ""),
        Field::optional(
            "item",
            Kind::Object {
                fields: &[
                    Field::required("id", Kind::Text { min: 1, max: 255, format: None }, ""),
                    Field::optional("metadata", Kind::Object { fields: &[], open: true }, ""),
                ],
                open: false,
            },
            "",
        ),
        Field::optional("metadata", Kind::Object { fields: &[], open: true }, ""),
        Field::optional("input", Kind::Object { fields: &[], open: true }, ""),
    ],
    open: false,
};

static INTERVENTIONS: &[Field] = &[Field::optional(
    "supported",
    Kind::List { of: &Kind::Choice(&["3ds", "biometric", "address_verification"]), max: 10 },
    "",
)];

static SELECTED: Kind = Kind::Object {
    fields: &[
        Field::required("type", Kind::Choice(&["shipping", "digital", "pickup", "local_delivery"]), ""),
        needed("option_id", 255),
        Field::required("item_ids", Kind::List { of: &Kind::Text { min: 0, max: 255, format: None }, max: 100 }, ""),
    ],
    open: false,
};

/// The body of a create and of an update.
pub static BODY: &[Field] = &[
    Field::optional(
        "line_items",
        Kind::List { of: &LINE, max: MOST_LINES },
        "The one item to buy, once or several times",
    ),
    Field::optional(
        "currency",
        Kind::Text { min: 1, max: 16, format: None },
        "Must be usd; with another currency the session is not ready for payment",
    ),
    Field::optional(
        "capabilities",
        Kind::Object {
            fields: &[Field::optional("interventions", Kind::Object { fields: INTERVENTIONS, open: false }, "")],
            open: false,
        },
        "What the platform can do; an empty object is enough",
    ),
    Field::optional(
        "buyer",
        Kind::Object { fields: BUYER, open: false },
        "The buyer. In ACP's form it needs an e-mail address",
    ),
    Field::optional(
        "fulfillment_details",
        Kind::Object { fields: DETAILS, open: false },
        "Stored and returned unchanged",
    ),
    Field::optional(
        "selected_fulfillment_options",
        Kind::List { of: &SELECTED, max: 100 },
        "There is one option: digital",
    ),
    text("locale", 64),
    text("timezone", 64),
    Field::optional(
        "metadata",
        Kind::Object { fields: &[], open: true },
        "The platform's own data, at most 16 KiB as JSON. Its member `input` is the item's input",
    ),
    Field::optional(
        "input",
        Kind::Object { fields: &[], open: true },
        "The item's input, according to its `input_schema`",
    ),
];

/// The body of a complete, without the token, which may be a string or an object.
pub static PAYMENT: &[Field] = &[Field::optional(
    "payment_data",
    Kind::Object {
        fields: &[
            text("handler_id", 255),
            Field::optional(
                "instrument",
                Kind::Object {
                    fields: &[
                        text("type", 255),
                        Field::optional("credential", Kind::Object { fields: &[text("type", 255)], open: true }, ""),
                    ],
                    open: true,
                },
                "",
            ),
        ],
        open: true,
    },
    "The payment, by one of the session's payment handlers",
)];

/// Reads the body of a create. `strict` demands what ACP requires, unless the lines have an older form.
pub fn create(body: &Map<String, Value>, strict: bool) -> Result<Asked, CheckoutError> {
    let mut missing = Vec::new();
    if !body.contains_key("line_items") {
        missing.push("line_items");
    }
    let lines = body.get("line_items").and_then(Value::as_array);
    let older = lines
        .is_some_and(|lines| lines.iter().all(|line| line.get("item").is_some() || line.get("product_id").is_some()));
    if strict && !older {
        missing.extend(["currency", "capabilities"].into_iter().filter(|name| !body.contains_key(*name)));
    }
    if strict && lacks_email(body) {
        missing.push(EMAIL_OF_BUYER);
    }
    if !missing.is_empty() {
        return Err(CheckoutError::Missing(missing.into_iter().map(str::to_owned).collect()));
    }
    let asked = read(body)?;
    if asked.cart.is_none() {
        return Err(invalid("line_items", "must have at least one item"));
    }
    Ok(asked)
}

/// Reads the body of an update. `strict` demands what ACP requires, unless the buyer has an older form.
pub fn update(body: &Map<String, Value>, strict: bool) -> Result<Asked, CheckoutError> {
    if strict && lacks_email(body) {
        return Err(CheckoutError::Missing(vec![EMAIL_OF_BUYER.to_owned()]));
    }
    let asked = read(body)?;
    if body.contains_key("line_items") && asked.cart.is_none() {
        return Err(invalid("line_items", "must have at least one item"));
    }
    Ok(asked)
}

/// Whether there is a buyer in ACP's form without the e-mail address that ACP requires of a buyer.
fn lacks_email(body: &Map<String, Value>) -> bool {
    let buyer = body.get("buyer").and_then(Value::as_object);
    buyer.is_some_and(|buyer| !buyer.keys().any(|name| name == "email" || OLDER_BUYER.contains(&name.as_str())))
}

fn read(body: &Map<String, Value>) -> Result<Asked, CheckoutError> {
    let mut kept = input::validate(BODY, body).map_err(CheckoutError::Invalid)?;
    let lines = kept.remove("line_items");
    let input = match kept.remove("input") {
        Some(Value::Object(input)) => Some(input),
        _ => None,
    };
    let mut metadata = match kept.remove("metadata") {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    };
    // ACP's lines have no place for the input, so it comes in the metadata.
    let input = input.or_else(|| match metadata.remove("input") {
        Some(Value::Object(input)) => Some(input),
        _ => None,
    });
    if json!(metadata).to_string().len() > MAX_METADATA_BYTES {
        return Err(invalid("metadata", format!("may have at most {MAX_METADATA_BYTES} bytes, not counting input")));
    }
    let currency = kept.remove("currency").and_then(|currency| currency.as_str().map(str::to_owned));
    let selected = kept.remove("selected_fulfillment_options");
    let option_ids = selected.as_ref().and_then(Value::as_array).into_iter().flatten();
    let option_ids = option_ids.filter_map(|option| option["option_id"].as_str().map(str::to_owned)).collect();
    if !metadata.is_empty() {
        kept.insert("metadata".to_owned(), Value::Object(metadata));
    }
    Ok(Asked { cart: cart(lines.as_ref())?, input, said: kept, currency, option_ids })
}

fn cart(lines: Option<&Value>) -> Result<Option<Cart>, CheckoutError> {
    let mut cart: Option<Cart> = None;
    for (index, line) in lines.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let id = line["product_id"].as_str().or_else(|| line["item"]["id"].as_str()).or_else(|| line["id"].as_str());
        let Some(id) = id else { return Err(CheckoutError::Missing(vec![format!("line_items.{index}.id")])) };
        let quantity = line["quantity"].as_u64().and_then(|quantity| u32::try_from(quantity).ok()).unwrap_or(1);
        let input = line["input"].as_object().or_else(|| {
            let metadata = line["metadata"].as_object().or_else(|| line["item"]["metadata"].as_object())?;
            // `{"input": {…}}`, or the input itself.
            Some(metadata.get("input").and_then(Value::as_object).unwrap_or(metadata))
        });
        match &mut cart {
            None => {
                let expected_cents = line["unit_amount"].as_i64();
                let (item, input) = (id.to_owned(), input.cloned());
                cart = Some(Cart { item, quantity, input, second: None, expected_cents });
            }
            // ACP 2026-01-30 has no quantity: repeated lines of the same item add up.
            Some(cart) if cart.item == id => {
                cart.quantity = cart.quantity.saturating_add(quantity);
                cart.input = cart.input.take().or_else(|| input.cloned());
            }
            Some(cart) => cart.second = cart.second.or(Some(index)),
        }
    }
    Ok(cart)
}

/// The means of paying for a session.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// A signed x402 payment, in base64 or as JSON.
    Payment(String),
    /// An access token whose agent has credits.
    Token(String),
}

/// Reads the body of a complete: `payment_data`, or a bare `payment_token`. `strict` demands what ACP requires, unless the
/// token is in a place of the older forms.
pub fn credential(body: &Map<String, Value>, prefixes: &[String], strict: bool) -> Result<Credential, CheckoutError> {
    input::validate(PAYMENT, body).map_err(CheckoutError::Invalid)?;
    let data = body.get("payment_data");
    let instrument = data.and_then(|data| data.get("instrument"));
    let places = [
        (instrument.and_then(|instrument| instrument.pointer("/credential/token")), IN_CREDENTIAL),
        (data.and_then(|data| data.get("token")), "payment_data.token"),
        (body.get("payment_token"), "payment_token"),
    ];
    let mut sent = places.into_iter().filter_map(|(token, path)| Some((token.filter(|token| !token.is_null())?, path)));
    let token = sent.next();
    // Tokens that are not used must be well-formed too.
    if let Some((_, path)) = token.into_iter().chain(sent).find(|(token, _)| !token.is_string() && !token.is_object()) {
        return Err(invalid(path, "must be a string"));
    }
    let handler = data.and_then(|data| data.get("handler_id"));
    let kind = instrument.and_then(|instrument| instrument.pointer("/credential/type"));
    let token = match token {
        Some((_, IN_CREDENTIAL)) if strict && handler.is_none() => {
            return Err(CheckoutError::MissingToken(IN_HANDLER));
        }
        Some((Value::String(token), _)) if !token.trim().is_empty() => token.trim().to_owned(),
        // A payment sent as JSON, not as base64.
        Some((payment @ Value::Object(_), _)) => payment.to_string(),
        Some((_, path)) => return Err(CheckoutError::MissingToken(path)),
        None => return Err(CheckoutError::MissingToken(missing(data, strict))),
    };
    let names = |word: &str| [handler, kind].into_iter().flatten().any(|value| value == word);
    let is_token = prefixes.iter().any(|prefix| token.starts_with(prefix.as_str()));
    match () {
        () if names(super::handlers::CREDITS) || is_token && !names(super::handlers::X402) => {
            Ok(Credential::Token(token))
        }
        () => Ok(Credential::Payment(token)),
    }
}

/// The first member that a body without a token lacks: on the way to the token in ACP's form, or else the oldest form's.
fn missing(data: Option<&Value>, strict: bool) -> &'static str {
    let has = |pointer: &str| data.is_some_and(|data| data.pointer(pointer).is_some());
    match () {
        () if !strict && !has("/instrument") => "payment_token",
        () if data.is_none() => "payment_data",
        () if strict && !has("/handler_id") => IN_HANDLER,
        () if !has("/instrument") => "payment_data.instrument",
        () if !has("/instrument/credential") => "payment_data.instrument.credential",
        () => IN_CREDENTIAL,
    }
}

/// The idempotency key in the body (older form). An invalid key is refused: the client believes it is protected.
pub fn name_in(body: &Map<String, Value>) -> Result<Option<&str>, CheckoutError> {
    let Some(name) = body.get(NAME).filter(|name| !name.is_null()) else { return Ok(None) };
    match name.as_str().map(str::trim) {
        Some(name) if (1..=255).contains(&name.chars().count()) => Ok(Some(name)),
        _ => Err(invalid(NAME, "must be a string of 1 to 255 characters")),
    }
}

fn invalid(path: &str, message: impl Into<String>) -> CheckoutError {
    CheckoutError::Invalid(vec![FieldError::new(path, message)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn all_three_forms_are_read_alike() {
        let input = json!({"topic": "tides"});
        let forms = [
            json!({"line_items": [{"id": "x"}], "currency": "usd", "capabilities": {}, "metadata": {"input": input}}),
            json!({"line_items": [{"item": {"id": "x", "metadata": input}}], "buyer": {"email": "a@b.co", "name": "A"}}),
            json!({"line_items": [{"product_id": "x", "quantity": 1, "unit_price_usdc": "9.99", "metadata": {"input": input}}]}),
        ];
        for form in forms {
            let asked = create(&object(form.clone()), true).map_err(|_| form.clone()).unwrap();
            let cart = asked.cart.unwrap();
            assert_eq!((cart.item.as_str(), cart.quantity, cart.second), ("x", 1, None), "{form}");
            assert_eq!(cart.input.or(asked.input), Some(object(input.clone())), "{form}");
        }
        let twice = object(
            json!({"line_items": [{"id": "x"}, {"id": "x"}, {"id": "y"}], "currency": "usd", "capabilities": {}}),
        );
        let cart = create(&twice, true).ok().unwrap().cart.unwrap();
        assert_eq!((cart.quantity, cart.second), (2, Some(2)));
    }

    #[test]
    fn errors_name_the_wrong_field() {
        let wrong = |body: Value| match create(&object(body), true) {
            Err(CheckoutError::Invalid(errors)) => errors.into_iter().map(|error| error.path).collect::<Vec<_>>(),
            Err(CheckoutError::Missing(names)) => names.into_iter().map(|name| format!("-{name}")).collect(),
            _ => Vec::new(),
        };
        let good = json!({"line_items": [{"id": "x"}], "currency": "usd", "capabilities": {}});
        assert_eq!(wrong(good.clone()), Vec::<String>::new());
        assert_eq!(wrong(json!({})), ["-line_items", "-currency", "-capabilities"]);
        let with = |name: &str, value: Value| {
            let mut body = good.clone();
            body[name] = value;
            wrong(body)
        };
        assert_eq!(with("line_items", json!([])), ["line_items"]);
        assert_eq!(with("line_items", json!([{"id": "x", "quantity": -1}])), ["line_items.0.quantity"]);
        assert_eq!(with("line_items", json!([{"id": "x", "quantity": 1.5}])), ["line_items.0.quantity"]);
        assert_eq!(with("line_items", json!([{"name": "x"}])), ["-line_items.0.id"]);
        assert_eq!(with("line_items", json!(vec![json!({"id": "x"}); 10_000])), ["line_items"]);
        assert_eq!(with("line_items", json!([{"id": "x".repeat(256)}])), ["line_items.0.id"]);
        assert_eq!(with("currency", json!(7)), ["currency"]);
        assert_eq!(with("buyer", json!({"email": "nobody"})), ["buyer.email"]);
        assert_eq!(with("buyer", json!({"full_name": "Ada"})), ["-buyer.email"]);
        assert_eq!(with("buyer", json!({"name": "Ada"})), Vec::<String>::new(), "an older form");
        assert_eq!(with("metadata", json!({"x": "y".repeat(20_000)})), ["metadata"]);
    }

    #[test]
    fn credentials_of_both_handlers_and_both_forms() {
        let prefixes = ["agent_".to_owned()];
        let read = |body: Value| credential(&object(body), &prefixes, true).ok();
        let token = || Some(Credential::Token("agent_1".to_owned()));
        let payment = || Some(Credential::Payment("e30=".to_owned()));
        assert!(read(json!({"payment_token": "agent_1"})) == token());
        assert!(read(json!({"payment_data": {"token": "e30="}})) == payment());
        let data = |handler: &str, token: &str| json!({"payment_data": {"handler_id": handler, "instrument": {"type": handler, "credential": {"type": handler, "token": token}}}});
        assert!(read(data("x402", "e30=")) == payment());
        assert!(read(data("credits", "agent_1")) == token());
        assert!(read(json!({"payment_token": "agent_1", "payment_data": {"token": null}})) == token());
        let wrong = [
            json!({}),
            json!({"payment_data": {}}),
            json!({"payment_token": " "}),
            json!({"payment_data": 1}),
            json!({"payment_token": 1, "payment_data": {"token": "e30="}}),
            json!({"payment_token": "e30=", "payment_data": {"instrument": {"type": 1}}}),
        ];
        for wrong in wrong {
            assert!(read(wrong.clone()).is_none(), "{wrong}");
        }
    }

    #[test]
    fn an_incomplete_payment_is_told_what_it_lacks_first() {
        let lacks = |body: Value, strict: bool| match credential(&object(body), &["agent_".to_owned()], strict) {
            Err(CheckoutError::MissingToken(path)) => path,
            Err(_) => "something else",
            Ok(_) => "nothing",
        };
        let whole = json!({"payment_data": {
            "handler_id": "x402", "instrument": {"type": "x402", "credential": {"type": "x402", "token": "e30="}},
        }});
        assert_eq!((lacks(whole.clone(), true), lacks(whole.clone(), false)), ("nothing", "nothing"));
        for (pointer, member, acp, simple) in [
            ("", "payment_data", "payment_data", "payment_token"),
            ("/payment_data", "handler_id", "payment_data.handler_id", "nothing"),
            ("/payment_data", "instrument", "payment_data.instrument", "payment_token"),
            (
                "/payment_data/instrument",
                "credential",
                "payment_data.instrument.credential",
                "payment_data.instrument.credential",
            ),
            ("/payment_data/instrument/credential", "token", IN_CREDENTIAL, IN_CREDENTIAL),
        ] {
            let mut body = whole.clone();
            body.pointer_mut(pointer).and_then(Value::as_object_mut).unwrap().remove(member);
            assert_eq!((lacks(body.clone(), true), lacks(body, false)), (acp, simple), "without {member}");
        }
        assert_eq!(lacks(json!({"payment_data": {}}), true), "payment_data.handler_id", "the first of several");
        assert_eq!(lacks(json!({"payment_token": " "}), true), "payment_token");
        assert_eq!(lacks(json!({"payment_data": {"token": "e30="}}), true), "nothing", "an older form");
    }

    #[test]
    fn an_invalid_idempotency_key_is_refused() {
        let read =
            |name: Value| name_in(&object(json!({"idempotency_key": name}))).ok().map(|name| name.map(str::to_owned));
        assert_eq!(read(json!(" a ")), Some(Some("a".to_owned())));
        assert_eq!(read(Value::Null), Some(None));
        for wrong in [json!(""), json!(1), json!("x".repeat(256))] {
            assert_eq!(read(wrong.clone()), None, "{wrong}");
        }
    }
}
