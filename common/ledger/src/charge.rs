//! A charge: how one job is paid for, and the writes that begin and end it.
//!
//! ```text
//! begun ──► closed     the money is here and the work has ended: a part of the price is kept, the rest is credited
//!       ├─► undone     the money never came and no work was done: the credit part comes back
//!       └─► forfeited  the money never came, but the work was done
//! ```
//!
//! A call that a goal makes is paid from the goal's purse ([`super::purse`]) instead of the account. The goal's own charge ends only with
//! its purse.
//!
//! It begins in the transaction that creates the job and ends in the one that closes the job, so each happens once.

use base::clock::Timestamp;
use base::ids::{AgentId, ReceiptId, RequestId, TokenId};
use base::money::Usdc;
use platform::store::{Db, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::account::{Change, minus, plus};
use super::budget::Budget;
use super::credit::{self, EntryKind};
use super::day::{self, Counted};
use super::hold::{self, HoldId};
use super::purse::{self, FromPurse};
use super::token_spend;

/// How a job is paid for. Stored with the job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The part of the price paid with credits, in micro-USDC. The signed payment covers the rest.
    #[serde(default)]
    pub credits: Usdc,
    /// The part of these credits that was bought by card, in micro-USDC.
    #[serde(default, skip_serializing_if = "Usdc::is_zero")]
    pub card: Usdc,
    /// What counts against the caps of a day and of its token, in micro-USDC: the price, or nothing if it buys credits. What is
    /// paid back no longer counts (see [`super::cost`]).
    #[serde(default)]
    pub counted: Usdc,
    /// The UTC day on which it counts.
    pub day: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
    /// The token has a cap for life, so the charge counts in the token's own row too (see [`token_spend`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub for_life: bool,
    /// The goal that pays for it. The account's credits are not touched then, and it counts only for its tool and its seller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purse: Option<FromPurse>,
    /// It pays for a goal, whose calls spend it: it ends only with the goal's purse.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub funds: bool,
}

/// The purchase that a charge pays for.
#[derive(Clone, Copy, Debug)]
pub struct Purchase<'a> {
    pub agent: AgentId,
    pub tool: &'a str,
    /// The payee: a soul's slug, or `service`.
    pub payee: &'a str,
    pub request_id: RequestId,
    pub receipt_id: &'a ReceiptId,
}

/// How a price is divided when a charge is closed: `kept + credited` is the price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    /// micro-USDC
    pub kept: Usdc,
    /// Refunded as credits, in micro-USDC.
    pub credited: Usdc,
    /// Added to the payer's record of settled payments, in micro-USDC.
    pub settled: Usdc,
}

impl Close {
    /// Keeps `kept` of a price, at most all of it.
    pub fn keeping(price: Usdc, kept: Usdc) -> Close {
        let kept = kept.min(price);
        Close { kept, credited: price.checked_sub(kept).unwrap_or_default(), settled: Usdc::ZERO }
    }
}

impl Charge {
    fn counted<'a>(&'a self, of: Purchase<'a>) -> Counted<'a> {
        let amount = self.purse.map_or(self.counted, |purse| purse.amount);
        Counted { day: &self.day, amount, tool: of.tool, payee: of.payee, token: self.token }
    }

    /// The write that counts it against the day, under the budget and the daily cap of the token. `None` if nothing counts.
    pub fn count(
        &self,
        db: &Db,
        of: Purchase<'_>,
        budget: Option<&Budget>,
        token_daily: Option<Usdc>,
        now: Timestamp,
    ) -> Result<Option<Write>, StoreError> {
        if self.purse.is_some() {
            return day::commit_within(db, of.agent, self.counted(of), budget, now).map(Some);
        }
        if self.counted == Usdc::ZERO {
            return Ok(None);
        }
        day::commit(db, of.agent, self.counted(of), budget, token_daily, now).map(Some)
    }

    /// The write that counts it against `cap`, the token's cap for life. `None` if nothing counts.
    pub fn count_for_life(&self, db: &Db, of: Purchase<'_>, cap: Option<Usdc>) -> Result<Option<Write>, StoreError> {
        match (self.of_life(), cap) {
            (Some(token), Some(cap)) => token_spend::commit(db, of.agent, token, self.counted, cap).map(Some),
            _ => Ok(None),
        }
    }

    /// The token in whose own row the charge counts.
    fn of_life(&self) -> Option<TokenId> {
        self.token.filter(|_| self.for_life && self.counted > Usdc::ZERO)
    }

    /// The writes that take the credits, under the rules the charge was judged by: from a quote's hold, from the spendable
    /// credits, or from a goal's purse. The account's write comes first; without credits it only checks the rules.
    pub fn take(
        &self,
        db: &Db,
        of: Purchase<'_>,
        held: Option<&HoldId>,
        rules: u32,
        now: Timestamp,
    ) -> Result<Vec<Write>, StoreError> {
        let mut change = Change { under_rules: Some(rules), ..Change::default() };
        if let Some(from) = self.purse {
            return Ok(vec![change.write(db, of.agent)?, purse::take(db, of.agent, from, self.card)?]);
        }
        if self.credits == Usdc::ZERO {
            return Ok(vec![change.write(db, of.agent)?]);
        }
        match held {
            Some(_) => change.reserved = minus(self.credits)?,
            None => change.credits = minus(self.credits)?,
        }
        change.card = minus(self.card)?;
        let cause = of.receipt_id.as_str();
        let [entry, account] =
            credit::change(db, of.agent, EntryKind::Charge, change, cause, Some(of.request_id), now)?;
        let mut writes = vec![account, entry];
        if let Some(id) = held {
            writes.push(hold::capture(db, of.agent, id, self.credits)?);
        }
        Ok(writes)
    }

