//! What a section is about, by its name in several languages, and which sections a kind of site has.

use super::text;
use crate::brief::Kind;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Topic {
    Hero,
    About,
    /// Services, features, works: the brief's lists.
    Offer,
    Steps,
    Prices,
    Dishes,
    Questions,
    Quotes,
    Numbers,
    Hours,
    Programme,
    Contact,
    /// "Book now": one thing to do.
    Action,
    /// Parts of every page that the design draws.
    Frame,
    #[default]
    Other,
}

/// Beginnings of words in names of sections. Longer phrases first where one holds another.
#[rustfmt::skip]
const NAMES: &[(Topic, &[&str])] = &[
    (Topic::Hero, &["hero", "banner", "intro section", "headline"]),
    (Topic::Frame, &["footer", "header", "navigation", "navbar", "nav bar"]),
    (Topic::Action, &["call to action", "call-to-action", "cta", "get started", "book now", "sign up", "newsletter", "download"]),
    (Topic::Questions, &["faq", "question", "frag", "häufig", "pregunt", "domand", "pergunt", "veelgest", "pytan", "frågor", "вопрос", "שאלות", "أسئل", "الأسئل", "質問", "常见问题"]),
    (Topic::Quotes, &["testimonial", "review", "quote", "what others", "what people", "what our c", "avis", "témoign", "kundenstimm", "bewertung", "stimmen", "opinion", "testimoni", "recension", "depoiment", "ervaring", "отзыв", "お客様の声", "评价"]),
    (Topic::Hours, &["opening", "hours", "horaire", "ouvert", "öffnung", "horario", "horári", "orari", "openings", "godziny", "öppet", "часы", "время работы", "שעות", "ساعات", "営業", "营业"]),
    (Topic::Programme, &["event", "veranstaltung", "événement", "evento", "schedule", "programme", "program", "agenda", "timetable", "lineup", "line-up", "calendar", "dates", "termine", "fechas", "calendario", "programa", "расписание", "программ", "תוכני", "برنامج", "日程", "スケジュール", "プログラム"]),
    (Topic::Prices, &["pric", "plans", "rates", "tarif", "prix", "preis", "precio", "prezz", "preço", "prijz", "prijs", "cennik", "ceny", "priser", "fees", "packages", "tickets", "цен", "прайс", "מחיר", "أسعار", "الأسعار", "料金", "价格"]),
    (Topic::Dishes, &["menu", "menü", "menú", "menù", "la carte", "carte", "speisekarte", "dishes", "food", "drinks", "carta", "ementa", "cardápio", "menukaart", "меню", "תפריט", "قائمة الطعام", "メニュー", "お品書き", "菜单"]),
    (Topic::Steps, &["how it works", "process", "steps", "comment ça", "ablauf", "so funktion", "cómo func", "come funz", "como func", "hoe het", "как это", "流れ", "流程"]),
    (Topic::Numbers, &["numbers", "stats", "statistic", "facts", "figures", "chiffres", "zahlen", "cifras", "números", "numeri", "cijfers"]),
    (Topic::Contact, &["contact", "kontakt", "contatt", "contato", "get in touch", "reach us", "find us", "visit", "location", "where to find", "write to us", "контакт", "связ", "צור קשר", "יצירת קשר", "اتصل", "تواصل", "お問い合わせ", "連絡", "アクセス", "联系"]),
    (Topic::About, &["about", "our story", "who we are", "history", "mission", "biograph", "bio", "à propos", "a propos", "qui sommes", "histoire", "über", "ueber", "wer wir", "geschichte", "sobre", "quiénes", "acerca", "chi siamo", "storia", "over ons", "o nas", "om oss", "о нас", "אודות", "من نحن", "について", "ご案内", "关于"]),
    (Topic::Offer, &["service", "feature", "work", "portfolio", "project", "product", "what we", "offer", "gallery", "collection", "benefit", "course", "class", "leistung", "angebot", "arbeiten", "projekt", "funktion", "prestation", "travaux", "réalisation", "produit", "servicio", "trabajo", "proyecto", "producto", "serviz", "lavori", "progetti", "prodott", "serviço", "trabalho", "produto", "diensten", "werk", "usług", "tjänster", "услуг", "работ", "שירות", "עבודות", "خدمات", "أعمال", "サービス", "作品", "服务"]),
];

