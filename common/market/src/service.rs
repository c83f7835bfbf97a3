//! A service: one kind of work that a soul sells. A buyer is quoted its *terms*. Each change of them makes a new
//! version, and all versions are kept, so that a quote never changes its meaning.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids;
use base::money::Usdc;
use gate::work::Usage;
use gate::work::checks::Check;
use ledger::fee::Split;
use platform::config::FeeShare;
use platform::store::db::Query;
use platform::store::{Blobs, Db, Key, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::category::Category;
use super::soul::{Slug, partition};
use super::trials::Trial;

/// Most services of one soul, including disabled ones.
pub const MAX_SERVICES: usize = 50;

/// Most test cases of one service.
pub const MAX_TEST_CASES: usize = 10;

/// The kind of executor that does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Executor {
    /// A model, with the soul's text as its instructions.
    Model,
    /// The seller's own worker. It claims jobs from `/me/jobs`; a signed webhook can announce them.
    Worker,
    /// The seller's program, run here: isolated, without network, within hard limits.
    Program,
}

/// The terms of one version of a service: what a buyer is quoted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// From 1.
    pub version: u32,
    pub name: String,
    /// micro-USDC
    pub price: Usdc,
    /// JSON Schema of the `input` of an execution.
    #[serde(default, with = "as_text", skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// JSON Schema of the result. If the result does not match, the buyer is refunded.
    #[serde(default, with = "as_text", skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Seconds for the work. If it takes longer, the buyer is refunded.
    pub deadline_seconds: u32,
    pub sandbox: bool,
    pub executor: Executor,
    /// Catalog tools that the work may use, by wire name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Limit on the cost of tool calls per job, in micro-USDC. It is paid from the seller's share.
    #[serde(default)]
    pub tool_budget: Usdc,
    /// SHA-256 of the program, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Distinguishes this upload of the program from others with the same bytes ([`Terms::program_blob`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program_copy: Option<String>,
    /// Receives a signed request for every job. Only for workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_url: Option<String>,
    /// Number of the current webhook URL. The webhook secret is derived from it ([`super::webhook::secret`]).
    #[serde(default)]
    pub webhook_number: u32,
    /// The budget before its last raise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raised: Option<Raise>,
}

/// A raise of the work's budget, and so of the part of the price that is kept if the work fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raise {
    pub at: Timestamp,
    /// The tool budget before, in micro-USDC.
    pub tools: Usdc,
    /// Whether a model was used before.
    pub model: bool,
}

/// An input and the checks of its result. Run when a service is listed, and daily after that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TestCase {
    pub name: String,
    pub input: Value,
    pub checks: Vec<Check>,
}

/// The stored service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Service {
    pub slug: Slug,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub active: bool,
    /// For browsing only. Not part of the terms.
    #[serde(default)]
    pub category: Category,
    pub terms: Terms,
    /// At most [`MAX_TEST_CASES`].
    #[serde(default, with = "as_text", skip_serializing_if = "Vec::is_empty")]
    pub test_cases: Vec<TestCase>,
    /// Completed executions. Changed by attribute, in `counting`.
    #[serde(default)]
    pub total_executions: u64,
    /// Result of the last test run. Changed by attribute, in `trials`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Trial>,
    pub created: Timestamp,
    pub updated: Timestamp,
}

/// What the budget of a service depends on, besides its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// The deployment has a model.
    pub has_model: bool,
    pub fee: FeeShare,
}

impl Terms {
    /// The executor in this deployment: without a model, model services go to the seller's worker.
    pub fn done_by(&self, has_model: bool) -> Executor {
        match self.executor {
            Executor::Model if !has_model => Executor::Worker,
            executor => executor,
        }
    }

    /// Blob key of the program. Each upload has its own, so that deleting it cannot affect another service with the
    /// same program.
    pub fn program_blob(&self) -> Option<String> {
        let (hash, copy) = (self.program.as_ref()?, self.program_copy.as_ref());
        Some(copy.map_or_else(|| format!("programs/{hash}.wasm"), |copy| format!("programs/{hash}-{copy}.wasm")))
    }

    /// Budget of the work: tools, at most the seller's share, and the model, which the platform's fee pays for.
    pub fn budget(&self, on: Conditions) -> Usage {
        self.budget_within(Split::of(self.price, on.fee), on.has_model)
    }

    /// The same for a price that is divided like this.
    pub fn budget_within(&self, split: Split, has_model: bool) -> Usage {
        let executor = self.done_by(has_model);
        let uses_tools = executor != Executor::Worker && !self.tools.is_empty();
        Usage {
            tools: if uses_tools { self.tool_budget.min(split.revenue) } else { Usdc::ZERO },
            model: if executor == Executor::Model { split.fee } else { Usdc::ZERO },
        }
    }

