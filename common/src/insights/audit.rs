//! Every receipt of an agent, oldest first, in pages.
//!
//! A page's cursor is the place behind its last row, and rows are in the order of their charges, so rows that are added
//! meanwhile come later and move nothing. The cursor of an export also carries the format and the running hash.

use serde::Serialize;

use super::export::Format;
use super::view::{self, AuditRow};
use crate::encoding::{base64_any, base64_url};
use crate::ids::{AgentId, ReceiptId};
use crate::ledger::receipt::{self, Order, Receipt, Span};
use crate::store::{Db, StoreError};

/// A page ends before it is larger than this, because a Lambda function answers with at most 6 MB.
const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;
/// About what a row has beside the caller's metadata.
const ROW_BYTES: usize = 1024;

/// Where a page begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub after: ReceiptId,
    /// Of an export: its format, and the hash of the last line before.
    pub export: Option<(Format, String)>,
}

/// Some rows, and whether there are more behind them.
pub struct Page {
    pub rows: Vec<AuditRow>,
    /// Of the last row.
    pub last: Option<ReceiptId>,
    pub has_more: bool,
}

/// The body of `GET /v1/audit/receipts`.
#[derive(Serialize)]
pub struct Body {
    pub receipts: Vec<AuditRow>,
    pub count: usize,
    pub has_more: bool,
    pub next_cursor: Option<String>,
}

impl Page {
    pub fn body(self, next_cursor: Option<String>) -> Body {
        Body { count: self.rows.len(), receipts: self.rows, has_more: self.has_more, next_cursor }
    }
}

impl Cursor {
    /// Opaque to callers.
    pub fn to_text(&self) -> String {
        let text = match &self.export {
            None => format!("1 {}", self.after),
            Some((format, hash)) => format!("1 {} {} {hash}", self.after, format.as_str()),
        };
        base64_url(text.as_bytes())
    }

    /// `None` if it is none of ours.
    pub fn parse(text: &str) -> Option<Cursor> {
        let text = String::from_utf8(base64_any(text)?).ok()?;
        let parts: Vec<&str> = text.split(' ').collect();
        let (after, export) = match parts[..] {
            ["1", after] => (after, None),
            ["1", after, format, hash] => {
                let is_hash = hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
                (after, Some((Format::parse(format)?, is_hash.then(|| hash.to_owned())?)))
            }
            _ => return None,
        };
        Some(Cursor { after: after.parse().ok()?, export })
    }
}

/// At most `limit` rows behind a receipt.
pub async fn page(db: &Db, agent: AgentId, after: Option<&ReceiptId>, limit: usize) -> Result<Page, StoreError> {
    let receipts: Vec<Receipt> =
        receipt::within(db, agent, Span::default(), Order::OldestFirst, after, limit + 1).await?;
    let found = receipts.len();
    let mut bytes = 0;
    let mut page = Page { rows: Vec::new(), last: None, has_more: false };
    for receipt in receipts.into_iter().take(limit) {
        // Metadata is text of text in CSV, where its quotes are doubled.
        bytes += ROW_BYTES + 2 * receipt.metadata.as_ref().map_or(0, String::len);
        if bytes > MAX_PAGE_BYTES {
            break;
        }
        page.rows.push(view::audit_row(&receipt));
        page.last = Some(receipt.receipt_id);
    }
    page.has_more = page.rows.len() < found;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::ids::RequestId;

    #[test]
    fn only_our_own_cursors_are_read() {
        let after = ReceiptId::of(RequestId::bought_with("test", &[b"1"]), Timestamp::from_secs(1));
        for export in [None, Some((Format::Csv, "0f".repeat(32)))] {
            let cursor = Cursor { after: after.clone(), export };
            assert_eq!(Cursor::parse(&cursor.to_text()), Some(cursor));
        }
        for wrong in [
            "1",
            "1 rcpt_x",
            "2 x",
            &format!("1 {after} csv"),
            &format!("1 {after} csv 00"),
            &format!("1 {after} pdf {}", "00".repeat(32)),
        ] {
            assert_eq!(Cursor::parse(&base64_url(wrong.as_bytes())), None, "{wrong}");
        }
        assert_eq!(Cursor::parse("?"), None);
        assert_eq!(Cursor::parse(""), None);
    }
}
