//! The text of one page in painting order, without what nobody sees.

use std::rc::Rc;
use std::time::Instant;

use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Document, Object, ObjectId, Stream};

use super::font::{Font, Fonts};
use super::layers::Layers;
use super::layout::{Piece, is_leftward, laid_out, placed};
use super::space::{Area, Matrix};

/// Unpacked size of the instructions of a page or form.
const MAX_CONTENT: usize = 8 * 1024 * 1024;
/// Unpacked size of the instructions of all forms.
const MAX_CONTENTS: usize = 256 * 1024 * 1024;
/// Deepest nesting of forms.
const MAX_FORMS: usize = 8;
const MAX_SAVED: usize = 1_000;
const MAX_GROUNDS: usize = 1_000;
const MAX_PICTURES: usize = 200;
const MAX_NOTES: usize = 2_000;
/// Deepest nesting of fields.
const MAX_FIELDS: usize = 8;
const MAX_CHOICES: usize = 300;
const MAX_VALUES: usize = 10;
/// Maximum length of the value of a field or of a comment, in bytes.
const MAX_TYPED: usize = 64 * 1024;
/// Smaller letters, in points, count as hidden.
const SMALLEST: f32 = 1.5;
/// Letters less wide, in points, are lines.
const NARROWEST: f32 = 0.3;
/// Colours that differ less in all parts look the same.
const SAME: f32 = 0.04;
/// Letters more transparent than this are not seen.
const FAINT: f32 = 0.05;
/// Most letters beside a scan, such as a stamp, with which its recognised text is still read.
const MAX_STAMP: usize = 300;

/// What is known of a whole file while its pages are read.
pub(super) struct Reader<'a> {
    document: &'a Document,
    layers: Layers<'a>,
    fonts: Fonts<'a>,
    fields: Option<&'a Dictionary>,
    pub(super) budget: Budget,
}

impl<'a> Reader<'a> {
    pub(super) fn new(document: &'a Document, until: Instant) -> Reader<'a> {
        let budget = Budget { operations: 3_000_000, bytes: 4_000_000, unpacked: MAX_CONTENTS, until, spent: false };
        let fields = document.catalog().and_then(|catalog| document.get_dict_in_dict(catalog, b"AcroForm")).ok();
        Reader { document, layers: Layers::of(document), fonts: Fonts::new(document), fields, budget }
    }
}

/// Limits on the work for a whole file.
pub(super) struct Budget {
    operations: usize,
    bytes: usize,
    unpacked: usize,
    until: Instant,
    spent: bool,
}

impl Budget {
    pub(super) fn is_spent(&self) -> bool {
        self.spent
    }

    fn take_operation(&mut self) -> bool {
        self.operations = self.operations.saturating_sub(1);
        let late = self.operations.is_multiple_of(256) && Instant::now() > self.until;
        self.spent |= self.operations == 0 || self.bytes == 0 || late;
        !self.spent
    }

    fn take_content(&mut self, length: usize) -> bool {
        self.unpacked = self.unpacked.saturating_sub(length);
        self.spent |= self.unpacked == 0 || Instant::now() > self.until;
        !self.spent
    }
}

/// Red, green and blue from 0 to 1. None: not known.
type Colour = Option<[f32; 3]>;

const BLACK: Colour = Some([0.0; 3]);
const WHITE: Colour = Some([1.0; 3]);

/// What the numbers of a colour mean.
#[derive(Clone, Copy, PartialEq)]
enum Space {
    /// Grey; red, green and blue; or cyan, magenta, yellow and black.
    Plain,
    /// Amounts of named inks, of which no more is known than that none of them leaves the paper white.
    Inks,
    /// Lightness from 0 to 100, and two differences from grey.
    Lab,
    Unknown,
}

#[derive(Clone, Copy)]
struct Paint {
    colour: Colour,
    space: Space,
    alpha: f32,
}

impl Paint {
    const USUAL: Paint = Paint { colour: BLACK, space: Space::Plain, alpha: 1.0 };

    /// Takes the colour that these operands set.
    fn set(&mut self, operands: &[Object]) {
        let mut numbers = Vec::with_capacity(4);
        for operand in operands.iter().take(5) {
            match operand.as_float() {
                Ok(number) => numbers.push(number),
                Err(_) => numbers.clear(),
            }
        }
        if self.space == Space::Plain {
            numbers.iter_mut().for_each(|number| *number = number.clamp(0.0, 1.0));
        }
        self.colour = match *numbers.as_slice() {
            _ if self.space == Space::Unknown => None,
            [light, a, b] if self.space == Space::Lab && a.abs() < 2.0 && b.abs() < 2.0 => {
                Some([(light / 100.0).clamp(0.0, 1.0); 3])
            }
            _ if self.space == Space::Inks && !numbers.is_empty() && numbers.iter().all(|ink| *ink < SAME) => WHITE,
            _ if self.space != Space::Plain => None,
            [grey] => Some([grey; 3]),
            [red, green, blue] => Some([red, green, blue]),
            [cyan, magenta, yellow, black] => Some([cyan, magenta, yellow].map(|ink| (1.0 - ink) * (1.0 - black))),
            _ => None,
        };
    }

