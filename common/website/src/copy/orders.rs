//! Orders to a builder: which sentences are orders, and what they say about the subject. An order itself is never copy.

use super::{language, text};

/// What orders name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// "a small ceramics studio in Porto".
    pub subject: Option<String>,
    /// What the subject is for: "Play chess online."
    pub about: Option<String>,
    /// Nouns: "match history".
    pub topics: Vec<String>,
    /// Names of sections that any site may have: "Services".
    pub sections: Vec<String>,
    /// What a visitor does: "Compare plans".
    pub deeds: Vec<String>,
}

/// Words that speak of a site in any sentence.
#[rustfmt::skip]
const SITE: &[&str] = &[
    "website", "websites", "web site", "webpage", "web page", "web app", "web application", "homepage", "home page",
    "landing page", "landing-page", "one-pager", "onepager", "web-based", "frontend", "front-end", "html", "css",
    "javascript", "the site", "this site", "site should", "our site", "my site", "a site", "call to action",
    "call-to-action", "cta", "hero section", "contact form", "navigation menu", "navbar", "footer", "seo",
    "responsive", "mobile-friendly", "user interface", "placeholder", "lorem ipsum", "users should", "users can",
    "user should", "users must", "users will", "visitors should", "players should", "customers should", "site web",
    "site internet", "page d'accueil", "page d’accueil", "webseite", "webauftritt", "internetseite", "startseite",
    "kontaktformular", "formulaire de contact", "página web", "pagina web", "sitio web", "sito web", "sito internet",
    "nuestra web", "um site", "o site", "un sito", "un site", "le site", "formulario de contacto",
    "formulário de contacto", "de site", "een site", "contactformulier", "strona internetowa", "stronę internetową",
    "webbplats", "hemsida", "сайт", "лендинг", "ιστοσελίδα", "ιστότοπο", "サイト", "ホームページ", "ランディングページ", "网站", "网页",
    "網站", "웹사이트", "홈페이지", "אתר", "דף נחיתה", "موقع إلكتروني", "موقع ويب", "موقعًا", "वेबसाइट",
];

/// First words of sentences that are orders whatever follows.
#[rustfmt::skip]
const ORDERING: &[&str] = &[
    "please", "implement", "include", "add", "ensure", "make sure", "make it", "use", "set", "apply", "style",
    "configure", "assign", "specify", "mention", "highlight", "emphasize", "emphasise", "focus on", "avoid",
    "don't use", "do not use", "put", "insert", "keep it", "show", "display", "list the", "list our", "write",
    "give it", "render", "i want", "i need", "i would like", "i'd like", "we want", "we need", "we would like",
    "we'd like", "it should", "it must", "it needs", "there should", "should", "must", "the design", "the layout",
    "the colors", "the colours", "the tone", "tone:", "style:", "colors:", "colours:", "target audience", "design:",
    "layout:", "the form", "the page", "a page", "pages:", "sections:", "one page", "the app should",
    "the application should", "the system should", "the platform should", "the game should", "the dashboard should",
    "the menu should", "the tool should", "the store should", "looking for a site", "features:", "créez", "créer",
    "crée", "ajoutez", "ajouter", "utilisez", "utiliser", "mettez", "faites", "je veux", "je voudrais", "j'aimerais",
    "nous voulons", "nous voudrions", "merci de", "erstelle", "erstellen", "baue", "bauen sie", "füge", "fügen sie",
    "verwende", "verwenden sie", "nutze", "mach ", "bitte", "ich möchte", "ich brauche", "wir möchten",
    "wir brauchen", "wir wollen", "crea ", "cree ", "añade", "añada", "usa ", "utiliza", "utilice", "quiero",
    "necesito", "queremos", "necesitamos", "por favor", "haz ", "haga ", "aggiungi", "usare", "vorrei", "vogliamo",
    "realizza", "crie", "adicione", "quero", "preciso de", "faça", "maak", "voeg", "gebruik", "ik wil", "wij willen",
    "graag", "stwórz", "zrób", "dodaj", "użyj", "skapa", "gör ", "lägg till", "använd", "создай", "сделай", "добавь",
    "используй", "нужен", "нужна", "хочу", "צור", "צרו", "בנה", "בנו", "הוסף", "הוסיפו", "אני רוצה", "אנחנו רוצים",
    "أنشئ", "صمم", "أضف", "استخدم", "أريد", "نريد", "请", "請", "制作", "创建",
];

