//! The connections of a function, opened once by each process.

use crate::config::{AwsConfig, Config};
use crate::net::PlainHttp;
use crate::store::StoreError;
use crate::store::aws::{self, Aws, SignedHttp};

/// Sockets to AWS and to everybody else.
pub struct Connections {
    pub aws: Aws,
    pub http: PlainHttp,
    pub signed: SignedHttp,
}

impl Connections {
    pub fn open(config: &Config) -> Result<Connections, StoreError> {
        let aws = aws::http(&config.aws)?;
        // A stand-in for AWS may stand in for others, too.
        let roots = config.aws.ca_bundle.as_ref().and_then(|path| std::fs::read(path).ok());
        let signed = SignedHttp::new(aws.clone(), &config.aws);
        Ok(Connections { aws: Aws::over(&config.aws, aws), http: PlainHttp::new(roots), signed })
    }

    /// The same sockets under the credentials of another configuration, for a process that stands in for several
    /// functions.
    pub fn acting_as(&self, config: &AwsConfig) -> Connections {
        let signed = self.signed.acting_as(config);
        Connections { aws: self.aws.acting_as(config), http: self.http.clone(), signed }
    }
}
