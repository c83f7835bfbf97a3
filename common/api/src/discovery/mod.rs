//! Documents by which agents find the service: what is sold and how to buy it. All are made from the catalog and the
//! configuration, so they agree with the gate. Each is made when it is first requested, once for each origin. Tools that
//! are not available in this deployment ([`tools::availability`]) are left out.
//!
//! | path | for |
//! |---|---|
//! | `/llms.txt` | models that look around: an index |
//! | `/llms-full.txt` | the same with every tool and the guides, in one file |
//! | `/skill.md` | agents that are given one file |
//! | `/guides/{page}` | the guides, as Markdown |
//! | `/.well-known/x402` | directories of paid resources |
//! | `/v1/tools/discover` | SDKs and agents that search ([`search`]) |
//! | `/`, `/pricing`, `/pricing.md` | people; programs get JSON at `/` |

pub mod families;
mod guides;
mod home;
mod page;
pub(crate) mod prices;
pub mod search;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use catalog::UPDATED;
use platform::config::Config;
use platform::http::Kept;
use serde_json::json;
use tools::availability::Lacking;
use tools::spec::{Catalog, TOP_UP, ToolSpec};

use families::Family;
pub use guides::PAGES;

/// How long caches may keep the documents. Prices change with a deployment.
const KEPT_SECS: u32 = 300;

const LLMS: &str = include_str!("texts/llms.md");
/// Two published clients; each runs as it is written here.
const CLIENTS: &str = include_str!("texts/clients.md");
const SKILL: &str = include_str!("texts/skill.md");
/// What the two say of the marketplace, where there is one.
const SELLERS: &str = "- [Sellers]({{origin}}/v1/soul/browse), [how to sell]({{origin}}/guides/marketplace.md), [selling a \
                       program]({{origin}}/guides/programs.md)\n";
const FIND_SELLERS: &str = " Sellers on the marketplace: `GET {{origin}}/v1/soul/search?q=words`.";

/// Facts about this deployment that the documents contain.
#[derive(Clone)]
pub struct Site {
    pub service: String,
    /// Without a trailing slash.
    pub origin: String,
    /// CAIP-2.
    pub network: String,
    pub token: String,
    /// The tools, at the operator's prices.
    pub catalog: &'static Catalog,
    /// Tools to leave out.
    pub lacking: Arc<Lacking>,
}

impl Site {
    pub fn new(config: &Config, catalog: &'static Catalog, origin: &str, lacking: Arc<Lacking>) -> Site {
        Site {
            service: config.service_name.clone(),
            origin: origin.to_owned(),
            network: config.chain.caip2(),
            token: config.chain.token.address.to_string(),
            catalog,
            lacking,
        }
    }

    /// The tools that are available here.
    fn tools(&self) -> impl Iterator<Item = &'static ToolSpec> {
        self.catalog.iter().copied().filter(|tool| self.lacking.can(tool))
    }

    /// Everything with one path and one price: tools and credits. Souls' offers have their own list.
    fn listed(&self) -> impl Iterator<Item = &'static ToolSpec> {
        self.tools().chain([TOP_UP])
    }

    /// Replaces `{{names}}` in a text.
    fn fill(&self, text: &str, more: &[(&str, &str)]) -> String {
        let own: [(&str, &str); 4] =
            [("service", &self.service), ("origin", &self.origin), ("network", &self.network), ("token", &self.token)];
        more.iter()
            .chain(&own)
            .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{{{name}}}}}"), value))
    }
}

/// The documents of one origin, each made when it is first requested.
pub struct Documents {
    pub site: Site,
    llms: OnceLock<Kept>,
    llms_full: OnceLock<Kept>,
    skill: OnceLock<Kept>,
    x402: OnceLock<Kept>,
    home: OnceLock<Kept>,
    pricing_page: OnceLock<Kept>,
    pricing_markdown: OnceLock<Kept>,
    guides: [OnceLock<Kept>; PAGES.len()],
}

