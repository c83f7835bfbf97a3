//! Social accounts that a public page claims, with the place of each claim. Claims are the page's own and are not verified;
//! each result says so.

use std::sync::Arc;
use std::time::Duration;

use base::input::{Field, FieldError};
use base::money::Usdc;
use platform::net::{FetchPolicy, Page};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Source, Task, ToolError, Toolbox};
use tools_people::enrichment::RETENTION;
use tools_people::enrichment::input::{EMAIL_KIND, one_of};
use url::Url;
use web::read::{Facts, read_facts};

use super::networks::{self, Profile};
use super::subject::{self, ADDRESS, or_null};
use super::{fediverse, gather};

/// Maximum number of pages read that contain the e-mail address.
const MAX_PAGES: usize = 5;

pub static SPEC: ToolSpec = ToolSpec {
    name: "research_social",
    title: "Social accounts",
    summary: "Lists the social accounts that a public page or profile claims as its own (rel=me, JSON-LD sameAs, links to \
              profiles), each with the page that claims it",
    group: "knowledge",
    paths: &["/v1/tools/research/social", "/v1/tools/lookup/person-social-accounts"],
    price: Price::Fixed(Usdc::from_micro(500_000)),
    deadline: Duration::from_secs(60),
    needs: subject::needs,
    retention: RETENTION,
    input: &[
        Field::optional("email", EMAIL_KIND, "An e-mail address; pages that name it are searched for"),
        subject::ADDRESS_IF_ANY,
    ],
    check,
    example: || json!({"social_media_url": "https://ada.example.com/"}),
    output: || {
        subject::schema(json!({
            "type": "object",
            "description": "By the network's name",
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "url": {"type": "string"},
                    "username": {"type": "string"},
                    "followers": or_null("integer", "If the network shows it publicly"),
                    "bio": or_null("string", ""),
                    "found_on": {"type": "string", "description": "The page that claims it"},
                    "basis": {
                        "type": "string",
                        "enum": ["given", "own_profile", "rel_me", "same_as", "link"],
                        "description": "given: your input; own_profile: from the network itself; the others: how the page claims it. Links are the \
                                        weakest: a page may link to others' profiles, too",
                    },
                },
                "required": ["url", "username", "followers", "bio", "found_on", "basis"],
            },
        }))
    },
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run: |toolbox, task| Box::pin(social(toolbox, task)) };

fn check(input: &Map<String, Value>, policy: &FetchPolicy) -> Vec<FieldError> {
    [one_of(input, &["email", ADDRESS]), subject::check_address(input, policy)].concat()
}

async fn social(toolbox: Arc<Toolbox>, task: Task) -> Result<Output, ToolError> {
    subject::refuse_listed(&toolbox, &task).await?;
    let end = subject::end_of(&toolbox, &task);
    let mut accounts = Map::new();
    let source = match task.text(ADDRESS) {
        "" => by_email(&toolbox, &task, end, &mut accounts).await?,
        url => {
            by_address(&toolbox, url, end, &mut accounts).await?;
            Source::embedded("web")
        }
    };
    Ok(Output::new(subject::answer(&toolbox, &task, Value::Object(accounts)), source))
}

async fn by_address(
    toolbox: &Toolbox,
    url: &str,
    end: Instant,
    accounts: &mut Map<String, Value>,
) -> Result<(), ToolError> {
    subject::refuse_closed(url)?;
    if let Some(account) = fediverse::account(url)
        && let Some(profile) = fediverse::profile(toolbox, &account, end).await?
    {
        let own = Profile { network: "mastodon", username: profile.username.clone(), url: profile.url.clone() };
        add(accounts, own, url, "own_profile", profile.followers, Some(profile.bio));
        for link in &profile.links {
            add_if_profile(accounts, link, url, "link");
        }
        return Ok(());
    }
    // A URL that only looks like a fediverse profile, unknown to its host, is not an account.
    if let Some(profile) = networks::profile(url, false).filter(|_| fediverse::account(url).is_none()) {
        add(accounts, profile, url, "given", None, None);
    }
    let page = subject::fetch(toolbox, url, end).await?;
    claimed(accounts, &page, true);
    Ok(())
}

