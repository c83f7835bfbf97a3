//! Handing a text to a provider, for numbers outside this deployment, and the operator's numbers there and at the provider of
//! calls.
//!
//! What may become of a text is described at [`Handed`].

pub mod aws;
pub mod telnyx;
pub mod twilio;
pub mod vapi;

use base::ids::RequestId;
use messages::hand::Handed;
use platform::config::{Capability, Config};
use platform::providers::{Charge, OutboundError};
use tokio::time::Instant;
use tools::Toolbox;

use crate::number::Number;
use crate::segments::Segments;

/// A text to one number, ready to be sent.
#[derive(Clone, Copy)]
pub struct Outgoing<'a> {
    /// One of the operator's numbers at the provider.
    pub from: &'a Number,
    pub to: &'a Number,
    /// [`prepared`](crate::segments::prepared)
    pub body: &'a str,
    /// Providers return these two with what they report of the text.
    pub request_id: RequestId,
    pub index: u32,
}

/// The providers that have an adapter.
pub const NAMES: [&str; 2] = [aws::NAME, twilio::NAME];

/// What they charge.
pub const CHARGES: [Charge; 2] = [aws::CHARGE, twilio::CHARGE];

/// The providers that agents' numbers may come from.
pub const SOURCES: [&str; 4] = [aws::NAME, twilio::NAME, vapi::NAME, telnyx::NAME];

/// A number of the operator at the provider of calls, and the id that the provider has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub number: Number,
    pub id: String,
}

/// The operator's numbers at the provider of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Those that agents get: they call, and this deployment decides who answers them.
    pub usable: Vec<Line>,
    /// How many are not active, or are no numbers as agents have them (SIP addresses).
    pub not_ready: usize,
    /// How many have an assistant of their own, or belong to another deployment.
    pub elsewhere: usize,
    /// The numbers of both, where they have one.
    pub others: Vec<Number>,
}

impl Listed {
    fn has(&self, number: &Number) -> bool {
        self.others.contains(number) || self.usable.iter().any(|line| line.number == *number)
    }

    /// Whether the account no longer has a number. A lost number never comes back to its agent, so a list that may not be whole is
    /// not believed, nor one in which nothing is ours: then it is the deployment that is set up wrongly. A number that is there
    /// but not usable is not lost: the operator may be changing something.
    fn has_dropped(&self, number: &Number) -> bool {
        let count = self.usable.len() + self.not_ready + self.elsewhere;
        !self.usable.is_empty() && count < MAX_NUMBERS && !self.has(number)
    }
}

/// Most numbers of the operator that agents can get.
pub const MAX_NUMBERS: usize = 500;
/// How long a provider may keep a text before it gives up, in seconds.
const VALID_SECS: u32 = 14_400;
/// Most that a provider may ask for one segment, in US cents. It only stops accidents: in most countries a segment costs the
/// operator more than it is sold for, which `SMS_COUNTRIES` is about.
const MAX_CENTS: u32 = 10;
/// The provider, in reasons for the sender.
const WHO: &str = "the text provider";

/// The provider in use: the first of `SMS_PROVIDERS`.
pub fn chosen(config: &Config) -> Option<&'static str> {
    let first = config.providers.order(Capability::Sms).first()?;
    NAMES.into_iter().find(|name| name == first)
}

/// The provider that agents get numbers from: that of texts, whose numbers may serve calls too, or else that of calls.
pub fn of_numbers(config: &Config) -> Option<&'static str> {
    chosen(config).or_else(|| of_calls(config))
}

/// The provider of calls with numbers outside: the first of `VOICE_PROVIDERS`.
pub fn of_calls(config: &Config) -> Option<&'static str> {
    let first = config.providers.order(Capability::Voice).first()?;
    [vapi::NAME, telnyx::NAME].into_iter().find(|name| name == first)
}

/// The operator's numbers at the provider of calls in use. None without one.
pub async fn lines(toolbox: &Toolbox, deadline: Instant) -> Result<Vec<Line>, OutboundError> {
    Ok(listed(toolbox, deadline).await?.usable)
}

