//! A receipt as answers show it. A new field of receipts is added here only.

use base::digest::sha256;
use base::money::Usdc;
use ledger::cost::Cost;
use ledger::receipt::{ExecutionStatus, Receipt, ReceiptStatus};
use ledger::value::Reported;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tools::spec::TOP_UP;

/// A receipt in an answer. Absent values are null.
#[derive(Clone, Debug, Serialize)]
pub struct ReceiptView {
    pub id: String,
    pub receipt_id: String,
    pub agent_id: String,
    pub soul_agent_id: Option<String>,
    pub category: String,
    pub subcategory: String,
    pub amount_usdc: String,
    pub service_fee: Option<String>,
    pub provider_cost: Option<String>,
    pub status: ReceiptStatus,
    pub execution_status: ExecutionStatus,
    pub goal_id: Option<String>,
    pub job_id: Option<String>,
    pub settlement_tx: Option<String>,
    /// The stored bytes: their digest is signed, and parsing a number and printing it again may change it.
    pub metadata: Option<Box<RawValue>>,
    pub memo: Option<String>,
    #[serde(rename = "decisionContext")]
    pub decision_context: Option<Value>,
    pub value_tag: Option<Value>,
    pub revision: u32,
    pub digest: Option<String>,
    pub signature: Option<String>,
    pub key_id: Option<String>,
    pub alg: Option<&'static str>,
    pub created_at: String,
    pub settled_at: Option<String>,
    /// What it adds to the spending ([`Cost::spent`]).
    pub spent_usdc: String,
    /// Paid back as credits, because the work failed or used less than its price.
    pub credited_usdc: Option<String>,
    /// The rest of the price, if a part was paid back.
    pub kept_usdc: Option<String>,
    /// The part paid with credits.
    pub credits_used_usdc: String,
    /// The access token that paid.
    pub access_token_id: Option<String>,
}

/// A row of the audit: everything the signature covers, and the signature. The member `signature` is the settlement's
/// transaction; the receipt's own signature is `receipt_signature`.
#[derive(Clone, Debug, Serialize, Deserialize)]
// A member that no signature covers must not look like part of a row.
#[serde(deny_unknown_fields)]
pub struct AuditRow {
    pub receipt_id: String,
    pub agent_id: String,
    pub soul_agent_id: Option<String>,
    pub receipt_revision: Option<u32>,
    pub category: String,
    pub subcategory: String,
    pub amount_usdc: String,
    pub service_fee: Option<String>,
    pub status: ReceiptStatus,
    pub signature: Option<String>,
    pub execution_status: ExecutionStatus,
    #[serde(rename = "goalId")]
    pub goal_id: Option<String>,
    pub job_id: Option<String>,
    pub metadata: Option<Box<RawValue>>,
    pub created_at: String,
    pub settled_at: Option<String>,
    pub receipt_signature: Option<String>,
    pub receipt_digest: Option<String>,
    pub receipt_key_id: Option<String>,
    pub receipt_alg: Option<String>,
    pub receipt_signed: bool,
    /// The part of the price that was kept, if a part was paid back and this is not zero. If present, it is signed too.
    pub kept_usdc: Option<String>,
}

pub const ALGORITHM: &str = "Ed25519";

/// A receipt for its owner, with the value reported for it.
pub fn receipt(receipt: &Receipt, tag: Option<&Reported>) -> ReceiptView {
    let row = audit_row(receipt);
    let (attached, cost) = (attached(receipt), cost(receipt));
    ReceiptView {
        id: row.receipt_id.clone(),
        receipt_id: row.receipt_id,
        agent_id: row.agent_id,
        soul_agent_id: row.soul_agent_id,
        category: row.category,
        subcategory: row.subcategory,
        amount_usdc: row.amount_usdc,
        service_fee: row.service_fee,
        provider_cost: receipt.provider_cost.map(|cost| cost.to_string()),
        status: row.status,
        execution_status: row.execution_status,
        goal_id: row.goal_id,
        job_id: row.job_id,
        settlement_tx: row.signature,
        metadata: row.metadata,
        memo: attached.get("memo").and_then(Value::as_str).map(str::to_owned),
        decision_context: attached.get("decisionContext").cloned(),
        value_tag: tag.map(value_tag),
        revision: receipt.revision,
        digest: row.receipt_digest,
        signature: row.receipt_signature,
        key_id: row.receipt_key_id,
        alg: receipt.seal.is_some().then_some(ALGORITHM),
        created_at: row.created_at,
        settled_at: row.settled_at,
        spent_usdc: cost.spent().to_string(),
        credited_usdc: cost.credited().map(|credited| credited.to_string()),
        kept_usdc: cost.credited().map(|_| receipt.kept.unwrap_or_default().to_string()),
        credits_used_usdc: receipt.credits.to_string(),
        access_token_id: receipt.token_id.map(|token| token.to_string()),
    }
}

