//! The predefined CMaps of Chinese, Japanese and Korean fonts. Their codes are charsets, so no table of glyph numbers is
//! needed to read them.

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GB18030, GBK, SHIFT_JIS, UTF_16BE};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Charset {
    Utf8,
    Utf16,
    Utf32,
    /// This charset without its high bits.
    Seven(&'static Encoding),
    Other(&'static Encoding),
}

impl Charset {
    /// The charset of a predefined CMap by its name.
    pub(super) fn of(name: &[u8]) -> Option<Charset> {
        let name = std::str::from_utf8(name).ok()?;
        if name == "H" || name == "V" {
            return Some(Charset::Seven(EUC_JP));
        }
        let name = name.strip_suffix("-H").or_else(|| name.strip_suffix("-V"))?;
        match name {
            "78" | "Add" | "Ext" | "NWP" => return Some(Charset::Seven(EUC_JP)),
            "GB" | "GBT" => return Some(Charset::Seven(GBK)),
            "KSC" => return Some(Charset::Seven(EUC_KR)),
            _ => {}
        }
        if name.starts_with("Uni") {
            return match () {
                () if name.contains("UCS2") || name.contains("UTF16") => Some(Charset::Utf16),
                () if name.contains("UTF32") => Some(Charset::Utf32),
                () if name.contains("UTF8") => Some(Charset::Utf8),
                () => None,
            };
        }
        let charset = match () {
            () if name.contains("RKSJ") => SHIFT_JIS,
            () if name == "EUC" || name == "78-EUC" => EUC_JP,
            () if name == "GBK2K" => GB18030,
            () if name.starts_with("GB") && name.ends_with("EUC") => GBK,
            () if name == "B5pc" || name.ends_with("-B5") => BIG5,
            () if name.starts_with("KSC") && (name.ends_with("EUC") || name.contains("UHC")) => EUC_KR,
            () => return None,
        };
        Some(Charset::Other(charset))
    }

    /// Number of bytes of the first code.
    pub(super) fn length(self, bytes: &[u8]) -> usize {
        let first = bytes.first().copied().unwrap_or(0);
        match self {
            Charset::Utf8 => match first {
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf7 => 4,
                _ => 1,
            },
            Charset::Utf16 if (0xd8..=0xdb).contains(&first) => 4,
            Charset::Utf16 | Charset::Seven(_) => 2,
            Charset::Utf32 => 4,
            Charset::Other(charset) if charset == SHIFT_JIS => match first {
                0x81..=0x9f | 0xe0..=0xfc => 2,
                _ => 1,
            },
            Charset::Other(charset) if charset == EUC_JP => match first {
                0x8f => 3,
                0x8e | 0xa1..=0xfe => 2,
                _ => 1,
            },
            Charset::Other(charset) => match (first, bytes.get(1)) {
                (0x81..=0xfe, Some(b'0'..=b'9')) if charset == GB18030 => 4,
                (0x81..=0xfe, _) => 2,
                _ => 1,
            },
        }
    }

    /// The letters of one code.
    pub(super) fn letters(self, code: &[u8]) -> String {
        let decoded = match self {
            Charset::Utf8 => String::from_utf8_lossy(code),
            Charset::Utf32 => {
                let number = code.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
                return char::from_u32(number).map(String::from).unwrap_or_default();
            }
            Charset::Utf16 => UTF_16BE.decode_without_bom_handling(code).0,
            Charset::Seven(charset) => {
                let high: Vec<u8> = code.iter().map(|byte| byte | 0x80).collect();
                return charset.decode_without_bom_handling(&high).0.into_owned();
            }
            Charset::Other(charset) => charset.decode_without_bom_handling(code).0,
        };
        decoded.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cmaps_say_the_charset() {
        let cases: [(&str, &[u8], &str); 19] = [
            ("90ms-RKSJ-H", b"\x8a\x43A\xb6", "海Aｶ"),
            ("90pv-RKSJ-V", b"\x8d\x60", "港"),
            ("EUC-H", b"\xb9\xc1a\x8e\xb6", "港aｶ"),
            ("H", b"\x39\x41", "港"),
            ("Ext-V", b"\x39\x41", "港"),
            ("GB-H", b"\x38\x5b", "港"),
            ("KSC-H", b"\x47\x57", "항"),
            ("GBK-EUC-H", b"\xb8\xdbx", "港x"),
            ("GBKp-EUC-H", b"\xb8\xdb", "港"),
            ("GB-EUC-V", b"\xb8\xdb", "港"),
            ("GBK2K-H", b"\xb8\xdb\x81\x30\x81\x30z", "港\u{80}z"),
            ("ETen-B5-H", b"\xb4\xe4", "港"),
            ("ETenms-B5-V", b"\xb4\xe4 ", "港 "),
            ("KSCms-UHC-H", b"\xc7\xd7\x81\x41", "항갂"),
            ("KSC-EUC-H", b"\xc7\xd7", "항"),
            ("UniJIS-UTF16-H", b"\x6e\x2f\xd8\x3d\xde\x00", "港\u{1f600}"),
            ("UniGB-UCS2-H", b"\x6e\x2f\0a", "港a"),
            ("UniKS-UTF8-H", "항".as_bytes(), "항"),
            ("UniCNS-UTF32-V", b"\0\0\x6e\x2f", "港"),
        ];
        for (name, mut bytes, expected) in cases {
            let charset = Charset::of(name.as_bytes()).unwrap();
            let mut text = String::new();
            while !bytes.is_empty() {
                let (code, rest) = bytes.split_at(charset.length(bytes).min(bytes.len()));
                text.push_str(&charset.letters(code));
                bytes = rest;
            }
            assert_eq!(text, expected, "{name}");
        }
        assert_eq!(Charset::of(b"Identity-H"), None);
        assert_eq!(Charset::of(b"CNS-EUC-H"), None);
    }
}
