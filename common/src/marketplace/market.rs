//! What the marketplace's functions share.

use std::sync::Arc;

use ring::hmac;

use super::moderation::{self, Moderation};
use super::webhook;
use crate::app::{App, Connections};
use crate::config::Config;
use crate::gate::Gate;
use crate::net::PlainHttp;
use crate::store::StoreError;
use crate::tools::Runner;

/// The collaborators of a function of the marketplace.
pub struct Market {
    pub app: App,
    /// Sells services and texts, and finishes jobs.
    pub gate: Arc<Gate>,
    /// A second opinion on what sellers write, if one is configured.
    pub moderation: Option<Moderation>,
    /// Whether services can be run by a model here; where there is none, sellers' workers do the work.
    pub has_model: bool,
    /// What webhook secrets are derived from.
    pub webhook_key: hmac::Key,
}

impl Market {
    pub fn new(gate: Arc<Gate>, http: &PlainHttp) -> Market {
        let app = gate.app.clone();
        let moderation = moderation::configured(&app.config, http);
        // The models' configuration comes with the executor.
        let has_model = false;
        Market { app, moderation, has_model, webhook_key: webhook::key(&gate.quote_key), gate }
    }

    /// The market of a deployed function.
    pub async fn open(config: Arc<Config>, runners: &'static [&'static Runner]) -> Result<Market, StoreError> {
        let http = Connections::open(&config)?.http;
        Ok(Market::new(Arc::new(Gate::open(config, runners).await?), &http))
    }
}
