//! E-mail addresses, telephone numbers and postal addresses in text.

/// The first e-mail address.
pub fn email(text: &str) -> Option<String> {
    text.split(|c: char| {
        c.is_whitespace() || matches!(c, ',' | ';' | '<' | '>' | '(' | ')' | '"' | '“' | '”' | '、' | '。')
    })
    .find_map(|word| {
        let word = word.trim_start_matches("mailto:").trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let (user, domain) = word.split_once('@')?;
        let allowed = |part: &str, also: &str| {
            !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
        };
        let dotted = domain.split('.').count() >= 2 && domain.split('.').all(|label| !label.is_empty());
        (allowed(user, ".-_+") && allowed(domain, ".-") && dotted && word.len() <= 254).then(|| word.to_owned())
    })
}

#[rustfmt::skip]
const CALLS: &[&str] = &[
    "phone", "tel", "call", "telephone", "telefon", "téléphone", "teléfono", "telefono", "telefone", "ring", "mobile",
    "ruf", "whatsapp", "appel", "電話", "тел", "טלפון", "هاتف", "llám", "chiam", "ligue", "bel ", "电话", "전화",
];

/// The first telephone number: seven to fifteen digits that begin like one or follow a word for calling.
pub fn phone(text: &str) -> Option<String> {
    let mut at = 0;
    while let Some(start) =
        text[at..].find(|c: char| c.is_ascii_digit() || c == '+' || c == '(').map(|found| at + found)
    {
        let length = text[start..]
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '+' | '(' | ')' | ' ' | '-' | '.' | '/' | '\u{a0}')))
            .unwrap_or(text.len() - start);
        let found = text[start..start + length].trim_end_matches(|c: char| !c.is_ascii_digit());
        let digits = found.chars().filter(char::is_ascii_digit).count();
        let before = text[..start]
            .chars()
            .rev()
            .take(24)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect::<String>()
            .to_lowercase();
        let called = CALLS.iter().any(|word| before.contains(word));
        let begins = found.starts_with('+') || found.starts_with('0') || found.starts_with('(');
        let apart = !before.ends_with(char::is_alphanumeric);
        // Dates and years: "2019-2024", "2026-05-12".
        let date = found.len() <= 10 && found.matches(['-', '.', '/']).count() == 2 && digits == 8 && !begins;
        if (7..=15).contains(&digits) && apart && (begins || called) && !date && found.len() <= 30 {
            return Some(found.to_owned());
        }
        at = start + length.max(1);
    }
    None
}

#[rustfmt::skip]
const LABELS: &[&str] = &[
    "address", "adresse", "anschrift", "dirección", "indirizzo", "endereço", "morada", "adres", "adress", "адрес",
    "адреса", "כתובת", "العنوان", "عنوان", "住所", "地址", "주소", "location", "where", "find us at", "visit us at",
    "we are at", "come to",
];
#[rustfmt::skip]
const STREETS: &[&str] = &[
    "street", "road", "avenue", "lane", "square", "boulevard", "quay", "drive", "terrace", "rd", "rue", "place",
    "quai", "cours", "allée", "impasse", "calle", "plaza", "paseo", "avenida", "via", "viale", "piazza", "corso",
    "rua", "praça", "largo", "travessa", "ulica", "ul", "st", "ave", "hill", "court", "yard", "wharf", "row",
];

