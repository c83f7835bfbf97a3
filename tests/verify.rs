//! E-mail verification against a zone and mail hosts served by the test, and a server with Hunter's documented protocol
//! (see `common/tools-people/src/verification/hunter.rs`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use axum::http::{HeaderMap, StatusCode, Uri};
use local::Options;
use local::stack::{Background, Stack};
use serde_json::{Value, json};
use tools_people::verification::manners;

use crate::support::mailhost::{MailHost, Manner};
use crate::support::payer::{bare, header, v1};
use crate::support::proxy::{Life, Proxy};
use crate::support::zone::{Answer, Served, Zone};
use crate::support::{Payer, look_at_the_switch, run, stack_with};

mod identity;
mod outages;

const PATH: &str = "/v1/tools/verify/email";

/// Mail hosts, each at its own loopback address, all at one port.
struct Town {
    zone: Served,
    good: MailHost,
    grey: MailHost,
    busy: MailHost,
    port: u16,
    _others: Vec<MailHost>,
}

async fn town() -> Town {
    let good = MailHost::start("127.0.0.2:0", Manner::Mailboxes(&["ada", "info", "bob1", "bob2", "bob3"])).await;
    let port = good.address.port();
    let at = |last: u8, manner| async move { MailHost::start(&format!("127.0.0.{last}:{port}"), manner).await };
    let open = at(3, Manner::AcceptAll).await;
    let grey = at(4, Manner::Recipient("451 4.7.1 Greylisted, come back in 300 seconds")).await;
    let busy = at(5, Manner::Banner("421 4.3.2 not now")).await;
    let mut zone = Zone::new();
    for (name, address) in [
        ("good.org", "127.0.0.2"),
        ("open.org", "127.0.0.3"),
        ("grey.org", "127.0.0.4"),
        ("busy.org", "127.0.0.5"),
        // No server listens there.
        ("shut.org", "127.0.0.6"),
        // The zone of an attacker points to somebody else's address, to probe it.
        ("nosy.org", "127.0.0.2"),
        ("mailinator.com", "127.0.0.2"),
    ] {
        let host = format!("mx.{name}");
        zone = zone.mx(name, 10, &host).a(&host, address);
    }
    let zone = zone.a("plain.org", "127.0.0.2").mx("refuses.org", 0, ".").answer("broken.org", Answer::ServerFailure);
    Town { zone: zone.start().await, good, grey, busy, port, _others: vec![open] }
}

impl Town {
    fn known_to(&self, options: Options) -> Options {
        let hosts = ["mx.good.org", "mx.open.org", "mx.grey.org", "mx.busy.org", "mx.shut.org", "plain.org"];
        let allowed: Vec<String> = hosts.iter().map(|host| format!("{host}:{}", self.port)).collect();
        options
            .with("DNS_SERVER", self.zone.address().to_string())
            .with("SMTP_PROBE", "on")
            .with("SMTP_PROBE_PORT", self.port.to_string())
            .with("SMTP_PROBE_NAME", "probe.example.net")
            .with("LOCAL_FETCH_ALLOW", allowed.join(","))
    }
}

/// Buys a verification and waits for its end.
async fn verified(payer: &Payer, email: &str) -> Value {
    let answer = payer.buy(PATH, &json!({"email": email})).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    payer.finished(answer.json()["request_id"].as_str().unwrap()).await
}

