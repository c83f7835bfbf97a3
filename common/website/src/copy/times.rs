//! Opening hours and programmes.

use super::text;
use crate::plan::Fact;

#[rustfmt::skip]
const DAYS: &[&str] = &[
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "weekday", "weekend", "daily",
    "lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche", "montag", "dienstag", "mittwoch",
    "donnerstag", "freitag", "samstag", "sonnabend", "sonntag", "werktag", "wochenende", "taglich", "lunes", "martes",
    "miercoles", "jueves", "viernes", "sabado", "domingo", "lunedi", "martedi", "mercoledi", "giovedi", "venerdi",
    "sabato", "domenica", "segunda", "terca", "quarta", "quinta", "sexta", "maandag", "dinsdag", "woensdag",
    "donderdag", "vrijdag", "zaterdag", "zondag", "poniedzial", "wtorek", "wtorku", "srode", "sroda", "czwart",
    "piatek", "piatku", "sobota", "sobote", "niedziel", "mandag", "tisdag", "onsdag", "torsdag", "fredag", "lordag",
    "sondag",
];
#[rustfmt::skip]
const SHORT_DAYS: &[&str] = &[
    "mon", "tue", "tues", "wed", "thu", "thur", "fri", "sat", "sun", "lun", "mar", "mer", "jeu", "ven", "sam", "dim",
    "mo", "di", "mi", "do", "fr", "sa", "so",
];
#[rustfmt::skip]
const OPEN: &[&str] = &[
    "open", "opening", "closed", "hours", "ouvert", "ouverte", "ouverts", "ferme", "fermee", "horaires", "geoffnet",
    "offnungszeiten", "geschlossen", "abierto", "abierta", "cerrado", "horario", "aperto", "aperti", "chiuso",
    "orari", "aberto", "aberta", "fechado", "geopend", "gesloten", "openingstijden", "otwarte", "oppet", "stangt",
];
#[rustfmt::skip]
const OPEN_ELSEWHERE: &[&str] = &[
    "営業", "定休", "часы работы", "открыт", "שעות", "פתוח", "ساعات", "مفتوح", "营业", "영업", "відчин", "ώρες",
];
#[rustfmt::skip]
const JOINING: &[&str] = &[
    "to", "-", "–", "—", "and", "through", "bis", "à", "au", "a", "al", "until", "till", "&", "from", "du", "von",
    "de", "des", "le", "on", "und", "et", "y", "e", "das", "dalle", "alle", "às", "van", "tot", "we", "are", "nous",
    "sommes", "wir", "haben", "is", "the", "on:", "dal", "do", "od", "ab", "is:", "des", "les", "am", "by", "las",
    "os", "as", "i", "en", "op", "til", "till",
];
#[rustfmt::skip]
const CLOSED: &[&str] = &[
    "closed", "ferme", "fermee", "geschlossen", "cerrado", "chiuso", "fechado", "gesloten", "zamkniete", "stangt",
];
#[rustfmt::skip]
const CLOCK: &[&str] = &[
    "am", "pm", "a.m", "p.m", "uhr", "h", "noon", "midnight", "midi", "minuit", "klo", "kl",
];

#[derive(Clone, Copy, PartialEq)]
enum Token {
    Day,
    Time,
    Joint,
    Open,
    Other,
}

fn token(word: &str) -> Token {
    let bare = word
        .trim_matches(|c: char| !c.is_alphanumeric() && c != '&' && c != '-' && c != '–' && c != '—')
        .to_lowercase();
    let folded: String = bare.split(['-', '–']).next().unwrap_or_default().to_owned();
    let unaccented = unaccented(&bare);
    if DAYS.iter().any(|day| unaccented.starts_with(day)) {
        return Token::Day;
    }
    // "do" and "so" are days only with a capital.
    let upper = word.starts_with(char::is_uppercase);
    if upper && SHORT_DAYS.contains(&folded.as_str()) {
        return Token::Day;
    }
    if CLOSED.contains(&unaccented.as_str())
        || bare.starts_with(|c: char| c.is_ascii_digit())
        || CLOCK.contains(&bare.trim_end_matches('.'))
    {
        return Token::Time;
    }
    if OPEN.contains(&unaccented.as_str()) {
        return Token::Open;
    }
    if bare.is_empty() || JOINING.contains(&bare.as_str()) { Token::Joint } else { Token::Other }
}

fn unaccented(word: &str) -> String {
    text::slug(word)
}

