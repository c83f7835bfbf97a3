//! Checks of a payment that need neither database nor chain: terms, validity window and signature.
//!
//! Cheap checks come first. The payment is always compared with the terms that *we* hold, never only with the client's
//! copy of them.

use base::clock::Timestamp;
use base::money::Usdc;
use evm::Address;
use evm::authorization::Authorization;
use platform::config::ChainConfig;

use super::reason::Reason;
use super::wire::{Accepted, Payment};

/// An authorization must stay valid for at least this many seconds, so that it can still be put on chain.
pub const MARGIN_SECS: u64 = 6;

/// The terms we ask for: exactly this amount, to this address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// micro-USDC
    pub amount: Usdc,
    pub pay_to: Address,
}

/// The result of the signature check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// The payer's own key signed.
    Key,
    /// Not a key's signature. If the payer is a contract wallet, only the chain can check it.
    Unknown,
}

/// Checks what does not depend on price or time: version, scheme, network, token and payee.
pub fn check_identity(payment: &Payment, chain: &ChainConfig, pay_to: Address) -> Result<(), Reason> {
    check_accepted(&payment.accepted, chain, pay_to)?;
    if payment.authorization.is_zero_cost() {
        return Err(Reason::ZeroCostNotAllowed);
    }
    if payment.authorization.to != pay_to {
        return Err(Reason::RecipientMismatch);
    }
    Ok(())
}

/// Checks the signature. This is the costly step, so it comes last.
pub fn signer(authorization: &Authorization, chain: &ChainConfig) -> Signer {
    if authorization.signed_by_key(&chain.token.domain) { Signer::Key } else { Signer::Unknown }
}

fn check_accepted(accepted: &Accepted, chain: &ChainConfig, pay_to: Address) -> Result<(), Reason> {
    if accepted.version.is_some_and(|version| version != 1 && version != 2) {
        return Err(Reason::UnsupportedVersion);
    }
    if accepted.scheme.as_ref().is_some_and(|scheme| scheme != "exact") {
        return Err(Reason::UnsupportedScheme);
    }
    if accepted.network.as_ref().is_some_and(|network| *network != chain.caip2() && *network != chain.v1_name()) {
        return Err(Reason::NetworkMismatch);
    }
    let names_another =
        |text: &Option<String>, address: Address| text.as_ref().is_some_and(|text| text.parse() != Ok(address));
    if names_another(&accepted.asset, chain.token.address) {
        return Err(Reason::AssetMismatch);
    }
    if names_another(&accepted.pay_to, pay_to) {
        return Err(Reason::RecipientMismatch);
    }
    let token = &chain.token;
    if accepted.token_name.as_ref().is_some_and(|name| *name != token.name)
        || accepted.token_version.as_ref().is_some_and(|version| *version != token.version)
    {
        return Err(Reason::TokenNameMismatch);
    }
    Ok(())
}

/// Checks what depends on the price and the time. A payment that fails here may have been good earlier.
pub fn check_terms(payment: &Payment, terms: Terms, now: Timestamp) -> Result<(), Reason> {
    let amount = terms.amount.micro().to_string();
    if payment.accepted.amount.as_ref().is_some_and(|accepted| *accepted != amount) {
        return Err(Reason::RequirementsMismatch);
    }
    if payment.authorization.amount() != Some(terms.amount.micro()) {
        return Err(Reason::ValueMismatch);
    }
    check_window(&payment.authorization, now)
}

