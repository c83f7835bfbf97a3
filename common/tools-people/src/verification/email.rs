//! E-mail verification, in four steps: form and lists, the DNS, the mail host (where port 25 is open to us), and a provider
//! (where one is configured). It stops at the first step that settles the result.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use base::digest::random;
use base::input::{Field, Kind};
use base::money::Usdc;
use base::tool_result::ErrorCode;
use platform::config::{Capability, ProbeConfig};
use platform::http::log;
use platform::providers::{DnsError, MailHosts};
use platform::store::StoreError;
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox, Unavailable};

use super::address::MailAddress;
use super::hunter;
use super::manners::{self, Turn};
use super::smtp::{self, Question, Said};
use super::verdict::{Domain, Findings, Judgement, Looks, Mailbox, REASONS, judge};

pub static SPEC: ToolSpec = ToolSpec {
    name: "verify_email",
    title: "E-mail verification",
    summary: "Checks whether mail to an address arrives: form, domain, mail hosts, mailbox, accept-all, disposable and role addresses",
    group: "knowledge",
    paths: &["/v1/tools/verify/email", "/v1/tools/lookup/person-email-status"],
    price: Price::Fixed(Usdc::from_micro(1_000)),
    durable: true,
    category: "verification",
    deadline: Duration::from_secs(50),
    waits_for_hosts: Some(|_| true),
    input: &[Field::required(
        "email",
        Kind::Text { min: 1, max: 320, format: None },
        "The address; a malformed one gets a result, not an error",
    )],
    example: || json!({"email": "ada@example.com"}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

/// Time limits of the DNS, one mail host, and the provider.
const DNS_TIME: Duration = Duration::from_secs(8);
const PROBE_TIME: Duration = Duration::from_secs(20);
const PROVIDER_TIME: Duration = Duration::from_secs(15);
/// Maximum number of mail hosts tried. The second is tried only if the first cannot be reached.
const MAX_HOSTS: usize = 2;
/// Waiting for the lease on a mail host: the first pause, doubled each time, and the number of tries.
const TURN_PAUSE: Duration = Duration::from_millis(100);
const TURN_TRIES: u32 = 6;

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let text = task.text("email");
        let Some(address) = MailAddress::parse(text) else {
            let checked = Checked { by: vec!["syntax".to_owned()], ..Checked::default() };
            return Ok(told(&toolbox, text, None, &checked));
        };
        let checked = check(&toolbox, &task, &address).await?;
        Ok(told(&toolbox, text, Some(&address), &checked))
    })
}

/// The findings, and what produced them.
#[derive(Default)]
struct Checked {
    found: Findings,
    by: Vec<String>,
    provider: Option<&'static str>,
    /// When the address was checked, if the findings are cached.
    at: Option<Timestamp>,
}

async fn check(toolbox: &Toolbox, task: &Task, address: &MailAddress) -> Result<Checked, ToolError> {
    let mut checked = Checked { by: vec!["syntax".to_owned(), "lists".to_owned()], ..Checked::default() };
    let providers = toolbox.config.providers.order(Capability::EmailCheck);
    // A disposable mailbox is risky whether or not it exists, so its host is not asked.
    let disposable = address.is_disposable();
    let may_ask = !disposable && (toolbox.config.probe.is_some() || !providers.is_empty());
    if may_ask
        && let Some((found, by, at)) =
            manners::recall(&toolbox.db, address, toolbox.clock.now()).await.map_err(broken)?
    {
        checked.by.extend(by.into_iter().chain(["cache".to_owned()]));
        return Ok(Checked { found, at: Some(at), ..checked });
    }
    task.reporter.say(10, "asking the DNS");
    let asked = ask_dns(toolbox, &address.domain).await;
    checked.by.push("dns".to_owned());
    let unanswered = match asked {
        Ok((domain, mx)) => {
            checked.found = Findings { domain, mx, ..Findings::default() };
            None
        }
        Err(error) => Some(error),
    };
    if disposable || checked.found.is_settled() {
        return match unanswered {
            Some(error) if !disposable => Err(unavailable(&error)),
            _ => Ok(checked),
        };
    }
    let mut by_hosts = Vec::new();
    if let (Some(probe), None) = (&toolbox.config.probe, &unanswered) {
        task.reporter.say(30, "asking the mail host");
        let said = ask_hosts(toolbox, task, probe, address, &checked.found).await;
        match said {
            Ok(said) => {
                (checked.found.mailbox, checked.found.catch_all) = (said.mailbox, said.catch_all);
                let asked = !matches!(
                    said.mailbox,
                    Mailbox::NotAsked | Mailbox::Private | Mailbox::Busy | Mailbox::NeedsUtf8 | Mailbox::Unreachable
                );
                by_hosts.extend(asked.then(|| "smtp".to_owned()));
            }
            Err(error) if providers.is_empty() => return Err(error),
            Err(_) => {}
        }
    }
    let failed = if checked.found.is_settled() || providers.is_empty() {
        None
    } else {
        task.reporter.say(60, "asking a provider");
        ask_provider(toolbox, address, &mut checked, &mut by_hosts).await
    };
    match (unanswered, failed) {
        // The result is not settled and the DNS or the provider failed: the call fails and is refunded.
        (_, Some(error)) if !checked.found.is_settled() => return Err(error),
        (Some(error), None) if checked.provider.is_none() => return Err(unavailable(&error)),
        _ => {}
    }
    manners::keep(&toolbox.db, address, &checked.found, &by_hosts, toolbox.clock.now()).await.map_err(broken)?;
    checked.by.extend(by_hosts);
    Ok(checked)
}

