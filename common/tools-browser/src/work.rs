//! The task, from its first step to its result.
//!
//! Each step is recorded before it is done, and nothing on a page can be undone. So a run that finds a record ends the task by
//! it ([`by_record`]) and never begins again; and a run that has recorded a step never returns an error.

use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use base::encoding::base64_standard;
use browse::{Action, Decision, Outcome, View};
use platform::http::log;
use platform::providers::browser::{ActError, Download, Rules, Session as Browsing, StorageState};
use platform::store::{Key, StoreError, Write};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use tools::files::{self, FileRow, Owner};
use tools::pages::BROWSER;
use tools::{ErrorCode, Output, Running, Source, Task, ToolError, Toolbox, Unavailable, lock};
use url::Url;
use uuid::Uuid;

use crate::act::{Upload, act};
use crate::planner::{Given, Planner, files_of};
use crate::quote::{Locked, session_of};
use crate::sessions::{self, Left, Session};
use crate::steps::{self, Step};

/// Time for the last step, for storing files, and for the result.
const RESERVE: Duration = Duration::from_secs(60);
/// All files that a task uploads, in bytes.
const MAX_UPLOAD: u64 = 10 * 1024 * 1024;

pub fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move { work(&toolbox, &task).await })
}

async fn work(toolbox: &Toolbox, task: &Task) -> Result<Output, ToolError> {
    let locked: Locked = serde_json::from_value(Value::Object(task.locked.clone()))
        .map_err(|_| ToolError::internal("the stored quote cannot be read"))?;
    let done = steps::of_job(&toolbox.db, task.request_id).await.map_err(broken)?;
    if task.is_over || !done.is_empty() {
        return Ok(by_record(task, &locked, &done));
    }
    let Some(planner) = Planner::of(&task.input, &locked) else {
        return Err(ToolError::internal("the task cannot be read any more"));
    };
    let before = session(toolbox, task).await?;
    let uploads = uploads(toolbox, &files_of(&task.input)).await?;
    let allowed = allowed(&task.input, before.as_ref());
    task.reporter.say(2, "opening a browser");
    let left = before.as_ref().zip(toolbox.sealer.as_ref()).and_then(|(session, sealer)| session.open(sealer));
    let (last, state) = left.unzip();
    let browsing = open(toolbox, &allowed, state).await?;
    let tried = Tried {
        toolbox,
        task,
        locked,
        planner,
        uploads,
        done,
        allowed,
        before,
        last,
        notes: Vec::new(),
        files: Vec::new(),
        acted: false,
    };
    tried.run(browsing).await
}

fn broken(error: StoreError) -> ToolError {
    ToolError::internal(error.to_string())
}

/// The session that goes on, if this job has its lock.
async fn session(toolbox: &Toolbox, task: &Task) -> Result<Option<Session>, ToolError> {
    let Some(id) = session_of(&task.input) else { return Ok(None) };
    let refuse = |why: &str| Err(ToolError::new(ErrorCode::InvalidInput, why));
    let (db, key) = (&toolbox.db, sessions::lock_key(id));
    if !lock::is_held(db, &db.tables.agents, key, task.request_id).await.map_err(broken)? {
        return refuse("the session is used by another task");
    }
    match sessions::own(db, id, Some(task.agent), toolbox.clock.now()).await {
        Ok(session) => Ok(Some(session)),
        Err(_) => refuse("the session has ended"),
    }
}

/// The files that the task may upload.
async fn uploads(toolbox: &Toolbox, given: &[Given]) -> Result<Vec<Upload>, ToolError> {
    let gone = |file: &Given| ToolError::new(ErrorCode::InvalidInput, format!("the file {} is not there", file.path));
    let (mut uploads, mut room) = (Vec::new(), MAX_UPLOAD);
    for file in given {
        let row = files::load(&toolbox.db, file.job, &file.path).await.map_err(broken)?.ok_or_else(|| gone(file))?;
        room = room.checked_sub(row.size).ok_or_else(|| {
            ToolError::new(ErrorCode::InvalidInput, format!("files may have at most {MAX_UPLOAD} bytes together"))
        })?;
        let bytes = toolbox.blobs.get(&row.blob(file.job)).await.map_err(broken)?.ok_or_else(|| gone(file))?;
        let content = base64_standard(&bytes);
        uploads.push(Upload { name: file.name().to_owned(), content_type: row.content_type, content });
    }
    Ok(uploads)
}

