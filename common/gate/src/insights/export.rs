//! The audit's rows as lines with a running hash, for storage elsewhere.
//!
//! The hash of a line is the SHA-256 of the previous hash (64 hex digits, zeros for the first line), a line feed, and the
//! line's own bytes up to the separator before its hash. So a changed, removed or moved line breaks the chain, and
//! consecutive pages form one chain when they are concatenated.
//!
//! CSV is RFC 4180 with line feeds: an absent value is an empty cell, an empty string is `""`. A string that a spreadsheet
//! would read as a formula gets an apostrophe in front. So does a string that already starts with an apostrophe.
//! [`read_line`] removes it.

use std::collections::BTreeMap;

use base::digest::sha256;
use platform::store::StoreError;
use serde_json::value::RawValue;

use super::view::AuditRow;

/// The hash before the first line.
pub const FIRST_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csv,
    JsonLines,
}

/// The cells of a CSV line: the members of a row.
pub const COLUMNS: [&str; 22] = [
    "receipt_id",
    "agent_id",
    "soul_agent_id",
    "receipt_revision",
    "category",
    "subcategory",
    "amount_usdc",
    "service_fee",
    "status",
    "signature",
    "execution_status",
    "goalId",
    "job_id",
    "metadata",
    "created_at",
    "settled_at",
    "receipt_signature",
    "receipt_digest",
    "receipt_key_id",
    "receipt_alg",
    "receipt_signed",
    "kept_usdc",
];
/// Columns whose cells are JSON; the others are strings.
const JSON_COLUMNS: [&str; 3] = ["receipt_revision", "metadata", "receipt_signed"];
/// First characters that make a cell a formula, or that a spreadsheet would drop.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '\t', '\r', '\n', '\''];

impl Format {
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::JsonLines => "jsonl",
        }
    }

    pub fn parse(text: &str) -> Option<Format> {
        [Format::Csv, Format::JsonLines].into_iter().find(|format| format.as_str() == text)
    }

    pub fn content_type(self) -> &'static str {
        match self {
            Format::Csv => "text/csv; charset=utf-8",
            Format::JsonLines => "application/x-ndjson",
        }
    }
}

/// The first line of a CSV file.
pub fn csv_header() -> String {
    format!("{},hash\n", COLUMNS.join(","))
}

/// A row as a line, and its hash.
pub fn write_line(format: Format, row: &AuditRow, previous: &str) -> Result<(String, String), StoreError> {
    let json = serde_json::to_string(row).map_err(StoreError::new)?;
    Ok(match format {
        Format::Csv => {
            let cells = cells(&json).map_err(StoreError::new)?;
            let hash = chained(previous, &cells);
            (format!("{cells},{hash}\n"), hash)
        }
        Format::JsonLines => {
            let members = json.strip_suffix('}').unwrap_or(&json);
            let hash = chained(previous, members);
            (format!("{members},\"hash\":\"{hash}\"}}\n"), hash)
        }
    })
}

/// The hash of a line, from the bytes before its hash.
pub fn chained(previous: &str, covered: &str) -> String {
    const_hex::encode(sha256(format!("{previous}\n{covered}").as_bytes()))
}

/// A parsed line: the bytes its hash covers, the hash, and the row.
pub struct Line<'a> {
    pub covered: &'a str,
    pub hash: &'a str,
    pub row: AuditRow,
}

/// Parses a line without its line feed.
pub fn read_line(format: Format, line: &str) -> Result<Line<'_>, String> {
    let (end, separator) = match format {
        Format::Csv => ("", ","),
        Format::JsonLines => ("\"}", ",\"hash\":\""),
    };
    let rest = line.strip_suffix(end).ok_or("it is cut off")?;
    let at =
        rest.len().checked_sub(FIRST_HASH.len()).filter(|at| rest.is_char_boundary(*at)).ok_or("it is too short")?;
    let (before, hash) = rest.split_at(at);
    let covered = before.strip_suffix(separator).ok_or("it has no hash")?;
    let json = match format {
        Format::Csv => json_of(covered)?,
        Format::JsonLines => format!("{covered}}}"),
    };
    let row = serde_json::from_str(&json).map_err(|wrong| format!("it is not a receipt: {wrong}"))?;
    Ok(Line { covered, hash, row })
}

/// The lines of a file with their numbers. In CSV, a line feed inside quotes does not end a line.
pub fn lines(format: Format, text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut start, mut number, mut first, mut quoted) = (0, 1, 1, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if format == Format::Csv => quoted = !quoted,
            b'\n' => {
                number += 1;
                if !quoted {
                    found.push((first, &text[start..at]));
                    (start, first) = (at + 1, number);
                }
            }
            _ => {}
        }
    }
    if start < text.len() {
        found.push((first, &text[start..]));
    }
    found
}

/// The CSV cells of a row given as JSON.
fn cells(json: &str) -> Result<String, serde_json::Error> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(json)?;
    let mut cells = Vec::with_capacity(COLUMNS.len());
    for column in COLUMNS {
        let value = members.get(column).map_or("null", |value| value.get());
        cells.push(match value {
            "null" => String::new(),
            json if JSON_COLUMNS.contains(&column) => quoted(json),
            text => cell(&serde_json::from_str::<String>(text)?),
        });
    }
    Ok(cells.join(","))
}

/// A string as a cell.
pub fn cell(text: &str) -> String {
    if text.starts_with(FORMULA) { quoted(&format!("'{text}")) } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    let must = text.is_empty() || text.contains([',', '"', '\n', '\r']);
    if must { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// The JSON of a row given as cells.
fn json_of(line: &str) -> Result<String, String> {
    let cells = split(line)?;
    if cells.len() != COLUMNS.len() {
        return Err(format!("it has {} cells before its hash, not {}", cells.len(), COLUMNS.len()));
    }
    let members = COLUMNS.iter().zip(cells).map(|(column, cell)| {
        let value = match cell {
            None => "null".to_owned(),
            Some(json) if JSON_COLUMNS.contains(column) => json,
            Some(text) => serde_json::Value::from(text.strip_prefix('\'').unwrap_or(&text)).to_string(),
        };
        format!("\"{column}\":{value}")
    });
    Ok(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
}

/// The cells of a line; `None` for an empty cell without quotes.
fn split(line: &str) -> Result<Vec<Option<String>>, String> {
    let mut cells = Vec::new();
    let mut rest = line;
    loop {
        let (cell, behind) = match rest.strip_prefix('"') {
            Some(inside) => {
                let end = closing_quote(inside).ok_or("a quote is not closed")?;
                (Some(inside[..end].replace("\"\"", "\"")), &inside[end + 1..])
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                ((end > 0).then(|| rest[..end].to_owned()), &rest[end..])
            }
        };
        cells.push(cell);
        match behind.strip_prefix(',') {
            Some(next) => rest = next,
            None if behind.is_empty() => return Ok(cells),
            None => return Err("there is text after a closing quote".to_owned()),
        }
    }
}

/// The position of the closing quote. Doubled quotes are skipped.
fn closing_quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += text.get(at..)?.find('"')?;
        if bytes.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}
