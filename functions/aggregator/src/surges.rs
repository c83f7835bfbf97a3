//! Notifies owners of spending far above their agent's usual day: at most once a day, off the call path.

use std::collections::BTreeSet;
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::AgentId;
use base::money::Usdc;
use ledger::notifications::{self, Notification, NotificationKind};
use ledger::surge::{BASELINE_DAYS, usual_if_surging};
use ledger::webhooks::{Event, EventKind};
use ledger::{day, surge};
use platform::store::{Db, StoreError, Write};
use serde_json::{Value, json};

/// The agent that this change charged and the day it counts on, if the change is a new job that counts against a day.
pub fn charged(old: &Value, new: &Value) -> Option<(AgentId, String)> {
    let is_new_job = old["pk"]["S"].is_null() && new["pk"]["S"].as_str()?.starts_with("JOB#");
    let charge = &new["charge"]["M"];
    let counted = charge["counted"]["N"].as_str().is_some_and(|counted| counted != "0");
    let (agent, day) = (new["agent"]["S"].as_str()?.parse().ok()?, charge["day"]["S"].as_str()?);
    (is_new_job && counted).then(|| (agent, day.to_owned()))
}

/// Notifications and webhook events for those of these agents that spend far more today than on a usual day.
pub async fn notes(
    db: &Db,
    charged: &BTreeSet<(AgentId, String)>,
    now: Timestamp,
) -> Result<(Vec<Write>, Vec<Event>), StoreError> {
    let (mut notes, mut events) = (Vec::new(), Vec::new());
    let agents: BTreeSet<AgentId> = charged.iter().map(|(agent, _)| *agent).collect();
    for agent in &agents {
        let spent = day::load(db, *agent, &day::name(now)).await?.committed;
        // Most days are below this and need no look at earlier days.
        if spent < surge::NEGLIGIBLE {
            continue;
        }
        let yesterday = day::name(now.minus(Duration::from_secs(24 * 3600)));
        let before = day::until(db, *agent, &yesterday, BASELINE_DAYS).await?;
        let before: Vec<Usdc> = before.iter().map(|day| day.committed).filter(|spent| *spent > Usdc::ZERO).collect();
        if let Some(usual) = usual_if_surging(spent, &before) {
            let about = about(spent, usual);
            let cause = format!("surge#{}", day::name(now));
            events.push(Event::new(*agent, EventKind::BudgetWarning, &cause, begin(now), about.clone()));
            notes.push(note(db, *agent, spent, usual, about, now)?);
        }
    }
    Ok((notes, events))
}

/// The start of the day.
fn begin(now: Timestamp) -> Timestamp {
    day::resets_at(now).minus(Duration::from_secs(24 * 3600))
}

fn about(spent: Usdc, usual: Usdc) -> Value {
    json!({"reason": "above_baseline", "spent_today_usdc": spent.to_string(), "usual_day_usdc": usual.to_string()})
}

fn note(db: &Db, agent: AgentId, spent: Usdc, usual: Usdc, about: Value, now: Timestamp) -> Result<Write, StoreError> {
    let note = Notification {
        kind: NotificationKind::BudgetWarning,
        title: format!("spending is far above usual: {spent} USDC today"),
        body: Some(format!(
            "A usual day is {usual} USDC. If you did not expect this, freeze the agent or set a budget."
        )),
        payload: Some(about),
    };
    notifications::raise_for(db, agent, note, &format!("surge#{}", day::name(now)), begin(now), now)
}
