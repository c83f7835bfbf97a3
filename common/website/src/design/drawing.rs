//! Drawings of ours: plain shapes in the site's colours, placed by chance that comes from the name. Each brings its own ground, so
//! that it stands on a light page and on a dark one.

use super::color::{Lch, Rgb, contrast};
use super::random::{Random, hash};
use super::subjects;
use crate::brief::Kind;
use crate::plan::Layout;

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Pots on shelves.
    Vessels,
    /// Plates on a table, from above.
    Plates,
    /// Loaves.
    Bread,
    /// Fronts of houses.
    Houses,
    /// Hills and a sun.
    Hills,
    /// Rings of an arena.
    Rings,
    /// Rows of bars, as in a plan of work.
    Rows,
    /// Stems with leaves.
    Leaves,
    /// Quarters of circles in a grid.
    Tiles,
}

/// Words that name a subject, in a few languages. The first line that has a word of the text wins.
const WORDS: &[(Subject, &[&str])] = &[
    (
        Subject::Vessels,
        &["potter", "ceramic", "vase", "keramik", "töpfer", "céramique", "cerámica", "candle", "skincare", "perfume"],
    ),
    (Subject::Bread, &["baker", "bread", "sourdough", "bäcker", "brot", "boulanger", "panader", "pastry", "pâtiss"]),
    (
        Subject::Houses,
        &["architect", "architekt", "arquitect", "real estate", "immobil", "property", "construction", "interior"],
    ),
    (
        Subject::Leaves,
        &[
            "garden", "plant", "flor", "garten", "jardin", "jardín", "organic", "yoga", "wellness", "farm", "tea ",
            "bloom",
        ],
    ),
    (Subject::Plates, &["restaurant", "cuisine", "trattoria", "bistro", "café", "cafe", "catering", "chef", "food"]),
    (Subject::Rings, &["music", "concert", "festival", "theatre", "theater", "conference", "podcast", "sound"]),
    (Subject::Hills, &["travel", "outdoor", "mountain", "hiking", "photograph", "camp", "reise", "voyage"]),
    (Subject::Rows, &["software", "data", "schedul", "analytic", "dashboard", "platform", "api"]),
];

/// The subject that the texts name, or one of the kind.
pub fn subject(kind: Kind, texts: &str) -> Subject {
    let texts = texts.to_lowercase();
    let named = WORDS.iter().find(|(_, words)| words.iter().any(|word| texts.contains(word)));
    named.map(|(subject, _)| *subject).unwrap_or(match kind {
        Kind::Restaurant => Subject::Plates,
        Kind::Event => Subject::Rings,
        Kind::Saas => Subject::Rows,
        Kind::Personal => Subject::Hills,
        Kind::Portfolio | Kind::Agency | Kind::Product | Kind::Funnel => Subject::Tiles,
    })
}

/// The colours of a drawing.
pub struct Inks {
    pub ground: Rgb,
    pub main: Rgb,
    pub second: Rgb,
    pub deep: Rgb,
    pub pale: Rgb,
}

impl Inks {
    /// From the primary colour: a neighbour or a contrast of its hue, a dark and a pale one. None of them is violet unless the
    /// primary is. `dark`: for a site that is dark in any light.
    pub fn of(primary: Rgb, dark: bool, subject: Subject, name: &str) -> Inks {
        let mut random = Random(hash(&["inks", name]));
        let main = Lch::from(primary);
        // Things have the colours of earth, patterns may have any but violet and pink.
        let natural = matches!(subject, Subject::Bread | Subject::Vessels | Subject::Plates | Subject::Leaves);
        let mut hue = if natural {
            *random.pick(&[75.0, 48.0, 100.0])
        } else {
            (main.h + random.pick(&[55.0, -55.0, 150.0, -150.0, 180.0])).rem_euclid(360.0)
        };
        let near = |a: f64, b: f64| (a - b).abs() < 22.0;
        if !(15.0..265.0).contains(&hue) || near(hue, main.h) {
            hue = if near(main.h, 80.0) { 35.0 } else { 80.0 };
        }
        // A grey primary gets a grey family with one warm guest.
        let hue = if main.c < 0.03 { 60.0 } else { hue };
        let second = Lch::new(if main.l > 0.7 { 0.52 } else { 0.78 }, 0.13, hue).rgb();
        let deep = Lch::new(0.27, main.c.min(0.06), main.h).rgb();
        // Paper beside a warm colour is sand, not skin.
        let paper = if (15.0..80.0).contains(&main.h) { 80.0 } else { main.h };
        let pale = Lch::new(0.94, main.c.min(0.035), paper).rgb();
        // The ground follows the page's, where the primary colour can be seen on it.
        let (first, other) = if dark { (deep, pale) } else { (pale, deep) };
        let ground = if contrast(primary, first) > 1.7 { first } else { other };
        let pale = if ground == pale { Lch::new(0.86, main.c.min(0.06), paper).rgb() } else { pale };
        Inks { ground, main: primary, second, deep: if ground == deep { pale } else { deep }, pale }
    }
}

