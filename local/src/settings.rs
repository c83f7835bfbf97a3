//! Variables that only the local stack reads. They are checked together with the service's own before anything starts.

use std::collections::HashMap;

use catalog::CATALOG;
use platform::config::{Config, ConfigErrors, SettingsFile, SettlementConfig};
use serde_json::Value;
use tokio::net::TcpListener;
use tools::charges;

use crate::{Error, doctor};

/// The names of all variables that only the local stack reads, also elsewhere than here.
pub const READ: [&str; 6] =
    ["PORT", "SMTP_LISTEN_PORT", "LOCAL_FETCH_ALLOW", "BROWSER_PATH", "LOCAL_OPEN_TO_PAGES", "ANVIL_BIN"];

pub struct Settings {
    /// `PORT`: the gateway's port; any free one if not set.
    pub port: u16,
    /// `SMTP_LISTEN_PORT`: the port for inbound mail, 0 for any free one. If not set, 2525, or a free one if that is in use.
    pub smtp_port: Option<u16>,
    /// `LOCAL_FETCH_ALLOW`: host:port pairs that may be read despite a private address.
    pub fetch_allow: Vec<(String, u16)>,
    /// `LOCAL_OPEN_TO_PAGES`: `true` allows web pages of other origins to call, as a deployed service does.
    pub open_to_pages: bool,
}

impl Settings {
    pub fn read(environment: &HashMap<String, String>) -> Result<Settings, ConfigErrors> {
        let mut problems = Vec::new();
        let text = |name: &str| environment.get(name).map(|text| text.trim()).filter(|text| !text.is_empty());
        let mut port = |name: &str| {
            let port = text(name)?;
            Some(port.parse().unwrap_or_else(|_| {
                problems.push(format!("{name} must be a port number (got {port:?})"));
                0
            }))
        };
        let (port, smtp_port) = (port("PORT").unwrap_or(0), port("SMTP_LISTEN_PORT"));
        let mut fetch_allow = Vec::new();
        for pair in
            text("LOCAL_FETCH_ALLOW").unwrap_or_default().split(',').map(str::trim).filter(|pair| !pair.is_empty())
        {
            match pair.rsplit_once(':').and_then(|(host, port)| Some((host.to_ascii_lowercase(), port.parse().ok()?))) {
                Some(pair) => fetch_allow.push(pair),
                None => problems.push(format!("LOCAL_FETCH_ALLOW must be host:port pairs (got {pair:?})")),
            }
        }
        let open_to_pages = text("LOCAL_OPEN_TO_PAGES").is_some_and(|text| {
            if !["true", "false"].contains(&text) {
                problems.push(format!("LOCAL_OPEN_TO_PAGES must be true or false (got {text:?})"));
            }
            text == "true"
        });
        if problems.is_empty() {
            Ok(Settings { port, smtp_port, fetch_allow, open_to_pages })
        } else {
            Err(ConfigErrors(problems))
        }
    }

    pub async fn listen(&self) -> Result<TcpListener, Error> {
        TcpListener::bind(("127.0.0.1", self.port))
            .await
            .map_err(|error| format!("cannot listen on port {} ({error}); set PORT to another", self.port).into())
    }
}

/// Checks the service's and the local stack's variables, before anything starts. Values that the local chain will provide are
/// assumed. Returns what to warn of.
///
/// # Errors
/// All problems.
pub fn check(environment: &HashMap<String, String>, file: &SettingsFile) -> Result<Vec<String>, ConfigErrors> {
    let mut problems = Settings::read(environment).err().map(|errors| errors.0).unwrap_or_default();
    let provided = [("PAY_TO", "0x00000000000000000000000000000000000000ff"), ("CHAIN_RPC_URL", "http://127.0.0.1:1")];
    let has_own_chain = environment.contains_key("CHAIN_RPC_URL") || file.get("CHAIN_RPC_URL").is_some();
    let given = |name: &str| {
        let given = environment.get(name).cloned();
        let provided = provided.iter().find(|(provided, _)| *provided == name && !has_own_chain);
        given.or_else(|| provided.map(|(_, value)| (*value).to_owned()))
    };
    let (config, of_service) = Config::examined(given, file);
    problems.extend(of_service.into_iter().map(|problem| match problem.as_str() {
        "PAY_TO is required" => format!("{problem}: {OWN_CHAIN}"),
        _ => problem,
    }));
    let has_relayer = config.aws.relayer_key.is_some() || config.aws.relayer_secret_arn.is_some();
    let is_malformed = problems.iter().any(|problem| problem.starts_with("RELAYER_PRIVATE_KEY "));
    if has_own_chain && !has_relayer && !is_malformed && matches!(config.settlement, SettlementConfig::Relayer) {
        problems.push(format!("RELAYER_PRIVATE_KEY (or FACILITATOR_URL) is required: {OWN_CHAIN}"));
    }
    let catalog = CATALOG.of(&config);
    problems.extend(catalog.unknown(&config));
    problems.extend(out_of_reach(environment, file));
    if !problems.is_empty() {
        return Err(ConfigErrors(problems));
    }
    let misspelt = doctor::misspelt(environment).into_iter();
    let misspelt = misspelt.map(|(name, meant)| format!("nothing reads the variable {name}; is it {meant}?"));
    let unready = doctor::providers::unready(&config).into_iter().map(|(_, what)| what);
    // What is sold below cost, and is meant so.
    let losses = charges::losses(catalog, &config).into_iter().map(|loss| loss.to_string());
    Ok(unready.chain(losses).chain(misspelt).collect())
}

