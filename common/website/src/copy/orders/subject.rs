//! The subject of "implement a website for a ceramics studio", and what it is for.

use crate::copy::{language, text};

/// Words that follow a noun phrase.
#[rustfmt::skip]
const JOINING: &[&str] = &[
    "for", "pour", "für", "para", "per", "voor", "för", "dla", "that", "which", "where", "to", "with", "on", "qui",
    "avec", "mit", "con", "com", "die", "das", "que", "che", "met",
];

/// Words for a site that say nothing about its subject.
#[rustfmt::skip]
const BARE: &[&str] = &[
    "website", "site", "webpage", "page", "homepage", "web", "sitio", "sito", "webseite", "página", "pagina",
    "landing-page", "webbplats", "hemsida",
];
/// Words for what is used rather than read: part of the subject.
#[rustfmt::skip]
const THINGS: &[&str] = &[
    "application", "app", "platform", "system", "dashboard", "game", "portal", "store", "shop", "tool", "blog",
    "marketplace", "chatbot", "simulator",
];
/// Adjectives about the making.
#[rustfmt::skip]
const MAKING: &[&str] = &[
    "a", "an", "the", "modern", "responsive", "simple", "one-page", "single-page", "multi-page", "landing",
    "professional", "web-based", "web", "beautiful", "clean", "dark", "new", "stylish", "elegant", "static", "fully",
    "functional", "interactive", "user-friendly", "attractive", "complete", "nice", "portfolio", "personal",
    "business", "company", "corporate", "marketing", "promotional", "informational", "one", "single", "sleek",
    "minimal", "minimalist", "bold", "playful", "colorful", "colourful", "vibrant", "high-converting", "fancy",
    "cool", "great", "small", "basic", "quick", "fast", "accessible", "polished", "premium", "eye-catching",
    "engaging", "warm", "calm", "friendly", "me", "us", "my", "our", "une", "un", "una", "ein", "eine", "einen", "um",
    "uma", "een", "et", "moderne", "schöne", "kleine",
];
#[rustfmt::skip]
const BUILDING: &[&str] = &[
    "implement", "create", "build", "develop", "design", "make", "need", "want", "generate", "like", "quiero",
    "necesito", "queremos", "veux", "voudrais", "möchte", "brauche", "brauchen", "möchten", "vorrei", "quero",
    "preciso", "wil", "willen", "realizza", "créez", "crée", "erstelle", "crea", "crie", "maak",
];
#[rustfmt::skip]
const FOR: &[&str] = &[
    "for", "of", "about", "pour", "für", "para", "per", "voor", "för", "dla",
];

