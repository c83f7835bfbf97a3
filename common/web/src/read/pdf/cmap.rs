//! Character tables inside a file: from codes to Unicode (`ToUnicode`) and from codes to glyph numbers (embedded CMaps).
//! Read without a grammar, since many writers do not keep to it; what is not understood is skipped.

/// Maximum number of entries of one table.
const MAX_ENTRIES: usize = 150_000;
const MAX_SPACES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct CMap {
    unicode: Vec<Range<Vec<u16>>>,
    glyphs: Vec<Range<u32>>,
    spaces: Vec<(u32, u32, usize)>,
    /// The table that this one extends.
    pub(super) base: Option<Vec<u8>>,
}

/// Codes of one length in bytes, and what the first of them means.
#[derive(Debug)]
struct Range<T> {
    length: usize,
    first: u32,
    last: u32,
    meaning: T,
}

enum Token<'a> {
    /// Its number, its length and its bytes.
    Code(u32, usize, Vec<u8>),
    Number(u32),
    Word(&'a [u8]),
    Open,
    Close,
}

#[derive(Clone, Copy, PartialEq)]
enum Section {
    None,
    Spaces,
    Letters,
    LetterRanges,
    Glyphs,
    GlyphRanges,
}

impl CMap {
    pub(super) fn parse(text: &[u8]) -> CMap {
        let mut map = CMap::default();
        let mut section = Section::None;
        // The codes of the entry so far, and whether its meanings are listed one by one.
        let mut codes: Vec<(u32, usize)> = Vec::new();
        let mut listed: Option<u32> = None;
        let mut name: &[u8] = b"";
        let mut at = 0;
        while let Some(token) = token(text, &mut at) {
            if map.unicode.len() + map.glyphs.len() > MAX_ENTRIES {
                break;
            }
            match token {
                Token::Word(word) => {
                    let next = match word {
                        b"begincodespacerange" => Some(Section::Spaces),
                        b"beginbfchar" => Some(Section::Letters),
                        b"beginbfrange" => Some(Section::LetterRanges),
                        b"begincidchar" => Some(Section::Glyphs),
                        b"begincidrange" => Some(Section::GlyphRanges),
                        _ => word.starts_with(b"end").then_some(Section::None),
                    };
                    if let Some(next) = next {
                        section = next;
                        codes.clear();
                        listed = None;
                    } else if word == b"usecmap" {
                        map.base = Some(name.to_vec());
                    } else if let Some(word) = word.strip_prefix(b"/") {
                        name = word;
                    }
                }
                Token::Open => listed = (codes.len() == 2).then_some(0),
                Token::Close => {
                    codes.clear();
                    listed = None;
                }
                Token::Code(code, length, bytes) => match (section, codes.as_slice()) {
                    (Section::Letters, [(first, length)]) => {
                        map.mean(*length, *first, *first, &bytes);
                        codes.clear();
                    }
                    (Section::LetterRanges, [(first, length), (last, _)]) => match listed {
                        Some(index) => {
                            if let Some(code) = first.checked_add(index).filter(|code| code <= last) {
                                map.mean(*length, code, code, &bytes);
                            }
                            listed = Some(index.saturating_add(1));
                        }
                        None => {
                            map.mean(*length, *first, *last, &bytes);
                            codes.clear();
                        }
                    },
                    (Section::Spaces, [(first, length)]) => {
                        if map.spaces.len() < MAX_SPACES {
                            map.spaces.push((*first, code, *length));
                        }
                        codes.clear();
                    }
                    (Section::None, _) => {}
                    _ if codes.len() < 2 => codes.push((code, length)),
                    _ => codes.clear(),
                },
                Token::Number(number) => {
                    let range = match (section, codes.as_slice()) {
                        (Section::Glyphs, [(code, length)]) => Some((*length, *code, *code)),
                        (Section::GlyphRanges, [(first, length), (last, _)]) => Some((*length, *first, *last)),
                        _ => None,
                    };
                    if let Some((length, first, last)) = range {
                        map.glyphs.push(Range { length, first, last, meaning: number });
                    }
                    codes.clear();
                }
            }
        }
        map.unicode.sort_by_key(|range| (range.length, range.first));
        map.glyphs.sort_by_key(|range| (range.length, range.first));
        map
    }

    fn mean(&mut self, length: usize, first: u32, last: u32, bytes: &[u8]) {
        let meaning: Vec<u16> = match bytes {
            [single] => vec![u16::from(*single)],
            _ => bytes.chunks_exact(2).take(32).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect(),
        };
        self.unicode.push(Range { length, first, last, meaning });
    }

    /// The letters of a code. None if the table has none for it.
    pub(super) fn letters(&self, code: u32, length: usize) -> Option<String> {
        let range = find(&self.unicode, code, length)?;
        let mut units = range.meaning.clone();
        if let Some(last) = units.last_mut() {
            *last = last.wrapping_add((code - range.first) as u16);
        }
        let letters: String = char::decode_utf16(units).flatten().filter(|letter| *letter != '\0').collect();
        (!letters.is_empty() && letters != "\u{fffd}").then_some(letters)
    }

