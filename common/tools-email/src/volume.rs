//! How many mails go out in a UTC day: from a domain of an agent, to any address; and of all agents together, to addresses outside
//! this deployment.
//!
//! | item | key |
//! |---|---|
//! | the mails of all agents to addresses outside | `MAILSOUT#ALL` / `<yyyy-mm-dd>` |
//! | what a job has counted | `JOB#<request id>` / `RESERVED` |
//!
//! A job's mails are counted before the first is handed over ([`reserve`]). When it ends, those that nobody was asked to take are
//! given back ([`give_back`]). Both are one transaction with the job's own row, so they count once, whatever runs again. The
//! limits bind every address of a domain, whether the agent names it or the pool chooses it. A fifth of the mails of all is for
//! agents with money behind them: mails that are paid back cost nothing.

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use ledger::account::Account;
use platform::http::ApiError;
use platform::store::{Db, Key, StoreError, Write, WriteError, daily};
use serde::{Deserialize, Serialize};

use crate::domain::{self, PoolStatus, SendingDomain};
use crate::mailbox::KEPT;
use crate::stats;

/// Attempts when others change the same items.
const TRIES: u32 = 5;
/// How long a counter of a day is kept.
const COUNTED: Duration = Duration::from_secs(2 * 24 * 3600);

/// Why mails cannot go out today.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Full {
    /// The domain is not the agent's, or no longer.
    NoDomain,
    Paused,
    /// The domain has sent what it may.
    Domain {
        limit: u32,
    },
    /// All agents together have.
    Deployment {
        limit: u32,
    },
    /// Those without money behind them have.
    Strangers {
        limit: u32,
    },
}

/// How many mails to addresses outside an agent finds room in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    most: u32,
    is_proven: bool,
}

impl Share {
    /// The whole day's mails.
    pub fn whole(daily_mails: u32) -> Share {
        Share { most: daily_mails, is_proven: true }
    }

    /// What of the day's mails an agent with this account may use.
    pub fn of(account: &Account, daily_mails: u32) -> Share {
        match account.is_proven() {
            true => Share::whole(daily_mails),
            false => Share { most: daily_mails - daily_mails / 5, is_proven: false },
        }
    }

    fn full(self) -> Full {
        match self.is_proven {
            true => Full::Deployment { limit: self.most },
            false => Full::Strangers { limit: self.most },
        }
    }
}

impl Full {
    /// What the agent is told, about so many recipients of a mail from this domain.
    pub fn message(&self, domain: &str, recipients: u32) -> String {
        match self {
            Full::NoDomain => format!("{domain} is not a domain of yours"),
            Full::Paused => {
                format!(
                    "{domain} is paused: resume it with POST /v1/tools/email/domains/{domain}/resume, or use another domain"
                )
            }
            Full::Domain { limit } => format!(
                "{domain} has no room for {recipients} recipients today: it sends at most {limit} mails a UTC day, from all of \
                 its addresses together; see GET /v1/tools/email/domains, and wait for the next day"
            ),
            Full::Deployment { limit } => format!(
                "there is no room for mail to {recipients} addresses outside this deployment today: all agents together send at \
                 most {limit} mails there a UTC day"
            ),
            Full::Strangers { limit } => format!(
                "there is no room for mail to {recipients} addresses outside this deployment today: agents without credits and \
                 settled payments of 0.05 USDC together send at most {limit} mails there a UTC day; top up credits, or wait for \
                 the next day"
            ),
        }
    }
}

/// What a job has counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Reserved {
    recipients: u32,
    /// Those of them outside this deployment.
    #[serde(default)]
    outside: u32,
    #[serde(default)]
    domain: String,
    /// The day of the domain in which they were counted, and of all agents.
    #[serde(default)]
    date: String,
    #[serde(default)]
    day: String,
    expires: i64,
}

/// A counter of a day.
#[derive(Deserialize)]
struct Counted {
    #[serde(default)]
    used: u32,
}

fn reserved_key(request_id: RequestId) -> Key {
    Key::new(format!("JOB#{request_id}"), "RESERVED")
}

fn of_all(day: &str) -> Key {
    Key::new("MAILSOUT#ALL", day)
}

/// Why a domain cannot send to so many recipients today.
pub fn refuses(row: &SendingDomain, recipients: u32, now: Timestamp) -> Option<Full> {
    match row.pool_status {
        PoolStatus::Removed => Some(Full::NoDomain),
        PoolStatus::Paused => Some(Full::Paused),
        PoolStatus::Active if row.left(now) < recipients => Some(Full::Domain { limit: row.limit(now) }),
        PoolStatus::Active => None,
    }
}

/// Refuses more mails out of this deployment than are left today. For a price: [`reserve`] decides.
///
/// # Errors
/// 429 `email_limit_reached`; 400 `invalid_request` if they are more than those of a whole day.
pub async fn check_room(db: &Db, outside: u32, share: Share, now: Timestamp) -> Result<(), ApiError> {
    let most = share.most;
    if outside > most {
        let message =
            format!("has {outside} addresses outside this deployment; at most {most} mails go there in a day");
        return Err(ApiError::field("to_address", message));
    }
    let row: Option<Counted> = db.get(&db.tables.messages, of_all(&stats::day(now))).await?;
    if row.map_or(0, |row| row.used).saturating_add(outside) <= most {
        return Ok(());
    }
    Err(ApiError::Later {
        status: http::StatusCode::TOO_MANY_REQUESTS,
        code: "email_limit_reached",
        message: format!("{}; nothing was charged", share.full().message("", outside)),
        retry_after_secs: daily::secs_left(now),
    })
}