/// Whether a sentence tells opening hours.
pub fn are_hours(sentence: &str) -> bool {
    let kinds: Vec<Token> = sentence.split(' ').take(60).map(token).collect();
    let has = |kind: Token| kinds.contains(&kind);
    let prose = kinds.iter().filter(|kind| **kind == Token::Other).count();
    let latin = (has(Token::Open) || prose == 0) && has(Token::Day) && has(Token::Time) && prose <= 12;
    latin || OPEN_ELSEWHERE.iter().any(|word| sentence.contains(word)) && has_clock(sentence)
}

/// Whether a day and a time stand in a sentence: "Quiz night every Thursday at 8pm."
pub fn tells_when(sentence: &str) -> bool {
    let kinds: Vec<Token> = sentence.split(' ').take(40).map(token).collect();
    kinds.contains(&Token::Day) && kinds.contains(&Token::Time)
}

/// Whether a time of day stands in a text: "10:00", "11時".
fn has_clock(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    chars
        .windows(2)
        .any(|pair| pair[0].is_numeric() && matches!(pair[1], ':' | '：' | '時' | '时' | '点' | '點' | '시'))
}

/// Rows of days and times, if a sentence says nothing else.
pub fn hours(sentence: &str) -> Option<Vec<Fact>> {
    let mut rows = Vec::new();
    let (mut days, mut times): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut last = Token::Other;
    let mut other = 0;
    let spaced = sentence.replace([';', '|'], ",");
    for word in spaced.split(' ') {
        let kind = token(word);
        let complete = !days.is_empty() && !times.is_empty();
        if complete && (kind == Token::Day && last != Token::Day || last == Token::Joint && kind == Token::Open) {
            row(&mut rows, &mut days, &mut times);
        }
        let bare = word.trim_end_matches([',', '.', ':']);
        match kind {
            Token::Day => days.push(bare),
            Token::Time => times.push(bare),
            Token::Joint if last == Token::Day => days.push(bare),
            Token::Joint if last == Token::Time => times.push(bare),
            Token::Joint | Token::Open => {}
            Token::Other => other += 1,
        }
        if kind != Token::Joint {
            last = kind;
        }
        if word.ends_with(',') && !days.is_empty() && !times.is_empty() {
            let more = times.last().is_some_and(|time| JOINING.contains(time));
            if !more {
                row(&mut rows, &mut days, &mut times);
                last = Token::Other;
            }
        }
    }
    // "7 to 12, 14 to 19": times without days belong to the row before.
    if days.is_empty() && !times.is_empty() {
        let more = joined(&times);
        let before: &mut Fact = rows.last_mut()?;
        before.value = format!("{}, {more}", before.value);
        times.clear();
    }
    row(&mut rows, &mut days, &mut times);
    (other == 0 && days.is_empty() && times.is_empty() && !rows.is_empty()).then_some(rows)
}

fn row(rows: &mut Vec<Fact>, days: &mut Vec<&str>, times: &mut Vec<&str>) {
    let (label, value) = (joined(days), joined(times));
    if !label.is_empty() && !value.is_empty() {
        rows.push(Fact { value: text::capital(&value), label: text::capital(&label) });
        days.clear();
        times.clear();
    }
}

/// The words without joints at their ends.
fn joined(words: &[&str]) -> String {
    let joint = |word: &&&str| token(word) == Token::Joint;
    let from = words.iter().take_while(joint).count();
    let to = words.len() - words.iter().rev().take_while(joint).count();
    if from < to { words[from..to].join(" ") } else { String::new() }
}

#[rustfmt::skip]
const MONTHS: &[&str] = &[
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "fév", "avr", "mai", "jui",
    "aoû", "déc", "mär", "okt", "dez", "ene", "abr", "ago", "dic", "gen", "mag", "giu", "lug", "set", "ott", "fev",
    "out",
];

