//! US contract opportunities from SAM.gov, which requires the deployment's key.
//!
//! <https://open.gsa.gov/api/get-opportunities-public-api/> (version 2, read Nov 2026): one NAICS code per request, dates
//! as MM/DD/YYYY and at most a year apart. There is no substitute without a key: the Federal Register has no NAICS codes
//! and few of the notices.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use base::input::{Field, FieldError, Format, Kind};
use base::money::Usdc;
use base::tool_result::Source;
use platform::net::FetchPolicy;
use platform::providers::{Ask, OutboundError};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::spec::{Need, Price, ToolSpec};
use tools::{Output, Runner, Running, Task, Toolbox};

use super::business::{line, web};
use crate::lookups::row::{STATE, words};

const NAME: &str = "sam";
const ORIGIN: &str = "https://api.sam.gov";
/// Descriptions that are fetched, one request each.
const MAX_DESCRIPTIONS: usize = 5;
const PAGE: usize = 1_000;

static NAICS: Format = Format {
    name: None,
    pattern: Some("^[0-9]{6}$"),
    matches: |text| text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_digit()),
    message: "must be six digits",
};
static NAICS_CODE: Kind = Kind::Text { min: 6, max: 6, format: Some(&NAICS) };
static NOTICE: Kind = Kind::Choice(&["r", "p", "o", "k", "s", "a", "u", "i", "g"]);
static WORD: Kind = words(1, 100);

pub static SPEC: ToolSpec = ToolSpec {
    name: "gov_solicitations",
    title: "Federal solicitations",
    summary: "US federal contract opportunities by NAICS code: title, agency, dates, set-aside, place, contact, link",
    group: "knowledge",
    paths: &["/v1/tools/gov/solicitations", "/v1/tools/find/record-solicitations"],
    price: Price::Fixed(Usdc::from_micro(50_000)),
    deadline: Duration::from_secs(60),
    needs: |_, _| vec![Need::Key(NAME)],
    input: &[
        Field::required("naics", Kind::List { of: &NAICS_CODE, max: 20 }, "Six-digit codes of industries"),
        Field::optional(
            "notice_types",
            Kind::List { of: &NOTICE, max: 9 },
            "r sources sought, p presolicitation (both by default), o solicitation, k combined, s special, a award",
        ),
        Field::optional("since_days", Kind::Integer { min: 1, max: 365 }, "Posted within this many days; default 30"),
        Field::optional("agencies", Kind::List { of: &WORD, max: 20 }, "Parts of agencies' names"),
        Field::optional("keywords", Kind::List { of: &WORD, max: 20 }, "Words of the title"),
        Field::optional("state", STATE, "Of the place of performance"),
        Field::optional("set_aside", words(2, 20), "The code of the set-aside, such as SBA"),
        Field::optional("active_only", Kind::Bool, "true (default): without archived notices and past deadlines"),
        Field::optional("has_contact", Kind::Bool, "true: only with a name and an address of a contact"),
        Field::optional("include_description", Kind::Bool, "true (default): the first few rows have their text"),
        Field::optional("limit", Kind::Integer { min: 1, max: 500 }, "Default: 100"),
    ],
    check: |input: &Map<String, Value>, _: &FetchPolicy| match input.get("naics").and_then(Value::as_array) {
        Some(codes) if codes.is_empty() => vec![FieldError::new("naics", "needs at least one code")],
        _ => Vec::new(),
    },
    example: || json!({"naics": ["541511"], "notice_types": ["r", "p"], "since_days": 30, "limit": 25}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

fn list<'a>(input: &'a Map<String, Value>, name: &str) -> Vec<&'a str> {
    input.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let deadline = Instant::now() + SPEC.deadline.saturating_sub(Duration::from_secs(2));
        let now = toolbox.clock.now();
        let key = toolbox.outbound.needed_key(NAME).await.map_err(|error| error.of(NAME))?;
        let days = task.number("since_days").and_then(|days| u64::try_from(days).ok()).unwrap_or(30);
        let us_date = |days: u64| {
            let iso = now.minus(Duration::from_secs(days * 24 * 3600)).to_string();
            format!("{}/{}/{}", &iso[5..7], &iso[8..10], &iso[..4])
        };
        let mut kinds = list(&task.input, "notice_types");
        if kinds.is_empty() {
            kinds = vec!["r", "p"];
        }
        let limit = task.number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(100);
        let codes = list(&task.input, "naics");
        let (mut rows, mut seen, mut truncated) = (Vec::new(), HashSet::new(), false);
        for (index, code) in codes.iter().enumerate() {
            task.reporter.say(u8::try_from(index * 100 / codes.len()).unwrap_or(99), "asking SAM.gov");
            let (from, to, kinds, page) = (us_date(days), us_date(0), kinds.join(","), PAGE.to_string());
            let pairs = [
                ("api_key", key.expose()),
                ("postedFrom", &from),
                ("postedTo", &to),
                ("ptype", &kinds),
                ("ncode", code),
                ("state", task.text("state")),
                ("typeOfSetAside", task.text("set_aside")),
                ("limit", &page),
                ("offset", "0"),
            ];
            let given = pairs.iter().filter(|(_, value)| !value.is_empty());
            let pairs: Vec<String> =
                given.map(|(name, value)| format!("{name}={}", base::encoding::percent_encoded(value))).collect();
            let ask = Ask { per_second: 1.0, ..Ask::get(format!("/opportunities/v2/search?{}", pairs.join("&"))) };
            let (_, answer) =
                toolbox.outbound.json(NAME, ORIGIN, &ask, &[], deadline).await.map_err(|error| error.of(NAME))?;
            let Some(found) = answer["opportunitiesData"].as_array() else {
                return Err(OutboundError::Unreadable("not what its documentation says".to_owned()).of(NAME));
            };
            truncated |= answer["totalRecords"].as_u64().unwrap_or(0) > found.len() as u64;
            let today = now.to_string();
            let fitting = found.iter().filter(|row| fits(row, &task.input, &today));
            rows.extend(fitting.filter(|row| seen.insert(row["noticeId"].to_string())).map(notice));
        }
        let total = rows.len();
        rows.truncate(limit);
        let fetches = if task.input.get("include_description") == Some(&json!(false)) { 0 } else { MAX_DESCRIPTIONS };
        let mut fetched = 0;
        for row in rows.iter_mut().take(fetches) {
            let Some(id) = row["notice_id"].as_str().map(base::encoding::percent_encoded) else { continue };
            // The URL in the answer is untrusted; this is the documented one.
            let key = base::encoding::percent_encoded(key.expose());
            let path = format!("/prod/opportunities/v1/noticedesc?noticeid={id}&api_key={key}");
            let ask = Ask { per_second: 1.0, ..Ask::get(path) };
            if let Ok((_, answer)) = toolbox.outbound.json(NAME, ORIGIN, &ask, &[404], deadline).await {
                fetched += 1;
                let text: String = base::untrusted_text::visible(answer["description"].as_str().unwrap_or_default());
                let text: String = text.chars().take(5_000).collect();
                row["description"] = if text.is_empty() { Value::Null } else { json!(text) };
            }
        }
        let result = json!({
            "results": rows, "total_found": total, "truncated": truncated || total > limit,
            "data_as_of": now.to_string(), "description_fetches": fetched,
        });
        Ok(Output::new(result, Source::upstream(NAME, None)))
    })
}

