//! Document checks by Stripe Identity.
//!
//! `POST /v1/identity/verification_sessions`, form-encoded, answers `{id, url, status}`. `GET` of the session, with
//! `verified_outputs` and `last_verification_report` expanded, gives the outcome. Statuses: `requires_input` (before a
//! document was shown, or after a failed try, when `last_error` has a code), `processing`, `verified`, `canceled`. `POST`
//! to its `/cancel` ends a session in `requires_input` (docs.stripe.com/api/identity/verification_sessions and
//! docs.stripe.com/identity/how-sessions-work, read 2026-11 in stored copies). An event only triggers a `GET`; its content
//! is never trusted, so late, repeated and reordered events do no harm.

use base::ids::RequestId;
use base::untrusted_text;
use platform::config::Capability;
use platform::providers::outbound::{Ask, Outbound, OutboundError};
use platform::providers::{Amount, Charge};
use serde_json::Value;
use tokio::time::Instant;

pub const STRIPE: &str = "stripe";
pub const CHARGE: Charge = Charge {
    provider: STRIPE,
    capability: Capability::Identity,
    tools: &["identity_start"],
    amount: Amount::public(1_500_000, "a document, whatever it finds", "https://stripe.com/pricing", "2026-09"),
};
const ORIGIN: &str = "https://api.stripe.com";

/// A hosted page of the vendor, on which a person shows a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentSession {
    pub id: String,
    pub url: String,
}

/// State of a session. It holds nothing of the document itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentCheck {
    /// The person has not begun, or the vendor is still checking.
    Open,
    /// The person began and has shown nothing so far. They may come back.
    Begun,
    Verified {
        document_type: Option<String>,
        issuing_country: Option<String>,
        name: Option<String>,
    },
    /// Final: another try would not help.
    Declined {
        reason: String,
    },
    /// The document was not accepted; another one might be.
    Resubmit {
        reason: String,
    },
    Canceled,
}

/// Error codes that stay with any other document or picture.
const FINAL: [&str; 5] =
    ["consent_declined", "country_not_supported", "selfie_face_mismatch", "selfie_manipulated", "under_supported_age"];

/// Opens a session. The same request always opens the same session.
pub async fn open(
    outbound: &Outbound,
    request_id: RequestId,
    email: Option<&str>,
    return_url: &str,
    deadline: Instant,
) -> Result<DocumentSession, OutboundError> {
    let id = request_id.to_string();
    let mut form = vec![
        ("type", "document"),
        ("metadata[request_id]", &*id),
        ("client_reference_id", &*id),
        ("return_url", return_url),
    ];
    form.extend(email.map(|email| ("provided_details[email]", email)));
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish().into_bytes();
    let ask = Ask {
        method: http::Method::POST,
        body: Some(("application/x-www-form-urlencoded", body)),
        ..Ask::get("/v1/identity/verification_sessions")
    };
    // The idempotency key makes a repeated request return the same session.
    let ask = authorized(outbound, ask).await?.header("idempotency-key", id);
    let (_, json) = outbound.json(STRIPE, ORIGIN, &ask, &[], deadline).await?;
    match (json["id"].as_str(), json["url"].as_str()) {
        (Some(id), Some(url)) if is_id(id) && url.starts_with("https://") => {
            Ok(DocumentSession { id: id.to_owned(), url: url.to_owned() })
        }
        _ => Err(OutboundError::Unreadable("no session in it".to_owned())),
    }
}

/// Reads the state of a session.
pub async fn read(outbound: &Outbound, session: &str, deadline: Instant) -> Result<DocumentCheck, OutboundError> {
    let path = format!(
        "/v1/identity/verification_sessions/{session}?expand[]=verified_outputs&expand[]=last_verification_report"
    );
    let ask = authorized(outbound, Ask::get(path)).await?;
    let (_, json) = outbound.json(STRIPE, ORIGIN, &ask, &[], deadline).await?;
    understood(&json).ok_or_else(|| OutboundError::Unreadable("no status in it".to_owned()))
}

/// Cancels a session, so that nobody shows a document after the decision. If the session has already ended, the vendor
/// refuses, which is harmless.
pub async fn cancel(outbound: &Outbound, session: &str, deadline: Instant) -> Result<(), OutboundError> {
    let ask = Ask {
        method: http::Method::POST,
        body: Some(("application/x-www-form-urlencoded", Vec::new())),
        ..Ask::get(format!("/v1/identity/verification_sessions/{session}/cancel"))
    };
    outbound.send(STRIPE, ORIGIN, &authorized(outbound, ask).await?, &[400], deadline).await.map(drop)
}

async fn authorized(outbound: &Outbound, ask: Ask) -> Result<Ask, OutboundError> {
    let key = outbound.needed_key(STRIPE).await?;
    Ok(ask.header("authorization", format!("Bearer {}", key.expose())))
}

fn understood(json: &Value) -> Option<DocumentCheck> {
    let word = |value: &Value| {
        let text = untrusted_text::visible(value.as_str()?);
        Some(text.chars().take(100).collect::<String>()).filter(|text| !text.is_empty())
    };
    let last_error = word(&json["last_error"]["code"]);
    Some(match json["status"].as_str()? {
        "verified" => {
            let document = &json["last_verification_report"]["document"];
            let outputs = &json["verified_outputs"];
            let name = match (word(&outputs["first_name"]), word(&outputs["last_name"])) {
                (Some(first), Some(last)) => Some(format!("{first} {last}")),
                _ => None,
            };
            let (document_type, issuing_country) = (word(&document["type"]), word(&document["issuing_country"]));
            DocumentCheck::Verified { document_type, issuing_country, name }
        }
        "canceled" => DocumentCheck::Canceled,
        "requires_input" => match last_error {
            None => DocumentCheck::Open,
            Some(code) if code == "abandoned" => DocumentCheck::Begun,
            Some(reason) if FINAL.contains(&reason.as_str()) => DocumentCheck::Declined { reason },
            Some(reason) => DocumentCheck::Resubmit { reason },
        },
        "processing" => DocumentCheck::Open,
        _ => return None,
    })
}

