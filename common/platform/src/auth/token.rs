//! Access tokens: a revocable secret with which an agent spends prepaid credits, and nothing else.
//!
//! A token is `<prefix>` and 64 hex digits: sixteen random bytes, then the sixteen of its agent's id. So one read of
//! the agent's own partition finds it, its owner can list it there, and no index of all tokens exists. What is stored is
//! its SHA-256.
//!
//! | row | holds |
//! |---|---|
//! | `TOKEN#<SHA-256>` | the token: what a request reads |
//! | `TOKENID#<id>` | which of these rows has the id. Ids sort by when they were made |
//! | `TOKENS-ACTIVE` | ids of the tokens that are neither revoked nor expired, with their expiry: at most [`MAX_ACTIVE`] |
//!
//! Minting and revoking change all three in one transaction that holds the last one to its revision, so the cap is exact
//! however many are made at once. The first two go a while after their token is dead ([`KEPT_DEAD`]).

use std::collections::BTreeMap;
use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use base::ids::{AgentId, TokenId};
use evm::Address;
use serde::{Deserialize, Serialize};

use crate::store::db::Query;
use crate::store::{Db, Key, StoreError, Write, WriteError};

/// Most tokens of one agent that are neither revoked nor expired.
pub const MAX_ACTIVE: usize = 20;
/// How often the use of a token is written down: with every request would double what a read costs.
const NOTED_EVERY: Duration = Duration::from_secs(3600);
/// So many characters of a token are shown to tell it from others.
const SHOWN_CHARS: usize = 16;
const SECRET_HEX: usize = 64;
/// A revoked token is said to be revoked, and a dead one is listed, for so long; then it is a token nobody minted.
pub const KEPT_DEAD: Duration = Duration::from_secs(90 * 24 * 3600);

/// The stored token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessToken {
    pub id: TokenId,
    pub wallet: Address,
    /// The first characters of the token itself.
    pub shown: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// A free route was called with it, at most [`NOTED_EVERY`] before. When it last paid is in [`ledger::day`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
    /// Unix seconds after which the row may go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<i64>,
}

/// Why a bearer token opens nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// Nobody minted it, or it has expired.
    Invalid,
    /// Its owner took it back.
    Revoked,
}

impl AccessToken {
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|expires| now < expires)
    }
}

/// A token as its owner is shown it, once.
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

/// Which row has the token of an id.
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

/// The tokens that are neither revoked nor, when this was written, expired.
#[derive(Default, Serialize, Deserialize)]
struct Active {
    /// Counts the changes: who changes it has seen the latest.
    revision: u64,
    /// When each expires, if it does.
    tokens: BTreeMap<TokenId, Option<Timestamp>>,
}

impl Active {
    fn key(agent: AgentId) -> Key {
        Key::new(partition(agent), "TOKENS-ACTIVE")
    }

    async fn load(db: &Db, agent: AgentId) -> Result<Option<Active>, StoreError> {
        db.get_latest(&db.tables.agents, Active::key(agent)).await
    }

    /// The same, also of an agent whose tokens were made before there was such a row.
    async fn load_or_adopt(db: &Db, agent: AgentId) -> Result<Active, StoreError> {
        if let Some(active) = Active::load(db, agent).await? {
            return Ok(active);
        }
        adopt(db, agent).await?;
        Ok(Active::load(db, agent).await?.unwrap_or_default())
    }

    /// Its next revision, in place of the one that was read.
    fn replaced(&self, db: &Db, agent: AgentId) -> Result<Write, StoreError> {
        let next = Active { revision: self.revision + 1, tokens: self.tokens.clone() };
        Write::put(&db.tables.agents, Active::key(agent), &next)?
            .only_if("attribute_not_exists(#pk) OR #revision = :revision")
            .bind("revision", self.revision)
    }
}