fn fits(row: &Value, input: &Map<String, Value>, now: &str) -> bool {
    let lower = |name: &str| row[name].as_str().unwrap_or_default().to_lowercase();
    let any =
        |list: Vec<&str>, text: &str| list.is_empty() || list.iter().any(|word| text.contains(&word.to_lowercase()));
    let is_off = |name: &str| input.get(name) == Some(&Value::Bool(false));
    let is_on = |name: &str| input.get(name) == Some(&Value::Bool(true));
    let contact = row.pointer("/pointOfContact/0");
    let has_contact =
        contact.is_some_and(|contact| line(contact.get("fullName")).is_some() && line(contact.get("email")).is_some());
    let due = row["responseDeadLine"].as_str().unwrap_or_default();
    let is_past = due.len() >= 10 && now.get(..10).is_some_and(|today| due.get(..10).is_some_and(|due| due < today));
    any(list(input, "agencies"), &lower("fullParentPathName"))
        && any(list(input, "keywords"), &lower("title"))
        && (is_off("active_only") || (row["active"] != "No" && !is_past))
        && (!is_on("has_contact") || has_contact)
}

fn notice(row: &Value) -> Value {
    let contact = row.pointer("/pointOfContact/0");
    let of = |name: &str| contact.and_then(|contact| line(contact.get(name)));
    json!({
        "notice_id": line(row.get("noticeId")), "title": line(row.get("title")),
        "solicitation_number": line(row.get("solicitationNumber")), "agency": line(row.get("fullParentPathName")),
        "type": line(row.get("type")), "naics": line(row.get("naicsCode")), "posted_date": line(row.get("postedDate")),
        "response_deadline": line(row.get("responseDeadLine")), "set_aside": line(row.get("typeOfSetAsideDescription")),
        "state": line(row.pointer("/placeOfPerformance/state/code")),
        "city": line(row.pointer("/placeOfPerformance/city/name")),
        "contact": {"name": of("fullName"), "email": of("email"), "phone": of("phone")},
        "url": web(row.get("uiLink")), "description": null,
    })
}

fn output() -> Value {
    let text = json!({"type": ["string", "null"]});
    let names = [
        "notice_id",
        "title",
        "solicitation_number",
        "agency",
        "type",
        "naics",
        "posted_date",
        "response_deadline",
        "set_aside",
        "state",
        "city",
        "url",
        "description",
    ];
    let mut properties: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), text.clone())).collect();
    properties.insert(
        "contact".to_owned(),
        json!({
            "type": "object",
            "properties": {"name": text, "email": text, "phone": text},
            "required": ["name", "email", "phone"],
        }),
    );
    let required: Vec<String> = properties.keys().cloned().collect();
    json!({
        "type": "object",
        "properties": {
            "results": {
                "type": "array",
                "items": {"type": "object", "properties": properties, "required": required},
            },
            "total_found": {"type": "integer"},
            "truncated": {"type": "boolean"},
            "data_as_of": {"type": "string"},
            "description_fetches": {"type": "integer"},
        },
        "required": ["results", "total_found", "truncated", "data_as_of", "description_fetches"],
    })
}