/// The subject and its purpose in "implement a … website for … that …".
pub fn subject(order: &str, name: &str) -> (Option<String>, Option<String>) {
    let none = (None, None);
    let order = order.trim_end_matches(['.', '!']);
    let words: Vec<&str> = order.split(' ').collect();
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let verb = words.iter().take(7).position(|word| BUILDING.contains(&bare(word).as_str()));
    let from = verb.map_or(0, |at| at + 1);
    // The noun phrase ends at its first joint; "a wheel of fortune website" has one inside.
    let site = |word: &&str| BARE.contains(&bare(word).as_str());
    let joint = |at: usize| {
        let word = bare(words[at]);
        JOINING.contains(&word.as_str()) || matches!(word.as_str(), "of" | "about") && at > from && site(&words[at - 1])
    };
    let to = (from..words.len()).find(|at| joint(*at)).unwrap_or(words.len());
    let phrase = &words[from..to];
    let Some(head) = phrase.last().map(|word| bare(word)) else { return none };
    let site = phrase.iter().any(|word| BARE.contains(&bare(word).as_str()) || THINGS.contains(&bare(word).as_str()));
    if !site || phrase.len() > 12 || phrase.contains(&"should") {
        return none;
    }
    let mut kept: Vec<&str> = phrase.to_vec();
    if BARE.contains(&head.as_str()) {
        kept.pop();
    }
    while kept.first().is_some_and(|word| MAKING.contains(&bare(word).as_str()) || BARE.contains(&bare(word).as_str()))
    {
        kept.remove(0);
    }
    while kept.last().is_some_and(|word| matches!(bare(word).as_str(), "landing" | "web" | "one-page" | "portfolio")) {
        kept.pop();
    }
    // Elsewhere adjectives follow, and say how the site looks.
    if language::detect(order) != "en" {
        kept.clear();
    }
    kept.retain(|word| bare(word) != "web");
    // "a technical website": an adjective alone is no subject.
    if let [word] = kept[..] {
        let word = bare(word);
        if word.ends_with("al") || word.ends_with("ic") || word.ends_with("ive") {
            kept.clear();
        }
    }
    if kept.iter().all(|word| THINGS.contains(&bare(word).as_str())) {
        kept.clear();
    }
    let of = kept.join(" ");
    let rest = words[to..].join(" ");
    let (first, after) = rest.split_once(' ').unwrap_or_default();
    if FOR.contains(&bare(first).as_str()) {
        let (noun, purpose) = phrase_of(after);
        let bare_noun = without_name(&noun, name);
        // "for Otto, a tool that plans shifts": what the tool does belongs to it.
        let clause =
            after[noun.len()..].strip_prefix(" that ").filter(|clause| bare_noun.len() < noun.len() && !owned(clause));
        let noun = match clause {
            Some(clause) => format!("{bare_noun} that {}", clause.split([',', ';']).next().unwrap_or_default()),
            None => bare_noun,
        };
        if ANYONE.contains(&noun.as_str()) {
            return (Some(of).filter(|of| !of.is_empty()), purpose);
        }
        let gerund = gerund(&noun);
        let shown = gerund
            .and_then(|gerund| SHOWING.contains(&gerund).then(|| noun[gerund.len()..].trim().to_owned()))
            .filter(|shown| !shown.starts_with("and "));
        return match (of.is_empty(), gerund.is_some(), shown) {
            (true, _, Some(shown)) if owned(&shown) => (None, purpose),
            (true, _, Some(shown)) => (Some(shown), purpose),
            (true, ..) => (Some(noun).filter(|noun| !noun.is_empty()), purpose),
            (false, true, Some(shown)) => {
                (Some(of), Some(text::capital(&shown)).filter(|shown| !owned(shown)).map(stop))
            }
            (false, true, None) => (Some(of), Some(stop(format!("For {noun}")))),
            (false, false, _) => (Some(format!("{of} for {noun}")), purpose),
        };
    }
    (Some(of).filter(|of| !of.is_empty()), purpose(&rest))
}

/// For whom every site is.
#[rustfmt::skip]
const ANYONE: &[&str] = &["users", "people", "players", "customers", "visitors", "clients", "everyone", "the users"];

/// Purposes of the owner rather than of the reader.
const SELLING: &[&str] = &["generate leads", "attract", "increase", "convert", "boost", "information to ", "get more"];

#[rustfmt::skip]
pub const SHOWING: &[&str] = &[
    "displaying", "showing", "showcasing", "presenting", "introducing", "promoting", "providing", "featuring",
    "advertising", "offering",
];
#[rustfmt::skip]
const GERUNDS: &[&str] = &[
    "managing", "generating", "comparing", "hosting", "selling", "sharing", "tracking", "browsing", "simulating",
    "booking", "creating", "buying", "finding", "learning", "teaching", "organizing", "organising", "planning",
    "collecting", "monitoring", "analyzing", "analysing", "searching", "playing", "viewing", "renting", "ordering",
    "publishing", "posting", "reading", "handling", "recording", "building", "exploring",
];

fn gerund(phrase: &str) -> Option<&str> {
    let first = phrase.split(' ').next()?;
    (SHOWING.contains(&first) || GERUNDS.contains(&first) && phrase.contains(' ')).then_some(first)
}

/// "its products": says nothing without the owner's name.
pub fn owned(phrase: &str) -> bool {
    let lower = format!(" {} ", phrase.to_lowercase());
    [" its ", " their ", " my ", " his ", " her "].iter().any(|word| lower.contains(word))
}

fn stop(mut text: String) -> String {
    if !text.ends_with(['.', '!', '?', '。']) {
        text.push('.');
    }
    text
}

/// The noun phrase that `text` begins with, and what the rest says it is for.
fn phrase_of(text: &str) -> (String, Option<String>) {
    // "for ages 8 to 16" goes on.
    let ends =
        |at: usize, end: &str| end != " to " || !text[at + end.len()..].starts_with(|c: char| c.is_ascii_digit());
    let at =
        PHRASE_ENDS.iter().filter_map(|end| text.find(end).filter(|at| ends(*at, end))).min().unwrap_or(text.len());
    let noun = text[..at].trim_matches([',', ' ', ':']).to_owned();
    (noun, purpose(text[at..].trim()))
}

