//! `enrich_company`: a company's profile from a vendor, or from its own site, DNS and RDAP.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::input::{Field, FieldError, Kind};
use base::money::Usdc;
use platform::net::FetchPolicy;
use platform::providers::dns::{DnsError, MailHosts};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox, Unavailable};
use web::read::Facts;

use super::input::{self, NAME, PROFILE_KIND, SAYS};
use super::site::{self, ORGANIZATION, Site, place, word};
use super::{Enquiry, Origin, all_from, nobody_knows, schema};
use crate::opt_out::Marks;
use crate::rdap::{self, Registration};
use crate::vendors::{Company, CompanyQuery, clean, domain_of, is_of, profile_url};

/// Mail providers, recognised by the end of the MX host's name.
const MAIL_PROVIDERS: [(&str, &str); 20] = [
    ("google.com", "Google Workspace"),
    ("googlemail.com", "Google Workspace"),
    ("protection.outlook.com", "Microsoft 365"),
    ("outlook.com", "Microsoft 365"),
    ("mx.microsoft", "Microsoft 365"),
    ("pphosted.com", "Proofpoint"),
    ("mimecast.com", "Mimecast"),
    ("barracudanetworks.com", "Barracuda"),
    ("zoho.com", "Zoho Mail"),
    ("zoho.eu", "Zoho Mail"),
    ("protonmail.ch", "Proton Mail"),
    ("messagingengine.com", "Fastmail"),
    ("amazonaws.com", "Amazon SES"),
    ("secureserver.net", "GoDaddy"),
    ("kundenserver.de", "IONOS"),
    ("ovh.net", "OVHcloud"),
    ("gandi.net", "Gandi"),
    ("yandex.net", "Yandex 360"),
    ("mailgun.org", "Mailgun"),
    ("icloud.com", "iCloud Mail"),
];

/// Services, recognised by the prefix of their TXT record, or by their SPF include.
const SERVICES: [(&str, &str); 28] = [
    ("google-site-verification=", "Google Search Console"),
    ("ms=", "Microsoft 365"),
    ("facebook-domain-verification=", "Meta Business"),
    ("atlassian-domain-verification=", "Atlassian"),
    ("stripe-verification=", "Stripe"),
    ("docusign=", "DocuSign"),
    ("adobe-idp-site-verification=", "Adobe"),
    ("apple-domain-verification=", "Apple Business"),
    ("zoom_verify_", "Zoom"),
    ("slack-domain-verification=", "Slack"),
    ("hubspot-developer-verification=", "HubSpot"),
    ("dropbox-domain-verification=", "Dropbox"),
    ("notion-domain-verification=", "Notion"),
    ("openai-domain-verification=", "OpenAI"),
    ("miro-verification=", "Miro"),
    ("include:_spf.google.com", "Google Workspace"),
    ("include:spf.protection.outlook.com", "Microsoft 365"),
    ("include:sendgrid.net", "SendGrid"),
    ("include:mailgun.org", "Mailgun"),
    ("include:amazonses.com", "Amazon SES"),
    ("include:servers.mcsv.net", "Mailchimp"),
    ("include:spf.mandrillapp.com", "Mandrill"),
    ("include:_spf.salesforce.com", "Salesforce"),
    ("include:mail.zendesk.com", "Zendesk"),
    ("include:spf.mtasv.net", "Postmark"),
    ("include:spf.brevo.com", "Brevo"),
    ("include:zoho.com", "Zoho Mail"),
    ("include:helpscoutemail.com", "Help Scout"),
];

