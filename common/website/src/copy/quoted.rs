//! Quotes with a speaker, and questions with answers.

use super::text;
use crate::plan::Quoted;

const OPENING: &[char] = &['“', '„', '«', '"', '「', '”'];

fn closing(open: char) -> &'static [char] {
    match open {
        '“' => &['”'],
        '„' => &['“', '”'],
        '«' => &['»'],
        '「' => &['」'],
        _ => &['"', '”'],
    }
}

/// The first quoted words from `from` on: where they stand with their marks, and the words.
pub fn span(text: &str) -> Option<(usize, usize, &str)> {
    let (start, open) = text.char_indices().find(|(_, c)| OPENING.contains(c))?;
    let inner = start + open.len_utf8();
    let length = text[inner..].find(closing(open))?;
    let end = inner + length + text[inner + length..].chars().next().map_or(0, char::len_utf8);
    Some((start, end, text[inner..inner + length].trim()))
}

/// Words of several with a speaker: `“…” – Anna, Lyon` or `Anna says: “…”`.
pub fn quotes(line: &str) -> Vec<Quoted> {
    let mut quotes = Vec::new();
    let mut rest = line;
    while let Some((start, end, words)) = span(rest) {
        let before = rest[..start].trim();
        let after = rest[end..].trim_start();
        let long =
            words.split(' ').count() >= 3 || words.chars().any(|c| c >= '\u{2e80}') && words.chars().count() >= 8;
        let next = after.find(OPENING).unwrap_or(after.len());
        let signed = after[..next]
            .strip_prefix(['–', '—', '-', '―', '(', '~'])
            .map(|who| who.trim_matches(|c: char| c.is_whitespace() || matches!(c, '.' | ')' | ';' | '–' | '—' | '-')));
        let said = before.strip_suffix([':', ',']).map(|who| {
            let who = who.rsplit(['.', ';', '!']).next().unwrap_or(who).trim();
            ["says", "said", "writes", "wrote", "dit", "sagt", "schreibt", "dice", "diz", "zegt"]
                .iter()
                .find_map(|verb| who.strip_suffix(verb))
                .map(str::trim)
        });
        let who = signed.filter(|who| named(who)).or(said.flatten().filter(|who| named(who)));
        if let Some(who) = who.filter(|_| long) {
            quotes.push(Quoted { text: words.to_owned(), who: text::cut(who, 80) });
        }
        rest = &rest[end..];
    }
    quotes
}

fn named(who: &str) -> bool {
    let words = who.split(' ').count();
    (1..=8).contains(&words) && who.chars().next().is_some_and(|c| c.is_uppercase() || c >= '\u{590}')
}

/// `Q: …` and `A: …`.
pub fn marked<'a>(line: &'a str, marks: &[&str]) -> Option<&'a str> {
    let (mark, rest) = line.split_once([':', '：'])?;
    marks.iter().any(|known| mark.trim().eq_ignore_ascii_case(known)).then(|| rest.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_need_a_speaker() {
        let quote = |text: &str, who: &str| Quoted { text: text.to_owned(), who: who.to_owned() };
        assert_eq!(
            quotes("“The best bread in town.” – Anna, Lyon. “We come every day” (Paul)"),
            [quote("The best bread in town.", "Anna, Lyon"), quote("We come every day", "Paul")]
        );
        assert_eq!(quotes("Maria says: \"A calm place to learn.\""), [quote("A calm place to learn.", "Maria")]);
        assert_eq!(quotes("We call it \"the big one that sings\" here."), []);
    }
}
