//! Sites and their versions.
//!
//! | item (table agents) | key |
//! |---|---|
//! | a site: owner, current version, state, end | `SITE#<build>` / `SITE` |
//! | a version: when, by which job, its files | `SITE#<build>` / `VERSION#<0000>` |
//! | the job that changes it | `SITE#<build>` / `LOCK` |
//! | bytes served on a day | `SITE#<build>` / `DAY#<date>` |
//! | messages of its form taken on a day | `SITE#<build>#LEADS` / `<day>` |
//! | when it is looked at next | `SITELEASE#<0..3>` / `<due>#<build>` |
//!
//! The id of a site is the request id of its first build, but its rows are its own: jobs go after 30 days. A version never
//! changes. The switch to a new one is written in the transaction that ends (and charges) its job.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256;
use base::ids::{AgentId, RequestId};
use platform::store::{self, Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use website::plan::Plan;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// A site is hosted for so long after its last change.
pub const HOSTED: Duration = DAY.saturating_mul(365);
/// Its agent is told so long before it is taken down.
pub const NOTICE: Duration = DAY.saturating_mul(30);
/// The files stay for so long after that.
pub const KEPT: Duration = DAY.saturating_mul(30);
/// Partitions of the list of leases.
pub const SHARDS: u8 = 4;
/// Most versions of a site: each is stored as long as the site.
pub const MAX_VERSIONS: u32 = 200;
/// Stands in stored files where the site's address path belongs: it has the version only in addresses of a version.
pub const ROOT: &str = "/~~site~~";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Live,
    /// By the operator.
    TakenDown,
    /// Its time is over.
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    pub build: Uuid,
    pub agent: AgentId,
    pub name: String,
    /// The first part of its address: words of its name, and the id.
    pub slug: String,
    pub state: State,
    /// The current version, from 1.
    pub version: u32,
    /// The job that made it: part of the keys of its files.
    pub job: RequestId,
    /// The mailbox for visitors' messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox: Option<String>,
    pub created: Timestamp,
    /// It is taken down then.
    pub ends: Timestamp,
    /// When its row in the list of leases is due.
    pub due: Timestamp,
}

/// One version. Its files are blobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub number: u32,
    pub job: RequestId,
    pub at: Timestamp,
    pub plan: Plan,
    /// Paths of its files, such as `/about/index.html`.
    pub files: Vec<String>,
}

/// A site in the list of leases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    pub build: Uuid,
    pub due: Timestamp,
}

impl Site {
    pub fn is_live(&self) -> bool {
        self.state == State::Live
    }

    /// The row of the list of leases that it has now.
    pub fn lease(&self) -> Lease {
        Lease { build: self.build, due: self.due }
    }

    /// The writes that publish a version: the site with its new pointer, and the version. Refused if the site has another version,
    /// owner or state by then. `before`: the site as read; `None`: it is the first version.
    pub fn publish(&self, db: &Db, version: &Version, before: Option<&Site>) -> Result<Vec<Write>, StoreError> {
        let table = &db.tables.agents;
        let put = Write::put(table, key(self.build), self)?;
        let put = match before {
            None => put.only_if_new(),
            Some(before) => put
                .only_if("#version = :before AND #state = :live AND #agent = :agent AND #due = :due")
                .bind("before", before.version)?
                .bind("live", State::Live)?
                .bind("agent", self.agent)?
                .bind("due", before.due)?,
        };
        let mut writes = vec![put, Write::put(table, version_key(self.build, version.number), version)?.only_if_new()];
        if before.map(Site::lease) != Some(self.lease()) {
            writes.extend(before.map(|before| before.lease().delete(db)));
            writes.push(self.lease().put(db)?);
        }
        Ok(writes)
    }
}

impl Lease {
    fn key(&self) -> Key {
        let shard = sha256(self.build.as_bytes())[0] % SHARDS;
        Key::new(lease_partition(shard), store::due::row(self.due, self.build))
    }

    pub fn put(&self, db: &Db) -> Result<Write, StoreError> {
        Write::put(&db.tables.agents, self.key(), self)
    }

    pub fn delete(&self, db: &Db) -> Write {
        Write::delete(&db.tables.agents, self.key())
    }
}

fn lease_partition(shard: u8) -> String {
    format!("SITELEASE#{shard}")
}

