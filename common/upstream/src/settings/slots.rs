//! Which members of the input go where in a request.

use base::encoding::percent_encoded;
use serde_json::Value;

use super::constants::{is_connection_header, is_header_name};
use super::schemas::Members;
use crate::problem::{Problem, Reader, below};
use crate::tool::{Body, Content, HeaderSlot, Method, PathPart, QuerySlot, Segment, Style};

const MAX_PATH: usize = 500;
const MAX_SEGMENTS: usize = 30;
const MAX_NAME: usize = 100;
/// Headers that a caller may not fill: they say who asks, or how the body is read.
pub const OWN_HEADERS: [&str; 7] =
    ["authorization", "cookie", "content-type", "accept", "user-agent", "forwarded", "x-real-ip"];

/// The slots of an HTTP tool.
pub struct Slots {
    pub path: Vec<Segment>,
    pub query: Vec<QuerySlot>,
    pub headers: Vec<HeaderSlot>,
    pub body: Body,
}

/// Where the problems of the parts belong.
pub struct Place<'a> {
    pub entry: &'a str,
    pub method: Method,
    pub members: &'a Members<'a>,
}

/// The members of `slots`, before they are compared with the schema.
#[derive(Default)]
struct Given {
    path: Vec<(String, String)>,
    /// `Some(None)`: the rest.
    query: Option<Option<Vec<QuerySlot>>>,
    headers: Vec<HeaderSlot>,
    content: Option<Option<Content>>,
    form: Option<Style>,
}

/// Reads `path` and `slots`, and compares them with the input schema.
pub fn read(path: &str, slots: Option<&Value>, place: &Place<'_>) -> Result<Slots, Vec<Problem>> {
    let at = below(place.entry, "slots");
    let given = slots.map_or_else(|| Ok(Given::default()), |slots| given(slots, &at))?;
    let segments =
        template(path, &given.path).map_err(|message| vec![Problem::new(below(place.entry, "path"), message)])?;
    let mut problems = Vec::new();
    let in_path = path_members(&segments);
    for (name, _) in &given.path {
        if !path.contains(&format!("{{{name}}}")) && !path.contains(&format!("{{+{name}}}")) {
            problems.push(Problem::new(below(&below(&at, "path"), name), "is not in the path"));
        }
    }
    check_path(&in_path, place, &mut problems);
    let mut taken: Vec<String> = in_path;
    taken.extend(given.headers.iter().map(|slot| slot.member.clone()));
    taken.extend(given.query.iter().flatten().flatten().map(|slot| slot.member.clone()));
    let (query, body) = query_and_body(&given, &mut taken, place, &at, &mut problems);
    check_members(&query, &given.headers, &body, place, &at, &mut problems);
    check_sent(&taken, &body, place, &at, &mut problems);
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Slots { path: segments, query, headers: given.headers, body })
}

/// Query and body, with the defaults of the method: what has no other slot goes into the body of POST, PUT and PATCH, and
/// into the query of GET and DELETE.
fn query_and_body(
    given: &Given,
    taken: &mut Vec<String>,
    place: &Place<'_>,
    at: &str,
    problems: &mut Vec<Problem>,
) -> (Vec<QuerySlot>, Body) {
    let free = |taken: &[String]| -> Vec<String> {
        place.members.names().filter(|name| !taken.iter().any(|known| known == name)).map(str::to_owned).collect()
    };
    let content = match &given.content {
        Some(content) => content.clone(),
        None => {
            (place.method.has_body() && (!free(taken).is_empty() || place.members.is_open())).then_some(Content::Rest)
        }
    };
    if content.is_some() && place.method == Method::Get {
        problems.push(Problem::new(below(at, "body"), "must be left out: a GET has none"));
    }
    if let Some(Content::Member(member)) = &content {
        taken.push(member.clone());
    }
    let query = match (&given.query, &content) {
        (Some(Some(slots)), _) => slots.clone(),
        (Some(None), Some(Content::Rest | Content::Input)) => {
            problems.push(Problem::new(below(at, "query"), "cannot be the rest, which goes into the body"));
            Vec::new()
        }
        (Some(None), _) | (None, None) => {
            let rest = free(taken);
            taken.extend(rest.iter().cloned());
            rest.into_iter()
                .map(|name| QuerySlot { name: name.clone(), member: name, style: Style::Repeated })
                .collect()
        }
        (None, Some(_)) => Vec::new(),
    };
    let body = match (content, given.form) {
        (None, _) => Body::None,
        (Some(content), None) => Body::Json(content),
        (Some(content), Some(style)) => Body::Form(content, style),
    };
    (query, body)
}

fn check_path(in_path: &[String], place: &Place<'_>, problems: &mut Vec<Problem>) {
    let at = below(place.entry, "path");
    for member in in_path {
        if !place.members.has(member) {
            problems.push(Problem::new(&at, format!("names {member}, which is not a member of input_schema")));
            continue;
        }
        if !place.members.is_required(member) {
            problems.push(Problem::new(&at, format!("needs {member}: name it in required of input_schema")));
        }
        let scalar = ["string", "integer", "number", "boolean", "array"];
        if place.members.types(member).is_some_and(|types| types.iter().any(|kind| !scalar.contains(kind))) {
            problems.push(Problem::new(&at, format!("names {member}, which must not be an object or null")));
        }
    }
}

