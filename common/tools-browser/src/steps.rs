//! The record of a task: one row per step, written before the step is done, so that what was done is never done again.
//!
//! | item (table jobs) | key |
//! |---|---|
//! | a step | `JOB#<request id>` / `STEP#<000>` |

use base::clock::Timestamp;
use base::ids::RequestId;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tools::spec::RETENTION;
use url::Url;

use crate::browser::MAX_STEPS;

/// Longest goal and address, in bytes.
const MAX_TEXT: usize = 300;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub number: u64,
    /// In words: what the step is for.
    pub goal: String,
    /// The page it is done on, without the values of its query.
    pub url: String,
    pub at: Timestamp,
    /// micro-USDC that the model has cost so far, this step's question included.
    pub model_micro: u64,
    /// Unix seconds.
    expires: i64,
}

impl Step {
    pub fn new(number: u64, goal: &str, url: &str, model_micro: u64, at: Timestamp) -> Step {
        Step { number, goal: cut(goal), url: shown(url), at, model_micro, expires: at.plus(RETENTION).secs() }
    }

    /// As the result lists it.
    pub fn to_json(&self) -> Value {
        json!({"number": self.number, "goal": self.goal, "url": self.url})
    }
}

/// Records a step that is about to be done. `false` if another run of the job has recorded it, or the job has ended: then the
/// step must not be done.
pub async fn record(db: &Db, job: RequestId, step: &Step) -> Result<bool, StoreError> {
    let table = &db.tables.jobs;
    let open = Write::check(table, Key::of_job(job)).only_if("attribute_exists(#open)");
    let key = Key::new(Key::of_job(job).pk, format!("{PREFIX}{:03}", step.number));
    match db.transact(&[open, Write::put(table, key, step)?.only_if_new()]).await {
        Ok(()) => Ok(true),
        Err(WriteError::Refused(_)) => Ok(false),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// What was recorded, in order.
pub async fn of_job(db: &Db, job: RequestId) -> Result<Vec<Step>, StoreError> {
    let most = usize::try_from(MAX_STEPS).unwrap_or(usize::MAX).saturating_add(1);
    db.query(Query::prefixed(&db.tables.jobs, &Key::of_job(job).pk, PREFIX, most)?.latest()).await
}

const PREFIX: &str = "STEP#";

fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

/// An address as results show it: short, and [`without_values`].
pub fn shown(url: &str) -> String {
    cut(&without_values(url))
}

/// An address without the values of its query and without its fragment: they may hold what was typed, or a session's key.
fn without_values(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else { return String::new() };
    if matches!(parsed.scheme(), "data" | "blob" | "javascript") {
        return format!("{}:", parsed.scheme());
    }
    let names: Vec<String> = parsed.query_pairs().map(|(name, _)| name.into_owned()).collect();
    parsed.set_query(None);
    parsed.set_fragment(None);
    // Names go, too, if there is no value: then the query is one text.
    if !names.is_empty() && url.contains('=') {
        let mut pairs = parsed.query_pairs_mut();
        for name in names {
            pairs.append_key_only(&name);
        }
        drop(pairs);
    }
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    parsed.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lose_what_may_be_secret() {
        for (given, shown) in [
            ("https://a.example/b?q=secret&page=2#c", "https://a.example/b?q&page"),
            ("https://a.example/b?token", "https://a.example/b"),
            ("https://user:pass@a.example/", "https://a.example/"),
            ("https://a.example/#access_token=1", "https://a.example/"),
            ("data:text/html,secret", "data:"),
            ("about:blank", "about:blank"),
            ("no address", ""),
        ] {
            assert_eq!(without_values(given), shown);
        }
    }

    #[test]
    fn a_step_fits_into_its_row() {
        let long = "é".repeat(5_000);
        let step = Step::new(1, &long, &format!("https://a.example/{long}"), 0, Timestamp::from_secs(0));
        assert!(step.goal.len() <= MAX_TEXT && step.url.len() <= MAX_TEXT);
    }
}
