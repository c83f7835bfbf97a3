//! The goods of checkout: tools and services whose price is a whole number of cents, and credits by the dollar. The
//! price always comes from here, never from the agent.

use base::input;
use base::money::Usdc;
use futures_util::future::try_join_all;
use gate::{Listing, ignored};
use http::HeaderMap;
use platform::http::{ApiError, MarketError};
use platform::store::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tools::soul::{EXECUTION, PURCHASE};
use tools::spec::{Answer, Catalog, Price, TOP_UP, ToolSpec};

use super::Checkout;
use super::session::Offer;
use crate::listing::{self, Cursor};
use crate::service::Conditions;
use crate::{offer, service, soul};

/// A cent, in micro-USDC.
const CENT: u64 = 10_000;
/// Credits are sold in units of 1 USDC.
const CREDITS_PIECE: Usdc = Usdc::from_micro(1_000_000);
/// Largest number of units per session: the limit of a top-up.
const MOST_PIECES: u32 = 1_000;
/// Number of souls in the manifest.
const LISTED_SOULS: usize = 20;
/// Limit on the sellers' part of the manifest, in bytes: sellers write the schemas and descriptions, and a manifest is
/// read whole.
const LISTED_BYTES: usize = 512 * 1024;
/// Largest number of hyphens at which an id is split into soul and service.
const MOST_SPLITS: usize = 40;

/// An item that checkout sells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goods {
    Credits,
    /// A tool of the catalog, by its wire name.
    Tool(String),
    /// A soul's text.
    Text(String),
    /// A soul's service.
    Service {
        soul: String,
        service: String,
    },
}

/// The result of looking up an id.
pub enum Found {
    Sold(Offer),
    NotSold,
    /// The id can be split into soul and service at more than one hyphen.
    Ambiguous,
}

/// The amount in cents, if it is a whole number of them.
pub fn cents(amount: Usdc) -> Option<u64> {
    amount.micro().is_multiple_of(CENT).then_some(amount.micro() / CENT)
}

/// Cents, rounded down.
pub fn whole_cents(amount: Usdc) -> u64 {
    amount.micro() / CENT
}

impl Goods {
    /// The spec under which the gate sells it.
    pub fn tool(&self, catalog: &Catalog) -> Option<&'static ToolSpec> {
        match self {
            Goods::Credits => Some(TOP_UP),
            Goods::Tool(name) => catalog.find(name),
            Goods::Text(_) => Some(&PURCHASE),
            Goods::Service { .. } => Some(&EXECUTION),
        }
    }

    pub fn most(&self) -> u32 {
        if *self == Goods::Credits { MOST_PIECES } else { 1 }
    }

    /// The body of the call that buys it.
    pub fn body(&self, input: &Map<String, Value>, quantity: u32) -> Value {
        match self {
            Goods::Credits => {
                let amount = CREDITS_PIECE.micro().saturating_mul(u64::from(quantity));
                json!({"amount": Usdc::from_micro(amount).to_string()})
            }
            Goods::Tool(_) => Value::Object(input.clone()),
            Goods::Text(_) => json!({}),
            Goods::Service { .. } => json!({"input": input}),
        }
    }

    /// The paths of the input's members that nothing reads, at most 50. A service's input goes to its seller as it is.
    pub fn unread(&self, input: &Map<String, Value>, catalog: &Catalog) -> Vec<String> {
        match self {
            Goods::Tool(name) => catalog.find(name).map(|tool| ignored(tool, input)).unwrap_or_default(),
            Goods::Credits | Goods::Text(_) => {
                input::unknown(&[], &[], input).into_iter().map(|unread| unread.path).collect()
            }
            Goods::Service { .. } => Vec::new(),
        }
    }
}

impl Checkout {
    /// The prefix of every id, for example `agora-`.
    fn prefix(&self) -> String {
        format!("{}-", self.app.config.service_name.to_ascii_lowercase())
    }

