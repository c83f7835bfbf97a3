//! Ids, each a newtype, so that one cannot be passed for another.
//!
//! Two of them are derived instead of random, which saves lookups: an [`AgentId`] is derived from the wallet, and a
//! [`RequestId`] from the quote or payment, so that the same payment always gives the same job.

use std::fmt;
use std::str::FromStr;

use evm::Address;
use serde::{Deserialize, Serialize};
use ulid::Ulid;
use uuid::Uuid;

use crate::clock::Timestamp;
use crate::digest::{self, sha256_parts};

/// The id of an agent: a UUID derived from its wallet's address, the same in every deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentId(Uuid);

impl AgentId {
    pub fn of(wallet: Address) -> AgentId {
        AgentId(uuid_from(&sha256_parts(&[b"agent", wallet.bytes()])))
    }

    pub fn bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    pub fn from_bytes(bytes: [u8; 16]) -> AgentId {
        AgentId(Uuid::from_bytes(bytes))
    }
}

/// The id of an access token, by which its owner lists and revokes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenId(Uuid);

impl TokenId {
    /// A new id. Ids sort by creation time (UUID version 7).
    pub fn made_at(now: Timestamp) -> TokenId {
        let millis = u64::try_from(now.millis()).unwrap_or_default();
        TokenId(uuid::Builder::from_unix_timestamp_millis(millis, &digest::random()).into_uuid())
    }

    pub fn bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    pub fn from_bytes(bytes: [u8; 16]) -> TokenId {
        TokenId(Uuid::from_bytes(bytes))
    }
}

/// The id of a job, which callers poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(Uuid);

impl RequestId {
    /// The id of the job bought with what `parts` identify (a quote, or a payment without a quote).
    pub fn bought_with(kind: &str, parts: &[&[u8]]) -> RequestId {
        let mut all = vec![b"request".as_slice(), kind.as_bytes()];
        all.extend_from_slice(parts);
        RequestId(uuid_from(&sha256_parts(&all)))
    }

    /// The id of a job paid from credits without a quote or an idempotency key.
    pub fn random() -> RequestId {
        RequestId(random_uuid())
    }

    pub fn bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    pub fn from_bytes(bytes: [u8; 16]) -> RequestId {
        RequestId(Uuid::from_bytes(bytes))
    }

    /// The job's id on the marketplace: `job_` and 32 hex digits.
    pub fn soul_job(&self) -> String {
        format!("job_{}", self.0.simple())
    }

    /// The id of the goal that the job drives: `goal_` and 32 hex digits.
    pub fn goal(&self) -> String {
        format!("goal_{}", self.0.simple())
    }

    /// Reads a goal's id.
    pub fn of_goal(text: &str) -> Option<RequestId> {
        RequestId::of_hex(text.strip_prefix("goal_")?)
    }

    fn of_hex(hex: &str) -> Option<RequestId> {
        let is_ours = hex.len() == 32 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_ours { Uuid::try_parse(hex).ok().map(RequestId) } else { None }
    }

    /// Reads a marketplace job id.
    pub fn of_soul_job(text: &str) -> Option<RequestId> {
        RequestId::of_hex(text.strip_prefix("job_")?)
    }
}

/// A random UUID (version 4).
pub fn random_uuid() -> Uuid {
    uuid::Builder::from_random_bytes(digest::random()).into_uuid()
}

/// A UUID derived from the parts (version 8).
pub fn uuid_of(parts: &[&[u8]]) -> Uuid {
    uuid_from(&sha256_parts(parts))
}

/// A version 8 UUID (custom content) from the first 16 bytes of a digest.
fn uuid_from(digest: &[u8; 32]) -> Uuid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

macro_rules! uuid_text {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<$name, uuid::Error> {
                Uuid::try_parse(text).map($name)
            }
        }
    };
}

uuid_text!(AgentId);
uuid_text!(RequestId);
uuid_text!(TokenId);

/// The id of a receipt, `rcpt_<ulid>`. Sorts by the time of the charge. Derived from the job, so that writing the receipt
/// twice writes the same item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReceiptId(String);

