//! Checks what the texts of agents need: who takes those to numbers outside, with which key, and who tells of them. Then says
//! which of the operator's numbers agents cannot get.

use std::time::Duration;

use gate::app::App;
use platform::config::{Capability, Config};
use platform::connections::Connections;
use platform::net::FetchPolicy;
use tokio::time::Instant;
use tools_sms::providers::{self, twilio};

use super::Report;

const CHECK: &str = "texts";
/// Longest wait for the provider's list of numbers.
const PATIENCE: Duration = Duration::from_secs(5);

pub fn check(config: &Config, report: &mut Report) {
    let provider = config.providers.order(Capability::Sms).first().map(String::as_str);
    if provider.is_some() && !config.prices.tools.contains_key("sms") {
        let remedy = "set sms in PRICES, in settings.json: USDC for a segment (docs/SMS.md)";
        report.warn(CHECK, "a segment is sold for less than providers ask (in the US about 0.008 USD)", remedy);
    }
    match provider {
        None => {
            let remedy = "set SMS_PROVIDERS to aws_sms or twilio, if agents are to text others (docs/SMS.md)";
            report.warn(CHECK, "SMS_PROVIDERS is not set, so numbers outside this deployment are refused", remedy);
        }
        Some("aws_sms") if config.sms.topics.is_empty() || config.sms.configuration_set.is_none() => {
            let remedy = "set SMS_CONFIGURATION_SET to a set that publishes to a topic, and SMS_TOPICS to that topic, in \
                          settings.json (docs/SMS.md)";
            report.warn(CHECK, "nobody tells this deployment of deliveries, and received texts do not arrive", remedy);
        }
        Some("twilio") if lacks_key(config) => {
            let remedy = "set twilio in PROVIDER_KEYS to the account's SID, a colon and its auth token (docs/SMS.md)";
            report.fail(CHECK, "SMS_PROVIDERS names twilio, but there is no key for it", remedy);
        }
        Some("twilio") if config.base_url.is_none() => {
            let remedy = "set PUBLIC_BASE_URL to the origin that Twilio can reach";
            report.fail(CHECK, "Twilio cannot tell of texts, because the service does not know its origin", remedy);
        }
        Some(name) => {
            report.ok(CHECK, format!("texts to others go by {name}, to {}", config.sms.countries.join(", ")));
        }
    }
}

/// Asks Twilio for the account's numbers. AWS names only those that agents get.
pub async fn numbers(app: &App, connections: &Connections, report: &mut Report) {
    let config = &app.config;
    let Some(base) = config.base_url.as_deref().filter(|_| providers::chosen(config) == Some(twilio::NAME)) else {
        return;
    };
    // Both are findings of other checks.
    if lacks_key(config) {
        return;
    }
    let Ok(toolbox) = app.toolbox(connections, FetchPolicy::default()) else { return };
    match twilio::list(&toolbox, Instant::now() + PATIENCE).await {
        Ok(listed) => say(base, &listed, report),
        Err(error) => {
            let remedy = "run the doctor where Twilio and its key can be reached";
            report.warn(CHECK, format!("could not list the numbers: twilio {error}"), remedy);
        }
    }
}

fn say(base: &str, listed: &twilio::Listed, report: &mut Report) {
    let twilio::Listed { usable, without_texts, elsewhere } = listed;
    if *elsewhere > 0 {
        let found = format!("numbers at Twilio passed over, because what they receive is not posted here: {elsewhere}");
        let address = twilio::inbound_url(base);
        let remedy = format!("set \"A message comes in\" of each to {address}, HTTP POST (docs/SMS.md)");
        report.warn(CHECK, found, remedy);
    }
    if *without_texts > 0 {
        let found = format!("numbers at Twilio passed over, because they cannot text: {without_texts}");
        report.warn(CHECK, found, "add SMS to them at Twilio, or leave them as they are");
    }
    match usable.len() {
        0 => report.fail(CHECK, "no number at Twilio is for agents", "buy a number with SMS (docs/SMS.md)"),
        count => report.ok(CHECK, format!("numbers at Twilio for agents: {count}")),
    }
}

/// A key in a secret is not read here.
fn lacks_key(config: &Config) -> bool {
    match config.providers.keys.get("twilio") {
        Some(key) => !key.expose().split_once(':').is_some_and(|(sid, token)| !sid.is_empty() && !token.is_empty()),
        None => config.providers.keys_secret_arn.is_none(),
    }
}
