//! Hunter. Requests and records: hunter.io/api-documentation/v2 (domain search, email finder, email enrichment, company
//! enrichment, discover; stored copies and published answers, read 2026-11).
//!
//! 404 means unknown. 451 means that the person asked Hunter not to process their data; no other vendor is asked then. 429
//! means that the plan's usage is exceeded.

use base::encoding::percent_encoded;
use platform::config::Capability;
use platform::providers::outbound::{Ask, OutboundError};
use platform::providers::{Amount, Charge};
use serde_json::{Value, json};

use super::read::{domain, email, number, profile, profile_url, record, records, text, word, words};
use super::{
    Answer, Asking, Company, CompanyFilter, CompanyQuery, Page, PeopleFilter, PeopleSource, Person, PersonQuery, Phone,
    Reply,
};

const NAME: &str = "hunter";
const ORIGIN: &str = "https://api.hunter.io";
/// By its smallest plan: 49 USD for 2,000 credits, and a credit for each address that is found.
pub const CHARGE: Charge = Charge {
    provider: NAME,
    capability: Capability::People,
    tools: &["enrich_email", "research_people"],
    amount: Amount::public(24_500, "an address", "https://hunter.io/pricing", "2026-10"),
};
/// Rows per page of either search.
const PAGE: usize = 100;
/// The finder's confidence, 0 to 100. Below this an address is a guess and is dropped.
const MIN_SCORE: u64 = 50;
const PER_SECOND: f64 = 5.0;

pub struct Hunter;

