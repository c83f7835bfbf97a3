//! `GET /v1/tools/discover`: finds tools by words, with everything a caller needs to know.
//!
//! Every search reads the whole catalog, which is small; only the page size is limited.

use base::digest::sha256_parts;
use base::encoding::{base64_any, base64_url};
use platform::http::{ApiError, Params};
use serde::Serialize;
use serde_json::{Map, Value};
use tools::availability::Lacking;
use tools::spec::{Answer, Catalog, MARKET, Price, TOP_UP, ToolSpec};

use super::families;

/// The value of `include` that also lists unavailable tools.
pub const UNAVAILABLE: &str = "unavailable";
const USUAL_PAGE: usize = 20;
pub const LARGEST_PAGE: usize = 50;
pub const MAX_QUERY: usize = 200;
pub const MAX_CATEGORY: usize = 64;
pub const MAX_CURSOR: usize = 64;
/// Maximum number of unavailable tools that a page names.
pub const MOST_MISSING: usize = 5;

/// One thing that can be bought.
#[derive(Serialize)]
pub struct Found {
    pub name: &'static str,
    pub title: &'static str,
    pub summary: &'static str,
    pub category: &'static str,
    /// The name of its [`Family`](super::families::Family).
    pub family: &'static str,
    pub method: &'static str,
    /// The path to post to; `{names}` are the seller's and the service's slugs.
    pub path: &'static str,
    /// All its paths, including older names.
    pub paths: &'static [&'static str],
    /// Decimal. The lowest price where the seller or the input decides.
    pub price_usdc: String,
    /// `fixed`, `input` (depends on the body) or `seller`.
    pub pricing: &'static str,
    /// `direct` or `queued`.
    pub answer: &'static str,
    /// Its tool name in MCP.
    pub mcp_name: String,
    pub input_schema: Value,
    pub output_schema: Value,
    /// Capabilities of a deployment, any one of which the tool needs. Without one, a call is refused before it is priced.
    pub needs: Vec<String>,
    /// What is missing for it in this deployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    pub example: Value,
}

/// A tool that would have been found, but is not available in this deployment.
#[derive(Serialize)]
pub struct Missing {
    pub name: &'static str,
    pub title: &'static str,
    /// What is missing, as text that follows "this deployment has no".
    pub lacks: String,
}

