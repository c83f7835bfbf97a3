//! Typing into fields, and dates, times, colours, log-ins and searches. A field counts as filled when the view shows
//! the value.

use super::Run;
use super::find::{Found, Page};
use super::names::{holds, likeness};
use super::run::{Memo, Move, click, not_found, wait_or};
use super::step::Value;
use super::target::{Many, Target};
use super::words::{akin, fold, number, parts};
use crate::action::Action;
use crate::view::Node;

pub fn type_into(id: &str, text: &str, enter: bool) -> Action {
    Action::Type { id: Some(id.to_owned()), text: text.to_owned(), clear: true, enter }
}

/// A window that came since the step began, with the button that sends it away.
fn intruder<'a>(page: &Page<'a>, memo: &Memo) -> Option<&'a str> {
    let names = ["cancel", "close", "x", "×", "no thanks", "not now", "later", "dismiss", "ok"];
    let before = memo.ids.as_ref()?;
    let new: Vec<(&Node, &str)> =
        page.elements().filter(|(_, _, id)| !before.iter().any(|old| old == id)).map(|(_, n, id)| (n, id)).collect();
    names.iter().find_map(|name| new.iter().find(|(n, _)| fold(&n.name) == *name).map(|(_, id)| *id))
}

/// Types a value into a field.
pub fn fill(page: &Page<'_>, value: &Value, field: &Target, memo: &mut Memo, run: &mut Run) -> Move {
    let text = match value {
        Value::Text(text) => text.clone(),
        Value::Kept => match &run.kept {
            Some(text) => text.clone(),
            None => return not_found("what was to be copied"),
        },
        Value::Labelled(label) => {
            match super::answer::answer(page, &super::answer::Question::Value { words: label.clone(), of: None }) {
                Some((serde_json::Value::String(text), _)) => text,
                _ => return not_found(label),
            }
        }
        Value::Answer => match super::repeat::sum(page) {
            Some(answer) => answer,
            None => return not_found("a sum that can be solved"),
        },
        Value::Shown => shown_text(page),
        Value::Completed { starts, ends } => return complete(page, starts, ends.as_deref(), field, memo, run),
    };
    if field.many == Many::All {
        let list = page.all(field).0;
        let next = list.iter().find(|f| !memo.tried.iter().any(|id| id == f.id));
        return match next {
            Some(found) => {
                memo.tried.push(found.id.to_owned());
                Move::Act(type_into(found.id, &text, false))
            }
            None if memo.tried.is_empty() => not_found(&field.said),
            None => Move::Finished,
        };
    }
    // The field stays the same one when its value makes another the first empty one.
    let again = memo
        .tried
        .first()
        .and_then(|id| page.elements().find(|(_, _, other)| other == id))
        .map(|(index, node, id)| Found { node, id, index, sure: true });
    let Some(found) = again.or_else(|| field_of(page, field, run)) else {
        return wait_or(memo, not_found(if field.said.is_empty() { "a field" } else { &field.said }));
    };
    if (found.node.role == "combobox" || found.node.role == "listbox") && found.node.tag == "select" {
        return super::pick::choose(page, std::slice::from_ref(&text), Some(field), memo, run);
    }
    if memo.tried.is_empty() {
        memo.tried.push(found.id.to_owned());
        run.sure &= found.sure;
    }
    if memo.acted
        && (found.node.is("disabled") || found.node.value.as_deref().is_some_and(|v| fold(v) != fold(&text)))
        && let Some(id) = intruder(page, memo).filter(|_| memo.phase < 3)
    {
        memo.phase += 1;
        memo.acted = false;
        return Move::Act(click(id));
    }
    if found.node.is("disabled") || found.node.is("readonly") {
        return wait_or(memo, Move::Stuck("disabled", format!("\"{}\" takes no text", field.said)));
    }
    let same =
        found.node.value.as_deref().is_some_and(|value| {
            fold(value) == fold(&text) || (number(value).is_some() && value.trim() == text.trim())
        });
    // Suggestions come a moment after the text.
    let waits = found.node.role == "combobox" && memo.acted && memo.waits == 0 && memo.done == 0;
    if waits && suggestion(page, &text, found.index, memo).is_none() {
        memo.waits = 1;
        return Move::Act(Action::Wait { text: None, seconds: Some(1.0) });
    }
    if memo.acted && (same || found.node.is("password")) {
        return suggestion(page, &text, found.index, memo).map_or(Move::Finished, |id| {
            memo.done += 1;
            Move::Act(click(&id))
        });
    }
    if memo.acted && memo.done > 0 {
        return Move::Finished;
    }
    if memo.acted && memo.errors == 0 && memo.phase == 0 && found.node.value.is_some() {
        memo.phase = 1;
        return Move::Act(type_into(found.id, &text, false));
    }
    if memo.acted {
        // The page changed what was typed, as a form of phone numbers does.
        run.sure = false;
        return Move::Finished;
    }
    memo.acted = true;
    Move::Act(match found.node.kind.as_deref() {
        Some("color" | "range") => Action::Set { id: found.id.to_owned(), value: text },
        _ => type_into(found.id, &text, false),
    })
}

