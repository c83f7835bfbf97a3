//! Errors of session requests, in both shapes: ACP's flat error, whose schema allows no other members, and the API's
//! usual one.

use axum::response::{IntoResponse, Response};
use base::input::FieldError;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use platform::http::{ApiError, MarketError, log, private_json};
use platform::store::StoreError;
use serde_json::{Value, json};

use super::session::State;

/// Most wrong fields that a message tells: ACP's error has only `param` beside it, which names one.
const MAX_TOLD: usize = 5;

/// The family of paths a request used. It decides the shape of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `/acp/checkout_sessions`: ACP's shapes, strictly.
    Acp,
    /// `/v1/checkout_sessions`: the simple shape.
    Simple,
}

#[derive(Debug)]
pub enum CheckoutError {
    /// No bearer token, or an unknown one.
    Unauthorized,
    MissingVersion,
    UnsupportedVersion,
    KeyRequired,
    /// The idempotency key was used with another body.
    KeyReused,
    /// A request with this idempotency key is still running.
    InFlight,
    /// Missing required members, as dotted paths.
    Missing(Vec<String>),
    Invalid(Vec<FieldError>),
    NotFound,
    /// The session's state does not allow this action.
    InvalidState(State),
    Expired,
    /// The session is paid, canceled or expired.
    NotCancelable(State),
    /// The payment is incomplete; holds the dotted path of the first member that is missing.
    MissingToken(&'static str),
    /// The payment was refused; holds the reason.
    PaymentFailed(String),
    Api(ApiError),
}

impl CheckoutError {
    fn status(&self, family: Family) -> StatusCode {
        match self {
            CheckoutError::Unauthorized => StatusCode::UNAUTHORIZED,
            CheckoutError::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            CheckoutError::InFlight => StatusCode::CONFLICT,
            CheckoutError::NotFound => StatusCode::NOT_FOUND,
            CheckoutError::NotCancelable(_) if family == Family::Acp => StatusCode::METHOD_NOT_ALLOWED,
            CheckoutError::PaymentFailed(_) => StatusCode::PAYMENT_REQUIRED,
            CheckoutError::Api(error) => error.status(),
            _ => StatusCode::BAD_REQUEST,
        }
    }

    fn code(&self, family: Family) -> &'static str {
        let acp = family == Family::Acp;
        match self {
            CheckoutError::Unauthorized => "unauthorized",
            CheckoutError::MissingVersion if acp => "missing_api_version",
            CheckoutError::MissingVersion | CheckoutError::UnsupportedVersion => "unsupported_api_version",
            CheckoutError::KeyRequired => "idempotency_key_required",
            CheckoutError::KeyReused if acp => "idempotency_conflict",
            CheckoutError::KeyReused => "idempotency_key_reused",
            CheckoutError::InFlight if acp => "idempotency_in_flight",
            CheckoutError::InFlight => "request_in_progress",
            CheckoutError::Missing(_) if acp => "missing_required_field",
            CheckoutError::Missing(_) | CheckoutError::Invalid(_) => "invalid_request",
            CheckoutError::NotFound => "not_found",
            CheckoutError::NotCancelable(_) if acp => "not_cancelable",
            CheckoutError::InvalidState(_) | CheckoutError::NotCancelable(_) => "invalid_state",
            CheckoutError::Expired => "session_expired",
            CheckoutError::MissingToken(_) => "missing_payment_token",
            CheckoutError::PaymentFailed(_) => "payment_failed",
            CheckoutError::Api(error) => error.code(),
        }
    }

