//! Answers that are given again for a while: sources are public services that are asked no more than is needed.
//!
//! One item of the agents table for each row and input, which its time to live cleans up. A read costs at most what its
//! size says (1 unit for 8 KB, eventually consistent), a write 1 unit for each KB; larger answers are not kept.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use platform::http::log;
use platform::store::{Key, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tools::Toolbox;

const MAX_BYTES: usize = 24 * 1024;
/// What was not there may be there soon.
const LONGEST_NOTHING: Duration = Duration::from_secs(600);

#[derive(Serialize, Deserialize)]
struct Kept {
    /// The result, as JSON.
    result: String,
    /// Unix seconds; from then on it is not given again.
    expires: i64,
}

/// The same for equal inputs, whatever their order and spelling of numbers.
pub fn key(row: &str, input: &Map<String, Value>) -> Key {
    let input = digest::canonical_json(&Value::Object(input.clone()));
    let hash = const_hex::encode(&digest::sha256_parts(&[row.as_bytes(), input.as_bytes()])[..16]);
    Key::new(format!("LOOKUP#{hash}"), "KEPT")
}

/// An answer of earlier. A database that does not answer is none: the source is asked then.
pub async fn read(toolbox: &Toolbox, key: &Key, now: Timestamp) -> Option<Value> {
    let kept: Option<Kept> = match toolbox.db.get(&toolbox.db.tables.agents, key.clone()).await {
        Ok(kept) => kept,
        Err(error) => {
            log::failure("a kept lookup could not be read", &error);
            None
        }
    };
    let kept = kept.filter(|kept| kept.expires > now.secs())?;
    let mut result: Value = serde_json::from_str(&kept.result).ok()?;
    result["cached"] = Value::Bool(true);
    Some(result)
}

/// Keeps an answer. Where that fails the next caller's is asked for anew.
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
        log::failure("a lookup could not be kept", &error);
    }
}
