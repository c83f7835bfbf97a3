//! Clicks: of one thing, of several, through menus, and of what is behind something else.

use super::Run;
use super::explore::reveal;
use super::find::{Found, Page};
use super::run::{Memo, Move, click as click_on, not_found, wait_or};
use super::step::How;
use super::target::{Kind, Many, Target};
use super::words::{fold, parts};
use crate::action::Action;

/// Clicks what the target names.
pub fn click(page: &Page<'_>, target: &Target, how: How, explore: bool, memo: &mut Memo, run: &mut Run) -> Move {
    if target.many != Many::One {
        return several(page, target, memo, run);
    }
    if memo.acted {
        return Move::Finished;
    }
    if target.kind == Some(Kind::Result) && !run.known.is_empty() {
        return result(page, target, memo, run);
    }
    let context = run.context.clone();
    let found =
        page.one(target, context.as_deref()).filter(|f| f.sure || !explore || fold(f.node.words()) == target.name);
    // What differs in capitals may be another one, behind what is still closed.
    let other = |f: &Found<'_>| {
        explore
            && target.quoted
            && !target.exact.is_empty()
            && fold(&f.node.name) == target.name
            && f.node.name.trim() != target.exact
    };
    if found.as_ref().is_some_and(other)
        && let Some(next) = reveal(page, memo, context.as_deref(), true)
    {
        return next;
    }
    // After fields were filled, the button of the form is meant, and not a link of the same name.
    let found = found.map(|f| form_button(page, target, run).filter(|_| !f.sure).unwrap_or(f));
    let found = match (found, target.theirs, context.as_deref()) {
        (_, true, Some(_)) => labelled(page, target).or_else(|| page.one(target, context.as_deref())),
        (found, _, _) => found,
    };
    if let Some(found) = found {
        if found.node.is("disabled") {
            return wait_or(memo, Move::Stuck("disabled", format!("\"{}\" cannot be used now", target.said)));
        }
        run.sure &= found.sure;
        memo.acted = true;
        return Move::Act(act(found.id, how));
    }
    // "the second article": of the things that the page lists.
    if let Some(id) = listed(page, target) {
        memo.acted = true;
        return Move::Act(act(&id, how));
    }
    // A text that nothing else names can be clicked where it stands.
    let nth_missing = target.ordinal.is_some() && target.kind == Some(Kind::Result);
    if let Some(action) = text_at(page, target, explore, run).filter(|_| !nth_missing) {
        memo.acted = true;
        return Move::Act(action);
    }
    if nth_missing && let Some(action) = next_results(page, target, memo) {
        return action;
    }
    // The button of a form of log-in may say "OK".
    if ["login", "log in", "sign in", "submit"].contains(&target.name.as_str())
        && memo.waits > 0
        && let Some(id) = super::finish::submit_button(page)
    {
        run.sure &= target.name != "submit";
        memo.acted = true;
        return Move::Act(click_on(id));
    }
    let near = target.near.as_ref().map(|n| n.1.as_str()).or(context.as_deref());
    if explore && memo.waits == 0 {
        // What was just opened may still be on its way.
        return wait_or(memo, Move::Finished);
    }
    reveal(page, memo, near, explore).unwrap_or_else(|| wait_or(memo, not_found(&target.said)))
}

/// The only button of this name, where fields were filled before.
fn form_button<'a>(page: &Page<'a>, target: &Target, run: &Run) -> Option<Found<'a>> {
    let mut list = page.all(target).0;
    list.retain(|f| f.node.role == "button" && !f.node.is("disabled"));
    let [one] = list.as_slice() else { return None };
    (run.edited && target.ordinal.is_none()).then(|| Found { sure: true, ..one.clone() })
}

