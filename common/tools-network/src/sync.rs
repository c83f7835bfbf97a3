//! Reads an account's messages into this service, a bounded number of pages in a run. What one run did not reach, the next goes on with.

use std::sync::Arc;
use std::time::Duration;

use base::clock::Timestamp;
use base::input::{Field, Kind as Form};
use base::money::Usdc;
use platform::http::log;
use platform::providers::OutboundError;
use platform::store::{StoreError, WriteError};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tools::run::{self, Stop};
use tools::spec::{Price, ToolSpec};
use tools::{Output, Runner, Running, Task, Toolbox};

use crate::account::{self, Account, Status};
use crate::claiming;
use crate::inbox::{self, By};
use crate::notices;
use crate::providers::{self, Page, Provider, Trouble, failed};
use crate::sold::{ACCOUNT, UUID};
use crate::syncing::{self, Coverage, History, Kind, Run};

/// Most pages of a run, and of one that says nothing about it.
pub const MAX_PAGES: u32 = 10;
/// Messages of a page.
const PAGE: usize = 250;
/// Chats whose members are read in a page's time. The others are read when they come up again.
const CHATS: usize = 20;
/// What is known of a chat's state is not asked for again in this time.
const FRESH: Duration = Duration::from_secs(600);
/// How long a run may take from its first try to its end.
const WITHIN: Duration = Duration::from_secs(3600);
/// A reading begins so much before the end of the last one: messages come late, and clocks differ.
const AROUND: Duration = Duration::from_secs(600);
/// The provider is asked so often for one page.
const TRIES: u32 = 3;

pub static SPEC: ToolSpec = ToolSpec {
    name: "linkedin_sync",
    title: "Sync of a professional-network account",
    summary: "Reads messages of your connected professional-network account into this service: up to 10 pages of 250, newest first, and goes on where the last sync stopped",
    group: crate::GROUP,
    paths: &["/v1/tools/linkedin/sync"],
    price: Price::Fixed(Usdc::from_micro(20_000)),
    keeps_record: true,
    strict: true,
    category: "communication",
    deadline: run::DEADLINE,
    input: &[
        Field::required("account_id", Form::Text { min: 36, max: 36, format: Some(&UUID) }, ACCOUNT),
        Field::optional(
            "mode",
            Form::Choice(&["continue", "restart", "history"]),
            "continue (the default): where the last sync stopped; restart: from the newest message; history: asks the network for older messages",
        ),
        Field::optional(
            "max_pages",
            Form::Integer { min: 1, max: MAX_PAGES as i64 },
            "Pages of 250 messages. Default: 10",
        ),
    ],
    refusals: &[
        (403, "grant_missing"),
        (404, "account_not_found"),
        (409, "account_not_connected"),
        (409, "sync_in_progress"),
        (503, "provider_unavailable"),
    ],
    needs: providers::needs,
    check_stored: |toolbox, input, _, agent, is_proven| {
        Box::pin(claiming::check_sync(toolbox, input, agent, is_proven))
    },
    claims: |toolbox, claiming| Box::pin(claiming::claim_sync(toolbox, claiming)),
    accepted: |_, id, _, input, _| {
        json!({"tool": "linkedin", "linkedin": {
            "action_request_id": id, "action": "sync", "account_id": input.get("account_id"), "run_id": id,
        }})
    },
    example: || json!({"account_id": "0b8ac6f0-41d2-4a2e-9c0d-1f2e3d4c5b6a"}),
    output,
    ..ToolSpec::QUEUED
};

pub static RUNNER: Runner = Runner { spec: &SPEC, run: begin };