    /// The budget of work that is bought without a quote. Such a payment does not show which terms the buyer saw. So a
    /// raise of the budget applies only after the lifetime of a quote. The model's budget needs no such delay if only the
    /// price changed: it is a share of the price, which the payment states. The operator's change of the fee counts at once.
    pub fn budget_without_quote(&self, on: Conditions, now: Timestamp, quote_ttl: Duration) -> Usage {
        let budget = self.budget(on);
        match self.raised.filter(|raise| now < raise.at.plus(quote_ttl)) {
            Some(raise) => Usage {
                tools: budget.tools.min(raise.tools),
                model: if raise.model { budget.model } else { Usdc::ZERO },
            },
            None => budget,
        }
    }

    /// Records a raise over `before`, with the budget in force until now.
    pub fn noting_raise(self, before: &Terms, on: Conditions, now: Timestamp, quote_ttl: Duration) -> Terms {
        let exceeds =
            |new: Usage, old: Usage| new.tools > old.tools || new.model > Usdc::ZERO && old.model == Usdc::ZERO;
        let (new, old) = (self.budget(on), before.budget(on));
        let counted = before.budget_without_quote(on, now, quote_ttl);
        let at = match before.raised {
            Some(raise) if !exceeds(new, old) => raise.at,
            _ => now,
        };
        let raise = Raise { at, tools: counted.tools, model: counted.model > Usdc::ZERO };
        Terms { raised: exceeds(new, counted).then_some(raise), ..self }
    }

    /// The largest part of the price that is kept if the work fails: the whole budget.
    pub fn kept_if_failed_up_to(&self, on: Conditions) -> Usdc {
        self.budget(on).total()
    }
}

impl Service {
    /// Whether it can be bought. A program service needs its program first.
    pub fn is_offered(&self) -> bool {
        self.active && (self.terms.executor != Executor::Program || self.terms.program.is_some())
    }

    /// The id, derived from both slugs.
    pub fn id(&self, soul: &Slug) -> Uuid {
        ids::uuid_of(&[b"service", soul.as_str().as_bytes(), self.slug.as_str().as_bytes()])
    }
}

/// Stores sellers' JSON as text. The database limits numbers and nesting, and those limits must not apply to sellers'
/// schemas.
mod as_text {
    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

    pub fn serialize<T: Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&serde_json::to_string(value).map_err(ser::Error::custom)?)
    }

    pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        serde_json::from_str(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

pub fn key(soul: &str, service: &str) -> Key {
    Key::new(partition(soul), format!("SERVICE#{service}"))
}

/// How long replaced terms and programs are kept: the last quote is valid for a day at most, the last job for 30 days.
pub const KEEP_REPLACED: Duration = Duration::from_secs(32 * 24 * 3600);

/// The terms of a version. They never change, and expire once they are replaced ([`KEEP_REPLACED`]).
pub fn terms_key(soul: &str, service: &str, version: u32) -> Key {
    Key::new(partition(soul), format!("TERMS#{service}#{version:06}"))
}

/// Key of a program that was replaced. Blobs with this prefix are deleted after [`KEEP_REPLACED`]
/// (template.yaml, `BlobBucket`).
fn replaced_blob(blob: &str) -> String {
    blob.replacen("programs/", "programs/replaced/", 1)
}

/// The program of these terms, even if it was replaced by a later upload.
pub async fn load_program(blobs: &dyn Blobs, terms: &Terms) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(blob) = terms.program_blob() else { return Ok(None) };
    let found = match blobs.get(&blob).await? {
        None => blobs.get(&replaced_blob(&blob)).await?,
        found => found,
    };
    found.map(Some).ok_or_else(|| StoreError::new(format_args!("the program {blob} is missing")))
}

/// Copies the program of these terms to the key for replaced programs, and returns the old key. `None` if there is
/// nothing to copy.
pub async fn copy_replaced(blobs: &dyn Blobs, terms: &Terms) -> Result<Option<String>, StoreError> {
    // Older blobs are named by the program's hash alone, so another service may use the same one.
    let Some(blob) = terms.program_blob().filter(|_| terms.program_copy.is_some()) else { return Ok(None) };
    let Some(bytes) = blobs.get(&blob).await? else { return Ok(None) };
    blobs.put(&replaced_blob(&blob), "application/wasm", bytes).await?;
    Ok(Some(blob))
}

