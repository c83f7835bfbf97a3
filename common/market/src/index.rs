//! Keeps what a soul is found by in step with its record.
//!
//! Whoever changes a soul or its services puts [`pending`] into the transaction of the change and calls [`update`] after
//! it. Normally the soul is found as it now is when `update` returns. If the process dies between, the scheduler finds
//! the mark and does it ([`finish`]): within two minutes.
//!
//! `SOUL#<slug>/INDEXED` says what was posted. Before an update writes, it adds what it is going to post; after it has
//! written, it leaves only that, if nobody came between, and in the same transaction counts the difference in
//! [`super::totals`]. So what a dead update left behind is known to the next, and removed. Two at once both read the record
//! after their own change, so the later one posts the latest; because the slower could still remove or write something of
//! the other's, rows that met are written again, by whoever was overtaken, and by the scheduler.

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
/// An update that takes longer is dead: no function runs so long.
const DEAD_AFTER: Duration = Duration::from_secs(60);
/// Marks taken from one shard in one run.
const PER_SHARD: usize = 100;
/// Overtaken so often, an update leaves the rest to the scheduler.
const TRIES: u32 = 6;

/// What was posted of a soul.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct State {
    revision: u64,
    /// Entries of these may lie in the table: one, unless an update is under way or was cut off.
    posted: Vec<Indexed>,
    /// What the totals count.
    #[serde(default)]
    counted: BTreeMap<Category, u32>,
    #[serde(default)]
    shown: bool,
    /// When the last update began that has not come to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    busy: Option<Timestamp>,
}

/// A soul that changed and is not yet found as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Pending {
    slug: Slug,
    at: Timestamp,
    /// Tells this change from the next.
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

/// The mark that a soul is about to change, for the transaction that changes it: its record, its counters or its services.
pub fn pending(db: &Db, slug: &Slug, now: Timestamp) -> Result<Write, StoreError> {
    let pending = Pending { slug: slug.clone(), at: now, token: const_hex::encode(random::<8>()) };
    Ok(Write::put(&db.tables.souls, pending_key(slug.as_str()), &pending)?.into_list(List::Index, now))
}

/// Posts a soul as its record now is, and takes away what it no longer is. Does nothing if nothing changed.
pub async fn update(db: &Db, slug: &Slug, now: Timestamp) -> Result<(), StoreError> {
    for _ in 0..TRIES {
        if try_update(db, slug, now).await? {
            return Ok(());
        }
    }
    Err(StoreError::new(format!("what {slug} is found by changes too often")))
}

async fn try_update(db: &Db, slug: &Slug, now: Timestamp) -> Result<bool, StoreError> {
    let name = slug.as_str();
    let table = &db.tables.souls;
    // The mark is read first: a change that comes later leaves another.
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

    // Somebody else may still be writing: what met theirs is looked at once more, when they are done or dead.
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

/// Makes the soul's place in the index of listed souls what its status says. `None` if the record changed meanwhile and
/// there is nothing to say about it; whoever changed it says it.
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

/// The writes that lead from what may lie there to what is wanted.
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

/// What the totals have to add.
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

/// Takes the mark away, if it is still the one that was read.
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

/// Whether every soul is found as it is.
pub async fn is_finished(db: &Db) -> Result<bool, StoreError> {
    for shard in 0..SHARDS {
        let query = Query::new(&db.tables.souls, "#pk = :pk", 1).bind("pk", pending_partition(shard))?;
        if !db.query::<Pending>(query).await?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Does what was left undone for a minute. For the scheduler. How many souls there were.
pub async fn finish(db: &Db, now: Timestamp) -> Result<u32, StoreError> {
    let mut done = 0;
    for shard in 0..SHARDS {
        let query = Query::new(&db.tables.souls, "#pk = :pk", PER_SHARD).bind("pk", pending_partition(shard))?;
        let marks: Vec<Pending> = db.query(query).await?;
        for Pending { slug, .. } in marks.into_iter().filter(|mark| mark.at.plus(DEAD_AFTER) <= now) {
            match update(db, &slug, now).await {
                Ok(()) => done += 1,
                Err(error) => log::failure("a soul is not found as it is", &error),
            }
        }
    }
    Ok(done)
}
