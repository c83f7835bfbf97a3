//! The price of a call: the minutes of its longest length for each number, and the fee of a number if the agent has none.
//!
//! A quote only looks: anyone may ask for one in an agent's name, and pay for nothing. The paid call gets the number.

use std::sync::Arc;

use base::ids::AgentId;
use base::input::FieldError;
use base::money::Usdc;
use http::StatusCode;
use platform::http::ApiError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tools::quoting::{AskedPrice, QuoteRequest, Quoter};
use tools::{Task, ToolError, Toolbox};
use tools_sms::buy::{self, NOT_NEEDED};
use tools_sms::number::Number;
use tools_sms::phone;

use crate::outbound::NAMED;
use crate::plan::{self, DEFAULT_MINUTES, MAX_MINUTES, Price};
use crate::{outbound, outside, settings, velocity};

/// Why a target is refused.
const OWN: &str = "is your own number";

pub static QUOTER: Quoter = Quoter {
    spec: &outbound::SPEC,
    quote: |toolbox, request| Box::pin(quote(toolbox, request)),
    check: |toolbox, input, locked, agent, is_proven| Box::pin(check_payer(toolbox, input, locked, agent, is_proven)),
    begins: |_| false,
};

/// What a quote fixes for the work ([`AskedPrice::locked`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Locked {
    /// The longest length, in minutes.
    minutes: u32,
    /// Numbers that are called.
    legs: u32,
    /// Where the calling number comes from ([`phone::source`]).
    pub source: String,
    /// The calling number, if the agent had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Number>,
    /// The price of a minute, in micro-USDC; an agent of this deployment that is called pays the same.
    each: u64,
    /// The fee of the number, in micro-USDC; 0 if the agent had one.
    fee: u64,
    /// The quote was given to nobody, so its agent was not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unnamed: bool,
    /// Whoever asked did not prove to be the agent, so its own numbers and limits were not looked at.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unproven: bool,
}

impl Locked {
    /// # Errors
    /// If the stored quote cannot be read.
    pub fn of(task: &Task) -> Result<Locked, ToolError> {
        serde_json::from_value(Value::Object(task.locked.clone()))
            .map_err(|_| ToolError::internal("the stored quote cannot be read"))
    }

    pub fn price(&self) -> Price {
        let (each, fee) = (Usdc::from_micro(self.each), Usdc::from_micro(self.fee));
        Price { minutes: self.minutes, legs: self.legs, each, fee }
    }
}

/// Checks the payer of a quote that was given to nobody. If it has a number, and the price is with one, it is refused: the fee
/// would come back as credits, which clients that only pay cannot use. And that of a quote whose asker was not proven: what such
/// a payer may not call is refused before it has paid.
///
/// # Errors
/// 400 `number_not_needed`; those of [`check_own`].
async fn check_payer(
    toolbox: &Toolbox,
    input: &Map<String, Value>,
    locked: &Map<String, Value>,
    agent: Option<AgentId>,
    is_proven: bool,
) -> Result<(), ApiError> {
    let Ok(locked) = serde_json::from_value::<Locked>(Value::Object(locked.clone())) else { return Ok(()) };
    let Some(agent) = agent else { return Ok(()) };
    if is_proven && locked.unproven {
        check_own(toolbox, input, agent, locked.minutes).await?;
    }
    if !locked.unnamed || locked.fee == 0 || phone::of_agent(&toolbox.db, agent, &locked.source).await?.is_none() {
        return Ok(());
    }
    let message =
        "your wallet has a number, and this price is with a new one; name your wallet in X-Agent-ID when you ask \
                   for the price"
            .to_owned();
    Err(ApiError::Tool { status: StatusCode::BAD_REQUEST, code: NOT_NEEDED, message })
}

async fn quote(toolbox: Arc<Toolbox>, request: QuoteRequest) -> Result<AskedPrice, ApiError> {
    let (now, db, config) = (toolbox.clock.now(), &toolbox.db, &toolbox.config);
    let source = phone::source(config);
    let minutes = request.input.get("max_duration_minutes").and_then(Value::as_u64);
    let minutes = minutes.and_then(|minutes| u32::try_from(minutes).ok()).unwrap_or(DEFAULT_MINUTES);
    let minutes = minutes.min(MAX_MINUTES);
    check_targets(&toolbox, &request, minutes).await?;
    // After that: it may have found the number lost.
    let own = match request.agent {
        Some(agent) => phone::of_agent(db, agent, source).await?,
        None => None,
    };
    let to = NAMED.numbers(&request.input);
    let from = own.as_ref().filter(|own| own.lost_at.is_none()).map(|own| own.number.clone());
    let fee = match own {
        Some(_) => Usdc::ZERO,
        None if phone::none_left(db, source, now).await? => {
            return Err(ApiError::NotConfigured { what: "free phone number now".to_owned() });
        }
        None => config.prices.tools.get(buy::SPEC.name).copied().unwrap_or(phone::FEE),
    };
    let locked = Locked {
        minutes,
        legs: calls(&request.input),
        source: source.to_owned(),
        from,
        each: request.tool.price.usual().micro(),
        fee: fee.micro(),
        unnamed: request.agent.is_none(),
        unproven: !request.proven,
    };
    asked(&locked, &request.input, &to)
}

