//! One entry of the settings file.

use std::time::Duration;

use serde_json::{Map, Value};

use super::Reserved;
use super::address::server;
use super::constants::{self, Constants, is_connection_header, is_header_name};
use super::schemas::{Members, close};
use super::slots::{self, OWN_HEADERS, Place};
use crate::outcome::Media;
use crate::price::{Measure, Price};
use crate::problem::{Problem, Reader, below, boolean, text, whole};
use crate::tool::{Body, HttpTarget, McpTarget, Method, Server, Target, Tool};

pub const MAX_NAME: usize = 40;
pub const MAX_TITLE: usize = 80;
pub const MAX_SUMMARY: usize = 500;
const MAX_MCP_NAME: usize = 128;
const DEADLINES: (u32, u32) = (1, 600);
const DEFAULT_DEADLINE: u32 = 20;
const MAX_CACHE: u32 = 86_400;
const MOST_A_DAY: u32 = 100_000_000;
const MOST_AT_ONCE: u32 = 1_000;
/// Largest answers: at most, and if the settings do not say. An answer that is checked against a schema has the limit of
/// that check.
const MOST_BYTES: u32 = 4_000_000;
const DEFAULT_BYTES: u32 = 1024 * 1024;
const MOST_CHECKED: u32 = crate::outcome::MAX_CHECKED as u32;
const CALLER_ERRORS: [u16; 4] = [400, 404, 409, 422];

/// The members that say what a tool is, not where it is done.
struct Offer {
    name: Option<String>,
    title: Option<String>,
    summary: Option<String>,
    category: Option<String>,
    price: Option<Price>,
    input_schema: Option<Value>,
    output_schema: Option<Value>,
    answers: Vec<Media>,
}

impl Tool {
    /// Reads one entry; `at` is its pointer.
    pub(crate) fn read(entry: &Value, at: &str, reserved: Reserved<'_>) -> Result<Tool, Vec<Problem>> {
        let mut reader = Reader::new(entry, at)?;
        let offer = offer(&mut reader, reserved);
        let is_mcp = reader.optional("kind", |value| match value.as_str() {
            Some("http") => Ok(false),
            Some("mcp") => Ok(true),
            _ => Err("must be \"http\" or \"mcp\"".to_owned()),
        });
        let is_mcp = is_mcp.unwrap_or_default();
        let server = service(&mut reader);
        let constants = reader.inner("constants", constants::read).unwrap_or_default();
        let target = match is_mcp {
            true => mcp_target(&mut reader, server, constants),
            false => http_target(&mut reader, server, constants, offer.input_schema.as_ref()),
        };
        check_price(&mut reader, &offer);
        let method = target.as_ref().and_then(|target| match target {
            Target::Http(http) => Some((http.method, http.call_id_header.is_some())),
            Target::Mcp(_) => None,
        });
        let example =
            reader.optional("example", |value| value.as_object().ok_or_else(|| "must be an object".to_owned()));
        let limits = Limits::read(&mut reader, method, is_mcp, offer.output_schema.is_some() && !is_mcp);
        let problems = reader.finish();
        let whole = (offer.name, offer.title, offer.summary, offer.price, offer.input_schema, target);
        match whole {
            (Some(name), Some(title), Some(summary), Some(price), Some(input_schema), Some(target))
                if problems.is_empty() =>
            {
                let tool = Tool {
                    name,
                    title,
                    summary,
                    category: offer.category,
                    price,
                    target,
                    input_schema,
                    example: None,
                    output_schema: offer.output_schema,
                    answers: offer.answers,
                    caller_errors: limits.caller_errors,
                    safe_to_retry: limits.safe_to_retry,
                    deadline: limits.deadline,
                    cache: limits.cache,
                    calls_per_day: limits.calls_per_day,
                    at_once: limits.at_once,
                    max_response_bytes: limits.max_response_bytes,
                };
                tool.with_example(example, at)
            }
            _ => Err(problems),
        }
    }

    /// With an example, which has to be a call that could be made.
    fn with_example(mut self, example: Option<&Map<String, Value>>, at: &str) -> Result<Tool, Vec<Problem>> {
        let Some(example) = example else { return Ok(self) };
        if let Err(errors) = self.check(example) {
            let at = below(at, "example");
            return Err(errors
                .into_iter()
                .map(|error| Problem::new(within(&at, &error.path), error.message))
                .collect());
        }
        self.example = Some(example.clone());
        Ok(self)
    }
}

