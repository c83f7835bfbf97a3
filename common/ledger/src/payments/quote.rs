//! Quotes: a price, fixed for a while, for one request of one agent.
//!
//! A quote is a token with our MAC and is not stored, so quoting writes nothing. The id of the job bought with it is
//! derived from the quote's id, so a quote can buy only one job.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use base::encoding::{base64_any, base64_url};
use base::ids::{AgentId, RequestId};
use base::money::Usdc;
use platform::config::FeeShare;
use platform::http::ApiError;
use ring::hmac;
use subtle::ConstantTimeEq;

const PREFIX: &str = "quote_";
const VERSION: u8 = 4;
const MAC_BYTES: usize = 16;
/// version, uid, time given, expiry, amount, credits, platform's fee in per cent, terms, binding
const BODY_BYTES: usize = 1 + 12 + 8 + 8 + 8 + 8 + 1 + 3 + 16;
/// Largest version of terms that a token has room for.
const MAX_TERMS: u32 = 0xff_ffff;

/// The purchase a quote is bound to: the tool and the exact body.
#[derive(Clone, Copy, Debug)]
pub struct Purchase<'a> {
    pub tool: &'a str,
    /// SHA-256 of the canonical body.
    pub body: &'a [u8; 32],
}

/// A quoted price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    pub uid: [u8; 12],
    /// When it was given. A transfer mined before that does not pay for it.
    pub given: Timestamp,
    pub expires: Timestamp,
    /// The whole price, in micro-USDC.
    pub amount: Usdc,
    /// The part of the price that held credits pay, in micro-USDC.
    pub credits: Usdc,
    /// The quoted version of a seller's terms; 0 for our own tools.
    pub terms: u32,
    /// The platform's fee on a seller's sale when the quote was given.
    pub fee: FeeShare,
    binding: [u8; 16],
}

/// Why a quote cannot be redeemed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuoteError {
    /// Not a quote of ours, or expired, or used.
    Invalid,
    /// Ours and open, but for another body, tool or agent.
    Mismatch,
}

impl From<QuoteError> for ApiError {
    fn from(error: QuoteError) -> ApiError {
        match error {
            QuoteError::Invalid => ApiError::InvalidQuote,
            QuoteError::Mismatch => ApiError::QuoteMismatch,
        }
    }
}

impl Quote {
    /// Makes a quote. If `agent` is known, only that agent can redeem it.
    pub fn offer(
        purchase: Purchase<'_>,
        agent: Option<AgentId>,
        amount: Usdc,
        now: Timestamp,
        validity: Duration,
    ) -> Quote {
        // Whole seconds: the token carries no fractions.
        let (given, expires) = (Timestamp::from_secs(now.secs()), Timestamp::from_secs(now.plus(validity).secs()));
        let binding = binding(purchase, agent);
        let (uid, fee) = (digest::random(), FeeShare::default());
        Quote { uid, given, expires, amount, credits: Usdc::ZERO, terms: 0, fee, binding }
    }

    /// The same quote, for this version of a seller's terms and at this platform fee.
    pub fn under_terms(self, terms: u32, fee: FeeShare) -> Quote {
        Quote { terms: terms.min(MAX_TERMS), fee, ..self }
    }

    /// Reads a token that is ours, for any purchase and of any age.
    pub fn authentic(token: &str, key: &hmac::Key) -> Option<Quote> {
        Quote::read(token, key)
    }

    /// The same quote with part of its price paid in credits.
    pub fn with_credits(self, credits: Usdc) -> Quote {
        Quote { credits: credits.min(self.amount), ..self }
    }

    /// The part that must be paid by a signed payment.
    pub fn remaining(&self) -> Usdc {
        self.amount.checked_sub(self.credits).unwrap_or_default()
    }

    /// The token. Callers must treat it as opaque.
    pub fn to_token(&self, key: &hmac::Key) -> String {
        let body = self.body();
        let mac = digest::hmac(key, &body);
        format!("{PREFIX}{}", base64_url(&[&body[..], &mac[..MAC_BYTES]].concat()))
    }

