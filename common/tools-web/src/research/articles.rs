//! Articles about a person: pages from a search that name both the person and the company.

use std::sync::Arc;
use std::time::Duration;

use base::input::{Field, Kind};
use base::money::Usdc;
use base::words::words;
use serde_json::{Value, json};
use tools::pages;
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Task, ToolError, Toolbox};
use tools_people::enrichment::RETENTION;
use tools_people::enrichment::input::SAYS;
use web::research::text;

use super::gather;
use super::subject::{self, or_null, short};

/// Two names are near each other if at most this many words lie between them, about a paragraph.
const NEAR_WORDS: usize = 60;

pub static SPEC: ToolSpec = ToolSpec {
    name: "research_articles",
    title: "Articles about a person",
    summary: "Finds pages about a person at a company: each was read, and names both, near each other or one in its title",
    group: "knowledge",
    paths: &["/v1/tools/research/articles", "/v1/tools/lookup/person-articles"],
    price: Price::Fixed(Usdc::from_micro(50_000)),
    deadline: Duration::from_secs(60),
    retention: RETENTION,
    needs: |_, _| pages::SEARCHED_WITH.to_vec(),
    input: &[
        Field::required("name", Kind::Text { min: 1, max: 500, format: Some(&SAYS) }, "The person's name"),
        Field::required("company", Kind::Text { min: 1, max: 500, format: Some(&SAYS) }, "The company's name"),
        Field::optional(
            "sort",
            Kind::Choice(&["recent", "popular"]),
            "recent: newest first, pages without a date last. popular (default): as the search ranks them",
        ),
        Field::optional("limit", Kind::Integer { min: 1, max: 20 }, "Most articles; default 10"),
    ],
    example: || json!({"name": "Ada Stone", "company": "Brightkiln", "sort": "recent", "limit": 5}),
    output: || {
        subject::schema(json!({"type": "array", "items": {
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "url": {"type": "string", "format": "uri"},
                "source": or_null("string", "The site it is on"),
                "published_date": or_null("string", "As the page says"),
                "snippet": {"type": "string", "description": "A sentence with the person's name, word for word"},
            },
            "required": ["title", "url", "source", "published_date", "snippet"],
        }}))
    },
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run: |toolbox, task| Box::pin(articles(toolbox, task)) };

async fn articles(toolbox: Arc<Toolbox>, task: Task) -> Result<Output, ToolError> {
    let end = subject::end_of(&toolbox, &task);
    let (name, company) = (task.text("name"), task.text("company"));
    let limit = task.number("limit").and_then(|limit| usize::try_from(limit).ok()).unwrap_or(10);
    task.reporter.say(5, "searching");
    let query: String = format!("\"{name}\" \"{company}\"").chars().take(500).collect();
    // Twice as many as wanted, because some will not be about the person.
    let mut found = gather::search(&toolbox, &[query], (2 * limit).min(20), end).await?;
    let source = found.source("research");
    found.hits.truncate(2 * limit);
    let wanted = found.hits.len();
    let reading = gather::read(&toolbox, found.hits, 6, end, |done, all| {
        task.reporter.say(20 + u8::try_from(70 * done / all.max(1)).unwrap_or(70), format!("{done} of {all} pages"));
    })
    .await;
    if wanted > 0 && reading.pages.is_empty() {
        subject::none_read(&toolbox, &task, wanted).await?;
    }
    let mut articles: Vec<Value> = Vec::new();
    for (hit, page) in reading.pages {
        let title = if page.metadata.title.is_empty() { hit.title } else { page.metadata.title };
        let text = text::read(&page.markdown, &title);
        if !is_about(&title, &text.plain, name, company) {
            continue;
        }
        // Prefer text with both names, then sentences over captions, then the earlier one.
        let named = text.sentences.iter().filter(|sentence| says(&sentence.text, name)).enumerate();
        let sentence = named
            .max_by_key(|(at, sentence)| (says(&sentence.text, company), sentence.states, std::cmp::Reverse(*at)))
            .map(|(_, sentence)| sentence);
        let snippet = sentence.map_or(title.as_str(), |sentence| sentence.text.as_str());
        let host = url::Url::parse(&page.url).ok().and_then(|url| url.host_str().map(str::to_owned));
        articles.push(json!({
            "title": short(&title, 300),
            "url": page.url,
            "source": page.metadata.site_name.or(hit.site).map(|site| short(&site, 200)).or(host),
            "published_date": page.metadata.published_at.or(hit.published_at).map(|date| short(&date, 64)),
            "snippet": short(snippet, 600),
        }));
    }
    if task.text("sort") == "recent" {
        // Dates are strings that begin with the year; articles without one come last. Ties keep the order of the search.
        articles.sort_by_key(|article| std::cmp::Reverse(article["published_date"].as_str().map(str::to_owned)));
    }
    articles.truncate(limit);
    Ok(Output::new(subject::answer(&toolbox, &task, Value::Array(articles)), source))
}

/// Whether a page is about the person at the company: its title has one name and its text the other, or its text has both
/// near each other. So a long list of people does not count as a page about one of them.
fn is_about(title: &str, text: &str, name: &str, company: &str) -> bool {
    let all = format!("{title}\n{text}");
    let is_titled = says(title, name) || says(title, company);
    let both = says(&all, name) && says(&all, company);
    both && (is_titled || are_near(text, name, company))
}

/// Whether two names are near each other in a text.
fn are_near(text: &str, one: &str, other: &str) -> bool {
    let text = words(text, usize::MAX);
    let places = |name: &str| -> Vec<usize> {
        let name = words(name, 50);
        let windows = text.windows(name.len().max(1)).enumerate();
        windows.filter(|(_, window)| !name.is_empty() && *window == name).map(|(at, _)| at).collect()
    };
    let others = places(other);
    places(one).into_iter().any(|at| {
        let next = others.partition_point(|other| *other < at);
        let near = |index: usize| others.get(index).is_some_and(|other| other.abs_diff(at) <= NEAR_WORDS);
        near(next) || next > 0 && near(next - 1)
    })
}

/// Whether a text contains the words of a name in sequence, whatever their case and accents.
fn says(text: &str, name: &str) -> bool {
    let (text, name) = (words(text, usize::MAX), words(name, 50));
    !name.is_empty() && text.windows(name.len()).any(|window| window == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_whole_words_in_any_spelling() {
        assert!(says("It was ANNÉ  Stone-Miller, who left.", "Anne Stone Miller"));
        assert!(!says("Annex Stone. Anne left Stone.", "Anne Stone") && !says("Anne", "") && !says("", "Anne"));
    }

    #[test]
    fn names_far_apart_do_not_make_an_article() {
        let far = format!("Ada Stone opened a show. {} Brightkiln makes stoves.", "Nothing else happened. ".repeat(40));
        for (title, text, about) in [
            ("News", "Ada Stone, who leads Brightkiln, spoke.", true),
            ("News", far.as_str(), false),
            ("Brightkiln in the news", far.as_str(), true),
            ("Ada Stone", "She is a sculptor.", false),
        ] {
            assert_eq!(is_about(title, text, "Ada Stone", "Brightkiln"), about, "{title}");
        }
    }
}
