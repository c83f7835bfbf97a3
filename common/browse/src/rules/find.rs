//! Finds what a target names on a page.

use super::names::{EXACT, holds, likeness, own_role, same_act, suits};
use super::target::{Kind, Many, Relation, Size, Target, colours};
use super::words::{akin, fold, parts};
use crate::view::{Node, View};

/// Mentions of a phrase that are looked around.
const MOST_ANCHORS: usize = 200;
/// Below this, a match is a guess.
const SURE: u32 = 65;

/// A view with what is needed to search it.
pub struct Page<'a> {
    pub view: &'a View,
    /// Of each node: the text that stands before or above a field without a name.
    labels: Vec<Option<String>>,
    /// Of each heading: the node where the next section of its level starts.
    ends: Vec<usize>,
}

/// An element, and whether the words leave no doubt.
#[derive(Clone, Debug)]
pub struct Found<'a> {
    pub node: &'a Node,
    pub id: &'a str,
    pub index: usize,
    pub sure: bool,
}

impl<'a> Page<'a> {
    #[must_use]
    pub fn new(view: &'a View) -> Self {
        let nodes = &view.nodes;
        let labels = nodes
            .iter()
            .enumerate()
            .map(|(at, node)| {
                let field = node.takes_text()
                    || matches!(node.role.as_str(), "combobox" | "listbox" | "file" | "color" | "slider");
                let choice = matches!(node.role.as_str(), "checkbox" | "radio" | "switch");
                (node.name.is_empty() && (field || choice)).then(|| beside(nodes, at, choice)).flatten()
            })
            .collect();
        Self { view, labels, ends: ends(nodes) }
    }

    /// The text beside a field without a name.
    #[must_use]
    pub fn label(&self, index: usize) -> &str {
        self.labels.get(index).and_then(Option::as_deref).unwrap_or_default()
    }

    /// All elements with their places.
    pub fn elements(&self) -> impl Iterator<Item = (usize, &'a Node, &'a str)> {
        let nodes: &'a [Node] = &self.view.nodes;
        nodes.iter().enumerate().filter_map(|(at, node)| Some((at, node, node.id.as_deref()?)))
    }

    /// How well a name fits, from 0 to `EXACT`.
    fn fits(&self, index: usize, wanted: &str) -> u32 {
        let node = &self.view.nodes[index];
        let own = [node.name.as_str(), self.label(index)];
        let mut best = 0;
        for (name, less) in own.into_iter().map(|n| (n, 0)).chain(node.placeholder.as_deref().map(|p| (p, 5))) {
            best = best.max(likeness(name, wanted).saturating_sub(less));
        }
        if best < 80 {
            let hint = node.hint.as_deref().unwrap_or_default();
            let (has, wants) = (parts(hint), parts(wanted));
            if !wants.is_empty() && wants.iter().all(|w| has.contains(w)) {
                best = best.max(80);
            } else if best == 0 && wants.iter().any(|w| w.len() > 3 && has.iter().any(|h| akin(h, w))) {
                best = 50;
            }
        }
        if best < 60 && same_act(&node.name, wanted) {
            best = 68;
        }
        best
    }

