//! Writes entries of `OWN_TOOLS` into `settings.json` from what a service says of itself (docs/SELLING.md):
//! `sell --openapi=<file or URL> --price=0.01 [--only='*' or ids, 'GET /path' and tag:names, with commas]` or
//! `sell --mcp=<URL> --price=0.01 [--secret=name]`. Options of both: `--server=`, `--private`, `--prefix=`, `--category=`,
//! `--settings=settings.json`, `--dry-run`.
//!
//! An entry that asks the same of the same service is replaced, so that a changed document can be read again. Its name and
//! price stay, and what else was changed by hand.

use std::process::ExitCode;
use std::time::Duration;

use base::tool_result::ToolError;
use catalog::CATALOG;
use local::operator;
use platform::net::PlainHttp;
use serde_json::{Map, Value, json};
use tools::own::RESERVED;
use tools::spec::{MARKET, TOP_UP};
use upstream::{Constant, McpServer, McpTarget, Request, Response, Select, Selection, Server, mcp};

const USAGE: &str = "usage: sell --openapi=FILE|URL --price=0.01 [--only=operationId,tag:name,…] or sell --mcp=URL --price=0.01 \
                     [--only=tool,…]; further: --server=URL --private --prefix=word --category=word --secret=name \
                     --settings=settings.json --dry-run";
/// Most pages of an MCP server's list.
const MOST_PAGES: usize = 20;
const TIMEOUT: Duration = Duration::from_secs(20);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    operator::exit(run().await)
}

#[derive(Default)]
struct Wanted {
    openapi: Option<String>,
    mcp: Option<String>,
    price: Option<String>,
    only: Vec<String>,
    server: Option<String>,
    prefix: Option<String>,
    category: Option<String>,
    secret: Option<String>,
    settings: Option<String>,
    private: bool,
    dry_run: bool,
}

fn wanted() -> Result<Wanted, String> {
    let mut wanted = Wanted::default();
    for word in std::env::args().skip(1) {
        match word.split_once('=') {
            Some(("--openapi", value)) => wanted.openapi = Some(value.to_owned()),
            Some(("--mcp", value)) => wanted.mcp = Some(value.to_owned()),
            Some(("--price", value)) => wanted.price = Some(value.to_owned()),
            Some(("--only", value)) => {
                wanted.only =
                    value.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect();
            }
            Some(("--server", value)) => wanted.server = Some(value.to_owned()),
            Some(("--prefix", value)) => wanted.prefix = Some(value.to_owned()),
            Some(("--category", value)) => wanted.category = Some(value.to_owned()),
            Some(("--secret", value)) => wanted.secret = Some(value.to_owned()),
            Some(("--settings", value)) => wanted.settings = Some(value.to_owned()),
            None if word == "--private" => wanted.private = true,
            None if word == "--dry-run" => wanted.dry_run = true,
            _ => return Err(format!("{word} is not known here. {USAGE}")),
        }
    }
    Ok(wanted)
}

async fn run() -> Result<String, String> {
    let wanted = wanted()?;
    let price = wanted.price.clone().ok_or(USAGE)?;
    let file = wanted.settings.clone().unwrap_or_else(|| "settings.json".to_owned());
    let mut settings = read_settings(&file)?;
    let is_taken = |name: &str| {
        RESERVED.contains(&name) || CATALOG.iter().chain(MARKET).chain([&TOP_UP]).any(|tool| tool.name == name)
    };
    let mut imported = match (&wanted.openapi, &wanted.mcp) {
        (Some(source), None) => {
            let document = document(source).await?;
            let only = if wanted.only.is_empty() { vec!["*".to_owned()] } else { wanted.only.clone() };
            let selection = Selection {
                prefix: wanted.prefix.clone(),
                server: wanted.server.clone(),
                document_url: is_url(source).then(|| source.clone()),
                private: wanted.private,
                category: wanted.category.clone(),
                ..Selection::new(only.iter().map(|text| Select::parse(text)).collect(), &price)
            };
            upstream::from_openapi(&document, &selection, &is_taken)
        }
        (None, Some(address)) => {
            let mut headers = Map::new();
            if let Some(secret) = &wanted.secret {
                headers.insert("authorization".to_owned(), json!({"secret": secret, "prefix": "Bearer "}));
            }
            let list = tools_of(address, wanted.secret.as_deref()).await?;
            let server = McpServer {
                address: address.clone(),
                private: wanted.private,
                only: wanted.only.clone(),
                price: Value::from(price),
                prefix: wanted.prefix.clone(),
                category: wanted.category.clone(),
                headers,
            };
            upstream::from_mcp(&list, &server, &is_taken)
        }
        _ => return Err(USAGE.to_owned()),
    };
    if imported.tools.is_empty() {
        return Err(format!("nothing to sell{}", imported.told()));
    }
    let replaced = imported.merge_into(upstream::entries_of(&mut settings["OWN_TOOLS"])?, &is_taken);
    let told = imported.told();
    let own = settings["OWN_TOOLS"].to_string();
    tools::own::read(&own, &CATALOG)
        .map_err(|problems| format!("the settings would be wrong:\n  {}", problems.join("\n  ")))?;
    if wanted.dry_run {
        // The rest of the settings may have secrets in it.
        let entries: Vec<&Value> = imported.tools.iter().map(|tool| &tool.entry).collect();
        return Ok(format!("{:#}{told}", json!(entries)));
    }
    std::fs::write(&file, format!("{settings:#}\n")).map_err(|error| format!("{file}: {error}"))?;
    let new = imported.tools.len() - replaced;
    Ok(format!("{file}: {new} new tools, {replaced} replaced{told}"))
}

