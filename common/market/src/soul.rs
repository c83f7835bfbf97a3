//! A soul: one seller. Everything of it lies in one partition that its slug names; a slug never changes, so it is unique
//! by being a key, and the soul's id follows from it.

use std::fmt;
use std::str::FromStr;

use base::clock::Timestamp;
use base::digest::{self, sha256, sha256_parts};
use base::ids;
use base::money::Usdc;
use evm::{Address, Word};
use platform::store::db::Query;
use platform::store::{Blobs, Db, Key, StoreError};
use ring::hmac;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::form::MAX_TEXT_BYTES;
use super::ranking::Standing;

/// Words that the marketplace's own paths use, and `service`, which names ourselves as a payee (contract §19).
pub const RESERVED: &[&str] =
    &["browse", "search", "service-types", "templates", "stats", "ranking", "register", "me", "jobs", "service"];
const KEY_PREFIX: &str = "soul_";

/// A soul's or a service's name in paths: 3 to 100 of `a-z`, `0-9` and `-`.
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
    /// By an operator: unlisted, nothing new is sold, running jobs finish, payouts wait.
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
    /// SHA-256 of the soul key, in hex; the key itself is nowhere.
    pub key_hash: String,
    /// What the text costs, in micro-USDC: nothing is free, `None` is not for sale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Usdc>,
    /// Of the text, from 1.
    pub version: u32,
    /// SHA-256 of the text, in hex: also where it is kept ([`text_blob`]).
    pub text_hash: String,
    /// Of the text. Unknown of souls that were stored before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_bytes: Option<usize>,
    /// Where earnings are paid out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wallet: Option<Address>,
    /// The wallet's owner signed for the link.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wallet_verified: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ens_name: Option<String>,
    /// Counters. Changed by attribute and never with the whole item, so that no writer undoes another's.
    #[serde(default)]
    pub jobs: u64,
    #[serde(default)]
    pub purchases: u64,
    /// Different buyers of what was sold well, without the soul's own wallets: the reputation's figure, where a search finds
    /// it.
    #[serde(default)]
    pub buyers: u64,
    /// What ranks the soul.
    #[serde(flatten)]
    pub standing: Standing,
    #[serde(default)]
    pub rating_sum: u64,
    #[serde(default)]
    pub rating_count: u64,
    /// Services, disabled ones included. Changed by attribute, with each that is added.
    #[serde(default)]
    pub services: u32,
    /// Partition of the index of listed souls; absent while suspended (see `marketplace::listing`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<String>,
    pub created: Timestamp,
    pub updated: Timestamp,
}

impl Soul {
    /// The soul's id follows from its slug, as an agent's from its wallet.
    pub fn id(&self) -> Uuid {
        ids::uuid_of(&[b"soul", self.slug.as_str().as_bytes()])
    }

    pub fn is_active(&self) -> bool {
        self.status == SoulStatus::Active
    }

    /// Size of the text, or of the largest there can be.
    pub fn text_bytes(&self) -> usize {
        self.text_bytes.unwrap_or(MAX_TEXT_BYTES)
    }

    /// The mission's running average.
    pub fn avg_rating(&self) -> f64 {
        average(self.rating_sum, self.rating_count)
    }
}

/// The average of so many votes, to two digits; 0 if there are none.
pub fn average(sum: u64, votes: u64) -> f64 {
    (sum * 100 + votes / 2).checked_div(votes).unwrap_or_default() as f64 / 100.0
}

/// Partition of everything of one soul in the souls table.
pub fn partition(slug: &str) -> String {
    format!("SOUL#{slug}")
}

pub fn key(slug: &str) -> Key {
    Key::new(partition(slug), "SOUL")
}

/// The soul, a little behind the latest write.
pub async fn load(db: &Db, slug: &str) -> Result<Option<Soul>, StoreError> {
    if slug.parse::<Slug>().is_err() {
        return Ok(None);
    }
    db.get(&db.tables.souls, key(slug)).await
}

