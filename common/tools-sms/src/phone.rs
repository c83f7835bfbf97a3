//! Agents' own phone numbers. The source of a number is the provider in use, or [`EMBEDDED`] without one. An agent has one
//! number of each source, and buys it once. It is leased: unused for long, it is released ([`lease`]).
//!
//! | item | key |
//! |---|---|
//! | an agent's number of a source | `AGENT#<agent>` / `PHONE#<source>` |
//! | the owner of a number | `PHONE#<number>` / `OWNER` |
//! | a source has no number left | `PHONES#<source>` / `NONE_LEFT` |
//!
//! The row of a number that the provider no longer has is overwritten by that of the next one; the number's owner stays, so
//! that nobody else gets it. The owner's row of a released number stays for [`RESTS`], so that texts and calls to its former
//! owner do not reach the next one at once.
//!
//! Embedded numbers are fictitious: nobody outside this deployment has them. At a provider, the operator's own numbers are
//! the pool, and nothing is bought there, so agents cannot run up the operator's bill.

use std::collections::HashSet;
use std::time::Duration;

use base::clock::Timestamp;
use base::digest::sha256_parts;
use base::ids::{AgentId, RequestId, uuid_of};
use base::money::Usdc;
use platform::config::Config;
use platform::http::{ApiError, log};
use platform::providers::outbound::OutboundError;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tools::Toolbox;
use uuid::Uuid;

use crate::lease::{self, Lease};
use crate::number::{self, Number};
use crate::{notices, providers};

/// The catalog's price of a number, in micro-USDC. It is paid once.
pub const FEE: Usdc = Usdc::from_micro(5_000_000);
/// The source of numbers without a provider.
pub const EMBEDDED: &str = "embedded";

/// Embedded numbers that are looked at for one agent: one batch.
const CANDIDATES: u8 = 100;
/// Free numbers that one registration tries to take. Others may take them at the same time.
const TRIES: usize = 20;
/// How long a source without a free number is not asked again.
const NONE_LEFT_FOR: Duration = Duration::from_secs(600);
/// Least time between two writes of [`Phone::last_used_at`], and of [`Owner::used_at`].
pub(crate) const USED_AFTER: Duration = Duration::from_secs(24 * 3600);
/// How long nobody gets a released number.
pub const RESTS: Duration = Duration::from_secs(30 * 24 * 3600);
/// More sources than there are providers.
const MAX_SOURCES: usize = 10;

/// An agent's number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phone {
    /// Derived from the number.
    pub id: Uuid,
    pub agent: AgentId,
    pub number: Number,
    pub source: String,
    /// The job that paid for it.
    pub bought_by: RequestId,
    pub created: Timestamp,
    /// When it last sent or took a text, made or took a call, or got settings for calls, to the day.
    #[serde(default)]
    pub last_used_at: Option<Timestamp>,
    /// Whether it has a row in the list of leases. Numbers bought before there were leases get one when they are next used.
    #[serde(default)]
    pub leased: bool,
    /// When the provider was found not to have it any more. The agent's next text or bought call gets it another number, which
    /// it does not pay for.
    #[serde(default)]
    pub lost_at: Option<Timestamp>,
    /// Whether its owner wants calls to it answered; `None` if it has made no settings for calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbound: Option<bool>,
    /// The id that the provider of calls has for it. An embedded number needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
}

impl Phone {
    /// Whether it makes and takes calls, as far as is known: the provider of calls had it when it was last asked.
    pub fn is_voice_capable(&self) -> bool {
        self.lost_at.is_none() && (self.source == EMBEDDED || self.line.is_some())
    }

    /// Whether its source carries texts. Those between agents here need no provider, and reach every number.
    pub fn is_sms_capable(&self) -> bool {
        self.lost_at.is_none() && (self.source == EMBEDDED || providers::NAMES.contains(&self.source.as_str()))
    }

    /// Whether calls to it are answered.
    pub fn is_answered(&self) -> bool {
        self.lost_at.is_none() && self.inbound == Some(true)
    }

    /// Its last use that this row knows of. Getting it is one.
    pub(crate) fn last_use(&self) -> Timestamp {
        self.last_used_at.map_or(self.created, |at| at.max(self.created))
    }

    /// When it is released at the earliest, unless it is used before; `None` if it has no lease.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.leased.then(|| self.last_use().plus(lease::UNUSED).plus(lease::NOTICE))
    }
}

