//! The text of one page in painting order, joined into lines and paragraphs by position.

use std::collections::BTreeMap;
use std::time::Instant;

use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Document, Encoding, Object, ObjectId};

/// Unpacked size of the instructions of a page or form.
const MAX_CONTENT: usize = 8 * 1024 * 1024;
/// Unpacked size of a font's character table.
const MAX_FONT: usize = 2 * 1024 * 1024;
const MAX_FONTS: usize = 200;
/// Deepest nesting of forms.
const MAX_FORMS: usize = 4;
const MAX_SAVED: usize = 64;
/// Smaller letters, in points, count as hidden.
const SMALLEST: f32 = 1.5;

/// Limits on the work for a whole file.
pub(super) struct Budget {
    operations: usize,
    bytes: usize,
    until: Instant,
    spent: bool,
}

impl Budget {
    pub(super) fn new(until: Instant) -> Budget {
        Budget { operations: 3_000_000, bytes: 4_000_000, until, spent: false }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.spent
    }

    fn take_operation(&mut self) -> bool {
        self.operations = self.operations.saturating_sub(1);
        let late = self.operations.is_multiple_of(256) && Instant::now() > self.until;
        self.spent |= self.operations == 0 || self.bytes == 0 || late;
        !self.spent
    }
}

/// A font: its character codes, and its glyph widths in thousandths of the font size.
struct Font<'a> {
    letters: Encoding<'a>,
    widths: BTreeMap<u32, f32>,
    usual: f32,
    two_bytes: bool,
}

/// `[a b c d e f]`: x' = ax + cy + e, y' = bx + dy + f.
#[derive(Clone, Copy, Debug)]
struct Matrix([f32; 6]);

