//! Answers that are given again for a while, if the entry allows it.

use base::digest::sha256_parts;
use platform::http::log;
use platform::store::{Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tools::{Output, Toolbox};
use upstream::{Request, Tool};

/// Longer answers are not kept: a read costs a unit for 8 KB, a write one for each KB.
const MAX_BYTES: usize = 24 * 1024;

#[derive(Serialize, Deserialize)]
struct Kept {
    /// The result, as JSON.
    result: String,
    /// Unix seconds. An item that is not deleted yet may be older.
    expires: i64,
}

/// Key of the answer to this request. An answer that was kept for another entry is not what this one promises.
pub fn key(tool: &Tool, request: &Request) -> Key {
    let entry = format!("{:?}", (&tool.output_schema, &tool.answers, tool.cache));
    let parts = [b"own", tool.name.as_bytes(), entry.as_bytes(), &request.digest()[..]];
    let hash = const_hex::encode(&sha256_parts(&parts)[..16]);
    Key::new(format!("LOOKUP#{hash}"), "KEPT")
}

/// The kept answer. A database error counts as none.
pub async fn read(toolbox: &Toolbox, tool: &Tool, key: &Key) -> Option<Value> {
    if tool.cache.is_zero() {
        return None;
    }
    let kept: Result<Option<Kept>, StoreError> = toolbox.db.get(&toolbox.db.tables.agents, key.clone()).await;
    let kept = kept.unwrap_or_else(|error| {
        log::failure("a kept answer could not be read", &error);
        None
    });
    let kept = kept.filter(|kept| kept.expires > toolbox.clock.now().secs())?;
    serde_json::from_str(&kept.result).ok()
}

/// Keeps an answer. A failure is only logged.
pub async fn write(toolbox: &Toolbox, tool: &Tool, key: &Key, output: &Output) {
    let result = output.result.to_string();
    // A file belongs to its job.
    if tool.cache.is_zero() || result.len() > MAX_BYTES || output.result.get("file").is_some() && tool.answers_bytes() {
        return;
    }
    let kept = Kept { result, expires: toolbox.clock.now().plus(tool.cache).secs() };
    let written = async {
        let write = Write::put(&toolbox.db.tables.agents, key.clone(), &kept)?;
        toolbox.db.write_if(write).await
    };
    if let Err(error) = written.await {
        log::failure("an answer could not be kept", &error);
    }
}
