//! What is offered for a transaction of ours, when it is offered more, and where that ends.
//!
//! A transaction that was signed with too little for what the chain has come to cost stays in the nodes' pools for ever,
//! and everything behind its account nonce with it. So it is replaced: the same call under the same account nonce, with
//! a higher bid. All that ever was signed for a nonce does the same thing, and the chain takes one of them, whichever it
//! is; so what moves the money stays one transfer, however often it was bid for.
//!
//! The record of a transaction holds its latest bid and the hashes of those before it. What can happen to it:
//!
//! | what happens | what is there | what follows |
//! |---|---|---|
//! | the process dies before the raise is written | the old bid, on its way | the next look raises it |
//! | it dies after writing, before sending | the raise written, nodes know the old one | the next look finds it unknown, and sends it |
//! | the raise is sent, its answer lost | nodes know the raise | the next look finds it known, and waits |
//! | two processes raise at once | the record's condition lets one write | the other one sends nothing |
//! | a process that was overtaken sends a bid late | a lower bid than the latest | refused, or replaced by the next look |
//! | the node refuses the raise (no ETH, pool full) | the raise written, nodes know the old one | sent again at each look, and the old one may still be mined |
//! | an older bid is mined | a receipt under one of the older hashes | it counts as the latest would: every look asks for all of them |
//! | nodes forgot all of them | none known, account nonce free | the latest is sent again |
//! | the account nonce is spent by none of them | no receipt under any hash | payment: begun anew, since its own nonce keeps it from moving twice; payout: see `payments::treasury` |
//! | fees go beyond the cap | the highest bid within the cap | it waits, the alarm rings, and it is mined when fees have come down |
//! | fees come down again | a bid that is too high | only what a block asks for is paid; nothing is lowered |
//! | a block is exchanged for another before the mark | no receipt, nodes have the transactions back | as if it had never been mined |
//! | a block is exchanged after the mark | nodes put it back into their pools, or have lost it | it is mined again; or the next look finds it gone: a payment is begun anew (`jobs::finality`), a payout sent again as the same bytes |

use platform::config::Config;
use platform::http::log;
use platform::providers::chain::Market;

/// What a transaction offers (EIP-1559), in wei per gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bid {
    pub max_fee: u64,
    pub priority_fee: u64,
}

/// What to do with a bid as the market is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next blocks would take it: what holds it up is something else, and more money is no help.
    Keep,
    Raise(Bid),
    /// They would not, and it must not be raised any more.
    Capped,
}

impl Bid {
    /// The bid to begin with, if `most` wei per gas are enough for it.
    pub fn first(market: Market, most: u64) -> Option<Bid> {
        // Twice the base fee outlasts six full blocks of rising fees. What is not needed is not paid.
        let wanted = market.base_fee.saturating_mul(2).saturating_add(market.priority_fee);
        let bid = Bid { max_fee: wanted.min(most), priority_fee: market.priority_fee.min(most) };
        bid.is_taken(market).then_some(bid)
    }

    /// What becomes of a bid that was not taken yet.
    pub fn next(self, market: Market, most: u64) -> Next {
        if self.is_taken(market) {
            return Next::Keep;
        }
        // Nodes replace a transaction only if both fees rise by a tenth.
        let least = Bid { max_fee: an_eighth_more(self.max_fee), priority_fee: an_eighth_more(self.priority_fee) };
        let priority_fee = least.priority_fee.max(market.priority_fee.min(most));
        // Doubled, so that a long rise is followed in few steps: the base fee is paid as it is and not as it is bid.
        let wanted = market.base_fee.max(self.max_fee).saturating_mul(2).saturating_add(priority_fee);
        let bid = Bid { max_fee: wanted.min(most), priority_fee };
        if bid.max_fee < least.max_fee || bid.priority_fee > bid.max_fee { Next::Capped } else { Next::Raise(bid) }
    }

    /// Whether one of the next blocks would take it.
    fn is_taken(self, market: Market) -> bool {
        // A block's base fee is at most an eighth above the last one's.
        let base_fee = market.base_fee.saturating_add(market.base_fee / 8);
        let left = self.max_fee.saturating_sub(base_fee).min(self.priority_fee);
        // What nodes suggest wanders; below half of it is where transactions are left lying.
        self.max_fee >= base_fee && left >= market.priority_fee / 2
    }
}

fn an_eighth_more(fee: u64) -> u64 {
    fee.saturating_add(fee / 8 + 1)
}

