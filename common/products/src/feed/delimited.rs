//! Text files: a line of names, and a line for each item, with tabs, commas, semicolons or bars between the fields.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::BufRead;

use super::bounded::Bounded;
use super::item::{Record, field};
use super::{Broken, Problem};

const DELIMITERS: [char; 4] = ['\t', ',', ';', '|'];
/// Longest record, in bytes, and most lines of one: a quoted field may have line breaks.
const MAX_RECORD_BYTES: usize = 256 * 1024;
const MAX_RECORD_LINES: usize = 64;
/// Most quotes looked for in vain. A search reads up to a whole record, so after these a field ends with its line.
const MAX_SEARCHES: usize = 1_000;
/// Most columns; the rest is ignored.
const MAX_COLUMNS: usize = 500;

/// A line with its number. `None` in place of one that is too long.
type Line = (u64, Option<Vec<u8>>);

pub(super) struct Lines<R> {
    reader: Bounded<R>,
    /// Lines read in search of a closing quote, which was not found.
    waiting: VecDeque<Line>,
    read: u64,
    header: Option<Header>,
    /// Searches for a closing quote that was not found.
    searches: usize,
}

struct Header {
    delimiter: char,
    columns: Vec<Option<(&'static str, bool)>>,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: Bounded<R>) -> Self {
        Self { reader, waiting: VecDeque::new(), read: 0, header: None, searches: 0 }
    }

    /// The next line without its end.
    fn line(&mut self) -> Result<Option<Line>, Broken> {
        if let Some(line) = self.waiting.pop_front() {
            return Ok(Some(line));
        }
        let mut line = Vec::new();
        let mut is_long = false;
        let mut any = false;
        self.read += 1;
        loop {
            let bytes = self.reader.fill_buf().map_err(|error| file(self.read, error.to_string()))?;
            if bytes.is_empty() {
                break;
            }
            any = true;
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let size = end.unwrap_or(bytes.len());
            is_long |= line.len() + size > MAX_RECORD_BYTES;
            if !is_long {
                line.extend_from_slice(&bytes[..size]);
            }
            self.reader.consume(end.map_or(size, |end| end + 1));
            if end.is_some() {
                break;
            }
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(any.then_some((self.read, (!is_long).then_some(line))))
    }

    fn header(&mut self) -> Result<Header, Broken> {
        while let Some((at, line)) = self.line()? {
            let line = line.ok_or_else(|| file(at, "the first line is too long".to_owned()))?;
            if line.starts_with(b"\xff\xfe") || line.starts_with(b"\xfe\xff") || line.contains(&0) {
                return Err(file(at, "the file is not UTF-8 text: save it as UTF-8".to_owned()));
            }
            let text = decoded(&line);
            let text = text.trim_start_matches('\u{feff}');
            if text.trim().is_empty() || text.starts_with('#') {
                continue;
            }
            return header(text).ok_or_else(|| {
                let message =
                    "the first line must name the fields, at least id, title and link, with tabs or commas between";
                file(at, message.to_owned())
            });
        }
        Err(file(1, "the file is empty".to_owned()))
    }

    /// The fields of the record that starts with this line.
    fn fields(&mut self, line: Vec<u8>, delimiter: char) -> Result<Vec<String>, Broken> {
        if let Some(fields) = split(&decoded(&line), delimiter, true) {
            return Ok(fields);
        }
        let mut whole = line.clone();
        let mut taken = Vec::new();
        while self.searches < MAX_SEARCHES && taken.len() < MAX_RECORD_LINES && whole.len() < MAX_RECORD_BYTES {
            let Some((at, next)) = self.line()? else { break };
            taken.push((at, next.clone()));
            let Some(next) = next else { break };
            whole.push(b'\n');
            whole.extend_from_slice(&next);
            if closes(&next, delimiter)
                && let Some(fields) = split(&decoded(&whole), delimiter, true)
            {
                return Ok(fields);
            }
        }
        // The quote is none: the line stands alone.
        self.searches += 1;
        for line in taken.into_iter().rev() {
            self.waiting.push_front(line);
        }
        Ok(split(&decoded(&line), delimiter, false).unwrap_or_default())
    }
}

impl<R: BufRead> Lines<R> {
    /// The next item; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Result<Record, Broken>> {
        let header = match self.header.take() {
            Some(header) => header,
            None => match self.header() {
                Ok(header) => header,
                Err(broken) => return Some(Err(broken)),
            },
        };
        let record = self.record(&header);
        self.header = Some(header);
        record.transpose()
    }

    fn record(&mut self, header: &Header) -> Result<Option<Record>, Broken> {
        while let Some((at, line)) = self.line()? {
            let Some(line) = line else {
                let message = format!("the line is longer than {MAX_RECORD_BYTES} bytes");
                return Err(Broken::Item(Problem { at, message }));
            };
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let mut record = Record::new(at);
            for (column, value) in header.columns.iter().zip(self.fields(line, header.delimiter)?) {
                if let Some((field, is_own_name)) = column {
                    record.set(field, &value, u8::from(*is_own_name));
                }
            }
            return Ok(Some(record));
        }
        Ok(None)
    }
}

/// The names of the columns, by the delimiter that gives most known ones.
fn header(line: &str) -> Option<Header> {
    let headers = DELIMITERS.iter().filter_map(|delimiter| {
        let names = split(line, *delimiter, true).or_else(|| split(line, *delimiter, false))?;
        Some(Header { delimiter: *delimiter, columns: names.iter().map(|name| field(name)).collect() })
    });
    let known = |header: &Header| header.columns.iter().flatten().count();
    let best = headers.rev().max_by_key(known)?;
    let has = |name: &str| best.columns.iter().flatten().any(|(field, _)| *field == name);
    (has("id") && has("title") && has("link")).then_some(best)
}

/// Whether a quoted field may end in the line.
fn closes(line: &[u8], delimiter: char) -> bool {
    let is_end = |next: Option<&u8>| next.is_none_or(|byte| char::from(*byte) == delimiter);
    line.iter().enumerate().any(|(at, byte)| *byte == b'"' && is_end(line.get(at + 1)))
}

/// The fields of a record. A field in quotes may contain delimiters, line breaks and doubled quotes. `None` if a quote does
/// not close.
fn split(record: &str, delimiter: char, with_quotes: bool) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    let mut rest = Some(record);
    while let Some(text) = rest
        && fields.len() < MAX_COLUMNS
    {
        let (field, after) = match text.strip_prefix('"').filter(|_| with_quotes) {
            Some(inside) => quoted(inside, delimiter)?,
            None => match text.split_once(delimiter) {
                Some((field, after)) => (field.to_owned(), Some(after)),
                None => (text.to_owned(), None),
            },
        };
        fields.push(field);
        rest = after;
    }
    Some(fields)
}

/// A field behind its opening quote, and the text behind its delimiter. A quote inside that is not doubled is kept.
fn quoted(text: &str, delimiter: char) -> Option<(String, Option<&str>)> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let (before, after) = rest.split_once('"')?;
        field.push_str(before);
        if after.is_empty() {
            return Some((field, None));
        }
        if let Some(after) = after.strip_prefix(delimiter) {
            return Some((field, Some(after)));
        }
        field.push('"');
        rest = after.strip_prefix('"').unwrap_or(after);
    }
}

/// Text in UTF-8, or else in the old encoding of Western Europe.
fn decoded(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0,
    }
}

fn file(at: u64, message: String) -> Broken {
    Broken::File(Problem { at, message })
}
