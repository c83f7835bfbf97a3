//! Building mails: text or HTML with a text version, attachments, threading, and delivery status notifications.
//!
//! All values come from callers. Every value that goes into a header first passes [`header_text`], [`file_name`],
//! [`message_id`] or an [`Address`], which leave no control character. The result is ASCII with lines of at most 998 bytes
//! (RFC 5322, 2.1.1), and the same draft always gives the same bytes.

use std::borrow::Cow;

use base::clock::Timestamp;
use base::digest::{sha256, sha256_parts};
use base::ids::AgentId;
use base::untrusted_text::visible;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mail_builder::MessageBuilder;
use mail_builder::headers::HeaderType;
use mail_builder::headers::address::Address as Mailbox;
use mail_builder::headers::content_type::ContentType;
use mail_builder::headers::date::Date;
use mail_builder::headers::message_id::MessageId;
use mail_builder::headers::raw::Raw;
use mail_builder::headers::text::Text;
use mail_builder::headers::url::URL;
use mail_builder::mime::{BodyPart, MimePart};

use crate::address::Address;
use crate::parse;

/// Maximum length of a subject and of a name, in characters; longer ones are cut.
const MAX_SUBJECT: usize = 500;
const MAX_NAME: usize = 100;
/// Maximum length of a file name, in characters.
const MAX_FILE_NAME: usize = 255;
/// Maximum number of ids in `References`: the first and the last ones, as RFC 5537, 3.4.4 has it.
const MAX_REFERENCES: usize = 20;
/// Maximum length of a message id and of an address in a header, in bytes. They cannot be folded.
const MAX_ID_BYTES: usize = 250;
const MAX_URL_BYTES: usize = 900;
/// The year 9999 ends here, in seconds. The date format has four digits.
const LAST_SECOND: i64 = 253_402_300_799;

/// One mail to one recipient.
pub struct Draft<'a> {
    pub from: &'a Address,
    pub from_name: Option<&'a str>,
    pub to: &'a Address,
    pub subject: &'a str,
    /// Text, or HTML if it begins with a tag and has a closing tag.
    pub body: &'a str,
    /// Without angle brackets, like the other ids.
    pub message_id: &'a str,
    pub in_reply_to: Option<&'a str>,
    /// Oldest first.
    pub references: &'a [String],
    pub attachments: &'a [Attached],
    /// An HTTPS address that accepts a POST: `List-Unsubscribe` and `List-Unsubscribe-Post` (RFC 8058).
    pub unsubscribe: Option<&'a str>,
    /// `Auto-Submitted: auto-generated` (RFC 3834), so that no responder answers.
    pub auto_submitted: bool,
    /// The service's name and the agent that sends: `X-<service>-Agent`, so that a reader can report it.
    pub agent: Option<(&'a str, AgentId)>,
    pub date: Timestamp,
}

/// An attachment, of a mail to send or of a received one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    pub filename: String,
    pub content_type: String,
    pub content: Vec<u8>,
}

