//! What became of things: jobs, for their owners, and payments, for whoever made them.

use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use common::app::App;
use common::auth::Scope;
use common::gate::{respond, status};
use common::http::{ApiError, Segment, private_json};
use common::ids::RequestId;
use common::jobs::{store, view};
use common::limits::{self, Class, Subject};
use http::{HeaderMap, StatusCode};
use serde_json::json;

pub fn router(app: App) -> Router {
    let router = Router::new().route("/v1/requests/{id}", get(request)).route("/v1/payments/{reference}", get(payment));
    common::http::routes::finish(router.with_state(app))
}

/// `GET /v1/requests/{id}`: a job, to its owner. One eventually consistent read, and the proof's nonce.
async fn request(State(app): State<App>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        // A platform reads the jobs that its checkout sessions bought (contract §24).
        let platform = app.platform(&headers)?.map(|platform| platform.id);
        let agent = match platform {
            Some(platform) => {
                limits::take(&app, Subject::Platform(platform), Class::Checkout).await?;
                None
            }
            None => Some(app.caller(&headers, Scope::Read).await?.agent),
        };
        let id: RequestId = id.parse().map_err(|_| ApiError::NotFound)?;
        let job = store::load(&app.db, id).await?.filter(|job| match agent {
            Some(agent) => job.agent == agent,
            None => job.ordered.as_ref().map(|ordered| ordered.platform) == platform,
        });
        let job = job.ok_or(ApiError::NotFound)?;
        let body = view::poll(&*app.blobs, &job).await?;
        Ok(common::gate::answer::with_settlement(private_json(StatusCode::OK, &body), &job, &app.config.chain))
    };
    respond(answer.await)
}

/// `GET /v1/payments/{nonce or transaction hash}`: what became of a payment. Both are 32 random bytes or public on
/// chain, and the answer holds nothing that the chain does not show, so no proof is asked for.
async fn payment(State(app): State<App>, Segment(reference): Segment) -> Response {
    let answer = async {
        let reference = common::evm::parse_word(&reference).ok_or_else(|| {
            ApiError::field("reference", "must be a nonce or a transaction hash: 0x and 64 hex digits")
        })?;
        let payments = status::find(&app.db, &app.chain, &app.config.chain, &reference).await?;
        let state = payments.first().map_or("never_seen", |payment| payment.state);
        let payments: Vec<_> = payments.iter().map(|payment| payment.to_json()).collect();
        Ok(private_json(
            StatusCode::OK,
            &json!({"reference": common::evm::hex0x(&reference), "state": state, "payments": payments}),
        ))
    };
    respond(answer.await)
}