impl Matrix {
    const NONE: Matrix = Matrix([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);

    /// Applies `self` first, then `other`.
    fn then(self, other: Matrix) -> Matrix {
        let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (self.0, other.0);
        Matrix([a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + l])
    }

    fn moved(self, x: f32, y: f32) -> Matrix {
        Matrix([1.0, 0.0, 0.0, 1.0, x, y]).then(self)
    }

    fn of(operands: &[Object]) -> Option<Matrix> {
        let mut numbers = [0.0; 6];
        for (index, number) in numbers.iter_mut().enumerate() {
            *number = operands.get(index)?.as_float().ok()?;
        }
        Some(Matrix(numbers))
    }
}

#[derive(Clone, Copy)]
struct State {
    page: Matrix,
    white: bool,
    size: f32,
    leading: f32,
    spacing: f32,
    word_spacing: f32,
    mode: i64,
}

/// A piece of text with its start and end.
struct Piece {
    text: String,
    x: f32,
    y: f32,
    end: f32,
    size: f32,
    unseen: bool,
}

/// The page's text. Unreadable parts are missing.
pub(super) fn text_of(document: &Document, id: ObjectId, budget: &mut Budget) -> String {
    let fonts = document.get_page_fonts(id).unwrap_or_default();
    let content = document.get_page_content_with_limit(id, MAX_CONTENT).unwrap_or_default();
    let mut resources = Vec::new();
    if let Ok((own, inherited)) = document.get_page_resources(id) {
        resources.extend(own);
        resources.extend(inherited.iter().filter_map(|id| document.get_dictionary(*id).ok()));
    }
    let mut painter = Painter { document, budget, pieces: Vec::new(), painted: false };
    painter.paint(&content, &fonts, &resources, Matrix::NONE, 0);
    let Painter { pieces, .. } = painter;
    let seen = pieces.iter().any(|piece| !piece.unseen && !piece.text.trim().is_empty());
    laid_out(pieces.into_iter().filter(|piece| !seen || !piece.unseen))
}

struct Painter<'a, 'b> {
    document: &'a Document,
    budget: &'b mut Budget,
    pieces: Vec<Piece>,
    /// Something other than text was painted before: white letters may be visible on it.
    painted: bool,
}

impl<'a> Painter<'a, '_> {
    fn paint(
        &mut self,
        content: &[u8],
        fonts: &BTreeMap<Vec<u8>, &Dictionary>,
        resources: &[&'a Dictionary],
        page: Matrix,
        depth: usize,
    ) {
        // A font's own character table is more reliable than its named encoding.
        let document = self.document;
        let bare: Vec<(Vec<u8>, Dictionary)> =
            fonts.iter().take(MAX_FONTS).map(|(name, font)| (name.clone(), without_encoding(font))).collect();
        let read = bare.iter().filter_map(|(name, dictionary)| {
            let letters = dictionary.get_font_encoding_with_limit(document, MAX_FONT).ok()?;
            let (widths, usual, two_bytes) = widths(document, dictionary);
            Some((name.as_slice(), Font { letters, widths, usual, two_bytes }))
        });
        let fonts: BTreeMap<&[u8], Font> = read.collect();
        let start = State { page, white: false, size: 12.0, leading: 0.0, spacing: 0.0, word_spacing: 0.0, mode: 0 };
        let (mut state, mut saved) = (start, Vec::new());
        let (mut line, mut place) = (Matrix::NONE, Matrix::NONE);
        let mut font: Option<&Font> = None;
        for operation in Content::decode_iter(content) {
            let Ok(Operation { operator, operands }) = operation else { return };
            if !self.budget.take_operation() {
                return;
            }
            let number = |index: usize| operands.get(index).and_then(|operand| operand.as_float().ok()).unwrap_or(0.0);
            match operator.as_str() {
                "q" if saved.len() < MAX_SAVED => saved.push(state),
                "Q" => state = saved.pop().unwrap_or(state),
                "cm" => state.page = Matrix::of(&operands).map_or(state.page, |matrix| matrix.then(state.page)),
                "g" => state.white = number(0) > 0.97,
                "rg" | "sc" | "scn" if operands.len() >= 3 => {
                    state.white = (0..3).all(|index| number(index) > 0.97) && operands.len() == 3
                }
                "k" => state.white = (0..4).all(|index| number(index) < 0.03),
                "cs" => state.white = false,
                "f" | "F" | "f*" | "B" | "B*" | "b" | "b*" | "sh" | "BI" => {
                    self.painted |= !state.white || operator == "sh"
                }
                "BT" => (line, place) = (Matrix::NONE, Matrix::NONE),
                "Tf" => {
                    font = operands.first().and_then(|name| name.as_name().ok()).and_then(|name| fonts.get(name));
                    state.size = number(1);
                }
                "TL" => state.leading = number(0),
                "Tc" => state.spacing = number(0),
                "Tw" => state.word_spacing = number(0),
                "Tr" => state.mode = number(0) as i64,
                "Td" | "TD" => {
                    if operator == "TD" {
                        state.leading = -number(1);
                    }
                    line = line.moved(number(0), number(1));
                    place = line;
                }
                "Tm" => {
                    line = Matrix::of(&operands).unwrap_or(line);
                    place = line;
                }
                "T*" => {
                    line = line.moved(0.0, -state.leading);
                    place = line;
                }
                "Tj" | "TJ" | "'" | "\"" => {
                    if operator == "'" || operator == "\"" {
                        line = line.moved(0.0, -state.leading);
                        place = line;
                    }
                    let shown = if operator == "\"" { operands.get(2..).unwrap_or_default() } else { &operands[..] };
                    for operand in shown {
                        self.show(operand, font, &state, &mut place);
                    }
                }
                "Do" => {
                    let name = operands.first().and_then(|name| name.as_name().ok()).unwrap_or_default();
                    self.form(name, resources, &state, depth);
                }
                _ => {}
            }
        }
    }

    /// Paints the named form. A picture only sets `painted`.
    fn form(&mut self, name: &[u8], resources: &[&'a Dictionary], state: &State, depth: usize) {
        let document = self.document;
        let find = |resources: &&'a Dictionary| {
            let all = document.get_dict_in_dict(resources, b"XObject").ok()?;
            document.dereference(all.get(name).ok()?).ok()?.1.as_stream().ok()
        };
        let Some(form) = resources.iter().find_map(find) else { return };
        if !form.dict.get(b"Subtype").and_then(Object::as_name).is_ok_and(|kind| kind == b"Form") {
            self.painted = true;
            return;
        }
        if depth >= MAX_FORMS {
            return;
        }
        let Ok(content) = form.get_plain_content_with_limit(MAX_CONTENT) else { return };
        let matrix = form.dict.get(b"Matrix").and_then(Object::as_array).ok().and_then(|matrix| Matrix::of(matrix));
        let own = document.get_dict_in_dict(&form.dict, b"Resources").ok();
        let own: Vec<&Dictionary> = own.into_iter().chain(resources.iter().copied()).take(8).collect();
        let mut fonts = BTreeMap::new();
        for resources in own.iter().rev() {
            let Ok(listed) = document.get_dict_in_dict(resources, b"Font") else { continue };
            for (name, font) in listed.iter().take(MAX_FONTS) {
                if let Ok((_, Object::Dictionary(font))) = document.dereference(font) {
                    fonts.insert(name.clone(), font);
                }
            }
        }
        let page = matrix.map_or(state.page, |matrix| matrix.then(state.page));
        self.paint(&content, &fonts, &own, page, depth + 1);
    }

    /// Shows a string, or an array of strings and shifts, and advances the position.
    fn show(&mut self, operand: &Object, font: Option<&Font>, state: &State, place: &mut Matrix) {
        match operand {
            Object::Array(parts) => {
                for part in parts {
                    match part.as_float() {
                        Ok(shift) => *place = place.moved(-shift / 1000.0 * state.size, 0.0),
                        Err(_) if matches!(part, Object::String(..)) => self.show(part, font, state, place),
                        Err(_) => {}
                    }
                }
            }
            Object::String(bytes, _) => {
                let Some(font) = font else { return };
                let begin = place.then(state.page).0;
                *place = place.moved(font.width(bytes, state), 0.0);
                let end = place.then(state.page).0;
                let text = font.letters.bytes_to_string(bytes).unwrap_or_default();
                self.budget.bytes = self.budget.bytes.saturating_sub(text.len());
                let [a, b, c, d, ..] = begin;
                let size = state.size.abs() * (c * c + d * d).sqrt().min((a * a + b * b).sqrt());
                let hidden = state.mode == 3 || state.mode == 7 || size < SMALLEST || (state.white && !self.painted);
                self.pieces.push(Piece {
                    text,
                    x: begin[4],
                    y: begin[5],
                    end: end[4],
                    size: size.max(SMALLEST),
                    unseen: hidden,
                });
            }
            _ => {}
        }
    }
}

impl Font<'_> {
    /// Width of a text in text space units.
    fn width(&self, bytes: &[u8], state: &State) -> f32 {
        let width =
            |code: u32| self.widths.get(&code).copied().unwrap_or(self.usual) / 1000.0 * state.size + state.spacing;
        if self.two_bytes {
            bytes.chunks(2).map(|pair| width(pair.iter().fold(0, |code, byte| code * 256 + u32::from(*byte)))).sum()
        } else {
            let words = bytes.iter().filter(|byte| **byte == b' ').count() as f32 * state.word_spacing;
            bytes.iter().map(|byte| width(u32::from(*byte))).sum::<f32>() + words
        }
    }
}

