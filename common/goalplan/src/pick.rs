//! The tool for a clause.

use base::choose::{Argument, Ask, Choice, Chooser};
use base::words::stem;

use crate::clauses::{Clause, message_at};
use crate::meaning::{Meaning, Slot, slots};
use crate::phrase::is_verb_word;
use crate::values::Found;
use crate::words::{PRONOUNS, RESULTS, Token};
use crate::{Refusal, Tool};

pub(crate) struct Picker<'a> {
    pub tools: &'a [Tool<'a>],
    pub slots: Vec<Vec<Slot>>,
    chooser: Chooser,
}

/// A clause, as its tool is chosen by it.
struct Said<'a> {
    text: &'a str,
    /// Without values.
    described: &'a str,
    /// Its first word, if that is a verb.
    lead: &'a str,
    found: &'a [Found],
    /// It points to something that was found before.
    points: bool,
}

const GENERAL: &[&str] = &[
    "find", "get", "look", "show", "list", "give", "check", "tell", "see", "fetch", "retrieve", "make", "use", "let",
    "go", "name",
];

/// How something is sent: the words for it, and what names the recipient.
struct Channel {
    verbs: &'static [&'static str],
    nouns: &'static [&'static str],
    meaning: Meaning,
}

const CHANNELS: &[Channel] = &[
    Channel { verbs: &["email", "e-mail", "mail"], nouns: &["email", "e-mail", "mail"], meaning: Meaning::Email },
    Channel { verbs: &["text", "sms"], nouns: &["text", "sms", "message"], meaning: Meaning::Phone },
    Channel { verbs: &["call", "phone", "ring", "dial"], nouns: &["call", "ring"], meaning: Meaning::Phone },
];
/// Verbs that send by one of the channels.
const SENDS: &[&str] =
    &["send", "write", "drop", "forward", "shoot", "notify", "message", "make", "give", "reply", "draft"];
/// Verbs that always act: where no tool does it, the clause is refused rather than looked up.
const ACTS: &[&str] = &[
    "send", "email", "e-mail", "mail", "text", "sms", "forward", "notify", "dial", "buy", "purchase", "pay",
    "transfer", "post", "publish", "tweet", "delete", "remove", "cancel", "submit", "click", "fill", "sign", "log",
    "upload", "invite", "hire", "deploy", "reserve", "book", "schedule", "remind", "order", "save", "store", "update",
    "share", "approve", "press", "type",
];
/// Verbs of one meaning, for tools that act.
const ALIKE: &[&[&str]] = &[
    &["build", "make", "create", "design", "generate", "launch", "publish", "host", "deploy"],
    &["buy", "purchase", "order", "get", "acquire"],
    &["hire", "ask", "use"],
    &["open", "visit", "click", "fill", "navigate", "log", "sign", "submit", "type", "go", "upload", "download"],
    &["draw", "design", "make", "create", "generate"],
    &["top", "add", "load", "buy"],
];
/// So many of the best are compared by their arguments.
const COMPARED: usize = 12;
const NEAREST: usize = 5;