/// The owner of a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub agent: AgentId,
    /// [`Phone::id`]
    pub id: Uuid,
    pub source: String,
    /// When the number last took a text or a call, to the day; when it was bought, before the first.
    #[serde(default)]
    pub used_at: Option<Timestamp>,
    /// The number was released, and nobody gets it before then.
    #[serde(default)]
    pub free_from: Option<Timestamp>,
}

#[derive(Serialize, Deserialize)]
struct NoneLeft {
    until: Timestamp,
    /// Unix seconds after which the row may be deleted.
    expires: i64,
}

/// What a registration found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registered {
    /// This job bought the number: it pays for it. The same again if it is asked again.
    New(Phone),
    /// The agent had the number before.
    Known(Phone),
    NoneLeft,
}

impl Registered {
    fn of(phone: Phone, request_id: RequestId) -> Registered {
        if phone.bought_by == request_id { Registered::New(phone) } else { Registered::Known(phone) }
    }
}

#[derive(Debug)]
pub enum RegisterError {
    /// The agent may have the number: ask again.
    Store(StoreError),
    /// The provider did not name the operator's numbers. Nothing was registered.
    Provider(OutboundError),
}

impl From<StoreError> for RegisterError {
    fn from(error: StoreError) -> RegisterError {
        RegisterError::Store(error)
    }
}

impl From<OutboundError> for RegisterError {
    fn from(error: OutboundError) -> RegisterError {
        RegisterError::Provider(error)
    }
}

fn partition(agent: AgentId) -> String {
    format!("AGENT#{agent}")
}

/// The key of an agent's [`Phone`] of a source.
pub fn key_of(agent: AgentId, source: &str) -> Key {
    Key::new(partition(agent), format!("PHONE#{source}"))
}

/// The key of a number's [`Owner`].
pub fn owner_key(number: &Number) -> Key {
    Key::new(format!("PHONE#{}", number.as_str()), "OWNER")
}

fn none_left_key(source: &str) -> Key {
    Key::new(format!("PHONES#{source}"), "NONE_LEFT")
}

/// The refusal of an emergency number, in any spelling ([`number::is_emergency`]). Ask it about every number that a caller
/// names, as it came, before anything else is checked.
pub fn emergency(raw: &str) -> Option<ApiError> {
    number::is_emergency(raw).then(|| ApiError::EmergencyNumber { number: number::shown(raw) })
}

/// The source of numbers now: the provider in use, or [`EMBEDDED`].
pub fn source(config: &Config) -> &'static str {
    providers::of_numbers(config).unwrap_or(EMBEDDED)
}

/// The agent's number of a source.
pub async fn of_agent(db: &Db, agent: AgentId, source: &str) -> Result<Option<Phone>, StoreError> {
    db.get_latest(&db.tables.messages, key_of(agent, source)).await
}

/// The agent's numbers of all sources, oldest first.
pub async fn list(db: &Db, agent: AgentId) -> Result<Vec<Phone>, StoreError> {
    let query = Query::prefixed(&db.tables.messages, &partition(agent), "PHONE#", MAX_SOURCES)?;
    let mut phones: Vec<Phone> = db.query(query.latest()).await?;
    phones.sort_by(|one, other| (one.created, &one.number).cmp(&(other.created, &other.number)));
    Ok(phones)
}

/// The agent that has a number.
pub async fn owner_of(db: &Db, number: &Number) -> Result<Option<Owner>, StoreError> {
    let owner: Option<Owner> = db.get_latest(&db.tables.messages, owner_key(number)).await?;
    Ok(owner.filter(|owner| owner.free_from.is_none()))
}

/// Whether calls to a number reach its owner. A lost number keeps its owner, also once there is another one in its place, so that
/// nobody else gets it. But calls to it end: its owner would pay for them, and could no longer switch it off. `owner`: as read.
pub async fn is_in_service(db: &Db, number: &Number, owner: &Owner) -> Result<bool, StoreError> {
    let own = of_agent(db, owner.agent, &owner.source).await?;
    Ok(own.is_some_and(|own| own.number == *number && own.lost_at.is_none()))
}