/// The authorization must be valid now and for another [`MARGIN_SECS`].
pub fn check_window(authorization: &Authorization, now: Timestamp) -> Result<(), Reason> {
    let now = u64::try_from(now.secs()).unwrap_or_default();
    // The token requires `validAfter` < block time. Equal to our clock is accepted, because the block comes later.
    if authorization.valid_after_secs() > now {
        return Err(Reason::NotYetValid);
    }
    if authorization.valid_before_secs() < now.saturating_add(MARGIN_SECS) {
        return Err(Reason::Expired);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use evm::signature::PrivateKey;
    use evm::word_from_u64;
    use platform::config::Token;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_795_000_000);

    fn chain() -> ChainConfig {
        let usdc = "0x036CbD53842c5426634e7929541eC2318f3dCF7e".parse().unwrap();
        ChainConfig { chain_id: 84532, rpc_url: String::new(), token: Token::new(84532, usdc, "USDC", "2") }
    }

    fn terms() -> Terms {
        Terms { amount: Usdc::from_micro(2_000), pay_to: Address::from_bytes([8; 20]) }
    }

    fn signed(change: impl Fn(&mut Payment), domain: &evm::Word) -> Payment {
        let key = PrivateKey::from_bytes(&[7; 32]).unwrap();
        let authorization = Authorization {
            from: key.address(),
            to: terms().pay_to,
            value: word_from_u64(2_000),
            valid_after: word_from_u64(0),
            valid_before: word_from_u64(NOW.secs() as u64 + 300),
            nonce: [5; 32],
            signature: Vec::new(),
        };
        let accepted = Accepted {
            version: Some(2),
            scheme: Some("exact".to_owned()),
            network: Some("eip155:84532".to_owned()),
            amount: Some("2000".to_owned()),
            asset: Some(chain().token.address.to_string()),
            pay_to: Some(terms().pay_to.to_string()),
            token_name: Some("USDC".to_owned()),
            token_version: Some("2".to_owned()),
        };
        let mut payment = Payment { authorization, accepted, quote_id: None, identifier: None };
        change(&mut payment);
        payment.authorization.signature = key.sign(&payment.authorization.digest(domain)).to_bytes().to_vec();
        payment
    }

    fn judge(payment: &Payment) -> Result<Signer, Reason> {
        check_identity(payment, &chain(), terms().pay_to)?;
        check_terms(payment, terms(), NOW)?;
        Ok(signer(&payment.authorization, &chain()))
    }

    #[test]
    fn a_good_payment_passes_with_and_without_echoed_terms() {
        let domain = chain().token.domain;
        assert_eq!(judge(&signed(|_| (), &domain)), Ok(Signer::Key));
        assert_eq!(judge(&signed(|payment| payment.accepted = Accepted::default(), &domain)), Ok(Signer::Key));
        assert_eq!(
            judge(&signed(|payment| payment.accepted.network = Some("base-sepolia".to_owned()), &domain)),
            Ok(Signer::Key)
        );
    }

    #[test]
    fn each_wrong_term_has_its_reason() {
        type Change = fn(&mut Payment);
        let cases: [(Change, Reason); 15] = [
            (|p| p.accepted.version = Some(3), Reason::UnsupportedVersion),
            (|p| p.accepted.scheme = Some("upto".to_owned()), Reason::UnsupportedScheme),
            (|p| p.accepted.network = Some("eip155:8453".to_owned()), Reason::NetworkMismatch),
            (
                |p| p.accepted.asset = Some("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913".to_owned()),
                Reason::AssetMismatch,
            ),
            (|p| p.accepted.asset = Some("usdc".to_owned()), Reason::AssetMismatch),
            (|p| p.accepted.pay_to = Some(Address::ZERO.to_string()), Reason::RecipientMismatch),
            (|p| p.accepted.token_name = Some("USD Coin".to_owned()), Reason::TokenNameMismatch),
            (|p| p.accepted.token_version = Some("1".to_owned()), Reason::TokenNameMismatch),
            (|p| p.accepted.amount = Some("1".to_owned()), Reason::RequirementsMismatch),
            (|p| p.authorization.to = Address::from_bytes([9; 20]), Reason::RecipientMismatch),
            (|p| p.authorization.value = word_from_u64(2_001), Reason::ValueMismatch),
            (|p| p.authorization.value = word_from_u64(1_999), Reason::ValueMismatch),
            (|p| p.authorization.value = [0xff; 32], Reason::ValueMismatch),
            (|p| p.authorization.valid_after = word_from_u64(NOW.secs() as u64 + 60), Reason::NotYetValid),
            (|p| p.authorization.valid_before = word_from_u64(NOW.secs() as u64 + 5), Reason::Expired),
        ];
        for (change, reason) in cases {
            assert_eq!(judge(&signed(change, &chain().token.domain)), Err(reason));
        }
    }

    #[test]
    fn a_signature_over_another_token_domain_is_unknown() {
        let usdc = chain().token.address;
        for domain in [
            Token::new(8453, usdc, "USDC", "2").domain,
            Token::new(84532, Address::ZERO, "USDC", "2").domain,
            Token::new(84532, usdc, "USD Coin", "2").domain,
            Token::new(84532, usdc, "USDC", "1").domain,
        ] {
            assert_eq!(judge(&signed(|_| (), &domain)), Ok(Signer::Unknown));
        }
        let mut truncated = signed(|_| (), &chain().token.domain);
        truncated.authorization.signature.truncate(64);
        assert_eq!(judge(&truncated), Ok(Signer::Unknown));
    }

    #[test]
    fn a_payment_of_zero_is_refused() {
        let mut nothing = signed(|_| (), &chain().token.domain);
        nothing.authorization.signature.clear();
        nothing.authorization.nonce = [0; 32];
        nothing.authorization.value = [0; 32];
        assert_eq!(judge(&nothing), Err(Reason::ZeroCostNotAllowed));
    }
}
