use std::sync::Arc;

use common::app::{self, App};
use common::catalog::list::CATALOG;
use common::config::Config;
use common::connections::Connections;
use common::net::FetchPolicy;
use common::search::index::{Limits, Writer};
use indexer::Indexer;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

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
