//! Calls on record, and what was said in them. Kept for 30 days.
//!
//! | item | key |
//! |---|---|
//! | a call | `CALL#<id>` / `CALL` |
//! | the settings with which it was answered | `CALL#<id>` / `CONFIG` |
//! | what one side said | `CALL#<id>` / `TURN#<number, 4 digits>` |
//! | where its provider said the recording is | `CALL#<id>` / `RECORDING` |
//! | an agent's inbound calls | `AGENT#<agent>` / `VIN#<milliseconds, 13 digits>#<id>` |
//! | those of one of its numbers | `AGENT#<agent>` / `VINOF#<phone id>#<milliseconds>#<id>` |
//!
//! The settings never change, and can be much longer than the rest. So they are written once, when it rings, and a change of
//! the call does not write them again.
//!
//! Each change of a call raises its revision and is refused if another one was faster. Nobody watches the time of a call:
//! whoever reads it judges it with [`Call::now`]. DynamoDB deletes expired items some time after they expire, so a reader
//! compares ([`Call::is_expired`]).

use std::time::Duration;

use base::clock::Timestamp;
use base::encoding::{base64_any, base64_url};
use base::ids::{AgentId, ReceiptId, RequestId};
use base::money::Usdc;
use futures_util::future::try_join;
use futures_util::{StreamExt, TryStreamExt, stream};
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use ring::hmac;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::call::{self, Declined, Mode, State};
use crate::config::InboundConfig;
use crate::dialogue::{Speaker, Turn};
use crate::plan;

/// How long calls are kept.
pub const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// Most turns of a call.
pub const MAX_TURNS: u32 = 400;
/// Most calls of one page.
pub const MAX_PAGE: usize = 100;
/// How long a provider is not asked again where a recording is. Its answer is valid for minutes.
const PLACE_KEPT: Duration = Duration::from_secs(60);
/// How long the link to a recording is valid.
pub const RECORDING_VALID: Duration = Duration::from_secs(15 * 60);
/// A call is over, on record, this long after its longest length.
const LATE: Duration = Duration::from_secs(120);
/// Rows that are written at the same time.
const AT_ONCE: usize = 8;
/// Layout of a recording's token: call, Unix seconds of its expiry, MAC.
const ID_BYTES: usize = 16;
const BODY_BYTES: usize = ID_BYTES + 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Inbound,
    Outbound,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Also the id of the job that it is paid by.
    pub id: RequestId,
    pub direction: Direction,
    /// Whose record it is: the callee of an inbound call, the caller of an outbound one.
    pub agent: AgentId,
    /// The agent of this deployment that called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<AgentId>,
    /// The agent's own number ([`tools_sms::phone::Phone::id`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone_id: Option<Uuid>,
    /// A number, or what the provider says in its place; cleaned.
    pub from: String,
    pub to: String,
    /// Who carries it; `None`: the exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The provider's id of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The provider's URL of its recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// The settings as they were when it rang: later changes do not touch a running call. They are an item of their own: read
    /// by [`load`], not by [`glance`] and [`list`]. `None` if it was declined. Calls of before that have them in their own item.
    #[serde(default, skip_serializing)]
    pub config: Option<InboundConfig>,
    /// `None` if it was declined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declined: Option<Declined>,
    /// Of a minute, in micro-USDC.
    pub price: Usdc,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt_id: Option<ReceiptId>,
    /// How often it was passed on before it came here.
    #[serde(default)]
    pub hops: u8,
    /// How many turns are stored, of both sides.
    #[serde(default)]
    pub turns: u32,
    /// How often a model was asked for an answer in vain.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u8,
    /// How many turns of the caller were answered.
    #[serde(default)]
    pub spoken: u32,
    /// A turn is being answered, until then at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answering: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What came of a call that a provider carried; `None` until the provider has told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// When it rang.
    pub created: Timestamp,
    pub revision: u32,
    /// Unix seconds after which it is no longer shown and may be deleted.
    pub expires: i64,
}

/// What one side said, as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct StoredTurn {
    speaker: Speaker,
    text: String,
    at: Timestamp,
    expires: i64,
}

/// The settings of a call, as they are stored.
#[derive(Serialize, Deserialize)]
struct StoredConfig {
    config: InboundConfig,
    expires: i64,
}

