//! TLS: rustls over `ring`, with compiled-in roots.
//!
//! Certificates are read from disk only if `AWS_CA_BUNDLE` names a file: reading the system's store would cost hundreds of
//! system calls at start.

use std::sync::Arc;

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// A client configuration that trusts the web's roots and those in `extra_pem`.
pub fn client_config(extra_pem: Option<&[u8]>) -> Result<ClientConfig, String> {
    let mut roots = web_roots();
    add(&mut roots, extra_pem.unwrap_or_default())?;
    Ok(with_roots(roots))
}

/// A client configuration that trusts only these roots.
pub fn client_config_of(pem: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    add(&mut roots, pem)?;
    Ok(with_roots(roots))
}

fn add(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), String> {
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| format!("not a PEM certificate: {error}"))?;
        roots.add(certificate).map_err(|error| format!("not a root certificate: {error}"))?;
    }
    Ok(())
}

/// The roots that browsers trust, compiled in.
pub(super) fn web_roots() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

pub(super) fn with_roots(roots: RootCertStore) -> ClientConfig {
    ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports the default TLS versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
