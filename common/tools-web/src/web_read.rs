//! Web read: a page, a PDF file or a feed as Markdown. Queued, because the page's server may be slow.
//!
//! robots.txt also applies to a caller's single read: neither this service nor the site can distinguish a person's agent
//! from a crawler. A page that cannot be read fails the job with a reason, and the call is refunded.

use std::sync::Arc;
use std::time::Duration;

use base::input::{Field, FieldError, Kind};
use base::money::Usdc;
use platform::net::{FetchPolicy, check_url};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::spec::{Need, Price, ToolSpec, URI};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox, picture};

const SCREENSHOT: &str = "screenshot";
/// Time reserved for storing the result.
const RESERVE: Duration = Duration::from_secs(2);

pub static SPEC: ToolSpec = ToolSpec {
    name: picture::TOOL,
    title: "Web read",
    summary: "Reads a public web page, PDF file or feed and returns its main content as Markdown, with title, description and status",
    group: "knowledge",
    paths: &["/v1/tools/web-read"],
    price: Price::Fixed(Usdc::from_micro(2_000)),
    deadline: Duration::from_secs(25),
    waits_for_hosts: Some(|_| true),
    input: &[
        Field::required(
            "url",
            Kind::Text { min: 1, max: 2048, format: Some(&URI) },
            "An http or https URL on a public host",
        ),
        Field::optional(
            SCREENSHOT,
            Kind::Bool,
            "true: adds a screenshot of the page; needs a deployment with a browser",
        ),
    ],
    needs: |_, input| if input.get(SCREENSHOT) == Some(&Value::Bool(true)) { vec![Need::Browser] } else { Vec::new() },
    check: refuse_unreachable,
    example: || json!({"url": "https://example.com/"}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

/// Refuses private, loopback and metadata addresses before a price is quoted. Host names are checked when they are
/// resolved, at the time of reading.
fn refuse_unreachable(input: &Map<String, Value>, policy: &FetchPolicy) -> Vec<FieldError> {
    let url = input.get("url").and_then(Value::as_str).unwrap_or_default();
    match check_url(url, policy) {
        Ok(_) => Vec::new(),
        Err(refused) => vec![FieldError::new("url", refused.to_string())],
    }
}

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let with_picture = task.input.get(SCREENSHOT) == Some(&Value::Bool(true));
        let left = task.deadline.millis() - toolbox.clock.now().millis();
        let left = Duration::from_millis(u64::try_from(left).unwrap_or_default()).saturating_sub(RESERVE);
        let until = Instant::now() + left;
        let seen = toolbox.see_page(task.text("url"), with_picture, until, &task.reporter).await?;
        let broken = |error: &dyn std::fmt::Display| ToolError::internal(error.to_string());
        let mut result = serde_json::to_value(&seen.read).map_err(|error| broken(&error))?;
        if let Some(picture) = seen.picture {
            picture::keep(&*toolbox.blobs, task.request_id, picture, &mut result)
                .await
                .map_err(|error| broken(&error))?;
        }
        Ok(Output::new(result, Source::embedded(if seen.by_browser { "browser" } else { "web" })))
    })
}

fn output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "url": {"type": "string", "format": "uri", "description": "The page's URL after redirects"},
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
                    "canonicalUrl": {"type": "string", "description": "The canonical URL that the page names"},
                    "siteName": {"type": "string"},
                },
                "required": ["title", "description", "statusCode"],
            },
            "truncated": {"type": "boolean", "description": "Whether the page was cut off"},
            "screenshot_url": {
                "type": ["string", "null"],
                "format": "uri",
                "description": "URL of a PNG of the page, if requested: valid for a minute, and new at each poll. Null in a push, and while your limit of 1 GiB a day is used up",
            },
        },
        "required": ["url", "markdown", "metadata", "truncated"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_refused_before_a_price_is_quoted() {
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
