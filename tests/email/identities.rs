//! Agents' own domains: the identities that SES needs of them, and the ownership record, which is looked up again.

use std::sync::atomic::Ordering;

use axum::http::Method;
use local::doctor::{Level, examine};
use platform::providers::Dns;
use platform::store::{Key, Write, due};
use tools_email::identity::{self, May, Why};

use super::providers::{Asked, Ses, assert_signed};
use super::*;
use crate::support::zone::Served;

/// Enough settled payments to count as an agent with money.
const MONEY: u64 = 50_000;
pub const WEEK: Duration = Duration::from_secs(7 * 86_400);

pub async fn office(ses: &Ses, zone: &Served) -> Stack {
    ses.office_with(|options| options.with("DNS_SERVER", zone.address().to_string())).await
}

fn from(address: &str) -> Value {
    with(mail_to("jane@example.com"), json!({"from_address": address}))
}

/// A zone with the ownership records of an agent's domains.
fn zone_of(stack: &Stack, agent: &Agent, domains: &[&str]) -> Zone {
    domains.iter().fold(Zone::new(), |zone, domain| {
        let secret = &stack.worker.toolbox.mail_secret;
        let (name, value) = domain::ownership_record(secret, agent.payer.agent(), domain);
        zone.txt(&name, &[&value])
    })
}

/// Makes a domain an agent's, by its record. The functions of the stack have then not looked it up.
pub async fn prove(stack: &Stack, zone: &Served, agent: &Agent, name: &str) {
    zone.change(zone_of(stack, agent, &[name]));
    let (db, dns, now) = (&stack.app.db, Dns::new(Some(zone.address())), stack.app.clock.now());
    let secret = &stack.worker.toolbox.mail_secret;
    assert!(domain::verify_own(db, &dns, secret, agent.payer.agent(), name, now).await.expect("a database"));
}

