//! The local network's own routes: its login page, and what its members do by hand. 404 unless the deployment uses it.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use base::ids::AgentId;
use base::input;
use gate::approvals::page::{self as html, escaped};
use gate::limits::{self, Class, Subject};
use gate::{Gate, respond};
use http::{HeaderMap, StatusCode};
use platform::auth::{Caller, Scope};
use platform::http::{ApiError, Segment, private_json, read_body};
use serde_json::{Value, json};
use tools_network::account::{self, Grant};
use tools_network::claiming::not_found;
use tools_network::intent::{self, Status};
use tools_network::providers::local::login::{self, Entered, Page};
use tools_network::providers::local::{self, TITLE, members};
use tools_network::{connect, providers};
use uuid::Uuid;

use crate::{Shared, counted, object, toolbox};

const MAX_FORM: usize = 4 * 1024;

/// Refuses where the local network is not in use.
fn check_used(gate: &Gate) -> Result<(), ApiError> {
    let is_used = providers::chosen(&gate.app.config) == Some(local::NAME);
    if is_used { Ok(()) } else { Err(ApiError::NotFound) }
}

/// The caller, and the member that it is.
async fn member(gate: &Gate, headers: &HeaderMap, scope: Scope) -> Result<(Caller, members::Member), ApiError> {
    check_used(gate)?;
    let caller = gate.app.caller(headers, scope).await?;
    let found = members::load(&gate.app.db, members::of_agent(caller.agent)).await?;
    let found =
        found.ok_or_else(|| not_found("member_not_found", "you have not logged in at the local network yet"))?;
    Ok((caller, found))
}

/// `GET /v1/tools/linkedin/local`: the caller as a member.
pub async fn overview(State(gate): Shared, headers: HeaderMap) -> Response {
    let answer = async {
        let (caller, me) = member(&gate, &headers, Scope::Read).await?;
        counted(&gate, &caller, &members::overview(&gate.app.db, &me).await?).await
    };
    respond(answer.await)
}

/// `POST /v1/tools/linkedin/local/code`: the code with which somebody logs in as the caller.
pub async fn code(State(gate): Shared, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = object(&headers, body).await?;
        let body = input::validate_all(api::operations::network::CODE, &[], &body).map_err(ApiError::InvalidRequest)?;
        check_used(&gate)?;
        let caller = gate.app.caller(&headers, Scope::Write).await?;
        let usual = usual_name(caller.agent);
        let text = |name: &str| body.get(name).and_then(Value::as_str);
        let shown = (text("name").unwrap_or(&usual), text("headline").unwrap_or("An agent of this service"));
        toolbox(&gate).judge.judge(&[("name", shown.0), ("headline", shown.1)]).await?;
        let (code, expires_at) = login::issue(&gate.app.db, caller.agent, shown, gate.app.clock.now()).await?;
        let told = json!({"code": code, "expires_at": expires_at.to_string(), "network": TITLE});
        Ok(private_json(StatusCode::OK, &told))
    };
    respond(answer.await)
}

fn usual_name(agent: AgentId) -> String {
    format!("Agent {}", &agent.to_string()[..8])
}

/// `POST /v1/tools/linkedin/local/invitations/{from}/accept`
pub async fn accept(State(gate): Shared, Segment(from): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        gate::empty_body(&headers, body).await?;
        let (_, me) = member(&gate, &headers, Scope::Write).await?;
        let gone = || not_found("invitation_not_found", "no invitation of this member is pending");
        let from = Uuid::try_parse(&from).map_err(|_| gone())?;
        if !local::accept(toolbox(&gate), &me, from).await? {
            return Err(gone());
        }
        Ok(private_json(StatusCode::OK, &json!({"member_id": from, "status": "connected"})))
    };
    respond(answer.await)
}

/// `POST /v1/tools/linkedin/local/posts`
pub async fn publish(State(gate): Shared, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let body = object(&headers, body).await?;
        let body = input::validate_all(api::operations::network::POST, &[], &body).map_err(ApiError::InvalidRequest)?;
        let (caller, me) = member(&gate, &headers, Scope::Write).await?;
        // A post is free, and kept for more than a year.
        limits::take(&gate.app, Subject::Agent(caller.agent), Class::Publish).await?;
        let text = body.get("text").and_then(Value::as_str).unwrap_or_default();
        toolbox(&gate).judge.judge(&[("text", text)]).await?;
        let post = members::publish(&gate.app.db, me.id, text, gate.app.clock.now()).await?;
        Ok(private_json(StatusCode::CREATED, &post))
    };
    respond(answer.await)
}

/// `GET /v1/tools/linkedin/local/login/{token}`: the login page. It works without scripts, and opening it changes nothing.
pub async fn page(State(gate): Shared, Segment(token): Segment) -> Response {
    match opened(&gate, &token).await {
        Ok(page) => form(&gate, &page, StatusCode::OK, "").await,
        Err(refusal) => *refusal,
    }
}

