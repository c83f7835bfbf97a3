//! Files handed out by link, and free routes that ask a provider.

use std::time::Duration;

use api::routes;
use base::ids::random_uuid;
use gate::limits::{RateLimitSlot, Subject};
use gate::links;
use tools_email::compose::Attached;
use tools_email::mailbox::{self, Body, Inbound};

use super::*;

/// A mail in the payer's inbox with an attachment that is too large for an answer.
async fn mail_with_attachment(it: &Deployed, payer: &Payer, content: Vec<u8>) -> String {
    let (now, id) = (it.stack.app.clock.now(), random_uuid());
    let size = u32::try_from(content.len()).unwrap();
    let (filename, content_type) = ("letters.bin".to_owned(), "text/html".to_owned());
    let mail: Inbound = serde_json::from_value(json!({
        "id": id, "agent": payer.agent(), "to": "a@agents.test", "from": "b@example.com", "subject": "Letters",
        "thread_id": id, "received_at": now, "size": 2 * size, "expires": now.plus(Duration::from_secs(86_400)).secs(),
        "attachments": [{"filename": filename, "content_type": content_type, "size": size}],
    }))
    .unwrap();
    let body = Body { text: "See the file.".to_owned(), html: None };
    let (db, blobs) = (&it.stack.app.db, &*it.stack.app.blobs);
    assert!(
        mailbox::put_inbound(db, blobs, &mail, &body, vec![Attached { filename, content_type, content }], b"")
            .await
            .unwrap()
    );
    id.to_string()
}

/// The blob store serves a link as often as it is asked. So each link counts, and works only as long as a download needs to begin.
#[test]
fn a_link_to_a_file_counts_its_size_and_is_for_one_download() {
    run(async {
        let it = deployed().await;
        let payer = Payer::with(&it.stack, 0).await;
        let content = vec![b'x'; 3 << 20];
        let mail = mail_with_attachment(&it, &payer, content.clone()).await;
        let read = async || {
            let proof = it.proof(&payer, "read");
            payer.client.get(&format!("/v1/tools/inbox/{mail}"), &[("x-agent-proof", &proof)]).await
        };
        let path = |url: &str| url.strip_prefix(&it.stack.base_url).expect("an address of this stack").to_owned();
        let shown = read().await.json();
        let link = path(shown["attachments"][0]["url"].as_str().unwrap_or_else(|| panic!("{shown}")));
        let open = async || payer.client.get(&link, &[]).await;
        let used = async || {
            let slot = RateLimitSlot::now(&it.stack.app, Subject::Agent(payer.agent()), Class::Files);
            slot.used(&it.stack.app).await.unwrap()
        };
        assert_eq!(used().await, 0, "a mail that is read hands out nothing");
        let opened = open().await;
        assert_eq!(opened.status, 307, "{}", opened.text);
        assert_eq!(used().await, content.len() as u64 / 1024);
        let place = path(opened.header("location").expect("a place"));
        let file = payer.client.get(&place, &[]).await;
        assert!(file.text.as_bytes() == content, "byte for byte");
        assert_eq!(file.header("content-type"), Some("application/octet-stream"), "nothing of a stranger's is a page");
        it.stack.app.clock.advance(links::VALID);
        assert_eq!(payer.client.get(&place, &[]).await.status, 401, "for one download");

        let limit = Class::Files.limit();
        it.use_up(&format!("RATE#agent:{}#{}", payer.agent(), limit.name), limit.count.into(), 1).await;
        let through = until_limited(3, async |_| open().await).await;
        assert_eq!(through.len(), 1, "the one that exceeds the limit still passes");
        assert_eq!(read().await.status, 200, "the mail is told all the same");
        it.stack.app.clock.advance(Duration::from_secs(15 * 60));
        assert_eq!(open().await.error(), (404, "file_not_found".to_owned()), "the link itself has expired");
    });
}

/// A place that hands out a link has to count it first: with `gate::links`, or, for files of jobs, by the job's price.
#[test]
fn links_are_made_only_where_they_are_counted() {
    let counted = ["common/gate/src/files.rs", "common/gate/src/links.rs"];
    let mut found = Vec::new();
    let mut folders = vec![root().join("common"), root().join("functions")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                let is_store = name.starts_with("common/platform/src/store/");
                if !is_store && std::fs::read_to_string(&path).unwrap().contains("Access::Get") {
                    found.push(name);
                }
            }
        }
    }
    found.sort();
    assert_eq!(found, counted);
}

/// The table of free routes that ask others names routes that exist and are free.
#[test]
fn the_table_of_routes_that_ask_others_names_free_routes() {
    let text = std::fs::read_to_string(root().join("docs/ABUSE.md")).unwrap();
    let section = text.split("\n## Free routes that ask others\n").nth(1).expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut named = 0;
    for row in section.lines().filter(|line| line.starts_with("| `")) {
        let first = row.split(" | ").next().unwrap_or_default();
        for route in first.split('`').skip(1).step_by(2) {
            let (method, path) = route.split_once(' ').unwrap_or_else(|| panic!("{route}"));
            let is_known = routes::all().any(|known| (known.method, known.path) == (method, path));
            assert!(is_known, "{route}");
            named += 1;
        }
    }
    assert!(named >= 15, "{named}");
}

/// A wallet costs nothing, and each of these asks somebody who may charge, or throttle, for it.
#[test]
fn wallets_without_money_share_their_sources_questions() {
    run(async {
        let it = deployed().await;
        let limit = Class::Read.limit().count as usize;
        let wallets = [Payer::with(&it.stack, 0).await, Payer::with(&it.stack, 0).await];
        let owner = Payer::with(&it.stack, 0).await;
        owner.give_credits(&it.stack, 50_000).await;
        let balance = async |payer: &Payer| {
            let proof = it.proof(payer, "read");
            payer.client.get("/v1/tools/balance", &[("x-agent-proof", &proof)]).await
        };
        it.node.take_seen();
        let asked = until_limited(2 * limit, async |turn| balance(&wallets[turn % 2]).await).await;
        assert_eq!((asked.len(), it.node.take_seen().len()), (limit, limit));
        assert_eq!(balance(&owner).await.status, 200, "one with money has a limit of its own");
    });
}

/// What a free read writes for good has a limit by source, whatever the wallet.
#[test]
fn first_addresses_of_wallets_without_money_are_limited_per_source() {
    run(async {
        let it = deployed().await;
        let domains = async |payer: &Payer| {
            let proof = it.proof(payer, "read");
            payer.client.get("/v1/tools/email/domains", &[("x-agent-proof", &proof)]).await
        };
        let limit = Class::Address.limit();
        let source = platform::http::limit::name_of("127.0.0.1".parse().ok());
        it.use_up(&format!("RATE#{source}#{}", limit.name), limit.count.into(), 1).await;
        let first = Payer::with(&it.stack, 0).await;
        it.database.take_seen();
        let listed = domains(&first).await;
        assert_eq!(listed.status, 200, "{}", listed.text);
        let units = write_units(&it.database.take_seen());
        println!("first addresses take {units} write units");
        assert!(units <= most::PROVEN + 1.0 + most::ADDRESS + NOISE, "{units}");
        assert_eq!(domains(&Payer::with(&it.stack, 0).await).await.error(), (429, "rate_limit_exceeded".to_owned()));
        assert_eq!(domains(&first).await.status, 200, "it has its addresses");
        let owner = Payer::with(&it.stack, 0).await;
        owner.give_credits(&it.stack, 50_000).await;
        assert_eq!(domains(&owner).await.status, 200);
    });
}
