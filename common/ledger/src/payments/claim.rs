//! The claim: (chain, token, payer, nonce) belongs to one purchase, for ever.
//!
//! It is written in one transaction with the job, before anything else happens. A copy of the payment finds the claim:
//! with the same request it gets the stored answer (a replay), with another request it is refused. The claim is kept
//! longer than the authorization is valid, so an old payment can never count as new.

use std::time::Duration;

use base::clock::Timestamp;
use base::digest;
use base::ids::{AgentId, RequestId};
use evm::authorization::Authorization;
use evm::{Address, Word, hex0x};
use platform::config::ChainConfig;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use ring::hmac;
use serde::{Deserialize, Serialize};

/// An authorization that somebody else broadcast is honoured until this long after its expiry.
pub const HONOUR_FOR: Duration = Duration::from_secs(3600);
/// A claim is kept for at least this long after the authorization's expiry. Longer than [`HONOUR_FOR`].
const KEEP_AFTER_EXPIRY_SECS: u64 = 2 * 24 * 3600;

/// The stored claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub request_id: RequestId,
    /// The payer. The partition is the nonce's, and several payers may have chosen the same nonce.
    pub payer: Address,
    /// Digest of the signed message. Another message with the same nonce is another payment.
    #[serde(with = "serde_bytes")]
    pub message: Word,
    /// SHA-256 of the signature as sent: recognises the same bytes without asking a contract wallet.
    #[serde(with = "serde_bytes")]
    pub signature: Word,
    /// The purchase: SHA-256 of tool and canonical body.
    #[serde(with = "serde_bytes")]
    pub purchase: Word,
    pub claimed_at: Timestamp,
    /// The purchase failed and nothing was charged, so the payment may be claimed again while it is valid. The row is kept
    /// meanwhile, because the chain may still show that the payment was used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reopened: bool,
    /// Unix seconds after which the row may be deleted.
    pub expires: i64,
}

impl Claim {
    pub fn new(
        authorization: &Authorization,
        chain: &ChainConfig,
        purchase: Word,
        request_id: RequestId,
        now: Timestamp,
        keep_until: i64,
    ) -> Claim {
        let authorization_gone = authorization.valid_before_secs().saturating_add(KEEP_AFTER_EXPIRY_SECS);
        Claim {
            request_id,
            payer: authorization.from,
            message: authorization.digest(&chain.token.domain),
            signature: digest::sha256(&authorization.signature),
            purchase,
            claimed_at: now,
            reopened: false,
            expires: keep_until.max(i64::try_from(authorization_gone).unwrap_or(i64::MAX)),
        }
    }

    /// Whether this is the same signed message.
    pub fn is_same_payment(&self, authorization: &Authorization, chain: &ChainConfig) -> bool {
        self.message == authorization.digest(&chain.token.domain)
    }

    /// Whether the signature is the same, byte for byte.
    pub fn has_signature(&self, authorization: &Authorization) -> bool {
        self.signature == digest::sha256(&authorization.signature)
    }
}

/// The id of the job bought with a payment without a quote. It is derived with a secret key: settled payments are public,
/// and a job's id together with its buyer's address gives access to what a soul delivered.
pub fn request_id(authorization: &Authorization, chain: &ChainConfig, key: &hmac::Key) -> RequestId {
    let chain_id = chain.chain_id.to_be_bytes();
    let named = [&chain_id, chain.token.address.bytes().as_slice(), authorization.from.bytes(), &authorization.nonce];
    RequestId::bought_with("payment", &[&digest::hmac(key, &named.concat())])
}

fn partition(nonce: &Word) -> String {
    format!("PAYMENT#{}", hex0x(nonce))
}

fn key(authorization: &Authorization, chain: &ChainConfig) -> Key {
    let sort = format!("{}#{}#{}", chain.chain_id, chain.token.address.lower(), authorization.from.lower());
    Key::new(partition(&authorization.nonce), sort)
}

/// The write that claims. Refused if the payment is claimed already; the refusal then carries the existing claim.
pub fn put(db: &Db, claim: &Claim, authorization: &Authorization, chain: &ChainConfig) -> Result<Write, StoreError> {
    Write::put(&db.tables.jobs, key(authorization, chain), claim)?
        .only_if("attribute_not_exists(#pk) OR #reopened = :yes")
        .bind("yes", true)
}

/// The write that lets a payment be claimed again after its purchase failed.
pub fn reopen(
    db: &Db,
    authorization: &Authorization,
    chain: &ChainConfig,
    request_id: RequestId,
) -> Result<Write, StoreError> {
    Write::update(&db.tables.jobs, key(authorization, chain), "SET #reopened = :yes")
        .only_if("#request_id = :request_id")
        .bind("yes", true)?
        .bind("request_id", request_id)
}

pub async fn load(db: &Db, authorization: &Authorization, chain: &ChainConfig) -> Result<Option<Claim>, StoreError> {
    db.get_latest(&db.tables.jobs, key(authorization, chain)).await
}

/// The claims of a nonce, at most 25: more than one only if several payers chose it.
pub async fn of_nonce(db: &Db, nonce: &Word) -> Result<Vec<Claim>, StoreError> {
    db.query(Query::new(&db.tables.jobs, "#pk = :pk", 25).bind("pk", partition(nonce))?).await
}

impl Claim {
    pub fn agent(&self) -> AgentId {
        AgentId::of(self.payer)
    }
}
