//! In which order a search answers. Everything that decides is a constant here, and [`document`] prints these constants,
//! so that what is published is what is done (issue: "the ranking formula is public at one URL").
//!
//! First the tier: how well the words match. Within a tier the fewer typos, then the more words, then the quality.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::soul::Soul;

/// A soul that nobody rated is taken as rated so, in hundredths of a star…
const PRIOR_RATING_HUNDREDTHS: u32 = 350;
/// …by so many buyers, who stay in the average for ever: one vote moves it by a sixth of the way.
const PRIOR_VOTES: u32 = 5;
/// Parts of the quality, in hundredths.
const RATING_WEIGHT: u32 = 60;
const JOBS_WEIGHT: u32 = 40;
/// So many doublings of the jobs done fill their part: about a million.
const JOBS_DOUBLINGS: u32 = 20;

/// Steps of quality that the index knows. A soul is posted anew only when it has clearly left its step.
pub const LEVELS: u8 = 32;
/// How far the quality may be from the middle of its step, in hundredths of a step.
const STAYS_WITHIN: u32 = 75;

/// How well a soul matches, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The name or the slug is what was asked for.
    Exact,
    /// The name or the slug begins with it.
    Prefix,
    /// Every word is in the name or the slug.
    NameWords,
    /// Every word is in the name, the slug or the bio.
    Words,
    /// The same, but the last word is only the beginning of one.
    Begun,
    /// Every word is there, at least one with a typo.
    Fuzzy,
    /// At least half of the words are there.
    Some,
}

const TIERS: [(Tier, &str); 7] = [
    (Tier::Exact, "the name or the slug is the query"),
    (Tier::Prefix, "the name or the slug begins with the query"),
    (Tier::NameWords, "every word of the query is in the name or the slug"),
    (Tier::Words, "every word of the query is in the name, the slug or the bio"),
    (Tier::Begun, "as words, but the last word of the query is the beginning of a word"),
    (Tier::Fuzzy, "every word of the query is there, at least one of them with a typo"),
    (Tier::Some, "at least half of the words of the query are there"),
];

/// What of a soul its quality follows from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Completed ones.
    pub jobs: u64,
    /// Stars, added up.
    pub rating_sum: u64,
    pub rating_count: u64,
}

impl From<&Soul> for Standing {
    fn from(soul: &Soul) -> Standing {
        Standing { jobs: soul.jobs, rating_sum: soul.rating_sum, rating_count: soul.rating_count }
    }
}

impl Standing {
    /// From 0 to 1. Grows with every good rating and with every doubling of the jobs.
    pub fn quality(self) -> f64 {
        let prior = f64::from(PRIOR_RATING_HUNDREDTHS) / 100.0 * f64::from(PRIOR_VOTES);
        let average = (prior + self.rating_sum as f64) / (f64::from(PRIOR_VOTES) + self.rating_count as f64);
        let rating = ((average - 1.0) / 4.0).clamp(0.0, 1.0);
        let jobs = ((self.jobs as f64 + 1.0).log2() / f64::from(JOBS_DOUBLINGS)).min(1.0);
        (rating * f64::from(RATING_WEIGHT) + jobs * f64::from(JOBS_WEIGHT)) / 100.0
    }

    /// The step the quality is posted under: the one it was posted under before, unless it has clearly left that.
    pub fn level(self, posted: Option<u8>) -> u8 {
        let steps = self.quality() * f64::from(LEVELS);
        match posted {
            Some(level) if (steps - f64::from(level) - 0.5).abs() * 100.0 <= f64::from(STAYS_WITHIN) => level,
            _ => (steps as u8).min(LEVELS - 1),
        }
    }
}

/// The body of `GET /v1/soul/ranking`.
pub fn document() -> Value {
    json!({
        "order": "tier first; within a tier fewer typos, then more words, then higher quality, then the slug",
        "tiers": TIERS.map(|(tier, means)| json!({"tier": tier, "means": means})),
        "quality": {
            "formula": "rating_weight * rating + jobs_weight * jobs",
            "rating": "((prior_rating * prior_votes + sum of ratings) / (prior_votes + number of ratings) - 1) / 4",
            "jobs": "min(1, log2(1 + completed jobs) / jobs_doublings)",
            "constants": {
                "rating_weight": f64::from(RATING_WEIGHT) / 100.0,
                "jobs_weight": f64::from(JOBS_WEIGHT) / 100.0,
                "prior_rating": f64::from(PRIOR_RATING_HUNDREDTHS) / 100.0,
                "prior_votes": PRIOR_VOTES,
                "jobs_doublings": JOBS_DOUBLINGS,
            },
            "range": [0, 1],
        },
        "typos": "one in words of 4 to 7 letters, two in longer ones; a letter added, removed, changed or swapped with its neighbour",
        "what_does_not_count": "prices, payments to us, age; nobody can buy a place",
        "list": "GET /v1/soul and /v1/soul/browse are sorted by completed jobs alone",
        "bounds": {
            "items_read_per_search": super::search::MAX_ITEMS,
            "quality_levels": LEVELS,
            "note": "of words that very many souls have, the best by quality are read; total_relation then says at_least",
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(stars: u64, votes: u64, jobs: u64) -> f64 {
        Standing { jobs, rating_sum: stars * votes, rating_count: votes }.quality()
    }

    #[test]
    fn one_vote_does_not_win() {
        assert!(rated(5, 1, 1) < rated(5, 40, 40));
        assert!(rated(5, 1, 0) < rated(4, 200, 0), "many fours outweigh one five");
        assert!(rated(1, 1, 0) < rated(5, 0, 0), "a bad vote costs");
        assert!(rated(5, 1, 0) > rated(5, 0, 0));
        assert!(rated(4, 50, 1_000) > rated(4, 50, 10));
        assert!(rated(5, 1_000_000, u64::MAX / 2) <= 1.0 && rated(1, 1_000_000, 0) >= 0.0);
    }

    #[test]
    fn a_step_is_kept_until_it_is_clearly_left() {
        let at = |jobs: u64| Standing { jobs, ..Standing::default() };
        let level = at(100).level(None);
        assert_eq!(at(110).level(Some(level)), level);
        assert!(at(1_000).level(Some(level)) > level);
        // From the first job to the millionth a soul is posted anew a few times, not a million.
        let (mut moves, mut posted) = (0, at(0).level(None));
        for jobs in 0..1_000_000 {
            let now = at(jobs).level(Some(posted));
            moves += u32::from(now != posted);
            posted = now;
        }
        assert!((5..20).contains(&moves), "{moves}");
    }
}
