//! Web search, answered at once, from the configured providers or this service's own index.

use std::sync::Arc;
use std::time::Duration;

use base::input::{A_WORD, Field, Kind};
use base::money::Usdc;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Running, Task, Toolbox, pages};
use web::search::{Found, Hit, Query};

/// Time limit of providers and index together.
const TIME: Duration = Duration::from_secs(8);
const USUAL_RESULTS: i64 = 5;

pub static SPEC: ToolSpec = ToolSpec {
    name: "web_search",
    title: "Web search",
    summary: "Searches the web and returns titles, addresses, snippets and dates of the pages that fit best",
    group: "knowledge",
    paths: &["/v1/tools/search"],
    price: Price::Fixed(Usdc::from_micro(1_000)),
    bare: true,
    deadline: Duration::from_secs(10),
    input: &[
        Field::required("query", Kind::Text { min: 1, max: 500, format: Some(&A_WORD) }, "What to look for"),
        Field::optional("max_results", Kind::Integer { min: 1, max: 20 }, "Most results wanted; 5 if not said"),
    ],
    example: || json!({"query": "how lighthouses are told apart", "max_results": 5}),
    needs: |_, _| pages::SEARCHED_WITH.to_vec(),
    output,
    ..ToolSpec::DIRECT
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let max_results = task.number("max_results").unwrap_or(USUAL_RESULTS);
        let query = Query {
            text: task.text("query").to_owned(),
            max_results: usize::try_from(max_results).unwrap_or_default(),
        };
        let found = toolbox.find_pages(&query, Instant::now() + TIME).await?;
        Ok(Output::new(shown(&query, &found), found.source))
    })
}

fn shown(query: &Query, found: &Found) -> Value {
    let results: Vec<Value> = found.hits.iter().map(result).collect();
    let mut shown = json!({
        "query": query.text,
        // Older clients read either `total` or `result_count`.
        "result_count": found.total.unwrap_or(results.len() as u64),
        "results": results,
    });
    // The provider's own id of the request. The provider's name is added outside the result.
    shown["provider_request_id"] = json!(found.source.request_id);
    if let Some(total) = found.total {
        shown["total"] = json!(total);
    }
    if let Some(index) = found.index {
        shown["index"] = json!({"pages": index.pages, "updated_at": index.updated_at.to_string()});
    }
    shown
}

fn result(hit: &Hit) -> Value {
    let mut result = json!({"title": hit.title, "url": hit.url});
    let texts = [
        ("snippet", &hit.snippet),
        ("description", &hit.snippet),
        ("published_at", &hit.published_at),
        ("source", &hit.site),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            result[name] = json!(text);
        }
    }
    result
}

fn output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "title": {"type": "string"},
                        "url": {"type": "string", "format": "uri"},
                        "snippet": {"type": "string", "description": "Untrusted text from the page"},
                        "description": {"type": "string", "description": "The same as snippet"},
                        "published_at": {"type": "string", "description": "A date, or an RFC 3339 time"},
                        "source": {"type": "string", "description": "The site's name or host"},
                    },
                    "required": ["title", "url"],
                },
            },
            "total": {"type": "integer", "description": "Number of matching pages, if known"},
            "result_count": {"type": "integer", "description": "The same as total; the number of results if the total is unknown"},
            "index": {
                "type": "object",
                "description": "This service's own index, if it answered: its number of pages, and when one was last added",
                "properties": {"pages": {"type": "integer"}, "updated_at": {"type": "string", "format": "date-time"}},
                "required": ["pages", "updated_at"],
            },
            "request_id": {"type": "string"},
            "receipt_id": {"type": ["string", "null"]},
            "cost": {"type": "string", "description": "In USDC"},
            "provider": {"type": "string", "description": "Who searched"},
            "provider_request_id": {"type": ["string", "null"], "description": "The provider's own id of the request, if it gave one"},
            "mode": {"type": "string", "enum": ["embedded", "upstream"]},
        },
        "required": ["query", "results", "result_count"],
    })
}
