//! Text of received mails: by the charset that its label names, and by its bytes where they contradict the label.

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GBK, ISO_2022_JP, SHIFT_JIS, UTF_8, WINDOWS_874, WINDOWS_1252};
use mail_parser::decoders::charsets::DecoderFnc;
use mail_parser::decoders::charsets::map::charset_decoder;

const ESCAPE: u8 = 0x1b;
const SHIFT_OUT: u8 = 0x0e;
const SHIFT_IN: u8 = 0x0f;

enum Charset {
    Plain(&'static Encoding),
    /// Seven bits, with shift characters around what is not ASCII (RFC 1557, RFC 1922).
    Shifted(&'static Encoding),
    /// Seven bits, with tildes (RFC 1843).
    Hz,
    /// Not in the web's list of charsets, which `encoding_rs` implements.
    Other(DecoderFnc),
}

/// The text, whatever the bytes are. The label is not believed if another charset is certain: many programs write `us-ascii`
/// or nothing at all.
pub(crate) fn text(bytes: &[u8], label: Option<&str>) -> String {
    let named = label.and_then(Charset::named);
    if let Some((marked, length)) = Encoding::for_bom(bytes) {
        return marked.decode_without_bom_handling(&bytes[length..]).0.into_owned();
    }
    let is_latin = matches!(&named, Some(Charset::Plain(plain)) if *plain == WINDOWS_1252);
    let is_utf8 = matches!(&named, Some(Charset::Plain(plain)) if *plain == UTF_8);
    match named {
        Some(charset) if !is_latin && !is_utf8 => charset.decode(bytes),
        _ => match (Charset::of_escapes(bytes), std::str::from_utf8(bytes)) {
            (Some(charset), _) => charset.decode(bytes),
            (None, Ok(text)) => text.to_owned(),
            (None, Err(_)) => {
                let text = String::from_utf8_lossy(bytes);
                let (wrong, right) =
                    text.chars().filter(|letter| !letter.is_ascii()).fold((0, 0), |(wrong, right), letter| {
                        if letter == char::REPLACEMENT_CHARACTER { (wrong + 1, right) } else { (wrong, right + 1) }
                    });
                // One wrong byte in a long text does not make it another charset.
                if is_latin || wrong >= right { Charset::Plain(WINDOWS_1252).decode(bytes) } else { text.into_owned() }
            }
        },
    }
}

impl Charset {
    fn named(label: &str) -> Option<Charset> {
        let label = label.trim_matches(|letter: char| letter.is_whitespace() || "\"'".contains(letter));
        let label = label.to_ascii_lowercase().replace('_', "-");
        Some(match label.as_str() {
            "cp932" | "ms932" | "cp943" | "cp943c" => Charset::Plain(SHIFT_JIS),
            "cp949" | "ms949" | "uhc" | "euckr" => Charset::Plain(EUC_KR),
            "cp950" | "ms950" | "big5-eten" => Charset::Plain(BIG5),
            "cp936" | "ms936" | "euc-cn" | "euccn" | "gb2312-80" => Charset::Plain(GBK),
            "cp874" | "ms874" => Charset::Plain(WINDOWS_874),
            "cp51932" | "eucjp" | "eucjp-ms" => Charset::Plain(EUC_JP),
            "cp50220" | "cp50221" | "cp50222" | "iso-2022-jp-1" | "iso-2022-jp-2" | "iso-2022-jp-3"
            | "iso-2022-jp-2004" | "iso-2022-jp-ext" | "iso-2022-jp-ms" => Charset::Plain(ISO_2022_JP),
            "iso-2022-kr" | "csiso2022kr" | "cp50225" => Charset::Shifted(EUC_KR),
            "iso-2022-cn" | "iso-2022-cn-ext" | "cp50227" => Charset::Shifted(GBK),
            "hz" | "hz-gb-2312" | "cp52936" => Charset::Hz,
            _ => match Encoding::for_label_no_replacement(label.as_bytes())
                .or_else(|| Encoding::for_label_no_replacement(label.replace('-', "_").as_bytes()))
            {
                Some(plain) => Charset::Plain(plain),
                None => Charset::Other(charset_decoder(label.as_bytes())?),
            },
        })
    }

    /// The charset whose escape sequences the text has. No other text has them.
    fn of_escapes(bytes: &[u8]) -> Option<Charset> {
        bytes.windows(4).find_map(|part| match part {
            [ESCAPE, b'$', b'B' | b'@', _] | [ESCAPE, b'(', b'J' | b'I', _] => Some(Charset::Plain(ISO_2022_JP)),
            [ESCAPE, b'$', b')', b'C'] => Some(Charset::Shifted(EUC_KR)),
            [ESCAPE, b'$', b')', b'A'] => Some(Charset::Shifted(GBK)),
            _ => None,
        })
    }

    fn decode(&self, bytes: &[u8]) -> String {
        match self {
            Charset::Plain(plain) if *plain == ISO_2022_JP => {
                plain.decode_without_bom_handling(&without_idle_escapes(bytes)).0.into_owned()
            }
            Charset::Plain(plain) => plain.decode_without_bom_handling(bytes).0.into_owned(),
            Charset::Shifted(plain) => plain.decode_without_bom_handling(&unshifted(bytes)).0.into_owned(),
            Charset::Hz => GBK.decode_without_bom_handling(&without_tildes(bytes)).0.into_owned(),
            Charset::Other(decode) => decode(bytes),
        }
    }
}

/// ISO-2022-JP without escape sequences that another one follows at once, as where words were joined. The decoder takes them for
/// an attack.
fn without_idle_escapes(bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        match rest {
            [ESCAPE, b'(' | b'$', _, ESCAPE, ..] => rest = &rest[3..],
            _ => {
                whole.push(byte);
                rest = after;
            }
        }
    }
    whole
}

/// Eight bits for seven with shift characters. A line begins in ASCII.
fn unshifted(bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(bytes.len());
    let mut is_shifted = false;
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            SHIFT_OUT => is_shifted = true,
            SHIFT_IN => is_shifted = false,
            ESCAPE if after.starts_with(b"$)") => rest = after.get(3..).unwrap_or_default(),
            b'!'..=b'~' if is_shifted => whole.push(byte | 0x80),
            byte => {
                is_shifted &= byte != b'\n';
                whole.push(byte);
            }
        }
    }
    whole
}