/// The sites that may be opened: those that the caller names, or else those of the addresses in the body and of the session.
pub fn allowed(input: &Map<String, Value>, before: Option<&Session>) -> Vec<String> {
    let named = input.get("allowed_domains").and_then(Value::as_array).into_iter().flatten();
    let mut allowed: Vec<String> = named.filter_map(Value::as_str).map(str::to_lowercase).collect();
    if allowed.is_empty() {
        let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
        let opened = crate::quote::read(input).map(|plan| plan.addresses()).unwrap_or_default();
        let named = addresses(text("task")).chain([text("start_url")]).chain(opened.iter().map(String::as_str));
        allowed.extend(named.filter_map(site));
        allowed.extend(before.into_iter().flat_map(|session| session.allowed.clone()));
    }
    allowed.sort_unstable();
    allowed.dedup();
    allowed
}

/// The addresses in a text.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| letter.is_whitespace() || "\"'<>()[]{}“”‘’,;".contains(letter));
    let words = words.map(|word| word.trim_end_matches(['.', ':', '!', '?']));
    words.filter(|word| word.starts_with("http://") || word.starts_with("https://"))
}

/// The site of an address: its host without `www.`, and its port if that is not the usual one.
fn site(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let host = url.host_str()?;
    let host = host.strip_prefix("www.").unwrap_or(host);
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

async fn open(toolbox: &Toolbox, allowed: &[String], state: Option<StorageState>) -> Result<Browsing, ToolError> {
    let Some(browser) = &toolbox.browser else {
        return Err(ToolError::unavailable(Unavailable::NeedsBrowser, "no browser is configured (BROWSER_URL)"));
    };
    let key = match browser.wants_key() {
        true => Some(toolbox.outbound.needed_key(BROWSER).await.map_err(|error| error.of(BROWSER))?),
        false => None,
    };
    let rules = Rules { allowed: allowed.to_vec() };
    let opened = browser.session(key, toolbox.fetcher.clone(), rules, browse::VIEW_SCRIPT, state).await;
    opened.map_err(|error| ToolError::unavailable(Unavailable::SourceUnavailable, error.to_string()))
}

/// A task that is being done.
struct Tried<'a> {
    toolbox: &'a Toolbox,
    task: &'a Task,
    locked: Locked,
    planner: Planner,
    uploads: Vec<Upload>,
    done: Vec<Step>,
    allowed: Vec<String>,
    before: Option<Session>,
    /// The page at the end of the session's last task.
    last: Option<String>,
    notes: Vec<String>,
    files: Vec<FileRow>,
    /// A page took one of the steps.
    acted: bool,
}

/// How it ended.
struct End {
    success: Option<bool>,
    output: Value,
    reason: Option<String>,
    message: Option<String>,
    /// The last step may not have been done.
    incomplete: bool,
}

impl End {
    fn failed(reason: &str, message: impl Into<String>) -> End {
        End {
            success: Some(false),
            output: Value::Null,
            reason: Some(reason.to_owned()),
            message: Some(message.into()),
            incomplete: false,
        }
    }

    fn lost(reason: &str, message: impl Into<String>) -> End {
        End { success: None, incomplete: true, ..End::failed(reason, message) }
    }
}