/// What makes an order of a sentence wherever it stands.
#[rustfmt::skip]
const ORDERED: &[&str] = &[
    " should be ", " should have ", " should include ", " should show ", " should allow ", " should display ",
    " should support ", " should provide ", " should feature ", " should contain ", " should feel ", " should look ",
    " should also ", " a page that ", " a page for ", " a page with ", " a section with ", " a section for ",
    " a section about ", " section that ", " the background", "background color", "background colour",
    " for components", " for the components", "作って", "作成", "してください", "ほしい", "欲しい", "만들어", "해 주세요", "해주세요",
];

/// Whether a sentence speaks to whoever builds the site.
pub fn is_order(sentence: &str) -> bool {
    let lower = format!(" {} ", sentence.to_lowercase());
    let start = lower.trim_start();
    let begins = |word: &str| {
        start.strip_prefix(word).is_some_and(|rest| {
            !word.is_ascii() || !rest.starts_with(|c: char| c.is_alphanumeric()) || word.ends_with(' ')
        })
    };
    ORDERING.iter().any(|word| begins(word))
        || ORDERED.iter().any(|word| lower.contains(word))
        || SITE.iter().any(|word| holds(&lower, word))
}

/// Whether a text holds a word or phrase as a whole, if its script has spaces.
fn holds(lower: &str, word: &str) -> bool {
    lower.match_indices(word).any(|(at, found)| {
        let whole = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() || c >= '\u{370}');
        whole(lower[..at].chars().next_back()) && whole(lower[at + found.len()..].chars().next())
    })
}

/// "We are a bakery in Lyon and need a website": the half that is no order.
pub fn told_before(sentence: &str) -> Option<String> {
    let lower = sentence.to_lowercase();
    if lower.len() != sentence.len()
        || !["we are ", "we're ", "i am ", "i'm ", "i run ", "we run "].iter().any(|start| lower.starts_with(start))
    {
        return None;
    }
    let at = JOINTS.iter().filter_map(|joint| lower.find(joint)).min()?;
    let told = format!("{}.", sentence[..at].trim_end_matches([',', ' ']));
    (!is_order(&told)).then_some(told)
}

/// What the orders name. `name` is the site's own, which is no subject.
pub fn read(orders: &[String], name: &str) -> Orders {
    let mut found = Orders::default();
    for order in orders {
        if found.subject.is_none() {
            (found.subject, found.about) = subject(order, name);
            // "House cleaning service", "cleaning services": said already.
            let said = text::stems(found.subject.as_deref().unwrap_or_default());
            found.about = found.about.take().filter(|about| text::stems(about).iter().any(|stem| !said.contains(stem)));
        }
        listed(order, &mut found);
    }
    let about = found.about.clone().unwrap_or_default();
    let telling = |item: &str| -> Vec<String> {
        text::stems(item).into_iter().filter(|stem| !VIEWING.contains(&stem.as_str())).collect()
    };
    let mut seen: Vec<Vec<String>> = vec![telling(&about)];
    // "view match history" says no more than "match history".
    let mut fresh = |item: &String| {
        let stems = telling(item);
        let known = seen.iter().any(|other| stems.iter().filter(|stem| other.contains(stem)).count() * 2 > stems.len());
        seen.push(stems.clone());
        !stems.is_empty() && !known
    };
    found.topics.retain(&mut fresh);
    found.deeds.retain(&mut fresh);
    found.sections.truncate(6);
    found.topics.truncate(12);
    found.deeds.truncate(12);
    found
}

