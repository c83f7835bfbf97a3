//! Chooses tools for a request in words, from the tools' texts alone, and tells when none fits.
//!
//! Two figures: `score` orders tools for one request (words weighted by how rare they are among these tools), `fit` compares
//! requests (words weighted by how rare they are in English), so a floor can refuse. Both add up shared words, how much of the
//! request is covered, and whether the verbs agree. Work is linear in the texts, and requests are cut.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use crate::words;

/// Most words of a request that are read, and most of one text of a tool.
const MAX_ASKED: usize = 150;
const MAX_TEXT: usize = 400;
/// Most tools' words that a beginning of a word may stand for.
const MAX_BEGUN: usize = 8;

/// One tool, as its texts describe it.
#[derive(Default)]
pub struct Tool<'a> {
    pub name: &'a str,
    pub about: &'a str,
    /// Words that people use for it and that its other texts do not have.
    pub also: &'a str,
    pub arguments: Vec<Argument<'a>>,
}

#[derive(Default)]
pub struct Argument<'a> {
    pub name: &'a str,
    pub about: &'a str,
    pub choices: Vec<&'a str>,
    pub is_required: bool,
    pub is_number: bool,
}

/// What a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Words that describe a tool: "send an email".
    Tool,
    /// A task with the values for it: "send ada@example.com the report of 3 May". A tool whose values are missing fits less.
    Task,
}

impl Ask {
    /// The fit below which nothing fits.
    pub const fn floor(self) -> f64 {
        match self {
            Ask::Tool => -0.1,
            Ask::Task => 0.2,
        }
    }
}

/// A tool that shares words with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// The tool's place in the list that the [`Chooser`] was made from.
    pub at: usize,
    /// Orders the tools for one request.
    pub score: f64,
    /// Comparable between requests; see [`Ask::floor`].
    pub fit: f64,
}

/// Words that say nothing of what is wanted.
static FILLERS: &str = "a about all also am an and any are as at be been being by can could did do does doing for from get \
    give had has have he hello help her here hi him his how i id if im in into is it its ive just know let lets like make may \
    me might more must my need no not of ok okay on one or our please see shall she should so some somebody someone something \
    tell than thank thanks that the their them then there these they this those to too up us use used using very via want \
    wanted wants was we were what when where which while who why will with would you your";

/// How a question begins that asks for no deed.
static QUESTIONS: &[&str] = &["are", "did", "does", "is", "what", "when", "where", "which", "who", "whose"];

/// Verbs so general that sharing them, or not, says little.
static GENERAL: &str = "get find search show list fetch retrieve return give look check tell lookup query obtain provide display view read see make";

/// Verbs of one meaning. The first are those that only look.
static DEEDS: &[&str] = &[
    "get find search show list fetch retrieve look lookup query obtain display view browse see check return provide seek locate",
    "create make add generate build new compose write insert register open start produce draft",
    "delete remove cancel drop clear erase discard unsubscribe close",
    "update change modify edit set adjust alter replace rename reset switch resize",
    "send mail email text message notify forward reply share post publish",
    "buy purchase order pay get acquire obtain checkout subscribe",
    "book reserve schedule arrange order rent reservation",
    "translate convert",
    "transcribe",
    "draw paint",
    "cook bake",
    "calculate compute determine solve evaluate estimate work sum count",
    "play listen stream watch",
    "call phone ring dial",
    "verify validate check confirm test authenticate",
    "analyze analyse inspect examine review",
    "turn control operate execute run activate deactivate start stop",
    "summarize summarise",
    "pay transfer send",
    "remind",
    "deploy install compile",
];
const LOOKS: u32 = 1;
/// Those that name their object too: to text, to mail, to call.
const CARRIES: u32 = 1 << 4 | 1 << 13;

/// Nouns that people use for each other.
static ALIKE: &[&str] = &[
    "movie film",
    "weather temperature forecast climate rain",
    "taxi cab ride",
    "car vehicle automobile",
    "song music track",
    "email mail",
    "restaurant food dish menu eat dinner",
    "hotel house accommodation stay",
    "attraction sightseeing",
    "doctor dentist provider",
    "flight fly airline plane",
    "price cost",
    "bus train",
    "news headline",
];
/// What a word counts if the tool has only one like it.
const LIKE: f64 = 0.6;

struct Language {
    fillers: HashSet<&'static str>,
    general: HashSet<String>,
    /// For frequent words, from 0 (in every text) to 1.
    rarity: HashMap<&'static str, f64>,
    /// The sets of [`DEEDS`] that have a verb, as bits.
    deeds: HashMap<String, u32>,
    alike: HashMap<String, Vec<String>>,
}

