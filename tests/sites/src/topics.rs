//! The topics of the sites.

use std::sync::LazyLock;

/// A thing in the invented country.
#[derive(Clone, Debug, Default)]
pub struct Topic {
    pub key: String,
    /// `civic`, `tech`, `product`, `science`, `food` or `company`: determines which sites write about it.
    pub kind: String,
    pub subject: String,
    pub headlines: Vec<String>,
    pub facts: Vec<Fact>,
    pub colour: Vec<String>,
    /// Queries for one of the facts (its index), or for the whole topic.
    pub queries: Vec<(Option<usize>, String)>,
}

#[derive(Clone, Debug)]
pub struct Fact {
    pub question: String,
    pub sentence: String,
}

static TOPICS: LazyLock<Vec<Topic>> = LazyLock::new(|| read(include_str!("topics.txt")));

pub fn topics() -> &'static [Topic] {
    &TOPICS
}

fn read(text: &str) -> Vec<Topic> {
    let mut topics: Vec<Topic> = Vec::new();
    for line in text.lines() {
        let Some((mark, rest)) = line.split_once(' ') else { continue };
        let parts: Vec<String> = rest.split(" | ").map(|part| part.trim().to_owned()).collect();
        if mark == "@" {
            let [key, kind, subject] = &parts[..] else { panic!("{line}") };
            let (key, kind, subject) = (key.clone(), kind.clone(), subject.clone());
            topics.push(Topic { key, kind, subject, ..Topic::default() });
            continue;
        }
        let Some(topic) = topics.last_mut() else { continue };
        match (mark, &parts[..]) {
            ("h", [headline]) => topic.headlines.push(headline.clone()),
            ("c", [sentence]) => topic.colour.push(sentence.clone()),
            ("f", [question, sentence]) => {
                topic.facts.push(Fact { question: question.clone(), sentence: sentence.clone() });
            }
            ("q", [fact, query]) => topic.queries.push((fact.parse().ok(), query.clone())),
            _ => panic!("{line}"),
        }
    }
    topics
}
