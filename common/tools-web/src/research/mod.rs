//! Research: reports on topics, and public information about people.
//!
//! | module | what it does |
//! |---|---|
//! | [`topic`], [`written`] | research on a topic, and a language model's part in it |
//! | [`articles`] | pages about a person |
//! | [`newsfeed`], [`interactions`] | posts of an account; its followers and replies |
//! | [`social`], [`interests`] | the accounts a page claims; topics of pages and posts |
//! | [`gather`] | searches and reads for all of them |
//! | [`subject`] | input, opt-out, and result of the tools about people |
//! | [`networks`], [`fediverse`] | social networks by URL; the one with a public API |
//!
//! A vendor for posts, followers or accounts belongs in the places that now return [`subject::not_configured`].

pub mod articles;
pub mod fediverse;
pub mod gather;
pub mod interactions;
pub mod interests;
pub mod networks;
pub mod newsfeed;
pub mod social;
pub mod subject;
pub mod topic;
pub mod written;

tools::family!(topic, articles, newsfeed, interests, interactions, social);
