//! The input of a job: in the job's item if it is small, otherwise in a blob. A job's item is written at each of its steps,
//! and each write costs by the size of the whole item.

use base::digest::sha256;
use base::ids::RequestId;
use platform::http::log;
use platform::store::{Blobs, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tools::ToolError;

/// Inputs up to this size, in bytes of JSON, are stored in the job's item.
pub const INLINE_BYTES: usize = 8 * 1024;

/// Where a job's input is. A string in the stored job is the JSON itself, as in jobs of earlier versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StoredInput {
    /// The JSON itself.
    Inline(String),
    Blob(InputBlob),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputBlob {
    /// Key in the blob store.
    pub key: String,
    pub bytes: usize,
    /// SHA-256 of the blob, in hex.
    pub sha256: String,
}

/// Why an input could not be read.
#[derive(Debug)]
pub enum Unread {
    /// Its blob is gone (or may not be read: S3 does not tell a role that may not list), or is not what was stored. Trying
    /// again does not help.
    Lost,
    /// The store did not answer.
    Failed(StoreError),
}

impl From<Unread> for ToolError {
    fn from(unread: Unread) -> ToolError {
        match unread {
            Unread::Lost => ToolError::internal("the stored input was lost"),
            Unread::Failed(error) => {
                log::failure("the input of a job could not be read", &error);
                ToolError::internal("the stored input could not be read")
            }
        }
    }
}

impl StoredInput {
    /// Whether an input of this size, in bytes of JSON, becomes a blob.
    pub fn is_large(bytes: usize) -> bool {
        bytes > INLINE_BYTES
    }

    /// Stores the input of a job that is about to be claimed. A blob's key follows from the job and the input, so a repeated
    /// call writes the same blob, and a call that loses to another one overwrites nothing. Blobs that no job refers to are
    /// deleted by age. `is_brief`: the job is kept for a shorter time, and so is the blob (template.yaml, BlobBucket).
    pub async fn keep(
        blobs: &dyn Blobs,
        request_id: RequestId,
        is_brief: bool,
        json: String,
    ) -> Result<StoredInput, StoreError> {
        if !StoredInput::is_large(json.len()) {
            return Ok(StoredInput::Inline(json));
        }
        let (bytes, sha256) = (json.len(), const_hex::encode(sha256(json.as_bytes())));
        let folder = if is_brief { "inputs/brief" } else { "inputs" };
        let key = format!("{folder}/{request_id}-{}.json", &sha256[..16]);
        blobs.put(&key, "application/json", json.into_bytes()).await?;
        Ok(StoredInput::Blob(InputBlob { key, bytes, sha256 }))
    }

    /// The members of the input.
    pub async fn read(&self, blobs: &dyn Blobs) -> Result<Map<String, Value>, Unread> {
        let parsed = match self {
            StoredInput::Inline(json) => serde_json::from_str(json),
            StoredInput::Blob(blob) => {
                let found = blobs.get(&blob.key).await.map_err(Unread::Failed)?;
                let found = found.filter(|found| const_hex::encode(sha256(found)) == blob.sha256);
                serde_json::from_slice(&found.ok_or(Unread::Lost)?)
            }
        };
        parsed.map_err(|_| Unread::Lost)
    }

    /// SHA-256 of its JSON, in hex.
    pub fn digest(&self) -> String {
        match self {
            StoredInput::Inline(json) => const_hex::encode(sha256(json.as_bytes())),
            StoredInput::Blob(blob) => blob.sha256.clone(),
        }
    }

    /// Bytes of its JSON.
    pub fn bytes(&self) -> usize {
        match self {
            StoredInput::Inline(json) => json.len(),
            StoredInput::Blob(blob) => blob.bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the database, and in jobs of earlier versions.
    #[test]
    fn an_input_reads_back_as_it_was_stored() {
        let inline = StoredInput::Inline(r#"{"url":"https://example.com/"}"#.to_owned());
        let blob =
            StoredInput::Blob(InputBlob { key: "inputs/a.json".to_owned(), bytes: 9_000, sha256: "ab".to_owned() });
        for input in [inline, blob] {
            let stored: aws_sdk_dynamodb::types::AttributeValue = serde_dynamo::to_attribute_value(&input).unwrap();
            assert_eq!(stored.is_s(), matches!(input, StoredInput::Inline(_)));
            assert_eq!(serde_dynamo::from_attribute_value::<_, StoredInput>(stored).unwrap(), input);
        }
    }
}
