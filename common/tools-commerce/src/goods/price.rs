//! What a purchase of a good costs, by the good's own tables.

use base::money::Usdc;
use rust_decimal::prelude::ToPrimitive;
use rust_decimal::{Decimal, RoundingStrategy};

use super::good::{Good, Variant};
use crate::order::Cost;

/// Why there is no price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPrice {
    /// The seller does not send to this state.
    NotSentThere,
    TooLarge,
}

/// The lines of a purchase that is sent to `state` (two capitals). Tax is rounded up to a cent.
///
/// # Errors
/// If there is no price.
pub fn cost(good: &Good, variant: &Variant, quantity: u32, state: &str) -> Result<Cost, NoPrice> {
    let subtotal = variant.price.micro().checked_mul(u64::from(quantity)).map(Usdc::from_micro);
    let subtotal = subtotal.ok_or(NoPrice::TooLarge)?;
    let table = &good.shipping;
    let shipping = table.states.get(state).copied().or(table.default).ok_or(NoPrice::NotSentThere)?;
    let is_free = table.free_from.is_some_and(|from| subtotal >= from);
    let shipping = if is_free { Usdc::ZERO } else { shipping };
    let taxed = match good.tax.on_shipping {
        true => subtotal.checked_add(shipping).ok_or(NoPrice::TooLarge)?,
        false => subtotal,
    };
    let rate = good.tax.states.get(state).copied().unwrap_or(good.tax.default);
    let tax = tax(taxed, rate).ok_or(NoPrice::TooLarge)?;
    let total = subtotal.checked_add(shipping).and_then(|sum| sum.checked_add(tax)).ok_or(NoPrice::TooLarge)?;
    Ok(Cost { subtotal, shipping, tax, total })
}

/// Rounded up to a cent. `rate` is in parts per million.
fn tax(taxed: Usdc, rate: u32) -> Option<Usdc> {
    let dollars = Decimal::from_i128_with_scale(i128::from(taxed.micro()), 6);
    let tax = dollars.checked_mul(Decimal::new(i64::from(rate), 6))?;
    let cents =
        tax.round_dp_with_strategy(2, RoundingStrategy::ToPositiveInfinity).checked_mul(Decimal::from(1_000_000))?;
    cents.to_u64().map(Usdc::from_micro)
}

#[cfg(test)]
pub mod tests {
    use std::collections::BTreeMap;

    use base::clock::Timestamp;

    use super::super::good::{Shipping, Tax};
    use super::*;

    pub fn good() -> Good {
        Good {
            id: super::super::good::new_id(),
            seller: super::super::good::Seller { slug: "lamp-shop".to_owned(), id: "1".to_owned() },
            title: "A lamp".to_owned(),
            description: "It shines".to_owned(),
            variants: vec![Variant { id: 1, labels: BTreeMap::new(), price: Usdc::from_micro(19_990_000) }],
            images: Vec::new(),
            shipping: Shipping {
                default: Some(Usdc::from_micro(4_990_000)),
                states: BTreeMap::from([("AK".to_owned(), Usdc::from_micro(14_000_000))]),
                free_from: Some(Usdc::from_micro(50_000_000)),
            },
            tax: Tax { default: 0, states: BTreeMap::from([("CA".to_owned(), 82_500)]), on_shipping: false },
            handling_days: 2,
            return_days: 30,
            listed: true,
            created: Timestamp::from_secs(0),
            updated: Timestamp::from_secs(0),
            revision: 0,
            next_variant: 2,
        }
    }

    #[test]
    fn lines_follow_from_the_tables_and_add_up() {
        let taxed_shipping = Good { tax: Tax { on_shipping: true, ..good().tax }, ..good() };
        for (good, quantity, state, wanted) in [
            (good(), 1, "CA", (1_999, 499, 165, 2_663)),
            (good(), 1, "NY", (1_999, 499, 0, 2_498)),
            (good(), 2, "AK", (3_998, 1_400, 0, 5_398)),
            (good(), 3, "AK", (5_997, 0, 0, 5_997)),
            (good(), 3, "CA", (5_997, 0, 495, 6_492)),
            (taxed_shipping, 1, "CA", (1_999, 499, 207, 2_705)),
        ] {
            let cost = cost(&good, &good.variants[0], quantity, state).unwrap();
            let cents = |amount: Usdc| amount.micro() / 10_000;
            assert_eq!(
                (cents(cost.subtotal), cents(cost.shipping), cents(cost.tax), cents(cost.total)),
                wanted,
                "{state}"
            );
            assert_eq!(cost.total.micro() % 10_000, 0, "whole cents");
        }
    }

    #[test]
    fn what_has_no_price_is_refused() {
        let near = Good { shipping: Shipping { default: None, ..good().shipping }, ..good() };
        assert_eq!(cost(&near, &near.variants[0], 1, "NY"), Err(NoPrice::NotSentThere));
        assert!(cost(&near, &near.variants[0], 1, "AK").is_ok());
        let dear = Variant { price: Usdc::from_micro(u64::MAX), ..good().variants[0].clone() };
        assert_eq!(cost(&good(), &dear, 2, "NY"), Err(NoPrice::TooLarge));
    }
}
