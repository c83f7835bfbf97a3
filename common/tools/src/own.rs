//! Catalog entries of the operator's own services, which `OWN_TOOLS` describes. The crate `tools-own` does their work.

use std::time::Duration;

use base::input::{Field, Kind};
use http::StatusCode;
use platform::http::ApiError;
use platform::store::daily;
use serde_json::{Map, Value, json};
use upstream::Settings;

use crate::Toolbox;
use crate::spec::{Answer, Catalog, MARKET, Need, Price, TOP_UP, ToolSpec};

/// The route group that sells them: the one whose function has the operator's keys and answers at once.
const GROUP: &str = "knowledge";
/// The name of the runner that does the work of them all.
pub const RUNNER: &str = "own_service";
/// Their paths begin with this.
pub const PATH: &str = "/v1/tools/own/";
/// Longest answer of another type than JSON that stands in the result, in bytes. Longer ones are files.
pub const INLINE_BYTES: usize = 64 * 1024;
/// The longest time of a service that a caller waits for; slower ones are queued.
const DIRECT: Duration = Duration::from_secs(20);
/// The work's time beyond the service's: to count it, and to store the answer.
const BESIDE: Duration = Duration::from_secs(3);

/// The entries that a text of `OWN_TOOLS` describes: `{"tools": [ … ]}`, or the array alone. They are never freed: a process
/// makes them once.
///
/// # Errors
/// Every problem, as text that follows the variable's name.
pub fn read(text: &str, catalog: &Catalog) -> Result<Vec<&'static ToolSpec>, Vec<String>> {
    let taken = |name: &str| {
        let others = MARKET.iter().copied().chain([TOP_UP]);
        RESERVED.contains(&name) || catalog.iter().copied().chain(others).any(|tool| tool.name == name)
    };
    let of_array = text.trim_start().starts_with('[').then(|| format!("{{\"tools\":{text}}}"));
    let settings = Settings::parse(of_array.as_deref().unwrap_or(text), &taken);
    let settings = settings.map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<String>>())?;
    Ok(settings.tools.into_iter().map(spec).collect())
}

/// The words that mean something else than a tool of the operator's: the free tools of `/mcp`, and the word of `TOOLS`. A test of
/// the MCP server compares them with its tools.
pub const RESERVED: &[&str] = &[
    "balance",
    "budgets",
    "email_domains",
    "explain_receipt",
    "find_tools",
    "get_request",
    "goal",
    "goal_cancel",
    "goal_respond",
    "goal_tasks",
    "goals",
    "inbox",
    "inbox_email",
    "lookup",
    "network_accounts",
    "network_connect",
    "network_connection",
    "network_conversations",
    "network_invitations",
    "network_messages",
    "notifications",
    "own",
    "payment_status",
    "phone_numbers",
    "price_list",
    "receipts",
    "requests",
    "sms_inbox",
    "sms_message",
    "soul_browse",
    "soul_job",
    "soul_job_files",
    "soul_profile",
    "soul_search",
    "spending",
    "use_tool",
    "voice_answering",
    "voice_call_detail",
    "voice_calls",
    "voice_dial",
    "voice_hang_up",
    "voice_say",
];

/// Where the calls of a day are counted.
pub fn counted(tool: &upstream::Tool) -> String {
    format!("RATE#own:{}#calls", tool.name)
}

/// Refuses a call of an own service that has answered as many as it does in a day, before it is paid for.
///
/// # Errors
/// 503 `provider_unavailable` until the next day.
pub async fn check_room(toolbox: &Toolbox, tool: &ToolSpec) -> Result<(), ApiError> {
    let Some(own) = tool.own else { return Ok(()) };
    let (Some(most), now) = (own.calls_per_day, toolbox.clock.now()) else { return Ok(()) };
    if daily::used(&toolbox.db, counted(own), now).await? < u64::from(most) {
        return Ok(());
    }
    Err(ApiError::Later {
        status: StatusCode::SERVICE_UNAVAILABLE,
        code: "provider_unavailable",
        message: "the service has answered as many calls as it does in a day; nothing was charged".to_owned(),
        retry_after_secs: daily::secs_left(now),
    })
}