/// The message, CRLF, 7-bit safe. A body that is HTML (begins with `<` and has a closing tag) becomes multipart/alternative
/// with a text version.
pub fn compose(draft: &Draft<'_>) -> Vec<u8> {
    let body = body_text(draft.body);
    let boundaries = Boundaries::of(draft.message_id, &body, draft.attachments);
    let content = if is_html(&body) {
        let text = parse::plain_text(&parse::sanitised(&body));
        let parts = vec![
            MimePart::new("text/plain", BodyPart::Text(body_text(&text).into())),
            MimePart::new("text/html", BodyPart::Text(body.into())),
        ];
        MimePart::new(boundaries.content_type("multipart/alternative", "alternative"), parts)
    } else {
        MimePart::new("text/plain", BodyPart::Text(body.into()))
    };
    let content = if draft.attachments.is_empty() {
        content
    } else {
        let mut parts = vec![content];
        parts.extend(draft.attachments.iter().map(attachment));
        MimePart::new(boundaries.content_type("multipart/mixed", "mixed"), parts)
    };
    let name = draft.from_name.map(|name| header_text(name, MAX_NAME)).filter(|name| !name.is_empty());
    let mut mail = MessageBuilder::new()
        .from(Mailbox::new_address(name.map(Cow::Owned), draft.from.as_str()))
        .to(Mailbox::new_address(None::<&str>, draft.to.as_str()))
        .subject(Text::new(header_text(draft.subject, MAX_SUBJECT)))
        .date(date(draft.date))
        .message_id(message_id(draft.message_id).map_or_else(|| own_id(draft), str::to_owned));
    if let Some(id) = draft.in_reply_to.and_then(message_id) {
        mail = mail.in_reply_to(id);
    }
    let mut references: Vec<&str> = draft.references.iter().filter_map(|id| message_id(id)).collect();
    if references.len() > MAX_REFERENCES {
        references.drain(1..=references.len() - MAX_REFERENCES);
    }
    if !references.is_empty() {
        mail = mail.references(MessageId::new_list(references.into_iter()));
    }
    if draft.auto_submitted {
        mail = mail.header("Auto-Submitted", Raw::new("auto-generated"));
    }
    if let Some((service, agent)) = draft.agent {
        mail = mail.header(format!("X-{service}-Agent"), Raw::new(agent.to_string()));
    }
    if let Some(url) = draft.unsubscribe.filter(|url| is_header_url(url)) {
        mail = mail
            .header("List-Unsubscribe", URL::new(url))
            .header("List-Unsubscribe-Post", Raw::new("List-Unsubscribe=One-Click"));
    }
    written(mail.body(content))
}

/// A delivery status notification (RFC 3464) to `to`: `recipient` was not deliverable. Envelope sender of it is empty.
/// Ids are without angle brackets.
pub fn bounce(
    to: &Address,
    recipient: &Address,
    original_message_id: &str,
    reason: &str,
    message_id: &str,
    reporting_domain: &str,
    date: Timestamp,
) -> Vec<u8> {
    let postmaster = format!("postmaster@{reporting_domain}");
    let (postmaster, reporter) = match Address::parse(&postmaster) {
        Ok(address) => (address.as_str().to_owned(), address.domain().to_owned()),
        Err(_) => (format!("postmaster@{}", to.domain()), to.domain().to_owned()),
    };
    let reason = header_text(reason, MAX_SUBJECT);
    let original = self::message_id(original_message_id);
    let text =
        format!("Your mail to {recipient} could not be delivered.\r\n\r\n{reason}\r\n", recipient = recipient.as_str());
    // The fields of the report are ASCII (RFC 3464, 2.1).
    let diagnostic: String =
        reason.chars().map(|letter| if letter.is_ascii() { letter } else { '?' }).take(200).collect();
    let status = format!(
        "Reporting-MTA: dns; {reporter}\r\n\r\nFinal-Recipient: rfc822; {recipient}\r\nAction: failed\r\nStatus: 5.1.1\r\n\
         Diagnostic-Code: smtp; 550 5.1.1 {diagnostic}\r\n",
        recipient = recipient.as_str()
    );
    let headers = original.map(|id| format!("Message-ID: <{id}>\r\n")).unwrap_or_default();
    let boundaries = Boundaries::of(message_id, &status, &[]);
    let mut parts = vec![
        MimePart::new("text/plain", BodyPart::Text(text.into())),
        MimePart::new("message/delivery-status", BodyPart::Text(status.into())).transfer_encoding("7bit"),
    ];
    if original.is_some() {
        parts.push(MimePart::new("text/rfc822-headers", BodyPart::Text(headers.into())).transfer_encoding("7bit"));
    }
    let report = boundaries.content_type("multipart/report", "report").attribute("report-type", "delivery-status");
    let mut mail = MessageBuilder::new()
        .from(Mailbox::new_address(Some("Mail Delivery System"), postmaster.as_str()))
        .to(Mailbox::new_address(None::<&str>, to.as_str()))
        .subject(Text::new("Undelivered mail returned to sender"))
        .date(self::date(date));
    let own = self::message_id(message_id).map_or_else(|| format!("{}@{reporter}", boundaries.0), str::to_owned);
    mail = mail.message_id(own);
    if let Some(id) = original {
        mail = mail.in_reply_to(id).references(id);
    }
    written(mail.header("Auto-Submitted", Raw::new("auto-replied")).body(MimePart::new(report, parts)))
}

