//! Handing a mail to a provider, for recipients outside this deployment.
//!
//! A mail is handed over once. Only [`Handed::NotNow`] allows another attempt: the provider certainly does not have the
//! mail. Everything that may have been accepted is [`Handed::Unknown`].

pub mod ses;
pub mod smtp;

use base::ids::RequestId;
pub use messages::hand::Handed;
pub(crate) use messages::hand::{clean_reason, unanswered};
use platform::config::{Capability, Config};
use platform::providers::Charge;
use tokio::time::Instant;
use tools::Toolbox;

use crate::address::Address;

/// A mail to one recipient, ready to be sent.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    pub from: &'a Address,
    pub to: &'a Address,
    /// The whole message, signed.
    pub raw: &'a [u8],
    /// Providers return these two with their events.
    pub request_id: RequestId,
    pub index: u32,
}

/// The providers that have an adapter.
pub const NAMES: [&str; 2] = [ses::NAME, smtp::NAME];

/// What they charge.
pub const CHARGES: [Charge; 2] = [ses::CHARGE, smtp::CHARGE];

/// The provider in use: the first of `EMAIL_PROVIDERS`. `None` if there is none, or if it is `smtp` without a relay.
pub fn chosen(config: &Config) -> Option<&'static str> {
    let first = config.providers.order(Capability::Email).first()?;
    let name = NAMES.into_iter().find(|name| name == first)?;
    (name != smtp::NAME || config.mail.smtp_url.is_some()).then_some(name)
}

/// Hands a mail to the provider in use. Ends by `deadline`.
pub async fn hand_over(toolbox: &Toolbox, mail: Outgoing<'_>, deadline: Instant) -> Handed {
    match chosen(&toolbox.config) {
        Some(ses::NAME) => ses::hand_over(toolbox, mail, deadline).await,
        Some(_) => smtp::hand_over(toolbox, mail, deadline).await,
        None => Handed::Refused { reason: "this deployment cannot reach addresses outside itself".to_owned() },
    }
}
