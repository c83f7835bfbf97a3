//! Applies a draft policy to past charges, and lists those that it would have held or denied.
//!
//! Receipts keep tool, price and time, but no recipients. Rules about recipients are listed as not evaluated.

use base::clock::Timestamp;
use base::money::Usdc;
use ledger::receipt::{Receipt, ReceiptStatus};
use serde_json::{Value, json};
use tools::spec::{Catalog, TOP_UP};

use super::policy::{ACTIONS, Facts, Policy, Rule, Verdict};

/// The period of past charges that is checked, in days.
pub const DAYS: u64 = 30;
/// Most receipts that are checked, the newest ones.
pub const MAX_RECEIPTS: usize = 1000;

/// Applies the draft. `receipts` are newest first.
pub fn run(catalog: &Catalog, policy: &Policy, receipts: &[Receipt], from: Timestamp, to: Timestamp) -> Value {
    let mut charges = Vec::new();
    let (mut allowed, mut held, mut denied) = (0u32, 0u32, 0u32);
    let (mut held_usdc, mut denied_usdc) = (Usdc::ZERO, Usdc::ZERO);
    let add = |sum: Usdc, amount: Usdc| sum.checked_add(amount).unwrap_or(Usdc::from_micro(u64::MAX));
    // A refused payment was not a charge.
    for receipt in receipts.iter().filter(|receipt| receipt.status != ReceiptStatus::Failed) {
        let facts = Facts {
            tool: &receipt.subcategory,
            action: action_of(catalog, &receipt.subcategory),
            amount: receipt.amount,
            recipients: None,
            at: receipt.created_at,
        };
        // As in a real call, what buys credits is not judged.
        let verdict = if receipt.subcategory == TOP_UP.name { Verdict::Allow } else { policy.judge_facts(&facts) };
        match verdict {
            Verdict::Allow => allowed += 1,
            Verdict::Hold { rule } => {
                held += 1;
                held_usdc = add(held_usdc, receipt.amount);
                charges.push(charge(receipt, "held", rule));
            }
            Verdict::Deny { rule } => {
                denied += 1;
                denied_usdc = add(denied_usdc, receipt.amount);
                charges.push(charge(receipt, "denied", rule));
            }
        }
    }
    let left_out: Vec<&str> =
        policy.rules.iter().filter(|rule| rule.when.looks_at_recipients()).map(|rule| rule.id.as_str()).collect();
    json!({
        "from": from.to_string(),
        "to": to.to_string(),
        "receipts": allowed + held + denied,
        "truncated": receipts.len() >= MAX_RECEIPTS,
        "allowed": allowed,
        "held": held,
        "denied": denied,
        "held_usdc": held_usdc.to_string(),
        "denied_usdc": denied_usdc.to_string(),
        "rules_not_evaluated": left_out,
        "charges": charges,
    })
}

fn charge(receipt: &Receipt, verdict: &str, rule: &Rule) -> Value {
    json!({
        "receipt_id": receipt.receipt_id,
        "tool": receipt.subcategory,
        "amount_usdc": receipt.amount.to_string(),
        "created_at": receipt.created_at.to_string(),
        "verdict": verdict,
        "rule": rule.id,
    })
}

/// From the catalog, or the name itself for a tool that is no longer in it.
fn action_of(catalog: &Catalog, tool: &str) -> Option<&'static str> {
    let listed = catalog.find(tool).and_then(super::policy::action_of);
    listed.or_else(|| ACTIONS.iter().map(|(word, _)| *word).find(|word| *word == tool))
}
