//! Entries of the settings file from what a service says of itself: an OpenAPI document, or the tool list of an MCP server.
//!
//! Both documents are untrusted: texts are cleaned, references and sizes are bounded, and each entry goes through the same
//! validation as one that the operator wrote.

mod convert;
mod document;
mod mcp;
mod merge;
mod merge_into;
mod openapi;
mod report;
mod words;

use serde_json::{Map, Value};

use crate::problem::Problem;
use crate::settings::{Reserved, server};
use crate::tool::Tool;

pub use mcp::{McpServer, from_mcp};
pub use merge_into::entries_of;
pub use openapi::{Select, Selection, from_openapi};

/// Largest example that is kept, in bytes.
const MAX_EXAMPLE: usize = 4_000;

/// An entry before it is read.
pub(crate) struct Made {
    pub entry: Value,
    pub notes: Vec<String>,
    /// The values that the document shows, by member.
    pub example: Map<String, Value>,
    /// Statuses that the document names as the caller's fault.
    pub caller_errors: Vec<u16>,
}

/// What an import made, and what it could not take. Nothing is dropped in silence.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    pub tools: Vec<ImportedTool>,
    pub refused: Vec<Refused>,
}

/// One tool that was taken.
#[derive(Clone, Debug)]
pub struct ImportedTool {
    /// What it was made of: `GET /pets/{id}`, or the name of an MCP tool.
    pub operation: String,
    /// The entry for the settings file, which the operator may change: price, texts, limits.
    pub entry: Value,
    /// What the entry is read as.
    pub tool: Tool,
    /// What was cut or relaxed, and what the operator should look at.
    pub notes: Vec<String>,
}

/// What was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The operation, or the selection that names none.
    pub operation: String,
    pub why: String,
}

impl Imported {
    pub(crate) fn refuse(&mut self, operation: impl Into<String>, why: impl Into<String>) {
        self.refused.push(Refused { operation: operation.into(), why: why.into() });
    }

    /// Reads an entry as the settings would, and takes it or says why not.
    pub(crate) fn take(&mut self, operation: String, made: Made, reserved: Reserved<'_>) {
        let Made { mut entry, notes, example, caller_errors } = made;
        let mut tool = match Tool::read(&entry, "", reserved) {
            Ok(tool) => tool,
            Err(problems) => return self.refuse(operation, listed(&problems)),
        };
        // What a document shows often lacks something, or is wrong.
        if let (false, Value::Object(mut whole)) = (example.is_empty(), crate::example::of(&tool.input_schema)) {
            whole.extend(example);
            if tool.check(&whole).is_ok() && Value::from(whole.clone()).to_string().len() <= MAX_EXAMPLE {
                entry["example"] = Value::Object(whole.clone());
                tool.example = Some(whole);
            }
        }
        if caller_errors.iter().any(|status| !tool.caller_errors.contains(status)) {
            tool.caller_errors.extend(caller_errors);
            tool.caller_errors.sort_unstable();
            tool.caller_errors.dedup();
            entry["caller_errors"] = Value::from(tool.caller_errors.clone());
        }
        self.tools.push(ImportedTool { operation, entry, tool, notes });
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|imported| imported.tool.name == name)
    }
}

/// What to say of an address that is refused only because it is private, or is not.
fn wrong_privacy(address: &str, private: bool) -> Option<&'static str> {
    match (server(address, private).is_err() && server(address, !private).is_ok(), private) {
        (false, _) => None,
        (true, false) => Some("is a private host; add PRIVATE=1 (--private) if it is meant"),
        (true, true) => Some("is a public host; leave out PRIVATE=1 (--private)"),
    }
}

fn listed(problems: &[Problem]) -> String {
    let shown: Vec<String> = problems.iter().take(3).map(ToString::to_string).collect();
    shown.join("; ")
}

#[cfg(test)]
mod tests;
