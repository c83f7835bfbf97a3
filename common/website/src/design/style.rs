//! `/style.css`: the files beside this one, after properties that are computed from the look.

use std::fmt::Write;

use super::color::{Lch, Rgb, Roles, WHITE, contrast};
use super::fonts::{Family, pair};
use crate::plan::{Corners, Density, Fonts, Ground, Layout, Look, Mode};

/// The whole style sheet; fonts are addressed below `root`.
pub fn sheet(look: &Look, root: &str) -> String {
    let mut css = String::new();
    let pair = pair(look.fonts);
    for family in [pair.display, pair.text] {
        faces(&mut css, family, root);
    }
    let light = Grounds::of(look, false);
    let dark = Grounds::of(look, true);
    let (first, scheme) = match look.mode {
        Mode::Both => (&light, "light dark"),
        Mode::Light => (&light, "light"),
        Mode::Dark => (&dark, "dark"),
    };
    let _ = writeln!(css, ":root{{color-scheme:{scheme};{}}}", scale(look));
    css.push_str(&first.css());
    if look.mode == Mode::Both {
        let _ = writeln!(css, "@media (prefers-color-scheme:dark){{{}}}", dark.css());
    }
    css.push_str(include_str!("css/base.css"));
    css.push_str(match look.layout {
        Layout::Editorial => include_str!("css/editorial.css"),
        Layout::Sidebar => include_str!("css/sidebar.css"),
        Layout::Poster => include_str!("css/poster.css"),
        Layout::Ledger => include_str!("css/ledger.css"),
        Layout::Split => include_str!("css/split.css"),
        Layout::Letter => include_str!("css/letter.css"),
    });
    css
}

/// The roles on each ground of a page, in one mode.
pub struct Grounds {
    pub primary: Rgb,
    pub page: Roles,
    pub surface: Roles,
    pub colored: Roles,
    pub deep: Roles,
}

impl Grounds {
    pub fn of(look: &Look, dark: bool) -> Grounds {
        let primary = Rgb::parse(&look.primary).unwrap_or(Rgb(0x1f, 0x5f, 0x5b));
        let tint = Lch::from(primary);
        let named = look.background.as_deref().and_then(Rgb::parse);
        // A background that the buyer named stays in the mode that it belongs to; the other mode keeps only its hue.
        let named_is_dark = named.is_some_and(|named| contrast(named, WHITE) > 7.0);
        let hue = named.map_or(tint, Lch::from);
        let bg = match (named, dark, look.ground) {
            (Some(named), _, _) if dark == named_is_dark || look.mode != Mode::Both => named,
            (_, true, Ground::Plain) => Lch::new(0.185, hue.c.min(0.008), hue.h).rgb(),
            (_, true, Ground::Tint) => Lch::new(0.215, hue.c.min(0.03), hue.h).rgb(),
            (_, false, Ground::Plain) => Lch::new(0.993, hue.c.min(0.002), hue.h).rgb(),
            // Pale warm tints are the cream of everybody's page: a warm hue is either a colour or none.
            (_, false, Ground::Tint) if (15.0..115.0).contains(&hue.h) => {
                Lch::new(0.93, hue.c.min(0.055), hue.h.max(78.0)).rgb()
            }
            (_, false, Ground::Tint) => Lch::new(0.95, hue.c.min(0.028), hue.h).rgb(),
        };
        let page = Roles::on(bg, primary);
        let deep = Lch::new(if dark { 0.135 } else { 0.26 }, tint.c.min(0.055), tint.h).rgb();
        Grounds {
            primary,
            page,
            surface: Roles::on(page.surface, primary),
            colored: Roles::on(primary, primary),
            deep: Roles::on(deep, primary),
        }
    }

    fn css(&self) -> String {
        let mut css = format!(
            ":root{{--primary:{};--line:{};{}}}\n",
            self.primary.hex(),
            self.page.ink.hex(),
            properties(&self.page)
        );
        for (class, roles) in [("on-surface", &self.surface), ("on-primary", &self.colored), ("on-deep", &self.deep)] {
            let _ = writeln!(css, ".{class}{{{}}}", properties(roles));
        }
        css
    }
}

fn properties(roles: &Roles) -> String {
    let Roles { bg, surface, ink, muted, link, rule, edge, mark, fill, on_fill, fill_edge } = roles;
    [
        ("bg", bg),
        ("surface", surface),
        ("ink", ink),
        ("muted", muted),
        ("link", link),
        ("rule", rule),
        ("edge", edge),
        ("mark", mark),
        ("fill", fill),
        ("on-fill", on_fill),
        ("fill-edge", fill_edge),
    ]
    .iter()
    .map(|(name, color)| format!("--{name}:{};", color.hex()))
    .collect()
}

