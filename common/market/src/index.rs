//! Keeps the search index in step with souls' records.
//!
//! A transaction that changes a soul or its services includes the mark [`pending`]; [`update`] follows it. Normally the
//! index is current when `update` returns. If the process dies in between, the scheduler finds the mark and finishes
//! the update within two minutes ([`finish`]).
//!
//! `SOUL#<slug>/INDEXED` records the soul's search entries. An update first adds its new entries to that record, then
//! writes them to the index, then reduces the record to them. With that last write, in one transaction, it adds the
//! difference to [`super::totals`]. So if an update dies, the next one knows which entries it may have left, and removes
//! them.
//!
//! Each update reads the soul after the change that caused it, so the latest update writes the latest state. A slower,
//! concurrent update may then overwrite entries with older ones. So after an overlap the record keeps the entries of both
//! updates, and the entries are written again: by the update that lost the race, and by the scheduler.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::clock::Timestamp;
use base::digest::{random, sha256};
use platform::http::log;
use platform::store::db::Query;
use platform::store::lists::List;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use super::category::Category;
use super::listing;
use super::posting::{Entry, Indexed};
use super::service::{MAX_SERVICES, Service};
use super::soul::{self, Slug, Soul};
use super::totals::{self, CategoryChange, Change};
use super::vocabulary;

const SHARDS: u8 = 4;
/// An update that takes longer is dead, because no function runs this long.
const DEAD_AFTER: Duration = Duration::from_secs(60);
/// Marks per shard and run.
const PER_SHARD: usize = 100;
/// Retries when other updates come between. Then the scheduler takes over.
const TRIES: u32 = 6;

/// The state of one soul's search entries.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    revision: u64,
    /// The index may hold the entries of all these. There is more than one only during an update, or after an update died.
    posted: Vec<Indexed>,
    /// This soul's active services by category, as the totals include them.
    #[serde(default)]
    counted: BTreeMap<Category, u32>,
    #[serde(default)]
    shown: bool,
    /// Start of the last unfinished update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    busy: Option<Timestamp>,
}

/// A soul that changed since its last update.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Pending {
    slug: Slug,
    at: Timestamp,
    /// Distinguishes this change from later ones.
    token: String,
}

fn state_key(slug: &str) -> Key {
    Key::new(soul::partition(slug), "INDEXED")
}

fn pending_partition(shard: u8) -> String {
    format!("PENDING-INDEX#{shard}")
}

fn pending_key(slug: &str) -> Key {
    Key::new(pending_partition(sha256(slug.as_bytes())[0] % SHARDS), slug)
}

/// The mark for a transaction that changes a soul's record, counters or services.
pub fn pending(db: &Db, slug: &Slug, now: Timestamp) -> Result<Write, StoreError> {
    let pending = Pending { slug: slug.clone(), at: now, token: const_hex::encode(random::<8>()) };
    Ok(Write::put(&db.tables.souls, pending_key(slug.as_str()), &pending)?.into_list(List::Index, now))
}

/// Writes the search entries for the soul's current record and removes outdated ones. Does nothing if nothing changed.
pub async fn update(db: &Db, slug: &Slug, now: Timestamp) -> Result<(), StoreError> {
    for _ in 0..TRIES {
        if try_update(db, slug, now).await? {
            return Ok(());
        }
    }
    Err(StoreError::new(format!("the search entries of {slug} change too often")))
}