impl Tried<'_> {
    async fn run(mut self, browsing: Browsing) -> Result<Output, ToolError> {
        let until = Timestamp::from_millis(self.task.deadline.millis() - millis(RESERVE));
        let start = self.task.input.get("start_url").and_then(Value::as_str).map(str::to_owned);
        let start = start.or_else(|| self.last.clone());
        if let Some(start) = start.filter(|start| start.starts_with("http")) {
            // Nothing is done by looking at a page: if it cannot be opened, everything comes back.
            if let Err(why) = browsing.goto(&start).await {
                browsing.close().await;
                let message = format!("the first page could not be opened: {why}");
                return Err(ToolError::unavailable(Unavailable::SourceUnavailable, message));
            }
        }
        let end = self.steps(&browsing, until).await;
        if !self.acted
            && let Some(reason) = &end.reason
        {
            browsing.close().await;
            let message = end.message.unwrap_or_else(|| reason.clone());
            return Err(ToolError::unavailable(Unavailable::SourceUnavailable, format!("nothing was done: {message}")));
        }
        self.task.reporter.say(92, "storing the result");
        let (url, state) = match browsing.view().await {
            Ok(view) => (view["url"].as_str().unwrap_or_default().to_owned(), browsing.state().await.ok()),
            Err(_) => (self.done.last().map(|step| step.url.clone()).unwrap_or_default(), None),
        };
        browsing.close().await;
        let (session, writes) = self.session_after(&url, state);
        let result = self.result(&end, &url, session);
        let used = self.used();
        Ok(Output::new(result, Source::embedded("browser")).charging(used).with(writes))
    }

    /// Step by step, until the task is done, given up, or what was paid for is used up.
    async fn steps(&mut self, browsing: &Browsing, until: Timestamp) -> End {
        let mut outcome: Option<Outcome> = None;
        loop {
            let now = self.toolbox.clock.now();
            if now >= until {
                return End::lost("deadline_exceeded", "the task took longer than it may");
            }
            let view: View = match browsing.view().await {
                Ok(view) => serde_json::from_value(view).unwrap_or_default(),
                Err(error) => return End::lost("browser_lost", error.to_string()),
            };
            let left = Duration::from_millis(u64::try_from(until.millis() - now.millis()).unwrap_or_default());
            let next = self.planner.next(self.toolbox, &view, outcome.as_ref(), &self.done, until);
            let Ok(decision) = timeout(left, next).await else {
                return End::lost("deadline_exceeded", "the model did not answer in time");
            };
            let (action, goal) = match decision {
                Decision::Done { success, output } => return self.end(success, output),
                Decision::GiveUp { reason, message } => return End::failed(&captcha_or(&view, &reason), message),
                Decision::Act { action, goal } => (action, goal),
            };
            // A short wait is for a page that is late: it changes nothing and costs nothing.
            let is_short =
                matches!(&action, Action::Wait { text: None, seconds } if seconds.is_none_or(|it| it <= 1.0));
            if !is_short && let Err(end) = self.record(&goal, &view.url).await {
                return end;
            }
            outcome = match self.act(browsing, &action).await {
                Ok(outcome) => Some(outcome),
                Err(end) => return end,
            };
            for Download { name, content_type, bytes, .. } in browsing.take_downloads() {
                self.keep(&name, &content_type, bytes).await;
            }
        }
    }

    /// Records a step before it is done. The end, if it must not be done.
    async fn record(&mut self, goal: &str, url: &str) -> Result<(), End> {
        let number = self.done.len() as u64 + 1;
        if number > self.locked.steps {
            let why = "the steps that were paid for are used up: repeat with a larger max_steps";
            return Err(End::failed("budget_used", why));
        }
        let share = u8::try_from(number * 85 / self.locked.steps.max(1)).unwrap_or(85);
        self.task.reporter.say(5 + share.min(85), format!("step {number} of at most {}", self.locked.steps));
        let step = Step::new(number, goal, url, self.planner.spent(), self.toolbox.clock.now());
        match steps::record(&self.toolbox.db, self.task.request_id, &step).await {
            Ok(true) => self.done.push(step),
            // What this run returns is not stored.
            Ok(false) => return Err(End::lost("steps_incomplete", "another run has the task")),
            Err(error) => return Err(End::lost("steps_incomplete", error.to_string())),
        }
        // From here on something may have happened on a page.
        self.task.reporter.must_end();
        Ok(())
    }

    /// Does a step, and says what became of it. The end, if the browser is lost.
    async fn act(&mut self, browsing: &Browsing, action: &Action) -> Result<Outcome, End> {
        let error = match act(browsing, action, &self.uploads).await {
            Ok(None) => None,
            Ok(Some(png)) => {
                let name = match action {
                    Action::Screenshot { name: Some(name) } => name.clone(),
                    _ => "screenshot.png".to_owned(),
                };
                self.keep(&name, "image/png", png).await;
                None
            }
            Err(ActError::Refused(why)) => {
                let covered = why.contains(" is covered by ").then(|| why.clone());
                return Ok(Outcome { error: Some(why), covered });
            }
            Err(ActError::Lost(why)) => return Err(End::lost("browser_lost", why)),
        };
        self.acted = true;
        let refused = browsing.refused();
        Ok(Outcome { error: error.or_else(|| navigation_refused(&refused)), ..Outcome::default() })
    }

    /// The end that the planner says, if its output has the form that was asked for.
    fn end(&self, success: Option<bool>, output: Value) -> End {
        let asked = self.task.input.get("output_schema");
        if let (Some(asked), false) = (asked, output.is_null())
            && let Err(wrong) = crate::answer::checked(Some(asked), &output)
        {
            return End { output, ..End::failed("output_incomplete", wrong) };
        }
        if schema_fits(&output) {
            if success == Some(false) {
                let why = "the page does not say everything that output_schema requires";
                return End { output, ..End::failed("output_incomplete", why) };
            }
            End { success, output, reason: None, message: None, incomplete: false }
        } else {
            End::failed("output_too_large", "the output has more than 64 KB")
        }
    }

    /// Keeps a file of the task.
    async fn keep(&mut self, name: &str, content_type: &str, bytes: Vec<u8>) {
        let (toolbox, task) = (self.toolbox, self.task);
        let name = self.free_name(name);
        let row = FileRow::of(&name, content_type, bytes.len() as u64, toolbox.clock.now());
        let owner = Owner { request_id: task.request_id, price: task.price };
        let open =
            Write::check(&toolbox.db.tables.jobs, Key::of_job(task.request_id)).only_if("attribute_exists(#open)");
        match files::keep(&toolbox.db, &*toolbox.blobs, owner, open, row.clone(), Some(bytes)).await {
            Ok(Ok(())) => self.files.push(row),
            Ok(Err(files::NotKept::Full { why, .. })) => self.notes.push(format!("{name} was not kept: {why}")),
            Ok(Err(_)) => self.notes.push(format!("{name} was not kept")),
            Err(error) => {
                log::failure("a file of a browser task was not kept", &error);
                self.notes.push(format!("{name} was not kept"));
            }
        }
    }

    /// A name as a path of a file: without folders, and not one that another file has.
    fn free_name(&self, name: &str) -> String {
        let last = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let clean: String = last.chars().filter(|letter| !letter.is_control()).take(100).collect();
        let clean = if clean.trim_matches(['.', ' ']).is_empty() { "file".to_owned() } else { clean };
        let is_taken = |name: &str| self.files.iter().any(|row| row.path == name);
        if !is_taken(&clean) {
            return clean;
        }
        (2..).map(|number| format!("{number}-{clean}")).find(|name| !is_taken(name)).unwrap_or(clean)
    }

    fn used(&self) -> base::money::Usdc {
        if !self.acted && self.planner.spent() == 0 {
            return base::money::Usdc::ZERO;
        }
        self.locked.of(self.done.len() as u64, self.planner.spent()).min(self.task.price)
    }

    /// The session that the next task may go on with.
    fn session_after(&self, url: &str, state: Option<StorageState>) -> (Option<Uuid>, Vec<Write>) {
        let id =
            self.before.as_ref().map_or_else(|| Uuid::from_bytes(*self.task.request_id.bytes()), |before| before.id);
        let (Some(state), Some(sealer)) = (state, &self.toolbox.sealer) else { return (None, Vec::new()) };
        let left = Left { url: url.to_owned(), allowed: self.allowed.clone(), state };
        let now = self.toolbox.clock.now();
        let session = Session::after(id, self.task.agent, self.before.as_ref(), left, sealer, now);
        match session.and_then(|session| session.put(&self.toolbox.db)) {
            Ok(write) => (Some(id), vec![write]),
            Err(error) => {
                log::failure("a browser session was not kept", &error);
                (None, Vec::new())
            }
        }
    }

    fn result(&self, end: &End, url: &str, session: Option<Uuid>) -> Value {
        let folder = format!("/v1/requests/{}/files", self.task.request_id);
        let model = self.planner.cost().map(|micro| micro as f64 / 1_000_000.0);
        let mut result = result(&self.done, self.used());
        result.extend(
            json!({
                "success": end.success,
                "steps_incomplete": end.incomplete,
                "final_url": steps::shown(url),
                "total_cost_usd": model,
                "session_id": session,
                "planner": self.planner.name(),
                "output_files": self.files.iter().map(|row| row.to_json(&folder)).collect::<Vec<_>>(),
            })
            .as_object()
            .cloned()
            .unwrap_or_default(),
        );
        if !end.output.is_null() {
            result.insert("output".to_owned(), end.output.clone());
        }
        for (name, text) in [("error_reason", &end.reason), ("error", &end.message)] {
            if let Some(text) = text {
                result.insert(name.to_owned(), json!(text));
            }
        }
        if !self.notes.is_empty() {
            result.insert("notes".to_owned(), json!(self.notes));
        }
        Value::Object(result)
    }
}

