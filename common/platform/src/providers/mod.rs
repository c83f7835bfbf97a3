//! Adapters to what lies outside: the chain, the card processor, the language model, and the client that asks everybody
//! else. (Facilitator and relayer live with the payments they settle.)

pub mod browser;
pub mod chain;
pub mod dns;
pub mod model;
pub mod outbound;
pub mod signature;
#[cfg(any(test, feature = "test-support"))]
#[path = "../../../../tests/support/zone.rs"]
pub mod zone;

pub use browser::Browser;

pub use chain::Chain;
pub use dns::{Dns, DnsError, MailHost, MailHosts};
pub use model::Model;
pub use outbound::{Ask, Outbound, OutboundError};
