//! Hunter's e-mail verifier: it asks mail hosts where we cannot.
//!
//! `GET /v2/email-verifier?email=…` with the key in `X-API-KEY`. 200 comes with `data`, 202 means still checking, 222 means
//! that the mail host's answer made no sense, 451 means that the address's owner opted out (hunter.io/api-documentation/v2,
//! "Email Verifier", and its OpenAPI description, read 2026-11 in stored copies). Limits: 10 requests a second, 300 a
//! minute.

use std::time::Duration;

use platform::config::Capability;
use platform::providers::{Amount, Ask, Charge, Outbound, OutboundError};
use serde_json::Value;
use tokio::time::Instant;

use super::verdict::{Findings, Mailbox};

pub const NAME: &str = "hunter";
const ORIGIN: &str = "https://api.hunter.io";
/// Half a credit of its smallest plan: 49 USD for 2,000.
pub const CHARGE: Charge = Charge {
    provider: NAME,
    capability: Capability::EmailCheck,
    tools: &["verify_email"],
    amount: Amount::public(12_250, "an address", "https://hunter.io/pricing", "2026-10"),
};
/// 300 requests a minute.
const PER_SECOND: f64 = 5.0;
/// Pause before asking again after a 202.
const PAUSE: Duration = Duration::from_secs(3);

/// Adds Hunter's findings to the known ones.
pub async fn ask(
    outbound: &Outbound,
    email: &str,
    known: &Findings,
    deadline: Instant,
) -> Result<Findings, OutboundError> {
    let asked = email;
    let email: String = url::form_urlencoded::byte_serialize(email.as_bytes()).collect();
    let key = outbound.needed_key(NAME).await?;
    let ask = Ask { per_second: PER_SECOND, ..Ask::get(format!("/v2/email-verifier?email={email}")) };
    let ask = ask.header("x-api-key", key.expose());
    loop {
        let answer = outbound.send(NAME, ORIGIN, &ask, &[451], deadline).await?;
        match answer.status {
            451 => return Ok(Findings { mailbox: Mailbox::Barred, ..known.clone() }),
            222 => return Ok(Findings { mailbox: Mailbox::Unclear, ..known.clone() }),
            202 if Instant::now() + PAUSE < deadline => tokio::time::sleep(PAUSE).await,
            202 => return Err(OutboundError::NotAsked("it was still checking when the time was up".to_owned())),
            _ => {
                let json: Option<Value> = serde_json::from_slice(&answer.body).ok();
                let data = json.as_ref().and_then(|json| json.get("data"));
                // An answer about another address is ignored.
                let data =
                    data.filter(|data| data["email"].as_str().is_none_or(|email| email.eq_ignore_ascii_case(asked)));
                let data = data.and_then(|data| read(data, known));
                return data.ok_or_else(|| OutboundError::Unreadable("no verification in it".to_owned()));
            }
        }
    }
}

