//! The limits of one guarded client.

use std::net::SocketAddr;
use std::time::Duration;

use super::address::is_public;

/// What a [`Fetcher`](super::Fetcher) may spend on one call, and what it may reach.
///
/// The limits are public fields, so that a tool can tighten one of them.
#[derive(Clone, Debug)]
pub struct FetchPolicy {
    /// Bytes of body taken from the network; the rest is cut off.
    pub max_raw_bytes: usize,
    /// Bytes of body after decompression; the rest is cut off.
    pub max_decoded_bytes: usize,
    /// How many decoded bytes one raw byte may become before the body counts as
    /// a decompression bomb. Judged once a body is past `ratio_free_bytes`.
    pub max_decompression_ratio: usize,
    /// Decoded bytes that may have any ratio: short pages compress very well.
    pub ratio_free_bytes: usize,
    /// Status line and header fields together.
    pub max_header_bytes: usize,
    /// Redirects followed; one more is an error.
    pub max_redirects: usize,
    /// Time for one attempt to open a TCP connection.
    pub connect_timeout: Duration,
    /// Time for everything, redirects and body included.
    pub deadline: Duration,
    /// Judges the content type of the final response (lower case, without
    /// parameters) before its body is read. A missing type is let through.
    pub accepts: fn(&str) -> bool,
    /// Exact host and port pairs that may have private addresses and any port.
    /// Nothing in a production build can put an entry here.
    allowed_local: Vec<(String, u16)>,
}

impl Default for FetchPolicy {
    fn default() -> Self {
        Self {
            max_raw_bytes: 5_000_000,
            max_decoded_bytes: 5_000_000,
            max_decompression_ratio: 100,
            ratio_free_bytes: 1_000_000,
            max_header_bytes: 64 * 1024,
            max_redirects: 5,
            connect_timeout: Duration::from_secs(5),
            deadline: Duration::from_secs(20),
            accepts: |_| true,
            allowed_local: Vec::new(),
        }
    }
}

impl FetchPolicy {
    /// Refuses every content type that `accepts` does not like.
    pub fn accepting(mut self, accepts: fn(&str) -> bool) -> Self {
        self.accepts = accepts;
        self
    }

    /// Lets these exact `(host, port)` pairs pass the guard, whatever their
    /// address. Hosts are compared as they stand in a parsed URL: lower case,
    /// IPv6 literals in brackets.
    ///
    /// Compiled for the development runner and tests only.
    #[cfg(any(test, feature = "local-fetch"))]
    pub fn allowing_local(mut self, pairs: impl IntoIterator<Item = (String, u16)>) -> Self {
        self.allowed_local.extend(pairs);
        self
    }

    /// Whether a client other than for HTTP may connect to this address of this host.
    pub fn permits(&self, host: &str, address: SocketAddr) -> bool {
        self.allows_local(host, address.port()) || is_public(address.ip())
    }

    /// Whether this exact pair was named as one that may be private.
    pub(super) fn allows_local(&self, host: &str, port: u16) -> bool {
        self.allowed_local.iter().any(|(allowed_host, allowed_port)| allowed_host == host && *allowed_port == port)
    }
}
