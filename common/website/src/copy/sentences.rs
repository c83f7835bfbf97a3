//! Lines and sentences of a brief.

use super::text;

/// What a line of a brief is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// `- text`, `1. text`.
    Point(String),
    /// `Services:` alone, or a heading of the source.
    Heading(String),
    Sentences(Vec<String>),
}

/// The lines of a text as points, headings and sentences.
pub fn lines(source: &str) -> Vec<Line> {
    text::lines(source).iter().filter_map(|line| line_of(line)).collect()
}

fn line_of(line: &str) -> Option<Line> {
    if let Some(heading) = line.strip_prefix('#') {
        let heading = unmarked(heading.trim_start_matches('#').trim());
        return (!heading.is_empty()).then_some(Line::Heading(heading));
    }
    if let Some(point) = point(line) {
        let point = unmarked(point);
        return (!point.is_empty()).then_some(Line::Point(point));
    }
    let line = unmarked(line);
    if let Some(heading) = line.strip_suffix([':', '：'])
        && heading.chars().count() <= 60
        && !heading.contains(['.', '!', '?', '。'])
    {
        return (!heading.trim().is_empty()).then(|| Line::Heading(heading.trim().to_owned()));
    }
    let sentences = split(&line);
    (!sentences.is_empty()).then_some(Line::Sentences(sentences))
}

/// What follows the dash or the number of a list.
fn point(line: &str) -> Option<&str> {
    for mark in ["- ", "* ", "• ", "· ", "– ", "— ", "・", "●", "▪", "✓ ", "✔ ", "→ "] {
        if let Some(rest) = line.strip_prefix(mark) {
            return Some(rest.trim());
        }
    }
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if (1..=2).contains(&digits)
        && let Some(rest) = line[digits..].strip_prefix(") ").or_else(|| line[digits..].strip_prefix(". "))
    {
        return Some(rest.trim());
    }
    None
}

/// Without Markdown's emphasis, code marks and link targets.
fn unmarked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let Some(open) = rest[..at].rfind('[') else { break };
        let Some(close) = rest[at..].find(')') else { break };
        out.push_str(rest[..open].trim_end_matches('!'));
        out.push_str(&rest[open + 1..at]);
        rest = &rest[at + close + 1..];
    }
    out.push_str(rest);
    text::fold(&out.replace("**", "").replace("__", "").replace('`', "").replace("~~", ""))
}

/// Words with a full stop that end no sentence.
#[rustfmt::skip]
const SHORT: &[&str] = &[
    "st", "dr", "mr", "mrs", "ms", "prof", "nr", "ca", "z.b", "e.g", "i.e", "approx", "str", "av", "vs", "tel", "bzw",
    "incl", "inkl", "c", "p", "sr", "sra", "núm", "mme", "env", "av.", "vol", "ed", "no", "inh", "b", "d.h", "u",
    "usw",
];

#[rustfmt::skip]
const MONTHS: &[&str] = &[
    "jan", "feb", "fév", "mär", "mar", "apr", "avr", "mai", "may", "jun", "jui", "jul", "aug", "aoû", "sep", "okt",
    "oct", "nov", "dez", "dec", "déc",
];

/// The sentences of a line, each with its mark.
pub fn split(line: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let mut end = at + c.len_utf8();
        let ends = match c {
            '。' | '！' | '？' | '।' => true,
            '.' | '!' | '?' | '…' | '؟' => {
                while let Some((next, mark)) = chars.peek().copied() {
                    if !matches!(mark, '.' | '!' | '?' | '"' | '”' | '»' | ')' | '\'') {
                        break;
                    }
                    end = next + mark.len_utf8();
                    chars.next();
                }
                let rest = &line[end..];
                (rest.is_empty() || rest.starts_with(char::is_whitespace))
                    && !(c == '.' && unfinished(&line[start..at], rest))
            }
            _ => false,
        };
        if ends {
            push(&mut sentences, &line[start..end]);
            start = end;
        }
    }
    push(&mut sentences, &line[start..]);
    sentences
}

fn push(sentences: &mut Vec<String>, text: &str) {
    let text = text.trim();
    if text.chars().any(char::is_alphanumeric) {
        sentences.push(text.to_owned());
    }
}

/// Whether a full stop after `before` and before `after` belongs to a short word or to a date.
fn unfinished(before: &str, after: &str) -> bool {
    let last = before.rsplit([' ', '(']).next().unwrap_or_default();
    let next = after.trim_start();
    let initial = last.chars().count() == 1 && last.chars().all(char::is_alphabetic) && last != "I";
    let date = last.len() <= 2
        && last.chars().all(|c| c.is_ascii_digit())
        && MONTHS.iter().any(|month| next.to_lowercase().starts_with(month));
    initial
        || date
        || SHORT.contains(&last.to_lowercase().as_str())
        || next.starts_with(|c: char| c.is_lowercase() && c.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_at_their_marks() {
        assert_eq!(
            split("Open 7 to 19. Sourdough 4.50. Ask Dr. Weber, e.g. by mail."),
            ["Open 7 to 19.", "Sourdough 4.50.", "Ask Dr. Weber, e.g. by mail."]
        );
        assert_eq!(split("Am 3. Mai um 18 Uhr! Kommen Sie?"), ["Am 3. Mai um 18 Uhr!", "Kommen Sie?"]);
        assert_eq!(split("陶芸工房です。火曜日は休み"), ["陶芸工房です。", "火曜日は休み"]);
        assert_eq!(split("…"), Vec::<String>::new());
    }

    #[test]
    fn lines_are_points_headings_and_sentences() {
        assert_eq!(
            lines("# About **us**\nServices:\n- Repairs\n2) Rides, see [here](https://a.b)\nWe ride."),
            [
                Line::Heading("About us".into()),
                Line::Heading("Services".into()),
                Line::Point("Repairs".into()),
                Line::Point("Rides, see here".into()),
                Line::Sentences(vec!["We ride.".into()])
            ]
        );
    }
}
