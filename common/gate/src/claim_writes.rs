//! What a claim changes: the writes of its transaction, each with what it is for, so that a refusal can be understood.

use platform::store::db::Item;
use platform::store::{Write, WriteError};

/// What a write of the claim is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimPart {
    Payment,
    Job,
    Receipt,
    Day,
    Account,
    /// The entry of the credits, and the end of their hold.
    Credits,
    Name,
    /// This version of a soul's text, which nobody pays for twice.
    Text,
    Rate,
    Exposure,
    Approval,
    /// The checkout session that the purchase completes.
    Session,
}

/// The writes, in the order in which their refusals count: the first that refused says why.
#[derive(Debug, Default)]
pub struct ClaimWrites {
    parts: Vec<ClaimPart>,
    writes: Vec<Write>,
}

impl ClaimWrites {
    pub fn add(&mut self, part: ClaimPart, write: Write) {
        self.parts.push(part);
        self.writes.push(write);
    }

    pub fn writes(&self) -> &[Write] {
        &self.writes
    }

    /// The part that refused, and the item that stood in its way, if there was one.
    pub fn refused_by(&self, refusal: &WriteError) -> Option<(ClaimPart, Option<Item>)> {
        let refused = |(index, part): (usize, &ClaimPart)| Some((*part, refusal.refused(index)?.old.clone()));
        self.parts.iter().enumerate().find_map(refused)
    }
}
