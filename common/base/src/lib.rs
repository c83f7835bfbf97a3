//! Basic types that all crates share: ids, money, time, digests, encodings, words, the results of tools. No network and no
//! storage.
//!
//! Start with [`ids`], [`money`] and [`clock`]; [`input`] describes and checks the fields of request bodies.

pub mod choose;
pub mod clock;
pub mod contact;
pub mod digest;
pub mod encoding;
pub mod hours;
pub mod ids;
pub mod input;
pub mod model_schema;
pub mod money;
pub mod names;
pub mod tool_result;
pub mod untrusted_text;
pub mod words;
