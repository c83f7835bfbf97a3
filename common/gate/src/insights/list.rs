//! An agent's receipts by page number, newest first. The audit is for reading all of them: its pages do not shift.

use std::collections::HashMap;

use base::clock::Timestamp;
use base::ids::{AgentId, ReceiptId};
use ledger::receipt::{self, Order, Receipt, Span};
use ledger::value::{self, Reported};
use platform::http::{ApiError, Params};
use platform::store::{Db, StoreError};
use serde::Serialize;

use super::span::{days_before, span};
use super::view::{self, ReceiptView};
use super::{MAX_RECEIPTS, explain};

/// The categories of receipts.
pub const CATEGORIES: [&str; 6] =
    ["data", "verification", "communication", "commerce", "infrastructure", "agent_to_agent"];
const MAX_LIMIT: usize = 100;
/// A page ends before it exceeds this many bytes. The metadata that callers attach to a receipt may be long, and appears
/// twice in it.
const MAX_PAGE_BYTES: usize = 256 * 1024;
/// Approximate size of a receipt without metadata.
const ROW_BYTES: usize = 1024;
/// How many receipts are read at a time while searching for a category.
const BATCH: usize = 500;

/// A query for receipts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    span: Span,
    category: Option<&'static str>,
    limit: usize,
    offset: usize,
}

/// The body of `GET /v1/analytics/receipts`.
#[derive(Debug, Serialize)]
pub struct Listed {
    pub receipts: Vec<ReceiptView>,
    /// Receipts on this page. A page of long receipts may have fewer than were asked for; the next offset is this one plus
    /// `count`.
    pub count: usize,
    pub has_more: bool,
    /// The search reached the limit of one request before the page was full or the receipts ended.
    pub truncated: bool,
}

impl Filter {
    /// Parses a query. If it has both `period` and `since`, the later start applies.
    pub fn read(query: Option<&str>, now: Timestamp) -> Result<Filter, ApiError> {
        let mut params = Params::of(query);
        params.only(&["period", "category", "limit", "offset", "since", "until"]);
        let mut span = span(&mut params);
        if let Some(days) = params.integer("period", 1, 365) {
            let begins = days_before(now, days);
            span.since = span.since.max(Some(begins));
            if span.until.is_some_and(|until| until < begins) {
                params.refuse("until", "must not be before the period's first day");
            }
        }
        let category = params.choice("category", &CATEGORIES);
        let limit = params.integer("limit", 1, MAX_LIMIT).unwrap_or(50);
        let offset = params.integer("offset", 0, MAX_RECEIPTS - MAX_LIMIT).unwrap_or(0);
        params.check()?;
        Ok(Filter { span, category, limit, offset })
    }
}

pub async fn list(db: &Db, agent: AgentId, filter: Filter) -> Result<Listed, StoreError> {
    let mut found: Vec<Receipt> = Vec::new();
    let (mut read, mut skipped, mut at_end) = (0, 0, false);
    let mut after: Option<ReceiptId> = None;
    while !at_end && found.len() <= filter.limit && read < MAX_RECEIPTS {
        let wanted = match filter.category {
            // Receipts of a category may be rare.
            Some(_) => BATCH,
            None => (filter.offset + filter.limit + 1 - read).min(BATCH),
        };
        let batch: Vec<Receipt> =
            receipt::within(db, agent, filter.span, Order::NewestFirst, after.as_ref(), wanted).await?;
        read += batch.len();
        at_end = batch.len() < wanted;
        after = batch.last().map(|receipt| receipt.receipt_id.clone());
        for receipt in batch {
            if filter.category.is_some_and(|category| category != receipt.category) {
                continue;
            }
            if skipped < filter.offset {
                skipped += 1;
            } else if found.len() <= filter.limit {
                found.push(receipt);
            }
        }
    }
    let shown = fitting(&found).min(filter.limit);
    let has_more = found.len() > shown;
    found.truncate(shown);
    let tags = tags_of(db, agent, &found).await?;
    let receipts: Vec<ReceiptView> = found
        .iter()
        .map(|receipt| match tags.get(receipt.receipt_id.as_str()) {
            Some(tag) => view::receipt(receipt, Some(tag)),
            None => view::receipt(receipt, explain::attached_tag(receipt).as_ref()),
        })
        .collect();
    Ok(Listed { count: receipts.len(), receipts, has_more, truncated: !has_more && !at_end })
}

/// How many of the first receipts fit into a page, at least one.
fn fitting(receipts: &[Receipt]) -> usize {
    let mut bytes = 0;
    let fit = receipts.iter().take_while(|receipt| {
        bytes += ROW_BYTES + 2 * receipt.metadata.as_ref().map_or(0, String::len);
        bytes <= MAX_PAGE_BYTES
    });
    fit.count().max(1)
}

/// The tags reported for these receipts (newest first), by receipt id.
async fn tags_of(db: &Db, agent: AgentId, receipts: &[Receipt]) -> Result<HashMap<String, Reported>, StoreError> {
    let (Some(newest), Some(oldest)) = (receipts.first(), receipts.last()) else { return Ok(HashMap::new()) };
    let span = Span { since: Some(oldest.created_at), until: Some(newest.created_at) };
    let tags = value::tags(db, agent, span, MAX_RECEIPTS).await?;
    Ok(tags.into_iter().map(|tag| (tag.id.clone(), tag)).collect())
}
