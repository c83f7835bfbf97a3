//! The pairs of fonts: files of ours, and which family of a system stands in for them.

use crate::plan::Fonts;

/// One family: a variable font in two files, or one weight of it.
pub struct Family {
    pub name: &'static str,
    /// The lightest and the heaviest weight of the files.
    pub weights: &'static str,
    /// What stands in while the file loads, and for scripts that it lacks.
    pub fallback: &'static str,
    slug: &'static str,
    latin: &'static [u8],
    latin_ext: &'static [u8],
}

impl Family {
    /// Paths and bytes of the files, each with the characters that it covers.
    pub fn files(&self) -> [(String, &'static [u8], &'static str); 2] {
        [
            (format!("/fonts/{}-latin.woff2", self.slug), self.latin, LATIN),
            (format!("/fonts/{}-latin-ext.woff2", self.slug), self.latin_ext, LATIN_EXT),
        ]
    }
}

/// Two families, and how the display family is set.
pub struct Pair {
    pub display: &'static Family,
    pub text: &'static Family,
    /// Weight of headings.
    pub heavy: u16,
    /// Weight of quotations.
    pub quoted: u16,
    /// Letter spacing of headings.
    pub track: &'static str,
    /// How much larger the display sizes are than the scale says: condensed faces need more.
    pub grow: f64,
}

/// Both families of a pair.
pub fn families(fonts: Fonts) -> [&'static Family; 2] {
    let pair = pair(fonts);
    [pair.display, pair.text]
}

pub fn pair(fonts: Fonts) -> Pair {
    match fonts {
        Fonts::Book => {
            Pair { display: &LITERATA, text: &COMMISSIONER, heavy: 600, quoted: 400, track: "-.015em", grow: 1.0 }
        }
        Fonts::Swiss => {
            Pair { display: &ARCHIVO, text: &PUBLIC_SANS, heavy: 700, quoted: 500, track: "-.025em", grow: 1.0 }
        }
        Fonts::Review => {
            Pair { display: &GLOOCK, text: &HANKEN_GROTESK, heavy: 400, quoted: 400, track: "-.005em", grow: 1.06 }
        }
        Fonts::Friendly => {
            Pair { display: &FREDOKA, text: &NUNITO, heavy: 600, quoted: 400, track: "-.005em", grow: 1.0 }
        }
        Fonts::Notice => {
            Pair { display: &SOFIA_SANS_CONDENSED, text: &SOFIA_SANS, heavy: 800, quoted: 600, track: "0", grow: 1.34 }
        }
        Fonts::Workshop => {
            Pair { display: &RED_HAT_MONO, text: &RED_HAT_TEXT, heavy: 600, quoted: 400, track: "-.03em", grow: 0.9 }
        }
    }
}

/// The pair nearest to a family that the buyer names.
pub fn nearest(font: &str) -> Option<Fonts> {
    let font = font.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| font.contains(word));
    Some(if says(&["mono", "code", "consol", "courier", "typewriter", "terminal", "plex"]) {
        Fonts::Workshop
    } else if says(&["condensed", "narrow", "oswald", "bebas", "anton", "league gothic", "impact", "barlow", "fjalla"])
    {
        Fonts::Notice
    } else if says(&[
        "round",
        "nunito",
        "quicksand",
        "fredoka",
        "baloo",
        "comfortaa",
        "varela",
        "poppins",
        "comic",
        "dosis",
    ]) {
        Fonts::Friendly
    } else if says(&["didot", "bodoni", "playfair", "abril", "gloock", "dm serif", "cormorant", "display", "chomsky"]) {
        Fonts::Review
    } else if says(&[
        "sans",
        "grotes",
        "grotesk",
        "helvet",
        "arial",
        "inter",
        "roboto",
        "archivo",
        "verdana",
        "lato",
        "montserrat",
        "work",
        "open",
        "futura",
        "avenir",
        "gothic",
        "manrope",
        "outfit",
    ]) {
        Fonts::Swiss
    } else if says(&[
        "serif",
        "literata",
        "lora",
        "garamond",
        "georgia",
        "times",
        "merriweather",
        "baskerville",
        "caslon",
        "palatino",
        "crimson",
        "book",
        "roman",
        "slab",
    ]) {
        Fonts::Book
    } else {
        return None;
    })
}

const LATIN: &str = "U+0000-00FF,U+0131,U+0152-0153,U+02BB-02BC,U+02C6,U+02DA,U+02DC,U+0304,U+0308,U+0329,U+2000-206F,U+20AC,U+2122,U+2191,U+2193,U+2212,U+2215,U+FEFF,U+FFFD";
const LATIN_EXT: &str = "U+0100-02BA,U+02BD-02C5,U+02C7-02CC,U+02CE-02D7,U+02DD-02FF,U+1D00-1DBF,U+1E00-1E9F,U+1EF2-1EFF,U+2020,U+20A0-20AB,U+20AD-20C0,U+2113,U+2C60-2C7F,U+A720-A7FF";

const SERIF: &str = "Charter, Cambria, serif";
const SANS: &str = "system-ui, sans-serif";

macro_rules! family {
    ($constant:ident, $name:literal, $slug:literal, $weights:literal, $fallback:expr) => {
        static $constant: Family = Family {
            name: $name,
            weights: $weights,
            fallback: $fallback,
            slug: $slug,
            latin: include_bytes!(concat!("../../fonts/", $slug, "-latin.woff2")),
            latin_ext: include_bytes!(concat!("../../fonts/", $slug, "-latin-ext.woff2")),
        };
    };
}

family!(LITERATA, "Literata", "literata", "200 900", SERIF);
family!(COMMISSIONER, "Commissioner", "commissioner", "100 900", SANS);
family!(ARCHIVO, "Archivo", "archivo", "100 900", SANS);
family!(PUBLIC_SANS, "Public Sans", "public-sans", "100 900", SANS);
family!(GLOOCK, "Gloock", "gloock", "400", SERIF);
family!(HANKEN_GROTESK, "Hanken Grotesk", "hanken-grotesk", "100 900", SANS);
family!(FREDOKA, "Fredoka", "fredoka", "300 700", "ui-rounded, system-ui, sans-serif");
family!(NUNITO, "Nunito", "nunito", "200 1000", "ui-rounded, system-ui, sans-serif");
family!(
    SOFIA_SANS_CONDENSED,
    "Sofia Sans Extra Condensed",
    "sofia-sans-extra-condensed",
    "1 1000",
    "Impact, sans-serif"
);
family!(SOFIA_SANS, "Sofia Sans", "sofia-sans", "1 1000", SANS);
family!(RED_HAT_MONO, "Red Hat Mono", "red-hat-mono", "300 700", "ui-monospace, monospace");
family!(RED_HAT_TEXT, "Red Hat Text", "red-hat-text", "300 700", SANS);
