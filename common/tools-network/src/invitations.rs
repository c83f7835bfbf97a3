//! Invitations that an account sends.
//!
//! | item (table messages) | key |
//! |---|---|
//! | an invitation | `NETINVITATION#<account>` / `<invitation>` |
//! | its place among them ([`pages`]) | `NETINVITES#<account>` / `<time>#<invitation>` |
//! | the open invitation of a member, by how the owner writes it and by its id | `NETINVITED#<account>` / `<SHA-256 of the profile>` |
//! | the invitation with the provider's id | `NETINVITED#<account>` / `ID#<SHA-256 of the id>` |

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256;
use base::ids::{RequestId, uuid_of};
use platform::http::ApiError;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tools::lock;
use uuid::Uuid;

use crate::pages::{self, Asked, Look};
use crate::providers::member_name;

const KEPT: Duration = Duration::from_secs(180 * 24 * 3600);

pub const STATUSES: &[&str] = &["queued", "sent", "pending", "accepted", "withdrawn", "failed"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Queued,
    Sent,
    /// It may have been sent.
    Pending,
    Accepted,
    Withdrawn,
    Failed,
}

impl Status {
    /// Whether the member has it, or may have it or get it.
    pub fn is_open(self) -> bool {
        matches!(self, Status::Queued | Status::Sent | Status::Pending)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    pub id: Uuid,
    pub request: RequestId,
    pub status: Status,
    /// As the owner wrote it.
    pub profile: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The provider's id of the member, once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    member: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Timestamp>,
    pub created: Timestamp,
    pub updated: Timestamp,
    /// Counts the writes.
    pub revision: u32,
    expires: i64,
}

/// That a member has an invitation.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Invited {
    invitation: Uuid,
    is_open: bool,
    expires: i64,
}

impl Invitation {
    pub fn new(request: RequestId, profile: &str, note: Option<&str>, now: Timestamp) -> Invitation {
        Invitation {
            id: id_of(request),
            request,
            status: Status::Queued,
            profile: profile.to_owned(),
            note: note.map(str::to_owned),
            provider_id: None,
            member: None,
            accepted_at: None,
            created: now,
            updated: now,
            revision: 0,
            expires: now.plus(KEPT).secs(),
        }
    }

    pub fn view(&self) -> Value {
        json!({
            "invitation_id": self.id,
            "status": self.status,
            "profile": self.profile,
            "note": self.note,
            "accepted_at": self.accepted_at.map(|at| at.to_string()),
            "created_at": self.created.to_string(),
            "updated_at": self.updated.to_string(),
        })
    }

    /// The writes that record it. Refused if the member has an open one, but for one that was `left` behind ([`never_paid`]).
    pub fn begin(&self, db: &Db, account: Uuid, left: Option<Uuid>) -> Result<Vec<Write>, StoreError> {
        let table = &db.tables.messages;
        let invited = Invited { invitation: self.id, is_open: true, expires: self.expires };
        Ok(vec![
            Write::put(table, key(account, self.id), self)?
                .only_if("attribute_not_exists(#pk) OR #status = :queued")
                .bind("queued", Status::Queued)?,
            Write::put(table, invited_key(account, &self.profile), &invited)?
                .only_if("attribute_not_exists(#is_open) OR #is_open = :no OR #invitation = :left")
                .bind("no", false)?
                .bind("left", left.unwrap_or(self.id))?,
            pages::put(db, &list_of(account), self.created, self.id, Some(self.expires))?,
        ])
    }