async fn try_update(db: &Db, slug: &Slug, now: Timestamp) -> Result<bool, StoreError> {
    let name = slug.as_str();
    let table = &db.tables.souls;
    // The mark is read first, so that a later change, which writes a new mark, is not missed.
    let mark: Option<Pending> = db.get_latest(table, pending_key(name)).await?;
    let services = Query::prefixed(table, &soul::partition(name), "SERVICE#", MAX_SERVICES)?.latest();
    let (soul, services, state) = tokio::try_join!(
        soul::load_latest(db, name),
        db.query::<Service>(services),
        db.get_latest::<State>(table, state_key(name)),
    )?;
    let is_new = state.is_none();
    let state = state.unwrap_or_default();
    let soul = match soul {
        Some(soul) => list(db, soul).await?,
        None => None,
    };
    let posted = state.posted.first().map(|indexed| indexed.level);
    let wanted = soul.filter(Soul::is_active).map(|soul| Indexed::of(&soul, &services, posted));
    if state.busy.is_none() && state.posted.as_slice() == wanted.as_slice() {
        return unmark(db, name, mark).await;
    }

    let known = state.posted.iter().flat_map(Indexed::words).collect::<BTreeSet<&str>>();
    let mine = State {
        revision: state.revision + 1,
        posted: wanted.iter().chain(&state.posted).cloned().collect(),
        busy: Some(now),
        ..state.clone()
    };
    let claim = Write::put(table, state_key(name), &mine)?;
    let claim = if is_new { claim.only_if_new() } else { revision_is(claim, state.revision)? };
    match db.write(claim).await {
        Ok(_) => {}
        Err(WriteError::Refused(_)) => return Ok(false),
        Err(WriteError::Failed(error)) => return Err(error),
    }
    if let Some(wanted) = &wanted {
        vocabulary::learn(db, &wanted.words().difference(&known).copied().collect()).await?;
    }
    db.batch_write(difference(db, name, &state, wanted.as_ref())?).await?;

    // Another update may still be writing. Then a new mark is written, and the entries are checked again later.
    let alone = state.busy.is_none_or(|began| began.plus(DEAD_AFTER) <= now);
    let done = State {
        revision: mine.revision + 1,
        posted: if alone { wanted.iter().cloned().collect() } else { mine.posted },
        counted: wanted.as_ref().map(|wanted| wanted.services.clone()).unwrap_or_default(),
        shown: wanted.is_some(),
        busy: state.busy.filter(|_| !alone),
    };
    let mut writes = vec![revision_is(Write::put(table, state_key(name), &done)?, mine.revision)?];
    let change = counted(&state, &done);
    if !change.is_empty() {
        writes.push(totals::add(db, name, &change)?);
    }
    if !alone {
        writes.push(pending(db, slug, now)?);
    }
    match db.apply(writes).await {
        Ok(()) if alone => unmark(db, name, mark).await,
        Ok(()) => Ok(true),
        Err(WriteError::Refused(_)) => Ok(false),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

fn revision_is(write: Write, revision: u64) -> Result<Write, StoreError> {
    write.only_if("#revision = :expected").bind("expected", revision)
}

/// Sets or removes the soul's place in the index of listed souls, by its status. If the record changed meanwhile, its
/// new writer does that.
async fn list(db: &Db, mut soul: Soul) -> Result<Option<Soul>, StoreError> {
    let place = soul.is_active().then(|| listing::place(None, soul.slug.as_str()));
    if soul.listed == place {
        return Ok(Some(soul));
    }
    let (table, key) = (&db.tables.souls, soul::key(soul.slug.as_str()));
    let write = match &place {
        Some(place) => Write::update(table, key, "SET #listed = :place").bind("place", place)?,
        None => Write::update(table, key, "REMOVE #listed"),
    };
    match db.write(write.only_if("#status = :status").bind("status", soul.status)?).await {
        Ok(_) => soul.listed = place,
        Err(WriteError::Refused(_)) => {}
        Err(WriteError::Failed(error)) => return Err(error),
    }
    Ok(Some(soul))
}

/// The writes from the entries that may exist to the wanted ones.
fn difference(db: &Db, slug: &str, state: &State, wanted: Option<&Indexed>) -> Result<Vec<Write>, StoreError> {
    let table = &db.tables.souls;
    let wanted = wanted.map(|indexed| indexed.entries(slug)).unwrap_or_default();
    let certain: BTreeMap<Key, Entry> = match state.posted.as_slice() {
        [only] if state.busy.is_none() => only.entries(slug),
        _ => BTreeMap::new(),
    };
    let gone: BTreeSet<Key> = state.posted.iter().flat_map(|indexed| indexed.entries(slug).into_keys()).collect();
    let gone = gone.into_iter().filter(|key| !wanted.contains_key(key)).map(|key| Ok(Write::delete(table, key)));
    let put = wanted.iter().filter(|(key, entry)| certain.get(key) != Some(entry));
    put.map(|(key, entry)| Write::put(table, key.clone(), entry)).chain(gone).collect()
}

/// The change of the totals from one state to the other.
fn counted(before: &State, after: &State) -> Change {
    let services = |state: &State| state.counted.values().map(|count| i64::from(*count)).sum::<i64>();
    let mut change = Change {
        souls: i64::from(after.shown) - i64::from(before.shown),
        services: services(after) - services(before),
        ..Change::default()
    };
    for category in before.counted.keys().chain(after.counted.keys()) {
        let of = |state: &State| i64::from(state.counted.get(category).copied().unwrap_or_default());
        let (before, after) = (of(before), of(after));
        let souls = i64::from(after > 0) - i64::from(before > 0);
        change.categories.insert(*category, CategoryChange { souls, services: after - before, jobs: 0 });
    }
    change
}

/// Deletes the mark that was read, unless a newer one replaced it.
async fn unmark(db: &Db, slug: &str, mark: Option<Pending>) -> Result<bool, StoreError> {
    if let Some(mark) = mark {
        let delete = Write::delete(&db.tables.souls, pending_key(slug));
        match db.write(delete.only_if("#token = :token").bind("token", mark.token)?).await {
            Err(WriteError::Failed(error)) => return Err(error),
            Ok(_) | Err(WriteError::Refused(_)) => {}
        }
    }
    Ok(true)
}

/// Whether no soul waits for an update.
pub async fn is_finished(db: &Db) -> Result<bool, StoreError> {
    for shard in 0..SHARDS {
        let query = Query::new(&db.tables.souls, "#pk = :pk", 1).bind("pk", pending_partition(shard))?;
        if !db.query::<Pending>(query).await?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Updates souls whose mark is older than a minute, for the scheduler. Returns their number.
pub async fn finish(db: &Db, now: Timestamp) -> Result<u32, StoreError> {
    let mut done = 0;
    for shard in 0..SHARDS {
        let query = Query::new(&db.tables.souls, "#pk = :pk", PER_SHARD).bind("pk", pending_partition(shard))?;
        let marks: Vec<Pending> = db.query(query).await?;
        for Pending { slug, .. } in marks.into_iter().filter(|mark| mark.at.plus(DEAD_AFTER) <= now) {
            match update(db, &slug, now).await {
                Ok(()) => done += 1,
                Err(error) => log::failure("the index of a soul could not be updated", &error),
            }
        }
    }
    Ok(done)
}
