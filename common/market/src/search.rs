//! Ranked search for souls by the words of name, slug and bio ([`super::ranking`]).
//!
//! A search reads in three rounds, whatever the size of the table. The first reads the lists of the query's words, of
//! adjacent words and of names that begin with the query, and the vocabulary's buckets. The second reads the lists
//! of words that begin with the query's last word and, if little was found, of words that correct a typo. The third reads
//! the records of the best matches, to confirm them. Every list is read from its best entries up to a limit. All limits
//! together are [`MAX_ITEMS`].

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join_all;
use platform::store::db::Query;
use platform::store::{Db, Key, StoreError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::category::Category;
use super::listing;
use super::matching::{Asked, Candidate, Match, judge};
use super::posting::{self, Posting, names_partition, pair_partition, word_partition};
use super::ranking::Standing;
use super::soul::{Slug, Soul};
use super::vocabulary::{self, Bucket, Near};
use super::words::words;

/// Most results.
pub const MAX_RESULTS: usize = 50;
/// Longest query, in characters.
pub const MAX_QUERY: usize = 200;

/// Names that begin with the query.
const NAMES: usize = 40;
/// Words whose lists are read: the longest, because they are usually the rarest.
const LISTS: usize = 4;
/// Rows read of the list of a single word, and of each of several.
const ALONE: usize = 160;
const EACH: usize = 60;
/// Rows read of each list of adjacent words (at most three lists).
const PAIR: usize = 25;
/// Lists of similar words, and rows read of each.
const NEAR_LISTS: usize = 6;
const NEAR_EACH: usize = 20;
/// Vocabulary buckets: ten per word, and one for beginnings of the last word.
const BUCKETS: usize = LISTS * 10 + 1;
/// Extra records to read, because some may no longer match.
const SPARE: usize = 10;
/// Typos are tried if the exact words find fewer souls than this.
const FEW: usize = 5;

/// Upper bound of the items that one search reads.
pub const MAX_ITEMS: usize =
    NAMES + LISTS * EACH + (LISTS - 1) * PAIR + BUCKETS + NEAR_LISTS * NEAR_EACH + MAX_RESULTS + SPARE;
const _: () = assert!(MAX_ITEMS <= 600 && ALONE <= LISTS * EACH);

/// The result of a search.
pub struct Results {
    pub found: Vec<(Soul, Match)>,
    /// Matching souls, as far as the lists were read.
    pub total: usize,
    /// Some list had more rows than were read.
    pub cut: bool,
}

/// A posting as it is stored.
#[derive(Deserialize)]
struct Row {
    sk: String,
    #[serde(flatten)]
    posting: Posting,
}

/// Candidates by slug, and whether a list was cut.
#[derive(Default)]
struct Gathered {
    souls: BTreeMap<Slug, (u8, Posting)>,
    cut: bool,
}

impl Gathered {
    fn take(&mut self, rows: Vec<Row>, limit: usize) {
        self.cut |= rows.len() == limit;
        for Row { sk, posting } in rows {
            // `<where><level>#<slug>`, or `<name>#<level>#<slug>`.
            let mut parts = sk.rsplitn(3, '#');
            let (Some(slug), Some(rank)) = (parts.next(), parts.next()) else { continue };
            let level = rank.get(rank.len().saturating_sub(2)..).and_then(|level| level.parse().ok());
            if let (Ok(slug), Some(level)) = (slug.parse(), level) {
                self.souls.entry(slug).or_insert((level, posting));
            }
        }
    }

    /// The matching candidates, best first.
    fn matching(&self, asked: &Asked, category: Option<Category>) -> Vec<(&Slug, Match)> {
        let mut found = Vec::new();
        for (slug, (level, posting)) in &self.souls {
            if category.is_some_and(|category| posting.categories & posting::bit(category) == 0) {
                continue;
            }
            let mut title = words(&posting.name, usize::MAX);
            title.extend(words(slug.as_str(), usize::MAX));
            let slug_name = posting::joined(slug.as_str());
            let has = |word: &str| posting.bio_has(word);
            let soul = Candidate { name: &posting.name, slug: &slug_name, title: &title, bio_has: &has };
            if let Some(matched) = judge(asked, &soul) {
                found.push((slug, *level, matched));
            }
        }
        found.sort_by(|(slug, level, matched), (other_slug, other_level, other)| {
            (matched.order(), level, slug).cmp(&(other.order(), other_level, other_slug))
        });
        found.into_iter().map(|(slug, _, matched)| (slug, matched)).collect()
    }
}

async fn list(db: &Db, partition: String, limit: usize) -> Result<(Vec<Row>, usize), StoreError> {
    let query = Query::new(&db.tables.souls, "#pk = :pk", limit).bind("pk", partition)?;
    Ok((db.query(query).await?, limit))
}

async fn names(db: &Db, asked: &Asked) -> Result<(Vec<Row>, usize), StoreError> {
    if asked.joined.chars().count() < 2 {
        return Ok((Vec::new(), NAMES));
    }
    let query = Query::prefixed(&db.tables.souls, &names_partition(&asked.joined), &asked.joined, NAMES)?;
    Ok((db.query(query).await?, NAMES))
}

/// Finds at most `limit` souls.
pub async fn search(db: &Db, query: &str, category: Option<Category>, limit: usize) -> Result<Results, StoreError> {
    let mut asked = Asked::read(query);
    let limit = limit.min(MAX_RESULTS);
    let mut read: Vec<usize> = (0..asked.words.len()).collect();
    read.sort_by_key(|index| std::cmp::Reverse(asked.words[*index].word.chars().count()));
    read.truncate(LISTS);
    let each = if asked.words.len() == 1 { ALONE } else { EACH };
    let lists = read.iter().map(|index| list(db, word_partition(&asked.words[*index].word), each));
    let pairs = asked.words.windows(2).take(LISTS - 1).filter_map(|pair| match pair {
        [one, other] => Some(list(db, pair_partition(&one.word, &other.word), PAIR)),
        _ => None,
    });
    let last = asked.words.len().saturating_sub(1);
    let near: Vec<(usize, Vec<Key>)> = read
        .iter()
        .map(|index| (*index, vocabulary::near_buckets(&asked.words[*index].word, *index == last)))
        .collect();
    let keys: Vec<Key> =
        near.iter().flat_map(|(_, keys)| keys.clone()).collect::<BTreeSet<Key>>().into_iter().collect();
    let (lists, names, buckets) = tokio::try_join!(
        try_join_all(lists.chain(pairs)),
        names(db, &asked),
        db.batch_get::<Bucket>(&db.tables.souls, &keys, false),
    )?;
    let buckets: BTreeMap<&Key, Bucket> =
        keys.iter().zip(buckets).filter_map(|(key, bucket)| Some((key, bucket?))).collect();
    let mut gathered = Gathered::default();
    for (rows, limit) in lists.into_iter().chain([names]) {
        gathered.take(rows, limit);
    }

    // Similar words: completions of the last word and, if little was found, typo corrections of all words.
    let full = |found: &[(&Slug, Match)]| found.iter().filter(|(_, matched)| matched.missing == 0).count();
    let few = full(&gathered.matching(&asked, category)) < FEW;
    let mut more: Vec<Near> = Vec::new();
    for (index, keys) in &near {
        let word = asked.words[*index].word.clone();
        let known = || keys.iter().filter_map(|key| buckets.get(key));
        let mut near = if *index == last { vocabulary::begun_by(&word, known()) } else { Vec::new() };
        if few {
            near.extend(vocabulary::meant_by(&word, known()));
        }
        more.extend(near.iter().cloned());
        asked.words[*index].near = near;
    }
    more.sort_by_key(|near| near.typos);
    let more: BTreeSet<String> = more.into_iter().take(NEAR_LISTS).map(|near| near.word).collect();
    for (rows, limit) in try_join_all(more.iter().map(|word| list(db, word_partition(word), NEAR_EACH))).await? {
        gathered.take(rows, limit);
    }

    let best = gathered.matching(&asked, category);
    let total = best.len();
    let slugs: Vec<Slug> = best.iter().take(limit + SPARE).map(|(slug, _)| (*slug).clone()).collect();
    let souls = listing::load(db, &slugs).await?;
    let asked_for = slugs.len();
    let mut found: Vec<(Soul, Match)> = souls.into_iter().flatten().filter_map(|soul| confirm(&asked, soul)).collect();
    let total = total - (asked_for - found.len());
    found.sort_by(|(soul, matched), (other_soul, other)| {
        let quality = |soul: &Soul| Standing::from(soul).quality();
        let by_quality = quality(other_soul).total_cmp(&quality(soul));
        matched.order().cmp(&other.order()).then(by_quality).then_with(|| soul.slug.cmp(&other_soul.slug))
    });
    found.truncate(limit);
    Ok(Results { found, total, cut: gathered.cut })
}

/// Checks a match against the record, because a posting may be outdated.
fn confirm(asked: &Asked, soul: Soul) -> Option<(Soul, Match)> {
    let slug = soul.slug.as_str();
    let (name, title) = (posting::joined(&soul.name), posting::title(&soul.name, slug));
    let bio = posting::bio_words(soul.bio.as_deref().unwrap_or_default());
    let has = |word: &str| bio.iter().any(|other| other == word);
    let candidate = Candidate { name: &name, slug: &posting::joined(slug), title: &title, bio_has: &has };
    let matched = judge(asked, &candidate).filter(|_| soul.is_active())?;
    Some((soul, matched))
}

impl Results {
    /// The body of `GET /v1/soul/search`.
    pub fn to_json(&self, query: &str) -> Value {
        let item = |(soul, matched): &(Soul, Match)| {
            json!({
                "id": soul.id(),
                "name": soul.name,
                "slug": soul.slug,
                "ens_name": soul.ens_name,
                // The inputs of the quality, so that anybody can recompute it.
                "stats": {
                    "total_jobs": soul.jobs,
                    "avg_rating": soul.avg_rating(),
                    "rating_count": soul.rating_count,
                    "distinct_buyers": soul.buyers,
                    "backing": soul.standing.backing,
                    "weighted_votes": soul.standing.votes(),
                    "weighted_stars": soul.standing.stars(),
                },
                "tier": matched.tier,
                "quality": (Standing::from(soul).quality() * 1_000.0).round() / 1_000.0,
                "why": matched.why,
            })
        };
        json!({
            "query": query,
            "results": self.found.iter().map(item).collect::<Vec<_>>(),
            "total": self.total,
            "total_relation": if self.cut { "at_least" } else { "exact" },
            "ranking": "/v1/soul/ranking",
        })
    }
}
