//! People Data Labs. Requests and records: docs.peopledatalabs.com/docs/reference-person-enrichment-api,
//! …/input-parameters-person-search-api, …/elasticsearch-mapping, …/example-record, …/example-company-record,
//! …/reference-company-enrichment-api, …/reference-company-search-api (stored copies, read 2026-11).
//!
//! It bills every match, and every record of a search, so no more rows are requested than the caller wants. Only the fields
//! that are shown are requested: no birth dates, no sex, no home addresses.

use base::encoding::percent_encoded;
use platform::config::Capability;
use platform::providers::outbound::{Ask, OutboundError};
use platform::providers::{Amount, Charge};
use serde_json::{Value, json};

use super::about::address_of;
use super::read::{self, domain, email, list, number, profile, record, text, word, words};
use super::{
    Answer, Asking, Company, CompanyFilter, CompanyQuery, Education, Employer, Experience, Named, Page, PeopleFilter,
    PeopleSource, Person, PersonQuery, Phone, Reply,
};

const NAME: &str = "peopledatalabs";
const ORIGIN: &str = "https://api.peopledatalabs.com";
/// By its smallest plans: 98 USD for 350 people, 100 USD for 1,000 companies, and a credit for each row of a search.
pub const CHARGES: [Charge; 2] = [
    Charge {
        provider: NAME,
        capability: Capability::People,
        tools: &["enrich_profile", "enrich_email", "research_person", "research_people"],
        amount: Amount::public(
            280_000,
            "a person",
            "https://docs.peopledatalabs.com/docs/create-an-account.md",
            "2026-08",
        ),
    },
    Charge {
        provider: NAME,
        capability: Capability::People,
        tools: &["enrich_company", "research_company"],
        amount: Amount::public(100_000, "a company", "https://www.peopledatalabs.com/pricing/company", "2026-08"),
    },
];
/// 1 to 10. The vendor calls a match below 6 uncertain, and no result is better than a wrong person.
const MIN_LIKELIHOOD: u8 = 6;
/// The vendor's maximum rows per page.
const PAGE: usize = 100;
/// Rows are paged by a token, and skipped rows are billed too, so larger offsets are not supported.
const MAX_SKIPPED: usize = 400;
/// Free accounts may send 100 requests and 10 searches a minute; `SEARCHES_PER_SECOND` is above their limit.
const PER_SECOND: f64 = 1.6;
const SEARCHES_PER_SECOND: f64 = 0.5;

const FIELDS: &str = "full_name,first_name,last_name,job_title,job_company_name,job_company_website,linkedin_url,\
                      location_name,work_email,personal_emails,emails,summary,skills,experience,education,profiles";

pub struct PeopleDataLabs;

impl PeopleSource for PeopleDataLabs {
    fn name(&self) -> &'static str {
        NAME
    }

    fn person<'a>(&'a self, ask: &'a Asking<'a>, who: &'a PersonQuery) -> Answer<'a, Person> {
        let employer = who.company_domain.as_ref().or(who.company.as_ref());
        let name = who.name.as_ref().filter(|_| employer.is_some());
        // A name alone does not identify a person.
        if who.email.is_none() && who.profile_url.is_none() && name.is_none() {
            return None;
        }
        let fields = if who.phones { format!("{FIELDS},mobile_phone,phone_numbers") } else { FIELDS.to_owned() };
        let path = path(
            "/v5/person/enrich",
            &[
                ("email", who.email.as_deref()),
                ("profile", who.profile_url.as_deref()),
                ("name", name.map(String::as_str)),
                ("company", employer.map(String::as_str)),
                ("min_likelihood", Some(&MIN_LIKELIHOOD.to_string())),
                ("data_include", Some(&fields)),
            ],
        );
        Some(Box::pin(async move {
            let answer = send(ask, Ask { per_second: PER_SECOND, ..Ask::get(path) }).await?;
            answer.map_or(Ok(Reply::Nothing), |answer| record(person(&answer["data"])))
        }))
    }

    fn people<'a>(&'a self, ask: &'a Asking<'a>, filter: &'a PeopleFilter) -> Answer<'a, Page<Person>> {
        let wanted = filter.offset + filter.limit;
        let query = people_query(filter);
        if filter.offset > MAX_SKIPPED || query.is_empty() {
            return None;
        }
        let fields = if filter.phones { format!("{FIELDS},mobile_phone,phone_numbers") } else { FIELDS.to_owned() };
        Some(Box::pin(async move {
            let body = json!({"query": {"bool": {"must": query}}, "data_include": fields});
            let (rows, total) = search(ask, "/v5/person/search", body, wanted).await?;
            let rows = rows.iter().skip(filter.offset).map(person).collect();
            Ok(Reply::Found(Page { rows, total }))
        }))
    }

    fn company<'a>(&'a self, ask: &'a Asking<'a>, which: &'a CompanyQuery) -> Answer<'a, Company> {
        let path = path(
            "/v5/company/enrich",
            &[
                ("website", which.domain.as_deref()),
                ("name", which.name.as_deref()),
                ("profile", which.linkedin_url.as_deref()),
                ("ticker", which.ticker.as_deref()),
                ("min_likelihood", Some(&MIN_LIKELIHOOD.to_string())),
            ],
        );
        Some(Box::pin(async move {
            let answer = send(ask, Ask { per_second: PER_SECOND, ..Ask::get(path) }).await?;
            answer.map_or(Ok(Reply::Nothing), |answer| record(company(&answer)))
        }))
    }

    fn companies<'a>(&'a self, ask: &'a Asking<'a>, filter: &'a CompanyFilter) -> Answer<'a, Page<Company>> {
        let query = company_query(filter);
        if query.is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            let body = json!({"query": {"bool": {"must": query}}});
            let (rows, total) = search(ask, "/v5/company/search", body, filter.limit).await?;
            Ok(Reply::Found(Page { rows: rows.iter().map(company).collect(), total }))
        }))
    }

    fn email<'a>(&'a self, ask: &'a Asking<'a>, who: &'a PersonQuery) -> Answer<'a, String> {
        let found = self.person(ask, who)?;
        Some(Box::pin(async move { Ok(address_of(found.await?, who)) }))
    }
}

