//! A server with the documented interface of Rye's Universal Checkout (the public SDK `checkout-intents` 0.28.0, read 2026-11). It
//! refuses whatever the documentation does not allow, and a script says how shops behave.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

pub const KEY: &str = "rye-key";

/// What a confirmation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confirming {
    Take,
    /// The order is placed, and the answer is a 500.
    TakeAndFail,
    /// A 500 before anything was done.
    Fail,
    /// 400
    Refuse,
}

/// How the shop behaves.
#[derive(Clone, Debug)]
pub struct Script {
    /// Subtotal, shipping, tax in cents.
    pub cost: (u64, u64, u64),
    /// Reads before the offer is there.
    pub slow: u32,
    /// The offer fails with this code.
    pub no_offer: Option<&'static str>,
    pub confirming: Confirming,
    /// Reads after the confirmation before the order is placed.
    pub placing: u32,
    /// The order fails with this code after its confirmation.
    pub failing: Option<&'static str>,
    /// In cents.
    pub balance: u64,
    pub shipments: Value,
    pub cancelled: bool,
}

impl Default for Script {
    fn default() -> Script {
        Script {
            cost: (2_000, 499, 173),
            slow: 1,
            no_offer: None,
            confirming: Confirming::Take,
            placing: 1,
            failing: None,
            balance: 1_000_000,
            shipments: json!([]),
            cancelled: false,
        }
    }
}

#[derive(Clone, Debug)]
struct Intent {
    body: Value,
    reads: u32,
    /// Reads since the confirmation; `None`: not confirmed.
    confirmed: Option<u32>,
}

#[derive(Default)]
struct Book {
    script: Script,
    intents: HashMap<String, Intent>,
    /// How many there have been.
    numbered: u32,
    confirmations: u32,
}

#[derive(Clone)]
pub struct Rye {
    pub url: String,
    book: Arc<Mutex<Book>>,
}

impl Rye {
    pub async fn start() -> Rye {
        let book = Arc::new(Mutex::new(Book::default()));
        let router = Router::new()
            .route("/api/v1/checkout-intents", post(create))
            .route("/api/v1/checkout-intents/{id}", get(read))
            .route("/api/v1/checkout-intents/{id}/confirm", post(confirm))
            .route("/api/v1/checkout-intents/{id}/shipments", get(shipments))
            .route("/api/v1/checkout-intents/{id}/order", get(order))
            .route("/api/v1/products/lookup", get(lookup))
            .route("/api/v1/billing/balance", get(balance))
            .with_state(book.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Rye { url, book }
    }

    pub fn script(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.book.lock().expect("the book").script);
    }

    /// Orders that were placed, and requests that confirmed.
    pub fn orders(&self) -> (usize, u32) {
        let book = self.book.lock().expect("the book");
        (book.intents.values().filter(|intent| intent.confirmed.is_some()).count(), book.confirmations)
    }

    /// The bodies of the intents that were begun.
    pub fn begun(&self) -> Vec<Value> {
        self.book.lock().expect("the book").intents.values().map(|intent| intent.body.clone()).collect()
    }

    /// Forgets what was begun and ordered.
    pub fn clear(&self) {
        let mut book = self.book.lock().expect("the book");
        *book = Book { numbered: book.numbered, ..Book::default() };
    }
}

type Shared = State<Arc<Mutex<Book>>>;

fn refuse(status: StatusCode, message: &str) -> Response {
    (status, Json(json!({"message": message}))).into_response()
}

fn is_known(headers: &HeaderMap) -> bool {
    headers.get("authorization").is_some_and(|value| value == format!("Bearer {KEY}").as_str())
}

fn has_only(value: &Value, required: &[&str], optional: &[&str]) -> bool {
    let Some(object) = value.as_object() else { return false };
    let is_known = |name: &String| required.contains(&name.as_str()) || optional.contains(&name.as_str());
    object.keys().all(is_known) && required.iter().all(|name| object.contains_key(*name))
}

const BUYER: [&str; 9] =
    ["firstName", "lastName", "email", "phone", "address1", "city", "province", "country", "postalCode"];

async fn create(State(book): Shared, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    if !is_known(&headers) {
        return refuse(StatusCode::UNAUTHORIZED, "unknown key");
    }
    let optional = ["constraints", "variantSelections", "referenceId", "promoCodes", "discoverPromoCodes"];
    let is_valid = has_only(&body, &["buyer", "productUrl", "quantity"], &optional)
        && has_only(&body["buyer"], &BUYER, &["address2"])
        && has_only(&body["constraints"], &[], &["maxTotalPrice", "maxShippingPrice", "offerRetrievalEffort"])
        && body["buyer"].as_object().is_some_and(|buyer| buyer.values().all(Value::is_string))
        && body["quantity"].as_u64().is_some_and(|quantity| quantity > 0);
    if !is_valid {
        return refuse(StatusCode::BAD_REQUEST, "the body is not valid");
    }
    if body["productUrl"].as_str().is_some_and(|url| url.contains("unsupported")) {
        return refuse(StatusCode::BAD_REQUEST, "the shop is not supported");
    }
    let mut book = book.lock().expect("the book");
    book.numbered += 1;
    let id = format!("ci_{:032x}", book.numbered);
    let intent = Intent { body, reads: 0, confirmed: None };
    let shown = shown(&id, &intent, &book.script);
    book.intents.insert(id, intent);
    Json(shown).into_response()
}

