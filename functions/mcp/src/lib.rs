//! MCP: everything this service sells, and its free reads, as tools of the Model Context Protocol.
//!
//! A tool call is turned into the HTTP request it stands for and answered by the router that answers it over HTTP
//! ([`calls`]); what comes back becomes a tool's result ([`answers`]). So there is nothing here that prices, charges or
//! remembers: the gate does. [`tools`] is the list ([`reads`] of what is free), [`requests`] polling, [`server`] the protocol's methods and
//! [`transport`] its frame.

mod answers;
mod calls;
mod guard;
mod reads;
mod requests;
mod server;
mod tools;
mod transport;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use ::tools::Runner;
use axum::Router;
use axum::middleware::from_fn_with_state;
use gate::Gate;
use gate::app::App;
use gate::insights::audit::CursorKey;
use gate::limits;
use market::Market;
use ring::hmac;

pub use guard::Guard;
pub use server::Server;
pub use transport::router as frame;

use tools::Entry;

/// The direct tools; the worker and the executor run the others.
pub static RUNNERS: LazyLock<Vec<&'static Runner>> =
    LazyLock::new(|| knowledge::RUNNERS.iter().chain(credits::RUNNERS).copied().collect());

/// The routers that tool calls are answered by, under this function's own rights.
pub fn groups(gate: Arc<Gate>, market: Arc<Market>, cursors: CursorKey) -> HashMap<&'static str, Router> {
    let app = &gate.app;
    HashMap::from([
        ("souls", souls::router(market)),
        ("requests", ::requests::router(app.clone())),
        ("account", account::router(app.clone())),
        ("insights", insights::router(app.clone(), cursors)),
        ("credits", credits::router(gate.clone(), None)),
        (knowledge::GROUP, knowledge::router(gate)),
    ])
}

/// What tool calls are answered from.
pub struct Shop {
    app: App,
    /// The routers of the groups that tools lead to, by the group's name.
    groups: HashMap<&'static str, Router>,
    tools: Vec<Entry>,
    /// What their names begin with.
    prefix: String,
    quotes: hmac::Key,
    poll_keys: hmac::Key,
}

/// The protocol's methods over these groups. `quotes` is the service's key of that name.
pub fn server(app: App, groups: HashMap<&'static str, Router>, quotes: &hmac::Key) -> Server {
    let (tools, prefix) = (tools::all(&app.config), tools::prefix(&app.config));
    Server(Arc::new(Shop { app, groups, tools, prefix, quotes: quotes.clone(), poll_keys: requests::key(quotes) }))
}

/// `POST /mcp`
pub fn router(app: App, groups: HashMap<&'static str, Router>, quotes: &hmac::Key) -> Router {
    let guard = Guard::configured(&app.config);
    // The list of tools is anybody's, and proofs stand in messages: every large answer counts.
    let weigh = from_fn_with_state(app.clone(), limits::weigh_ahead);
    api::routes::finish(frame(server(app, groups, quotes), guard).route_layer(weigh))
}
