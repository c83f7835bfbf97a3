//! The marketplace, for everybody but the seller: registering, looking around, buying, having work done.

mod find;
mod public;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use common::marketplace::Market;
use common::tools::Runner;

/// What this function runs itself.
pub const RUNNERS: &[&Runner] = &[];

pub fn router(market: Arc<Market>) -> Router {
    let router = Router::new()
        .route("/v1/soul/service-types", get(public::service_types))
        .route("/v1/soul/templates", get(public::templates));
    let router = router.merge(find::routes());
    common::http::routes::finish(router.with_state(market))
}
