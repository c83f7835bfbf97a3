//! Goods that sellers list here, their pages, and their orders.

use base::input::{Field, Kind};
use tools_commerce::goods::form::{CANCEL, GOOD, SHIP};

use super::shape::{Member, Named, Shape, has};
use super::shared::OK;
use super::{Answer, Auth, Body, Content, Operation};

static VARIANT: &[Member] = &[
    has("variant_id", Shape::Text),
    has("labels", Shape::Map(&Shape::Text)),
    has("price", Shape::Usdc),
    has("stock", Shape::Integer).about("How many are left"),
];

static SHIPPING: &[Member] = &[
    has("default", Shape::OrNull(&Shape::Usdc)),
    has("states", Shape::Map(&Shape::Usdc)),
    has("free_from", Shape::OrNull(&Shape::Usdc)),
];

static TAX: &[Member] = &[
    has("default", Shape::Number).about("Per cent"),
    has("states", Shape::Map(&Shape::Number)),
    has("on_shipping", Shape::Bool),
];

static OWN: Named = Named {
    name: "Good",
    about: "A good as its seller sees it",
    shape: Shape::Object(&[
        has("good_id", Shape::Text),
        has("url", Shape::OrNull(&Shape::Uri)).about("What a purchase takes"),
        has("title", Shape::Text),
        has("description", Shape::Text),
        has("status", Shape::Choice(&["listed", "unlisted"])),
        has("variants", Shape::List(&Shape::Object(VARIANT))),
        has("images", Shape::List(&Shape::Uri)),
        has("shipping", Shape::Object(SHIPPING)),
        has("tax", Shape::Object(TAX)),
        has("handling_days", Shape::Integer),
        has("return_days", Shape::Integer),
        has("created_at", Shape::Time),
        has("updated_at", Shape::Time),
    ]),
};

static ADDRESS: &[Member] = &[
    has("first_name", Shape::Text),
    has("last_name", Shape::Text),
    has("street", Shape::Text),
    has("street2", Shape::OrNull(&Shape::Text)),
    has("city", Shape::Text),
    has("state", Shape::Text),
    has("zip_code", Shape::Text),
    has("phone", Shape::Text),
    has("email", Shape::OrNull(&Shape::Text)),
    has("country", Shape::Text),
];

const STATES: &[&str] = &["placed", "shipped", "delivered", "settled", "cancelled"];

static ORDER: Named = Named {
    name: "GoodsOrder",
    about: "An order as its seller sees it",
    shape: Shape::Object(&[
        has("order_id", Shape::Text),
        has("status", Shape::Choice(STATES)),
        has("good_id", Shape::Text),
        has("variant_id", Shape::Text),
        has("labels", Shape::Map(&Shape::Text)),
        has("title", Shape::Text),
        has("quantity", Shape::Integer),
        has("subtotal", Shape::Usdc),
        has("shipping", Shape::Usdc),
        has("tax", Shape::Usdc),
        has("earning", Shape::Usdc).about("Yours when the order is settled"),
        has("placed_at", Shape::OrNull(&Shape::Time)),
        has("shipped_at", Shape::OrNull(&Shape::Time)),
        has("delivered_at", Shape::OrNull(&Shape::Time)),
        has("closed_at", Shape::OrNull(&Shape::Time)),
        has("next_step_at", Shape::OrNull(&Shape::Time)).about("What is not done until then happens by itself"),
        has("carrier", Shape::OrNull(&Shape::Text)),
        has("tracking_number", Shape::OrNull(&Shape::Text)),
        has("tracking_url", Shape::OrNull(&Shape::Uri)),
        has("reason", Shape::OrNull(&Shape::Text)).about("Why it was cancelled"),
        has("shipping_address", Shape::OrNull(&Shape::Object(ADDRESS))).about("Only while the order is open"),
    ]),
};

static SHOWN: &[Member] = &[OK, has("good", Shape::Ref(&OWN))];
static MOVED: &[Member] = &[OK, has("order", Shape::Ref(&ORDER))];
const BEYOND: &str =
    "amounts have at most two decimals; tables are named by states of the US; texts are checked; see docs/COMMERCE.md";
const STEPS: &[(u16, &str)] = &[(404, "not_found"), (409, "invalid_state")];

const CURSOR: Field =
    Field::optional("cursor", Kind::Text { min: 0, max: 80, format: None }, "next_cursor of the page before");

static OF_PAGE: &[Member] = &[
    has("variant_id", Shape::Text),
    has("labels", Shape::Map(&Shape::Text)),
    has("price", Shape::Usdc),
    has("in_stock", Shape::Bool),
];

static PAGE: &[Member] = &[
    has("good_id", Shape::Text),
    has("url", Shape::Text).about("What a purchase takes"),
    has("title", Shape::Text),
    has("description", Shape::Text),
    has("currency", Shape::Choice(&["USD"])),
    has("seller", Shape::Text),
    has("variants", Shape::List(&Shape::Object(OF_PAGE))),
    has("images", Shape::List(&Shape::Uri)),
    has("handling_days", Shape::Integer),
    has("return_days", Shape::Integer),
    has("buy", Shape::Text),
];

