//! Reading mails of strangers: text, sanitised HTML, attachments, threading, and delivery reports.
//!
//! Everything is bounded: the size, the headers, the number and the depth of parts, the texts. HTML, which takes the most
//! time, has one bound for all parts of a mail together ([`Room`]). The parts are taken apart here, in one pass over the mail
//! for each level, and their headers in `headers`. Only dates and ids go to `mail-parser`: given a whole mail, it searches the
//! rest of it for each boundary, and drops nested mails recursively.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use base::clock::Timestamp;
use base::untrusted_text::visible;
use mail_parser::decoders::html::add_html_token;
use mail_parser::{HeaderValue, MessageParser};
use web::read::hidden::{self, Shown, StyleRules};

use crate::address::{Address, MAX_ADDRESS_BYTES};
use crate::charset;
use crate::compose::{Attached, content_type, file_name, header_text, message_id};
use crate::headers::{Headers, Mailbox, Structured, decoded_words, mailboxes, token};
use crate::transfer::{decoded, unflowed};

/// Longer mails are not read, in bytes. 25 MB of attachments are 34 MB in base64.
const MAX_MAIL_BYTES: usize = 40 << 20;
/// Maximum number of attachments and their maximum size together, in bytes. Further ones are left out.
const MAX_ATTACHMENTS: usize = 25;
const MAX_ATTACHMENTS_BYTES: usize = 25 << 20;
/// Headers of the mail and of a part are read so far, in bytes.
const MAX_HEADER_BYTES: usize = 128 << 10;
const MAX_PART_HEADER_BYTES: usize = 16 << 10;
/// Maximum number of parts of all levels, and of levels. Deeper parts become attachments unread.
const MAX_PARTS: usize = 200;
const MAX_LEVELS: usize = 10;
/// Maximum length of a boundary in bytes (RFC 2046, 5.1.1 allows 70).
const MAX_BOUNDARY_BYTES: usize = 200;
/// Maximum length of the text, in bytes. What follows is left out.
const MAX_TEXT_BYTES: usize = 1 << 20;
/// HTML is read so far, and so much of it is kept when styles and the like are gone, in bytes of all parts together.
const MAX_HTML_BYTES: usize = 1 << 20;
const MAX_KEPT_HTML_BYTES: usize = 256 << 10;
/// Text longer than this is written in pieces, in bytes.
const MAX_TEXT_PIECE_BYTES: usize = 1 << 10;
/// Keeps the texts before and after it apart. The cleaner removes it.
const BREAK: &str = "<wbr>";
/// Maximum number of tags of all parts together, and maximum depth.
const MAX_TAGS: usize = 30_000;
const MAX_OPEN_TAGS: usize = 60;
/// Maximum number of steps in which style rules are matched, of all parts together.
const MAX_STEPS: usize = 50_000_000;
/// Longer attribute values are dropped, in bytes.
const MAX_ATTRIBUTE_BYTES: usize = 4_096;
/// Maximum length of a subject and a name in characters.
const MAX_SUBJECT: usize = 998;
const MAX_NAME: usize = 200;
/// The last ids of `References` are kept.
const MAX_REFERENCES: usize = 50;
const MAX_STATUS_BYTES: usize = 64 << 10;

/// A mail that was read. No text has control or invisible characters, except line feeds and tabs in `text`.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The address of the first author, as it was written.
    pub from: Option<String>,
    pub from_name: Option<String>,
    /// Where answers are to go (RFC 5322, 3.6.2), if the header names exactly one address.
    pub reply_to: Option<Address>,
    pub subject: String,
    /// Ids are without angle brackets.
    pub message_id: Option<String>,
    pub in_reply_to: Option<String>,
    /// Oldest first, at most 50. Without that header the id of `In-Reply-To`, if it is one (RFC 5322, 3.6.4).
    pub references: Vec<String>,
    /// The text version. Made of the HTML if there is no other. No spaces or lines at the end.
    pub text: String,
    /// Sanitised: no scripts, styles, forms, or remote images; links go to http, https and mailto.
    pub html: Option<String>,
    /// The mail has more than this: text, tags, parts or attachments were left out.
    pub is_cut: bool,
    pub attachments: Vec<Attached>,
    pub date: Option<Timestamp>,
    /// The mail says that a program sent it (RFC 3834, 5; `Precedence`), or is a report.
    /// An empty return path is judged by the caller.
    pub is_automatic: bool,
    pub report: Option<Report>,
}

/// What a delivery status notification says about the first recipient it names (RFC 3464).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The address that was written to, if the report names it; otherwise the last one it was sent on to.
    pub recipient: Option<String>,
    /// `failed`, `delayed`, `delivered`, `relayed` or `expanded`.
    pub action: String,
    /// `5.1.1`
    pub status: Option<String>,
    pub original_message_id: Option<String>,
}

/// Reads a mail. `None`: not a mail, that is without any of the usual headers, or larger than 40 MB.
pub fn parse(raw: &[u8]) -> Option<Parsed> {
    if raw.len() > MAX_MAIL_BYTES {
        return None;
    }
    // The decoders mean never to panic. If one does, a mail must not be tried again and again.
    std::panic::catch_unwind(|| read(raw)).ok().flatten()
}

fn read(raw: &[u8]) -> Option<Parsed> {
    let (headers, _) = Headers::of(raw, MAX_HEADER_BYTES);
    let usual = ["from", "sender", "to", "subject", "date", "message-id", "received"];
    if !usual.into_iter().any(|name| headers.has(name)) {
        return None;
    }
    let contents = Contents::of(raw);
    let author = headers.first("from").map(mailboxes).and_then(|all| all.into_iter().next()).unwrap_or_default();
    let address = author.address.as_deref().map(visible);
    let html = Some(contents.html).filter(|html| !html.trim().is_empty());
    let mut text = contents.text;
    if text.trim().is_empty() {
        text = html.as_deref().map(plain_text).unwrap_or_default();
    }
    let answered = ids(&headers, "in-reply-to");
    let mut references = ids(&headers, "references");
    if references.is_empty() && answered.len() == 1 {
        references = answered.clone();
    }
    let in_reply_to = answered.into_iter().next();
    references.drain(..references.len().saturating_sub(MAX_REFERENCES));
    let report = contents
        .status
        .map(|report| Report { original_message_id: contents.original.or_else(|| in_reply_to.clone()), ..report });
    let subject = headers.first("subject").map(decoded_words).unwrap_or_default();
    Some(Parsed {
        from: address.filter(|address| address.len() <= MAX_ADDRESS_BYTES && address.contains('@')),
        from_name: Some(header_text(&author.name, MAX_NAME)).filter(|name| !name.is_empty()),
        reply_to: headers.first("reply-to").map(mailboxes).and_then(|all| one_address(&all)),
        subject: header_text(&subject, MAX_SUBJECT),
        message_id: ids(&headers, "message-id").into_iter().next(),
        in_reply_to,
        references,
        text: text.trim_end().to_owned(),
        html,
        is_cut: contents.is_cut,
        attachments: contents.attachments,
        date: date(&headers),
        is_automatic: report.is_some() || is_automatic(&headers),
        report,
    })
}

fn date(headers: &Headers) -> Option<Timestamp> {
    let line = format!("Date: {}\n\n", headers.first("date")?);
    let mail = MessageParser::new().parse_headers(line.as_bytes())?;
    let date = mail.date().filter(|date| date.is_valid() && (1970..=9999).contains(&date.year))?;
    Some(Timestamp::from_secs(date.to_timestamp()))
}

/// The only address of a header; `None` if there are others, or if it is none that a mail can be sent to.
fn one_address(all: &[Mailbox]) -> Option<Address> {
    match all {
        [only] => Address::parse(only.address.as_deref()?).ok(),
        _ => None,
    }
}