/// Names of all secrets that own tools need in `PROVIDER_KEYS`.
pub fn secrets(tools: &[&'static ToolSpec]) -> Vec<&'static str> {
    tools.iter().filter_map(|tool| tool.own).flat_map(upstream::Tool::secrets).collect()
}

fn spec(tool: upstream::Tool) -> &'static ToolSpec {
    let tool: &'static upstream::Tool = Box::leak(Box::new(tool));
    // Only the worker writes files.
    let may_be_a_file = tool.answers_bytes() && tool.max_response_bytes > INLINE_BYTES;
    let direct = tool.deadline <= DIRECT && !may_be_a_file;
    let path: &'static str = leaked(format!("{PATH}{}", tool.name));
    Box::leak(Box::new(ToolSpec {
        name: &tool.name,
        title: &tool.title,
        summary: &tool.summary,
        group: GROUP,
        paths: Box::leak(Box::new([path])),
        price: match &tool.price {
            upstream::Price::Fixed(price) => Price::Fixed(*price),
            by_input => Price::Own(by_input),
        },
        answer: if direct { Answer::Direct } else { Answer::Queued },
        category: tool.category.as_deref().unwrap_or("own"),
        deadline: tool.deadline + BESIDE,
        input: fields(&tool.input_schema),
        needs,
        derived: Some(output),
        own: Some(tool),
        ..ToolSpec::QUEUED
    }))
}

fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// The members of the input, for lists and for names that nothing reads.
fn fields(schema: &'static Value) -> &'static [Field] {
    let none = Map::new();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().unwrap_or(&none).keys();
    let fields = properties.map(|name| {
        let part = &schema["properties"][name];
        Field {
            name: leaked(name.clone()),
            required: required.contains(&name.as_str()),
            kind: Kind::Json(part),
            about: part["description"].as_str().unwrap_or_default(),
        }
    });
    Box::leak(fields.collect::<Vec<_>>().into_boxed_slice())
}

/// Its secrets. It needs all of them ([`crate::Toolbox::lacks`]).
fn needs(tool: &ToolSpec, _: &Map<String, Value>) -> Vec<Need> {
    tool.own.into_iter().flat_map(upstream::Tool::secrets).map(Need::Key).collect()
}

/// The schema of the result: what the service promises, a file, or any JSON.
fn output(tool: &ToolSpec) -> Value {
    let Some(own) = tool.own else { return json!({}) };
    let answers_json = own.answers.contains(&upstream::Media::Json);
    match (&own.output_schema, answers_json) {
        (Some(schema), _) => schema.clone(),
        (None, true) => json!({"description": "What the service answered"}),
        (None, false) => json!({
            "type": "object",
            "required": ["content_type", "bytes"],
            "properties": {
                "content_type": {"type": "string"},
                "bytes": {"type": "integer"},
                "text": {"type": "string", "description": "The answer, if it is a short text"},
                "base64": {"type": "string", "description": "The answer, if it is short and no text"},
                "file": {"type": "string", "description": "Path of the answer among the request's files, if it is longer"},
            },
        }),
    }
}

#[cfg(test)]
mod tests {
    use base::money::Usdc;
    use platform::net::FetchPolicy;

    use super::*;
    use crate::spec::NOTHING;

    const TWO: &str = r#"[
        {"name": "parcel_status", "title": "Parcel status", "summary": "Where a parcel is", "price": "0.01",
         "method": "GET", "address": "https://api.example.com/v2", "path": "/parcels/{number}",
         "constants": {"headers": {"authorization": {"secret": "parcel_key", "prefix": "Bearer "}}},
         "input_schema": {"type": "object", "required": ["number"], "properties": {"number": {"type": "string"}}}},
        {"name": "render", "title": "Render", "summary": "Draws a picture", "method": "POST", "path": "/draw",
         "price": {"per": "/words", "of": "length", "rate": "0.001", "minimum": "0.01", "maximum": "1"},
         "address": "https://api.example.com", "answers": ["image/png"], "deadline_seconds": 60,
         "input_schema": {"type": "object", "required": ["words"], "properties": {"words": {"type": "string"}}}}
    ]"#;

    #[test]
    fn entries_are_made_of_the_settings() {
        let tools = read(TWO, &NOTHING).unwrap();
        let [parcel, render] = tools[..] else { panic!("two tools") };
        assert_eq!(
            (parcel.name, parcel.path(), parcel.answer),
            ("parcel_status", "/v1/tools/own/parcel_status", Answer::Direct)
        );
        assert_eq!((render.answer, render.price.usual()), (Answer::Queued, Usdc::from_micro(10_000)));
        assert_eq!(secrets(&tools), ["parcel_key"]);
        let input = |value: Value| value.as_object().unwrap().clone();
        let words = input(json!({"words": "a".repeat(500)}));
        assert_eq!(render.price.of(&words), Usdc::from_micro(500_000));
        let policy = FetchPolicy::default();
        assert_eq!(render.check(&words, &policy), []);
        assert_eq!(render.check(&input(json!({"words": 3})), &policy)[0].path, "words");
        assert_eq!(render.check(render.example().as_object().unwrap(), &policy), []);
        assert_eq!(parcel.input_schema()["required"], json!(["number"]));
    }

    #[test]
    fn every_problem_is_told() {
        let wrong = TWO
            .replace("\"0.01\",\n         \"method\": \"GET\"", "\"free\",\n         \"method\": \"GET\"")
            .replace("render", "soul");
        let problems = read(&wrong, &NOTHING).err().unwrap();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(
            problems.iter().any(|problem| problem.starts_with("/tools/1/name is the name of another tool")),
            "{problems:?}"
        );
    }
}
