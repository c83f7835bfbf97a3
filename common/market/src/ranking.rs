//! The order of search results. Every factor is a constant here, and [`document`] publishes these constants.
//!
//! Results are sorted by tier (how well the words match), then by fewer typos, then by more matched words, then by quality.
//!
//! Wallets cost nothing, so buyers and ratings are weighted by the fees that they paid to the platform. A seller who buys
//! from itself to rise in the ranking has to pay those fees.

use base::money::Usdc;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::soul::Soul;

/// Every soul's average includes assumed ratings: `PRIOR_VOTES` votes of this rating, in hundredths of a star.
const PRIOR_RATING_HUNDREDTHS: u32 = 350;
/// Number of assumed votes. They always stay in the average, so the first whole vote moves it by a sixth of the distance.
const PRIOR_VOTES: u32 = 5;
/// Platform fee of a whole vote, and of the first unit of a buyer's weight.
const FEE_OF_ONE: Usdc = Usdc::from_micro(50_000);
/// Weights within the quality, in hundredths.
const RATING_WEIGHT: u32 = 60;
const REPUTATION_WEIGHT: u32 = 40;
/// Number of doublings of the backing up to the highest score for it: a backing of about a million.
const BACKING_DOUBLINGS: u32 = 20;

/// Quality levels in the index. A soul's search entries are written again only when its quality has clearly left its level.
pub const LEVELS: u8 = 32;
/// Largest distance of the quality from the middle of its level, in hundredths of a level.
const STAYS_WITHIN: u32 = 75;

/// How well a soul matches, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The name or the slug equals the query.
    Exact,
    /// The name or the slug begins with the query.
    Prefix,
    /// Every word is in the name or the slug.
    NameWords,
    /// Every word is in the name, the slug or the bio.
    Words,
    /// As `Words`, but the last word is only the beginning of one.
    Begun,
    /// Every word is there, at least one of them with a typo.
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

/// The figures of a soul that determine its quality.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// Sum of the buyers' weights ([`weight_of_buyer`]), without the soul's own wallets: a seller's own purchases count
    /// as jobs, but must not raise its rank. Refunds do not count either, because a buyer could cause them cheaply.
    #[serde(default)]
    pub backing: u64,
    /// Sum of the weights of its ratings ([`weight_of_vote`]).
    #[serde(default)]
    pub vote_weight: u64,
    /// Sum of stars times weight.
    #[serde(default)]
    pub vote_stars: u64,
}

/// A buyer's weight by the platform fees it paid at one soul: 0 below [`FEE_OF_ONE`], then the square root of `fees /
/// FEE_OF_ONE`, rounded down. So two buyers weigh more than one who pays the same sum, and each buyer that counts has cost
/// at least [`FEE_OF_ONE`].
pub fn weight_of_buyer(fees: Usdc) -> u64 {
    (fees.micro() / FEE_OF_ONE.micro()).isqrt()
}

/// A rating's weight by its job's platform fee, in micro-USDC: a whole vote at [`FEE_OF_ONE`] or more.
pub fn weight_of_vote(fee: Usdc) -> u64 {
    fee.min(FEE_OF_ONE).micro()
}

impl From<&Soul> for Standing {
    fn from(soul: &Soul) -> Standing {
        soul.standing
    }
}

impl Standing {
    /// The weighted number of ratings, in whole votes.
    pub fn votes(self) -> f64 {
        self.vote_weight as f64 / FEE_OF_ONE.micro() as f64
    }

    /// The stars of these votes together.
    pub fn stars(self) -> f64 {
        self.vote_stars as f64 / FEE_OF_ONE.micro() as f64
    }

    /// The quality, from 0 to 1. Grows with every good rating and with every doubling of the backing. [`document`]
    /// publishes the same formula, and a test compares both.
    pub fn quality(self) -> f64 {
        let prior = f64::from(PRIOR_RATING_HUNDREDTHS) / 100.0 * f64::from(PRIOR_VOTES);
        let average = (prior + self.stars()) / (f64::from(PRIOR_VOTES) + self.votes());
        let rating = ((average - 1.0) / 4.0).clamp(0.0, 1.0);
        let reputation = ((self.backing as f64 + 1.0).log2() / f64::from(BACKING_DOUBLINGS)).min(1.0);
        (rating * f64::from(RATING_WEIGHT) + reputation * f64::from(REPUTATION_WEIGHT)) / 100.0
    }

