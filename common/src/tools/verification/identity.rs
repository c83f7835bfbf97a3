//! Identity: somebody outside shows a document to a vendor, or proves to control an e-mail address. The job waits for them,
//! at most a day.
//!
//! What waits looks after itself: the tool is run again when the page or the vendor's event sends the job to the queue, and
//! now and then besides, and finds out each time how things stand. So an event that is lost, repeated or late changes nothing
//! but the moment.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::super::{Output, Runner, Running, Source, Task, ToolError, Toolbox, Unavailable};
use super::session::{self, Decision, Session};
use crate::catalog::input::{Field, Format, Kind};
use crate::catalog::{Need, Price, ToolSpec};
use crate::config::Capability;
use crate::contact;
use crate::http::log;
use crate::money::Usdc;
use crate::providers::identity::{self as vendor, DocumentCheck};
use crate::store::StoreError;

pub static SPEC: ToolSpec = ToolSpec {
    name: "identity_start",
    title: "Identity verification",
    summary: "Sends somebody a page on which they show an identity document or prove to control an e-mail address, and tells the outcome",
    group: "knowledge",
    paths: &["/v1/tools/identity/start"],
    price: Price::Fixed(Usdc::from_micro(500_000)),
    expensive: true,
    retention: crate::tools::enrichment::RETENTION,
    durable: true,
    category: "verification",
    deadline: Duration::from_secs(40),
    needs,
    input: &[
        Field::required("full_name", Kind::Text { min: 1, max: 200, format: None }, "Who they should turn out to be"),
        Field::optional(
            "email",
            Kind::Text { min: 3, max: 320, format: Some(&EMAIL) },
            "Their address: needed where no vendor looks at documents",
        ),
        Field::required("purpose", Kind::Text { min: 1, max: 140, format: None }, "What it is for; they are shown it"),
        Field::required("idempotency_key", Kind::Text { min: 1, max: 255, format: None }, "Your name for this check"),
    ],
    accepted: |origin, request_id, created| {
        json!({
            "verification_url": page(origin, &request_id.to_string()),
            "expires_at": created.plus(session::VALID).to_string(),
        })
    },
    example: || {
        json!({
            "full_name": "Ada Lovelace", "email": "ada@example.com", "purpose": "To rent a workshop",
            "idempotency_key": "workshop-17",
        })
    },
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

static EMAIL: Format =
    Format { name: Some("email"), pattern: None, matches: contact::is_email, message: "must be an e-mail address" };

/// The page of a check: it leads on to the vendor's, or is where a code is typed in. The request's id is what it is found by
/// and no secret: the code is one.
pub fn page(origin: &str, request_id: &str) -> String {
    format!("{origin}/identity/{request_id}")
}

const CONTACT: &str = "contact_control";
const DOCUMENT: &str = "document";
const VENDOR_TIME: Duration = Duration::from_secs(15);

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let now = toolbox.clock.now();
        let session = match session::load(&toolbox.db, task.request_id).await.map_err(broken)? {
            Some(session) => session,
            None => begin(&toolbox, &task).await?,
        };
        let decision = match &session.decision {
            Some(decision) => decision.clone(),
            None => {
                let found = look(&toolbox, &task, &session).await;
                let over = now >= session.expires_at;
                let found = match found {
                    Looked::Decided(decision) => decision,
                    Looked::Open { last_error: Some(error) } if over => {
                        Decision::new("resubmission_requested", Some(&error), now)
                    }
                    Looked::Open { .. } if over => Decision::new("expired", None, now),
                    Looked::Open { .. } => return Ok(Output::waiting(session.expires_at, source(&session))),
                };
                session::decide(&toolbox.db, task.request_id, found).await.map_err(broken)?.0
            }
        };
        Ok(Output::new(told(&session, &decision), source(&session)))
    })
}

/// A vendor that looks at documents; or mail, where there is an address to prove control of.
fn needs(_: &ToolSpec, input: &Map<String, Value>) -> Vec<Need> {
    let vendor = Need::Provider(Capability::Identity);
    // Where nothing is known of the call yet, an address may come.
    if input.is_empty() || input.contains_key("email") { vec![vendor, Need::Mail] } else { vec![vendor] }
}

enum Looked {
    Decided(Decision),
    Open { last_error: Option<String> },
}

