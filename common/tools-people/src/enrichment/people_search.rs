//! `research_people`: finds people by title, employer, place, skill.

use std::sync::Arc;

use base::input::{Field, FieldError, Kind};
use base::money::Usdc;
use platform::config::Capability;
use platform::net::FetchPolicy;
use serde_json::{Map, Value, json};
use tools::spec::{Need, Price, ToolSpec};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox};

use super::input::{self, PHONES, SAYS, WORDS, texts};
use super::{Enquiry, Origin, RETENTION, all_from, nobody_knows, schema, site};
use crate::opt_out::Marks;
use crate::vendors::{Page, PeopleFilter, Person, keep_people, objected};

const DEFAULT_LIMIT: i64 = 100;
/// Largest offset: no vendor pages further.
const MAX_OFFSET: i64 = 50_000;
/// Maximum number of company sites and known pages read in one search.
const MAX_FIRMS: usize = 5;
const MAX_PAGES: usize = 10;
const SIZE: Kind = Kind::Text { min: 1, max: 50, format: Some(&SAYS) };

static LISTS: [&str; 8] =
    ["job_titles", "keywords", "companies", "company_domains", "location", "skills", "seniority", "industry"];

static FILTERS: &[Field] = &[
    Field::optional("job_titles", WORDS, "Any of these titles"),
    Field::optional("keywords", WORDS, "Any of these words"),
    Field::optional("companies", WORDS, "Employers, by name"),
    Field::optional("company_domains", WORDS, "Employers, by domain"),
    Field::optional("location", WORDS, "Places: cities, regions, countries"),
    Field::optional("skills", WORDS, "Any of these skills"),
    Field::optional("seniority", WORDS, "Levels, such as director, vp, cxo"),
    Field::optional("industry", WORDS, "Any of these industries"),
    Field::optional("company_size", SIZE, "A range of employees, such as 51-200"),
];

