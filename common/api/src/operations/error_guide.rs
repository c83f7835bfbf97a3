//! Holds the guide `docs/ERRORS.md` to the codes that the service answers with: a code without a row fails, and so does a row
//! whose code or status no operation has.

use std::collections::{BTreeMap, BTreeSet};

use base::tool_result::{ErrorCode, ToolError, Unavailable};
use platform::http::ApiError;

use super::{all, document};

const GUIDE: &str = include_str!("../../../../docs/ERRORS.md");

/// The cells of the rows of the table with this first column.
fn rows(first: &str) -> Vec<Vec<&'static str>> {
    let head = format!("| {first} |");
    let table = GUIDE.lines().skip_while(|line| !line.starts_with(&head)).skip(2);
    let rows = table.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// The codes of all operations, of paths without a route, and of open connections, with their statuses.
fn answered() -> BTreeMap<&'static str, BTreeSet<u16>> {
    let beside = [
        ApiError::MethodNotAllowed { allow: String::new() },
        ApiError::TooManySubscriptions { most: 0 },
        ApiError::TooManyConnections { most: 0 },
    ];
    let beside = beside.iter().map(|error| (error.status().as_u16(), error.code()));
    let described = all().flat_map(|operation| document::refusals(&operation));
    let mut answered: BTreeMap<&'static str, BTreeSet<u16>> = BTreeMap::new();
    for (status, code) in described.chain(beside) {
        answered.entry(code).or_default().insert(status);
    }
    answered
}

#[test]
fn the_guide_has_every_code_and_no_other() {
    let mut explained: BTreeMap<&str, BTreeSet<u16>> = BTreeMap::new();
    let mut cases = Vec::new();
    for cells in rows("status, `error`") {
        let &[named, means, todo] = cells.as_slice() else { panic!("three cells, not {cells:?}") };
        assert!(!means.is_empty() && !todo.is_empty(), "{named}");
        // Such as: 401, 403 `invalid_signature`. A condition may follow, for some of the code's answers.
        let (statuses, rest) = named.split_once('`').expect("a code");
        let (code, condition) = rest.split_once('`').expect("a code");
        let statuses: BTreeSet<u16> = statuses.split(',').map(|status| status.trim().parse().expect(named)).collect();
        if condition.is_empty() {
            assert!(explained.insert(code, statuses).is_none(), "{code} has two rows");
        } else {
            cases.push((code, statuses));
        }
    }
    let answered = answered();
    let codes = |all: &BTreeMap<&'static str, BTreeSet<u16>>| all.keys().copied().collect::<BTreeSet<_>>();
    let (known, told) = (codes(&answered), codes(&explained));
    let (missing, extra): (Vec<_>, Vec<_>) = (known.difference(&told).collect(), told.difference(&known).collect());
    assert!(missing.is_empty() && extra.is_empty(), "without a row: {missing:?}; rows of no code: {extra:?}");
    assert_eq!(explained, answered);
    for (code, statuses) in cases {
        assert!(answered.get(code).is_some_and(|all| statuses.is_subset(all)), "{code}");
    }
}

/// The place of a failed job's code in the guide. A new code needs a row, and a place here.
fn place_of_failure(code: ErrorCode) -> usize {
    match code {
        ErrorCode::PaymentFailed => 0,
        ErrorCode::InsufficientFunds => 1,
        ErrorCode::ProviderUnavailable => 2,
        ErrorCode::ProviderAuth => 3,
        ErrorCode::RateLimited => 4,
        ErrorCode::InvalidInput => 5,
        ErrorCode::ContentBlocked => 6,
        ErrorCode::EnrichmentExhausted => 7,
        ErrorCode::CheckoutFailed => 8,
        ErrorCode::InternalError => 9,
    }
}

/// The place of a reason in the guide. A new reason needs a row, and a place here.
fn place_of_reason(reason: Unavailable) -> usize {
    match reason {
        Unavailable::DestinationNotReachable => 0,
        Unavailable::SourceUnavailable => 1,
        Unavailable::FrozenByOwner => 2,
        Unavailable::ProviderNotConfigured => 3,
        Unavailable::SellerFailed => 4,
        Unavailable::DeadlineExceeded => 5,
        Unavailable::NotInLocalIndex => 6,
        Unavailable::NeedsBrowser => 7,
        Unavailable::OptedOut => 8,
    }
}

#[test]
fn the_guide_has_every_way_in_which_work_fails() {
    let failures = [
        ErrorCode::PaymentFailed,
        ErrorCode::InsufficientFunds,
        ErrorCode::ProviderUnavailable,
        ErrorCode::ProviderAuth,
        ErrorCode::RateLimited,
        ErrorCode::InvalidInput,
        ErrorCode::ContentBlocked,
        ErrorCode::EnrichmentExhausted,
        ErrorCode::CheckoutFailed,
        ErrorCode::InternalError,
    ];
    let told = rows("`error_code`");
    assert_eq!(told.len(), failures.len());
    for code in failures {
        let word = serde_json::to_value(code).unwrap();
        let cells = &told[place_of_failure(code)];
        assert_eq!(cells[0].trim_matches('`'), word);
        assert_eq!(cells[1], ToolError::new(code, "").category().1.to_string(), "{word}");
    }
    let reasons = [
        Unavailable::DestinationNotReachable,
        Unavailable::SourceUnavailable,
        Unavailable::FrozenByOwner,
        Unavailable::ProviderNotConfigured,
        Unavailable::SellerFailed,
        Unavailable::DeadlineExceeded,
        Unavailable::NotInLocalIndex,
        Unavailable::NeedsBrowser,
        Unavailable::OptedOut,
    ];
    let told = rows("`reason`");
    // After those of all tools, the one of a single tool.
    assert_eq!(told.len(), reasons.len() + 1);
    assert_eq!(told[reasons.len()][0], "`sending_stopped`");
    for reason in reasons {
        assert_eq!(told[place_of_reason(reason)][0].trim_matches('`'), reason.as_str());
    }
}
