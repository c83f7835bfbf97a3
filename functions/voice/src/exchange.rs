//! Calls between numbers of this deployment, as their callers see them: dialling, talking, hanging up, and what was said.

use api::operations::voice::{DIAL, TURN};
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use base::input::validate_all;
use gate::idempotency::{self, Request};
use gate::limits::{self, Class, Subject};
use gate::{parse_body, respond};
use http::{HeaderMap, StatusCode};
use ledger::account;
use ledger::freeze::SERVICE_PAYEE;
use platform::auth::{Caller, Scope};
use platform::http::{ApiError, Segment, headers, private_json, read_body};
use platform::store::StoreError;
use serde_json::{Map, Value, json};
use tools_sms::number::Number;
use tools_sms::phone::{self, Phone};
use tools_voice::call::{Ended, State as Answered, started_seconds};
use tools_voice::calls::{self, Call, Direction};
use tools_voice::dialogue::{self, MAX_SAID};
use tools_voice::exchange::{self, Dialled, Said};
use tools_voice::{outbound, ringing, velocity};

use crate::calls::looked_at;
use crate::{Voice, call_not_found, counted, wake_job};

const DAY_SECS: i64 = 24 * 3600;
/// When somebody who spoke too early may try again. Most answers take less.
const SPEAK_AGAIN_SECS: u64 = 2;

/// `POST /v1/tools/voice/exchange`: 201 with what the caller hears first. A call that was declined is 200.
pub async fn dial(State(state): State<Voice>, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let mut body = json_body(&headers, body).await?;
        // As if it were left out.
        if body.get("from").is_some_and(Value::is_null) {
            body.remove("from");
        }
        if let Some(refused) = body.get("to").and_then(Value::as_str).and_then(phone::emergency) {
            return Err(refused);
        }
        let input = validate_all(DIAL, &[], &body).map_err(ApiError::InvalidRequest)?;
        let to = number(&input, "to")?.ok_or_else(|| ApiError::field("to", "is required"))?;
        let from = number(&input, "from")?;
        let caller = state.app().caller(&headers, Scope::Write).await?;
        check_freeze(&state, &caller).await?;
        let from = line_of(&state, caller.agent, from, &to).await?;
        // The callee would pay.
        if let Some(reason) = limits::stopped(state.app()).await? {
            return Err(ApiError::ServicePaused(reason));
        }
        let key = headers::idempotency_key(&headers)?;
        let id = match key {
            Some(key) => named_id(&state, caller.agent, key, &from.number, &to).await?,
            None => RequestId::random(),
        };
        let route = "POST /v1/tools/voice/exchange";
        let request = Request { caller: &caller, headers: &headers, route, body: &body, secret: None };
        let dial = async {
            // The rules allowed it when it rang, and its approval is used up.
            let has_rung = key.is_some() && calls::glance(&state.app().db, id).await?.is_some();
            if !has_rung {
                // An approval is for one dial, and is not used up by one that cannot ring.
                if headers::approval_id(&headers)?.is_some()
                    && velocity::is_line_busy(&state.app().db, from.number.as_str(), id, state.app().clock.now())
                        .await?
                {
                    return rang(&state, Dialled::Busy).await;
                }
                // Otherwise what the owner forbids to buy could be had for nothing.
                state.gate.check_free(&outbound::SPEC, &caller, &input, &headers).await?;
            }
            let price = ringing::price_of_minute(&state.app().config);
            let dialled = exchange::dial(state.toolbox(), caller.agent, &from, &to, id, price).await?;
            rang(&state, dialled).await
        };
        idempotency::once(state.app(), request, dial).await
    };
    respond(answer.await)
}

