//! `enrich_email`: finds a person's e-mail address by name and employer. A miss is a result, with guesses.

use std::sync::Arc;

use base::input::{Field, FieldError};
use base::money::Usdc;
use platform::net::FetchPolicy;
use serde_json::{Map, Value, json};
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox, Unavailable};

use super::input::{self, DOMAIN_KIND, NAME};
use super::person::is_named;
use super::{Enquiry, Guess, Missed, Origin, RETENTION, schema, site};
use crate::opt_out::Marks;
use crate::vendors::{PersonQuery, is_at};

pub static SPEC: ToolSpec = ToolSpec {
    name: "enrich_email",
    title: "Person e-mail",
    summary: "Finds the e-mail address of a person at a company, by name and domain; a miss lists what it could be, as guesses",
    group: "knowledge",
    paths: &["/v1/tools/enrich/email", "/v1/tools/lookup/person-email"],
    price: Price::Fixed(Usdc::from_micro(5_000)),
    durable: true,
    retention: RETENTION,
    input: &[
        Field::required("company_domain", DOMAIN_KIND, "The employer's domain"),
        Field::optional("full_name", NAME, "First and last name"),
        Field::optional("first_name", NAME, "Or each on its own"),
        Field::optional("last_name", NAME, ""),
    ],
    check,
    example: || json!({"company_domain": "example.com", "full_name": "Jane Doe"}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

fn check(input: &Map<String, Value>, policy: &FetchPolicy) -> Vec<FieldError> {
    let has = |name: &str| input.contains_key(name);
    let mut wrong = match (has("full_name"), has("first_name"), has("last_name")) {
        (true, ..) | (false, true, true) => Vec::new(),
        (false, true, false) => vec![FieldError::new("last_name", "is required without full_name")],
        (false, false, true) => vec![FieldError::new("first_name", "is required without full_name")],
        (false, false, false) => input::one_of(input, &["full_name", "first_name and last_name"]),
    };
    wrong.extend(input::public(input, "company_domain", policy));
    wrong
}

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let enquiry = Enquiry::new(toolbox, task);
        let mut who = super::profile::who(&enquiry.task.input);
        who.phones = false;
        if let (None, Some(first), Some(last)) = (&who.name, &who.first_name, &who.last_name) {
            who.name = Some(format!("{first} {last}"));
        }
        enquiry.refuse_listed(&Marks::from(&who)).await?;
        let asking = enquiry.asking();
        let domain = who.company_domain.clone().unwrap_or_default();
        let asked = enquiry.vendors(
            &asking,
            |vendor, asking| vendor.email(asking, &who),
            // Reject an address at another domain.
            |email: &mut String| is_at(email, &domain),
        );
        match asked.await? {
            Ok((email, source)) => {
                let origin = Origin { field: "email", source: source.provider, url: None };
                answer(&enquiry, &who, Some((email, origin)), Vec::new(), source).await
            }
            Err(missed) => embedded(&enquiry, &who, missed).await,
        }
    })
}

/// The address on the company's own site, or guesses.
async fn embedded(enquiry: &Enquiry, who: &PersonQuery, missed: Missed) -> Result<Output, ToolError> {
    let domain = who.company_domain.clone().unwrap_or_default();
    let names = who.first_name.as_deref().zip(who.last_name.as_deref());
    enquiry.task.reporter.say(40, "reading the company's own site");
    let firm = site::read(&enquiry.toolbox, &domain, enquiry.deadline).await;
    if let (Some(firm), Some((first, last))) = (&firm, names) {
        let (emails, page) = firm.emails(&domain);
        let by_name = firm.people().into_iter().find_map(|(person, url)| {
            let same = super::person::same_name(person.full_name.as_deref()?, &format!("{first} {last}"));
            person.email.filter(|_| same).map(|email| (email, Some(url)))
        });
        let by_letters = || Some((emails.into_iter().find(|email| is_named(email, first, last))?, page));
        if let Some((email, url)) = by_name.or_else(by_letters) {
            let origin = Origin { field: "email", source: "site", url };
            return answer(enquiry, who, Some((email, origin)), Vec::new(), Source::embedded("site")).await;
        }
    }
    // Without a vendor, the site or the DNS must have answered, or the job fails.
    let takes_mail = enquiry.takes_mail(&domain).await;
    let source = missed.ends(|| match (&takes_mail, &firm) {
        (Ok(_), _) => Ok(Source::embedded("dns")),
        (Err(_), Some(_)) => Ok(Source::embedded("site")),
        (Err(error), None) => Err(ToolError::unavailable(
            Unavailable::SourceUnavailable,
            format!("the domain's DNS and site cannot be read: {error}"),
        )),
    })?;
    let guesses = match names {
        Some((first, last)) => enquiry.guess_emails(first, last, &domain).await,
        None => Vec::new(),
    };
    answer(enquiry, who, None, guesses, source).await
}

async fn answer(
    enquiry: &Enquiry,
    who: &PersonQuery,
    found: Option<(String, Origin)>,
    guesses: Vec<Guess>,
    source: Source,
) -> Result<Output, ToolError> {
    let (email, origin) = found.unzip();
    enquiry.refuse_listed(&Marks::default().email(email.as_deref())).await?;
    // Guesses are checked against the opt-out list too.
    let mut kept = Vec::new();
    for guess in guesses {
        if enquiry.refuse_listed(&Marks::default().email(Some(&guess.value))).await.is_ok() {
            kept.push(guess);
        }
    }
    let result = json!({
        "status": "completed",
        "found": email.is_some(),
        "email": email,
        "full_name": who.name.clone().unwrap_or_default(),
        "company_domain": who.company_domain.clone().unwrap_or_default(),
        "guesses": kept,
        "sources": Vec::from_iter(origin),
        "completed_at": enquiry.now(),
    });
    Ok(Output::new(result, source))
}

fn output() -> Value {
    schema::result(json!({
        "found": {"type": "boolean"},
        "email": {"type": ["string", "null"]},
        "full_name": {"type": "string"},
        "company_domain": {"type": "string"},
        "guesses": schema::guesses(),
        "sources": schema::sources(),
    }))
}
