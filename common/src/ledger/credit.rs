//! Credits: a balance an agent can spend, and the immutable entries it is the sum of.
//!
//! A balance changes only together with an entry, in one transaction. An entry's key follows from what caused it, so
//! that the same cause can never count twice.

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::ids::{AgentId, ReceiptId, RequestId};
use crate::money::Usdc;
use crate::store::db::Query;
use crate::store::{Db, Key, StoreError, Write};

/// What an agent can spend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// micro-USDC
    pub credits: Usdc,
}

/// Why a balance changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Work that was paid for and failed.
    Refund,
}

/// One change of a balance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub kind: EntryKind,
    /// micro-USDC
    pub amount: Usdc,
    pub request_id: RequestId,
    pub receipt_id: ReceiptId,
    pub at: Timestamp,
}

fn balance_key(agent: AgentId) -> Key {
    Key::new(super::agent_partition(agent), "BALANCE")
}

/// Sorts by the time of the charge, and names the cause.
fn entry_key(agent: AgentId, receipt: &ReceiptId, kind: EntryKind) -> Key {
    let kind = match kind {
        EntryKind::Refund => "refund",
    };
    Key::new(super::agent_partition(agent), format!("ENTRY#{receipt}#{kind}"))
}

/// The two writes that pay a failed job's price back. Refused if this job was paid back before.
pub fn refund(
    db: &Db,
    agent: AgentId,
    request_id: RequestId,
    receipt_id: &ReceiptId,
    amount: Usdc,
    at: Timestamp,
) -> Result<[Write; 2], StoreError> {
    let entry = Entry { kind: EntryKind::Refund, amount, request_id, receipt_id: receipt_id.clone(), at };
    let table = &db.tables.ledger;
    Ok([
        Write::put(table, entry_key(agent, receipt_id, entry.kind), &entry)?.only_if_new(),
        Write::update(table, balance_key(agent), "ADD #credits :amount").bind("amount", amount)?,
    ])
}

/// An agent's balance; zero if it never had one.
pub async fn balance(db: &Db, agent: AgentId) -> Result<Balance, StoreError> {
    Ok(db.get(&db.tables.ledger, balance_key(agent)).await?.unwrap_or_default())
}

/// The entries of an agent, oldest first.
pub async fn entries(db: &Db, agent: AgentId) -> Result<Vec<Entry>, StoreError> {
    db.query(Query::prefixed(&db.tables.ledger, &super::agent_partition(agent), "ENTRY#", 1000)?).await
}

/// The entries one receipt gave rise to.
pub async fn of_receipt(db: &Db, agent: AgentId, receipt: &ReceiptId) -> Result<Vec<Entry>, StoreError> {
    let prefix = format!("ENTRY#{receipt}#");
    db.query(Query::prefixed(&db.tables.ledger, &super::agent_partition(agent), &prefix, 20)?.latest()).await
}
