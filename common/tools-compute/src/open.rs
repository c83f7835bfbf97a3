//! How many goals an owner has at once. A goal lives for days and holds work of the operator, so there is a bound.
//!
//! | item (table agents) | key |
//! |---|---|
//! | the owner's open goals | `AGENT#<id>` / `OPENGOALS` |
//!
//! A goal is added in the transaction that claims it. Those that have ended are taken out when there is no place: nothing has to be written
//! when one ends.

use base::ids::RequestId;
use http::StatusCode;
use platform::http::ApiError;
use platform::store::{Key, Write};
use serde::{Deserialize, Serialize};
use tools::spec::Claiming;
use tools::{Toolbox, lock};

use crate::goal;

/// Goals that an owner has open at once.
pub const MOST_OPEN: usize = 10;
const KEPT_SECS: i64 = 400 * 24 * 3600;

#[derive(Default, Serialize, Deserialize)]
struct Row {
    goals: Vec<RequestId>,
    version: u32,
    /// Unix seconds.
    expires: i64,
}

/// The writes that add a goal, here and in its owner's list.
///
/// # Errors
/// 409 `too_many_open_goals`.
pub async fn claim(toolbox: &Toolbox, claiming: Claiming<'_>) -> Result<Vec<Write>, ApiError> {
    let (db, table) = (&toolbox.db, &toolbox.db.tables.agents);
    let key = Key::new(format!("AGENT#{}", claiming.agent), "OPENGOALS");
    let before: Option<Row> = db.get_latest(table, key.clone()).await.map_err(ApiError::Unavailable)?;
    let mut goals = before.as_ref().map(|row| row.goals.clone()).unwrap_or_default();
    goals.retain(|goal| *goal != claiming.request_id);
    if goals.len() >= MOST_OPEN {
        let mut open = Vec::new();
        for goal in goals {
            if lock::is_open(db, goal).await.map_err(ApiError::Unavailable)? {
                open.push(goal);
            }
        }
        goals = open;
    }
    if goals.len() >= MOST_OPEN {
        return Err(ApiError::Tool {
            status: StatusCode::CONFLICT,
            code: "too_many_open_goals",
            message: format!("you have {MOST_OPEN} goals that go on: wait until one has ended, or cancel one"),
        });
    }
    goals.push(claiming.request_id);
    let version = before.as_ref().map_or(0, |row| row.version + 1);
    let row = Row { goals, version, expires: claiming.now.secs() + KEPT_SECS };
    let put = Write::put(table, key, &row).map_err(ApiError::Unavailable)?;
    let put = match before {
        None => put.only_if_new(),
        Some(before) => {
            put.only_if("#version = :before").bind("before", before.version).map_err(ApiError::Unavailable)?
        }
    };
    let listed = goal::list(db, claiming.agent, claiming.request_id, claiming.now).map_err(ApiError::Unavailable)?;
    Ok(vec![put, listed])
}
