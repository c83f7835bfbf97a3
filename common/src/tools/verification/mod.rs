//! Verification: whether mail to an address arrives, and whether somebody controls what they name.

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
