//! The model use that a service's price covers. The platform's fee pays for the tokens, so a model service has a least
//! price and a largest input.

use base::money::Usdc;
use gate::work::model::Outline;
use platform::config::{FeeShare, ModelPrices};
use tools::spec::Catalog;

use super::service::{Conditions, Executor, Service, Terms};
use super::soul::Soul;

/// The soul's text that instructs the model, by size.
#[derive(Clone, Copy, Debug)]
pub struct TextOf<'a> {
    pub soul: &'a str,
    pub bytes: usize,
}

impl<'a> TextOf<'a> {
    pub fn soul(soul: &'a Soul) -> TextOf<'a> {
        TextOf { soul: soul.slug.as_str(), bytes: soul.text_bytes() }
    }
}

/// The parts of the model's prompt that are known before the call.
pub fn outline<'a>(catalog: &Catalog, text: TextOf<'a>, terms: &'a Terms, description: Option<&'a str>) -> Outline<'a> {
    Outline {
        soul: text.soul,
        soul_bytes: text.bytes,
        service_name: &terms.name,
        service_description: description,
        output_schema: terms.output_schema.as_ref(),
        tools: terms.tools.iter().filter_map(|name| catalog.find(name)).collect(),
    }
}

/// The least price of this service, if it is an active model service and its price is below that; else `None`.
pub fn too_cheap(
    catalog: &Catalog,
    model: Option<ModelPrices>,
    fee: FeeShare,
    text: TextOf<'_>,
    service: &Service,
) -> Option<Usdc> {
    let (prices, terms) = (model?, &service.terms);
    if !service.active || terms.executor != Executor::Model {
        return None;
    }
    let least = outline(catalog, text, terms, service.description.as_deref()).least_price(prices, fee);
    (terms.price < least).then_some(least)
}

/// The largest input that these terms pay for, in bytes of JSON. `None` if no model does the work.
pub fn most_input_bytes(
    catalog: &Catalog,
    model: Option<ModelPrices>,
    fee: FeeShare,
    text: TextOf<'_>,
    terms: &Terms,
    description: Option<&str>,
) -> Option<u64> {
    let prices = model.filter(|_| terms.executor == Executor::Model)?;
    let budget = terms.budget(Conditions { has_model: true, fee });
    Some(outline(catalog, text, terms, description).most_input_bytes(prices, budget.model))
}
