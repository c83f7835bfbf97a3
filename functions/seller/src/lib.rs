//! The marketplace, for sellers: everything under `/v1/soul/me`, by soul key.

mod money;
mod services;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use common::marketplace::Market;
use common::tools::Runner;

/// What this function runs itself.
pub const RUNNERS: &[&Runner] = &[];

pub fn router(market: Arc<Market>) -> Router {
    let router = Router::new().route("/v1/soul/me/services", get(services::list)).merge(money::routes());
    common::http::routes::finish(router.with_state(market))
}
