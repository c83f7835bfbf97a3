//! Parts of sentences: labels, items of lists, numbers with what they count.

use crate::copy::orders::is_order;
use crate::copy::text;
use crate::plan::{Fact, Item};

/// "Mention that we are open daily": what is to be said.
pub fn reported(sentence: &str) -> Option<String> {
    let lower = sentence.to_ascii_lowercase();
    let starts = [
        "please mention that ",
        "mention that ",
        "say that ",
        "include that ",
        "note that ",
        "please note that ",
        "state that ",
        "tell visitors that ",
        "it should say that ",
    ];
    let start = starts.iter().find(|start| lower.starts_with(**start))?;
    let said = text::capital(&sentence[start.len()..]);
    (!is_order(&said)).then_some(said)
}

/// The label and the text of "Services: repairs, rides".
pub fn labelled(sentence: &str) -> Option<(&str, &str)> {
    let (label, rest) = sentence.split_once(": ").or_else(|| sentence.split_once('：'))?;
    let (label, rest) = (label.trim(), rest.trim());
    let words = label.split(' ').count();
    let plain = !label.contains(['.', '!', '?', ',', '"']) && !label.starts_with(|c: char| c.is_ascii_digit());
    (words <= 5 && plain && !rest.is_empty() && label.chars().count() <= 50).then_some((label, rest))
}

/// A point as an item: "Wheel throwing – for beginners", "Soup: of the day".
pub fn item(point: &str) -> Item {
    let split = [" – ", " — ", " - ", ": "].iter().filter_map(|mark| point.find(mark).map(|at| (at, mark.len()))).min();
    match split {
        Some((at, length)) if at > 0 && point[..at].split(' ').count() <= 8 => Item {
            title: text::capital(point[..at].trim()),
            text: text::capital(point[at + length..].trim()),
            note: String::new(),
        },
        _ => Item {
            title: text::capital(point.strip_suffix('.').filter(|point| !point.contains(". ")).unwrap_or(point)),
            text: String::new(),
            note: String::new(),
        },
    }
}

/// The items of "1) a 2) b 3) c".
pub fn numbered(text: &str) -> Option<Vec<Item>> {
    let mut rest = text.strip_prefix("1) ").or_else(|| text.strip_prefix("1. "))?;
    let mut items = Vec::new();
    for number in 2..=20 {
        let next = [format!(" {number}) "), format!(" {number}. ")]
            .iter()
            .find_map(|mark| Some((rest.find(mark.as_str())?, mark.len())));
        let part = next.map_or(rest, |(at, _)| &rest[..at]);
        items.push(Item {
            title: text::capital(part.trim_end_matches(['.', ',', ';', ' '])),
            text: String::new(),
            note: String::new(),
        });
        match next {
            Some((at, length)) => rest = &rest[at + length..],
            None => break,
        }
    }
    (items.len() >= 2).then_some(items)
}

/// The items of "a, b and c", if there are at least `commas` joints and no part is long.
pub fn enumeration(text: &str, joints: usize) -> Option<Vec<Item>> {
    let body = text.trim_end_matches(['.', '!', ';', '。']);
    if body.contains([';', '?', '。']) || body.contains(". ") {
        return None;
    }
    let mut parts: Vec<&str> = body.split(", ").flat_map(|part| part.split(['、', '،'])).collect();
    let last = parts.pop()?;
    let last = LAST.iter().find_map(|joint| last.strip_prefix(joint.trim_start())).unwrap_or(last);
    match LAST.iter().find_map(|joint| last.split_once(joint)) {
        Some((before, after)) => parts.extend([before, after]),
        None => parts.push(last),
    }
    let short = parts.iter().all(|part| {
        let words = part.trim().split(' ').count();
        !part.trim().is_empty() && words <= 7 && part.chars().count() <= 70
    });
    let article = |part: &'_ str| -> String {
        ARTICLES.iter().find_map(|article| part.strip_prefix(article)).unwrap_or(part).to_owned()
    };
    let plain =
        |part: &&str| Item { title: text::capital(&article(part.trim())), text: String::new(), note: String::new() };
    (parts.len() > joints && short).then(|| parts.iter().map(plain).collect())
}

/// Partitive articles, which no title has.
#[rustfmt::skip]
const ARTICLES: &[&str] = &[
    "les ", "los ", "las ", "des ", "de la ", "du ", "de l’", "de l'", "della ", "dei ", "delle ",
];

const LAST: &[&str] =
    &[" and ", " & ", " or ", " et ", " und ", " y ", " e ", " en ", " och ", " oraz ", " i ", " и ", " та "];

#[rustfmt::skip]
const OFFERING: &[&str] = &[
    "i shoot ", "i make ", "i build ", "i offer ", "i teach ", "i design ", "i write ", "i draw ", "we design ",
    "we grow ", "we brew ", "we offer ", "we teach ", "we make ", "we sell ", "we serve ", "we provide ",
    "we repair ", "we build ", "we do ", "our services include ", "services include ", "services are ",
    "our services are ", "nous proposons ", "nous offrons ", "nous vendons ", "nous intervenons pour ",
    "nous réparons ", "nous fabriquons ", "wir reparieren ", "wir fertigen ", "reparamos ", "progettiamo ",
    "ripariamo ", "realizziamo ", "fazemos ", "wir bieten ", "wir verkaufen ", "wir machen ", "ofrecemos ",
    "vendemos ", "hacemos ", "offriamo ", "oferecemos ", "wij bieden ", "we bieden ", "vi erbjuder ", "oferujemy ",
    "мы предлагаем ", "we specialise in ", "we specialize in ",
];

/// The items of "We offer a, b and c".
pub fn offered(sentence: &str) -> Option<Vec<Item>> {
    let lower = sentence.to_lowercase();
    let lead = OFFERING.iter().find(|lead| lower.starts_with(**lead))?;
    enumeration(sentence.get(lead.len()..)?, 2)
}

/// "120 seats, 14 beers on tap and 3 cooks".
pub fn numbers(sentence: &str) -> Option<Vec<Fact>> {
    let items = enumeration(sentence, 1)?;
    let facts: Option<Vec<Fact>> = items
        .iter()
        .map(|item| {
            let (value, label) = item.title.split_once(' ')?;
            let counts = value.starts_with(|c: char| c.is_ascii_digit())
                && value.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '.' | '+' | '%' | '\''));
            let labels = label.chars().all(|c| c.is_alphabetic() || matches!(c, ' ' | '-' | '’' | '\''))
                && label.split(' ').count() <= 5;
            (counts && labels).then(|| Fact { value: value.to_owned(), label: label.to_owned() })
        })
        .collect();
    facts.filter(|facts| facts.len() >= 2)
}