fn offer(reader: &mut Reader<'_>, reserved: Reserved<'_>) -> Offer {
    let name = reader.required("name", |value| {
        let name = value.as_str().filter(|name| is_word(name));
        let name = name.ok_or_else(|| format!("must be snake_case, with at most {MAX_NAME} characters"))?;
        if reserved(name) { Err("is the name of another tool; choose another".to_owned()) } else { Ok(name.to_owned()) }
    });
    let title = reader.required("title", text(1, MAX_TITLE));
    let summary = reader.required("summary", text(1, MAX_SUMMARY));
    let category = reader.optional("category", |value| {
        let word = value.as_str().filter(|word| is_word(word));
        word.map(str::to_owned).ok_or_else(|| format!("must be snake_case, with at most {MAX_NAME} characters"))
    });
    if !reader.has("price") {
        reader.problem("price", "is required");
    }
    let price = reader.inner("price", Price::read);
    if !reader.has("input_schema") {
        reader.problem(
            "input_schema",
            "is required; a tool without input has {\"type\": \"object\", \"properties\": {}}",
        );
    }
    let input_schema = reader.inner("input_schema", input_schema);
    let output_schema = reader.inner("output_schema", |value, at| admitted(value, at).map(|()| value.clone()));
    let answers = reader.optional("answers", answers).unwrap_or_else(|| vec![Media::Json]);
    if output_schema.is_some() && answers != [Media::Json] {
        reader.problem("answers", "must be [\"application/json\"] or left out: an output_schema describes JSON");
    }
    Offer { name, title, summary, category, price, input_schema, output_schema, answers }
}

/// A name in snake_case that begins with a letter.
pub fn is_word(text: &str) -> bool {
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    text.len() <= MAX_NAME && text.starts_with(|first: char| first.is_ascii_lowercase()) && text.split('_').all(is_part)
}

/// The pointer of a place that is named by a dotted path.
fn within(at: &str, path: &str) -> String {
    path.split('.').filter(|part| !part.is_empty()).fold(at.to_owned(), |at, part| below(&at, part))
}

/// A schema's problems with JSON pointers.
fn admitted(value: &Value, at: &str) -> Result<(), Vec<Problem>> {
    schema::admit(value).map_err(|errors| {
        errors.into_iter().map(|error| Problem::new(within(at, &error.path), error.message)).collect()
    })
}

fn input_schema(value: &Value, at: &str) -> Result<Value, Vec<Problem>> {
    if value["type"] != "object" {
        return Err(vec![Problem::new(below(at, "type"), "must be \"object\"")]);
    }
    admitted(value, at)?;
    let mut schema = value.clone();
    close(&mut schema);
    Ok(schema)
}

fn answers(value: &Value) -> Result<Vec<Media>, String> {
    let names = value.as_array().filter(|names| !names.is_empty()).ok_or("must be an array of content types")?;
    let mut answers = Vec::new();
    for name in names {
        let media = name.as_str().and_then(Media::named);
        let media = media.ok_or_else(|| format!("may only have {}", Media::ALL.map(Media::as_str).join(", ")))?;
        if !answers.contains(&media) {
            answers.push(media);
        }
    }
    Ok(answers)
}

fn service(reader: &mut Reader<'_>) -> Option<Server> {
    let private = reader.optional("private", boolean).unwrap_or_default();
    reader.required("address", |value| server(value.as_str().ok_or("must be a string")?, private))
}

fn http_target(
    reader: &mut Reader<'_>,
    server: Option<Server>,
    constants: Constants,
    input: Option<&Value>,
) -> Option<Target> {
    let method = reader.required("method", |value| {
        let found = Method::ALL.into_iter().find(|method| value == method.as_str());
        found.ok_or_else(|| "must be GET, POST, PUT, PATCH or DELETE".to_owned())
    });
    let path = reader.required("path", |value| value.as_str().ok_or_else(|| "must be a string".to_owned()));
    let given = reader.value("slots");
    let call_id_header = reader.optional("call_id_header", call_id_header);
    let (Some(method), Some(path), Some(input)) = (method, path, input) else {
        return None;
    };
    let at = reader.at.clone();
    let place = Place { entry: &at, method, members: &Members::of(input) };
    let slots = match slots::read(path, given, &place) {
        Ok(slots) => slots,
        Err(problems) => {
            reader.problems.extend(problems);
            return None;
        }
    };
    let has_constant = |list: &[(String, _)], name: &str| list.iter().any(|(known, _)| known == name);
    for slot in slots.query.iter().filter(|slot| has_constant(&constants.query, &slot.name)) {
        reader.problem("slots", format!("fills {} of the query, which constants has too", slot.name));
    }
    for slot in slots.headers.iter().filter(|slot| has_constant(&constants.headers, &slot.name)) {
        reader.problem("slots", format!("fills the header {}, which constants has too", slot.name));
    }
    if let Some(name) = &call_id_header
        && (has_constant(&constants.headers, name) || slots.headers.iter().any(|slot| slot.name == *name))
    {
        reader.problem("call_id_header", "must not be a header that slots or constants fill");
    }
    if has_constant(&constants.headers, "content-type") && !matches!(slots.body, Body::Json(_)) {
        reader.problem("constants", "may set content-type only beside a JSON body");
    }
    Some(Target::Http(Box::new(HttpTarget {
        method,
        server: server?,
        path: slots.path,
        query: slots.query,
        headers: slots.headers,
        body: slots.body,
        constant_query: constants.query,
        constant_headers: constants.headers,
        call_id_header,
    })))
}

