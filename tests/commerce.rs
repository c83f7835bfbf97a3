//! Purchases in shops, by a server with the provider's documented interface.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::response::Html;
use axum::routing::{get, post};
use axum::{Json, Router};
use base::clock::Clock;
use base::money::Usdc;
use gate::jobs::store;
use local::stack::Background;
use local::{Options, Stack};
use platform::store::jobs;
use products::feed::Shop;
use serde_json::{Value, json};
use tools_commerce::order::{self, Stage};
use tools_commerce::{feed, watch};

use crate::approvals::put_rules;
use crate::support::http::borrowed;
use crate::support::rye::{Confirming, KEY, Rye, Script};
use crate::support::{Answer, Payer, books, crashes, eventually, run, stack_with};

const PATH: &str = "/v1/tools/commerce/buy";
/// The credits of a buyer, in micro-USDC.
const CREDITS: u64 = 200_000_000;
/// 26.72 at the shop, and 5 %, rounded up to a cent.
const PRICE: u64 = 28_060_000;

pub fn with_rye(options: Options, rye: &Rye) -> Options {
    options
        .with("PURCHASE_PROVIDERS", "rye")
        .with("PROVIDER_URLS", json!({"rye": rye.url}).to_string())
        .with("PROVIDER_KEYS", json!({"rye": KEY}).to_string())
}

async fn shop() -> (Rye, Stack) {
    let rye = Rye::start().await;
    let stack = stack_with(|options| with_rye(options, &rye)).await;
    (rye, stack)
}

pub fn order() -> Value {
    json!({
        "product_url": "https://shop.example.com/products/lamp",
        "shipping_address": {
            "first_name": "Ada", "last_name": "Lovelace", "street": "1 Market Street", "city": "San Francisco",
            "state": "CA", "zip_code": "94105", "phone": "415 555 0100", "email": "ada@example.com",
        },
    })
}

/// A parcel on its way, as the provider tells of it.
pub fn shipment() -> Value {
    json!({
        "id": "s1", "checkoutIntentId": "x", "marketplaceOrderId": "1001", "externalId": "1001.1", "status": "shipped",
        "createdAt": "2026-11-29T12:00:00Z", "updatedAt": "2026-11-29T12:00:00Z", "shippedAt": "2026-11-29T12:00:00Z",
        "tracking": {"number": "1Z999", "carrierName": "UPS", "url": "https://track.example/1Z999"},
        "trackingEvents": [],
    })
}

fn with(member: &str, value: Value) -> Value {
    let mut body = order();
    match member.split_once('.') {
        Some((outer, inner)) => body[outer][inner] = value,
        None => body[member] = value,
    }
    body
}

fn without_email() -> Value {
    let mut body = order();
    body["shipping_address"].as_object_mut().expect("an address").remove("email");
    body
}

async fn buyer(stack: &Stack) -> (Payer, String) {
    let payer = Payer::with(stack, 0).await;
    payer.give_credits(stack, CREDITS).await;
    let token = payer.token(stack).await;
    (payer, token)
}

async fn ask(payer: &Payer, token: &str, body: &Value) -> Answer {
    payer.client.post(PATH, &[("authorization", token)], body).await
}

/// Pays the quote of a 402.
async fn pay(payer: &Payer, token: &str, unpaid: &Answer, body: &Value) -> String {
    let context = unpaid.json()["context"].clone();
    let quote = context["quote_id"].as_str().unwrap_or_else(|| panic!("{}", unpaid.text)).to_owned();
    let accepted = payer.client.post(PATH, &[("authorization", token), ("x-quote-id", &quote)], body).await;
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    accepted.json()["request_id"].as_str().expect("an id").to_owned()
}

async fn credits(stack: &Stack, payer: &Payer) -> u64 {
    books::audit(&stack.app.db, payer.agent()).await.credits.micro()
}

