//! Undoes what mails are wrapped in for transfer: base64, quoted-printable, and lines that flow. What is wrong stays as it is.

use std::borrow::Cow;

/// Undoes the transfer encoding, as far as it can be.
pub(crate) fn decoded<'a>(body: &'a [u8], encoding: &str) -> Cow<'a, [u8]> {
    match encoding {
        "base64" => Cow::Owned(base64(body)),
        "quoted-printable" => Cow::Owned(quoted_printable(body)),
        _ => Cow::Borrowed(body),
    }
}

/// Our own, because each padding ends a unit here, after which another one may begin: some programs encode by lines, or append.
/// Other bytes are skipped (RFC 2045, 6.8).
pub(crate) fn base64(bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(bytes.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in bytes {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                end_unit(&mut whole, bits, count);
                (bits, count) = (0, 0);
                continue;
            }
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 1;
        if count == 4 {
            whole.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, count) = (0, 0);
        }
    }
    end_unit(&mut whole, bits, count);
    whole
}

/// Writes the bytes of a unit of fewer than four characters.
fn end_unit(whole: &mut Vec<u8>, bits: u32, count: u32) {
    match count {
        2 => whole.push((bits >> 4) as u8),
        3 => whole.extend_from_slice(&((bits >> 2) as u16).to_be_bytes()),
        _ => {}
    }
}

/// Our own, because one wrong escape must not leave the whole text undecoded: its `=` stays (RFC 2045, 6.7).
fn quoted_printable(bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'=' {
            whole.push(byte);
        } else if let Some(escaped) = hex(after) {
            whole.push(escaped);
            rest = &after[2..];
        } else {
            // A line that goes on. Spaces may have been added on the way; longer runs than a line are not such.
            let spaces =
                after.iter().take(MAX_LINE_BYTES).take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
            match after.get(spaces) {
                None => rest = &[],
                Some(b'\n') => rest = &after[spaces + 1..],
                Some(_) => whole.push(byte),
            }
        }
    }
    whole
}

/// Longest line of quoted-printable (RFC 2045, 6.7).
const MAX_LINE_BYTES: usize = 76;

/// The byte of two hexadecimal digits at the begin.
pub(crate) fn hex(bytes: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    u8::try_from(digit(0)? * 16 + digit(1)?).ok()
}

/// The text of an encoded word in the encoding `Q` (RFC 2047, 4.2).
pub(crate) fn q_word(text: &str) -> Vec<u8> {
    quoted_printable(text.replace('_', " ").as_bytes())
}

/// Joins lines that flow into one another (RFC 3676, 4).
pub(crate) fn unflowed(text: &str, deletes_space: bool) -> String {
    let mut whole = String::with_capacity(text.len());
    // How deep the line is quoted that goes on in the next one.
    let mut flowing = None;
    for (number, line) in text.split('\n').enumerate() {
        let content = line.trim_start_matches('>');
        let quotes = &line[..line.len() - content.len()];
        let content = content.strip_prefix(' ').unwrap_or(content);
        let is_signature = content == "-- ";
        if is_signature || flowing != Some(quotes.len()) {
            let gap = if quotes.is_empty() || content.is_empty() { "" } else { " " };
            whole.extend([if number > 0 { "\n" } else { "" }, quotes, gap]);
        }
        let flows = content.ends_with(' ') && !is_signature;
        whole.push_str(content.strip_suffix(' ').filter(|_| flows && deletes_space).unwrap_or(content));
        flowing = flows.then_some(quotes.len());
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_by_units() {
        for (encoded, expected) in [
            ("aGFsbG8=", &b"hallo"[..]),
            ("aGFs\r\nbG8", b"hallo"),
            ("aGFsbG8=\r\nd2VsdA==\r\nIQ==", b"hallowelt!"),
            ("aGF*!@#sbG8=", b"hallo"),
            ("QUJDR", b"ABC"),
            ("====", b""),
            ("+/8=", b"\xfb\xff"),
        ] {
            assert_eq!(base64(encoded.as_bytes()), expected, "{encoded}");
        }
    }

    #[test]
    fn a_wrong_escape_stays_and_the_rest_is_read() {
        for (encoded, expected) in [
            ("Gr=C3=BC=c3=9Fe a=b,b =E2=82=AC", "Grüße a=b,b €"),
            ("one=\r\n two= \t\r\n.=", "one two."),
            ("a=\n=3D=4", "a==4"),
            ("x==3D", "x=="),
            ("=zz=20=", "=zz "),
        ] {
            assert_eq!(String::from_utf8_lossy(&quoted_printable(encoded.as_bytes())), expected, "{encoded}");
        }
    }

    #[test]
    fn flowing_lines_become_one() {
        for (text, deletes_space, expected) in [
            ("one \ntwo \nthree\nfour", false, "one two three\nfour"),
            ("日 \n本", true, "日本"),
            (">> a \n>> b\n> c \nd", false, ">> a b\n> c \nd"),
            (" >not quoted\n From here", false, ">not quoted\nFrom here"),
            ("text \n-- \nAnn", false, "text \n-- \nAnn"),
            (">\n> x\n", false, ">\n> x\n"),
            ("", true, ""),
        ] {
            assert_eq!(unflowed(text, deletes_space), expected, "{text:?}");
        }
    }
}
