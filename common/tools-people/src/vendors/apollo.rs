//! Apollo. Requests and records: docs.apollo.io/reference/people-enrichment, …/people-api-search,
//! …/organization-enrichment, …/organization-search (stored copies and published answers, read 2026-11).
//!
//! A people search returns no addresses and no full last names; its rows are passed on as they are. Apollo delivers phone
//! numbers later to a webhook, so they are never requested.

use base::encoding::percent_encoded;
use platform::config::Capability;
use platform::providers::outbound::{Ask, OutboundError};
use platform::providers::{Amount, Charge};
use serde_json::{Value, json};

use super::about::address_of;
use super::read::{self, domain, email, list, number, profile, record, text, word, words};
use super::{
    Answer, Asking, Company, CompanyFilter, CompanyQuery, Employer, Experience, Named, Page, PeopleFilter,
    PeopleSource, Person, PersonQuery, Phone, Reply,
};

const NAME: &str = "apollo";
pub const CHARGE: Charge = Charge {
    provider: NAME,
    capability: Capability::People,
    tools: &[
        "enrich_profile",
        "enrich_email",
        "enrich_company",
        "research_person",
        "research_people",
        "research_company",
    ],
    amount: Amount::Unknown("credits of a plan, whose price each contract sets"),
};
const ORIGIN: &str = "https://api.apollo.io";
/// Apollo's limits of a search: rows per page, and rows in all.
const PAGE: usize = 100;
const MAX_ROWS: usize = 50_000;
const PER_SECOND: f64 = 3.0;

pub struct Apollo;