fn path(path: &str, query: &[(&str, Option<&str>)]) -> String {
    let given = query.iter().filter_map(|(name, value)| Some(format!("{name}={}", percent_encoded((*value)?))));
    format!("{path}?{}", given.collect::<Vec<_>>().join("&"))
}

/// The answer; `None` for 404 (unknown).
async fn send(ask: &Asking<'_>, question: Ask) -> Result<Option<Value>, OutboundError> {
    let key = ask.outbound.needed_key(NAME).await?;
    // A repeated request is billed again even if its first answer was lost.
    let question = Ask { repeatable: false, ..question }.header("x-api-key", key.expose());
    let (status, answer) = ask.outbound.json(NAME, ORIGIN, &question, &[404], ask.deadline).await?;
    Ok((status != 404).then_some(answer))
}

/// Reads pages until `wanted` rows or the last page; returns the rows and the total.
async fn search(
    ask: &Asking<'_>,
    path: &str,
    mut body: Value,
    wanted: usize,
) -> Result<(Vec<Value>, u64), OutboundError> {
    let (mut rows, mut total) = (Vec::new(), 0);
    while rows.len() < wanted {
        body["size"] = json!((wanted - rows.len()).min(PAGE));
        let asked = send(ask, Ask { per_second: SEARCHES_PER_SECOND, ..Ask::post(path, &body) }).await;
        let answer = match asked {
            Ok(Some(answer)) => answer,
            Ok(None) => break,
            // Keep the rows of earlier pages.
            Err(_) if !rows.is_empty() => break,
            Err(error) => return Err(error),
        };
        total = number(&answer, "/total").unwrap_or(total);
        let page = read::records(answer.pointer("/data"))?.to_vec();
        let (got, token) = (page.len(), answer["scroll_token"].clone());
        rows.extend(page.into_iter().take(PAGE));
        if got == 0 || !token.is_string() {
            break;
        }
        body["scroll_token"] = token;
    }
    rows.truncate(wanted);
    Ok((rows, total))
}

/// At least one of these conditions.
fn any(conditions: Vec<Value>) -> Value {
    json!({"bool": {"should": conditions, "minimum_should_match": 1}})
}

/// `field` is one of the values; the vendor's index is in lower case.
fn terms(field: &str, values: &[String]) -> Value {
    let values: Vec<String> = values.iter().map(|value| value.to_lowercase()).collect();
    json!({"terms": {field: values}})
}

fn matches<'a>(fields: &'a [&'a str], values: &'a [String]) -> Vec<Value> {
    let each = values.iter().flat_map(|value| fields.iter().map(move |field| json!({"match": {*field: value}})));
    each.collect()
}

fn people_query(filter: &PeopleFilter) -> Vec<Value> {
    let mut must = Vec::new();
    if !filter.job_titles.is_empty() {
        must.push(any(matches(&["job_title"], &filter.job_titles)));
    }
    if !filter.keywords.is_empty() {
        let mut each = matches(&["job_title", "job_summary", "summary"], &filter.keywords);
        each.push(terms("skills", &filter.keywords));
        must.push(any(each));
    }
    if !filter.companies.is_empty() {
        must.push(terms("job_company_name", &filter.companies));
    }
    if !filter.company_domains.is_empty() {
        must.push(terms("job_company_website", &filter.company_domains));
    }
    if !filter.location.is_empty() {
        let fields = ["location_name", "location_locality", "location_region", "location_country"];
        must.push(any(fields.iter().map(|field| terms(field, &filter.location)).collect()));
    }
    if !filter.skills.is_empty() {
        must.push(terms("skills", &filter.skills));
    }
    if !filter.seniority.is_empty() {
        must.push(terms("job_title_levels", &filter.seniority));
    }
    if !filter.industry.is_empty() {
        must.push(any(vec![terms("industry", &filter.industry), terms("job_company_industry", &filter.industry)]));
    }
    if let Some(size) = &filter.company_size {
        must.push(json!({"term": {"job_company_size": size}}));
    }
    must
}