fn is_automatic(headers: &Headers) -> bool {
    let word = |name: &str| {
        let value = headers.first(name)?;
        Some(value.split([';', ' ']).find(|word| !word.is_empty()).unwrap_or_default().to_ascii_lowercase())
    };
    word("auto-submitted").is_some_and(|word| word != "no")
        || word("precedence").is_some_and(|word| ["bulk", "junk", "list", "auto_reply"].contains(&word.as_str()))
        || headers.has("x-autoreply")
        || headers.has("x-autorespond")
}

/// The usable ids of a header.
fn ids(headers: &Headers, name: &str) -> Vec<String> {
    let Some(value) = headers.first(name) else { return Vec::new() };
    // All headers with ids have the same form.
    let line = format!("References: {value}\n\n");
    let mail = MessageParser::new().parse_headers(line.as_bytes()).unwrap_or_default();
    let all: Vec<&str> = match if mail.parts.is_empty() { &HeaderValue::Empty } else { mail.references() } {
        HeaderValue::Text(id) => vec![id],
        HeaderValue::TextList(ids) => ids.iter().map(AsRef::as_ref).collect(),
        _ => Vec::new(),
    };
    all.into_iter().filter_map(message_id).map(str::to_owned).collect()
}

/// A part that is still to be read.
struct Part<'a> {
    raw: &'a [u8],
    level: usize,
    /// Within a `multipart/alternative`: the HTML says the same as the text.
    is_alternative: bool,
    is_report: bool,
}

#[derive(Default)]
struct Contents {
    text: String,
    /// Sanitised.
    html: String,
    room: Room,
    /// More was there than is kept.
    is_cut: bool,
    attachments: Vec<Attached>,
    attachments_bytes: usize,
    status: Option<Report>,
    /// The id of the mail that a report returns.
    original: Option<String>,
}

impl Contents {
    fn of(raw: &[u8]) -> Contents {
        let mut contents = Contents::default();
        let mut waiting = vec![Part { raw, level: 0, is_alternative: false, is_report: false }];
        let mut seen = 0;
        while let Some(part) = waiting.pop() {
            seen += 1;
            let parts = contents.read(&part, MAX_PARTS.saturating_sub(seen + waiting.len()));
            waiting.extend(parts.into_iter().rev());
        }
        contents
    }

    /// Reads one part; returns at most `max` parts of it.
    fn read<'a>(&mut self, part: &Part<'a>, max: usize) -> Vec<Part<'a>> {
        let limit = if part.level == 0 { MAX_HEADER_BYTES } else { MAX_PART_HEADER_BYTES };
        let (headers, body) = Headers::of(part.raw, limit);
        // Without headers it is text (RFC 2045, 5.2), as is what has no type.
        let kind = headers.first("content-type").map(Structured::of);
        let essence = kind.as_ref().map(|kind| kind.value.as_str()).filter(|essence| essence.contains('/'));
        let essence = essence.unwrap_or("text/plain");
        let of_kind = |name: &str| kind.as_ref().and_then(|kind| kind.parameter(name));
        if let Some(subtype) = essence.strip_prefix("multipart/") {
            let boundary = of_kind("boundary").unwrap_or_default();
            let boundary = boundary.trim_end();
            let is_alternative = part.is_alternative || subtype == "alternative";
            let is_report = subtype == "report";
            if !boundary.is_empty() && boundary.len() <= MAX_BOUNDARY_BYTES {
                if part.level >= MAX_LEVELS {
                    self.attach("part.eml", "application/octet-stream", body.to_vec());
                    return Vec::new();
                }
                let level = part.level + 1;
                let (parts, is_cut) = split_at_boundaries(body, boundary.as_bytes(), max);
                self.is_cut |= is_cut;
                if !parts.is_empty() {
                    return parts.into_iter().map(|raw| Part { raw, level, is_alternative, is_report }).collect();
                }
            }
        }
        let encoding = headers.first("content-transfer-encoding").map(token).unwrap_or_default();
        if part.is_report && self.read_report(essence, &encoding, body) {
            return Vec::new();
        }
        let disposition = headers.first("content-disposition").map(Structured::of);
        let named = disposition.as_ref().and_then(|disposition| disposition.parameter("filename"));
        let named = named.filter(|name| !name.is_empty()).or_else(|| of_kind("name")).filter(|name| !name.is_empty());
        let is_attached = disposition.is_some_and(|disposition| disposition.value == "attachment");
        let is_html = essence == "text/html";
        // A multipart without parts is read as text.
        let is_text = is_html || essence == "text/plain" || essence.starts_with("multipart/");
        if is_text && !is_attached && (named.is_none() || part.level == 0) {
            let word = |name: &str| kind.as_ref().and_then(|kind| kind.word(name)).unwrap_or_default();
            let room = if is_html { MAX_HTML_BYTES } else { MAX_TEXT_BYTES };
            // No encoding needs more than twelve bytes for one: quoted-printable of a four-byte character.
            self.is_cut |= body.len() > 12 * room;
            let body = &body[..body.len().min(12 * room)];
            let mut text = to_text(&decoded(body, &encoding), Some(&word("charset")));
            if !is_html && word("format").eq_ignore_ascii_case("flowed") {
                text = unflowed(&text, word("delsp").eq_ignore_ascii_case("yes"));
            }
            self.add_text(&text, is_html, part.is_alternative);
            return Vec::new();
        }
        let default = if essence == "message/rfc822" { "message.eml" } else { "attachment" };
        self.attach(named.as_deref().unwrap_or(default), essence, decoded(body, &encoding).into_owned());
        Vec::new()
    }

    fn add_text(&mut self, text: &str, is_html: bool, is_alternative: bool) {
        if is_html {
            let (html, is_cut) = sanitised_within(text, &mut self.room);
            self.is_cut |= is_cut;
            // The room bounds it.
            append(&mut self.html, &html, usize::MAX);
            // HTML beside a text, as mailing lists make it with their footers, has text of its own.
            if is_alternative {
                return;
            }
            self.is_cut |= append(&mut self.text, &plain_text(&html), MAX_TEXT_BYTES);
        } else {
            self.is_cut |= append(&mut self.text, &visible(text), MAX_TEXT_BYTES);
        }
    }

    fn attach(&mut self, name: &str, kind: &str, content: Vec<u8>) {
        let size = self.attachments_bytes.saturating_add(content.len());
        if self.attachments.len() < MAX_ATTACHMENTS && size <= MAX_ATTACHMENTS_BYTES {
            self.attachments_bytes = size;
            self.attachments.push(Attached { filename: file_name(name), content_type: content_type(kind), content });
        } else {
            self.is_cut = true;
        }
    }

    /// The machine's parts of a report. False: another part.
    fn read_report(&mut self, essence: &str, encoding: &str, body: &[u8]) -> bool {
        let body = decoded(&body[..body.len().min(MAX_STATUS_BYTES)], encoding);
        match essence {
            "message/delivery-status" | "message/global-delivery-status" => {
                self.status = self.status.take().or_else(|| status(&String::from_utf8_lossy(&body)));
                true
            }
            "message/rfc822" | "message/global" | "text/rfc822-headers" | "message/global-headers" => {
                let (headers, _) = Headers::of(&body, MAX_PART_HEADER_BYTES);
                self.original = self.original.take().or_else(|| ids(&headers, "message-id").into_iter().next());
                true
            }
            _ => false,
        }
    }
}

/// Whether something was cut off.
fn append(to: &mut String, text: &str, max: usize) -> bool {
    if !to.is_empty() && !to.ends_with('\n') && !text.is_empty() {
        to.push('\n');
    }
    to.push_str(text);
    let is_cut = to.len() > max;
    to.truncate(to.floor_char_boundary(max));
    is_cut
}

