//! Headers of received mails: fields, encoded words, parameters and addresses.
//!
//! Our own and not `mail-parser`'s, because there the last field of a name counts, so a second `From` would forge the sender;
//! and because it decodes words and sections one by one, which loses the characters that are split over them. All work is
//! linear in the length.

use crate::charset;
use crate::transfer::{base64, hex, q_word};

/// Fields that show that what seemed to be text was a broken line among the headers.
const WELL_KNOWN: [&str; 16] = [
    "cc",
    "content-disposition",
    "content-transfer-encoding",
    "content-type",
    "date",
    "from",
    "in-reply-to",
    "message-id",
    "mime-version",
    "received",
    "references",
    "reply-to",
    "return-path",
    "sender",
    "subject",
    "to",
];
/// Longest name of a charset in an encoded word, in bytes.
const MAX_CHARSET_BYTES: usize = 60;

/// The fields of a mail or part, in their order. Names are in lower case, values are unfolded.
#[derive(Debug, Default)]
pub(crate) struct Headers(Vec<(String, String)>);

impl Headers {
    /// The headers, read up to `limit` bytes, and the body. Without a blank line between them, the body begins at the first
    /// line that is no field.
    pub(crate) fn of(raw: &[u8], limit: usize) -> (Headers, &[u8]) {
        let raw = raw.strip_prefix(b"\xef\xbb\xbf").unwrap_or(raw);
        let mut fields: Vec<(String, Vec<u8>)> = Vec::new();
        let mut body = raw.len();
        // Where the text begins if there is no blank line, and how many fields were found before.
        let mut stray: Option<(usize, usize)> = None;
        let mut at = 0;
        while at < raw.len() {
            let next = raw[at..].iter().position(|&byte| byte == b'\n').map_or(raw.len(), |length| at + length + 1);
            let line = &raw[at..next];
            if matches!(line, b"\n" | b"\r\n") {
                body = next;
                break;
            }
            let is_first_of_mailbox = at == 0 && line.starts_with(b"From ");
            if line.starts_with(b" ") || line.starts_with(b"\t") {
                let is_text = stray.is_some_and(|(_, count)| count == fields.len());
                match fields.last_mut() {
                    Some((_, value)) if next <= limit && !is_text => value.extend_from_slice(line.trim_ascii_end()),
                    Some(_) => {}
                    None => stray = stray.or(Some((at, 0))),
                }
            } else if let Some((name, value)) = field(line) {
                if WELL_KNOWN.contains(&name.as_str()) {
                    stray = None;
                }
                if next <= limit {
                    fields.push((name, value.to_vec()));
                }
            } else if !is_first_of_mailbox {
                stray = stray.or(Some((at, fields.len())));
            }
            at = next;
        }
        if let Some((begin, count)) = stray {
            fields.truncate(count);
            body = begin;
        }
        let fields = fields.into_iter().map(|(name, value)| (name, charset::text(&value, None).trim().to_owned()));
        (Headers(fields.collect()), &raw[body..])
    }

    /// The first field of this name, which must be in lower case, as it was written.
    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.first(name).is_some()
    }
}

/// Name and value of a field.
fn field(line: &[u8]) -> Option<(String, &[u8])> {
    let at = line.iter().position(|&byte| byte == b':')?;
    let name = line[..at].trim_ascii_end();
    let is_name = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
    is_name.then(|| (String::from_utf8_lossy(name).to_ascii_lowercase(), line[at + 1..].trim_ascii()))
}

/// An encoded word (RFC 2047, 2).
struct Word<'a> {
    charset: &'a str,
    is_base64: bool,
    text: &'a str,
}