fn field_of<'a>(page: &Page<'a>, field: &Target, run: &Run) -> Option<Found<'a>> {
    let context = run.context.as_deref();
    page.one(field, context).or_else(|| {
        // An unnamed password field, and the one field of a page whatever it is called.
        let fields = page.all_where(|n| n.takes_text() && !n.is("readonly"));
        if field.name.contains("password") {
            return fields.iter().find(|f| f.node.is("password")).cloned();
        }
        let same = |kind: &str| fields.iter().find(|f| f.node.kind.as_deref() == Some(kind)).cloned();
        if parts(&field.name).iter().any(|p| p == "email" || p == "mail") {
            return same("email");
        }
        if field.name.contains("phone") {
            return same("tel");
        }
        match fields.as_slice() {
            [one] => Some(Found { sure: field.is_bare(), ..one.clone() }),
            [first, ..] if field.is_bare() => Some(Found { sure: false, ..first.clone() }),
            _ => None,
        }
    })
}

/// A suggestion that came when the text was typed.
fn suggestion(page: &Page<'_>, text: &str, field: usize, memo: &Memo) -> Option<String> {
    if memo.done > 0 || page.view.nodes[field].is("password") {
        return None;
    }
    let before = memo.ids.as_ref()?;
    let wanted = fold(text);
    let new: Vec<(&Node, &str)> = page
        .elements()
        .filter(|(_, n, id)| {
            matches!(n.role.as_str(), "option" | "menuitem" | "clickable" | "link")
                && !before.iter().any(|old| old == id)
        })
        .map(|(_, n, id)| (n, id))
        .collect();
    let exact = new.iter().find(|(n, _)| fold(&n.name) == wanted);
    let words = exact.or_else(|| new.iter().find(|(n, _)| holds(&parts(&n.name), &parts(text))));
    let fits = words.or_else(|| new.iter().find(|(n, _)| fold(&n.name).contains(&wanted)));
    fits.map(|(_, id)| (*id).to_owned())
}

fn complete(page: &Page<'_>, starts: &str, ends: Option<&str>, field: &Target, memo: &mut Memo, run: &mut Run) -> Move {
    let fits = |name: &str| {
        let name = fold(name);
        name.starts_with(&fold(starts))
            && ends.is_none_or(|ends| name.ends_with(&fold(ends)))
            && name.len() > starts.len()
    };
    let Some(found) = field_of(page, field, run) else { return wait_or(memo, not_found("a field")) };
    if found.node.value.as_deref().is_some_and(fits) {
        return Move::Finished;
    }
    if let Some(option) = found.node.options.iter().find(|o| fits(o)) {
        return Move::Act(type_into(found.id, option, false));
    }
    let option = page.elements().find(|(at, n, _)| *at != found.index && !n.takes_text() && fits(&n.name));
    match option {
        Some((_, _, id)) => Move::Act(click(id)),
        None if !memo.acted => {
            memo.acted = true;
            run.sure &= found.sure;
            Move::Act(type_into(found.id, starts, false))
        }
        None => wait_or(memo, not_found(&format!("{starts}…"))),
    }
}

