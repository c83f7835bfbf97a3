//! Choosing from lists, menus, radio buttons and boxes.

use super::Run;
use super::find::{Found, Page};
use super::names::likeness;
use super::run::{Memo, Move, click, not_found, wait_or};
use super::target::{Kind, Many, Target};
use super::words::fold;
use crate::action::Action;
use crate::view::Node;

/// Chooses names: options of a list, boxes, buttons.
pub fn choose(page: &Page<'_>, names: &[String], list: Option<&Target>, memo: &mut Memo, run: &mut Run) -> Move {
    // "A and B" may be the name of one option.
    let merged = merge(page, names);
    let names = merged.as_slice();
    let Some(name) = names.get(memo.done) else { return Move::Finished };
    if list.is_none()
        && let Some((list, name)) = listed(page, name)
    {
        return choose(page, &[name], Some(&list), memo, run);
    }
    if memo.acted && memo.phase == 0 {
        memo.acted = false;
        memo.done += 1;
        return choose(page, names, list, memo, run);
    }
    let option = |n: &Node| {
        n.options
            .iter()
            .find(|o| fold(o) == fold(name))
            .or_else(|| n.options.iter().find(|o| likeness(o, name) >= 70))
            .cloned()
    };
    let has = |n: &Node| n.tag == "select" && option(n).is_some();
    let said = list.and_then(|list| page.one(list, None)).filter(|f| has(f.node));
    let lists = page.all_where(has);
    let named = list.filter(|list| !list.is_bare());
    // "set the quantity to 3": a field that takes any text.
    let owner = named.and_then(|list| page.one(list, None)).filter(|f| f.sure && f.node.takes_text());
    if let Some(found) =
        owner.filter(|f| !f.node.is("readonly") && f.node.role != "combobox").filter(|_| said.is_none())
    {
        let field = Target { said: found.node.name.clone(), ..list.cloned().unwrap_or_default() };
        return super::fields::fill(page, &super::choose::as_text(std::slice::from_ref(name)), &field, memo, run);
    }
    // Which of several lists is meant, nobody knows.
    if let Some(list) = named.filter(|_| said.is_none() && lists.len() > 1) {
        return wait_or(memo, not_found(&list.said));
    }
    if let Some(found) = said.or_else(|| lists.first().cloned()) {
        run.sure &= lists.len() == 1 || list.is_some();
        let all: Vec<String> = if found.node.is("multiple") {
            names.to_vec()
        } else {
            vec![option(found.node).unwrap_or_else(|| name.clone())]
        };
        let held = found.node.value.as_deref().unwrap_or_default();
        if memo.tried.iter().any(|id| id == found.id) && all.len() == 1 && fold(held) == fold(&all[0]) {
            memo.done += 1;
            return choose(page, names, list, memo, run);
        }
        if found.node.is("multiple") {
            memo.done = names.len() - 1;
        }
        memo.tried.push(found.id.to_owned());
        memo.acted = true;
        return Move::Act(Action::Select { id: found.id.to_owned(), options: all });
    }
    let target = Target { said: name.clone(), name: fold(name), full: fold(name), quoted: true, ..Target::default() };
    let boxes = page.all_where(|n| matches!(n.role.as_str(), "checkbox" | "radio" | "switch"));
    let named = boxes.iter().find(|f| fold(&f.node.name) == fold(name) || fold(page.label(f.index)) == fold(name));
    let near = boxes.iter().find(|f| likeness(&f.node.name, name) >= 70);
    if let Some(found) = named.or(near) {
        run.sure &= named.is_some();
        if found.node.is("checked") {
            memo.done += 1;
            return choose(page, names, list, memo, run);
        }
        memo.acted = true;
        return Move::Act(Action::Check { id: found.id.to_owned(), on: true });
    }
    // A field that takes any text, named as the list: "choose Berlin as the city".
    let owner = list.and_then(|list| page.one(list, None));
    if let Some(found) = page
        .one(&target, run.context.as_deref())
        .filter(|f| f.sure && owner.as_ref().is_none_or(|o| o.id != f.id) && f.node.role != "heading")
    {
        memo.acted = true;
        memo.phase = 0;
        return Move::Act(click(found.id));
    }
    if let Some(text) = page
        .mentions(&fold(name))
        .into_iter()
        .find(|i| page.view.nodes[*i].text.is_some() && page.view.nodes[*i].inside.is_some())
        && let Some(inside) = page.view.nodes[text].inside.clone().filter(|id| !memo.tried.contains(id))
    {
        memo.acted = true;
        memo.phase = 0;
        return Move::Act(click(&inside));
    }
    if let Some(found) = owner.filter(|f| f.node.takes_text() && !f.node.is("readonly") && f.node.role != "combobox") {
        let field = Target { said: name.clone(), ..list.cloned().unwrap_or_default() };
        let _ = found;
        return super::fields::fill(page, &super::choose::as_text(std::slice::from_ref(name)), &field, memo, run);
    }
    // A list that the page draws itself opens by a click.
    if let Some(found) = drawn_list(page, list).filter(|f| !memo.tried.iter().any(|id| id == f.id)) {
        memo.tried.push(found.id.to_owned());
        memo.phase = 1;
        return Move::Act(click(found.id));
    }
    wait_or(memo, not_found(name))
}