/// Why the local stack's wallets are not there.
const OWN_CHAIN: &str = "CHAIN_RPC_URL names a chain of your own, so the local chain and its wallets are not started";

/// Providers in AWS, with the variables that name them. Functions ask them with the key of their role, at
/// `AWS_ENDPOINT_URL` if it is set. Here that is the embedded database, and the keys open nothing in AWS.
const IN_AWS: [(&str, &str); 3] =
    [("EMAIL_PROVIDERS", "ses"), ("SMS_PROVIDERS", "aws_sms"), ("MODEL_PROVIDER", "bedrock")];

/// The providers in AWS that a variable names although no other address replaces theirs. The settings file may name them: it
/// is for deployments, too.
fn out_of_reach(environment: &HashMap<String, String>, file: &SettingsFile) -> Vec<String> {
    let given = |name: &str| environment.get(name).filter(|text| !text.trim().is_empty()).cloned();
    let set = |name: &str| given(name).or_else(|| file.get(name));
    if set("AWS_ENDPOINT_URL").is_some() {
        return Vec::new();
    }
    let urls: Value = serde_json::from_str(&set("PROVIDER_URLS").unwrap_or_default()).unwrap_or_default();
    let is_replaced = |provider: &str| match provider {
        "bedrock" => set("MODEL_URL").is_some(),
        other => urls.get(other).is_some(),
    };
    // Only the first of a list is asked.
    let is_named = |variable: &str, provider: &str| {
        let names = given(variable).unwrap_or_default();
        names.split(',').map(str::trim).find(|name| !name.is_empty()) == Some(provider)
    };
    let named = IN_AWS.iter().filter(|(variable, provider)| is_named(variable, provider) && !is_replaced(provider));
    let problem = |(variable, provider): &(&str, &str)| {
        format!("{variable}={provider} works deployed only: the local stack has no role in AWS")
    };
    named.map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_listed_at_once() {
        let environment = [
            ("PORT", "99999"),
            ("SMTP_LISTEN_PORT", "smtp"),
            ("LOCAL_FETCH_ALLOW", "localhost"),
            ("QUOTE_TTL_SECONDS", "x"),
            ("PAY_TO", "me"),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let none = SettingsFile::default();
        let problems = check(&environment, &none).unwrap_err().0;
        assert_eq!(problems.len(), 5, "{problems:?}");
        assert!(check(&HashMap::new(), &none).is_ok());
        let own_chain = HashMap::from([("CHAIN_RPC_URL".to_owned(), "http://127.0.0.1:8545".to_owned())]);
        let problems = check(&own_chain, &none).unwrap_err().0;
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].starts_with("PAY_TO is required: CHAIN_RPC_URL names a chain of your own"), "{problems:?}");
        assert!(problems[1].starts_with("RELAYER_PRIVATE_KEY (or FACILITATOR_URL) is required"), "{problems:?}");
    }

    fn of(variables: &[(&str, &str)]) -> Result<Vec<String>, Vec<String>> {
        let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        check(&environment, &SettingsFile::default()).map_err(|errors| errors.0)
    }

    #[test]
    fn unknown_names_are_listed_with_malformed_values() {
        let problems = of(&[
            ("PRICES", r#"{"nope": "1", "web_read": "x", "nor_this": "x"}"#),
            ("SEARCH_PROVIDERS", "gogle"),
            ("PEOPLE_PROVIDERS", "baz"),
            ("SMS_PROVIDERS", "foo"),
            ("VOICE_PROVIDERS", "bar"),
            ("PROVIDER_KEYS", r#"{"brve": "k"}"#),
            ("PROVIDER_CALLS_PER_DAY", "foo"),
            ("ALLOWED_ORIGINS", "foo"),
            ("EMAIL_DOMAINS", "not a domain"),
            ("SMS_COUNTRIES", "XX"),
        ])
        .unwrap_err();
        for told in [
            "PRICES names \"nope\"",
            "PRICES web_read ",
            "PRICES nor_this ",
            "PRICES names \"nor_this\"",
            "SEARCH_PROVIDERS names \"gogle\"",
            "PEOPLE_PROVIDERS names \"baz\"",
            "SMS_PROVIDERS names \"foo\"",
            "VOICE_PROVIDERS names \"bar\"",
            "PROVIDER_KEYS names \"brve\"",
            "PROVIDER_CALLS_PER_DAY ",
            "ALLOWED_ORIGINS ",
            "EMAIL_DOMAINS ",
            "SMS_COUNTRIES names \"XX\"",
        ] {
            assert_eq!(problems.iter().filter(|problem| problem.starts_with(told)).count(), 1, "{told}: {problems:?}");
        }
        assert_eq!(problems.len(), 13, "{problems:?}");
    }

    #[test]
    fn what_starts_and_does_less_is_warned_of() {
        assert_eq!(of(&[("SEARCH_PROVIDERS", "serper"), ("PROVIDER_KEYS", r#"{"serper": "k"}"#)]), Ok(Vec::new()));
        let warnings = of(&[("SEARCH_PROVIDERS", "serper"), ("SERVICE_NAM", "x")]).unwrap();
        let expected = [
            "SEARCH_PROVIDERS names serper, but PROVIDER_KEYS has no key serper: it is not asked",
            "nothing reads the variable SERVICE_NAM; is it SERVICE_NAME?",
        ];
        assert_eq!(warnings, expected);
    }

    #[test]
    fn own_services_may_have_secrets_and_their_problems_are_told() {
        let tools = r#"{"tools": [{"name": "parcel", "title": "Parcel", "summary": "Where a parcel is", "price": "0.01",
            "method": "GET", "address": "https://api.example.com", "path": "/", "input_schema": {"type": "object"},
            "constants": {"headers": {"authorization": {"secret": "parcel_key"}}}}]}"#;
        let keys = ("PROVIDER_KEYS", r#"{"parcel_key": "k"}"#);
        assert_eq!(of(&[("OWN_TOOLS", tools), keys]), Ok(Vec::new()));
        // A tool that is not sold may be as cheap as it is.
        let brave = [("SEARCH_PROVIDERS", "brave"), ("PROVIDER_KEYS", r#"{"brave": "k"}"#), ("TOOLS", "web_read")];
        assert_eq!(of(&brave), Ok(Vec::new()));
        let problems =
            of(&[("OWN_TOOLS", r#"{"tools": [{"name": "inbox"}]}"#), ("TOOLS", "web_raed"), ("MARKETPLACE", "no")]);
        let problems = problems.unwrap_err();
        for told in ["OWN_TOOLS /tools/0/name is the name of another tool", "TOOLS names \"web_raed\"", "MARKETPLACE"] {
            assert!(problems.iter().any(|problem| problem.starts_with(told)), "{told}: {problems:?}");
        }
    }

    #[test]
    fn the_documents_have_the_variables_of_the_local_stack() {
        let (_, table) = include_str!("../../docs/CONFIGURATION.md").split_once("## Only the local stack").unwrap();
        let documented: Vec<&str> =
            table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        assert_eq!(documented, READ);
    }

    #[test]
    fn providers_in_aws_are_refused_unless_another_address_replaces_theirs() {
        let problems = |variables: &[(&str, &str)]| {
            let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            check(&environment, &SettingsFile::default()).err().map(|errors| errors.0).unwrap_or_default()
        };
        let named = [
            ("EMAIL_PROVIDERS", "ses"),
            ("SMS_PROVIDERS", " aws_sms, twilio"),
            ("MODEL_PROVIDER", "bedrock"),
            ("MODEL_NAME", "some-model"),
        ];
        let told = problems(&named);
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].starts_with("EMAIL_PROVIDERS=ses works deployed only"), "{told:?}");
        let with = |more: &[(&'static str, &'static str)]| problems(&[&named[..], more].concat());
        let urls = r#"{"ses": "http://127.0.0.1:1", "aws_sms": "http://127.0.0.1:1"}"#;
        assert_eq!(with(&[("PROVIDER_URLS", urls), ("MODEL_URL", "http://127.0.0.1:1")]), [""; 0]);
        assert_eq!(with(&[("AWS_ENDPOINT_URL", "http://127.0.0.1:1")]), [""; 0], "an emulator of AWS");
        assert_eq!(problems(&[("EMAIL_PROVIDERS", "smtp,ses")]), [""; 0], "never asked");
    }
}
