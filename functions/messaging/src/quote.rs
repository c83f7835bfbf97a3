//! The free quote that every `send` needs.

use axum::extract::{Request, State};
use axum::response::Response;
use gate::{Call, GivenQuote};
use http::StatusCode;
use platform::http::{private_json, read_body};
use serde_json::{Value, json};
use tools_email::send;

use crate::Messaging;

/// `POST /v1/tools/email/quote`: the price, and the address the mail will come from. Both are kept in the quote. Some
/// clients send no proof here.
pub async fn quote(State(state): State<Messaging>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let resource = state.app().resource_url(&parts);
    let answer = async {
        let body = read_body(body, gate::MAX_BODY_BYTES).await?;
        let tool = state.app().catalog.find(send::SPEC.name).unwrap_or(&send::SPEC);
        let call = Call { tool, listing: None, resource: &resource, headers: &parts.headers, body };
        Ok(private_json(StatusCode::OK, &view(state.gate.quote_only(call).await?)))
    };
    gate::respond(answer.await)
}

/// The quote, as its caller sees it: what the tool says about it, and the fees in USD.
fn view(given: GivenQuote) -> Value {
    let price = given.price.to_number();
    let mut view = given.context;
    for (name, value) in [
        ("registration_fee", json!(0)),
        ("service_fee", price.clone()),
        ("mailbox_provisioning_fee", json!(0)),
        ("total_cost", price),
        ("currency", json!("USD")),
        ("quote_id", json!(given.quote_id)),
        ("expires_at", json!(given.expires_at.to_string())),
    ] {
        view.insert(name.to_owned(), value);
    }
    if !given.ignored.is_empty() {
        view.insert("ignored".to_owned(), json!(given.ignored));
    }
    Value::Object(view)
}
