//! What the service stands on: configuration, stores, sockets, mail, HTTP, proofs of agents, adapters to the outside.

pub mod auth;
pub mod config;
pub mod connections;
pub mod http;
pub mod mail;
pub mod net;
pub mod providers;
pub mod store;
