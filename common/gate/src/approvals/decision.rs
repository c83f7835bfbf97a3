//! The signed record of a decision: who decided what, when and how. Anybody can verify it offline with the receipts' public
//! keys.
//!
//! It is signed like a receipt, with the same key: over JSON without spaces, with the members in a fixed order.

use base::clock::Timestamp;
use base::digest::{sha256, sha256_parts};
use ledger::receipt::Seal;
use ledger::signing::ReceiptSigner;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::approval::{Approval, ulid_text};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Approved,
    Denied,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionReceipt {
    /// `drcpt_<ulid>`
    pub decision_receipt_id: String,
    pub decision: Decision,
    /// The exact bytes that were signed.
    pub payload: String,
    pub seal: Seal,
}

impl DecisionReceipt {
    /// Records and signs a decision made by link.
    pub fn sign(
        approval: &Approval,
        decision: Decision,
        note: Option<&str>,
        now: Timestamp,
        signer: &ReceiptSigner,
    ) -> DecisionReceipt {
        let decision_receipt_id = ulid_text("drcpt_", now);
        let members: [(&str, Value); 15] = [
            ("decision_receipt_id", json!(decision_receipt_id)),
            ("approval_id", json!(approval.approval_id)),
            ("agent_id", json!(approval.agent_id)),
            ("source", json!(approval.source)),
            ("decision", json!(decision)),
            ("decided_by", approval.approver.masked()["address"].clone()),
            ("decided_via", json!("link")),
            ("decided_at", json!(now.to_string())),
            ("tool", json!(approval.tool)),
            ("body_digest", json!(approval.body_digest)),
            ("amount_usdc", json!(approval.amount.map(|amount| amount.to_string()))),
            ("policy_rule", json!(approval.policy_rule)),
            // The content read and the note are included as digests, to keep this record small.
            ("shown_digest", json!(shown_digest(approval))),
            ("note_digest", json!(note.map(|note| const_hex::encode(sha256(note.as_bytes()))))),
            ("created_at", json!(approval.created_at.to_string())),
        ];
        let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let payload = format!("{{{}}}", members.join(","));
        let seal = Seal {
            digest: const_hex::encode(sha256(payload.as_bytes())),
            signature: signer.sign(payload.as_bytes()),
            key_id: signer.key_id().to_owned(),
        };
        DecisionReceipt { decision_receipt_id, decision, payload, seal }
    }

    /// The members, the exact signed text, and the signature.
    pub fn view(&self) -> Value {
        let mut view: Value = serde_json::from_str(&self.payload).unwrap_or_default();
        view["payload"] = json!(self.payload);
        view["digest"] = json!(self.seal.digest);
        view["signature"] = json!(self.seal.signature);
        view["key_id"] = json!(self.seal.key_id);
        view["alg"] = json!("Ed25519");
        view
    }
}

/// SHA-256 of the summary and the shown JSON, each preceded by its length in eight bytes, in hex.
fn shown_digest(approval: &Approval) -> String {
    let shown = approval.shown().unwrap_or_default();
    const_hex::encode(sha256_parts(&[approval.action_summary.as_bytes(), shown.as_bytes()]))
}
