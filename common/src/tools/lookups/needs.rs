//! What a deployment must have before it can answer a row: for whoever tells so before anything is paid, and the doctor.

use super::row::{Key, Lookup, Turn};

/// What a row cannot be answered without. Both `None`: it needs nothing but the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The provider whose key it is, by its name in `PROVIDER_KEYS`.
    pub key: Option<&'static str>,
    /// The operator's copy, by its name ([`super::snapshot::NAMES`]): whether it is there, [`super::snapshot::in_force`] says.
    pub snapshot: Option<&'static str>,
}

/// What this row needs. Keys that only raise a limit, and copies that only stand in for a source, are not among it.
pub fn of(row: &Lookup) -> Needs {
    let sources = row.requests.iter().map(|request| request.source.unwrap_or(row.source));
    let mut keyed = sources.filter(|source| matches!(source.key, Key::Header(..) | Key::Query(_)));
    let snapshot = row.snapshot.filter(|snapshot| snapshot.turn == Turn::Only || row.requests.is_empty());
    Needs { key: keyed.next().map(|source| source.provider), snapshot: snapshot.map(|snapshot| snapshot.name) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::{ROWS, snapshot};
    use super::*;

    #[test]
    fn rows_need_what_they_cannot_do_without() {
        let of_row = |name: &str| of(super::super::find(name).unwrap());
        assert_eq!(of_row("company_sanctions"), Needs { key: None, snapshot: Some("ofac") });
        assert_eq!(of_row("record_court_cases_find"), Needs { key: Some("courtlistener"), snapshot: None });
        // Its copy only stands in, and its key only raises a limit.
        assert_eq!(of_row("company_bank_profile"), Needs { key: None, snapshot: None });
        let all: Vec<Needs> = ROWS.iter().map(|row| of(row)).collect();
        let keys: BTreeSet<&str> = all.iter().filter_map(|needs| needs.key).collect();
        assert_eq!(keys, BTreeSet::from(["courtlistener", "fmcsa", "sam"]), "docs/LOOKUPS.md names these");
        assert!(all.iter().filter_map(|needs| needs.snapshot).all(|name| snapshot::NAMES.contains(&name)));
    }
}
