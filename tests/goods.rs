//! Goods that sellers send to buyers: listed, bought, sent, settled; races, deaths of processes, and other people's keys.

use std::time::Duration;

use base::clock::Clock;
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use futures_util::future::join_all;
use ledger::payout::PayoutId;
use local::stack::Background;
use local::{Options, Stack};
use serde_json::{Map, Value, json};
use tools::spec::Claiming;
use tools_commerce::goods::good::{self, Seller as OfGood};
use tools_commerce::goods::sale::{self, Sale, State};
use tools_commerce::goods::{buying, listing, watch};

use crate::support::seller::Seller;
use crate::support::{Answer, Payer, books, crashes, eventually, run, stack_with};

const PATH: &str = "/v1/tools/commerce/buy";
const CREDITS: u64 = 200_000_000;
/// A lamp for 20.00, sent for 4.99, with 8.25 % of tax: 26.64; and 5 %, rounded up to a cent.
const EARNED: u64 = 26_640_000;
const PRICE: u64 = 27_980_000;
const DAY: Duration = Duration::from_secs(24 * 3600);

fn lamp(stock: u32) -> Value {
    json!({
        "title": "Brass lamp", "description": "It shines.", "price": "20.00", "stock": stock,
        "shipping": {"default": "4.99"}, "tax": {"states": {"CA": 8.25}}, "handling_days": 2, "return_days": 30,
    })
}

fn order(url: &str) -> Value {
    json!({
        "product_url": url,
        "shipping_address": {
            "first_name": "Ada", "last_name": "Lovelace", "street": "1 Market Street", "city": "San Francisco",
            "state": "CA", "zip_code": "94105", "phone": "415 555 0100",
        },
    })
}

/// A shop in a stack whose time the test moves.
struct World {
    stack: Stack,
    clock: Clock,
    seller: Seller,
    good: String,
    url: String,
}

impl World {
    async fn with(stock: u32) -> World {
        let clock = Clock::pinned(Clock::system().now());
        let own = clock.clone();
        let stack = stack_with(|options| Options {
            clock: own,
            background: Background::Worker,
            ..options.with("GOODS_SELLERS", "*")
        })
        .await;
        let seller = Seller::new(&stack).await;
        let made = seller.call("POST", "goods", &[], &lamp(stock)).await.expect("an answer");
        assert_eq!(made.status, 201, "{}", made.text);
        let made = made.json()["good"].clone();
        let text = |name: &str| made[name].as_str().expect(name).to_owned();
        World { clock, seller, good: text("good_id"), url: text("url"), stack }
    }

    async fn buyer(&self) -> (Payer, String) {
        let payer = Payer::with(&self.stack, 0).await;
        payer.give_credits(&self.stack, CREDITS).await;
        let token = payer.token(&self.stack).await;
        (payer, token)
    }

    /// Buys a lamp: the id of the purchase, which is the order's.
    async fn bought(&self, payer: &Payer, token: &str) -> String {
        let quote = quoted(payer, token, &order(&self.url)).await;
        let accepted = pay(payer, token, &quote, &order(&self.url)).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let id = accepted.json()["request_id"].as_str().expect("an id").to_owned();
        // A proof would be from before the time that the test has let pass.
        let (path, named) = (format!("/v1/requests/{id}"), [("authorization", token)]);
        let job = eventually("the job to end", || async {
            let job = payer.client.get(&path, &named).await.json();
            (job["status"] != "pending" && job["status"] != "processing").then_some(job)
        })
        .await;
        assert_eq!((&job["status"], &job["result"]["order_status"]), (&json!("completed"), &json!("placed")), "{job}");
        id
    }

    async fn left(&self) -> u32 {
        good::left(&self.stack.app.db, &self.good, 1).await.unwrap().expect("a stock")
    }

    async fn look(&self) -> u32 {
        watch::look(&self.stack.toolboxes["worker"]).await.unwrap().0
    }

