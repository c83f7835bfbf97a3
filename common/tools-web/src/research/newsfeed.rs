//! Newsfeed: posts of a public profile or site, from its feed or its server's public API.

use std::sync::Arc;
use std::time::Duration;

use base::money::Usdc;
use platform::net::Page;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Source, Task, ToolError, Toolbox, Unavailable};
use tools_people::enrichment::RETENTION;
use web::read::{Feed, read_facts, read_feed};

use super::subject::{self, ADDRESS, or_null};
use super::{fediverse, networks};

/// Maximum number of posts in one answer.
const MAX_POSTS: usize = 40;
/// Maximum number of a page's feeds that are tried.
const MAX_FEEDS: usize = 3;

pub static SPEC: ToolSpec = ToolSpec {
    name: "research_newsfeed",
    title: "Newsfeed",
    summary: "Returns what a public profile or site posted lately, from its own feed (RSS, Atom, JSON Feed) or the public API \
              of its fediverse server",
    group: "knowledge",
    paths: &["/v1/tools/research/newsfeed", "/v1/tools/lookup/person-posts"],
    price: Price::Fixed(Usdc::from_micro(50_000)),
    deadline: Duration::from_secs(40),
    waits_for_hosts: Some(|_| true),
    needs: subject::needs,
    retention: RETENTION,
    input: &[subject::ADDRESS_FIELD],
    check: subject::check_address,
    example: || json!({"social_media_url": "https://social.example.com/@ada"}),
    output: || {
        subject::schema(json!({"type": "array", "items": {
            "type": "object",
            "properties": {
                "platform": {"type": "string", "description": "mastodon for the fediverse, feed for feeds"},
                "content": {"type": "string"},
                "url": or_null("string", "Where it was posted"),
                "posted_at": or_null("string", "As the source says"),
                "likes": or_null("integer", ""),
                "replies": or_null("integer", ""),
                "shares": or_null("integer", ""),
            },
            "required": ["platform", "content", "url", "posted_at", "likes", "replies", "shares"],
        }}))
    },
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run: |toolbox, task| Box::pin(newsfeed(toolbox, task)) };

async fn newsfeed(toolbox: Arc<Toolbox>, task: Task) -> Result<Output, ToolError> {
    let url = task.text(ADDRESS);
    subject::refuse_closed(url)?;
    subject::refuse_listed(&toolbox, &task).await?;
    let (posts, provider) = posts(&toolbox, url, subject::end_of(&toolbox, &task)).await?.ok_or_else(|| {
        let message =
            "the URL is not a feed, its page links to no feed, and it is not an account on a server with a public API";
        ToolError::unavailable(Unavailable::SourceUnavailable, message)
    })?;
    Ok(Output::new(subject::answer(&toolbox, &task, Value::Array(posts)), Source::embedded(provider)))
}

/// The posts at a URL, and the method that gave them; `None` if there is no feed and no API.
pub async fn posts(
    toolbox: &Toolbox,
    url: &str,
    end: Instant,
) -> Result<Option<(Vec<Value>, &'static str)>, ToolError> {
    if let Some(account) = fediverse::account(url)
        && let Some(profile) = fediverse::profile(toolbox, &account, end).await?
    {
        let posts = fediverse::posts(toolbox, &profile, MAX_POSTS, end).await?;
        let told = posts.iter().map(|post| fediverse::told(post, "mastodon")).filter(is_post);
        return Ok(Some((told.collect(), "mastodon")));
    }
    let page = subject::fetch(toolbox, url, end).await?;
    let Some(feed) = feed_of(toolbox, page, end).await else { return Ok(None) };
    let posts = items(&feed);
    // A feed truncated before its first post does not mean that there are no posts.
    if posts.is_empty() && feed.cut {
        let message = "the feed cannot be read: it is truncated before its first post";
        return Err(ToolError::unavailable(Unavailable::SourceUnavailable, message));
    }
    Ok(Some((posts, "feed")))
}

/// Whether an entry is a post: it has text, or a URL and a date (such as a picture).
fn is_post(post: &Value) -> bool {
    let says = post["content"].as_str().is_some_and(|content| !content.is_empty());
    says || post["url"].is_string() && post["posted_at"].is_string()
}

/// The page as a feed, or the first readable feed that its head names.
async fn feed_of(toolbox: &Toolbox, page: Page, end: Instant) -> Option<Feed> {
    if let Some(feed) = read_feed(&page) {
        return Some(feed);
    }
    for url in read_facts(&page).feeds.iter().take(MAX_FEEDS).filter(|url| !networks::is_closed(url.as_str())) {
        if let Ok(page) = subject::fetch(toolbox, url.as_str(), end).await
            && let Some(feed) = read_feed(&page)
        {
            return Some(feed);
        }
    }
    None
}

fn items(feed: &Feed) -> Vec<Value> {
    let told = feed.items.iter().map(|item| {
        let words = [item.title.as_str(), item.summary.as_str()];
        let content: Vec<&str> = words.into_iter().filter(|text| !text.is_empty()).collect();
        json!({
            "platform": "feed",
            "content": subject::short(&content.join(": "), 5_000),
            "url": item.url,
            "posted_at": item.published,
            "likes": null,
            "replies": null,
            "shares": null,
        })
    });
    told.filter(is_post).take(MAX_POSTS).collect()
}

#[cfg(test)]
mod tests {
    use web::read::Item;

    use super::*;

    #[test]
    fn empty_entries_are_not_posts() {
        let item = |title: &str, url: Option<&str>, published: Option<&str>| Item {
            title: title.to_owned(),
            url: url.map(str::to_owned),
            published: published.map(str::to_owned),
            ..Item::default()
        };
        let (url, date) = (Some("https://a.example/1"), Some("2026-01-02"));
        let nothing = [item("", None, None), item("", url, None), item("", None, date)];
        let posts = [item("Kilns", None, None), item("", url, date)];
        let feed = Feed { items: nothing.into_iter().chain(posts).collect(), ..Feed::default() };
        assert_eq!(items(&feed).len(), 2);
    }
}
