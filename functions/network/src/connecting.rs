//! Login links, and what providers say came of them.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use base::input::{self, Field, FieldError};
use gate::limits::{self, Class, Subject};
use gate::{Gate, respond};
use http::{HeaderMap, StatusCode};
use platform::auth::Scope;
use platform::http::{ApiError, Segment, private_json};
use serde_json::{Map, Value, json};
use tools_network::account::{Account, Grant, Status};
use tools_network::claiming::not_found;
use tools_network::connect::{self, Wanted};
use tools_network::{intent, providers};
use url::Url;
use uuid::Uuid;

use crate::{Shared, object, own, toolbox};

fn intent_not_found() -> ApiError {
    not_found("intent_not_found", "you have no connect intent with this id; they are kept for 30 days")
}

/// A body's redirects and grant.
struct Asked {
    body: Map<String, Value>,
    grant: Option<Grant>,
}

impl Asked {
    fn read(body: &Map<String, Value>, fields: &[Field]) -> Result<Asked, ApiError> {
        let body = input::validate_all(fields, &["timeout"], body).map_err(ApiError::InvalidRequest)?;
        let names = body.get("requested_actions").and_then(Value::as_array);
        let grant = names.map(|names| Grant::of(names.iter().filter_map(Value::as_str)));
        let mut wrong = Vec::new();
        if names.is_some_and(Vec::is_empty) {
            wrong.push(FieldError::new("requested_actions", "must name at least one action"));
        }
        for name in ["success_redirect_url", "failure_redirect_url"] {
            let url = body.get(name).and_then(Value::as_str).map(Url::parse);
            let is_good = url.is_none_or(|url| url.is_ok_and(|url| ["http", "https"].contains(&url.scheme())));
            if !is_good {
                wrong.push(FieldError::new(name, "must be an http or https URL"));
            }
        }
        if wrong.is_empty() { Ok(Asked { body, grant }) } else { Err(ApiError::InvalidRequest(wrong)) }
    }

    fn url(&self, name: &str) -> Option<&str> {
        self.body.get(name).and_then(Value::as_str)
    }
}

/// `POST /v1/tools/linkedin/connect`: a login link, shown once.
pub async fn begin(State(gate): Shared, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let asked = Asked::read(&object(&headers, body).await?, api::operations::network::CONNECT)?;
        let caller = gate.app.caller(&headers, Scope::Write).await?;
        let origin = gate.app.origin(&headers);
        let wanted = Wanted {
            agent: caller.agent,
            grant: asked.grant.clone(),
            again: None,
            success_url: asked.url("success_redirect_url"),
            failure_url: asked.url("failure_redirect_url"),
            origin: &origin,
        };
        Ok(private_json(StatusCode::CREATED, &connect::begin(toolbox(&gate), &wanted).await?))
    };
    respond(answer.await)
}

/// `POST /v1/tools/linkedin/accounts/{id}/reconnect`: a login link for an account that is here.
pub async fn again(State(gate): Shared, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let asked = Asked::read(&object(&headers, body).await?, api::operations::network::RECONNECT)?;
        let (caller, account) = own(&gate, &headers, Scope::Write, &id).await?;
        check_again(&gate, &account)?;
        let origin = gate.app.origin(&headers);
        let wanted = Wanted {
            agent: caller.agent,
            grant: asked.grant.clone(),
            again: Some(&account),
            success_url: asked.url("success_redirect_url"),
            failure_url: asked.url("failure_redirect_url"),
            origin: &origin,
        };
        Ok(private_json(StatusCode::CREATED, &connect::begin(toolbox(&gate), &wanted).await?))
    };
    respond(answer.await)
}

/// A link can only connect again what is there, at the network that is reached now.
fn check_again(gate: &Gate, account: &Account) -> Result<(), ApiError> {
    let is_elsewhere = providers::chosen(&gate.app.config).is_some_and(|name| name != account.provider);
    match account.status {
        Status::DeletedUpstream | Status::Revoked => Err(connect::connect_required()),
        _ if is_elsewhere => Err(connect::connect_required()),
        _ => Ok(()),
    }
}

/// `GET /v1/tools/linkedin/connect/{id}`. One that is being verified is checked again.
pub async fn show(State(gate): Shared, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = gate.app.caller(&headers, Scope::Read).await?;
        let id = Uuid::try_parse(&id).map_err(|_| intent_not_found())?;
        let found = intent::load(&gate.app.db, caller.agent, id).await?.ok_or_else(intent_not_found)?;
        let found = connect::verify(toolbox(&gate), found).await?;
        Ok(private_json(StatusCode::OK, &connect::shown(toolbox(&gate), &found).await?))
    };
    respond(answer.await)
}

/// `POST /v1/tools/linkedin/connect/callback/{token}`: from the provider. The token is unguessable, and what is said is checked there.
pub async fn callback(State(gate): Shared, Segment(token): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        limits::take(&gate.app, Subject::source(), Class::Open).await?;
        let body = object(&headers, body).await?;
        let body = input::validate(api::operations::network::CALLBACK, &body).map_err(ApiError::InvalidRequest)?;
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        let is_token = token.len() == 64 && token.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_token || providers::chosen(&gate.app.config).is_none() {
            return Err(intent_not_found());
        }
        let found = intent::of_token(&gate.app.db, &token).await?;
        // Its name is the intent's: a callback for another one is none for this.
        let found = found.filter(|found| text("name") == found.id.to_string()).ok_or_else(intent_not_found)?;
        connect::logged_in(toolbox(&gate), found, text("account_id")).await?;
        Ok(private_json(StatusCode::OK, &json!({"received": true})))
    };
    respond(answer.await)
}
