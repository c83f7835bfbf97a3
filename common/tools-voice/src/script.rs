//! What the assistant of an outbound call inside the deployment says, and what came of it. By rules, from the points of its
//! objective ([`crate::plan::points`]) and the words that were said, so that a finished call can be judged again from its
//! record.
//!
//! The first words of every call say that a machine calls and that the call is written down. Nothing switches that off. What
//! the other side says decides only whether a point was answered.

use base::untrusted_text::visible;
use base::words::{is_stop_word, stem, words};
use serde::{Deserialize, Serialize};

use crate::call::Mode;
use crate::dialogue::{MAX_SAID, Speaker, Turn, cleaned};

/// Most characters of a caller's name.
pub const MAX_NAME: usize = 100;
/// Most words of a text that are looked at.
const MAX_WORDS: usize = 500;
/// Most characters of the last words in a summary.
const MAX_LAST: usize = 200;
const MESSAGE: &str = "Please take a message.";
const THANKS: &str = "Thank you. Goodbye.";
/// How points begin that tell the assistant what to do, and what it says instead. Folded to lower case.
const SAID_AS: [(&str, &str); 6] = [
    ("ask them ", "I would like to ask "),
    ("ask ", "I would like to ask "),
    ("find out ", "I would like to know "),
    ("tell them ", "I am to tell you "),
    ("tell ", "I am to tell "),
    ("say ", "I am to say "),
];
/// Stems of words with which anybody asks, thanks or takes a message. They answer nothing.
const COMMON: [&str; 22] = [
    "ask", "call", "els", "find", "goodby", "hello", "how", "know", "like", "messag", "note", "number", "out", "pleas",
    "reach", "say", "somebodi", "take", "tell", "thank", "want", "would",
];

/// What is said in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Brief {
    /// For whom the assistant calls.
    caller: Option<String>,
    /// Where it can be called back.
    from: String,
    points: Vec<String>,
}

/// What came of the points.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Each point, and whether it was answered.
    pub points: Vec<(String, bool)>,
    /// The other side heard a message.
    pub message_left: bool,
}

impl Found {
    /// Whether there was something to answer, and all of it was.
    pub fn is_all(&self) -> bool {
        !self.points.is_empty() && self.answered() == self.points.len()
    }

    pub fn answered(&self) -> usize {
        self.points.iter().filter(|(_, answered)| *answered).count()
    }

    /// Together with what came of another call.
    pub fn and(mut self, other: Found) -> Found {
        for ((_, answered), (_, too)) in self.points.iter_mut().zip(other.points) {
            *answered |= too;
        }
        self.message_left |= other.message_left;
        self
    }
}

impl Brief {
    /// `caller` and `points` are texts of the agent that calls; `from` is its number.
    pub fn new(caller: &str, from: &str, points: Vec<String>) -> Brief {
        Brief { caller: cleaned(caller, MAX_NAME), from: from.to_owned(), points }
    }

    /// The next line of the caller after these turns, at most [`MAX_SAID`] characters. `None`: everything is said. No call has
    /// more lines than its points and two.
    pub fn next_line(&self, mode: Mode, turns: &[Turn]) -> Option<String> {
        let is_said = |line: &str| of_caller(turns).any(|turn| turn.text.contains(line));
        if is_said(THANKS) {
            return None;
        }
        let is_first = of_caller(turns).next().is_none();
        let line = match mode {
            Mode::InHours => match self.unanswered(turns) {
                Some(point) if !is_said(MESSAGE) => Some(self.message(&line_of(point))),
                _ => self.points.iter().map(|point| line_of(point)).find(|line| !is_said(line)),
            },
            // A machine that takes a message, or nobody.
            Mode::TakeMessage | Mode::Transfer | Mode::Decline if is_first => {
                let lines: Vec<String> = self.points.iter().map(|point| line_of(point)).collect();
                Some(self.message(&lines.join(" ")))
            }
            Mode::TakeMessage | Mode::Transfer | Mode::Decline => None,
        };
        let line = line.unwrap_or_else(|| THANKS.to_owned());
        let line = match is_first {
            true => format!("{} {line}", disclosure(self.caller.as_deref(), "written down")),
            false => line,
        };
        cleaned(&line, MAX_SAID)
    }

