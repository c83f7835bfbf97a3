//! Sells product searches and purchases, which the worker does, and shows the pages of goods that are sold here.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use gate::limits::{self, Class, Subject};
use gate::{Gate, respond};
use http::{HeaderMap, StatusCode, header};
use platform::http::{Segment, headers, private_json};
use tools_commerce::goods::page;

/// The group's name in the catalog and in the table of routes.
pub const GROUP: &str = "commerce";

/// No tool runs here.
pub fn router(gate: Arc<Gate>) -> Router {
    api::selling::router_with(gate, GROUP, Router::new().route("/goods/{id}", get(good)))
}

/// `GET /goods/{id}`: HTML, or JSON by `Accept` or with `.json` behind the id.
async fn good(State(gate): State<Arc<Gate>>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        limits::take(&gate.app, Subject::source(), Class::Open).await?;
        let accepted = headers::text(&headers, "accept")?.unwrap_or_default();
        let (id, is_named) = id.strip_suffix(".json").map_or((id.as_str(), false), |id| (id, true));
        let page = page::load(&gate.engine.toolbox, id).await?;
        if is_named || (accepted.contains("application/json") && !accepted.contains("text/html")) {
            return Ok(private_json(StatusCode::OK, &page.json()));
        }
        let headers = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CACHE_CONTROL, "no-store"),
            (header::CONTENT_SECURITY_POLICY, page::POLICY),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        Ok((headers, page.html()).into_response())
    };
    respond(answer.await)
}