fn output() -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    json!({
        "type": "object",
        "required": ["run_id", "kind", "outcome", "needs_continuation", "pages", "messages_seen", "messages_inserted"],
        "properties": {
            "run_id": {"type": "string", "format": "uuid"},
            "kind": {"type": "string", "enum": ["initial", "continue", "incremental", "history_request"]},
            "outcome": {"type": "string", "enum": ["exhausted", "bounded", "partial", "not_claimed"], "description": "exhausted: nothing older or newer is left; bounded: max_pages was reached; partial: the network stopped answering"},
            "needs_continuation": {"type": "boolean"},
            "provider_history": {"type": "string"},
            "pages": count, "requests": count, "messages_seen": count, "messages_inserted": count, "messages_updated": count,
            "conversations_inserted": count,
            "earliest_seen_at": {"type": ["string", "null"]},
            "latest_seen_at": {"type": ["string", "null"]},
            "has_next_cursor": {"type": "boolean"},
            "upstream_ms": count,
            "duration_ms": {"type": ["integer", "null"]},
        },
    })
}

/// How a run begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    pub kind: Kind,
    /// Its first page; `None`: the newest.
    pub cursor: Option<String>,
    /// What is older was read before.
    pub until: Option<Timestamp>,
}

/// What a run with this input is. What comes after a whole reading reads back to the beginning of that one, whatever is known of newer
/// messages from elsewhere.
pub fn begins(input: &Map<String, Value>, coverage: &Coverage) -> Begun {
    let newest = |kind, until| Begun { kind, cursor: None, until };
    match input.get("mode").and_then(Value::as_str) {
        Some("history") => newest(Kind::HistoryRequest, None),
        Some("restart") => newest(Kind::Initial, None),
        _ if coverage.cursor.is_some() => {
            Begun { kind: Kind::Continue, cursor: coverage.cursor.clone(), until: coverage.until }
        }
        _ if coverage.is_complete() => newest(Kind::Incremental, coverage.enumerated_as_of),
        _ => newest(Kind::Initial, None),
    }
}

fn begin(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move {
        let worked = run::within_limit(work(toolbox.clone(), task)).await;
        worked.unwrap_or_else(|(pause, cause)| {
            log::failure("a sync could not go on", &cause);
            Ok(again(&toolbox, pause))
        })
    })
}

fn again(toolbox: &Toolbox, pause: Duration) -> Output {
    let source = providers::of(toolbox).map_or(tools::Source::embedded("network"), |provider| provider.source());
    Output::again(pause, toolbox.clock.now().plus(WITHIN), source)
}

async fn work(toolbox: Arc<Toolbox>, task: Task) -> Result<Output, Stop> {
    let db = &toolbox.db;
    let Some(mut run) = syncing::load(db, task.request_id).await? else {
        // The call's money arrived before its claim, and another sync had the account then.
        return Err(failed("provider_unavailable", "another sync had the account when this was paid").into());
    };
    while !run.status.is_over() {
        let account = account::load(db, run.agent, run.account).await?;
        let why = account.as_ref().map_or(Some("grant_revoked"), |account| why_not(account));
        let provider = providers::of(&toolbox);
        let (account, provider) = match (why, account, provider) {
            (None, Some(account), Some(provider)) if !task.is_over && provider.name() == account.provider => {
                (account, provider)
            }
            (why, ..) => {
                run = stop(&toolbox, &run, why.unwrap_or("provider_unavailable")).await?;
                continue;
            }
        };
        run = match run.kind {
            Kind::HistoryRequest => history(&toolbox, &run, &account, &*provider).await?,
            _ => page(&toolbox, &run, &account, &*provider).await?,
        };
    }
    end(&toolbox, &run).await
}

fn why_not(account: &Account) -> Option<&'static str> {
    match account.status {
        Status::Revoked => Some("grant_revoked"),
        _ if !account.grant.has(account::Allowed::Read) => Some("grant_revoked"),
        Status::Connected => None,
        _ => Some("account_disconnected"),
    }
}

