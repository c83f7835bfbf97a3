//! What a question for a price has begun at a provider, until the repeated request goes on with it. Row `ASKING#<digest>` /
//! `ASKING` in the table of jobs. Of two requests at once, both go on with what the first has begun.

use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256_parts;
use base::ids::AgentId;
use http::StatusCode;
use ledger::payments::quote::Purchase;
use platform::http::ApiError;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tools::Toolbox;
use tools::quoting::{AskedPrice, QuoteRequest, Quoter};

/// Asks the quoter, which goes on with what an earlier question for the same purchase has begun. `is_new` counts a question that begins
/// something.
///
/// # Errors
/// The quoter's. After `quote_pending`, what was begun is kept.
pub async fn ask(
    toolbox: &Arc<Toolbox>,
    quoter: &Quoter,
    request: QuoteRequest,
    purchase: Purchase<'_>,
    is_new: impl Future<Output = Result<(), ApiError>>,
) -> Result<AskedPrice, ApiError> {
    if !(quoter.begins)(&request.input) {
        return (quoter.quote)(toolbox.clone(), request).await;
    }
    let (db, now, agent) = (&toolbox.db, toolbox.clock.now(), request.agent);
    let begun = load(db, &purchase, agent, now).await?;
    let goes_on = begun.is_some();
    if !goes_on {
        is_new.await?;
    }
    let request = QuoteRequest { begun: begun.unwrap_or_default(), ..request };
    let asked = (quoter.quote)(toolbox.clone(), request).await;
    if let Err(ApiError::QuotePending { begun, retry_after_secs }) = asked {
        keep(db, &purchase, agent, &begun, now).await?;
        return Err(ApiError::QuotePending { begun: Map::new(), retry_after_secs });
    }
    // After a failure that passes, the repeated request goes on, too.
    let passes = matches!(&asked, Err(error) if error.status() == StatusCode::SERVICE_UNAVAILABLE);
    if goes_on && !passes {
        forget(db, &purchase, agent).await?;
    }
    asked
}

/// How long it waits for the repeated request.
const KEPT: Duration = Duration::from_secs(2400);

#[derive(Serialize, Deserialize)]
struct Row {
    /// JSON
    begun: String,
    until: Timestamp,
    /// Unix seconds after which the row may be deleted.
    expires: i64,
}

fn key(purchase: &Purchase<'_>, agent: Option<AgentId>) -> Key {
    let agent = agent.map(|agent| agent.to_string()).unwrap_or_default();
    let digest = sha256_parts(&[b"asking", purchase.tool.as_bytes(), purchase.body, agent.as_bytes()]);
    Key::new(format!("ASKING#{}", const_hex::encode(&digest[..16])), "ASKING")
}

async fn load(
    db: &Db,
    purchase: &Purchase<'_>,
    agent: Option<AgentId>,
    now: Timestamp,
) -> Result<Option<Map<String, Value>>, StoreError> {
    let row: Option<Row> = db.get_latest(&db.tables.jobs, key(purchase, agent)).await?;
    let row = row.filter(|row| now < row.until);
    row.map(|row| serde_json::from_str(&row.begun).map_err(StoreError::new)).transpose()
}

/// Keeps what was begun, if nothing is kept.
async fn keep(
    db: &Db,
    purchase: &Purchase<'_>,
    agent: Option<AgentId>,
    begun: &Map<String, Value>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let until = now.plus(KEPT);
    let row = Row { begun: Value::Object(begun.clone()).to_string(), until, expires: until.secs() };
    let write = Write::put(&db.tables.jobs, key(purchase, agent), &row)?
        .only_if("attribute_not_exists(#until) OR #until <= :now")
        .bind("now", now)?;
    db.write_if(write).await.map(drop)
}

async fn forget(db: &Db, purchase: &Purchase<'_>, agent: Option<AgentId>) -> Result<(), StoreError> {
    db.write_if(Write::delete(&db.tables.jobs, key(purchase, agent))).await.map(drop)
}
