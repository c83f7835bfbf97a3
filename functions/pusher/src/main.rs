use std::sync::Arc;

use gate::app::App;
use gate::push::{Pusher, Sender};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use platform::config::Config;
use platform::connections::Connections;
use platform::store::stream::StreamEvent;
use tools::spec::NOTHING;

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
