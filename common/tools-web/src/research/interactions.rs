//! Interactions: followers of a public account, accounts it follows, and replies to it. Only the fediverse shows these
//! publicly; other networks would need a vendor.

use std::sync::Arc;
use std::time::Duration;

use base::input::{Field, Kind};
use base::money::Usdc;
use serde_json::{Value, json};
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Source, Task, ToolError, Toolbox};
use tools_people::enrichment::RETENTION;

use super::fediverse;
use super::subject::{self, ADDRESS, or_null};

pub static SPEC: ToolSpec = ToolSpec {
    name: "research_interactions",
    title: "Followers, following and replies",
    summary: "Returns who follows a public fediverse account, whom it follows, or who answered its latest posts, as its own \
              server tells the public",
    group: "knowledge",
    paths: &["/v1/tools/research/interactions", "/v1/tools/lookup/person-followers"],
    price: Price::Fixed(Usdc::from_micro(50_000)),
    deadline: Duration::from_secs(40),
    waits_for_hosts: Some(|_| true),
    needs: subject::needs,
    retention: RETENTION,
    input: &[
        subject::ADDRESS_FIELD,
        Field::optional(
            "type",
            Kind::Choice(&["replies", "followers", "following", "followers,following"]),
            "What is wanted; followers,following if not given",
        ),
        Field::optional(
            "max_results",
            Kind::Integer { min: 1, max: 1000 },
            "Most entries of each kind; servers show at most 80 publicly",
        ),
    ],
    check: subject::check_address,
    example: || json!({"social_media_url": "https://social.example.com/@ada", "type": "followers"}),
    output: || {
        let account = json!({
            "type": "object",
            "properties": {
                "username": {"type": "string"},
                "display_name": {"type": "string"},
                "url": {"type": "string"},
                "followers": or_null("integer", "How many follow it"),
            },
            "required": ["username", "display_name", "url", "followers"],
        });
        let reply = json!({
            "type": "object",
            "properties": {
                "author": account,
                "content": {"type": "string"},
                "url": or_null("string", ""),
                "posted_at": or_null("string", ""),
                "in_reply_to": or_null("string", "The post that was answered"),
            },
            "required": ["author", "content", "url", "posted_at", "in_reply_to"],
        });
        subject::schema(json!({
            "type": "object",
            "properties": {
                "followers": {"type": "array", "items": account},
                "following": {"type": "array", "items": account},
                "replies": {"type": "array", "items": reply},
                "followers_total": or_null("integer", "Total number that the account's server reports"),
                "following_total": or_null("integer", ""),
            },
            "required": ["followers", "following", "replies", "followers_total", "following_total"],
        }))
    },
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run: |toolbox, task| Box::pin(interactions(toolbox, task)) };

async fn interactions(toolbox: Arc<Toolbox>, task: Task) -> Result<Output, ToolError> {
    let url = task.text(ADDRESS);
    subject::refuse_closed(url)?;
    subject::refuse_listed(&toolbox, &task).await?;
    let end = subject::end_of(&toolbox, &task);
    let nobody = || {
        subject::not_configured(
            "only fediverse accounts show their followers publicly, and no provider for other networks is configured",
        )
    };
    let account = fediverse::account(url).ok_or_else(nobody)?;
    let profile = fediverse::profile(&toolbox, &account, end).await?.ok_or_else(nobody)?;
    let kind = Some(task.text("type")).filter(|kind| !kind.is_empty()).unwrap_or("followers,following");
    let most = task.number("max_results").and_then(|most| usize::try_from(most).ok()).unwrap_or(80);
    let (mut followers, mut following, mut replies) = (Vec::new(), Vec::new(), Vec::new());
    for kind in kind.split(',') {
        match kind {
            "followers" => followers = fediverse::accounts(&toolbox, &profile, "followers", most, end).await?,
            "following" => following = fediverse::accounts(&toolbox, &profile, "following", most, end).await?,
            _ => replies = fediverse::replies(&toolbox, &profile, most, end).await?,
        }
    }
    let result: Value = json!({
        "followers": followers,
        "following": following,
        "replies": replies,
        "followers_total": profile.followers,
        "following_total": profile.following,
    });
    Ok(Output::new(subject::answer(&toolbox, &task, result), Source::embedded("mastodon")))
}
