//! The rows of the local network.
//!
//! | item (table messages) | key |
//! |---|---|
//! | a member | `NETLOCAL#<member>` / `MEMBER` |
//! | a connection, in both directions | `NETLOCAL#<member>` / `LINK#<other>` |
//! | an invitation that waits, at who is invited | `NETLOCAL#<member>` / `INVITE#<from>` |
//! | a message, at each of both | `NETLOCAL#<member>` / `MSG#<time>#<id>` |
//! | a post of a member | `NETLOCAL#<member>` / `POST#<time>#<id>` |
//! | an account's login | `NETLOCAL#SESSION#<upstream>` / `SESSION` |
//! | a chat | `NETLOCAL#CHAT#<id>` / `CHAT` |
//! | a post, and a reaction to it | `NETLOCAL#POST#<id>` / `POST`, `REACTION#<member>` |
//! | what was done under a key | `NETLOCAL#DONE#<request>` / `DONE` |

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId, random_uuid, uuid_of};
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, WriteError, due};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::action::Ids;

const DAY_SECS: i64 = 24 * 3600;
/// Messages, posts and keys are kept for so long.
const KEPT_SECS: i64 = 400 * DAY_SECS;
/// Most invitations, connections and posts that a member is shown.
const MOST_SHOWN: usize = 100;
/// Most reactions that are counted.
const MOST_REACTIONS: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub id: Uuid,
    pub agent: AgentId,
    pub name: String,
    pub headline: String,
    pub joined: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Session {
    pub member: Uuid,
    #[serde(default)]
    pub is_over: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub id: Uuid,
    pub chat: Uuid,
    pub from: Uuid,
    pub text: String,
    pub at: Timestamp,
    expires: i64,
}

