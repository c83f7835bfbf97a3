//! A look for a brief: the buyer's wishes first, then what suits the kind and the tone; among these the name decides.

use super::color::{Rgb, WHITE, contrast};
use super::fonts::nearest;
use super::random::{Random, hash};
use super::wishes::wishes;
use crate::brief::{Brief, Kind, Tone};
use crate::plan::{Corners, Density, Fonts, Ground, Layout, Look, Mode};

/// Chooses a look by the brief alone: the same brief has the same look.
pub fn choose(brief: &Brief) -> Look {
    let mut random = Random(hash(&["look", &brief.name.to_lowercase(), brief.industry.as_deref().unwrap_or("")]));
    let layout = pick(&mut random, layouts(brief.kind), brief.tone.map_or(&[], tone_layouts));
    let fonts = pick(&mut random, kind_fonts(brief.kind), brief.tone.map_or(&[], tone_fonts));
    let corners = *random.pick(match brief.tone {
        Some(Tone::Playful) => &[Corners::Round, Corners::Soft],
        Some(Tone::Bold | Tone::Minimal) => &[Corners::Square],
        _ => &[Corners::Square, Corners::Soft, Corners::Square, Corners::Round],
    });
    let density = *random.pick(match (layout, brief.tone) {
        (Layout::Ledger, _) => &[Density::Compact, Density::Normal],
        (_, Some(Tone::Minimal)) => &[Density::Airy, Density::Normal],
        _ => &[Density::Normal, Density::Airy, Density::Compact],
    });
    let ground = *random.pick(&[Ground::Plain, Ground::Tint]);
    let ours = *random.pick(palette(brief.kind));

    let wishes = wishes(&brief.description);
    let given = brief.primary_color.as_deref().and_then(Rgb::parse).map(Rgb::hex);
    let background = wishes.background;
    let mode = match (&background, wishes.mode) {
        (Some(named), _) => match Rgb::parse(named) {
            // A ground that was asked for is the ground in any light.
            Some(named) if contrast(named, WHITE) > 4.5 => Mode::Dark,
            _ => Mode::Light,
        },
        (None, mode) => mode.unwrap_or_default(),
    };
    Look {
        layout,
        fonts: brief.font.as_deref().and_then(nearest).unwrap_or(fonts),
        primary: given.or(wishes.primary).unwrap_or_else(|| ours.to_owned()),
        background,
        ground,
        mode,
        corners,
        density,
    }
}

/// One of what suits the kind and the tone; of the kind alone if nothing suits both.
fn pick<T: Copy + PartialEq>(random: &mut Random, kind: &[T], tone: &[T]) -> T {
    let both: Vec<T> = kind.iter().copied().filter(|one| tone.contains(one)).collect();
    *random.pick(if both.is_empty() { kind } else { &both })
}

fn layouts(kind: Kind) -> &'static [Layout] {
    use Layout::*;
    match kind {
        Kind::Saas => &[Split, Ledger, Sidebar, Editorial, Poster],
        Kind::Portfolio => &[Sidebar, Ledger, Editorial, Split],
        Kind::Agency => &[Poster, Split, Ledger, Editorial],
        Kind::Personal => &[Letter, Sidebar, Editorial, Letter],
        Kind::Product => &[Split, Editorial, Poster, Ledger],
        Kind::Funnel => &[Poster, Split, Letter],
        Kind::Restaurant => &[Split, Editorial, Poster, Sidebar],
        Kind::Event => &[Poster, Ledger, Split, Editorial],
    }
}

fn tone_layouts(tone: Tone) -> &'static [Layout] {
    use Layout::*;
    match tone {
        Tone::Professional => &[Ledger, Sidebar, Editorial, Split],
        Tone::Playful => &[Poster, Split, Sidebar, Letter],
        Tone::Bold => &[Poster, Split, Ledger],
        Tone::Minimal => &[Ledger, Letter, Editorial, Sidebar],
    }
}

