//! The list of leases: when each number is looked at next. A number that nobody has used for [`UNUSED`] is announced to its
//! agent, and released [`NOTICE`] later if it is still not used (docs/SMS.md, "Numbers"; `tools_voice::lease` does it, because a
//! number has settings for calls, too).
//!
//! | item | key |
//! |---|---|
//! | a number, and when it is looked at | `PHONELEASE#<0..3>` / `<due>#<number>` |
//!
//! A use writes nothing here: it is noted in the number's rows, at most once a day ([`phone::used`], [`phone::reached`]). When
//! the number is due, its row here moves to the time that follows from its last use. So the cost grows with the numbers that
//! are due, and each is due once in [`UNUSED`].

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256;
use base::ids::AgentId;
use platform::store::{self, Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use crate::number::Number;
use crate::phone::{self, Owner, Phone};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// A number is announced when its last noted use is so long ago: ninety days, and the time for which a use is not noted again.
pub const UNUSED: Duration = DAY.saturating_mul(90).saturating_add(phone::USED_AFTER);
/// From the announcement to the release.
pub const NOTICE: Duration = DAY.saturating_mul(14);
/// Partitions of the list.
pub const SHARDS: u8 = 4;

/// A number in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub agent: AgentId,
    pub source: String,
    pub number: Number,
    pub due: Timestamp,
    /// Its agent was told that it is released at `due`.
    #[serde(default)]
    pub announced: bool,
}

fn partition(shard: u8) -> String {
    format!("PHONELEASE#{shard}")
}

impl Lease {
    /// The first row of a number whose last use was at `used`.
    pub fn of(phone: &Phone, used: Timestamp) -> Lease {
        let (source, number) = (phone.source.clone(), phone.number.clone());
        Lease { agent: phone.agent, source, number, due: used.plus(UNUSED), announced: false }
    }

    fn key(&self) -> Key {
        let number = self.number.as_str();
        Key::new(partition(sha256(number.as_bytes())[0] % SHARDS), store::due::row(self.due, number))
    }

    pub fn put(&self, db: &Db) -> Result<Write, StoreError> {
        Write::put(&db.tables.messages, self.key(), self)
    }

    /// Refused if another run has moved or deleted the row.
    pub fn delete(&self, db: &Db) -> Write {
        Write::delete(&db.tables.messages, self.key()).only_if("attribute_exists(#pk)")
    }
}

/// The numbers of a partition that are due, the longest due first.
pub async fn due(db: &Db, shard: u8, now: Timestamp, limit: usize) -> Result<Vec<Lease>, StoreError> {
    db.query(store::due::rows(&db.tables.messages, &partition(shard), now, limit)?.latest()).await
}

/// The last use that a number's rows tell of.
pub fn last_use(phone: &Phone, owner: &Owner) -> Timestamp {
    owner.used_at.map_or(phone.last_use(), |at| at.max(phone.last_use()))
}
