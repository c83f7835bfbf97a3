//! Identity check: a person shows a document to a vendor, or proves control of an e-mail address. The job waits for them,
//! at most a day.
//!
//! Each run reads the current state from the vendor or the store. The job is queued when the person opens the page, when
//! the vendor sends an event, and at intervals. A lost, repeated or late event only changes when the result is noticed.

use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use base::contact;
use base::input::{Field, Format, Kind};
use base::money::Usdc;
use base::names;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use ledger::payments::wire;
use platform::config::Capability;
use platform::http::log;
use platform::store::StoreError;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::spec::{Need, Price, ToolSpec};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox, Unavailable};

use super::session::{self, Decision, Session};
use crate::stripe as vendor;
use crate::stripe::DocumentCheck;

pub static SPEC: ToolSpec = ToolSpec {
    name: "identity_start",
    title: "Identity verification",
    summary: "Sends somebody a page on which they show an identity document or prove to control an e-mail address, and tells the outcome",
    group: "knowledge",
    paths: &["/v1/tools/identity/start"],
    price: Price::Fixed(Usdc::from_micro(500_000)),
    expensive: true,
    retention: crate::enrichment::RETENTION,
    durable: true,
    waits_for_person: true,
    refusals: &[(401, "agent_proof_required")],
    category: "verification",
    deadline: Duration::from_secs(40),
    needs,
    input: &[
        Field::required(
            "full_name",
            Kind::Text { min: 1, max: 200, format: None },
            "The name that the check must confirm",
        ),
        Field::optional(
            "email",
            Kind::Text { min: 3, max: 320, format: Some(&EMAIL) },
            "Their e-mail address; required where no vendor checks documents",
        ),
        Field::required(
            "purpose",
            Kind::Text { min: 1, max: 140, format: None },
            "The purpose of the check; shown to the person",
        ),
        Field::required(
            "idempotency_key",
            Kind::Text { min: 1, max: 255, format: None },
            "Your idempotency key of this check",
        ),
    ],
    accepted: |origin, request_id, created, _, _| {
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

/// The page of a check: it forwards to the vendor, or takes the mailed code. The request id in its URL is not a secret; the
/// code is.
pub fn page(origin: &str, request_id: &str) -> String {
    format!("{origin}/identity/{request_id}")
}

/// The query string of the URL to which the vendor sends a person back after the check.
pub const DONE: &str = "done";

/// Whether a call has a signed payment but neither an agent proof (`X-Agent-Proof`) nor a bearer token. Such a call is
/// refused: only the paying wallet may read the result, and the result says whether the wallet signed.
pub fn lacks_proof(headers: &HeaderMap) -> bool {
    let bearer = |value: &HeaderValue| value.to_str().is_ok_and(|value| value.to_lowercase().starts_with("bearer "));
    let is_proven = headers.contains_key("x-agent-proof") || headers.get(AUTHORIZATION).is_some_and(bearer);
    !is_proven && matches!(wire::payment(headers), Ok(Some(_)))
}

const CONTACT: &str = "contact_control";
const DOCUMENT: &str = "document";
const VENDOR_TIME: Duration = Duration::from_secs(15);

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let now = toolbox.clock.now();
        let session = match session::load(&toolbox.db, task.request_id).await {
            Ok(Some(session)) => session,
            Ok(None) => match session::open(&toolbox.db, begin(&toolbox, &task).await?).await {
                Ok(session) => session,
                Err(error) => return Ok(later(&error, now)),
            },
            Err(error) => return Ok(later(&error, now)),
        };
        let decision = match &session.decision {
            Some(decision) => decision.clone(),
            None => {
                let over = now >= session.expires_at;
                let (found, could_go_on) = match look(&toolbox, &task, &session).await {
                    Looked::Ended(decision) => (decision, false),
                    Looked::Failed(decision) => (decision, true),
                    Looked::Begun if over => (Decision::new("abandoned", None, now), true),
                    Looked::Open if over => (Decision::new("expired", None, now), true),
                    Looked::Begun | Looked::Open => {
                        return Ok(Output::waiting(session.expires_at, source(&session)));
                    }
                };
                let decision = match session::decide(&toolbox.db, task.request_id, found).await {
                    Ok((decision, _)) => decision,
                    Err(error) => return Ok(later(&error, now)),
                };
                if could_go_on {
                    close(&toolbox, &session).await;
                }
                decision
            }
        };
        Ok(Output::new(told(&session, &decision, task.wallet_signed), source(&session)))
    })
}

/// The call needs a vendor that checks documents. With an e-mail address, a mail relay is enough.
fn needs(_: &ToolSpec, input: &Map<String, Value>) -> Vec<Need> {
    let vendor = Need::Provider(Capability::Identity);
    // The input is empty when only the tool is checked, not a call. A call may have an address.
    if input.is_empty() || input.contains_key("email") { vec![vendor, Need::Mail] } else { vec![vendor] }
}

/// Cancels the vendor's session after a decision. The decision stands even if the vendor cannot be reached.
async fn close(toolbox: &Toolbox, session: &Session) {
    let Some(id) = &session.vendor_session else { return };
    if let Err(error) = vendor::cancel(&toolbox.outbound, id, Instant::now() + VENDOR_TIME).await {
        log::failure("a vendor's session could not be cancelled", &error);
    }
}

