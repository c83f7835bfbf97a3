//! Discovery: the documents match the catalog, everything they show works, and every answer has the headers that caches
//! and clients need.

use std::process::Stdio;
use std::time::Duration;

use api::discovery::PAGES;
use api::routes;
use axum::response::IntoResponse;
use base::clock::Clock;
use catalog::CATALOG;
use evm::signature::PrivateKey;
use gate::app::App;
use http::{HeaderMap, header};
use local::{Options, Stack};
use platform::config::ChainConfig;
use platform::http::ApiError;
use platform::http::limit::Taken;
use platform::net::PlainHttp;
use platform::providers::Chain;
use platform::store::StoreError;
use serde_json::{Value, json};
use tokio::process::Command;
use tools::availability::{self, Lacking};
use tools::bazaar;
use tools::snapshot;
use tools::spec::{MARKET, TOP_UP, ToolSpec};
use tower::ServiceExt;

use crate::clients::{installed, lines};
use crate::mcp_calls;
use crate::souls_market::Shop;
use crate::support::chromium;
use crate::support::{Answer, Payer, equipped_stack, eventually, has_pages, run, stack, stack_with};

fn documents() -> Vec<String> {
    let fixed = [
        "/",
        "/llms.txt",
        "/llms-full.txt",
        "/skill.md",
        "/pricing",
        "/pricing.md",
        "/.well-known/x402",
        "/v1/tools/discover",
    ];
    let guides = PAGES.iter().map(|page| format!("/guides/{}", page.name));
    fixed.into_iter().map(str::to_owned).chain(guides).collect()
}

#[test]
fn documents_have_cache_headers() {
    run(async {
        let stack = stack().await;
        let client = Payer::with(&stack, 0).await.client;
        let jwks = ["/.well-known/jwks.json".to_owned(), "/.well-known/agora-receipts.json".to_owned()];
        for path in documents().into_iter().chain(jwks) {
            let answer = client.get(&path, &[]).await;
            assert_eq!((answer.status, answer.header("cache-control")), (200, Some("public, max-age=300")), "{path}");
            let etag = answer.header("etag").unwrap_or_else(|| panic!("{path} has no ETag"));
            let again = client.get(&path, &[("if-none-match", etag)]).await;
            assert_eq!((again.status, again.text.as_str(), again.header("etag")), (304, "", Some(etag)), "{path}");
            let head = client.send("HEAD", &path, &[], "").await.unwrap();
            assert_eq!((head.status, head.text.as_str(), head.header("etag")), (200, "", Some(etag)), "{path}");
            assert_eq!(head.header("content-type"), answer.header("content-type"), "{path}");
        }
        assert_eq!(client.get("/guides/PAYING.md", &[]).await.status, 200, "as the guides name each other");
        assert_eq!(client.get("/guides/deploy.md", &[]).await.error(), (404, "not_found".to_owned()));
    });
}

#[test]
fn the_price_list_follows_accept_and_loads_no_other_resources() {
    run(async {
        let stack = stack().await;
        let client = Payer::with(&stack, 0).await.client;
        let kind = async |accept: &str| {
            let answer = client.get("/pricing", &[("accept", accept)]).await;
            assert_eq!(answer.header("vary"), Some("accept"), "{accept}");
            answer.header("content-type").unwrap().split(';').next().unwrap().to_owned()
        };
        assert_eq!(kind("text/html,application/xhtml+xml,*/*;q=0.8").await, "text/html");
        assert_eq!(kind("*/*").await, "text/html");
        assert_eq!(kind("text/markdown").await, "text/markdown");
        assert_eq!(kind("application/json").await, "application/json");
        let page = client.get("/pricing", &[]).await;
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        assert!(!page.text.contains("http://") && !page.text.contains("<script") && !page.text.contains(" style="));
        let lacking = published(&stack).await;
        for tool in CATALOG.iter().filter(|tool| lacking.can(tool)) {
            assert!(
                page.text.contains(tool.title) && page.text.contains(&tool.price.usual().to_string()),
                "{}",
                tool.name
            );
        }
    });
}