    fn message(&self) -> String {
        match self {
            CheckoutError::Unauthorized => "send Authorization: Bearer with a platform's token".to_owned(),
            CheckoutError::MissingVersion => format!("the header API-Version is required; send {}", super::VERSION),
            CheckoutError::UnsupportedVersion => format!("the supported API-Version is {}", super::VERSION),
            CheckoutError::KeyRequired => {
                "the header Idempotency-Key is required; keep it the same for every retry of one request".to_owned()
            }
            CheckoutError::KeyReused => "the Idempotency-Key was used with another body".to_owned(),
            CheckoutError::InFlight => "a request with this Idempotency-Key is still running; try again".to_owned(),
            CheckoutError::Missing(names) => match names.as_slice() {
                [name] => format!("the field {} is required", json_path(name)),
                names => format!("{} fields are required: {}", names.len(), names.join(", ")),
            },
            CheckoutError::Invalid(errors) => match errors.as_slice() {
                [error] => format!("{} {}", json_path(&error.path), error.message),
                errors => {
                    let told = errors.iter().take(MAX_TOLD);
                    let told = told.map(|error| format!("{} {}", json_path(&error.path), error.message));
                    let told = told.collect::<Vec<_>>().join("; ");
                    let more = if errors.len() > MAX_TOLD { "; and others" } else { "" };
                    format!("{} fields are wrong: {told}{more}", errors.len())
                }
            },
            CheckoutError::NotFound => "there is no such checkout session".to_owned(),
            CheckoutError::InvalidState(state) | CheckoutError::NotCancelable(state) => {
                format!("the session is {}", state.acp())
            }
            CheckoutError::Expired => "the session has expired; make a new one".to_owned(),
            CheckoutError::MissingToken(path) => format!("the payment is incomplete: {} is required", json_path(path)),
            CheckoutError::PaymentFailed(reason) => reason.clone(),
            CheckoutError::Api(error) => error.message(),
        }
    }

    /// The members that are at fault, if any.
    fn fields(&self) -> Vec<FieldError> {
        match self {
            CheckoutError::Missing(names) => names.iter().map(|name| FieldError::new(name, "is required")).collect(),
            CheckoutError::Invalid(errors)
            | CheckoutError::Api(
                ApiError::InvalidRequest(errors) | ApiError::Market(MarketError::InvalidInput(errors)),
            ) => errors.clone(),
            CheckoutError::MissingToken(path) => vec![FieldError::new(*path, "is required")],
            _ => Vec::new(),
        }
    }

    pub fn into_response(self, family: Family) -> Response {
        let status = self.status(family);
        let body = match family {
            Family::Acp => flat(status, self.code(family), &self.message(), self.fields().first(), &self),
            Family::Simple => {
                let mut body = json!({"error": self.code(family), "message": self.message()});
                let fields = self.fields();
                if !fields.is_empty() {
                    body["details"] = json!(fields);
                }
                body
            }
        };
        // Keeps the error's own headers (such as Retry-After) and its log line.
        let mut response = match self {
            CheckoutError::Api(error) => {
                let mut response = error.into_response();
                *response.body_mut() = body.to_string().into();
                response.headers_mut().remove(header::CONTENT_LENGTH);
                response
            }
            CheckoutError::InFlight => {
                let mut response = private_json(status, &body);
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("2"));
                response
            }
            CheckoutError::NotCancelable(_) if status == StatusCode::METHOD_NOT_ALLOWED => {
                let mut response = private_json(status, &body);
                response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
                response
            }
            CheckoutError::Unauthorized => {
                let mut response = private_json(status, &body);
                response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                response
            }
            _ => private_json(status, &body),
        };
        *response.status_mut() = status;
        response
    }
}

/// ACP's flat error.
fn flat(status: StatusCode, code: &str, message: &str, field: Option<&FieldError>, error: &CheckoutError) -> Value {
    let kind = match error {
        CheckoutError::KeyReused | CheckoutError::InFlight => "request_not_idempotent",
        _ if status == StatusCode::SERVICE_UNAVAILABLE => "service_unavailable",
        _ if status.is_server_error() => "processing_error",
        _ => "invalid_request",
    };
    let mut body = json!({"type": kind, "code": code, "message": message});
    if let Some(field) = field {
        body["param"] = json!(json_path(&field.path));
    }
    body
}