impl<'a> Word<'a> {
    /// The word at the begin of `text`, and what follows it.
    fn at_begin(text: &'a str) -> Option<(Word<'a>, &'a str)> {
        let rest = text.strip_prefix("=?")?;
        let end = rest.bytes().take(MAX_CHARSET_BYTES + 1).position(|byte| byte == b'?' || byte == b' ')?;
        let (charset, rest) = (&rest[..end], rest[end..].strip_prefix('?')?);
        let is_base64 = rest.starts_with(['b', 'B']);
        let rest = rest.strip_prefix(['b', 'B', 'q', 'Q'])?.strip_prefix('?')?;
        let (text, rest) = rest.split_once('?')?;
        let rest = rest.strip_prefix('=')?;
        // A language may follow the charset (RFC 2231, 5).
        let charset = charset.split('*').next().filter(|charset| !charset.is_empty())?;
        Some((Word { charset, is_base64, text }, rest))
    }
}

/// Encoded words that stand side by side in one charset. A character may be split between them.
#[derive(Default)]
struct Words<'a> {
    charset: Option<&'a str>,
    bytes: Vec<u8>,
    /// Not yet decoded: base64 may be split within its units.
    base64: String,
}

impl<'a> Words<'a> {
    fn add(&mut self, word: &Word<'a>, to: &mut String) {
        if self.charset.is_some_and(|charset| !charset.eq_ignore_ascii_case(word.charset)) {
            self.end(to);
        }
        self.charset = Some(word.charset);
        if word.is_base64 {
            self.base64.push_str(word.text);
        } else {
            self.end_base64();
            self.bytes.extend(q_word(word.text));
        }
    }

    fn end_base64(&mut self) {
        self.bytes.extend(base64(std::mem::take(&mut self.base64).as_bytes()));
    }

    fn end(&mut self, to: &mut String) {
        self.end_base64();
        if let Some(charset) = self.charset.take() {
            to.push_str(&charset::text(&std::mem::take(&mut self.bytes), Some(charset)));
        }
    }
}

/// A text with its encoded words decoded.
pub(crate) fn decoded_words(text: &str) -> String {
    let mut whole = String::with_capacity(text.len());
    let mut words = Words::default();
    let mut rest = text;
    while let Some(at) = rest.find("=?") {
        let (gap, from) = rest.split_at(at);
        let Some((word, after)) = Word::at_begin(from) else {
            words.end(&mut whole);
            whole.extend([gap, "=?"]);
            rest = &from[2..];
            continue;
        };
        // White space between two words is none of the text.
        if words.charset.is_none() || !gap.trim().is_empty() {
            words.end(&mut whole);
            whole.push_str(gap);
        }
        words.add(&word, &mut whole);
        rest = after;
    }
    words.end(&mut whole);
    whole + rest
}

/// A value with parameters (RFC 2045, 5.1), such as that of `Content-Type`.
#[derive(Debug)]
pub(crate) struct Structured {
    /// In lower case, without comments, quotes and white space.
    pub(crate) value: String,
    parameters: Vec<(String, String)>,
}

impl Structured {
    pub(crate) fn of(text: &str) -> Structured {
        let mut sections = sections(text).into_iter();
        let first = sections.next().unwrap_or_default().replace(" /", "/").replace("/ ", "/");
        let first = first.trim();
        // Some programs forget the semicolon.
        let (value, more) = first.split_once(|letter: char| letter.is_whitespace()).unwrap_or((first, ""));
        let parameters = std::iter::once(more.to_owned()).chain(sections).filter_map(|section| {
            let (name, value) = section.split_once('=')?;
            Some((name.trim().to_ascii_lowercase(), unquoted(value.trim())))
        });
        let parameters = parameters.collect();
        let value = value.split('(').next().unwrap_or_default().replace('"', "").to_ascii_lowercase();
        Structured { value, parameters }
    }