#[test]
fn a_browser_gets_a_page_and_curl_json_at_the_root() {
    run(async {
        let stack = stack().await;
        let client = Payer::with(&stack, 0).await.client;
        for (accept, kind) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8"),
            ("*/*", "application/json"),
            ("application/json, text/plain, */*", "application/json"),
            ("application/json, text/html;q=0.5", "application/json"),
        ] {
            let answer = client.get("/", &[("accept", accept)]).await;
            let told = (answer.header("content-type"), answer.header("vary"));
            assert_eq!(told, (Some(kind), Some("accept")), "{accept}");
        }
        assert_eq!(client.get("/", &[]).await.json()["service"], "Agora");

        // The status is well once the worker has swept.
        eventually("a sweep", || async { (client.get("/v1/status", &[]).await.status == 200).then_some(()) }).await;
        let browser = [("accept", "text/html")];
        let page = client.get("/", &browser).await;
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        let text = page.text.replace(&stack.base_url, "");
        for loads in ["://", "<script", " style=", " src=", "url("] {
            assert!(!text.contains(loads), "{loads} in {text}");
        }
        assert!(text.len() < 60_000 && text.contains("<h1>Agora</h1>") && text.contains("<svg"), "{text}");
        let prices = client.get("/pricing", &browser).await.text;
        let links: Vec<&str> = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(links.len() > 15, "{links:?}");
        for link in links {
            match link.split_once('#') {
                Some((path, anchor)) => {
                    assert!(path == "/pricing" && prices.contains(&format!("id=\"{anchor}\"")), "{link}");
                }
                None => assert_eq!(client.get(link, &browser).await.status, 200, "{link}"),
            }
        }
    });
}

/// At the width of a phone nothing is wider than the screen, also when everything is unfolded.
#[test]
fn pages_fit_a_phone() {
    const MEASURE: &str = "onload = () => {
        const page = document.querySelector('iframe').contentDocument;
        for (const folded of page.querySelectorAll('details')) folded.open = true;
        document.title = page.documentElement.scrollWidth;
    }";
    run(async {
        let Some(browser) = chromium::binary().await else { return };
        let stack = stack().await;
        let client = Payer::with(&stack, 0).await.client;
        let folder = std::env::temp_dir().join(format!("agora-phone-{}", evm::hex0x(&base::digest::random::<6>())));
        std::fs::create_dir_all(&folder).expect("a folder");
        for path in ["/", "/pricing"] {
            let page = client.get(path, &[("accept", "text/html")]).await.text;
            let page = page.replace('&', "&amp;").replace('"', "&quot;");
            let frame = format!(
                "<!doctype html><title></title><iframe width=360 height=640 srcdoc=\"{page}\"></iframe>\
                 <script>{MEASURE}</script>"
            );
            let file = folder.join("frame.html");
            std::fs::write(&file, frame).expect("a file");
            let output = Command::new(&browser)
                .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
                .arg(format!("--user-data-dir={}", folder.join("profile").display()))
                .arg(format!("file://{}", file.display()))
                .stdin(Stdio::null())
                .output()
                .await
                .expect("a browser");
            let shown = String::from_utf8_lossy(&output.stdout).into_owned();
            let title = shown.split("<title>").nth(1).and_then(|rest| rest.split('<').next()).unwrap_or_default();
            let width: u32 = title.parse().unwrap_or_else(|_| panic!("{path}: {title:?} is no width"));
            assert!((300..=360).contains(&width), "{path}: {width}");
        }
        let _ = std::fs::remove_dir_all(&folder);
    });
}

/// The tools that this deployment lacks, once published. Call it before reading tool lists: they are cached for a
/// minute.
async fn published(stack: &Stack) -> Lacking {
    eventually("what cannot be done", || async { availability::load(&stack.app.db).await.unwrap() }).await
}

