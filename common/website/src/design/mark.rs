//! The site's mark: the name's first letter drawn as strokes, or a figure where the name has no letter that we can draw.

use std::fmt::Write;

use super::color::Rgb;
use super::random::{Random, hash};
use crate::plan::Corners;

/// `/icon.svg`. Colours that a reader of either mode sees: it brings its own ground.
pub fn icon(name: &str, ground: Rgb, ink: Rgb, corners: Corners) -> String {
    let mut random = Random(hash(&["mark", name]));
    let radius = match corners {
        Corners::Square => 0,
        Corners::Soft => 8,
        Corners::Round => 32,
    };
    let (ground, ink) = (ground.hex(), ink.hex());
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64" viewBox="0 0 64 64"><rect width="64" height="64" rx="{radius}" fill="{ground}"/>"#
    );
    match name.chars().find_map(strokes) {
        Some(path) => {
            let _ = write!(
                svg,
                r#"<path transform="translate(15.7 12.4) scale(1.63)" d="{path}" fill="none" stroke="{ink}" stroke-width="4"/>"#
            );
        }
        None => {
            for (x, y) in [(12, 12), (34, 12), (12, 34), (34, 34)] {
                let _ = match random.below(3) {
                    0 => write!(svg, r#"<circle cx="{}" cy="{}" r="9" fill="{ink}"/>"#, x + 9, y + 9),
                    1 => write!(svg, r#"<path d="M{x} {y}h18a18 18 0 0 1-18 18z" fill="{ink}"/>"#),
                    _ => write!(svg, r#"<path d="M{x} {y}v18h18a18 18 0 0 1-18-18z" fill="{ink}"/>"#),
                };
            }
        }
    }
    svg.push_str("</svg>");
    svg
}

/// The strokes of a letter or digit in a box of 20 by 24.
fn strokes(letter: char) -> Option<&'static str> {
    Some(match letter.to_ascii_uppercase() {
        'A' => "M2 22L10 2L18 22M5 16H15",
        'B' => "M3 2V22H11A5 5 0 0 0 11 12H3M3 2H10A5 5 0 0 1 10 12",
        'C' => "M18 6A9 10 0 1 0 18 18",
        'D' => "M3 2H9A9 10 0 0 1 9 22H3Z",
        'E' => "M17 2H4V22H17M4 12H14",
        'F' => "M17 2H4V22M4 12H14",
        'G' => "M17 5.500A9 10 0 1 0 18 13H11",
        'H' => "M3 1V23M17 1V23M3 12H17",
        'I' => "M10 1V23M4 2H16M4 22H16",
        'J' => "M15 1V16A6 6 0 0 1 3 16",
        'K' => "M4 1V23M17 1L4 14M8 10L18 23",
        'L' => "M4 1V22H17",
        'M' => "M2 23V3L10 15L18 3V23",
        'N' => "M3 23V3L17 21V1",
        'O' | '0' => "M10 2A8 10 0 1 1 10 22A8 10 0 1 1 10 2",
        'P' => "M4 23V2H11A5.500 5.500 0 0 1 11 13H4",
        'Q' => "M10 2A8 10 0 1 1 10 22A8 10 0 1 1 10 2M12 16L19 23",
        'R' => "M4 23V2H11A5.500 5.500 0 0 1 11 13H4M10 13L18 23",
        'S' => "M16.500 6A6.500 5 0 1 0 10 12A6.500 5 0 1 1 3.500 18",
        'T' => "M1 2H19M10 2V23",
        'U' => "M3 1V15A7 7 0 0 0 17 15V1",
        'V' => "M2 1L10 21L18 1",
        'W' => "M0 1L5 21L10 6L15 21L20 1",
        'X' => "M2 1L18 23M18 1L2 23",
        'Y' => "M2 1L10 12L18 1M10 12V23",
        'Z' => "M2 2H17L3 22H18",
        '1' => "M5 6L11 2V23",
        '2' => "M3 8A7 6 0 1 1 15 12L3 22H18",
        '3' => "M3 2H16L9 10A6 6 0 1 1 3 18",
        '4' => "M14 23V2L2 16H18",
        '5' => "M16 2H5L4 11A6 6 0 1 1 3 19",
        '6' => "M13 2L5 13M10 22A6 6 0 1 1 10 10A6 6 0 1 1 10 22",
        '7' => "M2 2H17L8 23",
        '8' => "M10 12A5 5 0 1 1 10 2A5 5 0 1 1 10 12A5.500 5 0 1 1 10 22A5.500 5 0 1 1 10 12",
        '9' => "M10 14A6 6 0 1 1 10 2A6 6 0 1 1 10 14M15 11L7 23",
        _ => return None,
    })
}
