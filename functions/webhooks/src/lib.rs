//! An agent's webhook endpoints and their delivery logs. Access tokens may read both, test an endpoint and replay a delivery:
//! they may read everything that is sent to endpoints anyway. Only the wallet makes, changes and deletes endpoints and their
//! secrets: the owner is told there what a token does, and a token must not outlive its revocation there.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use axum::routing::{get, post};
use base::ids::{self, EndpointId, EventId};
use gate::app::App;
use gate::idempotency::{self, Request};
use gate::{empty_body, parse_body, respond};
use http::{HeaderMap, StatusCode};
use ledger::webhooks::endpoint::{self, MAX_ENDPOINTS};
use ledger::webhooks::event::{Event, EventKind};
use ledger::webhooks::form::{self, Draft};
use ledger::webhooks::secret::SigningKey;
use ledger::webhooks::view::{DeliveryView, EndpointView};
use ledger::webhooks::{Delivery, DeliveryState, Endpoint, delivery, outbox};
use platform::auth::{Caller, Scope};
use platform::http::{ApiError, Params, Segment, private_body, private_json, read_body};
use platform::net::FetchPolicy;
use platform::store::{Queue, StoreError};
use serde::Serialize;
use serde_json::{Map, Value, json};

const LISTED: usize = 20;

/// State shared by the routes.
#[derive(Clone)]
pub struct Hooks {
    pub app: App,
    /// The queue of deliveries.
    pub queue: Arc<dyn Queue>,
    pub keys: SigningKey,
    /// Which addresses endpoints may have.
    pub policy: FetchPolicy,
}

pub fn router(hooks: Hooks) -> Router {
    let router = Router::new()
        .route("/v1/webhooks", get(list).post(create))
        .route("/v1/webhooks/{id}", get(show).patch(change).delete(remove))
        .route("/v1/webhooks/{id}/rotate-secret", post(rotate))
        .route("/v1/webhooks/{id}/test", post(test))
        .route("/v1/webhooks/{id}/deliveries", get(deliveries))
        .route("/v1/webhooks/{id}/deliveries/{event}/replay", post(replay))
        .with_state(hooks);
    api::routes::finish(router)
}

/// The envelope of all answers.
#[derive(Serialize)]
struct Data<T> {
    success: bool,
    data: T,
}

fn data<T: Serialize>(data: T) -> Result<Response, ApiError> {
    private_body(&Data { success: true, data })
}

fn accepted(data: &Value) -> Response {
    private_json(StatusCode::ACCEPTED, &json!({"success": true, "data": data}))
}

/// A list of endpoints.
#[derive(Serialize)]
struct Listed<'a> {
    webhooks: Vec<EndpointView<'a>>,
    count: usize,
}

/// A page of deliveries, newest first.
#[derive(Serialize)]
struct Page<'a> {
    deliveries: Vec<DeliveryView<'a>>,
    count: usize,
    has_more: bool,
    /// The value of `cursor` for the next page.
    next_cursor: Option<EventId>,
}

async fn json_body(headers: &HeaderMap, body: Body) -> Result<Map<String, Value>, ApiError> {
    parse_body(headers, &read_body(body, gate::MAX_BODY_BYTES).await?)
}

/// `POST /v1/webhooks`: only this answer contains the secret.
async fn create(State(hooks): State<Hooks>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = json_body(&headers, body).await?;
        let draft = Draft::read(form::CREATE, &[], &body, &hooks.policy).map_err(ApiError::InvalidRequest)?;
        let caller = hooks.app.wallet_caller(&headers, Scope::Write, ApiError::WalletOnly).await?;
        let route = "POST /v1/webhooks";
        let request = Request { caller: &caller, headers: &headers, route, body: &body, secret: Some("secret") };
        let make = async {
            let now = hooks.app.clock.now();
            let made = draft.endpoint(caller.agent, now).ok_or(ApiError::field("url", "is required"))?;
            if !endpoint::create(&hooks.app.db, &made).await? {
                return Err(ApiError::TooManyWebhooks { most: MAX_ENDPOINTS });
            }
            Ok((StatusCode::CREATED, hooks.with_secret(&made)?))
        };
        idempotency::once(&hooks.app, request, make).await
    };
    respond(answer.await)
}