pub static SPEC: ToolSpec = ToolSpec {
    name: "research_people",
    title: "Find people",
    summary: "Finds people by title, employer, place, skill, seniority and industry, with what is known of each",
    group: "knowledge",
    paths: &["/v1/tools/research/people", "/v1/tools/find/person"],
    price: Price::Fixed(Usdc::from_micro(10_000)),
    expensive: true,
    deadline: std::time::Duration::from_secs(90),
    retention: RETENTION,
    input: &[
        Field::optional("job_titles", WORDS, "Any of these titles"),
        Field::optional("keywords", WORDS, "Any of these words"),
        Field::optional("companies", WORDS, "Employers, by name"),
        Field::optional("company_domains", WORDS, "Employers, by domain"),
        Field::optional("location", WORDS, "Places: cities, regions, countries"),
        Field::optional("skills", WORDS, "Any of these skills"),
        Field::optional("seniority", WORDS, "Levels, such as director, vp, cxo"),
        Field::optional("industry", WORDS, "Any of these industries"),
        Field::optional("company_size", SIZE, "A range of employees, such as 51-200"),
        Field::optional("filters", Kind::Object { fields: FILTERS, open: false }, "The same filters, as an object"),
        Field::optional("limit", Kind::Integer { min: 1, max: 500 }, "Most rows; default 100"),
        Field::optional("offset", Kind::Integer { min: 0, max: MAX_OFFSET }, "Rows to skip"),
        PHONES,
    ],
    check,
    needs: |_, input| {
        let filter = filter(input);
        match only_vendors_judge(&filter) {
            true => vec![Need::Provider(Capability::People)],
            false => super::needs(!filter.company_domains.is_empty()),
        }
    },
    example: || json!({"job_titles": ["Head of Sales"], "company_domains": ["example.com"], "limit": 10}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

fn check(input: &Map<String, Value>, policy: &FetchPolicy) -> Vec<FieldError> {
    let nothing = Map::new();
    let inner = input.get("filters").and_then(Value::as_object).unwrap_or(&nothing);
    let mut wrong = Vec::new();
    for (members, path) in [(input, ""), (inner, "filters.")] {
        for (index, domain) in texts(members, "company_domains").iter().enumerate() {
            if site::authority(domain, policy).is_none() {
                wrong.push(FieldError::new(format!("{path}company_domains.{index}"), "must be a public domain"));
            }
        }
    }
    let has_any = |members: &Map<String, Value>| {
        LISTS.iter().any(|name| !texts(members, name).is_empty()) || members.contains_key("company_size")
    };
    if !has_any(input) && !has_any(inner) {
        wrong.push(FieldError::new("", format!("one of {}, company_size is required", LISTS.join(", "))));
    }
    wrong
}

fn filter(input: &Map<String, Value>) -> PeopleFilter {
    let nothing = Map::new();
    let inner = input.get("filters").and_then(Value::as_object).unwrap_or(&nothing);
    let both = |name: &str| {
        let mut values = texts(input, name);
        values.extend(texts(inner, name));
        values.dedup();
        values
    };
    let number = |name: &str, default: i64| {
        let value = input.get(name).and_then(Value::as_i64).unwrap_or(default);
        usize::try_from(value).unwrap_or_default()
    };
    PeopleFilter {
        job_titles: both("job_titles"),
        keywords: both("keywords"),
        companies: both("companies"),
        company_domains: both("company_domains").iter().filter_map(|domain| input::host_of(domain)).collect(),
        location: both("location"),
        skills: both("skills"),
        seniority: both("seniority"),
        industry: both("industry"),
        company_size: input::given(input, "company_size").or_else(|| input::given(inner, "company_size")),
        limit: number("limit", DEFAULT_LIMIT),
        offset: number("offset", 0),
        phones: input.get("include_phone").is_some_and(|wanted| wanted == true),
    }
}

/// The filters as shown in the result.
fn shown(filter: &PeopleFilter) -> Value {
    let lists = [
        &filter.job_titles,
        &filter.keywords,
        &filter.companies,
        &filter.company_domains,
        &filter.location,
        &filter.skills,
        &filter.seniority,
        &filter.industry,
    ];
    let mut shown = json!({"limit": filter.limit, "offset": filter.offset});
    for (name, list) in LISTS.iter().zip(lists).filter(|(_, list)| !list.is_empty()) {
        shown[*name] = json!(list);
    }
    if let Some(size) = &filter.company_size {
        shown["company_size"] = json!(size);
    }
    shown
}

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let enquiry = Enquiry::new(toolbox, task);
        let mut filter = filter(&enquiry.task.input);
        // Employers on the opt-out list are not sent to vendors.
        let named = filter.company_domains.len();
        let mut domains = Vec::new();
        for domain in std::mem::take(&mut filter.company_domains) {
            if enquiry.refuse_listed(&Marks::default().domain(Some(&domain))).await.is_ok() {
                domains.push(domain);
            }
        }
        if named > 0 && domains.is_empty() {
            return Err(objected());
        }
        filter.company_domains = domains;
        let asking = enquiry.asking();
        let asked = enquiry.vendors(
            &asking,
            |vendor, asking| vendor.people(asking, &filter),
            |page: &mut Page<Person>| {
                keep_people(page, &filter);
                // An empty page after a vendor's last row is the end of the list. It is a result: another vendor's rows
                // would not continue this list.
                !page.rows.is_empty() || filter.offset > 0 && page.total > 0
            },
        );
        let missed = match asked.await? {
            Ok((page, source)) => {
                let sources = all_from(&source, "results");
                return answer(&enquiry, &filter, page, sources, source).await;
            }
            Err(missed) => missed,
        };
        let (rows, sources, search) = look(&enquiry, &filter).await;
        let source = match rows.is_empty() {
            true => missed.ends(|| Err(nobody_knows(search.as_ref())))?,
            false => Source::embedded("pages"),
        };
        let total = rows.len() as u64;
        let rows = rows.into_iter().skip(filter.offset).take(filter.limit).collect();
        answer(&enquiry, &filter, Page { rows, total }, sources, source).await
    })
}

