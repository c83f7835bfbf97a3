//! Colours by their perceived lightness (OKLCH), and the roles that they play on a ground.

/// A colour of a screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rgb(pub u8, pub u8, pub u8);

pub const BLACK: Rgb = Rgb(0, 0, 0);
pub const WHITE: Rgb = Rgb(255, 255, 255);

impl Rgb {
    /// Reads `#rgb` and `#rrggbb`.
    pub fn parse(text: &str) -> Option<Rgb> {
        let digits: Vec<u8> =
            text.strip_prefix('#')?.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect::<Option<_>>()?;
        match digits[..] {
            [r, g, b] => Some(Rgb(r * 17, g * 17, b * 17)),
            [a, b, c, d, e, f] => Some(Rgb(a * 16 + b, c * 16 + d, e * 16 + f)),
            _ => None,
        }
    }

    pub fn hex(self) -> String {
        format!("#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }

    /// Relative luminance as WCAG defines it.
    fn luminance(self) -> f64 {
        let [r, g, b] = self.linear();
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    fn linear(self) -> [f64; 3] {
        [self.0, self.1, self.2].map(|v| {
            let v = f64::from(v) / 255.0;
            if v <= 0.04045 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        })
    }
}

/// The contrast of two colours as WCAG defines it, 1 to 21.
pub fn contrast(a: Rgb, b: Rgb) -> f64 {
    let (a, b) = (a.luminance(), b.luminance());
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// OKLCH: lightness 0 to 1, chroma 0 to about 0.37, hue in degrees.
#[derive(Clone, Copy, Debug)]
pub struct Lch {
    pub l: f64,
    pub c: f64,
    pub h: f64,
}

impl From<Rgb> for Lch {
    fn from(rgb: Rgb) -> Lch {
        let [r, g, b] = rgb.linear();
        let l = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b).cbrt();
        let m = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b).cbrt();
        let s = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b).cbrt();
        let a = 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s;
        let bb = 0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s;
        Lch {
            l: 0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
            c: a.hypot(bb),
            h: bb.atan2(a).to_degrees().rem_euclid(360.0),
        }
    }
}

impl Lch {
    pub fn new(l: f64, c: f64, h: f64) -> Lch {
        Lch { l: l.clamp(0.0, 1.0), c, h: h.rem_euclid(360.0) }
    }

    /// The nearest colour of a screen with the same lightness and hue: chroma gives way.
    pub fn rgb(self) -> Rgb {
        let mut c = self.c;
        loop {
            let linear = Lch { c, ..self }.linear();
            if c < 0.001 || linear.iter().all(|v| (-0.0005..=1.0005).contains(v)) {
                let [r, g, b] = linear.map(|v| {
                    let v = v.clamp(0.0, 1.0);
                    let v = if v <= 0.0031308 { v * 12.92 } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 };
                    (v * 255.0).round() as u8
                });
                return Rgb(r, g, b);
            }
            c *= 0.96;
        }
    }

    fn linear(self) -> [f64; 3] {
        let (sin, cos) = self.h.to_radians().sin_cos();
        let (a, b) = (self.c * cos, self.c * sin);
        let l = (self.l + 0.3963377774 * a + 0.2158037573 * b).powi(3);
        let m = (self.l - 0.1055613458 * a - 0.0638541728 * b).powi(3);
        let s = (self.l - 0.0894841775 * a - 1.2914855480 * b).powi(3);
        [
            4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
            -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
            -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
        ]
    }
}

/// What stands on one ground. Text roles have a contrast of at least 4.5 on `bg` and `surface`, `edge` and `mark` of 3.
#[derive(Clone, Copy, Debug)]
pub struct Roles {
    pub bg: Rgb,
    /// A second ground, near the first.
    pub surface: Rgb,
    pub ink: Rgb,
    pub muted: Rgb,
    pub link: Rgb,
    /// A hairline that only decorates.
    pub rule: Rgb,
    /// The border of a field.
    pub edge: Rgb,
    /// The primary colour where a shape must be seen: thick rules, the focus ring.
    pub mark: Rgb,
    /// The ground of a button: the primary colour as it was named, wherever it can be seen.
    pub fill: Rgb,
    pub on_fill: Rgb,
    /// The border of a button: as `fill`, unless the eye would lose it.
    pub fill_edge: Rgb,
}

impl Roles {
    /// Roles of `primary` on the ground `bg`.
    pub fn on(bg: Rgb, primary: Rgb) -> Roles {
        let ground = Lch::from(bg);
        let tint = Lch::from(primary);
        let dark = contrast(bg, BLACK) >= contrast(bg, WHITE);
        // From a ground of middle lightness the second one moves away from the text; from a light or dark one it moves inwards.
        let step = match (dark, ground.l) {
            (true, l) if l > 0.9 => -0.035,
            (true, _) => 0.04,
            (false, l) if l < 0.3 => 0.045,
            (false, _) => -0.04,
        };
        let (c, h) = if ground.c < 0.012 { (tint.c.min(0.012), tint.h) } else { (ground.c * 1.15, ground.h) };
        let surface = Lch::new(ground.l + step, c, h).rgb();
        let both = [bg, surface];
        let ink = fit(Lch::new(if dark { 0.21 } else { 0.955 }, tint.c.min(0.025), tint.h).rgb(), &both, 9.0, dark);
        let muted = fit(Lch::new(if dark { 0.47 } else { 0.75 }, tint.c.min(0.03), h).rgb(), &both, 5.0, dark);
        let mark = fit(primary, &both, 3.0, dark);
        let fill = if contrast(primary, bg) < 1.08 { ink } else { primary };
        Roles {
            bg,
            surface,
            ink,
            muted,
            link: fit(primary, &both, 4.6, dark),
            rule: mix(bg, ink, 0.2),
            edge: fit(mix(bg, ink, 0.5), &both, 3.2, dark),
            mark,
            fill,
            on_fill: text_on(fill),
            fill_edge: if contrast(fill, bg) < 3.0 { mark } else { fill },
        }
    }
}

/// White where it can be read, else black: one of the two always can.
pub fn text_on(ground: Rgb) -> Rgb {
    if contrast(ground, WHITE) >= 4.5 { WHITE } else { BLACK }
}

/// `share` of `b` in `a`, as a screen mixes.
pub fn mix(a: Rgb, b: Rgb, share: f64) -> Rgb {
    let one = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * share).round() as u8;
    Rgb(one(a.0, b.0), one(a.1, b.1), one(a.2, b.2))
}

/// The colour, darker or lighter until it has the contrast on each ground; black or white if none has.
fn fit(color: Rgb, grounds: &[Rgb], least: f64, darker: bool) -> Rgb {
    let from = Lch::from(color);
    let end = if darker { 0.0 } else { 1.0 };
    (0..60)
        .map(
            |step| {
                if step == 0 {
                    color
                } else {
                    Lch { l: from.l + (end - from.l) * f64::from(step) / 60.0, ..from }.rgb()
                }
            },
        )
        .find(|c| grounds.iter().all(|g| contrast(*c, *g) >= least))
        .unwrap_or(if darker { BLACK } else { WHITE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oklch_goes_there_and_back() {
        for text in ["#000000", "#ffffff", "#8b4513", "#00ff00", "#123456", "#ff00ff"] {
            let rgb = Rgb::parse(text).unwrap();
            assert_eq!(Lch::from(rgb).rgb().hex(), text);
        }
        assert_eq!(Rgb::parse("#fA0"), Some(Rgb(255, 170, 0)));
        assert_eq!(Rgb::parse("fa0").or(Rgb::parse("#ggg")).or(Rgb::parse("#é")), None);
    }
}