fn faces(css: &mut String, family: &Family, root: &str) {
    for (path, _, range) in family.files() {
        let _ = writeln!(
            css,
            "@font-face{{font-family:\"{}\";font-style:normal;font-weight:{};font-display:swap;src:url(\"{root}{path}\") format(\"woff2\");unicode-range:{range}}}",
            family.name, family.weights
        );
    }
}

/// Sizes of type and space, corners and families.
fn scale(look: &Look) -> String {
    let pair = pair(look.fonts);
    let (space, base, leading) = match look.density {
        Density::Compact => (1.0, 1.0, 1.5),
        Density::Normal => (1.3, 1.0625, 1.58),
        Density::Airy => (1.65, 1.125, 1.65),
    };
    let ratio = match look.layout {
        Layout::Poster => 1.38,
        Layout::Split | Layout::Editorial => 1.31,
        Layout::Sidebar => 1.27,
        Layout::Ledger | Layout::Letter => 1.25,
    };
    let mut css = String::new();
    for step in -1..=7 {
        // On a narrow screen the ratio is smaller: the same ladder, less steep.
        let narrow = base * f64::powi(1.175, step) * 0.98;
        let wide = base * f64::powi(ratio, step);
        let grow = if step >= 2 { pair.grow } else { 1.0 };
        let _ = write!(css, "--t{step}:{};", fluid(narrow * grow, (wide * grow).min(9.5)));
    }
    let (control, plate) = match look.corners {
        Corners::Square => ("0", "0"),
        Corners::Soft => ("5px", "3px"),
        Corners::Round => ("2rem", "1.25rem"),
    };
    // The biggest headline of a poster: condensed letters fill the same width at a larger size.
    let giant = 8.0 * pair.grow * pair.grow;
    let field = if look.corners == Corners::Round { ".9rem" } else { control };
    let tight = if look.fonts == Fonts::Notice { 1.0 } else { 1.12 };
    let _ = write!(
        css,
        "--u:{};--gutter:clamp(1.125rem,4.5vw,5rem);--cell:clamp(1.125rem,1.6vw,1.5rem);--cell-y:{}rem;--leading:{leading};--tight:{tight};--tightest:{};--giant:clamp(var(--t6),{giant:.1}vw,13rem);",
        fluid(space, space * 1.45),
        space * 0.8,
        tight - 0.08
    );
    let _ = write!(
        css,
        "--display:\"{}\",{};--text:\"{}\",{};--heavy:{};--quoted:{};--track:{};--r:{control};--r-plate:{plate};--r-field:{field};",
        pair.display.name,
        pair.display.fallback,
        pair.text.name,
        pair.text.fallback,
        pair.heavy,
        pair.quoted,
        pair.track
    );
    css
}

/// From `narrow` rem at 360 px to `wide` rem at 1280 px.
fn fluid(narrow: f64, wide: f64) -> String {
    let slope = (wide - narrow) / (80.0 - 22.5);
    let start = narrow - slope * 22.5;
    format!("clamp({:.3}rem,{start:.3}rem + {:.3}vw,{:.3}rem)", narrow.min(wide), slope * 100.0, narrow.max(wide))
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    #[test]
    fn text_can_be_read_on_every_ground_whatever_the_colours_are() {
        let mut random = Random(7);
        let mut hex = || format!("#{:06x}", random.next() & 0xffffff);
        for number in 0..1000 {
            let look = Look {
                layout: Layout::Poster,
                fonts: Fonts::Book,
                primary: hex(),
                background: (number % 3 == 0).then(&mut hex),
                ground: if number % 2 == 0 { Ground::Plain } else { Ground::Tint },
                mode: if number % 6 == 0 { Mode::Light } else { Mode::Both },
                corners: Corners::Soft,
                density: Density::Normal,
            };
            for dark in [false, true] {
                let grounds = Grounds::of(&look, dark);
                assert_eq!(grounds.colored.bg.hex(), look.primary);
                for roles in [grounds.page, grounds.surface, grounds.colored, grounds.deep] {
                    for ground in [roles.bg, roles.surface] {
                        for text in [roles.ink, roles.muted, roles.link] {
                            assert!(contrast(text, ground) >= 4.5, "{look:?} {roles:?}");
                        }
                        for shape in [roles.edge, roles.mark] {
                            assert!(contrast(shape, ground) >= 3.0, "{look:?} {roles:?}");
                        }
                    }
                    assert!(contrast(roles.fill, roles.on_fill) >= 4.5, "{look:?} {roles:?}");
                    assert!(contrast(roles.fill_edge, roles.bg) >= 3.0, "{look:?} {roles:?}");
                }
            }
        }
    }
}