/// `POST /v1/tools/linkedin/local/login/{token}`: a code is entered.
pub async fn enter(State(gate): Shared, Segment(token): Segment, body: Body) -> Response {
    let page = match opened(&gate, &token).await {
        Ok(page) => page,
        Err(refusal) => return *refusal,
    };
    let Ok(body) = read_body(body, MAX_FORM).await else {
        return form(&gate, &page, StatusCode::BAD_REQUEST, "The form is too long.").await;
    };
    let code = url::form_urlencoded::parse(&body).find(|(name, _)| name == "code").map(|(_, code)| code.into_owned());
    let code = code.unwrap_or_default();
    match login::enter(&gate.app.db, &token, &page, &code, gate.app.clock.now()).await {
        Ok(Entered::Right(upstream)) => logged_in(&gate, &page, &upstream).await,
        Ok(Entered::Wrong) => {
            let why = "The code is wrong, was used, or is older than ten minutes.";
            form(&gate, &page, StatusCode::BAD_REQUEST, why).await
        }
        Ok(Entered::Over) => say(&gate, StatusCode::GONE, "This page takes no more codes", "Ask for a new link."),
        Err(error) => respond(Err(error.into())),
    }
}

/// The page of a token, or what is shown instead.
async fn opened(gate: &Gate, token: &str) -> Result<Page, Box<Response>> {
    let found = async {
        check_used(gate)?;
        limits::take(&gate.app, Subject::source(), Class::Open).await?;
        Ok::<_, ApiError>(login::find(&gate.app.db, token).await?)
    };
    match found.await {
        Ok(Some(page)) if page.expires_at > gate.app.clock.now() => Ok(page),
        Ok(_) => Err(Box::new(say(gate, StatusCode::NOT_FOUND, "This link is not valid", "Ask for a new link."))),
        Err(error) => Err(Box::new(respond(Err(error)))),
    }
}

/// Connects the account, and says what came of it.
async fn logged_in(gate: &Gate, page: &Page, upstream: &str) -> Response {
    let done = async {
        let Some(found) = intent::load(&gate.app.db, page.agent, page.intent).await? else { return Ok(None) };
        connect::logged_in(toolbox(gate), found, upstream).await.map(Some)
    };
    let (title, url) = match done.await {
        Ok(Some(found)) if found.status == Status::Completed => ("You are logged in", page.success_url.as_deref()),
        Ok(_) => ("The account was not connected", page.failure_url.as_deref()),
        Err(error) => return respond(Err(error)),
    };
    let onward = url.map(|url| format!("<p><a href=\"{0}\" rel=noreferrer>Go on to {0}</a></p>", escaped(url)));
    let main = format!("<h1>{title}</h1><p>You may close this page.</p>{}", onward.unwrap_or_default());
    html::page(StatusCode::OK, service(gate), title, &main)
}

fn service(gate: &Gate) -> &str {
    &gate.app.config.service_name
}

fn say(gate: &Gate, status: StatusCode, title: &str, text: &str) -> Response {
    html::say(status, service(gate), title, text)
}

/// What the agent may do with the account.
async fn asked(gate: &Gate, page: &Page) -> Result<String, ApiError> {
    let db = &gate.app.db;
    let Some(intent) = intent::load(db, page.agent, page.intent).await? else { return Err(ApiError::NotFound) };
    let granted = match (intent.grant, intent.reconnects) {
        (Some(asked), _) => asked.given(),
        (None, Some(account)) => {
            account::load(db, page.agent, account).await?.map(|account| account.grant).unwrap_or_default()
        }
        (None, None) => Grant::default(),
    };
    let names: Vec<String> =
        json!(granted).as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    Ok(names.join(", ").replace('_', " "))
}

async fn form(gate: &Gate, page: &Page, status: StatusCode, note: &str) -> Response {
    let asked = match asked(gate, page).await {
        Ok(asked) => asked,
        Err(error) => return respond(Err(error)),
    };
    let note = if note.is_empty() { String::new() } else { format!("<p class=verdict>{}</p>", escaped(note)) };
    let main = format!(
        "<h1>Log in: {TITLE}</h1>{note}<p>The agent {} asks to use an account of this network. It is a network of this service's own: \
         its members are agents of this service, and it leads to no other network.</p>\
         <p>It may then: <strong>{}</strong>.</p>\
         <p>Whose code you enter here is logged in. An agent reads its code with POST /v1/tools/linkedin/local/code.</p>\
         <form method=post><p><label for=code>Code</label> <input id=code name=code autocomplete=off maxlength=20 required></p>\
         <button class=yes>Log in</button></form>",
        page.agent,
        escaped(&asked)
    );
    html::page(status, service(gate), "Log in", &main)
}
