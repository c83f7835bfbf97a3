//! The owner's rules, checked before any money moves: freezes, budgets, caps of access tokens and the action policy.
//!
//! They are checked when a price is quoted, so that nobody signs a payment that will be refused, and again in the claim.
//! There, conditions in the same transaction ensure that the account's rules are still those that were checked, and that
//! the counters of the day and of the token stay within the caps. A token's caps never change, so those that were read with
//! the token apply.

use base::clock::Timestamp;
use base::digest::{canonical_json, sha256_parts};
use base::ids::{AgentId, TokenId};
use base::money::Usdc;
use evm::Address;
use http::HeaderMap;
use ledger::account::Account;
use ledger::budget::{Budget, Cap};
use ledger::budget_warning;
use ledger::charge::Charge;
use ledger::day::{self, Counted, Day};
use ledger::notifications::{self, Notification, NotificationKind};
use ledger::receipt::Judged;
use ledger::token_spend::{self, TokenSpend};
use platform::auth::Caller;
use platform::auth::token::TokenCaps;
use platform::http::ApiError;
use platform::http::error::OverBudget;
use platform::http::{headers, log};
use platform::store::{StoreError, Write, WriteError};
use serde_json::{Map, Value, json};
use tools::spec::ToolSpec;

use super::Gate;
use super::order::Order;
use crate::approvals::gate::approval_was_used;
use crate::approvals::{GateCall, GateVerdict, gate_check};

/// A charge that the rules are to allow.
#[derive(Clone, Copy, Debug)]
pub struct Proposed {
    pub agent: AgentId,
    pub token: Option<TokenId>,
    /// The token's own caps.
    pub caps: TokenCaps,
    /// The whole price. It counts against all caps, however it is paid.
    pub price: Usdc,
}

impl Proposed {
    /// The charge of a caller's call.
    pub fn by(caller: &Caller, price: Usdc) -> Proposed {
        Proposed { agent: caller.agent, token: caller.token(), caps: caller.caps(), price }
    }
}

/// What counts of a tool's price against caps of days and tokens. Bought credits do not: what they pay for does.
pub fn counted(tool: &ToolSpec, price: Usdc) -> Usdc {
    if tool.sells_credits { Usdc::ZERO } else { price }
}

impl Gate {
    /// Refuses or holds a call that the owner's action policy does not allow. With `consume` (the paid request), also
    /// returns the write that uses up the approval of a held call.
    pub(super) async fn check_policy(
        &self,
        order: &Order<'_>,
        account: &Account,
        (wallet, token): (Address, Option<TokenId>),
        amount: Usdc,
        consume: bool,
    ) -> Result<(Judged, Option<Write>), ApiError> {
        let judged = Judged { rules: account.rules, by_policy: false, approval_id: None };
        if order.tool.sells_credits || !account.policy {
            return Ok((judged, None));
        }
        let judged = Judged { by_policy: true, ..judged };
        let seen = order.seen_by_rules();
        let call = GateCall { consume, ..self.gate_call(order, &seen, (wallet, token), amount) };
        match gate_check(&self.app.db, &self.notices, &call).await? {
            GateVerdict::Allowed => Ok((judged, None)),
            GateVerdict::Released { approval_id, consume } => {
                let judged = Judged { approval_id: Some(approval_id.to_string()), ..judged };
                Ok((judged, consume.map(|write| *write)))
            }
        }
    }

