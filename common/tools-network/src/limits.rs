//! What an account may do in a UTC day, and how many invitations in a week.
//!
//! The limits keep an account from what the network takes for a machine's behaviour. They hold per account, whoever uses it and
//! however many calls come at once: each call takes its place in the transaction that claims it. `taken` counts these places,
//! `sent` what reached the network. A place is given back if it is certain that the network was not asked.
//!
//! | item (table messages) | key |
//! |---|---|
//! | places of a day | `NETCAP#<member>` / `<day>#<limit>` |
//! | places of a week | `NETCAP#<member>` / `W<week>#invites` |
//!
//! They are the member's: whoever gives an account up and connects it again goes on with the same counts.

use std::time::Duration;

use base::clock::Timestamp;
use http::StatusCode;
use platform::http::ApiError;
use platform::store::{Db, Key, StoreError, Write};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::account::{Account, Tier};

const DAY_SECS: i64 = 24 * 3600;
/// A week begins on Monday; 1970-01-01 was a Thursday.
const WEEK_OFFSET: i64 = 3;
/// Counters are kept for so many days after their time.
const KEPT_DAYS: i64 = 40;

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Replies and messages together.
    Messages,
    ProfileViews,
    Reactions,
    Invites,
}

impl Limit {
    pub const ALL: [Limit; 4] = [Limit::Invites, Limit::Messages, Limit::ProfileViews, Limit::Reactions];

    /// Its member in `limits`.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Messages => "messages",
            Limit::ProfileViews => "profile_views",
            Limit::Reactions => "reactions",
            Limit::Invites => "invites",
        }
    }

    /// Most in a UTC day.
    pub fn a_day(self) -> u32 {
        match self {
            Limit::Messages | Limit::Reactions => 50,
            Limit::ProfileViews => 100,
            Limit::Invites => 25,
        }
    }

    /// Most in a week.
    fn a_week(self, tier: Tier) -> Option<u32> {
        match (self, tier) {
            (Limit::Invites, Tier::Free) => Some(15),
            // The day's limit is lower.
            (Limit::Invites, Tier::Paid) => Some(200),
            _ => None,
        }
    }
}

