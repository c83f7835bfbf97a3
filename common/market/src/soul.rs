//! A soul: one seller. All its rows are in one partition, named by its slug. A slug never changes: as a key it is
//! unique, and the soul's id is derived from it.

use std::fmt;
use std::str::FromStr;

use base::clock::Timestamp;
use base::digest::{self, sha256, sha256_parts};
use base::ids;
use base::money::Usdc;
use evm::{Address, Word};
use platform::http::headers::SOUL_KEY_PREFIX;
use platform::store::db::Query;
use platform::store::{Blobs, Db, Key, StoreError};
use ring::hmac;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::form::MAX_TEXT_BYTES;
use super::ranking::Standing;

/// Words used by the marketplace's own paths, and `service`, which names the platform itself as a payee.
pub const RESERVED: &[&str] =
    &["browse", "search", "service-types", "templates", "stats", "ranking", "register", "me", "jobs", "service"];

/// The name of a soul or service in paths: 3 to 100 of `a-z`, `0-9` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slug(String);

impl Slug {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Slug {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Slug, &'static str> {
        let fits = (3..=100).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if fits { Ok(Slug(text.to_owned())) } else { Err("must be 3 to 100 of a-z, 0-9 and hyphens") }
    }
}

/// Whether a soul may sell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SoulStatus {
    Active,
    /// Suspended by an operator: unlisted, nothing new is sold, running jobs finish, payouts wait.
    Suspended,
}

/// The stored soul, without its text and its services.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Soul {
    pub slug: Slug,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bio: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avatar_url: Option<String>,
    pub status: SoulStatus,
    /// SHA-256 of the soul key, in hex. The key itself is not stored.
    pub key_hash: String,
    /// Price of the text, in micro-USDC. 0 is free, `None` is not for sale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Usdc>,
    /// Version of the text, from 1.
    pub version: u32,
    /// SHA-256 of the text, in hex. It also names the blob ([`text_blob`]).
    pub text_hash: String,
    /// Size of the text. Missing in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_bytes: Option<usize>,
    /// The wallet that earnings are paid to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wallet: Option<Address>,
    /// The wallet's owner signed the link.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wallet_verified: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ens_name: Option<String>,
    /// Counters are changed by attribute, never with the whole item, so that no writer overwrites another.
    #[serde(default)]
    pub jobs: u64,
    #[serde(default)]
    pub purchases: u64,
    /// Distinct buyers of successful sales, without the soul's own wallets. Copied from the reputation for search.
    #[serde(default)]
    pub buyers: u64,
    /// The figures that rank the soul.
    #[serde(flatten)]
    pub standing: Standing,
    #[serde(default)]
    pub rating_sum: u64,
    #[serde(default)]
    pub rating_count: u64,
    /// Number of services, including disabled ones. Changed by attribute.
    #[serde(default)]
    pub services: u32,
    /// Partition of the index of listed souls; absent while suspended (see `market::listing`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<String>,
    pub created: Timestamp,
    pub updated: Timestamp,
}

impl Soul {
    /// The id, derived from the slug.
    pub fn id(&self) -> Uuid {
        ids::uuid_of(&[b"soul", self.slug.as_str().as_bytes()])
    }

    pub fn is_active(&self) -> bool {
        self.status == SoulStatus::Active
    }

    /// Size of the text. If unknown, the largest possible size.
    pub fn text_bytes(&self) -> usize {
        self.text_bytes.unwrap_or(MAX_TEXT_BYTES)
    }

    /// Average rating, 0 if there are none.
    pub fn avg_rating(&self) -> f64 {
        average(self.rating_sum, self.rating_count)
    }
}

/// Average to two digits; 0 without votes.
pub fn average(sum: u64, votes: u64) -> f64 {
    (sum * 100 + votes / 2).checked_div(votes).unwrap_or_default() as f64 / 100.0
}

/// Partition of all rows of one soul in the souls table.
pub fn partition(slug: &str) -> String {
    format!("SOUL#{slug}")
}

pub fn key(slug: &str) -> Key {
    Key::new(partition(slug), "SOUL")
}

/// The soul by an eventually consistent read.
pub async fn load(db: &Db, slug: &str) -> Result<Option<Soul>, StoreError> {
    if slug.parse::<Slug>().is_err() {
        return Ok(None);
    }
    db.get(&db.tables.souls, key(slug)).await
}

/// The soul by a consistent read.
pub async fn load_latest(db: &Db, slug: &str) -> Result<Option<Soul>, StoreError> {
    db.get_latest(&db.tables.souls, key(slug)).await
}

/// One version of a soul's text. It never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextVersion {
    pub version: u32,
    /// SHA-256 of the text, in hex.
    pub hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
}