/// Gives the agent a number of the source in use, unless it has one that is not lost. One transaction writes both rows, each
/// only if nobody was faster, so that parallel jobs of an agent end with one number, and parallel agents with different ones.
/// Waits for the provider until `deadline`.
pub async fn register(
    toolbox: &Toolbox,
    agent: AgentId,
    request_id: RequestId,
    deadline: Instant,
) -> Result<Registered, RegisterError> {
    let (db, source) = (&toolbox.db, source(&toolbox.config));
    let lost = match of_agent(db, agent, source).await? {
        Some(phone) if phone.lost_at.is_none() => return Ok(Registered::of(phone, request_id)),
        lost => lost,
    };
    // The number in place of a lost one is paid for.
    let bought_by = lost.as_ref().map_or(request_id, |lost| lost.bought_by);
    let now = toolbox.clock.now();
    let lines = providers::lines(toolbox, deadline).await.unwrap_or_else(|error| {
        log::failure("the provider of calls did not tell its numbers", &error.detail());
        Vec::new()
    });
    for number in free(db, candidates(toolbox, source, agent, deadline).await?, now).await? {
        let id = uuid_of(&[b"phone", number.as_str().as_bytes()]);
        let source = source.to_owned();
        let line = lines.iter().find(|line| line.number == number).map(|line| line.id.clone());
        let phone = Phone {
            id,
            agent,
            number,
            source,
            bought_by,
            created: now,
            last_used_at: None,
            leased: true,
            lost_at: None,
            inbound: None,
            line,
        };
        if let Some(phone) = give(db, phone, lost.as_ref()).await? {
            return Ok(Registered::of(phone, request_id));
        }
    }
    let until = now.plus(NONE_LEFT_FOR);
    let none_left = NoneLeft { until, expires: until.secs() };
    db.write_if(Write::put(&db.tables.messages, none_left_key(source), &none_left)?).await?;
    Ok(Registered::NoneLeft)
}

/// Writes both rows of a number and its lease, in place of the `lost` one if there is one: that is due at once then, because its
/// settings for calls end. Returns the agent's number, which may be one that another job got. `None`: another agent was faster.
async fn give(db: &Db, phone: Phone, lost: Option<&Phone>) -> Result<Option<Phone>, StoreError> {
    let used_at = Some(phone.created);
    let owner = Owner { agent: phone.agent, id: phone.id, source: phone.source.clone(), used_at, free_from: None };
    let table = &db.tables.messages;
    let put = Write::put(table, key_of(phone.agent, &phone.source), &phone)?;
    let put = match lost {
        None => put.only_if_new(),
        Some(lost) => put.only_if("#number = :lost").bind("lost", &lost.number)?,
    };
    let own = Write::put(table, owner_key(&phone.number), &owner)?
        .only_if("attribute_not_exists(#pk) OR #free_from <= :now")
        .bind("now", phone.created)?;
    let mut writes = vec![put, own, Lease::of(&phone, phone.created).put(db)?];
    if let Some(lost) = lost {
        writes.push(Lease { due: phone.created, ..Lease::of(lost, phone.created) }.put(db)?);
    }
    let known = match db.transact(&writes).await {
        Ok(()) => return Ok(Some(phone)),
        Err(error) if error.refused(0).is_some() => StoreError::new("an agent's phone number vanished"),
        Err(WriteError::Refused(_)) => return Ok(None),
        // The answer may be lost, and the rows may be there.
        Err(WriteError::Failed(error)) => error,
    };
    let found = of_agent(db, phone.agent, &phone.source).await?;
    found.filter(|found| found.lost_at.is_none()).map(Some).ok_or(known)
}

/// The number that an earlier attempt of this job registered. The provider may have changed since.
pub async fn bought(db: &Db, agent: AgentId, request_id: RequestId) -> Result<Option<Phone>, StoreError> {
    for source in providers::SOURCES.into_iter().chain([EMBEDDED]) {
        let phone = of_agent(db, agent, source).await?.filter(|phone| phone.bought_by == request_id);
        if phone.is_some() {
            return Ok(phone);
        }
    }
    Ok(None)
}

/// The number that an earlier attempt of this job registered, or that the agent had before. Registers nothing.
pub async fn recorded(
    toolbox: &Toolbox,
    agent: AgentId,
    request_id: RequestId,
) -> Result<Option<Registered>, StoreError> {
    let phone = match bought(&toolbox.db, agent, request_id).await? {
        None => of_agent(&toolbox.db, agent, source(&toolbox.config)).await?,
        bought => bought,
    };
    Ok(phone.map(|phone| Registered::of(phone, request_id)))
}

