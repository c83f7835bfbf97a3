//! An x402 facilitator: another party's fee wallet, over HTTP (`POST /verify`, `POST /settle`).
//!
//! A success reported by a facilitator is trusted. A refusal counts only with the codes and statuses that facilitators are
//! documented to give before they broadcast anything (the tables at the end of this file). Then the chain is checked,
//! because the money may have come another way. In all other cases the payment is pending until the chain shows its
//! outcome. For example, the reference facilitator answers 400 `Invalid request` for any failure while it waits for a
//! block.

use base::clock::{Clock, Timestamp};
use evm::authorization::Authorization;
use evm::hex0x;
use platform::config::{ChainConfig, Redacted};
use platform::net::{PlainError, PlainHttp};
use platform::providers::chain::ChainError;
use platform::store::{BoxFuture, StoreError};
use serde_json::{Value, json};

use super::{
    Evidence, Found, Intent, JUST_NOW, JobPayment, LOOK_BACK_RANGES, Prepared, Settled, Settler, Use, Verdict,
};
use crate::payments::reason::Reason;

pub struct Facilitator {
    http: PlainHttp,
    url: String,
    token: Option<Redacted>,
    config: ChainConfig,
    evidence: Evidence,
    clock: Clock,
}

impl Facilitator {
    pub fn new(
        http: PlainHttp,
        url: &str,
        token: Option<Redacted>,
        config: ChainConfig,
        evidence: Evidence,
        clock: Clock,
    ) -> Facilitator {
        Facilitator { http, url: url.to_owned(), token, config, evidence, clock }
    }

    /// The status, and the body if it is JSON (else null).
    async fn ask(&self, what: &str, authorization: &Authorization) -> Result<(u16, Value), PlainError> {
        let not_sent = |error: http::Error| PlainError::NotSent(error.to_string());
        let mut request = http::Request::post(format!("{}/{what}", self.url))
            .header("content-type", "application/json")
            .header("accept", "application/json");
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {}", token.expose()));
        }
        let request = request.body(self.question(authorization).to_string().into_bytes()).map_err(not_sent)?;
        let answer = self.http.send(request).await?;
        Ok((answer.status, serde_json::from_slice(&answer.body).unwrap_or_default()))
    }

    /// The payment in x402 v2, with the requirement we issued. It is rebuilt from our own data; the client's copy is not
    /// passed on.
    fn question(&self, authorization: &Authorization) -> Value {
        let requirements = json!({
            "scheme": "exact",
            "network": self.config.caip2(),
            "amount": decimal(&authorization.value),
            "asset": self.config.token.address.to_string(),
            "payTo": authorization.to.to_string(),
            "maxTimeoutSeconds": super::super::wire::MAX_TIMEOUT_SECS,
            "extra": {"name": self.config.token.name, "version": self.config.token.version},
        });
        json!({
            "x402Version": 2,
            "paymentPayload": {
                "x402Version": 2,
                "accepted": requirements,
                "payload": {
                    "signature": hex0x(&authorization.signature),
                    "authorization": {
                        "from": authorization.from.to_string(),
                        "to": authorization.to.to_string(),
                        "value": decimal(&authorization.value),
                        "validAfter": decimal(&authorization.valid_after),
                        "validBefore": decimal(&authorization.valid_before),
                        "nonce": hex0x(&authorization.nonce),
                    },
                },
            },
            "paymentRequirements": requirements,
        })
    }

    /// Also asks the chain: not every facilitator checks whether the payment was used.
    async fn check(&self, payment: JobPayment<'_>, quoted_at: Option<Timestamp>) -> Verdict {
        let used = self.evidence.used_perhaps_just_now(payment, quoted_at, JUST_NOW);
        let (answer, used) = tokio::join!(self.ask("verify", payment.authorization), used);
        match used {
            Ok(Use::Unused) => {}
            Ok(Use::ForThisJob { transaction }) => return Verdict::AlreadyPaid { transaction },
            Ok(Use::ForAnother { transaction }) => return Verdict::PaidForAnother { transaction },
            Ok(Use::Otherwise | Use::Untraceable) => return Verdict::Refused(Reason::NonceUsed),
            Err(error) => return Verdict::Unknown(error.to_string()),
        }
        let answer = match answer {
            Ok((_, answer)) => answer,
            Err(error) => return Verdict::Unknown(error.to_string()),
        };
        let word = answer["invalidReason"].as_str().unwrap_or_default();
        match (answer["isValid"].as_bool(), refusal(word)) {
            (Some(true), _) => Verdict::Good,
            (Some(false), Some(reason)) => Verdict::Refused(reason),
            // The answer does not say what is wrong with the payment. The fault may be the facilitator's own.
            _ => Verdict::Unknown(format!("the facilitator could not verify the payment: {word:?}")),
        }
    }

    async fn submit(&self, payment: JobPayment<'_>) -> Settled {
        let authorization = payment.authorization;
        let (status, answer) = match self.ask("settle", authorization).await {
            Ok(answer) => answer,
            Err(PlainError::NotSent(cause)) => return Settled::NotSent(cause),
            Err(PlainError::Lost(_)) => return Settled::Pending { transaction: None },
        };
        let transaction = answer["transaction"].as_str().filter(|hash| hash.starts_with("0x")).map(str::to_owned);
        let word = answer["errorReason"].as_str().unwrap_or_default();
        match (answer["success"].as_bool(), transaction) {
            // An answer about another network or payer proves nothing.
            (Some(true), Some(transaction)) if self.is_about(&answer, authorization) => Settled::Yes { transaction },
            (None, None) if NOT_LET_IN.contains(&status) => {
                Settled::NotSent(format!("the facilitator answered {status}"))
            }
            (Some(false), None) => match refusal(word) {
                Some(reason) => self.refused(payment, reason).await,
                None => Settled::Pending { transaction: None },
            },
            (_, transaction) => Settled::Pending { transaction },
        }
    }

    /// Whether network and payer in an answer, if present, are those of this payment.
    fn is_about(&self, answer: &Value, authorization: &Authorization) -> bool {
        let network = answer["network"].as_str();
        let payer = answer["payer"].as_str();
        network.is_none_or(|network| network == self.config.caip2() || network == self.config.v1_name())
            && payer.is_none_or(|payer| payer.parse() == Ok(authorization.from))
    }

    /// The facilitator refused for this reason before it broadcast anything.
    async fn refused(&self, payment: JobPayment<'_>, reason: Reason) -> Settled {
        let why = async {
            Ok(match self.evidence.used(payment, None, LOOK_BACK_RANGES).await? {
                Use::ForThisJob { transaction } => Settled::Yes { transaction },
                Use::ForAnother { transaction } => Settled::ForAnother { transaction },
                Use::Otherwise => Settled::No(Reason::NonceUsed),
                Use::Unused => match self.evidence.lacking(payment.authorization, reason).await? {
                    // No block shows this use of the nonce. It may be the facilitator's own pending transaction.
                    Reason::NonceUsed => Settled::Pending { transaction: None },
                    reason => Settled::No(reason),
                },
                Use::Untraceable => Settled::Pending { transaction: None },
            })
        };
        let known: Result<Settled, ChainError> = why.await;
        known.unwrap_or(Settled::Pending { transaction: None })
    }
}

