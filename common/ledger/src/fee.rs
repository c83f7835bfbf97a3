//! The platform's fee on a sale.

use base::money::Usdc;
use platform::config::FeeShare;
use serde::{Deserialize, Serialize};

/// How a price is divided, in micro-USDC: always `price = fee + revenue`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    pub fee: Usdc,
    /// The seller's share.
    pub revenue: Usdc,
}

impl Split {
    /// The fee is rounded down; the seller gets the rest, including the fraction of a micro-USDC.
    pub fn of(price: Usdc, fee: FeeShare) -> Split {
        let fee = u128::from(price.micro()) * u128::from(fee.percent()) / 100;
        let fee = Usdc::from_micro(u64::try_from(fee).unwrap_or_default());
        Split { fee, revenue: price.checked_sub(fee).unwrap_or_default() }
    }

    pub fn price(&self) -> Usdc {
        self.fee.checked_add(self.revenue).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fee_and_revenue_add_up_to_the_price() {
        for price in [0, 1, 4, 5, 10_000, 10_001, 10_003, 500_000, 1_000_000_000, 1_000_000_000_000_000_000] {
            for percent in [1, 20, 33, 50] {
                let split = Split::of(Usdc::from_micro(price), FeeShare::of_percent(percent).unwrap());
                assert_eq!(split.price().micro(), price);
                let fee = u128::from(price) * u128::from(percent) / 100;
                assert_eq!(split.fee.micro(), u64::try_from(fee).unwrap(), "{percent} % of {price}");
            }
        }
    }
}