/// Accounts from pages that contain the address. Only `rel=me` and JSON-LD count, because other links may lead to anybody's
/// account.
async fn by_email(
    toolbox: &Toolbox,
    task: &Task,
    end: Instant,
    accounts: &mut Map<String, Value>,
) -> Result<Source, ToolError> {
    let email = task.text("email");
    let found = gather::search(toolbox, &[format!("\"{email}\"")], MAX_PAGES, end).await?;
    for page in subject::fetch_any(toolbox, task, &found.hits, MAX_PAGES, end).await? {
        let names = page_names(&page, email);
        if names {
            claimed(accounts, &page, false);
        }
    }
    Ok(found.source("web"))
}

/// Whether a page contains the address, in its text or in a link.
pub fn page_names(page: &Page, email: &str) -> bool {
    let email = email.to_lowercase();
    let links = read_facts(page).links;
    let linked = links.iter().any(|link| link.url.scheme() == "mailto" && link.url.path().to_lowercase() == email);
    linked || says_address(&subject::words_of(page).to_lowercase(), &email)
}

/// Whether the text contains the address by itself, not inside a longer one.
fn says_address(text: &str, email: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || "_%+-".contains(letter);
    text.match_indices(email).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + email.len()..]);
        let goes_on = after.strip_prefix('.').unwrap_or(after).starts_with(is_part);
        !before.ends_with(|letter: char| is_part(letter) || letter == '.') && !goes_on
    })
}

/// Adds the accounts that the page claims, the most certain first.
fn claimed(accounts: &mut Map<String, Value>, page: &Page, with_links: bool) {
    let facts = read_facts(page);
    let on = page.final_url.as_str();
    facts.me.iter().for_each(|url| add_if_profile(accounts, url, on, "rel_me"));
    same_as(&facts).iter().for_each(|url| add_if_profile(accounts, url, on, "same_as"));
    if with_links {
        facts.links.iter().for_each(|link| add_if_profile(accounts, &link.url, on, "link"));
    }
}

fn same_as(facts: &Facts) -> Vec<Url> {
    let kinds = ["Person", "Organization", "Corporation", "LocalBusiness", "ProfilePage", "WebSite"];
    let mut urls = Vec::new();
    for object in facts.of_type(&kinds) {
        let said = match &object["sameAs"] {
            Value::Array(urls) => urls.iter().take(50).collect(),
            one => vec![one],
        };
        urls.extend(said.into_iter().filter_map(|url| Url::parse(url.as_str()?).ok()));
    }
    urls
}

fn add_if_profile(accounts: &mut Map<String, Value>, url: &Url, on: &str, basis: &str) {
    if let Some(profile) = networks::profile(url.as_str(), basis == "rel_me") {
        add(accounts, profile, on, basis, None, None);
    }
}

/// Adds an account. Only the first account of each network is kept, because it is the most certain.
fn add(
    accounts: &mut Map<String, Value>,
    profile: Profile,
    on: &str,
    basis: &str,
    followers: Option<u64>,
    bio: Option<String>,
) {
    let account = json!({
        "url": profile.url,
        "username": profile.username,
        "followers": followers,
        "bio": bio.filter(|bio| !bio.is_empty()),
        "found_on": on,
        "basis": basis,
    });
    accounts.entry(profile.network).or_insert(account);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_inside_a_longer_one_does_not_count() {
        for text in ["ada@a.example", "write to ada@a.example.", "<ada@a.example>, or call"] {
            assert!(says_address(text, "ada@a.example"), "{text}");
        }
        for text in ["xada@a.example", "m.ada@a.example", "ada@a.example.org", "ada@a.examples", ""] {
            assert!(!says_address(text, "ada@a.example"), "{text}");
        }
    }
}
