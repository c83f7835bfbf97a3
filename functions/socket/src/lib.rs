//! `GET /v1/requests/subscribe`: answers the events that a WebSocket gateway sends for a connection.
//!
//! The caller authenticates at the upgrade (`$connect`), by the headers of every free route. Clients that cannot set
//! headers use `?wallet=` and `?proof=` in the URL. A proof is valid for one upgrade and five minutes, so one found in a
//! log is useless. Access tokens are never read from a URL.
//!
//! Messages (`$default`) are answered by messages, invalid ones too; nothing a client sends ends its connection.

use aws_lambda_events::event::apigw::ApiGatewayWebsocketProxyRequest;
use base::ids::RequestId;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gate::app::App;
use gate::limits::{self, Class, Subject};
use gate::push::message::{self, Said};
use gate::push::{MAX_CONNECTIONS, Sender, Sent, rows, subscribe};
use http::{HeaderMap, HeaderValue};
use ledger::account;
use platform::auth::token;
use platform::auth::{AgentName, Scope};
use platform::http::{ApiError, headers, limit, log};
use serde_json::{Value, json};

/// The function's dependencies.
pub struct Socket {
    pub app: App,
    pub sender: Sender,
}

impl Socket {
    /// Answers one event. The answer to `$connect` accepts or refuses the client; the gateway ignores the others.
    pub async fn handle(&self, event: ApiGatewayWebsocketProxyRequest) -> Value {
        let route = event.request_context.route_key.clone().unwrap_or_default();
        let answer = match event.request_context.connection_id.as_deref() {
            None => refusal(&ApiError::NotFound),
            Some(id) => match route.as_str() {
                "$connect" => match self.connect(id, &event).await {
                    Ok(()) => json!({"statusCode": 200}),
                    Err(error) => refusal(&error),
                },
                "$disconnect" => {
                    rows::close(&self.app.db, id).await;
                    json!({"statusCode": 200})
                }
                _ => {
                    self.said(id, &event).await;
                    json!({"statusCode": 200})
                }
            },
        };
        log::event("socket", json!({"route": route, "status": answer["statusCode"]}));
        answer
    }

    async fn connect(&self, id: &str, event: &ApiGatewayWebsocketProxyRequest) -> Result<(), ApiError> {
        // Limited by IP address: a connection costs by the minute, and a caller can create any number of wallets.
        let peer = event.request_context.identity.source_ip.as_deref();
        let source = Subject::Source(limit::peer_or_viewer(&event.headers, peer));
        limits::take(&self.app, source, Class::Connect).await?;
        let headers = identity(event)?;
        let caller = self.app.caller(&headers, Scope::Read).await?;
        match limits::take(&self.app, Subject::Everybody, Class::ConnectAll).await {
            // Strangers have used up what all share. Agents with money go on, each within its own limit.
            Err(refusal @ ApiError::RateLimited(_)) => {
                if !account::load(&self.app.db, caller.agent).await?.is_proven() {
                    return Err(refusal);
                }
                limits::take(&self.app, Subject::Agent(caller.agent), Class::Connect).await?;
            }
            taken => drop(taken?),
        }
        let mark = headers::bearer(&headers)?.map(|secret| token::mark_of(caller.agent, secret));
        let now = self.app.clock.now();
        match rows::open(&self.app.db, id, caller.agent, mark, now).await? {
            true => Ok(()),
            false => Err(ApiError::TooManyConnections { most: MAX_CONNECTIONS }),
        }
    }

    /// Answers a message. A failed send is only logged: the client can still poll.
    async fn said(&self, id: &str, event: &ApiGatewayWebsocketProxyRequest) {
        let answers = match self.answer(id, event).await {
            Ok(answers) => answers,
            Err(error) => {
                if let ApiError::Unavailable(cause) = &error {
                    log::failure("a message could not be answered", cause);
                }
                vec![message::error(&error)]
            }
        };
        for text in answers {
            match self.sender.send(id, &text).await {
                Sent::Yes => {}
                Sent::Gone => return rows::close(&self.app.db, id).await,
                Sent::Failed(cause) => return log::failure("a message could not be sent", &cause),
            }
        }
    }