fn kind_fonts(kind: Kind) -> &'static [Fonts] {
    use Fonts::*;
    match kind {
        Kind::Saas => &[Swiss, Workshop, Book, Friendly, Notice],
        Kind::Portfolio => &[Swiss, Review, Workshop, Book],
        Kind::Agency => &[Notice, Swiss, Workshop, Review],
        Kind::Personal => &[Book, Workshop, Review, Friendly],
        Kind::Product => &[Review, Book, Swiss, Friendly],
        Kind::Funnel => &[Notice, Swiss, Friendly, Book],
        Kind::Restaurant => &[Review, Book, Notice, Friendly],
        Kind::Event => &[Notice, Swiss, Review, Workshop],
    }
}

fn tone_fonts(tone: Tone) -> &'static [Fonts] {
    use Fonts::*;
    match tone {
        Tone::Professional => &[Swiss, Book, Review, Workshop],
        Tone::Playful => &[Friendly, Notice, Review],
        Tone::Bold => &[Notice, Swiss, Review],
        Tone::Minimal => &[Swiss, Book, Workshop],
    }
}

/// Primary colours of ours.
fn palette(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Saas => &["#0b6b53", "#c8431b", "#125e8a", "#1d1d1b", "#b8860b", "#a8324a"],
        Kind::Portfolio => &["#1d1d1b", "#9c3d22", "#2f5d50", "#ffd23f", "#3f5f73", "#d6452b"],
        Kind::Agency => &["#ff5a36", "#ffd400", "#00795c", "#e4002b", "#0047ab", "#b6e33b"],
        Kind::Personal => &["#2f5d50", "#8c3b2e", "#1f4e79", "#6b5b1f", "#4d5a2a", "#9a3b5a"],
        Kind::Product => &["#a4472c", "#2e5e4e", "#c08a1e", "#7a1f2b", "#26577c", "#5e6b2c"],
        Kind::Funnel => &["#e2521d", "#0d7a5f", "#f2b705", "#b3123a", "#0a5f8c"],
        Kind::Restaurant => &["#8a1c2b", "#2f5233", "#c4531d", "#d9a01e", "#6b2f1a", "#1f4f5a"],
        Kind::Event => &["#ff4b3e", "#ffc800", "#006d5b", "#0050b5", "#d6006c", "#111111"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_differ_by_name_and_follow_wishes() {
        let kinds = [
            Kind::Saas,
            Kind::Portfolio,
            Kind::Agency,
            Kind::Personal,
            Kind::Product,
            Kind::Funnel,
            Kind::Restaurant,
            Kind::Event,
            Kind::Saas,
            Kind::Restaurant,
        ];
        let names = [
            "Tidewatch",
            "Mara Ohlsen",
            "North & Daughters",
            "Iris Kovač",
            "Clayhouse",
            "Ten Week Run",
            "Trattoria Sole",
            "Offline 26",
            "Ledgerly",
            "Zum Anker",
        ];
        let briefs =
            kinds.into_iter().zip(names).map(|(kind, name)| Brief { kind, name: name.to_owned(), ..Brief::default() });
        let looks: Vec<Look> = briefs.map(|brief| choose(&brief)).collect();
        let shapes: Vec<_> =
            looks.iter().map(|look| (look.layout, look.fonts, look.corners, look.density, look.ground)).collect();
        for (number, shape) in shapes.iter().enumerate() {
            assert!(!shapes[..number].contains(shape), "{shape:?}");
        }

        let asked = Brief {
            name: "Clayhouse".to_owned(),
            description: "Pots. Use a beige background and saddle brown components.".to_owned(),
            primary_color: Some("#ABCDEF".to_owned()),
            font: Some("JetBrains Mono".to_owned()),
            ..Brief::default()
        };
        let look = choose(&asked);
        assert_eq!((look.primary.as_str(), look.background.as_deref()), ("#abcdef", Some("#f5f5dc")));
        assert_eq!((look.fonts, look.mode), (Fonts::Workshop, Mode::Light));
        assert_eq!(choose(&Brief { primary_color: None, ..asked }).primary, "#8b4513");
    }
}