    /// A call as the action policy judges it; `seen`: [`Order::seen_by_rules`].
    pub(super) fn gate_call<'a>(
        &self,
        order: &'a Order<'_>,
        seen: &'a Map<String, Value>,
        (wallet, token): (Address, Option<TokenId>),
        amount: Usdc,
    ) -> GateCall<'a> {
        GateCall {
            wallet,
            token,
            tool: order.tool,
            listing: order.listing,
            input: seen,
            amount,
            body: &order.body,
            approval_id: order.approval_id,
            consume: false,
            wakes: None,
            now: self.app.clock.now(),
        }
    }

    /// Refuses or holds a free action that the owner's action policy does not allow: it is judged like a call of `tool` with
    /// this input that costs nothing. An approval that releases it (`X-Approval-Id`) is used up.
    ///
    /// # Errors
    /// Those of [`gate_check`].
    pub async fn check_free(
        &self,
        tool: &ToolSpec,
        caller: &Caller,
        input: &Map<String, Value>,
        headers: &HeaderMap,
    ) -> Result<(), ApiError> {
        let canonical = canonical_json(&Value::Object(input.clone()));
        // The approval of a bought call with the same body releases no free one.
        let body = sha256_parts(&[b"free".as_slice(), canonical.as_bytes()]);
        let call = GateCall {
            wallet: caller.wallet,
            token: caller.token(),
            tool,
            listing: None,
            input,
            amount: Usdc::ZERO,
            body: &body,
            approval_id: headers::approval_id(headers)?,
            consume: true,
            wakes: None,
            now: self.app.clock.now(),
        };
        let GateVerdict::Released { consume: Some(consume), .. } =
            gate_check(&self.app.db, &self.notices, &call).await?
        else {
            return Ok(());
        };
        // A transaction is not refused by its own success if its answer is lost.
        match self.app.db.transact(&[*consume]).await {
            Ok(()) => Ok(()),
            Err(WriteError::Refused(_)) => Err(approval_was_used()),
            Err(WriteError::Failed(error)) => Err(error.into()),
        }
    }

    /// Refuses what the owner's rules do not allow, with the counters of day and token as they are now. For quotes and dry
    /// runs; writes nothing.
    pub(super) async fn check_rules(
        &self,
        order: &Order<'_>,
        account: &Account,
        proposed: Proposed,
    ) -> Result<(), ApiError> {
        check_account(order, account, proposed)?;
        // Buying credits is not limited.
        if order.tool.sells_credits {
            return Ok(());
        }
        let budget = account.budget.as_ref();
        if budget.is_some_and(Budget::caps_days) || proposed.caps.daily.is_some() {
            self.check_day(order, budget, proposed).await?;
        }
        let (Some(_), Some(token)) = (proposed.caps.lifetime, proposed.token) else { return Ok(()) };
        let spend = token_spend::load(&self.app.db, proposed.agent, token).await?;
        over_life(spend, proposed).map_or(Ok(()), |over| Err(ApiError::BudgetExceeded(Box::new(over))))
    }

    async fn check_day(&self, order: &Order<'_>, budget: Option<&Budget>, proposed: Proposed) -> Result<(), ApiError> {
        let now = self.app.clock.now();
        let day = day::load(&self.app.db, proposed.agent, &day::name(now)).await?;
        match over_budget(order, budget, &day, proposed, now) {
            Some(over) => Err(ApiError::BudgetExceeded(Box::new(over))),
            None => Ok(()),
        }
    }

    /// Notifies the owner, once a day, when the day's spending has reached the alert level. After an error, the next charge
    /// tries again.
    pub(super) async fn warn_of_budget(&self, agent: AgentId, charge: &Charge, account: &Account) {
        if charge.counted > Usdc::ZERO {
            budget_warning::raise(&self.app.db, agent, &charge.day, account, self.app.clock.now()).await;
        }
    }

    /// Notifies the owner, once a day for each cap, that it stopped a paid call. A token's caps are told apart by the token.
    pub(super) async fn tell_over_budget(&self, agent: AgentId, token: Option<TokenId>, refused: &ApiError) {
        let ApiError::BudgetExceeded(over) = refused else { return };
        let token = token.filter(|_| over.reason.starts_with("token_"));
        let mut about = refused.body()["budget"].clone();
        if let Some(token) = token {
            about["token_id"] = json!(token.to_string());
        }
        let note = Notification {
            kind: NotificationKind::BudgetExceeded,
            title: format!("a call was stopped by the {} cap of {} USDC", over.reason.replace('_', " "), over.cap),
            body: None,
            payload: Some(about),
        };
        if let Err(error) = self.tell_once_a_day(agent, over.reason, token, note).await {
            log::failure("the owner could not be notified of a stopped call", &error);
        }
    }

    /// Raises the notification at the first stop of a day, with that stop's time.
    async fn tell_once_a_day(
        &self,
        agent: AgentId,
        cap: &str,
        token: Option<TokenId>,
        note: Notification,
    ) -> Result<(), StoreError> {
        let (db, now) = (&self.app.db, self.app.clock.now());
        let name = day::name(now);
        // An agent may go on asking: all but the first stop of a day cost a read.
        if day::load(db, agent, &name).await?.told_of(cap, token) {
            return Ok(());
        }
        let of_token = token.map(|token| format!("#{token}")).unwrap_or_default();
        let cause = format!("budget_exceeded#{name}#{cap}{of_token}");
        let mark = day::tell(db, agent, &name, cap, token, now)?;
        match db.transact(&[mark, notifications::raise(db, agent, note, &cause, now)?]).await {
            Ok(()) | Err(WriteError::Refused(_)) => Ok(()),
            Err(WriteError::Failed(error)) => Err(error),
        }
    }
}

