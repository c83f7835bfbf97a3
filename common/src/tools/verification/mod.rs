//! Verification: whether mail to an address arrives, and whether somebody controls what they name.

pub mod address;
pub mod email;
mod hunter;
pub mod identity;
#[cfg(test)]
#[path = "../../../../tests/support/mailhost.rs"]
mod mailhost;
pub mod manners;
pub mod session;
mod smtp;
pub mod verdict;

use super::Runner;
use crate::catalog::ToolSpec;

/// What is sold.
pub fn specs() -> Vec<&'static ToolSpec> {
    vec![&email::SPEC, &identity::SPEC]
}

/// What does it.
pub fn runners() -> Vec<&'static Runner> {
    vec![&email::RUNNER, &identity::RUNNER]
}
