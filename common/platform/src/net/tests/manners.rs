//! Obeying robots.txt, over real connections.

use std::sync::Mutex;

use super::*;

/// A site with this response for robots.txt and a page for everything else. Records the requested paths.
async fn site(robots: Script) -> (Server, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let noted = asked.clone();
    let server = Server::start(move |head| {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        noted.lock().unwrap().push(path.clone());
        match path.as_str() {
            "/robots.txt" => robots.clone(),
            "/moved" => redirect("/no/there"),
            _ => at_once(response("200 OK\r\ncontent-type: text/html", b"<p>the page")),
        }
    });
    (server.await, asked)
}

fn says(rules: &str) -> Script {
    at_once(response("200 OK\r\ncontent-type: text/plain", rules.as_bytes()))
}

#[tokio::test]
async fn robots_txt_is_fetched_once_and_obeyed() {
    let (server, asked) =
        site(says("User-agent: *\nDisallow: /no\n\nUser-agent: TestReader\nDisallow: /no\nDisallow: /*?secret=")).await;
    let fetcher = fetcher(server.policy());
    assert_eq!(fetcher.read(&server.url("/yes")).await.unwrap().body, b"<p>the page");
    for path in ["/no", "/no/there", "/x?secret=1", "/moved"] {
        let error = fetcher.read(&server.url(path)).await.unwrap_err();
        assert!(
            matches!(&error, FetchError::Forbidden(how) if how.contains("robots.txt of 127.0.0.1")),
            "{path}: {error:?}"
        );
    }
    assert_eq!(fetcher.read(&server.url("/yes/2")).await.unwrap().status, 200);
    // The forbidden pages were never requested; the redirect was, but not its target.
    assert_eq!(*asked.lock().unwrap(), ["/robots.txt", "/yes", "/moved", "/yes/2"]);
    // `get` is for requests such as webhook deliveries and does not check robots.txt.
    assert_eq!(fetcher.get(&server.url("/no")).await.unwrap().status, 200);
}

#[tokio::test]
async fn the_response_for_robots_txt_decides() {
    let status = |line: &str| at_once(response(line, b"User-agent: *\nDisallow: /"));
    let long = format!("{}User-agent: *\nDisallow: /", "# nothing\n".repeat(60_000));
    for (name, robots, may) in [
        ("none", status("404 Not Found"), true),
        ("not for us", status("403 Forbidden"), true),
        ("broken", status("503 Service Unavailable"), false),
        ("busy", status("429 Too Many Requests"), false),
        ("elsewhere", redirect("/rules"), true),
        ("in circles", redirect("/robots.txt"), true),
        ("beyond 500 KiB", says(&long), true),
        ("a page", says("<html><body>Disallow: /</body></html>"), true),
        ("too late", vec![(Duration::from_secs(60), Vec::new())], false),
    ] {
        let (server, _) = site(robots).await;
        let mut policy = server.policy();
        policy.deadline = Duration::from_secs(2);
        let outcome = fetcher(policy).read(&server.url("/page")).await;
        match outcome {
            Ok(_) => assert!(may, "{name}"),
            Err(error) => {
                assert!(!may && error.to_string().contains("robots.txt"), "{name}: {error}");
                let is_silent = matches!(error, FetchError::NotReachable(_));
                assert_eq!(is_silent, name == "too late", "{name}: {error}");
            }
        }
    }
    // A site that cannot be reached is reported as such.
    let gone = fetcher(FetchPolicy::default().allowing_local([("127.0.0.1".to_owned(), 1)]));
    assert!(matches!(gone.read("http://127.0.0.1:1/").await, Err(FetchError::NotReachable(_))));
}

#[tokio::test]
async fn pauses_are_kept_within_the_deadline() {
    let (server, _) = site(says("User-agent: *\nCrawl-delay: 0.4")).await;
    let mut policy = server.policy();
    policy.deadline = Duration::from_secs(3);
    let fetcher = fetcher(policy);
    let begun = Instant::now();
    for _ in 0..3 {
        fetcher.read(&server.url("/page")).await.unwrap();
    }
    assert!(begun.elapsed() >= Duration::from_millis(800), "{:?}", begun.elapsed());
    let (server, _) = site(says("User-agent: *\nCrawl-delay: 3600")).await;
    let mut policy = server.policy();
    policy.deadline = Duration::from_secs(1);
    let fetcher = super::fetcher(policy);
    assert!(fetcher.read(&server.url("/page")).await.is_ok(), "the first page need not wait");
    let error = fetcher.read(&server.url("/page")).await.unwrap_err();
    assert!(error.to_string().contains("more time between two pages"), "{error}");
}

#[tokio::test]
async fn robots_and_cache_headers_are_returned() {
    let head = "200 OK\r\nx-robots-tag: noindex\r\nX-Robots-Tag: otherbot: nofollow\r\n\
                cache-control: max-age=0\r\nCache-Control: private";
    let server = Server::saying(head, b"").await;
    let page = server.get("/").await.unwrap();
    assert_eq!(page.robots.as_deref(), Some("noindex\notherbot: nofollow"));
    assert_eq!(page.cache_control.as_deref(), Some("max-age=0\nprivate"));
}
