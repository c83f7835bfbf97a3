//! An agent's jobs, newest first, for one that lost a request's id.
//!
//! Every job has a receipt, and receipts are sorted by time under their agent. So the list needs no rows of its own: it reads
//! receipts, and the jobs of one page.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use base::clock::Timestamp;
use base::ids::{AgentId, ReceiptId, RequestId};
use ledger::receipt::{self, ExecutionStatus, Order, Span};
use platform::http::{ApiError, Params};
use platform::store::{Db, Key, StoreError};
use serde::Deserialize;
use serde_json::Value;
use tools::soul::EXECUTION;
use tools::spec::{Catalog, MARKET, TOP_UP};

use super::job::{self, Job, RETENTION, Status};
use super::view;

pub const MAX_LIMIT: usize = 100;
const DEFAULT_LIMIT: usize = 20;
/// Most receipts that one page reads while it looks for a status or a tool.
const MOST_READ: usize = 300;
/// How many receipts are read at a time while looking.
const BATCH: usize = 100;
/// How many are read at a time at least: the jobs of some may be forgotten, and one after the other would take long.
const LEAST: usize = 25;

/// The tools of jobs that no call buys; no catalog has them.
const OWN: [&str; 1] = ["voice_inbound"];

/// A query for jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    before: Before,
    status: Option<Status>,
    tool: Option<String>,
    limit: usize,
}

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Before {
    Now,
    /// A time.
    Time(Timestamp),
    /// The last receipt that the page before read. Unlike a time, it tells purchases of one millisecond apart.
    Receipt(ReceiptId),
}

/// The members of a receipt that the list needs.
#[derive(Deserialize)]
struct Row {
    receipt_id: ReceiptId,
    job_id: RequestId,
    subcategory: String,
    execution_status: ExecutionStatus,
}

impl Filter {
    pub fn read(query: Option<&str>, catalog: &Catalog) -> Result<Filter, ApiError> {
        let mut params = Params::of(query);
        params.only(&["limit", "before", "status", "tool"]);
        let limit = params.integer("limit", 1, MAX_LIMIT).unwrap_or(DEFAULT_LIMIT);
        let receipt: Option<ReceiptId> = params.text("before").and_then(|text| text.parse().ok());
        let before = match receipt {
            Some(receipt) => Before::Receipt(receipt),
            None => params.time("before").map_or(Before::Now, Before::Time),
        };
        let status = params.parsed("status");
        let tool = params.short_text("tool", 100);
        params.check()?;
        // For an unknown one, an empty list would say that nothing was bought.
        let unknown = || ApiError::field("tool", "is no tool's name or path; /v1/tools/discover finds them");
        let tool = tool.map(|text| named(catalog, &text).map(str::to_owned).ok_or_else(unknown)).transpose()?;
        Ok(Filter { before, status, tool, limit })
    }

    /// Whether the receipt's job may match. Spares reading jobs that do not.
    fn may_match(&self, row: &Row) -> bool {
        let execution = self.status.map(|status| match status {
            Status::Pending | Status::Processing => ExecutionStatus::Pending,
            Status::Completed => ExecutionStatus::Completed,
            Status::Failed => ExecutionStatus::Failed,
        });
        // Receipts have one name for everything that souls sell.
        let is_of_soul = |tool: &str| MARKET.iter().any(|sold| sold.name == tool);
        let subcategory = self.tool.as_deref().map(|tool| if is_of_soul(tool) { EXECUTION.name } else { tool });
        execution.is_none_or(|execution| row.execution_status == execution)
            && subcategory.is_none_or(|subcategory| row.subcategory == subcategory)
    }

    fn matches(&self, job: &Job) -> bool {
        self.status.is_none_or(|status| job.status() == status)
            && self.tool.as_deref().is_none_or(|tool| job.tool == tool)
    }
}

/// The tool of this name or path.
fn named(catalog: &Catalog, text: &str) -> Option<&'static str> {
    let top_up = || (TOP_UP.name == text || TOP_UP.paths.contains(&text)).then_some(TOP_UP.name);
    catalog.name_of(text).or_else(top_up).or_else(|| OWN.into_iter().find(|name| *name == text))
}

/// Some jobs, and where the next page begins if there may be more.
#[derive(Default)]
pub struct Page {
    pub requests: Vec<Value>,
    pub next: Option<ReceiptId>,
}

/// The jobs of an agent that can still be read. A page that looks for a status or a tool may be short, or empty, and have a
/// next one.
pub async fn list(db: &Db, agent: AgentId, filter: &Filter, now: Timestamp) -> Result<Page, StoreError> {
    // No job is kept longer, so older receipts are not read.
    let since = now.minus(RETENTION);
    let mut span = Span { since: Some(since), until: None };
    let mut after = None;
    match &filter.before {
        Before::Now => {}
        Before::Time(time) => span.until = Some(time.minus(Duration::from_millis(1))),
        // The database refuses to begin outside of the span.
        Before::Receipt(receipt) if receipt.as_str() < ReceiptId::prefix_at(since).as_str() => {
            return Ok(Page::default());
        }
        Before::Receipt(receipt) => after = Some(receipt.clone()),
    }
    let looks = filter.status.is_some() || filter.tool.is_some();
    let (mut requests, mut read) = (Vec::new(), 0);
    loop {
        // One more than is shown tells whether there are more.
        let wanted = if looks { BATCH } else { (filter.limit + 1 - requests.len()).max(LEAST) };
        let wanted = wanted.min(MOST_READ - read);
        let rows: Vec<Row> = receipt::within(db, agent, span, Order::NewestFirst, after.as_ref(), wanted).await?;
        read += rows.len();
        let at_end = rows.len() < wanted;
        let likely: Vec<&Row> = rows.iter().filter(|row| filter.may_match(row)).collect();
        for some in likely.chunks((filter.limit + 1).max(LEAST)) {
            let jobs = jobs_of(db, some).await?;
            for row in some {
                let is_shown = |job: &&Job| {
                    // A payment that failed may buy again under the same id; only its last receipt shows the job.
                    job.receipt_id == row.receipt_id
                        && job.agent == agent
                        && !job.is_forgotten(now)
                        && filter.matches(job)
                };
                let Some(job) = jobs.get(&row.job_id).filter(is_shown) else { continue };
                if requests.len() == filter.limit {
                    return Ok(Page { requests, next: after });
                }
                requests.push(view::listed(job));
                after = Some(row.receipt_id.clone());
            }
        }
        if at_end {
            return Ok(Page { requests, next: None });
        }
        after = rows.last().map(|row| row.receipt_id.clone()).or(after);
        if requests.len() == filter.limit || read == MOST_READ {
            return Ok(Page { requests, next: after });
        }
    }
}

/// The jobs of these receipts, eventually consistent as when one is polled.
async fn jobs_of(db: &Db, rows: &[&Row]) -> Result<HashMap<RequestId, Job>, StoreError> {
    let ids: BTreeSet<RequestId> = rows.iter().map(|row| row.job_id).collect();
    let keys: Vec<Key> = ids.into_iter().map(job::key).collect();
    let jobs: Vec<Option<Job>> = db.batch_get(&db.tables.jobs, &keys, false).await?;
    Ok(jobs.into_iter().flatten().map(|job| (job.request_id, job)).collect())
}
