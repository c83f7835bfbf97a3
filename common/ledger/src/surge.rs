//! Detects days with spending far above the usual. The owner is notified once a day, with or without a budget.

use base::money::Usdc;

/// A baseline uses at most `BASELINE_DAYS` days with spending, and needs at least `LEAST_DAYS`.
pub const BASELINE_DAYS: usize = 14;
const LEAST_DAYS: usize = 3;
/// A day is far above the usual if it is at least this many times higher.
const FACTOR: u64 = 5;
/// Lower spending, in micro-USDC, never counts as a surge.
pub const NEGLIGIBLE: Usdc = Usdc::from_micro(1_000_000);

/// The usual day, if today is far above it; else `None`. `before` are earlier days with spending.
pub fn usual_if_surging(today: Usdc, before: &[Usdc]) -> Option<Usdc> {
    if before.len() < LEAST_DAYS || today < NEGLIGIBLE {
        return None;
    }
    let sum: u128 = before.iter().map(|day| u128::from(day.micro())).sum();
    let usual = sum / before.len() as u128;
    let is_surging = u128::from(today.micro()) >= usual.saturating_mul(u128::from(FACTOR));
    is_surging.then(|| Usdc::from_micro(u64::try_from(usual).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_times_the_usual_day_is_a_surge() {
        let days = |micro: &[u64]| micro.iter().map(|micro| Usdc::from_micro(*micro)).collect::<Vec<_>>();
        let usual = days(&[1_000_000, 2_000_000, 3_000_000]);
        assert_eq!(usual_if_surging(Usdc::from_micro(10_000_000), &usual), Some(Usdc::from_micro(2_000_000)));
        assert_eq!(usual_if_surging(Usdc::from_micro(9_999_999), &usual), None);
        assert_eq!(usual_if_surging(Usdc::from_micro(10_000_000), &usual[..2]), None, "two days are no habit");
        assert_eq!(usual_if_surging(Usdc::from_micro(900_000), &days(&[1, 1, 1])), None, "small change");
    }
}
