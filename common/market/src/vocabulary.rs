//! The vocabulary of all souls' words, in small buckets. With it a search finds words that are similar to a word of the
//! query: words that begin with it, and words that differ from it by typos. A word is in four buckets, however many souls
//! use it.
//!
//! In a word of at least four letters, one typo leaves either the first two or the last two letters unchanged and
//! changes the length by at most one. The exception is a swap in the middle of four letters, which is looked up
//! separately. So all similar words are in a few buckets: `STARTS#<first 2>#<length>` and `ENDS#<last 2>#<length>`.
//! Beginnings are in `BEGINS#<first 2 or 3>`.
//!
//! A bucket is one item with at most [`BUCKET_WORDS`] words. A full bucket takes a new word only if four times as many
//! souls use it as the rarest word there, and one soul adds at most [`SHARE`] new words to a bucket. So flooding a
//! bucket with nonsense takes a hundred souls, and real words soon replace the nonsense. Until then, words are still
//! found as they are written; only typo correction suffers.

use std::collections::{BTreeMap, BTreeSet};

use base::digest;
use futures_util::future::try_join_all;
use platform::store::db::parse;
use platform::store::{Db, Key, StoreError, Write, WriteError};
use serde::{Deserialize, Serialize};

use super::words::{typos, typos_allowed};

/// Most words of a bucket, about 5 KB.
const BUCKET_WORDS: usize = 300;
/// New words that one soul may add to one bucket.
const SHARE: usize = 4;
/// Largest count of souls per word; a higher count makes no difference.
const COUNTED: u64 = 256;
/// Retries when others write the same bucket.
const RETRIES: u32 = 10;
/// Most similar words of one kind.
pub const NEAR: usize = 3;

/// Words, with how common each is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// The value is the [`band`] of the number of souls.
    pub words: BTreeMap<String, u8>,
    #[serde(default)]
    pub revision: u64,
}

impl Bucket {
    /// Adds a word or raises its band. Returns whether that changed anything.
    pub fn offer(&mut self, word: &str, band: u8) -> bool {
        if let Some(known) = self.words.get_mut(word) {
            let moved = *known < band;
            *known = band.max(*known);
            return moved;
        }
        if self.words.len() >= BUCKET_WORDS {
            let rarest = self.words.iter().min_by_key(|(_, band)| **band).map(|(word, band)| (word.clone(), *band));
            match rarest {
                Some((rarest, rarity)) if rarity < band => self.words.remove(&rarest),
                _ => return false,
            };
        }
        self.words.insert(word.to_owned(), band);
        true
    }
}

/// How common a word is, in powers of four: 0 to 3 souls, then from 4, 16, 64 and 256.
pub fn band(souls: u64) -> u8 {
    souls.clamp(1, COUNTED).ilog(4) as u8
}

/// A word that a query may have meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    pub word: String,
    /// 0 if the query's word is its beginning.
    pub typos: usize,
}

fn bucket(kind: &str, letters: impl Iterator<Item = char>, length: Option<usize>) -> Key {
    let letters: String = letters.collect();
    let length = length.map(|length| format!("#{length}")).unwrap_or_default();
    Key::new(format!("{kind}#{letters}{length}"), "WORDS")
}

fn starts(word: &[char], length: usize) -> Key {
    bucket("STARTS", word.iter().take(2).copied(), Some(length))
}

fn ends(word: &[char], length: usize) -> Key {
    bucket("ENDS", word.iter().skip(word.len().saturating_sub(2)).copied(), Some(length))
}

/// The buckets of a word.
pub fn buckets(word: &str) -> Vec<Key> {
    let letters: Vec<char> = word.chars().collect();
    if letters.len() < 3 {
        return Vec::new();
    }
    vec![
        bucket("BEGINS", letters.iter().take(2).copied(), None),
        bucket("BEGINS", letters.iter().take(3).copied(), None),
        starts(&letters, letters.len()),
        ends(&letters, letters.len()),
    ]
}

/// The buckets to read for words that begin with `word` (if `begun`) or differ from it by a typo: at most eleven.
pub fn near_buckets(word: &str, begun: bool) -> Vec<Key> {
    let letters: Vec<char> = word.chars().collect();
    let mut keys = Vec::new();
    if begun && letters.len() >= 2 {
        keys.push(bucket("BEGINS", letters.iter().take(3).copied(), None));
    }
    let most = typos_allowed(word);
    if most > 0 {
        for length in letters.len() - most..=letters.len() + most {
            keys.push(starts(&letters, length));
            keys.push(ends(&letters, length));
        }
        if let [one, two, three, _] = letters[..] {
            keys.push(starts(&[one, three, two], 4));
        }
    }
    keys
}

/// Words in these buckets that begin with `word`, the most common first.
pub fn begun_by<'a>(word: &str, buckets: impl IntoIterator<Item = &'a Bucket>) -> Vec<Near> {
    let mut found = BTreeSet::new();
    for (other, band) in buckets.into_iter().flat_map(|bucket| &bucket.words) {
        if other != word && other.starts_with(word) {
            found.insert((u8::MAX - band, other.len(), other));
        }
    }
    found.into_iter().take(NEAR).map(|(_, _, word)| Near { word: word.clone(), typos: 0 }).collect()
}

/// Words in these buckets that differ from `word` by typos: the fewest typos first, then the most common.
pub fn meant_by<'a>(word: &str, buckets: impl IntoIterator<Item = &'a Bucket>) -> Vec<Near> {
    let most = typos_allowed(word);
    let mut found = BTreeSet::new();
    for (other, band) in buckets.into_iter().flat_map(|bucket| &bucket.words) {
        if let Some(distance) = typos(word, other, most)
            && distance > 0
        {
            found.insert((distance, u8::MAX - band, other));
        }
    }
    found.into_iter().take(NEAR).map(|(typos, _, word)| Near { word: word.clone(), typos }).collect()
}

