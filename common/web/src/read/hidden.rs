//! Finds elements that a visitor does not see, from their attributes, inline style and the page's own style sheets. HTML of
//! mails is judged by it too.
//!
//! It knows the CSS commonly used to hide text; it is not a layout engine. External style sheets are never fetched, so a
//! page can still hide text. Selectors that depend on other elements are skipped, because scripts mostly decide which of
//! them apply.

use std::borrow::Cow;
use std::collections::HashMap;

use cssparser::color::parse_named_color;

/// Maximum number of rules kept from the page's style sheets.
const MAX_RULES: usize = 1_000;
/// Maximum number of declarations read per rule or `style` attribute.
const MAX_DECLARATIONS: usize = 100;
/// Smaller text, in CSS pixels, counts as hidden.
const SMALLEST_PX: f32 = 3.0;
/// A box moved this far out of the page is off-screen.
const OFF_SCREEN_PX: f32 = -500.0;

/// An element as its reader knows it.
pub trait Element {
    /// In lower case, without a namespace.
    fn name(&self) -> &str;
    /// The value of an attribute, with its character references resolved.
    fn attribute(&self, name: &str) -> Option<Cow<'_, str>>;
}

impl Element for dom_query::Element {
    fn name(&self) -> &str {
        &self.name.local
    }

    fn attribute(&self, name: &str) -> Option<Cow<'_, str>> {
        self.attr(name).map(|value| Cow::Owned(value.to_string()))
    }
}

/// How text is shown at a point of the tree; children inherit it.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    visible: bool,
    tiny: bool,
    color: Option<Paint>,
    background: Option<Paint>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Paint {
    Transparent,
    Rgb([u8; 3]),
    /// A picture, or a colour that is not known here: nothing blends in with it.
    Unknown,
}

impl Shown {
    /// The state at the top of a page. Without style sheets the background is white; with them it is unknown.
    pub fn at_top(has_style_sheets: bool) -> Self {
        let white = Paint::Rgb([255; 3]);
        Self { visible: true, tiny: false, color: None, background: (!has_style_sheets).then_some(white) }
    }

    pub fn text_shows(&self) -> bool {
        self.visible && !self.tiny && !self.blends_in()
    }

    /// Whether the text is transparent or has nearly the colour of its background.
    fn blends_in(&self) -> bool {
        match (self.color, self.background) {
            (Some(Paint::Transparent), _) => true,
            (Some(Paint::Rgb(text)), Some(Paint::Rgb(ground))) => {
                let close = |(a, b): (&u8, &u8)| a.abs_diff(*b) <= 8;
                text.iter().zip(&ground).all(close)
            }
            _ => false,
        }
    }

    fn under(mut self, look: &Look) -> Self {
        self.visible = look.visible.unwrap_or(self.visible);
        self.tiny = look.tiny.unwrap_or(self.tiny);
        self.color = look.color.or(self.color);
        if let Some(background) = look.background
            && background != Paint::Transparent
        {
            self.background = Some(background);
        }
        self
    }
}

/// Visibility set by an element's style. `None` means not set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Look {
    /// Hides the element with all its content.
    gone: Option<bool>,
    visible: Option<bool>,
    tiny: Option<bool>,
    color: Option<Paint>,
    background: Option<Paint>,
}

impl Look {
    /// `self` overridden by `later`.
    fn then(self, later: &Self) -> Self {
        Self {
            gone: later.gone.or(self.gone),
            visible: later.visible.or(self.visible),
            tiny: later.tiny.or(self.tiny),
            color: later.color.or(self.color),
            background: later.background.or(self.background),
        }
    }

    fn of_declarations(style: &str) -> Self {
        let mut reader = DeclarationReader::default();
        let mut important = Vec::new();
        for declaration in style.split(';').take(MAX_DECLARATIONS) {
            if let Some((property, value)) = declaration.split_once(':') {
                let (property, value) = (property.trim(), value.trim());
                match value.strip_suffix("important").and_then(|value| value.trim_end().strip_suffix('!')) {
                    Some(value) => important.push((property, value.trim_end())),
                    None => reader.read(property, value),
                }
            }
        }
        important.into_iter().for_each(|(property, value)| reader.read(property, value));
        reader.look()
    }

    /// Colours from old HTML attributes.
    fn of_attributes(element: &impl Element) -> Self {
        let paint = |name: &str| element.attribute(name).and_then(|value| old_paint(&value));
        let picture = || element.attribute("background").map(|_| Paint::Unknown);
        Self { color: paint("color"), background: paint("bgcolor").or_else(picture), ..Self::default() }
    }
}