fn check_members(
    query: &[QuerySlot],
    headers: &[HeaderSlot],
    body: &Body,
    place: &Place<'_>,
    at: &str,
    problems: &mut Vec<Problem>,
) {
    let mut check = |slot: &str, name: &str, member: &str, may_nest: bool| {
        let at = below(&below(at, slot), name);
        if !place.members.has(member) {
            problems.push(Problem::new(at, format!("names {member}, which is not a member of input_schema")));
        } else if !may_nest && place.members.is_nested(member) {
            problems.push(Problem::new(at, format!("names {member}, which may be an object: put it into the body")));
        }
    };
    for slot in query {
        check("query", &slot.name, &slot.member, slot.style == Style::Brackets);
    }
    for slot in headers {
        check("headers", &slot.name, &slot.member, false);
    }
    if let Body::Json(Content::Member(member)) | Body::Form(Content::Member(member), _) = body {
        check("body", "member", member, true);
    }
}

/// Every member has to go somewhere: a buyer would think that it counts.
fn check_sent(taken: &[String], body: &Body, place: &Place<'_>, at: &str, problems: &mut Vec<Problem>) {
    if matches!(body, Body::Json(Content::Rest | Content::Input) | Body::Form(Content::Rest | Content::Input, _)) {
        return;
    }
    if place.members.is_open() {
        let message = "must send members that input_schema does not name: set body to \"rest\", or additionalProperties to false there";
        problems.push(Problem::new(at, message));
    }
    for name in place.members.names().filter(|name| !taken.iter().any(|known| known == name)) {
        let shown: String = name.chars().take(MAX_NAME).collect();
        problems.push(Problem::new(
            at,
            format!("must say where {shown} goes, which input_schema has; or leave it out there"),
        ));
    }
}

fn given(slots: &Value, at: &str) -> Result<Given, Vec<Problem>> {
    let mut reader = Reader::new(slots, at)?;
    let path = reader.optional("path", names).unwrap_or_default();
    let query = reader.inner("query", query);
    let headers = reader.inner("headers", headers).unwrap_or_default();
    let content = reader.optional("body", content);
    let form = reader.optional("body_format", |value| match value.as_str() {
        Some("json") => Ok(None),
        Some("form") => Ok(Some(Style::Repeated)),
        Some("form_with_brackets") => Ok(Some(Style::Brackets)),
        _ => Err("must be \"json\", \"form\", or \"form_with_brackets\" (objects are sent as a[b]=c)".to_owned()),
    });
    let problems = reader.finish();
    let form = form.unwrap_or_default();
    if problems.is_empty() { Ok(Given { path, query, headers, content, form }) } else { Err(problems) }
}

/// An object of names and members.
fn names(value: &Value) -> Result<Vec<(String, String)>, String> {
    let message = "must be an object: the name there, and the member of the input";
    let pairs = value.as_object().ok_or(message)?;
    pairs.iter().map(|(name, member)| Ok((name.clone(), member.as_str().ok_or(message)?.to_owned()))).collect()
}

fn query(value: &Value, at: &str) -> Result<Option<Vec<QuerySlot>>, Vec<Problem>> {
    let plain = |name: &str| QuerySlot { name: name.to_owned(), member: name.to_owned(), style: Style::Repeated };
    match value {
        Value::String(text) if text == "rest" => Ok(None),
        Value::Array(names) if names.iter().all(Value::is_string) => {
            Ok(Some(names.iter().filter_map(Value::as_str).map(plain).collect()))
        }
        Value::Object(slots) => {
            let (mut read, mut problems) = (Vec::new(), Vec::new());
            for (name, slot) in slots {
                match query_slot(name, slot, &below(at, name)) {
                    Ok(slot) => read.push(slot),
                    Err(wrong) => problems.extend(wrong),
                }
            }
            if problems.is_empty() { Ok(Some(read)) } else { Err(problems) }
        }
        _ => {
            let message = "must be \"rest\", an array of members, or an object of names in the query and members";
            Err(vec![Problem::new(at, message)])
        }
    }
}

fn query_slot(name: &str, slot: &Value, at: &str) -> Result<QuerySlot, Vec<Problem>> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(vec![Problem::new(at, format!("must have a name of 1 to {MAX_NAME} bytes"))]);
    }
    if let Some(member) = slot.as_str() {
        return Ok(QuerySlot { name: name.to_owned(), member: member.to_owned(), style: Style::Repeated });
    }
    let mut reader = Reader::new(slot, at)
        .map_err(|_| vec![Problem::new(at, "must be a member of the input, or {\"member\": …, \"style\": …}")])?;
    let member = reader.required("member", |value| value.as_str().ok_or_else(|| "must be a string".to_owned()));
    let style = reader.optional("style", |value| match value.as_str() {
        Some("repeated") => Ok(Style::Repeated),
        Some("brackets") => Ok(Style::Brackets),
        Some(",") => Ok(Style::Joined(',')),
        Some(" ") => Ok(Style::Joined(' ')),
        Some("|") => Ok(Style::Joined('|')),
        _ => Err("must be \"repeated\" (an array repeats the name), \"brackets\" (a[b]=c), or what separates the items of an array: \",\", \" \" or \"|\"".to_owned()),
    });
    let problems = reader.finish();
    let style = style.unwrap_or(Style::Repeated);
    match member {
        Some(member) if problems.is_empty() => {
            Ok(QuerySlot { name: name.to_owned(), member: member.to_owned(), style })
        }
        _ => Err(problems),
    }
}

