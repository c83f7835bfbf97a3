//! Decodes a body to text.
//!
//! The order is that of browsers: byte order mark, `Content-Type` header, the page's own declaration, then UTF-8 if it is
//! valid, then windows-1252. Two differences, because servers are often misconfigured: valid UTF-8 beats a declared
//! windows-1252 (or Latin-1), and if the header's charset does not fit the bytes but the page's does, the page's is used.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use super::content_type::Kind;

/// How many bytes are searched for the page's own declaration.
const PRESCAN_BYTES: usize = 4096;

pub(super) fn decode<'a>(body: &'a [u8], content_type: Option<&str>, kind: Kind) -> Cow<'a, str> {
    if let Some((encoding, mark_length)) = Encoding::for_bom(body) {
        return encoding.decode_without_bom_handling(&body[mark_length..]).0;
    }
    let body = without_broken_end(body);
    let header = content_type.and_then(header_charset);
    let declared = match kind {
        Kind::Html | Kind::Xml => declared_charset(body),
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
    charset_label(content_type.as_bytes()).and_then(Encoding::for_label)
}

/// The charset in the page's `<meta>` or XML declaration. A declared UTF-16 counts as UTF-8: the declaration could be read
/// as ASCII.
fn declared_charset(body: &[u8]) -> Option<&'static Encoding> {
    let head = &body[..body.len().min(PRESCAN_BYTES)];
    let label = if head.trim_ascii_start().starts_with(b"<?xml") {
        label_after(head, b"encoding").or_else(|| charset_label(head))
    } else {
        charset_label(head)
    };
    let encoding = Encoding::for_label(label?)?;
    Some(encoding.output_encoding())
}

fn charset_label(text: &[u8]) -> Option<&[u8]> {
    label_after(text, b"charset")
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