    async fn sale(&self, id: &str) -> Sale {
        sale::load(&self.stack.app.db, id.parse().expect("an id")).await.unwrap().expect("an order")
    }

    async fn credits(&self, payer: &Payer) -> u64 {
        books::audit(&self.stack.app.db, payer.agent()).await.credits.micro()
    }

    async fn step(&self, id: &str, step: &str, body: &Value) -> Answer {
        self.seller.call("POST", &format!("orders/{id}/{step}"), &[], body).await.expect("an answer")
    }

    async fn earned(&self) -> u64 {
        let pending = self.seller.get("balance").await["pending_usdc"].to_string();
        Usdc::parse(&pending).expect("an amount").micro()
    }
}

async fn ask(payer: &Payer, token: &str, body: &Value) -> Answer {
    payer.client.post(PATH, &[("authorization", token)], body).await
}

async fn quoted(payer: &Payer, token: &str, body: &Value) -> String {
    let unpaid = ask(payer, token, body).await;
    assert_eq!(unpaid.status, 402, "{}", unpaid.text);
    unpaid.json()["context"]["quote_id"].as_str().expect("a quote").to_owned()
}

async fn pay(payer: &Payer, token: &str, quote: &str, body: &Value) -> Answer {
    payer.client.post(PATH, &[("authorization", token), ("x-quote-id", quote)], body).await
}

/// From the listing to the payout's balance.
#[test]
fn a_good_is_bought_sent_and_settled() {
    run(async {
        let world = World::with(5).await;
        let (payer, token) = world.buyer().await;
        let unpaid = ask(&payer, &token, &order(&world.url)).await.json()["context"].clone();
        let line = |name: &str| Usdc::parse(unpaid[name].as_str().expect(name)).expect("an amount").micro();
        assert_eq!(
            (line("subtotal"), line("shipping"), line("tax"), line("total")),
            (20_000_000, 4_990_000, 1_650_000, PRICE)
        );
        let id = world.bought(&payer, &token).await;
        assert_eq!((world.left().await, world.credits(&payer).await), (4, CREDITS - PRICE));
        let shown = world.seller.get(&format!("orders/{id}")).await["order"].clone();
        assert_eq!(
            (&shown["status"], &shown["shipping_address"]["city"]),
            (&json!("placed"), &json!("San Francisco")),
            "{shown}"
        );
        assert_eq!(world.seller.get("orders").await["orders"], json!([shown]));

        let parcel =
            json!({"carrier": "UPS", "tracking_number": "1Z999", "tracking_url": "https://track.example/1Z999"});
        for _ in 0..2 {
            let sent = world.step(&id, "ship", &parcel).await;
            assert_eq!((sent.status, &sent.json()["order"]["status"]), (200, &json!("shipped")), "{}", sent.text);
        }
        let path = format!("/v1/requests/{id}");
        let seen = payer.client.get(&path, &[("authorization", &token)]).await.json()["order_tracking"].clone();
        assert_eq!((&seen["status"], &seen["tracking_number"]), (&json!("shipped"), &json!("1Z999")), "{seen}");
        let notes = payer.client.get("/v1/tools/notifications", &[("authorization", &token)]).await.text;
        assert!(notes.contains("order_updated"), "{notes}");

        // It counts as delivered by itself, and is settled when nothing can be sent back any more.
        world.clock.advance(14 * DAY + Duration::from_secs(1));
        assert_eq!((world.look().await, world.sale(&id).await.state), (1, State::Delivered));
        world.clock.advance(29 * DAY);
        assert_eq!((world.look().await, world.earned().await), (0, 0));
        world.clock.advance(DAY + Duration::from_secs(1));
        assert_eq!((world.look().await, world.earned().await), (1, EARNED));
        assert_eq!((world.look().await, world.earned().await), (0, EARNED));
        let after = world.sale(&id).await;
        assert_eq!((after.state, after.address), (State::Settled, None), "the address is gone");
        assert_eq!(
            world.step(&id, "cancel", &json!({"reason": "too late"})).await.error(),
            (409, "invalid_state".to_owned())
        );
        assert_eq!(world.credits(&payer).await, CREDITS - PRICE);
        let (balance, _) = world.seller.audit().await;
        assert_eq!((balance.available().micro(), balance.in_flight), (EARNED, None::<PayoutId>));
    });
}

