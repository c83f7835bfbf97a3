//! The price of a site: pure arithmetic over the body. Quotes are free, so nothing is fetched for one and no model is asked.

use std::sync::Arc;

use base::ids::AgentId;
use base::input::FieldError;
use base::money::Usdc;
use http::StatusCode;
use platform::http::ApiError;
use platform::store::Db;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tools::Toolbox;
use tools::quoting::{AskedPrice, QuoteRequest, Quoter};
use tools_email::address::Address;
use tools_email::domain;
use uuid::Uuid;

use crate::build::{self, MAX_PAGES, SPEC, USUAL};
use crate::site::{self, Site};

/// Sections that the base price has.
const SECTIONS: usize = 5;
/// In micro-USDC, at the usual price.
const SECTION: u64 = 100_000;
const PAGE: u64 = 250_000;
const FORM: u64 = 250_000;
const SOURCE: u64 = 250_000;
const REFINEMENT: u64 = 500_000;

pub static QUOTER: Quoter = Quoter {
    spec: &SPEC,
    quote: |toolbox, request| Box::pin(quote(toolbox, request)),
    check: |toolbox, input, _, agent, proven| Box::pin(check(toolbox, input, agent, proven)),
    begins: |_| false,
};

/// The lines of a price, in micro-USDC. The work charges by them ([`AskedPrice::locked`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    pub base: u64,
    pub sections: u64,
    pub pages: u64,
    pub form: u64,
    /// Comes back if the source cannot be read.
    pub source: u64,
}