static ENGLISH: LazyLock<Language> = LazyLock::new(|| {
    let mut rarity = HashMap::new();
    for line in include_str!("choose/frequent.txt").lines().skip(1) {
        let mut words = line.split(' ');
        let level: f64 = words.next().and_then(|level| level.parse().ok()).unwrap_or_default();
        rarity.extend(words.map(|word| (word, level / 16.0)));
    }
    let mut deeds = HashMap::new();
    for (bit, verbs) in DEEDS.iter().enumerate() {
        verbs.split(' ').for_each(|verb| *deeds.entry(words::stem(verb)).or_default() |= 1 << bit);
    }
    let mut alike: HashMap<String, Vec<String>> = HashMap::new();
    for set in ALIKE {
        let set: Vec<String> = set.split(' ').map(words::stem).collect();
        for word in &set {
            alike.entry(word.clone()).or_default().extend(set.iter().filter(|other| *other != word).cloned());
        }
    }
    let fillers = FILLERS.split_whitespace().collect();
    Language { fillers, general: GENERAL.split(' ').map(words::stem).collect(), rarity, deeds, alike }
});

impl Language {
    fn rarity(&self, word: &str) -> f64 {
        self.rarity.get(word).copied().unwrap_or(0.8)
    }

    fn deeds(&self, words: &[String]) -> u32 {
        words.iter().filter_map(|word| self.deeds.get(word)).fold(0, |all, bits| all | bits)
    }
}

/// The stems of a text without fillers. `camelCase` is two words, and e-mail is one.
fn stems(text: &str, most: usize) -> Vec<String> {
    let mut plain = String::new();
    let mut before = ' ';
    for letter in text.chars().take(most * words::MAX_WORD_CHARS) {
        if letter.is_uppercase() && (before.is_lowercase() || before.is_numeric()) {
            plain.push(' ');
        }
        plain.push(letter);
        before = letter;
    }
    let plain = plain.to_lowercase().replace("e-mail", "email");
    let words = words::words(&plain, most).into_iter();
    words.filter(|word| !ENGLISH.fillers.contains(word.as_str())).map(|word| words::stem(&word)).collect()
}

fn distinct(words: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    words.into_iter().filter(|word| seen.insert(word.clone())).collect()
}

/// Figures for the places where a tool has a word: its name, what it is about, its arguments' names, and what these are about.
type Places = [f64; 4];
/// Their weights for the order, and for the fit.
const ORDER: Places = [2.0, 1.0, 0.8, 0.8];
const WEIGHTS: Places = [3.0, 1.0, 1.0, 0.4];
/// How surely a word in such a place is meant.
const MEANT: Places = [1.0, 1.0, 0.7, 0.6];

struct Known {
    counts: HashMap<String, Places>,
    lengths: Places,
    name: Vec<String>,
    /// The first sentence about it.
    first: Vec<String>,
    arguments: Vec<String>,
    deeds: u32,
    about_words: usize,
    /// Required arguments: all, and numbers.
    needed: usize,
    numbers: usize,
    is_for_address: bool,
    choices: Vec<Vec<String>>,
}

impl Known {
    fn of(tool: &Tool) -> Known {
        let name = distinct(stems(tool.name, MAX_TEXT));
        let mut about = stems(tool.about, MAX_TEXT);
        let also = stems(tool.also, MAX_TEXT);
        let sentence = tool.about.split_once(". ").map_or(tool.about, |(first, _)| first);
        let first = distinct(stems(sentence, MAX_TEXT));
        let arguments: Vec<String> = tool.arguments.iter().flat_map(|field| stems(field.name, MAX_TEXT)).collect();
        let described = tool.arguments.iter().flat_map(|field| {
            let choices = field.choices.iter().flat_map(|choice| stems(choice, MAX_TEXT));
            stems(field.about, MAX_TEXT).into_iter().chain(choices)
        });
        let described: Vec<String> = described.collect();
        let deeds = [&name[..name.len().min(4)], &first[..first.len().min(1)], &also];
        let deeds = deeds.iter().fold(0, |all, words| all | ENGLISH.deeds(words));
        let about_words = distinct(about.clone()).len();
        about.extend(also);
        let mut counts: HashMap<String, Places> = HashMap::new();
        let places = [&name, &about, &arguments, &described];
        for (place, words) in places.iter().enumerate() {
            words.iter().for_each(|word| counts.entry(word.clone()).or_default()[place] += 1.0);
        }
        let lengths = places.map(|words| words.len() as f64);
        let needed = || tool.arguments.iter().filter(|field| field.is_required);
        let choices = |field: &Argument| -> Vec<String> {
            field.choices.iter().map(|choice| plain(choice)).filter(|choice| choice.len() > 2).collect()
        };
        Known {
            counts,
            lengths,
            name,
            first,
            deeds,
            about_words,
            needed: needed().count(),
            numbers: needed().filter(|field| field.is_number && field.choices.is_empty()).count(),
            is_for_address: tool.arguments.iter().any(|field| field.name == "url"),
            choices: tool.arguments.iter().map(choices).collect(),
            arguments: distinct(arguments),
        }
    }