    fn is_seen_on(&self, ground: Colour) -> bool {
        let same = |(one, other): ([f32; 3], [f32; 3])| (0..3).all(|part| (one[part] - other[part]).abs() < SAME);
        self.alpha > FAINT && !self.colour.zip(ground).is_some_and(same)
    }
}

#[derive(Clone)]
struct State {
    page: Matrix,
    /// What lies outside is cut off.
    clip: Area,
    /// The clip has exactly this shape.
    clip_is_box: bool,
    fill: Paint,
    stroke: Paint,
    line_width: f32,
    /// Painting mixes with what lies below it.
    mixes: bool,
    /// Alpha and mixing of the transparency groups around, which content cannot undo.
    group_alpha: f32,
    group_mixes: bool,
    font: Option<Rc<Font>>,
    size: f32,
    leading: f32,
    spacing: f32,
    word_spacing: f32,
    stretch: f32,
    rise: f32,
    mode: i64,
    /// The first piece of text that is part of the clip.
    outlines: Option<usize>,
}

impl State {
    fn new(page: Matrix, clip: Area) -> State {
        State {
            page,
            clip,
            clip_is_box: true,
            fill: Paint::USUAL,
            stroke: Paint::USUAL,
            line_width: 1.0,
            mixes: false,
            group_alpha: 1.0,
            group_mixes: false,
            font: None,
            size: 12.0,
            leading: 0.0,
            spacing: 0.0,
            word_spacing: 0.0,
            stretch: 1.0,
            rise: 0.0,
            mode: 0,
            outlines: None,
        }
    }
}

/// A painted area, under what is painted later.
struct Ground {
    area: Area,
    colour: Colour,
    /// It is a picture through which nothing is seen.
    picture: bool,
}

impl Ground {
    /// Lines through letters, or parts of a pattern below them, are thinner than the letters.
    fn is_thin_for(&self, size: f32) -> bool {
        self.area.width().min(self.area.height()) < 0.6 * size
    }
}

/// The path that is being drawn.
#[derive(Default)]
struct Path {
    area: Option<Area>,
    /// It began as one upright box.
    begins_as_box: bool,
    /// The ends of its first lines.
    corners: Vec<(f32, f32)>,
    /// There is more to it than a box or a few lines.
    more: bool,
    clips: bool,
}

/// How well a piece of text is seen.
#[derive(Clone, Copy, PartialEq)]
enum Sight {
    Seen,
    /// Drawn without ink, as text that was recognised in a picture is.
    Inkless,
    /// Its shape is a clip, through which what is painted next is seen.
    Outline,
    Hidden,
}

struct Found {
    piece: Piece,
    sight: Sight,
    /// Where its beginning, middle and end lie on the page.
    spots: [(f32, f32); 3],
    /// Number of areas painted before it.
    grounds: usize,
}

/// The page's text. Unreadable parts are missing.
pub(super) fn text_of(reader: &mut Reader, id: ObjectId) -> String {
    let document = reader.document;
    if !reader.budget.take_content(0) {
        return String::new();
    }
    let content = document.get_page_content_with_limit(id, MAX_CONTENT).unwrap_or_default();
    let mut resources = Vec::new();
    if let Ok((own, inherited)) = document.get_page_resources(id) {
        resources.extend(own);
        resources.extend(inherited.iter().take(8).filter_map(|id| document.get_dictionary(*id).ok()));
    }
    let sheet = sheet(document, id);
    let unit = document.get_dictionary(id).and_then(|page| page.get_deref(b"UserUnit", document)?.as_float());
    let unit = unit.ok().filter(|unit| *unit > 0.0 && unit.is_finite()).unwrap_or(1.0);
    let mut painter = Painter {
        reader,
        found: Vec::new(),
        grounds: Vec::new(),
        pictures: Vec::new(),
        covered: 0.0,
        smallest: SMALLEST / unit,
    };
    painter.paint(&content, &resources, State::new(Matrix::NONE, sheet), 0);
    let mut own = std::mem::take(&mut painter.found);
    let notes = painter.notes(id, sheet);
    let Painter { reader, pictures, covered, grounds, .. } = painter;
    let mut compared = 0;
    for found in &mut own {
        if compared % 1_024 == 0 && !reader.budget.take_content(0) {
            break;
        }
        found.sight = under(found, &grounds);
        compared += 1;
    }
    // What could not be compared in time may be covered.
    own.truncate(compared);
    let seen: usize = own
        .iter()
        .filter(|found| found.sight == Sight::Seen)
        .map(|found| found.piece.text.trim().chars().count())
        .sum();
    // The text of a scan lies over its picture, with nothing else on the page but perhaps a stamp.
    let part = covered / sheet.size().max(1.0);
    let scan = (seen == 0 && part > 0.2) || (seen <= MAX_STAMP && part > 0.5);
    let is_read = |found: &Found| match found.sight {
        Sight::Seen => true,
        Sight::Inkless | Sight::Outline => scan && pictures.iter().any(|picture| picture.holds(found.spots[1])),
        Sight::Hidden => false,
    };
    let pieces = own.into_iter().filter(is_read).map(|found| found.piece).collect();
    laid_out(placed(pieces, notes).into_iter())
}

/// How well a piece of text is seen below what was painted over it later.
fn under(found: &Found, grounds: &[Ground]) -> Sight {
    let later = grounds.get(found.grounds..).unwrap_or_default();
    let mut over = later.iter().rev().filter(|ground| {
        found.spots.iter().all(|spot| ground.area.holds(*spot)) && !ground.is_thin_for(found.piece.size)
    });
    match (found.sight, over.next()) {
        (_, Some(Ground { colour: Some(_), .. })) => Sight::Hidden,
        // The picture of a scan may come after its recognised text.
        (_, Some(Ground { picture: true, .. })) if found.sight == Sight::Seen => Sight::Inkless,
        (Sight::Seen, Some(_)) if over.any(|ground| ground.colour.is_some()) => Sight::Hidden,
        (sight, _) => sight,
    }
}

/// The part of the page that is shown.
fn sheet(document: &Document, id: ObjectId) -> Area {
    let (mut crop, mut media) = (None, None);
    let mut node = document.get_dictionary(id).ok();
    // Both boxes may be those of an ancestor.
    for _ in 0..32 {
        let Some(dictionary) = node else { break };
        let read = |name: &[u8]| Area::of(document, dictionary.get(name).ok()?);
        crop = crop.or_else(|| read(b"CropBox"));
        media = media.or_else(|| read(b"MediaBox"));
        node = document.get_dict_in_dict(dictionary, b"Parent").ok();
    }
    let media = media.filter(|area| area.size() > 0.0).unwrap_or(Area::new(0.0, 0.0, 612.0, 792.0));
    let crop = crop.map(|crop| crop.within(media)).filter(|area| area.size() > 0.0);
    crop.unwrap_or(media)
}

struct Painter<'a, 'r> {
    reader: &'r mut Reader<'a>,
    found: Vec<Found>,
    grounds: Vec<Ground>,
    pictures: Vec<Area>,
    /// Area of all pictures together.
    covered: f32,
    /// Smaller letters count as hidden.
    smallest: f32,
}

impl<'a> Painter<'a, '_> {
    fn paint(&mut self, content: &[u8], resources: &[&'a Dictionary], start: State, depth: usize) {
        // States that are saved and, beyond the limit, only counted.
        let (mut state, mut saved, mut unsaved) = (start, Vec::new(), 0_usize);
        let (mut line, mut place) = (Matrix::NONE, Matrix::NONE);
        let mut path = Path::default();
        // Nesting of marked content, and the nesting at which a hidden layer began.
        let (mut marks, mut hidden_since): (usize, Option<usize>) = (0, None);
        for operation in Content::decode_iter(content) {
            let Ok(Operation { operator, operands }) = operation else { return };
            if !self.reader.budget.take_operation() {
                return;
            }
            let number = |index: usize| operands.get(index).and_then(|operand| operand.as_float().ok()).unwrap_or(0.0);
            let name = |index: usize| operands.get(index).and_then(|name| name.as_name().ok()).unwrap_or_default();
            let hidden = hidden_since.is_some();
            match operator.as_str() {
                "q" if saved.len() < MAX_SAVED => saved.push(state.clone()),
                "q" => unsaved += 1,
                "Q" if unsaved > 0 => unsaved -= 1,
                "Q" => state = saved.pop().unwrap_or(state),
                "cm" => state.page = Matrix::of(&operands).map_or(state.page, |matrix| matrix.then(state.page)),
                "w" => state.line_width = number(0),
                "gs" => self.set_state(name(0), resources, &mut state),
                "BMC" | "BDC" => {
                    marks += 1;
                    if !hidden && operator == "BDC" && name(0) == b"OC" && self.is_hidden(name(1), resources) {
                        hidden_since = Some(marks);
                    }
                }
                "EMC" => {
                    if hidden_since == Some(marks) {
                        hidden_since = None;
                    }
                    marks = marks.saturating_sub(1);
                }

                "g" | "rg" | "k" => {
                    state.fill.space = Space::Plain;
                    state.fill.set(&operands);
                }
                "G" | "RG" | "K" => {
                    state.stroke.space = Space::Plain;
                    state.stroke.set(&operands);
                }
                "sc" | "scn" => state.fill.set(&operands),
                "SC" | "SCN" => state.stroke.set(&operands),
                "cs" | "CS" => {
                    let paint = if operator == "cs" { &mut state.fill } else { &mut state.stroke };
                    paint.space = self.space(name(0), resources);
                    paint.colour = BLACK.filter(|_| matches!(paint.space, Space::Plain | Space::Lab));
                }

                "m" | "l" => path.add(&state, &[(number(0), number(1))]),
                "c" => path.add(&state, &[(number(0), number(1)), (number(2), number(3)), (number(4), number(5))]),
                "v" | "y" => path.add(&state, &[(number(0), number(1)), (number(2), number(3))]),
                "re" => path.add_box(&state, number(0), number(1), number(2), number(3)),
                "W" | "W*" => path.clips = true,
                "f" | "F" | "f*" | "B" | "B*" | "b" | "b*" | "S" | "s" | "n" => {
                    let (fills, strokes) = match operator.as_str() {
                        "n" => (false, false),
                        "S" | "s" => (false, true),
                        "f" | "F" | "f*" => (true, false),
                        _ => (true, true),
                    };
                    if !hidden {
                        self.paint_path(&path, &state, fills, strokes);
                    }
                    path.close(&mut state);
                }
                "sh" if !hidden => {
                    self.show_outlines(&state);
                    self.add_ground(state.clip, None, false);
                }
                "BI" if !hidden => {
                    let picture = operands.first().and_then(|picture| picture.as_stream().ok());
                    let full =
                        picture.is_some_and(|picture| !picture.dict.has(b"IM") && !picture.dict.has(b"ImageMask"));
                    self.picture(&state, full);
                }

                "BT" => (line, place) = (Matrix::NONE, Matrix::NONE),
                "Tf" => {
                    state.font = Some(self.font(name(0), resources).unwrap_or_else(|| self.reader.fonts.usual()));
                    state.size = number(1);
                }
                "TL" => state.leading = number(0),
                "Tc" => state.spacing = number(0),
                "Tw" => state.word_spacing = number(0),
                "Tz" => state.stretch = number(0) / 100.0,
                "Ts" => state.rise = number(0),
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
                    if operator == "\"" {
                        (state.word_spacing, state.spacing) = (number(0), number(1));
                    }
                    if operator == "'" || operator == "\"" {
                        line = line.moved(0.0, -state.leading);
                        place = line;
                    }
                    let shown = if operator == "\"" { operands.get(2..).unwrap_or_default() } else { &operands[..] };
                    let before = self.found.len();
                    for operand in shown {
                        self.show(operand, &state, hidden, &mut place);
                    }
                    if state.mode == 7 {
                        state.outlines.get_or_insert(before);
                    }
                }
                "Do" if !hidden => self.paint_object(name(0), resources, &state, depth),
                _ => {}
            }
        }
    }