#[test]
fn every_verdict_follows_the_zone_and_the_mail_hosts() {
    run(async {
        let town = town().await;
        let stack = stack_with(|options| town.known_to(options)).await;
        let payer = Payer::new(&stack).await;
        let (mut bought, mut asked_by) = (0, String::new());
        for (email, verdict, deliverable, catch_all, reasons) in [
            ("ada@good.org", "deliverable", json!(true), json!(false), json!(["mailbox_accepted"])),
            ("ada@plain.org", "deliverable", json!(true), json!(false), json!(["mailbox_accepted", "no_mx_record"])),
            ("eve@good.org", "undeliverable", json!(false), json!(null), json!(["mailbox_not_found"])),
            ("info@good.org", "risky", json!(true), json!(false), json!(["mailbox_accepted", "role"])),
            ("ada@open.org", "risky", json!(null), json!(true), json!(["mailbox_accepted", "accept_all"])),
            ("ada@mailinator.com", "risky", json!(null), json!(null), json!(["mailbox_not_checked", "disposable"])),
            ("ada@grey.org", "unknown", json!(null), json!(null), json!(["greylisted"])),
            ("ada@busy.org", "unknown", json!(null), json!(null), json!(["blocked"])),
            ("ada@shut.org", "unknown", json!(null), json!(null), json!(["mail_host_unreachable"])),
            ("ada@nosy.org", "unknown", json!(null), json!(null), json!(["mail_host_not_public"])),
            ("ada@refuses.org", "undeliverable", json!(false), json!(null), json!(["domain_refuses_mail"])),
            ("ada@no-such-name-here.org", "undeliverable", json!(false), json!(null), json!(["domain_not_found"])),
            ("\u{7528}\u{6237}@good.org", "unknown", json!(null), json!(null), json!(["needs_smtputf8"])),
            ("ada@good.org\r\nDATA", "undeliverable", json!(false), json!(null), json!(["invalid_syntax"])),
        ] {
            let job = verified(&payer, email).await;
            bought += 1;
            assert_eq!(job["status"], "completed", "{email}: {job}");
            assert_eq!((&job["provider"], &job["mode"]), (&json!("email_check"), &json!("embedded")));
            let result = &job["result"];
            let told = (&result["verdict"], &result["deliverable"], &result["catch_all"], &result["reasons"]);
            assert_eq!(told, (&json!(verdict), &deliverable, &catch_all, &reasons), "{email}: {result}");
            assert_eq!(result["email"], email);
            if email == "ada@good.org" {
                assert_eq!(result["checked_at"], Value::Null, "only what is told again: {result}");
                asked_by = result["completed_at"].as_str().unwrap().to_owned();
            }
        }
        assert_eq!(payer.balance(&stack).await, 1_000_000 - bought * 1_000);

        // The mail hosts were asked with our name and an empty sender, and no mail was sent.
        let heard = town.good.heard();
        for line in &heard {
            let known = ["EHLO probe.example.net", "MAIL FROM:<>", "RCPT TO:<", "QUIT", "(connected)"];
            assert!(known.iter().any(|known| line.starts_with(known)), "{line}");
        }
        assert_eq!(
            town.good.connections(),
            4,
            "two domains' mailboxes; not the nosy neighbour's, nor the throw-away's: {heard:?}"
        );

        // A repeated question, by any agent, is answered from the cache. The older path is the same tool.
        let other = Payer::new(&stack).await;
        let answer = other.buy("/v1/tools/lookup/person-email-status", &json!({"email": "ada@good.org"})).await;
        let job = other.finished(answer.json()["request_id"].as_str().unwrap()).await;
        assert_eq!(job["result"]["verdict"], "deliverable", "{job}");
        assert_eq!(job["result"]["checked_by"], json!(["syntax", "lists", "smtp", "cache"]));
        let (at, told) =
            (job["result"]["checked_at"].as_str().unwrap(), job["result"]["completed_at"].as_str().unwrap());
        assert!(at < told && *at <= *asked_by, "what was asked earlier says when: {job}");
        assert_eq!(verified(&other, "ada@grey.org").await["result"]["reasons"], json!(["greylisted"]));
        assert_eq!((town.good.connections(), town.grey.connections()), (4, 1));

        // A host that refused us is left alone, also for other addresses.
        assert_eq!(verified(&other, "bob@busy.org").await["result"]["reasons"], json!(["blocked"]));
        assert_eq!(town.busy.connections(), 1);
    });
}

#[test]
fn an_undecidable_verification_is_paid_back() {
    run(async {
        let town = town().await;
        // Cheap work need not wait for the payment of a wallet that has paid before. If it fails at once it is never
        // settled, and is reported like a later failure.
        let stack = stack_with(|options| town.known_to(options)).await;
        let payer = Payer::new(&stack).await;
        payer.has_settled(&stack, 1_000).await;
        let body = json!({"email": "ada@broken.org"});
        let authorization = payer.authorize(1_000);
        let payment = header(&v1(&authorization));
        let headers = [("payment-signature", payment.as_str()), ("idempotency-key", "to-be-recovered")];
        let answer = payer.client.post(PATH, &headers, &body).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        let request_id = answer.json()["request_id"].as_str().unwrap().to_owned();
        let job = payer.finished(&request_id).await;
        assert_eq!((&job["status"], &job["error_code"]), (&json!("failed"), &json!("provider_unavailable")), "{job}");
        assert_eq!(job["error_reason"], "source_unavailable", "{job}");
        assert_eq!(payer.payment_state(&authorization).await["state"], "released");
        let found = payer.get("/v1/submissions/recover?endpoint=verify/email&key=to-be-recovered").await.json();
        assert_eq!((&found["request_id"], &found["status"]), (&json!(request_id), &json!("failed")), "{found}");
        assert_eq!(payer.balance(&stack).await, 1_000_000, "never asked for, or paid back");

        // An agent's daily share of a domain is used up: the mail host is not asked, and the agent does not pay.
        let now = stack.app.clock.now();
        for _ in 0..manners::MAX_A_DAY {
            assert!(manners::may_ask(&stack.app.db, payer.agent(), "good.org", now).await.unwrap());
        }
        let job = verified(&payer, "ada@good.org").await;
        assert_eq!((&job["status"], &job["error_code"]), (&json!("failed"), &json!("rate_limited")), "{job}");
        assert_eq!(job["error_reason"], "domain_cap", "{job}");
        assert_eq!((payer.balance(&stack).await, town.good.connections()), (1_000_000, 0));
        assert_eq!(verified(&Payer::new(&stack).await, "ada@good.org").await["result"]["verdict"], "deliverable");
    });
}

