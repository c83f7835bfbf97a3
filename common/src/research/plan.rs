//! A topic as the questions it is made of, without a model: what was asked is taken apart, and a bare subject is looked at
//! from several sides.

use super::words;
use crate::material::visible;

/// What kind of answer a question wants, as far as its words say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    Anything,
    Number,
    Time,
    Name,
}

/// One of the questions a topic is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// As the report shows it.
    pub text: String,
    /// What is searched for.
    pub query: String,
    /// What an answer has to be about.
    pub terms: Vec<String>,
    pub wants: Wants,
}

/// Longest question, in characters: a topic has at most 500, and a model may write anything.
const MAX_CHARS: usize = 500;
/// From these sides a bare subject is looked at, the first ones first.
const SIDES: [&str; 5] = ["overview", "history", "how it works", "cost and figures", "criticism and risks"];
/// Words that begin a question, in the languages that pages are matched in.
const ASKING: &str = "who whose whom what when where why how which is are was were does do did can \
    wer was wann wo warum wie welche welcher welches wieviel wohin \
    qui que quand ou pourquoi comment combien quel quelle \
    quien que cuando donde como cuanto cuantos cual";

impl Question {
    pub fn new(text: &str) -> Question {
        Question::about(text, "")
    }

    /// A question whose subject was named before it.
    fn about(text: &str, subject: &str) -> Question {
        let text = line(text);
        let query = if subject.is_empty() { text.clone() } else { format!("{subject} {text}") };
        let mut terms = words::terms(&query);
        let mut seen = std::collections::HashSet::new();
        terms.retain(|term| seen.insert(term.clone()));
        Question { wants: wants(&text), text, query, terms }
    }
}

/// The questions of a topic, `most` of them.
pub fn plan(topic: &str, most: usize) -> Vec<Question> {
    let topic = line(topic);
    let parts = parts(&topic);
    let asks = parts.iter().any(|part| is_question(part));
    let mut questions = Vec::new();
    if asks {
        let subject = subject(&parts[0]);
        for (index, part) in parts.iter().enumerate() {
            // What "it" is was said before.
            let leans = index > 0 && (leans_back(part) || words::terms(part).len() < 2);
            questions.push(Question::about(part, if leans { &subject } else { "" }));
        }
    } else if !words::terms(&topic).is_empty() {
        questions.push(Question::new(&topic));
        let sides = SIDES.iter().map(|side| Question::about(&format!("{topic}: {side}"), ""));
        questions.extend(sides);
    }
    questions.retain(|question| !question.terms.is_empty());
    questions.truncate(most.max(1));
    questions
}

/// Whether a topic that is no question gets sides of our own: what is not found of those was not asked for.
pub fn is_question(text: &str) -> bool {
    let first = words::words(text).into_iter().next().unwrap_or_default();
    text.trim_end().ends_with('?') || ASKING.split_whitespace().any(|word| word == first)
}

fn parts(topic: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for sentence in topic.split_inclusive(['?', ';']) {
        let sentence = sentence.trim().trim_end_matches(';').trim();
        let mut rest = sentence;
        // "How high is it, and when was it built?"
        while let Some((end, begin)) = next_question(rest) {
            parts.push(rest[..end].trim_end_matches([',', ' ']).to_owned());
            rest = &rest[begin..];
        }
        parts.push(rest.to_owned());
    }
    parts.retain(|part| !part.trim_matches(|letter: char| !letter.is_alphanumeric()).is_empty());
    if parts.is_empty() {
        parts.push(topic.to_owned());
    }
    parts
}

/// Where a question ends, and where the one joined to it begins.
fn next_question(text: &str) -> Option<(usize, usize)> {
    const JOINED: [&str; 9] = ["when", "how", "who", "where", "why", "what", "which", "in which", "since when"];
    if !is_question(text) {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let found = JOINED.iter().filter_map(|word| {
        let joined = format!(" and {word} ");
        let end = lower.find(&joined)?;
        (end > 0).then_some((end, end + " and ".len()))
    });
    found.min()
}

fn leans_back(part: &str) -> bool {
    let back =
        ["it", "its", "they", "their", "them", "he", "his", "him", "she", "her", "this", "that", "these", "those"];
    let lower = part.to_lowercase();
    lower.split(|letter: char| !letter.is_alphanumeric()).any(|word| back.contains(&word))
}

/// What a question is about: its names, or else whatever it says.
fn subject(question: &str) -> String {
    let said: Vec<&str> = question.split_whitespace().collect();
    let names: Vec<&str> =
        said.iter().skip(1).filter(|word| word.starts_with(char::is_uppercase)).map(|word| trimmed(word)).collect();
    if !names.is_empty() {
        return names.join(" ");
    }
    let is_said = |word: &&&str| !words::terms(word).is_empty();
    said.iter().filter(is_said).map(|word| trimmed(word)).collect::<Vec<_>>().join(" ")
}

fn trimmed(word: &str) -> &str {
    let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word)
}

