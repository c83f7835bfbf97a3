//! Counters per agent, sending domain and UTC day, kept 90 days, and the analytics made of them.
//!
//! [`count`] only adds, so it counts a repeat twice: call it after the write that changed a recipient's state or stored a
//! new mail, and only if that write happened. A process that dies between the two loses one count.

use std::collections::HashMap;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::AgentId;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use serde::Deserialize;
use serde_json::{Value, json};

const DAY_SECS: u64 = 24 * 3600;
/// Days that analytics cover, today included, and days that the counters are kept.
const PERIOD_DAYS: u64 = 30;
const KEPT_DAYS: u64 = 90;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Sent,
    Delivered,
    Opened,
    Clicked,
    Bounced,
    Complained,
    Replied,
}

impl Count {
    /// The attribute of its counter.
    fn attribute(self) -> &'static str {
        match self {
            Count::Sent => "sent",
            Count::Delivered => "delivered",
            Count::Opened => "opened",
            Count::Clicked => "clicked",
            Count::Bounced => "bounced",
            Count::Complained => "complained",
            Count::Replied => "replied",
        }
    }
}

/// The counters of one day. A counter that was never added to is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct Day {
    /// The sort key: the date.
    sk: String,
    #[serde(default)]
    sent: u64,
    #[serde(default)]
    delivered: u64,
    #[serde(default)]
    opened: u64,
    #[serde(default)]
    clicked: u64,
    #[serde(default)]
    bounced: u64,
    #[serde(default)]
    complained: u64,
    #[serde(default)]
    replied: u64,
}

/// The UTC day of a time: `2026-11-21`. Days sort as texts.
pub(crate) fn day(at: Timestamp) -> String {
    at.to_string().chars().take(10).collect()
}

fn partition(agent: AgentId, domain: &str) -> String {
    format!("MAILDAY#{agent}#{}", domain.to_ascii_lowercase())
}

/// Adds `by` to one of today's counters. Not idempotent: see the module.
pub async fn count(
    db: &Db,
    agent: AgentId,
    domain: &str,
    what: Count,
    by: u32,
    now: Timestamp,
) -> Result<(), StoreError> {
    if by == 0 {
        return Ok(());
    }
    let add = format!("SET #expires = :expires ADD #{} :by", what.attribute());
    let write = Write::update(&db.tables.messages, Key::new(partition(agent, domain), day(now)), &add)
        .bind("by", by)?
        .bind("expires", now.plus(Duration::from_secs(KEPT_DAYS * DAY_SECS)).secs())?;
    db.write(write).await?;
    Ok(())
}

/// The analytics of the last 30 UTC days, today included; `by_day` has every day, oldest first. Rates are numbers from 0 to
/// 1 with four digits: opened and clicked of delivered, bounced of sent. Whether the agent has the domain is checked by the
/// caller.
pub async fn analytics(db: &Db, agent: AgentId, domain: &str, now: Timestamp) -> Result<Value, StoreError> {
    let dates = dates(now);
    let (Some(from), Some(to)) = (dates.first(), dates.last()) else {
        return Err(StoreError::new("a period without days"));
    };
    let pk = partition(agent, domain);
    let days: Vec<Day> = db.query(Query::between(&db.tables.messages, &pk, from, to, dates.len())?).await?;
    Ok(summary(domain, &dates, days))
}

/// The days of the period, oldest first.
fn dates(now: Timestamp) -> Vec<String> {
    (0..PERIOD_DAYS).rev().map(|ago| day(now.minus(Duration::from_secs(ago * DAY_SECS)))).collect()
}

fn summary(domain: &str, dates: &[String], days: Vec<Day>) -> Value {
    let days: HashMap<String, Day> = days.into_iter().map(|day| (day.sk.clone(), day)).collect();
    let mut sum = Day::default();
    let mut by_day = Vec::with_capacity(dates.len());
    for date in dates {
        let day = days.get(date).cloned().unwrap_or_default();
        by_day.push(json!({
            "date": date,
            "sent": day.sent,
            "delivered": day.delivered,
            "opened": day.opened,
            "clicked": day.clicked,
            "bounced": day.bounced,
        }));
        sum.sent += day.sent;
        sum.delivered += day.delivered;
        sum.opened += day.opened;
        sum.clicked += day.clicked;
        sum.bounced += day.bounced;
        sum.complained += day.complained;
        sum.replied += day.replied;
    }
    json!({
        "domain": domain,
        "period_days": PERIOD_DAYS,
        "sent": sum.sent,
        "delivered": sum.delivered,
        "opened": sum.opened,
        "clicked": sum.clicked,
        "bounced": sum.bounced,
        "complained": sum.complained,
        "replied": sum.replied,
        "open_rate": rate(sum.opened, sum.delivered),
        "click_rate": rate(sum.clicked, sum.delivered),
        "bounce_rate": rate(sum.bounced, sum.sent),
        "by_day": by_day,
    })
}

/// `part` of `whole` as a number from 0 to 1, rounded to four digits; 0 of nothing.
fn rate(part: u64, whole: u64) -> f64 {
    let digits = part.min(whole).saturating_mul(10_000).saturating_add(whole / 2).checked_div(whole).unwrap_or(0);
    f64::from(u32::try_from(digits).unwrap_or(10_000)) / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_four_digits_and_never_exceed_one() {
        let rows = [
            (0, 0, "0.0"),
            (1, 0, "0.0"),
            (0, 7, "0.0"),
            (1, 3, "0.3333"),
            (2, 3, "0.6667"),
            (1, 20_000, "0.0001"),
            (1, 20_001, "0.0"),
            (7, 7, "1.0"),
            (9, 7, "1.0"),
        ];
        for (part, whole, expected) in rows {
            assert_eq!(json!(rate(part, whole)).to_string(), expected, "{part} of {whole}");
        }
    }

    #[test]
    fn the_summary_has_every_day_and_adds_up() {
        let now = Timestamp::from_millis(1_795_249_530_250);
        let dates = dates(now);
        assert_eq!((dates.len(), dates[0].as_str(), dates[29].as_str()), (30, "2026-10-23", "2026-11-21"));
        let day = |date: &str, sent, delivered, opened| Day {
            sk: date.to_owned(),
            sent,
            delivered,
            opened,
            replied: 1,
            ..Day::default()
        };
        let days = vec![day("2026-10-23", 10, 8, 2), day("2026-11-21", 5, 4, 1)];
        let summary = summary("a.example", &dates, days);
        assert_eq!(summary["sent"], 15);
        assert_eq!(summary["replied"], 2);
        assert_eq!(summary["open_rate"], 0.25);
        assert_eq!(summary["bounce_rate"], 0.0);
        let by_day = summary["by_day"].as_array().unwrap();
        assert_eq!(by_day.len(), 30);
        assert_eq!(by_day[0]["sent"], 10);
        assert_eq!(
            by_day[1],
            json!({"date": "2026-10-24", "sent": 0, "delivered": 0, "opened": 0, "clicked": 0, "bounced": 0})
        );
        assert_eq!(by_day[29]["delivered"], 4);
    }
}
