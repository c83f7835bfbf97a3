//! Orders to a builder: which sentences are orders, and what they say about the subject. An order itself is never copy.

mod listed;
mod subject;

use super::text;
use listed::listed;
use subject::subject;

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

/// Beginnings of what owners say of themselves.
#[rustfmt::skip]
const OWN: &[&str] = &[
    "we build ", "we design ", "we make ", "we create ", "we develop ", "we offer ", "we help ", "we run ", "we are ",
    "we're ", "i build ", "i design ", "i make ", "i create ", "i develop ", "i offer ", "i help ", "i write ",
    "i am a", "i'm a", "i’m a",
];

/// Whether a sentence speaks to whoever builds the site.
pub fn is_order(sentence: &str) -> bool {
    let lower = format!(" {} ", sentence.to_lowercase());
    let start = lower.trim_start();
    // A colour for a background is asked for, never told.
    if crate::design::wishes(sentence).background.is_some() {
        return true;
    }
    let begins = |word: &str| {
        start.strip_prefix(word).is_some_and(|rest| {
            !word.is_ascii() || !rest.starts_with(|c: char| c.is_alphanumeric()) || word.ends_with(' ')
        })
    };
    // "We build websites for dentists" is what an agency does.
    let asks = [" need", " want", " should ", " would like", " looking for", " please "]
        .iter()
        .any(|word| lower.contains(word));
    if !asks && OWN.iter().any(|word| start.starts_with(word)) {
        return false;
    }
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
            let (subject, about) = subject(order, name);
            found.subject = subject;
            found.about = found.about.take().or(about);
            // "House cleaning service", "cleaning services": said already.
            let said = text::stems(found.subject.as_deref().unwrap_or_default());
            found.about = found.about.take().filter(|about| text::stems(about).iter().any(|stem| !said.contains(stem)));
        }
        listed(order, &mut found);
    }
    found.topics.truncate(60);
    found.deeds.truncate(60);
    let about = found.about.clone().unwrap_or_default();
    let telling = |item: &str| -> Vec<String> {
        text::stems(item).into_iter().filter(|stem| !VIEWING.contains(&stem.as_str())).collect()
    };
    let mut seen: Vec<Vec<String>> = vec![telling(&about)];
    // "view match history" says no more than "match history".
    let mut fresh = |item: &String| {
        let stems = telling(item);
        let union = stems.iter().all(|stem| seen.iter().any(|other| other.contains(stem)));
        let known = union
            || seen.iter().any(|other| stems.iter().filter(|stem| other.contains(stem)).count() * 2 > stems.len());
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

/// Where a telling half ends.
#[rustfmt::skip]
const JOINTS: &[&str] = &[
    " and need", " and want", " and we need", " and we want", " and would like", " and i need", " and i want",
    ", and need", ", and we need", " looking for", " who need", " that need",
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
            "Establish cornsilk as the main background and peru for the controls.",
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
            "We build websites for dentists.",
            "I'm a frontend developer in Oslo.",
        ] {
            assert!(!is_order(copy), "{copy}");
        }
        assert_eq!(
            told_before("We are a bakery in Lyon and need a website.").as_deref(),
            Some("We are a bakery in Lyon.")
        );
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
