//! Access tokens: a revocable secret with which an agent spends prepaid credits.
//!
//! A token is `<prefix>` and 64 hex digits: 16 random bytes, then the 16 bytes of its agent's id. So a token is found by
//! one read in its agent's partition, its owner can list it there, and no index of all tokens is needed. Only its SHA-256
//! is stored.
//!
//! | row | holds |
//! |---|---|
//! | `TOKEN#<SHA-256>` | the token; read by each request |
//! | `TOKENID#<id>` | which `TOKEN#` row has this id; ids sort by creation time |
//! | `TOKENS-ACTIVE` | ids and expiry of the tokens that are neither revoked nor expired: at most [`MAX_ACTIVE`] |
//!
//! Minting and revoking change all three in one transaction, conditional on the revision of the last one. So concurrent
//! changes cannot exceed the cap. The first two rows are deleted [`KEPT_DEAD`] after the token's end.

use std::collections::BTreeMap;
use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use base::ids::{AgentId, TokenId};
use base::money::Usdc;
use evm::Address;
use serde::{Deserialize, Serialize};

use crate::store::db::Query;
use crate::store::{Db, Key, StoreError, Write, WriteError};

/// Maximum number of active (not revoked, not expired) tokens of one agent.
pub const MAX_ACTIVE: usize = 20;
/// A token's last use is recorded at most this often: a write for every request would double the cost of a read.
const NOTED_EVERY: Duration = Duration::from_secs(3600);
/// Number of first characters of a token that are shown, so that its owner recognises it.
const SHOWN_CHARS: usize = 16;
const SECRET_HEX: usize = 64;
/// How long a revoked or expired token is kept. During this time it is listed, and a call with a revoked token gets the
/// error "revoked". Afterwards it is an unknown token.
pub const KEPT_DEAD: Duration = Duration::from_secs(90 * 24 * 3600);

/// What a token may spend at most, in micro-USDC, besides the budget of its owner. Set when it is minted and never changed,
/// so whoever has read the token has the caps that apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCaps {
    /// For one call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_transaction: Option<Usdc>,
    /// For a UTC day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily: Option<Usdc>,
    /// For as long as the token lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Usdc>,
}

impl TokenCaps {
    /// By reference, as serde's `skip_serializing_if` asks.
    pub fn is_none(&self) -> bool {
        *self == TokenCaps::default()
    }
}

/// The stored token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessToken {
    pub id: TokenId,
    pub wallet: Address,
    /// The first characters of the token.
    pub shown: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "TokenCaps::is_none")]
    pub caps: TokenCaps,
    /// Last use on a free route, up to [`NOTED_EVERY`] out of date. Its last payment is in `ledger::day`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
    /// Unix seconds, after which the row may be deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
}

/// Why a bearer token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// Unknown or expired.
    Invalid,
    /// Revoked by its owner.
    Revoked,
}

impl AccessToken {
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires| now < expires)
    }
}

/// A new token with its secret, shown to its owner once.
pub struct Minted {
    pub token: AccessToken,
    pub secret: String,
}

fn partition(agent: AgentId) -> String {
    format!("AGENT#{agent}")
}

fn key(agent: AgentId, secret: &str) -> Key {
    Key::new(partition(agent), format!("TOKEN#{}", const_hex::encode(digest::sha256(secret.as_bytes()))))
}

/// Row `TOKENID#<id>`: which row has the token with this id.
#[derive(Serialize, Deserialize)]
struct Lead {
    /// The row's sort key.
    token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<i64>,
}

fn id_key(agent: AgentId, id: TokenId) -> Key {
    Key::new(partition(agent), format!("{BY_ID}{id}"))
}

const BY_ID: &str = "TOKENID#";

/// Row `TOKENS-ACTIVE`: the tokens that were neither revoked nor expired when it was written.
#[derive(Default, Serialize, Deserialize)]
struct Active {
    /// Counts the changes. A change is conditional on the revision that was read.
    revision: u64,
    /// When each token expires, if it does.
    tokens: BTreeMap<TokenId, Option<Timestamp>>,
}

impl Active {
    fn key(agent: AgentId) -> Key {
        Key::new(partition(agent), "TOKENS-ACTIVE")
    }

