//! Compares names of people and firms: by their words, ignoring case, accents and order.

use crate::words::words;

/// Most words of a name that are compared.
const MAX_WORDS: usize = 12;
/// Titles and suffixes that are not part of a name.
const TITLES: [&str; 12] = ["dr", "prof", "mr", "mrs", "ms", "miss", "sir", "phd", "md", "jr", "sr", "mba"];
/// Words that many firms' names contain.
const OF_FIRMS: [&str; 24] = [
    "ab",
    "ag",
    "bv",
    "co",
    "company",
    "corp",
    "corporation",
    "gmbh",
    "group",
    "holding",
    "holdings",
    "inc",
    "incorporated",
    "kg",
    "limited",
    "llc",
    "llp",
    "ltd",
    "nv",
    "oy",
    "plc",
    "sa",
    "se",
    "the",
];

/// A word without accents, in both usual spellings: `Müller` becomes `muller` or `mueller`.
#[derive(PartialEq)]
struct Word {
    plain: String,
    spelt_out: String,
}

impl Word {
    fn is(&self, other: &Word) -> bool {
        [&self.plain, &self.spelt_out].iter().any(|one| **one == other.plain || **one == other.spelt_out)
    }

    /// Whether this is the same word or its initial.
    fn is_short_for(&self, other: &Word) -> bool {
        self.is(other) || self.plain.chars().count() == 1 && other.plain.starts_with(&self.plain)
    }
}

fn spelt(name: &str) -> Vec<Word> {
    let spelt_out: String = name
        .to_lowercase()
        .chars()
        .flat_map(|letter| match letter {
            'ä' | 'æ' => vec!['a', 'e'],
            'ö' | 'ø' => vec!['o', 'e'],
            'ü' => vec!['u', 'e'],
            'å' => vec!['a', 'a'],
            _ => vec![letter],
        })
        .collect();
    let both = words(name, MAX_WORDS).into_iter().zip(words(&spelt_out, MAX_WORDS));
    both.map(|(plain, spelt_out)| Word { plain, spelt_out }).collect()
}

/// Whether two names can be compared: both have words, and both or neither are in Latin letters. The same name in another
/// script would look different.
fn comparable(one: &[Word], other: &[Word]) -> bool {
    let latin = |name: &[Word]| name.iter().all(|word| word.plain.is_ascii());
    !one.is_empty() && !other.is_empty() && latin(one) == latin(other)
}

/// Whether a name contains all words of another; `None` if they cannot be compared.
pub fn has_all(name: &str, wanted: &str) -> Option<bool> {
    let (name, wanted) = (spelt(name), spelt(wanted));
    comparable(&name, &wanted).then(|| wanted.iter().all(|word| name.iter().any(|known| known.is(word))))
}

/// Whether both can be names of one person: every word of the shorter name, or its initial, is in the longer one. `None` if
/// they cannot be compared.
pub fn same_person(one: &str, other: &str) -> Option<bool> {
    let of = |name: &str| -> Vec<Word> {
        spelt(name).into_iter().filter(|word| !TITLES.contains(&word.plain.as_str())).collect()
    };
    let (one, other) = (of(one), of(other));
    let (short, long) = if one.len() <= other.len() { (&one, &other) } else { (&other, &one) };
    let is_there = |word: &Word| long.iter().any(|known| word.is_short_for(known) || known.is_short_for(word));
    comparable(&one, &other).then(|| short.iter().all(is_there))
}

/// Whether two names share a word; `None` if they cannot be compared.
pub fn are_related(one: &str, other: &str) -> Option<bool> {
    let (one, other) = (spelt(one), spelt(other));
    comparable(&one, &other).then(|| share_a_word(&one, &other))
}

fn share_a_word(one: &[Word], other: &[Word]) -> bool {
    one.iter().any(|word| other.iter().any(|known| known.is(word)))
}

/// Whether both can be names of one firm: they share a distinctive word, one is the initials of the other, or they are
/// equal without spaces. `None` if they cannot be compared.
pub fn same_firm(one: &str, other: &str) -> Option<bool> {
    let of = |name: &str| -> Vec<Word> {
        let all = spelt(name);
        match all.iter().all(|word| OF_FIRMS.contains(&word.plain.as_str())) {
            true => all,
            false => all.into_iter().filter(|word| !OF_FIRMS.contains(&word.plain.as_str())).collect(),
        }
    };
    let (one, other) = (of(one), of(other));
    let joined = |name: &[Word]| name.iter().map(|word| word.plain.as_str()).collect::<String>();
    let initials = |name: &[Word]| name.iter().filter_map(|word| word.plain.chars().next()).collect::<String>();
    let abbreviates = |short: &[Word], long: &[Word]| long.len() > 1 && joined(short) == initials(long);
    let same = share_a_word(&one, &other)
        || joined(&one) == joined(&other)
        || abbreviates(&one, &other)
        || abbreviates(&other, &one);
    comparable(&one, &other).then_some(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_by_their_words() {
        let (yes, no) = (Some(true), Some(false));
        for (name, wanted, has) in [
            ("LOVELACE, Ada", "Ada Lovelace", yes),
            ("ADA KING LOVELACE", "Ada Lovelace", yes),
            ("Ada Lovelace", "Ada King Lovelace", no),
            ("Ida Lovelace", "Ada Lovelace", no),
            ("EMILE ZOLA", "\u{c9}mile Zola", yes),
            ("JOERG MUELLER", "J\u{f6}rg M\u{fc}ller", yes),
            ("JORG MULLER", "J\u{f6}rg M\u{fc}ller", yes),
            ("LI MING", "\u{674e}\u{660e}", None),
            ("Ada", "", None),
        ] {
            assert_eq!(has_all(name, wanted), has, "{name} has {wanted}");
        }
        for (one, other, same) in [
            ("Jane Doe", "jane q. doe", yes),
            ("J. Doe", "Jane Doe", yes),
            ("Dr. Jane Doe", "Jane Doe-Miller", yes),
            ("Jane Doe", "John Doe", no),
            ("Jane Doe", "Jane Roe", no),
            ("Jane Doe", "\u{674e}\u{660e}", None),
        ] {
            assert_eq!((same_person(one, other), same_person(other, one)), (same, same), "{one}, {other}");
        }
        for (one, other, same) in [
            ("Example", "Example Corporation", yes),
            ("IBM", "International Business Machines Corp.", yes),
            ("Light House Ltd", "Lighthouse", yes),
            ("Example Inc", "Other Inc", no),
            ("The Company", "The Group", yes),
        ] {
            assert_eq!((same_firm(one, other), same_firm(other, one)), (same, same), "{one}, {other}");
        }
    }
}