/// The font without its `Encoding`, if it has a `ToUnicode` table.
fn without_encoding(font: &Dictionary) -> Dictionary {
    let mut font = font.clone();
    if font.has(b"ToUnicode") {
        font.remove(b"Encoding");
    }
    font
}

fn widths(document: &Document, font: &Dictionary) -> (BTreeMap<u32, f32>, f32, bool) {
    let array = |font: &Dictionary, name: &[u8]| {
        font.get_deref(name, document).and_then(Object::as_array).cloned().unwrap_or_default()
    };
    let mut widths = BTreeMap::new();
    if !font.get(b"Subtype").and_then(Object::as_name).is_ok_and(|kind| kind == b"Type0") {
        let first = font.get_deref(b"FirstChar", document).and_then(Object::as_i64).unwrap_or(0).clamp(0, 255) as u32;
        for (index, width) in array(font, b"Widths").iter().take(256).enumerate() {
            if let Ok(width) = width.as_float() {
                widths.insert(first + index as u32, width);
            }
        }
        return (widths, 500.0, false);
    }
    let inner = array(font, b"DescendantFonts")
        .first()
        .and_then(|inner| document.dereference(inner).ok())
        .map(|(_, inner)| inner.clone());
    let inner = inner.and_then(|inner| inner.as_dict().cloned().ok()).unwrap_or_default();
    let usual = inner.get_deref(b"DW", document).and_then(Object::as_float).unwrap_or(1000.0);
    // Repeats `c [w w w]` or `c c w`.
    let listed = array(&inner, b"W");
    let mut at = 0;
    while let (Some(first), Some(second)) = (listed.get(at), listed.get(at + 1)) {
        let first = first.as_i64().unwrap_or(0).clamp(0, 65_535) as u32;
        if let Ok(list) = second.as_array() {
            for (index, width) in list.iter().take(1_000).enumerate() {
                widths.insert(first + index as u32, width.as_float().unwrap_or(usual));
            }
            at += 2;
        } else {
            let last = second.as_i64().unwrap_or(0).clamp(0, 65_535) as u32;
            let width = listed.get(at + 2).and_then(|width| width.as_float().ok()).unwrap_or(usual);
            (first..=last.min(first + 2_000)).for_each(|code| {
                widths.insert(code, width);
            });
            at += 3;
        }
        if widths.len() > 70_000 {
            break;
        }
    }
    (widths, usual, true)
}

