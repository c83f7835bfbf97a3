//! Receipts: one for every charge, created with the charge, revised when it settles and when the work ends.
//!
//! A terminal receipt is signed and can be checked offline with the published key (docs/RECEIPTS.md).

use base::clock::Timestamp;
use base::digest::{canonical_json, sha256};
use base::ids::{AgentId, ReceiptId, RequestId, TokenId};
use base::money::Usdc;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::signing::ReceiptSigner;

/// State of the money.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptStatus {
    Pending,
    Settled,
    Failed,
}

/// State of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStatus {
    Pending,
    Completed,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    pub receipt_id: ReceiptId,
    pub agent_id: AgentId,
    pub job_id: RequestId,
    pub category: String,
    pub subcategory: String,
    /// micro-USDC
    pub amount: Usdc,
    /// The part paid with credits, in micro-USDC.
    #[serde(default)]
    pub credits: Usdc,
    /// The access token that paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_id: Option<TokenId>,
    /// The providers' charges for the work, in micro-USDC. Set when the work is done; `None` if we did it ourselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_cost: Option<Usdc>,
    /// The platform's fee on a sale for somebody else, in micro-USDC. Set with the charge; `None` if the whole amount is
    /// ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_fee: Option<Usdc>,
    /// The part kept when the price was refunded in part, in micro-USDC: what failed work had already used up, or what
    /// completed work used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Usdc>,
    /// Of a goal: what its calls cost, in micro-USDC. They have receipts of their own, which no sum counts twice. Not signed: they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_on: Option<Usdc>,
    /// The owner's rules under which the charge was made.
    #[serde(default)]
    pub judged: Judged,
    /// The quote that was redeemed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<Quoted>,
    pub status: ReceiptStatus,
    pub execution_status: ExecutionStatus,
    /// Transaction hash, once settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settlement_tx: Option<String>,
    /// Group of receipts, from the caller's `decisionContext.goalId` or `goal_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal_id: Option<String>,
    /// Canonical JSON of what the caller attached: memo, decisionContext, valueTag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
    pub created_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<Timestamp>,
    pub revision: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<Seal>,
}

/// The owner's rules as applied to a charge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// Revision of the account's rules.
    pub rules: u32,
    /// There was an action policy and it allowed the call.
    #[serde(default)]
    pub by_policy: bool,
    /// The approval that released the call, if the policy required one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
}

/// The part of a quote that is kept on the receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quoted {
    /// The quote's random part, in hex. The job's id is derived from it.
    pub id: String,
    pub expires_at: Timestamp,
}

/// The signature over a terminal receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// SHA-256 hex of the signed bytes.
    pub digest: String,
    /// base64url
    pub signature: String,
    pub key_id: String,
}

impl Receipt {
    /// The signed bytes: JSON without spaces, members in the order of docs/RECEIPTS.md. `kept_usdc` is appended only if
    /// something was kept.
    pub fn signed_bytes(&self) -> Vec<u8> {
        let metadata_digest = self.metadata.as_ref().map(|metadata| const_hex::encode(sha256(metadata.as_bytes())));
        let members: [(&str, Value); 16] = [
            ("receipt_id", json!(self.receipt_id)),
            ("agent_id", json!(self.agent_id)),
            ("soul_agent_id", Value::Null),
            ("job_id", json!(self.job_id)),
            ("goal_id", json!(self.goal_id)),
            ("category", json!(self.category)),
            ("subcategory", json!(self.subcategory)),
            ("amount_usdc", json!(self.amount.to_string())),
            ("service_fee", json!(self.service_fee.map_or("0".to_owned(), |fee| fee.to_string()))),
            ("status", json!(self.status)),
            ("execution_status", json!(self.execution_status)),
            ("settlement_tx", json!(self.settlement_tx)),
            ("created_at", json!(self.created_at.to_string())),
            ("settled_at", json!(self.settled_at.map(|at| at.to_string()))),
            ("revision", json!(self.revision)),
            ("metadata_digest", json!(metadata_digest)),
        ];
        // serde_json would sort the members of a map; their order is part of what is signed.
        let kept = self.kept.map(|kept| ("kept_usdc", json!(kept.to_string())));
        let members: Vec<String> =
            members.iter().chain(&kept).map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", members.join(",")).into_bytes()
    }

    /// Signs the receipt in its current state.
    pub fn seal(&mut self, signer: &ReceiptSigner) {
        let bytes = self.signed_bytes();
        self.seal = Some(Seal {
            digest: const_hex::encode(sha256(&bytes)),
            signature: signer.sign(&bytes),
            key_id: signer.key_id().to_owned(),
        });
    }

    /// Whether both money and work have ended.
    pub fn is_terminal(&self) -> bool {
        self.status != ReceiptStatus::Pending && self.execution_status != ExecutionStatus::Pending
    }

    fn key(&self) -> Key {
        key(self.agent_id, &self.receipt_id)
    }
}

/// The caller's metadata as canonical JSON, or `None` if it is empty.
pub fn metadata(attached: &serde_json::Map<String, Value>) -> Option<String> {
    (!attached.is_empty()).then(|| canonical_json(&Value::Object(attached.clone())))
}

fn key(agent: AgentId, receipt: &ReceiptId) -> Key {
    Key::new(super::agent_partition(agent), format!("RECEIPT#{receipt}"))
}

