//! Answers any row: from the cache, from the operator's snapshot, or from the source.

use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use platform::http::log;
use platform::providers::{Ask, OutboundError};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::snapshot;
use tools::{Output, Running, Source, Task, ToolError, Toolbox, Unavailable};

use super::row::{Failed, Key, Lookup, Member, Request, Source as Register, Take, Turn};
use super::{fill, find, kept, map};

/// Time reserved for storing the answer.
const RESERVE: Duration = Duration::from_millis(500);

/// Runs the row of the task's tool.
pub fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let row = find(task.tool.name).ok_or_else(|| ToolError::internal("there is no such lookup"))?;
        answer(&toolbox, row, &task).await
    })
}

async fn answer(toolbox: &Toolbox, row: &'static Lookup, task: &Task) -> Result<Output, ToolError> {
    let now = toolbox.clock.now();
    let key = kept::key(row.spec.name, &task.input);
    let is_kept = !row.keep.is_zero() && !row.requests.is_empty();
    if is_kept && let Some(result) = kept::read(toolbox, &key, now).await {
        return Ok(Output::new(result, Source::upstream(row.source.provider, None)));
    }
    let turn = row.snapshot.map(|snapshot| snapshot.turn);
    if turn.is_some_and(|turn| turn != Turn::Fallback)
        && let Some(found) = own_copy(toolbox, row, &task.input).await?
        && (found.result["found"] == true || turn == Some(Turn::Only))
    {
        return Ok(found);
    }
    if row.requests.is_empty() {
        let message = format!("no snapshot of {} is imported here, and it has no other source", row.source.name);
        return Err(ToolError::unavailable(Unavailable::SourceUnavailable, message));
    }
    let left = Duration::from_millis(u64::try_from(task.deadline.millis() - now.millis()).unwrap_or_default());
    let deadline = Instant::now() + left.saturating_sub(RESERVE);
    match fresh(toolbox, row, &task.input, now, deadline).await {
        Ok(result) => {
            if is_kept {
                kept::write(toolbox, &key, &result, now, row.keep).await;
            }
            Ok(Output::new(result, Source::upstream(row.source.provider, None)))
        }
        Err(error) => match turn {
            Some(Turn::Fallback) => match own_copy(toolbox, row, &task.input).await? {
                Some(found) => Ok(found),
                None => Err(unavailable(row, &error)),
            },
            _ => Err(unavailable(row, &error)),
        },
    }
}

/// Asks the source, without cache and snapshot.
pub async fn fresh(
    toolbox: &Toolbox,
    row: &Lookup,
    given: &Map<String, Value>,
    now: Timestamp,
    deadline: Instant,
) -> Result<Value, OutboundError> {
    let mut input = given.clone();
    (row.derive)(&mut input, now);
    let answer = ask(toolbox, row, input.clone(), deadline).await?;
    let answer = (row.reshape)(answer, &input);
    let is_misshapen = map::is_misshapen(&answer, row.found, row.answer);
    let result = result(row, answer, given, &now.to_string());
    // The source says that there is a record, but none can be read. Its format has changed, or it is not working.
    let says_nothing = |member: &Member| map::says_nothing(&result[member.name]);
    let mut found_ones = row.answer.iter().filter(|member| member.from == row.found && member.kind.is_list());
    let is_hollow = row.answer.iter().all(says_nothing) || found_ones.any(says_nothing);
    if result["found"] == true && (is_misshapen || is_hollow) {
        return Err(OutboundError::Unreadable("it contains no readable record".to_owned()));
    }
    Ok(result)
}

/// A refused key or a rate limit also counts as "source unavailable": the caller cannot do anything about it.
fn unavailable(row: &Lookup, error: &OutboundError) -> ToolError {
    let told = error.of(row.source.name).message;
    let reason = match error {
        OutboundError::NotConfigured(_) => Unavailable::ProviderNotConfigured,
        _ => Unavailable::SourceUnavailable,
    };
    ToolError::unavailable(reason, told)
}

async fn own_copy(
    toolbox: &Toolbox,
    row: &'static Lookup,
    input: &Map<String, Value>,
) -> Result<Option<Output>, ToolError> {
    let Some(own) = row.snapshot else { return Ok(None) };
    let copy = snapshot::open(&*toolbox.blobs, own.name).await;
    let copy = copy.map_err(|error| {
        log::failure(&format!("the copy of {} could not be read", own.name), &error);
        let message = format!("the copy of {} could not be read", row.source.name);
        ToolError::unavailable(Unavailable::SourceUnavailable, message)
    })?;
    let Some(copy) = copy else { return Ok(None) };
    let input = input.clone();
    // Comparing names with a whole register would block the async thread.
    let work = tokio::task::spawn_blocking(move || result(row, (own.find)(&copy, &input), &input, &copy.as_of));
    let result = work.await.map_err(|_| ToolError::internal("the snapshot could not be searched"))?;
    Ok(Some(Output::new(result, Source::embedded(own.name))))
}

/// The result for the caller: the mapped answer, its source and date.
pub fn result(row: &Lookup, answer: Value, input: &Map<String, Value>, as_of: &str) -> Value {
    let limit = input.get("limit").and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
    let mut result = map::members(row.answer, &answer, limit);
    result.insert("found".to_owned(), json!(map::is_there(&answer, row.found)));
    let (name, url, licence) = (row.source.name, row.source.url, row.source.licence);
    result.insert("source".to_owned(), json!({"name": name, "url": url, "licence": licence}));
    result.insert("as_of".to_owned(), json!(as_of));
    result.insert("cached".to_owned(), json!(false));
    result.insert("notice".to_owned(), json!(row.notice));
    Value::Object(result)
}

