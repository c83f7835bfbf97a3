//! The agent proof: a signed, fresh, single-use statement "I hold this wallet and want to read (or write)".
//!
//! It is sent in the header `x-agent-proof`: base64 of JSON `{agent, scope, issuedAt, nonce, signature}`, signed as EIP-712
//! typed data (see [`Proof::digest`]). This file is pure: header, time and service name in, verdict out. [`super::nonce`]
//! makes a nonce single-use.

use std::fmt;

use base::clock::Timestamp;
use base::encoding::base64_any;
use evm::signature::RecoverableSignature;
use evm::{Address, Word, eip712, keccak256, parse_hex0x, parse_word, word_from_u64};
use serde::Deserialize;

use super::AgentName;

/// A proof is valid for this long after it was issued.
pub const FRESH_SECS: i64 = 300;
/// A caller's clock may be this far ahead of ours.
pub const SKEW_SECS: i64 = 60;
/// A later time than this (the year 5138) was given in milliseconds, which is what many languages' clocks return.
const LATEST_SECS: i64 = 100_000_000_000;
/// Larger headers are malformed.
const MAX_HEADER_BYTES: usize = 8 * 1024;
/// Room for the signatures of contract wallets (EIP-1271).
const MAX_SIGNATURE_BYTES: usize = 2 * 1024;

/// The requests a proof is valid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Read,
    Write,
    /// For durable submissions. In a paid call it counts as much as `Write`.
    Submit,
}

impl Scope {
    fn parse(text: &str) -> Option<Scope> {
        match text {
            "read" => Some(Scope::Read),
            "write" => Some(Scope::Write),
            "submit" => Some(Scope::Submit),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Submit => "submit",
        }
    }

    /// `Write` and `Submit` also cover `Read`, but not each other.
    pub fn covers(self, needed: Scope) -> bool {
        match needed {
            Scope::Read => true,
            Scope::Write => matches!(self, Scope::Write),
            Scope::Submit => matches!(self, Scope::Submit),
        }
    }
}

/// Why a proof is refused. The words are the response's `reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofError {
    Malformed,
    Expired,
    /// `issuedAt` is in milliseconds. Its reason is that of an expired proof, because clients know that one and sign again.
    Milliseconds,
    AlreadyUsed,
    Invalid,
    WrongScope,
    AgentMismatch,
}

impl ProofError {
    pub fn reason(self) -> &'static str {
        match self {
            ProofError::Malformed => "malformed",
            ProofError::Expired | ProofError::Milliseconds => "expired",
            ProofError::AlreadyUsed => "already_used",
            ProofError::Invalid => "invalid",
            ProofError::WrongScope => "wrong_scope",
            ProofError::AgentMismatch => "agent_mismatch",
        }
    }
}

/// The message for the caller.
impl fmt::Display for ProofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProofError::Malformed => "x-agent-proof must be base64 of JSON {agent, scope, issuedAt, nonce, signature}",
            ProofError::Expired => "the proof is older than five minutes or issued in the future; sign a new one",
            ProofError::Milliseconds => {
                "issuedAt is in milliseconds; it has to be in Unix seconds. Sign a new proof with the time in seconds"
            }
            ProofError::AlreadyUsed => "the proof's nonce was used before; sign a new one with a fresh nonce",
            ProofError::Invalid => "the signature was not made by the wallet the proof names",
            ProofError::WrongScope => "the proof's scope does not allow this request",
            ProofError::AgentMismatch => "X-Agent-ID and the proof name different agents",
        })
    }
}

/// A proof as it was sent. Only its form has been checked.
#[derive(Clone, Debug)]
pub struct Proof {
    pub agent: Address,
    pub scope: Scope,
    pub issued_at: Timestamp,
    pub nonce: Word,
    pub signature: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire<'a> {
    #[serde(borrow)]
    agent: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    scope: std::borrow::Cow<'a, str>,
    issued_at: u64,
    #[serde(borrow)]
    nonce: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    signature: std::borrow::Cow<'a, str>,
}

impl Proof {
    /// Reads the header's value.
    pub fn parse(header: &str) -> Result<Proof, ProofError> {
        if header.len() > MAX_HEADER_BYTES {
            return Err(ProofError::Malformed);
        }
        let json = base64_any(header.trim()).ok_or(ProofError::Malformed)?;
        let wire: Wire<'_> = serde_json::from_slice(&json).map_err(|_| ProofError::Malformed)?;
        let issued_at = i64::try_from(wire.issued_at).map_err(|_| ProofError::Malformed)?;
        Ok(Proof {
            agent: wire.agent.parse().map_err(|_| ProofError::Malformed)?,
            scope: Scope::parse(&wire.scope).ok_or(ProofError::Malformed)?,
            issued_at: Timestamp::from_secs(issued_at),
            nonce: parse_word(&wire.nonce).ok_or(ProofError::Malformed)?,
            signature: parse_hex0x(&wire.signature)
                .filter(|bytes| bytes.len() <= MAX_SIGNATURE_BYTES)
                .ok_or(ProofError::Malformed)?,
        })
    }