/// Collects declarations that hide text only in combination.
#[derive(Default)]
struct DeclarationReader {
    look: Look,
    off_screen: bool,
    clipped: bool,
    transparent: bool,
    filtered: bool,
    moved: bool,
    empty_box: bool,
    cuts_overflow: bool,
}

impl DeclarationReader {
    fn read(&mut self, property: &str, value: &str) {
        match property {
            "display" => self.look.gone = Some(value == "none"),
            // Outlook's.
            "mso-hide" => self.clipped |= value == "all",
            "visibility" => self.look.visible = Some(!matches!(value, "hidden" | "collapse")),
            "content-visibility" if value == "hidden" => self.clipped = true,
            "filter" | "-webkit-filter" => self.filtered = is_filtered_out(value),
            "opacity" => self.transparent = number(value).is_some_and(|n| n <= 0.05),
            "font-size" | "font" => self.look.tiny = is_tiny(value).or(self.look.tiny),
            "color" | "-webkit-text-fill-color" => self.look.color = paint(value),
            "background-color" | "background" => self.look.background = background(value),
            "background-image" if !matches!(self.look.background, Some(Paint::Rgb(_))) => {
                self.look.background = background(value);
            }
            "left" | "top" | "right" | "bottom" | "margin-left" | "margin-top" | "text-indent" => {
                let distance = pixels(value);
                self.off_screen |= distance.is_some_and(|px| px <= OFF_SCREEN_PX);
                self.off_screen |= property == "left" && distance.is_some_and(|px| px >= 10.0 * -OFF_SCREEN_PX);
            }
            "transform" => {
                self.moved = value.contains("translate") || value.contains("scale");
                self.clipped |= value.replace(' ', "").contains("scale(0)");
                let translation = value.split(['(', ',', ')']).filter_map(pixels);
                self.off_screen |= translation.into_iter().any(|px| px <= OFF_SCREEN_PX);
            }
            "width" | "height" | "max-width" | "max-height" => {
                self.empty_box |= pixels(value).is_some_and(|px| (0.0..=1.0).contains(&px));
            }
            "overflow" | "overflow-x" | "overflow-y" => {
                self.cuts_overflow |= value.contains("hidden") || value.contains("clip");
            }
            "clip" => self.clipped |= clips_everything(value),
            "clip-path" => {
                let shape = value.replace(' ', "");
                let empty = ["inset(50%", "inset(100%", "circle(0", "polygon(00"];
                self.clipped |= empty.iter().any(|start| shape.starts_with(start));
            }
            _ => {}
        }
    }

    fn look(mut self) -> Look {
        // A transparent element with a transform is probably faded in later by a script, so it counts as visible.
        let invisible = (self.transparent || self.filtered) && !self.moved;
        if self.off_screen || self.clipped || invisible || (self.empty_box && self.cuts_overflow) {
            self.look.gone = Some(true);
        }
        self.look
    }
}

/// An empty box: `rect(0 0 0 0)`, `rect(1px, 1px, 1px, 1px)`.
fn clips_everything(value: &str) -> bool {
    let Some(edges) = value.strip_prefix("rect(") else {
        return false;
    };
    let edges = edges.trim_end_matches(')').split([' ', ',']).filter(|edge| !edge.is_empty());
    let mut edges = edges.map(pixels);
    edges.all(|edge| edge.is_some_and(|px| px.abs() <= 1.0))
}

/// Whether a filter contains `opacity(0)`.
fn is_filtered_out(value: &str) -> bool {
    let opacities = value.split("opacity(").skip(1).filter_map(|rest| rest.split_once(')'));
    opacities.into_iter().any(|(amount, _)| number(amount.trim()).is_some_and(|share| share <= 0.05))
}

fn number(value: &str) -> Option<f32> {
    match value.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f32>().ok().map(|n| n / 100.0),
        None => value.parse().ok(),
    }
}

/// A length in CSS pixels. An em counts as 16 px, 1% or 1vw as 10 px.
fn pixels(value: &str) -> Option<f32> {
    let (amount, unit) = amount_and_unit(value.trim())?;
    let per_unit = match unit {
        "" | "px" => 1.0,
        "pt" => 4.0 / 3.0,
        "em" | "rem" | "ex" | "ch" => 16.0,
        "vw" | "vh" | "%" => 10.0,
        "cm" => 38.0,
        "in" => 96.0,
        _ => return None,
    };
    Some(amount * per_unit)
}

