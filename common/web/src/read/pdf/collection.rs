//! Adobe's character collections: the letters of glyph numbers. `assets/collections/NOTICE.md` describes the files.

use std::sync::LazyLock;

/// Unpacked size of a file.
const MAX_FILE: usize = 128 * 1024;

/// The letters of the glyph numbers of one collection. It is unpacked when it is first used.
pub(super) struct Collection {
    units: Vec<u16>,
    long: Vec<String>,
}

static JAPAN: LazyLock<Collection> =
    LazyLock::new(|| Collection::unpacked(include_bytes!("../../../assets/collections/japan1.z")));
static CHINA: LazyLock<Collection> =
    LazyLock::new(|| Collection::unpacked(include_bytes!("../../../assets/collections/gb1.z")));
static TAIWAN: LazyLock<Collection> =
    LazyLock::new(|| Collection::unpacked(include_bytes!("../../../assets/collections/cns1.z")));
static KOREA: LazyLock<Collection> =
    LazyLock::new(|| Collection::unpacked(include_bytes!("../../../assets/collections/korea1.z")));

impl Collection {
    /// The collection of this ordering, the middle part of its name.
    pub(super) fn of(ordering: &[u8]) -> Option<&'static Collection> {
        match ordering {
            b"Japan1" => Some(&JAPAN),
            b"GB1" => Some(&CHINA),
            b"CNS1" => Some(&TAIWAN),
            b"Korea1" => Some(&KOREA),
            _ => None,
        }
    }

    fn unpacked(file: &[u8]) -> Collection {
        let file = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(file, MAX_FILE).unwrap_or_default();
        let (length, rest) = file.split_at_checked(2).unwrap_or_default();
        let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        let (high, rest) = rest.split_at_checked(length).unwrap_or_default();
        let (low, long) = rest.split_at_checked(length).unwrap_or_default();
        let mut last = 0_u16;
        let units = high.iter().zip(low).map(|(high, low)| {
            last = last.wrapping_add(u16::from_be_bytes([*high, *low]));
            last
        });
        let units = units.collect();
        Collection { units, long: String::from_utf8_lossy(long).lines().map(str::to_owned).collect() }
    }

    pub(super) fn letters(&self, glyph: u32) -> Option<String> {
        let unit = *self.units.get(glyph as usize)?;
        match unit {
            0 => None,
            0xe000..=0xf8ff => self.long.get(usize::from(unit - 0xe000)).cloned(),
            unit => char::from_u32(u32::from(unit)).map(String::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glyph_numbers_are_letters() {
        let cases: [(&str, u32, &str); 9] = [
            ("Japan1", 34, "A"),
            ("Japan1", 2003, "港"),
            ("Japan1", 23_059, "㋿"),
            ("GB1", 1750, "港"),
            ("GB1", 22_353, "€"),
            ("CNS1", 3237, "港"),
            ("Korea1", 7680, "港"),
            ("Korea1", 34, "A"),
            ("CNS1", 14_002, "\u{2008a}"),
        ];
        for (ordering, glyph, letters) in cases {
            let found = Collection::of(ordering.as_bytes()).unwrap().letters(glyph);
            assert_eq!(found.as_deref(), Some(letters), "{ordering} {glyph}");
        }
        assert_eq!(JAPAN.letters(0), None);
        assert_eq!(JAPAN.letters(u32::MAX), None);
        assert!(Collection::of(b"Identity").is_none());
    }
}
