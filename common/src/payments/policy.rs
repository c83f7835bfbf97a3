//! Settlement order is a policy: money first, unless the price is so small that waiting for a block costs more than
//! the risk, and the payer's open risk is within its cap.

use serde::{Deserialize, Serialize};

use crate::config::PaymentConfig;
use crate::ids::AgentId;
use crate::money::Usdc;
use crate::store::{Db, Key, StoreError, Write};

/// Whether work of this price may overlap its settlement, if the payer's exposure allows.
pub fn may_overlap(price: Usdc, config: &PaymentConfig) -> bool {
    price < config.overlap_below && price <= config.overlap_exposure
}

/// What a payer's overlapping calls have not settled yet.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Exposure {
    /// micro-USDC
    pub unsettled: Usdc,
}

fn key(agent: AgentId) -> Key {
    Key::new(format!("AGENT#{agent}"), "EXPOSURE")
}

/// The write that adds a call to its payer's exposure. Refused above the cap: then the money comes first.
pub fn expose(db: &Db, agent: AgentId, price: Usdc, cap: Usdc) -> Result<Write, StoreError> {
    let room = cap.checked_sub(price).unwrap_or_default();
    Write::update(&db.tables.ledger, key(agent), "ADD #unsettled :price")
        .only_if("attribute_not_exists(#unsettled) OR #unsettled <= :room")
        .bind("price", price)?
        .bind("room", room)
}

/// The write that takes a settled (or never started) call off again. A call that was worked for and never paid stays
/// on: its payer pays first from then on.
pub fn unexpose(db: &Db, agent: AgentId, price: Usdc) -> Result<Write, StoreError> {
    let price = i64::try_from(price.micro()).map_err(StoreError::new)?;
    Write::update(&db.tables.ledger, key(agent), "ADD #unsettled :minus").bind("minus", -price)
}

pub async fn exposure(db: &Db, agent: AgentId) -> Result<Exposure, StoreError> {
    Ok(db.get(&db.tables.ledger, key(agent)).await?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evm::Address;
    use std::time::Duration;

    #[test]
    fn only_small_prices_overlap() {
        let config = PaymentConfig {
            pay_to: Address::ZERO,
            quote_ttl: Duration::ZERO,
            soul_quote_ttl: Duration::ZERO,
            overlap_below: Usdc::from_micro(2_000),
            overlap_exposure: Usdc::from_micro(50_000),
            hold: Duration::ZERO,
            fee_cap_gwei: 1,
        };
        assert!(may_overlap(Usdc::from_micro(1_000), &config));
        assert!(!may_overlap(Usdc::from_micro(2_000), &config));
        let tiny_cap = PaymentConfig { overlap_exposure: Usdc::from_micro(500), ..config };
        assert!(!may_overlap(Usdc::from_micro(1_000), &tiny_cap));
    }
}
