//! What the marketplace's functions share.

use std::sync::Arc;

use ring::hmac;

use super::moderation::{self, Moderation};
use super::webhook;
use super::workshop::Workshop;
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
        let has_model = app.config.model.is_some();
        Market { app, moderation, has_model, webhook_key: webhook::key(&gate.quote_key), gate }
    }

    /// The market of a deployed function.
    pub async fn open(
        connections: &Connections,
        config: Arc<Config>,
        runners: &'static [&'static Runner],
    ) -> Result<Market, StoreError> {
        Ok(Market::handing_over(Gate::open(connections, config, runners).await?, &connections.http))
    }

    /// A market whose gate hands over the texts that are bought; services are the executor's.
    pub fn handing_over(mut gate: Gate, http: &PlainHttp) -> Market {
        let webhook_key = webhook::key(&gate.quote_key);
        gate.engine.sellers = Some(Arc::new(Workshop {
            db: gate.app.db.clone(),
            blobs: gate.app.blobs.clone(),
            clock: gate.app.clock.clone(),
            model: None,
            programs: None,
            toolbox: gate.engine.toolbox.clone(),
            webhook_key,
        }));
        Market::new(Arc::new(gate), http)
    }
}
