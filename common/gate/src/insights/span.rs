//! Reads the requested period from a query.

use std::time::Duration;

use base::clock::Timestamp;
use ledger::receipt::Span;
use platform::http::Params;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The `since` and `until` of a query.
pub fn span(params: &mut Params) -> Span {
    let span = Span { since: params.time("since"), until: params.time("until") };
    if let (Some(since), Some(until)) = (span.since, span.until)
        && until < since
    {
        params.refuse("until", "must not be before since");
    }
    span
}

/// The last `period` days of a query, with `default` if it has none.
pub fn period(params: &mut Params, default: usize, now: Timestamp) -> (usize, Span) {
    let days = params.integer("period", 1, 365).unwrap_or(default);
    (days, Span { since: Some(days_before(now, days)), until: None })
}

pub fn days_before(now: Timestamp, days: usize) -> Timestamp {
    now.minus(DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use platform::http::ApiError;

    use super::*;

    #[test]
    fn a_span_that_ends_before_it_begins_is_refused() {
        let mut params = Params::of(Some("since=2026-01-02&until=2026-01-01&period=0"));
        span(&mut params);
        period(&mut params, 30, Timestamp::from_secs(0));
        let Err(ApiError::InvalidRequest(wrong)) = params.check() else { panic!("nothing was wrong") };
        let paths: Vec<_> = wrong.iter().map(|wrong| wrong.path.as_str()).collect();
        assert_eq!(paths, ["until", "period"]);
    }
}
