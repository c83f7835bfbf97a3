//! The words of ours that a site needs, in the brief's language. None of them claims anything about the owner.

mod germanic;
mod others;
mod romance;
mod slavic;

/// Labels, headings and neutral sentences.
#[derive(Debug)]
pub struct Words {
    /// Opens the navigation.
    pub menu: &'static str,
    pub skip_to_content: &'static str,
    pub name: &'static str,
    pub email: &'static str,
    pub message: &'static str,
    pub send: &'static str,
    /// Shown once the form was sent.
    pub sent: &'static str,
    pub not_sent: &'static str,
    pub back_home: &'static str,
    pub page_not_found: &'static str,
    pub contact: &'static str,
    pub opening_hours: &'static str,
    pub prices: &'static str,
    pub questions: &'static str,
    pub about: &'static str,
    /// Before an address, where `email` stands in the form.
    pub email_label: &'static str,
    pub phone_label: &'static str,
    pub address_label: &'static str,
    /// Beside the form: where a message goes.
    pub privacy_note: &'static str,
    pub home: &'static str,
    pub services: &'static str,
    /// Heading of a list of features or topics.
    pub features: &'static str,
    /// Heading of what a restaurant serves.
    pub dishes: &'static str,
    pub programme: &'static str,
    pub works: &'static str,
    pub steps: &'static str,
    /// Heading of facts in numbers.
    pub numbers: &'static str,
    /// Heading of words that others said.
    pub quotes: &'static str,
    pub write_us: &'static str,
    /// For a section about which nothing is known, on a site that can be written to.
    pub ask_more: &'static str,
    /// For the same on a site that cannot.
    pub to_come: &'static str,
}

/// The words of a language by its primary subtag; English where we have none.
pub fn words(language: &str) -> &'static Words {
    match primary(language).as_str() {
        "de" => &germanic::DE,
        "nl" => &germanic::NL,
        "sv" => &germanic::SV,
        "fr" => &romance::FR,
        "es" => &romance::ES,
        "it" => &romance::IT,
        "pt" => &romance::PT,
        "ru" => &slavic::RU,
        "uk" => &slavic::UK,
        "pl" => &slavic::PL,
        "el" => &others::EL,
        "ar" => &others::AR,
        "he" => &others::HE,
        "ja" => &others::JA,
        "zh" => &others::ZH,
        "ko" => &others::KO,
        "hi" => &others::HI,
        _ => &germanic::EN,
    }
}

/// The direction of a language's script, as HTML's `dir` takes it.
pub fn dir(language: &str) -> &'static str {
    match primary(language).as_str() {
        "ar" | "he" | "fa" | "ur" | "yi" => "rtl",
        _ => "ltr",
    }
}

fn primary(language: &str) -> String {
    language.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_found_by_their_primary_subtag() {
        assert_eq!(words("fr").send, "Envoyer");
        assert_eq!(words("pt-BR").send, "Enviar");
        assert_eq!(words("JA").send, "送信");
        assert_eq!(words("tlh").send, "Send");
        assert_eq!(dir("he"), "rtl");
        assert_eq!(dir("ar-EG"), "rtl");
        assert_eq!(dir("en"), "ltr");
    }
}
