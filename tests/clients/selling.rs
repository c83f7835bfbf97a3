//! The checks that docs/SELLING.md shows to sellers, in services that a Python, a TypeScript and a Rust seller would write. The
//! published x402 client and the official MCP client buy from them.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use jsonwebtoken::jwk::JwkSet;
use local::report;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use super::{installed, lines, python_of};
use crate::support::{Payer, children, root, run, stack_with};

#[path = "selling/paid_call.rs"]
mod paid_call;

/// The guide's code in a language.
fn shown(language: &str) -> String {
    let guide = std::fs::read_to_string(root().join("docs/SELLING.md")).expect("the guide");
    let (_, code) = guide.split_once(&format!("```{language}\n")).expect("an example");
    code.split("```").next().expect("its end").to_owned()
}

/// A service in another process. It reads its check when it gets a line.
struct Service {
    port: u64,
    input: ChildStdin,
    _process: Child,
}

impl Service {
    async fn start(program: &Path, file: PathBuf) -> Service {
        let mut command = Command::new(program);
        let mut process = children::start(command.arg(file).stdin(Stdio::piped()));
        let mut lines = BufReader::new(process.stdout.take().expect("its lines")).lines();
        let line = lines.next_line().await.expect("a line").expect("its port");
        let said: Value = serde_json::from_str(&line).expect("JSON");
        let input = process.stdin.take().expect("its input");
        Service { port: said["port"].as_u64().expect("a port"), input, _process: process }
    }

    async fn learns(&mut self, check: &Path) {
        let line = format!("{}\n", check.display());
        self.input.write_all(line.as_bytes()).await.expect("it listens");
    }
}