#[test]
fn one_worker_at_a_time_probes_a_mail_host() {
    run(async {
        let town = town().await;
        let stack = stack_with(|options| town.known_to(options)).await;
        let payers = [Payer::new(&stack).await, Payer::new(&stack).await, Payer::new(&stack).await];
        let names = ["bob1@good.org", "bob2@good.org", "bob3@good.org"];
        let ask = |index: usize| verified(&payers[index], names[index]);
        let (one, two, three) = tokio::join!(ask(0), ask(1), ask(2));
        for job in [one, two, three] {
            assert_eq!(job["result"]["verdict"], "deliverable", "{job}");
        }
        assert_eq!((town.good.most_at_once(), town.good.connections()), (1, 3));
    });
}

/// A Hunter server that answers every request with this status.
async fn hunter(says: Arc<AtomicU16>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = move |uri: Uri, headers: HeaderMap| {
        let status = StatusCode::from_u16(says.load(Ordering::SeqCst)).unwrap();
        assert_eq!((uri.path(), &headers["x-api-key"]), ("/v2/email-verifier", &"hunter-key".parse().unwrap()));
        let data = json!({"status": "accept_all", "score": 60, "accept_all": true, "smtp_check": true});
        async move { (status, json!({"data": data}).to_string()) }
    };
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(answer)).await });
    url
}

#[test]
fn a_provider_verifies_where_port_25_is_closed() {
    run(async {
        let town = town().await;
        let says = Arc::new(AtomicU16::new(200));
        let urls = json!({"hunter": hunter(says.clone()).await}).to_string();
        let stack = stack_with(|options| {
            town.known_to(options)
                .with("SMTP_PROBE", "off")
                .with("PAYMENT_HOLD_MS", "0")
                .with("EMAIL_CHECK_PROVIDERS", "hunter")
                .with("PROVIDER_URLS", urls)
                .with("PROVIDER_KEYS", r#"{"hunter":"hunter-key"}"#)
        })
        .await;
        let payer = Payer::new(&stack).await;
        let job = verified(&payer, "ada@good.org").await;
        assert_eq!((&job["provider"], &job["mode"]), (&json!("hunter"), &json!("upstream")), "{job}");
        assert_eq!(job["result"]["verdict"], "risky");
        assert_eq!(job["result"]["checked_by"], json!(["syntax", "lists", "dns", "hunter"]));
        assert_eq!(payer.balance(&stack).await, 1_000_000 - 1_000);

        says.store(401, Ordering::SeqCst);
        let job = verified(&payer, "eve@good.org").await;
        assert_eq!((&job["status"], &job["error_code"]), (&json!("failed"), &json!("provider_auth")), "{job}");
        assert_eq!(payer.balance(&stack).await, 1_000_000 - 1_000, "{job}");
        assert_eq!(town.good.connections(), 0);
        // If DNS decides, the provider is not asked.
        assert_eq!(verified(&payer, "ada@refuses.org").await["result"]["verdict"], "undeliverable");
    });
}

/// The cost in DynamoDB units, besides the call itself.
#[test]
fn a_verification_stays_within_its_units() {
    run(async {
        let town = town().await;
        let database = local::database::start(None).await.expect("a database");
        let database = Proxy::start(&database, Life::immortal()).await;
        let stack: Stack = stack_with(|options| {
            let options = options.with("AWS_ENDPOINT_URL", &database.url).with("PAYMENT_HOLD_MS", "0");
            Options { background: Background::Worker, ..town.known_to(options) }
        })
        .await;
        let payer = Payer::new(&stack).await;
        let mut counted = Vec::new();
        for email in ["ada@good.org", "ada@good.org", "ada@refuses.org"] {
            look_at_the_switch(&stack).await;
            database.take_seen();
            let payment = header(&bare(&payer.authorize(1_000)));
            let accepted = payer.client.post(PATH, &[("x-payment", &payment)], &json!({"email": email})).await;
            assert_eq!(accepted.status, 202, "{}", accepted.text);
            tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
            let seen = database.take_seen();
            let writes: f64 = seen.iter().map(|seen| seen.write_units).sum();
            let reads: f64 = seen.iter().map(|seen| seen.read_units).sum();
            counted.push((writes, reads, seen.len()));
            let id = accepted.json()["request_id"].as_str().unwrap().to_owned();
            assert_eq!(payer.finished(&id).await["status"], "completed");
        }
        println!("verify_email, (write units, read units, requests): probed, remembered, settled by DNS: {counted:?}");
        let [probed, remembered, settled] = counted[..] else { unreachable!() };
        // The domain's count, the host's lock taken and released, and the cached answer.
        assert!(probed.0 - remembered.0 <= 5.0, "{counted:?}");
        assert!(settled.0 <= remembered.0 && probed.0 <= 40.0, "{counted:?}");
    });
}
