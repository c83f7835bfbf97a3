//! Makes the result of a call from the service's answer.

use base::encoding::base64_standard;
use base::tool_result::{Source, ToolError};
use platform::http::log;
use platform::store::{Key, Write};
use serde_json::{Value, json};
use tools::files::{self, FileRow, NotKept, Owner};
use tools::own::INLINE_BYTES;
use tools::{Output, Task, Toolbox};
use upstream::{AnswerContent, Outcome};

use crate::PROVIDER;
use crate::ask::callers_fault;

pub async fn output(toolbox: &Toolbox, task: &Task, outcome: Outcome) -> Result<Output, ToolError> {
    let result = match outcome {
        Outcome::Answer(AnswerContent::Json(json)) => json,
        Outcome::Answer(AnswerContent::Bytes { bytes, content_type }) if bytes.len() <= INLINE_BYTES => {
            let (member, content) = match String::from_utf8(bytes.clone()) {
                Ok(text) if content_type.starts_with("text/") => ("text", text),
                _ => ("base64", base64_standard(&bytes)),
            };
            json!({"content_type": content_type, "bytes": bytes.len(), member: content})
        }
        Outcome::Answer(AnswerContent::Bytes { bytes, content_type }) => {
            let size = bytes.len();
            let file = keep(toolbox, task, bytes, content_type).await?;
            json!({"content_type": content_type, "bytes": size, "file": file})
        }
        Outcome::CallersFault { status, json } => return Err(callers_fault(status, &json)),
        Outcome::Failed(failure) => return Err(failure.tool_error()),
    };
    Ok(Output::new(result, Source::upstream(PROVIDER, None)))
}

/// Keeps a long answer among the job's files.
async fn keep(toolbox: &Toolbox, task: &Task, bytes: Vec<u8>, content_type: &str) -> Result<Value, ToolError> {
    let name = "answer";
    let row = FileRow::of(name, content_type, bytes.len() as u64, toolbox.clock.now());
    let owner = Owner { request_id: task.request_id, price: task.price };
    let open = Write::check(&toolbox.db.tables.jobs, Key::of_job(task.request_id)).only_if("attribute_exists(#open)");
    match files::keep(&toolbox.db, &*toolbox.blobs, owner, open, row, Some(bytes)).await {
        Ok(Ok(())) => Ok(json!(name)),
        Ok(Err(NotKept::Full { why, .. })) => Err(ToolError::internal(format!("the answer could not be kept: {why}"))),
        Ok(Err(_)) => Err(ToolError::internal("the answer could not be kept")),
        Err(error) => {
            log::failure("the answer of an own service was not kept", &error);
            Err(ToolError::internal("the answer could not be kept"))
        }
    }
}
