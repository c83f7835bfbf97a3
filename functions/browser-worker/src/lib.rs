//! The browser worker: takes jobs of the browser from a queue of their own, because each takes minutes, and does them.

use std::sync::LazyLock;

use tools::Runner;

/// Only what is done in a browser.
pub static RUNNERS: LazyLock<Vec<&'static Runner>> = LazyLock::new(tools_browser::runners);
