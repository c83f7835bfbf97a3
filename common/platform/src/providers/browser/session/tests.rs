//! Sessions in a real Chromium, against servers on loopback. Without a Chromium they are skipped, and say so.

mod acts;
mod limits;

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::response::Response;
use serde_json::Value;
use tokio::net::TcpListener;

use super::*;
use crate::net::{FetchPolicy, PlainHttp};

const AGENT: &str = "TestActor/1.0 (+https://example.org/bot)";
const SCRIPT: &str = include_str!("tests/view.js");
const CHROMIUM: &str = "/usr/bin/chromium";
/// Runs the command after the profile's path until its standard input is closed, then removes the profile.
const GUARDED: &str =
    r#"profile=$1; shift; "$@" & child=$!; cat >/dev/null; kill -9 $child; wait $child; rm -rf "$profile""#;

/// The debugging port of the Chromium that all tests share. It ends with the tests' process.
fn chromium() -> Option<&'static str> {
    static STARTED: OnceLock<Option<String>> = OnceLock::new();
    let started = STARTED.get_or_init(|| {
        if !Path::new(CHROMIUM).exists() {
            eprintln!("skipped: there is no {CHROMIUM}");
            return None;
        }
        let profile = std::env::temp_dir().join(format!("agora-session-{}", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", GUARDED, "sh"]).arg(&profile).arg(CHROMIUM);
        command.args(["--headless", "--remote-debugging-port=0", "--no-first-run", "--disable-background-networking"]);
        command.args(["--disable-component-update", "--disable-extensions", "--disable-gpu", "--no-sandbox"]);
        command.arg(format!("--user-data-dir={}", profile.display()));
        #[expect(clippy::zombie_processes, reason = "it ends with this process")]
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Its standard input stays open as long as this process lives.
        std::mem::forget(child.stdin.take());
        for _ in 0..600 {
            let port = std::fs::read_to_string(profile.join("DevToolsActivePort")).ok();
            if let Some(port) = port.as_deref().and_then(|text| text.lines().next()) {
                return Some(format!("http://127.0.0.1:{port}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("Chromium did not start");
    });
    started.as_deref()
}

/// A request that a site got.
#[derive(Clone, Debug)]
struct Asked {
    line: String,
    headers: HashMap<String, String>,
    body: Vec<u8>,
}

/// A server whose answers a test gives: status, headers and body.
#[derive(Clone)]
struct Site {
    /// `host:port`
    host: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

type Answer = (u16, Vec<(&'static str, String)>, String);

impl Site {
    async fn start(name: &str, answer: impl Fn(&Asked) -> Answer + Clone + Send + Sync + 'static) -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = format!("{name}:{}", listener.local_addr().unwrap().port());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let respond = move |request: Request| {
            let (log, answer) = (Arc::clone(&log), answer.clone());
            async move {
                let (head, body) = request.into_parts();
                let headers = head
                    .headers
                    .iter()
                    .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()));
                let body = to_bytes(body, 1 << 20).await.unwrap().to_vec();
                let asked = Asked { line: format!("{} {}", head.method, head.uri), headers: headers.collect(), body };
                let (status, headers, text) = answer(&asked);
                log.lock().unwrap().push(asked);
                let mut response = Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                response.body(axum::body::Body::from(text)).unwrap()
            }
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(respond)).await });
        Site { host, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.host)
    }

    fn port(&self) -> u16 {
        self.host.rsplit(':').next().unwrap().parse().unwrap()
    }

    fn lines(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|asked| asked.line.clone()).filter(|line| !line.contains("favicon")).collect()
    }

    /// The last request whose line begins so.
    fn last(&self, line: &str) -> Asked {
        let asked = self.asked.lock().unwrap();
        let found = asked.iter().rev().find(|asked| asked.line.starts_with(line));
        found.unwrap_or_else(|| panic!("no {line}")).clone()
    }
}

fn html(text: &str) -> Answer {
    (200, vec![("content-type", "text/html; charset=utf-8".to_owned())], format!("<!doctype html>{text}"))
}

fn nothing() -> Answer {
    (404, Vec::new(), String::new())
}

/// A session that may act on the first site and reach the addresses of all.
async fn start(sites: &[&Site], state: Option<StorageState>) -> Option<Session> {
    let url = Redacted::new(chromium()?);
    let pairs = sites.iter().map(|site| (site.host.rsplit_once(':').unwrap().0.to_owned(), site.port()));
    let policy = FetchPolicy::default().allowing_local(pairs);
    let fetcher = Arc::new(Fetcher::new(policy, AGENT).unwrap());
    let rules = Rules { allowed: vec![sites[0].host.clone()] };
    let http = PlainHttp::new(None);
    let browser = Browser::new(url, &http);
    Some(browser.session(None, fetcher, rules, SCRIPT, state).await.unwrap())
}

/// The id of the element with this name.
async fn id(session: &Session, name: &str) -> String {
    let view = session.view().await.unwrap();
    let nodes = view["nodes"].as_array().unwrap();
    let node = nodes.iter().find(|node| node["name"] == name && node["id"].is_string());
    node.unwrap_or_else(|| panic!("no {name} in {view:#}"))["id"].as_str().unwrap().to_owned()
}

async fn click(session: &Session, name: &str) {
    let id = id(session, name).await;
    session.click(At::Element(&id), Click::default()).await.unwrap();
}

async fn text(session: &Session) -> String {
    session.call(None, "text", Vec::new()).await.unwrap()["text"].as_str().unwrap().to_owned()
}

async fn url(session: &Session) -> String {
    session.view().await.unwrap()["url"].as_str().unwrap().to_owned()
}
