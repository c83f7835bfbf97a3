//! A wallet that signs what a real client signs.

use base::clock::{Clock, Timestamp};
use base::digest;
use base::encoding::base64_standard;
use base::money::Usdc;
use evm::authorization::Authorization;
use evm::signature::PrivateKey;
use evm::{Address, Word, eip712, hex0x, keccak256, word_from_u64, word_to_u64};
use platform::config::Token;
use serde_json::{Value, json};

pub struct Payer {
    pub key: PrivateKey,
}

/// The terms of a 402.
pub struct Terms<'a> {
    pub token: &'a Token,
    pub chain_id: u64,
    pub pay_to: Address,
    pub amount: Usdc,
    /// The quote to redeem, if any.
    pub quote_id: Option<&'a str>,
}

impl Payer {
    pub fn random() -> Payer {
        let key = std::iter::repeat_with(|| PrivateKey::from_bytes(&digest::random()));
        // Nearly every 32 bytes are a valid key.
        Payer { key: key.flatten().next().expect("randomness ends in a key") }
    }

    pub fn authorize(&self, terms: &Terms<'_>, now: Timestamp) -> Authorization {
        let mut authorization = Authorization {
            from: self.key.address(),
            to: terms.pay_to,
            value: word_from_u64(terms.amount.micro()),
            valid_after: [0; 32],
            valid_before: word_from_u64(now.secs().unsigned_abs() + 300),
            nonce: digest::random(),
            signature: Vec::new(),
        };
        authorization.signature = self.key.sign(&authorization.digest(&terms.token.domain)).to_bytes().to_vec();
        authorization
    }

    /// The value of an agent proof header that allows reading.
    pub fn proof(&self, service_name: &str) -> String {
        let issued_at = Clock::system().now().secs();
        let nonce: Word = digest::random();
        let domain = eip712::named_domain(&format!("{service_name} Agent Auth"), "1");
        let message = eip712::hash_struct([
            keccak256(b"AgentReadAuth(address agent,string scope,uint256 issuedAt,bytes32 nonce)"),
            self.key.address().word(),
            keccak256(b"read"),
            word_from_u64(issued_at.unsigned_abs()),
            nonce,
        ]);
        let signature = self.key.sign(&eip712::digest(&domain, &message)).to_bytes();
        base64_of(&json!({
            "agent": self.key.address().to_string(), "scope": "read", "issuedAt": issued_at,
            "nonce": hex0x(&nonce), "signature": hex0x(&signature),
        }))
    }
}

/// The `PAYMENT-SIGNATURE` header a stock x402 v2 client sends: the requirement it accepted, echoed whole, and the
/// signed authorization.
pub fn payment_header(authorization: &Authorization, terms: &Terms<'_>) -> String {
    let mut extra = json!({"name": terms.token.name, "version": terms.token.version});
    if let Some(quote_id) = terms.quote_id {
        extra["quoteId"] = json!(quote_id);
    }
    let number = |word: &Word| word_to_u64(word).unwrap_or_default().to_string();
    base64_of(&json!({
        "x402Version": 2,
        "resource": {
            "url": "https://api.example.com/v1/tools/lookup/vehicle-identification",
            "description": "Decodes a 17-character vehicle identification number",
            "mimeType": "application/json",
        },
        "accepted": {
            "scheme": "exact",
            "network": format!("eip155:{}", terms.chain_id),
            "amount": terms.amount.micro().to_string(),
            "asset": terms.token.address.to_string(),
            "payTo": terms.pay_to.to_string(),
            "maxTimeoutSeconds": 300,
            "extra": extra,
        },
        "payload": {
            "signature": hex0x(&authorization.signature),
            "authorization": {
                "from": authorization.from.to_string(),
                "to": authorization.to.to_string(),
                "value": number(&authorization.value),
                "validAfter": number(&authorization.valid_after),
                "validBefore": number(&authorization.valid_before),
                "nonce": hex0x(&authorization.nonce),
            },
        },
    }))
}

fn base64_of(value: &Value) -> String {
    base64_standard(value.to_string().as_bytes())
}
