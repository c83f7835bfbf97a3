//! Cache of answers. Sources are public services and are not asked more than needed.
//!
//! One item of the agents table per row and input, removed by its time to live. Larger answers are not cached, which bounds
//! the cost: a read takes 1 unit for 8 KB (eventually consistent), a write 1 unit for each KB.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use platform::http::log;
use platform::store::{Key, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tools::Toolbox;

const MAX_BYTES: usize = 24 * 1024;
/// Cache TTL of "nothing found".
const LONGEST_NOTHING: Duration = Duration::from_secs(600);

#[derive(Serialize, Deserialize)]
struct Kept {
    /// The result, as JSON.
    result: String,
    /// Unix seconds. An expired item may not be deleted yet, and counts as a miss.
    expires: i64,
}

/// Cache key: equal for equal inputs, whatever their order and spelling of numbers.
pub fn key(row: &str, input: &Map<String, Value>) -> Key {
    let input = digest::canonical_json(&Value::Object(input.clone()));
    let hash = const_hex::encode(&digest::sha256_parts(&[row.as_bytes(), input.as_bytes()])[..16]);
    Key::new(format!("LOOKUP#{hash}"), "KEPT")
}

/// Cached answer; a database error counts as a miss.
pub async fn read(toolbox: &Toolbox, key: &Key, now: Timestamp) -> Option<Value> {
    let kept: Option<Kept> = match toolbox.db.get(&toolbox.db.tables.agents, key.clone()).await {
        Ok(kept) => kept,
        Err(error) => {
            log::failure("a cached lookup could not be read", &error);
            None
        }
    };
    let kept = kept.filter(|kept| kept.expires > now.secs())?;
    let mut result: Value = serde_json::from_str(&kept.result).ok()?;
    result["cached"] = Value::Bool(true);
    Some(result)
}

/// Caches an answer. A failure is only logged.
pub async fn write(toolbox: &Toolbox, key: &Key, result: &Value, now: Timestamp, keep: Duration) {
    let text = result.to_string();
    if text.len() > MAX_BYTES {
        return;
    }
    let keep = if result["found"] == true { keep } else { keep.min(LONGEST_NOTHING) };
    let kept = Kept { result: text, expires: now.plus(keep).secs() };
    let written = async {
        let write = Write::put(&toolbox.db.tables.agents, key.clone(), &kept)?;
        toolbox.db.write(write).await.map_err(|error| platform::store::StoreError::new(format_args!("{error:?}")))
    };
    if let Err(error) = written.await {
        log::failure("a lookup could not be cached", &error);
    }
}
