//! A small web site to read: an article, a table, redirects, a plain text, and the [`library`].

use axum::Router;
use axum::response::{Html, IntoResponse, Redirect};
use axum::routing::get;

use crate::library;

pub fn router() -> Router {
    Router::new()
        .route("/", get(|| async { Html(include_str!("site/index.html")) }))
        .route("/article", get(|| async { Html(include_str!("site/article.html")) }))
        .route("/prices", get(|| async { Html(include_str!("site/prices.html")) }))
        .route("/moved", get(|| async { Redirect::permanent("/article") }))
        .route("/plain", get(|| async { "A page of plain text.\nIts second line.\n" }))
        .route(
            "/away",
            get(|| async { Redirect::temporary("http://169.254.169.254/latest/meta-data/").into_response() }),
        )
        .fallback_service(library::router())
}
