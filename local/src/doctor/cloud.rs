//! Checks the template's resources in AWS: tables, queues, the bucket, the secrets.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::DisplayErrorContext;
use aws_sdk_sqs::types::QueueAttributeName;
use evm::Address;
use gate::app::App;
use gate::secrets::{self, ServiceKeys};
use ledger::signing;
use platform::config::SettlementConfig;
use platform::connections::Connections;
use platform::store::table::{TABLES, TTL_ATTRIBUTE, TableDefinition};

use super::Report;
use crate::database::table_name;

/// As in the template: six times the timeout of the function that takes the messages.
const LEAST_VISIBILITY_SECS: u64 = 1_080;

/// The wallets of a deployment, as far as known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wallets {
    pub relayer: Option<Address>,
    pub treasury: Option<Address>,
}

/// The wallets' addresses: given, or derived from their keys.
pub async fn wallets(app: &App, connections: &Connections, given: Wallets, report: &mut Report) -> Wallets {
    let mut found = given;
    if found.relayer.is_none() && matches!(app.config.settlement, SettlementConfig::Relayer) {
        match secrets::relayer_key(&app.config, &connections.signed).await {
            Ok(key) => found.relayer = Some(key.address()),
            Err(error) => {
                let remedy = "set RELAYER_SECRET_ARN; or set FACILITATOR_URL, which needs no fee wallet; or set RELAYER_ADDRESS, only for this check";
                report.fail("relayer key", error.to_string(), remedy);
            }
        }
    }
    if found.treasury.is_none() {
        found.treasury = match secrets::treasury_key(&app.config, &connections.signed).await {
            Ok(key) => Some(key.address()),
            // The function that has the key stores its address for the others.
            Err(_) => ledger::payments::treasury::known(&app.db).await.ok().flatten(),
        };
    }
    found
}

pub async fn check(app: &App, connections: &Connections, report: &mut Report) {
    for table in &TABLES {
        check_table(app, table, report).await;
    }
    queues(app, connections, report).await;
    bucket(app, connections, report).await;
    keys(app, connections, report).await;
}

async fn check_table(app: &App, table: &TableDefinition, report: &mut Report) {
    let name = table_name(&app.db.tables, table.word);
    let check = format!("table {name}");
    let client = app.db.client();
    let described = match client.describe_table().table_name(name).send().await {
        Ok(answer) => answer.table,
        Err(error) => {
            let remedy = format!(
                "set TABLE_PREFIX to the stack's name and AWS_REGION to its region, or deploy: {name} is not there"
            );
            report.fail(&check, DisplayErrorContext(&error).to_string().chars().take(200).collect::<String>(), remedy);
            return;
        }
    };
    let Some(described) = described else { return };
    let mut wrong: Vec<String> = Vec::new();
    let indexes: Vec<&str> =
        described.global_secondary_indexes().iter().filter_map(|index| index.index_name()).collect();
    wrong.extend(
        table
            .indexes
            .iter()
            .filter(|index| !indexes.contains(&index.name))
            .map(|index| format!("no index {}", index.name)),
    );
    let streams = described.stream_specification().is_some_and(|stream| stream.stream_enabled());
    if table.stream && !streams {
        wrong.push("no stream".to_owned());
    }
    let ttl = client.describe_time_to_live().table_name(name).send().await.ok();
    let ttl = ttl.and_then(|answer| answer.time_to_live_description?.attribute_name);
    if ttl.as_deref() != Some(TTL_ATTRIBUTE) {
        wrong.push("no expiry (TTL)".to_owned());
    }
    // Emulators have no backups.
    if app.config.aws.endpoint.is_none() {
        let backups = client.describe_continuous_backups().table_name(name).send().await.ok();
        let backups =
            backups.and_then(|answer| answer.continuous_backups_description?.point_in_time_recovery_description);
        let status = backups.and_then(|recovery| recovery.point_in_time_recovery_status);
        if status.is_none_or(|status| status.as_str() != "ENABLED") {
            wrong.push("no point-in-time recovery".to_owned());
        }
    }
    if wrong.is_empty() {
        report.ok(&check, "as in the template");
    } else {
        report.fail(&check, wrong.join(", "), "deploy the stack again: template.yaml defines this table");
    }
}

