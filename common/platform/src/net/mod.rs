//! Outbound HTTP: [`plain`] for addresses the operator configured, the guarded [`Fetcher`] for every URL from a caller or a
//! web page.
//!
//! The guarded client always keeps these rules:
//!
//! - Nothing is sent to an address that [`address::is_public`] refuses. The client resolves the name itself, filters the
//!   addresses and connects to those that are left, so DNS rebinding has no effect.
//! - Only `http` and `https` on ports 80 and 443, and no credentials in the URL. Each redirect passes the same checks.
//! - A body never takes more memory than its cap, compressed or not, and a call ends within the policy's deadline whatever
//!   the server does.
//! - Calls share no proxy, cookie, page, credential or connection; only rules from robots.txt are shared.
//!
//! The only exception to the address rule is a list of exact `host:port` pairs that the development runner and tests may
//! set. The code that sets it is compiled only with the `local-fetch` feature.
//!
//! The parts: [`address`] judges an address, [`guard`] judges a URL without using the network, `connect` opens the
//! checked connection, `body` reads within the caps, `manners` obeys robots.txt, and [`Fetcher`] combines them.

pub mod address;
mod body;
mod connect;
mod exchange;
mod fetch;
pub mod guard;
mod manners;
pub mod plain;
mod policy;
mod robots;
pub mod tls;

#[cfg(test)]
mod tests;

pub use exchange::Exchanged;
pub use fetch::essence;
pub use fetch::{FetchError, Fetcher, Page, Posted};
pub use guard::{UrlRefused, check_url};
pub use plain::{PlainAnswer, PlainError, PlainHttp};
pub use policy::FetchPolicy;
pub use robots::token as product;