impl Settler for Facilitator {
    fn check<'a>(&'a self, payment: JobPayment<'a>, quoted_at: Option<Timestamp>) -> BoxFuture<'a, Verdict> {
        Box::pin(self.check(payment, quoted_at))
    }

    fn prepare<'a>(
        &'a self,
        _payment: JobPayment<'a>,
        _lost: Option<Intent>,
    ) -> BoxFuture<'a, Result<Prepared, Settled>> {
        Box::pin(async { Ok(Prepared { intent: None, allocation: None }) })
    }

    fn submit<'a>(&'a self, payment: JobPayment<'a>, _intent: Option<&'a Intent>) -> BoxFuture<'a, Settled> {
        Box::pin(self.submit(payment))
    }

    fn reconcile<'a>(
        &'a self,
        payment: JobPayment<'a>,
        _intent: Option<&'a Intent>,
    ) -> BoxFuture<'a, Result<Found, StoreError>> {
        Box::pin(async move {
            let known = self.evidence.reconcile(payment, &self.clock).await.map_err(StoreError::new)?;
            Ok(Found::Known(match known {
                // Not on chain: send the same payload again. A facilitator recognises it and does not repeat it. Its first
                // transaction may still be pending, so only the chain can show that the payment failed.
                Settled::Pending { transaction: None } => match self.submit(payment).await {
                    Settled::No(_) => Settled::Pending { transaction: None },
                    known => known,
                },
                known => known,
            }))
        })
    }
}

