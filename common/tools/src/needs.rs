//! Whether this deployment can serve a call; checked before a price is quoted.

use platform::store::StoreError;
use serde_json::{Map, Value};

use super::Toolbox;
use crate::availability::Lacking;
use crate::snapshot;
use crate::spec::{Need, PRODUCTS, ToolSpec};

impl Toolbox {
    /// What is missing for this call, as text that follows "this deployment has no". `None` if nothing is missing.
    pub async fn lacks(&self, tool: &ToolSpec, input: &Map<String, Value>) -> Result<Option<String>, StoreError> {
        let mut missing = Vec::new();
        // Of an own service, all secrets.
        if let Some(own) = tool.own {
            for name in own.secrets() {
                let need = Need::Key(name);
                if !self.has(need).await? {
                    missing.push(need.to_string());
                }
            }
            return Ok((!missing.is_empty()).then(|| missing.join(", and no ")));
        }
        for need in (tool.needs)(tool, input) {
            if self.has(need).await? {
                return Ok(None);
            }
            missing.push(need.to_string());
        }
        Ok((!missing.is_empty()).then(|| missing.join(", and no ")))
    }

    /// The tools that cannot be served whatever the input, with what each lacks. Tools that can use the search index are
    /// left out, because the first page that is read makes them available.
    pub async fn lacking(&self, tools: &[&'static ToolSpec]) -> Result<Lacking, StoreError> {
        let mut lacking = Vec::new();
        for tool in tools.iter().filter(|tool| !(tool.needs)(tool, &Map::new()).contains(&Need::Pages)) {
            if let Some(what) = self.lacks(tool, &Map::new()).await? {
                lacking.push((tool.name.to_owned(), what));
            }
        }
        Ok(Lacking::new(lacking))
    }

    async fn has(&self, need: Need) -> Result<bool, StoreError> {
        match need {
            Need::Key(name) => Ok(self.outbound.key(name).await?.is_some()),
            Need::Provider(capability) => Ok(!self.config.providers.order(capability).is_empty()),
            Need::Mail => Ok(self.config.mail.smtp_url.is_some() || cfg!(feature = "local-outbox")),
            Need::Browser => Ok(self.browser.is_some()),
            Need::Copy(name) => Ok(snapshot::in_force(&*self.blobs, name).await?.is_some()),
            Need::Products => Ok(self.blobs.get(PRODUCTS).await?.is_some()),
            Need::Goods => Ok(!self.config.goods_sellers.is_empty()),
            Need::Pages => self.index.has_pages(&self.db).await,
            Need::Nobody(_) => Ok(false),
        }
    }
}
