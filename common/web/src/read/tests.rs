//! Whole pages through [`read_page`]: realistic pages check what is kept, hostile pages check the limits.

use std::time::{Duration, Instant};

use platform::net::{FetchPolicy, Fetcher};

use super::*;

fn page(content_type: &str, body: &[u8]) -> Page {
    Page {
        final_url: Url::parse("https://site.example/dir/page").unwrap(),
        status: 200,
        content_type: Some(content_type.to_owned()),
        robots: None,
        cache_control: None,
        body: body.to_vec(),
        truncated: false,
        redirects: 0,
    }
}

fn read(content_type: &str, body: &[u8]) -> ReadResult {
    read_page(&page(content_type, body), &ReadOptions::default()).unwrap()
}

macro_rules! fixture {
    ($name:literal) => {
        read("text/html", include_bytes!(concat!("fixtures/", $name)))
    };
}

#[track_caller]
fn assert_has(result: &ReadResult, expected: &[&str]) {
    for part in expected {
        assert!(result.markdown.contains(part), "lacks {part:?}:\n{}", result.markdown);
    }
}

#[track_caller]
fn assert_lacks(result: &ReadResult, unwanted: &[&str]) {
    for part in unwanted {
        assert!(!result.markdown.contains(part), "has {part:?}:\n{}", result.markdown);
    }
}

#[test]
fn an_article() {
    let result = fixture!("article.html");
    assert_has(
        &result,
        &[
            "# Why tide mills came back\n",
            "By [Maren Oduya](https://site.example/people/maren)",
            "![A stone mill beside a tidal pond](https://site.example/img/mill.jpg)",
            "The mill pond at low water.",
            "## The gates came first\n",
            "[a survey of sluice gates](https://trust.example/gates)",
            "*working hinges*",
            "**eleven pages long**",
            "> You do not restore a mill.",
            "1. Clear the leat before touching the pond.\n2. Measure two spring tides, not one.",
            "    - where they are caught,\n    - when they run.",
            "| Item | Per year |\n| ---- | -------- |\n| Grease and rope | 240 |\n| Insurance | 1,900 |",
            "its side of the bargain.",
        ],
    );
    assert_lacks(
        &result,
        &[
            "Skip to content",
            "Subscribe",
            "Related",
            "eel problem",
            "Privacy",
            "cookies",
            "Accept",
            "injected",
            "dataLayer",
            "tracker",
            "[#]",
        ],
    );
    assert!(!result.truncated);
    assert_eq!(
        serde_json::to_value(&result.metadata).unwrap(),
        serde_json::json!({
            "title": "Why tide mills came back",
            "description": "A short history of mills driven by the tide, and of the people restoring them.",
            "statusCode": 200,
            "canonicalUrl": "https://site.example/essays/tide-mills",
            "language": "en-GB",
            "publishedAt": "2026-03-14T08:00:00+00:00",
            "siteName": "Harbour Quarterly",
            "byline": "Maren Oduya",
        })
    );
}

#[test]
fn a_documentation_page_with_code() {
    let result = fixture!("docs.html");
    assert_has(
        &result,
        &[
            "# Retries\n",
            "a `RetryPolicy`, which",
            "(https://site.example/dir/api.html#ferry.Client)",
            "never repeated unless you set `unsafe_methods=True`",
            "```python\nfrom ferry import Client, RetryPolicy\n\nclient = Client(retry=RetryPolicy(attempts=5, base_ms=200))\nif client.get(\"/status\") < 500:\n    print(\"up\")\n```",
            "```bash\nferry get --attempts 5 /status   # prints the body\nexport FERRY_BASE_MS=200\n```",
            "## Options\n",
            "| Name | Default | Meaning |",
            "| `on` | `\"429\\|5xx\"` | Status codes",
            "Returns the pause in milliseconds",
        ],
    );
    assert_lacks(&result, &["¶", "Installation", "Previous", "Built with", "View page source"]);
}