/// The parts of a multipart body (RFC 2046, 5.1.1), at most `max`, and whether there are more. The last one may lack its end.
fn split_at_boundaries<'a>(body: &'a [u8], boundary: &[u8], max: usize) -> (Vec<&'a [u8]>, bool) {
    let mut parts = Vec::new();
    let mut begin = None;
    let mut at = 0;
    while at < body.len() && parts.len() < max {
        let next = body[at..].iter().position(|&byte| byte == b'\n').map_or(body.len(), |length| at + length + 1);
        let after = body[at..next].strip_prefix(b"--").and_then(|line| line.strip_prefix(boundary));
        if let Some(after) = after {
            let last = after.strip_prefix(b"--");
            let is_last = last.is_some();
            // The boundary of another multipart may begin like this one.
            if last.unwrap_or(after).trim_ascii().is_empty() {
                if let Some(begin) = begin {
                    // The line end before a boundary belongs to the boundary.
                    let part: &[u8] = &body[begin..at.max(begin)];
                    let part = part.strip_suffix(b"\n").unwrap_or(part);
                    parts.push(part.strip_suffix(b"\r").unwrap_or(part));
                }
                if is_last {
                    return (parts, false);
                }
                begin = Some(next);
            }
        }
        at = next;
    }
    // Only the maximum ends the loop before the body's end.
    let is_cut = !body[at..].trim_ascii().is_empty();
    if let Some(begin) = begin.filter(|_| parts.len() < max) {
        parts.push(&body[begin..]);
    }
    (parts, is_cut)
}

/// Text with line feeds.
fn to_text(bytes: &[u8], charset: Option<&str>) -> String {
    charset::text(bytes, charset).replace("\r\n", "\n").replace('\r', "\n")
}

/// The fields of the first recipient of a report.
fn status(text: &str) -> Option<Report> {
    let text = text.replace("\r\n", "\n").replace("\n ", " ").replace("\n\t", " ");
    let field = |block: &str, name: &str| {
        let is_named =
            |line: &&str| line.split_once(':').is_some_and(|(known, _)| known.trim().eq_ignore_ascii_case(name));
        block.lines().find(is_named)?.split_once(':').map(|(_, value)| visible(value).trim().to_owned())
    };
    let recipient = |block: &str, name: &str| {
        let value = field(block, name)?;
        let address = value.split_once(';').map_or(value.as_str(), |(_, address)| address);
        let address = address.trim().trim_start_matches('<').trim_end_matches('>');
        let fits =
            address.contains('@') && address.len() <= MAX_ADDRESS_BYTES && !address.contains(char::is_whitespace);
        fits.then(|| address.to_owned())
    };
    text.split("\n\n").find_map(|block| {
        let action: String = field(block, "Action")?.chars().take_while(char::is_ascii_alphabetic).take(20).collect();
        let status: String = field(block, "Status")
            .unwrap_or_default()
            .chars()
            .take_while(|c| c.is_ascii_digit() || *c == '.')
            .collect();
        (!action.is_empty()).then(|| Report {
            recipient: recipient(block, "Original-Recipient").or_else(|| recipient(block, "Final-Recipient")),
            action: action.to_ascii_lowercase(),
            status: (3..=11).contains(&status.len()).then_some(status),
            original_message_id: None,
        })
    })
}

/// Tags that stay.
const TAGS: [&str; 46] = [
    "a",
    "abbr",
    "b",
    "blockquote",
    "br",
    "caption",
    "code",
    "col",
    "colgroup",
    "dd",
    "del",
    "div",
    "dl",
    "dt",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "img",
    "ins",
    "li",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "small",
    "span",
    "strike",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "u",
    "ul",
];
/// Tags that become a `div`, because they begin a line.
const AS_DIV: [&str; 14] = [
    "address", "article", "aside", "center", "dir", "fieldset", "figure", "footer", "form", "header", "main", "nav",
    "section", "summary",
];
/// Tags that go with their content. Those of `math`, `noscript` and `svg` go without it, as all unknown ones: mail programs
/// show their text.
const WITHOUT_CONTENT: [&str; 17] = [
    "applet", "audio", "canvas", "embed", "frameset", "iframe", "noembed", "noframes", "object", "script", "select",
    "style", "template", "textarea", "title", "video", "xmp",
];
const EMPTY: [&str; 4] = ["br", "col", "hr", "img"];
const ATTRIBUTES: [&str; 12] =
    ["align", "alt", "colspan", "dir", "height", "href", "lang", "rowspan", "src", "start", "title", "width"];
/// Those that decide whether text is seen. They are read, but not kept.
const OF_LOOKS: [&str; 10] =
    ["aria-hidden", "background", "bgcolor", "class", "color", "hidden", "id", "open", "popover", "style"];
/// Tags without an end tag and without text, beside those of [`EMPTY`].
const OTHER_EMPTY: [&str; 14] = [
    "area", "base", "basefont", "bgsound", "embed", "frame", "input", "keygen", "link", "meta", "param", "source",
    "track", "wbr",
];
/// Longest name of a character, in bytes.
const MAX_REFERENCE_BYTES: usize = 32;
/// Style sheets are read so far, in bytes.
const MAX_STYLE_BYTES: usize = 64 << 10;

static CLEANER: LazyLock<ammonia::Builder<'static>> = LazyLock::new(|| {
    let mut cleaner = ammonia::Builder::empty();
    let set = |names: &[&'static str]| names.iter().copied().collect::<HashSet<_>>();
    cleaner
        .tags(set(&TAGS))
        .clean_content_tags(set(&["script", "style"]))
        .generic_attributes(set(&["align", "dir", "lang", "title"]))
        .tag_attributes(HashMap::from([
            ("a", set(&["href"])),
            ("img", set(&["alt", "height", "src", "width"])),
            ("ol", set(&["start"])),
            ("td", set(&["colspan", "rowspan"])),
            ("th", set(&["colspan", "rowspan"])),
        ]))
        .url_schemes(set(&["http", "https", "mailto", "cid"]))
        .url_relative(ammonia::UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer nofollow"))
        .attribute_filter(|tag, attribute, value| {
            let begins =
                |scheme: &str| value.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
            let allowed = match (tag, attribute) {
                // Remote images tell the sender who reads; embedded ones are attachments already.
                ("img", "src") => begins("cid:"),
                ("a", "href") => ["http:", "https:", "mailto:"].into_iter().any(begins),
                _ => true,
            };
            allowed.then_some(Cow::Borrowed(value))
        });
    cleaner
});

/// HTML without scripts, event handlers, styles, forms, frames and remote images. Images are `cid:` only; links go to http,
/// https and mailto. Elements that are styled to be hidden are removed.
pub fn sanitised(html: &str) -> String {
    sanitised_within(html, &mut Room::default()).0
}

/// The same within what is left of the room, and whether it was too long to be kept whole.
fn sanitised_within(html: &str, room: &mut Room) -> (String, bool) {
    let tidy = Tidy::of(html, room);
    if tidy.html.is_empty() {
        return (String::new(), tidy.is_cut);
    }
    (visible(&CLEANER.clean(&tidy.html).to_string()), tidy.is_cut)
}

/// How much HTML of a mail is still read, in all its parts together.
struct Room {
    /// bytes
    read: usize,
    /// bytes
    kept: usize,
    tags: usize,
    /// Steps of matching style rules.
    steps: usize,
}

impl Default for Room {
    fn default() -> Room {
        Room { read: MAX_HTML_BYTES, kept: MAX_KEPT_HTML_BYTES, tags: MAX_TAGS, steps: MAX_STEPS }
    }
}

/// The texts and tags of HTML, without comments and declarations.
struct Pieces<'a>(&'a str);

