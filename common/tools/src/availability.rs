//! The tools that this deployment cannot serve, as one published list. The worker makes it, because it has the providers'
//! keys; everything that lists tools reads it. It contains names and short texts, no keys and no addresses.
//!
//! The scheduler asks the worker for it every five minutes ([`platform::store::lists`]), and a reader caches it for one, so
//! a new key or register copy shows within seven minutes. Without a published list every tool is listed; a call that cannot
//! be served is still refused before its price is quoted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::clock::{Clock, Lately};
use platform::http::log;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use crate::spec::ToolSpec;

/// Cache TTL of the list.
const KEPT: Duration = Duration::from_secs(60);
/// How long a stale list may be used while the database fails: longer than any process runs.
const EVER: Duration = Duration::from_secs(366 * 24 * 3600);

/// The unavailable tools, each with what it lacks, as text that follows "this deployment has no".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lacking {
    tools: BTreeMap<String, String>,
}

impl Lacking {
    pub fn new(tools: impl IntoIterator<Item = (String, String)>) -> Lacking {
        Lacking { tools: tools.into_iter().collect() }
    }

    /// Why a tool is unavailable; `None` if it is available.
    pub fn of(&self, tool: &ToolSpec) -> Option<&str> {
        self.tools.get(tool.name).map(String::as_str)
    }

    /// Whether a tool is available, as far as is known.
    pub fn can(&self, tool: &ToolSpec) -> bool {
        self.of(tool).is_none()
    }

    /// The names of the unavailable tools, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }
}

fn key() -> Key {
    Key::new("CATALOG", "LACKING")
}

/// The published list; `None` if none was published yet.
pub async fn load(db: &Db) -> Result<Option<Lacking>, StoreError> {
    db.get(&db.tables.ledger, key()).await
}

/// Publishes the list if it has changed. Returns whether it has.
pub async fn publish(db: &Db, lacking: &Lacking) -> Result<bool, StoreError> {
    if load(db).await?.as_ref() == Some(lacking) {
        return Ok(false);
    }
    db.write(Write::put(&db.tables.ledger, key(), lacking)?).await?;
    Ok(true)
}

/// The list, cached per process.
#[derive(Clone, Default)]
pub struct Known(Lately<Arc<Lacking>>);

impl Known {
    /// The list, at most a minute old; if the database fails, the last one that was read.
    pub async fn get(&self, db: &Db, clock: &Clock) -> Arc<Lacking> {
        let now = clock.now();
        if let Some(known) = self.0.get(now, KEPT) {
            return known;
        }
        let lacking = match load(db).await {
            Ok(lacking) => Arc::new(lacking.unwrap_or_default()),
            Err(error) => {
                log::failure("the list of unavailable tools could not be read", &error);
                self.0.get(now, EVER).unwrap_or_default()
            }
        };
        self.0.keep(now, lacking.clone());
        lacking
    }
}