/// Longest note of an invitation, in characters.
pub fn longest_note(tier: Tier) -> usize {
    match tier {
        Tier::Free => 200,
        Tier::Paid => 300,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    Day(i64),
    Week(i64),
}

impl Window {
    fn day(now: Timestamp) -> Window {
        Window::Day(now.secs().div_euclid(DAY_SECS))
    }

    fn week(now: Timestamp) -> Window {
        Window::Week((now.secs().div_euclid(DAY_SECS) + WEEK_OFFSET).div_euclid(7))
    }

    fn ends(self) -> Timestamp {
        Timestamp::from_secs(match self {
            Window::Day(day) => (day + 1) * DAY_SECS,
            Window::Week(week) => ((week + 1) * 7 - WEEK_OFFSET) * DAY_SECS,
        })
    }

    fn key(self, counted: Uuid, limit: Limit) -> Key {
        let row = match self {
            Window::Day(day) => format!("{day}#{}", limit.name()),
            Window::Week(week) => format!("W{week}#{}", limit.name()),
        };
        Key::new(format!("NETCAP#{counted}"), row)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
struct Counts {
    #[serde(default)]
    taken: i64,
    #[serde(default)]
    sent: i64,
}

/// What is left of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headroom {
    limit: i64,
    used: i64,
    pending: i64,
    resets_at: Timestamp,
}

impl Headroom {
    fn of(most: u32, counts: Counts, window: Window) -> Headroom {
        let pending = (counts.taken - counts.sent).max(0);
        Headroom { limit: most.into(), used: counts.sent.max(0), pending, resets_at: window.ends() }
    }

    fn remaining(self) -> i64 {
        (self.limit - self.used - self.pending).max(0)
    }

    pub fn view(self) -> Value {
        json!({
            "limit": self.limit,
            "used": self.used,
            "pending": self.pending,
            "remaining": self.remaining(),
            "resets_at": self.resets_at.to_string(),
        })
    }
}

/// The windows in which a limit counts.
fn windows(limit: Limit, tier: Tier, now: Timestamp) -> Vec<(Window, u32)> {
    let day = (Window::day(now), limit.a_day());
    let week = limit.a_week(tier).map(|most| (Window::week(now), most));
    std::iter::once(day).chain(week).collect()
}

/// What is left of a limit now: of the window that has less.
pub async fn headroom(db: &Db, account: &Account, limit: Limit, now: Timestamp) -> Result<Headroom, StoreError> {
    let mut left = Vec::new();
    for (window, most) in windows(limit, account.tier, now) {
        let counts: Option<Counts> = db.get_latest(&db.tables.messages, window.key(account.counted(), limit)).await?;
        left.push(Headroom::of(most, counts.unwrap_or_default(), window));
    }
    least(left.into_iter())
}

/// What is left of the window that has less.
fn least(left: impl Iterator<Item = Headroom>) -> Result<Headroom, StoreError> {
    let least = left.min_by_key(|left| (left.remaining(), std::cmp::Reverse(left.resets_at)));
    least.ok_or_else(|| StoreError::new("a limit has no window"))
}

/// `limits` of an account, read at once.
pub async fn view(db: &Db, account: &Account, now: Timestamp) -> Result<Value, StoreError> {
    let of = |limit| windows(limit, account.tier, now).into_iter().map(move |(window, most)| (limit, window, most));
    let all: Vec<(Limit, Window, u32)> = Limit::ALL.into_iter().flat_map(of).collect();
    let keys: Vec<Key> = all.iter().map(|(limit, window, _)| window.key(account.counted(), *limit)).collect();
    let counts: Vec<Option<Counts>> = db.batch_get(&db.tables.messages, &keys, true).await?;
    let left: Vec<(Limit, Headroom)> = all
        .into_iter()
        .zip(counts)
        .map(|((limit, window, most), counts)| (limit, Headroom::of(most, counts.unwrap_or_default(), window)))
        .collect();
    let mut view = serde_json::Map::new();
    for limit in Limit::ALL {
        let left = least(left.iter().filter(|(of, _)| *of == limit).map(|(_, left)| *left))?;
        view.insert(limit.name().to_owned(), left.view());
    }
    Ok(Value::Object(view))
}

/// Refuses what the limit does not allow now.
///
/// # Errors
/// 429 `account_send_limit`
pub async fn check(db: &Db, account: &Account, limit: Limit, now: Timestamp) -> Result<(), ApiError> {
    let left = headroom(db, account, limit, now).await?;
    if left.remaining() > 0 {
        return Ok(());
    }
    Err(ApiError::Detailed {
        status: StatusCode::TOO_MANY_REQUESTS,
        code: "account_send_limit",
        message: format!(
            "the account has reached its limit of {} {} until {}; nothing was charged",
            left.limit,
            limit.name().replace('_', " "),
            left.resets_at
        ),
        details: json!({
            "limit": limit.name(),
            "resets_at": left.resets_at.to_string(),
        }),
    })
}

/// The writes that take a place. Refused if there is none.
pub fn take(db: &Db, account: &Account, limit: Limit, now: Timestamp) -> Result<Vec<Write>, StoreError> {
    let take = |(window, most): (Window, u32)| {
        let key = window.key(account.counted(), limit);
        let expires = window.ends().plus(Duration::from_secs(DAY_SECS.unsigned_abs())).secs() + KEPT_DAYS * DAY_SECS;
        Write::update(&db.tables.messages, key, "SET #expires = :expires ADD #taken :one")
            .only_if("attribute_not_exists(#taken) OR #taken < :most")
            .bind("one", 1)?
            .bind("most", most)?
            .bind("expires", expires)
    };
    windows(limit, account.tier, now).into_iter().map(take).collect()
}

/// The writes that say what became of a place that was taken at `at`: it was used, or it is free again.
pub fn settle(
    db: &Db,
    (counted, tier): (Uuid, Tier),
    limit: Limit,
    at: Timestamp,
    is_sent: bool,
) -> Result<Vec<Write>, StoreError> {
    let settle = |(window, _): (Window, u32)| {
        let (change, by) = if is_sent { ("ADD #sent :by", 1) } else { ("ADD #taken :by", -1) };
        Write::update(&db.tables.messages, window.key(counted, limit), change).bind("by", by)
    };
    windows(limit, tier, at).into_iter().map(settle).collect()
}

/// The writes that free a place that was taken at `at` and counted as used. Windows that are over are left as they are.
pub fn free(
    db: &Db,
    (counted, tier): (Uuid, Tier),
    limit: Limit,
    at: Timestamp,
    now: Timestamp,
) -> Result<Vec<Write>, StoreError> {
    let open = windows(limit, tier, at).into_iter().filter(|(window, _)| window.ends() > now);
    let free = |(window, _): (Window, u32)| {
        Write::update(&db.tables.messages, window.key(counted, limit), "ADD #taken :by, #sent :by").bind("by", -1)
    };
    open.map(free).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_and_a_week_end_where_the_next_begins() {
        // 2026-11-28 is a Saturday.
        let now = Timestamp::from_secs(1_795_824_000);
        assert_eq!(now.to_string(), "2026-11-28T00:00:00.000Z");
        assert_eq!(Window::day(now).ends().to_string(), "2026-11-29T00:00:00.000Z");
        assert_eq!(Window::week(now).ends().to_string(), "2026-11-30T00:00:00.000Z");
        for window in [Window::day, Window::week] {
            let ends = window(now).ends();
            assert_eq!(window(ends.minus(Duration::from_millis(1))), window(now));
            assert_ne!(window(ends), window(now));
        }
    }

    #[test]
    fn the_rest_of_a_limit_counts_what_is_under_way() {
        let window = Window::Day(20_000);
        let left = |taken, sent| Headroom::of(25, Counts { taken, sent }, window);
        assert_eq!((left(0, 0).remaining(), left(25, 3).remaining(), left(25, 3).pending), (25, 0, 22));
        assert_eq!((left(10, 4).view()["remaining"].as_i64(), left(-1, 0).remaining()), (Some(15), 25));
        // Invitations of a member of whom nothing is known are limited by the week.
        let now = Timestamp::from_secs(1_795_824_000);
        assert_eq!(windows(Limit::Invites, Tier::Free, now).len(), 2);
        assert_eq!(windows(Limit::Messages, Tier::Paid, now), [(Window::day(now), 50)]);
    }
}