impl PeopleSource for Hunter {
    fn name(&self) -> &'static str {
        NAME
    }

    fn person<'a>(&'a self, ask: &'a Asking<'a>, who: &'a PersonQuery) -> Answer<'a, Person> {
        let handle = who.profile_url.as_deref().and_then(linkedin_handle);
        let path = match (&who.email, handle) {
            (Some(email), _) => format!("/v2/people/find?email={}", percent_encoded(email)),
            (None, Some(handle)) => format!("/v2/people/find?linkedin_handle={}", percent_encoded(&handle)),
            (None, None) => return None,
        };
        Some(Box::pin(async move {
            match send(ask, Ask::get(path)).await? {
                Reply::Found(answer) => record(person(&answer["data"], who.phones)),
                Reply::Nothing => Ok(Reply::Nothing),
                Reply::Objected => Ok(Reply::Objected),
            }
        }))
    }

    /// Hunter lists the people of one domain at a time.
    fn people<'a>(&'a self, ask: &'a Asking<'a>, filter: &'a PeopleFilter) -> Answer<'a, Page<Person>> {
        let others = [&filter.keywords, &filter.companies, &filter.location, &filter.skills, &filter.industry];
        let [domain] = &filter.company_domains[..] else { return None };
        if others.iter().any(|list| !list.is_empty()) || filter.company_size.is_some() {
            return None;
        }
        let mut query = format!("domain={}&type=personal", percent_encoded(domain));
        for (name, values) in [("job_titles", &filter.job_titles), ("seniority", &filter.seniority)] {
            if !values.is_empty() {
                query.push_str(&format!("&{name}={}", percent_encoded(&values.join(","))));
            }
        }
        Some(Box::pin(async move {
            let (mut rows, mut total) = (Vec::new(), 0);
            while rows.len() < filter.limit {
                let (limit, offset) = ((filter.limit - rows.len()).min(PAGE), filter.offset + rows.len());
                let path = format!("/v2/domain-search?{query}&limit={limit}&offset={offset}");
                let answer = match send(ask, Ask::get(path)).await {
                    Ok(Reply::Found(answer)) => answer,
                    Ok(Reply::Objected) => return Ok(Reply::Objected),
                    Ok(Reply::Nothing) => break,
                    Err(_) if !rows.is_empty() => break,
                    Err(error) => return Err(error),
                };
                total = number(&answer, "/meta/results").unwrap_or(total);
                let found = records(answer.pointer("/data/emails"))?.to_vec();
                let got = found.len();
                let data = &answer["data"];
                rows.extend(found.iter().take(limit).map(|entry| colleague(entry, data, domain, filter.phones)));
                if got < limit {
                    break;
                }
            }
            Ok(Reply::Found(Page { rows, total }))
        }))
    }

    fn company<'a>(&'a self, ask: &'a Asking<'a>, which: &'a CompanyQuery) -> Answer<'a, Company> {
        let path = format!("/v2/companies/find?domain={}", percent_encoded(which.domain.as_deref()?));
        Some(Box::pin(async move {
            match send(ask, Ask::get(path)).await? {
                Reply::Found(answer) => record(company(&answer["data"])),
                Reply::Nothing => Ok(Reply::Nothing),
                Reply::Objected => Ok(Reply::Objected),
            }
        }))
    }

    fn companies<'a>(&'a self, ask: &'a Asking<'a>, filter: &'a CompanyFilter) -> Answer<'a, Page<Company>> {
        // Hunter wants codes for places and sells funding stages in dearer plans, so such filters are not sent to it.
        if filter.funding_stage.is_some() || !filter.location.is_empty() || filter.min_employees.is_some() {
            return None;
        }
        let mut body = json!({});
        match (&filter.domain, &filter.name) {
            (Some(domain), _) => body["organization"] = json!({"domain": [domain]}),
            (None, Some(name)) => body["organization"] = json!({"name": [name]}),
            (None, None) => {}
        }
        if !filter.industry.is_empty() {
            body["industry"] = json!({"include": filter.industry});
        }
        if !filter.tags.is_empty() {
            body["keywords"] = json!({"include": filter.tags, "match": "any"});
        }
        if let Some(size) = &filter.size {
            body["headcount"] = json!([size]);
        }
        if body == json!({}) || filter.max_employees.is_some() {
            return None;
        }
        body["limit"] = json!(filter.limit.min(PAGE));
        Some(Box::pin(async move {
            let answer = match send(ask, Ask::post("/v2/discover", &body)).await? {
                Reply::Found(answer) => answer,
                Reply::Nothing => return Ok(Reply::Nothing),
                Reply::Objected => return Ok(Reply::Objected),
            };
            let rows = records(answer.pointer("/data"))?;
            let rows = rows.iter().take(filter.limit).map(|entry| Company {
                name: word(entry, "/organization"),
                domain: domain(entry, "/domain"),
                website: word(entry, "/domain").and_then(|domain| profile_url(&domain)),
                ..Company::default()
            });
            Ok(Reply::Found(Page { rows: rows.collect(), total: number(&answer, "/meta/results").unwrap_or_default() }))
        }))
    }

    fn email<'a>(&'a self, ask: &'a Asking<'a>, who: &'a PersonQuery) -> Answer<'a, String> {
        let mut query = format!("domain={}", percent_encoded(who.company_domain.as_deref()?));
        match (&who.first_name, &who.last_name, &who.name) {
            (Some(first), Some(last), _) => {
                query.push_str(&format!("&first_name={}&last_name={}", percent_encoded(first), percent_encoded(last)))
            }
            (.., Some(name)) => query.push_str(&format!("&full_name={}", percent_encoded(name))),
            _ => return None,
        }
        Some(Box::pin(async move {
            let answer = match send(ask, Ask::get(format!("/v2/email-finder?{query}"))).await? {
                Reply::Found(answer) => answer,
                Reply::Nothing => return Ok(Reply::Nothing),
                Reply::Objected => return Ok(Reply::Objected),
            };
            // Hunter says "not found" with `email: null`; any other type is an unreadable answer.
            if !matches!(answer.pointer("/data/email"), Some(Value::String(_) | Value::Null)) {
                return Err(OutboundError::Unreadable("data.email is neither a string nor null".to_owned()));
            }
            let sure = number(&answer, "/data/score").is_some_and(|score| score >= MIN_SCORE);
            Ok(email(&answer, "/data/email").filter(|_| sure).map_or(Reply::Nothing, Reply::Found))
        }))
    }
}

