//! What a step of the task names: an element by its words, role, position, neighbourhood and looks.

use super::words::{Ordinal, Token, count, fold, joined, ordinal};

/// Roles as people call them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Button,
    Link,
    Field,
    Area,
    Checkbox,
    Radio,
    List,
    Tab,
    Slider,
    Icon,
    Item,
    Result,
    Section,
    Heading,
    Paragraph,
}

/// Where it is, seen from a text of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// In the same row, card or message, or right after it.
    Of,
    Under,
    Above,
    Left,
    Right,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Small,
    Large,
}

/// How many of what fits are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Many {
    #[default]
    One,
    All,
    Some(usize),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// As the task says it.
    pub said: String,
    /// Its words without those for its role; empty if any of the kind is meant.
    pub name: String,
    /// Its words with those for its role: "tab #1".
    pub full: String,
    pub quoted: bool,
    /// Its words with their capitals, to tell "Nam" from "nam".
    pub exact: String,
    pub kind: Option<Kind>,
    pub ordinal: Option<Ordinal>,
    pub many: Many,
    pub near: Option<(Relation, String)>,
    /// It belongs to what was found last: "their address".
    pub theirs: bool,
    pub colour: Option<String>,
    pub shape: Option<String>,
    pub size: Option<Size>,
}

const COLOURS: [&str; 26] = [
    "red",
    "green",
    "blue",
    "yellow",
    "orange",
    "purple",
    "pink",
    "black",
    "white",
    "grey",
    "gray",
    "brown",
    "cyan",
    "magenta",
    "olive",
    "aqua",
    "lime",
    "navy",
    "maroon",
    "fuchsia",
    "violet",
    "silver",
    "gold",
    "teal",
    "turquoise",
    "indigo",
];

/// Names of colours in a view that this word may mean.
#[must_use]
pub fn colours(word: &str) -> &'static [&'static str] {
    match word {
        "red" => &["red"],
        "reddish" => &["red", "brown", "pink"],
        "maroon" => &["red", "brown"],
        "green" => &["green"],
        "lime" => &["green"],
        "blue" | "navy" => &["blue"],
        "yellow" => &["yellow"],
        "gold" => &["yellow", "orange"],
        "orange" => &["orange"],
        "purple" | "indigo" => &["purple"],
        "violet" => &["purple", "magenta", "pink"],
        "pink" => &["pink"],
        "magenta" | "fuchsia" => &["magenta"],
        "black" => &["black"],
        "white" => &["white"],
        "grey" | "gray" | "silver" => &["grey"],
        "brown" => &["brown"],
        "cyan" | "aqua" | "turquoise" => &["cyan"],
        "teal" => &["cyan", "green"],
        "olive" => &["olive"],
        _ => &[],
    }
}

const ARTICLES: [&str; 10] = ["the", "a", "an", "on", "one", "your", "my", "this", "that", "any"];

/// The kind that a word stands for, and whether it is so general that a name never holds it.
fn kind(low: &str) -> Option<Kind> {
    let single = low.strip_suffix('s').filter(|s| !s.ends_with('s')).unwrap_or(low);
    Some(match single {
        "button" | "btn" => Kind::Button,
        "link" | "hyperlink" => Kind::Link,
        "field" | "textbox" | "textfield" | "input" | "textboxe" => Kind::Field,
        "textarea" => Kind::Area,
        "checkbox" | "checkboxe" | "checkboxes" => Kind::Checkbox,
        "radio" => Kind::Radio,
        "dropdown" | "drop-down" | "list" | "combobox" | "selectbox" | "listbox" => Kind::List,
        "tab" => Kind::Tab,
        "slider" | "spinner" => Kind::Slider,
        "icon" | "image" | "picture" | "logo" => Kind::Icon,
        "item" | "element" | "thing" | "option" | "entry" | "widget" | "area" | "folder" | "file" | "card" => {
            Kind::Item
        }
        "result" => Kind::Result,
        "section" | "panel" | "accordion" => Kind::Section,
        "heading" | "headline" => Kind::Heading,
        "paragraph" => Kind::Paragraph,
        _ => return None,
    })
}

fn shape(low: &str) -> Option<&'static str> {
    Some(match low.strip_suffix('s').unwrap_or(low) {
        "circle" => "circle",
        "triangle" => "triangle",
        "rectangle" => "rectangle",
        "square" => "square",
        "line" => "line",
        "shape" => "shape",
        "letter" => "letter",
        "digit" | "number" => "digit",
        _ => return None,
    })
}