/// Statuses from checks in front of a facilitator (authentication, routing, size). 400 and 429 are not in the list, because
/// some facilitators also use them for failures after a broadcast.
const NOT_LET_IN: [u16; 6] = [401, 403, 404, 405, 413, 415];

/// The reason for a code that facilitators give only before they broadcast; `None` for every other code.
fn refusal(word: &str) -> Option<Reason> {
    Some(match word {
        "insufficient_funds" | "insufficient_balance" | "invalid_exact_evm_insufficient_balance" => {
            Reason::InsufficientFunds
        }
        "invalid_exact_evm_nonce_already_used" | "nonce_already_used" => Reason::NonceUsed,
        "invalid_exact_evm_payload_signature"
        | "invalid_exact_evm_signature"
        | "invalid_exact_evm_failed_to_parse_signature"
        | "invalid_exact_evm_payload_undeployed_smart_wallet"
        | "eip6492_factory_not_allowed"
        | "invalid_signature" => Reason::BadSignature,
        "invalid_exact_evm_payload_recipient_mismatch"
        | "invalid_exact_evm_recipient_mismatch"
        | "address_mismatch" => Reason::RecipientMismatch,
        "invalid_exact_evm_payload_authorization_value"
        | "invalid_exact_evm_payload_authorization_value_mismatch"
        | "invalid_exact_evm_authorization_value"
        | "amount_mismatch" => Reason::ValueMismatch,
        "invalid_exact_evm_payload_authorization_valid_after" | "authorization_not_yet_valid" => Reason::NotYetValid,
        "invalid_exact_evm_payload_authorization_valid_before"
        | "authorization_expired"
        | "authorization_validity_too_short" => Reason::Expired,
        "invalid_network" | "invalid_exact_evm_network_mismatch" | "unsupported_network" => Reason::NetworkMismatch,
        "asset_not_deployed_contract" | "invalid_exact_evm_eip3009_not_supported" | "unsupported_asset" => {
            Reason::AssetMismatch
        }
        "invalid_exact_evm_token_name_mismatch"
        | "invalid_exact_evm_token_version_mismatch"
        | "invalid_exact_evm_missing_eip712_domain" => Reason::TokenNameMismatch,
        "invalid_scheme" | "invalid_exact_evm_scheme" | "unsupported_scheme" => Reason::UnsupportedScheme,
        "invalid_x402_version" => Reason::UnsupportedVersion,
        "invalid_payload" | "invalid_payment_requirements" => Reason::RequirementsMismatch,
        "invalid_exact_evm_transaction_simulation_failed" => Reason::Reverted,
        _ => return None,
    })
}

/// A word as decimal digits.
fn decimal(word: &evm::Word) -> String {
    let mut digits = Vec::new();
    let mut rest = *word;
    while rest != [0; 32] {
        let mut remainder = 0u16;
        for byte in &mut rest {
            let part = remainder << 8 | u16::from(*byte);
            *byte = (part / 10) as u8;
            remainder = part % 10;
        }
        digits.push(b'0' + remainder as u8);
    }
    if digits.is_empty() {
        digits.push(b'0');
    }
    digits.iter().rev().map(|digit| char::from(*digit)).collect()
}

#[cfg(test)]
mod tests {
    use evm::{parse_decimal_word, word_from_u64};

    use super::*;

    #[test]
    fn decimals_round_trip() {
        for word in [[0; 32], word_from_u64(2_000), word_from_u64(u64::MAX), [0xff; 32]] {
            assert_eq!(parse_decimal_word(&decimal(&word)), Some(word));
        }
        assert_eq!(decimal(&word_from_u64(1_795_000_000)), "1795000000");
    }

    #[test]
    fn only_error_codes_from_before_a_broadcast_are_refusals() {
        for (word, reason) in [
            ("insufficient_funds", Reason::InsufficientFunds),
            ("invalid_exact_evm_insufficient_balance", Reason::InsufficientFunds),
            ("invalid_exact_evm_payload_authorization_valid_before", Reason::Expired),
            ("invalid_exact_evm_transaction_simulation_failed", Reason::Reverted),
        ] {
            assert_eq!(refusal(word), Some(reason));
        }
        let others = ["", "unexpected_settle_error", "transaction_failed: nonce too low", "invalid_transaction_state"];
        let own = Reason::Reverted.as_str();
        for word in
            others.into_iter().chain([own, "settlement_pending", "INSUFFICIENT_FUNDS", "insufficient_funds_for_gas"])
        {
            assert_eq!(refusal(word), None, "{word}");
        }
    }
}
