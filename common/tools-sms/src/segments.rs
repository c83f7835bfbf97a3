//! Splitting a message into segments, as phones and providers do it. The price follows from the count.
//!
//! A message whose characters are all in the GSM 7-bit alphabet has septets: one for each character of the basic table, two
//! for each of the extension table (an escape and the character). Any other message is UCS-2, which today means UTF-16: one
//! unit for most characters, two for emoji and others beyond the first plane. (3GPP TS 23.038 §6.2.1 and §6.2.3)
//!
//! | | a single segment | each of several |
//! |---|---|---|
//! | GSM 7-bit | 160 septets | 153 |
//! | UCS-2 | 70 units | 67 |
//!
//! The header that joins several segments takes the rest (3GPP TS 23.040 §9.2.3.24.1). They are filled one after the other,
//! and neither an escape nor a surrogate pair is split. So a message may need more segments than its length divided by 153
//! or 67.

use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;
use serde::Serialize;

/// Most characters of a message.
pub const MAX_CHARS: usize = 1600;
/// Most segments of a message with [`MAX_CHARS`] characters: a segment has room for 33 characters of two units.
pub const MAX_SEGMENTS: u32 = 49;

const GSM_SINGLE: u32 = 160;
const GSM_PART: u32 = 153;
const UCS2_SINGLE: u32 = 70;
const UCS2_PART: u32 = 67;

/// The basic table, in its order. Without the escape.
const BASIC: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿\
                     abcdefghijklmnopqrstuvwxyzäöñüà";
/// The extension table.
const EXTENSION: &str = "\u{c}^{}\\[~]|€";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Encoding {
    #[serde(rename = "GSM-7")]
    Gsm7,
    #[serde(rename = "UCS-2")]
    Ucs2,
}

/// How a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    pub encoding: Encoding,
    /// Septets, or UTF-16 units.
    pub units: u32,
    /// What is paid for; 0 for an empty message.
    pub count: u32,
}

/// The message as it is counted and sent: in Normalization Form C. Written with combining marks, many a letter of the GSM
/// alphabet would not be in it.
pub fn prepared(message: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(message)
}

/// The segments of a [`prepared`] message.
pub fn of(prepared: &str) -> Segments {
    let septets: Option<Vec<u32>> = prepared.chars().map(septets).collect();
    let (encoding, units, single, part) = match septets {
        Some(septets) => (Encoding::Gsm7, septets, GSM_SINGLE, GSM_PART),
        None => (Encoding::Ucs2, prepared.chars().map(utf16_units).collect(), UCS2_SINGLE, UCS2_PART),
    };
    let all = units.iter().fold(0, |sum: u32, units| sum.saturating_add(*units));
    let count = match all {
        0 => 0,
        all if all <= single => 1,
        _ => parts(&units, part),
    };
    Segments { encoding, units: all, count }
}

/// The number of segments that characters of these sizes fill.
fn parts(units: &[u32], part: u32) -> u32 {
    let (mut count, mut filled) = (1, 0);
    for units in units {
        if filled + units > part {
            (count, filled) = (count + 1, 0);
        }
        filled += units;
    }
    count
}

/// The septets of a character; `None` if it is not in the alphabet.
fn septets(letter: char) -> Option<u32> {
    if BASIC.contains(letter) { Some(1) } else { EXTENSION.contains(letter).then_some(2) }
}