/// The service by an eventually consistent read.
pub async fn load(db: &Db, soul: &str, service: &str) -> Result<Option<Service>, StoreError> {
    if service.parse::<Slug>().is_err() {
        return Ok(None);
    }
    db.get(&db.tables.souls, key(soul, service)).await
}

/// The terms of a version.
pub async fn load_terms(db: &Db, soul: &str, service: &str, version: u32) -> Result<Option<Terms>, StoreError> {
    db.get(&db.tables.souls, terms_key(soul, service, version)).await
}

/// The service by a consistent read.
pub async fn load_latest(db: &Db, soul: &str, service: &str) -> Result<Option<Service>, StoreError> {
    if service.parse::<Slug>().is_err() {
        return Ok(None);
    }
    db.get_latest(&db.tables.souls, key(soul, service)).await
}

/// All services of a soul, including disabled ones. Eventually consistent.
pub async fn of_soul(db: &Db, soul: &str) -> Result<Vec<Service>, StoreError> {
    db.query(Query::prefixed(&db.tables.souls, &partition(soul), "SERVICE#", MAX_SERVICES)?).await
}

/// The same by a consistent read.
pub async fn of_soul_latest(db: &Db, soul: &str) -> Result<Vec<Service>, StoreError> {
    db.query(Query::prefixed(&db.tables.souls, &partition(soul), "SERVICE#", MAX_SERVICES)?.latest()).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TTL: Duration = Duration::from_secs(1800);

    fn on() -> Conditions {
        Conditions { has_model: true, fee: FeeShare::default() }
    }

    fn terms(executor: &str, price: u64, tool_budget: u64) -> Terms {
        let terms = json!({
            "version": 1, "name": "Work", "price": price, "deadline_seconds": 60, "sandbox": false, "executor": executor,
            "tools": ["web_read"], "tool_budget": tool_budget,
        });
        serde_json::from_value(terms).unwrap()
    }

    /// The terms after a change at this second, and the budget without a quote at that moment.
    fn changed(before: &Terms, terms: Terms, second: i64) -> (Terms, (u64, u64)) {
        let now = Timestamp::from_secs(second);
        let after = Terms { raised: before.raised, ..terms }.noting_raise(before, on(), now, TTL);
        let used = after.budget_without_quote(on(), now, TTL);
        (after, (used.tools.micro(), used.model.micro()))
    }

    #[test]
    fn the_lowest_recent_budget_applies_until_its_quotes_expire() {
        let first = terms("program", 500_000, 5_000);
        let (second, used) = changed(&first, terms("program", 500_000, 20_000), 1_000);
        assert_eq!(used, (5_000, 0));
        let (third, used) = changed(&second, terms("program", 500_000, 300_000), 2_000);
        assert_eq!(used, (5_000, 0), "the first is still shown by open quotes");
        let later = |second: i64| third.budget_without_quote(on(), Timestamp::from_secs(second), TTL).tools.micro();
        assert_eq!((later(3_799), later(3_800)), (5_000, 300_000));
        // Lowering and raising again, or a higher price and a lower one again: the old limit still applies.
        let (lowered, used) = changed(&third, terms("program", 500_000, 10_000), 2_100);
        assert_eq!(used, (5_000, 0));
        let (dearer, _) = changed(&lowered, terms("program", 900_000, 10_000), 2_200);
        let (back, used) = changed(&dearer, terms("program", 500_000, 300_000), 2_300);
        assert_eq!(used, (5_000, 0));
        // A change of another member does not restart the period.
        let (named, _) =
            changed(&back, Terms { name: "Other".to_owned(), ..terms("program", 500_000, 300_000) }, 4_000);
        assert_eq!(named.budget_without_quote(on(), Timestamp::from_secs(4_100), TTL).tools.micro(), 300_000);
        let (plain, used) = changed(&named, terms("program", 500_000, 1_000), 4_200);
        assert_eq!((used, plain.raised), ((1_000, 0), None), "a lowering counts at once");
    }

    #[test]
    fn replacing_a_worker_by_a_model_is_a_raise_but_a_higher_price_is_not() {
        let worker = terms("worker", 500_000, 5_000);
        let (model, used) = changed(&worker, terms("model", 500_000, 5_000), 1_000);
        assert_eq!(used, (0, 0));
        let after = model.budget_without_quote(on(), Timestamp::from_secs(2_800), TTL);
        assert_eq!((after.tools.micro(), after.model.micro()), (5_000, 100_000));
        let (_, used) = changed(&model, terms("model", 1_000_000, 5_000), 3_000);
        assert_eq!(used, (5_000, 200_000), "who pays that price was shown it");
    }
}
