//! The price of a send: what a segment costs, for each segment and recipient, and the fee of a number if the agent has none.
//!
//! A quote only looks: anyone may ask for one in an agent's name, and pay for nothing. The paid send gets the number.

use std::sync::Arc;

use base::ids::AgentId;
use base::input::FieldError;
use base::money::Usdc;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use http::StatusCode;
use platform::http::ApiError;
use platform::store::{Db, StoreError, daily};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tools::quoting::{AskedPrice, QuoteRequest, Quoter};
use tools::{Task, ToolError, Toolbox};

use crate::number::Number;
use crate::segments::{self, Segments};
use crate::send::NAMED;
use crate::{buy, phone, providers, send, velocity};

/// For each segment and recipient, unless the operator set another price: 0.0035 USDC.
pub const EACH: Usdc = Usdc::from_micro(3_500);
/// Rows read at the same time.
pub(crate) const AT_ONCE: usize = 8;

pub static QUOTER: Quoter = Quoter {
    spec: &send::SPEC,
    quote: |toolbox, request| Box::pin(quote(toolbox, request)),
    check: |toolbox, _, locked, agent, is_proven| Box::pin(check_payer(toolbox, locked, agent, is_proven)),
    begins: |_| false,
};

/// Checks the payer of a quote that was given to nobody. If it has a number, and the price is with one, it is refused: its
/// 5.00 USDC would come back as credits, which clients that only pay cannot use. And the payer of a quote whose asker was not
/// proven: it is refused before it has paid if it has no room left today, which only it is told.
///
/// # Errors
/// 400 `number_not_needed`, 429 `sms_limit_reached`.
async fn check_payer(
    toolbox: &Toolbox,
    locked: &Map<String, Value>,
    agent: Option<AgentId>,
    is_proven: bool,
) -> Result<(), ApiError> {
    let Ok(locked) = serde_json::from_value::<Locked>(Value::Object(locked.clone())) else { return Ok(()) };
    let Some(agent) = agent else { return Ok(()) };
    let has_fee = locked.unnamed && locked.fee > 0;
    if !has_fee || phone::of_agent(&toolbox.db, agent, &locked.source).await?.is_none() {
        if !is_proven || !(locked.unproven || locked.unnamed) {
            return Ok(());
        }
        return check_room(toolbox, Some(agent), locked.segments.saturating_mul(locked.outside)).await;
    }
    let message =
        "your wallet has a number, and this price is with a new one; name your wallet in X-Agent-ID when you ask \
                   for the price"
            .to_owned();
    Err(refused(StatusCode::BAD_REQUEST, "number_not_needed", message))
}

/// Refuses more segments to numbers outside than are left today.
///
/// # Errors
/// 429 `sms_limit_reached`; 400 `invalid_request` if they are more than those of a whole day.
async fn check_room(toolbox: &Toolbox, agent: Option<AgentId>, segments: u32) -> Result<(), ApiError> {
    let (now, most) = (toolbox.clock.now(), toolbox.config.sms.daily_segments);
    let of_a_day = most.min(velocity::MAX_A_DAY);
    if segments > of_a_day {
        let message = format!("needs {segments} segments out of this deployment; at most {of_a_day} go out in a day");
        return Err(ApiError::field("to_number", message));
    }
    match velocity::full(&toolbox.db, agent, segments, most, now).await? {
        Some(full) => {
            let message = format!("{}; nothing was charged", full.message(segments, most));
            Err(ApiError::Later {
                status: StatusCode::TOO_MANY_REQUESTS,
                code: "sms_limit_reached",
                message,
                retry_after_secs: daily::secs_left(now),
            })
        }
        None => Ok(()),
    }
}

/// What a quote fixes for the work ([`AskedPrice::locked`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Locked {
    pub segments: u32,
    /// Recipients outside this deployment.
    #[serde(default)]
    outside: u32,
    /// Where the sending number comes from ([`phone::source`]).
    pub source: String,
    /// The price of a segment and recipient, in micro-USDC.
    each: u64,
    /// The fee of the number, in micro-USDC; 0 if the agent had one.
    pub fee: u64,
    /// The quote was given to nobody, so its agent was not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unnamed: bool,
    /// Its asker was not proven, and was not told how much room its agent has.
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

    /// The segments of a text to each of these numbers.
    pub fn segments_to(&self, numbers: &[Number]) -> u32 {
        self.segments.saturating_mul(u32::try_from(numbers.len()).unwrap_or(u32::MAX))
    }

    /// What is charged for this number of recipients; `bought`: and for a number.
    pub fn used(&self, recipients: usize, bought: bool) -> Usdc {
        let fee = if bought { self.fee } else { 0 };
        let texts = price(Usdc::from_micro(self.each), self.segments, recipients);
        Usdc::from_micro(texts.micro().saturating_add(fee))
    }
}

fn price(each: Usdc, segments: u32, recipients: usize) -> Usdc {
    let recipients = u64::try_from(recipients).unwrap_or(u64::MAX);
    Usdc::from_micro(each.micro().saturating_mul(u64::from(segments)).saturating_mul(recipients))
}

/// Of these numbers, those that no agent has.
pub(crate) async fn outside(db: &Db, numbers: &[Number]) -> Result<Vec<Number>, StoreError> {
    let asked: Vec<_> = numbers.iter().map(|number| phone::owner_of(db, number)).collect();
    let owners: Vec<Option<phone::Owner>> = stream::iter(asked).buffered(AT_ONCE).try_collect().await?;
    let outside = numbers.iter().zip(owners).filter(|(_, owner)| owner.is_none());
    Ok(outside.map(|(number, _)| number.clone()).collect())
}