impl<'a> Picker<'a> {
    pub fn new(tools: &'a [Tool<'a>]) -> Self {
        let slots: Vec<Vec<Slot>> = tools.iter().map(|tool| slots(tool.input)).collect();
        let abouts: Vec<String> =
            tools
                .iter()
                .map(|tool| {
                    if tool.title.is_empty() {
                        tool.about.to_owned()
                    } else {
                        format!("{}: {}", tool.title, tool.about)
                    }
                })
                .collect();
        let argument = |slot: &'_ Slot| -> (bool, bool) {
            let number = matches!(slot.meaning, Meaning::Number | Meaning::Money | Meaning::Year | Meaning::Count);
            (slot.required, number && !matches!(slot.meaning, Meaning::Count))
        };
        let texts = tools.iter().zip(&abouts).zip(&slots).map(|((tool, about), slots)| base::choose::Tool {
            name: tool.name,
            about,
            also: tool.also,
            arguments: slots
                .iter()
                .map(|slot| {
                    let (is_required, is_number) = argument(slot);
                    let choices =
                        slot.schema["enum"].as_array().into_iter().flatten().filter_map(|one| one.as_str()).collect();
                    Argument { name: &slot.name, about: &slot.about, choices, is_required, is_number }
                })
                .collect(),
        });
        let texts: Vec<base::choose::Tool> = texts.collect();
        let chooser = Chooser::new(&texts);
        Picker { tools, slots, chooser }
    }

    /// Chooses a tool for a clause; `before` are the words of the clause that a pronoun points to.
    pub fn pick(&self, clause: &Clause, found: &[Found], before: &str) -> Result<usize, Refusal> {
        let text = unquoted(&clause.tokens);
        let described = described(&clause.tokens, found);
        if let Some(at) = self.named(clause) {
            return Ok(at);
        }
        let lead = clause
            .tokens
            .first()
            .filter(|token| is_verb_word(token))
            .map(|token| token.lower.as_str())
            .unwrap_or_default();
        let points = !before.is_empty() && clause.tokens.iter().any(|token| token.is(PRONOUNS) || token.is(RESULTS));
        if let Some(channel) = channel(clause, lead, found) {
            return self.carrier(channel).ok_or_else(|| self.refusal(clause, &text, "no tool here sends this"));
        }
        let said = Said { text: &text, described: &described, lead, found, points };
        if let Some(at) = self.acting(&said) {
            return Ok(at);
        }
        if ACTS.contains(&lead) {
            return Err(self.refusal(clause, &text, "no tool here does this"));
        }
        let picked = self.looking(&said).or_else(|| {
            let (text, described) = (format!("{text} {before}"), format!("{described} {before}"));
            points.then(|| self.looking(&Said { text: &text, described: &described, ..said })).flatten()
        });
        picked.ok_or_else(|| self.refusal(clause, &text, "no tool here fits these words"))
    }

    fn named(&self, clause: &Clause) -> Option<usize> {
        let is_named =
            |tool: &Tool| tool.name.contains(['_', '.']) && clause.tokens.iter().any(|token| token.text == tool.name);
        self.tools.iter().position(is_named)
    }

    /// The tool that sends by a channel.
    fn carrier(&self, channel: &Channel) -> Option<usize> {
        let points = |at: usize| {
            let tool = &self.tools[at];
            let takes = self.slots[at].iter().any(|slot| slot.meaning == channel.meaning);
            let name = tool.name.to_lowercase().replace('_', " ");
            let hits =
                |text: &str, weight: usize| {
                    let words = base::words::words(&text.to_lowercase().replace("e-mail", "email"), 60);
                    weight
                        * usize::from(words.iter().any(|word| {
                            channel.nouns.contains(&word.as_str()) || channel.verbs.contains(&word.as_str())
                        }))
                };
            let points = hits(&name, 4) + hits(tool.title, 2) + hits(tool.also, 2);
            if tool.acts && takes { points } else { 0 }
        };
        (0..self.tools.len()).rev().max_by_key(|at| points(*at)).filter(|at| points(*at) >= 2)
    }

    /// A tool that acts, if the clause begins with a verb for it.
    fn acting(&self, said: &Said<'_>) -> Option<usize> {
        let Said { text, lead, .. } = *said;
        if lead.is_empty() {
            return None;
        }
        let ranked = self.chooser.ranked(text, Ask::Tool);
        let best = ranked.iter().take(COMPARED).position(|choice| {
            let tool = &self.tools[choice.at];
            let objects = objects(tool, text, lead);
            tool.acts && does(tool, lead) && objects > 0 && (objects > 1 || choice.fit >= Ask::Tool.floor())
        })?;
        let at = ranked[best].at;
        // Something that only looks may fit better: "get the weather".
        let is_looked_up = best > 0
            && self.looking(said).is_some_and(|other| ranked.first().is_some_and(|first| first.at == other))
            && !ACTS.contains(&lead)
            && !CREATES.contains(&lead);
        (!is_looked_up).then_some(at)
    }

    /// How surely the first verb is this tool's own: "research", "read", "verify". General verbs say nothing.
    fn verb(&self, at: usize, lead: &str) -> f64 {
        let tool = &self.tools[at];
        if lead.is_empty() || GENERAL.contains(&lead) {
            return 0.0;
        }
        let first = base::words::words(tool.about, 1);
        let also = base::words::words(tool.also, 60);
        let says = |words: &[String]| words.iter().any(|word| stem(word) == stem(lead));
        match crate::words::name_parts(tool.name) {
            parts if parts == [lead] => 2.5,
            parts if says(&parts) => 1.5,
            _ if says(&first) => 1.2,
            _ if says(&also) => 0.8,
            _ => 0.0,
        }
    }

    /// A tool that only looks. The words without values describe it, the whole clause is a task for it: either may fit.
    fn looking(&self, said: &Said<'_>) -> Option<usize> {
        let Said { text, described, lead, found, points } = said;
        let tasks = self.chooser.ranked(text, Ask::Task);
        let fit_as_task = |at: usize| {
            tasks.iter().find(|choice| choice.at == at).map_or(-9.0, |choice| choice.fit - Ask::Task.floor())
        };
        let mut ranked = self.chooser.ranked(described, Ask::Tool);
        ranked.extend(
            tasks
                .iter()
                .filter(|task| !ranked.iter().any(|choice| choice.at == task.at))
                .map(|task| Choice { score: 0.0, fit: -9.0, ..*task })
                .collect::<Vec<_>>(),
        );
        let scored = ranked.iter().filter(|choice| !self.tools[choice.at].acts).take(2 * COMPARED).map(|choice| {
            let (has, lacks) = self.values(choice.at, found);
            let fit = (choice.fit - Ask::Tool.floor()).max(fit_as_task(choice.at));
            let (lacks, verb) = (if *points { 0.0 } else { lacks }, self.verb(choice.at, lead));
            (choice.score + 1.5 * has - lacks + 2.0 * verb, fit + 0.6 * has - 0.5 * lacks + verb, choice.at)
        });
        let best = scored.max_by(|one, other| one.0.total_cmp(&other.0))?;
        (best.1 >= 0.0).then_some(best.2)
    }

    /// How many required arguments of exact forms the clause has, and how many it lacks.
    fn values(&self, at: usize, found: &[Found]) -> (f64, f64) {
        let exact = |slot: &&Slot| crate::earlier::EXACT.contains(&slot.meaning);
        let has = |slot: &&Slot| found.iter().any(|one| one.meaning == slot.meaning);
        let needed = self.slots[at].iter().filter(|slot| slot.required).filter(exact);
        let optional = self.slots[at].iter().filter(|slot| !slot.required).filter(exact).filter(has).count().min(1);
        let (got, lacking): (Vec<&Slot>, Vec<&Slot>) = needed.partition(has);
        ((got.len() + optional).min(1) as f64 + 0.5 * got.len().saturating_sub(1) as f64, lacking.len() as f64)
    }

    pub fn refusal(&self, clause: &Clause, text: &str, why: &str) -> Refusal {
        let nearest = self.chooser.ranked(text, Ask::Tool).into_iter().take(NEAREST);
        let nearest = nearest.map(|choice| self.tools[choice.at].name.to_owned()).collect();
        Refusal { clause: clause.text.clone(), why: why.to_owned(), nearest }
    }
}

