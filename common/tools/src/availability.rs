//! What this deployment cannot do, as one published list: made by the worker, which has the providers' keys, and read by
//! everything that lists what is sold. The list has names and words, no key and no address.
//!
//! The scheduler asks the worker for it every five minutes ([`platform::store::lists`]), and a reader keeps it for one: a key
//! that is set, or a register that is copied, shows in the lists within seven minutes. Before the first list nothing is known,
//! and everything is listed: a call that cannot be done is refused before its price all the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::clock::{Clock, Lately};
use platform::http::log;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use crate::spec::ToolSpec;

/// How long a reader keeps the list.
const KEPT: Duration = Duration::from_secs(60);
/// Longer than any process lives.
const EVER: Duration = Duration::from_secs(366 * 24 * 3600);

/// The tools that cannot be done here, each with what it lacks, in words that follow "this deployment has no".
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lacking {
    tools: BTreeMap<String, String>,
}

impl Lacking {
    pub fn new(tools: impl IntoIterator<Item = (String, String)>) -> Lacking {
        Lacking { tools: tools.into_iter().collect() }
    }

    /// What a tool lacks here.
    pub fn of(&self, tool: &ToolSpec) -> Option<&str> {
        self.tools.get(tool.name).map(String::as_str)
    }

    /// Whether a tool can be done here, as far as is known.
    pub fn can(&self, tool: &ToolSpec) -> bool {
        self.of(tool).is_none()
    }

    /// The names of the tools, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }
}

fn key() -> Key {
    Key::new("CATALOG", "LACKING")
}

/// The list as it was last published; none before the first time.
pub async fn load(db: &Db) -> Result<Option<Lacking>, StoreError> {
    db.get(&db.tables.ledger, key()).await
}

/// Publishes the list, if it is another than the published one. Says whether it was.
pub async fn publish(db: &Db, lacking: &Lacking) -> Result<bool, StoreError> {
    if load(db).await?.as_ref() == Some(lacking) {
        return Ok(false);
    }
    db.write(Write::put(&db.tables.ledger, key(), lacking)?).await?;
    Ok(true)
}

/// The list as a process knows it.
#[derive(Clone, Default)]
pub struct Known(Lately<Arc<Lacking>>);

impl Known {
    /// The list, at most a minute old; the last one that could be read while it cannot be read.
    pub async fn get(&self, db: &Db, clock: &Clock) -> Arc<Lacking> {
        let now = clock.now();
        if let Some(known) = self.0.get(now, KEPT) {
            return known;
        }
        let lacking = match load(db).await {
            Ok(lacking) => Arc::new(lacking.unwrap_or_default()),
            Err(error) => {
                log::failure("what this deployment cannot do is not known", &error);
                self.0.get(now, EVER).unwrap_or_default()
            }
        };
        self.0.keep(now, lacking.clone());
        lacking
    }
}
