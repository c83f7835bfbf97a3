//! How a call begins: a phone rings, and its owner's settings and credits decide whether it is answered.
//!
//! One transaction writes the call, its places in the lists, the job that ends it, its receipt, and the credits of its longest
//! length, which the account refuses if they are not there, and the counters of the day if a cap of the owner's budget leaves no
//! room. So an answered call is paid for, and no number of calls at once takes more than there is, or more than a cap allows. The transaction is refused if the settings have changed since they were read: a number that was
//! switched off answers no more. The call's id is the job's, and follows from what made it ring: a repeated ring is found.

use base::clock::Timestamp;
use base::ids::{AgentId, ReceiptId, RequestId};
use base::money::Usdc;
use ledger::account::{self, Account};
use ledger::budget_warning;
use ledger::day::{self, Counted};
use ledger::freeze::SERVICE_PAYEE;
use ledger::hold;
use platform::config::Config;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde_json::{Map, json};
use tools::{NewJob, Toolbox};
use tools_sms::number::Number;
use tools_sms::{inbox, phone};

use crate::call::{self, Answer, Declined, SILENCE, State};
use crate::calls::{self, Call, Direction, KEPT};
use crate::config::InboundConfig;
use crate::{failures, inbound, plan, settings};

/// How often a call is tried again because the owner's account changed in the meantime.
const TRIES: usize = 5;
/// Most calls that a number declines on record in a UTC day; strangers can cause them for nothing.
const MAX_DECLINED: u32 = 100;
const DAY_SECS: i64 = 24 * 3600;
/// What owners freeze to stop calls, and the name of the price of a minute.
const TOOL: &str = "voice";

/// A call that comes in.
pub struct Ring<'a> {
    /// Follows from what made it ring.
    pub id: RequestId,
    pub to: &'a Number,
    /// A number, or what the provider says in its place; untrusted.
    pub from: &'a str,
    /// The agent of this deployment that calls.
    pub caller: Option<AgentId>,
    /// The provider that carries it, and its id of the call; `None`: the exchange.
    pub provider: Option<(&'static str, &'a str)>,
    /// Of a minute ([`price_of_minute`]), in micro-USDC.
    pub price: Usdc,
    /// How often it was passed on before.
    pub hops: u8,
}

/// What became of a ring.
#[derive(Clone, Debug, PartialEq)]
pub enum Rang {
    /// Nobody here answers at this number; nothing is on record.
    NotInService,
    /// It costs nothing. The text is said to the caller.
    Declined(Call, Option<String>),
    Answered(Call),
    /// It rang before.
    Known(Call),
}

/// The price of a minute, in micro-USDC.
pub fn price_of_minute(config: &Config) -> Usdc {
    config.prices.tools.get(TOOL).copied().unwrap_or(plan::EACH)
}

