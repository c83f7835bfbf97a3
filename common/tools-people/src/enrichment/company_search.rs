//! `research_company`: finds companies by name, domain, industry, place, size.

use std::sync::Arc;

use base::input::{Field, FieldError, Kind};
use base::money::Usdc;
use platform::config::Capability;
use platform::net::FetchPolicy;
use serde_json::{Map, Value, json};
use tools::spec::{Need, Price, ToolSpec};
use tools::{Runner, Running, Source, Task, ToolError, Toolbox};

use super::input::{self, DOMAIN_KIND, SAYS, texts};
use super::{Enquiry, Origin, all_from, nobody_knows, schema, site};
use crate::opt_out::Marks;
use crate::vendors::{Company, CompanyFilter, Page, keep_companies};

const DEFAULT_LIMIT: i64 = 10;
/// Maximum number of known pages read in one search.
const MAX_PAGES: usize = 10;
const NAMES: Kind = Kind::List { of: &input::NAME, max: 100 };
const WORD: Kind = Kind::Text { min: 1, max: 100, format: Some(&SAYS) };
const COUNT: Kind = Kind::Integer { min: 1, max: 10_000_000 };

pub static SPEC: ToolSpec = ToolSpec {
    name: "research_company",
    title: "Find companies",
    summary: "Finds companies by name, domain, industry, place, size and funding stage",
    group: "knowledge",
    paths: &["/v1/tools/research/company", "/v1/tools/find/company"],
    price: Price::Fixed(Usdc::from_micro(10_000)),
    input: &[
        Field::optional("name", Kind::Text { min: 1, max: 500, format: Some(&SAYS) }, "Its name"),
        Field::optional("domain", DOMAIN_KIND, "Its domain"),
        Field::optional("industry", NAMES, "Any of these industries"),
        Field::optional("location", NAMES, "Places: cities, regions, countries"),
        Field::optional("size", WORD, "A range of employees, such as 51-200"),
        Field::optional("min_employee_count", COUNT, "Minimum number of employees"),
        Field::optional("max_employee_count", COUNT, "Maximum number of employees"),
        Field::optional("funding_stage", WORD, "Such as seed, series a"),
        Field::optional("tags", NAMES, "Any of these words"),
        Field::optional("limit", Kind::Integer { min: 1, max: 100 }, "Most rows; default 10"),
    ],
    check,
    needs: |_, input| match only_vendors_judge(&filter(input)) {
        true => vec![Need::Provider(Capability::People)],
        false => super::needs(input.contains_key("domain")),
    },
    example: || json!({"name": "Example", "limit": 5}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

fn check(input: &Map<String, Value>, policy: &FetchPolicy) -> Vec<FieldError> {
    let mut wrong = input::public(input, "domain", policy);
    let number = |name: &str| input.get(name).and_then(Value::as_i64);
    if number("min_employee_count").zip(number("max_employee_count")).is_some_and(|(least, most)| least > most) {
        wrong.push(FieldError::new("max_employee_count", "must not be below min_employee_count"));
    }
    let names = [
        "name",
        "domain",
        "industry",
        "location",
        "size",
        "min_employee_count",
        "max_employee_count",
        "funding_stage",
        "tags",
    ];
    let says = |name: &&str| input.get(*name).is_some_and(|value| value.as_array().is_none_or(|list| !list.is_empty()));
    if !names.iter().any(says) {
        wrong.push(FieldError::new("", format!("one of {} is required", names.join(", "))));
    }
    wrong
}

fn filter(input: &Map<String, Value>) -> CompanyFilter {
    let number = |name: &str| input.get(name).and_then(Value::as_u64);
    CompanyFilter {
        name: input::given(input, "name"),
        domain: input::given(input, "domain").and_then(|domain| input::host_of(&domain)),
        industry: texts(input, "industry"),
        location: texts(input, "location"),
        size: input::given(input, "size"),
        min_employees: number("min_employee_count"),
        max_employees: number("max_employee_count"),
        funding_stage: input::given(input, "funding_stage"),
        tags: texts(input, "tags"),
        limit: usize::try_from(input.get("limit").and_then(Value::as_i64).unwrap_or(DEFAULT_LIMIT)).unwrap_or(1),
    }
}

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let enquiry = Enquiry::new(toolbox, task);
        let filter = filter(&enquiry.task.input);
        enquiry.refuse_listed(&Marks::default().domain(filter.domain.as_deref())).await?;
        let asking = enquiry.asking();
        let asked = enquiry.vendors(
            &asking,
            |vendor, asking| vendor.companies(asking, &filter),
            |page: &mut Page<Company>| {
                keep_companies(page, &filter);
                !page.rows.is_empty()
            },
        );
        let filters = Value::Object(enquiry.task.input.clone());
        let missed = match asked.await? {
            Ok((page, source)) => {
                let sources = all_from(&source, "results");
                return enquiry.listed(page, filters, sources, source).await;
            }
            Err(missed) => missed,
        };
        let (rows, sources, search) = look(&enquiry, &filter).await;
        let source = match rows.is_empty() {
            true => missed.ends(|| Err(nobody_knows(search.as_ref())))?,
            false => Source::embedded("pages"),
        };
        let total = rows.len() as u64;
        let rows = rows.into_iter().take(filter.limit).collect();
        enquiry.listed(Page { rows, total }, filters, sources, source).await
    })
}