/// `GET /v1/webhooks`
async fn list(State(hooks): State<Hooks>, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = hooks.app.caller(&headers, Scope::Read).await?;
        let now = hooks.app.clock.now();
        let mut found = endpoint::of_agent(&hooks.app.db, caller.agent).await?;
        found.sort_by_key(|endpoint| (endpoint.created, endpoint.id));
        let webhooks: Vec<EndpointView<'_>> = found.iter().map(|endpoint| endpoint.view(None, now)).collect();
        data(Listed { count: webhooks.len(), webhooks })
    };
    respond(answer.await)
}

/// `GET /v1/webhooks/{id}`
async fn show(State(hooks): State<Hooks>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = hooks.app.caller(&headers, Scope::Read).await?;
        data(hooks.endpoint(&caller, &id).await?.view(None, hooks.app.clock.now()))
    };
    respond(answer.await)
}

/// `PATCH /v1/webhooks/{id}`: absent members stay as they are. 409 for the endpoint of a phone number.
async fn change(State(hooks): State<Hooks>, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = json_body(&headers, body).await?;
        let draft = Draft::read(form::CHANGE, &form::OF_ANSWERS, &body, &hooks.policy);
        let draft = draft.map_err(ApiError::InvalidRequest)?;
        let caller = hooks.app.wallet_caller(&headers, Scope::Write, ApiError::WalletOnly).await?;
        let now = hooks.app.clock.now();
        let id = hooks.own_endpoint(&caller, &id).await?;
        let changed = endpoint::change(&hooks.app.db, caller.agent, id, now, |before| draft.apply(before)).await?;
        data(changed.ok_or(ApiError::WebhookNotFound)?.view(None, now))
    };
    respond(answer.await)
}

/// `DELETE /v1/webhooks/{id}`: pending deliveries are cancelled. 409 for the endpoint of a phone number.
async fn remove(State(hooks): State<Hooks>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = hooks.app.wallet_caller(&headers, Scope::Write, ApiError::WalletOnly).await?;
        let id = hooks.own_endpoint(&caller, &id).await?;
        if !endpoint::delete(&hooks.app.db, caller.agent, id).await? {
            return Err(ApiError::WebhookNotFound);
        }
        data(json!({"id": id, "deleted": true}))
    };
    respond(answer.await)
}

/// `POST /v1/webhooks/{id}/rotate-secret`: only this answer contains the new secret. The old one signs as well for
/// `overlap_hours`.
async fn rotate(State(hooks): State<Hooks>, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = json_body(&headers, body).await?;
        let overlap = form::overlap(&body).map_err(ApiError::InvalidRequest)?;
        let caller = hooks.app.wallet_caller(&headers, Scope::Write, ApiError::WalletOnly).await?;
        let id = named_endpoint(&id)?;
        // Binds the idempotency key to this endpoint.
        let mut named_body = body;
        named_body.insert("id".to_owned(), json!(id));
        let route = "POST /v1/webhooks/{id}/rotate-secret";
        let request = Request { caller: &caller, headers: &headers, route, body: &named_body, secret: Some("secret") };
        let rotate = async {
            let now = hooks.app.clock.now();
            let rotate = |before: &Endpoint| before.rotated(overlap, now);
            let rotated = endpoint::change(&hooks.app.db, caller.agent, id, now, rotate).await?;
            Ok((StatusCode::OK, hooks.with_secret(&rotated.ok_or(ApiError::WebhookNotFound)?)?))
        };
        idempotency::once(&hooks.app, request, rotate).await
    };
    respond(answer.await)
}

/// `POST /v1/webhooks/{id}/test`: sends one event `webhook.test`.
async fn test(State(hooks): State<Hooks>, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        empty_body(&headers, body).await?;
        let caller = hooks.app.caller(&headers, Scope::Write).await?;
        let endpoint = hooks.endpoint(&caller, &id).await?;
        if endpoint.disabled.is_some() {
            return Err(ApiError::WebhookDisabled);
        }
        let (db, now) = (&hooks.app.db, hooks.app.clock.now());
        let about = json!({"webhook_id": endpoint.id, "message": "This is a test."});
        let event = Event::new(caller.agent, EventKind::Test, &ids::random_uuid().to_string(), now, about);
        let outgoing = outbox::to(db, &event, std::iter::once(endpoint.id), now)?;
        outgoing.keep(db).await?;
        outgoing.announce(&*hooks.queue).await;
        Ok(accepted(&json!({"event_id": event.id, "state": DeliveryState::Pending})))
    };
    respond(answer.await)
}