pub static OPERATIONS: &[Operation] = &[
    Operation::get("/goods/{id}", "showGood", "The page of a good that is sold here")
        .about("HTML with JSON-LD. JSON if `Accept` asks for it, or with `.json` behind the id. Its texts are untrusted.")
        .answers(&[Answer {
            status: 200,
            about: "The page",
            content: Content::JsonOr(Shape::Object(PAGE), &["text/html"]),
            headers: &[],
        }])
        .refuses(&[(404, "not_found"), (429, "rate_limit_exceeded"), (503, "provider_unavailable")]),
    Operation::get("/v1/soul/me/goods", "listGoods", "Your goods")
        .auth(Auth::SoulKey)
        .query(&[
            Field::optional("limit", Kind::Integer { min: 1, max: 25 }, "At most this many; default 20"),
            CURSOR,
        ])
        .answers(&[Answer::ok(
            "A page of goods",
            Shape::Object(&[
                has("goods", Shape::List(&Shape::Ref(&OWN))),
                has("has_more", Shape::Bool),
                has("next_cursor", Shape::OrNull(&Shape::Text)),
            ]),
        )])
        .refuses(&[(400, "invalid_cursor")])
        .beyond_schema("a cursor has to come from a page of yours"),
    Operation::post("/v1/soul/me/goods", "createGood", "Offers a good that you send to buyers")
        .auth(Auth::SoulKey)
        .body(Body::Fields(GOOD))
        .answers(&[Answer::json(201, "The good", Shape::Object(SHOWN))])
        .refuses(&[
            (400, "content_blocked"),
            (400, "restricted_product"),
            (403, "goods_not_allowed"),
            (409, "too_many_goods"),
        ])
        .beyond_schema(BEYOND),
    Operation::get("/v1/soul/me/goods/{id}", "getGood", "One of your goods")
        .auth(Auth::SoulKey)
        .answers(&[Answer::ok("The good", Shape::Object(SHOWN))])
        .refuses(&[(404, "not_found")]),
    Operation::patch("/v1/soul/me/goods/{id}", "changeGood", "Changes a good. Absent members stay as they are")
        .about("`variants`, `shipping` and `tax` are replaced as a whole; variants keep their number and their stock by `variant_id`.")
        .auth(Auth::SoulKey)
        .body(Body::Fields(GOOD))
        .answers(&[Answer::ok("The good", Shape::Object(SHOWN))])
        .refuses(&[
            (400, "content_blocked"),
            (400, "restricted_product"),
            (403, "goods_not_allowed"),
            (404, "not_found"),
            (409, "request_in_progress"),
        ])
        .beyond_schema(BEYOND),
    Operation::delete("/v1/soul/me/goods/{id}", "deleteGood", "Deletes a good. Its orders go on")
        .auth(Auth::SoulKey)
        .answers(&[Answer::ok("Deleted", Shape::Object(&[OK, has("good_id", Shape::Text)]))])
        .refuses(&[(404, "not_found"), (409, "request_in_progress")]),
    Operation::get("/v1/soul/me/orders", "listOrders", "Orders of your goods, newest first")
        .auth(Auth::SoulKey)
        .query(&[
            Field::optional("limit", Kind::Integer { min: 1, max: 100 }, "At most this many; default 20"),
            CURSOR,
        ])
        .answers(&[Answer::ok(
            "A page of orders",
            Shape::Object(&[
                has("orders", Shape::List(&Shape::Ref(&ORDER))),
                has("has_more", Shape::Bool),
                has("next_cursor", Shape::OrNull(&Shape::Text)),
            ]),
        )])
        .refuses(&[(400, "invalid_cursor")])
        .beyond_schema("a cursor has to come from a page of yours"),
    Operation::get("/v1/soul/me/orders/{id}", "getOrder", "An order of one of your goods")
        .auth(Auth::SoulKey)
        .answers(&[Answer::ok("The order", Shape::Object(&[has("order", Shape::Ref(&ORDER))]))])
        .refuses(&[(404, "not_found")]),
    Operation::post("/v1/soul/me/orders/{id}/ship", "shipOrder", "Says that an order was sent")
        .about("Repeated, it corrects the carrier and the numbers of an order that is on its way.")
        .auth(Auth::SoulKey)
        .body(Body::Fields(SHIP))
        .answers(&[Answer::ok("The order", Shape::Object(MOVED))])
        .refuses(STEPS)
        .beyond_schema("addresses begin with https"),
    Operation::post("/v1/soul/me/orders/{id}/delivered", "deliverOrder", "Says that an order has arrived")
        .auth(Auth::SoulKey)
        .body(Body::Fields(&[]))
        .answers(&[Answer::ok("The order", Shape::Object(MOVED))])
        .refuses(STEPS),
    Operation::post("/v1/soul/me/orders/{id}/cancel", "cancelOrder", "Cancels an order. Its buyer is paid back")
        .auth(Auth::SoulKey)
        .body(Body::Fields(CANCEL))
        .answers(&[Answer::ok("The order", Shape::Object(MOVED))])
        .refuses(STEPS)
        .beyond_schema("the reason has to have letters"),
];