/// "18:00 Doors", "12 May: opening": the date or time at the beginning of a text, and the rest.
pub fn dated(line: &str) -> Option<Fact> {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    let month = |word: &str| {
        let lower = word.to_lowercase();
        MONTHS.iter().any(|month| lower.starts_with(month)) && word.starts_with(char::is_uppercase) && lower.len() <= 10
            || [
                "janvier",
                "février",
                "mars",
                "avril",
                "mai",
                "juin",
                "juillet",
                "août",
                "septembre",
                "octobre",
                "novembre",
                "décembre",
                "mayo",
                "enero",
            ]
            .contains(&lower.trim_end_matches([':', ',']))
    };
    let first = *words.first()?;
    let clock = number(first) && {
        let bare = first.trim_end_matches([':', '.', ',']);
        let parts: Vec<&str> = bare.split([':', 'h', '.', '–', '-']).collect();
        let short = parts.iter().all(|part| part.len() <= 2 && part.chars().all(|c| c.is_ascii_digit()));
        (parts.len() >= 2 && short)
            || words.get(1).is_some_and(|word| CLOCK.contains(&word.to_lowercase().trim_end_matches([':', '.', ','])))
    };
    let iso = first.len() >= 10 && number(first) && first.matches('-').count() == 2;
    let day = number(first) && words.get(1).is_some_and(|word| month(word));
    let month_first = month(first) && words.get(1).is_some_and(|word| number(word));
    let numbered = matches!(first.to_lowercase().as_str(), "day" | "tag" | "jour" | "día")
        && words.get(1).is_some_and(|word| number(word));
    let weekday = token(first) == Token::Day
        && words.len() > 1
        && (first.ends_with([':', ',']) || token(words[1]) == Token::Time && words.len() > 2);
    if !(clock || iso || day || month_first || numbered || weekday) {
        return None;
    }
    let mut length = if day || month_first || numbered { 2 } else { 1 };
    // The rest of "12 May 2026, 18:00 –".
    while let Some(word) = words.get(length) {
        let of_time = number(word)
            && word
                .trim_end_matches([',', ':'])
                .chars()
                .all(|c| c.is_ascii_digit() || matches!(c, ':' | '.' | 'h' | '–' | '-'))
            || CLOCK.contains(&word.to_lowercase().trim_end_matches([':', '.', ',']));
        let joint = matches!(*word, "–" | "-" | "to") && words.get(length + 1).is_some_and(|next| number(next));
        if words[length - 1].ends_with(':') || !(of_time || joint) || length > 6 {
            break;
        }
        length += 1;
    }
    let label = words[..length].join(" ");
    let value = words[length..].join(" ");
    let value = value.trim_start_matches(['–', '—', '-', ':', '|', ',', ' ']).trim_end_matches(['.', ';', ',']);
    let enough = value.chars().filter(|c| c.is_alphabetic()).count() >= 3;
    enough.then(|| Fact {
        value: text::capital(value),
        label: text::capital(label.trim_end_matches([':', ',', '.', '-', '–', ' '])),
    })
}

/// The rows of "18:00 doors, 19:00 first set", if each part has its time.
pub fn programme(sentence: &str) -> Option<Vec<Fact>> {
    dated(sentence.trim())?;
    let rows: Option<Vec<Fact>> =
        sentence.split([';', '|']).flat_map(|part| part.split(", ")).map(|part| dated(part.trim())).collect();
    rows.or_else(|| dated(sentence.trim()).map(|row| vec![row]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(sentence: &str) -> Vec<(String, String)> {
        hours(sentence).unwrap_or_default().into_iter().map(|row| (row.label, row.value)).collect()
    }

    #[test]
    fn opening_hours_become_rows() {
        let pair = |days: &str, times: &str| (days.to_owned(), times.to_owned());
        assert_eq!(rows("Open Tuesday to Sunday, 7 to 19."), [pair("Tuesday to Sunday", "7 to 19")]);
        assert_eq!(
            rows("Mon-Fri 9-18, Sat 10-14, closed on Sunday"),
            [pair("Mon-Fri", "9-18"), pair("Sat", "10-14"), pair("Sunday", "Closed")]
        );
        assert_eq!(rows("Ouvert du mardi au dimanche de 7h à 19h."), [pair("Mardi au dimanche", "7h à 19h")]);
        assert_eq!(rows("Mo–Fr 8–12 Uhr, Sa 9–13 Uhr"), [pair("Mo–Fr", "8–12 Uhr"), pair("Sa", "9–13 Uhr")]);
        assert_eq!(
            rows("Open Wednesday to Sunday, 18:00 to 23:00, closed Monday and Tuesday."),
            [pair("Wednesday to Sunday", "18:00 to 23:00"), pair("Monday and Tuesday", "Closed")]
        );
        assert!(are_hours("Open Tuesday to Sunday, 7 to 19."));
        assert!(are_hours("営業時間は11時から20時まで。"));
        assert!(!are_hours("We moved here on a Tuesday in 1998 with a van."));
        assert_eq!(rows("We open the kitchen on Monday at 8 for guests."), []);
    }

    #[test]
    fn programmes_become_rows() {
        let row = dated("12 May 2026, 18:00 – Opening night.").unwrap();
        assert_eq!((row.label.as_str(), row.value.as_str()), ("12 May 2026, 18:00", "Opening night"));
        assert_eq!(programme("18:00 doors, 19:00 first set").unwrap().len(), 2);
        assert_eq!(programme("Monday 18:00 Hatha, Wednesday 18:00 Yin").unwrap().len(), 2);
        assert_eq!(dated("Friday: keynote").unwrap().label, "Friday");
        assert!(dated("4.50 for bread").is_some_and(|row| row.label == "4.50") || dated("We open").is_none());
    }
}