    /// The places of a word, or of one like it, and how much that counts.
    fn places(&self, word: &str, asked: &Asked) -> Option<(f64, Places)> {
        if let Some(counts) = self.counts.get(word) {
            return Some((1.0, *counts));
        }
        let others = [ENGLISH.alike.get(word), asked.begun.get(word)].into_iter().flatten().flatten();
        others.filter_map(|other| self.counts.get(other)).next().map(|counts| (LIKE, *counts))
    }
}

/// Lower case, with spaces for what joins the words of a choice.
fn plain(text: &str) -> String {
    text.to_lowercase().replace('_', " ")
}

/// A request, read once for all tools.
struct Asked {
    words: Vec<String>,
    /// Words that are values rather than descriptions: names and numbers.
    values: HashSet<String>,
    /// The tools' words that a word begins.
    begun: HashMap<String, Vec<String>>,
    deeds: u32,
    /// The meanings of its first word, if that is a verb.
    lead: u32,
    text: String,
    numbers: usize,
}

impl Asked {
    fn of(text: &str) -> Asked {
        let text: String = text.chars().take(MAX_ASKED * 10).collect();
        let words = distinct(stems(&text, MAX_ASKED));
        let mut values = HashSet::new();
        for (at, word) in text.split_whitespace().enumerate() {
            let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric());
            let is_name = at > 0 && bare.chars().next().is_some_and(char::is_uppercase);
            if is_name || bare.contains(char::is_numeric) {
                values.extend(stems(bare, MAX_ASKED));
            }
        }
        let runs = text.split(|letter: char| !letter.is_ascii_digit() && letter != '.' && letter != ',');
        let numbers = runs.filter(|run| run.contains(|letter: char| letter.is_ascii_digit())).count();
        let deeds = ENGLISH.deeds(&words[..words.len().min(6)]);
        // "What did I buy" asks for no deed, "how do I buy" does.
        let opening = text.split_whitespace().next().unwrap_or_default().to_lowercase();
        let lead = if QUESTIONS.contains(&opening.as_str()) { 0 } else { ENGLISH.deeds(&words[..words.len().min(1)]) };
        Asked { words, values, begun: HashMap::new(), deeds, lead, text: plain(&text), numbers }
    }
}

/// Tools that can be chosen from.
pub struct Chooser {
    tools: Vec<Known>,
    /// In how many tools a word is.
    spread: HashMap<String, f64>,
    usual_lengths: Places,
}

impl Chooser {
    pub fn new(tools: &[Tool]) -> Chooser {
        let tools: Vec<Known> = tools.iter().map(Known::of).collect();
        let mut spread: HashMap<String, f64> = HashMap::new();
        let mut usual_lengths: Places = [0.0; 4];
        for tool in &tools {
            tool.counts.keys().for_each(|word| *spread.entry(word.clone()).or_default() += 1.0);
            for (sum, length) in usual_lengths.iter_mut().zip(tool.lengths) {
                *sum += length / tools.len() as f64;
            }
        }
        Chooser { tools, spread, usual_lengths: usual_lengths.map(|length| length.max(0.1)) }
    }

    /// Whether a request has words to choose by.
    pub fn is_asked(text: &str) -> bool {
        !stems(text, MAX_ASKED).is_empty()
    }

