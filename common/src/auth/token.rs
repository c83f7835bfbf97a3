//! Access tokens: a revocable secret with which an agent spends prepaid credits, and nothing else.
//!
//! A token is `<prefix>` and 64 hex digits: sixteen random bytes, then the sixteen of its agent's id. So one read of
//! the agent's own partition finds it, its owner can list it there, and no index of all tokens exists. What is stored is
//! its SHA-256.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::digest;
use crate::evm::Address;
use crate::ids::{AgentId, TokenId};
use crate::store::db::Query;
use crate::store::{Db, Key, StoreError, Write, WriteError};

/// Most tokens of one agent that are neither revoked nor expired.
pub const MAX_ACTIVE: usize = 20;
/// How often the use of a token is written down: with every request would double what a read costs.
const NOTED_EVERY: Duration = Duration::from_secs(3600);
/// So many characters of a token are shown to tell it from others.
const SHOWN_CHARS: usize = 16;
const SECRET_HEX: usize = 64;
/// All an agent's tokens that are listed, the active ones among them.
const LISTED: usize = 500;

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
    /// A free route was called with it, at most [`NOTED_EVERY`] before. When it last paid is in [`crate::ledger::day`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
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
    let id = TokenId::random();
    let token = AccessToken { id, wallet, shown, name, created_at: now, expires_at, revoked_at: None, used_at: None };
    loop {
        // Who counts the tokens must be the next to make one: so the count is exact, however many are made at once.
        let made: Made = db.get_latest(&db.tables.agents, made_key(agent)).await?.unwrap_or_default();
        let active = of_agent(db, agent).await?.iter().filter(|token| token.is_active(now)).count();
        if active >= MAX_ACTIVE {
            return Ok(None);
        }
        let count = Write::put(&db.tables.agents, made_key(agent), &Made { made: made.made + 1 })?
            .only_if("attribute_not_exists(#pk) OR #made = :made")
            .bind("made", made.made)?;
        let put = Write::put(&db.tables.agents, key(agent, &secret), &token)?.only_if_new();
        match db.transact(&[count, put]).await {
            Ok(()) => return Ok(Some(Minted { token, secret })),
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
}

/// How many tokens an agent ever made.
#[derive(Default, Serialize, Deserialize)]
struct Made {
    made: u32,
}

fn made_key(agent: AgentId) -> Key {
    Key::new(partition(agent), "TOKENS-MADE")
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

/// An agent's tokens, newest first.
pub async fn of_agent(db: &Db, agent: AgentId) -> Result<Vec<AccessToken>, StoreError> {
    let query = Query::prefixed(&db.tables.agents, &partition(agent), "TOKEN#", LISTED)?.latest();
    let mut tokens: Vec<AccessToken> = db.query(query).await?;
    tokens.sort_by_key(|token| std::cmp::Reverse(token.created_at));
    Ok(tokens)
}

/// Takes a token back; again is the same as once. `None` if the agent has no such token.
pub async fn revoke(db: &Db, agent: AgentId, id: TokenId, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
    #[derive(Deserialize)]
    struct Row {
        sk: String,
        #[serde(flatten)]
        token: AccessToken,
    }
    let query = Query::prefixed(&db.tables.agents, &partition(agent), "TOKEN#", LISTED)?.latest();
    let rows: Vec<Row> = db.query(query).await?;
    let Some(row) = rows.into_iter().find(|row| row.token.id == id) else { return Ok(None) };
    let write = Write::update(&db.tables.agents, Key::new(partition(agent), row.sk), "SET #revoked_at = :now")
        .only_if("attribute_not_exists(#revoked_at)")
        .bind("now", now)?;
    match db.write(write).await {
        Ok(_) => Ok(Some(now)),
        Err(refused @ WriteError::Refused(_)) => {
            let old = refused.refused(0).and_then(|refused| refused.old.clone());
            let old: Option<AccessToken> = old.map(crate::store::db::parse).transpose()?;
            Ok(old.and_then(|token| token.revoked_at).or(Some(now)))
        }
        Err(WriteError::Failed(error)) => Err(error),
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