/// People named on the companies' own sites and on known pages.
async fn look(enquiry: &Enquiry, filter: &PeopleFilter) -> (Vec<Person>, Vec<Origin>, Option<ToolError>) {
    let mut found: Vec<(Person, String, &'static str)> = Vec::new();
    for domain in filter.company_domains.iter().take(MAX_FIRMS) {
        enquiry.task.reporter.say(50, "reading companies' own sites");
        if let Some(firm) = site::read(&enquiry.toolbox, domain, enquiry.deadline).await {
            found.extend(firm.people().into_iter().map(|(mut person, url)| {
                person.company_domain.get_or_insert_with(|| domain.clone());
                (person, url, "site")
            }));
        }
    }
    let mut search = None;
    if found.is_empty() {
        let words: Vec<String> =
            [&filter.job_titles, &filter.keywords, &filter.companies, &filter.company_domains, &filter.location]
                .into_iter()
                .flatten()
                .take(12)
                .cloned()
                .collect();
        match enquiry.pages(words.join(" "), MAX_PAGES).await {
            Ok(hits) => {
                for hit in hits {
                    if let Some((url, facts)) = site::fetch(&enquiry.toolbox, &hit.url, enquiry.deadline).await {
                        found.extend(site::people(&facts).into_iter().map(|person| (person, url.to_string(), "index")));
                    }
                }
            }
            Err(error) => search = Some(error),
        }
    }
    let (mut rows, mut sources): (Vec<Person>, Vec<Origin>) = (Vec::new(), Vec::new());
    for (person, url, source) in found.into_iter().filter(|(person, ..)| fits(person, filter)) {
        if rows.iter().all(|known| known.full_name != person.full_name || known.company != person.company) {
            let origin = Origin { field: "results", source, url: Some(url) };
            if !sources.contains(&origin) {
                sources.push(origin);
            }
            rows.push(person);
        }
    }
    (rows, sources, search)
}

/// Whether the filter asks for what pages do not state, so that only a vendor can find anybody.
fn only_vendors_judge(filter: &PeopleFilter) -> bool {
    !filter.skills.is_empty() || !filter.industry.is_empty() || filter.company_size.is_some()
}

/// Whether a person matches the filter. Unknown values do not match.
fn fits(person: &Person, filter: &PeopleFilter) -> bool {
    let has = |value: &Option<String>, wanted: &[String]| {
        let value = value.as_deref().unwrap_or_default().to_lowercase();
        wanted.is_empty() || wanted.iter().any(|wanted| value.contains(&wanted.to_lowercase()))
    };
    let at = |wanted: &[String]| {
        let domain = person.company_domain.as_deref().unwrap_or_default();
        wanted.is_empty() || wanted.iter().any(|wanted| domain == wanted || domain.ends_with(&format!(".{wanted}")))
    };
    let about = Some([&person.title, &person.summary].into_iter().flatten().cloned().collect::<Vec<_>>().join(" "));
    !only_vendors_judge(filter)
        && has(&person.title, &filter.job_titles)
        && has(&person.title, &filter.seniority)
        && has(&about, &filter.keywords)
        && has(&person.company, &filter.companies)
        && has(&person.location, &filter.location)
        && at(&filter.company_domains)
}

async fn answer(
    enquiry: &Enquiry,
    filter: &PeopleFilter,
    mut page: Page<Person>,
    sources: Vec<Origin>,
    source: Source,
) -> Result<Output, ToolError> {
    if !filter.phones {
        page.rows.iter_mut().for_each(|person| (person.phone, person.fullphone) = (None, Vec::new()));
    }
    enquiry.listed(page, shown(filter), sources, source).await
}

fn output() -> Value {
    schema::result(json!({
        "results": schema::list(schema::person()),
        "total_found": {"type": "integer"},
        "filters": schema::filters(),
        "sources": schema::sources(),
    }))
}
