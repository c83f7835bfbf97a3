//! One set of features for the libraries of every build on this machine, so that none is compiled twice.
//!
//! Cargo compiles a library once for each set of features that the packages of a command ask for. `make run`, the tests and
//! the rehearsal name different packages, so each of them compiled tokio, axum and serde again with all that stands on them.
//! This crate asks for the union. `local` depends on it, and commands without `local` name it with `--package`. No
//! function depends on it: what is deployed has the features that it lists itself.
