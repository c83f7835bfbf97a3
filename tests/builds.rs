//! Websites: quoted, built, looked at in a real Chromium, shown on a host of their own, changed, written to, and ended.

use base::clock::Clock;
use base::ids::RequestId;
use ledger::receipt::{ExecutionStatus, Receipt};
use local::stack::Background;
use local::{Options, Stack};
use platform::auth::token::TokenCaps;
use serde_json::{Value, json};
use tools_build::{leads, lease, serve, site};
use uuid::Uuid;

use crate::support::chromium::chromium;
use crate::support::proxy::{Life, Proxy};
use crate::support::{Answer, Client, Payer, books, eventually, run, stack_with};

const PATH: &str = "/v1/tools/build";
const DESCRIPTION: &str = "A bakery in Lyon. We bake sourdough bread with flour from a mill in the Ain. Sourdough 4.50 EUR, rye 5.20 EUR, \
                           croissant 1.30 EUR. Open Tuesday to Sunday, 7:00 to 19:00. 12 rue Mercière, Lyon. Phone +33 4 78 00 00 00.";

fn brief() -> Value {
    json!({"product": {"name": "Four Miche", "description": DESCRIPTION}, "type": "restaurant"})
}

async fn stack_in(browser: &str) -> Stack {
    stack_with(|options| options.with("BROWSER_URL", browser)).await
}

/// A wallet with credits, and its token: both are needed for more than one site.
async fn buyer(stack: &Stack) -> (Payer, String) {
    let payer = Payer::with(stack, 0).await;
    payer.give_credits(stack, 20_000_000).await;
    let token = payer.token(stack).await;
    (payer, token)
}

/// Asks for the price, and pays it from the credits.
async fn ask(payer: &Payer, token: &str, body: &Value) -> Answer {
    let unpaid = payer.client.post(PATH, &[("authorization", token)], body).await;
    if unpaid.status != 402 {
        return unpaid;
    }
    let quote = unpaid.json()["context"]["quote_id"].as_str().expect("a quote").to_owned();
    payer.client.post(PATH, &[("authorization", token), ("x-quote-id", &quote)], body).await
}

/// Buys a build and waits for its end.
async fn built(payer: &Payer, token: &str, body: &Value) -> Value {
    let accepted = ask(payer, token, body).await;
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    payer.finished(accepted.json()["request_id"].as_str().expect("an id")).await
}

/// A visitor. Sites are on another host, which the API's description says nothing of.
struct Visitor {
    client: Client,
    host: String,
}

impl Visitor {
    fn of(stack: &Stack) -> Visitor {
        let host = stack.environment["SITES_URL"].clone();
        Visitor { client: Client::new(&host), host }
    }

    async fn get(&self, url: &str) -> Answer {
        self.client.get(url.strip_prefix(&self.host).expect("an address of the sites' host"), &[]).await
    }
}

