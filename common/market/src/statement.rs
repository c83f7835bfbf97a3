//! A seller's statement: ledger entries in booking order, each with the balance after it, as JSON or CSV.
//!
//! Consecutive pages form one statement: a cursor points after the last row of a page, and rows never change their
//! place.

use std::time::Duration;

use base::clock::Timestamp;
use base::encoding::{base64_any, base64_url};
use base::money::Usdc;
use gate::insights::export::cell;
use ledger::seller::{After, Entry, EntryKind};
use serde_json::{Value, json};

/// Most rows per page.
pub const MOST: usize = 500;

/// CSV columns. They are also the members of a JSON row.
const COLUMNS: [&str; 14] = [
    "number",
    "booked_at",
    "kind",
    "amount",
    "balance",
    "happened_at",
    "job_id",
    "payout_id",
    "receipt_id",
    "service",
    "price",
    "platform_fee",
    "maturing",
    "matures_at",
];

/// The cursor after an entry.
pub fn cursor(entry: &Entry) -> String {
    base64_url(format!("1 {} {}", entry.at.millis(), entry.number).as_bytes())
}

/// Decodes a cursor, `None` if it is invalid.
pub fn after(cursor: &str) -> Option<After> {
    let text = String::from_utf8(base64_any(cursor)?).ok()?;
    let mut parts = text.split(' ');
    let (Some("1"), Some(at), Some(number), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return None;
    };
    // Accepts only the exact form that `cursor` writes.
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (at, number) = (digits(at).then(|| at.parse().ok())??, digits(number).then(|| number.parse().ok())??);
    Some(After { at: Timestamp::from_millis(at), number })
}

/// An amount with its sign, in USDC with six decimals.
fn signed(micro: i64) -> String {
    let amount = Usdc::from_micro(micro.unsigned_abs());
    if micro < 0 { format!("-{amount}") } else { amount.to_string() }
}

fn signed_number(micro: i64) -> Value {
    let text = Usdc::from_micro(micro.unsigned_abs()).to_number().to_string();
    let sign = if micro < 0 { "-" } else { "" };
    serde_json::from_str(&format!("{sign}{text}")).unwrap_or(Value::Null)
}

fn is_payout(entry: &Entry) -> bool {
    matches!(entry.kind, EntryKind::Payout | EntryKind::PayoutReturned)
}

/// When the part of an earning that was paid by card can be paid out.
fn matures_at(entry: &Entry, window: Duration) -> Option<String> {
    entry.about.card.map(|_| entry.happened.plus(window).to_string())
}

/// A JSON row. Amounts are numbers. `window` is how long an earning paid by card matures.
pub fn row(entry: &Entry, window: Duration) -> Value {
    let (job, payout) = causes(entry);
    json!({
        "number": entry.number,
        "booked_at": entry.at.to_string(),
        "kind": entry.kind,
        "amount": signed_number(entry.amount),
        "balance": entry.balance.to_number(),
        "happened_at": entry.happened.to_string(),
        "job_id": job,
        "payout_id": payout,
        "receipt_id": entry.about.receipt_id,
        "service": entry.about.service,
        "price": entry.about.price.map(Usdc::to_number),
        "platform_fee": entry.about.fee.map(Usdc::to_number),
        "maturing": entry.about.card.map(Usdc::to_number),
        "matures_at": matures_at(entry, window),
    })
}

fn causes(entry: &Entry) -> (Option<&str>, Option<&str>) {
    let cause = Some(entry.about.cause.as_str());
    if is_payout(entry) { (None, cause) } else { (cause, None) }
}

/// The rows as CSV (RFC 4180 with line feeds), with a header on the first page. Amounts have six decimals. An absent
/// value is an empty cell. A text that a spreadsheet would read as a formula gets an apostrophe in front.
pub fn csv(entries: &[Entry], is_first: bool, window: Duration) -> String {
    let mut lines = if is_first { format!("{}\n", COLUMNS.join(",")) } else { String::new() };
    for entry in entries {
        let (job, payout) = causes(entry);
        let kind = json!(entry.kind);
        let text = |text: Option<&str>| text.map(cell).unwrap_or_default();
        let amount = |amount: Option<Usdc>| amount.map(|amount| amount.to_string()).unwrap_or_default();
        let cells = [
            entry.number.to_string(),
            entry.at.to_string(),
            kind.as_str().unwrap_or_default().to_owned(),
            // Only digits and a sign: no formula, so it stays a number.
            signed(entry.amount),
            entry.balance.to_string(),
            entry.happened.to_string(),
            text(job),
            text(payout),
            text(entry.about.receipt_id.as_ref().map(|receipt| receipt.as_str())),
            text(entry.about.service.as_deref()),
            amount(entry.about.price),
            amount(entry.about.fee),
            amount(entry.about.card),
            matures_at(entry, window).unwrap_or_default(),
        ];
        lines.push_str(&cells.join(","));
        lines.push('\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use ledger::seller::About;

    use super::*;

    fn entry(kind: EntryKind, amount: i64, service: Option<&str>) -> Entry {
        let card = (kind == EntryKind::Sale).then_some(Usdc::from_micro(8_000));
        let about = About { cause: "c".to_owned(), service: service.map(str::to_owned), card, ..About::default() };
        let at = Timestamp::from_millis(1_795_249_530_250);
        Entry { number: 7, kind, amount, balance: Usdc::from_micro(1_500_000), at, happened: at, about }
    }

    #[test]
    fn malformed_cursors_are_refused() {
        let sale = entry(EntryKind::Sale, 5, None);
        assert_eq!(after(&cursor(&sale)), Some(After { at: sale.at, number: 7 }));
        for wrong in ["", "1", "1 2", "1 -2 3", "1 2 +3", "2 2 3", "1 2 3 4", "1 99999999999999999999 1"] {
            assert_eq!(after(&base64_url(wrong.as_bytes())), None, "{wrong}");
        }
    }

    #[test]
    fn rows_are_the_same_in_both_forms() {
        let (paid, sold) = (entry(EntryKind::Payout, -12_500_001, None), entry(EntryKind::Sale, 8_000, Some("-1")));
        let window = Duration::from_secs(120 * 24 * 3600);
        let row = |entry: &Entry| super::row(entry, window);
        assert_eq!(row(&paid)["amount"].to_string(), "-12.500001");
        assert_eq!((row(&paid)["payout_id"].as_str(), row(&sold)["job_id"].as_str()), (Some("c"), Some("c")));
        assert_eq!((&row(&paid)["maturing"], row(&sold)["maturing"].to_string().as_str()), (&Value::Null, "0.008"));
        let csv = csv(&[paid, sold], true, window);
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[0].split(',').count(), COLUMNS.len());
        assert_eq!(lines[1], "7,2026-11-21T08:25:30.250Z,payout,-12.500001,1.500000,2026-11-21T08:25:30.250Z,,c,,,,,,");
        assert_eq!(
            lines[2],
            "7,2026-11-21T08:25:30.250Z,sale,0.008000,1.500000,2026-11-21T08:25:30.250Z,c,,,'-1,,,0.008000,2027-03-21T08:25:30.250Z"
        );
    }
}
