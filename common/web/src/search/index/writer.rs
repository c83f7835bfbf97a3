//! Adds pages to the index and removes them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::clock::{Clock, Timestamp};
use futures_util::future::{join_all, try_join_all};
use platform::http::log;
use platform::store::{Blobs, Db, StoreError, Write, WriteError};
use serde_json::json;

use super::page::StoredPage;
use super::segment::{self, Segment};
use super::{Garbage, Manifest, Part, Pointer, load_segment};

/// How often a change is tried again when another writer was faster.
const ATTEMPTS: u32 = 8;
/// Maximum number of blobs deleted per change.
const THROWN_AWAY: usize = 200;

/// Limits on the size of the index, and when to merge.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of pages. Beyond it, the pages that were read longest ago are removed.
    pub pages: usize,
    /// The same limit in bytes of segments.
    pub bytes: u64,
    /// Maximum number of pages in a segment: 2,000 are about 1.3 MB, which is one request to read.
    pub segment_pages: u32,
    /// Merge once more than this many segments are not full.
    pub small_segments: usize,
    /// How long replaced blobs are kept for searches that still read them.
    pub kept_for: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            pages: 20_000,
            bytes: 48 * 1024 * 1024,
            segment_pages: 2_000,
            small_segments: 6,
            kept_for: Duration::from_secs(24 * 3600),
        }
    }
}

/// Writes the index. Concurrent writers are safe, but repeat each other's work.
pub struct Writer {
    db: Db,
    blobs: Arc<dyn Blobs>,
    clock: Clock,
    limits: Limits,
    /// Cache of segments, which are immutable.
    known: Mutex<HashMap<String, Arc<Segment>>>,
}

/// One change: `add` holds blob keys of pages, `remove` holds [`StoredPage::same`] values.
#[derive(Clone, Debug, Default)]
pub struct Change {
    pub add: Vec<String>,
    pub remove: Vec<String>,
}

/// Result of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    pub added: usize,
    pub replaced_or_removed: usize,
    /// Pages in the index after the change.
    pub pages: u64,
}

impl Writer {
    pub fn new(db: Db, blobs: Arc<dyn Blobs>, clock: Clock, limits: Limits) -> Writer {
        Writer { db, blobs, clock, limits, known: Mutex::default() }
    }

    /// Applies the change completely or not at all.
    pub async fn apply(&self, change: &Change) -> Result<Changed, StoreError> {
        let loaded = try_join_all(change.add.iter().collect::<BTreeSet<_>>().into_iter().map(|key| async move {
            Ok::<_, StoreError>(StoredPage::load(&*self.blobs, key).await?.map(|page| (key.clone(), page)))
        }));
        // Of two versions of one page, the later counts. Missing blobs are skipped: they were replaced and deleted long
        // ago.
        let mut pages: BTreeMap<String, (String, StoredPage)> = BTreeMap::new();
        for (key, page) in loaded.await?.into_iter().flatten() {
            let newer =
                pages.get(&page.same).is_none_or(|(_, other)| (other.read_at, &other.url) < (page.read_at, &page.url));
            if newer {
                pages.insert(page.same.clone(), (key, page));
            }
        }
        for _ in 0..ATTEMPTS {
            match self.attempt(&pages, &change.remove).await {
                Ok(changed) => return Ok(changed),
                Err(WriteError::Refused(_)) => {}
                Err(WriteError::Failed(error)) => return Err(error),
            }
        }
        Err(StoreError::new("the search index could not be updated: other writers kept changing it"))
    }

    async fn attempt(
        &self,
        pages: &BTreeMap<String, (String, StoredPage)>,
        remove: &[String],
    ) -> Result<Changed, WriteError> {
        let before = Pointer::load(&self.db, true).await.map_err(WriteError::Failed)?;
        let prepared = self.prepare(before.as_ref(), pages, remove).await.map_err(WriteError::Failed)?;
        let Some((pointer, changed, thrown_away)) = prepared else {
            return Ok(Changed { pages: before.map_or(0, |before| before.pages), ..Changed::default() });
        };
        let write = Write::put(&self.db.tables.agents, Pointer::key(), &pointer).map_err(WriteError::Failed)?;
        let write = match &before {
            None => write.only_if_new(),
            Some(before) => {
                write.only_if("#generation = :before").bind("before", before.generation).map_err(WriteError::Failed)?
            }
        };
        self.db.write(write).await?;
        log::event(
            "index",
            json!({"generation": pointer.generation, "pages": pointer.pages, "bytes": pointer.bytes, "added": changed.added}),
        );
        // The change is already made. A blob that cannot be deleted now stays until an operator removes it.
        for failed in
            join_all(thrown_away.iter().map(|key| self.blobs.delete(key))).await.into_iter().filter_map(Result::err)
        {
            log::failure("a blob of the index could not be deleted", &failed);
        }
        Ok(changed)
    }

