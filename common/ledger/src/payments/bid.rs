//! Fees of our own transactions: the first bid, when it is raised, and the cap.
//!
//! A transaction signed with too low a fee stays in the nodes' pools for ever, and blocks all transactions with later
//! account nonces. So it is replaced: the same call, the same account nonce, a higher bid. All transactions signed for one
//! nonce do the same thing and the chain mines exactly one of them, so the money moves once, however often the bid is
//! raised.
//!
//! The stored record holds the latest bid and the hashes of the earlier ones. What can happen:
//!
//! | event | state | consequence |
//! |---|---|---|
//! | the process dies before it stores the raise | the old bid is pending | the next check raises it |
//! | it dies after storing, before sending | the raise is stored, nodes know the old bid | the next check finds it unknown and sends it |
//! | the raise is sent, the answer is lost | nodes know the raise | the next check finds it known and waits |
//! | two processes raise at once | the record's condition lets one write | the other sends nothing |
//! | a process that lost the race sends its bid late | a bid lower than the latest | refused, or replaced at the next check |
//! | the node refuses the raise (no ETH, pool full) | the raise is stored, nodes know the old bid | sent again at each check; the old bid may still be mined |
//! | an older bid is mined | a receipt under an older hash | counts like the latest: every check asks for all hashes |
//! | nodes forgot all bids | none known, account nonce free | the latest is sent again |
//! | another transaction used the account nonce | no receipt under any hash | payment: started again (its own nonce keeps it from moving twice); payout: see `payments::treasury` |
//! | fees exceed the cap | the highest bid within the cap | it waits, the alarm fires, and it is mined when fees have fallen |
//! | fees fall again | a bid that is too high | the chain charges only the current fee; nothing is lowered |
//! | the block is replaced before the outcome is recorded | no receipt, nodes have the transactions again | as if it had never been mined |
//! | the block is replaced after the outcome is recorded | nodes have it in their pools again, or lost it | it is mined again; or the next check finds it gone: a payment is started again (`gate::jobs::finality`), a payout is sent again as the same bytes |

use evm::Word;
use platform::config::{Config, PaymentConfig};
use platform::http::log;
use platform::providers::chain::Market;

/// The fees a transaction offers (EIP-1559), in wei per gas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bid {
    pub max_fee: u64,
    pub priority_fee: u64,
}

/// The next step for a pending bid in the current market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The bid is high enough. If the transaction still waits, a higher fee does not help.
    Keep,
    Raise(Bid),
    /// The bid is too low and the cap allows no raise.
    Capped,
}

impl Bid {
    /// The first bid. `None` if a bid of at most `most` wei per gas is too low for the market.
    pub fn first(market: Market, most: u64) -> Option<Bid> {
        // Twice the base fee covers six full blocks of rising fees. Only the block's actual base fee is charged.
        let wanted = market.base_fee.saturating_mul(2).saturating_add(market.priority_fee);
        let bid = Bid { max_fee: wanted.min(most), priority_fee: market.priority_fee.min(most) };
        bid.is_taken(market).then_some(bid)
    }

    /// The next step for a bid that is not mined yet. `most` is the cap in wei per gas.
    pub fn next(self, market: Market, most: u64) -> Next {
        if self.is_taken(market) {
            return Next::Keep;
        }
        // Nodes accept a replacement only if both fees rise by at least a tenth.
        let least = Bid { max_fee: an_eighth_more(self.max_fee), priority_fee: an_eighth_more(self.priority_fee) };
        let priority_fee = least.priority_fee.max(market.priority_fee.min(most));
        // Doubled, so that few raises follow a long rise. The block's actual base fee is charged, not the bid.
        let wanted = market.base_fee.max(self.max_fee).saturating_mul(2).saturating_add(priority_fee);
        let bid = Bid { max_fee: wanted.min(most), priority_fee };
        if bid.max_fee < least.max_fee || bid.priority_fee > bid.max_fee { Next::Capped } else { Next::Raise(bid) }
    }

    /// Whether one of the next blocks would include it.
    fn is_taken(self, market: Market) -> bool {
        // The base fee rises by at most an eighth per block.
        let base_fee = market.base_fee.saturating_add(market.base_fee / 8);
        let left = self.max_fee.saturating_sub(base_fee).min(self.priority_fee);
        // Suggested priority fees fluctuate. Transactions below half of the suggestion are not mined.
        self.max_fee >= base_fee && left >= market.priority_fee / 2
    }
}

fn an_eighth_more(fee: u64) -> u64 {
    fee.saturating_add(fee / 8 + 1)
}

/// The most that one transaction may cost in fees, and the alarm for when that is too little.
#[derive(Clone, Debug)]
pub struct FeeCap {
    payments: PaymentConfig,
    metric_namespace: String,
}

impl FeeCap {
    pub fn of(config: &Config) -> FeeCap {
        FeeCap { payments: config.payments.clone(), metric_namespace: config.metric_namespace.clone() }
    }

    /// The highest bid per unit of gas, in wei.
    pub fn per_gas(&self, gas_limit: u64) -> u64 {
        u64::try_from(self.payments.fee_cap_wei() / u128::from(gas_limit.max(1))).unwrap_or(u64::MAX)
    }

    /// The most that the gas of a payment of this many micro-USDC may cost, in wei.
    pub fn share_of(&self, amount: &Word) -> u128 {
        self.payments.gas_share_wei(evm::word_to_u64(amount).unwrap_or(u64::MAX))
    }

    /// Raises the alarm: the chain asks for more than the cap. `what` names the transaction for the operator.
    pub fn is_too_low(&self, what: &dyn std::fmt::Display) {
        let cap = self.payments.fee_cap_gwei;
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

    /// From zero to a thousand gwei, with any steps of the market: nodes accept every replacement, no bid is above the
    /// cap, no raise is unnecessary, and there are few raises.
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
    fn a_bid_follows_rising_priority_fees() {
        let bid = Bid { max_fee: 100 * GWEI, priority_fee: GWEI };
        assert_eq!(bid.next(market(GWEI, 2 * GWEI), u64::MAX), Next::Keep, "suggestions wander");
        let Next::Raise(raised) = bid.next(market(GWEI, 9 * GWEI), u64::MAX) else { panic!("not raised") };
        assert_eq!(raised.priority_fee, 9 * GWEI);
    }

    #[test]
    fn there_is_no_first_bid_below_the_market() {
        assert_eq!(Bid::first(market(10 * GWEI, GWEI), 12 * GWEI).map(|bid| bid.max_fee), Some(12 * GWEI));
        assert_eq!(Bid::first(market(10 * GWEI, GWEI), 11 * GWEI), None);
        // A first bid is raised to the cap once, then it waits.
        let bid = Bid { max_fee: 10 * GWEI, priority_fee: GWEI };
        let to_the_cap = Bid { max_fee: 12 * GWEI, priority_fee: an_eighth_more(GWEI) };
        assert_eq!(bid.next(market(30 * GWEI, GWEI), 12 * GWEI), Next::Raise(to_the_cap));
        assert_eq!(to_the_cap.next(market(30 * GWEI, GWEI), 12 * GWEI), Next::Capped);
        assert_eq!(bid.next(market(u64::MAX, u64::MAX), 11 * GWEI), Next::Capped, "a raise below a tenth is none");
        assert_eq!(bid.next(market(u64::MAX, 0), 5 * GWEI), Next::Capped, "the cap was lowered");
    }
}