/// Marks an agent's number as lost, and tells the agent, if the provider in use does not list it any more. For a number that
/// the provider did not send from, or that is not among its lines: only then it is looked up. Whether it is marked now.
///
/// # Errors
/// Those of the database. If the provider does not answer, nothing is marked.
pub async fn check_lost(
    toolbox: &Toolbox,
    agent: AgentId,
    number: &Number,
    deadline: Instant,
) -> Result<bool, StoreError> {
    let (db, source, now) = (&toolbox.db, source(&toolbox.config), toolbox.clock.now());
    let phone = of_agent(db, agent, source).await?;
    let Some(phone) = phone.filter(|phone| phone.number == *number && phone.lost_at.is_none()) else {
        return Ok(false);
    };
    match providers::has_dropped(toolbox, number, deadline).await {
        Ok(true) => {}
        Ok(false) => return Ok(false),
        Err(error) => {
            log::failure("the provider did not tell its numbers", &error.detail());
            return Ok(false);
        }
    }
    let mark = Write::update(&db.tables.messages, key_of(agent, source), "SET #lost_at = :now")
        .only_if("#number = :number AND attribute_not_exists(#lost_at)")
        .bind("now", now)?
        .bind("number", number)?;
    // Another text or call of the agent may have found it, too.
    if db.write_if(mark).await? {
        notices::tell_lost(db, &phone, now).await?;
    }
    Ok(true)
}

/// Numbers for this agent, in the order in which they are tried. Different agents begin at different ones, so that they
/// rarely meet.
async fn candidates(
    toolbox: &Toolbox,
    source: &str,
    agent: AgentId,
    deadline: Instant,
) -> Result<Vec<Number>, OutboundError> {
    if source == EMBEDDED {
        return Ok(embedded(agent));
    }
    let mut pool = distinct(providers::numbers(toolbox, deadline).await?);
    let first = usize::try_from(place(agent, 0) % pool.len().max(1) as u64).unwrap_or_default();
    pool.rotate_left(first);
    Ok(pool)
}

fn embedded(agent: AgentId) -> Vec<Number> {
    let count = Number::fictitious_count().max(1);
    distinct((0..CANDIDATES).map(|attempt| Number::fictitious(place(agent, attempt) % count)).collect())
}

/// Without repetitions, which a batch may not have.
fn distinct(mut numbers: Vec<Number>) -> Vec<Number> {
    let mut seen = HashSet::new();
    numbers.retain(|number| seen.insert(number.clone()));
    numbers
}

