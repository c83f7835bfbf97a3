//! Splits a topic into questions without a model. A topic that is not a question is treated as a subject with several
//! sides.

use base::untrusted_text::visible;

use super::answers::{Side, Wants, wanted};
use super::words;

/// One question of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// As shown in the report.
    pub text: String,
    /// The search query.
    pub query: String,
    /// Words that an answer must be about.
    pub terms: Vec<String>,
    /// The terms that are names. An answer must have most of these, too.
    pub names: Vec<String>,
    pub wants: Wants,
    /// The terms that ask for a measure ("how heavy"). A number in its units replaces them in an answer.
    pub measured: Vec<String>,
}

/// Longest question, in characters. (A topic has at most 500; a model's text has no limit of its own.)
const MAX_CHARS: usize = 500;
/// The sides of a subject, most important first.
const SIDES: [(&str, Wants); 4] = [
    ("history", Wants::Side(Side::History)),
    ("how it works", Wants::Side(Side::Working)),
    ("cost and figures", Wants::Side(Side::Figures)),
    ("criticism and risks", Wants::Side(Side::Risks)),
];
/// Words that begin a question, in the supported languages.
const ASKING: &str = "who whose whom what when where why how which is are was were does do did can \
    wer was wann wo warum wie welche welcher welches wieviel wohin \
    qui que quand ou pourquoi comment combien quel quelle \
    quien que cuando donde como cuanto cuantos cual";

impl Question {
    pub fn new(text: &str) -> Question {
        Question::about(text, "")
    }

    /// Whether it is one of the sides of a subject.
    pub fn is_side(&self) -> bool {
        matches!(self.wants, Wants::Side(_))
    }

    /// A question whose subject was named in an earlier question.
    fn about(text: &str, subject: &str) -> Question {
        let text = as_sentence(&line(text));
        let query = if subject.is_empty() { text.clone() } else { format!("{subject} {text}") };
        let terms = once(words::terms(&query));
        let said: Vec<&str> = query.split_whitespace().collect();
        let names = said.iter().enumerate().filter(|(at, word)| {
            let inside = *at > 0 || !subject.is_empty() || !is_question(&text);
            inside && word.starts_with(|letter: char| letter.is_uppercase() || letter.is_ascii_digit())
        });
        let names = once(names.flat_map(|(_, word)| words::terms(word)).collect());
        let (wants, measured) = wanted(&text);
        Question { text, query, terms, names, wants, measured }
    }

    /// One side of a subject. `wants` decides which sentences belong to it.
    fn side(topic: &str, side: &str, wants: Wants) -> Question {
        let whole = Question::new(topic);
        let text = line(&format!("{topic}: {side}"));
        Question { query: text.clone(), text, wants, measured: Vec::new(), ..whole }
    }
}

fn once(mut terms: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    terms.retain(|term| seen.insert(term.clone()));
    terms
}

/// At most `most` questions for a topic.
pub fn plan(topic: &str, most: usize) -> Vec<Question> {
    let topic = line(topic);
    let parts = parts(&topic);
    let asks = parts.iter().any(|part| is_question(part));
    let mut questions = Vec::new();
    if asks {
        let subject = subject(&parts[0]);
        for (index, part) in parts.iter().enumerate() {
            // "It" refers to the subject of the first question.
            let own = Question::new(part);
            let leans = index > 0 && (leans_back(part) || own.terms.len() < 2 || own.names.is_empty());
            questions.push(Question::about(part, if leans { &subject } else { "" }));
        }
    } else if !words::terms(&topic).is_empty() {
        questions.push(Question::new(&topic));
        questions.extend(SIDES.iter().map(|(side, wants)| Question::side(&topic, side, *wants)));
    }
    questions.retain(|question| !question.terms.is_empty());
    questions.truncate(most.max(1));
    questions
}

/// Whether the text is a question. Other topics are subjects and get the sides above.
pub fn is_question(text: &str) -> bool {
    let first = words::words(text).into_iter().next().unwrap_or_default();
    text.trim_end().ends_with('?') || ASKING.split_whitespace().any(|word| word == first)
}

