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

/// The value of `include` that also lists unavailable tools.
pub const UNAVAILABLE: &str = "unavailable";
const USUAL_PAGE: usize = 20;
pub const LARGEST_PAGE: usize = 50;
pub const MAX_QUERY: usize = 200;
pub const MAX_CATEGORY: usize = 64;
pub const MAX_CURSOR: usize = 64;

/// One thing that can be bought.
#[derive(Serialize)]
pub struct Found {
    pub name: &'static str,
    pub title: &'static str,
    pub summary: &'static str,
    pub category: &'static str,
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

/// One page of results, best first.
#[derive(Serialize)]
pub struct Page {
    pub tools: Vec<Found>,
    #[serde(rename = "nextCursor", skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Answers a query string. Unavailable tools are listed only with `include=unavailable`.
pub fn discover(catalog: &Catalog, service: &str, query: Option<&str>, lacking: &Lacking) -> Result<Page, ApiError> {
    let mut params = Params::of(query);
    let limit = params.integer("limit", 1, LARGEST_PAGE).unwrap_or(USUAL_PAGE);
    let asked = params.short_text("query", MAX_QUERY).unwrap_or_default().to_lowercase();
    let category = params.short_text("category", MAX_CATEGORY);
    let cursor = params.text("cursor").map(str::to_owned);
    let include = params.choice("include", &[UNAVAILABLE]);
    params.check()?;
    let mark = mark(&asked, category.as_deref(), include, lacking);
    let offset = match &cursor {
        Some(cursor) => offset_of(cursor, &mark).ok_or(ApiError::InvalidCursor)?,
        None => 0,
    };
    let mut found = matching(catalog, &asked, category.as_deref());
    found.retain(|tool| include.is_some() || lacking.can(tool));
    let next_cursor =
        (offset + limit < found.len()).then(|| base64_url(format!("{}.{mark}", offset + limit).as_bytes()));
    let tools = found.into_iter().skip(offset).take(limit).map(|tool| describe(tool, service, lacking)).collect();
    Ok(Page { tools, next_cursor })
}

/// Ties a cursor to one search: it is invalid for another one, and after the available tools changed.
fn mark(asked: &str, category: Option<&str>, include: Option<&str>, lacking: &Lacking) -> String {
    let (category, include) = (category.unwrap_or_default(), include.unwrap_or_default());
    let left_out: String = lacking.names().collect::<Vec<_>>().join(",");
    base64_url(&sha256_parts(&[asked, category, include, &left_out].map(str::as_bytes))[..6])
}

fn offset_of(cursor: &str, mark: &str) -> Option<usize> {
    let text = String::from_utf8(base64_any(cursor).filter(|_| cursor.len() <= MAX_CURSOR)?).ok()?;
    let (offset, of) = text.split_once('.')?;
    (of == mark).then(|| offset.parse().ok()).flatten()
}

/// Tools of the category that match a word, best first, then in the catalog's order.
fn matching(catalog: &Catalog, asked: &str, category: Option<&str>) -> Vec<&'static ToolSpec> {
    let words: Vec<&str> = words(asked).collect();
    let sold = catalog.iter().chain(MARKET).copied().chain([TOP_UP]);
    let mut found: Vec<(u32, &ToolSpec)> = sold
        .filter(|tool| category.is_none_or(|category| category == tool.category))
        .map(|tool| (words.iter().map(|word| weight(tool, word)).sum(), tool))
        .filter(|(weight, _)| *weight > 0 || words.is_empty())
        .collect();
    found.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    found.into_iter().map(|(_, tool)| tool).collect()
}

/// The weight of the place where the word occurs, halved where it is only a prefix.
fn weight(tool: &ToolSpec, asked: &str) -> u32 {
    let fields: Vec<&str> = tool.input.iter().map(|field| field.name).collect();
    let places = [
        (16, tool.name.to_owned()),
        (8, tool.title.to_lowercase()),
        (4, tool.summary.to_lowercase()),
        (4, tool.paths.join(" ").to_lowercase()),
        (2, fields.join(" ").to_lowercase()),
        (2, tool.category.to_lowercase()),
    ];
    places
        .iter()
        .map(|(weight, text)| {
            if words(text).any(|word| word == asked) || text == asked {
                *weight
            } else if asked.len() >= 3 && words(text).any(|word| word.starts_with(asked)) {
                *weight / 2
            } else {
                0
            }
        })
        .max()
        .unwrap_or_default()
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
        for wrong in ["limit=0", "limit=51", "limit=x", "include=all", &format!("query={}", "a".repeat(201))] {
            assert_eq!(everything(wrong).err().map(|error| error.code()), Some("invalid_request"), "{wrong}");
        }
    }
}