fn place(agent: AgentId, attempt: u8) -> u64 {
    let digest = sha256_parts(&[b"phone", agent.bytes(), &[attempt]]);
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

/// Those that have no owner, as far as an eventually consistent read tells; at most [`TRIES`].
async fn free(db: &Db, numbers: Vec<Number>, now: Timestamp) -> Result<Vec<Number>, StoreError> {
    let keys: Vec<Key> = numbers.iter().map(owner_key).collect();
    let owners: Vec<Option<Owner>> = db.batch_get(&db.tables.messages, &keys, false).await?;
    let is_free = |owner: &Option<Owner>| {
        owner.as_ref().is_none_or(|owner| owner.free_from.is_some_and(|free_from| free_from <= now))
    };
    let free = numbers.into_iter().zip(owners).filter(|(_, owner)| is_free(owner));
    Ok(free.map(|(number, _)| number).take(TRIES).collect())
}

/// Whether a registration found no free number of this source within the last ten minutes.
pub async fn none_left(db: &Db, source: &str, now: Timestamp) -> Result<bool, StoreError> {
    let row: Option<NoneLeft> = db.get(&db.tables.messages, none_left_key(source)).await?;
    Ok(row.is_some_and(|row| now < row.until))
}

/// Notes that its agent uses the number: before it sends a text or dials. At most once a day.
///
/// # Errors
/// Those of the database, and if the number has been released since it was read: then begin again.
pub async fn used(db: &Db, phone: &Phone, now: Timestamp) -> Result<(), StoreError> {
    if phone.leased && is_noted(phone.last_used_at, now) {
        return Ok(());
    }
    let key = key_of(phone.agent, &phone.source);
    let note = Write::update(&db.tables.messages, key, "SET #last_used_at = :now, #leased = :leased")
        .only_if("#number = :number")
        .bind("now", now)?
        .bind("leased", true)?
        .bind("number", &phone.number)?;
    let mut writes = vec![note];
    if !phone.leased {
        writes.push(Lease::of(phone, now).put(db)?);
    }
    match db.apply(writes).await {
        Ok(()) => Ok(()),
        Err(WriteError::Refused(_)) => Err(StoreError::new("a phone number was released while it was to be used")),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

/// Notes that somebody texts or calls the number, before anything else is done about that; at most once a day. `owner`: as
/// read. False: the number has been released since then.
pub async fn reached(db: &Db, number: &Number, owner: &Owner, now: Timestamp) -> Result<bool, StoreError> {
    if is_noted(owner.used_at, now) {
        return Ok(true);
    }
    let table = &db.tables.messages;
    let note = Write::update(table, owner_key(number), "SET #used_at = :now")
        .only_if(IS_OWNER)
        .bind("now", now)?
        .bind("agent", owner.agent)?;
    if !db.write_if(note).await? {
        return Ok(false);
    }
    // For the agent's list. In place of a lost number, there may be another one's row.
    let note = Write::update(table, key_of(owner.agent, &owner.source), "SET #last_used_at = :now")
        .only_if("#number = :number")
        .bind("now", now)?
        .bind("number", number)?;
    db.write_if(note).await?;
    Ok(true)
}

/// The owner's row is still that of `:agent`.
const IS_OWNER: &str = "#agent = :agent AND attribute_not_exists(#free_from)";

/// Whether a use need not be written again.
fn is_noted(used_at: Option<Timestamp>, now: Timestamp) -> bool {
    used_at.is_some_and(|at| now < at.plus(USED_AFTER))
}

/// The writes that take a number from its agent, each only if the number has not been used since its rows were read. Whoever
/// reaches it ([`reached`]), uses it ([`used`]) or sets how it answers writes to one of these rows, so of a release and a use at
/// the same time one is refused.
pub fn release(db: &Db, phone: &Phone, owner: &Owner, now: Timestamp) -> Result<Vec<Write>, StoreError> {
    let (table, free_from) = (&db.tables.messages, now.plus(RESTS));
    let delete = Write::delete(table, key_of(phone.agent, &phone.source));
    let delete = match phone.last_used_at {
        None => delete.only_if("#number = :number AND attribute_not_exists(#last_used_at)"),
        Some(at) => delete.only_if("#number = :number AND #last_used_at = :used").bind("used", at)?,
    };
    let rest = Write::update(table, owner_key(&phone.number), "SET #free_from = :free_from, #expires = :expires");
    let rest = match owner.used_at {
        None => rest.only_if(&format!("{IS_OWNER} AND attribute_not_exists(#used_at)")),
        Some(at) => rest.only_if(&format!("{IS_OWNER} AND #used_at = :used")).bind("used", at)?,
    };
    let rest = rest.bind("free_from", free_from)?.bind("expires", free_from.secs())?.bind("agent", owner.agent)?;
    Ok(vec![delete.bind("number", &phone.number)?, rest])
}

/// Notes the id that the provider of calls has for a number; `None`: it does not have the number.
pub async fn note_line(db: &Db, phone: &Phone, line: Option<&str>) -> Result<(), StoreError> {
    if phone.line.as_deref() == line {
        return Ok(());
    }
    let key = key_of(phone.agent, &phone.source);
    let write = match line {
        Some(line) => Write::update(&db.tables.messages, key, "SET #line = :line").bind("line", line)?,
        None => Write::update(&db.tables.messages, key, "REMOVE #line"),
    };
    let write = write.only_if("#number = :number").bind("number", &phone.number)?;
    db.write_if(write).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_has_embedded_numbers_of_its_own_to_try() {
        let numbers = |byte: u8| embedded(AgentId::from_bytes([byte; 16]));
        let of_one = numbers(1);
        // Some are the same number by chance.
        assert!(of_one.len() > 90, "{}", of_one.len());
        assert_eq!(of_one.iter().collect::<HashSet<_>>().len(), of_one.len());
        for number in &of_one {
            assert!(number.is_fictitious(), "{number:?}");
            assert_eq!(Number::parse(number.as_str()).as_ref(), Ok(number));
        }
        assert_eq!(of_one, numbers(1), "the same in every attempt");
        assert_ne!(of_one[0], numbers(2)[0]);
    }

    #[test]
    fn a_number_serves_what_its_providers_do() {
        for (source, line, is_lost, voice, sms) in [
            (EMBEDDED, None, false, true, true),
            ("twilio", None, false, false, true),
            ("twilio", Some("line"), false, true, true),
            ("vapi", Some("line"), false, true, false),
            ("vapi", Some("line"), true, false, false),
        ] {
            let phone = Phone {
                id: Uuid::nil(),
                agent: AgentId::from_bytes([1; 16]),
                number: Number::fictitious(1),
                source: source.to_owned(),
                bought_by: RequestId::from_bytes([1; 16]),
                created: Timestamp::from_secs(0),
                last_used_at: None,
                leased: true,
                lost_at: is_lost.then_some(Timestamp::from_secs(1)),
                inbound: None,
                line: line.map(str::to_owned),
            };
            assert_eq!((phone.is_voice_capable(), phone.is_sms_capable()), (voice, sms), "{source} {line:?} {is_lost}");
        }
    }
}
