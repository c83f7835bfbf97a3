//! Colours that a buyer asks for in words: "use saddle brown for components", "a beige background".

use super::color::{Lch, Rgb};
use super::names::named;
use crate::plan::Mode;

/// What the text asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    pub primary: Option<String>,
    pub background: Option<String>,
    pub mode: Option<Mode>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Background,
    Primary,
    /// Of the text: computed, so that it can be read.
    Text,
    Any,
}

/// What a colour near the word is for.
fn role(word: &str) -> Option<Role> {
    Some(match word {
        "background" | "backgrounds" | "backdrop" | "bg" | "hintergrund" | "fond" | "fondo" | "sfondo" | "fundo" => {
            Role::Background
        }
        "component" | "components" | "accent" | "accents" | "button" | "buttons" | "element" | "elements"
        | "primary" | "brand" | "main" | "highlight" | "highlights" | "links" | "header" | "headers" | "headings"
        | "akzent" | "akzente" | "navigation" | "navbar" | "borders" | "cards" | "icons" => Role::Primary,
        "text" | "font" | "fonts" | "typography" | "schrift" | "texte" | "texto" => Role::Text,
        "color" | "colour" | "colors" | "colours" | "coloured" | "colored" | "palette" | "theme" | "scheme"
        | "tones" | "tone" | "shades" | "shade" | "hues" | "farbe" | "farben" | "couleur" | "couleurs" | "colores"
        | "colore" | "colori" | "cor" | "cores" => Role::Any,
        _ => return None,
    })
}

/// Reads the wishes. A colour's name counts only in a clause that speaks of colours: "black coffee" is no wish.
pub fn wishes(text: &str) -> Wishes {
    let mut found = Wishes::default();
    let lower = text.to_lowercase();
    for sentence in lower.split(['.', '!', '?', ';', '\n']) {
        let words: Vec<&str> = sentence.split_whitespace().flat_map(pieces).collect();
        found.mode = found.mode.or(mode(&words));
        let mut at = 0;
        let mut loose = Vec::new();
        while at < words.len() {
            let Some((color, length)) = color(&words[at..]) else {
                at += 1;
                continue;
            };
            match nearest(&words, at, at + length) {
                Some(Role::Background) => found.background = found.background.or(Some(color)),
                Some(Role::Primary) => found.primary = found.primary.or(Some(color)),
                Some(Role::Any) => loose.push(color),
                Some(Role::Text) | None => {}
            }
            at += length;
        }
        for color in loose {
            let lightness = Rgb::parse(&color).map_or(0.0, |rgb| Lch::from(rgb).l);
            // Of "cream and forest green" the pale one is for the page.
            if lightness > 0.93 {
                found.background = found.background.or(Some(color));
            } else {
                found.primary = found.primary.or(Some(color));
            }
        }
    }
    found
}

/// Words of a token: commas stand alone, so that they part clauses; `#` stays with its digits.
fn pieces(token: &str) -> Vec<&str> {
    let trimmed = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '#');
    let mut pieces: Vec<&str> = trimmed.split(['-', '/']).filter(|piece| !piece.is_empty()).collect();
    if token.ends_with(',') {
        pieces.push(",");
    }
    pieces
}

/// The colour that the words begin with, and how many words name it.
fn color(words: &[&str]) -> Option<(String, usize)> {
    if let Some(rgb) = words.first().and_then(|word| Rgb::parse(word)) {
        return Some((rgb.hex(), 1));
    }
    for length in (1..=words.len().min(3)).rev() {
        if let Some(color) = named(&words[..length].concat()) {
            return Some((color.to_owned(), length));
        }
    }
    let base = words.get(1).and_then(|word| named(word)).and_then(Rgb::parse).map(Lch::from)?;
    let shade = match words[0] {
        "dark" | "deep" | "rich" => Lch::new(base.l.min(0.9) * 0.66, base.c * 0.9, base.h),
        "light" | "pale" | "soft" | "pastel" => Lch::new(base.l + (1.0 - base.l) * 0.62, base.c * 0.5, base.h),
        "bright" | "vivid" => Lch::new(base.l.max(0.62), base.c * 1.15, base.h),
        "muted" | "dusty" | "warm" => Lch::new(base.l, base.c * 0.6, base.h),
        _ => return None,
    };
    Some((shade.rgb().hex(), 2))
}

/// The role nearest to a colour at `from..to`; the end of a clause lies far away, and what follows is nearer than what precedes.
fn nearest(words: &[&str], from: usize, to: usize) -> Option<Role> {
    let cost = |between: &[&str]| -> usize {
        between
            .iter()
            .map(|word| if matches!(*word, "," | "and" | "with" | "und" | "et" | "y" | "e") { 4 } else { 2 })
            .sum()
    };
    let after = (to..words.len()).filter_map(|at| Some((cost(&words[to..at]), role(words[at])?)));
    let before = (0..from).filter_map(|at| Some((cost(&words[at + 1..from]) + 1, role(words[at])?)));
    // "background color" says one thing in two words: the general one only counts where no other is near.
    let weigh = |(cost, role): (usize, Role)| (if role == Role::Any { cost + 5 } else { cost }, role);
    after.chain(before).map(weigh).filter(|(cost, _)| *cost <= 16).min_by_key(|(cost, _)| *cost).map(|(_, role)| role)
}

fn mode(words: &[&str]) -> Option<Mode> {
    words.windows(2).find_map(|pair| match pair {
        ["dark", "mode" | "theme" | "background" | "design" | "ui" | "look" | "interface"] => Some(Mode::Dark),
        ["dunkles", "design"] | ["dunkler", "hintergrund"] => Some(Mode::Dark),
        ["light", "mode" | "theme" | "background"] => Some(Mode::Light),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_where_they_are_wishes() {
        for (text, primary, background) in [
            ("Use saddle brown for components and beige for the background.", "#8b4513", "#f5f5dc"),
            ("A beige background with saddle brown components.", "#8b4513", "#f5f5dc"),
            (
                "Set the background color to ivory, and use dark olive green as the component color",
                "#556b2f",
                "#fffff0",
            ),
            ("Style all pages with a white background and teal elements", "#008080", "#ffffff"),
            ("Our colours are forest green and cream.", "#228b22", "#fbf3dd"),
            ("Primary color #1A2B3C, please.", "#1a2b3c", ""),
            ("We sell black coffee and red wine, and olive oil from Peru.", "", ""),
            ("Hintergrund: hellblau, Akzent: weinrot", "#701c33", "#a9cfea"),
            ("white text on a navy background", "", "#000080"),
        ] {
            let wishes = wishes(text);
            assert_eq!(wishes.primary.as_deref().unwrap_or(""), primary, "{text}");
            assert_eq!(wishes.background.as_deref().unwrap_or(""), background, "{text}");
        }
        assert_eq!(wishes("I would like a dark theme.").mode, Some(Mode::Dark));
    }
}
