//! The files of a job, of a seller or of a tool of ours: rows beside the job, contents in the blob store. Paths are untrusted, so a blob's key contains
//! the path's digest, and a path never reaches a file system.
//!
//! Storage and downloads cost the operator money, and a seller who buys from themselves pays only the fee. So both
//! limits follow from the job's price ([`room`], [`fetched_times`]). They are counted in a row of the job (`FILES`) by
//! conditional writes, and the cost of a job's files stays below its fee.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::{random, sha256};
use base::encoding::percent_encoded;
use base::ids::RequestId;
use base::money::Usdc;
use platform::http::log;
use platform::store::db::{Query, parse};
use platform::store::{Blobs, Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::spec::RETENTION;

/// The job whose files they are.
#[derive(Clone, Copy, Debug)]
pub struct Owner {
    pub request_id: RequestId,
    /// What was paid for it, in micro-USDC: its room follows from that.
    pub price: Usdc,
}

/// Each reader of a job has a limit of its own: neither the seller nor a stranger who only names the buyer's address can
/// use up the buyer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// The buyer, proven.
    Buyer,
    /// The seller, proven.
    Seller,
    /// Anybody who names one of them without a proof.
    Named,
}

/// Most files per job.
pub const MAX_FILES: usize = 100;
/// Most files ever sent for one job, including replaced ones. Announcements replaced before their upload do not count.
const MAX_SENT: usize = 200;
/// Largest file that can be sent as a request body. Larger ones are uploaded to a URL of the blob store.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Largest file that is served as a response body, which Lambda returns in base64. For larger ones the response is a
/// URL of the blob store.
pub const MAX_SERVED_BYTES: u64 = 4 * MIB;
/// Largest file.
pub const MAX_FILE_BYTES: u64 = 100 * MIB;
/// Validity of an upload URL.
pub const SEND_VALID: Duration = Duration::from_secs(15 * 60);
/// Validity of a download URL. Short, because downloads within it cannot be counted.
pub const FETCH_VALID: Duration = Duration::from_secs(30);
/// All bytes ever sent or announced for a job, including replaced files, as a multiple of [`room`].
const SENT_TIMES: u64 = 3;
/// All bytes a reader may fetch of a job's files, as a multiple of [`room`].
const fn fetched_times(reader: Reader) -> u64 {
    match reader {
        Reader::Buyer => 5,
        Reader::Named => 3,
        Reader::Seller => 2,
    }
}
const MIB: u64 = 1024 * 1024;
/// Retries when another writer changes the same file.
const TRIES: u32 = 8;

/// Total size of the files of a job with this price, in bytes: 100 MiB per USDC, at least 2 MiB and at most 1 GiB.
pub fn room(price: Usdc) -> u64 {
    let bytes = u128::from(price.micro()) * u128::from(100 * MIB) / 1_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX).clamp(2 * MIB, 1024 * MIB)
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRow {
    pub path: String,
    /// In bytes.
    pub size: u64,
    pub content_type: String,
    /// Blob of an announced upload, sent directly to the blob store. The file counts as delivered once it has arrived.
    /// Each announcement has its own blob, which can be written only once, so a delivered file cannot change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploaded: Option<String>,
    /// Blob of a file that was sent as a body. Also unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<String>,
    pub at: Timestamp,
    /// DynamoDB TTL in Unix seconds, as for the job.
    pub expires: i64,
}

impl FileRow {
    pub fn of(path: &str, content_type: &str, size: u64, at: Timestamp) -> FileRow {
        let expires = at.plus(RETENTION).secs();
        let (path, content_type) = (path.to_owned(), content_type.to_owned());
        FileRow { path, size, content_type, uploaded: None, sent: None, at, expires }
    }

    /// The row as it is listed. `folder`: the path of the job's files here, as `/v1/requests/<id>/files`.
    pub fn to_json(&self, folder: &str) -> Value {
        let encoded: Vec<String> = self.path.split('/').map(percent_encoded).collect();
        json!({
            "path": self.path,
            "size": self.size,
            "content_type": self.content_type,
            "download_url": format!("{folder}/{}", encoded.join("/")),
        })
    }

