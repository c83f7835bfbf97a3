//! Decodes a body to text.
//!
//! The order is that of browsers: byte order mark, `Content-Type` header, the page's own declaration, then UTF-8 if it is
//! valid, then windows-1252. Three differences, because servers are often misconfigured: valid UTF-8 beats a declared
//! windows-1252 (or Latin-1), if the header's charset does not fit the bytes but the page's does, the page's is used, and
//! UTF-16 is known by its bytes.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

use super::content_type::Kind;

/// How many bytes are searched for the page's own declaration.
const PRESCAN_BYTES: usize = 4096;
/// How many bytes are inspected to recognise UTF-16.
const TWO_BYTE_HEAD: usize = 1024;

pub(super) fn decode<'a>(body: &'a [u8], content_type: Option<&str>, kind: Kind) -> Cow<'a, str> {
    if let Some(encoding) = two_byte(body, content_type) {
        return encoding.decode_with_bom_removal(whole_units(body, encoding)).0;
    }
    if let Some((encoding, mark_length)) = Encoding::for_bom(body) {
        return encoding.decode_without_bom_handling(&body[mark_length..]).0;
    }
    let body = without_broken_end(body);
    // A header's UTF-16 would be known by now.
    let header = content_type.and_then(header_charset).map(Encoding::output_encoding);
    let declared = match kind {
        Kind::Html => html_charset(body).or_else(|| xml_charset(body)),
        Kind::Xml => xml_charset(body).or_else(|| html_charset(body)),
        Kind::Json => Some(UTF_8),
        Kind::Text | Kind::Markdown | Kind::Pdf => None,
    };
    let valid_utf8 = std::str::from_utf8(body).ok();
    let latin_or_none = |encoding: Option<&Encoding>| encoding.is_none_or(|e| e == WINDOWS_1252);
    if let Some(text) = valid_utf8
        && latin_or_none(header.or(declared))
    {
        return Cow::Borrowed(text);
    }
    let candidates = [header, declared];
    let fitting = candidates
        .iter()
        .flatten()
        .find_map(|encoding| encoding.decode_without_bom_handling_and_without_replacement(body));
    fitting.unwrap_or_else(|| {
        let best = header.or(declared).unwrap_or(WINDOWS_1252);
        best.decode_without_bom_handling(body).0
    })
}

/// The body without a truncated last character, which would make the whole body invalid UTF-8.
fn without_broken_end(body: &[u8]) -> &[u8] {
    match std::str::from_utf8(body) {
        Err(error) if error.error_len().is_none() => &body[..error.valid_up_to()],
        _ => body,
    }
}

fn header_charset(content_type: &str) -> Option<&'static Encoding> {
    label_after(content_type.as_bytes(), b"charset").and_then(Encoding::for_label)
}

/// UTF-16, if the body is that: by its byte order mark, by its bytes, or by the header if the bytes allow it.
pub(super) fn two_byte(body: &[u8], content_type: Option<&str>) -> Option<&'static Encoding> {
    let is_two_byte = |encoding: &Encoding| encoding == UTF_16LE || encoding == UTF_16BE;
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return is_two_byte(encoding).then_some(encoding);
    }
    let head = &body[..body.len().min(TWO_BYTE_HEAD)];
    // Markup and most texts are full of ASCII, which leaves every other byte 0. Other data has such bytes too.
    if head.contains(&0)
        && let Some(encoding) = [UTF_16LE, UTF_16BE]
            .into_iter()
            .find(|encoding| units_of_text(head, encoding).is_some_and(|(all, ascii)| ascii > 0 && ascii >= all / 4))
    {
        return Some(encoding);
    }
    let is_ascii_based = !head.contains(&0) && std::str::from_utf8(without_broken_end(head)).is_ok();
    content_type
        .and_then(header_charset)
        .filter(|encoding| is_two_byte(encoding) && !is_ascii_based && units_of_text(head, encoding).is_some())
}

/// How many characters the bytes are in this form of UTF-16, and how many of them are ASCII. `None` if they are no text.
fn units_of_text(bytes: &[u8], encoding: &'static Encoding) -> Option<(usize, usize)> {
    let text = encoding.decode_without_bom_handling_and_without_replacement(whole_units(bytes, encoding))?;
    let is_text = |c: char| !c.is_control() || matches!(c, '\t' | '\n' | '\r' | '\u{c}');
    text.chars().all(is_text).then(|| (text.chars().count(), text.chars().filter(char::is_ascii).count()))
}

/// The body without a truncated last character in UTF-16.
fn whole_units<'a>(body: &'a [u8], encoding: &'static Encoding) -> &'a [u8] {
    let (units, _) = body.as_chunks::<2>();
    let first_half = units.last().is_some_and(|&[first, second]| {
        let high = if encoding == UTF_16BE { first } else { second };
        (0xd8..0xdc).contains(&high)
    });
    &body[..2 * (units.len() - usize::from(first_half))]
}

