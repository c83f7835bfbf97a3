//! The owner's rules, asked before any money moves: freezes and budgets.
//!
//! They are judged when a price is quoted, so that nobody signs for what will be refused, and again in the claim: the
//! account's rules must still be those that were judged, and the day's counters hold the caps in the same transaction.

use super::Gate;
use super::order::Order;
use crate::auth::Caller;
use crate::clock::Timestamp;
use crate::http::ApiError;
use crate::http::error::OverBudget;
use crate::ids::{AgentId, TokenId};
use crate::ledger::account::Account;
use crate::ledger::budget::{Budget, Cap};
use crate::ledger::day::{self, Counted, Day};
use crate::ledger::freeze::SERVICE_PAYEE;
use crate::money::Usdc;
use crate::store::StoreError;

/// A charge as the rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Proposed {
    pub agent: AgentId,
    pub token: Option<TokenId>,
    /// The whole price.
    pub price: Usdc,
    /// What of it counts against the day.
    pub counted: Usdc,
}

impl Proposed {
    /// What a caller's call would be charged, with so much of it from credits.
    pub fn by(caller: &Caller, price: Usdc, credits: Usdc) -> Proposed {
        let counted = match caller.token() {
            Some(_) => price,
            None => price.checked_sub(credits).unwrap_or_default(),
        };
        Proposed { agent: caller.agent, token: caller.token(), price, counted }
    }
}

impl Gate {
    /// Refuses what the owner's rules do not allow.
    pub(super) async fn check_rules(
        &self,
        order: &Order<'_>,
        account: &Account,
        proposed: Proposed,
    ) -> Result<(), ApiError> {
        if order.tool.sells_credits {
            return Ok(());
        }
        if let Some(what) = account.frozen.stops(proposed.token, order.tool.name, SERVICE_PAYEE) {
            return Err(ApiError::Frozen { what });
        }
        let Some(budget) = &account.budget else { return Ok(()) };
        if budget.per_transaction.is_some_and(|cap| proposed.price > cap)
            || budget.daily.is_some()
            || !budget.tools.is_empty()
            || !budget.payees.is_empty()
        {
            let now = self.app.clock.now();
            let day = day::load(&self.app.db, proposed.agent, &day::name(now)).await?;
            if let Some(over) = over_budget(order, budget, &day, proposed, now) {
                return Err(ApiError::BudgetExceeded(Box::new(over)));
            }
        }
        Ok(())
    }

    /// The refusal of a charge whose day, as the claim found it, has no room for it.
    pub(super) fn day_is_full(&self, order: &Order<'_>, account: &Account, day: &Day, proposed: Proposed) -> ApiError {
        let now = self.app.clock.now();
        let over = account.budget.as_ref().and_then(|budget| over_budget(order, budget, day, proposed, now));
        match over {
            Some(over) => ApiError::BudgetExceeded(Box::new(over)),
            None => ApiError::Unavailable(StoreError::new("the day's counters refused a charge they have room for")),
        }
    }
}

/// The cap a charge would pass, if it would pass one.
fn over_budget(
    order: &Order<'_>,
    budget: &Budget,
    day: &Day,
    proposed: Proposed,
    now: Timestamp,
) -> Option<OverBudget> {
    let over = |cap: Cap, limit, spent, charge| OverBudget {
        reason: cap.as_str(),
        cap: limit,
        spent,
        in_flight: day.in_flight,
        charge,
        resets_at: day::resets_at(now),
    };
    if let Some(cap) = budget.per_transaction.filter(|cap| proposed.price > *cap) {
        return Some(over(Cap::PerTransaction, cap, day.committed, proposed.price));
    }
    if proposed.counted == Usdc::ZERO {
        return None;
    }
    let counted = Counted {
        day: &day::name(now),
        amount: proposed.counted,
        tool: order.tool.name,
        payee: SERVICE_PAYEE,
        token: proposed.token,
    };
    let (cap, limit, spent) = day.passes(budget, counted)?;
    Some(over(cap, limit, spent, proposed.counted))
}
