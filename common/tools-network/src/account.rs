//! Accounts of agents at the network: their state, their grant, and what is shown of them.
//!
//! | item (table messages) | key |
//! |---|---|
//! | an account | `NETAGENT#<agent>` / `ACCOUNT#<account>` |
//! | the account of a provider's id | `NETUPSTREAM#<SHA-256 of provider and id>` / `ACCOUNT` |
//! | the account that a member has here | `NETMEMBER#<SHA-256 of provider and member>` / `ACCOUNT` |
//! | when it is looked at for idleness | `NETIDLE#<0..3>` / `<due>#<account>` |
//! | how many are open at a provider | `NETACCOUNTS#<provider>` / `OPEN` |
//!
//! The rows of a family that one claim or one revocation changes are all in this table, so that one statement of a role allows the
//! whole transaction.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256_parts;
use base::ids::{AgentId, uuid_of};
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, WriteError, due};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Without a call of its owner for so long, an account is given up.
pub const IDLE: Duration = DAY.saturating_mul(30);
/// The end of the idle time is moved at most so often: a write for each call would cost as much as the call.
const MOVED_AFTER: Duration = DAY;
/// Partitions of the list of idle accounts.
pub const SHARDS: u8 = 4;
/// Most accounts of an agent that are not revoked. The provider may charge the operator for each, by the month.
pub const MOST: usize = 5;
/// Most rows of an agent that are read: revoked ones stay, and only so many can be connected in a day.
const MOST_READ: usize = 1_000;

/// What an owner may allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowed {
    Read,
    Reply,
    ViewProfile,
    React,
    Invite,
    /// May be asked for, and is never allowed.
    Comment,
}

pub const ACTIONS: &[&str] = &["read", "reply", "view_profile", "react", "invite", "comment"];

/// A set of allowed actions, in the order of [`ACTIONS`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Grant(Vec<Allowed>);

impl Grant {
    /// The actions with these names; others do not count.
    pub fn of<'a>(names: impl Iterator<Item = &'a str>) -> Grant {
        let mut actions: Vec<Allowed> = names.filter_map(|name| serde_json::from_value(json!(name)).ok()).collect();
        actions.sort_unstable();
        actions.dedup();
        Grant(actions)
    }

    /// What of a request is allowed.
    pub fn given(&self) -> Grant {
        Grant(self.0.iter().copied().filter(|action| *action != Allowed::Comment).collect())
    }

    pub fn has(&self, action: Allowed) -> bool {
        self.0.contains(&action)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Connected,
    ReconnectRequired,
    Error,
    /// By its owner, or because it was idle.
    Revoked,
    DeletedUpstream,
}

/// A provider's word about an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Word {
    Ok,
    Error,
    Stopped,
    Credentials,
    Connecting,
    CreationSuccess,
    Reconnected,
    SyncSuccess,
    Deleted,
}

pub const WORDS: &[&str] = &[
    "OK",
    "ERROR",
    "STOPPED",
    "CREDENTIALS",
    "CONNECTING",
    "CREATION_SUCCESS",
    "RECONNECTED",
    "SYNC_SUCCESS",
    "DELETED",
];

impl Status {
    /// The status after a provider's word; `None`: it stays. What is revoked or deleted does not come back.
    pub fn after(self, word: Word) -> Option<Status> {
        let next = match (self, word) {
            (Status::Revoked | Status::DeletedUpstream, _) | (_, Word::Connecting) => return None,
            (_, Word::Ok | Word::Reconnected | Word::CreationSuccess | Word::SyncSuccess) => Status::Connected,
            (_, Word::Credentials | Word::Stopped) => Status::ReconnectRequired,
            (_, Word::Error) => Status::Error,
            (_, Word::Deleted) => Status::DeletedUpstream,
        };
        (next != self).then_some(next)
    }
}

/// What the member pays the network, which decides how much it allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Also if nothing is known.
    #[default]
    Free,
    Paid,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub id: Uuid,
    pub agent: AgentId,
    /// Through whom it is used. One that another provider has is not reached after a change of the setting.
    pub provider: String,
    /// The provider's id. Only the operator sees it.
    pub upstream: String,
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    #[serde(default)]
    pub tier: Tier,
    pub grant: Grant,
    /// Counts the changes of the grant.
    pub grant_version: u32,
    pub connected_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reconnected_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_status_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    pub idle_revoke_at: Timestamp,
    /// The provider has deleted the account, after it was given up here.
    #[serde(default)]
    pub forgotten: bool,
    /// Counts the writes.
    pub revision: u32,
}

/// Where a provider's id, a member or a due row leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub agent: AgentId,
    pub account: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
}

impl Account {
    pub fn place(&self) -> Place {
        Place { agent: self.agent, account: self.id, due: None }
    }

