//! Words of a task and of a page: quotes, numbers, ordinals, comparable forms. Plain scanners, each linear in its text.

/// A word of a task, or a quoted piece of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// As written, without quotes and without punctuation at the end.
    pub text: String,
    /// The same in lower case.
    pub low: String,
    pub quoted: bool,
    /// Punctuation that follows: `,` `.` `;` `:` `?` `!` or a line's end `\n`.
    pub after: Option<char>,
    /// Punctuation before the end of a line.
    pub mark: Option<char>,
}

impl Token {
    fn new(text: String, quoted: bool) -> Self {
        Self { low: text.to_lowercase(), text, quoted, after: None, mark: None }
    }

    /// Whether it is one of these words (lower case), not quoted.
    #[must_use]
    pub fn is(&self, words: &[&str]) -> bool {
        !self.quoted && words.contains(&self.low.as_str())
    }
}

fn closing(open: char) -> Option<char> {
    match open {
        '"' => Some('"'),
        '“' => Some('”'),
        '‘' => Some('’'),
        '`' => Some('`'),
        '\'' => Some('\''),
        '«' => Some('»'),
        _ => None,
    }
}

/// Splits a task into words and quoted pieces.
#[must_use]
pub fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let mut out: Vec<Token> = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        if c == '\n' {
            if let Some(last) = out.last_mut() {
                if last.after != Some('\n') {
                    last.mark = last.after;
                }
                last.after = Some('\n');
            }
            at += 1;
            continue;
        }
        if c.is_whitespace() {
            at += 1;
            continue;
        }
        if let Some(close) = closing(c) {
            // A quote ends at the next mark that a word does not continue; an apostrophe opens none without an end.
            let end = (at + 1..chars.len()).take_while(|&i| chars[i] != '\n' && i - at < 2_000).find(|&i| {
                chars[i] == close && i > at + 1 && !chars.get(i + 1).is_some_and(|next| next.is_alphanumeric())
            });
            if let Some(end) = end {
                out.push(Token::new(chars[at + 1..end].iter().collect(), true));
                at = end + 1;
                continue;
            }
        }
        if is_mark(c)
            && let Some(last) = out.last_mut()
        {
            if last.after != Some('\n') {
                last.after = Some(c);
            }
            at += 1;
            continue;
        }
        let start = at;
        while at < chars.len() && !chars[at].is_whitespace() && !(at > start && matches!(chars[at], '"' | '“')) {
            at += 1;
        }
        let mut word: String = chars[start..at].iter().collect();
        let mut after = None;
        while let Some(last) = word.chars().last().filter(|last| is_mark(*last) && word.len() > last.len_utf8()) {
            after = Some(last);
            word.pop();
        }
        let mut token = Token::new(word, false);
        token.after = after;
        out.push(token);
    }
    out
}

fn is_mark(c: char) -> bool {
    matches!(c, ',' | '.' | ';' | ':' | '?' | '!')
}

/// The tokens as text again, quoted pieces without their quotes.
#[must_use]
pub fn joined(tokens: &[Token]) -> String {
    let mut out = String::new();
    for (n, token) in tokens.iter().enumerate() {
        if n > 0 {
            out.push(' ');
        }
        out.push_str(&token.text);
        if let Some(mark) = token.after.filter(|mark| n + 1 < tokens.len() && matches!(mark, ',' | ':' | ';')) {
            out.push(mark);
        }
    }
    out
}

/// Comparable form: lower case, one space between words, no punctuation around it.
#[must_use]
pub fn fold(text: &str) -> String {
    let low = text.to_lowercase();
    let plain: Vec<&str> = low.split_whitespace().collect();
    let plain = plain.join(" ");
    let cut = plain
        .trim_matches(|c: char| matches!(c, '.' | ',' | ':' | ';' | '!' | '?' | '"' | '*' | '…') || c.is_whitespace());
    if cut.is_empty() { plain } else { cut.to_owned() }
}

/// The letters and digits, as lower-case words.
#[must_use]
pub fn parts(text: &str) -> Vec<String> {
    let low = text.to_lowercase();
    low.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Whether two words have the same beginning, so that "director" is found for "directed".
#[must_use]
pub fn akin(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let same = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count();
    let (short, long) = (a.chars().count().min(b.chars().count()), a.chars().count().max(b.chars().count()));
    same >= 4 && same + 3 >= short && long <= same + 4
}

/// A position: `1st`, `second`, `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ordinal {
    /// From 1.
    Nth(usize),
    /// From the end, 1 is the last one.
    Last(usize),
}

impl Ordinal {
    /// The index into so many things.
    #[must_use]
    pub fn index(self, count: usize) -> Option<usize> {
        match self {
            Self::Nth(n) => n.checked_sub(1).filter(|n| *n < count),
            Self::Last(n) => count.checked_sub(n),
        }
    }
}

