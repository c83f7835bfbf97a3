//! Turns a tool call into the HTTP request it stands for, so that MCP and HTTP share validation, prices, claims,
//! idempotency keys, rate limits and stored answers.

use axum::body::{Body, Bytes};
use axum::response::Response;
use base::encoding::base64_standard;
use base::input::{self, FieldError};
use base::money::Usdc;
use gate::limits::Owned;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use lambda_http::request::RequestContext;
use platform::http::limit::Arrived;
use platform::http::{ApiError, read_body};
use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};
use tools::availability::Lacking;
use tools::soul::EXECUTION;
use tools::spec::{Price, RECEIPT_FIELDS, TOP_UP, ToolSpec};
use tower::ServiceExt;

use crate::Shop;
use crate::reads::Read;
use crate::tools::{Call, PURCHASE_FIELDS, path_fields};

/// Headers of the connection that identify or cap the caller. No others are passed on: a client sends the same headers with
/// every message, but a payment or an idempotency key must belong to one call.
const PASSED_ON: [&str; 5] = ["x-agent-id", "x-agent-proof", "x-max-cost-usdc", "x-amzn-trace-id", "host"];

/// Headers that a call may set in its `_meta`, by the same names.
const IN_META: [&str; 7] =
    ["x-agent-id", "x-agent-proof", "x-max-cost-usdc", "idempotency-key", "x-quote-id", "x-approval-id", "x-dry-run"];

/// The member of `_meta` that holds an x402 payment.
pub const PAYMENT: &str = "x402/payment";

const PAYMENT_SIGNATURE: &str = "payment-signature";

/// The answer to a tool call.
pub struct Answered {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Value,
}

impl From<ApiError> for Answered {
    fn from(error: ApiError) -> Answered {
        Answered { status: error.status(), headers: HeaderMap::new(), body: error.body() }
    }
}

/// The headers of a call: from the connection, and from the call's own `_meta`.
pub fn headers(parts: &Parts, meta: &JsonObject) -> Result<HeaderMap, ApiError> {
    let mut headers = HeaderMap::new();
    for name in PASSED_ON {
        if let Some(value) = parts.headers.get(name) {
            headers.insert(HeaderName::from_static(name), value.clone());
        }
    }
    // Other schemes than Bearer would be payments.
    let bearer = parts.headers.get(header::AUTHORIZATION).filter(|value| {
        value.to_str().is_ok_and(|value| value.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer ")))
    });
    if let Some(bearer) = bearer {
        headers.insert(header::AUTHORIZATION, bearer.clone());
    }
    check_spelling(meta)?;
    for name in IN_META {
        if let Some(value) = meta.get(name).filter(|value| !value.is_null()) {
            set(&mut headers, name, value)?;
        }
    }
    Ok(headers)
}

/// Refuses a member of `_meta` that means a cap, a dry run or an idempotency key, and is spelt differently: it would be lost.
fn check_spelling(meta: &JsonObject) -> Result<(), ApiError> {
    let bare = |name: &str| {
        let letters: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
        letters.strip_prefix('x').map_or(letters.clone(), str::to_owned)
    };
    for name in meta.keys().filter(|name| name.len() <= 32 && !IN_META.contains(&name.as_str())) {
        let meant = match bare(name).as_str() {
            "maxcost" | "maxcostusd" | "maxcostusdc" => Some("x-max-cost-usdc"),
            "dryrun" => Some("x-dry-run"),
            "idempotencykey" => Some("idempotency-key"),
            _ => None,
        };
        if let Some(meant) = meant {
            return Err(ApiError::field(&format!("_meta.{name}"), format!("is not read; it is spelt {meant}")));
        }
    }
    Ok(())
}

/// Sets a header from an argument or a member of `_meta`. A cap can only be lowered: the connection's cap is the owner's.
fn set(headers: &mut HeaderMap, name: &'static str, value: &Value) -> Result<(), ApiError> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        _ => return Err(ApiError::field(name, "must be text")),
    };
    let given = HeaderValue::from_str(&text).map_err(|_| ApiError::field(name, "must be text without line breaks"))?;
    if name == "x-max-cost-usdc" {
        let cap = |value: &HeaderValue| value.to_str().ok().and_then(|text| Usdc::parse_cap(text).ok());
        // An unreadable cap of the connection also stays, and is refused as it would be alone.
        let keeps = |own: &HeaderValue| cap(own).is_none_or(|own| cap(&given).is_some_and(|asked| own <= asked));
        if headers.get(name).is_some_and(keeps) {
            return Ok(());
        }
    }
    headers.insert(HeaderName::from_static(name), given);
    Ok(())
}