    /// Whose limits are used: the member's, or the account's if the member is not known.
    pub fn counted(&self) -> Uuid {
        match &self.member {
            Some(member) => uuid_of(&[b"network member", self.provider.as_bytes(), b"/", member.as_bytes()]),
            None => self.id,
        }
    }

    pub fn is_open(&self) -> bool {
        !matches!(self.status, Status::Revoked | Status::DeletedUpstream)
    }

    /// The writes that put the next state, on the condition that nobody changed it since it was read. One that ends makes room for
    /// another at its provider.
    pub fn change(&self, db: &Db, next: &Account) -> Result<Vec<Write>, StoreError> {
        let next = Account { revision: self.revision + 1, ..next.clone() };
        let put = Write::put(&db.tables.messages, key(self.agent, self.id), &next)?
            .only_if("#revision = :before")
            .bind("before", self.revision)?;
        let mut writes = vec![put];
        if self.is_open() && !next.is_open() {
            let less = Write::update(&db.tables.messages, open_key(&self.provider), "ADD #open :less");
            writes.push(less.bind("less", -1)?);
        }
        Ok(writes)
    }

    /// Puts the next state. False: somebody has changed it since it was read.
    pub async fn save(&self, db: &Db, next: &Account) -> Result<bool, StoreError> {
        match db.apply(self.change(db, next)?).await {
            Ok(()) => Ok(true),
            Err(WriteError::Refused(_)) => Ok(false),
            Err(WriteError::Failed(error)) => Err(error),
        }
    }

    /// The account when its owner has just used it, if that has to be written.
    pub fn used(&self, now: Timestamp) -> Option<Account> {
        let until = now.plus(IDLE);
        let is_old = self.idle_revoke_at.plus(MOVED_AFTER) < until;
        (self.is_open() && is_old).then(|| Account { idle_revoke_at: until, ..self.clone() })
    }

    /// The account after a provider's word, if that has to be written.
    pub fn told(&self, word: Word, now: Timestamp) -> Option<Account> {
        let status = self.status.after(word)?;
        Some(Account { status, last_status_at: Some(now), ..self.clone() })
    }

    /// The account without its grant. `None`: it is revoked already.
    pub fn revoked(&self, now: Timestamp) -> Option<Account> {
        (self.status != Status::Revoked).then(|| Account {
            status: Status::Revoked,
            grant: Grant::default(),
            grant_version: self.grant_version + 1,
            revoked_at: Some(now),
            ..self.clone()
        })
    }

    /// As its owner sees it, with its sync and its limits.
    pub fn view(&self, sync: &Value, limits: &Value) -> Value {
        let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
        json!({
            "id": self.id,
            "status": self.status,
            "display_name": self.display_name,
            "member_urn": self.member,
            "allowed_actions": self.grant,
            "grant_version": self.grant_version,
            "connected_at": self.connected_at.to_string(),
            "reconnected_at": time(self.reconnected_at),
            "last_status_at": time(self.last_status_at),
            "revoked_at": time(self.revoked_at),
            "reconnect_required": matches!(self.status, Status::ReconnectRequired | Status::Error),
            "idle_revoke_at": self.is_open().then(|| self.idle_revoke_at.to_string()),
            "sync": sync,
            "limits": limits,
        })
    }

    /// The writes that connect it for the first time. Refused if its provider has `most` accounts of this deployment.
    pub fn connect(&self, db: &Db, most: u32) -> Result<Vec<Write>, StoreError> {
        let table = &db.tables.messages;
        let count = Write::update(table, open_key(&self.provider), "ADD #open :one")
            .only_if("attribute_not_exists(#open) OR #open < :most")
            .bind("one", 1)?
            .bind("most", most)?;
        Ok(vec![
            Write::put(table, key(self.agent, self.id), self)?.only_if_new(),
            Write::put(table, upstream_key(&self.provider, &self.upstream), &self.place())?,
            idle_row(db, self.place(), self.idle_revoke_at)?,
            count,
        ])
    }
}

fn partition(agent: AgentId) -> String {
    format!("NETAGENT#{agent}")
}

pub fn key(agent: AgentId, id: Uuid) -> Key {
    Key::new(partition(agent), format!("ACCOUNT#{id}"))
}

fn digest(kind: &str, provider: &str, name: &str) -> String {
    const_hex::encode(sha256_parts(&[kind.as_bytes(), provider.as_bytes(), name.as_bytes()]))
}

fn upstream_key(provider: &str, upstream: &str) -> Key {
    Key::new(format!("NETUPSTREAM#{}", digest("upstream", provider, upstream)), "ACCOUNT")
}

pub fn member_key(provider: &str, member: &str) -> Key {
    Key::new(format!("NETMEMBER#{}", digest("member", provider, member)), "ACCOUNT")
}

