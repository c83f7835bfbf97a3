//! Pages that are empty until their scripts have run, read through a real Chromium that has no network access of its
//! own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use gate::limits::{self, Class, RateLimitSlot, Subject};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::support::chromium::chromium;
use crate::support::{Payer, run, stack, stack_with};

const PATH: &str = "/v1/tools/web-read";
const FACT: &str = "The lighthouse of Skarn was lit again on the ninth of June, after forty years of darkness.";
/// An empty page and the script that fills it.
const SHELL: &str = "<!doctype html><title>Skarn</title><div id=root></div><script src=/app.js></script>";

/// The page's script. Before and after it fills the page, it tries every way a page has to reach another server.
fn app(canary: &str) -> String {
    format!(
        r#"
const canary = "{canary}";
const quietly = (what) => {{ try {{ Promise.resolve(what()).catch(() => 0); }} catch {{}} }};
quietly(() => fetch("http://" + canary + "/fetch", {{mode: "no-cors"}}));
quietly(() => fetch("/post", {{method: "POST", body: "x"}}));
quietly(() => navigator.sendBeacon("http://" + canary + "/beacon", "x"));
quietly(() => new WebSocket("ws://" + canary + "/socket"));
quietly(() => new EventSource("http://" + canary + "/events"));
quietly(() => {{ new Image().src = "http://" + canary + "/image"; }});
quietly(() => window.open("http://" + canary + "/popup"));
quietly(() => navigator.serviceWorker.register("/app.js"));
quietly(() => new RTCPeerConnection({{iceServers: [{{urls: "stun:" + canary}}]}}).createDataChannel("x"));
quietly(() => new Worker(URL.createObjectURL(new Blob(["fetch('http://" + canary + "/worker', {{mode: 'no-cors'}})"]))));
for (const [tag, name] of [["iframe", "src"], ["object", "data"], ["link", "href"]]) {{
  const element = document.createElement(tag);
  if (tag === "link") element.rel = "prefetch";
  element[name] = "http://" + canary + "/" + tag;
  document.body.append(element);
}}
alert("read me first");
const {{ fact }} = await (await fetch("/data.json")).json();
document.title = "Skarn, filled";
document.getElementById("root").innerHTML =
  "<article><h1>Skarn</h1><p>" + fact + "</p><p>The keeper's name is Ida, and she lives in the tower with her cat.</p></article>";
"#
    )
}