    async fn load(db: &Db, agent: AgentId) -> Result<Option<Active>, StoreError> {
        db.get_latest(&db.tables.agents, Active::key(agent)).await
    }

    /// Loads the row, or creates it for an agent whose tokens are older than this kind of row.
    async fn load_or_adopt(db: &Db, agent: AgentId) -> Result<Active, StoreError> {
        if let Some(active) = Active::load(db, agent).await? {
            return Ok(active);
        }
        adopt(db, agent).await?;
        Ok(Active::load(db, agent).await?.unwrap_or_default())
    }

    /// The write of the next revision, conditional on this one being the latest.
    fn replaced(&self, db: &Db, agent: AgentId) -> Result<Write, StoreError> {
        let next = Active { revision: self.revision + 1, tokens: self.tokens.clone() };
        Write::put(&db.tables.agents, Active::key(agent), &next)?
            .only_if("attribute_not_exists(#pk) OR #revision = :revision")
            .bind("revision", self.revision)
    }
}

/// Makes a token that only its owner's budget limits (see [`mint_capped`]).
pub async fn mint(
    db: &Db,
    prefix: &str,
    wallet: Address,
    name: Option<String>,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<Option<Minted>, StoreError> {
    mint_capped(db, prefix, wallet, name, expires_at, TokenCaps::default(), now).await
}

/// Makes a token; `None` if the agent has [`MAX_ACTIVE`] already. Only the caller has the secret afterwards.
pub async fn mint_capped(
    db: &Db,
    prefix: &str,
    wallet: Address,
    name: Option<String>,
    expires_at: Option<Timestamp>,
    caps: TokenCaps,
    now: Timestamp,
) -> Result<Option<Minted>, StoreError> {
    let agent = AgentId::of(wallet);
    let random: [u8; 16] = digest::random();
    let secret = format!("{prefix}{}{}", const_hex::encode(random), const_hex::encode(agent.bytes()));
    let shown = secret.chars().take(SHOWN_CHARS).collect();
    let id = TokenId::made_at(now);
    let expires = expires_at.map(|expires| expires.plus(KEPT_DEAD).secs());
    let (revoked_at, used_at) = (None, None);
    let token =
        AccessToken { id, wallet, shown, name, created_at: now, expires_at, revoked_at, caps, used_at, expires };
    let row = key(agent, &secret);
    let lead = Lead { token: row.sk.clone(), expires };
    loop {
        let mut active = Active::load_or_adopt(db, agent).await?;
        active.tokens.retain(|_, expires| expires.is_none_or(|expires| now < expires));
        if active.tokens.len() >= MAX_ACTIVE {
            return Ok(None);
        }
        active.tokens.insert(id, expires_at);
        let writes = [
            active.replaced(db, agent)?,
            Write::put(&db.tables.agents, row.clone(), &token)?.only_if_new(),
            Write::put(&db.tables.agents, id_key(agent, id), &lead)?.only_if_new(),
        ];
        match db.transact(&writes).await {
            Ok(()) => return Ok(Some(Minted { token, secret })),
            // A concurrent change: read again and retry.
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
}

/// Migration for tokens older than the rows `TOKENID#` and `TOKENS-ACTIVE`: creates those rows. Idempotent.
async fn adopt(db: &Db, agent: AgentId) -> Result<(), StoreError> {
    let made: Option<Made> = db.get(&db.tables.agents, Key::new(partition(agent), "TOKENS-MADE")).await?;
    if made.is_none() {
        return Ok(());
    }
    let query = Query::prefixed(&db.tables.agents, &partition(agent), "TOKEN#", usize::MAX)?.latest();
    let rows: Vec<Row> = db.query(query).await?;
    let mut active = Active::default();
    for Row { sk, token } in rows {
        let lead = Write::put(&db.tables.agents, id_key(agent, token.id), &Lead { token: sk, expires: token.expires })?;
        db.write_if(lead.only_if_new()).await?;
        if token.revoked_at.is_none() {
            active.tokens.insert(token.id, token.expires_at);
        }
    }
    let put = Write::put(&db.tables.agents, Active::key(agent), &active)?;
    db.write_if(put.only_if_new()).await.map(drop)
}

/// Row `TOKENS-MADE`, written by older versions that only counted tokens.
#[derive(Deserialize)]
struct Made {}

#[derive(Deserialize)]
struct Row {
    sk: String,
    #[serde(flatten)]
    token: AccessToken,
}

/// The key of the token with this id.
async fn row_of(db: &Db, agent: AgentId, id: TokenId) -> Result<Option<Key>, StoreError> {
    let find = async || db.get_latest::<Lead>(&db.tables.agents, id_key(agent, id)).await;
    let lead = match find().await? {
        Some(lead) => Some(lead),
        None => {
            adopt(db, agent).await?;
            find().await?
        }
    };
    Ok(lead.map(|lead| Key::new(partition(agent), lead.token)))
}

/// Whether an agent has, or recently had, a token with this id.
pub async fn exists(db: &Db, agent: AgentId, id: TokenId) -> Result<bool, StoreError> {
    Ok(row_of(db, agent, id).await?.is_some())
}

/// An agent's token by its id, strongly consistent. `None` if the agent has no such token, or if the token is older than
/// the rows `TOKENID#` and its owner has not used them since: this writes nothing.
pub async fn load(db: &Db, agent: AgentId, id: TokenId) -> Result<Option<AccessToken>, StoreError> {
    match db.get_latest::<Lead>(&db.tables.agents, id_key(agent, id)).await? {
        Some(lead) => db.get_latest(&db.tables.agents, Key::new(partition(agent), lead.token)).await,
        None => Ok(None),
    }
}

/// The token with this secret. Strongly consistent: a revocation takes effect with the next request.
pub async fn find(
    db: &Db,
    prefixes: &[String],
    secret: &str,
    now: Timestamp,
) -> Result<Result<AccessToken, TokenError>, StoreError> {
    let Some(agent) = owner(prefixes, secret) else { return Ok(Err(TokenError::Invalid)) };
    let token: Option<AccessToken> = db.get_latest(&db.tables.agents, key(agent, secret)).await?;
    Ok(match token {
        Some(token) if token.expires.is_some_and(|expires| now.secs() >= expires) => Err(TokenError::Invalid),
        Some(token) if token.revoked_at.is_some() => Err(TokenError::Revoked),
        Some(token) if token.is_active(now) => Ok(token),
        _ => Err(TokenError::Invalid),
    })
}

/// The mark of a token that a WebSocket connection stores, to check the token again later with [`is_good`].
pub fn mark_of(agent: AgentId, secret: &str) -> String {
    key(agent, secret).sk
}

/// Whether the token with this mark is still active.
pub async fn is_good(db: &Db, agent: AgentId, mark: &str, now: Timestamp) -> Result<bool, StoreError> {
    let token: Option<AccessToken> = db.get_latest(&db.tables.agents, Key::new(partition(agent), mark)).await?;
    Ok(token.is_some_and(|token| token.is_active(now)))
}

/// Records a token's use, if that was not done lately. Errors are ignored: they must not fail the request.
pub async fn note_use(db: &Db, token: &AccessToken, secret: &str, now: Timestamp) {
    if token.used_at.is_some_and(|used| now < used.plus(NOTED_EVERY)) {
        return;
    }
    let key = key(AgentId::of(token.wallet), secret);
    let write = Write::update(&db.tables.agents, key, "SET #used_at = :now").only_if("attribute_exists(#pk)");
    if let Ok(write) = write.bind("now", now) {
        let _ = db.write(write).await;
    }
}

/// The agent id inside a token, if it has the form of a token.
fn owner(prefixes: &[String], secret: &str) -> Option<AgentId> {
    let hex = prefixes.iter().find_map(|prefix| secret.strip_prefix(prefix.as_str()))?;
    if hex.len() != SECRET_HEX || hex.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let bytes: [u8; 32] = const_hex::decode_to_array(hex).ok()?;
    Some(AgentId::from_bytes(bytes[16..].try_into().ok()?))
}

/// One page of an agent's tokens.
pub struct Page {
    /// Newest first.
    pub tokens: Vec<AccessToken>,
    /// Cursor of the next page, if there is one.
    pub next: Option<TokenId>,
}

/// An agent's tokens after the given id, newest first.
pub async fn page(db: &Db, agent: AgentId, after: Option<TokenId>, limit: usize) -> Result<Page, StoreError> {
    Active::load_or_adopt(db, agent).await?;
    let query = Query::prefixed(&db.tables.agents, &partition(agent), BY_ID, limit + 1)?.newest_first().latest();
    let mut leads: Vec<Lead> = db.query(query.after(after.map(|id| id_key(agent, id)))).await?;
    let has_more = leads.len() > limit;
    leads.truncate(limit);
    let tokens = of_leads(db, agent, leads).await?;
    Ok(Page { next: tokens.last().filter(|_| has_more).map(|token| token.id), tokens })
}

/// An agent's active tokens, newest first: at most [`MAX_ACTIVE`].
pub async fn active(db: &Db, agent: AgentId, now: Timestamp) -> Result<Vec<AccessToken>, StoreError> {
    let ids: Vec<TokenId> = Active::load_or_adopt(db, agent).await?.tokens.into_keys().rev().collect();
    let keys: Vec<Key> = ids.into_iter().map(|id| id_key(agent, id)).collect();
    let leads: Vec<Option<Lead>> = db.batch_get(&db.tables.agents, &keys, true).await?;
    let mut tokens = of_leads(db, agent, leads.into_iter().flatten().collect()).await?;
    tokens.retain(|token| token.is_active(now));
    Ok(tokens)
}

async fn of_leads(db: &Db, agent: AgentId, leads: Vec<Lead>) -> Result<Vec<AccessToken>, StoreError> {
    let keys: Vec<Key> = leads.into_iter().map(|lead| Key::new(partition(agent), lead.token)).collect();
    Ok(db.batch_get(&db.tables.agents, &keys, true).await?.into_iter().flatten().collect())
}

/// Revokes a token and returns when it was revoked; idempotent. `None` if the agent has no such token.
pub async fn revoke(db: &Db, agent: AgentId, id: TokenId, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    let Some(row) = row_of(db, agent, id).await? else { return Ok(None) };
    let expires = now.plus(KEPT_DEAD).secs();
    loop {
        let mut active = Active::load_or_adopt(db, agent).await?;
        active.tokens.remove(&id);
        let set = "SET #revoked_at = :now, #expires = :expires";
        let token = Write::update(&db.tables.agents, row.clone(), set)
            .only_if("attribute_exists(#pk) AND attribute_not_exists(#revoked_at)")
            .bind("now", now)?
            .bind("expires", expires)?;
        let lead = Write::update(&db.tables.agents, id_key(agent, id), "SET #expires = :expires")
            .only_if("attribute_exists(#pk)")
            .bind("expires", expires)?;
        match db.transact(&[token, active.replaced(db, agent)?, lead]).await {
            Ok(()) => return Ok(Some(now)),
            Err(WriteError::Failed(error)) => return Err(error),
            Err(refused) => {
                // Revoked before, or deleted meanwhile.
                if let Some(refused) = refused.refused(0) {
                    let old: Option<AccessToken> = refused.old.clone().map(crate::store::db::parse).transpose()?;
                    return Ok(old.and_then(|token| token.revoked_at));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_well_formed_token_names_an_agent() {
        let prefixes = ["oneshot_".to_owned(), "agent_".to_owned()];
        let agent = AgentId::of(Address::ZERO);
        let hex = format!("{}{}", "0b".repeat(16), const_hex::encode(agent.bytes()));
        for prefix in &prefixes {
            assert_eq!(owner(&prefixes, &format!("{prefix}{hex}")), Some(agent));
        }
        for wrong in [
            "",
            "agent_",
            &hex,
            &format!("other_{hex}"),
            &format!("agent_{hex}0"),
            &format!("agent_{}", &hex[1..]),
            &format!("agent_{}", hex.to_uppercase()),
            &format!("agent_{}", "zz".repeat(32)),
        ] {
            assert_eq!(owner(&prefixes, wrong), None, "{wrong}");
        }
    }
}