/// "to provide stock information" and "where users can play chess" as sentences.
fn purpose(rest: &str) -> Option<String> {
    let rest = rest.trim_end_matches('.');
    let (words, shown): (&str, bool) = if let Some(deed) = rest.strip_prefix("where ") {
        let deed = ["users can ", "players can ", "people can ", "visitors can ", "customers can "]
            .iter()
            .find_map(|who| deed.strip_prefix(who))?;
        (deed, false)
    } else if let Some(deed) = rest.strip_prefix("to ") {
        shown_or(deed, &["display ", "provide ", "show ", "showcase ", "present ", "offer ", "promote ", "introduce "])
    } else if let Some(deed) = rest.strip_prefix("that ").or_else(|| rest.strip_prefix("which ")) {
        let (deed, shown) = shown_or(deed, &["displays ", "provides ", "shows ", "showcases ", "presents ", "offers "]);
        // A verb in the third person needs its subject.
        if !shown {
            return None;
        }
        (deed, true)
    } else {
        return None;
    };
    // "display plans and provide support": the second verb has no place behind a noun.
    let end = [" and provide ", " and support ", " and allow ", " and help ", " and offer ", " and generate "]
        .iter()
        .filter(|_| shown)
        .filter_map(|joint| words.find(joint))
        .min();
    let words = &words[..end.unwrap_or(words.len())];
    let told = words.split([';', ':']).next().unwrap_or_default().trim();
    let orders = ["website", " page", "should", "users"].iter().any(|word| told.contains(word))
        || SELLING.iter().any(|start| told.starts_with(start));
    let enough = told.split(' ').count() > usize::from(!shown) && told.chars().count() <= 200;
    (!owned(told) && !orders && enough).then(|| stop(text::capital(told)))
}

fn shown_or<'a>(deed: &'a str, verbs: &[&str]) -> (&'a str, bool) {
    verbs.iter().find_map(|verb| deed.strip_prefix(verb)).map_or((deed, false), |shown| (shown, true))
}

/// "Otto, a tool that plans shifts" without the name.
fn without_name(noun: &str, name: &str) -> String {
    let rest = noun.strip_prefix(name).filter(|_| !name.is_empty()).unwrap_or(noun);
    let rest = if rest.is_empty() || rest.starts_with([',', ' ', ':', '–', '—']) { rest } else { noun };
    rest.trim_start_matches([',', ' ', ':', '–', '—', '-']).to_owned()
}

/// Where a noun phrase ends.
#[rustfmt::skip]
const PHRASE_ENDS: &[&str] = &[
    " to ", " that ", " which ", " where ", " with features", " with functional", " with a ", " with pages",
    " with sections", ", including", " including ", " such as ", ", with ", " qui ", " avec ", " mit einer ",
    " mit einem ", " que ", " che ", " con ", " com ", " met ", " dat ", ", and should", ". ",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_found_in_orders() {
        for (order, wanted, about) in [
            (
                "Please implement a website for a small ceramics studio in Porto that shows its collections.",
                "a small ceramics studio in Porto",
                "",
            ),
            (
                "Please implement a website for generating stock reports to provide stock information and analysis.",
                "generating stock reports",
                "Stock information and analysis.",
            ),
            (
                "Please implement a sports analytics website that provides basketball betting data and analysis.",
                "sports analytics",
                "Basketball betting data and analysis.",
            ),
            (
                "Please implement an online trivia contest app for hosting knowledge competitions.",
                "online trivia contest app",
                "For hosting knowledge competitions.",
            ),
            ("Please implement a dashboard website for displaying regulatory policies.", "regulatory policies", ""),
            (
                "Please implement a chess web application where users can play chess online.",
                "chess application",
                "Play chess online.",
            ),
            ("Landing page for Otto, a tool that plans shifts", "a tool that plans shifts", ""),
            (
                "Créez un site pour une petite boulangerie à Lyon avec une page de contact.",
                "une petite boulangerie à Lyon",
                "",
            ),
            (
                "Please implement a wheel of fortune website where users can spin the wheel.",
                "wheel of fortune",
                "Spin the wheel.",
            ),
            (
                "Please implement a 2048 game website for users to play the 2048 game.",
                "2048 game",
                "Play the 2048 game.",
            ),
            ("The website should have functionalities for spinning the wheel.", "", ""),
            ("Use ivory for the background.", "", ""),
        ] {
            let (subject, purpose) = subject(order, "Otto");
            assert_eq!(subject.unwrap_or_default(), wanted, "{order}");
            assert_eq!(purpose.unwrap_or_default(), about, "{order}");
        }
    }
}
