//! Search entries of a soul in the souls table. They are derived from its record alone.
//!
//! | key | contents | read by |
//! |---|---|---|
//! | `NAMES#<first 2 letters>` / `<name>#<level>#<slug>` | its name, and its slug as a name | the whole query, compared with names and beginnings of names |
//! | `WORD#<word>` / `<where><level>#<slug>` | each word; where: 0 first of the name, 1 name, 2 bio | each word of the query |
//! | `WORD#<word>+<word>` / the same | adjacent words, in either order | adjacent words of the query |
//! | `SOUL#<slug>` / `CATEGORY#<category>`, with a place in the index `listed` | jobs | browsing a category |
//!
//! Levels are inverted, so that the best come first. Each posting carries what a query with several words needs next:
//! the name, and a fingerprint of the bio's words. So lists are intersected without reading souls, and the number of
//! items read does not depend on the number of souls. Entries are hints: a result is checked against the record itself.

use std::collections::{BTreeMap, BTreeSet};

use base::digest::sha256;
use platform::store::Key;
use serde::{Deserialize, Serialize};

use super::category::Category;
use super::listing;
use super::ranking::{LEVELS, Standing};
use super::service::Service;
use super::soul::{self, Soul};
use super::words::{is_stop_word, words};

/// Limits for one soul, however long its texts are: 60 words and 24 pairs.
const NAME_WORDS: usize = 12;
const TITLE_WORDS: usize = 16;
const BIO_WORDS: usize = 44;
const PAIRS: usize = 24;
/// Number of words of a bio that are read.
const BIO_SEEN: usize = 200;
/// Bytes per word in a fingerprint. With 60 words, one query in 280 000 gets a false hit, which the record then
/// rejects.
const PRINT_BYTES: usize = 3;

/// The content of a soul's search entries. Equal values give equal entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Indexed {
    /// The words of the name, joined by hyphens.
    pub name: String,
    /// The words of the name, then those that only the slug has.
    pub title: Vec<String>,
    pub bio: Vec<String>,
    pub level: u8,
    pub jobs: u64,
    /// Active services.
    #[serde(default)]
    pub services: BTreeMap<Category, u32>,
}

/// One entry of a word or a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posting {
    /// The name's words, joined by hyphens.
    #[serde(rename = "n")]
    pub name: String,
    /// Fingerprint of the bio's words.
    #[serde(rename = "b", default, skip_serializing_if = "Vec::is_empty", with = "serde_bytes")]
    pub print: Vec<u8>,
    /// One bit for each category with an active service.
    #[serde(rename = "c")]
    pub categories: u16,
}

/// A place in the index `listed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub listed: String,
    pub jobs: u64,
    pub slug: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Entry {
    Posting(Posting),
    Place(Place),
}

/// The bit of a category in [`Posting::categories`].
pub fn bit(category: Category) -> u16 {
    1 << category as u16
}

/// A name in its compared form: words joined by hyphens.
pub fn joined(text: &str) -> String {
    words(text, NAME_WORDS).join("-")
}

/// The index words of a soul's name and slug.
pub fn title(name: &str, slug: &str) -> Vec<String> {
    let mut title = words(name, NAME_WORDS);
    for word in words(slug, NAME_WORDS) {
        if !title.contains(&word) {
            title.push(word);
        }
    }
    title.truncate(TITLE_WORDS);
    title
}

/// The index words of a bio.
pub fn bio_words(bio: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for word in words(bio, BIO_SEEN) {
        if found.len() < BIO_WORDS && !is_stop_word(&word) && seen.insert(word.clone()) {
            found.push(word);
        }
    }
    found
}

impl Indexed {
    /// The entries of a soul. `posted` is its earlier level.
    pub fn of(soul: &Soul, services: &[Service], posted: Option<u8>) -> Indexed {
        let mut active: BTreeMap<Category, u32> = BTreeMap::new();
        for service in services.iter().filter(|service| service.active) {
            *active.entry(service.category).or_default() += 1;
        }
        Indexed {
            name: joined(&soul.name),
            title: title(&soul.name, soul.slug.as_str()),
            bio: bio_words(soul.bio.as_deref().unwrap_or_default()),
            level: Standing::from(soul).level(posted),
            jobs: soul.jobs,
            services: active,
        }
    }

    /// All words, without duplicates.
    pub fn words(&self) -> BTreeSet<&str> {
        self.title.iter().chain(&self.bio).map(String::as_str).collect()
    }

