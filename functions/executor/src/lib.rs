//! The executor: does what souls sell, by a model or by a seller's program. The only function that runs sellers' code.

pub mod program;