#[test]
fn a_product_is_bought_once_for_the_quoted_total() {
    run(async {
        let (rye, stack) = shop().await;
        let payer = Payer::with(&stack, CREDITS).await;
        let unpaid = payer.ask(PATH, &order()).await;
        assert_eq!(unpaid.status, 402, "{}", unpaid.text);
        let context = unpaid.json()["context"].clone();
        let line = |name: &str| Usdc::parse(context[name].as_str().expect(name)).expect("an amount").micro();
        assert_eq!((line("subtotal"), line("shipping"), line("tax")), (20_000_000, 4_990_000, 1_730_000), "{context}");
        assert_eq!(line("subtotal") + line("shipping") + line("tax") + line("fee"), line("total"));
        assert_eq!((line("total"), &context["product_title"]), (PRICE, &json!("Desk lamp")), "{context}");

        let paid = payer.paying(&unpaid);
        let paid = borrowed(&paid);
        let accepted = payer.client.post(PATH, &paid, &order()).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let id = accepted.json()["request_id"].as_str().expect("an id").to_owned();
        let job = payer.finished(&id).await;
        let result = &job["result"];
        assert_eq!((&job["status"], &result["order_status"]), (&json!("completed"), &json!("placed")), "{job}");
        assert_eq!((&result["cost"], &result["costs"]["total"]), (&json!(28.06), &json!("28.060000")), "{job}");
        assert_eq!(rye.orders(), (1, 1));
        let tracking = &job["order_tracking"];
        assert_eq!((&tracking["status"], &tracking["order_id"]), (&json!("placed"), &result["order_id"]), "{job}");

        // The shop has the address as it was given, and the provider the ceiling.
        let begun = rye.begun();
        let buyer = &begun[0]["buyer"];
        assert_eq!((&buyer["province"], &buyer["phone"]), (&json!("CA"), &json!("+14155550100")), "{buyer}");
        assert_eq!(begun[0]["constraints"]["maxTotalPrice"], 50_000);
        let row = order::load(&stack.app.db, id.parse().expect("an id")).await.unwrap().expect("an order");
        assert_eq!(row.stage, Stage::Placed);
        assert!(!format!("{row:?}").contains("Market Street"), "the address is the shop's: {row:?}");
        // A copy of the payment gets the same job.
        let again = payer.client.post(PATH, &paid, &order()).await;
        assert_eq!(again.json()["request_id"], id.as_str(), "{}", again.text);
        assert_eq!(rye.orders(), (1, 1));
        books::audit(&stack.app.db, payer.agent()).await;
    });
}

/// A price that takes longer than a request goes on where it was begun.
#[test]
fn a_slow_price_is_asked_for_again() {
    run(async {
        let (rye, stack) = shop().await;
        let (payer, token) = buyer(&stack).await;
        rye.script(|script| script.slow = 17);
        let pending = ask(&payer, &token, &order()).await;
        assert_eq!(pending.error(), (503, "quote_pending".to_owned()));
        assert_eq!(pending.header("retry-after"), Some("10"));
        assert!(!pending.text.contains("ci_"), "{}", pending.text);
        let unpaid = eventually("the price", || async {
            let unpaid = ask(&payer, &token, &order()).await;
            (unpaid.status == 402).then_some(unpaid)
        })
        .await;
        assert_eq!(rye.begun().len(), 1, "the same offer");
        let id = pay(&payer, &token, &unpaid, &order()).await;
        assert_eq!(payer.finished(&id).await["status"], "completed");
        assert_eq!((rye.orders(), credits(&stack, &payer).await), ((1, 1), CREDITS - PRICE));
    });
}