impl PeopleSource for Apollo {
    fn name(&self) -> &'static str {
        NAME
    }

    fn person<'a>(&'a self, ask: &'a Asking<'a>, who: &'a PersonQuery) -> Answer<'a, Person> {
        let named = who.name.is_some() && (who.company_domain.is_some() || who.company.is_some());
        if who.email.is_none() && who.profile_url.is_none() && !named {
            return None;
        }
        let query = query(&[
            ("email", who.email.as_deref()),
            ("linkedin_url", who.profile_url.as_deref()),
            ("name", who.name.as_deref()),
            ("domain", who.company_domain.as_deref()),
            ("organization_name", who.company.as_deref()),
            ("reveal_personal_emails", Some("false")),
            ("reveal_phone_number", Some("false")),
        ]);
        Some(Box::pin(async move {
            let question = Ask::post(format!("/api/v1/people/match?{query}"), &json!({}));
            // A match costs credits, so a request whose answer was lost is not repeated.
            let answer = send(ask, Ask { repeatable: false, ..question }).await?;
            let found = answer.as_ref().and_then(|answer| answer.get("person")).filter(|person| person.is_object());
            found.map_or(Ok(Reply::Nothing), |found| record(person(found)))
        }))
    }

    fn people<'a>(&'a self, ask: &'a Asking<'a>, filter: &'a PeopleFilter) -> Answer<'a, Page<Person>> {
        if filter.offset + filter.limit > MAX_ROWS || !filter.skills.is_empty() && filter.keywords.is_empty() {
            return None;
        }
        let mut body = json!({});
        for (name, values) in [
            ("person_titles", &filter.job_titles),
            ("q_organization_domains_list", &filter.company_domains),
            ("person_locations", &filter.location),
            ("person_seniorities", &filter.seniority),
            ("organization_names", &filter.companies),
        ] {
            if !values.is_empty() {
                body[name] = json!(values);
            }
        }
        let words: Vec<&str> =
            filter.keywords.iter().chain(&filter.skills).chain(&filter.industry).map(String::as_str).collect();
        if !words.is_empty() {
            body["q_keywords"] = json!(words.join(" "));
        }
        if let Some(size) = &filter.company_size {
            body["organization_num_employees_ranges"] = json!([range(size)]);
        }
        if body == json!({}) {
            return None;
        }
        Some(Box::pin(async move {
            let (rows, total) =
                search(ask, "/api/v1/mixed_people/api_search", "/people", body, filter.offset, filter.limit).await?;
            Ok(Reply::Found(Page { rows: rows.iter().map(person).collect(), total }))
        }))
    }

    fn company<'a>(&'a self, ask: &'a Asking<'a>, which: &'a CompanyQuery) -> Answer<'a, Company> {
        let query = query(&[("domain", Some(which.domain.as_deref()?))]);
        Some(Box::pin(async move {
            let question = Ask::get(format!("/api/v1/organizations/enrich?{query}"));
            let answer = send(ask, Ask { repeatable: false, ..question }).await?;
            let found = answer.as_ref().and_then(|answer| answer.get("organization")).filter(|found| found.is_object());
            found.map_or(Ok(Reply::Nothing), |found| record(company(found)))
        }))
    }

    fn companies<'a>(&'a self, ask: &'a Asking<'a>, filter: &'a CompanyFilter) -> Answer<'a, Page<Company>> {
        // Apollo knows funding only by dates and amounts.
        if filter.funding_stage.is_some() {
            return None;
        }
        let mut body = json!({});
        if let Some(name) = &filter.name {
            body["q_organization_name"] = json!(name);
        }
        if let Some(domain) = &filter.domain {
            body["q_organization_domains_list"] = json!([domain]);
        }
        let tags: Vec<&String> = filter.industry.iter().chain(&filter.tags).collect();
        if !tags.is_empty() {
            body["q_organization_keyword_tags"] = json!(tags);
        }
        if !filter.location.is_empty() {
            body["organization_locations"] = json!(filter.location);
        }
        let (least, most) = (filter.min_employees, filter.max_employees);
        if least.is_some() || most.is_some() {
            let range = format!("{},{}", least.unwrap_or(1), most.unwrap_or(10_000_000));
            body["organization_num_employees_ranges"] = json!([range]);
        } else if let Some(size) = &filter.size {
            body["organization_num_employees_ranges"] = json!([range(size)]);
        }
        if body == json!({}) {
            return None;
        }
        Some(Box::pin(async move {
            let (rows, total) =
                search(ask, "/api/v1/mixed_companies/search", "/organizations", body, 0, filter.limit).await?;
            Ok(Reply::Found(Page { rows: rows.iter().map(company).collect(), total }))
        }))
    }

    fn email<'a>(&'a self, ask: &'a Asking<'a>, who: &'a PersonQuery) -> Answer<'a, String> {
        let found = self.person(ask, who)?;
        Some(Box::pin(async move { Ok(address_of(found.await?, who)) }))
    }
}

fn query(members: &[(&str, Option<&str>)]) -> String {
    let given = members.iter().filter_map(|(name, value)| Some(format!("{name}={}", percent_encoded((*value)?))));
    given.collect::<Vec<_>>().join("&")
}

/// Converts `51-200` and `10001+` to Apollo's range syntax.
fn range(size: &str) -> String {
    size.replace('-', ",").replace('+', ",10000000")
}

async fn send(ask: &Asking<'_>, question: Ask) -> Result<Option<Value>, OutboundError> {
    let key = ask.outbound.needed_key(NAME).await?;
    let question = Ask { per_second: PER_SECOND, ..question }.header("x-api-key", key.expose());
    let (status, answer) = ask.outbound.json(NAME, ORIGIN, &question, &[404, 422], ask.deadline).await?;
    Ok((status / 100 == 2).then_some(answer))
}

async fn search(
    ask: &Asking<'_>,
    path: &str,
    at: &str,
    mut body: Value,
    offset: usize,
    limit: usize,
) -> Result<(Vec<Value>, u64), OutboundError> {
    let (mut rows, mut total) = (Vec::new(), 0);
    // Pages have a fixed size, so an offset can fall inside a page.
    let (mut page, mut skip) = (offset / PAGE + 1, offset % PAGE);
    let size = if skip == 0 && page == 1 { limit.min(PAGE) } else { PAGE };
    while rows.len() < limit {
        body["page"] = json!(page);
        body["per_page"] = json!(size);
        let answer = match send(ask, Ask::post(path, &body)).await {
            Ok(Some(answer)) => answer,
            Ok(None) => break,
            Err(_) if !rows.is_empty() => break,
            Err(error) => return Err(error),
        };
        total =
            number(&answer, "/total_entries").or_else(|| number(&answer, "/pagination/total_entries")).unwrap_or(total);
        let found = read::records(answer.pointer(at))?.to_vec();
        let got = found.len();
        rows.extend(found.into_iter().take(PAGE).skip(skip));
        if got < size {
            break;
        }
        (page, skip) = (page + 1, 0);
    }
    rows.truncate(limit);
    Ok((rows, total))
}

