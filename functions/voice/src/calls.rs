//! The calls that an agent's numbers answered or declined.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use futures_util::future::try_join_all;
use gate::limits::{self, Class, Subject};
use gate::respond;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use platform::auth::Scope;
use platform::http::{ApiError, Params, Segment};
use platform::store::{Db, StoreError};
use serde_json::{Value, json};
use tokio::time::Instant;
use tools::files::Reader;
use tools_voice::call::Event;
use tools_voice::calls::{self, Before, Call, Direction, MAX_PAGE, RECORDING_VALID};
use tools_voice::config::Language;
use tools_voice::{dialogue, ending, providers, spoken};
use uuid::Uuid;

use crate::{Voice, call_not_found, counted, wake_job};

const DEFAULT_LIMIT: usize = 20;
/// Most bytes of transcripts in a list. With JSON's escapes, the answer stays below Lambda's limit of 6 MB.
const MAX_TRANSCRIPT_BYTES: usize = 1024 * 1024;
/// Longest wait for a provider that is asked where a recording is.
const PATIENCE: Duration = Duration::from_secs(10);
/// Transcripts that are read at the same time.
const AT_ONCE: usize = 8;

/// `GET /v1/tools/voice/inbound`: newest first. A call whose time is over is ended by this read. Transcripts that do not fit are
/// null, with `transcript_omitted`.
pub async fn list(State(state): State<Voice>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let answer = async {
        let mut params = Params::of(query.as_deref());
        let limit = params.integer("limit", 1, MAX_PAGE).unwrap_or(DEFAULT_LIMIT);
        // A call's id, or a time.
        let before_call: Option<RequestId> = params.text("before").and_then(|text| text.parse().ok());
        let before = if before_call.is_none() { params.time("before") } else { None };
        let phone_id: Option<Uuid> = params.parsed("phone_number_id");
        let with_transcripts = params.flag("include_transcript").unwrap_or(false);
        params.check()?;
        let app = state.app();
        let caller = app.caller(&headers, Scope::Read).await?;
        let (db, now) = (&app.db, app.clock.now());
        let before = match before_call {
            Some(id) => Some(place(db, caller.agent, id).await?),
            None => before.map(Before::Time),
        };
        let mut found = calls::list(db, caller.agent, phone_id, before, limit).await?;
        // They count as gone. DynamoDB deletes them later.
        found.retain(|call| !call.is_expired(now));
        let mut views = Vec::new();
        let mut left = MAX_TRANSCRIPT_BYTES;
        for some in found.chunks(AT_ONCE) {
            let some = try_join_all(some.iter().map(|call| looked_at(&state, call.clone(), now))).await?;
            let texts: Vec<Option<String>> = match with_transcripts && left > 0 {
                true => try_join_all(some.iter().map(|call| transcript(db, call.id))).await?,
                false => vec![None; some.len()],
            };
            for (call, text) in some.iter().zip(texts) {
                let text = text.filter(|text| text.len() <= left);
                // After one that does not fit, none is read or shown.
                left = text.as_ref().map_or(0, |text| left - text.len());
                let mut view = shown(&state, &headers, call, text.as_deref(), with_transcripts);
                if with_transcripts && text.is_none() {
                    view["transcript"] = Value::Null;
                    view["transcript_omitted"] = json!(true);
                }
                views.push(view);
            }
        }
        counted(app, &caller, &json!({"success": true, "data": {"calls": views}})).await
    };
    respond(answer.await)
}

/// `GET /v1/tools/voice/inbound/{id}`: with its transcript. A call whose time is over is ended by this read.
pub async fn show(State(state): State<Voice>, Segment(id): Segment, headers: HeaderMap) -> Response {
    let answer = async {
        let app = state.app();
        let caller = app.caller(&headers, Scope::Read).await?;
        let id: RequestId = id.parse().map_err(|_| call_not_found())?;
        let (db, now) = (&app.db, app.clock.now());
        let is_own =
            |call: &Call| call.agent == caller.agent && call.direction == Direction::Inbound && !call.is_expired(now);
        let call = calls::glance(db, id).await?.filter(is_own).ok_or_else(call_not_found)?;
        let call = looked_at(&state, call, now).await?;
        let text = transcript(db, id).await?;
        let data = shown(&state, &headers, &call, text.as_deref(), true);
        counted(app, &caller, &json!({"success": true, "data": data})).await
    };
    respond(answer.await)
}

