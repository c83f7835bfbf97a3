//! The outbound connections of a process, opened once.

use crate::config::{AwsConfig, Config};
use crate::net::PlainHttp;
use crate::store::StoreError;
use crate::store::aws::{self, Aws, SignedHttp};

/// Clients for AWS and for everything else.
pub struct Connections {
    pub aws: Aws,
    pub http: PlainHttp,
    pub signed: SignedHttp,
}

impl Connections {
    pub fn open(config: &Config) -> Result<Connections, StoreError> {
        let aws = aws::http(&config.aws)?;
        // An AWS emulator may also emulate other services, so its root certificates are trusted for those too.
        let roots = config.aws.ca_bundle.as_ref().and_then(|path| std::fs::read(path).ok());
        let signed = SignedHttp::new(aws.clone(), &config.aws);
        Ok(Connections { aws: Aws::over(&config.aws, aws), http: PlainHttp::new(roots), signed })
    }

    /// The same sockets with another configuration's credentials, for a process that runs several functions.
    pub fn acting_as(&self, config: &AwsConfig) -> Connections {
        let signed = self.signed.acting_as(config);
        Connections { aws: self.aws.acting_as(config), http: self.http.clone(), signed }
    }
}