    /// Reads a token. It must be ours, still open, and for this purchase by this payer.
    pub fn redeem(
        token: &str,
        key: &hmac::Key,
        purchase: Purchase<'_>,
        payer: AgentId,
        now: Timestamp,
    ) -> Result<Quote, QuoteError> {
        let quote = Quote::redeem_at_any_time(token, key, purchase, payer)?;
        if now >= quote.expires {
            return Err(QuoteError::Invalid);
        }
        Ok(quote)
    }

    /// Like [`Quote::redeem`], but accepts an expired quote, so that its purchase can still be replayed.
    pub fn redeem_at_any_time(
        token: &str,
        key: &hmac::Key,
        purchase: Purchase<'_>,
        payer: AgentId,
    ) -> Result<Quote, QuoteError> {
        let quote = Quote::read(token, key).ok_or(QuoteError::Invalid)?;
        if quote.is_for(purchase, [payer]) { Ok(quote) } else { Err(QuoteError::Mismatch) }
    }

    /// Whether it is for this purchase and for one of these agents, or for any agent.
    pub fn is_for(&self, purchase: Purchase<'_>, agents: impl IntoIterator<Item = AgentId>) -> bool {
        let agents = agents.into_iter().map(Some).chain([None]);
        agents.into_iter().any(|agent| self.binding == binding(purchase, agent))
    }

    fn read(token: &str, key: &hmac::Key) -> Option<Quote> {
        let bytes = base64_any(token.strip_prefix(PREFIX)?)?;
        if bytes.len() != BODY_BYTES + MAC_BYTES || bytes[0] != VERSION {
            return None;
        }
        let (body, mac) = bytes.split_at(BODY_BYTES);
        // Constant time: a MAC must not be guessable byte by byte.
        let expected = digest::hmac(key, body);
        if !bool::from(expected[..MAC_BYTES].ct_eq(mac)) {
            return None;
        }
        Some(Quote {
            uid: body[1..13].try_into().ok()?,
            given: Timestamp::from_secs(i64::from_be_bytes(body[13..21].try_into().ok()?)),
            expires: Timestamp::from_secs(i64::from_be_bytes(body[21..29].try_into().ok()?)),
            amount: Usdc::from_micro(u64::from_be_bytes(body[29..37].try_into().ok()?)),
            credits: Usdc::from_micro(u64::from_be_bytes(body[37..45].try_into().ok()?)),
            // Zero in quotes from before the fee could be changed.
            fee: FeeShare::of_percent(body[45]).unwrap_or_default(),
            terms: u32::from_be_bytes([0, body[46], body[47], body[48]]),
            binding: body[49..65].try_into().ok()?,
        })
    }

    fn body(&self) -> [u8; BODY_BYTES] {
        let mut body = [0; BODY_BYTES];
        body[0] = VERSION;
        body[1..13].copy_from_slice(&self.uid);
        body[13..21].copy_from_slice(&self.given.secs().to_be_bytes());
        body[21..29].copy_from_slice(&self.expires.secs().to_be_bytes());
        body[29..37].copy_from_slice(&self.amount.micro().to_be_bytes());
        body[37..45].copy_from_slice(&self.credits.micro().to_be_bytes());
        body[45] = self.fee.percent();
        body[46..49].copy_from_slice(&self.terms.to_be_bytes()[1..]);
        body[49..65].copy_from_slice(&self.binding);
        body
    }

    /// The id of the job bought with this quote.
    pub fn request_id(&self) -> RequestId {
        RequestId::bought_with("quote", &[&self.uid])
    }
}

fn binding(purchase: Purchase<'_>, agent: Option<AgentId>) -> [u8; 16] {
    let agent: &[u8] = match &agent {
        Some(agent) => agent.bytes(),
        None => &[],
    };
    let digest = digest::sha256_parts(&[b"quote", purchase.tool.as_bytes(), purchase.body, agent]);
    let mut binding = [0; 16];
    binding.copy_from_slice(&digest[..16]);
    binding
}