/// What is not sent in time comes back by itself, once, with the stock.
#[test]
fn an_order_that_is_not_sent_is_paid_back() {
    run(async {
        let world = World::with(5).await;
        let (payer, token) = world.buyer().await;
        let id = world.bought(&payer, &token).await;
        world.clock.advance(Duration::from_secs(3_601));
        assert_eq!(world.look().await, 0, "how it was paid is noted");
        assert!(world.sale(&id).await.paid.is_some());
        world.clock.advance(4 * DAY);
        let (one, two) = tokio::join!(world.look(), world.look());
        assert!(one + two >= 1);
        assert_eq!((world.left().await, world.credits(&payer).await), (5, CREDITS));
        let sale = world.sale(&id).await;
        assert_eq!((sale.state, sale.reason.as_deref()), (State::Cancelled, Some("not_shipped")));
        assert_eq!(world.step(&id, "ship", &json!({"carrier": "UPS"})).await.status, 409);
        world.clock.advance(100 * DAY);
        assert_eq!((world.look().await, world.earned().await), (0, 0));
    });
}

/// Who changes a good after its price was told sells nothing at that price.
#[test]
fn what_was_changed_since_its_quote_is_not_bought() {
    run(async {
        let world = World::with(5).await;
        let (payer, token) = world.buyer().await;
        let quote = quoted(&payer, &token, &order(&world.url)).await;
        let worse = json!({"title": "Picture of a lamp", "return_days": 0});
        let path = format!("goods/{}", world.good);
        let changed = world.seller.call("PATCH", &path, &[], &worse).await.expect("an answer");
        assert_eq!(changed.status, 200, "{}", changed.text);
        let refused = pay(&payer, &token, &quote, &order(&world.url)).await;
        assert_eq!(refused.error(), (400, "invalid_quote".to_owned()), "{}", refused.text);
        assert_eq!((world.left().await, world.credits(&payer).await), (5, CREDITS));
        // A new quote sells the good as it is now.
        world.bought(&payer, &token).await;
        assert_eq!(world.left().await, 4);
        for text in ["f", "1", "-", "0_0", "000001795000000_x"] {
            let wrong =
                world.seller.call("GET", &format!("orders?cursor={text}"), &[], &json!({})).await.expect("an answer");
            assert_eq!(wrong.error(), (400, "invalid_cursor".to_owned()), "{text}");
        }
        let hidden = json!({"description": "It shines. Comes with cannabis."});
        let refused = world.seller.call("PATCH", &path, &[], &hidden).await.expect("an answer");
        assert_eq!(refused.error(), (400, "restricted_product".to_owned()), "{}", refused.text);
    });
}

/// One wallet has the money for one lamp and signs for six: what is not paid is for sale again, without waiting.
#[test]
fn payments_that_fail_hold_no_stock() {
    run(async {
        let world = World::with(10).await;
        let payer = Payer::with(&world.stack, PRICE + 1_000_000).await;
        let orders: Vec<Value> = (1..7)
            .map(|number| {
                let mut order = order(&world.url);
                order["shipping_address"]["street"] = json!(format!("{number} Market Street"));
                order
            })
            .collect();
        let asked = join_all(orders.iter().map(|order| payer.ask(PATH, order))).await;
        let paid = orders.iter().zip(&asked).map(|(order, unpaid)| payer.redeem(PATH, unpaid, order));
        let answers = join_all(paid).await;
        let taken = answers.iter().filter(|answer| answer.status == 202).count();
        assert!(taken >= 1, "{:?}", answers.iter().map(|answer| &answer.text).collect::<Vec<_>>());
        eventually("the stock of one order", || async { (world.left().await == 9).then_some(()) }).await;
        assert_eq!(payer.balance(&world.stack).await, 1_000_000);
    });
}