/// Sends the row's requests. One request gives its answer; several give an array, with null for each missing answer.
async fn ask(
    toolbox: &Toolbox,
    row: &Lookup,
    mut input: Map<String, Value>,
    deadline: Instant,
) -> Result<Value, OutboundError> {
    let mut answers = Vec::new();
    for request in row.requests {
        let answer = ask_one(toolbox, row, request, &input, deadline).await?;
        let is_last = answers.len() + 1 == row.requests.len();
        let mut is_stuck = false;
        for take in request.take {
            let (name, taken) = match take {
                Take::At(name, pointer) => (*name, joined(&answer, pointer)),
                Take::Pick(name, pick) => (*name, pick(&answer, &input)),
            };
            // Stop if the next request would lack its input.
            is_stuck |= taken.is_none() && !is_last && !input.contains_key(name);
            input.extend(taken.map(|taken| (name.to_owned(), Value::String(taken))));
        }
        answers.push(answer);
        if is_stuck {
            break;
        }
    }
    answers.resize(row.requests.len(), Value::Null);
    Ok(if answers.len() == 1 { answers.remove(0) } else { Value::Array(answers) })
}

fn joined(answer: &Value, pointer: &str) -> Option<String> {
    let texts: Vec<String> = map::find(answer, pointer)
        .into_iter()
        .flat_map(|value| match value {
            Value::Array(items) => items.iter().collect(),
            value => vec![value],
        })
        .filter_map(|value| match value {
            Value::String(text) if !text.is_empty() && text.len() <= 200 => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        })
        .take(50)
        .collect();
    (!texts.is_empty()).then(|| texts.join(","))
}

async fn ask_one(
    toolbox: &Toolbox,
    row: &Lookup,
    request: &Request,
    input: &Map<String, Value>,
    deadline: Instant,
) -> Result<Value, OutboundError> {
    let source = request.source.unwrap_or(row.source);
    let paths = fill::paths(request, input);
    if paths.is_empty() {
        return Ok(Value::Null);
    }
    for path in paths {
        let body = request.body.map(|body| body(input));
        let ask = keyed(toolbox, source, path, body).await?;
        let expected = [request.absent, request.also].concat();
        let sent = toolbox.outbound.send(source.provider, source.origin, &ask, &expected, deadline).await?;
        let unreadable = || OutboundError::Unreadable("not what its documentation says".to_owned());
        let answer: Result<Value, OutboundError> = serde_json::from_slice(&sent.body).map_err(|_| unreadable());
        // Checked before the status, because some sources use the status of "no such record" for a wrong key.
        if let Ok(answer) = &answer
            && let Some(said) = source.failed.iter().find_map(|failed| refusal(*failed, answer))
        {
            return Err(OutboundError::Failed(said));
        }
        if request.absent.contains(&sent.status) {
            continue;
        }
        let answer = answer?;
        let is_genuine = request.genuine.iter().any(|pointer| match *pointer {
            "" => answer.is_array(),
            "{}" => answer.is_object(),
            "null" => answer.is_null(),
            pointer => map::is_said(&answer, pointer),
        });
        return if is_genuine { Ok(answer) } else { Err(unreadable()) };
    }
    Ok(Value::Null)
}

/// The source's error message, for the log, if the answer is a failure.
fn refusal(failed: Failed, answer: &Value) -> Option<String> {
    let line = |value: &Value| base::untrusted_text::visible(&value.to_string()).chars().take(300).collect();
    match failed {
        Failed::At(pointer) => map::is_there(answer, pointer).then(|| map::find(answer, pointer)),
        Failed::Text(pointer) => {
            let found = map::find(answer, pointer);
            found.iter().any(|value| value.is_string()).then_some(found)
        }
        Failed::Unless(pointer, known) => {
            let found = map::find(answer, pointer);
            let is_known = |value: &&Value| {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                value.is_null() || known.iter().any(|known| text.starts_with(known))
            };
            (!found.iter().all(is_known)).then_some(found)
        }
    }
    .and_then(|found| found.first().map(|value| line(value)))
}

/// The request with the deployment's key, if the source takes one.
async fn keyed(
    toolbox: &Toolbox,
    source: &Register,
    mut path: String,
    body: Option<Value>,
) -> Result<Ask, OutboundError> {
    let provider = source.provider;
    let optional = || async {
        toolbox
            .outbound
            .key(provider)
            .await
            .map_err(|_| OutboundError::NotAsked("its key could not be read".to_owned()))
    };
    let (in_query, in_header) = match source.key {
        Key::None => (None, None),
        Key::Query(name) => (Some((name, toolbox.outbound.needed_key(provider).await?)), None),
        Key::MayQuery(name) => (optional().await?.map(|key| (name, key)), None),
        Key::Header(name, word) => (None, Some((name, word, toolbox.outbound.needed_key(provider).await?))),
        Key::MayHeader(name, word) => (None, optional().await?.map(|key| (name, word, key))),
    };
    if let Some((name, key)) = in_query {
        let mark = if path.contains('?') { '&' } else { '?' };
        path.push_str(&format!("{mark}{name}={}", base::encoding::percent_encoded(key.expose())));
    }
    let ask = match body {
        Some(body) => Ask::post(path, &body),
        None => Ask::get(path),
    };
    let ask = Ask { per_second: source.per_second, ..ask };
    Ok(match in_header {
        Some((name, word, key)) => ask.header(name, format!("{word}{}", key.expose())),
        None => ask,
    })
}

/// The date so many days before now (`YYYY-MM-DD`), for rows whose period counts back from today.
pub fn days_before(now: Timestamp, days: u64) -> String {
    now.minus(Duration::from_secs(days * 24 * 3600)).to_string().chars().take(10).collect()
}