fn company_query(filter: &CompanyFilter) -> Vec<Value> {
    let mut must = Vec::new();
    if let Some(name) = &filter.name {
        must.push(json!({"match": {"name.text": name}}));
    }
    if let Some(domain) = &filter.domain {
        must.push(json!({"term": {"website": domain}}));
    }
    if !filter.industry.is_empty() {
        must.push(terms("industry", &filter.industry));
    }
    if !filter.location.is_empty() {
        let fields = ["location.name", "location.locality", "location.region", "location.country"];
        must.push(any(fields.iter().map(|field| terms(field, &filter.location)).collect()));
    }
    if let Some(size) = &filter.size {
        must.push(json!({"term": {"size": size}}));
    }
    if filter.min_employees.is_some() || filter.max_employees.is_some() {
        let mut range = json!({});
        if let Some(least) = filter.min_employees {
            range["gte"] = json!(least);
        }
        if let Some(most) = filter.max_employees {
            range["lte"] = json!(most);
        }
        must.push(json!({"range": {"employee_count": range}}));
    }
    if let Some(stage) = &filter.funding_stage {
        must.push(json!({"term": {"latest_funding_stage": stage.to_lowercase().replace(' ', "_")}}));
    }
    if !filter.tags.is_empty() {
        must.push(terms("tags", &filter.tags));
    }
    must
}

fn person(record: &Value) -> Person {
    let personal: Vec<String> =
        list(record, "/personal_emails").filter_map(|email| read::email_of(email.as_str()?)).collect();
    let work = email(record, "/work_email");
    let mut emails: Vec<String> = work.iter().chain(&personal).cloned().collect();
    emails.extend(list(record, "/emails").filter_map(|entry| email(entry, "/address")));
    let phones = list(record, "/phone_numbers").filter_map(Value::as_str);
    let mobile = word(record, "/mobile_phone");
    let mut fullphone: Vec<Phone> = Vec::new();
    for (number, kind) in
        mobile.iter().map(|number| (number.as_str(), Some("mobile"))).chain(phones.map(|number| (number, None)))
    {
        let number = read::clean(number, 32).unwrap_or_default();
        if !number.is_empty() && fullphone.iter().all(|known| known.fullphone != number) {
            fullphone.push(Phone::of(number, kind.map(str::to_owned)));
        }
    }
    let email = emails.first().cloned();
    let mut altemails = emails.split_off(emails.len().min(1));
    altemails.retain(|alternative| Some(alternative) != email.as_ref());
    altemails.dedup();
    Person {
        full_name: word(record, "/full_name"),
        first_name: word(record, "/first_name"),
        last_name: word(record, "/last_name"),
        title: word(record, "/job_title"),
        company: word(record, "/job_company_name"),
        company_domain: domain(record, "/job_company_website"),
        linkedin_url: profile(record, "/linkedin_url"),
        location: word(record, "/location_name"),
        email,
        phone: fullphone.first().map(|phone| phone.fullphone.clone()),
        summary: text(record, "/summary"),
        skills: words(record, "/skills"),
        experience: list(record, "/experience").map(experience).collect(),
        education: list(record, "/education").map(education).collect(),
        fullphone,
        altemails,
        best_work_email: work,
        best_personal_email: personal.first().cloned(),
        phones_pending: false,
        profiles: list(record, "/profiles")
            .filter_map(|entry| Some((word(entry, "/network")?, profile(entry, "/url")?)))
            .collect(),
    }
}

fn experience(entry: &Value) -> Experience {
    Experience {
        company: Employer { name: word(entry, "/company/name"), website: word(entry, "/company/website") },
        title: Named { name: word(entry, "/title/name") },
        start_date: word(entry, "/start_date"),
        end_date: word(entry, "/end_date"),
        is_primary: entry["is_primary"] == true,
    }
}

fn education(entry: &Value) -> Education {
    Education {
        school: Named { name: word(entry, "/school/name") },
        degrees: words(entry, "/degrees"),
        majors: words(entry, "/majors"),
        start_date: word(entry, "/start_date"),
        end_date: word(entry, "/end_date"),
    }
}

fn company(record: &Value) -> Company {
    Company {
        name: word(record, "/display_name").or_else(|| word(record, "/name")),
        domain: domain(record, "/website"),
        industry: word(record, "/industry"),
        location: word(record, "/location/name"),
        size: word(record, "/size"),
        employee_count: number(record, "/employee_count"),
        funding_stage: word(record, "/latest_funding_stage"),
        description: text(record, "/summary").or_else(|| text(record, "/headline")),
        linkedin_url: profile(record, "/linkedin_url"),
        website: profile(record, "/website"),
        founded: number(record, "/founded"),
        ticker: word(record, "/ticker"),
        phone: None,
        tags: words(record, "/tags"),
    }
}