/// Refuses numbers that cannot be called now: those here that take no calls, and those that neither an agent here has nor a
/// provider reaches. If the agent is proven, also what [`check_own`] refuses: to others, that would tell which numbers it has, and
/// how much it has called.
async fn check_targets(toolbox: &Toolbox, request: &QuoteRequest, minutes: u32) -> Result<(), ApiError> {
    let input = &request.input;
    let proven = request.agent.filter(|_| request.proven);
    let count = NAMED.texts(input).count();
    let mut wrong = Vec::new();
    // Each is called once.
    let mut here: Vec<Number> = Vec::new();
    // Where the input names numbers outside.
    let mut leaving = Vec::new();
    for (index, text) in NAMED.texts(input).enumerate() {
        let Ok(number) = Number::parse(text) else { continue };
        let path = NAMED.path(count, index);
        if let Some(owner) = phone::owner_of(&toolbox.db, &number).await? {
            if proven == Some(owner.agent) {
                wrong.push(FieldError::new(path, OWN));
                continue;
            }
            let stored = settings::of_number(&toolbox.db, &owner).await?;
            let is_answered = stored.is_some_and(|stored| stored.config.enabled)
                && phone::is_in_service(&toolbox.db, &number, &owner).await?;
            match is_answered {
                true if here.contains(&number) => {}
                true => here.push(number),
                false => wrong.push(FieldError::new(path, "does not take calls")),
            }
        } else if number.is_fictitious() {
            wrong.push(FieldError::new(path, "is a number that nobody here has"));
        } else {
            outside::check(toolbox, &number)?;
            leaving.push(path);
        }
    }
    if !here.is_empty() {
        let apart = "is outside this deployment, and others of the call are not: buy a call for each kind";
        wrong.extend(leaving.iter().map(|path| FieldError::new(path.clone(), apart)));
    }
    if !wrong.is_empty() {
        return Err(ApiError::InvalidRequest(wrong));
    }
    if !leaving.is_empty() {
        outside::check_room(toolbox, calls(input), minutes).await?;
    }
    if let Some(agent) = proven {
        check_limits(toolbox, input, agent, &here, minutes).await?;
    }
    match request.agent {
        Some(agent) if !leaving.is_empty() => outside::check_line(toolbox, agent).await,
        _ => Ok(()),
    }
}

/// Refuses what an agent may not call: numbers of its own, and what its limits of today do not allow.
///
/// # Errors
/// 400 `invalid_request`; 429 `voice_limit_reached`.
async fn check_own(
    toolbox: &Toolbox,
    input: &Map<String, Value>,
    agent: AgentId,
    minutes: u32,
) -> Result<(), ApiError> {
    let count = NAMED.texts(input).count();
    let (mut wrong, mut here) = (Vec::new(), Vec::new());
    for (index, text) in NAMED.texts(input).enumerate() {
        let Ok(number) = Number::parse(text) else { continue };
        match phone::owner_of(&toolbox.db, &number).await? {
            Some(owner) if owner.agent == agent => wrong.push(FieldError::new(NAMED.path(count, index), OWN)),
            Some(_) if !here.contains(&number) => here.push(number),
            _ => {}
        }
    }
    if !wrong.is_empty() {
        return Err(ApiError::InvalidRequest(wrong));
    }
    check_limits(toolbox, input, agent, &here, minutes).await
}

/// Refuses calls beyond the agent's limits of today: those to the numbers `here`, or, without any, outside.
async fn check_limits(
    toolbox: &Toolbox,
    input: &Map<String, Value>,
    agent: AgentId,
    here: &[Number],
    minutes: u32,
) -> Result<(), ApiError> {
    if here.is_empty() {
        return outside::check_agent(toolbox, agent, calls(input), minutes).await;
    }
    let now = toolbox.clock.now();
    for (before, number) in (0..).zip(here) {
        if let Some(why) = velocity::refusal(&toolbox.db, agent, number, before, now).await? {
            return Err(velocity::limit_reached(format!("{}: {why}", number.as_str()), now));
        }
    }
    Ok(())
}

/// How many numbers are called.
fn calls(input: &Map<String, Value>) -> u32 {
    u32::try_from(NAMED.numbers(input).len()).unwrap_or(u32::MAX)
}

/// The quote of a call to these numbers.
fn asked(locked: &Locked, input: &Map<String, Value>, to: &[Number]) -> Result<AskedPrice, ApiError> {
    let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
    let price = locked.price();
    let Some(most) = price.most() else {
        return Err(ApiError::NotConfigured { what: "price for so many minutes".to_owned() });
    };
    let targets: Vec<String> = to.iter().map(|number| number.as_str().to_owned()).collect();
    let context = plan::plan(text("objective"), text("context"), &targets, &price);
    let locked = match json!(locked) {
        Value::Object(locked) => locked,
        _ => Map::new(),
    };
    Ok(AskedPrice { price: most, context, locked })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quote_shows_the_plan_and_fixes_the_price() {
        let input = json!({
            "objective": "Ask what bread costs.",
            "target_number": ["+12025550100", "12025550100", "+12025550101"],
        });
        let input = input.as_object().unwrap();
        let to = NAMED.numbers(input);
        assert_eq!(to.iter().map(Number::as_str).collect::<Vec<_>>(), ["+12025550100", "+12025550101"]);
        let source = phone::EMBEDDED.to_owned();
        let (each, fee) = (350_000, 5_000_000);
        let locked = Locked { minutes: 10, legs: 2, source, from: None, each, fee, unnamed: false, unproven: false };
        let asked = asked(&locked, input, &to).unwrap();
        assert_eq!(asked.price.micro(), 12_000_000);
        for (name, value) in [
            ("target_numbers", json!(["+12025550100", "+12025550101"])),
            ("conference_mode", json!(false)),
            ("estimated_call_cost", json!("7.000000")),
            ("phone_registration_fee", json!("5.000000")),
            ("talking_points", json!(["Ask what bread costs"])),
        ] {
            assert_eq!(asked.context[name], value, "{name}");
        }
        assert_eq!(serde_json::from_value::<Locked>(Value::Object(asked.locked)).unwrap(), locked);
    }
}