#[derive(Deserialize)]
struct Counted {
    souls: u64,
}

fn count_key(word: &str) -> Key {
    Key::new(format!("VOCABULARY#{word}"), "SOULS")
}

/// Counts one more soul for each of these words (at most sixty). A repeated call only makes a word look slightly more
/// common.
pub async fn learn(db: &Db, words: &BTreeSet<&str>) -> Result<(), StoreError> {
    let words: Vec<&str> = words.iter().copied().filter(|word| word.chars().count() >= 3).collect();
    let keys: Vec<Key> = words.iter().map(|word| count_key(word)).collect();
    let counted: Vec<Option<Counted>> = db.batch_get(&db.tables.souls, &keys, false).await?;
    let rare = words.iter().zip(counted).filter(|(_, counted)| counted.as_ref().is_none_or(|it| it.souls < COUNTED));
    let counts = try_join_all(rare.map(|(word, _)| count(db, word))).await?;
    // A word's band changes at powers of four. Rare words are always written, in case an earlier write was lost.
    let moved = counts.into_iter().filter(|(_, souls)| *souls < 4 || souls.is_power_of_two() && souls.ilog2() % 2 == 0);
    let mut offers: BTreeMap<Key, Vec<(&str, u8)>> = BTreeMap::new();
    for (word, souls) in moved {
        for key in buckets(word) {
            offers.entry(key).or_default().push((word, band(souls)));
        }
    }
    let keys: Vec<Key> = offers.keys().cloned().collect();
    let known: Vec<Option<Bucket>> = db.batch_get(&db.tables.souls, &keys, false).await?;
    let offers = offers.into_iter().zip(known);
    try_join_all(offers.map(|((key, words), known)| offer(db, key, known.unwrap_or_default(), words))).await?;
    Ok(())
}

/// Counts one more soul for a word. Returns the new count.
async fn count<'a>(db: &Db, word: &'a str) -> Result<(&'a str, u64), StoreError> {
    let write = Write::update(&db.tables.souls, count_key(word), "ADD #souls :one").bind("one", 1)?;
    let Counted { souls } = parse(db.write(write).await?)?;
    Ok((word, souls))
}

async fn offer(db: &Db, key: Key, mut bucket: Bucket, words: Vec<(&str, u8)>) -> Result<(), StoreError> {
    for attempt in 0..RETRIES {
        let mut brought = 0;
        let mut changed = false;
        for (word, band) in &words {
            let new = !bucket.words.contains_key(*word);
            if new && brought == SHARE {
                continue;
            }
            let taken = bucket.offer(word, *band);
            brought += usize::from(taken && new);
            changed |= taken;
        }
        if !changed {
            return Ok(());
        }
        let before = bucket.revision;
        bucket.revision += 1;
        let write = Write::put(&db.tables.souls, key.clone(), &bucket)?;
        let write = if before == 0 {
            write.only_if_new()
        } else {
            write.only_if("#revision = :before").bind("before", before)?
        };
        match db.write(write).await {
            Ok(_) => return Ok(()),
            Err(WriteError::Failed(error)) => return Err(error),
            Err(WriteError::Refused(_)) => {
                let wait = u64::from(digest::random::<1>()[0]) << attempt.min(3);
                tokio::time::sleep(std::time::Duration::from_millis(wait / 8)).await;
                bucket = db.get_latest(&db.tables.souls, key.clone()).await?.unwrap_or_default();
            }
        }
    }
    Err(StoreError::new("a bucket of the vocabulary is too busy"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every word one typo away is in a bucket that is read.
    #[test]
    fn words_one_typo_away_are_in_the_buckets_read() {
        for word in ["desk", "audit", "writer", "research", "vulnerability"] {
            let letters: Vec<char> = word.chars().collect();
            let mut typed = Vec::new();
            for place in 0..letters.len() {
                let (head, tail) = letters.split_at(place);
                typed.push([head, &tail[1..]].concat());
                typed.push([head, &['q'], tail].concat());
                typed.push([head, &['q'], &tail[1..]].concat());
                if tail.len() > 1 {
                    typed.push([head, &[tail[1], tail[0]], &tail[2..]].concat());
                }
            }
            typed.push([&letters[..], &['q']].concat());
            for typed in typed.iter().map(|letters| letters.iter().collect::<String>()) {
                if typos_allowed(&typed) == 0 || typed == word {
                    continue;
                }
                let near = near_buckets(&typed, true);
                assert!(near.len() <= 11);
                assert!(buckets(word).iter().any(|key| near.contains(key)), "{typed} for {word}");
            }
        }
    }

    #[test]
    fn a_full_bucket_takes_more_common_words() {
        let mut bucket = Bucket::default();
        for number in 0..BUCKET_WORDS {
            assert!(bucket.offer(&format!("nonsense{number}"), 0));
        }
        assert!(!bucket.offer("research", 0), "no rarer than the others");
        assert!(bucket.offer("research", 1));
        assert!(!bucket.offer("research", 1), "known");
        assert_eq!(bucket.words.len(), BUCKET_WORDS);
        assert_eq!([0, 1, 3, 4, 16, 255, 256, 9_999].map(band), [0, 0, 0, 1, 2, 3, 4, 4]);
        let near = meant_by("reserch", [&bucket]);
        assert_eq!(near, [Near { word: "research".to_owned(), typos: 1 }]);
        assert_eq!(begun_by("resea", [&bucket])[0].word, "research");
    }
}