impl Documents {
    fn new(site: Site) -> Documents {
        Documents {
            site,
            llms: OnceLock::new(),
            llms_full: OnceLock::new(),
            skill: OnceLock::new(),
            x402: OnceLock::new(),
            home: OnceLock::new(),
            pricing_page: OnceLock::new(),
            pricing_markdown: OnceLock::new(),
            guides: Default::default(),
        }
    }

    pub fn llms(&self) -> &Kept {
        self.llms.get_or_init(|| Kept::markdown(llms(&self.site), KEPT_SECS))
    }

    pub fn llms_full(&self) -> &Kept {
        self.llms_full.get_or_init(|| {
            let site = &self.site;
            let mut full = vec![llms(site), all_tools(site), skill(site), prices::markdown(site)];
            full.extend(PAGES.iter().map(|page| page.text(site)));
            Kept::markdown(full.join("\n---\n\n"), KEPT_SECS)
        })
    }

    pub fn skill(&self) -> &Kept {
        self.skill.get_or_init(|| Kept::markdown(skill(&self.site), KEPT_SECS))
    }

    pub fn x402(&self) -> &Kept {
        self.x402.get_or_init(|| Kept::json(&x402(&self.site), KEPT_SECS))
    }

    /// The page at `/` for people.
    pub fn home(&self) -> &Kept {
        self.home.get_or_init(|| {
            let (page, policy) = home::page(&self.site);
            Kept::page(page, policy, KEPT_SECS).by("accept")
        })
    }

    pub fn pricing_page(&self) -> &Kept {
        self.pricing_page.get_or_init(|| {
            let (page, policy) = prices::page(&self.site);
            Kept::page(page, policy, KEPT_SECS).by("accept")
        })
    }

    pub fn pricing_markdown(&self) -> &Kept {
        self.pricing_markdown.get_or_init(|| Kept::markdown(prices::markdown(&self.site), KEPT_SECS).by("accept"))
    }

    /// The guide of this name, in any case: the guides link to each other by file name.
    pub fn guide(&self, name: &str) -> Option<&Kept> {
        let at = PAGES.iter().position(|page| page.name.eq_ignore_ascii_case(name))?;
        Some(self.guides[at].get_or_init(|| Kept::markdown(PAGES[at].text(&self.site), KEPT_SECS)))
    }
}

/// The documents of the origin that was requested last; most deployments have only one. They are made again when the
/// available tools change.
#[derive(Default)]
pub struct Library(Mutex<Option<Arc<Documents>>>);

impl Library {
    pub fn of(
        &self,
        config: &Config,
        catalog: &'static Catalog,
        origin: &str,
        lacking: Arc<Lacking>,
    ) -> Arc<Documents> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(documents) if documents.site.origin == origin && documents.site.lacking == lacking => {
                documents.clone()
            }
            _ => {
                let documents = Arc::new(Documents::new(Site::new(config, catalog, origin, lacking)));
                *last = Some(documents.clone());
                documents
            }
        }
    }
}

/// An index: what this is, two clients that buy, and links. [`all_tools`] has the tools.
fn llms(site: &Site) -> String {
    let families: String = families::sold(site)
        .iter()
        .map(|(family, tools)| {
            let Family { name, title, about, .. } = family;
            format!("- `{name}`: {title}, {}: {about}\n", families::extent(tools))
        })
        .collect();
    let (first_path, first_body) = first(site);
    let texts: [(&str, &str); 5] = [
        ("clients", CLIENTS),
        ("families", &families),
        ("first_path", first_path),
        ("first_body", &first_body),
        ("sellers", if site.catalog.market.is_empty() { "" } else { SELLERS }),
    ];
    site.fill(LLMS, &texts)
}

