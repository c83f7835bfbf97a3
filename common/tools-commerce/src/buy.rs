//! The catalog's entry: a purchase in a shop.

use std::time::Duration;

use base::input::{Field, FieldError, Format, Kind};
use base::money::Usdc;
use platform::config::{COMMERCE_FEE, Capability};
use platform::net::{FetchPolicy, check_url};
use serde_json::{Map, Value, json};
use tools::Runner;
use tools::run::DEADLINE;
use tools::spec::{Need, Price, ToolSpec, URI};

use crate::goods::buying;
use crate::providers::rye::Variant;
use crate::{address, work};

/// Shown where no product is known.
const USUAL: Usdc = Usdc::from_micro(25_000_000);
/// No purchase costs more: the largest that an operator can allow, and a fee of 50 %.
const MOST: Usdc = Usdc::from_micro(7_500_000_000);
/// An offer can be confirmed for 45 minutes. A payment takes a while, and so may the queue.
const QUOTED_FOR: Duration = Duration::from_secs(900);

static US: Format = Format {
    name: None,
    pattern: None,
    matches: |text| ["US", "USA"].contains(&text.to_uppercase().as_str()),
    message: "must be US: nothing is sent to other countries",
};

const fn text(max: usize) -> Kind {
    Kind::Text { min: 1, max, format: None }
}

const ADDRESS: &[Field] = &[
    Field::required("first_name", text(100), "Of the recipient"),
    Field::required("last_name", text(100), "Of the recipient"),
    Field::required("street", text(255), "Street and number"),
    Field::optional("street2", Kind::Text { min: 0, max: 255, format: None }, "Flat, floor or company"),
    Field::required("city", text(100), "City"),
    Field::required("state", text(100), "A state of the United States, such as CA"),
    Field::required("zip_code", text(20), "ZIP code of that state"),
    Field::required("phone", text(20), "A phone number of the United States, for the carrier"),
    Field::optional("email", text(320), "Where the shop's mails go. Default: your first address at this service"),
    Field::optional("country", Kind::Text { min: 2, max: 3, format: Some(&US) }, "US"),
];

pub static SPEC: ToolSpec = ToolSpec {
    name: "commerce",
    title: "Purchase",
    summary: "Buys a product, in a shop or of a seller here, and has it sent to an address in the United States, at most for the quoted total",
    group: "commerce",
    paths: &["/v1/tools/commerce/buy"],
    price: Price::Asked { usual: USUAL, most: MOST },
    expensive: true,
    keeps_record: true,
    fee: Some(COMMERCE_FEE),
    quote_ttl: Some(QUOTED_FOR),
    category: "commerce",
    deadline: DEADLINE,
    refusals: &[
        (400, "restricted_product"),
        (400, "price_above_limit"),
        (400, "merchant_not_supported"),
        (409, "out_of_stock"),
        (409, "quote_expired"),
        (503, "quote_pending"),
        (503, "provider_unavailable"),
    ],
    // A good that is sold here needs no provider.
    needs: |_, input| match buying::id(input) {
        Some(_) => Vec::new(),
        None => vec![Need::Provider(Capability::Purchases), Need::Goods],
    },
    claims: |toolbox, claiming| Box::pin(buying::claims(toolbox, claiming)),
    release: |toolbox, request| Box::pin(buying::release(toolbox, request)),
    input: &[
        Field::required(
            "product_url",
            Kind::Text { min: 1, max: 2048, format: Some(&URI) },
            "The product's page, in its shop or here",
        ),
        Field::required(
            "shipping_address",
            Kind::Object { fields: ADDRESS, open: false },
            "Where it is sent: in the United States",
        ),
        Field::optional("quantity", Kind::Integer { min: 1, max: 100 }, "How many. Default: 1"),
        Field::optional(
            "variant_id",
            Kind::Text { min: 1, max: 100, format: None },
            "The variant: its number in the shop, or labels and values such as Size=10; Color=Blue",
        ),
    ],
    check,
    example: || {
        json!({
            "product_url": "https://shop.example.com/products/desk-lamp",
            "shipping_address": {
                "first_name": "Ada", "last_name": "Lovelace", "street": "1 Market Street", "city": "San Francisco",
                "state": "CA", "zip_code": "94105", "phone": "+1 415 555 0100", "email": "ada@example.com",
            },
        })
    },
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run: work::run };

fn check(input: &Map<String, Value>, policy: &FetchPolicy) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let url = input.get("product_url").and_then(Value::as_str).unwrap_or_default();
    for name in ["product_url", "variant_id"] {
        if input.get(name).and_then(Value::as_str).is_some_and(address::has_hidden) {
            wrong.push(FieldError::new(name, "must have no control characters and no line breaks"));
        }
    }
    // Nothing is fetched from the page of a good that is sold here.
    if buying::id(input).is_none()
        && let Err(refused) = check_url(url, policy)
    {
        wrong.push(FieldError::new("product_url", refused.to_string()));
    }
    if let Err(errors) = address::read(input.get("shipping_address").unwrap_or(&Value::Null)) {
        wrong.extend(errors);
    }
    if Variant::read(input).is_none() {
        let message = "must be the variant's number, or labels and values such as Size=10; Color=Blue";
        wrong.push(FieldError::new("variant_id", message));
    }
    wrong
}

fn output() -> Value {
    let text = |about: &str| json!({"type": ["string", "null"], "description": about});
    json!({
        "type": "object",
        "required": ["status", "order_id", "order_status", "tracking_url", "cost", "costs", "product_title", "quantity"],
        "properties": {
            "status": {"type": "string", "description": "completed"},
            "order_id": text("The shop's or the provider's id"),
            "order_status": {
                "type": "string", "enum": ["placed", "unknown"],
                "description": "unknown: the shop has not said yet whether it took the order; you are paid back if it did not",
            },
            "tracking_url": text("Where the parcel is. order_tracking beside the result has what came later"),
            "cost": {"type": "number", "description": "What was charged, in USDC"},
            "costs": {
                "type": "object",
                "description": "In USDC",
                "required": ["subtotal", "shipping", "tax", "fee", "total"],
                "properties": {
                    "subtotal": {"type": "string"}, "shipping": {"type": "string"}, "tax": {"type": "string"},
                    "fee": {"type": "string"}, "total": {"type": "string"},
                },
            },
            "product_title": {"type": "string"},
            "quantity": {"type": "integer"},
            "labels": {"type": "object", "description": "Of a good of a seller here: the variant's labels"},
        },
    })
}