/// "size Large", "Large size": the list and its option, where the page has both and nothing of the whole name.
fn listed(page: &Page<'_>, name: &str) -> Option<(Target, String)> {
    let words: Vec<&str> = name.split_whitespace().take(8).collect();
    let whole = fold(name);
    let is_whole = |n: &Node| fold(n.words()) == whole || n.options.iter().any(|o| fold(o) == whole);
    if words.len() < 2 || page.view.nodes.iter().any(is_whole) {
        return None;
    }
    let pairs = (1..words.len()).flat_map(|at| {
        let (head, tail) = (words[..at].join(" "), words[at..].join(" "));
        [(head.clone(), tail.clone()), (tail, head)]
    });
    pairs.into_iter().find_map(|(list, option)| {
        // "colour" of the task may be "color" of the page.
        let spellings = [list.clone(), list.replace("colour", "color"), list.replace("color", "colour")];
        let list = spellings.iter().find(|list| {
            page.view.nodes.iter().enumerate().any(|(at, n)| {
                let choice = n.role == "option" || n.role == "link";
                !choice && likeness(n.words(), list).max(likeness(page.label(at), list)) >= 75
            })
        })?;
        let holds = page.elements().any(|(at, n, _)| {
            n.options.iter().any(|o| fold(o) == fold(&option))
                || (matches!(n.role.as_str(), "radio" | "button" | "clickable" | "option" | "switch")
                    && (fold(&n.name) == fold(&option) || fold(page.label(at)) == fold(&option)))
        });
        let name = fold(list);
        holds.then(|| (Target { said: list.clone(), full: name.clone(), name, ..Target::default() }, option))
    })
}

fn merge(page: &Page<'_>, names: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for name in names {
        let joined = out.last().map(|last| format!("{last} and {name}"));
        let option =
            joined.filter(|joined| page.view.nodes.iter().any(|n| n.options.iter().any(|o| fold(o) == fold(joined))));
        match option {
            Some(joined) => {
                out.pop();
                out.push(joined);
            }
            None => out.push(name.clone()),
        }
    }
    out
}

fn drawn_list<'a>(page: &Page<'a>, list: Option<&Target>) -> Option<Found<'a>> {
    let named = list.filter(|l| !l.is_bare()).and_then(|l| page.one(&Target { kind: None, ..l.clone() }, None));
    named.or_else(|| {
        let marks = ["▾", "▼", "⌄", "▿", "select…", "select...", "choose"];
        page.all_where(|n| {
            (n.role == "combobox" && n.tag != "select")
                || n.is("collapsed")
                || marks.iter().any(|m| n.name.ends_with(m))
                || n.hint.as_deref().is_some_and(|h| h.contains("dropdown") || h.contains("select"))
        })
        .into_iter()
        .next()
    })
}

/// Ticks or unticks.
pub fn check(page: &Page<'_>, target: &Target, on: bool, memo: &mut Memo, run: &mut Run) -> Move {
    let mut wanted = target.clone();
    wanted.kind = Some(match target.kind {
        Some(kind @ (Kind::Radio | Kind::Checkbox)) => kind,
        _ => Kind::Checkbox,
    });
    for end in ["box", "boxes", "button"] {
        if let Some(name) = wanted.name.strip_suffix(end).map(|name| name.trim_end().to_owned()) {
            wanted.full.clone_from(&name);
            wanted.name = name;
        }
    }
    let state = |n: &Node| n.is("checked") || n.is("pressed");
    if wanted.many == Many::All {
        let list = page.all(&wanted).0;
        let next = list.iter().find(|f| state(f.node) != on && !memo.tried.iter().any(|id| id == f.id));
        return match next {
            Some(found) => {
                memo.tried.push(found.id.to_owned());
                Move::Act(Action::Check { id: found.id.to_owned(), on })
            }
            None if list.is_empty() => wait_or(memo, not_found(&target.said)),
            None => Move::Finished,
        };
    }
    let found = page.one(&wanted, run.context.as_deref()).filter(|f| f.sure || wanted.ordinal.is_some());
    let radio = || page.one(&Target { kind: Some(Kind::Radio), ..wanted.clone() }, None);
    let any = || page.one(target, None);
    let Some(found) = found
        .filter(|f| f.node.is("checked") || f.node.is("unchecked") || f.node.is("mixed"))
        .or_else(radio)
        .or_else(any)
    else {
        return wait_or(memo, not_found(&target.said));
    };
    if state(found.node) == on && (memo.acted || found.node.is("checked") || found.node.is("unchecked")) {
        if !memo.acted {
            run.sure &= found.sure;
        }
        return Move::Finished;
    }
    if memo.acted {
        // The page shows no state: the click was done, whether it counts nobody knows.
        run.sure = false;
        return Move::Finished;
    }
    run.sure &= found.sure;
    memo.acted = true;
    let can = found.node.is("checked") || found.node.is("unchecked") || found.node.is("mixed");
    Move::Act(if can { Action::Check { id: found.id.to_owned(), on } } else { click(found.id) })
}