const ORDINALS: [&str; 12] = [
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth",
];

/// Reads a word as a position.
#[must_use]
pub fn ordinal(low: &str) -> Option<Ordinal> {
    if matches!(low, "last" | "final" | "bottommost") {
        return Some(Ordinal::Last(1));
    }
    if low == "topmost" {
        return Some(Ordinal::Nth(1));
    }
    if let Some(n) = ORDINALS.iter().position(|word| *word == low) {
        return Some(Ordinal::Nth(n + 1));
    }
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|end| low.strip_suffix(end))?;
    digits.parse().ok().filter(|n| (1..=10_000).contains(n)).map(Ordinal::Nth)
}

const NUMBERS: [&str; 13] =
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];

/// Reads a word as a small count.
#[must_use]
pub fn count(low: &str) -> Option<usize> {
    low.parse().ok().or_else(|| NUMBERS.iter().position(|word| *word == low))
}

/// The first number in a text, with its sign: `$1,299.00` is 1299. Never infinite.
#[must_use]
pub fn number(text: &str) -> Option<f64> {
    let chars: Vec<char> = text.chars().collect();
    let start = chars.iter().position(char::is_ascii_digit)?;
    let mut digits = String::new();
    let mut at = start;
    let mut point = false;
    while at < chars.len() && digits.len() < 30 {
        let next_digit = chars.get(at + 1).is_some_and(char::is_ascii_digit);
        match chars[at] {
            c if c.is_ascii_digit() => digits.push(c),
            '.' if next_digit && !point => {
                point = true;
                digits.push('.');
            }
            // A comma between groups of three digits.
            ',' if next_digit && !point && chars[at + 1..].iter().take_while(|c| c.is_ascii_digit()).count() == 3 => {}
            _ => break,
        }
        at += 1;
    }
    let before: Vec<char> =
        chars[..start].iter().rev().copied().filter(|c| !matches!(c, '$' | '€' | '£' | ' ')).collect();
    let minus = matches!(before.first(), Some('-' | '−')) && !before.get(1).is_some_and(|c| c.is_alphanumeric());
    let value: f64 = digits.parse().ok()?;
    Some(if minus { -value } else { value })
}

/// A length of time in minutes: `14h 18m`, `2 hours 5 min`.
#[must_use]
pub fn minutes(text: &str) -> Option<f64> {
    let low = text.to_lowercase();
    let mut total = 0.0;
    let mut found = false;
    let mut digits = String::new();
    let mut chars = low.chars().peekable();
    while let Some(c) = chars.next() {
        if c.is_ascii_digit() && digits.len() < 9 {
            digits.push(c);
            continue;
        }
        if c == ' ' && !digits.is_empty() {
            continue;
        }
        if let Ok(n) = digits.parse::<f64>() {
            let unit: String =
                std::iter::once(c).chain(std::iter::from_fn(|| chars.next_if(char::is_ascii_alphabetic))).collect();
            let factor = match unit.as_str() {
                "d" | "day" | "days" => 1_440.0,
                "h" | "hr" | "hrs" | "hour" | "hours" => 60.0,
                "m" | "min" | "mins" | "minute" | "minutes" => 1.0,
                _ => 0.0,
            };
            if factor > 0.0 {
                total += n * factor;
                found = true;
            }
        }
        digits.clear();
    }
    found.then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together_and_apostrophes_do_not() {
        let read = tokens("Find Yetty's email, type \"euismod.\" into 'First name': done.");
        let texts: Vec<&str> = read.iter().map(|t| t.text.as_str()).collect();
        assert_eq!(texts, ["Find", "Yetty's", "email", "type", "euismod.", "into", "First name", "done"]);
        assert_eq!(read[2].after, Some(','));
        assert!(read[4].quoted && read[6].quoted);
        assert_eq!(read[6].after, Some(':'));
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        for (text, value) in
            [("$1,299.00", 1299.0), ("-7", -7.0), ("from 3, 400 on", 3.0), ("-$5.5", -5.5), ("A-7", 7.0)]
        {
            assert!((number(text).expect("a number") - value).abs() < 1e-9, "{text}");
        }
        assert!(number("none").is_none());
        assert!((minutes("14h 18m").expect("a time") - 858.0).abs() < 1e-9);
        assert!(minutes("$390").is_none());
    }

    #[test]
    fn ordinals_point_into_lists_and_never_past_them() {
        assert_eq!(ordinal("2nd").and_then(|o| o.index(3)), Some(1));
        assert_eq!(ordinal("last").and_then(|o| o.index(3)), Some(2));
        assert_eq!(ordinal("fifth").and_then(|o| o.index(3)), None);
        assert_eq!(ordinal("0th"), None);
        assert_eq!(ordinal("list"), None);
    }
}
