//! Everything known about one charge in one answer: what was asked for and why, what it cost, how it was paid, what came of
//! it, and what was credited back.
//!
//! Receipts are kept for ever, jobs for 30 days, or less if they hold personal data. After that, `job` and `payment` are
//! null and only the receipt is left.

use base::clock::Timestamp;
use base::digest::sha256;
use base::ids::{AgentId, ReceiptId, RequestId};
use base::money::Usdc;
use evm::{Address, hex0x};
use ledger::credit::{self, Entry, EntryKind};
use ledger::receipt::{self, Receipt};
use ledger::value::{self, Report, Reported};
use platform::config::ChainConfig;
use platform::store::{Blobs, Db, StoreError};
use serde::Serialize;
use serde_json::{Value, json};

use super::view::{self, ReceiptView};
use crate::approvals::approval::{Approval, ApprovalId};
use crate::approvals::store as approvals;
use crate::jobs::job::{Job, Place, StoredResult};
use crate::jobs::store as jobs;

/// The agent's receipt with this id, or of the request with this id.
pub async fn find(db: &Db, agent: AgentId, name: &str) -> Result<Option<Receipt>, StoreError> {
    let receipt_id: ReceiptId = match (name.parse(), name.parse::<RequestId>()) {
        (Ok(receipt_id), _) => receipt_id,
        (Err(_), Ok(request_id)) => {
            let job = jobs::load(db, request_id).await?.filter(|job| job.agent == agent);
            let Some(job) = job else { return Ok(None) };
            job.receipt_id
        }
        (Err(_), Err(_)) => return Ok(None),
    };
    receipt::load(db, agent, &receipt_id).await
}

/// The value tag that was sent with the call, if there was one.
pub fn attached_tag(receipt: &Receipt) -> Option<Reported> {
    let report = Report::attached(receipt.metadata.as_deref()?)?;
    Some(report.at(&receipt.receipt_id, receipt.created_at))
}

/// The body of `GET /v1/receipts/{id}/explain`.
#[derive(Serialize)]
pub struct Explained {
    receipt: ReceiptView,
    #[serde(flatten)]
    rest: Value,
}

/// Explains a receipt of the agent that owns this wallet.
pub async fn explain(
    db: &Db,
    blobs: &dyn Blobs,
    chain: &ChainConfig,
    receipt: &Receipt,
    wallet: Address,
    now: Timestamp,
) -> Result<Explained, StoreError> {
    let (agent, receipt_id) = (receipt.agent_id, &receipt.receipt_id);
    let (job, entries, tag, approval) = tokio::try_join!(
        jobs::load_latest(db, receipt.job_id),
        credit::of_receipt(db, agent, receipt_id),
        value::tag(db, agent, receipt_id),
        released_by(db, receipt),
    )?;
    let job = job.filter(|job| job.agent == agent && !job.is_forgotten(now));
    let tag = tag.or_else(|| attached_tag(receipt));
    let attached = view::attached(receipt);
    let refund = entries.iter().find(|entry| entry.kind == EntryKind::Refund);
    let rest = json!({
        "memo": attached.get("memo"),
        "decision_context": attached.get("decisionContext"),
        "value_tag": tag.as_ref().map(view::value_tag),
        "quote": receipt.quote.as_ref().map(|quote| json!({
            "id": quote.id, "amount_usdc": receipt.amount.to_string(), "expires_at": quote.expires_at.to_string(),
        })),
        "policy": policy(receipt),
        "approval": approval.map(|approval| approval.view_with_receipt(now)),
        "job": match &job { Some(job) => work(blobs, job).await?, None => Value::Null },
        "payment": job.as_ref().map(|job| payment(job, wallet, chain)),
        "refund": refund.map(entry),
        "entries": entries.iter().map(entry).collect::<Vec<_>>(),
    });
    Ok(Explained { receipt: view::receipt(receipt, tag.as_ref()), rest })
}