/// Stems of what one does with anything.
#[rustfmt::skip]
const VIEWING: &[&str] = &[
    "brows", "view", "see", "show", "displ", "check", "find", "acces", "use", "onlin",
];

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
fn subject(order: &str, name: &str) -> (Option<String>, Option<String>) {
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
        let shown = gerund.and_then(|gerund| SHOWING.contains(&gerund).then(|| noun[gerund.len()..].trim().to_owned()));
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

#[rustfmt::skip]
/// For whom every site is.
const ANYONE: &[&str] = &["users", "people", "players", "customers", "visitors", "clients", "everyone", "the users"];

/// Purposes of the owner rather than of the reader.
const SELLING: &[&str] = &["generate leads", "attract", "increase", "convert", "boost", "information to ", "get more"];

#[rustfmt::skip]
const SHOWING: &[&str] = &[
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
fn owned(phrase: &str) -> bool {
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
    let at = PHRASE_ENDS.iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
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

/// Before a list of what visitors do.
#[rustfmt::skip]
const DEEDS: &[&str] = &[
    "users should also be able to ", "users should be able to ", "visitors should be able to ",
    "players should be able to ", "customers should be able to ", "users can ", "players can ", "visitors can ",
    "allow users to ", "allows users to ", "allowing users to ", "functionality to ", "functions to ",
];
/// Before a list of nouns.
#[rustfmt::skip]
const TOPICS: &[&str] = &[
    "functionalities for ", "functionalities such as ", "functionality for ", "functions for ", "functions such as ",
    "features such as ", "features like ", "features for ", "capabilities for ", "pages for ", "pages, including ",
    "including ", "such as ", "section for ", "section about ", "sections for ", "that shows its ", "that shows our ",
    "showing our ", "lists our ", "show our ", "showcase its ", "showcases its ", "introduction to ",
    "should include ", "should also include ", "sections on ", "information about ",
];

/// Sections that any site may have.
#[rustfmt::skip]
const SECTIONS: &[&str] = &[
    "about us", "about", "services", "products", "menu", "menus", "faq", "faqs", "testimonials", "gallery", "team",
    "our team", "pricing", "prices", "opening hours", "news", "events", "collections", "projects", "works", "courses",
    "reviews",
];

/// Adds what an order lists.
fn listed(order: &str, found: &mut Orders) {
    // Offsets of the lower case have to hold in the order.
    let lower = order.to_ascii_lowercase();
    let deed = DEEDS.iter().filter_map(|mark| lower.find(mark).map(|at| at + mark.len())).min();
    let topic = TOPICS.iter().filter_map(|mark| lower.find(mark).map(|at| at + mark.len())).min();
    let (start, deeds) = match (deed, topic) {
        (Some(deed), Some(topic)) if topic < deed => (topic, false),
        (Some(deed), _) => (deed, true),
        (None, Some(topic)) => (topic, false),
        (None, None) => return,
    };
    let list = &order[start..];
    let end = [
        ", allowing",
        ", each",
        " where ",
        " based on ",
        " so that ",
        " to help ",
        " through ",
        ": ",
        "; ",
        " when ",
        " as well as ",
    ];
    let end = end.iter().filter_map(|mark| list.find(mark)).min().unwrap_or(list.len());
    let list = list[..end].trim_end_matches(['.', '!', ' ']);
    for part in if deeds { deeds_of(list) } else { parts(list) } {
        let plain = part.trim().trim_start_matches("the ").trim_start_matches("our ").to_lowercase();
        if SECTIONS.contains(&plain.as_str()) {
            let name = text::capital(&plain);
            if !found.sections.contains(&name) {
                found.sections.push(name);
            }
        } else if let Some(item) = topic_of(part, deeds) {
            if deeds { &mut found.deeds } else { &mut found.topics }.push(item);
        }
    }
}

/// What visitors do, part by part. "move up, down, or left" is one deed.
fn deeds_of(list: &str) -> Vec<&str> {
    let mut deeds: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    let mut glued = false;
    let marks: Vec<&str> = if list.contains(", ") { list.split(", ").collect() } else { return parts(list) };
    for part in marks {
        let end = at + part.len();
        at = end + 2;
        let bare = part.trim_start_matches("and ").trim_start_matches("or ");
        let joined = bare.len() < part.len();
        glued = !bare.contains(' ') && !deeds.is_empty() || glued && joined;
        match deeds.last_mut() {
            Some(last) if glued => last.1 = end,
            _ => deeds.push((end - bare.len(), end)),
        }
    }
    deeds.into_iter().map(|(start, end)| &list[start..end]).collect()
}

/// The parts of "a, b, and c" or "a and b".
fn parts(list: &str) -> Vec<&str> {
    let parts: Vec<&str> = list
        .split(", ")
        .map(|part| part.strip_prefix("and ").or_else(|| part.strip_prefix("or ")).unwrap_or(part))
        .collect();
    if parts.len() == 1 { list.split(" and ").collect() } else { parts }
}

/// A part as a title, unless it speaks of the site or says nothing.
fn topic_of(part: &str, deed: bool) -> Option<String> {
    let mut item = part.trim();
    let mut stripped = true;
    while stripped {
        stripped = false;
        // "the company's history": whose it is, the site says.
        if let Some((_, rest)) =
            item.split_once(' ').filter(|(owner, _)| !deed && (owner.ends_with("'s") || owner.ends_with("’s")))
        {
            item = rest;
            stripped = true;
        }
        for start in [
            "own ",
            "the ",
            "a ",
            "an ",
            "its ",
            "our ",
            "their ",
            "also ",
            "then ",
            "and ",
            "various ",
            "detailed ",
            "basic ",
            "easily ",
            "different ",
        ] {
            if let Some(rest) = item.strip_prefix(start) {
                item = rest;
                stripped = true;
            }
        }
        if let Some(gerund) = item.split(' ').next().filter(|first| {
            SHOWING.contains(first) || !deed && matches!(*first, "browsing" | "viewing" | "view" | "browse")
        }) {
            item = item[gerund.len()..].trim_start();
            stripped = true;
        }
    }
    let lower = item.to_lowercase();
    let vague = [
        "learn about",
        "understand",
        "learn more",
        "contact",
        "browse",
        "get to know",
        "find out",
        "get help",
        "reach out",
        "find the information",
    ];
    let no = EMPTY.contains(&lower.as_str())
        || vague.iter().any(|start| lower.starts_with(start)) && !lower.contains(" data")
        || owned(&lower)
        || [
            "website",
            "page",
            " site",
            "user",
            "button",
            "carousel",
            "background",
            "section",
            "layout",
            "the form",
            "and so on",
            "menu to",
        ]
        .iter()
        .any(|word| lower.contains(word));
    let words = item.split(' ').count();
    (!no && (1..=7).contains(&words) && item.chars().count() >= 4).then(|| text::capital(item))
}

/// Where a telling half ends.
#[rustfmt::skip]
const JOINTS: &[&str] = &[
    " and need", " and want", " and we need", " and we want", " and would like", " and i need", " and i want",
    ", and need", ", and we need", " looking for", " who need", " that need",
];

/// Where a noun phrase ends.
#[rustfmt::skip]
const PHRASE_ENDS: &[&str] = &[
    " to ", " that ", " which ", " where ", " with features", " with functional", " with a ", " with pages",
    " with sections", ", including", " including ", " such as ", ", with ", " qui ", " avec ", " mit einer ",
    " mit einem ", " que ", " che ", " con ", " com ", " met ", " dat ", ", and should", ". ",
];

/// Items that say nothing.
#[rustfmt::skip]
const EMPTY: &[&str] = &[
    "more", "etc", "etc.", "homepage", "home", "home page", "information", "users", "content", "contact",
    "contact us", "about us", "about", "learn more", "other features", "other information",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_told_from_copy() {
        for order in [
            "Please implement a website for a ceramics studio.",
            "The website should have functionalities for browsing collections.",
            "Use beige as background and saddle brown for components.",
            "Should have a contact form.",
            "Users should be able to book.",
            "A page that lists our courses.",
            "Landing page for Otto, a tool that plans shifts.",
            "Créez un site pour une boulangerie.",
            "Wir brauchen eine Webseite.",
            "サイトを作ってください。",
        ] {
            assert!(is_order(order), "{order}");
        }
        for copy in [
            "We design furniture.",
            "A ceramics studio in Porto.",
            "You should bring an apron.",
            "Create invoices in seconds.",
            "Open Tuesday to Sunday, 7 to 19.",
            "Our courses run in small groups.",
            "On-site parking.",
        ] {
            assert!(!is_order(copy), "{copy}");
        }
        assert_eq!(
            told_before("We are a bakery in Lyon and need a website.").as_deref(),
            Some("We are a bakery in Lyon.")
        );
    }

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
                "chess web application",
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

    #[test]
    fn topics_and_deeds_are_listed_once() {
        let orders = read(
            &[
                "The website should have functionalities for data visualization, match prediction, and betting recommendations.".into(),
                "Users should be able to browse data for basketball, view match history, team rankings, and player performance.".into(),
                "A page that lists our rooms.".into(),
            ],
            "",
        );
        assert_eq!(orders.topics, ["Data visualization", "Match prediction", "Betting recommendations", "Rooms"]);
        assert_eq!(
            orders.deeds,
            ["Browse data for basketball", "View match history", "Team rankings", "Player performance"]
        );
    }
}