/// The refusal of a charge that would exceed a cap of the day. `day` holds the counters that made the claim's condition fail.
pub(super) fn day_is_full(
    order: &Order<'_>,
    account: &Account,
    day: &Day,
    proposed: Proposed,
    now: Timestamp,
) -> ApiError {
    match over_budget(order, account.budget.as_ref(), day, proposed, now) {
        Some(over) => ApiError::BudgetExceeded(Box::new(over)),
        None => ApiError::Unavailable(StoreError::new("the day's counters refused a charge they have room for")),
    }
}

/// Refuses what the account and the token alone forbid: freezes and the caps per transaction. The claim checks only this,
/// because conditions of its own writes enforce the other caps.
pub(super) fn check_account(order: &Order<'_>, account: &Account, proposed: Proposed) -> Result<(), ApiError> {
    if order.tool.sells_credits {
        return Ok(());
    }
    if let Some(what) = account.frozen.stops(proposed.token, order.tool.name, order.payee()) {
        return Err(ApiError::Frozen { what });
    }
    match above_one_call(account.budget.as_ref(), proposed) {
        Some(over) => Err(ApiError::BudgetExceeded(Box::new(over))),
        None => Ok(()),
    }
}

/// The refusal of a charge that would exceed the token's cap for life. `spend` made the claim's condition fail.
pub(super) fn token_is_spent(spend: TokenSpend, proposed: Proposed) -> ApiError {
    match over_life(spend, proposed) {
        Some(over) => ApiError::BudgetExceeded(Box::new(over)),
        None => ApiError::Unavailable(StoreError::new("the token's counter refused a charge it has room for")),
    }
}

/// The cap per call that a price exceeds: the budget's, or the token's. No other charge counts against it, and no day resets
/// it: the agent would wait in vain.
fn above_one_call(budget: Option<&Budget>, proposed: Proposed) -> Option<OverBudget> {
    let caps = [
        (Cap::PerTransaction, budget.and_then(|budget| budget.per_transaction)),
        (Cap::TokenPerTransaction, proposed.caps.per_transaction),
    ];
    let (cap, limit) =
        caps.into_iter().find_map(|(cap, limit)| Some((cap, limit.filter(|limit| proposed.price > *limit)?)))?;
    Some(OverBudget {
        reason: cap.as_str(),
        cap: limit,
        spent: Usdc::ZERO,
        in_flight: Usdc::ZERO,
        charge: proposed.price,
        resets_at: None,
    })
}

/// What a charge that would exceed the token's cap for life is told.
fn over_life(spend: TokenSpend, proposed: Proposed) -> Option<OverBudget> {
    let cap = proposed.caps.lifetime.filter(|cap| spend.exceeds(*cap, proposed.price))?;
    Some(OverBudget {
        reason: Cap::TokenLifetime.as_str(),
        cap,
        spent: spend.spent,
        // Part of `spent`, and not counted on its own.
        in_flight: Usdc::ZERO,
        charge: proposed.price,
        resets_at: None,
    })
}

/// The cap on calls and days that a charge would exceed, if any.
fn over_budget(
    order: &Order<'_>,
    budget: Option<&Budget>,
    day: &Day,
    proposed: Proposed,
    now: Timestamp,
) -> Option<OverBudget> {
    if let Some(over) = above_one_call(budget, proposed) {
        return Some(over);
    }
    if proposed.price == Usdc::ZERO {
        return None;
    }
    let counted = Counted {
        day: &day::name(now),
        amount: proposed.price,
        tool: order.tool.name,
        payee: order.payee(),
        token: proposed.token,
    };
    let (cap, limit, spent) = day.passes(budget, proposed.caps.daily, counted)?;
    Some(OverBudget {
        reason: cap.as_str(),
        cap: limit,
        spent,
        // The day counts what is open for the whole wallet only. Of it, at most `spent` counts against a tool, a payee or a
        // token.
        in_flight: day.in_flight.min(spent),
        charge: proposed.price,
        resets_at: Some(day::resets_at(now)),
    })
}
