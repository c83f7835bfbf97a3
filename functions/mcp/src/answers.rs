//! Turns the HTTP answer to a call into a tool result: for the model, which needs to know what to do next, and for the x402
//! client around it.

use http::{HeaderName, HeaderValue, StatusCode, header};
use platform::http::error::merge;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode, MetaObject};
use serde_json::{Value, json};
use tools::bazaar::{self, BAZAAR};
use tools::spec::ToolSpec;

use crate::calls::Answered;
use crate::tools::{Entry, named, object};
use crate::transport::{Aside, decoded};

/// The member of a result's `_meta` with the settlement.
const PAYMENT_RESPONSE: &str = "x402/payment-response";

/// Larger results are not repeated as text: in JSON text, each of their quotes takes two bytes.
pub const MAX_TEXT_BYTES: usize = 512 * 1024;

/// JSON-RPC error code for missing or invalid identity.
pub const UNAUTHORIZED: ErrorCode = ErrorCode(-32001);

/// Headers that are passed on to the HTTP response.
const SAID_ALOUD: [&str; 6] =
    ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "ratelimit", "ratelimit-policy", "retry-after"];

impl Answered {
    /// Whether the work continues and has to be polled.
    pub fn is_accepted(&self) -> bool {
        self.status == StatusCode::ACCEPTED
    }

    /// The result of a call, or a JSON-RPC error where the protocol requires one. `prefix` is the prefix of all tool names.
    pub fn result(
        mut self,
        entry: &Entry,
        sold: Option<&ToolSpec>,
        prefix: &str,
        aside: &Aside,
    ) -> Result<CallToolResult, ErrorData> {
        for name in SAID_ALOUD {
            if let Some(value) = self.headers.get(name) {
                aside.header(HeaderName::from_static(name), value.clone());
            }
        }
        if self.status == StatusCode::UNAUTHORIZED {
            return Err(unauthorized(self.body, aside));
        }
        if self.status == StatusCode::PAYMENT_REQUIRED
            && let Some(terms) = decoded(&self.headers, "payment-required")
        {
            return Ok(unpaid(entry, sold, terms, &self.body));
        }
        if !self.status.is_success() {
            return Ok(self.refused(prefix));
        }
        // The envelope of direct tools adds nothing to the protocol's own.
        let enveloped = self.body["success"] == true && self.body["data"].is_object();
        let body = if enveloped { self.body["data"].take() } else { self.body.take() };
        let settlement = decoded(&self.headers, "payment-response");
        Ok(structured(body).with_meta(settlement.map(paid_meta)))
    }

    /// An error with advice for the model.
    fn refused(self, prefix: &str) -> CallToolResult {
        let mut body = match self.body {
            Value::Object(_) => self.body,
            _ => json!({"error": "internal_error", "message": "the call could not be answered"}),
        };
        if body["message"].is_null() {
            body["message"] = json!("the call was refused");
        }
        let todo = match body["credited_usdc"].is_string() {
            true => {
                "The work failed, and credited_usdc was added to your credits. To try again, buy again with a new key or payment."
            }
            false if body["reason"] == "provider_not_configured" => {
                "This deployment does not offer that, and waiting will not help: use another tool. Nothing was charged."
            }
            false => what_to_do(body["error"].as_str().unwrap_or_default(), self.status),
        };
        merge(&mut body, json!({"http_status": self.status.as_u16(), "what_to_do": named(todo, prefix)}));
        let settlement = decoded(&self.headers, "payment-response");
        CallToolResult::structured_error(body).with_meta(settlement.map(paid_meta))
    }
}

/// A result, also as text for clients that do not read structured content, if both fit into an answer.
pub fn structured(body: Value) -> CallToolResult {
    if body.to_string().len() <= MAX_TEXT_BYTES {
        return CallToolResult::structured(body);
    }
    let mut result = CallToolResult::structured(Value::Null);
    result.structured_content = Some(body);
    result.content =
        vec![ContentBlock::text("The result is in structuredContent: it is too large to be repeated as text.")];
    result
}

/// 401 is also set as the HTTP status, so that clients see that the connection lacks credentials.
fn unauthorized(body: Value, aside: &Aside) -> ErrorData {
    aside.status(StatusCode::UNAUTHORIZED);
    let value = match body["error"].as_str() {
        Some("access_token_invalid" | "access_token_revoked") => "Bearer error=\"invalid_token\"",
        _ => "Bearer",
    };
    aside.header(header::WWW_AUTHENTICATE, HeaderValue::from_static(value));
    let message = body["message"].as_str().unwrap_or("this tool needs to know who is calling").to_owned();
    let message = format!("{message}; send Authorization: Bearer with an access token, or a wallet's proof");
    ErrorData::new(UNAUTHORIZED, message, Some(body))
}

fn paid_meta(settlement: Value) -> MetaObject {
    MetaObject(object(json!({PAYMENT_RESPONSE: settlement})))
}

