//! Budgets: caps that an owner sets on the agent's spending. Rules only; the day's counters are in [`super::day`].

use std::collections::BTreeMap;

use base::money::Usdc;
use evm::Address;
use serde::{Deserialize, Serialize};

/// Shares are counted in millionths.
pub const WHOLE: u32 = 1_000_000;
/// Default of `alert_at`.
pub const DEFAULT_ALERT_AT: u32 = 800_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Daily cap (UTC day), in micro-USDC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daily: Option<Usdc>,
    /// Cap per call, in micro-USDC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_transaction: Option<Usdc>,
    /// Share of the daily cap at which the owner is warned, in millionths.
    pub alert_at: u32,
    /// Share of the daily cap at which spending stops, in millionths.
    pub pause_at: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alert_email: Option<String>,
    /// The wallet that set `alert_email`, for the mail: an agent's id says nothing to its owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wallet: Option<Address>,
    /// Daily caps by tool (wire name), in micro-USDC.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Usdc>,
    /// Daily caps by payee, in micro-USDC.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub payees: BTreeMap<String, Usdc>,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            daily: None,
            per_transaction: None,
            alert_at: DEFAULT_ALERT_AT,
            pause_at: WHOLE,
            alert_email: None,
            wallet: None,
            tools: BTreeMap::new(),
            payees: BTreeMap::new(),
        }
    }
}

/// The cap that stops a charge. `as_str` gives the `reason` on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cap {
    Daily,
    PerTransaction,
    Tool,
    Payee,
    /// The access token's own, as the next two.
    TokenDaily,
    TokenPerTransaction,
    TokenLifetime,
}

impl Cap {
    pub fn as_str(self) -> &'static str {
        match self {
            Cap::Daily => "daily",
            Cap::PerTransaction => "per_transaction",
            Cap::Tool => "tool",
            Cap::Payee => "payee",
            Cap::TokenDaily => "token_daily",
            Cap::TokenPerTransaction => "token_per_transaction",
            Cap::TokenLifetime => "token_lifetime",
        }
    }
}

impl Budget {
    /// The effective daily limit: the daily cap times `pause_at`, rounded down.
    pub fn daily_limit(&self) -> Option<Usdc> {
        self.daily.map(|daily| share(daily, self.pause_at))
    }

    /// Whether any cap applies to a day's spending.
    pub fn caps_days(&self) -> bool {
        self.daily.is_some() || !self.tools.is_empty() || !self.payees.is_empty()
    }

    /// Spending at which the owner is warned: at the latest where calls stop.
    pub fn alert_level(&self) -> Option<Usdc> {
        self.daily.map(|daily| share(daily, self.alert_at.min(self.pause_at)))
    }
}

/// A share of an amount, in millionths, rounded down.
fn share(amount: Usdc, millionths: u32) -> Usdc {
    let share = u128::from(amount.micro()) * u128::from(millionths) / u128::from(WHOLE);
    // `millionths` is at most WHOLE, so the share is at most the amount.
    Usdc::from_micro(u64::try_from(share).unwrap_or(amount.micro()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_cap_times_pause_at() {
        let budget = Budget { daily: Some(Usdc::from_micro(999_999)), pause_at: 500_000, ..Budget::default() };
        assert_eq!(budget.daily_limit(), Some(Usdc::from_micro(499_999)));
        assert_eq!(budget.alert_level(), budget.daily_limit(), "nobody is stopped without a warning");
        let whole = Budget { pause_at: WHOLE, ..budget };
        assert_eq!(whole.alert_level(), Some(Usdc::from_micro(799_999)));
        assert_eq!(Budget::default().daily_limit(), None);
        let most = Budget { daily: Some(Usdc::from_micro(u64::MAX)), ..Budget::default() };
        assert_eq!(most.daily_limit(), Some(Usdc::from_micro(u64::MAX)));
    }
}
