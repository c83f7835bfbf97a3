//! Sends the request of a call, and reads the response within its bounds.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use base::digest::{random, sha256};
use base::encoding::base64_url;
use base::tool_result::{ErrorCode, ToolError, Unavailable};
use platform::config::Redacted;
use platform::http::log;
use platform::net::PlainError;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::{Task, Toolbox};
use upstream::{CALL_HEADER, Outcome, Ready, Request, Response, Target, Tool, mcp};

/// How long it is valid.
const VALID_SECS: i64 = 300;
/// Most sessions with MCP servers that a process remembers.
const MOST_SESSIONS: usize = 100;

/// What came of one request.
pub enum Answered {
    Judged(Outcome),
    /// Another attempt would not help: nothing was sent, or nobody may see the answer.
    Final(ToolError),
    /// There was no complete response. The service may have done what it was asked.
    Nothing(ToolError),
}

/// A response that was read.
struct Read {
    status: u16,
    content_type: Option<String>,
    length: Option<u64>,
    session: Option<String>,
    /// The id of the call of an MCP server.
    rpc_id: Option<String>,
    body: Vec<u8>,
}

impl Read {
    fn as_response(&self) -> Response<'_> {
        Response {
            status: self.status,
            content_type: self.content_type.as_deref(),
            length: self.length,
            rpc_id: self.rpc_id.as_deref(),
            body: &self.body,
        }
    }
}

/// Sends the request once. An MCP server that wants a session gets one first.
pub async fn ask(toolbox: &Toolbox, task: &Task, tool: &Tool, request: &Request, until: Instant) -> Answered {
    let asked = match &tool.target {
        Target::Http(_) => send(toolbox, task, tool, request, until).await,
        Target::Mcp(target) => in_session(toolbox, task, tool, target, request, until).await,
    };
    match asked {
        Ok(read) => Answered::Judged(upstream::judge(tool, &read.as_response())),
        Err(none) => none,
    }
}

/// Sessions with MCP servers. Agents have none in common: a server keeps what was done in a session, and mixes up answers if it
/// is careless. Nor have logins.
static SESSIONS: LazyLock<Mutex<HashMap<String, Session>>> = LazyLock::new(Mutex::default);

fn session_key(task: &Task, target: &upstream::McpTarget) -> String {
    format!("{} {} {:?}", task.agent, target.server.address, target.headers)
}

#[derive(Clone)]
struct Session {
    id: Option<String>,
    protocol: String,
}

async fn in_session(
    toolbox: &Toolbox,
    task: &Task,
    tool: &Tool,
    target: &upstream::McpTarget,
    request: &Request,
    until: Instant,
) -> Result<Read, Answered> {
    let key = session_key(task, target);
    let known = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    if let Some(session) = known {
        let read = call(toolbox, task, tool, (request, &session), until).await?;
        if !mcp::wants_session(&read.as_response()) {
            return Ok(read);
        }
    }
    let opened = send(toolbox, task, tool, &mcp::initialize(target), until).await?;
    let result = match mcp::result(&opened.as_response()) {
        Ok(result) => result,
        Err(failure) => return Err(Answered::Judged(Outcome::Failed(failure))),
    };
    let protocol = result["protocolVersion"].as_str().unwrap_or(mcp::PROTOCOL).to_owned();
    let session = Session { id: opened.session, protocol };
    send(toolbox, task, tool, &mcp::initialized(target).in_session(session.id.as_deref(), &session.protocol), until)
        .await?;
    {
        let mut sessions = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MOST_SESSIONS {
            sessions.clear();
        }
        sessions.insert(key, session.clone());
    }
    call(toolbox, task, tool, (request, &session), until).await
}

/// Calls the tool in a session, with an id that nothing else in it has.
async fn call(
    toolbox: &Toolbox,
    task: &Task,
    tool: &Tool,
    (request, session): (&Request, &Session),
    until: Instant,
) -> Result<Read, Answered> {
    let id = const_hex::encode(random::<12>());
    let request = request.clone().with_rpc_id(&id).in_session(session.id.as_deref(), &session.protocol);
    let read = send(toolbox, task, tool, &request, until).await?;
    Ok(Read { rpc_id: Some(id), ..read })
}

async fn send(
    toolbox: &Toolbox,
    task: &Task,
    tool: &Tool,
    request: &Request,
    until: Instant,
) -> Result<Read, Answered> {
    let mut ready = filled(toolbox, tool, request).await.map_err(Answered::Final)?;
    ready.headers.push((CALL_HEADER.to_owned(), call_token(toolbox, task, &ready)));
    let left = until.saturating_duration_since(Instant::now());
    let mut read = match ready.private {
        true => private(toolbox, &ready, left).await?,
        false => public(toolbox, &ready, left).await?,
    };
    read.body.truncate(tool.max_response_bytes + 1);
    if ready.is_repeated_in(&read.body) {
        log::failure(&format!("the service of {} shows buyers its key", tool.name), &"its answer is not passed on");
        return Err(Answered::Final(not_reached("the service's answer may not be shown")));
    }
    Ok(read)
}

