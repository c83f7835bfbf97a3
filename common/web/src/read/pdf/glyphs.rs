//! What simple fonts show for a code: named encodings, built-in encodings of the two symbol fonts, names of glyphs.

use encoding_rs::WINDOWS_1252;
use lopdf::{Dictionary, Document, Encoding, Object};

/// The letters of the 256 codes. Empty: the code shows nothing.
pub(super) type Table = Vec<String>;

/// Codes 32 to 126 of the font Symbol.
const SYMBOL_LOW: &str =
    " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_\u{203e}αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼";
/// Codes 160 to 254 of it. The bytes that only draw parts of tall brackets and signs are spaces here.
const SYMBOL_HIGH: &str =
    "€ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…  ↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑           〉∫           ";

/// One of the encodings that a file can name.
pub(super) fn encoding(document: &Document, name: &[u8]) -> Option<Table> {
    if !matches!(name, b"StandardEncoding" | b"MacRomanEncoding" | b"MacExpertEncoding" | b"WinAnsiEncoding") {
        return None;
    }
    // The library has the tables, but only gives them for a font.
    let font = font(Object::Name(name.to_vec()));
    let encoding = font.get_font_encoding(document).ok()?;
    Some((0..=255_u8).map(|code| encoding.bytes_to_string(&[code]).unwrap_or_default()).collect())
}

/// The encoding inside the standard fonts that need one of their own.
pub(super) fn built_in(font: &[u8]) -> Option<Table> {
    // A subset has a tag before its name: `ABCDEF+Symbol`.
    let name = font.split(|byte| *byte == b'+').next_back().unwrap_or_default();
    if name.starts_with(b"Symbol") {
        let mut table = vec![String::new(); 256];
        for (first, letters) in [(32, SYMBOL_LOW), (160, SYMBOL_HIGH)] {
            for (code, letter) in (first..256).zip(letters.chars()) {
                table[code] = letter.to_string();
            }
        }
        return Some(table);
    }
    let dingbats = name.starts_with(b"ZapfDingbats") || name == b"Dingbats";
    dingbats.then(|| (0..=255_u8).map(|code| dingbat(code).map(String::from).unwrap_or_default()).collect())
}

/// Unicode keeps the order of the font ZapfDingbats, except for what it has elsewhere.
fn dingbat(code: u8) -> Option<char> {
    let number = u32::from(code);
    let found = match code {
        0x20 => 0x20,
        0x25 => 0x260e,
        0x2a => 0x261b,
        0x2b => 0x261e,
        0x48 => 0x2605,
        0x6c => 0x25cf,
        0x6e => 0x25a0,
        0x73 => 0x25b2,
        0x74 => 0x25bc,
        0x75 => 0x25c6,
        0x77 => 0x25d7,
        0x21..=0x7e => 0x2700 + number - 0x20,
        0x80..=0x8d => 0x2768 + number - 0x80,
        0xa1..=0xa7 => 0x2761 + number - 0xa1,
        0xa8 => 0x2663,
        0xa9 => 0x2666,
        0xaa => 0x2665,
        0xab => 0x2660,
        0xac..=0xb5 => 0x2460 + number - 0xac,
        0xb6..=0xd4 => 0x2776 + number - 0xb6,
        0xd5 => 0x2192,
        0xd6 => 0x2194,
        0xd7 => 0x2195,
        0xd8..=0xef => 0x2798 + number - 0xd8,
        0xf1..=0xfe => 0x27b1 + number - 0xf1,
        _ => return None,
    };
    char::from_u32(found)
}

/// The letters of a glyph by its name, by the rules of the Adobe Glyph List. None if the name says nothing.
pub(super) fn named(document: &Document, name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok().filter(|name| name.len() <= 128)?;
    // A suffix names a variant: `a.alt`.
    let stem = name.split('.').next().unwrap_or_default();
    let mut letters = String::new();
    for part in stem.split('_') {
        letters.push_str(&component(document, part)?);
    }
    Some(letters)
}