#[test]
fn what_cannot_be_bought_is_refused_before_a_price() {
    run(async {
        let (rye, stack) = shop().await;
        let (payer, token) = buyer(&stack).await;
        let plain = Script::default;
        let offer = |code| Script { no_offer: Some(code), ..Script::default() };
        let invalid = "invalid_request";
        for (body, script, status, code) in [
            (with("shipping_address.state", json!("Ontario")), plain(), 400, invalid),
            (with("shipping_address.zip_code", json!("10001")), plain(), 400, invalid),
            (with("shipping_address.country", json!("DE")), plain(), 400, invalid),
            (with("shipping_address.phone", json!("911")), plain(), 400, invalid),
            (without_email(), plain(), 400, invalid),
            (with("product_url", json!("http://169.254.169.254/latest")), plain(), 400, invalid),
            (with("product_url", json!("file:///etc/passwd")), plain(), 400, invalid),
            (with("quantity", json!(0)), plain(), 400, invalid),
            (with("variant_id", json!("large")), plain(), 400, invalid),
            (with("product_url", json!("https://shop.example.com/nicotine-vape")), plain(), 400, "restricted_product"),
            (with("product_url", json!("https://shop.example.com/hidden-goods")), plain(), 400, "restricted_product"),
            (with("product_url", json!("https://unsupported.example.com/")), plain(), 400, "merchant_not_supported"),
            (order(), offer("product_out_of_stock"), 409, "out_of_stock"),
            (order(), offer("variant_selections_required"), 400, invalid),
            (order(), offer("constraint_total_price_exceeded"), 400, "price_above_limit"),
            (order(), offer("bot_protection_blocked"), 400, "merchant_not_supported"),
            (order(), Script { cost: (60_000, 0, 0), ..plain() }, 400, "price_above_limit"),
            (order(), Script { balance: 2_671, ..plain() }, 503, "provider_unavailable"),
        ] {
            rye.script(|now| *now = script.clone());
            let refused = ask(&payer, &token, &body).await;
            assert_eq!(refused.error(), (status, code.to_owned()), "{body} {script:?}: {}", refused.text);
        }
        // What the owner denies is told to nobody.
        rye.script(|now| *now = plain());
        let before = rye.begun().len();
        put_rules(&stack, &payer, json!([{"tool": "commerce", "action": "deny", "when": {"always": true}}])).await;
        let denied = ask(&payer, &token, &order()).await;
        assert_eq!(denied.error(), (403, "action_denied_by_policy".to_owned()), "{}", denied.text);
        assert_eq!((rye.begun().len(), rye.orders()), (before, (0, 0)));
        assert_eq!(credits(&stack, &payer).await, CREDITS);
    });
}

/// Whatever changes between the quote and the order: the quoted total is charged, or nothing.
#[test]
fn a_purchase_that_fails_is_paid_back() {
    run(async {
        let (rye, stack) = shop().await;
        let (payer, token) = buyer(&stack).await;
        let failing = |code| Script { failing: Some(code), slow: 0, ..Script::default() };
        let costs = |cost| Script { cost, slow: 0, ..Script::default() };
        for (after, reason, confirmations) in [
            (costs((2_001, 499, 173)), "price_changed", 0),
            (costs((2_000, 498, 173)), "price_changed", 0),
            (costs((2_000, 999, 173)), "price_changed", 0),
            (
                Script { no_offer: Some("product_out_of_stock"), slow: 0, ..Script::default() },
                "product_out_of_stock",
                0,
            ),
            (Script { slow: u32::MAX, ..Script::default() }, "quote_expired", 0),
            (failing("payment_failed"), "payment_failed", 1),
            (failing("insufficient_stock"), "insufficient_stock", 1),
            (Script { confirming: Confirming::Refuse, slow: 0, ..Script::default() }, "provider_refused", 1),
        ] {
            rye.clear();
            let unpaid = ask(&payer, &token, &order()).await;
            assert_eq!(unpaid.status, 402, "{}", unpaid.text);
            rye.script(|now| *now = after.clone());
            let id = pay(&payer, &token, &unpaid, &order()).await;
            let job = payer.finished(&id).await;
            assert_eq!((&job["status"], &job["error_code"]), (&json!("failed"), &json!("checkout_failed")), "{job}");
            assert_eq!(job["error_reason"], reason, "{job}");
            assert_eq!(rye.orders().1, confirmations, "{after:?}");
            assert_eq!(credits(&stack, &payer).await, CREDITS, "{after:?}");
        }
    });
}