    /// The tools that share a word with a request, best first.
    pub fn ranked(&self, text: &str, ask: Ask) -> Vec<Choice> {
        let mut asked = Asked::of(text);
        for word in asked.words.iter().filter(|word| word.len() > 3 && !self.spread.contains_key(*word)) {
            let mut begun: Vec<String> = self.spread.keys().filter(|known| known.starts_with(word)).cloned().collect();
            begun.sort();
            begun.truncate(MAX_BEGUN);
            asked.begun.insert(word.clone(), begun);
        }
        let choice = |(at, tool): (usize, &Known)| {
            let shared = self.shared(tool, &asked);
            let seen = Seen::of(tool, &asked);
            let (score, fit) = (seen.score(shared, tool, &asked, ask), seen.fit(tool, &asked, ask));
            (shared > 0.0).then_some(Choice { at, score, fit })
        };
        let mut choices: Vec<Choice> = self.tools.iter().enumerate().filter_map(choice).collect();
        choices.sort_by(|one, other| other.score.total_cmp(&one.score));
        choices
    }

    /// The shared words by their rarity among the tools (BM25F).
    fn shared(&self, tool: &Known, asked: &Asked) -> f64 {
        let all = self.tools.len() as f64;
        let of_word = |word: &String| {
            let (counts_as, places) = tool.places(word, asked)?;
            let spread = self.spread.get(word).copied().unwrap_or(1.0);
            let rarity = (1.0 + (all - spread + 0.5) / (spread + 0.5)).ln();
            let length = |at: usize| 0.25 + 0.75 * tool.lengths[at] / self.usual_lengths[at];
            let often: f64 = (0..4).map(|at| ORDER[at] * places[at] / length(at)).sum();
            Some(counts_as * rarity * often * 2.2 / (often + 1.2))
        };
        asked.words.iter().filter_map(of_word).sum()
    }
}

/// What a tool and a request have in common, each from 0 to 1 where not said otherwise.
struct Seen {
    /// The part of the request that the tool has.
    covered: f64,
    /// The parts of the tool's name, first sentence and arguments that the request has.
    name: f64,
    first: f64,
    arguments: f64,
    /// The rarest shared word.
    rarest: f64,
    /// The shared words by their rarity in English, without an upper limit.
    shared: f64,
    agrees: f64,
    differs: f64,
    /// The request begins with a verb for something else.
    leads_elsewhere: f64,
    /// The request begins with a verb, and the tool has nothing else of it.
    lacks_object: f64,
}

impl Seen {
    fn of(tool: &Known, asked: &Asked) -> Seen {
        let (mut whole, mut covered, mut rarest, mut shared) = (0.0, 0.0, 0.0_f64, 0.0);
        for word in &asked.words {
            let rarity = ENGLISH.rarity(word);
            let is_value = asked.values.contains(word);
            let describes = if is_value { 0.3 } else { 1.0 } * if ENGLISH.general.contains(word) { 0.3 } else { 1.0 };
            let weight = rarity * describes + 0.02;
            whole += weight;
            let Some((counts_as, places)) = tool.places(word, asked) else { continue };
            let meant = (0..4).filter(|at| places[*at] > 0.0).map(|at| MEANT[at]).fold(0.0, f64::max) * counts_as;
            covered += weight * meant;
            rarest = rarest.max(weight * meant);
            let often: f64 = (0..4).map(|at| WEIGHTS[at] * places[at]).sum();
            shared += (rarity + 0.05) * if is_value { 0.6 } else { 1.0 } * counts_as * often / (often + 1.5);
        }
        let back = |words: &[String]| {
            let (mut whole, mut hit) = (0.0, 0.0);
            for word in words.iter().filter(|word| !ENGLISH.general.contains(*word)) {
                let rarity = ENGLISH.rarity(word) + 0.05;
                let is_like =
                    || ENGLISH.alike.get(word).is_some_and(|like| like.iter().any(|like| asked.words.contains(like)));
                whole += rarity;
                hit += match asked.words.contains(word) {
                    true => rarity,
                    false if is_like() => rarity * LIKE,
                    false => 0.0,
                };
            }
            if whole > 0.0 { hit / whole } else { 0.0 }
        };
        let agrees = asked.deeds & tool.deeds != 0;
        let mut objects = asked.words.iter().skip(1).peekable();
        let can_lack = asked.lead & !LOOKS & !CARRIES != 0 && asked.lead & CARRIES == 0 && objects.peek().is_some();
        let lacks_object = can_lack && !objects.any(|word| tool.places(word, asked).is_some());
        Seen {
            covered: covered / whole.max(0.02),
            name: back(&tool.name),
            first: back(&tool.first),
            arguments: back(&tool.arguments),
            rarest,
            shared,
            agrees: flag(agrees),
            differs: flag(!agrees && asked.deeds != 0 && tool.deeds != 0),
            leads_elsewhere: flag(asked.lead != 0 && asked.lead & LOOKS == 0 && asked.lead & tool.deeds == 0),
            lacks_object: flag(lacks_object),
        }
    }