/// The link of the nth thing that a page lists.
fn listed(page: &Page<'_>, target: &Target) -> Option<String> {
    const THINGS: &[&str] = &["article", "post", "product", "book", "story", "entry", "recipe", "item", "one"];
    let name = target.name.strip_suffix('s').unwrap_or(&target.name);
    let ordinal = target.ordinal.filter(|_| THINGS.contains(&name) && target.near.is_none())?;
    let (list, _) = super::records::series(page, &["name"]);
    let record = list.get(ordinal.index(list.len())?)?;
    let mut nodes = record.start..record.end;
    nodes.find_map(|at| super::cart::link_at(page, at))
}

/// The nth result of a search: links that were not there before it, behind the words that count or head them.
fn result(page: &Page<'_>, target: &Target, memo: &mut Memo, run: &mut Run) -> Move {
    let says = |n: &crate::view::Node| {
        let words = parts(n.words());
        words.len() < 12 && words.iter().any(|w| matches!(w.as_str(), "result" | "results"))
    };
    let from = page.view.nodes.iter().position(|n| (n.text.is_some() || n.role == "heading") && says(n)).unwrap_or(0);
    let mut list = page.all_where(|n| super::names::suits(n, Kind::Result));
    list.retain(|f| f.index > from && !run.known.contains(&fold(&f.node.name)));
    // A picture and a title of one result lead to the same page.
    list.dedup_by(|b, a| b.node.href.is_some() && b.node.href == a.node.href);
    let ordinal = target.ordinal.unwrap_or(super::words::Ordinal::Nth(1));
    let Some(found) = ordinal.index(list.len()).and_then(|at| list.get(at)) else {
        return next_results(page, target, memo).unwrap_or_else(|| wait_or(memo, not_found(&target.said)));
    };
    memo.acted = true;
    Move::Act(click_on(found.id))
}

/// The link of a file: one that says to download it, one in its row, or one of its name.
pub fn download(page: &Page<'_>, name: &str, memo: &mut Memo, run: &mut Run) -> Move {
    if memo.acted {
        // A page may show the file instead of giving it.
        run.sure &= page.view.downloads.len() > run.downloads;
        return Move::Finished;
    }
    let says = |words: &[String]| words.iter().any(|w| w == "download" || w == "downloads");
    let pressed =
        |n: &crate::view::Node| matches!(n.role.as_str(), "link" | "button" | "clickable") && !n.is("disabled");
    let wants = parts(name);
    let list = page.all_where(|n| pressed(n) && wants.iter().all(|w| parts(&n.name).contains(w)));
    let direct = list.iter().find(|f| says(&parts(&f.node.name))).or_else(|| match list.as_slice() {
        [one] => Some(one),
        _ => list.iter().find(|f| fold(&f.node.name) == *name),
    });
    let buttons = page.all_where(|n| pressed(n) && fold(&n.name) == "download");
    let near = || {
        let anchors = page.mentions(name);
        let one = anchors.iter().find_map(|at| {
            super::cart::block(page, *at)
                .into_iter()
                .find(|(_, n)| buttons.iter().any(|b| b.node.id == n.id && n.id.is_some()))
        });
        one.and_then(|(_, n)| n.id.as_deref())
    };
    let Some(id) = direct.map(|f| f.id).or_else(near) else {
        return wait_or(memo, not_found(name));
    };
    memo.acted = true;
    Move::Act(click_on(id))
}

fn act(id: &str, how: How) -> Action {
    let id = id.to_owned();
    match how {
        How::Hover => Action::Hover { id },
        _ => Action::Click { id, double: how == How::Double, right: how == How::Right },
    }
}

/// The link or value beside the label: "their address".
fn labelled<'a>(page: &Page<'a>, target: &Target) -> Option<Found<'a>> {
    let at = (0..page.view.nodes.len()).find(|i| {
        super::names::likeness(page.view.nodes[*i].words(), &target.name) >= 60
            || super::names::likeness(&target.name, page.view.nodes[*i].words()) >= 60
    })?;
    page.elements().find(|(index, node, _)| *index > at && !node.words().is_empty()).map(|(index, node, id)| Found {
        node,
        id,
        index,
        sure: true,
    })
}