    pub(super) fn has_letters(&self) -> bool {
        !self.unicode.is_empty()
    }

    pub(super) fn glyph(&self, code: u32, length: usize) -> Option<u32> {
        find(&self.glyphs, code, length).map(|range| range.meaning.saturating_add(code - range.first))
    }

    /// Length of the first code. None if the table does not say.
    pub(super) fn length(&self, bytes: &[u8]) -> Option<usize> {
        let fits = |space: &&(u32, u32, usize)| {
            let (low, high, length) = **space;
            // Each byte has bounds of its own.
            bytes.len() >= length
                && bytes[..length].iter().enumerate().all(|(index, byte)| {
                    let shift = 8 * (length - 1 - index);
                    (low >> shift) as u8 <= *byte && *byte <= (high >> shift) as u8
                })
        };
        let length = self.spaces.iter().filter(fits).map(|space| space.2).min();
        length.or_else(|| self.spaces.iter().map(|space| space.2).min())
    }
}

fn find<T>(ranges: &[Range<T>], code: u32, length: usize) -> Option<&Range<T>> {
    let after = ranges.partition_point(|range| (range.length, range.first) <= (length, code));
    let range = ranges.get(after.checked_sub(1)?)?;
    (range.length == length && range.last >= code).then_some(range)
}

fn token<'a>(text: &'a [u8], at: &mut usize) -> Option<Token<'a>> {
    let ends = |byte: u8| byte.is_ascii_whitespace() || byte == 0 || b"<>[](){}/%".contains(&byte);
    loop {
        let begin = *at;
        let byte = *text.get(begin)?;
        *at += 1;
        match byte {
            b'%' => *at = end(text, begin, |byte| byte == b'\n' || byte == b'\r'),
            b'(' => *at = (end(text, begin, |byte| byte == b')') + 1).min(text.len()),
            b'[' => return Some(Token::Open),
            b']' => return Some(Token::Close),
            b'<' if text.get(*at) == Some(&b'<') => *at += 1,
            b'<' => {
                let close = end(text, *at, |byte| byte == b'>');
                let digits = &text[*at..close];
                *at = (close + 1).min(text.len());
                if let Some(code) = code(digits) {
                    return Some(code);
                }
            }
            b'/' => {
                *at = end(text, *at, ends);
                return Some(Token::Word(&text[begin..*at]));
            }
            _ if ends(byte) => {}
            _ => {
                *at = end(text, *at, ends);
                let word = &text[begin..*at];
                let number = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
                return Some(number.map_or(Token::Word(word), Token::Number));
            }
        }
    }
}

/// The place of the next byte that `stops`, or the end.
fn end(text: &[u8], from: usize, stops: impl Fn(u8) -> bool) -> usize {
    text[from..].iter().position(|byte| stops(*byte)).map_or(text.len(), |length| from + length)
}

fn code<'a>(digits: &[u8]) -> Option<Token<'a>> {
    let digits: Vec<u8> =
        digits.iter().filter_map(|digit| char::from(*digit).to_digit(16)).take(128).map(|digit| digit as u8).collect();
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] * 16 + pair.get(1).copied().unwrap_or(0)).collect();
    let number = bytes.iter().take(4).fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    (!bytes.is_empty()).then(|| Token::Code(number, bytes.len().min(4), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read_without_a_grammar() {
        let map = CMap::parse(
            b"begincmap /Base-H usecmap 1 begincodespacerange <00> <80> <8140> <9ffc> endcodespacerange 2 beginbfchar <01><0041> \
              % a note <02> <0042>\n<0003> <D83DDE00> endbfchar 1 beginbfrange <10> <12> <0061> <20> <21> [<00660069> <0078>] \
              endbfrange 1 begincidrange <8140> <817e> 633 endcidrange",
        );
        assert_eq!(map.letters(1, 1).as_deref(), Some("A"));
        assert_eq!(map.letters(2, 1), None, "within a comment");
        assert_eq!(map.letters(3, 2).as_deref(), Some("\u{1f600}"));
        assert_eq!(map.letters(0x12, 1).as_deref(), Some("c"));
        assert_eq!(map.letters(0x20, 1).as_deref(), Some("fi"));
        assert_eq!(map.letters(0x21, 1).as_deref(), Some("x"));
        assert_eq!((map.letters(0x13, 1), map.letters(1, 2)), (None, None));
        assert_eq!(map.glyph(0x8142, 2), Some(635));
        assert_eq!((map.length(b"a"), map.length(b"\x81\x40")), (Some(1), Some(2)));
        assert_eq!(map.base.as_deref(), Some(&b"Base-H"[..]));
    }

    #[test]
    fn a_range_of_all_codes_takes_one_entry() {
        let map = CMap::parse(b"beginbfrange <00000000> <ffffffff> <0041> endbfrange");
        assert_eq!((map.unicode.len(), map.letters(2, 4).as_deref()), (1, Some("C")));
    }
}