/// The decision of the owner's rules when the call was charged.
fn policy(receipt: &Receipt) -> Value {
    let judged = &receipt.judged;
    let verdict = match (judged.by_policy, &judged.approval_id) {
        (_, Some(_)) => "approved",
        (true, None) => "allowed",
        (false, None) => "none",
    };
    json!({"verdict": verdict, "rules_revision": judged.rules, "approval_id": judged.approval_id})
}

/// The approval that released the call, with the signed record of its decision.
async fn released_by(db: &Db, receipt: &Receipt) -> Result<Option<Approval>, StoreError> {
    let id = receipt.judged.approval_id.as_deref().and_then(|id| id.parse::<ApprovalId>().ok());
    match id {
        Some(id) => approvals::load(db, receipt.agent_id, &id).await,
        None => Ok(None),
    }
}

async fn work(blobs: &dyn Blobs, job: &Job) -> Result<Value, StoreError> {
    let digest = match &job.result {
        Some(result) => result_digest(blobs, result).await?,
        None => None,
    };
    Ok(json!({
        "request_id": job.request_id,
        "tool": job.tool,
        "status": job.status(),
        // The owner keeps the input itself; the digest proves that nothing else was asked for.
        "input_digest": job.input.digest(),
        "result_digest": digest,
        "provider": job.result.as_ref().map(|result| &result.provider),
        "provider_request_id": job.result.as_ref().and_then(|result| result.provider_request_id.as_deref()),
        "mode": job.result.as_ref().map(|result| result.mode),
        "error": job.error.as_ref().map(|error| json!({
            "error_code": error.code, "error_reason": error.reason, "message": error.message,
        })),
        "created_at": job.created.to_string(),
        "updated_at": job.updated.to_string(),
    }))
}

/// SHA-256 (hex) of the stored JSON bytes. `None` if the result is no longer stored.
async fn result_digest(blobs: &dyn Blobs, result: &StoredResult) -> Result<Option<String>, StoreError> {
    let digest = match &result.place {
        Place::Inline(json) => Some(sha256(json.as_bytes())),
        Place::Blob(key) => blobs.get(key).await?.map(|bytes| sha256(&bytes)),
    };
    Ok(digest.map(const_hex::encode))
}

/// The payment: signed, by credits, or both. Members of the signed payment are null without one.
fn payment(job: &Job, wallet: Address, chain: &ChainConfig) -> Value {
    let signed = job.payment.as_ref();
    json!({
        "payer": wallet.to_string(),
        "access_token_id": job.charge.token,
        "amount_usdc": job.price.to_string(),
        "credits_usdc": job.charge.credits.to_string(),
        "signed_usdc": signed.map(|_| job.price.checked_sub(job.charge.credits).unwrap_or_default().to_string()),
        "pay_to": signed.map(|signed| signed.to.to_string()),
        "nonce": signed.map(|signed| hex0x(&signed.nonce)),
        "network": signed.map(|_| chain.caip2()),
        "asset": signed.map(|_| chain.token.address.to_string()),
        "transaction": job.transaction,
        "settlement_status": job.settlement_status(),
        "refusal": job.refusal,
    })
}

/// `amount_usdc` is the absolute change; the other three amounts have a sign.
fn entry(entry: &Entry) -> Value {
    let changes = [entry.credits, entry.reserved, entry.debt];
    json!({
        "kind": entry.kind,
        "amount_usdc": Usdc::from_micro(changes.into_iter().map(i64::unsigned_abs).max().unwrap_or_default()).to_string(),
        "credits_usdc": signed(entry.credits),
        "reserved_usdc": signed(entry.reserved),
        "owed_usdc": signed(entry.debt),
        "request_id": entry.request_id,
        "at": entry.at.to_string(),
    })
}

fn signed(micro: i64) -> String {
    let amount = Usdc::from_micro(micro.unsigned_abs());
    if micro < 0 { format!("-{amount}") } else { amount.to_string() }
}
