//! Checks the settings of agents' e-mail against each other: who can be written to, and who hears of bounces. Then says
//! which DNS records each of the operator's domains needs, and whether they are there.

use std::time::Duration;

use gate::app::App;
use gate::secrets::ServiceKeys;
use platform::config::{Capability, Config};
use platform::connections::Connections;
use platform::net::FetchPolicy;
use platform::providers::Dns;
use platform::providers::dns::MailHosts;
use tokio::time::Instant;
use tools::Toolbox;
use tools_email::dkim::Signer;
use tools_email::providers::{self, ses, smtp};

use super::Report;

const CHECK: &str = "e-mail";
/// Longest wait for a name server, and for SES.
const PATIENCE: Duration = Duration::from_secs(5);
/// Top-level names that are not in the DNS (RFC 6761).
const FOR_TESTS: [&str; 4] = ["test", "example", "invalid", "localhost"];

pub fn check(config: &Config, report: &mut Report) {
    let email = &config.email;
    let provider = config.providers.order(Capability::Email).first().map(String::as_str);
    if email.domains.is_empty() {
        let remedy = "set EMAIL_DOMAINS to a domain of yours whose mail nobody else takes (docs/EMAIL.md)";
        report.warn(CHECK, "EMAIL_DOMAINS is not set, so agents only have addresses on domains of their own", remedy);
    } else {
        report.ok(CHECK, format!("agents have addresses on {}", email.domains.join(", ")));
    }
    match provider {
        None => {
            let remedy = "set EMAIL_PROVIDERS to ses or smtp, if agents are to write to others (docs/EMAIL.md)";
            report.warn(CHECK, "EMAIL_PROVIDERS is not set, so addresses outside this deployment are refused", remedy);
        }
        Some("smtp") if config.mail.smtp_url.is_none() => {
            let remedy = "set SMTP_URL and MAIL_FROM, or take smtp out of EMAIL_PROVIDERS";
            report.fail(CHECK, "EMAIL_PROVIDERS names smtp, but there is no relay", remedy);
        }
        Some("ses") if email.topics.is_empty() || email.configuration_set.is_none() => {
            let remedy = "set EMAIL_CONFIGURATION_SET to a set that publishes to a topic, and EMAIL_TOPICS to that topic \
                          (docs/EMAIL.md)";
            report.warn(CHECK, "nobody tells this deployment of bounces and complaints at SES", remedy);
        }
        Some(name) => report.ok(CHECK, format!("mails to others go by {name}")),
    }
}

/// A DNS record that a domain needs.
struct Wanted {
    what: &'static str,
    /// How it is made.
    record: String,
    /// `None` if nobody could be asked.
    is_there: Option<bool>,
}

/// Looks up the records of the operator's domains.
pub async fn records(app: &App, connections: &Connections, report: &mut Report) {
    // A toolbox that cannot be made is a finding of the check of tools.
    let Ok(toolbox) = app.toolbox(connections, FetchPolicy::default()) else { return };
    let keys = ServiceKeys::load(&app.config, &connections.signed).await.ok();
    for domain in &app.config.email.domains {
        let top = domain.rsplit('.').next().unwrap_or_default();
        if FOR_TESTS.contains(&top) && app.config.dns_server.is_none() {
            report.ok(CHECK, format!("{domain} is a name for tests, which has no DNS records"));
            continue;
        }
        say(domain, &wanted(&toolbox, keys.as_ref(), domain).await, report);
    }
}

fn say(domain: &str, wanted: &[Wanted], report: &mut Report) {
    let names = |of: &[&Wanted]| of.iter().map(|one| one.what).collect::<Vec<_>>().join(", ");
    let how = |of: &[&Wanted]| of.iter().map(|one| one.record.as_str()).collect::<Vec<_>>().join("; ");
    let with = |is_there: Option<bool>| wanted.iter().filter(|one| one.is_there == is_there).collect::<Vec<&Wanted>>();
    let (there, missing, unknown) = (with(Some(true)), with(Some(false)), with(None));
    if !there.is_empty() {
        report.ok(CHECK, format!("{domain} has {}", names(&there)));
    }
    if !missing.is_empty() {
        let remedy = format!("set up (docs/EMAIL.md): {}", how(&missing));
        report.warn(CHECK, format!("{domain} lacks {}", names(&missing)), remedy);
    }
    if !unknown.is_empty() {
        let remedy = format!("run the doctor where name servers and SES can be asked, or compare: {}", how(&unknown));
        report.warn(CHECK, format!("{domain}: could not look up {}", names(&unknown)), remedy);
    }
}

