//! A card payment for credits, and its reversals: refunds and the card holder's disputes.
//!
//! The processor sends events more than once, out of order, and possibly before the payment itself. So each event is merged
//! into one record of the payment, and the result does not depend on their order. Then the difference is booked: refunds
//! and disputes together are taken back from the credits, at most what was paid. Record and entry are written together,
//! with a condition on the record's revision, so each difference is booked once.
//!
//! | the process dies | state | consequence |
//! |---|---|---|
//! | before the record is written | nothing new | the processor sends the event again |
//! | after that write, before the answer to the processor | record and entry | the processor sends the event again, which changes nothing |
//! | after booking, before the debt is collected | the debt | no credits can be spent before it is paid |

use std::collections::BTreeMap;

use base::clock::Timestamp;
use base::ids::AgentId;
use base::money::Usdc;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use super::credit::{self, EntryKind};
use super::{account, debt};

/// Attempts when others change the record at the same time.
const TRIES: u32 = 20;

/// An event. `at` is its creation time at the processor (unix seconds).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardEvent {
    /// A session was paid.
    Paid { session: String, agent: AgentId, amount: Usdc },
    /// The state of a refund or a dispute.
    TakenBack { id: String, part: TakenBack },
    /// The total refunded of the payment.
    Refunded { amount: Usdc, at: i64 },
}

/// The latest state of a refund or a dispute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenBack {
    /// micro-USDC
    pub amount: Usdc,
    pub is_dispute: bool,
    /// The money is gone, or on its way back to the card.
    pub counts: bool,
    pub at: i64,
    /// Orders events of the same second. The event with the higher rank is the later one.
    pub rank: u8,
}

/// The state of a payment, merged from its events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CardPayment {
    /// The agent that bought credits; unknown before the session's own event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentId>,
    /// micro-USDC
    paid: Usdc,
    /// Refunds and disputes by their ids.
    parts: BTreeMap<String, TakenBack>,
    /// The total refunded according to the payment's own events, and the time of that event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refunded: Option<(Usdc, i64)>,
    /// micro-USDC already taken back.
    booked: Usdc,
    revision: u32,
}

impl CardPayment {
    fn merge(&mut self, event: &CardEvent) {
        match event {
            CardEvent::Paid { agent, amount, .. } => (self.agent, self.paid) = (Some(*agent), *amount),
            CardEvent::Refunded { amount, at } => {
                if self.refunded.is_none_or(|(known, when)| (when, known) < (*at, *amount)) {
                    self.refunded = Some((*amount, *at));
                }
            }
            CardEvent::TakenBack { id, part } => {
                if self.parts.get(id).is_none_or(|known| (known.at, known.rank) <= (part.at, part.rank)) {
                    self.parts.insert(id.clone(), part.clone());
                }
            }
        }
    }

    /// The amount that must be taken back in total.
    fn owed(&self) -> Usdc {
        let sum = |of: &dyn Fn(&&TakenBack) -> bool| {
            self.parts
                .values()
                .filter(of)
                .fold(Usdc::ZERO, |sum, part| sum.checked_add(part.amount).unwrap_or(self.paid))
        };
        let refunds = sum(&|part| part.counts && !part.is_dispute);
        // When a refund fails, no new event comes for the payment.
        let refunded = self.refunded.map_or(Usdc::ZERO, |(amount, at)| {
            let failed = sum(&|part| !part.counts && !part.is_dispute && part.at >= at);
            amount.checked_sub(failed).unwrap_or_default()
        });
        let disputes = sum(&|part| part.counts && part.is_dispute);
        refunds.max(refunded).checked_add(disputes).unwrap_or(self.paid).min(self.paid)
    }
}

/// The result of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Booked {
    /// micro-USDC of credits taken back.
    pub taken: Usdc,
    /// micro-USDC of credits given back.
    pub returned: Usdc,
    /// The agent's debt now, in micro-USDC.
    pub owed: Usdc,
    /// No session event has come for this payment yet.
    pub is_unknown: bool,
}

fn key(payment: &str) -> Key {
    Key::new(format!("CARD#{payment}"), "PAYMENT")
}

