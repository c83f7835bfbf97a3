//! Earnings: what a seller's ended sales came to. One immutable record for each, written in the transaction that ends
//! the job, so it is there exactly once; counting it into the seller's balance is a later move (`ledger::seller`).
//!
//! No counter of a seller is touched while a call is served: thousands may end at once.

use base::clock::Timestamp;
use base::ids::{AgentId, ReceiptId, RequestId};
use base::money::Usdc;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::fee::Split;

/// What a job sells for somebody else, kept with the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sold {
    /// The soul's slug.
    pub soul: String,
    /// The service's slug; a soul's own text otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The version that was quoted: of the service's terms, or of the soul's text.
    pub terms: u32,
    pub split: Split,
    /// The most of the price that is kept if the work fails, in micro-USDC: what its tools and the model may cost. The buyer
    /// was told.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub kept_up_to: Usdc,
}

fn is_zero(amount: &Usdc) -> bool {
    *amount == Usdc::ZERO
}

/// How a sale ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SaleEnd {
    /// The seller earned its share.
    Completed,
    /// The buyer was paid back what was not used up; the seller earned nothing.
    Failed,
}

/// One ended sale, before it is counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earning {
    pub request_id: RequestId,
    pub receipt_id: ReceiptId,
    pub sold: Sold,
    pub buyer: AgentId,
    /// What the tools of the work cost, of the seller's share, in micro-USDC.
    #[serde(default)]
    pub tools_cost: Usdc,
    pub ended: SaleEnd,
    /// When it was bought, and when it ended.
    pub bought_at: Timestamp,
    pub ended_at: Timestamp,
}

/// Partition of everything the ledger knows of one seller.
pub fn seller_partition(soul: &str) -> String {
    format!("SELLER#{soul}")
}

/// Where an earning waits to be counted.
pub fn uncounted_key(soul: &str, request_id: RequestId) -> Key {
    Key::new(seller_partition(soul), format!("UNCOUNTED#{request_id}"))
}

/// The write that records how a sale ended.
pub fn record(db: &Db, earning: &Earning) -> Result<Write, StoreError> {
    let key = uncounted_key(&earning.sold.soul, earning.request_id);
    Ok(Write::put(&db.tables.ledger, key, earning)?.only_if_new())
}

/// Says that an agent bought a version of a soul's text: it may read that version again for nothing.
pub fn licence_key(soul: &str, buyer: AgentId, version: u32) -> Key {
    Key::new(seller_partition(soul), format!("LICENCE#{buyer}#{version:06}"))
}

/// The write that grants a licence; again is the same as once.
pub fn grant(db: &Db, earning: &Earning) -> Result<Write, StoreError> {
    let key = licence_key(&earning.sold.soul, earning.buyer, earning.sold.terms);
    let licence = Licence {
        version: earning.sold.terms,
        price: earning.sold.split.price(),
        bought_at: earning.bought_at,
        receipt_id: earning.receipt_id.clone(),
    };
    Write::put(&db.tables.ledger, key, &licence)
}

/// A bought version of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Licence {
    pub version: u32,
    /// What was paid for it, in micro-USDC.
    pub price: Usdc,
    pub bought_at: Timestamp,
    pub receipt_id: ReceiptId,
}

/// What an agent bought of a soul's text: this version, or the newest it has.
pub async fn licence(db: &Db, soul: &str, buyer: AgentId, version: Option<u32>) -> Result<Option<Licence>, StoreError> {
    if let Some(version) = version {
        return db.get_latest(&db.tables.ledger, licence_key(soul, buyer, version)).await;
    }
    let prefix = format!("LICENCE#{buyer}#");
    let newest = Query::prefixed(&db.tables.ledger, &seller_partition(soul), &prefix, 1)?.newest_first().latest();
    Ok(db.query(newest).await?.into_iter().next())
}
