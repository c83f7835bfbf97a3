//! Measures extractive research: questions about the test sites, searched in our own index and read by our own reader.

use std::time::{Duration, Instant};

use platform::net::Page as Fetched;
use url::Url;
use web::read::{ReadOptions, read_page};
use web::research::{Page, choose, claims, plan, text};

/// Pages read and statements made per question, as in deep research.
const PAGES: usize = 8;
const CLAIMS: usize = 5;

/// The results for all questions.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub claims: usize,
    /// Claims whose quotation is on the page as its site sent it.
    pub holding: usize,
    pub answerable: usize,
    /// Questions whose answering sentence is in the report.
    pub answered: usize,
    /// Questions whose first claim has the answer.
    pub first: usize,
    pub unanswerable: usize,
    /// Questions that are listed as not found.
    pub not_found: usize,
    pub time: Duration,
    /// Errors, for printing.
    pub misses: Vec<String>,
}

/// Researches every question. `search` returns addresses of pages, best first.
pub fn measure(asked: &[sites::Question], search: impl Fn(&str) -> Vec<String>) -> Findings {
    let mut all = Findings::default();
    for asked in asked {
        let questions = plan::plan(&asked.text, 6);
        let mut pages: Vec<Page> = Vec::new();
        for url in questions.iter().flat_map(|question| search(&question.query).into_iter().take(PAGES)) {
            if pages.iter().all(|page| page.url != url) {
                pages.extend(read(&url));
            }
        }
        let begun = Instant::now();
        let findings = choose::extract(&questions, &pages, CLAIMS);
        all.time += begun.elapsed();
        for claim in &findings.claims {
            let page = &pages[claim.page];
            all.claims += 1;
            if stands(&claim.quote, page) {
                all.holding += 1;
            } else {
                all.misses.push(format!("not in {}: {}", page.url, claim.quote));
            }
        }
        let says = |sentence: &str| findings.claims.iter().any(|claim| claim.quote.contains(sentence));
        if asked.unanswerable {
            all.unanswerable += 1;
            if findings.unanswered(questions.len()).is_empty() {
                all.misses.push(format!(
                    "told to {}: {:?}",
                    asked.text,
                    findings.claims.first().map(|claim| &claim.quote)
                ));
            } else {
                all.not_found += 1;
            }
        } else {
            all.answerable += 1;
            if asked.answers.iter().any(|(_, sentence)| says(sentence)) {
                all.answered += 1;
                let first = &findings.claims[0].quote;
                all.first += usize::from(asked.answers.iter().any(|(_, sentence)| first.contains(sentence)));
            } else {
                let quotes: Vec<&String> = findings.claims.iter().map(|claim| &claim.quote).take(2).collect();
                all.misses.push(format!("missed: {} {quotes:?}", asked.text));
            }
        }
    }
    all
}

fn read(url: &str) -> Option<Page> {
    let site = sites::page(url)?;
    let fetched = Fetched {
        final_url: Url::parse(url).ok()?,
        status: 200,
        content_type: Some(site.content_type.clone()),
        robots: None,
        cache_control: None,
        body: site.body.clone(),
        truncated: false,
        redirects: 0,
    };
    let read = read_page(&fetched, &ReadOptions::default()).ok()?;
    let (title, published_at) = (read.metadata.title, read.metadata.published_at);
    Some(Page { url: url.to_owned(), text: text::read(&read.markdown, &title), title, published_at })
}

/// Whether the site sent this quotation: in the page's known text, or else in its body without tags. The cells of a
/// table row are searched one by one.
fn stands(quote: &str, page: &Page) -> bool {
    let Some(site) = sites::page(&page.url) else { return false };
    let known = claims::even(&site.truth.main_text.join("\n"));
    let bare = claims::even(&bare(&site.text()));
    let is_there = |part: &str| known.contains(part) || bare.contains(part);
    let whole = claims::even(quote);
    is_there(&whole) || whole.split(" | ").all(is_there)
}

/// HTML or XML without tags and with its entities decoded.
fn bare(markup: &str) -> String {
    let mut bare = String::with_capacity(markup.len());
    let mut in_tag = false;
    for letter in markup.chars() {
        match letter {
            '<' => in_tag = true,
            '>' if in_tag => in_tag = false,
            _ if in_tag => {}
            _ => bare.push(letter),
        }
    }
    let names = [("&nbsp;", " "), ("&quot;", "\""), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")];
    names.iter().fold(bare, |bare, (name, letter)| bare.replace(name, letter))
}
