//! Tools of MCP servers over the transport "Streamable HTTP": the messages of a session, and the judgement of a result.

use base::encoding::base64_any;
use serde_json::{Map, Value, json};

use crate::outcome::{
    Content, Failure, Media, Outcome, Reason, Response, check_size, check_status, checked, fault_text, json_of,
};
use crate::request::Request;
use crate::tool::{Constant, McpTarget, Method, Tool};

/// The protocol version that is offered.
pub const PROTOCOL: &str = "2025-06-18";
/// The id of a request that has none of its own ([`Request::with_rpc_id`]).
const ID: u64 = 1;
/// JSON-RPC's code for wrong parameters.
const INVALID_PARAMS: i64 = -32602;
/// Most blocks of a result.
const MAX_BLOCKS: usize = 200;
/// Most events of a stream that are read.
const MAX_EVENTS: usize = 1_000;
/// Longest session id, in bytes.
const MAX_SESSION: usize = 500;

/// Opens a session. Its response's header `mcp-session-id`, if there is one, and `result.protocolVersion` belong to
/// [`Request::in_session`] of all further requests.
pub fn initialize(target: &McpTarget) -> Request {
    let params = json!({
        "protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": {"name": "upstream", "version": "1"},
    });
    message(target, Some("initialize"), &params)
}

/// Follows [`initialize`]. It has no answer: 202.
pub fn initialized(target: &McpTarget) -> Request {
    message(target, None, &Value::Null)
}

/// Asks for the server's tools: the first page, or the one behind `cursor`.
pub fn list(target: &McpTarget, cursor: Option<&str>) -> Request {
    let params = cursor.map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
    message(target, Some("tools/list"), &params)
}

/// Calls the tool.
pub(crate) fn request(target: &McpTarget, input: &Map<String, Value>) -> Request {
    let call = message(target, Some("tools/call"), &json!({"name": target.tool, "arguments": input}));
    Request { is_rpc_call: true, ..call }
}

fn message(target: &McpTarget, method: Option<&str>, params: &Value) -> Request {
    let body = match method {
        Some(method) => json!({"jsonrpc": "2.0", "id": ID, "method": method, "params": params}),
        None => json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    };
    let mut headers = target.headers.clone();
    let texts = [("accept", "application/json, text/event-stream"), ("content-type", "application/json")];
    headers.extend(texts.map(|(name, text)| (name.to_owned(), Constant::Text(text.to_owned()))));
    Request {
        method: Method::Post,
        url: target.server.address.clone(),
        query_secrets: Vec::new(),
        headers,
        body: body.to_string().into_bytes(),
        call_id_header: None,
        is_rpc_call: false,
        private: target.server.private,
    }
}

impl Request {
    /// The call with an id of its own, which no other request of the session has: servers that mix up requests of one id would
    /// answer one buyer with another's answer. [`Response::rpc_id`] is the same.
    #[must_use]
    pub fn with_rpc_id(mut self, id: &str) -> Request {
        if let Some(mut message) = serde_json::from_slice::<Value>(&self.body).ok().filter(|_| self.is_rpc_call) {
            message["id"] = json!(id);
            self.body = message.to_string().into_bytes();
        }
        self
    }

    /// The request within an MCP session. An id that is no header's value is left out: the server then says what it wants.
    #[must_use]
    pub fn in_session(mut self, session: Option<&str>, protocol: &str) -> Request {
        let fits = |text: &&str| text.len() <= MAX_SESSION && text.bytes().all(|byte| matches!(byte, b'!'..=b'~'));
        let values = [("mcp-session-id", session), ("mcp-protocol-version", Some(protocol))];
        for (name, value) in values {
            if let Some(value) = value.filter(fits) {
                self.headers.push((name.to_owned(), Constant::Text(value.to_owned())));
            }
        }
        self
    }
}

/// Whether the server wants a new session: it forgot the one of the request, or asks for one. Open one with [`initialize`]
/// and send the request again; nothing was done.
pub fn wants_session(response: &Response<'_>) -> bool {
    let is_own = || json_of(response.body).is_ok_and(|body| body["error"]["code"].as_i64().is_some_and(is_own_code));
    response.status == 404 || (response.status == 400 && is_own())
}

/// Codes that a server defines itself; those of JSON-RPC say that the message is wrong.
fn is_own_code(code: i64) -> bool {
    (-32099..=-32000).contains(&code)
}

/// The result of a request, from a body that is JSON or a stream of events: of [`initialize`] and [`list`]. [`crate::judge`]
/// reads that of a call.
///
/// # Errors
/// The server answered with an error, or not in the protocol.
pub fn result(response: &Response<'_>) -> Result<Value, Failure> {
    match answered(response)? {
        Answered::Result(result) => Ok(result),
        Answered::Error(error) => Err(refused(&error)),
    }
}

/// What JSON-RPC knows as an answer.
enum Answered {
    Result(Value),
    Error(Value),
}

fn answered(response: &Response<'_>) -> Result<Answered, Failure> {
    let protocol = |message: &str| Failure::new(Reason::Protocol, message);
    check_status(response.status)?;
    let header = response.content_type.unwrap_or_default().trim().to_ascii_lowercase();
    let message = match header.starts_with("text/event-stream") {
        true => streamed(response).ok_or_else(|| protocol("the MCP server's stream ended without an answer"))?,
        false if Media::of_header(&header) == Some(Media::Json) => json_of(response.body)?,
        false => return Err(protocol("the MCP server answered neither with JSON nor with a stream of events")),
    };
    if !is_answer(&message, response) {
        return Err(protocol("the MCP server's answer is not the one to the request"));
    }
    let Value::Object(mut message) = message else { return Err(protocol("the MCP server's answer is no object")) };
    match (message.remove("result"), message.remove("error")) {
        (Some(result), None) => Ok(Answered::Result(result)),
        (_, Some(error)) => Ok(Answered::Error(error)),
        (None, None) => Err(protocol("the MCP server's answer has no result")),
    }
}

