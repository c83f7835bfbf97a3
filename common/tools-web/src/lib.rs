//! Tools for the web: reading pages ([`web_read`]), searching ([`web_search`]), and research on topics and people
//! ([`research`]). Page content is untrusted, robots.txt applies to every read, and professional networks are never read.
//! docs/READING.md and docs/RESEARCH.md describe the behaviour.

pub mod research;
pub mod web_read;
pub mod web_search;
