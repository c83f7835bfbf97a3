//! The index of pages that this service has read, in the blob store.
//!
//! ```text
//! one item        INDEX / pages                  which manifest counts, its generation, how many pages
//! immutable blobs index/manifests/<digest>       segments, what was deleted from each, what may be thrown away
//!                 index/segments/<digest>        terms and pages (`segment`)
//!                 index/pages/<day>/<digest>     a page with its text (`page`)
//! ```
//!
//! Whoever searches ([`Reader`]) reads the item, and whatever of the blobs it has not read before. Whoever writes
//! ([`Writer`]) makes new blobs and then moves the item, on the condition that nobody moved it meanwhile: so a search
//! always sees a whole index, a writer that dies leaves nothing but blobs nobody looks at, and of two writers the slower
//! one starts again from what the faster one made. Messages that name pages are only done with when the item was moved.

pub mod page;
mod query;
mod reader;
pub mod segment;
mod words;
pub mod writer;

use base::clock::Timestamp;
use base::digest;
use platform::store::{Blobs, Db, Key, StoreError};
use serde::{Deserialize, Serialize};

use super::Extent;
pub use page::StoredPage;
pub use reader::{Opened, Reader, rank};
pub use segment::{Doc, Segment};
pub use writer::{Limits, Writer};

/// The item everybody starts from. Its generation counts every change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pointer {
    pub generation: u64,
    pub manifest: String,
    pub pages: u64,
    /// Of segments.
    pub bytes: u64,
    pub updated_at: Timestamp,
}

/// What the index consists of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub segments: Vec<Part>,
    /// Blobs that no generation since then has: thrown away when whoever still reads an older one is surely done.
    #[serde(default)]
    pub garbage: Vec<Garbage>,
}

/// A segment, and what of it does not count any more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    pub key: String,
    /// Pages that count.
    pub pages: u32,
    pub bytes: u64,
    /// Numbers of pages that do not, in order.
    #[serde(default)]
    pub deleted: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Garbage {
    pub key: String,
    pub since: Timestamp,
}

impl Pointer {
    fn key() -> Key {
        Key::new("INDEX", "pages")
    }

    /// As the latest write left it, for writers; for searches a little behind that, for half the price.
    pub async fn load(db: &Db, latest: bool) -> Result<Option<Pointer>, StoreError> {
        match latest {
            true => db.get_latest(&db.tables.agents, Pointer::key()).await,
            false => db.get(&db.tables.agents, Pointer::key()).await,
        }
    }

    pub fn extent(&self) -> Extent {
        Extent { pages: self.pages, updated_at: self.updated_at }
    }
}

impl Manifest {
    async fn load(blobs: &dyn Blobs, key: &str) -> Result<Manifest, StoreError> {
        let bytes = blobs.get(key).await?.ok_or_else(|| StoreError::new("the index has no manifest"))?;
        serde_json::from_slice(&bytes).map_err(StoreError::new)
    }

    fn key_of(bytes: &[u8]) -> String {
        format!("index/manifests/{}", const_hex::encode(&digest::sha256(bytes)[..20]))
    }
}

async fn load_segment(blobs: &dyn Blobs, key: &str) -> Result<Segment, StoreError> {
    let bytes = blobs.get(key).await?.ok_or_else(|| StoreError::new("the index lacks a segment"))?;
    Segment::open(bytes)
}