/// What a charset that could be read as ASCII stands for, as in browsers: UTF-16 cannot be true.
fn effective(encoding: &'static Encoding) -> &'static Encoding {
    if encoding == X_USER_DEFINED { WINDOWS_1252 } else { encoding.output_encoding() }
}

/// The charset in the page's `<meta>`, by the
/// [prescan of browsers](https://html.spec.whatwg.org/multipage/parsing.html#prescan-a-byte-stream-to-determine-its-encoding).
/// It knows comments and tags, but not scripts: what looks like a tag in one counts.
fn html_charset(body: &[u8]) -> Option<&'static Encoding> {
    let mut rest = &body[..body.len().min(PRESCAN_BYTES)];
    loop {
        rest = &rest[rest.iter().position(|&byte| byte == b'<')?..];
        let name = rest[1..].strip_prefix(b"/").unwrap_or(&rest[1..]);
        if rest.starts_with(b"<!--") {
            // The end may share its dashes with the start.
            rest = &rest[2 + position(&rest[2..], b"-->")? + 3..];
        } else if is_meta(rest) {
            let (encoding, after) = of_meta(&rest[5..])?;
            if encoding.is_some() {
                return encoding;
            }
            rest = after;
        } else if name.first().is_some_and(u8::is_ascii_alphabetic) {
            rest = &name[name.iter().position(|&byte| is_space(byte) || byte == b'>')?..];
            while let Some((_, after)) = attribute(rest)? {
                rest = after;
            }
            rest = &rest[rest.iter().position(|&byte| byte == b'>')?..];
        } else if matches!(rest.get(1), Some(b'!' | b'/' | b'?')) {
            rest = &rest[rest.iter().position(|&byte| byte == b'>')?..];
        } else {
            rest = &rest[1..];
        }
    }
}

fn is_meta(tag: &[u8]) -> bool {
    tag.get(1..5).is_some_and(|name| name.eq_ignore_ascii_case(b"meta"))
        && tag.get(5).is_some_and(|&byte| is_space(byte) || byte == b'/')
}

/// The charset of a `<meta>` from its attributes, and what follows them. `None` at the end of the bytes.
fn of_meta(attributes: &[u8]) -> Option<(Option<&'static Encoding>, &[u8])> {
    let mut rest = attributes;
    let mut names: Vec<Vec<u8>> = Vec::new();
    let (mut is_pragma, mut needs_pragma) = (false, false);
    // The inner value is `None` for an unknown charset.
    let mut charset: Option<Option<&'static Encoding>> = None;
    while let Some(((name, value), after)) = attribute(rest)? {
        rest = after;
        if names.contains(&name) {
            continue;
        }
        match name.as_slice() {
            b"http-equiv" => is_pragma |= value == b"content-type",
            b"content" if charset.is_none() => {
                if let Some(encoding) = label_in_content(&value).and_then(Encoding::for_label) {
                    (charset, needs_pragma) = (Some(Some(encoding)), true);
                }
            }
            b"charset" => (charset, needs_pragma) = (Some(Encoding::for_label(&value)), false),
            _ => {}
        }
        names.push(name);
    }
    let encoding = charset.flatten().filter(|_| is_pragma || !needs_pragma);
    Some((encoding.map(effective), rest))
}

type Attribute = (Vec<u8>, Vec<u8>);

/// The next attribute of a tag in lower case, and what follows it. The inner value is `None` at the end of the tag, the outer
/// one at the end of the bytes.
fn attribute(bytes: &[u8]) -> Option<Option<(Attribute, &[u8])>> {
    let rest = &bytes[bytes.iter().position(|&byte| !is_space(byte) && byte != b'/')?..];
    if rest[0] == b'>' {
        return Some(None);
    }
    // A `=` at the start belongs to the name.
    let ends = |byte: u8| is_space(byte) || matches!(byte, b'=' | b'/' | b'>');
    let length = 1 + rest[1..].iter().position(|&byte| ends(byte))?;
    let (name, rest) = rest.split_at(length);
    let name = name.to_ascii_lowercase();
    let after_space = after_space(rest)?;
    let Some(value) = after_space.strip_prefix(b"=") else {
        return Some(Some(((name, Vec::new()), after_space)));
    };
    let value = self::after_space(value)?;
    let (value, rest) = match value[0] {
        quote @ (b'"' | b'\'') => {
            let length = value[1..].iter().position(|&byte| byte == quote)?;
            (&value[1..=length], &value[length + 2..])
        }
        _ => value.split_at(value.iter().position(|&byte| is_space(byte) || byte == b'>')?),
    };
    Some(Some(((name, value.to_ascii_lowercase()), rest)))
}

