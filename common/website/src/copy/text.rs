//! Plain text: cleaned, folded, cut and compared.

/// What no text of a site has: marks that change direction or cannot be seen.
fn unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The lines of a text, without markup and without what cannot be seen.
pub fn lines(text: &str) -> Vec<String> {
    without_tags(text).lines().map(fold).filter(|line| !line.is_empty()).collect()
}

/// One line: unseen marks dropped, white space folded.
pub fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() {
            if !folded.is_empty() && !folded.ends_with(' ') {
                folded.push(' ');
            }
        } else if !unseen(c) {
            folded.push(c);
        }
    }
    folded.truncate(folded.trim_end().len());
    folded
}

/// Drops tags, and scripts and styles with what they hold. A `<` that opens no tag stays.
fn without_tags(text: &str) -> String {
    // Same offsets as in `text`.
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(open) = text[at..].find('<').map(|found| at + found) {
        out.push_str(&text[at..open]);
        at = open + 1;
        if !text[at..].starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!')) {
            out.push('<');
            continue;
        }
        let Some(close) = text[at..].find('>').map(|found| at + found) else {
            // No later tag is closed either.
            at = open;
            break;
        };
        let tag = &lower[at..close];
        at = close + 1;
        for (element, end) in [("script", "</script"), ("style", "</style")] {
            if tag.starts_with(element) {
                at = lower[at..].find(end).map_or(text.len(), |found| at + found);
            }
        }
        out.push(' ');
    }
    out.push_str(&text[at..]);
    out
}

/// Where a text may end: before a comma or a dash that parts clauses.
#[rustfmt::skip]
const CLAUSE_ENDS: [&str; 12] = [
    ", ", "; ", ": ", " – ", " — ", " - ", " (", "、", "，", "；", "، ", "。",
];

/// Words that cannot end a text.
#[rustfmt::skip]
const LOOSE: &[&str] = &[
    "a", "an", "the", "and", "or", "of", "in", "on", "at", "to", "for", "with", "from", "by", "our", "your", "its",
    "their", "that", "which", "who", "is", "are", "as", "&", "de", "la", "le", "les", "du", "des", "et", "à", "au",
    "aux", "en", "un", "une", "avec", "pour", "der", "die", "das", "den", "dem", "und", "mit", "für", "von", "zu",
    "im", "ein", "eine", "el", "los", "las", "y", "con", "para", "por", "del", "e", "il", "lo", "gli", "di", "da",
    "per", "o", "os", "as", "do", "dos", "em", "com", "um", "uma", "het", "een", "van", "voor", "met", "och", "i",
    "w", "z", "dla", "и", "в", "на", "с", "для",
];

/// At most `max` characters, cut at a clause or else at a word; no ellipsis.
pub fn cut(text: &str, max: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(max) else { return text.to_owned() };
    let head = &text[..end];
    let clause = CLAUSE_ENDS.iter().filter_map(|mark| head.rfind(mark)).max().filter(|at| *at * 3 >= end);
    let word = if text[end..].starts_with(' ') { Some(end) } else { head.rfind(' ') }.filter(|at| *at * 2 >= end);
    let mut cut = head[..clause.or(word).unwrap_or(end)].trim();
    while let Some((before, last)) = cut.rsplit_once(' ') {
        if !LOOSE.contains(&last.to_lowercase().as_str()) {
            break;
        }
        cut = before.trim_end();
    }
    cut.trim_end_matches([',', ';', ':', '–', '—', '-', '(', '/', '&', ' ']).to_owned()
}

/// At most `max` characters of whole sentences, or of the first one's clauses.
pub fn bounded(text: &str, max: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(max) else { return text.to_owned() };
    let head = &text[..end];
    let whole = head.char_indices().filter(|(at, c)| {
        let after = at + c.len_utf8();
        matches!(c, '。' | '！' | '？') || (matches!(c, '.' | '!' | '?') && text[after..].starts_with(' '))
    });
    match { whole }.next_back() {
        Some((at, c)) => head[..at + c.len_utf8()].to_owned(),
        None => cut(text, max),
    }
}