/// Joins pieces: a gap becomes a space, a line that is nearly full continues in the next one, a larger step starts a
/// paragraph.
fn laid_out(pieces: impl Iterator<Item = Piece>) -> String {
    struct Line {
        text: String,
        y: f32,
        end: f32,
        size: f32,
    }
    let mut lines: Vec<Line> = Vec::new();
    for piece in pieces.filter(|piece| !piece.text.is_empty()) {
        match lines.last_mut() {
            Some(line) if (line.y - piece.y).abs() < 0.4 * piece.size && piece.x >= line.end - piece.size => {
                let gap = piece.x - line.end;
                if gap > 0.18 * piece.size && !line.text.ends_with(' ') && !piece.text.starts_with(' ') {
                    line.text.push(' ');
                }
                line.text.push_str(&piece.text);
                (line.end, line.size) = (piece.end, line.size.max(piece.size));
            }
            _ => lines.push(Line { text: piece.text, y: piece.y, end: piece.end, size: piece.size }),
        }
    }
    lines.retain(|line| !line.text.trim().is_empty());
    let widest = lines.iter().map(|line| line.end).fold(0.0, f32::max);
    let mut text = String::new();
    let mut before: Option<&Line> = None;
    for line in &lines {
        let words = line.text.trim();
        if let Some(before) = before {
            let step = before.y - line.y;
            let same = (before.size - line.size).abs() < 0.15 * line.size.max(before.size);
            let follows = same && step > 0.0 && step < 1.6 * line.size;
            let hyphen = text.ends_with('-') && words.chars().next().is_some_and(char::is_lowercase);
            if follows && hyphen {
                text.pop();
            } else if follows && before.end > 0.7 * widest {
                text.push(' ');
            } else if follows {
                text.push('\n');
            } else {
                text.push_str("\n\n");
            }
        }
        text.push_str(words);
        before = Some(line);
    }
    text
}
