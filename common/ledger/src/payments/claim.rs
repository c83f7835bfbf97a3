//! The claim: (chain, token, payer, nonce) belongs to one purchase, forever.
//!
//! It is put with the job in one transaction, before anything else happens. Copies of the payment find it there: with
//! the same request they are led to the stored answer, with another they are refused. It outlives the authorization's
//! own validity, so that an old payment can never be new again.

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

/// How long after its expiry an authorization that somebody else broadcast is still honoured.
pub const HONOUR_FOR: Duration = Duration::from_secs(3600);
/// How long after its expiry an authorization's claim is kept, at least. Longer than it is honoured.
const KEEP_AFTER_EXPIRY_SECS: u64 = 2 * 24 * 3600;

/// The stored claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub request_id: RequestId,
    /// Who paid; the partition holds every payer that happened to choose this nonce.
    pub payer: Address,
    /// Digest of the signed message: another message with the same nonce is another payment.
    #[serde(with = "serde_bytes")]
    pub message: Word,
    /// SHA-256 of the signature as sent, so that the same bytes are known again without asking a contract wallet.
    #[serde(with = "serde_bytes")]
    pub signature: Word,
    /// What was bought: SHA-256 of tool and canonical body.
    #[serde(with = "serde_bytes")]
    pub purchase: Word,
    pub claimed_at: Timestamp,
    /// What was to be bought with it came to nothing, and nothing was charged: while it is valid, the payment may be
    /// claimed anew. (Until then it is kept, because the chain may still show that it was used.)
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reopened: bool,
    /// Unix seconds after which the row may go.
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

    /// Whether this is the very same signed payment.
    pub fn is_same_payment(&self, authorization: &Authorization, chain: &ChainConfig) -> bool {
        self.message == authorization.digest(&chain.token.domain)
    }

    /// Whether the signature, too, is the same to the byte.
    pub fn has_signature(&self, authorization: &Authorization) -> bool {
        self.signature == digest::sha256(&authorization.signature)
    }
}

/// The job bought with a payment that names no quote. It follows from a key, too: a settled payment is on the chain for
/// everybody, and who knows a job's id and its buyer's address can read what a soul delivered.
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

/// The write that claims. Refused if the payment is claimed already; the refusal then holds the claim.
pub fn put(db: &Db, claim: &Claim, authorization: &Authorization, chain: &ChainConfig) -> Result<Write, StoreError> {
    Write::put(&db.tables.jobs, key(authorization, chain), claim)?
        .only_if("attribute_not_exists(#pk) OR #reopened = :yes")
        .bind("yes", true)
}

/// The write that lets a payment be claimed anew after its purchase came to nothing.
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

/// Every claim of a nonce: one, unless payers chose the same.
pub async fn of_nonce(db: &Db, nonce: &Word) -> Result<Vec<Claim>, StoreError> {
    db.query(Query::new(&db.tables.jobs, "#pk = :pk", 25).bind("pk", partition(nonce))?).await
}

impl Claim {
    pub fn agent(&self) -> AgentId {
        AgentId::of(self.payer)
    }
}
