//! The digits of a text, in whatever script they are written.

use icu_normalizer::ComposingNormalizerBorrowed;

/// The zeros of all scripts, in their order. The digits one to nine follow each of them (Unicode 17, general category Nd;
/// chapter 4.6: a script's decimal digits are contiguous). Digits that differ from ASCII only in their shape, such as
/// full-width ones, are missing: they become ASCII before.
const ZEROS: [u32; 69] = [
    0x0030, 0x0660, 0x06f0, 0x07c0, 0x0966, 0x09e6, 0x0a66, 0x0ae6, 0x0b66, 0x0be6, 0x0c66, 0x0ce6, 0x0d66, 0x0de6,
    0x0e50, 0x0ed0, 0x0f20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40,
    0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0x104a0, 0x10d30, 0x10d40, 0x11066, 0x110f0,
    0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x116d0, 0x116da, 0x11730, 0x118e0, 0x11950,
    0x11bf0, 0x11c50, 0x11d50, 0x11da0, 0x11de0, 0x11f50, 0x16130, 0x16a60, 0x16ac0, 0x16b50, 0x16d70, 0x1e140,
    0x1e2f0, 0x1e4f0, 0x1e5f1, 0x1e950,
];

/// The decimal digits of a text as ASCII, at most `most` of them: full-width, circled and raised ones too.
pub fn ascii(text: &str, most: usize) -> String {
    let even = ComposingNormalizerBorrowed::new_nfkc().normalize_iter(text.chars());
    even.filter_map(digit).take(most).collect()
}

fn digit(letter: char) -> Option<char> {
    let code = u32::from(letter);
    let zero = ZEROS.iter().rfind(|zero| **zero <= code)?;
    char::from_digit(code - zero, 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digits_of_every_script_are_read() {
        assert!(ZEROS.is_sorted());
        for (text, expected) in [
            ("+1 (415) 555-2671", "14155552671"),
            // Full-width, Arabic-Indic, Persian, Devanagari, Bengali, Thai, mathematical, circled, raised.
            ("＋９１１", "911"),
            ("٩١١", "911"),
            ("۹۱۱", "911"),
            ("१००", "100"),
            ("৯৯৯", "999"),
            ("๑๙๑", "191"),
            ("𝟗𝟏𝟏", "911"),
            ("①①②", "112"),
            ("⁹¹¹", "911"),
            // The last digit of a script, and what follows it.
            ("٩٪", "9"),
            ("no digits", ""),
        ] {
            assert_eq!(ascii(text, 20), expected, "{text}");
        }
        assert_eq!(ascii(&"1".repeat(100), 16), "1".repeat(16));
    }
}
