//! The work: from a brief to a published version, or from a version and a wish to the next one.
//!
//! Nothing is seen before the job ends: the site's row is written in the transaction that ends and charges it. So an error pays
//! everything back, and a run that died is made again from the start.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::money::Usdc;
use platform::http::log;
use platform::providers::browser::{SiteFile, Viewed};
use platform::store::{Key, StoreError, Write};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tools::files::{self, FileRow, Owner};
use tools::pages::BROWSER;
use tools::{ErrorCode, Output, Running, Source, Task, ToolError, Toolbox, Unavailable, lock};
use tools_email::domain;
use uuid::Uuid;
use website::design::{self, File};
use website::plan::{Density, Layout, Mode, Plan};
use website::{copy, refine};

use crate::checks::{self, Check, SCRIPT};
use crate::quote::Lines;
use crate::site::{self, HOSTED, MAX_VERSIONS, NOTICE, ROOT, Site, State, Version};
use crate::{brief, build, serve, zip};

/// Time for storing the files and the result.
const RESERVE: Duration = Duration::from_secs(20);
/// Longest reading of the source.
const READING: Duration = Duration::from_secs(25);
/// Files stored at once.
const AT_ONCE: usize = 8;
/// Most texts of a source that a site is made from, in bytes.
const MAX_SOURCE: usize = 30_000;
/// The archive and the picture among the job's files.
const ARCHIVE: &str = "site.zip";
const PICTURE: &str = "preview.png";

pub fn run(toolbox: Arc<Toolbox>, task: Task) -> Running {
    Box::pin(async move { work(&toolbox, &task).await })
}

/// What is to be published.
struct Draft {
    plan: Plan,
    /// The site as it is; `None`: it is new.
    before: Option<Site>,
    inbox: Option<String>,
    /// What is charged.
    lines: Lines,
    notes: Vec<String>,
    changed: Vec<String>,
    not_understood: Vec<String>,
}

async fn work(toolbox: &Toolbox, task: &Task) -> Result<Output, ToolError> {
    let Some(host) = &toolbox.config.sites_url else {
        return Err(ToolError::unavailable(
            Unavailable::ProviderNotConfigured,
            "sites have no address here (SITES_URL)",
        ));
    };
    let left = task.deadline.millis() - toolbox.clock.now().millis();
    let left = Duration::from_millis(u64::try_from(left).unwrap_or_default()).saturating_sub(RESERVE);
    let until = Instant::now() + left;
    let lines: Lines = serde_json::from_value(Value::Object(task.locked.clone()))
        .map_err(|_| ToolError::internal("the stored quote cannot be read"))?;
    task.reporter.say(5, "reading the brief");
    let mut draft = match build::build_id(&task.input) {
        Some(build) => refined(toolbox, task, lines, build).await?,
        None => first(toolbox, task, lines).await?,
    };
    task.reporter.say(25, "looking at the pages in a browser");
    let made = make(toolbox, &mut draft, until).await?;
    task.reporter.say(80, "storing the site");
    let published = publish(toolbox, task, host, &draft, &made).await;
    published.map_err(|error| ToolError::internal(error.to_string()))
}

/// A new site.
async fn first(toolbox: &Toolbox, task: &Task, mut lines: Lines) -> Result<Draft, ToolError> {
    let mut notes = Vec::new();
    let source = match task.input.get("source_url").and_then(Value::as_str) {
        Some(url) => match read(toolbox, url).await {
            Ok(text) => Some(text),
            Err(why) => {
                notes.push(format!("source_url was not used, and its fee came back: {why}"));
                lines.source = 0;
                None
            }
        },
        None => None,
    };
    let mut brief = brief::of(&task.input, source);
    let inbox = if brief.lead_capture { inbox(toolbox, task).await? } else { None };
    if brief.lead_capture && inbox.is_none() {
        notes.push("the site has no form, and its fee came back: you have no mailbox here".to_owned());
        brief.lead_capture = false;
        lines.form = 0;
    }
    let plan = copy::plan(&brief, design::choose(&brief));
    let (changed, not_understood) = (Vec::new(), Vec::new());
    Ok(Draft { plan, before: None, inbox, lines, notes, changed, not_understood })
}