/// The payment terms, in the form of x402 over MCP.
fn unpaid(entry: &Entry, sold: Option<&ToolSpec>, mut terms: Value, body: &Value) -> CallToolResult {
    terms["resource"]["url"] = json!(format!("mcp://tool/{}", entry.name));
    // The extension describes the HTTP route; replace it by the tool's.
    if let (Some(extensions), Some(spec)) = (terms["extensions"].as_object_mut(), sold)
        && extensions.remove(BAZAAR).is_some()
    {
        extensions.insert(BAZAAR.to_owned(), bazaar::mcp(spec, &entry.name));
    }
    // Names that nothing reads, perhaps misspelt. Only the body has them.
    if let Some(ignored) = body.get("ignored") {
        terms["ignored"] = ignored.clone();
    }
    let text = terms.to_string();
    let mut result = CallToolResult::structured_error(terms);
    let message = body["message"].as_str().unwrap_or("payment is required");
    let hint = format!(
        "{message}. Nothing was charged. With an x402 wallet: repeat exactly this call with the signed payment in \
         params._meta[\"x402/payment\"]. With an access token (Authorization: Bearer): it is paid from credits at once."
    );
    result.content = vec![ContentBlock::text(text), ContentBlock::text(hint)];
    result
}

/// What a model should do about an error, in one sentence; tools are named as in `{get_request}`.
fn what_to_do(error: &str, status: StatusCode) -> &'static str {
    match error {
        "invalid_request" | "invalid_input" => {
            "Correct the arguments listed in details by their paths, and call again. Nothing was charged."
        }
        "invalid_quote" | "quote_mismatch" => "Call without a payment for fresh terms. Nothing was charged.",
        "exceeds_caller_budget" => "The price is above the cap of this call or connection: raise it, or do not buy.",
        "insufficient_credits" => "Ask the owner to top up credits, or pay with an x402 wallet. Nothing was charged.",
        "budget_exceeded" | "frozen_by_owner" => {
            "The owner's limit stops this. Do not retry; tell the owner. Nothing was charged."
        }
        "route_unavailable_for_access_tokens" => {
            "Access tokens cannot buy this: pay with an x402 wallet. Do not retry with the token."
        }
        "action_denied_by_policy" => "The owner's policy forbids this call. Do not retry it.",
        "approval_required" => {
            "A human has been asked. After the approval, call again with the same arguments and approval_id."
        }
        "payment_already_used" => "This payment bought something else: repeat that same call, or sign a new payment.",
        "idempotency_key_reused" => "Key of another purchase: repeat that same call, or choose a new key.",
        "call_ended" => "The call is over: dial again for another one.",
        "line_busy" => "End your open call with {voice_hang_up} first.",
        "too_many_pending_approvals" => "Wait until a human has decided about one of your held calls.",
        "rate_limit_exceeded" | "rate_limited" | "too_many_turns" | "turn_in_progress" => {
            "Wait for retry_after seconds, then call again with the same key."
        }
        _ if status == StatusCode::NOT_FOUND => "It does not exist, or it is not yours: look it up first.",
        _ if status.is_server_error() || status == StatusCode::CONFLICT => {
            "Call again in a few seconds with the same arguments, and the same idempotency_key or payment: it is not \
             charged twice."
        }
        _ => "Read message and details; repeating the call unchanged will not help.",
    }
}

#[cfg(test)]
mod tests {
    use base::encoding::base64_standard;
    use catalog::CATALOG;
    use http::HeaderMap;
    use platform::config::Config;

    use super::*;
    use crate::tools;

    /// The terms are read from a header, which has no room for them.
    #[test]
    fn terms_name_the_arguments_that_nothing_reads() {
        let read = |name: &str| (name == "PAY_TO").then(|| "0x00000000000000000000000000000000000000ff".to_owned());
        let tools = tools::all(&Config::read(read).unwrap(), &CATALOG);
        let entry = tools.iter().find(|entry| entry.name == "agora_vin_decode").unwrap();
        let terms = json!({"x402Version": 2, "accepts": [], "resource": {"url": "https://a.example/v1/tools/x"}});
        let terms = HeaderValue::from_str(&base64_standard(terms.to_string().as_bytes())).unwrap();
        let headers = HeaderMap::from_iter([(HeaderName::from_static("payment-required"), terms)]);
        let body = json!({"error": "payment_required", "message": "pay", "ignored": ["modelyear"]});
        let answered = Answered { status: StatusCode::PAYMENT_REQUIRED, headers, body };
        let result = answered.result(entry, None, "agora_", &Aside::default()).unwrap();
        let told = result.structured_content.unwrap();
        assert_eq!(told["ignored"], json!(["modelyear"]));
        // Clients compare the two forms.
        let text = serde_json::to_value(&result.content[0]).unwrap()["text"].as_str().unwrap().to_owned();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), told);
    }
}