/// The most that one transaction may cost, and who is told when that is too little.
#[derive(Clone, Debug)]
pub struct FeeCap {
    wei: u128,
    metric_namespace: String,
}

impl FeeCap {
    pub fn of(config: &Config) -> FeeCap {
        FeeCap { wei: config.payments.fee_cap_wei(), metric_namespace: config.metric_namespace.clone() }
    }

    /// The most that may be bid for each unit of gas, in wei.
    pub fn per_gas(&self, gas_limit: u64) -> u64 {
        u64::try_from(self.wei / u128::from(gas_limit.max(1))).unwrap_or(u64::MAX)
    }

    /// Rings: the chain asks for more than we may pay. `what` is the transaction, for the operator.
    pub fn is_too_low(&self, what: &dyn std::fmt::Display) {
        let cap = self.wei / u128::from(platform::config::WEI_PER_GWEI);
        log::failure("the chain asks for more than TRANSACTION_FEE_CAP_GWEI", &format_args!("{cap} gwei: {what}"));
        log::metric(&self.metric_namespace, "FeeCapReached", "Count", 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GWEI: u64 = 1_000_000_000;

    fn market(base_fee: u64, priority_fee: u64) -> Market {
        Market { base_fee, priority_fee }
    }

    /// From nothing to a thousand gwei, whatever the steps of the market: each replacement is one that nodes take, none
    /// is above the cap, none is made without need, and there are few of them.
    #[test]
    fn bids_follow_the_market_up_to_the_cap() {
        for (begin, tip, cap) in [(0, 0, GWEI), (7, 1, 40 * GWEI), (GWEI, GWEI, 1000 * GWEI), (5_000_000, 3, 2 * GWEI)]
        {
            let mut bid = Bid::first(market(begin, tip), cap).expect("a first bid");
            let (mut base, mut raises) = (begin, 0);
            while base < 1000 * GWEI {
                base = base + base / 16 + 1 + base % 97;
                let now = market(base, tip);
                match bid.next(now, cap) {
                    Next::Keep => assert!(bid.max_fee >= base + base / 8, "{bid:?} at {base}"),
                    Next::Capped => assert!(base > cap / 4 * 3, "given up at {base} of {cap}"),
                    Next::Raise(next) => {
                        for (old, new) in [(bid.max_fee, next.max_fee), (bid.priority_fee, next.priority_fee)] {
                            assert!(u128::from(new) * 10 >= u128::from(old) * 11 && new > old, "{bid:?} to {next:?}");
                        }
                        assert!(next.max_fee <= cap && next.priority_fee <= next.max_fee, "{next:?}");
                        raises += 1;
                        bid = next;
                        if bid.max_fee < cap {
                            assert_eq!(bid.next(now, cap), Next::Keep, "one raise is enough");
                        }
                    }
                }
            }
            assert!(raises < 45, "{raises} raises");
        }
    }

    #[test]
    fn a_bid_rises_with_what_is_paid_to_be_preferred() {
        let bid = Bid { max_fee: 100 * GWEI, priority_fee: GWEI };
        assert_eq!(bid.next(market(GWEI, 2 * GWEI), u64::MAX), Next::Keep, "suggestions wander");
        let Next::Raise(raised) = bid.next(market(GWEI, 9 * GWEI), u64::MAX) else { panic!("not raised") };
        assert_eq!(raised.priority_fee, 9 * GWEI);
    }

    #[test]
    fn what_the_cap_cannot_pay_is_not_begun() {
        assert_eq!(Bid::first(market(10 * GWEI, GWEI), 12 * GWEI).map(|bid| bid.max_fee), Some(12 * GWEI));
        assert_eq!(Bid::first(market(10 * GWEI, GWEI), 11 * GWEI), None);
        // And what is begun is raised to the cap once, and then left.
        let bid = Bid { max_fee: 10 * GWEI, priority_fee: GWEI };
        let to_the_cap = Bid { max_fee: 12 * GWEI, priority_fee: an_eighth_more(GWEI) };
        assert_eq!(bid.next(market(30 * GWEI, GWEI), 12 * GWEI), Next::Raise(to_the_cap));
        assert_eq!(to_the_cap.next(market(30 * GWEI, GWEI), 12 * GWEI), Next::Capped);
        assert_eq!(bid.next(market(u64::MAX, u64::MAX), 11 * GWEI), Next::Capped, "a raise below a tenth is none");
        assert_eq!(bid.next(market(u64::MAX, 0), 5 * GWEI), Next::Capped, "the cap was lowered");
    }
}