    /// Blob of its content.
    pub fn blob(&self, request_id: RequestId) -> String {
        // Older rows have neither. The key of their blob is derived from the path.
        let own = self.uploaded.as_ref().or(self.sent.as_ref());
        own.cloned().unwrap_or_else(|| blob(request_id, &self.path))
    }

    /// The same file, announced for upload to its own blob.
    pub fn announced(self, request_id: RequestId) -> FileRow {
        FileRow { uploaded: Some(new_blob(request_id, &self.path)), ..self }
    }

    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }
}

fn key(request_id: RequestId, path: &str) -> Key {
    Key::new(Key::of_job(request_id).pk, format!("FILE#{path}"))
}

fn blob(request_id: RequestId, path: &str) -> String {
    format!("files/{request_id}/{}", const_hex::encode(sha256(path.as_bytes())))
}

fn new_blob(request_id: RequestId, path: &str) -> String {
    format!("{}-{}", blob(request_id, path), const_hex::encode(random::<8>()))
}

/// Counters of a job's files.
#[derive(Debug, Default, Deserialize)]
struct Used {
    /// Current files. (The row also has their `bytes`.)
    #[serde(default)]
    files: usize,
    /// Files ever sent or announced, and their bytes.
    #[serde(default)]
    sent: usize,
    #[serde(default)]
    sent_bytes: u64,
}

fn used_key(request_id: RequestId) -> Key {
    Key::new(Key::of_job(request_id).pk, "FILES")
}

/// Why a file was not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotKept {
    /// The job is no longer held by this attempt or worker.
    Lost,
    /// Concurrent writers replaced the file too often.
    Busy,
    /// A limit of the job was reached. `field` names the member at fault.
    Full { field: &'static str, why: String },
}

/// Stores a file, replacing one of the same path. Content that came with the row is written first. `still` is the
/// condition under which the job takes files. A replaced or refused content is deleted.
pub async fn keep(
    db: &Db,
    blobs: &dyn Blobs,
    job: Owner,
    still: Write,
    mut row: FileRow,
    content: Option<Vec<u8>>,
) -> Result<Result<(), NotKept>, StoreError> {
    let request_id = job.request_id;
    if let Some(content) = content {
        let blob = new_blob(request_id, &row.path);
        blobs.put(&blob, &row.content_type, content).await?;
        row.sent = Some(blob);
    }
    let kept = replace(db, blobs, job, &still, &row).await;
    let (outcome, unused) = match kept {
        Ok(Ok(Some(old))) if old.uploaded.is_some() => {
            close(blobs, &old, request_id).await;
            (Ok(Ok(())), None)
        }
        Ok(Ok(old)) => (Ok(Ok(())), old.map(|old| old.blob(request_id))),
        Ok(Err(refused)) => (Ok(Err(refused)), row.sent),
        // The row may have been written, so the blob must be kept.
        Err(error) => (Err(error), None),
    };
    if let Some(unused) = unused
        && let Err(error) = blobs.delete(&unused).await
    {
        log::failure("an unused file could not be deleted", &error);
    }
    outcome
}

/// Makes the upload URL of a replaced announcement useless. It cannot be revoked, but it writes only where no blob
/// exists, so an empty blob blocks it. Stored bytes therefore never exceed the counted ones.
async fn close(blobs: &dyn Blobs, old: &FileRow, request_id: RequestId) {
    if let Err(error) = blobs.put(&old.blob(request_id), &old.content_type, Vec::new()).await {
        log::failure("the upload URL of a replaced file could not be closed", &error);
    }
}

/// Whether a file is announced but not uploaded yet.
pub async fn is_outstanding(blobs: &dyn Blobs, row: &FileRow, request_id: RequestId) -> Result<bool, StoreError> {
    Ok(row.uploaded.is_some() && blobs.size(&row.blob(request_id)).await?.is_none())
}

