//! `GET /v1/tools/discover`: finds tools by words, with everything a caller needs to know.
//!
//! Every search reads the whole catalog, which is small; only the page size is limited.

use base::choose::{Argument, Ask, Chooser, Tool};
use base::digest::sha256_parts;
use base::encoding::{base64_any, base64_url};
use base::input::Field;
use platform::http::{ApiError, Params};
use serde::Serialize;
use serde_json::{Map, Value};
use tools::availability::Lacking;
use tools::spec::{Answer, Catalog, MARKET, Price, TOP_UP, ToolSpec};
use tools::words::said;

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

/// A tool that does not fit, but shares words with what is asked.
#[derive(Serialize)]
pub struct Near {
    pub name: &'static str,
    /// Its tool name in MCP.
    pub mcp_name: String,
    pub title: &'static str,
    pub summary: &'static str,
}

/// One page of results, best first.
#[derive(Serialize)]
pub struct Page {
    pub tools: Vec<Found>,
    /// Nothing that is available does what is asked: `tools` is empty.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub nothing_fits: bool,
    /// Where nothing fits, what comes nearest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Near>,
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
    let asked = params.short_text("query", MAX_QUERY).unwrap_or_default();
    let category = params.short_text("category", MAX_CATEGORY);
    let family = params.choice("family", &families::NAMES);
    let cursor = params.text("cursor").map(str::to_owned);
    let include = params.choice("include", &[UNAVAILABLE]);
    params.check()?;
    let mark = mark(&asked.to_lowercase(), category.as_deref(), family, include, lacking);
    let offset = match &cursor {
        Some(cursor) => offset_of(cursor, &mark).ok_or(ApiError::InvalidCursor)?,
        None => 0,
    };
    let mut found = matching(catalog, service, &asked);
    found.retain(|(_, tool)| {
        category.as_ref().is_none_or(|category| category == tool.category)
            && family.is_none_or(|family| family == families::of(tool).name)
    });
    let unavailable = if include.is_some() { Vec::new() } else { missing(&found, lacking) };
    found.retain(|(_, tool)| include.is_some() || lacking.can(tool));
    let nothing_fits = Chooser::is_asked(&asked) && !found.iter().any(|(of, _)| of.fits);
    let near = found.iter().take(if nothing_fits { MOST_NEAR } else { 0 });
    let near = near.map(|(_, tool)| Near {
        name: tool.name,
        mcp_name: tool.mcp_name(service),
        title: tool.title,
        summary: tool.summary,
    });
    let near = near.collect();
    found.retain(|(of, _)| of.fits);
    let next_cursor =
        (offset + limit < found.len()).then(|| base64_url(format!("{}.{mark}", offset + limit).as_bytes()));
    let page = found.into_iter().skip(offset).take(limit);
    let tools = page.map(|(_, tool)| describe(tool, service, lacking)).collect();
    Ok(Page { tools, nothing_fits, near, unavailable, next_cursor })
}