/// A quote for a caller that proves to be the agent.
async fn ask(agent: &Agent, body: &Value) -> Value {
    let proof = agent.payer.proof("read");
    let answer = agent.payer.client.post(QUOTE, &[("x-agent-proof", proof.as_str())], body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()
}

/// `status` and `reason` of a quote.
fn said(quote: &Value) -> (&str, &str) {
    (quote["status"].as_str().unwrap_or_default(), quote["reason"].as_str().unwrap_or_default())
}

fn methods(asked: &[Asked]) -> Vec<Method> {
    asked.iter().map(|asked| asked.method.clone()).collect()
}

/// The names of the CNAME records in an answer, with their values.
fn cnames(answer: &Value) -> Vec<(&str, &str)> {
    let records = answer["dns_records"].as_array().map_or(&[][..], Vec::as_slice).iter();
    records
        .filter(|record| record["type"] == "CNAME")
        .map(|record| (record["name"].as_str().unwrap_or_default(), record["value"].as_str().unwrap_or_default()))
        .collect()
}

async fn listed(agent: &Agent, domain: &str) -> Value {
    let listed = agent.payer.get(DOMAINS).await.json();
    let own = listed["domains"].as_array().expect("domains").iter().find(|one| one["domain"] == domain).cloned();
    own.unwrap_or_else(|| panic!("{domain} is not listed: {listed}"))
}

fn identity_key(domain: &str) -> Key {
    Key::new(format!("MAILDOMAIN#{domain}"), "IDENTITY")
}

/// Sets a time of a row of a domain back.
pub async fn age(stack: &Stack, key: Key, attribute: &str, by: Duration) {
    let (db, at) = (&stack.app.db, stack.app.clock.now().minus(by));
    let write = Write::update(&db.tables.messages, key, &format!("SET #{attribute} = :at")).bind("at", at).unwrap();
    db.write(write).await.expect("a row");
}

/// SES was last asked this long ago.
async fn asked_before(stack: &Stack, domain: &str, by: Duration) {
    age(stack, identity_key(domain), "asked_at", by).await;
}

/// Makes a domain's identity due to be deleted.
async fn make_due(stack: &Stack, domain: &str) {
    let (db, table) = (&stack.app.db, &stack.app.db.tables.messages);
    let row: Value = db.get_latest(table, identity_key(domain)).await.unwrap().expect("an identity");
    let at = stack.app.clock.now().minus(Duration::from_secs(60));
    let entry = |at| Key::new("MAILIDENTITIES", due::row(at, domain));
    let mut writes = vec![
        Write::update(table, identity_key(domain), "SET #due = :due").bind("due", at).unwrap(),
        Write::put(table, entry(at), &json!({"domain": domain, "due": at})).unwrap(),
    ];
    if let Ok(before) = serde_json::from_value(row["due"].clone()) {
        writes.push(Write::delete(table, entry(before)));
    }
    db.transact(&writes).await.expect("writes");
}

#[test]
fn a_domain_is_set_up_at_ses_once_and_sends_when_it_is_verified() {
    run(async {
        let (ses, zone) = (Ses::start().await, Zone::new().start().await);
        let stack = office(&ses, &zone).await;
        let ada = Agent::new(&stack).await;
        zone.change(zone_of(&stack, &ada, &["firm.test"]));
        let body = from("ada@firm.test");

        // Nothing is made for a stranger's domain, a caller without a proof, or an agent without money.
        assert_eq!(said(&ask(&ada, &from("ada@elsewhere.test")).await), ("unprovisioned", "record_missing"));
        assert_eq!(said(&ada.quote(&body).await), ("unprovisioned", "proof_required"));
        assert_eq!(said(&ask(&ada, &body).await), ("unprovisioned", "credits_required"));
        assert!(ses.take_asked_about().is_empty());
        assert!(domain::own_domain(&stack.app.db, "firm.test").await.unwrap().is_none());

        ada.payer.has_settled(&stack, MONEY).await;
        for quote in join_all([ask(&ada, &body), ask(&ada, &body)]).await {
            assert_eq!((&quote["status"], &quote["available"]), (&json!("provisioning"), &json!(false)), "{quote}");
        }
        let asked = ses.take_asked_about();
        let [made] = &asked[..] else { panic!("asked twice at once, made once: {asked:?}") };
        assert_signed(made, "messaging");
        let tags = json!([{"Key": "agora-deployment", "Value": "agora"}]);
        let expected = json!({"EmailIdentity": "firm.test", "ConfigurationSetName": "a_set", "Tags": tags});
        assert_eq!((&made.method, &made.body), (&Method::POST, &expected));

        let quote = ask(&ada, &body).await;
        assert_eq!(said(&quote), ("provisioning", "pending"));
        let records = ["one", "two", "three"]
            .map(|token| (format!("{token}._domainkey.firm.test"), format!("{token}.dkim.amazonses.com")));
        let records: Vec<_> = records.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(cnames(&quote), records);
        let own = listed(&ada, "firm.test").await;
        assert_eq!((&own["provisioning_status"], &own["reason"]), (&json!("provisioning"), &json!("pending")));
        assert_eq!((own["addresses"][0]["status"].as_str(), cnames(&own)), (Some("provisioning"), records));
        assert_eq!(ask(&ada, &mail_to("jane@example.com")).await["from_address"], ada.address, "not in the pool yet");
        assert_eq!(ada.send(&quote, &body).await.error(), (400, "domain_not_owned".to_owned()));

        ses.knows("firm.test", true, "SUCCESS");
        assert_eq!(said(&ask(&ada, &body).await), ("provisioning", "pending"), "SES is not asked every time");
        assert!(ses.take_asked_about().is_empty());
        asked_before(&stack, "firm.test", Duration::from_secs(31)).await;
        let quote = ask(&ada, &body).await;
        assert_eq!((&quote["status"], &quote["available"]), (&json!("verified"), &json!(true)), "{quote}");
        assert_eq!(methods(&ses.take_asked_about()), [Method::GET]);
        assert_eq!(listed(&ada, "firm.test").await["provisioning_status"], "verified");
        assert_eq!(ada.payer.balance(&stack).await, 1_000_000, "nothing was charged so far");
        let job = ada.ended(ada.send(&quote, &body).await).await;
        assert_eq!((&job["status"], reached(&job)), (&json!("completed"), 1), "{job}");
        assert_eq!(ses.asked().last().expect("a mail").body["FromEmailAddress"], "ada@firm.test");
    });
}

#[test]
fn a_failing_ses_costs_nothing_and_a_failed_identity_is_made_anew() {
    run(async {
        let (ses, zone) = (Ses::start().await, Zone::new().start().await);
        let stack = office(&ses, &zone).await;
        let ada = Agent::new(&stack).await;
        ada.payer.has_settled(&stack, MONEY).await;
        zone.change(zone_of(&stack, &ada, &["firm.test", "bad.firm.test", "more.test"]));
        let body = from("ada@firm.test");

        ses.is_down.store(true, Ordering::SeqCst);
        assert_eq!(said(&ask(&ada, &body).await), ("provisioning", "provider_unavailable"));
        ses.is_down.store(false, Ordering::SeqCst);
        assert_eq!(said(&ask(&ada, &body).await), ("provisioning", "creating"), "another call may be at it");
        asked_before(&stack, "firm.test", Duration::from_secs(61)).await;
        assert_eq!(said(&ask(&ada, &body).await), ("provisioning", "pending"));

        ses.knows("firm.test", false, "FAILED");
        asked_before(&stack, "firm.test", Duration::from_secs(31)).await;
        let quote = ask(&ada, &body).await;
        assert_eq!(said(&quote), ("unprovisioned", "verification_failed"));
        assert_eq!(cnames(&quote).len(), 3, "{quote}");
        assert_eq!(ada.send(&quote, &body).await.error(), (400, "domain_not_owned".to_owned()));
        ses.take_asked_about();
        asked_before(&stack, "firm.test", Duration::from_secs(3_601)).await;
        assert_eq!(said(&ask(&ada, &body).await), ("provisioning", "pending"));
        assert_eq!(methods(&ses.take_asked_about()), [Method::DELETE, Method::POST]);

        // SES takes no such domain. Then: the agent has as many as it may have.
        assert_eq!(said(&ask(&ada, &from("ada@bad.firm.test")).await), ("unprovisioned", "refused"));
        let of_ada = Key::new(format!("AGENT#{}", ada.payer.agent()), "MAILIDENTITIES");
        let (db, table) = (&stack.app.db, &stack.app.db.tables.messages);
        let counted: Value = db.get_latest(table, of_ada.clone()).await.unwrap().expect("a count");
        assert_eq!(counted["used"], 2, "a deleted one does not count");
        db.write(Write::put(table, of_ada, &json!({"used": 10})).unwrap()).await.unwrap();
        ses.take_asked_about();
        assert_eq!(said(&ask(&ada, &from("ada@more.test")).await), ("unprovisioned", "too_many_domains"));
        assert!(ses.take_asked_about().is_empty());
        assert_eq!(ada.payer.balance(&stack).await, 1_000_000);
    });
}

#[test]
fn a_domain_whose_record_is_gone_stops_sending_and_its_identity_is_deleted() {
    run(async {
        let (ses, zone) = (Ses::start().await, Zone::new().start().await);
        let stack = office(&ses, &zone).await;
        let ada = Agent::new(&stack).await;
        ada.payer.has_settled(&stack, MONEY).await;
        // An identity that the operator made.
        let theirs = json!({"IdentityType": "DOMAIN", "VerifiedForSendingStatus": true, "Tags": [],
            "DkimAttributes": {"Status": "SUCCESS", "Tokens": ["own"], "SigningAttributesOrigin": "EXTERNAL"}});
        ses.identities.lock().unwrap().insert("theirs.test".to_owned(), theirs);
        prove(&stack, &zone, &ada, "theirs.test").await;
        assert_eq!(said(&ask(&ada, &from("ada@theirs.test")).await).0, "verified");

        let body = from("ada@firm.test");
        for domain in ["back.test", "firm.test"] {
            prove(&stack, &zone, &ada, domain).await;
            assert_eq!(said(&ask(&ada, &from(&format!("ada@{domain}"))).await).0, "provisioning");
            ses.knows(domain, true, "SUCCESS");
            asked_before(&stack, domain, Duration::from_secs(31)).await;
            assert_eq!(said(&ask(&ada, &from(&format!("ada@{domain}"))).await).0, "verified");
        }
        let quote = ask(&ada, &body).await;

        // The record is looked up again a week after it was seen. It is gone when the quote is paid.
        let own = || Key::new("MAILDOMAIN#firm.test", "DOMAIN");
        zone.change(Zone::new());
        age(&stack, own(), "verified_at", WEEK).await;
        let job = ada.ended(ada.send(&quote, &body).await).await;
        assert_eq!((&job["status"], &job["credited_usdc"]), (&json!("failed"), &json!("0.005000")), "{job}");
        assert_eq!(job["error_reason"], "record_gone", "{job}");
        assert!(ses.asked().is_empty(), "no mail went");

        // It is there again, then gone again.
        zone.change(zone_of(&stack, &ada, &["firm.test"]));
        assert_eq!(said(&ask(&ada, &body).await).0, "verified");
        assert_eq!(listed(&ada, "firm.test").await["provisioning_status"], "verified");
        zone.change(Zone::new());
        age(&stack, own(), "seen_at", WEEK).await;
        age(&stack, Key::new("MAILDOMAIN#theirs.test", "DOMAIN"), "verified_at", WEEK).await;
        for domain in ["firm.test", "theirs.test"] {
            let known = domain::own_domain(&stack.app.db, domain).await.unwrap().expect("a domain");
            let now = stack.app.clock.now();
            let waiting = identity::waiting(&stack.worker.toolbox, &known, May::Write, now).await.expect("a database");
            assert_eq!(waiting.map(|waiting| waiting.why), Some(Why::RecordGone), "{domain}");
        }

        // A week later, whoever sets up a domain deletes what is due; not what the operator made, and not a domain whose record
        // is there again.
        for domain in ["back.test", "firm.test", "theirs.test"] {
            make_due(&stack, domain).await;
        }
        ses.take_asked_about();
        // Two at a time.
        zone.change(zone_of(&stack, &ada, &["later.test", "new.test"]));
        for address in ["ada@new.test", "ada@later.test"] {
            assert_eq!(said(&ask(&ada, &from(address)).await), ("provisioning", "pending"));
        }
        let deleted: Vec<String> = ses
            .take_asked_about()
            .into_iter()
            .filter(|asked| asked.method == Method::DELETE)
            .map(|asked| asked.path)
            .collect();
        assert_eq!(deleted, ["/v2/email/identities/firm.test"]);
        let left: Vec<String> = ses.identities.lock().unwrap().keys().cloned().collect();
        assert_eq!(left, ["back.test", "later.test", "new.test", "theirs.test"]);
        for domain in ["firm.test", "theirs.test"] {
            let row: Option<Value> =
                stack.app.db.get_latest(&stack.app.db.tables.messages, identity_key(domain)).await.unwrap();
            assert_eq!(row, None, "{domain}");
        }
        let kept: Option<Value> =
            stack.app.db.get_latest(&stack.app.db.tables.messages, identity_key("back.test")).await.unwrap();
        assert!(kept.is_some_and(|kept| kept["state"] == "verified" && kept.get("due").is_none()));
    });
}

/// The record of a domain that another agent shows now passes the domain on, with its identity.
#[test]
fn an_identity_passes_on_with_its_domain() {
    run(async {
        let (ses, zone) = (Ses::start().await, Zone::new().start().await);
        let stack = office(&ses, &zone).await;
        let (ada, bob) = (Agent::new(&stack).await, Agent::new(&stack).await);
        for agent in [&ada, &bob] {
            agent.payer.has_settled(&stack, MONEY).await;
        }
        prove(&stack, &zone, &ada, "firm.test").await;
        assert_eq!(said(&ask(&ada, &from("ada@firm.test")).await).0, "provisioning");
        zone.change(zone_of(&stack, &bob, &["firm.test"]));
        assert_eq!(said(&ask(&bob, &from("bob@firm.test")).await), ("provisioning", "pending"));
        assert_eq!(methods(&ses.take_asked_about()), [Method::POST], "made once");
        let counted = async |agent: &Agent| {
            let key = Key::new(format!("AGENT#{}", agent.payer.agent()), "MAILIDENTITIES");
            let row: Option<Value> = stack.app.db.get_latest(&stack.app.db.tables.messages, key).await.unwrap();
            row.map_or(0, |row| row["used"].as_i64().unwrap())
        };
        assert_eq!((counted(&ada).await, counted(&bob).await), (0, 1));
        let refused = ada.ask(&from("ada@firm.test")).await;
        assert_eq!(refused.error(), (400, "domain_not_owned".to_owned()), "{}", refused.text);
    });
}

#[test]
fn the_doctor_says_which_records_an_operators_domain_lacks() {
    run(async {
        let ses = Ses::start().await;
        let zone = Zone::new()
            .mx(DOMAIN, 10, "inbound-smtp.eu-west-1.amazonaws.com")
            .answer(&format!("_dmarc.{DOMAIN}"), crate::support::zone::Answer::ServerFailure)
            .start()
            .await;
        let stack = office(&ses, &zone).await;
        let report = examine(&stack.environment).await;
        let has = |level: Level, found: &str, remedy: &str| {
            report.0.iter().any(|one| {
                let is_said = one.remedy.as_deref().unwrap_or_default().contains(remedy);
                one.check == "e-mail" && one.level == level && one.found.starts_with(found) && is_said
            })
        };
        assert!(has(Level::Ok, "agents.test has MX", ""), "{}", report.text());
        let make = "aws sesv2 create-email-identity --email-identity agents.test";
        assert!(has(Level::Warn, "agents.test lacks DKIM, SPF", make), "{}", report.text());
        let dmarc = "_dmarc.agents.test TXT \"v=DMARC1; p=quarantine\"";
        assert!(has(Level::Warn, "agents.test: could not look up DMARC", dmarc), "{}", report.text());
    });
}