/// Whether a session id is safe in a URL path.
fn is_id(id: &str) -> bool {
    (1..=100).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The request id in a session event.
pub fn request_of(event: &[u8]) -> Option<RequestId> {
    let event: Value = serde_json::from_slice(event).ok()?;
    let is_session = event["type"].as_str()?.starts_with("identity.verification_session.");
    is_session.then_some(())?;
    event["data"]["object"]["metadata"]["request_id"].as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use axum::body::Bytes;
    use axum::http::{HeaderMap, Method, StatusCode, Uri};
    use axum::response::{IntoResponse, Response};
    use serde_json::json;

    use super::*;

    type Asked = Arc<Mutex<Vec<(Method, String, HeaderMap, String)>>>;

    async fn server(answers: Vec<Response>) -> (Outbound, Asked) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let urls = json!({"stripe": format!("http://{}", listener.local_addr().unwrap())}).to_string();
        let (asked, answers): (Asked, _) = (Arc::default(), Arc::new(Mutex::new(answers)));
        let log = asked.clone();
        let answer = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            log.lock().unwrap().push((method, uri.to_string(), headers, String::from_utf8(body.to_vec()).unwrap()));
            let response = answers.lock().unwrap().remove(0);
            async move { response }
        };
        tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(answer)).await });
        let keys = r#"{"stripe":"sk_test_1"}"#;
        (Outbound::of(&[("PROVIDER_URLS", &urls), ("PROVIDER_KEYS", keys)]), asked)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    #[tokio::test]
    async fn opening_twice_gives_the_same_session() {
        let session = json!({"id": "vs_1", "url": "https://verify.stripe.com/start/1", "status": "requires_input"});
        let answers = vec![StatusCode::BAD_GATEWAY.into_response(), session.to_string().into_response()];
        let (outbound, asked) = server(answers).await;
        let request_id = RequestId::random();
        let opened = open(&outbound, request_id, Some("a+b@c.de"), "https://us.example/", soon()).await.unwrap();
        assert_eq!(opened.id, "vs_1");
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), 2, "a failure of theirs is asked again");
        for (method, path, headers, body) in asked.iter() {
            assert_eq!((method, path.as_str()), (&Method::POST, "/v1/identity/verification_sessions"));
            assert_eq!(headers["authorization"], "Bearer sk_test_1");
            assert_eq!(headers["content-type"], "application/x-www-form-urlencoded");
            assert_eq!(headers["idempotency-key"], request_id.to_string().as_str());
            assert!(
                body.contains("type=document&") && body.contains("provided_details%5Bemail%5D=a%2Bb%40c.de"),
                "{body}"
            );
            assert!(body.contains(&format!("metadata%5Brequest_id%5D={request_id}")), "{body}");
        }
    }

    #[tokio::test]
    async fn every_status_is_read_and_no_document_data_is_kept() {
        let verified = json!({
            "status": "verified",
            "verified_outputs": {"first_name": "Ada", "last_name": "Lovelace", "dob": {"year": 1815}},
            "last_verification_report": {"document": {"type": "passport", "issuing_country": "GB", "number": "123"}},
        });
        let known = DocumentCheck::Verified {
            document_type: Some("passport".to_owned()),
            issuing_country: Some("GB".to_owned()),
            name: Some("Ada Lovelace".to_owned()),
        };
        for (answer, check) in [
            (verified, known),
            (json!({"status": "requires_input"}), DocumentCheck::Open),
            (json!({"status": "processing", "last_error": {"code": "document_expired"}}), DocumentCheck::Open),
            (json!({"status": "requires_input", "last_error": {"code": "abandoned"}}), DocumentCheck::Begun),
            (
                json!({"status": "requires_input", "last_error": {"code": "document_expired"}}),
                DocumentCheck::Resubmit { reason: "document_expired".to_owned() },
            ),
            (
                json!({"status": "requires_input", "last_error": {"code": "consent_declined"}}),
                DocumentCheck::Declined { reason: "consent_declined".to_owned() },
            ),
            (json!({"status": "canceled"}), DocumentCheck::Canceled),
        ] {
            let (outbound, asked) = server(vec![answer.to_string().into_response()]).await;
            assert_eq!(read(&outbound, "vs_1", soon()).await, Ok(check));
            assert!(asked.lock().unwrap()[0].1.starts_with("/v1/identity/verification_sessions/vs_1?expand[]="));
        }
        for answer in [json!({"status": "grand"}), json!([])] {
            let (outbound, _) = server(vec![answer.to_string().into_response()]).await;
            assert!(matches!(read(&outbound, "vs_1", soon()).await, Err(OutboundError::Unreadable(_))));
        }
        let (outbound, _) = server(vec![StatusCode::UNAUTHORIZED.into_response()]).await;
        assert_eq!(read(&outbound, "vs_1", soon()).await, Err(OutboundError::Unauthorized(401)));
    }

    #[test]
    fn an_event_names_the_request() {
        let id = RequestId::random();
        let event = |kind: &str| {
            json!({"type": kind, "data": {"object": {"metadata": {"request_id": id}}}}).to_string().into_bytes()
        };
        assert_eq!(request_of(&event("identity.verification_session.verified")), Some(id));
        assert_eq!(request_of(&event("checkout.session.completed")), None);
        assert_eq!(request_of(b"{"), None);
    }
}
