//! Edits of the look: colours, light and dark, fonts, corners, density, layout.

use super::clauses::Wish;
use crate::design::{nearest_fonts, wishes};
use crate::plan::{Corners, Density, Fonts, Layout, Look, Mode};

const LAYOUTS: [(Layout, &[&str]); 6] = [
    (Layout::Editorial, &["editorial", "magazine"]),
    (Layout::Sidebar, &["sidebar"]),
    (Layout::Poster, &["poster"]),
    (Layout::Ledger, &["ledger", "grid"]),
    (Layout::Split, &["split", "two-column"]),
    (Layout::Letter, &["letter", "single-column"]),
];

/// Does the edits of one clause, and says what they were.
pub fn edit(look: &mut Look, wish: &Wish) -> Option<Vec<String>> {
    let mut done = Vec::new();
    layout(look, wish, &mut done);
    corners(look, wish, &mut done);
    density(look, wish, &mut done);
    fonts(look, wish, &mut done);
    colours(look, wish, &mut done);
    tone(look, wish, &mut done);
    (!done.is_empty()).then_some(done)
}

fn layout(look: &mut Look, wish: &Wish, done: &mut Vec<String>) {
    let speaks = wish.says(&["layout", "layouts", "composition", "mise", "diseño"]);
    let named = LAYOUTS
        .iter()
        .find(|(_, names)| wish.says(names))
        .filter(|_| speaks || wish.says(&["use", "style", "make", "switch"]));
    let other = speaks && wish.says(&["another", "different", "new", "other", "change", "anderes", "autre", "otro"]);
    let new = match named {
        Some((layout, _)) => *layout,
        None if other => {
            let at = LAYOUTS.iter().position(|(layout, _)| *layout == look.layout).unwrap_or_default();
            LAYOUTS[(at + 1) % LAYOUTS.len()].0
        }
        None => return,
    };
    look.layout = new;
    done.push(format!("The layout is now “{}”.", format!("{new:?}").to_lowercase()));
}

fn corners(look: &mut Look, wish: &Wish, done: &mut Vec<String>) {
    if !wish.says(&["corner", "corners", "edges", "buttons", "ecken", "coins", "esquinas"])
        && !wish.says(&["rounder", "rounded"])
    {
        return;
    }
    let new = if wish.says(&["square", "sharp", "straight", "eckig", "eckige", "carrés"]) {
        Corners::Square
    } else if wish.says(&["soft", "softer", "slightly"]) {
        Corners::Soft
    } else if wish.says(&["round", "rounded", "rounder", "runde", "arrondis", "redondas"])
        && !wish.says(&["font", "fonts"])
    {
        Corners::Round
    } else {
        return;
    };
    look.corners = new;
    done.push(format!("The corners are now {}.", format!("{new:?}").to_lowercase()));
}

fn density(look: &mut Look, wish: &Wish, done: &mut Vec<String>) {
    let new = if wish.has(&[
        "more space",
        "more room",
        "more white",
        "whitespace",
        "more air",
        "airy",
        "airier",
        "spacious",
        "more spacing",
        "less dense",
        "mehr platz",
        "plus d'espace",
    ]) {
        Density::Airy
    } else if wish.has(&[
        "compact",
        "denser",
        "tighter",
        "less space",
        "less white",
        "more dense",
        "less spacing",
        "kompakt",
    ]) {
        Density::Compact
    } else if wish.has(&["normal spacing", "normal density"]) {
        Density::Normal
    } else {
        return;
    };
    look.density = new;
    done.push(format!("The spacing is now {}.", format!("{new:?}").to_lowercase()));
}

fn fonts(look: &mut Look, wish: &Wish, done: &mut Vec<String>) {
    let speaks =
        wish.says(&["font", "fonts", "typeface", "typography", "schrift", "schriftart", "police", "fuente", "type"]);
    let new = if wish.has(&["sans serif", "sans-serif", "grotesque"]) || (speaks && wish.says(&["sans"])) {
        Fonts::Swiss
    } else if wish.says(&["serif", "serifs"]) {
        Fonts::Book
    } else if wish.says(&["monospace", "monospaced", "mono"]) {
        Fonts::Workshop
    } else if wish.says(&["condensed"]) {
        Fonts::Notice
    } else if speaks && wish.says(&["rounded", "round", "friendly"]) {
        Fonts::Friendly
    } else if speaks {
        let named = wish.quotes.first().and_then(|name| nearest_fonts(name)).or_else(|| {
            let words: Vec<&str> = wish.text.split(' ').collect();
            let pairs = words.windows(2).map(|pair| pair.join(" "));
            pairs
                .chain(words.iter().map(|word| (*word).to_owned()))
                .filter(|name| name.starts_with(char::is_uppercase) && name.len() > 3)
                .find_map(|name| nearest_fonts(&name))
        });
        match named {
            Some(fonts) => fonts,
            None => return,
        }
    } else {
        return;
    };
    look.fonts = new;
    done.push(format!("The fonts are now “{}”.", format!("{new:?}").to_lowercase()));
}

