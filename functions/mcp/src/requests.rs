//! Polling of jobs bought over MCP: by a tool, and as tasks of the protocol's extension.
//!
//! Only a job's owner may read it, identified by an access token or a proof. A wallet that only paid through x402 has
//! neither. Its purchase is answered with a poll key for this one job, provided that the payment names the quote. A payment
//! alone is not enough: it can be read from the chain, the quote cannot.

use base::digest;
use base::encoding::{base64_any, base64_url};
use base::ids::RequestId;
use catalog::CATALOG;
use gate::jobs::job::{Job, Status};
use gate::jobs::store;
use gate::limits::{self, Class, Owned, Subject};
use gate::named_quote;
use http::request::Parts;
use platform::auth::Scope;
use platform::http::ApiError;
use ring::hmac;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResponse, CallToolResult, CreateTaskResult, DetailedTask, JsonObject, Task, TaskPayload, TaskStatus,
};
use serde_json::{Value, json};
use tools::files::Reader;

use crate::Shop;
use crate::answers::structured;
use crate::calls::{self, Answered};
use crate::tools::object;

/// How long a job can be read, in milliseconds.
const KEPT_MS: u64 = 30 * 24 * 3600 * 1000;
/// The suggested poll interval, in milliseconds.
const POLL_MS: u64 = 2000;

/// The key that poll keys are derived from.
pub fn key(quotes: &hmac::Key) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &digest::hmac(quotes, b"mcp requests"))
}

impl Shop {
    fn poll_key(&self, id: RequestId) -> String {
        base64_url(&digest::hmac(&self.poll_keys, id.to_string().as_bytes()))
    }

    /// Whether a call names the quote that bought this request.
    fn is_of_quote(&self, id: RequestId, parts: &Parts, meta: &JsonObject) -> Result<bool, ApiError> {
        let mut headers = calls::headers(parts, meta)?;
        calls::pay(&mut headers, meta)?;
        Ok(named_quote(&headers, &self.quotes).is_some_and(|quote| quote.request_id() == id))
    }

    /// The answer to an accepted call: a task if the client supports tasks, otherwise the arguments to poll with.
    pub async fn accepted(
        &self,
        mut result: CallToolResult,
        parts: &Parts,
        meta: &JsonObject,
        knows_tasks: bool,
    ) -> Result<CallToolResponse, ApiError> {
        let mut body = result.structured_content.take().unwrap_or_default();
        let id: Option<RequestId> = body["request_id"].as_str().and_then(|id| id.parse().ok());
        let Some(id) = id else { return Ok(result.into()) };
        let poll_key = self.is_of_quote(id, parts, meta)?.then(|| self.poll_key(id));
        if knows_tasks {
            // Read consistently: the client may read the task at once.
            if let Some(job) = store::load_latest(&self.app.db, id).await? {
                let name = poll_key.map_or_else(|| id.to_string(), |key| format!("{id}.{key}"));
                let mut task = CreateTaskResult::new(task(&name, &job));
                task.meta = result.meta;
                return Ok(CallToolResponse::Task(task));
            }
        }
        let tool = self.tools.iter().find(|entry| matches!(entry.kind, crate::tools::Call::Request));
        let tool = tool.map_or("get_request", |entry| &entry.name);
        let mut arguments = json!({"request_id": id});
        if let Some(key) = poll_key {
            body["poll_key"] = json!(key);
            arguments["poll_key"] = json!(key);
        }
        body["message"] = json!(format!(
            "accepted; call {tool} with these arguments every 2 seconds until status is completed or failed: {arguments}"
        ));
        body["poll"] = json!({"tool": tool, "arguments": arguments});
        let meta = result.meta.take();
        Ok(CallToolResult::structured(body).with_meta(meta).into())
    }

    /// A job, as its owner also polls it over HTTP.
    pub async fn request(
        &self,
        parts: &Parts,
        meta: &JsonObject,
        id: &str,
        poll_key: Option<&str>,
    ) -> Result<(Job, Value), ApiError> {
        let id: Option<RequestId> = id.parse().ok();
        let job = match (id, poll_key) {
            (Some(id), Some(key)) => {
                let given = base64_any(key).unwrap_or_default();
                let good = hmac::verify(&self.poll_keys, id.to_string().as_bytes(), &given).is_ok();
                let job = if good { store::load_latest(&self.app.db, id).await? } else { None };
                let job = job.filter(|job| !job.is_forgotten(self.app.clock.now())).ok_or(ApiError::NotFound)?;
                limits::take(&self.app, Subject::Agent(job.agent), Class::Read).await?;
                job
            }
            (id, _) => {
                let caller = self.app.caller(&calls::headers(parts, meta)?, Scope::Read).await?;
                let job = match id {
                    Some(id) => store::load_latest(&self.app.db, id).await?,
                    None => None,
                };
                let job = job.filter(|job| job.agent == caller.agent && !job.is_forgotten(self.app.clock.now()));
                job.ok_or(ApiError::NotFound)?
            }
        };
        if let Some(owned) = parts.extensions.get::<Owned>() {
            owned.set();
        }
        let body = ::requests::polled(&self.app, &job).await?;
        limits::take_result(&self.app, &job, Reader::Buyer, || body.to_string().len()).await?;
        Ok((job, body))
    }

    /// A job by the id of its task, for its owner.
    pub async fn of_task(&self, parts: &Parts, meta: &JsonObject, task: &str) -> Result<(Job, Value), Answered> {
        let (id, key) = task.split_once('.').map_or((task, None), |(id, key)| (id, Some(key)));
        self.request(parts, meta, id, key).await.map_err(Answered::from)
    }

    /// `tasks/get`
    pub async fn task(&self, parts: &Parts, meta: &JsonObject, name: &str) -> Result<DetailedTask, TaskError> {
        let (job, body) = self.of_task(parts, meta, name).await?;
        let payload = match job.status() {
            Status::Completed => TaskPayload::Completed { result: result(structured(body)) },
            Status::Failed => {
                let mut body = body;
                body["message"] = body["error"].clone();
                TaskPayload::Completed { result: result(CallToolResult::structured_error(body)) }
            }
            _ => TaskPayload::Working,
        };
        Ok(DetailedTask::new(task(name, &job), payload))
    }

    /// `tasks/update` and `tasks/cancel`: a task never asks for input, and paid work cannot be cancelled.
    pub async fn task_exists(&self, parts: &Parts, meta: &JsonObject, name: &str) -> Result<(), TaskError> {
        self.of_task(parts, meta, name).await.map(drop).map_err(TaskError)
    }
}

/// Why there is no such task.
pub struct TaskError(pub Answered);

impl From<Answered> for TaskError {
    fn from(answered: Answered) -> TaskError {
        TaskError(answered)
    }
}

fn task(name: &str, job: &Job) -> Task {
    let title = CATALOG.find(&job.tool).map_or("the work", |tool| tool.title);
    Task::new(name, TaskStatus::Working, job.created.to_string(), job.updated.to_string())
        .with_status_message(match job.status() {
            Status::Pending => format!("{title}: waiting"),
            Status::Processing => format!("{title}: being worked on"),
            Status::Completed => format!("{title}: done"),
            Status::Failed => format!("{title}: failed"),
        })
        .with_ttl_ms(KEPT_MS)
        .with_poll_interval_ms(POLL_MS)
}

fn result(result: CallToolResult) -> JsonObject {
    object(serde_json::to_value(result).unwrap_or_default())
}

/// The protocol's error for an unknown task.
pub fn unknown_task() -> ErrorData {
    ErrorData::invalid_params("you have no task with this id", None)
}
