//! The catalog's entry: a task in a browser.

use std::time::Duration;

use base::input::{Field, FieldError, Format, Kind};
use base::money::Usdc;
use http::StatusCode;
use platform::http::ApiError;
use platform::net::{FetchPolicy, check_url};
use platform::store::Write;
use serde_json::{Map, Value, json};
use tools::spec::{Claiming, Lane, Need, Price, ToolSpec, URI};
use tools::{Runner, Toolbox, lock};
use uuid::Uuid;

use crate::{quote, sessions, work};

/// The price of one step.
pub const STEP: Usdc = Usdc::from_micro(2_000);
/// The least price of a task.
pub const LEAST: Usdc = Usdc::from_micro(5_000);
/// No task costs more: a hundred steps, each with the largest question to a dear model.
const MOST: Usdc = Usdc::from_micro(50_000_000);
/// Longest task.
const DEADLINE: Duration = Duration::from_secs(600);
/// Steps of a task that says nothing about them.
pub const USUAL_STEPS: u64 = 25;
pub const MAX_STEPS: u64 = 100;
/// Files that a task may upload.
pub const MAX_FILES: usize = 10;

static DOMAIN: Format = Format {
    name: None,
    pattern: None,
    matches: is_domain,
    message: "must be a domain such as example.com: no scheme, no path",
};

static UUID: Format = Format {
    name: Some("uuid"),
    pattern: None,
    matches: |text| Uuid::try_parse(text).is_ok(),
    message: "must be a UUID",
};

