//! Web read: a page as Markdown. Queued, because the page's server answers when it likes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Mode, Output, Runner, Running, ToolError, Toolbox, Unavailable};
use crate::catalog::input::{Field, FieldError, Kind};
use crate::catalog::{Answer, Price, ToolSpec, URI};
use crate::money::Usdc;
use crate::net::{FetchError, FetchPolicy, check_url};
use crate::read::{self, ReadOptions};

pub static SPEC: ToolSpec = ToolSpec {
    name: "web_read",
    title: "Web read",
    summary: "Reads a public web page and returns its main content as Markdown, with title, description and status",
    group: "knowledge",
    paths: &["/v1/tools/web-read"],
    price: Price::Fixed(Usdc::from_micro(2_000)),
    answer: Answer::Queued,
    sells_credits: false,
    category: "data",
    deadline: Duration::from_secs(25),
    input: &[Field::required(
        "url",
        Kind::Text { min: 1, max: 2048, format: Some(&URI) },
        "An http or https URL on a public host",
    )],
    check: refuse_unreachable,
    example: || json!({"url": "https://example.com/"}),
    output,
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

/// What can be known of a URL without asking anybody: private, loopback and metadata addresses are refused before any
/// price is quoted. Names are judged by what they resolve to, when the page is read.
fn refuse_unreachable(input: &Map<String, Value>, policy: &FetchPolicy) -> Vec<FieldError> {
    let url = input.get("url").and_then(Value::as_str).unwrap_or_default();
    match check_url(url, policy) {
        Ok(_) => Vec::new(),
        Err(refused) => vec![FieldError::new("url", refused.to_string())],
    }
}

fn run(toolbox: Arc<Toolbox>, input: Map<String, Value>) -> Running {
    Box::pin(async move {
        let url = input.get("url").and_then(Value::as_str).unwrap_or_default();
        let page = toolbox.fetcher.get(url).await.map_err(explain)?;
        // Parsing a large page takes long enough to be kept off the thread that answers.
        let read = tokio::task::spawn_blocking(move || read::read_page(&page, &ReadOptions::default())).await;
        let read = read.map_err(|_| ToolError::internal("the page could not be parsed"))?;
        let read = read
            .map_err(|unsupported| ToolError::unavailable(Unavailable::SourceUnavailable, unsupported.to_string()))?;
        if read.markdown.is_empty() && read.truncated {
            let message = "the page broke off, or is nested too deeply, before anything could be read";
            return Err(ToolError::unavailable(Unavailable::SourceUnavailable, message));
        }
        let result = serde_json::to_value(&read).map_err(|error| ToolError::internal(error.to_string()))?;
        Ok(Output {
            result,
            provider: "web",
            provider_request_id: None,
            mode: Mode::Embedded,
            credited: None,
            tools_cost: Usdc::ZERO,
        })
    })
}

fn explain(error: FetchError) -> ToolError {
    let reason = match &error {
        FetchError::NotReachable(_) | FetchError::NotAllowed(_) => Unavailable::DestinationNotReachable,
        FetchError::TooManyRedirects
        | FetchError::DecompressionLimit
        | FetchError::UnsupportedContent(_)
        | FetchError::Protocol(_) => Unavailable::SourceUnavailable,
    };
    ToolError::unavailable(reason, error.to_string())
}

fn output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "url": {"type": "string", "format": "uri", "description": "Where the page was found, after redirects"},
            "markdown": {"type": "string", "description": "At most 50 KB"},
            "metadata": {
                "type": "object",
                "properties": {
                    "title": {"type": "string"},
                    "description": {"type": "string"},
                    "statusCode": {"type": "integer", "description": "HTTP status of the page"},
                    "byline": {"type": "string"},
                    "language": {"type": "string"},
                    "publishedAt": {"type": "string"},
                },
                "required": ["title", "description", "statusCode"],
            },
            "truncated": {"type": "boolean", "description": "Whether the page went on"},
        },
        "required": ["url", "markdown", "metadata", "truncated"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_refused_before_any_price() {
        let refused = |url: &str| {
            let body = json!({"url": url});
            !refuse_unreachable(body.as_object().unwrap(), &FetchPolicy::default()).is_empty()
        };
        for url in [
            "http://127.0.0.1/",
            "http://10.0.0.1/",
            "http://169.254.169.254/latest/meta-data/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://localhost/",
            "http://service.internal/",
            "file:///etc/passwd",
            "ftp://example.com/",
            "http://user:password@example.com/",
            "http://example.com:22/",
        ] {
            assert!(refused(url), "{url}");
        }
        for url in ["http://example.com/", "https://example.com:443/a?b#c", "http://93.184.216.34/"] {
            assert!(!refused(url), "{url}");
        }
    }
}
