//! Adapters to outside systems: the chain ([`chain`]), DNS ([`dns`]), the language model ([`model`]), a browser
//! ([`browser`]), signatures of webhooks ([`signature`], [`sns`]), and the HTTP client for all other providers
//! ([`outbound`]), with AWS's signatures ([`aws`]); and what they charge ([`charge`]). Facilitator and relayer are in the ledger, beside the payments they settle.

pub mod aws;
pub mod browser;
pub mod chain;
pub mod charge;
pub mod dns;
pub mod model;
pub mod outbound;
pub mod signature;
pub mod sns;
#[cfg(any(test, feature = "test-support"))]
#[path = "../../../../tests/support/zone.rs"]
pub mod zone;

pub use browser::Browser;

pub use chain::Chain;
pub use charge::{Amount, Charge};
pub use dns::{Dns, DnsError, MailHost, MailHosts};
pub use model::Model;
pub use outbound::{Ask, Lane, Outbound, OutboundError};