fn colours(look: &mut Look, wish: &Wish, done: &mut Vec<String>) {
    let text = wish.unquoted().replace("white space", "space").replace("whitespace", "space");
    // A name of a colour in a long sentence is no wish for it, unless the sentence speaks of colours.
    let speaks = [
        "color",
        "colour",
        "background",
        "accent",
        "primary",
        "button",
        "farbe",
        "hintergrund",
        "couleur",
        "fond",
        "fondo",
        "theme",
    ]
    .iter()
    .any(|word| text.contains(word));
    let asks = text.split(' ').count() <= 6
        && wish.says(&[
            "make", "use", "go", "try", "want", "turn", "more", "in", "mach", "mets", "instead", "switch", "pon",
            "change",
        ]);
    let mode = mode(wish);
    if let Some(mode) = mode {
        look.mode = mode;
        look.background = None;
        done.push(match mode {
            Mode::Dark => "The site is dark now.".to_owned(),
            Mode::Light => "The site is light now.".to_owned(),
            Mode::Both => "The site follows the reader's setting for light and dark.".to_owned(),
        });
    }
    if !speaks && !asks {
        return;
    }
    let shade = if wish.says(&["darker", "deeper", "dunkler", "plus foncé"]) {
        Some((2, 3, 0))
    } else if wish.says(&["lighter", "brighter", "paler", "heller"]) {
        Some((2, 3, 85))
    } else {
        None
    };
    if let (Some((of, in_all, plus)), true) = (shade, speaks && !text.contains("background"))
        && let Ok(rgb) = u32::from_str_radix(look.primary.trim_start_matches('#'), 16)
    {
        let part = |shift: u32| ((rgb >> shift) & 0xff) * of / in_all + plus;
        look.primary = format!("#{:02x}{:02x}{:02x}", part(16), part(8), part(0));
        done.push(format!("The primary colour is now {}.", look.primary));
        return;
    }
    let mut found = wishes(&text);
    if found.primary.is_none() && found.background.is_none() {
        found = wishes(&format!("{text} color"));
    }
    if let Some(primary) = found.primary {
        done.push(format!("The primary colour is now {primary}."));
        look.primary = primary;
    }
    if let Some(background) = found.background {
        done.push(format!("The background is now {background}."));
        look.background = Some(background);
        if mode.is_none() && look.mode == Mode::Dark {
            // The named ground decides from now on.
            look.mode = Mode::Light;
        }
    }
}

fn mode(wish: &Wish) -> Option<Mode> {
    let dark = wish.has(&[
        "dark mode",
        "dark theme",
        "darkmode",
        "night mode",
        "dunkles design",
        "dunkelmodus",
        "mode sombre",
        "modo oscuro",
        "make it dark",
        "a dark ",
    ]);
    let light = wish.has(&[
        "light mode",
        "light theme",
        "day mode",
        "helles design",
        "mode clair",
        "modo claro",
        "make it light",
    ]);
    let follows =
        wish.has(&["system setting", "system preference", "follow the system", "both modes", "light and dark"]);
    let remove = wish.says(&["remove", "disable", "no"]);
    let named_colour = wish.has(&[
        "dark blue",
        "dark green",
        "dark red",
        "light blue",
        "light green",
        "dark gray",
        "dark grey",
        "light gray",
        "light grey",
        "dark orange",
    ]);
    match (dark && !named_colour, light && !named_colour, follows) {
        (_, _, true) => Some(Mode::Both),
        (true, false, _) => Some(if remove { Mode::Light } else { Mode::Dark }),
        (false, true, _) => Some(if remove { Mode::Dark } else { Mode::Light }),
        _ => None,
    }
}

fn tone(look: &mut Look, wish: &Wish, done: &mut Vec<String>) {
    if !done.is_empty() {
        return;
    }
    let asks =
        wish.says(&["more", "make", "less", "look", "feel", "tone", "style", "mach", "plus", "más", "bit", "rends"]);
    let tones: [(&str, &[&str], Fonts, Corners); 7] = [
        (
            "playful",
            &["playful", "fun", "funnier", "verspielt", "verspielter", "ludique", "divertido"],
            Fonts::Friendly,
            Corners::Round,
        ),
        ("friendly", &["friendly", "friendlier", "warmer", "freundlicher", "cozy"], Fonts::Friendly, Corners::Soft),
        (
            "professional",
            &["professional", "serious", "formal", "corporate", "modern", "seriöser", "professionnel"],
            Fonts::Swiss,
            Corners::Square,
        ),
        ("bold", &["bold", "bolder", "louder", "striking", "mutiger"], Fonts::Notice, Corners::Square),
        (
            "minimal",
            &["minimal", "minimalist", "cleaner", "simpler", "calmer", "schlichter"],
            Fonts::Swiss,
            Corners::Square,
        ),
        (
            "elegant",
            &["elegant", "luxurious", "refined", "classy", "eleganter", "élégant"],
            Fonts::Review,
            Corners::Square,
        ),
        ("technical", &["technical", "nerdy", "techy", "technisch"], Fonts::Workshop, Corners::Square),
    ];
    let Some((name, _, fonts, corners)) = tones.iter().find(|(_, words, ..)| asks && wish.says(words)) else { return };
    // "less playful" is the contrary of one tone, and no other in particular.
    let less = wish.says(&["less"]);
    (look.fonts, look.corners) = match (less, *name) {
        (false, _) => (*fonts, *corners),
        (true, "playful" | "friendly" | "bold") => (Fonts::Swiss, Corners::Square),
        (true, _) => return,
    };
    if *name == "minimal" {
        look.density = Density::Airy;
    }
    done.push(if less { format!("The look is less {name}.") } else { format!("The look is more {name}.") });
}