/// Where a page of a list ends, itself not included.
#[derive(Clone, Copy, Debug)]
pub enum Before {
    Time(Timestamp),
    /// The place of a call. Others of the same millisecond may be on either side of it.
    Call {
        id: RequestId,
        created: Timestamp,
    },
}

/// An item of a list of calls.
#[derive(Serialize, Deserialize)]
struct Listed {
    id: RequestId,
    expires: i64,
}

impl Call {
    /// The call as it is at this time: one that had to end has ended.
    pub fn now(&self, at: Timestamp) -> Call {
        Call { state: self.state.as_ref().map(|state| state.now(at)), ..self.clone() }
    }

    /// The wire's `status`.
    pub fn status(&self) -> &'static str {
        match &self.state {
            None => "declined",
            Some(state) if state.ended().is_some() => "ended",
            Some(_) => "in-progress",
        }
    }

    pub fn is_open(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.ended().is_none())
    }

    /// Whether there is something to hear: its provider's recording, or, if this deployment can read it out
    /// ([`crate::spoken`]), what was said in a call of the exchange that has ended.
    pub fn is_audible(&self, is_read_out: bool) -> bool {
        let has_ended = self.state.as_ref().is_some_and(|state| state.ended().is_some());
        self.recording.is_some() || is_read_out && self.provider.is_none() && self.turns > 0 && has_ended
    }

    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires <= now.secs()
    }

    /// The minutes that it is charged, once it is over; none if it was declined.
    pub fn charged_minutes(&self) -> Option<u32> {
        self.state.as_ref().map_or(Some(0), State::charged_minutes)
    }

    /// What it is charged, once it is over, in micro-USDC.
    pub fn charged(&self) -> Option<Usdc> {
        plan::price_of(self.charged_minutes()?, self.price)
    }

    /// When it is over at the latest, on record too. `None` if it was declined.
    pub fn until(&self) -> Option<Timestamp> {
        let state = self.state.as_ref()?;
        Some(state.answered.plus(Duration::from_secs(60) * state.minutes + LATE))
    }
}

/// Zero is not stored, to keep rows small.
fn is_zero(count: &u8) -> bool {
    *count == 0
}

fn partition(id: RequestId) -> String {
    format!("CALL#{id}")
}

/// The key of a call.
pub fn key(id: RequestId) -> Key {
    Key::new(partition(id), "CALL")
}

fn list_partition(agent: AgentId) -> String {
    format!("AGENT#{agent}")
}

/// What the keys of a list begin with: of all calls of an agent, or of those of a number.
fn list_prefix(phone_id: Option<Uuid>) -> String {
    phone_id.map_or_else(|| "VIN#".to_owned(), |phone_id| format!("VINOF#{phone_id}#"))
}

/// Of 13 digits, so that they sort as their numbers do: a time after the year 2286 is the last of these.
fn millis(at: Timestamp) -> String {
    format!("{:013}", at.millis().clamp(0, 9_999_999_999_999))
}

fn config_key(id: RequestId) -> Key {
    Key::new(partition(id), "CONFIG")
}

/// The call with its settings, from strongly consistent reads.
pub async fn load(db: &Db, id: RequestId) -> Result<Option<Call>, StoreError> {
    let config = db.get_latest::<StoredConfig>(&db.tables.messages, config_key(id));
    let (call, stored) = try_join(glance(db, id), config).await?;
    let Some(mut call) = call else { return Ok(None) };
    if let Some(stored) = stored {
        call.config = Some(stored.config);
    } else if let Some(config) = &call.config {
        // A change writes the call without them.
        db.write_if(put_config(db, &call, config)?).await?;
    }
    Ok(Some(call))
}

fn put_config(db: &Db, call: &Call, config: &InboundConfig) -> Result<Write, StoreError> {
    let stored = StoredConfig { config: config.clone(), expires: call.expires };
    Write::put(&db.tables.messages, config_key(call.id), &stored)
}

/// The call without its settings, from a strongly consistent read.
pub async fn glance(db: &Db, id: RequestId) -> Result<Option<Call>, StoreError> {
    db.get_latest(&db.tables.messages, key(id)).await
}