#[test]
fn a_brief_becomes_a_site_that_is_changed_later() {
    run(async {
        let Some(browser) = chromium().await else { return };
        let stack = stack_in(&browser.url).await;
        let payer = Payer::with(&stack, 2_000_000).await;

        // The quote is arithmetic over the brief, line by line.
        let unpaid = payer.ask(PATH, &brief()).await;
        assert_eq!(unpaid.status, 402, "{}", unpaid.text);
        let quote = unpaid.json()["context"].clone();
        assert_eq!(quote["pricing"]["total"], "1.000000", "{quote}");
        assert_eq!((&quote["product_name"], &quote["type"]), (&json!("Four Miche"), &json!("restaurant")), "{quote}");

        let accepted = payer.redeem(PATH, &unpaid, &brief()).await;
        assert_eq!(accepted.status, 202, "{}", accepted.text);
        let job = payer.finished(accepted.json()["request_id"].as_str().expect("an id")).await;
        let result = &job["result"];
        assert_eq!((&job["status"], &result["success"]), (&json!("completed"), &json!(true)), "{job}");
        assert_eq!((&result["build_id"], &result["version"]), (&job["request_id"], &json!(1)), "{job}");
        assert!(result["design_score"].as_f64().expect("a score") >= 90.0, "{}", result["checks"]);

        // Everything that was asked for is on the page, in the brief's words, and no script is.
        let visitor = Visitor::of(&stack);
        let address = result["production_url"].as_str().expect("an address").to_owned();
        let page = visitor.get(&address).await;
        assert_eq!(page.status, 200, "{}", page.text);
        for words in ["Four Miche", "sourdough", "4.50", "19:00", "Mercière"] {
            assert!(page.text.contains(words), "{words} is not in {}", page.text);
        }
        assert!(!page.text.contains("<script") && !page.text.contains(site::ROOT), "{}", page.text);
        assert_eq!(page.header("content-security-policy"), Some(serve::POLICY));
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
        let style = visitor.get(&format!("{address}style.css")).await;
        assert_eq!((style.status, style.header("content-type")), (200, Some("text/css; charset=utf-8")));
        let lost = visitor.get(&format!("{address}nowhere/")).await;
        assert_eq!(lost.status, 404);
        // Words before the id are the site's own, so that nobody makes an address that looks like another's.
        let forged = address.replace("four-miche", "your-bank");
        assert_eq!(visitor.get(&forged).await.status, 404);
        let moved = visitor.get(address.trim_end_matches('/')).await;
        assert_eq!(moved.status, 308);

        // The archive and the picture are files of the job.
        let proof = payer.proof("read");
        let files = format!("/v1/requests/{}/files", job["request_id"].as_str().expect("an id"));
        let listed = payer.client.get(&files, &[("x-agent-proof", &proof)]).await.json();
        let names: Vec<_> = listed["files"].as_array().expect("files").iter().map(|file| &file["path"]).collect();
        assert_eq!(names, ["preview.png", "site.zip"], "{listed}");

        // A change is a version of its own; the old one stays at its address.
        let first = result["preview_url"].as_str().expect("an address").to_owned();
        let change = json!({"build_id": result["build_id"], "changes": "Replace \"Four Miche\" with \"Four Demiche\""});
        let unpaid = payer.ask(PATH, &change).await;
        let told = unpaid.json()["context"].clone();
        assert_eq!((&told["pricing"]["total"], &told["is_refine"]), (&json!("0.500000"), &json!(true)), "{told}");
        let accepted = payer.redeem(PATH, &unpaid, &change).await;
        let job = payer.finished(accepted.json()["request_id"].as_str().expect("an id")).await;
        assert_eq!((&job["status"], &job["result"]["version"]), (&json!("completed"), &json!(2)), "{job}");
        assert_eq!(job["result"]["production_url"], address, "{job}");
        assert!(visitor.get(&address).await.text.contains("Four Demiche"));
        let before = visitor.get(&first).await;
        assert!(before.status == 200 && !before.text.contains("Demiche"), "{}", before.text);
        assert!(before.text.contains("/v1/style.css"), "a version's files are the version's");

        // The operator takes it down, and puts it back.
        let build: Uuid = result["build_id"].as_str().expect("an id").parse().expect("a UUID");
        for (is_down, status) in [(true, 410), (false, 200)] {
            assert_eq!(site::switch(&stack.app.db, build, is_down).await.unwrap(), site::Switched::Done);
            assert_eq!(visitor.get(&address).await.status, status);
        }

        // Only the buyer changes it.
        let other = Payer::new(&stack).await;
        assert_eq!(other.ask(PATH, &change).await.json()["error"], "build_not_found");
    });
}