/// `POST /v1/tools/voice/exchange/{id}/turns`: says something, and gets the assistant's answer.
pub async fn say(State(state): State<Voice>, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        let mut body = json_body(&headers, body).await?;
        let input = validate_all(TURN, &[], &body).map_err(ApiError::InvalidRequest)?;
        let text = input.get("text").and_then(Value::as_str).unwrap_or_default();
        let nothing = || ApiError::field("text", "must have something visible to say");
        let text = dialogue::cleaned(text, MAX_SAID).ok_or_else(nothing)?;
        let caller = state.app().caller(&headers, Scope::Write).await?;
        check_freeze(&state, &caller).await?;
        let call = own_call(&state, &caller, &id).await?;
        judge(&state, &caller, &text).await?;
        // Binds the idempotency key to this call.
        body.insert("id".to_owned(), json!(call.id));
        let route = "POST /v1/tools/voice/exchange/{id}/turns";
        let request = Request { caller: &caller, headers: &headers, route, body: &body, secret: None };
        let say = async {
            let said = exchange::say(state.toolbox(), call.id, &text).await?;
            answered(&state, said).await
        };
        idempotency::once(state.app(), request, say).await
    };
    respond(answer.await)
}

/// `POST /v1/tools/voice/exchange/{id}/hang-up`, by the caller or by the owner of the number that was called. A call that has
/// ended stays as it is.
pub async fn hang_up(State(state): State<Voice>, Segment(id): Segment, headers: HeaderMap, body: Body) -> Response {
    let answer = async {
        // A body is not needed, and nothing in it is read.
        read_body(body, gate::MAX_BODY_BYTES).await?;
        let caller = state.app().caller(&headers, Scope::Write).await?;
        let call = call_of(&state, &caller, &id).await?;
        let ended = match call.caller == Some(caller.agent) {
            true => exchange::hang_up(state.toolbox(), call.id).await?,
            false => exchange::hang_up_by_callee(state.toolbox(), call.id).await?,
        };
        let call = ended.ok_or_else(call_not_found)?;
        queue_if_ended(&state, &call).await;
        Ok(private_json(StatusCode::OK, &json!({"success": true, "data": view(&call)})))
    };
    respond(answer.await)
}

/// `GET /v1/tools/voice/exchange/{id}`: the call and what was said in it. A call whose time is over is ended by this
/// read.
pub async fn show(State(state): State<Voice>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let caller = state.app().caller(&headers, Scope::Read).await?;
        let call = own_call(&state, &caller, &id).await?;
        let call = looked_at(&state, call, state.app().clock.now()).await?;
        let turns = calls::turns(&state.app().db, call.id).await?;
        let mut data = view(&call);
        data["transcript"] = json!(dialogue::transcript(&turns));
        counted(state.app(), &caller, &json!({"success": true, "data": data})).await
    };
    respond(answer.await)
}

/// Has the job of a call run if the call has ended: it charges what was used, and tells the callee.
pub async fn queue_if_ended(state: &Voice, call: &Call) {
    if call.state.is_some() && !call.is_open() {
        wake_job(state, call.id).await;
    }
}

async fn json_body(headers: &HeaderMap, body: Body) -> Result<Map<String, Value>, ApiError> {
    parse_body(headers, &read_body(body, gate::MAX_BODY_BYTES).await?)
}

/// Refuses an agent that its owner has frozen. It may still hang up.
async fn check_freeze(state: &Voice, caller: &Caller) -> Result<(), ApiError> {
    let frozen = account::glance(&state.app().db, caller.agent).await?.frozen;
    match frozen.stops(caller.token(), outbound::SPEC.name, SERVICE_PAYEE) {
        Some(what) => Err(ApiError::Frozen { what }),
        None => Ok(()),
    }
}

/// Refuses what may not be said. A question to the moderation server counts as one for a price.
async fn judge(state: &Voice, caller: &Caller, text: &str) -> Result<(), ApiError> {
    let (judge, texts) = (&state.toolbox().judge, [("text", text)]);
    if judge.known(&texts).is_none() {
        limits::take(state.app(), Subject::of(caller, Class::Quote), Class::Quote).await?;
    }
    Ok(judge.judge(&texts).await?)
}