/// The letters of a glyph that an encoding puts at a code. Empty if it shows nothing.
pub(super) fn letters_at(document: &Document, name: &[u8], code: usize) -> String {
    if name == b".notdef" {
        return String::new();
    }
    if let Some(letters) = named(document, name) {
        return letters;
    }
    // Many writers name glyphs by their codes: `a65`, `g65`, `C41`.
    let number =
        std::str::from_utf8(name).ok().map(|name| name.trim_start_matches(|letter: char| !letter.is_ascii_digit()));
    let hexadecimal = std::str::from_utf8(name).ok().and_then(|name| name.get(1..));
    let same = number.and_then(|digits| digits.parse().ok()) == Some(code)
        || hexadecimal.and_then(|digits| usize::from_str_radix(digits, 16).ok()) == Some(code);
    let letter = WINDOWS_1252.decode_without_bom_handling(&[code.min(255) as u8]).0.into_owned();
    if same && (32..256).contains(&code) { letter } else { "\u{fffd}".to_owned() }
}

/// The encoding in the readable part of a font in the format Type 1: `dup 65 /A put`.
pub(super) fn type1_encoding(document: &Document, program: &[u8]) -> Option<Table> {
    let readable = &program[..program.len().min(64 * 1024)];
    let begin = readable.windows(9).position(|run| run == b"/Encoding")? + 9;
    let mut table = vec![String::new(); 256];
    let spaced = |byte: &u8| byte.is_ascii_whitespace();
    let mut words = readable[begin..].split(spaced).filter(|word| !word.is_empty());
    let mut found = false;
    while let Some(word) = words.next() {
        match word {
            b"StandardEncoding" if !found => return encoding(document, b"StandardEncoding"),
            b"readonly" | b"eexec" if found => break,
            b"eexec" => return None,
            b"dup" => {
                let code = words.next().and_then(|code| std::str::from_utf8(code).ok()?.parse::<usize>().ok());
                let Some(place) = code.and_then(|code| table.get_mut(code)) else { continue };
                let name = words.next().and_then(|name| name.strip_prefix(b"/")).unwrap_or(b".notdef");
                *place = letters_at(document, name, code.unwrap_or(0));
                found = true;
            }
            _ => {}
        }
    }
    found.then_some(table)
}

/// Widths of the letters 32 to 126 of Helvetica and Times, which files need not list.
const HELVETICA: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
];
const TIMES: [u16; 95] = [
    250, 333, 408, 500, 500, 833, 778, 180, 333, 333, 500, 564, 250, 333, 250, 278, 500, 500, 500, 500, 500, 500, 500,
    500, 500, 500, 278, 278, 564, 564, 564, 444, 921, 722, 667, 667, 722, 611, 556, 722, 722, 333, 389, 722, 611, 889,
    722, 722, 556, 722, 667, 556, 611, 722, 722, 944, 722, 722, 611, 333, 278, 333, 469, 500, 333, 444, 500, 444, 500,
    444, 333, 500, 500, 278, 278, 500, 278, 778, 500, 500, 500, 500, 333, 389, 278, 500, 500, 722, 500, 500, 444, 480,
    200, 480, 541,
];

fn is_named(font: &[u8], names: &[&[u8]]) -> bool {
    names.iter().any(|name| font.windows(name.len()).any(|run| run == *name))
}

/// Width of a letter of a standard font.
pub(super) fn standard_width(font: &[u8], letter: char) -> Option<f32> {
    let place = (letter as usize).checked_sub(32)?;
    match () {
        () if is_named(font, &[b"Courier"]) => Some(600.0),
        () if is_named(font, &[b"Helvetica", b"Arial"]) => HELVETICA.get(place).copied().map(f32::from),
        () if is_named(font, &[b"Times"]) => TIMES.get(place).copied().map(f32::from),
        () => None,
    }
}

/// Width of the other letters of a font that lists none.
pub(super) fn usual_width(font: &[u8]) -> f32 {
    if is_named(font, &[b"Courier", b"Symbol"]) {
        600.0
    } else if is_named(font, &[b"Dingbats"]) {
        800.0
    } else {
        500.0
    }
}

