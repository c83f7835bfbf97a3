//! Earnings: one immutable record for each ended sale of a seller. It is written in the transaction that ends the job, so
//! it exists exactly once. It is added to the seller's balance later (`ledger::seller`).
//!
//! No counter of a seller is changed while a call is served, because thousands of calls may end at once.

use base::clock::Timestamp;
use base::ids::{AgentId, ReceiptId, RequestId};
use base::money::Usdc;
use platform::config::FeeShare;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::fee::Split;

/// The sale that a job makes on behalf of a seller. Stored with the job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sold {
    /// The soul's slug.
    pub soul: String,
    /// The service's slug; `None` for the soul's own text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The quoted version: of the service's terms, or of the soul's text.
    pub terms: u32,
    pub split: Split,
    /// The most that is kept of the price if the work fails, in micro-USDC: the cost of its tools and the model. The buyer
    /// was told this limit.
    #[serde(default, skip_serializing_if = "Usdc::is_zero")]
    pub kept_up_to: Usdc,
}

/// How a sale ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SaleEnd {
    /// The seller earned its share.
    Completed,
    /// The buyer was refunded, except what the work had used up. The seller earned nothing.
    Failed,
}

/// One ended sale, not yet added to the balance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earning {
    pub request_id: RequestId,
    pub receipt_id: ReceiptId,
    pub sold: Sold,
    pub buyer: AgentId,
    /// Cost of the tools used, taken from the seller's share, in micro-USDC.
    #[serde(default)]
    pub tools_cost: Usdc,
    /// The part of the price that was paid with credits bought by card, in micro-USDC.
    #[serde(default, skip_serializing_if = "Usdc::is_zero")]
    pub card: Usdc,
    pub ended: SaleEnd,
    /// When it was bought, and when it ended.
    pub bought_at: Timestamp,
    pub ended_at: Timestamp,
}

/// Partition of everything the ledger stores about one seller.
pub fn seller_partition(soul: &str) -> String {
    format!("SELLER#{soul}")
}

/// Key of an earning that is not yet added to the balance.
pub fn uncounted_key(soul: &str, request_id: RequestId) -> Key {
    Key::new(seller_partition(soul), format!("UNCOUNTED#{request_id}"))
}

/// The write that records how a sale ended.
pub fn record(db: &Db, earning: &Earning) -> Result<Write, StoreError> {
    let key = uncounted_key(&earning.sold.soul, earning.request_id);
    Ok(Write::put(&db.tables.ledger, key, earning)?.only_if_new())
}

/// Key of a licence: the agent bought this version of a soul's text and may read it again without paying.
pub fn licence_key(soul: &str, buyer: AgentId, version: u32) -> Key {
    Key::new(seller_partition(soul), format!("LICENCE#{buyer}#{version:06}"))
}

/// The write that grants a licence. Idempotent.
pub fn grant(db: &Db, earning: &Earning) -> Result<Write, StoreError> {
    let key = licence_key(&earning.sold.soul, earning.buyer, earning.sold.terms);
    let licence = Licence {
        version: earning.sold.terms,
        price: earning.sold.split.price(),
        fee: Some(earning.sold.split.fee),
        bought_at: earning.bought_at,
        receipt_id: earning.receipt_id.clone(),
    };
    Write::put(&db.tables.ledger, key, &licence)
}

/// A bought version of a soul's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Licence {
    pub version: u32,
    /// The price paid, in micro-USDC.
    pub price: Usdc,
    /// The platform's fee in it; `None` in licences from before the fee could be changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fee: Option<Usdc>,
    pub bought_at: Timestamp,
    pub receipt_id: ReceiptId,
}

impl Licence {
    /// How the price was divided at the sale.
    pub fn split(&self) -> Split {
        match self.fee.and_then(|fee| Some(Split { fee, revenue: self.price.checked_sub(fee)? })) {
            Some(split) => split,
            None => Split::of(self.price, FeeShare::default()),
        }
    }
}

/// The agent's licence for `version` of a soul's text, or for the newest version it bought.
pub async fn licence(db: &Db, soul: &str, buyer: AgentId, version: Option<u32>) -> Result<Option<Licence>, StoreError> {
    if let Some(version) = version {
        return db.get_latest(&db.tables.ledger, licence_key(soul, buyer, version)).await;
    }
    let prefix = format!("LICENCE#{buyer}#");
    let newest = Query::prefixed(&db.tables.ledger, &seller_partition(soul), &prefix, 1)?.newest_first().latest();
    Ok(db.query(newest).await?.into_iter().next())
}
