//! The language of a text, by its script and, among Latin ones, by common small words.

const LATIN: &[(&str, &[&str])] = &[
    (
        "en",
        &[
            "the", "and", "of", "for", "with", "our", "we", "is", "are", "that", "to", "in", "from", "should", "a",
            "an", "by", "at",
        ],
    ),
    (
        "fr",
        &[
            "le", "la", "les", "et", "des", "du", "une", "un", "pour", "avec", "nous", "est", "sont", "notre", "nos",
            "au", "dans", "sur",
        ],
    ),
    (
        "de",
        &[
            "der", "die", "das", "und", "mit", "für", "wir", "ist", "sind", "ein", "eine", "von", "zu", "unser",
            "unsere", "im", "auf", "bis",
        ],
    ),
    (
        "es",
        &[
            "el", "la", "los", "las", "y", "de", "con", "para", "una", "un", "nuestro", "nuestra", "es", "somos",
            "del", "que", "por", "en",
        ],
    ),
    (
        "it",
        &[
            "il", "la", "gli", "le", "e", "di", "con", "per", "una", "un", "nostro", "nostra", "siamo", "del", "della",
            "che", "dal", "alle",
        ],
    ),
    (
        "pt",
        &[
            "o", "os", "as", "e", "de", "com", "para", "uma", "um", "nosso", "nossa", "somos", "do", "da", "que", "em",
            "das", "não",
        ],
    ),
    (
        "nl",
        &[
            "de", "het", "een", "en", "van", "met", "voor", "wij", "we", "is", "zijn", "onze", "ons", "in", "op",
            "tot", "bij", "naar",
        ],
    ),
    (
        "pl",
        &[
            "i",
            "w",
            "z",
            "dla",
            "na",
            "do",
            "jest",
            "oraz",
            "od",
            "nasz",
            "nasza",
            "się",
            "jesteśmy",
            "po",
            "przy",
            "są",
        ],
    ),
    (
        "sv",
        &["och", "en", "ett", "av", "med", "för", "vi", "är", "vår", "våra", "i", "på", "till", "från", "som", "att"],
    ),
];

/// BCP 47, English if nothing tells.
pub fn detect(text: &str) -> &'static str {
    let mut scripts = [0usize; 8];
    let (mut ukrainian, mut latin) = (0, 0);
    for c in text.chars().take(5_000) {
        match c {
            '\u{600}'..='\u{6ff}' => scripts[0] += 1,
            '\u{590}'..='\u{5ff}' => scripts[1] += 1,
            '\u{400}'..='\u{4ff}' => scripts[2] += 1,
            '\u{370}'..='\u{3ff}' => scripts[3] += 1,
            '\u{3040}'..='\u{30ff}' => scripts[4] += 1,
            '\u{4e00}'..='\u{9fff}' => scripts[5] += 1,
            '\u{ac00}'..='\u{d7af}' => scripts[6] += 1,
            '\u{900}'..='\u{97f}' => scripts[7] += 1,
            c if c.is_alphabetic() => latin += 1,
            _ => {}
        }
        ukrainian += usize::from(matches!(c, 'і' | 'ї' | 'є' | 'ґ' | 'І' | 'Ї' | 'Є'));
    }
    // A character of these scripts says more than a Latin letter.
    let foreign = scripts.iter().sum::<usize>();
    if foreign * 2 > latin {
        // Japanese mixes kana with as many ideographs.
        let [arabic, hebrew, cyrillic, greek, kana, han, hangul, devanagari] = scripts;
        let japanese = if kana * 8 > han { kana + han } else { 0 };
        let counts = [
            (arabic, "ar"),
            (hebrew, "he"),
            (cyrillic, if ukrainian > 0 { "uk" } else { "ru" }),
            (greek, "el"),
            (japanese, "ja"),
            (han, "zh"),
            (hangul, "ko"),
            (devanagari, "hi"),
        ];
        // The first of equals: Japanese before Chinese.
        let best = counts.iter().rev().max_by_key(|(count, _)| *count);
        return best.filter(|(count, _)| *count > 0).map_or("en", |(_, language)| language);
    }
    let lower = text.to_lowercase();
    let mut counts = vec![0usize; LATIN.len()];
    for word in lower.split(|c: char| !c.is_alphabetic()).take(1_000) {
        for (count, (_, small)) in counts.iter_mut().zip(LATIN) {
            *count += usize::from(small.contains(&word));
        }
    }
    let best = counts.iter().enumerate().rev().max_by_key(|(_, count)| **count).map_or(0, |(at, _)| at);
    // One small word is no evidence against English.
    if counts[best] < 2 { "en" } else { LATIN[best].0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_apart() {
        for (text, language) in [
            ("We bake bread for the town.", "en"),
            ("Bakery", "en"),
            ("Une boulangerie de quartier à Lyon, ouverte du mardi au dimanche.", "fr"),
            ("Wir sind eine kleine Werkstatt in Graz und reparieren Fahrräder.", "de"),
            ("Somos una panadería de barrio en Sevilla con pan para todos.", "es"),
            ("Siamo una piccola trattoria di Bologna con la pasta della casa.", "it"),
            ("Somos uma padaria do bairro, com pão para toda a família.", "pt"),
            ("Wij zijn een kleine bakkerij van het dorp.", "nl"),
            ("Jesteśmy małą piekarnią w Krakowie i pieczemy dla wszystkich.", "pl"),
            ("Vi är ett litet bageri och bakar för alla.", "sv"),
            ("Мы печём хлеб", "ru"),
            ("Ми печемо хліб і тістечка", "uk"),
            ("مخبز صغير في القاهرة", "ar"),
            ("מאפייה קטנה בחיפה", "he"),
            ("京都の小さな陶芸工房です。", "ja"),
            ("北京的一家小面包店", "zh"),
            ("서울의 작은 빵집", "ko"),
            ("Αρτοποιείο στην Αθήνα", "el"),
            ("", "en"),
        ] {
            assert_eq!(detect(text), language, "{text}");
        }
    }
}
