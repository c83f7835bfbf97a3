//! Research: questions answered from pages, and what can be found about people on the open web.
//!
//! | module | what it does |
//! |---|---|
//! | [`topic`], [`written`] | research on a topic, and a language model's part in it |
//! | [`articles`] | pages about somebody |
//! | [`newsfeed`], [`interactions`] | what an account posts; who follows and answers it |
//! | [`social`], [`interests`] | the accounts a page claims; what pages and posts are about |
//! | [`gather`] | searching and reading for all of them |
//! | [`subject`] | whom they are about, whom they leave alone, how they answer |
//! | [`networks`], [`fediverse`] | social networks by their addresses; the one with a public API |
//!
//! A vendor for people's posts, followers or accounts would be asked where [`subject::not_configured`] is answered now.

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