    /// Creates the blobs of the next generation. `None` if nothing would change.
    async fn prepare(
        &self,
        before: Option<&Pointer>,
        pages: &BTreeMap<String, (String, StoredPage)>,
        remove: &[String],
    ) -> Result<Option<(Pointer, Changed, Vec<String>)>, StoreError> {
        let now = self.clock.now();
        let manifest = match before {
            Some(before) => Manifest::load(&*self.blobs, &before.manifest).await?,
            None => Manifest::default(),
        };
        let segments = try_join_all(manifest.segments.iter().map(|part| self.segment(&part.key))).await?;
        let mut draft = Draft::of(&manifest, segments, now);

        let mut fresh: Vec<(String, StoredPage)> = Vec::new();
        for (same, (key, page)) in pages {
            match draft.alive.get(same) {
                // The index has this version or a newer one: the message came twice or late.
                Some(found) if found.key == *key || found.read_at > page.read_at => {}
                found => {
                    if found.is_some() {
                        draft.delete(same);
                    }
                    fresh.push((key.clone(), page.clone()));
                }
            }
        }
        for same in remove {
            draft.delete(same);
        }
        let replaced_or_removed = draft.gone;
        draft.replaced.extend(before.map(|before| before.manifest.clone()));
        if fresh.is_empty() && replaced_or_removed == 0 {
            return Ok(None);
        }
        for chunk in fresh.chunks(self.limits.segment_pages as usize) {
            let segment = self.put(Segment::of(chunk)?).await?;
            draft.add(segment);
        }
        draft.forget_oldest(&self.limits);
        self.merge(&mut draft).await?;

        let (manifest, thrown_away) = draft.finish(&self.limits, now);
        let (count, bytes) = (
            manifest.segments.iter().map(|part| u64::from(part.pages)).sum(),
            manifest.segments.iter().map(|part| part.bytes).sum(),
        );
        let text = serde_json::to_vec(&manifest).map_err(StoreError::new)?;
        let key = Manifest::key_of(&text);
        self.blobs.put(&key, "application/json", text).await?;
        let generation = before.map_or(1, |before| before.generation + 1);
        let pointer = Pointer { generation, manifest: key, pages: count, bytes, updated_at: now };
        let changed = Changed { added: fresh.len(), replaced_or_removed, pages: count };
        self.keep_known(&manifest);
        Ok(Some((pointer, changed, thrown_away)))
    }

    /// Merges the segments that are not full, once there are too many of them.
    async fn merge(&self, draft: &mut Draft) -> Result<(), StoreError> {
        let full = self.limits.segment_pages * 3 / 4;
        let (small, mut rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut draft.parts).into_iter().partition(|part| part.pages() < full);
        if small.len() <= self.limits.small_segments {
            draft.parts = rest.into_iter().chain(small).collect();
            return Ok(());
        }
        let mut group: Vec<Open> = Vec::new();
        let mut groups = Vec::new();
        for part in small {
            let together: u32 = group.iter().map(Open::pages).sum::<u32>() + part.pages();
            if together > self.limits.segment_pages && !group.is_empty() {
                groups.push(std::mem::take(&mut group));
            }
            group.push(part);
        }
        groups.push(group);
        for group in groups {
            let parts: Vec<(&Segment, &[u32])> =
                group.iter().map(|part| (&*part.segment, part.deleted.as_slice())).collect();
            if group.iter().any(|part| part.pages() > 0) {
                let (key, segment) = self.put(Segment::merged(&parts)?).await?;
                rest.push(Open { key, segment, deleted: Vec::new() });
            }
            draft.replaced.extend(group.into_iter().map(|part| part.key));
        }
        draft.parts = rest;
        Ok(())
    }

    async fn put(&self, bytes: Vec<u8>) -> Result<(String, Arc<Segment>), StoreError> {
        let key = segment::key_of(&bytes);
        self.blobs.put(&key, "application/octet-stream", bytes.clone()).await?;
        let segment = Arc::new(Segment::open(bytes)?);
        self.lock().insert(key.clone(), segment.clone());
        Ok((key, segment))
    }

    async fn segment(&self, key: &str) -> Result<(String, Arc<Segment>), StoreError> {
        let known = self.lock().get(key).cloned();
        if let Some(segment) = known {
            return Ok((key.to_owned(), segment));
        }
        let segment = Arc::new(load_segment(&*self.blobs, key).await?);
        self.lock().insert(key.to_owned(), segment.clone());
        Ok((key.to_owned(), segment))
    }

