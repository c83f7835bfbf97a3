//! The operator's own products: a feed that was imported by hand (docs/COMMERCE.md), as one immutable index and a pointer to the current
//! one.

use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};

use base::clock::Timestamp;
use base::digest;
use platform::store::{Blobs, StoreError};
use products::Product;
use products::feed::{self, Problem, Shop};
use products::index::{Builder, Index};
use serde::{Deserialize, Serialize};
use tools::spec::PRODUCTS;

/// Largest index, in bytes: the worker keeps it in memory.
pub const MAX_BYTES: usize = 150 * 1024 * 1024;
/// Problems that an import tells.
const MAX_PROBLEMS: usize = 10;

/// The current products.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pointer {
    /// Hash of the index.
    pub generation: String,
    pub products: usize,
    pub bytes: usize,
    pub at: Timestamp,
}

/// A feed that was read.
pub struct Import {
    pub index: Vec<u8>,
    pub products: usize,
    /// How many items had problems, and the first of them.
    pub refused: usize,
    pub problems: Vec<Problem>,
}

/// Reads a feed as a stream.
pub fn import(reader: impl BufRead, shop: Shop) -> Import {
    let mut builder = Builder::new();
    let (mut products, mut refused, mut problems) = (0, 0, Vec::new());
    for item in feed::read(reader, None, shop) {
        match item {
            Ok(product) => products += usize::from(builder.add(&product)),
            Err(problem) => {
                refused += 1;
                if problems.len() < MAX_PROBLEMS {
                    problems.push(problem);
                }
            }
        }
    }
    Import { index: builder.finish(), products, refused, problems }
}

fn blob_key(generation: &str) -> String {
    format!("snapshots/products/{generation}.index")
}

/// Makes an import current: stores the index first, then the pointer.
///
/// # Errors
/// If it is too large, or cannot be stored.
pub async fn publish(blobs: &dyn Blobs, import: Import, now: Timestamp) -> Result<Pointer, StoreError> {
    let bytes = import.index.len();
    if bytes > MAX_BYTES {
        return Err(StoreError::new(format_args!("the index has {bytes} bytes, more than {MAX_BYTES}: import fewer")));
    }
    let generation = const_hex::encode(&digest::sha256(&import.index)[..16]);
    blobs.put(&blob_key(&generation), "application/octet-stream", import.index).await?;
    let pointer = Pointer { generation, products: import.products, bytes, at: now };
    let json = serde_json::to_vec(&pointer).map_err(StoreError::new)?;
    blobs.put(PRODUCTS, "application/json", json).await?;
    Ok(pointer)
}

/// The current pointer, if products were imported.
///
/// # Errors
/// If it cannot be read.
pub async fn in_force(blobs: &dyn Blobs) -> Result<Option<Pointer>, StoreError> {
    let Some(pointer) = blobs.get(PRODUCTS).await? else { return Ok(None) };
    serde_json::from_slice(&pointer).map(Some).map_err(StoreError::new)
}

type Open = Arc<Index<Vec<u8>>>;

/// The products that fit best; `None` if none were imported. The current index stays open.
///
/// # Errors
/// If it cannot be read.
pub async fn search(blobs: &dyn Blobs, query: &str, limit: usize) -> Result<Option<Vec<Product>>, StoreError> {
    static OPEN: Mutex<Option<(String, Open)>> = Mutex::new(None);
    let Some(Pointer { generation, .. }) = in_force(blobs).await? else { return Ok(None) };
    let known = {
        let open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.as_ref().filter(|(known, _)| *known == generation).map(|(_, index)| index.clone())
    };
    let index = match known {
        Some(index) => index,
        None => {
            let Some(bytes) = blobs.get(&blob_key(&generation)).await? else { return Ok(None) };
            let index = Arc::new(Index::open(bytes).map_err(|_| StoreError::new("the index of products is broken"))?);
            *OPEN.lock().unwrap_or_else(PoisonError::into_inner) = Some((generation, index.clone()));
            index
        }
    };
    let query = query.to_owned();
    let searching = tokio::task::spawn_blocking(move || index.search(&query, limit));
    let hits = searching.await.map_err(StoreError::new)?;
    Ok(Some(hits.into_iter().map(|hit| hit.product).collect()))
}