const CREATES: &[&str] = &["build", "make", "create", "design", "draw", "generate", "launch"];

/// The words that describe what is wanted: without quotations and messages.
pub(crate) fn unquoted(tokens: &[Token]) -> String {
    let end = message_at(tokens).unwrap_or(tokens.len());
    let words: Vec<&str> =
        tokens[..end.min(tokens.len())].iter().filter(|token| !token.quoted).map(|token| token.text.as_str()).collect();
    words.join(" ")
}

/// Those words without values: addresses, numbers and names.
fn described(tokens: &[Token], found: &[Found]) -> String {
    let end = message_at(tokens).unwrap_or(tokens.len()).min(tokens.len());
    let is_value = |at: usize| found.iter().any(|one| one.from <= at && at < one.to);
    let is_name =
        |at: usize| at > 0 && tokens[at].is_capital() && tokens[at].text.bytes().any(|byte| byte.is_ascii_lowercase());
    let kept = (0..end).filter(|at| !tokens[*at].quoted && !is_value(*at) && !is_name(*at));
    let words: Vec<&str> = kept.map(|at| tokens[at].text.as_str()).collect();
    words.join(" ")
}

/// By which channel a clause sends, if it does.
fn channel(clause: &Clause, lead: &str, found: &[Found]) -> Option<&'static Channel> {
    if let Some(channel) = CHANNELS.iter().find(|channel| channel.verbs.contains(&lead)) {
        return Some(channel);
    }
    if !SENDS.contains(&lead) {
        return None;
    }
    let end = message_at(&clause.tokens).unwrap_or(clause.tokens.len());
    let words = &clause.tokens[..end.min(clause.tokens.len())];
    // "Make a call", but not "make a website": the noun stands near the verb.
    let near = words.iter().take(5).skip(1).take_while(|token| !token.is(&["about", "of", "for", "with"]));
    let by_noun = CHANNELS.iter().find(|channel| near.clone().any(|token| token.is(channel.nouns)));
    let delivers = matches!(lead, "send" | "forward" | "write" | "notify" | "message" | "shoot" | "drop");
    let has = |meaning: Meaning| found.iter().any(|one| one.meaning == meaning);
    match by_noun {
        Some(channel) if lead == "message" || channel.nouns[0] != "text" || !has(Meaning::Email) => Some(channel),
        _ if !delivers => None,
        _ if has(Meaning::Email) => Some(&CHANNELS[0]),
        _ if has(Meaning::Phone) => Some(&CHANNELS[1]),
        _ if words.iter().any(|token| token.is(&["me", "us", "her", "him", "them"])) => Some(&CHANNELS[0]),
        _ => None,
    }
}