#[test]
fn a_product_page() {
    let result = fixture!("product.html");
    assert_has(
        &result,
        &[
            "# Trailhead 32 Rucksack",
            "$129.00",
            "![Trailhead 32, front](https://site.example/media/pack-front.webp)",
            "4.6 out of 5",
            "- 32 litres, 940 g without the frame",
            "| Weight | 1,180 g |",
            "| Volume | 32 L |",
            "### Does it fit under a seat?",
            "on most airlines",
        ],
    );
    assert_lacks(&result, &["Add to cart", "Free shipping", "Returns", "Jobs", "Moss", "base64", "8812"]);
}

#[test]
fn a_forum_thread() {
    let result = fixture!("forum.html");
    assert_has(
        &result,
        &[
            "comes out like a brick",
            "But not the same air",
            "> ana\\_k wrote:",
            "flour is drier at altitude",
            "Best loaf since we moved",
            "cold stone.  \nGive it an hour",
        ],
    );
    assert_lacks(&result, &["Log in", "Register", "Board rules", "Powered by"]);
    assert_eq!(result.metadata.title, "Sourdough too dense at altitude - Bread Forum");
}

#[test]
fn a_page_of_tables() {
    let result = fixture!("tables.html");
    assert_has(
        &result,
        &[
            "Monday to Friday, 1 May to 30 September\n\n| Port | Boat 1 | Boat 2 | Boat 3 |\n",
            "| Outer Skerry | on request |  | 20:00 |",
            "| Zone | Passenger | Single | Return |\n",
            "| Inner | Adult | 4.20 | 7.00 |\n|  | Child | 2.10 | 3.50 |",
            "| Car \\| van | any | 31.00 | 58.00 |",
            "| Bicycles | free |\n| Dogs | 1.00 |",
            "- Cash only on board\n- No service",
        ],
    );
}

#[test]
fn a_news_page_among_boilerplate() {
    let result = fixture!("news.html");
    assert_has(
        &result,
        &["# Last cable tram climbs into history", "made its final climb", "sent flowers", "does not ring a bell"],
    );
    assert_lacks(
        &result,
        &[
            "Section number",
            "Another headline",
            "BREAKING",
            "comment number",
            "registered newspaper",
            "newsletter",
            "Subscribe to continue",
            "Most read",
            "var a",
        ],
    );
    assert_eq!(result.metadata.published_at.as_deref(), Some("2026-04-20T06:30:00Z"));
    assert_eq!(result.metadata.byline.as_deref(), Some("Teodor Brandt"));
}

#[test]
fn a_page_in_japanese_and_an_old_charset() {
    let result = fixture!("japanese.sjis.html");
    assert_has(
        &result,
        &[
            "# 山の郵便局の一日",
            "朝六時、局長の田中さんは",
            "## 局の歴史",
            "[当時の写真](https://site.example/photo/12)",
            "| 1950 | 210 |",
            "手紙は来ますから",
        ],
    );
    assert_lacks(&result, &["ホーム", "著作権", "\u{fffd}"]);
    assert_eq!(result.metadata.language.as_deref(), Some("ja"));
}

#[test]
fn a_page_in_persian_keeps_its_joiners() {
    let result = fixture!("persian.html");
    assert_has(&result, &["# باغ\u{200c}های کویر", "نمی\u{200c}بارد", "حافظه\u{200c}اش"]);
}

#[test]
fn hidden_text_is_left_out() {
    let result = fixture!("hidden.html");
    assert_has(
        &result,
        &[
            "# Simple flatbread",
            "Let it rest under a cloth",
            "Divide into six, roll thin",
            "A good pan is smoking before",
            "Print this page or [see more breads](https://site.example/more)",
            "Serve warm",
        ],
    );
    assert_lacks(&result, &["INJECT", "javascript:", "GN"]);
    assert_eq!(result.metadata.title, "Simple flatbread recipe");
    assert!(!result.markdown.contains(base::untrusted_text::is_invisible));
}

