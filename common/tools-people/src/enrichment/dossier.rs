//! `research_person`: one person's dossier, with articles about them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::input::Field;
use base::money::Usdc;
use serde_json::{Value, json};
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Running, Task, Toolbox};
use web::search::Hit;

use super::input::{self, EMAIL_KIND, NAME, PHONES, PROFILE_KIND, URL_KIND};
use super::profile::{self, Found};
use super::{Enquiry, RETENTION, schema};
use crate::vendors::{Person, PersonQuery, clean};

/// Maximum number of articles in a dossier.
const MAX_ARTICLES: usize = 10;

pub static SPEC: ToolSpec = ToolSpec {
    name: "research_person",
    title: "Person dossier",
    summary: "A person's dossier from an e-mail address, a profile's address or a name: who they are, where they work, what is written about them",
    group: "knowledge",
    paths: &["/v1/tools/research/person", "/v1/tools/lookup/person-dossier"],
    price: Price::Fixed(Usdc::from_micro(50_000)),
    deadline: Duration::from_secs(90),
    retention: RETENTION,
    input: &[
        Field::optional("email", EMAIL_KIND, "The person's address"),
        Field::optional("social_media_url", URL_KIND, "A profile of theirs; it is never fetched"),
        Field::optional("name", NAME, "First and last name"),
        Field::optional("company", NAME, "The employer's name or domain"),
        Field::optional("profile_url", PROFILE_KIND, ""),
        Field::optional("linkedin_url", PROFILE_KIND, ""),
        PHONES,
    ],
    check: |input, _| input::one_of(input, &["email", "social_media_url", "name", "profile_url", "linkedin_url"]),
    needs: profile::needs,
    example: || json!({"name": "Jane Doe", "company": "Example Corporation"}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let enquiry = Enquiry::new(toolbox, task);
        let who = profile::who(&enquiry.task.input);
        let found = profile::find(&enquiry, &who).await?;
        let articles = articles(&enquiry, &who, found.person.as_ref()).await;
        let Found { person, guesses, sources, source } = found;
        let result = json!({
            "status": "completed",
            "found": person.is_some(),
            "result": {
                "enrichment": person.map(enrichment),
                "articles": articles,
                "guesses": guesses,
                "sources": sources,
                "phones_pending": false,
            },
            "request_id": enquiry.task.request_id,
            "completed_at": enquiry.now(),
        });
        Ok(Output::new(result, source))
    })
}

/// Pages about the person, if pages can be searched. A failed search gives an empty list: the person was found.
async fn articles(enquiry: &Enquiry, who: &PersonQuery, person: Option<&Person>) -> Vec<Value> {
    let name = person.and_then(|person| person.full_name.clone()).or_else(|| who.name.clone());
    let Some(name) = name else { return Vec::new() };
    let company = person.and_then(|person| person.company.clone()).or_else(|| who.company.clone());
    let text = [name.clone(), company.unwrap_or_default()].join(" ").trim().to_owned();
    let hits = enquiry.pages(text, MAX_ARTICLES).await.unwrap_or_default();
    // Drop pages that do not contain the person's last name.
    let last = name.split_whitespace().last().unwrap_or_default().to_lowercase();
    let names = |hit: &&Hit| {
        let text = format!("{} {}", hit.title, hit.snippet.as_deref().unwrap_or_default()).to_lowercase();
        text.contains(&last)
    };
    let article = |hit: &Hit| {
        json!({
            "title": clean(&hit.title, 300),
            "url": hit.url,
            "source": hit.site,
            "published_date": hit.published_at,
            "snippet": hit.snippet.as_deref().and_then(|text| clean(text, 600)),
        })
    };
    hits.iter().filter(names).take(MAX_ARTICLES).map(article).collect()
}

fn enrichment(person: Person) -> Value {
    let organizations = person.experience.iter().map(|job| {
        json!({
            "name": job.company.name,
            "website": job.company.website,
            "title": job.title.name,
            "start_date": job.start_date,
            "end_date": job.end_date,
            "is_primary": job.is_primary,
        })
    });
    let mut organizations: Vec<Value> = organizations.collect();
    if organizations.is_empty() && person.company.is_some() {
        organizations.push(json!({
            "name": person.company,
            "website": person.company_domain,
            "title": person.title,
            "start_date": null,
            "end_date": null,
            "is_primary": true,
        }));
    }
    let schools = person.education.iter().map(|school| {
        json!({
            "name": school.school.name,
            "degrees": school.degrees,
            "majors": school.majors,
            "start_date": school.start_date,
            "end_date": school.end_date,
        })
    });
    let mut profiles: BTreeMap<String, String> = person.profiles.into_iter().collect();
    if let Some(url) = person.linkedin_url {
        profiles.entry("linkedin".to_owned()).or_insert(url);
    }
    let emails: Vec<String> = person.email.iter().chain(&person.altemails).cloned().collect();
    json!({
        "displayname": person.full_name,
        "firstname": person.first_name,
        "lastname": person.last_name,
        "bio": person.summary,
        "location": person.location,
        "altemails": emails,
        "best_work_email": person.best_work_email,
        "best_personal_email": person.best_personal_email,
        "fullphone": person.fullphone,
        "organizations": organizations,
        "schools_info": schools.collect::<Vec<_>>(),
        "social_profiles": profiles,
        "newsfeed": [],
    })
}

fn output() -> Value {
    let text = || json!({"type": ["string", "null"]});
    let texts = || schema::list(json!({"type": "string"}));
    let organization = schema::open_object(json!({
        "name": text(), "website": text(), "title": text(), "start_date": text(), "end_date": text(),
        "is_primary": {"type": "boolean"},
    }));
    let school = schema::open_object(json!({
        "name": text(), "degrees": texts(), "majors": texts(), "start_date": text(), "end_date": text(),
    }));
    let enrichment = schema::open_object(json!({
        "displayname": text(),
        "firstname": text(),
        "lastname": text(),
        "bio": text(),
        "location": text(),
        "altemails": texts(),
        "best_work_email": text(),
        "best_personal_email": text(),
        "fullphone": schema::phones(),
        "organizations": schema::list(organization),
        "schools_info": schema::list(school),
        "social_profiles": {"type": "object", "additionalProperties": {"type": "string"}},
        "newsfeed": {"type": "array", "maxItems": 0, "description": "Always empty: posts are not read"},
    }));
    let article = schema::open_object(json!({
        "title": text(), "url": {"type": "string"}, "source": text(), "published_date": text(), "snippet": text(),
    }));
    schema::result(json!({
        "found": {"type": "boolean"},
        "request_id": {"type": "string", "format": "uuid"},
        "result": schema::open_object(json!({
            "enrichment": schema::or_null(enrichment),
            "articles": schema::list(article),
            "guesses": schema::guesses(),
            "sources": schema::sources(),
            "phones_pending": {"type": "boolean"},
        })),
    }))
}
