//! Compares souls with a query. The result says how well a soul matches, and explains why in words.

use super::ranking::Tier;
use super::vocabulary::Near;
use super::words::{is_stop_word, typos, typos_allowed, words};

/// Number of query words that are compared.
const MOST_WORDS: usize = 8;

/// A query, with the similar words of the vocabulary.
#[derive(Clone, Debug)]
pub struct Asked {
    /// All words, joined by hyphens. Names are compared with it.
    pub joined: String,
    pub words: Vec<AskedWord>,
}

#[derive(Clone, Debug)]
pub struct AskedWord {
    pub word: String,
    /// Vocabulary words that start with it or differ from it by typos.
    pub near: Vec<Near>,
}

impl Asked {
    pub fn read(query: &str) -> Asked {
        let all = words(query, 4 * MOST_WORDS);
        let telling: Vec<&String> = all.iter().filter(|word| !is_stop_word(word)).collect();
        let judged = if telling.is_empty() { all.iter().collect() } else { telling };
        let mut words: Vec<AskedWord> = Vec::new();
        for word in judged {
            if words.len() < MOST_WORDS && words.iter().all(|asked| asked.word != *word) {
                words.push(AskedWord { word: word.clone(), near: Vec::new() });
            }
        }
        Asked { joined: all.join("-"), words }
    }
}

/// A soul to match: its record, or the contents of a posting.
pub struct Candidate<'a> {
    /// The words of the name, joined by hyphens. `slug` has those of the slug.
    pub name: &'a str,
    pub slug: &'a str,
    /// The words of the name and the slug.
    pub title: &'a [String],
    pub bio_has: &'a dyn Fn(&str) -> bool,
}

/// How one word of the query was found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Name,
    Bio,
    /// The query's word is the beginning of this word.
    Begun(String),
    /// The query's word differs from this word by this many typos.
    Typo(String, usize),
    Not,
}

/// A match. Better matches compare as smaller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Match {
    pub tier: Tier,
    pub typos: usize,
    /// Number of query words that were not found.
    pub missing: usize,
    /// The explanation, shown with the result.
    pub why: String,
}

impl Match {
    /// The part of the sort key that comes before the quality.
    pub fn order(&self) -> (Tier, usize, usize) {
        (self.tier, self.typos, self.missing)
    }
}

/// How well a soul matches; `None` if it does not.
pub fn judge(asked: &Asked, soul: &Candidate<'_>) -> Option<Match> {
    if asked.joined.is_empty() {
        return None;
    }
    let exact = |why: String, tier: Tier| Some(Match { tier, typos: 0, missing: 0, why });
    for (what, text) in [("name", soul.name), ("slug", soul.slug)] {
        if text == asked.joined {
            return exact(format!("its {what} is exactly this"), Tier::Exact);
        }
    }
    for (what, text) in [("name", soul.name), ("slug", soul.slug)] {
        if text.starts_with(&asked.joined) {
            return exact(format!("its {what} begins with this"), Tier::Prefix);
        }
    }
    let last = asked.words.len().saturating_sub(1);
    let found: Vec<(&str, Found)> = asked
        .words
        .iter()
        .enumerate()
        .map(|(index, word)| (word.word.as_str(), look(word, index == last, soul)))
        .collect();
    let missing = found.iter().filter(|(_, found)| *found == Found::Not).count();
    let typos = found.iter().map(|(_, found)| if let Found::Typo(_, typos) = found { *typos } else { 0 }).sum();
    let all = |is: fn(&Found) -> bool| found.iter().all(|(_, found)| is(found));
    let tier = if all(|found| *found == Found::Name) {
        Tier::NameWords
    } else if all(|found| matches!(found, Found::Name | Found::Bio)) {
        Tier::Words
    } else if all(|found| matches!(found, Found::Name | Found::Bio | Found::Begun(_))) {
        Tier::Begun
    } else if missing == 0 {
        Tier::Fuzzy
    } else if missing * 2 <= found.len() {
        Tier::Some
    } else {
        return None;
    };
    Some(Match { tier, typos, missing, why: why(&found) })
}