/// Writes a run's next state with what the account has now. The run as it is then.
async fn put(toolbox: &Toolbox, run: &Run, next: Run, coverage: Option<&Coverage>) -> Result<Run, Stop> {
    let db = &toolbox.db;
    let next = Run { revision: run.revision + 1, ..next };
    let mut writes = vec![run.change(db, &next)?];
    if let Some(coverage) = coverage {
        writes.push(syncing::note(db, run.account, coverage)?);
    }
    match db.apply(writes).await {
        Ok(()) => Ok(next),
        // Another process goes on with it.
        Err(WriteError::Refused(_)) => {
            Ok(syncing::load(db, run.id).await?.ok_or_else(|| StoreError::new("a sync vanished"))?)
        }
        Err(WriteError::Failed(error)) => Err(error.into()),
    }
}

/// Ends a run that cannot go on: failed if it has read nothing.
async fn stop(toolbox: &Toolbox, run: &Run, why: &str) -> Result<Run, Stop> {
    let status = if run.pages == 0 { syncing::Status::Failed } else { syncing::Status::Paused };
    let (error, finished) = (Some(why.to_owned()), Some(toolbox.clock.now()));
    put(toolbox, run, Run { status, error, finished, ..run.clone() }, None).await
}

async fn history(toolbox: &Toolbox, run: &Run, account: &Account, provider: &dyn Provider) -> Result<Run, Stop> {
    let begun = Instant::now();
    let word = match provider.request_history(&account.upstream).await {
        Ok(word) => word,
        Err(error) => return trouble(toolbox, run, &error).await,
    };
    let now = toolbox.clock.now();
    let coverage = syncing::coverage(&toolbox.db, account.id).await?;
    // Older messages may be there from now on: the next run reads all.
    let history = if coverage.cursor.is_some() { coverage.history } else { History::Requested };
    let next = Run {
        status: syncing::Status::Succeeded,
        provider_status: Some(word),
        requests: run.requests + 1,
        upstream_ms: millis(begun),
        started: run.started.or(Some(now)),
        finished: Some(now),
        ..run.clone()
    };
    put(toolbox, run, next, Some(&Coverage { history, until: None, ..coverage })).await
}