fn person(record: &Value) -> Person {
    let (first, last) = (word(record, "/first_name"), word(record, "/last_name"));
    let joined = [&first, &last].into_iter().flatten().cloned().collect::<Vec<_>>().join(" ");
    // Locked addresses are placeholders that begin with `email_not_unlocked`.
    let work = email(record, "/email").filter(|email| !email.starts_with("email_not_unlocked"));
    let personal: Vec<String> =
        list(record, "/personal_emails").filter_map(|email| read::email_of(email.as_str()?)).collect();
    let place = [word(record, "/city"), word(record, "/state"), word(record, "/country")];
    let place = place.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let fullphone: Vec<Phone> = list(record, "/phone_numbers")
        .filter_map(|entry| Some(Phone::of(word(entry, "/sanitized_number")?, word(entry, "/type"))))
        .collect();
    Person {
        full_name: word(record, "/name").or_else(|| Some(joined).filter(|name| last.is_some() && !name.is_empty())),
        first_name: first,
        last_name: last,
        title: word(record, "/title"),
        company: word(record, "/organization/name"),
        company_domain: domain(record, "/organization/primary_domain")
            .or_else(|| domain(record, "/organization/website_url")),
        linkedin_url: profile(record, "/linkedin_url"),
        location: Some(place).filter(|place| !place.is_empty()),
        email: work.clone().or_else(|| personal.first().cloned()),
        phone: fullphone.first().map(|phone| phone.fullphone.clone()),
        summary: text(record, "/headline"),
        skills: Vec::new(),
        experience: list(record, "/employment_history").map(experience).collect(),
        education: Vec::new(),
        fullphone,
        altemails: personal.iter().skip(usize::from(work.is_none())).cloned().collect(),
        best_work_email: work,
        best_personal_email: personal.first().cloned(),
        phones_pending: false,
        profiles: [("twitter", "/twitter_url"), ("github", "/github_url"), ("facebook", "/facebook_url")]
            .into_iter()
            .filter_map(|(network, pointer)| Some((network.to_owned(), profile(record, pointer)?)))
            .collect(),
    }
}

fn experience(entry: &Value) -> Experience {
    Experience {
        company: Employer { name: word(entry, "/organization_name"), website: None },
        title: Named { name: word(entry, "/title") },
        start_date: word(entry, "/start_date"),
        end_date: word(entry, "/end_date"),
        is_primary: entry["current"] == true,
    }
}

fn company(record: &Value) -> Company {
    let place = [word(record, "/city"), word(record, "/state"), word(record, "/country")];
    let place = place.into_iter().flatten().collect::<Vec<_>>().join(", ");
    Company {
        name: word(record, "/name"),
        domain: domain(record, "/primary_domain").or_else(|| domain(record, "/website_url")),
        industry: word(record, "/industry"),
        location: Some(place).filter(|place| !place.is_empty()),
        size: None,
        employee_count: number(record, "/estimated_num_employees"),
        funding_stage: word(record, "/latest_funding_stage"),
        description: text(record, "/short_description").or_else(|| text(record, "/seo_description")),
        linkedin_url: profile(record, "/linkedin_url"),
        website: profile(record, "/website_url"),
        founded: number(record, "/founded_year"),
        ticker: word(record, "/publicly_traded_symbol"),
        phone: word(record, "/sanitized_phone").or_else(|| word(record, "/phone")),
        tags: words(record, "/keywords"),
    }
}
