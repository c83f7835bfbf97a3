//! Judges what a service answered: an answer to sell, the caller's fault, or a failure that is not charged.

mod media;

use base::input::{FieldError, MAX_BODY_DEPTH, depth};
use base::tool_result::{ErrorCode, ToolError, Unavailable};
use base::untrusted_text::visible;
use serde_json::{Value, json};

use crate::numbers;
use crate::tool::{Target, Tool};

pub use media::Media;

/// Largest answer that is checked against a schema, in bytes.
pub const MAX_CHECKED: usize = 1024 * 1024;
/// Largest body of an error that the caller is shown, in bytes, and longest text of one, in characters.
const MAX_FAULT_BYTES: usize = 16 * 1024;
const MAX_FAULT_TEXT: usize = 500;

/// What a service sent. Its body is read up to one byte more than [`Tool::max_response_bytes`], so that a longer one shows.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    pub status: u16,
    /// The header `content-type`.
    pub content_type: Option<&'a str>,
    /// The header `content-length`, if the body was not compressed.
    pub length: Option<u64>,
    /// The id that the call of an MCP server had ([`crate::Request::with_rpc_id`]).
    pub rpc_id: Option<&'a str>,
    pub body: &'a [u8],
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The buyer gets this and is charged.
    Answer(Content),
    /// The input was wrong, as the service says. Whether it is charged is the caller's rule.
    CallersFault {
        /// 0 for an MCP server, which has no status.
        status: u16,
        /// What the service says of it, within bounds; null if that is nothing to show.
        json: Value,
    },
    /// The buyer is not charged.
    Failed(Failure),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    Json(Value),
    /// Never of a type that a browser runs. Send it with `x-content-type-options: nosniff`.
    Bytes {
        bytes: Vec<u8>,
        content_type: &'static str,
    },
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub reason: Reason,
    /// For the buyer and the operator: it has nothing of the answer's text.
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// 5xx, or 408.
    Unavailable,
    /// 429
    RateLimited,
    /// 401 or 403: the operator's key is wrong, or may not do this.
    KeyRefused,
    /// 3xx. Redirects are not followed: secrets would go elsewhere.
    Redirect,
    /// Another status that is neither an answer nor the caller's fault.
    Status,
    /// A content type that the tool does not answer with, or a body that is not of its type.
    ContentType,
    /// Not JSON, or nested too deep.
    NotJson,
    TooLarge,
    /// Shorter than its header says.
    Truncated,
    /// Not as `output_schema` promises.
    Mismatch,
    /// The MCP server answered with an error, or not in the protocol.
    Protocol,
}

impl Reason {
    /// Whether the same call may succeed a moment later. Send it again only if the tool is [`Tool::safe_to_retry`].
    pub const fn may_pass(self) -> bool {
        matches!(self, Reason::Unavailable | Reason::RateLimited | Reason::Truncated)
    }

    /// Whether the operator has to do something: the settings or the service are wrong.
    pub const fn needs_operator(self) -> bool {
        !self.may_pass()
    }
}

impl Failure {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Failure {
        Failure { reason, message: message.into() }
    }

    /// The error of the job.
    pub fn tool_error(&self) -> ToolError {
        match self.reason {
            Reason::RateLimited => ToolError::new(ErrorCode::RateLimited, self.message.clone()),
            Reason::KeyRefused => ToolError::new(ErrorCode::ProviderAuth, self.message.clone()),
            _ => ToolError::unavailable(Unavailable::SourceUnavailable, self.message.clone()),
        }
    }
}

/// Judges the response to a call of this tool.
pub fn judge(tool: &Tool, response: &Response<'_>) -> Outcome {
    let judged = match tool.target {
        Target::Http(_) => judged(tool, response),
        Target::Mcp(_) => crate::mcp::judged(tool, response),
    };
    judged.unwrap_or_else(Outcome::Failed)
}

fn judged(tool: &Tool, response: &Response<'_>) -> Result<Outcome, Failure> {
    let status = response.status;
    if tool.caller_errors.contains(&status) {
        return Ok(Outcome::CallersFault { status, json: fault(response) });
    }
    check_status(status)?;
    check_size(tool, response)?;
    let says_json = response.content_type.is_none_or(|header| Media::of_header(header) == Some(Media::Json));
    if response.body.is_empty() && tool.answers.contains(&Media::Json) && (says_json || status == 204) {
        // 204, and 200 without a body.
        return checked(tool, Value::Null).map(|json| Outcome::Answer(Content::Json(json)));
    }
    let media = media(tool, response)?;
    if media != Media::Json {
        let (bytes, content_type) = (response.body.to_vec(), media.as_str());
        return Ok(Outcome::Answer(Content::Bytes { bytes, content_type }));
    }
    let json = json_of(response.body)?;
    checked(tool, json).map(|json| Outcome::Answer(Content::Json(json)))
}