fn shown(id: &str, intent: &Intent, script: &Script) -> Value {
    let mut shown = intent.body.clone();
    shown["id"] = json!(id);
    shown["createdAt"] = json!("2026-11-28T12:00:00.000Z");
    let dollars = |cents: u64| json!({"amountSubunits": cents, "currencyCode": "USD"});
    let (subtotal, shipping, tax) = script.cost;
    let offer = json!({
        "cost": {"subtotal": dollars(subtotal), "shipping": dollars(shipping), "tax": dollars(tax),
            "total": dollars(subtotal + shipping + tax)},
        "shipping": {"availableOptions": []},
    });
    let failed = |code: &str| json!({"code": code, "message": "a text of the shop"});
    match intent.confirmed {
        None if intent.reads < script.slow => shown["state"] = json!("retrieving_offer"),
        None => match script.no_offer {
            Some(code) => {
                shown["state"] = json!("failed");
                shown["failureReason"] = failed(code);
            }
            None => {
                shown["state"] = json!("awaiting_confirmation");
                shown["offer"] = offer;
            }
        },
        Some(reads) => {
            shown["offer"] = offer;
            shown["paymentMethod"] = json!({"type": "drawdown"});
            if reads < script.placing {
                shown["state"] = json!("placing_order");
            } else if let Some(code) = script.failing {
                shown["state"] = json!("failed");
                shown["failureReason"] = failed(code);
            } else {
                shown["state"] = json!("completed");
                shown["orderId"] = json!(format!("order_{}", &id[3..]));
            }
        }
    }
    shown
}

async fn read(State(book): Shared, Path(id): Path<String>, headers: HeaderMap) -> Response {
    if !is_known(&headers) {
        return refuse(StatusCode::UNAUTHORIZED, "unknown key");
    }
    let mut book = book.lock().expect("the book");
    let script = book.script.clone();
    let Some(intent) = book.intents.get_mut(&id) else { return refuse(StatusCode::NOT_FOUND, "unknown") };
    let shown = shown(&id, intent, &script);
    match &mut intent.confirmed {
        Some(reads) => *reads += 1,
        None => intent.reads += 1,
    }
    Json(shown).into_response()
}

async fn confirm(State(book): Shared, Path(id): Path<String>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    if !is_known(&headers) {
        return refuse(StatusCode::UNAUTHORIZED, "unknown key");
    }
    if body != json!({"paymentMethod": {"type": "drawdown"}}) {
        return refuse(StatusCode::BAD_REQUEST, "the body is not valid");
    }
    let mut book = book.lock().expect("the book");
    book.confirmations += 1;
    let script = book.script.clone();
    let Some(intent) = book.intents.get_mut(&id) else { return refuse(StatusCode::NOT_FOUND, "unknown") };
    if intent.confirmed.is_some() {
        return refuse(StatusCode::CONFLICT, "it was confirmed");
    }
    match script.confirming {
        Confirming::Fail => return refuse(StatusCode::INTERNAL_SERVER_ERROR, "try again"),
        Confirming::Refuse => return refuse(StatusCode::BAD_REQUEST, "no"),
        Confirming::Take | Confirming::TakeAndFail => intent.confirmed = Some(0),
    }
    if script.confirming == Confirming::TakeAndFail {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, "try again");
    }
    Json(shown(&id, intent, &script)).into_response()
}

async fn shipments(State(book): Shared, Path(id): Path<String>, headers: HeaderMap) -> Response {
    if !is_known(&headers) {
        return refuse(StatusCode::UNAUTHORIZED, "unknown key");
    }
    let book = book.lock().expect("the book");
    if !book.intents.contains_key(&id) {
        return refuse(StatusCode::NOT_FOUND, "unknown");
    }
    let page = json!({"hasNextPage": false, "hasPreviousPage": false});
    Json(json!({"data": book.script.shipments, "pageInfo": page})).into_response()
}

async fn order(State(book): Shared, Path(id): Path<String>, headers: HeaderMap) -> Response {
    if !is_known(&headers) {
        return refuse(StatusCode::UNAUTHORIZED, "unknown key");
    }
    let book = book.lock().expect("the book");
    let Some(intent) = book.intents.get(&id).filter(|intent| intent.confirmed.is_some()) else {
        return refuse(StatusCode::NOT_FOUND, "unknown");
    };
    let mut order = json!({
        "id": format!("order_{}", &id[3..]),
        "buyer": intent.body["buyer"],
        "checkoutIntentId": id,
        "createdAt": "2026-11-28T12:01:00.000Z",
        "updatedAt": "2026-11-28T12:01:00.000Z",
    });
    if book.script.cancelled {
        order["cancellation"] = json!({
            "id": "cancel_1", "checkoutIntentId": id, "createdAt": "2026-11-28T12:02:00.000Z",
            "marketplaceOrderId": "1001", "reason": {"code": "inventory"}, "state": "completed",
        });
    }
    Json(order).into_response()
}

async fn lookup(headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    if !is_known(&headers) {
        return refuse(StatusCode::UNAUTHORIZED, "unknown key");
    }
    let query = query.unwrap_or_default();
    if query.contains("untitled") {
        return refuse(StatusCode::NOT_FOUND, "unknown");
    }
    let name = if query.contains("hidden-goods") { "Pistol, 9 mm" } else { "Desk lamp" };
    Json(json!({
        "id": "p1", "availability": "in_stock", "images": [], "isPurchasable": true, "name": name,
        "price": {"amountSubunits": 2_000, "currencyCode": "USD"}, "url": "https://shop.example/products/lamp",
    }))
    .into_response()
}

async fn balance(State(book): Shared, headers: HeaderMap) -> Response {
    if !is_known(&headers) {
        return refuse(StatusCode::UNAUTHORIZED, "unknown key");
    }
    let cents = book.lock().expect("the book").script.balance;
    Json(json!({"balance": {"amountSubunits": cents, "currencyCode": "USD"}, "drawdownEnabled": true})).into_response()
}