/// Every list leaves out what is unavailable here. A tool whose key or copy is provided is listed.
#[test]
fn unavailable_tools_are_listed_nowhere() {
    run(async {
        let key = |options: Options| options.with("PROVIDER_KEYS", r#"{"courtlistener":"none"}"#);
        let clock = Clock::pinned(Clock::system().now());
        let stack = stack_with(|options| Options { clock: clock.clone(), ..key(options) }).await;
        let lacking = published(&stack).await;
        let lists = async |stack: &Stack| {
            let payer = Payer::with(stack, 0).await;
            let mut lists = Vec::new();
            for path in ["/", "/skill.md", "/pricing", "/pricing.md", "/.well-known/x402"] {
                lists.push((path, payer.client.get(path, &[]).await.text));
            }
            let mut found = String::new();
            let mut next = Some(String::new());
            while let Some(cursor) = next {
                let page = payer.client.get(&format!("/v1/tools/discover?limit=50&cursor={cursor}"), &[]).await;
                next = page.json()["nextCursor"].as_str().map(str::to_owned);
                found.push_str(&page.text);
            }
            lists.push(("/v1/tools/discover", found));
            let prices = mcp_calls::call(&payer.client, &[], "agora_price_list", json!({}), json!({})).await;
            lists.push(("agora_price_list", prices.to_string()));
            lists
        };
        let is_in = |text: &str, tool: &ToolSpec| {
            text.match_indices(tool.path()).any(|(at, path)| {
                let after = text[at + path.len()..].chars().next();
                !after.is_some_and(|next| next.is_alphanumeric() || matches!(next, '-' | '/'))
            })
        };
        let court = CATALOG.iter().find(|tool| tool.name == "record_court_cases_find").unwrap();
        let sanctions = CATALOG.iter().find(|tool| tool.name == "company_sanctions").unwrap();
        assert!(lacking.can(court) && !lacking.can(sanctions), "{lacking:?}");
        for (path, text) in lists(&stack).await {
            for tool in CATALOG.iter() {
                assert_eq!(is_in(&text, tool), lacking.can(tool), "{path}: {}", tool.name);
            }
        }
        let client = Payer::with(&stack, 0).await.client;
        let over_mcp = mcp_calls::tool_names(&client).await.concat();
        let document = client.get("/openapi.json", &[]).await.json();
        for tool in CATALOG.iter() {
            assert_eq!(over_mcp.contains(&tool.mcp_name("Agora")), lacking.can(tool), "MCP: {}", tool.name);
            let operation = &document["paths"][tool.path()]["post"];
            let priced = (operation["x-payment-info"].is_object(), operation["x-unavailable"].is_string());
            assert_eq!(priced, (lacking.can(tool), !lacking.can(tool)), "{}", tool.name);
        }

        // A search says what would fit better than what it lists.
        let query = json!({"query": "local businesses"});
        let found = mcp_calls::call(&client, &[], "agora_find_tools", query, json!({})).await;
        assert_eq!(found["structuredContent"]["best_match_is_not_offered_here"][0]["name"], "local_search", "{found}");

        // An imported copy is noticed at the scheduler's next check, and shown once the cached lists expire.
        snapshot::publish(&*stack.app.blobs, "ofac", "2026-11-20", Vec::new()).await.unwrap();
        clock.advance(Duration::from_secs(5 * 60));
        eventually("the copy", || async { published(&stack).await.can(sanctions).then_some(()) }).await;
        clock.advance(Duration::from_secs(60));
        for (path, text) in lists(&stack).await {
            assert!(is_in(&text, sanctions), "{path}");
        }
    });
}

#[test]
fn discovery_lists_exactly_what_is_sold() {
    run(async {
        let stack = stack().await;
        // With the first indexed page, searches and research are listed and have a price.
        has_pages(&stack).await;
        let client = Payer::with(&stack, 0).await.client;
        let lacking = published(&stack).await;
        let (mut tools, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/v1/tools/discover?include=unavailable&limit=50&cursor={cursor}");
            let found = client.get(&path, &[]).await.json();
            tools.extend(found["tools"].as_array().unwrap().clone());
            match found["nextCursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        let sold: Vec<Value> = CATALOG.iter().chain(MARKET).chain([&TOP_UP]).map(|tool| json!(tool.name)).collect();
        assert_eq!(tools.iter().map(|tool| tool["name"].clone()).collect::<Vec<_>>(), sold);
        for (tool, shown) in CATALOG.iter().zip(&tools) {
            let key: &[(&str, &str)] = if tool.needs_key { &[("idempotency-key", "one")] } else { &[] };
            let unpaid = client.post(shown["path"].as_str().unwrap(), key, &shown["example"]).await;
            assert_eq!(shown["lacks"].as_str(), lacking.of(tool), "{}", tool.name);
            // A tool is listed if some input works. Its example may need more than that.
            // Only the quote of a call knows whose number it is.
            let wants_more =
                tool.name == "voice" || !(tool.needs)(tool, shown["example"].as_object().unwrap()).is_empty();
            if !lacking.can(tool) || wants_more && unpaid.status == 503 {
                assert_eq!(unpaid.error(), (503, "provider_unavailable".to_owned()), "{}", tool.name);
                continue;
            }
            if tool.quote_path.is_some() {
                assert_eq!(unpaid.error(), (400, "quote_id_required".to_owned()), "{}", tool.name);
            } else {
                let price = (unpaid.status, &unpaid.json()["amount_usdc"]);
                assert_eq!(price, (402, &shown["price_usdc"]), "{}", tool.name);
            }
            assert_eq!(
                (&shown["input_schema"], &shown["output_schema"]),
                (&tool.input_schema(), &tool.output_schema())
            );
            assert_eq!(shown["mcp_name"], format!("agora_{}", tool.name));
        }
        let page = client.get("/v1/tools/discover?limit=1&query=page", &[]).await.json();
        assert_eq!(page["tools"][0]["name"], "web_read");
        for (query, code) in
            [("limit=0", "invalid_request"), ("limit=1e3", "invalid_request"), ("cursor=x", "invalid_cursor")]
        {
            let answer = client.get(&format!("/v1/tools/discover?{query}"), &[]).await;
            assert_eq!(answer.error(), (400, code.to_owned()), "{query}");
        }
        let x402 = client.get("/.well-known/x402", &[]).await.json();
        assert_eq!(
            (&x402["x402Version"], &x402["kind"], &x402["name"]),
            (&json!(2), &json!("resource-server"), &json!("Agora"))
        );
        for resource in x402["resources"].as_array().unwrap() {
            assert_eq!(resource.as_object().unwrap().len(), 3, "bare pointers: {resource}");
            let path = resource["url"].as_str().unwrap().strip_prefix(&stack.base_url).unwrap();
            assert_eq!(client.post(path, &[], &Value::Null).await.status, 400, "{path}");
            let probed = client.send("POST", path, &[], "").await.unwrap().status;
            assert_eq!(probed, 402, "{path}");
        }
    });
}

/// Every link of llms.txt works. If GET is not allowed, the answer names the method that is; what is an agent's own needs its
/// proof.
#[test]
fn every_link_in_llms_txt_works() {
    run(async {
        let stack = stack().await;
        let client = Payer::with(&stack, 0).await.client;
        let text = client.get("/llms.txt", &[]).await.text;
        let links: Vec<&str> = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert!(links.len() > 10, "{text}");
        for link in links {
            let path = link.strip_prefix(&stack.base_url).unwrap_or_else(|| panic!("{link} leads away"));
            let status = client.get(path, &[]).await.status;
            assert!(matches!(status, 200 | 401 | 405), "{link}: {status}");
        }
    });
}

/// Both clients of llms.txt buy, run as they are written there.
#[test]
fn the_clients_in_llms_txt_buy() {
    run(async {
        let (Some(v2), Some(python)) = (installed("v2").await, installed("python").await) else { return };
        let stack = stack().await;
        let text = Payer::with(&stack, 0).await.client.get("/llms.txt", &[]).await.text;
        let snippet = |kind: &str| {
            let (_, rest) = text.split_once(&format!("```{kind}\n")).unwrap_or_else(|| panic!("no {kind} in {text}"));
            rest.split("```").next().unwrap_or_default().to_owned()
        };
        let mut node = Command::new("node");
        node.args(["--input-type=module", "--eval", &snippet("js")]).current_dir(v2);
        let mut interpreter = Command::new(python.join(".venv/bin/python"));
        interpreter.args(["-c", &snippet("python")]);
        for mut client in [node, interpreter] {
            let secret: evm::Word = base::digest::random();
            let key = PrivateKey::from_bytes(&secret).expect("a key");
            let payer = Payer::of(key, &stack.config, &stack.base_url);
            let chain = stack.chain.as_ref().expect("a local chain");
            chain.mint(&payer.address().to_string(), 1_000_000).await.expect("minting");
            let output =
                client.env("AGENT_KEY", evm::hex0x(&secret)).stdin(Stdio::null()).output().await.expect("a client");
            let told = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                told.starts_with("200 ") && told.contains("Accord"),
                "{told}{}",
                String::from_utf8_lossy(&output.stderr)
            );
            assert_eq!(payer.balance(&stack).await, 995_000, "charged once");
        }
    });
}

/// The public validator of skills accepts the file, in a folder of the skill's name as it demands.
#[test]
fn the_public_validator_accepts_the_skill() {
    run(async {
        let Some(python) = installed("python").await else { return };
        let stack = stack().await;
        let text = Payer::with(&stack, 0).await.client.get("/skill.md", &[]).await.text;
        let folder = std::env::temp_dir().join(format!("agora-skill-{}", evm::hex0x(&base::digest::random::<6>())));
        let skill = folder.join("agora-tools");
        std::fs::create_dir_all(&skill).expect("a folder");
        std::fs::write(skill.join("SKILL.md"), text).expect("a file");
        let mut validator = Command::new(python.join(".venv/bin/agentskills"));
        let output = validator.arg("validate").arg(&skill).stdin(Stdio::null()).output().await.expect("the validator");
        let _ = std::fs::remove_dir_all(&folder);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
}

/// Runs every command of the documents as it is written there.
#[test]
fn every_command_in_the_documents_works() {
    run(async {
        let stack = equipped_stack().await;
        let payer = Payer::with(&stack, 0).await;
        let token = payer.token(&stack).await.replace("Bearer ", "");
        let mut tried = 0;
        for path in documents() {
            let text = payer.client.get(&path, &[]).await.text;
            for block in text.split("```sh\n").skip(1) {
                let block = block.split("```").next().unwrap();
                let want = block
                    .strip_prefix("# answers ")
                    .and_then(|rest| rest.get(..3))
                    .unwrap_or_else(|| panic!("{path}: {block}"));
                let script = format!("curl() {{ command curl -o /dev/null -w '%{{http_code}}' \"$@\"; }}\n{block}");
                let output =
                    Command::new("sh").arg("-c").arg(&script).env("TOKEN", &token).stdin(Stdio::null()).output().await;
                let output = output.expect("a shell");
                assert_eq!(String::from_utf8_lossy(&output.stdout), want, "{path}: {block}");
                tried += 1;
            }
        }
        assert!(tried > 15, "{tried} commands");
    });
}

#[test]
fn the_official_package_accepts_every_bazaar_extension() {
    run(async {
        let Some(folder) = installed("v2").await else { return };
        let stack = equipped_stack().await;
        let payer = Payer::with(&stack, 0).await;
        let shop = Shop::open(&stack, "sells-by-bazaar").await;
        // A call without the quote that it needs first gets no 402.
        let sold = CATALOG.iter().filter(|tool| tool.quote_path.is_none()).chain([&TOP_UP]);
        let mut calls: Vec<(String, Value)> = sold.map(|tool| (tool.path().to_owned(), tool.example())).collect();
        calls.push((shop.purchase_path(), json!({})));
        calls.push((shop.execute_path(), crate::souls_market::text("two words")));
        let mut challenges = Vec::new();
        for (path, body) in &calls {
            let unpaid = payer.client.post(path, &[("idempotency-key", "one")], body).await;
            let header = unpaid.header("payment-required").unwrap().len();
            let challenge = unpaid.base64_header("payment-required");
            let mut bare = challenge.clone();
            bare["extensions"].as_object_mut().unwrap().remove("bazaar");
            let before = base::encoding::base64_standard(bare.to_string().as_bytes()).len();
            println!("402 of {path}: header {before} -> {header} bytes, body {} bytes", unpaid.text.len());
            assert!(header <= 3 * 1024, "{path}: {header}");
            assert_eq!(unpaid.json()["extensions"]["bazaar"]["info"], challenge["extensions"]["bazaar"]["info"]);
            challenges.push(challenge);
        }
        let over_mcp: Vec<Value> = CATALOG.iter().map(|tool| bazaar::mcp(tool, &tool.mcp_name("Agora"))).collect();
        let about = json!({"challenges": challenges, "extensions": over_mcp});
        let told = lines(Command::new("node").arg(folder.join("bazaar.mjs")), &about).await;
        let (judged, listed) = told.split_at(calls.len() + over_mcp.len());
        assert!(judged.iter().all(|verdict| verdict["valid"] == true), "{judged:?}");
        for ((path, _), listed) in calls.iter().zip(listed) {
            assert_eq!(listed["resourceUrl"], format!("{}{path}", stack.base_url));
            assert_eq!(listed["method"], "POST");
        }
        assert_eq!(listed[0]["body"], CATALOG[0].example());
    });
}

#[test]
fn the_status_is_cached_and_hides_internal_details() {
    run(async {
        let stack = stack().await;
        let client = Payer::with(&stack, 0).await.client;
        let healthy = eventually("a sweep", || async {
            let answer = client.get("/v1/status", &[]).await;
            (answer.status == 200).then_some(answer)
        })
        .await;
        let body = healthy.json();
        assert_eq!(body["status"], "healthy");
        for name in ["database", "queue", "soul_queue", "chain", "sweep"] {
            assert_eq!(body["dependencies"][name]["status"], "healthy", "{name}: {body}");
        }
        let again = client.get("/v1/status", &[]).await;
        assert_eq!(again.json()["observed_at"], body["observed_at"], "the same look");

        let lost = ChainConfig { rpc_url: "http://user:secret@127.0.0.1:1".to_owned(), ..stack.config.chain.clone() };
        let app = App { chain: Chain::new(PlainHttp::new(None), &lost), ..stack.app.clone() };
        let router = meta::router(app, Vec::new());
        let request = http::Request::get("/v1/status").body(axum::body::Body::empty()).unwrap();
        let answer = router.oneshot(request).await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers()[header::RETRY_AFTER].to_str().unwrap()), (503, "10"));
        let bytes = axum::body::to_bytes(answer.into_body(), 10_000).await.unwrap();
        let body: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(
            (&body["status"], &body["dependencies"]["chain"]["status"]),
            (&json!("degraded"), &json!("degraded"))
        );
        assert_eq!(body["dependencies"]["database"]["status"], "healthy");
        assert!(!body.to_string().contains("secret"), "{body}");
    });
}

/// Lists and documents that shared caches may keep. Everything else is private.
const PUBLIC: [&str; 25] = [
    "/",
    "/llms.txt",
    "/llms-full.txt",
    "/skill.md",
    "/guides/{page}",
    "/pricing",
    "/pricing.md",
    "/v1/stats",
    "/v1/status",
    "/v1/tools/discover",
    "/.well-known/x402",
    "/.well-known/jwks.json",
    "/.well-known/{document}",
    "/.well-known/acp.json",
    "/.well-known/ucp-agent.json",
    "/.well-known/acp/manifest.json",
    "/openapi.json",
    "/docs",
    "/docs/{asset}",
    "/v1/soul/",
    "/v1/soul",
    "/v1/soul/browse",
    "/v1/soul/search",
    "/v1/soul/stats",
    "/v1/soul/ranking",
];

/// Calls every route with a token whose limits are so small that many calls exceed them.
#[test]
fn every_answer_has_the_headers_of_its_kind() {
    run(async {
        let stack = stack_with(|options| options.with("RATE_LIMIT_SCALE", "0.1")).await;
        let payer = Payer::with(&stack, 0).await;
        let token = payer.token(&stack).await;
        let (mut refused, mut counted) = (0, 0);
        for route in routes::all() {
            let path = filled(route.path);
            for headers in [vec![], vec![("authorization", token.as_str())]] {
                let answer = payer.client.send(route.method, &path, &headers, "").await.unwrap();
                let what = format!("{} {path}: {}", route.method, answer.status);
                check_headers(&what, &answer.headers, answer.status, route.path);
                refused += u32::from(answer.status == 429);
                counted += u32::from(answer.headers.contains_key("ratelimit"));
            }
        }
        assert!(refused > 3 && counted > 10, "{refused} refused of {counted} counted");
        let taken = Taken { policy: "read", limit: 120, window_secs: 60, remaining: 0, reset_secs: 7 };
        for error in [
            ApiError::RequestInProgress,
            ApiError::RateLimited(taken),
            ApiError::ServicePaused(String::new()),
            ApiError::NotConfigured { what: "cards".to_owned() },
            ApiError::Unavailable(StoreError::new("a cause")),
        ] {
            let code = error.code();
            let answer = error.into_response();
            assert!(answer.headers().contains_key(header::RETRY_AFTER), "{code}");
            assert_eq!(answer.headers()[header::CACHE_CONTROL], "no-store", "{code}");
        }
    });
}

fn filled(path: &str) -> String {
    let mut path =
        path.replace("{document}", "agora-receipts.json").replace("{page}", "paying.md").replace("{asset}", "docs.css");
    for name in ["{id}", "{reference}", "{token}", "{slug}", "{service}", "{path+}", "{event}", "{handler}"] {
        path = path.replace(name, "x");
    }
    path
}

#[track_caller]
fn check_headers(what: &str, headers: &HeaderMap, status: u16, route: &str) {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let kept = text("cache-control").unwrap_or_else(|| panic!("{what} has no Cache-Control"));
    if status == 200 && (PUBLIC.contains(&route) || route == "/v1/soul/service-types" || route == "/v1/soul/templates")
        || route == "/v1/status"
    {
        assert!(kept.starts_with("public, max-age="), "{what}: {kept}");
    } else {
        assert_eq!(kept, "no-store", "{what}");
    }
    assert!(headers.contains_key("content-type") || status == 204, "{what}");
    // A token can never buy credits.
    if status == 429 || status == 503 && route != "/v1/credits/top-up" {
        assert!(text("retry-after").is_some_and(|seconds| seconds.parse::<u32>().is_ok()), "{what}");
    }
    if let Some(limit) = text("ratelimit-limit") {
        let (policy, state) = (text("ratelimit-policy").unwrap(), text("ratelimit").unwrap());
        let (left, reset) = (text("ratelimit-remaining").unwrap(), text("ratelimit-reset").unwrap());
        let name = policy.split(';').next().unwrap();
        assert!(policy.starts_with(&format!("{name};q={limit};w=")), "{what}: {policy}");
        assert_eq!(state, format!("{name};r={left};t={reset}"), "{what}");
    } else {
        assert_ne!(status, 429, "{what} says nothing of its limit");
    }
}

/// A stack's variables, in the form the doctor gets them.
fn of(stack: &Stack) -> std::collections::HashMap<String, String> {
    let mut environment = stack.environment.clone();
    environment.insert("PUBLIC_BASE_URL".to_owned(), stack.base_url.clone());
    environment
}

#[test]
fn the_doctor_names_problems_and_their_fixes() {
    use local::doctor::{Level, examine};
    run(async {
        let stack = stack().await;
        let client = Payer::with(&stack, 0).await.client;
        eventually("a sweep", || async {
            let answer: Answer = client.get("/v1/status", &[]).await;
            (answer.status == 200).then_some(())
        })
        .await;
        let report = examine(&of(&stack)).await;
        assert_ne!(report.worst(), Level::Fail, "{}", report.text());
        for check in
            ["chain", "token domain", "token transfers", "relayer gas", "payee", "receipt key", "served keys", "status"]
        {
            assert!(
                report.0.iter().any(|finding| finding.check == check && finding.level == Level::Ok),
                "{check}: {}",
                report.text()
            );
        }

        let other_key = evm::hex0x(&[7; 32]);
        for (name, value, level, check, remedy) in [
            ("CHAIN_ID", "8453", Level::Fail, "chain", "set CHAIN_RPC_URL to an endpoint of chain 8453"),
            (
                "CHAIN_RPC_URL",
                "http://127.0.0.1:1",
                Level::Fail,
                "chain",
                "set CHAIN_RPC_URL to an endpoint that answers",
            ),
            ("RELAYER_PRIVATE_KEY", &other_key, Level::Fail, "relayer gas", "send ETH on chain 84532 to 0x"),
            ("USDC_NAME", "USD Coin", Level::Fail, "token domain", "set USDC_NAME=\"USDC\" and USDC_VERSION=\"2\""),
            ("USDC_ADDRESS", "0x00000000000000000000000000000000000000ff", Level::Fail, "token", "set USDC_ADDRESS"),
            ("PAY_TO", &stack.config.chain.token.address.to_string(), Level::Fail, "payee", "set PAY_TO to a wallet"),
            ("PAY_TO", "me", Level::Fail, "configuration", "correct PAY_TO"),
            (
                "JOB_QUEUE_URL",
                "http://127.0.0.1:1/jobs",
                Level::Fail,
                "queue JOB_QUEUE_URL",
                "set JOB_QUEUE_URL to the URL",
            ),
            ("TABLE_PREFIX", "other", Level::Fail, "table other-jobs", "set TABLE_PREFIX to the stack's name"),
            ("SERVICE_SECRET", &"x".repeat(40), Level::Fail, "receipt key", "let the scheduler run"),
            ("SERVICE_NAME", "Other", Level::Fail, "service", "set SERVICE_NAME to the same value"),
            ("PUBLIC_BASE_URL", "http://127.0.0.1:1", Level::Fail, "service", "correct PUBLIC_BASE_URL"),
            ("FACILITATOR_URL", "http://127.0.0.1:1", Level::Fail, "facilitator", "set FACILITATOR_URL to one"),
            ("EMAIL_DOMAINS", "localhost", Level::Fail, "configuration", "correct EMAIL_DOMAINS"),
            ("EMAIL_PROVIDERS", "", Level::Warn, "e-mail", "set EMAIL_PROVIDERS to ses or smtp"),
            ("EMAIL_PROVIDERS", "ses", Level::Warn, "e-mail", "EMAIL_TOPICS to that topic"),
            ("EMAIL_PROVIDERS", "smtp", Level::Fail, "e-mail", "set SMTP_URL and MAIL_FROM"),
            ("SEARCH_PROVIDERS", "gogle", Level::Fail, "configuration", "correct SEARCH_PROVIDERS"),
            ("SEARCH_PROVIDERS", "brave", Level::Warn, "providers", "take it out of SEARCH_PROVIDERS"),
            ("SMS_PROVIDERS", "", Level::Warn, "texts", "set SMS_PROVIDERS to aws_sms or twilio"),
            ("SMS_PROVIDERS", "aws_sms", Level::Warn, "texts", "SMS_TOPICS to that topic"),
            ("SMS_PROVIDERS", "twilio", Level::Fail, "texts", "set twilio in PROVIDER_KEYS"),
            ("SMS_PROVIDERS", "twilio", Level::Warn, "texts", "set sms in PRICES"),
            ("CHAIN_RPC_ULR", "http://x", Level::Warn, "variable CHAIN_RPC_ULR", "CHAIN_RPC_URL?"),
            ("PROVIDER_KEYS", "{}", Level::Warn, "tools", "set PROVIDER_KEYS='{\"courtlistener\""),
            (
                "PROVIDER_KEYS",
                r#"{"courtlistener":"k","fmcsa":"k","sam":"k"}"#,
                Level::Warn,
                "tools",
                "set BLOB_BUCKET (or, for a local stack, BLOB_FOLDER)",
            ),
        ] {
            let mut environment = of(&stack);
            environment.insert(name.to_owned(), value.to_owned());
            let report = examine(&environment).await;
            let is_found = report.0.iter().any(|finding| {
                let said = finding.remedy.as_ref().is_some_and(|said| said.contains(remedy));
                finding.check == check && finding.level == level && said
            });
            assert!(is_found, "{name}={value}: {}", report.text());
        }
    });
}

/// For a deployment the doctor reads the variables from the functions, here from a stand-in that lists them in two
/// pages.
#[test]
fn the_doctor_reads_the_functions_variables() {
    use axum::extract::Query;
    use local::doctor::{Level, examine, template_variables};
    use std::collections::HashMap;
    run(async {
        let stack = stack().await;
        let mut functions: HashMap<String, serde_json::Map<String, Value>> = HashMap::new();
        let given = template_variables();
        let all: Vec<&String> = given.values().flatten().filter(|name| *name != "all").collect();
        for (name, of) in &given {
            for function in all.iter().filter(|function| of.contains("all") || of.contains(**function)) {
                let value = stack.environment.get(name).cloned().unwrap_or_default();
                functions.entry((*function).clone()).or_default().insert(name.clone(), json!(value));
            }
        }
        let worst = async |functions: HashMap<String, serde_json::Map<String, Value>>| {
            let listed: Vec<Value> = functions
                .into_iter()
                .map(|(name, variables)| json!({"FunctionName": format!("agora-{name}-Xy12"), "Environment": {"Variables": variables}}))
                .chain([json!({"FunctionName": "another-WorkerFunction-Xy12"})])
                .collect();
            let pages = axum::routing::get(move |Query(query): Query<HashMap<String, String>>| async move {
                let (first, second) = listed.split_at(3);
                let page = match query.get("Marker").map(String::as_str) {
                    None => json!({"Functions": first, "NextMarker": "a b/="}),
                    Some("a b/=") => json!({"Functions": second}),
                    Some(other) => panic!("{other}"),
                };
                page.to_string()
            });
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = format!("http://{}", listener.local_addr().unwrap());
            let router = axum::Router::new().route("/2015-03-31/functions/", pages);
            let server = tokio::spawn(async move { axum::serve(listener, router).await });
            let mut environment = of(&stack);
            environment.insert("TABLE_PREFIX".to_owned(), "agora".to_owned());
            environment.insert("AWS_ENDPOINT_URL_LAMBDA".to_owned(), address);
            // Only the functions have this variable.
            environment.remove("CHAIN_RPC_URL");
            let report = examine(&environment).await;
            server.abort();
            report
        };
        let level = |report: &local::doctor::Report, check: &str| {
            report.0.iter().find(|finding| finding.check == check).map(|finding| finding.level)
        };
        let report = worst(functions.clone()).await;
        assert_eq!(level(&report, "functions"), Some(Level::Ok), "{}", report.text());
        assert_eq!(level(&report, "chain"), Some(Level::Ok), "{}", report.text());
        functions.get_mut("WorkerFunction").unwrap().remove("JOB_QUEUE_URL");
        functions.get_mut("MetaFunction").unwrap().insert("CHAIN_ID".to_owned(), json!("8453"));
        functions.get_mut("MetaFunction").unwrap().insert("DEBUG".to_owned(), json!("1"));
        let report = worst(functions).await;
        assert_eq!(level(&report, "variables of WorkerFunction"), Some(Level::Fail), "{}", report.text());
        assert_eq!(level(&report, "variables of MetaFunction"), Some(Level::Warn), "{}", report.text());
        assert_eq!(level(&report, "variable CHAIN_ID"), Some(Level::Fail), "{}", report.text());
    });
}

/// Runs the program as `make doctor` does, against a stack, and checks its exit code.
#[test]
fn the_doctors_exit_code_shows_what_it_found() {
    run(async {
        let stack = stack().await;
        let client = Payer::with(&stack, 0).await.client;
        eventually("a sweep", || async { (client.get("/v1/status", &[]).await.status == 200).then_some(()) }).await;
        let ends = async |change: Option<(&str, &str)>| {
            let mut doctor = Command::new(crate::kill::program("doctor"));
            doctor.arg("--json").env_clear().envs(of(&stack)).envs(change).stdin(Stdio::null());
            let output =
                doctor.output().await.unwrap_or_else(|error| panic!("{error}; run cargo build -p local first"));
            let findings: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
            (output.status.code(), findings)
        };
        let (code, findings) = ends(None).await;
        assert_eq!(code, Some(0), "{findings:?}");
        let (code, findings) = ends(Some(("TABLE_PREFIX", "other"))).await;
        assert_eq!(code, Some(1), "{findings:?}");
        assert!(findings.iter().any(|finding| finding["level"] == "fail" && finding["remedy"].is_string()));
    });
}