/// Merges an event of a payment and books the difference.
pub async fn note(db: &Db, payment: &str, event: &CardEvent, now: Timestamp) -> Result<Booked, StoreError> {
    let mut done = Booked::default();
    for _ in 0..TRIES {
        let before: Option<CardPayment> = db.get_latest(&db.tables.ledger, key(payment)).await?;
        let (is_new, before) = (before.is_none(), before.unwrap_or_default());
        let mut next = before.clone();
        next.merge(event);
        let mut writes = Vec::new();
        let mut step = Booked::default();
        match (before.agent, next.agent) {
            (None, Some(agent)) => {
                let CardEvent::Paid { session, .. } = event else {
                    return Err(StoreError::new("a card payment got an agent from an event without a session"));
                };
                let change = credit::add_marked(next.paid, next.paid)?;
                writes.extend(credit::change(db, agent, EntryKind::CardTopUp, change, session, None, now)?);
            }
            (_, Some(agent)) => {
                let (owed, cause) = (next.owed(), format!("{payment}#{}", before.revision));
                if let Some(more) = owed.checked_sub(next.booked).filter(|more| *more > Usdc::ZERO) {
                    writes.extend(debt::owe(db, agent, EntryKind::CardReversal, more, &cause, None, now)?);
                    step.taken = more;
                } else if let Some(less) = next.booked.checked_sub(owed).filter(|less| *less > Usdc::ZERO) {
                    let change = credit::add_marked(less, less)?;
                    writes.extend(credit::change(db, agent, EntryKind::CardReinstated, change, &cause, None, now)?);
                    step.returned = less;
                }
                next.booked = owed;
            }
            (_, None) => done.is_unknown = true,
        }
        if next == before {
            if let Some(agent) = next.agent {
                let account = account::load(db, agent).await?;
                done.owed = debt::collect(db, agent, account, now).await?.debt;
            }
            return Ok(done);
        }
        next.revision = before.revision + 1;
        let put = Write::put(&db.tables.ledger, key(payment), &next)?;
        let put = match is_new {
            true => put.only_if_new(),
            false => put.only_if("#revision = :revision").bind("revision", before.revision)?,
        };
        writes.insert(0, put);
        let outcome = db.transact(&writes).await;
        let credited_before = |refused: &WriteError| refused.refused(0).is_none() && refused.refused(1).is_some();
        match outcome {
            Ok(()) => {
                done.taken = done.taken.checked_add(step.taken).unwrap_or(done.taken);
                done.returned = done.returned.checked_add(step.returned).unwrap_or(done.returned);
            }
            // The session was credited before payment records existed: only the record is missing.
            Err(refused) if before.agent.is_none() && credited_before(&refused) => {
                match db.transact(&writes[..1]).await {
                    Ok(()) | Err(WriteError::Refused(_)) => {}
                    Err(WriteError::Failed(error)) => return Err(error),
                }
            }
            // Another event was written first.
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Err(StoreError::new("too many concurrent changes of a card payment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(id: &str, is_dispute: bool, amount: u64, counts: bool, at: i64, rank: u8) -> CardEvent {
        let part = TakenBack { amount: Usdc::from_micro(amount), is_dispute, counts, at, rank };
        CardEvent::TakenBack { id: id.to_owned(), part }
    }

    /// The amount owed after these events of a payment of 5.00, merged in any order and twice.
    fn owed(events: &[CardEvent]) -> u64 {
        let paid = CardEvent::Paid {
            session: "cs_1".to_owned(),
            agent: AgentId::from_bytes([1; 16]),
            amount: Usdc::from_micro(5_000_000),
        };
        let all: Vec<&CardEvent> = std::iter::once(&paid).chain(events).collect();
        let mut results = Vec::new();
        for turn in 0..all.len() {
            for backwards in [false, true] {
                let mut order: Vec<&CardEvent> = all[turn..].iter().chain(&all[..turn]).copied().collect();
                if backwards {
                    order.reverse();
                }
                let mut payment = CardPayment::default();
                for event in order.iter().chain(&order) {
                    payment.merge(event);
                }
                results.push(payment.owed().micro());
            }
        }
        results.dedup();
        assert_eq!(results.len(), 1, "whatever the order: {results:?}");
        results[0]
    }

    #[test]
    fn refunds_and_disputes_add_up_in_any_order() {
        let refunded = |amount, at| CardEvent::Refunded { amount: Usdc::from_micro(amount), at };
        assert_eq!(owed(&[]), 0);
        assert_eq!(
            owed(&[part("re_1", false, 2_000_000, true, 10, 0), part("re_1", false, 2_000_000, true, 11, 1)]),
            2_000_000
        );
        let both = [part("re_1", false, 2_000_000, true, 10, 1), part("re_2", false, 1_000_000, true, 12, 1)];
        assert_eq!(owed(&both), 3_000_000);
        // The payment's own events repeat the same amounts, or come alone.
        assert_eq!(owed(&[&both[..], &[refunded(2_000_000, 10), refunded(3_000_000, 12)]].concat()), 3_000_000);
        assert_eq!(owed(&[refunded(2_000_000, 10), refunded(3_000_000, 12)]), 3_000_000);
        // A failed refund is no longer taken back.
        let failed = part("re_1", false, 2_000_000, false, 20, 2);
        assert_eq!(owed(&[both[0].clone(), failed.clone(), refunded(2_000_000, 10)]), 0);
        assert_eq!(owed(&[both[0].clone(), failed, refunded(2_000_000, 30)]), 2_000_000, "refunded again later");
        // A dispute: opened, withdrawn, won, reinstated, in one second or in several.
        let opened = part("du_1", true, 5_000_000, true, 40, 0);
        assert_eq!(owed(std::slice::from_ref(&opened)), 5_000_000);
        assert_eq!(owed(&[opened.clone(), part("du_1", true, 5_000_000, true, 41, 2)]), 5_000_000);
        assert_eq!(owed(&[opened.clone(), part("du_1", true, 5_000_000, false, 40, 3)]), 0);
        assert_eq!(
            owed(&[
                opened.clone(),
                part("du_1", true, 5_000_000, true, 50, 3),
                part("du_1", true, 5_000_000, false, 60, 4)
            ]),
            0
        );
        // Never more than was paid.
        assert_eq!(owed(&[both[0].clone(), opened]), 5_000_000);
        assert_eq!(
            owed(&[part("du_2", true, u64::MAX, true, 1, 0), part("du_3", true, u64::MAX, true, 1, 0)]),
            5_000_000
        );
    }
}
