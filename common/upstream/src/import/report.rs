//! What the operator is told of an import.

use super::Imported;

/// Most names before the others are only counted.
const MOST_NAMES: usize = 5;

impl Imported {
    /// Each tool with what to look at, and what was not taken: once for each reason. Every line begins with a line break.
    pub fn told(&self) -> String {
        let mut told = String::new();
        for tool in &self.tools {
            told.push_str(&format!("\n  {} from {}", tool.tool.name, tool.operation));
            tool.notes.iter().for_each(|note| told.push_str(&format!("\n    note: {note}")));
            for secret in tool.tool.secrets() {
                told.push_str(&format!("\n    needs the secret {secret} in PROVIDER_KEYS"));
            }
        }
        let refused = self.refused.iter().map(|refused| (refused.why.as_str(), refused.operation.as_str()));
        for (why, operations) in grouped(refused) {
            told.push_str(&format!("\n  not taken: {}: {why}", listed(&operations)));
        }
        told
    }
}

/// Names by what is said of them, in the order in which it is first said.
fn grouped<'a>(said: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (what, name) in said {
        match groups.iter_mut().find(|(known, _)| *known == what) {
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
}