    /// The writes that change its status.
    pub fn moved(
        &self,
        db: &Db,
        account: Uuid,
        status: Status,
        provider_id: Option<&str>,
        now: Timestamp,
    ) -> Result<Vec<Write>, StoreError> {
        let next = Invitation {
            status,
            provider_id: provider_id.map(str::to_owned).or_else(|| self.provider_id.clone()),
            accepted_at: if status == Status::Accepted { Some(now) } else { self.accepted_at },
            updated: now,
            revision: self.revision + 1,
            ..self.clone()
        };
        let table = &db.tables.messages;
        let mut writes = vec![
            Write::put(table, key(account, self.id), &next)?
                .only_if("#revision = :before")
                .bind("before", self.revision)?,
        ];
        let invited = |is_open| Invited { invitation: self.id, is_open, expires: next.expires };
        if !status.is_open() {
            let mut keys = vec![invited_key(account, &self.profile)];
            keys.extend(self.member.as_deref().map(|member| invited_key(account, member)));
            keys.dedup();
            for key in keys {
                writes.push(Write::put(table, key, &invited(false))?);
            }
        }
        if let Some(id) = provider_id {
            writes.push(Write::put(table, provider_key(account, id), &invited(true))?);
        }
        Ok(writes)
    }
}

pub fn id_of(request: RequestId) -> Uuid {
    uuid_of(&[b"network invitation", request.bytes()])
}

fn key(account: Uuid, id: Uuid) -> Key {
    Key::new(format!("NETINVITATION#{account}"), id.to_string())
}

/// The list of an account's invitations, by when they were bought.
fn list_of(account: Uuid) -> String {
    format!("NETINVITES#{account}")
}

/// Names a member the same however the owner writes it: with or without the address of the profile, and an id in any of its forms.
fn named(profile: &str) -> String {
    let name = member_name(profile).to_lowercase();
    Uuid::try_parse(&name).map_or(name, |id| id.to_string())
}

fn invited_key(account: Uuid, profile: &str) -> Key {
    Key::new(format!("NETINVITED#{account}"), const_hex::encode(sha256(named(profile).as_bytes())))
}

fn provider_key(account: Uuid, id: &str) -> Key {
    Key::new(format!("NETINVITED#{account}"), format!("ID#{}", const_hex::encode(sha256(id.as_bytes()))))
}

pub async fn load(db: &Db, account: Uuid, id: Uuid) -> Result<Option<Invitation>, StoreError> {
    db.get_latest(&db.tables.messages, key(account, id)).await
}

/// The writes that change the status of an invitation, if it is open and has another one.
pub async fn becomes(
    db: &Db,
    (account, id): (Uuid, Uuid),
    status: Status,
    provider_id: Option<&str>,
    now: Timestamp,
) -> Result<Vec<Write>, StoreError> {
    let found = load(db, account, id).await?;
    match found.filter(|found| found.status.is_open() && found.status != status) {
        Some(found) => found.moved(db, account, status, provider_id, now),
        None => Ok(Vec::new()),
    }
}

/// The open invitation of a member.
pub async fn open_of(db: &Db, account: Uuid, profile: &str) -> Result<Option<Invitation>, StoreError> {
    let found: Option<Invited> = db.get_latest(&db.tables.messages, invited_key(account, profile)).await?;
    match found.filter(|found| found.is_open) {
        Some(found) => load(db, account, found.invitation).await,
        None => Ok(None),
    }
}

/// Whether a queued invitation will never be sent, because its payment came to nothing and its job has ended with that.
pub async fn never_paid(db: &Db, invitation: &Invitation) -> Result<bool, StoreError> {
    Ok(invitation.status == Status::Queued && !lock::is_open(db, invitation.request).await?)
}

/// The writes by which an invitation is that of the member with this id of the provider's. `None`: the member has another open one.
/// Refused if it gets another meanwhile.
pub async fn meets(db: &Db, account: Uuid, id: Uuid, member: &str) -> Result<Option<Vec<Write>>, StoreError> {
    let mut left = id;
    if let Some(open) = open_of(db, account, member).await?.filter(|open| open.id != id) {
        if !never_paid(db, &open).await? {
            return Ok(None);
        }
        left = open.id;
    }
    let Some(invitation) = load(db, account, id).await? else { return Ok(Some(Vec::new())) };
    let table = &db.tables.messages;
    let next = Invitation { member: Some(member.to_owned()), revision: invitation.revision + 1, ..invitation.clone() };
    let put = Write::put(table, key(account, id), &next)?.only_if("#revision = :before");
    let mut writes = vec![put.bind("before", invitation.revision)?];
    let place = invited_key(account, member);
    if place != invited_key(account, &invitation.profile) {
        let invited = Invited { invitation: id, is_open: true, expires: invitation.expires };
        let take = Write::put(table, place, &invited)?;
        let take = take
            .only_if("attribute_not_exists(#is_open) OR #is_open = :no OR #invitation = :own OR #invitation = :left");
        writes.push(take.bind("no", false)?.bind("own", id)?.bind("left", left)?);
    }
    Ok(Some(writes))
}

