//! What the operator is told of an import.

use super::{Imported, ImportedTool};

/// Most names before the others are only counted.
const MOST_NAMES: usize = 5;
/// A note of more tools than these stands once, below all of them.
const MOST_ALONE: usize = 3;

impl Imported {
    /// Each tool with what to look at, and what was not taken: what concerns many, only once. Every line begins with a line
    /// break.
    pub fn told(&self) -> String {
        let notes: Vec<(String, &str)> = self.tools.iter().flat_map(ImportedTool::said).collect();
        let notes = grouped(notes.iter().map(|(note, name)| (note.as_str(), *name)));
        let (common, alone): (Vec<_>, Vec<_>) = notes.into_iter().partition(|(_, names)| names.len() > MOST_ALONE);
        let mut told = String::new();
        for tool in &self.tools {
            let name = tool.tool.name.as_str();
            told.push_str(&format!("\n  {name} from {}", tool.operation));
            for (note, _) in alone.iter().filter(|(_, names)| names.contains(&name)) {
                told.push_str(&format!("\n    note: {note}"));
            }
        }
        for (note, names) in common {
            told.push_str(&match names.len() == self.tools.len() {
                true => format!("\n  note on all {} tools: {note}", names.len()),
                false => {
                    format!("\n  note on {} of {} tools ({}): {note}", names.len(), self.tools.len(), listed(&names))
                }
            });
        }
        let refused = self.refused.iter().map(|refused| (refused.why.as_str(), refused.operation.as_str()));
        for (why, operations) in grouped(refused) {
            told.push_str(&format!("\n  not taken: {}: {why}", listed(&operations)));
        }
        told
    }
}

impl ImportedTool {
    /// The notes, and which secrets are needed, each with the tool's name.
    fn said(&self) -> impl Iterator<Item = (String, &str)> {
        let secrets =
            self.tool.secrets().into_iter().map(|secret| format!("needs the secret {secret} in PROVIDER_KEYS"));
        self.notes.iter().cloned().chain(secrets).map(|note| (note, self.tool.name.as_str()))
    }
}

/// Names by what is said of them, in the order in which it is first said.
fn grouped<'a>(said: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (what, name) in said {
        match groups.iter_mut().find(|(known, _)| *known == what) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => groups.push((what, vec![name])),
        }
    }
    groups
}

fn listed(names: &[&str]) -> String {
    match names.len().checked_sub(MOST_NAMES) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..MOST_NAMES].join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use crate::{Imported, Select, Selection, from_openapi};

    /// The import of a document with this many operations of these members.
    fn imported(count: usize, members: &Value) -> Imported {
        let paths: Map<String, Value> =
            (0..count).map(|index| (format!("/{index}"), json!({"get": members}))).collect();
        let document = json!({"openapi": "3.0.0", "servers": [{"url": "https://a.example"}], "paths": paths});
        from_openapi(&document, &Selection::new(vec![Select::All], "0.01"), &|_| false)
    }

    #[test]
    fn a_reason_of_many_operations_is_told_once() {
        let told = imported(7, &json!({"responses": {"200": {"content": {"text/html": {}}}}})).told();
        let why = "answers with text/html, which is not sold";
        assert_eq!(told, format!("\n  not taken: GET /0, GET /1, GET /2, GET /3, GET /4 and 2 more: {why}"));
    }

    #[test]
    fn a_note_of_many_tools_is_told_once() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let answer = json!({"responses": {"200": {"content": {"application/json": {"schema": schema}}}}});
        let relaxed = "output: the output schema was relaxed";
        let told = imported(4, &answer).told();
        assert_eq!(told.matches(relaxed).count(), 1, "{told}");
        assert!(told.contains(&format!("\n  note on all 4 tools: {relaxed}")), "{told}");
        let mut some = imported(7, &answer);
        some.tools[0].notes.clear();
        some.tools[1].notes.push("only here".to_owned());
        let told = some.told();
        let names = "get_1, get_2, get_3, get_4, get_5 and 1 more";
        assert!(told.contains(&format!("\n  note on 6 of 7 tools ({names}): {relaxed}")), "{told}");
        assert!(told.contains("\n  get_1 from GET /1\n    note: only here\n  get_2"), "{told}");
        assert_eq!(imported(3, &answer).told().matches(&format!("\n    note: {relaxed}")).count(), 3);
    }
}
