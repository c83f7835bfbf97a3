//! Mails owners when a day's spending has come to the alert level of their budget: at most once a day for each agent,
//! and only where the budget names an address.
//!
//! The notification of the same is raised by the charge itself; this reads the same counters off the stream, so that no
//! call waits for a mail relay. The day's item says that its mail is taken care of before the mail is sent: a batch that
//! is delivered again, and a relay that fell silent, lead to no second mail. What a relay turned away for now is tried
//! again with a later charge.

use std::collections::BTreeSet;
use std::time::Duration;

use base::clock::Timestamp;
use base::contact::is_email;
use base::ids::AgentId;
use ledger::account;
use ledger::budget::Budget;
use ledger::day::{self, Day};
use platform::http::log;
use platform::mail::{Letter, MailError, Mailer};
use platform::store::{Db, StoreError};
use tokio::task::JoinSet;

/// So many agents are looked after at the same time. A batch has at most fifty, and a silent relay costs each five
/// seconds of the function's thirty.
const AT_ONCE: usize = 25;
/// A relay that turned a mail away is asked again after this long.
const RETRY: Duration = Duration::from_secs(600);

/// Looks after the days that these charges count on. An error means that not every budget could be looked at, and is to
/// be tried again; a mail that cannot be sent is none.
pub async fn send(
    db: &Db,
    mailer: &Mailer,
    charged: &BTreeSet<(AgentId, String)>,
    now: Timestamp,
) -> Result<(), StoreError> {
    if !mailer.is_configured() {
        return Ok(());
    }
    let mut charged = charged.iter();
    let mut running = JoinSet::new();
    let mut result = Ok(());
    loop {
        while running.len() < AT_ONCE
            && let Some((agent, day)) = charged.next()
        {
            let (db, mailer, agent, day) = (db.clone(), mailer.clone(), *agent, day.clone());
            running.spawn(async move { look_after(&db, &mailer, agent, &day, now).await });
        }
        match running.join_next().await {
            None => return result,
            Some(done) => result = result.and(done.map_err(StoreError::new).and_then(|done| done)),
        }
    }
}

async fn look_after(db: &Db, mailer: &Mailer, agent: AgentId, name: &str, now: Timestamp) -> Result<(), StoreError> {
    let Some(budget) = account::load(db, agent).await?.budget else { return Ok(()) };
    // What an older version of the rules let in can stand in no header.
    let Some(to) = budget.alert_email.as_ref().filter(|email| is_email(email)) else { return Ok(()) };
    let Some(level) = budget.alert_level() else { return Ok(()) };
    let day = day::load(db, agent, name).await?;
    if day.committed < level || !day.may_mail(now) || !day::take_mail(db, agent, name, now).await? {
        return Ok(());
    }
    let letter = letter(mailer.service_name(), to, agent, name, &budget, &day);
    if let Err(error) = mailer.send(db, &letter, now).await {
        log::failure("a budget's owner could not be mailed", &error);
        if matches!(error, MailError::NotNow(_)) {
            day::postpone_mail(db, agent, name, now.plus(RETRY)).await?;
        }
    }
    Ok(())
}

fn letter(service: &str, to: &str, agent: AgentId, name: &str, budget: &Budget, day: &Day) -> Letter {
    let text = format!(
        "An agent on {service} has come to the alert level of its budget.\n\n\
         Spent on {name} (UTC): {spent} of {daily} USDC.\n\
         Calls are refused from {limit} USDC on, until midnight UTC.\n\n\
         To stop it now, freeze the agent or lower its budget with the wallet's own key.\n\
         This is the only such mail today. If you know of no such agent, ignore it.\n\n\
         Agent: {agent}\n",
        spent = day.committed,
        daily = budget.daily.unwrap_or_default(),
        limit = budget.daily_limit().unwrap_or_default(),
    );
    Letter {
        to: to.to_owned(),
        subject: "A budget has come to its alert level",
        id: format!("budget-{agent}-{name}"),
        text,
    }
}
