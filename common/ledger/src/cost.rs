//! What a purchase costs, in five words. Every place that shows money or adds it up takes them from here.
//!
//! | word | means | in answers |
//! |---|---|---|
//! | charged | the price, taken when the call begins | `amount_usdc` |
//! | credited | the part that was paid back as credits when the work ended | `credited_usdc` |
//! | kept | the rest of the price, if a part was paid back | `kept_usdc` |
//! | spent | what is charged, until it is known what is kept; nothing of a payment that failed | `spent_usdc`, every sum of spending |
//! | counted | what is spent, against the caps of the day of the charge | `spent_today_usdc` |
//!
//! Bought credits are charged, but neither spent nor counted: what they pay for is.

use base::money::Usdc;

use super::receipt::{ExecutionStatus, ReceiptStatus};

/// A purchase as its receipt has it. Amounts are in micro-USDC.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub charged: Usdc,
    /// The part of it that credits paid.
    pub credits: Usdc,
    /// What was kept, if the price was paid back in part.
    pub kept: Option<Usdc>,
    pub money: ReceiptStatus,
    pub work: ExecutionStatus,
    pub buys_credits: bool,
}

impl Cost {
    /// What the purchase adds to its buyer's spending: to every sum of it, and to the counters of its day.
    pub fn spent(self) -> Usdc {
        if self.buys_credits {
            return Usdc::ZERO;
        }
        match (self.work, self.money) {
            (ExecutionStatus::Failed, _) => self.kept.unwrap_or_default(),
            // The work was done, and its signed part will never come: its credits stay taken.
            (ExecutionStatus::Completed, ReceiptStatus::Failed) => self.kept.unwrap_or(self.charged).min(self.credits),
            _ => self.kept.unwrap_or(self.charged),
        }
    }

    /// What was paid back as credits: once the money has arrived, everything that was not kept of failed work, or of work that
    /// used less than its price.
    pub fn credited(self) -> Option<Usdc> {
        let in_part = self.work == ExecutionStatus::Completed && self.kept.is_some();
        let is_owed = self.money == ReceiptStatus::Settled && (self.work == ExecutionStatus::Failed || in_part);
        is_owed.then(|| self.charged.checked_sub(self.kept.unwrap_or_default()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spent_is_what_was_charged_and_did_not_come_back() {
        use {ExecutionStatus as Work, ReceiptStatus as Money};
        let micro = Usdc::from_micro;
        let cost = |work, money, kept: Option<u64>| {
            let (charged, credits) = (micro(100), micro(30));
            Cost { charged, credits, kept: kept.map(micro), money, work, buys_credits: false }
        };
        for (work, money, kept, spent, credited) in [
            (Work::Pending, Money::Pending, None, 100, None),
            (Work::Pending, Money::Settled, None, 100, None),
            (Work::Completed, Money::Pending, None, 100, None),
            (Work::Completed, Money::Settled, None, 100, None),
            (Work::Completed, Money::Settled, Some(40), 40, Some(60)),
            (Work::Failed, Money::Settled, None, 0, Some(100)),
            (Work::Failed, Money::Settled, Some(10), 10, Some(90)),
            // The payment never came: nothing is taken, or the credits of work that was done.
            (Work::Failed, Money::Failed, None, 0, None),
            (Work::Completed, Money::Failed, None, 30, None),
            (Work::Completed, Money::Failed, Some(20), 20, None),
        ] {
            let cost = cost(work, money, kept);
            assert_eq!((cost.spent().micro(), cost.credited()), (spent, credited.map(micro)), "{cost:?}");
        }
        let bought = Cost { buys_credits: true, ..cost(Work::Completed, Money::Settled, None) };
        assert_eq!(bought.spent(), Usdc::ZERO);
    }
}
