//! A charge: how one job is paid for, and the writes with which it begins and ends.
//!
//! ```text
//! begun ──► closed     the money is here and the work has ended: a part of the price is kept, the rest is credited
//!       ├─► undone     the money never came, and nothing was done for it: credits that were part of it come back
//!       └─► forfeited  the money never came for work that was done
//! ```
//!
//! It begins in the transaction that makes the job, and ends in the one that closes it, so neither happens twice.

use base::clock::Timestamp;
use base::ids::{AgentId, ReceiptId, RequestId, TokenId};
use base::money::Usdc;
use platform::store::{Db, StoreError, Write};
use serde::{Deserialize, Serialize};

use super::account::{Change, minus};
use super::budget::Budget;
use super::credit::{self, EntryKind};
use super::day::{self, Counted};
use super::hold::{self, HoldId};

/// How a job is paid for, kept with the job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charge {
    /// The part of the price that comes from credits, in micro-USDC. The rest is the signed payment's.
    #[serde(default)]
    pub credits: Usdc,
    /// The part that counts against the day's caps, in micro-USDC: the signed part of a wallet's call, the credits of a
    /// token's (contract §1.8).
    #[serde(default)]
    pub counted: Usdc,
    /// The UTC day it counts on.
    pub day: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenId>,
}

/// What a charge is for.
#[derive(Clone, Copy, Debug)]
pub struct Purchase<'a> {
    pub agent: AgentId,
    pub tool: &'a str,
    /// Who is paid: a soul's slug, or `service`.
    pub payee: &'a str,
    pub request_id: RequestId,
    pub receipt_id: &'a ReceiptId,
}

/// How a price is shared out when a charge is closed: `kept + credited` is the price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Close {
    /// micro-USDC
    pub kept: Usdc,
    /// Paid back as credits, in micro-USDC.
    pub credited: Usdc,
}

impl Close {
    /// Keeps so much of a price, and never more than all of it.
    pub fn keeping(price: Usdc, kept: Usdc) -> Close {
        let kept = kept.min(price);
        Close { kept, credited: price.checked_sub(kept).unwrap_or_default() }
    }
}

impl Charge {
    fn counted<'a>(&'a self, of: Purchase<'a>) -> Counted<'a> {
        Counted { day: &self.day, amount: self.counted, tool: of.tool, payee: of.payee, token: self.token }
    }

    /// The write that counts it against the day, if it counts.
    pub fn count(
        &self,
        db: &Db,
        of: Purchase<'_>,
        budget: Option<&Budget>,
        now: Timestamp,
    ) -> Result<Option<Write>, StoreError> {
        if self.counted == Usdc::ZERO {
            return Ok(None);
        }
        day::commit(db, of.agent, self.counted(of), budget, now).map(Some)
    }

    /// The writes that take the credits, under the rules the charge was judged by: from a quote's hold, or from what can
    /// be spent. The account's own write comes first; without credits it only checks the rules.
    pub fn take(
        &self,
        db: &Db,
        of: Purchase<'_>,
        held: Option<&HoldId>,
        rules: u32,
        now: Timestamp,
    ) -> Result<Vec<Write>, StoreError> {
        let mut change = Change { under_rules: Some(rules), ..Change::default() };
        if self.credits == Usdc::ZERO {
            return Ok(vec![change.write(db, of.agent)?]);
        }
        match held {
            Some(_) => change.reserved = minus(self.credits)?,
            None => change.credits = minus(self.credits)?,
        }
        let cause = of.receipt_id.as_str();
        let [entry, account] =
            credit::change(db, of.agent, EntryKind::Charge, change, cause, Some(of.request_id), now)?;
        let mut writes = vec![account, entry];
        if let Some(id) = held {
            writes.push(hold::capture(db, of.agent, id, self.credits)?);
        }
        Ok(writes)
    }

    /// The writes that end a charge whose money arrived. What is kept goes on counting against the day's caps, as far as
    /// it counted at all.
    pub fn close(&self, db: &Db, of: Purchase<'_>, close: Close, now: Timestamp) -> Result<Vec<Write>, StoreError> {
        let back = self.counted.checked_sub(close.kept).unwrap_or_default();
        let mut writes = self.end(db, of, back)?;
        if close.credited > Usdc::ZERO {
            let (cause, back) = (of.receipt_id.as_str(), credit::add(close.credited)?);
            writes.extend(credit::change(db, of.agent, EntryKind::Refund, back, cause, Some(of.request_id), now)?);
        }
        Ok(writes)
    }

    /// The writes that undo a charge whose signed part will not be paid: only the credits come back.
    pub fn undo(&self, db: &Db, of: Purchase<'_>, now: Timestamp) -> Result<Vec<Write>, StoreError> {
        let mut writes = self.end(db, of, self.counted)?;
        if self.credits > Usdc::ZERO {
            let (cause, back) = (of.receipt_id.as_str(), credit::add(self.credits)?);
            writes.extend(credit::change(db, of.agent, EntryKind::Release, back, cause, Some(of.request_id), now)?);
        }
        Ok(writes)
    }

    /// The writes after which work that was done is known never to be paid: its credits stay taken.
    pub fn forfeit(&self, db: &Db, of: Purchase<'_>) -> Result<Vec<Write>, StoreError> {
        self.end(db, of, self.counted)
    }

    /// The writes after which a charge that stood is in flight again: its signed part is gone.
    pub fn resume(&self, db: &Db, of: Purchase<'_>) -> Result<Vec<Write>, StoreError> {
        if self.counted == Usdc::ZERO {
            return Ok(Vec::new());
        }
        Ok(vec![day::resume(db, of.agent, self.counted(of))?])
    }

    /// The writes after which a charge that was in flight again stands as it did before.
    pub fn stand(&self, db: &Db, of: Purchase<'_>) -> Result<Vec<Write>, StoreError> {
        self.end(db, of, Usdc::ZERO)
    }

    fn end(&self, db: &Db, of: Purchase<'_>, back: Usdc) -> Result<Vec<Write>, StoreError> {
        if self.counted == Usdc::ZERO {
            return Ok(Vec::new());
        }
        Ok(vec![day::end(db, of.agent, self.counted(of), back)?])
    }
}
