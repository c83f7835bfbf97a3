//! The base layer of the service: configuration, DynamoDB, S3 and queues, outbound sockets, mail, HTTP helpers, proofs of
//! identity, and adapters to outside providers. It knows nothing about tools, prices or the marketplace.
//!
//! Start with `config` (every environment variable), `http::error` (every error a caller can get) and `store::db`
//! (how everything is written).

pub mod auth;
pub mod config;
pub mod connections;
pub mod http;
pub mod mail;
pub mod net;
pub mod providers;
pub mod seal;
pub mod store;
