//! Brave Search: <https://api-dashboard.search.brave.com/app/documentation/web-search/get-started>

use serde_json::Value;
use platform::providers::{Amount, Ask};

use super::{Answer, Hit, Query, Vendor, encoded, text};

pub static VENDOR: Vendor =
    Vendor { name: "brave", origin: "https://api.search.brave.com", needs_key: true, charge: Amount::public(5_000, "a search", "https://api-dashboard.search.brave.com/app/plans", "2026-09"), ask, read };

fn ask(query: &Query, key: &str) -> Ask {
    // API limits: 400 characters, 20 results, one request per second on the smallest plan.
    let words: String = query.text.chars().take(400).collect();
    let path = format!("/res/v1/web/search?q={}&count={}", encoded(&words), query.max_results.clamp(1, 20));
    Ask { per_second: 1.0, ..Ask::get(path).header("x-subscription-token", key) }
}

fn read(answer: &Value) -> Option<Answer> {
    // Without results the answer has no `web` member.
    let none = answer["type"] == "search" && answer["web"].is_null();
    let results = if none { &[] } else { answer["web"]["results"].as_array()?.as_slice() };
    let hits = results.iter().filter_map(|result| {
        Some(Hit {
            title: text(result, "title")?,
            url: text(result, "url")?,
            snippet: text(result, "description"),
            published_at: text(result, "page_age"),
            site: text(&result["profile"], "name"),
        })
    });
    Some(Answer { hits: hits.collect(), ..Answer::default() })
}