/// The size of a layout's drawing.
pub fn size(layout: Layout) -> (i32, i32) {
    match layout {
        Layout::Editorial => (1600, 700),
        Layout::Sidebar => (1600, 500),
        Layout::Poster => (1920, 280),
        Layout::Ledger => (700, 900),
        Layout::Split => (1000, 1120),
        Layout::Letter => (240, 288),
    }
}

/// The drawing as a postage stamp, for the head of a letter.
pub fn stamp(subject: Subject, inks: &Inks, name: &str) -> String {
    let (width, height) = size(Layout::Letter);
    let inner = draw(subject, inks, name, (width - 56) * 2, (height - 56) * 2);
    let picture = inner.replacen("<svg ", r#"<svg x="28" y="28" "#, 1);
    let picture = picture.replacen(
        &format!(r#"width="{}" height="{}""#, (width - 56) * 2, (height - 56) * 2),
        &format!(r#"width="{}" height="{}""#, width - 56, height - 56),
        1,
    );
    // The paper, with bites of the perforation along its edges.
    let mut paper = String::from("M12 12");
    paper.push_str(&"a6 6 0 0 0 12 0h6".repeat(12));
    paper.push_str("V12");
    paper.push_str(&"a6 6 0 0 0 0 12v6".repeat(14));
    paper.push_str("v12");
    paper.push_str(&"h-6a6 6 0 0 0 -12 0".repeat(12));
    paper.push_str("H12");
    paper.push_str(&"v-6a6 6 0 0 0 0 -12".repeat(14));
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"><path d="{paper}z" fill="{}" stroke="{}"/>{picture}</svg>"#,
        Lch::new(0.97, 0.006, Lch::from(inks.main).h).rgb().hex(),
        Lch::new(0.7, 0.01, Lch::from(inks.main).h).rgb().hex()
    )
}

/// The drawing as a file, `width` by `height`.
pub fn draw(subject: Subject, inks: &Inks, name: &str, width: i32, height: i32) -> String {
    let random = Random(hash(&["drawing", name]));
    let mut sheet = Sheet { width, height, random, svg: String::new() };
    sheet.rect(0, 0, width, height, inks.ground);
    match subject {
        Subject::Vessels => subjects::vessels(&mut sheet, inks),
        Subject::Plates => subjects::plates(&mut sheet, inks),
        Subject::Bread => subjects::bread(&mut sheet, inks),
        Subject::Houses => subjects::houses(&mut sheet, inks),
        Subject::Hills => subjects::hills(&mut sheet, inks),
        Subject::Rings => subjects::rings(&mut sheet, inks),
        Subject::Rows => subjects::rows(&mut sheet, inks),
        Subject::Leaves => subjects::leaves(&mut sheet, inks),
        Subject::Tiles => subjects::tiles(&mut sheet, inks),
    }
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" preserveAspectRatio="xMidYMid slice">{}</svg>"#,
        sheet.svg
    )
}

/// What a subject is drawn on.
pub struct Sheet {
    pub width: i32,
    pub height: i32,
    pub random: Random,
    svg: String,
}

impl Sheet {
    pub fn rect(&mut self, x: i32, y: i32, width: i32, height: i32, fill: Rgb) {
        self.svg
            .push_str(&format!(r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{}"/>"#, fill.hex()));
    }

    pub fn circle(&mut self, x: i32, y: i32, r: i32, fill: Rgb) {
        self.svg.push_str(&format!(r#"<circle cx="{x}" cy="{y}" r="{r}" fill="{}"/>"#, fill.hex()));
    }

    pub fn ring(&mut self, x: i32, y: i32, r: i32, stroke: Rgb, width: i32) {
        self.svg.push_str(&format!(
            r#"<circle cx="{x}" cy="{y}" r="{r}" fill="none" stroke="{}" stroke-width="{width}"/>"#,
            stroke.hex()
        ));
    }

    pub fn shape(&mut self, path: &str, fill: Rgb) {
        self.svg.push_str(&format!(r#"<path d="{path}" fill="{}"/>"#, fill.hex()));
    }

    pub fn line(&mut self, path: &str, stroke: Rgb, width: i32) {
        self.svg.push_str(&format!(
            r#"<path d="{path}" fill="none" stroke="{}" stroke-width="{width}" stroke-linecap="round" stroke-linejoin="round"/>"#,
            stroke.hex()
        ));
    }

    /// What `inside` draws, turned by `degrees` around the point.
    pub fn turned(&mut self, degrees: i32, x: i32, y: i32, inside: impl FnOnce(&mut Sheet)) {
        self.svg.push_str(&format!(r#"<g transform="rotate({degrees} {x} {y})">"#));
        inside(self);
        self.svg.push_str("</g>");
    }
}
