//! Receipts: one for every charge, made with the charge, revised when it settles and when the work ends.
//!
//! A terminal receipt is signed (contract §22) and can be checked offline with the published key.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::signing::ReceiptSigner;
use crate::clock::Timestamp;
use crate::digest::{canonical_json, sha256};
use crate::ids::{AgentId, ReceiptId, RequestId};
use crate::money::Usdc;
use crate::store::db::Query;
use crate::store::{Db, Key, StoreError, Write};

/// Where the money is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptStatus {
    Pending,
    Settled,
    Failed,
}

/// How the work went.
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
    pub status: ReceiptStatus,
    pub execution_status: ExecutionStatus,
    /// Transaction hash, once settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settlement_tx: Option<String>,
    /// Group of receipts the caller named in `decisionContext.goalId`.
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
    /// The bytes that are signed: JSON without spaces in the order of contract §22.
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
            ("service_fee", json!("0")),
            ("status", json!(self.status)),
            ("execution_status", json!(self.execution_status)),
            ("settlement_tx", json!(self.settlement_tx)),
            ("created_at", json!(self.created_at.to_string())),
            ("settled_at", json!(self.settled_at.map(|at| at.to_string()))),
            ("revision", json!(self.revision)),
            ("metadata_digest", json!(metadata_digest)),
        ];
        // serde_json would sort the members of a map; the order is part of what is signed.
        let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", members.join(",")).into_bytes()
    }

    /// Signs the receipt as it stands.
    pub fn seal(&mut self, signer: &ReceiptSigner) {
        let bytes = self.signed_bytes();
        self.seal = Some(Seal {
            digest: const_hex::encode(sha256(&bytes)),
            signature: signer.sign(&bytes),
            key_id: signer.key_id().to_owned(),
        });
    }

    /// Neither money nor work is still open.
    pub fn is_terminal(&self) -> bool {
        self.status != ReceiptStatus::Pending && self.execution_status != ExecutionStatus::Pending
    }

    fn key(&self) -> Key {
        key(self.agent_id, &self.receipt_id)
    }
}

/// What the caller attached, as it is kept on the receipt: canonical JSON, or nothing.
pub fn metadata(attached: &serde_json::Map<String, Value>) -> Option<String> {
    (!attached.is_empty()).then(|| canonical_json(&Value::Object(attached.clone())))
}

fn key(agent: AgentId, receipt: &ReceiptId) -> Key {
    Key::new(super::agent_partition(agent), format!("RECEIPT#{receipt}"))
}

/// The write that makes a receipt, together with its charge.
pub fn create(db: &Db, receipt: &Receipt) -> Result<Write, StoreError> {
    Ok(Write::put(&db.tables.ledger, receipt.key(), receipt)?.only_if_new())
}

/// The write that replaces the revision before by this one.
pub fn revise(db: &Db, receipt: &Receipt) -> Result<Write, StoreError> {
    let before = receipt.revision.saturating_sub(1);
    Write::put(&db.tables.ledger, receipt.key(), receipt)?.only_if("#revision = :before").bind("before", before)
}

pub async fn load(db: &Db, agent: AgentId, receipt: &ReceiptId) -> Result<Option<Receipt>, StoreError> {
    db.get_latest(&db.tables.ledger, key(agent, receipt)).await
}

/// The receipts of an agent, oldest first.
pub async fn all(db: &Db, agent: AgentId) -> Result<Vec<Receipt>, StoreError> {
    db.query(Query::prefixed(&db.tables.ledger, &super::agent_partition(agent), "RECEIPT#", 1000)?).await
}

/// The newest receipts of an agent since a moment, newest first.
pub async fn since(db: &Db, agent: AgentId, from: Timestamp, limit: usize) -> Result<Vec<Receipt>, StoreError> {
    let millis = u64::try_from(from.millis()).unwrap_or_default();
    let first = format!("RECEIPT#rcpt_{}", ulid::Ulid::from_parts(millis, 0));
    let query = Query::between(&db.tables.ledger, &super::agent_partition(agent), &first, "RECEIPT#~", limit)?;
    db.query(query.newest_first()).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evm::Address;

    #[test]
    fn signed_bytes_have_the_order_and_forms_of_the_contract() {
        let job_id = RequestId::bought_with("quote", &[b"q"]);
        let created_at = Timestamp::from_millis(1_795_249_530_250);
        let receipt = Receipt {
            receipt_id: ReceiptId::of(job_id, created_at),
            agent_id: AgentId::of(Address::ZERO),
            job_id,
            category: "data".to_owned(),
            subcategory: "web_read".to_owned(),
            amount: Usdc::from_micro(2_000),
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
    }
}
