//! What a site opens with: a headline of the brief's own words, and what follows it.

use super::orders::Orders;
use super::stock::{Stock, Told};
use super::text;
use super::topics::Topic;
use crate::brief::Brief;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    pub headline: String,
    pub text: String,
    pub tagline: String,
}

const HEADLINE: usize = 70;
const TEXT: usize = 240;

#[rustfmt::skip]
const LEADS: &[&str] = &[
    "we are ", "we're ", "i am ", "i'm ", "i’m ", "we’re ", "it is ", "it's ", "this is ", "nous sommes ", "je suis ",
    "c'est ", "c’est ", "wir sind ", "ich bin ", "das ist ", "somos ", "soy ", "siamo ", "sono ", "sou ", "wij zijn ",
    "we zijn ", "ik ben ", "jesteśmy ", "vi är ",
];
#[rustfmt::skip]
const COPULAS: &[&str] = &[
    " is ", " are ", " est ", " ist ", " es ", " è ", " é ", " är ", " to ", " — ", " – ", " - ", ": ", ", ", "は、",
    "は",
];

/// Takes the headline and its text from what is known; the name if nothing is.
pub fn opening(stock: &mut Stock, orders: &Orders, brief: &Brief, name: &str) -> Opening {
    let mut opening = Opening::default();
    let first = |stock: &Stock| {
        stock.told.iter().position(|told| tells(told) && stock.first_list.is_none_or(|line| told.line <= line))
    };
    // "Hi, I'm Maya Lind": the name stands above already.
    if let Some(at) =
        first(stock).filter(|at| text::stems(without_greeting(&stock.told[*at].text)) == text::stems(name))
    {
        stock.told.remove(at);
    }
    // "Levain is a bakery" says more than "a website for a bakery".
    let introduces = first(stock).is_some_and(|at| without_lead(&stock.told[at].text, name) != stock.told[at].text);
    if let Some(subject) = orders.subject.as_ref().filter(|_| !introduces) {
        opening.headline = text::cut(&text::capital(subject), HEADLINE);
        opening.text = orders.about.clone().unwrap_or_default();
    } else if let Some(at) = first(stock) {
        let told = stock.told.remove(at);
        let (headline, rest) = headline(&told.text, name);
        opening.headline = headline;
        opening.text = rest;
    } else {
        opening.text = orders.about.clone().unwrap_or_default();
    }
    let known = opening.headline.to_lowercase();
    let industry = brief.industry.as_deref().map(text::fold).unwrap_or_default();
    let industry = text::cut(&text::capital(&industry), HEADLINE);
    if known.is_empty() || known == name.to_lowercase() {
        opening.headline = if known.is_empty() && !industry.is_empty() { industry } else { name.to_owned() };
    } else if !industry.is_empty() && text::stems(&industry).iter().all(|stem| !text::stems(&known).contains(stem)) {
        opening.tagline = industry;
    }
    // One or two sentences more, if they are short enough to stand large.
    while (brief.sections.is_empty() || stock.told.len() > 3)
        && opening.text.chars().count() < TEXT / 3
        && let Some(at) = stock.told.iter().position(tells)
        && at == 0
    {
        // What is as short as an item may be one.
        if stock.told[0].text.split(' ').count() <= 4 && stock.told.len() > 2 {
            break;
        }
        let longer = joined(&opening.text, &stock.told[0].text);
        if longer.chars().count() > TEXT {
            break;
        }
        opening.text = longer;
        stock.told.remove(0);
    }
    opening
}

fn tells(told: &Told) -> bool {
    matches!(told.topic, Topic::Other | Topic::About | Topic::Hero) && !told.text.ends_with(['?', '？'])
}

/// Two sentences as one text; scripts without spaces get none.
pub fn joined(first: &str, second: &str) -> String {
    match first.chars().next_back() {
        None => second.to_owned(),
        Some(last) if last >= '\u{2e80}' => format!("{first}{second}"),
        Some(_) => format!("{first} {second}"),
    }
}