/// The texts of the page in the order they are read; letters that stand apart are one word.
fn shown_text(page: &Page<'_>) -> String {
    let texts: Vec<&Node> = page.view.nodes.iter().filter(|n| n.text.is_some()).collect();
    if texts.iter().all(|n| n.words().chars().count() == 1) {
        let mut letters = texts;
        letters.sort_by_key(|n| n.middle()[0]);
        return letters.iter().map(|n| n.words()).collect();
    }
    texts.iter().map(|n| n.words()).collect::<Vec<_>>().join(" ")
}

/// Fills each field with what stands beside its label elsewhere on the page.
pub fn fill_labelled(page: &Page<'_>, memo: &mut Memo) -> Move {
    for (index, node, id) in page.elements().filter(|(_, n, _)| n.takes_text()) {
        if memo.tried.iter().any(|tried| tried == id) {
            continue;
        }
        let label = if node.name.is_empty() { page.label(index) } else { &node.name };
        let found = (0..page.view.nodes.len())
            .filter(|at| page.view.nodes[*at].text.is_some())
            .find_map(|at| super::answer::beside(page, at, &fold(label)));
        let Some((_, text)) = found else { return not_found(label) };
        memo.tried.push(id.to_owned());
        return Move::Act(type_into(id, &text, false));
    }
    if memo.tried.is_empty() { not_found("a field") } else { Move::Finished }
}

/// Types a user and a password, and sends them.
pub fn log_in(page: &Page<'_>, user: &str, password: &str, memo: &mut Memo, run: &mut Run) -> Move {
    let secret = page.elements().find(|(_, n, _)| n.is("password"));
    if memo.phase >= 2 {
        // The form is gone, or nobody can tell whether the page knows the user now.
        run.sure &= secret.is_none();
        return Move::Finished;
    }
    let before = secret.map_or(page.view.nodes.len(), |(at, _, _)| at);
    let names = ["username", "user name", "email", "e-mail", "email address", "user", "login", "account"];
    let fields: Vec<_> = page.elements().filter(|(_, n, _)| n.takes_text() && !n.is("password")).collect();
    let named = |at: usize, n: &Node| {
        names.iter().any(|name| likeness(&n.name, name).max(likeness(page.label(at), name)) >= 60)
    };
    // A page without a password field may have a field for something else, such as a search.
    let last = || fields.iter().rfind(|(at, _, _)| *at < before && secret.is_some());
    let who = fields.iter().find(|(at, n, _)| named(*at, n) && (secret.is_some() || fields.len() == 1)).or_else(last);
    if memo.done == 0
        && let Some((_, _, id)) = who
    {
        memo.done = 1;
        return Move::Act(type_into(id, user, false));
    }
    let Some((_, _, id)) = secret else {
        // Some pages ask for the user first, and others only have a link to the form.
        if memo.done == 1 && memo.phase == 0 {
            memo.phase = 1;
            return Move::Act(Action::Press { keys: "Enter".to_owned() });
        }
        let link =
            page.one(&Target { name: "log in".to_owned(), full: "log in".to_owned(), ..Target::default() }, None);
        if let Some(link) = link.filter(|_| memo.done == 0 && memo.errors == 0 && memo.waits == 0) {
            memo.waits += 1;
            return Move::Act(click(link.id));
        }
        return wait_or(memo, not_found("a password field"));
    };
    if memo.done < 2 {
        memo.done = 2;
        return Move::Act(type_into(id, password, false));
    }
    memo.phase = 2;
    let button = ["log in", "login", "sign in", "submit", "continue"].iter().find_map(|name| {
        page.elements().find(|(_, n, _)| n.role == "button" && !n.is("disabled") && fold(&n.name) == *name)
    });
    Move::Act(button.map_or_else(|| Action::Press { keys: "Enter".to_owned() }, |(_, _, id)| click(id)))
}