pub static SPEC: ToolSpec = ToolSpec {
    name: "enrich_company",
    title: "Company profile",
    summary: "A company's profile from its domain, name, profile's address or ticker: what it is, where, contacts, mail and registration",
    group: "knowledge",
    paths: &["/v1/tools/enrich/company", "/v1/tools/lookup/company-profile"],
    price: Price::Fixed(Usdc::from_micro(5_000)),
    input: &[
        Field::optional(
            "domain",
            Kind::Text { min: 1, max: 255, format: Some(&SAYS) },
            "Its domain, such as example.com",
        ),
        Field::optional("name", NAME, "Its name"),
        Field::optional("linkedin_url", PROFILE_KIND, "Its profile; it is never fetched"),
        Field::optional("ticker", Kind::Text { min: 1, max: 10, format: Some(&SAYS) }, "Its stock's ticker"),
    ],
    check,
    needs: |_, input| super::needs(input.contains_key("domain")),
    example: || json!({"domain": "example.com"}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

fn check(input: &Map<String, Value>, policy: &FetchPolicy) -> Vec<FieldError> {
    let mut wrong = input::one_of(input, &["domain", "name", "linkedin_url", "ticker"]);
    if let Some(domain) = input::given(input, "domain")
        && site::authority(&domain, policy).is_none()
    {
        wrong.push(FieldError::new("domain", "must be a public domain, such as example.com"));
    }
    wrong
}

/// A company's profile.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Profile {
    #[serde(flatten)]
    pub company: Company,
    legal_name: Option<String>,
    address: Option<String>,
    emails: Vec<String>,
    phones: Vec<String>,
    social_profiles: BTreeMap<String, String>,
    mail_provider: Option<String>,
    mail_hosts: Vec<String>,
    services: Vec<String>,
    dmarc_policy: Option<String>,
    registration: Option<Value>,
    #[serde(skip)]
    sources: Vec<Origin>,
}

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let enquiry = Enquiry::new(toolbox, task);
        let given = |name: &str| input::given(&enquiry.task.input, name);
        let policy = enquiry.toolbox.fetcher.policy();
        let authority = given("domain").and_then(|domain| site::authority(&domain, policy));
        let which = CompanyQuery {
            domain: authority.as_deref().and_then(domain_of),
            name: given("name"),
            linkedin_url: given("linkedin_url").and_then(|url| profile_url(&url)),
            ticker: given("ticker"),
        };
        enquiry.refuse_listed(&Marks::from(&which)).await?;
        let asking = enquiry.asking();
        let asked = enquiry.vendors(
            &asking,
            |vendor, asking| vendor.company(asking, &which),
            |company: &mut Company| is_of(company, &which),
        );
        let missed = match asked.await? {
            Ok((company, source)) => {
                let sources = all_from(&source, "company");
                return answer(&enquiry, Some(Profile { company, sources, ..Profile::default() }), source).await;
            }
            Err(missed) => missed,
        };
        let (authority, search) = match authority {
            Some(authority) => (Some(authority), None),
            None => match by_name(&enquiry, which.name.as_deref()).await {
                Ok(authority) => (authority, None),
                Err(error) => (None, Some(error)),
            },
        };
        let looked = match authority {
            Some(authority) => embedded(&enquiry, &authority).await,
            None => Err(nobody_knows(search.as_ref())),
        };
        match looked {
            Ok(Looked::Found(profile, source)) => answer(&enquiry, Some(*profile), source).await,
            Ok(Looked::Nothing(source)) => {
                let source = missed.ends(|| Ok(source))?;
                answer(&enquiry, None, source).await
            }
            Err(error) => {
                let source = missed.ends(|| Err(error))?;
                answer(&enquiry, None, source).await
            }
        }
    })
}

/// The site of the company with this name, if a page from the search has that company name.
async fn by_name(enquiry: &Enquiry, name: Option<&str>) -> Result<Option<String>, ToolError> {
    let Some(name) = name else { return Ok(None) };
    let plain =
        |name: &str| -> String { name.to_lowercase().chars().filter(|letter| letter.is_alphanumeric()).collect() };
    for hit in enquiry.pages(name.to_owned(), 8).await? {
        let Some((url, facts)) = site::fetch(&enquiry.toolbox, &hit.url, enquiry.deadline).await else { continue };
        let names = facts.of_type(&ORGANIZATION).filter_map(|object| word(&object["name"]));
        let names: Vec<String> = names.chain(facts.tag(&["og:site_name"]).map(str::to_owned)).collect();
        if names.iter().any(|known| plain(known) == plain(name)) {
            return Ok(site::authority(url.as_str(), enquiry.toolbox.fetcher.policy()));
        }
    }
    Ok(None)
}

/// Outcome of our own lookup, with its source.
enum Looked {
    Found(Box<Profile>, Source),
    /// A source answered that there is nothing.
    Nothing(Source),
}