/// Orders about which nothing can be done do not hold up those behind them.
#[test]
fn orders_that_cannot_be_looked_at_stand_aside() {
    run(async {
        let world = World::with(5).await;
        let (payer, token) = world.buyer().await;
        let id = world.bought(&payer, &token).await;
        let good = world.sale(&id).await;
        let db = &world.stack.app.db;
        // More than one run takes, in each partition; their receipts are gone.
        for _ in 0..130 {
            let request = RequestId::random();
            let due = good.at;
            let broken = Sale { request, state: State::Delivered, due: Some(due), return_days: 0, ..good.clone() };
            let put = platform::store::Write::put(&db.tables.jobs, sale::key(request), &broken).unwrap();
            db.transact(&[put, sale::Due { request, due }.put(db).unwrap()]).await.unwrap();
        }
        world.clock.advance(10 * DAY);
        for _ in 0..3 {
            watch::look(&world.stack.toolboxes["worker"]).await.unwrap();
        }
        assert_eq!((world.sale(&id).await.state, world.left().await), (State::Cancelled, 5));
    });
}

/// Thirty buyers at once, and five lamps.
#[test]
fn no_more_is_sold_than_there_is() {
    run(async {
        let world = World::with(5).await;
        let buyers = join_all((0..6).map(|_| world.buyer())).await;
        let mut quotes = Vec::new();
        for (payer, token) in &buyers {
            for _ in 0..5 {
                quotes.push((payer, token, quoted(payer, token, &order(&world.url)).await));
            }
        }
        let body = order(&world.url);
        let answers = join_all(quotes.iter().map(|(payer, token, quote)| pay(payer, token, quote, &body))).await;
        let mut sold = 0;
        for ((payer, ..), answer) in quotes.iter().zip(&answers) {
            match answer.status {
                202 => {
                    sold += 1;
                    let id = answer.json()["request_id"].as_str().expect("an id").to_owned();
                    assert_eq!(payer.finished(&id).await["status"], "completed");
                }
                _ => assert_eq!(answer.error(), (409, "out_of_stock".to_owned()), "{}", answer.text),
            }
        }
        assert_eq!((sold, world.left().await), (5, 0));
        let mut charged = 0;
        for (payer, _) in &buyers {
            charged += CREDITS - world.credits(payer).await;
        }
        assert_eq!(charged, 5 * PRICE);
        assert_eq!(world.seller.get("orders").await["orders"].as_array().map(Vec::len), Some(5));
        let (payer, token) = &buyers[0];
        assert_eq!(ask(payer, token, &body).await.error(), (409, "out_of_stock".to_owned()));
        // Pages of the list have each order once.
        let first = world.seller.get("orders?limit=3").await;
        let next = first["next_cursor"].as_str().expect("a cursor");
        let second = world.seller.get(&format!("orders?limit=3&cursor={next}")).await;
        assert_eq!((second["orders"].as_array().map(Vec::len), &second["has_more"]), (Some(2), &json!(false)));
    });
}

