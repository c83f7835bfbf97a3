//! An x402 facilitator: somebody else's fee wallet, over HTTP (`POST /verify`, `POST /settle`; x402.md §3).
//!
//! A facilitator is believed when it says yes. When it says no, the chain is asked whether the money came another way;
//! when it says nothing usable, the payment is pending until the chain shows it.

use serde_json::{Value, json};

use super::relayer::reconcile_on_chain;
use super::{Found, Intent, JUST_NOW, LOOK_BACK_RANGES, Prepared, Settled, Settler, Verdict, explain};
use crate::clock::Clock;
use crate::config::{ChainConfig, Redacted};
use crate::evm::authorization::Authorization;
use crate::evm::hex0x;
use crate::net::{PlainError, PlainHttp};
use crate::payments::reason::Reason;
use crate::providers::Chain;
use crate::store::{BoxFuture, StoreError};

pub struct Facilitator {
    http: PlainHttp,
    url: String,
    token: Option<Redacted>,
    config: ChainConfig,
    chain: Chain,
    clock: Clock,
}

impl Facilitator {
    pub fn new(
        http: PlainHttp,
        url: &str,
        token: Option<Redacted>,
        config: ChainConfig,
        chain: Chain,
        clock: Clock,
    ) -> Facilitator {
        Facilitator { http, url: url.to_owned(), token, config, chain, clock }
    }

    async fn ask(&self, what: &str, authorization: &Authorization) -> Result<(u16, Value), PlainError> {
        let url = format!("{}/{what}", self.url);
        self.http.post_json(&url, self.token.as_ref().map(Redacted::expose), &self.question(authorization)).await
    }

    /// The payment as x402 v2 has it, with the requirement we issued: rebuilt from what we hold, never passed on.
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

    async fn check(&self, authorization: &Authorization) -> Verdict {
        let answer = match self.ask("verify", authorization).await {
            Ok((_, answer)) => answer,
            Err(error) => return Verdict::Unknown(error.to_string()),
        };
        match answer["isValid"].as_bool() {
            Some(true) => Verdict::Good,
            Some(false) => {
                let reason =
                    reason(answer["invalidReason"].as_str().unwrap_or_default()).unwrap_or(Reason::BadSignature);
                explain(&self.chain, authorization, reason, JUST_NOW).await.unwrap_or(Verdict::Refused(reason))
            }
            None => Verdict::Unknown("the facilitator's answer to /verify cannot be read".to_owned()),
        }
    }

    async fn submit(&self, authorization: &Authorization) -> Settled {
        let (status, answer) = match self.ask("settle", authorization).await {
            Ok(answer) => answer,
            Err(PlainError::NotSent(cause)) => return Settled::NotSent(cause),
            Err(PlainError::Lost(_)) => return Settled::Pending { transaction: None },
        };
        let transaction = answer["transaction"].as_str().filter(|hash| hash.starts_with("0x")).map(str::to_owned);
        let word = answer["errorReason"].as_str().unwrap_or_default();
        match (answer["success"].as_bool(), transaction) {
            // Another network or payer than was asked for: only the chain can tell what happened.
            (Some(true), Some(transaction)) if !self.is_about(&answer, authorization) => {
                Settled::Pending { transaction: Some(transaction) }
            }
            (Some(true), Some(transaction)) => Settled::Yes { transaction },
            // A broadcast whose end it has not seen: the chain will show it.
            (_, Some(transaction)) if word == "settlement_pending" => {
                Settled::Pending { transaction: Some(transaction) }
            }
            (Some(false), transaction) => match reason(word) {
                Some(reason) => self.refused(authorization, reason).await,
                None => Settled::Pending { transaction },
            },
            // It refused to deal with the request at all, so nothing was broadcast.
            _ if (400..500).contains(&status) => Settled::NotSent(format!("the facilitator answered {status}")),
            (_, transaction) => Settled::Pending { transaction },
        }
    }