/// The topic of a section's name.
pub fn of(name: &str) -> Topic {
    let lower = name.to_lowercase();
    let begins = |mark: &str| {
        lower
            .match_indices(mark)
            .any(|(at, _)| mark >= "\u{2e80}" || lower[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric()))
    };
    // As beginnings, these would match "formation" and "maple".
    if matches!(
        lower.trim(),
        "form"
            | "map"
            | "address"
            | "adresse"
            | "dirección"
            | "indirizzo"
            | "phone"
            | "e-mail"
            | "email"
            | "formular"
            | "formulaire"
    ) {
        return Topic::Contact;
    }
    NAMES.iter().find(|(_, marks)| marks.iter().any(|mark| begins(mark))).map_or(Topic::Other, |(topic, _)| *topic)
}

/// The sections of a site whose brief names none. A section about which nothing is known is left out.
pub fn of_kind(kind: Kind) -> &'static [Topic] {
    use Topic::*;
    match kind {
        Kind::Saas | Kind::Product => {
            &[Offer, About, Steps, Numbers, Programme, Prices, Dishes, Quotes, Questions, Hours]
        }
        Kind::Portfolio => &[Offer, About, Quotes, Numbers, Programme, Steps, Prices, Dishes, Questions, Hours],
        Kind::Agency => &[Offer, Steps, About, Numbers, Programme, Quotes, Prices, Dishes, Questions, Hours],
        Kind::Personal => &[About, Offer, Programme, Quotes, Numbers, Steps, Prices, Dishes, Questions, Hours],
        Kind::Funnel => &[About, Offer, Steps, Numbers, Quotes, Programme, Prices, Dishes, Questions, Hours],
        Kind::Restaurant => &[About, Dishes, Offer, Prices, Programme, Quotes, Numbers, Steps, Questions, Hours],
        Kind::Event => &[About, Programme, Offer, Steps, Numbers, Prices, Dishes, Quotes, Questions, Hours],
    }
}

/// How well a text suits a section's name: the share of the name's stems that it has.
pub fn suits(name: &[String], text: &[String]) -> bool {
    !name.is_empty() && name.iter().any(|stem| text.contains(stem))
}

/// The name of a section as a heading: "our_team" and "OUR-TEAM" become "Our team".
pub fn heading(name: &str) -> String {
    let spaced = if name.contains(' ') { name.to_owned() } else { name.replace(['_', '-'], " ") };
    let folded = text::fold(&spaced);
    let shouted = folded.chars().filter(|c| c.is_alphabetic()).count() > 4 && !folded.chars().any(char::is_lowercase);
    let words: Vec<&str> = folded.split(' ').collect();
    // "How It Works": title case that no name explains.
    let titled = words.len() > 1
        && of(&folded) != Topic::Other
        && words.iter().all(|word| {
            word.chars().next().is_none_or(|c| !c.is_lowercase()) && word.chars().skip(1).all(|c| !c.is_uppercase())
        });
    let german = ["über uns", "ihre", "unsere"].iter().any(|word| folded.to_lowercase().starts_with(word));
    let acronym = matches!(folded.to_lowercase().as_str(), "faq" | "cta");
    let cased = if acronym {
        folded.to_uppercase()
    } else if (shouted || titled) && !german {
        folded.to_lowercase()
    } else {
        folded
    };
    text::cut(&text::capital(&cased), 70)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_topics() {
        for (name, topic) in [
            ("How It Works", Topic::Steps),
            ("Pricing", Topic::Prices),
            ("Öffnungszeiten", Topic::Hours),
            ("FAQ", Topic::Questions),
            ("Notre histoire", Topic::About),
            ("Our team", Topic::Other),
            ("hero", Topic::Hero),
            ("Selected works", Topic::Offer),
            ("営業時間", Topic::Hours),
        ] {
            assert_eq!(of(name), topic, "{name}");
        }
        assert_eq!(heading("how_it_works"), "How it works");
        assert_eq!(heading("How It Works"), "How it works");
        assert_eq!(heading("faq"), "FAQ");
    }
}
