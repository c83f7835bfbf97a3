//! How an agent's number answers, stored: put as a whole, and switched off.
//!
//! | item | table | key |
//! |---|---|---|
//! | the settings of a number | messages | `AGENT#<agent>` / `INBOUND#<phone id>` |
//! | the number, with `inbound` as a copy for lists | messages | `AGENT#<agent>` / `PHONE#<source>` |
//! | the endpoint that completed calls are posted to | agents | `AGENT#<agent>` / `WEBHOOK#<ulid>` |
//!
//! One transaction writes all three, so a number never reports to an address that its settings do not name. Each row is
//! written only if it is as it was read: of settings that are put at the same time, one is last, with its address and the one
//! secret that signs.
//!
//! The endpoint stays when the address is removed, disabled, with its log. An address that is set again gets a new secret.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256_parts;
use base::ids::{AgentId, EndpointId};
use ledger::webhooks::endpoint::{self, Disabled};
use ledger::webhooks::{Endpoint, EventKind};
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tools_sms::number::Number;
use tools_sms::phone::{self, Owner, Phone};
use uuid::Uuid;

use crate::config::InboundConfig;

/// How often settings are put again because they, or the endpoint, were changed meanwhile.
const TRIES: usize = 10;

/// The settings of a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// [`Phone::id`]
    pub phone_id: Uuid,
    pub number: Number,
    pub config: InboundConfig,
    /// The idempotency key of the request that set the webhook's address. If its answer was lost, the same request is told
    /// the secret again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_by: Option<String>,
    /// Number of changes. A change from an older revision is refused.
    pub revision: u32,
    pub updated: Timestamp,
}

/// Settings that were put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    pub stored: Stored,
    /// The endpoint's secret to show, by its number; `None` if the webhook's address has not changed.
    pub new_secret: Option<u32>,
    pub endpoint: EndpointId,
}

fn key(agent: AgentId, phone_id: Uuid) -> Key {
    Key::new(format!("AGENT#{agent}"), format!("INBOUND#{phone_id}"))
}

/// The id of the endpoint of a number. It stays when the address changes.
pub fn endpoint_id(phone_id: Uuid) -> EndpointId {
    EndpointId::named(&sha256_parts(&[b"number", phone_id.as_bytes()]))
}

/// The settings of an agent's number, from a strongly consistent read.
pub async fn load(db: &Db, agent: AgentId, phone_id: Uuid) -> Result<Option<Stored>, StoreError> {
    db.get_latest(&db.tables.messages, key(agent, phone_id)).await
}

/// The settings of a number, by its owner.
pub async fn of_number(db: &Db, owner: &Owner) -> Result<Option<Stored>, StoreError> {
    load(db, owner.agent, owner.id).await
}

/// A condition for a transaction: the settings are as they were read.
pub fn unchanged(db: &Db, owner: &Owner, seen: &Stored) -> Result<Write, StoreError> {
    let check = Write::check(&db.tables.messages, key(owner.agent, owner.id));
    check.only_if("#revision = :seen").bind("seen", seen.revision)
}

/// Replaces the settings of a number. Repeats if they, or the endpoint, are changed meanwhile. `set_by`: the request's
/// idempotency key. `None`: the agent does not have this number any more.
pub async fn save(
    db: &Db,
    phone: &Phone,
    config: &InboundConfig,
    set_by: Option<&str>,
    now: Timestamp,
) -> Result<Option<Saved>, StoreError> {
    for _ in 0..TRIES {
        let seen = load(db, phone.agent, phone.id).await?;
        let had = endpoint::load(db, phone.agent, endpoint_id(phone.id)).await?;
        let is_new_address =
            seen.as_ref().and_then(|seen| seen.config.webhook_url.as_ref()) != config.webhook_url.as_ref();
        // A request that runs again (`gate::idempotency`): its first answer did not arrive.
        let is_repeat = set_by.is_some() && seen.as_ref().and_then(|seen| seen.set_by.as_deref()) == set_by;
        let endpoint = endpoint_after(had.as_ref(), phone, config.webhook_url.as_deref(), is_new_address, now);
        let shows_secret = config.webhook_url.is_some() && (is_new_address || is_repeat);
        let secret = endpoint.as_ref().or(had.as_ref()).map(|endpoint| endpoint.secret);
        let stored = Stored {
            phone_id: phone.id,
            number: phone.number.clone(),
            config: config.clone(),
            set_by: match is_new_address {
                true => set_by.map(str::to_owned),
                false => seen.as_ref().and_then(|seen| seen.set_by.clone()),
            },
            revision: next_revision(seen.as_ref()),
            updated: now,
        };
        match write(db, phone, &stored, seen.as_ref(), endpoint.as_ref().map(|after| (after, had.as_ref()))).await? {
            Written::Yes => {
                let new_secret = secret.filter(|_| shows_secret);
                return Ok(Some(Saved { stored, new_secret, endpoint: endpoint_id(phone.id) }));
            }
            Written::ChangedMeanwhile => {}
            Written::NoNumber => return Ok(None),
        }
    }
    Err(changed_too_often())
}

