//! The ranking of our own index, compared with plain BM25: the judged queries over the test sites.

use crate::ranking::{Plain, Quality, Sites, judge};
use crate::{Error, Extent};

pub fn measure(extent: Extent) -> Result<(), Error> {
    let sites = Sites::read();
    let plain = Plain::of(&sites);
    let mut queries = sites::queries();
    queries.truncate(extent.pick(usize::MAX, 2));
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
    Ok(())
}