/// Whether the filter asks for what companies' sites do not state, so that only a vendor can find any.
fn only_vendors_judge(filter: &CompanyFilter) -> bool {
    filter.size.is_some()
        || filter.min_employees.is_some()
        || filter.max_employees.is_some()
        || filter.funding_stage.is_some()
}

/// Companies at the given domain, or on known pages.
async fn look(enquiry: &Enquiry, filter: &CompanyFilter) -> (Vec<Company>, Vec<Origin>, Option<ToolError>) {
    let (mut rows, mut sources, mut search) = (Vec::new(), Vec::new(), None);
    let mut hosts: Vec<(String, &'static str)> = Vec::new();
    match &filter.domain {
        Some(domain) => hosts.push((domain.clone(), "site")),
        None => {
            let words: Vec<&String> = filter
                .name
                .iter()
                .chain(&filter.industry)
                .chain(&filter.location)
                .chain(&filter.tags)
                .take(12)
                .collect();
            let text = words.iter().map(|word| word.as_str()).collect::<Vec<_>>().join(" ");
            match enquiry.pages(text, MAX_PAGES).await {
                Ok(hits) => {
                    let policy = enquiry.toolbox.fetcher.policy();
                    for host in hits.iter().filter_map(|hit| site::authority(&hit.url, policy)) {
                        if hosts.iter().all(|(known, _)| *known != host) {
                            hosts.push((host, "index"));
                        }
                    }
                }
                Err(error) => search = Some(error),
            }
        }
    }
    if only_vendors_judge(filter) {
        return (rows, sources, search);
    }
    for (host, source) in hosts {
        let Some(firm) = site::read(&enquiry.toolbox, &host, enquiry.deadline).await else { continue };
        let company = super::company::of_site(&firm, &host).company;
        if fits(&company, filter) {
            let url = firm.pages.first().map(|(url, _)| url.to_string());
            sources.push(Origin { field: "results", source, url });
            rows.push(company);
        }
    }
    (rows, sources, search)
}

fn fits(company: &Company, filter: &CompanyFilter) -> bool {
    let has = |values: &[&Option<String>], wanted: &[String]| {
        let text = values.iter().filter_map(|value| value.as_deref()).collect::<Vec<_>>().join(" ").to_lowercase();
        wanted.is_empty() || wanted.iter().any(|wanted| text.contains(&wanted.to_lowercase()))
    };
    // A page without a company name is not a company's own page.
    company.name.is_some()
        && has(&[&company.name], filter.name.as_slice())
        && has(&[&company.industry, &company.description], &filter.industry)
        && has(&[&company.location], &filter.location)
        && has(&[&company.description, &company.industry], &filter.tags)
}

fn output() -> Value {
    schema::result(json!({
        "results": schema::list(schema::company()),
        "total_found": {"type": "integer"},
        "filters": schema::filters(),
        "sources": schema::sources(),
    }))
}