    /// What came of a call with these turns.
    pub fn found(&self, turns: &[Turn]) -> Found {
        let points = self.points.iter().map(|point| (point.clone(), is_answered(point, turns)));
        let message_left = replies(MESSAGE, turns).next().is_some();
        Found { points: points.collect(), message_left }
    }

    fn message(&self, what: &str) -> String {
        format!("{MESSAGE} {what} The number to call back is {}.", self.from)
    }

    /// The point that the caller made last, if it was not answered.
    fn unanswered(&self, turns: &[Turn]) -> Option<&String> {
        let last = of_caller(turns).next_back()?;
        self.points.iter().find(|point| last.text.contains(&line_of(point)) && !is_answered(point, turns))
    }
}

/// The first words of every call: that a machine calls, for whom, and that the call is kept (recorded, or written down). Nothing
/// switches them off. `caller` is cleaned.
pub(crate) fn disclosure(caller: Option<&str>, kept: &str) -> String {
    match caller {
        Some(caller) => format!("Hello, this is an AI assistant calling for {caller}. This call is {kept}."),
        None => format!("Hello, this is an AI assistant. This call is {kept}."),
    }
}

fn of_caller(turns: &[Turn]) -> impl DoubleEndedIterator<Item = &Turn> {
    turns.iter().filter(|turn| turn.speaker == Speaker::Caller)
}

/// A point as it is said.
fn line_of(point: &str) -> String {
    let said_as = SAID_AS.iter().find_map(|(begins, instead)| {
        let head = point.get(..begins.len())?;
        head.eq_ignore_ascii_case(begins).then(|| format!("{instead}{}", &point[begins.len()..]))
    });
    let line = said_as.unwrap_or_else(|| format!("It is about this: {point}"));
    if line.ends_with(['.', '!', '?', '…']) { line } else { format!("{line}.") }
}

/// What the other side said next after each line of the caller with these words.
fn replies<'a>(line: &'a str, turns: &'a [Turn]) -> impl Iterator<Item = &'a str> {
    turns.windows(2).filter_map(move |pair| {
        let [said, reply] = pair else { return None };
        let is_reply = said.speaker == Speaker::Caller && reply.speaker == Speaker::Assistant;
        (is_reply && said.text.contains(line)).then_some(reply.text.as_str())
    })
}

/// Whether a reply to a point has a word of it that means something.
fn is_answered(point: &str, turns: &[Turn]) -> bool {
    let asked = stems(point);
    replies(&line_of(point), turns).any(|reply| stems(reply).iter().any(|word| asked.contains(word)))
}

fn stems(text: &str) -> Vec<String> {
    let mut stems: Vec<String> = words(&visible(text), MAX_WORDS)
        .iter()
        .filter(|word| word.chars().count() > 2 && !is_stop_word(word))
        .map(|word| stem(word))
        .collect();
    stems.retain(|stem| !COMMON.contains(&stem.as_str()));
    stems
}

