//! Dragging, sliders and marking of text.

use super::Run;
use super::find::{Found, Page};
use super::run::{Memo, Move, click, not_found, wait_or};
use super::step::Place;
use super::target::{Many, Target};
use super::words::{Ordinal, number};
use crate::action::{Action, Spot};
use crate::view::Node;

#[expect(clippy::cast_precision_loss, reason = "pixels are bounded")]
fn spot(point: [i64; 2]) -> Spot {
    Spot::Point(point.map(|side| side as f64))
}

fn drag_to(from: &str, to: [i64; 2]) -> Move {
    Move::Act(Action::Drag { from: Spot::Element(from.to_owned()), to: spot(to) })
}

fn within(inner: &Node, outer: &Node) -> bool {
    let starts = inner.bounds[0] >= outer.bounds[0] && inner.bounds[1] >= outer.bounds[1];
    starts && inner.right() <= outer.right() && inner.bottom() <= outer.bottom()
}

/// Drags one thing or several.
pub fn drag(page: &Page<'_>, what: &Target, to: &Place, memo: &mut Memo, run: &mut Run) -> Move {
    let moved = |memo: &Memo, id: &str| memo.tried.iter().any(|tried| tried == id);
    if let Place::Onto(target) = to {
        let Some(goal) = goal(page, target, what) else { return wait_or(memo, not_found(&target.said)) };
        let (list, sure) = page.all(what);
        let boxes = page.all_where(|n| n.role == "graphic" && n.bounds[2] > 40);
        let next = list.iter().find(|f| {
            let boxed = within(f.node, goal.node)
                || (what.said == "everything else" && boxes.iter().any(|b| within(f.node, b.node)));
            f.id != goal.id && !boxed && f.node.role != "graphic" && !moved(memo, f.id)
        });
        let Some(found) = next.filter(|_| memo.tried.is_empty() || what.many == Many::All) else {
            return if list.is_empty() { wait_or(memo, not_found(&what.said)) } else { Move::Finished };
        };
        run.sure &= sure && (list.len() == 1 || what.many == Many::All || what.size.is_some());
        memo.tried.push(found.id.to_owned());
        return drag_to(found.id, goal.node.middle());
    }
    if memo.acted {
        return Move::Finished;
    }
    let drawn = || {
        page.all_where(|n| n.look.is_some() && n.role == "clickable")
            .into_iter()
            .next()
            .filter(|_| what.name == "item" || what.is_bare())
    };
    let Some(found) = page.one(what, None).or_else(drawn) else { return wait_or(memo, not_found(&what.said)) };
    run.sure &= found.sure;
    let peers = page.all_where(|n| n.is("draggable") && n.role == found.node.role && n.tag == found.node.tag);
    let place = peers.iter().position(|p| p.id == found.id);
    let aim = match to {
        Place::Position(ordinal) => ordinal.index(peers.len()),
        Place::Grid(x, y) => corner(&peers, *x, *y),
        Place::By { x, y } => neighbour(&peers, found.node, *x, *y),
        Place::Onto(_) => None,
    };
    memo.acted = true;
    match (aim, to) {
        (Some(aim), _) if Some(aim) == place => Move::Finished,
        (Some(aim), _) => drag_to(found.id, past(found.node, peers[aim].node)),
        (None, Place::By { x, y }) if peers.len() < 2 => {
            let [left, top] = found.node.middle();
            drag_to(found.id, [left + x * 40, top + y * 40])
        }
        _ => not_found("the place to drag to"),
    }
}

/// The middle of a place in a list and a little further, so that what is there gives way.
pub fn past(from: &Node, to: &Node) -> [i64; 2] {
    let further = |side: usize| {
        let (a, b) = (from.middle()[side], to.middle()[side]);
        let size = to.bounds[side + 2];
        if (a - b).abs() < size / 2 { b } else { b + (b - a).signum() * size * 3 / 10 }
    };
    [further(0), further(1)]
}

fn goal<'a>(page: &Page<'a>, target: &Target, what: &Target) -> Option<Found<'a>> {
    if target.shape.as_deref() == Some("rectangle") {
        let drawn = page.all_where(|n| n.role == "graphic" && n.bounds[2] > 30 && n.bounds[3] > 30);
        if !drawn.is_empty() {
            let mut list = drawn;
            list.sort_by_key(|f| f.node.bounds[0]);
            return list.get(target.ordinal.unwrap_or(Ordinal::Nth(1)).index(list.len())?).cloned();
        }
    }
    if target.size.is_some() && what.size.is_some() {
        let list = page.all_where(|n| n.is("draggable") || n.is("droppable"));
        return list.into_iter().max_by_key(|f| f.node.bounds[2] * f.node.bounds[3]);
    }
    page.one(target, None)
}