/// Reads the company's own site, DNS and RDAP. The company counts as found if the site or the registry has data about it.
/// DNS values are only added to such a record.
async fn embedded(enquiry: &Enquiry, authority: &str) -> Result<Looked, ToolError> {
    let (toolbox, deadline) = (&enquiry.toolbox, enquiry.deadline);
    let host = authority.split(':').next().unwrap_or(authority);
    enquiry.task.reporter.say(30, "reading the company's own site");
    let policy_name = format!("_dmarc.{host}");
    let registry = toolbox.config.providers.urls.get("rdap").map(String::as_str);
    let (site, mail, texts, dmarc, registration) = tokio::join!(
        site::read(toolbox, authority, deadline),
        toolbox.dns.mail_hosts(host, deadline),
        toolbox.dns.texts(host, deadline),
        toolbox.dns.texts(&policy_name, deadline),
        rdap::registration(&toolbox.outbound, &toolbox.fetcher, registry, host, deadline),
    );
    let mut profile = site.as_ref().map(|site| of_site(site, host)).unwrap_or_default();
    // If both the site and the registry know the company, the site is named as the source, because it has more data.
    let source = match (profile.sources.is_empty(), &registration) {
        (false, _) => "site",
        (true, Ok(Some(_))) => "rdap",
        // The site was read, but it does not name the company.
        _ if site.is_some() => return Ok(Looked::Nothing(Source::embedded("site"))),
        // The domain does not exist. The DNS is the source of this miss.
        _ if mail.as_ref().err().is_some_and(|error| *error == DnsError::NoSuchName) => {
            return Ok(Looked::Nothing(Source::embedded("dns")));
        }
        _ => {
            return Err(ToolError::unavailable(
                Unavailable::DestinationNotReachable,
                "the company's site cannot be read, and no domain registry gave a record of it",
            ));
        }
    };
    profile.company.domain = domain_of(host).or_else(|| Some(host.to_owned()));
    let mut from_dns = |field: &'static str| profile.sources.push(Origin { field, source: "dns", url: None });
    if let Ok(MailHosts::Listed(hosts)) = mail {
        profile.mail_hosts = hosts.into_iter().map(|host| host.host).collect();
        profile.mail_provider = mail_provider(&profile.mail_hosts);
        from_dns("mail_hosts");
        if profile.mail_provider.is_some() {
            from_dns("mail_provider");
        }
    }
    profile.services = services(texts.as_deref().unwrap_or_default());
    if !profile.services.is_empty() {
        from_dns("services");
    }
    profile.dmarc_policy = dmarc.unwrap_or_default().iter().find_map(|text| dmarc_policy(text));
    if profile.dmarc_policy.is_some() {
        from_dns("dmarc_policy");
    }
    if let Ok(Some(registration)) = registration {
        profile.sources.push(Origin { field: "registration", source: "rdap", url: Some(registration.url.clone()) });
        profile.registration = Some(shown(registration));
    }
    Ok(Looked::Found(Box::new(profile), Source::embedded(source)))
}

fn shown(registration: Registration) -> Value {
    json!({
        "domain": registration.domain,
        "registrar": registration.registrar,
        "registered_at": registration.registered_at,
        "changed_at": registration.changed_at,
        "expires_at": registration.expires_at,
        "status": registration.status,
        "name_servers": registration.name_servers,
    })
}

/// The profile that a company's own site gives.
pub(super) fn of_site(site: &Site, host: &str) -> Profile {
    let mut sources = Vec::new();
    let mut take = |field: &'static str, found: Option<(String, String)>| {
        let (value, url) = found?;
        sources.push(Origin { field, source: "site", url: Some(url) });
        Some(value)
    };
    let firm = |read: &dyn Fn(&Value) -> Option<String>| {
        site.first(|facts: &Facts| facts.of_type(&ORGANIZATION).find_map(read))
    };
    let tag = |names: &'static [&'static str]| {
        site.first(|facts: &Facts| facts.tag(names).and_then(|text| clean(text, 1_000)))
    };
    let member = |name: &'static str| move |object: &Value| word(&object[name]);
    let name = take("name", firm(&member("name")).or_else(|| tag(&["og:site_name", "application-name"])));
    let legal_name = take("legal_name", firm(&member("legalName")));
    let description = take(
        "description",
        firm(&|object| clean(object["description"].as_str()?, 1_000))
            .or_else(|| tag(&["description", "og:description"])),
    );
    let industry = take("industry", firm(&|object| word(&object["industry"]).or_else(|| word(&object["knowsAbout"]))));
    let founded = take("founded", firm(&member("foundingDate")));
    let ticker = take("ticker", firm(&member("tickerSymbol")));
    let address = take(
        "address",
        firm(&|object| place(&object["address"])).or_else(|| site.first(|facts| clean(facts.addresses.first()?, 255))),
    );
    let location = take(
        "location",
        firm(&|object| {
            let address = match &object["address"] {
                Value::Array(addresses) => addresses.first()?,
                address => address,
            };
            let parts = ["addressLocality", "addressRegion", "addressCountry"];
            let parts: Vec<String> = parts.iter().filter_map(|part| word(&address[*part])).collect();
            (!parts.is_empty()).then(|| parts.join(", "))
        }),
    );
    let employees = take(
        "employee_count",
        firm(&|object| {
            let count = &object["numberOfEmployees"];
            let count = if count.is_object() { &count["value"] } else { count };
            count.as_u64().map(|count| count.to_string()).or_else(|| word(count))
        }),
    );
    let (emails, page) = site.emails(host);
    if let Some(url) = page {
        sources.push(Origin { field: "emails", source: "site", url: Some(url) });
    }
    let (phones, page) = site.every(10, |facts| {
        let linked =
            facts.links.iter().filter(|link| link.url.scheme() == "tel").map(|link| link.url.path().to_owned());
        let named = facts.of_type(&ORGANIZATION).filter_map(|object| word(&object["telephone"]));
        linked.chain(named).filter_map(|phone| phone_number(&phone)).collect()
    });
    if let Some(url) = page {
        sources.push(Origin { field: "phones", source: "site", url: Some(url) });
    }
    let (social_profiles, page) = site.social();
    if let Some(url) = page {
        sources.push(Origin { field: "social_profiles", source: "site", url: Some(url) });
    }
    let website = site.pages.first().map(|(url, _)| url.to_string());
    Profile {
        company: Company {
            name,
            domain: domain_of(host),
            industry,
            location,
            description,
            employee_count: employees.and_then(|count| count.parse().ok()),
            linkedin_url: social_profiles.get("linkedin").cloned(),
            website,
            founded: founded.and_then(|date| date.get(..4)?.parse().ok()),
            ticker,
            phone: phones.first().cloned(),
            ..Company::default()
        },
        legal_name,
        address,
        emails,
        phones,
        social_profiles,
        sources,
        ..Profile::default()
    }
}

