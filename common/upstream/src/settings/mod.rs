//! The settings file: `{"tools": [ … ]}`.

mod address;
mod constants;
mod entry;
mod schemas;
mod slots;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::problem::{Problem, Reader, below};
use crate::tool::Tool;

pub(crate) use address::server;
pub(crate) use constants::{is_connection_header, is_header_name};
pub(crate) use entry::{MAX_NAME, MAX_SUMMARY, MAX_TITLE, is_word};

/// Most tools of one file.
pub const MAX_TOOLS: usize = 500;
/// Largest file, in bytes. Every function reads it at its start, and `/openapi.json` has to fit into an answer of Lambda.
const MAX_FILE: usize = 2_500_000;

/// Says whether a name is taken: by a tool of the catalog, or by a route.
pub type Reserved<'a> = &'a dyn Fn(&str) -> bool;

/// The operator's tools, validated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    pub tools: Vec<Tool>,
}

impl Settings {
    /// Reads a file's text.
    ///
    /// # Errors
    /// Every problem of the file, each with its pointer and what to do.
    pub fn parse(text: &str, reserved: Reserved<'_>) -> Result<Settings, Vec<Problem>> {
        if text.len() > MAX_FILE {
            let message = format!("may have at most {MAX_FILE} bytes, has {}: sell fewer tools", text.len());
            return Err(vec![Problem::new("", message)]);
        }
        let document = base::input::parse(text.as_bytes()).map_err(|error| {
            let pointer: String =
                error.path.split('.').filter(|part| !part.is_empty()).map(|part| below("", part)).collect();
            vec![Problem::new(pointer, error.message.replace("the body", "the file"))]
        })?;
        Settings::read(&document, reserved)
    }

    /// Reads a JSON document.
    ///
    /// # Errors
    /// As [`Settings::parse`].
    pub fn read(document: &Value, reserved: Reserved<'_>) -> Result<Settings, Vec<Problem>> {
        let mut reader = Reader::new(document, "")?;
        let list = |value| Value::as_array(value).ok_or_else(|| "must be an array of tools".to_owned());
        let entries = reader.required("tools", list);
        let mut problems = reader.finish();
        let entries = entries.map_or(&[][..], Vec::as_slice);
        if entries.len() > MAX_TOOLS {
            problems
                .push(Problem::new("/tools", format!("may have at most {MAX_TOOLS} tools (has {})", entries.len())));
        }
        let mut tools = Vec::new();
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, entry) in entries.iter().enumerate().take(MAX_TOOLS) {
            let at = format!("/tools/{index}");
            match Tool::read(entry, &at, reserved) {
                Ok(tool) => tools.push(tool),
                Err(wrong) => problems.extend(wrong),
            }
            let Some(name) = entry["name"].as_str() else { continue };
            match names.get(name) {
                Some(first) => {
                    problems
                        .push(Problem::new(format!("{at}/name"), format!("must differ from that of /tools/{first}")));
                }
                None => {
                    names.insert(name, index);
                }
            }
        }
        if problems.is_empty() { Ok(Settings { tools }) } else { Err(problems) }
    }

    /// The tool with this name.
    pub fn find(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Names of all secrets that the tools need. Look at the start whether the store has them.
    pub fn secrets(&self) -> BTreeSet<&str> {
        self.tools.iter().flat_map(Tool::secrets).collect()
    }
}

#[cfg(test)]
mod tests;