fn amount_and_unit(value: &str) -> Option<(f32, &str)> {
    let is_unit = |c: char| c.is_ascii_alphabetic() || c == '%';
    let (amount, unit) = value.split_at(value.find(is_unit).unwrap_or(value.len()));
    Some((amount.trim().parse().ok()?, unit))
}

/// Whether a `font-size`, or the size in a `font`, is too small to read. Relative sizes count only if they are near zero.
fn is_tiny(value: &str) -> Option<bool> {
    let size = value.split([' ', '/']).find_map(amount_and_unit)?;
    match size {
        (amount, "em" | "%" | "ex" | "ch" | "vw" | "vh") => {
            let share = if size.1 == "%" { amount / 100.0 } else { amount };
            (share < 0.15).then_some(true)
        }
        (amount, "rem") => Some(amount < 0.15),
        (amount, "pt") => Some(amount * 4.0 / 3.0 < SMALLEST_PX),
        (amount, "px") => Some(amount < SMALLEST_PX),
        (amount, "") => (amount == 0.0).then_some(true),
        _ => None,
    }
}

fn paint(value: &str) -> Option<Paint> {
    let value = value.trim().to_ascii_lowercase();
    if let Some(hex) = value.strip_prefix('#') {
        return hex_paint(hex);
    }
    if let Some(inside) = value.strip_prefix("rgb(").or(value.strip_prefix("rgba(")) {
        return rgb_paint(inside.trim_end_matches(')'));
    }
    match value.as_str() {
        "transparent" => Some(Paint::Transparent),
        "" | "none" | "inherit" | "initial" | "unset" | "revert" | "currentcolor" => None,
        name => {
            Some(parse_named_color(name).map_or(Paint::Unknown, |(red, green, blue)| Paint::Rgb([red, green, blue])))
        }
    }
}

/// The colour of an old HTML attribute, where the `#` may be missing.
fn old_paint(value: &str) -> Option<Paint> {
    let value = value.trim();
    let is_hex = matches!(value.len(), 3 | 6) && value.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex { hex_paint(value) } else { paint(value) }
}

/// The colour of a background; that of a picture is not known.
fn background(value: &str) -> Option<Paint> {
    let mut depth = 0;
    let layers = value.split(|letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        letter.is_whitespace() && depth == 0
    });
    // Words that are no colours say how a picture is placed.
    let is_paint = |(layer, paint): &(&str, Paint)| *paint != Paint::Unknown || layer.contains('(');
    let paints = layers.filter_map(|layer| Some((layer, paint(layer)?))).filter(is_paint).map(|(_, paint)| paint);
    paints.max_by_key(|paint| match paint {
        Paint::Rgb(_) => 2,
        Paint::Unknown => 1,
        Paint::Transparent => 0,
    })
}