/// The writes of a new call, for a transaction: the call itself comes first, and is refused if it is known; then its settings,
/// and, if it is inbound, its places in the lists.
pub fn create(db: &Db, call: &Call) -> Result<Vec<Write>, StoreError> {
    let table = &db.tables.messages;
    let mut writes = vec![Write::put(table, key(call.id), call)?.only_if_new()];
    if let Some(config) = &call.config {
        writes.push(put_config(db, call, config)?);
    }
    if call.direction == Direction::Inbound {
        let listed = Listed { id: call.id, expires: call.expires };
        let mut lists = vec![list_prefix(None)];
        lists.extend(call.phone_id.map(|phone_id| list_prefix(Some(phone_id))));
        for list in lists {
            let sort = format!("{list}{}#{}", millis(call.created), call.id);
            writes.push(Write::put(table, Key::new(list_partition(call.agent), sort), &listed)?);
        }
    }
    Ok(writes)
}

/// Stores the next revision of a call; its settings stay. False if another change was faster.
pub async fn change(db: &Db, next: &Call) -> Result<bool, StoreError> {
    db.write_if(changed(db, next)?).await
}

/// The write of [`change`], for a transaction.
pub fn changed(db: &Db, next: &Call) -> Result<Write, StoreError> {
    Write::put(&db.tables.messages, key(next.id), next)?
        .only_if("#revision = :before")
        .bind("before", next.revision.saturating_sub(1))
}

/// Stores turns from the number `first` on; those beyond [`MAX_TURNS`] are left out. Repeating it stores the same.
pub async fn add_turns(db: &Db, id: RequestId, first: u32, turns: &[Turn], at: Timestamp) -> Result<(), StoreError> {
    let expires = at.plus(KEPT).secs();
    let mut writes = Vec::new();
    for (number, turn) in (first..MAX_TURNS).zip(turns) {
        let stored = StoredTurn { speaker: turn.speaker, text: turn.text.clone(), at, expires };
        let key = Key::new(partition(id), format!("TURN#{number:04}"));
        writes.push(db.write_if(Write::put(&db.tables.messages, key, &stored)?));
    }
    stream::iter(writes).buffer_unordered(AT_ONCE).try_for_each(|_| async { Ok(()) }).await
}

/// What was said, in its order.
pub async fn turns(db: &Db, id: RequestId) -> Result<Vec<Turn>, StoreError> {
    let most = usize::try_from(MAX_TURNS).unwrap_or(usize::MAX);
    let query = Query::prefixed(&db.tables.messages, &partition(id), "TURN#", most)?;
    let turns: Vec<StoredTurn> = db.query(query.latest()).await?;
    Ok(turns.into_iter().map(|turn| Turn { speaker: turn.speaker, text: turn.text }).collect())
}

/// Inbound calls of an agent, newest first: at most `limit` (1 to 100), of one of its numbers if that is given, before this
/// place, without their settings. Expired calls that are not deleted yet are among them.
pub async fn list(
    db: &Db,
    agent: AgentId,
    phone_id: Option<Uuid>,
    before: Option<Before>,
    limit: usize,
) -> Result<Vec<Call>, StoreError> {
    let prefix = list_prefix(phone_id);
    // A key goes on behind its time, so those of this very time are greater. A colon is greater than any digit.
    let (last, seen) = match before {
        None => (":".to_owned(), None),
        Some(Before::Time(time)) => (millis(time), None),
        Some(Before::Call { id, created }) => (format!("{}#{id}", millis(created)), Some(id)),
    };
    let (last, limit) = (format!("{prefix}{last}"), limit.clamp(1, MAX_PAGE));
    // The call itself is in the range.
    let most = limit + usize::from(seen.is_some());
    let query = Query::between(&db.tables.messages, &list_partition(agent), &prefix, &last, most)?;
    let listed: Vec<Listed> = db.query(query.newest_first().latest()).await?;
    let listed = listed.into_iter().map(|listed| listed.id).filter(|id| Some(*id) != seen);
    let keys: Vec<Key> = listed.take(limit).map(key).collect();
    let calls: Vec<Option<Call>> = db.batch_get(&db.tables.messages, &keys, true).await?;
    Ok(calls.into_iter().flatten().collect())
}