fn call_id_header(value: &Value) -> Result<String, String> {
    let name = value.as_str().unwrap_or_default().to_ascii_lowercase();
    let is_free = !is_connection_header(&name) && !OWN_HEADERS.contains(&name.as_str());
    match is_header_name(&name) && is_free {
        true => Ok(name),
        false => Err("must be the name of a header such as idempotency-key".to_owned()),
    }
}

fn mcp_target(reader: &mut Reader<'_>, server: Option<Server>, constants: Constants) -> Option<Target> {
    let tool = reader.required("tool", text(1, MAX_MCP_NAME));
    if !constants.query.is_empty() {
        reader.problem("constants", "must have headers only: an MCP server has no query");
    }
    if reader.has("answers") {
        reader.problem("answers", "must be left out: an MCP server answers in its protocol");
    }
    let of_protocol = ["content-type", "accept", "mcp-session-id", "mcp-protocol-version"];
    if constants.headers.iter().any(|(name, _)| of_protocol.contains(&name.as_str())) {
        reader.problem("constants", format!("must not set {}", of_protocol.join(", ")));
    }
    Some(Target::Mcp(McpTarget { server: server?, tool: tool?, headers: constants.headers }))
}

/// A price by the input needs a member that every valid input has.
fn check_price(reader: &mut Reader<'_>, offer: &Offer) {
    let (Some(Price::Per(per)), Some(schema)) = (&offer.price, &offer.input_schema) else { return };
    let types: &[&str] = match per.measure {
        Measure::Number => &["number", "integer"],
        Measure::Length => &["string", "array"],
    };
    if let Some(why) = Members::of(schema).why_not_measured(&per.pointer, types) {
        let at = below(&below(&reader.at, "price"), "per");
        reader.problems.push(Problem::new(at, why));
    }
}

/// How a call is made, and its bounds.
struct Limits {
    caller_errors: Vec<u16>,
    safe_to_retry: bool,
    deadline: Duration,
    cache: Duration,
    calls_per_day: Option<u32>,
    at_once: Option<u32>,
    max_response_bytes: usize,
}

impl Limits {
    /// `method`: with whether the service knows repeated calls by their id.
    fn read(reader: &mut Reader<'_>, method: Option<(Method, bool)>, is_mcp: bool, is_checked: bool) -> Limits {
        let caller_errors = match is_mcp {
            true => Vec::new(),
            false => reader.optional("caller_errors", caller_errors).unwrap_or_else(|| CALLER_ERRORS.to_vec()),
        };
        let safe_to_retry = reader.optional("safe_to_retry", boolean);
        let deadline = reader.optional("deadline_seconds", whole(DEADLINES.0, DEADLINES.1)).unwrap_or(DEFAULT_DEADLINE);
        let cache = reader.optional("cache_seconds", whole(0, MAX_CACHE)).unwrap_or_default();
        if cache > 0 && method.is_some_and(|(method, _)| method != Method::Get) {
            reader.problem("cache_seconds", "is only for GET; leave it out");
        }
        if cache > 0 && is_mcp {
            reader.problem("cache_seconds", "is only for GET, and not for MCP; leave it out");
        }
        let calls_per_day = reader.optional("calls_per_day", whole(1, MOST_A_DAY));
        let at_once = reader.optional("at_once", whole(1, MOST_AT_ONCE));
        let bytes = reader.optional("max_response_bytes", whole(1, MOST_BYTES));
        if is_checked && bytes.is_some_and(|bytes| bytes > MOST_CHECKED) {
            let message = format!(
                "may be at most {MOST_CHECKED} beside an output_schema: no larger answer is checked. Lower it, or leave output_schema out"
            );
            reader.problem("max_response_bytes", message);
        }
        let bytes = bytes.unwrap_or(DEFAULT_BYTES);
        Limits {
            caller_errors,
            safe_to_retry: safe_to_retry
                .unwrap_or_else(|| method.is_some_and(|(method, has_id)| method.is_idempotent() || has_id)),
            deadline: Duration::from_secs(u64::from(deadline)),
            cache: Duration::from_secs(u64::from(cache)),
            calls_per_day,
            at_once,
            max_response_bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        }
    }
}

/// Statuses from 400 to 499 that can be a caller's fault: not those of a wrong key or a used-up rate.
fn caller_errors(value: &Value) -> Result<Vec<u16>, String> {
    let message = "must be an array of statuses from 400 to 499, without 401, 403, 407 and 429, which are the service's own fault";
    let mut statuses = Vec::new();
    for status in value.as_array().ok_or(message)? {
        let status = status.as_u64().and_then(|status| u16::try_from(status).ok());
        let status = status.filter(|status| (400..500).contains(status) && ![401, 403, 407, 429].contains(status));
        statuses.push(status.ok_or(message)?);
    }
    statuses.sort_unstable();
    statuses.dedup();
    Ok(statuses)
}