/// The leases of a partition that are due, the longest due first.
pub async fn due(db: &Db, shard: u8, now: Timestamp, limit: usize) -> Result<Vec<Lease>, StoreError> {
    db.query(store::due::rows(&db.tables.agents, &lease_partition(shard), now, limit)?.latest()).await
}

fn partition(build: Uuid) -> String {
    format!("SITE#{build}")
}

pub fn key(build: Uuid) -> Key {
    Key::new(partition(build), "SITE")
}

pub fn version_key(build: Uuid, number: u32) -> Key {
    Key::new(partition(build), format!("VERSION#{number:04}"))
}

pub fn lock_key(build: Uuid) -> Key {
    Key::new(partition(build), "LOCK")
}

/// Counters of a day.
pub fn day_key(build: Uuid, now: Timestamp) -> Key {
    Key::new(partition(build), format!("DAY#{}", &now.to_string()[..10]))
}

/// The blob of a file. `job`: the one that made the version, so that one that failed leaves nothing that another overwrites.
pub fn blob_key(build: Uuid, job: RequestId, path: &str) -> String {
    // Paths are made of pages' paths and of names of ours; the digest keeps them out of the key's syntax.
    format!("sites/{build}/{job}/{}", const_hex(path))
}

fn const_hex(path: &str) -> String {
    sha256(path.as_bytes())[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The site, consistent.
pub async fn load(db: &Db, build: Uuid) -> Result<Option<Site>, StoreError> {
    db.get_latest(&db.tables.agents, key(build)).await
}

pub async fn load_version(db: &Db, build: Uuid, number: u32) -> Result<Option<Version>, StoreError> {
    db.get(&db.tables.agents, version_key(build, number)).await
}

/// What became of an operator's wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switched {
    Done,
    NoSite,
    /// Its owner or a chore changed it meanwhile.
    Changed,
    /// Its time is over: it is not shown again.
    Ended,
}

/// Takes a site down, or shows it again. Its time goes on: one that is taken down is deleted when it would have ended anyway.
///
/// # Errors
/// If the database fails.
pub async fn switch(db: &Db, build: Uuid, is_down: bool) -> Result<Switched, StoreError> {
    let Some(site) = load(db, build).await? else { return Ok(Switched::NoSite) };
    let state = match site.state {
        State::Ended => return Ok(Switched::Ended),
        _ if is_down => State::TakenDown,
        _ => State::Live,
    };
    let write = Write::update(&db.tables.agents, key(build), "SET #state = :state")
        .only_if("#state = :before AND #version = :version")
        .bind("state", state)?
        .bind("before", site.state)?
        .bind("version", site.version)?;
    Ok(if db.write_if(write).await? { Switched::Done } else { Switched::Changed })
}

/// The first part of a site's address: up to five words of its name, and the id.
pub fn slug(name: &str, build: Uuid) -> String {
    let words: String = name
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { ' ' })
        .collect();
    let words: Vec<&str> = words.split_whitespace().take(5).collect();
    let mut words = words.join("-");
    words.truncate(40);
    let words = words.trim_matches('-');
    let id = build.simple();
    if words.is_empty() { format!("site-{id}") } else { format!("{words}-{id}") }
}

/// The build that a slug names. Whether the words before it are the site's is for the caller to check.
pub fn build_of(slug: &str) -> Option<Uuid> {
    let id = slug.rsplit('-').next().filter(|id| id.len() == 32)?;
    Uuid::try_parse(id).ok()
}

/// Whether a page may not have this path, because the site has files of its own there.
pub fn is_reserved(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    let is_version = first
        .strip_prefix('v')
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    is_version || ["fonts", "pictures", "leads", "404"].contains(&first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_the_site() {
        let build = Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        for (name, words) in [("Four Miche!", "four-miche"), ("日本", "site"), ("", "site"), ("a/../b", "a-b")] {
            let slug = slug(name, build);
            assert_eq!(slug, format!("{words}-{}", build.simple()));
            assert_eq!(build_of(&slug), Some(build));
        }
        assert!(slug(&"word ".repeat(60), build).len() <= 73);
        for text in ["", "x", "-", "a-0123", "0123456789abcdef0123456789abcdeg"] {
            assert_eq!(build_of(text), None, "{text}");
        }
    }
}
