//! The login page of the local network. Whoever has its link gives it a code that an agent read with its own proof; the member who
//! logs in is that agent. So every member is an agent of this service, and nobody needs a password.
//!
//! | item (table messages) | key |
//! |---|---|
//! | a login page | `NETLOCAL#LOGIN#<SHA-256 of its token>` / `LOGIN` |
//! | a code | `NETLOCAL#CODE#<SHA-256>` / `CODE` |

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::{self, sha256};
use base::ids::{AgentId, uuid_of};
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::members;
use crate::providers;

/// How long a code can be used.
pub const CODE_VALID: Duration = Duration::from_secs(10 * 60);
/// Wrong codes that a page takes.
const MOST_TRIES: u32 = 10;
/// Letters of a code: none looks like another.
const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
/// 50 bits.
const CODE_LENGTH: usize = 10;
const DAY_SECS: i64 = 24 * 3600;

/// A login page.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Page {
    pub agent: AgentId,
    pub intent: Uuid,
    pub expires_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_url: Option<String>,
    /// The provider's id of the account that logs in again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    again: Option<String>,
    #[serde(default)]
    tries: u32,
    /// Somebody has logged in with it.
    #[serde(default)]
    is_used: bool,
    expires: i64,
}

#[derive(Serialize, Deserialize)]
struct Code {
    agent: AgentId,
    name: String,
    headline: String,
    expires_at: Timestamp,
    #[serde(default)]
    is_used: bool,
    expires: i64,
}

/// What became of a code that was entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entered {
    /// The account that is logged in, by its id at the provider.
    Right(String),
    Wrong,
    /// The page takes no more codes.
    Over,
}

fn page_key(token: &str) -> Key {
    Key::new(format!("NETLOCAL#LOGIN#{}", const_hex::encode(sha256(token.as_bytes()))), "LOGIN")
}

fn code_key(code: &str) -> Key {
    Key::new(format!("NETLOCAL#CODE#{}", const_hex::encode(sha256(code.as_bytes()))), "CODE")
}

/// Makes a login page: its address.
pub async fn begin(db: &Db, login: &providers::Login<'_>, now: Timestamp) -> Result<String, StoreError> {
    let token = const_hex::encode(digest::random::<32>());
    let page = Page {
        agent: login.agent,
        intent: login.intent,
        expires_at: login.expires_at,
        success_url: login.success_url.map(str::to_owned),
        failure_url: login.failure_url.map(str::to_owned),
        again: login.again.map(str::to_owned),
        tries: 0,
        is_used: false,
        expires: now.secs() + DAY_SECS,
    };
    db.write(Write::put(&db.tables.messages, page_key(&token), &page)?.only_if_new()).await?;
    Ok(format!("{}/v1/tools/linkedin/local/login/{token}", login.origin))
}

/// The page of a token.
pub async fn find(db: &Db, token: &str) -> Result<Option<Page>, StoreError> {
    db.get_latest(&db.tables.messages, page_key(token)).await
}

/// A new code, with which somebody logs in as this agent.
pub async fn issue(
    db: &Db,
    agent: AgentId,
    (name, headline): (&str, &str),
    now: Timestamp,
) -> Result<(String, Timestamp), StoreError> {
    let random = digest::random::<CODE_LENGTH>();
    let code: String = random.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
    let expires_at = now.plus(CODE_VALID);
    let row = Code {
        agent,
        name: name.to_owned(),
        headline: headline.to_owned(),
        expires_at,
        is_used: false,
        expires: now.secs() + DAY_SECS,
    };
    db.write(Write::put(&db.tables.messages, code_key(&code), &row)?.only_if_new()).await?;
    Ok((code, expires_at))
}

/// Takes a code at a page. A right one is used up with the page, and its agent is a member from then on.
pub async fn enter(db: &Db, token: &str, page: &Page, code: &str, now: Timestamp) -> Result<Entered, StoreError> {
    let tried = Write::update(&db.tables.messages, page_key(token), "ADD #tries :one")
        .only_if("#tries < :most AND #expires_at > :now AND #is_used = :no")
        .bind("one", 1)?
        .bind("no", false)?
        .bind("most", MOST_TRIES)?
        .bind("now", now)?;
    if !db.write_if(tried).await? {
        return Ok(Entered::Over);
    }
    let code: String = code.trim().to_ascii_uppercase().chars().take(64).collect();
    let found: Option<Code> = db.get_latest(&db.tables.messages, code_key(&code)).await?;
    let Some(found) = found else { return Ok(Entered::Wrong) };
    let used = Write::update(&db.tables.messages, code_key(&code), "SET #is_used = :yes")
        .only_if("#is_used = :no AND #expires_at > :now")
        .bind("yes", true)?
        .bind("no", false)?
        .bind("now", now)?;
    let taken = Write::update(&db.tables.messages, page_key(token), "SET #is_used = :yes")
        .only_if("#is_used = :no")
        .bind("yes", true)?
        .bind("no", false)?;
    match db.transact(&[used, taken]).await {
        Ok(()) => {}
        Err(refused @ WriteError::Refused(_)) if refused.refused(1).is_some() => return Ok(Entered::Over),
        Err(WriteError::Refused(_)) => return Ok(Entered::Wrong),
        Err(WriteError::Failed(error)) => return Err(error),
    }
    let member = members::join(db, found.agent, &found.name, &found.headline, now).await?;
    let upstream = upstream_of(db, page, &member).await?;
    members::log_in(db, member.id, &upstream).await?;
    Ok(Entered::Right(upstream))
}

/// The account that a member logs in to: the one that the page is for, if it is this member's, and a new one otherwise. Somebody else's
/// login must not reach an account that is in use.
async fn upstream_of(db: &Db, page: &Page, member: &members::Member) -> Result<String, StoreError> {
    if let Some(again) = &page.again
        && members::session(db, again).await?.is_some_and(|session| session.member == member.id)
    {
        return Ok(again.clone());
    }
    Ok(uuid_of(&[b"login at the local network", page.intent.as_bytes()]).to_string())
}
