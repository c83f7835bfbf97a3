//! Limits of the exchange, so that no caller can use up the credits of those it calls: one open call per number of a caller,
//! calls of a caller in a UTC day, and calls and charged minutes of a caller to a number in a UTC day. Calls that nobody answered
//! have a limit of their own.
//!
//! They are limits against abuse, so a deployment's `RATE_LIMIT_SCALE` does not raise them.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId, uuid_of};
use http::StatusCode;
use platform::http::ApiError;
use platform::store::{Db, Key, StoreError, Write, daily};
use serde::{Deserialize, Serialize};
use tools_sms::number::Number;

use crate::calls;

/// Most calls of an agent in a UTC day.
pub const MAX_A_DAY: u32 = 50;
/// Most answered calls of an agent to one number in a UTC day.
pub const MAX_TO_NUMBER: u32 = 10;
/// Most calls of an agent to one number in a UTC day that nobody answers: they cost their callee nothing, and us some requests.
pub const MAX_UNANSWERED: u32 = 30;
/// An agent calls a number no more in a UTC day when its calls to it have been charged so many minutes.
pub const MAX_MINUTES_TO_NUMBER: u32 = 30;

/// A line is kept so long for a call that is being dialled. Nothing of a dial takes longer.
const DIALLING: Duration = Duration::from_secs(30);
const DAY_SECS: i64 = 24 * 3600;
const DAY_IS_FULL: &str = "you have made as many calls to numbers here today as an agent may";
const NUMBER_IS_FULL: &str = "you have called this number today as often, or as long, as an agent may";
/// Attempts to count a call while others count theirs.
const TRIES: usize = 5;

/// The call of a caller's number: `LINE#<number>` / `OPEN`. The line is busy while that call is open, or until `until` if the
/// call is not there yet. So nothing has to be written when a call ends.
#[derive(Serialize, Deserialize)]
struct Line {
    call: RequestId,
    until: Timestamp,
}

/// The calls of a caller to a number in a day. The counts leave out `last`: how it ends is not known when the row is written.
#[derive(Serialize, Deserialize)]
struct ToNumber {
    /// Answered.
    used: u32,
    /// Declined, or not answered.
    #[serde(default)]
    unanswered: u32,
    /// Charged.
    minutes: u32,
    last: RequestId,
    /// When the last was counted; 0 once it is known that nobody answered it.
    #[serde(default)]
    at: Timestamp,
    expires: i64,
}

fn line_key(number: &str) -> Key {
    Key::new(format!("LINE#{number}"), "OPEN")
}

/// The calls of a caller in a day ([`Day`]).
fn day_key(caller: AgentId, day: i64) -> Key {
    Key::new(format!("VOICEDAY#{caller}"), day.to_string())
}

/// The calls of a caller to a number in a day ([`ToNumber`]).
fn number_key(caller: AgentId, to: &Number, day: i64) -> Key {
    let pair = uuid_of(&[b"voice_to", caller.bytes(), to.as_str().as_bytes()]);
    Key::new(format!("VOICETO#{pair}"), day.to_string())
}

/// Takes the line of a caller's number for this call. `false`: it is busy with another.
pub async fn take_line(db: &Db, number: &str, call: RequestId, now: Timestamp) -> Result<bool, StoreError> {
    let before: Option<Line> = db.get_latest(&db.tables.messages, line_key(number)).await?;
    if let Some(before) = &before
        && before.is_busy(db, call, now).await?
    {
        return Ok(false);
    }
    let put = Write::put(&db.tables.messages, line_key(number), &Line { call, until: now.plus(DIALLING) })?;
    let put = match before {
        None => put.only_if_new(),
        Some(before) => put.only_if("#call = :before").bind("before", before.call)?,
    };
    if db.write_if(put).await? {
        return Ok(true);
    }
    // A write whose answer was lost is sent again by the SDK, and then refused by its own success.
    let found: Option<Line> = db.get_latest(&db.tables.messages, line_key(number)).await?;
    Ok(found.is_some_and(|found| found.call == call))
}

/// Whether the line of a caller's number is busy with another call than this one. [`take_line`] has the last word.
pub async fn is_line_busy(db: &Db, number: &str, call: RequestId, now: Timestamp) -> Result<bool, StoreError> {
    let line: Option<Line> = db.get_latest(&db.tables.messages, line_key(number)).await?;
    match line {
        Some(line) => line.is_busy(db, call, now).await,
        None => Ok(false),
    }
}

/// Frees the line of a call that did not come about.
pub async fn free_line(db: &Db, number: &str, call: RequestId, now: Timestamp) -> Result<(), StoreError> {
    let free = Write::update(&db.tables.messages, line_key(number), "SET #until = :now")
        .only_if("#call = :call")
        .bind("now", now)?
        .bind("call", call)?;
    db.write_if(free).await.map(drop)
}

/// The caller's line goes on with the call to which its call was passed on.
pub async fn hand_line(db: &Db, number: &str, call: RequestId, next: RequestId) -> Result<(), StoreError> {
    let hand = Write::update(&db.tables.messages, line_key(number), "SET #call = :next")
        .only_if("#call = :call")
        .bind("call", call)?
        .bind("next", next)?;
    db.write_if(hand).await.map(drop)
}

