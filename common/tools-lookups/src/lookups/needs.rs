//! What a deployment must have to answer a row: a key or a register copy. Used to refuse calls before payment, and by
//! `doctor`.

use serde_json::{Map, Value};
use tools::spec::{Need, ToolSpec};

use super::row::{Key, Lookup, Turn};

/// The key of a source that requires one, or the operator's copy if there is no source. A key that only raises a limit, or
/// a copy that is only a fallback, is not needed.
pub fn of(row: &Lookup) -> Option<Need> {
    let sources = row.requests.iter().map(|request| request.source.unwrap_or(row.source));
    let mut keyed = sources.filter(|source| matches!(source.key, Key::Header(..) | Key::Query(_)));
    let copy = row.snapshot.filter(|snapshot| snapshot.turn == Turn::Only || row.requests.is_empty());
    keyed.next().map(|source| Need::Key(source.provider)).or(copy.map(|copy| Need::Copy(copy.name)))
}

/// The needs of a row's tool.
pub fn of_tool(spec: &ToolSpec, _: &Map<String, Value>) -> Vec<Need> {
    super::find(spec.name).and_then(of).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::ROWS;
    use super::*;
    use tools::snapshot;

    #[test]
    fn only_required_keys_and_copies_are_needs() {
        let of_row = |name: &str| of(super::super::find(name).unwrap());
        assert_eq!(of_row("company_sanctions"), Some(Need::Copy("ofac")));
        assert_eq!(of_row("record_court_cases_find"), Some(Need::Key("courtlistener")));
        // The copy is only a fallback, and the key only raises a limit.
        assert_eq!(of_row("company_bank_profile"), None);
        let (mut keys, mut copies) = (BTreeSet::new(), BTreeSet::new());
        for need in ROWS.iter().filter_map(|row| of(row)) {
            match need {
                Need::Key(name) => keys.insert(name),
                Need::Copy(name) => copies.insert(name),
                _ => panic!("{need}"),
            };
        }
        assert_eq!(keys, BTreeSet::from(["courtlistener", "fmcsa", "sam"]), "docs/LOOKUPS.md names these");
        assert!(copies.iter().all(|name| snapshot::NAMES.contains(name)));
    }
}