/// An order that is cancelled while it is sent is paid back once; its lamp is in the stock exactly if it was not sent.
#[test]
fn an_order_is_cancelled_while_it_is_sent() {
    run(async {
        let world = World::with(5).await;
        let (payer, token) = world.buyer().await;
        for _ in 0..4 {
            let before = world.left().await;
            let id = world.bought(&payer, &token).await;
            let (parcel, reason) = (json!({"carrier": "UPS"}), json!({"reason": "it is broken"}));
            let (sent, cancelled, again) = tokio::join!(
                world.step(&id, "ship", &parcel),
                world.step(&id, "cancel", &reason),
                world.step(&id, "cancel", &reason)
            );
            assert!(matches!(sent.status, 200 | 409), "{}", sent.text);
            assert_eq!((cancelled.status, again.status), (200, 200), "{} {}", cancelled.text, again.text);
            let sale = world.sale(&id).await;
            assert_eq!((sale.state, sale.address.is_none()), (State::Cancelled, true));
            assert_eq!(world.credits(&payer).await, CREDITS);
            let is_back = world.left().await == before;
            assert_eq!(is_back, sale.shipped.is_none(), "{sale:?}");
        }
    });
}

/// The buyer's money goes back, or becomes the seller's: never both.
#[test]
fn an_order_is_settled_or_paid_back() {
    run(async {
        let world = World::with(20).await;
        let (payer, token) = world.buyer().await;
        let (mut kept, mut earned) = (CREDITS, 0);
        for _ in 0..5 {
            let id = world.bought(&payer, &token).await;
            kept -= PRICE;
            for (step, body) in [("ship", json!({"carrier": "UPS"})), ("delivered", json!({}))] {
                assert_eq!(world.step(&id, step, &body).await.status, 200);
            }
            world.clock.advance(31 * DAY);
            let reason = json!({"reason": "it came back"});
            let (cancelled, ..) = tokio::join!(world.step(&id, "cancel", &reason), world.look(), world.look());
            match world.sale(&id).await.state {
                State::Cancelled => kept += PRICE,
                State::Settled => earned += EARNED,
                other => panic!("{other:?}"),
            }
            let is_cancelled = world.sale(&id).await.state == State::Cancelled;
            assert_eq!(cancelled.status, if is_cancelled { 200 } else { 409 }, "{}", cancelled.text);
            assert_eq!((world.credits(&payer).await, world.earned().await), (kept, earned));
        }
        world.seller.audit().await;
    });
}

/// Whatever the seller changes after the quote: the quoted total is charged, or nothing.
#[test]
fn a_good_is_not_bought_at_an_older_price() {
    run(async {
        let world = World::with(5).await;
        let (payer, token) = world.buyer().await;
        let path = format!("goods/{}", world.good);
        for change in [
            json!({"price": "20.01"}),
            json!({"price": "20.00", "tax": {"default": 0}}),
            json!({"tax": {"states": {"CA": 8.25}}, "status": "unlisted"}),
        ] {
            let quote = quoted(&payer, &token, &order(&world.url)).await;
            let changed = world.seller.call("PATCH", &path, &[], &change).await.expect("an answer");
            assert_eq!(changed.status, 200, "{}", changed.text);
            let refused = pay(&payer, &token, &quote, &order(&world.url)).await;
            assert_eq!(refused.error(), (400, "invalid_quote".to_owned()), "{change}: {}", refused.text);
            assert_eq!((world.left().await, world.credits(&payer).await), (5, CREDITS), "{change}");
        }
        assert_eq!(world.seller.get("orders").await["orders"], json!([]));
        assert_eq!(ask(&payer, &token, &order(&world.url)).await.error().0, 400, "it is not for sale");
        let near = json!({"status": "listed", "shipping": {"states": {"NY": "1"}}});
        world.seller.call("PATCH", &path, &[], &near).await.expect("an answer");
        let refused = ask(&payer, &token, &order(&world.url)).await;
        assert!(refused.text.contains("shipping_address.state"), "{}", refused.text);
        for other in [world.url.replace("127.0.0.1", "shop.example"), format!("{}0", world.url)] {
            assert!(matches!(ask(&payer, &token, &order(&other)).await.error().0, 400 | 503), "{other}");
        }
    });
}