/// What is told of calls that reached somebody: how much was answered, and the last words of the other side.
pub fn summary(found: &Found, turns: &[Turn]) -> String {
    let (answered, all) = (found.answered(), found.points.len());
    let mut summary = format!("Somebody answered; {answered} of {all} points were answered.");
    if found.message_left {
        summary.push_str(" A message was left.");
    }
    let last = turns.iter().rev().find(|turn| turn.speaker == Speaker::Assistant);
    if let Some(last) = last.and_then(|turn| cleaned(&turn.text, MAX_LAST)) {
        summary.push_str(&format!(" The last words were: \"{last}\""));
    }
    summary
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{dialogue, plan};

    const FROM: &str = "+12025550100";

    fn brief(objective: &str) -> Brief {
        Brief::new("Ann \u{202e}of Rossi", FROM, plan::points(objective))
    }

    fn turn(speaker: Speaker, text: &str) -> Turn {
        Turn { speaker, text: text.to_owned() }
    }

    /// A call with the assistant that works by rules.
    fn talk(brief: &Brief, mode: Mode) -> Vec<Turn> {
        let prompt = "You answer for Rossi, a bakery. We are open from 7 to 18 h. Bread costs 4 dollars.";
        let body = json!({"prompt": prompt});
        let policy = platform::net::FetchPolicy::default();
        let config = crate::config::read(body.as_object().unwrap(), &policy).unwrap();
        let mut turns = vec![turn(Speaker::Assistant, &dialogue::greeting(&config, mode))];
        while let Some(line) = brief.next_line(mode, &turns) {
            turns.push(turn(Speaker::Caller, &line));
            let reply = dialogue::reply(&config, mode, &turns);
            turns.push(turn(Speaker::Assistant, &reply.text));
            assert!(turns.len() < 20, "a call that never ends: {turns:?}");
        }
        turns
    }

    #[test]
    fn the_first_words_say_that_a_machine_calls() {
        for mode in [Mode::InHours, Mode::TakeMessage] {
            for objective in ["Ask what bread costs.", "..."] {
                let first = brief(objective).next_line(mode, &[]).unwrap();
                assert!(first.starts_with("Hello, this is an AI assistant calling for Ann of Rossi. "), "{first}");
                assert!(first.contains("This call is written down."), "{first}");
            }
        }
        let nameless = Brief::new(" ", FROM, Vec::new()).next_line(Mode::InHours, &[]).unwrap();
        assert!(nameless.starts_with("Hello, this is an AI assistant. "), "{nameless}");
    }

    #[test]
    fn what_is_known_is_answered_and_the_rest_is_a_message() {
        let brief = brief("Ask what bread costs. Find out who delivers on Sunday.");
        let turns = talk(&brief, Mode::InHours);
        let said: Vec<&str> = of_caller(&turns).map(|turn| turn.text.as_str()).collect();
        assert_eq!(said.len(), 4, "{said:?}");
        assert!(said[0].ends_with("I would like to ask what bread costs."), "{said:?}");
        assert_eq!(said[1], "I would like to know who delivers on Sunday.");
        assert_eq!(said[2], format!("{MESSAGE} {} The number to call back is {FROM}.", said[1]));
        assert_eq!(said[3], THANKS);
        let found = brief.found(&turns);
        let expected = [("Ask what bread costs", true), ("Find out who delivers on Sunday", false)];
        assert_eq!(found.points, expected.map(|(point, answered)| (point.to_owned(), answered)));
        assert!(found.message_left && !found.is_all());
        let told = summary(&found, &turns);
        assert!(told.contains("1 of 2") && told.contains("message was left"), "{told}");
    }

    #[test]
    fn a_machine_gets_all_points_as_one_message() {
        let brief = brief("Ask what bread costs. Say that Ann comes at noon.");
        let turns = talk(&brief, Mode::TakeMessage);
        let said: Vec<&str> = of_caller(&turns).map(|turn| turn.text.as_str()).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said[0].contains("ask what bread costs. I am to say that Ann comes at noon. The number"), "{said:?}");
        let found = brief.found(&turns);
        assert!(found.message_left && found.answered() == 0, "{found:?}");
    }

    #[test]
    fn the_longest_objective_has_an_end_and_short_lines() {
        let long = (0..9).map(|number| format!("Tell Zoë{number} {}", "wörd ".repeat(100))).collect::<Vec<_>>();
        let brief = brief(&long.join("\n"));
        for mode in [Mode::InHours, Mode::TakeMessage, Mode::Transfer] {
            let turns = talk(&brief, mode);
            assert!(turns.iter().all(|turn| turn.text.chars().count() <= MAX_SAID));
            // The exchange takes 8 turns in a minute.
            assert!(of_caller(&turns).count() <= 8, "{mode:?}");
        }
    }

    #[test]
    fn calls_are_judged_together() {
        let of = |answered: [bool; 2], message_left| Found {
            points: ["a", "b"].map(str::to_owned).into_iter().zip(answered).collect(),
            message_left,
        };
        let both = of([true, false], false).and(of([false, true], true));
        assert!(both.is_all() && both.message_left);
        assert!(!Found::default().is_all(), "nothing was asked");
    }
}