/// The charset in the `content` of a `<meta>`.
fn label_in_content(content: &[u8]) -> Option<&[u8]> {
    let mut rest = content;
    loop {
        rest = &rest[position(rest, b"charset")? + 7..];
        let Some(value) = rest.trim_ascii_start().strip_prefix(b"=") else { continue };
        let value = value.trim_ascii_start();
        return match value.first()? {
            quote @ (b'"' | b'\'') => value[1..].iter().position(|byte| byte == quote).map(|length| &value[1..=length]),
            _ => value.split(|&byte| is_space(byte) || byte == b';').next(),
        };
    }
}

/// The charset in the XML declaration.
fn xml_charset(body: &[u8]) -> Option<&'static Encoding> {
    let head = body[..body.len().min(PRESCAN_BYTES)].trim_ascii_start();
    let declaration = head.strip_prefix(b"<?xml")?;
    let declaration = &declaration[..declaration.iter().position(|&byte| byte == b'>')?];
    label_after(declaration, b"encoding").and_then(Encoding::for_label).map(effective)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

/// The bytes after white space; `None` if there are no more.
fn after_space(bytes: &[u8]) -> Option<&[u8]> {
    bytes.iter().position(|&byte| !is_space(byte)).map(|at| &bytes[at..])
}

fn position(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|found| found == word)
}

