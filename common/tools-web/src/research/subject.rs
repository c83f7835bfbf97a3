//! Shared by the tools about people: their input, the opt-out list, and the form of their results.

use std::time::Duration;

use base::input::{Field, FieldError};
use platform::net::{FetchPolicy, Page, check_url};
use platform::store::daily;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::pages::{SEARCHED_WITH, explain};
use tools::spec::{Need, ToolSpec};
use tools::{Task, ToolError, Toolbox, Unavailable};
use tools_people::enrichment::input::URL_KIND;
use tools_people::opt_out::{self, Marks};
use tools_people::vendors;
use web::read::{ReadOptions, read_page};
use web::research::text;
use web::search::Hit;

use super::networks;

/// Calls of an agent in a UTC day that are paid back because no page could be read.
pub const MAX_UNREAD_A_DAY: u32 = 20;
/// Time reserved for writing the answer.
const RESERVE: Duration = Duration::from_secs(3);

pub const ADDRESS: &str = "social_media_url";
pub const ADDRESS_FIELD: Field =
    Field::required(ADDRESS, URL_KIND, "A public profile, site or feed. Professional networks are never read");
pub const ADDRESS_IF_ANY: Field =
    Field::optional(ADDRESS, URL_KIND, "A public profile, site or feed. Professional networks are never read");

/// Refuses URLs that the guard can refuse without a request.
pub fn check_address(input: &Map<String, Value>, policy: &FetchPolicy) -> Vec<FieldError> {
    let url = input.get(ADDRESS).and_then(Value::as_str);
    let refused = url.and_then(|url| check_url(url, policy).err());
    refused.map(|refused| FieldError::new(ADDRESS, refused.to_string())).into_iter().collect()
}

/// When the work must end.
pub fn end_of(toolbox: &Toolbox, task: &Task) -> Instant {
    let left = task.deadline.millis() - toolbox.clock.now().millis();
    let left = Duration::from_millis(u64::try_from(left).unwrap_or(0)).min(task.tool.deadline);
    Instant::now() + left.saturating_sub(RESERVE)
}

/// Fails if the subject is on the opt-out list.
pub async fn refuse_listed(toolbox: &Toolbox, task: &Task) -> Result<(), ToolError> {
    let given = |name: &str| Some(task.text(name)).filter(|text| !text.is_empty());
    let marks = Marks::default().email(given("email")).profile(given(ADDRESS));
    match opt_out::lists(&toolbox.db, &marks).await {
        Ok(false) => Ok(()),
        Ok(true) => Err(vendors::objected()),
        Err(error) => Err(ToolError::internal(error.to_string())),
    }
}

/// Requirements of a call about a URL: none, or a requirement that no deployment meets if the URL is on a network that is
/// never read.
pub fn needs(_: &ToolSpec, input: &Map<String, Value>) -> Vec<Need> {
    let url = input.get(ADDRESS).and_then(Value::as_str).unwrap_or_default();
    closed(url).map(Need::Nobody).into_iter().collect()
}

/// The same for a call without a URL, which needs a search for pages that name the person.
pub fn needs_if_any(tool: &ToolSpec, input: &Map<String, Value>) -> Vec<Need> {
    if input.contains_key(ADDRESS) { needs(tool, input) } else { SEARCHED_WITH.to_vec() }
}

/// Fails for networks that are never read.
pub fn refuse_closed(url: &str) -> Result<(), ToolError> {
    closed(url).map_or(Ok(()), |what| Err(not_configured(&format!("this deployment has no {what}"))))
}

fn closed(url: &str) -> Option<&'static str> {
    if networks::is_professional(url) {
        return Some("provider for professional networks, and never reads them itself");
    }
    networks::is_closed(url).then_some("provider for this network, which shows nothing to readers without an account")
}

pub fn not_configured(message: &str) -> ToolError {
    ToolError::unavailable(Unavailable::ProviderNotConfigured, message)
}

