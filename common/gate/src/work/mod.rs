//! Does the work that a service sells: a [`Commission`] goes to an [`Executor`], a [`Report`] comes back.
//!
//! | module | contents |
//! |---|---|
//! | [`usage`] | what work uses of paid resources, recorded before it is used |
//! | [`allowance`] | the tools a commission may use |
//! | [`model`] | an executor: a language model with the soul's text as its instructions |
//! | [`program`] | which programs sellers may upload; only the `executor` function links the engine that runs them |
//! | [`checks`] | a seller's test cases, judged |
//!
//! The third kind of work is done by a seller's own worker, outside this service, so it is not here.
//!
//! A commission carries two untrusted inputs, hostile to us and to each other: the seller's (soul.md, program) and the
//! buyer's (input). All limits are enforced by code, not by instructions: a commission's tools are looked up in its own
//! list, are paid for before they run, and have no access to jobs, tables or other commissions.

pub mod allowance;
pub mod checks;
pub mod model;
pub mod program;
pub mod usage;

use base::clock::Timestamp;
use base::ids::{AgentId, RequestId};
use base::untrusted_text::hides_something;
use platform::store::BoxFuture;
use serde_json::Value;
use tools::{Mode, ToolError, Unavailable};

pub use allowance::{Allowance, ToolAccess, ToolUse};
pub use model::ModelExecutor;
pub use usage::{Meter, NotTaken, Resource, Spending, Unrecorded, Usage};

/// Largest result, in bytes. A larger one is a failure and is never cut.
pub const MAX_RESULT_BYTES: usize = 1024 * 1024;
/// Most files of one commission, and the largest file, in bytes.
pub const MAX_FILES: usize = 10;
pub const MAX_FILE_BYTES: usize = 1024 * 1024;
/// How much of a program's own log is kept, in bytes. The rest is cut off at the end.
pub const MAX_LOG_BYTES: usize = 8 * 1024;

/// One piece of work, as it was sold.
#[derive(Clone, Debug)]
pub struct Commission {
    pub request_id: RequestId,
    /// The buyer.
    pub agent: AgentId,
    /// Slug of the soul.
    pub soul: String,
    /// The soul's text, in the version that is current when the work begins.
    pub soul_md: String,
    pub service_name: String,
    pub service_description: Option<String>,
    /// The buyer's input, checked against the service's schema.
    pub input: Value,
    pub output_schema: Option<Value>,
    /// Wire names of the tools it may use.
    pub tools: Vec<String>,
    /// The seller's program, if a program does the work.
    pub program: Option<Vec<u8>>,
    /// Work that has not ended by then has failed.
    pub deadline: Timestamp,
}

/// The outcome, and the tools that ran, also for failed work.
#[derive(Clone, Debug)]
pub struct Report {
    pub outcome: Result<Work, ToolError>,
    /// In call order, at most [`allowance::MAX_CALLS`].
    pub tools_used: Vec<ToolUse>,
    /// The program's stderr: shown to the seller, never to the buyer.
    pub log: String,
}

/// Completed work.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// At most [`MAX_RESULT_BYTES`]. Not yet checked against the output schema.
    pub result: String,
    pub files: Vec<FileMade>,
    /// The model that answered, as its provider names it.
    pub model_used: Option<String>,
    /// Tokens of prompts and answers together.
    pub tokens_used: Option<u64>,
    pub provider: &'static str,
    pub provider_request_id: Option<String>,
    pub mode: Mode,
}

/// A file that the work made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMade {
    /// Relative, parts separated by `/`, no empty, `.` or `..` part ([`check_file_path`]).
    pub path: String,
    pub content_type: String,
    pub bytes: Vec<u8>,
}

/// Runs commissions.
pub trait Executor: Send + Sync {
    /// Ends by the commission's deadline and uses no more than `spending` allows. Dropping the future stops the work, at
    /// the latest after the slice that is being computed.
    fn run<'a>(&'a self, commission: &'a Commission, spending: &'a mut Spending) -> BoxFuture<'a, Report>;
}

/// The error if nothing in this deployment can do the work.
pub fn not_configured() -> ToolError {
    ToolError::unavailable(Unavailable::ProviderNotConfigured, "nothing in this deployment can do this kind of work")
}

/// The error if the deadline has passed.
pub fn out_of_time() -> ToolError {
    ToolError::unavailable(Unavailable::DeadlineExceeded, "the work was not done by its deadline")
}

/// Checks a file's path: 1 to 255 bytes of visible characters, relative, without `..`, and reachable by URL. API Gateway
/// ends a path at `?`, escaped or not, and passes `%25` on so that it cannot be told from `%` (`platform::http::lambda`).
pub fn check_file_path(path: &str) -> Result<(), &'static str> {
    if path.is_empty() || path.len() > 255 {
        return Err("must have 1 to 255 bytes");
    }
    if path.contains('\\') || hides_something(path, false) {
        return Err("must not contain control characters, invisible characters or backslashes");
    }
    if path.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        return Err("must be relative, without empty, . or .. parts");
    }
    // Names that are not UTF-8 arrive with U+FFFD, so two of them could be equal.
    if path.contains(['?', '\u{fffd}']) || path.contains("%25") {
        return Err("must be UTF-8 and not contain ? or %25");
    }
    Ok(())
}

/// Checks that a content type can be a header's value: `type/subtype` with optional parameters, printable ASCII.
pub fn check_content_type(text: &str) -> Result<(), &'static str> {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let is_type = essence.split_once('/').is_some_and(|(kind, subtype)| is_word(kind) && is_word(subtype));
    let is_header = text.len() <= 127 && text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if is_type && is_header { Ok(()) } else { Err("must be a content type such as text/plain, of at most 127 bytes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_file_paths_and_content_types_are_refused() {
        for good in ["report.md", "a/b/c.txt", ".hidden", "täglich.csv", "a b", "100% #1", "%41"] {
            assert!(check_file_path(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../b",
            "a//b",
            "a/",
            "./a",
            "a\\b",
            "a\nb",
            "a\u{202e}b",
            "a?b",
            "a\u{fffd}",
            "%2541",
            &"x".repeat(256),
        ] {
            assert!(check_file_path(bad).is_err(), "{bad}");
        }
        for good in ["text/plain", "text/html; charset=utf-8", "application/vnd.api+json"] {
            assert!(check_content_type(good).is_ok(), "{good}");
        }
        for bad in ["", "text", "text/", "/plain", "text/plain\r\nx: y", "tëxt/plain", "a b/c"] {
            assert!(check_content_type(bad).is_err(), "{bad}");
        }
    }
}
