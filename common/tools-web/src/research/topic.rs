//! Research: a topic, as a report of what the open web says to it, every statement with its quotation.
//!
//! Planned, searched for, read, chosen from, written, checked ([`web::research`]). With a model, it plans and writes; a
//! model that is not there, does not answer, or answers in another form than it was asked for costs the writing and not the
//! research: the report is then put together from quotations, and says so.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use base::input::{Field, Kind};
use base::money::Usdc;
use base::untrusted_text::visible;
use platform::config::Tokens;
use platform::http::log;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Source, Task, ToolError, Toolbox, pages};
use web::research::report::{self, About, Author};
use web::research::{Page, text};
use web::search::Hit;

use super::gather::{self, Hits, Reading};
use super::subject;
use super::written::Written;

pub static SPEC: ToolSpec = ToolSpec {
    name: "research",
    title: "Research",
    summary: "Researches a topic on the open web: searches, reads, and reports what the pages say, every statement with its \
              quotation and source, and what was not found",
    group: "knowledge",
    paths: &["/v1/tools/research"],
    price: Price::Fixed(Usdc::from_micro(10_000)),
    expensive: true,
    deadline: Duration::from_secs(110),
    input: &[
        Field::required("topic", Kind::Text { min: 1, max: 500, format: None }, "A question, several, or a subject"),
        Field::optional("depth", Kind::Choice(&["deep", "quick"]), "How far to go: deep (default) or quick"),
    ],
    example: || json!({"topic": "When was the first lighthouse with electric light built, and where?", "depth": "quick"}),
    needs: |_, _| pages::SEARCHED_WITH.to_vec(),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run: |toolbox, task| Box::pin(research(toolbox, task)) };

/// What one piece of research may take.
pub struct Depth {
    name: &'static str,
    /// Questions that a topic is taken apart into; each is a search, which costs whoever runs this a fee.
    pub questions: usize,
    /// Results of each search that are looked at.
    hits: usize,
    /// Pages that are read, and how many at a time: what is best is among the first.
    pages: usize,
    at_once: usize,
    /// Statements to each question.
    pub claims: usize,
    /// Of the pages' sentences those nearest to the questions are shown to a model, up to so many characters, and no more
    /// than the tool's price pays for: at four characters a token, with the frame and an answer of 4,096, deep research
    /// takes about 16,000 tokens, and quick 9,000.
    pub model_chars: usize,
    /// From the beginning to the end. The tool's deadline is longer, so that what there is by then is still told.
    time: Duration,
}

const QUICK: Depth = Depth {
    name: "quick",
    questions: 3,
    hits: 5,
    pages: 6,
    at_once: 4,
    claims: 3,
    model_chars: 16_000,
    time: Duration::from_secs(40),
};
const DEEP: Depth = Depth {
    name: "deep",
    questions: 6,
    hits: 8,
    pages: 20,
    at_once: 6,
    claims: 5,
    model_chars: 40_000,
    time: Duration::from_secs(104),
};

/// What a search of our own index calls itself.
const OWN_INDEX: &str = "index";
/// What is left to the end of the deadline for putting the report away.
const MARGIN: Duration = Duration::from_secs(4);

/// Until when each part of the work may go on.
struct Times {
    search: Instant,
    read: Instant,
    end: Instant,
}

impl Times {
    fn of(toolbox: &Toolbox, task: &Task, depth: &Depth) -> Times {
        let left = task.deadline.millis() - toolbox.clock.now().millis();
        let left = Duration::from_millis(u64::try_from(left).unwrap_or(0)).saturating_sub(MARGIN);
        let (now, whole) = (Instant::now(), depth.time.min(left));
        // A model writes for as long as the pages take; without one there is nothing to wait for.
        let reading = if toolbox.model.is_some() { whole * 11 / 20 } else { whole * 9 / 10 };
        Times { search: now + whole / 4, read: now + reading, end: now + whole }
    }
}

