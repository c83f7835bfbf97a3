//! What rules must not guess: conditions, exceptions, and what the browser's own dialogs are answered.
//!
//! A step that is done although its condition does not hold costs more than a task that is refused.

use super::words::{Token, joined};

/// Words of exceptions and conditions that no rule follows.
const EXCEPT: [&str; 24] = [
    "only",
    "unless",
    "otherwise",
    "except",
    "excluding",
    "without",
    "provided",
    "instead",
    "not",
    "don't",
    "don’t",
    "doesn't",
    "doesn’t",
    "never",
    "isn't",
    "isn’t",
    "cannot",
    "can't",
    "asking",
    "unlike",
    "whether",
    "depending",
    "else",
    "assuming",
];
/// Words that compare.
const COMPARE: [&str; 18] = [
    "below", "above", "under", "over", "less", "more", "than", "least", "most", "equal", "equals", "exceeds",
    "cheaper", "lower", "higher", "fewer", "greater", "between",
];
/// An "if" with one of these only says that something may be there.
const MAY_BE: [&str; 20] = [
    "asked",
    "asks",
    "ask",
    "prompted",
    "needed",
    "necessary",
    "required",
    "requires",
    "appears",
    "appear",
    "shown",
    "shows",
    "present",
    "visible",
    "there",
    "any",
    "pops",
    "opens",
    "displayed",
    "exists",
];
/// Names of dialogs of the browser.
const DIALOGS: [&str; 4] = ["dialog", "dialogue", "confirmation", "alert"];

/// The parts of a task that no rule may guess at.
#[must_use]
pub fn doubts(tokens: &[Token]) -> Vec<String> {
    let mut parts = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let rest = &tokens[at..];
        let end = rest.iter().position(|t| matches!(t.after, Some(',' | '.' | ';' | '!' | '?' | '\n')));
        let clause = &rest[..end.map_or(rest.len(), |end| end + 1).min(12)];
        let compares = clause.iter().skip(1).any(|t| t.is(&COMPARE) || (!t.quoted && t.low.parse::<f64>().is_ok()));
        let is_doubt = if token.is(&["if"]) {
            compares || !clause.iter().any(|t| t.is(&MAY_BE))
        } else if token.is(&["when", "once", "while", "after", "as"]) {
            compares && clause.iter().any(|t| t.is(&["is", "are", "was", "gets", "drops", "falls", "reaches"]))
        } else {
            token.is(&EXCEPT) || is_repeated(tokens, at) || is_sooner(tokens, at)
        };
        if is_doubt {
            let from = at.saturating_sub(4);
            parts.push(joined(&tokens[from..(at + clause.len()).min(tokens.len())]));
        }
    }
    parts.truncate(5);
    parts
}

/// Whether the end of a sentence turns the order of the steps: "log in and tick the box first".
fn is_sooner(tokens: &[Token], at: usize) -> bool {
    let ends = at + 1 == tokens.len() || matches!(tokens[at].after, Some('.' | '!' | '?' | ';' | '\n'));
    at > 1 && ends && tokens[at].is(&["first", "beforehand"]) && !tokens[at - 1].is(&["the", "on"])
}

/// Whether a step is to be done again and again: "click Next until …". Waiting and scrolling end by themselves.
fn is_repeated(tokens: &[Token], at: usize) -> bool {
    let before = &tokens[at.saturating_sub(8)..at];
    let ends = tokens[at].is(&["until", "till"]) && !before.iter().any(|t| t.is(&["wait", "scroll"]));
    let goes_on = tokens.get(at + 1).is_some_and(|t| t.low.ends_with("ing"));
    let again = tokens[at].is(&["repeat", "repeatedly"]) || (tokens[at].is(&["keep"]) && goes_on);
    let long = tokens[at].is(&["long"]) && tokens.get(at + 1).is_some_and(|t| t.is(&["as"]));
    ends || again || long
}

/// Whether the task accepts or dismisses dialogs of the browser; `None` if it says nothing of them.
///
/// # Errors
/// If it speaks of them and does not say which.
pub fn answer_to_dialogs(tokens: &[Token]) -> Result<Option<bool>, Vec<String>> {
    if !is_about_dialog(tokens) {
        return Ok(None);
    }
    let says = |words: &[&str]| tokens.iter().any(|t| t.is(words));
    let accepts = says(&["accept", "confirm", "ok", "okay", "yes", "approve"]);
    let dismisses = says(&["dismiss", "cancel", "decline", "reject", "no"]);
    match (accepts, dismisses) {
        (true, false) => Ok(Some(true)),
        (false, true) => Ok(Some(false)),
        // In the page itself a dialog is closed by its own button.
        (false, false) => Ok(None),
        (true, true) => Err(vec!["whether the dialog is accepted or dismissed".to_owned()]),
    }
}

/// Whether words speak of a dialog of the browser.
#[must_use]
pub fn is_about_dialog(tokens: &[Token]) -> bool {
    tokens.iter().any(|t| t.is(&DIALOGS))
}

#[cfg(test)]
mod tests {
    use super::super::words::tokens;
    use super::*;

    #[test]
    fn conditions_and_exceptions_are_doubts() {
        for task in [
            "If the total is under 100 dollars, click \"Place order\"",
            "Click \"Place order\" only if the total is below 100 dollars",
            "If the item is a Red Kettle, click \"Add to cart\"",
            "Once the total is below 100 dollars, click \"Place order\"",
            "Click \"Place order\" after asking me for confirmation",
            "Click \"Delete\" for every mail that is not from Ann",
            "If it is in stock, click \"Add to cart\". Otherwise click Back",
            "Click Next until the last page is shown",
            "Click \"Load more\" repeatedly",
        ] {
            assert!(!doubts(&tokens(task)).is_empty(), "{task}");
        }
        for task in [
            "Check the box Keep me signed in and log in",
            "Scroll down until the footer, wait until it is shown and click Save",
            "If asked about cookies, click \"Reject all\"",
            "If a banner appears, close it. When you are done, click Save",
            "If there is a cookie banner, click \"Only necessary\"",
            "Enter \"not now\" in the Note field and click Save",
        ] {
            assert_eq!(doubts(&tokens(task)), Vec::<String>::new(), "{task}");
        }
    }

    #[test]
    fn the_task_says_what_a_dialog_is_answered() {
        for (task, accepts) in [
            ("Click Delete. Accept the dialog.", Some(true)),
            ("Click Delete and dismiss the dialog", Some(false)),
            ("Click Delete. When the browser asks for confirmation, click Cancel", Some(false)),
            ("Click Delete", None),
        ] {
            assert_eq!(answer_to_dialogs(&tokens(task)), Ok(accepts), "{task}");
        }
    }
}