    async fn answer(&self, id: &str, event: &ApiGatewayWebsocketProxyRequest) -> Result<Vec<String>, ApiError> {
        let (unsubscribe, wanted) = match message::read(&text_of(event)?)? {
            Said::Ping => return Ok(vec![message::pong()]),
            Said::Change { unsubscribe, subscribe } => (unsubscribe, subscribe),
        };
        let (app, now) = (&self.app, self.app.clock.now());
        let Some(connection) = rows::load(&app.db, id, now).await? else {
            // The connection's owner is unknown: the client has to connect and authenticate again.
            self.sender.hang_up(id).await;
            return Ok(Vec::new());
        };
        limits::take(app, Subject::Agent(connection.agent), Class::Read).await?;
        let mut answers = Vec::new();
        if let Some(unwanted) = unsubscribe {
            let unwanted: Vec<RequestId> = unwanted.iter().filter_map(|id| id.parse().ok()).collect();
            rows::unwatch(&app.db, id, &unwanted).await?;
            answers.push(message::unsubscribed(&unwanted));
        }
        if let Some(wanted) = wanted {
            if let Some(mark) = &connection.token
                && !token::is_good(&app.db, connection.agent, mark, now).await?
            {
                return Err(ApiError::AccessTokenRevoked);
            }
            // Read again, because the unsubscription above made room.
            let connection = match answers.is_empty() {
                true => Some(connection),
                false => rows::load(&app.db, id, now).await?,
            };
            let Some(connection) = connection else { return Ok(Vec::new()) };
            let subscribed = subscribe::subscribe(app, id, &connection, &wanted).await?;
            answers.push(subscribed.ack);
            answers.extend(subscribed.states);
        }
        Ok(answers)
    }
}

/// The headers that identify the caller; the URL's parameters fill in missing ones.
fn identity(event: &ApiGatewayWebsocketProxyRequest) -> Result<HeaderMap, ApiError> {
    let mut headers = HeaderMap::new();
    for name in ["authorization", "x-agent-id", "x-agent-proof"] {
        if let Some(value) = event.headers.get(name).or_else(|| event.multi_value_headers.get(name)) {
            headers.insert(name, value.clone());
        }
    }
    let query = |name: &str| {
        let (one, many) = (&event.query_string_parameters, &event.multi_value_query_string_parameters);
        one.first(name).or_else(|| many.first(name)).map(str::trim).filter(|value| !value.is_empty())
    };
    // The client did not escape its base64: plus signs arrive as spaces.
    if let (Some(proof), false) = (query("proof"), headers.contains_key("x-agent-proof")) {
        let value = HeaderValue::from_str(&proof.replace(' ', "+"));
        headers.insert("x-agent-proof", value.map_err(|_| ApiError::field("proof", "must be base64"))?);
    }
    if let Some(wallet) = query("wallet") {
        let named: AgentName = wallet.parse().map_err(|message| ApiError::field("wallet", message))?;
        match headers::agent_name(&headers)? {
            Some(other) if other.agent() != named.agent() => return Err(ApiError::AgentMismatch),
            Some(_) => {}
            None => {
                let value =
                    HeaderValue::from_str(wallet).map_err(|_| ApiError::field("wallet", "must be ASCII text"))?;
                headers.insert("x-agent-id", value);
            }
        }
    }
    Ok(headers)
}

/// A message's text. Gateways pass binary messages in base64.
fn text_of(event: &ApiGatewayWebsocketProxyRequest) -> Result<String, ApiError> {
    let body = event.body.clone().unwrap_or_default();
    if !event.is_base64_encoded {
        return Ok(body);
    }
    let bytes = STANDARD.decode(body).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    bytes.ok_or_else(|| ApiError::field("", "must be text"))
}

fn refusal(error: &ApiError) -> Value {
    if let ApiError::Unavailable(cause) = error {
        log::failure("a connection could not be authenticated", cause);
    }
    let mut answer = json!({
        "statusCode": error.status().as_u16(),
        "headers": {"content-type": "application/json", "cache-control": "no-store"},
        "body": error.body().to_string(),
    });
    if let ApiError::RateLimited(taken) = error {
        answer["headers"]["retry-after"] = json!(taken.reset_secs.to_string());
    }
    answer
}