    /// Everything that fits best, in document order, with whether the fit leaves no doubt.
    #[must_use]
    pub fn all(&self, target: &Target) -> (Vec<Found<'a>>, bool) {
        let mut scored: Vec<(u32, Found<'a>)> = Vec::new();
        for (index, node, id) in self.elements() {
            if matches!(node.role.as_str(), "region" | "dialog" | "frame") && target.kind != Some(Kind::Section) {
                continue;
            }
            let role = target.kind.is_none_or(|kind| suits(node, kind));
            let mut score = if target.colour.is_some()
                || (target.shape.is_some() && node.look.is_some())
                || target.size.is_some()
            {
                self.looks(node, target)
            } else if target.is_bare() {
                match target.kind {
                    Some(kind) if role && own_role(node, kind) => EXACT,
                    Some(_) if role => EXACT - 10,
                    _ => 0,
                }
            } else {
                let full = if target.full == target.name { 0 } else { self.fits(index, &target.full) };
                full.max(self.fits(index, &target.name))
            };
            // Of names that differ in capitals only, the one as it was written.
            if score >= EXACT && !target.exact.is_empty() && node.name.trim() == target.exact {
                score += 2;
            }
            // A name in quotes is the whole name: "Cancel" is not "Cancel subscription".
            let is_pressed = matches!(node.role.as_str(), "button" | "link" | "clickable" | "menuitem" | "tab");
            // "x" is how people write the sign that closes a window.
            let sign = target.name.chars().count() == 1 && same_act(&node.name, &target.name);
            if target.quoted && is_pressed && !node.name.is_empty() && score < 95 && !sign {
                score = 0;
            }
            if score > 0 && !role {
                score = if target.is_bare() { 0 } else { score.saturating_sub(12) };
            }
            if matches!(node.role.as_str(), "heading" | "image" | "canvas")
                && !matches!(target.kind, Some(Kind::Heading | Kind::Icon))
            {
                score = score.saturating_sub(30);
            }
            if node.is("disabled") {
                score = score.saturating_sub(8);
            }
            if score >= 40 {
                scored.push((score, Found { node, id, index, sure: false }));
            }
        }
        // "the Red Kettle" is a name where nothing looks so.
        let looks = target.colour.is_some() || target.size.is_some();
        if scored.is_empty() && looks && !target.full.is_empty() && !target.is_bare() {
            let name = target.full.clone();
            let named = Target { name, exact: String::new(), colour: None, size: None, shape: None, ..target.clone() };
            return self.all(&named);
        }
        let best = scored.iter().map(|(score, _)| *score).max().unwrap_or_default();
        let slack = if target.near.is_some() || target.many != Many::One { 25 } else { 0 };
        let found: Vec<Found<'a>> =
            scored.into_iter().filter(|(score, _)| score + slack >= best).map(|(_, found)| found).collect();
        let found = self.by_size(found, target);
        (found, best >= SURE)
    }

    fn looks(&self, node: &Node, target: &Target) -> u32 {
        let look = node.look.as_deref().unwrap_or_default();
        let words = parts(look);
        if words.is_empty() {
            let boxed = target.shape.as_deref() == Some("rectangle")
                && target.colour.is_none()
                && (node.is("draggable") || node.is("droppable"));
            return if boxed { EXACT } else { 0 };
        }
        let text = node.name.trim();
        let shape = target.shape.as_deref().is_none_or(|shape| match shape {
            "shape" => words.iter().any(|w| {
                matches!(w.as_str(), "circle" | "rectangle" | "square" | "triangle" | "polygon" | "shape" | "ellipse")
            }),
            "rectangle" => {
                words.iter().any(|w| w == "rectangle" || w == "square") || (node.tag == "div" && text.is_empty())
            }
            "letter" => text.chars().count() == 1 && text.chars().all(char::is_alphabetic),
            "digit" => text.chars().count() == 1 && text.chars().all(|c| c.is_ascii_digit()),
            other => words.iter().any(|w| w == other),
        });
        let named = target.shape.is_some()
            || target.is_bare()
            || fold(text) == target.name
            || Some(text) == target.name.strip_suffix('s');
        let colour = target.colour.as_deref().is_none_or(|c| colours(c).iter().any(|c| words.iter().any(|w| w == c)));
        if shape && colour && named { EXACT } else { 0 }
    }

    fn by_size(&self, found: Vec<Found<'a>>, target: &Target) -> Vec<Found<'a>> {
        let Some(size) = target.size else { return found };
        let side = |node: &Node| node.bounds[2].max(node.bounds[3]);
        // Large and small are seen against everything of the kind that is drawn.
        let sides: Vec<i64> = self.elements().filter(|(_, n, _)| n.look.is_some()).map(|(_, n, _)| side(n)).collect();
        let all: Vec<i64> = if sides.len() < 2 { found.iter().map(|f| side(f.node)).collect() } else { sides };
        let (Some(least), Some(most)) = (all.iter().min(), all.iter().max()) else { return found };
        let middle = least + (most - least) / 2;
        found.into_iter().filter(|f| (side(f.node) > middle) == (size == Size::Large)).collect()
    }

    /// The one element that a target names. `context` is what the task found before.
    #[must_use]
    pub fn one(&self, target: &Target, context: Option<&str>) -> Option<Found<'a>> {
        let (found, mut sure) = self.all(target);
        let mut list = found;
        let near = target.near.as_ref().map(|(relation, phrase)| (*relation, phrase.as_str()));
        let near = near.or_else(|| context.filter(|_| target.theirs || list.len() > 1).map(|c| (Relation::Of, c)));
        if let Some((relation, phrase)) = near {
            let close = self.close_to(&list, relation, phrase);
            if close.is_empty() {
                // "Add to cart" of a thing that is not there.
                let part = ["menu", "navigation", "nav", "header", "page", "top"].contains(&phrase)
                    && target.ordinal.is_some();
                if list.len() > 1 && self.mentions(phrase).is_empty() && !part {
                    return None;
                }
                // "the link in the menu": the page may not say "menu".
                sure = sure && list.len() == 1;
            } else {
                list = close;
            }
        }
        let pick = match target.ordinal {
            Some(ordinal) => ordinal.index(list.len())?,
            None => {
                let same = |f: &Found<'_>| fold(f.node.words()) == target.name || fold(f.node.words()) == target.full;
                if list.len() > 1 {
                    if let Some(at) =
                        list.iter().position(same).filter(|_| list.iter().filter(|f| same(f)).count() == 1)
                    {
                        at
                    } else {
                        sure = sure && near.is_some();
                        // Of several fields the first empty one is meant.
                        list.iter()
                            .position(|f| f.node.takes_text() && f.node.value.as_deref().is_none_or(str::is_empty))
                            .unwrap_or_default()
                    }
                } else {
                    0
                }
            }
        };
        let mut found = list.get(pick)?.clone();
        found.sure = sure;
        Some(found)
    }

    /// Those nearest to a text of the page, best first.
    #[must_use]
    pub fn close_to(&self, list: &[Found<'a>], relation: Relation, phrase: &str) -> Vec<Found<'a>> {
        let anchors = self.mentions(phrase);
        let anchors = &anchors[..anchors.len().min(MOST_ANCHORS)];
        let mut best: Vec<(i64, Found<'a>)> = Vec::new();
        for found in list {
            let cost = anchors
                .iter()
                .filter(|a| **a != found.index)
                .filter_map(|a| self.distance(*a, found.index, relation))
                .min();
            if let Some(cost) = cost {
                best.push((cost, found.clone()));
            }
        }
        let least = best.iter().map(|(cost, _)| *cost).min().unwrap_or_default();
        let keep = if relation == Relation::Under { i64::MAX } else { least };
        best.into_iter().filter(|(cost, _)| *cost <= keep).map(|(_, found)| found).collect()
    }

    /// Nodes that mention a phrase; those that say nothing else come alone.
    #[must_use]
    pub fn mentions(&self, phrase: &str) -> Vec<usize> {
        let nodes = &self.view.nodes;
        let wants = parts(phrase);
        let equal: Vec<usize> = (0..nodes.len()).filter(|i| fold(nodes[*i].words()) == phrase).collect();
        if !equal.is_empty() || wants.is_empty() {
            return equal;
        }
        (0..nodes.len()).filter(|i| holds(&parts(nodes[*i].words()), &wants)).collect()
    }

    fn distance(&self, anchor: usize, index: usize, relation: Relation) -> Option<i64> {
        let (a, b) = (&self.view.nodes[anchor], &self.view.nodes[index]);
        let line = a.bounds[1] < b.bottom() && b.bounds[1] < a.bottom();
        let step = i64::try_from(index.abs_diff(anchor)).unwrap_or(i64::MAX);
        match relation {
            Relation::Of => {
                let same = a.inside.is_some() && (a.inside == b.inside || a.inside == b.id);
                if same || (b.inside.is_some() && b.inside == a.id) {
                    return Some(0);
                }
                if let (Some(x), Some(y)) = (a.cell, b.cell)
                    && x[0] == y[0]
                    && x[1] == y[1]
                {
                    return Some(1);
                }
                if index > anchor { Some(2 + step) } else { line.then_some(2 + step) }
            }
            Relation::Under => {
                if a.role != "heading" {
                    return (b.bounds[1] >= a.bounds[1] && index > anchor).then_some(0);
                }
                (index > anchor && self.ends[anchor] > index).then_some(0)
            }
            Relation::Above => (b.bottom() <= a.bounds[1] + 2).then(|| a.bounds[1] - b.bottom()),
            Relation::Left => (line && b.right() <= a.bounds[0] + 2).then(|| a.bounds[0] - b.right()),
            Relation::Right => (line && b.bounds[0] + 2 >= a.right()).then(|| b.bounds[0] - a.right()),
        }
    }

    /// Elements of which this holds.
    pub fn all_where(&self, holds: impl Fn(&Node) -> bool) -> Vec<Found<'a>> {
        self.elements()
            .filter(|(_, node, _)| holds(node))
            .map(|(index, node, id)| Found { node, id, index, sure: true })
            .collect()
    }

    /// Of each mention of a phrase, the first of these that belongs to it.
    #[must_use]
    pub fn after_each(&self, list: &[Found<'a>], phrase: &str) -> Vec<Found<'a>> {
        let mut out: Vec<Found<'a>> = Vec::new();
        for anchor in self.mentions(phrase).into_iter().take(MOST_ANCHORS) {
            let costs = list.iter().filter_map(|f| self.distance(anchor, f.index, Relation::Of).map(|cost| (cost, f)));
            if let Some((_, found)) = costs.min_by_key(|(cost, f)| (*cost, f.index))
                && out.iter().all(|old| old.id != found.id)
            {
                out.push(found.clone());
            }
        }
        out
    }

    /// Whether it turns pages of a list, by its name: a number, an arrow, "next".
    #[must_use]
    pub fn next_page(&self) -> Option<Found<'a>> {
        const NEXT: [&str; 9] = ["next", ">", "»", "›", "→", "next page", "load more", "show more", "more results"];
        self.elements()
            .find(|(_, node, _)| NEXT.contains(&fold(&node.name).as_str()) && !node.is("disabled"))
            .map(|(index, node, id)| Found { node, id, index, sure: true })
    }
}

fn ends(nodes: &[Node]) -> Vec<usize> {
    let mut ends = vec![nodes.len(); nodes.len()];
    let mut open: Vec<usize> = Vec::new();
    let level = |at: usize| nodes[at].level.unwrap_or(2);
    for at in (0..nodes.len()).filter(|at| nodes[*at].role == "heading") {
        while let Some(last) = open.pop_if(|last| level(*last) >= level(at)) {
            ends[last] = at;
        }
        open.push(at);
    }
    ends
}

/// The text before a node, on its line or above it. Boxes to be ticked have it behind them.
fn beside(nodes: &[Node], at: usize, behind: bool) -> Option<String> {
    let field = &nodes[at];
    let near = |text: &Node| {
        let line = text.bounds[1] < field.bottom() && field.bounds[1] < text.bottom();
        let above = text.bounds[1] <= field.bounds[1]
            && field.bounds[1] - text.bottom() < 30
            && text.bounds[0] < field.right()
            && field.bounds[0] < text.right() + 40;
        line || above
    };
    if behind {
        let next = nodes.get(at + 1)?;
        return next.text.clone().filter(|_| near(next));
    }
    let before =
        nodes[..at].iter().rev().take(2).take_while(|n| n.text.is_some() || n.role == "heading").find(|n| near(n))?;
    Some(before.words().to_owned()).filter(|t| t.len() < 100)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::words::tokens;
    use super::*;

    fn shop() -> View {
        serde_json::from_value(json!({"nodes": [
            {"id": "e1", "role": "heading", "name": "Lamps", "level": 2, "box": [0, 0, 200, 20]},
            {"text": "Desk lamp", "box": [0, 30, 80, 20]},
            {"id": "e2", "role": "button", "name": "Add to cart", "box": [100, 30, 80, 20]},
            {"text": "Floor lamp", "box": [0, 60, 80, 20]},
            {"id": "e3", "role": "button", "name": "Add to cart", "box": [100, 60, 80, 20]},
            {"id": "e4", "role": "heading", "name": "Newsletter", "level": 2, "box": [0, 90, 200, 20]},
            {"text": "E-mail address", "box": [0, 120, 80, 20]},
            {"id": "e5", "role": "textbox", "name": "", "value": "", "box": [100, 120, 80, 20]},
            {"id": "e6", "role": "clickable", "name": "", "hint": "trash", "box": [200, 60, 10, 10]},
            {"id": "e7", "role": "button", "name": "Sign in", "box": [0, 150, 80, 20]},
        ]}))
        .expect("a view")
    }

    fn found(phrase: &str) -> Option<(String, bool)> {
        let view = shop();
        Page::new(&view).one(&Target::read(&tokens(phrase)), None).map(|f| (f.id.to_owned(), f.sure))
    }

    #[test]
    fn elements_are_found_by_name_role_position_and_neighbours() {
        for (phrase, id, sure) in [
            ("the \"Add to cart\" button next to Floor lamp", "e3", true),
            ("the second \"Add to cart\" button", "e3", true),
            ("the \"Add to cart\" button", "e2", false),
            ("the email address field", "e5", true),
            ("the trash icon", "e6", true),
            ("the login button", "e7", true),
            ("the textbox under the heading Newsletter", "e5", true),
        ] {
            assert_eq!(found(phrase), Some((id.to_owned(), sure)), "{phrase}");
        }
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for phrase in ["the \"Checkout\" button", "the 3rd \"Add to cart\" button", "the dropdown", "the blue circle"] {
            assert_eq!(found(phrase), None, "{phrase}");
        }
    }
}