    fn score(&self, shared: f64, tool: &Known, asked: &Asked, ask: Ask) -> f64 {
        let texts = 0.4 * shared + 4.0 * self.first + 0.6 * self.agrees - 0.25 * self.differs;
        match ask {
            Ask::Tool => texts + 2.0 * self.covered - self.leads_elsewhere,
            Ask::Task => texts + 2.75 * chosen(tool, asked) - 2.5 * part(tool.needed, 5),
        }
    }

    /// The weights were fitted to requests for several hundred functions of others.
    fn fit(&self, tool: &Known, asked: &Asked, ask: Ask) -> f64 {
        let root = self.shared.sqrt();
        if ask == Ask::Tool {
            let fit = 1.14 * self.covered + 0.18 * self.name + 0.41 * self.rarest + 0.58 * self.agrees
                - 0.68 * self.differs
                - 1.5 * (self.leads_elsewhere + self.lacks_object)
                + 4.94 * root
                - 1.54 * self.shared
                - 2.67;
            // A question of common words that the tool has all of.
            return if self.covered > 0.99 { fit.max(Ask::Tool.floor()) } else { fit };
        }
        let given = asked.values.len();
        let is_quoted = asked.text.contains(['"', '\'']);
        1.95 * self.covered + 0.11 * self.name + 1.08 * self.arguments + 1.02 * self.rarest + 0.25 * self.agrees
            - 0.61 * self.differs
            + 3.01 * root
            - 1.12 * self.shared
            - 0.72 * part(tool.about_words, 25)
            + 0.71 * part(given, 4)
            + 2.8 * chosen(tool, asked)
            - 1.28 * part(tool.needed, 5)
            - 1.41 * flag(tool.needed > given + usize::from(is_quoted))
            - 1.08 * part(tool.numbers.saturating_sub(asked.numbers), 2)
            - 2.03 * flag(tool.is_for_address)
            + 0.46 * flag(asked.text.contains("://"))
            - 1.57
    }
}

/// The arguments of which the request names a choice, as a part of two.
fn chosen(tool: &Known, asked: &Asked) -> f64 {
    let is_named = |choices: &&Vec<String>| choices.iter().any(|choice| asked.text.contains(choice.as_str()));
    part(tool.choices.iter().filter(is_named).count(), 2)
}

fn part(count: usize, of: usize) -> f64 {
    count.min(of) as f64 / of as f64
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &'static str, about: &'static str) -> Tool<'static> {
        Tool { name, about, ..Tool::default() }
    }

    fn first(tools: &[Tool], asked: &str) -> Option<usize> {
        let best = Chooser::new(tools).ranked(asked, Ask::Tool).into_iter().next()?;
        (best.fit >= Ask::Tool.floor()).then_some(best.at)
    }

    #[test]
    fn verbs_and_rare_words_decide() {
        let tools = [
            tool("createInvoice", "Creates an invoice for a customer"),
            tool("delete_invoice", "Removes an invoice"),
            tool("exchange.rate", "Returns the exchange rate of two currencies"),
        ];
        for (asked, wanted) in [
            ("make a new invoice", Some(0)),
            ("erase the invoice", Some(1)),
            ("exchange rates", Some(2)),
            ("currenc", Some(2)),
            ("play a song for the customer", None),
            ("", None),
            ("的 是", None),
        ] {
            assert_eq!(first(&tools, asked), wanted, "{asked}");
        }
    }

    #[test]
    fn a_task_without_the_values_fits_less() {
        let amount = Argument { name: "amount", is_required: true, is_number: true, ..Argument::default() };
        let tools = [Tool { arguments: vec![amount], ..tool("convert_money", "Converts an amount of money") }];
        let fit = |asked: &str| Chooser::new(&tools).ranked(asked, Ask::Task)[0].fit;
        assert!(fit("convert 5 money") > fit("convert money"));
    }

    #[test]
    fn long_requests_are_cut() {
        let asked = Asked::of(&"page 1 é的 ".repeat(200_000));
        assert!(asked.words.len() <= MAX_ASKED && asked.text.len() < MAX_ASKED * 40);
    }

    #[test]
    fn every_table_is_read() {
        assert!(ENGLISH.rarity.len() > 1_900 && ENGLISH.rarity("time") < ENGLISH.rarity("plumber"));
        assert!(DEEDS.len() <= 32);
    }
}
