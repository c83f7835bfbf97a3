//! MCP: everything this service sells, and its free reads, as tools of the Model Context Protocol.
//!
//! A tool call becomes the HTTP request it stands for and is answered by the same router ([`calls`]); the answer becomes a
//! tool result ([`answers`]). Nothing here prices, charges or stores: the gate does. [`tools`] is the list of tools,
//! [`find`] what makes its short form enough, [`reads`] the free reads, [`requests`] polling, [`resources`] and
//! [`prompts`] what a client reads besides, [`server`] the protocol's methods, and [`transport`] the HTTP side.

mod answers;
mod calls;
mod find;
mod guard;
mod prompts;
mod reads;
mod requests;
mod resources;
mod server;
mod tools;
mod transport;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use ::tools::Runner;
use api::discovery::Library;
use axum::Router;
use gate::Gate;
use gate::app::App;
use gate::insights::audit::CursorKey;
use ledger::webhooks::secret::SigningKey;
use market::Market;
use ring::hmac;

pub use guard::Guard;
pub use server::Server;
pub use transport::router as frame;

use tools::Entry;

/// Direct tools only; the worker and the executor run the others.
pub static RUNNERS: LazyLock<Vec<&'static Runner>> =
    LazyLock::new(|| knowledge::RUNNERS.iter().chain(credits::RUNNERS).chain(messaging::RUNNERS).copied().collect());

/// The routers that answer tool calls, with this function's own permissions. `hooks` makes the secrets of webhooks.
pub fn groups(
    gate: Arc<Gate>,
    market: Arc<Market>,
    cursors: CursorKey,
    hooks: SigningKey,
) -> HashMap<&'static str, Router> {
    let app = &gate.app;
    HashMap::from([
        ("souls", souls::router(market)),
        ("requests", ::requests::router(app.clone())),
        ("account", account::router(app.clone())),
        ("insights", insights::router(app.clone(), cursors)),
        ("credits", credits::router(gate.clone(), None)),
        (messaging::GROUP, messaging::router(gate.clone())),
        (voice::GROUP, voice::router(gate.clone(), hooks)),
        (builds::GROUP, builds::router(gate.clone())),
        (browser::GROUP, browser::router(gate.clone())),
        (network::GROUP, network::router(gate.clone())),
        (commerce::GROUP, commerce::router(gate.clone())),
        (compute::GROUP, compute::router(gate.clone())),
        (knowledge::GROUP, knowledge::router(gate)),
    ])
}

/// State shared by all calls.
pub struct Shop {
    app: App,
    /// Routers by group.
    groups: HashMap<&'static str, Router>,
    tools: Vec<Entry>,
    /// The prefix of all tool names.
    prefix: String,
    quotes: hmac::Key,
    poll_keys: hmac::Key,
    /// The guides.
    library: Library,
}

/// The protocol's methods over these groups. `quotes` is the service's key for quotes.
pub fn server(app: App, groups: HashMap<&'static str, Router>, quotes: &hmac::Key) -> Server {
    let (tools, prefix) = (tools::all(&app.config, app.catalog), tools::prefix(&app.config));
    let (quotes, poll_keys) = (quotes.clone(), requests::key(quotes));
    Server(Arc::new(Shop { app, groups, tools, prefix, quotes, poll_keys, library: Library::default() }))
}

/// `POST /mcp`
pub fn router(app: App, groups: HashMap<&'static str, Router>, quotes: &hmac::Key) -> Router {
    let guard = Guard::configured(&app.config);
    api::routes::finish(frame(server(app.clone(), groups, quotes), guard, Some(app)))
}
