//! Every receipt of an agent in pages, oldest first.
//!
//! A cursor is the position after a page's last row. Rows are in the order of their charges, so rows added later do not
//! shift pages. The cursor of an export also carries the format and the running hash.
//!
//! Cursors are authenticated and bound to their agent: a hash chain can only be continued where the service ended a page.

use base::digest;
use base::encoding::{base64_any, base64_url};
use base::ids::{AgentId, ReceiptId};
use ledger::receipt::{self, Order, Receipt, Span};
use platform::store::{Db, StoreError};
use ring::hmac;
use serde::Serialize;
use subtle::ConstantTimeEq;

use super::export::Format;
use super::view::{self, AuditRow};

/// A page ends before it exceeds this many bytes, because a Lambda function answers with at most 6 MB.
const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Approximate size of a row without the caller's metadata.
const ROW_BYTES: usize = 1024;
const VERSION: &str = "2";
const MAC_BYTES: usize = 16;

/// Authenticates cursors.
#[derive(Clone)]
pub struct CursorKey(hmac::Key);

impl CursorKey {
    pub fn new(secret: &[u8]) -> CursorKey {
        CursorKey(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    fn mac(&self, agent: AgentId, text: &[u8]) -> [u8; MAC_BYTES] {
        // An agent's id has a fixed length, so the concatenation is unambiguous.
        let whole = digest::hmac(&self.0, &[&agent.bytes()[..], text].concat());
        let mut mac = [0; MAC_BYTES];
        mac.copy_from_slice(&whole[..MAC_BYTES]);
        mac
    }
}

/// The start of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub after: ReceiptId,
    /// For an export: its format, and the hash of the last line before.
    pub export: Option<(Format, String)>,
}

/// Some rows, and whether more follow.
pub struct Page {
    pub rows: Vec<AuditRow>,
    /// The last row's id.
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
    /// The cursor as text, opaque to callers.
    pub fn to_text(&self, key: &CursorKey, agent: AgentId) -> String {
        let text = match &self.export {
            None => format!("{VERSION} {}", self.after),
            Some((format, hash)) => format!("{VERSION} {} {} {hash}", self.after, format.as_str()),
        };
        base64_url(&[text.as_bytes(), &key.mac(agent, text.as_bytes())].concat())
    }

    /// Parses a cursor. `None` unless it was issued to this agent.
    pub fn parse(text: &str, key: &CursorKey, agent: AgentId) -> Option<Cursor> {
        let bytes = base64_any(text)?;
        let (text, given) = bytes.split_at_checked(bytes.len().checked_sub(MAC_BYTES)?)?;
        if !bool::from(key.mac(agent, text).ct_eq(given)) {
            return None;
        }
        let parts: Vec<&str> = str::from_utf8(text).ok()?.split(' ').collect();
        let (after, export) = match parts[..] {
            [VERSION, after] => (after, None),
            [VERSION, after, format, hash] => (after, Some((Format::parse(format)?, hash.to_owned()))),
            _ => return None,
        };
        Some(Cursor { after: after.parse().ok()?, export })
    }
}

/// At most `limit` rows after a receipt.
pub async fn page(db: &Db, agent: AgentId, after: Option<&ReceiptId>, limit: usize) -> Result<Page, StoreError> {
    let receipts: Vec<Receipt> =
        receipt::within(db, agent, Span::default(), Order::OldestFirst, after, limit + 1).await?;
    let found = receipts.len();
    let mut bytes = 0;
    let mut page = Page { rows: Vec::new(), last: None, has_more: false };
    for receipt in receipts.into_iter().take(limit) {
        // CSV doubles the quotes of the metadata.
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
    use base::clock::Timestamp;
    use base::ids::RequestId;
    use evm::Address;

    use super::*;

    #[test]
    fn only_our_own_cursors_are_read() {
        let key = CursorKey::new(b"a key");
        let (agent, other) = (AgentId::of(Address::ZERO), AgentId::of(Address::from_bytes([1; 20])));
        let after = ReceiptId::of(RequestId::bought_with("test", &[b"1"]), Timestamp::from_secs(1));
        for export in [None, Some((Format::Csv, "0f".repeat(32)))] {
            let cursor = Cursor { after: after.clone(), export };
            let text = cursor.to_text(&key, agent);
            assert_eq!(Cursor::parse(&text, &key, agent), Some(cursor));
            assert_eq!(Cursor::parse(&text, &key, other), None, "another agent's");
            let other_key = CursorKey::new(b"another key");
            assert_eq!(Cursor::parse(&text, &other_key, agent), None);
            let mut bytes = base64_any(&text).unwrap();
            for index in 0..bytes.len() {
                bytes[index] ^= 1;
                assert_eq!(Cursor::parse(&base64_url(&bytes), &key, agent), None, "byte {index}");
                bytes[index] ^= 1;
            }
        }
        for wrong in ["?", "", "AAAA"] {
            assert_eq!(Cursor::parse(wrong, &key, agent), None, "{wrong}");
        }
    }
}