/// The text of the page that the brief names. Why not, if it cannot be used.
async fn read(toolbox: &Toolbox, url: &str) -> Result<String, String> {
    let read = timeout(READING, toolbox.read_page(url)).await.map_err(|_| "it took too long".to_owned())?;
    let mut text = read.map_err(|error| error.message)?.markdown;
    text.truncate(text.floor_char_boundary(MAX_SOURCE));
    // It is going to be published.
    match toolbox.judge.judge(&[("source_url", &text)]).await {
        Ok(()) => Ok(text),
        Err(blocked) => Err(format!("its text may not be published ({})", blocked.categories.join(", "))),
    }
}

/// The mailbox for visitors' messages: the one that the body names, if it is the buyer's, or the buyer's first.
async fn inbox(toolbox: &Toolbox, task: &Task) -> Result<Option<String>, ToolError> {
    let broken = |error: StoreError| ToolError::internal(error.to_string());
    let named = task.input.get("lead_capture").and_then(|lead| lead["inbox_email"].as_str());
    if let Some(named) = named {
        let Ok(address) = tools_email::address::Address::parse(named) else { return Ok(None) };
        let owner = domain::owner_of(&toolbox.db, &address).await.map_err(broken)?;
        return Ok((owner == Some(task.agent)).then(|| named.to_owned()));
    }
    let now = toolbox.clock.now();
    let domains = domain::ensure_default(&toolbox.db, &toolbox.config, task.agent, now).await.map_err(broken)?;
    Ok(domains.first().map(|row| row.default_from.as_str().to_owned()))
}

/// The next version of a site.
async fn refined(toolbox: &Toolbox, task: &Task, lines: Lines, build: Uuid) -> Result<Draft, ToolError> {
    let (db, broken) = (&toolbox.db, |error: StoreError| ToolError::internal(error.to_string()));
    let refuse = |why: &str| Err(ToolError::new(ErrorCode::InvalidInput, why));
    let is_held = lock::is_held(db, &db.tables.agents, site::lock_key(build), task.request_id).await;
    if !is_held.map_err(broken)? {
        return refuse("the site is being changed by another job");
    }
    let site = site::load(db, build).await.map_err(broken)?;
    let Some(site) = site.filter(|site| site.agent == task.agent && site.is_live()) else {
        return refuse("the site is not there any more");
    };
    if site.version >= MAX_VERSIONS {
        return refuse("the site has as many versions as it may have");
    }
    let Some(version) = site::load_version(db, build, site.version).await.map_err(broken)? else {
        return Err(ToolError::internal("the site's version is not there"));
    };
    let done = refine::refine(&version.plan, task.text("changes"));
    if done.done.is_empty() {
        let message = "nothing of it was understood. Say for example: make it dark; use #0a5c36; replace \"A\" with \"B\"; \
                       remove the section \"Prices\"; add a section \"Team\": …; add a page \"Contact\"";
        return refuse(message);
    }
    let inbox = site.inbox.clone();
    Ok(Draft {
        plan: done.plan,
        before: Some(site),
        inbox,
        lines,
        notes: Vec::new(),
        changed: done.done,
        not_understood: done.not_understood,
    })
}

/// A version that passed.
struct Made {
    /// With [`ROOT`] in their addresses.
    files: Vec<File>,
    checks: Vec<Check>,
    tried: u32,
    picture: Option<Vec<u8>>,
}