async fn research(toolbox: Arc<Toolbox>, task: Task) -> Result<Output, ToolError> {
    let depth = if task.text("depth") == "quick" { &QUICK } else { &DEEP };
    let topic = task.text("topic").to_owned();
    let times = Times::of(&toolbox, &task, depth);
    let mut written = Written::within(task.tool.price.of(&task.input));

    task.reporter.say(2, "planning");
    let questions = written.plan(&toolbox, &topic, depth, times.search).await;
    task.reporter.say(10, format!("searching for {} questions", questions.len()));
    let queries: Vec<String> = questions.iter().map(|question| question.query.clone()).collect();
    let found = gather::search(&toolbox, &queries, depth.hits, times.search).await?;
    let hits: Vec<Hit> = found.hits.iter().take(depth.pages).cloned().collect();
    let wanted = hits.len();
    let reading = gather::read(&toolbox, hits, depth.at_once, times.read, |done, all| {
        let percent = 20 + u8::try_from(50 * done / all.max(1)).unwrap_or(50);
        task.reporter.say(percent, format!("{done} of {all} pages"));
    })
    .await;
    if wanted > 0 && reading.pages.is_empty() {
        return Err(subject::none_read(wanted));
    }
    let failed = reading.failed;
    let pages = parsed(reading).await?;

    task.reporter.say(75, "writing");
    let findings = written.conclude(&toolbox, &topic, &questions, &pages, depth, times.end).await;
    task.reporter.say(95, "putting the report away");
    let searched = searched(&found, pages.len(), failed, toolbox.clock.now());
    let about = About {
        author: written.model.as_deref().map_or(Author::Nobody, Author::Model),
        searched: &searched,
        note: written.note.as_deref(),
    };
    let content = report::markdown(&visible(&topic), &questions, &findings, &pages, &about);
    let path = put_away(&toolbox, &task, &content).await;

    let cited = report::sources(&findings);
    let sources: Vec<Value> = cited.iter().map(|page| source(&pages[*page])).collect();
    let claims = findings.claims.iter().map(|claim| {
        let number = cited.iter().position(|page| *page == claim.page).map_or(0, |at| at + 1);
        let also: Vec<&str> = claim.also.iter().map(|number| questions[*number].text.as_str()).collect();
        json!({
            "question": questions[claim.question].text,
            "also_answers": also,
            "text": claim.text,
            "quote": claim.quote,
            "context": claim.context,
            "source": number,
        })
    });
    let mut not_found: Vec<&str> =
        findings.unanswered(questions.len()).into_iter().map(|number| questions[number].text.as_str()).collect();
    if questions.is_empty() {
        not_found.push(&topic);
    }
    let result = json!({
        "report_content": content,
        "sources": sources,
        "sources_count": cited.len(),
        "topic": topic,
        "depth": depth.name,
        "workspace": task.request_id,
        "report_path": path,
        "report_gcs_uri": null,
        "completed_at": toolbox.clock.now().to_string(),
        "mode": if written.model.is_some() { "model" } else { "extractive" },
        "claims": claims.collect::<Vec<_>>(),
        "not_found": not_found,
        "dropped_claims": findings.dropped,
        "pages_read": pages.len(),
        "pages_failed": failed,
        "searched_with": found.names(),
        "index": found.index.map(|index| json!({"pages": index.pages, "updated_at": index.updated_at.to_string()})),
        "model": written.model,
        "tokens_used": written.tokens.map(Tokens::total),
        "note": written.note,
    });
    let source = match (&toolbox.model, &written.model) {
        (Some(model), Some(_)) => Source::upstream(model.provider(), written.id),
        _ => found.source("research"),
    };
    Ok(Output::new(result, source))
}

/// The pages as text. Taking them apart is work, and is kept off the thread that answers.
async fn parsed(reading: Reading) -> Result<Vec<Page>, ToolError> {
    let parse = move || {
        let page = |(hit, read): (Hit, web::read::ReadResult)| {
            let title = if read.metadata.title.is_empty() { hit.title } else { read.metadata.title };
            let title: String = visible(&title).chars().take(300).collect();
            let published_at = read.metadata.published_at.or(hit.published_at);
            let published_at = published_at.map(|date| visible(&date).chars().take(64).collect());
            Page { url: read.url, text: text::read(&visible(&read.markdown), &title), title, published_at }
        };
        reading.pages.into_iter().map(page).collect()
    };
    tokio::task::spawn_blocking(parse).await.map_err(|_| ToolError::internal("the pages could not be taken apart"))
}

/// The report beside the results of jobs, which are deleted together with them. It is in the result as well, so where it
/// cannot be put away there is only no path.
async fn put_away(toolbox: &Toolbox, task: &Task, content: &str) -> Option<String> {
    let path = format!("results/{}.md", task.request_id);
    let put = toolbox.blobs.put(&path, "text/markdown; charset=utf-8", content.as_bytes().to_vec());
    match tokio::time::timeout(MARGIN / 2, put).await {
        Ok(Ok(())) => Some(path),
        Ok(Err(error)) => {
            log::failure("a report could not be put away", &error);
            None
        }
        Err(_) => {
            log::failure("a report could not be put away", &"no answer in time");
            None
        }
    }
}

