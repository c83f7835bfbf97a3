use std::sync::Arc;

use common::app::{App, Connections};
use common::config::Config;
use common::mail::Mailer;
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let config = Arc::new(Config::from_env()?);
    let connections = Connections::open(&config)?;
    let mailer = Mailer::new(&config)?;
    let app = App::new(config, &connections);
    let (app, mailer) = (&app, &mailer);
    let handler = |event: LambdaEvent<aggregator::StreamEvent>| async move {
        aggregator::handle(&app.db, mailer, event.payload, app.clock.now()).await.map_err(Error::from)
    };
    lambda_runtime::run(service_fn(handler)).await
}