fn utf16_units(letter: char) -> u32 {
    if u32::from(letter) > 0xffff { 2 } else { 1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segments(message: &str) -> (Encoding, u32, u32) {
        let Segments { encoding, units, count } = of(&prepared(message));
        (encoding, units, count)
    }

    #[test]
    fn the_alphabet_has_127_characters_and_ten_of_two_septets() {
        assert_eq!((BASIC.chars().count(), EXTENSION.chars().count()), (127, 10));
        // 3GPP TS 23.038, rows 0 to 7 of the table.
        for (place, letter) in [(0, '@'), (9, 'Ç'), (16, 'Δ'), (26, 'Ξ'), (27, 'Æ'), (31, ' '), (126, 'à')] {
            assert_eq!(BASIC.chars().nth(place), Some(letter));
        }
        for letter in BASIC.chars().chain(EXTENSION.chars()) {
            assert_eq!(prepared(&letter.to_string()), letter.to_string(), "{letter:?} does not change");
        }
        for other in ['ç', '`', '\t', 'Á', 'ˆ', '’', '–', '\u{a0}', '\u{1b}', '₤'] {
            assert_eq!(septets(other), None, "{other:?}");
        }
    }

    #[test]
    fn segments_are_counted_at_their_limits() {
        use Encoding::{Gsm7, Ucs2};
        let a = |count: usize| "a".repeat(count);
        let accents = |count: usize| "ê".repeat(count);
        for (message, expected) in [
            (String::new(), (Gsm7, 0, 0)),
            (a(1), (Gsm7, 1, 1)),
            (a(160), (Gsm7, 160, 1)),
            (a(161), (Gsm7, 161, 2)),
            (a(306), (Gsm7, 306, 2)),
            (a(307), (Gsm7, 307, 3)),
            (a(1600), (Gsm7, 1600, 11)),
            (accents(70), (Ucs2, 70, 1)),
            (accents(71), (Ucs2, 71, 2)),
            (accents(134), (Ucs2, 134, 2)),
            (accents(135), (Ucs2, 135, 3)),
            // A single segment has no boundary inside.
            (a(158) + "€", (Gsm7, 160, 1)),
            (a(159) + "€", (Gsm7, 161, 2)),
            (accents(68) + "😀", (Ucs2, 70, 1)),
            (accents(69) + "😀", (Ucs2, 71, 2)),
            // An escape pair at 153: the first segment ends with 152 septets, so 153 more do not fit into the second.
            (a(152) + "€" + &a(151), (Gsm7, 305, 2)),
            (a(152) + "€" + &a(152), (Gsm7, 306, 3)),
            (a(151) + "€" + &a(153), (Gsm7, 306, 2)),
            // An emoji at 67: the same with a surrogate pair.
            (accents(66) + "😀" + &accents(65), (Ucs2, 133, 2)),
            (accents(66) + "😀" + &accents(66), (Ucs2, 134, 3)),
            (accents(65) + "😀" + &accents(67), (Ucs2, 134, 2)),
            ("€".repeat(80), (Gsm7, 160, 1)),
            // 76 pairs in a segment.
            ("€".repeat(152), (Gsm7, 304, 2)),
            ("€".repeat(153), (Gsm7, 306, 3)),
            ("😀".repeat(35), (Ucs2, 70, 1)),
            ("😀".repeat(66), (Ucs2, 132, 2)),
            ("😀".repeat(67), (Ucs2, 134, 3)),
            ("😀".repeat(MAX_CHARS), (Ucs2, 3200, MAX_SEGMENTS)),
            // One character outside the alphabet changes the encoding of all.
            (a(160) + "’", (Ucs2, 161, 3)),
            ("\r\n".repeat(80), (Gsm7, 160, 1)),
        ] {
            let shown: String = message.chars().rev().take(3).collect();
            assert_eq!(segments(&message), expected, "{} characters, the last {shown:?}", message.chars().count());
        }
    }

    #[test]
    fn letters_with_combining_marks_are_counted_as_they_are_sent() {
        let decomposed = "u\u{308}".repeat(160);
        assert_eq!(prepared(&decomposed), "ü".repeat(160));
        assert_eq!(segments(&decomposed), (Encoding::Gsm7, 160, 1));
        // Compatibility characters stay.
        assert_eq!(prepared("ﬁ①"), "ﬁ①");
    }

    proptest! {
        /// The count is the least number of segments without a split character, because filling them greedily is best.
        #[test]
        fn greedy_filling_is_best(units in proptest::collection::vec(1u32..=2, 1..700)) {
            let all: u32 = units.iter().sum();
            for part in [GSM_PART, UCS2_PART] {
                let count = parts(&units, part);
                // Each segment but the last has at most one free unit.
                prop_assert!(all.div_ceil(part) <= count && count <= all.div_ceil(part - 1));
            }
        }

        #[test]
        fn no_message_has_more_than_the_most(message in "\\PC{0,1600}") {
            let prepared = prepared(&message);
            if prepared.chars().count() <= MAX_CHARS {
                prop_assert!(of(&prepared).count <= MAX_SEGMENTS);
            }
        }
    }
}
