//! Checks which tools are not available in this deployment, and what each lacks: a provider, a key, or the operator's copy
//! of a register.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::clock::Clock;
use catalog::CATALOG;
use gate::app::App;
use platform::connections::Connections;
use platform::net::FetchPolicy;
use platform::store::Blobs;
use serde_json::Map;
use tools::snapshot;
use tools::spec::Need;

use super::Report;

/// Registers change every week, some every day.
const OLD_DAYS: i64 = 30;
const CHECK: &str = "tools";

/// `blobs` is the blob store with the copies, if known.
pub async fn check(app: &App, connections: &Connections, blobs: Option<Arc<dyn Blobs>>, report: &mut Report) {
    let toolbox = match app.toolbox(connections, FetchPolicy::default()) {
        Ok(toolbox) => toolbox,
        Err(error) => {
            report.warn(CHECK, error.to_string(), "correct AWS_CA_BUNDLE, or unset it");
            return;
        }
    };
    let mut keyless: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut copyless: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut nobodys: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for tool in CATALOG.iter() {
        // Tools with alternatives (mail or a provider of people) are covered by other checks.
        match (tool.needs)(tool, &Map::new())[..] {
            [Need::Key(name)] => keyless.entry(name).or_default().push(tool.name),
            [Need::Copy(name)] => copyless.entry(name).or_default().push(tool.name),
            [Need::Provider(capability)] if app.config.providers.order(capability).is_empty() => {
                nobodys.entry(capability.variable()).or_default().push(tool.name);
            }
            _ => {}
        }
    }
    let mut lacking = 0;
    for (variable, tools) in nobodys {
        lacking += tools.len();
        let found = format!("{variable} has no provider, so these tools are not available: {}", tools.join(", "));
        report.warn(CHECK, found, format!("set {variable} to a provider whose key you have (docs/CONFIGURATION.md)"));
    }
    for (provider, rows) in keyless {
        let what = match toolbox.outbound.key(provider).await {
            Ok(Some(_)) => continue,
            Ok(None) => "is not set",
            Err(_) => "could not be read",
        };
        lacking += rows.len();
        let remedy =
            format!("get a key and set PROVIDER_KEYS='{{\"{provider}\": \"...\"}}' (docs/LOOKUPS.md, Settings)");
        report.warn(
            CHECK,
            format!("the key of {provider} {what}, so these tools are not available: {}", rows.join(", ")),
            remedy,
        );
    }
    for (name, rows) in copyless {
        let remedy = format!("make import-snapshot NAME={name} ... (docs/LOOKUPS.md, Copies of registers)");
        let Some(blobs) = &blobs else {
            let found = format!("cannot look for a copy of {name}, which these tools need: {}", rows.join(", "));
            report.warn(CHECK, found, "set BLOB_BUCKET (or, for a local stack, BLOB_FOLDER)");
            continue;
        };
        match snapshot::in_force(&**blobs, name).await {
            Ok(Some(copy)) => age(name, &copy, report),
            Ok(None) => {
                lacking += rows.len();
                let found =
                    format!("there is no copy of {name}, so these tools are not available: {}", rows.join(", "));
                report.warn(CHECK, found, remedy);
            }
            Err(error) => {
                let remedy = "run the doctor with credentials that may read snapshots/ of the bucket";
                report.warn(CHECK, format!("cannot see whether there is a copy of {name}: {error}"), remedy);
            }
        }
    }
    report.ok(CHECK, format!("{} of {} tools have what they need", CATALOG.len() - lacking, CATALOG.len()));
}

fn age(name: &str, copy: &snapshot::Pointer, report: &mut Report) {
    let found = format!("the copy of {name} is from {}, {} records", copy.as_of, copy.records);
    match copy.age_days(Clock::system().now()) {
        Some(days) if days <= OLD_DAYS => report.ok(CHECK, found),
        _ => report.warn(CHECK, format!("{found}: older than {OLD_DAYS} days"), "import a newer one (docs/LOOKUPS.md)"),
    }
}