/// The first postal address: what a label names, or a street with its number.
pub fn address(text: &str) -> Option<String> {
    let lower = text.to_lowercase();
    if lower.len() == text.len() {
        for label in LABELS {
            for mark in [":", "："] {
                if let Some(rest) =
                    lower.find(&format!("{label}{mark}")).map(|at| &text[at + label.len() + mark.len()..])
                {
                    return short(rest);
                }
            }
            if label.contains(' ')
                && let Some(at) = lower.find(label)
            {
                return short(&text[at + label.len()..]).filter(|found| found.contains(|c: char| c.is_ascii_digit()));
            }
        }
    }
    let words: Vec<&str> = text.split(' ').collect();
    let number = |word: &str| {
        let bare = word.trim_end_matches([',', '.']);
        bare.len() <= 5
            && bare.starts_with(|c: char| c.is_ascii_digit())
            && bare.chars().filter(char::is_ascii_alphabetic).count() <= 1
            && bare.chars().all(char::is_alphanumeric)
    };
    let street = |word: &str| {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let lower = bare.to_lowercase();
        let ends = ["straße", "strasse", "gasse", "platz", "weg", "straat", "laan", "gatan", "gracht", "allee", "ufer"];
        (STREETS.contains(&lower.as_str())
            && (bare != lower || matches!(lower.as_str(), "rue" | "calle" | "via" | "rua" | "place" | "quai")))
            || ends.iter().any(|end| lower.ends_with(end) && lower != *end || bare.ends_with("straße"))
    };
    let at = (0..words.len()).find(|at| street(words[*at]))?;
    // "12 Main Street", "Via Roma 3", "Hauptstraße 5".
    let before = (at.saturating_sub(4)..at).find(|at| number(words[*at]));
    let after = (at + 1..words.len().min(at + 5)).find(|at| number(words[*at]) && words[*at - 1] != "to");
    let (from, mut to) = match (before, after) {
        (Some(from), _) => (from, at + 1),
        (None, Some(to)) => (at, to + 1),
        // "Harbour Road, Whitby YO21 1AA": a street without a number, and a postal code.
        (None, None) => {
            let code = (at + 1..words.len().min(at + 5))
                .find(|at| words[*at].chars().filter(char::is_ascii_digit).count() >= 2)?;
            let named =
                words[..at].iter().rev().take_while(|word| word.starts_with(char::is_uppercase)).take(3).count();
            (at - named, code + 1)
        }
    };
    // The names after it, up to the end of the sentence's part: ", 69001 Lyon".
    while to < words.len() && !words[to - 1].ends_with(['.', ';', ':']) {
        let word = words[to];
        let of_place = word.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit())
            || matches!(word, "de" | "du" | "des" | "la" | "le" | "am" | "in" | "da" | "do" | "del" | "della" | "of");
        if !of_place || to - from > 12 {
            break;
        }
        to += 1;
    }
    short(&words[from..to].join(" "))
}

/// Up to the end of the sentence; nothing if that is too long for an address.
fn short(text: &str) -> Option<String> {
    let end = text.find(['。', ';', '|']).or_else(|| text.find(". ")).unwrap_or(text.len());
    let found = text[..end].trim_matches(|c: char| c.is_whitespace() || matches!(c, '.' | ',' | ';' | ':'));
    let found = found.trim_end_matches(" in").trim_end_matches(" of");
    (4..=120).contains(&found.chars().count()).then(|| found.to_owned())
}

/// Whether a sentence says little besides how to reach the owner.
pub fn is_only_contact(sentence: &str, found: &[&str]) -> bool {
    let mut rest = sentence.to_owned();
    for text in found.iter().filter(|text| !text.is_empty()) {
        rest = rest.replace(text, " ");
    }
    let words = rest.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 2).count();
    words <= 5 && rest.chars().count() <= 60
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_reach_the_owner_are_found() {
        assert_eq!(email("Write to hello@otto.example, please.").as_deref(), Some("hello@otto.example"));
        assert_eq!(email("a @ b"), None);
        assert_eq!(phone("Call us: +33 4 78 00 11 22.").as_deref(), Some("+33 4 78 00 11 22"));
        assert_eq!(phone("Tel. 555-010-2030").as_deref(), Some("555-010-2030"));
        assert_eq!(phone("From 2019-2024, 10000 guests, 2026-05-12"), None);
        assert_eq!(
            address("You find us at 12 rue des Capucins, 69001 Lyon.").as_deref(),
            Some("12 rue des Capucins, 69001 Lyon")
        );
        assert_eq!(
            address("Wir sind in der Hauptstraße 5, 8010 Graz und freuen uns.").as_deref(),
            Some("Hauptstraße 5, 8010 Graz")
        );
        assert_eq!(address("Address: 4 High Street, York. Open daily.").as_deref(), Some("4 High Street, York"));
        assert_eq!(address("Harbour Road, Whitby YO21 1AA.").as_deref(), Some("Harbour Road, Whitby YO21 1AA"));
        assert_eq!(address("A bakery on the way to work."), None);
    }
}