/// The unavailable tools that fit at least as well as the best available one. Without words, everything matches alike and
/// none is named.
fn missing(found: &[(Match, &'static ToolSpec)], lacking: &Lacking) -> Vec<Missing> {
    let best = found.iter().find(|(of, tool)| of.fits && lacking.can(tool)).map_or(0.0, |(of, _)| of.score);
    let as_good = found.iter().filter(|(of, _)| of.fits && of.score > 0.0 && of.score >= best);
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

/// Most tools that are named as near where nothing fits.
const MOST_NEAR: usize = 5;

/// How well a tool matches.
#[derive(Clone, Copy, Debug)]
struct Match {
    score: f64,
    fits: bool,
}

/// The tools that share a word with the question, best first; without words, all of them in the catalog's order.
fn matching(catalog: &Catalog, service: &str, asked: &str) -> Vec<(Match, &'static ToolSpec)> {
    let sold: Vec<&'static ToolSpec> = catalog.iter().chain(catalog.market).copied().chain([TOP_UP]).collect();
    if !Chooser::is_asked(asked) {
        return sold.into_iter().map(|tool| (Match { score: 0.0, fits: true }, tool)).collect();
    }
    let abouts: Vec<String> = sold.iter().map(|tool| format!("{}: {}", tool.title, tool.summary)).collect();
    let tools: Vec<Tool> = sold.iter().zip(&abouts).map(|(tool, about)| texts(tool, about)).collect();
    let ranked = Chooser::new(&tools).ranked(asked, Ask::Tool);
    let mut found: Vec<(Match, &'static ToolSpec)> = ranked
        .into_iter()
        .map(|choice| (Match { score: choice.score, fits: choice.fit >= Ask::Tool.floor() }, sold[choice.at]))
        .collect();
    let name = asked.trim().to_lowercase();
    if let Some(at) = found.iter().position(|(_, tool)| tool.name == name || tool.mcp_name(service) == name) {
        let (_, tool) = found.remove(at);
        found.insert(0, (Match { score: f64::INFINITY, fits: true }, tool));
    }
    found
}

fn texts<'a>(tool: &'static ToolSpec, about: &'a str) -> Tool<'a> {
    let also = said(tool.name);
    let argument = |field: &'static Field| Argument { name: field.name, about: field.about, ..Argument::default() };
    Tool { name: tool.name, about, also, arguments: tool.input.iter().map(argument).collect() }
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
            Price::Of { .. } | Price::Own(_) => "input",
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
        example: tool.example(),
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

    /// What the first tool must be; with a bar, either will do.
    #[test]
    fn requests_find_the_tool_that_does_it() {
        let mut wrong = Vec::new();
        for (asked, wanted) in [
            ("find the phone number of a plumber", "local_search"),
            ("buy a phone number", "phone_number"),
            ("I need a number of my own for texts", "phone_number"),
            ("send an email to my customer", "email"),
            ("write a mail to bob@example.com", "email"),
            ("send a text message", "sms"),
            ("text my landlord that I am late", "sms"),
            ("call a restaurant and ask for opening hours", "voice"),
            ("phone somebody and talk to them", "voice"),
            ("search the web for rust tutorials", "web_search"),
            ("google something", "web_search"),
            ("read this web page", "web_read"),
            ("scrape a website as markdown", "web_read"),
            ("extract the text of a PDF", "web_read"),
            ("decode a VIN", "vin_decode"),
            ("what car has this vehicle identification number", "vin_decode"),
            ("recalls of a vehicle", "vehicle_recalls"),
            ("how safe is this car in a crash", "vehicle_crash_ratings"),
            ("mpg of a used car", "vehicle_fuel_economy"),
            ("research a topic and write a report with sources", "research"),
            ("find somebody's email address", "enrich_email"),
            ("verify an email address", "verify_email"),
            ("does this email address exist", "verify_email"),
            ("check the identity of a person with a document", "identity_start"),
            ("find software engineers in Berlin", "research_people"),
            ("profile of a company from its domain", "enrich_company"),
            ("who is this person on LinkedIn", "enrich_profile|research_person"),
            ("SEC filings of Apple", "company_filings"),
            ("revenue a public company reported", "company_financials"),
            ("is this company sanctioned", "company_sanctions"),
            ("check a VAT number", "company_vat_registration|identifier_check"),
            ("stock ticker of a company", "company_ticker"),
            ("court cases about patents", "record_court_cases_find"),
            ("details of a CVE", "record_vulnerability"),
            ("does this npm package have known vulnerabilities", "record_package_vulnerabilities"),
            ("clinical trials for diabetes", "record_clinical_trials_find"),
            ("side effects of a drug", "product_drug_adverse_events|product_drug_label"),
            ("drug shortages", "product_drug_shortages"),
            ("product recalls of baby food", "product_recalls"),
            ("import duty on bicycles", "product_duty_rate"),
            ("weather forecast for a point in the US", "place_weather_forecast"),
            ("earthquakes near San Francisco", "place_earthquakes"),
            ("is this house in a flood zone", "place_flood_zone"),
            ("geocode an address", "place_resolve"),
            ("high tide today", "place_tides"),
            ("convert euros to dollars", "market_exchange_rate"),
            ("exchange rate between USD and EUR", "market_exchange_rate"),
            ("GDP of France", "market_country_indicator"),
            ("amino acid sequence of a protein", "protein_sequence"),
            ("which diseases is a gene associated with", "gene_diseases"),
            ("molecular weight of aspirin", "compound_properties"),
            ("restaurants in Boston", "local_search"),
            ("dentist near me", "local_search"),
            ("government contract opportunities", "gov_solicitations"),
            ("top up my credits", "credits_top_up"),
            ("hire another agent's service", "soul"),
            ("is this IBAN valid", "identifier_check"),
            ("building permits at an address", "place_permits"),
            ("papers by an author", "record_publications_find"),
            ("hospitals in a zip code", "place_hospitals"),
            ("page", "web_read"),
            ("local businesses", "local_search"),
        ] {
            let first = names(&format!("query={}", asked.replace(' ', "+"))).first().copied().unwrap_or("nothing");
            if !wanted.split('|').any(|wanted| wanted == first) {
                wrong.push(format!("{asked}: {first} instead of {wanted}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn nothing_fits_what_nobody_sells() {
        let mut wrong = Vec::new();
        for asked in [
            "translate text",
            "translate this page to French",
            "play some music",
            "play a song by Queen",
            "book a table for two",
            "reserve a table at a restaurant",
            "book a flight to Paris",
            "order a pizza",
            "draw a picture of a cat",
            "generate an image of a sunset",
            "set a timer for ten minutes",
            "remind me tomorrow to buy milk",
            "turn on the lights",
            "what time is it in Tokyo",
            "tell me a joke",
            "write a poem about the sea",
            "solve this equation",
            "resize an image",
            "summarize this text",
            "compile a C program",
            "transcribe an audio recording",
            "create a calendar event",
            "deploy my app to kubernetes",
            "rent a car for the weekend",
            "edit a video",
            "delete my account",
            "buy movie tickets",
            "what is the meaning of life",
            "convert a video to mp3",
            "recipe for chocolate cake",
        ] {
            let page = everything(&format!("query={}", asked.replace(' ', "+"))).unwrap();
            if !page.nothing_fits || !page.tools.is_empty() || page.near.len() > MOST_NEAR {
                wrong.push(format!("{asked}: {:?}", page.tools.iter().map(|tool| tool.name).collect::<Vec<_>>()));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
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