/// A text that is no element: the element around it, or its place.
fn text_at(page: &Page<'_>, target: &Target, explore: bool, run: &mut Run) -> Option<Action> {
    if target.name.is_empty()
        || target.ordinal.is_some()
        || matches!(target.kind, Some(Kind::Button | Kind::Field | Kind::Checkbox | Kind::Radio | Kind::Icon))
    {
        return None;
    }
    let texts: Vec<_> =
        page.mentions(&target.name).into_iter().filter(|i| page.view.nodes[*i].text.is_some()).collect();
    let (first, exact) = (*texts.first()?, texts.len() == 1);
    let node = &page.view.nodes[first];
    if target.quoted && fold(node.words()) != target.name {
        return None;
    }
    if explore && (fold(node.words()) != target.name || target.kind == Some(Kind::Link)) {
        return None;
    }
    run.sure &= exact && fold(node.words()) == target.name;
    if let Some(inside) = &node.inside {
        return Some(click_on(inside));
    }
    #[expect(clippy::cast_precision_loss, reason = "pixels are bounded")]
    let [x, y] = node.middle().map(|side| side as f64);
    (node.bounds[1] >= 0 && node.bounds[0] >= 0 && y < page.view.height).then_some(Action::ClickAt { x, y })
}

/// The nth result may stand on a later page: counts what the pages before it held.
fn next_results(page: &Page<'_>, target: &Target, memo: &mut Memo) -> Option<Move> {
    let count = page.all(&Target { ordinal: None, ..target.clone() }).0.len();
    let super::words::Ordinal::Nth(n) = target.ordinal? else { return None };
    if count == 0 || memo.done > 40 {
        return None;
    }
    let before = memo.tried.len();
    if let Some(found) = n.checked_sub(before + 1).filter(|at| *at < count) {
        let list = page.all(&Target { ordinal: None, ..target.clone() }).0;
        memo.acted = true;
        return Some(Move::Act(click_on(list[found].id)));
    }
    let next = page.next_page()?;
    memo.tried.extend((0..count).map(|_| String::new()));
    memo.done += 1;
    Some(Move::Act(click_on(next.id)))
}

/// Clicks everything that fits, each once.
fn several(page: &Page<'_>, target: &Target, memo: &mut Memo, run: &mut Run) -> Move {
    let (list, sure) = page.all(target);
    let list: Vec<Found<'_>> = match &target.near {
        Some((_, phrase)) => page.after_each(&list, phrase),
        None => list,
    };
    let most = match target.many {
        Many::Some(n) => n,
        _ => list.len().max(memo.tried.len()),
    };
    if memo.tried.len() >= most && !memo.tried.is_empty() {
        return Move::Finished;
    }
    run.sure &= sure;
    let next = list.iter().find(|f| !memo.tried.iter().any(|id| id == f.id));
    match next {
        Some(found) => {
            memo.tried.push(found.id.to_owned());
            Move::Act(click_on(found.id))
        }
        None if !memo.tried.is_empty() && matches!(target.many, Many::All) => Move::Finished,
        None => wait_or(memo, not_found(&target.said)),
    }
}

/// Opens menus one in the other and clicks the last name.
pub fn path(page: &Page<'_>, names: &[String], memo: &mut Memo, run: &mut Run) -> Move {
    let Some(name) = names.get(memo.done) else { return Move::Finished };
    let target = Target { said: name.clone(), name: name.clone(), full: name.clone(), ..Target::default() };
    let Some(found) = page.one(&target, None) else {
        // Some menus open by a click, not by the pointer.
        memo.phase += 1;
        return match memo.tried.last().cloned() {
            Some(_) if memo.phase == 1 => Move::Act(Action::Wait { text: None, seconds: Some(1.0) }),
            Some(last) if memo.phase == 2 => Move::Act(click_on(&last)),
            _ => wait_or(memo, not_found(name)),
        };
    };
    run.sure &= found.sure;
    memo.done += 1;
    memo.phase = 0;
    memo.tried.push(found.id.to_owned());
    let last = memo.done == names.len();
    Move::Act(if last { click_on(found.id) } else { Action::Hover { id: found.id.to_owned() } })
}
