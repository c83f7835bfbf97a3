//! Credits: prepaid USDC, and the immutable entries that every balance is the sum of.
//!
//! An account changes only together with an entry, in one transaction. An entry's key is derived from its cause, so the
//! same cause cannot count twice.

use base::clock::Timestamp;
use base::ids::{AgentId, ReceiptId, RequestId};
use base::money::Usdc;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::account::{Change, minus, plus};
use super::agent_partition;

/// Why an account changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Bought with USDC from the wallet.
    TopUp,
    /// Bought with a card.
    CardTopUp,
    /// Spent on a call.
    Charge,
    /// Held by a quote.
    Reserve,
    /// A hold was released, or a charge was undone.
    Release,
    /// Refund for work that was paid for and failed.
    Refund,
    /// A card payment was refunded or is disputed: the amount is now debt.
    CardReversal,
    /// The card reversal was itself reversed.
    CardReinstated,
    /// The credits came from a signed payment that disappeared from the chain and did not return: the amount is now debt.
    Reversal,
    /// Debt was paid with credits, or with what a seller lost (`maturing`).
    DebtPaid,
}

impl EntryKind {
    fn as_str(self) -> &'static str {
        match self {
            EntryKind::TopUp => "top_up",
            EntryKind::CardTopUp => "card_top_up",
            EntryKind::Charge => "charge",
            EntryKind::Reserve => "reserve",
            EntryKind::Release => "release",
            EntryKind::Refund => "refund",
            EntryKind::CardReversal => "card_reversal",
            EntryKind::CardReinstated => "card_reinstated",
            EntryKind::Reversal => "reversal",
            EntryKind::DebtPaid => "debt_paid",
        }
    }
}

/// One change of an account, in micro-USDC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub kind: EntryKind,
    pub credits: i64,
    pub reserved: i64,
    /// The change of the part that was bought by card.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub card: i64,
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub debt: i64,
    /// The cause: a receipt, a quote's hold, or the card processor's session or payment.
    pub cause: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<RequestId>,
    pub at: Timestamp,
}

impl Entry {
    pub fn new(kind: EntryKind, change: Change, cause: &str, request_id: Option<RequestId>, at: Timestamp) -> Entry {
        let Change { credits, reserved, card, debt, .. } = change;
        Entry { kind, credits, reserved, card, debt, cause: cause.to_owned(), request_id, at }
    }

    /// The write that stores it. Refused if this cause already has an entry of this kind.
    pub fn put(&self, db: &Db, agent: AgentId) -> Result<Write, StoreError> {
        let key = Key::new(agent_partition(agent), format!("ENTRY#{}#{}", self.cause, self.kind.as_str()));
        Ok(Write::put(&db.tables.ledger, key, self)?.only_if_new())
    }
}

fn is_nothing(change: &i64) -> bool {
    *change == 0
}

/// The writes that change an account, with the entry.
pub fn change(
    db: &Db,
    agent: AgentId,
    kind: EntryKind,
    change: Change,
    cause: &str,
    request_id: Option<RequestId>,
    at: Timestamp,
) -> Result<[Write; 2], StoreError> {
    let entry = Entry::new(kind, change, cause, request_id, at);
    Ok([entry.put(db, agent)?, change.write(db, agent)?])
}

/// Adds an amount to the spendable credits.
pub fn add(amount: Usdc) -> Result<Change, StoreError> {
    Ok(Change { credits: plus(amount)?, ..Change::default() })
}

/// Adds an amount to the spendable credits, of which `card` was bought by card.
pub fn add_marked(amount: Usdc, card: Usdc) -> Result<Change, StoreError> {
    Ok(Change { card: plus(card)?, ..add(amount)? })
}

/// Takes an amount from the spendable credits.
pub fn spend(amount: Usdc) -> Result<Change, StoreError> {
    Ok(Change { credits: minus(amount)?, ..Change::default() })
}

/// At most `limit` entries of an agent, in no particular order.
pub async fn entries(db: &Db, agent: AgentId, limit: usize) -> Result<Vec<Entry>, StoreError> {
    db.query(Query::prefixed(&db.tables.ledger, &agent_partition(agent), "ENTRY#", limit)?.latest()).await
}

/// The entry of a cause.
pub async fn entry(db: &Db, agent: AgentId, kind: EntryKind, cause: &str) -> Result<Option<Entry>, StoreError> {
    let key = Key::new(agent_partition(agent), format!("ENTRY#{cause}#{}", kind.as_str()));
    db.get_latest(&db.tables.ledger, key).await
}

/// The entries that one receipt caused.
pub async fn of_receipt(db: &Db, agent: AgentId, receipt: &ReceiptId) -> Result<Vec<Entry>, StoreError> {
    let prefix = format!("ENTRY#{receipt}#");
    db.query(Query::prefixed(&db.tables.ledger, &agent_partition(agent), &prefix, 20)?.latest()).await
}