enum Piece<'a> {
    Text(&'a str),
    Tag(Tag<'a>),
}

struct Tag<'a> {
    /// In lower case, cut.
    name: String,
    is_end: bool,
    attributes: Vec<(&'static str, &'a str)>,
    /// What an element has that goes with its content, and its end tag.
    content: &'a str,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        loop {
            let rest = self.0;
            let second = rest.as_bytes().get(1).copied().unwrap_or_default();
            if rest.is_empty() {
                return None;
            } else if let Some(comment) = rest.strip_prefix("<!--") {
                // `<!-->` is a whole comment.
                let is_whole = comment.strip_prefix('>').or(comment.strip_prefix("->"));
                self.0 = is_whole.unwrap_or_else(|| after(comment, "-->"));
            } else if rest.starts_with("<!") || rest.starts_with("<?") {
                self.0 = after(rest, ">");
            } else if rest.starts_with('<') && (second == b'/' || second.is_ascii_alphabetic()) {
                let (tag, rest) = Tag::read(&rest[1..]);
                self.0 = rest;
                return Some(Piece::Tag(tag));
            } else if let Some(after) = rest.strip_prefix('<') {
                self.0 = after;
                return Some(Piece::Text("&lt;"));
            } else {
                let (text, after) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
                self.0 = after;
                return Some(Piece::Text(text));
            }
        }
    }
}

impl<'a> Tag<'a> {
    /// Reads a tag from after its `<`, with content that is not markup; returns what follows it.
    fn read(tag: &'a str) -> (Tag<'a>, &'a str) {
        let (is_end, tag) = tag.strip_prefix('/').map_or((false, tag), |tag| (true, tag));
        let length =
            tag.find(|letter: char| letter.is_ascii_whitespace() || "/><".contains(letter)).unwrap_or(tag.len());
        let name = tag[..length.min(tag.floor_char_boundary(20))].to_ascii_lowercase();
        let (attributes, rest) = attributes(&tag[length..]);
        let has_content = !is_end && name != "embed" && WITHOUT_CONTENT.contains(&name.as_str());
        let after = if has_content { after_end_tag(rest, &name) } else { rest };
        (Tag { name, is_end, attributes, content: &rest[..rest.len() - after.len()] }, after)
    }

    fn value(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

impl hidden::Element for Tag<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn attribute(&self, name: &str) -> Option<Cow<'_, str>> {
        let is_long = |name: &str| self.value(name).is_some_and(|value| value.len() > MAX_ATTRIBUTE_BYTES);
        // What hides it may stand behind the limit.
        if name == "hidden" && ["style", "class", "id"].into_iter().any(is_long) {
            return Some(Cow::Borrowed(""));
        }
        self.value(name).map(|value| resolved(&value[..value.floor_char_boundary(MAX_ATTRIBUTE_BYTES)]))
    }
}

/// The style sheets within HTML.
fn style_sheets(html: &str) -> String {
    let mut styles = String::new();
    for piece in Pieces(html) {
        if let Piece::Tag(tag) = piece
            && tag.name == "style"
            && styles.len() + tag.content.len() <= MAX_STYLE_BYTES
        {
            styles.push_str(tag.content);
            styles.push('}');
        }
    }
    styles
}

/// First stage of [`sanitised`]: the same HTML with few known tags, properly nested, and few known attributes, without what a
/// person does not see. The parser behind it takes time by the square of the depth and of the attributes of a tag. Its writer
/// looks, for each letter that it escapes, through the rest of the text: long texts are therefore broken.
struct Tidy<'room> {
    html: String,
    open: Vec<OpenTag>,
    /// How many tags were opened beyond the maximum depth.
    deeper: usize,
    top: Shown,
    rules: StyleRules,
    room: &'room mut Room,
    /// Bytes of text since the last break. Tags do not count as one: the parser drops some of them.
    since_break: usize,
    /// Text or tags were left out because there was too much.
    is_cut: bool,
    /// What follows cannot be judged, so it is left out.
    is_full: bool,
}

struct OpenTag {
    name: String,
    /// It is kept if it is seen.
    is_known: bool,
    is_written: bool,
    /// How its text is shown; `None`: it is hidden with all that it contains.
    shown: Option<Shown>,
}

impl<'room> Tidy<'room> {
    fn of(html: &str, room: &'room mut Room) -> Tidy<'room> {
        let read = &html[..html.floor_char_boundary(room.read)];
        room.read -= read.len();
        let styles = style_sheets(read);
        let mut tidy = Tidy {
            html: String::new(),
            open: Vec::new(),
            deeper: 0,
            top: Shown::at_top(styles.contains("background")),
            rules: StyleRules::parse(&styles),
            room,
            since_break: 0,
            is_cut: read.len() < html.len(),
            is_full: false,
        };
        let mut pieces = Pieces(read);
        while !tidy.is_full && tidy.html.len() < tidy.room.kept {
            match pieces.next() {
                Some(Piece::Text(text)) => tidy.text(text),
                Some(Piece::Tag(tag)) => tidy.tag(&tag),
                None => break,
            }
        }
        tidy.is_cut |= !pieces.0.is_empty();
        tidy.close(0);
        tidy.room.kept = tidy.room.kept.saturating_sub(tidy.html.len());
        tidy
    }

    /// How text is shown here; `None`: not at all.
    fn shown(&self) -> Option<Shown> {
        self.open.last().map_or(Some(self.top), |last| last.shown)
    }

    fn text(&mut self, text: &str) {
        if !self.shown().is_some_and(|shown| shown.text_shows()) {
            return;
        }
        let room = self.room.kept.saturating_sub(self.html.len());
        self.is_cut |= text.len() > room;
        for letter in text[..text.floor_char_boundary(room)].chars() {
            if self.since_break >= MAX_TEXT_PIECE_BYTES && is_written_slowly(letter) {
                self.html.push_str(BREAK);
                self.since_break = 0;
            }
            self.since_break += letter.len_utf8();
            match letter {
                '>' => self.html.push_str("&gt;"),
                letter => self.html.push(letter),
            }
        }
    }

    fn tag(&mut self, tag: &Tag<'_>) {
        if WITHOUT_CONTENT.contains(&tag.name.as_str()) {
            return;
        }
        let is_known = TAGS.contains(&tag.name.as_str()) || AS_DIV.contains(&tag.name.as_str());
        let name = if AS_DIV.contains(&tag.name.as_str()) { "div" } else { tag.name.as_str() };
        let steps = self.rules.size() * (1 + tag.value("class").unwrap_or_default().split_ascii_whitespace().count());
        let (Some(tags), Some(steps)) = (self.room.tags.checked_sub(1), self.room.steps.checked_sub(steps)) else {
            (self.is_cut, self.is_full) = (true, true);
            return;
        };
        (self.room.tags, self.room.steps) = (tags, steps);
        if tag.is_end {
            self.end_tag(name, is_known);
            return;
        }
        // A cell ends all that is open in the one before it.
        let is_of_table = matches!(name, "td" | "th" | "tr" | "tbody" | "thead" | "tfoot");
        while let Some(at) = self.open.iter().rposition(|open| open.is_known || !is_of_table)
            && ends_before(&self.open[at].name, name)
        {
            self.close(at);
        }
        let shown = self.shown().and_then(|outside| self.rules.inside(tag, outside));
        if EMPTY.contains(&name) {
            let is_dot = ["width", "height"].into_iter().any(|side| matches!(tag.value(side), Some("0" | "1")));
            if let Some(shown) = shown.filter(|_| name != "img" || !is_dot) {
                self.write(name, tag, shown.text_shows());
            }
            return;
        }
        // Other unknown tags change nothing.
        let has_look =
            || name == "dialog" || self.rules.size() > 0 || OF_LOOKS.into_iter().any(|look| tag.value(look).is_some());
        let is_open = || self.open.iter().any(|open| open.name == name);
        if OTHER_EMPTY.contains(&name) || !is_known && !has_look() && !is_open() {
            return;
        }
        if self.open.len() >= MAX_OPEN_TAGS {
            self.deeper += 1;
            if !shown.is_some_and(|shown| shown.text_shows())
                && let Some(last) = self.open.last_mut()
            {
                // Its end would not be known.
                (last.shown, self.is_cut) = (shown, true);
            }
            return;
        }
        let is_written = is_known && shown.is_some();
        if is_written {
            self.write(name, tag, true);
        }
        self.open.push(OpenTag { name: name.to_owned(), is_known, is_written, shown });
    }

    fn write(&mut self, name: &str, tag: &Tag<'_>, with_texts: bool) {
        self.html.push('<');
        self.html.push_str(name);
        for (key, value) in &tag.attributes {
            let is_kept = !OF_LOOKS.contains(key) && (with_texts || !matches!(*key, "alt" | "title"));
            if is_kept && value.len() <= MAX_ATTRIBUTE_BYTES {
                let value = value.replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;");
                self.html.extend([" ", key, "=\"", &value, "\""]);
            }
        }
        self.html.push('>');
    }

    fn end_tag(&mut self, name: &str, is_known: bool) {
        // What follows the end of the page belongs to it.
        if matches!(name, "html" | "body") {
            return;
        }
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        let at = self
            .open
            .iter()
            .rposition(|open| open.name == name || !is_known && matches!(open.name.as_str(), "td" | "th" | "table"));
        if let Some(at) = at.filter(|at| self.open[*at].name == name) {
            self.close(at);
        }
    }

    /// Closes all tags but the first `keep`.
    fn close(&mut self, keep: usize) {
        while self.open.len() > keep {
            if let Some(last) = self.open.pop()
                && last.is_written
            {
                self.html.extend(["</", &last.name, ">"]);
            }
        }
    }
}

/// Whether the cleaner's writer stops at this letter: it escapes it, or its first byte is that of a no-break space. Every
/// entity begins with one of them, so a break before it splits none.
fn is_written_slowly(letter: char) -> bool {
    matches!(letter, '&' | '>' | '\u{80}'..='\u{bf}')
}

/// Whether a tag of this name ends the last open one, which needs no end tag of its own.
fn ends_before(open: &str, next: &str) -> bool {
    match open {
        "p" => matches!(
            next,
            "p" | "div"
                | "table"
                | "ul"
                | "ol"
                | "dl"
                | "pre"
                | "hr"
                | "blockquote"
                | "h1"
                | "h2"
                | "h3"
                | "h4"
                | "h5"
                | "h6"
        ),
        "li" => next == "li",
        "dt" | "dd" => matches!(next, "dt" | "dd"),
        "td" | "th" => matches!(next, "td" | "th" | "tr" | "tbody" | "thead" | "tfoot"),
        "tr" => matches!(next, "tr" | "tbody" | "thead" | "tfoot"),
        "tbody" | "thead" | "tfoot" => matches!(next, "tbody" | "thead" | "tfoot"),
        _ => false,
    }
}

/// What follows `end`; nothing if there is no `end`, as browsers have it.
fn after<'a>(text: &'a str, end: &str) -> &'a str {
    text.find(end).map_or("", |at| &text[at + end.len()..])
}

