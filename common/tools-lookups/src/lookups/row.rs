//! What a lookup is: one literal in one list. Everything else (paths, price, input, output schema, request, cache,
//! attribution) follows from it, so adding a lookup is adding a row (docs/LOOKUPS.md).
//!
//! A row is data. Two places take a function, for the few sources that need one: [`Lookup::derive`] adds members to the
//! input before the request is made, [`Lookup::reshape`] brings an odd answer into a form that the mapping can read.

use std::time::Duration;

use base::clock::Timestamp;
use base::input::{Field, FieldError, Format, Kind, Range};
use base::money::Usdc;
use serde_json::{Map, Value};
use tools::spec::{Price, ToolSpec};

/// A public record that can be looked up.
pub struct Lookup {
    pub spec: ToolSpec,
    pub source: &'static Source,
    /// Asked one after the other. Where there are several, the mapping sees an array of their answers.
    pub requests: &'static [Request],
    /// Points at what is there when something was found; an empty list, text or null there is "nothing found".
    pub found: &'static str,
    pub answer: &'static [Member],
    /// So long an answer is given again instead of asking anew. Zero: never kept.
    pub keep: Duration,
    /// What a reader of the result has to know about its use.
    pub notice: Option<&'static str>,
    /// Adds members to the input before the requests are filled in.
    pub derive: fn(&mut Map<String, Value>, Timestamp),
    /// Brings the answer (or the array of answers) into a form that can be mapped.
    pub reshape: fn(Value, &Map<String, Value>) -> Value,
    /// The operator's own copy of the register, and when it is asked.
    pub snapshot: Option<&'static Snapshot>,
}

/// Who publishes a register, and how it may be asked.
pub struct Source {
    /// The name under which `PROVIDER_URLS` and `PROVIDER_KEYS` know it.
    pub provider: &'static str,
    pub origin: &'static str,
    pub name: &'static str,
    /// For people: where the register is.
    pub url: &'static str,
    pub licence: &'static str,
    /// How often it may be asked in a second, by all callers together.
    pub per_second: f64,
    pub key: Key,
    /// How it says that it could not do what it was asked, where the status does not: such an answer is none, and is not
    /// paid for.
    pub failed: &'static [Failed],
}