fn corner(peers: &[Found<'_>], x: f64, y: f64) -> Option<usize> {
    let side = |f: &Found<'_>, n: usize| f.node.middle()[n];
    let spread = |n: usize| Some((peers.iter().map(|f| side(f, n)).min()?, peers.iter().map(|f| side(f, n)).max()?));
    let ((left, right), (top, bottom)) = (spread(0)?, spread(1)?);
    let at = |low: i64, high: i64, part: f64| {
        if part < 0.25 {
            low
        } else if part > 0.75 {
            high
        } else {
            low + (high - low) / 2
        }
    };
    let aim = [at(left, right, x), at(top, bottom, y)];
    (0..peers.len()).min_by_key(|i| (side(&peers[*i], 0) - aim[0]).abs() + (side(&peers[*i], 1) - aim[1]).abs())
}

fn neighbour(peers: &[Found<'_>], from: &Node, x: i64, y: i64) -> Option<usize> {
    let here = peers.iter().position(|f| f.node.id == from.id)?;
    let mut line: Vec<usize> = (0..peers.len())
        .filter(|i| {
            let (a, b) = (peers[*i].node, from);
            if x == 0 {
                (a.middle()[0] - b.middle()[0]).abs() < b.bounds[2]
            } else {
                (a.middle()[1] - b.middle()[1]).abs() < b.bounds[3]
            }
        })
        .collect();
    line.sort_by_key(|i| if x == 0 { peers[*i].node.bounds[1] } else { peers[*i].node.bounds[0] });
    let at = i64::try_from(line.iter().position(|i| *i == here)?).ok()?;
    line.get(usize::try_from(at + x + y).ok()?).copied()
}

/// Marks a text with the pointer.
pub fn highlight(page: &Page<'_>, target: &Target, memo: &mut Memo) -> Move {
    if memo.acted {
        return Move::Finished;
    }
    let texts: Vec<&Node> = page.view.nodes.iter().filter(|n| n.text.is_some()).collect();
    let wanted = target.near.as_ref().map_or(target.name.as_str(), |n| n.1.as_str());
    let nth = wanted.split(' ').find_map(super::words::ordinal).or(target.ordinal).unwrap_or(Ordinal::Nth(1));
    let Some(text) = nth.index(texts.len()).map(|at| texts[at]) else { return not_found(&target.said) };
    memo.acted = true;
    let [x, y, ..] = text.bounds;
    Move::Act(Action::Drag { from: spot([x + 1, y + 2]), to: spot([text.right() + 4, text.bottom() - 3]) })
}

/// Moves a slider or spinner to a value.
pub fn slide(page: &Page<'_>, value: f64, ordinal: Option<Ordinal>, memo: &mut Memo) -> Move {
    let handle = |n: &Node| n.role == "slider" || n.hint.as_deref().is_some_and(|h| h.contains("slider handle"));
    let spins = page.all_where(|n| {
        n.takes_text()
            && (n.role == "spinbutton"
                || page.view.nodes.iter().any(|m| m.hint.as_deref().is_some_and(|h| h.contains("spinner"))))
    });
    let handles = page.all_where(handle);
    let at = ordinal.unwrap_or(Ordinal::Nth(1));
    let wanted = format!("{value}");
    if handles.is_empty() {
        let Some(field) = at.index(spins.len()).map(|i| spins[i].clone()) else {
            return wait_or(memo, not_found("a slider"));
        };
        let held = field.node.value.as_deref().and_then(number);
        if held.is_some_and(|n| (n - value).abs() < 1e-9) {
            return Move::Finished;
        }
        if !memo.acted {
            memo.acted = true;
            return Move::Act(Action::Type { id: Some(field.id.to_owned()), text: wanted, clear: true, enter: false });
        }
        // Some take no typing, but the arrow keys.
        memo.phase += 1;
        if memo.phase > 80 {
            return Move::Stuck("no_progress", format!("the field does not take {value}"));
        }
        let keys = if held.unwrap_or_default() < value { "ArrowUp" } else { "ArrowDown" };
        return Move::Act(Action::Press { keys: keys.to_owned() });
    }
    let Some(found) = at.index(handles.len()).map(|i| handles[i].clone()) else {
        return wait_or(memo, not_found("a slider"));
    };
    let shown = shown_value(page, &found);
    if shown.is_some_and(|n| (n - value).abs() < 1e-6) {
        return Move::Finished;
    }
    if found.node.tag == "input" {
        memo.phase += 1;
        if memo.phase > 2 {
            return Move::Stuck("no_progress", format!("the slider does not take {value}"));
        }
        return Move::Act(Action::Set { id: found.id.to_owned(), value: wanted });
    }
    let Some(shown) = shown else { return not_found("the value of the slider") };
    memo.phase += 1;
    match memo.phase {
        1 => Move::Act(click(found.id)),
        2 => Move::Act(Action::Press { keys: "Home".to_owned() }),
        3 => {
            memo.numbers.push(shown);
            memo.points.push(found.node.middle());
            Move::Act(Action::Press { keys: "End".to_owned() })
        }
        4 => {
            let (Some(least), Some([x, y])) = (memo.numbers.first(), memo.points.first()) else {
                return not_found("a slider");
            };
            let width = shown - least;
            let part = if width.abs() < 1e-9 { 0.0 } else { ((value - least) / width).clamp(0.0, 1.0) };
            let [right, bottom] = found.node.middle();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_precision_loss,
                reason = "pixels are bounded, the part is at most 1"
            )]
            let at = |from: i64, to: i64| from + ((to - from) as f64 * part).round() as i64;
            drag_to(found.id, [at(*x, right), at(*y, bottom)])
        }
        5..=80 => Move::Act(Action::Press { keys: if shown < value { "ArrowRight" } else { "ArrowLeft" }.to_owned() }),
        _ => Move::Stuck("no_progress", format!("the slider does not reach {value}")),
    }
}

/// The value of a slider: its own, or the number that the page shows behind it.
fn shown_value(page: &Page<'_>, slider: &Found<'_>) -> Option<f64> {
    if let Some(own) = slider.node.value.as_deref().and_then(number) {
        return Some(own);
    }
    let texts = page.view.nodes[slider.index + 1..].iter().filter_map(|n| n.text.as_deref());
    texts.take(3).find_map(|text| number(text).filter(|_| text.len() < 12))
}
