//! `enrich_profile`: everything known of one person.

use std::sync::Arc;

use base::input::Field;
use base::money::Usdc;
use serde_json::{Map, Value, json};
use tools::spec::{Need, Price, ToolSpec};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox};

use super::input::{self, DOMAIN_KIND, EMAIL_KIND, NAME, PHONES, PROFILE_KIND};
use super::{Enquiry, RETENTION, all_from, nobody_knows, person::split_name, schema};
use crate::opt_out::Marks;
use crate::vendors::{Person, PersonQuery, domain_of, email_of, is_about, profile_url};

pub static SPEC: ToolSpec = ToolSpec {
    name: "enrich_profile",
    title: "Person profile",
    summary: "Enriches one person from an e-mail address, a profile's address or a name: title, employer, contacts, history",
    group: "knowledge",
    paths: &["/v1/tools/enrich/profile", "/v1/tools/lookup/person-profile"],
    price: Price::Fixed(Usdc::from_micro(5_000)),
    durable: true,
    retention: RETENTION,
    input: &[
        Field::optional("linkedin_url", PROFILE_KIND, "The person's profile; it is never fetched"),
        Field::optional("email", EMAIL_KIND, "The person's address"),
        Field::optional("name", NAME, "First and last name"),
        Field::optional("company_domain", DOMAIN_KIND, "The employer's domain"),
        Field::optional("company", NAME, "The employer's name or domain"),
        Field::optional("profile_url", PROFILE_KIND, "A profile on any network, in place of linkedin_url"),
        Field::optional("social_media_url", PROFILE_KIND, ""),
        PHONES,
    ],
    check: |input, policy| {
        let mut wrong = input::one_of(input, &["linkedin_url", "email", "name", "profile_url", "social_media_url"]);
        wrong.extend(input::public(input, "company_domain", policy));
        wrong
    },
    needs,
    example: || json!({"email": "jane.doe@example.com", "name": "Jane Doe", "company_domain": "example.com"}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

/// Requirements of a call about one person.
pub(super) fn needs(_: &ToolSpec, input: &Map<String, Value>) -> Vec<Need> {
    let who = who(input);
    super::needs(who.email.is_some() || who.company_domain.is_some())
}

/// The person in the input.
pub(super) fn who(input: &Map<String, Value>) -> PersonQuery {
    let given = |name: &str| input::given(input, name);
    let company = given("company");
    let name = given("name").or_else(|| given("full_name"));
    let (first, last) = name.as_deref().map(split_name).unwrap_or_default();
    let urls = ["linkedin_url", "profile_url", "social_media_url"];
    PersonQuery {
        email: given("email").and_then(|email| email_of(&email)),
        profile_url: urls.iter().find_map(|name| profile_url(&given(name)?)),
        first_name: given("first_name").or(first),
        last_name: given("last_name").or(last),
        company_domain: given("company_domain")
            .and_then(|domain| input::host_of(&domain))
            .or_else(|| domain_of(company.as_deref()?)),
        company: company.filter(|company| domain_of(company).is_none()),
        name,
        // Older clients do not send the field and always got phone numbers.
        phones: input.get("include_phone").is_none_or(|wanted| wanted == true),
    }
}

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let enquiry = Enquiry::new(toolbox, task);
        let who = who(&enquiry.task.input);
        let found = find(&enquiry, &who).await?;
        let result = json!({
            "status": "completed",
            "found": found.person.is_some(),
            "profile": found.person,
            "guesses": found.guesses,
            "sources": found.sources,
            "completed_at": enquiry.now(),
        });
        Ok(Output::new(result, found.source))
    })
}

/// The person that was found, and the source.
pub(super) struct Found {
    pub person: Option<Person>,
    pub guesses: Vec<super::Guess>,
    pub sources: Vec<super::Origin>,
    pub source: Source,
}

/// Asks the vendors, then looks the person up ourselves.
pub(super) async fn find(enquiry: &Enquiry, who: &PersonQuery) -> Result<Found, ToolError> {
    enquiry.refuse_listed(&Marks::from(who)).await?;
    let asking = enquiry.asking();
    let asked = enquiry.vendors(
        &asking,
        |vendor, asking| vendor.person(asking, who),
        |person: &mut Person| is_about(person, who),
    );
    let missed = match asked.await? {
        Ok((mut person, source)) => {
            enquiry.refuse_listed(&Marks::from(&person)).await?;
            if !who.phones {
                (person.phone, person.fullphone) = (None, Vec::new());
            }
            let sources = all_from(&source, "profile");
            return Ok(Found { person: Some(person), guesses: Vec::new(), sources, source });
        }
        Err(missed) => missed,
    };
    let known = enquiry.known(who).await;
    if known.learned {
        enquiry.refuse_listed(&Marks::from(&known.person)).await?;
        let source = Source::embedded("pages");
        return Ok(Found { person: Some(known.person), guesses: known.guesses, sources: known.sources, source });
    }
    let source = missed.ends(|| Err(nobody_knows(known.search.as_ref())))?;
    Ok(Found { person: None, guesses: known.guesses, sources: Vec::new(), source })
}

fn output() -> Value {
    schema::result(json!({
        "found": {"type": "boolean"},
        "profile": schema::or_null(schema::person()),
        "guesses": schema::guesses(),
        "sources": schema::sources(),
    }))
}