/// `GET /v1/tools/voice/recordings/{token}`: to the provider's recording, by a link from a call; a call of the exchange is read
/// out. Openings count for their source. The provider's answer is kept for a minute, and questions to it count for the call and
/// for its owner, so that links that many people have do not keep the provider from other calls.
pub async fn recording(State(state): State<Voice>, Segment(token): Segment) -> Response {
    let answer = async {
        let (toolbox, now) = (state.toolbox(), state.app().clock.now());
        let id = calls::read_recording_token(&toolbox.mail_secret, &token, now).ok_or_else(no_such_recording)?;
        limits::take(state.app(), Subject::source(), Class::Recording).await?;
        let call = calls::load(&toolbox.db, id).await?.filter(|call| !call.is_expired(now));
        let call = call.ok_or_else(no_such_recording)?;
        if call.recording.is_none() {
            return read_out(&state, &call.now(now)).await;
        }
        let url = match calls::recording_place(&toolbox.db, id, now).await? {
            Some(url) => url,
            None => ask_for_recording(&state, &call, now).await?.ok_or_else(no_such_recording)?,
        };
        let to = HeaderValue::from_str(&url).map_err(|_| no_such_recording())?;
        let answer = Response::builder()
            .status(StatusCode::FOUND)
            .header(header::LOCATION, to)
            .header(header::CACHE_CONTROL, "no-store")
            .header(header::REFERRER_POLICY, "no-referrer");
        Ok(answer.body(Body::empty()).map_err(StoreError::new)?)
    };
    respond(answer.await)
}

/// Asks the call's provider where its recording is.
async fn ask_for_recording(state: &Voice, call: &Call, now: Timestamp) -> Result<Option<String>, ApiError> {
    let (app, toolbox) = (state.app(), state.toolbox());
    let Some((provider, id)) = call.provider.as_deref().zip(call.provider_id.as_deref()) else { return Ok(None) };
    for subject in [Subject::Job(call.id, Reader::Named), Subject::Agent(call.agent)] {
        limits::take(app, subject, Class::Recording).await?;
    }
    let found = providers::recording(toolbox, provider, id, Instant::now() + PATIENCE).await;
    let found = found.map_err(|error| ApiError::Unavailable(StoreError::new(error.detail())))?;
    if let Some(url) = &found {
        calls::keep_recording_place(&toolbox.db, call.id, url, now).await?;
    }
    Ok(found)
}

/// A call of the exchange as sound. A browser may keep it for 15 minutes. Its bytes count for the call: whoever has the link can
/// use them up, but not those of other calls.
async fn read_out(state: &Voice, call: &Call) -> Result<Response, ApiError> {
    let toolbox = state.toolbox();
    let program = toolbox.config.voice.espeak.as_deref().filter(|_| call.is_audible(true));
    let program = program.ok_or_else(no_such_recording)?;
    let language = call.config.as_ref().map_or_else(Language::default, |config| config.language);
    let sound = spoken::wav(program, &calls::turns(&toolbox.db, call.id).await?, language).await?;
    limits::take_bytes(state.app(), Subject::Job(call.id, Reader::Named), Class::Result, sound.len()).await?;
    let answer = Response::builder()
        .header(header::CONTENT_TYPE, "audio/wav")
        .header(header::CONTENT_DISPOSITION, format!("inline; filename=\"call-{}.wav\"", call.id))
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(header::CACHE_CONTROL, format!("private, max-age={}", RECORDING_VALID.as_secs()))
        .header(header::REFERRER_POLICY, "no-referrer");
    Ok(answer.body(Body::from(sound)).map_err(StoreError::new)?)
}

/// A call as it is now. If it had to end meanwhile, that is stored, and its job is queued: what was held comes back at once.
pub(crate) async fn looked_at(state: &Voice, call: Call, now: Timestamp) -> Result<Call, StoreError> {
    if !call.is_open() || call.now(now).is_open() {
        return Ok(call);
    }
    let id = call.id;
    let looked = ending::apply(&state.app().db, id, now, Event::Looked).await?;
    wake_job(state, id).await;
    Ok(looked.unwrap_or(call))
}

/// The place of an agent's call in its lists.
async fn place(db: &Db, agent: AgentId, id: RequestId) -> Result<Before, ApiError> {
    let call = calls::glance(db, id).await?;
    let call = call.filter(|call| call.agent == agent && call.direction == Direction::Inbound);
    let call =
        call.ok_or_else(|| ApiError::field("before", "is neither a time nor the id of a call to your numbers"))?;
    Ok(Before::Call { id, created: call.created })
}

async fn transcript(db: &Db, id: RequestId) -> Result<Option<String>, StoreError> {
    Ok(Some(dialogue::transcript(&calls::turns(db, id).await?)))
}

/// A call, with a link to its recording if it has one and is asked for.
fn shown(state: &Voice, headers: &HeaderMap, call: &Call, transcript: Option<&str>, with_recording: bool) -> Value {
    let has_recording = with_recording && call.is_audible(state.toolbox().config.voice.espeak.is_some());
    let url = has_recording.then(|| {
        let until = state.app().clock.now().plus(RECORDING_VALID);
        let token = calls::recording_token(&state.toolbox().mail_secret, call.id, until);
        format!("{}/v1/tools/voice/recordings/{token}", state.app().origin(headers))
    });
    calls::view(call, transcript, url.as_deref())
}

fn no_such_recording() -> ApiError {
    ApiError::Tool {
        status: StatusCode::NOT_FOUND,
        code: "recording_not_found",
        message: "this link has expired, or the call has no recording: read the call again for a new link".to_owned(),
    }
}
