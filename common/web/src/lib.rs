//! Pages: read as Markdown, searched by providers and an own index, and turned into reports.

pub mod read;
pub mod research;
pub mod search;
