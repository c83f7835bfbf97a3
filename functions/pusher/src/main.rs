use std::sync::Arc;

use common::app::App;
use common::catalog::NOTHING;
use common::config::Config;
use common::connections::Connections;
use common::push::{Pusher, Sender};
use common::store::stream::StreamEvent;
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let sender = Sender::new(&config, &connections.http)?;
    let app = App::new(config, &connections, &NOTHING);
    let pusher = Pusher { db: app.db.clone(), blobs: app.blobs.clone(), sender };
    let (app, pusher) = (&app, &pusher);
    let handler = |event: LambdaEvent<StreamEvent<pusher::Item>>| async move {
        pusher::handle(pusher, event.payload, app.clock.now()).await.map_err(Error::from)
    };
    lambda_runtime::run(service_fn(handler)).await
}
