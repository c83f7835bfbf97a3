//! The end of a plan: what it answers, and whether the goal is met.

use serde_json::Value;

use super::find::Page;
use super::output::fill_schema;
use super::words::{fold, parts};
use super::{Decision, Run};
use crate::view::Node;

/// Words of a page that say that something did not work.
const TROUBLE: [&str; 18] = [
    "not",
    "unable",
    "sorry",
    "unavailable",
    "couldn't",
    "can't",
    "error",
    "invalid",
    "incorrect",
    "failed",
    "wrong",
    "denied",
    "declined",
    "required",
    "unsuccessful",
    "rejected",
    "expired",
    "cannot",
];

pub fn finish(page: &Page<'_>, run: &Run, schema: Option<&Value>) -> Decision {
    let output = match schema {
        Some(schema) => match fill_schema(page, schema)
            .or_else(|| said(run).filter(|_| schema.get("type").and_then(Value::as_str) == Some("string")))
        {
            Some(output) => output,
            None => return Decision::Done { success: Some(false), output: Value::Null },
        },
        None => said(run).unwrap_or(Value::Null),
    };
    // Fields were filled and a button to send them is still there: the task may have meant that too.
    let unsent = run.edited && submit_button(page).is_some();
    let trouble = page.view.nodes.iter().map(Node::words).any(|text| {
        let is_new = !run.texts.iter().any(|old| old == text);
        is_new && text.len() < 300 && parts(text).iter().any(|word| TROUBLE.contains(&word.as_str()))
    });
    // A click after which the page says the same as before may have done nothing.
    let unchanged = run.clicks && page.view.nodes.iter().map(Node::words).eq(run.texts.iter().map(String::as_str));
    let unchanged = unchanged && page.view.downloads.len() == run.downloads;
    let success = (run.sure && !unsent && !trouble && !unchanged).then_some(true);
    Decision::Done { success, output }
}

/// One answer as it is; of several, each under the words that asked for it.
fn said(run: &Run) -> Option<Value> {
    match run.answers.as_slice() {
        [] => None,
        [(_, only)] => Some(only.clone()),
        several => Some(Value::Object(several.iter().cloned().collect())),
    }
}

/// The button that sends a form.
#[must_use]
pub fn submit_button<'a>(page: &Page<'a>) -> Option<&'a str> {
    let names = [
        "submit", "send", "save", "continue", "search", "go", "go!", "ok", "done", "next", "sign up", "register",
        "log in", "login", "sign in", "order", "buy", "apply", "confirm",
    ];
    let buttons: Vec<_> = page
        .elements()
        .filter(|(_, n, _)| matches!(n.role.as_str(), "button" | "clickable") && !n.is("disabled"))
        .collect();
    names
        .iter()
        .find_map(|name| buttons.iter().find(|(_, n, _)| fold(&n.name) == *name))
        .or_else(|| buttons.iter().find(|(_, n, _)| n.kind.as_deref() == Some("submit")))
        .or_else(|| {
            buttons
                .iter()
                .find(|(_, n, _)| parts(&n.name).first().is_some_and(|first| names[..5].contains(&first.as_str())))
        })
        .map(|(_, _, id)| *id)
}