/// `GET /v1/webhooks/{id}/deliveries`: newest first, with all attempts.
async fn deliveries(
    State(hooks): State<Hooks>,
    Segment(id): Segment,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let answer = async {
        let (after, limit) = page(query.as_deref())?;
        let caller = hooks.app.caller(&headers, Scope::Read).await?;
        let endpoint = hooks.endpoint(&caller, &id).await?;
        let mut found = delivery::list(&hooks.app.db, caller.agent, endpoint.id, after, limit + 1).await?;
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next_cursor = found.last().filter(|_| has_more).map(|last| last.event);
        let deliveries: Vec<DeliveryView<'_>> = found.iter().map(Delivery::view).collect();
        data(Page { count: deliveries.len(), deliveries, has_more, next_cursor })
    };
    respond(answer.await)
}

/// `POST /v1/webhooks/{id}/deliveries/{event}/replay`: sends the same event again; earlier attempts stay in the log.
async fn replay(
    State(hooks): State<Hooks>,
    path: Result<Path<(String, String)>, axum::extract::rejection::PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let answer = async {
        let Path((id, event)) = path.map_err(|_| ApiError::NotFound)?;
        empty_body(&headers, body).await?;
        let caller = hooks.app.caller(&headers, Scope::Write).await?;
        let endpoint = hooks.endpoint(&caller, &id).await?;
        if endpoint.disabled.is_some() {
            return Err(ApiError::WebhookDisabled);
        }
        let event: EventId = event.parse().map_err(|_| ApiError::DeliveryNotFound)?;
        let (db, now) = (&hooks.app.db, hooks.app.clock.now());
        let found = delivery::load(db, caller.agent, endpoint.id, event).await?.ok_or(ApiError::DeliveryNotFound)?;
        if found.state == DeliveryState::Pending || !outbox::replay(db, &*hooks.queue, &found, now).await? {
            return Err(ApiError::DeliveryPending);
        }
        Ok(accepted(&json!({"event_id": event, "state": DeliveryState::Pending})))
    };
    respond(answer.await)
}

impl Hooks {
    async fn endpoint(&self, caller: &Caller, id: &str) -> Result<Endpoint, ApiError> {
        let found = endpoint::load(&self.app.db, caller.agent, named_endpoint(id)?).await?;
        found.ok_or(ApiError::WebhookNotFound)
    }

    /// The id of an endpoint that the agent made here. That of a phone number changes with the number's settings only.
    async fn own_endpoint(&self, caller: &Caller, id: &str) -> Result<EndpointId, ApiError> {
        let endpoint = self.endpoint(caller, id).await?;
        match endpoint.number {
            None => Ok(endpoint.id),
            Some(number) => Err(ApiError::Tool {
                status: StatusCode::CONFLICT,
                code: "webhook_of_number",
                message: format!(
                    "this endpoint belongs to a phone number: change webhook_url with \
                     PUT /v1/tools/voice/numbers/{number}/inbound"
                ),
            }),
        }
    }

    fn with_secret(&self, endpoint: &Endpoint) -> Result<Value, ApiError> {
        let secret = self.keys.secret(endpoint.agent, endpoint.id, endpoint.secret).to_text();
        let view = endpoint.view(Some(secret), self.app.clock.now());
        serde_json::to_value(Data { success: true, data: view }).map_err(|error| StoreError::new(error).into())
    }
}

fn named_endpoint(id: &str) -> Result<EndpointId, ApiError> {
    id.parse().map_err(|_| ApiError::WebhookNotFound)
}

/// `cursor` and `limit` of a list.
fn page(query: Option<&str>) -> Result<(Option<EventId>, usize), ApiError> {
    let mut params = Params::of(query);
    params.only(&["limit", "cursor"]);
    let limit = params.integer("limit", 1, form::MOST_DELIVERIES).unwrap_or(LISTED);
    let after = params.text("cursor").map(|cursor| cursor.parse().map_err(|_| ApiError::InvalidCursor)).transpose()?;
    params.check().map(|()| (after, limit))
}