/// Every tool with its price, and an example of each call that can be made without a quote.
fn all_tools(site: &Site) -> String {
    let mut tools = String::new();
    let mut examples = String::new();
    for tool in site.listed() {
        let (path, price) = (tool.path(), prices::words(tool));
        tools.push_str(&format!(
            "- [{}]({}{path}): {}. POST, {price}, {}\n",
            tool.title,
            site.origin,
            tool.summary,
            prices::answer(tool)
        ));
        if tool.quote_path.is_none() {
            examples.push_str(&format!("```sh\n# answers 402\n{}\n```\n\n", curl(site, tool)));
        }
    }
    format!("## Tools\n\n{tools}\n## Examples\n\n{}\n", examples.trim_end())
}

fn skill(site: &Site) -> String {
    let families: Vec<String> = families::sold(site).iter().map(|(family, _)| family.title.to_lowercase()).collect();
    let (first_path, first_body) = first(site);
    site.fill(
        SKILL,
        &[
            ("skill_name", &skill_name(&site.service)),
            ("families", &families.join("; ")),
            ("table", &prices::table(site)),
            ("first_path", first_path),
            ("first_body", &first_body),
            ("sellers", if site.catalog.market.is_empty() { "" } else { FIND_SELLERS }),
        ],
    )
}

/// The skill's name as its format demands it: at most 64 lowercase letters, digits and single hyphens, none at the ends.
fn skill_name(service: &str) -> String {
    const MOST: usize = 64 - "-tools".len();
    let lower = service.to_ascii_lowercase();
    let words = lower.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut name = words.collect::<Vec<_>>().join("-");
    name.truncate(MOST);
    let name = name.trim_end_matches('-');
    if name.is_empty() { "tools".to_owned() } else { format!("{name}-tools") }
}

/// Path and body of the call that the documents show: a tool that has a price without a quote.
fn first(site: &Site) -> (&'static str, String) {
    let tool = site.tools().find(|tool| tool.quote_path.is_none()).unwrap_or(site.catalog[0]);
    (tool.path(), tool.example().to_string())
}

/// A call of the tool's example, without payment.
fn curl(site: &Site, tool: &ToolSpec) -> String {
    let key = if tool.needs_key { " -H 'idempotency-key: choose-one'" } else { "" };
    // No example contains a quote character, and a test runs them all.
    format!(
        "curl -s -X POST {}{} -H 'content-type: application/json'{key} -d '{}'",
        site.origin,
        tool.path(),
        tool.example()
    )
}

/// `/.well-known/x402`: paths without prices. The 402 of a call states its price.
fn x402(site: &Site) -> serde_json::Value {
    let resources: Vec<_> = site
        .listed()
        .flat_map(|tool| tool.paths.iter().map(move |path| (tool, path)))
        .map(|(tool, path)| json!({"url": format!("{}{path}", site.origin), "method": "POST", "description": tool.summary}))
        .collect();
    json!({
        "x402Version": 2,
        "kind": "resource-server",
        "name": site.service,
        "resources": resources,
        "updated": UPDATED,
    })
}

#[cfg(test)]
mod tests {
    use catalog::CATALOG;

    use super::*;

    fn site() -> Site {
        Site {
            service: "Agora".to_owned(),
            origin: "https://a.example".to_owned(),
            network: "eip155:8453".to_owned(),
            token: "0xT".to_owned(),
            catalog: &CATALOG,
            lacking: Arc::default(),
        }
    }

    /// Unavailable tools are in no document, all others are in every one.
    #[test]
    fn unavailable_tools_are_left_out() {
        let left_out = CATALOG[0];
        let lacking = Arc::new(Lacking::new([(left_out.name.to_owned(), "key of somebody".to_owned())]));
        let documents = Documents::new(Site { lacking, ..site() });
        let all = [documents.skill(), documents.pricing_markdown(), documents.pricing_page(), documents.x402()];
        for kept in all {
            let text = String::from_utf8(kept.body().to_vec()).unwrap();
            assert!(
                !text.contains(&format!("{}\"", left_out.path())) && !text.contains(&format!("{} ", left_out.path())),
                "{text}"
            );
            assert!(CATALOG[1..].iter().all(|tool| text.contains(tool.path())), "{text}");
        }
    }

