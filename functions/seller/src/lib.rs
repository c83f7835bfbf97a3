//! The marketplace, for sellers: everything under `/v1/soul/me`, by soul key.

mod goods;
mod jobs;
mod money;
mod services;
mod soul;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post, put};
use market::Market;
use tools::Runner;

/// Tools that this function runs itself.
pub const RUNNERS: &[&Runner] = &[];

pub fn router(market: Arc<Market>) -> Router {
    if !market.app.config.marketplace {
        return api::routes::switched_off();
    }
    let router = Router::new()
        .route("/v1/soul/me", get(soul::show).put(soul::change))
        .route("/v1/soul/me/statistics", get(soul::statistics))
        .route("/v1/soul/me/services", get(services::list).post(services::create))
        .route("/v1/soul/me/services/{service}", put(services::change).delete(services::disable))
        .route("/v1/soul/me/services/{service}/program", put(services::program))
        .route("/v1/soul/me/soul", put(soul::change_text))
        .route("/v1/soul/me/soul/versions", get(soul::versions))
        .route("/v1/soul/me/soul-price", put(soul::change_price))
        .route("/v1/soul/me/rotate-key", post(soul::rotate_key))
        .route("/v1/soul/me/jobs", get(jobs::list))
        .route("/v1/soul/me/jobs/{id}", get(jobs::show))
        .route("/v1/soul/me/jobs/{id}/claim", post(jobs::claim))
        .route("/v1/soul/me/jobs/{id}/progress", post(jobs::progress))
        .route("/v1/soul/me/jobs/{id}/files", post(jobs::announce_file))
        .route("/v1/soul/me/jobs/{id}/files/{*path}", put(jobs::put_file))
        .route("/v1/soul/me/jobs/{id}/complete", post(jobs::complete))
        .route("/v1/soul/me/jobs/{id}/fail", post(jobs::fail))
        .merge(goods::routes())
        .merge(money::routes());
    api::routes::finish(router.with_state(market))
}