/// The service in Rust, in this process.
async fn in_rust(keys: Arc<OnceLock<JwkSet>>) -> u64 {
    async fn add(
        State((origin, keys)): State<(String, Arc<OnceLock<JwkSet>>)>,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<axum::Json<Value>, StatusCode> {
        let token = headers.get("x-paid-call").and_then(|token| token.to_str().ok()).unwrap_or_default();
        let keys = keys.get().expect("the keys were read");
        let claims = paid_call::paid_call(keys, token, "POST", &format!("{origin}/add"), &body);
        let claims = claims.ok_or(StatusCode::UNAUTHORIZED)?;
        let input: Value = serde_json::from_slice(&body).expect("JSON");
        let sum: i64 = input["numbers"].as_array().expect("numbers").iter().filter_map(Value::as_i64).sum();
        Ok(axum::Json(json!({"sum": sum, "claims": claims, "token": token})))
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let router = Router::new().route("/add", post(add)).with_state((format!("http://{address}"), keys));
    tokio::spawn(async move { drop(axum::serve(listener, router).await) });
    address.port().into()
}

#[test]
fn what_the_guide_shows_to_sellers_works() {
    run(async {
        let file = std::fs::read_to_string(root().join("tests/clients/selling/paid_call.rs")).expect("a file");
        assert!(file.ends_with(&shown("rust")), "tests/clients/selling/paid_call.rs is not what docs/SELLING.md shows");
        let (Some(folder), Some(v2), Some(mcp)) =
            (installed("selling").await, installed("v2").await, installed("mcp").await)
        else {
            return;
        };
        let python = match python_of(&folder).await {
            Ok(python) => python,
            Err(cause) if std::env::var_os("REQUIRE_CLIENTS").is_some() => panic!("{cause}"),
            Err(cause) => return eprintln!("LEFT OUT: the Python library does not install here: {cause}"),
        };
        let made = folder.join("made");
        std::fs::create_dir_all(&made).expect("a folder");
        std::fs::write(folder.join("paid-call.mts"), shown("typescript")).expect("a file");
        let tsc = Command::new(folder.join("node_modules/.bin/tsc")).current_dir(&folder).output().await.expect("tsc");
        assert!(tsc.status.success(), "{}", String::from_utf8_lossy(&tsc.stdout));
        let mut in_python = Service::start(&python, folder.join("service.py")).await;
        let mut in_typescript = Service::start(Path::new("node"), made.join("service.mjs")).await;
        let keys = Arc::new(OnceLock::new());
        let ports = [in_python.port, in_typescript.port, in_rust(keys.clone()).await];
        let names = ["add_python", "add_typescript", "add_rust"];
        let tools = names.iter().zip(ports).map(|(name, port)| {
            json!({
                "name": name, "title": "Add", "summary": "Adds numbers", "price": "0.002", "private": true,
                "method": "POST", "address": format!("http://127.0.0.1:{port}"), "path": "/add",
                "input_schema": {"type": "object", "required": ["numbers"], "properties": {
                    "numbers": {"type": "array", "items": {"type": "integer"}},
                }},
                "output_schema": {"type": "object", "required": ["sum"], "properties": {"sum": {"type": "integer"}}},
            })
        });
        let tools = json!({"tools": tools.collect::<Vec<_>>()}).to_string();
        let stack = stack_with(|options| options.with("OWN_TOOLS", tools)).await;

        // The services read the keys of this deployment.
        let here = |code: String| code.replace("https://tools.example.com", &stack.base_url);
        let check = made.join("paid_call.py");
        std::fs::write(&check, here(shown("python"))).expect("a file");
        in_python.learns(&check).await;
        let check = made.join("paid-call.mjs");
        let compiled = std::fs::read_to_string(&check).expect("what was compiled");
        std::fs::write(&check, here(compiled)).expect("a file");
        in_typescript.learns(&check).await;
        let payer = Payer::new(&stack).await;
        let published = payer.client.get("/.well-known/jwks.json", &[]).await;
        keys.set(serde_json::from_str(&published.text).expect("keys")).expect("once");

        payer.give_credits(&stack, 1_000_000).await;
        let mut about = report::json(&stack);
        about["token"] = json!(payer.token(&stack).await);
        let mut input = json!({"numbers": [2, 40]});
        for (number, (name, port)) in names.iter().zip(ports).enumerate() {
            // Another input each time, because a price and a payment belong to one.
            input["numbers"][0] = json!(number);
            let path = format!("/v1/tools/own/{name}");
            let mut x402 = Command::new("node");
            let x402 = x402.arg(v2.join("buy.mjs")).args(["--json", &path, &input.to_string()]);
            let bought = lines(x402, &about).await;
            let [bought] = &bought[..] else { panic!("{name}: {bought:?}") };
            let result = &bought["data"]["result"];
            assert_eq!(result["sum"], number + 40, "{name}: {bought}");
            let claims = &result["claims"];
            assert_eq!((&claims["tool"], &claims["amount_usdc"]), (&json!(name), &json!("0.002000")), "{claims}");
            assert_eq!(claims["jti"], bought["data"]["request_id"], "{bought}");

            let tool = format!("agora_{name}");
            let mut host = Command::new("node");
            let host = host.arg(mcp.join("own.mjs")).args([&tool, &input.to_string()]);
            let bought = lines(host, &about).await;
            let [bought] = &bought[..] else { panic!("{name}: {bought:?}") };
            assert!(bought["listed"].as_array().is_some_and(|names| names.contains(&json!(tool))), "{bought}");
            assert_eq!((&bought["isError"], &bought["body"]["result"]["sum"]), (&json!(false), &json!(number + 40)));

            // Nobody else gets the work: not without a token, and not with another call's.
            let stolen = result["token"].as_str().expect("a token");
            for (token, body) in [("", &input), ("a.b.c", &input), (stolen, &json!({"numbers": [1, 1]}))] {
                let request = http::Request::post(format!("http://127.0.0.1:{port}/add")).header("x-paid-call", token);
                let request = request.header("content-type", "application/json").body(body.to_string().into_bytes());
                let answer = platform::net::PlainHttp::new(None).send(request.expect("a request")).await;
                assert_eq!(answer.expect("an answer").status, 401, "{name}: {token}");
            }
        }
    });
}