/// Writes and counts the row. Returns the row it replaced.
async fn replace(
    db: &Db,
    blobs: &dyn Blobs,
    job: Owner,
    still: &Write,
    row: &FileRow,
) -> Result<Result<Option<FileRow>, NotKept>, StoreError> {
    let table = &db.tables.jobs;
    if row.size > room(job.price) {
        return Ok(Err(full_of(&Used::default(), job.price, row, &Replaced::default())));
    }
    for _ in 0..TRIES {
        let old = load_latest(db, job.request_id, &row.path).await?;
        let replaced = match &old {
            None => Replaced::default(),
            Some(old) => Replaced {
                size: Some(old.size),
                withdrawn: is_outstanding(blobs, old, job.request_id).await?.then_some(old.size),
            },
        };
        let put = Write::put(table, key(job.request_id, &row.path), row)?;
        let put = match &old {
            None => put.only_if_new(),
            Some(old) => match (&old.uploaded, &old.sent) {
                (Some(blob), _) => put.only_if("#uploaded = :blob").bind("blob", blob)?,
                (None, Some(blob)) => put.only_if("#sent = :blob").bind("blob", blob)?,
                (None, None) => put.only_if(
                    "attribute_exists(#pk) AND attribute_not_exists(#uploaded) AND attribute_not_exists(#sent)",
                ),
            },
        };
        match db.transact(&[still.clone(), count(db, job, row, &replaced)?, put]).await {
            Ok(()) => return Ok(Ok(old)),
            Err(WriteError::Failed(error)) => return Err(error),
            Err(refused) if refused.refused(0).is_some() => return Ok(Err(NotKept::Lost)),
            Err(refused) => {
                if let Some(full) = refused.refused(1) {
                    let used: Used = full.old.clone().map(parse).transpose()?.unwrap_or_default();
                    return Ok(Err(full_of(&used, job.price, row, &replaced)));
                }
            }
        }
    }
    Ok(Err(NotKept::Busy))
}

/// The file or announcement that a new file replaces.
#[derive(Clone, Copy, Debug, Default)]
struct Replaced {
    /// Size of the replaced file.
    size: Option<u64>,
    /// Size of a replaced announcement without upload. It is subtracted from the sent bytes: otherwise a worker that
    /// announces one file a few times could use up the job's limit and never deliver.
    withdrawn: Option<u64>,
}

/// The write that counts a file. Refused if a limit would be exceeded.
fn count(db: &Db, job: Owner, row: &FileRow, replaced: &Replaced) -> Result<Write, StoreError> {
    let (room, size) = (signed(room(job.price)), signed(row.size));
    let more = size - replaced.size.map_or(0, signed);
    let new = i64::from(replaced.size.is_none());
    let sent = i64::from(replaced.withdrawn.is_none());
    let sent_bytes = size - replaced.withdrawn.map_or(0, signed);
    let within = |name: &str| format!("(attribute_not_exists(#{name}) OR #{name} <= :{name}_left)");
    let condition = ["files", "bytes", "sent", "sent_bytes"].map(within).join(" AND ");
    let add = "ADD #files :new, #bytes :more, #sent :sent, #sent_bytes :sent_bytes SET #expires = :expires";
    Write::update(&db.tables.jobs, used_key(job.request_id), add)
        .only_if(&condition)
        .bind("new", new)?
        .bind("more", more)?
        .bind("sent", sent)?
        .bind("sent_bytes", sent_bytes)?
        .bind("expires", row.expires)?
        .bind("files_left", MAX_FILES as i64 - new)?
        .bind("bytes_left", room - more)?
        .bind("sent_left", MAX_SENT as i64 - sent)?
        .bind("sent_bytes_left", room * signed(SENT_TIMES) - sent_bytes)
}