/// Moves the payment of a call to the header that HTTP uses.
pub fn pay(headers: &mut HeaderMap, meta: &JsonObject) -> Result<(), ApiError> {
    let Some(payment) = meta.get(PAYMENT) else { return Ok(()) };
    if !payment.is_object() {
        return Err(ApiError::field(PAYMENT, "must be an x402 PaymentPayload"));
    }
    let payment = base64_standard(payment.to_string().as_bytes());
    let payment = HeaderValue::from_str(&payment).map_err(|_| ApiError::field(PAYMENT, "is not readable"))?;
    headers.insert(PAYMENT_SIGNATURE, payment);
    Ok(())
}

/// Refuses arguments that nothing would read, before money moves: models misspell caps, too. What a soul's service is given goes
/// to its seller as it is; but what concerns the purchase is not for the seller.
///
/// `said`: the arguments of the purchase that the call has.
fn check_names(spec: &ToolSpec, arguments: &JsonObject, said: &[&str]) -> Result<(), ApiError> {
    let also: Vec<&str> = path_fields(spec).iter().chain(RECEIPT_FIELDS).map(|field| field.name).collect();
    let mut wrong = input::unknown(spec.input, &also, arguments);
    for wrong in wrong.iter_mut().filter(|wrong| arguments.contains_key(&wrong.path)) {
        let known = spec.input.iter().map(|field| field.name).chain(also.iter().copied());
        let known: Vec<&str> = known.chain(PURCHASE_FIELDS.iter().map(|field| field.name)).collect();
        wrong.message = format!("is not an argument of this tool; known are {}", known.join(", "));
    }
    let given = arguments.get("input").and_then(Value::as_object).filter(|_| spec.name == EXECUTION.name);
    let is_given = |name: &str| given.is_some_and(|given| given.contains_key(name)) && !said.contains(&name);
    for field in PURCHASE_FIELDS.iter().filter(|field| is_given(field.name)) {
        let message = "concerns the purchase: put it beside input; if the service takes it, too, say it in both places";
        wrong.push(FieldError::new(format!("input.{}", field.name), message));
    }
    if wrong.is_empty() { Ok(()) } else { Err(ApiError::InvalidRequest(wrong)) }
}

impl Shop {
    /// Buys, or answers with the price.
    pub async fn buy(
        &self,
        spec: &'static ToolSpec,
        parts: &Parts,
        meta: &JsonObject,
        mut arguments: JsonObject,
    ) -> Result<Answered, ApiError> {
        let mut headers = headers(parts, meta)?;
        input::validate(PURCHASE_FIELDS, &arguments).map_err(ApiError::InvalidRequest)?;
        let names = ["idempotency-key", "x-max-cost-usdc", "x-approval-id", "x-dry-run"];
        let said = PURCHASE_FIELDS.iter().map(|field| field.name).filter(|name| arguments.contains_key(*name));
        let said: Vec<&str> = said.collect();
        for (field, name) in PURCHASE_FIELDS.iter().zip(names) {
            // If the work has an argument of the same name (the key of an identity check), it has the same meaning and goes
            // to both.
            let given = match spec.input.iter().any(|own| own.name == field.name) {
                true => arguments.get(field.name).cloned(),
                false => arguments.remove(field.name),
            };
            if let Some(value) = given.filter(|value| !value.is_null()) {
                let before = headers.get(name).cloned();
                set(&mut headers, name, &value)?;
                // Of two caps the lower one counts. Of two of anything else, one would be lost.
                if name != "x-max-cost-usdc" && before.is_some_and(|before| before != headers[name]) {
                    return Err(ApiError::field(field.name, format!("has another value in _meta ({name})")));
                }
            }
        }
        // A client sends it with every message: it would make all purchases one, or, dropped, every retry a new one.
        if parts.headers.contains_key("idempotency-key") && !headers.contains_key("idempotency-key") {
            let message = "belongs to one call, not to the connection: give the argument idempotency_key instead";
            return Err(ApiError::field("Idempotency-Key", message));
        }
        pay(&mut headers, meta)?;
        let fields = path_fields(spec);
        check_names(spec, &arguments, &said)?;
        let path = filled(spec.path(), &input::validate(fields, &arguments).map_err(ApiError::InvalidRequest)?)?;
        for field in fields {
            arguments.remove(field.name);
        }
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let names_quote = arguments.contains_key("quote_id");
        let body = Bytes::from(Value::Object(arguments).to_string());
        if let Some(quote_path) = spec.quote_path
            && !names_quote
            && !headers.contains_key("x-quote-id")
            && !headers.contains_key(PAYMENT_SIGNATURE)
        {
            // The proof, if there is one, belongs to the purchase.
            let mut asking = headers.clone();
            asking.remove("x-agent-proof");
            // To ask is free: only the purchase is rehearsed.
            asking.remove("x-dry-run");
            let quote = self.ask(spec.group, Method::POST, quote_path, parts, asking, body.clone()).await;
            match quote.body["quote_id"].as_str() {
                Some(id) => set(&mut headers, "x-quote-id", &json!(id))?,
                None => return Ok(quote),
            }
        }
        let answer = self.ask(spec.group, Method::POST, &path, parts, headers.clone(), body.clone()).await;
        // A token pays for a quote at the second call, and models make one.
        let by_token = headers.contains_key(header::AUTHORIZATION)
            && !headers.contains_key("x-quote-id")
            && !headers.contains_key(PAYMENT_SIGNATURE);
        // What passes money on to a shop is bought for a total that the caller has seen or bounds.
        let by_token = by_token && (spec.fee.is_none() || spec.buys || headers.contains_key("x-max-cost-usdc"));
        let quote = answer.body["context"]["quote_id"].as_str();
        match (&spec.price, quote.filter(|_| by_token && answer.status == StatusCode::PAYMENT_REQUIRED)) {
            (Price::Asked { .. }, Some(id)) => {
                set(&mut headers, "x-quote-id", &json!(id))?;
                Ok(self.ask(spec.group, Method::POST, &path, parts, headers, body).await)
            }
            _ => Ok(answer),
        }
    }

