//! Splits text into words for search, stems them, and measures typos between words.

use frostem::{Algorithm, Stemmer};

/// Longer words are cut: nobody searches for them, and keys need a bound.
pub const MAX_WORD_CHARS: usize = 32;

/// Common English words that are not used for search.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "for", "from", "get", "has",
    "have", "i", "in", "into", "is", "it", "its", "just", "me", "more", "my", "no", "not", "of", "on", "or", "our",
    "so", "that", "the", "their", "them", "they", "this", "to", "up", "us", "was", "we", "what", "when", "which",
    "who", "will", "with", "you", "your",
];

pub fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// The words of a text in order, in lower case and without accents: runs of letters and digits. Scripts without spaces are
/// split into overlapping pairs of characters. Returns at most `most` words, so a long text costs no more.
pub fn words(text: &str, most: usize) -> Vec<String> {
    let mut words = Vec::new();
    let mut run = String::new();
    let mut dense: Option<char> = None;
    let mut lone = false;
    // The trailing space closes the last word.
    for letter in text.chars().chain([' ']) {
        if words.len() >= most {
            break;
        }
        if is_dense(letter) {
            close(&mut run, &mut words);
            if let Some(before) = dense.replace(letter) {
                words.push([before, letter].iter().collect());
                lone = false;
            } else {
                lone = true;
            }
            continue;
        }
        if let Some(only) = dense.take()
            && lone
        {
            words.push(only.to_string());
        }
        match letter {
            // Joins the parts of a word, or is an accent.
            '\'' | '’' | '\u{ad}' | '\u{300}'..='\u{36f}' => {}
            _ if letter.is_alphanumeric() => letter.to_lowercase().for_each(|letter| fold(letter, &mut run)),
            _ => close(&mut run, &mut words),
        }
    }
    words.truncate(most);
    words
}

fn close(run: &mut String, words: &mut Vec<String>) {
    if !run.is_empty() {
        words.push(run.chars().take(MAX_WORD_CHARS).collect());
        run.clear();
    }
}

/// Chinese, Japanese and Korean characters: written without spaces.
fn is_dense(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

/// Appends a lower-case letter without its accent.
fn fold(letter: char, into: &mut String) {
    let plain = match letter {
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'ǎ' => "a",
        'ç' | 'ć' | 'ĉ' | 'ċ' | 'č' => "c",
        'ď' | 'đ' | 'ð' => "d",
        'è'..='ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' => "e",
        'ĝ' | 'ğ' | 'ġ' | 'ģ' => "g",
        'ĥ' | 'ħ' => "h",
        'ì'..='ï' | 'ĩ' | 'ī' | 'ĭ' | 'į' | 'ı' => "i",
        'ĵ' => "j",
        'ķ' => "k",
        'ĺ' | 'ļ' | 'ľ' | 'ŀ' | 'ł' => "l",
        'ñ' | 'ń' | 'ņ' | 'ň' => "n",
        'ò'..='ö' | 'ø' | 'ō' | 'ŏ' | 'ő' => "o",
        'ŕ' | 'ŗ' | 'ř' => "r",
        'ś' | 'ŝ' | 'ş' | 'š' | 'ș' => "s",
        'ţ' | 'ť' | 'ŧ' | 'ț' => "t",
        'ù'..='ü' | 'ũ' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' => "u",
        'ŵ' => "w",
        'ý' | 'ÿ' | 'ŷ' => "y",
        'ź' | 'ż' | 'ž' => "z",
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'þ' => "th",
        // Full-width digits and letters.
        '\u{ff10}'..='\u{ff19}' | '\u{ff41}'..='\u{ff5a}' => {
            into.extend(char::from_u32(u32::from(letter) - 0xfee0));
            return;
        }
        // Left over from lower-casing a dotted I.
        '\u{300}'..='\u{36f}' => return,
        _ => {
            into.push(letter);
            return;
        }
    };
    into.push_str(plain);
}

/// The stem of a word from [`words`]: without its English ending (Porter's second algorithm) if it has only Latin letters,
/// else unchanged. All languages use this one stemmer: it only matters that queries and documents are treated the same.
pub fn stem(word: &str) -> String {
    match word.bytes().all(|byte| byte.is_ascii_lowercase()) && word.len() > 2 {
        true => Stemmer::new(Algorithm::English).stem(word).into_owned(),
        false => word.to_owned(),
    }
}

/// Most typos a search word may have. Short words allow none: one change makes another word.
pub fn typos_allowed(word: &str) -> usize {
    match word.chars().count() {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    }
}

/// Edit distance of two words (letters added, removed, changed, or swapped with a neighbour), if it is at most `most`.
pub fn typos(one: &str, other: &str, most: usize) -> Option<usize> {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len().abs_diff(other.len()) > most {
        return None;
    }
    let mut before_last = vec![0; other.len() + 1];
    let mut last: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.iter().enumerate() {
        let mut row = vec![i + 1; other.len() + 1];
        for (j, against) in other.iter().enumerate() {
            let mut cost = (last[j] + usize::from(letter != against)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == other[j - 1] && one[i - 1] == *against {
                cost = cost.min(before_last[j - 1] + 1);
            }
            row[j + 1] = cost;
        }
        if row.iter().all(|cost| *cost > most) {
            return None;
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|cost| *cost <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_variants_give_the_same_words() {
        for (text, expected) in [
            ("Atlas  Research-Bot", "atlas research bot"),
            ("L’Été à Zürich, STRASSE/Straße", "lete a zurich strasse strasse"),
            ("e\u{301}clair ｆｕｌｌ１", "eclair full1"),
            ("GPT-4o v2.5", "gpt 4o v2 5"),
            ("深層学習 AI 私", "深層 層学 学習 ai 私"),
            ("🦀🦀 --- \u{0}", ""),
            ("İstanbul Ελλάδα", "istanbul ελλάδα"),
        ] {
            assert_eq!(words(text, 60).join(" "), expected, "{text}");
        }
        assert_eq!(words(&"x".repeat(9_000), 60), ["x".repeat(MAX_WORD_CHARS)]);
        assert_eq!(words(&"word ".repeat(9_000), 60).len(), 60);
        assert_eq!(words(&"深".repeat(9_000), 60).len(), 60);
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn forms_of_a_word_share_their_stem() {
        for forms in ["company companies", "open opens opened opening", "lighthouse lighthouses", "price prices"] {
            let stems: std::collections::HashSet<String> = forms.split(' ').map(stem).collect();
            assert_eq!(stems.len(), 1, "{stems:?}");
        }
        for word in ["is", "ελλάδα", "深層", "4o", "string"] {
            assert_eq!(stem(word), word);
        }
    }

    #[test]
    fn typos_count_added_removed_changed_and_swapped_letters() {
        for (one, other, expected) in [
            ("research", "research", Some(0)),
            ("reserch", "research", Some(1)),
            ("reesearch", "research", Some(1)),
            ("resaerch", "research", Some(1)),
            ("rezeerch", "research", Some(2)),
            ("research", "seed", None),
            ("", "ab", Some(2)),
            ("abc", "xyz", None),
        ] {
            assert_eq!(typos(one, other, 2), expected, "{one} {other}");
            assert_eq!(typos(other, one, 2), expected, "{other} {one}");
        }
    }
}