/// The write that creates a receipt, together with its charge.
pub fn create(db: &Db, receipt: &Receipt) -> Result<Write, StoreError> {
    Ok(Write::put(&db.tables.ledger, receipt.key(), receipt)?.only_if_new())
}

/// The write that replaces the previous revision. Refused if the stored revision is another.
pub fn revise(db: &Db, receipt: &Receipt) -> Result<Write, StoreError> {
    let before = receipt.revision.saturating_sub(1);
    Write::put(&db.tables.ledger, receipt.key(), receipt)?.only_if("#revision = :before").bind("before", before)
}

pub async fn load(db: &Db, agent: AgentId, receipt: &ReceiptId) -> Result<Option<Receipt>, StoreError> {
    db.get_latest(&db.tables.ledger, key(agent, receipt)).await
}

/// The first 1,000 receipts of an agent, oldest first.
pub async fn all(db: &Db, agent: AgentId) -> Result<Vec<Receipt>, StoreError> {
    db.query(Query::prefixed(&db.tables.ledger, &super::agent_partition(agent), "RECEIPT#", 1000)?).await
}

/// The receipts charged between two times, both included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

impl Span {
    /// The first and last sort key with this prefix. Receipt ids begin with the time of the charge, so only the span is
    /// read.
    pub(super) fn keys(&self, prefix: &str) -> (String, String) {
        let since = self.since.map(ReceiptId::prefix_at).unwrap_or_default();
        let until = self.until.map(ReceiptId::prefix_at).unwrap_or_default();
        // `~` sorts after every character of an id.
        (format!("{prefix}{since}"), format!("{prefix}{until}~"))
    }
}

/// The order in which receipts are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    OldestFirst,
    NewestFirst,
}

/// At most `limit` receipts of a span, after the receipt `after`. `T` holds the members of a receipt that the reader needs.
pub async fn within<T: DeserializeOwned>(
    db: &Db,
    agent: AgentId,
    span: Span,
    order: Order,
    after: Option<&ReceiptId>,
    limit: usize,
) -> Result<Vec<T>, StoreError> {
    let (from, to) = span.keys("RECEIPT#");
    let partition = super::agent_partition(agent);
    let query = Query::between(&db.tables.ledger, &partition, &from, &to, limit)?.latest();
    let query = query.after(after.map(|receipt| key(agent, receipt)));
    db.query(if order == Order::NewestFirst { query.newest_first() } else { query }).await
}

#[cfg(test)]
mod tests {
    use evm::Address;

    use super::*;

    #[test]
    fn signed_bytes_have_the_documented_order_and_format() {
        let job_id = RequestId::bought_with("quote", &[b"q"]);
        let created_at = Timestamp::from_millis(1_795_249_530_250);
        let receipt = Receipt {
            receipt_id: ReceiptId::of(job_id, created_at),
            agent_id: AgentId::of(Address::ZERO),
            job_id,
            category: "data".to_owned(),
            subcategory: "web_read".to_owned(),
            amount: Usdc::from_micro(2_000),
            credits: Usdc::ZERO,
            token_id: None,
            provider_cost: None,
            service_fee: None,
            kept: None,
            passed_on: None,
            judged: Judged::default(),
            quote: None,
            status: ReceiptStatus::Settled,
            execution_status: ExecutionStatus::Completed,
            settlement_tx: Some("0xabc".to_owned()),
            goal_id: None,
            metadata: metadata(json!({"memo": "hi", "b": 1}).as_object().unwrap()),
            created_at,
            settled_at: Some(created_at),
            revision: 3,
            seal: None,
        };
        let expected = format!(
            "{{\"receipt_id\":\"{}\",\"agent_id\":\"{}\",\"soul_agent_id\":null,\"job_id\":\"{}\",\"goal_id\":null,\
             \"category\":\"data\",\"subcategory\":\"web_read\",\"amount_usdc\":\"0.002000\",\"service_fee\":\"0\",\
             \"status\":\"settled\",\"execution_status\":\"completed\",\"settlement_tx\":\"0xabc\",\
             \"created_at\":\"2026-11-21T08:25:30.250Z\",\"settled_at\":\"2026-11-21T08:25:30.250Z\",\"revision\":3,\
             \"metadata_digest\":\"{}\"}}",
            receipt.receipt_id,
            receipt.agent_id,
            receipt.job_id,
            const_hex::encode(sha256(br#"{"b":1,"memo":"hi"}"#)),
        );
        assert_eq!(String::from_utf8(receipt.signed_bytes()).unwrap(), expected);
        let with_fee = Receipt { service_fee: Some(Usdc::from_micro(400)), ..receipt.clone() };
        let expected = expected.replace("\"service_fee\":\"0\"", "\"service_fee\":\"0.000400\"");
        assert_eq!(String::from_utf8(with_fee.signed_bytes()).unwrap(), expected);
        let in_part = Receipt { kept: Some(Usdc::from_micro(50)), ..receipt.clone() };
        let signed = String::from_utf8(in_part.signed_bytes()).unwrap();
        assert!(signed.ends_with(",\"kept_usdc\":\"0.000050\"}") && !signed.contains("kept_usdc\":null"), "{signed}");
        // A receipt stored before this member existed has the same signed bytes.
        let mut stored = json!(with_fee);
        stored.as_object_mut().unwrap().remove("service_fee");
        let stored: Receipt = serde_json::from_value(stored).unwrap();
        assert_eq!(stored.signed_bytes(), receipt.signed_bytes());
    }
}
