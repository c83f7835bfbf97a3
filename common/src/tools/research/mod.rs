//! Research: questions answered from pages, and what can be found about people on the open web.

use super::Runner;
use crate::catalog::ToolSpec;

/// What is sold.
pub fn specs() -> Vec<&'static ToolSpec> {
    Vec::new()
}

/// What does it.
pub fn runners() -> Vec<&'static Runner> {
    Vec::new()
}