fn relation(tokens: &[Token], at: usize) -> Option<(Relation, usize)> {
    let is = |n: usize, words: &[&str]| tokens.get(at + n).is_some_and(|t| t.is(words));
    if is(0, &["next", "beside", "adjacent"]) && is(1, &["to"]) {
        return Some((Relation::Of, 2));
    }
    if is(0, &["left", "right"]) && is(1, &["of"]) {
        return Some((if is(0, &["left"]) { Relation::Left } else { Relation::Right }, 2));
    }
    if is(0, &["to"]) && is(1, &["the"]) && is(2, &["left", "right"]) && is(3, &["of"]) {
        return Some((if is(2, &["left"]) { Relation::Left } else { Relation::Right }, 4));
    }
    if is(0, &["under", "below", "beneath", "underneath"]) {
        return Some((Relation::Under, 1));
    }
    if is(0, &["above"]) {
        return Some((Relation::Above, 1));
    }
    if is(0, &["in", "inside", "within", "from", "of", "by", "for", "beside", "at"]) || (is(0, &["on"]) && at > 0) {
        return Some((Relation::Of, 1));
    }
    None
}

impl Target {
    /// Reads a noun phrase. It never fails: words that it does not know are the name.
    #[must_use]
    pub fn read(tokens: &[Token]) -> Self {
        let mut target = Self { said: joined(tokens), ..Self::default() };
        let mut name: Vec<&str> = Vec::new();
        let mut full: Vec<&str> = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            let token = &tokens[at];
            let low = token.low.as_str();
            let next = tokens.get(at + 1);
            if token.quoted {
                // Of several quoted pieces the first is the name.
                if !target.quoted {
                    target.quoted = true;
                    name = vec![&token.text];
                    full.clone_from(&name);
                }
                at += 1;
                continue;
            }
            let bare = name.is_empty() && !target.quoted;
            if token.is(&["widget", "control"]) && target.quoted {
                // The name of a role: a "checkbox" widget.
                let said = fold(&name.join(" "));
                if let Some(known) = kind(&said).or_else(|| (said == "text").then_some(Kind::Field)) {
                    target.kind = Some(known);
                    name.clear();
                    full.clear();
                }
                at += 1;
                continue;
            }
            if token.is(&["labeled", "labelled", "called", "named", "titled", "saying", "says", "reading"]) {
                name.clear();
                full.clear();
                at += 1;
                continue;
            }
            if token.is(&["with", "that", "which"])
                && next.is_some_and(|n| n.is(&["the", "text", "name", "label", "says", "is", "title"]))
            {
                name.retain(|_| target.quoted);
                at += 1;
                while tokens.get(at).is_some_and(|t| {
                    t.is(&["the", "text", "name", "label", "says", "is", "title", "labeled", "labelled"])
                }) {
                    at += 1;
                }
                continue;
            }
            if (!bare || target.kind.is_some() || target.ordinal.is_some())
                && target.near.is_none()
                && let Some((relation, used)) = relation(tokens, at)
            {
                let mut rest = &tokens[at + used..];
                // "the button in the dialog labeled X": the label is the button's.
                let label =
                    rest.iter().position(|t| t.is(&["labeled", "labelled", "called", "named", "titled", "saying"]));
                if let Some(label) = label.filter(|_| !target.quoted && name.is_empty()) {
                    let words: Vec<&str> = rest[label + 1..].iter().map(|t| t.text.as_str()).collect();
                    target.quoted = rest.get(label + 1).is_some_and(|t| t.quoted);
                    name.push(if target.quoted { words[0] } else { "" });
                    if !target.quoted {
                        name = words;
                    }
                    full.clone_from(&name);
                    rest = &rest[..label];
                }
                target.set_near(relation, rest);
                break;
            }
            if token.is(&["their", "its", "his", "her"]) {
                target.theirs = true;
            } else if token.is(&["all", "every", "each", "both"]) && bare {
                target.many = Many::All;
            } else if let Some(found) = ordinal(low).filter(|_| bare && !next.is_some_and(|n| n.is(&["name", "names"])))
            {
                target.ordinal = Some(found);
            } else if let Some(n) = count(low).filter(|n| bare && *n > 1 && next.is_some()) {
                target.many = Many::Some(n);
            } else if COLOURS.contains(&low) && bare && next.is_some() {
                target.colour = Some(low.to_owned());
                full.push(&token.text);
            } else if token.is(&["small", "smaller", "smallest", "little"]) && bare && next.is_some() {
                target.size = Some(Size::Small);
                full.push(&token.text);
            } else if token.is(&["large", "larger", "largest", "big", "bigger", "biggest"]) && bare && next.is_some() {
                target.size = Some(Size::Large);
                full.push(&token.text);
            } else if token.is(&["colored", "coloured"]) || (token.is(&ARTICLES) && bare) {
                // Says nothing more.
            } else if token.is(&["text", "input", "search", "radio", "drop", "check", "scroll", "dialog", "tree"])
                && next.is_some_and(|n| {
                    n.is(&[
                        "field", "fields", "box", "area", "input", "textbox", "button", "down", "list", "boxes",
                        "result", "results",
                    ])
                })
            {
                let two = next.map_or("", |n| n.low.as_str());
                let (known, words) = match (low, two) {
                    ("text", "area") => (Kind::Area, ""),
                    ("search", "result" | "results") => (Kind::Result, ""),
                    ("search", "button") => (Kind::Button, "search"),
                    ("search", _) => (Kind::Field, "search"),
                    ("radio", _) => (Kind::Radio, ""),
                    ("drop" | "scroll", _) => (Kind::List, ""),
                    ("check", _) => (Kind::Checkbox, ""),
                    ("dialog" | "tree", _) => (Kind::Item, ""),
                    _ => (Kind::Field, ""),
                };
                target.kind = Some(target.kind.unwrap_or(known));
                if !words.is_empty() {
                    name.push(words);
                }
                full.push(&token.text);
                full.push(next.map_or("", |n| &n.text));
                at += 2;
                continue;
            } else if let Some(found) = kind(low) {
                target.kind = Some(target.kind.unwrap_or(found));
                full.push(&token.text);
            } else if low == "box" && (target.size.is_some() || target.colour.is_some()) {
                target.shape = Some("rectangle".to_owned());
            } else if let Some(found) = shape(low).filter(|_| name.is_empty()) {
                target.shape = Some(found.to_owned());
                full.push(&token.text);
                name.push(&token.text);
            } else if !target.quoted {
                full.push(&token.text);
                name.push(&token.text);
            }
            at += 1;
        }
        target.exact = name.join(" ");
        target.name = fold(&target.exact);
        target.full = fold(&full.join(" "));
        // "the box", "a text": the words of the role are all there is.
        if target.name == "box" || target.name == "text" {
            target.kind = target.kind.or(Some(Kind::Field));
        }
        target
    }

    fn set_near(&mut self, relation: Relation, rest: &[Token]) {
        let rest: Vec<Token> = rest.iter().filter(|t| !t.is(&ARTICLES)).cloned().collect();
        let quoted = rest.iter().find(|t| t.quoted).map(|t| t.text.clone());
        if rest.iter().any(|t| t.is(&["all", "every", "each"])) && self.many == Many::One {
            self.many = Many::All;
        } else if let Some(n) = rest.first().and_then(|t| count(&t.low)).filter(|n| rest.len() > 1 && *n > 1) {
            self.many = Many::Some(n);
        }
        if rest.iter().any(|t| t.is(&["their", "its"])) {
            self.theirs = true;
        }
        // "posts by @dis", "the user @leo", "the row of Coletta": the last part names it.
        let cut = rest.iter().rposition(|t| t.is(&["by", "of", "from", "named", "called", "user", "for"]));
        let tail = cut.map_or(&rest[..], |at| &rest[at + 1..]);
        let words: Vec<&str> = tail
            .iter()
            .filter(|t| {
                t.quoted
                    || !(t.is(&[
                        "all", "every", "each", "page", "below", "dialog", "box", "row", "list", "section", "heading",
                        "column",
                    ]) || kind(&t.low).is_some())
            })
            .map(|t| t.text.as_str())
            .collect();
        let phrase = quoted.unwrap_or_else(|| words.join(" "));
        let phrase = fold(&phrase);
        if !phrase.is_empty() && phrase != "below" {
            self.near = Some((relation, phrase));
        }
    }

    /// Whether nothing but a kind was said.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.name.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::tokens;
    use super::*;

    fn read(text: &str) -> Target {
        Target::read(&tokens(text))
    }

    #[test]
    fn phrases_are_taken_apart() {
        let save = read("the second \"Save\" button");
        assert_eq!((save.name.as_str(), save.kind, save.ordinal), ("save", Some(Kind::Button), Some(Ordinal::Nth(2))));
        let near = read("the Delete button next to Ada Lovelace");
        assert_eq!((near.name.as_str(), near.near), ("delete", Some((Relation::Of, "ada lovelace".to_owned()))));
        let all = read("the \"Reply\" button on all posts by @dis");
        assert_eq!((all.many, all.near), (Many::All, Some((Relation::Of, "@dis".to_owned()))));
        let tab = read("Tab #1");
        assert_eq!((tab.full.as_str(), tab.kind), ("tab #1", Some(Kind::Tab)));
        let circle = read("the large red circle");
        assert_eq!(
            (circle.colour.as_deref(), circle.shape.as_deref(), circle.size),
            (Some("red"), Some("circle"), Some(Size::Large))
        );
        let field = read("the 2nd text field");
        assert!(field.is_bare() && field.kind == Some(Kind::Field));
    }
}