fn refused(error: &Value) -> Failure {
    let code = error["code"].as_i64().unwrap_or_default();
    Failure::new(Reason::Protocol, format!("the MCP server answered with error {code}"))
}

/// Whether a message is the answer to the request. Errors before it was read have no id.
fn is_answer(message: &Value, response: &Response<'_>) -> bool {
    let id = &message["id"];
    let is_its = match response.rpc_id {
        Some(own) => *id == own,
        None => *id == ID || *id == "1",
    };
    is_its || (id.is_null() && message.get("error").is_some())
}

/// The answer in a stream of events; other messages (progress, logs) are passed over.
fn streamed(response: &Response<'_>) -> Option<Value> {
    let text = std::str::from_utf8(response.body).ok()?;
    let mut data = String::new();
    let mut events = 0;
    // An empty line ends an event; the last one may lack it.
    for line in text.lines().chain([""]) {
        if let Some(rest) = line.strip_prefix("data:") {
            data.push_str(rest.strip_prefix(' ').unwrap_or(rest));
            data.push('\n');
        } else if line.is_empty() && !data.is_empty() {
            events += 1;
            let message = json_of(data.as_bytes()).ok().filter(|message| is_answer(message, response));
            if message.is_some() || events >= MAX_EVENTS {
                return message;
            }
            data.clear();
        }
    }
    None
}

/// Judges the response to a call.
pub(crate) fn judged(tool: &Tool, response: &Response<'_>) -> Result<Outcome, Failure> {
    check_status(response.status)?;
    check_size(tool, response)?;
    let result = match answered(response)? {
        Answered::Result(result) => result,
        Answered::Error(error) if error["code"] == INVALID_PARAMS => {
            let json = fault_text(error["message"].as_str().unwrap_or_default());
            return Ok(Outcome::CallersFault { status: 0, json });
        }
        Answered::Error(error) => return Err(refused(&error)),
    };
    // A server does not say whose fault an error is. Its text is written for who called.
    if result["isError"] == true {
        return Ok(Outcome::CallersFault { status: 0, json: fault_text(&text(&result)) });
    }
    if result.get("resultType").is_some_and(|kind| kind != "complete") {
        return Err(Failure::new(Reason::Protocol, "the MCP server wants more than one request for this call"));
    }
    answer(tool, &result).map(|json| Outcome::Answer(Content::Json(json)))
}

/// The answer to sell: structured content, or what the blocks contain.
fn answer(tool: &Tool, result: &Value) -> Result<Value, Failure> {
    if let Some(structured) = result.get("structuredContent").filter(|structured| !structured.is_null()) {
        return checked(tool, structured.clone());
    }
    let blocks = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    if blocks.len() > MAX_BLOCKS {
        return Err(Failure::new(Reason::TooLarge, format!("the MCP server sent more than {MAX_BLOCKS} blocks")));
    }
    if tool.output_schema.is_some() {
        // Older servers send the JSON as text alone.
        let json = json_of(text(result).as_bytes()).map_err(|_| {
            Failure::new(
                Reason::Mismatch,
                "the MCP server sent no structured content, which the output schema promises",
            )
        })?;
        return checked(tool, json);
    }
    let mut answer = Map::new();
    answer.insert("text".to_owned(), Value::String(text(result)));
    let others: Result<Vec<Value>, Failure> =
        blocks.iter().filter(|block| block["type"] != "text").map(block).collect();
    let others = others?;
    if !others.is_empty() {
        answer.insert("content".to_owned(), Value::Array(others));
    }
    Ok(Value::Object(answer))
}

/// The texts of all text blocks, a line break between them.
fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().map_or(&[][..], Vec::as_slice);
    let texts = blocks.iter().take(MAX_BLOCKS).filter(|block| block["type"] == "text");
    texts.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

const UNFIT: &str = "content of a type that is not sold, or not of the type it says";

/// Base64 in a member, and its content type, if that is on the list and the bytes can be of it.
fn encoded<'a>(holder: &'a Value, member: &str) -> Option<(&'static str, &'a str)> {
    let media = Media::of_header(holder["mimeType"].as_str()?)?;
    let data = holder[member].as_str()?;
    media.fits(&base64_any(data)?).then_some((media.as_str(), data))
}

/// A block that is no text, with its known members only.
fn block(block: &Value) -> Result<Value, Failure> {
    let wrong = |what: &str| Failure::new(Reason::ContentType, format!("the MCP server sent {what}"));
    match block["type"].as_str() {
        Some(kind @ ("image" | "audio")) => {
            let (media, data) = encoded(block, "data").ok_or_else(|| wrong(UNFIT))?;
            Ok(json!({"type": kind, "content_type": media, "data": data}))
        }
        Some("resource_link") => {
            let mut link = Map::new();
            for name in ["type", "uri", "name", "title", "description"] {
                link.extend(block.get(name).map(|value| (name.to_owned(), value.clone())));
            }
            Ok(Value::Object(link))
        }
        Some("resource") => {
            let resource = &block["resource"];
            if let Some(text) = resource["text"].as_str() {
                return Ok(json!({"type": "resource", "uri": resource["uri"], "text": text}));
            }
            let (media, data) = encoded(resource, "blob").ok_or_else(|| wrong(UNFIT))?;
            Ok(json!({"type": "resource", "uri": resource["uri"], "content_type": media, "data": data}))
        }
        _ => Err(wrong("a block of an unknown type")),
    }
}

#[cfg(test)]
mod tests;