fn number(input: &Map<String, Value>, name: &str) -> Result<Option<Number>, ApiError> {
    let number = input.get(name).and_then(Value::as_str).map(Number::parse).transpose();
    number.map_err(|refusal| ApiError::field(name, refusal.message()))
}

/// The caller's number: the one that is named, or the one of the source in use, or else the oldest. Refuses a call to any number
/// of the caller.
async fn line_of(state: &Voice, agent: AgentId, named: Option<Number>, to: &Number) -> Result<Phone, ApiError> {
    let app = state.app();
    let mut phones = phone::list(&app.db, agent).await?;
    let is_own = phones.iter().any(|phone| phone.number == *to);
    phones.retain(|phone| phone.lost_at.is_none());
    if phones.is_empty() {
        return Err(number_needed());
    }
    let source = phone::source(&app.config);
    let position = match named {
        Some(named) => phones.iter().position(|phone| phone.number == named),
        None => Some(phones.iter().position(|phone| phone.source == source).unwrap_or(0)),
    };
    let position = position.ok_or_else(|| ApiError::field("from", "is not a number of yours"))?;
    if is_own {
        return Err(ApiError::field("to", "is your own number"));
    }
    Ok(phones.swap_remove(position))
}

/// A call that this agent dialled, as it is stored.
async fn own_call(state: &Voice, caller: &Caller, id: &str) -> Result<Call, ApiError> {
    let call = call_of(state, caller, id).await?;
    if call.caller == Some(caller.agent) { Ok(call) } else { Err(call_not_found()) }
}

/// A call that this agent dialled, or that its number took from an agent here.
async fn call_of(state: &Voice, caller: &Caller, id: &str) -> Result<Call, ApiError> {
    let id: RequestId = id.parse().map_err(|_| call_not_found())?;
    let (call, now) = (calls::glance(&state.app().db, id).await?, state.app().clock.now());
    let call = call.filter(|call| call.provider.is_none() && !call.is_expired(now)).ok_or_else(call_not_found)?;
    let took = call.direction == Direction::Inbound && call.agent == caller.agent;
    if took || call.caller == Some(caller.agent) { Ok(call) } else { Err(call_not_found()) }
}

/// The id of a call that is dialled with an idempotency key: that of the call which this dial has made since the key was first
/// used. A key is forgotten with its answer ([`idempotency::KEEP_SECS`]); then it makes a new call.
async fn named_id(
    state: &Voice,
    caller: AgentId,
    key: &str,
    from: &Number,
    to: &Number,
) -> Result<RequestId, StoreError> {
    let now = state.app().clock.now().secs();
    let today = now.div_euclid(DAY_SECS);
    let of_day = |day: i64| {
        let (from, to, day) = (from.as_str().as_bytes(), to.as_str().as_bytes(), day.to_be_bytes());
        RequestId::bought_with("dial", &[caller.bytes().as_slice(), key.as_bytes(), from, to, &day])
    };
    for day in (now - idempotency::KEEP_SECS).div_euclid(DAY_SECS)..today {
        let call = calls::glance(&state.app().db, of_day(day)).await?;
        if call.is_some_and(|call| now <= call.created.secs() + idempotency::KEEP_SECS) {
            return Ok(of_day(day));
        }
    }
    Ok(of_day(today))
}

/// The answer to a dial.
async fn rang(state: &Voice, dialled: Dialled) -> Result<(StatusCode, Value), ApiError> {
    match dialled {
        Dialled::NotInService => Err(refused(
            StatusCode::NOT_FOUND,
            "number_not_in_service",
            "nobody answers at this number: only numbers of this deployment that take calls can be dialled here",
        )),
        Dialled::Busy => Err(refused(
            StatusCode::CONFLICT,
            "line_busy",
            "your number is in a call: hang up first. A number has one call at a time",
        )),
        Dialled::Limited(why) => Err(velocity::limit_reached(why.to_owned(), state.app().clock.now())),
        Dialled::Declined(call, said) => {
            let data = json!({"call": view(&call), "said": said});
            Ok((StatusCode::OK, json!({"success": true, "data": data})))
        }
        Dialled::Answered { call, said, passed_on } => {
            queue_if_ended(state, &call).await;
            let mut data = json!({"call": view(&call), "said": said});
            add_passed_on(state, &mut data, passed_on.as_deref()).await;
            Ok((StatusCode::CREATED, json!({"success": true, "data": data})))
        }
    }
}