/// What a receipt's purchase costs.
pub fn cost(receipt: &Receipt) -> Cost {
    Cost {
        charged: receipt.amount,
        credits: receipt.credits,
        kept: receipt.kept,
        money: receipt.status,
        work: receipt.execution_status,
        buys_credits: receipt.subcategory == TOP_UP.name,
    }
}

/// A receipt as a row of the audit.
pub fn audit_row(receipt: &Receipt) -> AuditRow {
    let seal = receipt.seal.as_ref();
    AuditRow {
        receipt_id: receipt.receipt_id.to_string(),
        agent_id: receipt.agent_id.to_string(),
        soul_agent_id: None,
        receipt_revision: Some(receipt.revision),
        category: receipt.category.clone(),
        subcategory: receipt.subcategory.clone(),
        amount_usdc: receipt.amount.to_string(),
        service_fee: receipt.service_fee.map(|fee| fee.to_string()),
        status: receipt.status,
        signature: receipt.settlement_tx.clone(),
        execution_status: receipt.execution_status,
        goal_id: receipt.goal_id.clone(),
        job_id: Some(receipt.job_id.to_string()),
        metadata: receipt.metadata.clone().and_then(|metadata| RawValue::from_string(metadata).ok()),
        created_at: receipt.created_at.to_string(),
        settled_at: receipt.settled_at.map(|at| at.to_string()),
        receipt_signature: seal.map(|seal| seal.signature.clone()),
        receipt_digest: seal.map(|seal| seal.digest.clone()),
        receipt_key_id: seal.map(|seal| seal.key_id.clone()),
        receipt_alg: seal.map(|_| ALGORITHM.to_owned()),
        receipt_signed: seal.is_some(),
        kept_usdc: receipt.kept.map(|kept| kept.to_string()),
    }
}

impl AuditRow {
    /// The bytes that the signature covers, computed from the row alone. The order of the members is fixed.
    pub fn signed_bytes(&self) -> Vec<u8> {
        let digest = self.metadata.as_ref().map(|metadata| const_hex::encode(sha256(metadata.get().as_bytes())));
        let members: [(&str, Value); 16] = [
            ("receipt_id", json!(self.receipt_id)),
            ("agent_id", json!(self.agent_id)),
            ("soul_agent_id", json!(self.soul_agent_id)),
            ("job_id", json!(self.job_id)),
            ("goal_id", json!(self.goal_id)),
            ("category", json!(self.category)),
            ("subcategory", json!(self.subcategory)),
            ("amount_usdc", json!(self.amount_usdc)),
            ("service_fee", json!(self.service_fee.as_deref().unwrap_or("0"))),
            ("status", json!(self.status)),
            ("execution_status", json!(self.execution_status)),
            ("settlement_tx", json!(self.signature)),
            ("created_at", json!(self.created_at)),
            ("settled_at", json!(self.settled_at)),
            ("revision", json!(self.receipt_revision.unwrap_or(1))),
            ("metadata_digest", json!(digest)),
        ];
        let kept = self.kept_usdc.as_ref().map(|kept| ("kept_usdc", json!(kept)));
        let members: Vec<String> =
            members.iter().chain(&kept).map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", members.join(",")).into_bytes()
    }

    /// Whether neither money nor work is open, so that the row must be signed.
    pub fn is_terminal(&self) -> bool {
        self.status != ReceiptStatus::Pending && self.execution_status != ExecutionStatus::Pending
    }
}

/// The metadata that the caller attached to the call.
pub fn attached(receipt: &Receipt) -> Map<String, Value> {
    receipt.metadata.as_deref().and_then(|metadata| serde_json::from_str(metadata).ok()).unwrap_or_default()
}

/// `{type, amount, label, status}`
pub fn value_tag(tag: &Reported) -> Value {
    json!({"type": tag.kind, "amount": tag.amount.map(number), "label": tag.label, "status": tag.status})
}

/// An outcome of a goal.
pub fn outcome(outcome: &Reported) -> Value {
    json!({
        "outcome_id": outcome.id,
        "goal_id": outcome.goal_id,
        "type": outcome.kind,
        "amount": outcome.amount.map(number),
        "label": outcome.label,
        "status": outcome.status,
        "created_at": outcome.created_at.to_string(),
        "updated_at": outcome.updated_at.to_string(),
        "confirmed_at": outcome.confirmed_at.map(|at| at.to_string()),
    })
}

/// An amount as a JSON number, the way it was sent. For display only; exact up to a million dollars.
fn number(amount: Usdc) -> f64 {
    amount.micro() as f64 / 1e6
}
