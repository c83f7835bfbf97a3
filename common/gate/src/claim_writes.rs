//! The writes of a claim, each labelled with its purpose, so that a refused transaction can be explained.

use platform::store::db::Item;
use platform::store::{Write, WriteError};

/// The purpose of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimPart {
    Payment,
    Job,
    Receipt,
    Day,
    /// What the access token has spent, if it has a cap for life.
    Token,
    Account,
    /// The credits' ledger entry, and the end of their hold.
    Credits,
    Name,
    /// This version of a soul's text. No agent pays for it twice.
    Text,
    Rate,
    Exposure,
    Approval,
    /// The checkout session that the purchase completes, or the task of a goal that the call does.
    Session,
    /// The tool's own.
    Own,
}

/// The writes in order of priority: the first one that was refused is the reason.
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

    /// The first refused write, and the item that made its condition fail, if there was one.
    pub fn refused_by(&self, refusal: &WriteError) -> Option<(ClaimPart, Option<Item>)> {
        let refused = |(index, part): (usize, &ClaimPart)| Some((*part, refusal.refused(index)?.old.clone()));
        self.parts.iter().enumerate().find_map(refused)
    }
}