/// The response when nothing matches a path under `/acp`: ACP's flat error.
pub fn unrouted(sent: &HeaderMap, error: ApiError) -> Response {
    let mut response = CheckoutError::Api(error).into_response(Family::Acp);
    super::echo(sent, &mut response);
    response
}

/// Turns a dotted path into a JSONPath (RFC 9535).
pub fn json_path(dotted: &str) -> String {
    let mut path = "$".to_owned();
    for part in dotted.split('.').filter(|part| !part.is_empty()) {
        let first_is_letter = part.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        let plain = first_is_letter && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        match part.parse::<usize>() {
            Ok(index) => path.push_str(&format!("[{index}]")),
            Err(_) if plain => path.push_str(&format!(".{part}")),
            Err(_) => {
                let escaped: String = part.chars().flat_map(escaped).collect();
                path.push_str(&format!("['{escaped}']"));
            }
        }
    }
    path
}

fn escaped(letter: char) -> Vec<char> {
    match letter {
        '\'' | '\\' => vec!['\\', letter],
        letter if letter.is_control() => format!("\\u{:04x}", u32::from(letter)).chars().collect(),
        letter => vec![letter],
    }
}

impl From<ApiError> for CheckoutError {
    fn from(error: ApiError) -> CheckoutError {
        match error {
            ApiError::InvalidRequest(errors) => CheckoutError::Invalid(errors),
            error => CheckoutError::Api(error),
        }
    }
}

impl From<StoreError> for CheckoutError {
    fn from(error: StoreError) -> CheckoutError {
        CheckoutError::Api(error.into())
    }
}

impl From<platform::store::WriteError> for CheckoutError {
    fn from(error: platform::store::WriteError) -> CheckoutError {
        log::failure("a session could not be written", &error);
        StoreError::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_rfc_9535() {
        for (dotted, path) in [
            ("", "$"),
            ("line_items.0.id", "$.line_items[0].id"),
            ("metadata.input.two words", "$.metadata.input['two words']"),
            ("a.it's", "$.a['it\\'s']"),
        ] {
            assert_eq!(json_path(dotted), path);
        }
    }

    #[test]
    fn status_and_code_of_each_error() {
        let rows = [
            (CheckoutError::Unauthorized, 401, "unauthorized", 401, "unauthorized"),
            (CheckoutError::MissingVersion, 400, "missing_api_version", 400, "unsupported_api_version"),
            (CheckoutError::UnsupportedVersion, 400, "unsupported_api_version", 400, "unsupported_api_version"),
            (CheckoutError::KeyRequired, 400, "idempotency_key_required", 400, "idempotency_key_required"),
            (CheckoutError::KeyReused, 422, "idempotency_conflict", 422, "idempotency_key_reused"),
            (CheckoutError::InFlight, 409, "idempotency_in_flight", 409, "request_in_progress"),
            (CheckoutError::InvalidState(State::Completed), 400, "invalid_state", 400, "invalid_state"),
            (CheckoutError::NotCancelable(State::Canceled), 405, "not_cancelable", 400, "invalid_state"),
            (CheckoutError::MissingToken("payment_data"), 400, "missing_payment_token", 400, "missing_payment_token"),
            (CheckoutError::Expired, 400, "session_expired", 400, "session_expired"),
            (CheckoutError::PaymentFailed("no".to_owned()), 402, "payment_failed", 402, "payment_failed"),
            (CheckoutError::NotFound, 404, "not_found", 404, "not_found"),
        ];
        for (error, acp, acp_code, simple, simple_code) in rows {
            for (family, status, code) in [(Family::Acp, acp, acp_code), (Family::Simple, simple, simple_code)] {
                assert_eq!((error.status(family).as_u16(), error.code(family)), (status, code));
                assert!(!error.message().is_empty());
            }
        }
    }
}
