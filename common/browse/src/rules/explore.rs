//! Opens what may hide a target: sections, tabs, branches, menus, pages of a list.

use super::Run;
use super::find::Page;
use super::run::{Memo, Move, click, not_found, wait_or};
use super::target::{Relation, Target};
use super::words::{fold, parts};
use crate::action::Action;
use crate::view::Node;

/// Pages of a list that are turned.
const MOST_PAGES: usize = 40;

fn opens(node: &Node) -> bool {
    let hint = node.hint.as_deref().map(parts).unwrap_or_default();
    let has = |words: &[&str]| hint.iter().any(|h| words.contains(&h.as_str()));
    node.is("collapsed")
        || (node.role == "tab" && !node.is("selected"))
        || has(&["expandable", "collapsed", "expander", "hitarea"]) && !has(&["collapsable"])
}

fn is_menu(node: &Node) -> bool {
    let names = ["menu", "more", "options", "…", "...", "⋮", "☰", "+", "actions"];
    names.contains(&fold(&node.name).as_str())
        || (node.name.is_empty()
            && node.hint.as_deref().is_some_and(|h| parts(h).iter().any(|p| names.contains(&p.as_str()))))
}

/// The next thing to open; nothing that was opened already.
pub fn reveal(page: &Page<'_>, memo: &mut Memo, near: Option<&str>, wide: bool) -> Option<Move> {
    let fresh = |memo: &Memo, id: &str| !memo.tried.iter().chain(&memo.before).any(|tried| tried == id);
    let menus: Vec<_> = page.all_where(|n| is_menu(n) && !n.is("disabled"));
    let menu = near
        .and_then(|near| page.close_to(&menus, Relation::Of, near).into_iter().next())
        .or_else(|| menus.iter().find(|f| near.is_none() && fresh(memo, f.id)).cloned());
    if let Some(menu) = menu.filter(|m| fresh(memo, m.id)) {
        memo.tried.push(menu.id.to_owned());
        return Some(Move::Act(click(menu.id)));
    }
    if !wide {
        return None;
    }
    let closed = page.elements().find(|(_, n, id)| opens(n) && !n.is("disabled") && fresh(memo, id));
    if let Some((_, node, id)) = closed {
        memo.tried.push(id.to_owned());
        let hover = node.role.starts_with("menuitem");
        return Some(Move::Act(if hover { Action::Hover { id: id.to_owned() } } else { click(id) }));
    }
    turn(page, memo)
}

fn turn(page: &Page<'_>, memo: &mut Memo) -> Option<Move> {
    let next = page.next_page()?;
    memo.done += 1;
    (memo.done <= MOST_PAGES).then(|| Move::Act(click(next.id)))
}

/// The button that sends a window of the page away, in a dialog if there is one.
#[must_use]
pub fn way_out<'a>(page: &Page<'a>) -> Option<&'a str> {
    let names = [
        "close",
        "x",
        "×",
        "✕",
        "no thanks",
        "no, thanks",
        "not now",
        "maybe later",
        "dismiss",
        "reject all",
        "decline",
        "cancel",
    ];
    let dialog = page.view.nodes.iter().rfind(|n| n.role == "dialog");
    let inside = |n: &Node| dialog.is_none_or(|d| n.inside.is_some() && n.inside == d.id);
    names
        .iter()
        .find_map(|name| page.elements().find(|(_, n, _)| fold(&n.name) == *name && inside(n)))
        .map(|(_, _, id)| id)
}

/// Looks for a text, on the next pages too.
pub fn find(page: &Page<'_>, target: &Target, memo: &mut Memo, run: &mut Run) -> Move {
    if !page.mentions(&target.name).is_empty() {
        run.context = Some(target.name.clone());
        return Move::Finished;
    }
    turn(page, memo).unwrap_or_else(|| wait_or(memo, not_found(&target.said)))
}

/// Opens one section, or the only closed one.
pub fn expand(page: &Page<'_>, target: Option<&Target>, memo: &mut Memo) -> Move {
    if memo.acted {
        return Move::Finished;
    }
    let found = match target {
        Some(target) => page.one(target, None).map(|f| (f.node, f.id)),
        None => page
            .elements()
            .find(|(_, n, _)| n.is("collapsed") || opens(n))
            .or_else(|| page.elements().find(|(_, n, _)| is_menu(n)))
            .map(|(_, n, id)| (n, id)),
    };
    match found {
        Some((node, _)) if node.is("expanded") => Move::Finished,
        Some((_, id)) => {
            memo.acted = true;
            Move::Act(click(id))
        }
        None => wait_or(memo, not_found(target.map_or("a section that can be expanded", |t| &t.said))),
    }
}