/// The value after the first `key` that is followed by `=`, without quotes.
fn label_after<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let mut rest = text;
    loop {
        let at = rest.windows(key.len()).position(|word| word.eq_ignore_ascii_case(key))?;
        rest = &rest[at + key.len()..];
        let Some(value) = rest.trim_ascii_start().strip_prefix(b"=") else {
            continue;
        };
        let value = value.trim_ascii_start();
        let value = value.strip_prefix(b"\"").or(value.strip_prefix(b"'")).unwrap_or(value);
        let is_label = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_:.".contains(byte);
        let length = value.iter().position(|byte| !is_label(byte)).unwrap_or(value.len());
        return Some(&value[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use encoding_rs::{SHIFT_JIS, WINDOWS_1251};

    fn html(body: &[u8], content_type: &str) -> String {
        decode(body, Some(content_type), Kind::Html).into_owned()
    }

    fn in_1251(text: &str) -> Vec<u8> {
        WINDOWS_1251.encode(text).0.into_owned()
    }

    #[test]
    fn the_header_names_the_charset() {
        let body = in_1251("Привет");
        assert_eq!(html(&body, "text/html; charset=windows-1251"), "Привет");
        assert_eq!(html(&body, "text/html; Charset = \"CP1251\""), "Привет");
        let body = SHIFT_JIS.encode("日本語").0;
        assert_eq!(html(&body, "text/html;charset=Shift_JIS"), "日本語");
    }

    #[test]
    fn the_page_names_the_charset() {
        for head in [
            "<meta charset=windows-1251>",
            "<META CHARSET='windows-1251'>",
            "<meta http-equiv=Content-Type content=\"text/html; charset=windows-1251\">",
            "<?xml version=\"1.0\" encoding=\"windows-1251\"?>",
        ] {
            let body = in_1251(&format!("{head}Привет"));
            assert_eq!(html(&body, "text/html"), format!("{head}Привет"));
        }
    }

    #[test]
    fn only_a_declaration_names_the_charset() {
        let named = |head: &str| html_charset(head.as_bytes()).map(Encoding::name);
        for head in [
            "<script>var a = {charset: 'x', b: 'charset=windows-1251'}</script>",
            "<script charset=windows-1251 src=a.js></script><link charset=windows-1251>",
            "<meta name=description content='Pages with charset=windows-1251'>",
            "<meta content='text/html; charset=windows-1251'>",
            "<meta http-equiv=refresh content='0; charset=windows-1251'>",
            "<!-- <meta charset=windows-1251> -->",
            "<!DOCTYPE a <meta charset=windows-1251 >",
            "</ <meta charset=windows-1251>",
            "<a title='<meta charset=windows-1251>'>",
            "<p <meta charset=windows-1251>",
            "<metadata charset=windows-1251>",
            "<meta charset=unheard-of>",
            "<meta charset=unheard-of http-equiv=content-type content='charset=windows-1251'>",
            "<meta data-charset=windows-1251>",
            "<meta charset=x charset=windows-1251>",
            "<meta =charset=windows-1251>",
            "<meta http-equiv=content-type content='charset=\"windows-1251'>",
            "<meta charset=windows-1251",
            "<meta charset='windows-1251",
            "<!-- no end <meta charset=windows-1251>",
            "<meta charset",
            "<meta charset =",
            "<",
            "",
        ] {
            assert_eq!(named(head), None, "{head}");
        }
        for head in [
            "<!--><meta charset=windows-1251>",
            "<!-- - -- > --><meta charset=windows-1251>",
            "<meta/charset=windows-1251>",
            "<meta charset = ' windows-1251 ' />",
            "<meta\ncontent='a charset b; CharSet = windows-1251;' HTTP-EQUIV='Content-Type'>",
            "<meta http-equiv=content-type content='text/html; charset=\"windows-1251\"'>",
            "<meta content='charset=utf-8' charset=windows-1251>",
            "<meta name=a content=b><META charset=cp1251>",
            "<meta charset=unheard-of><meta charset=windows-1251>",
            "<a title='<!--'><meta charset=windows-1251>",
            "a < b <5 <> <? x='<meta charset=utf-8 > <script>document.write(\"<meta charset=windows-1251>\")</script>",
        ] {
            assert_eq!(named(head), Some("windows-1251"), "{head}");
        }
        assert_eq!(named("<meta charset=utf-16le>"), Some("UTF-8"));
        assert_eq!(named("<meta charset=x-user-defined>"), Some("windows-1252"));
        let body = in_1251("<meta name=description content='charset=koi8-r'><meta charset=windows-1251>Привет");
        assert!(html(&body, "text/html").ends_with("Привет"));
        // In HTML, the XML declaration counts last.
        let body = in_1251("<?xml version='1.0' encoding='koi8-r'?><meta charset=windows-1251>Привет");
        assert!(html(&body, "text/html").ends_with("Привет"));
        assert!(!decode(&body, None, Kind::Xml).ends_with("Привет"));
    }

    fn in_utf_16(text: &str, of: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(of).collect()
    }

    #[test]
    fn utf_16_without_a_mark() {
        let text = "<!DOCTYPE html><html><meta charset=utf-16><p>Привет, 日本\u{3000}語 😀 Ā";
        for of in [u16::to_le_bytes, u16::to_be_bytes] {
            let body = in_utf_16(text, of);
            assert_eq!(html(&body, "text/html"), text);
            assert_eq!(html(&body, "text/html; charset=utf-8"), text);
            // Cut within a unit, and within a pair.
            assert_eq!(html(&body[..body.len() - 1], "text/html"), text.trim_end_matches('Ā'));
            let shorter = text.trim_end_matches(" Ā");
            assert_eq!(
                html(&in_utf_16(shorter, of)[..2 * shorter.encode_utf16().count() - 2], "text/html"),
                shorter.trim_end_matches('😀')
            );
        }
        // Without ASCII only the header tells, and only if the bytes allow it.
        let body = in_utf_16("日本語の文章です。日本語の文章です。", u16::to_le_bytes);
        assert_eq!(html(&body, "text/plain; charset=utf-16"), "日本語の文章です。日本語の文章です。");
        assert_eq!(html(b"plain text", "text/html; charset=utf-16"), "plain text");
        for body in [
            &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..],
            b"\0\0\0\x18ftypmp42",
            b"\x01\0\x02\0\x03\0a\0b\0",
            b"a\0\0\0b\0\0\0",
            b"a\0\xd8\xd8b\0",
            b"\0",
            b"a\0b",
        ] {
            assert_eq!(two_byte(&[body, b"\0\0\0\0"].concat(), Some("text/html; charset=utf-16")), None, "{body:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_beats_everything() {
        let body = b"\xff\xfeh\0i\0";
        assert_eq!(html(body, "text/html; charset=utf-8"), "hi");
        let body = "\u{feff}é".as_bytes();
        assert_eq!(html(body, "text/html; charset=iso-8859-1"), "é");
    }

    #[test]
    fn a_header_that_does_not_fit_the_bytes_is_ignored() {
        let body = in_1251("<meta charset=windows-1251>Привет");
        assert!(html(&body, "text/html; charset=utf-8").ends_with("Привет"));
        let body = "<meta charset=utf-8>naïve".as_bytes();
        assert!(html(body, "text/html; charset=iso-8859-1").ends_with("naïve"));
    }

    #[test]
    fn nothing_declared() {
        assert_eq!(html("naïve".as_bytes(), "text/html"), "naïve");
        assert_eq!(html(b"na\xefve", "text/html"), "naïve");
        assert_eq!(html(b"na\xefve", "text/html; charset=nonsense"), "naïve");
        assert_eq!(decode(b"{\"a\": \"\xe9\"}", None, Kind::Json), "{\"a\": \"\u{fffd}\"}");
    }

    #[test]
    fn a_character_cut_in_two_is_dropped() {
        let body = "naïve é".as_bytes();
        assert_eq!(html(&body[..body.len() - 1], "text/html; charset=utf-8"), "naïve ");
        assert_eq!(html(&body[..body.len() - 1], "text/html"), "naïve ");
    }

    #[test]
    fn one_bad_byte_does_not_change_the_charset() {
        assert_eq!(html(b"na\xc3\xafve \xff!", "text/html; charset=utf-8"), "naïve \u{fffd}!");
    }
}