/// The first letter in upper case, the rest as written.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => {
            // "iPhone" and "e-mail" are written so on purpose; only plain words change.
            let upper_follows = chars.clone().next().is_some_and(char::is_uppercase);
            let address =
                text.split(' ').next().is_some_and(|word| word.trim_end_matches(['.', ',']).contains(['/', '@', '.']));
            if upper_follows || address { text.to_owned() } else { first.to_uppercase().chain(chars).collect() }
        }
        None => String::new(),
    }
}

/// A word without its plural, in lower case and without accents, cut to its beginning: enough to match "courses" with "course".
pub fn stem(word: &str) -> String {
    let lower: String = word.to_lowercase().chars().map(plain).collect();
    let lower = lower.strip_suffix("ing").filter(|stem| stem.chars().count() > 2).unwrap_or(&lower);
    let single = lower.strip_suffix('s').filter(|stem| stem.chars().count() > 2).unwrap_or(lower);
    single.chars().take(5).collect()
}

/// The stems of a text's words that say something. Scripts without spaces give pairs of characters.
pub fn stems(text: &str) -> Vec<String> {
    let mut stems = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        if word.chars().any(|c| c >= '\u{2e80}') {
            let chars: Vec<char> = word.chars().collect();
            stems.extend(chars.windows(2).map(|pair| pair.iter().collect::<String>()));
        } else if word.chars().count() > 2 && !LOOSE.contains(&word.to_lowercase().as_str()) {
            stems.push(stem(word));
        }
    }
    stems
}

/// A Latin letter without its accent.
fn plain(c: char) -> char {
    match c {
        'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'è' | 'é' | 'ê' | 'ë' | 'ę' | 'ě' => 'e',
        'ì' | 'í' | 'î' | 'ï' => 'i',
        'ł' => 'l',
        'ñ' | 'ń' => 'n',
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' => 'o',
        'ś' | 'š' => 's',
        'ù' | 'ú' | 'û' | 'ü' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ż' | 'ž' => 'z',
        _ => c,
    }
}

/// `[a-z0-9-]`, or nothing if no letter is Latin.
pub fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.to_lowercase().chars().map(plain) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() >= 40 {
            break;
        }
    }
    slug.trim_matches('-').to_owned()
}

/// `wanted`, or with a number behind if `taken` has it.
pub fn unique(wanted: &str, taken: &[String]) -> String {
    let base = if wanted.is_empty() { "section" } else { wanted };
    let mut id = base.to_owned();
    let mut number = 2;
    while taken.contains(&id) {
        id = format!("{base}-{number}");
        number += 1;
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_dropped() {
        assert_eq!(fold(" a\u{202e}b\u{200b}\u{0} \t c\u{feff} "), "ab c");
        assert_eq!(lines("<b>Bread</b> & <script>alert(1)</script>rolls\n\n2 < 3 <3"), ["Bread & rolls", "2 < 3 <3"]);
        assert_eq!(lines("open <b without end"), ["open <b without end"]);
    }

    #[test]
    fn texts_are_cut_at_clauses_and_words() {
        assert_eq!(cut("A bakery in Lyon, with bread of our own starter every day", 30), "A bakery in Lyon");
        assert_eq!(cut("A bakery in the middle of the town", 22), "A bakery in the middle");
        assert_eq!(cut("A bakery in the middle of the town", 26), "A bakery in the middle");
        assert_eq!(cut("ああああああああああ", 4), "ああああ");
        assert_eq!(bounded("One is here. Two is not here at all.", 20), "One is here.");
    }

    #[test]
    fn stems_match_plurals_and_slugs_are_ascii() {
        assert_eq!(stem("Courses"), stem("course"));
        assert_eq!(stem("Teams"), stem("team"));
        assert_eq!(slug("Öffnungszeiten & Preise"), "offnungszeiten-preise");
        assert_eq!(slug("営業時間"), "");
        assert_eq!(unique("", &["section".into()]), "section-2");
        assert_eq!(capital("iPhone repair"), "iPhone repair");
        assert_eq!(capital("éclairs"), "Éclairs");
    }
}