/// What follows the end tag of an element whose content is not markup.
fn after_end_tag<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        rest = &rest[at + 2..];
        if rest.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return after(rest, ">");
        }
    }
    ""
}

/// The known attributes of a tag, the first of each name; and what follows the tag.
fn attributes(tag: &str) -> (Vec<(&'static str, &str)>, &str) {
    let mut found: Vec<(&'static str, &str)> = Vec::new();
    let mut rest = tag;
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_ascii_whitespace() || letter == '/');
        if rest.is_empty() || rest.starts_with('>') {
            return (found, rest.get(1..).unwrap_or_default());
        }
        let is_end = |letter: char| letter.is_ascii_whitespace() || "/>=".contains(letter);
        // A name may begin with `=`.
        let length = rest.char_indices().skip(1).find(|(_, letter)| is_end(*letter)).map_or(rest.len(), |(at, _)| at);
        let (name, after_name) = rest.split_at(length);
        let mut value = "";
        rest = after_name.trim_start_matches(|letter: char| letter.is_ascii_whitespace());
        if let Some(assigned) = rest.strip_prefix('=') {
            let assigned = assigned.trim_start_matches(|letter: char| letter.is_ascii_whitespace());
            let quote = assigned.chars().next().filter(|letter| "\"'".contains(*letter));
            let (read, after_value) = match quote {
                Some(quote) => assigned[1..].split_once(quote).unwrap_or((&assigned[1..], "")),
                None => assigned.split_at(
                    assigned
                        .find(|letter: char| letter.is_ascii_whitespace() || letter == '>')
                        .unwrap_or(assigned.len()),
                ),
            };
            (value, rest) = (read, after_value);
        }
        let known = ATTRIBUTES.into_iter().chain(OF_LOOKS).find(|known| name.eq_ignore_ascii_case(known));
        if let Some(known) = known.filter(|known| !found.iter().any(|(name, _)| name == known)) {
            found.push((known, value));
        }
    }
}

/// The value of an attribute with its character references resolved.
fn resolved(value: &str) -> Cow<'_, str> {
    if !value.contains('&') {
        return Cow::Borrowed(value);
    }
    let mut whole = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('&') {
        whole.push_str(&rest[..at]);
        rest = &rest[at..];
        let count = |from: usize, is_part: fn(&u8) -> bool| {
            from + rest.bytes().skip(from).take(MAX_REFERENCE_BYTES).take_while(is_part).count()
        };
        let length = match rest.as_bytes() {
            [_, b'#', b'x' | b'X', ..] => count(3, u8::is_ascii_hexdigit),
            [_, b'#', ..] => count(2, u8::is_ascii_digit),
            _ => count(1, u8::is_ascii_alphanumeric),
        };
        if length == 1 {
            whole.push('&');
        } else {
            // The semicolon may be missing.
            add_html_token(&mut whole, format!("{};", &rest[..length]).as_bytes(), false);
        }
        rest = rest[length..].strip_prefix(';').unwrap_or(&rest[length..]);
    }
    whole.push_str(rest);
    Cow::Owned(whole)
}

/// The text of sanitised HTML: blocks on lines of their own, lists with dashes, links with their addresses.
pub fn plain_text(html: &str) -> String {
    let mut text = Lines::default();
    let mut links: Vec<(String, usize)> = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        text.words(&rest[..at]);
        let mut is_quoted = false;
        let end = rest[at..].char_indices().find(|(_, letter)| {
            is_quoted ^= *letter == '"';
            *letter == '>' && !is_quoted
        });
        let end = end.map_or(rest.len(), |(length, _)| at + length);
        let tag = &rest[at + 1..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        let (is_end, tag) = tag.strip_prefix('/').map_or((false, tag), |tag| (true, tag));
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        let (attributes, _) = attributes(&tag[name.len()..]);
        let value = |key: &str| {
            attributes.iter().find(|(name, _)| *name == key).map(|(_, value)| unescaped(value).into_owned())
        };
        match name {
            "br" => text.line(1),
            "li" if !is_end => {
                text.ensure(1);
                text.text.push_str("- ");
            }
            "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "table" | "blockquote" | "pre" | "ul" | "ol" | "dl"
            | "hr" => {
                text.ensure(2);
                if name == "pre" {
                    text.keeps_spaces = !is_end;
                }
            }
            "div" | "li" | "tr" | "dt" | "dd" | "caption" => text.ensure(1),
            "td" | "th" => text.words(" "),
            "img" => text.words(&value("alt").unwrap_or_default().replace('&', "&amp;").replace('<', "&lt;")),
            "a" if !is_end => links.push((value("href").unwrap_or_default(), text.text.len())),
            "a" => {
                if let Some((address, begin)) = links.pop() {
                    let shown = text.text.get(begin..).unwrap_or_default().trim();
                    let told = address.strip_prefix("mailto:").unwrap_or(&address);
                    if !shown.is_empty() && !told.is_empty() && !shown.contains(told) {
                        text.text.push_str(&format!(" ({told})"));
                    }
                }
            }
            _ => {}
        }
    }
    text.words(rest);
    let text = visible(&text.text);
    text[..text.floor_char_boundary(MAX_TEXT_BYTES)].trim().to_owned()
}

#[derive(Default)]
struct Lines {
    text: String,
    /// White space that is written if more words follow in the line.
    has_gap: bool,
    keeps_spaces: bool,
}