    /// Checks everything but the signature: scope, age, and that it is for the agent the request names.
    pub fn check(&self, now: Timestamp, needed: Scope, named: Option<AgentName>) -> Result<(), ProofError> {
        if !self.scope.covers(needed) {
            return Err(ProofError::WrongScope);
        }
        if named.is_some_and(|named| named.agent() != base::ids::AgentId::of(self.agent)) {
            return Err(ProofError::AgentMismatch);
        }
        if self.issued_at.secs() > LATEST_SECS {
            return Err(ProofError::Milliseconds);
        }
        let age = now.secs().saturating_sub(self.issued_at.secs());
        if !(-SKEW_SECS..=FRESH_SECS).contains(&age) {
            return Err(ProofError::Expired);
        }
        Ok(())
    }

    /// The EIP-712 digest that the wallet signed.
    pub fn digest(&self, service_name: &str) -> Word {
        let domain = eip712::named_domain(&format!("{service_name} Agent Auth"), "1");
        let message = eip712::hash_struct([
            keccak256(b"AgentReadAuth(address agent,string scope,uint256 issuedAt,bytes32 nonce)"),
            self.agent.word(),
            keccak256(self.scope.as_str().as_bytes()),
            word_from_u64(u64::try_from(self.issued_at.secs()).unwrap_or_default()),
            self.nonce,
        ]);
        eip712::digest(&domain, &message)
    }

    /// Whether the wallet's key made the signature. A contract wallet has no key: for it this is false, and the contract
    /// must be asked (EIP-1271).
    pub fn signed_by_key(&self, service_name: &str) -> bool {
        RecoverableSignature::parse(&self.signature).and_then(|signature| signature.recover(&self.digest(service_name)))
            == Ok(self.agent)
    }
}

#[cfg(test)]
mod tests {
    use base::encoding::{base64_standard, base64_url};
    use evm::hex0x;
    use evm::signature::PrivateKey;
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_795_000_000);

    fn signed(scope: Scope, issued_at: i64, service: &str) -> serde_json::Value {
        let key = PrivateKey::from_bytes(&[7; 32]).unwrap();
        let mut proof = Proof {
            agent: key.address(),
            scope,
            issued_at: Timestamp::from_secs(issued_at),
            nonce: [9; 32],
            signature: Vec::new(),
        };
        proof.signature = key.sign(&proof.digest(service)).to_bytes().to_vec();
        json!({
            "agent": proof.agent.to_string(), "scope": scope.as_str(), "issuedAt": issued_at,
            "nonce": hex0x(&proof.nonce), "signature": hex0x(&proof.signature),
        })
    }

    fn header(proof: &serde_json::Value) -> String {
        base64_standard(proof.to_string().as_bytes())
    }

    #[test]
    fn a_valid_proof_is_read_in_both_base64_alphabets() {
        let proof = signed(Scope::Read, NOW.secs(), "Agora");
        for text in [header(&proof), base64_url(proof.to_string().as_bytes())] {
            let proof = Proof::parse(&text).unwrap();
            assert_eq!(proof.check(NOW, Scope::Read, Some(AgentName::Wallet(proof.agent))), Ok(()));
            assert!(proof.signed_by_key("Agora"));
            assert!(!proof.signed_by_key("Other"));
        }
    }

    #[test]
    fn age_scope_and_agent_are_checked() {
        let at = |issued: i64| Proof::parse(&header(&signed(Scope::Read, issued, "Agora"))).unwrap();
        assert_eq!(at(NOW.secs() - 300).check(NOW, Scope::Read, None), Ok(()));
        assert_eq!(at(NOW.secs() - 301).check(NOW, Scope::Read, None), Err(ProofError::Expired));
        assert_eq!(at(NOW.secs() + 60).check(NOW, Scope::Read, None), Ok(()));
        assert_eq!(at(NOW.secs() + 61).check(NOW, Scope::Read, None), Err(ProofError::Expired));
        assert_eq!(at(NOW.secs() * 1_000).check(NOW, Scope::Read, None), Err(ProofError::Milliseconds));
        assert_eq!(at(NOW.secs() + 1_000_000_000).check(NOW, Scope::Read, None), Err(ProofError::Expired));
        assert_eq!(at(NOW.secs()).check(NOW, Scope::Write, None), Err(ProofError::WrongScope));
        let other = Some(AgentName::Wallet(Address::ZERO));
        assert_eq!(at(NOW.secs()).check(NOW, Scope::Read, other), Err(ProofError::AgentMismatch));
        assert!(Scope::Write.covers(Scope::Read) && !Scope::Read.covers(Scope::Write));
    }

    #[test]
    fn malformed_headers_do_not_panic() {
        let good = signed(Scope::Read, NOW.secs(), "Agora");
        let without = |name: &str| {
            let mut proof = good.clone();
            proof.as_object_mut().unwrap().remove(name);
            header(&proof)
        };
        let with = |name: &str, value: serde_json::Value| {
            let mut proof = good.clone();
            proof[name] = value;
            header(&proof)
        };
        let mut cases =
            vec!["".to_owned(), "!!!".to_owned(), header(&json!([])), header(&json!(null)), "A".repeat(9000)];
        cases.extend(["agent", "scope", "issuedAt", "nonce", "signature"].map(without));
        cases.extend([
            with("issuedAt", json!(-1)),
            with("issuedAt", json!("1")),
            with("issuedAt", json!(1.5)),
            with("issuedAt", json!(u64::MAX)),
            with("nonce", json!("0x12")),
            with("scope", json!("admin")),
            with("agent", json!("me")),
            with("signature", json!("zz")),
        ]);
        for case in cases {
            assert!(matches!(Proof::parse(&case), Err(ProofError::Malformed)), "{case}");
        }
    }
}
