//! Public accounts of the fediverse, by the unauthenticated part of Mastodon's API, which other servers support too
//! (docs.joinmastodon.org/methods/accounts: lookup, followers, following, statuses; …/methods/statuses: context; stored
//! copies of 2026). If the server requires a token, the call fails.
//!
//! Every URL is built from the one the caller gave, and fetched by the guarded client.

use base::encoding::percent_encoded;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::pages::explain;
use tools::{ToolError, Toolbox, Unavailable};
use url::Url;

use super::networks::{self, Account};
use super::subject::{short, words_of_html};

/// Maximum number of accounts in one answer, and of posts (the API's own limits).
const MAX_ACCOUNTS: usize = 80;
const MAX_POSTS: usize = 40;
/// Maximum number of posts whose replies are fetched.
const MAX_THREADS: usize = 5;

/// A profile as its server reports it.
#[derive(Clone, Debug)]
pub struct Profile {
    origin: String,
    id: String,
    pub url: String,
    pub username: String,
    pub bio: String,
    pub followers: Option<u64>,
    pub following: Option<u64>,
    /// Links in its fields and its text.
    pub links: Vec<Url>,
}

/// The account's profile; `None` if its server does not know it, or does not support the API.
pub async fn profile(toolbox: &Toolbox, account: &Account, end: Instant) -> Result<Option<Profile>, ToolError> {
    let path = format!("/api/v1/accounts/lookup?acct={}", percent_encoded(&account.name));
    let Some(told) = get(toolbox, &account.origin, &path, end).await? else { return Ok(None) };
    let Some((id, own)) = told["id"].as_str().zip(read(&told, &account.origin)) else { return Ok(None) };
    let is_id = !id.is_empty() && id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_id {
        return Ok(None);
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let fields = told["fields"].as_array().into_iter().flatten().take(10).map(|field| text(&field["value"]));
    let html: String = std::iter::once(text(&told["note"])).chain(fields).collect::<Vec<_>>().join("<br>");
    Ok(Some(Profile {
        origin: account.origin.clone(),
        id: id.to_owned(),
        url: own["url"].as_str().unwrap_or_default().to_owned(),
        username: own["username"].as_str().unwrap_or_default().to_owned(),
        bio: Url::parse(&account.origin)
            .map(|near| short(&words_of_html(&text(&told["note"]), &near), 1_000))
            .unwrap_or_default(),
        followers: told["followers_count"].as_u64(),
        following: told["following_count"].as_u64(),
        links: links(&html),
    }))
}

/// The latest posts, newest first.
pub async fn posts(toolbox: &Toolbox, profile: &Profile, most: usize, end: Instant) -> Result<Vec<Value>, ToolError> {
    let path = format!("/api/v1/accounts/{}/statuses?limit={}&exclude_reblogs=true", profile.id, most.min(MAX_POSTS));
    let told = get(toolbox, &profile.origin, &path, end).await?.ok_or_else(closed)?;
    Ok(told.as_array().ok_or_else(closed)?.iter().take(most).filter(|post| is_public(post)).cloned().collect())
}

fn is_public(post: &Value) -> bool {
    matches!(post["visibility"].as_str(), None | Some("public" | "unlisted")) && post["reblog"].is_null()
}

/// A post in the form of the result.
pub fn told(post: &Value, platform: &str) -> Value {
    let near = post["url"].as_str().and_then(|url| Url::parse(url).ok());
    let near = near.filter(|url| matches!(url.scheme(), "http" | "https"));
    let content = post["content"].as_str().unwrap_or_default();
    let anywhere = || Url::parse("https://example.com/").ok();
    let words = near.clone().or_else(anywhere).map(|near| words_of_html(content, &near)).unwrap_or_default();
    json!({
        "platform": platform,
        "content": words,
        "url": near.map(String::from),
        "posted_at": post["created_at"].as_str().map(|date| short(date, 64)),
        "likes": post["favourites_count"].as_u64(),
        "replies": post["replies_count"].as_u64(),
        "shares": post["reblogs_count"].as_u64(),
    })
}

/// The followers of an account, or the accounts it follows.
pub async fn accounts(
    toolbox: &Toolbox,
    profile: &Profile,
    list: &str,
    most: usize,
    end: Instant,
) -> Result<Vec<Value>, ToolError> {
    let path = format!("/api/v1/accounts/{}/{list}?limit={}", profile.id, most.min(MAX_ACCOUNTS));
    let told = get(toolbox, &profile.origin, &path, end).await?.ok_or_else(closed)?;
    let accounts = told.as_array().ok_or_else(closed)?.iter().take(most);
    Ok(accounts.filter_map(|account| read(account, &profile.origin)).collect())
}

/// Other people's replies to the account's latest posts.
pub async fn replies(toolbox: &Toolbox, profile: &Profile, most: usize, end: Instant) -> Result<Vec<Value>, ToolError> {
    let posts = posts(toolbox, profile, MAX_POSTS, end).await?;
    let answered = posts.iter().filter(|post| post["replies_count"].as_u64().is_some_and(|count| count > 0));
    let mut replies = Vec::new();
    for post in answered.take(MAX_THREADS) {
        let id = post["id"].as_str().unwrap_or_default();
        let is_id = !id.is_empty() && id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_id || replies.len() >= most {
            continue;
        }
        let path = format!("/api/v1/statuses/{id}/context");
        let Some(context) = get(toolbox, &profile.origin, &path, end).await? else { continue };
        for reply in context["descendants"].as_array().into_iter().flatten().filter(|reply| is_public(reply)) {
            let Some(author) = read(&reply["account"], &profile.origin) else { continue };
            let own = told(reply, "mastodon");
            replies.push(json!({
                "author": author,
                "content": own["content"],
                "url": own["url"],
                "posted_at": own["posted_at"],
                "in_reply_to": post["url"].as_str().map(|url| short(url, 2_048)),
            }));
        }
    }
    replies.truncate(most);
    Ok(replies)
}

/// An account in the form of the result.
fn read(account: &Value, origin: &str) -> Option<Value> {
    let acct = short(account["acct"].as_str()?, 200);
    let url = account["url"].as_str().and_then(|url| Url::parse(url).ok());
    let url = url
        .filter(|url| matches!(url.scheme(), "http" | "https"))
        .map_or_else(|| format!("{origin}/@{acct}"), String::from);
    Some(json!({
        "username": acct,
        "display_name": short(account["display_name"].as_str().unwrap_or_default(), 200),
        "url": url,
        "followers": account["followers_count"].as_u64(),
    }))
}

/// Links in a piece of HTML.
fn links(html: &str) -> Vec<Url> {
    let near = Url::parse("https://example.com/").ok();
    let page = near.map(|near| platform::net::Page {
        final_url: near,
        status: 200,
        content_type: Some("text/html".to_owned()),
        robots: None,
        cache_control: None,
        body: html.chars().take(20_000).collect::<String>().into_bytes(),
        truncated: false,
        redirects: 0,
    });
    let facts = page.map(|page| web::read::read_facts(&page)).unwrap_or_default();
    facts
        .links
        .into_iter()
        .map(|link| link.url)
        .chain(facts.me)
        .filter(|url| url.host_str() != Some("example.com"))
        .collect()
}

/// JSON at a path of the account's own server; `None` if there is none.
async fn get(toolbox: &Toolbox, origin: &str, path: &str, end: Instant) -> Result<Option<Value>, ToolError> {
    let unavailable = |message: String| ToolError::unavailable(Unavailable::DestinationNotReachable, message);
    let page = tokio::time::timeout_at(end, toolbox.fetcher.get(&format!("{origin}{path}"))).await;
    let page =
        page.map_err(|_| unavailable("the account's server did not answer in time".to_owned()))?.map_err(explain)?;
    // A redirect to another origin is not this server's answer.
    let stayed = page.final_url.origin().ascii_serialization() == origin;
    match page.status {
        200 if stayed => Ok(serde_json::from_slice(&page.body).ok()),
        404 | 410 => Ok(None),
        401 | 403 | 422 => Err(closed()),
        200 => Ok(None),
        status => Err(unavailable(format!("the account's server answered {status}"))),
    }
}

fn closed() -> ToolError {
    ToolError::unavailable(Unavailable::SourceUnavailable, "the account's server does not show this without a login")
}

/// The account in a URL, if the URL has the form of an account's URL.
pub fn account(url: &str) -> Option<Account> {
    networks::account(url)
}