    fn keep_known(&self, manifest: &Manifest) {
        self.lock().retain(|key, _| manifest.segments.iter().any(|part| part.key == *key));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Segment>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The next generation while it is built.
struct Draft {
    parts: Vec<Open>,
    /// Positions of the pages that are not deleted, by [`StoredPage::same`].
    alive: HashMap<String, Alive>,
    /// How many pages were deleted.
    gone: usize,
    /// Keys of blobs that are no longer used.
    replaced: Vec<String>,
    garbage: Vec<Garbage>,
    now: Timestamp,
}

struct Open {
    key: String,
    segment: Arc<Segment>,
    deleted: Vec<u32>,
}

struct Alive {
    part: usize,
    number: u32,
    key: String,
    read_at: Timestamp,
}

impl Open {
    fn pages(&self) -> u32 {
        (self.segment.docs.len() - self.deleted.len()) as u32
    }
}

impl Draft {
    fn of(manifest: &Manifest, segments: Vec<(String, Arc<Segment>)>, now: Timestamp) -> Draft {
        let parts = manifest.segments.iter().zip(segments);
        let parts = parts.map(|(part, (key, segment))| Open { key, segment, deleted: part.deleted.clone() });
        let garbage = manifest.garbage.clone();
        let mut draft =
            Draft { parts: parts.collect(), alive: HashMap::new(), gone: 0, replaced: Vec::new(), garbage, now };
        (0..draft.parts.len()).for_each(|part| draft.note(part));
        draft
    }

    /// Records the positions of a part's pages.
    fn note(&mut self, part: usize) {
        let open = &self.parts[part];
        for (number, doc) in (0..).zip(&open.segment.docs) {
            if open.deleted.binary_search(&number).is_err() {
                let alive = Alive { part, number, key: doc.key.clone(), read_at: doc.read_at };
                self.alive.insert(doc.same.clone(), alive);
            }
        }
    }

    fn add(&mut self, (key, segment): (String, Arc<Segment>)) {
        self.parts.push(Open { key, segment, deleted: Vec::new() });
        self.note(self.parts.len() - 1);
    }

    fn delete(&mut self, same: &str) {
        let Some(found) = self.alive.remove(same) else { return };
        let deleted = &mut self.parts[found.part].deleted;
        if let Err(place) = deleted.binary_search(&found.number) {
            deleted.insert(place, found.number);
        }
        self.gone += 1;
        self.replaced.push(found.key);
    }

    fn forget_oldest(&mut self, limits: &Limits) {
        let bytes: u64 = self.parts.iter().map(|part| part.segment.size() as u64).sum();
        let all = self.alive.len();
        let by_bytes = match bytes > limits.bytes {
            true => (all as u64 * limits.bytes / bytes) as usize,
            false => all,
        };
        let most = limits.pages.min(by_bytes);
        if all <= most {
            return;
        }
        let mut ages: Vec<(Timestamp, String)> =
            self.alive.iter().map(|(same, alive)| (alive.read_at, same.clone())).collect();
        ages.sort();
        ages.iter().take(all - most).for_each(|(_, same)| self.delete(same));
    }

    /// The manifest, and the keys of blobs to delete once it is current.
    fn finish(mut self, limits: &Limits, now: Timestamp) -> (Manifest, Vec<String>) {
        let (empty, parts): (Vec<Open>, Vec<Open>) = self.parts.into_iter().partition(|part| part.pages() == 0);
        self.replaced.extend(empty.into_iter().map(|part| part.key));
        let segments: Vec<Part> = parts
            .into_iter()
            .map(|part| Part {
                pages: part.pages(),
                bytes: part.segment.size() as u64,
                key: part.key,
                deleted: part.deleted,
            })
            .collect();
        let counts: BTreeSet<&str> = segments
            .iter()
            .map(|part| part.key.as_str())
            .chain(self.alive.values().map(|alive| alive.key.as_str()))
            .collect();
        let fresh = self.replaced.into_iter().map(|key| Garbage { key, since: self.now });
        let mut garbage: Vec<Garbage> = self.garbage.into_iter().chain(fresh).collect();
        // A blob that is in use again is not garbage.
        garbage.retain(|garbage| !counts.contains(garbage.key.as_str()));
        let due = |garbage: &Garbage| garbage.since.plus(limits.kept_for) <= now;
        let (old, young): (Vec<Garbage>, Vec<Garbage>) = garbage.into_iter().partition(due);
        let mut old = old.into_iter().map(|garbage| garbage.key);
        let thrown_away: Vec<String> = old.by_ref().take(THROWN_AWAY).collect();
        let later = old.map(|key| Garbage { key, since: Timestamp::from_secs(0) });
        let garbage = young.into_iter().chain(later).collect();
        (Manifest { segments, garbage }, thrown_away)
    }
}
