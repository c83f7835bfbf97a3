//! One step on the page that is there now.

use super::find::Page;
use super::names::holds;
use super::step::{Edge, Step, What};
use super::target::{Kind, Target};
use super::words::parts;
use super::{Run, acts, answer, calendar, explore, fields, finish, moves, pick, repeat};
use crate::action::Action;

/// What a step does next.
pub enum Move {
    Act(Action),
    Finished,
    /// A reason of `Decision::GiveUp`, and a message.
    Stuck(&'static str, String),
}

/// What a step remembers between its acts.
#[derive(Clone, Debug, Default)]
pub struct Memo {
    /// Its act was done.
    pub acted: bool,
    /// What covered its target was sent away.
    pub cleared: bool,
    pub errors: u32,
    pub waits: u32,
    /// Phase of a step with several.
    pub phase: u32,
    /// Acts of the step.
    pub count: u32,
    /// Ids that were used for it.
    pub tried: Vec<String>,
    /// What the step before it clicked.
    pub before: Vec<String>,
    /// Ids of the page when the step began.
    pub ids: Option<Vec<String>>,
    pub numbers: Vec<f64>,
    /// Points of a handle at both ends of its track.
    pub points: Vec<[i64; 2]>,
    pub done: usize,
}

/// How often a step waits for what is not there yet.
const MOST_WAITS: u32 = 2;
/// Acts of one step.
const MOST_STEP_ACTS: u32 = 120;

pub fn not_found(what: &str) -> Move {
    Move::Stuck("target_not_found", format!("\"{what}\" is not on the page"))
}

/// Waits for what is not there yet, or gives up.
pub fn wait_or(memo: &mut Memo, otherwise: Move) -> Move {
    if memo.waits < MOST_WAITS {
        memo.waits += 1;
        return Move::Act(Action::Wait { text: None, seconds: Some(1.0) });
    }
    otherwise
}

pub fn click(id: &str) -> Action {
    Action::Click { id: id.to_owned(), double: false, right: false }
}

/// Acts once, then the step is over.
fn once(memo: &mut Memo, action: Action) -> Move {
    if memo.acted {
        return Move::Finished;
    }
    memo.acted = true;
    Move::Act(action)
}

/// The next move of a step.
pub fn step(step: &Step, page: &Page<'_>, memo: &mut Memo, run: &mut Run) -> Move {
    if memo.ids.is_none() {
        memo.ids = Some(page.elements().map(|(_, _, id)| id.to_owned()).collect());
    }
    memo.count += 1;
    if memo.count > MOST_STEP_ACTS {
        return Move::Stuck("no_progress", format!("\"{}\" took too many acts", step.said));
    }
    match &step.what {
        What::Open(url) => once(memo, Action::Open { url: url.clone() }),
        What::Back => once(memo, Action::Back {}),
        What::Press(keys) => once(memo, Action::Press { keys: keys.clone() }),
        What::Click { target, how, explore } => acts::click(page, target, *how, *explore, memo, run),
        What::Path(names) => acts::path(page, names, memo, run),
        What::Fill { value, field, .. } => fields::fill(page, value, field, memo, run),
        What::FillLabelled => fields::fill_labelled(page, memo),
        What::Choose { names, list } => pick::choose(page, names, list.as_ref(), memo, run),
        What::Check { target, on } => pick::check(page, target, *on, memo, run),
        What::Scroll { target, to } => scroll(page, target.as_ref(), *to, memo),
        What::Expand(target) => explore::expand(page, target.as_ref(), memo),
        What::Wait { text, seconds } => wait(page, text.as_deref(), *seconds, memo),
        What::Find(target) => explore::find(page, target, memo, run),
        What::Word { ordinal, area } => {
            let text = match area {
                Some(area) => page.all(area).0.first().and_then(|f| f.node.value.clone()),
                None => page.view.nodes.iter().filter_map(|n| n.text.clone()).max_by_key(String::len),
            };
            let words: Vec<&str> = text.as_deref().unwrap_or_default().split_whitespace().collect();
            let Some(word) = ordinal.index(words.len()) else { return not_found(&step.said) };
            run.kept =
                Some(words[word].trim_matches(|c: char| matches!(c, ',' | '.' | ';' | ':' | '!' | '?')).to_owned());
            Move::Finished
        }
        What::Copy(target) => {
            let found = page.one(target, None);
            let text = found.and_then(|f| f.node.value.clone().or_else(|| Some(f.node.words().to_owned())));
            run.kept = text.filter(|t| !t.is_empty());
            if run.kept.is_some() { Move::Finished } else { not_found(&target.said) }
        }
        What::LogIn { user, password } => fields::log_in(page, user, password, memo, run),
        What::Search { text, parts } => fields::search(page, text, parts, memo, run),
        What::Submit => submit(page, memo),
        What::Download(name) => acts::download(page, name, memo, run),
        What::Visit(name) => visit(page, name, memo, run),
        What::Cart(cart) => super::cart::play(page, cart, memo, run),
        What::Date { date, field } => calendar::date(page, *date, field.as_ref(), memo, run),
        What::Time { text, field } => calendar::time(page, text, field.as_ref(), memo, run),
        What::Slide { value, ordinal } => moves::slide(page, *value, *ordinal, memo),
        What::Upload { files, field } => fields::upload(page, files, field, memo, run),
        What::Screenshot => once(memo, Action::Screenshot { name: None }),
        What::Colour(colour) => calendar::colour(page, colour, memo),
        What::Drag { what, to } => moves::drag(page, what, to, memo, run),
        What::Ascending { target, drag } => repeat::ascending(page, target, *drag, memo),
        What::Highlight(target) => moves::highlight(page, target, memo),
        What::Style(style) => repeat::style(page, style, memo),
        What::Best { most, measure, words } => repeat::best(page, *most, *measure, words, memo),
        What::Until { button, wanted } => repeat::until(page, button, *wanted, memo),
        What::Guess { least, most } => repeat::guess(page, *least, *most, memo),
        What::Ask(question) => ask(step, page, question, memo, run),
    }
}

/// Reads what is asked; what a thing does not show where it is listed, its own page may.
fn ask(step: &Step, page: &Page<'_>, question: &answer::Question, memo: &mut Memo, run: &mut Run) -> Move {
    if *question == answer::Question::Rows {
        return Move::Finished;
    }
    let opened = match question {
        answer::Question::Value { words, of: Some(of) } if memo.phase == 1 && is_about(page, of) => {
            answer::answer(page, &answer::Question::Value { words: words.clone(), of: None })
        }
        _ => None,
    };
    if let Some((said, sure)) = answer::answer(page, question).or(opened) {
        run.answers.push((question.name(), said));
        run.sure = run.sure && sure;
        return Move::Finished;
    }
    if let answer::Question::Value { of: Some(of), .. } = question
        && memo.phase == 0
        && let Some(link) = page.mentions(of).into_iter().find_map(|at| super::cart::link_at(page, at))
    {
        memo.phase = 1;
        return Move::Act(click(&link));
    }
    // The total of a purchase stands in the cart.
    let total =
        matches!(question, answer::Question::Value { words, of: None } if words.split(' ').any(|w| w == "total"));
    if let Some(link) = super::cart::cart_link(page).filter(|_| total && memo.phase == 0) {
        memo.phase = 1;
        return Move::Act(click(link));
    }
    // The schema's own names are looked for at the end.
    if run.has_schema { Move::Finished } else { wait_or(memo, not_found(&step.said)) }
}

/// Whether the page's title or first heading says these words.
fn is_about(page: &Page<'_>, words: &str) -> bool {
    let wants = parts(words);
    let head = page.view.nodes.iter().find(|n| n.level == Some(1)).map(|n| parts(&n.name));
    holds(&parts(&page.view.title), &wants) || head.is_some_and(|head| holds(&head, &wants))
}

/// Goes to a page by its link, unless the page says that it is the one.
fn visit(page: &Page<'_>, name: &str, memo: &mut Memo, run: &mut Run) -> Move {
    if memo.acted || is_about(page, name) {
        return Move::Finished;
    }
    let target = Target { said: name.to_owned(), name: name.to_owned(), full: name.to_owned(), ..Target::default() };
    let found = page
        .one(&target, None)
        .filter(|f| matches!(f.node.role.as_str(), "link" | "clickable" | "button" | "tab" | "menuitem"));
    let Some(found) = found else { return wait_or(memo, not_found(name)) };
    run.sure &= found.sure;
    memo.acted = true;
    Move::Act(click(found.id))
}

fn submit(page: &Page<'_>, memo: &mut Memo) -> Move {
    let action = match finish::submit_button(page) {
        Some(id) => click(id),
        None => Action::Press { keys: "Enter".to_owned() },
    };
    once(memo, action)
}

fn scroll(page: &Page<'_>, target: Option<&Target>, to: Edge, memo: &mut Memo) -> Move {
    let id = target.and_then(|target| {
        page.one(target, None).map(|f| f.id.to_owned()).or_else(|| {
            page.all(&Target { kind: Some(Kind::Area), ..Target::default() }).0.first().map(|f| f.id.to_owned())
        })
    });
    let far = 1_000_000.0;
    let height = page.view.height.clamp(200.0, 5_000.0) * 0.8;
    let dy = match to {
        Edge::Top => -far,
        Edge::Bottom => far,
        Edge::Up => -height,
        Edge::Down => height,
    };
    once(memo, Action::Scroll { id, dx: 0.0, dy })
}

fn wait(page: &Page<'_>, text: Option<&str>, seconds: u32, memo: &mut Memo) -> Move {
    let Some(text) = text else {
        return once(memo, Action::Wait { text: None, seconds: Some(f64::from(seconds)) });
    };
    if !page.mentions(&super::words::fold(text)).is_empty() {
        return Move::Finished;
    }
    if memo.acted {
        return not_found(text);
    }
    memo.acted = true;
    Move::Act(Action::Wait { text: Some(text.to_owned()), seconds: Some(f64::from(seconds)) })
}
