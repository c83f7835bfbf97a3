//! Tavily: <https://docs.tavily.com/documentation/api-reference/endpoint/search>

use serde_json::{Value, json};
use platform::providers::{Amount, Ask};

use super::{Answer, Hit, Query, Vendor, text};

pub static VENDOR: Vendor = Vendor { name: "tavily", origin: "https://api.tavily.com", needs_key: true, charge: Amount::public(8_000, "a search", "https://docs.tavily.com/documentation/api-credits.md", "2026-10"), ask, read };

fn ask(query: &Query, key: &str) -> Ask {
    let body = json!({"query": query.text, "max_results": query.max_results, "search_depth": "basic"});
    Ask::post("/search", &body).header("authorization", format!("Bearer {key}"))
}

fn read(answer: &Value) -> Option<Answer> {
    let hits = answer["results"].as_array()?.iter().filter_map(|result| {
        Some(Hit {
            title: text(result, "title").unwrap_or_default(),
            url: text(result, "url")?,
            snippet: text(result, "content"),
            published_at: text(result, "published_date"),
            site: None,
        })
    });
    Some(Answer { hits: hits.collect(), total: None, request_id: text(answer, "request_id") })
}
