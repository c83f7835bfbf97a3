//! Checks what each named provider needs: its keys, or an address. A provider that lacks them is passed over, and what is sold
//! in its place may be less. The local stack says it at its start, too.

use catalog::CATALOG;
use platform::config::{Capability, Config};
use tools::charges;
use tools_commerce::providers::shopify;
use tools_email::providers::{ses, smtp};
use tools_network::providers::{local as network, unipile};
use tools_sms::providers::{aws, telnyx, twilio, vapi};
use web::search::vendors;

use super::Report;

const CHECK: &str = "providers";
/// These have checks of their own.
const CHECKED: [Capability; 3] = [Capability::Email, Capability::Sms, Capability::Voice];

pub fn check(config: &Config, report: &mut Report) {
    for (capability, found) in unready(config).into_iter().filter(|(capability, _)| !CHECKED.contains(capability)) {
        let remedy = format!("set what it needs, or take it out of {} (docs/CONFIGURATION.md)", capability.variable());
        report.warn(CHECK, found, remedy);
    }
    // Others stop the start.
    for loss in charges::losses(CATALOG.of(config), config).into_iter().filter(|loss| !loss.is_open()) {
        report.warn(CHECK, loss.to_string(), "nothing, if you mean it; else raise the price in PRICES");
    }
}

/// A sentence for each provider that a variable names, but that lacks something.
pub fn unready(config: &Config) -> Vec<(Capability, String)> {
    let mut found = Vec::new();
    for (capability, variable) in Capability::ALL {
        for name in config.providers.order(capability) {
            if let Some(what) = lack(config, name) {
                found.push((capability, format!("{variable} names {name}, but {what}")));
            }
        }
    }
    found
}

fn lack(config: &Config, provider: &str) -> Option<String> {
    if let Some(key) = keys(provider).into_iter().find(|key| lacks(config, key)) {
        return Some(format!("PROVIDER_KEYS has no key {key}: it is not asked"));
    }
    let has_own_address =
        provider == unipile::NAME || vendors::find(provider).is_some_and(|vendor| vendor.origin.is_empty());
    if has_own_address && !config.providers.urls.contains_key(provider) {
        return Some(format!("PROVIDER_URLS has no address of {provider}: it is not asked"));
    }
    if provider == smtp::NAME && config.mail.smtp_url.is_none() {
        return Some("SMTP_URL is not set: nothing is sent".to_owned());
    }
    let comes_back = [twilio::NAME, vapi::NAME, telnyx::NAME, shopify::NAME, unipile::NAME].contains(&provider);
    (comes_back && config.base_url.is_none())
        .then(|| "PUBLIC_BASE_URL is not set: it cannot reach this service".to_owned())
}

/// What a provider needs in `PROVIDER_KEYS`.
pub fn keys(provider: &str) -> Vec<&str> {
    match provider {
        telnyx::NAME => vec![telnyx::NAME, telnyx::PUBLIC_KEY, telnyx::CONNECTION, telnyx::ASSISTANT],
        vapi::NAME => vec![vapi::NAME, vapi::SECRET],
        unipile::NAME => vec![unipile::NAME, unipile::SECRET],
        // Those of AWS are asked with the function's role, the relay has its password in its address, Overpass and Shopify are open, and
        // the local network is this deployment's own.
        ses::NAME | aws::NAME | smtp::NAME | shopify::NAME | network::NAME | "overpass" => Vec::new(),
        name if vendors::find(name).is_some_and(|vendor| !vendor.needs_key) => Vec::new(),
        name => vec![name],
    }
}

/// A key in a secret is not read here.
pub fn lacks(config: &Config, key: &str) -> bool {
    !config.providers.keys.contains_key(key) && config.providers.keys_secret_arn.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_named_provider_lacks_is_said() {
        let told = |variables: &[(&str, &str)]| -> Vec<String> {
            let variables = [variables, &[("PAY_TO", "0x00000000000000000000000000000000000000ff")]].concat();
            let given =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            unready(&Config::read(given).unwrap()).into_iter().map(|(_, what)| what).collect()
        };
        let nothing: [&str; 0] = [];
        assert_eq!(told(&[]), nothing);
        assert_eq!(told(&[("NETWORK_PROVIDERS", "local")]), nothing);
        let keyless = told(&[
            ("SEARCH_PROVIDERS", "brave,searxng"),
            ("PLACES_PROVIDERS", "overpass,google_places"),
            ("EMAIL_PROVIDERS", "smtp"),
            ("SMS_PROVIDERS", "twilio"),
            ("VOICE_PROVIDERS", "vapi,telnyx"),
            ("NETWORK_PROVIDERS", "unipile"),
        ]);
        let expected = [
            "SEARCH_PROVIDERS names brave, but PROVIDER_KEYS has no key brave: it is not asked",
            "SEARCH_PROVIDERS names searxng, but PROVIDER_URLS has no address of searxng: it is not asked",
            "PLACES_PROVIDERS names google_places, but PROVIDER_KEYS has no key google_places: it is not asked",
            "EMAIL_PROVIDERS names smtp, but SMTP_URL is not set: nothing is sent",
            "SMS_PROVIDERS names twilio, but PROVIDER_KEYS has no key twilio: it is not asked",
            "VOICE_PROVIDERS names vapi, but PROVIDER_KEYS has no key vapi: it is not asked",
            "NETWORK_PROVIDERS names unipile, but PROVIDER_KEYS has no key unipile: it is not asked",
        ];
        assert_eq!(keyless, expected);
        let keys = r#"{"vapi": "k", "vapi_secret": "s"}"#;
        let unreachable = told(&[("VOICE_PROVIDERS", "vapi"), ("PROVIDER_KEYS", keys)]);
        assert_eq!(
            unreachable,
            ["VOICE_PROVIDERS names vapi, but PUBLIC_BASE_URL is not set: it cannot reach this service"]
        );
        let keys = r#"{"unipile": "k", "unipile_webhook": "s"}"#;
        let homeless = told(&[("NETWORK_PROVIDERS", "unipile"), ("PROVIDER_KEYS", keys)]);
        assert_eq!(
            homeless,
            ["NETWORK_PROVIDERS names unipile, but PROVIDER_URLS has no address of unipile: it is not asked"]
        );
        let secret = [("SEARCH_PROVIDERS", "brave"), ("PROVIDER_KEYS_SECRET_ARN", "arn:aws:secretsmanager:x")];
        assert_eq!(told(&secret), nothing, "a key in a secret is not read here");
    }
}
