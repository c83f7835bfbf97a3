//! Uploads: attachments that are too large for a call. An agent sends the bytes to the blob store itself, to a presigned URL,
//! and names the upload's id in place of an attachment's URL.
//!
//! No row is stored: the id says how many bytes there are and since when, and is authenticated for its agent. The URL takes
//! exactly these bytes, and only once, so an id always stands for the same content. The blob is deleted by age
//! (template.yaml, BlobBucket).

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::{self, sha256_parts};
use base::encoding::{base64_any, base64_url};
use base::ids::AgentId;
use base::input::{Field, FieldError, Kind};
use http::StatusCode;
use ledger::account;
use platform::http::ApiError;
use platform::store::blob::Access;
use platform::store::{BoxFuture, Db, StoreError};
use ring::hmac;
use serde_json::{Map, Value};
use subtle::ConstantTimeEq;
use tools::Toolbox;
use uuid::Uuid;

use crate::{mailbox, send};

/// The body of `POST /v1/tools/email/uploads`.
pub const FIELDS: &[Field] = &[Field::required(
    "size",
    Kind::Integer { min: 1, max: send::MAX_BYTES as i64 },
    "Bytes of the file: exactly so many are taken",
)];
/// The content type that is sent. The mail has the attachment's own.
pub const CONTENT_TYPE: &str = "application/octet-stream";
/// How long the upload's URL is valid.
pub const URL_VALID: Duration = Duration::from_secs(15 * 60);
/// How long an upload can be attached. The blob stays a day longer, for a send that waits.
pub const VALID: Duration = Duration::from_secs(24 * 3600);

/// Ids are URLs of this scheme, so that they can stand where a URL stands.
const SCHEME: &str = "upload:";
/// Layout of an id: UUID (version 7, with the time), size, MAC.
const UUID_BYTES: usize = 16;
const HEAD_BYTES: usize = UUID_BYTES + 4;
const MAC_BYTES: usize = 16;
/// Read at once: the HTTP client takes answers of 8 MiB.
const PART_BYTES: u64 = 4 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upload {
    id: Uuid,
    bytes: u32,
}

impl Upload {
    pub fn new(bytes: u32, now: Timestamp) -> Upload {
        let random: [u8; 16] = digest::random();
        Upload { id: mailbox::mail_id(now, &[b"upload", &random]), bytes }
    }

    /// The id that the agent gets.
    pub fn name(&self, secret: &[u8], agent: AgentId) -> String {
        let head = [&self.id.as_bytes()[..], &self.bytes.to_be_bytes()[..]].concat();
        let mac = mac(secret, agent, &head);
        format!("{SCHEME}{}", base64_url(&[&head[..], &mac[..MAC_BYTES]].concat()))
    }

    /// Reads an id. `None` if it is not ours, or not this agent's.
    fn read(secret: &[u8], agent: AgentId, name: &str) -> Option<Upload> {
        let (upload, head, given) = parts(name)?;
        // Constant time: a MAC must not be guessable byte by byte.
        let expected = mac(secret, agent, &head);
        bool::from(expected[..MAC_BYTES].ct_eq(&given)).then_some(upload)
    }

    fn key(&self, agent: AgentId) -> String {
        format!("uploads/{agent}/{}", self.id)
    }

    fn size(&self) -> u64 {
        u64::from(self.bytes)
    }

    /// When it can no longer be attached.
    pub fn expires(&self) -> Timestamp {
        messages::ids::time_of(self.id).plus(VALID)
    }

    /// Where the agent sends the bytes.
    pub fn url(&self, toolbox: &Toolbox, agent: AgentId) -> Result<String, StoreError> {
        let access = Access::Put { content_type: CONTENT_TYPE, size: self.size() };
        toolbox.blobs.url(&self.key(agent), access, URL_VALID)
    }
}

fn mac(secret: &[u8], agent: AgentId, head: &[u8]) -> [u8; 32] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    digest::hmac(&key, &sha256_parts(&[b"mail upload", agent.bytes(), head]))
}

/// The upload that an id names, the bytes that are authenticated, and the MAC, which is not checked here.
fn parts(name: &str) -> Option<(Upload, [u8; HEAD_BYTES], [u8; MAC_BYTES])> {
    let bytes = base64_any(name.strip_prefix(SCHEME)?)?;
    let (head, mac) = bytes.split_at_checked(HEAD_BYTES)?;
    let (head, mac): ([u8; HEAD_BYTES], [u8; MAC_BYTES]) = (head.try_into().ok()?, mac.try_into().ok()?);
    let (id, size) = head.split_at(UUID_BYTES);
    let upload = Upload { id: Uuid::from_slice(id).ok()?, bytes: u32::from_be_bytes(size.try_into().ok()?) };
    Some((upload, head, mac))
}