/// An inbound call as its callee sees it. `transcript` and `recording_url` are shown only if they are given; a transcript
/// without a word is null.
pub fn view(call: &Call, transcript: Option<&str>, recording_url: Option<&str>) -> Value {
    let ended = call.state.as_ref().and_then(State::ended);
    let length = call.state.as_ref().and_then(State::length);
    let mode = match call.declined {
        Some(Declined::AfterHours) => Some(Mode::Decline),
        Some(Declined::NoCredit | Declined::OverBudget | Declined::Frozen | Declined::TooManyFailures) => None,
        None => call.state.as_ref().map(|state| state.mode),
    };
    let mut view = json!({
        "id": call.id,
        "phone_number_id": call.phone_id,
        "from": call.from,
        "to": call.to,
        "status": call.status(),
        "mode": mode,
        "started_at": call.state.as_ref().map(|state| state.answered.to_string()),
        "ended_at": ended.map(|(at, _)| at.to_string()),
        "duration_seconds": length.map_or(0, call::started_seconds),
        "ended_reason": ended.map(|(_, why)| json!(why)).or_else(|| call.declined.map(|why| json!(why))),
        "summary": call.summary,
        "charge_usdc": call.charged().map(|charged| charged.to_string()),
        "receipt_id": call.receipt_id,
        "created_at": call.created.to_string(),
    });
    let open = call.state.as_ref().filter(|_| call.is_open());
    if let Some(held) = open.and_then(|state| plan::price_of(state.minutes, call.price)) {
        view["held_usdc"] = json!(held.to_string());
    }
    if let Some(transcript) = transcript {
        view["transcript"] = if transcript.is_empty() { Value::Null } else { json!(transcript) };
    }
    if let Some(url) = recording_url {
        view["recording_url"] = json!(url);
    }
    view
}

/// Where a provider said a recording is.
#[derive(Serialize, Deserialize)]
struct Place {
    url: String,
    asked: Timestamp,
    expires: i64,
}

fn place_key(id: RequestId) -> Key {
    Key::new(partition(id), "RECORDING")
}

/// Where the provider said within the last minute that the recording is.
pub async fn recording_place(db: &Db, id: RequestId, now: Timestamp) -> Result<Option<String>, StoreError> {
    let place: Option<Place> = db.get_latest(&db.tables.messages, place_key(id)).await?;
    Ok(place.filter(|place| now < place.asked.plus(PLACE_KEPT)).map(|place| place.url))
}

/// Keeps what the provider said.
pub async fn keep_recording_place(db: &Db, id: RequestId, url: &str, now: Timestamp) -> Result<(), StoreError> {
    let place = Place { url: url.to_owned(), asked: now, expires: now.plus(PLACE_KEPT).secs() };
    db.write_if(Write::put(&db.tables.messages, place_key(id), &place)?).await.map(drop)
}

fn recording_key(secret: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret)
}

fn recording_message(body: &[u8]) -> Vec<u8> {
    [b"call recording".as_slice(), body].concat()
}

/// The token of a link to a recording: names the call and when the link expires, and only this service can make it. URL-safe.
pub fn recording_token(secret: &[u8], id: RequestId, until: Timestamp) -> String {
    let body = [id.bytes().as_slice(), &until.secs().to_be_bytes()].concat();
    let mac = base::digest::hmac(&recording_key(secret), &recording_message(&body));
    base64_url(&[body.as_slice(), &mac].concat())
}

/// The call that a recording's token names. `None` if the token is not ours or has expired.
pub fn read_recording_token(secret: &[u8], token: &str, now: Timestamp) -> Option<RequestId> {
    let bytes = base64_any(token)?;
    let (body, mac) = bytes.split_at_checked(BODY_BYTES)?;
    hmac::verify(&recording_key(secret), &recording_message(body), mac).ok()?;
    let (id, until) = body.split_at(ID_BYTES);
    let until = i64::from_be_bytes(until.try_into().ok()?);
    if now.secs() >= until {
        return None;
    }
    Some(RequestId::from_bytes(id.try_into().ok()?))
}

/// A call for tests of this crate.
#[cfg(test)]
pub(crate) mod example {
    use super::*;
    use crate::call::Answer;
    use crate::config;

    pub const NOON: Timestamp = Timestamp::from_secs(1_795_176_000);

