//! ACP's discovery document, and the product manifest.

use std::time::Duration;

use platform::config::Config;
use platform::http::Kept;
use platform::store::StoreError;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{CURRENCY, Checkout, VERSION, handlers};

/// Cache TTL of the manifest.
const KEPT: Duration = Duration::from_secs(60);

/// The last manifest, with its origin and time. One process usually has one origin.
#[derive(Default)]
pub struct CachedManifest(Mutex<Option<(String, Instant, Kept)>>);

/// `GET /.well-known/acp.json`.
pub fn discovery(origin: &str) -> Value {
    json!({
        "protocol": {"name": "acp", "version": VERSION, "supported_versions": [VERSION]},
        "api_base_url": format!("{origin}/acp"),
        "transports": ["rest"],
        "capabilities": {"services": ["checkout"], "supported_currencies": [CURRENCY]},
    })
}

/// `GET /.well-known/acp/manifest.json`, cached for a minute by each process.
pub async fn manifest(checkout: &Checkout, origin: &str) -> Result<Kept, StoreError> {
    // Held while the manifest is built, so that concurrent requests wait for it.
    let mut last = checkout.manifest.0.lock().await;
    if let Some((of, at, kept)) = &*last
        && of == origin
        && at.elapsed() < KEPT
    {
        return Ok(kept.clone());
    }
    let kept = Kept::json(&made(checkout, origin).await?, KEPT.as_secs() as u32);
    *last = Some((origin.to_owned(), Instant::now(), kept.clone()));
    Ok(kept)
}

async fn made(checkout: &Checkout, origin: &str) -> Result<Value, StoreError> {
    let config: &Config = &checkout.app.config;
    let name = &config.service_name;
    Ok(json!({
        "version": VERSION,
        "seller": {
            "name": name,
            "description": format!("{name} sells work to software agents: tools, and the services of souls"),
            "url": origin,
        },
        "products": checkout.products().await?,
        "payment_handlers": handlers::in_manifest(config),
        "supported_capabilities": ["fulfillment_digital"],
        "supported_versions": [VERSION],
        "checkout_url": format!("{origin}/acp/checkout_sessions"),
    }))
}