/// A site whose pages need a browser, and a count of what was posted to it.
async fn site(canary: String) -> (String, Arc<AtomicUsize>) {
    let posted = Arc::new(AtomicUsize::new(0));
    let counter = posted.clone();
    let app = app(&canary);
    let answer = move |request: Request| {
        let (counter, app, canary) = (counter.clone(), app.clone(), canary.clone());
        async move {
            counter.fetch_add(usize::from(request.method() == "POST"), Ordering::SeqCst);
            let html = |text: String| Response::builder().header(CONTENT_TYPE, "text/html").body(text.into()).unwrap();
            match request.uri().path() {
                "/app" => html(SHELL.replace("<script", "<script type=module")),
                "/app.js" => ([(CONTENT_TYPE, "text/javascript")], app).into_response(),
                "/data.json" => {
                    ([(CONTENT_TYPE, "application/json")], json!({"fact": FACT}).to_string()).into_response()
                }
                "/busy" => html("<!doctype html><div id=root></div><script>for (;;) {}</script>".to_owned()),
                "/leads" => html("<!doctype html><div></div><script>location.href = '/app'</script>".to_owned()),
                "/away" => {
                    html(format!("<!doctype html><div></div><script>location.href = 'http://{canary}/'</script>"))
                }
                "/plain" => {
                    html(format!("<!doctype html><title>Plain</title><article><p>{FACT}</p><p>{FACT}</p></article>"))
                }
                "/robots.txt" => "User-agent: *\nDisallow: /private\n".into_response(),
                "/private" => html(format!("<article><p>{FACT}</p></article>")),
                "/leads-to-private" => {
                    html("<!doctype html><div></div><script>location.href = '/private'</script>".to_owned())
                }
                _ => axum::http::StatusCode::NOT_FOUND.into_response(),
            }
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    (host, posted)
}

async fn bought(payer: &Payer, body: Value) -> Value {
    let answer = payer.buy(PATH, &body).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    payer.finished(answer.json()["request_id"].as_str().unwrap()).await
}

#[test]
fn a_scripted_page_is_rendered_without_network_access() {
    run(async {
        let Some(browser) = chromium().await else { return };
        // A connection here means that the guard was bypassed.
        let canary = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let hits = Arc::new(AtomicUsize::new(0));
        let (address, counter) = (canary.local_addr().unwrap().to_string(), hits.clone());
        tokio::spawn(async move {
            while canary.accept().await.is_ok() {
                counter.fetch_add(1, Ordering::SeqCst);
            }
        });
        let (host, posted) = site(address).await;
        let stack = stack_with(|options| {
            options.with("BROWSER_URL", browser.url.as_str()).with("LOCAL_FETCH_ALLOW", host.as_str())
        })
        .await;
        let payer = Payer::new(&stack).await;

        // Several pages at once, each in a context of its own.
        let read = |path: &'static str| bought(&payer, json!({"url": format!("http://{host}{path}")}));
        let (one, two) = tokio::join!(read("/app"), read("/leads"));
        for job in [&one, &two] {
            let result = &job["result"];
            assert_eq!((&job["status"], &job["provider"]), (&json!("completed"), &json!("browser")), "{job}");
            assert!(result["markdown"].as_str().unwrap().contains(FACT), "{job}");
            assert_eq!(result["metadata"]["title"], "Skarn, filled", "{job}");
            assert_eq!(result["url"], format!("http://{host}/app"), "{job}");
            assert!(result.get("screenshot_url").is_none(), "{job}");
        }

        // A screenshot on request, also of a page without scripts.
        let job = bought(&payer, json!({"url": format!("http://{host}/plain"), "screenshot": true})).await;
        let link = job["result"]["screenshot_url"].as_str().unwrap_or_else(|| panic!("{job}"));
        let picture = payer.client.get(link.strip_prefix(&stack.base_url).unwrap(), &[]).await;
        assert_eq!((picture.status, picture.header("content-type")), (200, Some("image/png")));
        // Each link counts the picture. Without room for it, the rest is told.
        let slot = RateLimitSlot::now(&stack.app, Subject::Agent(payer.agent()), Class::Files);
        assert!(slot.used(&stack.app).await.unwrap() > 0);
        while limits::take_bytes(&stack.app, Subject::Agent(payer.agent()), Class::Files, 1 << 40).await.is_ok() {}
        let job = payer.finished(job["request_id"].as_str().unwrap()).await;
        assert!(job["result"]["screenshot_url"].is_null(), "{job}");
        assert!(job["result"]["markdown"].as_str().unwrap().contains(FACT), "{job}");

        // A page that shows nothing, never finishes, or leads to a forbidden address is paid back.
        for path in ["/busy", "/away", "/leads-to-private"] {
            let job = read(path).await;
            assert_eq!(
                (&job["error_reason"], &job["credited_usdc"]),
                (&json!("source_unavailable"), &json!("0.002000")),
                "{path}: {job}"
            );
        }
        assert_eq!(hits.load(Ordering::SeqCst), 0, "something reached the canary");
        assert_eq!(posted.load(Ordering::SeqCst), 0, "a page that is read changes nothing");
        // The browser still works afterwards.
        assert_eq!(read("/app").await["status"], "completed");

        drop(browser);
        let job = read("/app").await;
        assert_eq!(job["error_reason"], "source_unavailable", "{job}");
        assert!(!job["error"].as_str().unwrap().contains("127.0.0.1"), "{job}");
    });
}

#[test]
fn without_a_browser_screenshots_are_not_sold() {
    run(async {
        let stack = stack().await;
        let payer = Payer::new(&stack).await;
        let refused = payer.client.post(PATH, &[], &json!({"url": "https://example.com/", "screenshot": true})).await;
        assert_eq!(refused.error(), (503, "provider_unavailable".to_owned()), "{}", refused.text);
        let offered = payer.client.post(PATH, &[], &json!({"url": "https://example.com/", "screenshot": false})).await;
        assert_eq!(offered.status, 402, "{}", offered.text);
    });
}