fn hex_paint(hex: &str) -> Option<Paint> {
    let digits: Vec<u8> = hex.chars().map_while(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    let pair = |high: usize, low: usize| digits[high] * 16 + digits[low];
    match digits.len() {
        4 if digits[3] == 0 => Some(Paint::Transparent),
        8 if pair(6, 7) == 0 => Some(Paint::Transparent),
        3 | 4 => Some(Paint::Rgb([pair(0, 0), pair(1, 1), pair(2, 2)])),
        6 | 8 => Some(Paint::Rgb([pair(0, 1), pair(2, 3), pair(4, 5)])),
        _ => None,
    }
}

fn rgb_paint(inside: &str) -> Option<Paint> {
    let parts: Vec<f32> = inside.split([',', ' ', '/']).filter(|part| !part.is_empty()).filter_map(number).collect();
    match parts[..] {
        [_, _, _, alpha] if alpha <= 0.05 => Some(Paint::Transparent),
        [red, green, blue] | [red, green, blue, _] => Some(Paint::Rgb([red as u8, green as u8, blue as u8])),
        _ => None,
    }
}

/// Rules of the page's own style sheets that hide or show elements, indexed by class, id or element name.
#[derive(Debug, Default)]
pub struct StyleRules {
    by_key: HashMap<String, Vec<Rule>>,
    size: usize,
}

#[derive(Debug)]
struct Rule {
    tag: Option<String>,
    id: Option<String>,
    classes: Vec<String>,
    /// Specificity, then position in the sheet; the greater weight wins.
    weight: (usize, usize),
    look: Look,
}

impl StyleRules {
    pub fn parse(css: &str) -> Self {
        let css = plain_css(css);
        let mut rules = Self::default();
        let mut count = 0;
        for (selectors, declarations) in blocks(&css) {
            let look = Look::of_declarations(declarations);
            // Colours in sheets are ignored: they depend on too many other rules.
            let look = Look { color: None, background: None, ..look };
            if look == Look::default() {
                continue;
            }
            for selector in selectors.split(',') {
                if count >= MAX_RULES {
                    return rules;
                }
                if let Some((key, rule)) = Rule::parse(selector, count, look) {
                    rules.size += 1 + rule.classes.len();
                    rules.by_key.entry(key).or_default().push(rule);
                    count += 1;
                }
            }
        }
        rules
    }

    /// How many steps the rules take at most, for each class of an element.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How text is shown inside `element`; `None` if the element is hidden.
    pub fn inside(&self, element: &impl Element, outside: Shown) -> Option<Shown> {
        if is_hidden_by_attribute(element) {
            return None;
        }
        let inline = element.attribute("style").map(|style| Look::of_declarations(&plain_css(&style)));
        let look = Look::of_attributes(element).then(&self.look_of(element)).then(&inline.unwrap_or_default());
        (look.gone != Some(true)).then(|| outside.under(&look))
    }

    fn look_of(&self, element: &impl Element) -> Look {
        if self.by_key.is_empty() {
            return Look::default();
        }
        let class = element.attribute("class").unwrap_or_default();
        let classes: Vec<&str> = class.split_ascii_whitespace().collect();
        let id = element.attribute("id").unwrap_or_default();
        let tag = element.name();
        let class_keys = classes.iter().map(|class| format!(".{class}"));
        let keys = class_keys.chain([format!("#{id}"), tag.to_owned()]);
        let mut matching: Vec<&Rule> = keys
            .filter_map(|key| self.by_key.get(&key))
            .flatten()
            .filter(|rule| rule.matches(tag, &id, &classes))
            .collect();
        matching.sort_by_key(|rule| rule.weight);
        matching.iter().fold(Look::default(), |look, rule| look.then(&rule.look))
    }
}

impl Rule {
    /// Parses a selector of one element by name, id and classes. Returns the rule with its index key; `None` for other
    /// selectors.
    fn parse(selector: &str, place: usize, look: Look) -> Option<(String, Self)> {
        let selector = selector.trim();
        let selector = selector.strip_prefix("html ").unwrap_or(selector).trim_start();
        let selector = selector.strip_prefix("body ").unwrap_or(selector).trim_start();
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        if selector.is_empty() || !selector.chars().all(|c| is_name(c) || matches!(c, '.' | '#')) {
            return None;
        }
        let mut rule = Self { tag: None, id: None, classes: Vec::new(), weight: (0, place), look };
        let mut rest = selector;
        while let Some(mark) = rest.chars().next() {
            let name = rest.strip_prefix(['.', '#']).unwrap_or(rest);
            let end = name.find(['.', '#']).unwrap_or(name.len());
            let (name, after) = name.split_at(end);
            match mark {
                _ if name.is_empty() => return None,
                '.' => rule.classes.push(name.to_owned()),
                '#' => rule.id = Some(name.to_owned()),
                _ => rule.tag = Some(name.to_ascii_lowercase()),
            }
            rest = after;
        }
        let (ids, tags) = (usize::from(rule.id.is_some()), usize::from(rule.tag.is_some()));
        rule.weight.0 = ids * 10_000 + rule.classes.len() * 100 + tags;
        let key = match (&rule.id, rule.classes.first(), &rule.tag) {
            (Some(id), _, _) => format!("#{id}"),
            (None, Some(class), _) => format!(".{class}"),
            (None, None, tag) => tag.clone()?,
        };
        Some((key, rule))
    }

    fn matches(&self, tag: &str, id: &str, classes: &[&str]) -> bool {
        self.tag.as_deref().is_none_or(|wanted| wanted == tag)
            && self.id.as_deref().is_none_or(|wanted| wanted == id)
            && self.classes.iter().all(|wanted| classes.contains(&wanted.as_str()))
    }
}

fn is_hidden_by_attribute(element: &impl Element) -> bool {
    let says = |name: &str, expected: &str| {
        element.attribute(name).is_some_and(|value| value.trim().eq_ignore_ascii_case(expected))
    };
    let has = |name: &str| element.attribute(name).is_some();
    has("hidden") || has("popover") || says("aria-hidden", "true") || (element.name() == "dialog" && !has("open"))
}

/// CSS in lower case, without comments and with escapes resolved: both can be put inside a word to disguise it.
fn plain_css(css: &str) -> String {
    let mut plain = String::with_capacity(css.len());
    let mut rest = css;
    while let Some(at) = rest.find(['/', '\\']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        } else if let Some(escaped) = rest.strip_prefix('\\') {
            rest = push_unescaped(&mut plain, escaped);
        } else {
            plain.push('/');
            rest = &rest[1..];
        }
    }
    plain.push_str(rest);
    plain.make_ascii_lowercase();
    plain
}

