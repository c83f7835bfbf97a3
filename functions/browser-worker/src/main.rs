use std::sync::Arc;

use catalog::CATALOG;
use gate::app::{self, App};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use platform::config::Config;
use platform::connections::Connections;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let app = App::new(config, &connections, &CATALOG);
    let (engine, _) = app::engine(&app, &connections, &browser_worker::RUNNERS).await?;
    app.db.warm(&app.config.tables.jobs).await;
    let engine = &engine;
    let handler = |event: LambdaEvent<worker::SqsEvent>| async move {
        Ok::<_, Error>(worker::handle(engine, event.payload).await)
    };
    lambda_runtime::run(service_fn(handler)).await
}
