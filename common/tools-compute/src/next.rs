//! What a goal does next, from its tasks alone.

use std::time::Duration;

use base::clock::Timestamp;
use base::tool_result::{ErrorCode, ToolError, Unavailable};

use crate::goal::{Failure, Task, TaskKind, TaskState};

/// Calls of a goal that go on at once.
pub const AT_ONCE: usize = 4;
/// Attempts of one task.
pub const MOST_ATTEMPTS: u32 = 3;
/// Pause before the second attempt, and before the third.
const PAUSES: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// These calls can be bought: numbers of tasks.
    Start(Vec<u32>),
    /// Something goes on, or waits for a person. `at`: the next attempt of a task.
    Wait { at: Option<Timestamp> },
    /// Nothing is left that could be done. The word is why.
    Over(&'static str),
}

/// Decides. Tasks that wait for the approver of the owner's policy are asked about in each run (`held`).
pub fn next(tasks: &[Task], now: Timestamp) -> Next {
    let is_done = |number: &u32| tasks.iter().any(|task| task.number == *number && task.state == TaskState::Completed);
    let is_call = |task: &&Task| task.kind == TaskKind::Call;
    let ready = tasks.iter().filter(is_call).filter(|task| task.state == TaskState::Pending);
    let ready: Vec<&Task> = ready.filter(|task| task.needs.iter().all(is_done)).collect();
    let running = tasks.iter().filter(|task| task.state == TaskState::Running).count();
    let due = ready.iter().filter(|task| task.not_before.is_none_or(|at| at <= now)).map(|task| task.number);
    let start: Vec<u32> = due.take(AT_ONCE.saturating_sub(running)).collect();
    if !start.is_empty() {
        return Next::Start(start);
    }
    let waits = tasks.iter().any(|task| task.state == TaskState::Waiting && is_wanted(tasks, task));
    if running > 0 || waits || !ready.is_empty() {
        return Next::Wait { at: ready.iter().filter_map(|task| task.not_before).min() };
    }
    Next::Over(match tasks.iter().filter(|task| task.state == TaskState::Failed).map(|task| task.attempt).max() {
        None => "completed",
        Some(attempts) if attempts >= MOST_ATTEMPTS => "no_progress",
        Some(_) => "task_failed",
    })
}

/// Whether the answer to a waiting task could still lead to anything: no task that it is for has failed, nor one that this needs.
fn is_wanted(tasks: &[Task], waiting: &Task) -> bool {
    if waiting.kind != TaskKind::Question {
        return true;
    }
    let of = |number: &u32| tasks.iter().find(|task| task.number == *number);
    let is_dead = |task: &Task| {
        task.state == TaskState::Failed
            || task.needs.iter().any(|need| of(need).is_some_and(|need| need.state == TaskState::Failed))
    };
    let users = tasks.iter().filter(|task| task.needs.contains(&waiting.number));
    users.into_iter().any(|task| !is_dead(task))
}

/// A task after an attempt that failed: pending again, or failed for good. A failed call was paid back, because nothing was done; so it
/// may be tried again.
pub fn after_failure(task: &Task, error: &ToolError, now: Timestamp) -> Task {
    let failure = Failure {
        code: match &error.reason {
            Some(reason) => reason.clone(),
            None => code_of(error.code),
        },
        message: error.message.clone(),
    };
    after_refusal(task, failure, may_pass(error), now)
}

/// The same for an attempt that was refused before it was bought.
pub fn after_refusal(task: &Task, failure: Failure, may_pass: bool, now: Timestamp) -> Task {
    let tried = task.attempt.max(1);
    let pause = usize::try_from(tried).ok().and_then(|tried| PAUSES.get(tried - 1));
    match pause.filter(|_| may_pass && tried < MOST_ATTEMPTS) {
        Some(pause) => Task {
            state: TaskState::Pending,
            attempt: tried,
            failure: Some(failure),
            not_before: Some(now.plus(*pause)),
            ..task.clone()
        },
        None => Task { attempt: tried, ..task.failed(failure, now) },
    }
}

