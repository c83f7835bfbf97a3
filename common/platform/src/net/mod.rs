//! Reaching other machines: [`plain`] for addresses the operator configured, the guarded [`Fetcher`] for every URL that
//! a caller sent or a web page contained.
//!
//! What always holds of the guarded side:
//!
//! - No byte is sent to an address that [`address::is_public`] refuses. The name is resolved here, the answer is
//!   filtered here, and the connection goes to the filtered addresses, so a name that changes its answer gains nothing.
//! - Only `http` and `https` on ports 80 and 443, no credentials in the URL. Each redirect passes the same checks.
//! - A body is never held beyond its cap, packed or unpacked, and a whole call ends within the policy's deadline
//!   whatever the server does.
//! - No proxy, cookie, page, credential or connection is shared between calls; only what a site's robots.txt says is.
//!
//! The only exception to the address rule is a list of exact `host:port` pairs that the development runner and tests
//! may set; the code that sets it is compiled under the `local-fetch` feature alone.
//!
//! Where to look: [`address`] judges an address, [`guard`] judges a URL without touching the network, `connect` opens
//! the checked connection, `body` reads within the caps, `manners` keeps to what sites ask of
//! readers, [`Fetcher`] ties them together.

pub mod address;
mod body;
mod connect;
mod fetch;
pub mod guard;
mod manners;
pub mod plain;
mod policy;
mod robots;
pub mod tls;

#[cfg(test)]
mod tests;

pub use fetch::essence;
pub use fetch::{FetchError, Fetcher, Page, Posted};
pub use guard::{UrlRefused, check_url};
pub use plain::{PlainAnswer, PlainError, PlainHttp};
pub use policy::FetchPolicy;
pub use robots::token as product;