/// Where was looked, in words: the report's first lines. What a small index does not have was not looked for elsewhere.
fn searched(found: &Hits, read: usize, failed: usize, now: Timestamp) -> String {
    let count = |count: usize, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
    let vendors: Vec<&str> = found.names().into_iter().filter(|name| *name != OWN_INDEX).collect();
    let mut said = match (vendors.is_empty(), &found.index) {
        (true, None) => "Nothing was searched: there is no word in the topic to look for.".to_owned(),
        (true, Some(_)) => "Searched: nothing but this service's own index".to_owned(),
        (false, _) => format!("Searched with {}", vendors.join(", ")),
    };
    if let Some(index) = &found.index {
        let days = (now.millis() - index.updated_at.millis()) / 86_400_000;
        let age = match days {
            ..=0 => "today".to_owned(),
            1 => "a day ago".to_owned(),
            days => format!("{days} days ago"),
        };
        let pages = count(usize::try_from(index.pages).unwrap_or(usize::MAX), "page", "pages");
        let before =
            if vendors.is_empty() { " of " } else { ", and where that failed in this service's own index of " };
        let _ = write!(said, "{before}{pages}, which last changed {age}");
        said.push_str(". What is not found here may well be told on pages that it does not have.");
    } else if !vendors.is_empty() {
        said.push('.');
    }
    let _ = write!(said, " {} read", count(read, "page was", "pages were"));
    if failed > 0 {
        let _ = write!(said, ", {failed} could not be read");
    }
    said + "."
}

fn source(page: &Page) -> Value {
    let mut source = json!({"url": page.url});
    if !page.title.is_empty() {
        source["title"] = json!(page.title);
    }
    if let Some(date) = &page.published_at {
        source["published_at"] = json!(date);
    }
    source
}

fn output() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let or_null = |about: &str| json!({"type": ["string", "null"], "description": about});
    json!({
        "type": "object",
        "properties": {
            "report_content": text("The report, as Markdown"),
            "sources": {
                "type": "array",
                "description": "The pages that are quoted, as the report counts them from 1",
                "items": {
                    "type": "object",
                    "properties": {
                        "url": {"type": "string", "format": "uri"},
                        "title": {"type": "string"},
                        "published_at": text("As the page says"),
                    },
                    "required": ["url"],
                },
            },
            "sources_count": {"type": "integer"},
            "topic": {"type": "string"},
            "depth": {"type": "string", "enum": ["deep", "quick"]},
            "workspace": text("The request's id"),
            "report_path": or_null("The report's key in this deployment's storage, for as long as the result is kept"),
            "report_gcs_uri": {"type": "null", "description": "Always null: reports lie in this deployment's own storage"},
            "completed_at": {"type": "string", "format": "date-time"},
            "mode": {
                "type": "string",
                "enum": ["extractive", "model"],
                "description": "extractive: quotations, put together by this service. model: statements written by a \
                                language model, each checked against its quotation, and quotations to the questions that \
                                it stated nothing to",
            },
            "claims": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "question": text("What it answers"),
                        "also_answers": {"type": "array", "items": text("Another question that it answers; it is told once")},
                        "text": text("The statement; in extractive mode the quotation itself"),
                        "quote": text("The words of the source, as they stand there but for white space"),
                        "context": {
                            "type": "array",
                            "items": text("What stands around the quotation and belongs to it: the heading, the head of its \
                                           table, what leads to its list, the sentence before one that says \"it\""),
                        },
                        "source": {"type": "integer", "minimum": 1, "description": "Which of sources, counted from 1"},
                    },
                    "required": ["question", "also_answers", "text", "quote", "context", "source"],
                },
            },
            "not_found": {"type": "array", "items": text("A question to which nothing was found")},
            "dropped_claims": {"type": "integer", "description": "Statements of a model left out because their source does not support them"},
            "pages_read": {"type": "integer"},
            "pages_failed": {"type": "integer", "description": "Pages that were found and could not be read in time"},
            "searched_with": {"type": "array", "items": {"type": "string"}, "description": "Who searched: providers, or index"},
            "index": {
                "type": ["object", "null"],
                "description": "This service's own index, where that was searched: how many pages it holds, and when one last \
                                came in or went. Nothing else was looked through then",
                "properties": {"pages": {"type": "integer"}, "updated_at": {"type": "string", "format": "date-time"}},
                "required": ["pages", "updated_at"],
            },
            "model": or_null("The language model that wrote, if one did"),
            "tokens_used": {"type": ["integer", "null"], "description": "Tokens of the model, as it counts them"},
            "note": or_null("Why a model that was asked wrote nothing, or to which questions it did not"),
        },
        "required": [
            "report_content", "sources", "sources_count", "topic", "depth", "workspace", "report_path", "report_gcs_uri",
            "completed_at", "mode", "claims", "not_found", "dropped_claims", "pages_read", "pages_failed", "searched_with",
            "index", "model", "tokens_used", "note",
        ],
    })
}