    /// Whether an answer, as far as it says, is about this payment on this network.
    fn is_about(&self, answer: &Value, authorization: &Authorization) -> bool {
        let network = answer["network"].as_str();
        let payer = answer["payer"].as_str();
        network.is_none_or(|network| network == self.config.caip2() || network == self.config.v1_name())
            && payer.is_none_or(|payer| payer.parse() == Ok(authorization.from))
    }

    async fn refused(&self, authorization: &Authorization, reason: Reason) -> Settled {
        match explain(&self.chain, authorization, reason, LOOK_BACK_RANGES).await {
            Ok(Verdict::AlreadyPaid { transaction }) => Settled::Yes { transaction },
            Ok(Verdict::Refused(reason)) => Settled::No(reason),
            // The facilitator's own word has to do while the chain cannot be asked: better pending than wrong.
            _ => Settled::Pending { transaction: None },
        }
    }
}

impl Settler for Facilitator {
    fn check<'a>(&'a self, authorization: &'a Authorization) -> BoxFuture<'a, Verdict> {
        Box::pin(self.check(authorization))
    }

    fn prepare<'a>(&'a self, _authorization: &'a Authorization) -> BoxFuture<'a, Result<Prepared, Settled>> {
        Box::pin(async { Ok(Prepared { intent: None, allocation: None }) })
    }

    fn submit<'a>(&'a self, authorization: &'a Authorization, _intent: Option<&'a Intent>) -> BoxFuture<'a, Settled> {
        Box::pin(self.submit(authorization))
    }

    fn reconcile<'a>(
        &'a self,
        authorization: &'a Authorization,
        _intent: Option<&'a Intent>,
    ) -> BoxFuture<'a, Result<Found, StoreError>> {
        Box::pin(async move {
            let known = reconcile_on_chain(&self.chain, authorization, &self.clock).await.map_err(StoreError::new)?;
            Ok(Found::Known(match known {
                // Not on chain: the same payload again, which a facilitator reconciles and does not repeat.
                Settled::Pending { transaction: None } => self.submit(authorization).await,
                known => known,
            }))
        })
    }
}

/// A facilitator's word as a reason of ours; `None` for words that do not say that nothing will happen.
fn reason(word: &str) -> Option<Reason> {
    if let Some(reason) = Reason::parse(word) {
        return Some(reason);
    }
    let parts: [(&str, Reason); 9] = [
        ("insufficient", Reason::InsufficientFunds),
        ("valid_before", Reason::Expired),
        ("valid_after", Reason::NotYetValid),
        ("nonce", Reason::NonceUsed),
        ("signature", Reason::BadSignature),
        ("recipient", Reason::RecipientMismatch),
        ("value", Reason::ValueMismatch),
        ("simulation_failed", Reason::Reverted),
        ("invalid_transaction_state", Reason::Reverted),
    ];
    parts.into_iter().find(|(part, _)| word.contains(part)).map(|(_, reason)| reason)
}

/// A word in decimal digits.
fn decimal(word: &crate::evm::Word) -> String {
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
    use super::*;
    use crate::evm::{parse_decimal_word, word_from_u64};

    #[test]
    fn decimals_read_back() {
        for word in [[0; 32], word_from_u64(2_000), word_from_u64(u64::MAX), [0xff; 32]] {
            assert_eq!(parse_decimal_word(&decimal(&word)), Some(word));
        }
        assert_eq!(decimal(&word_from_u64(1_795_000_000)), "1795000000");
    }

    #[test]
    fn words_of_facilitators_are_understood_or_left_open() {
        assert_eq!(reason("insufficient_funds"), Some(Reason::InsufficientFunds));
        assert_eq!(reason("invalid_exact_evm_insufficient_balance"), Some(Reason::InsufficientFunds));
        assert_eq!(reason("invalid_exact_evm_payload_authorization_valid_before"), Some(Reason::Expired));
        assert_eq!(reason("invalid_exact_evm_transaction_simulation_failed"), Some(Reason::Reverted));
        assert_eq!(reason("unexpected_settle_error"), None);
        assert_eq!(reason(""), None);
    }
}