/// Fills a search: one box, or a form in which every part has its field.
pub fn search(page: &Page<'_>, text: &str, pieces: &[(Vec<String>, String)], memo: &mut Memo, run: &mut Run) -> Move {
    let fields: Vec<_> = page.elements().filter(|(_, n, _)| n.takes_text() && !n.is("readonly")).collect();
    if !memo.acted {
        run.known = page.elements().filter(|(_, n, _)| n.role == "link").map(|(_, n, _)| fold(&n.name)).collect();
    }
    if memo.acted {
        return Move::Finished;
    }
    if fields.len() > 1 && pieces.len() == fields.len() {
        let assigned = assign(page, &fields, pieces);
        if let Some(list) = assigned {
            if let Some((id, value)) = list.iter().find(|(id, _)| !memo.tried.contains(id)) {
                memo.tried.push(id.clone());
                return Move::Act(type_into(id, value, false));
            }
            memo.acted = true;
            return Move::Act(
                super::finish::submit_button(page).map_or_else(|| Action::Press { keys: "Enter".to_owned() }, click),
            );
        }
    }
    let named = |at: usize, n: &Node| {
        n.role == "searchbox"
            || [
                n.name.as_str(),
                page.label(at),
                n.placeholder.as_deref().unwrap_or(""),
                n.hint.as_deref().unwrap_or(""),
            ]
            .iter()
            .any(|t| parts(t).iter().any(|p| p == "search" || p == "query" || p == "find"))
    };
    let field = fields.iter().find(|(at, n, _)| named(*at, n)).or_else(|| fields.first().filter(|_| fields.len() == 1));
    match field {
        Some((_, _, id)) => {
            memo.acted = true;
            Move::Act(type_into(id, text, true))
        }
        None => {
            // The box may be behind a magnifying glass.
            let glass =
                page.one(&Target { name: "search".to_owned(), full: "search".to_owned(), ..Target::default() }, None);
            match glass.filter(|_| memo.waits == 0) {
                Some(found) => {
                    memo.waits += 1;
                    run.sure &= found.sure;
                    Move::Act(click(found.id))
                }
                None => wait_or(memo, not_found("a search field")),
            }
        }
    }
}

/// Which part goes into which field; the one that nothing names goes where nothing else does.
fn assign(
    page: &Page<'_>,
    fields: &[(usize, &Node, &str)],
    pieces: &[(Vec<String>, String)],
) -> Option<Vec<(String, String)>> {
    let words_of = |at: usize, n: &Node| {
        parts(&format!("{} {} {}", n.name, page.label(at), n.placeholder.as_deref().unwrap_or("")))
    };
    let mut left: Vec<&(usize, &Node, &str)> = fields.iter().collect();
    let mut out = Vec::new();
    let mut open = Vec::new();
    for (words, value) in pieces {
        let dated = |has: &[String]| {
            words.iter().any(|w| w == "year" || w == "since")
                && has.iter().any(|h| akin(h, "release") || h == "date" || h == "year")
        };
        let at = left.iter().position(|(at, n, _)| {
            let has = words_of(*at, n);
            words.iter().any(|w| w.len() > 3 && has.iter().any(|h| akin(h, w))) || dated(&has)
        });
        match at {
            Some(at) => out.push((left.remove(at).2.to_owned(), value.clone())),
            None => open.push(value.clone()),
        }
    }
    if let ([value], [field]) = (open.as_slice(), left.as_slice()) {
        out.push((field.2.to_owned(), value.clone()));
        open.clear();
    }
    open.is_empty().then_some(out)
}

/// Gives files to the field that takes them: the named one, or the only one.
pub fn upload(page: &Page<'_>, files: &[String], target: &Target, memo: &mut Memo, run: &mut Run) -> Move {
    if memo.acted {
        return Move::Finished;
    }
    let takes: Vec<_> = page.elements().filter(|(_, node, _)| node.kind.as_deref() == Some("file")).collect();
    let named = page.one(target, None).filter(|found| found.node.kind.as_deref() == Some("file"));
    let labelled = |words: &str| {
        let mut fitting = takes
            .iter()
            .filter(|(at, node, _)| likeness(&node.name, words).max(likeness(page.label(*at), words)) >= 60);
        fitting.next().map(|(_, _, id)| (*id).to_owned())
    };
    // "Picture" is also what an image is called: the words as they were said.
    let id = named.map(|found| found.id.to_owned()).or_else(|| labelled(&target.said));
    let id = id.or_else(|| match takes.as_slice() {
        [(_, _, only)] => Some((*only).to_owned()),
        _ => None,
    });
    let Some(id) = id else { return wait_or(memo, not_found(&target.said)) };
    memo.acted = true;
    run.edited = true;
    Move::Act(Action::Upload { id, files: files.to_vec() })
}