impl Lines {
    fn words(&mut self, html: &str) {
        for letter in unescaped(html).chars() {
            if letter.is_whitespace() && !self.keeps_spaces {
                self.has_gap = true;
                continue;
            }
            let begins_line = self.text.is_empty() || self.text.ends_with('\n') || self.text.ends_with("- ");
            if std::mem::take(&mut self.has_gap) && !begins_line {
                self.text.push(' ');
            }
            self.text.push(letter);
        }
    }

    fn line(&mut self, breaks: usize) {
        self.has_gap = false;
        self.text.extend(std::iter::repeat_n('\n', breaks));
    }

    /// At least so many line breaks, but none at the begin.
    fn ensure(&mut self, breaks: usize) {
        let have = self.text.bytes().rev().take(breaks).take_while(|byte| *byte == b'\n').count();
        let is_item = self.text.ends_with("- ");
        self.line(if self.text.is_empty() || is_item { 0 } else { breaks - have });
    }
}

/// The entities that sanitised HTML has.
fn unescaped(html: &str) -> Cow<'_, str> {
    if !html.contains('&') {
        return Cow::Borrowed(html);
    }
    let text = html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&nbsp;", " ");
    Cow::Owned(text.replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::{Duration, Instant};

    #[test]
    fn hostile_html_is_harmless() {
        for (html, clean) in [
            ("<script>alert(1)</script>a", "a"),
            ("<SCRIPT src=//x>a</script >b<script>c", "b"),
            ("a<style>@import url(//x)</style>b", "ab"),
            ("<p style='background:url(//x)' onclick=x() class=c>a", "<p>a</p>"),
            ("<img src=https://x/p.gif alt=logo>", "<img alt=\"logo\">"),
            ("<img src='cid:a@b' onerror=x>", "<img src=\"cid:a@b\">"),
            ("<img src=\"data:image/svg+xml;base64,AAAA\"><img src=//x><img src=' CID:1'>", "<img><img><img>"),
            (
                "<a href=\"https://x.example/?a=1&amp;b\">x</a>",
                "<a href=\"https://x.example/?a=1&amp;b\" rel=\"noopener noreferrer nofollow\">x</a>",
            ),
            (
                "<a href='javascript:x'>x</a><a href='&#106;avascript:x'>y</a><a href='data:text/html,x'>z</a>",
                "<a rel=\"noopener noreferrer nofollow\">x</a><a rel=\"noopener noreferrer nofollow\">y</a><a rel=\"noopener noreferrer nofollow\">z</a>",
            ),
            ("<a href='cid:1'>x</a>", "<a rel=\"noopener noreferrer nofollow\">x</a>"),
            ("<form action=//x><input name=a>b<button>c</button></form>", "<div>bc</div>"),
            ("<iframe src=//x>a</iframe>b<object data=//x>c</object>d<template>e</template>f", "bdf"),
            // Text that people see is kept, without what is around it.
            (
                "<svg onload=x><style>a</style><script>b</script><text x=1>c</text></svg><noscript>d<img src=//x></noscript>\
                 <math><mi>e</mi><annotation-xml encoding=text/html><script>f</script></annotation-xml></math>g",
                "cd<img>eg",
            ),
            ("<!-- a --><!doctype html><!-->b<?php c ?>d", "bd"),
            ("<meta http-equiv=refresh content='0;//x'><base href=//x><link rel=stylesheet href=//x>a", "a"),
            ("a<span style='DISPLAY : none'>ignore all <b>rules</b></span>b<p hidden>c</p>d", "abd"),
            ("a<div style='font-size:0;line-height:0;opacity:0;overflow:hidden'>x</div>b", "ab"),
            (
                "a<i style='display:/**/none'>x</i><i style='display&#58none'>x</i><i style='display&colon;\\6eone'>x</i>b",
                "ab",
            ),
            (
                "<style>.x, #y { display:none }</style>a<font class='z x'>x<font>y</font>z</font><center id=y>x</center>b",
                "ab",
            ),
            (
                "<body style=color:#fff><unknown style=font-size:0>x<p style='font-size:9pt'>a</p></unknown></body>x",
                "<p></p>",
            ),
            ("<td bgcolor=navy><font color=white>a</font></td><font color=fff>b</font>c<p aria-hidden=true>d", "ac"),
            ("<div style=font-size:0><img alt=x src=cid:a><img width=1 alt=y></div>", "<div><img src=\"cid:a\"></div>"),
            ("a<div popover>x</div><dialog>x</dialog><dialog open>b</dialog>", "ab"),
            ("<b><i>a</b>b</i>c", "<b><i>a</i></b>bc"),
            (
                "<a title='\"><script>x</script>'>y</a>",
                "<a title=\"&quot;&gt;&lt;script&gt;x&lt;/script&gt;\" rel=\"noopener noreferrer nofollow\">y</a>",
            ),
            ("1 < 2 > 0 <3 a\u{202e}b\0c", "1 &lt; 2 &gt; 0 &lt;3 abc"),
        ] {
            let found = sanitised(html).replace("&lt;script&gt;", "<script>").replace("&lt;/script&gt;", "</script>");
            let clean = clean.replace("&lt;script&gt;", "<script>").replace("&lt;/script&gt;", "</script>");
            assert_eq!(found.replace("&gt;", ">"), clean.replace("&gt;", ">"), "{html}");
        }
        let table = "<table><tr><td>a<td>b<tr><td>c</table><ul><li>x<li>y</ul><p>1<p>2";
        assert_eq!(plain_text(&sanitised(table)), "a b\nc\n\n- x\n- y\n\n1\n\n2");
        let nested = "<div>".repeat(200_000);
        let attributes = format!("<a {}>x</a>", (0..100_000).map(|n| format!("a{n} ")).collect::<String>());
        for html in [
            nested,
            attributes,
            "<!--".repeat(250_000),
            "<b".repeat(400_000),
            "<p>x<b>".repeat(100_000),
            "<script>".repeat(90_000),
            "<a href=\"".repeat(90_000),
            "</script".repeat(100_000),
            "&".repeat(1 << 20),
            "<a>".repeat(300_000),
        ] {
            let begin = Instant::now();
            let clean = sanitised(&html);
            plain_text(&clean);
            assert!(begin.elapsed() < Duration::from_secs(5), "{} {:?}", &html[..20], begin.elapsed());
        }
    }

    /// Letters that the cleaner's writer looks at: for each one that it stops at, the rest of its text.
    fn writing_steps(html: &str) -> usize {
        let mut room = Room::default();
        let tidy = Tidy::of(html, &mut room);
        let steps_of = |text: &str| text.chars().filter(|letter| is_written_slowly(*letter)).count() * text.len();
        tidy.html.split(BREAK).map(steps_of).sum()
    }

    #[test]
    fn the_steps_of_sanitising_grow_with_the_length() {
        for letters in [
            "&",
            "&amp;",
            "&nbsp;",
            "\u{a0}",
            "a&",
            "<td>&",
            "<table>&&&&&&&&&</table>",
            "<x>&</x>",
            "&aaaaaaaaaaaaaaaaaaaaaaaa",
        ] {
            let html = |bytes: usize| letters.repeat(bytes / letters.len());
            let (few, many) =
                (writing_steps(&html(MAX_KEPT_HTML_BYTES / 16)), writing_steps(&html(MAX_KEPT_HTML_BYTES)));
            assert!(many <= 20 * few, "{letters}: {few}, {many}");
        }
        // What is broken is whole again.
        let text = "a &amp; b\u{a0}c &lt; d ".repeat(5_000);
        assert_eq!(sanitised(&text), text.replace('\u{a0}', "&nbsp;"));
    }

    #[test]
    fn all_parts_together_have_one_bound() {
        let part = |number: usize| {
            format!("--b\r\nContent-Type: text/html\r\n\r\n<p>{number}</p>{}\r\n", "x".repeat(350 << 10))
        };
        let parts: String = (0..23).map(part).collect();
        let parsed = parse(&mail("Content-Type: multipart/mixed; boundary=b", &format!("{parts}--b--"))).unwrap();
        let html = parsed.html.unwrap();
        assert!(html.len() <= MAX_KEPT_HTML_BYTES && parsed.text.len() <= MAX_KEPT_HTML_BYTES, "{}", html.len());
        assert!(html.starts_with("<p>0</p>") && parsed.is_cut);
        // Small parts are all read.
        let part = |number: usize| format!("--b\r\nContent-Type: text/html\r\n\r\n<p>{number}\r\n");
        let parts: String = (0..23).map(part).collect();
        let parsed = parse(&mail("Content-Type: multipart/mixed; boundary=b", &format!("{parts}--b--"))).unwrap();
        assert_eq!(parsed.text, (0..23).map(|number| number.to_string()).collect::<Vec<_>>().join("\n"));
        assert!(parsed.html.unwrap().contains("<p>22</p>") && !parsed.is_cut);
    }

    fn mail(headers: &str, body: &str) -> Vec<u8> {
        format!("From: \"A. B\" <a@x.example>\r\nSubject: s\r\n{headers}\r\n\r\n{body}").into_bytes()
    }

    #[test]
    fn real_structures_are_read() {
        let related = "--o\r\nContent-Type: multipart/alternative; boundary=\"i i\"\r\n\r\npreamble\r\n--i i\r\n\r\nplain\r\n\
            --i i\r\nContent-Type: text/html; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>f=FCr=\r\n</p>\r\n\
            --i i--\r\n--o\r\nContent-Type: image/png; name*=utf-8''%C3%A4.png\r\nContent-Transfer-Encoding: base64\r\nContent-ID: <c1>\r\n\r\n\
            AAEC\r\n--o\r\nContent-Type: text/plain\r\n\r\nfooter\r\n--o\r\nContent-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\nx\r\n--o--\r\nepilogue";
        let parsed = parse(&mail("Content-Type: multipart/mixed; boundary=o", related)).unwrap();
        assert_eq!((parsed.text.as_str(), parsed.html.as_deref()), ("plain\nfooter", Some("<p>für</p>")));
        let files: Vec<(&str, &str, usize)> = parsed
            .attachments
            .iter()
            .map(|file| (file.filename.as_str(), file.content_type.as_str(), file.content.len()))
            .collect();
        assert_eq!(files, [("ä.png", "image/png", 3), ("message.eml", "application/octet-stream", 19)]);
        assert_eq!((parsed.from.as_deref(), parsed.from_name.as_deref()), (Some("a@x.example"), Some("A. B")));
        assert!(!parsed.is_automatic);

        for (headers, expected) in [
            ("Auto-Submitted: auto-replied (vacation)", true),
            ("Auto-Submitted: No", false),
            ("Precedence: Bulk", true),
            ("Precedence: first-class", false),
        ] {
            assert_eq!(parse(&mail(headers, "x")).unwrap().is_automatic, expected, "{headers}");
        }
        let parsed = parse(b"from: =?utf-8?Q?=0D=0ABcc:_x=E2=80=AE?= <a@b.c>\nsubject: =?iso-8859-1?B?/A==?=\n and\n\tmore\nreferences: <a@b>\n <c d>\n <e@f>\n\nx").unwrap();
        assert_eq!(parsed.from_name.as_deref(), Some("Bcc: x"));
        assert_eq!(parsed.subject, "ü and more");
        assert_eq!(parsed.references, ["a@b", "e@f"]);
    }

    #[test]
    fn a_header_that_stands_twice_forges_nothing() {
        let raw = "From: Shop, Real <real@shop.example>\r\nFrom: Bank <forged@bank.example>\r\nFrom:\r\n\
            Subject: first\r\nSubject: second\r\n\
            Content-Type: multipart/mixed; boundary=one\r\nContent-Type: text/plain\r\n\r\n\
            --one\r\nContent-Transfer-Encoding: (of the text) base64\r\nContent-Transfer-Encoding: 7bit\r\n\r\naGFsbG8=\r\n\
            --one\r\nContent-Disposition: attachment; filename=a.pdf\r\n\r\nx\r\n--one--";
        let parsed = parse(raw.as_bytes()).unwrap();
        assert_eq!((parsed.from.as_deref(), parsed.subject.as_str()), (Some("real@shop.example"), "first"));
        assert_eq!(parsed.from_name.as_deref(), Some("Shop, Real"));
        assert_eq!((parsed.text.as_str(), parsed.attachments.len()), ("hallo", 1));
    }

    #[test]
    fn only_a_whole_delimiter_ends_a_part() {
        let body = "--b\r\n\r\none\r\n--b--more\r\n--bb\r\ntwo\r\n--b \r\n\r\nthree\r\n--b-- \r\nafter";
        let parsed = parse(&mail("Content-Type: multipart/mixed; boundary=b", body)).unwrap();
        assert_eq!(parsed.text, "one\n--b--more\n--bb\ntwo\nthree");
    }

    #[test]
    fn a_text_is_read_as_its_writer_saw_it() {
        for (headers, body, expected) in [
            ("Content-Type: text/plain; format=flowed; delsp=yes", "one \r\ntwo\r\n-- \r\nAnn", "onetwo\n-- \nAnn"),
            ("Content-Type: text/plain", "one \r\ntwo", "one \ntwo"),
            ("X: y", "می\u{200c}خواهم 👩\u{200d}🌾 a\u{200d}b", "می\u{200c}خواهم 👩\u{200d}🌾 ab"),
        ] {
            assert_eq!(parse(&mail(headers, body)).unwrap().text, expected, "{headers}");
        }
    }

    #[test]
    fn a_mail_says_where_answers_go_and_what_it_answers() {
        for (header, expected) in [
            ("Reply-To: List <list@X.example>", Some("list@x.example")),
            ("Reply-To: a@x.example, b@x.example", None),
            ("Reply-To: nobody", None),
            ("X-None: x", None),
        ] {
            let reply_to = parse(&mail(header, "x")).unwrap().reply_to;
            assert_eq!(reply_to.as_ref().map(Address::as_str), expected, "{header}");
        }
        for (headers, expected) in [
            ("In-Reply-To: <a@x>", vec!["a@x"]),
            ("In-Reply-To: <a@x> <b@x>", vec![]),
            ("In-Reply-To: <a@x>\r\nReferences: <r@x> <a@x>", vec!["r@x", "a@x"]),
        ] {
            assert_eq!(parse(&mail(headers, "x")).unwrap().references, expected, "{headers}");
        }
    }

    #[test]
    fn a_text_that_is_not_whole_says_so() {
        let (text, html) = ("Content-Type: text/plain", "Content-Type: text/html");
        for (headers, length, is_cut) in [
            (text, MAX_TEXT_BYTES, false),
            (text, MAX_TEXT_BYTES + 1, true),
            (html, MAX_KEPT_HTML_BYTES, false),
            (html, MAX_KEPT_HTML_BYTES + 1, true),
        ] {
            let parsed = parse(&mail(headers, &"x".repeat(length))).unwrap();
            assert_eq!(parsed.is_cut, is_cut, "{headers} {length}");
        }
        let tags = "<b>sixteen letters.</b>".repeat(MAX_KEPT_HTML_BYTES / 16);
        assert!(parse(&mail(html, &tags)).unwrap().is_cut);
    }

    #[test]
    fn a_mail_of_too_many_tags_parts_or_attachments_says_so() {
        let many = |headers: &str, part: &str, count: usize| {
            let parts = format!("--b\r\n{part}\r\n\r\nx\r\n").repeat(count);
            parse(&mail(headers, &format!("{parts}--b--"))).unwrap()
        };
        let (mixed, file) =
            ("Content-Type: multipart/mixed; boundary=b", "Content-Disposition: attachment; filename=a");
        for (part, most) in [("Content-Type: text/plain", MAX_PARTS - 1), (file, MAX_ATTACHMENTS)] {
            assert!(!many(mixed, part, most).is_cut, "{part}");
            assert!(many(mixed, part, most + 1).is_cut, "{part}");
        }
        for (count, is_cut) in [(MAX_TAGS, false), (MAX_TAGS + 1, true)] {
            let parsed = parse(&mail("Content-Type: text/html", &format!("x{}", "<br>".repeat(count)))).unwrap();
            assert_eq!(parsed.is_cut, is_cut, "{count}");
        }
    }

    #[test]
    fn reports_are_read() {
        let report = |status: &str, third: &str| {
            let body = format!(
                "--b\r\n\r\nSorry.\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n{status}\r\n--b\r\nContent-Type: {third}\r\n--b--\r\n"
            );
            let mail = mail(
                "Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\nIn-Reply-To: <r@x>",
                &body,
            );
            parse(&mail).unwrap()
        };
        let status = "Reporting-MTA: dns; mx\r\n\r\nOriginal-Recipient: rfc822;b@x.example\r\nFinal-Recipient: RFC822; <c@y.example>\r\n\
            ACTION: Delayed (x)\r\nStatus: 4.4.1 (late)\r\nDiagnostic-Code: smtp;\r\n Action: failed";
        let parsed = report(status, "message/rfc822\r\n\r\nSubject: x\r\nMessage-ID:\r\n <o.1@x>\r\n\r\nbody");
        let expected = Report {
            recipient: Some("b@x.example".into()),
            action: "delayed".into(),
            status: Some("4.4.1".into()),
            original_message_id: Some("o.1@x".into()),
        };
        assert_eq!((parsed.report, parsed.text.as_str(), parsed.attachments.len()), (Some(expected), "Sorry.", 0));
        let parsed =
            report("\r\nFinal-Recipient: rfc822;nobody\r\nAction: failed", "text/plain\r\n\r\nx").report.unwrap();
        assert_eq!((parsed.recipient, parsed.status, parsed.original_message_id.as_deref()), (None, None, Some("r@x")));
        assert_eq!(report("nothing", "text/plain\r\n\r\nx").report, None);
    }

    #[test]
    fn hostile_mails_are_bounded() {
        let mut nested = String::from("x");
        for level in 0..100 {
            nested = format!(
                "Content-Type: multipart/mixed; boundary=b{level}\r\n\r\n--b{level}\r\n{nested}\r\n--b{level}--"
            );
        }
        let parsed =
            parse(&mail(nested.split_once("\r\n\r\n").unwrap().0, nested.split_once("\r\n\r\n").unwrap().1)).unwrap();
        assert_eq!(parsed.attachments.len(), 1);

        let parsed = parse(&mail("Content-Type: multipart/mixed; boundary=b", "no parts at all")).unwrap();
        assert_eq!(parsed.text, "no parts at all");
        let parsed = parse(&mail("Content-Type: multipart/mixed", "--b\r\n\r\nx\r\n--b--")).unwrap();
        assert!(parsed.text.contains('x'));
        let parsed = parse(&mail("Content-Type: text/plain; charset=klingon", "ok")).unwrap();
        assert_eq!(parsed.text, "ok");
        let parsed = parse(b"From: a@b.c\r\nSubject: \xfc\xff \x00\x1b[31m\r\n\r\n\xfcber\x00 \x1b[1m").unwrap();
        assert_eq!(parsed.text, "über [1m");
        assert!(!parsed.subject.contains(char::is_control));
        let parsed = parse(&mail("Content-Transfer-Encoding: base64", "aGF*!@#sbG8=\r\n")).unwrap();
        assert_eq!(parsed.text, "hallo");
        for not_a_mail in
            [&b""[..], b"\r\n\r\n", b"hello", b"\xff\xfe\x00", b"X: y\r\n\r\nz", &[b'\n'; 1000], &[0; 1000]]
        {
            assert_eq!(parse(not_a_mail), None, "{not_a_mail:?}");
        }
        let cases: Vec<(&str, Vec<u8>)> = vec![
            ("headers", mail(&format!("X: {}", "a".repeat(5 << 20)), "x")),
            ("many headers", mail(&"X: y\r\n".repeat(500_000), "x")),
            ("references", mail(&format!("References: {}", "<a@b> ".repeat(20_000)), "x")),
            ("addresses", mail(&format!("To: {}", "\"a\" <a@b>, ((".repeat(10_000)), "x")),
            ("parameters", mail(&format!("Content-Type: text/plain{}", ";a*0*=utf-8''%41".repeat(8_000)), "x")),
            ("words", mail(&format!("Subject: {}", "=?utf-8?B?".repeat(12_000)), "x")),
            ("dates", mail(&format!("Date: {}", "1 ".repeat(60_000)), "x")),
            (
                "boundaries",
                mail(
                    "Content-Type: multipart/mixed; boundary=b",
                    &"--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n".repeat(200_000),
                ),
            ),
            ("messages", mail("Content-Type: message/rfc822", &"Content-Type: message/rfc822\r\n\r\n".repeat(200_000))),
            (
                "parts",
                mail(
                    "Content-Type: multipart/mixed; boundary=b",
                    &"--b\r\nContent-Type: a/b\r\n\r\nx\r\n".repeat(200_000),
                ),
            ),
            ("html", mail("Content-Type: text/html", &"<div><b>".repeat(1_000_000))),
            ("large", mail("Content-Type: application/x", &"x".repeat(26 << 20))),
            ("encoded", mail("Content-Transfer-Encoding: quoted-printable", &"=".repeat(5 << 20))),
        ];
        for (name, raw) in cases {
            let begin = Instant::now();
            let parsed = parse(&raw).unwrap_or_else(|| panic!("{name}"));
            assert!(parsed.attachments.len() <= MAX_ATTACHMENTS && parsed.references.len() <= MAX_REFERENCES, "{name}");
            assert!(parsed.text.len() <= MAX_TEXT_BYTES, "{name}");
            assert!(begin.elapsed() < Duration::from_secs(5), "{name}: {:?}", begin.elapsed());
        }
        assert_eq!(parse(&vec![b'a'; MAX_MAIL_BYTES + 1]), None);
    }

    proptest! {
        #[test]
        fn pieces_of_mails_in_any_order_are_read(pieces in proptest::collection::vec(prop_oneof![
            Just("From: a@b.c\r\n"), Just("Subject: =?utf-8?Q?=C3"), Just("?="), Just("\r\n"), Just("\n\n"), Just("--b"), Just("--"),
            Just("Content-Type: multipart/alternative; boundary=b\r\n"), Just("Content-Type: text/html; charset=utf-16\r\n"),
            Just("Content-Type: multipart/report; boundary=\"b"), Just("Content-Type: message/delivery-status\r\n"), Just("\""),
            Just("Content-Transfer-Encoding: base64\r\n"), Just("Content-Transfer-Encoding: quoted-printable\r\n"), Just("=4"), Just("QUJD"),
            Just("<a href='"), Just("<p "), Just(">"), Just("</"), Just("é\u{1f600}"), Just("Action: failed"), Just("<!--"), Just("\t "), Just("charset=utf-7;"),
            Just("Date: Mon, 99 Feb 0000 99:99:99 +9999\r\n"), Just("filename*1*=''%"), Just("("), Just("\\"), Just("\0"), Just("message-id: <"), Just(";"),
        ], 0..60)) {
            let text = pieces.concat();
            let _ = read(text.as_bytes());
            let mut begun = b"From: a@b.c\n".to_vec();
            begun.extend(text.bytes());
            prop_assert!(read(&begun).is_some());
            let clean = sanitised(&text);
            prop_assert_eq!(&sanitised(&clean), &clean);
        }

        #[test]
        fn bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = read(&bytes);
            let _ = to_text(&bytes, Some("utf-7"));
            let mut mail = b"From: a\xff\nContent-Type: ".to_vec();
            mail.extend(bytes);
            let _ = read(&mail);
        }
    }
}
