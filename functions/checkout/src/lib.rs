//! Checkout for agent platforms: the ACP paths, the simpler ones, and the documents by which platforms find the service.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::routing::{get, post};
use gate::idempotency::{self, IdempotencyState, Taken};
use gate::limits::{self, Class, Subject};
use gate::{parse_body, respond};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use market::checkout::error::{CheckoutError, Family};
use market::checkout::handlers::{self, Document};
use market::checkout::once;
use market::checkout::{Attempt, Checkout, Current, MAX_ECHOED_BYTES, VERSION, echo, manifest, request};
use platform::http::{ApiError, headers, private_json, public_json, read_body};
use serde_json::{Map, Value};
use tools::{Runner, top_up};
use uuid::Uuid;

/// Tools that this function runs itself.
pub const RUNNERS: &[&Runner] = &[&top_up::RUNNER];

/// A session is stored with its request and its answers, and all of it has to fit into one DynamoDB item.
const MAX_BODY_BYTES: usize = 96 * 1024;
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

type CheckoutState = State<Arc<Checkout>>;

pub fn router(checkout: Arc<Checkout>) -> Router {
    let mut router = Router::new()
        .route("/.well-known/acp/manifest.json", get(the_manifest))
        .route("/acp/handlers/{handler}/{document}", get(document));
    for (prefix, family) in [("/acp", Family::Acp), ("/v1", Family::Simple)] {
        let sessions = format!("{prefix}/checkout_sessions");
        let create = move |State(checkout): CheckoutState, request: Request| {
            handle(checkout, family, Action::Create, None, request)
        };
        let read = move |State(checkout): CheckoutState, Path(id): Path<String>, request: Request| {
            handle(checkout, family, Action::Read, Some(id), request)
        };
        let update = move |State(checkout): CheckoutState, Path(id): Path<String>, request: Request| {
            handle(checkout, family, Action::Update, Some(id), request)
        };
        let complete = move |State(checkout): CheckoutState, Path(id): Path<String>, request: Request| {
            handle(checkout, family, Action::Complete, Some(id), request)
        };
        let cancel = move |State(checkout): CheckoutState, Path(id): Path<String>, request: Request| {
            handle(checkout, family, Action::Cancel, Some(id), request)
        };
        router = router
            .route(&sessions, post(create))
            .route(&format!("{sessions}/{{id}}"), get(read).post(update))
            .route(&format!("{sessions}/{{id}}/complete"), post(complete))
            .route(&format!("{sessions}/{{id}}/cancel"), post(cancel));
    }
    api::routes::finish(router.with_state(checkout))
}

/// What a request does with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Create,
    Read,
    Update,
    Complete,
    Cancel,
}

impl Action {
    /// Whether ACP requires an idempotency key: for creating and paying.
    fn needs_name(self, family: Family) -> bool {
        family == Family::Acp && matches!(self, Action::Create | Action::Complete)
    }
}

/// Handles one request about a session. Replays the first answer if its idempotency key is known.
async fn handle(
    checkout: Arc<Checkout>,
    family: Family,
    action: Action,
    id: Option<String>,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    let answer = Box::pin(answer(&checkout, family, action, id.as_deref().unwrap_or_default(), &parts, body)).await;
    let mut response = answer.unwrap_or_else(|error| error.into_response(family));
    echo(&parts.headers, &mut response);
    response
}

async fn answer(
    checkout: &Checkout,
    family: Family,
    action: Action,
    id: &str,
    parts: &Parts,
    body: Body,
) -> Result<Response, CheckoutError> {
    let app = &checkout.app;
    let platform = app.platform(&parts.headers)?.ok_or(CheckoutError::Unauthorized)?.id;
    limits::take(app, Subject::Platform(platform), Class::Checkout).await?;
    check_version(&parts.headers)?;
    check_request_id(&parts.headers)?;
    let origin = app.origin(&parts.headers);
    if action == Action::Read {
        let current = checkout.find_session(id, platform).await?;
        return Ok(private_json(StatusCode::OK, &checkout.view(&current, &origin).to_json(family)));
    }
    let body = parse_body(&parts.headers, &read_body(body, MAX_BODY_BYTES).await?)?;
    let named = request::name_in(&body)?;
    let name = headers::idempotency_key(&parts.headers)?.or(named);
    let Some(name) = name else {
        if action.needs_name(family) {
            return Err(CheckoutError::KeyRequired);
        }
        let asked = Asked { checkout, family, action, id, platform, origin: &origin, parts, body: &body, name: None };
        let (status, answer) = Box::pin(asked.work()).await?;
        return Ok(private_json(status, &answer));
    };
    let digest = once::digest(platform, parts.uri.path(), name);
    let taken = match idempotency::begin(app, once::key(&digest), &body).await? {
        IdempotencyState::Fresh(taken) => taken,
        IdempotencyState::Reused => return Err(CheckoutError::KeyReused),
        IdempotencyState::InProgress => return Err(CheckoutError::InFlight),
        IdempotencyState::Replay(status, answer) => {
            let mut response = private_json(status, &Value::Null);
            *response.body_mut() = Body::from(answer);
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
            return Ok(response);
        }
    };
    let name = Some((digest.as_str(), &taken));
    let asked = Asked { checkout, family, action, id, platform, origin: &origin, parts, body: &body, name };
    let response = match Box::pin(asked.work()).await {
        Ok((status, answer)) => private_json(status, &answer),
        Err(error) => error.into_response(family),
    };
    // Temporary refusals may be retried with the same key; any other answer is final.
    let status = response.status();
    if status.is_server_error() || matches!(status, StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS) {
        taken.release(app).await?;
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let body = read_body(body, usize::MAX).await?;
    taken.answered(app, status, &String::from_utf8_lossy(&body)).await?;
    Ok(Response::from_parts(parts, Body::from(body)))
}

/// A request that changes something.
struct Asked<'a> {
    checkout: &'a Checkout,
    family: Family,
    action: Action,
    id: &'a str,
    platform: Uuid,
    origin: &'a str,
    parts: &'a Parts,
    body: &'a Map<String, Value>,
    /// The digest of the idempotency key and its claim, if the request has a key.
    name: Option<(&'a str, &'a Taken)>,
}