/// The soul as the latest write left it.
pub async fn load_latest(db: &Db, slug: &str) -> Result<Option<Soul>, StoreError> {
    db.get_latest(&db.tables.souls, key(slug)).await
}

/// One version of a soul's text. What was quoted and bought stays what it was.
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

/// A text, by its hash. One that is gone is a fault of ours.
pub async fn load_text(blobs: &dyn Blobs, hash: &str) -> Result<String, StoreError> {
    let bytes = blobs.get(&text_blob(hash)).await?;
    let bytes = bytes.ok_or_else(|| StoreError::new(format_args!("the text {hash} is missing")))?;
    String::from_utf8(bytes).map_err(StoreError::new)
}

/// Where a text lies in the blob store: by what it says, so that writing it twice writes the same.
pub fn text_blob(hash: &str) -> String {
    format!("souls/{hash}.md")
}

/// A fresh soul key, shown once.
pub fn new_key() -> String {
    format!("{KEY_PREFIX}{}", const_hex::encode(digest::random::<32>()))
}

/// What keys of named registrations are derived from; `quotes` is [`gate::secrets::ServiceKeys::quotes`].
pub fn derivation_key(quotes: &hmac::Key) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &digest::hmac(quotes, b"soul keys"))
}

/// The key of a registration that its caller named: the same for the same name and body, and kept nowhere.
pub fn named_key(derivation: &hmac::Key, name: &[u8], body: &Word) -> String {
    format!("{KEY_PREFIX}{}", const_hex::encode(digest::hmac(derivation, &sha256_parts(&[name, body]))))
}

/// What is stored of a soul key.
pub fn key_hash(secret: &str) -> String {
    const_hex::encode(sha256(secret.as_bytes()))
}

/// Leads from a key's hash to its soul: `{soul: slug}`.
pub fn key_key(hash: &str) -> Key {
    Key::new(format!("KEY#{hash}"), "KEY")
}

/// Leads from a text's hash to the soul that has it: `{soul: slug}`.
pub fn text_key(hash: &str) -> Key {
    Key::new(format!("TEXT#{hash}"), "TEXT")
}

/// Leads from a wallet to the soul that is paid there: `{soul: slug}`.
pub fn wallet_key(wallet: Address) -> Key {
    Key::new(format!("WALLET#{}", wallet.lower()), "WALLET")
}

/// A row that only leads to a soul.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoulPointer {
    pub soul: Slug,
}

/// The soul behind a soul key: one read of the key, one of the soul. `None` if nobody was given this key.
pub async fn by_key(db: &Db, secret: &str) -> Result<Option<Soul>, StoreError> {
    let hex = secret.strip_prefix(KEY_PREFIX).unwrap_or_default();
    if hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
        return Ok(None);
    }
    let hash = key_hash(secret);
    let Some(leads) = db.get_latest::<SoulPointer>(&db.tables.souls, key_key(&hash)).await? else { return Ok(None) };
    let soul = load_latest(db, leads.soul.as_str()).await?;
    // A key that was replaced leads nowhere, however the replacing was interrupted.
    Ok(soul.filter(|soul| soul.key_hash == hash))
}

/// Versions of the text before this one, the newest first.
pub async fn versions(db: &Db, soul: &str, before: u32, limit: usize) -> Result<Vec<TextVersion>, StoreError> {
    let table = &db.tables.souls;
    let last = format!("VERSION#{:06}", before.saturating_sub(1));
    db.query(Query::between(table, &partition(soul), "VERSION#", &last, limit)?.newest_first()).await
}

/// The text of a version.
pub async fn text(blobs: &dyn Blobs, hash: &str) -> Result<String, StoreError> {
    let bytes = blobs.get(&text_blob(hash)).await?.ok_or_else(|| StoreError::new("a soul's text is not there"))?;
    String::from_utf8(bytes).map_err(StoreError::new)
}

/// The soul that a path's `{slug}` names: a slug, or a linked wallet's address.
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