async fn send(ask: &Asking<'_>, question: Ask) -> Result<Reply<Value>, OutboundError> {
    let key = ask.outbound.needed_key(NAME).await?;
    // Hunter bills the same request once a month, so it may be repeated.
    let question = Ask { per_second: PER_SECOND, ..question }.header("x-api-key", key.expose());
    let (status, answer) = ask.outbound.json(NAME, ORIGIN, &question, &[404, 451], ask.deadline).await?;
    Ok(match status {
        404 => Reply::Nothing,
        451 => Reply::Objected,
        // A list of errors with status 200 counts as a failure.
        _ if answer["errors"].as_array().is_some_and(|errors| !errors.is_empty()) => {
            return Err(OutboundError::Failed("errors with status 200".to_owned()));
        }
        _ => Reply::Found(answer),
    })
}

fn linkedin_handle(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("linkedin.com/in/")?;
    let handle = rest.split(['/', '?', '#']).next()?;
    (!handle.is_empty()).then(|| handle.to_owned())
}

fn person(data: &Value, phones: bool) -> Person {
    let linkedin =
        word(data, "/linkedin/handle").and_then(|handle| profile_url(&format!("www.linkedin.com/in/{handle}")));
    let phone = word(data, "/phone").filter(|_| phones);
    Person {
        full_name: word(data, "/name/fullName"),
        first_name: word(data, "/name/givenName"),
        last_name: word(data, "/name/familyName"),
        title: word(data, "/employment/title"),
        company: word(data, "/employment/name"),
        company_domain: domain(data, "/employment/domain"),
        linkedin_url: linkedin,
        location: word(data, "/location"),
        email: email(data, "/email"),
        fullphone: phone.iter().map(|phone| Phone::of(phone.clone(), None)).collect(),
        phone,
        summary: text(data, "/bio"),
        best_work_email: email(data, "/email"),
        profiles: [("twitter", "x.com"), ("github", "github.com"), ("facebook", "facebook.com")]
            .into_iter()
            .filter_map(|(network, host)| {
                let handle = word(data, &format!("/{network}/handle"))?;
                Some((network.to_owned(), profile_url(&format!("{host}/{handle}"))?))
            })
            .collect(),
        ..Person::default()
    }
}

fn colleague(entry: &Value, data: &Value, domain: &str, phones: bool) -> Person {
    let (first, last) = (word(entry, "/first_name"), word(entry, "/last_name"));
    let joined = [&first, &last].into_iter().flatten().cloned().collect::<Vec<_>>().join(" ");
    let phone = word(entry, "/phone_number").filter(|_| phones);
    Person {
        full_name: Some(joined).filter(|name| !name.is_empty()),
        first_name: first,
        last_name: last,
        title: word(entry, "/position"),
        company: word(data, "/organization"),
        company_domain: Some(domain.to_owned()),
        linkedin_url: profile(entry, "/linkedin"),
        email: email(entry, "/value"),
        fullphone: phone.iter().map(|phone| Phone::of(phone.clone(), None)).collect(),
        phone,
        best_work_email: email(entry, "/value"),
        ..Person::default()
    }
}

fn company(data: &Value) -> Company {
    let linkedin = word(data, "/linkedin/handle").and_then(|handle| profile_url(&format!("www.linkedin.com/{handle}")));
    Company {
        name: word(data, "/name"),
        domain: domain(data, "/domain"),
        industry: word(data, "/category/industry"),
        location: word(data, "/location"),
        // Hunter gives ranges of employees, not counts.
        size: word(data, "/metrics/employees"),
        employee_count: None,
        funding_stage: None,
        description: text(data, "/description"),
        linkedin_url: linkedin,
        website: word(data, "/domain").and_then(|domain| profile_url(&domain)),
        founded: number(data, "/foundedYear"),
        ticker: word(data, "/ticker"),
        phone: word(data, "/phone").or_else(|| word(data, "/site/phoneNumbers/0")),
        tags: words(data, "/tags"),
    }
}