fn alike(one: &str, other: &str) -> bool {
    let common = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    stem(one) == stem(other) || common >= 5
}

/// Whether a verb is one for what a tool does.
fn does(tool: &Tool, lead: &str) -> bool {
    let first: Vec<String> = base::words::words(tool.about, 3);
    let mut words = base::words::words(&format!("{} {} {}", tool.name.replace('_', " "), tool.title, tool.also), 80);
    words.extend(first);
    let is_verb = |word: &String| {
        let same = ALIKE.iter().any(|set| set.contains(&lead) && set.iter().any(|verb| alike(verb, word)));
        same || alike(lead, word)
    };
    words.iter().any(is_verb)
}

/// How many words of a text name what the tool acts on, beyond the verb.
fn objects(tool: &Tool, text: &str, lead: &str) -> usize {
    let own = base::words::words(&format!("{} {} {}", tool.name.replace('_', " "), tool.title, tool.also), 80);
    let own: Vec<String> = own.iter().map(|word| stem(word)).collect();
    let is_verb = |word: &str| {
        alike(word, lead)
            || ALIKE.iter().any(|set| set.contains(&word))
            || crate::words::FILLERS.contains(&word) && !matches!(word, "phone" | "number")
    };
    let words = base::words::words(text, 150);
    let has_address = text.contains("://") && own.iter().any(|word| word == "web" || word == "browser");
    2 * usize::from(has_address) + words.iter().filter(|word| !is_verb(word) && own.contains(&stem(word))).count()
}
