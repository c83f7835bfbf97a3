//! The catalog: one list of everything that an agent can buy.
//!
//! Routes, 402 challenges, price probes, the API description and the route table are all derived from [`CATALOG`], so they
//! agree. The work is in a separate list, [`RUNNERS`]: a function that only needs prices does not link the runners. The
//! macro `sell!` makes both lists from one. Adding a tool or a family means adding its name there.

use std::sync::LazyLock;

use platform::config::Capability;
use platform::providers::{Charge, sns};
use tools::Runner;
use tools::chore::Chore;
use tools::pages::BROWSER;
use tools::spec::{Catalog, MARKET, ToolSpec};
use tools_email::send as email;
use tools_lookups::{local, lookups, vehicle_identification};
use tools_network::providers::unipile;
use tools_people::{enrichment, rdap, vendors, verification};
use tools_sms::number;
use tools_sms::providers::{telnyx, vapi};
use tools_sms::{buy as phone_number, send as sms};
use tools_voice::outbound as voice;
use tools_web::{research, web_read, web_search};
use web::search;

/// Makes [`CATALOG`]'s tools, in the order agents see them, and [`RUNNERS`] from one list of modules.
macro_rules! sell {
    (tools: $($tool:ident),+; families: $($family:ident),+ $(,)?) => {
        fn specs() -> Vec<&'static ToolSpec> {
            [vec![$(&$tool::SPEC),+], $($family::specs()),+].concat()
        }

        /// The runner of every tool, in the order of [`CATALOG`], then that of the operator's own services.
        pub static RUNNERS: LazyLock<Vec<&'static Runner>> =
            LazyLock::new(|| [vec![$(&$tool::RUNNER),+], $($family::runners()),+, vec![&tools_own::RUNNER]].concat());
    };
}

sell! {
    tools: vehicle_identification, web_search, web_read, email, sms, phone_number, voice;
    families: research, enrichment, verification, lookups, local, tools_build, tools_browser, tools_network, tools_compute, tools_commerce,
}

/// Every tool.
pub static CATALOG: LazyLock<Catalog> = LazyLock::new(|| Catalog {
    tools: specs(),
    left_out: Vec::new(),
    quoters: vec![
        &tools_email::quote::QUOTER,
        &tools_sms::quote::QUOTER,
        &tools_voice::quote::QUOTER,
        &tools_build::quote::QUOTER,
        &tools_browser::quote::QUOTER,
        &tools_compute::quote::QUOTER,
        &tools_commerce::quote::QUOTER,
    ],
    providers,
    asked,
    charges,
    has_country: number::has_country,
    market: MARKET,
    problems: Vec::new(),
});

/// What the worker does every hour.
pub static CHORES: &[&Chore] = &[
    &tools_voice::lease::CHORE,
    &tools_build::lease::CHORE,
    &tools_commerce::watch::CHORE,
    &tools_commerce::goods::watch::CHORE,
    &tools_network::idle::CHORE,
];

fn providers(capability: Capability) -> Vec<&'static str> {
    match capability {
        Capability::Search => search::vendors::ALL.iter().map(|vendor| vendor.name).collect(),
        Capability::People => vendors::VENDORS.to_vec(),
        Capability::EmailCheck => vec!["hunter"],
        Capability::Identity => vec!["stripe"],
        Capability::Places => vec!["google_places", "overpass"],
        Capability::Email => tools_email::providers::NAMES.to_vec(),
        Capability::Sms => tools_sms::providers::NAMES.to_vec(),
        Capability::Voice => tools_voice::providers::NAMES.to_vec(),
        Capability::Network => tools_network::providers::NAMES.to_vec(),
        Capability::Products => tools_commerce::providers::CATALOGS.to_vec(),
        Capability::Purchases => tools_commerce::providers::BUYERS.to_vec(),
    }
}

/// Providers by capability, registers, and who is asked for other things. A test compares this with the tools' needs.
fn asked() -> Vec<&'static str> {
    let named = Capability::ALL.into_iter().flat_map(|(capability, _)| providers(capability));
    let rows = lookups::ROWS
        .iter()
        .flat_map(|row| row.requests.iter().filter_map(|request| request.source).chain([row.source]));
    let others = [
        unipile::SECRET,
        rdap::NAME,
        sns::PROVIDER,
        BROWSER,
        vapi::SECRET,
        telnyx::PUBLIC_KEY,
        telnyx::CONNECTION,
        telnyx::ASSISTANT,
    ];
    named.chain(rows.map(|source| source.provider)).chain(others).collect()
}

/// What providers charge, by their adapters.
fn charges() -> Vec<Charge> {
    let search = search::vendors::ALL.iter().map(|vendor| Charge {
        provider: vendor.name,
        capability: Capability::Search,
        tools: &["web_search"],
        amount: vendor.charge,
    });
    let others = [
        &vendors::CHARGES[..],
        &verification::CHARGES,
        &local::CHARGES,
        &tools_email::providers::CHARGES,
        &tools_sms::providers::CHARGES,
        &tools_voice::providers::CHARGES,
        &tools_network::providers::CHARGES,
        &tools_commerce::providers::CHARGES,
    ];
    search.chain(others.concat()).collect()
}

/// When a tool's name, path, summary or price last changed, for directories. A test in `api::discovery` fails if the
/// catalog changes and this does not.
pub const UPDATED: &str = "2026-11-29T00:00:00Z";

#[cfg(test)]
mod tests {
    use tools::spec::{Answer, Need, TOP_UP};