#[cfg(test)]
mod tests {
    use evm::Address;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_795_000_000);
    const VALIDITY: Duration = Duration::from_secs(900);

    fn key() -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, b"a key")
    }

    #[test]
    fn redeems_for_the_same_purchase_only() {
        let payer = AgentId::of(Address::from_bytes([1; 20]));
        let other = AgentId::of(Address::from_bytes([2; 20]));
        let purchase = Purchase { tool: "web_read", body: &[1; 32] };
        for agent in [None, Some(payer)] {
            let quote = Quote::offer(purchase, agent, Usdc::from_micro(2_000), NOW, VALIDITY);
            let token = quote.to_token(&key());
            assert_eq!(Quote::redeem(&token, &key(), purchase, payer, NOW), Ok(quote));
            let later = NOW.plus(VALIDITY);
            assert_eq!(Quote::redeem(&token, &key(), purchase, payer, later), Err(QuoteError::Invalid));
            for wrong in [Purchase { tool: "vin_decode", ..purchase }, Purchase { body: &[2; 32], ..purchase }] {
                assert_eq!(Quote::redeem(&token, &key(), wrong, payer, NOW), Err(QuoteError::Mismatch));
            }
            let by_other = Quote::redeem(&token, &key(), purchase, other, NOW);
            assert_eq!(by_other, if agent.is_none() { Ok(quote) } else { Err(QuoteError::Mismatch) });
        }
    }

    #[test]
    fn a_token_keeps_the_terms_and_the_fee() {
        let (payer, purchase) = (AgentId::of(Address::ZERO), Purchase { tool: "soul", body: &[1; 32] });
        for (terms, percent) in [(1, 1), (300, 20), (MAX_TERMS, 50)] {
            let quote = Quote::offer(purchase, None, Usdc::from_micro(10_000), NOW, VALIDITY)
                .under_terms(terms, FeeShare::of_percent(percent).unwrap());
            assert_eq!(Quote::redeem(&quote.to_token(&key()), &key(), purchase, payer, NOW), Ok(quote));
            assert_eq!((quote.terms, quote.fee.percent()), (terms, percent));
        }
        // A token of an earlier release has a zero in place of the fee.
        let quote = Quote::offer(purchase, None, Usdc::from_micro(10_000), NOW, VALIDITY);
        let mut body = quote.body();
        body[45] = 0;
        let mac = digest::hmac(&key(), &body);
        let token = format!("{PREFIX}{}", base64_url(&[&body[..], &mac[..MAC_BYTES]].concat()));
        assert_eq!(Quote::authentic(&token, &key()), Some(quote));
    }

    #[test]
    fn a_forged_or_foreign_token_is_invalid() {
        let purchase = Purchase { tool: "web_read", body: &[1; 32] };
        let payer = AgentId::of(Address::ZERO);
        let token = Quote::offer(purchase, None, Usdc::from_micro(2_000), NOW, VALIDITY).to_token(&key());
        let mut bytes = base64_any(token.strip_prefix(PREFIX).unwrap()).unwrap();
        for index in 0..bytes.len() {
            bytes[index] ^= 1;
            let forged = format!("{PREFIX}{}", base64_url(&bytes));
            assert_eq!(Quote::redeem(&forged, &key(), purchase, payer, NOW), Err(QuoteError::Invalid), "byte {index}");
            bytes[index] ^= 1;
        }
        let other_key = hmac::Key::new(hmac::HMAC_SHA256, b"another key");
        assert_eq!(Quote::redeem(&token, &other_key, purchase, payer, NOW), Err(QuoteError::Invalid));
        for text in ["", "quote_", "quote_x", "quote_!!!", "abc"] {
            assert_eq!(Quote::redeem(text, &key(), purchase, payer, NOW), Err(QuoteError::Invalid));
        }
    }
}
