//! Mails owners when a day's spending reaches the alert level of their budget: at most once a day for each agent, and only
//! if the budget has an address.
//!
//! The charge itself raises the notification. This module reads the same counters from the stream, so that no call waits
//! for a mail relay. The day's item is marked before the mail is sent, so neither a batch that is delivered again nor a
//! relay that timed out leads to a second mail. After a temporary refusal by the relay, a later charge tries again.

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

/// How many agents are handled at the same time. A batch has at most fifty, and a relay that times out costs each five of
/// the function's thirty seconds.
const AT_ONCE: usize = 25;
/// Delay before another attempt after the relay refused a mail.
const RETRY: Duration = Duration::from_secs(600);

/// Handles the days that these charges count on. An error means that not every budget could be read and the batch has to be
/// retried. A mail that cannot be sent is not an error.
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
    let account = account::load(db, agent).await?;
    let Some(budget) = &account.budget else { return Ok(()) };
    // An older version of the rules may have accepted an address that cannot stand in a mail header.
    let Some(to) = budget.alert_email.as_ref().filter(|email| is_email(email)) else { return Ok(()) };
    let Some(level) = budget.alert_level() else { return Ok(()) };
    let day = day::load(db, agent, name).await?;
    if day.committed < level || !day.may_mail(now) || !day::take_mail(db, agent, name, now).await? {
        return Ok(());
    }
    let letter = letter(mailer.service_name(), to, agent, name, budget, &day);
    let letter = Letter { proven: account.is_proven().then_some(agent), ..letter };
    if let Err(error) = mailer.send(db, &letter, now).await {
        log::failure("a budget's owner could not be mailed", &error);
        if matches!(error, MailError::NotNow(_)) {
            day::postpone_mail(db, agent, name, now.plus(RETRY)).await?;
        }
    }
    Ok(())
}

fn letter(service: &str, to: &str, agent: AgentId, name: &str, budget: &Budget, day: &Day) -> Letter {
    // A budget of an older version has no wallet.
    let who = match budget.wallet {
        Some(wallet) => format!("Wallet: {wallet}"),
        None => format!("Agent: {agent}"),
    };
    let text = format!(
        "An agent on {service} has reached the alert level of its budget.\n\n\
         Spent on {name} (UTC): {spent} of {daily} USDC.\n\
         From {limit} USDC on, calls are refused until midnight UTC.\n\n\
         To stop it now, freeze the agent or lower its budget with the wallet's own key.\n\
         You get this mail at most once a day. If you do not know this agent, ignore it.\n\n\
         {who}\n",
        spent = day.committed,
        daily = budget.daily.unwrap_or_default(),
        limit = budget.daily_limit().unwrap_or_default(),
    );
    Letter {
        to: to.to_owned(),
        subject: "A budget has reached its alert level".to_owned(),
        id: format!("budget-{agent}-{name}"),
        text,
        proven: None,
    }
}