/// A message that was written, and for whom.
pub struct Sent {
    pub message: Message,
    pub to: Uuid,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Invitation {
    from: Uuid,
    to: Uuid,
    from_name: String,
    note: String,
    at: Timestamp,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Post {
    id: Uuid,
    author: Uuid,
    text: String,
    at: Timestamp,
    expires: i64,
}

#[derive(Serialize, Deserialize)]
struct Link {
    other: Uuid,
    name: String,
    at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct Done {
    ids: Ids,
    expires: i64,
}

/// Why something is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    NotConnected,
    NoSuchMember,
    NoSuchPost,
    NotPending,
}

/// The member that an agent is.
pub fn of_agent(agent: AgentId) -> Uuid {
    uuid_of(&[b"member of the local network", agent.bytes()])
}

/// The chat of two members.
pub fn chat_of(one: Uuid, other: Uuid) -> Uuid {
    let (first, second) = if one < other { (one, other) } else { (other, one) };
    uuid_of(&[b"chat of the local network", first.as_bytes(), second.as_bytes()])
}

fn partition(member: Uuid) -> String {
    format!("NETLOCAL#{member}")
}

fn member_key(member: Uuid) -> Key {
    Key::new(partition(member), "MEMBER")
}

fn link_key(member: Uuid, other: Uuid) -> Key {
    Key::new(partition(member), format!("LINK#{other}"))
}

fn invitation_key(to: Uuid, from: Uuid) -> Key {
    Key::new(partition(to), format!("INVITE#{from}"))
}

fn session_key(upstream: &str) -> Key {
    Key::new(format!("NETLOCAL#SESSION#{upstream}"), "SESSION")
}

fn chat_key(chat: Uuid) -> Key {
    Key::new(format!("NETLOCAL#CHAT#{chat}"), "CHAT")
}

fn post_key(post: Uuid) -> Key {
    Key::new(format!("NETLOCAL#POST#{post}"), "POST")
}

fn done_key(request: RequestId) -> Key {
    Key::new(format!("NETLOCAL#DONE#{request}"), "DONE")
}

/// The write that remembers what was done under a key, once.
fn remember(db: &Db, key: RequestId, ids: Ids, now: Timestamp) -> Result<Write, StoreError> {
    let row = Done { ids, expires: now.secs() + KEPT_SECS };
    Ok(Write::put(&db.tables.messages, done_key(key), &row)?.only_if_new())
}

/// What was done under a key.
pub async fn done(db: &Db, key: RequestId) -> Result<Option<Ids>, StoreError> {
    let row: Option<Done> = db.get_latest(&db.tables.messages, done_key(key)).await?;
    Ok(row.map(|row| row.ids))
}

/// All of the writes, or none because it was done before.
async fn once(db: &Db, writes: &[Write]) -> Result<bool, StoreError> {
    match db.transact(writes).await {
        Ok(()) => Ok(true),
        Err(WriteError::Refused(_)) => Ok(false),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

pub async fn load(db: &Db, member: Uuid) -> Result<Option<Member>, StoreError> {
    db.get_latest(&db.tables.messages, member_key(member)).await
}

/// The member with this id, or that this agent is.
pub async fn find(db: &Db, identifier: &str) -> Result<Option<Member>, StoreError> {
    let Ok(id) = Uuid::try_parse(identifier.trim()) else { return Ok(None) };
    match load(db, id).await? {
        Some(member) => Ok(Some(member)),
        None => load(db, of_agent(AgentId::from_bytes(*id.as_bytes()))).await,
    }
}

/// Makes an agent a member, or gives the member that it is a new name.
pub async fn join(db: &Db, agent: AgentId, name: &str, headline: &str, now: Timestamp) -> Result<Member, StoreError> {
    let id = of_agent(agent);
    let joined = load(db, id).await?.map_or(now, |before| before.joined);
    let member = Member { id, agent, name: name.to_owned(), headline: headline.to_owned(), joined };
    db.write(Write::put(&db.tables.messages, member_key(id), &member)?).await?;
    Ok(member)
}

/// Logs a member in: the provider's id of the account.
pub async fn log_in(db: &Db, member: Uuid, upstream: &str) -> Result<(), StoreError> {
    let session = Session { member, is_over: false };
    db.write(Write::put(&db.tables.messages, session_key(upstream), &session)?).await?;
    Ok(())
}

pub async fn log_out(db: &Db, upstream: &str) -> Result<bool, StoreError> {
    let write = Write::update(&db.tables.messages, session_key(upstream), "SET #is_over = :yes");
    db.write_if(write.only_if("attribute_exists(#pk)").bind("yes", true)?).await?;
    Ok(true)
}

pub async fn session(db: &Db, upstream: &str) -> Result<Option<Session>, StoreError> {
    db.get_latest(&db.tables.messages, session_key(upstream)).await
}

pub async fn are_connected(db: &Db, one: Uuid, other: Uuid) -> Result<bool, StoreError> {
    let link: Option<Link> = db.get_latest(&db.tables.messages, link_key(one, other)).await?;
    Ok(link.is_some())
}

/// Both members of a chat.
pub async fn chat(db: &Db, chat: Uuid) -> Result<Option<[Uuid; 2]>, StoreError> {
    #[derive(Deserialize)]
    struct Row {
        members: [Uuid; 2],
    }
    let row: Option<Row> = db.get_latest(&db.tables.messages, chat_key(chat)).await?;
    Ok(row.map(|row| row.members))
}

/// Writes a message into a chat: of that chat, or of the chat with `other`, who has to be a connection.
pub async fn write(
    db: &Db,
    (key, now): (RequestId, Timestamp),
    me: &Member,
    chat_id: Uuid,
    other: Uuid,
    text: &str,
) -> Result<Result<Sent, Gone>, StoreError> {
    let to = match chat(db, chat_id).await? {
        Some(members) if members.contains(&me.id) => members.into_iter().find(|id| *id != me.id).unwrap_or(me.id),
        Some(_) => return Ok(Err(Gone::NotConnected)),
        None => other,
    };
    if !are_connected(db, me.id, to).await? {
        return Ok(Err(Gone::NotConnected));
    }
    let id = uuid_of(&[b"message of the local network", key.bytes()]);
    let message =
        Message { id, chat: chat_id, from: me.id, text: text.to_owned(), at: now, expires: now.secs() + KEPT_SECS };
    let row = format!("MSG#{}", due::row(now, id));
    let table = &db.tables.messages;
    let ids = Ids { message: Some(id.to_string()), chat: Some(chat_id.to_string()), invitation: None, at: Some(now) };
    let writes = [
        remember(db, key, ids, now)?,
        Write::put(table, chat_key(chat_id), &json!({"members": [me.id, to]}))?,
        Write::put(table, Key::new(partition(me.id), row.clone()), &message)?,
        Write::put(table, Key::new(partition(to), row), &message)?,
    ];
    once(db, &writes).await?;
    Ok(Ok(Sent { message, to }))
}

/// A member's messages, the newest first, and the cursor of the next page.
pub async fn feed(
    db: &Db,
    me: Uuid,
    cursor: Option<&str>,
    limit: usize,
) -> Result<(Vec<Message>, Option<String>), StoreError> {
    let pk = partition(me);
    let query = Query::prefixed(&db.tables.messages, &pk, "MSG#", limit)?.newest_first().latest();
    // A cursor that is none of ours reads as the beginning.
    let after = cursor.filter(|cursor| cursor.starts_with("MSG#") && cursor.len() < 100);
    let found: Vec<Message> = db.query(query.after(after.map(|row| Key::new(pk.clone(), row)))).await?;
    let next = found.last().filter(|_| found.len() == limit);
    let next = next.map(|last| format!("MSG#{}", due::row(last.at, last.id)));
    Ok((found, next))
}

/// Invites a member: the id of the invitation.
pub async fn invite(
    db: &Db,
    key: RequestId,
    me: &Member,
    to: Uuid,
    note: &str,
    now: Timestamp,
) -> Result<Result<String, Gone>, StoreError> {
    if to == me.id || load(db, to).await?.is_none() {
        return Ok(Err(Gone::NoSuchMember));
    }
    let invitation = Invitation { from: me.id, to, from_name: me.name.clone(), note: note.to_owned(), at: now };
    let id = format!("{to}.{}", me.id);
    let ids = Ids { invitation: Some(id.clone()), at: Some(now), ..Ids::default() };
    let put = Write::put(&db.tables.messages, invitation_key(to, me.id), &invitation)?;
    once(db, &[remember(db, key, ids, now)?, put]).await?;
    Ok(Ok(id))
}

/// Takes an invitation back.
pub async fn withdraw(
    db: &Db,
    key: RequestId,
    me: &Member,
    id: &str,
    now: Timestamp,
) -> Result<Result<(), Gone>, StoreError> {
    let to = id.split_once('.').and_then(|(to, _)| Uuid::try_parse(to).ok()).unwrap_or_default();
    let taken = take_invitation(db, (to, me.id))?;
    // After a crash, the next run finds by its key that it was done.
    let ids = Ids { at: Some(now), ..Ids::default() };
    Ok(if once(db, &[remember(db, key, ids, now)?, taken]).await? { Ok(()) } else { Err(Gone::NotPending) })
}

/// The write that takes an invitation from who is invited, if it is there. What is answered is not kept: the invitations of others
/// would not be shown any more behind it.
fn take_invitation(db: &Db, (to, from): (Uuid, Uuid)) -> Result<Write, StoreError> {
    Write::delete(&db.tables.messages, invitation_key(to, from)).only_if("#from = :from").bind("from", from)
}

/// Accepts an invitation: its id. `None`: none is pending.
pub async fn accept(db: &Db, me: &Member, from: Uuid, now: Timestamp) -> Result<Option<String>, StoreError> {
    let Some(other) = load(db, from).await? else { return Ok(None) };
    let table = &db.tables.messages;
    let link = |of: Uuid, to: &Member| {
        Write::put(table, link_key(of, to.id), &Link { other: to.id, name: to.name.clone(), at: now })
    };
    let writes = [take_invitation(db, (me.id, from))?, link(me.id, &other)?, link(from, me)?];
    Ok(once(db, &writes).await?.then(|| format!("{}.{from}", me.id)))
}

/// Publishes a post.
pub async fn publish(db: &Db, me: Uuid, text: &str, now: Timestamp) -> Result<Value, StoreError> {
    let id = random_uuid();
    let post = Post { id, author: me, text: text.to_owned(), at: now, expires: now.secs() + KEPT_SECS };
    let own = Key::new(partition(me), format!("POST#{}", due::row(now, id)));
    let table = &db.tables.messages;
    once(db, &[Write::put(table, post_key(id), &post)?, Write::put(table, own, &post)?]).await?;
    Ok(json!({"post_id": id, "text": post.text, "created_at": now.to_string(), "reactions": {}}))
}

/// Reacts to a post. Another reaction of the same member replaces the earlier one.
pub async fn react(
    db: &Db,
    me: &Member,
    post: Uuid,
    kind: &str,
    now: Timestamp,
) -> Result<Result<(), Gone>, StoreError> {
    let found: Option<Post> = db.get_latest(&db.tables.messages, post_key(post)).await?;
    let Some(found) = found else { return Ok(Err(Gone::NoSuchPost)) };
    let key = Key::new(post_key(post).pk, format!("REACTION#{}", me.id));
    let row = json!({"kind": kind, "at": now, "expires": found.expires});
    db.write(Write::put(&db.tables.messages, key, &row)?).await?;
    Ok(Ok(()))
}

/// What a member sees: itself, who wants to be connected, who is, and its posts.
pub async fn overview(db: &Db, me: &Member) -> Result<Value, StoreError> {
    let pk = partition(me.id);
    let table = &db.tables.messages;
    let invitations: Vec<Invitation> = db.query(Query::prefixed(table, &pk, "INVITE#", MOST_SHOWN)?.latest()).await?;
    let links: Vec<Link> = db.query(Query::prefixed(table, &pk, "LINK#", MOST_SHOWN)?.latest()).await?;
    let posts: Vec<Post> = db.query(Query::prefixed(table, &pk, "POST#", 20)?.newest_first().latest()).await?;
    let pending: Vec<Value> = invitations
        .iter()
        .map(|one| json!({"from": one.from, "name": one.from_name, "note": one.note, "created_at": one.at.to_string()}))
        .collect();
    let mut own = Vec::new();
    for post in posts {
        let reactions = reactions(db, post.id).await?;
        own.push(
            json!({"post_id": post.id, "text": post.text, "created_at": post.at.to_string(), "reactions": reactions}),
        );
    }
    let connections: Vec<Value> = links
        .iter()
        .map(|link| json!({"member_id": link.other, "name": link.name, "connected_at": link.at.to_string()}))
        .collect();
    Ok(json!({
        "network": super::TITLE,
        "member": {"member_id": me.id, "name": me.name, "headline": me.headline, "joined_at": me.joined.to_string()},
        "invitations": pending,
        "connections": connections,
        "posts": own,
    }))
}

/// How often a post got each reaction.
async fn reactions(db: &Db, post: Uuid) -> Result<Value, StoreError> {
    #[derive(Deserialize)]
    struct Row {
        kind: String,
    }
    let query = Query::prefixed(&db.tables.messages, &post_key(post).pk, "REACTION#", MOST_REACTIONS)?;
    let rows: Vec<Row> = db.query(query.latest()).await?;
    let mut counts = serde_json::Map::new();
    for row in rows {
        let before = counts.get(&row.kind).and_then(Value::as_u64).unwrap_or_default();
        counts.insert(row.kind, json!(before + 1));
    }
    Ok(Value::Object(counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_members_have_one_chat() {
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_eq!(chat_of(one, other), chat_of(other, one));
        assert_ne!(chat_of(one, other), chat_of(one, one));
        let agent = AgentId::from_bytes([7; 16]);
        assert_ne!(of_agent(agent).as_bytes(), agent.bytes());
    }
}