fn component(document: &Document, name: &str) -> Option<String> {
    let hexadecimal =
        |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit() || (b'A'..=b'F').contains(&digit));
    if name.is_empty() {
        return None;
    }
    let font = font(Object::Dictionary(Dictionary::from_iter([(
        "Differences",
        Object::Array(vec![Object::Integer(0), Object::Name(name.as_bytes().to_vec())]),
    )])));
    if let Ok(Encoding::Differences(found)) = font.get_font_encoding(document) {
        let unit = found.map.get(&0)?.utf16_code_unit();
        return char::from_u32(u32::from(unit)).map(String::from);
    }
    if let Some(digits) = name.strip_prefix("uni")
        && digits.len() >= 4
        && digits.len().is_multiple_of(4)
        && hexadecimal(digits)
    {
        let units = digits.as_bytes().chunks(4).filter_map(|unit| std::str::from_utf8(unit).ok());
        let letters = units.filter_map(|unit| u32::from_str_radix(unit, 16).ok().and_then(char::from_u32));
        return Some(letters.collect());
    }
    let digits = name.strip_prefix('u').filter(|digits| (4..=6).contains(&digits.len()) && hexadecimal(digits))?;
    u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).map(String::from)
}

fn font(encoding: Object) -> Dictionary {
    Dictionary::from_iter([("Type", Object::Name(b"Font".to_vec())), ("Encoding", encoding)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_letters() {
        let document = Document::new();
        let cases = [
            ("eacute", Some("é")),
            ("Lcommaaccent", Some("Ļ")),
            ("uni20AC", Some("€")),
            ("uni00410042", Some("AB")),
            ("u1F600", Some("\u{1f600}")),
            ("a.alt", Some("a")),
            ("f_f_i", Some("ffi")),
            ("uni20ac", None),
            ("uD800", None),
            ("g123", None),
            (".notdef", None),
        ];
        for (name, letters) in cases {
            assert_eq!(named(&document, name.as_bytes()).as_deref(), letters, "{name}");
        }
    }

    #[test]
    fn names_may_be_codes() {
        let document = Document::new();
        let cases = [
            ("a192", 192, "À"),
            ("C41", 65, "A"),
            ("g65", 65, "A"),
            ("g66", 65, "\u{fffd}"),
            (".notdef", 65, ""),
            ("A", 66, "A"),
        ];
        for (name, code, letters) in cases {
            assert_eq!(letters_at(&document, name.as_bytes(), code), letters, "{name}");
        }
    }

    #[test]
    fn a_font_brings_its_encoding() {
        let program = b"%!PS /Encoding 256 array 0 1 255 {1 index exch /.notdef put} for\ndup 11 /ff put\ndup 65 /B put\nreadonly def dup 66 /C put";
        let table = type1_encoding(&Document::new(), program).unwrap();
        assert_eq!([11, 65, 66].map(|code| table[code].as_str()), ["\u{fb00}", "B", ""]);
        assert_eq!(type1_encoding(&Document::new(), b"/Encoding 5 eexec dup 1 /a put"), None);
    }

    #[test]
    fn symbol_fonts_have_their_own_letters() {
        let symbol = built_in(b"ABCDEF+SymbolMT").unwrap();
        assert_eq!(
            ["a", "W", "\u{a5}", "\u{d6}", "\u{e5}", "\u{f2}", "\u{de}"]
                .map(|code| { symbol[code.chars().next().unwrap() as usize].as_str() }),
            ["α", "Ω", "∞", "√", "∑", "∫", "⇒"]
        );
        let dingbats = built_in(b"ZapfDingbats").unwrap();
        assert_eq!(
            [0x34, 0x48, 0x6e, 0xac, 0xd4, 0xfe].map(|code| dingbats[code].as_str()),
            ["✔", "★", "■", "①", "➔", "➾"]
        );
        assert_eq!(built_in(b"Helvetica"), None);
    }
}
