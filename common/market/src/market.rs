//! State shared by the marketplace's functions.

use std::sync::Arc;

use gate::Gate;
use gate::app::App;
use platform::config::{Config, ModelPrices};
use platform::connections::Connections;
use platform::net::PlainHttp;
use platform::store::StoreError;
use ring::hmac;
use tools::Runner;
use tools::safety::moderation::{self, Moderation};
use tools::spec::Catalog;

use super::service::Conditions;
use super::service_runner::SoulServiceRunner;
use super::soul;
use super::webhook;

/// Everything a marketplace function needs.
pub struct Market {
    pub app: App,
    /// Sells services and texts, and finishes jobs.
    pub gate: Arc<Gate>,
    /// The moderation server, if one is configured.
    pub moderation: Option<Moderation>,
    /// Prices of the model that runs services here. Without a model, sellers' workers do the work.
    pub model: Option<ModelPrices>,
    /// Webhook secrets are derived from this key.
    pub webhook_key: hmac::Key,
    /// Soul keys of registrations with an idempotency key are derived from this key.
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

    /// The conditions of new sales.
    pub fn conditions(&self) -> Conditions {
        Conditions { has_model: self.has_model(), fee: self.app.config.prices.platform_fee }
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

    /// A market that delivers texts itself. Services are run by another function.
    pub fn handing_over(mut gate: Gate, http: &PlainHttp) -> Market {
        let webhook_key = webhook::key(&gate.quote_key);
        let service_runner = SoulServiceRunner::handing_over(&gate.app, &gate.engine.toolbox, webhook_key);
        gate.engine.sellers = Some(Arc::new(service_runner));
        Market::new(Arc::new(gate), http)
    }
}
