use std::sync::Arc;

use gate::app::{self, App};
use gate::secrets::ServiceKeys;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use ledger::signing;
use platform::config::Config;
use platform::connections::Connections;
use platform::http::log;
use serde_json::Value;
use tools::spec::NOTHING;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let receipt_key = ServiceKeys::load(&config, &connections.signed).await?.receipts.public();
    let queue = app::job_queue(&config, &connections)?;
    let souls = app::soul_queue(&config, &connections)?;
    let browser = app::browser_queue(&config, &connections)?;
    let deliveries = app::delivery_queue(&config, &connections)?;
    let app = App::new(config, &connections, &NOTHING);
    // The functions that serve the keys have no access to secrets, so every scheduler process publishes the public key when
    // it starts.
    signing::publish(&app.db, &receipt_key).await?;
    let app = &app;
    let queues = scheduler::Queues { tools: &*queue, souls: &*souls, browser: &*browser, deliveries: &*deliveries };
    let handler = |_: LambdaEvent<Value>| async move {
        let ran = scheduler::run(&app.db, &app.chain, queues, &app.clock).await?;
        let (namespace, swept) = (&app.config.metric_namespace, ran.swept);
        log::metric(namespace, "OldestOpenJobSeconds", "Seconds", swept.oldest_secs);
        log::metric(namespace, "JobsSentAgain", "Count", u64::from(swept.sent));
        // These are written only if above zero: a metric that is never written costs nothing.
        if ran.looked.reopened > 0 {
            log::metric(namespace, "SettlementsReopened", "Count", u64::from(ran.looked.reopened));
        }
        if ran.looked.behind_secs > 0 {
            log::metric(namespace, "SettlementsBehindSeconds", "Seconds", ran.looked.behind_secs);
        }
        Ok::<_, Error>(ran)
    };
    lambda_runtime::run(service_fn(handler)).await
}