/// The answer to a turn.
async fn answered(state: &Voice, said: Said) -> Result<(StatusCode, Value), ApiError> {
    match said {
        Said::Answer { call, text, passed_on } => {
            queue_if_ended(state, &call).await;
            let mut data = json!({"said": text, "status": call.status()});
            if let Some((_, why)) = call.state.as_ref().and_then(Answered::ended) {
                data["ended_reason"] = json!(why.to_caller());
            }
            add_passed_on(state, &mut data, passed_on.as_deref()).await;
            Ok((StatusCode::OK, json!({"success": true, "data": data})))
        }
        Said::Over(call) => {
            queue_if_ended(state, &call).await;
            Err(refused(StatusCode::CONFLICT, "call_ended", "the call has ended: GET it to see why, and what was said"))
        }
        Said::Busy { until } => Err(ApiError::Later {
            status: StatusCode::CONFLICT,
            code: "turn_in_progress",
            message: "the assistant is answering what you said before; speak again in a few seconds".to_owned(),
            retry_after_secs: secs_until(until, state.app().clock.now()).min(SPEAK_AGAIN_SECS),
        }),
        Said::TooFast { until } => Err(ApiError::Later {
            status: StatusCode::TOO_MANY_REQUESTS,
            code: "too_many_turns",
            message: format!(
                "you speak at most {} times in a started minute, and a call has at most {} turns of both sides",
                exchange::TURNS_A_MINUTE,
                calls::MAX_TURNS
            ),
            retry_after_secs: secs_until(until, state.app().clock.now()),
        }),
    }
}

/// Whole seconds after which this time is over; at least one.
fn secs_until(until: Timestamp, now: Timestamp) -> u64 {
    until.millis().saturating_sub(now.millis()).max(0).unsigned_abs() / 1_000 + 1
}

/// Adds the call to which this one was passed on.
async fn add_passed_on(state: &Voice, data: &mut Value, passed_on: Option<&Dialled>) {
    if let Some(Dialled::Answered { call, said, .. }) = passed_on {
        queue_if_ended(state, call).await;
        data["passed_on"] = json!({"call": view(call), "said": said});
    }
}

/// A call as its caller sees it: nothing of the callee's settings, credits, charge or receipt. So it does not say why a call
/// was declined.
fn view(call: &Call) -> Value {
    let state = call.state.as_ref();
    let ended = state.and_then(Answered::ended);
    let length = state.and_then(Answered::length);
    let mut view = json!({
        "id": call.id,
        "from": call.from,
        "to": call.to,
        "status": call.status(),
        "started_at": state.map(|state| state.answered.to_string()),
        "ended_at": ended.map(|(at, _)| at.to_string()),
        "ended_reason": ended.map(|(_, why)| why.to_caller()),
        "duration_seconds": length.map_or(0, started_seconds),
        "created_at": call.created.to_string(),
    });
    if ended.is_some_and(|(_, why)| why == Ended::Transferred) {
        view["passed_on_to"] = json!(exchange::passed_id(call.id));
    }
    view
}

fn number_needed() -> ApiError {
    refused(
        StatusCode::BAD_REQUEST,
        "number_needed",
        "you call from a number of your own, and have none: POST /v1/tools/voice/numbers buys one",
    )
}

fn refused(status: StatusCode, code: &'static str, message: &str) -> ApiError {
    ApiError::Tool { status, code, message: message.to_owned() }
}
