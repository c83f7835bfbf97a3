//! How well the own index ranks: the judged queries over the sites for tests, against plain BM25.

use std::sync::Arc;
use std::time::Instant;

use common::search::Query;
use common::search::index::{Opened, Pointer, Segment, StoredPage, Terms, rank};
use futures_util::FutureExt;

use crate::Error;
use crate::ranking::{Plain, Quality, Sites, judge};

pub fn measure() -> Result<(), Error> {
    let sites = Sites::read();
    let plain = Plain::of(&sites);
    let queries = sites::queries();
    println!();
    println!(
        "search: {} judged queries over {} pages; index of {} KB, made in {:.1} ms a page",
        queries.len(),
        sites.count(),
        sites.bytes / 1024,
        sites.indexing.as_secs_f64() * 1e3 / sites.count().max(1) as f64,
    );
    println!("{:24} {:>8} {:>22} {:>12}", "", "nDCG@10", "best page comes first", "a search");
    let show = |name: &str, quality: Quality| {
        let percent = format!("{:.0} %", quality.first * 100.0);
        println!("{name:24} {:>8.3} {percent:>22} {:>9.2} ms", quality.ndcg, quality.time_each.as_secs_f64() * 1e3);
    };
    show("plain BM25", judge(&queries, |query| plain.ranked(query)));
    show("the index", judge(&queries, |query| sites.ours(query)));
    a_full_segment()
}

/// A segment as large as they become, of pages with 600 words each.
fn a_full_segment() -> Result<(), Error> {
    const PAGES: usize = 2_000;
    let mut dice = fastrand::Rng::with_seed(7);
    // Words as they are distributed: the square makes the first of them common.
    let mut text =
        || (0..600).map(|_| format!("w{} ", dice.u32(..20_000) * dice.u32(..20_000) / 20_000)).collect::<String>();
    let page = |number: usize, text: String| {
        let url = format!("https://example.org/{number}");
        let page =
            StoredPage { same: url.clone(), title: format!("Page {number}"), url, text, ..StoredPage::default() };
        (format!("index/pages/2026-11-21/{number:040}"), page)
    };
    let pages: Vec<_> = (0..PAGES).map(|number| page(number, text())).collect();
    let terms = Terms::default();
    let started = Instant::now();
    let bytes = Segment::of(&pages, &terms)?;
    let (made, size) = (started.elapsed(), bytes.len());
    let started = Instant::now();
    let segment = Arc::new(Segment::open(bytes)?);
    let opened = started.elapsed();
    let pointer = Pointer { pages: PAGES as u64, ..Pointer::default() };
    let index = Opened::of(pointer, vec![(String::new(), segment, Vec::new())]);
    let query = Query { text: "w5 w100 w19000".to_owned(), max_results: 10 };
    let started = Instant::now();
    let ranked = rank(&index, &query, &terms, |_| std::future::ready(None));
    let (hits, _) = ranked.now_or_never().ok_or("a search of what is in memory waits for nothing")?;
    println!(
        "a segment of {PAGES} pages of 600 words: {} KB, made in {:.0} ms, opened in {:.1} ms; a search of it without texts \
         {:.2} ms ({} hits)",
        size / 1024,
        made.as_secs_f64() * 1e3,
        opened.as_secs_f64() * 1e3,
        started.elapsed().as_secs_f64() * 1e3,
        hits.len(),
    );
    Ok(())
}
