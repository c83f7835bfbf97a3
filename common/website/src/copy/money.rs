//! Prices in text.

use super::text;
use crate::plan::Offer;

#[rustfmt::skip]
const SIGNS: &[&str] = &[
    "€", "$", "£", "¥", "₹", "₪", "₽", "₴", "₩", "zł", "円", "元", "₺",
];
#[rustfmt::skip]
const CODES: &[&str] = &[
    "eur", "usd", "gbp", "chf", "jpy", "inr", "sek", "nok", "dkk", "pln", "czk", "euro", "euros", "dollars", "pounds",
    "kr", "zl", "yen", "rub", "руб", "грн", "шекелей", "ש״ח", "درهم", "ريال", "جنيه", "fr", "reais", "r$", "us$",
    "pesos", "franken", "francs",
];
/// After an amount: "per month", "a night".
#[rustfmt::skip]
const SPANS: &[&str] = &[
    "per ", "a month", "a year", "a night", "a person", "an hour", "a day", "a week", "a head", "each", "monthly",
    "yearly", "pro ", "par ", "por ", "al mes", "al mese", "ao mês", "je ", "im monat", "/",
];
/// Between a name and its price.
#[rustfmt::skip]
const LINKS: &[&str] = &[
    "for", "at", "costs", "cost", "is", "are", "kostet", "kosten", "coûte", "cuesta", "costa", "custa", "kost", "für",
    "à", "a", "za", "=", "-", "–", "—", ":", "…", "|",
];
/// In a sentence about prices rather than in the name of a thing.
#[rustfmt::skip]
const NO_NAME: &[&str] = &[
    "prices", "price", "start", "starts", "starting", "we", "you", "our", "they", "it", "i", "preise", "prix",
    "precios", "which", "that", "there", "if",
];

/// Where an amount stands: with its sign or code, and what it is for.
fn amount(text: &str) -> Option<(usize, usize)> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let length = text[start..]
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ',' | '\'' | '’'))
        .unwrap_or(text.len() - start);
    let mut end = start + text[start..start + length].trim_end_matches(['.', ',', '\'', '’']).len();
    let mut from = start;
    let before = text[..start].trim_end();
    let after = text[end..].trim_start();
    let word_before = before.rsplit(' ').next().unwrap_or_default();
    let word_after = after.split([' ', '/', ',']).next().unwrap_or_default().trim_end_matches(['.', ')']);
    let money = |word: &str| SIGNS.contains(&word) || CODES.contains(&word.to_lowercase().as_str());
    if money(word_before) {
        from = before.len() - word_before.len();
    } else if let Some(sign) = SIGNS.iter().find(|sign| before.ends_with(**sign)) {
        from = before.len() - sign.len();
    } else if money(word_after) {
        end = text.len() - after.len() + word_after.len();
    } else if let Some(sign) = SIGNS.iter().find(|sign| after.starts_with(**sign)) {
        end = text.len() - after.len() + sign.len();
    } else {
        // "sourdough 4.50": two decimals at the end.
        let digits = &text[start..end];
        let cents = digits.len() > 3
            && digits[digits.len() - 3..].starts_with(['.', ','])
            && digits.matches(['.', ',']).count() == 1;
        if !cents || !matches!(after, "" | ".") || before.is_empty() {
            return None;
        }
    }
    let rest = text[end..].trim_start();
    if SPANS.iter().any(|span| rest.to_lowercase().starts_with(span)) {
        let words = if rest.starts_with('/') || rest.starts_with("each") { 1 } else { 2 };
        let span: usize = rest.split_inclusive(' ').take(words).map(str::len).sum();
        end = text.len() - rest.len() + rest[..span].trim_end_matches([' ', '.', ',', ';', ')']).len();
    }
    let from_word = text[..from].trim_end();
    if let Some(word) = ["from", "ab", "dès", "desde", "da", "vanaf", "od"]
        .iter()
        .find(|word| from_word.to_lowercase().ends_with(&format!(" {word}")))
    {
        from = from_word.len() - word.len();
    }
    Some((from, end))
}

/// "Six evenings, 240 EUR": the text and the price at its end.
pub fn split_price(text: &str) -> Option<(String, String)> {
    let (before, last) = text.trim_end_matches('.').rsplit_once(", ")?;
    let (from, end) = amount(last)?;
    (from == 0 && end == last.len()).then(|| (before.to_owned(), last.to_owned()))
}

/// Whether a text names an amount of money.
pub fn has_amount(text: &str) -> bool {
    text.split([';', ' ']).count() < 400 && parts(text).iter().any(|part| amount(part).is_some())
}

