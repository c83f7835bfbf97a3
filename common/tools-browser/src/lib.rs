//! Browser: a task on real pages, done in a Chromium step by step.
//!
//! | file | content |
//! |---|---|
//! | [`browser`] | what is sold |
//! | [`quote`] | its price: by steps, and by the model that plans them |
//! | [`work`] | the task from its first step to its result |
//! | [`act`] | one step on the page |
//! | [`steps`] | the record of what was done |
//! | [`sessions`] | cookies and storage that the next task of a session goes on with |
//! | [`planner`] | who says what comes next: rules, or the configured model |
//! | [`answer`] | the result, and its output in the form that the caller asked for |
//!
//! What a page says never adds a step, a site or a recipient: the rules read only the caller's task, and what the model asks for is
//! held to the same limits by the session ([`platform::providers::browser`]).

pub mod act;
pub mod answer;
pub mod browser;
pub mod planner;
pub mod quote;
pub mod sessions;
pub mod steps;
pub mod work;

tools::family!(browser);
