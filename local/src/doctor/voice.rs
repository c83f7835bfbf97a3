//! Checks what the calls of agents need: who connects those with numbers outside, with which keys, and which of the operator's
//! numbers agents cannot get.

use std::time::Duration;

use gate::app::App;
use platform::config::{Capability, Config};
use platform::connections::Connections;
use platform::net::FetchPolicy;
use tokio::time::Instant;
use tools_sms::providers::vapi;

use super::Report;

const CHECK: &str = "calls";
/// Longest wait for the provider's list of numbers.
const PATIENCE: Duration = Duration::from_secs(5);

pub fn check(config: &Config, report: &mut Report) {
    if !uses_vapi(config) {
        let remedy = "set VOICE_PROVIDERS to vapi, in settings.json, if agents are to call others (docs/VOICE.md)";
        report.warn(CHECK, "VOICE_PROVIDERS is not set, so numbers outside this deployment are refused", remedy);
        return;
    }
    match [vapi::NAME, vapi::SECRET].into_iter().find(|name| lacks(config, name)) {
        Some(name) => {
            let remedy = format!("set {name} in PROVIDER_KEYS (docs/VOICE.md)");
            report.fail(CHECK, format!("VOICE_PROVIDERS names vapi, but PROVIDER_KEYS has no {name}"), remedy);
        }
        None if config.base_url.is_none() => {
            let remedy = "set PUBLIC_BASE_URL to the origin that Vapi can reach";
            report.fail(CHECK, "Vapi cannot ask who answers, because the service does not know its origin", remedy);
        }
        None => report.ok(CHECK, format!("calls to others go by vapi, to {}", config.voice.countries.join(", "))),
    }
}

/// Asks Vapi for the account's numbers.
pub async fn numbers(app: &App, connections: &Connections, report: &mut Report) {
    let config = &app.config;
    let Some(base) = config.base_url.as_deref().filter(|_| uses_vapi(config)) else { return };
    // A finding of the other check.
    if lacks(config, vapi::NAME) {
        return;
    }
    let Ok(toolbox) = app.toolbox(connections, FetchPolicy::default()) else { return };
    match vapi::list(&toolbox, Instant::now() + PATIENCE).await {
        Ok(listed) => say(base, &listed, report),
        Err(error) => {
            let remedy = "run the doctor where Vapi and its key can be reached";
            report.warn(CHECK, format!("could not list the numbers: vapi {error}"), remedy);
        }
    }
}

fn say(base: &str, listed: &vapi::Listed, report: &mut Report) {
    let vapi::Listed { usable, not_ready, elsewhere } = listed;
    if *elsewhere > 0 {
        let found =
            format!("numbers at Vapi passed over, because this deployment is not asked who answers: {elsewhere}");
        let address = vapi::hook_url(base);
        let remedy = format!("set the server URL of each to {address}, and take its assistant away (docs/VOICE.md)");
        report.warn(CHECK, found, remedy);
    }
    if *not_ready > 0 {
        let found = format!("numbers at Vapi passed over, because they are not active: {not_ready}");
        report.warn(CHECK, found, "wait for them, or leave them as they are");
    }
    match usable.len() {
        0 => report.fail(CHECK, "no number at Vapi is for agents", "import a number (docs/VOICE.md)"),
        count => report.ok(CHECK, format!("numbers at Vapi for agents: {count}")),
    }
}

fn uses_vapi(config: &Config) -> bool {
    config.providers.order(Capability::Voice).first().is_some_and(|first| first == vapi::NAME)
}

/// A key in a secret is not read here.
fn lacks(config: &Config, name: &str) -> bool {
    !config.providers.keys.contains_key(name) && config.providers.keys_secret_arn.is_none()
}
