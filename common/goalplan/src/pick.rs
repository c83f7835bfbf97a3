//! The tool for a clause.

use std::collections::HashSet;

use base::choose::{Argument, Ask, Choice, Chooser};
use base::words::stem;

use crate::channel::{Channel, channel};
use crate::clauses::{Clause, message_at};
use crate::meaning::{Meaning, Slot, slots};
use crate::phrase::is_verb_word;
use crate::values::Found;
use crate::words::{FILLERS, PRONOUNS, RESULTS, Token};
use crate::{Refusal, Tool};

pub(crate) struct Picker<'a> {
    pub tools: &'a [Tool<'a>],
    pub slots: Vec<Vec<Slot>>,
    chooser: Chooser,
    /// The stems of each tool's texts, and of the names and titles of all.
    vocabularies: Vec<HashSet<String>>,
    names: HashSet<String>,
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
    "find",
    "get",
    "look",
    "show",
    "list",
    "give",
    "check",
    "tell",
    "see",
    "fetch",
    "retrieve",
    "make",
    "use",
    "let",
    "go",
    "name",
    "summarize",
    "summarise",
];

const LITTLE: &[&str] = &[
    "near", "around", "within", "between", "newest", "latest", "recent", "top", "first", "best", "last", "new",
    "current", "up",
];
const ROLES: &[&str] = &[
    "cto",
    "ceo",
    "cfo",
    "coo",
    "cmo",
    "founder",
    "founders",
    "vp",
    "president",
    "head",
    "director",
    "recruiter",
    "managers",
    "manager",
];

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
        let vocabularies = tools.iter().zip(&slots).map(|(tool, slots)| vocabulary(tool, slots)).collect();
        let names = tools.iter().flat_map(|tool| name_stems(tool)).collect();
        Picker { tools, slots, chooser, vocabularies, names }
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
        let lead = spoken_lead(clause, lead, found);
        if let Some(channel) = channel(clause, lead, found) {
            return self.carrier(channel).ok_or_else(|| self.refusal(clause, &text, "no tool here sends this"));
        }
        if !says_something(clause, lead, found) {
            return Err(self.refusal(clause, &text, "it does not say what is wanted"));
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
            let name = crate::words::name_parts(tool.name).join(" ");
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

    /// Whether an open question goes with a tool for open questions: "research how …", "search for …", "news about …".
    fn open(&self, at: usize, said: &Said) -> f64 {
        let takes_words = self.slots[at].iter().any(|slot| slot.required && slot.meaning == Meaning::Query);
        let mut words = said.text.split(' ').map(str::to_lowercase);
        let second = words.nth(1).unwrap_or_default();
        let asks = ["how", "what", "why", "whether", "when", "where", "who", "which", "for", "about"]
            .contains(&second.as_str());
        let is_open = match said.lead {
            "research" | "search" | "investigate" | "google" => asks,
            "" | "find" | "get" | "look" => said.text.contains(" about "),
            _ => false,
        };
        match (is_open, takes_words) {
            (true, true) => 1.0,
            (true, false) => -1.0,
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
            let misfits = self.misfits(choice.at, said);
            let open = self.open(choice.at, said);
            (
                choice.score + 1.5 * (has - misfits) - lacks + 2.0 * verb + 2.0 * open,
                fit + 0.6 * has - 0.5 * (lacks + misfits) + verb + 0.6 * open,
                choice.at,
            )
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

    /// The stems of the words of a tool's texts.
    pub fn vocabulary(&self, at: usize) -> &HashSet<String> {
        &self.vocabularies[at]
    }

    /// How many words name another tool and not this one, and how many values it has no argument for.
    fn misfits(&self, at: usize, said: &Said) -> f64 {
        let own = &self.vocabularies[at];
        let words = base::words::words(said.described, 60);
        let others = words
            .iter()
            .map(|word| stem(word))
            .filter(|word| word.len() > 3 && self.names.contains(word) && !own.contains(word))
            .count();
        let takes = |found: &Found| {
            let turned = |slot: &Slot| {
                matches!(
                    (found.meaning, slot.meaning),
                    (Meaning::Domain, Meaning::Url | Meaning::Company) | (Meaning::Url, Meaning::Domain)
                )
            };
            self.slots[at].iter().any(|slot| {
                slot.meaning == found.meaning || turned(slot) || matches!(slot.name.as_str(), "value" | "identifier")
            })
        };
        let lost =
            said.found.iter().filter(|found| crate::earlier::EXACT.contains(&found.meaning) && !takes(found)).count();
        0.4 * others.min(3) as f64 + lost.min(2) as f64
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

/// The verb of a clause; not the noun of "Email marketing tips" or "Text of the treaty".
fn spoken_lead<'a>(clause: &Clause, lead: &'a str, found: &[Found]) -> &'a str {
    let is_noun = matches!(lead, "email" | "e-mail" | "mail" | "text" | "sms" | "message" | "call" | "phone" | "ring");
    let reaches = found.iter().any(|one| matches!(one.meaning, Meaning::Email | Meaning::Phone));
    if is_noun && !reaches && !crate::words::is_verb(&clause.tokens[0], clause.tokens.get(1)) { "" } else { lead }
}

/// Whether a clause has more than "get the details of each".
fn says_something(clause: &Clause, lead: &str, found: &[Found]) -> bool {
    let names_it = |token: &Token| token.is(&["email", "e-mail", "address", "number", "phone", "title", "subject"]);
    let plain = |token: &Token| {
        token.is(FILLERS) && !names_it(token)
            || token.is(RESULTS)
            || token.is(PRONOUNS)
            || token.is(GENERAL)
            || token.is(&["each", "every", "first"])
    };
    !(lead.is_empty() || GENERAL.contains(&lead)) || !found.is_empty() || !clause.tokens.iter().all(plain)
}

fn name_stems(tool: &Tool) -> Vec<String> {
    let texts = format!("{} {}", crate::words::name_parts(tool.name).join(" "), tool.title);
    base::words::words(&texts, 60).iter().map(|word| stem(word)).collect()
}

fn vocabulary(tool: &Tool, slots: &[Slot]) -> HashSet<String> {
    let slots = slots.iter().map(|slot| format!("{} {}", slot.parts.join(" "), slot.about));
    let texts = format!("{} {} {}", tool.about, tool.also, slots.collect::<Vec<_>>().join(" "));
    let words = base::words::words(&texts, 1_000);
    words.iter().map(|word| stem(word)).chain(name_stems(tool)).collect()
}

/// Those words without values: addresses, numbers and names.
fn described(tokens: &[Token], found: &[Found]) -> String {
    let end = message_at(tokens).unwrap_or(tokens.len()).min(tokens.len());
    let is_value = |at: usize| found.iter().any(|one| one.from <= at && at < one.to);
    let is_name =
        |at: usize| at > 0 && tokens[at].is_capital() && tokens[at].text.bytes().any(|byte| byte.is_ascii_lowercase());
    // "A summary of https://…" asks for the page.
    let has_exact = found.iter().any(|one| crate::earlier::EXACT.contains(&one.meaning));
    let says_little = |at: usize| {
        tokens[at].is(LITTLE) || has_exact && tokens[at].is(&["summary", "report", "overview", "details", "info"])
    };
    let kept = (0..end).filter(|at| !tokens[*at].quoted && !is_value(*at) && !is_name(*at) && !says_little(*at));
    let mut words: Vec<&str> = kept.map(|at| tokens[at].text.as_str()).collect();
    let is_url = found.iter().any(|one| one.meaning == Meaning::Url);
    if is_url && words.iter().all(|word| FILLERS.contains(&word.to_lowercase().as_str())) {
        words.push("read web page");
    }
    // A role is a person's, and so is "who".
    if tokens[..end].iter().any(|token| token.is(ROLES)) {
        words.push("people title employer");
    }
    if tokens[0].is(&["who"]) {
        let works = tokens.get(1).is_some_and(|token| token.is(&["works", "work"]));
        words.push(if works { "find people employer" } else { "person profile" });
    }
    words.join(" ")
}

fn alike(one: &str, other: &str) -> bool {
    let common = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    stem(one) == stem(other) || common >= 5
}

/// Whether a verb is one for what a tool does.
fn does(tool: &Tool, lead: &str) -> bool {
    let first: Vec<String> = base::words::words(tool.about, 3);
    let mut words = base::words::words(
        &format!("{} {} {}", crate::words::name_parts(tool.name).join(" "), tool.title, tool.also),
        80,
    );
    words.extend(first);
    let is_verb = |word: &String| {
        let same = ALIKE.iter().any(|set| set.contains(&lead) && set.iter().any(|verb| alike(verb, word)));
        same || alike(lead, word)
    };
    words.iter().any(is_verb)
}

/// How many words of a text name what the tool acts on, beyond the verb.
fn objects(tool: &Tool, text: &str, lead: &str) -> usize {
    let own = base::words::words(
        &format!("{} {} {}", crate::words::name_parts(tool.name).join(" "), tool.title, tool.also),
        80,
    );
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
