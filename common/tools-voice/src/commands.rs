//! What Telnyx posts: a call that rings waits for commands, and so does one that was answered only to say something.
//!
//! Whoever calls [`apply`] has checked the signature. Posts may come twice, late, in any order, or never. Each command has an
//! id that follows from its call, so that Telnyx ignores it if it comes again within 60 seconds; later ones are refused, or do
//! what was done before. A call is charged by what Telnyx answers when it is asked ([`events::hear`]).

use std::time::Duration;

use base::ids::RequestId;
use platform::http::log;
use platform::providers::OutboundError;
use platform::store::StoreError;
use serde_json::Value;
use tokio::time::Instant;
use tools::Toolbox;
use tools_sms::number::Number;
use tools_sms::phone;

use crate::call::Declined;
use crate::calls::{self, Call};
use crate::config::{Language, Tool};
use crate::events::{self, Posted};
use crate::outside;
use crate::providers::telnyx::{self, Ids, Mark, NAME};
use crate::providers::text;
use crate::ringing::{self, Rang, Ring};
use crate::settings;

/// Longest wait for an answer to a command: a caller hears the phone ring meanwhile.
const COMMAND: Duration = Duration::from_secs(8);

/// Whether a call rings with this post of Telnyx's.
pub fn is_ringing(posted: &Value) -> bool {
    let data = &posted["data"];
    data["event_type"] == "call.initiated" && data["payload"]["direction"] == "incoming"
}

/// Takes what Telnyx posts: `{data: {event_type, payload: {call_control_id, call_leg_id, client_state, …}}}`. `is_stopped`: the
/// operator has stopped paid calls, so none is answered.
///
/// # Errors
/// If the database fails, or Telnyx did not take a command. It posts again then, if the application has a failover address.
pub async fn apply(toolbox: &Toolbox, posted: &Value, is_stopped: bool) -> Result<Posted, StoreError> {
    let data = &posted["data"];
    let (kind, payload) = (text(data, "/event_type").unwrap_or_default(), &data["payload"]);
    let Some(ids) = Ids::of(payload, false) else { return Ok(Posted::Nothing) };
    let mark = text(payload, "/client_state").and_then(Mark::of_state);
    let placed = match &mark {
        Some(Mark::Placed { request_id, index }) => Some((*request_id, *index)),
        _ => None,
    };
    if let Some((request_id, index)) = placed {
        let outbound = Ids { is_outbound: true, ..ids.clone() };
        outside::told(&toolbox.db, request_id, index, &outbound.to_text()).await?;
    }
    let (control, deadline) = (ids.control.as_str(), Instant::now() + COMMAND);
    let commanded = match (kind, mark) {
        ("call.initiated", _) if is_ringing(posted) && is_stopped => telnyx::reject(toolbox, control, deadline).await,
        ("call.initiated", _) if is_ringing(posted) => rings(toolbox, &ids, payload, deadline).await?,
        ("call.answered", Some(Mark::Says { text, language, then })) => {
            telnyx::say(toolbox, control, &text, language, then, deadline).await
        }
        ("call.speak.ended", Some(Mark::Said { then: Some(target) })) => {
            telnyx::pass_on(toolbox, control, &target, deadline).await
        }
        ("call.speak.ended", Some(Mark::Said { then: None })) => telnyx::hang_up(toolbox, control, deadline).await,
        // Nobody was there, or the conversation is over: the caller's leg does not end by itself.
        ("call.hangup", Some(Mark::Second { first })) => telnyx::hang_up(toolbox, &first, deadline).await,
        ("call.hangup" | "call.conversation.ended" | "call.conversation_insights.generated", _) => {
            let inbound = events::inbound_id(NAME, control);
            if kind == "call.conversation.ended" && is_left(toolbox, inbound, placed.is_some()).await? {
                done(telnyx::hang_up(toolbox, control, deadline).await)?;
            }
            return events::wakes(&toolbox.db, inbound, placed).await;
        }
        _ => Ok(()),
    };
    done(commanded)?;
    Ok(Posted::Nothing)
}

fn done(commanded: Result<(), OutboundError>) -> Result<(), StoreError> {
    commanded.map_err(|error| {
        log::failure("Telnyx did not take a command", &error.detail());
        StoreError::new("the call provider did not take a command")
    })
}

/// Whether nobody of ours is in the call once its assistant has gone. An assistant that may pass calls on may have done so.
async fn is_left(toolbox: &Toolbox, inbound: RequestId, is_placed: bool) -> Result<bool, StoreError> {
    let call = calls::load(&toolbox.db, inbound).await?;
    Ok(match call {
        Some(call) => call.config.is_some_and(|config| !config.allows(Tool::TransferCall)),
        None => is_placed,
    })
}

/// A call rings at one of the operator's numbers.
async fn rings(
    toolbox: &Toolbox,
    ids: &Ids,
    payload: &Value,
    deadline: Instant,
) -> Result<Result<(), OutboundError>, StoreError> {
    let control = ids.control.as_str();
    let to = text(payload, "/to").and_then(|to| Number::parse(to).ok());
    let Some(to) = to else { return Ok(telnyx::reject(toolbox, control, deadline).await) };
    let provider_id = ids.to_text();
    let ring = Ring {
        id: events::inbound_id(NAME, control),
        to: &to,
        from: text(payload, "/from").unwrap_or_default(),
        // Anybody can show any number, so no agent is known by it.
        caller: None,
        provider: Some((NAME, provider_id.as_str())),
        price: ringing::price_of_minute(&toolbox.config),
        hops: 0,
    };
    Ok(match ringing::ring(toolbox, &ring).await? {
        Rang::NotInService | Rang::Declined(_, None) => telnyx::reject(toolbox, control, deadline).await,
        Rang::Answered(call) | Rang::Known(call) if call.state.is_some() => {
            let call = outside::reachable_by_line(&toolbox.db, call).await?;
            telnyx::treat(toolbox, &call, control, deadline).await
        }
        Rang::Declined(call, _) | Rang::Answered(call) | Rang::Known(call) => match said(toolbox, &call, &to).await? {
            Some((said, language)) => telnyx::decline(toolbox, control, &said, language, deadline).await,
            None => telnyx::reject(toolbox, control, deadline).await,
        },
    })
}

/// What the owner lets a caller hear who is declined, and in which language.
async fn said(toolbox: &Toolbox, call: &Call, to: &Number) -> Result<Option<(String, Language)>, StoreError> {
    if call.declined != Some(Declined::AfterHours) {
        return Ok(None);
    }
    let Some(owner) = phone::owner_of(&toolbox.db, to).await? else { return Ok(None) };
    let config = settings::of_number(&toolbox.db, &owner).await?.map(|stored| stored.config);
    Ok(config.and_then(|config| Some((config.after_hours_message?, config.language))))
}
