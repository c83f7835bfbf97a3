//! Whether this deployment can do what a tool does, known before anybody is told a price (contract §1.3).

use platform::store::StoreError;
use serde_json::{Map, Value};

use super::Toolbox;
use crate::availability::Lacking;
use crate::snapshot;
use crate::spec::{Need, ToolSpec};

impl Toolbox {
    /// What is missing for such a call, in words that follow "this deployment has no"; none where it can be tried.
    pub async fn lacks(&self, tool: &ToolSpec, input: &Map<String, Value>) -> Result<Option<String>, StoreError> {
        let mut missing = Vec::new();
        for need in (tool.needs)(tool, input) {
            if self.has(need).await? {
                return Ok(None);
            }
            missing.push(need.to_string());
        }
        Ok((!missing.is_empty()).then(|| missing.join(", and no ")))
    }

    /// Which of these tools cannot be done at all, whatever their input, and what each lacks. A tool that lacks only pages in
    /// the index is left out: the first page that is read brings one.
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
            Need::Pages => self.index.has_pages(&self.db).await,
            Need::Nobody(_) => Ok(false),
        }
    }
}
