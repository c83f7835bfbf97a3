//! What Twilio tells about texts, and the texts that it passes on.
//!
//! Twilio signs each request with the account's token: <https://www.twilio.com/docs/usage/security>. The signature has no time
//! in it, so a request may come again at any time; applying it twice changes nothing.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use gate::limits::{self, Class, Subject};
use gate::respond;
use http::{HeaderValue, StatusCode, header};
use platform::http::{ApiError, Params, log, read_body};
use platform::providers::OutboundError;
use platform::store::StoreError;
use tools_sms::providers::{self, twilio};
use tools_sms::{events, signature};

use crate::Messaging;

/// Largest form in bytes. A text has at most 1,600 characters, and its other fields are short.
const MAX_FORM_BYTES: usize = 64 * 1024;
const FORM: &str = "application/x-www-form-urlencoded";
const SIGNATURE: &str = "x-twilio-signature";
/// TwiML that answers a text with none. Twilio itself answers STOP, START and HELP.
const NO_ANSWER: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response/>";

/// `POST /v1/providers/twilio/status?request=…&index=…`: the state of a text that was sent. 204.
pub async fn status(State(state): State<Messaging>, request: Request) -> Response {
    let answer = async {
        let posted = state.signed_by_twilio(request).await?;
        let params = Params::of(posted.query.as_deref());
        let param = |name: &str| params.text(name).unwrap_or_default();
        let (request_id, index) = (param(twilio::PARAM_REQUEST), param(twilio::PARAM_INDEX));
        events::apply_twilio_status(state.toolbox(), request_id, index, &posted.form).await?;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        Ok(response)
    };
    respond(answer.await)
}

/// `POST /v1/providers/twilio/inbound`: a text to one of the operator's numbers. 200 with TwiML that sends nothing.
pub async fn inbound(State(state): State<Messaging>, request: Request) -> Response {
    let answer = async {
        let posted = state.signed_by_twilio(request).await?;
        events::apply_twilio_inbound(state.toolbox(), &posted.form).await?;
        let mut response = Response::new(Body::from(NO_ANSWER));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/xml"));
        Ok(response)
    };
    respond(answer.await)
}

/// A request that Twilio has signed.
struct Posted {
    query: Option<String>,
    form: BTreeMap<String, String>,
}

impl Messaging {
    /// Reads a request of Twilio.
    ///
    /// # Errors
    /// 404 unless texts go through Twilio; 415, 413; 403 `invalid_signature`; 503 if the key cannot be read now.
    async fn signed_by_twilio(&self, request: Request) -> Result<Posted, ApiError> {
        let (app, toolbox) = (self.app(), self.toolbox());
        if providers::chosen(&app.config) != Some(twilio::NAME) {
            return Err(ApiError::NotFound);
        }
        let (parts, body) = request.into_parts();
        let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = text(header::CONTENT_TYPE.as_str()).split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case(FORM) {
            return Err(ApiError::UnsupportedMediaType);
        }
        let body = read_body(body, MAX_FORM_BYTES).await?;
        let account = twilio::Account::of(&toolbox.outbound).await.map_err(|error| {
            log::failure("Twilio's signatures cannot be checked", &error.detail());
            match error {
                OutboundError::NotConfigured(_) => ApiError::NotFound,
                error => ApiError::Unavailable(StoreError::new(error.detail())),
            }
        })?;
        // The signature is over the address as Twilio called it.
        let mut url = app.resource_url(&parts);
        if let Some(query) = parts.uri.query() {
            url.push('?');
            url.push_str(query);
        }
        if !account.has_signed(&url, &body, text(SIGNATURE)) {
            limits::take(app, Subject::source(), Class::Open).await?;
            return Err(ApiError::Tool {
                status: StatusCode::FORBIDDEN,
                code: "invalid_signature",
                message: "the X-Twilio-Signature is missing or wrong".to_owned(),
            });
        }
        Ok(Posted { query: parts.uri.query().map(str::to_owned), form: signature::form(&body) })
    }
}