/// Eight bits for those of HZ: `~{` begins letters of two bytes, `~}` ends them, `~~` is a tilde.
fn without_tildes(bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(bytes.len());
    let mut is_wide = false;
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match (byte, after.first()) {
            (b'~', Some(b'{' | b'}' | b'~' | b'\n')) if !is_wide || after[0] == b'}' => {
                is_wide = after[0] == b'{';
                whole.extend((after[0] == b'~').then_some(b'~'));
                rest = &after[1..];
            }
            (b'!'..=b'~', _) if is_wide => whole.push(byte | 0x80),
            (byte, _) => {
                is_wide &= byte != b'\n';
                whole.push(byte);
            }
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_mail_still_uses_are_known() {
        for (label, bytes, expected) in [
            ("cp932", &b"\x93\xfa\x96\x7b"[..], "日本"),
            ("CP949", b"\xc7\xd1", "한"),
            ("cp950", b"\xa4\xa4", "中"),
            ("cp936", b"\xd6\xd0", "中"),
            ("cp874", b"\xa1", "ก"),
            ("iso-2022-kr", b"\x1b$)Cab \x0eGQ\x0f c\r\n\x0eGQ\r\nd", "ab 한 c\r\n한\r\nd"),
            ("iso-2022-cn", b"\x1b$)A\x0eVP\x0f!", "中!"),
            ("hz-gb-2312", b"a~~ ~{VP~} ~\nb", "a~ 中 b"),
            ("HZ", b"~{VP\nab~", "中\nab~"),
            ("iso-2022-jp-ms", b"\x1b$BF|\x1b(B\x1b$BK\\\x1b(B", "日本"),
            ("\"ISO_8859-15\"", b"\xa4", "€"),
            ("cp850", b"\x84", "ä"),
            ("utf-7", b"+AOQ-", "ä"),
            ("utf-16be", b"\x00a\x00b", "ab"),
        ] {
            assert_eq!(text(bytes, Some(label)), expected, "{label}");
        }
    }

    #[test]
    fn bytes_that_contradict_their_label_win() {
        for (label, bytes, expected) in [
            (Some("us-ascii"), "Grüße".as_bytes(), "Grüße"),
            (Some("iso-8859-1"), "Grüße".as_bytes(), "Grüße"),
            (Some("utf-8"), b"Gr\xfc\xdfe", "Grüße"),
            (None, b"Gr\xfc\xdfe", "Grüße"),
            (Some("klingon"), b"Gr\xfc\xdfe", "Grüße"),
            (None, b"\x1b$BF|\x1b(B", "日"),
            (Some("utf-8"), b"\x1b$BF|\x1b(B", "日"),
            (None, b"\x1b$)C\x0eGQ\x0f", "한"),
            (Some("us-ascii"), b"\xef\xbb\xbfa", "a"),
            (Some("utf-8"), b"\xff\xfea\0", "a"),
            // What is only broken stays in its charset, and Latin-1 is what it says.
            (Some("utf-8"), "äöü\u{fffd}".as_bytes(), "äöü\u{fffd}"),
            (Some("utf-8"), b"\xc3\xa4\xc3\xb6\xff", "äö\u{fffd}"),
            (Some("iso-8859-1"), b"\xc3\xa4\xc3\xb6\xff", "Ã¤Ã¶ÿ"),
            (None, b"\x1b[31mred", "\u{1b}[31mred"),
        ] {
            assert_eq!(text(bytes, label), expected, "{label:?} {bytes:?}");
        }
    }
}