/// Switches a number off; everything else is kept, also the endpoint, to which open calls are still reported. `None`: there
/// are no settings, or the agent does not have this number any more.
pub async fn disable(db: &Db, phone: &Phone, now: Timestamp) -> Result<Option<Stored>, StoreError> {
    for _ in 0..TRIES {
        let Some(seen) = load(db, phone.agent, phone.id).await? else { return Ok(None) };
        if !seen.config.enabled {
            return Ok(Some(seen));
        }
        let config = InboundConfig { enabled: false, ..seen.config.clone() };
        let stored = Stored { config, revision: next_revision(Some(&seen)), updated: now, ..seen.clone() };
        match write(db, phone, &stored, Some(&seen), None).await? {
            Written::Yes => return Ok(Some(stored)),
            Written::ChangedMeanwhile => {}
            Written::NoNumber => return Ok(None),
        }
    }
    Err(changed_too_often())
}

fn changed_too_often() -> StoreError {
    StoreError::new("a number's settings do not stop changing")
}

fn next_revision(seen: Option<&Stored>) -> u32 {
    seen.map_or(1, |seen| seen.revision.wrapping_add(1))
}

/// The endpoint as the settings want it; `None` if it stays as it is. An address that is put again is enabled again, for
/// example after its receiver answered 410.
fn endpoint_after(
    had: Option<&Endpoint>,
    phone: &Phone,
    url: Option<&str>,
    is_new_address: bool,
    now: Timestamp,
) -> Option<Endpoint> {
    let Some(had) = had else {
        let events = vec![EventKind::VoiceInboundCompleted];
        let new = Endpoint::new(endpoint_id(phone.id), phone.agent, url?.to_owned(), events, now);
        let description = Some(format!("Calls to {}", phone.number.as_str()));
        return Some(Endpoint { number: Some(phone.id), description, ..new });
    };
    let after = match url {
        None => Endpoint { disabled: had.disabled.or(Some(Disabled::ByOwner)), ..had.clone() },
        Some(url) if is_new_address => {
            // Whoever had the old address has no secret that still signs.
            let rotated = had.rotated(Duration::ZERO, now);
            Endpoint { url: url.to_owned(), disabled: None, strikes: 0, resting: None, ..rotated }
        }
        Some(_) if had.disabled.is_some() => Endpoint { disabled: None, strikes: 0, resting: None, ..had.clone() },
        Some(_) => return None,
    };
    let revision = had.revision.wrapping_add(1);
    (after != *had).then_some(Endpoint { revision, updated: now, ..after })
}

enum Written {
    Yes,
    /// Another request was faster.
    ChangedMeanwhile,
    /// The number's row is that of another number now.
    NoNumber,
}