#[test]
fn a_list_of_links() {
    let result = fixture!("links.html");
    assert_has(
        &result,
        &[
            "# Spring lectures",
            "All talks start at seven.",
            "[Talk 1: Moss gardens](https://site.example/talks/1)",
            "[Talk 8: A history of soup](https://site.example/talks/8)",
            "8 May",
        ],
    );
}

#[test]
fn a_page_laid_out_with_tables() {
    let result = fixture!("legacy.html");
    assert_has(
        &result,
        &[
            "**second Tuesday**",
            "The 2 m repeater",
            "### Repeater data",
            "| Output | Input | Tone |\n| ------ | ----- | ---- |\n| 145.750 | 145.150 | 88.5 |",
        ],
    );
}

#[test]
fn the_wire_form() {
    let mut page = page("text/plain", b"hello");
    page.status = 404;
    let result = read_page(&page, &ReadOptions::default()).unwrap();
    assert_eq!(
        serde_json::to_value(&result).unwrap(),
        serde_json::json!({
            "url": "https://site.example/dir/page",
            "markdown": "hello",
            "metadata": {"title": "", "description": "", "statusCode": 404},
            "truncated": false,
        })
    );
}

#[test]
fn other_kinds_of_text() {
    assert_eq!(read("text/plain", b"a <b> c\r\nd").markdown, "a <b> c\nd");
    assert_eq!(read("text/markdown", b"# a\n\n\n\n*b*\n").markdown, "# a\n\n*b*");
    assert_eq!(read("application/json", b"{\"a\": 1}\n").markdown, "```json\n{\"a\": 1}\n```");
    assert_eq!(read("application/rss+xml", b"<rss/>").markdown, "```xml\n<rss/>\n```");
    assert_eq!(read("text/plain", "a\u{202e}b".as_bytes()).markdown, "ab");
    let refused = read_page(&page("image/png", b"\x89PNG"), &ReadOptions::default());
    assert_eq!(refused.unwrap_err(), UnsupportedContent("image/png".to_owned()));
}

#[test]
fn pages_with_little_or_nothing_on_them() {
    for html in ["", " ", "<html>", "<body></body>", "<frameset><frame src=x></frameset>", "<!-- -->"] {
        let result = read("text/html", html.as_bytes());
        assert_eq!((result.markdown.as_str(), result.truncated), ("", false), "{html}");
    }
    assert_eq!(read("text/html", b"just text").markdown, "just text");
    assert_eq!(read("text/html", b"<h1>Up</h1>").markdown, "## Up");
    assert_eq!(
        read("text/html", b"<nav><a href=/x>only this</a></nav>").markdown,
        "[only this](https://site.example/x)"
    );
}

#[test]
fn short_pages_are_told_from_those_that_scripts_fill() {
    let script = "<script async src=/a.js></script>";
    let needs_browser = |body: &str| read("text/html", body.as_bytes()).needs_browser;
    for body in [
        "<p>Opening hours: 9 to 5</p>",
        "<div id=root><h1>Closed</h1></div>",
        "<div id=fb-root></div><p>Opening hours: 9 to 5</p>",
        "<a id=content></a><p>Opening hours: 9 to 5</p>",
        "<div id=content><img src=/poster.png alt='A play'></div><p>Tonight</p>",
        "<p>Loading dock: gate 4</p>",
        "<p>営業時間 9時から17時</p>",
    ] {
        assert!(!needs_browser(&format!("{body}{script}")), "{body}");
    }
    let long = "An invented paragraph which says where the ferry lands and when it leaves again on Sundays.";
    for body in [
        "",
        "<div id=root></div>",
        "<div id=root><!-- --> <div class=spinner></div></div><footer>Acme 2026</footer>",
        "<header>Acme</header><div id=__next><p>Loading...</p></div>",
        "<header>Acme</header><main id=main-content></main>",
        "<header><a href=/a-rather-long-address-of-a-page-with-more-letters-than-are-enough>Acme</a></header><div id=app></div>",
        "<div id=app><img src=/logo.svg alt=''></div>",
        "<p><img src=/a-rather-long-address-of-a-picture-with-more-letters-than-are-enough.png alt=''></p>",
        "<header>Acme</header><app-root></app-root>",
        "<p>Loading, please wait</p>",
        "<p>You are being redirected...</p>",
        "<noscript>Please enable JavaScript</noscript><p>Acme, makers of things</p>",
    ] {
        assert!(needs_browser(&format!("{body}{script}")), "{body}");
        assert!(!needs_browser(body), "{body}");
        let long = format!("<p>{long}</p>").repeat(4);
        assert!(!needs_browser(&format!("{body}{script}{long}")), "{body}");
    }
}

