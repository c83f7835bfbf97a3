//! Why a payment is refused: a closed set of x402 error codes that agents act on.

use std::fmt;

/// One reason a payment is refused. Nothing is claimed and nothing is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    UnsupportedVersion,
    UnsupportedScheme,
    NetworkMismatch,
    AssetMismatch,
    TokenNameMismatch,
    RequirementsMismatch,
    RecipientMismatch,
    ValueMismatch,
    NotYetValid,
    Expired,
    BadSignature,
    PayerMismatch,
    ZeroCostNotAllowed,
    InsufficientFunds,
    NonceUsed,
    /// It was put on chain for another purchase.
    PaidForAnother,
    Reverted,
    /// Its gas would cost more than the share of its amount that the deployment allows.
    GasTooHigh,
}

impl Reason {
    /// Every reason, for tests and for reading stored ones back.
    pub const ALL: [Reason; 18] = [
        Reason::UnsupportedVersion,
        Reason::UnsupportedScheme,
        Reason::NetworkMismatch,
        Reason::AssetMismatch,
        Reason::TokenNameMismatch,
        Reason::RequirementsMismatch,
        Reason::RecipientMismatch,
        Reason::ValueMismatch,
        Reason::NotYetValid,
        Reason::Expired,
        Reason::BadSignature,
        Reason::PayerMismatch,
        Reason::ZeroCostNotAllowed,
        Reason::InsufficientFunds,
        Reason::NonceUsed,
        Reason::PaidForAnother,
        Reason::Reverted,
        Reason::GasTooHigh,
    ];

    /// The code on the wire, from the x402 specification where it has one.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::UnsupportedVersion => "invalid_x402_version",
            Reason::UnsupportedScheme => "unsupported_scheme",
            Reason::NetworkMismatch => "invalid_network",
            Reason::AssetMismatch => "invalid_exact_evm_asset_mismatch",
            Reason::TokenNameMismatch => "invalid_exact_evm_token_name_mismatch",
            Reason::RequirementsMismatch => "invalid_payment_requirements",
            Reason::RecipientMismatch => "invalid_exact_evm_payload_recipient_mismatch",
            Reason::ValueMismatch => "invalid_exact_evm_payload_authorization_value",
            Reason::NotYetValid => "invalid_exact_evm_payload_authorization_valid_after",
            Reason::Expired => "invalid_exact_evm_payload_authorization_valid_before",
            Reason::BadSignature => "invalid_exact_evm_payload_signature",
            Reason::PayerMismatch => "agent_mismatch",
            Reason::ZeroCostNotAllowed => "zero_cost_not_allowed",
            Reason::InsufficientFunds => "insufficient_funds",
            Reason::NonceUsed => "invalid_exact_evm_nonce_already_used",
            Reason::PaidForAnother => "payment_already_used",
            Reason::Reverted => "invalid_exact_evm_transaction_failed",
            Reason::GasTooHigh => "gas_too_high",
        }
    }

    pub fn parse(word: &str) -> Option<Reason> {
        Reason::ALL.into_iter().find(|reason| reason.as_str() == word)
    }

    /// The step that refused: `terms` (the payment's form and terms), `signature` or `chain`.
    pub const fn stage(self) -> &'static str {
        match self {
            Reason::BadSignature => "signature",
            Reason::InsufficientFunds
            | Reason::NonceUsed
            | Reason::PaidForAnother
            | Reason::Reverted
            | Reason::GasTooHigh => "chain",
            _ => "terms",
        }
    }
}

/// The message for the caller: the fault and its remedy.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::UnsupportedVersion => "this service takes x402 versions 1 and 2",
            Reason::UnsupportedScheme => "this service takes the exact scheme",
            Reason::NetworkMismatch => "the payment is for another network",
            Reason::AssetMismatch => "the payment is in another token",
            Reason::TokenNameMismatch => "the payment was signed for another token domain (name or version)",
            Reason::RequirementsMismatch => "the payment echoes terms this service did not offer",
            Reason::RecipientMismatch => "the payment goes to another address",
            Reason::ValueMismatch => "the signed value must equal the quoted amount exactly",
            Reason::NotYetValid => "the authorization is not valid yet; validAfter is in Unix seconds",
            Reason::Expired => "the authorization has expired or is about to",
            Reason::BadSignature => "the signature was not made by the payer over these terms",
            Reason::PayerMismatch => "X-Agent-ID names another agent than the payer",
            Reason::ZeroCostNotAllowed => "a payment of zero needs a quote that credits cover fully, and a fresh proof",
            Reason::InsufficientFunds => "the payer's token balance does not cover the amount",
            Reason::NonceUsed => "the authorization's nonce was used or cancelled on chain; sign a new one",
            Reason::PaidForAnother => "the payment was put on chain for another purchase; sign a new one",
            Reason::Reverted => "the transfer was broadcast and reverted; no money moved",
            Reason::GasTooHigh => {
                "the transfer's gas would cost too much for this amount; nothing was charged. Buy credits once \
                 (POST /v1/credits/top-up) and pay with them"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_round_trips() {
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), Some(reason));
        }
        assert_eq!(Reason::parse("other"), None);
    }
}