/// Text for a header: one line without control, invisible or bidirectional characters, runs of white space as one space,
/// at most `max` characters. What a reader would decode as an encoded word (RFC 2047) is written apart.
pub fn header_text(text: &str, max: usize) -> String {
    let spaced = |letter: char| if letter.is_whitespace() { ' ' } else { letter };
    let spaced: String = text.chars().map(spaced).collect();
    let shown = visible(&spaced);
    let words: Vec<&str> = shown.split(' ').filter(|word| !word.is_empty()).collect();
    let line: String = words.join(" ").replace("=?", "= ?").chars().take(max).collect();
    line.trim_end().to_owned()
}

/// A file name without a path, hidden characters, or characters that shells and file systems give a meaning. Never empty.
pub fn file_name(name: &str) -> String {
    let safe = |letter: char| if "/\\:*?\"<>|".contains(letter) { '_' } else { letter };
    let name: String = header_text(name, 4 * MAX_FILE_NAME).chars().map(safe).collect();
    let name = name.trim_start_matches(['.', ' ']).trim_end_matches(['.', ' ']);
    let length = name.chars().count();
    if length > MAX_FILE_NAME {
        // The end has the extension, which says how the file is opened.
        let begin: String = name.chars().take(MAX_FILE_NAME - 20).collect();
        return begin.chars().chain(name.chars().skip(length - 20)).collect();
    }
    if name.is_empty() { "attachment".to_owned() } else { name.to_owned() }
}

/// `type/subtype` in lower case. What is not one, or would be read as a part with parts, is `application/octet-stream`.
pub fn content_type(text: &str) -> String {
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_token = |token: &str| {
        (1..=64).contains(&token.len())
            && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    match essence.split_once('/') {
        Some((kind, subtype)) if is_token(kind) && is_token(subtype) && !["multipart", "message"].contains(&kind) => {
            essence
        }
        _ => "application/octet-stream".to_owned(),
    }
}

/// A message id without its angle brackets, if it is one that fits in a header.
pub fn message_id(text: &str) -> Option<&str> {
    let id = text.trim();
    let id = id.strip_prefix('<').and_then(|id| id.strip_suffix('>')).unwrap_or(id);
    let good = |byte: u8| byte.is_ascii_graphic() && !b"<>".contains(&byte);
    ((1..=MAX_ID_BYTES).contains(&id.len()) && id.bytes().all(good)).then_some(id)
}

/// An id for a draft whose own one is not usable in a header.
fn own_id(draft: &Draft<'_>) -> String {
    let hash = sha256_parts(&[draft.message_id.as_bytes(), draft.to.as_str().as_bytes(), draft.body.as_bytes()]);
    format!("{}@{}", hex(&hash[..16]), draft.from.domain())
}

fn is_header_url(url: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"<>\"".contains(&byte);
    let scheme = url::Url::parse(url).is_ok_and(|url| ["https", "http"].contains(&url.scheme()));
    scheme && url.len() <= MAX_URL_BYTES && url.bytes().all(plain)
}

fn date(at: Timestamp) -> Date {
    Date::new(at.secs().clamp(0, LAST_SECOND))
}

/// A body with CRLF line ends and without control characters other than tabs.
fn body_text(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let mut lines = String::with_capacity(text.len() + text.len() / 40 + 2);
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => lines.push_str("\r\n"),
            '\t' => lines.push('\t'),
            letter if letter.is_control() => {}
            letter => lines.push(letter),
        }
    }
    lines
}

fn is_html(body: &str) -> bool {
    let mut begin = body.trim_start().bytes();
    let opens =
        begin.next() == Some(b'<') && begin.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'!');
    let closing = |rest: &str| rest.starts_with(|letter: char| letter.is_ascii_alphabetic()) && rest.contains('>');
    opens && body.split("</").nth(1).is_some_and(closing)
}