/// Rings at a number. An answered call holds the credits of its longest length.
///
/// # Errors
/// If the database fails; the call may have been answered. Ring again: then it is known.
pub async fn ring(toolbox: &Toolbox, ring: &Ring<'_>) -> Result<Rang, StoreError> {
    let db = &toolbox.db;
    let Some(owner) = phone::owner_of(db, ring.to).await? else { return Ok(Rang::NotInService) };
    if !phone::is_in_service(db, ring.to, &owner).await? {
        return not_in_service(db, ring).await;
    }
    let mut is_reached = false;
    for _ in 0..TRIES {
        let stored = settings::of_number(db, &owner).await?;
        let config = stored.as_ref().map(|stored| &stored.config);
        let now = toolbox.clock.now();
        // A ring counts as a use of the number, unless the number is switched off.
        if !is_reached && config.is_some_and(|config| config.enabled) {
            is_reached = phone::reached(db, ring.to, &owner, now).await?;
            if !is_reached {
                return not_in_service(db, ring).await;
            }
        }
        let account = payer(db, owner.agent, ring.price, now).await?;
        let room = room(db, owner.agent, &account, now).await?;
        let credit = covered(&account, ring.price);
        let allowed = room.map_or(credit, |room| credit.min(plan::covered_minutes(room, ring.price)));
        let answer = call::ring(config, now, allowed, ring.provider.is_none());
        let (state, stored) = match (answer, stored) {
            (Answer::Answered { state, .. }, Some(stored)) => (state, stored),
            (Answer::Declined { why: Declined::NoCredit, say }, _) if is_stopped(&account) => {
                return decline(toolbox, ring, &owner, Declined::Frozen, say).await;
            }
            (Answer::Declined { why: Declined::NoCredit, say }, _) if credit > 0 => {
                return decline(toolbox, ring, &owner, Declined::OverBudget, say).await;
            }
            (Answer::Declined { why, say }, _) => return decline(toolbox, ring, &owner, why, say).await,
            (Answer::NotInService | Answer::Answered { .. }, _) => return not_in_service(db, ring).await,
        };
        if ring.provider.is_some() && failures::are_too_many(db, ring.to.as_str(), now).await? {
            return decline(toolbox, ring, &owner, Declined::TooManyFailures, None).await;
        }
        let as_read = settings::unchanged(db, &owner, &stored)?;
        let call = answered(ring, &owner, stored.config, state);
        let mut writes = calls::create(db, &call)?;
        writes.extend(hold_credits(toolbox, &call, &account)?);
        writes.push(as_read);
        match db.transact(&writes).await {
            Ok(()) => {
                budget_warning::raise(db, owner.agent, &day::name(now), &account, now).await;
                return Ok(Rang::Answered(call));
            }
            Err(error) if error.refused(0).is_some() => {
                let known = calls::load(db, ring.id).await?;
                return known.map(Rang::Known).ok_or_else(|| StoreError::new("a call vanished"));
            }
            // The credits or the room under a cap were used since they were read, or the owner changed the rules or the number's
            // settings.
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    decline(toolbox, ring, &owner, Declined::NoCredit, None).await
}

/// Nobody answers at the number. It may have rung before, and have been answered.
async fn not_in_service(db: &Db, ring: &Ring<'_>) -> Result<Rang, StoreError> {
    let known = calls::load(db, ring.id).await?;
    Ok(known.map_or(Rang::NotInService, Rang::Known))
}

/// The owner's account. If it covers no minute, the credits of expired quotes are released first: nobody else may do that for
/// an owner who does not call us.
async fn payer(db: &Db, agent: AgentId, price: Usdc, now: Timestamp) -> Result<Account, StoreError> {
    let account = account::load(db, agent).await?;
    let is_short = covered(&account, price) == 0 && !account.reserved.is_zero();
    if is_short && !hold::release(db, agent, false, now).await?.is_zero() {
        return account::load(db, agent).await;
    }
    Ok(account)
}

/// What the owner's budget leaves for one more call that comes in, in micro-USDC; `None` without a cap. Without one, nothing is
/// read.
async fn room(db: &Db, agent: AgentId, account: &Account, now: Timestamp) -> Result<Option<Usdc>, StoreError> {
    let Some(budget) = &account.budget else { return Ok(None) };
    let name = day::name(now);
    let today = day::load(db, agent, &name).await?;
    let (tool, payee) = (inbound::SPEC.name, SERVICE_PAYEE);
    Ok(today.room(budget, Counted { day: &name, amount: Usdc::ZERO, tool, payee, token: None }))
}

/// The minutes that an account pays for: none while its owner stopped it, or while it has debt.
fn covered(account: &Account, price: Usdc) -> u32 {
    if is_stopped(account) { 0 } else { plan::covered_minutes(account.credits, price) }
}

/// Whether a freeze or a debt stops calls, regardless of credits.
fn is_stopped(account: &Account) -> bool {
    freezes_calls(account) || !account.debt.is_zero()
}

fn freezes_calls(account: &Account) -> bool {
    account.frozen.stops(None, TOOL, SERVICE_PAYEE).is_some()
}

/// Whether this owner has frozen its calls, from an eventually consistent read. That ends open ones, too. A debt does not: what
/// they cost is held.
pub(crate) async fn is_frozen(db: &Db, owner: AgentId) -> Result<bool, StoreError> {
    Ok(freezes_calls(&account::glance(db, owner).await?))
}

/// A call that is not decided yet.
fn new_call(ring: &Ring<'_>, owner: &phone::Owner, now: Timestamp) -> Call {
    let (provider, provider_id) = ring.provider.map(|(name, id)| (name.to_owned(), id.to_owned())).unzip();
    Call {
        id: ring.id,
        direction: Direction::Inbound,
        agent: owner.agent,
        caller: ring.caller,
        phone_id: Some(owner.id),
        from: inbox::sender(ring.from),
        to: ring.to.as_str().to_owned(),
        provider,
        provider_id,
        recording: None,
        config: None,
        state: None,
        declined: None,
        price: ring.price,
        receipt_id: None,
        hops: ring.hops,
        turns: 0,
        failures: 0,
        spoken: 0,
        answering: None,
        summary: None,
        outcome: None,
        created: now,
        revision: 1,
        expires: now.plus(KEPT).secs(),
    }
}

fn answered(ring: &Ring<'_>, owner: &phone::Owner, config: InboundConfig, state: State) -> Call {
    let now = state.answered;
    let receipt_id = Some(ReceiptId::of(ring.id, now));
    Call { config: Some(config), state: Some(state), receipt_id, ..new_call(ring, owner, now) }
}

/// The writes that begin the call's job, and take the credits of its longest length from its owner.
fn hold_credits(toolbox: &Toolbox, call: &Call, account: &Account) -> Result<Vec<Write>, StoreError> {
    let begin = toolbox.begin_job.ok_or_else(|| StoreError::new("no jobs can begin here"))?;
    let minutes = call.state.as_ref().map_or(0, |state| state.minutes);
    let price = plan::price_of(minutes, call.price).ok_or_else(|| StoreError::new("a call costs too much"))?;
    let input = Map::from_iter([("phone_number_id".to_owned(), json!(call.phone_id))]);
    let now = call.created;
    let job = NewJob {
        request_id: call.id,
        tool: &inbound::SPEC,
        agent: call.agent,
        input,
        price,
        rules: account.rules,
        budget: account.budget.clone(),
        card: account.card,
        until: call.until().unwrap_or(now),
        // By then, a caller who says nothing has hung up.
        look: now.plus(SILENCE),
        now,
    };
    begin(&toolbox.db, &job)
}

/// Records a declined call, unless the number has declined too many today. Then nothing is said to a caller from outside, either:
/// strangers call for nothing, and the operator pays for what they hear.
async fn decline(
    toolbox: &Toolbox,
    ring: &Ring<'_>,
    owner: &phone::Owner,
    why: Declined,
    say: Option<String>,
) -> Result<Rang, StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    // It may have rung before, and have been answered with the last credits.
    if let Some(known) = calls::load(db, ring.id).await? {
        return Ok(Rang::Known(known));
    }
    let call = Call { declined: Some(why), ..new_call(ring, owner, now) };
    let has_room = has_room(db, owner, now).await?;
    if has_room {
        match db.transact(&calls::create(db, &call)?).await {
            Ok(()) => {}
            Err(error) if error.refused(0).is_some() => {
                let known = calls::load(db, ring.id).await?;
                return known.map(Rang::Known).ok_or_else(|| StoreError::new("a call vanished"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Rang::Declined(call, say.filter(|_| has_room || ring.provider.is_none())))
}

/// Counts a declined call of a number in the UTC day: `VOICEDECLINED#<phone id>` / `<day>`. False if it has had too many.
async fn has_room(db: &Db, owner: &phone::Owner, now: Timestamp) -> Result<bool, StoreError> {
    let day = now.secs().div_euclid(DAY_SECS);
    let key = Key::new(format!("VOICEDECLINED#{}", owner.id), day.to_string());
    let count = Write::update(&db.tables.messages, key, "SET #expires = :expires ADD #used :one")
        .only_if("attribute_not_exists(#used) OR #used < :most")
        .bind("one", 1)?
        .bind("most", MAX_DECLINED)?
        .bind("expires", (day + 2) * DAY_SECS)?;
    db.write_if(count).await
}