fn headers(value: &Value, at: &str) -> Result<Vec<HeaderSlot>, Vec<Problem>> {
    let pairs = names(value).map_err(|message| vec![Problem::new(at, message)])?;
    let (mut read, mut problems): (Vec<HeaderSlot>, Vec<Problem>) = (Vec::new(), Vec::new());
    for (name, member) in pairs {
        let (lower, at) = (name.to_ascii_lowercase(), below(at, &name));
        if !is_header_name(&lower) {
            problems.push(Problem::new(at, "is not a header's name"));
        } else if is_connection_header(&lower)
            || OWN_HEADERS.contains(&lower.as_str())
            || lower.starts_with("x-forwarded")
        {
            problems.push(Problem::new(at, "is a header that a caller may not fill"));
        } else if read.iter().any(|slot| slot.name == lower) {
            problems.push(Problem::new(at, "is there twice"));
        } else {
            read.push(HeaderSlot { name: lower, member });
        }
    }
    if problems.is_empty() { Ok(read) } else { Err(problems) }
}

fn content(value: &Value) -> Result<Option<Content>, String> {
    let member = value.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("member"));
    match (value.as_str(), member.and_then(Value::as_str)) {
        (Some("none"), _) => Ok(None),
        (Some("input"), _) => Ok(Some(Content::Input)),
        (Some("rest"), _) => Ok(Some(Content::Rest)),
        (_, Some(member)) => Ok(Some(Content::Member(member.to_owned()))),
        _ => Err("must be \"none\", \"input\" (all of it), \"rest\", or {\"member\": …}".to_owned()),
    }
}

/// The template's segments. `{name}` is one segment or a part of one; `{+name}` may have slashes.
fn template(path: &str, renamed: &[(String, String)]) -> Result<Vec<Segment>, String> {
    if path.len() > MAX_PATH || !path.starts_with('/') {
        return Err(format!("must begin with a slash, and have at most {MAX_PATH} bytes"));
    }
    let segments: Vec<&str> = path[1..].split('/').collect();
    if segments.len() > MAX_SEGMENTS {
        return Err(format!("may have at most {MAX_SEGMENTS} segments"));
    }
    let last = segments.len() - 1;
    segments
        .into_iter()
        .enumerate()
        .map(|(index, segment)| match segment {
            "" if index < last => Err("must not have empty segments".to_owned()),
            "." | ".." => Err("must not have dot segments".to_owned()),
            segment => parts(segment, renamed).map(Segment),
        })
        .collect()
}

fn parts(segment: &str, renamed: &[(String, String)]) -> Result<Vec<PathPart>, String> {
    let (mut parts, mut rest) = (Vec::new(), segment);
    while !rest.is_empty() {
        let (text, after) = rest.split_once('{').unwrap_or((rest, ""));
        if text.contains(['}', '?', '#', '%', '\\']) {
            return Err("must not contain %, ?, #, a backslash, or a } without a {; write it as plain text".to_owned());
        }
        if !text.is_empty() {
            parts.push(PathPart::Text(plain(text)));
        }
        if after.is_empty() && !rest.contains('{') {
            break;
        }
        let (name, after) = after.split_once('}').ok_or("has a { without a }")?;
        let (name, slashes) = name.strip_prefix('+').map_or((name, false), |name| (name, true));
        if name.is_empty() || name.contains('{') || name.len() > MAX_NAME {
            return Err("must have a member's name in each {…}".to_owned());
        }
        if slashes && (!parts.is_empty() || !after.is_empty()) {
            return Err(format!("must have {{+{name}}} as a whole segment"));
        }
        let member = renamed.iter().find(|(known, _)| known == name).map_or(name, |(_, member)| member);
        parts.push(PathPart::Member { member: member.to_owned(), slashes });
        rest = after;
    }
    Ok(parts)
}

/// Text of a template; what RFC 3986 allows in a segment stays.
fn plain(text: &str) -> String {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@".contains(letter);
    text.chars()
        .map(
            |letter| {
                if allowed(letter) { letter.to_string() } else { percent_encoded(letter.encode_utf8(&mut [0; 4])) }
            },
        )
        .collect()
}

fn path_members(segments: &[Segment]) -> Vec<String> {
    let parts = segments.iter().flat_map(|segment| &segment.0);
    parts
        .filter_map(|part| match part {
            PathPart::Member { member, .. } => Some(member.clone()),
            PathPart::Text(_) => None,
        })
        .collect()
}