/// A confirmation that was not answered is looked up, and never sent again.
#[test]
fn an_order_of_unknown_fate_is_not_ordered_again() {
    run(async {
        let rye = Rye::start().await;
        let clock = Clock::pinned(Clock::system().now());
        let own = clock.clone();
        let stack = stack_with(|options| Options { clock: own, ..with_rye(options, &rye) }).await;
        let (payer, token) = buyer(&stack).await;
        // It was placed.
        rye.script(|script| (script.confirming, script.slow) = (Confirming::TakeAndFail, 0));
        let unpaid = ask(&payer, &token, &order()).await;
        let id = pay(&payer, &token, &unpaid, &order()).await;
        let job = payer.finished(&id).await;
        assert_eq!((&job["status"], rye.orders()), (&json!("completed"), (1, 1)), "{job}");
        assert_eq!(credits(&stack, &payer).await, CREDITS - PRICE);

        // It was not: when the offer has expired, everything comes back.
        rye.clear();
        rye.script(|script| (script.confirming, script.slow) = (Confirming::Fail, 0));
        let unpaid = ask(&payer, &token, &order()).await;
        let id = pay(&payer, &token, &unpaid, &order()).await;
        eventually("the confirmation", || async { (rye.orders().1 == 1).then_some(()) }).await;
        clock.advance(Duration::from_secs(3_700));
        let request = id.parse().expect("an id");
        let job = eventually("the end", || async {
            jobs::wake(&stack.app.db, &*stack.queue, request).await;
            let job = store::load_latest(&stack.app.db, request).await.unwrap().expect("a job");
            job.outcome.is_some().then_some(())
        });
        job.await;
        let job = payer.client.get(&format!("/v1/requests/{id}"), &[("authorization", &token)]).await.json();
        assert_eq!((&job["status"], &job["error_reason"]), (&json!("failed"), &json!("not_confirmed")), "{job}");
        assert_eq!((rye.orders(), credits(&stack, &payer).await), ((0, 1), CREDITS - PRICE));
    });
}

/// After the end: parcels are followed, a cancelled order is paid back once, and the agent is told of each step.
#[test]
fn an_order_is_followed_and_paid_back_if_the_shop_cancels_it() {
    run(async {
        let rye = Rye::start().await;
        let clock = Clock::pinned(Clock::system().now());
        let own = clock.clone();
        let stack =
            stack_with(|options| Options { clock: own, background: Background::Worker, ..with_rye(options, &rye) })
                .await;
        let (payer, token) = buyer(&stack).await;
        let unpaid = ask(&payer, &token, &order()).await;
        let id = pay(&payer, &token, &unpaid, &order()).await;
        assert_eq!(payer.finished(&id).await["status"], "completed");
        let toolbox = &stack.toolboxes["worker"];
        let look = async || watch::look(toolbox).await.unwrap().0;
        let tracking = async || {
            let path = format!("/v1/requests/{id}");
            payer.client.get(&path, &[("authorization", &token)]).await.json()["order_tracking"].clone()
        };
        assert_eq!(look().await, 0, "nothing is due");
        clock.advance(Duration::from_secs(3_601));
        assert_eq!(look().await, 0, "nothing has moved");

        let sent = json!([shipment()]);
        rye.script(|script| script.shipments = sent);
        clock.advance(Duration::from_secs(3_601));
        let (one, two) = tokio::join!(look(), look());
        assert_eq!(one + two, 1, "it moves once");
        let seen = tracking().await;
        assert_eq!((&seen["status"], &seen["tracking_number"]), (&json!("shipped"), &json!("1Z999")), "{seen}");

        rye.script(|script| script.cancelled = true);
        clock.advance(Duration::from_secs(3_601));
        let (one, two) = tokio::join!(look(), look());
        assert_eq!(one + two, 1, "it is paid back once");
        let seen = tracking().await;
        assert_eq!((&seen["status"], &seen["returned_usdc"]), (&json!("canceled"), &json!("28.060000")), "{seen}");
        assert_eq!(credits(&stack, &payer).await, CREDITS);
        let receipts = books::receipts(&stack.app.db, payer.agent()).await;
        assert_eq!(receipts[0].kept, Some(Usdc::ZERO), "{receipts:?}");
        clock.advance(Duration::from_secs(30 * 24 * 3_600));
        assert_eq!(look().await, 0, "it is over");
        let told = payer.client.get("/v1/tools/notifications", &[("authorization", &token)]).await.text;
        assert_eq!(told.matches("order_updated").count(), 2, "{told}");
    });
}

