//! Finds amounts in a text.

/// Currencies with three decimals: `1.250` is less than 2.
const THREE_DECIMALS: [&str; 7] = ["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"];
/// Most groups of digits in one number.
const MAX_GROUPS: usize = 8;

/// A number in a text: groups of digits, with one separator between each two. Positions are in characters.
#[derive(Debug)]
pub(super) struct Number {
    pub(super) start: usize,
    pub(super) end: usize,
    /// A minus stands before it.
    pub(super) is_negative: bool,
    /// A letter stands directly before or behind it.
    pub(super) is_part_of_word: bool,
    /// `0.125` has no thousands.
    starts_with_zero: bool,
    groups: Vec<(usize, usize)>,
    separators: Vec<char>,
}

/// The character with digits and separators of other scripts made western, and spaces alike.
pub(super) fn western(letter: char) -> char {
    let digit = |zero: u32| char::from_digit(u32::from(letter).saturating_sub(zero), 10).unwrap_or(letter);
    match letter {
        '\u{660}'..='\u{669}' => digit(0x660),
        '\u{6f0}'..='\u{6f9}' => digit(0x6f0),
        '\u{966}'..='\u{96f}' => digit(0x966),
        '\u{ff10}'..='\u{ff19}' => digit(0xff10),
        '٫' => '.',
        '٬' => ',',
        '’' | '‘' | '´' | '`' => '\'',
        '，' => ',',
        '．' => '.',
        _ if letter.is_whitespace() => ' ',
        _ => letter,
    }
}

/// All numbers of a text, without percentages.
pub(super) fn numbers(text: &[char]) -> Vec<Number> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let is_point = matches!(text[at], '.' | ',') && digits(text, at + 1) > at + 1;
        if !text[at].is_ascii_digit() && !is_point {
            at += 1;
            continue;
        }
        let number = number(text, at);
        at = number.end;
        let rest = text[at..].iter().find(|c| **c != ' ');
        if rest != Some(&'%') {
            found.push(number);
        }
    }
    found
}

/// The end of the digits from `at` on.
fn digits(text: &[char], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|c| c.is_ascii_digit()).count()
}

fn number(text: &[char], start: usize) -> Number {
    let mut end = digits(text, start);
    let mut groups = vec![(start, end)];
    let mut separators = Vec::new();
    while groups.len() < MAX_GROUPS
        && let Some((separator, group)) = next_group(text, end, groups[0], &separators)
    {
        separators.push(separator);
        groups.push(group);
        end = group.1;
    }
    let before = start.checked_sub(1).map(|at| text[at]);
    let two_before = start.checked_sub(2).map(|at| text[at]);
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    Number {
        start,
        end,
        is_negative: matches!(before, Some('-' | '−')) && matches!(two_before, None | Some(' ' | '(')),
        is_part_of_word: is_letter(before) || is_letter(text.get(end).copied()),
        starts_with_zero: text.get(start) == Some(&'0'),
        groups,
        separators,
    }
}

/// The separator at `at` and the group behind it, if they continue a number.
fn next_group(text: &[char], at: usize, first: (usize, usize), before: &[char]) -> Option<(char, (usize, usize))> {
    let separator = *text.get(at)?;
    let group = (at + 1, digits(text, at + 1));
    let size = group.1 - group.0;
    let is_thousands = size == 3 && (1..=3).contains(&(first.1 - first.0)) && before.iter().all(|c| *c == separator);
    match separator {
        ' ' | '\'' => is_thousands.then_some((separator, group)),
        '.' | ',' if size > 0 => Some((separator, group)),
        // `119. 95`
        '.' | ',' if text.get(at + 1) == Some(&' ') && before.iter().all(|c| *c != separator) => {
            let group = (at + 2, digits(text, at + 2));
            (group.1 - group.0 == 2 && text.get(group.1).is_none_or(|c| *c == ' ')).then_some((separator, group))
        }
        // `12€90`
        '€' | '£' => (size == 2 && before.iter().all(|c| !matches!(c, '€' | '£'))).then_some((separator, group)),
        _ => None,
    }
}

impl Number {
    /// The amount with a decimal point, and without other separators.
    pub(super) fn amount(&self, text: &[char], currency: Option<&str>) -> Option<String> {
        let with_decimals = self.has_decimals(currency);
        let mut amount = String::new();
        for (index, (from, to)) in self.groups.iter().enumerate() {
            if index > 0 && index + 1 == self.groups.len() && with_decimals {
                amount.push('.');
            }
            amount.extend(text.get(*from..*to)?);
        }
        if amount.starts_with('.') {
            amount.insert(0, '0');
        }
        (amount.len() <= 30).then_some(amount)
    }

    /// Whether the last group is behind the decimal point.
    fn has_decimals(&self, currency: Option<&str>) -> bool {
        let Some((last, before)) = self.separators.split_last() else { return false };
        let size = |index: usize| self.groups.get(index).map_or(0, |(from, to)| to - from);
        let decimals = size(self.groups.len() - 1);
        match last {
            ' ' | '\'' => false,
            '€' | '£' => true,
            _ if before.contains(last) => decimals != 3,
            _ if !before.is_empty() => true,
            _ if decimals != 3 => true,
            _ => {
                let thousandths = *last == '.' && currency.is_some_and(|code| THREE_DECIMALS.contains(&code));
                thousandths || size(0) > 3 || size(0) == 0 || self.starts_with_zero
            }
        }
    }
}