/// Fetches a raw page under the same rules as [`Toolbox::read_page`], for its links and feeds.
pub async fn fetch(toolbox: &Toolbox, url: &str, end: Instant) -> Result<Page, ToolError> {
    let unavailable = |message: String| ToolError::unavailable(Unavailable::DestinationNotReachable, message);
    let page = tokio::time::timeout_at(end, toolbox.fetcher.read(url)).await;
    let page = page.map_err(|_| unavailable("the page did not answer in time".to_owned()))?.map_err(explain)?;
    if page.status / 100 != 2 {
        return Err(unavailable(format!("the page answered {}", page.status)));
    }
    Ok(page)
}

/// Fetches the first `most` pages and returns those that could be read. If the search found no pages, the result is empty.
/// If it found some and none can be read: see [`none_read`].
pub async fn fetch_any(
    toolbox: &Toolbox,
    task: &Task,
    hits: &[Hit],
    most: usize,
    end: Instant,
) -> Result<Vec<Page>, ToolError> {
    let hits: Vec<&Hit> = hits.iter().filter(|hit| !networks::is_closed(&hit.url)).take(most).collect();
    let mut pages = Vec::new();
    for hit in &hits {
        pages.extend(fetch(toolbox, &hit.url, end).await.ok());
    }
    if pages.is_empty() && !hits.is_empty() {
        none_read(toolbox, task, hits.len()).await?;
    }
    Ok(pages)
}

/// None of the pages that a search found could be read: the call fails, and its price is paid back. Whoever has pages that
/// answer nothing could let us pay for searches and a model without end. So after some of these in a UTC day, an agent gets what
/// was found, which is nothing, for its price.
pub async fn none_read(toolbox: &Toolbox, task: &Task, found: usize) -> Result<(), ToolError> {
    let counter = format!("RATE#{}#unread", task.agent);
    match daily::take(&toolbox.db, counter, MAX_UNREAD_A_DAY, toolbox.clock.now()).await {
        Ok(false) => Ok(()),
        Ok(true) => Err(not_read(found)),
        Err(error) => Err(ToolError::internal(error.to_string())),
    }
}

fn not_read(found: usize) -> ToolError {
    let message = match found {
        1 => "one page was found, and it could not be read".to_owned(),
        found => format!("{found} pages were found, and none of them could be read"),
    };
    ToolError::unavailable(Unavailable::SourceUnavailable, message)
}

/// A page's text, in lines.
pub fn words_of(page: &Page) -> String {
    let read = read_page(page, &ReadOptions::default());
    read.map(|read| text::read(&read.markdown, "").plain).unwrap_or_default()
}

/// Sentences of a page's Markdown that state something: no menus, captions or lines about the page itself.
pub fn statements(markdown: &str) -> impl Iterator<Item = String> {
    text::read(markdown, "").sentences.into_iter().filter(|sentence| sentence.states).map(|sentence| sentence.text)
}

/// The text of a piece of HTML that came in JSON.
pub fn words_of_html(html: &str, near: &url::Url) -> String {
    let html: String = html.chars().take(20_000).collect();
    let page = Page {
        final_url: near.clone(),
        status: 200,
        content_type: Some("text/html; charset=utf-8".to_owned()),
        robots: None,
        cache_control: None,
        body: html.into_bytes(),
        truncated: false,
        redirects: 0,
    };
    short(&words_of(&page), 5_000)
}

/// Untrusted text on one line, of bounded length.
pub fn short(text: &str, max_chars: usize) -> String {
    let line = web::research::claims::even(&base::untrusted_text::visible(text));
    line.chars().take(max_chars).collect()
}

/// The result with the members that all these tools share.
pub fn answer(toolbox: &Toolbox, task: &Task, result: Value) -> Value {
    json!({
        "status": "completed",
        "result": result,
        "request_id": task.request_id,
        "completed_at": toolbox.clock.now().to_string(),
    })
}

/// The schema of [`answer`].
pub fn schema(result: Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "status": {"type": "string", "const": "completed"},
            "result": result,
            "request_id": {"type": "string", "format": "uuid"},
            "completed_at": {"type": "string", "format": "date-time"},
        },
        "required": ["status", "result", "request_id", "completed_at"],
    })
}

pub fn or_null(kind: &str, about: &str) -> Value {
    json!({"type": [kind, "null"], "description": about})
}