#[test]
fn products_are_found_by_words_and_read_from_pages() {
    run(async {
        let (catalog, page) = (Catalog::start().await, shop_page().await);
        let stack = stack_with(|options| {
            options
                .with("PRODUCT_PROVIDERS", "shopify")
                .with("PROVIDER_URLS", json!({"shopify": catalog.url}).to_string())
                .with("LOCAL_FETCH_ALLOW", &page)
        })
        .await;
        let payer = Payer::with(&stack, 1_000_000).await;
        let find = async |body: Value| {
            let accepted = payer.buy("/v1/tools/commerce/search", &body).await;
            assert_eq!(accepted.status, 202, "{}", accepted.text);
            payer.finished(accepted.json()["request_id"].as_str().expect("an id")).await
        };
        let job = find(json!({"query": "running shoes", "limit": 2})).await;
        let products = &job["result"]["products"];
        assert_eq!((&job["result"]["count"], &products[0]["price"]), (&json!(2), &json!(120)), "{job}");
        assert_eq!(products[0]["variants"][0]["variant_id"], "gid://shopify/ProductVariant/1", "{job}");
        let asked = catalog.asked();
        let arguments = &asked[0]["params"]["arguments"];
        assert_eq!(arguments["catalog"]["query"], "running shoes", "{asked:?}");
        let profile = arguments["meta"]["ucp-agent"]["profile"].as_str().expect("a profile");
        let path = profile.strip_prefix(&stack.base_url).expect("at this service");
        assert!(payer.client.get(path, &[]).await.json()["ucp"]["version"].is_string());

        let job = find(json!({"query": format!("http://{page}/lamp")})).await;
        let lamp = &job["result"]["products"][0];
        assert_eq!((&lamp["title"], &lamp["price"]), (&json!("Desk lamp"), &json!(1299.5)), "{job}");
        assert_eq!((&lamp["currency"], &lamp["in_stock"]), (&json!("EUR"), &json!(true)), "{job}");
        // A catalog that fails costs nothing.
        catalog.fail();
        let job = find(json!({"query": "running shoes"})).await;
        assert_eq!((&job["status"], &job["error_code"]), (&json!("failed"), &json!("provider_unavailable")), "{job}");
        for query in ["http://169.254.169.254/", "http://localhost/x", "", "---"] {
            let refused = payer.ask("/v1/tools/commerce/search", &json!({"query": query})).await;
            assert_eq!(refused.error().0, 400, "{query}: {}", refused.text);
        }
        books::audit(&stack.app.db, payer.agent()).await;
    });
}

/// A feed that the operator has imported is searched without any provider, and a search is refused without it.
#[test]
fn the_operators_own_products_are_found() {
    run(async {
        let stack = stack_with(|options| options).await;
        let payer = Payer::with(&stack, 1_000_000).await;
        let (path, body) = ("/v1/tools/commerce/search", json!({"query": "desk lamp under 30 usd"}));
        assert_eq!(payer.ask(path, &body).await.error(), (503, "provider_unavailable".to_owned()));
        let rows = "id,title,price,link,availability\n1,Brass desk lamp,19.90 USD,https://shop.example/1,in_stock\n\
                    2,Desk lamp,45.00 USD,https://shop.example/2,in_stock\n3,Chair,20.00 USD,https://shop.example/3,in_stock\n";
        let import = feed::import(rows.as_bytes(), Shop::default());
        assert_eq!((import.products, import.refused), (3, 0), "{:?}", import.problems);
        feed::publish(&*stack.app.blobs, import, stack.app.clock.now()).await.expect("an import");
        let accepted = payer.buy(path, &body).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let job = payer.finished(accepted.json()["request_id"].as_str().expect("an id")).await;
        let found = &job["result"];
        assert_eq!((&found["count"], &found["products"][0]["price"]), (&json!(1), &json!(19.9)), "{job}");
    });
}