/// The invitation with this id of the provider's was accepted.
pub async fn accepted(db: &Db, account: Uuid, provider_id: &str, now: Timestamp) -> Result<(), StoreError> {
    let found: Option<Invited> = db.get_latest(&db.tables.messages, provider_key(account, provider_id)).await?;
    let Some(found) = found else { return Ok(()) };
    match load(db, account, found.invitation).await? {
        Some(invitation) => accept(db, account, &invitation, now).await,
        None => Ok(()),
    }
}

/// A member is a connection now: an invitation of theirs that was sent, or may have been, was accepted.
pub async fn connected(db: &Db, account: Uuid, names: &[&str], now: Timestamp) -> Result<(), StoreError> {
    for name in names {
        if let Some(invitation) = open_of(db, account, name).await?
            && invitation.status != Status::Queued
        {
            return accept(db, account, &invitation, now).await;
        }
    }
    Ok(())
}

async fn accept(db: &Db, account: Uuid, invitation: &Invitation, now: Timestamp) -> Result<(), StoreError> {
    if !invitation.status.is_open() {
        return Ok(());
    }
    match db.transact(&invitation.moved(db, account, Status::Accepted, None, now)?).await {
        Err(platform::store::WriteError::Failed(error)) => Err(error),
        _ => Ok(()),
    }
}

/// What of the invitations is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<'a> {
    pub status: Option<&'a str>,
    pub changed_since: Option<Timestamp>,
}

impl Choice<'_> {
    fn look(&self, one: &Invitation) -> Look {
        let is_taken = self.status.is_none_or(|status| json!(one.status) == status)
            && self.changed_since.is_none_or(|since| one.updated >= since);
        if is_taken { Look::Take } else { Look::Pass }
    }
}

/// A page of an account's invitations, the newest first, and the cursor of the next one. It may have fewer than `limit` although there
/// are more.
///
/// # Errors
/// 400 `invalid_cursor`
pub async fn list(
    db: &Db,
    account: Uuid,
    choice: &Choice<'_>,
    cursor: Option<&str>,
    limit: usize,
) -> Result<(Vec<Invitation>, Option<String>), ApiError> {
    let is_plain = choice.status.is_none() && choice.changed_since.is_none();
    let asked = Asked { partition: &list_of(account), cursor, limit, is_plain };
    pages::page(db, &asked, |id| key(account, id), |one: &Invitation| one.created, |one: &Invitation| choice.look(one))
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_one_name() {
        for same in ["https://www.linkedin.com/in/Ren%C3%A9e", "renée", "Renée"] {
            assert_eq!(named(same), "renée", "{same}");
        }
        for same in ["https://www.linkedin.com/in/Jane-Doe/", " jane-doe", "linkedin.com/in/jane-doe?x=1"] {
            assert_eq!(named(same), "jane-doe", "{same}");
        }
        let id = "0b8ac6f0-41d2-4a2e-9c0d-1f2e3d4c5b6a";
        for same in ["0B8AC6F041D24A2E9C0D1F2E3D4C5B6A", "{0b8ac6f0-41d2-4a2e-9c0d-1f2e3d4c5b6a}", id] {
            assert_eq!(named(same), id, "{same}");
        }
        for status in STATUSES {
            assert_eq!(json!(serde_json::from_value::<Status>(json!(status)).unwrap()), json!(status));
        }
    }
}
