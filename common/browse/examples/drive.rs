//! Plays a plan by hand, for tuning and judging: JSON lines in, decisions out. First `{"task": …, "start_url": …,
//! "schema": …}`, then `{"view": …, "outcome": …}` for each act.

use std::io::{BufRead, Write};

use browse::{Outcome, Plan, View};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Task {
    task: String,
    start_url: Option<String>,
    schema: Option<Value>,
    /// Whether filled fields are sent though the task does not say so.
    #[serde(default)]
    send: bool,
}

#[derive(Deserialize)]
struct Seen {
    view: View,
    outcome: Option<Outcome>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut lines = std::io::stdin().lock().lines();
    let mut out = std::io::stdout().lock();
    let Some(first) = lines.next() else { return Ok(()) };
    let task: Task = serde_json::from_str(&first?)?;
    let mut plan = match Plan::read(&task.task, task.start_url.as_deref(), task.schema.as_ref()) {
        Ok(plan) if task.send => plan.sending(),
        Ok(plan) => plan,
        Err(not) => {
            writeln!(out, "{}", json!({"not_understood": not.parts}))?;
            return Ok(());
        }
    };
    writeln!(out, "{}", json!({"written_steps": plan.written_steps(), "plan": format!("{plan:?}")}))?;
    out.flush()?;
    for line in lines {
        let seen: Seen = serde_json::from_str(&line?)?;
        writeln!(out, "{}", serde_json::to_string(&plan.next(&seen.view, seen.outcome.as_ref()))?)?;
        out.flush()?;
    }
    Ok(())
}