    /// The writes that end a charge whose money arrived. The kept part still counts against the day's caps.
    pub fn close(&self, db: &Db, of: Purchase<'_>, close: Close, now: Timestamp) -> Result<Vec<Write>, StoreError> {
        if let Some(from) = self.purse {
            return self.end_in_purse(db, of, from, close.kept);
        }
        let back = self.counted.checked_sub(close.kept).unwrap_or_default();
        let mut writes = self.end(db, of, back)?;
        if self.funds {
            writes.push(purse::closed(db, of.agent, of.request_id, close.kept)?);
        }
        if close.credited > Usdc::ZERO {
            let back = credit::add_marked(close.credited, self.card.min(close.credited))?;
            // One write of the account: a transaction may write an item once.
            let back = Change { settled: plus(close.settled)?, ..back };
            let cause = of.receipt_id.as_str();
            writes.extend(credit::change(db, of.agent, EntryKind::Refund, back, cause, Some(of.request_id), now)?);
        } else if close.settled > Usdc::ZERO {
            writes.push(Change { settled: plus(close.settled)?, ..Change::default() }.write(db, of.agent)?);
        }
        Ok(writes)
    }

    /// The writes that undo a charge whose signed part will not be paid. Only the credits come back.
    pub fn undo(&self, db: &Db, of: Purchase<'_>, now: Timestamp) -> Result<Vec<Write>, StoreError> {
        if let Some(from) = self.purse {
            return self.end_in_purse(db, of, from, Usdc::ZERO);
        }
        let mut writes = self.end(db, of, self.counted)?;
        if self.funds {
            writes.push(purse::unused(db, of.agent, of.request_id)?);
        }
        if self.credits > Usdc::ZERO {
            let (cause, back) = (of.receipt_id.as_str(), credit::add_marked(self.credits, self.card)?);
            writes.extend(credit::change(db, of.agent, EntryKind::Release, back, cause, Some(of.request_id), now)?);
        }
        Ok(writes)
    }

    /// The writes that end a charge whose work was done but will never be paid. Its credits stay taken, and go on counting.
    /// `kept`: the part of the price that still counts, if the charge was closed with less than the whole price before.
    pub fn forfeit(&self, db: &Db, of: Purchase<'_>, kept: Option<Usdc>) -> Result<Vec<Write>, StoreError> {
        let counts = kept.map_or(self.counted, |kept| kept.min(self.counted));
        self.end(db, of, counts.checked_sub(self.credits).unwrap_or_default())
    }

    /// The writes after which `back` of an ended charge no longer counts.
    pub fn give_back(&self, db: &Db, of: Purchase<'_>, back: Usdc) -> Result<Vec<Write>, StoreError> {
        if self.counted == Usdc::ZERO {
            return Ok(Vec::new());
        }
        let mut writes = vec![day::give_back(db, of.agent, self.counted(of), back)?];
        if let Some(token) = self.of_life() {
            writes.push(token_spend::give_back(db, of.agent, token, back)?);
        }
        Ok(writes)
    }

    /// The writes that put an ended charge in flight again, because its signed part disappeared from the chain.
    pub fn resume(&self, db: &Db, of: Purchase<'_>) -> Result<Vec<Write>, StoreError> {
        if self.counted == Usdc::ZERO {
            return Ok(Vec::new());
        }
        Ok(vec![day::resume(db, of.agent, self.counted(of))?])
    }

    /// The writes that end a resumed charge with its earlier result.
    pub fn stand(&self, db: &Db, of: Purchase<'_>) -> Result<Vec<Write>, StoreError> {
        self.end(db, of, Usdc::ZERO)
    }

    /// The writes that end a call which its goal pays, and that keep `kept` of its price.
    fn end_in_purse(&self, db: &Db, of: Purchase<'_>, from: FromPurse, kept: Usdc) -> Result<Vec<Write>, StoreError> {
        let back = from.amount.checked_sub(kept).unwrap_or_default();
        let mut writes = vec![purse::end(db, of.agent, from, kept, self.card)?];
        if back > Usdc::ZERO {
            writes.push(day::end_within(db, of.agent, self.counted(of), back)?);
        }
        Ok(writes)
    }

    fn end(&self, db: &Db, of: Purchase<'_>, back: Usdc) -> Result<Vec<Write>, StoreError> {
        if self.counted == Usdc::ZERO {
            return Ok(Vec::new());
        }
        let mut writes = vec![day::end(db, of.agent, self.counted(of), back)?];
        if let Some(token) = self.of_life().filter(|_| back > Usdc::ZERO) {
            writes.push(token_spend::give_back(db, of.agent, token, back)?);
        }
        Ok(writes)
    }
}
