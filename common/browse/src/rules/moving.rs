//! Clauses that move about in a page: its tabs, its length, its waits, the pointer.

use super::read::Reading;
use super::step::{Edge, How, What};
use super::target::{Kind, Target};
use super::verbs::click_step;
use super::words::{Token, count, joined};

type Read = Option<Vec<What>>;

/// "switch to the tab Reviews".
pub fn switch(rest: &[Token], reading: &Reading) -> Read {
    let to = rest.iter().position(|t| t.is(&["to", "on"]))?;
    let target = Target::read(&rest[to + 1..]);
    (!target.full.is_empty()).then(|| vec![click_step(target, How::Once, reading)])
}

/// "scroll down", "scroll to the bottom of the list", "scroll to Reviews".
pub fn scroll(rest: &[Token]) -> Read {
    let edge = rest.iter().find_map(|t| match t.low.as_str() {
        _ if t.quoted => None,
        "bottom" | "end" => Some(Edge::Bottom),
        "top" | "start" | "beginning" => Some(Edge::Top),
        "down" => Some(Edge::Down),
        "up" => Some(Edge::Up),
        _ => None,
    });
    let area = rest
        .iter()
        .any(|t| t.is(&["textarea", "area", "box"]))
        .then(|| Target { kind: Some(Kind::Area), ..Target::default() });
    match edge {
        Some(to) => Some(vec![What::Scroll { target: area, to }]),
        None => {
            let to = rest.iter().position(|t| t.is(&["to", "until"]))?;
            let phrase = super::clause::phrase(&rest[to + 1..]);
            (!phrase.is_empty())
                .then(|| vec![What::Find(Target { name: phrase.clone(), full: phrase, ..Target::default() })])
        }
    }
}

/// "wait 3 seconds", "wait for the text …", "wait until … appears".
pub fn wait(rest: &[Token]) -> Read {
    let seconds = rest.iter().find_map(|t| count(&t.low));
    if let Some(seconds) = seconds.filter(|_| rest.iter().any(|t| t.low.starts_with("sec"))) {
        return Some(vec![What::Wait { text: None, seconds: u32::try_from(seconds).unwrap_or(30).min(30) }]);
    }
    let at = rest.iter().position(|t| t.is(&["for", "until", "till"]))?;
    let dull = [
        "the", "text", "message", "page", "appears", "to", "appear", "is", "shown", "visible", "a", "load", "loaded",
        "loads", "finish", "loading", "be", "show", "shows",
    ];
    let words: Vec<Token> = rest[at + 1..].iter().filter(|t| !t.is(&dull)).cloned().collect();
    let text = words.iter().find(|t| t.quoted).map_or_else(|| joined(&words), |t| t.text.clone());
    Some(vec![What::Wait { text: Some(text).filter(|t| !t.is_empty()), seconds: 20 }])
}

/// "hover over X".
pub fn hover(rest: &[Token], reading: &Reading) -> Read {
    let rest = if rest.first().is_some_and(|t| t.is(&["over", "on"])) { &rest[1..] } else { rest };
    (!rest.is_empty()).then(|| vec![click_step(reading.target(rest), How::Hover, reading)])
}

/// "focus into the textbox".
pub fn focus(rest: &[Token], reading: &Reading) -> Read {
    let rest = if rest.first().is_some_and(|t| t.is(&["on", "into", "in"])) { &rest[1..] } else { rest };
    (!rest.is_empty()).then(|| vec![click_step(reading.target(rest), How::Once, reading)])
}