fn full_of(used: &Used, price: Usdc, row: &FileRow, replaced: &Replaced) -> NotKept {
    let room = room(price);
    let (field, why) = if used.files + usize::from(replaced.size.is_none()) > MAX_FILES {
        ("path", format!("a job may have at most {MAX_FILES} files"))
    } else if used.sent + usize::from(replaced.withdrawn.is_none()) > MAX_SENT {
        ("path", format!("a job takes at most {MAX_SENT} files, replaced ones included"))
    } else if used.sent_bytes + row.size > room * SENT_TIMES + replaced.withdrawn.unwrap_or_default() {
        ("size", format!("a job of this price takes at most {} bytes, replaced ones included", room * SENT_TIMES))
    } else {
        ("size", format!("the files of a job of this price may have at most {room} bytes together"))
    };
    NotKept::Full { field, why }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Counts a download of a job's files; `false` if it would exceed the limit.
pub async fn count_fetch(db: &Db, job: Owner, reader: Reader, bytes: u64, now: Timestamp) -> Result<bool, StoreError> {
    let most = room(job.price) * fetched_times(reader);
    let Some(left) = most.checked_sub(bytes) else { return Ok(false) };
    let fetched = match reader {
        Reader::Buyer => "fetched",
        Reader::Named => "fetched_named",
        Reader::Seller => "fetched_seller",
    };
    let add = format!("ADD #{fetched} :bytes SET #expires = if_not_exists(#expires, :expires)");
    let write = Write::update(&db.tables.jobs, used_key(job.request_id), &add)
        .only_if(&format!("attribute_not_exists(#{fetched}) OR #{fetched} <= :left"))
        .bind("bytes", bytes)?
        .bind("left", left)?
        .bind("expires", now.plus(RETENTION).secs())?;
    db.write_if(write).await
}

pub async fn load(db: &Db, request_id: RequestId, path: &str) -> Result<Option<FileRow>, StoreError> {
    db.get(&db.tables.jobs, key(request_id, path)).await
}

async fn load_latest(db: &Db, request_id: RequestId, path: &str) -> Result<Option<FileRow>, StoreError> {
    db.get_latest(&db.tables.jobs, key(request_id, path)).await
}

/// A job's files, in path order.
pub async fn of_job(db: &Db, request_id: RequestId) -> Result<Vec<FileRow>, StoreError> {
    let query = Query::prefixed(&db.tables.jobs, &Key::of_job(request_id).pk, "FILE#", MAX_FILES + 1)?;
    db.query(query.latest()).await
}

/// The meaning of a `Range` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole file, also for a header in an unknown form.
    Whole,
    /// First and last byte, inclusive.
    Bytes(usize, usize),
    /// A range outside the file.
    None,
}

/// Reads a `Range` header for a file of `size` bytes.
pub fn range(header: Option<&str>, size: usize) -> Part {
    let Some(spec) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else { return Part::Whole };
    let Some((first, last)) = spec.split_once('-') else { return Part::Whole };
    let (first, last) = (first.trim(), last.trim());
    let number = |text: &str| text.parse::<usize>().ok();
    let (first, last) = match (first.is_empty(), number(first), last.is_empty(), number(last)) {
        // A suffix range: the last `count` bytes.
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
    fn ranges_follow_http() {
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
    fn room_follows_from_the_price() {
        for (micro, bytes) in
            [(0, 2 * MIB), (10_000, 2 * MIB), (500_000, 50 * MIB), (1_000_000, 100 * MIB), (u64::MAX, 1024 * MIB)]
        {
            assert_eq!(room(Usdc::from_micro(micro)), bytes, "{micro}");
        }
    }

    /// Storage and traffic of a job's files cost less than the fee, at the prices of us-east-1.
    #[test]
    fn files_cost_less_than_the_fee() {
        const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
        // USD per GiB: stored for a month, and sent to the internet.
        let (kept, fetched) = (0.023 * 31.0 / 30.0, 0.09);
        for micro in [10_000u64, 20_000, 100_000, 500_000, 1_000_000, 10_240_000, 100_000_000] {
            let gib = room(Usdc::from_micro(micro)) as f64 / GIB;
            // Replaced files are deleted and their URLs closed, but they are counted as if they stayed.
            let times: u64 = [Reader::Buyer, Reader::Named, Reader::Seller].map(fetched_times).iter().sum();
            let cost = gib * (kept * SENT_TIMES as f64 + fetched * times as f64);
            assert!(cost < 0.2 * micro as f64 / 1_000_000.0, "{micro}: {cost}");
        }
    }

    #[test]
    fn paths_are_encoded_part_by_part() {
        let row = FileRow::of("a b/ü?.md", "text/markdown", 1, Timestamp::from_secs(0));
        let url = row.to_json("/v1/requests/1/files")["download_url"].as_str().unwrap().to_owned();
        assert_eq!(url, "/v1/requests/1/files/a%20b/%C3%BC%3F.md");
    }
}