#[test]
fn what_cannot_be_built_costs_nothing() {
    run(async {
        let without = stack_with(|options| options).await;
        let payer = Payer::new(&without).await;
        let refused = payer.ask(PATH, &brief()).await;
        assert_eq!(refused.status, 503, "{}", refused.text);

        let Some(browser) = chromium().await else { return };
        let stack = stack_in(&browser.url).await;
        let (payer, token) = buyer(&stack).await;
        let with = |name: &str, value: Value| {
            let mut body = brief();
            body[name] = value;
            body
        };
        for (body, status) in [
            (json!({}), 400),
            (json!({"product": {"name": "A"}}), 400),
            (with("brand", json!({"primary_color": "red"})), 400),
            (with("pages", json!([{"path": "../x", "name": "A"}])), 400),
            (with("source_url", json!("http://169.254.169.254/latest")), 400),
            (with("lead_capture", json!({"enabled": true, "inbox_email": "somebody@example.com"})), 400),
            (with("domain", json!("example.com")), 503),
            (with("images", json!({"hero": "https://example.com/a.png"})), 503),
            (json!({"build_id": Uuid::nil(), "changes": "make it dark"}), 404),
        ] {
            let answer = ask(&payer, &token, &body).await;
            assert_eq!(answer.status, status, "{body}: {}", answer.text);
        }
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 20_000_000);

        // A wish that nothing is understood of, and a source that cannot be read, come back.
        let site = built(&payer, &token, &brief()).await["result"].clone();
        let change = json!({"build_id": site["build_id"], "changes": "Qwertz uiop asdf"});
        let job = built(&payer, &token, &change).await;
        assert_eq!(job["status"], "failed", "{job}");
        let job = built(&payer, &token, &with("source_url", json!("http://no-such-host.invalid/"))).await;
        assert_eq!((&job["status"], &job["result"]["cost"]), (&json!("completed"), &json!("1.000000")), "{job}");
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 18_000_000);
    });
}

#[test]
fn of_two_changes_at_once_one_is_made() {
    run(async {
        let Some(browser) = chromium().await else { return };
        let stack = stack_in(&browser.url).await;
        let (payer, token) = buyer(&stack).await;
        let site = built(&payer, &token, &brief()).await["result"].clone();
        let change = |words: &str| json!({"build_id": site["build_id"], "changes": words});
        let (dark, green) = (change("Make it dark"), change("Use #0a5c36"));
        let (one, two) = tokio::join!(ask(&payer, &token, &dark), ask(&payer, &token, &green));
        let mut answers = [one, two];
        answers.sort_by_key(|answer| answer.status);
        assert_eq!(answers.each_ref().map(|answer| answer.status), [202, 409], "{answers:?}");
        assert_eq!(answers[1].json()["error"], "build_busy");
        let job = payer.finished(answers[0].json()["request_id"].as_str().expect("an id")).await;
        assert_eq!((&job["status"], &job["result"]["version"]), (&json!("completed"), &json!(2)), "{job}");
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 18_500_000);
        // The lock is free when its job has ended.
        assert_eq!(built(&payer, &token, &green).await["result"]["version"], 3);
    });
}

#[test]
fn what_visitors_write_arrives_in_the_mailbox() {
    run(async {
        let Some(browser) = chromium().await else { return };
        let stack = stack_in(&browser.url).await;
        let (payer, token) = buyer(&stack).await;
        let mut body = brief();
        body["lead_capture"] = json!({"enabled": true});
        let job = built(&payer, &token, &body).await;
        assert_eq!(job["result"]["cost"], "1.250000", "{job}");
        let visitor = Visitor::of(&stack);
        let address = job["result"]["production_url"].as_str().expect("an address").to_owned();
        let page = visitor.get(&address).await;
        let path = address.strip_prefix(&visitor.host).expect("a path");
        let action = format!("{path}leads");
        assert!(page.text.contains(&format!("action=\"{action}\"")), "{}", page.text);
        let send = async |text: &str| {
            let headers = [("content-type", "application/x-www-form-urlencoded")];
            visitor.client.send("POST", &action, &headers, text.to_owned()).await.expect("an answer")
        };
        let sent = send("name=Ann&email=ann%40example.com&message=Is+there+rye+on+Monday%3F%0D%0ABcc%3A+x").await;
        assert_eq!(sent.status, 200, "{}", sent.text);
        let mail = eventually("the message to arrive", || async {
            let inbox = payer.get("/v1/tools/inbox?include_body=true").await.json();
            inbox["emails"].as_array().and_then(|mails| mails.first().cloned())
        })
        .await;
        let text = mail.to_string();
        assert!(text.contains("Is there rye on Monday?") && text.contains("ann@example.com"), "{mail}");
        for unusable in ["", "name=Ann&email=no&message=x", "name=Ann&email=a%40example.com&message="] {
            assert_eq!(send(unusable).await.status, 400, "{unusable}");
        }
        // So many a day, whoever writes.
        let build: Uuid = job["result"]["build_id"].as_str().expect("an id").parse().expect("a UUID");
        let (db, now) = (&stack.app.db, stack.app.clock.now());
        while platform::store::daily::take(db, format!("SITE#{build}#LEADS"), leads::MAX_A_DAY, now).await.unwrap() {}
        assert_eq!(send("name=Ann&email=a%40example.com&message=x").await.status, 429);
        // A site without a form takes nothing.
        let plain =
            built(&payer, &token, &brief()).await["result"]["production_url"].as_str().expect("an address").to_owned();
        let plain = format!("{}leads", plain.strip_prefix(&visitor.host).expect("a path"));
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        assert_eq!(visitor.client.send("POST", &plain, &headers, "name=A").await.expect("an answer").status, 404);
    });
}