/// A sentence as a headline, and the sentence or its rest where the headline does not say all of it.
fn headline(sentence: &str, name: &str) -> (String, String) {
    let whole = sentence.trim_end_matches(['.', '。', ' ']);
    let bare = without_lead(whole, name);
    if bare.chars().count() <= HEADLINE {
        return (text::capital(bare), String::new());
    }
    let head = match joint(bare) {
        Some(at) => bare[..at].trim_end_matches([',', ' ']),
        None => return (text::cut(&text::capital(bare), HEADLINE), sentence.to_owned()),
    };
    let rest = bare[head.len()..].trim_start_matches([',', ';', ':', '–', '—', '-', ' ', '、']);
    let first = rest.split(' ').next().unwrap_or_default().to_lowercase();
    let stands = [
        "with", "for", "from", "mit", "avec", "con", "com", "met", "für", "pour", "para", "per", "voor", "founded",
        "open",
    ]
    .contains(&first.as_str());
    let text = if stands { format!("{}.", text::capital(rest)) } else { sentence.to_owned() };
    (text::capital(head), text)
}

/// Where a headline may end.
#[rustfmt::skip]
const JOINTS: &[&str] = &[
    ", ", " – ", " — ", "; ", ": ", "、", " that ", " which ", " who ", " where ", " with ", " qui ", " avec ", " die ", " mit ", " con ", " que ", " com ", " che ", " and we ", " und wir ",
];

/// The last place where a headline may end before its bound.
fn joint(text: &str) -> Option<usize> {
    let end = text.char_indices().nth(HEADLINE).map_or(text.len(), |(at, _)| at);
    let places = JOINTS.iter().flat_map(|mark| text[..end].match_indices(mark));
    places
        .filter(|(at, mark)| text[..*at].chars().count() >= 12 && !(*mark == ", " && lists(&text[at + 2..])))
        .map(|(at, _)| at)
        .max()
}

/// Whether a text goes on with a word or two of a list: "Rust and Postgres".
fn lists(rest: &str) -> bool {
    let item = [", ", " and ", " or ", " et ", " und ", " y ", " e ", " en "]
        .iter()
        .filter_map(|mark| rest.find(mark))
        .min()
        .map_or(rest, |at| &rest[..at]);
    item.split(' ').count() <= 2 && item.len() < rest.len()
}

/// Without "Hi, I'm".
fn without_greeting(sentence: &str) -> &str {
    let bare = ["Hi, ", "Hi! ", "Hello, ", "Hey, ", "Hi there, "]
        .iter()
        .find_map(|hello| sentence.strip_prefix(hello))
        .unwrap_or(sentence);
    without_lead(bare, "")
}

/// "We are a bakery" and "Levain is a bakery": the bakery.
fn without_lead<'a>(sentence: &'a str, name: &str) -> &'a str {
    let lower = sentence.to_lowercase();
    if lower.len() != sentence.len() {
        return sentence;
    }
    let lead = LEADS.iter().find(|lead| lower.starts_with(**lead)).map(|lead| lead.len()).or_else(|| {
        let after = lower.strip_prefix(&name.to_lowercase()).filter(|_| !name.is_empty())?;
        COPULAS.iter().find(|copula| after.starts_with(**copula)).map(|copula| lower.len() - after.len() + copula.len())
    });
    lead.and_then(|at| sentence.get(at..)).filter(|rest| rest.chars().count() >= 6).unwrap_or(sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headlines_are_the_briefs_own_words() {
        for (sentence, wanted, rest) in [
            ("We are a small bakery in Lyon.", "A small bakery in Lyon", ""),
            ("Levain is a bakery in Lyon.", "A bakery in Lyon", ""),
            ("We bake bread over a wood fire.", "We bake bread over a wood fire", ""),
            (
                "A family bakery in Lyon since 1998, with bread from our own starter and pastries every single morning.",
                "A family bakery in Lyon since 1998",
                "With bread from our own starter and pastries every single morning.",
            ),
            (
                "I'm a backend engineer based in Oslo with 9 years of experience in Go, Rust and Postgres.",
                "A backend engineer based in Oslo",
                "With 9 years of experience in Go, Rust and Postgres.",
            ),
            ("京都の小さな陶芸工房です。", "京都の小さな陶芸工房です", ""),
        ] {
            assert_eq!(headline(sentence, "Levain"), (wanted.to_owned(), rest.to_owned()), "{sentence}");
        }
    }
}
