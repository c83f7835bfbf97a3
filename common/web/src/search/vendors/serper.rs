//! Serper: <https://serper.dev/playground> (its documentation is the playground's own examples).

use serde_json::{Value, json};
use platform::providers::{Amount, Ask};

use super::{Answer, Hit, Query, Vendor, text};

pub static VENDOR: Vendor = Vendor { name: "serper", origin: "https://google.serper.dev", needs_key: true, charge: Amount::public(1_000, "a search", "https://serper.dev", "2026-08"), ask, read };

fn ask(query: &Query, key: &str) -> Ask {
    // Results come in tens, and more than ten cost twice as much.
    Ask::post("/search", &json!({"q": query.text, "num": query.max_results.max(10)})).header("x-api-key", key)
}

fn read(answer: &Value) -> Option<Answer> {
    let hits = answer["organic"].as_array()?.iter().filter_map(|result| {
        Some(Hit {
            title: text(result, "title").unwrap_or_default(),
            url: text(result, "link")?,
            snippet: text(result, "snippet"),
            published_at: text(result, "date"),
            site: None,
        })
    });
    Some(Answer { hits: hits.collect(), ..Answer::default() })
}