fn read_settings(file: &str) -> Result<Value, String> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "{}".to_owned(),
        Err(error) => return Err(format!("{file}: {error}")),
    };
    let settings: Value = serde_json::from_str(&text).map_err(|error| format!("{file}: {error}"))?;
    if settings.is_object() { Ok(settings) } else { Err(format!("{file} must be a JSON object")) }
}

fn is_url(source: &str) -> bool {
    source.starts_with("https://") || source.starts_with("http://")
}

async fn document(source: &str) -> Result<Value, String> {
    let text = if is_url(source) {
        let request =
            http::Request::get(source).header("accept", "application/json, application/yaml, */*").body(Vec::new());
        let request = request.map_err(|error| format!("{source}: {error}"))?;
        let answer =
            PlainHttp::new(None).lasting(TIMEOUT).send(request).await.map_err(|error| format!("{source}: {error}"))?;
        if answer.status != 200 {
            return Err(format!("{source} answered {}; of a redirect, give the last address", answer.status));
        }
        String::from_utf8_lossy(&answer.body).into_owned()
    } else {
        std::fs::read_to_string(source).map_err(|error| format!("{source}: {error}"))?
    };
    serde_json::from_str(&text).or_else(|_| upstream::from_yaml(&text)).map_err(|error| format!("{source}: {error}"))
}

/// The tools that an MCP server lists.
async fn tools_of(address: &str, secret: Option<&str>) -> Result<Value, String> {
    let keys: Map<String, Value> = match std::env::var("PROVIDER_KEYS") {
        Ok(text) => serde_json::from_str(&text).map_err(|error| format!("PROVIDER_KEYS: {error}"))?,
        Err(_) => Map::new(),
    };
    let use_of = |secret: &str| {
        Constant::Secret(upstream::SecretUse { secret: secret.to_owned(), prefix: "Bearer ".to_owned(), base64: false })
    };
    let headers = secret.map(|secret| ("authorization".to_owned(), use_of(secret))).into_iter().collect();
    let server = Server { address: address.to_owned(), private: true };
    let target = McpTarget { server, tool: String::new(), headers };
    let key = |name: &str| keys.get(name).and_then(Value::as_str);

    let opened = send(&mcp::initialize(&target), key).await?;
    let result = mcp::result(&opened.response()).map_err(|failure| failure_text(failure.tool_error()))?;
    let protocol = result["protocolVersion"].as_str().unwrap_or(mcp::PROTOCOL).to_owned();
    let within = |request: Request| request.in_session(opened.session.as_deref(), &protocol);
    send(&within(mcp::initialized(&target)), key).await?;
    let (mut tools, mut cursor) = (Vec::new(), None);
    for _ in 0..MOST_PAGES {
        let page = send(&within(mcp::list(&target, cursor.as_deref())), key).await?;
        let mut page = mcp::result(&page.response()).map_err(|failure| failure_text(failure.tool_error()))?;
        tools.extend(page["tools"].as_array_mut().map(std::mem::take).unwrap_or_default());
        cursor = page["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    Ok(json!({ "tools": tools }))
}

fn failure_text(error: ToolError) -> String {
    error.message
}

struct Answered {
    status: u16,
    content_type: Option<String>,
    session: Option<String>,
    body: Vec<u8>,
}

impl Answered {
    fn response(&self) -> Response<'_> {
        Response {
            status: self.status,
            content_type: self.content_type.as_deref(),
            length: None,
            rpc_id: None,
            body: &self.body,
        }
    }
}

async fn send<'k>(request: &Request, key: impl Fn(&str) -> Option<&'k str>) -> Result<Answered, String> {
    let ready = request.filled(key).map_err(|problem| problem.to_string())?;
    let mut request = http::Request::builder().method(ready.method.as_str()).uri(&ready.url);
    for (name, value) in &ready.headers {
        request = request.header(name, value);
    }
    let request = request.body(ready.body).map_err(|error| error.to_string())?;
    let answer = PlainHttp::new(None).lasting(TIMEOUT).exchange(request).await.map_err(|error| error.to_string())?;
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let (content_type, session) = (header("content-type"), header("mcp-session-id"));
    Ok(Answered { status: answer.status().as_u16(), content_type, session, body: answer.into_body().to_vec() })
}