/// One page of results, best first.
#[derive(Serialize)]
pub struct Page {
    pub tools: Vec<Found>,
    /// What matches the words as well as the best of the listed tools, or better, but is not available here: a caller would
    /// otherwise take the next best for the best.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<Missing>,
    #[serde(rename = "nextCursor", skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Answers a query string. Unavailable tools are listed only with `include=unavailable`.
pub fn discover(catalog: &Catalog, service: &str, query: Option<&str>, lacking: &Lacking) -> Result<Page, ApiError> {
    let mut params = Params::of(query);
    let limit = params.integer("limit", 1, LARGEST_PAGE).unwrap_or(USUAL_PAGE);
    let asked = params.short_text("query", MAX_QUERY).unwrap_or_default().to_lowercase();
    let category = params.short_text("category", MAX_CATEGORY);
    let family = params.choice("family", &families::NAMES);
    let cursor = params.text("cursor").map(str::to_owned);
    let include = params.choice("include", &[UNAVAILABLE]);
    params.check()?;
    let mark = mark(&asked, category.as_deref(), family, include, lacking);
    let offset = match &cursor {
        Some(cursor) => offset_of(cursor, &mark).ok_or(ApiError::InvalidCursor)?,
        None => 0,
    };
    let mut found = matching(catalog, &asked);
    found.retain(|(_, tool)| {
        category.as_ref().is_none_or(|category| category == tool.category)
            && family.is_none_or(|family| family == families::of(tool).name)
    });
    let unavailable = if include.is_some() { Vec::new() } else { missing(&found, lacking) };
    found.retain(|(_, tool)| include.is_some() || lacking.can(tool));
    let next_cursor =
        (offset + limit < found.len()).then(|| base64_url(format!("{}.{mark}", offset + limit).as_bytes()));
    let page = found.into_iter().skip(offset).take(limit);
    let tools = page.map(|(_, tool)| describe(tool, service, lacking)).collect();
    Ok(Page { tools, unavailable, next_cursor })
}

/// The unavailable tools that match at least as well as the best available one. Without words, everything matches alike and
/// none is named.
fn missing(found: &[(Match, &'static ToolSpec)], lacking: &Lacking) -> Vec<Missing> {
    let best = found.iter().find(|(_, tool)| lacking.can(tool)).map_or(Match::default(), |(of, _)| *of);
    let as_good = found.iter().take_while(|(of, _)| *of >= best && *of > Match::default());
    let named = as_good.filter_map(|(_, tool)| {
        lacking.of(tool).map(|lacks| Missing { name: tool.name, title: tool.title, lacks: lacks.to_owned() })
    });
    named.take(MOST_MISSING).collect()
}

/// Ties a cursor to one search: it is invalid for another one, and after the available tools changed.
fn mark(asked: &str, category: Option<&str>, family: Option<&str>, include: Option<&str>, lacking: &Lacking) -> String {
    let [category, family, include] = [category, family, include].map(Option::unwrap_or_default);
    let left_out: String = lacking.names().collect::<Vec<_>>().join(",");
    base64_url(&sha256_parts(&[asked, category, family, include, &left_out].map(str::as_bytes))[..6])
}

fn offset_of(cursor: &str, mark: &str) -> Option<usize> {
    let text = String::from_utf8(base64_any(cursor).filter(|_| cursor.len() <= MAX_CURSOR)?).ok()?;
    let (offset, of) = text.split_once('.')?;
    (of == mark).then(|| offset.parse().ok()).flatten()
}

/// Words that say nothing of what is wanted.
static FILLERS: &[&str] = &[
    "a", "an", "the", "to", "for", "of", "with", "my", "me", "and", "or", "in", "on", "by", "from", "at", "is", "it",
    "i", "want", "need", "please", "can", "you", "do", "how", "some", "someone", "somebody",
];

/// Words that people use, with those of the catalog. They count half of what the catalog's own count.
static SYNONYMS: &[(&str, &[&str])] = &[
    ("mail", &["email"]),
    ("mails", &["email"]),
    ("emails", &["email"]),
    ("text", &["sms"]),
    ("message", &["sms", "email"]),
    ("call", &["voice"]),
    ("phone", &["voice"]),
    ("car", &["vehicle", "vin"]),
    ("scrape", &["read"]),
    ("google", &["search"]),
];

/// How well a tool matches: first by the number of words that it has, then by where it has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Match {
    words: usize,
    weight: u32,
}

/// The tools that match a word, best first, then in the catalog's order; without words, all of them.
fn matching(catalog: &Catalog, asked: &str) -> Vec<(Match, &'static ToolSpec)> {
    let asked = plain(asked);
    let all: Vec<&str> = words(&asked).collect();
    let meant: Vec<&str> = all.iter().copied().filter(|word| !FILLERS.contains(word)).collect();
    // A question of nothing but such words is taken as it is.
    let meant = if meant.is_empty() { all } else { meant };
    let sold = catalog.iter().chain(MARKET).copied().chain([TOP_UP]);
    let mut found: Vec<(Match, &ToolSpec)> = sold
        .map(|tool| {
            let places = places(tool);
            let weights: Vec<u32> =
                meant.iter().map(|word| weight(&places, word)).filter(|weight| *weight > 0).collect();
            (Match { words: weights.len(), weight: weights.iter().sum() }, tool)
        })
        .filter(|(of, _)| of.words > 0 || meant.is_empty())
        .collect();
    found.sort_by_key(|(of, _)| std::cmp::Reverse(*of));
    found
}

/// A tool's texts, with what a word in them weighs.
fn places(tool: &ToolSpec) -> [(u32, String); 6] {
    let fields: Vec<&str> = tool.input.iter().map(|field| field.name).collect();
    [
        (16, tool.name.to_owned()),
        (8, plain(tool.title)),
        (4, plain(tool.summary)),
        (4, plain(&tool.paths.join(" "))),
        (2, plain(&fields.join(" "))),
        (2, plain(tool.category)),
    ]
}

/// The weight of a word or of one that means the same.
fn weight(places: &[(u32, String)], asked: &str) -> u32 {
    let same = SYNONYMS.iter().filter(|(word, _)| *word == asked).flat_map(|(_, same)| same.iter());
    let same = same.map(|word| weight_of(places, word) / 2).max().unwrap_or_default();
    weight_of(places, asked).max(same)
}

/// The weight of the place where the word occurs, doubled where it is the whole text and halved where it is only a prefix.
fn weight_of(places: &[(u32, String)], asked: &str) -> u32 {
    let in_place = |(weight, text): &(u32, String)| {
        if text == asked {
            *weight * 2
        } else if words(text).any(|word| word == asked) {
            *weight
        } else if asked.len() >= 3 && words(text).any(|word| word.starts_with(asked)) {
            *weight / 2
        } else {
            0
        }
    };
    places.iter().map(in_place).max().unwrap_or_default()
}

/// Lower case, with one spelling of e-mail.
fn plain(text: &str) -> String {
    text.to_lowercase().replace("e-mail", "email")
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}

fn describe(tool: &'static ToolSpec, service: &str, lacking: &Lacking) -> Found {
    let is_sellers = MARKET.iter().any(|sold| sold.name == tool.name);
    Found {
        name: tool.name,
        title: tool.title,
        summary: tool.summary,
        category: tool.category,
        family: families::of(tool).name,
        method: "POST",
        path: tool.path(),
        paths: tool.paths,
        price_usdc: tool.price.usual().to_string(),
        pricing: match tool.price {
            _ if is_sellers => "seller",
            Price::Fixed(_) => "fixed",
            Price::Of { .. } => "input",
            Price::Asked { .. } => "quote",
        },
        answer: match tool.answer {
            Answer::Direct => "direct",
            Answer::Queued => "queued",
        },
        mcp_name: tool.mcp_name(service),
        input_schema: tool.input_schema(),
        output_schema: tool.output_schema(),
        needs: (tool.needs)(tool, &Map::new()).iter().map(ToString::to_string).collect(),
        lacks: lacking.of(tool).map(str::to_owned),
        example: (tool.example)(),
    }
}

#[cfg(test)]
mod tests {
    use catalog::CATALOG;

    use super::*;

    fn everything(query: &str) -> Result<Page, ApiError> {
        discover(&CATALOG, "Agora", Some(query), &Lacking::default())
    }

    #[test]
    fn unavailable_tools_are_found_only_on_request() {
        let lacking = Lacking::new([("vin_decode".to_owned(), "key of somebody".to_owned())]);
        let found = |query: &str| discover(&CATALOG, "Agora", Some(query), &lacking).unwrap();
        assert!(found("query=vin").tools.is_empty());
        let shown = found("query=vin&include=unavailable").tools;
        assert_eq!(shown.iter().map(|tool| tool.lacks.as_deref()).collect::<Vec<_>>(), [Some("key of somebody")]);
        // A cursor from before the change would skip or repeat a tool.
        let cursor = everything("limit=1").unwrap().next_cursor.unwrap();
        let other = discover(&CATALOG, "Agora", Some(&format!("limit=1&cursor={cursor}")), &lacking);
        assert_eq!(other.err().map(|error| error.code()), Some("invalid_cursor"));
    }

    #[test]
    fn a_better_match_that_is_unavailable_is_named() {
        let lacking = Lacking::new(["email", "vin_decode"].map(|name| (name.to_owned(), "key of somebody".to_owned())));
        let missing = |query: &str| -> Vec<&'static str> {
            let page = discover(&CATALOG, "Agora", Some(query), &lacking).unwrap();
            assert!(page.tools.iter().all(|tool| lacking.names().all(|name| name != tool.name)), "{query}");
            page.unavailable.iter().map(|missing| missing.name).collect()
        };
        assert_eq!(missing("query=send+an+email"), ["email"]);
        assert_eq!(missing("query=vin"), ["vin_decode"]);
        assert_eq!(missing("query=verify+an+email"), Vec::<&str>::new(), "it matches less than what is found");
        assert_eq!(missing(""), Vec::<&str>::new(), "no words are no question");
        let all = discover(&CATALOG, "Agora", Some("query=vin&include=unavailable"), &lacking).unwrap();
        assert!(all.unavailable.is_empty() && all.tools[0].lacks.is_some(), "it is among the tools already");
    }

    fn names(query: &str) -> Vec<&'static str> {
        everything(query).unwrap().tools.into_iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn words_find_tools_best_first() {
        let all = (CATALOG.len() + MARKET.len() + 1).min(USUAL_PAGE);
        assert_eq!(names("").len(), all);
        assert_eq!(names("query=read+a+PAGE")[0], "web_read");
        assert_eq!(names("query=vin"), ["vin_decode"]);
        assert_eq!(names("query=vehic")[0], "vehicle_recalls");
        assert_eq!(names("query=web_read")[0], "web_read");
        for (query, first) in [
            ("send+an+email", "email"),
            ("E-mail", "email"),
            ("send+a+text+message", "sms"),
            ("call+somebody", "voice"),
            ("buy+a+phone+number", "phone_number"),
            ("verify+an+email", "verify_email"),
            ("how+do+I+search+the+web", "web_search"),
        ] {
            assert_eq!(names(&format!("query={query}"))[0], first, "{query}");
        }
        assert_eq!(names("family=email"), ["email"]);
        assert_eq!(names("family=vehicles&query=vin"), ["vin_decode"]);
        assert_eq!(names("query=zzz"), Vec::<&str>::new());
        assert_eq!(names("query=%21%21").len(), all, "without words, everything is found");
        assert_eq!(names("category=agent_to_agent"), ["soul", "soul_purchase"]);
        assert_eq!(names("category=none"), Vec::<&str>::new());
    }

    #[test]
    fn pages_are_complete_and_foreign_cursors_are_refused() {
        let sold = CATALOG.iter().chain(MARKET).chain([&TOP_UP]);
        let whole: Vec<&str> = sold.map(|tool| tool.name).collect();
        let mut paged = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = everything(&format!("limit=2&cursor={cursor}")).unwrap();
            paged.extend(page.tools.iter().map(|tool| tool.name));
            match page.next_cursor {
                Some(next) => cursor = next,
                None => break,
            }
        }
        assert_eq!(paged, whole);
        let cursor = everything("limit=1").unwrap().next_cursor.unwrap();
        for wrong in
            [format!("query=web&cursor={cursor}"), "cursor=x".to_owned(), format!("cursor={}", "A".repeat(900))]
        {
            assert_eq!(everything(&wrong).err().map(|error| error.code()), Some("invalid_cursor"), "{wrong}");
        }
        for wrong in
            ["limit=0", "limit=51", "limit=x", "include=all", "family=x", &format!("query={}", "a".repeat(201))]
        {
            assert_eq!(everything(wrong).err().map(|error| error.code()), Some("invalid_request"), "{wrong}");
        }
    }
}