    /// The goods with this id.
    pub async fn find(&self, id: &str) -> Result<Found, ApiError> {
        let prefix = self.prefix();
        let Some(rest) = id.strip_prefix(&prefix).filter(|_| id.len() <= 255) else { return Ok(Found::NotSold) };
        if rest == "credits" {
            return Ok(Found::Sold(self.credits()));
        }
        if let Some(tool) = self.tools().find(|tool| rest == tool.name.replace('_', "-")) {
            return Ok(Found::Sold(of_tool(tool)));
        }
        if let Some(slug) = rest.strip_prefix("text-") {
            return self.text(slug).await;
        }
        match rest.strip_prefix("soul-") {
            Some(names) => self.service(names).await,
            None => Ok(Found::NotSold),
        }
    }

    fn credits(&self) -> Offer {
        Offer {
            goods: Goods::Credits,
            title: format!("{} credits", self.app.config.service_name),
            summary: "Prepaid credits for the paying wallet, one dollar per unit".to_owned(),
            seller: None,
            unit: CREDITS_PIECE,
        }
    }

    /// Queued tools with a fixed price in whole cents.
    fn tools(&self) -> impl Iterator<Item = &'static ToolSpec> {
        let has_price = |tool: &ToolSpec| cents(tool.price.usual()).is_some_and(|cents| cents > 0);
        let fixed = |tool: &ToolSpec| matches!(tool.price, Price::Fixed(_));
        self.app
            .catalog
            .iter()
            .copied()
            .filter(move |tool| fixed(tool) && has_price(tool) && tool.answer == Answer::Queued)
    }

    async fn text(&self, slug: &str) -> Result<Found, ApiError> {
        match offer::text(&self.market, slug, &HeaderMap::new()).await {
            Ok(text) if text.listing.closed.is_none() && cents(text.price).is_some_and(|cents| cents > 0) => {
                Ok(Found::Sold(Offer {
                    goods: Goods::Text(text.soul.slug.to_string()),
                    title: text.listing.title,
                    summary: text.listing.summary,
                    seller: Some(text.soul.name),
                    unit: text.price,
                }))
            }
            Ok(_) | Err(ApiError::Market(MarketError::NotForSale | MarketError::Unlisted)) => Ok(Found::NotSold),
            Err(error) => Err(error),
        }
    }

    /// `<soul>-<service>`, where both may contain hyphens; or `<soul>/<service>`, which is unambiguous.
    async fn service(&self, names: &str) -> Result<Found, ApiError> {
        let db = &self.app.db;
        let splits: Vec<(&str, &str)> = match names.split_once('/') {
            Some(split) => vec![split],
            None => names.match_indices('-').map(|(at, _)| (&names[..at], &names[at + 1..])).collect(),
        };
        let splits: Vec<_> = splits
            .into_iter()
            .filter(|(soul, service)| soul.len() >= 3 && service.len() >= 3)
            .take(MOST_SPLITS)
            .collect();
        let keys: Vec<_> = splits.iter().map(|(slug, _)| soul::key(slug)).collect();
        let souls: Vec<Option<soul::Soul>> = db.batch_get(&db.tables.souls, &keys, false).await?;
        let mut found = None;
        for ((_, name), soul) in splits.into_iter().zip(souls) {
            let Some(soul) = soul.filter(soul::Soul::is_active) else { continue };
            let Some(service) = service::load(db, soul.slug.as_str(), name).await? else { continue };
            let offer = of_service(&soul, &service, self.market.conditions());
            match offer {
                Some(_) if found.is_some() => return Ok(Found::Ambiguous),
                Some(offer) => found = Some(offer),
                None => {}
            }
        }
        Ok(found.map_or(Found::NotSold, Found::Sold))
    }

    /// The listing of a soul's goods, under the quote in `headers` or else the current terms. Also validates the input
    /// against the service's schema.
    pub async fn listing(
        &self,
        goods: &Goods,
        input: &Map<String, Value>,
        headers: &HeaderMap,
    ) -> Result<Option<Listing>, ApiError> {
        match goods {
            Goods::Credits | Goods::Tool(_) => Ok(None),
            Goods::Text(slug) => Ok(Some(offer::text(&self.market, slug, headers).await?.listing)),
            Goods::Service { soul, service } => {
                let mut execution = offer::execution(&self.market, soul, service, headers).await?;
                execution.check_input("", &Value::Object(input.clone()))?;
                Ok(Some(execution.listing))
            }
        }
    }

    /// The products of the manifest: the platform's own, and those of the busiest souls.
    pub async fn products(&self) -> Result<Vec<Value>, StoreError> {
        let prefix = self.prefix();
        let product = |id: String, offer: &Offer, input: Value| {
            json!({
                "id": format!("{prefix}{id}"),
                "name": offer.title,
                "description": offer.summary,
                "default_price": {"unit_amount": cents(offer.unit), "currency": "usd"},
                "input_schema": input,
            })
        };
        let nothing = || json!({"type": "object", "additionalProperties": false});
        let mut products = vec![product("credits".to_owned(), &self.credits(), nothing())];
        let lacking = self.app.lacking().await;
        for tool in self.tools().filter(|tool| lacking.can(tool)) {
            products.push(product(tool.name.replace('_', "-"), &of_tool(tool), tool.input_schema()));
        }
        let db = &self.app.db;
        let page = listing::page(db, &Cursor::start(None), 0, LISTED_SOULS).await?;
        let services = try_join_all(page.souls.iter().map(|soul| service::of_soul(db, soul.slug.as_str()))).await?;
        let mut bytes = 0;
        let mut list = |products: &mut Vec<Value>, product: Value| {
            bytes += product.to_string().len();
            if bytes <= LISTED_BYTES {
                products.push(product);
            }
        };
        for (soul, services) in page.souls.iter().zip(services) {
            for service in &services {
                if let Some(offer) = of_service(soul, service, self.market.conditions()) {
                    let input = service.terms.input_schema.clone().unwrap_or_else(|| json!({"type": "object"}));
                    list(&mut products, product(format!("soul-{}-{}", soul.slug, service.slug), &offer, input));
                }
            }
            if let Some(unit) = soul.price.filter(|price| cents(*price).is_some_and(|cents| cents > 0)) {
                let (title, summary) = (format!("The text of {}", soul.name), format!("The soul.md of {}", soul.name));
                let offer = Offer { goods: Goods::Text(soul.slug.to_string()), title, summary, seller: None, unit };
                list(&mut products, product(format!("text-{}", soul.slug), &offer, nothing()));
            }
        }
        Ok(products)
    }
}

fn of_tool(tool: &'static ToolSpec) -> Offer {
    Offer {
        goods: Goods::Tool(tool.name.to_owned()),
        title: tool.title.to_owned(),
        summary: tool.summary.to_owned(),
        seller: None,
        unit: tool.price.usual(),
    }
}

fn of_service(soul: &soul::Soul, service: &service::Service, on: Conditions) -> Option<Offer> {
    let sold = service.is_offered() && cents(service.terms.price).is_some_and(|cents| cents > 0);
    let title = format!("{} by {}", service.terms.name, soul.name);
    let kept = service.terms.kept_if_failed_up_to(on);
    let kept = match kept {
        Usdc::ZERO => String::new(),
        kept => format!(
            " (if the work fails, the cost of the paid tools and the model it used is kept, at most {kept} USDC)"
        ),
    };
    sold.then(|| Offer {
        goods: Goods::Service { soul: soul.slug.to_string(), service: service.slug.to_string() },
        summary: format!("{}{kept}", service.description.as_deref().unwrap_or(&title)),
        title,
        seller: Some(soul.name.clone()),
        unit: service.terms.price,
    })
}
