//! Enrichment and discovery: profiles of people and companies.

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
