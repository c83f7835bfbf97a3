//! Web pages: reading, searching and research.
//!
//! | module | what it does |
//! |---|---|
//! | [`read`] | turns a fetched page into Markdown and metadata |
//! | [`search`] | finds pages, through search providers or this service's own index |
//! | [`research`] | answers questions with quotations from pages |
//!
//! Everything from the web is untrusted: it is cleaned and limited in length here, and fetched only by the guarded client.

pub mod read;
pub mod research;
pub mod search;