pub fn version_key(slug: &str, version: u32) -> Key {
    Key::new(partition(slug), format!("VERSION#{version:06}"))
}

pub async fn load_version(db: &Db, slug: &str, version: u32) -> Result<Option<TextVersion>, StoreError> {
    db.get(&db.tables.souls, version_key(slug, version)).await
}

/// A text by its hash. A missing text is an error of this deployment.
pub async fn load_text(blobs: &dyn Blobs, hash: &str) -> Result<String, StoreError> {
    let bytes = blobs.get(&text_blob(hash)).await?;
    let bytes = bytes.ok_or_else(|| StoreError::new(format_args!("the text {hash} is missing")))?;
    String::from_utf8(bytes).map_err(StoreError::new)
}

/// Blob name of a text: its hash, so writing it twice is harmless.
pub fn text_blob(hash: &str) -> String {
    format!("souls/{hash}.md")
}

/// A new soul key. It is shown once.
pub fn new_key() -> String {
    format!("{SOUL_KEY_PREFIX}{}", const_hex::encode(digest::random::<32>()))
}

/// The key from which soul keys of registrations are derived. `quotes` is [`gate::secrets::ServiceKeys::quotes`].
pub fn derivation_key(quotes: &hmac::Key) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &digest::hmac(quotes, b"soul keys"))
}

/// The soul key of a registration under the idempotency key `name`: the same for the same name and body, and not
/// stored.
pub fn named_key(derivation: &hmac::Key, name: &[u8], body: &Word) -> String {
    format!("{SOUL_KEY_PREFIX}{}", const_hex::encode(digest::hmac(derivation, &sha256_parts(&[name, body]))))
}

/// The stored form of a soul key.
pub fn key_hash(secret: &str) -> String {
    const_hex::encode(sha256(secret.as_bytes()))
}

/// Row from a key's hash to its soul: `{soul: slug}`.
pub fn key_key(hash: &str) -> Key {
    Key::new(format!("KEY#{hash}"), "KEY")
}

/// Row from a text's hash to its soul: `{soul: slug}`.
pub fn text_key(hash: &str) -> Key {
    Key::new(format!("TEXT#{hash}"), "TEXT")
}

/// Row from a wallet to the soul that is paid there: `{soul: slug}`.
pub fn wallet_key(wallet: Address) -> Key {
    Key::new(format!("WALLET#{}", wallet.lower()), "WALLET")
}

/// A row that points to a soul.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoulPointer {
    pub soul: Slug,
}

/// The soul of a soul key, `None` for an unknown key. Two reads.
pub async fn by_key(db: &Db, secret: &str) -> Result<Option<Soul>, StoreError> {
    let hex = secret.strip_prefix(SOUL_KEY_PREFIX).unwrap_or_default();
    if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
        return Ok(None);
    }
    let hash = key_hash(secret);
    let Some(leads) = db.get_latest::<SoulPointer>(&db.tables.souls, key_key(&hash)).await? else { return Ok(None) };
    let soul = load_latest(db, leads.soul.as_str()).await?;
    // A replaced key is refused even if the rotation left its row behind.
    Ok(soul.filter(|soul| soul.key_hash == hash))
}

/// Earlier versions of the text, newest first.
pub async fn versions(db: &Db, soul: &str, before: u32, limit: usize) -> Result<Vec<TextVersion>, StoreError> {
    let table = &db.tables.souls;
    let last = format!("VERSION#{:06}", before.saturating_sub(1));
    db.query(Query::between(table, &partition(soul), "VERSION#", &last, limit)?.newest_first()).await
}

/// The text of a version.
pub async fn text(blobs: &dyn Blobs, hash: &str) -> Result<String, StoreError> {
    let bytes = blobs.get(&text_blob(hash)).await?.ok_or_else(|| StoreError::new("a soul's text is missing"))?;
    String::from_utf8(bytes).map_err(StoreError::new)
}

/// The soul named by a path's `{slug}`: a slug or a linked wallet's address.
pub async fn find(db: &Db, name: &str) -> Result<Option<Soul>, StoreError> {
    let Ok(wallet) = name.parse::<Address>() else { return load(db, name).await };
    match db.get::<SoulPointer>(&db.tables.souls, wallet_key(wallet)).await? {
        Some(leads) => load(db, leads.soul.as_str()).await,
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_lower_case_words() {
        for good in ["abc", "a-b", "---", "0x1", &"a".repeat(100)] {
            assert!(good.parse::<Slug>().is_ok(), "{good}");
        }
        for bad in ["", "ab", "Abc", "a_b", "a b", "ä-bc", "a/b", &"a".repeat(101)] {
            assert!(bad.parse::<Slug>().is_err(), "{bad}");
        }
        assert!(RESERVED.iter().all(|word| *word == "me" || word.parse::<Slug>().is_ok()));
    }
}
