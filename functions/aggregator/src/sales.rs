//! Counts what sellers sold, once its job has ended.

use std::collections::BTreeSet;

use base::clock::Timestamp;
use market::counting::{self, ROUNDS};
use platform::http::log;
use platform::store::Db;
use serde_json::Value;

/// The soul whose sale ended with this change, if it was one.
pub fn seller_of_ended<'a>(old: &Value, new: &'a Value) -> Option<&'a str> {
    let ended = new["outcome"]["S"].is_string() && !old["outcome"]["S"].is_string();
    // An ended job may still wait for its money, and is only sold when that has arrived.
    let settled = new["settlement"]["S"] == "settled" && old["settlement"]["S"] != "settled";
    let is_over = ended || settled && new["outcome"]["S"].is_string();
    is_over.then(|| new["sold"]["M"]["soul"]["S"].as_str()).flatten()
}

/// Counts the sales of these souls. A batch of changes brings fewer than a call counts, so nothing piles up.
///
/// What cannot be counted is left to the soul's next sale, or to its seller's next look at the balance: one soul's
/// trouble must not hold up everybody's statistics. (A database that is away fails the batch by itself.)
pub async fn count(db: &Db, souls: &BTreeSet<&str>, now: Timestamp) {
    for soul in souls {
        if let Err(error) = counting::fold(db, soul, ROUNDS, now).await {
            log::failure("sales could not be counted", &format_args!("{soul}: {error}"));
        }
    }
}
