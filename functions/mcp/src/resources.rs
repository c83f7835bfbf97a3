//! Resources: the guides, and what the caller owns, which is the results of its requests and the texts of souls. Reading
//! one never buys it.

use api::discovery::PAGES;
use axum::body::Bytes;
use gate::limits::Owned;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, header};
use platform::http::ApiError;
use rmcp::model::{CacheScope, JsonObject, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;
use tools::soul::PURCHASE;

use crate::Shop;
use crate::answers::MAX_TEXT_BYTES;
use crate::calls::{self, Answered, filled};
use crate::server::KEPT_MS;
use crate::tools::{named, object};

const MARKDOWN: &str = "text/markdown";

impl Shop {
    /// The scheme of the addresses: the service's name, because the resources of other servers have names of their own.
    pub fn scheme(&self) -> String {
        let name = self.app.config.service_name.to_ascii_lowercase();
        // A scheme begins with a letter.
        if name.starts_with(|first: char| first.is_ascii_alphabetic()) { name } else { format!("x{name}") }
    }

    /// What everybody can read. What the caller owns is not listed.
    pub fn resources(&self) -> Vec<Resource> {
        let scheme = self.scheme();
        let guide = |name: &str, about: &str| {
            let resource = Resource::new(format!("{scheme}://guides/{name}"), name);
            resource.with_description(about).with_mime_type(MARKDOWN)
        };
        PAGES.iter().map(|page| guide(page.name, page.about)).collect()
    }

    pub fn templates(&self) -> Vec<ResourceTemplate> {
        let (scheme, prefix) = (self.scheme(), &self.prefix);
        let own = |uri: &str, name: &str, title: &str, about: &str, kind: &str| {
            let template = ResourceTemplate::new(format!("{scheme}://{uri}"), name).with_title(title);
            template.with_description(named(about, prefix)).with_mime_type(kind)
        };
        let mut templates = vec![own(
            "requests/{request_id}",
            "request",
            "A request",
            "The state of something that you bought, and its result, as {get_request} tells it. With a poll_key instead \
                 of an access token: request_id.poll_key",
            "application/json",
        )];
        if self.has("soul_purchase") {
            let about = "The text of a soul that you bought with {soul_purchase}, or that is free";
            templates.push(own("souls/{slug}", "soul_text", "A soul's text", about, MARKDOWN));
        }
        templates
    }

    /// Whether a tool of this name is there; the name has no prefix.
    pub fn has(&self, word: &str) -> bool {
        self.tools.iter().any(|entry| entry.word(&self.prefix) == word)
    }

    /// The resource at this address. 404 if there is none, or if it is not the caller's.
    pub async fn resource(&self, parts: &Parts, meta: &JsonObject, uri: &str) -> Result<ReadResourceResult, Answered> {
        let place = uri.strip_prefix(&self.scheme()).and_then(|rest| rest.strip_prefix("://")?.split_once('/'));
        let (text, kind) = match place {
            Some(("guides", name)) => {
                let found = ResourceContents::text(self.guide(parts, name).await?, uri).with_mime_type(MARKDOWN);
                let found = ReadResourceResult::new(vec![found]);
                return Ok(found.with_ttl_ms(KEPT_MS).with_cache_scope(CacheScope::Public));
            }
            Some(("requests", id)) => (self.outcome(parts, meta, id).await?, "application/json"),
            Some(("souls", slug)) => (self.owned_text(parts, meta, slug).await?, MARKDOWN),
            _ => return Err(ApiError::NotFound.into()),
        };
        let found = ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(kind)]);
        Ok(found.with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }

    async fn guide(&self, parts: &Parts, name: &str) -> Result<String, ApiError> {
        let (app, lacking) = (&self.app, self.app.lacking().await);
        let documents = self.library.of(&app.config, app.catalog, &app.origin(&parts.headers), lacking);
        let guide = documents.guide(name).ok_or(ApiError::NotFound)?;
        Ok(String::from_utf8_lossy(guide.body()).into_owned())
    }

    /// The state and result of a request, by the name of its task.
    async fn outcome(&self, parts: &Parts, meta: &JsonObject, id: &str) -> Result<String, Answered> {
        let (_, body) = self.of_task(parts, meta, id).await?;
        let text = body.to_string();
        if text.len() > MAX_TEXT_BYTES {
            // As text it would take twice its size.
            let message = format!("too large for a resource; call {}get_request for it", self.prefix);
            return Err(ApiError::field("uri", message).into());
        }
        Ok(text)
    }

    /// The text of a soul that the caller bought, or that is free.
    async fn owned_text(&self, parts: &Parts, meta: &JsonObject, slug: &str) -> Result<String, Answered> {
        let path = filled(PURCHASE.path(), &object(json!({"slug": slug}))).map_err(|_| ApiError::NotFound)?;
        let mut headers = calls::headers(parts, meta)?;
        for name in ["idempotency-key", "x-quote-id", "x-approval-id"] {
            headers.remove(name);
        }
        // A text that the caller does not own is then priced, and not bought.
        headers.insert("x-dry-run", HeaderValue::from_static("true"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let body = Bytes::from_static(b"{}");
        let answer = self.ask(PURCHASE.group, Method::POST, &path, parts, headers, body).await;
        match answer.body["soul_md"].as_str() {
            Some(text) if answer.status.is_success() => {
                if let Some(owned) = parts.extensions.get::<Owned>() {
                    owned.set();
                }
                Ok(text.to_owned())
            }
            _ if answer.status == StatusCode::UNAUTHORIZED
                || answer.status == StatusCode::TOO_MANY_REQUESTS
                || answer.status.is_server_error() =>
            {
                Err(answer)
            }
            _ => Err(ApiError::NotFound.into()),
        }
    }
}
