//! Reads the pages of the invented test sites: what must be found in them, and what must not.

use std::collections::BTreeMap;

use sites::score::score;
use sites::{PageKind, SitePage};

use super::*;

fn read(page: &SitePage) -> ReadResult {
    let headers = page.headers.iter().find(|(name, _)| *name == "x-robots-tag").map(|(_, value)| value.clone());
    let page = Page {
        final_url: Url::parse(&page.url()).unwrap(),
        status: 200,
        content_type: Some(page.content_type.clone()),
        robots: headers,
        cache_control: None,
        body: page.body.clone(),
        truncated: false,
        redirects: 0,
    };
    read_page(&page, &ReadOptions::default()).unwrap()
}

#[test]
fn main_text_is_kept_and_boilerplate_dropped() {
    // By kind: the sum of F1, the sum of boilerplate kept, and the number of pages.
    let mut kinds: BTreeMap<PageKind, (f64, f64, usize)> = BTreeMap::new();
    let mut poor = Vec::new();
    let readable = sites::pages().iter().filter(|page| !page.truth.main_text.is_empty() && page.kind != PageKind::Feed);
    for page in readable.filter(|page| page.kind != PageKind::Sitemap) {
        let result = read(page);
        let score = score(&result.markdown, &page.truth);
        let sums = kinds.entry(page.kind).or_default();
        *sums = (sums.0 + score.f1, sums.1 + score.boilerplate.unwrap_or(0.0), sums.2 + 1);
        if score.f1 < 0.9 || score.boilerplate.is_some_and(|kept| kept > 0.0) {
            poor.push(format!(
                "{:.2} {:.2} {:.2} {:?} {}",
                score.f1,
                score.precision,
                score.recall,
                score.boilerplate,
                page.url()
            ));
        }
    }
    let report: String = kinds
        .iter()
        .map(|(kind, (f1, kept, pages))| {
            let pages = *pages as f64;
            format!("{kind:?}: F1 {:.3}, boilerplate {:.3}, {pages} pages\n", f1 / pages, kept / pages)
        })
        .collect();
    if std::env::var_os("PRINT_READING").is_some() {
        println!("{report}\n{}", poor.join("\n"));
    }
    if let Ok(urls) = std::env::var("PRINT_PAGES") {
        for url in urls.split(',') {
            println!(
                "==== {url}\n{}\n---- {:?}",
                read(sites::page(url).unwrap()).markdown,
                sites::page(url).unwrap().truth
            );
        }
    }
    for (kind, (f1, kept, pages)) in &kinds {
        let pages = *pages as f64;
        assert!(f1 / pages > 0.9, "{kind:?}\n{report}{}", poor.join("\n"));
        assert!(kept / pages < 0.3, "{kind:?}\n{report}{}", poor.join("\n"));
    }
}

#[test]
fn hidden_text_is_removed_and_visible_text_kept() {
    for page in sites::pages().iter().filter(|page| page.kind == PageKind::Hostile) {
        let result = read(page);
        for text in &page.truth.main_text {
            assert!(result.markdown.contains(text), "{}: {}", page.url(), result.markdown);
        }
        for hidden in &page.truth.boilerplate {
            assert!(!result.markdown.contains(hidden), "{}: {}", page.url(), result.markdown);
        }
        assert!(!base::untrusted_text::hides_something(&result.markdown, true), "{}", page.url());
    }
}

#[test]
fn metadata_matches_the_truth_of_the_sites() {
    for page in sites::pages() {
        let result = read(page);
        assert_eq!(result.indexable, !page.truth.noindex, "{}", page.url());
        assert_eq!(result.needs_browser, page.truth.needs_browser, "{}: {}", page.url(), result.markdown);
        let dated = matches!(page.kind, PageKind::News | PageKind::Recipe);
        if let (true, Some(day)) = (dated, &page.truth.published) {
            let said = result.metadata.published_at.unwrap_or_default();
            assert!(said.starts_with(day.as_str()), "{}: {said:?}", page.url());
        }
        if page.kind == PageKind::Feed {
            for title in &page.truth.main_text {
                assert!(result.markdown.contains(&format!("- [{title}](http")), "{}: {title}", page.url());
            }
            assert_eq!(result.metadata.title, page.truth.title);
        }
    }
}