fn schema_fits(output: &Value) -> bool {
    crate::answer::checked(None, output).is_ok()
}

/// The members that every result has.
fn result(done: &[Step], used: base::money::Usdc) -> Map<String, Value> {
    let result = json!({
        "steps": done.iter().map(Step::to_json).collect::<Vec<_>>(),
        "step_count": done.len(),
        "cost": null,
        "billed_cost": used.micro() as f64 / 1_000_000.0,
    });
    result.as_object().cloned().unwrap_or_default()
}

/// The end of a task whose run was cut off: what was recorded, and nothing done again.
fn by_record(task: &Task, locked: &Locked, done: &[Step]) -> Output {
    let model = done.last().map_or(0, |step| step.model_micro);
    let used = locked.of(done.len() as u64, model).min(task.price);
    let mut result = result(done, used);
    let cut = json!({
        "success": null,
        "steps_incomplete": true,
        "final_url": done.last().map(|step| step.url.as_str()),
        "total_cost_usd": null,
        "session_id": null,
        "output_files": [],
        "error_reason": "steps_incomplete",
        "error": "the task was cut off: the last step may not have been done, and no step was done twice",
    });
    result.extend(cut.as_object().cloned().unwrap_or_default());
    Output::new(Value::Object(result), Source::embedded("browser")).charging(used)
}

