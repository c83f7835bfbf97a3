//! Words of an objective with their places, and lists of words.

/// A word as it stands in the text, or a quotation as one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    /// Without the punctuation around it.
    pub text: String,
    pub lower: String,
    /// The place of `text`, in bytes.
    pub start: usize,
    pub end: usize,
    /// The punctuation after it, and before it.
    pub tail: String,
    pub head: String,
    pub quoted: bool,
    /// It is the first on its line.
    pub opens_line: bool,
}

impl Token {
    pub fn is_capital(&self) -> bool {
        let is_speaker = self.lower == "i" || self.lower.starts_with("i'") || self.lower.starts_with("i’");
        !self.quoted && !is_speaker && self.text.starts_with(char::is_uppercase)
    }

    pub fn has_digit(&self) -> bool {
        self.text.bytes().any(|byte| byte.is_ascii_digit())
    }

    /// Whether a pause stands behind it: a comma, a colon, the end of a sentence.
    pub fn pauses(&self) -> bool {
        self.tail.contains([',', ';', ':', '.', '!', '?', ')'])
    }

    pub fn is(&self, words: &[&str]) -> bool {
        !self.quoted && words.contains(&self.lower.as_str())
    }
}

/// The longest quotation, in bytes.
const MAX_QUOTE: usize = 5_000;

pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut opens_line = true;
    while let Some(letter) = text[at..].chars().next() {
        if letter.is_whitespace() {
            opens_line |= letter == '\n';
            at += letter.len_utf8();
            continue;
        }
        let end = match quotation(text, at) {
            Some((inner, end)) => {
                let close = inner.1 + text[inner.1..].chars().next().map_or(0, char::len_utf8);
                found.push(Token {
                    text: text[inner.0..inner.1].to_owned(),
                    lower: text[inner.0..inner.1].to_lowercase(),
                    start: inner.0,
                    end: inner.1,
                    tail: ended(&text[inner.0..inner.1]) + &text[close..end],
                    head: String::new(),
                    quoted: true,
                    opens_line,
                });
                end
            }
            None => {
                let end = text[at..].find(char::is_whitespace).map_or(text.len(), |length| at + length);
                // "limit=5" and "id:7434" are a name and its value.
                let raw = &text[at..end];
                let split = raw
                    .find(['=', ':'])
                    .filter(|split| *split > 1 && *split + 1 < raw.len() && is_named_value(raw, *split));
                let end = split.map_or(end, |split| at + split + 1);
                found.push(word(text, at, end, opens_line));
                end
            }
        };
        opens_line = false;
        at = end;
    }
    found
}

