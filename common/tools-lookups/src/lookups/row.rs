//! The type of a row. One literal in one list is a whole lookup: paths, price, input, output schema, request, cache and
//! attribution follow from it, so a new lookup is a new row (docs/LOOKUPS.md).
//!
//! A row is data. Two members take a function, for the few sources that need one: [`Lookup::derive`] adds members to the
//! input before the request is made, and [`Lookup::reshape`] brings an unusual answer into a form that can be mapped.

use std::time::Duration;

use base::clock::Timestamp;
use base::input::{Field, FieldError, Format, Kind, Range};
use base::money::Usdc;
use serde_json::{Map, Value};
use tools::spec::{Price, ToolSpec};

/// One lookup of a public record.
pub struct Lookup {
    pub spec: ToolSpec,
    pub source: &'static Source,
    /// Sent in order. If there are several, the mapping sees an array of their answers.
    pub requests: &'static [Request],
    /// Pointer to the record. An empty list, string or null there means "nothing found".
    pub found: &'static str,
    pub answer: &'static [Member],
    /// Cache TTL. Zero: never cached.
    pub keep: Duration,
    /// A limit on the use of the result, shown to the reader.
    pub notice: Option<&'static str>,
    /// Adds members to the input before the requests are filled in.
    pub derive: fn(&mut Map<String, Value>, Timestamp),
    /// Brings the answer (or the array of answers) into a form that can be mapped.
    pub reshape: fn(Value, &Map<String, Value>) -> Value,
    /// The operator's own copy of the register, and when it is used.
    pub snapshot: Option<&'static Snapshot>,
}

/// The publisher of a register, and how its API may be used.
pub struct Source {
    /// The name in `PROVIDER_URLS` and `PROVIDER_KEYS`.
    pub provider: &'static str,
    pub origin: &'static str,
    pub name: &'static str,
    /// The register's page, for people.
    pub url: &'static str,
    pub licence: &'static str,
    /// Maximum number of requests per second, over all callers.
    pub per_second: f64,
    pub key: Key,
    /// How the source reports a failure that its status does not show. Such an answer is an error and is not charged.
    pub failed: &'static [Failed],
}

