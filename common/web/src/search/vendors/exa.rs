//! Exa: <https://exa.ai/docs/reference/search>

use serde_json::{Value, json};
use platform::providers::{Amount, Ask};

use super::{Answer, Hit, Query, Vendor, text};

pub static VENDOR: Vendor = Vendor { name: "exa", origin: "https://api.exa.ai", needs_key: true, charge: Amount::public(7_000, "a search", "https://exa.ai/docs/reference/pricing", "2026-11"), ask, read };

fn ask(query: &Query, key: &str) -> Ask {
    let body = json!({
        "query": query.text,
        "type": "auto",
        "numResults": query.max_results,
        "contents": {"highlights": {"maxCharacters": 500}},
    });
    Ask::post("/search", &body).header("x-api-key", key)
}

fn read(answer: &Value) -> Option<Answer> {
    let hits = answer["results"].as_array()?.iter().filter_map(|result| {
        let highlight = result["highlights"].get(0).and_then(Value::as_str).map(str::to_owned);
        Some(Hit {
            title: text(result, "title").unwrap_or_default(),
            url: text(result, "url")?,
            snippet: highlight.or_else(|| text(result, "summary")).or_else(|| text(result, "text")),
            published_at: text(result, "publishedDate"),
            site: None,
        })
    });
    Some(Answer { hits: hits.collect(), total: None, request_id: text(answer, "requestId") })
}
