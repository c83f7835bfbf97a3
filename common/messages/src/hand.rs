//! What became of a message that was handed to a provider.
//!
//! A message is handed over once. Only [`Handed::NotNow`] allows another attempt: the provider certainly does not have it.
//! Everything that may have been accepted is [`Handed::Unknown`].

use base::untrusted_text;
use platform::providers::OutboundError;

/// Longest reason, in characters.
const MAX_REASON_CHARS: usize = 300;

/// What became of it. A `reason` is for the sender; it is cleaned and short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handed {
    Accepted {
        provider: &'static str,
        provider_message_id: Option<String>,
    },
    /// Refused for good.
    Refused {
        reason: String,
    },
    /// Refused for good: the recipient has told the provider that it wants no more.
    Suppressed {
        reason: String,
    },
    /// Refused for good: the provider does not send from this sender, or no longer has it.
    NoSender {
        reason: String,
    },
    /// Certainly not accepted; a later attempt may succeed.
    NotNow {
        reason: String,
    },
    /// It may have been accepted, so it is never sent again.
    Unknown {
        reason: String,
    },
}

/// A provider's or a recipient's host's own words on one line, without invisible characters, cut to 300 characters.
pub fn clean_reason(text: &str) -> String {
    let text = untrusted_text::visible(text);
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_REASON_CHARS).collect()
}

/// The outcome without a usable answer. A status of 500 and above does not say whether the message was accepted. `who`: the
/// provider, for the reason: "the mail provider".
pub fn unanswered(error: &OutboundError, who: &str) -> Handed {
    let reason = format!("{who} {error}");
    match error {
        OutboundError::NotConfigured(_)
        | OutboundError::NotAsked(_)
        | OutboundError::TooMany
        | OutboundError::Unauthorized(_) => Handed::NotNow { reason },
        OutboundError::Refused(400..=499) => Handed::Refused { reason },
        OutboundError::Refused(_)
        | OutboundError::Unknown(_)
        | OutboundError::Unreadable(_)
        | OutboundError::Failed(_) => Handed::Unknown { reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq)]
    enum Is {
        Refused,
        NotNow,
        Unknown,
        Other,
    }

    #[test]
    fn without_an_answer_only_what_certainly_did_not_arrive_may_be_sent_again() {
        let why = || "cause".to_owned();
        for (error, outcome) in [
            (OutboundError::NotAsked(why()), Is::NotNow),
            (OutboundError::TooMany, Is::NotNow),
            (OutboundError::Unauthorized(403), Is::NotNow),
            (OutboundError::Refused(413), Is::Refused),
            (OutboundError::Refused(503), Is::Unknown),
            (OutboundError::Unknown(why()), Is::Unknown),
        ] {
            let is = match unanswered(&error, "the mail provider") {
                Handed::Refused { .. } => Is::Refused,
                Handed::NotNow { .. } => Is::NotNow,
                Handed::Unknown { .. } => Is::Unknown,
                Handed::Accepted { .. } | Handed::Suppressed { .. } | Handed::NoSender { .. } => Is::Other,
            };
            assert_eq!(is, outcome, "{error:?}");
        }
    }
}
