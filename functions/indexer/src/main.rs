use std::sync::Arc;

use catalog::CATALOG;
use gate::app::{self, App};
use indexer::Indexer;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use platform::config::Config;
use platform::connections::Connections;
use platform::net::FetchPolicy;
use serde_json::Value;
use web::search::index::{Limits, Writer};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let queue = app::index_queue(&config, &connections)?;
    let app = App::new(config, &connections, &CATALOG);
    let toolbox = Arc::new(app.toolbox(&connections, FetchPolicy::default())?);
    let writer = Writer::new(app.db.clone(), app.blobs.clone(), app.clock.clone(), Limits::default());
    let indexer = &Indexer { writer, toolbox, queue };
    let handler = |event: LambdaEvent<Value>| async move { Ok::<_, Error>(indexer.handle(event.payload).await?) };
    lambda_runtime::run(service_fn(handler)).await
}