/// A sign of failure in an answer whose status is a success or in [`Request::absent`].
#[derive(Clone, Copy)]
pub enum Failed {
    /// Anything at this pointer is a failure.
    At(&'static str),
    /// A string at this pointer, where a record should be, is a failure.
    Text(&'static str),
    /// A failure, unless the value at the pointer is missing, null, or begins with one of these words. They report success
    /// or "no such record".
    Unless(&'static str, &'static [&'static str]),
}

/// How the deployment's key is sent.
#[derive(Clone, Copy)]
pub enum Key {
    None,
    /// In this header, after this prefix. Required.
    Header(&'static str, &'static str),
    /// In this header, if there is a key. Without it the source allows less.
    MayHeader(&'static str, &'static str),
    /// In this query parameter. Required.
    Query(&'static str),
    /// In this query parameter, if there is a key.
    MayQuery(&'static str),
}

/// One request to the source.
///
/// Strings are templates: `{name}` is a member of the input, `{name=10}` has a default, `{name|upper}` another form
/// ([`super::fill`] has the list). A part that names a missing member is left out.
pub struct Request {
    /// The paths that can be filled in are tried in order until one is not absent.
    pub paths: &'static [&'static str],
    pub query: &'static [Pair],
    /// JSON to post; `None`: a GET.
    pub body: Option<Body>,
    /// Statuses that mean "no such record".
    pub absent: &'static [u16],
    /// Statuses besides success that come with a normal answer.
    pub also: &'static [u16],
    /// At least one of these pointers must exist, so that an error page with status 200 does not count as an answer.
    /// Special values: an empty string means that the answer must be an array, `{}` accepts any object, and `null` accepts
    /// null, which this source sends for "no such record".
    pub genuine: &'static [&'static str],
    /// Values for later requests.
    pub take: &'static [Take],
    /// Replaces the row's source, if one lookup asks two registers.
    pub source: Option<&'static Source>,
}

/// A body made from the input.
pub type Body = fn(&Map<String, Value>) -> Value;

/// A value for later requests, with its name.
pub enum Take {
    /// The value at the pointer; several are joined by commas.
    At(&'static str, &'static str),
    /// A value chosen with the help of the input.
    Pick(&'static str, fn(&Value, &Map<String, Value>) -> Option<String>),
}

/// A part of the query string.
pub enum Pair {
    One(&'static str, &'static str),
    /// Name, separator and clauses. Clauses that name a missing member are left out.
    Joined(&'static str, &'static str, &'static [&'static str]),
}

/// A member of the result.
pub struct Member {
    pub name: &'static str,
    /// JSON pointer with `*` for every element and `|` between alternatives; empty for the value itself.
    pub from: &'static str,
    pub kind: As,
    pub about: &'static str,
}

/// Type of a member. A value that does not fit becomes null or an empty list, never an error.
#[derive(Clone, Copy)]
pub enum As {
    /// Text of at most this many characters, without invisible ones.
    Text(usize),
    /// An http or https address.
    Link,
    Integer,
    Number,
    /// `true`, `"Y"`, `1`, …
    Flag,
    /// `YYYY-MM-DD`, from a text that begins like that or is eight digits.
    Date,
    /// A date from `MM/DD/YYYY`.
    DateMonthFirst,
    /// A date from `DD/MM/YYYY`.
    DateDayFirst,
    /// A date from milliseconds since 1970.
    DateMillis,
    /// At most this many texts.
    Texts(usize),
    /// Objects: at most the input's `limit`, or this many without one.
    Rows(&'static [Member], usize),
    /// At most this many objects.
    List(&'static [Member], usize),
    /// An object, or null.
    Object(&'static [Member]),
}

impl As {
    pub fn is_list(self) -> bool {
        matches!(self, As::Rows(..) | As::List(..))
    }
}

/// When the operator's copy of a register is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// It is the only source.
    Only,
    /// Before the source. The source is asked if the copy has nothing.
    First,
    /// After the source failed.
    Fallback,
}

/// The operator's copy of a register (docs/LOOKUPS.md).
pub struct Snapshot {
    pub name: &'static str,
    pub turn: Turn,
    /// Searches the copy and answers in the source's form, for the same mapping.
    pub find: fn(&tools::snapshot::Copy, &Map<String, Value>) -> Value,
}

/// Defaults of a lookup's spec, to be completed with `..LOOKUP`.
pub const LOOKUP: ToolSpec = ToolSpec {
    group: "knowledge",
    price: Price::Fixed(Usdc::from_micro(5_000)),
    deadline: Duration::from_secs(8),
    derived: Some(super::output),
    needs: super::needs::of_tool,
    ..ToolSpec::DIRECT
};

/// Defaults of a row.
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

/// Defaults of a request.
pub const GET: Request =
    Request { paths: &[], query: &[], body: None, absent: &[], also: &[], genuine: &[], take: &[], source: None };

/// Defaults of a source: no key, one request a second, and the usual signs of failure.
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

/// Defaults of a data set on Socrata (<https://dev.socrata.com/docs/endpoints>). An application token raises its limits.
pub const SODA: Source = Source { key: Key::MayHeader("x-app-token", ""), ..SOURCE };

/// A request to Socrata: rows come as an array, errors as an object.
pub const SODA_GET: Request = Request { genuine: &[""], ..GET };

/// Signs of failure in the answers of search engines: a partial search is not "nothing found".
pub const SEARCH_ENGINE: &[Failed] =
    &[Failed::At("/error"), Failed::At("/detail"), Failed::At("/timed_out"), Failed::At("/_shards/failed")];

pub const MINUTES_5: Duration = Duration::from_secs(300);
pub const HOURS_12: Duration = Duration::from_secs(12 * 3600);
pub const DAYS_7: Duration = Duration::from_secs(7 * 24 * 3600);

/// Works of the US government have no copyright there (17 USC 105).
pub const US_PUBLIC: &str = "US government work, public domain";
pub const NOT_MEDICAL: &str = "For research and information; not medical advice.";

// Short constructors of members.
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

/// A list with at most `limit` rows, or `usual` rows if the input has no limit.
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

// Short constructors of input fields.
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

/// One line of visible text.
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
/// A gene's name, a product code, a slug: safe in every query language used here.
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

/// For [`ToolSpec::check`]: exactly one of these members must be given.
pub fn one_of(input: &Map<String, Value>, names: &[&str]) -> Vec<FieldError> {
    match names.iter().filter(|name| input.contains_key(**name)).count() {
        1 => Vec::new(),
        _ => vec![FieldError::new(names[0], format!("exactly one of {} is needed", names.join(", ")))],
    }
}

/// For [`ToolSpec::check`]: at least one of these members must be given.
pub fn any_of(input: &Map<String, Value>, names: &[&str]) -> Vec<FieldError> {
    match names.iter().any(|name| input.contains_key(*name)) {
        true => Vec::new(),
        false => vec![FieldError::new(names[0], format!("at least one of {} is needed", names.join(", ")))],
    }
}
