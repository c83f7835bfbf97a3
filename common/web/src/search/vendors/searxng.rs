//! SearXNG, self-hosted: <https://docs.searxng.org/dev/search_api.html>. Its settings must allow `json` under
//! `search.formats`, otherwise it answers 403.

use serde_json::Value;
use platform::providers::{Amount, Ask};

use super::{Answer, Hit, Query, Vendor, encoded, text};

pub static VENDOR: Vendor = Vendor { name: "searxng", origin: "", needs_key: false, charge: Amount::Unknown("your own server"), ask, read };

fn ask(query: &Query, _: &str) -> Ask {
    // The API has no page size: the caller truncates.
    Ask { per_second: 2.0, ..Ask::get(format!("/search?q={}&format=json&categories=general", encoded(&query.text))) }
}

fn read(answer: &Value) -> Option<Answer> {
    let results = answer["results"].as_array()?;
    // No engine answered: a failure, not an empty result.
    let is_silent = answer["unresponsive_engines"].as_array().is_some_and(|engines| !engines.is_empty());
    if results.is_empty() && is_silent {
        return None;
    }
    let hits = results.iter().filter_map(|result| {
        Some(Hit {
            title: text(result, "title").unwrap_or_default(),
            url: text(result, "url")?,
            snippet: text(result, "content"),
            published_at: text(result, "publishedDate"),
            site: None,
        })
    });
    let hits: Vec<Hit> = hits.collect();
    // No result is readable: not a SearXNG answer.
    if hits.is_empty() && !results.is_empty() {
        return None;
    }
    // 0 means that no engine reports a total.
    let total = answer["number_of_results"].as_f64().filter(|total| *total >= 1.0).map(|total| total as u64);
    Some(Answer { hits, total, request_id: None })
}