/// The bodies that were sent, and whether it fails from now on.
type Asked = Arc<Mutex<(Vec<Value>, bool)>>;

/// A server of the Universal Commerce Protocol's catalog (ucp.dev/specification/catalog/mcp, read 2026-11).
struct Catalog {
    url: String,
    state: Asked,
}

impl Catalog {
    async fn start() -> Catalog {
        let state: Asked = Arc::default();
        let answer = |State(state): State<Asked>, Json(body): Json<Value>| async move {
            let mut state = state.lock().expect("the state");
            let catalog = body["params"]["arguments"]["catalog"].clone();
            let is_valid = (&body["jsonrpc"], &body["method"]) == (&json!("2.0"), &json!("tools/call"))
                && body["params"]["name"] == "search_catalog"
                && body["params"]["arguments"]["meta"]["ucp-agent"]["profile"].is_string()
                && catalog["query"].is_string();
            state.0.push(body);
            if !is_valid || state.1 {
                return Json(json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "invalid"}}));
            }
            let shoe = |number: u32| {
                json!({
                    "id": format!("prod_{number}"), "title": format!("Runner {number}"),
                    "url": format!("https://shop.example/products/runner-{number}"),
                    "price_range": {"min": {"amount": 12_000, "currency": "USD"}, "max": {"amount": 12_000, "currency": "USD"}},
                    "variants": [{"id": format!("gid://shopify/ProductVariant/{number}"), "title": "10",
                        "price": {"amount": 12_000, "currency": "USD"}, "availability": {"available": true}}],
                })
            };
            let products: Vec<Value> = (1..=3).map(shoe).collect();
            Json(json!({"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": {"products": products}}}))
        };
        let router = Router::new().route("/api/ucp/mcp", post(answer)).with_state(state.clone());
        Catalog { url: format!("http://{}", serve(router).await), state }
    }

    fn asked(&self) -> Vec<Value> {
        self.state.lock().expect("the state").0.clone()
    }

    fn fail(&self) {
        self.state.lock().expect("the state").1 = true;
    }
}

/// The host of a shop with a page that describes its product.
pub async fn shop_page() -> String {
    let lamp = Html(
        r#"<html><body><h1>Lamp</h1><script type="application/ld+json">{"@context": "https://schema.org", "@type": "Product",
        "name": "Desk lamp", "offers": {"@type": "Offer", "price": "1299.50", "priceCurrency": "EUR",
        "availability": "https://schema.org/InStock"}}</script></body></html>"#,
    );
    serve(Router::new().route("/lamp", get(async move || lamp))).await
}

async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let host = listener.local_addr().expect("an address").to_string();
    tokio::spawn(async move { drop(axum::serve(listener, router).await) });
    host
}

/// The process dies at a request of the purchase, and another goes on: bought and charged once, or neither.
#[test]
fn a_purchase_is_made_once_after_any_crash() {
    run(async {
        crashes::at_every_second_request(20, async |step, arrives| {
            let rye = Rye::start().await;
            rye.script(|script| script.slow = 0);
            let prepare = |options: Options| with_rye(options, &rye);
            let resumed = crashes::resume(step, arrives, prepare, (CREDITS, PATH, &order())).await;
            let label = format!("step {step}, arrives: {arrives}: {}", resumed.job);
            let (placed, confirmations) = rye.orders();
            assert!(confirmations <= 1, "{label}");
            let is_done = resumed.job["status"] == "completed";
            assert_eq!(placed == 1, is_done, "{label}");
            let left = if is_done { CREDITS - PRICE } else { CREDITS };
            assert_eq!(credits(&resumed.stack, &resumed.payer).await, left, "{label}");
            resumed.stack.kill().await;
            resumed.died
        })
        .await;
    });
}
