//! Opens connections for the guarded client.
//!
//! Lookup, address check and connection are one step: the checked addresses are the ones connected to, and the name is not
//! looked up again (DNS rebinding).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};
use url::{Host, Url};

use super::address::is_public;
use super::fetch::FetchError;
use super::guard::UrlRefused;
use super::policy::FetchPolicy;

/// Addresses to try before a host counts as unreachable.
const MAX_ATTEMPTS: usize = 4;

/// A connection, encrypted or not. One boxed type, so that the HTTP code is compiled only once.
pub(super) trait Transport: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Transport for T {}

/// Opens connections to hosts that the policy allows.
pub(super) struct Connector {
    tls: Arc<ClientConfig>,
    names: Names,
}

/// The resolver of host names.
pub(super) enum Names {
    /// The system's resolver.
    System,
    /// A test's function.
    #[cfg(test)]
    Scripted(fn(&str) -> Vec<IpAddr>),
}

impl Connector {
    pub(super) fn new(names: Names, roots: RootCertStore) -> Self {
        let provider = Arc::new(crypto::ring::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring supports the default TLS versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        // No session may be resumed: calls must not share state.
        tls.resumption = Resumption::disabled();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self { tls: Arc::new(tls), names }
    }

    /// Connects to the URL's host, with TLS for `https`.
    pub(super) async fn open(&self, url: &Url, policy: &FetchPolicy) -> Result<Box<dyn Transport>, FetchError> {
        let addresses = self.permitted_addresses(url, policy).await?;
        let tcp = connect_any(&addresses, policy).await?;
        if url.scheme() == "http" {
            return Ok(Box::new(tcp));
        }
        let name = server_name(url)?;
        let tls = TlsConnector::from(Arc::clone(&self.tls)).connect(name, tcp).await;
        match tls {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(FetchError::NotReachable(format!("TLS failed: {error}"))),
        }
    }

    /// The addresses of the URL's host that the policy permits.
    async fn permitted_addresses(&self, url: &Url, policy: &FetchPolicy) -> Result<Vec<SocketAddr>, FetchError> {
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(FetchError::NotAllowed(UrlRefused::Malformed));
        };
        let local = policy.allows_local(&host.to_string(), port);
        let mut addresses = match host {
            Host::Ipv4(ip) => vec![SocketAddr::new(ip.into(), port)],
            Host::Ipv6(ip) => vec![SocketAddr::new(ip.into(), port)],
            Host::Domain(name) => self.names.look_up(name, port).await?,
        };
        if addresses.is_empty() {
            return Err(FetchError::NotReachable("the host name has no address".to_owned()));
        }
        addresses.retain(|address| local || is_public(address.ip()));
        if addresses.is_empty() {
            return Err(FetchError::NotAllowed(UrlRefused::PrivateAddress));
        }
        Ok(addresses)
    }
}

impl Names {
    async fn look_up(&self, name: &str, port: u16) -> Result<Vec<SocketAddr>, FetchError> {
        match self {
            Self::System => match tokio::net::lookup_host((name, port)).await {
                Ok(addresses) => Ok(addresses.collect()),
                Err(_) => Err(FetchError::NotReachable("the host name does not resolve".to_owned())),
            },
            #[cfg(test)]
            Self::Scripted(answer) => {
                let addresses = answer(name).into_iter();
                Ok(addresses.map(|ip| SocketAddr::new(ip, port)).collect())
            }
        }
    }
}

/// Connects to the first address that accepts, in the resolver's order.
async fn connect_any(addresses: &[SocketAddr], policy: &FetchPolicy) -> Result<TcpStream, FetchError> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses.iter().take(MAX_ATTEMPTS) {
        match timeout(policy.connect_timeout, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failure = error,
            Err(_) => failure = io::Error::new(io::ErrorKind::TimedOut, "timed out"),
        }
    }
    Err(FetchError::NotReachable(format!("connecting failed: {}", failure.kind())))
}

/// The name the server's certificate must be valid for.
fn server_name(url: &Url) -> Result<ServerName<'static>, FetchError> {
    match url.host() {
        Some(Host::Domain(name)) => ServerName::try_from(name.to_owned())
            .map_err(|_| FetchError::NotReachable("the host name is not valid in TLS".to_owned())),
        Some(Host::Ipv4(ip)) => Ok(ServerName::from(IpAddr::V4(ip))),
        Some(Host::Ipv6(ip)) => Ok(ServerName::from(IpAddr::V6(ip))),
        None => Err(FetchError::NotAllowed(UrlRefused::Malformed)),
    }
}
