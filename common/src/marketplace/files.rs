//! The files of a job: rows beside it, contents in the blob store. Paths are a stranger's text, so a content's key is
//! made of the path's digest, and a path never reaches a file system.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::clock::Timestamp;
use crate::digest::{random, sha256};
use crate::encoding::percent_encoded;
use crate::ids::RequestId;
use crate::jobs::job::{self, RETENTION};
use crate::store::db::Query;
use crate::store::{Blobs, Db, Key, StoreError, Write};

/// Most files of one job.
pub const MAX_FILES: usize = 100;
/// Largest file that is sent or fetched as a body; larger ones go by a URL of the blob store.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Largest file.
pub const MAX_FILE_BYTES: u64 = 100 * 1024 * 1024;
/// A blob's URL is good for so long.
pub const URL_VALID: Duration = Duration::from_secs(15 * 60);

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRow {
    pub path: String,
    /// In bytes.
    pub size: u64,
    pub content_type: String,
    /// Sent past us, to a URL for this blob: it counts once it has arrived. Each announcement has a blob of its own, which
    /// can be written once, so that what was delivered stays what it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploaded: Option<String>,
    pub at: Timestamp,
    /// Unix seconds after which the row may go, as its job.
    pub expires: i64,
}

impl FileRow {
    pub fn of(path: &str, content_type: &str, size: u64, at: Timestamp) -> FileRow {
        let expires = at.plus(RETENTION).secs();
        FileRow { path: path.to_owned(), size, content_type: content_type.to_owned(), uploaded: None, at, expires }
    }

    /// The row as it is listed (mission document, "Job file").
    pub fn to_json(&self, request_id: RequestId) -> Value {
        let encoded: Vec<String> = self.path.split('/').map(percent_encoded).collect();
        json!({
            "path": self.path,
            "size": self.size,
            "content_type": self.content_type,
            "download_url": format!("/v1/soul/jobs/{}/files/{}", request_id.soul_job(), encoded.join("/")),
        })
    }

    /// Where its content lies.
    pub fn blob(&self, request_id: RequestId) -> String {
        self.uploaded.clone().unwrap_or_else(|| blob(request_id, &self.path))
    }

    /// The same, to be sent to a blob of its own.
    pub fn announced(self, request_id: RequestId) -> FileRow {
        let key = format!("{}-{}", blob(request_id, &self.path), const_hex::encode(random::<8>()));
        FileRow { uploaded: Some(key), ..self }
    }

    /// Its last part.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

fn key(request_id: RequestId, path: &str) -> Key {
    Key::new(job::key(request_id).pk, format!("FILE#{path}"))
}

/// Where the content of a file that came as a body lies.
fn blob(request_id: RequestId, path: &str) -> String {
    format!("files/{request_id}/{}", const_hex::encode(sha256(path.as_bytes())))
}

/// Keeps a file, in place of one of the same path: its content first, if it came with the row.
pub async fn keep(
    db: &Db,
    blobs: &dyn Blobs,
    request_id: RequestId,
    row: FileRow,
    content: Option<Vec<u8>>,
) -> Result<(), StoreError> {
    if let Some(content) = content {
        blobs.put(&blob(request_id, &row.path), &row.content_type, content).await?;
    }
    db.write(Write::put(&db.tables.jobs, key(request_id, &row.path), &row)?).await?;
    Ok(())
}

pub async fn load(db: &Db, request_id: RequestId, path: &str) -> Result<Option<FileRow>, StoreError> {
    db.get(&db.tables.jobs, key(request_id, path)).await
}

/// A job's files, by path.
pub async fn of_job(db: &Db, request_id: RequestId) -> Result<Vec<FileRow>, StoreError> {
    let query = Query::prefixed(&db.tables.jobs, &job::key(request_id).pk, "FILE#", MAX_FILES + 1)?;
    db.query(query.latest()).await
}

/// What a `Range` header asks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it, also where the header is none we know.
    Whole,
    /// From the first to the last byte, both included.
    Bytes(usize, usize),
    /// Bytes it does not have.
    None,
}

/// What a `Range` header asks of so many bytes.
pub fn range(header: Option<&str>, size: usize) -> Part {
    let Some(spec) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else { return Part::Whole };
    let Some((first, last)) = spec.split_once('-') else { return Part::Whole };
    let (first, last) = (first.trim(), last.trim());
    let number = |text: &str| text.parse::<usize>().ok();
    let (first, last) = match (first.is_empty(), number(first), last.is_empty(), number(last)) {
        // The last so many.
        (true, _, false, Some(count)) if count > 0 => (size.saturating_sub(count), size.saturating_sub(1)),
        (true, _, false, Some(_)) => return Part::None,
        (false, Some(first), true, _) => (first, size.saturating_sub(1)),
        (false, Some(first), false, Some(last)) if first <= last => (first, last.min(size.saturating_sub(1))),
        _ => return Part::Whole,
    };
    if first < size { Part::Bytes(first, last) } else { Part::None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_http() {
        assert_eq!(range(None, 10), Part::Whole);
        assert_eq!(range(Some("bytes=0-3"), 10), Part::Bytes(0, 3));
        assert_eq!(range(Some("bytes=4-"), 10), Part::Bytes(4, 9));
        assert_eq!(range(Some("bytes=-3"), 10), Part::Bytes(7, 9));
        assert_eq!(range(Some("bytes=-30"), 10), Part::Bytes(0, 9));
        assert_eq!(range(Some("bytes=5-100"), 10), Part::Bytes(5, 9));
        for all in ["bytes=3-1", "bytes=a-b", "bytes=1,2", "items=0-1", "bytes=", "bytes=0-1,3-4"] {
            assert_eq!(range(Some(all), 10), Part::Whole, "{all}");
        }
        for none in ["bytes=10-", "bytes=99-100", "bytes=-0"] {
            assert_eq!(range(Some(none), 10), Part::None, "{none}");
        }
        assert_eq!(range(Some("bytes=0-0"), 0), Part::None);
    }

    #[test]
    fn paths_are_encoded_part_by_part() {
        let row = FileRow::of("a b/ü?.md", "text/markdown", 1, Timestamp::from_secs(0));
        let request_id = RequestId::bought_with("quote", &[b"q"]);
        let url = row.to_json(request_id)["download_url"].as_str().unwrap().to_owned();
        assert!(url.ends_with("/files/a%20b/%C3%BC%3F.md"), "{url}");
    }
}
