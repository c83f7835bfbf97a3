//! Runs of work that cannot be taken back. An error of a runner pays everything back, and so does the engine when a run takes
//! longer than its tool's deadline. So **a runner that has done something never returns an error and never runs into its
//! deadline**: it works inside [`within_limit`], and where it cannot go on, another run does.

use std::time::Duration;

use base::tool_result::ToolError;
use platform::store::StoreError;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::Output;

/// Time limit of a run, for the tool's entry.
pub const DEADLINE: Duration = Duration::from_secs(100);
/// A run is stopped then. What follows has the time until [`DEADLINE`].
const STOP: Duration = Duration::from_secs(93);
/// Pause before the next run: there was not enough time.
pub const SOON: Duration = Duration::from_secs(1);
/// Pause before the next run: the database failed.
pub const STORE_PAUSE: Duration = Duration::from_secs(30);

/// Why a run ended without an output.
#[derive(Debug)]
pub enum Stop {
    /// The job fails: nothing was done that is charged.
    Failed(ToolError),
    /// The next run goes on.
    Store(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Stop {
        Stop::Store(error)
    }
}

impl From<ToolError> for Stop {
    fn from(error: ToolError) -> Stop {
        Stop::Failed(error)
    }
}

/// The work of one run under its time limit: how it ended. If it could not end: the pause before the next run, and the cause.
pub async fn within_limit(
    work: impl Future<Output = Result<Output, Stop>> + Send + 'static,
) -> Result<Result<Output, ToolError>, (Duration, StoreError)> {
    // Dropping the set stops the work.
    let mut working = JoinSet::new();
    working.spawn(work);
    Err(match timeout(STOP, working.join_next()).await {
        Ok(Some(Ok(Ok(output)))) => return Ok(Ok(output)),
        Ok(Some(Ok(Err(Stop::Failed(error))))) => return Ok(Err(error)),
        Ok(Some(Ok(Err(Stop::Store(error))))) => (STORE_PAUSE, error),
        // Not the panic's text: it may have words of a message or a call.
        Ok(Some(Err(_)) | None) => (STORE_PAUSE, StoreError::new("it panicked")),
        Err(late) => (SOON, StoreError::new(late)),
    })
}

#[cfg(test)]
mod tests {
    use base::tool_result::{ErrorCode, Source};
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_failure_of_the_work_fails_the_job() {
        let done = || Output::new(json!(1), Source::embedded("test"));
        assert_eq!(within_limit(async move { Ok(done()) }).await.unwrap(), Ok(done()));
        let refused = || ToolError::new(ErrorCode::InvalidInput, "no");
        assert_eq!(within_limit(async move { Err(refused().into()) }).await.unwrap(), Err(refused()));
        let pauses = [
            within_limit(async { Err(StoreError::new("away").into()) }).await,
            within_limit(async { panic!("a text of somebody") }).await,
            within_limit(std::future::pending()).await,
        ]
        .map(|run| run.unwrap_err());
        assert_eq!(pauses.each_ref().map(|(pause, _)| *pause), [STORE_PAUSE, STORE_PAUSE, SOON]);
        assert!(pauses.iter().all(|(_, cause)| !cause.to_string().contains("somebody")));
    }
}
