//! Single requests of a browser.

use super::*;

#[tokio::test]
async fn a_request_goes_out_as_given_and_its_redirect_comes_back() {
    let server = Server::start(|head| {
        let lower = head.to_ascii_lowercase();
        assert!(head.starts_with("POST /login?a=1 HTTP/1.1\r\n"), "{head}");
        assert!(lower.contains("cookie: a=1; b=2\r\n") && lower.contains("content-length: 8\r\n"), "{head}");
        assert!(head.contains(AGENT) && !lower.contains("mozilla") && !lower.contains("evil.example"), "{head}");
        let moved =
            "302 Found\r\nlocation: /in\r\nset-cookie: s=1; HttpOnly\r\nset-cookie: t=2\r\ncontent-encoding: gzip";
        at_once(response(moved, &gzip(b"moved")))
    })
    .await;
    let headers = [("Cookie", "a=1; b=2"), ("User-Agent", "Mozilla"), ("Host", "evil.example"), ("X-Bad", "a\r\nb: c")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let client = fetcher(server.policy());
    let answer = client.exchange("POST", &server.url("/login?a=1#x"), &headers, b"user=ida".to_vec()).await.unwrap();
    assert_eq!((answer.status, answer.body.as_slice(), answer.truncated), (302, &b"moved"[..], false));
    assert_eq!(answer.header("location"), Some("/in"));
    let cookies = answer.headers.iter().filter(|(name, _)| name == "set-cookie").map(|(_, value)| value.as_str());
    assert_eq!(cookies.collect::<Vec<_>>(), ["s=1; HttpOnly", "t=2"]);
    assert_eq!((answer.header("content-encoding"), answer.header("content-length")), (None, None));
    assert_eq!(server.hits(), 1);
}

#[tokio::test]
async fn private_addresses_are_refused_and_slow_servers_given_up() {
    let server = Server::saying("200 OK", b"").await;
    let refused = fetcher(FetchPolicy::default()).exchange("GET", &server.url("/"), &[], Vec::new()).await;
    assert!(matches!(refused, Err(FetchError::NotAllowed(_))), "{refused:?}");
    let rebound = scripted(FetchPolicy::default(), |_| vec![IpAddr::from([10, 0, 0, 1])]);
    let refused = rebound.exchange("POST", "http://rebound.example/", &[], b"x".to_vec()).await;
    assert!(matches!(refused, Err(FetchError::NotAllowed(UrlRefused::PrivateAddress))), "{refused:?}");
    assert_eq!(server.hits(), 0);

    let slow = Server::start(|_| vec![(Duration::from_secs(30), Vec::new())]).await;
    let given_up = fetcher(hurried(slow.policy())).exchange("GET", &slow.url("/"), &[], Vec::new()).await;
    assert!(matches!(given_up, Err(FetchError::NotReachable(_))), "{given_up:?}");
}
