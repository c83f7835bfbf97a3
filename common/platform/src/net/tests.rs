//! The guarded client against real servers on loopback: normal responses, hostile responses, and attempts to reach private
//! addresses.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};

mod exchange;
mod manners;

use super::connect::Names;
use super::*;

const AGENT: &str = "TestReader/1.0 (+https://example.org/bot)";

/// A server that answers every connection by calling `answer`.
struct Server {
    address: SocketAddr,
    hits: Arc<AtomicUsize>,
}

/// The raw bytes a server sends for one request, in pieces, with a pause before each.
type Script = Vec<(Duration, Vec<u8>)>;

impl Server {
    async fn start(answer: impl Fn(&str) -> Script + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let hits = Arc::new(AtomicUsize::new(0));
        let answer = Arc::new(answer);
        let counter = Arc::clone(&hits);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                let answer = Arc::clone(&answer);
                tokio::spawn(async move { serve(socket, &*answer).await });
            }
        });
        Self { address, hits }
    }

    /// A server with the same response for every request.
    async fn saying(head: &str, body: &[u8]) -> Self {
        let answer = response(head, body);
        Self::start(move |_| at_once(answer.clone())).await
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn hits(&self) -> usize {
        self.hits.load(Ordering::Relaxed)
    }

    fn policy(&self) -> FetchPolicy {
        let pair = (self.address.ip().to_string(), self.address.port());
        FetchPolicy::default().allowing_local([pair])
    }

    async fn get(&self, path: &str) -> Result<Page, FetchError> {
        fetcher(self.policy()).get(&self.url(path)).await
    }
}

/// Reads one request head and plays the script for it. Errors mean that the client closed the connection, which is allowed.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(socket: S, answer: &(dyn Fn(&str) -> Script + Sync)) {
    let mut socket = BufReader::new(socket);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if socket.read_line(&mut head).await.unwrap_or(0) == 0 {
            return;
        }
    }
    for (pause, piece) in answer(&head) {
        tokio::time::sleep(pause).await;
        if socket.write_all(&piece).await.is_err() {
            return;
        }
    }
    let _ = socket.flush().await;
    let _ = socket.shutdown().await;
}