/// Counts a call of this caller to this number, once. Why it may not be made, if one of today's limits is reached. What a limit
/// of the number refuses is not counted for the caller.
pub async fn take(
    db: &Db,
    caller: AgentId,
    to: &Number,
    call: RequestId,
    now: Timestamp,
) -> Result<Option<&'static str>, StoreError> {
    let day = now.secs().div_euclid(DAY_SECS);
    let (expires, table) = (expires(day), &db.tables.messages);
    let key = number_key(caller, to, day);
    let mut is_counted = false;
    for _ in 0..TRIES {
        let before: Option<ToNumber> = db.get_latest(table, key.clone()).await?;
        let next = match &before {
            // It was counted by a dial that did not end.
            Some(before) if before.last == call => return Ok(None),
            Some(before) => ToNumber { last: call, at: now, ..before.with_last(db, now).await? },
            None => ToNumber { used: 0, unanswered: 0, minutes: 0, last: call, at: now, expires },
        };
        if next.is_full() {
            return Ok(Some(NUMBER_IS_FULL));
        }
        if !is_counted && !take_day(db, caller, day).await? {
            return Ok(Some(DAY_IS_FULL));
        }
        is_counted = true;
        let put = Write::put(table, key.clone(), &next)?;
        let put = match before {
            None => put.only_if_new(),
            Some(before) => put.only_if("#last = :before").bind("before", before.last)?,
        };
        if db.write_if(put).await? {
            return Ok(None);
        }
    }
    Ok(Some("you are calling this number too often at once"))
}

/// Nobody answered this call, which was counted by [`take`] at this time: it does not count as one that is being dialled.
pub async fn unanswered(
    db: &Db,
    caller: AgentId,
    to: &Number,
    call: RequestId,
    now: Timestamp,
) -> Result<(), StoreError> {
    let key = number_key(caller, to, now.secs().div_euclid(DAY_SECS));
    let over = Write::update(&db.tables.messages, key, "SET #at = :never")
        .only_if("#last = :call")
        .bind("never", Timestamp::default())?
        .bind("call", call)?;
    db.write_if(over).await.map(drop)
}

impl Line {
    /// With another call than this one.
    async fn is_busy(&self, db: &Db, call: RequestId, now: Timestamp) -> Result<bool, StoreError> {
        if self.call == call {
            return Ok(false);
        }
        Ok(match calls::glance(db, self.call).await? {
            Some(other) => other.now(now).is_open(),
            None => now < self.until,
        })
    }
}

impl ToNumber {
    /// Counts the last call, too. One that was declined, or did not come about, was not answered. One that is being dialled, from
    /// another number of its caller, may be.
    async fn with_last(&self, db: &Db, now: Timestamp) -> Result<ToNumber, StoreError> {
        let call = calls::glance(db, self.last).await?;
        let is_dialling = call.is_none() && now < self.at.plus(DIALLING);
        let last = call.and_then(|call| call.now(now).state);
        let is_used = last.is_some() || is_dialling;
        // While it is open, the minutes that are held.
        let minutes = last.as_ref().map_or(0, |state| state.charged_minutes().unwrap_or(state.minutes));
        Ok(ToNumber {
            used: self.used.saturating_add(u32::from(is_used)),
            unanswered: self.unanswered.saturating_add(u32::from(!is_used)),
            minutes: self.minutes.saturating_add(minutes),
            ..*self
        })
    }

    fn is_full(&self) -> bool {
        self.used >= MAX_TO_NUMBER || self.unanswered >= MAX_UNANSWERED || self.minutes >= MAX_MINUTES_TO_NUMBER
    }
}

/// 429 `voice_limit_reached`, until the UTC day ends.
pub fn limit_reached(message: String, now: Timestamp) -> ApiError {
    ApiError::Later {
        status: StatusCode::TOO_MANY_REQUESTS,
        code: "voice_limit_reached",
        message,
        retry_after_secs: daily::secs_left(now),
    }
}

/// Counts a call of this caller in a day. False if it has made too many.
async fn take_day(db: &Db, caller: AgentId, day: i64) -> Result<bool, StoreError> {
    let count = Write::update(&db.tables.messages, day_key(caller, day), "SET #expires = :expires ADD #used :one")
        .only_if("attribute_not_exists(#used) OR #used < :most")
        .bind("expires", expires(day))?
        .bind("one", 1)?
        .bind("most", MAX_A_DAY)?;
    db.write_if(count).await
}

/// When a counter of a day may be deleted, in Unix seconds.
fn expires(day: i64) -> i64 {
    (day + 2) * DAY_SECS
}

/// The calls of a caller in a day.
#[derive(Deserialize)]
struct Day {
    used: u32,
}

/// Why a call of this caller to this number would be refused now by [`take`], for a quote: nothing is counted. `before`: the
/// calls that its job makes before it.
pub async fn refusal(
    db: &Db,
    caller: AgentId,
    to: &Number,
    before: u32,
    now: Timestamp,
) -> Result<Option<&'static str>, StoreError> {
    let (day, table) = (now.secs().div_euclid(DAY_SECS), &db.tables.messages);
    let made: Option<Day> = db.get(table, day_key(caller, day)).await?;
    if made.map_or(0, |made| made.used).saturating_add(before) >= MAX_A_DAY {
        return Ok(Some(DAY_IS_FULL));
    }
    let to_number: Option<ToNumber> = db.get(table, number_key(caller, to, day)).await?;
    let Some(to_number) = to_number else { return Ok(None) };
    Ok(to_number.with_last(db, now).await?.is_full().then_some(NUMBER_IS_FULL))
}
