//! Rules that find phrases.
//!
//! A rule is a sequence of word groups in one sentence with few words between them: *sells* and, within a few words,
//! *cocaine*. A rule does not apply if the sentence, or the line that opens its list, forbids it first ("never", "refuse"),
//! or if the sentence is about working against it ("malware analysis").

use std::collections::HashMap;

use base::untrusted_text::is_invisible;

/// One rule. Alternatives are lower-case and separated by `|`. A `*` at the end stands for any ending. A space joins
/// adjacent words.
pub struct Rule {
    pub category: &'static str,
    /// One alternative of each group must occur, in this order. In the first group, the first word has no `*`.
    pub groups: &'static [&'static str],
    /// Most words between two groups.
    pub gap: usize,
    /// A sentence with one of these is harmless.
    pub unless: &'static [&'static str],
}

/// A list of rules, by the first word of their first group, so that most words of a text cost one look-up.
pub struct RuleSet {
    by_first_word: HashMap<&'static str, Vec<(&'static Rule, &'static str)>>,
}

/// If one of these words comes before the match in a sentence, the sentence forbids the thing.
const NEGATIONS: &str = "never|not|no|dont|doesnt|wont|cannot|cant|refuse*|refusing|decline*|declining|avoid*|\
        forbid*|forbidden|prohibit*|against|without|reject*|block*|stop*|neither|nor|disallow*|\
        illegal to|mustnt|shouldnt|isnt|arent|anti|except|exclud*|unable";

impl RuleSet {
    pub fn new(rules: &'static [Rule]) -> RuleSet {
        let mut by_first_word: HashMap<&str, Vec<_>> = HashMap::new();
        for rule in rules {
            for phrase in rule.groups.first().into_iter().flat_map(|group| group.split('|')) {
                by_first_word.entry(phrase.split(' ').next().unwrap_or_default()).or_default().push((rule, phrase));
            }
        }
        // A wildcard would never be found.
        debug_assert!(by_first_word.keys().all(|word| !word.is_empty() && !word.contains('*')));
        RuleSet { by_first_word }
    }

    /// The categories of the rules that a text breaks, without duplicates.
    pub fn broken(&self, text: &str) -> Vec<&'static str> {
        let mut found = Vec::new();
        // Whether the line that opened the current list forbids its items.
        let mut list_forbids = false;
        for line in text.lines() {
            let bare = line.trim_start();
            let is_item = bare.starts_with(['-', '*', '•', '+'])
                || bare.trim_start_matches(|digit: char| digit.is_ascii_digit()).starts_with(['.', ')'])
                    && !bare.is_empty();
            let words = words(line);
            if !is_item && !words.is_empty() {
                let opens = line.trim_end().ends_with(':') || bare.starts_with('#');
                list_forbids = opens && words.iter().any(|word| is_one_of(word, NEGATIONS));
            }
            for sentence in line.split(['.', '!', '?', ';']) {
                if !(list_forbids && is_item) {
                    self.judge(&self::words(sentence), &mut found);
                }
            }
        }
        found
    }

    /// Adds the categories of the rules that a sentence breaks and that `found` does not have yet.
    fn judge(&self, words: &[String], found: &mut Vec<&'static str>) {
        let forbidden_from = words.iter().position(|word| is_one_of(word, NEGATIONS)).unwrap_or(words.len());
        // Rules whose `unless` makes this sentence harmless.
        let mut excused: Vec<&Rule> = Vec::new();
        for at in 0..forbidden_from {
            for (rule, phrase) in self.by_first_word.get(words[at].as_str()).into_iter().flatten() {
                if found.contains(&rule.category) || excused.iter().any(|other| std::ptr::eq(*other, *rule)) {
                    continue;
                }
                let rest = rule.groups.get(1..).unwrap_or_default();
                let hits =
                    length_at(phrase, words, at).is_some_and(|length| follows(rest, words, at + length, rule.gap));
                if hits && words.iter().any(|word| rule.unless.iter().any(|parts| is_one_of(word, parts))) {
                    excused.push(rule);
                } else if hits {
                    found.push(rule.category);
                }
            }
        }
    }
}

/// Whether the groups occur in order from here, with at most `gap` words before each.
fn follows(groups: &[&str], words: &[String], from: usize, gap: usize) -> bool {
    let Some((group, rest)) = groups.split_first() else { return true };
    (from..=(from + gap).min(words.len())).any(|at| {
        group
            .split('|')
            .any(|phrase| length_at(phrase, words, at).is_some_and(|length| follows(rest, words, at + length, gap)))
    })
}

/// The number of words of a phrase, if it occurs here.
fn length_at(phrase: &str, words: &[String], at: usize) -> Option<usize> {
    let mut length = 0;
    for part in phrase.split(' ') {
        if !matches(part, words.get(at + length)?) {
            return None;
        }
        length += 1;
    }
    Some(length)
}

pub fn is_one_of(word: &str, parts: &str) -> bool {
    parts.split('|').any(|part| matches(part, word))
}

fn matches(part: &str, word: &str) -> bool {
    part.strip_suffix('*').map_or(part == word, |start| word.starts_with(start))
}

/// Lower-case words, without tricks that hide them: invisible characters and full-width letters.
pub fn words(text: &str) -> Vec<String> {
    let plain: String = text
        .chars()
        .filter(|letter| !is_invisible(*letter) && !matches!(letter, '\'' | '’' | '`'))
        .map(|letter| match letter {
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter),
            letter => letter,
        })
        .flat_map(char::to_lowercase)
        .collect();
    plain.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}
