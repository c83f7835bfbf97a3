//! Research: questions answered from pages, and what can be found about people on the open web.
//!
//! | module | what it does |
//! |---|---|
//! | [`topic`] | research on a topic |
//! | [`gather`] | searching and reading for it |
//! | [`networks`] | social networks by their addresses |

pub mod gather;
pub mod networks;
pub mod topic;

use super::Runner;
use crate::catalog::ToolSpec;

/// What is sold.
pub fn specs() -> Vec<&'static ToolSpec> {
    runners().iter().map(|runner| runner.spec).collect()
}

/// What does it.
pub fn runners() -> Vec<&'static Runner> {
    vec![&topic::RUNNER]
}
