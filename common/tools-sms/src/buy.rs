//! Buying a phone number by itself. An agent's first text buys one too; without this tool, nobody could get the first text.

use std::sync::Arc;
use std::time::Duration;

use base::ids::AgentId;
use base::money::Usdc;
use http::StatusCode;
use platform::http::{ApiError, log};
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Running, Source, Task, ToolError, Toolbox, Unavailable};

use crate::phone::{self, Phone, RegisterError, Registered};

/// Longest wait for the provider's list of numbers.
const PATIENCE: Duration = Duration::from_secs(12);
/// Pause before a purchase goes on whose rows could not be read or written, and how long it goes on.
const SOON: Duration = Duration::from_secs(1);
const GOES_ON_FOR: Duration = Duration::from_secs(600);

/// Its free route answers without a purchase if the agent has a number, and refuses access tokens.
pub static SPEC: ToolSpec = ToolSpec {
    name: "phone_number",
    title: "Phone number",
    summary: "Gives you a phone number of your own, for texts and calls; you pay for it once",
    group: "messaging",
    paths: &["/v1/tools/voice/numbers"],
    price: Price::Fixed(phone::FEE),
    bare: true,
    pays_from_credits: true,
    keeps_record: true,
    check_payer: |toolbox, agent| Box::pin(check_payer(toolbox, agent)),
    refusals: &[(400, NOT_NEEDED), (403, "access_tokens_wallet_only"), (409, "provisioning_in_progress")],
    category: "communication",
    deadline: Duration::from_secs(20),
    example: || json!({}),
    output,
    ..ToolSpec::DIRECT
};

/// The code of a refusal to a payer that has a number.
pub const NOT_NEEDED: &str = "number_not_needed";

/// Refuses a payer that has a number: what it pays would come back as credits, which clients that only pay cannot use.
///
/// # Errors
/// 400 `number_not_needed`.
async fn check_payer(toolbox: &Toolbox, agent: Option<AgentId>) -> Result<(), ApiError> {
    let Some(agent) = agent else { return Ok(()) };
    if phone::of_agent(&toolbox.db, agent, phone::source(&toolbox.config)).await?.is_none() {
        return Ok(());
    }
    let message = "your wallet has a number, and nothing was charged; to be told which, send the request with an agent \
                   proof (scope write) and without a payment";
    Err(ApiError::Tool { status: StatusCode::BAD_REQUEST, code: NOT_NEEDED, message: message.to_owned() })
}

pub static RUNNER: Runner = Runner { spec: &SPEC, run };

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move { work(&toolbox, &task).await })
}

async fn work(toolbox: &Toolbox, task: &Task) -> Result<Output, ToolError> {
    let registered = match task.is_over {
        true => phone::recorded(toolbox, task.agent, task.request_id).await.map_err(RegisterError::Store),
        // An earlier run may have got one, at another provider even.
        false => match phone::bought(&toolbox.db, task.agent, task.request_id).await {
            Ok(Some(phone)) => Ok(Some(Registered::New(phone))),
            Ok(None) => {
                let deadline = Instant::now() + PATIENCE;
                phone::register(toolbox, task.agent, task.request_id, deadline).await.map(Some)
            }
            Err(error) => Err(RegisterError::Store(error)),
        },
    };
    match registered {
        Ok(Some(Registered::New(phone))) => Ok(Output::new(result(&phone, true, task.price), made_by(&phone.source))),
        Ok(Some(Registered::Known(phone))) => {
            let output = Output::new(result(&phone, false, Usdc::ZERO), made_by(&phone.source));
            Ok(output.charging(Usdc::ZERO))
        }
        Ok(Some(Registered::NoneLeft)) => {
            Err(ToolError::unavailable(Unavailable::SourceUnavailable, "no phone number is free now"))
        }
        Ok(None) => Err(ToolError::internal("no number was registered")),
        Err(RegisterError::Provider(error)) => Err(error.of(phone::source(&toolbox.config))),
        // The agent may have the number, and then it pays.
        Err(RegisterError::Store(error)) => {
            log::failure("a phone number could not be registered; it is tried again", &error);
            let until = toolbox.clock.now().plus(GOES_ON_FOR);
            Ok(Output::again(SOON, until, made_by(phone::EMBEDDED)))
        }
    }
}

fn made_by(source: &str) -> Source {
    let provider = crate::providers::SOURCES.into_iter().find(|name| *name == source);
    provider.map_or(Source::embedded("phone_numbers"), |name| Source::upstream(name, None))
}

fn result(phone: &Phone, is_new: bool, charged: Usdc) -> Value {
    let mut result = view(phone, is_new);
    result["charged"] = json!(charged.to_string());
    result
}

/// A number as the answer to its purchase shows it.
pub fn view(phone: &Phone, is_new: bool) -> Value {
    json!({
        "id": phone.id,
        "phone_number": phone.number,
        "voice_capable": phone.is_voice_capable(),
        "sms_capable": phone.is_sms_capable(),
        "inbound_configured": phone.inbound.is_some(),
        "inbound_enabled": phone.is_answered(),
        "is_new": is_new,
    })
}

/// A number as the list shows it.
pub fn listed(phone: &Phone) -> Value {
    json!({
        "id": phone.id,
        "phone_number": phone.number,
        "status": if phone.lost_at.is_some() { "lost" } else { "active" },
        "voice_capable": phone.is_voice_capable(),
        "sms_capable": phone.is_sms_capable(),
        "inbound_enabled": phone.is_answered(),
        "last_used_at": phone.last_used_at.map(|at| at.to_string()),
        "expires_at": phone.expires_at().map(|at| at.to_string()),
    })
}

fn output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": {"type": "string", "format": "uuid"},
            "phone_number": {"type": "string", "description": "In E.164 form"},
            "voice_capable": {"type": "boolean", "description": "Whether it makes and takes calls"},
            "sms_capable": {"type": "boolean", "description": "Whether its provider carries texts"},
            "inbound_configured": {"type": "boolean", "description": "Whether you have said how calls to it are answered"},
            "inbound_enabled": {"type": "boolean", "description": "Whether calls to it are answered"},
            "is_new": {"type": "boolean", "description": "False if you had it before; then nothing is charged"},
            "charged": {"type": "string", "description": "In USDC"},
            "receipt_id": {"type": ["string", "null"], "description": "Null if nothing was bought"},
            "request_id": {"type": "string", "format": "uuid"},
        },
        "required": [
            "id", "phone_number", "voice_capable", "sms_capable", "inbound_configured", "inbound_enabled", "is_new",
            "charged", "receipt_id",
        ],
    })
}