#[test]
fn long_pages_are_cut_between_paragraphs() {
    let html: String =
        (0..2_000).map(|n| format!("<p>Paragraph number {n} of a very long page, with some words.</p>")).collect();
    let result = read("text/html", format!("<article>{html}</article>").as_bytes());
    assert!(result.truncated);
    assert!(result.markdown.len() <= 50 * 1024 && result.markdown.len() > 49 * 1024);
    assert!(result.markdown.ends_with("some words."));
}

#[test]
fn a_cut_body_is_reported() {
    let mut page = page("text/html", b"<p>first half");
    page.truncated = true;
    assert!(read_page(&page, &ReadOptions::default()).unwrap().truncated);
}

/// Serves `response` once and reads the page through the guarded client.
async fn fetch_and_read(response: Vec<u8>) -> Result<ReadResult, String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let length = socket.read(&mut request).await.unwrap();
        assert!(request[..length].starts_with(b"GET "));
        socket.write_all(&response).await.unwrap();
    });
    let policy = FetchPolicy::default().accepting(can_read).allowing_local([("127.0.0.1".to_owned(), port)]);
    let fetcher = Fetcher::new(policy, "TestReader/1.0").unwrap();
    let page = fetcher.get(&format!("http://127.0.0.1:{port}/dir/page")).await;
    served.await.unwrap();
    let page = page.map_err(|error| error.to_string())?;
    read_page(&page, &ReadOptions::default()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn from_the_server_to_markdown() {
    let with_head = |head: &str, body: &[u8]| {
        let mut response = format!("HTTP/1.1 200 OK\r\ncontent-type: {head}\r\n\r\n").into_bytes();
        response.extend_from_slice(body);
        response
    };

    let article = with_head("text/html; charset=utf-8", include_bytes!("fixtures/article.html"));
    let result = fetch_and_read(article).await.unwrap();
    assert!(result.url.starts_with("http://127.0.0.1:") && result.url.ends_with("/dir/page"));
    assert_has(&result, &["# Why tide mills came back", "| Insurance | 1,900 |", "/img/mill.jpg)"]);

    // The header's charset differs from the page's.
    let wrong = with_head("text/html; charset=utf-8", include_bytes!("fixtures/japanese.sjis.html"));
    assert_has(&fetch_and_read(wrong).await.unwrap(), &["朝六時、局長の田中さんは"]);

    let picture = fetch_and_read(with_head("image/png", b"\x89PNG")).await;
    assert_eq!(picture.unwrap_err(), "content of type image/png cannot be read");
    let pretender = fetch_and_read(with_head("text/html", b"\x89PNG\0\0")).await;
    assert_eq!(pretender.unwrap_err(), "content of type text/html cannot be read");
}

/// Pages made to exhaust a parser or a converter, each up to the fetcher's cap
/// of five million bytes.
fn hostile_pages() -> Vec<(&'static str, String)> {
    const CAP: usize = 5_000_000;
    let fill = |unit: &str| unit.repeat(CAP / unit.len());
    let numbered = |make: fn(usize) -> String| {
        let mut page = String::new();
        let mut number = 0;
        while page.len() < CAP {
            page.push_str(&make(number));
            number += 1;
        }
        page
    };
    let words = "some ordinary words, with commas, and a sentence. ";
    vec![
        ("divs unclosed", fill("<div>")),
        ("divs nested and closed", format!("{}x{}", "<div>".repeat(400_000), "</div>".repeat(400_000))),
        ("divs as deep as allowed around text", format!("{}{}", "<div>".repeat(400), fill(words))),
        (
            "divs at the flattening depth",
            format!("{}{}", "<div>".repeat(99), fill("<p>some ordinary words, with commas, and more</p>")),
        ),
        (
            "divs at half the depth",
            format!("{}{}", "<div>".repeat(50), fill("<p>some ordinary words, with commas, and more</p>")),
        ),
        (
            "wrappers side by side",
            fill("<div><div><div><div><div><p>words, words, words and more of them</p></div></div></div></div></div>"),
        ),
        ("paragraphs", fill("<p>some ordinary words, with commas, and more of them</p>")),
        ("empty paragraphs", fill("<p>")),
        ("spans unclosed", fill("<span>")),
        ("formatting unclosed", fill("<b><i><u><a href=x>")),
        ("formatting with attributes", numbered(|n| format!("<b id={n}><p>"))),
        ("formatting misnested", fill("<b><p><i></b></p></i>")),
        ("anchors", fill("<a href=x>y</a>")),
        ("unclosed anchors in tables", fill("<a href=x><table>")),
        ("tables nested", fill("<table><tr><td>")),
        ("tables with text in the wrong place", fill("<table>x<tr>y<td>z</table>")),
        ("one table of many rows", format!("<table>{}", fill("<tr><td>a<td>b"))),
        ("one row of many cells", format!("<table><tr>{}", fill("<td>a"))),
        ("one wide cell in many rows", format!("<table><tr><td>{}{}", "w".repeat(1_000_000), fill("<tr><td>a<td>b"))),
        ("spanning cells", format!("<table>{}", fill("<tr><td colspan=1000 rowspan=65534>a<td>b"))),
        ("many tables", fill("<table><tr><th>a<th>b<tr><td>c<td>d</table>")),
        ("lists nested", fill("<ul><li>x")),
        ("list items", fill("<li>x")),
        ("deep lists with many items", format!("{}{}", "<ul><li>".repeat(9), fill("<li>x"))),
        ("quotes nested", fill("<blockquote>x")),
        ("quotes with many lines", format!("{}{}", "<blockquote>".repeat(9), fill("<p>x"))),
        ("quotes around ampersands", format!("{}{}", "<blockquote>".repeat(12), "&x".repeat(800_000))),
        ("definition lists", fill("<dl><dt>x<dd>y")),
        ("selects and options", fill("<select><option>x")),
        ("buttons", fill("<button>x")),
        ("rubies", fill("<ruby>x<rt>y")),
        ("forms", fill("<form><input>x")),
        ("headings", fill("<h1>x</h1>")),
        (
            "headings with a long title",
            format!("<title>{}</title>{}", words.repeat(1_000), fill("<h2>some ordinary words</h2>")),
        ),
        ("line breaks", fill("<br>")),
        ("line breaks and text", fill("x<br><br>")),
        ("images", fill("<img src=a.png alt=b>")),
        ("foreign content", fill("<svg><g><path/>")),
        ("mathematics", fill("<math><mi>x<mrow>")),
        ("templates", fill("<template>")),
        ("code blocks", fill("<pre><code>x</code></pre>")),
        ("inline code", fill("<code>x</code> ")),
        ("backticks", format!("<pre>{}", fill("`"))),
        ("entities", fill("&amp;&lt;&notit;&#x41;")),
        ("broken entities", fill("&&#&#x&ampx")),
        ("less-thans", fill("<")),
        ("slashes", fill("</")),
        ("end tags", fill("</p>")),
        ("end tags of nothing", fill("</x>")),
        ("end tags under open elements", format!("{}{}", "<section>".repeat(450), fill("</div>"))),
        ("brackets", fill("[](")),
        ("asterisks", fill("*_")),
        ("spaces", fill(" ")),
        ("newlines", fill("\n")),
        ("control characters", fill("\u{1}\u{2}")),
        ("zero-width characters", fill("\u{200b}\u{200d}")),
        ("one long word", fill("x")),
        ("wide characters", fill("字")),
        ("comments", fill("<!---->")),
        ("an endless comment", format!("<!--{}", fill("--!"))),
        ("scripts", fill("<script></script>")),
        ("an endless script", format!("<script>{}", fill("</scrip"))),
        ("style sheets", fill("<style>.a{display:none}</style>")),
        (
            "many rules for one class",
            format!("<style>{}</style>{}", ".a.b{display:none}".repeat(10_000), fill("<p class='a c'>x")),
        ),
        ("many classes", format!("<p class='{}'>x", fill("a "))),
        (
            "classes on every element",
            format!("<style>.q{{display:none}}</style>{}", fill(&format!("<p class='{}'>x", "a ".repeat(1_000)))),
        ),
        ("a tag of many attributes", format!("<p {}>x", numbered(|n| format!("a{n} ")))),
        ("a tag of one huge attribute", format!("<p title='{}'>x", fill("y"))),
        ("long addresses", fill(&format!("<a href='{}'>x</a>", "y".repeat(4_000)))),
        ("unknown elements", numbered(|n| format!("<x{n}>"))),
        ("a long element name", format!("<{}>", fill("x"))),
        ("meta tags", fill("<meta name=a content=b>")),
        ("linked data", fill("<script type=application/ld+json>[[{\"@graph\":[]}]]</script>")),
        ("deep linked data", format!("<script type=application/ld+json>{}</script>", "[".repeat(60_000))),
        ("framesets", fill("<frameset><frame>")),
        ("bodies", fill("<html lang=a><head><body class=b>")),
        ("long inline styles", fill(&format!("<p style='{}'>x", "a:b;".repeat(1_000)))),
        ("hidden elements", fill("<p hidden>x</p>")),
        ("bylines", fill("<p class=byline itemprop=author>x</p>")),
    ]
}

#[test]
fn hostile_pages_are_read_in_bounded_time() {
    // In an optimised build the slowest takes under half a second. The limits leave room for a busy machine or an
    // unoptimised build.
    let limit = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 3 });
    for (name, html) in hostile_pages() {
        let page = page("text/html; charset=utf-8", html.as_bytes());
        // The stack size of a runtime's worker thread.
        let reader = std::thread::Builder::new().stack_size(2 << 20);
        let started = Instant::now();
        let reader = reader.spawn(move || read_page(&page, &ReadOptions::default()).unwrap());
        let result = reader.unwrap().join().unwrap_or_else(|_| panic!("{name} caused a panic"));
        let elapsed = started.elapsed();
        println!("{elapsed:>10.1?}  {name}: {} bytes", result.markdown.len());
        assert!(result.markdown.len() <= 50 * 1024, "{name}");
        assert!(elapsed < limit, "{name} took {elapsed:?}");
    }
}

#[test]
fn hostile_text_does_not_panic() {
    for content_type in ["text/plain", "application/json", "application/xml", "text/markdown"] {
        for unit in ["`", "```\n", "\n", "字", "\u{200b}", "x"] {
            let body = unit.repeat(5_000_000 / unit.len());
            let result = read(content_type, body.as_bytes());
            assert!(result.markdown.len() <= 50 * 1024);
        }
    }
}

#[test]
fn deleted_text_is_dropped_and_exponents_are_kept() {
    let result = read(
        "text/html",
        b"<article><h1>Dam</h1><p>The dam holds 10<sup>6</sup> litres of water in the quarry, by E=mc<sup>2</sup>. She was \
          <del>not</del> convicted, and it was built by <s>Alice Smith</s> Bob Jones of the quarry company in spring.</p>\
          </article>",
    );
    assert_has(&result, &["10^6 litres", "She was convicted", "built by Bob Jones"]);
    assert_lacks(&result, &["106 litres", "not convicted", "Alice"]);
}