/// A mail as it is counted.
#[derive(Clone, Copy, Debug)]
pub struct Mails<'a> {
    pub request_id: RequestId,
    pub agent: AgentId,
    pub domain: &'a str,
    pub recipients: u32,
    /// Those of them outside this deployment.
    pub outside: u32,
}

/// Counts a job's mails: exact when several sends race for the last places. `share`: of the mails of all agents. If there is no room: why, and
/// nothing is counted. Once per job: `None` without counting again if an earlier attempt counted.
pub async fn reserve(db: &Db, mails: Mails<'_>, share: Share, now: Timestamp) -> Result<Option<Full>, StoreError> {
    let Mails { request_id, agent, domain, recipients, outside } = mails;
    let most = share.most;
    let earlier: Option<Reserved> = db.get_latest(&db.tables.messages, reserved_key(request_id)).await?;
    if earlier.is_some() {
        return Ok(None);
    }
    if outside > most {
        return Ok(Some(share.full()));
    }
    for _ in 0..TRIES {
        let Some(row) = domain::load(db, agent, domain).await? else { return Ok(Some(Full::NoDomain)) };
        if let Some(full) = refuses(&row, recipients, now) {
            return Ok(Some(full));
        }
        let day = stats::day(now);
        let date = row.counted_day(now).map_or_else(|| day.clone(), str::to_owned);
        let mark = Reserved {
            recipients,
            outside,
            domain: row.domain.clone(),
            date: date.clone(),
            day: day.clone(),
            expires: now.plus(KEPT).secs(),
        };
        let mut writes = vec![
            Write::put(&db.tables.messages, reserved_key(request_id), &mark)?.only_if_new(),
            domain::count(db, &row, &date, recipients, now)?,
        ];
        if outside > 0 {
            let all = Write::update(&db.tables.messages, of_all(&day), "SET #expires = :expires ADD #used :by")
                .only_if("attribute_not_exists(#used) OR #used <= :room")
                .bind("by", outside)?
                .bind("room", most.saturating_sub(outside))?
                .bind("expires", now.plus(COUNTED).secs())?;
            writes.push(all);
        }
        match db.transact(&writes).await {
            Ok(()) => return Ok(None),
            // Another attempt counted in the meantime.
            Err(error) if error.refused(0).is_some() => return Ok(None),
            Err(error) if error.refused(2).is_some() => return Ok(Some(share.full())),
            // Others took places, or the day began: look again.
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Err(StoreError::new("a sending domain is changed by too many at the same time"))
}

/// How many recipients a job has counted.
pub async fn counted(db: &Db, request_id: RequestId) -> Result<u32, StoreError> {
    let reserved: Option<Reserved> = db.get_latest(&db.tables.messages, reserved_key(request_id)).await?;
    Ok(reserved.map_or(0, |reserved| reserved.recipients))
}

/// Gives back what [`reserve`] counted for a job beyond the mails that somebody was asked to take. Repeating it changes nothing.
pub async fn give_back(
    db: &Db,
    request_id: RequestId,
    agent: AgentId,
    used: u32,
    used_outside: u32,
) -> Result<(), StoreError> {
    let key = reserved_key(request_id);
    let reserved: Option<Reserved> = db.get_latest(&db.tables.messages, key.clone()).await?;
    let Some(reserved) = reserved else { return Ok(()) };
    let (unused, unused_outside) =
        (reserved.recipients.saturating_sub(used), reserved.outside.saturating_sub(used_outside));
    if unused == 0 && unused_outside == 0 {
        return Ok(());
    }
    let mark = Write::update(&db.tables.messages, key, "SET #recipients = :left, #outside = :left_outside")
        .only_if("#recipients = :before AND #outside = :before_outside")
        .bind("left", reserved.recipients - unused)?
        .bind("left_outside", reserved.outside - unused_outside)?
        .bind("before", reserved.recipients)?
        .bind("before_outside", reserved.outside)?;
    let mut writes = vec![mark];
    if unused > 0 {
        writes.push(domain::uncount(db, agent, &reserved.domain, &reserved.date, unused)?);
    }
    if unused_outside > 0 {
        let all = Write::update(&db.tables.messages, of_all(&reserved.day), "ADD #used :less")
            .only_if("#used >= :by")
            .bind("by", unused_outside)?
            .bind("less", -i64::from(unused_outside))?;
        writes.push(all);
    }
    match db.transact(&writes).await {
        // Refused: another run gave them back, or the day is over.
        Ok(()) | Err(WriteError::Refused(_)) => Ok(()),
        Err(WriteError::Failed(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use base::money::Usdc;

    use super::*;

    #[test]
    fn a_fifth_of_the_day_is_for_agents_with_money() {
        for (settled, expected) in [(0, 8_000), (49_999, 8_000), (50_000, 10_000)] {
            let account = Account { settled: Usdc::from_micro(settled), ..Account::default() };
            assert_eq!(Share::of(&account, 10_000).most, expected, "{settled}");
        }
        assert_eq!(Share::of(&Account::default(), 1).most, 1);
    }
}
