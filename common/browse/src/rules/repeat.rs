//! Steps that compare, count up, solve or try until a number of the page is right.

use super::find::{Found, Page};
use super::run::{Memo, Move, click, not_found, wait_or};
use super::step::{Measure, Wanted};
use super::target::Target;
use super::words::{akin, fold, minutes, number, parts};
use crate::action::{Action, Spot};
use crate::view::Node;

/// Clicks or sorts what has a number, from the least on.
pub fn ascending(page: &Page<'_>, _target: &Target, drag: bool, memo: &mut Memo) -> Move {
    let value = |n: &Node| number(&n.name).filter(|_| n.name.trim().len() < 12);
    let mut list: Vec<(f64, Found<'_>)> = page
        .all_where(|n| value(n).is_some() && (!drag || n.is("draggable")) && n.role != "button")
        .into_iter()
        .filter_map(|f| Some((value(f.node)?, f)))
        .collect();
    if list.is_empty() && memo.points.is_empty() {
        return wait_or(memo, not_found("a list of numbers"));
    }
    if drag {
        // The first place that holds the wrong number gets the right one.
        let mut sorted: Vec<f64> = list.iter().map(|(n, _)| *n).collect();
        sorted.sort_by(f64::total_cmp);
        let Some(at) = (0..list.len()).find(|i| list[*i].0.total_cmp(&sorted[*i]).is_ne()) else {
            return Move::Finished;
        };
        let Some((_, from)) = list[at..].iter().find(|(n, _)| n.total_cmp(&sorted[at]).is_eq()) else {
            return Move::Finished;
        };
        #[expect(clippy::cast_precision_loss, reason = "pixels are bounded")]
        let to = super::moves::past(from.node, list[at].1.node).map(|side| side as f64);
        return Move::Act(Action::Drag { from: Spot::Element(from.id.to_owned()), to: Spot::Point(to) });
    }
    list.sort_by(|a, b| a.0.total_cmp(&b.0));
    // The numbers may be covered after the first click: their places are kept.
    if memo.points.is_empty() {
        memo.points = list.iter().map(|(_, f)| f.node.middle()).collect();
    }
    let Some([x, y]) = memo.points.get(memo.done).copied() else { return Move::Finished };
    memo.done += 1;
    #[expect(clippy::cast_precision_loss, reason = "pixels are bounded")]
    Move::Act(Action::ClickAt { x: x as f64, y: y as f64 })
}

/// Selects all of an editor and presses the button of a style.
pub fn style(page: &Page<'_>, style: &str, memo: &mut Memo) -> Move {
    let editors = page.all_where(|n| n.takes_text());
    let button = page.all_where(|n| {
        n.role == "button"
            && parts(&format!("{} {}", n.name, n.hint.as_deref().unwrap_or(""))).iter().any(|p| akin(p, style))
    });
    let (Some(editor), Some(button)) = (editors.first(), button.first()) else {
        return wait_or(memo, not_found(style));
    };
    memo.phase += 1;
    Move::Act(match memo.phase {
        1 => click(editor.id),
        2 => Action::Press { keys: "Control+A".to_owned() },
        3 => click(button.id),
        _ => return Move::Finished,
    })
}

/// Presses the button of the block that has the least or the most.
pub fn best(page: &Page<'_>, most: bool, measure: Measure, words: &[String], memo: &mut Memo) -> Move {
    if memo.acted {
        return Move::Finished;
    }
    let usable = |n: &Node| matches!(n.role.as_str(), "button" | "clickable" | "link" | "radio") && !n.is("disabled");
    let verb = ["book", "buy", "select", "choose", "pick", "order"];
    let all = page.all_where(|n| {
        usable(n) && (n.name.is_empty() || !matches!(fold(&n.name).as_str(), "submit" | "search" | "back" | "<" | ">"))
    });
    let named: Vec<Found<'_>> = all
        .iter()
        .filter(|f| parts(&f.node.name).first().is_some_and(|p| verb.contains(&p.as_str()) || words.contains(p)))
        .cloned()
        .collect();
    let list = if named.len() > 1 { named } else { all };
    let mut start = 0;
    let mut values: Vec<(f64, &str)> = Vec::new();
    for found in &list {
        let texts: Vec<&str> = page.view.nodes[start..=found.index].iter().map(Node::words).collect();
        start = found.index + 1;
        let block = texts.join(" ");
        let value = match measure {
            Measure::Money => block.find(['$', '€', '£']).and_then(|at| number(&block[at..])),
            Measure::Time => time_of(&texts),
            Measure::Number => number(&found.node.name).or_else(|| number(&block)),
        };
        if let Some(value) = value {
            values.push((value, found.id));
        }
    }
    let better = |a: &&(f64, &str), b: &&(f64, &str)| a.0.total_cmp(&b.0);
    let pick = if most { values.iter().max_by(better) } else { values.iter().min_by(better) };
    match pick.filter(|_| values.len() > 1) {
        Some((_, id)) => {
            memo.acted = true;
            Move::Act(click(id))
        }
        // Results of a search take their time.
        None if memo.phase < 6 => {
            memo.phase += 1;
            Move::Act(Action::Wait { text: None, seconds: Some(1.0) })
        }
        None => not_found("several things to compare"),
    }
}

/// The length of time in a block: behind its label if there is one.
fn time_of(texts: &[&str]) -> Option<f64> {
    let label = texts.iter().position(|t| parts(t).iter().any(|p| p == "duration" || p == "time"));
    label.and_then(|at| texts[at..].iter().find_map(|t| minutes(t))).or_else(|| texts.iter().find_map(|t| minutes(t)))
}

/// Presses a button, or waits, until the number is as wanted.
pub fn until(page: &Page<'_>, button: &str, wanted: Wanted, memo: &mut Memo) -> Move {
    let texts = page.view.nodes.iter().filter(|n| n.text.is_some()).map(Node::words);
    let shown = if button.is_empty() {
        texts.clone().find(|t| t.contains('$')).and_then(|t| t.split('$').nth(1)).and_then(number)
    } else {
        let mut pure =
            texts.filter(|t| t.trim().trim_start_matches('-').chars().all(|c| c.is_ascii_digit() || c == '.'));
        pure.find_map(number)
    };
    if shown.is_some_and(|n| wanted.holds(n)) && (memo.acted || button.is_empty()) {
        return Move::Finished;
    }
    if button.is_empty() {
        return Move::Act(Action::Wait { text: None, seconds: Some(0.2) });
    }
    let target =
        Target { said: button.to_owned(), name: button.to_owned(), full: button.to_owned(), ..Target::default() };
    memo.acted = true;
    page.one(&target, None).map_or_else(|| not_found(button), |f| Move::Act(click(f.id)))
}

/// Guesses by halves, as the page says higher or lower.
pub fn guess(page: &Page<'_>, least: i64, most: i64, memo: &mut Memo) -> Move {
    let says = |words: &[&str]| {
        page.view
            .nodes
            .iter()
            .filter_map(|n| n.text.as_deref())
            .any(|t| parts(t).iter().any(|p| words.contains(&p.as_str())))
    };
    #[expect(clippy::cast_precision_loss, reason = "at most a million")]
    if memo.numbers.is_empty() {
        memo.numbers = vec![least as f64, most as f64, f64::NAN];
    }
    let Some(field) = page.all_where(Node::takes_text).into_iter().next() else {
        return wait_or(memo, not_found("a field"));
    };
    let (low, high, last) = (memo.numbers[0], memo.numbers[1], memo.numbers[2]);
    if memo.phase == 1 {
        memo.phase = 2;
        return super::finish::submit_button(page).map_or_else(|| not_found("Submit"), |id| Move::Act(click(id)));
    }
    if memo.phase == 2 {
        if says(&["higher", "greater", "larger", "bigger"]) {
            memo.numbers[0] = last + 1.0;
        } else if says(&["lower", "smaller", "less"]) {
            memo.numbers[1] = last - 1.0;
        } else {
            return Move::Finished;
        }
    }
    let (low, high) = if memo.phase == 2 { (memo.numbers[0], memo.numbers[1]) } else { (low, high) };
    if low > high {
        return Move::Stuck("no_progress", "no number is left to guess".to_owned());
    }
    let middle = f64::midpoint(low, high).floor();
    memo.numbers[2] = middle;
    memo.phase = 1;
    Move::Act(Action::Type { id: Some(field.id.to_owned()), text: format!("{middle}"), clear: true, enter: false })
}

/// The answer to the sum that the page shows: `3 + 4 =`, `1 + x = 21`.
pub fn sum(page: &Page<'_>) -> Option<String> {
    let texts: Vec<&str> = page.view.nodes.iter().filter_map(|n| n.text.as_deref()).collect();
    let whole = texts.iter().copied().find_map(solve);
    whole.or_else(|| solve(&texts.join(" "))).map(|n| format!("{n}"))
}

fn solve(text: &str) -> Option<f64> {
    let spaced: String =
        text.chars().flat_map(|c| if "+-−×x*÷/=?".contains(c) { vec![' ', c, ' '] } else { vec![c] }).collect();
    let words: Vec<String> = spaced.split_whitespace().map(str::to_owned).collect();
    let unknown = |w: &str| matches!(w, "x" | "?" | "y");
    let start = words.iter().position(|w| number(w).is_some() || unknown(w) || w == "-")?;
    let (left, right) = match words.iter().position(|w| w == "=") {
        Some(at) if at > start => (&words[start..at], &words[at + 1..]),
        _ => (&words[start..], &[][..]),
    };
    // A minus before a number belongs to it unless something stands before it.
    let mut terms: Vec<String> = Vec::new();
    for word in left {
        let sign = terms.last().is_some_and(|t| t == "-")
            && (terms.len() == 1 || matches!(terms[terms.len() - 2].as_str(), "+" | "-" | "*" | "/" | "×"));
        if sign {
            terms.pop();
            terms.push(format!("-{word}"));
        } else {
            terms.push(word.clone());
        }
    }
    let [a, op, b] = terms.as_slice() else { return None };
    let goal = right.join("");
    let goal = number(&goal);
    let apply = |a: f64, b: f64| match op.as_str() {
        "+" => Some(a + b),
        "-" | "−" => Some(a - b),
        "×" | "*" | "x" => Some(a * b),
        "/" | "÷" => (b.abs() > 1e-9).then(|| a / b),
        _ => None,
    };
    match (number(a), number(b), goal) {
        (Some(a), Some(b), _) => apply(a, b),
        (Some(a), None, Some(goal)) if unknown(b) => match op.as_str() {
            "+" => Some(goal - a),
            "-" | "−" => Some(a - goal),
            "×" | "*" => (a.abs() > 1e-9).then(|| goal / a),
            _ => None,
        },
        (None, Some(b), Some(goal)) if unknown(a) => match op.as_str() {
            "+" => Some(goal - b),
            "-" | "−" => Some(goal + b),
            "×" | "*" => (b.abs() > 1e-9).then(|| goal / b),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_solved() {
        for (text, is) in [
            ("1 + x = 21", 20.0),
            ("3 - 8 =", -5.0),
            ("x - 4 = -2", 2.0),
            ("7 × 6 =", 42.0),
            ("5 - x = 9", -4.0),
            ("-3 + x = 4", 7.0),
        ] {
            assert!(solve(text).is_some_and(|n| (n - is).abs() < 1e-9), "{text}: {:?}", solve(text));
        }
        assert_eq!(solve("about us"), None);
        assert_eq!(solve("3 / 0 ="), None);
    }
}
