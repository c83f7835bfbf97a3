//! What platforms find us by: the discovery document of ACP, and the manifest of contract §24.

use serde_json::{Value, json};

use super::{CURRENCY, Checkout, VERSION, handlers};
use crate::config::Config;
use crate::store::StoreError;

/// `GET /.well-known/acp.json`.
pub fn discovery(origin: &str) -> Value {
    json!({
        "protocol": {"name": "acp", "version": VERSION, "supported_versions": [VERSION]},
        "api_base_url": format!("{origin}/acp"),
        "transports": ["rest"],
        "capabilities": {"services": ["checkout"], "supported_currencies": [CURRENCY]},
    })
}

/// `GET /.well-known/acp/manifest.json`.
pub async fn manifest(desk: &Checkout, origin: &str) -> Result<Value, StoreError> {
    let config: &Config = &desk.app.config;
    let name = &config.service_name;
    Ok(json!({
        "version": VERSION,
        "seller": {
            "name": name,
            "description": format!("{name} sells work to software agents: tools, and the services of souls"),
            "url": origin,
        },
        "products": desk.products().await?,
        "payment_handlers": handlers::in_manifest(config),
        "supported_capabilities": ["fulfillment_digital"],
        "supported_versions": [VERSION],
        "checkout_url": format!("{origin}/acp/checkout_sessions"),
    }))
}
