//! What an owner is told of a goal that waits for an answer: a notification, and an event for endpoints that subscribe to it. That it has
//! ended is told as for every job.

use base::clock::Timestamp;
use ledger::notifications::{self, Notification, NotificationKind};
use ledger::webhooks::{Event, EventKind, outbox};
use platform::http::log;
use platform::store::{Db, StoreError};
use serde_json::{Value, json};

use crate::goal::{Goal, Task, TaskKind, TaskState};
use crate::view::task_id;

/// Tells of the tasks that wait for an answer. Repeating it changes nothing. What cannot be written is logged: the owner still sees it by
/// reading the goal.
pub async fn waiting(db: &Db, goal: &Goal, tasks: &[Task], now: Timestamp) {
    let waits = |task: &&Task| task.state == TaskState::Waiting && task.kind != TaskKind::Call;
    for task in tasks.iter().filter(waits) {
        if let Err(error) = tell(db, goal, task, now).await {
            log::failure("an owner could not be told that a goal waits", &error);
        }
    }
}

async fn tell(db: &Db, goal: &Goal, task: &Task, now: Timestamp) -> Result<(), StoreError> {
    let cause = format!("{}#{}", goal.goal, task_id(task.number));
    let about = about(goal, task);
    let note = Notification {
        kind: NotificationKind::GoalWaiting,
        title: "a goal waits for your answer".to_owned(),
        body: task.asks.clone(),
        payload: Some(about.clone()),
    };
    db.write(notifications::raise_for(db, goal.agent, note, &cause, task.created, now)?).await?;
    let event = Event::new(goal.agent, EventKind::GoalUpdated, &cause, task.created, about);
    outbox::put(db, &event, now).await?.keep(db).await
}

fn about(goal: &Goal, task: &Task) -> Value {
    json!({
        "goal_id": goal.goal.goal(),
        "status": "waiting",
        "task_id": task_id(task.number),
        "goal_url": format!("/v1/compute/{}", goal.goal.goal()),
        "respond_url": format!("/v1/compute/{}/respond", goal.goal.goal()),
    })
}