/// A sign of failure in an answer, be its status a success or one of [`Request::absent`].
#[derive(Clone, Copy)]
pub enum Failed {
    /// Anything stands here.
    At(&'static str),
    /// A text stands here, where a record would be.
    Text(&'static str),
    /// What stands here begins with none of these words, by which the source says how it went, or that it has no such thing.
    Unless(&'static str, &'static [&'static str]),
}

/// How the deployment's key travels, where the source wants one.
#[derive(Clone, Copy)]
pub enum Key {
    None,
    /// In this header, behind these words. Without a key the source is not asked.
    Header(&'static str, &'static str),
    /// In this header, where there is one: without it the source allows less.
    MayHeader(&'static str, &'static str),
    /// As this member of the query. Without a key the source is not asked.
    Query(&'static str),
    /// The same, where there is one.
    MayQuery(&'static str),
}

/// One question to the source.
///
/// Texts are templates: `{name}` stands for a member of the input, `{name=10}` for one with a default, `{name|upper}` for
/// one in another form ([`super::fill`] has the list). What names a member that was not given is left out.
pub struct Request {
    /// Of these the first that can be filled in is asked, then the next, until one is not absent.
    pub paths: &'static [&'static str],
    pub query: &'static [Pair],
    /// What is posted, as JSON; `None`: a GET.
    pub body: Option<Body>,
    /// Statuses by which the source says that it has no such thing.
    pub absent: &'static [u16],
    /// Statuses beside success whose body is an answer like any other.
    pub also: &'static [u16],
    /// An answer that has nothing by these names is none of this source: a page of errors with status 200. Empty: it is
    /// an array. `{}`: any object will do. `null`: this source says so that it has no such thing.
    pub genuine: &'static [&'static str],
    /// Members of the input for later requests.
    pub take: &'static [Take],
    /// In place of the row's, where one lookup asks two registers.
    pub source: Option<&'static Source>,
}

/// A body made of the input.
pub type Body = fn(&Map<String, Value>) -> Value;

/// A member for later requests, by its name.
pub enum Take {
    /// What the pointer points at; several, joined by commas.
    At(&'static str, &'static str),
    /// What is chosen by the input.
    Pick(&'static str, fn(&Value, &Map<String, Value>) -> Option<String>),
}

/// A part of the query.
pub enum Pair {
    One(&'static str, &'static str),
    /// Name, what stands between, and clauses, of which those are left out that name a member that was not given.
    Joined(&'static str, &'static str, &'static [&'static str]),
}

/// A member of the result.
pub struct Member {
    pub name: &'static str,
    /// JSON-pointer-like: `/a/b/0`, `*` for every element, `|` between alternatives; empty for the value itself.
    pub from: &'static str,
    pub kind: As,
    pub about: &'static str,
}

/// What a member is made into. Whatever does not fit becomes null, or an empty list: never an error.
#[derive(Clone, Copy)]
pub enum As {
    /// Text of at most so many characters, without what does not show.
    Text(usize),
    /// An http or https address.
    Link,
    Integer,
    Number,
    /// `true`, `"Y"`, `1`, …
    Flag,
    /// `YYYY-MM-DD`, of what begins like that or is eight digits.
    Date,
    /// The same of `MM/DD/YYYY`.
    DateMonthFirst,
    /// The same of `DD/MM/YYYY`.
    DateDayFirst,
    /// The same of milliseconds since 1970.
    DateMillis,
    /// At most so many texts.
    Texts(usize),
    /// Objects, as many as the input's `limit` says, or else so many.
    Rows(&'static [Member], usize),
    /// At most so many objects.
    List(&'static [Member], usize),
    /// An object, or null where there is none.
    Object(&'static [Member]),
}

impl As {
    pub fn is_list(self) -> bool {
        matches!(self, As::Rows(..) | As::List(..))
    }
}

/// When the operator's own copy of a register is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is the only source.
    Only,
    /// Before the source; the source where it has nothing.
    First,
    /// Where the source does not answer.
    Fallback,
}

/// The operator's copy of a register (docs/LOOKUPS.md).
pub struct Snapshot {
    pub name: &'static str,
    pub turn: Turn,
    /// Looks the input up and gives an answer in the source's form, for the same mapping.
    pub find: fn(&tools::snapshot::Copy, &Map<String, Value>) -> Value,
}

/// What lookups have in common, to be completed with `..LOOKUP`.
pub const LOOKUP: ToolSpec = ToolSpec {
    group: "knowledge",
    price: Price::Fixed(Usdc::from_micro(5_000)),
    deadline: Duration::from_secs(8),
    derived: Some(super::output),
    needs: super::needs::of_tool,
    ..ToolSpec::DIRECT
};

/// The same of a row.
pub const ROW: Lookup = Lookup {
    spec: LOOKUP,
    source: &NOWHERE,
    requests: &[],
    found: "",
    answer: &[],
    keep: HOURS_12,
    notice: None,
    derive: |_, _| {},
    reshape: |answer, _| answer,
    snapshot: None,
};

/// The same of a request.
pub const GET: Request =
    Request { paths: &[], query: &[], body: None, absent: &[], also: &[], genuine: &[], take: &[], source: None };

/// The same of a source: no key, one question a second, and failures where most say them.
pub const SOURCE: Source = Source {
    provider: "nowhere",
    origin: "https://invalid.invalid",
    name: "",
    url: "",
    licence: "",
    per_second: 1.0,
    key: Key::None,
    failed: &[Failed::At("/error"), Failed::At("/errors")],
};

static NOWHERE: Source = SOURCE;

/// The same of a data set on Socrata (<https://dev.socrata.com/docs/endpoints>): an application token raises its limits.
pub const SODA: Source = Source { key: Key::MayHeader("x-app-token", ""), ..SOURCE };

/// A question to one: its rows come as an array, and its errors as an object.
pub const SODA_GET: Request = Request { genuine: &[""], ..GET };

/// Failures of sources that hand out a search engine's own answers: what it could not finish is not "nothing found".
pub const SEARCH_ENGINE: &[Failed] =
    &[Failed::At("/error"), Failed::At("/detail"), Failed::At("/timed_out"), Failed::At("/_shards/failed")];

pub const MINUTES_5: Duration = Duration::from_secs(300);
pub const HOURS_12: Duration = Duration::from_secs(12 * 3600);
pub const DAYS_7: Duration = Duration::from_secs(7 * 24 * 3600);

/// Works of the US government, which carry no copyright there (17 USC 105).
pub const US_PUBLIC: &str = "US government work, public domain";
pub const NOT_MEDICAL: &str = "For research and information; not medical advice.";

// Members, shortly.
const fn member(name: &'static str, from: &'static str, kind: As) -> Member {
    Member { name, from, kind, about: "" }
}

pub const fn text(name: &'static str, from: &'static str) -> Member {
    member(name, from, As::Text(2_000))
}

pub const fn long_text(name: &'static str, from: &'static str) -> Member {
    member(name, from, As::Text(20_000))
}

pub const fn link(name: &'static str, from: &'static str) -> Member {
    member(name, from, As::Link)
}

pub const fn integer(name: &'static str, from: &'static str) -> Member {
    member(name, from, As::Integer)
}

pub const fn number(name: &'static str, from: &'static str) -> Member {
    member(name, from, As::Number)
}

pub const fn flag(name: &'static str, from: &'static str) -> Member {
    member(name, from, As::Flag)
}

pub const fn date(name: &'static str, from: &'static str) -> Member {
    member(name, from, As::Date)
}

pub const fn made(name: &'static str, from: &'static str, kind: As) -> Member {
    member(name, from, kind)
}

pub const fn texts(name: &'static str, from: &'static str) -> Member {
    member(name, from, As::Texts(50))
}

/// The list that `limit` is about; as many as `usual` where it was not given.
pub const fn rows(name: &'static str, from: &'static str, of: &'static [Member], usual: usize) -> Member {
    member(name, from, As::Rows(of, usual))
}

pub const fn list(name: &'static str, from: &'static str, of: &'static [Member], most: usize) -> Member {
    member(name, from, As::List(of, most))
}

pub const fn object(name: &'static str, from: &'static str, of: &'static [Member]) -> Member {
    member(name, from, As::Object(of))
}

impl Member {
    pub const fn about(mut self, about: &'static str) -> Member {
        self.about = about;
        self
    }
}

// Fields of the input, shortly.
pub const fn words(min: usize, max: usize) -> Kind {
    Kind::Text { min, max, format: Some(&WORDS) }
}

pub const fn formed(format: &'static Format) -> Kind {
    Kind::Text { min: 1, max: 200, format: Some(format) }
}

pub const fn limit(most: i64) -> Field {
    Field::optional("limit", Kind::Integer { min: 1, max: most }, "The most to return")
}

pub const fn whole(min: i64, max: i64) -> Kind {
    Kind::Integer { min, max }
}

pub const fn day(name: &'static str, about: &'static str) -> Field {
    Field::optional(name, formed(&DAY), about)
}

pub const LATITUDE: Field = Field::required(
    "latitude",
    Kind::Number(Range { above: None, min: Some(-90.0), max: Some(90.0) }),
    "Decimal degrees, north is positive",
);
pub const LONGITUDE: Field = Field::required(
    "longitude",
    Kind::Number(Range { above: None, min: Some(-180.0), max: Some(180.0) }),
    "Decimal degrees, east is positive",
);
pub const STATE: Kind = formed(&STATE_CODE);

const fn format(pattern: &'static str, matches: fn(&str) -> bool, message: &'static str) -> Format {
    Format { name: None, pattern: Some(pattern), matches, message }
}

/// One line that says something: no controls, and not only spaces.
pub static WORDS: Format = Format {
    name: None,
    pattern: None,
    matches: |text| !text.trim().is_empty() && !text.chars().any(|letter| letter.is_control()),
    message: "must be one line of visible text",
};
pub static DAY: Format = Format {
    name: Some("date"),
    pattern: None,
    matches: |text| text.len() == 10 && chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok(),
    message: "must be a date, as YYYY-MM-DD",
};
pub static STATE_CODE: Format = format(
    "^[A-Z]{2}$",
    |text| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase()),
    "must be two capital letters",
);
pub static ZIP: Format = format("^[0-9]{5}$", |text| digits(text, 5, 5), "must be five digits");
pub static CIK: Format = format("^[0-9]{1,10}$", |text| digits(text, 1, 10), "must be 1 to 10 digits");
pub static NUMBER_8: Format = format("^[0-9]{1,8}$", |text| digits(text, 1, 8), "must be 1 to 8 digits");
pub static NUMBER_12: Format = format("^[0-9]{1,12}$", |text| digits(text, 1, 12), "must be 1 to 12 digits");
pub static NPI: Format = format("^[0-9]{10}$", |text| digits(text, 10, 10), "must be 10 digits");
pub static CVE: Format = format(
    "^[Cc][Vv][Ee]-[0-9]{4}-[0-9]{4,19}$",
    super::checks::is_cve,
    "must be CVE-, a year, a dash and four or more digits",
);
pub static LEI: Format = format(
    "^[0-9A-Za-z]{20}$",
    |text| text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_alphanumeric()),
    "must be 20 letters and digits",
);
/// A name of a gene, a product code, a slug: safe in every query language there is.
pub static TOKEN: Format = format(
    "^[0-9A-Za-z][0-9A-Za-z._-]{0,79}$",
    |text| {
        text.len() <= 80
            && text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    },
    "must be letters, digits, dots, dashes and underscores",
);

fn digits(text: &str, min: usize, max: usize) -> bool {
    (min..=max).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// For [`ToolSpec::check`]: exactly one of these members is given.
pub fn one_of(input: &Map<String, Value>, names: &[&str]) -> Vec<FieldError> {
    match names.iter().filter(|name| input.contains_key(**name)).count() {
        1 => Vec::new(),
        _ => vec![FieldError::new(names[0], format!("exactly one of {} is needed", names.join(", ")))],
    }
}

/// For [`ToolSpec::check`]: at least one of these members is given.
pub fn any_of(input: &Map<String, Value>, names: &[&str]) -> Vec<FieldError> {
    match names.iter().any(|name| input.contains_key(*name)) {
        true => Vec::new(),
        false => vec![FieldError::new(names[0], format!("at least one of {} is needed", names.join(", ")))],
    }
}
