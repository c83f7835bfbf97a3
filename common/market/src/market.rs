//! What the marketplace's functions share.

use std::sync::Arc;

use gate::Gate;
use gate::app::App;
use platform::config::{Config, ModelPrices};
use platform::connections::Connections;
use platform::net::PlainHttp;
use platform::store::StoreError;
use ring::hmac;
use tools::Runner;
use tools::spec::Catalog;

use super::moderation::{self, Moderation};
use super::service_runner::SoulServiceRunner;
use super::soul;
use super::webhook;

/// The collaborators of a function of the marketplace.
pub struct Market {
    pub app: App,
    /// Sells services and texts, and finishes jobs.
    pub gate: Arc<Gate>,
    /// A second opinion on what sellers write, if one is configured.
    pub moderation: Option<Moderation>,
    /// What the model costs that runs services here; where there is none, sellers' workers do the work.
    pub model: Option<ModelPrices>,
    /// What webhook secrets are derived from.
    pub webhook_key: hmac::Key,
    /// What the keys of registrations are derived from that their callers named.
    pub soul_keys: hmac::Key,
}

impl Market {
    pub fn new(gate: Arc<Gate>, http: &PlainHttp) -> Market {
        let app = gate.app.clone();
        let moderation = moderation::configured(&app.config, http);
        let model = app.config.model.as_ref().map(|model| model.prices);
        let (webhook_key, soul_keys) = (webhook::key(&gate.quote_key), soul::derivation_key(&gate.quote_key));
        Market { app, moderation, model, webhook_key, soul_keys, gate }
    }

    pub fn has_model(&self) -> bool {
        self.model.is_some()
    }

    /// The market of a deployed function.
    pub async fn open(
        connections: &Connections,
        config: Arc<Config>,
        catalog: &'static Catalog,
        runners: &'static [&'static Runner],
    ) -> Result<Market, StoreError> {
        Ok(Market::handing_over(Gate::open(connections, config, catalog, runners).await?, &connections.http))
    }

    /// A market whose gate hands over the texts that are bought; services are the executor's.
    pub fn handing_over(mut gate: Gate, http: &PlainHttp) -> Market {
        let webhook_key = webhook::key(&gate.quote_key);
        let service_runner = SoulServiceRunner::handing_over(&gate.app, &gate.engine.toolbox, webhook_key);
        gate.engine.sellers = Some(Arc::new(service_runner));
        Market::new(Arc::new(gate), http)
    }
}