fn parts(text: &str) -> Vec<&str> {
    [", ", "; ", " | ", " and ", " et ", " und ", " y ", " e ", " en ", " och ", " i ", "、", "،"]
        .iter()
        .fold(vec![text], |parts, mark| parts.into_iter().flat_map(|part| part.split(mark)).collect())
}

/// The priced things of a sentence, if it is a list of them: "sourdough 4.50, croissants 2.20".
pub fn offers(sentence: &str) -> Option<Vec<Offer>> {
    let body = sentence.trim_end_matches(['.', '!', ';', '。', ' ']);
    let body = without_lead(body);
    let mut offers: Vec<Offer> = Vec::new();
    for part in parts(body) {
        let part = part.trim().trim_end_matches(['.', ';']);
        let free = part
            .rsplit_once(' ')
            .filter(|(_, last)| matches!(last.to_lowercase().as_str(), "free" | "gratis" | "gratuit" | "kostenlos"));
        match (amount(part), free) {
            (Some((from, end)), _) => {
                let (before, after) = (
                    unlinked(&part[..from]),
                    part[end..].trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '(' | ')')),
                );
                let (name, text) =
                    if before.is_empty() { (after.strip_prefix("for ").unwrap_or(after), "") } else { (before, after) };
                let words: Vec<String> = name.split(' ').map(str::to_lowercase).collect();
                if name.is_empty() || words.len() > 8 || words.iter().any(|word| NO_NAME.contains(&word.as_str())) {
                    return None;
                }
                let text = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
                let price = part[from..end].trim().to_owned();
                offers.push(Offer { name: text::capital(name), price, text: text::capital(text), points: Vec::new() });
            }
            (None, Some((name, price))) => {
                let name = unlinked(name);
                if name.split(' ').count() > 4 || name.is_empty() {
                    return None;
                }
                offers.push(Offer {
                    name: text::capital(name),
                    price: text::capital(price),
                    text: String::new(),
                    points: Vec::new(),
                });
            }
            (None, None) => offers.last_mut()?.points.push(text::capital(part)),
        }
    }
    let long = offers.iter().any(|offer| offer.points.iter().any(|point| point.split(' ').count() > 7));
    (!offers.is_empty() && !long).then_some(offers)
}

fn unlinked(name: &str) -> &str {
    let mut name = name.trim();
    while let Some(rest) = LINKS.iter().find_map(|link| {
        let rest = name.strip_suffix(link)?;
        let whole = !link.chars().all(char::is_alphabetic) || rest.ends_with(' ');
        whole.then_some(rest.trim_end())
    }) {
        name = rest;
    }
    name.trim_end_matches(['.', '(', ' ', ':', '：'])
}

fn without_lead(body: &str) -> &str {
    let lower = body.to_lowercase();
    let leads = [
        "we sell ",
        "we offer ",
        "we have ",
        "we serve ",
        "nous vendons ",
        "nous proposons ",
        "wir verkaufen ",
        "wir bieten ",
        "vendemos ",
        "ofrecemos ",
        "offriamo ",
        "we charge ",
    ];
    let lead = leads.iter().find(|lead| lower.starts_with(**lead));
    lead.and_then(|lead| body.get(lead.len()..)).unwrap_or(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Vec<(String, String)> {
        offers(text).unwrap_or_default().into_iter().map(|offer| (offer.name, offer.price)).collect()
    }

    #[test]
    fn lists_of_prices_are_read() {
        let pair = |name: &str, price: &str| (name.to_owned(), price.to_owned());
        assert_eq!(
            named("We sell sourdough 4.50, croissants 2.20 and coffee for €3."),
            [pair("Sourdough", "4.50"), pair("Croissants", "2.20"), pair("Coffee", "€3")]
        );
        assert_eq!(
            named("Pain au levain 4,50 €, croissant 1,30 €"),
            [pair("Pain au levain", "4,50 €"), pair("Croissant", "1,30 €")]
        );
        assert_eq!(
            named("Starter free, Pro $12 per month, Team from $49/month"),
            [pair("Starter", "Free"), pair("Pro", "$12 per month"), pair("Team", "from $49/month")]
        );
        assert_eq!(
            named("醤油ラーメン 900円、味噌ラーメン 950円"),
            [pair("醤油ラーメン", "900円"), pair("味噌ラーメン", "950円")]
        );
        assert_eq!(named("Prices start at €20."), []);
        assert_eq!(named("Founded in 1998."), []);
    }
}
