//! Goods that are not bought for agents, whatever the shop: words in a product's title and address. A list cannot know all of them;
//! the provider has its own.

use url::form_urlencoded;

/// Each group: what it is called in the refusal, and its words. A word ends where letters end; two words stand side by side.
const GROUPS: [(&str, &[&str]); 8] = [
    (
        "weapons",
        &[
            "handgun",
            "hand gun",
            "pistol",
            "revolver",
            "rifle",
            "shotgun",
            "ammunition",
            "ammo",
            "silencer",
            "suppressor kit",
            "switchblade",
            "brass knuckles",
            "taser",
            "stun gun",
            "grenade",
            "explosive",
            "explosives",
            "firearm",
            "firearms",
        ],
    ),
    (
        "alcohol",
        &[
            "vodka",
            "whiskey",
            "whisky",
            "bourbon",
            "tequila",
            "liquor",
            "red wine",
            "white wine",
            "craft beer",
            "merlot",
            "cabernet sauvignon",
            "chardonnay",
            "pinot noir",
        ],
    ),
    (
        "tobacco and nicotine",
        &["cigarette", "cigarettes", "cigar", "cigars", "vape", "vapes", "e cigarette", "nicotine", "tobacco"],
    ),
    (
        "drugs",
        &[
            "cannabis",
            "marijuana",
            "thc",
            "kratom",
            "psilocybin",
            "magic mushrooms",
            "cocaine",
            "heroin",
            "fentanyl",
            "mdma",
            "lsd",
        ],
    ),
    (
        "prescription medicines",
        &["oxycodone", "xanax", "adderall", "viagra", "semaglutide", "ozempic", "prescription only", "rx only"],
    ),
    ("money and its likes", &["gift card", "giftcard", "egift", "prepaid card", "money order", "bullion"]),
    ("live animals", &["live puppy", "live kitten", "live reptile", "live animal", "live animals"]),
    ("counterfeits and documents", &["replica watch", "fake id", "counterfeit", "passport book", "ssn card"]),
];

/// The group of goods that a text names, if it is one that is not bought.
pub fn group(text: &str) -> Option<&'static str> {
    // Addresses may hide words behind percent signs.
    let decoded: Vec<String> =
        form_urlencoded::parse(text.as_bytes()).map(|(name, value)| format!("{name} {value}")).collect();
    let plain: String = decoded.join(" ").chars().map(narrow).collect();
    let words: Vec<String> =
        plain.to_lowercase().split(|letter: char| !letter.is_alphanumeric()).map(str::to_owned).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !word.is_empty()).collect();
    let has = |term: &str| {
        let term: Vec<&str> = term.split(' ').collect();
        let is_word = |(word, wanted): (&&str, &&str)| word == wanted || word.strip_suffix('s') == Some(wanted);
        words.windows(term.len()).any(|window| window.iter().zip(&term).all(is_word))
    };
    GROUPS.iter().find(|(_, terms)| terms.iter().any(|term| has(term))).map(|(group, _)| *group)
}

/// Letters of full width are written like others.
fn narrow(letter: char) -> char {
    match letter {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0).unwrap_or(letter),
        letter => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goods_are_known_by_whole_words() {
        assert_eq!(group("Air RIFLE, .22"), Some("weapons"));
        assert_eq!(group("https://shop.example/products/e-cigarette-kit"), Some("tobacco and nicotine"));
        assert_eq!(group("Store Gift-Card 50 USD"), Some("money and its likes"));
        for text in ["Two 9mm pistols", "Hand gun", "ｐｉｓｔｏｌ", "https://shop.example/g%69ft-card"] {
            assert!(group(text).is_some(), "{text}");
        }
        for text in ["Riflescope strap", "Pistole as a song", "Gift box for cards", "Winery tour guide book", ""] {
            assert_eq!(group(text), None, "{text}");
        }
    }
}
