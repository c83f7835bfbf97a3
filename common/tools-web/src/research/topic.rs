//! Research on a topic: a report of what the open web says, each statement with a quotation that supports it.
//!
//! Steps: plan, search, read, choose, write, check ([`web::research`]). A model plans and writes if there is one. If it is
//! missing, does not answer or answers in the wrong form, the report is made of quotations instead, and says so.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use base::input::{A_WORD, Field, Kind};
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
        Field::required(
            "topic",
            Kind::Text { min: 1, max: 500, format: Some(&A_WORD) },
            "A question, several, or a subject",
        ),
        Field::optional("depth", Kind::Choice(&["deep", "quick"]), "How far to go: deep (default) or quick"),
    ],
    example: || json!({"topic": "When was the first lighthouse with electric light built, and where?", "depth": "quick"}),
    needs: |_, _| pages::SEARCHED_WITH.to_vec(),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run: |toolbox, task| Box::pin(research(toolbox, task)) };

/// Limits of one piece of research.
pub struct Depth {
    name: &'static str,
    /// Maximum number of questions per topic. Each is a search, which the operator may pay for.
    pub questions: usize,
    /// Number of results used from each search.
    hits: usize,
    /// Maximum number of pages read, and how many at a time.
    pages: usize,
    at_once: usize,
    /// Maximum number of statements per question.
    pub claims: usize,
    /// Maximum length of the excerpts sent to a model, in characters; the price may allow less. With four characters per
    /// token, the rest of the prompt and an answer of 4,096 tokens, deep research takes about 16,000 tokens and quick
    /// research 9,000.
    pub model_chars: usize,
    /// Total time. The tool's deadline is longer, so that a partial result can still be reported.
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

/// Name of our own index as a search source.
const OWN_INDEX: &str = "index";
/// Time reserved for storing the report.
const MARGIN: Duration = Duration::from_secs(4);

/// Deadlines of the steps.
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
        // Without a model, its share of the time goes to reading.
        let reading = if toolbox.model.is_some() { whole * 11 / 20 } else { whole * 9 / 10 };
        Times { search: now + whole / 4, read: now + reading, end: now + whole }
    }
}

async fn research(toolbox: Arc<Toolbox>, task: Task) -> Result<Output, ToolError> {
    let depth = if task.text("depth") == "quick" { &QUICK } else { &DEEP };
    let topic = task.text("topic").to_owned();
    let times = Times::of(&toolbox, &task, depth);
    let mut written = Written::within(task.price);

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
        subject::none_read(&toolbox, &task, wanted).await?;
    }
    let failed = reading.failed;
    let pages = parsed(reading).await?;

    task.reporter.say(75, "writing");
    let findings = written.conclude(&toolbox, &topic, &questions, &pages, depth, times.end).await;
    task.reporter.say(95, "storing the report");
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

/// Parses the pages to text, off the async thread because it is CPU-bound.
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
    tokio::task::spawn_blocking(parse).await.map_err(|_| ToolError::internal("the pages could not be parsed"))
}

/// Stores the report beside the results of jobs; both are deleted together. The report is also in the result, so a failure
/// only leaves the path out.
async fn put_away(toolbox: &Toolbox, task: &Task, content: &str) -> Option<String> {
    let path = format!("results/{}.md", task.request_id);
    let put = toolbox.blobs.put(&path, "text/markdown; charset=utf-8", content.as_bytes().to_vec());
    match tokio::time::timeout(MARGIN / 2, put).await {
        Ok(Ok(())) => Some(path),
        Ok(Err(error)) => {
            log::failure("a report could not be stored", &error);
            None
        }
        Err(_) => {
            log::failure("a report could not be stored", &"no answer in time");
            None
        }
    }
}

/// The first lines of the report: what was searched and read, and that our own index is incomplete.
fn searched(found: &Hits, read: usize, failed: usize, now: Timestamp) -> String {
    let count = |count: usize, one: &str, more: &str| format!("{count} {}", if count == 1 { one } else { more });
    let vendors: Vec<&str> = found.names().into_iter().filter(|name| *name != OWN_INDEX).collect();
    let mut said = match (vendors.is_empty(), &found.index) {
        (true, None) => "Nothing was searched: the topic contains no searchable word.".to_owned(),
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
        said.push_str(". Pages outside this index may answer what was not found here.");
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
                "description": "The quoted pages; the report numbers them from 1",
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
            "report_gcs_uri": {"type": "null", "description": "Always null: reports are in this deployment's own storage"},
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
                        "also_answers": {"type": "array", "items": text("Another question that the statement answers")},
                        "text": text("The statement; in extractive mode the quotation itself"),
                        "quote": text("The words of the source, unchanged except for white space"),
                        "context": {
                            "type": "array",
                            "items": text("What is needed to understand the quotation: the heading, the head of its \
                                           table, what leads to its list, the sentence before one that says \"it\""),
                        },
                        "source": {"type": "integer", "minimum": 1, "description": "Index into sources, from 1"},
                    },
                    "required": ["question", "also_answers", "text", "quote", "context", "source"],
                },
            },
            "not_found": {"type": "array", "items": text("A question without an answer")},
            "dropped_claims": {"type": "integer", "description": "Statements of a model left out because their source does not support them"},
            "pages_read": {"type": "integer"},
            "pages_failed": {"type": "integer", "description": "Pages that were found but could not be read in time"},
            "searched_with": {"type": "array", "items": {"type": "string"}, "description": "What was searched: providers, or index"},
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