/// Writes the character of the escape at the start of `escaped`. Returns the text that follows.
fn push_unescaped<'a>(plain: &mut String, escaped: &'a str) -> &'a str {
    let digits = escaped.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
    if digits == 0 {
        return escaped;
    }
    let code = u32::from_str_radix(&escaped[..digits], 16).ok();
    plain.extend(code.and_then(char::from_u32));
    let rest = &escaped[digits..];
    rest.strip_prefix(|c: char| c.is_ascii_whitespace()).unwrap_or(rest)
}

/// The `selectors { declarations }` blocks of a sheet, including those in at-rules that always apply. Blocks for print,
/// small screens and the like are skipped.
fn blocks(css: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = css;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '}' | ';'));
            let at = rest.find(['{', ';'])?;
            let prelude = rest[..at].trim();
            let after = &rest[at + 1..];
            if rest[at..].starts_with(';') {
                rest = after;
            } else if !prelude.starts_with('@') {
                let (declarations, next) = after.split_once('}').unwrap_or((after, ""));
                rest = next;
                return Some((prelude, declarations));
            } else if applies_always(prelude) {
                rest = after;
            } else {
                rest = after_block(after);
            }
        }
    })
}

fn applies_always(at_rule: &str) -> bool {
    at_rule.starts_with("@layer")
        || at_rule.starts_with("@supports")
        || matches!(at_rule, "@media screen" | "@media all" | "@media only screen")
}

