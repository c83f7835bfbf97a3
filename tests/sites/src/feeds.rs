//! Feeds and site maps of the sites with dated pages.

use serde_json::json;

use crate::write::escape;
use crate::{PageKind, SitePage, Truth};

pub fn pages(pages: &[SitePage]) -> Vec<SitePage> {
    let mut hosts: Vec<&str> = pages.iter().map(|page| page.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let mut made = Vec::new();
    for host in hosts {
        let own: Vec<&SitePage> =
            pages.iter().filter(|page| page.host == host && !page.path.contains("/private/")).collect();
        made.push(page(host, "/sitemap.xml", "application/xml", PageKind::Sitemap, sitemap(&own), &[]));
        let dated: Vec<&SitePage> =
            own.iter().copied().filter(|page| page.truth.published.is_some()).take(20).collect();
        if dated.is_empty() {
            continue;
        }
        made.push(page(
            host,
            "/feed.xml",
            "application/rss+xml; charset=utf-8",
            PageKind::Feed,
            rss(host, &dated),
            &dated,
        ));
        if made.len() % 2 == 0 {
            made.push(page(host, "/atom.xml", "application/atom+xml", PageKind::Feed, atom(host, &dated), &dated));
        } else {
            made.push(page(
                host,
                "/feed.json",
                "application/feed+json",
                PageKind::Feed,
                json_feed(host, &dated),
                &dated,
            ));
        }
    }
    made
}

fn page(host: &str, path: &str, content_type: &str, kind: PageKind, body: String, items: &[&SitePage]) -> SitePage {
    SitePage {
        host: host.to_owned(),
        path: path.to_owned(),
        content_type: content_type.to_owned(),
        body: body.into_bytes(),
        headers: Vec::new(),
        kind,
        topic: None,
        truth: Truth {
            title: if kind == PageKind::Feed { format!("News of {host}") } else { String::new() },
            main_text: items.iter().map(|item| item.truth.title.clone()).collect(),
            ..Truth::default()
        },
    }
}

fn day(page: &SitePage) -> &str {
    page.truth.published.as_deref().unwrap_or("2026-01-01")
}

fn first(page: &SitePage) -> &str {
    page.truth.main_text.first().map_or("", String::as_str)
}

fn sitemap(pages: &[&SitePage]) -> String {
    let urls: String = pages
        .iter()
        .map(|page| {
            let date = page.truth.published.as_ref().map(|day| format!("<lastmod>{day}</lastmod>")).unwrap_or_default();
            format!("<url><loc>{}</loc>{date}</url>\n", escape(&page.url()))
        })
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n{urls}</urlset>\n"
    )
}

fn rss(host: &str, items: &[&SitePage]) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let items: String = items.iter().map(|item| {
        let (year, month, date) = (&day(item)[..4], day(item)[5..7].parse::<usize>().unwrap_or(1), &day(item)[8..]);
        format!(
            "<item><title>{}</title><link>{}</link><guid isPermaLink=\"true\">{1}</guid><pubDate>{date} {} {year} 07:30:00 +0000</pubDate><description><![CDATA[<p>{}</p>]]></description></item>\n",
            escape(&item.truth.title), item.url(), MONTHS[(month - 1) % 12], first(item)
        )
    }).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<rss version=\"2.0\" xmlns:atom=\"http://www.w3.org/2005/Atom\"><channel><title>News of {host}</title><link>https://{host}/</link><description>What is new on {host}</description>\n{items}</channel></rss>\n"
    )
}

fn atom(host: &str, items: &[&SitePage]) -> String {
    let entries: String = items.iter().map(|item| format!(
        "<entry><title type=\"html\">{}</title><link rel=\"alternate\" href=\"{}\"/><id>{1}</id><published>{2}T07:30:00Z</published><updated>{2}T08:00:00Z</updated><summary>{3}</summary></entry>\n",
        escape(&item.truth.title), item.url(), day(item), escape(first(item))
    )).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>News of {host}</title><link href=\"https://{host}/\"/><id>https://{host}/</id><updated>2026-01-01T00:00:00Z</updated>\n{entries}</feed>\n"
    )
}

fn json_feed(host: &str, items: &[&SitePage]) -> String {
    let items: Vec<_> = items.iter().map(|item| json!({
        "id": item.url(), "url": item.url(), "title": item.truth.title, "date_published": format!("{}T07:30:00Z", day(item)), "content_text": first(item),
    })).collect();
    json!({"version": "https://jsonfeed.org/version/1.1", "title": format!("News of {host}"), "home_page_url": format!("https://{host}/"), "items": items}).to_string()
}
