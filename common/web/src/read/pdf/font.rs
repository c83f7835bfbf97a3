//! Fonts: the letters and widths of the codes in a string.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use lopdf::{Dictionary, Document, Object};

use super::charset::Charset;
use super::cmap::CMap;
use super::collection::Collection;
use super::glyphs::{self, Table};

/// Unpacked size of a font's character table.
const MAX_TABLE: usize = 2 * 1024 * 1024;
/// Unpacked size of all character tables.
const MAX_TABLES: usize = 24 * 1024 * 1024;
const MAX_FONTS: usize = 500;

/// The fonts of a file, each read when it is first used.
pub(super) struct Fonts<'a> {
    document: &'a Document,
    /// By the place of their dictionary in memory, which stays while the document does.
    read: BTreeMap<usize, Rc<Font>>,
    /// Takes the place of fonts that are missing.
    usual: Option<Rc<Font>>,
    unpacked: usize,
}

pub(super) struct Font {
    codes: Codes,
    unicode: Unicode,
    widths: BTreeMap<u32, f32>,
    usual: f32,
    /// Size of a unit of width, as a part of the font size.
    pub(super) unit: f32,
    /// Height of the letters, as a part of the font size.
    pub(super) height: f32,
    /// Lines run from top to bottom.
    pub(super) vertical: bool,
    /// The widths are known, not guessed.
    pub(super) measured: bool,
}