fn is_named_value(raw: &str, split: usize) -> bool {
    let is_web = raw.contains("://") || raw.contains('@') || raw.contains('?');
    !is_web && raw[..split].bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

/// The mark by which a quotation ends its sentence: "… with “Hello.” Then …".
fn ended(inner: &str) -> String {
    inner.chars().next_back().filter(|last| ".!?".contains(*last)).map(String::from).unwrap_or_default()
}

fn word(text: &str, start: usize, end: usize, opens_line: bool) -> Token {
    let raw = &text[start..end];
    let is_around =
        |letter: char| !letter.is_alphanumeric() && !matches!(letter, '+' | '#' | '$' | '€' | '£' | '/' | '%');
    let trimmed = raw.trim_start_matches(is_around);
    let head = &raw[..raw.len() - trimmed.len()];
    let is_behind = |letter: char| is_around(letter) || letter == '#' && trimmed.len() > 3;
    let bare = trimmed.trim_end_matches(is_behind);
    let bare = bare.strip_suffix("'s").or_else(|| bare.strip_suffix("’s")).unwrap_or(bare);
    let from = start + head.len();
    Token {
        text: bare.to_owned(),
        lower: bare.to_lowercase(),
        start: from,
        end: from + bare.len(),
        tail: trimmed[bare.len()..].to_owned(),
        head: head.to_owned(),
        quoted: false,
        opens_line,
    }
}

/// The inside of a quotation that begins here, and the end of what hangs on its closing mark.
fn quotation(text: &str, at: usize) -> Option<((usize, usize), usize)> {
    let open = text[at..].chars().next()?;
    let close = match open {
        '"' => '"',
        '“' | '„' => '”',
        '«' => '»',
        '‘' => '’',
        '\'' => '\'',
        '`' => '`',
        _ => return None,
    };
    let inside = at + open.len_utf8();
    let mut limit = text.len().min(inside + MAX_QUOTE);
    while !text.is_char_boundary(limit) {
        limit -= 1;
    }
    let is_close = |letter: char| letter == close || (open == '„' && letter == '“');
    // An apostrophe inside a word closes nothing.
    let closes = |(offset, letter): &(usize, char)| {
        let behind = text[inside + offset + letter.len_utf8()..].chars().next();
        is_close(*letter) && (!matches!(close, '\'' | '’') || !behind.is_some_and(char::is_alphanumeric))
    };
    let (offset, letter) = text[inside..limit].char_indices().find(closes)?;
    let inner = (inside, inside + offset);
    let rest = inner.1 + letter.len_utf8();
    let tail = text[rest..].find(|next: char| next.is_whitespace() || next.is_alphanumeric());
    (offset > 0).then(|| (inner, tail.map_or(text.len(), |length| rest + length)))
}

/// Verbs that begin a wish.
pub(crate) const VERBS: &[&str] = &[
    "find",
    "look",
    "locate",
    "identify",
    "get",
    "fetch",
    "retrieve",
    "read",
    "open",
    "visit",
    "scrape",
    "extract",
    "decode",
    "verify",
    "validate",
    "check",
    "confirm",
    "send",
    "write",
    "notify",
    "forward",
    "buy",
    "purchase",
    "build",
    "make",
    "create",
    "generate",
    "design",
    "publish",
    "translate",
    "convert",
    "calculate",
    "compute",
    "investigate",
    "compare",
    "summarize",
    "summarise",
    "tell",
    "give",
    "show",
    "ask",
    "draft",
    "enrich",
    "geocode",
    "schedule",
    "post",
    "submit",
    "download",
    "upload",
    "compile",
    "collect",
    "gather",
    "pick",
    "choose",
    "save",
    "store",
    "add",
    "remove",
    "delete",
    "update",
    "hire",
    "pay",
    "transfer",
    "reserve",
    "click",
    "fill",
    "sign",
    "deploy",
    "resolve",
    "discover",
    "determine",
    "predict",
    "browse",
    "dial",
    "analyze",
    "analyse",
    "estimate",
    "explain",
    "describe",
    "return",
    "attach",
    "use",
    "let",
    "go",
    "reply",
    "share",
    "tweet",
    "invite",
    "remind",
    "navigate",
    "press",
    "type",
    "select",
    "log",
    "cancel",
    "approve",
];

/// Verbs that are nouns as well: only what follows tells.
pub(crate) const NOUN_VERBS: &[&str] = &[
    "email", "e-mail", "mail", "text", "sms", "message", "call", "phone", "ring", "research", "search", "google",
    "list", "report", "order", "book", "host", "draw", "name", "rate", "review", "monitor", "track", "watch", "plan",
    "test", "start", "quote", "set", "launch", "present", "rank", "sort", "filter", "top",
];

const OBJECTS: &[&str] = &[
    "me",
    "him",
    "her",
    "them",
    "it",
    "the",
    "a",
    "an",
    "each",
    "all",
    "this",
    "that",
    "these",
    "those",
    "my",
    "our",
    "us",
    "its",
    "their",
    "his",
    "every",
    "both",
    "for",
    "about",
    "out",
    "up",
    "on",
    "what",
    "whether",
    "results",
    "everything",
    "someone",
    "somebody",
    "everyone",
    "to",
];

pub(crate) const PRONOUNS: &[&str] =
    &["it", "its", "them", "they", "their", "her", "she", "his", "him", "he", "this", "that", "those", "these"];

/// Whether a word begins a wish, judged by the word behind it.
pub(crate) fn is_verb(word: &Token, next: Option<&Token>) -> bool {
    if word.quoted {
        return false;
    }
    let lower = word.lower.as_str();
    if VERBS.contains(&lower) {
        return true;
    }
    let has_object = next.is_some_and(|next| {
        next.quoted
            || next.is_capital()
            || next.has_digit()
            || next.text.contains('@')
            || next.text.contains("://")
            || next.is(OBJECTS)
    });
    NOUN_VERBS.contains(&lower) && has_object && !word.pauses()
}

/// Words that name what was found before.
pub(crate) const RESULTS: &[&str] = &[
    "result",
    "results",
    "report",
    "summary",
    "summaries",
    "findings",
    "answer",
    "answers",
    "list",
    "everything",
    "details",
    "info",
    "information",
    "data",
    "output",
    "link",
    "links",
    "content",
    "overview",
    "brief",
    "briefing",
    "digest",
    "notes",
    "outcome",
    "status",
    "it",
    "that",
    "this",
    "them",
    "those",
    "these",
    "copy",
    "transcript",
    "found",
    "find",
];

/// Words without a meaning of their own in a wish.
pub(crate) const FILLERS: &[&str] = &[
    "a", "an", "the", "to", "at", "in", "on", "of", "for", "from", "with", "by", "as", "and", "or", "please", "me",
    "my", "i", "you", "your", "we", "us", "our", "can", "could", "would", "will", "want", "need", "like", "also",
    "then", "just", "is", "are", "was", "be", "been", "have", "has", "what", "which", "who", "so", "now", "via",
    "using", "short", "quick", "full", "he", "she", "they", "her", "him", "his", "their", "its", "all", "both", "each",
    "i'd", "i'm", "up", "out", "over", "into", "about", "some", "new", "there", "here", "subject", "body", "text",
    "message", "email", "e-mail", "mail", "sms", "note", "line", "titled", "saying", "says", "telling", "address",
    "number", "phone", "call", "title", "back",
];

/// Numbers in words.
pub(crate) fn number_word(word: &str) -> Option<u64> {
    const NUMBERS: &[&str] = &[
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
    ];
    match word {
        "dozen" => Some(12),
        "thirty" => Some(30),
        "forty" => Some(40),
        "fifty" => Some(50),
        "hundred" => Some(100),
        _ => NUMBERS.iter().position(|number| *number == word).map(|at| at as u64),
    }
}

/// The parts of a name in `snake_case` or `camelCase`, in lower case.
pub(crate) fn name_parts(name: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut before = ' ';
    for letter in name.chars().take(100) {
        if letter.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit()) {
            plain.push(' ');
        }
        plain.push(if letter.is_alphanumeric() { letter } else { ' ' });
        before = letter;
    }
    plain.to_lowercase().split_whitespace().map(str::to_owned).collect()
}