    use super::*;
    use base::input;
    use base::money::Usdc;
    use platform::config::Config;
    use platform::net::FetchPolicy;
    use platform::providers::Amount;
    use tools::bazaar;

    #[test]
    fn every_provider_says_what_it_charges() {
        for (capability, variable) in Capability::ALL {
            for provider in providers(capability) {
                let is_said = |charge: &Charge| charge.provider == provider && charge.capability == capability;
                assert!(charges().iter().any(is_said), "{variable}: {provider}");
            }
        }
        for charge in charges() {
            assert!(charge.tools.iter().all(|name| CATALOG.find(name).is_some()), "{charge:?}");
            let Amount::Public { usd, source, as_of, .. } = charge.amount else { continue };
            assert!(usd > Usdc::ZERO && source.starts_with("https://") && as_of.len() == 7, "{charge:?}");
        }
    }

    #[test]
    fn a_price_below_a_providers_stops_the_start() {
        let told = |variables: &[(&str, &str)]| -> Vec<String> {
            let variables = [variables, &[("PAY_TO", "0x00000000000000000000000000000000000000ff")]].concat();
            let given =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            CATALOG.unknown(&Config::read(given).unwrap())
        };
        let nothing: [&str; 0] = [];
        assert_eq!(told(&[("SEARCH_PROVIDERS", "serper,searxng"), ("EMAIL_PROVIDERS", "ses")]), nothing);
        let brave = ("SEARCH_PROVIDERS", "serper,brave");
        let expected = "web_search is sold for 0.001000 USDC, and brave charges 0.005000 USD for a search \
                        (https://api-dashboard.search.brave.com/app/plans, 2026-09): raise the price of web_search in PRICES, \
                        set brave=N in PROVIDER_CALLS_PER_DAY, or name web_search in SOLD_BELOW_COST";
        assert_eq!(told(&[brave]), [expected]);
        for way_out in [
            ("PRICES", r#"{"web_search": "0.005"}"#),
            ("PROVIDER_CALLS_PER_DAY", "brave=100"),
            ("SOLD_BELOW_COST", "web_search"),
            ("SOLD_BELOW_COST", "*"),
        ] {
            assert_eq!(told(&[brave, way_out]), nothing, "{way_out:?}");
        }
        assert_eq!(
            told(&[("SOLD_BELOW_COST", "web_serch")]),
            ["SOLD_BELOW_COST names \"web_serch\", which is no tool"]
        );
        // Only the first of these is asked.
        assert_eq!(told(&[("SMS_PROVIDERS", "aws_sms,twilio")]), nothing);
        assert_eq!(told(&[("SMS_PROVIDERS", "twilio")]).len(), 1);
    }

    #[test]
    fn names_and_paths_are_unique_and_examples_are_valid() {
        let mut names = std::collections::HashSet::new();
        let mut paths = std::collections::HashSet::new();
        for tool in CATALOG.iter() {
            assert!(names.insert(tool.name), "{}", tool.name);
            for path in tool.paths {
                assert!(paths.insert(*path), "{path}");
                assert!(path.starts_with("/v1/"), "{path}");
            }
            for text in [tool.name, tool.title, tool.summary, tool.group] {
                assert!(!text.is_empty(), "{} is not complete", tool.name);
            }
            assert!(!tool.paths.is_empty() && tool.output_schema().is_object(), "{} is not complete", tool.name);
            assert!(tool.answer == Answer::Direct || !tool.bare, "{}", tool.name);
            assert!(tool.price.usual() > Usdc::ZERO);
            for judged in tool.judged {
                let field = judged.split('.').next();
                assert!(tool.input.iter().any(|known| Some(known.name) == field), "{}: {judged}", tool.name);
            }
            let example = tool.example();
            let kept = input::validate(tool.input, example.as_object().unwrap()).unwrap();
            assert_eq!(tool.check(&kept, &FetchPolicy::default()), Vec::new());
            assert_eq!(CATALOG.find(tool.name).map(|found| found.name), Some(tool.name));
        }
    }

    #[test]
    fn every_example_matches_its_schema() {
        for tool in CATALOG.iter().chain(MARKET).chain([&TOP_UP]) {
            for extension in [bazaar::http(tool), bazaar::http_brief(tool), bazaar::mcp(tool, "agora_x")] {
                let schema = jsonschema::validator_for(&extension["schema"]).unwrap();
                assert!(schema.is_valid(&extension["info"]), "{}: {extension}", tool.name);
                assert!(extension.to_string().len() < 1_700, "{}: {}", tool.name, extension.to_string().len());
            }
        }
    }

    #[test]
    fn every_key_that_a_tool_needs_may_be_set() {
        let asked = asked();
        for tool in CATALOG.iter() {
            for need in (tool.needs)(tool, &Default::default()) {
                assert!(!matches!(need, Need::Key(name) if !asked.contains(&name)), "{}: {need}", tool.name);
            }
        }
        for name in ["brave", "peopledatalabs", "twilio", "vapi", "openfda", "sam", "rdap"] {
            assert!(asked.contains(&name), "{name}");
        }
    }

    #[test]
    fn every_entry_has_its_runner() {
        let sold: Vec<&str> = CATALOG.iter().map(|tool| tool.name).chain([tools::own::RUNNER]).collect();
        let done: Vec<&str> = RUNNERS.iter().map(|runner| runner.spec.name).collect();
        assert_eq!(sold, done);
    }
}
