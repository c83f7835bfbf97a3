//! What the tools about people have in common: whom they are about, whom they leave alone, and how they answer.

use std::time::Duration;

use base::input::{Field, FieldError};
use platform::net::{FetchPolicy, Page, check_url};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::pages::SEARCHED_WITH;
use tools::spec::{Need, ToolSpec};
use tools::{Task, ToolError, Toolbox, Unavailable};
use tools_people::enrichment::input::URL_KIND;
use tools_people::opt_out::{self, Marks};
use tools_people::vendors;
use web::read::{ReadOptions, read_page};
use web::research::text;
use web::search::Hit;

use super::networks;

/// What is kept of a deadline for writing the answer.
const RESERVE: Duration = Duration::from_secs(3);

pub const ADDRESS: &str = "social_media_url";
pub const ADDRESS_FIELD: Field =
    Field::required(ADDRESS, URL_KIND, "A public profile, site or feed. Professional networks are never read");
pub const ADDRESS_IF_ANY: Field =
    Field::optional(ADDRESS, URL_KIND, "A public profile, site or feed. Professional networks are never read");

/// What the guard knows of the address without asking anybody.
pub fn check_address(input: &Map<String, Value>, policy: &FetchPolicy) -> Vec<FieldError> {
    let url = input.get(ADDRESS).and_then(Value::as_str);
    let refused = url.and_then(|url| check_url(url, policy).err());
    refused.map(|refused| FieldError::new(ADDRESS, refused.to_string())).into_iter().collect()
}

/// Until when the work may go on.
pub fn end_of(toolbox: &Toolbox, task: &Task) -> Instant {
    let left = task.deadline.millis() - toolbox.clock.now().millis();
    let left = Duration::from_millis(u64::try_from(left).unwrap_or(0)).min(task.tool.deadline);
    Instant::now() + left.saturating_sub(RESERVE)
}

/// Refuses what is about somebody who asked not to be found.
pub async fn refuse_listed(toolbox: &Toolbox, task: &Task) -> Result<(), ToolError> {
    let given = |name: &str| Some(task.text(name)).filter(|text| !text.is_empty());
    let marks = Marks::default().email(given("email")).profile(given(ADDRESS));
    match opt_out::lists(&toolbox.db, &marks).await {
        Ok(false) => Ok(()),
        Ok(true) => Err(vendors::objected()),
        Err(error) => Err(ToolError::internal(error.to_string())),
    }
}

/// What a call about an address needs: somebody we do not have, where it is on a network that nobody reads here.
pub fn needs(_: &ToolSpec, input: &Map<String, Value>) -> Vec<Need> {
    let url = input.get(ADDRESS).and_then(Value::as_str).unwrap_or_default();
    closed(url).map(Need::Nobody).into_iter().collect()
}

/// The same of a call that may name no address: then pages that name the person are looked for.
pub fn needs_if_any(tool: &ToolSpec, input: &Map<String, Value>) -> Vec<Need> {
    if input.contains_key(ADDRESS) { needs(tool, input) } else { SEARCHED_WITH.to_vec() }
}

/// Refuses what nobody reads here.
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

/// A page as it came, with the manners of [`Toolbox::read_page`]; for its links and feeds.
pub async fn fetch(toolbox: &Toolbox, url: &str, end: Instant) -> Result<Page, ToolError> {
    let unavailable = |message: String| ToolError::unavailable(Unavailable::SourceUnavailable, message);
    let page = tokio::time::timeout_at(end, toolbox.fetcher.read(url)).await;
    let page = page.map_err(|_| unavailable("the page did not come in time".to_owned()))?;
    let page = page.map_err(|error| unavailable(error.to_string()))?;
    if page.status / 100 != 2 {
        return Err(unavailable(format!("the page answered {}", page.status)));
    }
    Ok(page)
}

/// The first of the pages that were found, those that can be read. Having found nothing is a result; having found pages and
/// read none is not, and is paid back.
pub async fn fetch_any(toolbox: &Toolbox, hits: &[Hit], most: usize, end: Instant) -> Result<Vec<Page>, ToolError> {
    let hits: Vec<&Hit> = hits.iter().filter(|hit| !networks::is_closed(&hit.url)).take(most).collect();
    let mut pages = Vec::new();
    for hit in &hits {
        pages.extend(fetch(toolbox, &hit.url, end).await.ok());
    }
    if pages.is_empty() && !hits.is_empty() {
        return Err(none_read(hits.len()));
    }
    Ok(pages)
}

/// That of the pages that a search found none could be read.
pub fn none_read(found: usize) -> ToolError {
    let message = match found {
        1 => "one page was found, and it could not be read".to_owned(),
        found => format!("{found} pages were found, and none of them could be read"),
    };
    ToolError::unavailable(Unavailable::SourceUnavailable, message)
}

/// The words of a piece of HTML, or of a page, on lines.
pub fn words_of(page: &Page) -> String {
    let read = read_page(page, &ReadOptions::default());
    read.map(|read| text::read(&read.markdown, "").plain).unwrap_or_default()
}

/// What a page's Markdown states, sentence by sentence: no menus, captions or lines about the page itself.
pub fn statements(markdown: &str) -> impl Iterator<Item = String> {
    text::read(markdown, "").sentences.into_iter().filter(|sentence| sentence.states).map(|sentence| sentence.text)
}

/// The same of a piece that came in JSON.
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

/// A stranger's text on one line, of bounded length.
pub fn short(text: &str, max_chars: usize) -> String {
    let line = web::research::claims::even(&base::untrusted_text::visible(text));
    line.chars().take(max_chars).collect()
}

/// The whole answer around what was found.
pub fn answer(toolbox: &Toolbox, task: &Task, result: Value) -> Value {
    json!({
        "status": "completed",
        "result": result,
        "request_id": task.request_id,
        "completed_at": toolbox.clock.now().to_string(),
    })
}

/// The schema of that.
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