    /// A parameter, joined of its sections, with its characters decoded (RFC 2231). A form with a charset is preferred.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        let (mut plain, mut single) = (None, None);
        let mut sections: Vec<(u32, bool, &str)> = Vec::new();
        for (known, value) in &self.parameters {
            match known.strip_prefix(name) {
                Some("") => plain = plain.or(Some(value)),
                Some("*") => single = single.or(Some(value.as_str())),
                Some(rest) => {
                    let Some(number) = rest.strip_prefix('*') else { continue };
                    let (digits, is_encoded) =
                        number.strip_suffix('*').map_or((number, false), |digits| (digits, true));
                    sections.extend(digits.parse().ok().map(|number| (number, is_encoded, value.as_str())));
                }
                None => {}
            }
        }
        if let Some(single) = single {
            sections = vec![(0, true, single)];
        } else if sections.is_empty() {
            return plain.map(|value| decoded_words(value));
        }
        sections.sort_by_key(|(number, ..)| *number);
        sections.dedup_by_key(|(number, ..)| *number);
        let mut charset = None;
        if let Some((_, true, first)) = sections.first_mut() {
            let mut pieces = first.splitn(3, '\'');
            if let (Some(named), Some(_language), Some(value)) = (pieces.next(), pieces.next(), pieces.next()) {
                charset = Some(named).filter(|named| !named.is_empty());
                *first = value;
            }
        }
        let bytes: Vec<u8> = sections
            .iter()
            .flat_map(|(_, is_encoded, value)| match is_encoded {
                true => without_percents(value),
                false => value.as_bytes().to_vec(),
            })
            .collect();
        let text = charset::text(&bytes, charset);
        let is_encoded = sections.iter().any(|(_, is_encoded, _)| *is_encoded);
        Some(if is_encoded { text } else { decoded_words(&text) })
    }

    /// The first word of a parameter that has only one.
    pub(crate) fn word(&self, name: &str) -> Option<String> {
        self.parameter(name)?.split_whitespace().next().map(str::to_owned)
    }
}

/// What semicolons separate, without comments. Within a word a parenthesis is a letter, as is one that is not closed.
fn sections(text: &str) -> Vec<String> {
    let (last_quote, last_end) = (text.rfind('"'), text.rfind(')'));
    let mut all = vec![String::new()];
    let (mut is_quoted, mut is_escaped, mut depth) = (false, false, 0_usize);
    let mut before = ' ';
    for (at, letter) in text.char_indices() {
        let is_comment = depth > 0;
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted || is_comment => is_escaped = true,
            '"' if !is_comment && (is_quoted || last_quote > Some(at)) => is_quoted = !is_quoted,
            '(' if !is_quoted
                && last_end > Some(at)
                && (is_comment || before.is_whitespace() || before == ';' || before == '"') =>
            {
                depth += 1;
            }
            ')' if is_comment => depth -= 1,
            ';' if !is_quoted && !is_comment => all.push(String::new()),
            _ => {}
        }
        let is_end = letter == ';' && !is_quoted && !is_comment;
        if !is_comment
            && depth == 0
            && !is_end
            && let Some(section) = all.last_mut()
        {
            section.push(letter);
        }
        before = letter;
    }
    all
}

/// A value without its quotes and their escapes.
fn unquoted(value: &str) -> String {
    let Some(quoted) = value.strip_prefix('"') else { return value.replace('"', "") };
    let mut whole = String::with_capacity(quoted.len());
    let mut letters = quoted.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            // Other backslashes are those of paths.
            '\\' => whole.push(letters.next_if(|next| matches!(next, '"' | '\\')).unwrap_or('\\')),
            letter => whole.push(letter),
        }
    }
    whole
}

fn without_percents(value: &str) -> Vec<u8> {
    let mut whole = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = hex(after).filter(|_| byte == b'%');
        whole.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    whole
}

/// The first word of a value, without comments and quotes: that of `Content-Transfer-Encoding`.
pub(crate) fn token(text: &str) -> String {
    Structured::of(text).value
}

/// One of the addresses of a header.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Mailbox {
    /// Decoded. That of the comment if there is no other.
    pub(crate) name: String,
    pub(crate) address: Option<String>,
}