impl Asked<'_> {
    async fn work(&self) -> Result<(StatusCode, Value), CheckoutError> {
        let (checkout, body) = (self.checkout, self.body);
        let current = match self.action {
            Action::Create => {
                let asked = request::create(body, self.family == Family::Acp)?;
                let id = self.name.map(|(digest, taken)| once::id(digest, taken));
                let current = checkout.create(asked, self.platform, id).await?;
                return Ok((StatusCode::CREATED, self.show(&current)));
            }
            Action::Read => checkout.find_session(self.id, self.platform).await?,
            Action::Update => {
                let asked = request::update(body, self.family == Family::Acp)?;
                checkout.update(asked, self.id, self.platform).await?
            }
            Action::Cancel => checkout.cancel(self.id, self.platform).await?,
            Action::Complete => return self.complete().await,
        };
        Ok((StatusCode::OK, self.show(&current)))
    }

    async fn complete(&self) -> Result<(StatusCode, Value), CheckoutError> {
        let checkout = self.checkout;
        // Ownership of the session is checked first, so strangers learn nothing from errors about a payment.
        let current = checkout.find_session(self.id, self.platform).await?;
        let prefixes = &checkout.app.config.token_prefixes;
        let credential = request::credential(self.body, prefixes, self.family == Family::Acp)?;
        let attempt = Attempt {
            credential: &credential,
            name: self.name.map(|(digest, _)| digest),
            resource: &format!("{}{}", self.origin, self.parts.uri.path()),
            origin: self.origin,
            trace: self.parts.headers.get("x-amzn-trace-id"),
            approval: self.parts.headers.get("x-approval-id"),
        };
        match checkout.complete(current, &attempt).await {
            Ok(current) => Ok((StatusCode::OK, self.show(&current))),
            // ACP: the session exists, so the failure is one of its messages.
            Err(CheckoutError::PaymentFailed(why)) if self.family == Family::Acp => {
                let current = checkout.find_session(self.id, self.platform).await?;
                let mut session = self.show(&current);
                if let Some(messages) = session["messages"].as_array_mut() {
                    messages.retain(|message| message["code"] != "payment_declined");
                    messages.push(serde_json::json!({
                        "type": "error", "code": "payment_declined", "param": "$.payment_data",
                        "content_type": "plain", "content": why,
                    }));
                }
                Ok((StatusCode::OK, session))
            }
            Err(error) => Err(error),
        }
    }

    fn show(&self, current: &Current) -> Value {
        self.checkout.view(current, self.origin).to_json(self.family)
    }
}

fn check_version(headers: &HeaderMap) -> Result<(), CheckoutError> {
    match headers.get("api-version").map(|value| value.to_str().unwrap_or_default().trim()) {
        None | Some("") => Err(CheckoutError::MissingVersion),
        Some(VERSION) => Ok(()),
        Some(_) => Err(CheckoutError::UnsupportedVersion),
    }
}

/// The header is sent back, so its length is limited.
fn check_request_id(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers::text(headers, "request-id")? {
        Some(id) if id.len() > MAX_ECHOED_BYTES => {
            let wrong = format!("may have at most {MAX_ECHOED_BYTES} characters");
            Err(ApiError::field("Request-Id", wrong))
        }
        _ => Ok(()),
    }
}

/// `GET /.well-known/acp/manifest.json`.
async fn the_manifest(State(checkout): CheckoutState, headers: HeaderMap) -> Response {
    let origin = checkout.app.origin(&headers);
    let answer = async { Ok(manifest::manifest(&checkout, &origin).await?.answer(&headers)) };
    respond(answer.await)
}

/// `GET /acp/handlers/{handler}/{document}`.
async fn document(
    State(checkout): CheckoutState,
    Path((handler, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    match handlers::document(&checkout.app.config, &handler, &name) {
        Some(Document::Schema(schema)) => public_json(&schema, 3600),
        Some(Document::Markdown(text)) => {
            let mut response = public_json(&Value::Null, 3600);
            *response.body_mut() = Body::from(text);
            let markdown = HeaderValue::from_static("text/markdown; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, markdown);
            response
        }
        None => market::checkout::error::unrouted(&headers, ApiError::NotFound),
    }
}