#[test]
fn a_site_is_announced_taken_down_and_deleted() {
    run(async {
        let Some(browser) = chromium().await else { return };
        let clock = Clock::pinned(Clock::system().now());
        let (own, url) = (clock.clone(), browser.url.clone());
        let stack = stack_with(move |options| {
            let options = options.with("BROWSER_URL", url);
            Options { clock: own, background: Background::Worker, ..options }
        })
        .await;
        let (payer, token) = buyer(&stack).await;
        let job = built(&payer, &token, &brief()).await;
        let visitor = Visitor::of(&stack);
        let address = job["result"]["production_url"].as_str().unwrap_or_else(|| panic!("{job}")).to_owned();
        let build: Uuid = job["result"]["build_id"].as_str().expect("an id").parse().expect("a UUID");
        let toolbox = &stack.toolboxes["worker"];
        let look = async || lease::look(toolbox).await.unwrap().0;
        assert_eq!(look().await, 0, "nothing is due");
        clock.advance(site::HOSTED - site::NOTICE);
        let (one, two) = tokio::join!(look(), look());
        assert_eq!(one + two, 1, "it is announced once");
        assert_eq!(visitor.get(&address).await.status, 200);
        clock.advance(site::NOTICE);
        assert_eq!(look().await, 1);
        assert_eq!(visitor.get(&address).await.status, 410);
        assert_eq!(payer.ask(PATH, &json!({"build_id": build, "changes": "Make it dark"})).await.status, 404);
        clock.advance(site::KEPT);
        assert_eq!(look().await, 1);
        assert!(site::load(&stack.app.db, build).await.unwrap().is_none());
        assert!(site::load_version(&stack.app.db, build, 1).await.unwrap().is_none());
        assert_eq!(visitor.get(&address).await.status, 404);
        assert_eq!(look().await, 0, "nothing is left in the list");
    });
}

#[test]
fn single_pieces_are_files_of_their_job() {
    run(async {
        let stack = stack_with(|options| options).await;
        let (payer, token) = buyer(&stack).await;
        let path = "/v1/tools/build/asset";
        let headers = [("authorization", token.as_str())];
        for body in
            [json!({"kind": "logo"}), json!({"kind": "qr", "name": "A"}), json!({"kind": "poster", "name": "A"})]
        {
            assert_eq!(payer.client.post(path, &headers, &body).await.status, 400, "{body}");
        }
        for (body, names) in [
            (json!({"kind": "icons", "name": "Four Miche", "color": "#aa3300"}), 4),
            (json!({"kind": "social_card", "name": "<b>Four</b> Miche", "line": "Bread"}), 1),
            (json!({"kind": "qr", "text": "https://example.com/"}), 1),
        ] {
            let accepted = payer.client.post(path, &headers, &body).await;
            assert_eq!(accepted.status, 202, "{}", accepted.text);
            let job = payer.finished(accepted.json()["request_id"].as_str().expect("an id")).await;
            let files = job["result"]["files"].as_array().unwrap_or_else(|| panic!("{job}"));
            assert_eq!(files.len(), names, "{job}");
            let link = files[0]["download_url"].as_str().expect("a link");
            let proof = payer.proof("read");
            let file = payer.client.get(link, &[("x-agent-proof", &proof)]).await;
            assert_eq!((file.status, json!(file.text)), (200, files[0]["svg"].clone()));
        }
        assert_eq!(books::audit(&stack.app.db, payer.agent()).await.credits.micro(), 20_000_000 - 3 * 250_000);
    });
}