enum Codes {
    Simple(Table),
    /// Two bytes are a glyph number, perhaps of a known collection.
    Glyphs(Option<&'static Collection>),
    Charset(Charset),
    Table(CMap, Option<Charset>, Option<&'static Collection>),
}

enum Unicode {
    None,
    Table(CMap),
    /// The codes are Unicode.
    Same,
}

/// What a code shows.
pub(super) struct Shown<'a> {
    /// Number of bytes of the code.
    pub(super) length: usize,
    pub(super) letters: Cow<'a, str>,
    /// Width in units of the font.
    pub(super) width: f32,
}

impl<'a> Fonts<'a> {
    pub(super) fn new(document: &'a Document) -> Fonts<'a> {
        Fonts { document, read: BTreeMap::new(), usual: None, unpacked: 0 }
    }

    pub(super) fn get(&mut self, dictionary: &'a Dictionary) -> Option<Rc<Font>> {
        let key = std::ptr::from_ref(dictionary) as usize;
        if let Some(font) = self.read.get(&key) {
            return Some(Rc::clone(font));
        }
        if self.read.len() >= MAX_FONTS {
            return None;
        }
        let font = Rc::new(self.read(dictionary));
        self.read.insert(key, Rc::clone(&font));
        Some(font)
    }

    /// The font that viewers use in place of one that is missing.
    pub(super) fn usual(&mut self) -> Rc<Font> {
        if let Some(font) = &self.usual {
            return Rc::clone(font);
        }
        let name = |name: &[u8]| Object::Name(name.to_vec());
        let font = [("BaseFont", name(b"Helvetica")), ("Encoding", name(b"WinAnsiEncoding"))];
        let font = Rc::new(self.read(&Dictionary::from_iter(font)));
        self.usual = Some(Rc::clone(&font));
        font
    }

    fn table(&mut self, object: &Object) -> Option<CMap> {
        let stream = object.as_stream().ok()?;
        let limit = MAX_TABLE.min(MAX_TABLES.saturating_sub(self.unpacked));
        let text = stream.get_plain_content_with_limit(limit).ok()?;
        self.unpacked += text.len();
        Some(CMap::parse(&text))
    }

    fn read(&mut self, font: &Dictionary) -> Font {
        let document = self.document;
        let unicode = match font.get_deref(b"ToUnicode", document) {
            Ok(Object::Name(name)) if name.starts_with(b"Identity") => Unicode::Same,
            Ok(table) => self.table(table).filter(CMap::has_letters).map_or(Unicode::None, Unicode::Table),
            Err(_) => Unicode::None,
        };
        let kind = font.get_deref(b"Subtype", document).and_then(Object::as_name).unwrap_or_default();
        if kind == b"Type0" {
            return self.composite(font, unicode);
        }
        let first = font.get_deref(b"FirstChar", document).and_then(Object::as_i64).unwrap_or(0).clamp(0, 255) as u32;
        let listed = font.get_deref(b"Widths", document).and_then(Object::as_array);
        let mut widths = BTreeMap::new();
        for (index, width) in listed.into_iter().flatten().take(256).enumerate() {
            if let Ok(width) = document.dereference(width).and_then(|(_, width)| width.as_float()) {
                widths.insert(first + index as u32, width);
            }
        }
        let (mut unit, mut height) = (0.001, 1.0);
        if kind == b"Type3" {
            let numbers = |name: &[u8]| -> Vec<f32> {
                let list = font.get_deref(name, document).and_then(Object::as_array);
                list.into_iter().flatten().take(6).filter_map(|number| number.as_float().ok()).collect()
            };
            // Letters of such fonts are drawn in a space of their own, and their box is often wrong.
            if let ([a, b, c, d, ..], [_, low, _, high]) = (&numbers(b"FontMatrix")[..], &numbers(b"FontBBox")[..]) {
                unit = (a * a + b * b).sqrt();
                let wide = widths.values().fold(0.0, |most: f32, width| most.max(width.abs())) * unit;
                let tall = ((high - low).abs() * (c * c + d * d).sqrt()).max(wide);
                height = if tall > 0.0 && tall.is_finite() { tall } else { 1.0 };
            }
        }
        let table = self.simple(font, kind);
        let mut usual = 500.0;
        if widths.is_empty() {
            let name = font.get_deref(b"BaseFont", document).and_then(Object::as_name).unwrap_or_default();
            usual = glyphs::usual_width(name);
            for (code, letters) in (0..).zip(&table) {
                if let Some(width) = letters.chars().next().and_then(|letter| glyphs::standard_width(name, letter)) {
                    widths.insert(code, width);
                }
            }
        }
        let measured = !widths.is_empty();
        Font { codes: Codes::Simple(table), unicode, widths, usual, unit, height, vertical: false, measured }
    }

    /// The letters of a simple font: its base encoding with its differences.
    fn simple(&mut self, font: &Dictionary, kind: &[u8]) -> Table {
        let document = self.document;
        let name = font.get_deref(b"BaseFont", document).and_then(Object::as_name).unwrap_or_default();
        let encoding = font.get_deref(b"Encoding", document).ok();
        let named = |name: &Object| glyphs::encoding(document, name.as_name().ok()?);
        let differences = encoding.and_then(|encoding| encoding.as_dict().ok());
        let base = differences.and_then(|encoding| encoding.get_deref(b"BaseEncoding", document).ok());
        let coded = kind == b"Type3";
        let base = base.or(encoding);
        // The symbol fonts keep their own letters, whatever encoding a writer names.
        let table = glyphs::built_in(name).or_else(|| base.and_then(named)).or_else(|| self.embedded(font));
        let usual: &[u8] = if kind == b"TrueType" { b"WinAnsiEncoding" } else { b"StandardEncoding" };
        let table = table.or_else(|| glyphs::encoding(document, usual));
        let mut table = table.unwrap_or_else(|| vec![String::new(); 256]);
        table.resize(256, String::new());
        let differences = differences.and_then(|encoding| encoding.get_deref(b"Differences", document).ok());
        let mut code = 0;
        for item in differences.and_then(|list| list.as_array().ok()).into_iter().flatten().take(2_000) {
            match document.dereference(item) {
                Ok((_, Object::Name(name))) => {
                    if let Some(place) = table.get_mut(code) {
                        *place = match glyphs::letters_at(document, name, code) {
                            // Names of drawn letters are free, so the code says more.
                            letters if letters == "\u{fffd}" && coded && !place.is_empty() => place.clone(),
                            letters => letters,
                        };
                    }
                    code = code.saturating_add(1);
                }
                Ok((_, number)) => code = number.as_float().map_or(code, |number| number.max(0.0) as usize),
                Err(_) => {}
            }
        }
        table
    }

    /// The encoding that an embedded font in the format Type 1 brings along.
    fn embedded(&mut self, font: &Dictionary) -> Option<Table> {
        let document = self.document;
        let descriptor = document.get_dict_in_dict(font, b"FontDescriptor").ok()?;
        let program = descriptor.get_deref(b"FontFile", document).and_then(Object::as_stream).ok()?;
        let limit = MAX_TABLE.min(MAX_TABLES.saturating_sub(self.unpacked));
        let program = program.get_plain_content_with_limit(limit).ok()?;
        self.unpacked += program.len();
        glyphs::type1_encoding(document, &program)
    }

    fn composite(&mut self, font: &Dictionary, unicode: Unicode) -> Font {
        let document = self.document;
        let inner = font.get_deref(b"DescendantFonts", document).and_then(Object::as_array).ok();
        let inner = inner.and_then(|inner| document.dereference(inner.first()?).ok());
        let inner = inner.and_then(|(_, inner)| inner.as_dict().ok());
        let ordering = inner.and_then(|inner| document.get_dict_in_dict(inner, b"CIDSystemInfo").ok());
        let ordering = ordering.and_then(|info| info.get_deref(b"Ordering", document).and_then(Object::as_str).ok());
        let collection = ordering.and_then(Collection::of);
        let mut vertical = false;
        let codes = match font.get_deref(b"Encoding", document) {
            Ok(Object::Name(name)) => {
                vertical = name == b"V" || name.ends_with(b"-V");
                // The codes of an unknown CMap are no glyph numbers.
                let collection = collection.filter(|_| name.starts_with(b"Identity"));
                Charset::of(name).map_or(Codes::Glyphs(collection), Codes::Charset)
            }
            Ok(object) => {
                let dictionary = object.as_stream().map(|stream| &stream.dict).ok();
                let name = |key: &[u8]| dictionary?.get_deref(key, document).and_then(Object::as_name).ok();
                vertical = dictionary.is_some_and(|dictionary| {
                    dictionary.get(b"WMode").and_then(Object::as_i64).is_ok_and(|mode| mode == 1)
                });
                let names = [name(b"UseCMap"), name(b"CMapName")];
                let table = self.table(object).unwrap_or_default();
                let charset = table.base.as_deref().and_then(Charset::of);
                let charset = charset.or_else(|| names.into_iter().flatten().find_map(Charset::of));
                Codes::Table(table, charset, collection)
            }
            Err(_) => Codes::Glyphs(collection),
        };
        let usual = inner.and_then(|inner| inner.get_deref(b"DW", document).and_then(Object::as_float).ok());
        let usual = usual.unwrap_or(1000.0);
        let widths = inner.map(|inner| glyph_widths(document, inner, usual)).unwrap_or_default();
        let measured = !vertical && !matches!(codes, Codes::Charset(_));
        Font { codes, unicode, widths, usual, unit: 0.001, height: 1.0, vertical, measured }
    }
}

impl Font {
    /// Reads the first code of a string that is not empty.
    pub(super) fn next(&self, bytes: &[u8]) -> Shown<'_> {
        let length = match &self.codes {
            Codes::Simple(_) => 1,
            Codes::Glyphs(_) => 2,
            Codes::Charset(charset) => charset.length(bytes),
            Codes::Table(table, charset, _) => {
                table.length(bytes).unwrap_or_else(|| charset.map_or(2, |charset| charset.length(bytes)))
            }
        };
        let bytes = &bytes[..length.clamp(1, bytes.len().max(1)).min(bytes.len())];
        let length = bytes.len();
        let code = bytes.iter().take(4).fold(0_u32, |code, byte| code << 8 | u32::from(*byte));
        let width = |glyph: u32| self.widths.get(&glyph).copied().unwrap_or(self.usual);
        let width = match &self.codes {
            Codes::Simple(_) | Codes::Glyphs(_) => width(code),
            // Widths are listed by glyph number, which only a table could tell; short codes are narrow.
            Codes::Charset(_) if length == 1 || code < 0x80 => 500.0,
            Codes::Charset(_) => self.usual,
            Codes::Table(table, ..) => table.glyph(code, length).map_or(self.usual, width),
        };
        Shown { length, letters: self.letters(code, bytes), width }
    }

