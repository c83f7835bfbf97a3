//! Counts sellers' sales when their jobs have ended.

use std::collections::BTreeSet;

use base::clock::Timestamp;
use market::counting::{self, ROUNDS};
use platform::http::log;
use platform::store::Db;
use serde_json::Value;

/// The soul whose sale ended with this change, if it was a sale.
pub fn seller_of_ended<'a>(old: &Value, new: &'a Value) -> Option<&'a str> {
    let ended = new["outcome"]["S"].is_string() && !old["outcome"]["S"].is_string();
    // An ended job may still wait for settlement; it counts as sold once it is settled.
    let settled = new["settlement"]["S"] == "settled" && old["settlement"]["S"] != "settled";
    let is_over = ended || settled && new["outcome"]["S"].is_string();
    is_over.then(|| new["sold"]["M"]["soul"]["S"].as_str()).flatten()
}

/// Counts the sales of these souls. A batch has fewer changes than one call counts, so nothing piles up.
///
/// Errors are only logged: the sales are counted with the soul's next sale or when the seller reads the balance. One soul's
/// error must not hold up all statistics. (If the database is down, the batch fails anyway.)
pub async fn count(db: &Db, souls: &BTreeSet<&str>, now: Timestamp) {
    for soul in souls {
        if let Err(error) = counting::fold(db, soul, ROUNDS, now).await {
            log::failure("sales could not be counted", &format_args!("{soul}: {error}"));
        }
    }
}
