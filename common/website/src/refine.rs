//! A buyer's wish in words, as edits of a plan.

use crate::plan::Plan;

/// What became of a wish.
pub struct Refined {
    pub plan: Plan,
    /// One sentence for each edit that was made.
    pub done: Vec<String>,
    /// Parts of the wish that no rule understands.
    pub not_understood: Vec<String>,
}

/// Applies what the rules understand of `changes`.
pub fn refine(plan: &Plan, _changes: &str) -> Refined {
    Refined { plan: plan.clone(), done: Vec::new(), not_understood: Vec::new() }
}