    fn letters(&self, code: u32, bytes: &[u8]) -> Cow<'_, str> {
        let known = match &self.unicode {
            Unicode::None => None,
            Unicode::Same => char::from_u32(code).filter(|letter| *letter != '\0').map(String::from),
            // Some writers give the codes another length in the table.
            Unicode::Table(table) => {
                let other = if bytes.len() == 1 { 2 } else { 1 };
                table.letters(code, bytes.len()).or_else(|| table.letters(code, other))
            }
        };
        if let Some(known) = known {
            return Cow::Owned(known);
        }
        let unknown = if matches!(self.unicode, Unicode::Table(_)) { "\u{fffd}" } else { "" };
        match &self.codes {
            Codes::Simple(table) => Cow::Borrowed(&table[code as usize & 0xff]),
            Codes::Charset(charset) => Cow::Owned(charset.letters(bytes)),
            Codes::Glyphs(collection) => {
                collection.and_then(|collection| collection.letters(code)).map_or(Cow::Borrowed(unknown), Cow::Owned)
            }
            Codes::Table(table, charset, collection) => {
                let glyph = table.glyph(code, bytes.len());
                let letters = collection.zip(glyph).and_then(|(collection, glyph)| collection.letters(glyph));
                let letters = letters.or_else(|| charset.map(|charset| charset.letters(bytes)));
                letters.map_or(Cow::Borrowed(unknown), Cow::Owned)
            }
        }
    }
}

/// Repeats `c [w w w]` or `c c w`.
fn glyph_widths(document: &Document, font: &Dictionary, usual: f32) -> BTreeMap<u32, f32> {
    let mut widths = BTreeMap::new();
    let Ok(listed) = font.get_deref(b"W", document).and_then(Object::as_array) else { return widths };
    let resolved =
        |at: usize| listed.get(at).and_then(|value| document.dereference(value).ok()).map(|(_, value)| value);
    let number = |value: &Object| value.as_float().unwrap_or(0.0).clamp(0.0, 65_535.0) as u32;
    let mut at = 0;
    while let (Some(first), Some(second)) = (resolved(at), resolved(at + 1)) {
        let first = number(first);
        if let Ok(list) = second.as_array() {
            for (index, width) in list.iter().take(1_000).enumerate() {
                let width = document.dereference(width).and_then(|(_, width)| width.as_float());
                widths.insert(first + index as u32, width.unwrap_or(usual));
            }
            at += 2;
        } else {
            let width = resolved(at + 2).and_then(|width| width.as_float().ok()).unwrap_or(usual);
            (first..=number(second).min(first + 2_000)).for_each(|code| {
                widths.insert(code, width);
            });
            at += 3;
        }
        // Ranges may repeat, so their number counts as well.
        if widths.len() > 70_000 || at > 20_000 {
            break;
        }
    }
    widths
}
