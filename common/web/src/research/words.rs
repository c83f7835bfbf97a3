//! Words in a form that can be compared: lower case, without accents, endings and stop words.
//!
//! Made for matching, not for grammar: a wrong stem is harmless if both sides get the same one.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// Stop words: English, then German, French and Spanish.
const COMMON: &str = "a about above after again all also am an and any are as at be because been before being below between both \
    but by can cannot could did do does doing down during each few for from further get give had has have having he her \
    here hers him his how i if in into is it its itself just let many may me might more most much my no nor not of off on \
    once one only or other our out over own please same she should so some such tell than that the their them then there \
    these they this those through to too under until up us very was we were what when where which while who whom whose \
    why will with would you your must shall need needs use used uses using happen happens take takes took taken say says \
    aber als am an auch auf aus bei bin bis da das dass dem den der des die dort du durch ein eine einem einen einer eines \
    er es fur hat haben hier ich im in ist ja kann mit nach nicht noch nur oder sich sie sind so uber um und viel viele \
    vom von vor wann war waren was wer werden wie wird wo wurde wurden zu zum zur \
    au aux avec ce cette dans de des du elle en est et il ils la le les leur mais ne nous ou par pas pour quand que quel \
    quelle qui sa se ses son sont sur un une combien ete \
    al como con cual cuando cuantos de del donde el ella en es esta este fue la las lo los mas no o para pero por que quien \
    se sin sobre su sus un una y";

static IS_COMMON: LazyLock<HashSet<&'static str>> = LazyLock::new(|| COMMON.split_whitespace().collect());

/// Irregular forms, and words of questions with the words of their answers. Each word is replaced by the first of its line.
const SAME: &str = "\
    build built construct constructed erect erected\n\
    high height tall\n\
    cost price fee charge\n\
    found founded establish established\n\
    located situated lie lies\n\
    employee staff\n\
    population inhabitant resident\n\
    ceo director\n\
    old age aged\n\
    weigh weight\n\
    long length\n\
    wide width\n\
    deep depth\n\
    make made manufacture produce\n\
    sell sold\n\
    hold held\n\
    win won winner\n\
    begin began begun start\n\
    write wrote written author\n\
    lead led\n\
    grow grew grown growth\n\
    buy bought acquire purchase\n\
    pay paid payment\n\
    invent inventor\n\
    leave left\n\
    speak spoke spoken\n\
    teach taught\n\
    run ran\n\
    know known knew\n\
    come came\n\
    go goes went gone\n\
    see saw seen\n\
    keep kept\n\
    send sent\n\
    lose lost\n\
    choose chose chosen";

static FAMILY: LazyLock<HashMap<String, &'static str>> = LazyLock::new(|| {
    let mut family = HashMap::new();
    for line in SAME.lines() {
        let head = line.split(' ').next().unwrap_or_default();
        for member in line.split(' ') {
            family.insert(member.to_owned(), head);
            family.insert(base::words::stem(member), head);
        }
    }
    family
});

/// The stems of all words except stop words, in order, with repeats.
pub fn terms(text: &str) -> Vec<String> {
    let is_said = |word: &String| !IS_COMMON.contains(word.as_str());
    words(text).into_iter().filter(is_said).map(|word| stem(&word)).collect()
}

/// All words; see [`base::words`].
pub fn words(text: &str) -> Vec<String> {
    base::words::words(text, usize::MAX)
}

/// The stem ([`base::words::stem`]), replaced by the first word of its line in `SAME`.
pub fn stem(word: &str) -> String {
    let head = |word: &str| FAMILY.get(word).map(|head| (*head).to_owned());
    head(word).unwrap_or_else(|| {
        let cut = base::words::stem(word);
        head(&cut).unwrap_or(cut)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for (one, other) in [
            ("companies", "company"),
            ("built", "building"),
            ("opened", "opens"),
            ("opening", "open"),
            ("stopped", "stop"),
            ("lighthouses", "lighthouse"),
            ("founded", "founding"),
            ("boxes", "box"),
            ("made", "making"),
            ("tall", "height"),
            ("prices", "cost"),
            ("moved", "moving"),
        ] {
            assert_eq!(stem(one), stem(other), "{one} {other}");
        }
        for (one, other) in [("string", "str"), ("bus", "bu"), ("news", "new york"), ("class", "clas")] {
            assert_ne!(stem(one), stem(other), "{one} {other}");
        }
    }

    #[test]
    fn texts_become_terms() {
        assert_eq!(
            terms("What is the Height of Größe's tower, in 2,500 m?"),
            ["high", "gross", "tower", "2", "500", "m"]
        );
        assert_eq!(terms("灯台の高さ"), ["灯台", "台の", "の高", "高さ"]);
        assert!(terms("and the of it?").is_empty());
    }
}