fn look(asked: &AskedWord, last: bool, soul: &Candidate<'_>) -> Found {
    let word = &asked.word;
    if soul.title.contains(word) {
        return Found::Name;
    }
    if (soul.bio_has)(word) {
        return Found::Bio;
    }
    if last && word.chars().count() >= 2 {
        let begun = |other: &&String| other.starts_with(word.as_str());
        let near = asked.near.iter().filter(|near| near.typos == 0).map(|near| &near.word);
        if let Some(other) =
            soul.title.iter().find(begun).or_else(|| near.into_iter().find(|near| (soul.bio_has)(near)))
        {
            return Found::Begun(other.clone());
        }
    }
    let most = typos_allowed(word);
    let in_title = soul.title.iter().filter_map(|other| Some((typos(word, other, most)?, other)));
    let in_bio = asked.near.iter().filter(|near| near.typos > 0 && (soul.bio_has)(&near.word));
    let best = in_title.chain(in_bio.map(|near| (near.typos, &near.word))).min();
    best.map_or(Found::Not, |(typos, other)| Found::Typo(other.clone(), typos))
}

fn why(found: &[(&str, Found)]) -> String {
    let list = |is: fn(&Found) -> bool| {
        let words: Vec<String> =
            found.iter().filter(|(_, found)| is(found)).map(|(word, _)| format!("\"{word}\"")).collect();
        words.join(", ")
    };
    let mut parts = Vec::new();
    for (words, where_) in
        [(list(|found| *found == Found::Name), "in its name"), (list(|found| *found == Found::Bio), "in its bio")]
    {
        if !words.is_empty() {
            parts.push(format!("{words} {where_}"));
        }
    }
    for (word, found) in found {
        match found {
            Found::Begun(other) => parts.push(format!("\"{word}\" begins \"{other}\"")),
            Found::Typo(other, _) => parts.push(format!("\"{word}\" read as \"{other}\"")),
            _ => {}
        }
    }
    let missing = list(|found| *found == Found::Not);
    if !missing.is_empty() {
        parts.push(format!("without {missing}"));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posting::{bio_words, joined, title};

    #[test]
    fn each_tier_has_its_example() {
        let judged = |query: &str| {
            let mut asked = Asked::read(query);
            for word in &mut asked.words {
                if word.word == "contarct" {
                    word.near = vec![Near { word: "contracts".to_owned(), typos: 2 }];
                }
            }
            let (name, slug) = ("Solidity Auditor", "sol-audit-pro");
            let bio = bio_words("Reviews smart contracts and Rust programs for vulnerabilities.");
            let (title, name, slug) = (title(name, slug), joined(name), joined(slug));
            let has = |word: &str| bio.iter().any(|other| other == word);
            judge(&asked, &Candidate { name: &name, slug: &slug, title: &title, bio_has: &has })
        };
        for (query, tier, why) in [
            ("solidity auditor", Tier::Exact, "its name is exactly this"),
            ("Sol-Audit-Pro", Tier::Exact, "its slug is exactly this"),
            ("solid", Tier::Prefix, "its name begins with this"),
            ("auditor pro", Tier::NameWords, "\"auditor\", \"pro\" in its name"),
            ("the auditor of rust", Tier::Words, "\"auditor\" in its name; \"rust\" in its bio"),
            ("pro aud", Tier::Begun, "\"pro\" in its name; \"aud\" begins \"auditor\""),
            ("soldity pro", Tier::Fuzzy, "\"pro\" in its name; \"soldity\" read as \"solidity\""),
            ("smart contarct", Tier::Fuzzy, "\"smart\" in its bio; \"contarct\" read as \"contracts\""),
            ("auditor haskell", Tier::Some, "\"auditor\" in its name; without \"haskell\""),
        ] {
            let found = judged(query).unwrap_or_else(|| panic!("{query}"));
            assert_eq!((found.tier, found.why.as_str()), (tier, why), "{query}");
        }
        for query in ["haskell", "", "🦀", "haskell prolog rust", "aud solidity x y"] {
            assert_eq!(judged(query), None, "{query}");
        }
    }
}