impl Lines {
    /// Of a body that was validated. `usual`: the operator's price of the smallest site, which the others follow.
    pub fn of(input: &Map<String, Value>, usual: Usdc) -> Lines {
        let at = |micro: u64| {
            let scaled = u128::from(micro) * u128::from(usual.micro()) / u128::from(USUAL.micro());
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        if build::is_refinement(input) {
            return Lines { base: at(REFINEMENT), ..Lines::default() };
        }
        let count = |count: usize, each: u64| at(each.saturating_mul(count as u64));
        Lines {
            base: at(USUAL.micro()),
            sections: count(sections(input).saturating_sub(SECTIONS), SECTION),
            pages: count(pages(input).saturating_sub(1), PAGE),
            form: if build::has_form(input) { at(FORM) } else { 0 },
            source: if input.contains_key("source_url") { at(SOURCE) } else { 0 },
        }
    }

    pub fn total(&self) -> Usdc {
        Usdc::from_micro(self.base + self.sections + self.pages + self.form + self.source)
    }
}

/// Sections that are named, or as many as a site has of itself.
fn sections(input: &Map<String, Value>) -> usize {
    let of = |value: Option<&Value>| value.and_then(Value::as_array).map_or(0, Vec::len);
    let of_pages = listed(input).map(|page| of(page.get("sections"))).sum::<usize>();
    match of(input.get("sections")) + of_pages {
        0 => SECTIONS,
        named => named,
    }
}

fn pages(input: &Map<String, Value>) -> usize {
    // The first page is there without being named.
    let others = listed(input).filter(|page| page["path"] != "/").count();
    (others + 1).min(MAX_PAGES + 1)
}

fn listed(input: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    input.get("pages").and_then(Value::as_array).into_iter().flatten()
}

async fn quote(toolbox: Arc<Toolbox>, request: QuoteRequest) -> Result<AskedPrice, ApiError> {
    let input = &request.input;
    let lines = Lines::of(input, request.tool.price.usual());
    let mut context = Map::new();
    if let Some(build) = build::build_id(input) {
        let site = own_site(&toolbox.db, build, request.agent).await?;
        context.insert("product_name".to_owned(), json!(site.name));
        context.insert("is_refine".to_owned(), json!(true));
    } else {
        check_inbox(&toolbox, input, request.agent, request.proven).await?;
        let name = input.get("product").and_then(|product| product["name"].as_str()).unwrap_or_default();
        context.insert("product_name".to_owned(), json!(name));
        let named: Vec<&str> = listed(input).filter_map(|page| page["path"].as_str()).collect();
        if !named.is_empty() {
            context.insert("pages".to_owned(), json!(named));
        }
    }
    let kind = input.get("type").and_then(Value::as_str).unwrap_or(build::KINDS[0]);
    context.insert("type".to_owned(), json!(kind));
    context.insert("analysis".to_owned(), analysis(input, kind));
    context.insert("pricing".to_owned(), pricing(&lines));
    let locked = serde_json::to_value(lines).ok().and_then(|lines| lines.as_object().cloned()).unwrap_or_default();
    Ok(AskedPrice { price: lines.total(), context, locked })
}

/// The members that public clients read.
fn analysis(input: &Map<String, Value>, kind: &str) -> Value {
    let (sections, pages) = (sections(input), pages(input));
    let reasoning = match build::is_refinement(input) {
        true => "A change of a site that is already there.".to_owned(),
        false => format!("{pages} page(s) with about {sections} sections, counted in your brief."),
    };
    json!({
        "inferred_type": kind,
        "estimated_sections": sections,
        "estimated_ai_images": 0,
        "needs_lead_capture": build::has_form(input),
        "needs_video": false,
        "complexity_score": (1 + sections / 5 + pages / 2).min(10),
        "reasoning": reasoning,
    })
}

fn pricing(lines: &Lines) -> Value {
    let usdc = |micro: u64| Usdc::from_micro(micro).to_string();
    json!({
        "base_price": usdc(lines.base),
        "extra_sections_fee": usdc(lines.sections),
        "ai_images_fee": usdc(0),
        "video_embed_fee": usdc(0),
        "lead_capture_fee": usdc(lines.form),
        "source_analysis_fee": usdc(lines.source),
        "custom_domain_fee": usdc(0),
        "extra_pages_fee": usdc(lines.pages),
        "total": lines.total().to_string(),
    })
}

/// The site of a build, if it is the agent's and still there.
///
/// # Errors
/// 404 `build_not_found`.
pub async fn own_site(db: &Db, build: Uuid, agent: Option<AgentId>) -> Result<Site, ApiError> {
    let site = site::load(db, build).await?;
    site.filter(|site| Some(site.agent) == agent && site.is_live()).ok_or_else(|| ApiError::Tool {
        status: StatusCode::NOT_FOUND,
        code: "build_not_found",
        message: "you have no site with this build_id: it is the build_id of its first build, by the same wallet (X-Agent-ID)".to_owned(),
    })
}

async fn check(
    toolbox: &Toolbox,
    input: &Map<String, Value>,
    agent: Option<AgentId>,
    proven: bool,
) -> Result<(), ApiError> {
    match build::build_id(input) {
        Some(build) if agent.is_some() => own_site(&toolbox.db, build, agent).await.map(drop),
        Some(_) => Ok(()),
        None => check_inbox(toolbox, input, agent, proven).await,
    }
}

/// Visitors' messages go to a mailbox of the buyer here, so that a site cannot make somebody else get mail. What addresses an
/// agent has is only told to itself.
async fn check_inbox(
    toolbox: &Toolbox,
    input: &Map<String, Value>,
    agent: Option<AgentId>,
    proven: bool,
) -> Result<(), ApiError> {
    let named = input.get("lead_capture").and_then(|lead| lead["inbox_email"].as_str());
    let (Some(named), Some(agent), true) = (named.filter(|_| build::has_form(input)), agent, proven) else {
        return Ok(());
    };
    let is_own = match Address::parse(named) {
        Ok(address) => domain::owner_of(&toolbox.db, &address).await? == Some(agent),
        Err(_) => false,
    };
    if is_own {
        return Ok(());
    }
    let message = "must be an address of yours at this service (GET /v1/tools/email/inboxes lists them)";
    Err(ApiError::InvalidRequest(vec![FieldError::new("lead_capture.inbox_email", message)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(body: Value) -> u64 {
        Lines::of(body.as_object().unwrap(), USUAL).total().micro()
    }

    #[test]
    fn the_price_follows_from_the_body() {
        let product = json!({"name": "A", "description": "Ten letters and more"});
        assert_eq!(total(json!({"product": product})), 1_000_000);
        let six = json!(["a", "b", "c", "d", "e", "f"]);
        assert_eq!(total(json!({"product": product, "sections": six})), 1_100_000);
        let pages = json!([{"path": "/", "name": "A", "sections": six}, {"path": "/b", "name": "B"}]);
        assert_eq!(total(json!({"product": product, "pages": pages})), 1_350_000);
        let all = json!({"product": product, "lead_capture": {"enabled": true}, "source_url": "https://example.com"});
        assert_eq!(total(all.clone()), 1_500_000);
        assert_eq!(total(json!({"build_id": "x", "changes": "y"})), 500_000);
        // The operator's price scales every line.
        assert_eq!(Lines::of(all.as_object().unwrap(), Usdc::from_micro(2_000_000)).total().micro(), 3_000_000);
    }

    #[test]
    fn no_body_costs_more_than_the_highest_price() {
        let sections: Vec<_> = (0..build::MAX_SECTIONS).map(|_| "a").collect();
        let of_page: Vec<_> = (0..20).map(|_| "a").collect();
        let pages: Vec<_> =
            (0..MAX_PAGES).map(|index| json!({"path": format!("/{index}"), "sections": of_page})).collect();
        let body = json!({"product": {}, "sections": sections, "pages": pages, "lead_capture": {"enabled": true}, "source_url": "x"});
        let tools::spec::Price::Asked { most, .. } = SPEC.price else { panic!() };
        assert!(total(body) <= most.micro());
    }
}