/// Who is asked: the first vendor that is configured, or whoever reads the mail.
async fn begin(toolbox: &Toolbox, task: &Task) -> Result<Session, ToolError> {
    let now = toolbox.clock.now();
    let email = Some(task.text("email")).filter(|email| !email.is_empty());
    let mut session = Session::new(task.request_id, task.agent, task.text("purpose"), now);
    let unconfigured = |what: &str| Err(ToolError::unavailable(Unavailable::ProviderNotConfigured, what));
    match toolbox.config.providers.order(Capability::Identity).first().map(String::as_str) {
        Some(vendor::STRIPE) => {
            let back = toolbox.config.base_url.as_deref().unwrap_or("https://example.com");
            let deadline = Instant::now() + VENDOR_TIME;
            let opened = vendor::open(&toolbox.outbound, task.request_id, email, back, deadline).await;
            let opened = opened.map_err(|error| error.of(vendor::STRIPE))?;
            (session.vendor_session, session.vendor_url) = (Some(opened.id), Some(opened.url));
        }
        Some(_) => return unconfigured("IDENTITY_PROVIDERS names nobody there is an adapter for"),
        None if toolbox.config.mail.smtp_url.is_none() && !cfg!(feature = "local-outbox") => {
            return unconfigured("this deployment has neither a vendor that looks at documents nor a mail relay");
        }
        None if email.is_none() => {
            return unconfigured("this deployment proves control of an e-mail address only, and none was given");
        }
        None => session.email = email.map(str::to_owned),
    }
    session::open(&toolbox.db, session).await.map_err(broken)
}

/// How it stands at the vendor. What cannot be asked now is asked later.
async fn look(toolbox: &Toolbox, task: &Task, session: &Session) -> Looked {
    let now = toolbox.clock.now();
    let Some(id) = &session.vendor_session else { return Looked::Open { last_error: None } };
    match vendor::read(&toolbox.outbound, id, Instant::now() + VENDOR_TIME).await {
        Ok(DocumentCheck::Open { last_error }) => Looked::Open { last_error },
        Ok(DocumentCheck::Declined { reason }) => Looked::Decided(Decision::new("declined", Some(&reason), now)),
        Ok(DocumentCheck::Canceled) => Looked::Decided(Decision::new("abandoned", None, now)),
        Ok(DocumentCheck::Verified { document_type, issuing_country, name }) => {
            let name_matches = name.map(|name| same_name(&name, task.text("full_name")));
            let approved = Decision::new("approved", None, now);
            Looked::Decided(Decision { document_type, issuing_country, name_matches, ..approved })
        }
        Err(error) => {
            log::failure("an identity check could not be looked at", &error);
            Looked::Open { last_error: None }
        }
    }
}

/// The same words in any order and case. A middle name that only one of them has makes them differ.
fn same_name(one: &str, other: &str) -> bool {
    let words = |name: &str| {
        let name = name.to_lowercase();
        let mut words: Vec<String> = name
            .split(|letter: char| !letter.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        words.sort();
        words
    };
    words(one) == words(other)
}

fn source(session: &Session) -> Source {
    match &session.vendor_session {
        Some(id) => Source::upstream(vendor::STRIPE, Some(id.clone())),
        None => Source::embedded("contact_control"),
    }
}

fn told(session: &Session, decision: &Decision) -> Value {
    json!({
        "status": decision.status,
        "assurance": if session.vendor_session.is_some() { DOCUMENT } else { CONTACT },
        "reason": decision.reason,
        "document_type": decision.document_type,
        "issuing_country": decision.issuing_country,
        "name_matches": decision.name_matches,
        "decided_at": decision.decided_at.to_string(),
    })
}

fn broken(error: StoreError) -> ToolError {
    log::failure("an identity check could not be read or kept", &error);
    ToolError::internal("the check could not be read or kept")
}

fn output() -> Value {
    let text = |about: &str| json!({"type": ["string", "null"], "description": about});
    let mut schema = json!({
        "type": "object",
        "properties": {
            "status": {
                "type": "string",
                "enum": ["approved", "declined", "resubmission_requested", "expired", "abandoned"],
            },
            "assurance": {
                "type": "string", "enum": [DOCUMENT, CONTACT],
                "description": "What was proven: a document was looked at, or only that somebody reads the address's mail",
            },
            "reason": text("Why it was not approved"),
            "document_type": text("As the vendor names it"),
            "issuing_country": text("ISO 3166-1 alpha-2"),
            "name_matches": {
                "type": ["boolean", "null"],
                "description": "Whether the document's name has the words of full_name; null where no document was looked at",
            },
            "decided_at": {"type": "string", "format": "date-time"},
        },
    });
    let names: Vec<String> =
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    schema["required"] = json!(names);
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_by_their_words() {
        assert!(same_name("Ada LOVELACE", "Lovelace, Ada") && same_name("\u{c9}mile Zola", "\u{e9}mile zola"));
        assert!(!same_name("Ada Lovelace", "Ada King Lovelace") && !same_name("Ada Lovelace", "Ida Lovelace"));
    }
}