/// Makes a token, unless there are too many. The secret is nowhere afterwards but with its owner.
pub async fn mint(
    db: &Db,
    prefix: &str,
    wallet: Address,
    name: Option<String>,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<Option<Minted>, StoreError> {
    let agent = AgentId::of(wallet);
    let random: [u8; 16] = digest::random();
    let secret = format!("{prefix}{}{}", const_hex::encode(random), const_hex::encode(agent.bytes()));
    let shown = secret.chars().take(SHOWN_CHARS).collect();
    let id = TokenId::made_at(now);
    let expires = expires_at.map(|expires| expires.plus(KEPT_DEAD).secs());
    let (revoked_at, used_at) = (None, None);
    let token = AccessToken { id, wallet, shown, name, created_at: now, expires_at, revoked_at, used_at, expires };
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
            // Somebody else made or revoked one meanwhile.
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
}

/// Gives tokens that were made before there were rows by id such rows, and their agent the row of its active ones. Again is
/// the same as once.
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

/// Left by the code that counted tokens in place of keeping rows by id.
#[derive(Deserialize)]
struct Made {}

#[derive(Deserialize)]
struct Row {
    sk: String,
    #[serde(flatten)]
    token: AccessToken,
}

/// The row of the token of this id.
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

/// Whether an agent has a token of this id, dead or alive.
pub async fn exists(db: &Db, agent: AgentId, id: TokenId) -> Result<bool, StoreError> {
    Ok(row_of(db, agent, id).await?.is_some())
}

/// The token behind a bearer secret, as the latest write left it: a revocation counts from the next request on.
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

/// What a connection that was opened with a token keeps of it: enough to see later whether it is still good.
pub fn mark_of(agent: AgentId, secret: &str) -> String {
    key(agent, secret).sk
}

/// Whether the token behind such a mark still opens anything.
pub async fn is_good(db: &Db, agent: AgentId, mark: &str, now: Timestamp) -> Result<bool, StoreError> {
    let token: Option<AccessToken> = db.get_latest(&db.tables.agents, Key::new(partition(agent), mark)).await?;
    Ok(token.is_some_and(|token| token.is_active(now)))
}

/// Writes down that a token was used, if that was not done lately. Nobody's request fails of it.
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

/// The agent a token says it belongs to, if it has the form of one.
fn owner(prefixes: &[String], secret: &str) -> Option<AgentId> {
    let hex = prefixes.iter().find_map(|prefix| secret.strip_prefix(prefix.as_str()))?;
    if hex.len() != SECRET_HEX || hex.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    let bytes: [u8; 32] = const_hex::decode_to_array(hex).ok()?;
    Some(AgentId::from_bytes(bytes[16..].try_into().ok()?))
}

/// Some of an agent's tokens.
pub struct Page {
    /// Newest first.
    pub tokens: Vec<AccessToken>,
    /// Behind which the next page begins, if there is one.
    pub next: Option<TokenId>,
}

/// An agent's tokens behind that of an id, newest first.
pub async fn page(db: &Db, agent: AgentId, after: Option<TokenId>, limit: usize) -> Result<Page, StoreError> {
    Active::load_or_adopt(db, agent).await?;
    let query = Query::prefixed(&db.tables.agents, &partition(agent), BY_ID, limit + 1)?.newest_first().latest();
    let mut leads: Vec<Lead> = db.query(query.after(after.map(|id| id_key(agent, id)))).await?;
    let has_more = leads.len() > limit;
    leads.truncate(limit);
    let tokens = of_leads(db, agent, leads).await?;
    Ok(Page { next: tokens.last().filter(|_| has_more).map(|token| token.id), tokens })
}

/// An agent's tokens that are neither revoked nor expired, newest first: at most [`MAX_ACTIVE`].
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

/// Takes a token back; again is the same as once. `None` if the agent has no such token.
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
                // Revoked already, or gone meanwhile.
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
    fn only_the_form_of_a_token_names_an_agent() {
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
