//! A card's payment for credits, and what of it was taken back: refunds, and disputes of the card's holder.
//!
//! The processor tells of it in events that are repeated, out of order, and may come before the payment itself. So each is
//! merged into one record of the payment, in a way that gives the same record whatever their order, and what the record
//! says is booked: as much of the credits is taken back as refunds and disputes come to, at most what was paid. Record and
//! entry are written together, under the record's revision, so that each difference is booked once.
//!
//! | the process dies | what is there | what follows |
//! |---|---|---|
//! | before the record is written | nothing new | the processor tells it again |
//! | after it, before its answer | record and entry | told again, the record says the same, and nothing is booked |
//! | between the booking and the collection of the debt | what is owed | no credits are spent before it is paid |

use std::collections::BTreeMap;

use base::clock::Timestamp;
use base::ids::AgentId;
use base::money::Usdc;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use super::credit::{self, EntryKind};
use super::{account, debt};

/// How often a record is tried that others change meanwhile.
const TRIES: u32 = 20;

/// What an event says. `at` is when the processor made it (unix seconds).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CardEvent {
    /// A session was paid.
    Paid { session: String, agent: AgentId, amount: Usdc },
    /// A refund, or a dispute, is in this state.
    TakenBack { id: String, part: TakenBack },
    /// All refunds of the payment come to this.
    Refunded { amount: Usdc, at: i64 },
}

/// A refund or a dispute, as it was told last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenBack {
    /// micro-USDC
    pub amount: Usdc,
    pub is_dispute: bool,
    /// Whether the money is gone, or is on its way back to the card.
    pub counts: bool,
    pub at: i64,
    /// Which of two events of one second is the later.
    pub rank: u8,
}

/// What is known of a payment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CardPayment {
    /// Who bought credits with it; not known before the session's own event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentId>,
    /// micro-USDC
    paid: Usdc,
    /// Refunds and disputes by their ids.
    parts: BTreeMap<String, TakenBack>,
    /// What all refunds came to, as the payment's own events say it, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refunded: Option<(Usdc, i64)>,
    /// What of it was booked: micro-USDC that were taken back.
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

    /// What is to be taken back by now.
    fn owed(&self) -> Usdc {
        let sum = |of: &dyn Fn(&&TakenBack) -> bool| {
            self.parts
                .values()
                .filter(of)
                .fold(Usdc::ZERO, |sum, part| sum.checked_add(part.amount).unwrap_or(self.paid))
        };
        let refunds = sum(&|part| part.counts && !part.is_dispute);
        // The payment's events do not come again when a refund fails.
        let refunded = self.refunded.map_or(Usdc::ZERO, |(amount, at)| {
            let failed = sum(&|part| !part.counts && !part.is_dispute && part.at >= at);
            amount.checked_sub(failed).unwrap_or_default()
        });
        let disputes = sum(&|part| part.counts && part.is_dispute);
        refunds.max(refunded).checked_add(disputes).unwrap_or(self.paid).min(self.paid)
    }
}

/// What an event came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Booked {
    /// micro-USDC of credits that were taken back.
    pub taken: Usdc,
    /// micro-USDC of credits that were given back.
    pub returned: Usdc,
    /// What the agent owes now, in micro-USDC.
    pub owed: Usdc,
    /// It is about a payment that no session was told of yet.
    pub is_unknown: bool,
}

fn key(payment: &str) -> Key {
    Key::new(format!("CARD#{payment}"), "PAYMENT")
}

/// Merges an event of a payment, and books what follows from it.
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
                    return Err(StoreError::new("a card's payment got an agent without a session"));
                };
                let change = credit::add(next.paid)?;
                writes.extend(credit::change(db, agent, EntryKind::CardTopUp, change, session, None, now)?);
            }
            (_, Some(agent)) => {
                let (owed, cause) = (next.owed(), format!("{payment}#{}", before.revision));
                if let Some(more) = owed.checked_sub(next.booked).filter(|more| *more > Usdc::ZERO) {
                    writes.extend(debt::owe(db, agent, EntryKind::CardReversal, more, &cause, None, now)?);
                    step.taken = more;
                } else if let Some(less) = next.booked.checked_sub(owed).filter(|less| *less > Usdc::ZERO) {
                    let change = credit::add(less)?;
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
            // The session was credited before payments had records: only the record is missing.
            Err(refused) if before.agent.is_none() && credited_before(&refused) => {
                match db.transact(&writes[..1]).await {
                    Ok(()) | Err(WriteError::Refused(_)) => {}
                    Err(WriteError::Failed(error)) => return Err(error),
                }
            }
            // Another event was faster.
            Err(WriteError::Refused(_)) => {}
            Err(WriteError::Failed(error)) => return Err(error),
        }
    }
    Err(StoreError::new("a card's payment changes faster than an event can be noted"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(id: &str, is_dispute: bool, amount: u64, counts: bool, at: i64, rank: u8) -> CardEvent {
        let part = TakenBack { amount: Usdc::from_micro(amount), is_dispute, counts, at, rank };
        CardEvent::TakenBack { id: id.to_owned(), part }
    }

    /// What is owed after these events of a payment of 5.00, in any order and told twice.
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
    fn refunds_and_disputes_add_up_whatever_their_order() {
        let refunded = |amount, at| CardEvent::Refunded { amount: Usdc::from_micro(amount), at };
        assert_eq!(owed(&[]), 0);
        assert_eq!(
            owed(&[part("re_1", false, 2_000_000, true, 10, 0), part("re_1", false, 2_000_000, true, 11, 1)]),
            2_000_000
        );
        let both = [part("re_1", false, 2_000_000, true, 10, 1), part("re_2", false, 1_000_000, true, 12, 1)];
        assert_eq!(owed(&both), 3_000_000);
        // The payment's own events say the same once more, or alone.
        assert_eq!(owed(&[&both[..], &[refunded(2_000_000, 10), refunded(3_000_000, 12)]].concat()), 3_000_000);
        assert_eq!(owed(&[refunded(2_000_000, 10), refunded(3_000_000, 12)]), 3_000_000);
        // A refund that fails is the holder's no more.
        let failed = part("re_1", false, 2_000_000, false, 20, 2);
        assert_eq!(owed(&[both[0].clone(), failed.clone(), refunded(2_000_000, 10)]), 0);
        assert_eq!(owed(&[both[0].clone(), failed, refunded(2_000_000, 30)]), 2_000_000, "refunded again later");
        // A dispute: opened, withdrawn, won, reinstated, in one second or many.
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