/// A host name, or a host and a port.
fn is_domain(text: &str) -> bool {
    let (host, port) = text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    // "com" would be half the web.
    let is_host = (host.contains('.') || port.is_some() || host == "localhost")
        && !host.starts_with('.')
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    is_host && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

const FILE: Kind = Kind::Object {
    fields: &[
        Field::required("request_id", Kind::Text { min: 32, max: 36, format: Some(&UUID) }, "A job of yours"),
        Field::required("path", Kind::Text { min: 1, max: 500, format: None }, "The path of one of its files"),
    ],
    open: false,
};

pub static SPEC: ToolSpec = ToolSpec {
    name: "browser",
    title: "Browser task",
    summary: "Does a task on real web pages in a browser: opens, clicks, types, chooses, uploads, reads, and returns what you ask for as JSON",
    group: "browser",
    paths: &["/v1/tools/browser"],
    price: Price::Asked { usual: LEAST, most: MOST },
    expensive: true,
    keeps_record: true,
    category: "browser",
    lane: Lane::Browser,
    deadline: DEADLINE,
    waits_for_hosts: None,
    input: &[
        Field::required(
            "task",
            Kind::Text { min: 10, max: 50_000, format: None },
            "What to do, as steps in English: Open https://…; click \"Log in\"; enter x in the Name field; choose A in Size; read the price",
        ),
        Field::optional(
            "start_url",
            Kind::Text { min: 1, max: 2048, format: Some(&URI) },
            "The page to begin at. Default: the first address in the task",
        ),
        Field::optional(
            "allowed_domains",
            Kind::List { of: &Kind::Text { min: 1, max: 255, format: Some(&DOMAIN) }, max: 100 },
            "Sites that may be opened, with their subdomains. Default: those of start_url and of addresses in the task",
        ),
        Field::optional(
            "output_schema",
            Kind::Object { fields: &[], open: true },
            "JSON Schema of the output that you want. What the pages do not say is left out, never invented",
        ),
        Field::optional(
            "session_id",
            Kind::Text { min: 32, max: 36, format: Some(&UUID) },
            "Goes on with the cookies, the storage and the page of an earlier task, within 15 minutes of its end",
        ),
        Field::optional(
            "profile_id",
            Kind::Text { min: 0, max: 100, format: None },
            "A saved profile. Profiles are not kept here yet: every id is unknown",
        ),
        Field::optional("max_steps", Kind::Integer { min: 25, max: MAX_STEPS as i64 }, "Most steps. Default: 25"),
        Field::optional(
            "files",
            Kind::List { of: &FILE, max: MAX_FILES },
            "Files of your jobs that the task may upload, by their names",
        ),
    ],
    judged: &["task"],
    refusals: &[
        (400, "secrets_unsupported"),
        (400, "needs_planner"),
        (404, "session_not_found"),
        (404, "profile_not_found"),
        (409, "session_busy"),
        (503, "provider_unavailable"),
    ],
    needs: |_, _| vec![Need::Browser],
    refuse,
    check,
    claims: |toolbox, claiming| Box::pin(claims(toolbox, claiming)),
    accepted: |_, _, _, _, _| Value::Null,
    example: || json!({"task": "Open https://example.com, click the link \"More information\" and read the heading"}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run: work::run };

/// Passwords and keys for pages have no sealed place here yet, and in a task they would be stored in the clear.
fn refuse(body: &Map<String, Value>) -> Option<ApiError> {
    let secrets = body.get("secrets").filter(|secrets| !secrets.is_null())?;
    if secrets.as_object().is_some_and(Map::is_empty) {
        return None;
    }
    Some(ApiError::Tool {
        status: StatusCode::BAD_REQUEST,
        code: "secrets_unsupported",
        message: "secrets are not supported: begin a session by hand, or use a page that needs none".to_owned(),
    })
}

fn check(input: &Map<String, Value>, policy: &FetchPolicy) -> Vec<FieldError> {
    let mut wrong = Vec::new();
    let text = |name: &str| input.get(name).and_then(Value::as_str);
    if let Some(Err(refused)) = text("start_url").map(|url| check_url(url, policy)) {
        wrong.push(FieldError::new("start_url", refused.to_string()));
    }
    if let Some(schema) = input.get("output_schema")
        && let Err(why) = crate::answer::check_schema(schema)
    {
        wrong.push(FieldError::new("output_schema", why));
    }
    let files = input.get("files").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (index, file) in files.iter().enumerate() {
        let name = |file: &Value| file["path"].as_str().and_then(|path| path.rsplit('/').next()).map(str::to_owned);
        if files[..index].iter().any(|other| name(other) == name(file)) {
            wrong.push(FieldError::new(format!("files[{index}].path"), "has the name of another file"));
        }
    }
    wrong
}

/// A session is used by one task at a time.
async fn claims(toolbox: &Toolbox, claiming: Claiming<'_>) -> Result<Vec<Write>, ApiError> {
    let Some(session) = quote::session_of(claiming.input) else { return Ok(Vec::new()) };
    sessions::own(&toolbox.db, session, Some(claiming.agent), claiming.now).await?;
    let table = &toolbox.db.tables.agents;
    let taken = lock::take(&toolbox.db, table, sessions::lock_key(session), claiming.request_id, claiming.now).await?;
    taken.map(|write| vec![write]).map_err(|job| ApiError::Tool {
        status: StatusCode::CONFLICT,
        code: "session_busy",
        message: format!("the session is used by {job}: wait until that has ended"),
    })
}

fn output() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let amount = |about: &str| json!({"type": ["number", "null"], "minimum": 0, "description": about});
    json!({
        "type": "object",
        "required": ["steps", "step_count", "steps_incomplete", "cost", "total_cost_usd"],
        "properties": {
            "output": {"description": "What the task asked for; in the form of output_schema if there is one"},
            "success": {"type": ["boolean", "null"], "description": "null: every step was done, and nothing says whether that was the goal"},
            "steps": {"type": "array", "items": {"type": "object", "required": ["number", "goal", "url"], "properties": {
                "number": {"type": "integer"},
                "goal": text("What the step was for"),
                "url": text("The page it was done on, without the values of its query"),
            }}},
            "step_count": {"type": "integer", "minimum": 0},
            "steps_incomplete": {"type": "boolean", "description": "true: the task was cut off, and its last step may not have been done"},
            "final_url": text("The page at the end"),
            "cost": amount("What the browser's vendor says it cost, in USD; null if it says nothing"),
            "total_cost_usd": amount("The same with the model's cost; null if unknown"),
            "billed_cost": amount("What was charged, in USDC"),
            "session_id": {"type": ["string", "null"], "description": "For the next task, within 15 minutes"},
            "planner": text("rules, or the name of the model"),
            "output_files": {"type": "array", "items": {"type": "object", "properties": {
                "path": {"type": "string"}, "size": {"type": "integer"}, "content_type": {"type": "string"}, "download_url": {"type": "string"},
            }}},
            "error_reason": text("Why it did not succeed: target_not_found, no_progress, budget_used, navigation_refused, captcha, steps_incomplete, …"),
            "error": text("The same in a sentence"),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(body: Value) -> Vec<String> {
        check(body.as_object().unwrap(), &FetchPolicy::default()).into_iter().map(|error| error.path).collect()
    }

    #[test]
    fn bodies_are_checked_before_a_price() {
        assert_eq!(wrong(json!({"task": "x"})), Vec::<String>::new());
        assert_eq!(wrong(json!({"start_url": "http://127.0.0.1/"})), ["start_url"]);
        assert_eq!(wrong(json!({"output_schema": {"type": "no such type"}})), ["output_schema"]);
        let file = |path: &str| json!({"request_id": Uuid::nil().to_string(), "path": path});
        assert_eq!(wrong(json!({"files": [file("a/x.pdf"), file("y.pdf"), file("b/x.pdf")]})), ["files[2].path"]);
    }

    #[test]
    fn secrets_are_refused_unless_there_are_none() {
        let code = |body: Value| match refuse(body.as_object().unwrap()) {
            Some(ApiError::Tool { code, .. }) => Some(code),
            _ => None,
        };
        assert_eq!(code(json!({"secrets": {"password": "x"}})), Some("secrets_unsupported"));
        assert_eq!(code(json!({"secrets": "x"})), Some("secrets_unsupported"));
        for none in [json!({}), json!({"secrets": null}), json!({"secrets": {}})] {
            assert_eq!(code(none), None);
        }
    }

    #[test]
    fn domains_have_no_scheme() {
        for domain in ["example.com", "a-b.example.com", "localhost:8080", "127.0.0.1:99"] {
            assert!(is_domain(domain), "{domain}");
        }
        for other in ["", "https://example.com", "example.com/a", ".com", "a b", "*.com", "a:b"] {
            assert!(!is_domain(other), "{other}");
        }
    }
}
