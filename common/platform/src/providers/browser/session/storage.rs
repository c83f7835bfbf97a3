//! Cookies and local storage that outlive a session.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::shared::Tab;
use super::{ActError, Session, page_of, refused};

/// Most origins whose storage is kept, and most characters of it in all.
const MAX_ORIGINS: usize = 20;
const MAX_STORED: usize = 2_000_000;
/// Most cookies that are kept.
const MAX_COOKIES: usize = 1000;

/// What a session leaves behind, and a later one starts with. It holds credentials, so it cannot be printed.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StorageState {
    pub cookies: Vec<Cookie>,
    pub origins: Vec<OriginState>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cookie {
    pub name: String,
    pub value: String,
    pub domain: String,
    pub path: String,
    /// Unix time in seconds; `None` for a cookie of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<f64>,
    pub http_only: bool,
    pub secure: bool,
    /// `Strict`, `Lax` or `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_site: Option<String>,
}

/// The local storage of an origin.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct OriginState {
    pub origin: String,
    pub local_storage: BTreeMap<String, String>,
}

impl Session {
    /// The cookies of all domains, and the local storage of the allowed origins that were opened (at most 20, and
    /// 2,000,000 characters).
    pub async fn state(&self) -> Result<StorageState, ActError> {
        let place = json!({"browserContextId": self.shared.state().place});
        let mut found = self.ask(None, "Storage.getCookies", place).await?.unwrap_or_default();
        let Value::Array(found) = found["cookies"].take() else { return Err(refused("the cookies cannot be read")) };
        let cookies = found.into_iter().take(MAX_COOKIES).filter_map(|mut cookie| {
            if cookie["session"] == true {
                cookie["expires"] = Value::Null;
            }
            serde_json::from_value(cookie).ok()
        });
        let cookies = cookies.collect();
        let known: Vec<String> = self.shared.state().origins.iter().take(MAX_ORIGINS).cloned().collect();
        let mut origins = Vec::new();
        if !known.is_empty() {
            let helper = self.helper().await?;
            let mut room = MAX_STORED;
            for origin in known {
                let stored = self.at_origin(&helper, &origin, "({...localStorage})").await;
                let local_storage: BTreeMap<String, String> =
                    stored.ok().and_then(|stored| serde_json::from_value(stored).ok()).unwrap_or_default();
                let size: usize = local_storage.iter().map(|(key, value)| key.len() + value.len()).sum();
                if size > 0 && size <= room {
                    room -= size;
                    origins.push(OriginState { origin, local_storage });
                }
            }
            self.end_helper(helper).await?;
        }
        Ok(StorageState { cookies, origins })
    }

    /// Sets what an earlier session left. What belongs to origins that are not allowed stays out.
    pub(super) async fn restore(&self, state: StorageState) -> Result<(), ActError> {
        let place = self.shared.state().place.clone();
        if !state.cookies.is_empty() {
            let cookies = json!({"cookies": state.cookies, "browserContextId": place});
            self.ask(None, "Storage.setCookies", cookies).await?;
        }
        let is_allowed =
            |state: &OriginState| page_of(&state.origin).is_some_and(|page| self.shared.rules.allows(&page));
        let origins: Vec<OriginState> = state.origins.into_iter().filter(is_allowed).take(MAX_ORIGINS).collect();
        if origins.is_empty() {
            return Ok(());
        }
        let helper = self.helper().await?;
        for OriginState { origin, local_storage } in origins {
            let set = format!("void Object.assign(localStorage, {})", json!(local_storage));
            self.at_origin(&helper, &origin, &set).await?;
            self.shared.state().origins.insert(origin);
        }
        self.end_helper(helper).await
    }

    /// Evaluates an expression in an empty page of an origin.
    async fn at_origin(&self, helper: &Tab, origin: &str, expression: &str) -> Result<Value, ActError> {
        let page = page_of(origin).ok_or_else(|| refused("the stored origin is not valid"))?;
        self.on(helper, "Page.navigate", json!({"url": page.as_str()})).await?;
        let ask = json!({"expression": expression, "returnByValue": true});
        Ok(self.on(helper, "Runtime.evaluate", ask).await?["result"]["value"].take())
    }

    /// Opens an empty page that is no tab; its documents are empty.
    async fn helper(&self) -> Result<Tab, ActError> {
        self.shared.state().wants_helper = true;
        self.new_page().await?;
        self.wait_for(|shared| shared.state().helper.is_some()).await?;
        let helper = self.shared.state().helper.clone().ok_or_else(|| refused("the browser does not respond"))?;
        self.make_ready(&helper).await?;
        Ok(helper)
    }

    async fn end_helper(&self, helper: Tab) -> Result<(), ActError> {
        self.ask(None, "Target.closeTarget", json!({"targetId": helper.target})).await?;
        self.wait_for(|shared| shared.state().helper.is_none()).await?;
        let shown = self.shared.state().tab().cloned();
        match shown {
            Some(shown) => self.ask(Some(&shown.session), "Page.bringToFront", json!({})).await.map(drop),
            None => Ok(()),
        }
    }
}