    /// Calls a free route.
    pub async fn read(
        &self,
        read: &Read,
        parts: &Parts,
        meta: &JsonObject,
        arguments: &JsonObject,
    ) -> Result<Answered, ApiError> {
        let mut headers = headers(parts, meta)?;
        let mut arguments = known(read.fields, arguments)?;
        for (field, name) in [("idempotency_key", "idempotency-key"), ("approval_id", "x-approval-id")] {
            if let Some(value) = arguments.remove(field).filter(|value| !value.is_null()) {
                set(&mut headers, name, &value)?;
            }
        }
        let path = filled(read.path, &arguments)?;
        arguments.retain(|name, _| !read.path.contains(&format!("{{{name}}}")));
        if read.method != Method::GET {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            let body = Bytes::from(Value::Object(arguments).to_string());
            return Ok(self.ask(read.group, read.method.clone(), &path, parts, headers, body).await);
        }
        let of_query = arguments
            .iter()
            .map(|(name, value)| (name, value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(of_query).finish();
        let path = format!("{path}?{query}");
        Ok(self.ask(read.group, Method::GET, &path, parts, headers, Bytes::new()).await)
    }

    /// Asks a router of this service.
    pub async fn ask(
        &self,
        group: &str,
        method: Method,
        path: &str,
        parts: &Parts,
        headers: HeaderMap,
        body: Bytes,
    ) -> Answered {
        let (Some(router), Ok(uri)) = (self.groups.get(group).cloned(), path.parse::<http::Uri>()) else {
            return ApiError::NotFound.into();
        };
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        // Rate limits by IP address need it.
        if let Some(context) = parts.extensions.get::<RequestContext>() {
            request.extensions_mut().insert(context.clone());
        }
        if let Some(arrived) = parts.extensions.get::<Arrived>() {
            request.extensions_mut().insert(*arrived);
        }
        if let Some(owned) = parts.extensions.get::<Owned>() {
            request.extensions_mut().insert(owned.clone());
        }
        // In a task of its own, so that a purchase is completed even if the client hangs up.
        let answer = tokio::spawn(async move {
            let response: Response = router.oneshot(request).await.unwrap_or_else(|never| match never {});
            let (parts, body) = response.into_parts();
            let body = read_body(body, usize::MAX).await.unwrap_or_default();
            match serde_json::from_slice(&body) {
                Ok(body) => Answered { status: parts.status, headers: parts.headers, body },
                Err(_) if body.is_empty() => {
                    Answered { status: parts.status, headers: parts.headers, body: Value::Null }
                }
                // An answer of this service is not JSON. What was bought is stored and can be read over HTTP.
                Err(error) => {
                    platform::http::log::failure("an answer could not be passed on over MCP", &error);
                    let body = json!({"error": "internal_error", "message": "the answer cannot be passed on over MCP; read it over HTTP"});
                    Answered { status: StatusCode::INTERNAL_SERVER_ERROR, headers: parts.headers, body }
                }
            }
        });
        answer.await.unwrap_or_else(|panicked| {
            platform::http::log::failure("a tool call did not finish", &panicked);
            let body = json!({"error": "internal_error", "message": "the call did not finish; call again with the same idempotency_key or payment"});
            Answered { status: StatusCode::INTERNAL_SERVER_ERROR, headers: HeaderMap::new(), body }
        })
    }

    /// The price list: the catalog without unavailable tools.
    pub fn prices(&self, lacking: &Lacking) -> Value {
        let config = &self.app.config;
        let tools: Vec<Value> = self
            .app
            .catalog
            .iter()
            .chain(self.app.catalog.market)
            .chain([&TOP_UP])
            .filter(|spec| lacking.can(spec))
            .map(|spec| {
                let entry = self.tools.iter().find(|entry| matches!(entry.kind, Call::Paid(other) if std::ptr::eq(other, *spec)));
                json!({
                    "tool": entry.map(|entry| entry.name.as_str()),
                    "title": spec.title,
                    "summary": spec.summary,
                    "from_usdc": spec.price.usual().to_string(),
                    "price_is": if path_fields(spec).is_empty() && !spec.sells_credits { "fixed" } else { "told by the first call" },
                    "answer": match spec.answer {
                        tools::spec::Answer::Direct => "at once",
                        tools::spec::Answer::Queued => "a request to poll",
                    },
                    "http": format!("POST {}", spec.path()),
                })
            })
            .collect();
        json!({
            "service": config.service_name,
            "currency": "USDC",
            "network": config.chain.caip2(),
            "tools": tools,
            "how_to_pay": "Authorization: Bearer <access token> pays from credits; or repeat the call with _meta[\"x402/payment\"]",
        })
    }
}

/// The known arguments. Unknown ones are refused, because a misspelt one would be ignored silently.
pub fn known(fields: &[input::Field], arguments: &JsonObject) -> Result<Map<String, Value>, ApiError> {
    let kept = input::validate(fields, arguments).map_err(ApiError::InvalidRequest)?;
    let strange = arguments.keys().filter(|name| !fields.iter().any(|field| field.name == name.as_str()));
    let strange: Vec<FieldError> =
        strange.map(|name| FieldError::new(name, "is not an argument of this tool")).collect();
    if strange.is_empty() { Ok(kept) } else { Err(ApiError::InvalidRequest(strange)) }
}

/// Fills the `{name}`s of a path. Values that could be more than one segment are refused.
pub fn filled(pattern: &str, arguments: &Map<String, Value>) -> Result<String, ApiError> {
    let mut path = pattern.to_owned();
    for (name, value) in arguments {
        let place = format!("{{{name}}}");
        if !path.contains(&place) {
            continue;
        }
        let text = value.as_str().unwrap_or_default();
        let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if text.is_empty() || !is_name {
            return Err(ApiError::field(name, "may have letters, digits, - and _"));
        }
        path = path.replace(&place, text);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_arguments_cannot_add_segments() {
        let filled =
            |slug: Value| super::filled("/v1/soul/{slug}/purchase", json!({"slug": slug}).as_object().unwrap());
        assert_eq!(filled(json!("summer-1")).unwrap(), "/v1/soul/summer-1/purchase");
        for slug in ["a/b", "..", "a?b", "a#b", "a%2fb", "", "ä", "{slug}"] {
            assert!(filled(json!(slug)).is_err(), "{slug}");
        }
    }

    #[test]
    fn caps_are_only_lowered_and_connection_payments_are_ignored() {
        let request = Request::post("/mcp")
            .header("x-max-cost-usdc", "0.5")
            .header("idempotency-key", "one for all")
            .header("payment-signature", "e30=")
            .header("authorization", "eyJ4NDAyVmVyc2lvbiI6Mn0=");
        let parts = request.body(()).unwrap().into_parts().0;
        for (asked, kept) in [("0.1", "0.1"), ("2", "0.5"), ("nonsense", "nonsense")] {
            let headers = headers(&parts, json!({"x-max-cost-usdc": asked}).as_object().unwrap()).unwrap();
            assert_eq!(headers["x-max-cost-usdc"], kept);
            assert_eq!(headers.len(), 1, "{headers:?}");
        }
        assert!(headers(&parts, json!({"x-quote-id": "a\nb"}).as_object().unwrap()).is_err());
    }
}
