//! The marketplace, for everybody except sellers: registration, browsing, buying, jobs.

mod find;
mod jobs;
mod public;
mod register;
mod sell;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get, post};
use gate::limits;
use market::Market;
use tools::Runner;

/// Tools that this function runs itself.
pub const RUNNERS: &[&Runner] = &[];

pub fn router(market: Arc<Market>) -> Router {
    if !market.app.config.marketplace {
        return api::routes::switched_off();
    }
    let router = Router::new()
        // A seller's own soul: without this, `{slug}` would take it for a profile.
        .route("/v1/soul/me", any(api::routes::unrouted))
        .route("/v1/soul/register", post(register::register))
        .route("/v1/soul/{slug}/purchase", post(sell::purchase))
        .route("/v1/soul/{slug}/services/{service}/execute", post(sell::execute))
        .route("/v1/soul/jobs/{id}", get(jobs::show))
        .route("/v1/soul/jobs/{id}/files", get(jobs::list_files))
        .route("/v1/soul/jobs/{id}/files/{*path}", get(jobs::file))
        .route("/v1/soul/jobs/{id}/rate", post(jobs::rate));
    let public = Router::new()
        .route("/v1/soul/service-types", get(public::service_types))
        .route("/v1/soul/templates", get(public::templates))
        .route("/v1/soul/{slug}", get(public::profile))
        .route("/v1/soul/{slug}/versions", get(public::versions));
    let public = public.merge(find::routes());
    let public = public.route_layer(from_fn_with_state(market.app.clone(), limits::weigh));
    api::routes::finish(router.merge(public).with_state(market))
}