enum Looked {
    /// The vendor's session is over.
    Ended(Decision),
    /// A try failed; the vendor would accept another one.
    Failed(Decision),
    /// The person opened the vendor's page, but has not shown a document.
    Begun,
    Open,
}

/// Starts at the first configured vendor, or by mail if there is none.
async fn begin(toolbox: &Toolbox, task: &Task) -> Result<Session, ToolError> {
    let now = toolbox.clock.now();
    let email = Some(task.text("email")).filter(|email| !email.is_empty());
    let mut session = Session::new(task.request_id, task.agent, task.text("purpose"), now);
    let unconfigured = |what: &str| Err(ToolError::unavailable(Unavailable::ProviderNotConfigured, what));
    match toolbox.config.providers.order(Capability::Identity).first().map(String::as_str) {
        Some(vendor::STRIPE) => {
            let origin = toolbox.config.base_url.as_deref().unwrap_or("https://example.com");
            let back = format!("{}?{DONE}", page(origin, &task.request_id.to_string()));
            let deadline = Instant::now() + VENDOR_TIME;
            let opened = vendor::open(&toolbox.outbound, task.request_id, email, &back, deadline).await;
            let opened = opened.map_err(|error| error.of(vendor::STRIPE))?;
            (session.vendor_session, session.vendor_url) = (Some(opened.id), Some(opened.url));
        }
        Some(_) => return unconfigured("the vendor in IDENTITY_PROVIDERS is not supported"),
        None if toolbox.config.mail.smtp_url.is_none() && !cfg!(feature = "local-outbox") => {
            return unconfigured("neither a document vendor (IDENTITY_PROVIDERS) nor a mail relay is configured here");
        }
        None if email.is_none() => {
            return unconfigured(
                "this deployment can only prove control of an e-mail address, and `email` was not given",
            );
        }
        None => session.email = email.map(str::to_owned),
    }
    Ok(session)
}

/// Reads the vendor's state. A failure counts as "open": the next run asks again.
async fn look(toolbox: &Toolbox, task: &Task, session: &Session) -> Looked {
    let now = toolbox.clock.now();
    let Some(id) = &session.vendor_session else { return Looked::Open };
    match vendor::read(&toolbox.outbound, id, Instant::now() + VENDOR_TIME).await {
        Ok(DocumentCheck::Open) => Looked::Open,
        Ok(DocumentCheck::Begun) => Looked::Begun,
        Ok(DocumentCheck::Declined { reason }) => Looked::Failed(Decision::new("declined", Some(&reason), now)),
        Ok(DocumentCheck::Resubmit { reason }) => {
            Looked::Failed(Decision::new("resubmission_requested", Some(&reason), now))
        }
        Ok(DocumentCheck::Canceled) => Looked::Ended(Decision::new("abandoned", None, now)),
        Ok(DocumentCheck::Verified { document_type, issuing_country, name }) => {
            // Documents have more names than people use. A name in another script cannot be compared (`None`).
            let name_matches = name.and_then(|name| names::has_all(&name, task.text("full_name")));
            // A valid document of another person is declined.
            let decision = match name_matches {
                Some(false) => Decision::new("declined", Some("name_mismatch"), now),
                _ => Decision::new("approved", None, now),
            };
            Looked::Ended(Decision { document_type, issuing_country, name_matches, ..decision })
        }
        Err(error) => {
            log::failure("the state of an identity check could not be read from the vendor", &error);
            Looked::Open
        }
    }
}

fn source(session: &Session) -> Source {
    match &session.vendor_session {
        Some(id) => Source::upstream(vendor::STRIPE, Some(id.clone())),
        None => Source::embedded("contact_control"),
    }
}

fn told(session: &Session, decision: &Decision, wallet_signed: bool) -> Value {
    let assurance = if session.vendor_session.is_some() { DOCUMENT } else { CONTACT };
    json!({
        "status": decision.status,
        "assurance": (decision.status == "approved").then_some(assurance),
        "wallet_signed": wallet_signed,
        "reason": decision.reason,
        "document_type": decision.document_type,
        "issuing_country": decision.issuing_country,
        "name_matches": decision.name_matches,
        "decided_at": decision.decided_at.to_string(),
    })
}

/// A store error does not end the check, or a proof made meanwhile would be lost. The job waits and runs again.
fn later(error: &StoreError, now: Timestamp) -> Output {
    log::failure("an identity check could not be read or written", error);
    Output::waiting(now.plus(session::VALID), Source::embedded("contact_control"))
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
                "type": ["string", "null"], "enum": [DOCUMENT, CONTACT, null],
                "description": "What was proven: a document was checked, or only control of the e-mail address; null if nothing was",
            },
            "wallet_signed": {
                "type": "boolean",
                "description": "Whether the caller's wallet signed for this check; false if the caller used an access token. It does not mean that the wallet belongs to the person",
            },
            "reason": text("Why it was not approved"),
            "document_type": text("In the vendor's words"),
            "issuing_country": text("ISO 3166-1 alpha-2"),
            "name_matches": {
                "type": ["boolean", "null"],
                "description": "Whether the document's name contains the words of full_name; null if no document was checked, or its name is in another script",
            },
            "decided_at": {"type": "string", "format": "date-time"},
        },
    });
    let names: Vec<String> =
        schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    schema["required"] = json!(names);
    schema
}
