//! The index of pages that this service has read, in the blob store.
//!
//! ```text
//! one item        INDEX / pages                  the current manifest, its generation, the number of pages
//! immutable blobs index/manifests/<digest>       the segments, the deleted pages of each, and blobs to delete later
//!                 index/segments/<digest>        terms and pages (`segment`)
//!                 index/pages/<day>/<digest>     a page with its text (`page`)
//! ```
//!
//! A [`Reader`] reads the item, and the blobs it has not read before. A [`Writer`] creates new blobs and then updates the
//! item, on the condition that its generation has not changed. So a search always sees a complete index, a writer that dies
//! leaves only unused blobs, and the slower of two writers starts again from the other's result. A message that names pages
//! is acknowledged only after the item was updated.

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

/// The item that names the current manifest. Every change adds 1 to the generation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pointer {
    pub generation: u64,
    pub manifest: String,
    pub pages: u64,
    /// Total size of the segments.
    pub bytes: u64,
    pub updated_at: Timestamp,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub segments: Vec<Part>,
    /// Blobs that are no longer used. They are deleted once no search can still be reading an older generation.
    #[serde(default)]
    pub garbage: Vec<Garbage>,
}

/// A segment, and which of its pages are deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Part {
    pub key: String,
    /// Pages that are not deleted.
    pub pages: u32,
    pub bytes: u64,
    /// Numbers of the deleted pages, ascending.
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

    /// `latest` reads consistently (writers need it); without it the read may be slightly old and costs half (searches).
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