    /// A call of the exchange, or of a provider (its name), that was answered at noon, for at most three minutes.
    pub fn a_call(provider: Option<&str>) -> Call {
        let body = json!({"prompt": "You answer for a bakery."});
        let config = config::read(body.as_object().unwrap(), &platform::net::FetchPolicy::default()).unwrap();
        let answer = call::ring(Some(&config), NOON, 3, provider.is_none());
        let Answer::Answered { state, .. } = answer else { panic!("not answered") };
        Call {
            id: RequestId::from_bytes([1; 16]),
            direction: Direction::Inbound,
            agent: AgentId::from_bytes([2; 16]),
            caller: None,
            phone_id: Some(Uuid::nil()),
            from: "+12025550100".to_owned(),
            to: "+12025550101".to_owned(),
            provider: provider.map(str::to_owned),
            provider_id: provider.map(|_| "019a".to_owned()),
            recording: None,
            config: Some(config),
            state: Some(state),
            declined: None,
            price: plan::EACH,
            receipt_id: None,
            hops: 0,
            turns: 0,
            failures: 0,
            spoken: 0,
            answering: None,
            summary: None,
            outcome: None,
            created: NOON,
            revision: 1,
            expires: NOON.plus(KEPT).secs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::example::{NOON, a_call};
    use super::*;
    use crate::call::{Ended, Phase};
    use crate::config;

    /// What changes with each turn is small, however long the settings are.
    #[test]
    fn a_call_is_stored_without_its_settings() {
        let long = InboundConfig { prompt: "a".repeat(config::MAX_PROMPT), ..a_call(None).config.unwrap() };
        let call = Call { config: Some(long), ..a_call(None) };
        let stored = serde_json::to_value(&call).unwrap();
        assert!(stored.to_string().len() < 1_024, "one write unit: {stored}");
        let read: Call = serde_json::from_value(stored).unwrap();
        assert_eq!(read, Call { config: None, ..call.clone() });
        assert_eq!(read.now(NOON.plus(KEPT)).state, call.now(NOON.plus(KEPT)).state, "time needs no settings");
    }

    #[test]
    fn a_call_is_shown_as_it_is_now() {
        let after = |secs: u64| a_call(None).now(NOON.plus(Duration::from_secs(secs)));
        let shown = |call: &Call| {
            let view = view(call, None, None);
            let of = |name: &str| view[name].to_string().replace('"', "");
            [of("status"), of("ended_reason"), of("duration_seconds"), of("charge_usdc"), of("mode")].join(" ")
        };
        assert_eq!(shown(&after(54)), "in-progress null 0 null in_hours");
        assert_eq!(shown(&after(9_999)), "ended silence 55 0.350000 in_hours");
        let phase = Phase::Ended { at: NOON.plus(Duration::from_millis(60_001)), why: Ended::CallerHungUp };
        let ended = Call { state: a_call(None).state.map(|state| State { phase, ..state }), ..a_call(None) };
        assert_eq!(shown(&ended), "ended caller_hung_up 61 0.700000 in_hours");
        for (why, expected) in [
            (Declined::AfterHours, "declined after_hours 0 0.000000 decline"),
            (Declined::NoCredit, "declined no_credit 0 0.000000 null"),
            (Declined::OverBudget, "declined over_budget 0 0.000000 null"),
            (Declined::Frozen, "declined frozen 0 0.000000 null"),
            (Declined::TooManyFailures, "declined too_many_failures 0 0.000000 null"),
        ] {
            let declined = Call { declined: Some(why), state: None, config: None, ..a_call(None) };
            assert_eq!(shown(&declined.now(NOON)), expected);
            assert!(!declined.is_open() && declined.until().is_none());
        }
        assert_eq!(a_call(None).until(), Some(NOON.plus(Duration::from_secs(3 * 60 + 120))));
        let view = view(&a_call(None), Some("Caller: Hi"), None);
        assert_eq!((&view["transcript"], view.get("recording_url")), (&json!("Caller: Hi"), None));
    }

    #[test]
    fn a_recording_is_opened_only_by_a_fresh_link_of_ours() {
        let (id, until) = (a_call(None).id, NOON.plus(RECORDING_VALID));
        let token = recording_token(b"secret", id, until);
        let last = until.minus(Duration::from_secs(1));
        assert_eq!(read_recording_token(b"secret", &token, last), Some(id));
        assert_eq!(read_recording_token(b"secret", &token, until), None);
        assert_eq!(read_recording_token(b"another", &token, NOON), None);
        let bytes = base64_any(&token).unwrap();
        for index in 0..bytes.len() {
            let mut forged = bytes.clone();
            forged[index] ^= 1;
            assert_eq!(read_recording_token(b"secret", &base64_url(&forged), NOON), None, "{index}");
            assert_eq!(read_recording_token(b"secret", &base64_url(&bytes[..index]), NOON), None, "{index}");
        }
        assert_eq!(read_recording_token(b"secret", "%", NOON), None);
    }
}