/// Refuses every status that is not a complete answer.
pub(crate) fn check_status(status: u16) -> Result<(), Failure> {
    let failed =
        |reason: Reason, what: &str| Err(Failure::new(reason, format!("the service {what} (status {status})")));
    match status {
        206 => failed(Reason::Status, "sent only a part"),
        200..=299 => Ok(()),
        300..=399 => failed(Reason::Redirect, "redirected the request, which is not followed"),
        401 | 403 => failed(Reason::KeyRefused, "refused this deployment's key or request"),
        429 => failed(Reason::RateLimited, "limits the rate of requests"),
        408 | 500..=599 => failed(Reason::Unavailable, "is not available"),
        _ => failed(Reason::Status, "answered with an unexpected status"),
    }
}

pub(crate) fn check_size(tool: &Tool, response: &Response<'_>) -> Result<(), Failure> {
    let most = tool.max_response_bytes;
    let stated = response.length.map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if response.body.len() > most || stated.is_some_and(|length| length > most) {
        return Err(Failure::new(Reason::TooLarge, format!("the service sent more than {most} bytes")));
    }
    match stated.is_some_and(|length| length != response.body.len()) {
        true => Err(Failure::new(Reason::Truncated, "the service's answer ended early")),
        false => Ok(()),
    }
}

fn media(tool: &Tool, response: &Response<'_>) -> Result<Media, Failure> {
    let wrong = |message: String| Err(Failure::new(Reason::ContentType, message));
    // Without a header, only what is checked anyway is taken.
    let Some(header) = response.content_type else {
        return match tool.answers.contains(&Media::Json) {
            true => Ok(Media::Json),
            false => wrong("the service named no content type".to_owned()),
        };
    };
    let allowed = tool.answers.iter().map(|media| media.as_str()).collect::<Vec<_>>().join(", ");
    match Media::of_header(header) {
        Some(media) if !tool.answers.contains(&media) => {
            wrong(format!("the service answered with {}, not with {allowed}", media.as_str()))
        }
        None => wrong(format!("the service answered with another content type than {allowed}")),
        Some(media) if !media.fits(response.body) => {
            wrong(format!("the service's answer is not {}, as it says", media.as_str()))
        }
        Some(media) => Ok(media),
    }
}

/// Reads a body as JSON, with or without a byte order mark.
pub(crate) fn json_of(body: &[u8]) -> Result<Value, Failure> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let json: Value =
        serde_json::from_slice(body).map_err(|_| Failure::new(Reason::NotJson, "the service's answer is not JSON"))?;
    if !numbers::are_exact(body) {
        let why =
            "the service's answer has a whole number of more than 64 bits, which would be rounded; it has to be a text";
        return Err(Failure::new(Reason::NotJson, why));
    }
    match depth(&json) > MAX_BODY_DEPTH {
        true => {
            Err(Failure::new(Reason::NotJson, format!("the service's answer is nested deeper than {MAX_BODY_DEPTH}")))
        }
        false => Ok(json),
    }
}

/// The answer, if it is as the output schema promises.
pub(crate) fn checked(tool: &Tool, json: Value) -> Result<Value, Failure> {
    let Some(schema) = &tool.output_schema else { return Ok(json) };
    match schema::validate_up_to(MAX_CHECKED, schema, &json) {
        Ok(()) => Ok(json),
        Err(errors) => Err(Failure::new(Reason::Mismatch, mismatch(&errors))),
    }
}

/// Names the first members that are wrong, for the operator.
fn mismatch(errors: &[FieldError]) -> String {
    let place = |error: &FieldError| {
        let path: String = visible(&error.path).chars().take(80).collect();
        if path.is_empty() { "the whole".to_owned() } else { path }
    };
    let places: Vec<String> = errors.iter().take(3).map(place).collect();
    format!("the service's answer does not match the output schema ({})", places.join(", "))
}

/// What a service says of a caller's fault: its JSON, or the beginning of its text. HTML says nothing.
fn fault(response: &Response<'_>) -> Value {
    let body = response.body;
    if body.is_empty() || body.len() > MAX_FAULT_BYTES {
        return Value::Null;
    }
    match response.content_type.map(Media::of_header) {
        None | Some(Some(Media::Json)) => json_of(body).unwrap_or_default(),
        Some(Some(Media::Text)) => std::str::from_utf8(body).map_or(Value::Null, fault_text),
        Some(_) => Value::Null,
    }
}

/// A text of a service about a fault, as an object.
pub(crate) fn fault_text(text: &str) -> Value {
    let shown: String = visible(text).trim().chars().take(MAX_FAULT_TEXT).collect();
    if shown.is_empty() { Value::Null } else { json!({"message": shown}) }
}

#[cfg(test)]
mod tests;
