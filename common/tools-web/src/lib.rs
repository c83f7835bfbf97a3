//! Tools that read and search the web: pages, search, research.

pub mod research;
pub mod web_read;
pub mod web_search;