fn wants(question: &str) -> Wants {
    let words = words::words(question);
    let first = words.first().map_or("", String::as_str);
    let has = |word: &str| words.iter().any(|known| known == word);
    let follows =
        |word: &str, next: &[&str]| words.windows(2).any(|pair| pair[0] == word && next.contains(&pair[1].as_str()));
    const MEASURES: [&str; 14] = [
        "many", "much", "tall", "high", "long", "old", "far", "big", "large", "deep", "heavy", "fast", "wide", "often",
    ];
    let counted = follows("how", &MEASURES)
        || follows("wie", &["viele", "viel", "hoch", "lang", "alt", "gross", "tief", "schwer", "schnell"])
        || ["combien", "cuanto", "cuantos", "cuantas", "wieviel"].contains(&first);
    let number = ["percentage", "number", "population", "price", "height", "length", "weight", "depth"];
    if counted || (follows("what", &["is", "was"]) && number.iter().any(|word| has(word))) {
        Wants::Number
    } else if ["when", "wann", "quand", "cuando"].contains(&first)
        || follows("what", &["year", "date", "day", "time"])
        || follows("which", &["year", "date", "day"])
        || follows("since", &["when"])
    {
        Wants::Time
    } else if ["who", "wer", "qui", "quien"].contains(&first) {
        Wants::Name
    } else {
        Wants::Anything
    }
}

impl Wants {
    /// Whether a text has what is wanted, beyond what the question says itself.
    pub fn met_by(self, text: &str, question: &Question) -> bool {
        match self {
            Wants::Anything => true,
            Wants::Number => has_new_number(text, question) || says_a_number(text),
            Wants::Time => has_new_number(text, question) || says_a_time(text),
            Wants::Name => has_new_name(text, question),
        }
    }
}

fn has_new_number(text: &str, question: &Question) -> bool {
    let is_number = |word: &String| word.starts_with(|letter: char| letter.is_ascii_digit());
    words::words(text).iter().any(|word| is_number(word) && !question.terms.contains(word))
}

fn says_a_number(text: &str) -> bool {
    const NUMBERS: &str = "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty \
        seventy eighty ninety hundred thousand million billion dozen half zwei drei vier funf sechs sieben acht neun zehn elf \
        zwolf hundert tausend deux trois quatre cinq dix cent mille dos tres cuatro cinco diez cien mil";
    words::words(text).iter().any(|word| NUMBERS.split_whitespace().any(|number| number == word))
}

fn says_a_time(text: &str) -> bool {
    const TIMES: &str = "january february march april may june july august september october november december monday tuesday \
        wednesday thursday friday saturday sunday spring summer autumn winter daily weekly noon midnight januar februar marz \
        mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag";
    words::words(text).iter().any(|word| TIMES.split_whitespace().any(|time| time == word))
}

/// A word with a capital that the question does not have; one at the start of a sentence counts only with a second.
fn has_new_name(text: &str, question: &Question) -> bool {
    let said: Vec<&str> = text.split_whitespace().collect();
    let is_name = |word: &&str| {
        let word = trimmed(word);
        let new = words::terms(word).iter().any(|term| !question.terms.contains(term));
        word.starts_with(char::is_uppercase) && new
    };
    let later = said.iter().skip(1).any(is_name);
    later || said.first().is_some_and(is_name) && said.len() == 1
}

/// One visible line of bounded length.
fn line(text: &str) -> String {
    let line = visible(text).split_whitespace().collect::<Vec<_>>().join(" ");
    line.char_indices().nth(MAX_CHARS).map_or(line.clone(), |(end, _)| line[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(topic: &str, most: usize) -> Vec<(String, String, Wants)> {
        plan(topic, most).into_iter().map(|question| (question.text, question.query, question.wants)).collect()
    }

    #[test]
    fn questions_are_taken_apart_and_know_what_they_are_about() {
        let found = texts("How high is the Skerry lighthouse, and when was it built? Who lived there", 6);
        let own = |text: &str, query: &str, wants| (text.to_owned(), query.to_owned(), wants);
        assert_eq!(
            found,
            [
                own("How high is the Skerry lighthouse", "How high is the Skerry lighthouse", Wants::Number),
                own("when was it built?", "Skerry when was it built?", Wants::Time),
                own("Who lived there", "Skerry Who lived there", Wants::Name),
            ]
        );
        assert_eq!(plan("Bread and butter: who sells it?", 6).len(), 1, "no question before the and");
    }

    #[test]
    fn subjects_are_looked_at_from_several_sides() {
        let found = texts("Solid state batteries", 6);
        assert_eq!(found.len(), 6);
        assert_eq!(found[0].0, "Solid state batteries");
        assert_eq!(texts("Solid state batteries", 1).len(), 1);
        assert!(plan("??? ", 3).is_empty(), "nothing is asked");
        assert!(plan("and the of", 3).is_empty());
    }

    #[test]
    fn an_answer_is_of_the_kind_that_is_wanted() {
        let met = |question: &str, text: &str| {
            let question = Question::new(question);
            question.wants.met_by(text, &question)
        };
        assert!(met("When was the tower built?", "It was finished in 1862."));
        assert!(!met("When was the tower built?", "It was finished late."));
        assert!(!met("How many boats sailed in 1862?", "In 1862 boats sailed."));
        assert!(met("How many boats sailed in 1862?", "In 1862 twelve boats sailed."));
        assert!(met("Who built the tower?", "The tower was built by Ada Stone."));
        assert!(!met("Who built the Skerry tower?", "The Skerry tower was built by hand."));
    }
}