fn open_key(provider: &str) -> Key {
    Key::new(format!("NETACCOUNTS#{provider}"), "OPEN")
}

/// How many accounts are open at a provider, of all agents.
pub async fn open_at(db: &Db, provider: &str) -> Result<i64, StoreError> {
    #[derive(Deserialize)]
    struct Count {
        open: i64,
    }
    let count: Option<Count> = db.get_latest(&db.tables.messages, open_key(provider)).await?;
    Ok(count.map_or(0, |count| count.open))
}

fn idle_partition(shard: u8) -> String {
    format!("NETIDLE#{shard}")
}

/// The row of the list of idle accounts.
pub fn idle_row(db: &Db, place: Place, at: Timestamp) -> Result<Write, StoreError> {
    let shard = place.account.as_bytes()[15] % SHARDS;
    let key = Key::new(idle_partition(shard), due::row(at, place.account));
    Write::put(
        &db.tables.messages,
        key,
        &IdleRow { place: Place { due: Some(at), ..place }, expires: at.plus(DAY).secs() },
    )
}

#[derive(Serialize, Deserialize)]
struct IdleRow {
    place: Place,
    /// After its time the row is of no use: the chore has looked, or the next row stands.
    expires: i64,
}

/// The accounts of a partition whose idle time may be over, the longest due first, after the last one that was seen.
pub async fn idle(db: &Db, shard: u8, now: Timestamp, limit: usize) -> Result<Vec<Place>, StoreError> {
    let rows: Vec<IdleRow> =
        db.query(due::rows(&db.tables.messages, &idle_partition(shard), now, limit)?.latest()).await?;
    Ok(rows.into_iter().map(|row| row.place).collect())
}

/// Takes a row off the list.
pub fn idle_done(db: &Db, place: Place) -> Write {
    let shard = place.account.as_bytes()[15] % SHARDS;
    let key = Key::new(idle_partition(shard), due::row(place.due.unwrap_or_default(), place.account));
    Write::delete(&db.tables.messages, key)
}

/// The account, consistent.
pub async fn load(db: &Db, agent: AgentId, id: Uuid) -> Result<Option<Account>, StoreError> {
    db.get_latest(&db.tables.messages, key(agent, id)).await
}

/// All of an agent's, the newest first.
pub async fn list(db: &Db, agent: AgentId) -> Result<Vec<Account>, StoreError> {
    let query = Query::prefixed(&db.tables.messages, &partition(agent), "ACCOUNT#", MOST_READ)?;
    let mut all: Vec<Account> = db.query(query.latest()).await?;
    all.sort_by_key(|account| (std::cmp::Reverse(account.connected_at), account.id));
    Ok(all)
}

/// The account of a provider's id.
pub async fn of_upstream(db: &Db, provider: &str, upstream: &str) -> Result<Option<Account>, StoreError> {
    at(db, upstream_key(provider, upstream)).await
}

/// The account that a member has here, if one was ever connected.
pub async fn of_member(db: &Db, provider: &str, member: &str) -> Result<Option<Account>, StoreError> {
    at(db, member_key(provider, member)).await
}

async fn at(db: &Db, key: Key) -> Result<Option<Account>, StoreError> {
    let place: Option<Place> = db.get_latest(&db.tables.messages, key).await?;
    match place {
        Some(place) => load(db, place.agent, place.account).await,
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_providers_word_moves_what_is_not_given_up() {
        use Status::{Connected, DeletedUpstream, Error, ReconnectRequired, Revoked};
        for (word, to) in [
            (Word::Ok, Connected),
            (Word::Reconnected, Connected),
            (Word::CreationSuccess, Connected),
            (Word::SyncSuccess, Connected),
            (Word::Credentials, ReconnectRequired),
            (Word::Stopped, ReconnectRequired),
            (Word::Error, Error),
            (Word::Deleted, DeletedUpstream),
        ] {
            for from in [Connected, ReconnectRequired, Error] {
                assert_eq!(from.after(word), (from != to).then_some(to), "{from:?} {word:?}");
                assert_eq!(from.after(Word::Connecting), None);
            }
            for last in [Revoked, DeletedUpstream] {
                assert_eq!(last.after(word), None, "{last:?} {word:?}");
            }
        }
    }

    #[test]
    fn grants_are_sets_and_comments_are_never_given() {
        let asked = Grant::of(["invite", "read", "comment", "read", "fly"].into_iter());
        assert_eq!(json!(asked), json!(["read", "invite", "comment"]));
        assert_eq!(json!(asked.given()), json!(["read", "invite"]));
        for name in ACTIONS {
            assert_eq!(json!(Grant::of([*name].into_iter())), json!([name]));
        }
        for word in WORDS {
            assert_eq!(json!(serde_json::from_value::<Word>(json!(word)).unwrap()), json!(word));
        }
    }
}
