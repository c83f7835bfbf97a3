//! Asks an operator's own services ([`tools::own`]) for what agents bought of them.
//!
//! A service that may be asked again is, while the deadline allows it. One that may not is asked once: a row says that its
//! request was sent, and a job that begins anew after a crash fails instead, and is paid back.

mod answer;
mod ask;
mod kept;
mod limits;

use std::sync::Arc;
use std::time::Duration;

use base::tool_result::{ErrorCode, Source, ToolError, Unavailable};
use tokio::time::Instant;
use tools::spec::ToolSpec;
use tools::{Output, Runner, Running, Task, Toolbox};
use upstream::{Outcome, Tool};

use crate::ask::Answered;

/// Provider of all answers: which service it was is the tool's name.
const PROVIDER: &str = "own";
/// Most requests for one call.
const ATTEMPTS: u32 = 3;
/// Pause before the second one, doubled each time.
const PAUSE: Duration = Duration::from_millis(300);

/// The work of every tool of the operator's own; the task says which.
pub static RUNNER: Runner = Runner { spec: &ENTRY, run };

/// A name for the list of runners. It is not sold.
static ENTRY: ToolSpec = ToolSpec { name: tools::own::RUNNER, ..ToolSpec::QUEUED };

fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let Some(tool) = task.tool.own else { return Err(ToolError::internal("this tool is not the operator's own")) };
        work(&toolbox, &task, tool).await
    })
}

async fn work(toolbox: &Toolbox, task: &Task, tool: &'static Tool) -> Result<Output, ToolError> {
    let request = upstream::build(tool, &task.input).map_err(|wrong| {
        let wrong: Vec<String> = wrong.iter().map(|wrong| format!("{} {}", wrong.path, wrong.message)).collect();
        ToolError::new(ErrorCode::InvalidInput, wrong.join("; "))
    })?;
    let key = kept::key(tool, &request);
    if let Some(result) = kept::read(toolbox, tool, &key).await {
        return Ok(Output::new(result, Source::embedded(PROVIDER)));
    }
    let place = limits::enter(toolbox, task, tool).await?;
    let outcome = until_answered(toolbox, task, tool, request).await;
    limits::leave(toolbox, place).await;
    let output = answer::output(toolbox, task, outcome?).await?;
    kept::write(toolbox, tool, &key, &output).await;
    Ok(output)
}

/// Asks until there is an answer or the caller's fault, as often as that is allowed.
async fn until_answered(
    toolbox: &Toolbox,
    task: &Task,
    tool: &'static Tool,
    request: upstream::Request,
) -> Result<Outcome, ToolError> {
    let request = request.for_call(&task.request_id.to_string());
    let until = Instant::now() + tool.deadline;
    limits::count(toolbox, tool).await?;
    for attempt in 1.. {
        if !tool.safe_to_retry {
            limits::only_once(toolbox, task).await?;
        }
        let (error, may_pass) = match ask::ask(toolbox, task, tool, &request, until).await {
            Answered::Judged(Outcome::Failed(failure)) => (failure.tool_error(), failure.reason.may_pass()),
            Answered::Judged(outcome) => return Ok(outcome),
            Answered::Final(error) => (error, false),
            Answered::Nothing(error) => (error, true),
        };
        let pause = PAUSE * 2u32.pow(attempt - 1);
        if !tool.safe_to_retry || !may_pass || attempt >= ATTEMPTS || Instant::now() + pause >= until {
            return Err(error);
        }
        tokio::time::sleep(pause).await;
    }
    Err(ToolError::unavailable(Unavailable::SourceUnavailable, "the service did not answer"))
}
