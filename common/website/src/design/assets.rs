//! Single pieces: a logo, icons, a card for links that are shared, a QR code. All SVG, made of a name and a colour.

use super::color::{BLACK, Rgb, WHITE, text_on};
use super::drawing::{self, Inks};
use super::mark;
use crate::brief::Kind;
use crate::plan::Corners;

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    pub name: &'static str,
    pub svg: String,
}

/// What a piece is made of.
pub struct Piece<'a> {
    pub name: &'a str,
    /// One line about it; may be empty.
    pub line: &'a str,
    /// `#RRGGBB`
    pub color: &'a str,
    pub kind: Kind,
}

/// A colour if none is named.
pub const COLOR: &str = "#1f4d3a";
/// Size of a card for shared links, in pixels.
const CARD: (i32, i32) = (1200, 630);

impl Piece<'_> {
    fn primary(&self) -> Rgb {
        Rgb::parse(self.color).or_else(|| Rgb::parse(COLOR)).unwrap_or(BLACK)
    }

    /// The mark with the name beside it.
    pub fn logo(&self) -> Vec<Asset> {
        let primary = self.primary();
        let icon = mark::icon(self.name, primary, text_on(primary), Corners::Soft);
        let mark = inner(&icon);
        let name = escaped(&shortened(self.name, 40));
        // About the width of a sans serif in bold.
        let width = 64 + 20 + name.chars().count() as i32 * 20 + 8;
        let svg = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="64" viewBox="0 0 {width} 64" role="img"><title>{name}</title>{mark}<text x="84" y="44" font-family="Helvetica, Arial, sans-serif" font-size="34" font-weight="700" fill="{}">{name}</text></svg>"#,
            primary.hex()
        );
        vec![Asset { name: "logo.svg", svg }]
    }

    /// The mark for tabs (square corners), for home screens (round), and in one colour.
    pub fn icons(&self) -> Vec<Asset> {
        let primary = self.primary();
        let of = |name, ground, ink, corners| Asset { name, svg: mark::icon(self.name, ground, ink, corners) };
        vec![
            of("icon.svg", primary, text_on(primary), Corners::Soft),
            of("icon-square.svg", primary, text_on(primary), Corners::Square),
            of("icon-round.svg", primary, text_on(primary), Corners::Round),
            of("icon-black.svg", WHITE, BLACK, Corners::Square),
        ]
    }

    /// 1200 by 630 pixels, as links are shown where they are shared.
    pub fn social_card(&self) -> Vec<Asset> {
        let (width, height) = CARD;
        let primary = self.primary();
        let ink = text_on(primary);
        let subject = drawing::subject(self.kind, &format!("{} {}", self.name, self.line));
        let drawing = drawing::draw(subject, &Inks::of(primary, false, subject, self.name), self.name, 480, height);
        let drawn = inner(&drawing);
        let name = escaped(&shortened(self.name, 60));
        let size = (660 * 100 / (name.chars().count() as i32 * 56).max(1)).clamp(36, 96);
        let line = escaped(&shortened(self.line, 44));
        let svg = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img"><title>{name}</title><rect width="{width}" height="{height}" fill="{}"/><svg x="720" y="0" width="480" height="{height}" viewBox="0 0 480 {height}">{drawn}</svg><text x="60" y="{}" font-family="Georgia, serif" font-size="{size}" font-weight="700" fill="{ink}">{name}</text><text x="60" y="560" font-family="Helvetica, Arial, sans-serif" font-size="30" fill="{ink}">{line}</text></svg>"#,
            primary.hex(),
            140 + size,
            ink = ink.hex(),
        );
        vec![Asset { name: "social-card.svg", svg }]
    }
}

/// A QR code of a text, with the quiet zone that scanners need. `None`: the text is too long for one.
pub fn qr(text: &str) -> Option<Vec<Asset>> {
    let code = qrcode::QrCode::with_error_correction_level(text, qrcode::EcLevel::M).ok()?;
    let svg = code.render::<qrcode::render::svg::Color>().min_dimensions(512, 512).build();
    Some(vec![Asset { name: "qr.svg", svg }])
}

/// What is inside the outermost element.
fn inner(svg: &str) -> &str {
    let begin = svg.find('>').map_or(0, |at| at + 1);
    svg[begin..].strip_suffix("</svg>").unwrap_or(&svg[begin..])
}

/// At most so many characters, cut at a word.
fn shortened(text: &str, most: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= most {
        return text;
    }
    let cut: String = text.chars().take(most).collect();
    cut.rsplit_once(' ').map_or(cut.clone(), |(words, _)| words.to_owned())
}

fn escaped(text: &str) -> String {
    let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_whole_and_says_only_the_name() {
        for name in ["Four Miche", "日本", "<script>alert(1)</script> & \"x\"", &"word ".repeat(50)] {
            let piece = Piece { name, line: "Bread & cake", color: "#aa3300", kind: Kind::Restaurant };
            for asset in [piece.logo(), piece.icons(), piece.social_card()].concat() {
                assert!(asset.svg.starts_with("<svg") && asset.svg.ends_with("</svg>"), "{}", asset.svg);
                assert_eq!(asset.svg.matches("<svg").count(), asset.svg.matches("</svg>").count());
                assert!(!asset.svg.contains("<script"), "{}", asset.svg);
            }
        }
    }

    #[test]
    fn a_qr_code_has_its_text_or_is_refused() {
        let svg = &qr("https://example.com/").unwrap()[0].svg;
        assert!(svg.contains("<svg") && svg.contains("path"), "{svg}");
        assert_eq!(qr(&"x".repeat(4_000)), None);
    }
}