/// Whether a number is one of the operator's at the provider of calls in use.
pub async fn is_of_operator(toolbox: &Toolbox, number: &Number, deadline: Instant) -> Result<bool, OutboundError> {
    Ok(listed(toolbox, deadline).await?.has(number))
}

async fn listed(toolbox: &Toolbox, deadline: Instant) -> Result<Listed, OutboundError> {
    match of_calls(&toolbox.config) {
        Some(telnyx::NAME) => telnyx::list(toolbox, deadline).await,
        Some(_) => vapi::list(toolbox, deadline).await,
        None => Ok(Listed::default()),
    }
}

/// Hands a text to the provider in use. Ends by `deadline`.
pub async fn hand_over(toolbox: &Toolbox, text: Outgoing<'_>, deadline: Instant) -> Handed {
    match chosen(&toolbox.config) {
        Some(aws::NAME) => aws::hand_over(toolbox, text, deadline).await,
        Some(_) => twilio::hand_over(toolbox, text, deadline).await,
        None => Handed::Refused { reason: "this deployment cannot reach numbers outside itself".to_owned() },
    }
}

/// The operator's numbers at the provider that agents get numbers from, at most [`MAX_NUMBERS`]. None without a provider.
pub async fn numbers(toolbox: &Toolbox, deadline: Instant) -> Result<Vec<Number>, OutboundError> {
    match chosen(&toolbox.config) {
        Some(aws::NAME) => aws::numbers(toolbox, deadline).await,
        Some(_) => Ok(twilio::list(toolbox, deadline).await?.usable),
        None => Ok(lines(toolbox, deadline).await?.into_iter().map(|line| line.number).collect()),
    }
}

/// Whether the provider that agents get numbers from says that it no longer has one of them.
pub async fn has_dropped(toolbox: &Toolbox, number: &Number, deadline: Instant) -> Result<bool, OutboundError> {
    match chosen(&toolbox.config) {
        Some(_) => Ok(!numbers(toolbox, deadline).await?.contains(number)),
        None => Ok(listed(toolbox, deadline).await?.has_dropped(number)),
    }
}

/// Why a text is too long for the provider in use; follows the field's name. Twilio takes what we take.
pub fn too_long(config: &Config, segments: &Segments) -> Option<&'static str> {
    if chosen(config) == Some(aws::NAME) { aws::too_long(segments) } else { None }
}

/// The most that a text of so many segments may cost, in US dollars. Both providers compare it with the whole text's price.
fn max_price(segments: u32) -> String {
    let cents = MAX_CENTS.saturating_mul(segments.max(1));
    format!("{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segments::MAX_SEGMENTS;

    #[test]
    fn only_a_whole_list_of_our_numbers_says_that_one_was_dropped() {
        let line = |last: u64| Line { number: Number::fictitious(last), id: last.to_string() };
        for (usable, elsewhere, has_dropped) in [
            (vec![line(1), line(2)], 3, true),
            (vec![line(1), line(7)], 0, false),
            (vec![line(1)], MAX_NUMBERS - 1, false),
            (vec![], 3, false),
            (vec![], 0, false),
        ] {
            let listed = Listed { usable, elsewhere, ..Listed::default() };
            assert_eq!(listed.has_dropped(&Number::fictitious(7)), has_dropped, "{listed:?}");
        }
        let inactive =
            Listed { usable: vec![line(1)], not_ready: 1, others: vec![Number::fictitious(7)], ..Listed::default() };
        assert!(!inactive.has_dropped(&Number::fictitious(7)), "it is there");
    }

    #[test]
    fn the_highest_price_grows_with_the_segments() {
        for (segments, price) in [(0, "0.10"), (1, "0.10"), (9, "0.90"), (10, "1.00"), (MAX_SEGMENTS, "4.90")] {
            assert_eq!(max_price(segments), price, "{segments}");
        }
    }
}