/// Whether the same call may succeed a moment later.
fn may_pass(error: &ToolError) -> bool {
    const LASTING: [Unavailable; 5] = [
        Unavailable::FrozenByOwner,
        Unavailable::ProviderNotConfigured,
        Unavailable::NotInLocalIndex,
        Unavailable::NeedsBrowser,
        Unavailable::OptedOut,
    ];
    match error.code {
        ErrorCode::RateLimited | ErrorCode::InternalError => true,
        ErrorCode::ProviderUnavailable => {
            !LASTING.iter().any(|lasting| error.reason.as_deref() == Some(lasting.as_str()))
        }
        _ => false,
    }
}

fn code_of(code: ErrorCode) -> String {
    serde_json::to_value(code).ok().and_then(|code| code.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::tests::call;

    const NOW: Timestamp = Timestamp::from_secs(1_795_000_000);

    fn in_state(number: u32, needs: &[u32], state: TaskState) -> Task {
        Task { state, needs: needs.to_vec(), ..call(number) }
    }

    #[test]
    fn tasks_start_once_what_they_need_is_done_and_four_at_once() {
        use TaskState::{Completed, Failed, Pending, Running, Waiting};
        let first: Vec<Task> = (0..6).map(|number| in_state(number, &[], Pending)).collect();
        assert_eq!(next(&first, NOW), Next::Start(vec![0, 1, 2, 3]));
        let tasks = [in_state(0, &[], Running), in_state(1, &[0], Pending)];
        assert_eq!(next(&tasks, NOW), Next::Wait { at: None });
        let tasks = [in_state(0, &[], Completed), in_state(1, &[0], Pending)];
        assert_eq!(next(&tasks, NOW), Next::Start(vec![1]));
        let tasks = [in_state(0, &[], Failed), in_state(1, &[0], Pending), in_state(2, &[], Pending)];
        assert_eq!(next(&tasks, NOW), Next::Start(vec![2]), "others go on");
        let tasks = [in_state(0, &[], Failed), in_state(1, &[0], Pending)];
        assert_eq!(next(&tasks, NOW), Next::Over("task_failed"));
        let tasks = [in_state(0, &[], Completed), in_state(1, &[0], Completed)];
        assert_eq!(next(&tasks, NOW), Next::Over("completed"));
        let question = Task { kind: TaskKind::Question, ..in_state(0, &[], Waiting) };
        let tasks = [question.clone(), in_state(1, &[0], Pending)];
        assert_eq!(next(&tasks, NOW), Next::Wait { at: None });
        let tasks = [question, in_state(1, &[], Failed), in_state(2, &[0, 1], Pending)];
        assert_eq!(next(&tasks, NOW), Next::Over("task_failed"), "nobody needs the answer");
    }

    #[test]
    fn what_may_pass_is_tried_three_times_and_what_lasts_once() {
        let error = |reason| ToolError::unavailable(reason, "x");
        let mut task = Task { attempt: 1, ..in_state(0, &[], TaskState::Running) };
        for attempt in 1..MOST_ATTEMPTS {
            task = after_failure(&task, &error(Unavailable::SourceUnavailable), NOW);
            assert_eq!((task.state, task.attempt), (TaskState::Pending, attempt));
            assert!(task.not_before.is_some_and(|at| at > NOW));
            task = Task { attempt: attempt + 1, state: TaskState::Running, ..task };
        }
        task = after_failure(&task, &error(Unavailable::SourceUnavailable), NOW);
        assert_eq!((task.state, next(&[task], NOW)), (TaskState::Failed, Next::Over("no_progress")));
        let lasting = after_failure(&call(0), &error(Unavailable::OptedOut), NOW);
        assert_eq!(lasting.state, TaskState::Failed);
        let wrong = after_failure(&call(0), &ToolError::new(ErrorCode::InvalidInput, "x"), NOW);
        assert_eq!(
            (wrong.state, wrong.failure.map(|failure| failure.code)),
            (TaskState::Failed, Some("invalid_input".to_owned()))
        );
    }
}
