//! The marketplace, for sellers: everything under `/v1/soul/me`, by soul key.

mod jobs;
mod money;
mod services;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post, put};
use common::marketplace::Market;
use common::tools::Runner;

/// What this function runs itself.
pub const RUNNERS: &[&Runner] = &[];

pub fn router(market: Arc<Market>) -> Router {
    let router = Router::new()
        .route("/v1/soul/me/services", get(services::list))
        .route("/v1/soul/me/jobs", get(jobs::list))
        .route("/v1/soul/me/jobs/{id}", get(jobs::show))
        .route("/v1/soul/me/jobs/{id}/claim", post(jobs::claim))
        .route("/v1/soul/me/jobs/{id}/progress", post(jobs::progress))
        .route("/v1/soul/me/jobs/{id}/files", post(jobs::announce_file))
        .route("/v1/soul/me/jobs/{id}/files/{*path}", put(jobs::put_file))
        .route("/v1/soul/me/jobs/{id}/complete", post(jobs::complete))
        .route("/v1/soul/me/jobs/{id}/fail", post(jobs::fail))
        .merge(money::routes());
    common::http::routes::finish(router.with_state(market))
}
