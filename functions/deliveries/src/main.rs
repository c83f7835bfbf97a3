use std::sync::Arc;

use gate::app::{self, App};
use gate::secrets::{ServiceKeys, with_platforms};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use ledger::webhooks::Courier;
use platform::config::Config;
use platform::connections::Connections;
use platform::net::FetchPolicy;
use tools::spec::NOTHING;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Config::from_env()?;
    let connections = Connections::open(&config)?;
    let config = Arc::new(with_platforms(config, &connections.signed).await?);
    let keys = ServiceKeys::load(&config, &connections.signed).await?.webhooks;
    let queue = app::delivery_queue(&config, &connections)?;
    let App { db, clock, config, .. } = App::new(config, &connections, &NOTHING);
    let courier = Courier::new(db, clock, queue, keys, &config, FetchPolicy::default())?;
    courier.db.warm(&config.tables.agents).await;
    let courier = &courier;
    let handler = |event: LambdaEvent<worker::SqsEvent>| async move {
        Ok::<_, Error>(deliveries::handle(courier, event.payload).await)
    };
    lambda_runtime::run(service_fn(handler)).await
}