async fn queues(app: &App, connections: &Connections, report: &mut Report) {
    let aws = &app.config.aws;
    for (variable, url) in [("JOB_QUEUE_URL", &aws.queue_url), ("SOUL_QUEUE_URL", &aws.soul_queue_url)] {
        let check = format!("queue {variable}");
        let Some(url) = url else {
            // A missing variable was reported by the settings check. A local stack's queues are in its process.
            if aws.endpoint.is_some() {
                report.ok(&check, "not set: the local stack's queues are in its process");
            }
            continue;
        };
        let asked = connections.aws.sqs().get_queue_attributes().queue_url(url);
        match asked.attribute_names(QueueAttributeName::All).send().await {
            Ok(answer) => judge_queue(&check, answer.attributes.unwrap_or_default(), report),
            Err(error) => {
                let remedy =
                    format!("set {variable} to the URL of the stack's queue (and AWS_REGION to its region), or deploy");
                let cause: String = DisplayErrorContext(&error).to_string().chars().take(200).collect();
                report.fail(&check, format!("{url}: {cause}"), remedy);
            }
        }
    }
}

fn judge_queue(check: &str, attributes: HashMap<QueueAttributeName, String>, report: &mut Report) {
    let number = |name| attributes.get(&name).and_then(|text: &String| text.parse::<u64>().ok()).unwrap_or_default();
    let waiting = number(QueueAttributeName::ApproximateNumberOfMessages);
    let visibility = number(QueueAttributeName::VisibilityTimeout);
    let mut wrong = Vec::new();
    if !attributes.contains_key(&QueueAttributeName::RedrivePolicy) {
        wrong.push("no dead-letter queue".to_owned());
    }
    if visibility < LEAST_VISIBILITY_SECS {
        wrong.push(format!("the visibility timeout is {visibility} s, shorter than the work on a message may take"));
    }
    if wrong.is_empty() {
        report.ok(check, format!("{waiting} messages wait"));
    } else {
        report.warn(check, wrong.join(", "), "deploy the stack again: template.yaml defines this queue");
    }
}

async fn bucket(app: &App, connections: &Connections, report: &mut Report) {
    let (Some(bucket), None) = (&app.config.aws.bucket, &app.config.aws.endpoint) else { return };
    let url = format!("https://{bucket}.s3.{}.amazonaws.com/?max-keys=0", app.config.aws.region);
    let answer = connections.signed.send("s3", "GET", &url, &[], Vec::new()).await;
    match answer.map(|answer| answer.status) {
        Ok(200) => report.ok("bucket", bucket.clone()),
        Ok(403) => {
            let remedy =
                "run the doctor with credentials that may list the bucket; this check does not use the functions' own";
            report.warn("bucket", format!("{bucket} refuses these credentials"), remedy);
        }
        Ok(status) => {
            let remedy = "set BLOB_BUCKET to the stack's bucket and AWS_REGION to its region, or deploy";
            report.fail("bucket", format!("{bucket} answers {status}"), remedy);
        }
        Err(error) => report.fail("bucket", error.to_string(), "check that this machine can reach S3"),
    }
}

/// The key that signs receipts, compared with the published ones.
async fn keys(app: &App, connections: &Connections, report: &mut Report) {
    let key = match ServiceKeys::load(&app.config, &connections.signed).await {
        Ok(keys) => keys.receipts.public(),
        Err(error) => {
            let remedy = "set SERVICE_SECRET_ARN to the stack's secret, and let these credentials read it";
            report.fail("receipt key", error.to_string(), remedy);
            return;
        }
    };
    match signing::published(&app.db).await {
        Ok(published) if published.contains(&key) => {
            report.ok("receipt key", format!("{}, one of {} published", key.key_id, published.len()));
        }
        Ok(published) => {
            let found = format!("{} is not among the {} published keys", key.key_id, published.len());
            let remedy = "let the scheduler run: each of its processes publishes the key when it starts. If it runs, this secret is not the functions' secret";
            report.fail("receipt key", found, remedy);
        }
        Err(error) => report.fail("receipt key", error.to_string(), "see the table checks above"),
    }
}
