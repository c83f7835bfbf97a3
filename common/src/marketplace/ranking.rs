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
const REPUTATION_WEIGHT: u32 = 40;
/// So many doublings of the different buyers fill their part: about a million.
const BUYERS_DOUBLINGS: u32 = 20;

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
    /// Different ones that bought something good, without the soul's own wallets: what a seller buys of itself counts among
    /// its jobs, as the mission has it, and must not be a way to the top. How much was paid back does not count either,
    /// because a buyer could cause that for nothing.
    pub buyers: u64,
    /// Stars, added up.
    pub rating_sum: u64,
    pub rating_count: u64,
}

impl From<&Soul> for Standing {
    fn from(soul: &Soul) -> Standing {
        Standing { buyers: soul.buyers, rating_sum: soul.rating_sum, rating_count: soul.rating_count }
    }
}

impl Standing {
    /// From 0 to 1. Grows with every good rating and with every doubling of the buyers. [`document`] says the same in
    /// words, and a test reckons it by those.
    pub fn quality(self) -> f64 {
        let prior = f64::from(PRIOR_RATING_HUNDREDTHS) / 100.0 * f64::from(PRIOR_VOTES);
        let average = (prior + self.rating_sum as f64) / (f64::from(PRIOR_VOTES) + self.rating_count as f64);
        let rating = ((average - 1.0) / 4.0).clamp(0.0, 1.0);
        let reputation = ((self.buyers as f64 + 1.0).log2() / f64::from(BUYERS_DOUBLINGS)).min(1.0);
        (rating * f64::from(RATING_WEIGHT) + reputation * f64::from(REPUTATION_WEIGHT)) / 100.0
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
            "formula": "rating_weight * rating + reputation_weight * reputation",
            "rating": "((prior_rating * prior_votes + sum_of_ratings) / (prior_votes + rating_count) - 1) / 4",
            "reputation": "min(1, log2(1 + distinct_buyers) / buyers_doublings)",
            "constants": {
                "rating_weight": f64::from(RATING_WEIGHT) / 100.0,
                "reputation_weight": f64::from(REPUTATION_WEIGHT) / 100.0,
                "prior_rating": f64::from(PRIOR_RATING_HUNDREDTHS) / 100.0,
                "prior_votes": PRIOR_VOTES,
                "buyers_doublings": BUYERS_DOUBLINGS,
            },
            "range": [0, 1],
        },
        "typos": "one in words of 4 to 7 letters, two in longer ones; a letter added, removed, changed or swapped with its neighbour",
        "what_does_not_count": "prices, payments to us, age; what a soul's own wallets buy of it; how much was paid back, which a \
                                buyer could cause for nothing",
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

    fn rated(stars: u64, votes: u64, buyers: u64) -> f64 {
        Standing { buyers, rating_sum: stars * votes, rating_count: votes }.quality()
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
        let at = |buyers: u64| Standing { buyers, ..Standing::default() };
        let level = at(100).level(None);
        assert_eq!(at(110).level(Some(level)), level);
        assert!(at(1_000).level(Some(level)) > level);
        // From the first buyer to the millionth a soul is posted anew a few times, not a million.
        let (mut moves, mut posted) = (0, at(0).level(None));
        for buyers in 0..1_000_000 {
            let now = at(buyers).level(Some(posted));
            moves += u32::from(now != posted);
            posted = now;
        }
        assert!((5..20).contains(&moves), "{moves}");
    }

    /// Reckons a formula as it is published: numbers, names, `+ - * /`, brackets, `min` and `log2`.
    struct Reckoner<'a> {
        left: Vec<&'a str>,
        known: &'a dyn Fn(&str) -> f64,
    }

    impl<'a> Reckoner<'a> {
        fn reckon(text: &'a str, known: &'a dyn Fn(&str) -> f64) -> f64 {
            let is_name = |letter: char| letter.is_alphanumeric() || "_.".contains(letter);
            let mut left = Vec::new();
            let mut rest = text.trim_start();
            while let Some(first) = rest.chars().next() {
                let end = if is_name(first) { rest.find(|next| !is_name(next)).unwrap_or(rest.len()) } else { 1 };
                left.push(&rest[..end]);
                rest = rest[end..].trim_start();
            }
            left.reverse();
            let mut reckoner = Reckoner { left, known };
            let value = reckoner.sum();
            assert!(reckoner.left.is_empty(), "{text}: {:?} is left", reckoner.left);
            value
        }

        fn takes(&mut self, sign: &str) -> bool {
            let takes = self.left.last() == Some(&sign);
            if takes {
                self.left.pop();
            }
            takes
        }

        fn sum(&mut self) -> f64 {
            let mut value = self.product();
            loop {
                if self.takes("+") {
                    value += self.product();
                } else if self.takes("-") {
                    value -= self.product();
                } else {
                    return value;
                }
            }
        }

        fn product(&mut self) -> f64 {
            let mut value = self.one();
            loop {
                if self.takes("*") {
                    value *= self.one();
                } else if self.takes("/") {
                    value /= self.one();
                } else {
                    return value;
                }
            }
        }

        fn one(&mut self) -> f64 {
            let word = self.left.pop().expect("something");
            match word {
                "(" => {
                    let value = self.sum();
                    assert!(self.takes(")"));
                    value
                }
                "min" | "log2" => {
                    assert!(self.takes("("));
                    let first = self.sum();
                    let value = if word == "log2" {
                        first.log2()
                    } else {
                        assert!(self.takes(","));
                        first.min(self.sum())
                    };
                    assert!(self.takes(")"));
                    value
                }
                name => name.parse().unwrap_or_else(|_| (self.known)(name)),
            }
        }
    }

    /// What is published is what is done: the formula of the document, with the constants of the document, comes to the
    /// quality that searches go by.
    #[test]
    fn the_published_formula_is_the_one_that_ranks() {
        let quality = &document()["quality"];
        let constant = |name: &str| quality["constants"][name].as_f64().unwrap_or_else(|| panic!("{name}?"));
        for (buyers, rating_sum, rating_count) in
            [(0, 0, 0), (1, 5, 1), (37, 120, 31), (4_000, 900, 300), (1 << 40, 5, 5)]
        {
            let part = |name: &str| {
                Reckoner::reckon(quality[name].as_str().unwrap(), &|name| match name {
                    "distinct_buyers" => buyers as f64,
                    "sum_of_ratings" => rating_sum as f64,
                    "rating_count" => rating_count as f64,
                    name => constant(name),
                })
            };
            let published = Reckoner::reckon(quality["formula"].as_str().unwrap(), &|name| match name {
                "rating" | "reputation" => part(name),
                name => constant(name),
            });
            let done = Standing { buyers, rating_sum, rating_count }.quality();
            assert!(
                (published - done).abs() < 1e-12,
                "{published} is not {done} ({buyers}, {rating_sum}, {rating_count})"
            );
        }
    }
}
