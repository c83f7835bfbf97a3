//! What a service's price pays for of the deployment's model: the platform's fee buys its tokens, so a service that the
//! model does has a least price, and its input a largest size.

use base::money::Usdc;
use gate::work::model::Outline;
use platform::config::ModelPrices;
use tools::spec::Catalog;

use super::service::{Executor, Service, Terms};
use super::soul::Soul;

/// Whose text the model works by.
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

/// What the model does a service by, as far as it is known before it is asked.
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

/// The least price of a service that is offered and that the model does, if it costs less than that.
pub fn too_cheap(catalog: &Catalog, model: Option<ModelPrices>, text: TextOf<'_>, service: &Service) -> Option<Usdc> {
    let (prices, terms) = (model?, &service.terms);
    if !service.active || terms.executor != Executor::Model {
        return None;
    }
    let least = outline(catalog, text, terms, service.description.as_deref()).least_price(prices);
    (terms.price < least).then_some(least)
}

/// The largest input, in bytes of JSON, that these terms pay for, where the model does the work.
pub fn most_input_bytes(
    catalog: &Catalog,
    model: Option<ModelPrices>,
    text: TextOf<'_>,
    terms: &Terms,
    description: Option<&str>,
) -> Option<u64> {
    let prices = model.filter(|_| terms.executor == Executor::Model)?;
    Some(outline(catalog, text, terms, description).most_input_bytes(prices, terms.budget(true).model))
}