/// A phone number as written, without separators.
fn phone_number(text: &str) -> Option<String> {
    let text = text.replace("%20", " ").replace("(0)", "");
    let plus = if text.trim_start().starts_with('+') { "+" } else { "" };
    let digits: String = text.split([';', ',']).next()?.chars().filter(char::is_ascii_digit).collect();
    (7..=15).contains(&digits.len()).then(|| format!("{plus}{digits}"))
}

fn mail_provider(hosts: &[String]) -> Option<String> {
    let is_of =
        |host: &str, name: &str| host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    hosts.iter().find_map(|host| {
        let provider = MAIL_PROVIDERS.iter().find(|(name, _)| is_of(host, name));
        provider.map(|(_, provider)| (*provider).to_owned())
    })
}

fn services(texts: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in texts.iter().map(|text| text.to_lowercase()) {
        let is_spf = text.starts_with("v=spf1");
        for (sign, service) in SERVICES {
            let shows = match sign.strip_prefix("include:") {
                Some(_) => is_spf && text.split_whitespace().any(|word| word == sign),
                None => text.starts_with(sign),
            };
            if shows && !found.iter().any(|known| known == service) {
                found.push(service.to_owned());
            }
        }
    }
    found
}

fn dmarc_policy(text: &str) -> Option<String> {
    let mut tags = text.split(';').map(str::trim);
    if !tags.next()?.eq_ignore_ascii_case("v=dmarc1") {
        return None;
    }
    let policy = tags.find_map(|tag| tag.strip_prefix("p="))?.trim().to_lowercase();
    ["none", "quarantine", "reject"].contains(&policy.as_str()).then_some(policy)
}

async fn answer(enquiry: &Enquiry, profile: Option<Profile>, source: Source) -> Result<Output, ToolError> {
    if let Some(profile) = &profile {
        enquiry.refuse_listed(&Marks::from(&profile.company)).await?;
    }
    let result = json!({
        "status": "completed",
        "found": profile.is_some(),
        "sources": profile.as_ref().map(|profile| profile.sources.clone()).unwrap_or_default(),
        "company": profile,
        "completed_at": enquiry.now(),
    });
    Ok(Output::new(result, source))
}

fn output() -> Value {
    schema::result(json!({
        "found": {"type": "boolean"},
        "company": schema::or_null(schema::company_profile()),
        "sources": schema::sources(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dns_records_and_phone_numbers_are_read() {
        let texts = ["v=spf1 include:_spf.google.com include:sendgrid.net -all", "MS=ms123", "include:zoho.com"];
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(services(&texts), ["Google Workspace", "SendGrid", "Microsoft 365"]);
        assert_eq!(mail_provider(&["aspmx.l.google.com".to_owned()]).as_deref(), Some("Google Workspace"));
        assert_eq!(mail_provider(&["mx.notgoogle.com".to_owned()]), None);
        assert_eq!(dmarc_policy("v=DMARC1; p=Reject; rua=x").as_deref(), Some("reject"));
        assert_eq!(dmarc_policy("v=spf1 p=reject"), None);
        assert_eq!(phone_number("+49 (0)30 / 123 45-67").as_deref(), Some("+49301234567"));
        assert_eq!(phone_number("call us"), None);
    }
}