    /// The quality level for the search entries: the earlier level, unless the quality has clearly left it.
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
            "rating": "((prior_rating * prior_votes + weighted_stars) / (prior_votes + weighted_votes) - 1) / 4",
            "reputation": "min(1, log2(1 + backing) / backing_doublings)",
            "backing": "the sum over distinct buyers of the whole part of sqrt(platform fees paid at this soul / fee_of_one); \
                        the soul's own wallets are left out",
            "votes": "each rating proven to come from the job's buyer weighs min(1, platform fee of its job / fee_of_one); \
                      weighted_votes is the sum of the weights, weighted_stars the sum of stars times weight",
            "constants": {
                "rating_weight": f64::from(RATING_WEIGHT) / 100.0,
                "reputation_weight": f64::from(REPUTATION_WEIGHT) / 100.0,
                "prior_rating": f64::from(PRIOR_RATING_HUNDREDTHS) / 100.0,
                "prior_votes": PRIOR_VOTES,
                "backing_doublings": BACKING_DOUBLINGS,
                "fee_of_one": FEE_OF_ONE.to_number(),
            },
            "range": [0, 1],
        },
        "typos": "one in words of 4 to 7 letters, two in longer ones; a letter added, removed, changed or swapped with its neighbour",
        "what_does_not_count": "prices; age; the number of buyers or ratings, apart from the fees they paid, because \
                                wallets cost nothing; purchases by the soul's own wallets; refunds",
        "list": "GET /v1/soul and /v1/soul/browse are sorted by completed jobs alone",
        "bounds": {
            "items_read_per_search": super::search::MAX_ITEMS,
            "quality_levels": LEVELS,
            "note": "for words that very many souls use, only the best by quality are read; total_relation is then at_least",
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quality with `votes` whole votes of `stars` stars each.
    fn rated(stars: u64, votes: u64, backing: u64) -> f64 {
        let weight = votes * FEE_OF_ONE.micro();
        Standing { backing, vote_weight: weight, vote_stars: stars * weight }.quality()
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
    fn weights_follow_fees() {
        let fee = |micro| weight_of_buyer(Usdc::from_micro(micro));
        assert_eq!([fee(0), fee(49_999), fee(50_000), fee(199_999), fee(200_000), fee(5_000_000)], [0, 0, 1, 1, 2, 10]);
        let vote = |micro| weight_of_vote(Usdc::from_micro(micro));
        assert_eq!([vote(0), vote(2_000), vote(50_000), vote(10_000_000)], [0, 2_000, 50_000, 50_000]);
    }

    /// The cost for a seller to pass a rival with twenty buyers and ten good ratings by invented sales.
    #[test]
    fn buying_a_rank_costs_its_fees() {
        // The cheapest text (a millionth of a dollar) brings no platform fee; the cheapest service brings 0.002.
        let (text_fee, service_fee) = (0u64, 2_000u64);
        // The earlier formula: distinct buyers and ratings by number.
        let before = |buyers: f64, votes: f64| {
            let rating = ((17.5 + 5.0 * votes) / (5.0 + votes) - 1.0) / 4.0;
            0.6 * rating + 0.4 * (buyers + 1.0).log2() / 20.0
        };
        let fakes = (1u32..).find(|fakes| before(f64::from(*fakes), 10.0) > before(20.0, 10.0)).unwrap();
        let paid_before = u64::from(fakes) * text_fee + 10 * service_fee;
        assert_eq!((fakes, paid_before), (21, 20_000), "two cents, for ratings alone");
        // The present formula: the same rival, whose buyers paid 0.50 each.
        let rival = rated(5, 10, 20 * weight_of_buyer(Usdc::from_micro(100_000)));
        let made_up = |fakes: u64, fee: u64| {
            let (buyer, vote) = (weight_of_buyer(Usdc::from_micro(fee)), weight_of_vote(Usdc::from_micro(fee)));
            Standing { backing: fakes * buyer, vote_weight: fakes * vote, vote_stars: fakes * 5 * vote }.quality()
        };
        assert!(made_up(1_000_000, 0) < rival, "a million buyers of texts for a millionth pass nobody");
        assert!(made_up(100, service_fee) < rival, "nor do a hundred of the cheapest service");
        let cheapest = |fee: u64| (1..10_000).find(|fakes| made_up(*fakes, fee) > rival).map(|fakes| fakes * fee);
        let fees = [2_000, 10_000, 50_000, 200_000, 1_000_000];
        let (paid_now, fee) = fees.iter().filter_map(|fee| Some((cheapest(*fee)?, *fee))).min().unwrap();
        println!("a place: {paid_before} micro-USDC before, {paid_now} now, by fees of {fee} each");
        assert!(paid_now >= 30 * paid_before, "{paid_now} micro-USDC of fees, by {fee} each");
    }

    #[test]
    fn a_level_is_kept_until_it_is_clearly_left() {
        let at = |backing: u64| Standing { backing, ..Standing::default() };
        let level = at(100).level(None);
        assert_eq!(at(110).level(Some(level)), level);
        assert!(at(1_000).level(Some(level)) > level);
        // Up to a million buyers, a soul's entries are written again only a few times.
        let (mut moves, mut posted) = (0, at(0).level(None));
        for backing in 0..1_000_000 {
            let now = at(backing).level(Some(posted));
            moves += u32::from(now != posted);
            posted = now;
        }
        assert!((5..20).contains(&moves), "{moves}");
    }

    /// Evaluates a published formula: numbers, names, `+ - * /`, brackets, `min` and `log2`.
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

    /// The published formula with the published constants yields the quality that searches use.
    #[test]
    fn the_published_formula_is_the_one_that_ranks() {
        let quality = &document()["quality"];
        let constant = |name: &str| quality["constants"][name].as_f64().unwrap_or_else(|| panic!("{name}?"));
        for (backing, vote_stars, vote_weight) in
            [(0, 0, 0), (1, 250_000, 50_000), (37, 6_000_000, 1_550_000), (4_000, 900, 300), (1 << 40, 5, 5)]
        {
            let standing = Standing { backing, vote_weight, vote_stars };
            let part = |name: &str| {
                Reckoner::reckon(quality[name].as_str().unwrap(), &|name| match name {
                    "backing" => backing as f64,
                    "weighted_stars" => standing.stars(),
                    "weighted_votes" => standing.votes(),
                    name => constant(name),
                })
            };
            let published = Reckoner::reckon(quality["formula"].as_str().unwrap(), &|name| match name {
                "rating" | "reputation" => part(name),
                name => constant(name),
            });
            let done = standing.quality();
            assert!((published - done).abs() < 1e-12, "{published} is not {done} ({standing:?})");
        }
    }
}
