//! Research on the invented test sites, without a network: pages pass through the real reader, and a word count replaces
//! the search.

use std::sync::LazyLock;

use url::Url;

use super::{Findings, Page, Question, choose, claims, plan, text, words};
use crate::read::{ReadOptions, read_page};

/// Every readable page.
static PAGES: LazyLock<Vec<Page>> = LazyLock::new(|| {
    let read = |site: &sites::SitePage| {
        let page = platform::net::Page {
            final_url: Url::parse(&site.url()).unwrap(),
            status: 200,
            content_type: Some(site.content_type.clone()),
            body: site.body.clone(),
            truncated: false,
            redirects: 0,
            robots: None,
            cache_control: None,
        };
        let read = read_page(&page, &ReadOptions::default()).ok()?;
        let (title, published_at) = (read.metadata.title, read.metadata.published_at);
        Some(Page { url: site.url(), text: text::read(&read.markdown, &title), title, published_at })
    };
    sites::pages().iter().filter_map(read).collect()
});

/// The words of each page.
static WORDS: LazyLock<Vec<std::collections::HashSet<String>>> = LazyLock::new(|| {
    let own = |page: &Page| words::terms(&format!("{} {}", page.title, page.text.plain)).into_iter().collect();
    PAGES.iter().map(own).collect()
});

/// The pages with most of the question's words.
fn searched(question: &Question, most: usize) -> Vec<Page> {
    let mut ranked: Vec<(usize, &Page)> = PAGES
        .iter()
        .zip(WORDS.iter())
        .map(|(page, own)| (question.terms.iter().filter(|term| own.contains(*term)).count(), page))
        .collect();
    ranked.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    ranked.into_iter().take(most).filter(|(count, _)| *count > 0).map(|(_, page)| page.clone()).collect()
}

fn researched(topic: &str) -> (Vec<Question>, Vec<Page>, Findings) {
    let questions = plan::plan(topic, 3);
    let mut pages: Vec<Page> = Vec::new();
    for question in &questions {
        for page in searched(question, 8) {
            if pages.iter().all(|known| known.url != page.url) {
                pages.push(page);
            }
        }
    }
    let findings = choose::extract(&questions, &pages, 5);
    (questions, pages, findings)
}

#[test]
fn site_questions_are_answered_with_quotations_of_their_pages() {
    let (mut asked, mut answered, mut unasked, mut told) = (0, 0, 0, 0);
    let mut told_all = String::new();
    for question in sites::questions() {
        let (questions, pages, findings) = researched(&question.text);
        for claim in &findings.claims {
            let page = &pages[claim.page];
            assert!(claims::found(&claim.quote, &page.text.plain).is_some(), "{} {}", page.url, claim.quote);
            let site = sites::page(&page.url).unwrap();
            for told in claim.context.iter().chain([&claim.quote]) {
                assert!(page.text.plain.contains(told.as_str()), "{}: {told}", page.url);
                assert!(site.truth.traps.iter().all(|trap| !told.contains(trap.as_str())), "{told}");
            }
        }
        let quotes: Vec<&str> = findings.claims.iter().map(|claim| claim.quote.as_str()).collect();
        if question.unanswerable {
            unasked += 1;
            told += usize::from(findings.unanswered(questions.len()).is_empty());
            if !quotes.is_empty() {
                told_all.push_str(&format!("told though unanswerable: {}\n  {quotes:?}\n", question.text));
            }
        } else {
            asked += 1;
            let found =
                question.answers.iter().any(|(_, sentence)| quotes.iter().any(|quote| quote.contains(sentence)));
            answered += usize::from(found);
            if !found {
                let sentence = &question.answers[0].1;
                let read = pages.iter().any(|page| page.text.plain.contains(sentence.as_str()));
                told_all.push_str(&format!("missed: {}\n  {sentence} (read: {read})\n  {quotes:?}\n", question.text));
            }
        }
    }
    println!("{told_all}{answered} of {asked} answered, {told} of {unasked} unanswerable told");
    assert!(answered * 5 >= asked * 4, "{answered} of {asked} answered\n{told_all}");
    assert!(told * 10 <= unasked, "{told} of {unasked} unanswerable questions were answered\n{told_all}");
}

/// A sentence that answers two questions is listed once, and both questions count as answered.
#[test]
fn a_sentence_is_listed_once() {
    let page = |markdown: &str| Page {
        url: "http://a.example/".to_owned(),
        title: "Skerry lighthouse".to_owned(),
        published_at: None,
        text: text::read(markdown, "Skerry lighthouse"),
    };
    let pages = [page("The Skerry lighthouse was built in 1862 by Ada Stone. It has a red lamp.")];
    let questions = plan::plan("When was the Skerry lighthouse built? Who built the Skerry lighthouse?", 3);
    let findings = choose::extract(&questions, &pages, 5);
    assert_eq!((findings.claims.len(), findings.unanswered(2).len()), (1, 0), "{findings:?}");
    assert_eq!(findings.claims[0].also.len(), 1);
    // Each side of a subject gets its own sentences, and a side that the page does not cover is not found.
    let pages = [page(
        "The Skerry lighthouse stands on a rock in the bay. The Skerry lighthouse guides ships home to Norwick. It was founded \
         by fishermen long before the harbour. It is 31 metres high and weighs 900 tonnes.",
    )];
    let questions = plan::plan("Skerry lighthouse", 5);
    let findings = choose::extract(&questions, &pages, 5);
    let missing: Vec<&str> =
        findings.unanswered(questions.len()).into_iter().map(|number| questions[number].text.as_str()).collect();
    assert_eq!(missing, ["Skerry lighthouse: how it works", "Skerry lighthouse: criticism and risks"], "{findings:?}");
}