impl ReceiptId {
    pub fn of(request: RequestId, charged_at: Timestamp) -> ReceiptId {
        let millis = u64::try_from(charged_at.millis()).unwrap_or_default();
        let digest = sha256_parts(&[b"receipt", request.bytes(), &millis.to_be_bytes()]);
        let mut random = [0; 16];
        random[6..].copy_from_slice(&digest[..10]);
        ReceiptId(format!("rcpt_{}", Ulid::from_parts(millis, u128::from_be_bytes(random))))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The prefix of receipt ids charged in this millisecond.
    pub fn prefix_at(charged_at: Timestamp) -> String {
        const MAX_MILLIS: u64 = (1 << 48) - 1;
        let millis = u64::try_from(charged_at.millis()).unwrap_or_default().min(MAX_MILLIS);
        let ulid = Ulid::from_parts(millis, 0).to_string();
        format!("rcpt_{}", &ulid[..10])
    }
}

impl FromStr for ReceiptId {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<ReceiptId, &'static str> {
        const ALPHABET: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        let ulid = text.strip_prefix("rcpt_").unwrap_or_default().as_bytes();
        let good = ulid.len() == 26 && ulid[0] <= b'7' && ulid.iter().all(|letter| ALPHABET.contains(letter));
        if good { Ok(ReceiptId(text.to_owned())) } else { Err("must be rcpt_ and a ULID") }
    }
}

impl fmt::Display for ReceiptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Text form of a newtype around a ULID: a prefix and 26 letters. Only one spelling is accepted, because the text is used
/// as a key.
macro_rules! ulid_text {
    ($name:ident, $prefix:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = &'static str;

            fn from_str(text: &str) -> Result<$name, &'static str> {
                let wrong = concat!("must be ", $prefix, " and a ULID");
                let ulid = text.strip_prefix($prefix).ok_or(wrong)?;
                let id = Ulid::from_string(ulid).map($name).map_err(|_| wrong)?;
                if id.to_string() == text { Ok(id) } else { Err(wrong) }
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}
/// The id of a webhook endpoint, `wh_<ulid>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(Ulid);

impl EndpointId {
    pub fn random() -> EndpointId {
        EndpointId(Ulid::from_bytes(digest::random()))
    }

    /// The id of an endpoint from the configuration: the same digest gives the same id.
    pub fn named(digest: &[u8; 32]) -> EndpointId {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        EndpointId(Ulid::from_bytes(bytes))
    }

    pub fn ulid(&self) -> Ulid {
        self.0
    }
}

ulid_text!(EndpointId, "wh_");

/// The id of a webhook event, `evt_<ulid>`: the same for every attempt, so that a receiver recognises a repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(Ulid);

impl EventId {
    /// The same cause and time give the same id. `kind` is the event's name on the wire.
    pub fn of(agent: AgentId, kind: &str, cause: &str, happened: Timestamp) -> EventId {
        let millis = u64::try_from(happened.millis()).unwrap_or_default();
        let digest = sha256_parts(&[b"event", agent.bytes(), kind.as_bytes(), cause.as_bytes()]);
        let mut random = [0; 16];
        random[6..].copy_from_slice(&digest[..10]);
        EventId(Ulid::from_parts(millis, u128::from_be_bytes(random)))
    }

    pub fn ulid(&self) -> Ulid {
        self.0
    }
}

ulid_text!(EventId, "evt_");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_ids_are_derived_from_the_wallet() {
        let wallet: Address = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266".parse().unwrap();
        let agent = AgentId::of(wallet);
        assert_eq!(agent, AgentId::of(wallet));
        assert_ne!(agent, AgentId::of(Address::ZERO));
        assert_eq!(agent.to_string().parse::<AgentId>().unwrap(), agent);
        // Published: agents may compute this id themselves, so it must never change.
        assert_eq!(agent.to_string(), "540aa72d-1863-849b-8f70-3815c11f323d");
    }

    #[test]
    fn receipt_ids_sort_by_time() {
        let request = RequestId::bought_with("quote", &[b"q"]);
        let early = ReceiptId::of(request, Timestamp::from_secs(1));
        let late = ReceiptId::of(request, Timestamp::from_secs(2));
        assert!(early < late);
        assert_eq!(early, ReceiptId::of(request, Timestamp::from_secs(1)));
        assert_eq!(early.as_str().len(), "rcpt_".len() + 26);
        assert_eq!(early.as_str().parse(), Ok(early.clone()));
        assert!(early.as_str().starts_with(&ReceiptId::prefix_at(Timestamp::from_secs(1))));
        assert!(early.as_str() < ReceiptId::prefix_at(Timestamp::from_millis(1_001)).as_str());
        for wrong in
            ["", "rcpt_", &early.as_str()[..30], &early.as_str().to_lowercase(), "rcpt_8ZZZZZZZZZZZZZZZZZZZZZZZZZ"]
        {
            assert!(wrong.parse::<ReceiptId>().is_err(), "{wrong}");
        }
    }
}
