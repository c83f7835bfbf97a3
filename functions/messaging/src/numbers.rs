//! An agent's phone numbers: the list, and buying one.

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use base::ids::AgentId;
use base::money::Usdc;
use gate::{Call, Replayed, is_probe, parse_body, respond};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use platform::auth::{Proof, ProofError, Scope};
use platform::http::{ApiError, headers, private_json, read_body};
use platform::store::StoreError;
use serde_json::{Value, json};
use tools_sms::{buy, phone};

use crate::Messaging;

/// Members that the gate adds to the result, and that an answer without a purchase does not have.
const OF_THE_GATE: [&str; 3] = ["cost", "provider", "mode"];

/// `GET /v1/tools/voice/numbers`: oldest first.
pub async fn list(State(state): State<Messaging>, headers: HeaderMap) -> Response {
    let answer = async {
        let app = state.app();
        let caller = app.caller(&headers, Scope::Read).await?;
        let phones = phone::list(&app.db, caller.agent).await?;
        let numbers: Vec<Value> = phones.iter().map(buy::listed).collect();
        Ok(private_json(StatusCode::OK, &json!({"success": true, "data": {"numbers": numbers}})))
    };
    respond(answer.await)
}

/// `POST /v1/tools/voice/numbers`: the agent's number. The first call buys it: a proven wallet pays from credits at once,
/// and any wallet can pay by x402. 409 while another call of the agent buys it.
pub async fn buy(State(state): State<Messaging>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let resource = state.app().resource_url(&parts);
    let answer = async {
        let body = read_body(body, gate::MAX_BODY_BYTES).await?;
        number(&state, parts.headers, &resource, body).await
    };
    respond(answer.await)
}

async fn number(
    state: &Messaging,
    mut headers: HeaderMap,
    resource: &str,
    mut body: Bytes,
) -> Result<Response, ApiError> {
    let app = state.app();
    parse_body(&headers, &body)?;
    if headers::bearer(&headers)?.is_some() {
        app.wallet_caller(&headers, Scope::Write, ApiError::WalletOnly).await?;
    }
    let is_unpaid = is_probe(&headers, b"");
    // The proven wallet of an unpaid call, and whether the idempotency key is made here.
    let (mut wallet, mut shares_key) = (None, false);
    // A payment may be the replay of one that bought the number, so the gate answers it.
    if is_unpaid {
        let source = phone::source(&app.config);
        let proof = headers::text(&headers, "x-agent-proof")?;
        if let Some(proof) = proof.map(Proof::parse).transpose().map_err(ApiError::InvalidProof)? {
            if !proof.scope.covers(Scope::Write) {
                return Err(ApiError::InvalidProof(ProofError::WrongScope));
            }
            // A proof is good once, and a purchase needs it: it is checked here only if nothing is bought.
            let agent = AgentId::of(proof.agent);
            wallet = Some(agent);
            if let Some(phone) = phone::of_agent(&app.db, agent, source).await? {
                app.wallet_caller(&headers, Scope::Write, ApiError::WalletOnly).await?;
                return Ok(private_json(StatusCode::OK, &known(&phone)));
            }
            // A proven wallet buys; it does not ask for the price.
            if body.is_empty() {
                body = Bytes::from_static(b"{}");
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
            // Parallel calls buy once. Only for a minute: a purchase that failed may be tried again.
            if !headers.contains_key("idempotency-key") {
                let key = format!("phone:{source}:{}", app.clock.now().secs().div_euclid(60));
                headers.insert("idempotency-key", HeaderValue::from_str(&key).map_err(StoreError::new)?);
                shares_key = true;
            }
        }
        if phone::none_left(&app.db, source, app.clock.now()).await? {
            return Err(ApiError::NotConfigured { what: "free phone number now".to_owned() });
        }
    }
    let tool = app.catalog.find(buy::SPEC.name).unwrap_or(&buy::SPEC);
    let call = Call { tool, listing: None, resource, headers: &headers, body };
    let answer = state.gate.call(call).await;
    // Another call bought it meanwhile. The gate has checked the proof.
    let bought_by_another = match &answer {
        Ok(answer) => {
            shares_key && answer.status() == StatusCode::OK && answer.extensions().get::<Replayed>().is_some()
        }
        Err(refused) => refused.code() == buy::NOT_NEEDED,
    };
    if let Some(agent) = wallet.filter(|_| bought_by_another)
        && let Some(phone) = phone::of_agent(&app.db, agent, phone::source(&app.config)).await?
    {
        return Ok(private_json(StatusCode::OK, &known(&phone)));
    }
    match answer {
        // A payer polls; a wallet with a proof asks again.
        Ok(answer) if answer.status() == StatusCode::ACCEPTED && is_unpaid => Err(in_progress()),
        Ok(answer) if answer.status() == StatusCode::OK => wrapped(answer).await,
        Err(ApiError::RequestInProgress) => Err(in_progress()),
        answer => answer,
    }
}

/// The agent has the number: nothing is charged.
fn known(phone: &phone::Phone) -> Value {
    let mut data = buy::view(phone, false);
    data["charged"] = json!(Usdc::ZERO.to_string());
    data["receipt_id"] = Value::Null;
    json!({"success": true, "data": data})
}

/// The gate's answer in the envelope of this route: 201 if a number was bought. Other answers (of a dry run) stay.
async fn wrapped(answer: Response) -> Result<Response, ApiError> {
    let (mut parts, body) = answer.into_parts();
    let body = read_body(body, gate::MAX_BODY_BYTES).await?;
    let mut data: Value = serde_json::from_slice(&body).map_err(StoreError::new)?;
    let Some(is_new) = data["is_new"].as_bool() else { return Ok(Response::from_parts(parts, Body::from(body))) };
    if let Value::Object(data) = &mut data {
        for name in OF_THE_GATE {
            data.remove(name);
        }
    }
    if is_new {
        parts.status = StatusCode::CREATED;
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    Ok(Response::from_parts(parts, Body::from(json!({"success": true, "data": data}).to_string())))
}

fn in_progress() -> ApiError {
    ApiError::Tool {
        status: StatusCode::CONFLICT,
        code: "provisioning_in_progress",
        message: "a phone number is being bought for this wallet; ask again in a few seconds".to_owned(),
    }
}