    /// Every entry by its key.
    pub fn entries(&self, slug: &str) -> BTreeMap<Key, Entry> {
        let posting = Posting {
            name: self.name.clone(),
            print: self.bio.iter().flat_map(|word| print_of(word)).collect(),
            categories: self.services.keys().map(|category| bit(*category)).sum(),
        };
        let level = LEVELS - 1 - self.level.min(LEVELS - 1);
        let mut entries = BTreeMap::new();
        let mut post = |key: Key| {
            entries.entry(key).or_insert_with(|| Entry::Posting(posting.clone()));
        };
        let slug_name = joined(slug);
        for name in [&self.name, &slug_name].into_iter().filter(|name| !name.is_empty()) {
            post(Key::new(names_partition(name), format!("{name}#{level:02}#{slug}")));
        }
        let slug_first = slug_name.split('-').next();
        for (index, word) in self.title.iter().enumerate() {
            let first = index == 0 || Some(word.as_str()) == slug_first;
            post(Key::new(word_partition(word), format!("{}{level:02}#{slug}", u8::from(!first))));
        }
        for word in self.bio.iter().filter(|word| !self.title.contains(word)) {
            post(Key::new(word_partition(word), format!("2{level:02}#{slug}")));
        }
        let pairs = self.title.windows(2).map(|pair| (pair, 1)).chain(self.bio.windows(2).map(|pair| (pair, 2)));
        let mut seen = BTreeSet::new();
        for (pair, place) in pairs {
            if let [one, other] = pair
                && seen.len() < PAIRS
                && seen.insert(pair_partition(one, other))
            {
                post(Key::new(pair_partition(one, other), format!("{place}{level:02}#{slug}")));
            }
        }
        for category in self.services.keys() {
            let place = Place { listed: listing::place(Some(*category), slug), jobs: self.jobs, slug: slug.to_owned() };
            let key = Key::new(soul::partition(slug), format!("CATEGORY#{}", category.as_str()));
            entries.insert(key, Entry::Place(place));
        }
        entries
    }
}

impl Posting {
    /// Whether the bio has this word, by fingerprint. Rare false positives (three bytes of hash per word).
    pub fn bio_has(&self, word: &str) -> bool {
        let print = print_of(word);
        self.print.chunks_exact(PRINT_BYTES).any(|chunk| chunk == print)
    }
}

fn print_of(word: &str) -> [u8; PRINT_BYTES] {
    let hash = sha256(word.as_bytes());
    [hash[0], hash[1], hash[2]]
}

/// The partition of names that start with these letters.
pub fn names_partition(joined: &str) -> String {
    format!("NAMES#{}", joined.chars().take(2).collect::<String>())
}

pub fn word_partition(word: &str) -> String {
    format!("WORD#{word}")
}

/// The partition of two adjacent words, in either order.
pub fn pair_partition(one: &str, other: &str) -> String {
    format!("WORD#{}+{}", one.min(other), one.max(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_per_soul_are_bounded() {
        let flood: String = (0..1_000).map(|number| format!("w{number} ")).collect();
        let indexed = Indexed {
            name: joined(&flood),
            title: title(&flood, &"a-".repeat(50)),
            bio: bio_words(&flood),
            ..Indexed::default()
        };
        assert!(indexed.words().len() <= 60);
        assert!(indexed.entries("flood").len() <= 2 + 60 + 24);
        let longest = "x".repeat(255);
        let indexed = Indexed { name: joined(&longest), title: title(&longest, "abc"), ..Indexed::default() };
        assert!(indexed.entries("abc").keys().all(|key| key.pk.len() + key.sk.len() < 1_024));
    }

    #[test]
    fn names_sort_before_bios_and_better_levels_first() {
        let entry = |level: u8, title: &str, bio: &str| {
            let indexed = Indexed { title: title_of(title), bio: bio_words(bio), level, ..Indexed::default() };
            let of_word = indexed.entries("zzz").into_keys().find(|key| key.pk == "WORD#atlas");
            of_word.expect("an entry of the word").sk
        };
        fn title_of(text: &str) -> Vec<String> {
            words(text, 12)
        }
        let order = [
            entry(9, "atlas maps", ""),
            entry(2, "atlas", ""),
            entry(30, "my atlas", ""),
            entry(31, "maps", "an atlas"),
        ];
        assert!(order.is_sorted(), "{order:?}");
    }
}