fn response(head: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

fn redirect(to: &str) -> Script {
    at_once(response(&format!("302 Found\r\nlocation: {to}"), b""))
}

fn at_once(bytes: Vec<u8>) -> Script {
    vec![(Duration::ZERO, bytes)]
}

fn fetcher(policy: FetchPolicy) -> Fetcher {
    Fetcher::new(policy, AGENT).unwrap()
}

fn scripted(policy: FetchPolicy, names: fn(&str) -> Vec<IpAddr>) -> Fetcher {
    Fetcher::build(policy, AGENT, Names::Scripted(names), RootCertStore::empty()).unwrap()
}

/// Short limits, so that slow tests end soon.
fn hurried(mut policy: FetchPolicy) -> FetchPolicy {
    policy.deadline = Duration::from_millis(300);
    policy
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn an_ordinary_page_arrives_whole() {
    let server = Server::saying("200 OK\r\ncontent-type: text/html; charset=utf-8", b"<p>hello").await;
    let page = server.get("/a?b={c}|d^e['f']&g=h i#part").await.unwrap();
    assert_eq!(page.status, 200);
    assert_eq!(page.content_type.as_deref(), Some("text/html; charset=utf-8"));
    assert_eq!(page.body, b"<p>hello");
    assert!(!page.truncated);
    assert_eq!(page.redirects, 0);
    assert!(page.final_url.as_str().ends_with("#part"));
}

#[test]
fn calls_can_move_between_threads() {
    fn assert_send<T: Send>(_: &T) {}
    let fetcher = fetcher(FetchPolicy::default());
    assert_send(&fetcher);
    assert_send(&fetcher.get("http://example.org/"));
}

#[tokio::test]
async fn the_request_has_only_the_expected_headers() {
    let server = Server::start(|head| at_once(response("200 OK", head.as_bytes()))).await;
    let page = server.get("/path?query#fragment").await.unwrap();
    let mut head: Vec<String> = String::from_utf8(page.body).unwrap().lines().map(str::to_ascii_lowercase).collect();
    head.sort();
    let host = format!("host: {}", server.address);
    assert_eq!(
        head,
        [
            "",
            "accept-encoding: gzip, deflate",
            "accept: text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,*/*;q=0.5",
            "connection: close",
            "get /path?query http/1.1",
            host.as_str(),
            "user-agent: testreader/1.0 (+https://example.org/bot)",
        ]
    );
}

#[tokio::test]
async fn error_statuses_return_a_page() {
    let server = Server::saying("404 Not Found\r\ncontent-type: text/html", b"gone").await;
    let page = server.get("/").await.unwrap();
    assert_eq!((page.status, page.body.as_slice()), (404, &b"gone"[..]));
}

#[tokio::test]
async fn redirects_are_followed_to_the_end() {
    let server = Server::start(|head| match head.split(' ').nth(1).unwrap() {
        "/1" => redirect("/2"),
        "/2" => redirect("3?x=1"),
        "/3?x=1" => redirect("?y=2#z"),
        "/3?y=2" => at_once(response("200 OK", b"end")),
        other => panic!("unexpected request for {other}"),
    })
    .await;
    let page = server.get("/1").await.unwrap();
    assert_eq!((page.redirects, page.body.as_slice()), (3, &b"end"[..]));
    assert_eq!(page.final_url.as_str(), server.url("/3?y=2#z"));
}

#[tokio::test]
async fn redirects_end_at_the_limit() {
    let server = Server::start(|head| {
        let n: u32 = head[5..].split(' ').next().unwrap().parse().unwrap();
        if n == 0 { at_once(response("200 OK", b"end")) } else { redirect(&format!("/{}", n - 1)) }
    })
    .await;
    assert_eq!(server.get("/5").await.unwrap().redirects, 5);
    assert_eq!(server.get("/6").await.unwrap_err(), FetchError::TooManyRedirects);
}

#[tokio::test]
async fn a_redirect_without_a_target_is_a_page() {
    let server = Server::saying("302 Found", b"moved, but not where to").await;
    assert_eq!(server.get("/").await.unwrap().status, 302);
}

#[tokio::test]
async fn redirects_to_private_addresses_are_refused() {
    let victim = Server::saying("200 OK", b"secret").await;
    let port = victim.address.port();
    for (target, reason) in [
        ("http://127.0.0.1/".to_owned(), UrlRefused::PrivateAddress),
        (format!("http://127.0.0.1:{port}/"), UrlRefused::Port),
        (format!("//127.0.0.1:{port}/"), UrlRefused::Port),
        ("http://169.254.169.254/latest/meta-data/".to_owned(), UrlRefused::PrivateAddress),
        ("http://[::1]/".to_owned(), UrlRefused::PrivateAddress),
        ("http://[::ffff:127.0.0.1]/".to_owned(), UrlRefused::PrivateAddress),
        ("http://2130706433/".to_owned(), UrlRefused::PrivateAddress),
        ("http://localhost/".to_owned(), UrlRefused::PrivateName),
        ("file:///etc/passwd".to_owned(), UrlRefused::Scheme),
        ("ftp://example.org/".to_owned(), UrlRefused::Scheme),
        ("http://user:pass@example.org/".to_owned(), UrlRefused::Credentials),
        ("http://[".to_owned(), UrlRefused::Malformed),
    ] {
        let to = target.clone();
        let server = Server::start(move |_| redirect(&to)).await;
        assert_eq!(server.get("/").await.unwrap_err(), FetchError::NotAllowed(reason), "{target}");
    }
    assert_eq!(victim.hits(), 0);
}

#[tokio::test]
async fn a_private_url_is_refused_without_a_connection() {
    let server = Server::saying("200 OK", b"secret").await;
    let outcome = fetcher(FetchPolicy::default()).get(&server.url("/")).await;
    assert_eq!(outcome.unwrap_err(), FetchError::NotAllowed(UrlRefused::Port));
    assert_eq!(server.hits(), 0);
}

#[tokio::test]
async fn names_with_private_addresses_are_refused() {
    let names: [fn(&str) -> Vec<IpAddr>; 5] = [
        |_| vec!["127.0.0.1".parse().unwrap()],
        |_| vec!["169.254.169.254".parse().unwrap(), "10.0.0.1".parse().unwrap()],
        |_| vec!["::1".parse().unwrap()],
        |_| vec!["::ffff:127.0.0.1".parse().unwrap()],
        |_| vec!["64:ff9b::7f00:1".parse().unwrap()],
    ];
    for names in names {
        let outcome = scripted(FetchPolicy::default(), names).get("http://rebound.example/").await;
        assert_eq!(outcome.unwrap_err(), FetchError::NotAllowed(UrlRefused::PrivateAddress));
        let none: &[(&str, String)] = &[];
        let fetcher = scripted(FetchPolicy::default(), names);
        let posted = fetcher.post("https://rebound.example/", none, Vec::new(), 10);
        assert_eq!(posted.await.unwrap_err(), FetchError::NotAllowed(UrlRefused::PrivateAddress));
    }
}

#[tokio::test]
async fn a_redirect_to_a_name_is_judged_by_its_address() {
    // Only the first hop's name is in the list of allowed local hosts. The second is refused, although it has the same
    // address and port.
    let server = Server::start(|head| {
        let port = head.split("host: ").nth(1).unwrap().split(['\r', ':']).nth(1).unwrap();
        redirect(&format!("http://other.test:{port}/"))
    })
    .await;
    let port = server.address.port();
    let policy = FetchPolicy::default().allowing_local([("demo.test".to_owned(), port)]);
    let fetcher = scripted(policy, |_| vec!["127.0.0.1".parse().unwrap()]);
    let outcome = fetcher.get(&format!("http://demo.test:{port}/")).await;
    assert_eq!(outcome.unwrap_err(), FetchError::NotAllowed(UrlRefused::Port));

    let server = Server::start(|_| redirect("http://other.test/")).await;
    let port = server.address.port();
    let policy = FetchPolicy::default().allowing_local([("demo.test".to_owned(), port)]);
    let fetcher = scripted(policy, |_| vec!["127.0.0.1".parse().unwrap()]);
    let outcome = fetcher.get(&format!("http://demo.test:{port}/")).await;
    assert_eq!(outcome.unwrap_err(), FetchError::NotAllowed(UrlRefused::PrivateAddress));
    assert_eq!(server.hits(), 1);
}

#[tokio::test]
async fn each_connection_goes_to_the_checked_address() {
    static LOOKUPS: AtomicUsize = AtomicUsize::new(0);
    let server = Server::start(|head| match head.split(' ').nth(1).unwrap() {
        "/first" => redirect("/second"),
        _ => at_once(response("200 OK", b"end")),
    })
    .await;
    let port = server.address.port();
    let policy = FetchPolicy::default().allowing_local([("demo.test".to_owned(), port)]);
    let fetcher = scripted(policy, |name| {
        assert_eq!(name, "demo.test");
        LOOKUPS.fetch_add(1, Ordering::Relaxed);
        vec!["127.0.0.1".parse().unwrap()]
    });
    let page = fetcher.get(&format!("http://demo.test:{port}/first")).await.unwrap();
    assert_eq!(page.body, b"end");
    // One lookup per connection: the answer cannot change in between.
    assert_eq!((LOOKUPS.load(Ordering::Relaxed), server.hits()), (2, 2));
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_not_reachable() {
    let outcome = scripted(FetchPolicy::default(), |_| vec![]).get("http://nowhere.example/").await;
    assert!(matches!(outcome, Err(FetchError::NotReachable(_))));
    let outcome = fetcher(FetchPolicy::default()).get("http://nowhere.invalid/").await;
    assert!(matches!(outcome, Err(FetchError::NotReachable(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_closed_port_is_not_reachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let policy = FetchPolicy::default().allowing_local([("127.0.0.1".to_owned(), address.port())]);
    let outcome = fetcher(policy).get(&format!("http://{address}/")).await;
    assert!(matches!(outcome, Err(FetchError::NotReachable(_))), "{outcome:?}");
}

#[tokio::test]
async fn an_endless_body_is_cut() {
    let megabyte = vec![b'x'; 1 << 20];
    let server = Server::start(move |_| {
        let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n".to_vec();
        let body = std::iter::repeat_n((Duration::ZERO, megabyte.clone()), 64);
        std::iter::once((Duration::ZERO, head)).chain(body).collect()
    })
    .await;
    let page = server.get("/").await.unwrap();
    assert!(page.truncated);
    assert_eq!(page.body.len(), 5_000_000);
}

#[tokio::test]
async fn compressed_bodies_are_decoded_and_bombs_refused() {
    let head = "200 OK\r\ncontent-encoding: gzip";
    let server = Server::saying(head, &gzip(b"<p>hello")).await;
    assert_eq!(server.get("/").await.unwrap().body, b"<p>hello");

    let server = Server::saying(head, &gzip(&vec![0; 100_000_000])).await;
    assert_eq!(server.get("/").await.unwrap_err(), FetchError::DecompressionLimit);
}

#[tokio::test]
async fn chunked_bodies_arrive() {
    let server = Server::start(|_| {
        ["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "5\r\nhello\r\n", "1\r\n!\r\n0\r\n\r\n"]
            .map(|piece| (Duration::from_millis(5), piece.as_bytes().to_vec()))
            .to_vec()
    })
    .await;
    assert_eq!(server.get("/").await.unwrap().body, b"hello!");
}

#[tokio::test]
async fn a_silent_server_costs_no_more_than_the_deadline() {
    let server = Server::start(|_| vec![(Duration::from_secs(60), vec![])]).await;
    let started = Instant::now();
    let outcome = fetcher(hurried(server.policy())).get(&server.url("/")).await;
    assert!(matches!(outcome, Err(FetchError::NotReachable(_))), "{outcome:?}");
    assert!(started.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn slow_drips_do_not_extend_the_deadline() {
    let drips: [fn() -> Vec<u8>; 3] = [
        || b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n".to_vec(),
        || b"HTTP/1.1 200 OK\r\nx-a: ".to_vec(),
        || b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec(),
    ];
    for drip in drips {
        let server = Server::start(move |_| {
            let head = std::iter::once((Duration::ZERO, drip()));
            head.chain(std::iter::repeat_n((Duration::from_millis(20), b"x".to_vec()), 500)).collect()
        })
        .await;
        let started = Instant::now();
        let outcome = fetcher(hurried(server.policy())).get(&server.url("/")).await;
        assert!(matches!(outcome, Err(FetchError::NotReachable(_) | FetchError::Protocol(_))), "{outcome:?}");
        assert!(started.elapsed() < Duration::from_secs(2));
    }
}

#[tokio::test]
async fn redirects_share_one_deadline() {
    let server = Server::start(|_| {
        let mut script = redirect("/again");
        script[0].0 = Duration::from_millis(100);
        script
    })
    .await;
    let mut policy = hurried(server.policy());
    policy.max_redirects = 1_000;
    let outcome = fetcher(policy).get(&server.url("/")).await;
    assert!(matches!(outcome, Err(FetchError::NotReachable(_))), "{outcome:?}");
    assert!(server.hits() <= 4);
}

#[tokio::test]
async fn huge_headers_are_refused() {
    let one_long = format!("200 OK\r\nx-long: {}", "y".repeat(100_000));
    let many = format!("200 OK{}", "\r\nx-a: b".repeat(1_000));
    for head in [one_long, many] {
        let server = Server::saying(&head, b"").await;
        let outcome = server.get("/").await;
        assert_eq!(outcome.unwrap_err(), FetchError::Protocol("its head is not HTTP, or is too large"));
    }
    let large = format!("200 OK\r\nx-long: {}", "y".repeat(30_000));
    assert!(Server::saying(&large, b"").await.get("/").await.is_ok());
}

#[tokio::test]
async fn invalid_http_is_a_protocol_error() {
    let answers: [&[u8]; 4] = [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbroken off",
        b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 1\r\n\r\nx",
    ];
    for answer in answers {
        let server = Server::start(move |_| at_once(answer.to_vec())).await;
        let outcome = server.get("/").await;
        assert!(matches!(outcome, Err(FetchError::Protocol(_))), "{outcome:?}");
    }
}

#[tokio::test]
async fn content_types_are_judged_before_the_body() {
    let accept_html = |kind: &str| kind == "text/html";
    let cases = [
        ("\r\ncontent-type: TEXT/HTML ; charset=x", None),
        ("", None),
        ("\r\ncontent-type: image/png", Some("image/png")),
        ("\r\ncontent-type: Application/PDF;x=y", Some("application/pdf")),
    ];
    for (header, refused) in cases {
        let server = Server::saying(&format!("200 OK{header}"), b"x").await;
        let outcome = fetcher(server.policy().accepting(accept_html)).get(&server.url("/")).await;
        let refused = refused.map(|kind| FetchError::UnsupportedContent(kind.to_owned()));
        assert_eq!(outcome.err(), refused);
    }
}

#[tokio::test]
async fn https_needs_a_trusted_certificate() {
    let made = rcgen::generate_simple_self_signed(["secure.test".to_owned()]).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            if let Ok(socket) = acceptor.accept(socket).await {
                serve(socket, &|_| at_once(response("200 OK", b"private talk"))).await;
            }
        }
    });

    let mut trusting = RootCertStore::empty();
    trusting.add(made.cert.der().clone()).unwrap();
    let policy = |host: &str| FetchPolicy::default().allowing_local([(host.to_owned(), port)]);
    let client = |host: &str, roots: RootCertStore| {
        let names = Names::Scripted(|_| vec!["127.0.0.1".parse().unwrap()]);
        Fetcher::build(policy(host), AGENT, names, roots).unwrap()
    };

    let url = format!("https://secure.test:{port}/");
    let page = client("secure.test", trusting.clone()).get(&url).await.unwrap();
    assert_eq!(page.body, b"private talk");

    let stranger = client("secure.test", RootCertStore::empty()).get(&url).await;
    assert!(matches!(stranger, Err(FetchError::NotReachable(_))), "{stranger:?}");
    let wrong_name = client("other.test", trusting).get(&format!("https://other.test:{port}/")).await;
    assert!(matches!(wrong_name, Err(FetchError::NotReachable(_))), "{wrong_name:?}");
}

#[tokio::test]
async fn https_to_a_plain_server_is_not_reachable() {
    let server = Server::saying("200 OK", b"plain").await;
    let url = server.url("/").replace("http:", "https:");
    let outcome = fetcher(server.policy()).get(&url).await;
    assert!(matches!(outcome, Err(FetchError::NotReachable(_))), "{outcome:?}");
}