/// The provider did not answer as it should: the run tries again a few times, and then stops with what it has.
async fn trouble(toolbox: &Toolbox, run: &Run, error: &Trouble) -> Result<Run, Stop> {
    log::failure("a sync got no answer from the network's provider", &error.detail());
    let is_logged_out = matches!(error, Trouble::LoggedOut);
    if is_logged_out && let Some(account) = account::load(&toolbox.db, run.agent, run.account).await? {
        notices::logged_out(&toolbox.db, &account, toolbox.clock.now()).await?;
    }
    let is_final = is_logged_out || run.rate_limited + 1 >= TRIES;
    if !is_final {
        let next = Run { rate_limited: run.rate_limited + 1, requests: run.requests + 1, ..run.clone() };
        put(toolbox, run, next, None).await?;
        return Err(Stop::Store(StoreError::new("the network's provider did not answer")));
    }
    let reason = error.failure().reason.unwrap_or_else(|| "provider_unavailable".to_owned());
    stop(toolbox, run, &reason).await
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Reads one page, and stores how far the account is read with it.
async fn page(toolbox: &Toolbox, run: &Run, account: &Account, provider: &dyn Provider) -> Result<Run, Stop> {
    let begun = Instant::now();
    let page = match provider.page(&account.upstream, run.cursor.as_deref(), PAGE).await {
        Ok(page) => page,
        Err(Trouble::Asked(OutboundError::Refused(400 | 422))) if run.cursor.is_some() && run.cursor_resets == 0 => {
            return from_the_newest(toolbox, run).await;
        }
        Err(error) => return trouble(toolbox, run, &error).await,
    };
    let upstream_ms = run.upstream_ms + millis(begun);
    let now = toolbox.clock.now();
    let mut next = Run {
        status: syncing::Status::Running,
        started: run.started.or(Some(now)),
        pages: run.pages + 1,
        requests: run.requests + 1,
        upstream_ms,
        ..run.clone()
    };
    take(toolbox, account, &page, &mut next, now).await?;
    next.requests += describe(toolbox, account, &page, provider, now).await;
    next.cursor = page.next.clone();
    if next.until.is_some_and(|until| page.messages.last().is_some_and(|message| message.at < until.minus(AROUND))) {
        next.cursor = None;
    }
    if next.cursor.is_none() {
        next.status = syncing::Status::Succeeded;
    } else if next.pages >= next.max_pages {
        next.status = syncing::Status::Paused;
    }
    next.finished = next.status.is_over().then_some(now);
    let coverage = reached(&syncing::coverage(&toolbox.db, account.id).await?, run, &next, now);
    put(toolbox, run, next, Some(&coverage)).await
}

/// Begins anew at the newest message: the provider does not take the cursor any more. What is here already is not stored twice.
async fn from_the_newest(toolbox: &Toolbox, run: &Run) -> Result<Run, Stop> {
    let (cursor_resets, requests) = (run.cursor_resets + 1, run.requests + 1);
    put(toolbox, run, Run { cursor: None, cursor_resets, requests, ..run.clone() }, None).await
}

/// Takes a page's messages.
async fn take(
    toolbox: &Toolbox,
    account: &Account,
    page: &Page,
    run: &mut Run,
    now: Timestamp,
) -> Result<(), StoreError> {
    for heard in &page.messages {
        let taken = inbox::take(&toolbox.db, account.id, heard, By::Sync, now).await?;
        run.seen += 1;
        run.inserted += u32::from(taken.inserted);
        run.updated += u32::from(taken.updated);
        run.conversations += u32::from(taken.new_conversation);
        run.earliest = Some(run.earliest.map_or(heard.at, |at| at.min(heard.at)));
        run.latest = Some(run.latest.map_or(heard.at, |at| at.max(heard.at)));
    }
    Ok(())
}

/// Reads who takes part in the chats of a page and what is unread in them, of those of which that is not known or was not asked for a
/// while. How often the provider was asked. What it does not say now is asked for another time.
async fn describe(toolbox: &Toolbox, account: &Account, page: &Page, provider: &dyn Provider, now: Timestamp) -> u32 {
    let mut chats: Vec<&str> = page.messages.iter().map(|message| message.chat.as_str()).collect();
    chats.sort_unstable();
    chats.dedup();
    let (mut asked, db) = (0, &toolbox.db);
    for chat in chats {
        let id = inbox::conversation_id(account.id, chat);
        let known = inbox::conversation(db, account.id, id).await.ok().flatten();
        let is_fresh = known.is_none_or(|known| !known.is_stale(now.minus(FRESH)));
        if usize::try_from(asked).unwrap_or(usize::MAX) >= CHATS || is_fresh {
            continue;
        }
        asked += 1;
        if let Ok(Some(found)) = provider.chat(&account.upstream, chat).await
            && let Err(error) = inbox::describe(db, account.id, id, &found, now).await
        {
            log::failure("a conversation could not be described", &error);
        }
    }
    asked
}

/// How far the account is read after a page.
fn reached(before: &Coverage, was: &Run, run: &Run, now: Timestamp) -> Coverage {
    let first = was.pages == 0 && run.kind != Kind::Continue;
    let earlier = |one: Option<Timestamp>, other: Option<Timestamp>| match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
    let is_whole = run.cursor.is_none();
    let is_first_reading = run.until.is_none();
    Coverage {
        history: match (is_first_reading, is_whole) {
            (false, _) => before.history,
            (true, true) => History::Done,
            (true, false) => History::Running,
        },
        completed_at: if is_whole && is_first_reading { Some(now) } else { before.completed_at },
        earliest_at: earlier(before.earliest_at, run.earliest),
        latest_at: before.latest_at.max(run.latest),
        enumerated_as_of: if first { Some(now) } else { before.enumerated_as_of },
        incremental_at: if is_whole && !is_first_reading { Some(now) } else { before.incremental_at },
        cursor: run.cursor.clone(),
        until: run.until.filter(|_| !is_whole),
        ..before.clone()
    }
}

async fn end(toolbox: &Toolbox, run: &Run) -> Result<Output, Stop> {
    if run.status == syncing::Status::Failed {
        let reason = run.error.as_deref().unwrap_or("provider_unavailable");
        return Err(failed(reason, "nothing could be read from the account").into());
    }
    let coverage = syncing::coverage(&toolbox.db, run.account).await?;
    // After the network was asked for older messages, these have to be read.
    let goes_on = run.cursor.is_some() || run.kind == Kind::HistoryRequest;
    let outcome = match (&run.error, goes_on) {
        (Some(_), _) => "partial",
        (None, true) => "bounded",
        (None, false) => "exhausted",
    };
    let mut result = run.view();
    for (name, value) in [
        ("outcome", json!(outcome)),
        ("needs_continuation", json!(goes_on)),
        ("provider_history", json!(coverage.history)),
    ] {
        result[name] = value;
    }
    let source = providers::of(toolbox).map_or(tools::Source::embedded("network"), |provider| provider.source());
    Ok(Output::new(result, source))
}

#[cfg(test)]
mod tests {
    use base::ids::{AgentId, RequestId};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_run_goes_on_where_the_last_one_stopped() {
        let coverage = |history, cursor: Option<&str>| Coverage {
            history,
            cursor: cursor.map(str::to_owned),
            until: Some(Timestamp::from_secs(3)),
            enumerated_as_of: Some(Timestamp::from_secs(9)),
            ..Coverage::default()
        };
        for (mode, coverage, begun) in [
            (None, coverage(History::Never, None), (Kind::Initial, None, None)),
            (None, coverage(History::Running, Some("c")), (Kind::Continue, Some("c"), Some(3))),
            (None, coverage(History::Done, None), (Kind::Incremental, None, Some(9))),
            (None, coverage(History::Requested, None), (Kind::Initial, None, None)),
            (Some("restart"), coverage(History::Running, Some("c")), (Kind::Initial, None, None)),
            (Some("history"), coverage(History::Done, None), (Kind::HistoryRequest, None, None)),
        ] {
            let input: Map<String, Value> = mode.map(|mode| ("mode".to_owned(), json!(mode))).into_iter().collect();
            let (kind, cursor, until) = begun;
            let begun = Begun { kind, cursor: cursor.map(str::to_owned), until: until.map(Timestamp::from_secs) };
            assert_eq!(begins(&input, &coverage), begun, "{mode:?} {coverage:?}");
        }
    }

    #[test]
    fn an_account_is_read_when_a_run_reaches_its_end() {
        let owner = (AgentId::from_bytes([1; 16]), Uuid::nil());
        let at = Timestamp::from_secs;
        let begun = Run::new(RequestId::from_bytes([1; 16]), owner, Kind::Initial, 10, at(1));
        let first = Run {
            pages: 1,
            cursor: Some("c".to_owned()),
            earliest: Some(at(50)),
            latest: Some(at(90)),
            ..begun.clone()
        };
        let coverage = reached(&Coverage::default(), &begun, &first, at(100));
        assert_eq!((coverage.history, coverage.is_complete()), (History::Running, false));
        let last = Run { pages: 2, cursor: None, earliest: Some(at(20)), ..first.clone() };
        let coverage = reached(&coverage, &first, &last, at(101));
        assert!(coverage.is_complete());
        let is = (coverage.earliest_at, coverage.latest_at, coverage.enumerated_as_of, coverage.completed_at);
        assert_eq!(is, (Some(at(20)), Some(at(90)), Some(at(100)), Some(at(101))));
        // Later messages are read in addition.
        let until = coverage.enumerated_as_of;
        let more =
            Run { kind: Kind::Incremental, until, earliest: Some(at(110)), latest: Some(at(120)), ..last.clone() };
        let coverage = reached(&coverage, &Run { pages: 0, ..more.clone() }, &more, at(200));
        let is = (coverage.earliest_at, coverage.latest_at, coverage.incremental_at, coverage.completed_at);
        assert_eq!(is, (Some(at(20)), Some(at(120)), Some(at(200)), Some(at(101))));
    }
}
