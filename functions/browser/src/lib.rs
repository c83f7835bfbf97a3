//! Sells tasks in a browser. The function `browser-worker` does them.

use std::sync::Arc;

use axum::Router;
use gate::Gate;

/// The group's name in the catalog and in the table of routes.
pub const GROUP: &str = "browser";

/// No tool runs here.
pub fn router(gate: Arc<Gate>) -> Router {
    api::selling::router(gate, GROUP)
}