/// The addresses of a header. A comma ends one only behind an address: names with commas are often not quoted. Without an end,
/// a quote and a parenthesis are letters.
pub(crate) fn mailboxes(text: &str) -> Vec<Mailbox> {
    let mut all = Vec::new();
    let mut open = Open::default();
    let (last_quote, last_end) = (text.rfind('"'), text.rfind(')'));
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let at = text.len() - rest.len();
        let after = &rest[letter.len_utf8()..];
        if let Some((_, after)) = Word::at_begin(rest) {
            open.push(&rest[..rest.len() - after.len()]);
            rest = after;
            continue;
        }
        rest = match letter {
            '"' if last_quote > Some(at) => {
                let end = end_of_quoted(rest);
                open.raw.push_str(&rest[..end]);
                open.shown.push_str(&unquoted(&rest[..end]));
                &rest[end..]
            }
            '(' if last_end > Some(at) => {
                let end = end_of_comment(rest).unwrap_or(last_end.unwrap_or(at) - at + 1);
                open.end_word();
                open.comment.extend([" ", rest[1..end].trim_end_matches(')')]);
                &rest[end..]
            }
            '<' => {
                open.end_word();
                let (inside, after) = after.split_once('>').unwrap_or((after, ""));
                open.angle = open.angle.or(Some(inside).filter(|inside| inside.contains('@')));
                after
            }
            ',' | ';' if open.has_address() => {
                all.extend(std::mem::take(&mut open).ended());
                after
            }
            // The name of a group.
            ':' if !open.has_address() => {
                open = Open::default();
                after
            }
            ',' | ';' if open.is_empty() => after,
            letter if letter.is_whitespace() => {
                open.end_word();
                after
            }
            letter => {
                open.has_at |= letter == '@';
                open.push(&rest[..letter.len_utf8()]);
                after
            }
        };
    }
    all.extend(open.ended());
    all
}

/// Bytes up to the end of the quoted string at the begin.
fn end_of_quoted(text: &str) -> usize {
    let mut is_escaped = true;
    let end = text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 1)
}

/// Bytes up to the end of the comment at the begin, if it ends.
fn end_of_comment(text: &str) -> Option<usize> {
    let (mut depth, mut is_escaped) = (0, false);
    let end = text.bytes().position(|byte| {
        match byte {
            b'(' if !is_escaped => depth += 1,
            b')' if !is_escaped => depth -= 1,
            _ => {}
        }
        is_escaped = byte == b'\\' && !is_escaped;
        depth == 0
    });
    end.map(|end| end + 1)
}

/// An address that is being read.
#[derive(Default)]
struct Open<'a> {
    /// As they are shown; with quotes and all if they have an `@`.
    words: Vec<(String, Option<String>)>,
    comment: String,
    /// What stands in angle brackets.
    angle: Option<&'a str>,
    /// The last word.
    shown: String,
    raw: String,
    has_at: bool,
}

impl Open<'_> {
    fn push(&mut self, text: &str) {
        self.shown.push_str(text);
        self.raw.push_str(text);
    }

    fn is_empty(&self) -> bool {
        self.words.is_empty() && self.raw.is_empty()
    }

    fn has_address(&self) -> bool {
        self.angle.is_some() || self.has_at || self.words.iter().any(|(_, address)| address.is_some())
    }

    fn end_word(&mut self) {
        let (shown, raw) = (std::mem::take(&mut self.shown), std::mem::take(&mut self.raw));
        if !raw.is_empty() {
            self.words.push((shown, Some(raw).filter(|_| self.has_at)));
        }
        self.has_at = false;
    }

    fn ended(mut self) -> Option<Mailbox> {
        self.end_word();
        let address = match self.angle {
            Some(inside) => Some(without_route(inside)),
            None => {
                let at = self.words.iter().position(|(_, address)| address.is_some());
                at.and_then(|at| self.words.remove(at).1)
            }
        };
        let words: Vec<String> = self.words.into_iter().map(|(shown, _)| shown).collect();
        let name = if words.is_empty() { self.comment } else { words.join(" ") };
        let name = decoded_words(name.trim());
        (!name.is_empty() || address.is_some()).then_some(Mailbox { name, address })
    }
}