/// Whether an attachment's URL is the id of an upload, perhaps an invalid one.
pub(crate) fn is_named(url: &str) -> bool {
    url.starts_with(SCHEME)
}

/// How many bytes an id stands for, as it says itself. `None` if it is no id.
pub(crate) fn bytes_of(name: &str) -> Option<usize> {
    parts(name).and_then(|(upload, ..)| usize::try_from(upload.bytes).ok())
}

/// Uploads are for agents with money behind them: a stranger's wallet costs nothing, and what it stores does.
///
/// # Errors
/// 403 `uploads_reserved`.
pub async fn check_reserved(db: &Db, agent: AgentId) -> Result<(), ApiError> {
    if account::load(db, agent).await?.is_proven() {
        return Ok(());
    }
    Err(ApiError::Tool {
        status: StatusCode::FORBIDDEN,
        code: "uploads_reserved",
        message:
            "uploads are for agents with credits and settled payments of 0.05 USDC together: top up credits, or give \
                  smaller attachments in `content` or by `url`"
                .to_owned(),
    })
}

/// Checks the uploads that a send names: they are the agent's, and complete. Asks the blob store only about its own ids.
///
/// # Errors
/// 400 `invalid_request` with the path of each wrong one.
pub(crate) fn check<'a>(
    toolbox: &'a Toolbox,
    input: &'a Map<String, Value>,
    _: &'a Map<String, Value>,
    agent: Option<AgentId>,
    _: bool,
) -> BoxFuture<'a, Result<(), ApiError>> {
    Box::pin(async move {
        let now = toolbox.clock.now();
        let mut wrong = Vec::new();
        for (index, attachment) in send::attachments(input).iter().enumerate() {
            let Some(name) = attachment["url"].as_str().filter(|url| is_named(url)) else { continue };
            let upload = agent.and_then(|agent| Some((agent, Upload::read(&toolbox.mail_secret, agent, name)?)));
            let why = match upload {
                None => "is not an upload of yours",
                Some((_, upload)) if now >= upload.expires() => "has expired: uploads can be attached for a day",
                Some((agent, upload)) => match toolbox.blobs.size(&upload.key(agent)).await? {
                    Some(size) if size == upload.size() => continue,
                    _ => "was not uploaded yet",
                },
            };
            wrong.push(FieldError::new(format!("attachments.{index}.url"), why));
        }
        if wrong.is_empty() { Ok(()) } else { Err(ApiError::InvalidRequest(wrong)) }
    })
}

/// The bytes of an upload that was checked when it was bought; `None` if they are no longer stored.
pub(crate) async fn content(toolbox: &Toolbox, agent: AgentId, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(upload) = Upload::read(&toolbox.mail_secret, agent, name) else { return Ok(None) };
    let key = upload.key(agent);
    let mut content = Vec::new();
    let mut read = 0;
    while read < upload.size() {
        let part = toolbox.blobs.part(&key, read, PART_BYTES.min(upload.size() - read)).await?;
        let Some(part) = part.filter(|part| !part.is_empty()) else { return Ok(None) };
        content.extend_from_slice(&part);
        read = u64::try_from(content.len()).map_err(StoreError::new)?;
    }
    Ok((read == upload.size()).then_some(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_only_if_it_is_the_agents_own() {
        let (agent, other) = (AgentId::from_bytes([7; 16]), AgentId::from_bytes([8; 16]));
        let now = Timestamp::from_secs(1_795_000_000);
        let upload = Upload::new(3_000_000, now);
        let name = upload.name(b"secret", agent);
        assert!(url::Url::parse(&name).is_ok() && is_named(&name));
        assert_eq!(Upload::read(b"secret", agent, &name), Some(upload));
        assert_eq!((bytes_of(&name), upload.expires()), (Some(3_000_000), now.plus(VALID)));
        assert_eq!(Upload::read(b"secret", other, &name), None);
        assert_eq!(Upload::read(b"another", agent, &name), None);
        let bytes = base64_any(name.strip_prefix(SCHEME).unwrap()).unwrap();
        for index in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[index] ^= 1;
            let changed = format!("{SCHEME}{}", base64_url(&changed));
            assert_eq!(Upload::read(b"secret", agent, &changed), None, "byte {index}");
        }
        for wrong in ["upload:", "upload:AQ", &format!("{name}AAAA"), &name[SCHEME.len()..]] {
            assert_eq!(bytes_of(wrong), None, "{wrong}");
        }
    }
}