async fn wanted(toolbox: &Toolbox, keys: Option<&ServiceKeys>, domain: &str) -> Vec<Wanted> {
    let dns = &toolbox.dns;
    match providers::chosen(&toolbox.config) {
        Some(ses::NAME) => {
            let region = &toolbox.config.aws.region;
            let receiver = format!("inbound-smtp.{region}.amazonaws.com");
            let mut wanted = vec![mx(dns, domain, Some(&receiver)).await];
            wanted.extend(at_ses(toolbox, domain).await);
            wanted.push(dmarc(dns, domain).await);
            wanted
        }
        Some(smtp::NAME) => {
            let mut wanted = vec![mx(dns, domain, None).await];
            if let Some(keys) = keys {
                let name = format!("agora._domainkey.{domain}");
                let value = Signer::derived(&keys.mail, domain).dns_record();
                let record = format!("{name} TXT \"{value}\"");
                let is_there = has_text(dns, &name, |text| text.replace(' ', "") == value.replace(' ', "")).await;
                wanted.push(Wanted { what: "DKIM", record, is_there });
            }
            let record = format!("{domain} TXT \"v=spf1 <what your relay asks for> -all\"");
            let is_there = has_text(dns, domain, |text| text.starts_with("v=spf1 ")).await;
            wanted.push(Wanted { what: "SPF", record, is_there });
            wanted.push(dmarc(dns, domain).await);
            wanted
        }
        // Mail stays in the deployment.
        _ => Vec::new(),
    }
}

/// DKIM as SES sees it, and SPF of the domain that bounces go to.
async fn at_ses(toolbox: &Toolbox, domain: &str) -> Vec<Wanted> {
    let make =
        format!("aws sesv2 create-email-identity --email-identity {domain}, and the three CNAME records it prints");
    let (dkim, mail_from) = match ses::get_identity(toolbox, domain, Instant::now() + PATIENCE).await {
        Err(_) => (Wanted { what: "DKIM", record: make, is_there: None }, None),
        Ok(None) => (Wanted { what: "DKIM", record: make, is_there: Some(false) }, None),
        Ok(Some(known)) => {
            let records: Vec<String> =
                known.records.iter().map(|(name, value)| format!("{name} CNAME {value}")).collect();
            let is_there = Some(known.may_send && known.dkim == ses::Dkim::Success);
            (Wanted { what: "DKIM", record: records.join("; "), is_there }, known.mail_from)
        }
    };
    let from = mail_from.clone().unwrap_or_else(|| format!("bounce.{domain}"));
    let region = &toolbox.config.aws.region;
    let record = format!(
        "aws sesv2 put-email-identity-mail-from-attributes --email-identity {domain} --mail-from-domain {from}; {from} MX 10 \
         feedback-smtp.{region}.amazonses.com; {from} TXT \"v=spf1 include:amazonses.com ~all\""
    );
    let is_there = match (dkim.is_there, mail_from) {
        (None, _) => None,
        (_, None) => Some(false),
        (_, Some(from)) => has_text(&toolbox.dns, &from, |text| text.starts_with("v=spf1 ")).await,
    };
    vec![dkim, Wanted { what: "SPF", record, is_there }]
}

async fn mx(dns: &Dns, domain: &str, receiver: Option<&str>) -> Wanted {
    let record = format!("{domain} MX 10 {}", receiver.unwrap_or("<your mail host>"));
    let is_there = match dns.mail_hosts(domain, Instant::now() + PATIENCE).await {
        Ok(MailHosts::Listed(hosts)) => Some(receiver.is_none_or(|name| hosts.iter().any(|one| one.host == name))),
        Ok(MailHosts::Refused) => Some(false),
        Err(error) => error.is_answer().then_some(false),
    };
    Wanted { what: "MX", record, is_there }
}

async fn dmarc(dns: &Dns, domain: &str) -> Wanted {
    let name = format!("_dmarc.{domain}");
    let is_there = has_text(dns, &name, |text| text.starts_with("v=DMARC1")).await;
    Wanted { what: "DMARC", record: format!("{name} TXT \"v=DMARC1; p=quarantine\""), is_there }
}

/// Whether a name has such a TXT record.
async fn has_text(dns: &Dns, name: &str, is_it: impl Fn(&str) -> bool) -> Option<bool> {
    match dns.texts(name, Instant::now() + PATIENCE).await {
        Ok(texts) => Some(texts.iter().any(|text| is_it(text))),
        Err(error) => error.is_answer().then_some(false),
    }
}
