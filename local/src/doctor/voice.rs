//! Checks what the calls of agents need: who connects those with numbers outside, with which keys, and which of the operator's
//! numbers agents cannot get.

use std::time::Duration;

use gate::app::App;
use platform::config::Config;
use platform::connections::Connections;
use platform::net::FetchPolicy;
use tokio::time::Instant;
use tools_sms::providers::{Listed, of_calls, telnyx, vapi};

use super::Report;
use super::providers::{keys, lacks};

const CHECK: &str = "calls";
/// Longest wait for the provider's list of numbers.
const PATIENCE: Duration = Duration::from_secs(5);

pub fn check(config: &Config, report: &mut Report) {
    let Some(provider) = of_calls(config) else {
        let remedy =
            "set VOICE_PROVIDERS to vapi or telnyx, in settings.json, if agents are to call others (docs/VOICE.md)";
        report.warn(CHECK, "VOICE_PROVIDERS is not set, so numbers outside this deployment are refused", remedy);
        return;
    };
    match keys(provider).iter().find(|name| lacks(config, name)) {
        Some(name) => {
            let remedy = format!("set {name} in PROVIDER_KEYS (docs/VOICE.md)");
            report.fail(CHECK, format!("VOICE_PROVIDERS names {provider}, but PROVIDER_KEYS has no {name}"), remedy);
        }
        None if config.base_url.is_none() => {
            let remedy = format!("set PUBLIC_BASE_URL to the origin that {} can reach", title(provider));
            let found =
                format!("{} cannot ask who answers, because the service does not know its origin", title(provider));
            report.fail(CHECK, found, remedy);
        }
        None => {
            let countries = config.voice.countries.join(", ");
            report.ok(CHECK, format!("calls to others go by {provider}, to {countries}"));
        }
    }
}

fn title(provider: &str) -> &'static str {
    if provider == telnyx::NAME { "Telnyx" } else { "Vapi" }
}

/// Asks the provider for the account's numbers, and Telnyx for the addresses of its application.
pub async fn numbers(app: &App, connections: &Connections, report: &mut Report) {
    let config = &app.config;
    let (Some(base), Some(provider)) = (config.base_url.as_deref(), of_calls(config)) else { return };
    // A finding of the other check.
    if keys(provider).iter().any(|name| lacks(config, name)) {
        return;
    }
    let Ok(toolbox) = app.toolbox(connections, FetchPolicy::default()) else { return };
    let deadline = Instant::now() + PATIENCE;
    let listed = match provider {
        telnyx::NAME => {
            if let Ok(addresses) = telnyx::addresses(&toolbox, deadline).await {
                say_addresses(base, &addresses, report);
            }
            telnyx::list(&toolbox, deadline).await
        }
        _ => vapi::list(&toolbox, deadline).await,
    };
    match listed {
        Ok(listed) => say(base, provider, &listed, report),
        Err(error) => {
            let remedy = format!("run the doctor where {} and its key can be reached", title(provider));
            report.warn(CHECK, format!("could not list the numbers: {provider} {error}"), remedy);
        }
    }
}

/// Whether Telnyx posts to this deployment, and again what was not taken.
fn say_addresses(base: &str, addresses: &telnyx::Addresses, report: &mut Report) {
    let own = telnyx::hook_url(base);
    if addresses.first.as_deref() != Some(own.as_str()) {
        let remedy = format!("set the webhook URL of the Call Control application to {own} (docs/VOICE.md)");
        report.fail(CHECK, "Telnyx does not post to this deployment, so nobody answers calls", remedy);
    } else if addresses.failover.as_deref() != Some(own.as_str()) {
        let remedy = format!("set the failover URL of the Call Control application to {own}, too (docs/VOICE.md)");
        report.warn(CHECK, "Telnyx may not post again what fails, so a call may ring unanswered", remedy);
    }
}

fn say(base: &str, provider: &str, listed: &Listed, report: &mut Report) {
    let Listed { usable, not_ready, elsewhere, .. } = listed;
    let title = title(provider);
    if *elsewhere > 0 {
        let found =
            format!("numbers at Vapi passed over, because this deployment is not asked who answers: {elsewhere}");
        let address = vapi::hook_url(base);
        let remedy = format!("set the server URL of each to {address}, and take its assistant away (docs/VOICE.md)");
        report.warn(CHECK, found, remedy);
    }
    if *not_ready > 0 {
        let found = format!("numbers at {title} passed over, because they are not active: {not_ready}");
        report.warn(CHECK, found, "wait for them, or leave them as they are");
    }
    match usable.len() {
        0 => report.fail(CHECK, format!("no number at {title} is for agents"), "add a number (docs/VOICE.md)"),
        count => report.ok(CHECK, format!("numbers at {title} for agents: {count}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Level;

    #[test]
    fn telnyx_has_to_post_here_and_again_what_fails() {
        let base = "https://calls.example";
        let own = Some(telnyx::hook_url(base));
        let other = Some("https://other.example/v1/providers/telnyx".to_owned());
        for (first, failover, level) in [
            (&own, &own, Level::Ok),
            (&own, &None, Level::Warn),
            (&own, &other, Level::Warn),
            (&other, &own, Level::Fail),
            (&None, &None, Level::Fail),
        ] {
            let mut report = Report::default();
            let addresses = telnyx::Addresses { first: first.clone(), failover: failover.clone() };
            say_addresses(base, &addresses, &mut report);
            assert_eq!(report.worst(), level, "{first:?} {failover:?}");
        }
    }
}