/// A job that dies before its first run leaves its stock held; the chore finds it.
#[test]
fn stock_that_nobody_holds_comes_back() {
    run(async {
        let world = World::with(5).await;
        let (payer, _) = world.buyer().await;
        let toolbox = &world.stack.toolboxes["worker"];
        let input: Map<String, Value> = order(&world.url).as_object().expect("an object").clone();
        let locked = buying::quote(toolbox, &world.good, &input).await.expect("a quote");
        let locked = serde_json::to_value(&locked).unwrap().as_object().expect("an object").clone();
        let request_id = RequestId::random();
        let claiming = Claiming {
            agent: payer.agent(),
            request_id,
            input: &input,
            locked: &locked,
            price: Usdc::from_micro(PRICE),
            now: world.clock.now(),
        };
        let writes = buying::claims(toolbox, claiming).await.expect("the claim's writes");
        world.stack.app.db.transact(&writes).await.expect("a claim");
        assert_eq!((world.left().await, world.look().await), (4, 0));
        // The payment came to nothing, and the purchase is made again with the same id: it holds what it held.
        let writes = buying::claims(toolbox, claiming).await.expect("the claim's writes");
        world.stack.app.db.transact(&writes).await.expect("a claim");
        assert_eq!(world.left().await, 4);
        world.clock.advance(Duration::from_secs(901));
        assert_eq!((world.look().await, world.left().await), (1, 5));
        assert_eq!(world.sale(&request_id.to_string()).await.state, State::Dropped);
        world.clock.advance(DAY);
        assert_eq!((world.look().await, world.left().await), (0, 5));
        // What was dropped takes its stock again.
        let claiming = Claiming { now: world.clock.now(), ..claiming };
        let writes = buying::claims(toolbox, claiming).await.expect("the claim's writes");
        world.stack.app.db.transact(&writes).await.expect("a claim");
        assert_eq!((world.left().await, world.sale(&request_id.to_string()).await.state), (4, State::Held));
        world.clock.advance(Duration::from_secs(901));
        assert_eq!((world.look().await, world.left().await), (1, 5));
    });
}

#[test]
fn goods_and_orders_are_their_sellers_alone() {
    run(async {
        let world = World::with(5).await;
        let (payer, token) = world.buyer().await;
        let id = world.bought(&payer, &token).await;
        let other = Seller::new(&world.stack).await;
        let (good, order) = (format!("goods/{}", world.good), format!("orders/{id}"));
        for (method, path, body) in [
            ("GET", good.clone(), Value::Null),
            ("PATCH", good.clone(), json!({"price": "1"})),
            ("DELETE", good, Value::Null),
            ("GET", order.clone(), Value::Null),
            ("POST", format!("{order}/ship"), json!({"carrier": "UPS"})),
            ("POST", format!("{order}/delivered"), json!({})),
            ("POST", format!("{order}/cancel"), json!({"reason": "mine"})),
        ] {
            let refused = other.call(method, &path, &[], &body).await.expect("an answer");
            assert_eq!(refused.error(), (404, "not_found".to_owned()), "{method} {path}: {}", refused.text);
        }
        assert_eq!(
            (other.get("orders").await["orders"].clone(), other.get("goods").await["goods"].clone()),
            (json!([]), json!([]))
        );
        assert_eq!(world.sale(&id).await.state, State::Placed);

        // The page is everybody's, and has no stock in figures.
        let page = payer.client.get(&format!("/goods/{}", world.good), &[("accept", "text/html")]).await;
        assert!(
            page.status == 200 && page.text.contains("Brass lamp") && page.text.contains("ld+json"),
            "{}",
            page.text
        );
        let json = payer.client.get(&format!("/goods/{}.json", world.good), &[]).await.json();
        assert_eq!(
            (&json["variants"][0]["in_stock"], &json["variants"][0]["price"]),
            (&json!(true), &json!("20.000000"))
        );
        // It is found by words and by its address, without any provider.
        for query in ["brass lamps", &world.url] {
            let (search, body) = ("/v1/tools/commerce/search", json!({"query": query}));
            let accepted = payer.client.post(search, &[("authorization", &token)], &body).await;
            assert_eq!(accepted.status, 202, "{}", accepted.text);
            let found = payer.finished(accepted.json()["request_id"].as_str().expect("an id")).await["result"].clone();
            let product = &found["products"][0];
            assert_eq!((&product["product_url"], &product["in_stock"]), (&json!(world.url), &json!(true)), "{found}");
        }
        // A deleted good's order goes on.
        let deleted = world.seller.call("DELETE", &format!("goods/{}", world.good), &[], &Value::Null).await;
        assert_eq!(deleted.expect("an answer").status, 200);
        assert_eq!(world.step(&id, "cancel", &json!({"reason": "closed"})).await.status, 200);
        assert_eq!(
            (world.credits(&payer).await, world.seller.get("goods").await["goods"].clone()),
            (CREDITS - 2 * 2_000, json!([]))
        );
        assert_eq!(payer.client.get(&format!("/goods/{}", world.good), &[]).await.status, 404);
    });
}