/// Always base64, so that the content arrives byte for byte.
fn attachment(file: &Attached) -> MimePart<'static> {
    let encoded = STANDARD.encode(&file.content);
    let mut lines = String::with_capacity(encoded.len() + encoded.len() / 38 + 2);
    for line in encoded.as_bytes().chunks(76) {
        lines.extend(line.iter().map(|&byte| char::from(byte)));
        lines.push_str("\r\n");
    }
    MimePart::new(content_type(&file.content_type), BodyPart::Binary(lines.into_bytes().into()))
        .attachment(file_name(&file.filename))
        .transfer_encoding("base64")
}

/// Boundaries that no content contains: made of a hash of all of it, so that no author of a part can know them.
struct Boundaries(String);

impl Boundaries {
    fn of(message_id: &str, body: &str, attachments: &[Attached]) -> Boundaries {
        let contents: Vec<[u8; 32]> = attachments.iter().map(|file| sha256(&file.content)).collect();
        let hash = sha256_parts(&[message_id.as_bytes(), body.as_bytes(), contents.as_flattened()]);
        Boundaries(hex(&hash[..12]))
    }

    /// Neither quoted-printable nor base64 has `=_`.
    fn content_type(&self, kind: &'static str, level: &str) -> ContentType<'static> {
        ContentType::new(kind).attribute("boundary", format!("=_{level}_{}", self.0))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn written(mail: MessageBuilder<'_>) -> Vec<u8> {
    let mut raw = Vec::new();
    mail.header("MIME-Version", HeaderType::Raw(Raw::new("1.0"))).serialize(&mut raw);
    if !raw.ends_with(b"\r\n") {
        raw.extend_from_slice(b"\r\n");
    }
    raw
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;
    use proptest::prelude::*;

    fn address(text: &str) -> Address {
        Address::parse(text).unwrap()
    }

    fn with_body(body: &str) -> Vec<u8> {
        compose(&Draft {
            from: &address("sender@agents.example"),
            from_name: None,
            to: &address("b@example.org"),
            subject: "Hello",
            body,
            message_id: "m.1@agents.example",
            in_reply_to: None,
            references: &[],
            attachments: &[],
            unsubscribe: None,
            auto_submitted: false,
            agent: None,
            date: Timestamp::from_secs(1_795_249_530),
        })
    }

    /// Headers of the first level: name and unfolded value.
    fn headers(raw: &[u8]) -> Vec<(String, String)> {
        let text = std::str::from_utf8(raw).unwrap();
        let block = text.split("\r\n\r\n").next().unwrap().replace("\r\n ", " ").replace("\r\n\t", "\t");
        let split = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        block.split("\r\n").map(|line| split(line).unwrap_or_else(|| panic!("{line:?}"))).collect()
    }

    fn assert_is_transportable(raw: &[u8]) {
        assert!(raw.is_ascii() && !raw.contains(&0));
        let text = std::str::from_utf8(raw).unwrap();
        assert!(text.split("\r\n").all(|line| line.len() <= 998 && !line.contains(['\r', '\n'])));
    }

    #[test]
    fn a_mail_comes_back_as_it_was_written() {
        let files = [
            Attached {
                filename: "Jahresbericht \"2026\" – Überblick.pdf".into(),
                content_type: "application/pdf".into(),
                content: (0..=255).cycle().take(100_000).collect(),
            },
            Attached {
                filename: "a.txt".into(),
                content_type: "TEXT/plain; x=y".into(),
                content: b"a\nb\r\n\0".to_vec(),
            },
            Attached {
                filename: "../../.x\r\nBcc: y.eml".into(),
                content_type: "message/rfc822".into(),
                content: vec![],
            },
        ];
        let references = vec!["r1@x".to_owned(), "bad id".to_owned(), "r2@x".to_owned()];
        let body = "Grüße,\n\n.\nFrom here = 1\t \n\u{1f600} end\nno line end";
        let (from, to) = (address("sender@bücher.example"), address("b@example.org"));
        let draft = Draft {
            from: &from,
            from_name: Some("Zoë \"Z\" Ünal, Inc."),
            to: &to,
            subject: "Über: 日本語 and a long tail that is folded somewhere because it does not fit in one line at all",
            body,
            message_id: "m.1@agents.example",
            in_reply_to: Some("<r2@x>"),
            references: &references,
            attachments: &files,
            unsubscribe: Some("https://api.example.com/v1/tools/email/unsubscribe/abc"),
            auto_submitted: true,
            agent: Some(("Agora", AgentId::from_bytes([7; 16]))),
            date: Timestamp::from_secs(1_795_249_530),
        };
        let raw = compose(&draft);
        assert_is_transportable(&raw);
        assert_eq!(raw, compose(&draft), "the same bytes each time");
        let parsed = parse(&raw).unwrap();
        assert_eq!(parsed.from.as_deref(), Some("sender@xn--bcher-kva.example"));
        assert_eq!(parsed.from_name.as_deref(), draft.from_name);
        assert_eq!(parsed.subject, draft.subject);
        assert_eq!(parsed.text, body);
        assert_eq!(parsed.html, None);
        assert_eq!(parsed.message_id.as_deref(), Some("m.1@agents.example"));
        assert_eq!(parsed.in_reply_to.as_deref(), Some("r2@x"));
        assert_eq!(parsed.references, ["r1@x", "r2@x"]);
        assert_eq!(parsed.date, Some(draft.date));
        assert!(parsed.is_automatic && parsed.report.is_none());
        let names: Vec<&str> = parsed.attachments.iter().map(|file| file.filename.as_str()).collect();
        assert_eq!(names, ["Jahresbericht _2026_ – Überblick.pdf", "a.txt", "_.._.x Bcc_ y.eml"]);
        let types: Vec<&str> = parsed.attachments.iter().map(|file| file.content_type.as_str()).collect();
        assert_eq!(types, ["application/pdf", "text/plain", "application/octet-stream"]);
        assert!(parsed.attachments.iter().zip(&files).all(|(read, sent)| read.content == sent.content));
        let headers = headers(&raw);
        let value = |name: &str| {
            let mut found = headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
            (found.next().unwrap_or_default(), found.next())
        };
        assert_eq!(value("Date"), ("Sat, 21 Nov 2026 08:25:30 +0000", None));
        assert_eq!(value("Message-ID"), ("<m.1@agents.example>", None));
        let unsubscribe = "<https://api.example.com/v1/tools/email/unsubscribe/abc>";
        assert_eq!(value("List-Unsubscribe"), (unsubscribe, None));
        assert_eq!(value("List-Unsubscribe-Post"), ("List-Unsubscribe=One-Click", None));
        assert_eq!(value("Auto-Submitted"), ("auto-generated", None));
        assert_eq!(value("MIME-Version"), ("1.0", None));
    }

    #[test]
    fn html_has_a_text_version() {
        let html = "<!doctype html><html><body><h1>Title &amp; more</h1><p>First<br>second <a href=\"https://x.example/?a=1&amp;b=2\">\
                    link</a></p><ul><li>one</li><li>two</li></ul></body></html>";
        let raw = with_body(html);
        assert_is_transportable(&raw);
        assert!(String::from_utf8_lossy(&raw).contains("multipart/alternative"));
        let parsed = parse(&raw).unwrap();
        let text = "Title & more\n\nFirst\nsecond link (https://x.example/?a=1&b=2)\n\n- one\n- two";
        assert_eq!(parsed.text, text);
        let clean = parsed.html.unwrap();
        assert!(clean.contains("<h1>Title &amp; more</h1>") && clean.contains("<li>two</li>"), "{clean}");
        for (body, expected) in [
            ("<3 you </b>", false),
            ("<p>x", false),
            (" \n<p>x</p>", true),
            ("a <b>x</b>", false),
            ("<a>b </ c", false),
        ] {
            assert_eq!(is_html(body), expected, "{body}");
        }
    }

    #[test]
    fn the_longest_bodies_are_transportable() {
        for body in
            ["a".repeat(100_000), "ä".repeat(100_000), format!("<p>{}</p>", "é b ".repeat(25_000)), " ".repeat(5_000)]
        {
            let raw = with_body(&body);
            assert_is_transportable(&raw);
            let parsed = parse(&raw).unwrap();
            if !body.starts_with('<') {
                assert_eq!(parsed.text, body.trim_end());
            }
        }
    }

    #[test]
    fn a_bounce_is_a_report() {
        let (to, recipient) = (address("a@agents.example"), address("nobody@b.example"));
        let at = Timestamp::from_secs(1_795_249_530);
        let raw = bounce(
            &to,
            &recipient,
            "<o.1@agents.example>",
            "no such\r\nBcc: user – here",
            "b1@x",
            "agents.example",
            at,
        );
        assert_is_transportable(&raw);
        let parsed = parse(&raw).unwrap();
        let report = parsed.report.unwrap();
        assert_eq!(report.recipient.as_deref(), Some("nobody@b.example"));
        assert_eq!((report.action.as_str(), report.status.as_deref()), ("failed", Some("5.1.1")));
        assert_eq!(report.original_message_id.as_deref(), Some("o.1@agents.example"));
        assert_eq!(parsed.from.as_deref(), Some("postmaster@agents.example"));
        assert!(parsed.is_automatic && parsed.attachments.is_empty());
        assert_eq!(parsed.text, "Your mail to nobody@b.example could not be delivered.\n\nno such Bcc: user – here");
        let raw = bounce(&to, &recipient, "not an id", "", "", "bad domain\r\n", at);
        assert_is_transportable(&raw);
        assert_eq!(parse(&raw).unwrap().from.as_deref(), Some("postmaster@agents.example"));
    }

    fn nasty() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            "\\PC{0,12}",
            ".{0,12}",
            "[ -~]{0,90}",
            Just("\r\nBcc: x@y.zz\r\n\r\n".to_owned()),
            Just("=?utf-8?Q?=0D=0ABcc:?=".to_owned()),
            Just("\u{202e}\u{2066}\0\u{7f}\u{85}\u{2028}\u{feff}".to_owned()),
            Just("\",;<>@()\\:".to_owned()),
            Just("ä".repeat(60)),
        ];
        proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_text_gives_exactly_the_headers_meant(
            subject in nasty(), name in nasty(), file in nasty(), kind in nasty(), id in nasty(), url in nasty(), body in nasty(),
        ) {
            let (from, to) = (address("sender@agents.example"), address("b@example.org"));
            let files = [Attached { filename: file.clone(), content_type: kind, content: body.clone().into_bytes() }];
            let references = [id.clone()];
            let link = format!("https://x.example/{url}");
            let draft = Draft {
                from: &from, from_name: Some(&name), to: &to, subject: &subject, body: &body, message_id: &id,
                in_reply_to: Some(&id), references: &references, attachments: &files, unsubscribe: Some(&link),
                auto_submitted: false, agent: None, date: Timestamp::from_secs(0),
            };
            let raw = compose(&draft);
            assert_is_transportable(&raw);
            let names: Vec<String> = headers(&raw).into_iter().map(|(name, _)| name).collect();
            let mut meant = vec!["From", "To", "Subject", "Date", "Message-ID"];
            if message_id(&id).is_some() {
                meant.extend(["In-Reply-To", "References"]);
            }
            if is_header_url(&link) {
                meant.extend(["List-Unsubscribe", "List-Unsubscribe-Post"]);
            }
            meant.extend(["MIME-Version", "Content-Type"]);
            prop_assert_eq!(names, meant);
            let parsed = parse(&raw).unwrap();
            prop_assert_eq!(parsed.subject, header_text(&subject, MAX_SUBJECT));
            prop_assert_eq!(parsed.from_name.unwrap_or_default(), header_text(&name, MAX_NAME));
            prop_assert_eq!(parsed.from.as_deref(), Some("sender@agents.example"));
            prop_assert_eq!(parsed.attachments.len(), 1);
            prop_assert_eq!(&parsed.attachments[0].filename, &file_name(&file));
            prop_assert_eq!(&parsed.attachments[0].content, body.as_bytes());
        }
    }
}