fn parts(topic: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for sentence in topic.split_inclusive(['?', ';']) {
        let sentence = sentence.trim().trim_end_matches(';').trim();
        let mut rest = sentence;
        // Splits "How high is it, and when was it built?".
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

/// The end of a question, and the start of the question joined to it.
fn next_question(text: &str) -> Option<(usize, usize)> {
    const JOINED: [&str; 9] = ["when", "how", "who", "where", "why", "what", "which", "in which", "since when"];
    // After a comma without "and", only these begin a new question. The other words mostly begin a clause.
    const LISTED: [&str; 8] = ["how", "what", "why", "when is", "when was", "when did", "where is", "where was"];
    if !is_question(text) {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let found = JOINED.iter().filter_map(|word| {
        let joined = format!(" and {word} ");
        let end = lower.find(&joined)?;
        (end > 0).then_some((end, end + " and ".len()))
    });
    let listed = LISTED.iter().filter_map(|word| {
        let end = lower.find(&format!(", {word} "))?;
        (end > 0).then_some((end, end + ", ".len()))
    });
    found.chain(listed).min()
}

fn leans_back(part: &str) -> bool {
    let back =
        ["it", "its", "they", "their", "them", "he", "his", "him", "she", "her", "this", "that", "these", "those"];
    let lower = part.to_lowercase();
    lower.split(|letter: char| !letter.is_alphanumeric()).any(|word| back.contains(&word))
}

/// The subject of a question: its names, otherwise all its significant words.
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

pub(super) fn trimmed(word: &str) -> &str {
    let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word)
}

/// The text with a capital first letter, and a question mark if it is a question.
fn as_sentence(text: &str) -> String {
    let mut letters = text.chars();
    let begun: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    let is_open = is_question(text) && begun.ends_with(|letter: char| letter.is_alphanumeric());
    if is_open { begun + "?" } else { begun }
}

/// Visible characters on one line, at most [`MAX_CHARS`].
fn line(text: &str) -> String {
    let line = visible(text).split_whitespace().collect::<Vec<_>>().join(" ");
    line.char_indices().nth(MAX_CHARS).map_or(line.clone(), |(end, _)| line[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::answers::Measure;
    use super::*;

    fn texts(topic: &str, most: usize) -> Vec<(String, String, Wants)> {
        plan(topic, most).into_iter().map(|question| (question.text, question.query, question.wants)).collect()
    }

    #[test]
    fn joined_questions_are_split_and_keep_their_subject() {
        let found = texts("How high is the Skerry lighthouse, and when was it built? Who lived there", 6);
        let own = |text: &str, query: &str, wants| (text.to_owned(), query.to_owned(), wants);
        assert_eq!(
            found,
            [
                own(
                    "How high is the Skerry lighthouse?",
                    "How high is the Skerry lighthouse?",
                    Wants::Number(&[Measure::Length])
                ),
                own("When was it built?", "Skerry When was it built?", Wants::Time),
                own("Who lived there?", "Skerry Who lived there?", Wants::Name),
            ]
        );
        assert_eq!(plan("Bread and butter: who sells it?", 6).len(), 1, "no question before the and");
        let found = texts("How heavy is the K3, what does it cost and how long is the guarantee?", 6);
        let queries: Vec<&str> = found.iter().map(|(_, query, _)| query.as_str()).collect();
        assert_eq!(queries, ["How heavy is the K3?", "K3 What does it cost?", "K3 How long is the guarantee?"]);
    }

    #[test]
    fn a_subject_gets_several_sides() {
        let found = texts("Solid state batteries", 6);
        assert_eq!(found.len(), 5);
        assert_eq!(found[0].0, "Solid state batteries");
        assert_eq!(texts("Solid state batteries", 1).len(), 1);
        assert!(plan("??? ", 3).is_empty(), "nothing is asked");
        assert!(plan("and the of", 3).is_empty());
    }
}
