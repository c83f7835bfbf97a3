use std::sync::Arc;

use gate::app::{self, App};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use platform::config::Config;
use platform::connections::Connections;
use platform::http::log;
use serde_json::{Value, json};
use tools::spec::NOTHING;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let app = App::new(config, &connections, &NOTHING);
    let treasury = Box::pin(app::treasury(&app, &connections)).await?;
    log::event("treasury", json!({"address": treasury.address().to_string()}));
    let (app, treasury) = (&app, &treasury);
    let handler = |_: LambdaEvent<Value>| async move {
        let ran = Box::pin(payouts::run(app, treasury)).await?;
        let namespace = &app.config.metric_namespace;
        log::metric(namespace, "OldestPayoutSeconds", "Seconds", ran.oldest_secs);
        log::metric(namespace, "PayoutsFailed", "Count", u64::from(ran.failed));
        // Written only if above zero: a metric that is never written costs nothing.
        if ran.reopened > 0 {
            log::metric(namespace, "PayoutsReopened", "Count", u64::from(ran.reopened));
        }
        Ok::<_, Error>(ran)
    };
    lambda_runtime::run(service_fn(handler)).await
}