    /// Every document lists the catalog, has no placeholder left, and has no broken link.
    #[test]
    fn documents_list_the_catalog_and_have_no_broken_links() {
        let documents = Documents::new(site());
        let text = |kept: &Kept| String::from_utf8(kept.body().to_vec()).unwrap();
        let lists = [documents.llms_full(), documents.skill(), documents.pricing_markdown(), documents.pricing_page()];
        for kept in lists {
            let text = text(kept);
            for tool in CATALOG.iter() {
                assert!(text.contains(tool.title) && text.contains(tool.path()), "{} in {text}", tool.name);
                assert!(text.contains(&prices::words(tool)), "{} in {text}", tool.name);
            }
        }
        for kept in [
            documents.home(),
            documents.llms(),
            documents.skill(),
            documents.pricing_markdown(),
            documents.pricing_page(),
        ] {
            let text = text(kept);
            assert!(!text.contains("{{") && !text.contains("127.0.0.1"), "{text}");
        }
        for kept in [documents.llms(), documents.skill()] {
            let text = text(kept).to_lowercase();
            assert!(text.contains("same value for every retry of") && text.contains("at most 1 usd a payment"));
        }
        let skill = text(documents.skill());
        assert!(skill.starts_with("---\nname: agora-tools\ndescription: "), "{skill}");
        for name in PAGES.iter().map(|page| page.name) {
            let text = text(documents.guide(name).unwrap());
            assert!(!text.contains("](../") && !text.contains("http://127.0.0.1:8402"), "{name}: {text}");
            for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let there = link.starts_with("https://") || documents.guide(link).is_some();
                assert!(there, "{name} leads to {link}");
            }
        }
    }

    /// Models read llms.txt whole, so it stays an index; it has to say what they get wrong otherwise.
    #[test]
    fn llms_txt_is_an_index() {
        let lambda = Site { origin: "https://a1b2c3d4e5.execute-api.us-east-1.amazonaws.com".to_owned(), ..site() };
        let text = llms(&lambda);
        assert!(text.len() < 6_500, "{} bytes", text.len());
        for said in ["@x402/fetch", "x402_requests", "in **seconds**", "/llms-full.txt", "/pricing.md"] {
            assert!(text.contains(said), "{said} in {text}");
        }
        for (family, tools) in families::sold(&lambda) {
            assert!(text.contains(family.title) && text.contains(&families::extent(&tools)), "{}", family.name);
        }
    }

    /// The skill's name and description are within what its format allows, whatever the service is called.
    #[test]
    fn the_skill_has_a_valid_head() {
        let (hundred, cut) = ("A".repeat(100), format!("{}-tools", "a".repeat(58)));
        let longest = format!("https://{}", "h".repeat(255));
        for (service, name) in [
            ("Agora", "agora-tools"),
            ("-My--Shop-", "my-shop-tools"),
            ("--", "tools"),
            (hundred.as_str(), cut.as_str()),
        ] {
            let text = skill(&Site { service: service.to_owned(), origin: longest.clone(), ..site() });
            let head: Vec<&str> = text.lines().take(4).collect();
            let ["---", said, about, "---"] = head[..] else { panic!("{head:?}") };
            assert_eq!(said, format!("name: {name}"));
            let about = about.strip_prefix("description: ").unwrap();
            assert!(about.chars().count() <= 1_024 && !about.contains(": "), "{about}");
        }
    }

    /// `UPDATED` has to change whenever the catalog does.
    #[test]
    fn updated_changes_with_the_catalog() {
        let said = |tool: &ToolSpec| {
            format!("{}|{}|{}|{}", tool.name, tool.paths.join(","), tool.summary, prices::words(tool))
        };
        let all: Vec<String> = site().listed().map(said).collect();
        let digest = const_hex::encode(&base::digest::sha256(all.join("\n").as_bytes())[..6]);
        let wanted = ("2026-11-29T00:00:00Z", "609843d89b53");
        assert_eq!(
            (UPDATED, digest.as_str()),
            wanted,
            "the catalog changed: set UPDATED to today, and this line with it"
        );
    }
}
