//! State of an identity check. It is decided once; later calls get the same decision.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256_parts;
use base::ids::{AgentId, RequestId};
use platform::store::db;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

/// Limits of a check: time for the person to answer, validity of a mailed code, number of mailed codes, number of guesses.
pub const VALID: Duration = Duration::from_secs(24 * 3600);
const CODE_VALID: Duration = Duration::from_secs(15 * 60);
pub const MAX_CODES: u32 = 3;
pub const MAX_TRIES: u32 = 5;
/// How long the row is kept for support.
const KEPT_SECS: i64 = 30 * 24 * 3600;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Session {
    pub request_id: RequestId,
    pub agent: AgentId,
    /// The address to which codes are mailed. `None` if the check does not prove control of an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    pub purpose: String,
    /// The vendor's session and page, if a vendor checks a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor_session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor_url: Option<String>,
    /// Hash of the last code mailed, and when it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code_until: Option<Timestamp>,
    /// Codes mailed and guesses made, in all.
    #[serde(default)]
    pub sent: u32,
    #[serde(default)]
    pub tries: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    pub expires_at: Timestamp,
    expires: i64,
}

/// The outcome. From a document, only the kind and the country are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// `approved`, `declined`, `resubmission_requested`, `expired` or `abandoned`.
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuing_country: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_matches: Option<bool>,
    pub decided_at: Timestamp,
}

impl Decision {
    pub fn new(status: &str, reason: Option<&str>, now: Timestamp) -> Decision {
        Decision {
            status: status.to_owned(),
            reason: reason.map(str::to_owned),
            document_type: None,
            issuing_country: None,
            name_matches: None,
            decided_at: now,
        }
    }
}

/// Outcome of a guess.
#[derive(Debug, PartialEq, Eq)]
pub enum Guess {
    Right,
    Wrong {
        left: u32,
    },
    /// No code was mailed, or it has expired.
    NoCode,
    /// The check was decided before.
    Decided,
}

impl Session {
    pub fn new(request_id: RequestId, agent: AgentId, purpose: &str, now: Timestamp) -> Session {
        let expires_at = now.plus(VALID);
        Session {
            request_id,
            agent,
            email: None,
            purpose: purpose.to_owned(),
            vendor_session: None,
            vendor_url: None,
            code: None,
            code_until: None,
            sent: 0,
            tries: 0,
            decision: None,
            expires_at,
            expires: expires_at.secs() + KEPT_SECS,
        }
    }

    pub fn is_open(&self, now: Timestamp) -> bool {
        self.decision.is_none() && now < self.expires_at
    }
}

fn key(request_id: RequestId) -> Key {
    Key::new(format!("IDENTITY#{request_id}"), "SESSION")
}

fn hash(request_id: RequestId, code: &str) -> String {
    const_hex::encode(sha256_parts(&[request_id.to_string().as_bytes(), code.as_bytes()]))
}

pub async fn load(db: &Db, request_id: RequestId) -> Result<Option<Session>, StoreError> {
    db.get_latest(&db.tables.agents, key(request_id)).await
}

/// Stores a new session, or returns the one that an earlier attempt stored.
pub async fn open(db: &Db, session: Session) -> Result<Session, StoreError> {
    let write = Write::put(&db.tables.agents, key(session.request_id), &session)?.only_if_new();
    match db.write(write).await {
        Ok(_) => Ok(session),
        Err(WriteError::Refused(_)) => Ok(load(db, session.request_id).await?.unwrap_or(session)),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Stores a decision unless there is one. Returns the decision in force, and whether it is this one. The e-mail address,
/// the code and the vendor's URL are removed.
pub async fn decide(db: &Db, request_id: RequestId, decision: Decision) -> Result<(Decision, bool), StoreError> {
    let write = Write::update(
        &db.tables.agents,
        key(request_id),
        "SET #decision = :decision REMOVE #code, #code_until, #email, #vendor_url",
    )
    .only_if("attribute_exists(#pk) AND attribute_not_exists(#decision)")
    .bind("decision", &decision)?;
    match db.write(write).await {
        Ok(_) => Ok((decision, true)),
        Err(WriteError::Refused(_)) => {
            let stands = load(db, request_id).await?.and_then(|session| session.decision);
            Ok((stands.ok_or_else(|| StoreError::new("a session that is gone"))?, false))
        }
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Stores the hash of a new code in place of the last one. False if too many were sent, or the check is over.
pub async fn new_code(db: &Db, session: &Session, code: &str, now: Timestamp) -> Result<bool, StoreError> {
    let set = "SET #code = :code, #code_until = :until ADD #sent :one";
    let write = Write::update(&db.tables.agents, key(session.request_id), set)
        .only_if("attribute_not_exists(#decision) AND #expires_at > :now AND #sent < :most")
        .bind("code", hash(session.request_id, code))?
        .bind("until", now.plus(CODE_VALID))?
        .bind("now", now)?
        .bind("one", 1)?
        .bind("most", MAX_CODES)?;
    db.write_if(write).await
}

/// Tries a code. Each guess is counted before it is compared, so parallel guesses cannot exceed the limit. The right code
/// decides the check, and so does the last wrong one.
pub async fn guess(db: &Db, request_id: RequestId, code: &str, now: Timestamp) -> Result<Guess, StoreError> {
    let write = Write::update(&db.tables.agents, key(request_id), "ADD #tries :one")
        .only_if("attribute_not_exists(#decision) AND #expires_at > :now AND #code_until > :now AND #tries < :most")
        .bind("one", 1)?
        .bind("now", now)?
        .bind("most", MAX_TRIES)?;
    let session: Session = match db.write(write).await {
        Ok(item) => db::parse(item)?,
        Err(WriteError::Refused(_)) => {
            let decided = load(db, request_id).await?.is_some_and(|session| !session.is_open(now));
            return Ok(if decided { Guess::Decided } else { Guess::NoCode });
        }
        Err(WriteError::Failed(error)) => Err(error)?,
    };
    let given = hash(request_id, code);
    let is_right = session.code.as_ref().is_some_and(|code| bool::from(code.as_bytes().ct_eq(given.as_bytes())));
    if is_right {
        let (_, is_mine) = decide(db, request_id, Decision::new("approved", None, now)).await?;
        return Ok(if is_mine { Guess::Right } else { Guess::Decided });
    }
    let left = MAX_TRIES.saturating_sub(session.tries);
    if left == 0 {
        decide(db, request_id, Decision::new("declined", Some("too_many_wrong_codes"), now)).await?;
    }
    Ok(Guess::Wrong { left })
}
