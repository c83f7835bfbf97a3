//! A seller's statistics: what its sales of a UTC day came to, in one row for each soul and day.
//!
//! Counting ([`super::counting`]) writes the rows in the transaction that adds the same sales to the balance. So no call
//! writes them, and each sale is in one row, once. A batch needs one read and one write more for each day on which its
//! sales ended: usually one day, however many sales it has. A row has at most as many services as a soul may have.

use std::collections::BTreeMap;
use std::time::Duration;

use base::clock::Timestamp;
use base::money::Usdc;
use futures_util::future::try_join_all;
use ledger::day;
use ledger::earning::{Earning, SaleEnd};
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::soul::partition;

/// Most days that are shown.
pub const MOST_DAYS: usize = 90;
const DAY: Duration = Duration::from_secs(24 * 3600);
/// How long a row is kept after its day: longer than it is shown.
const KEPT: Duration = Duration::from_secs(100 * 24 * 3600);

/// Ended sales of one service, or of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Tally {
    completed: u64,
    failed: u64,
    /// What the seller earned, in micro-USDC.
    revenue: Usdc,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.completed += other.completed;
        self.failed += other.failed;
        self.revenue = sum(self.revenue, other.revenue);
    }
}

/// The balance refuses earnings that overflow, so nothing is lost here.
fn sum(one: Usdc, other: Usdc) -> Usdc {
    one.checked_add(other).unwrap_or(Usdc::from_micro(u64::MAX))
}

/// The row of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Day {
    /// `2026-11-21`
    date: String,
    /// By the service's slug.
    services: BTreeMap<String, Tally>,
    text: Tally,
    expires: i64,
}

/// The rows of the days on which some sales ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Days(BTreeMap<String, Day>);

fn sort(date: &str) -> String {
    format!("DAY#{date}")
}

fn key(soul: &str, date: &str) -> Key {
    Key::new(partition(soul), sort(date))
}

impl Days {
    /// The rows before these sales are counted, by consistent reads.
    pub async fn load_latest(db: &Db, soul: &str, sales: &[Earning]) -> Result<Days, StoreError> {
        let mut days = BTreeMap::new();
        for sale in sales {
            days.entry(day::name(sale.ended_at)).or_insert_with_key(|date| Day {
                date: date.clone(),
                services: BTreeMap::new(),
                text: Tally::default(),
                expires: day::resets_at(sale.ended_at).plus(KEPT).secs(),
            });
        }
        let keys: Vec<Key> = days.keys().map(|date| key(soul, date)).collect();
        let read = keys.into_iter().map(|key| db.get_latest::<Day>(&db.tables.souls, key));
        for found in try_join_all(read).await?.into_iter().flatten() {
            days.insert(found.date.clone(), found);
        }
        Ok(Days(days))
    }

    /// Counts one of these sales. `share`: what the seller earned with it.
    pub fn count(&mut self, sale: &Earning, share: Usdc) {
        let Some(day) = self.0.get_mut(&day::name(sale.ended_at)) else { return };
        let tally = match &sale.sold.service {
            Some(service) => day.services.entry(service.clone()).or_default(),
            None => &mut day.text,
        };
        tally.add(match sale.ended {
            SaleEnd::Completed => Tally { completed: 1, failed: 0, revenue: share },
            SaleEnd::Failed => Tally { completed: 0, failed: 1, revenue: share },
        });
    }

    pub fn writes(&self, db: &Db, soul: &str) -> Result<Vec<Write>, StoreError> {
        self.0.values().map(|day| Write::put(&db.tables.souls, key(soul, &day.date), day)).collect()
    }
}

/// The body of `GET /v1/soul/me/statistics`: the last `days` days, today included, oldest first. Days without sales are
/// left out. One query, eventually consistent.
pub async fn told(db: &Db, soul: &str, days: usize, now: Timestamp) -> Result<Value, StoreError> {
    let before = DAY * u32::try_from(days.saturating_sub(1)).unwrap_or_default();
    let (from, to) = (day::name(now.minus(before)), day::name(now));
    let query = Query::between(&db.tables.souls, &partition(soul), &sort(&from), &sort(&to), days)?;
    let rows: Vec<Day> = db.query(query).await?;
    let (mut services, mut text) = (BTreeMap::<String, Tally>::new(), Tally::default());
    let mut daily = Vec::new();
    for row in rows {
        let mut told = figures(&row.services, row.text);
        told["date"] = json!(row.date);
        daily.push(told);
        text.add(row.text);
        for (service, tally) in row.services {
            services.entry(service).or_default().add(tally);
        }
    }
    Ok(json!({
        "success": true,
        "days": days,
        "from": from,
        "to": to,
        "currency": "USDC",
        "daily": daily,
        "totals": figures(&services, text),
    }))
}

fn figures(services: &BTreeMap<String, Tally>, text: Tally) -> Value {
    let mut jobs = Tally::default();
    for tally in services.values() {
        jobs.add(*tally);
    }
    let each = services.iter().map(|(service, tally)| {
        json!({
            "service": service,
            "completed_jobs": tally.completed,
            "failed_jobs": tally.failed,
            "revenue": tally.revenue.to_string(),
        })
    });
    json!({
        "completed_jobs": jobs.completed,
        "failed_jobs": jobs.failed,
        "purchases": text.completed,
        "failed_purchases": text.failed,
        "revenue": sum(jobs.revenue, text.revenue).to_string(),
        "purchase_revenue": text.revenue.to_string(),
        "services": each.collect::<Vec<Value>>(),
    })
}
