//! The limits of a guarded client.

use std::net::SocketAddr;
use std::time::Duration;

use super::address::is_public;

/// The limits of a [`Fetcher`](super::Fetcher) for one call, and the addresses it may reach.
///
/// The limits are public fields, so that a tool can tighten them.
#[derive(Clone, Debug)]
pub struct FetchPolicy {
    /// Maximum compressed bytes read from the network; the rest is cut off.
    pub max_raw_bytes: usize,
    /// Maximum bytes after decompression; the rest is cut off.
    pub max_decoded_bytes: usize,
    /// Maximum number of decoded bytes per compressed byte; beyond that the body is a decompression bomb. Checked only
    /// above `ratio_free_bytes`.
    pub max_decompression_ratio: usize,
    /// Up to this many decoded bytes, any ratio is fine: short pages compress very well.
    pub ratio_free_bytes: usize,
    /// Maximum size of status line and header fields together, in bytes.
    pub max_header_bytes: usize,
    /// Maximum number of redirects; one more is an error.
    pub max_redirects: usize,
    /// Timeout for one attempt to open a TCP connection.
    pub connect_timeout: Duration,
    /// Timeout for everything, redirects and body included.
    pub deadline: Duration,
    /// Accepts the content type of the final response (lower case, without parameters), before its body is read. A missing
    /// type is always accepted.
    pub accepts: fn(&str) -> bool,
    /// Exact host and port pairs that may have private addresses and any port. Always empty in a production build.
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
    /// Sets the accepted content types.
    pub fn accepting(mut self, accepts: fn(&str) -> bool) -> Self {
        self.accepts = accepts;
        self
    }

    /// Lets these exact `(host, port)` pairs pass the guard, whatever their address. Hosts are compared as they appear in a
    /// parsed URL: lower case, IPv6 literals in brackets.
    ///
    /// Compiled only for the development runner and tests.
    #[cfg(any(test, feature = "local-fetch"))]
    pub fn allowing_local(mut self, pairs: impl IntoIterator<Item = (String, u16)>) -> Self {
        self.allowed_local.extend(pairs);
        self
    }

    /// Whether a client of another protocol may connect to this address of this host.
    pub fn permits(&self, host: &str, address: SocketAddr) -> bool {
        self.allows_local(host, address.port()) || is_public(address.ip())
    }

    /// Whether this exact pair may have a private address.
    pub(super) fn allows_local(&self, host: &str, port: u16) -> bool {
        self.allowed_local.iter().any(|(allowed_host, allowed_port)| allowed_host == host && *allowed_port == port)
    }
}
