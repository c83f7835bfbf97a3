//! The knowledge tools called by the public Python SDKs, with both path families, without internet and vendors. What
//! local peers can do is done. Every other call fails with a stable error code and is paid back. (The tools about
//! people and companies are in `people`.)

use base::ids::AgentId;
use base::money::Usdc;
use catalog::CATALOG;
use ledger::account;
use local::report;
use serde_json::{Value, json};
use tokio::process::Command;
use tools_lookups::lookups;

use super::{installed, lines, sdks, wallet};
use crate::support::zone::Zone;
use crate::support::{eventually, run, stack_with};

/// The two versions, which name paths differently.
const VERSIONS: [&str; 2] = ["0.37.0", "0.50.0"];
/// No server listens there, so lookups in public registers fail at once.
const NOWHERE: &str = "http://127.0.0.1:9";

/// The name of each call in both versions, and its input.
fn calls(site: &str) -> Value {
    let wiki =
        sites::pages().iter().find(|page| page.kind == sites::PageKind::Wiki && page.topic.is_some()).expect("a page");
    let (fact, _) = wiki.truth.facts.first().expect("a fact");
    let call = |name: &str, older: &str, newer: &str, input: Value| json!({"name": name, "older": older, "newer": newer, "input": input});
    let page = || wiki.local_url(site);
    json!([
        call("web_read", "web_read", "web_read", json!({"url": page()})),
        call("web_search", "web_search", "web_search", json!({"query": wiki.truth.title, "max_results": 3})),
        call("research", "research", "research", json!({"topic": fact, "depth": "quick"})),
        call("verify_email", "verify_email", "person_email_status", json!({"email": "anna@mail.test"})),
        call(
            "research_articles",
            "article_search",
            "person_articles",
            json!({"name": "Ada Reed", "company": "Brightkiln"})
        ),
        call("research_newsfeed", "person_newsfeed", "person_posts", json!({"social_media_url": page()})),
        call("research_interests", "person_interests", "person_interests", json!({"social_media_url": page()})),
        call("research_social", "social_profiles", "person_social_accounts", json!({"social_media_url": page()})),
        call(
            "research_interactions",
            "person_interactions",
            "person_followers",
            json!({"social_media_url": "https://www.linkedin.com/in/somebody", "type": "followers"})
        ),
        call("local_search", "local_search", "business_find", json!({"location": ["Calder"], "keywords": ["bakery"]})),
        call("local_resolve", "local_resolve", "business_resolve", json!({"name": "Bakery", "city": "Calder"})),
        call("gov_solicitations", "gov_solicitations", "record_solicitations_find", json!({"naics": ["541511"]})),
    ])
}

/// Every lookup with the catalog's example input. The newer version calls the lookups of its manifest by path.
fn manifest() -> Vec<Value> {
    let row = |row: &&lookups::row::Lookup| json!({"name": row.spec.name, "path": row.spec.path(), "input": row.spec.example()});
    lookups::ROWS.iter().map(row).collect()
}

#[test]
fn the_public_sdks_use_every_tool_offline() {
    run(async {
        let Some(python) = installed("python").await else { return };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let host = listener.local_addr().expect("an address").to_string();
        tokio::spawn(async move { axum::serve(listener, sites::router()).await });
        let zone = Zone::new().mx("mail.test", 10, "mx.mail.test").a("mx.mail.test", "127.0.0.1").start().await;
        let sources = lookups::ROWS
            .iter()
            .flat_map(|row| row.requests.iter().filter_map(|request| request.source).chain([row.source]));
        let nowhere: serde_json::Map<String, Value> =
            sources.map(|source| (source.provider.to_owned(), json!(NOWHERE))).collect();
        for version in VERSIONS {
            let stack = stack_with(|options| {
                options
                    .with("SERVICE_NAME", "OneShot")
                    .with("LOCAL_FETCH_ALLOW", host.as_str())
                    .with("DNS_SERVER", zone.address().to_string())
                    .with("RATE_LIMIT_SCALE", "100")
                    .with("PROVIDER_URLS", json!(nowhere).to_string())
            })
            .await;
            let (key, address) = wallet(&stack, 5_000_000).await;
            let mut about = report::json(&stack);
            about["key"] = json!(key);
            about["calls"] = calls(&format!("http://{host}"));
            about["lookups"] = json!(manifest());
            let mut command = Command::new(python.join(".venv/bin/python"));
            command.arg(python.join("knowledge.py")).arg(version).arg(sdks::folder(&python, version));
            let told = lines(&mut command, &about).await;
            let (mut done, mut price) = (Vec::new(), Usdc::ZERO);
            for line in &told {
                let name = line["name"].as_str().expect("a name");
                let tool = CATALOG.iter().find(|tool| tool.name == name).unwrap_or_else(|| panic!("{name}"));
                if line.get("result").is_some() {
                    assert!(line["result"].is_object(), "{line}");
                    done.push(name);
                    price = price.checked_add(tool.price.usual()).expect("a sum");
                } else if let Some(refused) = line.get("refused") {
                    let body: Value = serde_json::from_str(refused["body"].as_str().unwrap_or_default()).expect("JSON");
                    assert_eq!(
                        (&refused["status"], &body["error"]),
                        (&json!(503), &json!("provider_unavailable")),
                        "{line}"
                    );
                    assert!(body["reason"].is_string(), "{line}");
                } else {
                    assert_eq!(line["failed"]["code"], "provider_unavailable", "{line}");
                }
            }
            for name in ["web_read", "web_search", "research", "verify_email", "research_social"] {
                assert!(done.contains(&name), "{version}: {name} was not done: {told:?}");
            }
            let calls = calls("").as_array().map_or(0, Vec::len);
            assert!(told.len() >= calls + if version == VERSIONS[1] { 50 } else { 0 }, "{}", told.len());
            // The price of failed calls was returned as credits or never left the wallet.
            eventually("the money to be where it belongs", || async {
                let left = u64::try_from(stack.chain.as_ref()?.balance_of(&address).await.ok()?).ok()?;
                let agent = AgentId::of(address.parse().ok()?);
                let credits = account::load(&stack.app.db, agent).await.ok()?.credits;
                (left + credits.micro() + price.micro() == 5_000_000).then_some(())
            })
            .await;
            eprintln!("oneshot-python {version}: {} calls, done: {}", told.len(), done.join(", "));
        }
    });
}