/// Writes the settings, their copy in the number's row, and the endpoint (as it will be, and as it was read).
async fn write(
    db: &Db,
    phone: &Phone,
    stored: &Stored,
    seen: Option<&Stored>,
    endpoint: Option<(&Endpoint, Option<&Endpoint>)>,
) -> Result<Written, StoreError> {
    let table = &db.tables.messages;
    let put = Write::put(table, key(phone.agent, phone.id), stored)?;
    let put = match seen {
        None => put.only_if_new(),
        Some(seen) => put.only_if("#revision = :seen").bind("seen", seen.revision)?,
    };
    let set = "SET #inbound = :inbound, #last_used_at = :now";
    let copy = Write::update(table, phone::key_of(phone.agent, &phone.source), set)
        .only_if("#number = :number")
        .bind("inbound", stored.config.enabled)?
        .bind("now", stored.updated)?
        .bind("number", &phone.number)?;
    let mut writes = vec![put, copy];
    if let Some((after, had)) = endpoint {
        let put = endpoint::configured(db, after)?;
        writes.push(match had {
            None => put.only_if_new(),
            Some(had) => put.only_if("#revision = :seen").bind("seen", had.revision)?,
        });
    }
    match db.transact(&writes).await {
        Ok(()) => Ok(Written::Yes),
        Err(refused) if refused.refused(1).is_some() => Ok(Written::NoNumber),
        Err(WriteError::Refused(_)) => Ok(Written::ChangedMeanwhile),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// The writes that end the settings of a number that is released, or in whose place its agent has another one: they are deleted,
/// and the endpoint is disabled. Settings that are put at the same time are written in a transaction with the number's row, and
/// so refuse its release, or are refused.
pub(crate) async fn ended(db: &Db, phone: &Phone, now: Timestamp) -> Result<Vec<Write>, StoreError> {
    let mut writes = vec![Write::delete(&db.tables.messages, key(phone.agent, phone.id))];
    if let Some(had) = endpoint::load(db, phone.agent, endpoint_id(phone.id)).await?
        && let Some(after) = endpoint_after(Some(&had), phone, None, true, now)
    {
        writes.push(endpoint::configured(db, &after)?.only_if("#revision = :seen").bind("seen", had.revision)?);
    }
    Ok(writes)
}

/// The settings as on the wire. `secret`: that of the webhook, in the answer to the request that set its address.
pub fn view(stored: &Stored, secret: Option<String>) -> Value {
    let mut view = stored.config.view();
    view["phone_number"] = json!(stored.number);
    view["phone_number_id"] = json!(stored.phone_id);
    view["updated_at"] = json!(stored.updated.to_string());
    if let Some(secret) = secret {
        view["webhook_secret"] = json!(secret);
    }
    view
}

#[cfg(test)]
mod tests {
    use base::ids::RequestId;
    use tools_sms::phone::EMBEDDED;

    use super::*;

    fn phone() -> Phone {
        Phone {
            id: Uuid::nil(),
            agent: AgentId::from_bytes([1; 16]),
            number: Number::fictitious(7),
            source: EMBEDDED.to_owned(),
            bought_by: RequestId::random(),
            created: at(0),
            last_used_at: None,
            leased: false,
            lost_at: None,
            inbound: None,
            line: None,
        }
    }

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn the_endpoint_follows_the_address() {
        const ONE: &str = "https://example.com/one";
        const OTHER: &str = "https://example.com/other";
        let phone = phone();
        let after = |had: Option<&Endpoint>, url, is_new, secs| endpoint_after(had, &phone, url, is_new, at(secs));
        assert_eq!(after(None, None, false, 0), None);
        let first = after(None, Some(ONE), true, 0).unwrap();
        assert_eq!((first.number, first.secret, first.revision), (Some(phone.id), 1, 1));
        assert_eq!((first.id, first.url.as_str(), first.disabled), (endpoint_id(phone.id), ONE, None));
        assert_eq!(after(Some(&first), Some(ONE), false, 1), None, "nothing has changed");

        let moved = after(Some(&first), Some(OTHER), true, 2).unwrap();
        assert_eq!((moved.url.as_str(), moved.secret, moved.revision), (OTHER, 2, 2));
        assert!(moved.older.is_empty(), "the old secret signs no more");
        let removed = after(Some(&moved), None, true, 3).unwrap();
        assert_eq!((removed.disabled, removed.secret), (Some(Disabled::ByOwner), 2));
        assert_eq!(after(Some(&removed), None, false, 4), None);
        let again = after(Some(&removed), Some(OTHER), true, 5).unwrap();
        assert_eq!((again.disabled, again.secret, again.revision), (None, 3, 4));

        // Its receiver answered 410, or was slow: putting the same address tries it again, with the same secret.
        let gone = Endpoint { disabled: Some(Disabled::Gone), strikes: 3, resting: Some(at(900)), ..again.clone() };
        let back = after(Some(&gone), Some(OTHER), false, 6).unwrap();
        assert_eq!((back.disabled, back.strikes, back.resting, back.secret), (None, 0, None, 3));
        assert_eq!(after(Some(&gone), None, true, 6), None, "it stays disabled, and says why");
    }
}
