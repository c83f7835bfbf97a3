//! Fault injection: whether faults are on, and processes that may die at any step.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use tokio::sync::Notify;

use super::dice::{Dice, Figures};

tokio::task_local! {
    /// The process the current task belongs to.
    static LIFE: Arc<Life>;
}

/// A process, which lives for a number of steps. A step is one request to the database, the chain or the queue, except those of
/// tools: the engine spawns their work.
pub struct Life {
    left: AtomicI64,
    /// Whether its last step still arrives, and only the answer is lost.
    last_one_arrives: bool,
    over: Notify,
}

impl Life {
    pub fn of(steps: i64, last_one_arrives: bool) -> Arc<Life> {
        Arc::new(Life { left: AtomicI64::new(steps), last_one_arrives, over: Notify::new() })
    }

    /// Runs a task as this process. `None` if the process died: the task is dropped where it was.
    pub async fn live<T>(self: Arc<Life>, task: impl Future<Output = T>) -> Option<T> {
        let over = self.clone();
        tokio::select! {
            biased;
            () = over.over.notified() => None,
            done = LIFE.scope(self, task) => Some(done),
        }
    }

    /// Ends it at once, whatever it waits for.
    pub fn end(&self) {
        self.over.notify_one();
    }

    async fn die(&self) {
        self.end();
        std::future::pending().await
    }
}

/// The process that the current task belongs to.
pub fn current() -> Option<Arc<Life>> {
    LIFE.try_with(Arc::clone).ok()
}

/// Runs a task as a part of this process, for tasks that are spawned: they do not inherit it.
pub async fn within<T>(life: Option<Arc<Life>>, task: impl Future<Output = T>) -> T {
    match life {
        Some(life) => LIFE.scope(life, task).await,
        None => task.await,
    }
}

/// The source of all decisions of a run.
pub struct Fate {
    pub dice: Dice,
    pub figures: Figures,
    on: AtomicBool,
}

impl Fate {
    pub fn new(seed: u64) -> Fate {
        Fate { dice: Dice::new(seed), figures: Figures::default(), on: AtomicBool::new(true) }
    }

    /// Turns faults on or off.
    pub fn set(&self, on: bool) {
        self.on.store(on, Ordering::SeqCst);
    }

    /// Whether this fault is injected now, with this chance in a thousand.
    pub fn strikes(&self, fault: &str, per_mille: u64) -> bool {
        let strikes = self.dice.roll(1000) < per_mille && self.on.load(Ordering::SeqCst);
        if strikes {
            self.figures.count(&format!("fault {fault}"));
        }
        strikes
    }

    /// A step of the current process. All others may act before it.
    pub async fn step<T>(&self, step: impl Future<Output = T>) -> T {
        self.figures.count("requests");
        tokio::time::sleep(self.dice.millis(6)).await;
        let Some(life) = current() else { return step.await };
        let left = life.left.fetch_sub(1, Ordering::SeqCst);
        if left <= 0 || left == 1 && !life.last_one_arrives {
            life.die().await;
        }
        let done = step.await;
        if left == 1 {
            life.die().await;
        }
        done
    }
}
