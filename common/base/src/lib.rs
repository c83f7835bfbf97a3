//! What everything is said with: ids, money, time, digests, encodings, words, the fields of a body.

pub mod clock;
pub mod contact;
pub mod digest;
pub mod encoding;
pub mod ids;
pub mod input;
pub mod money;
pub mod names;
pub mod tool_result;
pub mod untrusted_text;
pub mod words;