async fn quote(toolbox: Arc<Toolbox>, request: QuoteRequest) -> Result<AskedPrice, ApiError> {
    let (now, db, config) = (toolbox.clock.now(), &toolbox.db, &toolbox.config);
    let to = NAMED.numbers(&request.input);
    let message = send::message(&request.input);
    let segments = segments::of(&message);
    let outside = outside(db, &to).await?;
    check_outside(&toolbox, &request.input, &outside, &segments)?;
    let outside = u32::try_from(outside.len()).unwrap_or(u32::MAX);
    let proven = request.agent.filter(|_| request.proven);
    check_room(&toolbox, proven, segments.count.saturating_mul(outside)).await?;
    let source = phone::source(config);
    let phone = match request.agent {
        Some(agent) => phone::of_agent(db, agent, source).await?,
        None => None,
    };
    let fee = match phone {
        Some(_) => Usdc::ZERO,
        None if phone::none_left(db, source, now).await? => {
            return Err(ApiError::NotConfigured { what: "free phone number now".to_owned() });
        }
        None => config.prices.tools.get(buy::SPEC.name).copied().unwrap_or(phone::FEE),
    };
    let each = request.tool.price.usual();
    let locked = Locked {
        segments: segments.count,
        outside,
        source: source.to_owned(),
        each: each.micro(),
        fee: fee.micro(),
        unnamed: request.agent.is_none(),
        unproven: !request.proven,
    };
    Ok(asked(&locked, &message, &segments, to.len()))
}

fn refused(status: StatusCode, code: &'static str, message: String) -> ApiError {
    ApiError::Tool { status, code, message }
}

/// Refuses what cannot be sent to these numbers, which no agent of this deployment has.
fn check_outside(
    toolbox: &Toolbox,
    input: &Map<String, Value>,
    outside: &[Number],
    segments: &Segments,
) -> Result<(), ApiError> {
    if outside.is_empty() {
        return Ok(());
    }
    let named: Vec<&str> = NAMED.texts(input).collect();
    let is_of_nobody = |text: &str| Number::parse(text).is_ok_and(|to| to.is_fictitious() && outside.contains(&to));
    let wrong: Vec<FieldError> = named
        .iter()
        .enumerate()
        .filter(|(_, text)| is_of_nobody(text))
        .map(|(index, _)| FieldError::new(NAMED.path(named.len(), index), "is a number that nobody here has"))
        .collect();
    if !wrong.is_empty() {
        return Err(ApiError::InvalidRequest(wrong));
    }
    let config = &toolbox.config;
    if providers::chosen(config).is_none() {
        let what = "provider for numbers outside this deployment (SMS_PROVIDERS)".to_owned();
        return Err(ApiError::NotConfigured { what });
    }
    let is_forbidden = |number: &&Number| !config.sms.countries.iter().any(|country| country == number.region());
    if let Some(number) = outside.iter().find(is_forbidden) {
        let countries = config.sms.countries.join(", ");
        let message = format!(
            "{} is a number of {}; texts out of this deployment go to {countries}",
            number.as_str(),
            number.region()
        );
        return Err(refused(StatusCode::BAD_REQUEST, "country_not_allowed", message));
    }
    match providers::too_long(config, segments) {
        Some(why) => Err(ApiError::field("message", why)),
        None => Ok(()),
    }
}

/// The quote of these recipients.
fn asked(locked: &Locked, message: &str, segments: &Segments, recipients: usize) -> AskedPrice {
    let members = |value: Value| match value {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let needs_number = locked.fee > 0;
    let context = json!({
        "recipient_count": recipients,
        "message_length": message.chars().count(),
        "segment_count": segments.count,
        "encoding": segments.encoding,
        "per_message_rate": Usdc::from_micro(locked.each).to_string(),
        "messaging_fee": locked.used(recipients, false).to_string(),
        "phone_registration_fee": Usdc::from_micro(locked.fee).to_string(),
        "needs_phone_registration": needs_number,
    });
    AskedPrice { price: locked.used(recipients, true), context: members(context), locked: members(json!(locked)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked(segments: u32, fee: u64) -> Locked {
        let source = phone::EMBEDDED.to_owned();
        Locked { segments, outside: 0, source, each: EACH.micro(), fee, unnamed: false, unproven: false }
    }

    #[test]
    fn segments_and_recipients_are_paid_and_a_number_only_by_who_buys_it() {
        for (segments, recipients, bought, expected) in [
            (1, 1, false, 3_500),
            (2, 3, false, 21_000),
            (1, 0, false, 0),
            (1, 0, true, 5_000_000),
            (1, 1, true, 5_003_500),
            (49, 100, true, 22_150_000),
        ] {
            let used = locked(segments, 5_000_000).used(recipients, bought);
            assert_eq!(used.micro(), expected, "{segments} × {recipients}, {bought}");
        }
        assert_eq!(locked(1, 0).used(1, true).micro(), 3_500, "the quote had no fee");
    }

    #[test]
    fn the_quote_shows_what_its_price_is_made_of() {
        let message = "ê".repeat(71);
        let segments = segments::of(&message);
        let asked = asked(&locked(segments.count, 5_000_000), &message, &segments, 3);
        assert_eq!(asked.price.micro(), 5_021_000);
        let expected = json!({
            "recipient_count": 3, "message_length": 71, "segment_count": 2, "encoding": "UCS-2",
            "per_message_rate": "0.003500", "messaging_fee": "0.021000", "phone_registration_fee": "5.000000",
            "needs_phone_registration": true,
        });
        assert_eq!(Value::Object(asked.context), expected);
        assert_eq!(serde_json::from_value::<Locked>(Value::Object(asked.locked)).unwrap(), locked(2, 5_000_000));
    }
}