/// The reason for giving up; `captcha` if the page shows one, because then that is why.
fn captcha_or(view: &View, reason: &str) -> String {
    let words = ["captcha", "turnstile", "are you a robot", "not a robot"];
    let is_one = |text: &str| words.iter().any(|word| text.to_lowercase().contains(word));
    let shows = view.nodes.iter().any(|node| is_one(node.words()) || node.href.as_deref().is_some_and(is_one));
    if reason == "target_not_found" && shows { "captcha".to_owned() } else { reason.to_owned() }
}

/// What kept the page from being opened, if the rules of the session did.
fn navigation_refused(refused: &[String]) -> Option<String> {
    refused.iter().find(|why| why.ends_with("its domain is not allowed")).cloned()
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed_by(body: Value) -> Vec<String> {
        allowed(body.as_object().unwrap(), None)
    }

    #[test]
    fn sites_come_from_the_body_alone() {
        let task = "Open https://www.shop.example/a?b and compare with http://127.0.0.1:8080/x.";
        assert_eq!(allowed_by(json!({"task": task})), ["127.0.0.1:8080", "shop.example"]);
        assert_eq!(
            allowed_by(json!({"task": task, "start_url": "https://other.example/"})),
            ["127.0.0.1:8080", "other.example", "shop.example"]
        );
        assert_eq!(allowed_by(json!({"task": task, "allowed_domains": ["A.example"]})), ["a.example"]);
    }
}