/// Renders the plan and looks at each page. If one does not pass, plainer looks are tried.
async fn make(toolbox: &Toolbox, draft: &mut Draft, until: Instant) -> Result<Made, ToolError> {
    let mut tried = 0;
    loop {
        tried += 1;
        let leads = draft.inbox.as_ref().map(|_| format!("{ROOT}/leads"));
        let plan = draft.plan.clone();
        let rendered = tokio::task::spawn_blocking(move || design::render(&plan, ROOT, leads.as_deref())).await;
        let files = rendered.map_err(|_| ToolError::internal("the pages could not be rendered"))?;
        let viewed = view(toolbox, &draft.plan, &files, until).await?;
        let checks = checks::judge(&viewed, largest(&files));
        if checks::passes(&checks) {
            let picture = viewed.into_iter().find_map(|viewed| viewed.picture);
            return Ok(Made { files, checks, tried, picture });
        }
        let failed: Vec<_> = checks.iter().filter(|check| !check.passed).collect();
        log::event("a draft of a site did not pass", json!({"tried": tried, "failed": failed}));
        let look = &mut draft.plan.look;
        match tried {
            1 => (look.layout, look.density) = (Layout::Letter, Density::Normal),
            2 => look.background = None,
            _ => {
                let why = failed.first().map_or("", |check| check.name);
                let message = format!("no design of the brief passed the checks ({why}); nothing was published");
                return Err(ToolError::unavailable(Unavailable::SourceUnavailable, message));
            }
        }
    }
}

async fn view(toolbox: &Toolbox, plan: &Plan, files: &[File], until: Instant) -> Result<Vec<Viewed>, ToolError> {
    let Some(browser) = &toolbox.browser else {
        return Err(ToolError::unavailable(Unavailable::NeedsBrowser, "no browser is configured (BROWSER_URL)"));
    };
    let key = match browser.wants_key() {
        true => Some(toolbox.outbound.needed_key(BROWSER).await.map_err(|error| error.of(BROWSER))?),
        false => None,
    };
    let shown: BTreeMap<String, (&str, Vec<u8>)> = files
        .iter()
        .map(|file| (file.path.clone(), (file.content_type, serve::rooted(file.content_type, &file.bytes, ""))))
        .collect();
    let at = |path: &str| {
        let path = if path.ends_with('/') { format!("{path}index.html") } else { path.to_owned() };
        let (content_type, bytes) = shown.get(&path).or_else(|| shown.get(&format!("{path}/index.html")))?;
        Some(SiteFile { content_type, bytes })
    };
    let paths: Vec<String> = plan.pages.iter().map(|page| page.path.clone()).collect();
    let views = checks::views(&paths, plan.look.mode == Mode::Both);
    let viewed = browser.view_site(key, &at, serve::POLICY, &views, SCRIPT, until).await;
    viewed.map_err(|error| ToolError::unavailable(Unavailable::SourceUnavailable, error.to_string()))
}

/// Bytes of the largest page with everything that a site loads.
fn largest(files: &[File]) -> usize {
    let is_page = |file: &&File| file.path.ends_with(".html");
    let page = files.iter().filter(is_page).map(|file| file.bytes.len()).max().unwrap_or_default();
    page + files.iter().filter(|file| !is_page(file)).map(|file| file.bytes.len()).sum::<usize>()
}

/// Stores the files; the output switches to them.
async fn publish(toolbox: &Toolbox, task: &Task, host: &str, draft: &Draft, made: &Made) -> Result<Output, StoreError> {
    let (db, now) = (&toolbox.db, toolbox.clock.now());
    let build = draft.before.as_ref().map_or_else(|| Uuid::from_bytes(*task.request_id.bytes()), |site| site.build);
    store(toolbox, task, build, &made.files).await?;
    keep_files(toolbox, task, made).await?;
    let ends = now.plus(HOSTED);
    let number = draft.before.as_ref().map_or(1, |site| site.version + 1);
    let name = draft.plan.name.clone();
    let slug = draft.before.as_ref().map_or_else(|| site::slug(&name, build), |site| site.slug.clone());
    let site = Site {
        build,
        agent: task.agent,
        name,
        slug,
        state: State::Live,
        version: number,
        job: task.request_id,
        inbox: draft.inbox.clone(),
        created: draft.before.as_ref().map_or(now, |site| site.created),
        ends,
        due: ends.minus(NOTICE),
    };
    let files = made.files.iter().map(|file| file.path.clone()).collect();
    let version = Version { number, job: task.request_id, at: now, plan: draft.plan.clone(), files };
    let used = draft.lines.total().min(task.price);
    let result = result(task, host, draft, made, &site, used);
    let writes = site.publish(db, &version, draft.before.as_ref())?;
    Ok(Output::new(Value::Object(result), Source::embedded("build")).charging(used).with(writes))
}

