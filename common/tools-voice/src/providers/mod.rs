//! Who connects calls with numbers outside this deployment.
//!
//! A provider calls once for one request of ours ([`Placed`]), and is asked what became of a call before anything is charged:
//! what it posts only says when to ask.

pub mod vapi;

use std::time::Duration;

use base::clock::Timestamp;
use base::ids::RequestId;
use platform::config::{Capability, Config};
use serde_json::Value;
use tools_sms::number::Number;

use crate::call::Ended;
use crate::dialogue::Turn;

// Only one provider has an adapter. With a second one, these would choose by the call's provider.
pub use vapi::{ask, find, hang_up, place, recording};

/// The providers that have an adapter.
pub const NAMES: [&str; 1] = [vapi::NAME];

/// The provider in use: the first of `VOICE_PROVIDERS`.
pub fn chosen(config: &Config) -> Option<&'static str> {
    let first = config.providers.order(Capability::Voice).first()?;
    NAMES.into_iter().find(|name| name == first)
}

/// A call to be placed.
pub struct Placing<'a> {
    /// The provider returns these two with the call.
    pub request_id: RequestId,
    pub index: u32,
    /// The provider's id of the number that calls.
    pub line: &'a str,
    pub to: &'a Number,
    /// The longest length, in minutes; the provider hangs up then.
    pub minutes: u32,
    /// What is said first: that a machine calls, and that the call is recorded.
    pub first: &'a str,
    /// What the assistant has to do, and its rules.
    pub prompt: &'a str,
    /// What a machine that takes messages hears; at most 1,000 characters.
    pub message: &'a str,
    /// How many points the prompt numbers; the provider says which were answered.
    pub points: usize,
}

/// What became of a call that a provider was asked to place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    /// The provider's id of it.
    Yes(String),
    /// Refused for good. For the caller.
    No(String),
    /// Certainly not placed; a later attempt may succeed.
    NotNow(String),
    /// It may have been placed, so it is looked for, and never placed again.
    Unknown,
}

/// What a provider says of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// It is not over. `control`: where it can be ended.
    Open {
        control: Option<String>,
    },
    Over(Box<Facts>),
    NoSuchCall,
}

/// A call that is over, as its provider describes it. Texts are cleaned and cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// When somebody answered; `None`: nobody did.
    pub started: Option<Timestamp>,
    pub ended: Timestamp,
    /// The provider's own word for its end.
    pub reason: String,
    /// The same in our words.
    pub why: Ended,
    pub verdict: Verdict,
    pub turns: Vec<Turn>,
    pub summary: Option<String>,
    /// Whether the objective was reached, as the provider's model judges.
    pub is_success: Option<bool>,
    /// A word of the wire; see [`vapi::OUTCOMES`].
    pub outcome: Option<&'static str>,
    /// The numbers (from 1) of the points that were answered.
    pub answered: Vec<usize>,
    /// Where the other side wants to be called back.
    pub callback: Option<String>,
    pub has_recording: bool,
    /// The provider has looked through the whole call. Otherwise some of this may come later.
    pub is_whole: bool,
}

impl Facts {
    /// How long it lasted; `None` if nobody answered.
    pub fn length(&self) -> Option<Duration> {
        let millis = self.ended.millis().saturating_sub(self.started?.millis());
        Some(Duration::from_millis(u64::try_from(millis).unwrap_or_default()))
    }
}

/// Whose fault an end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody's: it was a call, or nobody answered.
    Usual,
    /// It was called off.
    Cancelled,
    /// The number cannot be reached.
    Unreachable,
    /// The provider's, or the deployment's account there.
    Provider,
}

/// A text among what a provider sent.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}
