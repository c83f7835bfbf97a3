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
/// How many tokens a mail names, those that spent the most.
const MOST_TOKENS: usize = 5;

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
    let limit = budget.daily_limit().unwrap_or_default();
    let tokens = day.by_token().into_iter().take(MOST_TOKENS);
    let by_token: String =
        tokens.map(|(id, spent)| format!("{spent} USDC of it with the access token {id}\n")).collect();
    let (stops, to_stop) = match day.committed >= limit {
        true => ("Calls are refused now, until midnight UTC.".to_owned(), "To keep it stopped after that"),
        false => (format!("From {limit} USDC on, calls are refused until midnight UTC."), "To stop it now"),
    };
    let text = format!(
        "An agent on {service} has reached the alert level of its budget.\n\n\
         Spent on {name} (UTC): {spent} of {daily} USDC.\n{by_token}{stops}\n\n\
         {to_stop}, freeze the agent, or one token,\n\
         with the wallet's own key:\n\n\
         POST /v1/agents/me/freezes {{\"what\": \"agent\"}}\n\
         POST /v1/agents/me/freezes {{\"what\": \"token\", \"id\": \"...\"}}\n\n\
         You get this mail at most once a day. If you do not know this agent, ignore it.\n\n\
         {who}\n",
        spent = day.committed,
        daily = budget.daily.unwrap_or_default(),
    );
    Letter {
        to: to.to_owned(),
        subject: "A budget has reached its alert level".to_owned(),
        id: format!("budget-{agent}-{name}"),
        text,
        proven: None,
    }
}

#[cfg(test)]
mod tests {
    use base::ids::TokenId;
    use base::money::Usdc;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mail_says_which_token_spent_and_how_to_stop_it() {
        let agent: AgentId = "00000000-0000-8000-8000-000000000000".parse().unwrap();
        let token = TokenId::made_at(Timestamp::from_secs(1_795_000_000));
        let part = format!("k_{}", token.to_string().replace('-', ""));
        let budget = Budget { daily: Some(Usdc::from_micro(500_000)), ..Budget::default() };
        let text = |committed: u64| {
            let day: Day = serde_json::from_value(json!({"committed": committed, (part.clone()): 300_000})).unwrap();
            letter("Agora", "owner@example.com", agent, "2026-11-21", &budget, &day).text
        };
        let (warned, full) = (text(400_000), text(500_000));
        for text in [&warned, &full] {
            assert!(text.contains(&format!("0.300000 USDC of it with the access token {token}\n")), "{text}");
            assert!(text.contains(r#"POST /v1/agents/me/freezes {"what": "agent"}"#), "{text}");
        }
        assert!(warned.contains("From 0.500000 USDC on") && warned.contains("To stop it now"), "{warned}");
        assert!(full.contains("Calls are refused now") && !full.contains("To stop it now"), "{full}");
    }
}