async fn filled(toolbox: &Toolbox, tool: &Tool, request: &Request) -> Result<Ready, ToolError> {
    let mut secrets: HashMap<&str, Redacted> = HashMap::new();
    for name in tool.secrets() {
        let secret = toolbox.outbound.key(name).await.map_err(|error| {
            log::failure("the secrets of own services could not be read", &error);
            ToolError::unavailable(Unavailable::ProviderNotConfigured, "the service's key could not be read")
        })?;
        secrets.extend(secret.map(|secret| (name, secret)));
    }
    request.filled(|name| secrets.get(name).map(|secret| secret.expose())).map_err(|problem| {
        log::failure(&format!("{} cannot be asked", tool.name), &problem);
        ToolError::unavailable(
            Unavailable::ProviderNotConfigured,
            "this deployment's key for the service cannot be used",
        )
    })
}

/// A public host, through the guarded client: its address must be public, too.
async fn public(toolbox: &Toolbox, ready: &Ready, left: Duration) -> Result<Read, Answered> {
    let body = ready.body.clone();
    let asked = toolbox.fetcher.exchange_within(left, ready.method.as_str(), &ready.url, &ready.headers, body).await;
    let answer = asked.map_err(|error| {
        use platform::net::FetchError;
        match error {
            FetchError::NotAllowed(_) => {
                log::failure("an own service may not be asked", &error);
                Answered::Final(not_reached("the service's address may not be asked"))
            }
            error => {
                log::failure("an own service did not answer", &error);
                Answered::Nothing(not_reached("the service did not answer"))
            }
        }
    })?;
    if answer.truncated {
        // Longer than any answer may be.
        return Err(Answered::Final(not_reached("the service sent too much")));
    }
    Ok(Read {
        status: answer.status,
        content_type: answer.header("content-type").map(str::to_owned),
        length: None,
        session: answer.header("mcp-session-id").map(str::to_owned),
        rpc_id: None,
        body: answer.body,
    })
}

/// A host on the operator's own network, which only the settings name. No connection serves twice: what a service sends behind
/// its answer would be another buyer's.
async fn private(toolbox: &Toolbox, ready: &Ready, left: Duration) -> Result<Read, Answered> {
    let mut request = http::Request::builder().method(ready.method.as_str()).uri(&ready.url);
    for (name, value) in &ready.headers {
        request = request.header(name, value);
    }
    let request = request.header(http::header::CONNECTION, "close").body(ready.body.clone()).map_err(|error| {
        log::failure("the request of an own service is not valid", &error);
        Answered::Final(ToolError::internal("the request to the service could not be made"))
    })?;
    let answer = toolbox.plain.lasting(left).exchange(request).await.map_err(|error| {
        log::failure("an own service did not answer", &error);
        match error {
            PlainError::NotSent(_) => Answered::Nothing(not_reached("the service could not be reached")),
            PlainError::Lost(_) => Answered::Nothing(not_reached("the service did not answer")),
        }
    })?;
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(Read {
        status: answer.status().as_u16(),
        content_type: header("content-type"),
        length: header("content-length").and_then(|length| length.parse().ok()),
        session: header("mcp-session-id"),
        rpc_id: None,
        body: answer.into_body().to_vec(),
    })
}

fn not_reached(message: &str) -> ToolError {
    ToolError::unavailable(Unavailable::SourceUnavailable, message)
}

/// Says who asks, for which paid call, and what is asked, so that nobody else can use it for another request. Empty in a
/// function without the service's key.
fn call_token(toolbox: &Toolbox, task: &Task, ready: &Ready) -> String {
    let Some(signer) = &toolbox.signer else { return String::new() };
    let now = toolbox.clock.now().secs();
    let without_query = ready.url.split('?').next().unwrap_or_default();
    let mut claims = json!({
        "iss": toolbox.config.base_url.as_deref().unwrap_or(&toolbox.config.service_name),
        "jti": task.request_id.to_string(),
        "iat": now,
        "exp": now + VALID_SECS,
        "sub": task.agent.to_string(),
        "tool": task.tool.name,
        "amount_usdc": task.price.to_string(),
        "htm": ready.method.as_str(),
        "htu": without_query,
        "body_sha256": base64_url(&sha256(&ready.body)),
    });
    if let Some(receipt) = &task.receipt_id {
        claims["receipt_id"] = Value::String(receipt.as_str().to_owned());
    }
    let header = json!({"alg": "EdDSA", "typ": "JWT", "kid": signer.key_id()});
    let signed = format!("{}.{}", base64_url(header.to_string().as_bytes()), base64_url(claims.to_string().as_bytes()));
    let signature = signer.sign(signed.as_bytes());
    format!("{signed}.{signature}")
}

/// What a caller did wrong, as the service says.
pub fn callers_fault(status: u16, said: &Value) -> ToolError {
    let said = match said {
        Value::Null => String::new(),
        // A text that was no JSON stands in this member.
        Value::Object(only) if only.len() == 1 && only.get("message").is_some_and(Value::is_string) => {
            format!(": {}", only["message"].as_str().unwrap_or_default())
        }
        Value::String(text) => format!(": {text}"),
        json => format!(": {json}"),
    };
    let said: String = said.chars().take(1_000).collect();
    let status = if status == 0 { String::new() } else { format!(" (status {status})") };
    ToolError::new(ErrorCode::InvalidInput, format!("the service refused this input{status}{said}"))
}