/// `None` if the answer is not as documented.
fn read(data: &Value, known: &Findings) -> Option<Findings> {
    let is = |name: &str| data[name].as_bool();
    let status = data["status"].as_str()?;
    let by_check = match (is("smtp_check"), is("accept_all"), is("block")) {
        (Some(true), Some(accept_all), _) => (Mailbox::Accepted, Some(accept_all)),
        (_, _, Some(true)) => (Mailbox::Blocked, None),
        _ => (Mailbox::Unclear, None),
    };
    let (mailbox, catch_all) = match status {
        "valid" => (Mailbox::Accepted, Some(false)),
        "accept_all" => (Mailbox::Accepted, Some(true)),
        "invalid" => (Mailbox::Rejected, None),
        "webmail" | "disposable" | "unknown" => by_check,
        _ => return None,
    };
    let disposable = known.disposable || status == "disposable" || is("disposable") == Some(true);
    Some(Findings { mailbox, catch_all, disposable, ..known.clone() })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::http::{HeaderMap, Method, StatusCode, Uri};
    use axum::response::{IntoResponse, Response};
    use base::tool_result::ErrorCode;
    use serde_json::json;
    use tools::testing;

    use super::*;

    type Asked = Arc<Mutex<Vec<(Method, String, HeaderMap)>>>;

    async fn server(script: impl Fn(usize) -> Response + Clone + Send + Sync + 'static) -> (String, Asked) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Asked = Arc::default();
        let log = asked.clone();
        let answer = move |method: Method, uri: Uri, headers: HeaderMap| {
            let count = {
                let mut log = log.lock().unwrap();
                log.push((method, uri.to_string(), headers));
                log.len()
            };
            let response = script(count);
            async move { response }
        };
        let router = axum::Router::new().fallback(answer);
        tokio::spawn(async move { axum::serve(listener, router).await });
        (url, asked)
    }

    async fn asked_of(url: &str) -> Result<Findings, OutboundError> {
        let urls = json!({"hunter": url}).to_string();
        let toolbox = testing::toolbox(&[("PROVIDER_URLS", &urls), ("PROVIDER_KEYS", r#"{"hunter":"k-1"}"#)]);
        let deadline = Instant::now() + Duration::from_secs(8);
        ask(&toolbox.outbound, "ada+x@example.org", &Findings::default(), deadline).await
    }

    fn data(status: &str, more: &Value) -> Response {
        let mut data = json!({"status": status, "score": 50, "email": "ada+x@example.org", "regexp": true});
        platform::http::error::merge(&mut data, more.clone());
        json!({"data": data, "meta": {"params": {"email": "ada+x@example.org"}}}).to_string().into_response()
    }

    #[tokio::test]
    async fn requests_are_as_documented_and_every_status_is_read() {
        for (status, more, mailbox, catch_all, disposable) in [
            ("valid", json!({"accept_all": false, "smtp_check": true}), Mailbox::Accepted, Some(false), false),
            ("accept_all", json!({"accept_all": true}), Mailbox::Accepted, Some(true), false),
            ("invalid", json!({"smtp_check": false}), Mailbox::Rejected, None, false),
            ("webmail", json!({"smtp_check": true, "accept_all": false}), Mailbox::Accepted, Some(false), false),
            ("webmail", json!({"smtp_check": false}), Mailbox::Unclear, None, false),
            ("disposable", json!({"smtp_check": true, "accept_all": true}), Mailbox::Accepted, Some(true), true),
            ("unknown", json!({"block": true}), Mailbox::Blocked, None, false),
            ("unknown", json!({"disposable": true}), Mailbox::Unclear, None, true),
        ] {
            let (url, asked) = server(move |_| data(status, &more)).await;
            let found = asked_of(&url).await.unwrap();
            assert_eq!(
                (found.mailbox, found.catch_all, found.disposable),
                (mailbox, catch_all, disposable),
                "{status}"
            );
            let (method, uri, headers) = asked.lock().unwrap()[0].clone();
            assert_eq!((method, uri.as_str()), (Method::GET, "/v2/email-verifier?email=ada%2Bx%40example.org"));
            assert_eq!(headers["x-api-key"], "k-1", "and not in the address, which ends in logs");
        }
    }

    #[tokio::test]
    async fn a_202_is_polled_and_failures_keep_their_kind() {
        let (url, asked) = server(|count| match count {
            1 => (StatusCode::ACCEPTED, "").into_response(),
            _ => data("valid", &json!({})),
        })
        .await;
        assert_eq!(asked_of(&url).await.unwrap().mailbox, Mailbox::Accepted);
        assert_eq!(asked.lock().unwrap().len(), 2);

        let (url, asked) = server(|count| match count {
            1 => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "0")]).into_response(),
            2 => StatusCode::BAD_GATEWAY.into_response(),
            _ => data("invalid", &json!({})),
        })
        .await;
        assert_eq!(asked_of(&url).await.unwrap().mailbox, Mailbox::Rejected);
        assert_eq!(asked.lock().unwrap().len(), 3);

        for (status, mailbox) in [(222, Mailbox::Unclear), (451, Mailbox::Barred)] {
            let (url, _) = server(move |_| StatusCode::from_u16(status).unwrap().into_response()).await;
            assert_eq!(asked_of(&url).await.unwrap().mailbox, mailbox);
        }
        for (status, code) in [(401, ErrorCode::ProviderAuth), (400, ErrorCode::ProviderUnavailable)] {
            let (url, _) = server(move |_| StatusCode::from_u16(status).unwrap().into_response()).await;
            let error = asked_of(&url).await.unwrap_err().of(NAME);
            assert_eq!(error.code, code);
            assert!(!error.message.contains("k-1"));
        }
        for body in ["", "[]", "not json", r#"{"data":{"status":7}}"#, r#"{"data":{"status":"grand"}}"#] {
            let (url, _) = server(move |_| body.into_response()).await;
            assert!(matches!(asked_of(&url).await, Err(OutboundError::Unreadable(_))), "{body}");
        }
    }
}