/// The text after the block whose `{` stands just before `text`.
fn after_block(text: &str) -> &str {
    let mut depth = 1;
    for (at, brace) in text.match_indices(['{', '}']) {
        depth = if brace == "{" { depth + 1 } else { depth - 1 };
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;
    use dom_query::Document;

    /// Whether text directly inside the first element of `html` is shown.
    fn shows(css: &str, html: &str) -> bool {
        let document = Document::fragment(html);
        let node = document.select("html > *").nodes().first().copied().expect("an element");
        let element = node.element_ref().expect("an element");
        let rules = StyleRules::parse(css);
        let inside = rules.inside(&*element, Shown::at_top(true));
        inside.is_some_and(|shown| shown.text_shows())
    }

    #[test]
    fn inline_styles_that_hide() {
        for style in [
            "display:none",
            "DISPLAY : None ! important",
            "display:none!important;display:block",
            "color:red; display:none;",
            "dis/* x */play:none",
            "d\\69splay:none",
            "display:n\\00006fne",
            "visibility:hidden",
            "visibility: collapse",
            "opacity:0",
            "opacity: 0.01",
            "opacity:0%",
            "filter:opacity(0)",
            "filter: blur(2px) Opacity( 0% ) contrast(1)",
            "-webkit-filter:opacity(.01)",
            "font-size:0",
            "font-size:0px",
            "font-size: 1px",
            "font-size:.01em",
            "font-size:1%",
            "font:0/0 a",
            "position:absolute;left:-9999px",
            "position:fixed; top:-100em",
            "text-indent:-9999px",
            "margin-left:-5000px",
            "left:99999px;position:absolute",
            "transform:translate(-9999px, 0)",
            "transform:translateX(-2000px)",
            "transform: scale( 0 )",
            "clip:rect(0 0 0 0);position:absolute",
            "clip: rect(1px, 1px, 1px, 1px)",
            "clip-path:inset(50%)",
            "width:1px;height:1px;overflow:hidden",
            "max-height:0;overflow:hidden",
            "color:transparent",
            "color:rgba(0,0,0,0)",
            "color:#fff0",
            "color:#fff;background:white",
            "color:rgb(254, 254, 254);background-color:#ffffff",
            "color:#fff;background:url(a.png) rgb(255, 255, 255)",
            "color:navy;background-color:#000080",
            "background:white;color:#fff;background:none repeat scroll 0 0 white",
            "content-visibility:hidden",
        ] {
            assert!(!shows("", &format!("<div style=\"{style}\">x</div>")), "{style}");
        }
    }

    #[test]
    fn inline_styles_that_do_not_hide() {
        for style in [
            "",
            "display:block",
            "display:none;display:block",
            "visibility:visible",
            "opacity:0.5",
            "opacity:0;transform:translateY(20px)",
            "filter:opacity(0.5)",
            "filter:opacity()",
            "filter:opacity(0);filter:none",
            "filter:grayscale(0)",
            "font-size:0.8em",
            "font-size:12px",
            "font-size:small",
            "font:italic 12px/1.5 serif",
            "font-family:\\5b8b\\4f53",
            "position:absolute;left:-10px",
            "margin-left:-20px",
            "width:0;height:0",
            "height:1px",
            "overflow:hidden",
            "clip:rect(0, 100px, 100px, 0)",
            "color:#fff",
            "color:#fff;background:#000",
            "color:#fff;background:url(a.png) no-repeat center / cover navy",
            "color:#fff;background-image:linear-gradient(#000, #111)",
            "color:#fff;background:transparent url(a.png)",
            "background:white;color:hsl(1, 2%, 3%)",
            "background:url(display:none)",
            "not-display:none",
        ] {
            assert!(shows("", &format!("<div style=\"{style}\">x</div>")), "{style}");
        }
    }

    #[test]
    fn attributes_that_hide() {
        for html in [
            "<p hidden>x",
            "<p hidden=until-found>x",
            "<p aria-hidden=true>x",
            "<p aria-hidden=' TRUE '>x",
            "<div popover>x",
            "<dialog>x",
        ] {
            assert!(!shows("", html), "{html}");
        }
        for html in ["<p aria-hidden=false>x", "<dialog open>x", "<p class=hidden>x"] {
            assert!(shows("", html), "{html}");
        }
    }

    #[test]
    fn style_sheets_hide_matching_elements() {
        for css in [
            ".x{display:none}",
            "body .x { display : none }",
            "p.x{visibility:hidden}",
            "#y{position:absolute;left:-9999px}",
            ".a, .x {font-size:0}",
            ".x{display:block} .x{display:none}",
            ".x{display:block} p.x{display:none}",
            "@import url(a.css); .x{display:none}",
            "@charset \"utf-8\"; /* } */ @media screen { .x{display:none} }",
            "@layer base { .q{color:red} .x{display:none} }",
        ] {
            assert!(!shows(css, "<p class='w x' id=y>text"), "{css}");
        }
        for css in [
            "",
            ".xx{display:none}",
            ".x.z{display:none}",
            "div.x{display:none}",
            ".x:hover{display:none}",
            ".z .x{display:none}",
            ".x{display:none} .w.x{display:block}",
            "#y{display:block} .x{display:none}",
            "@media print{.x{display:none}} .z{display:none}",
            "@media (max-width:600px){ .x{display:none} }",
            "@font-face{font-family:x} .x{color:red}",
            ".x{display:none",
            "}}}{{{",
        ] {
            let hides = css == ".x{display:none";
            assert_eq!(shows(css, "<p class='w x' id=y>text"), !hides, "{css}");
        }
    }

    #[test]
    fn children_can_undo_inherited_hiding() {
        let rules = StyleRules::default();
        let step = |outside: Shown, html: &str| {
            let document = Document::fragment(html);
            let node = document.select("html > *").nodes().first().copied().unwrap();
            rules.inside(&*node.element_ref().unwrap(), outside).unwrap()
        };
        let top = Shown::at_top(false);
        let prefiltered = step(top, "<ul style='font-size:0'>");
        assert!(!prefiltered.text_shows());
        assert!(!step(prefiltered, "<li style='font-size:90%'>").text_shows());
        assert!(step(prefiltered, "<li style='font-size:14px'>").text_shows());
        let unseen = step(top, "<div style='visibility:hidden'>");
        assert!(!step(unseen, "<p>").text_shows());
        assert!(step(unseen, "<p style='visibility:visible'>").text_shows());
        let dark = step(top, "<div style='background:#111'>");
        assert!(step(dark, "<font color=white>").text_shows());
        assert!(!step(top, "<font color='#FFFFFF'>").text_shows());
        assert!(!step(top, "<font color=ffffff>").text_shows());
        assert!(step(step(top, "<p background=dark.png>"), "<font color=white>").text_shows());
        assert!(step(step(top, "<div style='background:navy'>"), "<font color=white>").text_shows());
    }
}
