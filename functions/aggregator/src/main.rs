use std::sync::Arc;

use catalog::CATALOG;
use gate::app::{self, App};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use platform::config::Config;
use platform::connections::Connections;
use platform::mail::Mailer;
use platform::store::stream::StreamEvent;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let mailer = Mailer::new(&config)?;
    let deliveries = app::delivery_queue(&config, &connections)?;
    let app = App::new(config, &connections, &CATALOG);
    let (app, mailer, deliveries) = (&app, &mailer, &*deliveries);
    let handler = |event: LambdaEvent<StreamEvent<serde_json::Value>>| async move {
        aggregator::handle(&app.db, mailer, deliveries, event.payload, app.clock.now()).await.map_err(Error::from)
    };
    lambda_runtime::run(service_fn(handler)).await
}
