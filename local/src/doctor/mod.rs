//! The doctor compares a deployment's settings with what the template, the code and the chain need, and says how to correct
//! each problem. It changes nothing.
//!
//! It reads the environment as the functions do (`make doctor` adds what a local stack announces), and queries the chain,
//! AWS and the service itself. Each check is one [`Finding`].

mod chain;
mod cloud;
mod email;
mod functions;
pub mod providers;
mod service;
mod settings;
mod sms;
mod tools;
mod voice;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use base::clock::Clock;
use catalog::CATALOG;
use evm::Address;
use gate::app::App;
use platform::connections::Connections;
use platform::store::Blobs;
use serde::Serialize;
use serde_json::Value;

pub use settings::{misspelt, template_variables};

use crate::blobs::FolderBlobs;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Ok,
    /// It works, but not completely, or not for long.
    Warn,
    Fail,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub level: Level,
    pub check: String,
    pub found: String,
    /// What to do, unless the check passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// The findings so far.
#[derive(Default)]
pub struct Report(pub Vec<Finding>);

impl Report {
    fn ok(&mut self, check: &str, found: impl Into<String>) {
        self.0.push(Finding { level: Level::Ok, check: check.to_owned(), found: found.into(), remedy: None });
    }

    fn warn(&mut self, check: &str, found: impl Into<String>, remedy: impl Into<String>) {
        let remedy = Some(remedy.into());
        self.0.push(Finding { level: Level::Warn, check: check.to_owned(), found: found.into(), remedy });
    }

    fn fail(&mut self, check: &str, found: impl Into<String>, remedy: impl Into<String>) {
        let remedy = Some(remedy.into());
        self.0.push(Finding { level: Level::Fail, check: check.to_owned(), found: found.into(), remedy });
    }

    /// The worst level found.
    pub fn worst(&self) -> Level {
        self.0.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok)
    }

    /// One line for each check, and one for its remedy.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for finding in &self.0 {
            let level = match finding.level {
                Level::Ok => "ok  ",
                Level::Warn => "warn",
                Level::Fail => "FAIL",
            };
            text.push_str(&format!("{level}  {}: {}\n", finding.check, finding.found));
            if let Some(remedy) = &finding.remedy {
                text.push_str(&format!("      do: {remedy}\n"));
            }
        }
        text
    }
}

/// Runs every check with the variables of an environment. For a deployment in AWS, its name (`TABLE_PREFIX`), region and
/// credentials are enough: the rest is read from its functions. Two variables are the doctor's own: `RELAYER_ADDRESS` and
/// `TREASURY_ADDRESS`, for operators without the wallets' keys.
pub async fn examine(environment: &HashMap<String, String>) -> Report {
    let mut report = Report::default();
    let mut environment = environment.clone();
    functions::check(&mut environment, &mut report).await;
    let environment = &environment;
    let Some(config) = settings::check(environment, &mut report) else { return report };
    providers::check(&config, &mut report);
    email::check(&config, &mut report);
    sms::check(&config, &mut report);
    voice::check(&config, &mut report);
    let config = Arc::new(config);
    let connections = match Connections::open(&config) {
        Ok(connections) => connections,
        Err(error) => {
            report.fail("connections", error.to_string(), "correct AWS_CA_BUNDLE, or unset it");
            return report;
        }
    };
    let app = App::new(config, &connections, &CATALOG);
    let address = |name: &str| environment.get(name).and_then(|text| text.trim().parse::<Address>().ok());
    let wallets = cloud::Wallets { relayer: address("RELAYER_ADDRESS"), treasury: address("TREASURY_ADDRESS") };
    let wallets = cloud::wallets(&app, &connections, wallets, &mut report).await;
    chain::check(&app, &wallets, &mut report).await;
    cloud::check(&app, &connections, &mut report).await;
    service::check(&app, &connections, &mut report).await;
    email::records(&app, &connections, &mut report).await;
    sms::numbers(&app, &connections, &mut report).await;
    voice::numbers(&app, &connections, &mut report).await;
    tools::check(&app, &connections, blobs(environment, &app), &mut report).await;
    report
}

/// The blob store: a local stack's folder, or the bucket.
fn blobs(environment: &HashMap<String, String>, app: &App) -> Option<Arc<dyn Blobs>> {
    match environment.get("BLOB_FOLDER") {
        Some(folder) => Some(Arc::new(FolderBlobs::new(folder.into(), "http://localhost", Clock::system()))),
        None => app.config.aws.bucket.as_ref().map(|_| app.blobs.clone()),
    }
}

/// Adds a running local stack's announcement (`.local/stack.json`) to an environment; variables already set stay.
pub fn of_stack(environment: &mut HashMap<String, String>, announcement: &Path) -> Result<(), crate::Error> {
    let stack: Value = serde_json::from_str(&std::fs::read_to_string(announcement)?)?;
    let secret = announcement.with_file_name("service-secret");
    let secret = std::fs::read_to_string(secret).ok();
    let text = |pointer: &str| stack.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let blobs = announcement.with_file_name("blobs").to_str().map(str::to_owned);
    // The announcement has only the names of provider keys; that is enough to find missing ones.
    let keys = stack.pointer("/provider_keys").and_then(Value::as_array).map(|names| {
        let keys =
            names.iter().filter_map(Value::as_str).map(|name| (name.to_owned(), Value::from("as-the-stack-has-it")));
        Value::Object(keys.collect()).to_string()
    });
    let chain_id = stack.pointer("/chain/chain_id").map(Value::to_string);
    for (name, value) in [
        ("SERVICE_NAME", text("/service_name")),
        ("PUBLIC_BASE_URL", text("/base_url")),
        ("CHAIN_RPC_URL", text("/chain/rpc_url")),
        ("CHAIN_ID", chain_id),
        ("USDC_ADDRESS", text("/chain/token")),
        ("PAY_TO", text("/chain/pay_to")),
        ("AWS_ENDPOINT_URL", text("/database_url")),
        ("AWS_ACCESS_KEY_ID", Some("local".to_owned())),
        ("AWS_SECRET_ACCESS_KEY", Some("local".to_owned())),
        ("RELAYER_ADDRESS", text("/relayer")),
        ("TREASURY_ADDRESS", text("/treasury")),
        ("SERVICE_SECRET", secret),
        ("BLOB_FOLDER", blobs),
        ("PROVIDER_KEYS", keys),
        ("EMAIL_DOMAINS", text("/email_domains")),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            environment.entry(name.to_owned()).or_insert(value);
        }
    }
    Ok(())
}