    fn resource(&self, kind: &[u8], name: &[u8], resources: &[&'a Dictionary]) -> Option<&'a Object> {
        let document = self.reader.document;
        resources.iter().find_map(|resources| document.get_dict_in_dict(resources, kind).ok()?.get(name).ok())
    }

    fn font(&mut self, name: &[u8], resources: &[&'a Dictionary]) -> Option<Rc<Font>> {
        let font = self.resource(b"Font", name, resources)?;
        self.reader.fonts.get(self.reader.document.dereference(font).ok()?.1.as_dict().ok()?)
    }

    fn is_hidden(&self, name: &[u8], resources: &[&'a Dictionary]) -> bool {
        self.resource(b"Properties", name, resources).is_some_and(|layer| self.reader.layers.hides(layer))
    }

    /// What the numbers of a named colour space mean.
    fn space(&self, name: &[u8], resources: &[&'a Dictionary]) -> Space {
        if matches!(name, b"DeviceGray" | b"DeviceRGB" | b"DeviceCMYK") {
            return Space::Plain;
        }
        let document = self.reader.document;
        let Some(space) = self.resource(b"ColorSpace", name, resources) else { return Space::Unknown };
        let space = document.dereference(space).map(|(_, space)| space);
        let name = space.and_then(|space| match space {
            Object::Array(parts) => parts.first().map_or(Ok(&b""[..]), Object::as_name),
            space => space.as_name(),
        });
        match name {
            Ok(b"DeviceGray" | b"DeviceRGB" | b"DeviceCMYK" | b"ICCBased" | b"CalRGB" | b"CalGray") => Space::Plain,
            Ok(b"Separation" | b"DeviceN") => Space::Inks,
            Ok(b"Lab") => Space::Lab,
            _ => Space::Unknown,
        }
    }

    /// Takes the named graphics state.
    fn set_state(&mut self, name: &[u8], resources: &[&'a Dictionary], state: &mut State) {
        let document = self.reader.document;
        let Some(found) = self.resource(b"ExtGState", name, resources) else { return };
        let Ok(found) = document.dereference(found).and_then(|(_, found)| found.as_dict()) else { return };
        let number = |name: &[u8]| found.get_deref(name, document).and_then(Object::as_float).ok();
        let alpha = |name: &[u8]| number(name).map(|alpha| alpha * state.group_alpha);
        let (fill, stroke) = (alpha(b"ca"), alpha(b"CA"));
        state.fill.alpha = fill.unwrap_or(state.fill.alpha);
        state.stroke.alpha = stroke.unwrap_or(state.stroke.alpha);
        state.line_width = number(b"LW").unwrap_or(state.line_width);
        for (name, plain) in [(&b"BM"[..], &[&b"Normal"[..], b"Compatible"][..]), (b"SMask", &[b"None"])] {
            if let Ok(value) = found.get_deref(name, document) {
                state.mixes = state.group_mixes || !value.as_name().is_ok_and(|value| plain.contains(&value));
            }
        }
        if let Ok([font, size]) = found.get_deref(b"Font", document).and_then(Object::as_array).map(Vec::as_slice)
            && let Ok((_, Object::Dictionary(font))) = document.dereference(font)
        {
            state.font = self.reader.fonts.get(font);
            state.size = size.as_float().unwrap_or(state.size);
        }
    }

    fn paint_path(&mut self, path: &Path, state: &State, fills: bool, strokes: bool) {
        let Some(area) = path.area else { return };
        if fills && state.fill.is_seen_on(WHITE) {
            self.show_outlines(state);
        }
        if fills && state.fill.alpha > 0.0 {
            let clear = state.mixes || state.outlines.is_some();
            let certain = path.is_box() && state.clip_is_box && state.fill.alpha >= 1.0 && !clear;
            self.add_ground(area.within(state.clip), state.fill.colour.filter(|_| certain), false);
        }
        // Bars are often drawn as thick lines.
        let width = state.line_width * state.page.scale();
        if strokes && width > 4.0 && state.stroke.alpha > 0.0 && state.stroke.is_seen_on(WHITE) {
            self.add_ground(area.grown(width / 2.0).within(state.clip), None, false);
        }
    }

    /// Something is painted through the letters that are part of the clip.
    fn show_outlines(&mut self, state: &State) {
        let Some(first) = state.outlines else { return };
        for found in self.found.iter_mut().skip(first).filter(|found| found.sight == Sight::Outline) {
            found.sight = Sight::Seen;
        }
    }

    fn add_ground(&mut self, area: Area, colour: Colour, picture: bool) {
        if area.size() <= 0.0 {
            return;
        }
        // Of too many areas no more is known than that something is there.
        let last = if self.grounds.len() < MAX_GROUNDS { None } else { self.grounds.pop() };
        self.grounds.push(match last {
            Some(last) => Ground { area: last.area.and(area), colour: None, picture: false },
            None => Ground { area, colour, picture },
        });
    }

    /// Paints a picture in the unit square. Whether all of it is painted.
    fn picture(&mut self, state: &State, full: bool) {
        if state.fill.alpha <= FAINT {
            return;
        }
        self.show_outlines(state);
        let area = Area::new(0.0, 0.0, 1.0, 1.0).under(state.page).within(state.clip);
        let clear = state.fill.alpha < 1.0 || state.mixes || state.outlines.is_some();
        let full = full && !clear && state.clip_is_box && state.page.is_upright();
        self.add_ground(area, None, full);
        self.covered += area.size().max(0.0);
        let last = if self.pictures.len() < MAX_PICTURES { None } else { self.pictures.pop() };
        self.pictures.push(last.map_or(area, |last| last.and(area)));
    }

    /// Paints the named picture or form.
    fn paint_object(&mut self, name: &[u8], resources: &[&'a Dictionary], state: &State, depth: usize) {
        let document = self.reader.document;
        let object = self.resource(b"XObject", name, resources).and_then(|object| document.dereference(object).ok());
        let Some(object) = object.and_then(|(_, object)| object.as_stream().ok()) else { return };
        if object.dict.get(b"OC").is_ok_and(|layer| self.reader.layers.hides(layer)) {
            return;
        }
        match object.dict.get_deref(b"Subtype", document).and_then(Object::as_name) {
            Ok(b"Form") => self.form(object, resources, state.clone(), depth),
            _ => {
                let masks: [&[u8]; 4] = [b"SMask", b"Mask", b"ImageMask", b"SMaskInData"];
                self.picture(state, !masks.iter().any(|mask| object.dict.has(mask)));
            }
        }
    }

    fn form(&mut self, form: &'a Stream, resources: &[&'a Dictionary], mut state: State, depth: usize) {
        let document = self.reader.document;
        if depth >= MAX_FORMS {
            return;
        }
        let Ok(content) = form.get_plain_content_with_limit(MAX_CONTENT) else { return };
        if !self.reader.budget.take_content(content.len()) {
            return;
        }
        let own = document.get_dict_in_dict(&form.dict, b"Resources").ok();
        let own: Vec<&Dictionary> = own.into_iter().chain(resources.iter().copied()).take(8).collect();
        state.page = matrix_of(document, form).then(state.page);
        if form.dict.has(b"Group") {
            state.stroke.alpha = state.fill.alpha;
            (state.group_alpha, state.group_mixes) = (state.fill.alpha, state.mixes);
        }
        if let Some(bounds) = form.dict.get(b"BBox").ok().and_then(|bounds| Area::of(document, bounds)) {
            state.clip = bounds.under(state.page).within(state.clip);
            state.clip_is_box &= state.page.is_upright();
        }
        self.paint(&content, &own, state, depth + 1);
    }

    /// The text of what was added to the page: filled-in fields and typed comments.
    fn notes(&mut self, id: ObjectId, sheet: Area) -> Vec<Vec<Piece>> {
        let document = self.reader.document;
        let annotations = document.get_page_annotations(id).unwrap_or_default();
        let fields = self.reader.fields;
        let shared = fields.and_then(|fields| document.get_dict_in_dict(fields, b"DR").ok());
        let shared: Vec<&Dictionary> = shared.into_iter().collect();
        // What the fields show may be older than their values.
        let renewed = fields.and_then(|fields| fields.get_deref(b"NeedAppearances", document).ok());
        let renewed = renewed.is_some_and(|renewed| renewed.as_bool().unwrap_or(false));
        let mut notes = Vec::new();
        for annotation in annotations.into_iter().take(MAX_NOTES) {
            let flags = annotation.get_deref(b"F", document).and_then(Object::as_i64).unwrap_or(0);
            let kind = annotation.get_deref(b"Subtype", document).and_then(Object::as_name).unwrap_or_default();
            let layered = annotation.get(b"OC").is_ok_and(|layer| self.reader.layers.hides(layer));
            // Hidden, or not to be viewed.
            if flags & (2 | 32) != 0 || layered || kind == b"Popup" || !self.reader.budget.take_operation() {
                continue;
            }
            let Some(bounds) = annotation.get(b"Rect").ok().and_then(|bounds| Area::of(document, bounds)) else {
                continue;
            };
            let shown = bounds.within(sheet);
            if shown.size() <= 0.0 {
                continue;
            }
            let form = appearance(document, annotation);
            let renewed = renewed && kind == b"Widget";
            let text = if form.is_none() || renewed { typed(document, annotation, kind) } else { None };
            if let Some(form) = form.filter(|_| text.is_none()) {
                self.found.clear();
                let below = self.grounds.len();
                let inner = form.dict.get(b"BBox").ok().and_then(|bounds| Area::of(document, bounds)).unwrap_or(bounds);
                let fitted = inner.under(matrix_of(document, form)).fitted_to(bounds);
                self.form(form, &shared, State::new(fitted, sheet), 0);
                // Viewers mix the colour of a marker with the page, whatever the file says.
                if kind == b"Highlight" {
                    self.grounds.truncate(below);
                }
                let seen = self.found.drain(..).filter(|found| found.sight == Sight::Seen);
                notes.push(seen.map(|found| found.piece).collect());
            } else if let Some(text) = text {
                let size = (bounds.height() * 0.7).clamp(4.0, 12.0);
                let (x, y) = (bounds.left(), bounds.bottom() + (bounds.height() - size).max(0.0) / 2.0 + 0.2 * size);
                self.reader.budget.bytes = self.reader.budget.bytes.saturating_sub(text.len());
                notes.push(vec![Piece { text, angle: 0, x, y, end: x + bounds.width(), size }]);
            }
        }
        notes
    }

    /// Shows a string, or an array of strings and shifts, and advances the position.
    fn show(&mut self, operand: &Object, state: &State, hidden: bool, place: &mut Matrix) {
        let Some(font) = &state.font else { return };
        match operand {
            Object::Array(parts) => {
                for part in parts {
                    match part.as_float() {
                        Ok(shift) => {
                            let shift = -shift / 1000.0 * state.size;
                            *place = match font.vertical {
                                true => place.moved(0.0, shift),
                                false => place.moved(shift * state.stretch, 0.0),
                            };
                        }
                        Err(_) if matches!(part, Object::String(..)) => self.show(part, state, hidden, place),
                        Err(_) => {}
                    }
                }
            }
            Object::String(bytes, _) => self.show_string(bytes, font, state, hidden, place),
            _ => {}
        }
    }

    fn show_string(&mut self, bytes: &[u8], font: &Font, state: &State, hidden: bool, place: &mut Matrix) {
        let size = state.size * font.height;
        let turned = place.then(state.page).0;
        let [a, b, c, d, ..] = turned;
        let wide = (a * a + b * b).sqrt();
        let tall = size.abs() * (c * c + d * d).sqrt().min(wide);
        let narrow = size.abs() * wide * state.stretch.abs() < NARROWEST;
        let mut run = Run { text: String::new(), begin: *place, cut: false };
        let first_spot = place.moved(0.0, state.rise + 0.3 * size).then(state.page).origin();
        // Whether the ink is seen is known for a string as a whole, whether it is cut off for each letter.
        let mut ends = Vec::new();
        let (mut rest, mut middles) = (bytes, None);
        while !rest.is_empty() && self.reader.budget.bytes > 0 {
            let shown = font.next(rest);
            let mut width = shown.width * font.unit * state.size + state.spacing;
            if shown.length == 1 && rest[0] == b' ' {
                width += state.word_spacing;
            }
            let (x, y) = if font.vertical { (0.0, -width) } else { (width * state.stretch, 0.0) };
            let middle = place.moved(x / 2.0, y / 2.0 + state.rise + 0.3 * size).then(state.page).origin();
            middles = Some(middles.map_or((middle, middle), |(first, _)| (first, middle)));
            // Guessed widths do not say where a letter stands, so the first one counts for all.
            let cut = if font.measured || rest.len() == bytes.len() { !state.clip.holds(middle) } else { run.cut };
            if cut != run.cut && !run.text.is_empty() {
                let text = std::mem::take(&mut run.text);
                ends.push((Run { text, ..run }, *place));
                run.begin = *place;
            }
            run.cut = cut;
            run.push(&shown.letters);
            self.reader.budget.bytes = self.reader.budget.bytes.saturating_sub(shown.letters.len().max(1));
            *place = place.moved(x, y);
            rest = &rest[shown.length.max(1).min(rest.len())..];
        }
        ends.push((run, *place));
        let last_spot = place.moved(0.0, state.rise + 0.3 * size).then(state.page).origin();
        let middle_spot = ((first_spot.0 + last_spot.0) / 2.0, (first_spot.1 + last_spot.1) / 2.0);
        let sight = match state.mode {
            _ if hidden || narrow || tall < self.smallest || !tall.is_finite() => Sight::Hidden,
            3 => Sight::Inkless,
            7 => Sight::Outline,
            mode => {
                let (fills, strokes) = (!matches!(mode, 1 | 5), matches!(mode, 1 | 2 | 5 | 6));
                let seen = [first_spot, middle_spot, last_spot].into_iter().any(|spot| {
                    let is_seen_on = |colour: Colour| {
                        (fills && state.fill.is_seen_on(colour)) || (strokes && state.stroke.is_seen_on(colour))
                    };
                    for ground in self.grounds.iter().rev().filter(|ground| ground.area.holds(spot)) {
                        if is_seen_on(ground.colour) {
                            return true;
                        }
                        if !ground.is_thin_for(tall) {
                            return false;
                        }
                    }
                    is_seen_on(WHITE)
                });
                let clear = state.fill.alpha <= FAINT && fills || state.stroke.alpha <= FAINT && strokes;
                match (seen, clear) {
                    (true, _) => Sight::Seen,
                    // Some programs write recognised text in this way.
                    (false, true) => Sight::Inkless,
                    (false, false) => Sight::Hidden,
                }
            }
        };
        let backward = state.size * state.stretch < 0.0;
        let way = match (font.vertical, backward) {
            (true, _) => (-c, -d),
            (false, true) => (-a, -b),
            (false, false) => (a, b),
        };
        let (angle, way) = direction(way);
        let along = |place: &Matrix| {
            let (x, y) = place.then(state.page).origin();
            (x * way.0 + y * way.1, y * way.0 - x * way.1)
        };
        for (run, end) in ends {
            let sight = if run.cut { Sight::Hidden } else { sight };
            if run.text.is_empty() || sight == Sight::Hidden {
                continue;
            }
            let (x, y) = along(&run.begin);
            let piece = Piece { text: run.text, angle, x, y, end: along(&end).0, size: tall.max(self.smallest) };
            let (first, last) = middles.unwrap_or((middle_spot, middle_spot));
            self.found.push(Found { piece, sight, spots: [first, middle_spot, last], grounds: self.grounds.len() });
        }
    }
}

/// Letters of a string that are all cut off or all not.
struct Run {
    text: String,
    begin: Matrix,
    cut: bool,
}

impl Run {
    fn push(&mut self, letters: &str) {
        // Lines from right to left are turned later, letter by letter. Letters of one glyph are in reading order already.
        if letters.chars().nth(1).is_some() && letters.chars().any(is_leftward) {
            self.text.extend(letters.chars().rev());
        } else {
            self.text.push_str(letters);
        }
    }
}

impl Path {
    fn add(&mut self, state: &State, points: &[(f32, f32)]) {
        self.more |= self.begins_as_box || points.len() > 1 || self.corners.len() > 4;
        for (x, y) in points {
            let (x, y) = state.page.apply(*x, *y);
            if !self.more {
                self.corners.push((x, y));
            }
            let point = Area::new(x, y, x, y);
            self.area = Some(self.area.map_or(point, |area| area.and(point)));
        }
    }

    fn add_box(&mut self, state: &State, x: f32, y: f32, width: f32, height: f32) {
        let area = Area::new(x, y, x + width, y + height).under(state.page);
        self.begins_as_box = self.area.is_none() && state.page.is_upright();
        self.more |= !self.begins_as_box;
        self.area = Some(self.area.map_or(area, |before| before.and(area)));
    }

    /// Whether it is one upright box and nothing else.
    fn is_box(&self) -> bool {
        let corners = match self.corners.as_slice() {
            _ if self.more => return false,
            [] => return self.begins_as_box,
            [corners @ .., last] if corners.len() == 4 && corners.first() == Some(last) => corners,
            corners => corners,
        };
        let &[first, second, third, fourth] = corners else { return false };
        let level = |one: (f32, f32), other: (f32, f32)| (one.1 - other.1).abs() < 0.1;
        let upright = |one: (f32, f32), other: (f32, f32)| (one.0 - other.0).abs() < 0.1;
        (level(first, second) && upright(second, third) && level(third, fourth) && upright(fourth, first))
            || (upright(first, second) && level(second, third) && upright(third, fourth) && level(fourth, first))
    }

    /// Ends the path; it may become the clip.
    fn close(&mut self, state: &mut State) {
        if self.clips {
            state.clip = self.area.map_or(Area::NOTHING, |area| area.within(state.clip));
            state.clip_is_box &= self.is_box();
        }
        *self = Path::default();
    }
}

fn matrix_of(document: &Document, form: &Stream) -> Matrix {
    let matrix = form.dict.get_deref(b"Matrix", document).and_then(Object::as_array).ok();
    matrix.and_then(|matrix| Matrix::of(matrix)).unwrap_or(Matrix::NONE)
}

/// What an annotation shows in its present state.
fn appearance<'a>(document: &'a Document, annotation: &'a Dictionary) -> Option<&'a Stream> {
    let all = document.get_dict_in_dict(annotation, b"AP").ok()?;
    match all.get_deref(b"N", document).ok()? {
        Object::Stream(form) => Some(form),
        Object::Dictionary(states) => {
            let state = annotation.get_deref(b"AS", document).and_then(Object::as_name).ok()?;
            states.get_deref(state, document).and_then(Object::as_stream).ok()
        }
        _ => None,
    }
}

/// What a viewer writes for an annotation that does not say how it looks.
fn typed<'a>(document: &'a Document, annotation: &'a Dictionary, kind: &[u8]) -> Option<String> {
    let string = |value: &'a Object| -> Option<&'a Object> {
        let value = document.dereference(value).ok()?.1;
        value.as_str().is_ok_and(|text| text.len() <= MAX_TYPED).then_some(value)
    };
    let text = |value: &'a Object| lopdf::decode_text_string(string(value)?).ok();
    let text = match kind {
        b"FreeText" => text(annotation.get(b"Contents").ok()?)?,
        b"Widget" => {
            // A field and its widget may be two objects, and fields may be parts of others.
            let inherited = |name: &[u8]| {
                let mut field = Some(annotation);
                for _ in 0..MAX_FIELDS {
                    if let Ok(value) = field?.get_deref(name, document) {
                        return Some(value);
                    }
                    field = document.get_dict_in_dict(field?, b"Parent").ok();
                }
                None
            };
            let field = inherited(b"FT")?.as_name().ok()?;
            let flags = inherited(b"Ff").and_then(|flags| flags.as_i64().ok()).unwrap_or(0);
            let password = flags & (1 << 13) != 0;
            let value = inherited(b"V")?;
            match field {
                b"Tx" if !password => text(value)?,
                b"Ch" => {
                    let choices = inherited(b"Opt").and_then(|choices| choices.as_array().ok());
                    let shown = |value: &'a Object| {
                        let value = string(value)?;
                        // A choice is what is shown, or a pair of its value and what is shown.
                        let mut pairs = choices.into_iter().flatten().take(MAX_CHOICES).filter_map(|choice| {
                            let pair = document.dereference(choice).ok()?.1.as_array().ok()?;
                            Some((string(pair.first()?)?, pair.get(1)?))
                        });
                        let found = pairs.find(|(own, _)| own.as_str().ok() == value.as_str().ok());
                        text(found.map_or(value, |(_, shown)| shown))
                    };
                    match value {
                        Object::Array(values) => {
                            values.iter().take(MAX_VALUES).filter_map(shown).collect::<Vec<String>>().join(", ")
                        }
                        value => shown(value)?,
                    }
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(text).filter(|text| !text.trim().is_empty())
}

/// A direction in degrees and as a vector. Nearly level and nearly upright lines are level and upright.
fn direction((x, y): (f32, f32)) -> (i32, (f32, f32)) {
    let degrees = y.atan2(x).to_degrees();
    let degrees = if degrees.is_finite() { degrees.round() as i32 } else { 0 };
    let quarter = (degrees as f32 / 90.0).round() as i32 * 90;
    let degrees = if (degrees - quarter).abs() <= 2 { quarter } else { degrees };
    match degrees.rem_euclid(360) {
        0 => (0, (1.0, 0.0)),
        90 => (90, (0.0, 1.0)),
        180 => (180, (-1.0, 0.0)),
        270 => (270, (0.0, -1.0)),
        degrees => {
            let (y, x) = (degrees as f32).to_radians().sin_cos();
            (degrees, (x, y))
        }
    }
}