#[test]
fn only_sellers_of_the_operators_choice_list_goods() {
    run(async {
        let stack = stack_with(|options| options.with("GOODS_SELLERS", "somebody-else")).await;
        let seller = Seller::new(&stack).await;
        let refused = seller.call("POST", "goods", &[], &lamp(1)).await.expect("an answer");
        assert_eq!(refused.error(), (403, "goods_not_allowed".to_owned()), "{}", refused.text);
        let invalid =
            seller.call("POST", "goods", &[], &json!({"title": "Lamp", "prize": 1})).await.expect("an answer");
        assert_eq!(invalid.error(), (400, "invalid_request".to_owned()));
        assert_eq!(seller.get("goods").await["goods"], json!([]));
    });
}

/// The process dies at a request of the purchase, and another goes on: the job, the charge, the order and the stock agree.
#[test]
fn a_good_is_sold_once_after_any_crash() {
    const ID: &str = "good_00000000000000000001";
    const HERE: &str = "https://tools.example";
    run(async {
        let body = order(&format!("{HERE}/goods/{ID}"));
        let prepare = |options: Options| options.with("GOODS_SELLERS", "*").with("PUBLIC_BASE_URL", HERE);
        let stocked = async |stack: &Stack| {
            let soul = Seller::new(stack).await;
            let seller = OfGood { slug: soul.slug.clone(), id: String::new() };
            let fields = lamp(5).as_object().expect("an object").clone();
            let mut asked = listing::asked(seller, None, &fields, stack.app.clock.now()).expect("a good");
            asked.good.id = ID.to_owned();
            listing::create(&stack.app.db, &asked).await.expect("a good");
        };
        crashes::at_every_second_request(10, async |step, arrives| {
            let resumed = crashes::resume_after(step, arrives, prepare, stocked, (CREDITS, PATH, &body)).await;
            let db = &resumed.stack.app.db;
            let label = format!("step {step}, arrives: {arrives}: {}", resumed.job);
            let id: RequestId = resumed.job["request_id"].as_str().expect("an id").parse().expect("an id");
            let is_done = resumed.job["status"] == "completed";
            let state = sale::load(db, id).await.unwrap().map(|sale| sale.state);
            let left = good::left(db, ID, 1).await.unwrap();
            let agent: AgentId = resumed.payer.agent();
            let credits = books::audit(db, agent).await.credits.micro();
            match is_done {
                true => assert_eq!((state, left, credits), (Some(State::Placed), Some(4), CREDITS - PRICE), "{label}"),
                false => {
                    assert!(matches!(state, None | Some(State::Dropped)), "{label}");
                    assert_eq!((left, credits), (Some(5), CREDITS), "{label}");
                }
            }
            resumed.stack.kill().await;
            resumed.died
        })
        .await;
    });
}
