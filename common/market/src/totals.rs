//! Totals of the marketplace. They change in the same transaction as the records, so they are exact and nothing has to
//! be counted. The writes are spread over eight items, by soul.

use std::collections::BTreeMap;

use base::digest::sha256;
use base::money::Usdc;
use platform::store::{Db, Key, StoreError, Write};
use serde_json::{Map, Value, json};

use super::category::{CATEGORIES, Category};
use super::soul;

const SHARDS: u8 = 8;

/// Amounts to add; negative ones are subtracted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Listed souls. Counted by `market::index`.
    pub souls: i64,
    /// Active services of listed souls. Counted by `market::index`.
    pub services: i64,
    pub completed: i64,
    pub failed: i64,
    /// micro-USDC that sellers earned.
    pub paid: i64,
    pub purchases: i64,
    /// micro-USDC
    pub purchase_revenue: i64,
    pub rating_sum: i64,
    pub rating_count: i64,
    pub categories: BTreeMap<Category, CategoryChange>,
}

/// The change of one category.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CategoryChange {
    /// Listed souls with an active service.
    pub souls: i64,
    pub services: i64,
    /// Completed jobs.
    pub jobs: i64,
}

impl Change {
    fn parts(&self) -> Vec<(String, i64)> {
        let own = [
            ("souls", self.souls),
            ("services", self.services),
            ("completed", self.completed),
            ("failed", self.failed),
            ("paid", self.paid),
            ("purchases", self.purchases),
            ("purchase_revenue", self.purchase_revenue),
            ("rating_sum", self.rating_sum),
            ("rating_count", self.rating_count),
        ];
        let own = own.into_iter().map(|(name, by)| (name.to_owned(), by));
        let of_categories = self.categories.iter().flat_map(|(category, change)| {
            let category = category.as_str();
            [
                (format!("souls_{category}"), change.souls),
                (format!("services_{category}"), change.services),
                (format!("jobs_{category}"), change.jobs),
            ]
        });
        own.chain(of_categories).filter(|(_, by)| *by != 0).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.parts().is_empty()
    }
}

fn key(shard: u8) -> Key {
    Key::new(format!("TOTALS#{shard}"), "TOTALS")
}

/// The write that adds a change, for the transaction that causes it. `slug` is the soul that changed.
pub fn add(db: &Db, slug: &str, change: &Change) -> Result<Write, StoreError> {
    let parts = change.parts();
    let expression: Vec<String> = parts.iter().map(|(name, _)| format!("#{name} :{name}")).collect();
    let shard = sha256(slug.as_bytes())[0] % SHARDS;
    let write = Write::update(&db.tables.souls, key(shard), &format!("ADD {}", expression.join(", ")));
    parts.iter().try_fold(write, |write, (name, by)| write.bind(name, by))
}

/// The current totals: eight reads.
pub struct Totals(BTreeMap<String, i64>);

pub async fn load(db: &Db) -> Result<Totals, StoreError> {
    let keys: Vec<Key> = (0..SHARDS).map(key).collect();
    let items: Vec<Option<Map<String, Value>>> = db.batch_get(&db.tables.souls, &keys, false).await?;
    let mut sums = BTreeMap::new();
    for (name, value) in items.into_iter().flatten().flatten() {
        if let Some(value) = value.as_i64() {
            *sums.entry(name).or_default() += value;
        }
    }
    Ok(Totals(sums))
}

impl Totals {
    fn get(&self, name: &str) -> u64 {
        self.0.get(name).map_or(0, |sum| u64::try_from(*sum).unwrap_or_default())
    }

    /// Listed souls, or those of them with a service of a category.
    pub fn souls(&self, category: Option<Category>) -> u64 {
        match category {
            None => self.get("souls"),
            Some(category) => self.get(&format!("souls_{}", category.as_str())),
        }
    }

    /// The body of `GET /v1/soul/stats`.
    pub fn to_json(&self) -> Value {
        let money = |name: &str| number(Usdc::from_micro(self.get(name)));
        let votes = self.get("rating_count");
        let categories: Vec<Value> = CATEGORIES
            .into_iter()
            .map(|category| {
                let of = |what: &str| self.get(&format!("{what}_{}", category.as_str()));
                json!({"name": category, "service_count": of("services"), "job_count": of("jobs"), "soul_count": of("souls")})
            })
            .collect();
        json!({
            "total_souls": self.get("souls"),
            "active_services": self.get("services"),
            "total_jobs": self.get("completed") + self.get("failed"),
            "completed_jobs": self.get("completed"),
            "failed_jobs": self.get("failed"),
            "total_paid_to_sellers": money("paid"),
            "total_purchases": self.get("purchases"),
            "total_purchase_revenue": money("purchase_revenue"),
            "average_rating": soul::average(self.get("rating_sum"), votes),
            "rating_count": votes,
            "categories": categories,
        })
    }
}

/// An amount as a JSON number, digit by digit.
fn number(amount: Usdc) -> Value {
    serde_json::from_str(&amount.to_string()).unwrap_or_default()
}
