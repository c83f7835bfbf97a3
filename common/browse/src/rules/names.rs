//! How well names and roles of a page fit those of a task.

use super::target::Kind;
use super::words::{akin, fold, parts};
use crate::view::Node;

/// Names are this good if they are equal, and worse if only some words are.
pub const EXACT: u32 = 100;

/// Whether words stand in a list side by side.
#[must_use]
pub fn holds(has: &[String], wants: &[String]) -> bool {
    !wants.is_empty() && has.windows(wants.len()).any(|w| w == wants)
}

/// How alike a name of the page and a name of the task are.
#[must_use]
pub fn likeness(name: &str, wanted: &str) -> u32 {
    let (name, wanted) = (fold(name), fold(wanted));
    if name.is_empty() || wanted.is_empty() {
        return 0;
    }
    if name == wanted {
        return EXACT;
    }
    let (has, wants) = (parts(&name), parts(&wanted));
    if wants.is_empty() || has.is_empty() {
        return 0;
    }
    if has == wants || has.concat() == wants.concat() {
        return 95;
    }
    let extra = u32::try_from(has.len().saturating_sub(wants.len())).unwrap_or(u32::MAX).min(15);
    if holds(&has, &wants) {
        return 80 - extra;
    }
    if wants.iter().all(|w| has.contains(w)) {
        return 70 - extra;
    }
    if wants.iter().all(|w| has.iter().any(|h| akin(h, w))) {
        return 60 - extra;
    }
    if holds(&wants, &has) && has.iter().any(|h| h.len() > 3) { 45 } else { 0 }
}

/// Words for the same act: the button that logs in may say "Sign in".
pub fn same_act(name: &str, wanted: &str) -> bool {
    const ACTS: [&[&str]; 7] = [
        &["x", "×", "close", "✕", "✖", "dismiss"],
        &["login", "log in", "sign in", "signin", "log on"],
        &["search", "go", "go!", "find", "🔍"],
        &["submit", "send", "save", "done", "continue", "ok", "apply"],
        &["cancel", "no, thanks", "abort"],
        &["next", ">", "»", "›"],
        &["previous", "<", "«", "‹", "prev"],
    ];
    let (name, wanted) = (fold(name), fold(wanted));
    ACTS.iter().any(|act| act.contains(&name.as_str()) && act.contains(&wanted.as_str()))
}

/// Whether the role of a node is what the kind is called, and not only something like it.
pub fn own_role(node: &Node, kind: Kind) -> bool {
    match kind {
        Kind::Button => node.role == "button",
        Kind::Link => node.role == "link",
        Kind::Checkbox => node.role == "checkbox",
        Kind::Radio => node.role == "radio",
        Kind::Section => node.role != "region",
        _ => true,
    }
}

pub fn suits(node: &Node, kind: Kind) -> bool {
    let role = node.role.as_str();
    let usable = !matches!(role, "heading" | "image" | "region" | "dialog" | "canvas" | "graphic");
    match kind {
        Kind::Button => matches!(role, "button" | "clickable" | "menuitem" | "tab" | "switch"),
        Kind::Link => role == "link" || (role == "clickable" && !node.name.is_empty()),
        Kind::Field => node.takes_text(),
        Kind::Area => node.tag == "textarea" || (node.takes_text() && node.tag == "div"),
        Kind::Checkbox => matches!(role, "checkbox" | "switch" | "menuitemcheckbox"),
        Kind::Radio => matches!(role, "radio" | "menuitemradio"),
        Kind::List => matches!(role, "combobox" | "listbox"),
        Kind::Tab => role == "tab",
        Kind::Slider => {
            matches!(role, "slider" | "spinbutton") || node.hint.as_deref().is_some_and(|h| h.contains("slider handle"))
        }
        Kind::Icon => {
            role == "image"
                || ((role == "clickable" || role == "button" || role == "link") && node.name.chars().count() < 2)
                || node.hint.is_some()
        }
        Kind::Result => {
            let name = fold(&node.name);
            role == "link"
                && name.chars().any(char::is_alphabetic)
                && !matches!(name.as_str(), "next" | "previous" | "prev")
        }
        Kind::Section => node.is("expanded") || node.is("collapsed") || role == "tab" || role == "region",
        Kind::Heading => role == "heading",
        Kind::Paragraph => node.text.is_some(),
        Kind::Item => usable || node.look.is_some(),
    }
}