fn result(task: &Task, host: &str, draft: &Draft, made: &Made, site: &Site, used: Usdc) -> Map<String, Value> {
    let address = format!("{host}/{}/", site.slug);
    let pages: Vec<Value> = draft
        .plan
        .pages
        .iter()
        .map(|page| {
            let sections: Vec<&str> = page.sections.iter().map(|section| section.heading.as_str()).collect();
            json!({"path": page.path, "name": page.name, "sections": sections})
        })
        .collect();
    let files = format!("/v1/requests/{}/files", task.request_id);
    let result = json!({
        "status": "completed",
        "success": true,
        "build_id": site.build,
        "production_url": address,
        "preview_url": format!("{address}v{}/", site.version),
        "version": site.version,
        "design_score": checks::score(&made.checks),
        "checks": checks::to_json(&made.checks),
        "iterations": made.tried,
        "pages": pages,
        "changed": draft.changed,
        "not_understood": draft.not_understood,
        "notes": draft.notes,
        "zip_url": format!("{files}/{ARCHIVE}"),
        "picture_url": format!("{files}/{PICTURE}"),
        "hosted_until": site.ends.to_string(),
        "error": null,
        "cost": used.to_string(),
    });
    match result {
        Value::Object(result) => result,
        _ => Map::new(),
    }
}

async fn store(toolbox: &Toolbox, task: &Task, build: Uuid, files: &[File]) -> Result<(), StoreError> {
    let mut storing = JoinSet::new();
    for file in files {
        if storing.len() >= AT_ONCE {
            stored(storing.join_next().await)?;
        }
        let (blobs, key) = (toolbox.blobs.clone(), site::blob_key(build, task.request_id, &file.path));
        let (content_type, bytes) = (file.content_type, file.bytes.clone());
        storing.spawn(async move { blobs.put(&key, content_type, bytes).await });
    }
    while let Some(done) = storing.join_next().await {
        stored(Some(done))?;
    }
    Ok(())
}

fn stored(done: Option<Result<Result<(), StoreError>, tokio::task::JoinError>>) -> Result<(), StoreError> {
    done.map_or(Ok(()), |done| done.map_err(StoreError::new)?)
}

/// The archive, whose addresses begin at a host's root, and the picture, as files of the job.
async fn keep_files(toolbox: &Toolbox, task: &Task, made: &Made) -> Result<(), StoreError> {
    let rooted: Vec<(String, Vec<u8>)> = made
        .files
        .iter()
        .map(|file| {
            let bytes = serve::rooted(file.content_type, &file.bytes, "");
            (file.path.trim_start_matches('/').to_owned(), bytes)
        })
        .collect();
    let archive = zip::pack(rooted.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())));
    let kept = [(ARCHIVE, "application/zip", Some(archive)), (PICTURE, "image/png", made.picture.clone())];
    for (name, content_type, bytes) in kept {
        let Some(bytes) = bytes else { continue };
        let row = FileRow::of(name, content_type, bytes.len() as u64, toolbox.clock.now());
        let owner = Owner { request_id: task.request_id, price: task.price };
        let open =
            Write::check(&toolbox.db.tables.jobs, Key::of_job(task.request_id)).only_if("attribute_exists(#open)");
        let kept = files::keep(&toolbox.db, &*toolbox.blobs, owner, open, row, Some(bytes)).await?;
        if let Err(why) = kept {
            log::event("a file of a build was not kept", json!({"name": name, "why": format!("{why:?}")}));
        }
    }
    Ok(())
}
