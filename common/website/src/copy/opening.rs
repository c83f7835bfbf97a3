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
    if let Some(subject) = &orders.subject {
        opening.headline = text::cut(&text::capital(subject), HEADLINE);
        opening.text = orders.about.clone().unwrap_or_default();
    } else if let Some(first) =
        stock.told.iter().position(|told| tells(told) && told.text.chars().any(char::is_alphabetic))
    {
        let told = stock.told.remove(first);
        let (headline, rest) = headline(&told.text, name);
        opening.headline = headline;
        opening.text = rest;
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

/// The last place where a headline may end before its bound.
fn joint(text: &str) -> Option<usize> {
    let end = text.char_indices().nth(HEADLINE).map_or(text.len(), |(at, _)| at);
    let marks = [
        ", ",
        " – ",
        " — ",
        "; ",
        ": ",
        "、",
        " that ",
        " which ",
        " who ",
        " where ",
        " with ",
        " qui ",
        " avec ",
        " die ",
        " mit ",
        " con ",
        " que ",
        " com ",
        " che ",
        " and we ",
        " und wir ",
    ];
    marks.iter().filter_map(|mark| text[..end].rfind(mark)).filter(|at| text[..*at].chars().count() >= 12).max()
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
            ("京都の小さな陶芸工房です。", "京都の小さな陶芸工房です", ""),
        ] {
            assert_eq!(headline(sentence, "Levain"), (wanted.to_owned(), rest.to_owned()), "{sentence}");
        }
    }
}