/// Upper bound of the requests of a build.
const MOST_STEPS: i64 = 120;

/// A worker that dies at a step, and one that goes on: the site is there if it was charged, and only then.
#[test]
fn a_build_is_published_once_or_paid_back_after_any_crash() {
    run(async {
        let Some(browser) = chromium().await else { return };
        let mut step = 3;
        let mut arrives = false;
        while dies_at(step, arrives, &browser.url).await {
            assert!(step < MOST_STEPS, "a build that never ends");
            // A build takes seconds: a sample of its steps, with both kinds of death.
            (step, arrives) = (step + 4, !arrives);
        }
        println!("a build: about {step} steps");
        assert!(step > 8, "a build has more steps than this");
    });
}

async fn dies_at(step: i64, last_one_arrives: bool, browser: &str) -> bool {
    let database = local::database::start(None).await.expect("a database");
    let life = Life::ending_at(i64::MAX, last_one_arrives);
    let to_database = Proxy::start(&database, life.clone()).await;
    let with_secret = |options: Options| {
        options
            .with("SERVICE_SECRET", "a secret that two processes of one deployment share")
            .with("BROWSER_URL", browser)
    };
    let first = stack_with(|options| {
        let options = with_secret(options).with("AWS_ENDPOINT_URL", &to_database.url);
        Options { background: Background::Worker, ..options }
    })
    .await;
    let payer = Payer::with(&first, 0).await;
    payer.give_credits(&first, 20_000_000).await;
    let (_, token) = payer.capped_token(&first, TokenCaps::default()).await;
    let unpaid = payer.client.post(PATH, &[("authorization", &token)], &brief()).await.json();
    let quote = unpaid["context"]["quote_id"].as_str().expect("a quote");
    let named = [("authorization", token.as_str()), ("idempotency-key", "once"), ("x-quote-id", quote)];
    life.end_after(step);
    let before = payer.client.try_post(PATH, &named, &brief()).await;
    // Nothing is asked meanwhile: that would count as a step.
    for _ in 0..60 {
        if life.is_over() || before.as_ref().is_none_or(|answer| answer.status != 202) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let died = life.is_over();
    first.kill().await;

    let second = stack_with(|options| with_secret(options).with("AWS_ENDPOINT_URL", &database)).await;
    local::stack::release_leases(&second.app.db, second.app.clock.now()).await.expect("leases");
    let (payer, db) = (payer.at(&second), &second.app.db);
    let label = format!("step {step}, arrives: {last_one_arrives}");
    let after = payer.client.post(PATH, &named, &brief()).await;
    assert!(matches!(after.status, 200 | 202), "{label}: {} {}", after.status, after.text);
    let receipts = eventually("the build to come to rest", || async {
        let receipts = books::receipts(db, payer.agent()).await;
        (!receipts.is_empty() && receipts.iter().all(Receipt::is_terminal)).then_some(receipts)
    })
    .await;
    assert_eq!(receipts.len(), 1, "{label}: {receipts:?}");
    let is_done = receipts[0].execution_status == ExecutionStatus::Completed;
    assert!(is_done, "{label}: a build that was interrupted is made again: {receipts:?}");
    assert_eq!(books::audit(db, payer.agent()).await.credits.micro(), 19_000_000, "{label}");
    let id: RequestId = after.json()["request_id"].as_str().expect("an id").parse().expect("an id");
    let site = site::load(db, Uuid::from_bytes(*id.bytes())).await.unwrap().expect(&label);
    assert_eq!((site.version, site.job), (1, id), "{label}");
    second.kill().await;
    died
}
