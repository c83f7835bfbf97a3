//! Entries of the settings file from what a service says of itself: an OpenAPI document, or the tool list of an MCP server.
//!
//! Both documents are untrusted: texts are cleaned, references and sizes are bounded, and each entry goes through the same
//! validation as one that the operator wrote.

mod convert;
mod document;
mod mcp;
mod merge;
mod openapi;
mod words;

use serde_json::Value;

use crate::problem::Problem;
use crate::settings::Reserved;
use crate::tool::Tool;

pub use mcp::{McpServer, from_mcp};
pub use openapi::{Select, Selection, from_openapi};

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
    pub(crate) fn take(&mut self, operation: String, entry: Value, notes: Vec<String>, reserved: Reserved<'_>) {
        match Tool::read(&entry, "", reserved) {
            Ok(tool) => self.tools.push(ImportedTool { operation, entry, tool, notes }),
            Err(problems) => self.refuse(operation, listed(&problems)),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.tools.iter().any(|imported| imported.tool.name == name)
    }
}

fn listed(problems: &[Problem]) -> String {
    let shown: Vec<String> = problems.iter().take(3).map(ToString::to_string).collect();
    shown.join("; ")
}

#[cfg(test)]
mod tests;