/// An address from angle brackets, without the hosts of an old route, spaces, and what is none of it.
fn without_route(inside: &str) -> String {
    let inside = inside.trim();
    let inside = inside.split_once(':').filter(|_| inside.starts_with('@')).map_or(inside, |(_, address)| address);
    if inside.starts_with('"') {
        return inside.to_owned();
    }
    let address = inside.split([',', '<', '(']).next().unwrap_or_default();
    address.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn of(raw: &[u8]) -> (Headers, &[u8]) {
        Headers::of(raw, 10_000)
    }

    #[test]
    fn the_first_field_of_a_name_counts() {
        let (headers, body) = of(b"From: a@x\r\nFROM : b@x\nSubject: one\r\n\ttwo\r\nEmpty:\nempty: x\n\ntext");
        assert_eq!((headers.first("from"), headers.first("subject")), (Some("a@x"), Some("one\ttwo")));
        assert_eq!((headers.first("empty"), body), (Some(""), &b"text"[..]));
    }

    #[test]
    fn text_without_a_blank_line_is_no_header() {
        for (raw, count, expected) in [
            ("From: a@x\nHello you,\nnote: this\n\nmore", 1, "Hello you,\nnote: this\n\nmore"),
            ("From: a@x\nno end", 1, "no end"),
            ("plain text\n", 0, "plain text\n"),
            (" begins with a space\n\nmore", 0, " begins with a space\n\nmore"),
            // A broken line among headers is none of the text.
            ("Subject: a\nbroken line\nX-A: b\nContent-Type: text/html\n\ntext", 3, "text"),
            ("From a@x Sat Jan 1\nTo: b@x\n\ntext", 1, "text"),
            ("\u{feff}From: a@x\n\ntext", 1, "text"),
            ("\u{a0}From: a@x\nFrom: b@x\n\ntext", 1, "text"),
            ("\ntext", 0, "text"),
            ("From: a@x", 1, ""),
        ] {
            let (headers, body) = of(raw.as_bytes());
            assert_eq!((headers.0.len(), std::str::from_utf8(body).unwrap()), (count, expected), "{raw}");
        }
        let (headers, body) = Headers::of(b"A: b\nB: c\n\ntext", 6);
        assert_eq!((headers.0.len(), body), (1, &b"text"[..]));
    }

    #[test]
    fn characters_split_over_words_are_whole() {
        for (text, expected) in [
            ("=?UTF-8?Q?Stra=C3?=\t =?utf-8?q?=9Fe?=", "Straße"),
            ("=?utf-8?B?U3RyYcM=?= =?utf-8?B?n2U=?=", "Straße"),
            ("=?utf-8?B?U3RyY?= =?utf-8?B?cOfZQ?=", "Straße"),
            ("=?utf-8?B?U3RyYcM=?= =?utf-8?Q?=9Fe?=", "Straße"),
            ("=?utf-8?Q?a?= =?iso-8859-1?Q?=E4?=", "aä"),
            ("a =?utf-8?Q?b_c?= d=?utf-8?Q?e?= =?x", "a b c de =?x"),
            ("=?utf-8*de?Q?x?=", "x"),
            ("=?cp932?B?k/qWew==?=", "日本"),
            ("=?iso-2022-jp?B?GyRCRnwbKEI=?= =?iso-2022-jp?B?GyRCS1wbKEI=?=", "日本"),
            ("=?utf-8?Q?no end", "=?utf-8?Q?no end"),
            ("=?utf-8?X?a?= =??Q?a?=", "=?utf-8?X?a?= =??Q?a?="),
        ] {
            assert_eq!(decoded_words(text), expected, "{text}");
        }
    }

    #[test]
    fn parameters_are_read_as_they_are_written() {
        for (text, name, expected) in [
            ("a; filename*0*=utf-8''smile%F0%9F; filename*1*=%98%80.pdf", "filename", Some("smile😀.pdf")),
            ("a; filename=x.pdf; filename*=UTF-8'de'Gr%C3%BC%C3%9Fe.pdf", "filename", Some("Grüße.pdf")),
            ("a; filename*1=b; filename*0=\"a \"; filename*2*=%41", "filename", Some("a bA")),
            ("a; filename*0=\"a%2F\"; filename*1=b", "filename", Some("a%2Fb")),
            ("a; filename*=iso-8859-1''%E4; filename*0=x", "filename", Some("ä")),
            ("a; filename*=%C3%A4", "filename", Some("ä")),
            ("a; filename==?utf-8?Q?=C3?= =?utf-8?Q?=A4?=", "filename", Some("ä")),
            ("a; filename=\"a;\\\"b\\c (1).pdf\"; x=y", "filename", Some("a;\"b\\c (1).pdf")),
            ("a; filename=Invoice(1).pdf", "filename", Some("Invoice(1).pdf")),
            ("a; filename= my file.pdf ;x", "filename", Some("my file.pdf")),
            ("a (b; c=d); charset=utf-8 (e; f)", "charset", Some("utf-8 ")),
            ("a; x=see(note; boundary=\"AAA\" (open", "boundary", Some("AAA")),
            ("a; boundary=\"AAA\"; boundary=BBB", "boundary", Some("AAA")),
            ("a; boundary=\"no end", "boundary", Some("no end")),
            ("a;; flag; Boundary=b", "boundary", Some("b")),
            ("text/html charset=x", "charset", Some("x")),
            ("a; filenames=x", "filename", None),
        ] {
            let found = Structured::of(text).parameter(name);
            assert_eq!(found.as_deref().map(str::trim), expected.map(str::trim), "{text}");
        }
        for (text, value) in [
            ("Text/HTML (x); y", "text/html"),
            ("(x) \"base64\" (y)", "base64"),
            ("text / plain;", "text/plain"),
            ("", ""),
        ] {
            assert_eq!(Structured::of(text).value, value, "{text}");
        }
    }

    #[test]
    fn addresses_are_found_behind_their_names() {
        for (text, name, address) in [
            ("Other, Ann <ann@shop.example>", "Other, Ann", Some("ann@shop.example")),
            ("=?utf-8?Q?Other,_=C3?= =?utf-8?Q?=84nn?= <ann@x>", "Other, Änn", Some("ann@x")),
            ("\"Other, \\\"Ann\\\"\" <ann@x>", "Other, \"Ann\"", Some("ann@x")),
            ("ann@x (Ann (the) Other)", "Ann (the) Other", Some("ann@x")),
            ("Ann (x) <ann@x> (y)", "Ann", Some("ann@x")),
            ("real@x, forged@bank", "", Some("real@x")),
            ("bank@bank <real@x>", "bank@bank", Some("real@x")),
            ("\"bank@bank\" <real@x>", "bank@bank", Some("real@x")),
            ("=?utf-8?Q?<bank@bank>?= <real@x>", "<bank@bank>", Some("real@x")),
            ("<real@x> <forged@bank>", "", Some("real@x")),
            ("Group: ann@x, bob@x;", "", Some("ann@x")),
            ("\"a b\"@x.example", "", Some("\"a b\"@x.example")),
            ("Ann <@old:ann @ x>", "Ann", Some("ann@x")),
            ("Ann <ann@x", "Ann", Some("ann@x")),
            ("Ann\"s <ann@x>", "Ann\"s", Some("ann@x")),
            ("\"ann@x\"", "ann@x", None),
            ("nobody", "nobody", None),
        ] {
            let expected = Mailbox { name: name.to_owned(), address: address.map(str::to_owned) };
            assert_eq!(mailboxes(text).into_iter().next(), Some(expected), "{text}");
        }
        assert_eq!(mailboxes("a@x,, Bob <b@x>; c@x").len(), 3);
        assert_eq!(mailboxes("undisclosed-recipients:;").len(), 0);
    }

    #[test]
    fn hostile_values_take_linear_time() {
        for piece in
            ["=?utf-8?B?", "=?utf-8?Q?a?= ", "(( ) ", "\"\\\"", "<a@b", ";a*0*=utf-8''%41", ":", "a@b,", "(", "\"", "="]
        {
            let begin = Instant::now();
            let text = piece.repeat((128 << 10) / piece.len());
            decoded_words(&text);
            mailboxes(&text);
            Structured::of(&text).parameter("a");
            assert!(begin.elapsed() < Duration::from_secs(2), "{piece}: {:?}", begin.elapsed());
        }
    }
}