/// Finds the mail hosts of a domain.
async fn ask_dns(toolbox: &Toolbox, domain: &str) -> Result<(Domain, Vec<String>), DnsError> {
    let deadline = Instant::now() + DNS_TIME;
    match toolbox.dns.mail_hosts(domain, deadline).await {
        Ok(MailHosts::Listed(hosts)) => Ok((Domain::TakesMail, hosts.into_iter().map(|host| host.host).collect())),
        Ok(MailHosts::Refused) => Ok((Domain::RefusesMail, Vec::new())),
        Err(DnsError::NoSuchName | DnsError::NotAName) => Ok((Domain::NotFound, Vec::new())),
        Err(DnsError::NoSuchRecord) => match toolbox.dns.addresses(domain, deadline).await {
            Ok(_) => Ok((Domain::ByAddress, Vec::new())),
            Err(error) if error.is_answer() => Ok((Domain::NoMailHost, Vec::new())),
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Asks the mail hosts in order; the next one only if one cannot be reached.
async fn ask_hosts(
    toolbox: &Toolbox,
    task: &Task,
    probe: &ProbeConfig,
    address: &MailAddress,
    found: &Findings,
) -> Result<Said, ToolError> {
    let only = |mailbox: Mailbox| Ok(Said { mailbox, catch_all: None, rest: false });
    if address.needs_utf8() {
        return only(Mailbox::NeedsUtf8);
    }
    let may = manners::may_ask(&toolbox.db, task.agent, &address.domain, toolbox.clock.now()).await;
    if !may.map_err(broken)? {
        let message = format!(
            "daily limit reached: mail hosts are asked about at most {} addresses of one domain a day",
            manners::MAX_A_DAY
        );
        return Err(ToolError { code: ErrorCode::RateLimited, reason: Some("domain_cap".to_owned()), message });
    }
    // It counts as asked.
    task.reporter.must_end();
    let deadline = Instant::now() + PROBE_TIME;
    let itself = [address.domain.clone()];
    let hosts = if found.mx.is_empty() { &itself[..] } else { &found.mx[..] };
    let mut last = Mailbox::Unreachable;
    for host in hosts.iter().take(MAX_HOSTS) {
        let said = ask_host(toolbox, probe, address, host, deadline).await.map_err(broken)?;
        if !matches!(said.mailbox, Mailbox::Unreachable | Mailbox::Private) {
            return Ok(said);
        }
        last = said.mailbox;
    }
    only(last)
}

async fn ask_host(
    toolbox: &Toolbox,
    probe: &ProbeConfig,
    address: &MailAddress,
    host: &str,
    deadline: Instant,
) -> Result<Said, StoreError> {
    let only = |mailbox: Mailbox| Ok(Said { mailbox, catch_all: None, rest: false });
    let addresses = toolbox.dns.addresses(host, deadline.min(Instant::now() + DNS_TIME)).await.unwrap_or_default();
    if addresses.is_empty() {
        return only(Mailbox::Unreachable);
    }
    // The domain's owner controls these records and could point them at private addresses.
    let mut permitted = addresses.into_iter().map(|ip| SocketAddr::new(ip, probe.port));
    let Some(peer) = permitted.find(|peer| toolbox.fetcher.policy().permits(host, *peer)) else {
        return only(Mailbox::Private);
    };
    let mut pause = TURN_PAUSE;
    let mut tries = 0;
    let holder = loop {
        tries += 1;
        match manners::take_turn(&toolbox.db, host, toolbox.clock.now()).await? {
            Turn::Ours(holder) => break holder,
            Turn::Rests => return only(Mailbox::Blocked),
            Turn::Theirs if tries == TURN_TRIES || Instant::now() + pause >= deadline => return only(Mailbox::Busy),
            Turn::Theirs => tokio::time::sleep(pause).await,
        }
        pause *= 2;
    };
    let decoy = format!("{}@{}", const_hex::encode(random::<10>()), address.domain);
    let question = Question { helo: &probe.name, host, recipient: &address.ascii(), decoy: &decoy };
    let said = smtp::ask(peer, &question, deadline).await;
    manners::end_turn(&toolbox.db, host, &holder, said.rest, toolbox.clock.now()).await?;
    Ok(said)
}

/// Asks the provider. There is one adapter; other names are refused at startup.
async fn ask_provider(
    toolbox: &Toolbox,
    address: &MailAddress,
    checked: &mut Checked,
    by: &mut Vec<String>,
) -> Option<ToolError> {
    let deadline = Instant::now() + PROVIDER_TIME;
    match hunter::ask(&toolbox.outbound, &address.ascii(), &checked.found, deadline).await {
        Ok(found) => {
            checked.found = found;
            checked.provider = Some(hunter::NAME);
            by.push(hunter::NAME.to_owned());
            None
        }
        Err(error) => Some(error.of(hunter::NAME)),
    }
}

fn unavailable(error: &DnsError) -> ToolError {
    ToolError::unavailable(
        Unavailable::SourceUnavailable,
        format!("the domain's mail hosts could not be looked up: {error}"),
    )
}

fn broken(error: StoreError) -> ToolError {
    log::failure("an e-mail check could not read or write its cache or limits", &error);
    ToolError::internal("the store of e-mail checks could not be reached")
}

fn told(toolbox: &Toolbox, given: &str, address: Option<&MailAddress>, checked: &Checked) -> Output {
    let suggestion = address.and_then(MailAddress::suggestion);
    let is = |what: fn(&MailAddress) -> bool| address.is_some_and(what);
    let looks = Looks {
        well_formed: address.is_some(),
        role: is(MailAddress::is_role),
        disposable: is(MailAddress::is_disposable),
        typo: suggestion.is_some(),
    };
    let Judgement { valid, deliverable, verdict, reasons } = judge(looks, &checked.found);
    let mut result = json!({
        "status": "completed",
        "email": given,
        "valid": valid,
        "deliverable": deliverable,
        "catch_all": checked.found.catch_all,
        "disposable": looks.disposable || checked.found.disposable,
        "role": looks.role,
        "free": is(MailAddress::is_free),
        "verdict": verdict,
        "reasons": reasons,
        "suggestion": suggestion,
        "mx": checked.found.mx,
        "checked_by": checked.by,
        "completed_at": toolbox.clock.now().to_string(),
    });
    if let Some(at) = checked.at {
        result["checked_at"] = json!(at.to_string());
    }
    let source = match checked.provider {
        Some(provider) => Source::upstream(provider, None),
        None => Source::embedded("email_check"),
    };
    Output::new(result, source)
}

fn output() -> Value {
    let known =
        |about: &str| json!({"type": ["boolean", "null"], "description": format!("{about}; null if not known")});
    let texts = json!({"type": "array", "items": {"type": "string"}});
    let mut schema = json!({
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": ["completed"]},
            "email": {"type": "string", "description": "As it was given"},
            "valid": known("Well formed, at a domain that takes mail"),
            "deliverable": known("The mail host accepts this address, and does not accept every address"),
            "catch_all": known("The mail host accepts every address"),
            "disposable": {"type": "boolean", "description": "At a provider of disposable mailboxes"},
            "role": {"type": "boolean", "description": "Names a role, not a person"},
            "free": {"type": "boolean", "description": "At a provider of free mailboxes"},
            "verdict": {"type": "string", "enum": ["deliverable", "undeliverable", "risky", "unknown"]},
            "reasons": {"type": "array", "items": {"type": "string", "enum": REASONS}, "description": "The decisive reasons first"},
            "suggestion": {"type": ["string", "null"], "description": "The address that was probably meant, if the domain is mistyped"},
            "mx": texts,
            "checked_by": {"type": "array", "items": {"type": "string", "enum": ["syntax", "lists", "dns", "smtp", "hunter", "cache"]}},
            "checked_at": {"type": "string", "format": "date-time", "description": "If the answer is cached (for up to a week): when the address was checked"},
            "completed_at": {"type": "string", "format": "date-time"},
        },
    });
    schema["properties"]["mx"]["description"] = json!("The domain's mail hosts, in order of preference");
    let names = schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
    let names: Vec<String> = names.filter(|name| name != "checked_at").collect();
    schema["required"] = json!(names);
    schema
}

#[cfg(test)]
mod tests {
    use platform::providers::zone::{Answer, Zone};
    use tools::testing;

    use super::*;

    /// Cases that need neither a store nor a mail host; the others are in `tests/verify.rs`.
    #[tokio::test]
    async fn form_lists_and_dns_suffice_without_mail_hosts_or_providers() {
        let zone = Zone::new()
            .mx("good.org", 10, "mx.good.org")
            .mx("refuses.org", 0, ".")
            .a("by-address.org", "192.0.2.1")
            .txt("no-host.org", &["v=spf1 -all"])
            .mx("mailinator.com", 10, "mx.mailinator.com")
            .mx("t-onlime.de", 10, "mx.t-onlime.de")
            .mx("xn--bcher-kva.org", 10, "mx.good.org")
            .answer("broken.org", Answer::ServerFailure)
            .start()
            .await;
        let server = zone.address().to_string();
        let toolbox = testing::toolbox(&[("DNS_SERVER", &server)]);
        let schema = jsonschema::validator_for(&output()).unwrap();
        for (email, verdict, reasons, valid) in [
            ("ada@good.org", "unknown", json!(["mailbox_not_checked"]), json!(true)),
            ("ada@b\u{fc}cher.org", "unknown", json!(["mailbox_not_checked"]), json!(true)),
            ("info@good.org", "risky", json!(["mailbox_not_checked", "role"]), json!(true)),
            ("ada@mailinator.com", "risky", json!(["mailbox_not_checked", "disposable"]), json!(true)),
            ("ada@by-address.org", "unknown", json!(["mailbox_not_checked", "no_mx_record"]), json!(true)),
            ("ada@refuses.org", "undeliverable", json!(["domain_refuses_mail"]), json!(false)),
            ("ada@no-host.org", "undeliverable", json!(["no_mail_host"]), json!(false)),
            ("ada@no-such-name-here.org", "undeliverable", json!(["domain_not_found"]), json!(false)),
            ("ada@t-onlime.de", "unknown", json!(["mailbox_not_checked", "possible_typo"]), json!(true)),
            ("not an address", "undeliverable", json!(["invalid_syntax"]), json!(false)),
        ] {
            let output = testing::run(&toolbox, &RUNNER, json!({"email": email})).await.unwrap();
            let result = &output.result;
            assert_eq!((&result["verdict"], &result["reasons"]), (&json!(verdict), &reasons), "{email}");
            assert_eq!(result["valid"], valid, "{email}");
            let nobody_knows = result["deliverable"].is_null() || result["deliverable"] == json!(false);
            assert!(nobody_knows && result["catch_all"].is_null(), "what was not asked is not said: {result}");
            assert!(schema.is_valid(result), "{result}");
            assert_eq!(output.source, Source::embedded("email_check"));
        }
        let error = testing::run(&toolbox, &RUNNER, json!({"email": "ada@broken.org"})).await.unwrap_err();
        assert_eq!(error.reason.as_deref(), Some("source_unavailable"));
        assert!(
            zone.asked().iter().all(|question| !question.contains("mx.")),
            "whose host is not asked, is not looked up"
        );
    }
}
